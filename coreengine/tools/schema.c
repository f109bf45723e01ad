/* JSON Schema: references, the texts of faults, lifecycle and defaults. Compiling is in schema_compile.c, checking in
 * schema_check.c. */
#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/tools/schema_internal.h"

/* References of a compiled schema: "#" or "#/..." to any schema of the same document. A chain of references (and of
 * allOf, anyOf, oneOf, not, which look at the same value) that leads back to itself would never end and is refused;
 * recursion through properties or items is fine, because the value ends. */

enum mark { MARK_NEW, MARK_OPEN, MARK_DONE };

static int hex_digit(char ch)
{
    if (ch >= '0' && ch <= '9')
        return ch - '0';
    ch = (char)(ch | 0x20);
    return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

/* The pointer of a "#..." reference, percent escapes undone; in the arena. */
static char *pointer_of_ref(struct rv_schema_compiler *c, const char *ref)
{
    char *text = rv_arena_dup(c->schema->arena, rv_str_of(ref + 1));
    char *from = text, *to = text;

    if (!text)
        return NULL;
    while (*from) {
        int hi = from[0] == '%' ? hex_digit(from[1]) : -1;
        int lo = hi >= 0 ? hex_digit(from[2]) : -1;
        if (lo >= 0 && (hi || lo)) {
            *to++ = (char)(hi * 16 + lo);
            from += 3;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
    return text;
}

static void hint_nearest(struct rv_schema_compiler *c, const char *pointer)
{
    const char *best = NULL;
    size_t i;

    /* One candidate at a time keeps this free of memory; the last good one is as good as any. */
    for (i = 0; i < c->n_nodes; i++) {
        const char *candidates[2] = {c->nodes[i]->pointer, best};
        const char *near = rv_nearest(rv_str_of(pointer), candidates, best ? 2 : 1);
        if (near)
            best = near;
    }
    if (best)
        rv_err_hint(c->err, "did you mean \"#%s\"?", best);
}

static int resolve(struct rv_schema_compiler *c, struct rv_schema_node *n)
{
    const char *pointer;
    int i;

    if (n->ref[0] != '#' || (n->ref[1] && n->ref[1] != '/')) {
        int rc = RV_SCHEMA_FAIL(c, n->pointer, "$ref \"%s\" leads out of the document", n->ref);
        rv_err_hint(c->err, "references look like \"#/$defs/name\"");
        return rc;
    }
    pointer = pointer_of_ref(c, n->ref);
    if (!pointer)
        return rv_schema_nomem(c);
    i = rv_index_get(&c->by_pointer, rv_str_of(pointer));
    if (i < 0) {
        int rc = RV_SCHEMA_FAIL(c, n->pointer, "$ref \"%s\" leads to no schema", n->ref);
        hint_nearest(c, pointer);
        return rc;
    }
    n->target = c->nodes[i];
    return 0;
}

static int find_cycle(struct rv_schema_compiler *c, struct rv_schema_node *n);

static int find_cycle_in(struct rv_schema_compiler *c, const struct rv_schema_list *list)
{
    size_t i;

    for (i = 0; i < list->n; i++) {
        int rc = find_cycle(c, list->items[i]);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Depth first over the edges that keep the value. The recursion is bounded by RV_SCHEMA_MAX_NODES small frames. */
static int find_cycle(struct rv_schema_compiler *c, struct rv_schema_node *n)
{
    int rc = 0;

    if (n->mark == MARK_DONE)
        return 0;
    if (n->mark == MARK_OPEN)
        return RV_SCHEMA_FAIL(c, n->pointer, "refers to itself without end");
    n->mark = MARK_OPEN;
    if (n->target)
        rc = find_cycle(c, n->target);
    if (rc == 0 && n->not_schema)
        rc = find_cycle(c, n->not_schema);
    if (rc == 0)
        rc = find_cycle_in(c, &n->all_of);
    if (rc == 0)
        rc = find_cycle_in(c, &n->any_of);
    if (rc == 0)
        rc = find_cycle_in(c, &n->one_of);
    n->mark = MARK_DONE;
    return rc;
}

/* Resolve each $ref, and refuse those that lead back to themselves without looking into the value. */
static int schema_link(struct rv_schema_compiler *c)
{
    size_t i;
    int rc;

    for (i = 0; i < c->n_nodes; i++) {
        if (!c->nodes[i]->ref)
            continue;
        rc = resolve(c, c->nodes[i]);
        if (rc < 0)
            return rc;
    }
    for (i = 0; i < c->n_nodes; i++) {
        rc = find_cycle(c, c->nodes[i]);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Faults: their list, and what they say: the place, what was expected, what was found, each short enough for a model's
 * or a person's eye. */

#define MAX_FAULT  400 /* bytes of one fault; longer ones are cut */
#define MAX_VALUE  60  /* bytes of a value shown */
#define MAX_LISTED 8   /* names or values listed of many */
#define MAX_FRAMES 64  /* levels of a place shown; deeper ones start with "..." */

static void write_path(const struct rv_schema_path *path, rv_buf *b)
{
    const struct rv_schema_path *frames[MAX_FRAMES];
    size_t n = 0;

    if (!path || !path->up) {
        rv_buf_puts(b, "(root)");
        return;
    }
    for (; path->up && n < MAX_FRAMES; path = path->up)
        frames[n++] = path;
    if (path->up)
        rv_buf_puts(b, "...");
    while (n-- > 0) {
        const char *p = frames[n]->key;
        rv_buf_putc(b, '/');
        if (!p)
            rv_buf_printf(b, "%zu", frames[n]->i);
        for (; p && *p; p++) {
            if (*p == '~')
                rv_buf_puts(b, "~0");
            else if (*p == '/')
                rv_buf_puts(b, "~1");
            else
                rv_buf_putc(b, *p);
        }
    }
}

void rv_schema_write_value(json_object *v, rv_buf *b)
{
    rv_jw w = rv_jw_on(b);
    rv_str s = rv_json_str(v);

    switch (json_object_get_type(v)) {
    case json_type_string:
        if (s.len <= MAX_VALUE) {
            rv_jw_str(&w, s);
            return;
        }
        rv_jw_str(&w, rv_utf8_cut(s, MAX_VALUE));
        rv_buf_puts(b, "...");
        return;
    case json_type_array:
        rv_buf_puts(b, json_object_array_length(v) ? "[...]" : "[]");
        return;
    case json_type_object:
        rv_buf_puts(b, json_object_object_length(v) ? "{...}" : "{}");
        return;
    case json_type_null:
    case json_type_boolean:
    case json_type_int:
    case json_type_double:
        break;
    }
    rv_jw_value(&w, v);
}

static void write_found(json_object *v, rv_buf *b)
{
    rv_buf_printf(b, "found %s", rv_json_type_text(v));
    if (!v || json_object_is_type(v, json_type_array) || json_object_is_type(v, json_type_object))
        return;
    rv_buf_putc(b, ' ');
    rv_schema_write_value(v, b);
}

void rv_schema_write_types(unsigned types, rv_buf *b)
{
    static const char *const words[] = {"null", "boolean", "integer", "number", "string", "array", "object"};
    bool is_first = true;
    size_t i;

    for (i = RV_COUNT(words); i-- > 0;) { /* "string or null" reads better than "null or string" */
        if (!(types & (1u << i)))
            continue;
        if (!is_first)
            rv_buf_puts(b, " or ");
        rv_buf_puts(b, words[i]);
        is_first = false;
    }
}

static void write_values(json_object *values, rv_buf *b)
{
    size_t i, n = json_object_array_length(values);

    for (i = 0; i < n && i < MAX_LISTED; i++) {
        if (i)
            rv_buf_puts(b, ", ");
        rv_schema_write_value(json_object_array_get_idx(values, i), b);
    }
    if (n > MAX_LISTED)
        rv_buf_printf(b, " or one of %zu more", n - MAX_LISTED);
}

void rv_schema_write_expected(const struct rv_schema_node *n, rv_buf *b)
{
    while (n->target && !n->types && !n->enum_values && !n->has_const)
        n = n->target; /* ends: linking refused cycles */
    if (n->is_never) {
        rv_buf_puts(b, "nothing");
    } else if (n->has_const) {
        rv_schema_write_value(n->const_value, b);
    } else if (n->enum_values) {
        if (json_object_array_length(n->enum_values) > 1)
            rv_buf_puts(b, "one of ");
        write_values(n->enum_values, b);
    } else if ((!n->types || n->types == RV_SCHEMA_OBJECT) && n->required && json_object_array_length(n->required)) {
        rv_buf_puts(b, "object with ");
        write_values(n->required, b);
    } else if (n->types) {
        rv_schema_write_types(n->types, b);
        if (n->format)
            rv_buf_printf(b, " (%s)", n->format->name);
    } else if (n->title) {
        rv_buf_add_str(b, rv_utf8_cut(rv_str_of(n->title), MAX_VALUE));
    } else {
        rv_buf_printf(b, "what %s asks for", n->pointer[0] ? n->pointer : "the schema");
    }
}

bool rv_schema_begin_fault(struct rv_schema_check *c, const struct rv_schema_path *at, rv_buf *line)
{
    if (at->depth > c->deepest)
        c->deepest = at->depth;
    if (c->quiet)
        return false;
    c->n_faults++;
    if (c->n_listed == RV_SCHEMA_MAX_FAULTS)
        return false;
    rv_buf_init(line, MAX_FAULT);
    write_path(at, line);
    rv_buf_puts(line, ": ");
    return true;
}

bool rv_schema_end_fault(struct rv_schema_check *c, rv_buf *line)
{
    if (line->rc == RV_E_NOMEM) {
        c->rc = RV_E_NOMEM;
    } else if (line->len && c->text.len + line->len + 5 <= c->text.max) {
        if (c->text.len)
            rv_buf_puts(&c->text, "; ");
        rv_buf_add_str(&c->text, rv_utf8_cut((rv_str){line->ptr, line->len}, line->len));
        if (line->rc)
            rv_buf_puts(&c->text, "...");
        c->n_listed++;
        if (c->text.rc == RV_E_NOMEM)
            c->rc = RV_E_NOMEM;
    }
    rv_buf_fini(line);
    return false;
}

bool rv_schema_fault_found(struct rv_schema_check *c, rv_buf *line, json_object *v)
{
    rv_buf_puts(line, ", ");
    write_found(v, line);
    return rv_schema_end_fault(c, line);
}

bool rv_schema_fault_expected(struct rv_schema_check *c, const struct rv_schema_path *at,
                              const struct rv_schema_node *n, json_object *v)
{
    rv_buf line;

    if (!rv_schema_begin_fault(c, at, &line))
        return false;
    rv_buf_puts(&line, "expected ");
    rv_schema_write_expected(n, &line);
    return rv_schema_fault_found(c, &line, v);
}

/* --- Life and defaults --- */

static void compiler_fini(struct rv_schema_compiler *c)
{
    free(c->nodes);
    rv_index_fini(&c->by_pointer);
}

int rv_schema_compile(json_object *schema, const char *what, rv_schema **out, rv_err **err)
{
    struct rv_schema_compiler c = {.err = err};
    rv_schema *s;
    int rc = RV_E_NOMEM;

    s = calloc(1, sizeof *s);
    if (!s)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a schema");
    c.schema = s;
    s->arena = rv_arena_new(RV_SCHEMA_MAX_BYTES);
    s->what = s->arena ? rv_arena_dup(s->arena, rv_str_of(what ? what : "schema")) : NULL;
    if (!s->what) {
        RV_FAIL(err, RV_E_NOMEM, "no memory for a schema");
        goto done;
    }
    s->document = json_object_get(schema);
    rc = rv_schema_compile_root(&c);
    if (rc < 0)
        goto done;
    rc = schema_link(&c);
    if (rc < 0)
        goto done;
    *out = s;
    s = NULL;
done:
    compiler_fini(&c);
    rv_schema_free(s);
    return rc;
}

void rv_schema_free(rv_schema *s)
{
    if (!s)
        return;
    json_object_put(s->document);
    rv_arena_free(s->arena);
    free(s);
}

static int fill_one(const struct rv_schema_node *property, const char *name, json_object *value, rv_err **err)
{
    json_object *copy = NULL;
    int rc;

    if (json_object_object_get_ex(value, name, NULL))
        return 0;
    /* A copy: the document may be shared by threads, and the caller may change what it gets. */
    rc = rv_json_dup(property->default_value, &copy, err);
    if (rc < 0)
        return rc;
    return copy ? rv_json_set_take(value, name, copy, err) : rv_json_set_null(value, name, err);
}

int rv_schema_fill_defaults(const rv_schema *s, json_object *value, rv_err **err)
{
    const struct rv_schema_node *n = s->root;
    const struct lh_entry *e;
    size_t i = 0;

    if (!json_object_is_type(value, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "%s: expected object, found %s", s->what, rv_json_type_text(value));
    while (n->target && !n->property_names)
        n = n->target; /* ends: linking refused cycles */
    if (!n->property_names)
        return 0;
    for (e = lh_table_head(json_object_get_object(n->property_names)); e; e = lh_entry_next(e)) {
        const struct rv_schema_node *property = n->properties.items[i++];
        int rc;
        if (!property->has_default)
            continue;
        rc = fill_one(property, lh_entry_k(e), value, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}
