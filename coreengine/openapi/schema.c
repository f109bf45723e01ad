/* References inside a document, and its schemas as JSON Schema has them. What a reference names is copied once for each
 * tool, under $defs, so a schema that contains itself stays one; the copy is bounded in bytes and depth, and shares
 * nothing of the document that it does not have to change. */
#include "coreengine/openapi/openapi_internal.h"

#include <json-c/linkhash.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_DEPTH  60 /* of a schema: those that are checked later may have 64 */
#define TOO_DEEP   "a schema has more than " RV_LIMIT_TEXT(MAX_DEPTH) " levels"
#define MAX_STEP   512 /* bytes of one part of a reference: paths of operations are shorter */
#define NODE_BYTES 16  /* that a value costs besides its text */

/* --- references --- */

static int hex(char c)
{
    return rv_is_digit(c) ? c - '0' : (c | 32) - 'a' + 10;
}

/* One part of a pointer in a URI: %XX, then ~1 and ~0. False: it is too long, or not well formed. */
static bool read_step(rv_str text, char out[MAX_STEP])
{
    size_t n = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (n + 1 >= MAX_STEP)
            return false;
        if (c == '%') {
            if (i + 2 >= text.len || !rv_is_hex(text.ptr[i + 1]) || !rv_is_hex(text.ptr[i + 2]))
                return false;
            c = (char)(hex(text.ptr[i + 1]) * 16 + hex(text.ptr[i + 2]));
            i += 2;
        }
        if ((c == '0' || c == '1') && n > 0 && out[n - 1] == '~')
            out[n - 1] = c == '0' ? '\1' : '/'; /* not "~" yet: what follows it is not a part of an escape */
        else
            out[n++] = c;
        if (c == '\0' || c == '\1')
            return false;
    }
    for (size_t i = 0; i < n; i++)
        if (out[i] == '\1')
            out[i] = '~';
    out[n] = '\0';
    return true;
}

static json_object *child(json_object *at, const char *step)
{
    json_object *next = NULL;
    size_t i = 0;

    if (json_object_is_type(at, json_type_object))
        return json_object_object_get_ex(at, step, &next) ? next : NULL;
    if (!json_object_is_type(at, json_type_array) || !step[0] || strlen(step) > 6)
        return NULL;
    for (const char *p = step; *p; p++) {
        if (!rv_is_digit(*p))
            return NULL;
        i = i * 10 + (size_t)(*p - '0');
    }
    return i < json_object_array_length(at) ? json_object_array_get_idx(at, i) : NULL;
}

static json_object *value_at(json_object *document, const char *ref)
{
    json_object *at = document;
    char step[MAX_STEP];

    if (strncmp(ref, "#/", 2) != 0)
        return NULL;
    for (const char *p = ref + 1; at && *p == '/';) {
        size_t n = strcspn(++p, "/");
        at = read_step((rv_str){p, n}, step) ? child(at, step) : NULL;
        p += n;
    }
    return at;
}

json_object *openapi_follow(json_object *document, json_object *value, rv_buf *why)
{
    const char *ref = NULL;

    for (int i = 0; json_object_is_type(value, json_type_object) && rv_json_get_text(value, "$ref", &ref); i++) {
        if (i == RV_OPENAPI_MAX_REFS) {
            rv_buf_puts(why, "its references lead in a circle");
            return NULL;
        }
        rv_str shown = rv_utf8_cut(rv_str_of(ref), 200);
        value = value_at(document, ref);
        if (value)
            continue;
        rv_buf_printf(why,
                      ref[0] == '#' ? "the reference \"%.*s\" leads nowhere"
                                    : "the reference \"%.*s\" leads out of the document, which is not followed",
                      RV_STR_ARG(shown));
        return NULL;
    }
    return value;
}

/* --- schemas --- */

static int copy(struct openapi_schemas *s, json_object *in, int depth, json_object **out, rv_err **err);

/* Counts a value that is taken as it is. */
static void count(struct openapi_schemas *s, json_object *v, int depth)
{
    size_t n = 0;

    s->n_bytes += NODE_BYTES + rv_json_str(v).len;
    if (depth > MAX_DEPTH && s->why->len == 0)
        rv_buf_puts(s->why, TOO_DEEP);
    if (s->n_bytes > RV_OPENAPI_MAX_SCHEMAS && s->why->len == 0)
        rv_buf_printf(s->why, "its schemas have more than %zu KiB", RV_OPENAPI_MAX_SCHEMAS >> 10);
    if (s->why->len > 0)
        return;
    if (json_object_is_type(v, json_type_array))
        for (n = json_object_array_length(v); n > 0 && s->why->len == 0; n--)
            count(s, json_object_array_get_idx(v, n - 1), depth + 1);
    if (!json_object_is_type(v, json_type_object))
        return;
    json_object_object_foreach (v, key, value) {
        s->n_bytes += strlen(key);
        count(s, value, depth + 1);
        if (s->why->len > 0)
            return;
    }
}

/* "#/$defs/N": the N-th reference, under a name that begins with what the document calls it. */
static void write_def_name(const char *ref, int at, rv_buf *out)
{
    const char *last = strrchr(ref, '/');

    for (const char *p = last ? last + 1 : ref; *p && out->len < 64; p++)
        rv_buf_putc(out, rv_is_letter(*p) || rv_is_digit(*p) || *p == '_' || *p == '-' ? *p : '_');
    rv_buf_printf(out, "%s%d", out->len ? "_" : "schema_", at);
}

/* The place of a reference among those of the schema; -1: no memory. */
static int note_ref(struct openapi_schemas *s, const char *ref)
{
    int at = rv_index_get(&s->names, rv_str_of(ref));

    if (at >= 0)
        return at;
    if (!rv_has_room(&s->refs, &s->cap_refs, s->n_refs + 1, sizeof *s->refs) ||
        rv_index_add(&s->names, rv_str_of(ref), (int)s->n_refs) < 0)
        return -1;
    s->refs[s->n_refs] = ref;
    return (int)s->n_refs++;
}

static int copy_ref(struct openapi_schemas *s, const char *ref, json_object *to, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf name = RV_BUF_INIT(200);
    json_object *target = value_at(s->document, ref);
    rv_str shown = rv_utf8_cut(rv_str_of(ref), 200);

    if (!target) {
        rv_buf_printf(s->why, "the reference \"%.*s\" leads %s", RV_STR_ARG(shown),
                      ref[0] == '#' ? "nowhere" : "out of the document, which is not followed");
        return 0;
    }
    int at = note_ref(s, ref);
    if (at < 0)
        return OPENAPI_NOMEM(err);
    rv_buf_puts(&name, "#/$defs/");
    RV_AUTO(rv_buf_fini) rv_buf own = RV_BUF_INIT(100);
    write_def_name(ref, at, &own);
    rv_buf_add_str(&name, rv_buf_str(&own));
    int rc = rv_buf_check(&name, "a reference", err);
    if (rc == 0)
        rc = rv_buf_check(&own, "a reference", err);
    s->n_bytes += name.len + NODE_BYTES;
    return rc < 0 ? rc : rv_json_set_str(to, "$ref", rv_buf_str(&name), err);
}

/* --- keywords --- */

static bool is_one_of(const char *key, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(key, *words) == 0)
            return true;
    return false;
}

static bool is_one_schema(const char *key)
{
    static const char *const words[] = {"items",
                                        "additionalProperties",
                                        "not",
                                        "if",
                                        "then",
                                        "else",
                                        "contains",
                                        "propertyNames",
                                        "unevaluatedProperties",
                                        "unevaluatedItems",
                                        NULL};

    return is_one_of(key, words);
}

static bool is_map_of_schemas(const char *key)
{
    static const char *const words[] = {"properties", "patternProperties", "dependentSchemas", NULL};

    return is_one_of(key, words);
}

static bool is_list_of_schemas(const char *key)
{
    static const char *const words[] = {"allOf", "anyOf", "oneOf", "prefixItems", NULL};

    return is_one_of(key, words);
}

/* What JSON Schema does not have, or what would mean something else in the copy. */
static bool is_dropped(const char *key)
{
    static const char *const words[] = {"example",   "examples",   "xml",         "externalDocs", "discriminator",
                                        "nullable",  "readOnly",   "$id",         "$schema",      "$anchor",
                                        "$comment",  "$defs",      "$vocabulary", "definitions",  "$dynamicAnchor",
                                        "writeOnly", "deprecated", NULL};

    return strncmp(key, "x-", 2) == 0 || is_one_of(key, words);
}

/* Is a property not a part of that direction? */
static bool is_of_other_side(const struct openapi_schemas *s, json_object *property)
{
    bool is = false;

    return json_object_is_type(property, json_type_object) &&
           rv_json_get_bool(property, s->is_answer ? "writeOnly" : "readOnly", &is) && is;
}

static int copy_map(struct openapi_schemas *s, json_object *in, bool is_properties, int depth, json_object **out,
                    rv_err **err)
{
    json_object *to = json_object_new_object();
    int rc = to ? 0 : OPENAPI_NOMEM(err);

    if (rc == 0 && !json_object_is_type(in, json_type_object)) {
        rv_buf_puts(s->why, "a schema has members that are not a map");
    } else if (rc == 0) {
        json_object_object_foreach (in, key, value) {
            json_object *copied = NULL;
            if (is_properties && is_of_other_side(s, value))
                continue;
            s->n_bytes += strlen(key);
            rc = copy(s, value, depth, &copied, err);
            if (rc == 0 && s->why->len == 0)
                rc = rv_json_set_take(to, key, copied, err);
            if (rc < 0 || s->why->len > 0)
                break;
        }
    }
    if (rc < 0 || s->why->len > 0)
        json_object_put(to);
    else
        *out = to;
    return rc;
}

static int copy_list(struct openapi_schemas *s, json_object *in, int depth, json_object **out, rv_err **err)
{
    size_t n = json_object_is_type(in, json_type_array) ? json_object_array_length(in) : 0;
    json_object *to = json_object_new_array();
    int rc = to ? 0 : OPENAPI_NOMEM(err);

    if (n == 0)
        rv_buf_puts(s->why, "a list of schemas is empty, or not a list");
    for (size_t i = 0; i < n && rc == 0 && s->why->len == 0; i++) {
        json_object *copied = NULL;
        rc = copy(s, json_object_array_get_idx(in, i), depth, &copied, err);
        if (rc == 0 && s->why->len == 0)
            rc = rv_json_push_take(to, copied, err);
    }
    if (rc < 0 || s->why->len > 0)
        json_object_put(to);
    else
        *out = to;
    return rc;
}

/* The names that the other side does not have are not required of this one. */
static int copy_required(const struct openapi_schemas *s, json_object *schema, json_object *names, json_object **out,
                         rv_err **err)
{
    size_t n = json_object_is_type(names, json_type_array) ? json_object_array_length(names) : 0;
    json_object *properties = rv_json_get_obj(schema, "properties"), *to = json_object_new_array();
    int rc = to ? 0 : OPENAPI_NOMEM(err);

    for (size_t i = 0; i < n && rc == 0; i++) {
        json_object *name = json_object_array_get_idx(names, i), *property = NULL;
        if (!json_object_is_type(name, json_type_string))
            continue;
        if (properties && json_object_object_get_ex(properties, json_object_get_string(name), &property) &&
            is_of_other_side(s, property))
            continue;
        rc = rv_json_push_ref(to, name, err);
    }
    if (rc < 0)
        json_object_put(to);
    else
        *out = to;
    return rc;
}

/* A keyword of a schema and its value. Borrowed. */
struct keyword {
    const char *key;
    json_object *value;
};
static int copy_keyword(struct openapi_schemas *s, json_object *schema, const struct keyword *word, int depth,
                        json_object *to, rv_err **err)
{
    json_object *copied = NULL;
    int rc = 0;

    s->n_bytes += strlen(word->key);
    if (is_one_schema(word->key)) {
        rc = copy(s, word->value, depth, &copied, err);
    } else if (is_map_of_schemas(word->key)) {
        rc = copy_map(s, word->value, strcmp(word->key, "properties") == 0, depth, &copied, err);
    } else if (is_list_of_schemas(word->key)) {
        rc = copy_list(s, word->value, depth, &copied, err);
    } else if (strcmp(word->key, "required") == 0) {
        count(s, word->value, depth);
        rc = s->why->len == 0 ? copy_required(s, schema, word->value, &copied, err) : 0;
    } else {
        count(s, word->value, depth);
        return s->why->len == 0 ? rv_json_set_ref(to, word->key, word->value, err) : 0;
    }
    if (rc < 0 || s->why->len > 0)
        return rc;
    return rv_json_set_take(to, word->key, copied, err);
}

/* --- what 3.0 says in its own way --- */

/* {type: T, nullable: true} is {type: [T, "null"]}. */
static int add_null(json_object *schema, json_object *to, rv_err **err)
{
    struct rv_json_build b = {.err = err};
    json_object *type = NULL, *values = rv_json_get_arr(schema, "enum");

    if (!json_object_object_get_ex(schema, "type", &type) || !json_object_is_type(type, json_type_string))
        return 0;
    json_object *types = json_object_new_array();
    if (!types)
        return OPENAPI_NOMEM(err);
    rv_json_build(&b, types, NULL, json_object_get(type));
    rv_json_build(&b, types, NULL, json_object_new_string("null"));
    if (b.rc < 0) {
        json_object_put(types);
        return b.rc;
    }
    int rc = rv_json_set_take(to, "type", types, err);
    if (rc < 0 || !values)
        return rc;
    json_object *all = json_object_new_array();
    rc = all ? 0 : OPENAPI_NOMEM(err);
    for (size_t i = 0; i < json_object_array_length(values) && rc == 0; i++)
        rc = rv_json_push_ref(all, json_object_array_get_idx(values, i), err);
    if (rc == 0)
        rc = rv_json_push_ref(all, NULL, err);
    if (rc < 0) {
        json_object_put(all);
        return rc;
    }
    return rv_json_set_take(to, "enum", all, err);
}

/* exclusiveMinimum: true beside a minimum is the number itself. */
static int move_limit(json_object *schema, const char *limit, const char *exclusive, json_object *to, rv_err **err)
{
    json_object *flag = NULL, *value = NULL;

    if (!json_object_object_get_ex(schema, exclusive, &flag) || !json_object_is_type(flag, json_type_boolean))
        return 0;
    json_object_object_del(to, exclusive);
    if (!json_object_get_boolean(flag) || !json_object_object_get_ex(schema, limit, &value))
        return 0;
    int rc = rv_json_set_ref(to, exclusive, value, err);
    json_object_object_del(to, limit);
    return rc;
}

static int convert(json_object *schema, json_object *to, rv_err **err)
{
    bool is_nullable = false;
    int rc = 0;

    if (rv_json_get_bool(schema, "nullable", &is_nullable) && is_nullable)
        rc = add_null(schema, to, err);
    if (rc == 0)
        rc = move_limit(schema, "minimum", "exclusiveMinimum", to, err);
    return rc < 0 ? rc : move_limit(schema, "maximum", "exclusiveMaximum", to, err);
}

/* --- one schema --- */

static int copy_object(struct openapi_schemas *s, json_object *in, int depth, json_object *to, rv_err **err)
{
    const char *ref = NULL;
    int rc = 0;

    if (rv_json_get_text(in, "$ref", &ref)) {
        rc = copy_ref(s, ref, to, err);
        if (s->is_30) /* what stands beside a reference does not count there */
            return rc;
    }
    json_object_object_foreach (in, key, value) {
        if (rc < 0 || s->why->len > 0)
            return rc;
        if (strcmp(key, "$dynamicRef") == 0)
            rv_buf_puts(s->why, "a schema has a $dynamicRef");
        else if (strcmp(key, "$ref") != 0 && !is_dropped(key))
            rc = copy_keyword(s, in, &(const struct keyword){.key = key, .value = value}, depth + 1, to, err);
    }
    return rc == 0 && s->is_30 && s->why->len == 0 ? convert(in, to, err) : rc;
}

static int copy(struct openapi_schemas *s, json_object *in, int depth, json_object **out, rv_err **err)
{
    s->n_bytes += NODE_BYTES;
    if (depth > MAX_DEPTH)
        rv_buf_puts(s->why, TOO_DEEP);
    else if (s->n_bytes > RV_OPENAPI_MAX_SCHEMAS)
        rv_buf_printf(s->why, "its schemas have more than %zu KiB", RV_OPENAPI_MAX_SCHEMAS >> 10);
    else if (!json_object_is_type(in, json_type_object) && !json_object_is_type(in, json_type_boolean))
        rv_buf_puts(s->why, "a schema is neither an object nor true or false");
    if (s->why->len > 0)
        return 0;
    if (json_object_is_type(in, json_type_boolean)) {
        *out = json_object_get(in);
        return 0;
    }
    json_object *to = json_object_new_object();
    int rc = to ? copy_object(s, in, depth, to, err) : OPENAPI_NOMEM(err);
    if (rc < 0 || s->why->len > 0)
        json_object_put(to);
    else
        *out = to;
    return rc;
}

int openapi_schema(struct openapi_schemas *s, json_object *schema, json_object **out, rv_err **err)
{
    return copy(s, schema, 0, out, err);
}

int openapi_schemas_finish(struct openapi_schemas *s, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < s->n_refs && rc == 0 && s->why->len == 0; i++) { /* copies may name more of them */
        RV_AUTO(rv_buf_fini) rv_buf name = RV_BUF_INIT(100);
        json_object *copied = NULL;
        if (!s->defs && !(s->defs = json_object_new_object()))
            return OPENAPI_NOMEM(err);
        write_def_name(s->refs[i], (int)i, &name);
        rc = rv_buf_check(&name, "a reference", err);
        if (rc == 0)
            rc = copy(s, value_at(s->document, s->refs[i]), 0, &copied, err);
        if (rc == 0 && s->why->len == 0)
            rc = rv_json_set_take(s->defs, rv_buf_cstr(&name), copied, err);
    }
    return rc;
}

void openapi_schemas_fini(struct openapi_schemas *s)
{
    json_object_put(s->defs);
    rv_index_fini(&s->names);
    free(s->refs);
    s->defs = NULL;
    s->refs = NULL;
}
