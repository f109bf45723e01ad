/* SQL: the text for each database, the places of faults, what passes unchanged, the policy compat. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/rem/rem.h"
#include "tests/kit/kit.h"
#include "tests/unit/rem/suites.h"

#define NOW_US INT64_C(1774951200000000) /* 2026-03-31T10:00:00Z */

static struct rv_rem_sql_opts options(enum rv_rem_backend backend)
{
    struct rv_rem_sql_opts opts = {.backend = backend, .now_us = NOW_US};

    opts.tables = rv_rem_tables(&opts.n_tables);
    return opts;
}

static const struct {
    const char *text, *sqlite, *postgres; /* postgres NULL: as sqlite */
} texts[] = {
    {"VALUES (1)", "VALUES (1)", NULL},
    {"SELECT 'a''b' AS x ;", "SELECT 'a''b' AS \"x\"", NULL},
    {"SELECT E'a\\'b' AS x, $$c$$ AS y", "SELECT 'a''b' AS \"x\", 'c' AS \"y\"", NULL},
    {"SELECT 1/*c*/+ -- d\n -1 AS x", "SELECT 1 + -1 AS \"x\"", NULL},
    {"SELECT id FROM moments", "SELECT id AS \"id\" FROM moments", NULL},
    {"SELECT id Total FROM moments", "SELECT id AS \"total\" FROM moments", NULL},
    {"SELECT id \"Total\" FROM moments", "SELECT id AS \"Total\" FROM moments", NULL},
    {"SELECT * FROM moments ORDER BY id, name DESC",
     "SELECT * FROM moments ORDER BY id NULLS LAST, name DESC NULLS FIRST",
     "SELECT * FROM moments ORDER BY id, name DESC"},
    {"SELECT * FROM moments OFFSET 3", "SELECT * FROM moments LIMIT -1 OFFSET 3", "SELECT * FROM moments OFFSET 3"},
    {"SELECT now() AS x", "SELECT '2026-03-31T10:00:00.000000+00:00' AS \"x\"", NULL},
    {"SELECT CURRENT_DATE - interval '1 month 1 day' AS x", "SELECT '2026-02-27T00:00:00.000000+00:00' AS \"x\"", NULL},
    {"SELECT (now() - interval '1 day')::date AS x", "SELECT '2026-03-30' AS \"x\"", NULL},
    {"SELECT * FROM moments WHERE created_at > '2026-01-01 09:30+02'",
     "SELECT * FROM moments WHERE created_at > '2026-01-01T07:30:00.000000+00:00'", NULL},
    {"SELECT * FROM moments WHERE name > '2026-01-01'", "SELECT * FROM moments WHERE name > '2026-01-01'", NULL},
    {"SELECT * FROM moments WHERE created_at > '2026-02'", "SELECT * FROM moments WHERE created_at > '2026-02'", NULL},
    {"SELECT id::text AS x FROM moments", "SELECT CAST(id AS TEXT) AS \"x\" FROM moments",
     "SELECT CAST(id AS text) AS \"x\" FROM moments"},
    {"SELECT rating::int AS x FROM moments", "SELECT CAST(round(rating) AS INTEGER) AS \"x\" FROM moments",
     "SELECT CAST(round(CAST(rating AS numeric)) AS bigint) AS \"x\" FROM moments"},
    {"SELECT metadata->'a' AS x FROM moments", "SELECT metadata->'$.\"a\"' AS \"x\" FROM moments",
     "SELECT CAST(metadata AS json)->'a' AS \"x\" FROM moments"},
    {"SELECT * FROM moments WHERE name LIKE '50\\%*_'", "SELECT * FROM moments WHERE name GLOB '50%[*]?'",
     "SELECT * FROM moments WHERE name LIKE '50\\%*_'"},
    {"SELECT * FROM moments WHERE name ILIKE 'a%'", "SELECT * FROM moments WHERE name LIKE 'a%' ESCAPE '\\'",
     "SELECT * FROM moments WHERE name ILIKE 'a%' COLLATE \"C\""},
    {"SELECT name COLLATE \"C\" AS x FROM moments", "SELECT name COLLATE BINARY AS \"x\" FROM moments",
     "SELECT name COLLATE \"C\" AS \"x\" FROM moments"},
    {"SELECT * FROM moments WHERE 'x' = ANY(tags)",
     "SELECT * FROM moments WHERE 'x' IN (SELECT value FROM json_each(tags))",
     "SELECT * FROM moments WHERE 'x' IN (SELECT json_array_elements_text(CAST(tags AS json)))"},
    {"SELECT 1.5 AS x", "SELECT 1.5 AS \"x\"", "SELECT 1.5::double precision AS \"x\""},
    {"SELECT 'a' || 1 + 2 AS x", "SELECT 'a' || (1 + 2) AS \"x\"",
     "SELECT CAST(CAST('a' || (1 + 2) AS reeve_value) AS text) AS \"x\""},
    {"SELECT * FROM moments WHERE name = 'a' IS NULL", "SELECT * FROM moments WHERE (name = 'a') IS NULL", NULL},
};

/* Proves p8-data.11: One statement that only reads, of tables, columns and functions that are listed; each database
 * gets a text that means the same */
START_TEST(a_statement_has_a_text_for_each_database)
{
    for (int b = RV_REM_SQLITE; b <= RV_REM_POSTGRES; b++) {
        struct rv_rem_sql_opts opts = options((enum rv_rem_backend)b);
        const char *want = b == RV_REM_POSTGRES && texts[_i].postgres ? texts[_i].postgres : texts[_i].sqlite;
        struct rv_rem_sql sql;
        rv_err *err = NULL;
        ck_assert_msg(rv_rem_write_sql(rv_str_of(texts[_i].text), &opts, &sql, NULL, &err) == 0, "%s",
                      rv_err_text(err));
        ck_assert_str_eq(sql.text.ptr, want);
        ck_assert_uint_eq(sql.text.len, strlen(want));
        rv_rem_sql_fini(&sql);
    }
}
END_TEST

/* What is in the portable subset already, names and order included, stays as it is when it is written again. */
START_TEST(the_text_of_a_text_is_the_same)
{
    static const char *const same[] = {
        "SELECT name, LEFT(summary, 3), count(*) FROM moments m WHERE m.name LIKE '%a' AND rating BETWEEN 1 AND 5 "
        "GROUP BY name, "
        "summary ORDER BY name NULLS FIRST LIMIT 5",
        "WITH a AS (SELECT id FROM tools) SELECT x.id FROM a x JOIN moments USING (id) UNION ALL SELECT id FROM files",
        "SELECT metadata->'a'->>'b', metadata->>'c' FROM moments WHERE metadata->>'d' ILIKE 'x%'",
        "SELECT created_at, now() - interval '2 days' FROM messages WHERE created_at > '2026-01-01'",
    };
    struct rv_rem_sql_opts opts = options(RV_REM_POSTGRES);

    for (size_t i = 0; i < RV_COUNT(same); i++) {
        struct rv_rem_sql once, twice;
        rv_err *err = NULL;
        ck_assert_int_eq(rv_rem_write_sql(rv_str_of(same[i]), &opts, &once, NULL, NULL), 0);
        ck_assert_msg(rv_rem_write_sql(once.text, &opts, &twice, NULL, &err) == 0, "%s: %s", once.text.ptr,
                      rv_err_text(err));
        ck_assert_str_eq(once.text.ptr, twice.text.ptr);
        rv_rem_sql_fini(&once);
        rv_rem_sql_fini(&twice);
    }
}
END_TEST

static const struct {
    const char *text, *code;
    int rc, line, col;
    const char *hint;
} faults[] = {
    {"SELECT 1;\nDELETE FROM messages", "many_statements", RV_E_DENIED, 2, 1, "one statement"},
    {"SELECT 'é' FROM mesages", "unknown_table", RV_E_NOT_FOUND, 1, 17, "did you mean messages?"},
    {"SELECT\n  summry\nFROM moments", "unknown_column", RV_E_NOT_FOUND, 2, 3, "did you mean summary?"},
    {"SELECT \"abc\" FROM moments", "unknown_column", RV_E_NOT_FOUND, 1, 8, "single quotes"},
    {"SELECT lowr(name) FROM moments", "unknown_function", RV_E_DENIED, 1, 8, "did you mean lower?"},
    {"SELECT extract(year from created_at) FROM moments", "unknown_function", RV_E_DENIED, 1, 8,
     "substr(created_at, 1, 4)"},
    {"SELECT * FROM pg_class", "denied_name", RV_E_DENIED, 1, 15, "pg_"},
    {"SELECT metadata @> '{}' FROM moments", "not_portable", RV_E_INVALID, 1, 17, "->>"},
    {"SELECT (1", "sql_syntax", RV_E_PARSE, 1, 10, ""},
    {"EXPLAIN SELECT 1", "not_a_query", RV_E_DENIED, 1, 1, ""},
    {"", "missing_statement", RV_E_PARSE, 1, 1, "SELECT"},
};

START_TEST(a_fault_has_a_code_a_place_and_a_hint)
{
    struct rv_rem_sql_opts opts = options(RV_REM_SQLITE);
    struct rv_rem_fault fault;
    struct rv_rem_sql sql;
    rv_err *err = NULL;
    const char *hint;

    ck_assert_int_eq(rv_rem_write_sql(rv_str_of(faults[_i].text), &opts, &sql, &fault, &err), faults[_i].rc);
    ck_assert_str_eq(rv_rem_fault_text(fault.code), faults[_i].code);
    ck_assert_int_eq(fault.line, faults[_i].line);
    ck_assert_int_eq(fault.col, faults[_i].col);
    hint = rv_err_hint_text(err);
    ck_assert_msg(!faults[_i].hint[0] || (hint && strstr(hint, faults[_i].hint)), "%s", hint ? hint : "no hint");
    rv_err_free(err);
}
END_TEST

START_TEST(places_count_from_where_the_query_has_the_statement)
{
    struct rv_rem_sql_opts opts = options(RV_REM_SQLITE);
    const struct rv_src src = {NULL, 3, 9};
    struct rv_rem_fault fault;
    struct rv_rem_sql sql;

    opts.src = &src;
    ck_assert_int_lt(rv_rem_write_sql(RV_STR_LIT("SELECT x FROM moments"), &opts, &sql, &fault, NULL), 0);
    ck_assert(fault.line == 3 && fault.col == 16);
    ck_assert_int_lt(rv_rem_write_sql(RV_STR_LIT("SELECT\nx FROM moments"), &opts, &sql, &fault, NULL), 0);
    ck_assert(fault.line == 4 && fault.col == 1);
}
END_TEST

START_TEST(literals_are_listed_as_they_were_typed)
{
    struct rv_rem_sql_opts opts = options(RV_REM_SQLITE);
    struct rv_rem_sql sql;

    ck_assert_int_eq(
        rv_rem_write_sql(RV_STR_LIT("SELECT 'it''s', 2.5 FROM moments WHERE name LIKE 'a%'"), &opts, &sql, NULL, NULL),
        0);
    ck_assert_uint_eq(sql.n_literals, 3);
    ck_assert(rv_str_is(sql.literals[0].value, "it's") && sql.literals[0].is_string && sql.literals[0].col == 8);
    ck_assert(rv_str_is(sql.literals[1].value, "2.5") && !sql.literals[1].is_string);
    ck_assert(rv_str_is(sql.literals[2].value, "a%") && sql.literals[2].col == 50);
    rv_rem_sql_fini(&sql);
}
END_TEST

START_TEST(operators_may_explain)
{
    struct rv_rem_sql_opts opts = options(RV_REM_SQLITE);
    struct rv_rem_sql sql;

    opts.may_explain = true;
    ck_assert_int_eq(rv_rem_write_sql(RV_STR_LIT("EXPLAIN SELECT 1 AS x"), &opts, &sql, NULL, NULL), 0);
    ck_assert_str_eq(sql.text.ptr, "EXPLAIN QUERY PLAN SELECT 1 AS \"x\"");
    ck_assert(sql.is_explain);
    rv_rem_sql_fini(&sql);
    ck_assert_int_eq(rv_rem_write_sql(RV_STR_LIT("EXPLAIN ANALYZE SELECT 1"), &opts, &sql, NULL, NULL), RV_E_DENIED);
    ck_assert_int_eq(rv_rem_write_sql(RV_STR_LIT("EXPLAIN DELETE FROM messages"), &opts, &sql, NULL, NULL),
                     RV_E_DENIED);
}
END_TEST

/* p8's rules for the owner of the database, with their false alarms and their holes. */
static const struct {
    const char *text, *code; /* code NULL: passes as it is */
    bool may_write;
} compat[] = {
    {"SELECT 1", NULL, false},
    {"select count(*) from pg_class", NULL, false},
    {"WITH x AS (DELETE FROM messages) SELECT 1", NULL, true},
    {"INSERT INTO messages (id) VALUES ('x')", NULL, true},
    {"UPDATE messages SET content = ''", NULL, true},
    {"DELETE FROM messages WHERE id = '1'", NULL, true},
    {"DELETE FROM public.messages", NULL, true},
    {"SELECT metadata @> '{}' FROM messages;", NULL, false},
    {"SELECT 'dropped', recreated FROM x", NULL, false},
    {"DROP TABLE messages", "blocked_keyword", false},
    {"truncate messages", "blocked_keyword", false},
    {"ALTER TABLE messages ADD x int", "blocked_keyword", false},
    {"SELECT 1; CREATE TABLE x (a int)", "blocked_keyword", false},
    {"GRANT ALL ON x TO y", "blocked_keyword", false},
    {"REVOKE ALL ON x FROM y", "blocked_keyword", false},
    {"SELECT * FROM messages WHERE content ILIKE '%create%'", "blocked_keyword", false},
    {"DELETE FROM messages", "delete_without_where", false},
    {"delete from messages ;", "delete_without_where", false},
    {"DELETE /* all */ FROM messages", "delete_without_where", false},
    {"SELECT 1; SELECT 2", "many_statements", false},
    {"", "missing_statement", false},
};

/* Proves p8-data.11/compat: The rules of p8, for who asks for them */
START_TEST(the_owner_has_the_rules_of_p8)
{
    struct rv_rem_sql_opts opts = options(RV_REM_POSTGRES);
    struct rv_rem_fault fault;
    struct rv_rem_sql sql;
    int rc;

    opts.policy = RV_REM_COMPAT;
    rc = rv_rem_write_sql(rv_str_of(compat[_i].text), &opts, &sql, &fault, NULL);
    ck_assert_str_eq(rv_rem_fault_text(fault.code), compat[_i].code ? compat[_i].code : "ok");
    ck_assert_int_eq(rc == 0, compat[_i].code == NULL);
    if (rc < 0)
        return;
    ck_assert(rv_str_is(sql.text, compat[_i].text));
    ck_assert_int_eq(sql.may_write, compat[_i].may_write);
    rv_rem_sql_fini(&sql);
}
END_TEST

/* Each code of a fault is in the reference. */
START_TEST(the_reference_has_each_code)
{
    char *page = rv_kit_read(RV_SOURCE_DIR "/docs/reference/rem.md");

    for (int i = RV_REM_OK + 1; i < RV_REM_N_FAULTS; i++) {
        char row[64];
        (void)snprintf(row, sizeof(row), "| `%s` |", rv_rem_fault_text((enum rv_rem_fault_code)i));
        ck_assert_msg(strstr(page, row) != NULL, "%s", row);
    }
    free(page);
}
END_TEST

TCase *sql_case(void)
{
    TCase *c = tcase_create("sql");

    tcase_add_loop_test(c, a_statement_has_a_text_for_each_database, 0, RV_COUNT(texts));
    tcase_add_test(c, the_text_of_a_text_is_the_same);
    tcase_add_loop_test(c, a_fault_has_a_code_a_place_and_a_hint, 0, RV_COUNT(faults));
    tcase_add_test(c, places_count_from_where_the_query_has_the_statement);
    tcase_add_test(c, literals_are_listed_as_they_were_typed);
    tcase_add_test(c, operators_may_explain);
    tcase_add_loop_test(c, the_owner_has_the_rules_of_p8, 0, RV_COUNT(compat));
    tcase_add_test(c, the_reference_has_each_code);
    return c;
}
