/* The output in a model's reply: finding the one object that it meant in prose, drafts and code fences (rule 5.6), and
 * checking that it is what its schema asks for.
 *
 * Each "{" is tried with the real JSON reader, so braces in strings or prose cannot mislead. A broken text that started
 * like an object (it had a complete key) is skipped as a whole: its inner objects are never mistaken for the answer. */
#include "coreengine/agent/agent_internal.h"

#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

static const struct rv_json_opts lenient = {
    .allow_duplicates = true,
    .what = "model reply",
};

static bool has_all(json_object *obj, const char *const *required, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!json_object_object_get_ex(obj, required[i], NULL))
            return false;
    return true;
}

/* Offset after the brace that closes the one at text[0], strings respected; 0 if there is none. */
static size_t skip_braces(rv_str text)
{
    size_t depth = 0;
    bool in_string = false;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{') {
            depth++;
        } else if (c == '}' && --depth == 0) {
            return i + 1;
        }
    }
    return 0;
}

struct search {
    json_object *first;    /* first candidate; owned */
    json_object *complete; /* first candidate with all required fields; owned */
    bool truncated;
    const char *broken; /* the brace of the first candidate that cannot be read, or of one that is cut; of the text */
    bool has_key;       /* it was meant as an object */
};

/* Braces of prose count only where nothing looks more like an object. */
static void note_broken(struct search *s, const char *brace, bool has_key)
{
    if (!s->broken || (has_key && !s->has_key)) {
        s->broken = brace;
        s->has_key = has_key;
    }
}

static int search_objects(rv_str text, const char *const *required, size_t n_required, struct search *s, rv_err **err)
{
    size_t at = 0;

    while (!s->complete) {
        const char *brace = memchr(text.ptr + at, '{', text.len - at);
        if (!brace)
            return 0;
        at = (size_t)(brace - text.ptr);
        rv_str rest = {brace, text.len - at};
        struct rv_json_scan scan;
        json_object *obj = NULL;
        int rc = rv_json_scan(rest, &lenient, &scan, &obj, err);
        if (rc < 0)
            return rc;

        if (scan.how == RV_JSON_VALUE) {
            if (has_all(obj, required, n_required))
                s->complete = json_object_get(obj);
            if (!s->first)
                s->first = json_object_get(obj);
            json_object_put(obj);
            at += scan.end;
            continue;
        }
        if (scan.how == RV_JSON_INCOMPLETE) {
            s->truncated = true;
            s->broken = brace;
            return 0;
        }
        note_broken(s, brace, scan.saw_key);
        if (scan.saw_key) {
            size_t skipped = skip_braces(rest);
            if (skipped == 0)
                return 0;
            at += skipped;
        } else {
            at++;
        }
    }
    return 0;
}

/* Fails with what the reader says of the candidate at the brace. What stands before it is blanked, so that line and
 * column are those of the whole reply. */
static int tell_why(rv_str text, const struct search *s, rv_err **err)
{
    const char *what =
        s->truncated ? "the model reply is truncated inside an object" : "the one in the model reply is broken";
    const struct rv_json_opts opts = {.allow_duplicates = true, .what = what};
    size_t before = (size_t)(s->broken - text.ptr), n = 0;
    json_object *value = NULL;
    rv_err *cause = NULL;
    char *copy = rv_str_dup(text);

    if (!copy)
        return RV_FAIL(err, RV_E_NOMEM, "tell why a reply has no object");
    for (size_t i = 0; i < before; i++)
        if (((unsigned char)text.ptr[i] & 0xC0) != 0x80) /* the first byte of a character */
            copy[n++] = text.ptr[i] == '\n' ? '\n' : ' ';
    memcpy(copy + n, s->broken, text.len - before);
    int rc = rv_json_parse((rv_str){copy, n + text.len - before}, &opts, &value, &cause);
    json_object_put(value);
    free(copy);
    if (rc < 0 && rv_err_is(cause, RV_E_NOMEM)) { /* also where only its text had none */
        rv_err_free(cause);
        return RV_FAIL(err, RV_E_NOMEM, "tell why a reply has no object");
    }
    if (rc == RV_E_LIMIT)
        rc = RV_FAIL(err, RV_E_PARSE, "no JSON object found: %s (read are %d levels and some two million values)",
                     rv_err_text(cause), RV_JSON_MAX_DEPTH);
    else
        rc = RV_FAIL(err, RV_E_PARSE, "no JSON object found: %s", rc < 0 ? rv_err_text(cause) : what);
    rv_err_free(cause);
    return rc;
}

int rv_extract_object(rv_str text, const char *const *required, size_t n_required, enum rv_rules rules,
                      json_object **out, rv_err **err)
{
    struct rv_json_scan scan;
    json_object *whole = NULL;
    int rc;

    if (text.len > RV_JSON_MAX_BYTES)
        return RV_FAIL(err, RV_E_LIMIT, "model reply of %zu bytes is longer than the %zu that are read", text.len,
                       RV_JSON_MAX_BYTES);
    rv_str from_start = rv_utf8_unmark(text);
    text = rv_str_trim(from_start);
    from_start.len = (size_t)(text.ptr - from_start.ptr) + text.len;
    if (text.len == 0)
        return RV_FAIL(err, RV_E_PARSE, "no JSON object found: the model reply is empty");

    rc = rv_json_scan(text, &lenient, &scan, &whole, err);
    if (rc < 0)
        return rc;
    if (scan.how == RV_JSON_VALUE && scan.end == text.len) {
        if (json_object_is_type(whole, json_type_object)) {
            *out = whole;
            return 0;
        }
        rc = RV_FAIL(err, RV_E_PARSE, "no JSON object found: the model reply is of type %s, not an object",
                     rv_json_type_text(whole));
        json_object_put(whole);
        return rc;
    }
    json_object_put(whole);

    struct search s = {0};
    bool says_why = rules == RV_RULES_NEWEST || rules >= RV_RULES_8;
    rc = search_objects(text, required, n_required, &s, err);
    if (rc == 0) {
        json_object *found = s.complete ? s.complete : s.first;
        if (found)
            *out = json_object_get(found);
        else if (s.broken && says_why)
            rc = tell_why(from_start, &s, err);
        else if (s.truncated)
            rc = RV_FAIL(err, RV_E_PARSE, "no JSON object found: the model reply is truncated inside an object");
        else
            rc = RV_FAIL(err, RV_E_PARSE, "no JSON object found in the model reply");
    }
    json_object_put(s.first);
    json_object_put(s.complete);
    return rc;
}

#define MAX_LEVELS 64 /* of a schema that is followed for members to leave out: it may contain itself */

static int ensure_schema(rv_visit *v, rv_err **err)
{
    if (v->model.schema)
        return 0;
    int rc = rv_schema_compile(v->agent->output.schema, "output_schema", &v->model.schema, err);
    return rc < 0 ? RV_WRAP(err, rc, "agent \"%s\"", v->agent->name) : 0;
}

/* The schema that "#/$defs/name" stands for, or the schema itself. */
static json_object *resolve(json_object *root, json_object *schema)
{
    static const char prefix[] = "#/$defs/";
    const char *ref = NULL;

    if (!rv_json_get_text(schema, "$ref", &ref) || strncmp(ref, prefix, sizeof prefix - 1) != 0)
        return schema;
    json_object *defs = rv_json_get_obj(root, "$defs");
    return defs ? rv_json_get_obj(defs, ref + sizeof prefix - 1) : NULL;
}

/* True when the schema surely refuses null: it states types, and null is none of them. */
static bool refuses_null(json_object *schema)
{
    json_object *type = NULL;

    if (!json_object_is_type(schema, json_type_object) || !json_object_object_get_ex(schema, "type", &type))
        return false;
    if (json_object_is_type(type, json_type_string))
        return !rv_str_is(rv_json_str(type), "null");
    if (!json_object_is_type(type, json_type_array))
        return false;
    for (size_t i = 0; i < json_object_array_length(type); i++)
        if (rv_str_is(rv_json_str(json_object_array_get_idx(type, i)), "null"))
            return false;
    return true;
}

static bool is_required(json_object *schema, const char *name)
{
    json_object *required = rv_json_get_arr(schema, "required");

    for (size_t i = 0; required && i < json_object_array_length(required); i++)
        if (rv_str_is(rv_json_str(json_object_array_get_idx(required, i)), name))
            return true;
    return false;
}

/* Providers' strict modes know no optional members: a model says null for "not there". */
static void drop_nulls(json_object *root, json_object *schema, json_object *value, int level)
{
    schema = resolve(root, schema);
    json_object *properties = rv_json_get_obj(schema, "properties"), *items = rv_json_get_obj(schema, "items");

    if (!schema || level > MAX_LEVELS)
        return;
    if (json_object_is_type(value, json_type_array) && items) {
        for (size_t i = 0; i < json_object_array_length(value); i++)
            drop_nulls(root, items, json_object_array_get_idx(value, i), level + 1);
    }
    if (!json_object_is_type(value, json_type_object) || !properties)
        return;
    json_object_object_foreach (value, name, member) { /* those that are there: of a schema's thousands, few may be */
        json_object *property = NULL;
        if (!json_object_object_get_ex(properties, name, &property))
            continue;
        if (member)
            drop_nulls(root, property, member, level + 1);
        else if (refuses_null(resolve(root, property)) && !is_required(schema, name))
            json_object_object_del(value, name); /* the loop has its successor already */
    }
}

void agent_output_drop_nulls(json_object *schema, json_object *value)
{
    drop_nulls(schema, schema, value, 0);
}

static bool lacks(const rv_visit *v, json_object *value, const char *field)
{
    return !is_required(v->agent->output.schema, field) && !json_object_object_get_ex(value, field, NULL);
}

/* Who mends an output has to know all that is wrong with it: fields that are missing, behind what the schema says. */
static int add_missing(const rv_visit *v, json_object *value, int rc, rv_err **cause)
{
    const struct rv_str_list *need = &v->agent->output.required_fields;
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    size_t n = 0;

    for (size_t i = 0; i < need->n; i++) {
        if (!lacks(v, value, need->items[i]))
            continue;
        if (n++ == 0 && rc < 0)
            rv_buf_printf(&text, "%s; ", rv_err_text(*cause));
        rv_buf_printf(&text, "%srequired field \"%s\" is missing", n > 1 ? "; " : "", need->items[i]);
    }
    if (n > 0) {
        rv_err_free(*cause);
        *cause = NULL;
        rc = rv_buf_check(&text, "what is wrong with an output", cause);
        if (rc == 0)
            rc = RV_FAIL(cause, RV_E_INVALID, "%s", rv_buf_cstr(&text));
    }
    rv_buf_fini(&text);
    return rc;
}

int agent_output_check(rv_visit *v, json_object *value, rv_err **err)
{
    json_object *copy = NULL;
    rv_err *cause = NULL;
    int rc = ensure_schema(v, err);

    if (rc == 0)
        rc = v->agent->declared.doc ? rv_json_dup(value, &copy, err) : 0;
    if (rc < 0)
        return rc;
    if (!copy)
        copy = json_object_get(value);
    agent_output_drop_nulls(v->agent->output.schema, copy);
    rc = rv_schema_check(v->model.schema, copy, &cause);
    if (!rv_err_is(cause, RV_E_NOMEM))
        rc = add_missing(v, copy, rc, &cause);
    json_object_put(copy);
    if (rc < 0)
        rv_err_pass(err, cause);
    else
        rv_err_free(cause);
    return rc;
}
