/* Layers, spots and links of a drawn graph, and in the end its heights and the points where edges touch boxes. */
#include <stdlib.h>
#include <string.h>

#include "config/analysis/graph_layout_internal.h"

/* Left and right in a drawn graph: an order of each layer in which few links cross, then places that keep it and bring
 * everything close to what it is linked with. */

#define ORDER_SWEEPS 8  /* passes that look for fewer crossings: more change nothing in graphs of this size */
#define PLACE_SWEEPS 12 /* passes that pull nodes towards their neighbours: more change nothing visible */
#define SPACE        14 /* between spots of a layer */

/* Links of each spot, upward and downward. */
struct neighbours {
    size_t *start; /* by spot; n_spots + 1 */
    int *items;
};
struct sorted {
    int spot;
    int64_t key;
    size_t was; /* place before: keeps the sort stable */
};
struct work {
    struct layout *l;
    struct neighbours up, down;
    int64_t *position;     /* by spot: place in its layer while ordering */
    struct sorted *sorted; /* as large as the largest layer */
    int64_t *sum, *weight; /* of blocks while placing; by place in the layer */
    size_t *block_size;
};

static int list_neighbours(const struct layout *l, bool upward, struct neighbours *out)
{
    out->start = rv_arena_alloc(l->g->arena, (l->n_spots + 2) * sizeof(*out->start));
    out->items = rv_arena_alloc(l->g->arena, (l->n_links + 1) * sizeof(*out->items));
    if (!out->start || !out->items)
        return RV_E_NOMEM;
    for (size_t i = 0; i < l->n_links; i++)
        out->start[(upward ? l->links[i].lower : l->links[i].upper) + 2]++;
    for (size_t i = 2; i < l->n_spots + 2; i++)
        out->start[i] += out->start[i - 1];
    for (size_t i = 0; i < l->n_links; i++) {
        int own = upward ? l->links[i].lower : l->links[i].upper;

        out->items[out->start[own + 1]++] = upward ? l->links[i].upper : l->links[i].lower;
    }
    return 0;
}

static int by_key(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->was < y->was ? -1 : x->was > y->was;
}

/* Sort a layer by the mean place of the neighbours on one side. */
static void order_layer(struct work *w, size_t layer, const struct neighbours *side)
{
    struct layout *l = w->l;
    size_t n = l->layer_size[layer];

    for (size_t i = 0; i < n; i++) {
        int spot = l->layers[layer][i];
        size_t from = side->start[spot], to = side->start[spot + 1];
        int64_t sum = 0;

        for (size_t j = from; j < to; j++)
            sum += w->position[side->items[j]];
        w->sorted[i] =
            (struct sorted){spot, to > from ? sum * 1024 / (int64_t)(to - from) : w->position[spot] * 1024, i};
    }
    if (n > 1)
        qsort(w->sorted, n, sizeof(*w->sorted), by_key);
    for (size_t i = 0; i < n; i++) {
        l->layers[layer][i] = w->sorted[i].spot;
        /* Places are fractions of the layer, so that layers of different size compare. */
        w->position[w->sorted[i].spot] = (2 * (int64_t)i + 1) * 65536 / (2 * (int64_t)n);
    }
}

static void order_layers(struct work *w)
{
    struct layout *l = w->l;

    for (size_t layer = 0; layer < l->n_layers; layer++) {
        for (size_t i = 0; i < l->layer_size[layer]; i++)
            w->position[l->layers[layer][i]] = (2 * (int64_t)i + 1) * 65536 / (2 * (int64_t)l->layer_size[layer]);
    }
    for (int sweep = 0; sweep < ORDER_SWEEPS; sweep++) {
        for (size_t i = 1; i < l->n_layers; i++)
            order_layer(w, i, &w->up);
        for (size_t i = l->n_layers; i > 1; i--)
            order_layer(w, i - 2, &w->down);
    }
}

/* Routes between neighbours in stage order are the spine of the picture; parallel stages have none. */
static bool is_spine(const struct layout *l, int spot)
{
    const struct graph_edge *e;

    if (l->spots[spot].edge < 0 || l->g->p->default_run_mode == RV_MODE_PARALLEL)
        return false;
    e = &l->g->edges[l->spots[spot].edge];
    return e->kind == GRAPH_FLOW && e->to == e->from + 1;
}

/* The spine is kept straight first, then long edges, then boxes move to the middle of what they are linked with. */
static int64_t weight_of(const struct layout *l, int a, int b)
{
    if (is_spine(l, a) || is_spine(l, b))
        return 24;
    return l->spots[a].edge >= 0 && l->spots[b].edge >= 0 ? 8 : 2;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/* Bring every spot of a layer as near as possible to the mean of its neighbours, order and distances kept: take the
 * needed distances off, merge blocks that would pass each other to their common mean, put the distances back. */
static void place_layer(struct work *w, size_t layer, const struct neighbours *side)
{
    struct layout *l = w->l;
    size_t n = l->layer_size[layer], n_blocks = 0, at = 0;
    int64_t offset = 0;

    for (size_t i = 0; i < n; i++) {
        int spot = l->layers[layer][i];
        int64_t sum = 0, weight = 0;

        if (i > 0)
            offset += l->spots[l->layers[layer][i - 1]].right + SPACE + l->spots[spot].left;
        for (size_t j = side->start[spot]; j < side->start[spot + 1]; j++) {
            int64_t own = weight_of(l, spot, side->items[j]);

            sum += own * l->spots[side->items[j]].x;
            weight += own;
        }
        if (weight == 0) {
            sum = l->spots[spot].x;
            weight = 1;
        }
        w->sum[n_blocks] = sum - weight * offset;
        w->weight[n_blocks] = weight;
        w->block_size[n_blocks] = 1;
        n_blocks++;
        while (n_blocks > 1 &&
               w->sum[n_blocks - 2] * w->weight[n_blocks - 1] >= w->sum[n_blocks - 1] * w->weight[n_blocks - 2]) {
            n_blocks--;
            w->sum[n_blocks - 1] += w->sum[n_blocks];
            w->weight[n_blocks - 1] += w->weight[n_blocks];
            w->block_size[n_blocks - 1] += w->block_size[n_blocks];
        }
    }
    offset = 0;
    for (size_t block = 0; block < n_blocks; block++) {
        int64_t mean = floor_div(w->sum[block], w->weight[block]);

        for (size_t i = 0; i < w->block_size[block]; i++, at++) {
            int spot = l->layers[layer][at];

            if (at > 0)
                offset += l->spots[l->layers[layer][at - 1]].right + SPACE + l->spots[spot].left;
            l->spots[spot].x = mean + offset;
        }
    }
}

static void place_layers(struct work *w)
{
    struct layout *l = w->l;

    for (size_t layer = 0; layer < l->n_layers; layer++) {
        int64_t x = 0;

        for (size_t i = 0; i < l->layer_size[layer]; i++) {
            struct spot *s = &l->spots[l->layers[layer][i]];

            s->x = x + s->left;
            x += s->left + s->right + SPACE;
        }
    }
    for (int sweep = 0; sweep < PLACE_SWEEPS; sweep++) {
        for (size_t i = 1; i < l->n_layers; i++)
            place_layer(w, i, &w->up);
        for (size_t i = l->n_layers; i > 1; i--)
            place_layer(w, i - 2, &w->down);
    }
}

/* Order the spots of each layer so that few links cross, then give each its x. */
static int layout_order(struct layout *l)
{
    struct work w = {.l = l};
    size_t most = 1;

    for (size_t i = 0; i < l->n_layers; i++)
        most = l->layer_size[i] > most ? l->layer_size[i] : most;
    w.position = rv_arena_alloc(l->g->arena, (l->n_spots + 1) * sizeof(*w.position));
    w.sorted = rv_arena_alloc(l->g->arena, most * sizeof(*w.sorted));
    w.sum = rv_arena_alloc(l->g->arena, most * sizeof(*w.sum));
    w.weight = rv_arena_alloc(l->g->arena, most * sizeof(*w.weight));
    w.block_size = rv_arena_alloc(l->g->arena, most * sizeof(*w.block_size));
    if (!w.position || !w.sorted || !w.sum || !w.weight || !w.block_size || list_neighbours(l, true, &w.up) < 0 ||
        list_neighbours(l, false, &w.down) < 0)
        return RV_E_NOMEM;
    order_layers(&w);
    place_layers(&w);
    return 0;
}

#define MAX_SPAN   60 /* layers of boxes that an edge may cross: eyes follow none further; then it names its target */
#define MAX_SPOTS  40000 /* of edges; a graph with more is not looked at as a picture */
#define LAYER_GAP  22    /* pixels between two rows of nodes */
#define TOP_MARGIN 76    /* pixels above the first row: the title stands there */
#define MARGIN     24    /* pixels around the picture */

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

size_t lint_label_lines(const char *label)
{
    size_t n = label[0] ? 1 : 0;

    for (const char *c = label; *c; c++)
        n += *c == '\n';
    return n;
}

/* Generous: the reader's font is not known. */
static int64_t text_width(const char *text, int64_t narrow, int64_t wide)
{
    int64_t width = 0, most = 0;

    for (const char *c = text; *c; c++) {
        unsigned char byte = (unsigned char)*c;

        if (byte == '\n')
            width = 0;
        else if (!rv_utf8_continues(*c))
            width += byte >= 0xe1 ? wide : narrow;
        most = larger(most, width);
    }
    return most;
}

/* Rank of each box: below everything that leads forward to it. */
static int *rank_nodes(const struct graph *g)
{
    int *rank = rv_arena_alloc(g->arena, g->n_nodes * sizeof(*rank));
    size_t at = 0;

    if (!rank)
        return NULL;
    for (size_t i = 0; i < g->n_nodes; i++)
        rank[i] = -1;
    for (size_t i = 0; i < g->n_nodes; i++) {
        bool is_parallel = g->p->default_run_mode == RV_MODE_PARALLEL;

        if (rank[i] < 0) /* nothing leads here: beside the stage before, where a reader looks for it */
            rank[i] = i == 0 || is_parallel ? 0 : rank[i - 1];
        for (; at < g->n_edges && g->edges[at].from == (int)i; at++) {
            int to = g->edges[at].to;

            if (to > (int)i && rank[to] <= rank[i])
                rank[to] = rank[i] + 1;
        }
    }
    return rank;
}

static void set_box(struct spot *spot, const struct graph_node *node, int rank)
{
    int64_t width = larger(text_width(node->name, 9, 15), text_width(node->mark, 7, 12)) + 30;

    *spot = (struct spot){.layer = 2 * rank, .edge = -1, .height = node->mark[0] ? 46 : 32};
    width = larger(width, node->mark[0] ? 110 : 60);
    spot->left = spot->right = width / 2;
}

/* Loops stand to the right of their box. */
static void make_room_for_loop(struct spot *spot, const struct graph_edge *e)
{
    spot->right = larger(spot->right, spot->left + 34 + text_width(e->label, 7, 12));
}

static int add_spot(struct layout *l, size_t edge, int layer, bool has_label)
{
    const struct graph_edge *e = &l->g->edges[edge];
    struct spot spot = {.layer = layer, .edge = (int)edge, .left = 7, .right = 7, .has_label = has_label};

    if (has_label) {
        int64_t width = text_width(e->label, 7, 12) + 14;

        if (l->wires[edge].bottom < 0)
            width += text_width(l->g->nodes[e->to].name, 7, 12) + 14;
        spot.left = spot.right = larger(width, 14) / 2;
        spot.height = 14 * (int64_t)lint_label_lines(e->label) + 4;
        if (l->wires[edge].bottom < 0)
            spot.height = larger(spot.height, 18);
    }
    l->spots[l->n_spots] = spot;
    return (int)l->n_spots++;
}

static void add_link(struct layout *l, int upper, int lower)
{
    l->links[l->n_links++] = (struct link){upper, lower};
}

static void add_wire(struct layout *l, size_t edge, const int *rank)
{
    const struct graph_edge *e = &l->g->edges[edge];
    struct wire *w = &l->wires[edge];
    int upper, last;

    w->is_reversed = rank[e->to] < rank[e->from];
    w->top = w->is_reversed ? e->to : e->from;
    w->bottom = w->is_reversed ? e->from : e->to;
    w->first = (int)l->n_spots;
    w->is_loop = rank[e->to] == rank[e->from];
    if (w->is_loop) {
        make_room_for_loop(&l->spots[e->from], e);
        return;
    }
    if (rank[w->bottom] - rank[w->top] > MAX_SPAN || l->n_spots > MAX_SPOTS) {
        w->top = e->from;
        w->bottom = -1;
        w->is_reversed = false;
        add_link(l, e->from, add_spot(l, edge, 2 * rank[e->from] + 1, true));
        w->n = 1;
        return;
    }
    upper = w->top;
    last = 2 * rank[w->bottom] - 1;
    for (int layer = 2 * rank[w->top] + 1; layer <= last; layer++) {
        bool has_label = layer == (w->is_reversed ? last : 2 * rank[w->top] + 1) && e->label[0];
        int spot = add_spot(l, edge, layer, has_label);

        add_link(l, upper, spot);
        upper = spot;
        w->n++;
    }
    add_link(l, upper, w->bottom);
}

static size_t count_spots(const struct graph *g, const int *rank)
{
    size_t n = g->n_nodes;

    for (size_t i = 0; i < g->n_edges; i++) {
        int span = abs(rank[g->edges[i].to] - rank[g->edges[i].from]);

        n += span > MAX_SPAN ? 1 : 2 * (size_t)span;
    }
    return n;
}

static int fill_layers(struct layout *l)
{
    for (size_t i = 0; i < l->n_spots; i++)
        if (i >= l->g->n_nodes || l->g->nodes[i].shown)
            l->n_layers = (size_t)larger((int64_t)l->n_layers, l->spots[i].layer + 1);
    l->layers = rv_arena_alloc(l->g->arena, (l->n_layers + 1) * sizeof(*l->layers));
    l->layer_size = rv_arena_alloc(l->g->arena, (l->n_layers + 1) * sizeof(*l->layer_size));
    if (!l->layers || !l->layer_size)
        return RV_E_NOMEM;
    for (size_t i = 0; i < l->n_spots; i++)
        if (i >= l->g->n_nodes || l->g->nodes[i].shown)
            l->layer_size[l->spots[i].layer]++;
    for (size_t i = 0; i < l->n_layers; i++) {
        l->layers[i] = rv_arena_alloc(l->g->arena, (l->layer_size[i] + 1) * sizeof(int));
        if (!l->layers[i])
            return RV_E_NOMEM;
        l->layer_size[i] = 0;
    }
    for (size_t i = 0; i < l->n_spots; i++) {
        int layer = l->spots[i].layer;

        if (i >= l->g->n_nodes || l->g->nodes[i].shown)
            l->layers[layer][l->layer_size[layer]++] = (int)i;
    }
    return 0;
}

static void set_heights(struct layout *l)
{
    int64_t y = TOP_MARGIN;

    for (size_t i = 0; i < l->n_layers; i++) {
        int64_t height = 0;

        for (size_t j = 0; j < l->layer_size[i]; j++)
            height = larger(height, l->spots[l->layers[i][j]].height);
        for (size_t j = 0; j < l->layer_size[i]; j++)
            l->spots[l->layers[i][j]].y = y + height / 2;
        y += height + LAYER_GAP;
    }
    l->height = y - LAYER_GAP + MARGIN;
}

static void shift(struct layout *l)
{
    int64_t left = INT64_MAX, right = 0;

    for (size_t i = 0; i < l->n_layers; i++) {
        for (size_t j = 0; j < l->layer_size[i]; j++) {
            const struct spot *s = &l->spots[l->layers[i][j]];

            left = s->x - s->left < left ? s->x - s->left : left;
        }
    }
    for (size_t i = 0; i < l->n_spots; i++) {
        l->spots[i].x += MARGIN - (left == INT64_MAX ? 0 : left);
        if (i >= l->g->n_nodes || l->g->nodes[i].shown)
            right = larger(right, l->spots[i].x + l->spots[i].right);
    }
    l->width = larger(right, 200) + MARGIN;
}

/* --- Where edges touch boxes: side by side, in the order of where they go --- */
struct touch {
    int box, edge;
    bool at_bottom; /* of the box */
    int64_t toward; /* x of the next point */
};

static int by_side_and_direction(const void *a, const void *b)
{
    const struct touch *x = a, *y = b;

    if (x->box != y->box)
        return x->box < y->box ? -1 : 1;
    if (x->at_bottom != y->at_bottom)
        return x->at_bottom ? 1 : -1;
    if (x->toward != y->toward)
        return x->toward < y->toward ? -1 : 1;
    return x->edge < y->edge ? -1 : x->edge > y->edge;
}

static void spread_touches(struct layout *l, const struct touch *touches, size_t n)
{
    const struct spot *box = &l->spots[touches[0].box];
    int64_t room = (2 * box->left - 20) / (int64_t)n, step = room < 26 ? room : 26;

    for (size_t i = 0; i < n; i++) {
        int64_t x = box->x + (2 * (int64_t)i - (int64_t)n + 1) * step / 2;

        if (touches[i].at_bottom)
            l->wires[touches[i].edge].top_x = x;
        else
            l->wires[touches[i].edge].bottom_x = x;
    }
}

static int set_touches(struct layout *l)
{
    struct touch *touches = rv_arena_alloc(l->g->arena, (2 * l->g->n_edges + 1) * sizeof(*touches));
    size_t n = 0, end;

    if (!touches)
        return RV_E_NOMEM;
    for (size_t i = 0; i < l->g->n_edges; i++) {
        const struct wire *w = &l->wires[i];

        if (w->is_loop)
            continue;
        touches[n++] = (struct touch){w->top, (int)i, true, l->spots[w->n > 0 ? w->first : w->bottom].x};
        if (w->bottom >= 0)
            touches[n++] =
                (struct touch){w->bottom, (int)i, false, l->spots[w->n > 0 ? w->first + w->n - 1 : w->top].x};
    }
    if (n > 1)
        qsort(touches, n, sizeof(*touches), by_side_and_direction);
    for (size_t i = 0; i < n; i = end) {
        for (end = i + 1;
             end < n && touches[end].box == touches[i].box && touches[end].at_bottom == touches[i].at_bottom;)
            end++;
        spread_touches(l, touches + i, end - i);
    }
    return 0;
}

int lint_layout_build(const struct graph *g, struct layout *out)
{
    struct layout l = {.g = g};
    int *rank = rank_nodes(g);
    size_t max;

    if (!rank)
        return RV_E_NOMEM;
    max = count_spots(g, rank);
    l.spots = rv_arena_alloc(g->arena, max * sizeof(*l.spots));
    l.links = rv_arena_alloc(g->arena, (max + g->n_edges + 1) * sizeof(*l.links));
    l.wires = rv_arena_alloc(g->arena, (g->n_edges + 1) * sizeof(*l.wires));
    if (!l.spots || !l.links || !l.wires)
        return RV_E_NOMEM;
    for (size_t i = 0; i < g->n_nodes; i++)
        set_box(&l.spots[i], &g->nodes[i], rank[i]);
    l.n_spots = g->n_nodes;
    for (size_t i = 0; i < g->n_edges; i++)
        add_wire(&l, i, rank);
    if (fill_layers(&l) < 0 || layout_order(&l) < 0)
        return RV_E_NOMEM;
    set_heights(&l);
    shift(&l);
    if (set_touches(&l) < 0)
        return RV_E_NOMEM;
    *out = l;
    return 0;
}
