/* Sending statements and reading their answers: queued ones go out together, and their answers come back in order. A
 * queue that is sent ends with a mark (Sync); behind a failure the server passes over the rest up to that mark. */
#include "coreengine/store/postgres/postgres_internal.h"

#include <endian.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- failures: what PostgreSQL's codes (SQLSTATE) mean to a caller of the store, and whether the same may succeed when
 * it is done again --- */

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
    {"22P05", RV_E_INVALID, PG_RETRY_NOT, RV_PG_OF_UTF8}, /* a database that is not UTF-8, of an older version */
    {"23505", RV_E_INTERNAL, PG_RETRY_RACE, NULL},        /* written by another after this one had looked for it */
    {"23503", RV_E_INTERNAL, PG_RETRY_RACE, NULL},        /* deleted by another meanwhile */
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

int store_pg_fail_state(struct postgres *st, const char *sqlstate, const char *text, const char *what, rv_err **err)
{
    size_t i = 0;

    while (strncmp(meanings[i].state, sqlstate, strlen(meanings[i].state)) != 0)
        i++;
    st->retry = meanings[i].retry;
    st->base.is_denied = meanings[i].code == RV_E_DENIED;
    snprintf(st->state, sizeof st->state, "%s", sqlstate);
    snprintf(st->refused, sizeof st->refused, "%.*s", (int)strcspn(text, "\n"), text);
    if (strcmp(sqlstate, NO_ROW) == 0)
        st->is_registered = false;
    RV_FAIL(err, meanings[i].code, "\"%s\": %s: %.*s (%s)", st->base.path, what, (int)strcspn(text, "\n"), text,
            sqlstate);
    if (meanings[i].hint)
        rv_err_set_hint(err, "%s", meanings[i].hint);
    return meanings[i].code;
}

static int fail_lost(struct postgres *st, const char *what, rv_err **err)
{
    st->retry = PG_RETRY_LOST;
    RV_FAIL(err, RV_E_IO, "\"%s\": %s: the connection to the server broke: %s", st->base.path, what, st->why);
    rv_err_set_hint(err, "is the server running? `pg_isready` asks it");
    return RV_E_IO;
}

/* Is the result that of a server which ends the connection (it stops, or a time limit of its own has passed)? */
static bool is_told_end(const struct postgres *st, const PGresult *res)
{
    const char *severity = res ? st->pq->resultErrorField(res, PG_DIAG_SEVERITY_NONLOCALIZED) : NULL;

    return severity && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0);
}

/* Failures of libpq itself have no code. Those for want of memory begin a line with it ("out of memory for query
 * result"), where a server's line begins with "ERROR:". */
static bool says_no_memory(const char *text)
{
    static const char *const begins[] = {"out of memory", "cannot allocate memory"};

    for (const char *line = text; *line; line += line[0] == '\n') {
        for (size_t i = 0; i < RV_COUNT(begins); i++)
            if (strncmp(line, begins[i], strlen(begins[i])) == 0)
                return true;
        line += strcspn(line, "\n");
    }
    return false;
}

/* The error of a result, or (NULL) of the connection, which is given up if it is broken. */
static int fail(struct postgres *st, const PGresult *res, const char *what, rv_err **err)
{
    const char *state = res ? st->pq->resultErrorField(res, PG_DIAG_SQLSTATE) : NULL;
    const char *text = res ? st->pq->resultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;

    if (!st->conn)
        return fail_lost(st, what, err);
    if (st->pq->status(st->conn) == CONNECTION_BAD || is_told_end(st, res)) {
        store_pg_disconnect(st, st->pq->errorMessage(st->conn));
        return fail_lost(st, what, err);
    }
    if (state)
        return store_pg_fail_state(st, state, text ? text : "", what, err);
    text = st->pq->errorMessage(st->conn);
    st->retry = PG_RETRY_NOT;
    int rc = says_no_memory(text) || !*text ? RV_E_NOMEM : RV_E_INTERNAL;
    return RV_FAIL(err, rc, "\"%s\": %s: %.*s", st->base.path, what, (int)strcspn(text, "\n"), text);
}

#define ANSWER_MS INT64_C(15000) /* for an answer, beside what the server's own limits are */

int64_t store_pg_deadline(const struct postgres *st)
{
    return st->is_patient
               ? INT64_MAX
               : store_pg_now_ns() + (store_pg_wait_ms(st) + RV_PG_STATEMENT_MS + ANSWER_MS) * INT64_C(1000000);
}

/* Everything that is queued to the server; what it answers meanwhile is kept for later. */
static int push_out(struct postgres *st, int64_t until_ns)
{
    int n;

    while ((n = st->pq->flush(st->conn)) > 0)
        if (store_pg_poll(st, POLLIN | POLLOUT, until_ns) <= 0 || !st->pq->consumeInput(st->conn))
            return -1;
    return n;
}

/* NULL: the end of what one statement answers, or the connection is lost. */
static PGresult *next_result(struct postgres *st, int64_t until_ns)
{
    while (st->pq->isBusy(st->conn)) {
        if (store_pg_lacks_memory(st)) {
            store_pg_disconnect(st, "out of memory");
            return NULL;
        }
        int n = store_pg_poll(st, POLLIN, until_ns);
        if (n <= 0) {
            store_pg_disconnect(st, n == 0 ? "no answer from the server in time" : "poll");
            return NULL;
        }
        if (!st->pq->consumeInput(st->conn)) {
            store_pg_disconnect(st, st->pq->errorMessage(st->conn));
            return NULL;
        }
    }
    return st->pq->getResult(st->conn);
}

static void note(struct postgres *st, const char *what, struct postgres_stmt *prepares)
{
    st->sent[st->n_sent++] = (struct pg_sent){.what = what, .prepares = prepares};
}

static int fail_send(struct postgres *st, const char *what, rv_err **err)
{
    return fail(st, NULL, what, err);
}

/* --- Queueing --- */

static const Oid type_ids[] = {
    [SQL_NULL] = 0, [SQL_INT] = 20 /* int8 */, [SQL_TEXT] = 25 /* text */, [SQL_STR] = 17 /* bytea */, [SQL_BLOB] = 17};
RV_EACH_HAS_ROW(type_ids, SQL_N_TYPES);

struct values {
    const char *at[RV_SQL_MAX_ARGS];
    int lengths[RV_SQL_MAX_ARGS], formats[RV_SQL_MAX_ARGS];
    Oid types[RV_SQL_MAX_ARGS];
    int64_t numbers[RV_SQL_MAX_ARGS];
};

static size_t list_values(struct postgres_stmt *stmt, struct values *v)
{
    size_t bytes = 64;

    for (int k = 0; stmt->many && k < stmt->n_params; k++) {
        bytes += store_pg_list_rows(stmt, k, &v->at[k], &v->lengths[k], &v->types[k]);
        v->formats[k] = 1;
    }
    if (stmt->many)
        return bytes;
    for (int k = 0; k < stmt->n_params; k++) {
        const struct sql_value *arg = &stmt->base.args[stmt->arg[k] - 1];
        v->types[k] = type_ids[arg->type];
        v->formats[k] = 1;
        v->numbers[k] = (int64_t)htobe64((uint64_t)arg->number);
        v->at[k] = arg->type == SQL_INT ? (const char *)&v->numbers[k] : arg->bytes.ptr;
        v->lengths[k] = arg->type == SQL_INT ? (int)sizeof v->numbers[k] : (int)arg->bytes.len;
        bytes += (size_t)v->lengths[k];
    }
    return bytes;
}

static int send_values(struct postgres *st, struct postgres_stmt *stmt, const struct values *v, const char *what,
                       rv_err **err)
{
    char name[24];

    if (stmt->id < 0 && stmt->is_walk) { /* asked once */
        if (!st->pq->sendQueryParams(st->conn, stmt->text, stmt->n_params, v->types, v->at, v->lengths, v->formats, 1))
            return fail_send(st, what, err);
        note(st, what, NULL);
        return 0;
    }
    snprintf(name, sizeof name, "%c%d", stmt->id < 0 ? 'p' : 's', abs(stmt->id));
    if (stmt->prepared_on != st->n_conn) {
        if (!st->pq->sendPrepare(st->conn, name, stmt->text, stmt->n_params, v->types))
            return fail_send(st, what, err);
        note(st, what, stmt);
        stmt->prepared_on = st->n_conn;
    }
    if (!st->pq->sendQueryPrepared(st->conn, name, stmt->n_params, v->at, v->lengths, v->formats, 1))
        return fail_send(st, what, err);
    note(st, what, NULL);
    return 0;
}

int store_pg_send(struct postgres *st, struct postgres_stmt *stmt, const char *what, rv_err **err)
{
    struct values v;
    int rc = store_pg_translate(stmt, err);

    if (rc == 0 && (st->n_sent >= RV_PG_MAX_SENT || st->sent_bytes >= RV_PG_MAX_BYTES))
        rc = store_pg_settle(st, false, err);
    if (rc == 0 && !st->conn)
        rc = fail_lost(st, what, err);
    if (rc < 0)
        return rc;
    st->sent_bytes += list_values(stmt, &v);
    return send_values(st, stmt, &v, what, err);
}

int store_pg_send_id(struct postgres *st, int id, const char *what, rv_err **err)
{
    return store_pg_send(st, store_pg_stmt(st, id), what, err);
}

/* --- Answers --- */

struct reading {
    struct postgres *st;
    int64_t until_ns;
    int rc; /* of the first failure */
    rv_err **err;
};

static bool is_fine(ExecStatusType status)
{
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_PIPELINE_SYNC;
}

/* The last column of what begins a write, and one. */
static int64_t version_in(struct postgres *st, PGresult *res)
{
    int column = st->pq->nfields(res) - 1;
    uint64_t number;

    if (column < 0 || st->pq->ntuples(res) != 1 || st->pq->getlength(res, 0, column) != (int)sizeof number)
        return 0;
    memcpy(&number, st->pq->getvalue(res, 0, column), sizeof number);
    return (int64_t)be64toh(number) + 1;
}

/* One result of the entry. false: the connection is lost. */
static bool take_result(struct reading *r, struct pg_sent *sent, PGresult *res)
{
    struct postgres *st = r->st;
    ExecStatusType status = st->pq->resultStatus(res);

    if (is_fine(status)) {
        if (sent->counts)
            st->base.rules = version_in(st, res);
        if (!sent->is_asked) {
            st->pq->clear(res);
            return true;
        }
        st->pq->clear(st->asked);
        st->asked = res;
        return true;
    }
    if (sent->prepares)
        sent->prepares->prepared_on = 0;
    if (st->pq->status(st->conn) == CONNECTION_BAD || is_told_end(st, res)) {
        store_pg_disconnect(st, st->pq->errorMessage(st->conn));
        st->pq->clear(res);
        return false;
    }
    if (status != PGRES_PIPELINE_ABORTED && sent->what && r->rc == 0) {
        r->rc = fail(st, res, sent->what, r->err);
        store_pg_tell_failed(st, sent->what, res);
        st->is_spoilt = st->transaction != PG_IDLE;
    }
    st->pq->clear(res);
    return true;
}

static bool read_entry(struct reading *r, struct pg_sent *sent)
{
    struct postgres *st = r->st;
    PGresult *res = next_result(st, r->until_ns);

    while (res) {
        if (!take_result(r, sent, res))
            return false;
        if (sent->is_sync) /* nothing marks its end */
            return true;
        res = next_result(st, r->until_ns);
    }
    return st->conn != NULL;
}

static int mark_end(struct postgres *st)
{
    if (!st->pq->pipelineSync(st->conn))
        return -1;
    st->sent[st->n_sent++] = (struct pg_sent){.is_sync = true};
    return 0;
}

int store_pg_settle(struct postgres *st, bool ask, rv_err **err)
{
    const char *what = st->n_sent > 0 && st->sent[st->n_sent - 1].what ? st->sent[st->n_sent - 1].what : "send";
    struct reading r = {.st = st, .until_ns = store_pg_deadline(st), .err = err};

    if (!st->conn)
        return fail_lost(st, what, err);
    if (ask && st->n_sent > 0)
        st->sent[st->n_sent - 1].is_asked = true;
    if (mark_end(st) < 0 || push_out(st, r.until_ns) < 0)
        store_pg_disconnect(st, st->pq->errorMessage(st->conn));
    while (st->conn && st->n_read < st->n_sent && read_entry(&r, &st->sent[st->n_read]))
        st->n_read++;
    if (!st->conn) {
        if (r.rc < 0 && err) {
            rv_err_free(rv_err_steal(err));
        }
        return fail_lost(st, what, err);
    }
    st->n_sent = st->n_read = 0;
    st->sent_bytes = 0;
    if (r.rc < 0) {
        st->pq->clear(st->asked);
        st->asked = NULL;
    }
    return r.rc;
}

void store_pg_push(struct postgres *st)
{
    for (int i = st->n_read; i < st->n_sent; i++)
        st->sent[i].what = NULL;
    if (mark_end(st) < 0 || push_out(st, store_pg_deadline(st)) < 0)
        store_pg_disconnect(st, st->pq->errorMessage(st->conn));
}

/* --- Statements of their own --- */

int store_pg_ask(struct postgres *st, const struct pg_question *q, PGresult **out, rv_err **err)
{
    if (!st->conn)
        return fail_lost(st, q->what, err);
    if (!st->pq->sendQueryParams(st->conn, q->sql, q->n, NULL, q->args, NULL, NULL, 0))
        return fail_send(st, q->what, err);
    note(st, q->what, NULL);
    int rc = store_pg_settle(st, true, err);
    if (rc == 0 && out) {
        *out = st->asked;
        st->asked = NULL;
    }
    return rc;
}

int store_pg_describe(struct postgres *st, const char *sql, int n, PGresult **out, const char *what, rv_err **err)
{
    static const Oid texts[] = {25, 25};

    if (!st->conn)
        return fail_lost(st, what, err);
    if (!st->pq->sendPrepare(st->conn, "", sql, n, texts) || !st->pq->sendDescribePrepared(st->conn, ""))
        return fail_send(st, what, err);
    note(st, what, NULL);
    note(st, what, NULL);
    int rc = store_pg_settle(st, true, err);
    if (rc == 0) {
        *out = st->asked;
        st->asked = NULL;
    }
    return rc;
}

int store_pg_exec(struct postgres *st, const char *sql, int64_t until_ns, const char *what, rv_err **err)
{
    PGresult *res;
    int rc = 0;

    if (!st->conn)
        return fail_lost(st, what, err);
    if (!st->pq->exitPipelineMode(st->conn) || !st->pq->sendQuery(st->conn, sql) || push_out(st, until_ns) < 0)
        return fail_send(st, what, err);
    while ((res = next_result(st, until_ns))) {
        if (rc == 0 && !is_fine(st->pq->resultStatus(res)))
            rc = fail(st, res, what, err);
        st->pq->clear(res);
        if (!st->conn)
            return rc;
    }
    if (rc == 0 && !st->conn)
        return fail_lost(st, what, err);
    if (st->conn && !st->pq->enterPipelineMode(st->conn) && rc == 0)
        return fail_send(st, what, err);
    return rc;
}

int64_t store_pg_number(const struct postgres *st, const PGresult *res, int row, int column)
{
    return res ? strtoll(st->pq->getvalue(res, row, column), NULL, 10) : 0;
}
