/* Places for the boxes and bends of a drawn graph; shared by graph_layout.c and graph_svg.c only.
 *
 * Boxes stand on even layers. An edge goes down from its upper to its lower box through one spot on each layer between,
 * so that edges get out of the way of boxes and of each other; one of the spots holds the label. Everything is counted
 * in whole pixels: the same picture on every machine. */
#ifndef RV_CONFIG_GRAPH_LAYOUT_INTERNAL_H
#define RV_CONFIG_GRAPH_LAYOUT_INTERNAL_H

#include "config/analysis/graph_internal.h"

struct spot {
    int layer;
    int64_t x, y;                /* centre */
    int64_t left, right, height; /* extent: left and right of x */
    int edge;                    /* edge that bends here; -1: a box */
    bool has_label;
};
struct link { /* one step of an edge; upper is on the layer above lower */
    int upper, lower;
};
struct wire {
    int top, bottom;         /* boxes; bottom is -1 when the edge ends at its label, which then names the target */
    int first, n;            /* its spots: top to bottom */
    bool is_reversed;        /* goes up: from bottom to top */
    bool is_loop;            /* from a box to itself, or beside it */
    int64_t top_x, bottom_x; /* where it touches the boxes */
};
struct layout {
    const struct graph *g; /* borrowed */
    struct spot *spots;    /* in the arena; boxes first, by node */
    size_t n_spots;
    struct wire *wires; /* in the arena; by edge */
    struct link *links; /* in the arena */
    size_t n_links;
    int **layers;       /* in the arena; spots of a layer from left to right */
    size_t *layer_size; /* in the arena */
    size_t n_layers;
    int64_t width, height;
};
RV_MUST_CHECK int lint_layout_build(const struct graph *g, struct layout *out);
/** Lines of a label. */
size_t lint_label_lines(const char *label);

#endif
