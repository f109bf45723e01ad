/* Borrowed text views and UTF-8. */
#include "coreengine/base/base_internal.h"

#include <stdlib.h>
#include <string.h>

rv_str rv_str_of(const char *text)
{
    return text ? (rv_str){text, strlen(text)} : (rv_str){NULL, 0};
}

bool rv_str_eq(rv_str a, rv_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

bool rv_str_is(rv_str a, const char *text)
{
    return rv_str_eq(a, rv_str_of(text));
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

rv_str rv_str_trim(rv_str s)
{
    while (s.len && is_space(s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    while (s.len && is_space(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

char *rv_str_dup(rv_str s)
{
    char *copy = s.len < SIZE_MAX ? malloc(s.len + 1) : NULL;

    if (!copy)
        return NULL;
    if (s.len)
        memcpy(copy, s.ptr, s.len);
    copy[s.len] = '\0';
    return copy;
}

int rv_utf8_next(const unsigned char *p, size_t n)
{
    /* The second byte carries the limits that rule out overlong forms, surrogates and values above U+10FFFF. */
    unsigned char lo = 0x80, hi = 0xBF;
    int need, i;

    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xC2 || p[0] > 0xF4)
        return 0;
    need = p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    if (p[0] == 0xE0)
        lo = 0xA0;
    else if (p[0] == 0xED)
        hi = 0x9F;
    else if (p[0] == 0xF0)
        lo = 0x90;
    else if (p[0] == 0xF4)
        hi = 0x8F;
    for (i = 1; i < need; i++) {
        if ((size_t)i >= n)
            return -1;
        if (p[i] < lo || p[i] > hi)
            return 0;
        lo = 0x80;
        hi = 0xBF;
    }
    return need;
}

size_t rv_utf8_control(const char *p, size_t n)
{
    const unsigned char *c = (const unsigned char *)p;

    if (c[0] < 0x20 || c[0] == 0x7f)
        return 1;
    return n > 1 && c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0 ? 2 : 0;
}

bool rv_utf8_valid(rv_str s, size_t *bad)
{
    size_t i = 0;

    while (i < s.len) {
        int step;
        if ((unsigned char)s.ptr[i] < 0x80) {
            i++;
            continue;
        }
        step = rv_utf8_next((const unsigned char *)s.ptr + i, s.len - i);
        if (step <= 0) {
            if (bad)
                *bad = i;
            return false;
        }
        i += (size_t)step;
    }
    return true;
}

rv_str rv_utf8_cut(rv_str s, size_t max)
{
    size_t start, n;

    n = s.len < max ? s.len : max;
    /* Only the last sequence can be cut: step back to its first byte (at most three continuation bytes). */
    for (start = n; start > 0 && n - start < 3 && ((unsigned char)s.ptr[start - 1] & 0xC0) == 0x80;)
        start--;
    if (start > 0 && rv_utf8_next((const unsigned char *)s.ptr + start - 1, n - (start - 1)) == -1)
        n = start - 1;
    return (rv_str){s.ptr, n};
}
