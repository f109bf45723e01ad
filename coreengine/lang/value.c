/* Values: reading json-c trees in place, lookup, equality, order, and the way back to JSON. Every loop over data of
 * unknown size counts as work. */
#include <inttypes.h>
#include <json-c/linkhash.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "coreengine/lang/expr_internal.h"

static const char *const type_names[] = {
#define X(name, text) text,
    RV_TYPES(X)
#undef X
};

const char *lang_type_text(enum rv_type t)
{
    return t < RV_N_TYPES ? type_names[t] : "?";
}

enum rv_type lang_type_named(rv_str name)
{
    int t = 0;

    while (t < RV_N_TYPES && !rv_str_is(name, type_names[t]))
        t++;
    return (enum rv_type)t;
}

struct rv_value lang_value_of_json(json_object *v)
{
    switch (json_object_get_type(v)) {
    case json_type_boolean:
        return (struct rv_value){.type = RV_T_BOOL, .as.b = json_object_get_boolean(v)};
    case json_type_int:
        /* A negative number gives 0 here, a larger one than int64 its own value. */
        if (json_object_get_uint64(v) > INT64_MAX)
            return (struct rv_value){.type = RV_T_UINT, .as.u = json_object_get_uint64(v)};
        return (struct rv_value){.type = RV_T_INT, .as.i = json_object_get_int64(v)};
    case json_type_double:
        return (struct rv_value){.type = RV_T_DOUBLE, .as.d = json_object_get_double(v)};
    case json_type_string:
        return (struct rv_value){.type = RV_T_STRING,
                                 .as.s = {json_object_get_string(v), (size_t)json_object_get_string_len(v)}};
    case json_type_array:
        return (struct rv_value){.type = RV_T_LIST, .is_json = true, .as.json = v};
    case json_type_object:
        return (struct rv_value){.type = RV_T_MAP, .is_json = true, .as.json = v};
    case json_type_null:
        break;
    }
    return (struct rv_value){.type = RV_T_NULL};
}

size_t lang_value_size(const struct rv_value *v)
{
    if (!v->is_json)
        return v->as.items.n;
    return v->type == RV_T_LIST ? json_object_array_length(v->as.json) : (size_t)json_object_object_length(v->as.json);
}

struct rv_value lang_value_at(const struct rv_value *list, size_t i)
{
    return list->is_json ? lang_value_of_json(json_object_array_get_idx(list->as.json, i)) : list->as.items.ptr[i];
}

bool lang_value_next_pair(const struct rv_value *map, const void **pos, struct rv_value *key, struct rv_value *val)
{
    if (map->is_json) {
        const struct lh_entry *e =
            *pos ? ((const struct lh_entry *)*pos)->next : json_object_get_object(map->as.json)->head;

        if (!e)
            return false;
        *pos = e;
        *key = (struct rv_value){.type = RV_T_STRING, .as.s = rv_str_of(e->k)};
        *val = lang_value_of_json((json_object *)lh_entry_v(e));
        return true;
    }
    const struct rv_value *pair = *pos ? (const struct rv_value *)*pos + 2 : map->as.items.ptr;

    if (map->as.items.n == 0 || pair == map->as.items.ptr + 2 * map->as.items.n)
        return false;
    *pos = pair;
    *key = pair[0];
    *val = pair[1];
    return true;
}

int lang_value_find(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *map,
                    const struct rv_value *key, struct rv_value *out, bool *found)
{
    json_object *member;
    int rc = 0;

    *found = false;
    if (map->is_json) {
        if (key->type != RV_T_STRING)
            return 0;
        if (lang_ev_work(ev, n, 0, key->as.s.len) < 0) /* hashing */
            return -1;
        if (memchr(key->as.s.ptr, '\0', key->as.s.len)) /* json-c would cut it there, and no member has one */
            return 0;
        *found = json_object_object_get_ex(map->as.json, key->as.s.ptr, &member);
        if (*found)
            *out = lang_value_of_json(member);
        return 0;
    }
    for (size_t i = 0; i < map->as.items.n && !*found && rc == 0; i++) {
        const struct rv_value *pair = &map->as.items.ptr[2 * i];

        rc = lang_value_equal(ev, n, &pair[0], key, 0, found);
        if (rc == 0 && *found)
            *out = pair[1];
    }
    return rc;
}

/* --- Order and equality ------------------------------------------------------------------------------------------ */

/* An integer given as sign and magnitude against a double, exactly: 2^53 + 1 is not 2^53. */
static int compare_integer_double(bool negative, uint64_t magnitude, double d)
{
    double limit = 18446744073709551616.0; /* 2^64 */
    double whole;
    uint64_t other;

    if (isnan(d))
        return 2;
    if (negative)
        return -compare_integer_double(false, magnitude, -d);
    if (d < 0)
        return 1;
    if (d >= limit)
        return -1;
    whole = trunc(d);
    other = (uint64_t)whole;
    if (magnitude != other)
        return magnitude < other ? -1 : 1;
    return d > whole ? -1 : 0;
}

static int compare_with_double(const struct rv_value *a, double d)
{
    if (a->type == RV_T_DOUBLE)
        return isnan(a->as.d) || isnan(d) ? 2 : (a->as.d > d) - (a->as.d < d);
    if (a->type == RV_T_UINT)
        return compare_integer_double(false, a->as.u, d);
    return compare_integer_double(a->as.i < 0, a->as.i < 0 ? 0 - (uint64_t)a->as.i : (uint64_t)a->as.i, d);
}

int lang_value_compare_numbers(const struct rv_value *a, const struct rv_value *b)
{
    int order;

    if (b->type == RV_T_DOUBLE)
        return compare_with_double(a, b->as.d);
    if (a->type == RV_T_DOUBLE) {
        order = compare_with_double(b, a->as.d);
        return order == 2 ? 2 : -order;
    }
    if (a->type == RV_T_INT && b->type == RV_T_INT)
        return (a->as.i > b->as.i) - (a->as.i < b->as.i);
    /* At least one is unsigned: a negative one is smaller, otherwise both fit uint64. */
    if (a->type == RV_T_INT && a->as.i < 0)
        return -1;
    if (b->type == RV_T_INT && b->as.i < 0)
        return 1;
    return (a->as.u > b->as.u) - (a->as.u < b->as.u);
}

static int lists_equal(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *a,
                       const struct rv_value *b, int depth, bool *out)
{
    size_t size = lang_value_size(a);
    int rc = 0;

    *out = size == lang_value_size(b);
    for (size_t i = 0; i < size && *out && rc == 0; i++) {
        struct rv_value x = lang_value_at(a, i), y = lang_value_at(b, i);

        rc = lang_value_equal(ev, n, &x, &y, depth, out);
    }
    return rc;
}

static int maps_equal(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *a,
                      const struct rv_value *b, int depth, bool *out)
{
    struct rv_value key, x, y;
    const void *pos = NULL;
    int rc = 0;

    *out = lang_value_size(a) == lang_value_size(b);
    while (*out && rc == 0 && lang_value_next_pair(a, &pos, &key, &x)) {
        rc = lang_value_find(ev, n, b, &key, &y, out);
        if (rc == 0 && *out)
            rc = lang_value_equal(ev, n, &x, &y, depth, out);
    }
    return rc;
}

int lang_value_equal(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *a,
                     const struct rv_value *b, int depth, bool *out)
{
    if (lang_ev_work(ev, n, 1, 0) < 0)
        return -1;
    if (depth > RV_EXPR_MAX_VALUE_DEPTH)
        return lang_ev_fault(ev, RV_FAULT_DEPTH, n);
    *out = false;
    if ((RV_TBIT(a->type) & RV_M_NUMBER) && (RV_TBIT(b->type) & RV_M_NUMBER)) {
        *out = lang_value_compare_numbers(a, b) == 0;
        return 0;
    }
    if (a->type != b->type)
        return 0;
    switch (a->type) {
    case RV_T_NULL:
        *out = true;
        return 0;
    case RV_T_BOOL:
        *out = a->as.b == b->as.b;
        return 0;
    case RV_T_STRING:
        *out = rv_str_eq(a->as.s, b->as.s);
        return a->as.s.len == b->as.s.len ? lang_ev_work(ev, n, 0, a->as.s.len) : 0;
    case RV_T_TYPE:
        *out = a->as.t == b->as.t;
        return 0;
    case RV_T_LIST:
        return lists_equal(ev, n, a, b, depth + 1, out);
    case RV_T_MAP:
        return maps_equal(ev, n, a, b, depth + 1, out);
    case RV_T_INT:
    case RV_T_UINT:
    case RV_T_DOUBLE:
    case RV_N_TYPES:
        break; /* numbers were compared above */
    }
    return 0;
}

/* The result of an evaluation as JSON. What is part of the scope is shared by reference, the rest is built. */

#define KEY_TEXT_MAX 24 /* bytes: a uint64 has 20 digits, an int64 a sign, and a NUL */

static int list_to_json(struct rv_eval *ev, const struct rv_value *v, int depth, json_object **out)
{
    json_object *arr = json_object_new_array(), *item;
    int rc = arr ? 0 : lang_ev_fault(ev, RV_FAULT_NOMEM, ev->e->root);

    for (size_t i = 0; i < v->as.items.n && rc == 0; i++) {
        rc = lang_value_to_json(ev, &v->as.items.ptr[i], depth, &item);
        if (rc == 0 && json_object_array_add(arr, item) < 0) {
            json_object_put(item);
            rc = lang_ev_fault(ev, RV_FAULT_NOMEM, ev->e->root);
        }
    }
    if (rc < 0)
        json_object_put(arr);
    else
        *out = arr;
    return rc;
}

/* JSON has only string keys: the others become their text, as in CEL's own mapping to JSON. */
static const char *key_text(const struct rv_value *key, char buf[KEY_TEXT_MAX])
{
    if (key->type == RV_T_STRING)
        return key->as.s.ptr;
    if (key->type == RV_T_BOOL)
        return key->as.b ? "true" : "false";
    if (key->type == RV_T_INT)
        snprintf(buf, KEY_TEXT_MAX, "%" PRId64, key->as.i);
    else
        snprintf(buf, KEY_TEXT_MAX, "%" PRIu64, key->as.u);
    return buf;
}

static int map_to_json(struct rv_eval *ev, const struct rv_value *v, int depth, json_object **out)
{
    json_object *obj = json_object_new_object(), *item;
    int rc = obj ? 0 : lang_ev_fault(ev, RV_FAULT_NOMEM, ev->e->root);

    for (size_t i = 0; i < v->as.items.n && rc == 0; i++) {
        const struct rv_value *pair = &v->as.items.ptr[2 * i];
        char buf[KEY_TEXT_MAX];
        const char *key = key_text(&pair[0], buf);

        /* {1: "a", "1": "b"} is a fine map, and {"a\u0000": 1} too, but neither is a JSON object we can carry. */
        if (json_object_object_get_ex(obj, key, NULL) ||
            (pair[0].type == RV_T_STRING && rv_str_of(key).len != pair[0].as.s.len)) {
            rc = lang_ev_fault(ev, RV_FAULT_CONVERT, ev->e->root);
            ev->fault.a = pair[0];
            ev->fault.text = RV_STR_LIT("a key of a JSON object");
            break;
        }
        rc = lang_value_to_json(ev, &pair[1], depth, &item);
        if (rc == 0 && json_object_object_add(obj, key, item) < 0) {
            json_object_put(item);
            rc = lang_ev_fault(ev, RV_FAULT_NOMEM, ev->e->root);
        }
    }
    if (rc < 0)
        json_object_put(obj);
    else
        *out = obj;
    return rc;
}

static int scalar_to_json(struct rv_eval *ev, const struct rv_value *v, json_object **out)
{
    const char *type;

    switch (v->type) {
    case RV_T_NULL:
        *out = NULL;
        return 0;
    case RV_T_BOOL:
        *out = json_object_new_boolean(v->as.b);
        break;
    case RV_T_INT:
        *out = json_object_new_int64(v->as.i);
        break;
    case RV_T_UINT:
        *out = json_object_new_uint64(v->as.u);
        break;
    case RV_T_DOUBLE:
        if (!isfinite(v->as.d)) {
            RV_IGNORE(lang_ev_fault(ev, RV_FAULT_CONVERT, ev->e->root), "the failure is returned two lines below");
            ev->fault.a = *v;
            ev->fault.text = RV_STR_LIT("a JSON number");
            return -1;
        }
        *out = rv_json_new_double(v->as.d);
        break;
    case RV_T_STRING:
        *out = json_object_new_string_len(v->as.s.ptr, (int)v->as.s.len);
        break;
    case RV_T_TYPE:
        type = lang_type_text(v->as.t);
        *out = json_object_new_string(type);
        break;
    case RV_T_LIST:
    case RV_T_MAP:
    case RV_N_TYPES:
        break; /* not scalars */
    }
    return *out ? 0 : lang_ev_fault(ev, RV_FAULT_NOMEM, ev->e->root);
}

int lang_value_to_json(struct rv_eval *ev, const struct rv_value *v, int depth, json_object **out)
{
    *out = NULL;
    if (lang_ev_work(ev, ev->e->root, 1, 0) < 0)
        return -1;
    if (depth > RV_EXPR_MAX_VALUE_DEPTH)
        return lang_ev_fault(ev, RV_FAULT_DEPTH, ev->e->root);
    if (v->is_json) {
        *out = json_object_get(v->as.json);
        return 0;
    }
    if (v->type == RV_T_LIST)
        return list_to_json(ev, v, depth + 1, out);
    if (v->type == RV_T_MAP)
        return map_to_json(ev, v, depth + 1, out);
    return scalar_to_json(ev, v, out);
}

/* + - * / % and the unary minus. Both sides have the same type, nothing is converted, integers never wrap. */

static int int_arith(struct rv_eval *ev, const struct rv_expr_node *n, int64_t a, int64_t b, int64_t *out)
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
            return lang_ev_fault(ev, RV_FAULT_DIV_ZERO, n);
        overflow = a == INT64_MIN && b == -1;
        if (!overflow)
            *out = n->op == RV_OP_DIV ? a / b : a % b;
    }
    return overflow ? lang_ev_fault(ev, RV_FAULT_OVERFLOW, n) : 0;
}

static int uint_arith(struct rv_eval *ev, const struct rv_expr_node *n, uint64_t a, uint64_t b, uint64_t *out)
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
            return lang_ev_fault(ev, RV_FAULT_DIV_ZERO, n);
        *out = n->op == RV_OP_DIV ? a / b : a % b;
    }
    return overflow ? lang_ev_fault(ev, RV_FAULT_OVERFLOW, n) : 0;
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

static int join_strings(struct rv_eval *ev, const struct rv_expr_node *n, rv_str a, rv_str b, rv_str *out)
{
    char *text = lang_ev_alloc(ev, n, a.len + b.len + 1);

    if (!text)
        return -1;
    memcpy(text, a.ptr, a.len);
    memcpy(text + a.len, b.ptr, b.len);
    text[a.len + b.len] = '\0';
    *out = (rv_str){text, a.len + b.len};
    return 0;
}

static int join_lists(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *a,
                      const struct rv_value *b, struct rv_value *out)
{
    size_t size_a = lang_value_size(a), size = size_a + lang_value_size(b);
    struct rv_value *items;

    if (lang_ev_work(ev, n, size, 0) < 0)
        return -1;
    items = lang_ev_alloc(ev, n, (size + 1) * sizeof(*items));
    if (!items)
        return -1;
    for (size_t i = 0; i < size; i++)
        items[i] = i < size_a ? lang_value_at(a, i) : lang_value_at(b, i - size_a);
    *out = (struct rv_value){.type = RV_T_LIST, .as.items = {items, size}};
    return 0;
}

int lang_ev_arith(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *a, const struct rv_value *b,
                  struct rv_value *out)
{
    if (a->type != b->type)
        return lang_ev_fault_types(ev, n, a, b);
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
    return lang_ev_fault_types(ev, n, a, b);
}

int lang_ev_negate(struct rv_eval *ev, const struct rv_expr_node *n, const struct rv_value *a, struct rv_value *out)
{
    *out = *a;
    if (a->type == RV_T_DOUBLE) {
        out->as.d = -a->as.d;
        return 0;
    }
    if (a->type != RV_T_INT)
        return lang_ev_fault_types(ev, n, a, NULL);
    if (a->as.i == INT64_MIN)
        return lang_ev_fault(ev, RV_FAULT_OVERFLOW, n);
    out->as.i = -a->as.i;
    return 0;
}
