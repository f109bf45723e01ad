/* Sessions. An id is one session's of its owner, for good; what other owners have by that id is never looked at. */
#include "coreengine/store/sqlite_internal.h"

#define MAX_SQL 4096

static int row_of(struct sql_store *st, sqlite3_stmt *stmt, struct sql_session *out, rv_err **err)
{
    bool lacked = false;
    struct sql_session got = {
        .key = sqlite3_column_int64(stmt, 0),
        .is_deleted = sqlite3_column_type(stmt, 13) != SQLITE_NULL,
        .row = {.id = rv_sql_column(stmt, 1, &lacked),
                .tenant = rv_sql_column(stmt, 2, &lacked),
                .user = rv_sql_column(stmt, 3, &lacked),
                .name = rv_sql_column(stmt, 4, &lacked),
                .description = rv_sql_column(stmt, 5, &lacked),
                .agent_name = rv_sql_column(stmt, 6, &lacked),
                .mode = rv_sql_column(stmt, 7, &lacked),
                .total_tokens = sqlite3_column_int64(stmt, 8),
                .n_messages = sqlite3_column_int64(stmt, 9),
                .metadata = rv_sql_bytes(stmt, 10),
                .created_us = sqlite3_column_int64(stmt, 11),
                .updated_us = sqlite3_column_int64(stmt, 12),
                .status = rv_sql_column(stmt, 14, &lacked)},
    };
    const struct rv_session_row *row = &got.row;

    if (lacked)
        return RV_FAIL(err, RV_E_NOMEM, "read a session");
    if (!row->id || !row->tenant || !row->user || !row->name || !row->mode || !row->metadata.ptr || !row->status) {
        RV_FAIL(err, RV_E_IO, "\"%s\": session \"%s\" is damaged: a text is missing", st->path, row->id ? row->id : "");
        rv_err_hint(err, "`reeve gc --check` lists what else is");
        return RV_E_IO;
    }
    const int64_t numbers[] = {row->total_tokens, row->n_messages, row->created_us, row->updated_us};
    int rc = rv_sql_check_numbers(st, "session", row->id, numbers, RV_COUNT(numbers), err);
    if (rc == 0)
        *out = got;
    return rc;
}

/* Who sees all users of a tenant has to say whose is meant, when two have one of that id. */
static int is_only_one(struct sql_store *st, const struct rv_store_scope *scope, const char *id, rv_err **err)
{
    sqlite3_stmt *stmt = NULL;
    int64_t n = 0;

    if (scope->user)
        return 0;
    int rc = rv_sql_use(st, SQL_COUNT_SESSIONS, &stmt, err);
    if (rc < 0)
        return rc;
    rv_sql_text(st, stmt, 1, scope->tenant);
    rv_sql_text(st, stmt, 2, id);
    rc = rv_sql_step(st, stmt, "look for a session", err);
    n = rc == 1 ? sqlite3_column_int64(stmt, 0) : 0;
    rv_sql_done(stmt);
    if (rc < 0)
        return rc;
    return n > 1 ? rv_store_fail_ambiguous_session(id, err) : 0;
}

int rv_sql_find_session(struct sql_store *st, const struct rv_store_scope *scope, const char *id, sqlite3_stmt **stmt,
                        struct sql_session *out, rv_err **err)
{
    int rc = is_only_one(st, scope, id, err);

    if (rc == 0)
        rc = rv_sql_use(st, SQL_FIND_SESSION, stmt, err);
    if (rc < 0)
        return rc;
    rv_sql_text(st, *stmt, 1, scope->tenant);
    rv_sql_text(st, *stmt, 2, id);
    rv_sql_text(st, *stmt, 3, scope->user);
    rc = rv_sql_step(st, *stmt, "look for a session", err);
    if (rc == 1) {
        int failed = row_of(st, *stmt, out, err);
        rc = failed < 0 ? failed : 1;
    }
    return rc;
}

int rv_sql_see_session(struct sql_store *st, const struct rv_store_scope *scope, const char *id, sqlite3_stmt **stmt,
                       struct sql_session *out, rv_err **err)
{
    int rc = rv_sql_find_session(st, scope, id, stmt, out, err);

    if (rc == 0 || (rc == 1 && out->is_deleted))
        rc = rv_store_fail_no_session(id, err);
    return rc < 0 ? rc : 0;
}

int rv_sql_add_session(struct sql_store *st, const struct rv_session_row *fresh, int64_t *key, rv_err **err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_use(st, SQL_ADD_SESSION, &stmt, err);

    if (rc < 0)
        return rc;
    rv_sql_text(st, stmt, 1, fresh->id);
    rv_sql_text(st, stmt, 2, fresh->tenant);
    rv_sql_text(st, stmt, 3, fresh->user);
    rv_sql_text(st, stmt, 4, fresh->name);
    rv_sql_text(st, stmt, 5, fresh->description);
    rv_sql_text(st, stmt, 6, fresh->agent_name);
    rv_sql_text(st, stmt, 7, fresh->mode);
    rv_sql_str(st, stmt, 8, fresh->metadata);
    rv_sql_int(st, stmt, 9, fresh->created_us);
    rv_sql_text(st, stmt, 10, fresh->status);
    rc = rv_sql_run(st, stmt, "write a session", err);
    *key = sqlite3_last_insert_rowid(st->db);
    return rc;
}

static int copy(const struct rv_session_row *row, struct rv_session_row *out, rv_err **err)
{
    if (out && rv_session_row_copy(row, out) < 0)
        return RV_FAIL(err, RV_E_NOMEM, "read session \"%s\"", row->id);
    return 0;
}

static int ensure(struct sql_store *st, const struct rv_session_row *fresh, struct rv_session_row *out, rv_err **err)
{
    const struct rv_store_scope owner = {fresh->tenant, fresh->user};
    struct sql_session found;
    sqlite3_stmt *stmt = NULL;
    int64_t key = 0;
    int rc = rv_sql_find_session(st, &owner, fresh->id, &stmt, &found, err), is_there = rc;

    if (rc == 1 && found.is_deleted)
        rc = rv_store_fail_session_deleted(fresh->id, err);
    else if (rc >= 0)
        rc = copy(is_there ? &found.row : fresh, out, err);
    rv_sql_done(stmt);
    if (rc == 0 && !is_there)
        rc = rv_sql_add_session(st, fresh, &key, err);
    return rc;
}

int rv_sql_ensure_session(void *self, const struct rv_session_row *fresh, struct rv_session_row *out, rv_err **err)
{
    struct sql_store *st = self;
    int rc = rv_sql_begin_write(st, "make a session", err);

    if (rc < 0)
        return rc;
    return rv_sql_end_write(st, ensure(st, fresh, out, err), "make a session", err);
}

int rv_sql_get_session(void *self, const struct rv_store_scope *scope, const char *id, struct rv_session_row *out,
                       rv_err **err)
{
    struct sql_session found;
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_see_session(self, scope, id, &stmt, &found, err);

    if (rc == 0)
        rc = copy(&found.row, out, err);
    rv_sql_done(stmt);
    return rc;
}

static int change_session(struct sql_store *st, const struct rv_store_scope *scope, const char *id,
                          const struct rv_session_change *change, rv_buf *metadata, rv_err **err)
{
    struct sql_session found;
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_see_session(st, scope, id, &stmt, &found, err);
    bool is_merged = change->metadata || change->n_remove > 0;

    if (rc == 0 && is_merged)
        rc = rv_store_merge(found.row.metadata, change->metadata, change->remove, change->n_remove, metadata, err);
    rv_sql_done(stmt);
    if (rc == 0)
        rc = rv_sql_use(st, SQL_CHANGE_SESSION, &stmt, err);
    if (rc < 0)
        return rc;
    rv_sql_int(st, stmt, 1, found.key);
    rv_sql_text(st, stmt, 2, change->name);
    rv_sql_text(st, stmt, 3, change->mode);
    if (is_merged)
        rv_sql_str(st, stmt, 4, rv_buf_str(metadata));
    rv_sql_int(st, stmt, 5, change->now_us);
    rv_sql_text(st, stmt, 6, change->status);
    return rv_sql_run(st, stmt, "write a session", err);
}

int rv_sql_change_session(void *self, const struct rv_store_scope *scope, const char *id,
                          const struct rv_session_change *change, rv_err **err)
{
    struct sql_store *st = self;
    rv_buf metadata = RV_BUF_INIT(RV_STORE_MAX_META);
    int rc = rv_sql_begin_write(st, "change a session", err);

    if (rc < 0)
        return rc;
    rc = change_session(st, scope, id, change, &metadata, err);
    rv_buf_fini(&metadata);
    return rv_sql_end_write(st, rc, "change a session", err);
}

/* Only the conditions that are asked for, so that an index can serve them. */
static int prepare_list(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_session_filter *f,
                        sqlite3_stmt **out, rv_err **err)
{
    rv_buf sql = RV_BUF_INIT(MAX_SQL);
    int rc;

    rv_buf_puts(&sql, RV_SQL_SESSION " WHERE tenant_id = ?1 AND deleted_us IS NULL");
    if (scope->user)
        rv_buf_puts(&sql, " AND user_id = ?2");
    if (f->agent_name)
        rv_buf_puts(&sql, " AND agent_name = ?3 COLLATE NOCASE");
    if (f->name_contains)
        rv_buf_puts(&sql, " AND instr(lower(name), lower(?4)) > 0");
    if (f->since_us > 0)
        rv_buf_puts(&sql, " AND updated_us >= ?5");
    if (f->status)
        rv_buf_puts(&sql, " AND status = ?8");
    rv_buf_puts(&sql, " ORDER BY updated_us DESC, id, user_id LIMIT ?6 OFFSET ?7");
    rc = rv_buf_check(&sql, "query", err);
    if (rc == 0) {
        rc = sqlite3_prepare_v2(st->db, rv_buf_cstr(&sql), -1, out, NULL);
        if (rc != SQLITE_OK)
            rc = rv_sql_fail(st, rc, "list sessions", err);
    }
    rv_buf_fini(&sql);
    return rc;
}

int rv_sql_list_sessions(void *self, const struct rv_store_scope *scope, const struct rv_session_filter *filter,
                         rv_each_session *each, void *ctx, rv_err **err)
{
    struct sql_store *st = self;
    sqlite3_stmt *stmt = NULL;
    int rc = prepare_list(st, scope, filter, &stmt, err);

    if (rc < 0)
        return rc;
    st->bind_rc = SQLITE_OK;
    rv_sql_text(st, stmt, 1, scope->tenant);
    if (scope->user)
        rv_sql_text(st, stmt, 2, scope->user);
    if (filter->agent_name)
        rv_sql_text(st, stmt, 3, filter->agent_name);
    if (filter->name_contains)
        rv_sql_text(st, stmt, 4, filter->name_contains);
    if (filter->since_us > 0)
        rv_sql_int(st, stmt, 5, filter->since_us);
    if (filter->status)
        rv_sql_text(st, stmt, 8, filter->status);
    rv_sql_int(st, stmt, 6, filter->limit > 0 ? filter->limit : -1);
    rv_sql_int(st, stmt, 7, filter->offset);
    while ((rc = rv_sql_step(st, stmt, "list sessions", err)) == 1) {
        struct sql_session found;
        rc = row_of(st, stmt, &found, err);
        if (rc == 0)
            rc = each(ctx, &found.row, err);
        if (rc != 0)
            break;
    }
    sqlite3_finalize(stmt);
    return rc;
}

static int delete_session(struct sql_store *st, const struct rv_store_scope *scope, const char *id, int64_t now_us,
                          rv_err **err)
{
    struct sql_session found;
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_see_session(st, scope, id, &stmt, &found, err);

    rv_sql_done(stmt);
    if (rc == 0)
        rc = rv_sql_use(st, SQL_DELETE_SESSION, &stmt, err);
    if (rc < 0)
        return rc;
    rv_sql_int(st, stmt, 1, found.key);
    rv_sql_int(st, stmt, 2, now_us);
    return rv_sql_run(st, stmt, "delete a session", err);
}

int rv_sql_delete_session(void *self, const struct rv_store_scope *scope, const char *id, int64_t now_us, rv_err **err)
{
    struct sql_store *st = self;
    int rc = rv_sql_begin_write(st, "delete a session", err);

    if (rc < 0)
        return rc;
    return rv_sql_end_write(st, delete_session(st, scope, id, now_us, err), "delete a session", err);
}
