/* Left and right in a drawn graph: an order of each layer in which few links cross, then places that keep it and bring
 * everything close to what it is linked with. */
#include <stdlib.h>

#include "config/graph_layout_internal.h"

#define ORDER_SWEEPS 8
#define PLACE_SWEEPS 12
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

int rv_layout_order(struct layout *l)
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
