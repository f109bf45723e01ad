/* Graphs as text for other programs to lay out: Mermaid flowcharts and Graphviz. */
#include "config/graph_internal.h"

/* Mermaid reads entities without the ampersand inside quoted labels. */
static void put_mermaid(rv_buf *b, const char *text)
{
    for (const char *c = text; *c; c++) {
        switch (*c) {
        case '"':
            rv_buf_puts(b, "#quot;");
            break;
        case '#':
            rv_buf_puts(b, "#35;");
            break;
        case '&':
            rv_buf_puts(b, "#amp;");
            break;
        case '<':
            rv_buf_puts(b, "#lt;");
            break;
        case '>':
            rv_buf_puts(b, "#gt;");
            break;
        case '`': /* would start Markdown */
            rv_buf_puts(b, "#96;");
            break;
        case '\n':
            rv_buf_puts(b, "<br/>");
            break;
        default:
            rv_buf_putc(b, *c);
        }
    }
}

void rv_graph_write_mermaid(const struct graph *g, rv_buf *b)
{
    static const char *const classes[] = {"llm", "tools", "service", "stop", "ask"};
    static const char *const open[] = {"[\"", "[[\"", "(\"", "([\"", "{{\""};
    static const char *const close[] = {"\"]", "\"]]", "\")", "\"])", "\"}}"};

    rv_buf_puts(b, "flowchart TD\n");
    for (size_t i = 0; i < g->n_nodes; i++) {
        const struct graph_node *node = &g->nodes[i];

        if (!node->shown)
            continue;
        rv_buf_printf(b, "    n%zu%s", i, open[node->kind]);
        put_mermaid(b, node->name);
        if (node->mark[0])
            rv_buf_puts(b, "<br/><small>");
        put_mermaid(b, node->mark);
        if (node->mark[0])
            rv_buf_puts(b, "</small>");
        rv_buf_printf(b, "%s:::%s\n", close[node->kind], classes[node->kind]);
    }
    for (size_t i = 0; i < g->n_edges; i++) {
        const struct graph_edge *e = &g->edges[i];

        rv_buf_printf(b, "    n%d %s", e->from, e->kind == GRAPH_FLOW ? "-->" : "-.->");
        if (e->label[0]) {
            rv_buf_puts(b, "|\"");
            put_mermaid(b, e->label);
            rv_buf_puts(b, "\"|");
        }
        rv_buf_printf(b, " n%d\n", e->to);
    }
    rv_buf_puts(b, "    classDef llm fill:#ede9fe,stroke:#7c3aed,color:#1e1b4b\n"
                   "    classDef tools fill:#ccfbf1,stroke:#0d9488,color:#042f2e\n"
                   "    classDef service fill:#f1f5f9,stroke:#64748b,color:#0f172a\n"
                   "    classDef stop fill:#334155,stroke:#334155,color:#f8fafc\n"
                   "    classDef ask fill:#fef3c7,stroke:#d97706,color:#451a03\n");
}

static void put_dot(rv_buf *b, const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c == '\n') {
            rv_buf_puts(b, "\\n");
            continue;
        }
        if (*c == '"' || *c == '\\')
            rv_buf_putc(b, '\\');
        rv_buf_putc(b, *c);
    }
}

void rv_graph_write_dot(const struct graph *g, rv_buf *b)
{
    static const char *const styles[] = {
        "shape=box, style=\"rounded,filled\", fillcolor=\"#ede9fe\", color=\"#7c3aed\"",
        "shape=box, style=\"rounded,filled\", fillcolor=\"#ccfbf1\", color=\"#0d9488\"",
        "shape=box, style=\"rounded,filled\", fillcolor=\"#f1f5f9\", color=\"#64748b\"",
        "shape=oval, style=filled, fillcolor=\"#334155\", fontcolor=\"#f8fafc\"",
        "shape=hexagon, style=filled, fillcolor=\"#fef3c7\", color=\"#d97706\"",
    };

    rv_buf_puts(b, "digraph pipeline {\n    label=\"");
    put_dot(b, g->title);
    rv_buf_puts(b, "\";\n    labelloc=t;\n    node [fontname=\"sans-serif\"];\n    edge [fontname=\"monospace\", "
                   "fontsize=10];\n");
    for (size_t i = 0; i < g->n_nodes; i++) {
        const struct graph_node *node = &g->nodes[i];

        if (!node->shown)
            continue;
        rv_buf_printf(b, "    n%zu [label=\"", i);
        put_dot(b, node->name);
        if (node->mark[0])
            rv_buf_puts(b, "\\n[");
        put_dot(b, node->mark);
        if (node->mark[0])
            rv_buf_putc(b, ']');
        rv_buf_printf(b, "\", %s];\n", styles[node->kind]);
    }
    for (size_t i = 0; i < g->n_edges; i++) {
        const struct graph_edge *e = &g->edges[i];

        rv_buf_printf(b, "    n%d -> n%d [label=\"", e->from, e->to);
        put_dot(b, e->label);
        rv_buf_printf(b, "\"%s];\n", e->kind == GRAPH_FLOW ? "" : ", style=dashed");
    }
    rv_buf_puts(b, "}\n");
}
