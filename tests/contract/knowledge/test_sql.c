/* SQL: equal rows on every store, within the limits. */
#include "tests/contract/knowledge/people.h"
#include "tests/kit/postgres.h"

struct compared {
    struct world worlds[8];
    int n_answers;
    bool leaves_order;
    rv_buf unequal;
};

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The results with their lines in one order: for statements that leave it open. */
static char *sorted(char *answer)
{
    rv_buf text = RV_BUF_INIT(1 << 20);
    json_object *all = answer[0] == '{' ? tree(answer) : NULL, *rows = rv_json_get_arr(all, "results");
    size_t n = rows ? json_object_array_length(rows) : 0;
    char **lines = calloc(n + 1, sizeof *lines);

    if (!rows)
        rv_buf_puts(&text, answer);
    for (size_t i = 0; i < n; i++) {
        rv_buf line = RV_BUF_INIT(1 << 20);
        rv_json_write(json_object_array_get_idx(rows, i), &line);
        lines[i] = rv_buf_steal(&line, NULL);
    }
    qsort(lines, n, sizeof *lines, by_text);
    for (size_t i = 0; i < n; i++) {
        rv_buf_printf(&text, "%s\n", lines[i]);
        free(lines[i]);
    }
    free(lines);
    json_object_put(all);
    free(answer);
    return rv_buf_steal(&text, NULL);
}

static void compare(void *self, char *line)
{
    struct compared *c = self;

    if (line[0] == '~') /* what a cast makes of another text than a number is up to the database */
        return;
    char *first = ask(&c->worlds[0], &ada, line, NULL);

    c->n_answers += first[0] == '{';
    if (c->leaves_order)
        first = sorted(first);

    for (int i = 1; i < n_store_impls; i++) {
        char *other = ask(&c->worlds[i], &ada, line, NULL);
        if (c->leaves_order)
            other = sorted(other);
        bool is_same = strcmp(first, other) == 0;
        /* Why a database refuses it is said in its own words. */
        if (strncmp(first, "sql_error: ", 11) == 0 && strncmp(other, "sql_error: ", 11) == 0)
            is_same = true;
        if (!is_same)
            rv_buf_printf(&c->unequal, "%s\n%s: %s\n%s: %s\n", line, c->worlds[0].impl->name, first,
                          c->worlds[i].impl->name, other);
        free(other);
    }
    free(first);
}

/* Proves p8-data.23/10 */
START_TEST(statements_give_the_same_bytes_on_every_store)
{
    struct compared c = {.leaves_order = true, .unequal = RV_BUF_INIT(1 << 20)};

    for (int i = 0; i < n_store_impls; i++) {
        world_open(&c.worlds[i], i);
        fill_seen(&c.worlds[i]);
        fill_hidden(&c.worlds[i]);
    }
    each_line(RV_SOURCE_DIR "/tests/conformance/rem/portable.txt", compare, &c);
    c.leaves_order = false;
    each_line(RV_SOURCE_DIR "/tests/contract/knowledge/statements.txt", compare, &c);
    ck_assert_msg(c.unequal.len == 0, "%.3000s", rv_buf_cstr(&c.unequal));
    ck_assert_int_gt(c.n_answers, 150);
    rv_buf_fini(&c.unequal);
    for (int i = 0; i < n_store_impls; i++)
        world_close(&c.worlds[i]);
}
END_TEST

/* --- Random statements over random rows --- */

static const char *one_of(struct rv_rand rand, const char *const *list, size_t n)
{
    return list[rv_rand_below(rand, n)];
}
#define ONE_OF(list) one_of(rand, (list), RV_COUNT(list))

static void fill_random(struct world *w, struct rv_rand rand)
{
    static const struct rv_store_scope *const owners[] = {&ada, &bob, &unowned};
    static const char *const words[] = {"harbour", "Ship", "rope", "KNOT", "Ã¤nker", "x'y", "100%", "a_b", "[q]"};

    OK(rv_store_begin(w->s, &w->err));
    for (int i = 0; i < 40; i++) {
        rv_buf row = RV_BUF_INIT(4096);
        rv_buf_printf(&row, "{\"name\":\"%s %d\",\"summary\":\"%s and %s\",\"rating\":%d,\"category\":%s,",
                      ONE_OF(words), i, ONE_OF(words), ONE_OF(words), (int)rv_rand_below(rand, 5) + 1,
                      rv_rand_below(rand, 3) ? "\"work\"" : "null");
        rv_buf_printf(&row, "\"tags\":[\"%s\"],\"metadata\":{\"n\":%d,\"f\":%g,\"s\":\"%s\",\"l\":[1,%d]}}",
                      ONE_OF(words), (int)rv_rand_below(rand, 100) - 50, (double)rv_rand_below(rand, 1000) / 8,
                      ONE_OF(words), (int)rv_rand_below(rand, 9));
        json_object_put(put_one(w, owners[rv_rand_below(rand, 3)], "moments", rv_buf_cstr(&row),
                                T0 + (int64_t)rv_rand_below(rand, 1000000) * 1000));
        rv_buf_fini(&row);
    }
    OK(rv_store_commit(w->s, &w->err));
}

static void write_condition(struct rv_rand rand, rv_buf *b, int depth)
{
    static const char *const simple[] = {"rating > 2",
                                         "rating IS NULL",
                                         "category = 'work'",
                                         "summary LIKE '%rope%'",
                                         "summary ILIKE '%SHIP%'",
                                         "name LIKE '%\\%%'",
                                         "'KNOT' = ANY(tags)",
                                         "(metadata->>'n')::int < 10",
                                         "metadata->>'s' = 'Ship'",
                                         "created_at > '2023-11-14 22:14:00'",
                                         "length(summary) % 2 = 0",
                                         "rating BETWEEN 2 AND 4",
                                         "user_id IS NULL",
                                         "rating IN (SELECT max(rating) FROM moments)",
                                         "strpos(summary, 'x') > 0"};

    if (depth == 0 || rv_rand_below(rand, 3) == 0) {
        rv_buf_puts(b, ONE_OF(simple));
        return;
    }
    rv_buf_puts(b, rv_rand_below(rand, 4) ? "(" : "NOT (");
    write_condition(rand, b, depth - 1);
    rv_buf_puts(b, rv_rand_below(rand, 2) ? " AND " : " OR ");
    write_condition(rand, b, depth - 1);
    rv_buf_puts(b, ")");
}

static void write_statement(struct rv_rand rand, rv_buf *b)
{
    static const char *const values[] = {"name",
                                         "rating * 2",
                                         "rating / 2",
                                         "rating / 2.0",
                                         "upper(summary)",
                                         "substr(name, 2, 4)",
                                         "coalesce(category, 'none')",
                                         "CASE WHEN rating > 3 THEN 'good' WHEN rating > 1 THEN 'fair' END",
                                         "(metadata->>'n')::int",
                                         "(metadata->>'f')::float",
                                         "metadata->'l'->>1",
                                         "substr(created_at, 1, 16)",
                                         "round(rating / 3.0, 2)",
                                         "json_array_length(tags)",
                                         "rank() OVER (ORDER BY rating, name)",
                                         "(SELECT count(*) FROM moments o WHERE o.rating > moments.rating)"};
    static const char *const sums[] = {"count(*)",        "sum(rating)",
                                       "avg(rating)",     "min(name)",
                                       "max(rating)",     "count(DISTINCT rating)",
                                       "min(created_at)", "sum((metadata->>'f')::float)"};
    bool groups = rv_rand_below(rand, 4) == 0;

    rv_buf_puts(b, groups ? "SELECT category" : "SELECT id");
    for (uint64_t n = rv_rand_below(rand, 3) + 1; n > 0; n--)
        rv_buf_printf(b, ", %s AS c%d", groups ? ONE_OF(sums) : ONE_OF(values), (int)n);
    rv_buf_puts(b, " FROM moments WHERE ");
    write_condition(rand, b, 3);
    rv_buf_puts(b, groups ? " GROUP BY category ORDER BY category" : " ORDER BY id");
    if (rv_rand_below(rand, 4) == 0)
        rv_buf_printf(b, " LIMIT %d", (int)rv_rand_below(rand, 10));
}

START_TEST(random_statements_give_the_same_bytes_on_every_store)
{
    struct compared c = {.unequal = RV_BUF_INIT(1 << 20)};
    struct rv_rand_state state;
    struct rv_rand rand = rv_rand_seeded(&state, 11);
    int n = rv_kit_sample(400, 20000);

    for (int i = 0; i < n_store_impls; i++) {
        struct rv_rand_state rows;
        world_open(&c.worlds[i], i);
        fill_random(&c.worlds[i], rv_rand_seeded(&rows, 7));
    }
    for (int k = 0; k < n && c.unequal.len == 0; k++) {
        rv_buf statement = RV_BUF_INIT(1 << 16);
        write_statement(rand, &statement);
        char *line = rv_buf_steal(&statement, NULL);
        compare(&c, line);
        free(line);
    }
    ck_assert_msg(c.unequal.len == 0, "%.3000s", rv_buf_cstr(&c.unequal));
    ck_assert_int_gt(c.n_answers, n * 9 / 10);
    rv_buf_fini(&c.unequal);
    for (int i = 0; i < n_store_impls; i++)
        world_close(&c.worlds[i]);
}
END_TEST

/* Proves p8-data.12.1: Values have the same form on all stores: times, ids, lists */
START_TEST(columns_are_those_of_the_kinds)
{
    struct world world, *w = &world;

    world_open(w, _i);
    fill_seen(w);
    ANSWERS(
        &ada, "SELECT * FROM files",
        "[{\"id\":\"f113e789-14c6-5ebb-84bd-6ef79152740e\",\"tenant_id\":\"default\",\"user_id\":\"ada\",\"name\":"
        "\"photo\",\"uri\":\"file:photo\",\"mime_type\":null,\"size_bytes\":1234567890123,\"parsed_content\":null,"
        "\"parsed_output\":null,\"processing_status\":\"pending\",\"thumbnail_uri\":null,\"metadata\":\"{}\",\"tags\":"
        "\"[]\",\"graph_edges\":\"[]\",\"encryption_level\":null,\"created_at\":\"2023-11-14T22:13:20.000006+00:00\","
        "\"updated_at\":\"2023-11-14T22:13:20.000006+00:00\",\"deleted_at\":null}]");
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

START_TEST(tables_are_computed_before_the_statement_is_applied)
{
    struct world world, *w = &world;

    world_open(w, _i);
    fill_seen(w);
    char *plan = ask(w, &operator_scope, "EXPLAIN SELECT name FROM moments WHERE 1 / (rating - 5) > 0", NULL);
    ck_assert_msg(strstr(plan, "MATERIALIZE moments") || strstr(plan, "CTE Scan on moments"), "%s", plan);
    free(plan);
    char *refused = ask(w, &ada, "EXPLAIN SELECT name FROM moments", NULL);
    ck_assert_msg(strncmp(refused, "not_a_query: ", 13) == 0, "%s", refused);
    free(refused);
    world_close(w);
}
END_TEST

/* Proves p8-data.11/limits: A statement has limits of rows, of bytes and of time, and says what it cut */
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
    char *many = ask(w, &ada,
                     "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 1000) "
                     "SELECT i FROM n ORDER BY i",
                     &(struct rv_knowledge_opts){.now_us = T0});
    ck_assert_ptr_nonnull(strstr(many, "{\"i\":200}],\"warnings\":[],\"truncated\":true}"));
    char *cut = ask(w, &ada, "SELECT content FROM resources", NULL);
    ck_assert_uint_lt(strlen(cut), (16 << 10) + 200);
    ck_assert_ptr_nonnull(
        strstr(cut, "\303\251\"}],\"warnings\":[\"texts of more than 16 KiB are cut\"],\"truncated\":true}"));
    char *endless = ask(
        w, &ada, "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n", &quick);
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

/* Each doubles or multiplies a text until it is longer than a value may be. */
static const char *const growing[] = {
    "WITH RECURSIVE n(i, t) AS (SELECT 1, 'x' || 'y' UNION ALL SELECT i + 1, t || t FROM n WHERE i < 40)"
    " SELECT max(length(t)) AS l FROM n",
    "WITH RECURSIVE n(i, t) AS (SELECT 1, 'xy' UNION ALL SELECT i + 1, replace(t, 'x', 'xxxx') FROM n WHERE i < 40)"
    " SELECT max(length(t)) AS l FROM n",
    "WITH RECURSIVE n(i, t) AS (VALUES (1, '0123456789') UNION ALL SELECT i + 1, t || t FROM n WHERE i < 20),"
    " m(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM m WHERE i < 60)"
    " SELECT length(string_agg(t, ',')) AS l FROM n CROSS JOIN m",
};

START_TEST(a_value_has_a_limit_in_each_database)
{
    const struct rv_knowledge_opts patient = {.sql_ms = 3600000, .now_us = T0};
    struct world world, *w = &world;

    world_open(w, _i);
    for (size_t i = (size_t)_i % rv_kit_stride(3); i < RV_COUNT(growing); i += rv_kit_stride(3)) {
        char *said = ask(w, &ada, growing[i], &patient);
        ck_assert_msg(strstr(said, "a value of the statement is longer than 67108864 bytes"), "%zu: %s", i, said);
        free(said);
    }
    ANSWERS(&ada,
            "WITH RECURSIVE n(i, t) AS (VALUES (1, '0123456789') UNION ALL SELECT i + 1, t || t FROM n WHERE i < 15)"
            " SELECT max(length(t)) AS l, string_agg(replace(left(t, 5), '0', 'no'), '-') AS s FROM n WHERE i > 14",
            "[{\"l\":163840,\"s\":\"no1234\"}]");
    ANSWERS(&ada, "SELECT 'a' || NULL AS n, 'a' || 'b' || 'c' AS t", "[{\"n\":null,\"t\":\"abc\"}]");
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

/* With a role of its own a statement reads the tables that the role may read.
 * Proves p8-data.11/role: In PostgreSQL statements may run as a role without rights */
START_TEST(statements_may_have_a_role_of_their_own)
{
    const struct rv_kit_postgres *pg = rv_kit_postgres();
    struct world world, *w = &world;
    rv_buf text = RV_BUF_INIT(4096);
    const char *schema;

    world_open(w, n_store_impls - 1);
    if (!(schema = strstr(w->url, "schema="))) { /* this build has no server */
        world_close(w);
        return;
    }
    schema += strlen("schema=");
    fill_seen(w);
    rv_buf_printf(&text,
                  "DROP ROLE IF EXISTS asks; CREATE ROLE asks; GRANT USAGE ON SCHEMA %s TO asks;"
                  " GRANT SELECT ON %s.entities TO asks",
                  schema, schema);
    free(rv_kit_postgres_sql(pg, rv_buf_cstr(&text)));
    rv_buf_clear(&text);
    rv_buf_printf(&text, "%s&query_role=asks", w->url);
    rv_store *own = w->s;
    OK(rv_store_open(rv_buf_cstr(&text), NULL, &w->s, &w->err));
    ANSWERS(&ada, "SELECT count(*) AS n FROM moments", "[{\"n\":3}]");
    char *denied = ask(w, &ada, "SELECT count(*) AS n FROM sessions", NULL);
    ck_assert_msg(strstr(denied, "permission denied for table sessions"), "%s", denied);
    free(denied);
    ANSWERS(&ada, "LOOKUP nothing", "[]");
    rv_store_close(w->s);
    w->s = own;
    rv_buf_clear(&text);
    rv_buf_printf(&text, "DROP OWNED BY asks; DROP ROLE asks");
    free(rv_kit_postgres_sql(pg, rv_buf_cstr(&text)));
    rv_buf_fini(&text);
    world_close(w);
}
END_TEST

Suite *sql_suite(void)
{
    Suite *s = suite_create("sql");
    TCase *tc = tcase_create("sql");

    tcase_add_test(tc, statements_give_the_same_bytes_on_every_store);
    ADD(tc, columns_are_those_of_the_kinds);
    ADD(tc, tables_are_computed_before_the_statement_is_applied);
    ADD(tc, rows_cells_and_time_have_limits);
    ADD(tc, a_value_has_a_limit_in_each_database);
    ADD(tc, a_statement_within_a_group_is_refused);
    tcase_add_test(tc, statements_may_have_a_role_of_their_own);
    suite_add_tcase(s, tc);
    tc = tcase_create("random sql");
    tcase_add_test(tc, random_statements_give_the_same_bytes_on_every_store);
    suite_add_tcase(s, tc);
    return s;
}
