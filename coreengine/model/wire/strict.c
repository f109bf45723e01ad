/* JSON Schemas in the strict subset of OpenAI's structured outputs.
 *
 * In it the root is an object, every object is closed and requires all of its properties; what was optional may be null
 * instead. Limits of texts, numbers and lists are refused by some models and ignored by others: they become words of
 * the description, and are checked here when the answer comes. When an answer in the strict form might not fit the
 * schema (apart from the nulls), the strict form is not used: the caller sends the schema unchanged.
 *
 * The nulls are taken out before an answer is checked (agent_output_drop_nulls), but not everywhere: a member has to
 * say its types, and has to be reached by properties, items and single references to "$defs". A null elsewhere would be
 * refused whatever the model does, so it is never asked for. */
#include "coreengine/model/wire/wire_internal.h"

#include <json-c/linkhash.h>
#include <string.h>

#define MAX_NESTING 5 /* of objects and lists, as the oldest models with this mode have it */
/* of all objects, as the oldest models with this mode have it; a larger schema is not sent as strict */
#define MAX_PROPERTIES 100
#define MAX_VALUES     500                /* of all enums, as the oldest models with this mode have it */
#define MAX_TEXT       ((size_t)64 << 10) /* bytes of a description with its limits in words: a model reads it */

struct strict {
    json_object *root;
    rv_jw w; /* of the strict form; it keeps its first failure */
    size_t n_properties, n_values;
    bool is_far;     /* in a place that is not searched for nulls: one of several alternatives */
    bool is_in_defs; /* in a definition */
    /* A far place refers to the root or to a definition, which then may have no nulls that have to be taken out. */
    bool has_far_root, has_far_def, has_null_in_root, has_null_in_def;
    bool is_lost; /* the strict subset cannot express it, and what was written is of no use */
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

/* Writes the strict form of a schema; nullable: or null. */
static void convert(struct strict *s, json_object *from, int nesting, bool nullable);

static bool has(json_object *schema, const char *key)
{
    return json_object_object_get_ex(schema, key, NULL);
}

static bool has_text(json_object *list, const char *text)
{
    for (size_t i = 0; list && i < json_object_array_length(list); i++)
        if (rv_str_is(rv_json_str(json_object_array_get_idx(list, i)), text))
            return true;
    return false;
}

static bool is_of_type(json_object *schema, const char *name)
{
    json_object *type = NULL;

    if (!json_object_object_get_ex(schema, "type", &type))
        return false;
    return json_object_is_type(type, json_type_array) ? has_text(type, name) : rv_str_is(rv_json_str(type), name);
}

static bool requires_only_what_is_there(json_object *schema, json_object *properties)
{
    json_object *required = rv_json_get_arr(schema, "required");

    for (size_t i = 0; required && i < json_object_array_length(required); i++)
        if (!has(properties, json_object_get_string(json_object_array_get_idx(required, i))))
            return false;
    return true;
}

static int find_word(const char *name)
{
    for (size_t i = 0; i < RV_COUNT(words); i++)
        if (rv_str_is(rv_str_of(name), words[i].name))
            return (int)words[i].how;
    return name[0] == 'x' && name[1] == '-' ? (int)WORD_DROPPED : -1;
}

/* --- the words of a schema --- */

static bool has_null(json_object *values)
{
    for (size_t i = 0; i < json_object_array_length(values); i++)
        if (!json_object_array_get_idx(values, i))
            return true;
    return false;
}

static void write_values(struct strict *s, json_object *values, bool add_null)
{
    rv_jw_arr(&s->w);
    for (size_t i = 0; i < json_object_array_length(values); i++)
        rv_jw_value(&s->w, json_object_array_get_idx(values, i));
    if (add_null && !has_null(values))
        rv_jw_value(&s->w, NULL);
    rv_jw_arr_end(&s->w);
}

static void write_type(struct strict *s, json_object *type, bool add_null)
{
    bool is_list = json_object_is_type(type, json_type_array);

    if (!add_null) {
        rv_jw_value(&s->w, type);
        return;
    }
    rv_jw_arr(&s->w);
    for (size_t i = 0; is_list && i < json_object_array_length(type); i++)
        rv_jw_value(&s->w, json_object_array_get_idx(type, i));
    if (!is_list)
        rv_jw_value(&s->w, type);
    rv_jw_text(&s->w, "null");
    rv_jw_arr_end(&s->w);
}

static void keep_words(struct strict *s, json_object *from, bool nullable)
{
    json_object_object_foreach (from, key, value) {
        bool is_list = json_object_is_type(value, json_type_array), is_enum = rv_str_is(rv_str_of(key), "enum");
        int how = find_word(key);

        s->n_values += how == (int)WORD_KEPT && is_list ? json_object_array_length(value) : 0;
        if (how < 0 || (how == (int)WORD_KEPT && (!value || (is_enum && !is_list))) || s->n_values > MAX_VALUES) {
            s->is_lost = true;
            return;
        }
        if (how != (int)WORD_KEPT)
            continue;
        rv_jw_key(&s->w, key);
        if (is_enum)
            write_values(s, value, nullable && has(from, "type"));
        else if (rv_str_is(rv_str_of(key), "type"))
            write_type(s, value, nullable && !is_of_type(from, "null"));
        else
            rv_jw_value(&s->w, value);
    }
}

/* The description, with the limits that are dropped as words behind it. */
static void describe(struct strict *s, json_object *from)
{
    rv_buf text = RV_BUF_INIT(MAX_TEXT);
    json_object *value = NULL;
    const char *before = " (";

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
    if (text.rc == RV_E_NOMEM && s->w.out->rc == 0)
        s->w.out->rc = text.rc;
    s->is_lost = s->is_lost || text.rc == RV_E_LIMIT;
    if (text.len)
        rv_jw_kv_str(&s->w, "description", rv_buf_str(&text));
    rv_buf_fini(&text);
}

static void keep_const(struct strict *s, json_object *value, bool add_null)
{
    rv_jw_key(&s->w, "enum");
    rv_jw_arr(&s->w);
    rv_jw_value(&s->w, value);
    if (add_null && value)
        rv_jw_value(&s->w, NULL);
    rv_jw_arr_end(&s->w);
}

static bool allows_null(json_object *schema);

/* Exactly one of the alternatives, or at least one, allows null. */
static bool list_allows_null(json_object *list, bool is_exact)
{
    size_t n = 0;

    for (size_t i = 0; i < json_object_array_length(list); i++)
        n += allows_null(json_object_array_get_idx(list, i)) ? 1 : 0;
    return is_exact ? n == 1 : n > 0;
}

/* Is null surely one of the values of that schema? */
static bool allows_null(json_object *schema)
{
    json_object *values = rv_json_get_arr(schema, "enum"), *any = rv_json_get_arr(schema, "anyOf");
    json_object *one = rv_json_get_arr(schema, "oneOf"), *value = NULL;

    if (has(schema, "$ref") || (has(schema, "type") && !is_of_type(schema, "null")))
        return false;
    return (!values || has_null(values)) && (!json_object_object_get_ex(schema, "const", &value) || !value) &&
           (!any || list_allows_null(any, false)) && (!one || list_allows_null(one, true));
}

/* The schema, or the definition that it refers to. */
static json_object *definition_of(const struct strict *s, json_object *schema)
{
    static const char prefix[] = "#/$defs/";
    json_object *defs = rv_json_get_obj(s->root, "$defs");
    const char *ref = NULL;

    if (!rv_json_get_text(schema, "$ref", &ref))
        return schema;
    return defs && strncmp(ref, prefix, sizeof prefix - 1) == 0 ? rv_json_get_obj(defs, ref + sizeof prefix - 1) : NULL;
}

/* The model has to write null where this member is left out: is the null valid, or taken out? */
static void note_null(struct strict *s, json_object *property)
{
    json_object *of = definition_of(s, property);

    if (of && allows_null(of))
        return;
    if (s->is_far || !of || !has(of, "type") || is_of_type(of, "null"))
        s->is_lost = true;
    else if (s->is_in_defs)
        s->has_null_in_def = true;
    else
        s->has_null_in_root = true;
}

static void convert_properties(struct strict *s, json_object *from, int nesting)
{
    json_object *properties = rv_json_get_obj(from, "properties"), *extra = NULL;
    json_object *required = rv_json_get_arr(from, "required");
    bool has_extra = json_object_object_get_ex(from, "additionalProperties", &extra);

    if (!properties || !requires_only_what_is_there(from, properties) ||
        (has_extra && (!json_object_is_type(extra, json_type_boolean) || json_object_get_boolean(extra)))) {
        s->is_lost = true; /* any members: no closed object */
        return;
    }
    rv_jw_key(&s->w, "properties");
    rv_jw_obj(&s->w);
    json_object_object_foreach (properties, key, property) {
        bool nullable = !has_text(required, key);
        s->is_lost = s->is_lost || ++s->n_properties > MAX_PROPERTIES;
        if (!s->is_lost && nullable)
            note_null(s, property);
        if (s->is_lost)
            return;
        rv_jw_key(&s->w, key);
        convert(s, property, nesting + 1, nullable);
    }
    rv_jw_obj_end(&s->w);
    rv_jw_key(&s->w, "required");
    rv_jw_arr(&s->w);
    json_object_object_foreach (properties, name, ignored) {
        (void)ignored;
        rv_jw_text(&s->w, name);
    }
    rv_jw_arr_end(&s->w);
    rv_jw_kv_bool(&s->w, "additionalProperties", false);
}

static void convert_list(struct strict *s, json_object *from, int nesting)
{
    bool was_far = s->is_far;

    if (!json_object_is_type(from, json_type_array) || json_object_array_length(from) == 0) {
        s->is_lost = true;
        return;
    }
    rv_jw_key(&s->w, "anyOf");
    rv_jw_arr(&s->w);
    s->is_far = true;
    for (size_t i = 0; !s->is_lost && i < json_object_array_length(from); i++)
        convert(s, json_object_array_get_idx(from, i), nesting, false);
    s->is_far = was_far;
    rv_jw_arr_end(&s->w);
}

static void convert_defs(struct strict *s, const char *key)
{
    json_object *defs = rv_json_get_obj(s->root, key);

    if (!has(s->root, key) || s->is_lost)
        return;
    if (!defs) {
        s->is_lost = true;
        return;
    }
    rv_jw_key(&s->w, key);
    rv_jw_obj(&s->w);
    json_object_object_foreach (defs, name, def) {
        if (s->is_lost)
            return;
        rv_jw_key(&s->w, name);
        s->is_in_defs = true;
        s->is_far = json_object_is_type(def, json_type_object) && has(def, "$ref"); /* of a reference to it */
        convert(s, def, 1, false);
        s->is_in_defs = s->is_far = false;
    }
    rv_jw_obj_end(&s->w);
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
static void convert_ref(struct strict *s, json_object *from)
{
    const char *ref = NULL;

    json_object_object_foreach (from, key, value) {
        (void)value;
        if (!rv_str_is(rv_str_of(key), "$ref") && !rv_str_is(rv_str_of(key), "description") &&
            !rv_str_is(rv_str_of(key), "title") && find_word(key) != (int)WORD_DROPPED)
            s->is_lost = true;
    }
    if (!rv_json_get_text(from, "$ref", &ref) || !is_there(s->root, ref)) {
        s->is_lost = true;
        return;
    }
    rv_jw_kv_text(&s->w, "$ref", ref);
    if (rv_str_is(rv_str_of(ref), "#"))
        s->has_far_root = true;
    else if (s->is_far || !definition_of(s, from))
        s->has_far_def = true;
}

static void convert_words(struct strict *s, json_object *from, int nesting, bool nullable)
{
    bool is_object = is_of_type(from, "object") || has(from, "properties");
    bool has_choice = has(from, "anyOf") || has(from, "oneOf"), has_values = has(from, "enum") || has(from, "const");
    json_object *value = NULL;

    if ((has(from, "anyOf") && has(from, "oneOf")) || (has(from, "enum") && has(from, "const")))
        s->is_lost = true;
    keep_words(s, from, nullable);
    describe(s, from);
    if (json_object_object_get_ex(from, "const", &value))
        keep_const(s, value, nullable && has(from, "type"));
    if (is_object && !s->is_lost)
        convert_properties(s, from, nesting);
    if (!s->is_lost && json_object_object_get_ex(from, "items", &value)) {
        rv_jw_key(&s->w, "items");
        convert(s, value, nesting + 1, false);
    } else if (is_of_type(from, "array")) {
        s->is_lost = true;
    }
    if (has_choice && !s->is_lost) { /* oneOf: its wider form; the answer is checked here */
        json_object_object_get_ex(from, has(from, "anyOf") ? "anyOf" : "oneOf", &value);
        convert_list(s, value, nesting);
    }
    if (has(from, "type") || has_values || has_choice)
        return;
    s->is_lost = s->is_lost || !is_object; /* anything */
    rv_jw_key(&s->w, "type");
    if (nullable)
        rv_jw_raw(&s->w, RV_STR_LIT("[\"object\",\"null\"]"));
    else
        rv_jw_text(&s->w, "object");
}

/* Nothing says its type, and it does not list null: it becomes {anyOf: [schema, {type: null}]}. */
static bool needs_union(json_object *from)
{
    json_object *values = rv_json_get_arr(from, "enum"), *value = NULL;

    if (values && has_null(values))
        return false;
    if (has(from, "type") || (json_object_object_get_ex(from, "const", &value) && !value))
        return false;
    return has(from, "$ref") || has(from, "enum") || has(from, "const") || has(from, "anyOf") || has(from, "oneOf");
}

static void convert(struct strict *s, json_object *from, int nesting, bool nullable)
{
    bool is_object = json_object_is_type(from, json_type_object), unites = is_object && nullable && needs_union(from);

    /* true, false, or too deep; or definitions that would have to be found where they are */
    if (!is_object || nesting > MAX_NESTING || (from != s->root && (has(from, "$defs") || has(from, "definitions"))))
        s->is_lost = true;
    if (s->is_lost)
        return;
    if (unites) {
        rv_jw_obj(&s->w);
        rv_jw_key(&s->w, "anyOf");
        rv_jw_arr(&s->w);
    }
    rv_jw_obj(&s->w);
    if (has(from, "$ref"))
        convert_ref(s, from);
    else
        convert_words(s, from, nesting, nullable && !unites);
    if (from == s->root) {
        convert_defs(s, "$defs");
        convert_defs(s, "definitions");
    }
    rv_jw_obj_end(&s->w);
    if (unites) {
        rv_jw_raw(&s->w, RV_STR_LIT("{\"type\":\"null\"}"));
        rv_jw_arr_end(&s->w);
        rv_jw_obj_end(&s->w);
    }
}

int wire_schema_to_strict(json_object *schema, json_object **out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    struct strict s = {.root = schema, .w = rv_jw_on(&text)};
    const char *type = NULL;
    int rc = 0;

    *out = NULL;
    if (has(schema, "type") && !(rv_json_get_text(schema, "type", &type) && rv_str_is(rv_str_of(type), "object")))
        return 0;
    if (has(schema, "anyOf") || has(schema, "oneOf") || has(schema, "enum") || !has(schema, "properties"))
        return 0; /* the root is an object and nothing else */
    convert(&s, schema, 1, false);
    /* Far definitions may refer to others, and so may the root. */
    if ((s.has_far_root && (s.has_null_in_root || s.has_null_in_def)) || (s.has_far_def && s.has_null_in_def))
        s.is_lost = true;
    if (text.rc == RV_E_NOMEM || !s.is_lost)
        rc = rv_buf_check(&text, "a schema", err);
    if (rc == 0 && !s.is_lost)
        rc = rv_json_parse(rv_buf_str(&text), NULL, out, err);
    rv_buf_fini(&text);
    return rc;
}
