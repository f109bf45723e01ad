/* Values that come back as they were given, and walks that take a page at a time. */
#include "coreengine/store/store_internal.h"
#include "tests/integration/postgres/world.h"

static struct sql_store *open_sql(struct world *w)
{
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    struct sql_store *st = NULL;

    OK(postgres_open(w->url, w->url, &opts, &st, &w->err));
    return st;
}

static rv_sql_stmt *prepare(struct sql_store *st, const char *text)
{
    rv_buf sql = RV_BUF_INIT(1000);

    rv_buf_puts(&sql, text);
    rv_sql_stmt *stmt = sql_prepare(st, &sql);
    rv_buf_fini(&sql);
    ck_assert_ptr_nonnull(stmt);
    return stmt;
}

START_TEST(numbers_of_all_sizes_come_back)
{
    static const int64_t numbers[] = {0, 1, -1, INT32_MAX, INT32_MIN, (int64_t)INT32_MAX + 1, INT64_MAX, INT64_MIN};
    struct world world, *w = &world;

    world_open(w, NULL);
    struct sql_store *st = open_sql(w);
    for (size_t i = 0; i < RV_COUNT(numbers); i++) {
        rv_sql_stmt *stmt = prepare(st, "SELECT ?1, ?1 - 0, CAST(1 AS BIGINT), ?2");
        sql_int(stmt, 1, numbers[i]);
        store_sql_text(stmt, 2, NULL);
        ck_assert_int_eq(sql_step(stmt, "ask", &w->err), 1);
        ck_assert_int_eq(sql_int_at(stmt, 0), numbers[i]);
        ck_assert_int_eq(sql_int_at(stmt, 1), numbers[i]);
        ck_assert_int_eq(sql_int_at(stmt, 2), 1);
        ck_assert(sql_is_null(stmt, 3));
        ck_assert_int_eq(sql_step(stmt, "ask", &w->err), 0);
        sql_finish(stmt);
    }
    sql_close(st);
    world_close(w);
}
END_TEST

START_TEST(texts_and_bytes_of_all_sizes_come_back)
{
    const size_t sizes[] = {0, 1, 100, 1 << 20, (64 << 20) / rv_kit_stride(8)};
    struct world world, *w = &world;
    char *bytes = malloc(sizes[RV_COUNT(sizes) - 1]);
    bool lacked = false;

    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < sizes[RV_COUNT(sizes) - 1]; i++)
        bytes[i] = (char)(i * 31 + (i >> 12)); /* NULs, and what is not UTF-8 */
    world_open(w, NULL);
    struct sql_store *st = open_sql(w);
    for (size_t i = 0; i < RV_COUNT(sizes); i++) {
        rv_sql_stmt *stmt = prepare(st, "SELECT ?1, ?2, ?3");
        sql_str(stmt, 1, (rv_str){bytes, sizes[i]});
        sql_blob(stmt, 2, bytes, sizes[i]);
        store_sql_text(stmt, 3, "words, \xc3\xa4 and \xf0\x9f\x99\x82");
        ck_assert_int_eq(sql_step(stmt, "ask", &w->err), 1);
        for (int k = 0; k < 2; k++) {
            rv_str got = sql_str_at(stmt, k);
            ck_assert_ptr_nonnull(got.ptr);
            ck_assert_uint_eq(got.len, sizes[i]);
            ck_assert(memcmp(got.ptr, bytes, got.len) == 0);
        }
        ck_assert_str_eq(sql_text_at(stmt, 2, &lacked), "words, \xc3\xa4 and \xf0\x9f\x99\x82");
        sql_finish(stmt);
    }
    sql_close(st);
    free(bytes);
    world_close(w);
}
END_TEST

/* Rows of many sizes, so that pages of all kinds are asked for; a walk that is left early leaves nothing behind. */
START_TEST(a_walk_over_many_rows_gives_each_once)
{
    struct world world, *w = &world;

    world_open(w, NULL);
    struct sql_store *st = open_sql(w);
    for (int64_t n = 0; n < 1200; n = n * 3 + 1) {
        for (int stops = 0; stops < 2; stops++) {
            rv_sql_stmt *stmt = prepare(st, "SELECT i, repeat('x', CAST(i % 7 * ?2 AS INT)) FROM"
                                            " generate_series(1, ?1) i ORDER BY 1");
            int64_t seen = 0;
            sql_int(stmt, 1, n);
            sql_int(stmt, 2, n % 2 ? 10 : 30000);
            while (sql_step(stmt, "walk", &w->err) == 1 && !(stops && seen == n / 2)) {
                ck_assert_int_eq(sql_int_at(stmt, 0), ++seen);
                ck_assert_uint_eq(sql_str_at(stmt, 1).len, (size_t)(seen % 7 * (n % 2 ? 10 : 30000)));
            }
            ck_assert_int_eq(seen, stops ? n / 2 : n);
            for (int again = 0; again < 2 && !stops; again++) /* behind the end is the end */
                ck_assert_int_eq(sql_step(stmt, "walk", &w->err), 0);
            sql_finish(stmt);
        }
    }
    sql_close(st);
    world_close(w);
}
END_TEST

/* A prefix of an id ends at any character. */
static int count_run(void *self, const struct rv_run_row *row, rv_err **err)
{
    (void)row;
    (void)err;
    ++*(int *)self;
    return 0;
}

START_TEST(runs_are_found_by_the_beginning_of_their_id_in_any_script)
{
    static const char *const ids[] = {
        "a", "a\xc3\xbf", "a\xc3\xbf-", "a\xc4\x80", "\xed\x9f\xbf-", "\xee\x80\x80", "\xf4\x8f\xbf\xbf-", "b"};
    static const struct {
        const char *prefix;
        int n;
    } cases[] = {{"a", 4}, {"a\xc3\xbf", 2}, {"\xed\x9f\xbf", 1}, {"\xf4\x8f\xbf\xbf", 1}, {"", 8}, {"c", 0}};
    struct world world, *w = &world;

    world_open(w, NULL);
    for (size_t i = 0; i < RV_COUNT(ids); i++)
        OK(world_create(w, w->s, ids[i], &w->err));
    for (size_t i = 0; i < RV_COUNT(cases); i++) {
        const struct rv_run_filter filter = {.id_prefix = cases[i].prefix};
        int n = 0;
        OK(rv_store_list_runs(w->s, &operator_scope, &filter, count_run, &n, &w->err));
        ck_assert_msg(n == cases[i].n, "\"%s\": %d runs, not %d", cases[i].prefix, n, cases[i].n);
    }
    world_close(w);
}
END_TEST

Suite *values_suite(void)
{
    Suite *suite = suite_create("values");
    TCase *tc = tcase_create("values");

    tcase_add_test(tc, numbers_of_all_sizes_come_back);
    tcase_add_test(tc, texts_and_bytes_of_all_sizes_come_back);
    tcase_add_test(tc, a_walk_over_many_rows_gives_each_once);
    tcase_add_test(tc, runs_are_found_by_the_beginning_of_their_id_in_any_script);
    suite_add_tcase(suite, tc);
    return suite;
}
