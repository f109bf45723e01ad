/* Texts of others as a terminal or a shell may have them: nothing in them moves the cursor, turns
 * the text around or ends a word. What strips text for people is here and nowhere else. */
#include "coreengine/cli/runs/runs.h"

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

/* Bytes of a character at i that a terminal or a reader would be led astray by: controls (C0 but line feed and tab,
 * DEL, C1), those that turn the direction of text around or mark it, and the separators of lines that are no line feed.
 * 0: an ordinary one. */
static size_t unsafe(rv_str text, size_t i)
{
    const unsigned char *c = (const unsigned char *)text.ptr + i;
    size_t left = text.len - i;

    size_t control = rv_utf8_control(text.ptr + i, left);
    if (control)
        return c[0] == '\n' || c[0] == '\t' ? 0 : control;
    if (left > 1 && c[0] == 0xd8 && c[1] == 0x9c) /* U+061C */
        return 2;
    if (left < 3 || c[0] != 0xe2)
        return 0;
    bool marks = c[1] == 0x80 && (c[2] == 0x8e || c[2] == 0x8f);     /* U+200E, U+200F */
    bool separates = c[1] == 0x80 && (c[2] == 0xa8 || c[2] == 0xa9); /* U+2028, U+2029 */
    bool embeds = c[1] == 0x80 && c[2] >= 0xaa && c[2] <= 0xae;      /* U+202A to U+202E */
    bool isolates = c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9;    /* U+2066 to U+2069 */
    return marks || separates || embeds || isolates ? 3 : 0;
}

/* line, tab: what stands for them. */
static void write_as(rv_str text, const char *line, const char *tab, rv_buf *b)
{
    for (size_t i = 0; i < text.len;) {
        size_t n = unsafe(text, i);
        bool ends_line = text.ptr[i] == '\r' && i + 1 < text.len && text.ptr[i + 1] == '\n';
        if (text.ptr[i] == '\n' || text.ptr[i] == '\t')
            rv_buf_puts(b, text.ptr[i] == '\n' ? line : tab);
        else if (n == 0)
            rv_buf_putc(b, text.ptr[i]);
        else if (!ends_line)
            rv_buf_putc(b, ' ');
        i += n ? n : 1;
    }
}

void rv_cli_write_safe(rv_str text, rv_buf *b)
{
    write_as(text, "\n", "\t", b);
}

void rv_cli_write_lines(rv_str text, rv_buf *b)
{
    write_as(text, "\n  ", "\t", b);
}

void rv_cli_write_preview(rv_str text, size_t max, rv_buf *b)
{
    rv_str shown = rv_utf8_cut(text, max);

    write_as(shown, " ", " ", b);
    if (shown.len < text.len)
        rv_buf_puts(b, "...");
}

void rv_cli_write_code(const char *code, rv_buf *b)
{
    enum rv_failure failure = RV_FAILURE_NONE;

    if (code)
        rv_buf_printf(b, "  [%s]", code);
    rv_buf_putc(b, '\n');
    if (code && rv_failure_of(rv_str_of(code), &failure, NULL) == 0 && rv_failure_remedy(failure)[0])
        rv_buf_printf(b, "  hint: %s\n", rv_failure_remedy(failure));
}
