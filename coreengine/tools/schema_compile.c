/* From a schema document to nodes, by one table of keywords. Any other keyword is an error: a schema that says more
 * than is checked would promise what does not hold. Nesting is bounded, so the recursion here is too. */
#include "coreengine/base/base.h"
#include "coreengine/tools/schema_internal.h"

#include <json-c/linkhash.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compile_node(struct rv_schema_compiler *c, json_object *doc, const char *pointer, int depth,
                        struct rv_schema_node **out);

int tools_schema_fail(struct rv_schema_compiler *c, const char *at, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    rv_vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    if (c->fault && c->fault->pointer.len == 0)
        rv_buf_puts(&c->fault->pointer, at);
    return RV_FAIL(c->err, RV_E_INVALID, "schema of %s: %s: %s", c->schema->what, at[0] ? at : "(root)", text);
}

int tools_schema_nomem(struct rv_schema_compiler *c)
{
    return RV_FAIL(c->err, RV_E_NOMEM, "no memory to compile the schema of %s", c->schema->what);
}

/* parent/key, escaped as JSON pointers are; in the arena. */
static const char *pointer_of(struct rv_schema_compiler *c, const char *parent, const char *key)
{
    size_t len = strlen(parent), n_key = strlen(key);
    char *text = rv_arena_alloc(c->schema->arena, len + 2 * n_key + 2);
    char *to = text;

    if (!text)
        return NULL;
    memcpy(to, parent, len);
    to += len;
    *to++ = '/';
    for (; *key; key++) {
        if (*key == '~' || *key == '/') {
            *to++ = '~';
            *to++ = *key == '~' ? '0' : '1';
        } else {
            *to++ = *key;
        }
    }
    return text;
}

static const char *pointer_of_item(struct rv_schema_compiler *c, const char *parent, size_t i)
{
    char key[24];

    snprintf(key, sizeof key, "%zu", i);
    return pointer_of(c, parent, key);
}

/* --- readers of one keyword's value; `at` is the keyword's own pointer --- */

struct place {
    struct rv_schema_compiler *c;
    struct rv_schema_node *node;
    const char *at;
    int depth;
};

/* What languages call a type of JSON; NULL: nothing known. */
static const char *type_of_language(rv_str word)
{
    static const char *const words[][2] = {
        {"str", "string"},    {"text", "string"},    {"int", "integer"},  {"long", "integer"}, {"float", "number"},
        {"double", "number"}, {"decimal", "number"}, {"bool", "boolean"}, {"dict", "object"},  {"map", "object"},
        {"list", "array"},    {"tuple", "array"},    {"none", "null"},    {"None", "null"}};

    for (size_t i = 0; i < RV_COUNT(words); i++)
        if (rv_str_is(word, words[i][0]))
            return words[i][1];
    return NULL;
}

static int read_type_word(struct place *p, json_object *word)
{
    static const char *const words[] = {"null", "boolean", "integer", "number", "string", "array", "object"};
    rv_str text = rv_json_str(word);
    const char *near;
    size_t i;

    if (!json_object_is_type(word, json_type_string))
        return RV_SCHEMA_FAIL(p->c, p->at, "expected the name of a type, found %s", rv_json_type_text(word));
    for (i = 0; i < RV_COUNT(words); i++)
        if (rv_str_is(text, words[i])) {
            p->node->types |= 1u << i;
            return 0;
        }
    RV_SCHEMA_FAIL(p->c, p->at, "unknown type \"%.*s\"", RV_STR_ARG(text));
    near = type_of_language(text);
    if (!near)
        near = rv_nearest(text, words, RV_COUNT(words));
    if (near)
        rv_err_set_hint(p->c->err, "did you mean \"%s\"?", near);
    else
        rv_err_set_hint(p->c->err, "types are null, boolean, integer, number, string, array, object");
    return RV_E_INVALID;
}

static int read_type(struct place *p, json_object *v, void *slot)
{
    size_t i;

    (void)slot;
    if (!json_object_is_type(v, json_type_array))
        return read_type_word(p, v);
    if (json_object_array_length(v) == 0)
        return RV_SCHEMA_FAIL(p->c, p->at, "the list of types is empty");
    for (i = 0; i < json_object_array_length(v); i++) {
        int rc = read_type_word(p, json_object_array_get_idx(v, i));
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_schema(struct place *p, json_object *v, void *slot)
{
    return compile_node(p->c, v, p->at, p->depth + 1, slot);
}

static int list_alloc(struct place *p, size_t n, struct rv_schema_list *list)
{
    list->items = rv_arena_alloc(p->c->schema->arena, (n ? n : 1) * sizeof *list->items);
    list->n = n;
    return list->items ? 0 : tools_schema_nomem(p->c);
}

static int read_schema_list(struct place *p, json_object *v, void *slot)
{
    struct rv_schema_list *list = slot;
    size_t i;
    int rc;

    if (!json_object_is_type(v, json_type_array) || json_object_array_length(v) == 0)
        return RV_SCHEMA_FAIL(p->c, p->at, "expected a list with at least one schema");
    rc = list_alloc(p, json_object_array_length(v), list);
    for (i = 0; rc == 0 && i < list->n; i++) {
        const char *at = pointer_of_item(p->c, p->at, i);
        if (!at)
            return tools_schema_nomem(p->c);
        rc = compile_node(p->c, json_object_array_get_idx(v, i), at, p->depth + 1, &list->items[i]);
    }
    return rc;
}

static int read_schema_map(struct place *p, json_object *v, struct rv_schema_list *list)
{
    size_t i = 0;
    int rc;

    if (!json_object_is_type(v, json_type_object))
        return RV_SCHEMA_FAIL(p->c, p->at, "expected an object of schemas, found %s", rv_json_type_text(v));
    rc = list_alloc(p, (size_t)json_object_object_length(v), list);
    if (rc < 0)
        return rc;
    json_object_object_foreach (v, key, child) {
        const char *at = pointer_of(p->c, p->at, key);
        if (!at)
            return tools_schema_nomem(p->c);
        rc = compile_node(p->c, child, at, p->depth + 1, &list->items[i++]);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* One schema for all items, or (older drafts) a list of schemas by position. */
static int read_items(struct place *p, json_object *v, void *slot)
{
    if (!json_object_is_type(v, json_type_array))
        return read_schema(p, v, slot);
    p->node->items_is_list = true;
    return json_object_array_length(v) ? read_schema_list(p, v, &p->node->prefix_items) : 0;
}

static int keep_pattern(struct place *p, rv_str text, rv_pattern **out)
{
    rv_schema *s = p->c->schema;

    if (!rv_has_room(&s->patterns, &s->cap_patterns, s->n_patterns + 1, sizeof *s->patterns))
        return tools_schema_nomem(p->c);
    rv_err *why = NULL;
    int rc = rv_pattern_new(text, out, &why);
    if (rc == 0)
        s->patterns[s->n_patterns++] = *out;
    else if (rv_err_is(why, RV_E_NOMEM))
        rc = tools_schema_nomem(p->c);
    else
        rc = RV_SCHEMA_FAIL(p->c, p->at, "%s", rv_err_text(why));
    rv_err_free(why);
    return rc;
}

static int read_pattern(struct place *p, json_object *v, void *slot)
{
    if (!json_object_is_type(v, json_type_string))
        return RV_SCHEMA_FAIL(p->c, p->at, "expected string, found %s", rv_json_type_text(v));
    return keep_pattern(p, rv_json_str(v), slot);
}

static int read_pattern_properties(struct place *p, json_object *v, void *slot)
{
    struct rv_schema_pattern_property **to = slot;
    struct rv_schema_list list;
    size_t i = 0;
    int rc = read_schema_map(p, v, &list);

    if (rc < 0)
        return rc;
    json_object_object_foreach (v, text, unused) {
        (void)unused;
        *to = rv_arena_alloc(p->c->schema->arena, sizeof **to);
        if (!*to)
            return tools_schema_nomem(p->c);
        (*to)->schema = list.items[i++];
        rc = keep_pattern(p, rv_str_of(text), &(*to)->pattern);
        if (rc < 0)
            return rc;
        to = &(*to)->next;
    }
    return 0;
}

static int read_names(struct place *p, json_object *v, void *slot);

/* name -> list of names, or name -> schema; `dependencies` of older drafts has both. */
static int read_dependents(struct place *p, json_object *v, void *slot)
{
    struct rv_schema_dependent **all = slot;

    if (!json_object_is_type(v, json_type_object))
        return RV_SCHEMA_FAIL(p->c, p->at, "expected an object, found %s", rv_json_type_text(v));
    json_object_object_foreach (v, name, needed) {
        struct rv_schema_dependent *d = rv_arena_alloc(p->c->schema->arena, sizeof *d);
        struct place below = {p->c, p->node, pointer_of(p->c, p->at, name), p->depth};
        int rc;
        if (!d || !below.at)
            return tools_schema_nomem(p->c);
        d->name = name;
        d->next = *all;
        *all = d;
        if (json_object_is_type(needed, json_type_array))
            rc = read_names(&below, needed, &d->required);
        else
            rc = compile_node(p->c, needed, below.at, p->depth + 1, &d->schema);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_properties(struct place *p, json_object *v, void *slot)
{
    p->node->property_names = v;
    return read_schema_map(p, v, slot);
}

/* Reached through $ref only. */
static int read_definitions(struct place *p, json_object *v, void *slot)
{
    struct rv_schema_list unused;

    (void)slot;
    return read_schema_map(p, v, &unused);
}

static int read_size(struct place *p, json_object *v, void *slot)
{
    double d = tools_schema_is_integral(v) ? json_object_get_double(v) : -1;

    if (d < 0 || d > (double)INT32_MAX)
        return RV_SCHEMA_FAIL(p->c, p->at, "expected a whole number from 0 to %d", (int)INT32_MAX);
    *(size_t *)slot = (size_t)d;
    return 0;
}

static int read_number(struct place *p, json_object *v, void *slot)
{
    if (!rv_json_is_number(v)) {
        RV_SCHEMA_FAIL(p->c, p->at, "expected number, found %s", rv_json_type_text(v));
        rv_err_set_hint(p->c->err, "write a number, without unit or quotes");
        return RV_E_INVALID;
    }
    *(json_object **)slot = v;
    return 0;
}

static int read_divisor(struct place *p, json_object *v, void *slot)
{
    if (rv_json_is_number(v) && !(json_object_get_double(v) > 0))
        return RV_SCHEMA_FAIL(p->c, p->at, "expected a number above 0");
    return read_number(p, v, slot);
}

static int read_bool(struct place *p, json_object *v, void *slot)
{
    if (!json_object_is_type(v, json_type_boolean))
        return RV_SCHEMA_FAIL(p->c, p->at, "expected boolean, found %s", rv_json_type_text(v));
    *(bool *)slot = json_object_get_boolean(v);
    return 0;
}

static int read_names(struct place *p, json_object *v, void *slot)
{
    size_t i, n = json_object_is_type(v, json_type_array) ? json_object_array_length(v) : 0;

    if (!json_object_is_type(v, json_type_array)) {
        int rc = RV_SCHEMA_FAIL(p->c, p->at, "expected a list of property names, found %s", rv_json_type_text(v));
        rv_err_set_hint(p->c->err, "it stands beside \"properties\", as in required: [name]");
        return rc;
    }
    for (i = 0; i < n; i++) {
        json_object *name = json_object_array_get_idx(v, i);
        if (!json_object_is_type(name, json_type_string))
            return RV_SCHEMA_FAIL(p->c, p->at, "expected a property name, found %s", rv_json_type_text(name));
    }
    *(json_object **)slot = v;
    return 0;
}

static int read_values(struct place *p, json_object *v, void *slot)
{
    if (!json_object_is_type(v, json_type_array) || json_object_array_length(v) == 0) {
        RV_SCHEMA_FAIL(p->c, p->at, "expected a list with at least one value");
        rv_err_set_hint(p->c->err, "write the values that are allowed as a list, for example [low, high]");
        return RV_E_INVALID;
    }
    *(json_object **)slot = v;
    return 0;
}

static int read_const(struct place *p, json_object *v, void *slot)
{
    p->node->has_const = true;
    *(json_object **)slot = v;
    return 0;
}

static int read_default(struct place *p, json_object *v, void *slot)
{
    p->node->has_default = true;
    *(json_object **)slot = v;
    return 0;
}

static int read_text(struct place *p, json_object *v, void *slot)
{
    if (!json_object_is_type(v, json_type_string))
        return RV_SCHEMA_FAIL(p->c, p->at, "expected string, found %s", rv_json_type_text(v));
    *(const char **)slot = json_object_get_string(v);
    return 0;
}

static int read_note_text(struct place *p, json_object *v, void *slot)
{
    const char *unused;

    (void)slot;
    return read_text(p, v, &unused);
}

/* Behind "#" an anchor (older drafts); else the name of a schema, at which references inside it begin. */
static int read_id(struct place *p, json_object *v, void *slot)
{
    const char *id = NULL;
    int rc = read_text(p, v, &id);

    (void)slot;
    if (rc < 0)
        return rc;
    if (id[0] == '#')
        p->node->anchor = id + 1;
    else
        p->node->id = id;
    return 0;
}

/* One that is not known is a note, as the standard has it. */
static int read_format(struct place *p, json_object *v, void *slot)
{
    const char *unused;

    (void)slot;
    p->node->format = tools_schema_format_of(rv_json_str(v));
    return read_text(p, v, &unused);
}

static int read_note(struct place *p, json_object *v, void *slot)
{
    (void)p;
    (void)v;
    (void)slot;
    return 0;
}

#define SLOT(member) offsetof(struct rv_schema_node, member)
static const struct keyword {
    const char *name;
    int (*read)(struct place *p, json_object *v, void *slot);
    size_t slot;
} keywords[] = {
    {"type", read_type, 0},
    {"properties", read_properties, SLOT(properties)},
    {"required", read_names, SLOT(required)},
    {"additionalProperties", read_schema, SLOT(additional)},
    {"patternProperties", read_pattern_properties, SLOT(pattern_properties)},
    {"unevaluatedProperties", read_schema, SLOT(unevaluated_properties)},
    {"propertyNames", read_schema, SLOT(names)},
    {"dependentRequired", read_dependents, SLOT(dependents)},
    {"dependentSchemas", read_dependents, SLOT(dependents)},
    {"dependencies", read_dependents, SLOT(dependents)},
    {"items", read_items, SLOT(items)},
    {"additionalItems", read_schema, SLOT(additional_items)},
    {"unevaluatedItems", read_schema, SLOT(unevaluated_items)},
    {"contains", read_schema, SLOT(contains)},
    {"minContains", read_size, SLOT(contains_range.min)},
    {"maxContains", read_size, SLOT(contains_range.max)},
    {"prefixItems", read_schema_list, SLOT(prefix_items)},
    {"minItems", read_size, SLOT(items_range.min)},
    {"maxItems", read_size, SLOT(items_range.max)},
    {"uniqueItems", read_bool, SLOT(unique_items)},
    {"enum", read_values, SLOT(enum_values)},
    {"const", read_const, SLOT(const_value)},
    {"minimum", read_number, SLOT(minimum)},
    {"maximum", read_number, SLOT(maximum)},
    {"exclusiveMinimum", read_number, SLOT(exclusive_minimum)},
    {"exclusiveMaximum", read_number, SLOT(exclusive_maximum)},
    {"multipleOf", read_divisor, SLOT(multiple_of)},
    {"minLength", read_size, SLOT(length.min)},
    {"maxLength", read_size, SLOT(length.max)},
    {"pattern", read_pattern, SLOT(pattern)},
    {"minProperties", read_size, SLOT(properties_range.min)},
    {"maxProperties", read_size, SLOT(properties_range.max)},
    {"anyOf", read_schema_list, SLOT(any_of)},
    {"oneOf", read_schema_list, SLOT(one_of)},
    {"allOf", read_schema_list, SLOT(all_of)},
    {"not", read_schema, SLOT(not_schema)},
    {"if", read_schema, SLOT(if_schema)},
    {"then", read_schema, SLOT(then_schema)},
    {"else", read_schema, SLOT(else_schema)},
    {"$ref", read_text, SLOT(ref)},
    {"$id", read_id, 0},
    {"$anchor", read_text, SLOT(anchor)},
    {"$defs", read_definitions, 0},
    {"definitions", read_definitions, 0},
    {"default", read_default, SLOT(default_value)},
    {"title", read_text, SLOT(title)},
    {"description", read_note_text, 0},
    {"format", read_format, 0},
    {"$schema", read_note_text, 0},
    {"contentMediaType", read_note_text, 0},
    {"contentEncoding", read_note_text, 0},
    {"contentSchema", read_note, 0},
    {"discriminator", read_note, 0},
    {"$comment", read_note_text, 0},
    {"examples", read_note, 0},
    {"deprecated", read_note, 0},
    {"readOnly", read_note, 0},
    {"writeOnly", read_note, 0},
};

static const struct keyword *keyword_of(const char *name)
{
    size_t i;

    for (i = 0; i < RV_COUNT(keywords); i++)
        if (strcmp(keywords[i].name, name) == 0)
            return &keywords[i];
    return NULL;
}

static int refuse_keyword(struct rv_schema_compiler *c, const char *pointer, const char *name)
{
    /* Of the standard, and not here: no typing mistake to be corrected. */
    static const char *const left_out[] = {"$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor",
                                           "$vocabulary"};
    const char *names[RV_COUNT(keywords)], *near;
    const char *own = c->fault ? pointer_of(c, pointer, name) : NULL;
    size_t i;
    int rc;

    if (own) {
        rv_buf_puts(&c->fault->pointer, own);
        c->fault->is_key = true;
    }
    for (i = 0; i < RV_COUNT(left_out); i++)
        if (strcmp(name, left_out[i]) == 0)
            return RV_SCHEMA_FAIL(c, pointer, "keyword \"%s\" is not supported", name);
    if (c->is_foreign)
        return 0;
    rc = RV_SCHEMA_FAIL(c, pointer, "unknown keyword \"%s\"", name);
    for (i = 0; i < RV_COUNT(keywords); i++)
        names[i] = keywords[i].name;
    near = rv_nearest(rv_str_of(name), names, RV_COUNT(names));
    if (near)
        rv_err_set_hint(c->err, "did you mean \"%s\"?", near);
    return rc;
}

static int new_node(struct rv_schema_compiler *c, const char *pointer, struct rv_schema_node **out)
{
    struct rv_schema_node *n;

    if (c->n_nodes == RV_SCHEMA_MAX_NODES)
        return RV_FAIL(c->err, RV_E_LIMIT, "schema of %s: more than %d schemas", c->schema->what, RV_SCHEMA_MAX_NODES);
    if (!rv_has_room(&c->nodes, &c->cap_nodes, c->n_nodes + 1, sizeof *c->nodes))
        return tools_schema_nomem(c);
    n = rv_arena_alloc(c->schema->arena, sizeof *n);
    if (!n || rv_index_add(&c->by_pointer, rv_str_of(pointer), (int)c->n_nodes) < 0)
        return tools_schema_nomem(c);
    n->pointer = pointer;
    n->length.max = n->items_range.max = n->properties_range.max = n->contains_range.max = SIZE_MAX;
    n->contains_range.min = 1;
    c->nodes[c->n_nodes++] = n;
    *out = n;
    return 0;
}

/* Has it an $id of its own that is not an anchor? */
static bool is_named(json_object *doc)
{
    json_object *id = NULL;

    return json_object_object_get_ex(doc, "$id", &id) && rv_json_str(id).len && rv_json_str(id).ptr[0] != '#';
}

static int read_keywords(struct place *p, json_object *doc, const char *pointer)
{
    json_object_object_foreach (doc, name, value) {
        const struct keyword *k = keyword_of(name);
        if (!k && strncmp(name, "x-", 2) == 0)
            continue; /* a note of the program that made the schema */
        if (!k) {
            int refused = refuse_keyword(p->c, pointer, name);
            if (refused < 0)
                return refused;
            continue;
        }
        p->at = pointer_of(p->c, pointer, name);
        if (!p->at)
            return tools_schema_nomem(p->c);
        int rc = k->read(p, value, (char *)p->node + k->slot);
        if (rc < 0)
            return rc;
    }
    if (p->node->items_is_list)
        p->node->items = p->node->additional_items;
    return 0;
}

static int compile_node(struct rv_schema_compiler *c, json_object *doc, const char *pointer, int depth,
                        struct rv_schema_node **out)
{
    struct place p = {.c = c, .depth = depth};
    int rc;

    if (depth > RV_SCHEMA_MAX_DEPTH)
        return RV_FAIL(c->err, RV_E_LIMIT, "schema of %s: nested deeper than %d", c->schema->what, RV_SCHEMA_MAX_DEPTH);
    rc = new_node(c, pointer, out);
    if (rc < 0)
        return rc;
    p.node = *out;
    if (json_object_is_type(doc, json_type_boolean)) {
        p.node->is_never = !json_object_get_boolean(doc);
        return 0;
    }
    if (!json_object_is_type(doc, json_type_object))
        return RV_SCHEMA_FAIL(c, pointer, "a schema is an object, true or false; found %s", rv_json_type_text(doc));
    const char *outer = c->base;
    if (is_named(doc))
        c->base = pointer;
    p.node->base = c->base;
    rc = read_keywords(&p, doc, pointer);
    c->base = outer;
    return rc;
}

int tools_schema_compile_root(struct rv_schema_compiler *c)
{
    c->base = "";
    return compile_node(c, c->schema->document, "", 0, &c->schema->root);
}
