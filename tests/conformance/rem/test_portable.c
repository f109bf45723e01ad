/* Statements of the subset: their texts for SQLite and for PostgreSQL run there, on tables with the columns of
 * rv_rem_tables() and the same rows, and give equal results. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/rem/suites.h"
#include "tests/kit/kit.h"
#include "tests/kit/postgres.h"

/* The rows, in SQL that both databases read. */
static const char rows[] =
    "INSERT INTO messages (id, tenant_id, user_id, session_id, message_type, content, input_tokens, output_tokens, "
    "latency_ms, "
    "model, agent_name, tool_calls, metadata, tags, created_at) VALUES "
    "('m1', 't', 'u', 's1', 'user', 'Hello World', 0, 0, NULL, NULL, NULL, NULL, '{}', '[]', "
    "'2026-03-30T09:00:00.000000+00:00'),"
    "('m2', 't', 'u', 's1', 'assistant', 'create a *star* [x] 100% a_b', 10, 5, 100, 'gpt', 'general', NULL, "
    "'{\"n\":2,\"f\":1.50,\"b\":true,\"s\":\"text\",\"z\":null,\"o\":{\"k\":[1,\"two\",3]}}', '[\"red\",\"Blue\"]', "
    "'2026-03-30T09:00:01.500000+00:00'),"
    "('m3', 't', NULL, 's2', 'assistant', 'Update 2 rows', 20, 7, 201, 'gpt', 'Other', NULL, '{\"s\":\"O''Brien\"}', "
    "'[\"blue\"]', '2026-03-31T00:00:00.000000+00:00'),"
    "('m4', 't', NULL, 's2', 'tool_call', NULL, NULL, NULL, NULL, NULL, 'general', "
    "'{\"name\":\"search\",\"id\":\"c1\"}', NULL, "
    "NULL, '2026-02-28T23:59:59.999999+00:00');"
    "INSERT INTO moments (id, name, moment_type, summary, rating, category, topic_tags, created_at, starts_timestamp) "
    "VALUES "
    "('o1', 'alpha', 'note', 'Drop the table', 5, 'work', '[\"a\",\"b\"]', '2026-01-01T00:00:00.000000+00:00', NULL),"
    "('o2', 'Beta', 'dream', 'select some cheese', 2, NULL, '[]', '2026-02-01T12:30:45.123456+00:00', "
    "'2026-02-01T12:30:45.123456+00:00'),"
    "('o3', 'ÄRGER', 'note', 'été', NULL, 'Work', '[\"b\"]', '2026-03-31T09:59:59.000000+00:00', NULL);"
    "INSERT INTO schemas (id, name, kind, json_schema, created_at) VALUES "
    "('d1', 'dreaming-agent', 'agent', '{\"temperature\":0.7,\"tools\":[{\"name\":\"save\"}]}', "
    "'2026-01-01T00:00:00.000000+00:00');"
    "INSERT INTO tools (id, name, enabled) VALUES ('x1', 'on', TRUE), ('x2', 'off', FALSE);";

static sqlite3 *sqlite;
static const struct rv_kit_postgres *server;

static void put_columns(rv_buf *b, const struct rv_rem_column *columns, size_t n, bool is_sqlite)
{
    static const char *const postgres[] = {
        [RV_REM_TEXT] = "text COLLATE \"C\"", [RV_REM_INT] = "bigint",
        [RV_REM_FLOAT] = "double precision",  [RV_REM_BOOL] = "boolean",
        [RV_REM_TIME] = "text COLLATE \"C\"", [RV_REM_JSON] = "text COLLATE \"C\"",
    };
    RV_EACH_HAS_ROW(postgres, RV_N_REM_TYPES);
    static const char *const lite[] = {[RV_REM_TEXT] = "TEXT",    [RV_REM_INT] = "INTEGER", [RV_REM_FLOAT] = "REAL",
                                       [RV_REM_BOOL] = "INTEGER", [RV_REM_TIME] = "TEXT",   [RV_REM_JSON] = "TEXT"};
    RV_EACH_HAS_ROW(lite, RV_N_REM_TYPES);

    for (size_t i = 0; i < n; i++)
        rv_buf_printf(b, "%s\"%s\" %s", i ? ", " : "", columns[i].name, (is_sqlite ? lite : postgres)[columns[i].type]);
}

static void make_tables(rv_buf *b, bool is_sqlite)
{
    size_t n, n_common;
    const struct rv_rem_table *tables = rv_rem_tables(&n);
    const struct rv_rem_column *common = rv_rem_common_columns(&n_common);

    for (size_t i = 0; i < n; i++) {
        rv_buf_printf(b, "CREATE TABLE %s (", tables[i].name);
        put_columns(b, common, n_common, is_sqlite);
        rv_buf_puts(b, ", ");
        put_columns(b, tables[i].columns, tables[i].n_columns, is_sqlite);
        rv_buf_puts(b, ");");
    }
    rv_buf_puts(b, rows);
}

static void set_up(void)
{
    rv_buf b = RV_BUF_INIT(1 << 20);

    make_tables(&b, true);
    ck_assert_int_eq(sqlite3_open(":memory:", &sqlite), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(sqlite, rv_buf_cstr(&b), NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(sqlite));
    rv_buf_clear(&b);
    rv_buf_puts(&b, "SET client_min_messages = warning; DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE "
                    "DOMAIN " RV_REM_VALUE " AS text;");
    make_tables(&b, false);
    server = rv_kit_postgres();
    free(rv_kit_postgres_sql(server, rv_buf_cstr(&b)));
    rv_buf_fini(&b);
}

static void tear_down(void)
{
    sqlite3_close(sqlite);
}

/* --- running --- */

static struct rv_rem_sql rewrite(rv_str statement, enum rv_rem_backend backend)
{
    struct rv_rem_sql_opts opts = strict_options(backend);
    struct rv_rem_sql sql;
    rv_err *err = NULL;

    ck_assert_msg(rv_rem_write_sql(statement, &opts, &sql, NULL, &err) == 0, "%.*s: %s (%s) at %d",
                  RV_STR_ARG(statement), rv_err_text(err), rv_err_hint_text(err) ? rv_err_hint_text(err) : "",
                  rv_err_src(err).col);
    return sql;
}

/* As psql prints rows: "|" between columns, NULL empty; and first the names of the columns. */
static void run_sqlite(rv_str text, rv_buf *names, rv_buf *out)
{
    sqlite3_stmt *stmt = NULL;
    int rc, n_rows = 0;

    ck_assert_msg(sqlite3_prepare_v2(sqlite, text.ptr, (int)text.len, &stmt, NULL) == SQLITE_OK, "%.*s: %s",
                  RV_STR_ARG(text), sqlite3_errmsg(sqlite));
    ck_assert_int_ne(sqlite3_stmt_readonly(stmt), 0);
    for (int i = 0; i < sqlite3_column_count(stmt); i++)
        rv_buf_printf(names, "%s%s", i ? "|" : "", sqlite3_column_name(stmt, i));
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        if (n_rows++)
            rv_buf_putc(out, '\n');
        for (int i = 0; i < sqlite3_column_count(stmt); i++) {
            if (i)
                rv_buf_putc(out, '|');
            if (sqlite3_column_type(stmt, i) == SQLITE_FLOAT)
                rv_buf_printf(out, "%.15g", sqlite3_column_double(stmt, i));
            else if (sqlite3_column_type(stmt, i) != SQLITE_NULL)
                rv_buf_puts(out, (const char *)sqlite3_column_text(stmt, i));
        }
    }
    ck_assert_msg(rc == SQLITE_DONE, "%.*s: %s", RV_STR_ARG(text), sqlite3_errmsg(sqlite));
    sqlite3_finalize(stmt);
}

static void check_line(void *self, char *line)
{
    struct rv_rem_sql lite = rewrite(rv_str_of(line), RV_REM_SQLITE),
                      postgres = rewrite(rv_str_of(line), RV_REM_POSTGRES);
    rv_buf names = RV_BUF_INIT(65536), got = RV_BUF_INIT(1 << 20), query = RV_BUF_INIT(1 << 20);
    char *want;

    run_sqlite(lite.text, &names, &got);
    rv_buf_printf(&query, "%.*s", RV_STR_ARG(postgres.text));
    want = rv_kit_postgres_sql(server, rv_buf_cstr(&query));
    while (got.len && got.ptr[got.len - 1] == '\n') /* as rv_kit_postgres_sql() does */
        rv_buf_truncate(&got, got.len - 1);
    ck_assert_msg(strcmp(want, rv_buf_cstr(&got)) == 0, "%s\nPostgreSQL (%.*s):\n%s\nSQLite (%.*s):\n%s", line,
                  RV_STR_ARG(postgres.text), want, RV_STR_ARG(lite.text), rv_buf_cstr(&got));
    free(want);
    rv_buf_fini(&query);
    rv_buf_fini(&got);
    rv_buf_fini(&names);
    rv_rem_sql_fini(&lite);
    rv_rem_sql_fini(&postgres);
    ++*(int *)self;
}

START_TEST(both_databases_give_equal_rows)
{
    int n = 0;

    each_line("portable.txt", check_line, &n);
    ck_assert_int_gt(n, 80);
}
END_TEST

/* The names of columns come from the text, so they are equal, and they are those of PostgreSQL. */
START_TEST(columns_have_names_of_their_own)
{
    static const char *const cases[][2] = {
        {"SELECT count(*), count(*), name n, Name, LEFT(name, 3), 1, '1'::int, metadata->>'a' FROM moments m GROUP BY "
         "name, "
         "metadata",
         "count|count_2|n|name|left|?column?|int4|?column?_2"},
        {"SELECT max(created_at) AS \"Last One\", m.name FROM moments AS m GROUP BY m.name", "Last One|name"},
        {"SELECT * FROM (SELECT count(*) FROM moments) AS c", "count"},
        {"SELECT count FROM (SELECT count(*) FROM moments) AS c", "count"},
        {"VALUES (1, 2)", "column1|column2"},
    };

    for (size_t i = 0; i < RV_COUNT(cases); i++) {
        struct rv_rem_sql sql = rewrite(rv_str_of(cases[i][0]), RV_REM_SQLITE);
        rv_buf names = RV_BUF_INIT(65536), got = RV_BUF_INIT(1 << 20);
        run_sqlite(sql.text, &names, &got);
        ck_assert_str_eq(rv_buf_cstr(&names), cases[i][1]);
        rv_buf_fini(&names);
        rv_buf_fini(&got);
        rv_rem_sql_fini(&sql);
    }
}
END_TEST

TCase *portable_case(void)
{
    TCase *c = tcase_create("portable");

    tcase_add_checked_fixture(c, set_up, tear_down);
    tcase_add_test(c, both_databases_give_equal_rows);
    tcase_add_test(c, columns_have_names_of_their_own);
    return c;
}
