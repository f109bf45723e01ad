/* A store that is a schema of a PostgreSQL database: opened, closed, and what upkeep asks of its server. */
#include "coreengine/store/postgres/postgres_internal.h"
#include "coreengine/store/search/ask_internal.h"
#include "coreengine/store/upkeep.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- hearing of changes that others commit: NOTIFY, written in their transactions, and LISTEN on a connection of its
 * own. It is never in a transaction, in which the server would hold notifications back. The channel is the schema.
 * Compatible databases without LISTEN and NOTIFY refuse: then nothing is announced, and the caller asks from time to
 * time --- */

#define PAUSE_MS  1000 /* between two attempts to connect */
#define WITHIN_MS 5000 /* for one of them */

static const char tells[] = "announce a change";

static void notify(struct sql_store *base)
{
    struct postgres *st = (struct postgres *)base;

    st->tells = !st->cannot_tell;
}

int store_pg_send_tidings(struct postgres *st, rv_err **err)
{
    if (!st->tells)
        return 0;
    st->tells = false;
    return store_pg_send_id(st, PG_TELL, tells, err);
}

/* 0A: not supported; 42: no such function, or no right to it; 54: its queue is full. */
void store_pg_tell_failed(struct postgres *st, const char *what, const PGresult *res)
{
    const char *state = what == tells ? st->pq->resultErrorField(res, PG_DIAG_SQLSTATE) : NULL;

    if (!state || (strncmp(state, "0A", 2) != 0 && strncmp(state, "42", 2) != 0 && strncmp(state, "54", 2) != 0))
        return;
    st->cannot_tell = true;
    st->retry = PG_RETRY_RACE;
}

/* --- Listening --- */

/* The connection of the listener is set up as the handle's. */
static struct postgres *new_ear(const struct postgres *st)
{
    struct postgres *ear = calloc(1, sizeof *ear);

    if (!ear)
        return NULL;
    ear->base = st->base;
    ear->pq = st->pq;
    ear->options = st->options;
    memcpy(ear->schema, st->schema, sizeof ear->schema);
    ear->read_only = st->read_only;
    ear->sync = st->sync;
    ear->busy_ms = WITHIN_MS;
    return ear;
}

/* After a time without a connection the caller looks once, in place of all announcements that were missed. */
static void connect_ear(struct postgres *st)
{
    struct postgres *ear = st->ear;
    int64_t now = store_pg_now_ns();
    char sql[RV_PG_NAME_ROOM + 20];

    if (st->is_deaf || now < st->listen_at_ns)
        return;
    st->listen_at_ns = now + PAUSE_MS * RV_NS_PER_MS;
    if (store_pg_connect(ear, now + WITHIN_MS * RV_NS_PER_MS, true, RV_CODE_ONLY("without it the caller polls")) < 0)
        return;
    snprintf(sql, sizeof sql, "LISTEN \"%s\"", ear->schema);
    int rc = store_pg_exec(ear, sql, store_pg_now_ns() + WITHIN_MS * RV_NS_PER_MS, "listen",
                           RV_CODE_ONLY("without it the caller polls"));
    st->is_deaf = rc < 0 && ear->conn;
    if (rc < 0)
        store_pg_disconnect(ear, NULL);
    st->has_heard = true;
}

static int start_listening(struct sql_store *base, int *fd, rv_err **err)
{
    struct postgres *st = (struct postgres *)base;

    if (!st->ear && !(st->ear = new_ear(st)))
        return RV_FAIL(err, RV_E_NOMEM, "\"%s\": listen", base->path);
    if (!st->ear->conn)
        connect_ear(st);
    *fd = st->ear->conn ? st->pq->socket(st->ear->conn) : -1;
    return 0;
}

static bool was_notified(struct sql_store *base)
{
    struct postgres *st = (struct postgres *)base, *ear = st->ear;
    bool heard = st->has_heard;
    PGnotify *note;

    st->has_heard = false;
    if (!ear || !ear->conn)
        return heard;
    if (!st->pq->consumeInput(ear->conn)) {
        store_pg_disconnect(ear, NULL);
        return heard;
    }
    while ((note = st->pq->notifies(ear->conn))) {
        st->pq->freemem(note);
        heard = true;
    }
    return heard;
}

static void stop_listening(struct postgres *st)
{
    if (!st->ear)
        return;
    store_pg_disconnect(st->ear, NULL);
    for (size_t i = 0; i < PG_N_STATEMENTS; i++)
        free(st->ear->stmts[i].text);
    free(st->ear);
}

#define BUSY_MS 60000 /* a minute: a write takes milliseconds, so even hundreds of processes get their turn */

/* The row of the handle is not needed any more. What this cannot do, a sweep does a day later. */
static void forget_handle(struct postgres *st)
{
    rv_sql_stmt *stmt = &store_pg_stmt(st, PG_FORGET_HANDLE)->base;

    store_pg_abandon(st);
    if (!st->conn || !st->is_registered)
        return;
    store_sql_text(stmt, 1, st->id);
    RV_IGNORE(store_pg_send(st, (struct postgres_stmt *)stmt, "close", NULL), "a sweep does it");
    sql_done(stmt);
    if (st->conn)
        store_pg_push(st);
}

static void close_it(struct sql_store *base)
{
    struct postgres *st = (struct postgres *)base;

    if (st->pq) {
        stop_listening(st);
        forget_handle(st);
        store_pg_disconnect(st, NULL);
        st->pq->conninfoFree(st->options);
    }
    for (size_t i = 0; i < PG_N_STATEMENTS; i++) {
        free(st->stmts[i].text);
        store_pg_rows_fini(&st->stmts[i]);
    }
    free(base->path);
    free(base);
}

static void set_wait(struct sql_store *base, int64_t ms)
{
    ((struct postgres *)base)->wait_ms = ms;
}

/* --- upkeep: the server keeps the tables whole and small by itself (checksums, autovacuum) --- */

/* 0 when the server cannot tell. */
static int64_t size(struct sql_store *base)
{
    struct postgres *st = (struct postgres *)base;
    rv_sql_stmt *stmt = &store_pg_stmt(st, PG_SIZE)->base;
    int64_t bytes =
        sql_step(stmt, "count", RV_CODE_ONLY("0 is the documented answer of a server that cannot tell")) == 1
            ? sql_int_at(stmt, 0)
            : 0;

    sql_done(stmt);
    return bytes;
}

/* Rows of handles that were not closed. Space goes back by the server's own vacuum. */
static int give_back(struct sql_store *base, rv_err **err)
{
    struct postgres *st = (struct postgres *)base;
    int rc;

    do {
        rc = sql_begin_write(base, "sweep", err);
        if (rc == 0)
            rc = sql_end_write(base, sql_run(&store_pg_stmt(st, PG_OLD_HANDLES)->base, "sweep", err), "sweep", err);
    } while (rc < 0 && sql_again(base, err));
    return rc;
}

static int be_patient(struct sql_store *base, rv_err **err)
{
    struct postgres *st = (struct postgres *)base;

    st->is_patient = true;
    return store_pg_send_id(st, PG_NO_LIMITS, "begin", err);
}

/* Damage that only PostgreSQL can detect shows as failures of the statements that read it. */
static int check(struct sql_store *base, struct rv_report *report, rv_err **err)
{
    (void)report;
    return be_patient(base, err);
}

static int run_text(struct sql_store *base, const rv_buf *sql, const char *what, rv_err **err)
{
    rv_sql_stmt *stmt = sql_prepare(base, sql);
    int rc = sql_step(stmt, what, err);

    sql_finish(stmt);
    return rc < 0 ? rc : 0;
}

static int end_table(struct sql_store *base, const char *table, const char *key, rv_err **err)
{
    rv_buf sql = RV_BUF_INIT(1000);
    int rc = 0;

    if (key) {
        rv_buf_printf(&sql, "SELECT setval(pg_get_serial_sequence('%s', '%s'), greatest(max(\"%s\"), 1)) FROM %s",
                      table, key, key, table);
        rc = run_text(base, &sql, "set the next key", err);
    }
    rv_buf_clear(&sql);
    rv_buf_printf(&sql, "ANALYZE %s", table);
    if (rc == 0)
        rc = run_text(base, &sql, "count rows", err);
    rv_buf_fini(&sql);
    return rc;
}

static const char *damage(struct sql_store *base)
{
    (void)base;
    return NULL;
}

static const struct sql_driver postgres_driver = {
    .name = "PostgreSQL",
    .close = close_it,
    .set_wait = set_wait,
    .use = postgres_use,
    .prepare = postgres_prepare,
    .finish = postgres_finish,
    .reset = postgres_reset,
    .step = postgres_step,
    .run = postgres_run,
    .column = postgres_column,
    .use_rows = postgres_use_rows,
    .add_row = postgres_add_row,
    .end_rows = postgres_end_rows,
    .begin_read = postgres_begin_read,
    .end_read = postgres_end_read,
    .begin_write = postgres_begin_write,
    .end_write = postgres_end_write,
    .begin_part = postgres_begin_part,
    .end_part = postgres_end_part,
    .begin = postgres_begin,
    .commit = postgres_commit,
    .rollback = postgres_rollback,
    .again = postgres_again,
    .tell = notify,
    .may_be_lost = postgres_may_be_lost,
    .listen = start_listening,
    .heard = was_notified,
    .ask = postgres_ask,
    .schema = RV_POSTGRES_SCHEMA,
    .size = size,
    .give_back = give_back,
    .reads_pages = true,
    .refuses_bytes = true,
    .be_patient = be_patient,
    .end_table = end_table,
    .check = check,
    .damage = damage,
};

static int connect_by(struct postgres *st, const char *url, rv_err **err)
{
    int rc = store_pq_open(&st->pq, err);

    if (rc == 0)
        rc = store_pg_read_url(st, url, err);
    return rc < 0 ? rc : store_pg_connect(st, store_pg_now_ns() + st->busy_ms * RV_NS_PER_MS, true, err);
}

static int open_it(struct postgres *st, const char *url, const struct rv_store_opts *opts, rv_err **err)
{
    int rc = connect_by(st, url, err);

    if (rc == 0)
        rc = store_pg_bring_forward(st, postgres_schema, RV_POSTGRES_SCHEMA, opts->must_exist, err);
    return rc;
}

static struct postgres *new_store(const char *shown, const struct rv_store_opts *opts, rv_err **err)
{
    struct postgres *st = calloc(1, sizeof *st);

    if (!st || !(st->base.path = rv_str_dup(rv_str_of(shown)))) {
        free(st);
        RV_IGNORE(RV_FAIL(err, RV_E_NOMEM, "open \"%s\"", shown), "NULL says it");
        return NULL;
    }
    st->base.driver = &postgres_driver;
    st->read_only = opts->read_only;
    st->sync = opts->sync;
    st->busy_ms = opts->busy_ms == 0 ? BUSY_MS : opts->busy_ms > INT32_MAX / 2 ? INT32_MAX / 2 : opts->busy_ms;
    return st;
}

int postgres_look(const char *url, const char *shown, struct rv_store_version *out, rv_err **err)
{
    static const struct rv_store_opts opts = {.read_only = true};
    struct postgres *st = new_store(shown, &opts, err);

    if (!st)
        return RV_E_NOMEM;
    *out = (struct rv_store_version){.current = RV_POSTGRES_SCHEMA};
    int rc = connect_by(st, url, err);
    if (rc == 0)
        rc = store_pg_read_version(st, out, err);
    close_it(&st->base);
    return rc;
}

int postgres_open(const char *url, const char *shown, const struct rv_store_opts *opts, struct sql_store **out,
                  rv_err **err)
{
    struct postgres *st = new_store(shown, opts, err);

    if (!st)
        return RV_E_NOMEM;
    int rc = open_it(st, url, opts, err);
    if (rc < 0) {
        close_it(&st->base);
        return rc;
    }
    *out = &st->base;
    return 0;
}
