/* References of a schema, replaced by what they name. Some servers read the parameters of a tool member by member and
 * know no references: a model there would see nothing of a referenced schema. The whole schema stays as it is when a
 * referenced schema contains itself or is missing, when other keywords than descriptions stand beside a reference, or
 * when the result would be too large. */
#include "coreengine/model/wire/wire_internal.h"

#include <json-c/linkhash.h>
#include <string.h>

#define MAX_NESTING 64
#define MAX_NODES   20000 /* of the result: definitions of definitions multiply */

struct inlining {
    json_object *root;
    size_t n_nodes;
    bool is_given_up;
    rv_err **err;
};

static int copy(struct inlining *x, json_object *from, bool is_map, int nesting, json_object **out);

static bool is_one_of(const char *key, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(key, list[i]) == 0)
            return true;
    return false;
}

/* NULL: it is not there. */
static json_object *find_definition(json_object *root, const char *ref)
{
    static const char *const places[] = {"$defs", "definitions"};

    for (size_t i = 0; i < RV_COUNT(places); i++) {
        size_t n = strlen(places[i]);
        json_object *defs = rv_json_get_obj(root, places[i]);
        if (defs && strncmp(ref, "#/", 2) == 0 && strncmp(ref + 2, places[i], n) == 0 && ref[2 + n] == '/')
            return rv_json_get_obj(defs, ref + 3 + n);
    }
    return NULL;
}

static bool says_more(json_object *schema)
{
    static const char *const words[] = {"$ref",     "title",      "description", "default",
                                        "examples", "deprecated", "$defs",       "definitions"};

    json_object_object_foreach (schema, key, value) {
        (void)value;
        if (!is_one_of(key, words, RV_COUNT(words)))
            return true;
    }
    return false;
}

static int set(json_object *to, const char *key, json_object *value, rv_err **err)
{
    return value ? rv_json_set_take(to, key, value, err) : rv_json_set_null(to, key, err);
}

/* is_map: schemas by the names of members, so that a name says nothing. */
static int copy_members(struct inlining *x, json_object *from, bool is_map, int nesting, json_object *to)
{
    static const char *const data[] = {"const", "enum", "default", "examples"}; /* values, not schemas */
    static const char *const maps[] = {"properties", "patternProperties", "dependentSchemas"};

    json_object_object_foreach (from, key, value) {
        json_object *member = NULL;
        bool is_left_out = nesting == 0 && (strcmp(key, "$defs") == 0 || strcmp(key, "definitions") == 0);
        if (!is_map && (is_left_out || strcmp(key, "$ref") == 0))
            continue;
        if (!is_map && is_one_of(key, data, RV_COUNT(data)))
            member = json_object_get(value);
        bool to_map = !is_map && is_one_of(key, maps, RV_COUNT(maps));
        int rc = member ? 0 : copy(x, value, to_map, nesting + 1, &member);
        if (rc == 0)
            rc = set(to, key, member, x->err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int copy_object(struct inlining *x, json_object *from, int nesting, json_object *to)
{
    const char *ref = NULL;

    if (rv_json_get_text(from, "$ref", &ref)) {
        json_object *definition = find_definition(x->root, ref);
        if (!definition || nesting >= MAX_NESTING || says_more(from)) {
            x->is_given_up = true;
            return 0;
        }
        int rc = copy_object(x, definition, nesting + 1, to);
        if (rc < 0)
            return rc;
    }
    return copy_members(x, from, false, nesting, to); /* words beside a reference go over those of what it names */
}

static int copy_array(struct inlining *x, json_object *from, int nesting, json_object *to)
{
    int rc = 0;

    for (size_t i = 0; i < json_object_array_length(from) && rc == 0; i++) {
        json_object *item = NULL;
        rc = copy(x, json_object_array_get_idx(from, i), false, nesting + 1, &item);
        if (rc == 0)
            rc = item ? rv_json_push_take(to, item, x->err) : rv_json_push_ref(to, NULL, x->err);
    }
    return rc;
}

static int copy(struct inlining *x, json_object *from, bool is_map, int nesting, json_object **out)
{
    bool is_object = json_object_is_type(from, json_type_object), is_array = json_object_is_type(from, json_type_array);

    if (++x->n_nodes > MAX_NODES || nesting > MAX_NESTING)
        x->is_given_up = true;
    if (x->is_given_up || (!is_object && !is_array)) {
        *out = json_object_get(from);
        return 0;
    }
    json_object *to = is_object ? json_object_new_object() : json_object_new_array();
    if (!to)
        return RV_FAIL(x->err, RV_E_NOMEM, "no memory for a schema");
    int rc = is_array ? copy_array(x, from, nesting, to)
             : is_map ? copy_members(x, from, true, nesting, to)
                      : copy_object(x, from, nesting, to);
    if (rc < 0) {
        json_object_put(to);
        return rc;
    }
    *out = to;
    return 0;
}

int rv_body_inline(json_object *schema, json_object **out, rv_err **err)
{
    struct inlining x = {.root = schema, .err = err};
    json_object *made = NULL;
    bool has_any = rv_json_get_obj(schema, "$defs") || rv_json_get_obj(schema, "definitions");
    int rc = has_any ? copy(&x, schema, false, 0, &made) : 0;

    if (rc < 0)
        return rc;
    if (!has_any || x.is_given_up) {
        json_object_put(made);
        made = json_object_get(schema);
    }
    *out = made;
    return 0;
}
