/* Upkeep of a PostgreSQL store. Its server keeps the tables whole and small by itself (checksums, autovacuum). */
#include "coreengine/store/postgres_internal.h"

/* 0 when the server cannot tell. */
int64_t rv_postgres_size(struct sql_store *base)
{
    struct postgres *st = (struct postgres *)base;
    rv_sql_stmt *stmt = &rv_pg_stmt(st, PG_SIZE)->base;
    int64_t bytes = rv_sql_step(stmt, "count", NULL) == 1 ? rv_sql_int_at(stmt, 0) : 0;

    rv_sql_done(stmt);
    return bytes;
}

/* Rows of handles that were not closed. Space goes back by the server's own vacuum. */
int rv_postgres_give_back(struct sql_store *base, rv_err **err)
{
    struct postgres *st = (struct postgres *)base;
    int rc;

    do {
        rc = rv_sql_begin_write(base, "sweep", err);
        if (rc == 0)
            rc = rv_sql_end_write(base, rv_sql_run(&rv_pg_stmt(st, PG_OLD_HANDLES)->base, "sweep", err), "sweep", err);
    } while (rc < 0 && rv_sql_again(base, err));
    return rc;
}

int rv_postgres_be_patient(struct sql_store *base, rv_err **err)
{
    struct postgres *st = (struct postgres *)base;

    st->is_patient = true;
    return rv_pg_send_id(st, PG_NO_LIMITS, "begin", err);
}

/* What PostgreSQL alone can tell of damage shows as failures of what reads it. */
int rv_postgres_check(struct sql_store *base, struct rv_report *report, rv_err **err)
{
    (void)report;
    return rv_postgres_be_patient(base, err);
}

static int run_text(struct sql_store *base, const rv_buf *sql, const char *what, rv_err **err)
{
    rv_sql_stmt *stmt = rv_sql_prepare(base, sql);
    int rc = rv_sql_step(stmt, what, err);

    rv_sql_finish(stmt);
    return rc < 0 ? rc : 0;
}

int rv_postgres_end_table(struct sql_store *base, const char *table, const char *key, rv_err **err)
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

const char *rv_postgres_damage(struct sql_store *base)
{
    (void)base;
    return NULL;
}
