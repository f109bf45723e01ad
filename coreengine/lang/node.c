/* Looking at nodes, and turning them into JSON values. */
#include <errno.h>
#include <json-c/linkhash.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/lang/yaml_internal.h"

/* The type of an unquoted scalar, by the core rules of YAML 1.2 with one restriction: a decimal number with a leading
 * zero stays a string, because half of its readers would take it for octal. */

static bool is_word(rv_str s, const char *lower, const char *title, const char *upper)
{
    return rv_str_is(s, lower) || rv_str_is(s, title) || rv_str_is(s, upper);
}

static size_t skip_digits(rv_str s, size_t i)
{
    while (i < s.len && rv_is_digit(s.ptr[i]))
        i++;
    return i;
}

enum shape { SHAPE_NONE, SHAPE_INT, SHAPE_FLOAT };

static enum shape decimal_shape(rv_str s)
{
    size_t start = s.len > 0 && (s.ptr[0] == '-' || s.ptr[0] == '+') ? 1 : 0;
    size_t i = skip_digits(s, start);
    size_t n_digits = i - start;
    enum shape shape = SHAPE_INT;

    if (n_digits > 1 && s.ptr[start] == '0')
        return SHAPE_NONE;
    if (i < s.len && s.ptr[i] == '.') {
        size_t end = skip_digits(s, i + 1);
        n_digits += end - (i + 1);
        i = end;
        shape = SHAPE_FLOAT;
    }
    if (n_digits == 0)
        return SHAPE_NONE;
    if (i < s.len && (s.ptr[i] == 'e' || s.ptr[i] == 'E')) {
        size_t exponent = i + 1;
        size_t end;
        if (exponent < s.len && (s.ptr[exponent] == '-' || s.ptr[exponent] == '+'))
            exponent++;
        end = skip_digits(s, exponent);
        if (end == exponent)
            return SHAPE_NONE;
        i = end;
        shape = SHAPE_FLOAT;
    }
    return i == s.len ? shape : SHAPE_NONE;
}

static void set_integer(struct rv_node *node, const char *digits, int base)
{
    errno = 0;
    node->i64 = strtoll(digits, NULL, base);
    if (errno == ERANGE) { /* kept as a number; a reader that needs an integer refuses it */
        node->kind = RV_NODE_FLOAT;
        node->i64 = 0;
        node->f64 = base == 10 ? rv_number_read(node->text.ptr, NULL) : __builtin_inf();
        return;
    }
    node->kind = RV_NODE_INT;
    node->f64 = (double)node->i64;
}

/* 0o17 and 0x1F */
static bool set_prefixed(struct rv_node *node)
{
    rv_str s = node->text;
    bool octal = s.len > 2 && s.ptr[0] == '0' && s.ptr[1] == 'o';
    bool hex = s.len > 2 && s.ptr[0] == '0' && s.ptr[1] == 'x';

    if (!octal && !hex)
        return false;
    for (size_t i = 2; i < s.len; i++) {
        char c = s.ptr[i];
        bool ok = octal ? (c >= '0' && c <= '7') : rv_is_hex(c);
        if (!ok)
            return false;
    }
    set_integer(node, s.ptr + 2, octal ? 8 : 16);
    return true;
}

static bool set_special_float(struct rv_node *node)
{
    rv_str s = node->text;
    bool negative = s.len > 0 && s.ptr[0] == '-';

    if (is_word(s, ".nan", ".NaN", ".NAN")) {
        node->f64 = __builtin_nan("");
        return true;
    }
    if (s.len > 0 && (s.ptr[0] == '-' || s.ptr[0] == '+'))
        s = (rv_str){s.ptr + 1, s.len - 1};
    if (!is_word(s, ".inf", ".Inf", ".INF"))
        return false;
    node->f64 = negative ? -__builtin_inf() : __builtin_inf();
    return true;
}

void lang_scalar_resolve(struct rv_node *node)
{
    rv_str s = node->text;

    node->kind = RV_NODE_STR;
    if (s.len == 0 || rv_str_is(s, "~") || is_word(s, "null", "Null", "NULL")) {
        node->kind = RV_NODE_NULL;
        return;
    }
    if (is_word(s, "true", "True", "TRUE") || is_word(s, "false", "False", "FALSE")) {
        node->kind = RV_NODE_BOOL;
        node->i64 = s.ptr[0] == 't' || s.ptr[0] == 'T';
        return;
    }
    if (set_prefixed(node))
        return;
    switch (decimal_shape(s)) {
    case SHAPE_INT:
        set_integer(node, s.ptr, 10);
        return;
    case SHAPE_FLOAT:
        node->kind = RV_NODE_FLOAT;
        node->f64 = rv_number_read(s.ptr, NULL);
        return;
    case SHAPE_NONE:
        break;
    }
    if (set_special_float(node))
        node->kind = RV_NODE_FLOAT;
}

/* --- Nodes --- */

static const struct {
    const char *text, *phrase;
} kinds[] = {
    [RV_NODE_NULL] = {"null", "null"},         [RV_NODE_BOOL] = {"boolean", "a boolean"},
    [RV_NODE_INT] = {"integer", "an integer"}, [RV_NODE_FLOAT] = {"number", "a number"},
    [RV_NODE_STR] = {"string", "a string"},    [RV_NODE_LIST] = {"list", "a list"},
    [RV_NODE_MAP] = {"map", "a map"},
};
RV_EACH_HAS_ROW(kinds, RV_N_NODE_KINDS);

const char *rv_node_kind_text(enum rv_node_kind kind)
{
    return kinds[kind].text;
}

const char *lang_node_kind_phrase(enum rv_node_kind kind)
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
        int rc = rv_json_try_parse(node->text, NULL, &value, err);
        if (rc < 0)
            return rc;
        if (!value)
            value = rv_json_new_double(node->f64);
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
        rc = rv_node_build_json(node->items[i], &item, err);
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
        rc = rv_node_build_json(node->items[i], &item, err);
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

int rv_node_build_json(const struct rv_node *node, json_object **out, rv_err **err)
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
    case RV_N_NODE_KINDS:
        break;
    }
    if (!value)
        return RV_FAIL(err, RV_E_NOMEM, "convert a scalar");
    *out = value;
    return 0;
}

/* JSON values as trees of nodes: for texts that YAML reads in another way than JSON, and for configuration that a
 * program makes. Then the nodes share one place. */

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
