/* properties, required and $defs: what a prompt or an output schema will be made of is checked now, with its place. */
#include <string.h>

#include "config/agentdoc/agentdoc_internal.h"

#define MAX_PATH 512 /* bytes of "properties.a.b." in messages; deeper ones are cut */

static const char *const type_words[] = {"string", "number", "integer", "boolean", "object", "array", "null"};

struct walk {
    struct rv_agentdoc_reading *r;
    rv_buf path; /* of what is looked at, for messages */
};

static void check_schema(struct walk *w, const struct rv_node *node);

static void finding(struct walk *w, enum rv_severity severity, const struct rv_node *node, const char *hint,
                    const char *text)
{
    rv_keys_finding(&w->r->keys, severity, &node->src, hint, "%s %s", rv_buf_cstr(&w->path), text);
}

static void wrong(struct walk *w, const struct rv_node *node, const char *what)
{
    rv_keys_finding(&w->r->keys, RV_SEVERITY_ERROR, &node->src, NULL, "%s must be %s, not %s", rv_buf_cstr(&w->path),
                    what, rv_node_kind_text(node->kind));
}

static size_t enter(struct walk *w, rv_str name)
{
    size_t len = w->path.len;

    if (len + name.len + 1 < MAX_PATH)
        rv_buf_printf(&w->path, "%s%.*s", len > 0 ? "." : "", RV_STR_ARG(name));
    return len;
}

static void leave(struct walk *w, size_t len)
{
    rv_buf_truncate(&w->path, len);
}

/* A map from names to schemas. */
static void check_schemas(struct walk *w, const struct rv_node *map)
{
    if (map->kind != RV_NODE_MAP) {
        wrong(w, map, "a map");
        return;
    }
    for (size_t i = 0; i < map->n; i++) {
        size_t len = enter(w, map->keys[i]->text);
        check_schema(w, map->items[i]);
        leave(w, len);
    }
}

static void check_schema_list(struct walk *w, const struct rv_node *list)
{
    if (list->kind != RV_NODE_LIST) {
        wrong(w, list, "a list of schemas");
        return;
    }
    for (size_t i = 0; i < list->n; i++)
        check_schema(w, list->items[i]);
}

static void check_strings(struct walk *w, const struct rv_node *list)
{
    if (list->kind != RV_NODE_LIST) {
        wrong(w, list, "a list of strings");
        return;
    }
    for (size_t i = 0; i < list->n; i++)
        if (list->items[i]->kind != RV_NODE_STR)
            finding(w, RV_SEVERITY_ERROR, list->items[i], "put it in quotes", "has an item that is no string");
}

static void check_type_word(struct walk *w, const struct rv_node *node)
{
    for (size_t i = 0; i < RV_COUNT(type_words); i++)
        if (rv_str_is(node->text, type_words[i]))
            return;
    rv_agentdoc_near(w->r, RV_SEVERITY_WARNING, &node->src, rv_nearest(node->text, type_words, RV_COUNT(type_words)),
                     "one of: string, number, integer, boolean, object, array, null", "%s is no type of JSON Schema",
                     rv_buf_cstr(&w->path));
}

static void check_type(struct walk *w, const struct rv_node *node)
{
    if (node->kind == RV_NODE_STR) {
        check_type_word(w, node);
    } else if (node->kind == RV_NODE_LIST) {
        for (size_t i = 0; i < node->n; i++) {
            if (node->items[i]->kind == RV_NODE_STR)
                check_type_word(w, node->items[i]);
            else
                finding(w, RV_SEVERITY_ERROR, node->items[i], "put it in quotes", "has an item that is no string");
        }
    } else {
        wrong(w, node, "a type or a list of types");
    }
}

/* Which keywords hold schemas, and how. */
enum holds { SCHEMA, SCHEMA_MAP, SCHEMA_LIST, STRINGS, TYPE, TEXT, LIST, REF };
static const struct {
    const char *name;
    enum holds holds;
} keywords[] = {
    {"type", TYPE},
    {"description", TEXT},
    {"properties", SCHEMA_MAP},
    {"items", SCHEMA},
    {"required", STRINGS},
    {"enum", LIST},
    {"$ref", REF},
    {"additionalProperties", SCHEMA},
    {"anyOf", SCHEMA_LIST},
    {"oneOf", SCHEMA_LIST},
    {"allOf", SCHEMA_LIST},
    {"prefixItems", SCHEMA_LIST},
    {"not", SCHEMA},
    {"if", SCHEMA},
    {"then", SCHEMA},
    {"else", SCHEMA},
    {"contains", SCHEMA},
    {"propertyNames", SCHEMA},
    {"unevaluatedItems", SCHEMA},
    {"unevaluatedProperties", SCHEMA},
    {"patternProperties", SCHEMA_MAP},
    {"dependentSchemas", SCHEMA_MAP},
    {"$defs", SCHEMA_MAP},
    {"definitions", SCHEMA_MAP},
};

static void check_keyword(struct walk *w, enum holds holds, struct rv_node *value)
{
    switch (holds) {
    case SCHEMA:
        if (value->kind != RV_NODE_BOOL)
            check_schema(w, value);
        return;
    case SCHEMA_MAP:
        check_schemas(w, value);
        return;
    case SCHEMA_LIST:
        check_schema_list(w, value);
        return;
    case STRINGS:
        check_strings(w, value);
        return;
    case TYPE:
        check_type(w, value);
        return;
    case TEXT:
        if (value->kind != RV_NODE_STR)
            wrong(w, value, "a string");
        return;
    case LIST:
        if (value->kind != RV_NODE_LIST)
            wrong(w, value, "a list");
        return;
    case REF:
        if (value->kind != RV_NODE_STR)
            wrong(w, value, "a string");
        else
            rv_agentdoc_check_ref(w->r, value);
        return;
    }
}

static void check_schema(struct walk *w, const struct rv_node *node)
{
    if (node->kind != RV_NODE_MAP) {
        wrong(w, node, "a JSON Schema (a map)");
        return;
    }
    for (size_t i = 0; i < node->n; i++)
        for (size_t k = 0; k < RV_COUNT(keywords); k++)
            if (rv_str_is(node->keys[i]->text, keywords[k].name)) {
                size_t len = enter(w, node->keys[i]->text);
                check_keyword(w, keywords[k].holds, node->items[i]);
                leave(w, len);
            }
}

/* --- required --- */

/* Whether some property, at any depth, has the name: a nested one is marked in the prompt when the root says so. */
static bool has_property(const struct rv_node *node, rv_str name)
{
    if (node->kind != RV_NODE_MAP && node->kind != RV_NODE_LIST)
        return false;
    for (size_t i = 0; i < node->n; i++) {
        const struct rv_node *child = node->items[i];
        if (node->keys && rv_str_is(node->keys[i]->text, "properties") && rv_node_get(child, name.ptr))
            return true;
        if (has_property(child, name))
            return true;
    }
    return false;
}

static void check_required(struct rv_agentdoc_reading *r)
{
    const struct rv_node *list = r->required;

    if (!list)
        return;
    if (list->kind != RV_NODE_LIST) {
        rv_keys_wrong_type(&r->keys, list, "required", "a list of strings");
        return;
    }
    for (size_t i = 0; i < list->n; i++) {
        const struct rv_node *item = list->items[i];
        if (item->kind != RV_NODE_STR) {
            rv_keys_wrong_type(&r->keys, item, "required", "a list of strings");
            continue;
        }
        if (r->properties && rv_node_get(r->properties, item->text.ptr))
            continue;
        if ((r->properties && has_property(r->properties, item->text)) ||
            (r->defs && has_property(r->defs, item->text))) {
            if (r->doc->structured_output)
                rv_keys_finding(
                    &r->keys, RV_SEVERITY_WARNING, &item->src, "put it into the required list of its object",
                    "required: \"%.60s\" is a property further below, which the output schema does not ask for",
                    item->text.ptr);
            continue;
        }
        rv_keys_finding(&r->keys, RV_SEVERITY_WARNING, &item->src, NULL, "required: no property is called \"%.60s\"",
                        item->text.ptr);
    }
}

void rv_agentdoc_check_schema(struct rv_agentdoc_reading *r)
{
    const struct {
        const char *name;
        const struct rv_node *node;
    } roots[] = {{"properties", r->properties}, {"$defs", r->defs}};
    struct walk w = {.r = r, .path = RV_BUF_INIT(2 * MAX_PATH)};

    for (size_t i = 0; i < RV_COUNT(roots); i++) {
        if (!roots[i].node)
            continue;
        enter(&w, rv_str_of(roots[i].name));
        check_schemas(&w, roots[i].node);
        leave(&w, 0);
    }
    if (r->additional && r->additional->kind == RV_NODE_MAP) {
        enter(&w, RV_STR_LIT("additionalProperties"));
        check_schema(&w, r->additional);
        leave(&w, 0);
    }
    check_required(r);
    if (w.path.rc == RV_E_NOMEM)
        r->keys.rc = RV_E_NOMEM;
    rv_buf_fini(&w.path);
}
