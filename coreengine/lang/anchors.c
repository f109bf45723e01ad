/* Anchors of a document, by name; the latest of a name counts. */
#include <stdlib.h>

#include "coreengine/lang/yaml_internal.h"

int rv_anchors_open(struct rv_anchors *anchors, rv_arena *arena, rv_str name)
{
    struct rv_anchor *a;

    if (!anchors->items)
        anchors->items = calloc(RV_YAML_MAX_ALIASES, sizeof *anchors->items);
    if (!anchors->items)
        return RV_E_NOMEM;
    if (anchors->n == RV_YAML_MAX_ALIASES)
        return RV_E_LIMIT;
    a = &anchors->items[anchors->n];
    a->name = (rv_str){rv_arena_dup(arena, name), name.len};
    if (!a->name.ptr)
        return RV_E_NOMEM;
    return (int)anchors->n++;
}

void rv_anchors_close(struct rv_anchors *anchors, int index, struct rv_node *node, size_t n_nodes, int height)
{
    struct rv_anchor *a = &anchors->items[index];

    a->node = node;
    a->n_nodes = n_nodes;
    a->height = height;
}

const struct rv_anchor *rv_anchors_find(const struct rv_anchors *anchors, rv_str name)
{
    for (size_t i = anchors->n; i > 0; i--)
        if (rv_str_eq(anchors->items[i - 1].name, name))
            return &anchors->items[i - 1];
    return NULL;
}

void rv_anchors_fini(struct rv_anchors *anchors)
{
    free(anchors->items);
}
