/* The text of a document as a tree of nodes. JSON is YAML, mostly: where libyaml would refuse it or read other values
 * than JSON has (surrogate pairs, tabs, U+0085 in a string), the values are those of JSON. Then only the file has a
 * place. */
#include <json-c/linkhash.h>
#include <string.h>

#include "coreengine/agentdoc/agentdoc_internal.h"

static struct rv_node *node_of(rv_arena *arena, const struct rv_src *src, json_object *v);

static bool fill_list(rv_arena *arena, struct rv_node *node, json_object *v)
{
    node->kind = RV_NODE_LIST;
    node->n = json_object_array_length(v);
    node->items = rv_arena_alloc(arena, (node->n + 1) * sizeof *node->items);
    for (size_t i = 0; node->items && i < node->n; i++) {
        node->items[i] = node_of(arena, &node->src, json_object_array_get_idx(v, i));
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
        node->items[i] = node_of(arena, &node->src, value);
        if (!node->items[i])
            return false;
        i++;
    }
    return true;
}

static bool fill_number(rv_arena *arena, struct rv_node *node, json_object *v)
{
    rv_buf text = RV_BUF_INIT(RV_AGENTDOC_MAX_BYTES);
    bool ok;

    rv_json_write(v, &text);
    ok = text.rc == 0 && fill_text(arena, node, rv_buf_str(&text));
    rv_buf_fini(&text);
    node->kind = rv_json_is_int(v) ? RV_NODE_INT : RV_NODE_FLOAT;
    node->i64 = node->kind == RV_NODE_INT ? json_object_get_int64(v) : 0;
    node->f64 = json_object_get_double(v);
    return ok;
}

static struct rv_node *node_of(rv_arena *arena, const struct rv_src *src, json_object *v)
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

/* Whether YAML has the same values: then its places are of use. */
static int read_by_yaml(rv_str text, const char *name, json_object *wanted, rv_yaml **out, rv_err **err)
{
    rv_findings *ignored = rv_findings_new();
    json_object *got = NULL;
    rv_yaml *yaml = NULL;
    int rc;

    if (!ignored)
        return RV_FAIL(err, RV_E_NOMEM, "read \"%s\"", name);
    rc = rv_yaml_parse(text, name, ignored, &yaml, err);
    rv_findings_free(ignored);
    if (rc == 0 && yaml && rv_yaml_root(yaml)) {
        rv_err *why = NULL;
        rc = rv_node_to_json(rv_yaml_root(yaml), &got, &why);
        if (rc == RV_E_NOMEM)
            rc = RV_FAIL(err, RV_E_NOMEM, "read \"%s\"", name);
        else if (rc == 0 && rv_json_equal(got, wanted)) {
            *out = yaml;
            yaml = NULL;
        } else {
            rc = 0;
        }
        rv_err_free(why);
    }
    json_object_put(got);
    rv_yaml_free(yaml);
    return rc;
}

/* *root stays NULL when the text is no JSON object. */
static int read_json(rv_str text, const char *name, struct rv_agentdoc_owner *owner, const struct rv_node **root,
                     rv_err **err)
{
    struct rv_json_opts opts = {.max_bytes = RV_AGENTDOC_MAX_BYTES, .max_depth = RV_YAML_MAX_DEPTH};
    struct rv_src src = {rv_arena_dup(owner->arena, rv_str_of(name)), 1, 1};
    json_object *v = NULL;
    rv_err *why = NULL;
    int rc = src.file ? rv_json_parse(text, &opts, &v, &why) : RV_E_NOMEM;

    rv_err_free(why);
    if (rc == RV_E_NOMEM)
        return RV_FAIL(err, RV_E_NOMEM, "read \"%s\"", name);
    if (rc < 0)
        return 0; /* YAML's messages have places */
    rc = read_by_yaml(text, name, v, &owner->yaml, err);
    if (rc == 0 && owner->yaml)
        *root = rv_yaml_root(owner->yaml);
    else if (rc == 0)
        *root = node_of(owner->arena, &src, v);
    json_object_put(v);
    return rc < 0 || *root ? rc : RV_FAIL(err, RV_E_NOMEM, "read \"%s\"", name);
}

static void check_text(const struct rv_node *node, bool is_key, rv_findings *findings)
{
    const char *fault = NULL;

    if (node->text.len > 0 && memchr(node->text.ptr, 0, node->text.len))
        fault = "has a NUL character"; /* as YAML's reader has it: JSON must not bring in more */
    else if (is_key && node->text.len > RV_AGENTDOC_MAX_KEY)
        fault = "is too long";
    if (fault)
        rv_findings_add(findings, RV_SEVERITY_ERROR, &node->src, NULL, "agent: the %s \"%.40s\" %s",
                        is_key ? "key" : "string", node->text.ptr, fault);
}

/* Bytes of all texts; faults of single ones are findings. */
static size_t measure(const struct rv_node *node, rv_findings *findings)
{
    size_t sum = node->text.len + 8;

    check_text(node, false, findings);
    for (size_t i = 0; i < node->n && sum <= RV_AGENTDOC_MAX_TREE; i++) {
        if (node->keys) {
            sum += node->keys[i]->text.len;
            check_text(node->keys[i], true, findings);
        }
        sum += measure(node->items[i], findings);
    }
    return sum;
}

int rv_agentdoc_source(rv_str text, const char *name, rv_findings *findings, struct rv_agentdoc_owner *owner,
                       const struct rv_node **root, rv_err **err)
{
    rv_str start = rv_str_trim(text);
    size_t n_before = rv_findings_n_errors(findings);
    int rc = 0;

    *root = NULL;
    if (start.len > 0 && start.ptr[0] == '{')
        rc = read_json(text, name, owner, root, err);
    if (rc == 0 && !*root) {
        rc = rv_yaml_parse(text, name, findings, &owner->yaml, err);
        if (rc == 0 && owner->yaml)
            *root = rv_yaml_root(owner->yaml);
    }
    if (rc < 0 || (!*root && rv_findings_n_errors(findings) > n_before))
        return rc;
    if (!*root || (*root)->kind != RV_NODE_MAP) {
        struct rv_src src = {name, 1, 1};
        rv_findings_add(findings, RV_SEVERITY_ERROR, *root ? &(*root)->src : &src,
                        "begin with `name:` and `description:`", "an agent document must be a map, not %s",
                        *root ? rv_node_kind_text((*root)->kind) : "empty");
        *root = NULL;
        return rv_findings_check(findings, err);
    }
    if (measure(*root, findings) > RV_AGENTDOC_MAX_TREE)
        return RV_FAIL(err, RV_E_LIMIT,
                       "the agent document \"%s\" has more than %zu bytes with its aliases written out", name,
                       RV_AGENTDOC_MAX_TREE);
    return 0;
}
