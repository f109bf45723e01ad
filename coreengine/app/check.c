/* Whether what was loaded can run: what was found wrong, as an error, and what a new run needs to do its work. */
#include <string.h>

#include "coreengine/app/app_internal.h"

int app_findings_error(const rv_findings *f, rv_err **err)
{
    size_t n = rv_findings_n_errors(f);

    for (size_t i = 0; i < rv_findings_n(f); i++) {
        struct rv_finding one = rv_findings_at(f, i);
        if (one.severity == RV_SEVERITY_WARNING)
            continue;
        int rc = n > 1 ? RV_FAIL(err, RV_E_INVALID, "%s (and %zu more)", one.text, n - 1)
                       : RV_FAIL(err, RV_E_INVALID, "%s", one.text);
        if (one.hint)
            rv_err_set_hint(err, "%s", one.hint);
        return rc;
    }
    return rv_findings_check(f, err);
}

int rv_app_check(struct rv_app_loaded *l, bool use_mocks, rv_err **err)
{
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;

    opts.pipeline = l->pipeline;
    opts.plugins = l->plugins;
    opts.script = l->script;
    opts.mcp = l->mcp;
    opts.use_mocks = use_mocks;
    opts.find_agent = l->agents ? rv_app_find_agent : NULL;
    return rv_exec_check(&opts, l->findings, err);
}

int app_check_all(struct rv_app_loaded *l, bool use_mocks, rv_err **err)
{
    int rc = app_findings_error(l->findings, err);

    if (rc == 0)
        rc = rv_app_check(l, use_mocks, err);
    return rc < 0 ? rc : app_findings_error(l->findings, err);
}

int app_check_model(const char *model, rv_err **err)
{
    const char *colon = model ? strchr(model, ':') : NULL;

    if (!model || strcmp(model, "scripted") == 0 ||
        (colon && colon > model && colon[1] && rv_utf8_valid(rv_str_of(model), NULL)))
        return 0;
    int rc =
        RV_FAIL(err, RV_E_INVALID, "a model is provider:model, for example openai:gpt-4.1-mini, not \"%.100s\"", model);
    rv_err_set_hint(err, "write the provider before it; `reeve inspect --providers` lists them");
    return rc;
}

int app_check_replaced(const struct rv_pipeline *p, const char *model, rv_err **err)
{
    size_t n = 0;
    struct rv_pipeline *const *inner = rv_pipeline_inner(p, &n);
    size_t n_models = p->n_models;

    for (size_t i = 0; i < n; i++)
        n_models += inner[i]->n_models;
    return !p->is_sound || n_models > 0
               ? 0
               : RV_FAIL(err, RV_E_INVALID, "model \"%s\" takes no place: no stage of the pipeline has a model", model);
}
