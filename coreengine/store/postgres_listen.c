/* Hearing of changes that others commit: NOTIFY, written in their transactions, and LISTEN on a connection of its own.
 * It is never in a transaction, in which the server would hold back what it has to say. The channel is the schema.
 *
 * Compatible databases without LISTEN and NOTIFY are told by their refusal: then nothing is announced, and the caller
 * asks from time to time. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/postgres_internal.h"

#define MS        INT64_C(1000000) /* in nanoseconds */
#define PAUSE_MS  1000             /* between two attempts to connect */
#define WITHIN_MS 5000             /* for one of them */

static const char tells[] = "announce a change";

void rv_postgres_tell(struct sql_store *base)
{
    struct postgres *st = (struct postgres *)base;

    st->tells = !st->cannot_tell;
}

int rv_pg_send_tidings(struct postgres *st, rv_err **err)
{
    if (!st->tells)
        return 0;
    st->tells = false;
    return rv_pg_send_id(st, PG_TELL, tells, err);
}

/* 0A: not supported; 42: no such function, or no right to it; 54: its queue is full. */
void rv_pg_tell_failed(struct postgres *st, const char *what, const PGresult *res)
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
    int64_t now = rv_pg_now_ns();
    char sql[RV_PG_NAME_ROOM + 20];

    if (st->is_deaf || now < st->listen_at_ns)
        return;
    st->listen_at_ns = now + PAUSE_MS * MS;
    if (rv_pg_connect(ear, now + WITHIN_MS * MS, true, NULL) < 0)
        return;
    snprintf(sql, sizeof sql, "LISTEN \"%s\"", ear->schema);
    int rc = rv_pg_exec(ear, sql, "listen", NULL);
    st->is_deaf = rc < 0 && ear->conn;
    if (rc < 0)
        rv_pg_disconnect(ear, NULL);
    st->has_heard = true;
}

int rv_postgres_listen(struct sql_store *base, int *fd, rv_err **err)
{
    struct postgres *st = (struct postgres *)base;

    if (!st->ear && !(st->ear = new_ear(st)))
        return RV_FAIL(err, RV_E_NOMEM, "\"%s\": listen", base->path);
    if (!st->ear->conn)
        connect_ear(st);
    *fd = st->ear->conn ? st->pq->socket(st->ear->conn) : -1;
    return 0;
}

bool rv_postgres_heard(struct sql_store *base)
{
    struct postgres *st = (struct postgres *)base, *ear = st->ear;
    bool heard = st->has_heard;
    PGnotify *note;

    st->has_heard = false;
    if (!ear || !ear->conn)
        return heard;
    if (!st->pq->consumeInput(ear->conn)) {
        rv_pg_disconnect(ear, NULL);
        return heard;
    }
    while ((note = st->pq->notifies(ear->conn))) {
        st->pq->freemem(note);
        heard = true;
    }
    return heard;
}

void rv_pg_stop_listening(struct postgres *st)
{
    if (!st->ear)
        return;
    rv_pg_disconnect(st->ear, NULL);
    for (size_t i = 0; i < PG_N_STATEMENTS; i++)
        free(st->ear->stmts[i].text);
    free(st->ear);
}
