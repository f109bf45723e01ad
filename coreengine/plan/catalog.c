/* Tools of all servers become one list with names that plans can use. */
#include <stdio.h>
#include <stdlib.h>

#include "coreengine/plan/plan.h"
#include "coreengine/plan/planner.h"

#define MAX_ARENA ((size_t)64 << 20) /* texts of a catalog: descriptions of 10,000 tools */

/* What a name in a plan may mean: each tool has its bare name and its qualified one. */
struct name {
    const char *text;
    const struct rv_plan_tool *tool;
};
struct rv_plan_names {
    struct name *items; /* by text, then by visible name */
    size_t n;
};

struct maker {
    rv_plan_catalog *catalog;   /* owned */
    struct rv_plan_tool *tools; /* the room of catalog->tools */
    struct rv_plan_drop *drops;
    rv_err **err;
};

static int no_memory(rv_err **err)
{
    return RV_FAIL(err, RV_E_NOMEM, "no memory for a catalog of tools");
}

/* --- which tools are dropped --- */

static int drop(struct maker *m, const struct rv_plan_tool *t, const char *reason, const char *detail)
{
    rv_plan_catalog *c = m->catalog;
    struct rv_plan_drop *d = &m->drops[c->n_drops];

    d->name = rv_arena_dup(c->arena, rv_str_of(t->name));
    d->server = t->server ? rv_arena_dup(c->arena, rv_str_of(t->server)) : NULL;
    d->reason = reason;
    d->detail = rv_arena_dup(c->arena, rv_str_of(detail));
    if (!d->name || !d->detail || (t->server && !d->server))
        return no_memory(m->err);
    c->n_drops++;
    return 0;
}

static bool is_name(const char *name)
{
    size_t len = strlen(name);

    if (len == 0 || len > RV_PLAN_MAX_TOOL_NAME)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!rv_is_letter(name[i]) && !rv_is_digit(name[i]) && !strchr("_.-", name[i]))
            return false;
    return true;
}

static bool is_token(rv_str text) /* the name of a header */
{
    for (size_t i = 0; i < text.len; i++)
        if (!rv_is_letter(text.ptr[i]) && !rv_is_digit(text.ptr[i]) && !strchr("!#$%&'*+-.^_`|~", text.ptr[i]))
            return false;
    return text.len > 0 && !memchr(text.ptr, '\0', text.len);
}

/* What is wrong with the annotation of this property; NULL: nothing. Two equal names are found by `seen`. */
static const char *fault_of_header(json_object *schema, json_object *header, bool is_reachable, json_object *seen)
{
    const char *type = NULL;

    if (!is_reachable)
        return "x-mcp-header is not at a property that is reached by properties only";
    if (!json_object_is_type(header, json_type_string) || !is_token(rv_json_str(header)))
        return "x-mcp-header is not the name of a header";
    if (!rv_json_get_text(schema, "type", &type) ||
        (strcmp(type, "string") != 0 && strcmp(type, "integer") != 0 && strcmp(type, "boolean") != 0))
        return "x-mcp-header is at a property that is not a string, an integer or a boolean";
    for (size_t i = 0; i < json_object_array_length(seen); i++)
        if (strcasecmp(json_object_get_string(json_object_array_get_idx(seen, i)), json_object_get_string(header)) == 0)
            return "two properties have the same x-mcp-header";
    return NULL;
}

static bool holds_data(const char *keyword)
{
    return strcmp(keyword, "default") == 0 || strcmp(keyword, "const") == 0 || strcmp(keyword, "enum") == 0 ||
           strcmp(keyword, "examples") == 0;
}

static bool maps_names(const char *keyword)
{
    return strcmp(keyword, "properties") == 0 || strcmp(keyword, "patternProperties") == 0 ||
           strcmp(keyword, "$defs") == 0 || strcmp(keyword, "definitions") == 0 ||
           strcmp(keyword, "dependentSchemas") == 0 || strcmp(keyword, "dependencies") == 0;
}

/* Where a schema stands. A header belongs to a property that only `properties` lead to. */
enum standing { UNREACHABLE, ROOT, PROPERTY };

/* The schema nests at most as deep as the compiler allows: it was compiled. */
static int find_headers(json_object *schema, enum standing at, json_object *seen, const char **fault, rv_err **err)
{
    json_object *header = NULL;
    int rc = 0;

    if (json_object_is_type(schema, json_type_array)) {
        for (size_t i = 0; rc == 0 && !*fault && i < json_object_array_length(schema); i++)
            rc = find_headers(json_object_array_get_idx(schema, i), UNREACHABLE, seen, fault, err);
        return rc;
    }
    if (!json_object_is_type(schema, json_type_object))
        return 0;
    if (json_object_object_get_ex(schema, "x-mcp-header", &header)) {
        *fault = fault_of_header(schema, header, at == PROPERTY, seen);
        rc = *fault ? 0 : rv_json_push_ref(seen, header, err);
    }
    json_object_object_foreach (schema, keyword, value) {
        bool is_properties = strcmp(keyword, "properties") == 0;
        if (rc < 0 || *fault)
            break;
        if (holds_data(keyword) || strncmp(keyword, "x-", 2) == 0)
            continue;
        if (!maps_names(keyword) || !json_object_is_type(value, json_type_object)) {
            rc = find_headers(value, UNREACHABLE, seen, fault, err);
            continue;
        }
        json_object_object_foreach (value, name, child) {
            (void)name;
            if (rc == 0 && !*fault)
                rc = find_headers(child, is_properties && at != UNREACHABLE ? PROPERTY : UNREACHABLE, seen, fault, err);
        }
    }
    return rc;
}

static int check_headers(json_object *input, const char **fault, rv_err **err)
{
    json_object *seen = json_object_new_array();

    if (!seen)
        return no_memory(err);
    int rc = find_headers(input, ROOT, seen, fault, err);
    json_object_put(seen);
    return rc;
}

/* Compile a schema. One that does not compile is a drop. */
static int compile(struct maker *m, const struct rv_plan_tool *t, json_object *schema, const char *reason,
                   const rv_schema **out, bool *dropped)
{
    rv_plan_catalog *c = m->catalog;
    rv_schema *compiled = NULL;
    rv_err *why = NULL;

    if (!schema)
        return 0;
    int rc = rv_schema_compile_foreign(schema, t->name, &compiled, &why);
    if (rc == RV_E_NOMEM) {
        rv_err_free(why);
        return no_memory(m->err);
    }
    if (rc < 0) {
        *dropped = true;
        rc = drop(m, t, reason, rv_err_text(why));
        rv_err_free(why);
        return rc;
    }
    c->schemas[c->n_schemas++] = compiled;
    *out = compiled;
    return 0;
}

/* The root of an input schema is an object. */
static bool is_input(json_object *input)
{
    json_object *type = NULL;

    if (!json_object_is_type(input, json_type_object))
        return false;
    return !json_object_object_get_ex(input, "type", &type) || rv_str_is(rv_json_str(type), "object");
}

/* --- one tool --- */

static int copy_text(struct maker *m, const char *from, const char **to)
{
    *to = from ? rv_arena_dup(m->catalog->arena, rv_str_of(from)) : NULL;
    return from && !*to ? no_memory(m->err) : 0;
}

static int add(struct maker *m, const struct rv_plan_tool *given)
{
    struct rv_plan_tool t = *given;
    const char *fault = NULL;
    bool dropped = false;

    if (t.denied)
        return drop(m, given, "denied", "the configuration denies it");
    if (strcmp(t.name, RV_PLAN_TOOL) == 0)
        return drop(m, given, "reserved_name", "the planner has a tool of that name");
    if (!is_name(t.name))
        return drop(m, given, "bad_name", "a name has 1 to 128 letters, digits, underscores, dots and hyphens");
    if (t.input && !is_input(t.input))
        return drop(m, given, "bad_input_schema", "the input schema is not one of an object");
    int rc = compile(m, given, t.input, "bad_input_schema", &t.input_schema, &dropped);
    if (rc == 0 && !dropped)
        rc = compile(m, given, t.output, "bad_output_schema", &t.output_schema, &dropped);
    if (rc == 0 && !dropped && t.input && t.is_http)
        rc = check_headers(t.input, &fault, m->err);
    if (rc < 0 || dropped)
        return rc;
    if (fault)
        return drop(m, given, "bad_header", fault);
    if ((rc = copy_text(m, given->name, &t.name)) < 0 || (rc = copy_text(m, given->server, &t.server)) < 0 ||
        (rc = copy_text(m, given->description, &t.description)) < 0)
        return rc;
    t.qualified = t.name;
    if (t.server) {
        size_t size = strlen(t.server) + strlen(t.name) + 2;
        char *text = rv_arena_alloc(m->catalog->arena, size);
        if (!text)
            return no_memory(m->err);
        snprintf(text, size, "%s.%s", t.server, t.name);
        t.qualified = text;
    }
    json_object_get(t.input);
    json_object_get(t.output);
    m->tools[m->catalog->n++] = t;
    return 0;
}

/* --- names --- */

static int compare_servers(const struct rv_plan_tool *a, const struct rv_plan_tool *b)
{
    if (!a->server || !b->server)
        return (a->server != NULL) - (b->server != NULL);
    return strcmp(a->server, b->server);
}

static int compare_names(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    int order = strcmp(x->text, y->text);

    if (order == 0)
        order = compare_servers(x->tool, y->tool);
    if (order == 0)
        order = strcmp(x->tool->name, y->tool->name);
    return order != 0 ? order : (x->tool > y->tool) - (x->tool < y->tool);
}

static int compare_visible(const void *a, const void *b)
{
    const struct rv_plan_tool *x = a, *y = b;
    int order = strcmp(x->visible, y->visible);

    return order != 0 ? order : compare_servers(x, y);
}

/* Every text that means a tool, sorted. */
static void list_names(struct rv_plan_names *names, const struct rv_plan_tool *tools, size_t n)
{
    names->n = 0;
    for (size_t i = 0; i < n; i++) {
        names->items[names->n++] = (struct name){tools[i].name, &tools[i]};
        const char *dot = tools[i].is_full ? strchr(tools[i].name, '.') : NULL;
        if (tools[i].server)
            names->items[names->n++] = (struct name){tools[i].qualified, &tools[i]};
        else if (dot && dot[1])
            names->items[names->n++] = (struct name){dot + 1, &tools[i]};
    }
    qsort(names->items, names->n, sizeof *names->items, compare_names);
}

/* The first of the names that are this text, or the place where it would be. */
static size_t first_of(const struct rv_plan_names *names, rv_str text)
{
    size_t low = 0, high = names->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const char *name = names->items[middle].text;
        size_t len = strlen(name), shorter = len < text.len ? len : text.len;
        int order = memcmp(name, text.ptr, shorter);
        if (order < 0 || (order == 0 && len < text.len))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t count_of(const struct rv_plan_names *names, rv_str text, size_t first)
{
    size_t n = 0;

    while (first + n < names->n && rv_str_is(text, names->items[first + n].text))
        n++;
    return n;
}

/* Is the tool another one of this name at its server? */
static bool is_same(const struct rv_plan_tool *a, const struct rv_plan_tool *b)
{
    return compare_servers(a, b) == 0 && strcmp(a->name, b->name) == 0;
}

/* Drop the tools that are marked; the others keep their order. */
static int leave_out(struct maker *m, const bool *gone, const char *reason, const char *detail)
{
    rv_plan_catalog *c = m->catalog;
    size_t n = 0;
    int rc = 0;

    for (size_t i = 0; i < c->n; i++) {
        if (!gone[i]) {
            m->tools[n++] = m->tools[i];
            continue;
        }
        if (rc == 0)
            rc = drop(m, &m->tools[i], reason, detail);
        json_object_put(m->tools[i].input); /* its compiled schemas have references of their own */
        json_object_put(m->tools[i].output);
    }
    c->n = n;
    return rc;
}

/* M2: of tools of one server with one name the first counts. */
static int drop_duplicates(struct maker *m, const struct rv_plan_names *names)
{
    bool *gone = calloc(m->catalog->n + 1, sizeof *gone);

    if (!gone)
        return no_memory(m->err);
    for (size_t i = 1; i < names->n; i++)
        if (strcmp(names->items[i].text, names->items[i - 1].text) == 0 &&
            is_same(names->items[i].tool, names->items[i - 1].tool))
            gone[names->items[i].tool - m->tools] = true;
    int rc = leave_out(m, gone, "duplicate", "the server has another tool of this name");
    free(gone);
    return rc;
}

/* Two servers may make the same qualified name: "a.b" and "c", "a" and "b.c". */
static int drop_conflicts(struct maker *m)
{
    bool *gone = calloc(m->catalog->n + 1, sizeof *gone);

    if (!gone)
        return no_memory(m->err);
    for (size_t i = 1; i < m->catalog->n; i++)
        gone[i] = strcmp(m->tools[i].visible, m->tools[i - 1].visible) == 0;
    int rc = leave_out(m, gone, "name_conflict", "another tool has the same qualified name");
    free(gone);
    return rc;
}

/* G3, G4: a bare name that means one tool, else the qualified one; sorted. */
static int name_tools(struct maker *m)
{
    rv_plan_catalog *c = m->catalog;

    list_names(c->names, m->tools, c->n);
    int rc = drop_duplicates(m, c->names);
    if (rc < 0)
        return rc;
    list_names(c->names, m->tools, c->n);
    for (size_t i = 0; i < c->n; i++) {
        rv_str bare = rv_str_of(m->tools[i].name);
        bool is_unique = count_of(c->names, bare, first_of(c->names, bare)) == 1;
        m->tools[i].visible = is_unique ? m->tools[i].name : m->tools[i].qualified;
    }
    qsort(m->tools, c->n, sizeof *m->tools, compare_visible);
    rc = drop_conflicts(m);
    list_names(c->names, m->tools, c->n);
    return rc;
}

/* --- the catalog --- */

static int make(struct maker *m, const struct rv_plan_tool *tools, size_t n)
{
    rv_plan_catalog *c = m->catalog;

    c->arena = rv_arena_new(MAX_ARENA);
    c->names = calloc(1, sizeof *c->names);
    c->schemas = calloc(2 * n + 1, sizeof *c->schemas);
    if (!c->arena || !c->names || !c->schemas)
        return no_memory(m->err);
    c->names->items = calloc(2 * n + 1, sizeof *c->names->items);
    m->tools = rv_arena_alloc(c->arena, (n + 1) * sizeof *m->tools);
    m->drops = rv_arena_alloc(c->arena, (n + 1) * sizeof *m->drops);
    if (!c->names->items || !m->tools || !m->drops)
        return no_memory(m->err);
    c->tools = m->tools;
    c->drops = m->drops;
    for (size_t i = 0; i < n; i++) {
        int rc = add(m, &tools[i]);
        if (rc < 0)
            return rc;
    }
    return name_tools(m);
}

int rv_plan_catalog_new(const struct rv_plan_tool *tools, size_t n, rv_plan_catalog **out, rv_err **err)
{
    struct maker m = {.err = err};

    if (n > RV_PLAN_MAX_TOOLS)
        return RV_FAIL(err, RV_E_LIMIT, "%zu tools for a plan, at most %d are allowed", n, RV_PLAN_MAX_TOOLS);
    m.catalog = calloc(1, sizeof *m.catalog);
    if (!m.catalog)
        return no_memory(err);
    int rc = make(&m, tools, n);
    if (rc < 0)
        rv_plan_catalog_free(m.catalog);
    else
        *out = m.catalog;
    return rc;
}

void rv_plan_catalog_free(rv_plan_catalog *catalog)
{
    if (!catalog)
        return;
    for (size_t i = 0; i < catalog->n; i++) {
        json_object_put(catalog->tools[i].input);
        json_object_put(catalog->tools[i].output);
    }
    for (size_t i = 0; i < catalog->n_schemas; i++)
        rv_schema_free(catalog->schemas[i]);
    free(catalog->schemas);
    if (catalog->names)
        free(catalog->names->items);
    free(catalog->names);
    rv_arena_free(catalog->arena);
    free(catalog);
}

/* The tool with this visible name, which means it whatever else has that name. */
static const struct rv_plan_tool *visible(const rv_plan_catalog *c, rv_str name)
{
    for (size_t at = first_of(c->names, name); at < c->names->n && rv_str_is(name, c->names->items[at].text); at++)
        if (rv_str_is(name, c->names->items[at].tool->visible))
            return c->names->items[at].tool;
    return NULL;
}

const struct rv_plan_tool *rv_plan_find(const rv_plan_catalog *catalog, rv_str name, size_t *n_candidates)
{
    const struct rv_plan_tool *found = visible(catalog, name);
    size_t first = first_of(catalog->names, name), n = found ? 1 : count_of(catalog->names, name, first);

    if (n == 1 && !found)
        found = catalog->names->items[first].tool;
    if (n_candidates)
        *n_candidates = n;
    return found;
}

const struct rv_plan_tool *rv_plan_candidate_at(const rv_plan_catalog *catalog, rv_str name, size_t i)
{
    return catalog->names->items[first_of(catalog->names, name) + i].tool;
}
