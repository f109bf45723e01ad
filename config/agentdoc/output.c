/* The schema of a structured output: only the document's description of it, nothing about the agent. */
#include <string.h>

#include "config/agentdoc/agentdoc_internal.h"

/* Names in `required` that are properties of the output itself; a nested one only marks a line of the prompt. */
static int add_required(const struct rv_agentdoc *d, json_object *out, rv_err **err)
{
    size_t n = d->required ? json_object_array_length(d->required) : 0;
    json_object *list = NULL;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i++) {
        json_object *name = json_object_array_get_idx(d->required, i);
        if (!json_object_object_get_ex(d->properties, json_object_get_string(name), NULL))
            continue;
        if (!list) {
            list = json_object_new_array();
            rc = list ? rv_json_set_ref(out, "required", list, err) : RV_FAIL(err, RV_E_NOMEM, "build a schema");
        }
        if (rc == 0)
            rc = rv_json_push_ref(list, name, err);
    }
    json_object_put(list);
    return rc;
}

/* Made of parts of the document; the copy is made at the end. */
static int fill(const struct rv_agentdoc *d, json_object *out, rv_err **err)
{
    json_object *additional = NULL;
    int rc = rv_json_set_text(out, "type", "object", err);

    if (rc == 0)
        rc = rv_json_set_ref(out, "properties", d->properties, err);
    if (rc == 0)
        rc = add_required(d, out, err);
    if (rc == 0 && d->defs)
        rc = rv_json_set_ref(out, "$defs", d->defs, err);
    if (rc == 0 && json_object_object_get_ex(d->flat, "additionalProperties", &additional))
        rc = rv_json_set_ref(out, "additionalProperties", additional, err);
    else if (rc == 0)
        rc = rv_json_set_bool(out, "additionalProperties", false, err);
    return rc;
}

int rv_agentdoc_output_schema(const struct rv_agentdoc *d, int structured, json_object **out, rv_err **err)
{
    json_object *shared;
    int rc;

    *out = NULL;
    if (!rv_agentdoc_is_structured(d, structured))
        return 0;
    shared = json_object_new_object();
    rc = shared ? fill(d, shared, err) : RV_FAIL(err, RV_E_NOMEM, "build a schema");
    if (rc == 0)
        rc = rv_json_dup(shared, out, err);
    json_object_put(shared);
    return rc < 0 ? RV_WRAP(err, rc, "the output schema of agent \"%s\"", d->name) : 0;
}
