/* A document as YAML for people: block style, texts of several lines as block scalars. What another reader could take
 * for something else is put in quotes. */
#include <json-c/linkhash.h>
#include <string.h>

#include "config/agentdoc/agentdoc_internal.h"

#define MAX_PLAIN      100 /* bytes of a text without quotes */
#define MAX_SIMPLE_KEY 256 /* bytes, quotes included; YAML's readers allow 1024 in one line */
#define STEP           2

static void indent(rv_buf *out, int columns)
{
    for (int i = 0; i < columns; i++)
        rv_buf_putc(out, ' ');
}

/* --- Texts --- */

static const char *const reserved[] = {"null", "true", "false", "yes", "no", "on", "off", "y", "n", "inf", "nan"};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* A text that every reader takes for the string it is. */
static bool is_plain(rv_str s)
{
    if (s.len == 0 || s.len > MAX_PLAIN || !is_letter(s.ptr[0]) || s.ptr[s.len - 1] == ' ')
        return false;
    for (size_t i = 0; i < RV_COUNT(reserved); i++)
        if (strlen(reserved[i]) == s.len && strncasecmp(reserved[i], s.ptr, s.len) == 0)
            return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (!is_letter(c) && !(c >= '0' && c <= '9') && !memchr(" -./,;()'!?+*=%&", c, 16))
            return false;
    }
    return true;
}

static void write_quoted(rv_str s, rv_buf *out)
{
    rv_buf_putc(out, '"');
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c == '"' || c == '\\')
            rv_buf_printf(out, "\\%c", c);
        else if (c == '\n' || c == '\t')
            rv_buf_puts(out, c == '\n' ? "\\n" : "\\t");
        else if (c < 0x20 || c == 0x7f)
            rv_buf_printf(out, "\\x%02x", c);
        else if (c == 0xc2 && i + 1 < s.len && (unsigned char)s.ptr[i + 1] < 0xa0) /* further controls */
            rv_buf_printf(out, "\\x%02x", (unsigned char)s.ptr[++i]);
        else if (i + 2 < s.len &&
                 (memcmp(s.ptr + i, "\xe2\x80\xa8", 3) == 0 || memcmp(s.ptr + i, "\xe2\x80\xa9", 3) == 0 ||
                  memcmp(s.ptr + i, "\xef\xbb\xbf", 3) == 0 || memcmp(s.ptr + i, "\xef\xbf\xbe", 3) == 0 ||
                  memcmp(s.ptr + i, "\xef\xbf\xbf", 3) == 0)) {
            unsigned code =
                ((unsigned)c & 0xf) << 12 | ((unsigned)s.ptr[i + 1] & 0x3f) << 6 | ((unsigned)s.ptr[i + 2] & 0x3f);
            rv_buf_printf(out, "\\u%04x", code);
            i += 2;
        } else {
            rv_buf_putc(out, (char)c);
        }
    }
    rv_buf_putc(out, '"');
}

/* Several lines of which a block scalar keeps every byte. */
static bool is_block(rv_str s)
{
    const char *feed = s.len > 0 ? memchr(s.ptr, '\n', s.len) : NULL;

    if (!feed || s.ptr[0] == '\n')
        return false;
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if ((c < 0x20 && c != '\n') || c == 0x7f || (c == 0xc2 && (unsigned char)s.ptr[i + 1] < 0xa0))
            return false;
        if (i + 2 < s.len && (memcmp(s.ptr + i, "\xe2\x80\xa8", 3) == 0 || memcmp(s.ptr + i, "\xe2\x80\xa9", 3) == 0 ||
                              memcmp(s.ptr + i, "\xef\xbb\xbf", 3) == 0 || memcmp(s.ptr + i, "\xef\xbf\xbe", 3) == 0 ||
                              memcmp(s.ptr + i, "\xef\xbf\xbf", 3) == 0))
            return false;
    }
    return true;
}

/* depth: columns of the lines. */
static void write_block(rv_str s, int depth, rv_buf *out)
{
    bool ends_in_feed = s.ptr[s.len - 1] == '\n';
    bool ends_in_more = ends_in_feed && s.len > 1 && s.ptr[s.len - 2] == '\n';

    rv_buf_putc(out, '|');
    if (s.ptr[0] == ' ') /* or the reader would count these as indentation */
        rv_buf_printf(out, "%d", STEP);
    rv_buf_puts(out, ends_in_more ? "+" : ends_in_feed ? "" : "-");
    for (size_t i = 0; i < s.len; i++) {
        if (i == 0 || s.ptr[i - 1] == '\n') {
            if (i == 0)
                rv_buf_putc(out, '\n');
            if (s.ptr[i] != '\n')
                indent(out, depth);
        }
        if (i + 1 < s.len || s.ptr[i] != '\n')
            rv_buf_putc(out, s.ptr[i]);
    }
}

static void write_text(rv_str s, int depth, rv_buf *out)
{
    if (is_block(s))
        write_block(s, depth, out);
    else if (is_plain(s))
        rv_buf_add_str(out, s);
    else
        write_quoted(s, out);
}

/* --- Trees --- */

static void write_members(json_object *v, int depth, bool is_begun, rv_buf *out);
static void write_items(json_object *v, int depth, rv_buf *out);

/* Behind "key:" or "-"; depth: columns of what stands on lines of its own. */
static void write_value(json_object *v, int depth, rv_buf *out)
{
    bool is_map = json_object_is_type(v, json_type_object);
    bool is_list = json_object_is_type(v, json_type_array);
    size_t n = is_map ? (size_t)json_object_object_length(v) : is_list ? json_object_array_length(v) : 0;

    if (n > 0) {
        rv_buf_putc(out, '\n');
        if (is_map)
            write_members(v, depth, false, out);
        else
            write_items(v, depth, out);
        return;
    }
    rv_buf_putc(out, ' ');
    if (is_map || is_list)
        rv_buf_puts(out, is_map ? "{}" : "[]");
    else if (json_object_is_type(v, json_type_string))
        write_text(rv_json_str(v), depth, out);
    else
        rv_json_write(v, out);
    rv_buf_putc(out, '\n');
}

static void write_key(const char *key, int depth, rv_buf *out)
{
    rv_str s = rv_str_of(key);

    if (s.len > MAX_SIMPLE_KEY) {
        rv_buf_puts(out, "? ");
        write_quoted(s, out);
        rv_buf_putc(out, '\n');
        indent(out, depth);
    } else if (is_plain(s) || (s.len > 1 && s.ptr[0] == '$' && is_plain((rv_str){s.ptr + 1, s.len - 1}))) {
        rv_buf_add_str(out, s);
    } else {
        write_quoted(s, out);
    }
    rv_buf_putc(out, ':');
}

/* is_begun: the first key goes on a line that is there, behind "- ". */
static void write_members(json_object *v, int depth, bool is_begun, rv_buf *out)
{
    json_object_object_foreach (v, key, value) {
        if (!is_begun)
            indent(out, depth);
        is_begun = false;
        write_key(key, depth, out);
        write_value(value, depth + STEP, out);
    }
}

static void write_items(json_object *v, int depth, rv_buf *out)
{
    for (size_t i = 0; i < json_object_array_length(v); i++) {
        json_object *item = json_object_array_get_idx(v, i);
        indent(out, depth);
        rv_buf_putc(out, '-');
        if (json_object_is_type(item, json_type_object) && json_object_object_length(item) > 0) {
            rv_buf_putc(out, ' ');
            write_members(item, depth + STEP, true, out);
        } else {
            write_value(item, depth + STEP, out);
        }
    }
}

void rv_agentdoc_write_yaml(const struct rv_agentdoc *d, rv_buf *out)
{
    write_members(d->flat, 0, false, out);
}
