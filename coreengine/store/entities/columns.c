/* Checks of a row of an entity: each column by its type, ids, sizes. */
#include <json-c/linkhash.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "coreengine/store/entities/entities_internal.h"

#define MAX_SHOWN   40 /* characters of a value in a message: half a line of a terminal */
#define MAX_COLUMNS 48 /* of a kind, with those of all kinds; for suggestions */

/* Columns of all kinds. */
static const char *const common[] = {"id",          "tenant_id",        "user_id",    "metadata",   "tags",
                                     "graph_edges", "encryption_level", "created_at", "updated_at", "deleted_at"};

static bool is_of(const char *const *names, size_t n, rv_str name)
{
    for (size_t i = 0; i < n; i++)
        if (rv_str_is(name, names[i]))
            return true;
    return false;
}

static int fail_column(const struct rv_kind *kind, rv_str column, rv_err **err)
{
    const char *names[MAX_COLUMNS];
    size_t n = 0;

    for (size_t i = 0; i < kind->n_fields; i++)
        names[n++] = kind->fields[i].name;
    for (size_t i = 0; i < RV_COUNT(common); i++)
        names[n++] = common[i];
    const char *near = rv_nearest(column, names, n);
    rv_str shown = rv_utf8_first(column, MAX_SHOWN);
    RV_FAIL(err, RV_E_INVALID, "%s have no column \"%.*s\"", kind->name, RV_STR_ARG(shown));
    if (near)
        rv_err_set_hint(err, "did you mean \"%s\"? Values of your own go into metadata", near);
    else
        rv_err_set_hint(err, "values of your own go into metadata; `reeve docs reference entities` lists the columns");
    return RV_E_INVALID;
}

int entity_check_column(const struct rv_kind *kind, const char *column, rv_err **err)
{
    if (rv_kind_find_field(kind, rv_str_of(column)) || is_of(common, RV_COUNT(common), rv_str_of(column)))
        return 0;
    return fail_column(kind, rv_str_of(column), err);
}

/* --- Values --- */

static int fail_type(const char *column, const char *wanted, json_object *v, rv_err **err)
{
    rv_str text = rv_json_str(v);

    if (json_object_is_type(v, json_type_string) && text.len > 0 && (text.ptr[0] == '{' || text.ptr[0] == '[') &&
        (strstr(wanted, "object") || strstr(wanted, "list"))) {
        RV_FAIL(err, RV_E_INVALID, "%s is a text that contains JSON", column);
        rv_err_set_hint(err, "give the %s itself, not its JSON text", wanted);
        return RV_E_INVALID;
    }
    return RV_FAIL(err, RV_E_INVALID, "%s must be a %s%s, not %s", column, wanted,
                   strcmp(wanted, "text") == 0 ? " (a JSON string)" : "", rv_json_type_text(v));
}

static int check_text(const char *column, json_object *v, size_t max, rv_err **err)
{
    rv_str text = rv_json_str(v);
    size_t bad;

    if (!json_object_is_type(v, json_type_string))
        return fail_type(column, "text", v, err);
    if (text.len > max)
        return RV_FAIL(err, RV_E_LIMIT, "%s has %zu bytes, more than %zu", column, text.len, max);
    if (!rv_utf8_valid(text, &bad))
        return RV_FAIL(err, RV_E_INVALID, "%s is not UTF-8 at byte %zu", column, bad);
    return 0;
}

/* A text that is a value of a column of the database. */
static int check_word(const char *column, json_object *v, size_t max, rv_err **err)
{
    rv_str text = rv_json_str(v);
    int rc = check_text(column, v, max, err);

    if (rc == 0 && rv_str_find(text, '\0'))
        rc = RV_FAIL(err, RV_E_INVALID, "%s has a NUL", column);
    return rc;
}

static int check_list(const char *column, json_object *v, enum rv_kind_type type, rv_err **err)
{
    bool has_texts = type == RV_KIND_TEXTS;

    if (!json_object_is_type(v, json_type_array))
        return fail_type(column, store_kind_type_text(type), v, err);
    for (size_t i = 0; i < json_object_array_length(v); i++) {
        json_object *item = json_object_array_get_idx(v, i);
        if (!json_object_is_type(item, has_texts ? json_type_string : json_type_object))
            return RV_FAIL(err, RV_E_INVALID, "item %zu of %s must be %s, not %s", i + 1, column,
                           has_texts ? "a text" : "an object", rv_json_type_text(item));
    }
    return 0;
}

static int check_number(const struct rv_kind_field *f, json_object *v, rv_err **err)
{
    int64_t n = 0;

    if (f->type == RV_KIND_REAL)
        return rv_json_is_number(v) ? 0 : fail_type(f->name, "number", v, err);
    if (!rv_json_is_int(v))
        return RV_FAIL(err, RV_E_INVALID, "%s must be an integer, not %s", f->name,
                       json_object_is_type(v, json_type_int) ? "one beyond 64 bits" : rv_json_type_text(v));
    n = json_object_get_int64(v);
    if ((f->least || f->greatest) && (n < f->least || n > f->greatest))
        return f->greatest == INT64_MAX ? RV_FAIL(err, RV_E_INVALID, "%s is %lld, less than %lld", f->name,
                                                  (long long)n, (long long)f->least)
                                        : RV_FAIL(err, RV_E_INVALID, "%s is %lld, not from %lld to %lld", f->name,
                                                  (long long)n, (long long)f->least, (long long)f->greatest);
    return 0;
}

void entity_time(int64_t us, char out[RV_TIME_MAX])
{
    rv_time_format(us, out);
    snprintf(out + strlen(out) - 1, 7, "+00:00"); /* instead of the Z */
}

static int keep_time(const char *column, json_object *v, json_object **out, rv_err **err)
{
    char text[RV_TIME_MAX];
    int64_t us = 0;
    rv_str given = rv_json_str(v), shown = rv_utf8_first(given, MAX_SHOWN);

    if (!json_object_is_type(v, json_type_string))
        return fail_type(column, "time", v, err);
    if (!rv_time_read(given, &us)) {
        RV_FAIL(err, RV_E_INVALID, "%s \"%.*s\" is not a time", column, RV_STR_ARG(shown));
        rv_err_set_hint(err, "write it as 2026-11-21T21:05:00Z");
        return RV_E_INVALID;
    }
    entity_time(us, text);
    *out = json_object_new_string(text);
    return *out ? 0 : RV_FAIL(err, RV_E_NOMEM, "read %s", column);
}

static int check_words(const struct rv_kind_field *f, json_object *v, rv_err **err)
{
    rv_str text = rv_json_str(v);

    for (const char *at = f->words; at && *at;) {
        size_t n = strcspn(at, " ");
        if (rv_str_eq(text, (rv_str){at, n}))
            return 0;
        at += n + (at[n] == ' ');
    }
    rv_str shown = rv_utf8_first(text, MAX_SHOWN);
    return f->words ? RV_FAIL(err, RV_E_INVALID, "%s \"%.*s\" is none of: %s", f->name, RV_STR_ARG(shown), f->words)
                    : 0;
}

/* *out: another value to keep in its place, owned; NULL: the value itself. */
static int check_field(const struct rv_kind_field *f, json_object *v, json_object **out, rv_err **err)
{
    int rc = 0;

    switch (f->type) {
    case RV_KIND_TEXT:
        rc = strcmp(f->name, "name") == 0 ? check_word(f->name, v, RV_ENTITY_MAX_NAME, err)
                                          : check_text(f->name, v, RV_ENTITY_MAX_BYTES, err);
        return rc < 0 ? rc : check_words(f, v, err);
    case RV_KIND_ID:
        return check_word(f->name, v, RV_STORE_MAX_ID, err);
    case RV_KIND_INT:
    case RV_KIND_REAL:
        return check_number(f, v, err);
    case RV_KIND_BOOL:
        return json_object_is_type(v, json_type_boolean) ? 0 : fail_type(f->name, "boolean", v, err);
    case RV_KIND_TIME:
        return keep_time(f->name, v, out, err);
    case RV_KIND_OBJECT:
        return json_object_is_type(v, json_type_object) ? 0 : fail_type(f->name, "object", v, err);
    case RV_KIND_TEXTS:
    case RV_KIND_OBJECTS:
        return check_list(f->name, v, f->type, err);
    case RV_N_KIND_TYPES:
        break;
    }
    return 0;
}

/* --- Columns of all kinds --- */

static int check_size(const char *column, json_object *v, size_t max, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(max);

    rv_json_write(v, &text);
    int rc = text.rc == RV_E_LIMIT ? RV_FAIL(err, RV_E_LIMIT, "%s has more than %zu bytes as JSON", column, max)
                                   : rv_buf_check(&text, column, err);
    rv_buf_fini(&text);
    return rc;
}

static int check_tags(json_object *v, rv_err **err)
{
    int rc = check_list("tags", v, RV_KIND_TEXTS, err);

    if (rc == 0 && json_object_array_length(v) > RV_ENTITY_MAX_TAGS)
        rc = RV_FAIL(err, RV_E_LIMIT, "%zu tags are more than %d", json_object_array_length(v), RV_ENTITY_MAX_TAGS);
    for (size_t i = 0; rc == 0 && i < json_object_array_length(v); i++)
        rc = check_word("a tag", json_object_array_get_idx(v, i), RV_ENTITY_MAX_TAG, err);
    return rc;
}

static int check_edge(json_object *edge, size_t i, rv_err **err)
{
    json_object *target = NULL, *relation = NULL, *weight = NULL;

    json_object_object_get_ex(edge, "target", &target);
    if (!json_object_is_type(target, json_type_string) || rv_json_str(target).len == 0)
        return RV_FAIL(err, RV_E_INVALID, "edge %zu has no target: the name of an entity", i + 1);
    if (rv_json_str(target).len > RV_ENTITY_MAX_NAME)
        return RV_FAIL(err, RV_E_LIMIT, "the target of edge %zu has more than %d bytes", i + 1, RV_ENTITY_MAX_NAME);
    if (json_object_object_get_ex(edge, "relation", &relation) && relation &&
        (!json_object_is_type(relation, json_type_string) || rv_json_str(relation).len > RV_ENTITY_MAX_NAME))
        return RV_FAIL(err, RV_E_INVALID, "the relation of edge %zu must be a text of at most %d bytes", i + 1,
                       RV_ENTITY_MAX_NAME);
    if (json_object_object_get_ex(edge, "weight", &weight) && weight && !rv_json_is_number(weight))
        return RV_FAIL(err, RV_E_INVALID, "the weight of edge %zu must be a number, not %s", i + 1,
                       rv_json_type_text(weight));
    return 0;
}

int entity_check_edges(json_object *edges, rv_err **err)
{
    int rc = check_list("graph_edges", edges, RV_KIND_OBJECTS, err);

    if (rc == 0 && json_object_array_length(edges) > RV_ENTITY_MAX_EDGES)
        rc = RV_FAIL(err, RV_E_LIMIT, "%zu edges are more than %d", json_object_array_length(edges),
                     RV_ENTITY_MAX_EDGES);
    for (size_t i = 0; rc == 0 && i < json_object_array_length(edges); i++)
        rc = check_edge(json_object_array_get_idx(edges, i), i, err);
    return rc < 0 ? rc : check_size("graph_edges", edges, RV_STORE_MAX_META, err);
}

static int check_common(const char *column, json_object *v, rv_err **err)
{
    static const struct rv_kind_field level = {.name = "encryption_level",
                                               .words = "none platform client sealed disabled"};

    if (strcmp(column, "metadata") == 0) {
        if (!json_object_is_type(v, json_type_object))
            return fail_type(column, "object", v, err);
        return check_size(column, v, RV_STORE_MAX_META, err);
    }
    if (strcmp(column, "tags") == 0)
        return check_tags(v, err);
    if (strcmp(column, "graph_edges") == 0)
        return entity_check_edges(v, err);
    int rc = check_word(column, v, RV_STORE_MAX_ID, err);
    return rc < 0 ? rc : check_words(&level, v, err);
}

/* --- Ids --- */

static int take_id(json_object *v, struct rv_entity_given *g, rv_err **err)
{
    rv_str text = rv_json_str(v), shown = rv_utf8_first(text, MAX_SHOWN);

    if (!json_object_is_type(v, json_type_string))
        return fail_type("id", "text", v, err);
    g->is_id_given = rv_uuid_read(text, g->id);
    if (!g->is_id_given) {
        RV_FAIL(err, RV_E_INVALID, "id \"%.*s\" is not a UUID", RV_STR_ARG(shown));
        rv_err_set_hint(err, "leave it out: it follows from the name");
        return RV_E_INVALID;
    }
    return 0;
}

static int take_user(json_object *v, const struct rv_store_scope *scope, struct rv_entity_given *g, rv_err **err)
{
    int rc = check_word("user_id", v, RV_STORE_MAX_ID, err);

    if (rc < 0)
        return rc;
    g->user = json_object_get_string(v);
    rc = store_check_new_id("user_id", g->user, err);
    if (rc == 0 && scope->user && strcmp(g->user, scope->user) != 0)
        rc = RV_FAIL(err, RV_E_DENIED, "user_id is not that of the caller");
    return rc;
}

/* The first key that is set; an empty text counts. */
static void derive_id(struct rv_entity_given *g, const char *user)
{
    for (size_t i = 0; i < RV_KIND_MAX_NAMES && g->kind->keys[i]; i++) {
        json_object *v = NULL;
        if (json_object_object_get_ex(g->columns, g->kind->keys[i], &v) && v) {
            rv_entity_make_id(g->kind->name, rv_json_str(v), user, g->id);
            return;
        }
    }
}

/* --- A row --- */

static int keep(struct rv_entity_given *g, const char *column, json_object *v, json_object *instead, rv_err **err)
{
    if (instead)
        return rv_json_set_take(g->columns, column, instead, err);
    return rv_json_set_ref(g->columns, column, v, err);
}

static int take_column(struct rv_entity_given *g, const struct rv_store_scope *scope, const char *column,
                       json_object *v, rv_err **err)
{
    static const char *const of_store[] = {"tenant_id", "created_at", "updated_at", "deleted_at"};
    const struct rv_kind_field *f = rv_kind_find_field(g->kind, rv_str_of(column));
    json_object *instead = NULL;
    int rc;

    if (is_of(of_store, RV_COUNT(of_store), rv_str_of(column)))
        return 0;
    if (strcmp(column, "id") == 0)
        return v ? take_id(v, g, err) : 0;
    if (strcmp(column, "user_id") == 0)
        return v ? take_user(v, scope, g, err) : 0;
    if (!f && !is_of(common, RV_COUNT(common), rv_str_of(column)))
        return fail_column(g->kind, rv_str_of(column), err);
    if (!v)
        return keep(g, column, NULL, NULL, err);
    rc = f ? check_field(f, v, &instead, err) : check_common(column, v, err);
    return rc < 0 ? rc : keep(g, column, v, instead, err);
}

int entity_check(const struct rv_kind *kind, const struct rv_store_scope *scope, json_object *row,
                 struct rv_entity_given *out, rv_err **err)
{
    int rc = 0;

    *out = (struct rv_entity_given){.kind = kind, .columns = json_object_new_object()};
    if (!out->columns)
        return RV_FAIL(err, RV_E_NOMEM, "read a row");
    if (!json_object_is_type(row, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "a row of %s must be an object of its columns, not %s", kind->name,
                       rv_json_type_text(row));
    json_object_object_foreach (row, column, value) {
        if (rc == 0)
            rc = take_column(out, scope, column, value, err);
    }
    if (rc == 0)
        rc = check_size("the row", out->columns, RV_ENTITY_MAX_BYTES, err);
    if (rc < 0)
        return rc;
    const char *user = out->user ? out->user : scope->user ? scope->user : "";
    if (!out->is_id_given)
        derive_id(out, user);
    return 0;
}

void entity_given_fini(struct rv_entity_given *g)
{
    json_object_put(g->columns);
    *g = (struct rv_entity_given){0};
}
