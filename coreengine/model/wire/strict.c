/* JSON Schemas in the strict subset of OpenAI's structured outputs.
 *
 * In it the root is an object, every object is closed and requires all of its properties; what was optional may be null
 * instead. Limits of texts, numbers and lists are refused by some models and ignored by others: they become words of
 * the description, and are checked here when the answer comes. When an answer in the strict form might not fit the
 * schema (apart from the nulls), the strict form is not used: the caller sends the schema unchanged. */
#include "coreengine/model/wire/wire_internal.h"

#include <json-c/linkhash.h>
#include <string.h>

#define MAX_NESTING    5 /* of objects and lists, as the oldest models with this mode have it */
#define MAX_PROPERTIES 100
#define MAX_VALUES     500 /* of all enums */
#define MAX_TEXT       ((size_t)64 << 10)

struct strict {
    json_object *root;
    size_t n_properties, n_values;
    bool is_lost; /* the strict subset cannot express it */
    rv_err **err;
};

enum word { WORD_KEPT, WORD_SCHEMA, WORD_DROPPED, WORD_LIMIT };

/* The keywords that a schema may use. The strict subset cannot express any other, except extensions ("x-..."). */
static const struct {
    const char *name;
    enum word how;
} words[] = {
    {"type", WORD_KEPT},
    {"enum", WORD_KEPT},
    {"const", WORD_SCHEMA},
    {"title", WORD_KEPT},
    {"description", WORD_SCHEMA},
    {"properties", WORD_SCHEMA},
    {"required", WORD_SCHEMA},
    {"additionalProperties", WORD_SCHEMA},
    {"items", WORD_SCHEMA},
    {"anyOf", WORD_SCHEMA},
    {"oneOf", WORD_SCHEMA},
    {"$ref", WORD_SCHEMA},
    {"$defs", WORD_SCHEMA},
    {"definitions", WORD_SCHEMA},
    {"default", WORD_DROPPED},
    {"examples", WORD_DROPPED},
    {"deprecated", WORD_DROPPED},
    {"readOnly", WORD_DROPPED},
    {"writeOnly", WORD_DROPPED},
    {"$comment", WORD_DROPPED},
    {"$schema", WORD_DROPPED},
    {"$id", WORD_DROPPED},
    {"contentMediaType", WORD_DROPPED},
    {"contentEncoding", WORD_DROPPED},
    {"discriminator", WORD_DROPPED},
    {"format", WORD_LIMIT},
    {"pattern", WORD_LIMIT},
    {"minLength", WORD_LIMIT},
    {"maxLength", WORD_LIMIT},
    {"minimum", WORD_LIMIT},
    {"maximum", WORD_LIMIT},
    {"exclusiveMinimum", WORD_LIMIT},
    {"exclusiveMaximum", WORD_LIMIT},
    {"multipleOf", WORD_LIMIT},
    {"minItems", WORD_LIMIT},
    {"maxItems", WORD_LIMIT},
    {"uniqueItems", WORD_LIMIT},
};

static int convert(struct strict *s, json_object *from, int nesting, json_object **out);

static int lose(struct strict *s)
{
    s->is_lost = true;
    return 0;
}

static bool has(json_object *schema, const char *key)
{
    return json_object_object_get_ex(schema, key, NULL);
}

static bool is_of_type(json_object *schema, const char *name)
{
    json_object *type = NULL;

    if (!json_object_object_get_ex(schema, "type", &type))
        return false;
    if (!json_object_is_type(type, json_type_array))
        return rv_str_is(rv_json_str(type), name);
    for (size_t i = 0; i < json_object_array_length(type); i++)
        if (rv_str_is(rv_json_str(json_object_array_get_idx(type, i)), name))
            return true;
    return false;
}

static bool is_required(json_object *schema, const char *key)
{
    json_object *required = rv_json_get_arr(schema, "required");

    for (size_t i = 0; required && i < json_object_array_length(required); i++)
        if (rv_str_is(rv_json_str(json_object_array_get_idx(required, i)), key))
            return true;
    return false;
}

static bool requires_only_what_is_there(json_object *schema, json_object *properties)
{
    json_object *required = rv_json_get_arr(schema, "required");

    for (size_t i = 0; required && i < json_object_array_length(required); i++)
        if (!has(properties, json_object_get_string(json_object_array_get_idx(required, i))))
            return false;
    return true;
}

/* --- what may be null instead of being left out --- */

static int push_text(json_object *list, const char *text, rv_err **err)
{
    return rv_json_push_take(list, json_object_new_string(text), err);
}

static int add_null_type(json_object *schema, json_object *type, rv_err **err)
{
    json_object *list;
    int rc;

    if (json_object_is_type(type, json_type_array))
        return push_text(type, "null", err);
    list = json_object_new_array();
    rc = list ? rv_json_push_ref(list, type, err) : RV_FAIL(err, RV_E_NOMEM, "no memory for a schema");
    if (rc == 0)
        rc = push_text(list, "null", err);
    if (rc < 0) {
        json_object_put(list);
        return rc;
    }
    return rv_json_set_take(schema, "type", list, err);
}

static bool has_null(json_object *values)
{
    for (size_t i = 0; i < json_object_array_length(values); i++)
        if (!json_object_array_get_idx(values, i))
            return true;
    return false;
}

/* {anyOf: [schema, {type: null}]}; takes *schema and replaces it. */
static int unite_with_null(json_object **schema, rv_err **err)
{
    json_object *united = json_object_new_object(), *null = json_object_new_object(), *list = json_object_new_array();
    int rc = united && null && list ? rv_json_set_text(null, "type", "null", err)
                                    : RV_FAIL(err, RV_E_NOMEM, "no memory for a schema");

    if (rc == 0)
        rc = rv_json_push_ref(list, *schema, err);
    if (rc == 0)
        rc = rv_json_push_ref(list, null, err);
    if (rc == 0)
        rc = rv_json_set_ref(united, "anyOf", list, err);
    json_object_put(null);
    json_object_put(list);
    if (rc < 0) {
        json_object_put(united);
        return rc;
    }
    json_object_put(*schema);
    *schema = united;
    return 0;
}

static int make_nullable(json_object **schema, rv_err **err)
{
    json_object *type = NULL, *values = rv_json_get_arr(*schema, "enum");
    int rc = 0;

    if (!json_object_object_get_ex(*schema, "type", &type))
        return values && has_null(values) ? 0 : unite_with_null(schema, err);
    if (!is_of_type(*schema, "null"))
        rc = add_null_type(*schema, type, err);
    if (rc == 0 && values && !has_null(values))
        rc = rv_json_push_ref(values, NULL, err);
    return rc;
}

/* --- the words of a schema --- */

static int convert_properties(struct strict *s, json_object *from, int nesting, json_object *to)
{
    json_object *properties = rv_json_get_obj(from, "properties"), *made = NULL, *required = NULL, *extra = NULL;
    bool has_extra = json_object_object_get_ex(from, "additionalProperties", &extra);
    int rc;

    if (!properties || !requires_only_what_is_there(from, properties) ||
        (has_extra && (!json_object_is_type(extra, json_type_boolean) || json_object_get_boolean(extra))))
        return lose(s); /* any members: no closed object */
    made = json_object_new_object();
    required = json_object_new_array();
    rc = made && required ? 0 : RV_FAIL(s->err, RV_E_NOMEM, "no memory for a schema");
    json_object_object_foreach (properties, key, property) {
        json_object *one = NULL;
        if (rc < 0 || s->is_lost)
            break;
        if (++s->n_properties > MAX_PROPERTIES)
            rc = lose(s);
        else
            rc = convert(s, property, nesting + 1, &one);
        if (rc == 0 && one && !is_required(from, key))
            rc = make_nullable(&one, s->err);
        if (rc == 0 && one)
            rc = rv_json_set_ref(made, key, one, s->err);
        if (rc == 0 && one)
            rc = push_text(required, key, s->err);
        json_object_put(one);
    }
    if (rc == 0)
        rc = rv_json_set_ref(to, "properties", made, s->err);
    if (rc == 0)
        rc = rv_json_set_ref(to, "required", required, s->err);
    if (rc == 0)
        rc = rv_json_set_bool(to, "additionalProperties", false, s->err);
    json_object_put(made);
    json_object_put(required);
    return rc;
}

static int convert_list(struct strict *s, json_object *from, int nesting, const char *key, json_object *to)
{
    json_object *list = json_object_new_array();
    int rc = list ? 0 : RV_FAIL(s->err, RV_E_NOMEM, "no memory for a schema");

    if (rc == 0 && (!json_object_is_type(from, json_type_array) || json_object_array_length(from) == 0))
        rc = lose(s);
    for (size_t i = 0; rc == 0 && !s->is_lost && i < json_object_array_length(from); i++) {
        json_object *one = NULL;
        rc = convert(s, json_object_array_get_idx(from, i), nesting, &one);
        if (rc == 0 && one)
            rc = rv_json_push_ref(list, one, s->err);
        json_object_put(one);
    }
    if (rc == 0)
        rc = rv_json_set_ref(to, key, list, s->err);
    json_object_put(list);
    return rc;
}

static int convert_defs(struct strict *s, json_object *from, const char *key, json_object *to)
{
    json_object *defs = rv_json_get_obj(from, key), *made;
    int rc = 0;

    if (!has(from, key))
        return 0;
    if (!defs)
        return lose(s);
    made = json_object_new_object();
    if (!made)
        return RV_FAIL(s->err, RV_E_NOMEM, "no memory for a schema");
    json_object_object_foreach (defs, name, def) {
        json_object *one = NULL;
        if (rc < 0 || s->is_lost)
            break;
        rc = convert(s, def, 1, &one);
        if (rc == 0 && one)
            rc = rv_json_set_ref(made, name, one, s->err);
        json_object_put(one);
    }
    if (rc == 0)
        rc = rv_json_set_ref(to, key, made, s->err);
    json_object_put(made);
    return rc;
}

static int find_word(const char *name)
{
    for (size_t i = 0; i < RV_COUNT(words); i++)
        if (rv_str_is(rv_str_of(name), words[i].name))
            return (int)words[i].how;
    return name[0] == 'x' && name[1] == '-' ? (int)WORD_DROPPED : -1;
}

/* The description, with the limits that are dropped as words behind it. */
static int describe(struct strict *s, json_object *from, json_object *to)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT);
    json_object *value = NULL;
    const char *before = " (";
    int rc = 0;

    if (json_object_object_get_ex(from, "description", &value))
        rv_buf_add_str(&text, rv_json_str(value));
    if (text.len == 0)
        before++;
    json_object_object_foreach (from, key, limit) {
        if (find_word(key) != (int)WORD_LIMIT)
            continue;
        rv_buf_printf(&text, "%s%s: ", before, key);
        rv_json_write(limit, &text);
        before = ", ";
    }
    if (before[0] == ',')
        rv_buf_puts(&text, ")");
    if (text.rc == RV_E_NOMEM)
        rc = rv_buf_check(&text, "a schema", s->err);
    else if (text.rc)
        s->is_lost = true;
    else if (text.len)
        rc = rv_json_set_str(to, "description", rv_buf_str(&text), s->err);
    rv_buf_fini(&text);
    return rc;
}

static int keep_words(struct strict *s, json_object *from, json_object *to)
{
    int rc = 0;

    json_object_object_foreach (from, key, value) {
        json_object *copy = NULL;
        int how = find_word(key);
        if (how < 0)
            return lose(s);
        if (how != (int)WORD_KEPT)
            continue;
        if (!value || (rv_str_is(rv_str_of(key), "enum") && !json_object_is_type(value, json_type_array)))
            return lose(s);
        if (json_object_is_type(value, json_type_array))
            s->n_values += json_object_array_length(value);
        if (s->n_values > MAX_VALUES)
            return lose(s);
        rc = rv_json_dup(value, &copy, s->err); /* the list may get a null */
        if (rc == 0)
            rc = rv_json_set_take(to, key, copy, s->err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int keep_const(struct strict *s, json_object *value, json_object *to)
{
    json_object *list = json_object_new_array();
    int rc = list ? rv_json_push_ref(list, value, s->err) : RV_FAIL(s->err, RV_E_NOMEM, "no memory for a schema");

    if (rc == 0)
        rc = rv_json_set_ref(to, "enum", list, s->err);
    json_object_put(list);
    return rc;
}

/* The root, or one of its definitions: others are in places that may not be there any more. */
static bool is_there(json_object *root, const char *ref)
{
    static const char *const places[] = {"$defs", "definitions"};

    if (rv_str_is(rv_str_of(ref), "#"))
        return true;
    for (size_t i = 0; i < RV_COUNT(places); i++) {
        json_object *defs = rv_json_get_obj(root, places[i]);
        size_t n = rv_str_of(places[i]).len;
        if (defs && strncmp(ref, "#/", 2) == 0 && strncmp(ref + 2, places[i], n) == 0 && ref[2 + n] == '/' &&
            has(defs, ref + 3 + n))
            return true;
    }
    return false;
}

/* A reference stands alone: what is said beside it would be refused. */
static int convert_ref(struct strict *s, json_object *from, json_object *to)
{
    const char *ref = NULL;

    json_object_object_foreach (from, key, value) {
        int how = find_word(key);
        (void)value;
        if (!rv_str_is(rv_str_of(key), "$ref") && !rv_str_is(rv_str_of(key), "description") &&
            !rv_str_is(rv_str_of(key), "title") && how != (int)WORD_DROPPED)
            return lose(s);
    }
    if (!rv_json_get_text(from, "$ref", &ref) || !is_there(s->root, ref))
        return lose(s);
    return rv_json_set_text(to, "$ref", ref, s->err);
}

static int convert_into(struct strict *s, json_object *from, int nesting, json_object *to)
{
    json_object *value = NULL;
    int rc;

    if (from != s->root && (has(from, "$defs") || has(from, "definitions")))
        return lose(s); /* what points there would have to be found */
    if (has(from, "$ref"))
        return convert_ref(s, from, to);
    rc = keep_words(s, from, to);
    if (rc == 0 && !s->is_lost)
        rc = describe(s, from, to);
    if (rc == 0 && json_object_object_get_ex(from, "const", &value))
        rc = has(from, "enum") ? lose(s) : keep_const(s, value, to);
    if (rc == 0 && (is_of_type(from, "object") || has(from, "properties")))
        rc = convert_properties(s, from, nesting, to);
    if (rc == 0 && !s->is_lost && json_object_object_get_ex(from, "items", &value)) {
        json_object *items = NULL;
        rc = convert(s, value, nesting + 1, &items);
        if (rc == 0 && items)
            rc = rv_json_set_ref(to, "items", items, s->err);
        json_object_put(items);
    } else if (rc == 0 && is_of_type(from, "array")) {
        rc = lose(s);
    }
    for (size_t i = 0; rc == 0 && !s->is_lost && i < 2; i++) /* oneOf: its wider form; the answer is checked here */
        if (json_object_object_get_ex(from, i ? "oneOf" : "anyOf", &value))
            rc = has(to, "anyOf") ? lose(s) : convert_list(s, value, nesting, "anyOf", to);
    return rc;
}

/* *out NULL, with is_lost: the strict subset cannot express it. */
static int convert(struct strict *s, json_object *from, int nesting, json_object **out)
{
    json_object *to;
    int rc;

    *out = NULL;
    if (nesting > MAX_NESTING || !json_object_is_type(from, json_type_object))
        return lose(s); /* true, false, or too deep */
    to = json_object_new_object();
    if (!to)
        return RV_FAIL(s->err, RV_E_NOMEM, "no memory for a schema");
    rc = convert_into(s, from, nesting, to);
    if (rc == 0 && !s->is_lost && !has(to, "type") && !has(to, "enum") && !has(to, "anyOf") && !has(to, "$ref"))
        rc = has(to, "properties") ? rv_json_set_text(to, "type", "object", s->err) : lose(s); /* else anything */
    if (rc < 0 || s->is_lost)
        json_object_put(to);
    else
        *out = to;
    return rc;
}

int rv_schema_to_strict(json_object *schema, json_object **out, rv_err **err)
{
    struct strict s = {.root = schema, .err = err};
    json_object *made = NULL;
    const char *type = NULL;
    int rc;

    *out = NULL;
    if (has(schema, "type") && !(rv_json_get_text(schema, "type", &type) && rv_str_is(rv_str_of(type), "object")))
        return 0;
    if (has(schema, "anyOf") || has(schema, "oneOf") || has(schema, "enum") || !has(schema, "properties"))
        return 0; /* the root is an object and nothing else */
    rc = convert(&s, schema, 1, &made);
    if (rc == 0 && made)
        rc = convert_defs(&s, schema, "$defs", made);
    if (rc == 0 && made && !s.is_lost)
        rc = convert_defs(&s, schema, "definitions", made);
    if (rc < 0 || s.is_lost)
        json_object_put(made);
    else
        *out = made;
    return rc;
}
