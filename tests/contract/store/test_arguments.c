/* What is refused before anything looks at the rows. */
#include <stddef.h>

#include "tests/contract/store/world.h"

static char too_long[4096]; /* x's; the tests end it where they want */

static void fill(size_t len)
{
    memset(too_long, 'x', sizeof too_long);
    too_long[len] = 0;
}

static const struct {
    size_t field; /* of struct rv_store_new_run: a text */
    const char *text;
    int rc;
} bad_runs[] = {
#define ROW(name, text, rc)                                                                                            \
    {                                                                                                                  \
        offsetof(struct rv_store_new_run, name), (text), (rc)                                                          \
    }
    ROW(id, NULL, RV_E_INVALID),
    ROW(id, "", RV_E_INVALID),
    ROW(id, "\xc0\x80", RV_E_INVALID),
    ROW(id, too_long, RV_E_LIMIT),
    ROW(tenant, "", RV_E_INVALID),
    ROW(tenant, "\xff", RV_E_INVALID),
    ROW(tenant, too_long, RV_E_LIMIT),
    ROW(user, NULL, RV_E_INVALID),
    ROW(user, "\xff", RV_E_INVALID),
    ROW(user, too_long, RV_E_LIMIT),
    ROW(session, NULL, RV_E_INVALID),
    ROW(session, "\xff", RV_E_INVALID),
    ROW(session, too_long, RV_E_LIMIT),
    ROW(pipeline, NULL, RV_E_INVALID),
    ROW(bundle, NULL, RV_E_INVALID),
    ROW(bundle, "", RV_E_INVALID),
    ROW(bundle, "abc", RV_E_INVALID),
    ROW(bundle, too_long, RV_E_INVALID),
    ROW(parent, "", RV_E_INVALID),
    ROW(parent, too_long, RV_E_LIMIT),
    ROW(stage, NULL, RV_E_INVALID),
    ROW(stage, "\xed\xa0\x80", RV_E_INVALID),
    ROW(owner, "", RV_E_INVALID),
    ROW(owner, too_long, RV_E_LIMIT),
    ROW(id, "r\x1b[31m", RV_E_INVALID),
    ROW(id,
        "r\xc2\x9b"
        "31m",
        RV_E_INVALID),
    ROW(tenant, "t\x7f", RV_E_INVALID),
    ROW(user, "u\xc2\x80", RV_E_INVALID),
    ROW(session, "s\xc2\x9f", RV_E_INVALID),
    ROW(session, "s\n", RV_E_INVALID),
#undef ROW
};

START_TEST(a_run_with_a_bad_text_is_refused)
{
    struct world world, *w = &world;
    struct rv_store_stats stats;

    world_open(w, _i);
    fill(2000);
    for (size_t i = 0; i < RV_COUNT(bad_runs); i++) {
        struct rv_store_new_run run = world_run(w, "r1");
        memcpy((char *)&run + bad_runs[i].field, &bad_runs[i].text, sizeof bad_runs[i].text);
        ck_assert_msg(rv_store_create_run(w->s, &run, &w->err) == bad_runs[i].rc, "row %zu: %s", i,
                      rv_err_text(w->err));
        rv_err_free(w->err);
        w->err = NULL;
    }
    OK(rv_store_read_stats(w->s, &stats, &w->err));
    ck_assert_int_eq(stats.runs, 0);
    world_close(w);
}
END_TEST

START_TEST(a_run_with_bad_numbers_or_records_is_refused)
{
    struct world world, *w = &world;
    struct rv_record r = {.seq = 2};
    struct rv_store_new_run run;

    world_open(w, _i);
    FAILS(RV_E_INVALID, rv_store_create_run(w->s, NULL, &w->err));
    run = world_run(w, "r1");
    run.status = RV_N_RUN;
    FAILS(RV_E_INVALID, rv_store_create_run(w->s, &run, &w->err));
    run = world_run(w, "r1");
    run.now_us = -1;
    FAILS(RV_E_INVALID, rv_store_create_run(w->s, &run, &w->err));
    run = world_run(w, "r1");
    run.parent_seq = -1;
    FAILS(RV_E_INVALID, rv_store_create_run(w->s, &run, &w->err));
    run = world_run(w, "r1");
    run.records = &r;
    FAILS(RV_E_INVALID, rv_store_create_run(w->s, &run, &w->err));
    r = (struct rv_record){.seq = 1, .body = RV_STR_LIT("\xff")};
    SAYS(RV_E_INVALID, "not UTF-8 at byte 0", rv_store_create_run(w->s, &run, &w->err));
    r = (struct rv_record){.seq = 1, .value = RV_STR_LIT("ab\x80")};
    SAYS(RV_E_INVALID, "not UTF-8 at byte 2", rv_store_create_run(w->s, &run, &w->err));
    r = (struct rv_record){.seq = 1, .value = {NULL, 3}};
    FAILS(RV_E_INVALID, rv_store_create_run(w->s, &run, &w->err));
    run.records = NULL;
    FAILS(RV_E_INVALID, rv_store_create_run(w->s, &run, &w->err));
    world_close(w);
}
END_TEST

START_TEST(ids_are_capped_at_their_limit)
{
    struct world world, *w = &world;
    struct rv_store_new_run run;
    struct rv_run_row row;

    world_open(w, _i);
    fill(RV_STORE_MAX_ID + 1);
    run = world_run(w, too_long);
    SAYS(RV_E_LIMIT, "longer than 200 bytes", rv_store_create_run(w->s, &run, &w->err));
    fill(RV_STORE_MAX_ID);
    run = world_run(w, too_long);
    run.tenant = run.user = run.owner = run.parent = too_long;
    OK(rv_store_create_run(w->s, &run, &w->err));
    OK(rv_store_get_run(w->s, &(struct rv_store_scope){too_long, too_long}, too_long, &row, &w->err));
    ck_assert_str_eq(row.owner, too_long);
    rv_run_row_fini(&row);
    world_close(w);
}
END_TEST

START_TEST(ids_are_data_and_never_a_query)
{
    static const char evil[] = "x'; DROP TABLE runs; --\"%_";
    struct world world, *w = &world;
    struct seen seen = SEEN_INIT;

    world_open(w, _i);
    make_run(w, evil);
    OK(append(w, evil, 1, 2, evil, NULL));
    OK(rv_store_list_runs(w->s, &operator_scope, &(struct rv_run_filter){.id_prefix = "x';", .pipeline = "p"}, see_run,
                          &seen, &w->err));
    SEEN(&seen, evil);
    world_close(w);
}
END_TEST

START_TEST(an_append_with_bad_parts_is_refused)
{
    struct world world, *w = &world;
    struct rv_pending p = {.id = "i", .kind = "k", .stage = "a"};
    struct rv_record r;
    struct rv_store_append a;
    char *large = malloc(RV_STORE_MAX_BODY + 1);

    world_open(w, _i);
    make_run(w, "r1");
    ck_assert_ptr_nonnull(large);
    memset(large, 'x', RV_STORE_MAX_BODY + 1);
    FAILS(RV_E_INVALID, rv_store_append(w->s, NULL, &w->err));
    a = world_append("", 1, &r, 2, "x");
    FAILS(RV_E_INVALID, rv_store_append(w->s, &a, &w->err));
    a = world_append("r1", 1, &r, 2, "x");
    r.body = (rv_str){large, RV_STORE_MAX_BODY + 1};
    FAILS(RV_E_LIMIT, rv_store_append(w->s, &a, &w->err));
    r.body = (rv_str){large, 1};
    r.value = (rv_str){large, RV_STORE_MAX_VALUE + 1}; /* looked at before it is read */
    FAILS(RV_E_LIMIT, rv_store_append(w->s, &a, &w->err));
    r.value = (rv_str){NULL, 0};
    a.stage = NULL;
    FAILS(RV_E_INVALID, rv_store_append(w->s, &a, &w->err));
    a.stage = "a";
    a.status = (enum rv_run_status) - 1;
    FAILS(RV_E_INVALID, rv_store_append(w->s, &a, &w->err));
    a.status = RV_RUN_RUNNING;
    a.now_us = -1;
    FAILS(RV_E_INVALID, rv_store_append(w->s, &a, &w->err));
    a.now_us = T0;
    a.records = NULL;
    FAILS(RV_E_INVALID, rv_store_append(w->s, &a, &w->err));
    a.records = &r;
    a.set_pending = true;
    a.n_pending = 1;
    FAILS(RV_E_INVALID, rv_store_append(w->s, &a, &w->err));
    a.pending = &p;
    p.id = "";
    FAILS(RV_E_INVALID, rv_store_append(w->s, &a, &w->err));
    p.id = "i";
    p.kind = NULL;
    FAILS(RV_E_INVALID, rv_store_append(w->s, &a, &w->err));
    p.kind = "k";
    p.text = RV_STR_LIT("\xfe");
    FAILS(RV_E_INVALID, rv_store_append(w->s, &a, &w->err));
    p.text = (rv_str){NULL, 0};
    p.body = (rv_str){large, RV_STORE_MAX_QUESTION + 1};
    FAILS(RV_E_LIMIT, rv_store_append(w->s, &a, &w->err));
    p.body = (rv_str){NULL, 0};
    p.expires_us = -1;
    FAILS(RV_E_INVALID, rv_store_append(w->s, &a, &w->err));
    p.expires_us = 0;
    a.n_pending = (size_t)1 << 40;
    FAILS(RV_E_LIMIT, rv_store_append(w->s, &a, &w->err));
    a.n_pending = 1;
    a.n_records = (size_t)1 << 40;
    FAILS(RV_E_LIMIT, rv_store_append(w->s, &a, &w->err));
    a.n_records = 1;
    OK(rv_store_append(w->s, &a, &w->err));
    free(large);
    world_close(w);
}
END_TEST

START_TEST(other_calls_check_what_they_are_given)
{
    struct world world, *w = &world;
    struct seen seen = SEEN_INIT;
    struct rv_run_row row = {0};
    struct rv_store_claim claim = {"B", NULL, T0, T0};
    rv_buf out = RV_BUF_INIT(10);
    char hash[RV_HASH_MAX];
    int64_t n = 0;

    world_open(w, _i);
    make_run(w, "r1");
    FAILS(RV_E_INVALID, rv_store_get_run(w->s, NULL, "r1", &row, &w->err));
    FAILS(RV_E_INVALID, rv_store_get_run(w->s, &(struct rv_store_scope){"", NULL}, "r1", &row, &w->err));
    FAILS(RV_E_INVALID, rv_store_get_run(w->s, &operator_scope, NULL, &row, &w->err));
    FAILS(RV_E_INVALID, rv_store_read(w->s, &operator_scope, &(struct rv_record_range){.run = "", .from = 1},
                                      see_record, &seen, &w->err));
    FAILS(RV_E_INVALID,
          rv_store_read(w->s, &operator_scope, &(struct rv_record_range){"r1", 1, -1}, see_record, &seen, &w->err));
    FAILS(RV_E_INVALID, rv_store_list_runs(w->s, NULL, NULL, see_run, &seen, &w->err));
    FAILS(RV_E_INVALID,
          rv_store_list_runs(w->s, &operator_scope, &(struct rv_run_filter){.limit = -1}, see_run, &seen, &w->err));
    FAILS(RV_E_INVALID, rv_store_list_runs(w->s, &operator_scope, &(struct rv_run_filter){.id_prefix = "\xff"}, see_run,
                                           &seen, &w->err));
    FAILS(RV_E_INVALID, rv_store_list_pending(w->s, &operator_scope, "", see_pending, &seen, &w->err));
    FAILS(RV_E_INVALID, rv_store_delete_run(w->s, &operator_scope, "", NULL, T0, &w->err));
    FAILS(RV_E_INVALID, rv_store_claim(w->s, &operator_scope, "r1", NULL, &n, &w->err));
    FAILS(RV_E_INVALID, rv_store_claim(w->s, &operator_scope, "r1", &claim, &n, &w->err));
    claim = (struct rv_store_claim){"", NULL, T0, T0 + 1};
    FAILS(RV_E_INVALID, rv_store_claim(w->s, &operator_scope, "r1", &claim, &n, &w->err));
    FAILS(RV_E_INVALID, rv_store_renew(w->s, "", T0, &w->err));
    FAILS(RV_E_INVALID, rv_store_release(w->s, NULL, 1, &w->err));
    FAILS(RV_E_INVALID, rv_store_request_cancel(w->s, &operator_scope, "\xff", T0, &w->err));
    FAILS(RV_E_INVALID, rv_store_list_cancels(w->s, NULL, see_id, &seen, &w->err));
    FAILS(RV_E_INVALID, rv_store_put_blob(w->s, (rv_str){NULL, 1}, hash, &w->err));
    FAILS(RV_E_LIMIT, rv_store_put_blob(w->s, (rv_str){"x", RV_STORE_MAX_VALUE + 1}, hash, &w->err));
    FAILS(RV_E_INVALID, rv_store_get_blob(w->s, NULL, &out, &w->err));
    FAILS(RV_E_INVALID, rv_store_get_blob(w->s, "0123", &out, &w->err));
    FAILS(RV_E_INVALID, rv_store_put_snapshot(w->s, "r1", 1, 0, RV_STR_LIT("x"), &w->err));
    FAILS(RV_E_INVALID, rv_store_put_snapshot(w->s, "r1", 1, 1, (rv_str){NULL, 1}, &w->err));
    FAILS(RV_E_LIMIT, rv_store_put_snapshot(w->s, "r1", 1, 1, (rv_str){"x", RV_STORE_MAX_VALUE + 1}, &w->err));
    FAILS(RV_E_INVALID, rv_store_get_snapshot(w->s, &operator_scope, "", &n, &out, &w->err));
    FAILS(RV_E_INVALID, rv_store_sweep(w->s, -1, 0, NULL, &w->err));
    FAILS(RV_E_INVALID, rv_store_sweep(w->s, T0, -1, NULL, &w->err));
    FAILS(RV_E_INVALID, rv_store_backup(w->s, "", &w->err));
    FAILS(RV_E_INVALID, rv_store_backup(w->s, NULL, &w->err));
    ck_assert_ptr_null(seen.text.ptr);
    world_close(w);
}
END_TEST

START_TEST(a_store_has_a_name_of_a_known_kind)
{
    static const char *const bad[] = {NULL, "", "sqlite:", "mysql://host/db", "http://x", "postgres://a:b@c@d/e"};
    struct world world, *w = &world;
    rv_store *s = NULL;

    world_open(w, _i);
    for (size_t i = 0; i < RV_COUNT(bad); i++)
        FAILS(RV_E_INVALID, rv_store_open(bad[i], NULL, &s, &w->err));
    FAILS(RV_E_INVALID, rv_store_open(w->url, &(struct rv_store_opts){.busy_ms = -1}, &s, &w->err));
    ck_assert_ptr_null(s);
    ck_assert_str_eq(rv_store_url(w->s), w->url);
    rv_store_close(NULL);
    world_close(w);
}
END_TEST

static void refuse_session_writes(struct world *w, rv_store *s)
{
    const struct rv_session_row fresh = {.id = "s1", .tenant = "default", .user = "u", .created_us = T0};
    const struct rv_session_change change = {.now_us = T0};
    const struct rv_turn turn = {.session = "s1"};
    const struct rv_schema_row schema = {.name = "n", .kind = "agent", .source = "person"};
    int64_t version = 0;

    FAILS(RV_E_DENIED, rv_store_ensure_session(s, &fresh, NULL, &w->err));
    FAILS(RV_E_DENIED, rv_store_change_session(s, &operator_scope, "s1", &change, &w->err));
    FAILS(RV_E_DENIED, rv_store_delete_session(s, &operator_scope, "s1", T0, &w->err));
    FAILS(RV_E_DENIED, rv_store_add_messages(s, &operator_scope, &turn, T0, &w->err));
    FAILS(RV_E_DENIED, rv_store_put_schema(s, &schema, RV_SCHEMA_PUT, T0, NULL, &w->err));
    FAILS(RV_E_DENIED, rv_store_delete_schema(s, &operator_scope, "agent", "n", T0, &w->err));
    OK(rv_store_read_schemas_version(s, &version, &w->err));
}

START_TEST(a_read_only_store_refuses_every_write)
{
    struct world world, *w = &world;
    rv_store *s = NULL;
    struct rv_record r;
    struct rv_store_append a = world_append("r1", 1, &r, 2, "x");
    struct rv_store_claim claim = {"B", NULL, T0 + 100, T0 + 200};
    struct rv_store_new_run run;
    struct rv_run_row row;
    char hash[RV_HASH_MAX];
    int64_t n;

    world_open(w, _i);
    make_run(w, "r1");
    OK(rv_store_open(w->url, &(struct rv_store_opts){.read_only = true}, &s, &w->err));
    run = world_run(w, "r2");
    FAILS(RV_E_DENIED, rv_store_create_run(s, &run, &w->err));
    FAILS(RV_E_DENIED, rv_store_append(s, &a, &w->err));
    FAILS(RV_E_DENIED, rv_store_begin(s, &w->err));
    FAILS(RV_E_DENIED, rv_store_delete_run(s, &operator_scope, "r1", NULL, T0 + 100, &w->err));
    FAILS(RV_E_DENIED, rv_store_claim(s, &operator_scope, "r1", &claim, &n, &w->err));
    FAILS(RV_E_DENIED, rv_store_renew(s, "A", T0, &w->err));
    FAILS(RV_E_DENIED, rv_store_release(s, "r1", 1, &w->err));
    FAILS(RV_E_DENIED, rv_store_request_cancel(s, &operator_scope, "r1", T0, &w->err));
    FAILS(RV_E_DENIED, rv_store_put_blob(s, RV_STR_LIT("x"), hash, &w->err));
    FAILS(RV_E_DENIED, rv_store_put_snapshot(s, "r1", 1, 1, RV_STR_LIT("x"), &w->err));
    FAILS(RV_E_DENIED, rv_store_sweep(s, T0, 0, NULL, &w->err));
    refuse_session_writes(w, s);
    OK(rv_store_check(s, &w->err));
    if (w->impl->is_shared) {
        OK(rv_store_get_run(s, &operator_scope, "r1", &row, &w->err));
        rv_run_row_fini(&row);
    }
    rv_store_close(s);
    world_close(w);
}
END_TEST

Suite *arguments_suite(void)
{
    Suite *suite = suite_create("arguments");
    TCase *tc = tcase_create("arguments");

    ADD(tc, a_run_with_a_bad_text_is_refused);
    ADD(tc, a_run_with_bad_numbers_or_records_is_refused);
    ADD(tc, ids_are_capped_at_their_limit);
    ADD(tc, ids_are_data_and_never_a_query);
    ADD(tc, an_append_with_bad_parts_is_refused);
    ADD(tc, other_calls_check_what_they_are_given);
    ADD(tc, a_store_has_a_name_of_a_known_kind);
    ADD(tc, a_read_only_store_refuses_every_write);
    suite_add_tcase(suite, tc);
    return suite;
}
