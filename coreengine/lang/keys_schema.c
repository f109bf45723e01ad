/* What else a table of keys is good for: a JSON Schema of the map, and a reference table in Markdown. */
#include <math.h>
#include <string.h>

#include "coreengine/lang/yaml_internal.h"

#define MAX_WHOLE 1e15 /* larger numbers are written with an exponent: a double has 15 exact digits */

static void write_limit(rv_jw *w, const char *name, const struct rv_key *key, double value)
{
    if (key->type == RV_KEY_INT || (floor(value) == value && fabs(value) < MAX_WHOLE)) {
        rv_jw_kv_int(w, name, (int64_t)value);
    } else {
        rv_jw_key(w, name);
        rv_jw_double(w, value);
    }
}

static void write_type(rv_jw *w, const struct rv_key *key)
{
    switch (key->type) {
    case RV_KEY_STR:
        rv_jw_kv_text(w, "type", "string");
        if (key->required)
            rv_jw_kv_int(w, "minLength", 1);
        break;
    case RV_KEY_BOOL:
        rv_jw_kv_text(w, "type", "boolean");
        break;
    case RV_KEY_INT:
    case RV_KEY_FLOAT:
        if (key->is_null_offset) {
            rv_jw_key(w, "type");
            rv_jw_raw(w, RV_STR_LIT("[\"number\",\"null\"]"));
        } else {
            rv_jw_kv_text(w, "type", key->type == RV_KEY_INT ? "integer" : "number");
        }
        if (key->min != 0 || key->max != 0) {
            write_limit(w, "minimum", key, key->min);
            if (key->max >= key->min)
                write_limit(w, "maximum", key, key->max);
        }
        break;
    case RV_KEY_TERM: {
        const struct rv_term_list *list = lang_key_terms(key);
        rv_jw_key(w, "enum");
        rv_jw_arr(w);
        for (size_t i = 0; list && i < list->n; i++)
            rv_jw_text(w, list->terms[i].text);
        rv_jw_arr_end(w);
        break;
    }
    case RV_KEY_STR_LIST:
        rv_jw_kv_text(w, "type", "array");
        rv_jw_key(w, "items");
        rv_jw_raw(w, RV_STR_LIT("{\"type\":\"string\"}"));
        break;
    case RV_KEY_JSON:
    case RV_KEY_CUSTOM:
    case RV_KEY_MAP:
        break;
    }
}

/* other NULL: nothing else is allowed. */
static void write_values(rv_jw *w, const struct rv_key *key, const char *other)
{
    bool has_schema = key->schema && (key->type == RV_KEY_JSON || key->type == RV_KEY_CUSTOM);

    if (!has_schema && !other) {
        write_type(w, key);
        return;
    }
    rv_jw_key(w, other ? "anyOf" : "allOf"); /* beside the description, which "$ref" allows since 2019-09 */
    rv_jw_arr(w);
    if (has_schema) {
        rv_jw_raw(w, rv_str_of(key->schema));
    } else {
        rv_jw_obj(w);
        write_type(w, key);
        rv_jw_obj_end(w);
    }
    if (other)
        rv_jw_raw(w, rv_str_of(other));
    rv_jw_arr_end(w);
}

static void write_property(rv_jw *w, const struct rv_key *key, const char *other)
{
    if (key->type == RV_KEY_MAP) {
        rv_keys_write_schema_or(key->keys, key->n_keys, other, w);
        return;
    }
    rv_jw_obj(w);
    if (key->doc)
        rv_jw_kv_text(w, "description", key->doc);
    if (key->default_text) {
        rv_jw_key(w, "default");
        rv_jw_raw(w, rv_str_of(key->default_text));
    }
    write_values(w, key, other);
    rv_jw_obj_end(w);
}

void rv_keys_write_schema(const struct rv_key *keys, size_t n_keys, rv_jw *w)
{
    rv_keys_write_schema_or(keys, n_keys, NULL, w);
}

void rv_keys_write_schema_or(const struct rv_key *keys, size_t n_keys, const char *other, rv_jw *w)
{
    bool any_required = false;

    rv_jw_obj(w);
    rv_jw_kv_text(w, "type", "object");
    rv_jw_kv_bool(w, "additionalProperties", false);
    rv_jw_key(w, "properties");
    rv_jw_obj(w);
    for (size_t i = 0; i < n_keys; i++) {
        rv_jw_key(w, keys[i].name);
        write_property(w, &keys[i], other);
        any_required = any_required || keys[i].required;
    }
    rv_jw_obj_end(w);
    if (any_required) {
        rv_jw_key(w, "required");
        rv_jw_arr(w);
        for (size_t i = 0; i < n_keys; i++)
            if (keys[i].required)
                rv_jw_text(w, keys[i].name);
        rv_jw_arr_end(w);
    }
    rv_jw_obj_end(w);
}

static const char *type_text(const struct rv_key *key)
{
    switch (key->type) {
    case RV_KEY_STR:
        return "string";
    case RV_KEY_BOOL:
        return "boolean";
    case RV_KEY_INT:
        return "integer";
    case RV_KEY_FLOAT:
        return key->is_null_offset ? "number or null" : "number";
    case RV_KEY_TERM:
        return "word";
    case RV_KEY_STR_LIST:
        return "list of strings";
    case RV_KEY_JSON:
        return "any value";
    case RV_KEY_CUSTOM:
        return key->schema && strcmp(key->schema, "{\"type\":\"string\"}") == 0 ? "string" : "see below";
    case RV_KEY_MAP:
        return "map";
    }
    return "";
}

void rv_keys_write_markdown(const struct rv_key *keys, size_t n_keys, rv_buf *b)
{
    rv_buf_puts(b, "| key | type | default | meaning |\n| --- | --- | --- | --- |\n");
    for (size_t i = 0; i < n_keys; i++) {
        const struct rv_key *key = &keys[i];
        const struct rv_term_list *list = key->type == RV_KEY_TERM ? lang_key_terms(key) : NULL;

        rv_buf_printf(b, "| `%s` | %s", key->name, list ? "one of" : type_text(key));
        for (size_t t = 0; list && t < list->n; t++)
            rv_buf_printf(b, " `%s`", list->terms[t].text);
        if (key->type == RV_KEY_INT && key->max > key->min)
            rv_buf_printf(b, ", %.15g to %.15g", key->min, key->max);
        rv_buf_puts(b, " | ");
        if (key->default_text)
            rv_buf_printf(b, "`%s`", key->default_text);
        else
            rv_buf_puts(b, key->required ? "required" : "unset");
        rv_buf_printf(b, " | %s |\n", key->doc ? key->doc : "");
    }
}
