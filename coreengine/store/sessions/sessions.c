/* Sessions. An id is one session's of its owner, for good; what other owners have by that id is never looked at. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/encryption/vault_internal.h"
#include "coreengine/store/entities/entities_internal.h"

/* --- Rows --- */

static int copy_row(const struct rv_session_row *row, struct rv_session_row *out)
{
    struct rv_session_row copy = *row;
    const struct rv_row_texts texts = {.texts = {&copy.id, &copy.tenant, &copy.user, &copy.name, &copy.description,
                                                 &copy.agent_name, &copy.mode, &copy.status},
                                       .n_texts = 8,
                                       .strs = {&copy.metadata, &copy.shown_metadata},
                                       .n_strs = 2};

    copy.own = store_pack(&texts);
    if (!copy.own)
        return RV_E_NOMEM;
    *out = copy;
    return 0;
}

void rv_session_row_fini(struct rv_session_row *row)
{
    free(row->own);
    *row = (struct rv_session_row){0};
}

const char *store_session_status_text(enum rv_session_status status)
{
#define TEXT(n, t, m) t,
    static const char *const texts[] = {RV_SESSION_STATUSES(TEXT)};
#undef TEXT
    return texts[status];
}

void store_session_name(const char *id, char name[RV_STORE_NAME_ROOM])
{
    snprintf(name, RV_STORE_NAME_ROOM, "chat-%s", id);
}

static int check_status(const char *status, rv_err **err)
{
    if (!status)
        return 0;
    for (int i = 0; i < RV_N_SESSION_STATUSES; i++)
        if (strcmp(status, store_session_status_text((enum rv_session_status)i)) == 0)
            return 0;
    return RV_FAIL(err, RV_E_INVALID, "a session has no status \"%.40s\"", status);
}

static int check_session(const struct rv_session_row *row, rv_err **err)
{
    int rc;

    if (!row)
        return RV_FAIL(err, RV_E_INVALID, "no session given");
    if ((rc = store_check_id("session id", row->id, err)) < 0 ||
        (rc = store_check_id("tenant", row->tenant, err)) < 0 ||
        (rc = store_check_text("user", row->user, RV_STORE_MAX_ID, err)) < 0 ||
        (rc = store_check_optional("name", row->name, RV_STORE_MAX_TEXT, err)) < 0 ||
        (rc = store_check_optional("mode", row->mode, RV_STORE_MAX_TEXT, err)) < 0 ||
        (rc = check_status(row->status, err)) < 0 ||
        (rc = store_check_optional("agent's name", row->agent_name, RV_STORE_MAX_TEXT, err)) < 0 ||
        (rc = row->description ? store_check_text("description", row->description, RV_STORE_MAX_QUESTION, err) : 0) <
            0 ||
        (rc = store_check_object("metadata", row->metadata, RV_STORE_MAX_META, err)) < 0)
        return rc;
    if ((rc = store_check_new_id("session id", row->id, err)) < 0 ||
        (rc = store_check_new_id("tenant", row->tenant, err)) < 0 ||
        (rc = store_check_new_id("user", row->user, err)) < 0)
        return rc;
    return store_check_time("the time", row->created_us, err);
}

static int check_change(const struct rv_session_change *change, rv_err **err)
{
    int rc;

    if (!change)
        return RV_FAIL(err, RV_E_INVALID, "no change given");
    if ((rc = store_check_optional("name", change->name, RV_STORE_MAX_TEXT, err)) < 0 ||
        (rc = store_check_optional("mode", change->mode, RV_STORE_MAX_TEXT, err)) < 0 ||
        (rc = check_status(change->status, err)) < 0 ||
        (rc = store_check_optional("description", change->description, RV_STORE_MAX_QUESTION, err)) < 0 ||
        (rc = store_check_members("metadata", change->metadata, err)) < 0 ||
        (rc = store_check_time("the time", change->now_us, err)) < 0)
        return rc;
    if (change->n_remove > 0 && !change->remove)
        return RV_FAIL(err, RV_E_INVALID, "%zu members to remove and none given", change->n_remove);
    for (size_t i = 0; i < change->n_remove && rc == 0; i++)
        rc = store_check_text("member to remove", change->remove[i], RV_STORE_MAX_META, err);
    return rc;
}

static int check_filter(const struct rv_session_filter *filter, rv_err **err)
{
    int rc;

    if (filter->limit < 0 || filter->offset < 0)
        return RV_FAIL(err, RV_E_INVALID, "%lld sessions from the %lldth", (long long)filter->limit,
                       (long long)filter->offset);
    rc = filter->agent_name ? store_check_text("agent's name", filter->agent_name, RV_STORE_MAX_TEXT, err) : 0;
    if (rc == 0 && filter->name_contains)
        rc = store_check_text("part of the name", filter->name_contains, RV_STORE_MAX_TEXT, err);
    return rc == 0 ? check_status(filter->status, err) : rc;
}

/* --- One session --- */

int store_fail_no_session(const char *id, rv_err **err)
{
    return RV_FAIL(err, RV_E_NOT_FOUND, "no session \"%s\"", id);
}

void store_session_at(const struct found_session *found, struct rv_session_at *out)
{
    out->key = found->key;
    snprintf(out->tenant, sizeof out->tenant, "%s", found->row.tenant);
    snprintf(out->user, sizeof out->user, "%s", found->row.user);
    snprintf(out->id, sizeof out->id, "%s", found->row.id);
}

/* The texts that may be encrypted. */
static int read_texts(rv_sql_stmt *stmt, struct rv_session_row *row, rv_err **err)
{
    struct rv_place at = vault_session_place(row->tenant, row->user, row->id);
    rv_str kept = sql_str_at(stmt, 10);
    bool is_hidden = false;
    int rc = store_secret_at(stmt, 10, &at, "metadata", &row->metadata, err);

    at.is_engines = false;
    if (rc == 0)
        rc = store_secret_is_hidden(stmt->st, kept, &is_hidden, err);
    if (rc == 0 && is_hidden)
        rc = store_secret_json_at(stmt, 10, &at, "metadata", &row->shown_metadata, err);
    return rc < 0 ? rc : store_secret_text_at(stmt, 5, &at, "description", &row->description, err);
}

static int row_of(struct sql_store *st, rv_sql_stmt *stmt, struct found_session *out, rv_err **err)
{
    bool lacked = false;
    struct found_session got = {
        .key = sql_int_at(stmt, 0),
        .is_deleted = !sql_is_null(stmt, 13),
        .row = {.id = sql_text_at(stmt, 1, &lacked),
                .tenant = sql_text_at(stmt, 2, &lacked),
                .user = sql_text_at(stmt, 3, &lacked),
                .name = sql_text_at(stmt, 4, &lacked),
                .description = sql_text_at(stmt, 5, &lacked),
                .agent_name = sql_text_at(stmt, 6, &lacked),
                .mode = sql_text_at(stmt, 7, &lacked),
                .total_tokens = sql_int_at(stmt, 8),
                .n_messages = sql_int_at(stmt, 9),
                .metadata = sql_str_at(stmt, 10),
                .created_us = sql_int_at(stmt, 11),
                .updated_us = sql_int_at(stmt, 12),
                .status = sql_text_at(stmt, 14, &lacked)},
    };
    const struct rv_session_row *row = &got.row;

    if (lacked)
        return RV_FAIL(err, RV_E_NOMEM, "read a session");
    if (!row->id || !row->tenant || !row->user || !row->name || !row->mode || !row->metadata.ptr || !row->status)
        return store_damaged(st, err, "session \"%s\" is damaged: a text is missing", row->id ? row->id : "");
    const int64_t numbers[] = {row->total_tokens, row->n_messages, row->created_us, row->updated_us};
    int rc = store_check_numbers(st, "session", row->id, numbers, RV_COUNT(numbers), err);
    if (rc == 0)
        rc = read_texts(stmt, &got.row, err);
    if (rc == 0)
        *out = got;
    return rc;
}

static int fail_ambiguous(const char *id, rv_err **err)
{
    RV_FAIL(err, RV_E_INVALID, "several users have a session \"%s\"", id);
    rv_err_set_hint(err, RV_STORE_SAY_WHOSE);
    return RV_E_INVALID;
}

/* A caller that sees all users of a tenant must name the user when two users have a session of that id. */
static int is_only_one(struct sql_store *st, const struct rv_store_scope *scope, const char *id, rv_err **err)
{
    int64_t n = 0;

    if (scope->user)
        return 0;
    rv_sql_stmt *stmt = sql_use(st, SQL_COUNT_SESSIONS);
    int rc;
    store_sql_text(stmt, 1, scope->tenant);
    store_sql_text(stmt, 2, id);
    rc = sql_step(stmt, "look for a session", err);
    n = rc == 1 ? sql_int_at(stmt, 0) : 0;
    sql_done(stmt);
    if (rc < 0)
        return rc;
    return n > 1 ? fail_ambiguous(id, err) : 0;
}

int store_session_find(struct sql_store *st, const struct rv_store_scope *scope, const char *id, rv_sql_stmt **stmt,
                       struct found_session *out, rv_err **err)
{
    int rc = is_only_one(st, scope, id, err);

    if (rc < 0)
        return rc;
    *stmt = sql_use(st, SQL_FIND_SESSION);
    store_sql_text(*stmt, 1, scope->tenant);
    store_sql_text(*stmt, 2, id);
    store_sql_text(*stmt, 3, scope->user);
    rc = sql_step(*stmt, "look for a session", err);
    if (rc == 1) {
        int failed = row_of(st, *stmt, out, err);
        rc = failed < 0 ? failed : 1;
    }
    return rc;
}

int store_session_see(struct sql_store *st, const struct rv_store_scope *scope, const char *id, rv_sql_stmt **stmt,
                      struct found_session *out, rv_err **err)
{
    int rc = store_session_find(st, scope, id, stmt, out, err);

    if (rc == 0 || (rc == 1 && out->is_deleted))
        rc = store_fail_no_session(id, err);
    return rc < 0 ? rc : 0;
}

int store_session_see_own(struct sql_store *st, const struct rv_store_scope *scope, const char *id,
                          struct found_session *out, rv_err **err)
{
    struct rv_session_row row = {0};
    rv_sql_stmt *stmt = NULL;
    int rc = store_session_see(st, scope, id, &stmt, out, err);

    if (rc == 0 && copy_row(&out->row, &row) < 0)
        rc = RV_FAIL(err, RV_E_NOMEM, "read session \"%s\"", id);
    sql_done(stmt);
    out->row = row;
    return rc;
}

int store_session_add(struct sql_store *st, const struct rv_session_row *fresh, int64_t *key, rv_err **err)
{
    const struct rv_place at = vault_session_place(fresh->tenant, fresh->user, fresh->id);
    const char *level = NULL;
    int rc = vault_level(st, fresh->tenant, "sessions", &level, err);

    if (rc < 0)
        return rc;
    rv_sql_stmt *stmt = sql_use(st, SQL_ADD_SESSION);
    store_sql_text(stmt, 1, fresh->id);
    store_sql_text(stmt, 2, fresh->tenant);
    store_sql_text(stmt, 3, fresh->user);
    store_sql_text(stmt, 4, fresh->name);
    store_secret_bind(stmt, 5, SQL_TEXT, &at, "description", rv_str_of(fresh->description));
    store_sql_text(stmt, 6, fresh->agent_name);
    store_sql_text(stmt, 7, fresh->mode);
    store_secret_bind(stmt, 8, SQL_STR, &at, "metadata", fresh->metadata);
    sql_int(stmt, 9, fresh->created_us);
    store_sql_text(stmt, 10, fresh->status);
    store_sql_text(stmt, 11, level);
    rc = sql_run_new(stmt, key, "write a session", err);
    return rc < 0 ? rc : store_keys_put_session(st, *key, fresh, err);
}

static int copy(const struct rv_session_row *row, struct rv_session_row *out, rv_err **err)
{
    if (out && copy_row(row, out) < 0)
        return RV_FAIL(err, RV_E_NOMEM, "read session \"%s\"", row->id);
    return 0;
}

static int fail_deleted(const char *id, rv_err **err)
{
    RV_FAIL(err, RV_E_EXISTS, "session \"%s\" was deleted, and its id stays taken", id);
    rv_err_set_hint(err, "begin a session with another id");
    return RV_E_EXISTS;
}

static int ensure(struct sql_store *st, const struct rv_session_row *fresh, struct rv_session_row *out, rv_err **err)
{
    const struct rv_store_scope owner = {fresh->tenant, fresh->user};
    struct found_session found;
    rv_sql_stmt *stmt = NULL;
    int64_t key = 0;
    int rc = store_session_find(st, &owner, fresh->id, &stmt, &found, err), is_there = rc;

    if (rc == 1 && found.is_deleted)
        rc = fail_deleted(fresh->id, err);
    else if (rc >= 0)
        rc = copy(is_there ? &found.row : fresh, out, err);
    sql_done(stmt);
    if (rc == 0 && !is_there)
        rc = store_session_add(st, fresh, &key, err);
    return rc;
}

int rv_store_ensure_session(rv_store *s, const struct rv_session_row *fresh, struct rv_session_row *out, rv_err **err)
{
    char name[RV_STORE_NAME_ROOM];
    struct rv_session_row given, got = {0};
    int rc = store_enter_write(s, check_session(fresh, err), "ensure session", err);

    if (rc != 0)
        return rc;
    given = *fresh;
    store_session_name(given.id, name);
    given.name = given.name ? given.name : name;
    given.mode = given.mode ? given.mode : "chat";
    given.status = given.status ? given.status : store_session_status_text(RV_SESSION_ACTIVE);
    given.metadata = given.metadata.len > 0 ? given.metadata : RV_STR_LIT("{}");
    given.updated_us = given.created_us;
    given.total_tokens = given.n_messages = 0;
    given.own = NULL;
    do {
        rv_session_row_fini(&got);
        rc = ensure(s->sql, &given, out ? &got : NULL, err);
    } while (store_repeats(s, &rc, err));
    rc = store_leave_write(s, rc, err);
    if (rc == 0 && out)
        *out = got;
    else
        rv_session_row_fini(&got);
    return rc;
}

/* as_kept: what may be encrypted is left out. */
static int get(rv_store *s, const struct rv_store_scope *scope, const char *id, bool as_kept,
               struct rv_session_row *out, rv_err **err)
{
    struct rv_store_scope sc;
    struct found_session found;
    struct rv_session_row row = {0};
    rv_sql_stmt *stmt = NULL;
    int rc = store_enter_read(s, store_check_scoped(scope, "session id", id, &sc, err), "get session", err);

    if (rc != 0)
        return rc;
    s->sql->as_kept = as_kept;
    rc = store_session_see(s->sql, &sc, id, &stmt, &found, err);
    s->sql->as_kept = false;
    if (as_kept) {
        found.row.description = NULL;
        found.row.metadata = found.row.shown_metadata = RV_STR_LIT("{}");
    }
    if (rc == 0)
        rc = copy(&found.row, &row, err);
    sql_done(stmt);
    rc = store_leave_read(s, rc, err);
    if (rc == 0)
        *out = row;
    else
        rv_session_row_fini(&row);
    return rc;
}

int rv_store_get_session(rv_store *s, const struct rv_store_scope *scope, const char *id, struct rv_session_row *out,
                         rv_err **err)
{
    return get(s, scope, id, false, out, err);
}

int rv_store_identify_session(rv_store *s, const struct rv_store_scope *scope, const char *id,
                              struct rv_session_row *out, rv_err **err)
{
    return get(s, scope, id, true, out, err);
}

static int change_session(struct sql_store *st, const struct rv_store_scope *scope, const char *id,
                          const struct rv_session_change *change, rv_buf *metadata, rv_err **err)
{
    struct found_session found;
    struct rv_session_at here;
    rv_sql_stmt *stmt = NULL;
    int rc = store_session_see(st, scope, id, &stmt, &found, err);
    bool is_merged = change->metadata || change->n_remove > 0;
    const char *level = NULL;

    if (rc == 0)
        store_session_at(&found, &here);
    if (rc == 0 && is_merged)
        rc = store_merge(found.row.metadata, change->metadata, change->remove, change->n_remove, metadata, err);
    sql_done(stmt);
    if (rc == 0)
        rc = vault_level(st, here.tenant, "sessions", &level, err);
    if (rc < 0)
        return rc;
    const struct rv_place at = vault_session_place(here.tenant, here.user, here.id);
    stmt = sql_use(st, SQL_CHANGE_SESSION);
    sql_int(stmt, 1, found.key);
    store_sql_text(stmt, 2, change->name);
    store_sql_text(stmt, 3, change->mode);
    if (is_merged)
        store_secret_bind(stmt, 4, SQL_STR, &at, "metadata", rv_buf_str(metadata));
    sql_int(stmt, 5, change->now_us);
    store_sql_text(stmt, 6, change->status);
    store_secret_bind(stmt, 7, SQL_TEXT, &at, "description", rv_str_of(change->description));
    store_sql_text(stmt, 8, level); /* by which the index of names knows whether it may tell the description */
    rc = sql_run(stmt, "write a session", err);
    return rc == 0 && (change->name || change->description) ? store_keys_follow_session(st, found.key, err) : rc;
}

int rv_store_change_session(rv_store *s, const struct rv_store_scope *scope, const char *id,
                            const struct rv_session_change *change, rv_err **err)
{
    struct rv_store_scope sc;
    rv_buf metadata = RV_BUF_INIT(RV_STORE_MAX_META);
    int rc = store_check_scoped(scope, "session id", id, &sc, err);

    if (rc == 0)
        rc = check_change(change, err);
    if ((rc = store_enter_write(s, rc, "change session", err)) != 0)
        return rc;
    do {
        rv_buf_clear(&metadata);
        rc = change_session(s->sql, &sc, id, change, &metadata, err);
    } while (store_repeats(s, &rc, err));
    rv_buf_fini(&metadata);
    return store_leave_write(s, rc, err);
}

static int delete_session(struct sql_store *st, const struct rv_store_scope *scope, const char *id, int64_t now_us,
                          rv_err **err)
{
    struct found_session found = {0};

    st->as_kept = true; /* what goes need not be decrypted: it may be damaged, or its key lost */
    int rc = store_session_see_own(st, scope, id, &found, err);
    st->as_kept = false;
    if (rc == 0) {
        rv_sql_stmt *stmt = sql_use(st, SQL_DELETE_SESSION);
        sql_int(stmt, 1, found.key);
        sql_int(stmt, 2, now_us);
        rc = sql_run(stmt, "delete a session", err);
    }
    if (rc == 0)
        rc = store_keys_drop(st, "sessions", found.key, err);
    if (rc == 0)
        rc = store_moments_forget(st, &found, 0, now_us, err);
    rv_session_row_fini(&found.row);
    return rc;
}

int rv_store_delete_session(rv_store *s, const struct rv_store_scope *scope, const char *id, int64_t now_us,
                            rv_err **err)
{
    struct rv_store_scope sc;
    int rc = store_check_scoped(scope, "session id", id, &sc, err);

    if (rc == 0)
        rc = store_check_time("the time", now_us, err);
    rc = store_enter_write(s, rc, "delete session", err);
    if (rc != 0)
        return rc;
    do
        rc = delete_session(s->sql, &sc, id, now_us, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

/* --- Lists --- */

/* Only the conditions that are asked for, so that an index can serve them. */
static void write_query(const struct rv_store_scope *scope, const struct rv_session_filter *f, rv_buf *sql)
{
    rv_buf_puts(sql, RV_SQL_SESSION " WHERE tenant_id = ?1 AND deleted_us IS NULL");
    if (scope->user)
        rv_buf_puts(sql, " AND user_id = ?2");
    if (f->agent_name)
        rv_buf_puts(sql, " AND lower(agent_name) = lower(?3)");
    if (f->name_contains)
        rv_buf_puts(sql, " AND instr(lower(name), lower(?4)) > 0");
    if (f->since_us > 0)
        rv_buf_puts(sql, " AND updated_us >= ?5");
    if (f->status)
        rv_buf_puts(sql, " AND status = ?8");
    rv_buf_puts(sql, " ORDER BY updated_us DESC, id, user_id LIMIT ?6 OFFSET ?7");
}

static int list(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_session_filter *filter,
                rv_each_session *each, void *ctx, rv_err **err)
{
    rv_buf sql = RV_BUF_INIT(RV_SQL_MAX_TEXT);
    int rc;

    write_query(scope, filter, &sql);
    rv_sql_stmt *stmt = sql_prepare(st, &sql);
    rv_buf_fini(&sql);
    store_sql_text(stmt, 1, scope->tenant);
    if (scope->user)
        store_sql_text(stmt, 2, scope->user);
    if (filter->agent_name)
        store_sql_text(stmt, 3, filter->agent_name);
    if (filter->name_contains)
        store_sql_text(stmt, 4, filter->name_contains);
    if (filter->since_us > 0)
        sql_int(stmt, 5, filter->since_us);
    if (filter->status)
        store_sql_text(stmt, 8, filter->status);
    sql_int(stmt, 6, filter->limit > 0 ? filter->limit : INT64_MAX);
    sql_int(stmt, 7, filter->offset);
    while ((rc = sql_step(stmt, "list sessions", err)) == 1) {
        struct found_session found;
        rc = row_of(st, stmt, &found, err);
        if (rc == 0)
            rc = each(ctx, &found.row, err);
        if (rc != 0)
            break;
    }
    sql_finish(stmt);
    return rc == RV_STORE_ENOUGH ? 0 : rc;
}

int rv_store_list_sessions(rv_store *s, const struct rv_store_scope *scope, const struct rv_session_filter *filter,
                           int (*each)(void *self, const struct rv_session_row *row, rv_err **err), void *self,
                           rv_err **err)
{
    static const struct rv_session_filter all = {0};
    struct rv_store_scope sc;
    int rc = store_check_scope(scope, &sc, err);

    if (!filter)
        filter = &all;
    if (rc == 0)
        rc = check_filter(filter, err);
    rc = store_enter_read(s, rc, "list sessions", err);
    return rc != 0 ? rc : store_leave_read(s, list(s->sql, &sc, filter, each, self, err), err);
}
