/* Statements of SQLite: its failures, waiting for its lock, binding and stepping. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coreengine/store/sqlite/sqlite_internal.h"

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
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_NOLFS:
        return RV_E_IO;
    case SQLITE_FULL:
        return RV_E_DISK;
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY:
        return RV_E_DENIED;
    case SQLITE_TOOBIG:
        return RV_E_LIMIT;
    default: /* SQLITE_CONSTRAINT, SQLITE_MISUSE, SQLITE_RANGE: arguments were checked, so these are ours */
        return RV_E_INTERNAL;
    }
}

static void advise(const struct sqlite *st, int rc, rv_err **err)
{
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        rv_err_set_hint(
            err, "other processes kept \"%s\" locked for more than %lld ms; try again, or end the one that holds it",
            st->base.path, (long long)(st->wait_ms > 0 ? st->wait_ms : st->busy_ms));
        break;
    case SQLITE_CORRUPT:
    case SQLITE_ERROR:
    case SQLITE_SCHEMA:
    case SQLITE_MISMATCH:
        rv_err_set_hint(err,
                        "restore the file from a backup; `reeve store check` lists the damage of a file that opens");
        break;
    case SQLITE_NOTADB:
        rv_err_set_hint(err, "name another file, or restore this one from a backup");
        break;
    case SQLITE_FULL:
    case SQLITE_IOERR:
        if (rv_err_code(*err) == RV_E_DISK)
            rv_err_set_hint(err, "make room on the disk of \"%s\"; nothing that was written before is lost",
                            st->base.path);
        break;
    case SQLITE_CANTOPEN:
        if (rv_err_code(*err) == RV_E_FILES)
            rv_err_set_hint(err, "raise `ulimit -n`, the largest number of open files of a process");
        break;
    case SQLITE_READONLY:
        rv_err_set_hint(err, "the file and its folder must both be writable");
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

int sqlite_fail(struct sqlite *st, int rc, const char *what, rv_err **err)
{
    const char *text = sqlite3_errstr(rc), *reason = "";
    int code, number = 0;

    if (st->link->db &&
        (sqlite3_extended_errcode(st->link->db) & 0xff) == (rc & 0xff)) { /* it still speaks of this failure */
        rc = sqlite3_extended_errcode(st->link->db);
        text = sqlite3_errmsg(st->link->db);
    }
    code = code_of(rc);
    if (st->link->db && code == RV_E_IO && has_reason(rc))
        number = reason_of(st->link->db, rc);
    if (code == RV_E_DISK)
        reason = "no space left";
    else if (number != 0)
        reason = strerror(number);
    if (rv_code_is_scarce(rv_code_of_system(number)) || rv_code_of_system(number) == RV_E_DENIED)
        code = rv_code_of_system(number);
    st->base.is_denied = code == RV_E_DENIED;
    RV_FAIL(err, code, "\"%s\": %s: %s%s%s", st->base.path, what, text, *reason ? ": " : "", reason);
    if (err)
        advise(st, rc, err);
    return code;
}

/* --- Waiting for other processes that write. SQLite has no queue: the process that asks first when the lock is free
 * gets it. So each process asks at random times, and the longer it has waited, the more often: the oldest of many
 * waiting processes goes first as a rule, and no process waits much longer than the others. --- */

/* How long to sleep between two questions. A write takes about a millisecond on an idle disk. */
static const struct pace {
    int64_t upto_ms, step_ns; /* from half the step to one and a half */
} paces[] = {
    {20, 2 * RV_NS_PER_MS}, {1000, 16 * RV_NS_PER_MS}, {4000, 8 * RV_NS_PER_MS}, {INT64_MAX, 3 * RV_NS_PER_MS}};

int64_t sqlite_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 * RV_NS_PER_MS + t.tv_nsec;
}

/* SQLite asks whether to try again; n times it has for this lock. */
int sqlite_wait_turn(void *self, int n)
{
    struct sqlite *st = self;
    const struct pace *pace = paces;
    int64_t now = sqlite_now_ns();

    if (n == 0 && !st->has_queued)
        st->waits_since_ns = now;
    int64_t waited_ms = (now - st->waits_since_ns) / RV_NS_PER_MS;
    int64_t left_ms = (st->wait_ms > 0 ? st->wait_ms : st->busy_ms) - waited_ms;
    if (left_ms <= 0)
        return 0;
    while (waited_ms >= pace->upto_ms)
        pace++;
    int64_t ns = pace->step_ns / 2 + (int64_t)rv_rand_below(rv_rand_system(), (uint64_t)pace->step_ns);
    if (ns > left_ms * RV_NS_PER_MS)
        ns = left_ms * RV_NS_PER_MS;
    nanosleep(&(struct timespec){.tv_sec = ns / (1000 * RV_NS_PER_MS), .tv_nsec = ns % (1000 * RV_NS_PER_MS)}, NULL);
    return 1;
}

/* --- Statements --- */

static const char *const texts[] = {
#define X(name, text) [SQL_##name] = (text),
    RV_SQL_STATEMENTS(X)
#undef X
};
_Static_assert(RV_COUNT(texts) == SQL_N_STATEMENTS, "a text for each");

static struct sqlite *store_of(const rv_sql_stmt *stmt)
{
    return (struct sqlite *)stmt->st;
}

rv_sql_stmt *sqlite_use(struct sql_store *base, enum sql_id id)
{
    struct sqlite *st = (struct sqlite *)base;
    struct sqlite_stmt *stmt = &st->link->stmts[id];

    stmt->base.st = base;
    if (!stmt->native)
        stmt->prepare_rc =
            sqlite3_prepare_v3(st->link->db, texts[id], -1, SQLITE_PREPARE_PERSISTENT, &stmt->native, NULL);
    return &stmt->base;
}

/* A statement of that text that was used before. */
static struct sqlite_stmt *take_spare(struct sqlite_link *l, const char *sql)
{
    for (size_t i = 0; i < RV_SQLITE_SPARE && l->spare[i]; i++) {
        struct sqlite_stmt *stmt = l->spare[i];
        if (strcmp(sqlite3_sql(stmt->native), sql) != 0)
            continue;
        memmove(l->spare + i, l->spare + i + 1, (RV_SQLITE_SPARE - 1 - i) * sizeof l->spare[0]);
        l->spare[RV_SQLITE_SPARE - 1] = NULL;
        return stmt;
    }
    return NULL;
}

rv_sql_stmt *sqlite_prepare(struct sql_store *base, const rv_buf *sql)
{
    struct sqlite *st = (struct sqlite *)base;
    struct sqlite_stmt *stmt = take_spare(st->link, rv_buf_cstr(sql));

    if (!stmt && (stmt = calloc(1, sizeof *stmt))) {
        stmt->link = st->link;
        stmt->prepare_rc = sqlite3_prepare_v2(st->link->db, rv_buf_cstr(sql), -1, &stmt->native, NULL);
    }
    if (!stmt)
        return NULL;
    stmt->base = (rv_sql_stmt){.st = base};
    return &stmt->base;
}

static void free_stmt(struct sqlite_stmt *stmt)
{
    if (stmt)
        sqlite3_finalize(stmt->native);
    free(stmt);
}

void sqlite_drop_spare(struct sqlite_link *l)
{
    for (size_t i = 0; i < RV_SQLITE_SPARE; i++) {
        free_stmt(l->spare[i]);
        l->spare[i] = NULL;
    }
}

void sqlite_finish(rv_sql_stmt *base)
{
    struct sqlite_stmt *stmt = (struct sqlite_stmt *)base;
    struct sqlite_link *l = stmt->link;

    if (!stmt->native) {
        free_stmt(stmt);
        return;
    }
    sqlite_reset(base);
    free_stmt(l->spare[RV_SQLITE_SPARE - 1]);
    memmove(l->spare + 1, l->spare, (RV_SQLITE_SPARE - 1) * sizeof l->spare[0]);
    l->spare[0] = stmt;
}

void sqlite_reset(rv_sql_stmt *base)
{
    struct sqlite_stmt *stmt = (struct sqlite_stmt *)base;

    if (!stmt->native)
        return;
    sqlite3_reset(stmt->native); /* repeats what the step said, which was dealt with */
    sqlite3_clear_bindings(stmt->native);
}

static int bind(sqlite3_stmt *stmt, int i, const struct sql_value *v)
{
    switch (v->type) {
    case SQL_INT:
        return sqlite3_bind_int64(stmt, i, v->number);
    case SQL_TEXT:
    case SQL_STR:
        return sqlite3_bind_text64(stmt, i, v->bytes.ptr, v->bytes.len, SQLITE_STATIC, SQLITE_UTF8);
    case SQL_BLOB:
        return sqlite3_bind_blob64(stmt, i, v->bytes.ptr, v->bytes.len, SQLITE_STATIC);
    case SQL_NULL:
    case SQL_N_TYPES:
        break;
    }
    return SQLITE_OK; /* it was reset to null */
}

static int begin(struct sqlite_stmt *stmt)
{
    int rc = stmt->native ? SQLITE_OK : stmt->prepare_rc;

    for (int i = 0; i < stmt->base.n_args && rc == SQLITE_OK; i++)
        rc = bind(stmt->native, i + 1, &stmt->base.args[i]);
    stmt->base.is_running = true;
    return rc;
}

int sqlite_step(rv_sql_stmt *base, const char *what, rv_err **err)
{
    struct sqlite_stmt *stmt = (struct sqlite_stmt *)base;
    int rc = base->is_running ? SQLITE_OK : begin(stmt);

    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt->native);
    if (rc == SQLITE_ROW)
        return 1;
    return rc == SQLITE_DONE ? 0 : sqlite_fail(store_of(base), rc, what, err);
}

int sqlite_run(rv_sql_stmt *base, enum sql_wants wants, int64_t *out, const char *what, rv_err **err)
{
    struct sqlite *st = store_of(base);
    int rc = sqlite_step(base, what, err);

    if (rc < 0)
        return rc;
    if (wants == SQL_WANTS_KEY)
        *out = sqlite3_changes(st->link->db) > 0 ? sqlite3_last_insert_rowid(st->link->db) : 0;
    if (wants == SQL_WANTS_COUNT)
        *out = sqlite3_changes(st->link->db);
    return 0;
}

rv_sql_stmt *sqlite_use_rows(struct sql_store *base, enum sql_id id)
{
    return sqlite_use(base, id);
}

/* At once. */
int sqlite_add_row(const struct sql_rows *r, rv_err **err)
{
    int rc;

    while ((rc = sqlite_step(r->stmt, r->what, err)) == 1)
        if (r->each && (rc = r->each(r->self, r->stmt, err)) != 0)
            break;
    sqlite_reset(r->stmt);
    r->stmt->is_running = false;
    return rc;
}

int sqlite_end_rows(const struct sql_rows *r, int rc, rv_err **err)
{
    (void)r;
    (void)err;
    return rc;
}

rv_str sqlite_str_at(sqlite3_stmt *stmt, int i)
{
    const char *bytes;

    if (sqlite3_column_type(stmt, i) == SQLITE_NULL)
        return (rv_str){NULL, 0};
    bytes = sqlite3_column_blob(stmt, i); /* NULL for no bytes */
    return (rv_str){bytes ? bytes : "", bytes ? (size_t)sqlite3_column_bytes(stmt, i) : 0};
}

void sqlite_column(const rv_sql_stmt *base, int i, enum sql_type type, struct sql_value *out, bool *lacked)
{
    sqlite3_stmt *stmt = ((const struct sqlite_stmt *)base)->native;
    const char *text;

    if (sqlite3_column_type(stmt, i) == SQLITE_NULL)
        return;
    out->type = type;
    switch (type) {
    case SQL_INT:
        out->number = sqlite3_column_int64(stmt, i);
        break;
    case SQL_TEXT:
        text = (const char *)sqlite3_column_text(stmt, i);
        *lacked = *lacked || !text;
        out->bytes = rv_str_of(text ? text : "");
        break;
    case SQL_STR:
    case SQL_BLOB:
        out->bytes = sqlite_str_at(stmt, i);
        break;
    case SQL_NULL:
    case SQL_N_TYPES:
        break;
    }
}

int sqlite_exec(struct sqlite *st, const char *sql, const char *what, rv_err **err)
{
    int rc = sqlite3_exec(st->link->db, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? 0 : sqlite_fail(st, rc, what, err);
}

int sqlite_number(struct sqlite *st, const char *sql, int64_t *out, const char *what, rv_err **err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(st->link->db, sql, -1, &stmt, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        *out = sqlite3_column_int64(stmt, 0);
    else
        rc = sqlite_fail(st, rc, what, err);
    sqlite3_finalize(stmt);
    return rc == SQLITE_ROW ? 0 : rc;
}
