/* SQL: equal rows on every store, within the limits. */
#include "tests/contract/knowledge/people.h"

struct compared {
    struct world worlds[8];
    int n_lines, n_answers;
};

static void compare(void *self, char *line)
{
    struct compared *c = self;
    char *first = ask(&c->worlds[0], &ada, line, NULL);

    for (int i = 1; i < n_store_impls; i++) {
        char *other = ask(&c->worlds[i], &ada, line, NULL);
        bool is_same = strcmp(first, other) == 0;
        /* Why a database refuses it is said in its own words. */
        if (strncmp(first, "sql_error: ", 11) == 0 && strncmp(other, "sql_error: ", 11) == 0)
            is_same = true;
        ck_assert_msg(is_same, "%s\n%s: %s\n%s: %s", line, c->worlds[0].impl->name, first, c->worlds[i].impl->name,
                      other);
        free(other);
    }
    c->n_lines++;
    c->n_answers += first[0] == '{';
    free(first);
}

/* Proves p8-data.23/10: the same statement gives the same bytes on every store */
START_TEST(statements_give_the_same_bytes_on_every_store)
{
    struct compared c = {.n_lines = 0};

    for (int i = 0; i < n_store_impls; i++) {
        world_open(&c.worlds[i], i);
        fill_seen(&c.worlds[i]);
        fill_hidden(&c.worlds[i]);
    }
    each_line(RV_SOURCE_DIR "/tests/conformance/rem/portable.txt", compare, &c);
    each_line(RV_SOURCE_DIR "/tests/contract/knowledge/statements.txt", compare, &c);
    ck_assert_int_gt(c.n_answers, 150);
    for (int i = 0; i < n_store_impls; i++)
        world_close(&c.worlds[i]);
}
END_TEST

START_TEST(columns_are_those_of_the_kinds)
{
    struct world world, *w = &world;

    world_open(w, _i);
    fill_seen(w);
    ANSWERS(&ada, "SELECT * FROM files",
            "[{\"id\":\"x\"}]");
    ANSWERS(&ada, "SELECT name, summary, rating FROM moments ORDER BY name",
            "[{\"name\":\"Launch\",\"summary\":null,\"rating\":null},{\"name\":\"Lunch\",\"summary\":\"We met at the "
            "harbour, O'Brien paid 12\",\"rating\":4},{\"name\":\"Quay\",\"summary\":\"\303\234ber den Kai, 10 000 "
            "Schritte\",\"rating\":2}]");
    ANSWERS(&bob, "SELECT name FROM moments", "[{\"name\":\"Launch\"}]");
    ANSWERS(&elsewhere, "SELECT count(*) AS n FROM moments", "[{\"n\":0}]");
    ANSWERS(&operator_scope, "SELECT count(*) AS n FROM messages", "[{\"n\":4}]");
    ANSWERS(&ada, "SELECT enabled, name FROM tools", "[{\"enabled\":0,\"name\":\"fetch\"}]");
    world_close(w);
}
END_TEST

START_TEST(rows_cells_and_time_have_limits)
{
    const struct rv_knowledge_opts quick = {.sql_ms = 100, .now_us = T0};
    struct world world, *w = &world;
    rv_buf row = RV_BUF_INIT(1 << 20);

    world_open(w, _i);
    rv_buf_puts(&row, "{\"name\":\"long\",\"content\":\"");
    for (int i = 0; i < 20000; i++)
        rv_buf_puts(&row, "\303\251");
    rv_buf_puts(&row, "\"}");
    json_object_put(put_one(w, &ada, "resources", rv_buf_cstr(&row), T0));
    rv_buf_fini(&row);
    char *many = ask(w, &ada, "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 1000) "
                              "SELECT i FROM n ORDER BY i", &(struct rv_knowledge_opts){.now_us = T0});
    ck_assert_ptr_nonnull(strstr(many, "{\"i\":200}],\"warnings\":[],\"truncated\":true}"));
    char *cut = ask(w, &ada, "SELECT content FROM resources", NULL);
    ck_assert_uint_lt(strlen(cut), (16 << 10) + 200);
    ck_assert_ptr_nonnull(strstr(cut, "\303\251\"}],\"warnings\":[\"texts of more than 16 KiB are cut\"],\"truncated\":true}"));
    char *endless = ask(w, &ada, "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n", &quick);
    ck_assert_msg(strncmp(endless, "timeout: ", 9) == 0, "%s", endless);
    char *after = ask(w, &ada, "SELECT name FROM resources", NULL);
    ck_assert_ptr_nonnull(strstr(after, "\"long\""));
    free(many);
    free(cut);
    free(endless);
    free(after);
    world_close(w);
}
END_TEST

START_TEST(a_statement_within_a_group_is_refused)
{
    struct world world, *w = &world;

    world_open(w, _i);
    OK(rv_store_begin(w->s, &w->err));
    char *answer = ask(w, &ada, "SELECT 1", NULL);
    ck_assert_ptr_nonnull(strstr(answer, "cannot be part of a group"));
    free(answer);
    rv_store_rollback(w->s);
    ANSWERS(&ada, "SELECT 1 AS one", "[{\"one\":1}]");
    world_close(w);
}
END_TEST

Suite *sql_suite(void)
{
    Suite *s = suite_create("sql");
    TCase *tc = tcase_create("sql");

    tcase_add_test(tc, statements_give_the_same_bytes_on_every_store);
    ADD(tc, columns_are_those_of_the_kinds);
    ADD(tc, rows_cells_and_time_have_limits);
    ADD(tc, a_statement_within_a_group_is_refused);
    suite_add_tcase(s, tc);
    return s;
}
