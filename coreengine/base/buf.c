/* The growing buffer: capped, NUL-terminated, failures stick until they are checked. */
#include "coreengine/base/base_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAP 64

void rv_buf_init(rv_buf *b, size_t max_bytes)
{
    *b = RV_BUF_INIT(max_bytes);
}

void rv_buf_fini(rv_buf *b)
{
    free(b->ptr);
    *b = RV_BUF_INIT(0);
}

void rv_buf_clear(rv_buf *b)
{
    b->len = 0;
    b->rc = 0;
    if (b->ptr)
        b->ptr[0] = '\0';
}

char *rv_buf_grow(rv_buf *b, size_t n)
{
    size_t cap;
    char *grown;

    if (b->rc)
        return NULL;
    if (n > b->max - b->len || b->len + n == SIZE_MAX) {
        b->rc = RV_E_LIMIT;
        return NULL;
    }
    cap = b->cap ? b->cap : FIRST_CAP;
    while (cap < b->len + n + 1)
        cap = cap > SIZE_MAX / 2 ? SIZE_MAX : cap * 2;
    if (b->max < SIZE_MAX && cap > b->max + 1)
        cap = b->max + 1;
    grown = realloc(b->ptr, cap);
    if (!grown) {
        b->rc = RV_E_NOMEM;
        return NULL;
    }
    b->ptr = grown;
    b->cap = cap;
    return b->ptr + b->len;
}

void rv_buf_add(rv_buf *b, const void *bytes, size_t len)
{
    char *to = rv_buf_room(b, len);

    if (!to)
        return;
    if (len)
        memcpy(to, bytes, len);
    b->len += len;
    b->ptr[b->len] = '\0';
}

void rv_buf_add_str(rv_buf *b, rv_str s)
{
    rv_buf_add(b, s.ptr, s.len);
}

void rv_buf_puts(rv_buf *b, const char *text)
{
    rv_buf_add(b, text, strlen(text));
}

void rv_buf_putc(rv_buf *b, char c)
{
    char *to = rv_buf_room(b, 1);

    if (!to)
        return;
    to[0] = c;
    to[1] = '\0';
    b->len++;
}

void rv_buf_vprintf(rv_buf *b, const char *fmt, va_list args)
{
    va_list again;
    char *to;
    int n;

    va_copy(again, args);
    n = vsnprintf(NULL, 0, fmt, args);
    if (n < 0) { /* an argument longer than an int can count */
        if (!b->rc)
            b->rc = RV_E_LIMIT;
    } else {
        to = rv_buf_room(b, (size_t)n);
        if (to) {
            (void)vsnprintf(to, (size_t)n + 1, fmt, again);
            b->len += (size_t)n;
        }
    }
    va_end(again);
}

void rv_buf_printf(rv_buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    rv_buf_vprintf(b, fmt, ap);
    va_end(ap);
}

void rv_buf_truncate(rv_buf *b, size_t len)
{
    assert(len <= b->len);
    b->len = len;
    if (b->ptr)
        b->ptr[len] = '\0';
}

int rv_buf_check(const rv_buf *b, const char *what, rv_err **err)
{
    if (b->rc == 0)
        return 0;
    if (b->rc == RV_E_LIMIT)
        return RV_FAIL(err, RV_E_LIMIT, "%s is longer than %zu bytes", what, b->max);
    if (b->rc == RV_E_NOMEM)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for %s", what);
    return RV_FAIL(err, b->rc, "%s holds text that is not UTF-8 or a number that is not finite", what);
}

rv_str rv_buf_str(const rv_buf *b)
{
    return (rv_str){b->ptr, b->len};
}

const char *rv_buf_cstr(const rv_buf *b)
{
    return b->ptr ? b->ptr : "";
}

char *rv_buf_steal(rv_buf *b, size_t *out_len)
{
    char *bytes;

    if (b->rc)
        return NULL;
    bytes = b->ptr ? b->ptr : calloc(1, 1);
    if (!bytes)
        return NULL;
    if (out_len)
        *out_len = b->len;
    *b = RV_BUF_INIT(b->max);
    return bytes;
}
