/* Looking at nodes, and turning them into JSON values. */
#include <math.h>
#include <string.h>

#include "coreengine/lang/yaml_internal.h"

static const struct {
    const char *text, *phrase;
} kinds[] = {
    [RV_NODE_NULL] = {"null", "null"},         [RV_NODE_BOOL] = {"boolean", "a boolean"},
    [RV_NODE_INT] = {"integer", "an integer"}, [RV_NODE_FLOAT] = {"number", "a number"},
    [RV_NODE_STR] = {"string", "a string"},    [RV_NODE_LIST] = {"list", "a list"},
    [RV_NODE_MAP] = {"map", "a map"},
};

const char *rv_node_kind_text(enum rv_node_kind kind)
{
    return kinds[kind].text;
}

const char *rv_node_kind_phrase(enum rv_node_kind kind)
{
    return kinds[kind].phrase;
}

const struct rv_node *rv_node_get(const struct rv_node *map, const char *key)
{
    if (!map || map->kind != RV_NODE_MAP)
        return NULL;
    for (size_t i = 0; i < map->n; i++)
        if (rv_str_is(map->keys[i]->text, key))
            return map->items[i];
    return NULL;
}

struct rv_src rv_node_text_src(const struct rv_node *node)
{
    struct rv_src src = node->src;

    if (node->is_block) {
        src.line++;
        src.col = node->indent + 1;
    } else if (node->is_quoted) {
        src.col++;
    }
    return src;
}

static int number_to_json(const struct rv_node *node, json_object **out, rv_err **err)
{
    json_object *value = NULL;

    if (node->kind == RV_NODE_INT) {
        value = json_object_new_int64(node->i64);
    } else if (!isfinite(node->f64)) {
        return RV_FAIL_AT(err, &node->src, RV_E_INVALID, "the number %s has no JSON form", node->text.ptr);
    } else {
        /* The JSON reader keeps the text; numbers that only YAML can write (.5, +1.0, +1e3) are rewritten. */
        int rc = rv_json_parse(node->text, NULL, &value, NULL);
        if (rc == RV_E_NOMEM)
            return RV_FAIL(err, RV_E_NOMEM, "convert a number");
        if (rc < 0)
            value = rv_json_double(node->f64);
    }
    if (!value)
        return RV_FAIL(err, RV_E_NOMEM, "convert a number");
    *out = value;
    return 0;
}

static int list_to_json(const struct rv_node *node, json_object **out, rv_err **err)
{
    json_object *list = json_object_new_array();
    int rc = list ? 0 : RV_FAIL(err, RV_E_NOMEM, "convert a list");

    for (size_t i = 0; rc == 0 && i < node->n; i++) {
        json_object *item = NULL;
        rc = rv_node_to_json(node->items[i], &item, err);
        if (rc == 0)
            rc = rv_json_push_ref(list, item, err);
        json_object_put(item);
    }
    if (rc < 0) {
        json_object_put(list);
        return rc;
    }
    *out = list;
    return 0;
}

static int map_to_json(const struct rv_node *node, json_object **out, rv_err **err)
{
    json_object *map = json_object_new_object();
    int rc = map ? 0 : RV_FAIL(err, RV_E_NOMEM, "convert a map");

    for (size_t i = 0; rc == 0 && i < node->n; i++) {
        json_object *item = NULL;
        rc = rv_node_to_json(node->items[i], &item, err);
        if (rc == 0)
            rc = rv_json_set_ref(map, node->keys[i]->text.ptr, item, err);
        json_object_put(item);
    }
    if (rc < 0) {
        json_object_put(map);
        return rc;
    }
    *out = map;
    return 0;
}

int rv_node_to_json(const struct rv_node *node, json_object **out, rv_err **err)
{
    json_object *value = NULL;

    switch (node->kind) {
    case RV_NODE_NULL:
        *out = NULL;
        return 0;
    case RV_NODE_BOOL:
        value = json_object_new_boolean(node->i64 != 0);
        break;
    case RV_NODE_STR:
        value = json_object_new_string_len(node->text.ptr, (int)node->text.len);
        break;
    case RV_NODE_INT:
    case RV_NODE_FLOAT:
        return number_to_json(node, out, err);
    case RV_NODE_LIST:
        return list_to_json(node, out, err);
    case RV_NODE_MAP:
        return map_to_json(node, out, err);
    }
    if (!value)
        return RV_FAIL(err, RV_E_NOMEM, "convert a scalar");
    *out = value;
    return 0;
}
