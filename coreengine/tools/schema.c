/* JSON Schema: references, schemas made of schemas, lifecycle and defaults. Compiling is in schema_compile.c, checking
 * in schema_check.c. */
#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/tools/schema_internal.h"

#include "coreengine/base/base.h"

/* References of a compiled schema: "#" or "#/..." to any schema of the same document. A chain of references (and of
 * allOf, anyOf, oneOf, not, which look at the same value) that leads back to itself would never end and is refused;
 * recursion through properties or items is fine, because the value ends. */

enum mark { MARK_NEW, MARK_OPEN, MARK_DONE };

/* The pointer of a "#..." reference, percent escapes undone; in the arena. It begins at the schema with the next $id.
 */
static char *pointer_of_ref(struct rv_schema_compiler *c, const struct rv_schema_node *n)
{
    size_t n_base = strlen(n->base), len = strlen(n->ref + 1);
    char *whole = rv_arena_alloc(c->schema->arena, n_base + len + 1);
    char *from, *to;

    if (!whole)
        return NULL;
    memcpy(whole, n->base, n_base);
    memcpy(whole + n_base, n->ref + 1, len);
    from = to = whole + n_base;
    while (*from) {
        int hi = from[0] == '%' ? rv_hex_digit(from[1]) : -1;
        int lo = hi >= 0 ? rv_hex_digit(from[2]) : -1;
        if (lo >= 0 && (hi || lo)) {
            *to++ = (char)(hi * 16 + lo);
            from += 3;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
    return whole;
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
        rv_err_set_hint(c->err, "did you mean \"#%s\"?", best);
}

/* The schema whose $id or $anchor the reference names. NULL: none. */
static struct rv_schema_node *named(struct rv_schema_compiler *c, const struct rv_schema_node *n)
{
    bool is_anchor = n->ref[0] == '#' && n->ref[1] && n->ref[1] != '/';
    size_t len = strlen(n->ref);

    if (!is_anchor && n->ref[0] == '#')
        return NULL;
    if (len > 1 && n->ref[len - 1] == '#')
        len--;
    for (size_t i = 0; i < c->n_nodes; i++) {
        struct rv_schema_node *other = c->nodes[i];
        if (is_anchor ? other->anchor && strcmp(other->anchor, n->ref + 1) == 0 && strcmp(other->base, n->base) == 0
                      : other->id && rv_str_is((rv_str){n->ref, len}, other->id))
            return other;
    }
    return NULL;
}

static int resolve(struct rv_schema_compiler *c, struct rv_schema_node *n)
{
    const char *pointer;
    int i;

    n->target = named(c, n);
    if (n->target)
        return 0;
    if (n->ref[0] != '#' && c->is_foreign)
        return 0;
    if (n->ref[0] != '#') {
        int rc = RV_SCHEMA_FAIL(c, n->pointer, "$ref \"%s\" leads out of the document", n->ref);
        rv_err_set_hint(c->err, "references look like \"#/$defs/name\"");
        return rc;
    }
    pointer = pointer_of_ref(c, n);
    if (!pointer)
        return tools_schema_nomem(c);
    i = rv_index_get(&c->by_pointer, rv_str_of(pointer));
    if (i < 0 && c->is_foreign)
        return 0;
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
    if (n->target && n->target->mark == MARK_OPEN && c->is_foreign)
        n->target = NULL;
    if (n->target)
        rc = find_cycle(c, n->target);
    struct rv_schema_node *const same[] = {n->not_schema, n->if_schema, n->then_schema, n->else_schema};
    for (size_t i = 0; rc == 0 && i < RV_COUNT(same); i++)
        rc = same[i] ? find_cycle(c, same[i]) : 0;
    for (const struct rv_schema_dependent *d = n->dependents; rc == 0 && d; d = d->next)
        rc = d->schema ? find_cycle(c, d->schema) : 0;
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

/* Schemas made of schemas: $ref, allOf, anyOf, oneOf, not. Alternatives are asked quietly; when none fits, the message
 * is about the one that was probably meant. */

typedef struct rv_schema_node node;
typedef struct rv_schema_path path;

bool tools_schema_fits(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    bool ok;

    c->quiet++;
    ok = tools_schema_check_node(c, n, v, at);
    c->quiet--;
    return ok;
}

static const node *behind_refs(const node *n)
{
    while (n->target && !n->types)
        n = n->target; /* ends: linking refused cycles */
    return n;
}

static void say_alternatives(struct rv_schema_check *c, const struct rv_schema_list *list, json_object *v,
                             const path *at)
{
    unsigned types = 0;
    size_t i;
    rv_buf line;

    if (!tools_schema_begin_fault(c, at, &line))
        return;
    rv_buf_puts(&line, "expected ");
    for (i = 0; i < list->n; i++)
        types |= behind_refs(list->items[i])->types;
    if (types && !(types & tools_schema_types_of(v))) {
        tools_schema_write_types(types, &line);
    } else {
        for (i = 0; i < list->n; i++) {
            if (i)
                rv_buf_puts(&line, ", or ");
            tools_schema_write_expected(list->items[i], &line);
        }
    }
    tools_schema_fault_found(c, &line, v);
}

/* The alternative that v was most likely meant to be: the one that found fault deepest inside v, else the only one that
 * takes values of its type. NULL: none stands out. */
static const node *nearest_alternative(struct rv_schema_check *c, const struct rv_schema_list *list, json_object *v,
                                       const path *at)
{
    const node *deepest = NULL, *typed = NULL;
    int depth = at->depth, before = c->deepest, n_typed = 0;
    size_t i;

    for (i = 0; i < list->n && !c->rc; i++) {
        c->deepest = 0;
        if (!tools_schema_fits(c, list->items[i], v, at) && c->deepest > depth) {
            depth = c->deepest;
            deepest = list->items[i];
        }
        if (behind_refs(list->items[i])->types & tools_schema_types_of(v)) {
            typed = list->items[i];
            n_typed++;
        }
    }
    c->deepest = before;
    return deepest ? deepest : n_typed == 1 ? typed : NULL;
}

static bool fault_no_alternative(struct rv_schema_check *c, const struct rv_schema_list *list, json_object *v,
                                 const path *at)
{
    const node *nearest = c->quiet ? NULL : nearest_alternative(c, list, v, at);

    if (nearest)
        return tools_schema_check_node(c, nearest, v, at);
    say_alternatives(c, list, v, at);
    return false;
}

static bool check_any_of(struct rv_schema_check *c, const struct rv_schema_list *list, json_object *v, const path *at)
{
    size_t i;

    for (i = 0; i < list->n && !c->rc; i++)
        if (tools_schema_fits(c, list->items[i], v, at))
            return true;
    return fault_no_alternative(c, list, v, at);
}

static bool check_one_of(struct rv_schema_check *c, const struct rv_schema_list *list, json_object *v, const path *at)
{
    size_t i, n_fit = 0;
    rv_buf line;

    for (i = 0; i < list->n && !c->rc; i++)
        n_fit += tools_schema_fits(c, list->items[i], v, at);
    if (n_fit == 1 || (n_fit > 1 && tools_schema_has_hole(c, v)))
        return true;
    if (n_fit == 0)
        return fault_no_alternative(c, list, v, at);
    if (!tools_schema_begin_fault(c, at, &line))
        return false;
    rv_buf_printf(&line, "expected to fit exactly one of %zu alternatives, fits %zu", list->n, n_fit);
    return tools_schema_end_fault(c, &line);
}

static bool check_not(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    bool fits = tools_schema_fits(c, n->not_schema, v, at);
    rv_buf line;

    if (!fits || c->rc || tools_schema_has_hole(c, v))
        return !c->rc;
    if (!tools_schema_begin_fault(c, at, &line))
        return false;
    rv_buf_puts(&line, "expected anything but ");
    tools_schema_write_expected(n->not_schema, &line);
    return tools_schema_fault_found(c, &line, v);
}

bool tools_schema_check_combined(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    bool ok = !n->target || tools_schema_check_node(c, n->target, v, at);
    size_t i;

    for (i = 0; i < n->all_of.n && (ok || !c->quiet); i++)
        if (!tools_schema_check_node(c, n->all_of.items[i], v, at))
            ok = false;
    if (n->any_of.n && (ok || !c->quiet) && !check_any_of(c, &n->any_of, v, at))
        ok = false;
    if (n->one_of.n && (ok || !c->quiet) && !check_one_of(c, &n->one_of, v, at))
        ok = false;
    if (n->not_schema && (ok || !c->quiet) && !check_not(c, n, v, at))
        ok = false;
    return ok;
}

/* --- Life and defaults --- */

static void compiler_fini(struct rv_schema_compiler *c)
{
    free(c->nodes);
    rv_index_fini(&c->by_pointer);
}

/* c has its err, and what it is for. */
static int compile(struct rv_schema_compiler c, json_object *schema, const char *what, rv_schema **out)
{
    rv_err **err = c.err;
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
    rc = tools_schema_compile_root(&c);
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

int rv_schema_compile(json_object *schema, const char *what, rv_schema **out, rv_err **err)
{
    return compile((struct rv_schema_compiler){.err = err}, schema, what, out);
}

int tools_schema_compile_at(json_object *schema, const char *what, struct tools_schema_mistake *fault, rv_schema **out,
                            rv_err **err)
{
    return compile((struct rv_schema_compiler){.fault = fault, .err = err}, schema, what, out);
}

int rv_schema_compile_foreign(json_object *schema, const char *what, rv_schema **out, rv_err **err)
{
    return compile((struct rv_schema_compiler){.is_foreign = true, .err = err}, schema, what, out);
}

void rv_schema_free(rv_schema *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_patterns; i++)
        rv_pattern_free(s->patterns[i]);
    free(s->patterns);
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
