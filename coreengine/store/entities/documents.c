/* Agent documents ("schemas"): which one a user has, which one replaces which, and the counter that says whether any
 * has changed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/entities/entities_internal.h"

#define PERSON "person" /* who puts, and does not register */

static int check_schema(const struct rv_schema_row *row, enum rv_schema_put mode, rv_err **err)
{
    int rc;

    if (!row)
        return RV_FAIL(err, RV_E_INVALID, "no schema given");
    if ((rc = row->id ? store_check_id("schema's id", row->id, err) : 0) < 0 ||
        (rc = row->tenant ? store_check_id("tenant", row->tenant, err) : 0) < 0 ||
        (rc = row->user ? store_check_text("user", row->user, RV_STORE_MAX_ID, err) : 0) < 0 ||
        (rc = store_check_id("schema's name", row->name, err)) < 0 ||
        (rc = store_check_id("kind", row->kind, err)) < 0 ||
        (rc = row->version ? store_check_text("version", row->version, RV_STORE_MAX_TEXT, err) : 0) < 0 ||
        (rc = row->description ? store_check_text("description", row->description, RV_STORE_MAX_QUESTION, err) : 0) <
            0 ||
        (rc = row->place ? store_check_text("place", row->place, RV_STORE_MAX_URL, err) : 0) < 0 ||
        (rc = store_check_bytes("content", row->content, RV_STORE_MAX_VALUE, err)) < 0 ||
        (rc = store_check_object("json_schema", row->json_schema, RV_STORE_MAX_BODY, err)) < 0 ||
        (rc = store_check_bytes("document", row->document, RV_STORE_MAX_VALUE, err)) < 0)
        return rc;
    if (!row->source ||
        (strcmp(row->source, PERSON) != 0 && strcmp(row->source, "built-in") != 0 && strcmp(row->source, "file") != 0))
        return RV_FAIL(err, RV_E_INVALID, "schema \"%s\": the source \"%.40s\" is neither person, built-in nor file",
                       row->name, row->source ? row->source : "");
    if (mode == RV_SCHEMA_REGISTER && strcmp(row->source, PERSON) == 0)
        return RV_FAIL(err, RV_E_INVALID, "schema \"%s\": what is registered does not belong to a person", row->name);
    return 0;
}

static int copy_row(const struct rv_schema_row *row, struct rv_schema_row *out)
{
    struct rv_schema_row copy = *row;
    const struct rv_row_texts texts = {.texts = {&copy.id, &copy.tenant, &copy.user, &copy.name, &copy.kind,
                                                 &copy.version, &copy.description, &copy.source, &copy.place},
                                       .n_texts = 9,
                                       .strs = {&copy.content, &copy.json_schema, &copy.document},
                                       .n_strs = 3};

    copy.own = store_pack(&texts);
    if (!copy.own)
        return RV_E_NOMEM;
    *out = copy;
    return 0;
}

void rv_schema_row_fini(struct rv_schema_row *row)
{
    free(row->own);
    *row = (struct rv_schema_row){0};
}

/* Tells whether `given` replaces the existing row (NULL: none). */
static bool replaces(const struct rv_schema_row *given, enum rv_schema_put mode, const struct rv_schema_row *present,
                     bool is_deleted)
{
    bool is_persons;

    if (!present)
        return true;
    is_persons = strcmp(present->source, PERSON) == 0;
    if (mode == RV_SCHEMA_REGISTER && is_persons)
        return false; /* a person's word stands, also when it was to delete what that person had put */
    if (is_deleted)
        return true;
    if (mode == RV_SCHEMA_REGISTER)
        return strcmp(given->checksum, present->checksum) != 0;
    return !(strcmp(given->checksum, present->checksum) == 0 && rv_text_eq(given->version, present->version) &&
             rv_text_eq(given->description, present->description) && rv_text_eq(given->source, present->source) &&
             rv_text_eq(given->place, present->place) && rv_str_eq(given->content, present->content) &&
             rv_str_eq(given->json_schema, present->json_schema));
}

static int fail_none(const char *kind, const char *name, rv_err **err)
{
    return RV_FAIL(err, RV_E_NOT_FOUND, "no schema \"%s\" of kind \"%s\"", name, kind);
}

struct found {
    int64_t key;
    bool is_deleted;
    struct rv_schema_row row; /* borrowed from the statement */
};

static int row_of(struct sql_store *st, rv_sql_stmt *stmt, struct found *out, rv_err **err)
{
    bool lacked = false;
    const char *checksum = sql_text_at(stmt, 13, &lacked);
    struct found got = {
        .key = sql_int_at(stmt, 0),
        .is_deleted = !sql_is_null(stmt, 16),
        .row = {.id = sql_text_at(stmt, 1, &lacked),
                .tenant = sql_text_at(stmt, 2, &lacked),
                .user = sql_text_at(stmt, 3, &lacked),
                .name = sql_text_at(stmt, 4, &lacked),
                .kind = sql_text_at(stmt, 5, &lacked),
                .version = sql_text_at(stmt, 6, &lacked),
                .description = sql_text_at(stmt, 7, &lacked),
                .content = sql_str_at(stmt, 8),
                .json_schema = sql_str_at(stmt, 9),
                .document = sql_str_at(stmt, 10),
                .source = sql_text_at(stmt, 11, &lacked),
                .place = sql_text_at(stmt, 12, &lacked),
                .created_us = sql_int_at(stmt, 14),
                .updated_us = sql_int_at(stmt, 15)},
    };
    const struct rv_schema_row *row = &got.row;

    if (lacked)
        return RV_FAIL(err, RV_E_NOMEM, "read a schema");
    if (!row->id || !row->tenant || !row->user || !row->name || !row->kind || !row->source || !row->content.ptr ||
        !row->json_schema.ptr || !row->document.ptr || !checksum || strlen(checksum) != RV_HASH_MAX - 1)
        return store_damaged(st, err, "schema \"%s\" is damaged: a text is missing", row->name ? row->name : "");
    memcpy(got.row.checksum, checksum, RV_HASH_MAX);
    *out = got;
    return 0;
}

/* 1: found; lasts until sql_done() of *stmt, which is the caller's in any case. */
static int look(struct sql_store *st, enum sql_id how, const struct rv_schema_row *key, rv_sql_stmt **stmt,
                struct found *out, rv_err **err)
{
    int rc;

    *stmt = sql_use(st, how);
    store_sql_text(*stmt, 1, key->tenant);
    store_sql_text(*stmt, 2, key->kind);
    store_sql_text(*stmt, 3, key->name);
    store_sql_text(*stmt, 4, key->user);
    rc = sql_step(*stmt, "look for a schema", err);
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
    rv_sql_stmt *stmt = sql_use(st, SQL_SCHEMA_ID);
    int rc;

    store_sql_text(stmt, 1, row->tenant);
    store_sql_text(stmt, 2, row->id);
    while ((rc = sql_step(stmt, "look for a schema", err)) == 1) {
        if (!rv_str_is(sql_str_at(stmt, 0), row->user))
            rc = RV_FAIL(err, RV_E_DENIED, "the schema %s belongs to another user", row->id);
        else if (!rv_str_is(sql_str_at(stmt, 1), row->kind) || !rv_str_is(sql_str_at(stmt, 2), row->name))
            rc = RV_FAIL(err, RV_E_EXISTS, "there is a schema %s of another name already", row->id);
        if (rc < 0)
            break;
    }
    sql_done(stmt);
    return rc;
}

/* Nothing else keeps two rows from getting one id at the same time. */
static int lock_schemas(struct sql_store *st, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_LOCK_SCHEMAS);
    int rc;

    store_sql_text(stmt, 1, "schemas");
    rc = sql_step(stmt, "lock schemas", err);
    sql_done(stmt);
    return rc < 0 ? rc : 0;
}

static int count_change(struct sql_store *st, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_COUNT_CHANGE);

    store_sql_text(stmt, 1, "schemas");
    return sql_run(stmt, "count a change of schemas", err);
}

/* Where a row is written to. */
struct written {
    int64_t key; /* 0: a new row */
    char id[RV_STORE_MAX_ID + 1];
    bool is_new; /* or was deleted */
};

/* The index of names, and the versions. */
static int keep_beside(struct sql_store *st, const struct rv_schema_row *row, const struct written *to, int64_t now_us,
                       rv_err **err)
{
    bool is_described = row->description && *row->description;
    const struct rv_key_source k = {
        .kind = "schemas",
        .row = to->key,
        .tenant = row->tenant,
        .user = row->user,
        .id = to->id,
        .name = rv_str_of(row->name),
        .summary = row->content.len > 0 ? row->content : rv_str_of(is_described ? row->description : row->name),
        .updated_us = now_us};
    int rc = store_keys_put(st, &k, err);

    return rc < 0 ? rc
                  : store_versions_keep(st, to->key,
                                        &(const struct rv_version_text){.operation = to->is_new ? "insert" : "update",
                                                                        .content = row->content,
                                                                        .json_schema = row->json_schema},
                                        now_us, err);
}

/* The keys that a row is found by, and its id, do not change. */
static int write_row(struct sql_store *st, const struct rv_schema_row *row, struct written *to, int64_t now_us,
                     rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, to->key == 0 ? SQL_ADD_SCHEMA : SQL_SET_SCHEMA);
    int rc;

    if (to->key == 0) {
        store_sql_text(stmt, 1, to->id);
        store_sql_text(stmt, 2, row->tenant);
        store_sql_text(stmt, 3, row->user);
        store_sql_text(stmt, 4, row->name);
        store_sql_text(stmt, 5, row->kind);
    } else {
        sql_int(stmt, 15, to->key);
    }
    store_sql_text(stmt, 6, row->version);
    store_sql_text(stmt, 7, row->description);
    sql_str(stmt, 8, row->content);
    sql_str(stmt, 9, row->json_schema);
    sql_str(stmt, 10, row->document);
    store_sql_text(stmt, 11, row->source);
    store_sql_text(stmt, 12, row->place);
    store_sql_text(stmt, 13, row->checksum);
    sql_int(stmt, 14, now_us);
    rc = to->key == 0 ? sql_run_new(stmt, &to->key, "write a schema", err) : sql_run(stmt, "write a schema", err);
    if (rc == 0)
        rc = keep_beside(st, row, to, now_us, err);
    return rc < 0 ? rc : count_change(st, err);
}

static int put(struct sql_store *st, const struct rv_schema_row *row, enum rv_schema_put mode, int64_t now_us,
               bool *changed, rv_err **err)
{
    char derived[RV_UUID_MAX];
    struct found found = {0};
    struct written to;
    rv_sql_stmt *stmt = NULL;
    int rc = row->id ? lock_schemas(st, err) : 0;
    bool changes;

    if (rc == 0 && row->id)
        rc = check_id(st, row, err);
    if (rc == 0)
        rc = look(st, SQL_SAME_SCHEMA, row, &stmt, &found, err);
    if (rc < 0) {
        sql_done(stmt);
        return rc;
    }
    changes = replaces(row, mode, rc == 1 ? &found.row : NULL, found.is_deleted);
    rv_entity_make_id("schemas", rv_str_of(row->name), row->user, derived);
    to = (struct written){.key = found.key, .is_new = rc == 0 || found.is_deleted};
    snprintf(to.id, sizeof to.id, "%s", rc == 1 ? found.row.id : row->id ? row->id : derived);
    sql_done(stmt);
    *changed = changes;
    return changes ? write_row(st, row, &to, now_us, err) : 0;
}

int rv_store_put_schema(rv_store *s, const struct rv_schema_row *row, enum rv_schema_put mode, int64_t now_us,
                        bool *changed, rv_err **err)
{
    struct rv_schema_row given;
    bool did = false;
    int rc = check_schema(row, mode, err);

    if (rc == 0)
        rc = store_check_time("the time", now_us, err);
    if ((rc = store_enter_write(s, rc, "put schema", err)) != 0)
        return rc;
    given = *row;
    given.tenant = given.tenant ? given.tenant : RV_STORE_TENANT;
    given.user = given.user ? given.user : "";
    given.content.ptr = given.content.ptr ? given.content.ptr : "";
    given.document.ptr = given.document.ptr ? given.document.ptr : "";
    given.json_schema = given.json_schema.len > 0 ? given.json_schema : RV_STR_LIT("{}");
    rv_hash_format(given.document, given.checksum);
    do
        rc = put(s->sql, &given, mode, now_us, &did, err);
    while (store_repeats(s, &rc, err));
    rc = store_leave_write(s, rc, err);
    if (rc == 0 && changed)
        *changed = did;
    return rc;
}

/* The key of a document: scope, kind and name, as look() takes it. */
static int check_key(const struct rv_store_scope *scope, const char *kind, const char *name, struct rv_schema_row *key,
                     rv_err **err)
{
    struct rv_store_scope sc;
    int rc = store_check_scope(scope, &sc, err);

    if (rc == 0)
        rc = store_check_id("kind", kind, err);
    if (rc == 0)
        rc = store_check_id("schema's name", name, err);
    if (rc == 0)
        *key = (struct rv_schema_row){.tenant = sc.tenant, .kind = kind, .name = name, .user = sc.user ? sc.user : ""};
    return rc;
}

int rv_store_find_schema(rv_store *s, const struct rv_store_scope *scope, const char *kind, const char *name,
                         struct rv_schema_row *out, rv_err **err)
{
    struct rv_schema_row key, row = {0};
    struct found found;
    rv_sql_stmt *stmt = NULL;
    int rc = store_enter_read(s, check_key(scope, kind, name, &key, err), "find schema", err);

    if (rc != 0)
        return rc;
    rc = look(s->sql, SQL_FIND_SCHEMA, &key, &stmt, &found, err);
    if (rc == 0)
        rc = fail_none(kind, name, err);
    else if (rc == 1)
        rc = copy_row(&found.row, &row) < 0 ? RV_FAIL(err, RV_E_NOMEM, "read schema \"%s\"", name) : 0;
    sql_done(stmt);
    rc = store_leave_read(s, rc, err);
    if (rc == 0)
        *out = row;
    else
        rv_schema_row_fini(&row);
    return rc;
}

static int list(struct sql_store *st, const struct rv_store_scope *scope, const char *kind, rv_each_schema *each,
                void *ctx, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_LIST_SCHEMAS);
    int rc;

    store_sql_text(stmt, 1, scope->tenant);
    store_sql_text(stmt, 2, kind);
    store_sql_text(stmt, 3, scope->user);
    while ((rc = sql_step(stmt, "list schemas", err)) == 1) {
        struct found found;
        rc = row_of(st, stmt, &found, err);
        if (rc == 0)
            rc = each(ctx, &found.row, err);
        if (rc != 0)
            break;
    }
    sql_done(stmt);
    return rc;
}

int rv_store_list_schemas(rv_store *s, const struct rv_store_scope *scope, const char *kind,
                          int (*each)(void *self, const struct rv_schema_row *row, rv_err **err), void *self,
                          rv_err **err)
{
    struct rv_store_scope sc;
    int rc = store_check_scope(scope, &sc, err);

    if (rc == 0 && kind)
        rc = store_check_id("kind", kind, err);
    rc = store_enter_read(s, rc, "list schemas", err);
    return rc != 0 ? rc : store_leave_read(s, list(s->sql, &sc, kind, each, self, err), err);
}

static int delete_schema(struct sql_store *st, const struct rv_schema_row *key, int64_t now_us, rv_err **err)
{
    struct found found;
    rv_sql_stmt *stmt = NULL;
    int rc = look(st, SQL_SAME_SCHEMA, key, &stmt, &found, err);

    if (rc == 0 || (rc == 1 && found.is_deleted))
        rc = fail_none(key->kind, key->name, err);
    if (rc == 1)
        rc = store_versions_keep(st, found.key,
                                 &(const struct rv_version_text){.operation = "delete",
                                                                 .content = found.row.content,
                                                                 .json_schema = found.row.json_schema},
                                 now_us, err);
    sql_done(stmt);
    if (rc < 0)
        return rc;
    stmt = sql_use(st, SQL_DELETE_SCHEMA);
    sql_int(stmt, 1, found.key);
    sql_int(stmt, 2, now_us);
    rc = sql_run(stmt, "delete a schema", err);
    if (rc == 0)
        rc = store_keys_drop(st, "schemas", found.key, err);
    return rc < 0 ? rc : count_change(st, err);
}

int rv_store_delete_schema(rv_store *s, const struct rv_store_scope *scope, const char *kind, const char *name,
                           int64_t now_us, rv_err **err)
{
    struct rv_schema_row key;
    int rc = check_key(scope, kind, name, &key, err);

    if (rc == 0)
        rc = store_check_time("the time", now_us, err);
    rc = store_enter_write(s, rc, "delete schema", err);
    if (rc != 0)
        return rc;
    do
        rc = delete_schema(s->sql, &key, now_us, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

static int version(struct sql_store *st, int64_t *out, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_COUNTER);
    int rc;

    store_sql_text(stmt, 1, "schemas");
    rc = sql_step(stmt, "read a counter", err);
    if (rc == 1)
        *out = sql_int_at(stmt, 0);
    sql_done(stmt);
    if (rc == 0)
        return store_damaged(st, err, "the counter of schemas is missing");
    return rc < 0 ? rc : 0;
}

int rv_store_read_schemas_version(rv_store *s, int64_t *out, rv_err **err)
{
    int64_t got = 0;
    int rc = store_enter_read(s, 0, "schemas version", err);

    if (rc != 0)
        return rc;
    rc = store_leave_read(s, version(s->sql, &got, err), err);
    if (rc == 0)
        *out = got;
    return rc;
}
