/* API keys and logins: rows in, rows out. What they open is decided by coreengine/identity. */
#include "coreengine/store/users.h"

#include <stdlib.h>
#include <string.h>

#include "coreengine/store/store_internal.h"

/* --- arguments --- */

static int check_key_id(const char *id, rv_err **err)
{
    int rc = store_check_id("key", id, err);

    return rc < 0 ? rc : store_check_new_id("key", id, err);
}

static int check_level(const struct rv_api_key_row *row, rv_err **err)
{
    bool is_user = row->level && strcmp(row->level, "user") == 0;

    if (!row->level || (!is_user && strcmp(row->level, "tenant") != 0 && strcmp(row->level, "master") != 0))
        return RV_FAIL(err, RV_E_INVALID, "\"%.40s\" is not the level of a key (master, tenant, user)",
                       row->level ? row->level : "");
    if (is_user != (row->user && row->user[0]))
        return RV_FAIL(err, RV_E_INVALID,
                       is_user ? "a key of level \"user\" needs a user" : "a key of level \"%s\" has no user",
                       row->level);
    return 0;
}

/* A row with a later time could not be read any more, nor could the list that it is in. */
static int check_end(const char *kind, int64_t us, rv_err **err)
{
    int rc = store_check_time(kind, us, err);

    return rc == 0 && us > RV_STORE_MAX_NUMBER
               ? RV_FAIL(err, RV_E_INVALID, "%s is behind the year 75000: the store keeps no such time", kind)
               : rc;
}

static int check_key(const struct rv_api_key_row *row, const char *tenant, rv_err **err)
{
    int rc;

    if ((rc = check_key_id(row->id, err)) < 0 || (rc = store_check_hash(row->hash, err)) < 0 ||
        (rc = store_check_id("tenant", tenant, err)) < 0 || (rc = store_check_new_id("tenant", tenant, err)) < 0 ||
        (rc = check_level(row, err)) < 0)
        return rc;
    if (row->user && row->user[0] &&
        ((rc = store_check_id("user", row->user, err)) < 0 || (rc = store_check_new_id("user", row->user, err)) < 0))
        return rc;
    if ((rc = store_check_text("list of scopes", row->scopes, RV_API_KEY_MAX_TEXT, err)) < 0 ||
        (rc = store_check_text("note", row->note ? row->note : "", RV_API_KEY_MAX_TEXT, err)) < 0 ||
        (rc = store_check_time("the time", row->created_us, err)) < 0)
        return rc;
    return row->expires_us == 0 ? 0 : check_end("the end of the key", row->expires_us, err);
}

static int fail_none(const char *id, rv_err **err)
{
    return RV_FAIL(err, RV_E_NOT_FOUND, "there is no API key \"%s\"", id);
}

/* --- rows --- */

void rv_api_key_row_fini(struct rv_api_key_row *row)
{
    free(row->own);
    *row = (struct rv_api_key_row){0};
}

static int copy_row(const struct rv_api_key_row *row, struct rv_api_key_row *out, rv_err **err)
{
    struct rv_api_key_row copy = *row;
    const struct rv_row_texts texts = {
        .texts = {&copy.id, &copy.hash, &copy.level, &copy.tenant, &copy.user, &copy.scopes, &copy.note}, .n_texts = 7};

    copy.own = store_pack(&texts);
    if (!copy.own)
        return RV_FAIL(err, RV_E_NOMEM, "read API key \"%s\"", row->id);
    *out = copy;
    return 0;
}

/* The texts stay valid until the statement moves. */
static int row_of(struct sql_store *st, rv_sql_stmt *stmt, struct rv_api_key_row *out, rv_err **err)
{
    bool lacked = false;
    const struct rv_api_key_row row = {.id = sql_text_at(stmt, 0, &lacked),
                                       .hash = sql_text_at(stmt, 1, &lacked),
                                       .level = sql_text_at(stmt, 2, &lacked),
                                       .tenant = sql_text_at(stmt, 3, &lacked),
                                       .user = sql_text_at(stmt, 4, &lacked),
                                       .scopes = sql_text_at(stmt, 5, &lacked),
                                       .note = sql_text_at(stmt, 6, &lacked),
                                       .created_us = sql_int_at(stmt, 7),
                                       .expires_us = sql_int_at(stmt, 8),
                                       .used_us = sql_int_at(stmt, 9),
                                       .revoked_us = sql_int_at(stmt, 10)};
    const int64_t numbers[] = {row.created_us, row.expires_us, row.used_us, row.revoked_us};

    if (lacked)
        return RV_FAIL(err, RV_E_NOMEM, "read an API key");
    if (!row.id || !row.hash || !row.level || !row.tenant || !row.user || !row.scopes || !row.note)
        return store_damaged(st, err, "API key \"%s\" is damaged: a text is missing", row.id ? row.id : "");
    *out = row;
    return store_check_numbers(st, "API key", row.id, numbers, RV_COUNT(numbers), err);
}

/* The row of a statement that has one at most, with its own texts; 0: it is there, 1: it is not. Takes the statement.
 */
static int one_row(struct sql_store *st, rv_sql_stmt *stmt, struct rv_api_key_row *out, rv_err **err)
{
    struct rv_api_key_row borrowed;
    int rc = sql_step(stmt, "read an API key", err);

    if (rc == 1)
        rc = row_of(st, stmt, &borrowed, err);
    else if (rc == 0)
        rc = 1;
    if (rc == 0)
        rc = copy_row(&borrowed, out, err);
    sql_done(stmt);
    return rc;
}

/* --- keys --- */

static int add_key(struct sql_store *st, const struct rv_api_key_row *row, const char *tenant, int64_t *n, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_ADD_API_KEY);

    store_sql_text(stmt, 1, row->id);
    store_sql_text(stmt, 2, row->hash);
    store_sql_text(stmt, 3, row->level);
    store_sql_text(stmt, 4, tenant);
    store_sql_text(stmt, 5, row->user ? row->user : "");
    store_sql_text(stmt, 6, row->scopes);
    store_sql_text(stmt, 7, row->note ? row->note : "");
    sql_int(stmt, 8, row->created_us);
    sql_int(stmt, 9, row->expires_us);
    return sql_run_counted(stmt, n, "add an API key", err);
}

int rv_store_add_api_key(rv_store *s, const struct rv_api_key_row *row, rv_err **err)
{
    const char *tenant = row->tenant ? row->tenant : RV_STORE_TENANT;
    int64_t n = 0;
    int rc = store_enter_write(s, check_key(row, tenant, err), "add api key", err);

    if (rc != 0)
        return rc;
    do {
        rc = add_key(s->sql, row, tenant, &n, err);
        if (rc == 0 && n == 0)
            rc = RV_FAIL(err, RV_E_EXISTS, "there is an API key \"%s\" already", row->id);
    } while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

int rv_store_get_api_key(rv_store *s, const char *id, struct rv_api_key_row *out, rv_err **err)
{
    struct rv_api_key_row row = {0};
    int rc = store_enter_read(s, store_check_id("key", id, err), "get api key", err);

    if (rc != 0)
        return rc;
    rv_sql_stmt *stmt = sql_use(s->sql, SQL_GET_API_KEY);
    store_sql_text(stmt, 1, id);
    rc = one_row(s->sql, stmt, &row, err);
    rc = store_leave_read(s, rc == 1 ? fail_none(id, err) : rc, err);
    if (rc == 0)
        *out = row;
    else
        rv_api_key_row_fini(&row);
    return rc;
}

static int list_keys(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_api_key_filter *filter,
                     int (*each)(void *self, const struct rv_api_key_row *row, rv_err **err), void *self, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_API_KEYS);
    struct rv_api_key_row row;
    int rc;

    store_sql_text(stmt, 1, scope->tenant);
    store_sql_text(stmt, 2, scope->user);
    sql_int(stmt, 3, filter->all);
    sql_int(stmt, 4, filter->now_us);
    while ((rc = sql_step(stmt, "list API keys", err)) == 1) {
        rc = row_of(st, stmt, &row, err);
        if (rc == 0)
            rc = each(self, &row, err);
        if (rc != 0)
            break;
    }
    sql_done(stmt);
    return rc;
}

int rv_store_list_api_keys(rv_store *s, const struct rv_store_scope *scope, const struct rv_api_key_filter *filter,
                           int (*each)(void *self, const struct rv_api_key_row *row, rv_err **err), void *self,
                           rv_err **err)
{
    struct rv_store_scope sc;
    int rc = store_check_scope(scope, &sc, err);

    if (rc == 0)
        rc = store_check_time("the time", filter->now_us, err);
    rc = store_enter_read(s, rc, "list api keys", err);
    return rc != 0 ? rc : store_leave_read(s, list_keys(s->sql, &sc, filter, each, self, err), err);
}

int rv_store_has_api_keys(rv_store *s, int64_t now_us, bool *has, rv_err **err)
{
    int rc = store_enter_read(s, store_check_time("the time", now_us, err), "has api keys", err);

    if (rc != 0)
        return rc;
    rv_sql_stmt *stmt = sql_use(s->sql, SQL_HAS_API_KEYS);
    sql_int(stmt, 1, now_us);
    int n = sql_step(stmt, "look for API keys", err);
    sql_done(stmt);
    rc = store_leave_read(s, n < 0 ? n : 0, err);
    if (rc == 0)
        *has = n == 1;
    return rc;
}

static int run_of_key(struct sql_store *st, enum sql_id id, const char *key, const char *what, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, id);

    store_sql_text(stmt, 1, key);
    return sql_run(stmt, what, err);
}

static int revoke(struct sql_store *st, const struct rv_store_scope *scope, const char *id, int64_t now_us,
                  rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_REVOKE_API_KEY);
    int64_t n = 0;

    store_sql_text(stmt, 1, id);
    store_sql_text(stmt, 2, scope->tenant);
    store_sql_text(stmt, 3, scope->user);
    sql_int(stmt, 4, now_us);
    int rc = sql_run_counted(stmt, &n, "revoke an API key", err);
    if (rc == 0 && n == 0)
        rc = fail_none(id, err);
    return rc < 0 ? rc : run_of_key(st, SQL_DROP_KEYS_LOGINS, id, "end the logins of an API key", err);
}

int rv_store_revoke_api_key(rv_store *s, const struct rv_store_scope *scope, const char *id, int64_t now_us,
                            rv_err **err)
{
    struct rv_store_scope sc;
    int rc = store_check_scoped(scope, "key", id, &sc, err);

    if (rc == 0)
        rc = store_check_time("the time", now_us, err);
    rc = store_enter_write(s, rc, "revoke api key", err);
    if (rc != 0)
        return rc;
    do
        rc = revoke(s->sql, &sc, id, now_us, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

int rv_store_note_api_key(rv_store *s, const char *id, int64_t now_us, rv_err **err)
{
    int rc = store_check_id("key", id, err);

    if (rc == 0)
        rc = store_check_time("the time", now_us, err);
    rc = store_enter_write(s, rc, "note api key", err);
    if (rc != 0)
        return rc;
    do {
        rv_sql_stmt *stmt = sql_use(s->sql, SQL_NOTE_API_KEY);
        store_sql_text(stmt, 1, id);
        sql_int(stmt, 2, now_us);
        sql_int(stmt, 3, now_us - RV_API_KEY_USED_US);
        rc = sql_run(stmt, "note the use of an API key", err);
    } while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

/* --- logins --- */

static int add_login(struct sql_store *st, const char *hash, const char *key, int64_t now_us, int64_t expires_us,
                     rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_OPENING_KEY);
    int64_t n = 0;

    store_sql_text(stmt, 1, key);
    int rc = sql_step(stmt, "look for the key of a login", err);
    sql_done(stmt);
    if (rc <= 0)
        return rc < 0 ? rc : fail_none(key, err);
    stmt = sql_use(st, SQL_ADD_LOGIN);
    store_sql_text(stmt, 1, hash);
    store_sql_text(stmt, 2, key);
    sql_int(stmt, 3, now_us);
    sql_int(stmt, 4, expires_us);
    rc = sql_run_counted(stmt, &n, "add a login", err);
    if (rc == 0 && n == 0)
        rc = RV_FAIL(err, RV_E_EXISTS, "there is such a login already");
    if (rc < 0)
        return rc;
    stmt = sql_use(st, SQL_DROP_OLD_LOGINS);
    store_sql_text(stmt, 1, key);
    sql_int(stmt, 2, RV_API_KEY_MAX_LOGINS);
    return sql_run(stmt, "end the oldest logins of an API key", err);
}

int rv_store_add_login(rv_store *s, const char *hash, const char *key, int64_t now_us, int64_t expires_us, rv_err **err)
{
    int rc = store_check_hash(hash, err);

    if (rc == 0)
        rc = store_check_id("key", key, err);
    if (rc == 0)
        rc = store_check_time("the time", now_us, err);
    if (rc == 0)
        rc = check_end("the end of the login", expires_us, err);
    rc = store_enter_write(s, rc, "add login", err);
    if (rc != 0)
        return rc;
    do
        rc = add_login(s->sql, hash, key, now_us, expires_us, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

int rv_store_find_login(rv_store *s, const char *hash, int64_t now_us, struct rv_api_key_row *out, rv_err **err)
{
    struct rv_api_key_row row = {0};
    int rc = store_check_hash(hash, err);

    if (rc == 0)
        rc = store_check_time("the time", now_us, err);
    rc = store_enter_read(s, rc, "find login", err);
    if (rc != 0)
        return rc;
    rv_sql_stmt *stmt = sql_use(s->sql, SQL_FIND_LOGIN);
    store_sql_text(stmt, 1, hash);
    sql_int(stmt, 2, now_us);
    rc = one_row(s->sql, stmt, &row, err);
    rc = store_leave_read(s, rc == 1 ? RV_FAIL(err, RV_E_NOT_FOUND, "the login is unknown or has expired") : rc, err);
    if (rc == 0)
        *out = row;
    else
        rv_api_key_row_fini(&row);
    return rc;
}

int rv_store_delete_login(rv_store *s, const char *hash, rv_err **err)
{
    int rc = store_enter_write(s, store_check_hash(hash, err), "drop login", err);

    if (rc != 0)
        return rc;
    do
        rc = run_of_key(s->sql, SQL_DROP_LOGIN, hash, "end a login", err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

/* The logins of a key go with it. */
static int prune(struct sql_store *st, int64_t before_us, int64_t now_us, int64_t *n, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_PRUNE_LOGINS);

    sql_int(stmt, 1, now_us);
    int rc = sql_run(stmt, "forget logins that are over", err);
    if (rc < 0)
        return rc;
    stmt = sql_use(st, SQL_PRUNE_API_KEYS);
    sql_int(stmt, 1, before_us);
    return sql_run_counted(stmt, n, "forget API keys that are over", err);
}

int rv_store_prune_api_keys(rv_store *s, int64_t before_us, int64_t now_us, int64_t *n, rv_err **err)
{
    int64_t gone = 0;
    int rc = store_check_time("the time", before_us, err);

    if (rc == 0)
        rc = store_check_time("the time", now_us, err);
    rc = store_enter_write(s, rc, "prune api keys", err);
    if (rc != 0)
        return rc;
    do
        rc = prune(s->sql, before_us, now_us, &gone, err);
    while (store_repeats(s, &rc, err));
    rc = store_leave_write(s, rc, err);
    if (rc == 0 && n)
        *n = gone;
    return rc;
}
