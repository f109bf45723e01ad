/* Values compared: numbers, and equal items of an array. Integers and floats are compared by value, and numbers that
 * are equal in binary by their texts. long double holds every int64, uint64 and double exactly on the machines that
 * matter (64 bits of mantissa or more). */
#include <float.h>
#include <json-c/linkhash.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/tools/schema_internal.h"

#define MAX_DIGITS   40     /* of a number: a double has 17, a whole number of 64 bits 20 */
#define MAX_STEP     18     /* digits of a step: ten times its remainders fit 64 bits */
#define MAX_EXPONENT 1000   /* of a text: doubles end at 1e308, and 1e-324 */
#define MAX_NUMBER   512    /* bytes of the text of a number; a longer one is compared in binary */
#define MAX_ERROR    0.001L /* of a quotient, from rounding: above, the texts alone tell */

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

/* A number as its text has it: digits times a power of ten. */
struct decimal {
    unsigned char digits[MAX_DIGITS]; /* neither the first nor the last is 0 */
    size_t n;                         /* 0: zero */
    int64_t exponent;
};

/* False: its text has more digits. */
static bool read_decimal(json_object *v, struct decimal *d)
{
    rv_buf text = RV_BUF_INIT(MAX_NUMBER);
    bool fits = true, behind_point = false;

    *d = (struct decimal){.n = 0};
    rv_json_write(v, &text);
    for (const char *p = rv_buf_cstr(&text); *p && fits; p++) {
        if (*p == 'e' || *p == 'E') {
            long e = strtol(p + 1, NULL, 10);
            fits = e > -MAX_EXPONENT && e < MAX_EXPONENT;
            d->exponent += fits ? e : 0;
            break;
        }
        behind_point = behind_point || *p == '.';
        if (!rv_is_digit(*p))
            continue;
        d->exponent -= behind_point;
        fits = d->n < MAX_DIGITS;
        if (fits && (d->n || *p != '0'))
            d->digits[d->n++] = (unsigned char)(*p - '0');
    }
    for (; d->n && d->digits[d->n - 1] == 0; d->n--)
        d->exponent++;
    fits = fits && text.rc == 0;
    rv_buf_fini(&text);
    return fits;
}

static int magnitude_cmp(const struct decimal *x, const struct decimal *y)
{
    int64_t tens_x = x->exponent + (int64_t)x->n, tens_y = y->exponent + (int64_t)y->n;

    if (x->n == 0 || y->n == 0)
        return (x->n > 0) - (y->n > 0);
    if (tens_x != tens_y)
        return tens_x > tens_y ? 1 : -1;
    for (size_t i = 0; i < x->n || i < y->n; i++) {
        int a = i < x->n ? x->digits[i] : 0, b = i < y->n ? y->digits[i] : 0;
        if (a != b)
            return a > b ? 1 : -1;
    }
    return 0;
}

/* A number that is too near 0 for its binary form still has its sign there, and 0 has none. */
static int sign_of(long double x, const struct decimal *d)
{
    if (d->n == 0)
        return 0;
    return signbit(x) ? -1 : 1;
}

int tools_schema_number_cmp(json_object *a, json_object *b)
{
    long double x = value_of(a), y = value_of(b);
    struct decimal dx, dy;

    if (x != y)
        return x > y ? 1 : -1;
    /* Two whole numbers of 64 bits are equal; others may only be too near for their binary form. */
    if ((json_object_is_type(a, json_type_int) && json_object_is_type(b, json_type_int)) || !read_decimal(a, &dx) ||
        !read_decimal(b, &dy))
        return 0;
    int sign = sign_of(x, &dx), other = sign_of(y, &dy);
    if (sign != other)
        return sign > other ? 1 : -1;
    return sign < 0 ? magnitude_cmp(&dy, &dx) : magnitude_cmp(&dx, &dy);
}

/* Exactly, by the texts of both. False where they are longer than any that people write. */
static bool is_decimal_multiple(json_object *v, json_object *of)
{
    struct decimal x, step;
    uint64_t whole = 0, rest = 0;

    if (!read_decimal(v, &x) || !read_decimal(of, &step) || step.n > MAX_STEP || step.n == 0)
        return false;
    if (x.n == 0 || x.exponent < step.exponent)
        return x.n == 0; /* the last digit of x stands behind the last of the step */
    for (size_t i = 0; i < step.n; i++)
        whole = whole * 10 + step.digits[i];
    for (size_t i = 0; i < x.n; i++)
        rest = (rest * 10 + x.digits[i]) % whole;
    /* a ten takes a 2 and a 5 out of the step, which has fewer than 64 of them: more tens change nothing */
    for (int64_t i = 0; i < x.exponent - step.exponent && i < 64 && rest; i++)
        rest = rest * 10 % whole;
    return rest == 0;
}

bool tools_schema_is_multiple(json_object *v, json_object *of)
{
    long double q = fabsl(value_of(v) / value_of(of)), error = 4 * (long double)DBL_EPSILON * fmaxl(1, q);

    if (is_decimal_multiple(v, of))
        return true;
    /* 0.30000000000000004 is three times 0.1 for who computed it: allow rounding errors, as long as they are small. */
    return isfinite(q) && error < MAX_ERROR && fabsl(q - roundl(q)) <= error &&
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
