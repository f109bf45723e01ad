/* A pipeline as nodes and labelled edges; shared by the graph*.c files only. The whole graph lives in one arena. */
#ifndef RV_CONFIG_GRAPH_INTERNAL_H
#define RV_CONFIG_GRAPH_INTERNAL_H

#include "config/analysis/analysis_internal.h"

#define RV_GRAPH_MAX_BYTES ((size_t)256 << 20) /* of the arena; only hostile sizes come near */
#define RV_GRAPH_MAX_NAME  48 /* characters shown of a name or label: boxes stay narrower than a terminal */

enum graph_node_kind { GRAPH_LLM, GRAPH_TOOLS, GRAPH_SERVICE, GRAPH_END, GRAPH_ASK, GRAPH_N_NODE_KINDS };
/* Texts live in the arena of the graph. */
struct graph_node {
    enum graph_node_kind kind;
    const char *name; /* safe to print: no control characters */
    const char *mark; /* "llm", "tools, max 3"; "" for pseudo nodes */
    bool shown;       /* pseudo nodes only where an edge leads to them */
};
enum graph_edge_kind { GRAPH_FLOW, GRAPH_BRANCH, GRAPH_ERROR, GRAPH_AFTER, GRAPH_ANSWER, GRAPH_N_EDGE_KINDS };
struct graph_edge {
    int from, to;
    enum graph_edge_kind kind; /* FLOW: a line; BRANCH: a thick one; the others: dashed */
    const char *label;         /* "" none; safe to print; lines are joined with '\n' after merging; in the arena */
};
struct graph {
    rv_arena *arena;             /* owned */
    const struct rv_pipeline *p; /* borrowed */
    const char *title;           /* safe to print; in the arena, as what follows */
    size_t n_stages, n_nodes;    /* nodes: the stages, then end, clarification, confirmation */
    struct graph_node *nodes;    /* in the arena */
    struct graph_edge *edges;    /* by `from`, in the order of its routes; in the arena */
    size_t n_edges;
};
static inline bool lint_graph_is_dashed(const struct graph_edge *e)
{
    return e->kind != GRAPH_FLOW && e->kind != GRAPH_BRANCH;
}
/** Characters that a terminal shows: code points. */
size_t lint_graph_width(const char *text);

RV_MUST_CHECK int lint_graph_write_ascii(const struct graph *g, rv_buf *b);
RV_MUST_CHECK int lint_graph_write_svg(const struct graph *g, rv_buf *b);
/** The places and lines of that drawing: {mode, width, height, nodes: [{id, name, stage, kind, mark, x, y, width,
 * height}], edges: [{from, to, kind, label, cut, label_x, label_y, line, tip}]}; line and tip are the d of SVG paths.
 */
RV_MUST_CHECK int lint_graph_write_json(const struct graph *g, rv_buf *b);

#endif
