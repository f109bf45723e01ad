/* Checks before a new run begins: each stage has what answers it. A stage that calls a model needs one, a stage that
 * runs the tools of a plan needs a source of tools (rule 5.1). Stages that a script or a mock answers need neither.
 * What a stage may call is not looked at here: access that allows nothing gives denied results. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/engine/engine_internal.h"

/* Left out because the environment does not name it; an error route says that the author counts on that. */
static bool is_left_out(const struct rv_pipeline *p, const char *role)
{
    size_t n;
    const struct rv_chosen_model *chosen = rv_pipeline_chosen_models(p, &n);

    for (size_t i = 0; i < n; i++)
        if (!chosen[i].provider && strcmp(chosen[i].role, role) == 0)
            return true;
    return false;
}

static int check_model(const struct rv_exec_opts *o, const struct rv_agent *a, rv_err **err)
{
    const struct rv_model_config *model = rv_pipeline_model(o->pipeline, rv_str_of(a->model.role));
    const struct rv_src *src = a->places.model_role.line > 0 ? &a->places.model_role : &a->places.name;
    bool left_out = !model && is_left_out(o->pipeline, a->model.role);
    bool needs_script = model && strcmp(model->provider, "scripted") == 0;
    int rc;

    if ((o->script && (needs_script || rv_script_has_models(o->script))) || (model && !needs_script) ||
        (left_out && a->routing.error_next[0]))
        return 0;
    if (needs_script) {
        rc = RV_FAIL_AT(err, src, RV_E_INVALID,
                        "stage \"%s\": model_role \"%s\" is played by a script, and the run has no script", a->name,
                        a->model.role);
        rv_err_hint(err, "give the script with --script FILE, or another model under models");
    } else if (left_out) {
        rc = RV_FAIL_AT(err, src, RV_E_INVALID,
                        "stage \"%s\": model_role \"%s\" is left out, because a variable that it names is not set",
                        a->name, a->model.role);
        rv_err_hint(err, "set the variable, answer for the stage with --script FILE, or give the stage an error_next");
    } else {
        rc = RV_FAIL_AT(err, src, RV_E_INVALID, "stage \"%s\": model_role \"%s\" resolves to no model", a->name,
                        a->model.role);
        rv_err_hint(err,
                    "name one, for example models: {%.200s: provider:model}, or answer for the stage with --script "
                    "FILE",
                    a->model.role[0] ? a->model.role : "default");
    }
    return rc;
}

static int check_tools(const struct rv_exec_opts *o, const struct rv_catalog *catalog, const struct rv_agent *a,
                       rv_err **err)
{
    bool any =
        catalog->tool_name ? catalog->tool_name(catalog->self, 0) != NULL : o->plugins || o->script || o->catalog;

    if (any || o->find_agent)
        return 0;
    int rc = RV_FAIL_AT(err, &a->places.name, RV_E_INVALID,
                        "stage \"%s\": has_tools is on, and the run has no tools at all", a->name);
    rv_err_hint(err, "name a capability that brings tools under capabilities, or play them with --script FILE");
    return rc;
}

int rv_exec_check_stage(const struct rv_exec_opts *o, const struct rv_catalog *catalog, const bool *scripted, int stage,
                        rv_err **err)
{
    const struct rv_visit_shared shared = {
        .pipeline = o->pipeline, .scripted_stages = scripted, .use_mocks = o->use_mocks || o->pipeline->mock};
    const struct rv_agent *a = &o->pipeline->agents[stage];

    if (rv_stage_is_mocked(&shared, stage))
        return 0;
    if (a->has_llm)
        return check_model(o, a, err);
    return a->has_tools ? check_tools(o, catalog, a, err) : 0;
}

int rv_exec_check(const struct rv_exec_opts *o, rv_findings *findings, rv_err **err)
{
    const struct rv_pipeline *p = o->pipeline;
    struct run_tools tools;
    bool *scripted = calloc(p->n_agents + 1, sizeof *scripted);

    if (!scripted)
        return RV_FAIL(err, RV_E_NOMEM, "check a pipeline");
    rv_run_tools_init(&tools, o, NULL);
    const struct rv_catalog catalog = rv_tool_set_catalog(&tools.set);
    if (o->script)
        rv_script_stages(o->script, p, scripted);
    for (size_t i = 0; i < p->n_agents; i++) {
        const struct rv_agent *a = &p->agents[i];
        rv_err *fault = NULL;
        int rc = rv_exec_check_stage(o, &catalog, scripted, (int)i, &fault);
        if (rc < 0)
            rv_findings_add_err(findings, RV_SEVERITY_ERROR, &a->places.name, fault);
        rv_err_free(fault);
    }
    free(scripted);
    return rv_findings_check(findings, err);
}
