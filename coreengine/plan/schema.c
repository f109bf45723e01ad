/* The schema of plans for a catalog. With anyOf it has the arguments of each tool, in which every value may be a
 * reference instead; a schema that cannot be carried over leaves the arguments of its tool open. */
#include <stdio.h>
#include <string.h>

#include <json-c/linkhash.h>

#include "coreengine/plan/artifact_internal.h"
#include "coreengine/plan/plan.h"
#include "coreengine/plan/planner.h"

#define REFERENCE "^\\$[0-9]+\\.output"
#define MAX_DEPTH RV_PLAN_MAX_DEPTH /* levels of a plan's schema; a deeper one is refused */
#define MAX_NAME  1000 /* bytes of the name of a definition: it is copied to the stack; a longer one is not followed */

static json_object *text_of(const char *text)
{
    return json_object_new_string(text);
}

/* --- arguments that may be references --- */

struct relaxing {
    struct rv_json_build *b;
    char prefix[96]; /* where the schema of the arguments is in the whole */
    bool is_open;    /* it cannot be carried over */
};

static bool is_dropped(const char *keyword)
{
    static const char *const dropped[] = {"$schema",
                                          "$id",
                                          "$anchor",
                                          "$comment",
                                          "not",
                                          "if",
                                          "then",
                                          "else",
                                          "contains",
                                          "minContains",
                                          "maxContains",
                                          "dependentSchemas",
                                          "dependencies",
                                          "unevaluatedProperties",
                                          "unevaluatedItems"};

    for (size_t i = 0; i < RV_COUNT(dropped); i++)
        if (strcmp(keyword, dropped[i]) == 0)
            return true;
    return strncmp(keyword, "x-", 2) == 0;
}

enum inside {
    DATA,      /* not a schema: carried over */
    VALUES,    /* a schema, or schemas, of values: a reference may take their place */
    BRANCHES,  /* schemas of the same value */
    NAMED,     /* schemas of values by name */
    NAMED_REST /* schemas by name that others refer to */
};

static enum inside inside_of(const char *keyword)
{
    static const struct {
        const char *keyword;
        enum inside inside;
    } rows[] = {
        {"properties", NAMED},       {"patternProperties", NAMED},
        {"$defs", NAMED_REST},       {"definitions", NAMED_REST},
        {"items", VALUES},           {"prefixItems", VALUES},
        {"additionalItems", VALUES}, {"additionalProperties", VALUES},
        {"anyOf", BRANCHES},         {"oneOf", BRANCHES},
        {"allOf", BRANCHES},
    };

    for (size_t i = 0; i < RV_COUNT(rows); i++)
        if (strcmp(keyword, rows[i].keyword) == 0)
            return rows[i].inside;
    return DATA;
}

static void relax(struct relaxing *r, json_object *from, bool wrapped, int depth, json_object *to, const char *key);

/* "#/$defs/x" leads to the same place of the whole; any other place has moved. */
static void relax_ref(struct relaxing *r, json_object *ref, json_object *to)
{
    const char *text = json_object_get_string(ref), *name;
    rv_buf whole = RV_BUF_INIT(4096);

    name = strncmp(text, "#/$defs/", 8) == 0 ? text + 8 : strncmp(text, "#/definitions/", 14) == 0 ? text + 14 : NULL;
    if (!name || strchr(name, '/') || strlen(name) > MAX_NAME) {
        r->is_open = true;
        return;
    }
    rv_buf_printf(&whole, "%s%s", r->prefix, text + 1);
    if (r->b->rc == 0)
        r->b->rc = rv_buf_check(&whole, "reference of a schema", r->b->err);
    if (r->b->rc == 0)
        rv_json_build_buf(r->b, to, "$ref", &whole);
    rv_buf_fini(&whole);
}

static void relax_keyword(struct relaxing *r, const char *keyword, json_object *value, int depth, json_object *to)
{
    enum inside inside = inside_of(keyword);
    bool is_list = json_object_is_type(value, json_type_array),
         is_object = json_object_is_type(value, json_type_object);
    const char *name = strcmp(keyword, "oneOf") == 0 ? "anyOf" : keyword; /* a reference fits more than one */

    if (inside == DATA || (!is_list && !is_object)) {
        if (r->b->rc == 0 && rv_json_set_ref(to, keyword, value, r->b->err) < 0)
            r->b->rc = RV_E_NOMEM;
    } else if (inside == NAMED || inside == NAMED_REST) {
        json_object *map = rv_json_build(r->b, to, keyword, json_object_new_object());
        json_object_object_foreach (value, member, child)
            relax(r, child, inside == NAMED, depth + 1, map, member);
    } else if (is_list) {
        if (json_object_object_get_ex(to, name, NULL))
            return; /* anyOf and oneOf: one of them has to do */
        json_object *list = rv_json_build(r->b, to, name, json_object_new_array());
        for (size_t i = 0; i < json_object_array_length(value); i++)
            relax(r, json_object_array_get_idx(value, i), inside == VALUES, depth + 1, list, NULL);
    } else {
        relax(r, value, inside == VALUES, depth + 1, to, keyword);
    }
}

/* A copy of a schema below `to`; wrapped: a reference may take the place of its values. */
static void relax(struct relaxing *r, json_object *from, bool wrapped, int depth, json_object *to, const char *key)
{
    if (r->b->rc < 0 || r->is_open)
        return;
    if (depth > MAX_DEPTH) {
        r->is_open = true;
        return;
    }
    if (!json_object_is_type(from, json_type_object)) {
        rv_json_build(r->b, to, key, json_object_new_boolean(json_object_get_boolean(from)));
        return;
    }
    if (wrapped) {
        json_object *either = rv_json_build(r->b, to, key, json_object_new_object());
        json_object *list = rv_json_build(r->b, either, "anyOf", json_object_new_array());
        relax(r, from, false, depth + 1, list, NULL);
        json_object *reference = plan_typed_schema(r->b, list, NULL, "string");
        rv_json_build_text(r->b, reference, "pattern", REFERENCE);
        return;
    }
    json_object *schema = rv_json_build(r->b, to, key, json_object_new_object());
    json_object_object_foreach (from, keyword, value) {
        if (r->b->rc < 0 || r->is_open)
            return;
        if (strcmp(keyword, "$ref") == 0)
            relax_ref(r, value, schema);
        else if (!is_dropped(keyword))
            relax_keyword(r, keyword, value, depth, schema);
    }
}

/* --- calls --- */

static void build_options(struct rv_json_build *b, json_object *properties)
{
    json_object *after = plan_typed_schema(b, properties, "after", "array");
    plan_typed_schema(b, after, "items", "integer");
    json_object *on_failure = plan_typed_schema(b, properties, "on_failure", "string");
    json_object *words = rv_json_build(b, on_failure, "enum", json_object_new_array());
    rv_json_build(b, words, NULL, text_of("halt"));
    rv_json_build(b, words, NULL, text_of("continue"));
}

/* The tools that a call may name: [from, to) of a catalog. */
struct choice {
    const rv_plan_catalog *catalog;
    size_t from, to;
    bool has_options; /* of the call */
};

/* A call of one of them; its properties in *properties. */
static json_object *build_call(struct rv_json_build *b, struct choice of, json_object *into, const char *key,
                               json_object **properties)
{
    json_object *call = plan_typed_schema(b, into, key, "object");

    *properties = rv_json_build(b, call, "properties", json_object_new_object());
    json_object *name = plan_typed_schema(b, *properties, "tool_name", "string");
    json_object *names = rv_json_build(b, name, "enum", json_object_new_array());
    for (size_t i = of.from; i < of.to; i++)
        rv_json_build(b, names, NULL, text_of(of.catalog->tools[i].visible));
    plan_typed_schema(b, *properties, "arguments", "object");
    if (of.has_options)
        build_options(b, *properties);
    json_object *required = rv_json_build(b, call, "required", json_object_new_array());
    rv_json_build(b, required, NULL, text_of("tool_name"));
    rv_json_build(b, required, NULL, text_of("arguments"));
    return call;
}

static void build_each_call(struct rv_json_build *b, const rv_plan_catalog *c, const struct rv_planner_opts *opts,
                            json_object *calls)
{
    json_object *items = rv_json_build(b, calls, "items", json_object_new_object());
    json_object *branches = rv_json_build(b, items, "anyOf", json_object_new_array()), *properties = NULL;

    for (size_t i = 0; b->rc == 0 && i < c->n; i++) {
        struct relaxing r = {.b = b};
        build_call(b, (struct choice){c, i, i + 1, opts->has_options}, branches, NULL, &properties);
        snprintf(r.prefix, sizeof r.prefix, "#/properties/calls/items/anyOf/%zu/properties/arguments", i);
        if (b->rc < 0 || !json_object_is_type(c->tools[i].input, json_type_object))
            continue;
        relax(&r, c->tools[i].input, false, 0, properties, "arguments");
        if (r.is_open)
            plan_typed_schema(b, properties, "arguments", "object");
        else if (b->rc == 0)
            rv_json_build_text(b, rv_json_get_obj(properties, "arguments"), "type", "object");
    }
}

static void build_calls(struct rv_json_build *b, const rv_plan_catalog *c, const struct rv_planner_opts *opts,
                        json_object *properties)
{
    json_object *calls = plan_typed_schema(b, properties, "calls", "array"), *unused = NULL;

    rv_json_build_int(b, calls, "minItems", 1);
    rv_json_build_int(b, calls, "maxItems", (int64_t)(opts->max_calls ? opts->max_calls : RV_PLAN_MAX_CALLS));
    if (opts->any_of)
        build_each_call(b, c, opts, calls);
    else
        build_call(b, (struct choice){c, 0, c->n, opts->has_options}, calls, "items", &unused);
}

static void build_plan(struct rv_json_build *b, const rv_plan_catalog *c, const struct rv_planner_opts *opts,
                       json_object *root)
{
    rv_json_build_text(b, root, "type", "object");
    json_object *properties = rv_json_build(b, root, "properties", json_object_new_object());
    json_object *type = plan_typed_schema(b, properties, "type", "string");
    json_object *forms = rv_json_build(b, type, "enum", json_object_new_array());
    rv_json_build(b, forms, NULL, text_of("direct_response"));
    json_object *content = plan_typed_schema(b, properties, "content", "string");
    rv_json_build_text(b, content, "description", "the answer; for direct_response");
    if (c->n > 0) {
        rv_json_build(b, forms, NULL, text_of("tool_calls"));
        json_object *reasoning = plan_typed_schema(b, properties, "reasoning", "string");
        rv_json_build_text(b, reasoning, "description", "why these calls; for tool_calls");
        build_calls(b, c, opts, properties);
    }
    json_object *required = rv_json_build(b, root, "required", json_object_new_array());
    rv_json_build(b, required, NULL, text_of("type"));
    rv_json_build(b, root, "additionalProperties", json_object_new_boolean(false));
}

int rv_plan_build_schema(const rv_plan_catalog *catalog, const struct rv_planner_opts *opts, json_object **out,
                         rv_err **err)
{
    static const struct rv_planner_opts defaults;
    struct rv_json_build b = {err, 0};
    json_object *root = json_object_new_object();

    if (!root)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for the schema of plans");
    build_plan(&b, catalog, opts ? opts : &defaults, root);
    if (b.rc < 0)
        json_object_put(root);
    else
        *out = root;
    return b.rc;
}
