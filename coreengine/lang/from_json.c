/* JSON values as trees of nodes: for texts that YAML reads in another way than JSON, and for configuration that a
 * program makes. Then the nodes share one place. */
#include <json-c/linkhash.h>

#include "coreengine/lang/yaml_internal.h"

static bool fill_list(rv_arena *arena, struct rv_node *node, json_object *v)
{
    node->kind = RV_NODE_LIST;
    node->n = json_object_array_length(v);
    node->items = rv_arena_alloc(arena, (node->n + 1) * sizeof *node->items);
    for (size_t i = 0; node->items && i < node->n; i++) {
        node->items[i] = rv_node_of_json(json_object_array_get_idx(v, i), &node->src, arena);
        if (!node->items[i])
            return false;
    }
    return node->items != NULL;
}

static bool fill_text(rv_arena *arena, struct rv_node *node, rv_str text)
{
    char *copy = rv_arena_dup(arena, text);

    node->kind = RV_NODE_STR;
    node->text = (rv_str){copy, text.len};
    return copy != NULL;
}

static bool fill_map(rv_arena *arena, struct rv_node *node, json_object *v)
{
    size_t i = 0;

    node->kind = RV_NODE_MAP;
    node->n = (size_t)json_object_object_length(v);
    node->items = rv_arena_alloc(arena, (node->n + 1) * sizeof *node->items);
    node->keys = rv_arena_alloc(arena, (node->n + 1) * sizeof *node->keys);
    if (!node->items || !node->keys)
        return false;
    json_object_object_foreach (v, key, value) {
        node->keys[i] = rv_arena_alloc(arena, sizeof **node->keys);
        if (!node->keys[i] || !fill_text(arena, node->keys[i], rv_str_of(key)))
            return false;
        node->keys[i]->src = node->src;
        node->items[i] = rv_node_of_json(value, &node->src, arena);
        if (!node->items[i])
            return false;
        i++;
    }
    return true;
}

static bool fill_number(rv_arena *arena, struct rv_node *node, json_object *v)
{
    rv_buf text = RV_BUF_INIT(RV_YAML_MAX_BYTES);
    bool ok;

    rv_json_write(v, &text);
    ok = text.rc == 0 && fill_text(arena, node, rv_buf_str(&text));
    rv_buf_fini(&text);
    node->kind = rv_json_is_int(v) ? RV_NODE_INT : RV_NODE_FLOAT;
    node->i64 = node->kind == RV_NODE_INT ? json_object_get_int64(v) : 0;
    node->f64 = json_object_get_double(v);
    return ok;
}

struct rv_node *rv_node_of_json(json_object *v, const struct rv_src *src, rv_arena *arena)
{
    struct rv_node *node = rv_arena_alloc(arena, sizeof *node);
    bool ok = node != NULL;

    if (!node)
        return NULL;
    node->src = *src;
    switch (json_object_get_type(v)) {
    case json_type_null:
        node->kind = RV_NODE_NULL;
        break;
    case json_type_boolean:
        ok = fill_text(arena, node, rv_str_of(json_object_get_boolean(v) ? "true" : "false"));
        node->kind = RV_NODE_BOOL;
        node->i64 = json_object_get_boolean(v);
        break;
    case json_type_int:
    case json_type_double:
        ok = fill_number(arena, node, v);
        break;
    case json_type_string:
        ok = fill_text(arena, node, rv_json_str(v));
        break;
    case json_type_object:
        ok = fill_map(arena, node, v);
        break;
    case json_type_array:
        ok = fill_list(arena, node, v);
        break;
    }
    return ok ? node : NULL;
}
