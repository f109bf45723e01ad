/* The growing buffer: capped, NUL-terminated, failures stick until they are checked. */
#include <assert.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base_internal.h"
#include "coreengine/base/number.h"

/* --- Borrowed views and UTF-8 --- */

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

#define FIRST_ROOM 384 /* bytes: many lists of large elements have one */

bool rv_has_room(void *array, size_t *cap, size_t n, size_t size)
{
    size_t to = *cap ? *cap : size > FIRST_ROOM / 8 ? 2 : 8;
    void *old, *grown;

    if (n <= *cap)
        return true;
    while (to < n && to <= SIZE_MAX / 2)
        to *= 2;
    if (to < n || to > SIZE_MAX / size)
        return false;
    memcpy(&old, array, sizeof old);
    grown = realloc(old, to * size);
    if (!grown)
        return false;
    memcpy(array, &grown, sizeof grown);
    *cap = to;
    return true;
}

int base_utf8_next(const unsigned char *p, size_t n)
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

bool rv_utf8_reorders(const char *p, size_t n)
{
    const unsigned char *c = (const unsigned char *)p;

    return n > 2 && c[0] == 0xe2 &&
           ((c[1] == 0x80 && c[2] >= 0xaa && c[2] <= 0xae) || (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9));
}

rv_str rv_utf8_unmark(rv_str s)
{
    bool is_marked = s.len >= 3 && memcmp(s.ptr, "\xef\xbb\xbf", 3) == 0;

    return is_marked ? (rv_str){s.ptr + 3, s.len - 3} : s;
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
        step = base_utf8_next((const unsigned char *)s.ptr + i, s.len - i);
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
    for (start = n; start > 0 && n - start < 3 && rv_utf8_continues(s.ptr[start - 1]);)
        start--;
    if (start > 0 && base_utf8_next((const unsigned char *)s.ptr + start - 1, n - (start - 1)) == -1)
        n = start - 1;
    return (rv_str){s.ptr, n};
}

size_t rv_utf8_count(rv_str s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.len; i++)
        n += !rv_utf8_continues(s.ptr[i]);
    return n;
}

rv_str rv_utf8_first(rv_str s, size_t n)
{
    size_t at = 0;

    while (at < s.len && (rv_utf8_continues(s.ptr[at]) || n-- > 0))
        at++;
    return (rv_str){s.ptr, at};
}

/* --- Arenas: blocks in a list, allocation by bumping, freed all at once --- */

/* Each block is twice as large as the one before: many arenas stay small, and a loaded pipeline takes a handful of the
 * largest. A larger request gets a block of its own. */
#define FIRST_BLOCK ((size_t)512)
#define BLOCK_BYTES ((size_t)8 << 10) /* of an arena's usual block: larger requests get a block of their own */

struct block {
    struct block *next;
    size_t used, size;
    alignas(max_align_t) unsigned char bytes[];
};

struct rv_arena {
    struct block *head; /* owned list; the first one is being filled */
    size_t total, max;  /* bytes handed out, and their ceiling */
    size_t next_block;  /* bytes of the next one */
};

rv_arena *rv_arena_new(size_t max_bytes)
{
    rv_arena *a = calloc(1, sizeof *a);

    if (a)
        *a = (rv_arena){.max = max_bytes, .next_block = FIRST_BLOCK};
    return a;
}

void rv_arena_free(rv_arena *a)
{
    struct block *b, *next;

    if (!a)
        return;
    for (b = a->head; b; b = next) {
        next = b->next;
        free(b);
    }
    free(a);
}

void *rv_arena_alloc(rv_arena *a, size_t size)
{
    const size_t align = alignof(max_align_t);
    struct block *b = a->head;
    void *p;

    if (size == 0)
        size = 1; /* distinct pointers */
    if (size > a->max || size > SIZE_MAX - sizeof(struct block) - align)
        return NULL;
    size = (size + align - 1) / align * align;
    if (size > a->max - a->total)
        return NULL;
    if (!b || size > b->size - b->used) {
        bool is_own = size > BLOCK_BYTES;
        while (a->next_block < size && a->next_block < BLOCK_BYTES)
            a->next_block *= 2;
        size_t want = is_own ? size : a->next_block;
        struct block *fresh = calloc(1, sizeof *fresh + want);
        if (!fresh)
            return NULL;
        fresh->size = want;
        if (!is_own && a->next_block < BLOCK_BYTES)
            a->next_block *= 2;
        if (b && is_own) { /* full from the start: the present block goes on being filled */
            fresh->next = b->next;
            b->next = fresh;
        } else {
            fresh->next = b;
            a->head = fresh;
        }
        b = fresh;
    }
    p = b->bytes + b->used;
    b->used += size;
    a->total += size;
    return p;
}

char *rv_arena_dup(rv_arena *a, rv_str s)
{
    char *copy = s.len < SIZE_MAX ? rv_arena_alloc(a, s.len + 1) : NULL;

    if (copy && s.len)
        memcpy(copy, s.ptr, s.len);
    return copy;
}

void *rv_arena_grow(rv_arena *a, const void *items, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return (void *)(uintptr_t)items;
    size_t wanted = *cap ? *cap * 2 : 64;
    void *more = rv_arena_alloc(a, wanted * size);
    if (!more)
        return NULL;
    if (n)
        memcpy(more, items, n * size);
    *cap = wanted;
    return more;
}

/* --- Buffers --- */

#define FIRST_CAP 64 /* bytes that a buffer begins with: a line of text; it doubles from there */

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

char *base_buf_grow(rv_buf *b, size_t n)
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
    char *to = base_buf_room(b, len);

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

void rv_buf_add_buf(rv_buf *b, const rv_buf *more)
{
    if (more->rc < 0 && b->rc == 0)
        b->rc = more->rc;
    rv_buf_add_str(b, rv_buf_str(more)); /* nothing is added behind a failure */
}

void rv_buf_puts(rv_buf *b, const char *text)
{
    rv_buf_add(b, text, strlen(text));
}

/* Bytes at p[0..n) that are a character which XML does not have: control characters but for tab, line feed and carriage
 * return, U+FFFE, U+FFFF. 0: it has it. */
static size_t not_xml(const char *p, size_t n)
{
    unsigned char c = (unsigned char)*p;

    if (c < 0x20)
        return c != '\t' && c != '\n' && c != '\r';
    return n >= 3 && memcmp(p, "\xef\xbf", 2) == 0 && (unsigned char)p[2] >= 0xbe ? 3 : 0;
}

void rv_buf_add_xml(rv_buf *b, rv_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        size_t bad = not_xml(s.ptr + i, s.len - i);
        if (bad > 0) {
            rv_buf_putc(b, '?');
            i += bad - 1;
        } else if (s.ptr[i] == '<') {
            rv_buf_puts(b, "&lt;");
        } else if (s.ptr[i] == '>') {
            rv_buf_puts(b, "&gt;");
        } else if (s.ptr[i] == '&') {
            rv_buf_puts(b, "&amp;");
        } else if (s.ptr[i] == '"') {
            rv_buf_puts(b, "&quot;");
        } else {
            rv_buf_putc(b, s.ptr[i]);
        }
    }
}

void rv_buf_putc(rv_buf *b, char c)
{
    char *to = base_buf_room(b, 1);

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
    n = rv_vformat(NULL, 0, fmt, args);
    if (n < 0) { /* an argument longer than an int can count */
        if (!b->rc)
            b->rc = RV_E_LIMIT;
    } else {
        to = base_buf_room(b, (size_t)n);
        if (to) {
            rv_vformat(to, (size_t)n + 1, fmt, again);
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
