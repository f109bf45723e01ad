/* Every statement of the store finds its rows by an index, in a store of 20,000 runs and 200,000 records, so that it
 * takes as long in one of a million. What does not is listed with its reason. */
#include "coreengine/store/postgres/postgres_internal.h"
#include "coreengine/store/sqlite/sqlite_internal.h"
#include "coreengine/store/store_internal.h"
#include "tests/bench/scale_fill.h"
#include "tests/kit/kit.h"
#include "tests/kit/postgres.h"
#include "tests/kit/suites.h"

#include <check.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS    20000
#define RECORDS 10

/* Tables that grow with the number of runs, or of what is known. The others have a row for each tenant, class, worker
 * or agent. */
static const char *const large[] = {"runs",     "records", "blobs",       "pending",    "snapshots", "sessions",
                                    "messages", "tasks",   "task_events", "interrupts", "usage",     "rates",
                                    "entities", "keys",    "tokens",      "vectors",    "embeddings"};

/* Statements that may read such a table from end to end. */
static const struct {
    const char *name, *why;
    const char *only; /* one of the databases; NULL: both */
} exceptions[] = {
    {"STATS", "counts every row; it is asked for by people and checks, never by a run", NULL},
    {"PRUNE_USAGE", "finds its rows by an index; without the limit's value it joins them by a scan", "PostgreSQL"},
    {"PRUNE_RATES", "the same", "PostgreSQL"},
    {"DROP_KEYS", "a reindex reads every row", NULL},
    {"DROP_ALL_TOKENS", "the same", NULL},
    {"DROP_VECTORS_OF", "the same", NULL},
    {"DROP_LOST_VECTORS", "the same", NULL},
    {"DROP_LOST_EMBEDDINGS", "the same", NULL},
    {"PURGE_TOKENS", "a sweep looks for rows that are gone", NULL},
    {"PURGE_VECTORS", "the same", NULL},
    {"PURGE_EMBEDDINGS", "the same", NULL},
    {"QUEUE_EMBEDDINGS", "compares every row with its vector, when `reeve embed` begins", NULL},
    {"REQUEUE_EMBEDDINGS", "another provider embeds every row", NULL},
    {"VECTOR_TOKENS", "without the mark's value a third of the rows has changed, and is joined by a scan",
     "PostgreSQL"},
    {"PENDING_EMBEDDINGS", "reads what is queued, the oldest first; figures do not tell how few wait", NULL},
};

static const struct {
    const char *name, *text;
} statements[] = {
#define X(name, text) {#name, text},
    RV_SQL_STATEMENTS(X)
#undef X
};

static bool is_excepted(const char *name, const char *database)
{
    for (size_t i = 0; i < RV_COUNT(exceptions); i++)
        if (strcmp(exceptions[i].name, name) == 0)
            return !exceptions[i].only || strcmp(exceptions[i].only, database) == 0;
    return false;
}

static bool has_plan(const char *text)
{
    static const char *const kinds[] = {"SELECT", "UPDATE", "DELETE", "INSERT", "WITH"};

    for (size_t i = 0; i < RV_COUNT(kinds); i++)
        if (strncmp(text, kinds[i], strlen(kinds[i])) == 0)
            return true;
    return false;
}

/* --- What is known: rows of 20 tenants and 200 users, as their writers leave them --- */

#define ROWS "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
#define KIND "CASE WHEN i % 2 = 0 THEN 'moments' ELSE 'resources' END"
#define HERE "'tenant' || (i % 20), 'user' || (i % 200)"

static const char *const known[] = {
    ROWS " INSERT INTO entities (key, id, kind, tenant_id, user_id, name, about, fields, metadata, tags, graph_edges,"
         " created_us, updated_us, deleted_us) SELECT i, 'id' || i, " KIND ", " HERE ", 'name ' || (i % 5000),"
         " 'session' || (i % 3000), '{}', '{}', '[]', '[]', i, i, CASE WHEN i % 500 = 7 THEN i END FROM n",
    ROWS " INSERT INTO keys (key, kind, row, tenant_id, user_id, entity_key, entity_id, summary, updated_us)"
         " SELECT i, " KIND ", i, " HERE ", 'name-' || (i % 5000), 'id' || i, 'a summary', i FROM n"
         " WHERE i % 500 <> 7",
    ROWS " INSERT INTO tokens (key, kind, row, tenant_id, user_id, id, created_us, is_gone, hash, n_words, change)"
         " SELECT i, " KIND ", i, " HERE ", 'id' || i, i, CASE WHEN i % 500 = 7 THEN 1 ELSE 0 END, 'hash' || i, 5, i"
         " FROM n",
    ROWS " INSERT INTO vectors (key, kind, row, provider, dims, hash, vector, created_us) SELECT i, " KIND
         ", i, 'hash-ngram', 1, 'hash' || i, @bytes, i FROM n WHERE i % 500 <> 7",
    ROWS " INSERT INTO embeddings (key, kind, row, tenant_id, status, attempts, claimed_us, created_us) SELECT i, " KIND
         ", i, 'tenant' || (i % 20), CASE WHEN i % 50 = 0 THEN 'pending' ELSE 'failed' END, 3, 0, i FROM n"
         " WHERE i % 500 <> 7",
};

static void fill_known(struct sql_store *st)
{
    for (size_t i = 0; i < RV_COUNT(known); i++) {
        rv_buf sql = RV_BUF_INIT(4096);
        const char *at = strstr(known[i], "@bytes");
        rv_buf_printf(&sql, "%.*s", at ? (int)(at - known[i]) : (int)strlen(known[i]), known[i]);
        if (at)
            rv_buf_printf(&sql, "%s%s", st->driver->reads_pages ? "'\\x0000803f'" : "x'0000803f'",
                          at + strlen("@bytes"));
        scale_run(st, rv_buf_cstr(&sql));
        rv_buf_fini(&sql);
    }
}

/* --- SQLite: EXPLAIN QUERY PLAN; "SCAN r" names a table by its alias --- */

/* An alias stands behind its table in the statement: "runs r", "tasks AS t". */
static bool is_large(const char *sql, const char *name, size_t len)
{
    for (size_t i = 0; i < RV_COUNT(large); i++) {
        char with[80];
        if (strlen(large[i]) == len && strncmp(large[i], name, len) == 0)
            return true;
        snprintf(with, sizeof with, "%s %.*s", large[i], (int)len, name);
        const char *at = strstr(sql, with);
        if (at && strchr(" ,)", at[strlen(with)]))
            return true;
        snprintf(with, sizeof with, "%s AS %.*s", large[i], (int)len, name);
        if (strstr(sql, with))
            return true;
    }
    return false;
}

/* Through a partial index only some rows are read: those that wait, are due, or have an owner. */
static bool is_partial(sqlite3 *db, const char *plan)
{
    const char *at = strstr(plan, "INDEX ");
    sqlite3_stmt *stmt = NULL;

    if (!at)
        return false;
    ck_assert_int_eq(
        sqlite3_prepare_v2(db, "SELECT sql LIKE '% WHERE %' FROM sqlite_schema WHERE name = ?1", -1, &stmt, NULL),
        SQLITE_OK);
    sqlite3_bind_text(stmt, 1, at + 6, (int)strcspn(at + 6, " "), SQLITE_STATIC);
    bool is = sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_int(stmt, 0);
    sqlite3_finalize(stmt);
    return is;
}

static int look_at_sqlite(sqlite3 *db, const char *name, const char *sql)
{
    rv_buf text = RV_BUF_INIT(20000);
    sqlite3_stmt *stmt = NULL;
    int n = 0;

    rv_buf_printf(&text, "EXPLAIN QUERY PLAN %s", sql);
    ck_assert_msg(sqlite3_prepare_v2(db, rv_buf_cstr(&text), -1, &stmt, NULL) == SQLITE_OK, "%s: %s", name,
                  sqlite3_errmsg(db));
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        const char *plan = (const char *)sqlite3_column_text(stmt, 3);
        if (strncmp(plan, "SCAN ", 5) != 0 || !is_large(sql, plan + 5, strcspn(plan + 5, " ")) || is_partial(db, plan))
            continue;
        n++;
        if (!is_excepted(name, "SQLite"))
            fprintf(stderr, "SQLite, %s: %s\n", name, plan);
    }
    sqlite3_finalize(stmt);
    rv_buf_fini(&text);
    return is_excepted(name, "SQLite") ? 0 : n;
}

static int look_at_file(const char *path)
{
    sqlite3 *db = NULL;
    int n = 0;

    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    for (size_t i = 0; i < RV_COUNT(statements); i++)
        if (has_plan(statements[i].text))
            n += look_at_sqlite(db, statements[i].name, statements[i].text);
    sqlite3_close(db);
    return n;
}

START_TEST(sqlite_reads_no_large_table_from_end_to_end)
{
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "store.db");

    scale_fill(path, RUNS, RECORDS, false);
    struct sql_store *st = scale_open(path);
    fill_known(st);
    ck_assert_int_eq(look_at_file(path), 0); /* as it is in use: SQLite gathers no figures by itself */
    scale_run(st, "ANALYZE");
    sql_close(st);
    ck_assert_int_eq(look_at_file(path), 0);
    free(path);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

/* --- What a server lists of a session, whose statement is written for what is asked --- */

static const unsigned listed[] = {0,
                                  1u << RV_RUN_READY | 1u << RV_RUN_RUNNING,
                                  1u << RV_RUN_RUNNING,
                                  1u << RV_RUN_INTERRUPTED,
                                  1u << RV_RUN_INTERRUPTED | 1u << RV_RUN_RUNNING,
                                  1u << RV_RUN_COMPLETED,
                                  1u << RV_RUN_COMPLETED | 1u << RV_RUN_FAILED};

static int count_step(void *self)
{
    ++*(int64_t *)self;
    return 0;
}

static int count_run(void *self, const struct rv_run_row *row, rv_err **err)
{
    (void)err;
    ck_assert_str_eq(row->session, "session100");
    ++*(int64_t *)self;
    return 0;
}

START_TEST(a_list_of_runs_of_a_session_does_not_read_those_of_a_tenant)
{
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    const struct rv_store_scope scope = {"default", "user1000"};
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "store.db");
    int64_t n_runs = 0;
    rv_store *s = NULL;

    scale_fill(path, RUNS, 1, false);
    ck_assert_int_eq(rv_store_open(path, &opts, &s, NULL), 0);
    for (size_t i = 0; i < RV_COUNT(listed); i++) {
        const struct rv_run_filter filter = {.session = "session100", .statuses = listed[i], .limit = 100};
        int64_t n_steps = 0;
        sqlite3 *db = ((struct sqlite *)s->sql)->link->db;
        sqlite3_progress_handler(db, 1, count_step, &n_steps);
        ck_assert_int_eq(rv_store_list_runs(s, &scope, &filter, count_run, &n_runs, NULL), 0);
        sqlite3_progress_handler(db, 0, NULL, NULL);
        ck_assert_msg(n_steps < 1000, "%zu: %lld instructions", i, (long long)n_steps);
    }
    ck_assert_int_gt(n_runs, 0);
    rv_store_close(s);
    free(path);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

/* --- PostgreSQL: EXPLAIN of the plan that serves every value --- */

/* PREPARE x AS ...; EXPLAIN EXECUTE x(NULL, ...), without the cursor that a walk has around it. */
static void put_explain(struct postgres_stmt *stmt, const char *schema, rv_buf *out)
{
    static const char cursor[] = "DECLARE walk NO SCROLL CURSOR FOR ";
    const char *text = stmt->text;

    if (strncmp(text, cursor, strlen(cursor)) == 0)
        text += strlen(cursor);
    rv_buf_printf(out, "SET search_path = %s; SET plan_cache_mode = force_generic_plan; PREPARE x ", schema);
    for (int i = 0; i < stmt->n_params; i++) { /* the driver names all types; here some cannot be told by their use */
        char null[40], sum[40], time[40];
        snprintf(null, sizeof null, "$%d IS NULL", i + 1);
        snprintf(sum, sizeof sum, "$%d + $", i + 1);
        snprintf(time, sizeof time, "_us = COALESCE($%d,", i + 1);
        bool is_number = strstr(text, sum) || strstr(text, time);
        rv_buf_printf(out, "%s%s", i ? ", " : "(", is_number ? "bigint" : strstr(text, null) ? "text" : "unknown");
    }
    rv_buf_printf(out, "%s AS %s; EXPLAIN EXECUTE x", stmt->n_params ? ")" : "", text);
    for (int i = 0; i < stmt->n_params; i++)
        rv_buf_printf(out, "%sNULL", i ? ", " : "(");
    rv_buf_puts(out, stmt->n_params ? ")" : "");
}

static bool is_large_name(const char *name)
{
    for (size_t i = 0; i < RV_COUNT(large); i++)
        if (strncmp(name, large[i], strlen(large[i])) == 0 && strchr(" \n", name[strlen(large[i])]))
            return true;
    return false;
}

static int complain(const char *name, const char *at, const char *plan)
{
    if (is_excepted(name, "PostgreSQL"))
        return 0;
    fprintf(stderr, "PostgreSQL, %s: %.*s\n%s\n", name, (int)strcspn(at, "\n"), at, plan);
    return 1;
}

/* An index that is not partial, and read without a condition, is read from end to end as well. */
static bool is_whole_index(const char *at, const char *partial)
{
    const char *next = strchr(at, '\n'), *on = strstr(at, " on ");
    char index[100];

    if (!on || !is_large_name(on + 4) || (next && strncmp(next + 1 + strspn(next + 1, " "), "Index Cond:", 11) == 0))
        return false;
    snprintf(index, sizeof index, " %.*s ", (int)strcspn(at, " "), at);
    return !strstr(partial, index);
}

static int look_at_plan(const char *name, const char *plan, const char *partial)
{
    static const char seq[] = "Seq Scan on ", by[] = " using ";
    int n = 0;

    for (const char *at = plan; (at = strstr(at, seq)); at++)
        if (is_large_name(at + strlen(seq)))
            n += complain(name, at, plan);
    for (const char *at = plan; (at = strstr(at, by)); at++)
        if (is_whole_index(at + strlen(by), partial))
            n += complain(name, at, plan);
    return n;
}

static int look_at_schema(const struct rv_kit_postgres *server, struct sql_store *st, const char *schema)
{
    char *partial =
        rv_kit_postgres_sql(server, "SELECT ' ' || string_agg(DISTINCT c.relname, ' ') || ' ' FROM pg_index i"
                                    " JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indpred IS NOT NULL AND"
                                    " c.relname <> 'records_by_blob'"); /* many */
    int n = 0;

    for (size_t i = 0; i < RV_COUNT(statements); i++) {
        struct postgres_stmt *stmt = store_pg_stmt((struct postgres *)st, (int)i);
        rv_buf sql = RV_BUF_INIT(20000);
        ck_assert_int_eq(store_pg_translate(stmt, NULL), 0);
        if (!has_plan(statements[i].text))
            continue;
        put_explain(stmt, schema, &sql);
        char *plan = rv_kit_postgres_sql(server, rv_buf_cstr(&sql));
        n += look_at_plan(statements[i].name, plan, partial);
        free(plan);
        rv_buf_fini(&sql);
    }
    free(partial);
    return n;
}

/* The server gathers figures by itself, a minute after many rows came. */
START_TEST(postgresql_reads_no_large_table_from_end_to_end)
{
    const struct rv_kit_postgres *server = rv_kit_postgres();
    char *url = rv_kit_postgres_url(server);

    scale_fill(url, RUNS, RECORDS, false);
    struct sql_store *st = scale_open(url);
    fill_known(st);
    free(rv_kit_postgres_sql(server, "ANALYZE"));
    ck_assert_int_eq(look_at_schema(server, st, strstr(url, "schema=") + 7), 0);
    sql_close(st);
    free(url);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plans");
    TCase *tc = tcase_create("plans");

    rv_kit_postgres();
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, sqlite_reads_no_large_table_from_end_to_end);
    tcase_add_test(tc, a_list_of_runs_of_a_session_does_not_read_those_of_a_tenant);
    tcase_add_test(tc, postgresql_reads_no_large_table_from_end_to_end);
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}
