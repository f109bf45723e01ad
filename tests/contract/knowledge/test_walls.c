/* The walls behind the gate: statements that it would not let through are given to the store as if it had. */
#include "tests/contract/knowledge/people.h"
#include "tests/contract/store/behind.h"

static const char *const hostile[] = {
    "SELECT name FROM entities",
    "SELECT * FROM records",
    "SELECT body FROM (SELECT body FROM records) AS r",
    "SELECT hash FROM api_keys",
    "WITH x AS (SELECT * FROM runs) SELECT * FROM x",
    "WITH RECURSIVE x(a) AS (SELECT owner FROM runs UNION SELECT a FROM x) SELECT a FROM x",
    "SELECT (SELECT max(payload) FROM tasks) FROM moments",
    "SELECT name FROM moments UNION SELECT name FROM main.entities",
    "SELECT name FROM moments WHERE EXISTS (SELECT 1 FROM secrets.entities)",
    "SELECT name FROM moments; SELECT name FROM moments",
    "SELECT name FROM moments; DELETE FROM entities",
    "DELETE FROM entities",
    "UPDATE entities SET name = 'x'",
    "INSERT INTO entities SELECT * FROM entities",
    "WITH gone AS (DELETE FROM entities RETURNING name) SELECT name FROM gone",
    "DROP TABLE entities",
    "ATTACH DATABASE '/tmp/x.db' AS x",
    "DETACH DATABASE main",
    "PRAGMA user_version",
    "PRAGMA writable_schema = ON",
    "PRAGMA journal_mode = DELETE",
    "VACUUM INTO '/tmp/x.db'",
    "SELECT sql FROM sqlite_master",
    "SELECT sql FROM sqlite_schema",
    "SELECT * FROM sqlite_temp_master",
    "SELECT * FROM dbstat",
    "SELECT * FROM pragma_table_info('runs')",
    "SELECT * FROM pragma_database_list",
    "SELECT load_extension('/tmp/x.so')",
    "SELECT readfile('/etc/passwd')",
    "SELECT writefile('/tmp/x', 'x')",
    "SELECT randomblob(9)",
    "SELECT zeroblob(900000000)",
    "SELECT * FROM json_tree('{}')",
    "SELECT * FROM generate_series(1, 9)",
    "SELECT * FROM pg_class",
    "SELECT * FROM pg_catalog.pg_authid",
    "SELECT * FROM \"pg_catalog\".\"pg_class\"",
    "SELECT table_name FROM information_schema.tables",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT \"pg_read_file\"('/etc/passwd')",
    "SELECT pg_catalog.pg_read_file('/etc/passwd')",
    "SELECT pg_ls_dir('/')",
    "SELECT pg_sleep(9)",
    "SELECT pg_terminate_backend(1)",
    "SELECT query_to_xml('SELECT 1', true, true, '')",
    "SELECT query_to_xml(name, true, true, '') FROM moments",
    "SELECT a, query_to_xml(b) AS x FROM moments",
    "SELECT schema_to_xml('public', true, true, '')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT lo_get(1)",
    "SELECT current_setting('data_directory')",
    "SELECT set_config('search_path', 'public', false)",
    "SELECT dblink('', 'SELECT 1')",
    "SELECT public.lower(name) FROM moments",
    "SELECT m.query_to_xml(name) FROM moments AS m",
    "SELECT E'\\'' OR name FROM moments --'",
    "SELECT U&'\\0061'",
    "SELECT U&\"n\\0061me\" FROM moments",
    "SELECT name /* " HIDDEN " */ FROM entities",
    "SELECT name FROM moments -- \n UNION SELECT name FROM entities",
    "SELECT name AS \"x FROM moments",
    "SELECT 'x FROM moments",
    "TABLE entities",
    "COPY entities TO '/tmp/x'",
    "COPY (SELECT 1) TO PROGRAM 'true'",
    "DO $$ BEGIN END $$",
    "SET search_path = public",
    "SET ROLE postgres",
    "EXPLAIN ANALYZE DELETE FROM entities",
    "LISTEN x",
    "COMMIT",
    "ROLLBACK; SELECT 1",
};

static int note_row(void *self, const struct rv_cell *cells, size_t n, rv_err **err)
{
    (void)err;
    for (size_t i = 0; i < n; i++)
        if (cells[i].type == RV_CELL_TEXT)
            rv_buf_printf(self, "%.*s ", RV_STR_ARG(cells[i].text));
    return 0;
}

static int ask_raw(struct world *w, const char *text, rv_buf *rows, rv_err **err)
{
    const struct rv_rem_sql sql = {.text = rv_str_of(text)};
    const struct rv_store_ask ask = {.sql = &sql,
                                     .max_rows = 100,
                                     .max_ms = 2000,
                                     .max_cell = 1000,
                                     .max_bytes = 100000,
                                     .on_row = note_row,
                                     .self = rows};
    struct rv_store_asked asked;

    return rv_store_ask(w->s, &ada, &ask, &asked, err);
}

static void is_refused(struct world *w, const char *text)
{
    rv_buf rows = RV_BUF_INIT(1 << 20);
    rv_err *err = NULL;
    int rc = ask_raw(w, text, &rows, &err);

    ck_assert_msg(rc == RV_E_INVALID, "%s: %s: %d (%s), %s", w->impl->name, text, rc, rv_err_text(err),
                  rv_buf_cstr(&rows));
    ck_assert_uint_eq(rows.len, 0);
    rv_err_free(err);
    rv_buf_fini(&rows);
}

START_TEST(a_statement_that_got_past_the_gate_reads_nothing)
{
    struct world world, *w = &world;
    rv_buf rows = RV_BUF_INIT(1 << 20), named = RV_BUF_INIT(1000);
    const char *schema;

    world_open(w, _i);
    fill_seen(w);
    fill_hidden(w);
    make_run(w, "r");
    for (size_t i = 0; i < RV_COUNT(hostile); i++)
        is_refused(w, hostile[i]);
    if ((schema = strstr(w->url, "schema=")) != NULL) {
        static const char *const tables[] = {"%s.entities", "\"%s\".\"messages\"", "%s . sessions", "%s.records"};
        is_refused(w, "SELECT $1"); /* to SQLite the tenant that asks */
        is_refused(w, "SELECT $$x$$");
        is_refused(w, "SELECT $x$ x $x$");
        schema += strlen("schema=");
        for (size_t i = 0; i < RV_COUNT(tables); i++) {
            rv_buf_clear(&named);
            rv_buf_puts(&named, "SELECT * FROM moments, ");
            const char *mark = strstr(tables[i], "%s");
            rv_buf_add(&named, tables[i], (size_t)(mark - tables[i]));
            rv_buf_printf(&named, "%s%s AS x", schema, mark + 2);
            is_refused(w, rv_buf_cstr(&named));
        }
    }
    OK(ask_raw(w,
               "WITH x (a, b) AS (SELECT name, summary FROM moments) SELECT x.a, upper(b) FROM x WHERE a IN ('k', 'x')",
               &rows, &w->err));
    OK(ask_raw(w, "SELECT name, summary FROM moments", &rows, &w->err));
    ck_assert_uint_gt(rows.len, 0);
    ck_assert_msg(!strstr(rv_buf_cstr(&rows), HIDDEN), "%s", rv_buf_cstr(&rows));
    rv_buf_fini(&rows);
    rv_buf_fini(&named);
    world_close(w);
}
END_TEST

/* A server, a database or a role can have other settings: a backslash would end no string where the gate sees its end.
 */
START_TEST(settings_of_a_database_change_no_statement)
{
    static const char *const settings[] = {"standard_conforming_strings%3Doff", "transform_null_equals%3Don",
                                           "extra_float_digits%3D-15"};
    static const char *const statements[] = {
        "SELECT length(E'a\\\\b'), E'\\\\' AS c, 0.1 + 0.2 AS sum, count(*) AS n FROM moments WHERE category = NULL",
        "SELECT name FROM moments WHERE name = E'\\\\' OR name = ' UNION SELECT name FROM entities' ORDER BY name"};
    struct world world, *w = &world;
    char url[600];

    world_open(w, _i);
    fill_seen(w);
    fill_hidden(w);
    rv_store *plain = w->s;
    for (size_t k = 0; k < RV_COUNT(settings) && !w->impl->scheme; k++) {
        const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
        rv_store *other = NULL;
        snprintf(url, sizeof url, "%s&options=-c%%20%s", w->url, settings[k]);
        OK(rv_store_open(url, &opts, &other, &w->err));
        for (size_t i = 0; i < RV_COUNT(statements); i++) {
            char *want = ask(w, &ada, statements[i], NULL);
            w->s = other;
            char *got = ask(w, &ada, statements[i], NULL);
            w->s = plain;
            ck_assert_msg(got[0] == '{' && strcmp(got, want) == 0, "%s: %s:\n%s\nnot\n%s", settings[k], statements[i],
                          got, want);
            free(got);
            free(want);
        }
        rv_store_close(other);
    }
    world_close(w);
}
END_TEST

Suite *walls_suite(void)
{
    Suite *s = suite_create("walls");
    TCase *tc = tcase_create("walls");

    ADD(tc, a_statement_that_got_past_the_gate_reads_nothing);
    ADD(tc, settings_of_a_database_change_no_statement);
    suite_add_tcase(s, tc);
    return s;
}
