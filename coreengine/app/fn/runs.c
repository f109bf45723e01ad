/* A whole run as a filter: pipeline, state and script in, state out. Nothing outside is touched: no capability is
 * opened, time is simulated, whatever the script does not answer fails. */
#include "coreengine/app/fn/fn_internal.h"

#include <stdlib.h>

struct filter_run {
    struct rv_pipeline *pipeline;
    const char **providers; /* that the pipeline names: the script plays any; owned */
    rv_yaml *script_doc;
    rv_script *script;
    rv_engine *engine;
    rv_exec *exec;
};

/* Only what the script plays is known: its tools, and any provider. */
static const char *const *list_known(void *self, enum rv_name_kind kind, size_t *n)
{
    struct filter_run *r = self;

    *n = 0;
    if (kind == RV_NAME_PROVIDER && r->script) {
        *n = r->pipeline->n_models;
        return r->providers;
    }
    return kind == RV_NAME_TOOL && r->script ? rv_script_tool_names(r->script, n) : NULL;
}

static int check_names(struct filter_run *r, rv_findings *findings, rv_err **err)
{
    r->providers = calloc(r->pipeline->n_models + 1, sizeof *r->providers);
    if (!r->providers)
        return RV_FAIL(err, RV_E_NOMEM, "check names");
    for (size_t i = 0; i < r->pipeline->n_models; i++)
        r->providers[i] = r->pipeline->models[i].provider;
    rv_pipeline_check_names(r->pipeline, &(struct rv_known_names){list_known, r}, findings);
    int rc = rv_schema_check_pipeline(r->pipeline, findings, err);
    return rc < 0 ? rc : rv_app_findings_error(findings, err);
}

static int read_script(struct filter_run *r, json_object *config, rv_findings *findings, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_YAML_MAX_BYTES);

    rv_json_write(config, &text);
    int rc = rv_buf_check(&text, "script", err);
    if (rc == 0)
        rc = rv_yaml_parse(rv_buf_str(&text), "script", findings, &r->script_doc, err);
    if (rc == 0 && r->script_doc && rv_yaml_root(r->script_doc))
        rc = rv_script_from_node(rv_yaml_root(r->script_doc), findings, &r->script, err);
    if (rc == 0 && r->script)
        rv_script_check(r->script, r->pipeline, findings);
    rv_buf_fini(&text);
    return rc < 0 ? rc : rv_app_findings_error(findings, err);
}

static int prepare(struct filter_run *r, json_object *in, rv_err **err)
{
    rv_findings *findings = rv_findings_new();
    json_object *script = rv_json_get_obj(in, "script");
    int rc = findings ? 0 : RV_FAIL(err, RV_E_NOMEM, "prepare a run");

    if (rc == 0)
        rc = rv_fn_pipeline(rv_json_get_obj(in, "pipeline"), &r->pipeline, err);
    if (rc == 0 && script)
        rc = read_script(r, script, findings, err);
    if (rc == 0)
        rc = check_names(r, findings, err);
    rv_findings_free(findings);
    return rc;
}

static int run(struct filter_run *r, json_object *in, const struct rv_fn_source *source, rv_err **err)
{
    struct rv_engine_opts opts = {.workers = 1, .virtual_time = true, .virtual_start_us = source->now_us};
    struct rv_exec_opts x = RV_EXEC_OPTS_INIT;
    rv_str mode = rv_fn_str(in, "mode");
    struct rv_response response;
    bool answers = rv_json_get_obj(in, "response") != NULL;
    enum rv_run_mode which = RV_MODE_SEQUENTIAL;
    json_object *none = json_object_new_object(), *state = rv_json_get_obj(in, "state");
    rv_envelope *env = NULL;

    x.pipeline = r->pipeline;
    x.script = r->script;
    x.answer_from_script = r->script != NULL;
    int rc = none ? 0 : RV_FAIL(err, RV_E_NOMEM, "run");
    if (rc == 0 && mode.ptr && (rc = rv_run_mode_of(mode, &which, err)) == 0)
        x.mode = (int)which;
    if (rc == 0 && answers)
        rc = rv_fn_response(rv_json_get_obj(in, "response"), &response, err);
    if (rc == 0)
        rc = rv_engine_new(&opts, &r->engine, err);
    if (rc == 0)
        rc = rv_envelope_load(state ? state : none, source->rand, source->now_us, &env, err);
    if (rc == 0)
        rc = rv_engine_start(r->engine, &x, env, answers ? &response : NULL, &r->exec, err);
    if (rc == 0)
        rc = rv_engine_wait(r->engine, r->exec, err);
    json_object_put(none);
    return rc;
}

static int process(json_object *in, rv_jw *out, rv_err **err)
{
    struct filter_run r = {0};
    struct rv_fn_source source;
    rv_buf result = RV_BUF_INIT(RV_FN_MAX_REPLY);

    int rc = rv_fn_source(in, &source, err);
    if (rc == 0)
        rc = prepare(&r, in, err);
    if (rc == 0)
        rc = run(&r, in, &source, err);
    if (rc == 0) {
        rv_envelope_write_result(rv_exec_envelope(r.exec), &r.pipeline->response, &result);
        rc = rv_buf_check(&result, "result", err);
    }
    if (rc == 0) {
        rv_jw_obj(out);
        rv_jw_kv_text(out, "status", rv_run_status_text(rv_exec_status(r.exec)));
        rv_jw_key(out, "result");
        rv_jw_raw(out, rv_buf_str(&result));
        rv_jw_key(out, "state");
        rv_fn_write_state(rv_exec_envelope(r.exec), out);
        rv_jw_obj_end(out);
    }
    rv_exec_free(r.exec);
    rv_engine_free(r.engine);
    rv_script_free(r.script);
    rv_yaml_free(r.script_doc);
    rv_pipeline_free(r.pipeline);
    free(r.providers);
    rv_buf_fini(&result);
    return rc;
}

static const struct rv_fn items[] = {
    {"process",
     "{pipeline: object, state?: object, script?: object, mode?: string, response?: object, now?: string, seed?: int}",
     "{status: string, result: object, state: object}",
     "run a pipeline in simulated time; the script stands in for everything outside", process},
};
const struct rv_fn_group rv_fn_group_runs = {items, RV_COUNT(items)};
