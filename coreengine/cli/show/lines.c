/* Lines of two texts compared: the shortest list of insertions and removals, by E. W. Myers, "An O(ND) Difference
 * Algorithm and Its Variations" (1986). */
#include "coreengine/cli/show/lines_internal.h"

#include <stdlib.h>

#include "coreengine/cli/cli.h"

#define CONTEXT 3 /* lines around a difference */

/* --- lines of a text --- */

struct text {
    rv_str *lines; /* owned */
    size_t n;
};

static bool split(rv_str s, struct text *out)
{
    size_t n = 0;

    for (size_t i = 0; i < s.len; i++)
        n += s.ptr[i] == '\n' || i + 1 == s.len;
    out->lines = calloc(n ? n : 1, sizeof *out->lines);
    if (!out->lines)
        return false;
    for (size_t i = 0, start = 0; i < s.len; i++)
        if (s.ptr[i] == '\n' || i + 1 == s.len) {
            out->lines[out->n++] = (rv_str){s.ptr + start, i - start + (s.ptr[i] != '\n')};
            start = i + 1;
        }
    return true;
}

/* --- the search --- */

struct search {
    const rv_str *a, *b; /* what is left between the lines that are equal at both ends */
    int n_a, n_b;
    int *rows; /* owned; of each number of edits how far each diagonal reaches, one after another */
};

/* How far diagonal k (from -d to d) reaches with d edits. */
static int *reach(struct search *s, int d, int k)
{
    return s->rows + (ptrdiff_t)d * d + d + k; /* the rows before have 1 + 3 + 5 ... items */
}

static bool comes_from_above(struct search *s, int d, int k)
{
    return k == -d || (k != d && *reach(s, d - 1, k - 1) < *reach(s, d - 1, k + 1));
}

/* The number of edits; RV_E_LIMIT: too many; RV_E_NOMEM. */
static int find_edits(struct search *s)
{
    size_t cap = 0;

    for (int d = 0; d <= RV_CLI_LINES_MAX_EDITS; d++) {
        if (!rv_has_room(&s->rows, &cap, (size_t)(d + 1) * (size_t)(d + 1), sizeof *s->rows))
            return RV_E_NOMEM;
        for (int k = -d; k <= d; k += 2) {
            int x = d == 0 ? 0 : comes_from_above(s, d, k) ? *reach(s, d - 1, k + 1) : *reach(s, d - 1, k - 1) + 1;
            while (x < s->n_a && x - k < s->n_b && rv_str_eq(s->a[x], s->b[x - k]))
                x++;
            *reach(s, d, k) = x;
            if (x >= s->n_a && x - k >= s->n_b)
                return d;
        }
    }
    return RV_E_LIMIT;
}

/* From the end to the start, into items before `to`. */
static void walk_back(struct search *s, int d, struct rv_cli_line *to)
{
    int x = s->n_a, y = s->n_b;

    for (; d >= 0; d--) {
        int k = x - y;
        bool above = d > 0 && comes_from_above(s, d, k);
        int before = d == 0 ? 0 : above ? *reach(s, d - 1, k + 1) : *reach(s, d - 1, k - 1) + 1;
        for (; x > before; x--, y--)
            *--to = (struct rv_cli_line){' ', s->a[x - 1]};
        if (d == 0)
            return;
        *--to = above ? (struct rv_cli_line){'+', s->b[y - 1]} : (struct rv_cli_line){'-', s->a[x - 1]};
        y -= above;
        x -= !above;
    }
}

/* Between texts of which nothing more is known. */
static int compare_rest(struct search *s, struct rv_cli_lines *out)
{
    int d = find_edits(s);

    if (d == RV_E_NOMEM)
        return d;
    if (d < 0) {
        for (int i = 0; i < s->n_a; i++)
            out->items[out->n++] = (struct rv_cli_line){'-', s->a[i]};
        for (int i = 0; i < s->n_b; i++)
            out->items[out->n++] = (struct rv_cli_line){'+', s->b[i]};
        return 0;
    }
    out->n += (size_t)(s->n_a + s->n_b + d) / 2;
    walk_back(s, d, out->items + out->n);
    return 0;
}

/* In a run of changes removals first, as people read them. */
static void removals_first(struct rv_cli_lines *lines, struct rv_cli_line *scratch)
{
    for (size_t i = 0; i < lines->n;) {
        size_t end = i, n = 0;
        while (end < lines->n && lines->items[end].mark != ' ')
            end++;
        for (size_t k = i; k < end; k++)
            if (lines->items[k].mark == '-')
                scratch[n++] = lines->items[k];
        for (size_t k = i; k < end; k++)
            if (lines->items[k].mark == '+')
                scratch[n++] = lines->items[k];
        for (size_t k = i; k < end; k++)
            lines->items[k] = scratch[k - i];
        i = end + 1;
    }
}

static int compare_texts(const struct text *a, const struct text *b, struct rv_cli_lines *out)
{
    size_t head = 0, tail = 0;

    while (head < a->n && head < b->n && rv_str_eq(a->lines[head], b->lines[head]))
        head++;
    while (tail < a->n - head && tail < b->n - head && rv_str_eq(a->lines[a->n - 1 - tail], b->lines[b->n - 1 - tail]))
        tail++;
    struct search s = {a->lines + head, b->lines + head, (int)(a->n - head - tail), (int)(b->n - head - tail), NULL};
    for (size_t i = 0; i < head; i++)
        out->items[out->n++] = (struct rv_cli_line){' ', a->lines[i]};
    int rc = compare_rest(&s, out);
    for (size_t i = a->n - tail; i < a->n; i++)
        out->items[out->n++] = (struct rv_cli_line){' ', a->lines[i]};
    free(s.rows);
    return rc;
}

int cli_lines_compare(rv_str a, rv_str b, struct rv_cli_lines *out, rv_err **err)
{
    struct text left = {0}, right = {0};
    struct rv_cli_line *scratch = NULL;
    int rc = RV_E_NOMEM;

    *out = (struct rv_cli_lines){0};
    if (split(a, &left) && split(b, &right)) {
        out->items = calloc(left.n + right.n + 1, sizeof *out->items);
        scratch = calloc(left.n + right.n + 1, sizeof *scratch);
        rc = out->items && scratch ? compare_texts(&left, &right, out) : RV_E_NOMEM;
    }
    if (rc == 0)
        removals_first(out, scratch);
    free(scratch);
    free(left.lines);
    free(right.lines);
    if (rc == 0)
        return 0;
    cli_lines_fini(out);
    return RV_FAIL(err, rc, "compare two texts");
}

void cli_lines_fini(struct rv_cli_lines *lines)
{
    free(lines->items);
    *lines = (struct rv_cli_lines){0};
}

/* --- the unified format --- */

/* The end of the part that begins at `at`, a difference: where more than twice the context is equal. */
static size_t part_end(const struct rv_cli_lines *lines, size_t at)
{
    size_t end = at;

    for (size_t i = at; i < lines->n && i - end <= (size_t)2 * CONTEXT; i++)
        if (lines->items[i].mark != ' ')
            end = i + 1;
    return end;
}

static void write_range(char mark, size_t before, size_t n, rv_buf *b)
{
    rv_buf_printf(b, "%c%zu", mark, n ? before + 1 : before);
    if (n != 1)
        rv_buf_printf(b, ",%zu", n);
}

void cli_lines_write_unified(const struct rv_cli_lines *lines, bool color, rv_buf *b)
{
    size_t before[2] = {0, 0}, at = 0; /* lines of each text before item `at` */

    while (at < lines->n) {
        size_t start = at, n[2] = {0, 0};
        while (start < lines->n && lines->items[start].mark == ' ')
            start++;
        if (start == lines->n)
            return;
        size_t end = part_end(lines, start), first = start - at > CONTEXT ? start - CONTEXT : at;
        end = lines->n - end > CONTEXT ? end + CONTEXT : lines->n;
        before[0] += first - at;
        before[1] += first - at;
        for (size_t i = first; i < end; i++) {
            n[0] += lines->items[i].mark != '+';
            n[1] += lines->items[i].mark != '-';
        }
        rv_buf_puts(b, color ? "\033[36m@@ " : "@@ ");
        write_range('-', before[0], n[0], b);
        rv_buf_putc(b, ' ');
        write_range('+', before[1], n[1], b);
        rv_buf_puts(b, color ? " @@\033[0m\n" : " @@\n");
        for (size_t i = first; i < end; i++) {
            const struct rv_cli_line *line = &lines->items[i];
            bool is_colored = color && line->mark != ' ';
            rv_buf_printf(b, "%s%c", !is_colored ? "" : line->mark == '-' ? "\033[31m" : "\033[32m", line->mark);
            cli_write_safe(line->text, b);
            rv_buf_puts(b, is_colored ? "\033[0m\n" : "\n");
        }
        before[0] += n[0];
        before[1] += n[1];
        at = end;
    }
}
