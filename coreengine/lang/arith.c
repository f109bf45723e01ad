/* + - * / % and the unary minus. Both sides have the same type, nothing is converted, integers never wrap. */
#include <string.h>

#include "coreengine/lang/expr_internal.h"

static int int_arith(struct rv_eval *ev, const struct rv_node *n, int64_t a, int64_t b, int64_t *out)
{
    bool overflow = false;

    if (n->op == RV_OP_ADD) {
        overflow = __builtin_add_overflow(a, b, out);
    } else if (n->op == RV_OP_SUB) {
        overflow = __builtin_sub_overflow(a, b, out);
    } else if (n->op == RV_OP_MUL) {
        overflow = __builtin_mul_overflow(a, b, out);
    } else {
        if (b == 0)
            return rv_ev_fault(ev, RV_FAULT_DIV_ZERO, n);
        overflow = a == INT64_MIN && b == -1;
        if (!overflow)
            *out = n->op == RV_OP_DIV ? a / b : a % b;
    }
    return overflow ? rv_ev_fault(ev, RV_FAULT_OVERFLOW, n) : 0;
}

static int uint_arith(struct rv_eval *ev, const struct rv_node *n, uint64_t a, uint64_t b, uint64_t *out)
{
    bool overflow = false;

    if (n->op == RV_OP_ADD) {
        overflow = __builtin_add_overflow(a, b, out);
    } else if (n->op == RV_OP_SUB) {
        overflow = __builtin_sub_overflow(a, b, out);
    } else if (n->op == RV_OP_MUL) {
        overflow = __builtin_mul_overflow(a, b, out);
    } else {
        if (b == 0)
            return rv_ev_fault(ev, RV_FAULT_DIV_ZERO, n);
        *out = n->op == RV_OP_DIV ? a / b : a % b;
    }
    return overflow ? rv_ev_fault(ev, RV_FAULT_OVERFLOW, n) : 0;
}

/* IEEE 754 rules: a division by zero is an infinity or a NaN, no error. */
static double double_arith(enum rv_punct op, double a, double b)
{
    if (op == RV_OP_ADD)
        return a + b;
    if (op == RV_OP_SUB)
        return a - b;
    return op == RV_OP_MUL ? a * b : a / b;
}

static int join_strings(struct rv_eval *ev, const struct rv_node *n, rv_str a, rv_str b, rv_str *out)
{
    char *text = rv_ev_alloc(ev, n, a.len + b.len + 1);

    if (!text)
        return -1;
    memcpy(text, a.ptr, a.len);
    memcpy(text + a.len, b.ptr, b.len);
    text[a.len + b.len] = '\0';
    *out = (rv_str){text, a.len + b.len};
    return 0;
}

static int join_lists(struct rv_eval *ev, const struct rv_node *n, const struct rv_value *a, const struct rv_value *b,
                      struct rv_value *out)
{
    size_t size_a = rv_value_size(a), size = size_a + rv_value_size(b);
    struct rv_value *items;

    if (rv_ev_work(ev, n, size, 0) < 0)
        return -1;
    items = rv_ev_alloc(ev, n, (size + 1) * sizeof(*items));
    if (!items)
        return -1;
    for (size_t i = 0; i < size; i++)
        items[i] = i < size_a ? rv_value_at(a, i) : rv_value_at(b, i - size_a);
    *out = (struct rv_value){.type = RV_T_LIST, .as.items = {items, size}};
    return 0;
}

int rv_ev_arith(struct rv_eval *ev, const struct rv_node *n, const struct rv_value *a, const struct rv_value *b,
                struct rv_value *out)
{
    if (a->type != b->type)
        return rv_ev_fault_types(ev, n, a, b);
    *out = (struct rv_value){.type = a->type};
    if (a->type == RV_T_INT)
        return int_arith(ev, n, a->as.i, b->as.i, &out->as.i);
    if (a->type == RV_T_UINT)
        return uint_arith(ev, n, a->as.u, b->as.u, &out->as.u);
    if (a->type == RV_T_DOUBLE && n->op != RV_OP_MOD) {
        out->as.d = double_arith(n->op, a->as.d, b->as.d);
        return 0;
    }
    if (a->type == RV_T_STRING && n->op == RV_OP_ADD)
        return join_strings(ev, n, a->as.s, b->as.s, &out->as.s);
    if (a->type == RV_T_LIST && n->op == RV_OP_ADD)
        return join_lists(ev, n, a, b, out);
    return rv_ev_fault_types(ev, n, a, b);
}

int rv_ev_negate(struct rv_eval *ev, const struct rv_node *n, const struct rv_value *a, struct rv_value *out)
{
    *out = *a;
    if (a->type == RV_T_DOUBLE) {
        out->as.d = -a->as.d;
        return 0;
    }
    if (a->type != RV_T_INT)
        return rv_ev_fault_types(ev, n, a, NULL);
    if (a->as.i == INT64_MIN)
        return rv_ev_fault(ev, RV_FAULT_OVERFLOW, n);
    out->as.i = -a->as.i;
    return 0;
}
