/* A laid-out graph as one self-contained SVG, or its parts as JSON for a page that draws them. Colours follow the
 * reader's light or dark scheme; there is no background, so it fits the page it stands on. */
#include <string.h>

#include "config/analysis/graph_layout_internal.h"

static const char style[] =
    "text{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;fill:#0f172a}"
    ".title{font-size:16px;font-weight:600}"
    ".name{font-size:14px;font-weight:600;text-anchor:middle}"
    ".mark{font-size:11px;text-anchor:middle;fill:#475569}"
    ".label{font-family:ui-monospace,'SF Mono','DejaVu Sans Mono',monospace;font-size:11px;text-anchor:middle;"
    "fill:#334155;stroke:#fff;stroke-width:4px;stroke-linejoin:round;paint-order:stroke}"
    ".loop{text-anchor:start}"
    ".edge{fill:none;stroke:#64748b;stroke-width:1.5}"
    ".tip,.start{fill:#64748b}"
    ".error{stroke:#dc2626;stroke-dasharray:6 4}.error-tip{fill:#dc2626}"
    ".after,.answer{stroke-dasharray:3 4}.branch{stroke-width:3}"
    ".box{stroke-width:1.5}"
    ".llm{fill:#ede9fe;stroke:#7c3aed}.tools{fill:#ccfbf1;stroke:#0d9488}.service{fill:#f1f5f9;stroke:#64748b}"
    ".stop{fill:#334155;stroke:#334155}.stop-name{fill:#f8fafc}.ask{fill:#fef3c7;stroke:#d97706}"
    "@media(prefers-color-scheme:dark){"
    "text{fill:#e2e8f0}.mark{fill:#94a3b8}.label{fill:#cbd5e1;stroke:#0f172a}"
    ".edge{stroke:#94a3b8}.tip,.start{fill:#94a3b8}.error{stroke:#f87171}.error-tip{fill:#f87171}"
    ".llm{fill:#2e1065;stroke:#a78bfa}.tools{fill:#042f2e;stroke:#2dd4bf}.service{fill:#1e293b;stroke:#94a3b8}"
    ".stop{fill:#cbd5e1;stroke:#cbd5e1}.stop-name{fill:#0f172a}.ask{fill:#451a03;stroke:#fbbf24}}";

static void put_text(rv_buf *b, const char *class, int64_t x, int64_t y, const char *text, size_t len)
{
    rv_buf_printf(b, "<text class=\"%s\" x=\"%lld\" y=\"%lld\">", class, (long long)x, (long long)y);
    rv_buf_add_xml(b, (rv_str){text, len});
    rv_buf_puts(b, "</text>\n");
}

/* The lines of a label around y. */
static void put_label(rv_buf *b, const char *class, int64_t x, int64_t y, const char *label)
{
    int64_t line_y = y - 7 * ((int64_t)lint_label_lines(label) - 1) + 4;

    while (label[0]) {
        size_t len = strcspn(label, "\n");

        put_text(b, class, x, line_y, label, len);
        label += len + (label[len] == '\n');
        line_y += 14;
    }
}

static const char *edge_class(const struct graph_edge *e)
{
    switch (e->kind) {
    case GRAPH_FLOW:
        return "edge";
    case GRAPH_BRANCH:
        return "edge branch";
    case GRAPH_ERROR:
        return "edge error";
    case GRAPH_AFTER:
        return "edge after";
    case GRAPH_ANSWER:
        return "edge answer";
    case GRAPH_N_EDGE_KINDS:
        break;
    }
    return "edge";
}

/* The d of a path: the point of an arrow. */
static void tip_d(rv_buf *b, int64_t x, int64_t y, int64_t direction)
{
    rv_buf_printf(b, "M%lld %lldl-4.5 %lldh9z", (long long)x, (long long)y, -8 * (long long)direction);
}

/* A curve that leaves and arrives straight up or down. */
static void curve_to(rv_buf *b, int64_t from_x, int64_t from_y, int64_t x, int64_t y)
{
    long long middle = (long long)(from_y + y) / 2;

    if (from_x == x)
        rv_buf_printf(b, "L%lld %lld", (long long)x, (long long)y);
    else
        rv_buf_printf(b, "C%lld %lld %lld %lld %lld %lld", (long long)from_x, middle, (long long)x, middle,
                      (long long)x, (long long)y);
}

/* An edge as a drawing has it: the d of its line and of its point, where its label is. */
struct drawn {
    rv_buf line, tip;
    int64_t label_x, label_y;
    const char *label_class;
};

static void draw_loop(const struct layout *l, const struct graph_edge *e, struct drawn *d)
{
    const struct spot *box = &l->spots[e->from], *to = &l->spots[e->to];
    long long x = box->x + box->left, y = box->y;

    if (e->from != e->to) { /* beside each other: an arc below */
        long long low = box->y + box->height / 2, end = to->x;

        rv_buf_printf(&d->line, "M%lld %lldC%lld %lld %lld %lld %lld %lld", (long long)box->x, low, (long long)box->x,
                      low + 30, end, low + 30, end, low + 8);
        tip_d(&d->tip, end, to->y + to->height / 2, -1);
        d->label_x = (box->x + to->x) / 2;
        d->label_y = low + 24;
        return;
    }
    rv_buf_printf(&d->line, "M%lld %lldC%lld %lld %lld %lld %lld %lld", x, y - 10, x + 32, y - 20, x + 32, y + 20,
                  x + 7, y + 11);
    rv_buf_printf(&d->tip, "M%lld %lldl9 -1l-4 8z", x, y + 9);
    d->label_x = x + 30;
    d->label_y = y;
    d->label_class = "label loop";
}

static void draw_edge(const struct layout *l, size_t i, struct drawn *d)
{
    const struct wire *w = &l->wires[i];
    const struct spot *top = &l->spots[w->top];
    int64_t x = w->top_x, y = top->y + top->height / 2 + (w->is_reversed ? 7 : 0), end;

    if (w->is_loop) {
        draw_loop(l, &l->g->edges[i], d);
        return;
    }
    rv_buf_printf(&d->line, "M%lld %lld", (long long)x, (long long)y);
    for (int s = w->first; s < w->first + w->n; s++) {
        const struct spot *spot = &l->spots[s];
        int64_t half = w->bottom < 0 ? 0 : spot->height / 2;

        curve_to(&d->line, x, y, spot->x, w->bottom < 0 ? spot->y - 16 : spot->y - half);
        x = spot->x;
        y = spot->y + half;
        if (half > 0)
            rv_buf_printf(&d->line, "L%lld %lld", (long long)x, (long long)y);
        if (spot->has_label) {
            d->label_x = spot->x;
            d->label_y = spot->y;
        }
    }
    if (w->bottom < 0) {
        tip_d(&d->tip, x, y - 9, 1);
        return;
    }
    end = l->spots[w->bottom].y - l->spots[w->bottom].height / 2;
    curve_to(&d->line, x, y, w->bottom_x, end - (w->is_reversed ? 0 : 7));
    if (w->is_reversed)
        tip_d(&d->tip, w->top_x, top->y + top->height / 2, -1);
    else
        tip_d(&d->tip, w->bottom_x, end, 1);
}

static struct drawn drawn_init(void)
{
    return (struct drawn){.line = RV_BUF_INIT(1 << 20), .tip = RV_BUF_INIT(1 << 10), .label_class = "label"};
}

static int drawn_fini(struct drawn *d)
{
    int rc = d->line.rc < 0 ? d->line.rc : d->tip.rc;

    rv_buf_fini(&d->line);
    rv_buf_fini(&d->tip);
    return rc;
}

static int put_edge(const struct layout *l, size_t i, rv_buf *b)
{
    const struct graph_edge *e = &l->g->edges[i];
    struct drawn d = drawn_init();

    draw_edge(l, i, &d);
    rv_buf_printf(b, "<path class=\"%s\" d=\"%s\"/>\n", edge_class(e), rv_buf_cstr(&d.line));
    rv_buf_printf(b, "<path class=\"tip%s\" d=\"%s\"/>\n", e->kind == GRAPH_ERROR ? " error-tip" : "",
                  rv_buf_cstr(&d.tip));
    if (l->wires[i].is_loop)
        put_label(b, d.label_class, d.label_x, d.label_y, e->label);
    return drawn_fini(&d);
}

static void put_edge_label(const struct layout *l, size_t i, rv_buf *b)
{
    const struct wire *w = &l->wires[i];
    const struct graph_edge *e = &l->g->edges[i];

    for (int s = w->first; s < w->first + w->n; s++) {
        const struct spot *spot = &l->spots[s];

        if (!spot->has_label)
            continue;
        if (w->bottom >= 0) {
            put_label(b, "label", spot->x, spot->y, e->label);
            continue;
        }
        rv_buf_printf(b, "<text class=\"label\" x=\"%lld\" y=\"%lld\">", (long long)spot->x, (long long)spot->y + 4);
        rv_buf_add_xml(b, (rv_str){e->label, strcspn(e->label, "\n")});
        rv_buf_printf(b, "%s\xe2\x86\x92 ", e->label[0] ? " " : "");
        rv_buf_add_xml(b, rv_str_of(l->g->nodes[e->to].name));
        rv_buf_puts(b, "</text>\n");
    }
}

static void put_box(const struct layout *l, size_t i, rv_buf *b)
{
    static const char *const classes[] = {[GRAPH_LLM] = "llm",
                                          [GRAPH_TOOLS] = "tools",
                                          [GRAPH_SERVICE] = "service",
                                          [GRAPH_END] = "stop",
                                          [GRAPH_ASK] = "ask"};
    RV_EACH_HAS_ROW(classes, GRAPH_N_NODE_KINDS);
    const struct graph_node *node = &l->g->nodes[i];
    const struct spot *s = &l->spots[i];
    bool is_pseudo = i >= l->g->n_stages;

    rv_buf_printf(b, "<rect class=\"box %s\" x=\"%lld\" y=\"%lld\" width=\"%lld\" height=\"%lld\" rx=\"%d\"/>\n",
                  classes[node->kind], (long long)(s->x - s->left), (long long)(s->y - s->height / 2),
                  (long long)(2 * s->left), (long long)s->height, is_pseudo ? 16 : 8);
    put_text(b, node->kind == GRAPH_END ? "name stop-name" : "name", s->x, s->y + (node->mark[0] ? -3 : 5), node->name,
             strlen(node->name));
    if (node->mark[0])
        put_text(b, "mark", s->x, s->y + 14, node->mark, strlen(node->mark));
}

static void put_start(const struct layout *l, rv_buf *b)
{
    const struct spot *first = &l->spots[0];
    long long x = first->x, top = first->y - first->height / 2;

    rv_buf_printf(b, "<circle class=\"start\" cx=\"%lld\" cy=\"%lld\" r=\"5\"/>\n", x, top - 26);
    rv_buf_printf(b, "<path class=\"edge\" d=\"M%lld %lldV%lld\"/>\n", x, top - 26, top - 7);
    rv_buf_puts(b, "<path class=\"tip\" d=\"");
    tip_d(b, first->x, top, 1);
    rv_buf_puts(b, "\"/>\n");
}

int lint_graph_write_svg(const struct graph *g, rv_buf *b)
{
    struct layout l = {0};
    size_t title = lint_graph_width(g->title) * 10 + 48;
    long long width;
    int rc = lint_layout_build(g, &l);

    if (rc < 0)
        return rc;
    width = l.width > (int64_t)title ? (long long)l.width : (long long)title;
    rv_buf_printf(b,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %lld %lld\" width=\"%lld\" height=\"%lld\" "
                  "role=\"img\">\n<title>",
                  width, (long long)l.height, width, (long long)l.height);
    rv_buf_add_xml(b, rv_str_of(g->title));
    rv_buf_printf(b, "</title>\n<style>%s</style>\n", style);
    put_text(b, "title", 24, 32, g->title, strlen(g->title));
    for (size_t i = 0; i < g->n_edges && rc == 0; i++)
        rc = put_edge(&l, i, b);
    if (g->n_stages > 0 && g->p->default_run_mode != RV_MODE_PARALLEL)
        put_start(&l, b);
    for (size_t i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i].shown)
            put_box(&l, i, b);
    }
    for (size_t i = 0; i < g->n_edges; i++)
        put_edge_label(&l, i, b);
    rv_buf_puts(b, "</svg>\n");
    return rc;
}

/* --- the same as JSON --- */

static void write_node(const struct layout *l, size_t i, rv_jw *w)
{
    static const char *const kinds[] = {[GRAPH_LLM] = "llm",
                                        [GRAPH_TOOLS] = "tools",
                                        [GRAPH_SERVICE] = "service",
                                        [GRAPH_END] = "end",
                                        [GRAPH_ASK] = "ask"};
    RV_EACH_HAS_ROW(kinds, GRAPH_N_NODE_KINDS);
    const struct graph_node *node = &l->g->nodes[i];
    const struct spot *s = &l->spots[i];

    rv_jw_obj(w);
    rv_jw_kv_int(w, "id", (int64_t)i);
    rv_jw_kv_text(w, "name", node->name);
    rv_jw_kv_text(w, "stage", i < l->g->n_stages ? l->g->p->agents[i].name : NULL);
    rv_jw_kv_text(w, "kind", kinds[node->kind]);
    rv_jw_kv_text(w, "mark", node->mark);
    rv_jw_kv_int(w, "x", s->x - s->left);
    rv_jw_kv_int(w, "y", s->y - s->height / 2);
    rv_jw_kv_int(w, "width", 2 * s->left);
    rv_jw_kv_int(w, "height", s->height);
    rv_jw_obj_end(w);
}

static int write_edge(const struct layout *l, size_t i, rv_jw *w)
{
    static const char *const kinds[] = {[GRAPH_FLOW] = "flow",
                                        [GRAPH_BRANCH] = "branch",
                                        [GRAPH_ERROR] = "error",
                                        [GRAPH_AFTER] = "after",
                                        [GRAPH_ANSWER] = "answer"};
    RV_EACH_HAS_ROW(kinds, GRAPH_N_EDGE_KINDS);
    const struct graph_edge *e = &l->g->edges[i];
    struct drawn d = drawn_init();

    draw_edge(l, i, &d);
    rv_jw_obj(w);
    rv_jw_kv_int(w, "from", e->from);
    rv_jw_kv_int(w, "to", e->to);
    rv_jw_kv_text(w, "kind", kinds[e->kind]);
    rv_jw_kv_text(w, "label", e->label);
    rv_jw_kv_bool(w, "cut", !l->wires[i].is_loop && l->wires[i].bottom < 0); /* it ends at its label */
    rv_jw_kv_int(w, "label_x", d.label_x);
    rv_jw_kv_int(w, "label_y", d.label_y);
    rv_jw_kv_str(w, "line", rv_buf_str(&d.line));
    rv_jw_kv_str(w, "tip", rv_buf_str(&d.tip));
    rv_jw_obj_end(w);
    return drawn_fini(&d);
}

int lint_graph_write_json(const struct graph *g, rv_buf *b)
{
    bool is_parallel = g->p->default_run_mode == RV_MODE_PARALLEL;
    struct layout l = {0};
    rv_jw w = rv_jw_on(b);
    int rc = lint_layout_build(g, &l);

    if (rc < 0)
        return rc;
    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "mode", rv_run_mode_text(is_parallel ? RV_MODE_PARALLEL : RV_MODE_SEQUENTIAL));
    rv_jw_kv_int(&w, "width", l.width);
    rv_jw_kv_int(&w, "height", l.height);
    rv_jw_key(&w, "nodes");
    rv_jw_arr(&w);
    for (size_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i].shown)
            write_node(&l, i, &w);
    rv_jw_arr_end(&w);
    rv_jw_key(&w, "edges");
    rv_jw_arr(&w);
    for (size_t i = 0; i < g->n_edges && rc == 0; i++)
        rc = write_edge(&l, i, &w);
    rv_jw_arr_end(&w);
    rv_jw_obj_end(&w);
    return rc;
}
