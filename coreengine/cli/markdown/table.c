/* Tables: columns as wide as their widest cell. Where that is wider than the terminal, the widest columns are narrowed
 * and their cells have several lines. A row with more cells than the table keeps them in its last one. */
#include "coreengine/cli/markdown/spans_internal.h"
#include "coreengine/cli/show/width_internal.h"

#include <string.h>

#define LEAST    4                        /* columns of a cell that is narrowed */
#define MAX_CELL (4 * RV_CLI_MD_MAX_LINE) /* bytes of a cell: a whole line, and its colours three times as long */
#define MAX_ROW  ((size_t)1 << 20)        /* bytes with the blanks of all its lines: MD_MAX_COLUMNS cells of MAX_CELL */

static rv_str next_line(rv_str *rest)
{
    const char *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    rv_str line = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
    size_t n = line.len + (end != NULL);

    *rest = (rv_str){rest->ptr + n, rest->len - n};
    return line;
}

/* The cell at the beginning of a line whose first bar was taken; last: all that is left. */
static rv_str next_cell(rv_str *rest, bool last)
{
    size_t n = 0;

    while (n < rest->len && (last || rest->ptr[n] != '|'))
        n += rest->ptr[n] == '\\' && n + 1 < rest->len ? 2 : 1;
    rv_str cell = {rest->ptr, n};
    n += n < rest->len;
    *rest = (rv_str){rest->ptr + n, rest->len - n};
    cell = rv_str_trim(cell);
    if (last && cell.len > 0 && cell.ptr[cell.len - 1] == '|' && (cell.len < 2 || cell.ptr[cell.len - 2] != '\\'))
        cell = rv_str_trim((rv_str){cell.ptr, cell.len - 1});
    return cell;
}

/* Without the bars at both ends. */
static rv_str inside(rv_str line)
{
    line = rv_str_trim(line);
    if (line.len > 0 && line.ptr[0] == '|')
        line = (rv_str){line.ptr + 1, line.len - 1};
    return line;
}

size_t md_table_count(rv_str line)
{
    rv_str rest = inside(line);
    size_t n = 0;

    if (rest.len > 0 && rest.ptr[rest.len - 1] == '|')
        rest.len--;
    do {
        RV_IGNORE(next_cell(&rest, false).len, "cells are counted here");
        n++;
    } while (rest.len > 0);
    return n;
}

bool md_table_is_rule(rv_str line, struct md_table *t)
{
    size_t n = md_table_count(line);
    rv_str rest = inside(line);

    if (n > MD_MAX_COLUMNS)
        return false;
    for (size_t i = 0; i < n; i++) {
        rv_str cell = next_cell(&rest, i + 1 == n);
        bool left = cell.len > 0 && cell.ptr[0] == ':', right = cell.len > 1 && cell.ptr[cell.len - 1] == ':';
        size_t n_dashes = cell.len - left - right;
        if (cell.len == 0 || n_dashes == 0 || strspn(cell.ptr + left, "-") < n_dashes)
            return false;
        t->sides[i] = left && right ? 'c' : right ? 'r' : 'l';
    }
    t->n_columns = n;
    return true;
}

/* --- cells --- */

static void add_spans(rv_str text, bool styled, unsigned base, rv_buf *out)
{
    struct md_spans spans = {.held = RV_BUF_INIT(MAX_CELL)};
    size_t used;

    md_spans_begin(&spans, styled, base);
    for (size_t i = 0; i < text.len; i += used) { /* marks are bytes of their own, other characters may be cut */
        used = 1;
        while (i + used < text.len && rv_utf8_continues(text.ptr[i + used]))
            used++;
        md_spans_add(&spans, (rv_str){text.ptr + i, used}, out);
    }
    md_spans_end(&spans, out);
    md_spans_fini(&spans);
}

/* What a cell has: "\\|" is a bar, and a tab has no place in a column. */
static void write_content(rv_str cell, rv_buf *out)
{
    for (size_t i = 0; i < cell.len; i++)
        if (cell.ptr[i] != '\\' || i + 1 == cell.len || cell.ptr[i + 1] != '|')
            rv_buf_putc(out, cell.ptr[i] == '\t' ? ' ' : cell.ptr[i]);
}

/* A part that could not be written is not there: then the whole is not. */
static void pass_on(const rv_buf *part, rv_buf *out)
{
    out->rc = out->rc < 0 ? out->rc : part->rc;
}

/* As it can be read: without marks if it is styled. */
static void write_shown(rv_str cell, bool styled, rv_buf *out)
{
    rv_buf text = RV_BUF_INIT(MAX_CELL);

    write_content(cell, &text);
    if (styled)
        add_spans(rv_buf_str(&text), false, 0, out);
    else
        rv_buf_add_str(out, rv_buf_str(&text));
    pass_on(&text, out);
    rv_buf_fini(&text);
}

static size_t width_of(rv_str cell, bool styled)
{
    rv_buf shown = RV_BUF_INIT(MAX_CELL);

    write_shown(cell, styled, &shown);
    size_t width = cli_width(shown.rc == 0 ? rv_buf_str(&shown) : cell);
    rv_buf_fini(&shown);
    return width;
}

/* --- widths --- */

static void measure(struct md_table *t, bool styled)
{
    rv_str rest = rv_buf_str(&t->rows);

    for (size_t row = 0; rest.len > 0; row++) {
        rv_str line = inside(next_line(&rest));
        for (size_t c = 0; c < t->n_columns && row != 1; c++) {
            size_t width = width_of(next_cell(&line, c + 1 == t->n_columns), styled);
            t->widths[c] = width > t->widths[c] ? width : t->widths[c];
        }
    }
    for (size_t c = 0; c < t->n_columns; c++)
        t->widths[c] = t->widths[c] < 3 ? 3 : t->widths[c];
}

/* False: it cannot be so narrow. */
static bool narrow(struct md_table *t, size_t columns)
{
    size_t sum = 1;

    for (size_t c = 0; c < t->n_columns; c++)
        sum += t->widths[c] + 3;
    while (sum > columns) {
        size_t widest = 0;
        for (size_t c = 1; c < t->n_columns; c++)
            widest = t->widths[c] > t->widths[widest] ? c : widest;
        if (t->widths[widest] <= LEAST)
            return false;
        t->widths[widest]--;
        sum--;
    }
    return true;
}

/* --- rows --- */

static void write_bar(bool styled, rv_buf *out)
{
    md_look(styled, MD_DIM, out);
    rv_buf_putc(out, '|');
    md_look(styled, 0, out);
}

static void write_rule(const struct md_table *t, bool styled, rv_buf *out)
{
    md_look(styled, MD_DIM, out);
    for (size_t c = 0; c < t->n_columns; c++) {
        rv_buf_putc(out, '|');
        for (size_t i = 0; i < t->widths[c] + 2; i++)
            rv_buf_putc(out, '-');
    }
    rv_buf_putc(out, '|');
    md_look(styled, 0, out);
}

/* What fits into so many columns: up to a blank, if there is one. */
static rv_str take_line(rv_str *rest, size_t width)
{
    rv_str fits = cli_fitting(*rest, width);
    size_t n = fits.len;

    if (n == 0) /* a wide character in a narrow column */
        n = rest->len;
    while (n < rest->len && n > 0 && rest->ptr[n] != ' ' && rest->ptr[n - 1] != ' ')
        n--;
    n = n == 0 || rv_str_trim((rv_str){rest->ptr, n}).len == 0 ? (fits.len ? fits.len : rest->len) : n;
    rv_str line = rv_str_trim((rv_str){rest->ptr, n});
    *rest = rv_str_trim((rv_str){rest->ptr + n, rest->len - n});
    return line;
}

static void write_padded(const struct md_table *t, size_t c, rv_str text, size_t width, rv_buf *out)
{
    size_t spare = t->widths[c] > width ? t->widths[c] - width : 0;
    size_t left = t->sides[c] == 'r' ? spare : t->sides[c] == 'c' ? spare / 2 : 0;

    rv_buf_printf(out, "%*s", (int)left + 1, "");
    rv_buf_add_str(out, text);
    rv_buf_printf(out, "%*s", (int)(spare - left) + 1, "");
}

struct cell {
    rv_str text; /* Markdown */
    rv_str rest; /* as it is shown, without the lines that are written */
};

/* Its next line. A cell that fits is styled, one of several lines is not: may_style at the first one. */
static void write_cell(const struct md_table *t, size_t c, struct cell *cell, bool may_style, unsigned base,
                       rv_buf *out)
{
    rv_str *rest = &cell->rest;

    rv_buf text = RV_BUF_INIT(2 * MAX_CELL), content = RV_BUF_INIT(MAX_CELL);

    if (may_style && cli_width(*rest) <= t->widths[c]) {
        size_t width = cli_width(*rest);
        md_look(base != 0, base, &text);
        write_content(cell->text, &content);
        add_spans(rv_buf_str(&content), true, base, &text);
        md_look(base != 0, 0, &text);
        write_padded(t, c, rv_buf_str(&text), width, out);
        pass_on(&content, out);
        pass_on(&text, out);
        *rest = (rv_str){rest->ptr, 0};
    } else {
        rv_str line = take_line(rest, t->widths[c]);
        write_padded(t, c, line, cli_width(line), out);
    }
    rv_buf_fini(&content);
    rv_buf_fini(&text);
}

static void write_row(const struct md_table *t, rv_str line, bool styled, unsigned base, rv_buf *out)
{
    struct cell cells[MD_MAX_COLUMNS];
    rv_buf shown[MD_MAX_COLUMNS];
    bool more = true;

    line = inside(line);
    for (size_t c = 0; c < t->n_columns; c++) {
        shown[c] = RV_BUF_INIT(MAX_CELL);
        cells[c].text = next_cell(&line, c + 1 == t->n_columns);
        write_shown(cells[c].text, styled, &shown[c]);
        cells[c].rest = rv_buf_str(&shown[c]);
    }
    for (bool first = true; more; first = false) {
        more = false;
        rv_buf_puts(out, first ? "" : "\n");
        for (size_t c = 0; c < t->n_columns; c++) {
            write_bar(styled, out);
            write_cell(t, c, &cells[c], first && styled, base, out);
            more = more || cells[c].rest.len > 0;
        }
        write_bar(styled, out);
    }
    for (size_t c = 0; c < t->n_columns; c++) {
        pass_on(&shown[c], out);
        rv_buf_fini(&shown[c]);
    }
}

void md_table_write(struct md_table *t, bool styled, size_t columns, rv_buf *out)
{
    rv_str rest = rv_buf_str(&t->rows);
    bool begins = !t->is_open;

    if (begins)
        measure(t, styled);
    bool fits = narrow(t, columns);
    for (size_t row = begins ? 0 : 2; rest.len > 0; row++) {
        rv_str line = next_line(&rest);
        rv_buf text = RV_BUF_INIT(MAX_ROW);
        rv_buf_puts(out, begins && row == 0 ? "" : "\n");
        if (fits && row == 1)
            write_rule(t, styled, &text);
        else if (fits)
            write_row(t, line, styled, row == 0 ? MD_BOLD : 0, &text);
        rv_buf_add_str(out, fits && text.rc == 0 ? rv_buf_str(&text) : line);
        rv_buf_fini(&text);
    }
    t->is_open = true;
    rv_buf_clear(&t->rows);
}
