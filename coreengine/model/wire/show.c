/* What messages say of targets and of bytes that are not what they should be. */
#include "coreengine/model/wire/wire_internal.h"

void rv_wire_show(rv_str bytes, rv_buf *out)
{
    size_t i = 0, limit = bytes.len < WIRE_MAX_SHOWN ? bytes.len : WIRE_MAX_SHOWN;
    bool blank = true; /* nothing yet, or a blank: no further one */

    while (i < limit) {
        unsigned char c = (unsigned char)bytes.ptr[i];
        size_t left = bytes.len - i, n = rv_utf8_control(bytes.ptr + i, left);
        if (c == ' ' || n > 0) {
            if (!blank)
                rv_buf_putc(out, ' ');
            blank = true;
            i += n > 0 ? n : 1;
            continue;
        }
        n = 1;
        if (c >= 0x80) {
            n = 2;
            while (n <= 4 && n <= left && !rv_utf8_valid((rv_str){bytes.ptr + i, n}, NULL))
                n++;
            if (n > 4 || n > left) {
                rv_buf_putc(out, '?');
                blank = false;
                i++;
                continue;
            }
        }
        rv_buf_add(out, bytes.ptr + i, n);
        blank = false;
        i += n;
    }
    if (bytes.len > limit)
        rv_buf_puts(out, "...");
}

void rv_wire_name_target(const struct rv_wire_target *t, rv_buf *out)
{
    rv_buf_printf(out, "%s:%s", t->provider ? t->provider : "model", t->model ? t->model : "?");
}
