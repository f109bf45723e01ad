/* Journals: records appended in order by whoever holds the fence, and read back. */
#include "tests/contract/store/world.h"

START_TEST(records_are_read_in_order_and_in_part)
{
    static const struct {
        int64_t from, upto;
        const char *want;
    } parts[] = {
        {1, 0, "1:one 2:b2 3:b3 4:b4"},
        {2, 3, "2:b2 3:b3"},
        {0, 1, "1:one"},
        {-5, 2, "1:one 2:b2"},
        {4, 4, "4:b4"},
        {4, 99, "4:b4"},
        {5, 0, ""},
        {3, 2, ""},
        {INT64_MAX, 0, ""},
        {1, INT64_MAX, "1:one 2:b2 3:b3 4:b4"},
    };
    struct world world, *w = &world;
    struct seen seen = SEEN_INIT;

    world_open(w, _i);
    make_run(w, "r1");
    OK(append(w, "r1", 1, 2, "b2", NULL));
    OK(append(w, "r1", 1, 3, "b3", NULL));
    OK(append(w, "r1", 1, 4, "b4", NULL));
    for (size_t i = 0; i < RV_COUNT(parts); i++) {
        OK(rv_store_read(w->s, &operator_scope, &(struct rv_record_range){"r1", parts[i].from, parts[i].upto},
                         see_record, &seen, &w->err));
        must_see(&seen, parts[i].want, (int)i);
    }
    seen.stop_at = 2;
    seen.code = 7;
    ck_assert_int_eq(rv_store_read(w->s, &operator_scope, &(struct rv_record_range){.run = "r1", .from = 1}, see_record,
                                   &seen, &w->err),
                     7);
    SEEN(&seen, "1:one 2:b2");
    world_close(w);
}
END_TEST

START_TEST(an_append_moves_the_run_on)
{
    struct world world, *w = &world;
    struct rv_record records[3] = {
        {.seq = 2, .kind = 1, .body = RV_STR_LIT("x")}, {.seq = 3, .kind = 2}, {.seq = 4, .kind = 3}};
    struct rv_store_append a;
    struct rv_run_row row;

    world_open(w, _i);
    make_run(w, "r1");
    a = world_append("r1", 1, &records[0], 2, "x");
    a.n_records = 3;
    a.status = RV_RUN_INTERRUPTED;
    OK(rv_store_append(w->s, &a, &w->err));
    RECORDS("r1", "1:one 2:x 3: 4:");
    OK(rv_store_get_run(w->s, &operator_scope, "r1", &row, &w->err));
    ck_assert_int_eq(row.n_records, 4);
    ck_assert_int_eq(row.status, RV_RUN_INTERRUPTED);
    ck_assert_str_eq(row.stage, "b");
    ck_assert_int_eq(row.created_us, T0);
    ck_assert_int_eq(row.updated_us, T0 + 2);
    ck_assert_str_eq(row.owner, "A");
    rv_run_row_fini(&row);
    world_close(w);
}
END_TEST

START_TEST(an_append_without_records_changes_the_row_alone)
{
    struct world world, *w = &world;
    struct rv_record r;
    struct rv_store_append a = world_append("r1", 1, &r, 2, "");
    struct rv_run_row row;

    world_open(w, _i);
    make_run(w, "r1");
    a.records = NULL;
    a.n_records = 0;
    a.stage = "";
    a.release = true;
    OK(rv_store_append(w->s, &a, &w->err));
    OK(rv_store_get_run(w->s, &operator_scope, "r1", &row, &w->err));
    ck_assert_int_eq(row.n_records, 1);
    ck_assert_str_eq(row.stage, "");
    ck_assert_ptr_null(row.owner);
    ck_assert_int_eq(row.lease_until_us, 0);
    ck_assert_int_eq(row.fence, 1);
    rv_run_row_fini(&row);
    world_close(w);
}
END_TEST

START_TEST(a_gap_or_a_repetition_is_refused)
{
    struct world world, *w = &world;
    struct rv_record records[2];
    struct rv_store_append a;

    world_open(w, _i);
    make_run(w, "r1");
    SAYS(RV_E_STATE, "1 records", append(w, "r1", 1, 3, "x", NULL));
    SAYS(RV_E_STATE, "not 1", append(w, "r1", 1, 1, "x", NULL));
    FAILS(RV_E_INVALID, append(w, "r1", 1, 0, "x", NULL));
    a = world_append("r1", 1, &records[1], 4, "x");
    a = world_append("r1", 1, &records[0], 2, "x");
    a.n_records = 2;
    FAILS(RV_E_INVALID, rv_store_append(w->s, &a, &w->err));
    FAILS(RV_E_NOT_FOUND, append(w, "r2", 1, 1, "x", NULL));
    RECORDS("r1", "1:one");
    OK(append(w, "r1", 1, 2, "x", NULL));
    world_close(w);
}
END_TEST

START_TEST(kinds_and_bytes_come_back_unchanged)
{
    static const char nul[] = "a\0b\xc3\xa9";
    struct world world, *w = &world;
    struct rv_record r;
    struct rv_store_append a = world_append("r1", 1, &r, 2, "");
    struct seen seen = SEEN_INIT;

    world_open(w, _i);
    make_run(w, "r1");
    r.kind = -12345;
    r.body = (rv_str){nul, sizeof nul - 1};
    r.value = RV_STR_LIT(""); /* an empty value is not none */
    OK(rv_store_append(w->s, &a, &w->err));
    OK(append(w, "r1", 1, 3, "", NULL));
    OK(append(w, "r1", 1, 4, "", "v"));
    OK(rv_store_read(w->s, &operator_scope, &(struct rv_record_range){.run = "r1", .from = 3}, see_record, &seen,
                     &w->err));
    SEEN(&seen, "3: 4:=v");
    OK(rv_store_read(w->s, &operator_scope, &(struct rv_record_range){"r1", 2, 2}, see_record, &seen, &w->err));
    ck_assert_uint_eq(seen.text.len, strlen("2:a="));
    rv_buf_fini(&seen.text);
    world_close(w);
}
END_TEST

static int is_the_same(void *self, const struct rv_record *r, rv_err **err)
{
    const struct rv_record *want = self;

    (void)err;
    ck_assert_int_eq(r->seq, want->seq);
    ck_assert_int_eq(r->kind, want->kind);
    ck_assert(rv_str_eq(r->body, want->body));
    ck_assert(rv_str_eq(r->value, want->value));
    ck_assert_int_eq(r->value.ptr != NULL, want->value.ptr != NULL);
    return 0;
}

START_TEST(bodies_and_values_of_any_size_come_back)
{
    static const size_t sizes[] = {0,    1,     RV_STORE_INLINE_MAX - 1, RV_STORE_INLINE_MAX, RV_STORE_INLINE_MAX + 1,
                                   5000, 70000, (size_t)5 << 20};
    struct world world, *w = &world;
    char *bytes = malloc((size_t)5 << 20);

    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < (size_t)5 << 20; i++)
        bytes[i] = i % 97 == 0 ? 0 : (char)(i * 7 % 127);
    world_open(w, _i);
    make_run(w, "r1");
    for (size_t i = 0; i < RV_COUNT(sizes); i++) {
        struct rv_record r;
        struct rv_store_append a = world_append("r1", 1, &r, (int64_t)i + 2, "");
        r.body = (rv_str){bytes, sizes[i]};
        r.value = (rv_str){bytes, sizes[i]};
        OK(rv_store_append(w->s, &a, &w->err));
        OK(rv_store_read(w->s, &operator_scope, &(struct rv_record_range){"r1", r.seq, r.seq}, is_the_same, &r,
                         &w->err));
    }
    free(bytes);
    world_close(w);
}
END_TEST

START_TEST(what_was_written_is_there_after_a_restart)
{
    struct world world, *w = &world;
    struct rv_run_row row;

    world_open(w, _i);
    if (w->impl->is_shared) {
        make_run(w, "r1");
        OK(append(w, "r1", 1, 2, "two", "value"));
        OK(rv_store_put_snapshot(w->s, "r1", 1, 2, RV_STR_LIT("snap"), &w->err));
        rv_store_close(w->s);
        w->s = world_other(w);
        RECORDS("r1", "1:one 2:two=value");
        OK(rv_store_get_run(w->s, &operator_scope, "r1", &row, &w->err));
        ck_assert_str_eq(row.owner, "A");
        rv_run_row_fini(&row);
        OK(append(w, "r1", 1, 3, "three", NULL));
    }
    world_close(w);
}
END_TEST

START_TEST(many_runs_grow_side_by_side)
{
    struct world world, *w = &world;
    char id[16], want[128];

    world_open(w, _i);
    for (int i = 0; i < 50; i++) {
        snprintf(id, sizeof id, "r%d", i);
        make_run(w, id);
    }
    for (int seq = 2; seq < 6; seq++) {
        for (int i = 49; i >= 0; i--) {
            snprintf(id, sizeof id, "r%d", i);
            OK(append(w, id, 1, seq, id, NULL));
        }
    }
    for (int i = 0; i < 50; i++) {
        snprintf(id, sizeof id, "r%d", i);
        snprintf(want, sizeof want, "1:one 2:%s 3:%s 4:%s 5:%s", id, id, id, id);
        RECORDS(id, want);
    }
    world_close(w);
}
END_TEST

/* A writer that says where its last write left the run: what it says is believed only while it is so. */
START_TEST(the_next_append_goes_on_from_the_last)
{
    const struct rv_store_claim taken = {"B", NULL, T0 + 100, T0 + 200};
    struct world world, *w = &world;
    struct rv_store_last last = {0}, next = {0};
    struct rv_store_new_run run;
    struct rv_store_claimed claimed;
    struct rv_store_append a;
    struct rv_record r;
    struct rv_run_row row;

    world_open(w, _i);
    run = world_run(w, "r1");
    run.next = &last;
    OK(rv_store_create_run(w->s, &run, &w->err));
    ck_assert_int_ne(last.key, 0);
    ck_assert_str_eq(last.tenant, RV_STORE_TENANT);
    a = world_append("r1", 1, &r, 2, "x");
    a.last = &last;
    a.next = &next;
    OK(rv_store_append(w->s, &a, &w->err));
    ck_assert_int_eq(next.key, last.key);
    ck_assert_int_eq(next.status, RV_RUN_RUNNING);
    ck_assert(!next.asks);
    a.last = &next;
    SAYS(RV_E_STATE, "2 records", rv_store_append(w->s, &a, &w->err));
    OK(append(w, "r1", 1, 3, "without", NULL));
    r.seq = 4;
    a.status = RV_RUN_COMPLETED;
    a.release = a.set_pending = true;
    OK(rv_store_append(w->s, &a, &w->err));
    RECORDS("r1", "1:one 2:x 3:without 4:x");
    OK(rv_store_get_run(w->s, &operator_scope, "r1", &row, &w->err));
    ck_assert_int_eq(row.status, RV_RUN_COMPLETED);
    ck_assert_int_eq(row.n_records, 4);
    ck_assert_ptr_null(row.owner);
    rv_run_row_fini(&row);
    OK(rv_store_claim_run(w->s, &operator_scope, "r1", &taken, &claimed, &w->err));
    ck_assert_int_eq(claimed.fence, 2);
    ck_assert_int_eq(claimed.n_records, 4);
    ck_assert_int_eq(claimed.status, RV_RUN_COMPLETED);
    r.seq = 5;
    SAYS(RV_E_STATE, "\"B\"", rv_store_append(w->s, &a, &w->err));
    OK(rv_store_delete_run(w->s, &operator_scope, "r1", NULL, T0 + 300, &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_append(w->s, &a, &w->err));
    world_close(w);
}
END_TEST

/* With questions the run's row is looked for. */
START_TEST(what_a_run_asks_is_counted_after_a_last_append)
{
    const struct rv_pending question = {
        .run = "r1", .id = "q", .kind = "clarification", .stage = "a", .created_us = T0};
    struct world world, *w = &world;
    struct rv_store_last last = {0};
    struct rv_store_new_run run;
    struct rv_store_append a;
    struct rv_record r;
    struct rv_run_row row;

    world_open(w, _i);
    run = world_run(w, "r1");
    run.next = &last;
    OK(rv_store_create_run(w->s, &run, &w->err));
    a = world_append("r1", 1, &r, 2, "asks");
    a.last = a.next = &last;
    a.set_pending = true;
    a.pending = &question;
    a.n_pending = 1;
    a.status = RV_RUN_INTERRUPTED;
    OK(rv_store_append(w->s, &a, &w->err));
    ck_assert(last.asks);
    r.seq = 3;
    a.n_pending = 0;
    a.status = RV_RUN_RUNNING;
    a.settled.is_set = true;
    a.settled.status = RV_INTERRUPT_STATUS_RESOLVED;
    OK(rv_store_append(w->s, &a, &w->err));
    OK(rv_store_get_run(w->s, &operator_scope, "r1", &row, &w->err));
    ck_assert_int_eq(row.n_pending, 0);
    rv_run_row_fini(&row);
    for (r.seq = 4; r.seq < 6; r.seq++)
        OK(rv_store_append(w->s, &a, &w->err));
    ck_assert(!last.asks);
    world_close(w);
}
END_TEST

Suite *append_suite(void)
{
    Suite *suite = suite_create("append");
    TCase *tc = tcase_create("append");

    ADD(tc, records_are_read_in_order_and_in_part);
    ADD(tc, an_append_moves_the_run_on);
    ADD(tc, an_append_without_records_changes_the_row_alone);
    ADD(tc, a_gap_or_a_repetition_is_refused);
    ADD(tc, kinds_and_bytes_come_back_unchanged);
    ADD(tc, bodies_and_values_of_any_size_come_back);
    ADD(tc, what_was_written_is_there_after_a_restart);
    ADD(tc, many_runs_grow_side_by_side);
    ADD(tc, the_next_append_goes_on_from_the_last);
    ADD(tc, what_a_run_asks_is_counted_after_a_last_append);
    suite_add_tcase(suite, tc);
    return suite;
}
