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
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR: /* our statements are right, so a table or column is missing: somebody else changed the file */
    case SQLITE_SCHEMA:
    case SQLITE_MISMATCH:
        return RV_E_INVALID;
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
        rv_err_hint(err, "another process has held \"%s\" for more than %lld ms; try again, or end it", st->path,
                    (long long)st->busy_ms);
        break;
    case SQLITE_CORRUPT:
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

int rv_sql_fail(struct sql_store *st, int rc, const char *what, rv_err **err)
{
    int extended = st->db ? sqlite3_extended_errcode(st->db) : rc, code;
    const char *text = sqlite3_errstr(rc);
    const char *reason = "";
    int reason_no = 0;

    if (st->db && (extended & 0xff) == (rc & 0xff)) { /* the connection still speaks of this failure */
        rc = extended;
        text = sqlite3_errmsg(st->db);
        reason_no = sqlite3_system_errno(st->db);
    }
    code = code_of(rc);
    if (code == RV_E_IO && reason_no != 0)
        reason = strerror(reason_no);
    if ((rc & 0xff) == SQLITE_FULL)
        reason = "no space left";
    RV_FAIL(err, code, "\"%s\": %s: %s%s%s", st->path, what, text, *reason ? ": " : "", reason);
    advise(st, rc, err);
    return code;
}
