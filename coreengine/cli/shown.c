/* Texts of others as a terminal or a shell may have them: nothing in them moves the cursor or ends a word. */
#include "coreengine/cli/runs.h"

#include <string.h>

void rv_cli_write_word(const char *word, rv_buf *b)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,";

    if (word[0] && word[strspn(word, plain)] == '\0') {
        rv_buf_puts(b, word);
        return;
    }
    rv_buf_putc(b, '\'');
    for (; *word; word++)
        if (*word == '\'')
            rv_buf_puts(b, "'\\''");
        else
            rv_buf_putc(b, *word);
    rv_buf_putc(b, '\'');
}

/* Also of those that are two bytes: U+0080 to U+009F. */
static bool is_control(rv_str text, size_t at)
{
    unsigned char c = (unsigned char)text.ptr[at], next = at + 1 < text.len ? (unsigned char)text.ptr[at + 1] : 0;

    return c < ' ' || c == 0x7f || (c == 0xc2 && next >= 0x80 && next < 0xa0);
}

void rv_cli_write_lines(rv_str text, rv_buf *b)
{
    for (size_t i = 0; i < text.len; i++) {
        if (!is_control(text, i) || text.ptr[i] == '\t') {
            rv_buf_putc(b, text.ptr[i]);
        } else if (text.ptr[i] == '\n') {
            rv_buf_puts(b, "\n  ");
        } else {
            rv_buf_putc(b, ' ');
            i += (unsigned char)text.ptr[i] == 0xc2; /* its second byte */
        }
    }
}

void rv_cli_write_preview(rv_str text, size_t max, rv_buf *b)
{
    rv_str shown = rv_utf8_cut(text, max);

    for (size_t i = 0; i < shown.len; i++)
        rv_buf_putc(b, (unsigned char)shown.ptr[i] < ' ' || shown.ptr[i] == 0x7f ? ' ' : shown.ptr[i]);
    if (shown.len < text.len)
        rv_buf_puts(b, "...");
}
