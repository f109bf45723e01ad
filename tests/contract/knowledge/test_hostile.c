/* Statements that want more than their scope sees. Each is asked of two stores that differ only in what the scope does
 * not see, and the answers have to be equal: then it was not read, counted, ordered by, or told by an error. */
#include "tests/contract/knowledge/people.h"
#include "tests/contract/store/behind.h"

struct attacked {
    struct world with, without;
    size_t n, step; /* statements met; each step-th is asked, another one of each store */
};

static void attack(struct attacked *a, const char *query)
{
    const struct rv_knowledge_opts opts = {.sql_ms = 150, .now_us = T0 + INT64_C(86400000000)};

    if (a->n++ % a->step != 0)
        return;
    char *with = ask(&a->with, &ada, query, &opts), *without = ask(&a->without, &ada, query, &opts);

    ck_assert_msg(strcmp(with, without) == 0, "%s: %s\nwith other rows: %s\nwithout: %s", a->with.impl->name, query,
                  with, without);
    ck_assert_uint_lt(strlen(with), RV_KNOWLEDGE_SQL_BYTES * 2);
    ck_assert_msg(!strstr(with, "names more than its tables"), "the gate lets through what the next wall refuses: %s",
                  query);
    free(with);
    free(without);
}

/* CODE, a tab, the statement. */
static void attack_coded(void *self, char *line)
{
    const char *statement = strchr(line, '\t');

    ck_assert_msg(statement, "%s", line);
    attack(self, statement + 1);
    if (strncmp(statement + 1, "SQL ", 4) != 0) {
        rv_buf query = RV_BUF_INIT(1 << 20);
        rv_buf_printf(&query, "SQL %s", statement + 1);
        attack(self, rv_buf_cstr(&query));
        rv_buf_fini(&query);
    }
}

static void attack_plain(void *self, char *line)
{
    attack(self, line + (line[0] == '~'));
}

/* All rows, as an operator of each tenant sees them. */
static char *everything(struct world *w)
{
    static const struct rv_store_scope tenants[] = {{NULL, NULL}, {"other", NULL}};
    rv_buf all = RV_BUF_INIT((size_t)16 << 20);

    for (size_t i = 0; i < RV_COUNT(tenants); i++)
        for (size_t k = 0; k < rv_n_kinds; k++) {
            char query[100];
            snprintf(query, sizeof query, "SELECT * FROM %s ORDER BY id, user_id", rv_kinds[k].name);
            char *rows = ask(w, &tenants[i], query, NULL);
            rv_buf_puts(&all, rows);
            free(rows);
        }
    return rv_buf_steal(&all, NULL);
}

/* With statistics a database reads a small table from end to end, and applies what it moved down there. */
static void know_sizes(struct world *w)
{
    free(world_sql(w, "ANALYZE entities; ANALYZE sessions; ANALYZE messages; ANALYZE schemas"));
}

/* Proves p8-data.23/7: No result of any mode has a row of another user, nor does one change an answer */
START_TEST(what_is_not_seen_changes_no_answer)
{
    struct attacked a = {.n = (size_t)_i, .step = rv_kit_stride(3)};

    world_open(&a.with, _i);
    world_open(&a.without, _i);
    fill_seen(&a.with);
    fill_seen(&a.without);
    fill_hidden(&a.with);
    char *before = everything(&a.with);
    ck_assert_ptr_nonnull(strstr(before, HIDDEN));
    know_sizes(&a.with);
    know_sizes(&a.without);
    each_line(RV_SOURCE_DIR "/tests/conformance/rem/hostile.txt", attack_coded, &a);
    each_line(RV_SOURCE_DIR "/tests/conformance/rem/portable.txt", attack_plain, &a);
    each_line(RV_SOURCE_DIR "/tests/contract/knowledge/statements.txt", attack_plain, &a);
    ck_assert_uint_gt(a.n, 1000);
    char *after = everything(&a.with);
    ck_assert_str_eq(after, before);
    free(before);
    free(after);
    world_close(&a.with);
    world_close(&a.without);
}
END_TEST

Suite *hostile_suite(void)
{
    Suite *s = suite_create("hostile");
    TCase *tc = tcase_create("hostile");

    tcase_set_timeout(tc, 600);
    ADD(tc, what_is_not_seen_changes_no_answer);
    suite_add_tcase(s, tc);
    return s;
}
