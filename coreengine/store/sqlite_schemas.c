/* Schemas, and the counter that says whether any has changed. */
#include <string.h>

#include "coreengine/conversation/context.h"
#include "coreengine/store/sqlite_internal.h"

struct found {
    int64_t key;
    bool is_deleted;
    struct rv_schema_row row; /* borrowed from the statement */
};

static int row_of(struct sql_store *st, sqlite3_stmt *stmt, struct found *out, rv_err **err)
{
    bool lacked = false;
    const char *checksum = rv_sql_column(stmt, 13, &lacked);
    struct found got = {
        .key = sqlite3_column_int64(stmt, 0),
        .is_deleted = sqlite3_column_type(stmt, 16) != SQLITE_NULL,
        .row = {.id = rv_sql_column(stmt, 1, &lacked),
                .tenant = rv_sql_column(stmt, 2, &lacked),
                .user = rv_sql_column(stmt, 3, &lacked),
                .name = rv_sql_column(stmt, 4, &lacked),
                .kind = rv_sql_column(stmt, 5, &lacked),
                .version = rv_sql_column(stmt, 6, &lacked),
                .description = rv_sql_column(stmt, 7, &lacked),
                .content = rv_sql_bytes(stmt, 8),
                .json_schema = rv_sql_bytes(stmt, 9),
                .document = rv_sql_bytes(stmt, 10),
                .source = rv_sql_column(stmt, 11, &lacked),
                .place = rv_sql_column(stmt, 12, &lacked),
                .created_us = sqlite3_column_int64(stmt, 14),
                .updated_us = sqlite3_column_int64(stmt, 15)},
    };
    const struct rv_schema_row *row = &got.row;

    if (lacked)
        return RV_FAIL(err, RV_E_NOMEM, "read a schema");
    if (!row->id || !row->tenant || !row->user || !row->name || !row->kind || !row->source || !row->content.ptr ||
        !row->json_schema.ptr || !row->document.ptr || !checksum || strlen(checksum) != RV_HASH_MAX - 1) {
        RV_FAIL(err, RV_E_IO, "\"%s\": schema \"%s\" is damaged: a text is missing", st->path,
                row->name ? row->name : "");
        rv_err_hint(err, "`reeve gc --check` lists what else is");
        return RV_E_IO;
    }
    memcpy(got.row.checksum, checksum, RV_HASH_MAX);
    *out = got;
    return 0;
}

/* 1: found; lasts until rv_sql_done() of *stmt, which is the caller's in any case. */
static int look(struct sql_store *st, enum sql_id how, const struct rv_schema_row *key, sqlite3_stmt **stmt,
                struct found *out, rv_err **err)
{
    int rc = rv_sql_use(st, how, stmt, err);

    if (rc < 0)
        return rc;
    rv_sql_text(st, *stmt, 1, key->tenant);
    rv_sql_text(st, *stmt, 2, key->kind);
    rv_sql_text(st, *stmt, 3, key->name);
    rv_sql_text(st, *stmt, 4, key->user);
    rc = rv_sql_step(st, *stmt, "look for a schema", err);
    if (rc == 1) {
        int failed = row_of(st, *stmt, out, err);
        rc = failed < 0 ? failed : 1;
    }
    return rc;
}

/* An id that the caller gave may be in use, by that row alone. An id that follows from name and user is not looked for:
 * rows of other kinds may share it. */
static int check_id(struct sql_store *st, const struct rv_schema_row *row, rv_err **err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_use(st, SQL_SCHEMA_ID, &stmt, err);

    if (rc < 0)
        return rc;
    rv_sql_text(st, stmt, 1, row->tenant);
    rv_sql_text(st, stmt, 2, row->id);
    while ((rc = rv_sql_step(st, stmt, "look for a schema", err)) == 1) {
        if (!rv_str_is(rv_sql_bytes(stmt, 0), row->user))
            rc = rv_store_fail_schema_id(row->id, true, err);
        else if (!rv_str_is(rv_sql_bytes(stmt, 1), row->kind) || !rv_str_is(rv_sql_bytes(stmt, 2), row->name))
            rc = rv_store_fail_schema_id(row->id, false, err);
        if (rc < 0)
            break;
    }
    rv_sql_done(stmt);
    return rc;
}

static int count_change(struct sql_store *st, rv_err **err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_use(st, SQL_COUNT_CHANGE, &stmt, err);

    if (rc < 0)
        return rc;
    rv_sql_text(st, stmt, 1, "schemas");
    return rv_sql_run(st, stmt, "count a change of schemas", err);
}

/* key 0: a new row. What a row is found by, and its id, stay as they are. */
static int write_row(struct sql_store *st, const struct rv_schema_row *row, int64_t key, int64_t now_us, rv_err **err)
{
    char id[RV_UUID_MAX];
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_use(st, key == 0 ? SQL_ADD_SCHEMA : SQL_SET_SCHEMA, &stmt, err);

    if (rc < 0)
        return rc;
    if (key == 0) {
        rv_entity_id("schemas", rv_str_of(row->name), row->user, id);
        rv_sql_text(st, stmt, 1, row->id ? row->id : id);
        rv_sql_text(st, stmt, 2, row->tenant);
        rv_sql_text(st, stmt, 3, row->user);
        rv_sql_text(st, stmt, 4, row->name);
        rv_sql_text(st, stmt, 5, row->kind);
    } else {
        rv_sql_int(st, stmt, 15, key);
    }
    rv_sql_text(st, stmt, 6, row->version);
    rv_sql_text(st, stmt, 7, row->description);
    rv_sql_str(st, stmt, 8, row->content);
    rv_sql_str(st, stmt, 9, row->json_schema);
    rv_sql_str(st, stmt, 10, row->document);
    rv_sql_text(st, stmt, 11, row->source);
    rv_sql_text(st, stmt, 12, row->place);
    rv_sql_text(st, stmt, 13, row->checksum);
    rv_sql_int(st, stmt, 14, now_us);
    rc = rv_sql_run(st, stmt, "write a schema", err);
    return rc < 0 ? rc : count_change(st, err);
}

static int put(struct sql_store *st, const struct rv_schema_row *row, enum rv_schema_put how, int64_t now_us,
               bool *changed, rv_err **err)
{
    struct found found = {0};
    sqlite3_stmt *stmt = NULL;
    int rc = row->id ? check_id(st, row, err) : 0;
    bool changes;

    if (rc == 0)
        rc = look(st, SQL_SAME_SCHEMA, row, &stmt, &found, err);
    if (rc < 0) {
        rv_sql_done(stmt);
        return rc;
    }
    changes = rv_store_schema_changes(row, how, rc == 1 ? &found.row : NULL, found.is_deleted);
    rv_sql_done(stmt);
    *changed = changes;
    return changes ? write_row(st, row, found.key, now_us, err) : 0;
}

int rv_sql_put_schema(void *self, const struct rv_schema_row *row, enum rv_schema_put how, int64_t now_us,
                      bool *changed, rv_err **err)
{
    struct sql_store *st = self;
    int rc = rv_sql_begin_write(st, "put a schema", err);

    if (rc < 0)
        return rc;
    return rv_sql_end_write(st, put(st, row, how, now_us, changed, err), "put a schema", err);
}

int rv_sql_find_schema(void *self, const struct rv_store_scope *scope, const char *kind, const char *name,
                       struct rv_schema_row *out, rv_err **err)
{
    const struct rv_schema_row key = {
        .tenant = scope->tenant, .kind = kind, .name = name, .user = scope->user ? scope->user : ""};
    struct found found;
    sqlite3_stmt *stmt = NULL;
    int rc = look(self, SQL_FIND_SCHEMA, &key, &stmt, &found, err);

    if (rc == 0)
        rc = rv_store_fail_no_schema(kind, name, err);
    else if (rc == 1)
        rc = rv_schema_row_copy(&found.row, out) < 0 ? RV_FAIL(err, RV_E_NOMEM, "read schema \"%s\"", name) : 0;
    rv_sql_done(stmt);
    return rc;
}

int rv_sql_list_schemas(void *self, const struct rv_store_scope *scope, const char *kind, rv_each_schema *each,
                        void *ctx, rv_err **err)
{
    struct sql_store *st = self;
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_use(st, SQL_LIST_SCHEMAS, &stmt, err);

    if (rc < 0)
        return rc;
    rv_sql_text(st, stmt, 1, scope->tenant);
    rv_sql_text(st, stmt, 2, kind);
    rv_sql_text(st, stmt, 3, scope->user);
    while ((rc = rv_sql_step(st, stmt, "list schemas", err)) == 1) {
        struct found found;
        rc = row_of(st, stmt, &found, err);
        if (rc == 0)
            rc = each(ctx, &found.row, err);
        if (rc != 0)
            break;
    }
    rv_sql_done(stmt);
    return rc;
}

static int delete_schema(struct sql_store *st, const struct rv_schema_row *key, int64_t now_us, rv_err **err)
{
    struct found found;
    sqlite3_stmt *stmt = NULL;
    int rc = look(st, SQL_SAME_SCHEMA, key, &stmt, &found, err);

    rv_sql_done(stmt);
    if (rc == 0 || (rc == 1 && found.is_deleted))
        return rv_store_fail_no_schema(key->kind, key->name, err);
    if (rc == 1)
        rc = rv_sql_use(st, SQL_DELETE_SCHEMA, &stmt, err);
    if (rc < 0)
        return rc;
    rv_sql_int(st, stmt, 1, found.key);
    rv_sql_int(st, stmt, 2, now_us);
    rc = rv_sql_run(st, stmt, "delete a schema", err);
    return rc < 0 ? rc : count_change(st, err);
}

int rv_sql_delete_schema(void *self, const struct rv_store_scope *scope, const char *kind, const char *name,
                         int64_t now_us, rv_err **err)
{
    const struct rv_schema_row key = {
        .tenant = scope->tenant, .kind = kind, .name = name, .user = scope->user ? scope->user : ""};
    struct sql_store *st = self;
    int rc = rv_sql_begin_write(st, "delete a schema", err);

    if (rc < 0)
        return rc;
    return rv_sql_end_write(st, delete_schema(st, &key, now_us, err), "delete a schema", err);
}

int rv_sql_schemas_version(void *self, int64_t *out, rv_err **err)
{
    struct sql_store *st = self;
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_use(st, SQL_COUNTER, &stmt, err);

    if (rc < 0)
        return rc;
    rv_sql_text(st, stmt, 1, "schemas");
    rc = rv_sql_step(st, stmt, "read a counter", err);
    if (rc == 1)
        *out = sqlite3_column_int64(stmt, 0);
    rv_sql_done(stmt);
    if (rc == 0)
        return RV_FAIL(err, RV_E_IO, "\"%s\" is damaged: the counter of schemas is missing", st->path);
    return rc < 0 ? rc : 0;
}
