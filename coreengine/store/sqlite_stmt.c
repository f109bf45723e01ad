/* Statements and transactions of SQLite. A write that fails has changed nothing: alone it is rolled back; in a group it
 * is refused before it writes, and should it fail after that (no space, no memory), the group is given up as a whole.
 */
#include <string.h>
#include <time.h>

#include "coreengine/store/sqlite_internal.h"

/* --- Failures: what SQLite's codes mean to a caller of the store --- */

static int code_of(int rc)
{
    if (rc == SQLITE_IOERR_NOMEM)
        return RV_E_NOMEM;
    switch (rc & 0xff) {
    case SQLITE_NOMEM:
        return RV_E_NOMEM;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL: /* the locks of the write-ahead log were contended for too long */
        return RV_E_TIMEOUT;
    case SQLITE_NOTADB: /* the name of another file was given */
        return RV_E_INVALID;
    case SQLITE_CORRUPT:
    case SQLITE_ERROR: /* the engine's statements are correct, so a table or column is missing: another program changed
                          the file */
    case SQLITE_SCHEMA:
    case SQLITE_MISMATCH:
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_NOLFS:
        return RV_E_IO;
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return RV_E_DENIED;
    case SQLITE_TOOBIG:
        return RV_E_LIMIT;
    default: /* SQLITE_CONSTRAINT, SQLITE_MISUSE, SQLITE_RANGE: arguments were checked, so these are ours */
        return RV_E_INTERNAL;
    }
}

static void advise(const struct sql_store *st, int rc, rv_err **err)
{
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        rv_err_hint(err,
                    "other processes kept \"%s\" locked for more than %lld ms; try again, or end the one that holds it",
                    st->path, (long long)(st->wait_ms > 0 ? st->wait_ms : st->busy_ms));
        break;
    case SQLITE_CORRUPT:
    case SQLITE_ERROR:
    case SQLITE_SCHEMA:
    case SQLITE_MISMATCH:
        rv_err_hint(err, "`reeve gc --check` lists the damage; restore the file from a backup");
        break;
    case SQLITE_NOTADB:
        rv_err_hint(err, "name another file, or restore this one from a backup; `reeve gc --check` looks at a store");
        break;
    case SQLITE_FULL:
        rv_err_hint(err, "make room on the disk of \"%s\"; nothing that was written before is lost", st->path);
        break;
    case SQLITE_READONLY:
        rv_err_hint(err, "the file and its folder must both be writable");
        break;
    default:
        break;
    }
}

static int last_errno(sqlite3_file *file)
{
    int reason = 0;

    if (file && file->pMethods)
        file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &reason);
    return reason;
}

/* Why the system refused. SQLite does not keep that for what fails in a commit, but the files do, the log before all.
 */
static int reason_of(sqlite3 *db, int rc)
{
    sqlite3_file *file = NULL;
    int reason = 0;

    if ((rc & 0xff) == SQLITE_IOERR) {
        if (sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) == SQLITE_OK)
            reason = last_errno(file);
        if (reason == 0 && sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK)
            reason = last_errno(file);
    }
    return reason != 0 ? reason : sqlite3_system_errno(db);
}

/* Damage is found in what was read: the system refused nothing. */
static bool has_reason(int rc)
{
    int kind = rc & 0xff;
    return kind != SQLITE_CORRUPT && kind != SQLITE_ERROR && kind != SQLITE_SCHEMA && kind != SQLITE_MISMATCH;
}

int rv_sql_fail(struct sql_store *st, int rc, const char *what, rv_err **err)
{
    const char *text = sqlite3_errstr(rc), *reason = "";
    int code;

    if (st->db && (sqlite3_extended_errcode(st->db) & 0xff) == (rc & 0xff)) { /* it still speaks of this failure */
        rc = sqlite3_extended_errcode(st->db);
        text = sqlite3_errmsg(st->db);
    }
    code = code_of(rc);
    if ((rc & 0xff) == SQLITE_FULL)
        reason = "no space left";
    else if (st->db && code == RV_E_IO && has_reason(rc) && reason_of(st->db, rc) != 0)
        reason = strerror(reason_of(st->db, rc));
    RV_FAIL(err, code, "\"%s\": %s: %s%s%s", st->path, what, text, *reason ? ": " : "", reason);
    advise(st, rc, err);
    return code;
}

/* --- Waiting for other processes that write. SQLite has no queue: the process that asks first when the lock is free
 * gets it. So each process asks at random times, and the longer it has waited, the more often: the oldest of many
 * waiting processes goes first as a rule, and no process waits much longer than the others. --- */

#define MS INT64_C(1000000) /* in nanoseconds */

/* How long to sleep between two questions. A write takes about a millisecond on an idle disk. */
static const struct pace {
    int64_t upto_ms, step_ns; /* from half the step to one and a half */
} paces[] = {{20, 2 * MS}, {1000, 16 * MS}, {4000, 8 * MS}, {INT64_MAX, 3 * MS}};

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 * MS + t.tv_nsec;
}

/* SQLite asks whether to try again; n times it has for this lock. */
int rv_sql_wait_turn(void *self, int n)
{
    struct sql_store *st = self;
    const struct pace *pace = paces;
    int64_t now = now_ns();

    if (n == 0)
        st->waits_since_ns = now;
    int64_t waited_ms = (now - st->waits_since_ns) / MS;
    int64_t left_ms = (st->wait_ms > 0 ? st->wait_ms : st->busy_ms) - waited_ms;
    if (left_ms <= 0)
        return 0;
    while (waited_ms >= pace->upto_ms)
        pace++;
    int64_t ns = pace->step_ns / 2 + (int64_t)rv_rand_below(rv_rand_system(), (uint64_t)pace->step_ns);
    if (ns > left_ms * MS)
        ns = left_ms * MS;
    nanosleep(&(struct timespec){.tv_sec = ns / (1000 * MS), .tv_nsec = ns % (1000 * MS)}, NULL);
    return 1;
}

void rv_sql_set_wait(struct sql_store *st, int64_t ms)
{
    st->wait_ms = ms;
}

/* --- Statements --- */

static const char *const texts[] = {
#define X(name, text) [SQL_##name] = (text),
    RV_SQL_STATEMENTS(X)
#undef X
};
_Static_assert(RV_COUNT(texts) == SQL_N_STATEMENTS, "a text for each");

rv_sql_stmt *rv_sql_use(struct sql_store *st, enum sql_id id)
{
    st->bind_rc = st->stmts[id]
                      ? SQLITE_OK
                      : sqlite3_prepare_v3(st->db, texts[id], -1, SQLITE_PREPARE_PERSISTENT, &st->stmts[id], NULL);
    return st->stmts[id];
}

rv_sql_stmt *rv_sql_prepare(struct sql_store *st, const rv_buf *sql)
{
    sqlite3_stmt *stmt = NULL;

    st->bind_rc = sql->rc < 0 ? SQLITE_NOMEM : sqlite3_prepare_v2(st->db, rv_buf_cstr(sql), -1, &stmt, NULL);
    return stmt;
}

void rv_sql_finish(rv_sql_stmt *stmt)
{
    sqlite3_finalize(stmt);
}

void rv_sql_done(rv_sql_stmt *stmt)
{
    if (!stmt)
        return;
    sqlite3_reset(stmt); /* repeats what the step said, which was dealt with */
    sqlite3_clear_bindings(stmt);
}

static void note(struct sql_store *st, int rc)
{
    if (st->bind_rc == SQLITE_OK)
        st->bind_rc = rc;
}

void rv_sql_int(struct sql_store *st, rv_sql_stmt *stmt, int i, int64_t v)
{
    note(st, stmt ? sqlite3_bind_int64(stmt, i, v) : SQLITE_OK);
}

void rv_sql_text(struct sql_store *st, rv_sql_stmt *stmt, int i, const char *text)
{
    note(st, stmt ? sqlite3_bind_text(stmt, i, text, -1, SQLITE_STATIC) : SQLITE_OK);
}

void rv_sql_str(struct sql_store *st, rv_sql_stmt *stmt, int i, rv_str s)
{
    note(st, stmt ? sqlite3_bind_text64(stmt, i, s.ptr, s.len, SQLITE_STATIC, SQLITE_UTF8) : SQLITE_OK);
}

void rv_sql_blob(struct sql_store *st, rv_sql_stmt *stmt, int i, const void *bytes, size_t len)
{
    note(st, stmt ? sqlite3_bind_blob64(stmt, i, len > 0 ? bytes : "", len, SQLITE_STATIC) : SQLITE_OK);
}

int rv_sql_step(struct sql_store *st, rv_sql_stmt *stmt, const char *what, rv_err **err)
{
    int rc = st->bind_rc;

    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        return 1;
    return rc == SQLITE_DONE ? 0 : rv_sql_fail(st, rc, what, err);
}

int rv_sql_run(struct sql_store *st, rv_sql_stmt *stmt, const char *what, rv_err **err)
{
    int rc = rv_sql_step(st, stmt, what, err);

    rv_sql_done(stmt);
    return rc < 0 ? rc : 0;
}

int rv_sql_run_key(struct sql_store *st, enum sql_id id, int64_t key, const char *what, rv_err **err)
{
    rv_sql_stmt *stmt = rv_sql_use(st, id);

    rv_sql_int(st, stmt, 1, key);
    return rv_sql_run(st, stmt, what, err);
}

int rv_sql_exec(struct sql_store *st, const char *sql, const char *what, rv_err **err)
{
    int rc = sqlite3_exec(st->db, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? 0 : rv_sql_fail(st, rc, what, err);
}

int rv_sql_number(struct sql_store *st, const char *sql, int64_t *out, const char *what, rv_err **err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(st->db, sql, -1, &stmt, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        *out = sqlite3_column_int64(stmt, 0);
    else
        rc = rv_sql_fail(st, rc, what, err);
    sqlite3_finalize(stmt);
    return rc == SQLITE_ROW ? 0 : rc;
}

int64_t rv_sql_int_at(rv_sql_stmt *stmt, int i)
{
    return sqlite3_column_int64(stmt, i);
}

bool rv_sql_is_null(rv_sql_stmt *stmt, int i)
{
    return sqlite3_column_type(stmt, i) == SQLITE_NULL;
}

int rv_sql_changes(const struct sql_store *st)
{
    return sqlite3_changes(st->db);
}

int64_t rv_sql_new_key(const struct sql_store *st)
{
    return sqlite3_last_insert_rowid(st->db);
}

const char *rv_sql_text_at(rv_sql_stmt *stmt, int i, bool *lacked)
{
    const char *text;

    if (sqlite3_column_type(stmt, i) == SQLITE_NULL)
        return NULL;
    text = (const char *)sqlite3_column_text(stmt, i);
    *lacked = *lacked || !text;
    return text ? text : "";
}

rv_str rv_sql_str_at(rv_sql_stmt *stmt, int i)
{
    const char *bytes;

    if (sqlite3_column_type(stmt, i) == SQLITE_NULL)
        return (rv_str){NULL, 0};
    bytes = sqlite3_column_blob(stmt, i); /* NULL for no bytes */
    return (rv_str){bytes ? bytes : "", bytes ? (size_t)sqlite3_column_bytes(stmt, i) : 0};
}

/* --- Transactions --- */

static int run_id(struct sql_store *st, enum sql_id id, const char *what, rv_err **err)
{
    return rv_sql_run(st, rv_sql_use(st, id), what, err);
}

/* Whatever state a failure left the connection in: no transaction is open afterwards. */
static void abandon(struct sql_store *st)
{
    if (sqlite3_get_autocommit(st->db))
        return;
    if (run_id(st, SQL_ROLLBACK, "roll back", NULL) < 0 && !sqlite3_get_autocommit(st->db))
        sqlite3_exec(st->db, "ROLLBACK", NULL, NULL, NULL);
}

int rv_sql_begin_read(struct sql_store *st, bool *began, rv_err **err)
{
    *began = false;
    if (!sqlite3_get_autocommit(st->db))
        return 0;
    *began = true;
    return run_id(st, SQL_BEGIN_READ, "begin to read", err);
}

void rv_sql_end_read(struct sql_store *st, bool began)
{
    if (began)
        abandon(st); /* nothing was written: a rollback cannot fail half-way */
}

static int fail_broken(struct sql_store *st, rv_err **err)
{
    return RV_FAIL(err, st->broken, "\"%s\": the group was rolled back when a write in it failed", st->path);
}

int rv_sql_begin_write(struct sql_store *st, const char *what, rv_err **err)
{
    if (st->in_group && st->broken)
        return fail_broken(st, err);
    st->changes = sqlite3_total_changes(st->db);
    return st->in_group ? 0 : run_id(st, SQL_BEGIN_WRITE, what, err);
}

int rv_sql_end_write(struct sql_store *st, int rc, const char *what, rv_err **err)
{
    if (st->in_group) {
        bool is_whole = !sqlite3_get_autocommit(st->db) && sqlite3_total_changes(st->db) == st->changes;
        if (rc < 0 && !is_whole) {
            abandon(st);
            st->broken = rc;
        }
        return rc;
    }
    if (rc == 0)
        rc = run_id(st, SQL_COMMIT, what, err);
    if (rc < 0)
        abandon(st);
    return rc;
}

int rv_sql_begin_part(struct sql_store *st, rv_err **err)
{
    return st->in_group ? run_id(st, SQL_BEGIN_PART, "begin a part of the group", err) : 0;
}

/* What SQLite or the system could not do gives up the group, as ever. */
static bool is_refusal(int rc)
{
    return rc == RV_E_DENIED || rc == RV_E_EXISTS || rc == RV_E_INVALID || rc == RV_E_LIMIT || rc == RV_E_NOT_FOUND ||
           rc == RV_E_STATE;
}

int rv_sql_end_part(struct sql_store *st, int rc, rv_err **err)
{
    int undone;

    if (!st->in_group)
        return rc;
    if (rc == 0)
        return run_id(st, SQL_END_PART, "end a part of the group", err);
    if (!is_refusal(rc))
        return rc;
    undone = run_id(st, SQL_UNDO_PART, "undo a part of the group", NULL);
    if (undone == 0)
        undone = run_id(st, SQL_END_PART, "end a part of the group", NULL);
    if (undone < 0) /* that is what the group is given up for */
        return RV_WRAP(err, undone, "\"%s\": undo a part of the group", st->path);
    st->changes = sqlite3_total_changes(st->db);
    return rc;
}

int rv_sql_begin(struct sql_store *st, rv_err **err)
{
    int rc = run_id(st, SQL_BEGIN_WRITE, "begin a group", err);

    st->in_group = rc == 0;
    st->broken = 0;
    return rc;
}

int rv_sql_commit(struct sql_store *st, rv_err **err)
{
    int rc;

    st->in_group = false;
    rc = st->broken ? fail_broken(st, err) : run_id(st, SQL_COMMIT, "commit the group", err);
    if (rc < 0)
        abandon(st);
    return rc;
}

void rv_sql_rollback(struct sql_store *st)
{
    st->in_group = false;
    abandon(st);
}
