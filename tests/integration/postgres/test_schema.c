/* The tables: those of SQLite, made once, brought forward as a whole or not at all. */
#include <pthread.h>
#include <sqlite3.h>

#include "coreengine/store/postgres/postgres_internal.h"
#include "tests/integration/postgres/world.h"

/* --- The tables of both databases, as lines that should be equal --- */

static const struct {
    const char *what, *sqlite, *postgres;
} pictures[] = {
    {"columns",
     "SELECT t.name || '.' || c.name || CASE c.type WHEN 'INTEGER' THEN ' number' ELSE ' bytes' END"
     " || CASE WHEN c.\"notnull\" OR c.pk > 0 THEN ' here' ELSE '' END || CASE WHEN c.pk > 0 THEN ' key ' || c.pk ELSE "
     "''"
     " END FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table' ORDER BY 1",
     "SELECT c.relname || '.' || a.attname || CASE format_type(a.atttypid, -1) WHEN 'bigint' THEN ' number' WHEN 'text'"
     " THEN ' bytes' WHEN 'bytea' THEN ' bytes' ELSE ' of another type' END"
     " || CASE WHEN a.attnotnull THEN ' here' ELSE '' END"
     " || coalesce(' key ' || array_position(i.indkey, a.attnum) + 1, '') FROM pg_class c"
     " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
     " LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary WHERE c.relnamespace = '%s'::regnamespace"
     " AND c.relkind = 'r' AND c.relname NOT IN ('store', 'handles') ORDER BY 1"},
    {"indexes",
     "SELECT t.name || ' (' || (SELECT group_concat(x.name || CASE x.desc WHEN 1 THEN ' desc' ELSE '' END, ', ')"
     " FROM pragma_index_xinfo(l.name) x WHERE x.key = 1) || ')' || CASE l.\"unique\" WHEN 1 THEN ' unique' ELSE ' '"
     " || l.name END || CASE l.partial WHEN 1 THEN ' partial' ELSE '' END FROM sqlite_schema t,"
     " pragma_index_list(t.name) l WHERE t.type = 'table' AND l.origin <> 'pk' ORDER BY 1",
     "SELECT c.relname || ' (' || (SELECT string_agg(trim(BOTH '\"' FROM pg_get_indexdef(i.indexrelid, k, false))"
     " || CASE WHEN i.indoption[k - 1] & 1 = 1 THEN ' desc' ELSE '' END, ', ' ORDER BY k)"
     " FROM generate_series(1, i.indnkeyatts) k) || ')' || CASE WHEN i.indisunique THEN ' unique' ELSE ' '"
     " || x.relname END || CASE WHEN i.indpred IS NOT NULL THEN ' partial' ELSE '' END FROM pg_index i"
     " JOIN pg_class c ON c.oid = i.indrelid JOIN pg_class x ON x.oid = i.indexrelid"
     " WHERE c.relnamespace = '%s'::regnamespace AND NOT i.indisprimary"
     " AND c.relname NOT IN ('store', 'handles') ORDER BY 1"},
    {"references",
     "SELECT t.name || '.' || f.\"from\" || ' to ' || f.\"table\" || ' ' || f.on_delete FROM sqlite_schema t,"
     " pragma_foreign_key_list(t.name) f WHERE t.type = 'table' ORDER BY 1",
     "SELECT c.relname || '.' || a.attname || ' to ' || r.relname || ' ' || CASE k.confdeltype WHEN 'c' THEN 'CASCADE'"
     " ELSE 'NO ACTION' END FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_class r"
     " ON r.oid = k.confrelid JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.conkey[1]"
     " WHERE k.contype = 'f' AND c.relnamespace = '%s'::regnamespace ORDER BY 1"},
};

static char *ask_sqlite(const char *path, const char *sql)
{
    rv_buf out = RV_BUF_INIT(1 << 20);
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;

    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
    while (sqlite3_step(stmt) == SQLITE_ROW)
        rv_buf_printf(&out, "%s%s", out.len ? "\n" : "", (const char *)sqlite3_column_text(stmt, 0));
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return rv_buf_steal(&out, NULL);
}

static char *ask_postgres(struct world *w, const char *sql)
{
    const char *mark = strstr(sql, "%s");
    rv_buf text = RV_BUF_INIT(1 << 16);

    rv_buf_add(&text, sql, (size_t)(mark - sql));
    rv_buf_printf(&text, "%s%s", strstr(w->url, "schema=") + 7, mark + 2);
    char *out = rv_kit_postgres_sql(w->server, rv_buf_cstr(&text));
    rv_buf_fini(&text);
    return out;
}

/* Print what stands in one of them only. */
static int print_lines(const char *what, const char *these, const char *those, const char *where)
{
    int n = 0;

    for (const char *at = these; *at;) {
        size_t len = strcspn(at, "\n");
        rv_buf line = RV_BUF_INIT(1000);
        rv_buf_printf(&line, "%.*s", (int)len, at);
        bool is_there = false;
        for (const char *hit = those; (hit = strstr(hit, rv_buf_cstr(&line))) && !is_there; hit++)
            is_there = (hit == those || hit[-1] == '\n') && (hit[len] == '\n' || !hit[len]);
        if (!is_there) {
            fprintf(stderr, "%s, %s only: %s\n", what, where, rv_buf_cstr(&line));
            n++;
        }
        rv_buf_fini(&line);
        at += len + (at[len] == '\n');
    }
    return n;
}

/* An index of SQLite ends with the key of the row, and none says so; in PostgreSQL it is a column like others. */
static void drop_keys(char *indexes)
{
    static const char mark[] = ", key)";

    for (char *at = indexes; (at = strstr(at, mark));)
        memmove(at, at + sizeof mark - 2, strlen(at + sizeof mark - 2) + 1);
}

START_TEST(tables_columns_and_indexes_are_those_of_sqlite)
{
    struct world world, *w = &world;
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "store.db");
    rv_store *s = NULL;
    int n = 0;

    world_open(w, NULL);
    OK(rv_store_open(path, &(struct rv_store_opts){.sync = RV_STORE_SYNC_OFF}, &s, &w->err));
    rv_store_close(s);
    for (size_t i = 0; i < RV_COUNT(pictures); i++) {
        char *here = ask_sqlite(path, pictures[i].sqlite), *there = ask_postgres(w, pictures[i].postgres);
        ck_assert_uint_gt(strlen(here), 100);
        drop_keys(there);
        n += print_lines(pictures[i].what, here, there, "SQLite");
        n += print_lines(pictures[i].what, there, here, "PostgreSQL");
        free(here);
        free(there);
    }
    ck_assert_int_eq(n, 0);
    free(path);
    rv_kit_tmpdir_remove(dir);
    world_close(w);
}
END_TEST

/* --- Versions --- */

static void run_sql(struct world *w, const char *format)
{
    free(ask_postgres(w, format));
}

/* What a later version of the program would bring. */
static int bring_forward(struct world *w, const char *step_1, const char *step_2, bool read_only)
{
    const char *steps[RV_POSTGRES_SCHEMA + 2];
    const struct rv_store_opts opts = {.busy_ms = 1000, .read_only = read_only};
    struct sql_store *st = NULL;

    memcpy(steps, postgres_schema, sizeof postgres_schema);
    steps[RV_POSTGRES_SCHEMA] = step_1;
    steps[RV_POSTGRES_SCHEMA + 1] = step_2;
    OK(postgres_open(w->url, w->url, &opts, &st, &w->err));
    int rc = store_pg_bring_forward((struct postgres *)st, steps, (int)RV_COUNT(steps), false, &w->err);
    sql_close(st);
    return rc;
}

START_TEST(an_older_schema_comes_forward_with_what_it_holds)
{
    struct world world, *w = &world;
    rv_store *s = NULL;

    world_open(w, NULL);
    OK(world_create(w, w->s, "r1", &w->err));
    FAILS(RV_E_VERSION, "this program reads version", "for writing",
          bring_forward(w, "ALTER TABLE runs ADD COLUMN note TEXT", "CREATE TABLE extra (x TEXT)", true));
    FAILS(RV_E_IO, "from schema version", NULL,
          bring_forward(w, "ALTER TABLE runs ADD COLUMN note TEXT", "INSERT INTO nowhere VALUES (1)", false));
    OK(rv_store_open(w->url, NULL, &s, &w->err)); /* no step was taken */
    rv_store_close(s);
    OK(bring_forward(w, "ALTER TABLE runs ADD COLUMN note TEXT", "CREATE TABLE extra (x TEXT)", false));
    FAILS(RV_E_VERSION, "this program knows versions up to", "newer program", rv_store_open(w->url, NULL, &s, &w->err));
    FAILS(RV_E_VERSION, "this program knows versions up to", NULL,
          rv_store_open(w->url, &(struct rv_store_opts){.read_only = true}, &s, &w->err));
    rv_buf sql = RV_BUF_INIT(100);
    rv_buf_printf(&sql, "UPDATE %%s.store SET version = %d", RV_POSTGRES_SCHEMA);
    run_sql(w, rv_buf_cstr(&sql));
    rv_buf_fini(&sql);
    run_sql(w, "SELECT note FROM %s.runs");
    OK(rv_store_open(w->url, NULL, &s, &w->err));
    rv_store_close(s);
    ck_assert_int_eq(world_count(w, "r1"), 1);
    world_close(w);
}
END_TEST

START_TEST(a_store_that_is_not_there_is_made_by_a_writer_alone)
{
    static const struct rv_store_opts opts[] = {{.must_exist = true}, {.read_only = true}};
    struct world world, *w = &world;
    rv_store *s = NULL;

    world_open(w, NULL);
    char *url = rv_kit_postgres_url(w->server);
    for (size_t i = 0; i < RV_COUNT(opts); i++)
        FAILS(RV_E_NOT_FOUND, "no store was made", NULL, rv_store_open(url, &opts[i], &s, &w->err));
    rv_buf sql = RV_BUF_INIT(200);
    rv_buf_printf(&sql, "SELECT count(*) FROM pg_namespace WHERE nspname = '%s'", strstr(url, "schema=") + 7);
    char *n = rv_kit_postgres_sql(w->server, rv_buf_cstr(&sql));
    ck_assert_str_eq(n, "0");
    OK(rv_store_open(url, NULL, &s, &w->err));
    rv_store_close(s);
    for (size_t i = 0; i < RV_COUNT(opts); i++) {
        OK(rv_store_open(url, &opts[i], &s, &w->err));
        rv_store_close(s);
    }
    free(n);
    rv_buf_fini(&sql);
    free(url);
    world_close(w);
}
END_TEST

START_TEST(tables_of_another_program_are_left_alone)
{
    struct world world, *w = &world;
    rv_store *s = NULL;

    world_open(w, NULL);
    free(rv_kit_postgres_sql(w->server, "CREATE SCHEMA IF NOT EXISTS theirs; CREATE TABLE theirs.runs (x TEXT)"));
    const char *schema = strstr(w->url, "schema=");
    rv_buf url = RV_BUF_INIT(300);
    rv_buf_printf(&url, "%.*sschema=theirs", (int)(schema - w->url), w->url);
    FAILS(RV_E_INVALID, "tables of another program", "?schema=", rv_store_open(rv_buf_cstr(&url), NULL, &s, &w->err));
    char *n =
        rv_kit_postgres_sql(w->server, "SELECT count(*) FROM pg_class WHERE relnamespace = 'theirs'::regnamespace");
    ck_assert_str_eq(n, "1");
    free(n);
    rv_buf_fini(&url);
    world_close(w);
}
END_TEST

START_TEST(a_database_that_lacks_characters_is_refused_before_a_table_is_made)
{
    struct world world, *w = &world;
    rv_store *s = NULL;

    world_open(w, NULL);
    free(rv_kit_postgres_sql(w->server, "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"));
    const char *behind = strstr(w->url, "?");
    rv_buf url = RV_BUF_INIT(300);
    rv_buf_printf(&url, "postgres:///latin%s", behind);
    for (int i = 0; i < 2; i++) /* nothing is left of the first attempt that would be taken for a store */
        FAILS(RV_E_INVALID, "the encoding of the database is LATIN1", "--encoding=UTF8",
              rv_store_open(rv_buf_cstr(&url), NULL, &s, &w->err));
    FAILS(RV_E_NOT_FOUND, "no store was made", NULL,
          rv_store_open(rv_buf_cstr(&url), &(struct rv_store_opts){.must_exist = true}, &s, &w->err));
    free(rv_kit_postgres_sql(w->server, "DROP DATABASE latin"));
    rv_buf_fini(&url);
    world_close(w);
}
END_TEST

static void *open_it(void *self)
{
    const struct rv_store_opts opts = {.busy_ms = 30000};
    rv_store *s = NULL;
    rv_err *err = NULL;
    int rc = rv_store_open(self, &opts, &s, &err);

    rv_store_close(s);
    char *text = rc < 0 ? rv_kit_err_take(err) : NULL;
    return text;
}

START_TEST(several_that_come_first_make_one_store)
{
    struct world world, *w = &world;
    pthread_t threads[6];

    world_open(w, NULL);
    for (int round = 0; round < 4; round++) {
        char *url = rv_kit_postgres_url(w->server);
        for (size_t i = 0; i < RV_COUNT(threads); i++)
            ck_assert_int_eq(pthread_create(&threads[i], NULL, open_it, url), 0);
        for (size_t i = 0; i < RV_COUNT(threads); i++) {
            void *why = NULL;
            pthread_join(threads[i], &why);
            ck_assert_msg(!why, "%s", (char *)why);
        }
        free(url);
    }
    world_close(w);
}
END_TEST

Suite *schema_suite(void)
{
    Suite *suite = suite_create("schema");
    TCase *tc = tcase_create("schema");

    tcase_add_test(tc, tables_columns_and_indexes_are_those_of_sqlite);
    tcase_add_test(tc, an_older_schema_comes_forward_with_what_it_holds);
    tcase_add_test(tc, a_store_that_is_not_there_is_made_by_a_writer_alone);
    tcase_add_test(tc, tables_of_another_program_are_left_alone);
    tcase_add_test(tc, a_database_that_lacks_characters_is_refused_before_a_table_is_made);
    tcase_add_test(tc, several_that_come_first_make_one_store);
    suite_add_tcase(suite, tc);
    return suite;
}
