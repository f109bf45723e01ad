/* Walking the tree. Values are passed by value and borrowed; what has to be built lives in an arena that dies with the
 * evaluation. The walk is as deep as the tree, which the parser bounds, and every node costs a step of work. */
#include <string.h>

#include "coreengine/lang/expr_internal.h"

/* --- The macros that run an expression for every element of a list or every key of a map --- */

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
        return lang_value_next_pair(&w->range, &w->pos, out, &unused);
    if (w->i == lang_value_size(&w->range))
        return false;
    *out = lang_value_at(&w->range, w->i++);
    return true;
}

/* The condition for the element in the slot. A fault, a wrong type included, is left in ev->fault. */
static int run_condition(struct rv_eval *ev, const struct rv_expr_node *n, bool *out)
{
    struct rv_value v = {.type = RV_T_NULL};

    if (lang_ev_run(ev, n->b, &v) < 0)
        return -1;
    if (v.type != RV_T_BOOL)
        return lang_ev_fault_types(ev, n, &v, NULL);
    *out = v.as.b;
    return 0;
}

/* all and exists are chains of && and ||: an element that decides outweighs elements that fail. */
static int run_quantifier(struct rv_eval *ev, const struct rv_expr_node *n, struct walk *w, struct rv_value *out)
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

static int run_exists_one(struct rv_eval *ev, const struct rv_expr_node *n, struct walk *w, struct rv_value *out)
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

static int run_list(struct rv_eval *ev, const struct rv_expr_node *n, struct walk *w, struct rv_value *out)
{
    struct rv_value *items = lang_ev_alloc(ev, n, (lang_value_size(&w->range) + 1) * sizeof(*items));
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
        if (n->c && lang_ev_run(ev, n->c, &element) < 0)
            return -1;
        items[count++] = element;
    }
    *out = (struct rv_value){.type = RV_T_LIST, .as.items = {items, count}};
    return 0;
}

static int ev_macro(struct rv_eval *ev, const struct rv_expr_node *n, struct rv_value *out)
{
    struct walk w = {.i = 0};

    if (lang_ev_run(ev, n->a, &w.range) < 0)
        return -1;
    if (w.range.type != RV_T_LIST && w.range.type != RV_T_MAP)
        return lang_ev_fault_types(ev, n, &w.range, NULL);
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

/* --- Nodes --- */

int lang_ev_fault(struct rv_eval *ev, enum rv_fault kind, const struct rv_expr_node *n)
{
    ev->fault = (struct rv_fault_record){.kind = kind, .node = n};
    return -1;
}

int lang_ev_fault_types(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *a,
                        const struct rv_value *b)
{
    ev->fault = (struct rv_fault_record){.kind = b ? RV_FAULT_TYPES : RV_FAULT_TYPE, .node = n, .a = *a};
    if (b)
        ev->fault.b = *b;
    return -1;
}

int lang_ev_work(struct rv_eval *ev, const struct rv_expr_node *n, size_t steps, size_t bytes)
{
    ev->work += steps + bytes / RV_EXPR_BYTES_PER_STEP;
    return ev->work > RV_EXPR_MAX_WORK ? lang_ev_fault(ev, RV_FAULT_WORK, n) : 0;
}

void *lang_ev_alloc(struct rv_eval *ev, const struct rv_expr_node *n, size_t size)
{
    void *p;

    if (size > RV_EXPR_MAX_MEMORY - ev->memory) {
        RV_IGNORE(lang_ev_fault(ev, RV_FAULT_MEMORY, n), "NULL tells the caller");
        return NULL;
    }
    ev->memory += size;
    if (!ev->arena)
        ev->arena = rv_arena_new(SIZE_MAX); /* the ceiling is ours, above: it has to be told from lack of memory */
    p = ev->arena ? rv_arena_alloc(ev->arena, size) : NULL;
    if (!p)
        RV_IGNORE(lang_ev_fault(ev, RV_FAULT_NOMEM, n), "NULL tells the caller");
    return p;
}

/* --- Variables and members -----------------------------------------------------------------------------------------
 */

static int lookup(struct rv_eval *ev, const struct rv_expr_node *n, struct rv_value *out, bool *found)
{
    json_object *v = NULL;

    *found = false;
    ev->scope_rc = ev->scope->lookup(ev->scope->self, n->name, n->field, &v, found, ev->err);
    if (ev->scope_rc < 0)
        return lang_ev_fault(ev, RV_FAULT_SCOPE, n);
    if (*found)
        *out = lang_value_of_json(v);
    return 0;
}

static int run_var(struct rv_eval *ev, const struct rv_expr_node *n, struct rv_value *out)
{
    bool found;

    if (lookup(ev, n, out, &found) < 0)
        return -1;
    return found ? 0 : lang_ev_fault(ev, RV_FAULT_NO_VALUE, n);
}

static int no_key(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *map,
                  const struct rv_value *key)
{
    ev->fault = (struct rv_fault_record){.kind = RV_FAULT_NO_KEY, .node = n, .a = *map, .b = *key};
    return -1;
}

static int find_field(struct rv_eval *ev, const struct rv_expr_node *n, struct rv_value *map, struct rv_value *out,
                      bool *found)
{
    struct rv_value key = {.type = RV_T_STRING, .as.s = n->field};

    if (lang_ev_run(ev, n->a, map) < 0)
        return -1;
    if (map->type != RV_T_MAP)
        return lang_ev_fault_types(ev, n, map, NULL);
    return lang_value_find(ev, n, map, &key, out, found);
}

static int run_select(struct rv_eval *ev, const struct rv_expr_node *n, struct rv_value *out)
{
    struct rv_value map, key = {.type = RV_T_STRING, .as.s = n->field};
    bool found;

    if (find_field(ev, n, &map, out, &found) < 0)
        return -1;
    return found ? 0 : no_key(ev, n, &map, &key);
}

static int run_has(struct rv_eval *ev, const struct rv_expr_node *n, struct rv_value *out)
{
    struct rv_value map, member;
    bool found;
    int rc = n->a->kind == RV_EXPR_NODE_VAR_FIELD ? lookup(ev, n->a, &member, &found)
                                                  : find_field(ev, n->a, &map, &member, &found);

    if (rc < 0)
        return rc;
    *out = (struct rv_value){.type = RV_T_BOOL, .as.b = found};
    return 0;
}

/* A list index may be of any number type as long as it is whole, as map keys are. */
static bool to_index(const struct rv_value *v, size_t size, size_t *out)
{
    struct rv_value zero = {.type = RV_T_INT}, end = {.type = RV_T_UINT, .as.u = size};

    if (lang_value_compare_numbers(v, &zero) < 0 || lang_value_compare_numbers(v, &end) != -1)
        return false;
    *out = v->type == RV_T_DOUBLE ? (size_t)v->as.d : (size_t)v->as.u;
    return v->type != RV_T_DOUBLE || (double)*out == v->as.d;
}

static int run_index(struct rv_eval *ev, const struct rv_expr_node *n, struct rv_value *out)
{
    struct rv_value of, key;
    bool found;
    size_t i;

    if (lang_ev_run(ev, n->a, &of) < 0 || lang_ev_run(ev, n->b, &key) < 0)
        return -1;
    if (of.type == RV_T_LIST && (RV_TBIT(key.type) & RV_M_NUMBER)) {
        if (!to_index(&key, lang_value_size(&of), &i)) {
            ev->fault = (struct rv_fault_record){.kind = RV_FAULT_NO_ELEMENT, .node = n, .a = of, .b = key};
            return -1;
        }
        *out = lang_value_at(&of, i);
        return 0;
    }
    if (of.type != RV_T_MAP || !(RV_TBIT(key.type) & (RV_M_NUMBER | RV_M_BOOL | RV_M_STRING)))
        return lang_ev_fault_types(ev, n, &of, &key);
    if (lang_value_find(ev, n, &of, &key, out, &found) < 0)
        return -1;
    return found ? 0 : no_key(ev, n, &of, &key);
}

/* --- Operators -----------------------------------------------------------------------------------------------------
 */

static int order_values(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *a,
                        const struct rv_value *b, int *order)
{
    size_t shorter;

    if ((RV_TBIT(a->type) & RV_M_NUMBER) && (RV_TBIT(b->type) & RV_M_NUMBER)) {
        *order = lang_value_compare_numbers(a, b);
        return 0;
    }
    if (a->type == RV_T_BOOL && b->type == RV_T_BOOL) {
        *order = a->as.b - b->as.b;
        return 0;
    }
    if (a->type != RV_T_STRING || b->type != RV_T_STRING)
        return lang_ev_fault_types(ev, n, a, b);
    /* The order of UTF-8 bytes is the order of code points. */
    shorter = a->as.s.len < b->as.s.len ? a->as.s.len : b->as.s.len;
    *order = memcmp(a->as.s.ptr, b->as.s.ptr, shorter);
    if (*order == 0)
        *order = (a->as.s.len > b->as.s.len) - (a->as.s.len < b->as.s.len);
    else
        *order = *order < 0 ? -1 : 1;
    return lang_ev_work(ev, n, 0, shorter);
}

static bool order_fits(enum rv_punct op, int order)
{
    if (order == 2) /* a NaN is in no order with anything */
        return false;
    if (op == RV_OP_LT)
        return order < 0;
    if (op == RV_OP_LE)
        return order <= 0;
    return op == RV_OP_GT ? order > 0 : order >= 0;
}

static int is_in(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *item,
                 const struct rv_value *in, bool *out)
{
    struct rv_value unused;
    int rc = 0;

    if (in->type == RV_T_MAP)
        return lang_value_find(ev, n, in, item, &unused, out);
    if (in->type != RV_T_LIST)
        return lang_ev_fault_types(ev, n, item, in);
    *out = false;
    for (size_t i = 0; i < lang_value_size(in) && !*out && rc == 0; i++) {
        struct rv_value other = lang_value_at(in, i);

        rc = lang_value_equal(ev, n, item, &other, 0, out);
    }
    return rc;
}

static int run_binary(struct rv_eval *ev, const struct rv_expr_node *n, struct rv_value *out)
{
    struct rv_value a = {.type = RV_T_NULL}, b = a;
    bool yes = false;
    int order = 0, rc;

    if (lang_ev_run(ev, n->a, &a) < 0 || lang_ev_run(ev, n->b, &b) < 0)
        return -1;
    if (n->op == RV_OP_EQ || n->op == RV_OP_NE) {
        rc = lang_value_equal(ev, n, &a, &b, 0, &yes);
        yes = yes == (n->op == RV_OP_EQ);
    } else if (n->op == RV_OP_IN) {
        rc = is_in(ev, n, &a, &b, &yes);
    } else if (n->op == RV_OP_LT || n->op == RV_OP_LE || n->op == RV_OP_GT || n->op == RV_OP_GE) {
        rc = order_values(ev, n, &a, &b, &order);
        yes = order_fits(n->op, order);
    } else {
        return lang_ev_arith(ev, n, &a, &b, out);
    }
    *out = (struct rv_value){.type = RV_T_BOOL, .as.b = yes};
    return rc;
}

/* One operand that decides is enough, wherever it stands: a failure of the others is forgotten then. */
static int run_logical(struct rv_eval *ev, const struct rv_expr_node *n, struct rv_value *out)
{
    bool decisive = n->kind == RV_EXPR_NODE_OR;
    struct rv_fault_record first = {.kind = RV_FAULT_NONE};

    for (const struct rv_expr_node *item = n->items; item; item = item->next) {
        int rc = lang_ev_run(ev, item, out);

        if (rc == 0 && out->type != RV_T_BOOL)
            rc = lang_ev_fault_types(ev, n, out, NULL);
        if (rc == 0 && out->as.b == decisive)
            return 0;
        if (rc < 0 && RV_FAULT_IS_FATAL(ev->fault.kind))
            return rc;
        if (rc < 0 && first.kind == RV_FAULT_NONE)
            first = ev->fault;
    }
    if (first.kind != RV_FAULT_NONE) {
        ev->fault = first;
        return -1;
    }
    *out = (struct rv_value){.type = RV_T_BOOL, .as.b = !decisive};
    return 0;
}

static int run_unary(struct rv_eval *ev, const struct rv_expr_node *n, struct rv_value *out)
{
    struct rv_value a = {.type = RV_T_NULL};

    if (lang_ev_run(ev, n->a, &a) < 0)
        return -1;
    if (n->kind == RV_EXPR_NODE_NEGATE)
        return lang_ev_negate(ev, n, &a, out);
    if (a.type != RV_T_BOOL)
        return lang_ev_fault_types(ev, n, &a, NULL);
    *out = (struct rv_value){.type = RV_T_BOOL, .as.b = !a.as.b};
    return 0;
}

static int run_cond(struct rv_eval *ev, const struct rv_expr_node *n, struct rv_value *out)
{
    struct rv_value a = {.type = RV_T_NULL};

    if (lang_ev_run(ev, n->a, &a) < 0)
        return -1;
    if (a.type != RV_T_BOOL)
        return lang_ev_fault_types(ev, n, &a, NULL);
    return lang_ev_run(ev, a.as.b ? n->b : n->c, out);
}

/* --- Literals and calls --------------------------------------------------------------------------------------------
 */

static int check_key(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *map,
                     const struct rv_value *key)
{
    struct rv_value unused;
    bool found;

    if (!(RV_TBIT(key->type) & (RV_M_BOOL | RV_M_INT | RV_M_UINT | RV_M_STRING)))
        return lang_ev_fault_types(ev, n, key, NULL);
    if (lang_value_find(ev, n, map, key, &unused, &found) < 0)
        return -1;
    if (!found)
        return 0;
    ev->fault = (struct rv_fault_record){.kind = RV_FAULT_DUPLICATE_KEY, .node = n, .b = *key};
    return -1;
}

static int run_items(struct rv_eval *ev, const struct rv_expr_node *n, struct rv_value *out)
{
    bool is_map = n->kind == RV_EXPR_NODE_MAP;
    struct rv_value *items = lang_ev_alloc(ev, n, (n->n_items + 1) * sizeof(*items));
    size_t i = 0;

    if (!items)
        return -1;
    *out = (struct rv_value){.type = is_map ? RV_T_MAP : RV_T_LIST, .as.items = {items, 0}};
    for (const struct rv_expr_node *item = n->items; item; item = item->next, i++) {
        if (lang_ev_run(ev, item, &items[i]) < 0)
            return -1;
        if (is_map && i % 2 == 0 && check_key(ev, item, out, &items[i]) < 0)
            return -1;
        out->as.items.n = is_map ? (i + 1) / 2 : i + 1;
    }
    return 0;
}

static int run_call(struct rv_eval *ev, const struct rv_expr_node *n, struct rv_value *out)
{
    struct rv_value args[RV_FN_MAX_ARGS] = {{.type = RV_T_NULL}};
    const struct rv_expr_node *arg = n->a ? n->a : n->items;

    for (size_t i = 0; i < n->fn->n_args; i++) {
        if (lang_ev_run(ev, arg, &args[i]) < 0)
            return -1;
        if (!(RV_TBIT(args[i].type) & n->fn->args[i]))
            return lang_ev_fault_types(ev, n, &args[i], NULL);
        arg = arg == n->a ? n->items : arg->next;
    }
    return n->fn->call(ev, n, args, out);
}

int lang_ev_run(struct rv_eval *ev, const struct rv_expr_node *n, struct rv_value *out)
{
    if (lang_ev_work(ev, n, 1, 0) < 0)
        return -1;
    switch (n->kind) {
    case RV_EXPR_NODE_LITERAL:
        *out = n->value;
        return 0;
    case RV_EXPR_NODE_SLOT:
        *out = ev->slots[n->slot];
        return 0;
    case RV_EXPR_NODE_VAR:
    case RV_EXPR_NODE_VAR_FIELD:
        return run_var(ev, n, out);
    case RV_EXPR_NODE_SELECT:
        return run_select(ev, n, out);
    case RV_EXPR_NODE_INDEX:
        return run_index(ev, n, out);
    case RV_EXPR_NODE_HAS:
        return run_has(ev, n, out);
    case RV_EXPR_NODE_NOT:
    case RV_EXPR_NODE_NEGATE:
        return run_unary(ev, n, out);
    case RV_EXPR_NODE_BINARY:
        return run_binary(ev, n, out);
    case RV_EXPR_NODE_AND:
    case RV_EXPR_NODE_OR:
        return run_logical(ev, n, out);
    case RV_EXPR_NODE_COND:
        return run_cond(ev, n, out);
    case RV_EXPR_NODE_LIST:
    case RV_EXPR_NODE_MAP:
        return run_items(ev, n, out);
    case RV_EXPR_NODE_CALL:
        return run_call(ev, n, out);
    case RV_EXPR_NODE_MACRO:
        return ev_macro(ev, n, out);
    case RV_EXPR_NODE_NAME:
        break; /* check.c leaves none */
    }
    *out = (struct rv_value){.type = RV_T_NULL};
    return 0;
}
