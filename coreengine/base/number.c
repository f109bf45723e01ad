/* The locale "C" for one call of the C library, in the thread that makes it. */
#include "coreengine/base/number.h"

#include <langinfo.h>
#include <locale.h>
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

/* 0: the thread has a point already, as in almost every program. */
static locale_t enter(void)
{
    if (strcmp(nl_langinfo(RADIXCHAR), ".") == 0)
        return (locale_t)0;
    pthread_once(&c_locale_once, make_c_locale);
    return c_locale ? uselocale(c_locale) : (locale_t)0;
}

static void leave(locale_t before)
{
    if (before)
        uselocale(before);
}

double rv_number_read(const char *text, char **end)
{
    locale_t before = enter();
    double d = strtod(text, end);

    leave(before);
    return d;
}

int rv_vformat(char *out, size_t size, const char *fmt, va_list args)
{
    locale_t before = enter();
    int n = vsnprintf(out, size, fmt, args);

    leave(before);
    return n;
}

int rv_format(char *out, size_t size, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    int n = rv_vformat(out, size, fmt, args);
    va_end(args);
    return n;
}
