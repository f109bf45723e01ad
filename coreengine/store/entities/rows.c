/* A row of an entity as a JSON object, with the same bytes whatever the database. */
#include <stdio.h>
#include <stdlib.h>

#include <json-c/linkhash.h>

#include "coreengine/store/entities/entities_internal.h"

#define N_COMMON 12 /* columns of RV_SQL_ROWS_* before the kind's own */

json_object *entity_parse(rv_str text, json_type type, bool *lacked)
{
    static const struct rv_json_opts opts = {.max_bytes = RV_STORE_MAX_VALUE, .allow_duplicates = true};
    json_object *v = NULL, *inner = NULL;

    if (!text.ptr || text.len == 0)
        return NULL;
    int rc = rv_json_parse(text, &opts, &v,
                           RV_CODE_ONLY("unreadable JSON of a row counts as missing; lacked says want of memory"));
    if (rc == 0 && json_object_is_type(v, json_type_string) && type != json_type_string) {
        /* it was serialised twice */
        rc = rv_json_parse(rv_json_str(v), &opts, &inner,
                           RV_CODE_ONLY("unreadable JSON of a row counts as missing; lacked says want of memory"));
        json_object_put(v);
        v = rc == 0 ? inner : NULL;
    }
    *lacked = *lacked || rc == RV_E_NOMEM;
    if (v && !json_object_is_type(v, type)) {
        json_object_put(v);
        v = NULL;
    }
    return v;
}

static json_type json_type_of(enum rv_kind_type type)
{
    return type == RV_KIND_OBJECT ? json_type_object : json_type_array;
}

static bool is_json(enum rv_kind_type type)
{
    return type == RV_KIND_OBJECT || type == RV_KIND_TEXTS || type == RV_KIND_OBJECTS;
}

/* What a row shows that lacks the field. */
static int set_fallback(json_object *row, const struct rv_kind_field *f, rv_err **err)
{
    const char *text = f->fallback ? f->fallback : f->type == RV_KIND_TEXTS || f->type == RV_KIND_OBJECTS ? "[]" : NULL;
    json_object *v = NULL;
    int rc = text ? rv_json_parse(rv_str_of(text), NULL, &v, err) : 0;

    if (rc < 0)
        return rc;
    return v ? rv_json_set_take(row, f->name, v, err) : rv_json_set_null(row, f->name, err);
}

static int set_json(json_object *row, const char *name, rv_str text, json_type type, rv_err **err)
{
    bool lacked = false;
    json_object *v = entity_parse(text, type, &lacked);

    if (lacked) {
        json_object_put(v);
        return RV_FAIL(err, RV_E_NOMEM, "read %s", name);
    }
    if (!v)
        v = type == json_type_object ? json_object_new_object() : json_object_new_array();
    return rv_json_set_take(row, name, v, err);
}

/* --- Texts that may be encrypted --- */

struct rv_place entity_place(const struct rv_kind *kind, const char *tenant, const char *user, const char *id)
{
    return (struct rv_place){tenant, kind->name, {user, id, NULL}, 0, false};
}

/* Where the row of a statement is. */
static int place_of(const struct rv_kind *kind, rv_sql_stmt *stmt, struct rv_place *out, rv_err **err)
{
    bool lacked = false;
    const char *id = sql_text_at(stmt, 1, &lacked), *tenant = sql_text_at(stmt, 2, &lacked),
               *user = sql_text_at(stmt, 3, &lacked);

    *out = entity_place(kind, tenant, user, id);
    if (kind->place == RV_PLACE_MESSAGES)
        *out = (struct rv_place){tenant, "messages", {user, sql_text_at(stmt, 11, &lacked), id}, 0, false};
    return lacked ? RV_FAIL(err, RV_E_NOMEM, "read a row") : 0;
}

/* The form in which a client gets an object that it has to decrypt itself. */
static int set_secret(json_object *row, const char *name, rv_str kept, rv_err **err)
{
    json_object *v = json_object_new_object();
    int rc = v ? rv_json_set_str(v, "encrypted", kept, err) : RV_FAIL(err, RV_E_NOMEM, "read %s", name);

    if (rc == 0)
        return rv_json_set_take(row, name, v, err);
    json_object_put(v);
    return rc;
}

/* Set the column to what its ciphertext says. What does not decrypt there is a text like any other. */
static int open_shown(struct sql_store *st, const struct rv_secret_cell *cell, rv_str shown, bool is_text,
                      json_object *columns, rv_err **err)
{
    rv_buf plain = RV_BUF_INIT(2 * RV_ENTITY_MAX_BYTES);
    json_object *v = NULL;
    rv_err *why = NULL;
    int rc = store_secret_read(st, cell->at, cell->column, shown, &plain, &why);

    if (rc == 0 && is_text)
        rc = rv_json_set_str(columns, cell->column, rv_buf_str(&plain), err);
    else if (rc == 0 && (rc = rv_json_parse(rv_buf_str(&plain), NULL, &v, err)) == 0)
        rc = rv_json_set_take(columns, cell->column, v, err);
    else if (rc == RV_E_NOMEM)
        rv_err_pass(err, why), why = NULL;
    else
        rc = 0;
    rv_err_free(why);
    if (plain.ptr)
        rv_wipe(plain.ptr, plain.cap);
    rv_buf_fini(&plain);
    return rc;
}

static int take_shown(struct sql_store *st, const struct rv_secret_cell *cell, rv_str kept, json_object *columns,
                      rv_err **err)
{
    json_object *v = NULL;
    bool is_text = false;

    if (!json_object_object_get_ex(columns, cell->column, &v) || !v)
        return 0;
    is_text = json_object_is_type(v, json_type_string);
    if (json_object_is_type(v, json_type_object) && json_object_object_length(v) == 1)
        json_object_object_get_ex(v, "encrypted", &v);
    if (!json_object_is_type(v, json_type_string) || !store_secret_is(rv_json_str(v)))
        return 0;
    if (!rv_str_eq(rv_json_str(v), kept))
        return store_secret_is_of_row(rv_json_str(v)) ? open_shown(st, cell, rv_json_str(v), is_text, columns, err) : 0;
    json_object_object_del(columns, cell->column);
    return 0;
}

int entity_open_shown(struct sql_store *st, const struct rv_kind *kind, const struct rv_entity_kept *kept,
                      json_object *columns, rv_err **err)
{
    struct rv_secret_cell cell = {.at = kept->at, .column = "metadata"};
    int rc = take_shown(st, &cell, kept->metadata, columns, err);

    for (size_t i = 0; kept->fields && i < RV_KIND_MAX_NAMES && kind->encrypted[i] && rc == 0; i++) {
        cell.column = kind->encrypted[i];
        rc = take_shown(st, &cell, rv_json_member_str(kept->fields, cell.column), columns, err);
    }
    return rc;
}

/* A column with JSON, and the member that it becomes. Borrowed. */
struct json_column {
    const char *name;
    int at;
    json_type type;
};
/* A column that is JSON of that type. */
static int set_json_at(json_object *row, const struct json_column *column, rv_sql_stmt *stmt,
                       const struct rv_place *place, rv_err **err)
{
    rv_str text;
    int rc = store_secret_at(stmt, column->at, place, column->name, &text, err);

    if (rc < 0)
        return rc;
    return store_secret_is(text) ? set_secret(row, column->name, text, err)
                                 : set_json(row, column->name, text, column->type, err);
}

/* A kind's own columns that have columns of the table. */
static int set_columns(json_object *row, const struct rv_kind *kind, rv_sql_stmt *stmt, const struct rv_place *place,
                       rv_err **err)
{
    rv_str text;
    int rc = 0;

    for (size_t i = 0; i < kind->n_fields && rc == 0; i++) {
        const struct rv_kind_field *f = &kind->fields[i];
        int at = N_COMMON + (int)i;
        if (sql_is_null(stmt, at))
            rc = set_fallback(row, f, err);
        else if (f->type == RV_KIND_INT)
            rc = rv_json_set_int(row, f->name, sql_int_at(stmt, at), err);
        else if (is_json(f->type))
            rc = set_json_at(row, &(const struct json_column){.name = f->name, .at = at, .type = json_type_of(f->type)},
                             stmt, place, err);
        else if ((rc = store_secret_at(stmt, at, place, f->name, &text, err)) == 0)
            rc = rv_json_set_str(row, f->name, text, err);
    }
    return rc;
}

/* And those that are members of `fields`. A value that is not of its column's type is as if it lacked; a list or an
 * object within a text is read from that text. */
static int set_field(json_object *row, const struct rv_kind_field *f, json_object *v, rv_err **err)
{
    bool lacked = false;
    json_object *inner = NULL;

    if (v && is_json(f->type) && !json_object_is_type(v, json_type_of(f->type))) {
        if (json_object_is_type(v, json_type_string))
            inner = entity_parse(rv_json_str(v), json_type_of(f->type), &lacked);
        if (lacked)
            return RV_FAIL(err, RV_E_NOMEM, "read %s", f->name);
        return inner ? rv_json_set_take(row, f->name, inner, err) : set_fallback(row, f, err);
    }
    return v ? rv_json_set_ref(row, f->name, v, err) : set_fallback(row, f, err);
}

/* The same of a text that may be encrypted. */
static int set_secret_field(json_object *row, const struct rv_kind_field *f, json_object *v, struct sql_store *st,
                            const struct rv_place *place, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(2 * RV_ENTITY_MAX_BYTES);
    json_object *plain = NULL;
    int rc = store_secret_read(st, place, f->name, rv_json_str(v), &text, err);

    if (rc == 0 && store_secret_is(rv_buf_str(&text)) && is_json(f->type)) {
        rc = set_secret(row, f->name, rv_buf_str(&text), err);
    } else if (rc == 0) {
        plain = json_object_new_string_len(rv_buf_cstr(&text), (int)text.len);
        rc = plain ? set_field(row, f, plain, err) : RV_FAIL(err, RV_E_NOMEM, "read %s", f->name);
        json_object_put(plain);
    }
    rv_buf_fini(&text);
    return rc;
}

static int set_fields(json_object *row, const struct rv_kind *kind, rv_sql_stmt *stmt, const struct rv_place *place,
                      rv_err **err)
{
    bool lacked = false;
    json_object *fields = entity_parse(sql_str_at(stmt, N_COMMON + 1), json_type_object, &lacked);
    int rc = lacked ? RV_FAIL(err, RV_E_NOMEM, "read a row") : 0;

    for (size_t i = 0; i < kind->n_fields && rc == 0; i++) {
        const struct rv_kind_field *f = &kind->fields[i];
        json_object *v = NULL;
        if (strcmp(f->name, "name") == 0) {
            rv_str name = sql_str_at(stmt, N_COMMON);
            rc = name.ptr ? rv_json_set_str(row, "name", name, err) : rv_json_set_null(row, "name", err);
            continue;
        }
        if (fields)
            json_object_object_get_ex(fields, f->name, &v);
        bool may_be_secret = json_object_is_type(v, json_type_string) && store_kind_encrypts(kind, f->name);
        rc = may_be_secret ? set_secret_field(row, f, v, stmt->st, place, err) : set_field(row, f, v, err);
    }
    json_object_put(fields);
    return rc;
}

static int set_word(json_object *row, const char *name, rv_sql_stmt *stmt, int at, rv_err **err)
{
    rv_str text = sql_str_at(stmt, at);

    return text.len > 0 ? rv_json_set_str(row, name, text, err) : rv_json_set_null(row, name, err);
}

static int set_time(json_object *row, const char *name, int64_t us, rv_err **err)
{
    char text[RV_TIME_MAX];

    entity_time(us, text);
    return rv_json_set_text(row, name, text, err);
}

static int fill(json_object *row, const struct rv_kind *kind, rv_sql_stmt *stmt, rv_err **err)
{
    struct rv_place place;
    int rc = place_of(kind, stmt, &place, err);

    if (rc == 0)
        rc = set_word(row, "id", stmt, 1, err);
    if (rc == 0)
        rc = set_word(row, "tenant_id", stmt, 2, err);
    if (rc == 0)
        rc = set_word(row, "user_id", stmt, 3, err);
    if (rc == 0)
        rc = kind->place == RV_PLACE_ENTITIES ? set_fields(row, kind, stmt, &place, err)
                                              : set_columns(row, kind, stmt, &place, err);
    if (rc == 0)
        rc = set_json_at(row, &(const struct json_column){.name = "metadata", .at = 4, .type = json_type_object}, stmt,
                         &place, err);
    if (rc == 0)
        rc = set_json(row, "tags", sql_str_at(stmt, 5), json_type_array, err);
    if (rc == 0)
        rc = set_json(row, "graph_edges", sql_str_at(stmt, 6), json_type_array, err);
    if (rc == 0)
        rc = set_word(row, "encryption_level", stmt, 7, err);
    if (rc == 0)
        rc = set_time(row, "created_at", sql_int_at(stmt, 8), err);
    if (rc == 0)
        rc = set_time(row, "updated_at", sql_int_at(stmt, 9), err);
    return rc < 0 ? rc : rv_json_set_null(row, "deleted_at", err);
}

int entity_read(struct sql_store *st, const struct rv_kind *kind, rv_sql_stmt *stmt, json_object **out, rv_err **err)
{
    json_object *row = json_object_new_object();
    int rc = row ? fill(row, kind, stmt, err) : RV_FAIL(err, RV_E_NOMEM, "read a row");

    (void)st;
    if (rc < 0)
        json_object_put(row);
    else
        *out = row;
    return rc;
}

static const enum sql_id by_key[] = {
    [RV_PLACE_ENTITIES] = SQL_ENTITY_BY_KEY,
    [RV_PLACE_SESSIONS] = SQL_SESSION_BY_KEY,
    [RV_PLACE_MESSAGES] = SQL_MESSAGE_BY_KEY,
    [RV_PLACE_SCHEMAS] = SQL_SCHEMA_BY_KEY,
};
RV_EACH_HAS_ROW(by_key, RV_N_KIND_PLACES);

rv_sql_stmt *entity_use(struct sql_store *st, const struct rv_kind *kind, int64_t row)
{
    rv_sql_stmt *stmt = sql_use(st, by_key[kind->place]);

    sql_int(stmt, 1, row);
    if (kind->place == RV_PLACE_ENTITIES)
        store_sql_text(stmt, 2, kind->name);
    return stmt;
}

int entity_at(struct sql_store *st, const struct rv_kind *kind, int64_t row, json_object **out, rv_err **err)
{
    rv_sql_stmt *stmt = entity_use(st, kind, row);
    int rc = sql_step(stmt, "read a row", err);

    if (rc == 1)
        rc = entity_read(st, kind, stmt, out, err);
    else if (rc == 0)
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "no row %lld of %s", (long long)row, kind->name);
    sql_done(stmt);
    return rc;
}

/* --- Versions --- */

int rv_entity_make_version(json_object *row, char out[RV_ENTITY_VERSION_MAX], rv_err **err)
{
    rv_buf text = RV_BUF_INIT(4 * RV_ENTITY_MAX_BYTES);
    char hash[RV_HASH_MAX];
    struct rv_hash h;
    int rc = 0;

    rv_hash_init(&h);
    json_object_object_foreach (row, column, value) {
        if (strcmp(column, "updated_at") == 0 || rc < 0)
            continue;
        rv_buf_clear(&text);
        rv_buf_puts(&text, column);
        rv_buf_putc(&text, ' ');
        rv_json_write(value, &text);
        rv_buf_putc(&text, '\n');
        rc = rv_buf_check(&text, "row", err);
        rv_hash_add(&h, rv_buf_str(&text));
    }
    rv_hash_finish_hex(&h, hash);
    rv_buf_fini(&text);
    if (rc == 0)
        snprintf(out, RV_ENTITY_VERSION_MAX, "%.32s", hash);
    return rc;
}

int entity_check_version(struct sql_store *st, const struct rv_kind *kind, int64_t row, const char *version,
                         bool *is_stale, rv_err **err)
{
    char has[RV_ENTITY_VERSION_MAX] = "";
    json_object *now = NULL;
    rv_err *why = NULL;

    if (!version)
        return 0;
    int rc = row ? entity_at(st, kind, row, &now, &why) : 0;
    if (rc == RV_E_NOT_FOUND) { /* it is deleted */
        rv_err_free(why);
        rc = 0;
    } else if (rc < 0) {
        rv_err_pass(err, why);
    }
    if (now)
        rc = rv_entity_make_version(now, has, err);
    json_object_put(now);
    bool differs = rc == 0 && strcmp(has, version) != 0;
    if (differs && is_stale)
        *is_stale = true;
    if (differs)
        rc = RV_FAIL(err, RV_E_STATE, "another writer has %s a row of %s meanwhile",
                     !*has      ? "deleted"
                     : *version ? "changed"
                                : "added",
                     kind->name);
    return rc;
}
