/* The result of an evaluation as JSON. What is part of the scope is shared by reference, the rest is built. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "coreengine/lang/expr_internal.h"

#define KEY_TEXT_MAX 24 /* a uint64 has 20 digits */

static int list_to_json(struct rv_eval *ev, const struct rv_value *v, int depth, json_object **out)
{
    json_object *arr = json_object_new_array(), *item;
    int rc = arr ? 0 : rv_ev_fault(ev, RV_FAULT_NOMEM, ev->e->root);

    for (size_t i = 0; i < v->as.items.n && rc == 0; i++) {
        rc = rv_value_to_json(ev, &v->as.items.ptr[i], depth, &item);
        if (rc == 0 && json_object_array_add(arr, item) < 0) {
            json_object_put(item);
            rc = rv_ev_fault(ev, RV_FAULT_NOMEM, ev->e->root);
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
    int rc = obj ? 0 : rv_ev_fault(ev, RV_FAULT_NOMEM, ev->e->root);

    for (size_t i = 0; i < v->as.items.n && rc == 0; i++) {
        const struct rv_value *pair = &v->as.items.ptr[2 * i];
        char buf[KEY_TEXT_MAX];
        const char *key = key_text(&pair[0], buf);

        /* {1: "a", "1": "b"} is a fine map, and {"a\u0000": 1} too, but neither is a JSON object we can carry. */
        if (json_object_object_get_ex(obj, key, NULL) ||
            (pair[0].type == RV_T_STRING && rv_str_of(key).len != pair[0].as.s.len)) {
            rc = rv_ev_fault(ev, RV_FAULT_CONVERT, ev->e->root);
            ev->fault.a = pair[0];
            ev->fault.text = RV_STR_LIT("a key of a JSON object");
            break;
        }
        rc = rv_value_to_json(ev, &pair[1], depth, &item);
        if (rc == 0 && json_object_object_add(obj, key, item) < 0) {
            json_object_put(item);
            rc = rv_ev_fault(ev, RV_FAULT_NOMEM, ev->e->root);
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
            RV_IGNORE(rv_ev_fault(ev, RV_FAULT_CONVERT, ev->e->root), "the failure is returned two lines below");
            ev->fault.a = *v;
            ev->fault.text = RV_STR_LIT("a JSON number");
            return -1;
        }
        *out = rv_json_double(v->as.d);
        break;
    case RV_T_STRING:
        *out = json_object_new_string_len(v->as.s.ptr, (int)v->as.s.len);
        break;
    case RV_T_TYPE:
        type = rv_type_text(v->as.t);
        *out = json_object_new_string(type);
        break;
    case RV_T_LIST:
    case RV_T_MAP:
    case RV_N_TYPES:
        break; /* not scalars */
    }
    return *out ? 0 : rv_ev_fault(ev, RV_FAULT_NOMEM, ev->e->root);
}

int rv_value_to_json(struct rv_eval *ev, const struct rv_value *v, int depth, json_object **out)
{
    *out = NULL;
    if (rv_ev_work(ev, ev->e->root, 1, 0) < 0)
        return -1;
    if (depth > RV_EXPR_MAX_VALUE_DEPTH)
        return rv_ev_fault(ev, RV_FAULT_DEPTH, ev->e->root);
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
