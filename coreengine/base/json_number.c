/* Numbers between text and machine, whatever the process's locale says about decimal points. */
#include "coreengine/base/base_internal.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;
static locale_t c_locale; /* never freed; glibc hands out a static one */

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

double rv_json_number_read(const char *text)
{
    pthread_once(&c_locale_once, make_c_locale);
    return c_locale ? strtod_l(text, NULL, c_locale) : strtod(text, NULL);
}

size_t rv_json_number_write(double d, char out[RV_JSON_NUMBER_MAX])
{
    locale_t before = (locale_t)0;
    size_t len = 0;
    int digits;

    pthread_once(&c_locale_once, make_c_locale);
    if (c_locale)
        before = uselocale(c_locale);
    for (digits = 15; digits <= 17; digits++) { /* 17 digits tell all doubles apart */
        len = (size_t)snprintf(out, RV_JSON_NUMBER_MAX, "%.*g", digits, d);
        if (strtod(out, NULL) == d)
            break;
    }
    if (before)
        uselocale(before);
    if (!strpbrk(out, ".e")) {
        memcpy(out + len, ".0", 3);
        len += 2;
    }
    return len;
}

size_t rv_json_int_write(bool negative, uint64_t magnitude, char out[RV_JSON_NUMBER_MAX])
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
                                "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
                                "8081828384858687888990919293949596979899";
    char digits[RV_JSON_NUMBER_MAX];
    char *p = digits + sizeof digits;
    size_t len;

    while (magnitude >= 100) {
        p -= 2;
        memcpy(p, pairs + magnitude % 100 * 2, 2);
        magnitude /= 100;
    }
    if (magnitude >= 10) {
        p -= 2;
        memcpy(p, pairs + magnitude * 2, 2);
    } else {
        *--p = (char)('0' + magnitude);
    }
    if (negative)
        *--p = '-';
    len = (size_t)(digits + sizeof digits - p);
    memcpy(out, p, len);
    return len;
}
