/* Shared by the files of base only. */
#ifndef RV_BASE_INTERNAL_H
#define RV_BASE_INTERNAL_H

#include "coreengine/base/base.h"

#define RV_ERR_MAX_TEXT  4096 /* bytes of one link or hint: a screen of a terminal; longer is cut at a UTF-8 border */
#define RV_ERR_MAX_LINKS 32   /* a longer chain says nothing more; further links are dropped */

struct rv_err {
    int code;
    int n_links;    /* of the chain from here down */
    bool lost_link; /* one above it could not be made for want of memory */
    int c_line;
    const char *c_file; /* static: __FILE__ */
    rv_err *cause;      /* owned */
    char *hint;         /* owned, may be NULL */
    const char *file;   /* in this block, behind text; NULL when the place is unknown; static */
    int line, col;
    char text[]; /* valid UTF-8 */
};

/** Length of the UTF-8 sequence at p (n > 0 bytes are there): 1..4, 0 when broken, -1 when cut off but fine so far. */
int base_utf8_next(const unsigned char *p, size_t n);
/** The number of bytes at p that go into a JSON string unchanged: ASCII without controls, quote and backslash. */
size_t base_json_plain_run(const char *p, size_t n);

/** As base_buf_room(), when there is not enough room yet. */
char *base_buf_grow(rv_buf *b, size_t n);

/** Room for n more bytes and a NUL, or NULL (the failure sticks). The caller adds what it wrote to len. */
static inline char *base_buf_room(rv_buf *b, size_t n)
{
    return b->rc == 0 && b->cap && n < b->cap - b->len ? b->ptr + b->len : base_buf_grow(b, n);
}

#define RV_JSON_NUMBER_MAX 40 /* bytes of a number as text, with the NUL */
/** Shortest text that reads back as d, with a point or an exponent. d is finite. Returns the length. */
size_t base_json_number_write(double d, char out[RV_JSON_NUMBER_MAX]);
/** Decimal digits of i, no NUL. Returns the length (at most 20). */
size_t base_json_int_write(bool negative, uint64_t magnitude, char out[RV_JSON_NUMBER_MAX]);

/** An integer node as sign and magnitude, over the whole range int64..uint64. */
void base_json_int_parts(json_object *v, bool *negative, uint64_t *magnitude);
/** The source text of a double node, or NULL. */
const char *base_json_double_text(json_object *v);

/** The one-line form of a chain, handed over in pieces: no memory needed. */
void base_err_line(const rv_err *err, void (*put)(void *self, rv_str piece), void *self);

/** A sink of lines that never waits (log_sink.c). fd is borrowed. NULL when memory is short. Not for two threads at
 * once. */
struct rv_log_sink;
struct rv_log_sink *base_log_sink_new(int fd);
/** false: the line, of at most 16 KiB, is lost, because the reader has taken nothing for too long. */
bool base_log_sink_put(struct rv_log_sink *sink, rv_str line);
/** Waits for a reader that still takes lines. */
void base_log_sink_free(struct rv_log_sink *sink);

#endif
