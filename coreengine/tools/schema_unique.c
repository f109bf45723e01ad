/* Equal items of an array, in time that grows with its size: equal values have equal hashes, so only those are
 * compared. Small arrays are compared pair by pair. */
#include "coreengine/tools/schema_internal.h"

#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#define FEW_ITEMS 16

struct hashed {
    uint64_t hash;
    size_t i;
};

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * UINT64_C(0x9E3779B97F4A7C15);
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

int rv_schema_find_equal(json_object *array, size_t *steps, bool *found, size_t pair[2])
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
