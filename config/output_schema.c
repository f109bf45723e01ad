/* output_schema: a map, or a file next to the pipeline. What it may say is checked where schemas are known. */
#include <stdio.h>

#include "config/config_internal.h"

static void to_json(struct rv_loader *l, const struct rv_node *node, json_object **out)
{
    rv_err *err = NULL;
    int rc = rv_node_to_json(node, out, &err);

    if (rc == RV_E_NOMEM)
        l->rc = rc;
    else if (rc < 0)
        rv_findings_add_err(l->findings, RV_SEVERITY_ERROR, &node->src, err);
    rv_err_free(err);
}

/* The file is JSON, or YAML, which JSON is a part of. */
static void read_text(struct rv_key_reader *r, const char *path, rv_str text, json_object **out)
{
    struct rv_loader *l = rv_loader_of(r);
    const struct rv_node *root;
    rv_yaml *doc = NULL;

    if (rv_yaml_parse(text, path, l->findings, &doc, NULL) < 0)
        l->rc = RV_E_NOMEM;
    root = doc ? rv_yaml_root(doc) : NULL;
    if (root && root->kind == RV_NODE_MAP)
        to_json(l, root, out);
    else if (doc)
        rv_keys_finding(r, RV_SEVERITY_ERROR, &(struct rv_src){path, 1, 1}, NULL, "output_schema must be a map, not %s",
                        root ? rv_node_kind_text(root->kind) : "an empty file");
    rv_yaml_free(doc);
}

void rv_read_output_schema(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_loader *l = rv_loader_of(r);
    const struct rv_node *file = rv_node_get(node, "file");
    rv_str text = {NULL, 0};
    const char *path;
    char what[RV_MAX_STAGE_NAME + 48];

    if (node->kind != RV_NODE_MAP) {
        rv_keys_wrong_type(r, node, "output_schema", "a map");
    } else if (node->n == 1 && file) { /* no keyword of JSON Schema is called that */
        if (file->kind != RV_NODE_STR) {
            rv_keys_wrong_type(r, file, "output_schema.file", "a string");
            return;
        }
        snprintf(what, sizeof what, "agent \"%.*s\": output_schema", RV_MAX_STAGE_NAME,
                 r->owner_name ? r->owner_name : "");
        path = rv_loader_path(l, file->text);
        if (path && rv_loader_text_file(l, what, path, &file->src, &text))
            read_text(r, path, text, target);
    } else {
        to_json(l, node, target);
    }
}
