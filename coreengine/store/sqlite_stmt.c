/* Statements and transactions. A write that fails has changed nothing: alone it is rolled back; in a group it is
 * refused before it writes, and should it fail after that (no space, no memory), the group is given up as a whole. */
#include "coreengine/store/sqlite_internal.h"

static const char *const texts[] = {
#define X(name, text) [SQL_##name] = (text),
    RV_SQL_STATEMENTS(X)
#undef X
};
_Static_assert(RV_COUNT(texts) == SQL_N_STATEMENTS, "a text for each");

int rv_sql_use(struct sql_store *st, enum sql_id id, sqlite3_stmt **out, rv_err **err)
{
    if (!st->stmts[id]) {
        int rc = sqlite3_prepare_v3(st->db, texts[id], -1, SQLITE_PREPARE_PERSISTENT, &st->stmts[id], NULL);
        if (rc != SQLITE_OK)
            return rv_sql_fail(st, rc, "prepare", err);
    }
    st->bind_rc = SQLITE_OK;
    *out = st->stmts[id];
    return 0;
}

void rv_sql_done(sqlite3_stmt *stmt)
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

void rv_sql_int(struct sql_store *st, sqlite3_stmt *stmt, int i, int64_t v)
{
    note(st, sqlite3_bind_int64(stmt, i, v));
}

void rv_sql_text(struct sql_store *st, sqlite3_stmt *stmt, int i, const char *text)
{
    note(st, sqlite3_bind_text(stmt, i, text, -1, SQLITE_STATIC));
}

void rv_sql_str(struct sql_store *st, sqlite3_stmt *stmt, int i, rv_str s)
{
    note(st, sqlite3_bind_text64(stmt, i, s.ptr, s.len, SQLITE_STATIC, SQLITE_UTF8));
}

void rv_sql_blob(struct sql_store *st, sqlite3_stmt *stmt, int i, const void *bytes, size_t len)
{
    note(st, sqlite3_bind_blob64(stmt, i, len > 0 ? bytes : "", len, SQLITE_STATIC));
}

int rv_sql_step(struct sql_store *st, sqlite3_stmt *stmt, const char *what, rv_err **err)
{
    int rc = st->bind_rc;

    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        return 1;
    return rc == SQLITE_DONE ? 0 : rv_sql_fail(st, rc, what, err);
}

int rv_sql_run(struct sql_store *st, sqlite3_stmt *stmt, const char *what, rv_err **err)
{
    int rc = rv_sql_step(st, stmt, what, err);

    rv_sql_done(stmt);
    return rc < 0 ? rc : 0;
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

const char *rv_sql_column(sqlite3_stmt *stmt, int i, bool *lacked)
{
    const char *text;

    if (sqlite3_column_type(stmt, i) == SQLITE_NULL)
        return NULL;
    text = (const char *)sqlite3_column_text(stmt, i);
    *lacked = *lacked || !text;
    return text ? text : "";
}

rv_str rv_sql_bytes(sqlite3_stmt *stmt, int i)
{
    const char *bytes;

    if (sqlite3_column_type(stmt, i) == SQLITE_NULL)
        return (rv_str){NULL, 0};
    bytes = sqlite3_column_blob(stmt, i); /* NULL for no bytes */
    return (rv_str){bytes ? bytes : "", bytes ? (size_t)sqlite3_column_bytes(stmt, i) : 0};
}

static int run_id(struct sql_store *st, enum sql_id id, const char *what, rv_err **err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_use(st, id, &stmt, err);

    return rc < 0 ? rc : rv_sql_run(st, stmt, what, err);
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

int rv_sql_begin(void *self, rv_err **err)
{
    struct sql_store *st = self;
    int rc = run_id(st, SQL_BEGIN_WRITE, "begin a group", err);

    st->in_group = rc == 0;
    st->broken = 0;
    return rc;
}

int rv_sql_commit(void *self, rv_err **err)
{
    struct sql_store *st = self;
    int rc;

    st->in_group = false;
    rc = st->broken ? fail_broken(st, err) : run_id(st, SQL_COMMIT, "commit the group", err);
    if (rc < 0)
        abandon(st);
    return rc;
}

void rv_sql_rollback(void *self)
{
    struct sql_store *st = self;

    st->in_group = false;
    abandon(st);
}
