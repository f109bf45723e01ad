/* What the engine needs of a document beyond what makes it one: that it can check the output it asks for. */
#include "coreengine/app/agents/agents_internal.h"

int rv_agents_check(const struct rv_agentdoc *doc, rv_findings *findings, rv_err **err)
{
    json_object *json = NULL;
    rv_schema *schema = NULL;
    rv_err *fault = NULL;

    int rc = rv_agentdoc_output_schema(doc, RV_UNSET, &json, err);
    if (rc < 0 || !json)
        return rc;
    rc = rv_schema_compile(json, "the output", &schema, &fault);
    rv_schema_free(schema);
    json_object_put(json);
    if (rc < 0 && !rv_err_is(fault, RV_E_NOMEM)) {
        rc = RV_WRAP(&fault, rc, "agent \"%s\"", doc->name);
        rv_findings_add_err(findings, RV_SEVERITY_ERROR, &doc->properties_src, fault);
        rc = 0;
    } else if (rc < 0) {
        rc = RV_FAIL(err, RV_E_NOMEM, "check agent \"%s\"", doc->name);
    }
    rv_err_free(fault);
    return rc;
}
