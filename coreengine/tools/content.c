/* Parts of a tool's answer that are meant for the model, apart from its data: texts, references to resources, images
 * and files. A model gets a line for what is not text; an image or a file has the form of an attachment, so that a
 * later stage can show it to its model. */
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/tools/tools_internal.h"

#define MAX_URI   8192 /* bytes of what a line names: as RV_LLM_MAX_URL, servers understand no longer ones */
#define MAX_WORDS 1024 /* bytes of a name or a description in a line: a model reads it */

bool rv_tool_is_base64(rv_str s)
{
    size_t n_pads = 0;

    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool is_digit = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        n_pads += c == '=';
        if (c == '=' ? n_pads > 2 : n_pads > 0 || !(is_digit || c == '+' || c == '/'))
            return false;
    }
    return s.len > 0 && s.len % 4 == 0;
}

static bool has_only(json_object *part, const char *const *keys, size_t n)
{
    json_object_object_foreach (part, key, value) {
        size_t i = 0;
        while (i < n && strcmp(key, keys[i]) != 0)
            i++;
        if (i == n || !json_object_is_type(value, json_type_string))
            return false;
    }
    return true;
}

static bool is_part(json_object *part)
{
    static const char *const text_keys[] = {"type", "text"};
    static const char *const reference_keys[] = {"type", "uri", "name", "description", "media_type"};
    static const char *const blob_keys[] = {"type", "data", "media_type", "name"};

    if (!json_object_is_type(part, json_type_object))
        return false;
    rv_str type = rv_json_member_str(part, "type");
    if (rv_str_is(type, "text"))
        return has_only(part, text_keys, RV_COUNT(text_keys)) && json_object_object_get_ex(part, "text", NULL);
    if (rv_str_is(type, "reference"))
        return has_only(part, reference_keys, RV_COUNT(reference_keys)) && rv_json_member_str(part, "uri").len > 0;
    return (rv_str_is(type, "image") || rv_str_is(type, "file")) && has_only(part, blob_keys, RV_COUNT(blob_keys)) &&
           rv_is_media_type(rv_json_member_str(part, "media_type")) &&
           rv_tool_is_base64(rv_json_member_str(part, "data"));
}

bool rv_tool_is_content(json_object *list)
{
    size_t n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;

    if (n == 0 || n > RV_TOOL_MAX_PARTS)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_part(json_object_array_get_idx(list, i)))
            return false;
    return true;
}

static size_t bytes_of(rv_str base64)
{
    size_t n = base64.len / 4 * 3;

    for (size_t i = base64.len; i > 0 && base64.ptr[i - 1] == '='; i--)
        n--;
    return n;
}

/* One line, whatever a server put into it. */
static void write_words(rv_str s, size_t max, rv_buf *out)
{
    s = rv_utf8_cut(s, max);
    for (size_t i = 0; i < s.len; i++)
        rv_buf_putc(out, (unsigned char)s.ptr[i] < ' ' || s.ptr[i] == 0x7f ? ' ' : s.ptr[i]);
}

static void write_reference(json_object *part, rv_buf *out)
{
    rv_str name = rv_json_member_str(part, "name"), media_type = rv_json_member_str(part, "media_type");
    rv_str description = rv_json_member_str(part, "description");

    rv_buf_puts(out, "[resource ");
    write_words(rv_json_member_str(part, "uri"), MAX_URI, out);
    if (name.len) {
        rv_buf_puts(out, ", ");
        write_words(name, MAX_WORDS, out);
    }
    if (media_type.len) {
        rv_buf_puts(out, ", ");
        write_words(media_type, RV_MEDIA_TYPE_MAX, out);
    }
    if (description.len) {
        rv_buf_puts(out, ": ");
        write_words(description, MAX_WORDS, out);
    }
    rv_buf_putc(out, ']');
}

static void write_blob(json_object *part, rv_str type, rv_buf *out)
{
    rv_str name = rv_json_member_str(part, "name"), media_type = rv_json_member_str(part, "media_type");

    rv_buf_printf(out, "[%.*s ", RV_STR_ARG(type));
    if (name.len) {
        write_words(name, MAX_WORDS, out);
        rv_buf_puts(out, ", ");
    }
    rv_buf_printf(out, "%.*s, %zu bytes]", RV_STR_ARG(media_type), bytes_of(rv_json_member_str(part, "data")));
}

void rv_tool_write_content(json_object *list, rv_buf *out)
{
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *part = json_object_array_get_idx(list, i);
        rv_str type = rv_json_member_str(part, "type");
        if (i > 0)
            rv_buf_putc(out, '\n');
        if (rv_str_is(type, "text"))
            rv_buf_add_str(out, rv_json_member_str(part, "text"));
        else if (rv_str_is(type, "reference"))
            write_reference(part, out);
        else
            write_blob(part, type, out);
    }
}
