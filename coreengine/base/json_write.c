/* The one JSON writer: a cursor for hand-made documents, and whole trees. On the hot path: no printf, few calls. */
#include <json-c/linkhash.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base_internal.h"
#include "coreengine/base/number.h"

/* --- Numbers between text and machine, whatever the process's locale says about decimal points --- */

size_t base_json_number_write(double d, char out[RV_JSON_NUMBER_MAX])
{
    size_t len = 0;
    int digits;

    for (digits = 15; digits <= 17; digits++) { /* 17 digits tell all doubles apart */
        len = (size_t)rv_format(out, RV_JSON_NUMBER_MAX, "%.*g", digits, d);
        if (rv_number_read(out, NULL) == d)
            break;
    }
    if (!strpbrk(out, ".e")) {
        memcpy(out + len, ".0", 3);
        len += 2;
    }
    return len;
}

size_t base_json_int_write(bool negative, uint64_t magnitude, char out[RV_JSON_NUMBER_MAX])
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

/* --- The writer --- */

#define COMPACT     (-1) /* in the place of an indentation: all in one line */
#define INDENT_STEP 2    /* blanks of one level */

#define STEP 16 /* bytes looked at together */

typedef signed char bytes_vector __attribute__((vector_size(STEP)));
typedef uint64_t word_vector __attribute__((vector_size(STEP)));

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* How many of the STEP bytes at p come before the first that is above 0x7F (negative here), below 0x20, a quote or a
 * backslash. */
static size_t plain_of_step(const char *p)
{
    bytes_vector v;
    word_vector special;
    uint64_t low, high;

    memcpy(&v, p, sizeof v);
    special = (word_vector)((v < 0x20) | (v == '"') | (v == '\\'));
    low = special[0];
    high = special[1];
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    low = __builtin_bswap64(low);
    high = __builtin_bswap64(high);
#endif
    if (low)
        return (size_t)__builtin_ctzll(low) / 8;
    return high ? 8 + (size_t)__builtin_ctzll(high) / 8 : STEP;
}

size_t base_json_plain_run(const char *p, size_t n)
{
    size_t i = 0, run;

    if (n < STEP) {
        while (i < n && is_plain((unsigned char)p[i]))
            i++;
        return i;
    }
    for (; n - i >= STEP; i += STEP) {
        run = plain_of_step(p + i);
        if (run < STEP)
            return i + run;
    }
    return n - STEP + plain_of_step(p + n - STEP); /* what overlaps is known to be plain */
}

static void put_char(rv_buf *b, char c)
{
    char *to = base_buf_room(b, 1);

    if (!to)
        return;
    to[0] = c;
    to[1] = '\0';
    b->len++;
}

static void fail(rv_buf *b)
{
    if (!b->rc)
        b->rc = RV_E_INVALID;
}

/* The text of an escaped ASCII byte; returns its length. */
static size_t escape(unsigned char c, char out[6])
{
    static const char shorts[0x20] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};

    out[0] = '\\';
    if (c >= 0x20 || shorts[c]) {
        out[1] = c >= 0x20 ? (char)c : shorts[c];
        return 2;
    }
    memcpy(out + 1, "u00", 3);
    rv_hex_make(&c, 1, out + 4);
    return 6;
}

static void write_escaped(rv_buf *b, rv_str s, size_t i)
{
    size_t from = 0, len;
    char text[6], *to;

    put_char(b, '"');
    while (i < s.len) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c >= 0x80) {
            int step = base_utf8_next((const unsigned char *)s.ptr + i, s.len - i);
            if (step <= 0) {
                fail(b);
                return;
            }
            i += (size_t)step;
        } else {
            len = escape(c, text);
            to = base_buf_room(b, i - from + len);
            if (!to)
                return;
            memcpy(to, s.ptr + from, i - from);
            memcpy(to + (i - from), text, len);
            b->len += i - from + len;
            b->ptr[b->len] = '\0';
            from = ++i;
        }
        i += base_json_plain_run(s.ptr + i, s.len - i);
    }
    rv_buf_add(b, s.ptr + from, s.len - from);
    put_char(b, '"');
}

/* `after` is one more byte to write, or NUL for none: the colon of a key. */
static void write_string(rv_buf *b, rv_str s, char after)
{
    size_t plain = base_json_plain_run(s.ptr, s.len), len = s.len + (after ? 3 : 2);
    char *to;

    if (plain != s.len || s.len > SIZE_MAX - 3) {
        write_escaped(b, s, plain);
        if (after)
            put_char(b, after);
        return;
    }
    to = base_buf_room(b, len); /* most strings need no escape: one copy */
    if (!to)
        return;
    to[0] = '"';
    if (s.len)
        memcpy(to + 1, s.ptr, s.len);
    to[s.len + 1] = '"';
    to[s.len + 2] = after;
    to[len] = '\0';
    b->len += len;
}

static void write_int(rv_buf *b, bool negative, uint64_t magnitude)
{
    char text[RV_JSON_NUMBER_MAX];
    size_t len = base_json_int_write(negative, magnitude, text);

    rv_buf_add(b, text, len);
}

static void write_double(rv_buf *b, double d)
{
    char text[RV_JSON_NUMBER_MAX];
    size_t len;

    if (!isfinite(d)) {
        fail(b);
        return;
    }
    len = base_json_number_write(d, text);
    rv_buf_add(b, text, len);
}

static void write_break(rv_buf *b, int indent)
{
    char *to;

    if (indent == COMPACT)
        return;
    to = base_buf_room(b, (size_t)indent + 1);
    if (!to)
        return;
    to[0] = '\n';
    memset(to + 1, ' ', (size_t)indent);
    b->len += (size_t)indent + 1;
    b->ptr[b->len] = '\0';
}

static int deeper(int indent)
{
    return indent == COMPACT ? COMPACT : indent + INDENT_STEP;
}

static void write_value(rv_buf *b, json_object *v, int indent);

static void write_object(rv_buf *b, json_object *v, int indent)
{
    const struct lh_entry *e = lh_table_head(json_object_get_object(v));

    put_char(b, '{');
    if (!e) {
        put_char(b, '}');
        return;
    }
    for (; e && !b->rc; e = lh_entry_next(e)) {
        write_break(b, deeper(indent));
        write_string(b, rv_str_of(lh_entry_k(e)), ':');
        if (indent != COMPACT)
            put_char(b, ' ');
        write_value(b, lh_entry_v(e), deeper(indent));
        if (lh_entry_next(e))
            put_char(b, ',');
    }
    write_break(b, indent);
    put_char(b, '}');
}

static void write_array(rv_buf *b, json_object *v, int indent)
{
    size_t i, n = json_object_array_length(v);

    put_char(b, '[');
    for (i = 0; i < n && !b->rc; i++) {
        if (i)
            put_char(b, ',');
        write_break(b, deeper(indent));
        write_value(b, json_object_array_get_idx(v, i), deeper(indent));
    }
    if (n)
        write_break(b, indent);
    put_char(b, ']');
}

static void write_value(rv_buf *b, json_object *v, int indent)
{
    const char *text;
    uint64_t magnitude;
    bool negative;

    switch (json_object_get_type(v)) {
    case json_type_null:
        rv_buf_add(b, "null", 4);
        return;
    case json_type_boolean:
        rv_buf_puts(b, json_object_get_boolean(v) ? "true" : "false");
        return;
    case json_type_int:
        base_json_int_parts(v, &negative, &magnitude);
        write_int(b, negative, magnitude);
        return;
    case json_type_double:
        text = base_json_double_text(v);
        if (text)
            rv_buf_puts(b, text);
        else
            write_double(b, json_object_get_double(v));
        return;
    case json_type_string:
        write_string(b, rv_json_str(v), '\0');
        return;
    case json_type_object:
        write_object(b, v, indent);
        return;
    case json_type_array:
        write_array(b, v, indent);
        return;
    }
}

/* --- the cursor --- */

rv_jw rv_jw_on(rv_buf *out)
{
    return (rv_jw){out, false};
}

static void before_item(rv_jw *w)
{
    if (w->comma)
        put_char(w->out, ',');
    w->comma = true;
}

static void open_with(rv_jw *w, char c)
{
    before_item(w);
    put_char(w->out, c);
    w->comma = false;
}

static void close_with(rv_jw *w, char c)
{
    put_char(w->out, c);
    w->comma = true;
}

void rv_jw_obj(rv_jw *w)
{
    open_with(w, '{');
}

void rv_jw_obj_end(rv_jw *w)
{
    close_with(w, '}');
}

void rv_jw_arr(rv_jw *w)
{
    open_with(w, '[');
}

void rv_jw_arr_end(rv_jw *w)
{
    close_with(w, ']');
}

void rv_jw_key_str(rv_jw *w, rv_str key)
{
    before_item(w);
    write_string(w->out, key, ':');
    w->comma = false;
}

void rv_jw_key(rv_jw *w, const char *key)
{
    rv_jw_key_str(w, rv_str_of(key));
}

void rv_jw_str(rv_jw *w, rv_str s)
{
    before_item(w);
    write_string(w->out, s, '\0');
}

void rv_jw_buf(rv_jw *w, const rv_buf *s)
{
    if (s->rc < 0 && w->out->rc == 0)
        w->out->rc = s->rc;
    rv_jw_str(w, rv_buf_str(s)); /* nothing is written behind a failure */
}

void rv_jw_null(rv_jw *w)
{
    rv_jw_raw(w, RV_STR_LIT("null"));
}

void rv_jw_text(rv_jw *w, const char *s)
{
    if (s)
        rv_jw_str(w, rv_str_of(s));
    else
        rv_jw_null(w);
}

void rv_jw_int(rv_jw *w, int64_t i)
{
    before_item(w);
    write_int(w->out, i < 0, i < 0 ? 0 - (uint64_t)i : (uint64_t)i);
}

void rv_jw_bool(rv_jw *w, bool b)
{
    rv_jw_raw(w, b ? RV_STR_LIT("true") : RV_STR_LIT("false"));
}

void rv_jw_double(rv_jw *w, double d)
{
    before_item(w);
    write_double(w->out, d);
}

void rv_jw_value(rv_jw *w, json_object *v)
{
    before_item(w);
    write_value(w->out, v, COMPACT);
}

void rv_jw_raw(rv_jw *w, rv_str json)
{
    before_item(w);
    rv_buf_add_str(w->out, json);
}

void rv_jw_kv_str(rv_jw *w, const char *key, rv_str s)
{
    rv_jw_key(w, key);
    rv_jw_str(w, s);
}

void rv_jw_kv_buf(rv_jw *w, const char *key, const rv_buf *s)
{
    rv_jw_key(w, key);
    rv_jw_buf(w, s);
}

void rv_jw_kv_text(rv_jw *w, const char *key, const char *s)
{
    rv_jw_key(w, key);
    rv_jw_text(w, s);
}

void rv_jw_kv_int(rv_jw *w, const char *key, int64_t i)
{
    rv_jw_key(w, key);
    rv_jw_int(w, i);
}

void rv_jw_kv_bool(rv_jw *w, const char *key, bool b)
{
    rv_jw_key(w, key);
    rv_jw_bool(w, b);
}

void rv_jw_kv_value(rv_jw *w, const char *key, json_object *v)
{
    rv_jw_key(w, key);
    rv_jw_value(w, v);
}

/* --- whole trees --- */

void rv_json_write(json_object *v, rv_buf *b)
{
    write_value(b, v, COMPACT);
}

void rv_json_write_pretty(json_object *v, rv_buf *b)
{
    write_value(b, v, 0);
}
