/* What SQLite's codes mean to a caller of the store: the code, the file, what was being done, SQLite's own words, the
 * system's reason where there is one, and what can be done about it. */
#include <string.h>

#include "coreengine/store/sqlite_internal.h"

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
