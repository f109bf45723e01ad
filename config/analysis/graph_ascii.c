/* A graph for a terminal: stages from top to bottom, the way to the next stage between the boxes, every other edge on
 * rails to the right. Edges to one stage share a rail, one for solid and one for dashed edges. Where rails would get
 * too many, an edge names its target instead. */
#include <stdlib.h>
#include <string.h>

#include "config/analysis/graph_internal.h"

#define MAX_RAILS    256 /* beside the boxes: more are not readable, and their columns take quadratic time */
#define MAX_COLUMNS  16  /* of arrows side by side: a terminal has no room for more, and further ones are not drawn */
#define COLUMN_WIDTH 3   /* characters of one column of arrows */

struct rail {
    int to;
    bool dashed;
    size_t top, bottom, target; /* rows */
    size_t n_edges;
    size_t column; /* SIZE_MAX: none was free */
};
struct row {
    const char *left;    /* what stands before the rails */
    int out_rail;        /* an edge joins this rail here; -1 */
    int node;            /* rails to this node end here; -1 */
    const char *to_name; /* written out if the rail has no column */
};
struct drawing {
    const struct graph *g;
    struct row *rows; /* arena */
    size_t n_rows, max_rows;
    struct rail *rails; /* arena; two for each node: solid, dashed */
    size_t box_width, left_width;
    bool failed;
};

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static struct row *add_row(struct drawing *d, rv_buf *left)
{
    struct row *row = &d->rows[d->n_rows];

    if (d->n_rows == d->max_rows) { /* rows are counted before: a bug of ours would be seen as a failure */
        d->failed = true;
        return &d->rows[0];
    }
    d->n_rows++;
    *row = (struct row){rv_arena_dup(d->g->arena, rv_buf_str(left)), -1, -1, NULL};
    d->failed |= !row->left || left->rc == RV_E_NOMEM;
    rv_buf_clear(left);
    return row;
}

static void put_times(rv_buf *b, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        rv_buf_puts(b, text);
}

static int next_shown(const struct graph *g, int node)
{
    for (size_t i = (size_t)node + 1; i < g->n_nodes; i++) {
        if (g->nodes[i].shown)
            return (int)i;
    }
    return -1;
}

static bool is_straight(const struct graph *g, const struct graph_edge *e)
{
    return !lint_graph_is_dashed(e) && (size_t)e->from < g->n_stages && e->to == next_shown(g, e->from);
}

static size_t name_width(const struct graph_node *node)
{
    return lint_graph_width(node->name) + (node->mark[0] ? lint_graph_width(node->mark) + 4 : 0);
}

static void use_rail(struct drawing *d, int rail, size_t row)
{
    struct rail *r = &d->rails[rail];

    r->top = r->n_edges == 0 || row < r->top ? row : r->top;
    r->bottom = r->n_edges == 0 || row > r->bottom ? row : r->bottom;
    r->n_edges++;
}

static void add_port(struct drawing *d, const struct graph_edge *e, rv_buf *left)
{
    bool dashed = lint_graph_is_dashed(e), is_box = (size_t)e->from < d->g->n_stages;
    struct row *row;

    if (is_box) {
        rv_buf_puts(left, "  |");
        put_times(left, " ", d->box_width);
        rv_buf_puts(left, "|");
    } else {
        rv_buf_puts(left, "     '");
    }
    rv_buf_puts(left, dashed ? "- - " : e->label[0] ? "--- " : "----");
    if (e->label[0])
        rv_buf_printf(left, "%s ", e->label);
    row = add_row(d, left);
    row->out_rail = 2 * e->to + dashed;
    row->to_name = d->g->nodes[e->to].name;
    use_rail(d, row->out_rail, d->n_rows - 1);
}

static void add_border(struct drawing *d, rv_buf *left)
{
    rv_buf_puts(left, "  +");
    put_times(left, "-", d->box_width);
    rv_buf_puts(left, "+");
    add_row(d, left);
}

static void add_name(struct drawing *d, int node, rv_buf *left)
{
    const struct graph_node *n = &d->g->nodes[node];

    if ((size_t)node >= d->g->n_stages) {
        rv_buf_printf(left, "  ( %s ) ", n->name);
    } else {
        rv_buf_printf(left, "  | %s ", n->name);
        put_times(left, " ", d->box_width - name_width(n) - 2);
        rv_buf_printf(left, "%s%s%s |", n->mark[0] ? " [" : "", n->mark, n->mark[0] ? "]" : "");
    }
    add_row(d, left)->node = node;
}

/* The rows of one node, and the way to the next one below it. */
static void add_node(struct drawing *d, int node, const struct graph_edge *edges, size_t n, rv_buf *left)
{
    bool is_box = (size_t)node < d->g->n_stages, goes_on = false;

    if (is_box)
        add_border(d, left);
    add_name(d, node, left);
    for (size_t i = 0; i < n; i++) {
        if (!is_straight(d->g, &edges[i]))
            add_port(d, &edges[i], left);
    }
    if (is_box)
        add_border(d, left);
    for (size_t i = 0; i < n; i++) {
        if (!is_straight(d->g, &edges[i]))
            continue;
        goes_on = true;
        if (!edges[i].label[0])
            continue;
        rv_buf_printf(left, "     | %s", edges[i].label);
        add_row(d, left);
    }
    if (goes_on)
        rv_buf_puts(left, "     v");
    if (goes_on || next_shown(d->g, node) >= 0)
        add_row(d, left);
}

static void add_all(struct drawing *d, rv_buf *left)
{
    size_t at = 0, first = 0;

    if (d->g->p->default_run_mode != RV_MODE_PARALLEL && d->g->n_stages > 0) {
        rv_buf_puts(left, "  ( start )");
        add_row(d, left);
        rv_buf_puts(left, "     |");
        add_row(d, left);
        rv_buf_puts(left, "     v");
        add_row(d, left);
    }
    for (size_t i = 0; i < d->g->n_nodes; i++) {
        first = at;
        while (at < d->g->n_edges && d->g->edges[at].from == (int)i)
            at++;
        if (d->g->nodes[i].shown)
            add_node(d, (int)i, d->g->edges + first, at - first, left);
    }
}

/* --- Columns --- */
static int shorter_first(const void *a, const void *b)
{
    const struct rail *x = *(struct rail *const *)a, *y = *(struct rail *const *)b;
    size_t long_x = x->bottom - x->top, long_y = y->bottom - y->top;

    if (long_x != long_y)
        return long_x < long_y ? -1 : 1;
    return x->top != y->top ? (x->top < y->top ? -1 : 1) : (x < y ? -1 : x > y);
}

static size_t free_column(struct rail *const *placed, size_t n, const struct rail *rail)
{
    for (size_t column = 0; column < MAX_COLUMNS; column++) {
        bool is_free = true;

        for (size_t i = 0; i < n && is_free; i++)
            is_free = placed[i]->column != column || placed[i]->bottom < rail->top || placed[i]->top > rail->bottom;
        if (is_free)
            return column;
    }
    return SIZE_MAX;
}

/* Short rails come next to the boxes: fewer lines cross. */
static void place_rails(struct drawing *d)
{
    struct rail **used = rv_arena_alloc(d->g->arena, (2 * d->g->n_nodes + 1) * sizeof(*used));
    size_t n = 0;

    if (!used) {
        d->failed = true;
        return;
    }
    for (size_t i = 0; i < d->n_rows; i++) {
        int node = d->rows[i].node;

        for (int side = 0; node >= 0 && side < 2; side++) {
            struct rail *r = &d->rails[2 * node + side];

            r->target = i;
            r->column = SIZE_MAX;
            if (r->n_edges == 0)
                continue;
            r->top = i < r->top ? i : r->top;
            r->bottom = larger(i, r->bottom);
            used[n++] = r;
        }
    }
    if (n > 1)
        qsort(used, n, sizeof(struct rail *), shorter_first);
    for (size_t i = 0; i < n && i < MAX_RAILS; i++)
        used[i]->column = free_column(used, i, used[i]);
}

/* --- Printing --- */
static size_t x_of(const struct drawing *d, const struct rail *r)
{
    return d->left_width + 1 + COLUMN_WIDTH * r->column;
}

/* What the rails show in one row: verticals first, then the horizontal line that joins or leaves one of them. */
static void put_verticals(const struct drawing *d, size_t row, char *cells, const struct rail *const *live, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (live[i]->top <= row && row <= live[i]->bottom)
            cells[x_of(d, live[i]) - d->left_width] = live[i]->dashed ? ':' : '|';
    }
}

static void put_join(const struct drawing *d, size_t row, size_t left, char *cells, const struct rail *rail)
{
    size_t to = x_of(d, rail) - d->left_width;

    for (size_t x = left; x < d->left_width + to; x++) {
        char *cell = x < d->left_width ? NULL : &cells[x - d->left_width];

        if (cell && *cell == ' ')
            *cell = rail->dashed && x % 2 ? ' ' : '-';
    }
    cells[to] = row == rail->top ? '.' : row == rail->bottom ? '\'' : '+';
}

static void put_row(const struct drawing *d, size_t at, const struct rail *const *live, size_t n, rv_buf *out)
{
    const struct row *row = &d->rows[at];
    const struct rail *solid = row->node >= 0 ? &d->rails[2 * row->node] : NULL;
    const struct rail *dashed = row->node >= 0 ? &d->rails[2 * row->node + 1] : NULL;
    const struct rail *out_rail = row->out_rail >= 0 ? &d->rails[row->out_rail] : NULL, *joins = out_rail;
    char cells[COLUMN_WIDTH * MAX_COLUMNS + 2];
    size_t left = lint_graph_width(row->left), end = sizeof(cells) - 1;

    memset(cells, ' ', sizeof(cells));
    rv_buf_puts(out, row->left);
    put_verticals(d, at, cells, live, n);
    if (solid && solid->n_edges > 0 && solid->column != SIZE_MAX)
        put_join(d, at, left, cells, solid);
    if (dashed && dashed->n_edges > 0 && dashed->column != SIZE_MAX)
        put_join(d, at, left, cells, dashed);
    if (solid && solid->n_edges > 0 && solid->column != SIZE_MAX)
        joins = solid;
    else if (dashed && dashed->n_edges > 0 && dashed->column != SIZE_MAX)
        joins = dashed;
    if (out_rail && out_rail->column == SIZE_MAX) {
        rv_buf_printf(out, "--> %s", row->to_name);
        left += 4 + lint_graph_width(row->to_name);
        joins = NULL;
    } else if (out_rail) {
        put_join(d, at, left, cells, out_rail);
    }
    if (joins && row->node >= 0 && left < d->left_width) {
        rv_buf_putc(out, '<');
        left++;
    }
    for (; left < d->left_width; left++)
        rv_buf_putc(out, !joins || (joins->dashed && left % 2) ? ' ' : '-');
    while (end > 0 && cells[end - 1] == ' ')
        end--;
    for (size_t x = left - d->left_width; x < end; x++)
        rv_buf_putc(out, cells[x]);
    while (out->rc == 0 && out->len > 0 && out->ptr[out->len - 1] == ' ')
        rv_buf_truncate(out, out->len - 1);
    rv_buf_putc(out, '\n');
}

static void print(const struct drawing *d, rv_buf *out)
{
    const struct rail *live[MAX_RAILS];
    size_t n = 0;

    for (size_t i = 0; i < 2 * d->g->n_nodes && n < MAX_RAILS; i++) {
        if (d->rails[i].n_edges > 0 && d->rails[i].column != SIZE_MAX)
            live[n++] = &d->rails[i];
    }
    rv_buf_printf(out, "%s\n\n", d->g->title);
    for (size_t i = 0; i < d->n_rows; i++)
        put_row(d, i, live, n, out);
}

int lint_graph_write_ascii(const struct graph *g, rv_buf *b)
{
    struct drawing d = {.g = g, .max_rows = 3 + 4 * g->n_nodes + g->n_edges};
    rv_buf left = RV_BUF_INIT(1 << 20);

    d.rows = rv_arena_alloc(g->arena, d.max_rows * sizeof(*d.rows));
    d.rails = rv_arena_alloc(g->arena, 2 * g->n_nodes * sizeof(*d.rails));
    if (!d.rows || !d.rails)
        return RV_E_NOMEM;
    for (size_t i = 0; i < g->n_stages; i++)
        d.box_width = larger(d.box_width, name_width(&g->nodes[i]) + 2);
    add_all(&d, &left);
    rv_buf_fini(&left);
    place_rails(&d);
    if (d.failed)
        return RV_E_NOMEM;
    for (size_t i = 0; i < d.n_rows; i++) {
        if (d.rows[i].out_rail >= 0 || d.rows[i].node >= 0)
            d.left_width = larger(d.left_width, lint_graph_width(d.rows[i].left) + 1);
    }
    print(&d, b);
    return 0;
}
