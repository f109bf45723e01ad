/* A schema made plain before a value is made for it: references resolved, allOf merged, one branch of each anyOf and
 * oneOf chosen. Where an exact merge is impossible, the result is a guess: the value is checked afterwards. */
#include "coreengine/sim/sim_internal.h"

#include <json-c/linkhash.h>
#include <string.h>

#define MAX_REFS 32 /* followed in one place; a longer chain goes round */

/* "#", "#/$defs/x", "#/properties/a": borrowed, or NULL. */
static json_object *resolve(json_object *root, const char *ref)
{
    json_object *at = root;
    char name[256];

    if (ref[0] != '#')
        return NULL;
    for (const char *p = ref + 1; *p == '/';) {
        size_t n = 0;
        p++;
        for (; *p && *p != '/' && n + 1 < sizeof name; p++) {
            char c = *p;
            if (c == '~' && (p[1] == '0' || p[1] == '1'))
                c = *++p == '0' ? '~' : '/';
            name[n++] = c;
        }
        name[n] = '\0';
        if (json_object_is_type(at, json_type_array)) {
            size_t i = 0;
            for (const char *d = name; *d >= '0' && *d <= '9'; d++)
                i = i * 10 + (size_t)(*d - '0');
            at = json_object_array_get_idx(at, i);
        } else if (!json_object_is_type(at, json_type_object) || !json_object_object_get_ex(at, name, &at)) {
            return NULL;
        }
    }
    return at;
}

static bool is_one_of(const char *key, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(key, names[i]) == 0)
            return true;
    return false;
}

/* Both must hold: {allOf: [a, b]}, flattened when it is its turn. */
static int both(json_object *a, json_object *b, json_object **out, rv_err **err)
{
    json_object *obj = json_object_new_object(), *list = json_object_new_array();
    int rc = obj && list ? 0 : RV_FAIL(err, RV_E_NOMEM, "merge schemas");

    if (rc == 0)
        rc = rv_json_push_ref(list, a, err);
    if (rc == 0)
        rc = rv_json_push_ref(list, b, err);
    if (rc == 0)
        rc = rv_json_set_ref(obj, "allOf", list, err);
    json_object_put(list);
    if (rc < 0)
        json_object_put(obj);
    else
        *out = obj;
    return rc;
}

static int merge_properties(json_object *into, json_object *more, rv_err **err)
{
    json_object *all = json_object_new_object(), *old = rv_json_get_obj(into, "properties");
    int rc = all ? 0 : RV_FAIL(err, RV_E_NOMEM, "merge schemas");

    if (rc == 0 && old) {
        json_object_object_foreach (old, key, value)
            if (rc == 0)
                rc = rv_json_set_ref(all, key, value, err);
    }
    if (rc == 0) {
        json_object_object_foreach (more, key, value) {
            json_object *was = NULL, *merged = NULL;
            if (rc < 0)
                break;
            if (!json_object_object_get_ex(all, key, &was)) {
                rc = rv_json_set_ref(all, key, value, err);
            } else {
                rc = both(was, value, &merged, err);
                if (rc == 0)
                    rc = rv_json_set_take(all, key, merged, err);
            }
        }
    }
    if (rc == 0)
        return rv_json_set_take(into, "properties", all, err);
    json_object_put(all);
    return rc;
}

/* Lists whose union holds (required) or whose intersection does (enum, type). */
static int merge_lists(json_object *into, const char *key, json_object *a, json_object *b, bool is_union, rv_err **err)
{
    json_object *out = json_object_new_array();
    int rc = out ? 0 : RV_FAIL(err, RV_E_NOMEM, "merge schemas");
    size_t n_a = json_object_array_length(a), n_b = json_object_array_length(b);

    for (size_t i = 0; i < n_a && rc == 0; i++) {
        json_object *item = json_object_array_get_idx(a, i);
        bool in_b = false;
        for (size_t k = 0; k < n_b && !in_b; k++)
            in_b = rv_json_equal(item, json_object_array_get_idx(b, k));
        if (is_union != in_b)
            rc = rv_json_push_ref(out, item, err);
    }
    for (size_t k = 0; is_union && k < n_b && rc == 0; k++)
        rc = rv_json_push_ref(out, json_object_array_get_idx(b, k), err);
    if (rc == 0)
        return rv_json_set_take(into, key, out, err);
    json_object_put(out);
    return rc;
}

static int merge_key(json_object *into, const char *key, json_object *value, rv_err **err)
{
    static const char *const least[] = {"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"};
    static const char *const most[] = {"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"};
    json_object *old = NULL, *merged = NULL;
    bool has = json_object_object_get_ex(into, key, &old);

    if (strcmp(key, "properties") == 0 && json_object_is_type(value, json_type_object))
        return merge_properties(into, value, err);
    if (!has)
        return rv_json_set_ref(into, key, value, err);
    bool lists = json_object_is_type(old, json_type_array) && json_object_is_type(value, json_type_array);
    if (lists && (strcmp(key, "enum") == 0 || strcmp(key, "type") == 0))
        return merge_lists(into, key, old, value, false, err);
    if (lists && strcmp(key, "required") == 0)
        return merge_lists(into, key, old, value, true, err);
    if (strcmp(key, "type") == 0) /* "integer" beside "number", one word beside a list: the narrower */
        return json_object_is_type(old, json_type_array) || rv_str_is(rv_json_str(old), "number")
                   ? rv_json_set_ref(into, key, value, err)
                   : 0;
    bool smaller = json_object_get_double(value) < json_object_get_double(old);
    if (is_one_of(key, least, RV_COUNT(least)))
        return smaller ? 0 : rv_json_set_ref(into, key, value, err);
    if (is_one_of(key, most, RV_COUNT(most)))
        return smaller ? rv_json_set_ref(into, key, value, err) : 0;
    if (strcmp(key, "items") == 0 || strcmp(key, "additionalProperties") == 0) {
        int rc = both(old, value, &merged, err);
        return rc < 0 ? rc : rv_json_set_take(into, key, merged, err);
    }
    return rv_json_set_ref(into, key, value, err);
}

static int merge(json_object *into, json_object *schema, json_object *root, struct sim_rng *r, int depth, rv_err **err);

static int merge_parts(json_object *into, json_object *schema, json_object *root, struct sim_rng *r, int depth,
                       rv_err **err)
{
    static const char *const choices[] = {"anyOf", "oneOf"};
    json_object *all = rv_json_get_arr(schema, "allOf");
    const char *ref = NULL;
    int rc = 0;

    if (rv_json_get_text(schema, "$ref", &ref)) {
        json_object *target = resolve(root, ref);
        if (target)
            rc = merge(into, target, root, r, depth + 1, err);
    }
    for (size_t i = 0; all && rc == 0 && i < json_object_array_length(all); i++)
        rc = merge(into, json_object_array_get_idx(all, i), root, r, depth + 1, err);
    for (size_t i = 0; i < RV_COUNT(choices) && rc == 0; i++) {
        json_object *some = rv_json_get_arr(schema, choices[i]);
        size_t n = some ? json_object_array_length(some) : 0;
        if (n > 0)
            rc = merge(into, json_object_array_get_idx(some, sim_below(r, (uint32_t)n)), root, r, depth + 1, err);
    }
    return rc;
}

static int merge(json_object *into, json_object *schema, json_object *root, struct sim_rng *r, int depth, rv_err **err)
{
    static const char *const parts[] = {"$ref", "allOf", "anyOf", "oneOf"};
    int rc = 0;

    if (!json_object_is_type(schema, json_type_object) || depth > MAX_REFS)
        return 0; /* true asks nothing; false is found out by the check */
    json_object_object_foreach (schema, key, value)
        if (rc == 0 && !is_one_of(key, parts, RV_COUNT(parts)))
            rc = merge_key(into, key, value, err);
    return rc < 0 ? rc : merge_parts(into, schema, root, r, depth, err);
}

int sim_flatten(json_object *schema, json_object *root, struct sim_rng *r, json_object **out, rv_err **err)
{
    json_object *flat = json_object_new_object();
    int rc = flat ? merge(flat, schema, root, r, 0, err) : RV_FAIL(err, RV_E_NOMEM, "read a schema");

    if (rc < 0)
        json_object_put(flat);
    else
        *out = flat;
    return rc;
}
