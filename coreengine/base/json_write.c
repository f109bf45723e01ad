/* The one JSON writer: a cursor for hand-made documents, and whole trees. On the hot path: no printf, few calls. */
#include "coreengine/base/base_internal.h"

#include <json-c/linkhash.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COMPACT     (-1)
#define INDENT_STEP 2

#define ONES  UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

size_t rv_json_plain_run(const char *p, size_t n)
{
    size_t i = 0;

    for (; n - i >= 8; i += 8) { /* eight bytes at a time: any above 0x7F, below 0x20, quote or backslash? */
        uint64_t w, quote, slash;
        memcpy(&w, p + i, 8);
        quote = w ^ ONES * '"';
        slash = w ^ ONES * '\\';
        if ((w | ((w - ONES * 0x20) & ~w) | ((quote - ONES) & ~quote) | ((slash - ONES) & ~slash)) & HIGHS)
            break;
    }
    while (i < n && is_plain((unsigned char)p[i]))
        i++;
    return i;
}

static void fail(rv_buf *b)
{
    if (!b->rc)
        b->rc = RV_E_INVALID;
}

static void write_escape(rv_buf *b, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    static const char shorts[0x20] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    char text[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
    size_t len = 6;

    if (c >= 0x20 || shorts[c]) {
        text[1] = c >= 0x20 ? (char)c : shorts[c];
        len = 2;
    }
    rv_buf_add(b, text, len);
}

static void write_string(rv_buf *b, rv_str s)
{
    size_t i = rv_json_plain_run(s.ptr, s.len), from = 0;
    char *to;

    if (i == s.len && s.len <= SIZE_MAX - 2) { /* most strings need no escape: one copy */
        to = rv_buf_room(b, s.len + 2);
        if (!to)
            return;
        to[0] = '"';
        if (s.len)
            memcpy(to + 1, s.ptr, s.len);
        to[s.len + 1] = '"';
        to[s.len + 2] = '\0';
        b->len += s.len + 2;
        return;
    }
    rv_buf_putc(b, '"');
    while (i < s.len) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c >= 0x80) {
            int step = rv_utf8_next((const unsigned char *)s.ptr + i, s.len - i);
            if (step <= 0) {
                fail(b);
                return;
            }
            i += (size_t)step;
        } else {
            rv_buf_add(b, s.ptr + from, i - from);
            write_escape(b, c);
            from = ++i;
        }
        i += rv_json_plain_run(s.ptr + i, s.len - i);
    }
    rv_buf_add(b, s.ptr + from, s.len - from);
    rv_buf_putc(b, '"');
}

static void write_int(rv_buf *b, bool negative, uint64_t magnitude)
{
    char text[RV_JSON_NUMBER_MAX];
    size_t len = rv_json_int_write(negative, magnitude, text);

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
    len = rv_json_number_write(d, text);
    rv_buf_add(b, text, len);
}

static void write_break(rv_buf *b, int indent)
{
    char *to;

    if (indent == COMPACT)
        return;
    to = rv_buf_room(b, (size_t)indent + 1);
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

    rv_buf_putc(b, '{');
    if (!e) {
        rv_buf_putc(b, '}');
        return;
    }
    for (; e && !b->rc; e = lh_entry_next(e)) {
        write_break(b, deeper(indent));
        write_string(b, rv_str_of(lh_entry_k(e)));
        rv_buf_add(b, ": ", indent == COMPACT ? 1 : 2);
        write_value(b, lh_entry_v(e), deeper(indent));
        if (lh_entry_next(e))
            rv_buf_putc(b, ',');
    }
    write_break(b, indent);
    rv_buf_putc(b, '}');
}

static void write_array(rv_buf *b, json_object *v, int indent)
{
    size_t i, n = json_object_array_length(v);

    rv_buf_putc(b, '[');
    for (i = 0; i < n && !b->rc; i++) {
        if (i)
            rv_buf_putc(b, ',');
        write_break(b, deeper(indent));
        write_value(b, json_object_array_get_idx(v, i), deeper(indent));
    }
    if (n)
        write_break(b, indent);
    rv_buf_putc(b, ']');
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
        rv_json_int_parts(v, &negative, &magnitude);
        write_int(b, negative, magnitude);
        return;
    case json_type_double:
        text = rv_json_double_text(v);
        if (text)
            rv_buf_puts(b, text);
        else
            write_double(b, json_object_get_double(v));
        return;
    case json_type_string:
        write_string(b, rv_json_str(v));
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
        rv_buf_putc(w->out, ',');
    w->comma = true;
}

static void open_with(rv_jw *w, char c)
{
    before_item(w);
    rv_buf_putc(w->out, c);
    w->comma = false;
}

static void close_with(rv_jw *w, char c)
{
    rv_buf_putc(w->out, c);
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
    write_string(w->out, key);
    rv_buf_putc(w->out, ':');
    w->comma = false;
}

void rv_jw_key(rv_jw *w, const char *key)
{
    rv_jw_key_str(w, rv_str_of(key));
}

void rv_jw_str(rv_jw *w, rv_str s)
{
    before_item(w);
    write_string(w->out, s);
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

char *rv_json_text(json_object *v, size_t max_bytes, size_t *out_len)
{
    rv_buf b = RV_BUF_INIT(max_bytes);
    char *text;

    rv_json_write(v, &b);
    text = rv_buf_steal(&b, out_len);
    rv_buf_fini(&b);
    return text;
}
