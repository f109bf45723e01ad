/* Transactions of PostgreSQL, and the outcome of a commit whose answer was lost.
 *
 * The first statement of each transaction that writes counts it in the row of its handle (table handles) and fails when
 * the row has another epoch. When the connection breaks while a commit is under way, the handle raises the epoch over a
 * new connection. That waits for the transaction if it still runs, and makes it fail if it has not begun; the count in
 * the row then tells whether it was committed. See
 * docs/explanation/decisions/0060-a-lost-answer-is-settled-by-a-fence.md.
 *
 * A commit that does not wait for the disk may be lost when the server crashes, and its count with it, but never
 * without all that came behind it. So after a lost connection such a handle reads its count again, and accepts a lower
 * one. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "coreengine/store/postgres/postgres_internal.h"

#define MAX_RACES    20          /* times that others may be in the way of one write: then the server is overloaded */
#define SURE_SECONDS (12 * 3600) /* the row of a handle lasts a day: see OLD_HANDLES */

static int64_t boot_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec;
}

/* --- The outcome of a commit --- */

static int fail_unknown(struct postgres *st, rv_err **err)
{
    st->is_unknown = st->is_registered = false;
    st->retry = PG_RETRY_NOT;
    RV_FAIL(err, RV_E_IO,
            "\"%s\": the connection broke while a write was committed, and whether it was cannot be known",
            st->base.path);
    rv_err_set_hint(err, "look before you repeat it");
    return RV_E_IO;
}

static int read_row(struct postgres *st, const PGresult *res, rv_err **err)
{
    int64_t before = st->n;
    bool asks = st->is_unknown, may_lack = st->recounts;

    if (asks && boot_seconds() - st->commit_s > SURE_SECONDS)
        return fail_unknown(st, err);
    if (may_lack && st->pq->ntuples(res) == 0) { /* lost, with all that came behind it; or swept */
        st->is_registered = st->recounts = st->is_unknown = st->owes_disk = st->was_committed = false;
        return 0;
    }
    if (st->pq->ntuples(res) != 1)
        return fail_unknown(st, err);
    st->n = store_pg_number(st, res, 0, 0);
    st->epoch = store_pg_number(st, res, 0, 1);
    st->is_registered = true;
    st->is_unknown = st->recounts = st->owes_disk = false;
    st->was_committed = asks && st->n == before + 1;
    if (st->n != before && !st->was_committed && !(may_lack && st->n < before))
        return RV_FAIL(err, RV_E_INTERNAL, "\"%s\": handle %s has %lld commits, not %lld", st->base.path, st->id,
                       (long long)st->n, (long long)before);
    return 0;
}

/* A handle that has no row gets one, which its first write, should it still come, cannot make then. */
static int raise_epoch(struct postgres *st, rv_err **err)
{
    const char *args[] = {st->id};
    PGresult *res = NULL;
    int rc = store_pg_ask(st,
                          &(const struct pg_question){
                              .sql = st->is_registered
                                         ? "UPDATE handles SET epoch = epoch + 1 WHERE id = $1 RETURNING n, epoch"
                                         : "INSERT INTO handles (id, epoch, n, seen_us) VALUES ($1, 2, 0, " RV_PG_NOW_US
                                           ") ON CONFLICT (id) DO UPDATE SET epoch = handles.epoch + 1 RETURNING n,"
                                           " epoch",
                              .n = 1,
                              .args = args,
                              .what = "ask for the outcome of a write"},
                          &res, err);

    if (rc == 0)
        rc = read_row(st, res, err);
    st->pq->clear(res);
    return rc;
}

/* --- A connection that works --- */

/* A server that ended the connection has said so. */
static void look_alive(struct postgres *st)
{
    struct pollfd fd = {.fd = st->pq->socket(st->conn), .events = POLLIN};

    if (poll(&fd, 1, 0) > 0 && !st->pq->consumeInput(st->conn))
        store_pg_disconnect(st, st->pq->errorMessage(st->conn));
}

static int fail_waited(struct postgres *st, int rc, rv_err **err)
{
    if (rc != RV_E_IO && rc != RV_E_TIMEOUT)
        return rc;
    RV_WRAP(err, RV_E_TIMEOUT, "\"%s\": no connection to the server within %lld ms", st->base.path,
            (long long)store_pg_wait_ms(st));
    rv_err_set_hint(err, "is the server running? `pg_isready` asks it");
    return RV_E_TIMEOUT;
}

int store_pg_ready(struct postgres *st, rv_err **err)
{
    int64_t until_ns =
        st->tries_until_ns > 0 ? st->tries_until_ns : store_pg_now_ns() + store_pg_wait_ms(st) * RV_NS_PER_MS;

    if (st->conn)
        look_alive(st);
    for (;;) {
        rv_err *why = NULL;
        int rc = st->conn ? 0 : store_pg_connect(st, until_ns, false, &why);
        bool is_connected = rc == 0;
        if (rc == 0 && (st->is_unknown || st->recounts))
            rc = raise_epoch(st, &why);
        if (rc == 0)
            return 0;
        if (is_connected && (st->is_unknown || st->recounts) && store_pg_now_ns() < until_ns) {
            rv_err_free(why);
            continue;
        }
        if (!is_connected)
            rc = fail_waited(st, rc, &why);
        store_pg_done_trying(st);
        rv_err_pass(err, why);
        return rc;
    }
}

/* --- Repeating --- */

bool postgres_again(struct sql_store *base)
{
    struct postgres *st = (struct postgres *)base;
    enum pg_retry retry = st->retry;
    int64_t now = store_pg_now_ns();

    st->retry = PG_RETRY_NOT;
    if (retry != PG_RETRY_NOT && st->tries_until_ns == 0)
        st->tries_until_ns = now + store_pg_wait_ms(st) * RV_NS_PER_MS;
    if (retry == PG_RETRY_NOT || now >= st->tries_until_ns || st->n_tries >= MAX_RACES) {
        st->n_tries = 0;
        st->tries_until_ns = 0;
        return false;
    }
    st->n_tries++;
    store_pg_sleep_ms((int64_t)rv_rand_below(rv_rand_system(), (uint64_t)st->n_tries * 4));
    return true;
}

void postgres_may_be_lost(struct sql_store *base)
{
    ((struct postgres *)base)->is_losable = true;
}

void store_pg_done_trying(struct postgres *st)
{
    st->n_tries = 0;
    st->tries_until_ns = 0;
    st->retry = PG_RETRY_NOT;
}

/* --- Reading --- */

int store_pg_open_reading(struct postgres *st, rv_err **err)
{
    int rc = store_pg_send_id(st, SQL_BEGIN_READ, "begin to read", err);

    if (rc == 0) {
        st->transaction = PG_READING;
        st->is_first = true;
        st->is_spoilt = false;
    }
    return rc;
}

void store_pg_abandon(struct postgres *st)
{
    bool was_open = st->transaction != PG_IDLE;

    st->transaction = PG_IDLE;
    st->base.rules = 0;
    st->is_spoilt = st->is_first = st->is_patient = st->tells = st->is_losable = false;
    if (!st->conn || !was_open)
        return;
    if (store_pg_send_id(st, SQL_ROLLBACK, "roll back",
                         RV_CODE_ONLY("the connection is dropped below, by which the server rolls back, too")) < 0 &&
        st->conn)
        store_pg_disconnect(st, "a transaction could not be rolled back");
    if (st->conn)
        store_pg_push(st);
}

int postgres_begin_read(struct sql_store *base, bool *began, rv_err **err)
{
    struct postgres *st = (struct postgres *)base;

    *began = false;
    if (st->transaction != PG_IDLE)
        return 0;
    int rc = store_pg_ready(st, err);
    if (rc == 0)
        rc = store_pg_open_reading(st, err);
    *began = rc == 0;
    return rc;
}

void postgres_end_read(struct sql_store *base, bool began)
{
    if (began)
        store_pg_abandon((struct postgres *)base);
}

/* --- Writing --- */

static int count_write(struct postgres *st, const char *what, rv_err **err)
{
    char lock[24], statement[24];
    int64_t wait_ms = store_pg_wait_ms(st);

    snprintf(lock, sizeof lock, "%lld", (long long)wait_ms);
    snprintf(statement, sizeof statement, "%lld", (long long)(wait_ms + RV_PG_STATEMENT_MS));
    if (!st->is_registered) { /* another handle than any before */
        rv_id_make(rv_rand_system(), "h_", st->id);
        st->epoch = 1;
        st->n = 0;
    }
    rv_sql_stmt *stmt = &store_pg_stmt(st, st->is_registered ? PG_COUNT_WRITE : PG_COUNT_FIRST)->base;
    store_sql_text(stmt, 1, st->id);
    sql_int(stmt, 2, st->epoch);
    store_sql_text(stmt, 3, lock);
    store_sql_text(stmt, 4, statement);
    int rc = store_pg_send(st, (struct postgres_stmt *)stmt, what, err);
    if (rc == 0)
        st->sent[st->n_sent - 1].counts = true;
    sql_done(stmt);
    return rc;
}

static int open_writing(struct postgres *st, const char *what, rv_err **err)
{
    int rc = store_pg_ready(st, err);

    st->retry = PG_RETRY_NOT;
    if (rc == 0)
        rc = store_pg_send_id(st, SQL_BEGIN_WRITE, what, err);
    if (rc < 0)
        return rc;
    st->transaction = PG_WRITING;
    st->base.rules = 0;
    st->is_spoilt = st->is_first = st->tells = st->is_losable = false;
    st->n_changes = st->n_changes_before = 0;
    rc = count_write(st, what, err);
    if (rc < 0)
        store_pg_abandon(st);
    return rc;
}

/* The answer to the commit did not come. */
static int find_out(struct postgres *st, rv_err **err)
{
    rv_err *why = NULL;

    st->is_unknown = true;
    st->was_committed = false;
    int rc = store_pg_ready(st, &why);
    if (rc == 0 && st->was_committed) {
        rv_err_free(rv_err_steal(err));
        return 0;
    }
    if (rc == 0) { /* it wrote nothing */
        st->retry = PG_RETRY_LOST;
        return RV_E_IO;
    }
    rv_err_free(rv_err_steal(err));
    rv_err_pass(err, why);
    if (!st->is_unknown)
        return rc;
    rc = RV_WRAP(err, RV_E_IO,
                 "\"%s\": the connection broke while a write was committed, and whether it was is not known",
                 st->base.path);
    rv_err_set_hint(err, "look before you repeat it");
    return rc;
}

static int send_commit(struct postgres *st, const char *what, rv_err **err)
{
    int rc = store_pg_send_tidings(st, err);

    if (rc == 0 && st->is_losable)
        rc = store_pg_send_id(st, PG_DO_NOT_WAIT, what, err);
    if (rc == 0)
        rc = store_pg_send_id(st, SQL_COMMIT, what, err);
    if (rc < 0) {
        store_pg_abandon(st);
        return rc;
    }
    st->commit_s = boot_seconds();
    rc = store_pg_settle(st, true, err);
    if (rc == 0 && strcmp(st->pq->cmdStatus(st->asked), "COMMIT") != 0)
        rc = RV_FAIL(err, RV_E_INTERNAL, "\"%s\": %s: the server rolled back", st->base.path, what);
    if (rc < 0 && !st->conn)
        return find_out(st, err);
    if (rc < 0) {
        store_pg_abandon(st);
        return rc;
    }
    st->transaction = PG_IDLE;
    st->base.rules = 0;
    st->is_patient = false;
    st->n++;
    st->owes_disk = st->is_losable || st->sync != RV_STORE_SYNC_FULL;
    return 0;
}

/* A transaction that changed nothing leaves nothing to commit. */
static int commit(struct postgres *st, const char *what, rv_err **err)
{
    rv_err *why = NULL;
    int rc = 0;

    if (st->n_changes > 0) {
        rc = send_commit(st, what, &why);
        if (rc == 0)
            st->is_registered = true;
    } else {
        store_pg_abandon(st);
    }
    if (rc == 0)
        store_pg_done_trying(st);
    else
        rv_err_pass(err, why);
    return rc;
}

static int fail_broken(const struct sql_store *base, rv_err **err)
{
    return RV_FAIL(err, base->broken, "\"%s\": the group was rolled back when a write in it failed", base->path);
}

int postgres_begin_write(struct sql_store *base, const char *what, rv_err **err)
{
    struct postgres *st = (struct postgres *)base;

    if (!base->in_group)
        return open_writing(st, what, err);
    if (base->broken)
        return fail_broken(base, err);
    st->n_changes_before = st->n_changes;
    return 0;
}

/* A write of a group that was refused before it changed anything leaves the others as they are. */
static bool is_whole(const struct postgres *st)
{
    return st->conn && st->transaction == PG_WRITING && !st->is_spoilt && st->n_changes == st->n_changes_before;
}

int postgres_end_write(struct sql_store *base, int rc, const char *what, rv_err **err)
{
    struct postgres *st = (struct postgres *)base;

    if (!base->in_group && rc == 0)
        return commit(st, what, err);
    if (!base->in_group || (rc < 0 && !is_whole(st))) {
        store_pg_abandon(st);
        base->broken = base->in_group ? rc : 0;
    }
    return rc;
}

int postgres_begin_part(struct sql_store *base, rv_err **err)
{
    struct postgres *st = (struct postgres *)base;

    return base->in_group ? store_pg_send_id(st, SQL_BEGIN_PART, "begin a part of the group", err) : 0;
}

static bool is_refusal(int rc)
{
    return rc == RV_E_DENIED || rc == RV_E_EXISTS || rc == RV_E_INVALID || rc == RV_E_LIMIT || rc == RV_E_NOT_FOUND ||
           rc == RV_E_STATE;
}

int postgres_end_part(struct sql_store *base, int rc, rv_err **err)
{
    struct postgres *st = (struct postgres *)base;
    rv_err *why = NULL;

    if (!base->in_group)
        return rc;
    if (rc == 0)
        return store_pg_send_id(st, SQL_END_PART, "end a part of the group", err);
    if (!is_refusal(rc) || !st->conn || st->is_spoilt)
        return rc;
    int undone = store_pg_send_id(st, SQL_UNDO_PART, "undo a part of the group", &why);
    if (undone == 0)
        undone = store_pg_send_id(st, SQL_END_PART, "end a part of the group", &why);
    if (undone < 0) { /* that is what the group is given up for, not the refusal */
        rv_err_free(rv_err_steal(err));
        rv_err_pass(err, why);
        return RV_WRAP(err, undone, "\"%s\": undo a part of the group", base->path);
    }
    st->n_changes = st->n_changes_before;
    return rc;
}

int postgres_begin(struct sql_store *base, rv_err **err)
{
    int rc = open_writing((struct postgres *)base, "begin a group", err);

    base->in_group = rc == 0;
    base->broken = 0;
    return rc;
}

int postgres_commit(struct sql_store *base, rv_err **err)
{
    struct postgres *st = (struct postgres *)base;

    base->in_group = false;
    return base->broken ? fail_broken(base, err) : commit(st, "commit the group", err);
}

void postgres_rollback(struct sql_store *base)
{
    base->in_group = false;
    store_pg_abandon((struct postgres *)base);
}
