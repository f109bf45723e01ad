/* The statements that make a large store, in words of both databases. */
#include "tests/bench/scale_fill.h"

#include "coreengine/store/sql/driver_internal.h"
#include "coreengine/store/store.h"
#include "coreengine/store/upkeep/tables_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 10000 /* runs of one transaction */
#define N     "WITH RECURSIVE n(i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)"
#define TIME  "1700000000000000 + i * 1000"
#define RUN   "('env_' || (100000000 + i))"

static void die(const char *what, rv_err *err)
{
    fprintf(stderr, "scale: %s: %s\n", what, err ? rv_err_text(err) : "failed");
    exit(1);
}

struct sql_store *scale_open(const char *url)
{
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    struct sql_store *st = NULL;
    rv_err *err = NULL;

    int rc = rv_store_is_postgres(url) ? postgres_open(url, url, &opts, &st, &err) : sqlite_open(url, &opts, &st, &err);
    if (rc < 0)
        die("open", err);
    return st;
}

/* ?1 and ?2: the first and last run; ?3: records of each; ?4 to ?6: a body, a value, a blob. */
struct step {
    const char *sql;
    bool has_records, has_body, has_value, has_blob;
};

/* What only one of them says: a hash of 32 bytes. */
static const char *hash_of(const struct sql_store *st)
{
    return st->driver->reads_pages ? "decode(md5(CAST(i AS TEXT)) || md5(CAST(-i AS TEXT)), 'hex')" : "randomblob(32)";
}

static const struct step steps[] = {
    {.sql = N " INSERT INTO blobs (key, hash, created_us, data) SELECT i + 1000, @hash, " TIME ", ?6 FROM n"
              " WHERE i % 4 = 0",
     .has_blob = true},
    {.sql = N
     " INSERT INTO runs (key, id, tenant, \"user\", session, pipeline, bundle, parent_seq, status, stage,"
     " created_us, updated_us, expires_us, n_records, owner, fence, lease_until_us, cancel, n_pending, n_open) SELECT "
     "i, " RUN ", CASE WHEN i % 2 = 0 THEN 'default' ELSE 'tenant' || (i % 1000) END, 'user' || (i % 5000),"
     " 'session' || (i / 10), 'p' || (i % 20), CASE WHEN i < 5000 THEN 1 + i % 8 ELSE 1000 + (i - i % 5000) END, 0, "
     "CASE WHEN i % 1000 = 7 THEN 'running'"
     " WHEN i % 100 = 3 THEN 'interrupted' ELSE 'completed' END, 'end', " TIME ", " TIME ", " TIME ", ?3,"
     " CASE WHEN i % 1000 = 7 THEN 'host/boot/' || (i % 50) END, 1, CASE WHEN i % 1000 = 7 THEN " TIME
     " + 15000000 ELSE 0 END, 0, CASE WHEN i % 100 = 3 THEN 1 ELSE 0 END, CASE WHEN i % 100 = 3 THEN 1 ELSE 0 END FROM "
     "n",
     .has_records = true},
    {.sql = N ", r(j) AS (SELECT 1 UNION ALL SELECT j + 1 FROM r WHERE j < ?3) INSERT INTO records (run, seq, kind,"
              " body, value, blob) SELECT i, j, 1, ?4, CASE WHEN j % 5 = 0 THEN ?5 END,"
              " CASE WHEN j = 2 AND i % 4 = 0 THEN i + 1000 END FROM n CROSS JOIN r",
     .has_records = true,
     .has_value = true},
    {.sql = N " INSERT INTO snapshots (run, seq, body) SELECT i, ?3, ?5 FROM n WHERE i % 10 = 3",
     .has_records = true,
     .has_value = true},
    {.sql = N " INSERT INTO pending (run, n, id, kind, stage, text, body, created_us, expires_us) SELECT i, 1,"
              " 'int_' || i, 'confirmation', 'ask', ?4, ?5, " TIME ", 0 FROM n WHERE i % 100 = 3",
     .has_value = true},
    {.sql = N
     " INSERT INTO interrupts (run, id, tenant, \"user\", session, kind, stage, text, status, created_us,"
     " expires_us, ended_us) SELECT i, 'int_' || i, CASE WHEN i % 2 = 0 THEN 'default' ELSE 'tenant' || (i % 1000)"
     " END, 'user' || (i % 5000), 'session' || (i / 10), 'confirmation', 'ask', ?4, 'pending', " TIME
     ", 0, 0 FROM n WHERE i % 100 = 3",
     .has_body = true},
    {.sql =
         N " INSERT INTO usage (key, tenant, is_tenants, \"user\", kind, span, start_us, end_us, used, reserved) SELECT"
           " i, 'tenant' || (i % 1000), 0, 'user' || i, 'tokens', 'day', " TIME ", " TIME " + 86400000000, 1, 0 FROM n"
           " WHERE i % 10 = 1"},
    {.sql = N
     " INSERT INTO rates (key, tenant, is_tenants, \"user\", kind, span, end_us, head, n0, n1, n2, n3, n4, n5, n6,"
     " n7, n8, n9) SELECT i, 'tenant' || (i % 1000), 0, 'user' || i, 'calls', 'minute', " TIME
     ", 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM n WHERE i % 10 = 1"},
    {.sql =
         N " INSERT INTO sessions (key, id, tenant_id, user_id, name, mode, total_tokens, n_messages, metadata,"
           " created_us, updated_us) SELECT i, 'session' || (i / 10), CASE WHEN i % 20 = 0 THEN 'default' ELSE 'tenant'"
           " || (i % 1000) END, 'user' || (i % 5000), 'a session', 'chat', 100, 4, ?4, " TIME ", " TIME
           " FROM n WHERE i % 10 = 0",
     .has_body = true},
    {.sql =
         N ", r(j) AS (SELECT 1 UNION ALL SELECT j + 1 FROM r WHERE j < 4) INSERT INTO messages (key, session, seq, id,"
           " message_type, content, token_count, created_us) SELECT i * 10 + j, i, j, 'session' || (i / 10) || '-msg-'"
           " || j, CASE WHEN j % 2 = 1 THEN 'user' ELSE 'assistant' END, ?4, 25, " TIME
           " FROM n CROSS JOIN r WHERE i % 10 = 0",
     .has_body = true},
    {.sql =
         N " INSERT INTO tasks (key, id, lane, tenant, \"user\", type, idempotency, payload, status, cancel, priority,"
           " attempt, retry_count, max_retries, n_events, created_us, updated_us, scheduled_us, started_us,"
           " completed_us, worker, claimed_us, lease_until_us) SELECT i, 'task_' || (100000000 + i), 1 + i % 1000,"
           " 'tenant' || (i % 1000), 'user' || (i % 5000), 'run', " RUN
           ", ?4, CASE WHEN i % 1000 = 7 THEN 'processing' WHEN i % 50 = 9 THEN 'pending' WHEN i % 200 = 11"
           " THEN 'waiting' ELSE 'completed' END, 0, 0, 1, 0, 3, 2, " TIME ", " TIME ", " TIME ", " TIME
           ", CASE WHEN i % 1000 = 7 OR i % 50 = 9 OR i % 200 = 11 THEN 0 ELSE " TIME
           " END, CASE WHEN i % 1000 = 7 THEN 'worker' || (i % 50) END, CASE WHEN i % 1000 = 7 THEN " TIME
           " ELSE 0 END, CASE WHEN i % 1000 = 7 THEN " TIME " + 60000000 ELSE 0 END FROM n",
     .has_body = true},
    {.sql =
         N ", r(j) AS (SELECT 1 UNION ALL SELECT j + 1 FROM r WHERE j < 2) INSERT INTO task_events (task, seq, at_us,"
           " kind, attempt, retry, next_us) SELECT i, j, " TIME ", 'enqueued', 0, 0, 0 FROM n CROSS JOIN r"},
};

static const char *const lanes[] = {
    "INSERT INTO classes (id, tier, needs) VALUES (1, 'small', '')",
    "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999) INSERT INTO lanes (key, tenant, "
    "class,"
    " vt, weight, cap, n_pending, n_processing) SELECT i + 1, 'tenant' || i, 1, 0, 1, 1000000, 0, 0 FROM n",
};
static const char count_lanes[] =
    "UPDATE lanes SET n_pending = (SELECT count(*) FROM tasks WHERE lane = lanes.key AND status = 'pending'),"
    " n_processing = (SELECT count(*) FROM tasks WHERE lane = lanes.key AND status = 'processing')";

/* Patience is for databases that end what takes long. */
static int begin(struct sql_store *st, rv_err **err)
{
    int rc = sql_begin_write(st, "fill", err);

    return rc < 0 || !st->driver->be_patient ? rc : st->driver->be_patient(st, err);
}

void scale_run(struct sql_store *st, const char *text)
{
    rv_buf sql = RV_BUF_INIT(16384);
    rv_err *err = NULL;
    int64_t n = 0;

    rv_buf_puts(&sql, text);
    int rc = begin(st, &err);
    rv_sql_stmt *stmt = sql_prepare(st, &sql);
    if (rc == 0)
        rc = sql_end_write(st, sql_run_counted(stmt, &n, "fill", &err), "fill", &err);
    if (rc < 0)
        die(text, err);
    sql_finish(stmt);
    rv_buf_fini(&sql);
}

static rv_sql_stmt *prepare(struct sql_store *st, const struct step *step)
{
    const char *mark = strstr(step->sql, "@hash");
    rv_buf sql = RV_BUF_INIT(16384);

    rv_buf_add(&sql, step->sql, mark ? (size_t)(mark - step->sql) : strlen(step->sql));
    if (mark)
        rv_buf_printf(&sql, "%s%s", hash_of(st), mark + strlen("@hash"));
    rv_sql_stmt *stmt = sql_prepare(st, &sql);
    rv_buf_fini(&sql);
    return stmt;
}

static void fill_batch(struct sql_store *st, rv_sql_stmt *const *stmts, int64_t first, int64_t last, int64_t n_records)
{
    static char text[2000];
    rv_err *err = NULL;
    int64_t n = 0;

    memset(text, 'x', sizeof text);
    int rc = begin(st, &err);
    for (size_t i = 0; i < RV_COUNT(steps) && rc == 0; i++) {
        sql_int(stmts[i], 1, first);
        sql_int(stmts[i], 2, last);
        if (steps[i].has_records)
            sql_int(stmts[i], 3, n_records);
        if (steps[i].has_body || steps[i].has_value)
            sql_str(stmts[i], 4, (rv_str){text, SCALE_BODY}); /* SQLite counts ?4 where there is a ?5 */
        if (steps[i].has_value)
            sql_str(stmts[i], 5, (rv_str){text, 600});
        if (steps[i].has_blob)
            sql_blob(stmts[i], 6, text, 1200);
        rc = sql_run_counted(stmts[i], &n, "fill", &err);
    }
    rc = sql_end_write(st, rc, "fill", &err);
    if (rc < 0)
        die("fill", err);
}

static void put_bundles(const char *url)
{
    rv_store *s = NULL;
    rv_err *err = NULL;
    char hash[RV_HASH_MAX], text[40];

    if (rv_store_open(url, NULL, &s, &err) < 0)
        die("open", err);
    for (int i = 0; i < 8; i++) {
        snprintf(text, sizeof text, "bundle %d", i);
        if (rv_store_put_blob(s, rv_str_of(text), hash, &err) < 0)
            die("put a bundle", err);
    }
    rv_store_close(s);
}

void scale_fill(const char *url, int64_t n_runs, int64_t n_records, bool says)
{
    rv_sql_stmt *stmts[RV_COUNT(steps)];
    rv_err *err = NULL;

    put_bundles(url);
    struct sql_store *st = scale_open(url);
    for (size_t i = 0; i < RV_COUNT(lanes); i++)
        scale_run(st, lanes[i]);
    for (size_t i = 0; i < RV_COUNT(steps); i++)
        stmts[i] = prepare(st, &steps[i]);
    for (int64_t i = 1; i <= n_runs; i += BATCH) {
        fill_batch(st, stmts, i, i + BATCH - 1 < n_runs ? i + BATCH - 1 : n_runs, n_records);
        if (says && i / BATCH % 10 == 9)
            fprintf(stderr, "%lld runs\n", (long long)(i + BATCH - 1));
    }
    for (size_t i = 0; i < RV_COUNT(steps); i++)
        sql_finish(stmts[i]);
    scale_run(st, count_lanes);
    int rc = sql_begin_write(st, "fill", &err);
    for (size_t i = 0; i < store_n_tables && rc == 0 && st->driver->end_table; i++)
        rc = st->driver->end_table(st, store_tables[i].name,
                                   store_tables[i].is_numbered ? store_tables[i].columns[0].name : NULL, &err);
    if (rc == 0)
        rc = sql_end_write(st, rc, "fill", &err);
    if (rc < 0)
        die("end the tables", err);
    sql_close(st);
}
