/* JSON as models know it from the systems that the prompts come from: blanks after "," and ":", ASCII only. */
#include "coreengine/conversation/context_internal.h"

#include <json-c/linkhash.h>

static void write_unit(rv_buf *out, unsigned unit)
{
    rv_buf_printf(out, "\\u%04x", unit);
}

/* The code point at p, of text that is valid UTF-8; *n: its bytes. */
static unsigned code_point(const unsigned char *p, size_t *n)
{
    if (p[0] < 0x80) {
        *n = 1;
        return p[0];
    }
    if (p[0] < 0xE0) {
        *n = 2;
        return (p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu);
    }
    if (p[0] < 0xF0) {
        *n = 3;
        return (p[0] & 0x0Fu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
    }
    *n = 4;
    return (p[0] & 0x07u) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
}

static void write_char(rv_buf *out, unsigned c)
{
    static const char short_forms[] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};

    if (c == '"' || c == '\\') {
        rv_buf_putc(out, '\\');
        rv_buf_putc(out, (char)c);
    } else if (c < sizeof short_forms && short_forms[c]) {
        rv_buf_putc(out, '\\');
        rv_buf_putc(out, short_forms[c]);
    } else if (c >= ' ' && c < 0x7F) {
        rv_buf_putc(out, (char)c);
    } else if (c < 0x10000) {
        write_unit(out, c);
    } else {
        write_unit(out, 0xD800 + ((c - 0x10000) >> 10));
        write_unit(out, 0xDC00 + ((c - 0x10000) & 0x3FF));
    }
}

void rv_text_write_spaced(rv_buf *out, rv_str text)
{
    const unsigned char *p = (const unsigned char *)text.ptr;
    size_t n;

    if (!rv_utf8_valid(text, NULL)) {
        out->rc = out->rc < 0 ? out->rc : RV_E_INVALID; /* as rv_jw_str() */
        return;
    }
    rv_buf_putc(out, '"');
    for (size_t i = 0; i < text.len && out->rc == 0; i += n)
        write_char(out, code_point(p + i, &n));
    rv_buf_putc(out, '"');
}

void rv_json_write_spaced(json_object *v, rv_buf *out)
{
    bool more = false;

    if (json_object_is_type(v, json_type_object)) {
        rv_buf_putc(out, '{');
        json_object_object_foreach (v, key, value) {
            if (more)
                rv_buf_puts(out, ", ");
            more = true;
            rv_text_write_spaced(out, rv_str_of(key));
            rv_buf_puts(out, ": ");
            rv_json_write_spaced(value, out);
        }
        rv_buf_putc(out, '}');
    } else if (json_object_is_type(v, json_type_array)) {
        rv_buf_putc(out, '[');
        for (size_t i = 0; i < json_object_array_length(v) && out->rc == 0; i++) {
            if (i > 0)
                rv_buf_puts(out, ", ");
            rv_json_write_spaced(json_object_array_get_idx(v, i), out);
        }
        rv_buf_putc(out, ']');
    } else if (json_object_is_type(v, json_type_string)) {
        rv_text_write_spaced(out, rv_json_str(v));
    } else {
        rv_json_write(v, out);
    }
}
