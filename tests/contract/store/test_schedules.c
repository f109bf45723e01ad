/* Schedules: one firing is one transaction, and no instant is fired twice. */
#include "tests/contract/store/schedules.h"

START_TEST(a_new_schedule_has_what_it_was_given)
{
    struct world world, *w = &world;
    struct rv_schedule_row row;
    struct rv_next_tasks next;

    world_open(w, _i);
    OK(rv_store_next_tasks(w->s, NULL, 0, &next, &w->err));
    ck_assert_int_eq(next.fires_us, 0);
    add_schedule(w, "a", 60);
    SCHEDULE("a", "next 60 look 60 last -1 fired 0 skipped 0");
    OK(rv_store_get_schedule(w->s, &operator_scope, "sched_a", &row, &w->err));
    ck_assert_str_eq(row.name, "a");
    ck_assert_str_eq(row.tenant, "default");
    ck_assert_str_eq(row.user, "u");
    ck_assert_str_eq(row.expr, "* * * * *");
    ck_assert_str_eq(row.zone, "UTC");
    ck_assert_str_eq(row.type, "news");
    ck_assert_str_eq(row.tier, "small");
    ck_assert(rv_str_is(row.needs, "[]") && rv_str_is(row.payload, "{}"));
    ck_assert(!row.is_once && !row.bundle && !row.pipeline && !row.error);
    ck_assert_int_eq(row.max_retries, 3);
    ck_assert_int_eq(row.created_us, T0);
    rv_schedule_row_fini(&row);
    OK(rv_store_next_tasks(w->s, NULL, 0, &next, &w->err));
    ck_assert_int_eq(next.fires_us, AT(60));
    FIRINGS("a", 0, "");
    world_close(w);
}
END_TEST

START_TEST(a_name_is_taken_until_its_schedule_has_ended)
{
    struct world world, *w = &world;
    char id[80];
    struct rv_schedule_row row = new_schedule(id, "a", 60);

    world_open(w, _i);
    add_schedule(w, "a", 60);
    row.id = "sched_other";
    SAYS(RV_E_EXISTS, "there is a schedule \"a\" already", rv_store_add_schedule(w->s, &row, &w->err));
    row.tenant = "x";
    OK(rv_store_add_schedule(w->s, &row, &w->err)); /* a name belongs to its tenant */
    row.tenant = NULL;
    row.name = "b";
    FAILS(RV_E_EXISTS, rv_store_add_schedule(w->s, &row, &w->err)); /* ids do not */
    ck_assert_int_eq(fire(w, w->s, "a", 60, 60, 0), 1);
    SCHEDULE("a", "next -1 look -1 last 60 fired 1 skipped 0");
    row.name = "a";
    row.id = "sched_again";
    row.user = "v";
    FAILS(RV_E_EXISTS, rv_store_add_schedule(w->s, &row, &w->err)); /* what ended is the other user's to replace */
    row.user = "u";
    OK(rv_store_add_schedule(w->s, &row, &w->err));
    SCHEDULE("a", "next 60 look 60 last -1 fired 0 skipped 0");
    world_close(w);
}
END_TEST

START_TEST(what_cannot_be_a_schedule_is_refused)
{
    struct world world, *w = &world;
    char id[80];
    const struct rv_schedule_row good = new_schedule(id, "a", 60);
    struct rv_schedule_row row = good;

    world_open(w, _i);
    FAILS(RV_E_INVALID, rv_store_add_schedule(w->s, NULL, &w->err));
    row.name = "sched_a";
    SAYS(RV_E_INVALID, "begins as ids of schedules do", rv_store_add_schedule(w->s, &row, &w->err));
    row.name = "two\nlines";
    FAILS(RV_E_INVALID, rv_store_add_schedule(w->s, &row, &w->err));
    row = good;
    row.next_us = 0;
    SAYS(RV_E_INVALID, "not a time", rv_store_add_schedule(w->s, &row, &w->err));
    row = good;
    row.payload = RV_STR_LIT("[]");
    FAILS(RV_E_INVALID, rv_store_add_schedule(w->s, &row, &w->err));
    row = good;
    row.tier = "huge";
    FAILS(RV_E_INVALID, rv_store_add_schedule(w->s, &row, &w->err));
    row = good;
    row.bundle = "0000000000000000000000000000000000000000000000000000000000000000";
    SAYS(RV_E_NOT_FOUND, "there is no blob", rv_store_add_schedule(w->s, &row, &w->err));
    row.bundle = "00";
    FAILS(RV_E_INVALID, rv_store_add_schedule(w->s, &row, &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_get_schedule(w->s, &operator_scope, "a", &row, &w->err));
    world_close(w);
}
END_TEST

/* Proves p8-data.15/firing: A schedule that is due queues its task and moves on, in one transaction */
START_TEST(a_firing_queues_its_task_and_moves_on)
{
    struct world world, *w = &world;

    world_open(w, _i);
    add_schedule(w, "a", 60);
    DUE(59, 9, "");
    DUE(60, 9, "a");
    ck_assert_int_eq(fire(w, w->s, "a", 60, 60, 120), 1);
    DUE(60, 9, "");
    SCHEDULE("a", "next 120 look 120 last 60 fired 1 skipped 0");
    TASK("a@60", "pending 0 0/3");
    ck_assert_int_eq(fire(w, w->s, "a", 120, 180, 240), 1); /* two instants were missed, and it fires for the last */
    FIRINGS("a", 0, "120..180=a@180 60=a@60");
    FIRINGS("a", 1, "120..180=a@180");
    world_close(w);
}
END_TEST

START_TEST(who_comes_late_changes_nothing)
{
    struct world world, *w = &world;

    world_open(w, _i);
    add_schedule(w, "a", 60);
    rv_store *other = w->impl->is_shared ? world_other(w) : w->s;
    ck_assert_int_eq(fire(w, w->s, "a", 60, 60, 120), 1);
    ck_assert_int_eq(fire(w, other, "a", 60, 60, 120), 0);
    ck_assert_int_eq(fire(w, other, "a", 60, 90, 120), 0);
    ck_assert_int_eq(fire(w, other, "gone", 60, 60, 120), 0);
    OK(rv_store_postpone_schedule(
        other, "sched_a", &(const struct rv_postponement){.expected_us = AT(60), .until_us = AT(600), .why = "late"},
        AT(61), &w->err));
    SCHEDULE("a", "next 120 look 120 last 60 fired 1 skipped 0");
    ck_assert_int_eq(fire(w, other, "a", 120, 120, 0), 1);
    ck_assert_int_eq(fire(w, w->s, "a", 120, 120, 0), 0);
    LIST(&operator_scope, &((struct rv_task_filter){.oldest_first = true}), "a@60 a@120");
    DUE(100000, 9, ""); /* it has ended */
    if (other != w->s)
        rv_store_close(other);
    world_close(w);
}
END_TEST

/* Proves p8-data.15/late: What is a day late is noted and not done */
START_TEST(what_came_too_late_is_noted_and_not_queued)
{
    struct world world, *w = &world;
    bool is_mine = false;
    struct rv_fire skip = {.id = "sched_a",
                           .expected_us = AT(60),
                           .next_us = AT(600),
                           .now = {.planned_us = AT(120), .since_us = AT(60), .at_us = AT(500), .skipped = "too late"}};

    world_open(w, _i);
    add_schedule(w, "a", 60);
    OK(rv_store_fire_schedule(w->s, &skip, &is_mine, &w->err));
    ck_assert(is_mine);
    SCHEDULE("a", "next 600 look 600 last -1 fired 0 skipped 1");
    FIRINGS("a", 0, "60..120=skipped: too late");
    LIST(&operator_scope, NULL, "");
    skip.now.skipped = NULL;
    SAYS(RV_E_INVALID, "either", rv_store_fire_schedule(w->s, &skip, &is_mine, &w->err));
    skip.now.skipped = "x";
    skip.next_us = AT(100);
    SAYS(RV_E_INVALID, "back in time", rv_store_fire_schedule(w->s, &skip, &is_mine, &w->err));
    world_close(w);
}
END_TEST

START_TEST(a_firing_that_fails_changes_nothing)
{
    struct world world, *w = &world;

    world_open(w, _i);
    add_schedule(w, "a", 60);
    enqueue(w, "a@60"); /* with another key: the id is taken */
    FAILS(RV_E_EXISTS, fire(w, w->s, "a", 60, 60, 120));
    SCHEDULE("a", "next 60 look 60 last -1 fired 0 skipped 0");
    FIRINGS("a", 0, "");
    OK(rv_store_begin(w->s, &w->err));
    FAILS(RV_E_EXISTS, fire(w, w->s, "a", 60, 60, 120));
    add_schedule(w, "b", 90); /* the group goes on */
    OK(rv_store_commit(w->s, &w->err));
    DUE(100, 9, "a b");
    OK(rv_store_begin(w->s, &w->err));
    ck_assert_int_eq(fire(w, w->s, "b", 90, 90, 150), 1);
    rv_store_rollback(w->s); /* the run that was to be kept with it could not */
    SCHEDULE("b", "next 90 look 90 last -1 fired 0 skipped 0");
    FAILS(RV_E_NOT_FOUND, rv_store_get_task(w->s, &operator_scope, "b@90", &(struct rv_task_row){0}, &w->err));
    world_close(w);
}
END_TEST

START_TEST(one_that_cannot_be_fired_lets_others_pass)
{
    struct world world, *w = &world;
    struct rv_next_tasks next;

    world_open(w, _i);
    add_schedule(w, "a", 60);
    add_schedule(w, "b", 61);
    DUE(70, 1, "a");
    OK(rv_store_postpone_schedule(
        w->s, "sched_a",
        &(const struct rv_postponement){.expected_us = AT(60), .until_us = AT(120), .why = "no such zone"}, AT(70),
        &w->err));
    SCHEDULE("a", "next 60 look 120 last -1 fired 0 skipped 0 no such zone");
    DUE(70, 1, "b");
    OK(rv_store_next_tasks(w->s, NULL, 0, &next, &w->err));
    ck_assert_int_eq(next.fires_us, AT(61));
    DUE(120, 9, "b a");
    ck_assert_int_eq(fire(w, w->s, "a", 60, 60, 180), 1);
    SCHEDULE("a", "next 180 look 180 last 60 fired 1 skipped 0"); /* and the error is gone */
    FAILS(RV_E_INVALID,
          rv_store_postpone_schedule(
              w->s, "sched_a", &(const struct rv_postponement){.expected_us = AT(180), .until_us = AT(1), .why = "why"},
              AT(70), &w->err));
    world_close(w);
}
END_TEST

START_TEST(a_change_keeps_the_firings)
{
    static const struct rv_store_scope v = {NULL, "v"};
    static const int64_t first = 7, below = -1, too_high = RV_TASK_MAX_PRIORITY + 1;
    struct world world, *w = &world;
    struct rv_schedule_change change = {.priority = &first, .now_us = AT(70)};
    struct rv_schedule_row row;

    world_open(w, _i);
    add_schedule(w, "a", 60);
    ck_assert_int_eq(fire(w, w->s, "a", 60, 60, 65), 1);
    OK(rv_store_postpone_schedule(
        w->s, "sched_a",
        &(const struct rv_postponement){.expected_us = AT(65), .until_us = AT(120), .why = "no such zone"}, AT(66),
        &w->err));
    OK(rv_store_change_schedule(w->s, &operator_scope, "a", &change, &w->err));
    SCHEDULE("a", "next 65 look 120 last 60 fired 1 skipped 0 no such zone"); /* what it owes is not given up */
    change = (struct rv_schedule_change){
        .expr = "2026-01-01T10:00", .is_once = true, .zone = "Europe/Berlin", .next_us = AT(600), .now_us = AT(71)};
    OK(rv_store_change_schedule(w->s, &operator_scope, "sched_a", &change, &w->err));
    SCHEDULE("a", "next 600 look 600 last 60 fired 1 skipped 0");
    FIRINGS("a", 0, "60=a@60");
    ck_assert_int_eq(fire(w, w->s, "a", 65, 65, 130), 0);
    ck_assert_int_eq(fire(w, w->s, "a", 600, 600, 0), 1);
    OK(rv_store_get_schedule(w->s, &operator_scope, "a", &row, &w->err));
    ck_assert(row.is_once && row.priority == 7 && row.created_us == T0);
    ck_assert_str_eq(row.expr, "2026-01-01T10:00");
    ck_assert_str_eq(row.zone, "Europe/Berlin");
    rv_schedule_row_fini(&row);
    OK(rv_store_change_schedule(w->s, &operator_scope, "a",
                                &(struct rv_schedule_change){.priority = &below, .now_us = AT(700)}, &w->err));
    SCHEDULE("a", "next -1 look -1 last 600 fired 2 skipped 0"); /* what has ended has ended */
    SAYS(RV_E_NOT_FOUND, "there is no schedule \"a\"", rv_store_change_schedule(w->s, &v, "a", &change, &w->err));
    SAYS(RV_E_INVALID, "the priority",
         rv_store_change_schedule(w->s, &operator_scope, "a",
                                  &(struct rv_schedule_change){.priority = &too_high, .now_us = AT(700)}, &w->err));
    change.next_us = 0;
    SAYS(RV_E_INVALID, "not a time", rv_store_change_schedule(w->s, &operator_scope, "a", &change, &w->err));
    FAILS(RV_E_INVALID, rv_store_change_schedule(w->s, &operator_scope, "a", NULL, &w->err));
    world_close(w);
}
END_TEST

START_TEST(many_schedules_of_one_tenant_do_not_keep_back_those_of_another)
{
    struct world world, *w = &world;
    char id[80], name[40];

    world_open(w, _i);
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "many%02d", i);
        add_schedule(w, name, i);
    }
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "few%d", i);
        struct rv_schedule_row row = new_schedule(id, name, 100 + i);
        row.tenant = "x";
        OK(rv_store_add_schedule(w->s, &row, &w->err));
    }
    DUE(200, 5, "many00 few0 many01 few1 many02");
    world_close(w);
}
END_TEST

START_TEST(a_scope_sees_its_own)
{
    static const struct rv_store_scope x = {"x", NULL}, v = {NULL, "v"};
    struct world world, *w = &world;
    struct seen seen = SEEN_INIT;
    struct rv_schedule_row row;
    char id[80];

    world_open(w, _i);
    add_schedule(w, "late", 90);
    add_schedule(w, "soon", 60);
    row = new_schedule(id, "theirs", 30);
    row.tenant = "x";
    OK(rv_store_add_schedule(w->s, &row, &w->err));
    OK(rv_store_list_schedules(w->s, &operator_scope, see_schedule, &seen, &w->err));
    SEEN(&seen, "soon late");
    OK(rv_store_list_schedules(w->s, &x, see_schedule, &seen, &w->err));
    SEEN(&seen, "theirs");
    OK(rv_store_list_schedules(w->s, &v, see_schedule, &seen, &w->err));
    SEEN(&seen, "");
    const char *const words[] = {"soon", "sched_soon", "nothing"};
    for (size_t i = 0; i < RV_COUNT(words); i++) { /* the same words, whether it is there or not */
        rv_buf text = RV_BUF_INIT(100);
        rv_buf_printf(&text, "there is no schedule \"%s\"", words[i]);
        SAYS(RV_E_NOT_FOUND, rv_buf_cstr(&text), rv_store_get_schedule(w->s, &x, words[i], &row, &w->err));
        SAYS(RV_E_NOT_FOUND, rv_buf_cstr(&text), rv_store_get_schedule(w->s, &v, words[i], &row, &w->err));
        SAYS(RV_E_NOT_FOUND, rv_buf_cstr(&text), rv_store_delete_schedule(w->s, &x, words[i], &w->err));
        SAYS(RV_E_NOT_FOUND, rv_buf_cstr(&text), rv_store_delete_schedule(w->s, &v, words[i], &w->err));
        SAYS(RV_E_NOT_FOUND, rv_buf_cstr(&text),
             rv_store_list_firings(w->s, &x, &(const struct rv_firing_filter){.word = words[i], .limit = 0}, NULL, NULL,
                                   &w->err));
        rv_buf_fini(&text);
    }
    rv_buf_fini(&seen.text);
    world_close(w);
}
END_TEST

START_TEST(a_deleted_schedule_leaves_what_it_queued)
{
    struct world world, *w = &world;

    world_open(w, _i);
    add_schedule(w, "a", 60);
    ck_assert_int_eq(fire(w, w->s, "a", 60, 60, 120), 1);
    OK(rv_store_delete_schedule(w->s, &operator_scope, "a", &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_delete_schedule(w->s, &operator_scope, "a", &w->err));
    TASK("a@60", "pending 0 0/3");
    ck_assert_int_eq(fire(w, w->s, "a", 120, 120, 180), 0);
    add_schedule(w, "a", 60); /* another one, which has no firings */
    FIRINGS("a", 0, "");
    world_close(w);
}
END_TEST

START_TEST(old_firings_and_ended_schedules_go)
{
    struct world world, *w = &world;
    struct seen seen = SEEN_INIT;
    int64_t n = -1;

    world_open(w, _i);
    add_schedule(w, "a", 1);
    for (int i = 1; i <= RV_SCHEDULE_KEPT_FIRINGS + 5; i++)
        ck_assert_int_eq(fire(w, w->s, "a", i, i, i + 1), 1);
    FIRINGS("a", 2, "105=a@105 104=a@104");
    OK(rv_store_list_schedules(w->s, &operator_scope, see_schedule, &seen, &w->err));
    SEEN(&seen, "a");
    add_schedule(w, "b", 1);
    ck_assert_int_eq(fire(w, w->s, "b", 1, 1, 0), 1);
    OK(rv_store_prune_schedules(w->s, AT(1), &n, &w->err));
    ck_assert_int_eq(n, 0);
    OK(rv_store_prune_schedules(w->s, AT(2), &n, &w->err));
    ck_assert_int_eq(n, 1);
    OK(rv_store_list_schedules(w->s, &operator_scope, see_schedule, &seen, &w->err));
    SEEN(&seen, "a");
    rv_buf_fini(&seen.text);
    world_close(w);
}
END_TEST

static int count_firing(void *self, const struct rv_firing *f, rv_err **err)
{
    (void)err;
    ck_assert_ptr_nonnull(f->made);
    ++*(int *)self;
    return 0;
}

START_TEST(a_hundred_firings_are_kept)
{
    struct world world, *w = &world;
    int n = 0;

    world_open(w, _i);
    add_schedule(w, "a", 1);
    for (int i = 1; i <= RV_SCHEDULE_KEPT_FIRINGS + 5; i++)
        ck_assert_int_eq(fire(w, w->s, "a", i, i, i + 1), 1);
    OK(rv_store_list_firings(w->s, &operator_scope, &(const struct rv_firing_filter){.word = "a", .limit = 0},
                             count_firing, &n, &w->err));
    ck_assert_int_eq(n, RV_SCHEDULE_KEPT_FIRINGS);
    world_close(w);
}
END_TEST

START_TEST(a_bundle_stays_as_long_as_its_schedule)
{
    struct world world, *w = &world;
    char id[80];
    struct rv_schedule_row row = new_schedule(id, "a", 60), got;
    rv_buf out = RV_BUF_INIT(100);

    world_open(w, _i);
    row.bundle = w->bundle;
    row.pipeline = "p";
    OK(rv_store_add_schedule(w->s, &row, &w->err));
    OK(rv_store_get_schedule(w->s, &operator_scope, "a", &got, &w->err));
    ck_assert_str_eq(got.bundle, w->bundle);
    ck_assert_str_eq(got.pipeline, "p");
    rv_schedule_row_fini(&got);
    OK(rv_store_sweep(w->s, AT(INT32_MAX), 0, NULL, &w->err));
    OK(rv_store_get_blob(w->s, w->bundle, &out, &w->err));
    OK(rv_store_delete_schedule(w->s, &operator_scope, "a", &w->err));
    OK(rv_store_sweep(w->s, AT(INT32_MAX), 0, NULL, &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_get_blob(w->s, w->bundle, &out, &w->err));
    rv_buf_fini(&out);
    world_close(w);
}
END_TEST

Suite *schedules_suite(void)
{
    Suite *suite = suite_create("schedules");
    TCase *tc = tcase_create("schedules");

    ADD(tc, a_new_schedule_has_what_it_was_given);
    ADD(tc, a_name_is_taken_until_its_schedule_has_ended);
    ADD(tc, what_cannot_be_a_schedule_is_refused);
    ADD(tc, a_firing_queues_its_task_and_moves_on);
    ADD(tc, who_comes_late_changes_nothing);
    ADD(tc, what_came_too_late_is_noted_and_not_queued);
    ADD(tc, a_firing_that_fails_changes_nothing);
    ADD(tc, one_that_cannot_be_fired_lets_others_pass);
    ADD(tc, a_change_keeps_the_firings);
    ADD(tc, many_schedules_of_one_tenant_do_not_keep_back_those_of_another);
    ADD(tc, a_scope_sees_its_own);
    ADD(tc, a_deleted_schedule_leaves_what_it_queued);
    ADD(tc, old_firings_and_ended_schedules_go);
    ADD(tc, a_hundred_firings_are_kept);
    ADD(tc, a_bundle_stays_as_long_as_its_schedule);
    suite_add_tcase(suite, tc);
    return suite;
}
