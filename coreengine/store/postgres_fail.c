/* Failures: what PostgreSQL's codes (SQLSTATE) mean to a caller of the store, and whether the same may succeed when it
 * is done again. */
#include <stdio.h>
#include <string.h>

#include "coreengine/store/postgres_internal.h"

#define NO_ROW "22012" /* a division by zero: COUNT_WRITE found no row of the handle */

/* The first entry whose text begins the code decides. */
static const struct {
    const char *state;
    int code;
    enum pg_retry retry;
    const char *hint;
} meanings[] = {
    {"40001", RV_E_TIMEOUT, PG_RETRY_RACE, NULL}, /* others were in the way */
    {"40P01", RV_E_TIMEOUT, PG_RETRY_RACE, NULL},
    {"OC0", RV_E_TIMEOUT, PG_RETRY_RACE, NULL},
    {"23505", RV_E_INTERNAL, PG_RETRY_RACE, NULL}, /* written by another after this one had looked for it */
    {"23503", RV_E_INTERNAL, PG_RETRY_RACE, NULL}, /* deleted by another meanwhile */
    {NO_ROW, RV_E_INTERNAL, PG_RETRY_RACE, NULL},
    {"42P06", RV_E_IO, PG_RETRY_RACE, NULL}, /* several processes make the tables */
    {"42P07", RV_E_IO, PG_RETRY_RACE, NULL},
    {"53100", RV_E_DISK, PG_RETRY_NOT, "make room on the disk of the server; nothing that was written before is lost"},
    {"53200", RV_E_NOMEM, PG_RETRY_NOT, "the server has no memory left"},
    {"53300", RV_E_IO, PG_RETRY_NOT, "the server has no connection left: raise max_connections, or use a pooler"},
    {"54000", RV_E_LIMIT, PG_RETRY_NOT, NULL},
    {"55P03", RV_E_TIMEOUT, PG_RETRY_NOT, "another transaction holds the lock; pg_stat_activity shows it"},
    {"57014", RV_E_TIMEOUT, PG_RETRY_NOT, "the statement took longer than it may, or was cancelled"},
    {"57P", RV_E_IO, PG_RETRY_NOT, "the server starts or stops; try again"},
    {"25006", RV_E_DENIED, PG_RETRY_NOT, "the server is a standby, or the role may only read"},
    {"28", RV_E_DENIED, PG_RETRY_NOT, "PGPASSWORD or the file ~/.pgpass can have the password"},
    {"42501", RV_E_DENIED, PG_RETRY_NOT, "the role needs USAGE and CREATE on the schema, or CREATE on the database"},
    {"3D000", RV_E_NOT_FOUND, PG_RETRY_NOT, "create it with `createdb`"},
    {"42P01", RV_E_IO, PG_RETRY_NOT, "a table is missing: another program changed the schema; restore a backup"},
    {"42703", RV_E_IO, PG_RETRY_NOT, "a column is missing: another program changed the schema; restore a backup"},
    {"XX", RV_E_IO, PG_RETRY_NOT, "the log of the server says more"},
    {"58", RV_E_IO, PG_RETRY_NOT, "the log of the server says more"},
    {"", RV_E_INTERNAL, PG_RETRY_NOT, NULL}, /* arguments were checked, so these are ours */
};

int rv_pg_fail_state(struct postgres *st, const char *sqlstate, const char *text, const char *what, rv_err **err)
{
    size_t i = 0;

    while (strncmp(meanings[i].state, sqlstate, strlen(meanings[i].state)) != 0)
        i++;
    st->retry = meanings[i].retry;
    snprintf(st->state, sizeof st->state, "%s", sqlstate);
    snprintf(st->refused, sizeof st->refused, "%.*s", (int)strcspn(text, "\n"), text);
    if (strcmp(sqlstate, NO_ROW) == 0)
        st->is_registered = false;
    RV_FAIL(err, meanings[i].code, "\"%s\": %s: %.*s (%s)", st->base.path, what, (int)strcspn(text, "\n"), text,
            sqlstate);
    if (meanings[i].hint)
        rv_err_hint(err, "%s", meanings[i].hint);
    return meanings[i].code;
}

int rv_pg_fail_lost(struct postgres *st, const char *what, rv_err **err)
{
    st->retry = PG_RETRY_LOST;
    RV_FAIL(err, RV_E_IO, "\"%s\": %s: the connection to the server broke: %s", st->base.path, what, st->why);
    rv_err_hint(err, "is the server running? `pg_isready` asks it");
    return RV_E_IO;
}

bool rv_pg_is_told_end(const struct postgres *st, const PGresult *res)
{
    const char *severity = res ? st->pq->resultErrorField(res, PG_DIAG_SEVERITY_NONLOCALIZED) : NULL;

    return severity && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0);
}

int rv_pg_fail(struct postgres *st, const PGresult *res, const char *what, rv_err **err)
{
    const char *state = res ? st->pq->resultErrorField(res, PG_DIAG_SQLSTATE) : NULL;
    const char *text = res ? st->pq->resultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;

    if (!st->conn)
        return rv_pg_fail_lost(st, what, err);
    if (st->pq->status(st->conn) == CONNECTION_BAD || rv_pg_is_told_end(st, res)) {
        rv_pg_disconnect(st, st->pq->errorMessage(st->conn));
        return rv_pg_fail_lost(st, what, err);
    }
    if (state)
        return rv_pg_fail_state(st, state, text ? text : "", what, err);
    text = st->pq->errorMessage(st->conn);
    st->retry = PG_RETRY_NOT;
    int rc = strstr(text, "memory") || !*text ? RV_E_NOMEM : RV_E_INTERNAL;
    return RV_FAIL(err, rc, "\"%s\": %s: %.*s", st->base.path, what, (int)strcspn(text, "\n"), text);
}
