/* What a text of a context may be, and how it becomes part of one line. */
#include "coreengine/conversation/context_internal.h"

#include <string.h>

/* Bytes of the character at p that would end or break a line: a control character, or one of Unicode's line ends; 0:
 * another character. */
static size_t breaks(const char *p, size_t len)
{
    const unsigned char *u = (const unsigned char *)p;

    size_t control = rv_utf8_control(p, len);
    if (control)
        return control;
    if (len >= 3 && u[0] == 0xE2 && u[1] == 0x80 && (u[2] == 0xA8 || u[2] == 0xA9)) /* U+2028, U+2029 */
        return 3;
    return 0;
}

int rv_text_check(rv_str text, const char *what, size_t max, bool has_lines, rv_err **err)
{
    size_t bad;

    /* The value itself is not repeated: it may be private, and logs would show it. */
    if (text.len > max)
        return RV_FAIL(err, RV_E_INVALID, "%s has %zu bytes, more than %zu", what, text.len, max);
    if (!rv_utf8_valid(text, &bad))
        return RV_FAIL(err, RV_E_INVALID, "%s is not UTF-8 at byte %zu", what, bad);
    for (size_t i = 0; i < text.len; i++) {
        bool is_layout = text.ptr[i] == '\n' || text.ptr[i] == '\t';

        if (breaks(text.ptr + i, text.len - i) > 0 && !(has_lines && is_layout))
            return RV_FAIL(err, RV_E_INVALID, "%s has a control character at byte %zu", what, i);
    }
    return 0;
}

int rv_text_of_json(json_object *v, const char *what, const char **out, rv_err **err)
{
    rv_str text = rv_json_str(v);

    *out = NULL;
    if (!v)
        return 0;
    if (!json_object_is_type(v, json_type_string))
        return RV_FAIL(err, RV_E_INVALID, "%s must be a string, not %s", what, rv_json_type_text(v));
    if (text.len > 0 && memchr(text.ptr, 0, text.len))
        return RV_FAIL(err, RV_E_INVALID, "%s has a NUL", what);
    *out = json_object_get_string(v);
    return 0;
}

void rv_text_line(rv_buf *out, rv_str text)
{
    size_t from = 0, i = 0;

    while (i < text.len) {
        size_t n = breaks(text.ptr + i, text.len - i);

        if (n == 0) {
            i++;
            continue;
        }
        rv_buf_add(out, text.ptr + from, i - from);
        rv_buf_putc(out, ' ');
        i += n;
        from = i;
    }
    rv_buf_add(out, text.ptr + from, text.len - from);
}
