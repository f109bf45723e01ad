/* Schemas made of schemas: $ref, allOf, anyOf, oneOf, not. Alternatives are asked quietly; when none fits, the message
 * is about the one that was probably meant. */
#include "coreengine/tools/schema_internal.h"

typedef struct rv_schema_node node;
typedef struct rv_schema_path path;

bool rv_schema_fits(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    bool ok;

    c->quiet++;
    ok = rv_schema_check_node(c, n, v, at);
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

    if (!rv_schema_begin_fault(c, at, &line))
        return;
    rv_buf_puts(&line, "expected ");
    for (i = 0; i < list->n; i++)
        types |= behind_refs(list->items[i])->types;
    if (types && !(types & rv_schema_types_of(v))) {
        rv_schema_write_types(types, &line);
    } else {
        for (i = 0; i < list->n; i++) {
            if (i)
                rv_buf_puts(&line, ", or ");
            rv_schema_write_expected(list->items[i], &line);
        }
    }
    rv_schema_fault_found(c, &line, v);
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
        if (!rv_schema_fits(c, list->items[i], v, at) && c->deepest > depth) {
            depth = c->deepest;
            deepest = list->items[i];
        }
        if (behind_refs(list->items[i])->types & rv_schema_types_of(v)) {
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
        return rv_schema_check_node(c, nearest, v, at);
    say_alternatives(c, list, v, at);
    return false;
}

static bool check_any_of(struct rv_schema_check *c, const struct rv_schema_list *list, json_object *v, const path *at)
{
    size_t i;

    for (i = 0; i < list->n && !c->rc; i++)
        if (rv_schema_fits(c, list->items[i], v, at))
            return true;
    return fault_no_alternative(c, list, v, at);
}

static bool check_one_of(struct rv_schema_check *c, const struct rv_schema_list *list, json_object *v, const path *at)
{
    size_t i, n_fit = 0;
    rv_buf line;

    for (i = 0; i < list->n && !c->rc; i++)
        n_fit += rv_schema_fits(c, list->items[i], v, at);
    if (n_fit == 1)
        return true;
    if (n_fit == 0)
        return fault_no_alternative(c, list, v, at);
    if (!rv_schema_begin_fault(c, at, &line))
        return false;
    rv_buf_printf(&line, "expected to fit exactly one of %zu alternatives, fits %zu", list->n, n_fit);
    return rv_schema_end_fault(c, &line);
}

static bool check_not(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    bool fits = rv_schema_fits(c, n->not_schema, v, at);
    rv_buf line;

    if (!fits || c->rc)
        return !c->rc;
    if (!rv_schema_begin_fault(c, at, &line))
        return false;
    rv_buf_puts(&line, "expected anything but ");
    rv_schema_write_expected(n->not_schema, &line);
    return rv_schema_fault_found(c, &line, v);
}

bool rv_schema_check_combined(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    bool ok = !n->target || rv_schema_check_node(c, n->target, v, at);
    size_t i;

    for (i = 0; i < n->all_of.n && (ok || !c->quiet); i++)
        if (!rv_schema_check_node(c, n->all_of.items[i], v, at))
            ok = false;
    if (n->any_of.n && (ok || !c->quiet) && !check_any_of(c, &n->any_of, v, at))
        ok = false;
    if (n->one_of.n && (ok || !c->quiet) && !check_one_of(c, &n->one_of, v, at))
        ok = false;
    if (n->not_schema && (ok || !c->quiet) && !check_not(c, n, v, at))
        ok = false;
    return ok;
}
