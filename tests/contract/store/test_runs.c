/* Runs: made, found by who may see them, listed, deleted. */
#include "tests/contract/store/world.h"

START_TEST(a_new_run_is_read_back_as_it_was_given)
{
    struct world world, *w = &world;
    struct rv_store_new_run run;
    struct rv_run_row row;

    world_open(w, _i);
    run = world_run(w, "r1");
    run.tenant = "T";
    run.parent = "r0";
    run.parent_seq = 17;
    OK(rv_store_create_run(w->s, &run, &w->err));
    OK(rv_store_get_run(w->s, &(struct rv_store_scope){"T", "u"}, "r1", &row, &w->err));
    ck_assert_str_eq(row.id, "r1");
    ck_assert_str_eq(row.tenant, "T");
    ck_assert_str_eq(row.user, "u");
    ck_assert_str_eq(row.session, "s");
    ck_assert_str_eq(row.pipeline, "p");
    ck_assert_str_eq(row.bundle, w->bundle);
    ck_assert_str_eq(row.parent, "r0");
    ck_assert_int_eq(row.parent_seq, 17);
    ck_assert_int_eq(row.status, RV_RUN_RUNNING);
    ck_assert_str_eq(row.stage, "a");
    ck_assert_int_eq(row.created_us, T0);
    ck_assert_int_eq(row.updated_us, T0);
    ck_assert_int_eq(row.expires_us, 0);
    ck_assert_int_eq(row.n_records, 1);
    ck_assert_str_eq(row.owner, "A");
    ck_assert_int_eq(row.fence, 1);
    ck_assert_int_eq(row.lease_until_us, T0 + 100);
    ck_assert(!row.cancel_requested);
    ck_assert_int_eq(row.n_pending, 0);
    rv_run_row_fini(&row);
    world_close(w);
}
END_TEST

START_TEST(a_run_may_be_nobodys_and_have_no_records)
{
    struct world world, *w = &world;
    struct rv_store_new_run run;
    struct rv_run_row row;

    world_open(w, _i);
    run = world_run(w, "r1");
    run.owner = NULL;
    run.records = NULL;
    run.n_records = 0;
    OK(rv_store_create_run(w->s, &run, &w->err));
    OK(rv_store_get_run(w->s, &operator_scope, "r1", &row, &w->err));
    ck_assert_ptr_null(row.owner);
    ck_assert_ptr_null(row.parent);
    ck_assert_str_eq(row.tenant, RV_STORE_TENANT);
    ck_assert_int_eq(row.fence, 1);
    ck_assert_int_eq(row.lease_until_us, 0);
    ck_assert_int_eq(row.n_records, 0);
    rv_run_row_fini(&row);
    OK(append(w, "r1", 1, 1, "x", NULL));
    RECORDS("r1", "1:x");
    world_close(w);
}
END_TEST

START_TEST(an_id_is_taken_once_whoever_asks)
{
    struct world world, *w = &world;
    struct rv_store_new_run run;

    world_open(w, _i);
    make_run(w, "r1");
    run = world_run(w, "r1");
    run.tenant = "other";
    SAYS(RV_E_EXISTS, "\"r1\"", rv_store_create_run(w->s, &run, &w->err));
    FAILS(RV_E_NOT_FOUND,
          rv_store_get_run(w->s, &(struct rv_store_scope){"other", NULL}, "r1", &(struct rv_run_row){0}, &w->err));
    RECORDS("r1", "1:one");
    world_close(w);
}
END_TEST

START_TEST(a_run_needs_a_bundle_that_is_there)
{
    struct world world, *w = &world;
    struct rv_store_new_run run;
    char hash[RV_HASH_MAX];

    world_open(w, _i);
    rv_hash_format(RV_STR_LIT("never put"), hash);
    run = world_run(w, "r1");
    run.bundle = hash;
    SAYS(RV_E_NOT_FOUND, hash, rv_store_create_run(w->s, &run, &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_get_run(w->s, &operator_scope, "r1", &(struct rv_run_row){0}, &w->err));
    world_close(w);
}
END_TEST

/* Every read and every scoped write, with a scope that does not reach the run. */
/* Proves 8.6/resolve */
START_TEST(nothing_outside_the_scope_is_seen_or_touched)
{
    static const struct rv_store_scope foreign[] = {
        {"other", NULL}, {"other", "u"}, {NULL, "v"}, {NULL, ""}, {"T", "v"}};
    struct world world, *w = &world;
    struct rv_store_new_run run;
    struct seen seen = SEEN_INIT;
    const struct rv_store_claim claim = {"B", NULL, T0 + 1000, T0 + 2000};
    struct rv_pending p = {.id = "i", .kind = "confirmation", .stage = "a", .text = RV_STR_LIT("?"), .created_us = T0};
    struct rv_record r;
    struct rv_store_append a = world_append("t1", 1, &r, 2, "two");
    rv_buf out = RV_BUF_INIT(100);
    int64_t seq = 0, fence = 0;

    world_open(w, _i);
    make_run(w, "d1");
    run = world_run(w, "t1");
    run.tenant = "T";
    OK(rv_store_create_run(w->s, &run, &w->err));
    a.set_pending = true;
    a.pending = &p;
    a.n_pending = 1;
    OK(rv_store_append(w->s, &a, &w->err));
    OK(rv_store_put_snapshot(w->s, "t1", 1, 2, RV_STR_LIT("snap"), &w->err));
    for (size_t i = 0; i < RV_COUNT(foreign); i++) {
        const struct rv_store_scope *sc = &foreign[i];
        struct rv_run_row row = {0};
        FAILS(RV_E_NOT_FOUND, rv_store_get_run(w->s, sc, "t1", &row, &w->err));
        FAILS(RV_E_NOT_FOUND,
              rv_store_read(w->s, sc, &(struct rv_record_range){.run = "t1", .from = 1}, see_record, &seen, &w->err));
        FAILS(RV_E_NOT_FOUND, rv_store_list_pending(w->s, sc, "t1", see_pending, &seen, &w->err));
        OK(rv_store_list_pending(w->s, sc, NULL, see_pending, &seen, &w->err));
        FAILS(RV_E_NOT_FOUND, rv_store_get_snapshot(w->s, sc, "t1", &seq, &out, &w->err));
        FAILS(RV_E_NOT_FOUND, rv_store_delete_run(w->s, sc, "t1", NULL, T0 + 1000, &w->err));
        FAILS(RV_E_NOT_FOUND, rv_store_claim(w->s, sc, "t1", &claim, &fence, &w->err));
        FAILS(RV_E_NOT_FOUND, rv_store_request_cancel(w->s, sc, "t1", T0, &w->err));
        OK(rv_store_list_runs(w->s, sc, NULL, see_run, &seen, &w->err));
        SEEN(&seen, "");
    }
    OK(rv_store_list_runs(w->s, &(struct rv_store_scope){"T", "u"}, NULL, see_run, &seen, &w->err));
    SEEN(&seen, "t1");
    OK(rv_store_list_runs(w->s, &operator_scope, NULL, see_run, &seen, &w->err));
    SEEN(&seen, "d1");
    OK(rv_store_list_pending(w->s, &(struct rv_store_scope){"T", NULL}, "t1", see_pending, &seen, &w->err));
    SEEN(&seen, "t1/i:?");
    OK(rv_store_get_snapshot(w->s, &(struct rv_store_scope){"T", "u"}, "t1", &seq, &out, &w->err));
    ck_assert_str_eq(rv_buf_cstr(&out), "snap");
    rv_buf_fini(&out);
    world_close(w);
}
END_TEST

/* Made in an order that is neither that of time nor that of ids. */
static void make_some(struct world *w)
{
    static const struct {
        const char *id, *user, *session, *pipeline, *owner;
        int64_t created, lease;
        enum rv_run_status status;
    } runs[] = {
        {"b2", "u", "s1", "p", "A", 20, 500, RV_RUN_RUNNING},    {"a1", "u", "s1", "q", NULL, 10, 0, RV_RUN_READY},
        {"c3", "v", "s2", "p", "B", 30, 900, RV_RUN_RUNNING},    {"a2", "u", "s2", "p", NULL, 20, 0, RV_RUN_COMPLETED},
        {"a_", "v", "s2", "q", NULL, 40, 0, RV_RUN_INTERRUPTED}, {"a%", "v", "s3", "q", NULL, 41, 0, RV_RUN_FAILED},
    };

    for (size_t i = 0; i < RV_COUNT(runs); i++) {
        struct rv_store_new_run run = world_run(w, runs[i].id);
        run.user = runs[i].user;
        run.session = runs[i].session;
        run.pipeline = runs[i].pipeline;
        run.owner = runs[i].owner;
        run.now_us = runs[i].created;
        run.lease_until_us = runs[i].lease;
        run.status = runs[i].status;
        OK(rv_store_create_run(w->s, &run, &w->err));
    }
}

/* A run counts once, however many such records it has. */
START_TEST(lists_runs_by_the_kind_of_a_record)
{
    enum { KIND = 99 };
    struct rv_run_filter filter = {.record_kind = KIND, .oldest_first = true};
    struct world world, *w = &world;
    struct seen seen = SEEN_INIT;
    struct rv_record record;

    world_open(w, _i);
    make_some(w);
    OK(rv_store_list_runs(w->s, &operator_scope, &filter, see_run, &seen, &w->err));
    SEEN(&seen, "");
    for (int64_t seq = 2; seq < 6; seq++) {
        struct rv_store_append a = world_append(seq < 4 ? "b2" : "c3", 1, &record, seq < 4 ? seq : seq - 2, "{}");
        record.kind = seq == 4 ? KIND + 1 : KIND;
        OK(rv_store_append(w->s, &a, &w->err));
    }
    OK(rv_store_list_runs(w->s, &operator_scope, &filter, see_run, &seen, &w->err));
    SEEN(&seen, "b2 c3");
    filter.session = "s2";
    OK(rv_store_list_runs(w->s, &operator_scope, &filter, see_run, &seen, &w->err));
    SEEN(&seen, "c3");
    filter = (struct rv_run_filter){.record_kind = KIND, .limit = 1};
    OK(rv_store_list_runs(w->s, &operator_scope, &filter, see_run, &seen, &w->err));
    SEEN(&seen, "c3");
    world_close(w);
}
END_TEST

#define BIT(name) (1u << RV_RUN_##name)
static const struct {
    struct rv_run_filter filter;
    const char *user, *want;
} filters[] = {
    {{0}, NULL, "a% a_ c3 b2 a2 a1"},
    {{.oldest_first = true}, NULL, "a1 a2 b2 c3 a_ a%"},
    {{.limit = 2}, NULL, "a% a_"},
    {{.limit = 2, .oldest_first = true}, NULL, "a1 a2"},
    {{.limit = 100}, "v", "a% a_ c3"},
    {{.statuses = BIT(RUNNING)}, NULL, "c3 b2"},
    {{.statuses = BIT(RUNNING) | BIT(FAILED)}, NULL, "a% c3 b2"},
    {{.statuses = BIT(CANCELLED)}, NULL, ""},
    {{.pipeline = "q"}, NULL, "a% a_ a1"},
    {{.pipeline = "Q"}, NULL, ""},
    {{.session = "s2"}, NULL, "a_ c3 a2"},
    {{.session = "s2", .pipeline = "p"}, "u", "a2"},
    {{.id_prefix = "a"}, NULL, "a% a_ a2 a1"},
    {{.id_prefix = "a_"}, NULL, "a_"},
    {{.id_prefix = "a%"}, NULL, "a%"},
    {{.id_prefix = "A"}, NULL, ""},
    {{.id_prefix = ""}, NULL, "a% a_ c3 b2 a2 a1"},
    {{.lease_before_us = 500}, NULL, "a% a_ a2 a1"},
    {{.lease_before_us = 501}, NULL, "a% a_ b2 a2 a1"},
    {{.lease_before_us = 501, .statuses = BIT(RUNNING)}, NULL, "b2"},
    {{.updated_before_us = 20}, NULL, "a1"},
    {{.updated_before_us = 21, .oldest_first = true}, NULL, "a1 a2 b2"},
};

/* Proves 8.2/list */
START_TEST(lists_filter_order_and_limit)
{
    struct world world, *w = &world;
    struct seen seen = SEEN_INIT;

    world_open(w, _i);
    make_some(w);
    for (size_t i = 0; i < RV_COUNT(filters); i++) {
        const struct rv_store_scope scope = {NULL, filters[i].user};
        OK(rv_store_list_runs(w->s, &scope, &filters[i].filter, see_run, &seen, &w->err));
        must_see(&seen, filters[i].want, (int)i);
    }
    OK(rv_store_list_runs(w->s, &operator_scope, NULL, see_run, &seen, &w->err));
    SEEN(&seen, "a% a_ c3 b2 a2 a1");
    world_close(w);
}
END_TEST

START_TEST(a_walk_ends_with_the_callbacks_code)
{
    struct world world, *w = &world;
    struct seen seen = SEEN_INIT;

    world_open(w, _i);
    make_some(w);
    seen.stop_at = 2;
    seen.code = 42;
    ck_assert_int_eq(rv_store_list_runs(w->s, &operator_scope, NULL, see_run, &seen, &w->err), 42);
    SEEN(&seen, "a% a_");
    seen.stop_at = 1;
    seen.code = RV_E_CANCELLED;
    ck_assert_int_eq(rv_store_list_runs(w->s, &operator_scope, NULL, see_run, &seen, &w->err), RV_E_CANCELLED);
    SEEN(&seen, "a%");
    ck_assert_ptr_null(w->err);
    make_run(w, "after");
    world_close(w);
}
END_TEST

static struct world *inside;

static int use_it_inside(void *self, const struct rv_run_row *row, rv_err **err)
{
    struct rv_run_row other = {0};

    (void)self;
    ck_assert_int_eq(rv_store_get_run(inside->s, &operator_scope, row->id, &other, err), RV_E_STATE);
    return 0;
}

START_TEST(a_callback_can_not_use_the_store)
{
    struct world world, *w = &world;
    struct seen seen = SEEN_INIT;

    world_open(w, _i);
    make_run(w, "r1");
    inside = w;
    ck_assert_int_eq(rv_store_list_runs(w->s, &operator_scope, NULL, use_it_inside, NULL, &w->err), 0);
    ck_assert_int_eq(rv_err_code(w->err), RV_E_STATE);
    rv_err_free(w->err);
    w->err = NULL;
    OK(rv_store_list_runs(w->s, &operator_scope, NULL, see_run, &seen, &w->err));
    SEEN(&seen, "r1");
    world_close(w);
}
END_TEST

/* Proves 8.2/delete */
START_TEST(a_deleted_run_leaves_nothing_and_its_id_is_free)
{
    struct world world, *w = &world;
    struct rv_store_stats stats;
    struct rv_pending p = {.id = "i", .kind = "k", .stage = "a"};
    struct rv_record r;
    struct rv_store_append a = world_append("r1", 1, &r, 2, "two");
    struct seen seen = SEEN_INIT;

    world_open(w, _i);
    make_run(w, "r1");
    make_run(w, "r2");
    a.set_pending = true;
    a.pending = &p;
    a.n_pending = 1;
    OK(rv_store_append(w->s, &a, &w->err));
    OK(rv_store_put_snapshot(w->s, "r1", 1, 1, RV_STR_LIT("snap"), &w->err));
    SAYS(RV_E_STATE, "\"A\"", rv_store_delete_run(w->s, &operator_scope, "r1", NULL, T0 + 99, &w->err));
    RECORDS("r1", "1:one 2:two");
    OK(rv_store_delete_run(w->s, &operator_scope, "r1", NULL, T0 + 100, &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_delete_run(w->s, &operator_scope, "r1", NULL, T0 + 100, &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_read(w->s, &operator_scope, &(struct rv_record_range){.run = "r1", .from = 1},
                                        see_record, &seen, &w->err));
    FAILS(RV_E_NOT_FOUND, append(w, "r1", 1, 3, "x", NULL));
    OK(rv_store_read_stats(w->s, &stats, &w->err));
    ck_assert_int_eq(stats.runs, 1);
    ck_assert_int_eq(stats.records, 1);
    ck_assert_int_eq(stats.pending, 0);
    ck_assert_int_eq(stats.snapshots, 0);
    make_run(w, "r1");
    RECORDS("r1", "1:one");
    world_close(w);
}
END_TEST

START_TEST(a_released_run_can_be_deleted_at_once)
{
    struct world world, *w = &world;

    world_open(w, _i);
    make_run(w, "r1");
    OK(rv_store_release(w->s, "r1", 1, &w->err));
    OK(rv_store_delete_run(w->s, &operator_scope, "r1", NULL, T0, &w->err));
    world_close(w);
}
END_TEST

START_TEST(thousands_of_runs_are_found_and_listed)
{
    struct world world, *w = &world;
    struct seen seen = SEEN_INIT;
    char id[32];

    world_open(w, _i);
    OK(rv_store_begin(w->s, &w->err));
    for (int i = 0; i < 3000; i++) {
        struct rv_store_new_run run = world_run(w, id);
        snprintf(id, sizeof id, "run-%04d", i);
        run.now_us = T0 + i;
        OK(rv_store_create_run(w->s, &run, &w->err));
    }
    OK(rv_store_commit(w->s, &w->err));
    for (int i = 0; i < 3000; i += 2) {
        snprintf(id, sizeof id, "run-%04d", i);
        OK(rv_store_delete_run(w->s, &operator_scope, id, NULL, T0 + 1000, &w->err));
    }
    OK(rv_store_list_runs(w->s, &operator_scope, &(struct rv_run_filter){.limit = 3}, see_run, &seen, &w->err));
    SEEN(&seen, "run-2999 run-2997 run-2995");
    OK(rv_store_list_runs(w->s, &operator_scope, NULL, see_run, &seen, &w->err));
    ck_assert_int_eq(seen.n, 1500);
    rv_buf_fini(&seen.text);
    RECORDS("run-1501", "1:one");
    world_close(w);
}
END_TEST

/* A list is judged first, and what it showed may be over when its turn comes. */
START_TEST(a_run_that_changed_since_it_was_seen_stays)
{
    struct world world, *w = &world;
    struct rv_run_row row;

    world_open(w, _i);
    make_run(w, "r1");
    OK(rv_store_get_run(w->s, &operator_scope, "r1", &row, &w->err));
    struct rv_run_seen seen = {row.status, row.updated_us};
    rv_run_row_fini(&row);
    SAYS(RV_E_STATE, "\"A\"",
         rv_store_delete_run(w->s, &operator_scope, "r1", &seen, T0 + 1, &w->err)); /* its lease lasts */
    struct rv_record r;
    struct rv_store_append a = world_append("r1", 1, &r, 2, "x");
    a.status = RV_RUN_COMPLETED;
    a.now_us = T0 + 5;
    a.release = true;
    OK(rv_store_append(w->s, &a, &w->err));
    SAYS(RV_E_NOT_FOUND, "has changed", rv_store_delete_run(w->s, &operator_scope, "r1", &seen, T0 + 6, &w->err));
    seen.status = RV_RUN_COMPLETED; /* and its time is another one */
    SAYS(RV_E_NOT_FOUND, "has changed", rv_store_delete_run(w->s, &operator_scope, "r1", &seen, T0 + 6, &w->err));
    RECORDS("r1", "1:one 2:x");
    seen.updated_us = T0 + 5;
    OK(rv_store_delete_run(w->s, &operator_scope, "r1", &seen, T0 + 6, &w->err));
    SAYS(RV_E_NOT_FOUND, "no run", rv_store_delete_run(w->s, &operator_scope, "r1", &seen, T0 + 6, &w->err));
    world_close(w);
}
END_TEST

Suite *runs_suite(void)
{
    Suite *suite = suite_create("runs");
    TCase *tc = tcase_create("runs");

    ADD(tc, a_new_run_is_read_back_as_it_was_given);
    ADD(tc, a_run_may_be_nobodys_and_have_no_records);
    ADD(tc, an_id_is_taken_once_whoever_asks);
    ADD(tc, a_run_needs_a_bundle_that_is_there);
    ADD(tc, nothing_outside_the_scope_is_seen_or_touched);
    ADD(tc, lists_filter_order_and_limit);
    ADD(tc, lists_runs_by_the_kind_of_a_record);
    ADD(tc, a_walk_ends_with_the_callbacks_code);
    ADD(tc, a_callback_can_not_use_the_store);
    ADD(tc, a_deleted_run_leaves_nothing_and_its_id_is_free);
    ADD(tc, a_released_run_can_be_deleted_at_once);
    ADD(tc, thousands_of_runs_are_found_and_listed);
    ADD(tc, a_run_that_changed_since_it_was_seen_stays);
    suite_add_tcase(suite, tc);
    return suite;
}
