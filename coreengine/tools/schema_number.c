/* Numbers of a schema: integers and floats compared by value. long double holds every int64, uint64 and double exactly
 * on the machines that matter (64 bits of mantissa or more); elsewhere only neighbours above 2^53 blur. */
#include "coreengine/tools/schema_internal.h"

#include <float.h>
#include <math.h>

#define ALL_DOUBLES_ARE_WHOLE 4503599627370496.0L /* 2^52 */

static long double value_of(json_object *v)
{
    int64_t i;

    if (json_object_is_type(v, json_type_double))
        return json_object_get_double(v);
    i = json_object_get_int64(v); /* saturates at the top, where the unsigned getter knows more */
    return i == INT64_MAX ? (long double)json_object_get_uint64(v) : (long double)i;
}

bool rv_schema_is_integral(json_object *v)
{
    double d;

    if (json_object_is_type(v, json_type_int))
        return true;
    if (!json_object_is_type(v, json_type_double))
        return false;
    d = json_object_get_double(v);
    return isfinite(d) && d == trunc(d);
}

int rv_schema_number_cmp(json_object *a, json_object *b)
{
    long double x = value_of(a), y = value_of(b);

    return (x > y) - (x < y);
}

bool rv_schema_is_multiple(json_object *v, json_object *of)
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
