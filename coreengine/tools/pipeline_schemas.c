/* For the reader of a pipeline, output_schema of an agent is data; here it has to be a schema. */
#include "coreengine/tools/tools_internal.h"

static int check(const struct rv_agent *a, rv_findings *findings, rv_err **err)
{
    rv_schema *schema = NULL;
    rv_err *fault = NULL;
    int rc = rv_schema_compile(a->output.schema, "the output", &schema, &fault);

    rv_schema_free(schema);
    if (rc < 0 && rc != RV_E_NOMEM) {
        rc = RV_WRAP(&fault, rc, "agent \"%s\"", a->name);
        rv_findings_add_err(findings, RV_SEVERITY_ERROR, &a->places.output_schema, fault);
        rc = 0;
    }
    rv_err_free(fault);
    return rc < 0 ? RV_FAIL(err, rc, "check the output_schema of agent \"%s\"", a->name) : 0;
}

int rv_schema_check_pipeline(struct rv_pipeline *p, rv_findings *findings, rv_err **err)
{
    size_t n_errors = rv_findings_n_errors(findings);
    int rc = 0;

    for (size_t i = 0; i < p->n_agents && rc == 0; i++)
        if (p->agents[i].output.schema)
            rc = check(&p->agents[i], findings, err);
    p->is_sound = p->is_sound && rv_findings_n_errors(findings) == n_errors;
    return rc;
}
