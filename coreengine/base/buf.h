/* Bytes: borrowed views, capped growing buffers, UTF-8, small text helpers.
 *
 * rv_str is a view, passed by value, not NUL-terminated. rv_buf grows up to a ceiling that must be given at init and
 * is always NUL-terminated. Appending is sticky: after the first failure (ceiling or memory) every further append is
 * a no-op, and rv_buf_check() reports it once. So a writer appends freely and checks at the end. */
#ifndef RV_BASE_BUF_H
#define RV_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "coreengine/base/err.h"

typedef struct rv_str {
    const char *ptr; /* borrowed; may be NULL only when len is 0 */
    size_t len;
} rv_str;

#define RV_STR_LIT(s) ((rv_str){(s), sizeof(s) - 1})
#define RV_STR_ARG(s) (int)(s).len, (s).ptr      /* for "%.*s" */
static inline rv_str rv_str_of(const char *text) /* NULL gives the empty view */
{
    rv_str s = {text, text ? strlen(text) : 0};

    return s;
}
static inline bool rv_str_eq(rv_str a, rv_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}
static inline bool rv_str_is(rv_str a, const char *text) /* of a literal: a comparison of two numbers comes first */
{
    return rv_str_eq(a, rv_str_of(text));
}
static inline bool rv_text_eq(const char *a, const char *b) /* NULL is equal to NULL only */
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}
/** The first byte c of s, or NULL. */
static inline const char *rv_str_find(rv_str s, char c)
{
    return s.len ? (const char *)memchr(s.ptr, c, s.len) : NULL;
}
rv_str rv_str_trim(rv_str s); /* ASCII white space at both ends */
/** Heap copy with a NUL; free() it. NULL on failure. Embedded NULs are copied. */
char *rv_str_dup(rv_str s);

/** Room in *array, a pointer to heap memory for *cap items of size each, for n items: it doubles, and stays as it is
 * where memory is short, which is false. */
RV_MUST_CHECK bool rv_has_room(void *array, size_t *cap, size_t n, size_t size);

/** True if s is valid UTF-8 (no overlong forms, no surrogates, nothing above U+10FFFF). `bad`, if given, gets the
 * offset. */
bool rv_utf8_valid(rv_str s, size_t *bad);
/** Is it a byte of a UTF-8 sequence, and not its first one? */
static inline bool rv_utf8_continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}
/** Bytes of the control character at p[0..n), n > 0: C0, DEL, C1 (U+0080 to U+009F). 0: another character. */
size_t rv_utf8_control(const char *p, size_t n);
/** Does a character at p[0..n), n > 0, show the text around it in another order: U+202A to U+202E, U+2066 to U+2069?
 * It has three bytes. */
bool rv_utf8_reorders(const char *p, size_t n);
/** s without the byte order mark that it may begin with. */
rv_str rv_utf8_unmark(rv_str s);
/** The longest prefix of at most max bytes that does not cut a UTF-8 sequence. */
rv_str rv_utf8_cut(rv_str s, size_t max);
/** Characters (code points) of a valid text. */
size_t rv_utf8_count(rv_str s);
/** The first n characters; all of s if it has no more. */
rv_str rv_utf8_first(rv_str s, size_t n);

/* ASCII, whatever the locale is. */
static inline bool rv_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool rv_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline bool rv_is_hex(char c)
{
    return rv_is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static inline char rv_ascii_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

typedef struct rv_buf {
    char *ptr; /* owned; NULL until the first append */
    size_t len, cap, max;
    int rc; /* 0, RV_E_NOMEM or RV_E_LIMIT; sticky */
} rv_buf;

#define RV_BUF_INIT(max_bytes) ((rv_buf){NULL, 0, 0, (max_bytes), 0})
void rv_buf_init(rv_buf *b, size_t max_bytes);
void rv_buf_fini(rv_buf *b);  /* back to a zeroed buffer; fine on a zeroed one */
void rv_buf_clear(rv_buf *b); /* length 0, memory kept, failure forgotten */
void rv_buf_add(rv_buf *b, const void *bytes, size_t len);
void rv_buf_add_str(rv_buf *b, rv_str s);
void rv_buf_add_buf(rv_buf *b, const rv_buf *more); /* a failure that sticks to more sticks to b then */
void rv_buf_puts(rv_buf *b, const char *text);
void rv_buf_putc(rv_buf *b, char c);
void rv_buf_printf(rv_buf *b, const char *fmt, ...) RV_PRINTF(2, 3);
void rv_buf_vprintf(rv_buf *b, const char *fmt, va_list args) RV_PRINTF(2, 0);
/** Append a text to XML or HTML, as content or in quotes: markup is escaped, what XML cannot have is "?". s is UTF-8.
 */
void rv_buf_add_xml(rv_buf *b, rv_str s);
/** Cut back to len bytes (len <= b->len). */
void rv_buf_truncate(rv_buf *b, size_t len);
/** 0, or the sticky failure as an error that says `what` was being written. */
RV_MUST_CHECK int rv_buf_check(const rv_buf *b, const char *what, rv_err **err);
rv_str rv_buf_str(const rv_buf *b);
const char *rv_buf_cstr(const rv_buf *b); /* "" when empty; valid until the next append */
/** Take the bytes out (NUL-terminated, free() them); the buffer is empty again. NULL if a failure stuck. */
char *rv_buf_steal(rv_buf *b, size_t *out_len);

/* Arena: many small allocations that die together. Owner says when. No destructors inside. Not thread-safe. */
typedef struct rv_arena rv_arena;
rv_arena *rv_arena_new(size_t max_bytes); /* NULL on failure */
void rv_arena_free(rv_arena *a);
void *rv_arena_alloc(rv_arena *a, size_t size); /* zeroed, aligned for any type; NULL: memory or ceiling */
char *rv_arena_dup(rv_arena *a, rv_str s);      /* NUL-terminated */
/** Room for one more of n items of `size` bytes: the items themselves, or a copy of twice the room, and *cap with it.
 * NULL: no memory. */
void *rv_arena_grow(rv_arena *a, const void *items, size_t n, size_t *cap, size_t size);

/* Names to indices: an open-addressing hash for lookups by text. Keys are borrowed and must outlive the index. */
typedef struct rv_index {
    struct rv_index_slot *slots; /* owned */
    size_t n, cap;
} rv_index;
/** Add key -> value; RV_E_EXISTS if present (the old value stays), RV_E_NOMEM. */
RV_MUST_CHECK int rv_index_add(rv_index *ix, rv_str key, int value);
/** The value, or -1. */
int rv_index_get(const rv_index *ix, rv_str key);
void rv_index_fini(rv_index *ix);

/** The nearest of names[0..n) to `name` by edit distance, or NULL if none is near enough to be a likely typo. */
const char *rv_nearest(rv_str name, const char *const *names, size_t n);

/** Read a whole file into b (whose ceiling applies). RV_E_NOT_FOUND, RV_E_IO, RV_E_LIMIT, RV_E_NOMEM. `path` "-" is
 * stdin. */
RV_MUST_CHECK int rv_file_read(const char *path, rv_buf *b, rv_err **err);
/** Write a file as a whole: temporary name beside it, fsync, rename. An old file survives any failure. Afterwards only
 * its owner may read it. RV_E_INVALID: a symbolic link, outside of /dev. */
RV_MUST_CHECK int rv_file_write(const char *path, rv_str bytes, rv_err **err);
/** The same for a file that is there and belongs to its author: the users that may read and write it stay.
 * RV_E_NOT_FOUND besides. */
RV_MUST_CHECK int rv_file_rewrite(const char *path, rv_str bytes, rv_err **err);
/** Write a file that is not there yet, for the readers that the umask allows. The check and the creation are one step;
 * a link is not followed; nothing is left of a file that could not be written. RV_E_EXISTS, RV_E_NOT_FOUND, RV_E_IO. */
RV_MUST_CHECK int rv_file_write_new(const char *path, rv_str bytes, rv_err **err);
/** Make the folders above a file that are missing, for their owner only. RV_E_IO, RV_E_NOMEM. */
RV_MUST_CHECK int rv_file_make_folders(const char *path, rv_err **err);
/** Open a file to write to it bit by bit: made or emptied, for its owner only. RV_E_INVALID: a symbolic link, outside
 * of /dev, or a file with a second name. */
RV_MUST_CHECK int rv_file_create(const char *path, int *out, rv_err **err);

#define RV_COUNT(a) (sizeof(a) / sizeof((a)[0]))
/* Directly behind a table whose rows an enum names: its last value has a row. tests/scripts/tables looks at the others.
 */
#define RV_EACH_HAS_ROW(table, n) _Static_assert(RV_COUNT(table) == (n), #table ": a row for each value of its enum")
/* Leaf temporaries: RV_AUTO(rv_buf_fini) rv_buf b = ...; the function receives the variable's address. */
#define RV_AUTO(fini) __attribute__((cleanup(fini)))

#endif
