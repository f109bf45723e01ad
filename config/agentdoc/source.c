/* The text of a document as a tree of nodes. JSON is YAML, mostly: where libyaml would refuse it or read other values
 * than JSON has (surrogate pairs, tabs, U+0085 in a string), the values are those of JSON. Then only the file has a
 * place. */
#include <string.h>

#include "config/agentdoc/agentdoc_internal.h"

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

/* *root stays NULL when the text is not a JSON object. */
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
        *root = rv_node_of_json(v, &src, owner->arena);
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
