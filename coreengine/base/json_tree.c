/* Working on json-c trees: building with one ownership rule, looking without coercion, comparing, copying. */
#include "coreengine/base/base_internal.h"

#include <assert.h>
#include <json-c/linkhash.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- building --- */

/* As json_object_object_add(), which leaks its copy of the key when the table cannot grow. Takes val on success only.
 */
static int add_member(json_object *obj, const char *key, json_object *val)
{
    struct lh_table *table = json_object_get_object(obj);
    unsigned long hash = lh_get_hash(table, key);
    struct lh_entry *old = lh_table_lookup_entry_w_hash(table, key, hash);
    char *copy;

    if (old) {
        json_object_put(lh_entry_v(old));
        lh_entry_set_val(old, val);
        return 0;
    }
    copy = strdup(key);
    if (copy && lh_table_insert_w_hash(table, copy, val, hash, 0) == 0)
        return 0;
    free(copy);
    return RV_E_NOMEM;
}

static int add_take(json_object *obj, const char *key, json_object *val, rv_err **err)
{
    assert(json_object_is_type(obj, json_type_object) && val != obj);
    if (add_member(obj, key, val) < 0) {
        json_object_put(val); /* a failed add did not take it */
        return RV_FAIL(err, RV_E_NOMEM, "no memory for JSON field \"%s\"", key);
    }
    return 0;
}

int rv_json_set_take(json_object *obj, const char *key, json_object *val, rv_err **err)
{
    if (!val) /* would be stored as a legal null */
        return RV_FAIL(err, RV_E_NOMEM, "no memory for JSON field \"%s\"", key);
    return add_take(obj, key, val, err);
}

int rv_json_set_null(json_object *obj, const char *key, rv_err **err)
{
    return add_take(obj, key, NULL, err);
}

int rv_json_set_str(json_object *obj, const char *key, rv_str s, rv_err **err)
{
    if (s.len > INT_MAX - 1) /* json-c counts in int */
        return RV_FAIL(err, RV_E_LIMIT, "JSON field \"%s\" is longer than %d bytes", key, INT_MAX - 1);
    return rv_json_set_take(obj, key, json_object_new_string_len(s.len ? s.ptr : "", (int)s.len), err);
}

int rv_json_set_text(json_object *obj, const char *key, const char *s, rv_err **err)
{
    return s ? rv_json_set_str(obj, key, rv_str_of(s), err) : rv_json_set_null(obj, key, err);
}

int rv_json_set_int(json_object *obj, const char *key, int64_t i, rv_err **err)
{
    return rv_json_set_take(obj, key, json_object_new_int64(i), err);
}

int rv_json_set_bool(json_object *obj, const char *key, bool b, rv_err **err)
{
    return rv_json_set_take(obj, key, json_object_new_boolean(b), err);
}

int rv_json_set_ref(json_object *obj, const char *key, json_object *val, rv_err **err)
{
    return add_take(obj, key, json_object_get(val), err);
}

static int push(json_object *arr, json_object *val, rv_err **err)
{
    assert(json_object_is_type(arr, json_type_array));
    if (json_object_array_add(arr, val) < 0) {
        json_object_put(val);
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a JSON list");
    }
    return 0;
}

int rv_json_push_take(json_object *arr, json_object *val, rv_err **err)
{
    if (!val)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a JSON list item");
    return push(arr, val, err);
}

int rv_json_push_ref(json_object *arr, json_object *val, rv_err **err)
{
    return push(arr, json_object_get(val), err);
}

void rv_json_cut(json_object *arr, size_t at, size_t n)
{
    int rc = n > 0 ? json_object_array_del_idx(arr, at, n) : 0;

    assert(rc == 0);
}

json_object *rv_json_build(struct rv_json_build *b, json_object *to, const char *key, json_object *value)
{
    if (b->rc < 0) {
        json_object_put(value);
        return NULL;
    }
    b->rc = key ? rv_json_set_take(to, key, value, b->err) : rv_json_push_take(to, value, b->err);
    return b->rc < 0 ? NULL : value;
}

void rv_json_build_text(struct rv_json_build *b, json_object *to, const char *key, const char *text)
{
    rv_json_build(b, to, key, b->rc < 0 ? NULL : json_object_new_string(text));
}

void rv_json_build_buf(struct rv_json_build *b, json_object *to, const char *key, const rv_buf *text)
{
    rv_str s = rv_buf_str(text);

    if (b->rc == 0)
        b->rc = rv_buf_check(text, key ? key : "a JSON list item", b->err);
    rv_json_build(b, to, key, b->rc < 0 ? NULL : json_object_new_string_len(s.len ? s.ptr : "", (int)s.len));
}

void rv_json_build_int(struct rv_json_build *b, json_object *to, const char *key, int64_t i)
{
    rv_json_build(b, to, key, b->rc < 0 ? NULL : json_object_new_int64(i));
}

json_object *rv_json_new_double(double d)
{
    char text[RV_JSON_NUMBER_MAX];

    if (!isfinite(d))
        return NULL;
    base_json_number_write(d, text);
    return json_object_new_double_s(d, text);
}

/* --- looking --- */

rv_str rv_json_str(json_object *s)
{
    if (!json_object_is_type(s, json_type_string))
        return (rv_str){NULL, 0};
    return (rv_str){json_object_get_string(s), (size_t)json_object_get_string_len(s)};
}

const char *rv_json_type_text(json_object *v)
{
    switch (json_object_get_type(v)) {
    case json_type_null:
        return "null";
    case json_type_boolean:
        return "boolean";
    case json_type_double:
        return "number";
    case json_type_int:
        return "integer";
    case json_type_object:
        return "object";
    case json_type_array:
        return "array";
    case json_type_string:
        return "string";
    }
    return "null";
}

void base_json_int_parts(json_object *v, bool *negative, uint64_t *magnitude)
{
    int64_t i = json_object_get_int64(v); /* saturates at the top, where the unsigned getter knows more */

    *negative = i < 0;
    *magnitude = i < 0 ? 0 - (uint64_t)i : i == INT64_MAX ? json_object_get_uint64(v) : (uint64_t)i;
}

bool rv_json_is_int(json_object *v)
{
    bool negative;
    uint64_t magnitude;

    if (!json_object_is_type(v, json_type_int))
        return false;
    base_json_int_parts(v, &negative, &magnitude);
    return negative || magnitude <= INT64_MAX;
}

bool rv_json_is_number(json_object *v)
{
    return json_object_is_type(v, json_type_int) || json_object_is_type(v, json_type_double);
}

bool rv_json_is_text(json_object *v)
{
    return json_object_is_type(v, json_type_string);
}

const char *base_json_double_text(json_object *v)
{
    const char *text = json_object_get_userdata(v);

    /* Nodes of ours carry number text; a caller's own serialiser would keep something else there. */
    return text && (text[0] == '-' || (text[0] >= '0' && text[0] <= '9')) ? text : NULL;
}

static json_object *child(json_object *obj, const char *key, json_type type)
{
    json_object *v = NULL;

    if (!json_object_is_type(obj, json_type_object) || !json_object_object_get_ex(obj, key, &v) ||
        !json_object_is_type(v, type))
        return NULL;
    return v;
}

bool rv_json_get_text(json_object *obj, const char *key, const char **out)
{
    json_object *v = child(obj, key, json_type_string);

    if (v)
        *out = json_object_get_string(v);
    return v != NULL;
}

bool rv_json_get_int(json_object *obj, const char *key, int64_t *out)
{
    json_object *v = child(obj, key, json_type_int);

    if (!v || !rv_json_is_int(v))
        return false;
    *out = json_object_get_int64(v);
    return true;
}

bool rv_json_get_bool(json_object *obj, const char *key, bool *out)
{
    json_object *v = child(obj, key, json_type_boolean);

    if (v)
        *out = json_object_get_boolean(v);
    return v != NULL;
}

const char *rv_json_text_or(json_object *obj, const char *key, const char *otherwise)
{
    const char *text = otherwise;

    return rv_json_get_text(obj, key, &text) ? text : otherwise;
}

int64_t rv_json_int_or(json_object *obj, const char *key, int64_t otherwise)
{
    int64_t number = otherwise;

    return rv_json_get_int(obj, key, &number) ? number : otherwise;
}

bool rv_json_bool_or(json_object *obj, const char *key, bool otherwise)
{
    bool yes = otherwise;

    return rv_json_get_bool(obj, key, &yes) ? yes : otherwise;
}

json_object *rv_json_member(json_object *obj, const char *key)
{
    json_object *v = NULL;

    return json_object_is_type(obj, json_type_object) && json_object_object_get_ex(obj, key, &v) ? v : NULL;
}

rv_str rv_json_member_str(json_object *obj, const char *key)
{
    return rv_json_str(rv_json_member(obj, key));
}

json_object *rv_json_get_obj(json_object *obj, const char *key)
{
    return child(obj, key, json_type_object);
}

json_object *rv_json_get_arr(json_object *obj, const char *key)
{
    return child(obj, key, json_type_array);
}

/* --- comparing --- */

/* Exact: a cast of the integer to double would make neighbours above 2^53 equal. */
static bool int_equals_double(json_object *i, double d)
{
    bool negative;
    uint64_t magnitude;

    base_json_int_parts(i, &negative, &magnitude);
    if (!isfinite(d) || d != trunc(d))
        return false;
    if (negative != (d < 0))
        return false;
    d = fabs(d);
    return d < 18446744073709551616.0 && (uint64_t)d == magnitude; /* 2^64 */
}

static bool numbers_equal(json_object *a, json_object *b)
{
    bool a_is_int = json_object_is_type(a, json_type_int), b_is_int = json_object_is_type(b, json_type_int);
    bool a_negative, b_negative;
    uint64_t a_magnitude, b_magnitude;

    if (a_is_int != b_is_int)
        return a_is_int ? int_equals_double(a, json_object_get_double(b))
                        : int_equals_double(b, json_object_get_double(a));
    if (!a_is_int)
        return json_object_get_double(a) == json_object_get_double(b);
    base_json_int_parts(a, &a_negative, &a_magnitude);
    base_json_int_parts(b, &b_negative, &b_magnitude);
    return a_negative == b_negative && a_magnitude == b_magnitude;
}

static bool objects_equal(json_object *a, json_object *b)
{
    const struct lh_entry *e;

    if (json_object_object_length(a) != json_object_object_length(b))
        return false;
    for (e = lh_table_head(json_object_get_object(a)); e; e = lh_entry_next(e)) {
        json_object *other;
        if (!json_object_object_get_ex(b, lh_entry_k(e), &other) || !rv_json_equal(lh_entry_v(e), other))
            return false;
    }
    return true;
}

static bool arrays_equal(json_object *a, json_object *b)
{
    size_t i, n = json_object_array_length(a);

    if (n != json_object_array_length(b))
        return false;
    for (i = 0; i < n; i++)
        if (!rv_json_equal(json_object_array_get_idx(a, i), json_object_array_get_idx(b, i)))
            return false;
    return true;
}

bool rv_json_equal(json_object *a, json_object *b)
{
    if (rv_json_is_number(a) && rv_json_is_number(b))
        return numbers_equal(a, b);
    if (json_object_get_type(a) != json_object_get_type(b))
        return false;
    if (a == b)
        return true;
    switch (json_object_get_type(a)) {
    case json_type_null:
        return true;
    case json_type_boolean:
        return json_object_get_boolean(a) == json_object_get_boolean(b);
    case json_type_string:
        return rv_str_eq(rv_json_str(a), rv_json_str(b));
    case json_type_array:
        return arrays_equal(a, b);
    case json_type_object:
        return objects_equal(a, b);
    case json_type_int:
    case json_type_double:
        break; /* compared above */
    }
    return false;
}

/* --- copying --- */

static int dup_value(json_object *v, json_object **out);

static int dup_object(json_object *v, json_object *copy)
{
    const struct lh_entry *e;

    for (e = lh_table_head(json_object_get_object(v)); e; e = lh_entry_next(e)) {
        json_object *item = NULL;
        if (dup_value(lh_entry_v(e), &item) < 0)
            return RV_E_NOMEM;
        if (add_member(copy, lh_entry_k(e), item) < 0) {
            json_object_put(item);
            return RV_E_NOMEM;
        }
    }
    return 0;
}

static int dup_array(json_object *v, json_object *copy)
{
    size_t i, n = json_object_array_length(v);

    for (i = 0; i < n; i++) {
        json_object *item = NULL;
        if (dup_value(json_object_array_get_idx(v, i), &item) < 0)
            return RV_E_NOMEM;
        if (json_object_array_add(copy, item) < 0) {
            json_object_put(item);
            return RV_E_NOMEM;
        }
    }
    return 0;
}

static json_object *dup_number(json_object *v)
{
    bool negative;
    uint64_t magnitude;
    const char *text;

    if (json_object_is_type(v, json_type_double)) {
        text = base_json_double_text(v);
        return text ? json_object_new_double_s(json_object_get_double(v), text)
                    : json_object_new_double(json_object_get_double(v));
    }
    base_json_int_parts(v, &negative, &magnitude);
    return !negative && magnitude > INT64_MAX ? json_object_new_uint64(magnitude)
                                              : json_object_new_int64(json_object_get_int64(v));
}

/* 0 or RV_E_NOMEM; a NULL v is a JSON null. */
static int dup_value(json_object *v, json_object **out)
{
    json_object *copy = NULL;
    rv_str s;
    int rc = 0;

    switch (json_object_get_type(v)) {
    case json_type_null:
        *out = NULL;
        return 0;
    case json_type_boolean:
        copy = json_object_new_boolean(json_object_get_boolean(v));
        break;
    case json_type_int:
    case json_type_double:
        copy = dup_number(v);
        break;
    case json_type_string:
        s = rv_json_str(v);
        copy = json_object_new_string_len(s.ptr, (int)s.len);
        break;
    case json_type_array:
        copy = json_object_new_array_ext((int)(json_object_array_length(v) ? json_object_array_length(v) : 1));
        rc = copy ? dup_array(v, copy) : 0;
        break;
    case json_type_object:
        copy = json_object_new_object();
        rc = copy ? dup_object(v, copy) : 0;
        break;
    }
    if (!copy || rc < 0) {
        json_object_put(copy);
        return RV_E_NOMEM;
    }
    *out = copy;
    return 0;
}

int rv_json_dup(json_object *v, json_object **out, rv_err **err)
{
    if (dup_value(v, out) < 0)
        return RV_FAIL(err, RV_E_NOMEM, "no memory to copy JSON");
    return 0;
}
