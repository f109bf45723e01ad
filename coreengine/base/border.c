/* Texts that may be anything, at the border to JSON and to C strings. */
#include "coreengine/base/border.h"

#include <string.h>

static void clean(rv_str s, rv_buf *out)
{
    size_t bad = 0;

    while (!rv_utf8_valid(s, &bad)) {
        rv_buf_add(out, s.ptr, bad);
        rv_buf_putc(out, '?');
        s = (rv_str){s.ptr + bad + 1, s.len - bad - 1};
    }
    rv_buf_add_str(out, s);
}

void rv_jw_kv_path(rv_jw *w, const char *key, const char *path)
{
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);

    if (path)
        clean(rv_str_of(path), &text);
    rv_jw_key(w, key);
    if (path)
        rv_jw_buf(w, &text);
    else
        rv_jw_null(w);
    rv_buf_fini(&text);
}

bool rv_json_has_nul(json_object *v)
{
    rv_str s = rv_json_str(v);

    return s.len > 0 && memchr(s.ptr, '\0', s.len) != NULL;
}
