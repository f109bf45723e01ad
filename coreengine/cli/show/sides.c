/* Two texts side by side: the first on the left, the second on the right, lines that differ marked between them. Lines
 * are broken where a column ends, so that nothing is lost. */
#include "coreengine/cli/cli.h"
#include "coreengine/cli/show/lines_internal.h"
#include "coreengine/cli/show/width_internal.h"

#define CONTEXT 3 /* lines around a difference */

/* One column of a row: the next piece of *rest, filled up with blanks. */
static void put_cell(rv_str *rest, int width, const char *color, rv_buf *b)
{
    rv_str piece = cli_fitting(*rest, (size_t)width);
    size_t used = cli_width(piece);

    rv_buf_puts(b, piece.len ? color : "");
    rv_buf_add_str(b, piece);
    rv_buf_puts(b, piece.len && *color ? "\033[0m" : "");
    for (; used < (size_t)width; used++)
        rv_buf_putc(b, ' ');
    if (piece.len > 0)
        *rest = (rv_str){rest->ptr + piece.len, rest->len - piece.len};
}

/* Two lines, in as many rows as the longer one needs. */
static void put_pair(const struct rv_cli_line *left, const struct rv_cli_line *right, int width, bool color, rv_buf *b)
{
    rv_buf l = RV_BUF_INIT(RV_APP_MAX_TEXT), r = RV_BUF_INIT(RV_APP_MAX_TEXT);
    bool same = left && right && left->mark == ' ';
    const char *mark = same ? " " : left && right ? "|" : left ? "<" : ">";

    if (left)
        cli_write_safe(left->text, &l);
    if (right)
        cli_write_safe(right->text, &r);
    rv_str rest[] = {rv_buf_str(&l), rv_buf_str(&r)};
    do {
        put_cell(&rest[0], width, color && !same ? "\033[31m" : "", b);
        rv_buf_printf(b, " %s ", mark);
        put_cell(&rest[1], width, color && !same ? "\033[32m" : "", b);
        while (b->len && b->ptr[b->len - 1] == ' ')
            rv_buf_truncate(b, b->len - 1);
        rv_buf_putc(b, '\n');
    } while ((rest[0].len || rest[1].len) && !b->rc);
    rv_buf_fini(&l);
    rv_buf_fini(&r);
}

/* A run of lines that differ, from `at`: removed ones beside added ones. Gives its end. */
static size_t put_change(const struct rv_cli_lines *lines, size_t at, int width, bool color, rv_buf *b)
{
    size_t added = at, end;

    while (added < lines->n && lines->items[added].mark == '-')
        added++;
    for (end = added; end < lines->n && lines->items[end].mark == '+';)
        end++;
    for (size_t l = at, r = added; l < added || r < end; l++, r++)
        put_pair(l < added ? &lines->items[l] : NULL, r < end ? &lines->items[r] : NULL, width, color, b);
    return end;
}

/* Is a line that both have near a difference? */
static bool is_near(const struct rv_cli_lines *lines, size_t i)
{
    size_t first = i > CONTEXT ? i - CONTEXT : 0;

    for (size_t k = first; k < lines->n && k <= i + CONTEXT; k++)
        if (lines->items[k].mark != ' ')
            return true;
    return false;
}

void cli_lines_write_sides(const struct rv_cli_lines *lines, int columns, bool color, rv_buf *b)
{
    int width = columns > 2 * RV_CLI_LINES_LEAST + 3 ? (columns - 3) / 2 : RV_CLI_LINES_LEAST;

    for (size_t i = 0; i < lines->n;) {
        size_t from = i;
        while (i < lines->n && lines->items[i].mark == ' ' && !is_near(lines, i))
            i++;
        if (i > from)
            rv_buf_printf(b, "... %zu equal line%s\n", i - from, i - from == 1 ? "" : "s");
        if (i == lines->n)
            return;
        if (lines->items[i].mark != ' ') {
            i = put_change(lines, i, width, color, b);
        } else {
            put_pair(&lines->items[i], &lines->items[i], width, color, b);
            i++;
        }
    }
}
