/* Widths by the tables of utf8proc, and the size that the system gives for a terminal. */
#include "coreengine/cli/show/width_internal.h"

#include <sys/ioctl.h>
#include <unistd.h>
#include <utf8proc.h>

/* Columns of the character at the beginning of s, which is not empty, and its bytes. What is not UTF-8 is shown byte by
 * byte. */
static size_t columns_of(rv_str s, size_t *n)
{
    utf8proc_int32_t c = -1;
    utf8proc_ssize_t len;

    *n = 1;
    if ((unsigned char)*s.ptr < 0x80)
        return 1;
    len = utf8proc_iterate((const utf8proc_uint8_t *)s.ptr, (utf8proc_ssize_t)s.len, &c);
    if (len <= 0)
        return 1;
    *n = (size_t)len;
    return (size_t)utf8proc_charwidth(c);
}

static rv_str behind(rv_str s, size_t n)
{
    return (rv_str){s.ptr + n, s.len - n};
}

size_t cli_width(rv_str text)
{
    size_t width = 0, n;

    for (; text.len > 0; text = behind(text, n))
        width += columns_of(text, &n);
    return width;
}

rv_str cli_fitting(rv_str text, size_t columns)
{
    size_t at = 0, n;

    while (at < text.len) {
        size_t more = columns_of(behind(text, at), &n);
        if (more > columns)
            break;
        columns -= more;
        at += n;
    }
    return (rv_str){text.ptr, at};
}

void cli_terminal_size(size_t *columns, size_t *rows)
{
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;

    *columns = known ? size.ws_col : 80;
    if (rows)
        *rows = known ? size.ws_row : 24;
}
