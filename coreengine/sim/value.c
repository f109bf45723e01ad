/* Values that fit a JSON Schema: plain ones first, then anything the schema lets through. Made by its keywords and
 * checked afterwards, so that what the making does not know (not, oneOf's "only one") is tried again. */
#include "coreengine/base/base.h"
#include "coreengine/sim/sim_internal.h"

#include <json-c/linkhash.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_DEPTH 8  /* levels: deeper, only what is required is made; values stay small */
#define MAX_TRIES 40 /* values for one schema: made-up values of common schemas fit within a few */

struct maker {
    json_object *root;
    struct sim_rng *r;
};

struct sim_rng sim_rng_of(uint32_t bits)
{
    return (struct sim_rng){bits * RV_GOLDEN + 1, bits == 0};
}

uint32_t sim_below(struct sim_rng *r, uint32_t n)
{
    if (r->is_plain)
        return 0;
    r->s += RV_GOLDEN; /* splitmix64 */
    uint64_t z = r->s;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return (uint32_t)((z >> 32) * n >> 32);
}

json_object *sim_words(struct sim_rng *r, size_t max_words)
{
    static const char *const words[] = {"rope",   "a knot",     "night train", "\xc3\xa9t\xc3\xa9",        "42",
                                        "{brace", "\"quoted\"", "line\nbreak", "\xe6\xbc\xa2\xe5\xad\x97", ""};
    rv_buf b = RV_BUF_INIT(4096);
    size_t n = 1 + sim_below(r, (uint32_t)max_words);

    for (size_t i = 0; i < n; i++) {
        rv_buf_puts(&b, i ? " " : "");
        rv_buf_puts(&b, words[sim_below(r, RV_COUNT(words))]);
    }
    json_object *text = b.rc == 0 ? json_object_new_string_len(rv_buf_cstr(&b), (int)b.len) : NULL;
    rv_buf_fini(&b);
    return text;
}

static json_object *scalar(struct sim_rng *r)
{
    switch (sim_below(r, 4)) {
    case 0:
        return sim_words(r, 4);
    case 1:
        return json_object_new_int64((int64_t)sim_below(r, 2000) - 1000);
    case 2:
        return json_object_new_boolean(sim_below(r, 2) == 0);
    default:
        return rv_json_new_double((double)sim_below(r, 1000) / 8.0);
    }
}

int sim_any(struct sim_rng *r, int depth, json_object **out, rv_err **err)
{
    static const char *const names[] = {"text", "value", "note", "count", "name"};
    uint32_t how = depth > 2 ? 0 : sim_below(r, 8);
    json_object *v = NULL;
    int rc = 0;

    *out = NULL;
    if (how == 7 && sim_below(r, 2))
        return 0; /* null */
    v = how < 5 ? scalar(r) : how == 5 ? json_object_new_array() : json_object_new_object();
    if (!v)
        return RV_FAIL(err, RV_E_NOMEM, "make a value");
    for (uint32_t i = 0, n = how < 5 ? 0 : sim_below(r, 4); i < n && rc == 0; i++) {
        json_object *child = NULL;
        rc = sim_any(r, depth + 1, &child, err);
        if (rc == 0 && how == 5)
            rc = rv_json_push_ref(v, child, err);
        else if (rc == 0)
            rc = rv_json_set_ref(v, names[sim_below(r, RV_COUNT(names))], child, err);
        json_object_put(child);
    }
    if (rc < 0)
        json_object_put(v);
    else
        *out = v;
    return rc;
}

static int make(struct maker *m, json_object *schema, int depth, json_object **out, rv_err **err);

static bool number_of(json_object *schema, const char *key, double *out)
{
    json_object *v = NULL;

    if (!json_object_object_get_ex(schema, key, &v) || !rv_json_is_number(v))
        return false;
    *out = json_object_get_double(v);
    return true;
}

static size_t count_of(json_object *schema, const char *key, size_t otherwise)
{
    double d;
    return number_of(schema, key, &d) && d >= 0 && d < 1e6 ? (size_t)d : otherwise;
}

static int make_number(struct maker *m, json_object *schema, bool whole, json_object **out, rv_err **err)
{
    double lo = 0, hi = 0, edge, step = 0, v;
    bool has_lo = number_of(schema, "minimum", &lo), has_hi = number_of(schema, "maximum", &hi);
    bool open_lo = number_of(schema, "exclusiveMinimum", &edge) && (!has_lo || edge >= lo);

    lo = open_lo ? edge : lo;
    has_lo = has_lo || open_lo;
    bool open_hi = number_of(schema, "exclusiveMaximum", &edge) && (!has_hi || edge <= hi);
    hi = open_hi ? edge : hi;
    has_hi = has_hi || open_hi;
    if (!number_of(schema, "multipleOf", &step))
        step = whole ? 1 : 0;
    if (!has_lo)
        lo = has_hi ? hi - 100 : 0;
    if (!has_hi)
        hi = lo + 100 * (step > 1 ? step : 1);
    if (step > 0) {
        double first = ceil(lo / step), last = floor(hi / step);
        if (open_lo && first * step <= lo)
            first++;
        if (open_hi && last * step >= hi)
            last--;
        double n = last - first + 1 > 1e6 ? 1e6 : last - first + 1;
        v = (first + (n > 1 ? (double)sim_below(m->r, (uint32_t)n) : 0)) * step;
        if (step < 1) { /* 3 * 0.1 is not 0.3: take the nearest number of so many digits */
            char text[64];
            int n_text = rv_format(text, sizeof text, "%.12g", v);
            return rv_json_parse((rv_str){text, (size_t)n_text}, NULL, out, err);
        }
    } else {
        double part = (1 + sim_below(m->r, 999)) / 1000.0;
        v = !m->r->is_plain && sim_below(m->r, 8) == 0 && !open_lo ? lo : lo + (hi - lo) * part;
    }
    *out = floor(v) == v && fabs(v) < 9e15 ? json_object_new_int64((int64_t)v) : rv_json_new_double(v);
    return *out ? 0 : RV_FAIL(err, RV_E_NOMEM, "make a number");
}

static int make_string(struct maker *m, json_object *schema, json_object **out, rv_err **err)
{
    static const char *const letters[] = {"a", "b", "z", " ", "\xc3\xa4", "\xe2\x82\xac", "\"", "0"};
    size_t least = count_of(schema, "minLength", 0), most = count_of(schema, "maxLength", least + 12);
    size_t n = least + (most > least ? sim_below(m->r, (uint32_t)(most - least < 24 ? most - least + 1 : 24)) : 0);
    rv_buf b = RV_BUF_INIT(SIM_MAX_TEXT);

    for (size_t i = 0; i < n; i++)
        rv_buf_puts(&b, letters[sim_below(m->r, RV_COUNT(letters))]);
    *out = b.rc == 0 ? json_object_new_string_len(rv_buf_cstr(&b), (int)b.len) : NULL;
    rv_buf_fini(&b);
    return *out ? 0 : RV_FAIL(err, RV_E_NOMEM, "make a text");
}

static bool contains(json_object *arr, json_object *v)
{
    for (size_t i = 0; i < json_object_array_length(arr); i++)
        if (rv_json_equal(json_object_array_get_idx(arr, i), v))
            return true;
    return false;
}

static int make_array(struct maker *m, json_object *schema, int depth, json_object **out, rv_err **err)
{
    json_object *prefix = rv_json_get_arr(schema, "prefixItems"), *items = NULL;
    size_t n_prefix = prefix ? json_object_array_length(prefix) : 0;
    size_t least = count_of(schema, "minItems", 0), most = count_of(schema, "maxItems", least + 3 + n_prefix);
    bool has_items = json_object_object_get_ex(schema, "items", &items);
    int rc = 0;

    bool unique = rv_json_bool_or(schema, "uniqueItems", false);
    if (json_object_is_type(items, json_type_boolean) && !json_object_get_boolean(items))
        most = most < n_prefix ? most : n_prefix;
    size_t n = least;
    if (depth < MAX_DEPTH && most > least)
        n += sim_below(m->r, (uint32_t)(most - least < 6 ? most - least + 1 : 6));
    json_object *arr = json_object_new_array();
    if (!arr)
        return RV_FAIL(err, RV_E_NOMEM, "make a list");
    for (size_t tries = 0; json_object_array_length(arr) < n && tries < n + MAX_TRIES && rc == 0; tries++) {
        size_t at = json_object_array_length(arr);
        json_object *v = NULL;
        json_object *of = at < n_prefix ? json_object_array_get_idx(prefix, at) : has_items ? items : NULL;
        if (m->r->is_plain && tries > n)
            m->r->is_plain = false; /* the plainest one is there already */
        rc = make(m, of, depth + 1, &v, err);
        if (rc == 0 && !(unique && contains(arr, v)))
            rc = rv_json_push_ref(arr, v, err);
        json_object_put(v);
    }
    if (rc < 0)
        json_object_put(arr);
    else
        *out = arr;
    return rc;
}

static int make_member(struct maker *m, json_object *schema, const char *key, int depth, json_object *obj, rv_err **err)
{
    json_object *properties = rv_json_get_obj(schema, "properties"), *of = NULL, *v = NULL;

    if (json_object_object_get_ex(obj, key, NULL))
        return 0;
    if (!properties || !json_object_object_get_ex(properties, key, &of))
        json_object_object_get_ex(schema, "additionalProperties", &of);
    int rc = make(m, of, depth + 1, &v, err);
    if (rc == 0)
        rc = rv_json_set_ref(obj, key, v, err);
    json_object_put(v);
    return rc;
}

static int make_object(struct maker *m, json_object *schema, int depth, json_object **out, rv_err **err)
{
    json_object *properties = rv_json_get_obj(schema, "properties"), *required = rv_json_get_arr(schema, "required");
    json_object *more = NULL, *obj = json_object_new_object();
    size_t least = count_of(schema, "minProperties", 0), most = count_of(schema, "maxProperties", SIZE_MAX);
    int rc = obj ? 0 : RV_FAIL(err, RV_E_NOMEM, "make an object");
    char name[32];

    for (size_t i = 0; rc == 0 && required && i < json_object_array_length(required); i++)
        rc = make_member(m, schema, json_object_get_string(json_object_array_get_idx(required, i)), depth, obj, err);
    if (rc == 0 && properties) {
        json_object_object_foreach (properties, key, value) {
            bool wanted = (size_t)json_object_object_length(obj) < least ||
                          (depth < MAX_DEPTH && !m->r->is_plain && sim_below(m->r, 2) == 0);
            bool never = json_object_is_type(value, json_type_boolean) && !json_object_get_boolean(value);
            if (rc == 0 && wanted && !never && (size_t)json_object_object_length(obj) < most)
                rc = make_member(m, schema, key, depth, obj, err);
        }
    }
    json_object_object_get_ex(schema, "additionalProperties", &more);
    bool closed = json_object_is_type(more, json_type_boolean) && !json_object_get_boolean(more);
    size_t extra = closed || depth > 2 ? 0 : sim_below(m->r, 8) / 7;
    for (size_t i = 0; rc == 0 && i < 64; i++) {
        size_t n = (size_t)json_object_object_length(obj);
        if (n >= most || (n >= least && i >= extra) || (closed && n >= least))
            break;
        snprintf(name, sizeof name, "extra_%zu", i);
        if (closed)
            break;
        rc = make_member(m, schema, name, depth, obj, err);
    }
    if (rc < 0)
        json_object_put(obj);
    else
        *out = obj;
    return rc;
}

static const char *type_of(struct maker *m, json_object *schema)
{
    static const char *const types[] = {"string", "integer", "boolean", "number", "object", "array", "null"};
    static const struct {
        const char *key, *type;
    } signs[] = {{"properties", "object"},       {"required", "object"},
                 {"minProperties", "object"},    {"items", "array"},
                 {"prefixItems", "array"},       {"minItems", "array"},
                 {"uniqueItems", "array"},       {"minLength", "string"},
                 {"maxLength", "string"},        {"minimum", "number"},
                 {"maximum", "number"},          {"multipleOf", "number"},
                 {"exclusiveMinimum", "number"}, {"exclusiveMaximum", "number"}};
    json_object *type = NULL;

    if (json_object_object_get_ex(schema, "type", &type)) {
        size_t n = json_object_is_type(type, json_type_array) ? json_object_array_length(type) : 0;
        if (n > 0)
            type = json_object_array_get_idx(type, sim_below(m->r, (uint32_t)n));
        if (json_object_is_type(type, json_type_string))
            return json_object_get_string(type);
    }
    for (size_t i = 0; i < RV_COUNT(signs); i++)
        if (json_object_object_get_ex(schema, signs[i].key, NULL))
            return signs[i].type;
    return types[sim_below(m->r, RV_COUNT(types))];
}

static int make_plain(struct maker *m, json_object *schema, int depth, json_object **out, rv_err **err)
{
    json_object *value = NULL, *list = rv_json_get_arr(schema, "enum");

    if (json_object_object_get_ex(schema, "const", &value))
        return rv_json_dup(value, out, err);
    if (list && json_object_array_length(list) > 0)
        return rv_json_dup(json_object_array_get_idx(list, sim_below(m->r, (uint32_t)json_object_array_length(list))),
                           out, err);
    const char *type = type_of(m, schema);
    if (strcmp(type, "object") == 0)
        return make_object(m, schema, depth, out, err);
    if (strcmp(type, "array") == 0)
        return make_array(m, schema, depth, out, err);
    if (strcmp(type, "string") == 0)
        return make_string(m, schema, out, err);
    if (strcmp(type, "integer") == 0 || strcmp(type, "number") == 0)
        return make_number(m, schema, type[0] == 'i', out, err);
    *out = strcmp(type, "boolean") == 0 ? json_object_new_boolean(sim_below(m->r, 2) == 0) : NULL;
    return strcmp(type, "boolean") != 0 || *out ? 0 : RV_FAIL(err, RV_E_NOMEM, "make a boolean");
}

static int make(struct maker *m, json_object *schema, int depth, json_object **out, rv_err **err)
{
    static const char *const composed[] = {"$ref", "allOf", "anyOf", "oneOf"};
    json_object *flat = NULL;

    *out = NULL;
    if (!json_object_is_type(schema, json_type_object))
        return depth > MAX_DEPTH ? 0 : sim_any(m->r, 2, out, err);
    if (depth > 4 * MAX_DEPTH) /* it requires itself */
        return 0;
    for (size_t i = 0; i < RV_COUNT(composed); i++)
        if (json_object_object_get_ex(schema, composed[i], NULL)) {
            int rc = sim_flatten(schema, m->root, m->r, &flat, err);
            if (rc == 0)
                rc = make_plain(m, flat, depth, out, err);
            json_object_put(flat);
            return rc;
        }
    return make_plain(m, schema, depth, out, err);
}

int sim_value(json_object *schema, const rv_schema *check, struct sim_rng *r, json_object **out, bool *fits,
              rv_err **err)
{
    struct maker m = {schema, r};
    int rc = 0;

    *fits = false;
    *out = NULL;
    for (int i = 0; i < MAX_TRIES && rc == 0 && !*fits; i++) {
        json_object_put(*out);
        *out = NULL;
        if (i == 1 && r->is_plain)
            r->is_plain = false; /* the plainest does not fit */
        rc = make(&m, schema, 0, out, err);
        if (rc < 0)
            break;
        int checked =
            check
                ? rv_schema_check(check, *out,
                                  RV_CODE_ONLY("a value that does not fit is made again; want of memory is told below"))
                : 0;
        if (checked == RV_E_NOMEM)
            rc = RV_FAIL(err, RV_E_NOMEM, "check a made-up value");
        *fits = checked == 0;
    }
    if (rc < 0) {
        json_object_put(*out);
        *out = NULL;
    }
    return rc;
}
