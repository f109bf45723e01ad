/* A value against a compiled schema. Two modes: a quiet question (alternatives), which ends at the first fault, and the
 * loud run, which lists every fault with its place. A value that fits costs no allocation. */
#include <json-c/linkhash.h>

#include "coreengine/tools/schema_internal.h"

typedef struct rv_schema_node node;
typedef struct rv_schema_path path;

static bool check_node(struct rv_schema_check *c, const node *n, json_object *v, const path *at);

/* all that fit: 1 is an integer and a number */
static unsigned types_of(json_object *v)
{
    switch (json_object_get_type(v)) {
    case json_type_null:
        return RV_SCHEMA_NULL;
    case json_type_boolean:
        return RV_SCHEMA_BOOLEAN;
    case json_type_int:
        return RV_SCHEMA_INTEGER | RV_SCHEMA_NUMBER;
    case json_type_double:
        return rv_schema_is_integral(v) ? RV_SCHEMA_INTEGER | RV_SCHEMA_NUMBER : RV_SCHEMA_NUMBER;
    case json_type_string:
        return RV_SCHEMA_STRING;
    case json_type_array:
        return RV_SCHEMA_ARRAY;
    case json_type_object:
        break;
    }
    return RV_SCHEMA_OBJECT;
}

/* Schemas made of schemas: $ref, allOf, anyOf, oneOf, not. Alternatives are asked quietly; when none fits, the message
 * is about the one that was probably meant. */

static bool fits_quietly(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    bool ok;

    c->quiet++;
    ok = check_node(c, n, v, at);
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
    if (types && !(types & types_of(v))) {
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
        if (!fits_quietly(c, list->items[i], v, at) && c->deepest > depth) {
            depth = c->deepest;
            deepest = list->items[i];
        }
        if (behind_refs(list->items[i])->types & types_of(v)) {
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
        return check_node(c, nearest, v, at);
    say_alternatives(c, list, v, at);
    return false;
}

static bool check_any_of(struct rv_schema_check *c, const struct rv_schema_list *list, json_object *v, const path *at)
{
    size_t i;

    for (i = 0; i < list->n && !c->rc; i++)
        if (fits_quietly(c, list->items[i], v, at))
            return true;
    return fault_no_alternative(c, list, v, at);
}

static bool check_one_of(struct rv_schema_check *c, const struct rv_schema_list *list, json_object *v, const path *at)
{
    size_t i, n_fit = 0;
    rv_buf line;

    for (i = 0; i < list->n && !c->rc; i++)
        n_fit += fits_quietly(c, list->items[i], v, at);
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
    bool fits = fits_quietly(c, n->not_schema, v, at);
    rv_buf line;

    if (!fits || c->rc)
        return !c->rc;
    if (!rv_schema_begin_fault(c, at, &line))
        return false;
    rv_buf_puts(&line, "expected anything but ");
    rv_schema_write_expected(n->not_schema, &line);
    return rv_schema_fault_found(c, &line, v);
}

/* $ref, allOf, anyOf, oneOf, not. */
static bool check_combined(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    bool ok = !n->target || check_node(c, n->target, v, at);
    size_t i;

    for (i = 0; i < n->all_of.n && (ok || !c->quiet); i++)
        if (!check_node(c, n->all_of.items[i], v, at))
            ok = false;
    if (n->any_of.n && (ok || !c->quiet) && !check_any_of(c, &n->any_of, v, at))
        ok = false;
    if (n->one_of.n && (ok || !c->quiet) && !check_one_of(c, &n->one_of, v, at))
        ok = false;
    if (n->not_schema && (ok || !c->quiet) && !check_not(c, n, v, at))
        ok = false;
    return ok;
}

/* --- Values --- */

#define MAX_NAMES 64 /* property names that a misspelt one is compared with */

static bool give_up(struct rv_schema_check *c)
{
    if (!c->rc)
        c->rc = RV_E_LIMIT;
    return false;
}

static bool fault_bound(struct rv_schema_check *c, const path *at, const char *expected, json_object *bound,
                        json_object *v)
{
    rv_buf line;

    if (!rv_schema_begin_fault(c, at, &line))
        return false;
    rv_buf_printf(&line, "expected %s ", expected);
    rv_schema_write_value(bound, &line);
    return rv_schema_fault_found(c, &line, v);
}

static bool check_range(struct rv_schema_check *c, const struct rv_schema_range *range, size_t n, const char *unit,
                        const path *at)
{
    bool is_low = n < range->min;
    size_t bound = is_low ? range->min : range->max;
    rv_buf line;

    if (!is_low && n <= range->max)
        return true;
    if (!rv_schema_begin_fault(c, at, &line))
        return false;
    rv_buf_printf(&line, "expected at %s %zu %s, found %zu", is_low ? "least" : "most", bound, unit, n);
    return rv_schema_end_fault(c, &line);
}

static size_t n_characters(rv_str s)
{
    size_t i, n = 0;

    for (i = 0; i < s.len; i++)
        n += ((unsigned char)s.ptr[i] & 0xC0) != 0x80;
    return n;
}

static bool fault_format(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    rv_buf line;

    if (!rv_schema_begin_fault(c, at, &line))
        return false;
    rv_buf_printf(&line, "expected %s such as \"%s\"", n->format->name, n->format->example);
    return rv_schema_fault_found(c, &line, v);
}

static bool check_string(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    bool ok = true;

    if (n->length.min > 0 || n->length.max < SIZE_MAX)
        ok = check_range(c, &n->length, n_characters(rv_json_str(v)), "characters", at);
    if (n->format && !n->format->fits(rv_json_str(v)))
        ok = fault_format(c, n, v, at);
    return ok;
}

static bool check_number(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    bool ok = true;

    if (n->minimum && rv_schema_number_cmp(v, n->minimum) < 0)
        ok = fault_bound(c, at, "at least", n->minimum, v);
    if (n->maximum && rv_schema_number_cmp(v, n->maximum) > 0)
        ok = fault_bound(c, at, "at most", n->maximum, v);
    if (n->exclusive_minimum && rv_schema_number_cmp(v, n->exclusive_minimum) <= 0)
        ok = fault_bound(c, at, "more than", n->exclusive_minimum, v);
    if (n->exclusive_maximum && rv_schema_number_cmp(v, n->exclusive_maximum) >= 0)
        ok = fault_bound(c, at, "less than", n->exclusive_maximum, v);
    if (n->multiple_of && !rv_schema_is_multiple(v, n->multiple_of))
        ok = fault_bound(c, at, "a multiple of", n->multiple_of, v);
    return ok;
}

static bool check_unique(struct rv_schema_check *c, json_object *v, const path *at)
{
    size_t pair[2];
    bool found;
    rv_buf line;

    if (rv_schema_find_equal(v, &c->steps, &found, pair) < 0) {
        c->rc = RV_E_NOMEM;
        return false;
    }
    if (c->steps == 0)
        return give_up(c);
    if (!found)
        return true;
    if (!rv_schema_begin_fault(c, at, &line))
        return false;
    rv_buf_printf(&line, "expected no equal items, items %zu and %zu are equal", pair[0], pair[1]);
    return rv_schema_end_fault(c, &line);
}

static bool check_array(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    size_t i, len = json_object_array_length(v);
    bool ok = check_range(c, &n->items_range, len, "items", at);

    if (n->unique_items && !check_unique(c, v, at))
        ok = false;
    if (!n->items && !n->prefix_items.n)
        return ok;
    for (i = 0; i < len && (ok || !c->quiet) && !c->rc; i++) {
        const node *item = i < n->prefix_items.n ? n->prefix_items.items[i] : n->items;
        path here = {at, NULL, i, at->depth + 1};
        if (!item)
            break;
        if (!check_node(c, item, json_object_array_get_idx(v, i), &here))
            ok = false;
    }
    return ok;
}

static bool fault_missing(struct rv_schema_check *c, json_object *name, const path *at)
{
    rv_buf line;

    if (!rv_schema_begin_fault(c, at, &line))
        return false;
    rv_buf_puts(&line, "missing required property ");
    rv_schema_write_value(name, &line);
    return rv_schema_end_fault(c, &line);
}

static bool fault_unknown(struct rv_schema_check *c, const node *n, const char *name, const path *at)
{
    const char *names[MAX_NAMES], *near;
    const struct lh_entry *e;
    size_t n_names = 0;
    rv_buf line;

    if (!rv_schema_begin_fault(c, at, &line))
        return false;
    rv_buf_printf(&line, "unknown property \"%s\"", name);
    if (n->property_names)
        for (e = lh_table_head(json_object_get_object(n->property_names)); e && n_names < MAX_NAMES;
             e = lh_entry_next(e))
            names[n_names++] = lh_entry_k(e);
    near = rv_nearest(rv_str_of(name), names, n_names);
    if (near)
        rv_buf_printf(&line, " (did you mean \"%s\"?)", near);
    return rv_schema_end_fault(c, &line);
}

static bool check_additional(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    bool ok = true;

    json_object_object_foreach (v, key, child) {
        path here = {at, key, 0, at->depth + 1};
        if (n->property_names && json_object_object_get_ex(n->property_names, key, NULL))
            continue;
        if (n->additional->is_never ? !fault_unknown(c, n, key, at) : !check_node(c, n->additional, child, &here))
            ok = false;
        if ((!ok && c->quiet) || c->rc)
            break;
    }
    return ok;
}

static bool check_properties(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    const struct lh_entry *e = lh_table_head(json_object_get_object(n->property_names));
    size_t i,
        left =
            (size_t)json_object_object_length(v); /* checking a small value against a large schema is not much work */
    bool ok = true;

    for (i = 0; e && left > 0 && (ok || !c->quiet) && !c->rc; e = lh_entry_next(e), i++) {
        path here = {at, lh_entry_k(e), 0, at->depth + 1};
        json_object *child;
        if (!json_object_object_get_ex(v, here.key, &child))
            continue;
        left--;
        if (!check_node(c, n->properties.items[i], child, &here))
            ok = false;
    }
    return ok;
}

static bool check_object(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    bool ok = check_range(c, &n->properties_range, (size_t)json_object_object_length(v), "properties", at);
    size_t i, n_required = n->required ? json_object_array_length(n->required) : 0;

    for (i = 0; i < n_required && (ok || !c->quiet); i++) {
        json_object *name = json_object_array_get_idx(n->required, i);
        if (!json_object_object_get_ex(v, json_object_get_string(name), NULL))
            ok = fault_missing(c, name, at);
    }
    if (n->property_names && (ok || !c->quiet) && !check_properties(c, n, v, at))
        ok = false;
    /* `true` and `{}` ask nothing, yet walking the keys for them is cheap enough. */
    if (n->additional && (ok || !c->quiet) && !check_additional(c, n, v, at))
        ok = false;
    return ok;
}

static bool check_enum(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    size_t i;

    for (i = 0; i < json_object_array_length(n->enum_values); i++)
        if (rv_json_equal(json_object_array_get_idx(n->enum_values, i), v))
            return true;
    return rv_schema_fault_expected(c, at, n, v);
}

static bool check_by_type(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    switch (json_object_get_type(v)) {
    case json_type_int:
    case json_type_double:
        return check_number(c, n, v, at);
    case json_type_string:
        return check_string(c, n, v, at);
    case json_type_array:
        return check_array(c, n, v, at);
    case json_type_object:
        return check_object(c, n, v, at);
    case json_type_null:
    case json_type_boolean:
        break;
    }
    return true;
}

static bool fault_type(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    rv_buf line;

    if (!rv_schema_begin_fault(c, at, &line))
        return false;
    rv_buf_puts(&line, "expected ");
    rv_schema_write_types(n->types, &line);
    return rv_schema_fault_found(c, &line, v);
}

static bool check_rules(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    bool ok;

    if (n->is_never)
        return rv_schema_fault_expected(c, at, n, v);
    if (n->types && !(n->types & types_of(v)))
        return fault_type(c, n, v, at); /* whatever else is asked follows from the type */
    if (n->has_const && !rv_json_equal(n->const_value, v))
        return rv_schema_fault_expected(c, at, n, v);
    if (n->enum_values && !check_enum(c, n, v, at))
        return false;
    ok = check_by_type(c, n, v, at);
    if ((ok || !c->quiet) && !check_combined(c, n, v, at))
        ok = false;
    return ok;
}

/* Tells whether v fits; faults go into c. */
static bool check_node(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    bool ok;

    if (c->rc)
        return false;
    if (c->steps == 0 || c->nesting == RV_SCHEMA_MAX_NESTING)
        return give_up(c);
    c->steps--;
    c->nesting++;
    ok = check_rules(c, n, v, at);
    c->nesting--;
    return ok && !c->rc;
}

int rv_schema_check(const rv_schema *s, json_object *value, rv_err **err)
{
    struct rv_schema_check c = {.text = RV_BUF_INIT(RV_SCHEMA_MAX_TEXT), .steps = RV_SCHEMA_MAX_STEPS};
    path top = {NULL, NULL, 0, 0};
    bool ok = check_node(&c, s->root, value, &top);
    int rc = 0;

    if (c.rc == RV_E_NOMEM)
        rc = RV_FAIL(err, RV_E_NOMEM, "%s: no memory to check it against its schema", s->what);
    else if (c.rc)
        rc = RV_FAIL(err, c.rc, "%s: checking it against its schema takes more than %zu steps or %d levels", s->what,
                     RV_SCHEMA_MAX_STEPS, RV_SCHEMA_MAX_NESTING);
    else if (!ok && c.n_faults > c.n_listed)
        rc = RV_FAIL(err, RV_E_INVALID, "%s: %s; and %zu more", s->what, c.text.len ? c.text.ptr : "",
                     c.n_faults - c.n_listed);
    else if (!ok)
        rc = RV_FAIL(err, RV_E_INVALID, "%s: %s", s->what, c.text.ptr);
    rv_buf_fini(&c.text);
    return rc;
}
