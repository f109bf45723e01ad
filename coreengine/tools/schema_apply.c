/* Schemas that apply to some members only, or under a condition: patternProperties, propertyNames, contains,
 * dependentRequired, dependentSchemas, if; and what no keyword has looked at: unevaluatedItems, unevaluatedProperties.
 */
#include <json-c/linkhash.h>
#include <stdlib.h>

#include "coreengine/tools/schema_internal.h"

typedef struct rv_schema_node node;
typedef struct rv_schema_path path;

bool tools_schema_matches(struct rv_schema_check *c, const rv_pattern *p, rv_str text)
{
    bool found = false;

    if (c->rc)
        return false;
    c->rc = rv_pattern_test(p, text, &c->steps, &found, &c->failed);
    return found && !c->rc;
}

bool tools_schema_has_pattern_for(struct rv_schema_check *c, const node *n, const char *name)
{
    for (const struct rv_schema_pattern_property *p = n->pattern_properties; p; p = p->next)
        if (tools_schema_matches(c, p->pattern, rv_str_of(name)))
            return true;
    return false;
}

static bool check_pattern_properties(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    bool ok = true;

    json_object_object_foreach (v, key, child) {
        path here = {at, key, 0, at->depth + 1};
        for (const struct rv_schema_pattern_property *p = n->pattern_properties; p && (ok || !c->quiet); p = p->next)
            if (tools_schema_matches(c, p->pattern, rv_str_of(key)) &&
                !tools_schema_check_node(c, p->schema, child, &here))
                ok = false;
        if ((!ok && c->quiet) || c->rc)
            break;
    }
    return ok && !c->rc;
}

static bool check_names(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    bool ok = true;

    json_object_object_foreach (v, key, unused) {
        json_object *name = json_object_new_string(key);
        rv_buf line;
        (void)unused;
        if (!name)
            c->rc = RV_E_NOMEM;
        bool fits = !c->rc && tools_schema_fits(c, n->names, name, at);
        json_object_put(name);
        if (c->rc)
            return false;
        if (fits)
            continue;
        ok = false;
        if (!tools_schema_begin_fault(c, at, &line))
            break; /* a question: one fault is enough */
        rv_buf_printf(&line, "the name of property \"%s\" does not fit: expected ", key);
        tools_schema_write_expected(n->names, &line);
        tools_schema_end_fault(c, &line);
    }
    return ok;
}

static bool check_dependent(struct rv_schema_check *c, const struct rv_schema_dependent *d, json_object *v,
                            const path *at)
{
    size_t n = d->required ? json_object_array_length(d->required) : 0;
    bool ok = true;

    for (size_t i = 0; i < n && (ok || !c->quiet); i++) {
        json_object *name = json_object_array_get_idx(d->required, i);
        rv_buf line;
        if (json_object_object_get_ex(v, json_object_get_string(name), NULL))
            continue;
        ok = false;
        if (!tools_schema_begin_fault(c, at, &line))
            continue;
        rv_buf_printf(&line, "missing property \"%s\", which \"%s\" requires", json_object_get_string(name), d->name);
        tools_schema_end_fault(c, &line);
    }
    if (d->schema && (ok || !c->quiet) && !tools_schema_check_node(c, d->schema, v, at))
        ok = false;
    return ok;
}

static bool check_contains(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    size_t n_fit = 0, len = json_object_array_length(v);
    bool is_few;
    rv_buf line;

    for (size_t i = 0; i < len && !c->rc; i++) {
        path here = {at, NULL, i, at->depth + 1};
        n_fit += tools_schema_fits(c, n->contains, json_object_array_get_idx(v, i), &here);
    }
    is_few = n_fit < n->contains_range.min;
    if (c->rc || (!is_few && (n_fit <= n->contains_range.max || tools_schema_has_hole(c, v))))
        return !c->rc;
    if (!tools_schema_begin_fault(c, at, &line))
        return false;
    rv_buf_printf(&line, "expected at %s %zu items that are ", is_few ? "least" : "most",
                  is_few ? n->contains_range.min : n->contains_range.max);
    tools_schema_write_expected(n->contains, &line);
    rv_buf_printf(&line, ", found %zu", n_fit);
    return tools_schema_end_fault(c, &line);
}

static bool check_object(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    bool ok = true;

    if (n->pattern_properties && !check_pattern_properties(c, n, v, at))
        ok = false;
    if (n->names && (ok || !c->quiet) && !check_names(c, n, v, at))
        ok = false;
    for (const struct rv_schema_dependent *d = n->dependents; d && (ok || !c->quiet); d = d->next)
        if (json_object_object_get_ex(v, d->name, NULL) && !check_dependent(c, d, v, at))
            ok = false;
    return ok;
}

bool tools_schema_check_applied(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    bool ok = true;

    if (json_object_is_type(v, json_type_object))
        ok = check_object(c, n, v, at);
    if (n->contains && json_object_is_type(v, json_type_array))
        ok = check_contains(c, n, v, at);
    if (n->if_schema && (n->then_schema || n->else_schema) && (ok || !c->quiet) && !c->rc) {
        bool fits = tools_schema_fits(c, n->if_schema, v, at);
        const node *next = fits ? n->then_schema : n->else_schema;
        bool may_be_other = fits && tools_schema_has_hole(c, v); /* then else counts, too */
        if (may_be_other && (!n->else_schema || tools_schema_fits(c, n->else_schema, v, at)))
            next = NULL;
        if (next && !c->rc && !tools_schema_check_node(c, next, v, at))
            ok = false;
    }
    return ok && !c->rc;
}

/* --- what no keyword has looked at --- */

/* Members of an object or array by their position, marked when a keyword has looked at them. */
struct seen {
    bool *member; /* owned */
    size_t n;
};

static void see_all(struct seen *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->member[i] = true;
}

static void see(struct rv_schema_check *c, const node *n, json_object *v, const path *at, struct seen *s);

/* Schemas that look at the value itself: each that it fits. */
static void see_if_fits(struct rv_schema_check *c, const node *n, json_object *v, const path *at, struct seen *s)
{
    if (n && !c->rc && tools_schema_fits(c, n, v, at))
        see(c, n, v, at, s);
}

static void see_list(struct rv_schema_check *c, const struct rv_schema_list *list, json_object *v, const path *at,
                     struct seen *s)
{
    for (size_t i = 0; i < list->n; i++)
        see_if_fits(c, list->items[i], v, at, s);
}

static void see_properties(struct rv_schema_check *c, const node *n, json_object *v, struct seen *s)
{
    size_t i = 0;

    if (n->additional || n->unevaluated_properties)
        see_all(s);
    json_object_object_foreach (v, key, unused) {
        (void)unused;
        if (!s->member[i] && ((n->property_names && json_object_object_get_ex(n->property_names, key, NULL)) ||
                              tools_schema_has_pattern_for(c, n, key)))
            s->member[i] = true;
        i++;
    }
}

static void see_items(struct rv_schema_check *c, const node *n, json_object *v, const path *at, struct seen *s)
{
    if (n->items || n->unevaluated_items)
        see_all(s);
    for (size_t i = 0; i < s->n && i < n->prefix_items.n; i++)
        s->member[i] = true;
    for (size_t i = 0; i < s->n && n->contains && !c->rc; i++) {
        path here = {at, NULL, i, at->depth + 1};
        if (!s->member[i] && tools_schema_fits(c, n->contains, json_object_array_get_idx(v, i), &here))
            s->member[i] = true;
    }
}

static void see(struct rv_schema_check *c, const node *n, json_object *v, const path *at, struct seen *s)
{
    bool is_object = json_object_is_type(v, json_type_object);

    if (is_object)
        see_properties(c, n, v, s);
    else
        see_items(c, n, v, at, s);
    see_if_fits(c, n->target, v, at, s);
    see_list(c, &n->all_of, v, at, s);
    see_list(c, &n->any_of, v, at, s);
    see_list(c, &n->one_of, v, at, s);
    if (n->if_schema && tools_schema_fits(c, n->if_schema, v, at)) {
        see(c, n->if_schema, v, at, s);
        see_if_fits(c, n->then_schema, v, at, s);
    } else if (n->if_schema) {
        see_if_fits(c, n->else_schema, v, at, s);
    }
    for (const struct rv_schema_dependent *d = n->dependents; d && is_object; d = d->next)
        if (d->schema && json_object_object_get_ex(v, d->name, NULL))
            see_if_fits(c, d->schema, v, at, s);
}

static bool fault_unseen(struct rv_schema_check *c, const char *key, size_t i, const path *at)
{
    rv_buf line;

    if (!tools_schema_begin_fault(c, at, &line))
        return false;
    if (key) {
        c->fault.kind = RV_SCHEMA_FAULT_UNKNOWN;
        c->fault.name = key;
        rv_buf_printf(&line, "unknown property \"%s\"", key);
    } else {
        rv_buf_printf(&line, "unexpected item %zu", i);
    }
    return tools_schema_end_fault(c, &line);
}

static bool check_unseen(struct rv_schema_check *c, const node *rest, const char *key, size_t i, json_object *child,
                         const path *at)
{
    path here = {at, key, i, at->depth + 1};

    return rest->is_never ? fault_unseen(c, key, i, at) : tools_schema_check_node(c, rest, child, &here);
}

bool tools_schema_check_unevaluated(struct rv_schema_check *c, const node *n, json_object *v, const path *at)
{
    bool is_object = json_object_is_type(v, json_type_object);
    const node *rest = is_object                                 ? n->unevaluated_properties
                       : json_object_is_type(v, json_type_array) ? n->unevaluated_items
                                                                 : NULL;
    struct seen s = {0};
    bool ok = true;
    size_t i = 0;

    if (!rest || c->rc || tools_schema_has_hole(c, v)) /* which alternatives have looked depends on the hole */
        return !c->rc;
    s.n = is_object ? (size_t)json_object_object_length(v) : json_object_array_length(v);
    s.member = calloc(s.n + 1, sizeof *s.member);
    if (!s.member) {
        c->rc = RV_E_NOMEM;
        return false;
    }
    node others = *n; /* without the keyword itself, which would see all */
    others.unevaluated_properties = others.unevaluated_items = NULL;
    see(c, &others, v, at, &s);
    if (is_object) {
        json_object_object_foreach (v, key, child) {
            if (!c->rc && (ok || !c->quiet) && !s.member[i] && !check_unseen(c, rest, key, i, child, at))
                ok = false;
            i++;
        }
    }
    for (; !is_object && i < s.n && !c->rc && (ok || !c->quiet); i++)
        if (!s.member[i] && !check_unseen(c, rest, NULL, i, json_object_array_get_idx(v, i), at))
            ok = false;
    free(s.member);
    return ok && !c->rc;
}
