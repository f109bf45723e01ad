/* Opening and closing a store that is a schema of a PostgreSQL database. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/ask_internal.h"
#include "coreengine/store/copy.h"
#include "coreengine/store/postgres_schema_internal.h"

#define BUSY_MS 60000
#define MS      INT64_C(1000000) /* in nanoseconds */

/* The row of the handle is not needed any more. What this cannot do, a sweep does a day later. */
static void forget_handle(struct postgres *st)
{
    rv_sql_stmt *stmt = &rv_pg_stmt(st, PG_FORGET_HANDLE)->base;

    rv_pg_abandon(st);
    if (!st->conn || !st->is_registered)
        return;
    rv_sql_text(stmt, 1, st->id);
    RV_IGNORE(rv_pg_send(st, (struct postgres_stmt *)stmt, "close", NULL), "a sweep does it");
    rv_sql_done(stmt);
    if (st->conn)
        rv_pg_push(st);
}

static void close_it(struct sql_store *base)
{
    struct postgres *st = (struct postgres *)base;

    if (st->pq) {
        rv_pg_stop_listening(st);
        forget_handle(st);
        rv_pg_disconnect(st, NULL);
        st->pq->conninfoFree(st->options);
    }
    for (size_t i = 0; i < PG_N_STATEMENTS; i++) {
        free(st->stmts[i].text);
        rv_pg_free_rows(&st->stmts[i]);
    }
    free(base->path);
    free(base);
}

static void set_wait(struct sql_store *base, int64_t ms)
{
    ((struct postgres *)base)->wait_ms = ms;
}

static const struct sql_driver postgres_driver = {
    .name = "PostgreSQL",
    .close = close_it,
    .set_wait = set_wait,
    .use = rv_postgres_use,
    .prepare = rv_postgres_prepare,
    .finish = rv_postgres_finish,
    .reset = rv_postgres_reset,
    .step = rv_postgres_step,
    .run = rv_postgres_run,
    .column = rv_postgres_column,
    .use_rows = rv_postgres_use_rows,
    .add_row = rv_postgres_add_row,
    .end_rows = rv_postgres_end_rows,
    .begin_read = rv_postgres_begin_read,
    .end_read = rv_postgres_end_read,
    .begin_write = rv_postgres_begin_write,
    .end_write = rv_postgres_end_write,
    .begin_part = rv_postgres_begin_part,
    .end_part = rv_postgres_end_part,
    .begin = rv_postgres_begin,
    .commit = rv_postgres_commit,
    .rollback = rv_postgres_rollback,
    .again = rv_postgres_again,
    .tell = rv_postgres_tell,
    .may_be_lost = rv_postgres_may_be_lost,
    .listen = rv_postgres_listen,
    .heard = rv_postgres_heard,
    .ask = rv_postgres_ask,
    .schema = RV_POSTGRES_SCHEMA,
    .size = rv_postgres_size,
    .give_back = rv_postgres_give_back,
    .reads_pages = true,
    .refuses_bytes = true,
    .be_patient = rv_postgres_be_patient,
    .end_table = rv_postgres_end_table,
    .check = rv_postgres_check,
    .damage = rv_postgres_damage,
};

static int connect_by(struct postgres *st, const char *url, rv_err **err)
{
    int rc = rv_pq_open(&st->pq, err);

    if (rc == 0)
        rc = rv_pg_read_url(st, url, err);
    return rc < 0 ? rc : rv_pg_connect(st, rv_pg_now_ns() + st->busy_ms * MS, true, err);
}

static int open_it(struct postgres *st, const char *url, const struct rv_store_opts *opts, rv_err **err)
{
    int rc = connect_by(st, url, err);

    if (rc == 0)
        rc = rv_pg_bring_forward(st, rv_postgres_schema, RV_POSTGRES_SCHEMA, opts->must_exist, err);
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

int rv_postgres_look(const char *url, const char *shown, struct rv_store_version *out, rv_err **err)
{
    static const struct rv_store_opts opts = {.read_only = true};
    struct postgres *st = new_store(shown, &opts, err);

    if (!st)
        return RV_E_NOMEM;
    *out = (struct rv_store_version){.current = RV_POSTGRES_SCHEMA};
    int rc = connect_by(st, url, err);
    if (rc == 0)
        rc = rv_pg_read_version(st, out, err);
    close_it(&st->base);
    return rc;
}

int rv_postgres_open(const char *url, const char *shown, const struct rv_store_opts *opts, struct sql_store **out,
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
