/* The flat document as a tree. Scalars are written from what was read, so that "0.5" is 0.5 in it; schemas and further
 * keys stand as they were given. */
#include <json-c/linkhash.h>
#include <string.h>

#include "config/agentdoc/agentdoc_internal.h"

/* What the table writes of the keys first..last, as members of out. */
static int add_written(const struct rv_agentdoc *d, const struct rv_agentdoc_key *row, json_object *out, rv_err **err)
{
    const char *base = (const char *)d;
    rv_buf text = RV_BUF_INIT(2 * RV_AGENTDOC_MAX_TREE);
    rv_jw w = rv_jw_on(&text);
    json_object *member = NULL;
    const char *s = NULL;
    bool b;
    int64_t i;
    int rc;

    rv_jw_obj(&w);
    switch (row->kind) {
    case RV_AGENTDOC_TEXT:
        memcpy(&s, base + row->offset, sizeof s);
        if (s)
            rv_jw_kv_text(&w, row->name, s);
        break;
    case RV_AGENTDOC_BOOL:
        memcpy(&b, base + row->offset, sizeof b);
        rv_jw_kv_bool(&w, row->name, b);
        break;
    case RV_AGENTDOC_INT:
        memcpy(&i, base + row->offset, sizeof i);
        if (i != row->unset)
            rv_jw_kv_int(&w, row->name, i);
        break;
    case RV_AGENTDOC_CUSTOM:
        if (row->write)
            row->write(d, &w);
        break;
    }
    rv_jw_obj_end(&w);
    rc = rv_buf_check(&text, "the agent document", err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&text), NULL, &member, err);
    if (rc == 0) {
        json_object_object_foreach (member, key, value) {
            rc = rv_json_set_ref(out, key, value, err);
        }
    }
    json_object_put(member);
    rv_buf_fini(&text);
    return rc;
}

static int set_node(json_object *out, const char *key, const struct rv_node *node, json_object *otherwise, rv_err **err)
{
    json_object *v = NULL;
    int rc;

    if (!node && !otherwise)
        return 0;
    if (!node)
        return rv_json_set_ref(out, key, otherwise, err);
    rc = rv_node_to_json(node, &v, err);
    if (rc == 0)
        rc = rv_json_set_ref(out, key, v, err);
    json_object_put(v);
    return rc;
}

/* A row whose value is a tree: it has no writer of its own. */
static int add_tree(struct rv_agentdoc_reading *r, const char *name, json_object *out, rv_err **err)
{
    const struct rv_node *map = NULL;
    json_object *empty = NULL;
    int rc;

    if (strcmp(name, "properties") == 0) {
        empty = json_object_new_object();
        rc = empty ? set_node(out, name, r->properties, empty, err) : RV_FAIL(err, RV_E_NOMEM, "write \"%s\"", name);
    } else if (strcmp(name, "required") == 0) {
        empty = json_object_new_array();
        rc = empty ? set_node(out, name, r->required, empty, err) : RV_FAIL(err, RV_E_NOMEM, "write \"%s\"", name);
    } else if (strcmp(name, "$defs") == 0) {
        rc = set_node(out, name, r->defs, NULL, err);
    } else if (strcmp(name, "additionalProperties") == 0) {
        rc = set_node(out, name, r->additional, NULL, err);
    } else if (strcmp(name, "chained_map") == 0) {
        for (size_t i = 0; i < r->n_fields; i++)
            if (r->fields[i].row && strcmp(r->fields[i].row->name, name) == 0 &&
                r->fields[i].value->kind != RV_NODE_NULL)
                map = r->fields[i].value;
        rc = set_node(out, name, map, NULL, err);
    } else {
        rc = 0; /* another spelling of a key that was written under its own name */
    }
    json_object_put(empty);
    return rc;
}

static int fill(struct rv_agentdoc_reading *r, json_object *out, rv_err **err)
{
    size_t n;
    const struct rv_agentdoc_key *rows = rv_agentdoc_keys(&n);
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (rows[i].kind == RV_AGENTDOC_CUSTOM && !rows[i].write)
            rc = add_tree(r, rows[i].name, out, err);
        else
            rc = add_written(r->doc, &rows[i], out, err);
    }
    for (size_t i = 0; rc == 0 && i < r->n_fields; i++)
        if (!r->fields[i].row)
            rc = set_node(out, r->fields[i].key->text.ptr, r->fields[i].value, NULL, err);
    return rc;
}

int rv_agentdoc_flatten(struct rv_agentdoc_reading *r, rv_err **err)
{
    struct rv_agentdoc *d = r->doc;
    rv_err *why = NULL;
    int rc;

    d->flat = json_object_new_object();
    if (!d->flat)
        return RV_FAIL(err, RV_E_NOMEM, "write the agent document");
    rc = fill(r, d->flat, &why);
    if (rc == RV_E_INVALID) { /* .inf and integers beyond 64 bits, which JSON does not have */
        rv_findings_add_err(r->keys.findings, RV_SEVERITY_ERROR, &d->src, why);
        rv_err_free(why);
        return 0;
    }
    if (rc < 0) {
        rv_err_free(why);
        return RV_FAIL(err, rc, "write the agent document \"%s\"", d->name);
    }
    d->properties = rv_json_get_obj(d->flat, "properties");
    d->required = rv_json_get_arr(d->flat, "required");
    d->defs = rv_json_get_obj(d->flat, "$defs");
    d->chained_map = rv_json_get_obj(d->flat, "chained_map");
    if (d->properties && json_object_object_length(d->properties) == 0)
        d->properties = NULL;
    if (d->required && json_object_array_length(d->required) == 0)
        d->required = NULL;
    return 0;
}
