/* The macros that run an expression for every element of a list or every key of a map. */
#include "coreengine/lang/expr_internal.h"

/* The elements of a range, one after the other. */
struct walk {
    struct rv_value range;
    size_t i;
    const void *pos;
};

static bool next_element(struct walk *w, struct rv_value *out)
{
    struct rv_value unused;

    if (w->range.type == RV_T_MAP)
        return rv_value_next_pair(&w->range, &w->pos, out, &unused);
    if (w->i == rv_value_size(&w->range))
        return false;
    *out = rv_value_at(&w->range, w->i++);
    return true;
}

/* The condition for the element in the slot. A fault, a wrong type included, is left in ev->fault. */
static int run_condition(struct rv_eval *ev, const struct rv_node *n, bool *out)
{
    struct rv_value v = {.type = RV_T_NULL};

    if (rv_ev_run(ev, n->b, &v) < 0)
        return -1;
    if (v.type != RV_T_BOOL)
        return rv_ev_fault_types(ev, n, &v, NULL);
    *out = v.as.b;
    return 0;
}

/* all and exists are chains of && and ||: an element that decides outweighs elements that fail. */
static int run_quantifier(struct rv_eval *ev, const struct rv_node *n, struct walk *w, struct rv_value *out)
{
    bool decisive = n->macro == RV_MACRO_EXISTS, yes = false;
    struct rv_fault_record first = {.kind = RV_FAULT_NONE};

    while (next_element(w, &ev->slots[n->slot])) {
        int rc = run_condition(ev, n, &yes);

        if (rc < 0 && RV_FAULT_IS_FATAL(ev->fault.kind))
            return rc;
        if (rc < 0 && first.kind == RV_FAULT_NONE)
            first = ev->fault;
        if (rc == 0 && yes == decisive) {
            *out = (struct rv_value){.type = RV_T_BOOL, .as.b = decisive};
            return 0;
        }
    }
    if (first.kind != RV_FAULT_NONE) {
        ev->fault = first;
        return -1;
    }
    *out = (struct rv_value){.type = RV_T_BOOL, .as.b = !decisive};
    return 0;
}

static int run_exists_one(struct rv_eval *ev, const struct rv_node *n, struct walk *w, struct rv_value *out)
{
    size_t count = 0;
    bool yes = false;

    while (next_element(w, &ev->slots[n->slot])) {
        if (run_condition(ev, n, &yes) < 0)
            return -1;
        count += yes;
    }
    *out = (struct rv_value){.type = RV_T_BOOL, .as.b = count == 1};
    return 0;
}

static int run_list(struct rv_eval *ev, const struct rv_node *n, struct walk *w, struct rv_value *out)
{
    struct rv_value *items = rv_ev_alloc(ev, n, (rv_value_size(&w->range) + 1) * sizeof(*items));
    size_t count = 0;
    bool yes = true;

    if (!items)
        return -1;
    while (next_element(w, &ev->slots[n->slot])) {
        struct rv_value element = ev->slots[n->slot];

        if (n->b && run_condition(ev, n, &yes) < 0)
            return -1;
        if (!yes)
            continue;
        if (n->c && rv_ev_run(ev, n->c, &element) < 0)
            return -1;
        items[count++] = element;
    }
    *out = (struct rv_value){.type = RV_T_LIST, .as.items = {items, count}};
    return 0;
}

int rv_ev_macro(struct rv_eval *ev, const struct rv_node *n, struct rv_value *out)
{
    struct walk w = {.i = 0};

    if (rv_ev_run(ev, n->a, &w.range) < 0)
        return -1;
    if (w.range.type != RV_T_LIST && w.range.type != RV_T_MAP)
        return rv_ev_fault_types(ev, n, &w.range, NULL);
    switch (n->macro) {
    case RV_MACRO_ALL:
    case RV_MACRO_EXISTS:
        return run_quantifier(ev, n, &w, out);
    case RV_MACRO_EXISTS_ONE:
        return run_exists_one(ev, n, &w, out);
    case RV_MACRO_FILTER:
    case RV_MACRO_MAP:
        break;
    }
    return run_list(ev, n, &w, out);
}
