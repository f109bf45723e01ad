/* Values compared: numbers, and equal items of an array. Integers and floats compared by value. long double holds every
 * int64, uint64 and double exactly on the machines that matter (64 bits of mantissa or more); elsewhere only neighbours
 * above 2^53 blur. */
#include <float.h>
#include <json-c/linkhash.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/tools/schema_internal.h"

#define ALL_DOUBLES_ARE_WHOLE 4503599627370496.0L /* 2^52 */

static long double value_of(json_object *v)
{
    int64_t i;

    if (json_object_is_type(v, json_type_double))
        return json_object_get_double(v);
    i = json_object_get_int64(v); /* saturates at the top, where the unsigned getter knows more */
    return i == INT64_MAX ? (long double)json_object_get_uint64(v) : (long double)i;
}

bool tools_schema_is_integral(json_object *v)
{
    double d;

    if (json_object_is_type(v, json_type_int))
        return true;
    if (!json_object_is_type(v, json_type_double))
        return false;
    d = json_object_get_double(v);
    return isfinite(d) && d == trunc(d);
}

int tools_schema_number_cmp(json_object *a, json_object *b)
{
    long double x = value_of(a), y = value_of(b);

    return (x > y) - (x < y);
}

bool tools_schema_is_multiple(json_object *v, json_object *of)
{
    long double x = value_of(v), step = value_of(of), q = x / step, distance;

    if (!isfinite(q))
        return false;
    if (fmodl(x, step) == 0)
        return true;
    /* 0.0075 is 75 times 0.0001 for people, if not in binary: allow the rounding errors of the two texts. */
    distance = fabsl(q - roundl(q));
    return fabsl(q) < ALL_DOUBLES_ARE_WHOLE && distance <= 4 * (long double)DBL_EPSILON * fmaxl(1, fabsl(q)) &&
           (json_object_is_type(v, json_type_double) || json_object_is_type(of, json_type_double));
}

/* Equal items of an array, in time that grows with its size: equal values have equal hashes, so only those are
 * compared. Small arrays are compared pair by pair. */

#define FEW_ITEMS 16 /* of an array, up to which each is compared with each */

struct hashed {
    uint64_t hash;
    size_t i;
};

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * RV_GOLDEN;
    return h ^ (h >> 29);
}

static uint64_t hash_bytes(uint64_t h, const char *p, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        h = (h ^ (unsigned char)p[i]) * UINT64_C(0x100000001B3);
    return mix(h, n);
}

/* Equal by value, 1 and 1.0 too: integers hash as the double nearest to them. */
static uint64_t hash_number(json_object *v)
{
    double d = json_object_get_double(v);
    uint64_t bits = 0;

    if (d != 0) /* 0 and -0.0 are equal */
        memcpy(&bits, &d, sizeof bits);
    return mix(RV_SCHEMA_NUMBER, bits);
}

/* Recurses as deep as the value; the JSON reader has bounded its depth. */
static uint64_t hash_value(json_object *v, size_t *steps)
{
    uint64_t h;
    size_t i;
    rv_str s;

    if (*steps == 0)
        return 0;
    --*steps;
    switch (json_object_get_type(v)) {
    case json_type_null:
        return mix(RV_SCHEMA_NULL, 0);
    case json_type_boolean:
        return mix(RV_SCHEMA_BOOLEAN, (uint64_t)json_object_get_boolean(v));
    case json_type_int:
    case json_type_double:
        return hash_number(v);
    case json_type_string:
        s = rv_json_str(v);
        return hash_bytes(RV_SCHEMA_STRING, s.ptr, s.len);
    case json_type_array:
        h = RV_SCHEMA_ARRAY;
        for (i = 0; i < json_object_array_length(v); i++)
            h = mix(h, hash_value(json_object_array_get_idx(v, i), steps));
        return h;
    case json_type_object:
        break;
    }
    h = RV_SCHEMA_OBJECT;
    json_object_object_foreach (v, key, child) {
        h += mix(hash_bytes(0, key, strlen(key)), hash_value(child, steps)); /* a sum: order does not matter */
    }
    return h;
}

static int by_hash(const void *a, const void *b)
{
    const struct hashed *x = a, *y = b;

    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

static bool same(json_object *array, size_t i, size_t k, size_t *steps)
{
    if (*steps == 0)
        return false;
    --*steps;
    return rv_json_equal(json_object_array_get_idx(array, i), json_object_array_get_idx(array, k));
}

int tools_schema_find_equal(json_object *array, size_t *steps, bool *found, size_t pair[2])
{
    size_t n = json_object_array_length(array), i, k;
    struct hashed *items = NULL;

    *found = false;
    if (n > FEW_ITEMS) {
        items = malloc(n * sizeof *items);
        if (!items)
            return RV_E_NOMEM;
        for (i = 0; i < n; i++)
            items[i] = (struct hashed){hash_value(json_object_array_get_idx(array, i), steps), i};
        qsort(items, n, sizeof *items, by_hash);
    }
    for (i = 0; i < n && !*found && *steps; i++) {
        for (k = i + 1; k < n && (!items || items[k].hash == items[i].hash) && *steps; k++) {
            pair[0] = items ? items[i].i : i;
            pair[1] = items ? items[k].i : k;
            *found = same(array, pair[0], pair[1], steps);
            if (*found)
                break;
        }
    }
    free(items);
    return 0;
}
