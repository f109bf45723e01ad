/* properties, required and $defs: what a prompt or an output schema will be made of is checked now, with its place. */
#include <string.h>

#include "config/agentdoc/agentdoc_internal.h"

/* References of schemas: each must point into the document. Cycles are allowed: an output can be a tree. */

#define OLD_PLACE "#/definitions/"
#define NEW_PLACE "#/$defs/"

/* The next part of a JSON pointer, which begins with its slash, with ~1 and ~0 decoded; NULL: out of memory. */
static const char *next_part(struct rv_agentdoc_reading *r, rv_str *pointer)
{
    char *part = rv_arena_dup(r->keys.arena, *pointer);
    size_t i = 1;
    size_t n = 0;

    if (!part) {
        r->keys.rc = RV_E_NOMEM;
        return NULL;
    }
    for (; i < pointer->len && pointer->ptr[i] != '/'; i++) {
        char c = pointer->ptr[i];
        if (c == '~' && i + 1 < pointer->len && (pointer->ptr[i + 1] == '0' || pointer->ptr[i + 1] == '1'))
            c = pointer->ptr[++i] == '0' ? '~' : '/';
        part[n++] = c;
    }
    part[n] = 0;
    *pointer = (rv_str){pointer->ptr + i, pointer->len - i};
    return part;
}

static const struct rv_node *child_of(const struct rv_node *node, const char *part)
{
    size_t i = 0;

    if (node->kind == RV_NODE_MAP)
        return rv_node_get(node, part);
    if (node->kind != RV_NODE_LIST || !part[0])
        return NULL;
    for (; *part >= '0' && *part <= '9' && i < node->n; part++)
        i = i * 10 + (size_t)(*part - '0');
    return *part == 0 && i < node->n ? node->items[i] : NULL;
}

/* Whether "#..." leads to something. */
static bool leads_somewhere(struct rv_agentdoc_reading *r, rv_str ref)
{
    rv_str pointer = {ref.ptr + 1, ref.len - 1};
    const struct rv_node *at;
    const char *part;

    if (pointer.len == 0)
        return true; /* the whole output */
    if (pointer.ptr[0] != '/')
        return false;
    part = next_part(r, &pointer);
    if (!part)
        return true;
    if (strcmp(part, "properties") == 0)
        at = r->properties;
    else if (strcmp(part, "$defs") == 0 || (r->has_definitions && strcmp(part, "definitions") == 0))
        at = r->defs;
    else
        return false;
    if (pointer.len == 0)
        return false; /* a map of schemas, and none itself */
    while (at && pointer.len > 0) {
        part = next_part(r, &pointer);
        if (!part)
            return true;
        at = child_of(at, part);
    }
    return at && (at->kind == RV_NODE_MAP || at->kind == RV_NODE_BOOL);
}

static void rewrite(struct rv_agentdoc_reading *r, struct rv_node *ref)
{
    rv_buf text = RV_BUF_INIT(RV_AGENTDOC_MAX_TREE);
    char *copy = NULL;

    rv_buf_puts(&text, NEW_PLACE);
    rv_buf_puts(&text, ref->text.ptr + strlen(OLD_PLACE));
    if (text.rc == 0)
        copy = rv_arena_dup(r->keys.arena, rv_buf_str(&text));
    if (copy)
        ref->text = (rv_str){copy, text.len};
    else
        r->keys.rc = RV_E_NOMEM;
    rv_buf_fini(&text);
}

/* The definition that was probably meant. */
static void unresolved(struct rv_agentdoc_reading *r, const struct rv_node *ref)
{
    const char *slash = strrchr(ref->text.ptr, '/');
    size_t n = r->defs && r->defs->kind == RV_NODE_MAP ? r->defs->n : 0;
    const char **names = agentdoc_room(r, n, sizeof *names);
    const char *near;

    if (!names)
        return;
    for (size_t i = 0; i < n; i++)
        names[i] = r->defs->keys[i]->text.ptr;
    near = rv_nearest(rv_str_of(slash ? slash + 1 : ref->text.ptr), names, n);
    if (near)
        near = agentdoc_listed(r, NEW_PLACE, &near, 1);
    agentdoc_near(r, RV_SEVERITY_ERROR, &ref->src, near,
                  n > 0 ? "references begin with \"" NEW_PLACE "\""
                        : "there are no $defs: write the schema in place of the reference",
                  "the reference \"%.80s\" leads nowhere in this document", ref->text.ptr);
}

/* Check the $ref of one schema; rewrite it if it points into `definitions`. */
static void check_ref(struct rv_agentdoc_reading *r, struct rv_node *ref)
{
    if (ref->text.len == 0 || ref->text.ptr[0] != '#' || !leads_somewhere(r, ref->text))
        unresolved(r, ref);
    else if (r->has_definitions && strncmp(ref->text.ptr, OLD_PLACE, strlen(OLD_PLACE)) == 0)
        rewrite(r, ref);
}

/* --- Schemas --- */

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
    rv_keys_add_finding(&w->r->keys, severity, &node->src, hint, "%s %s", rv_buf_cstr(&w->path), text);
}

static void wrong(struct walk *w, const struct rv_node *node, const char *what)
{
    rv_keys_add_finding(&w->r->keys, RV_SEVERITY_ERROR, &node->src, NULL, "%s must be %s, not %s",
                        rv_buf_cstr(&w->path), what, rv_node_kind_text(node->kind));
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
            finding(w, RV_SEVERITY_ERROR, list->items[i], "put it in quotes", "has an item that is not a string");
}

static void check_type_word(struct walk *w, const struct rv_node *node)
{
    for (size_t i = 0; i < RV_COUNT(type_words); i++)
        if (rv_str_is(node->text, type_words[i]))
            return;
    agentdoc_near(w->r, RV_SEVERITY_WARNING, &node->src, rv_nearest(node->text, type_words, RV_COUNT(type_words)),
                  "one of: string, number, integer, boolean, object, array, null", "%s is not a type of JSON Schema",
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
                finding(w, RV_SEVERITY_ERROR, node->items[i], "put it in quotes", "has an item that is not a string");
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
            check_ref(w->r, value);
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
        rv_keys_add_wrong_type(&r->keys, list, "required", "a list of strings");
        return;
    }
    for (size_t i = 0; i < list->n; i++) {
        const struct rv_node *item = list->items[i];
        if (item->kind != RV_NODE_STR) {
            rv_keys_add_wrong_type(&r->keys, item, "required", "a list of strings");
            continue;
        }
        if (r->properties && rv_node_get(r->properties, item->text.ptr))
            continue;
        if ((r->properties && has_property(r->properties, item->text)) ||
            (r->defs && has_property(r->defs, item->text))) {
            if (r->doc->structured_output)
                rv_keys_add_finding(
                    &r->keys, RV_SEVERITY_WARNING, &item->src, "put it into the required list of its object",
                    "required: \"%.60s\" is a property further below, which the output schema does not ask for",
                    item->text.ptr);
            continue;
        }
        rv_keys_add_finding(&r->keys, RV_SEVERITY_WARNING, &item->src, NULL,
                            "required: no property is called \"%.60s\"", item->text.ptr);
    }
}

void agentdoc_check_schema(struct rv_agentdoc_reading *r)
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
