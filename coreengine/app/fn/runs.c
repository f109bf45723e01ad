/* Filters: envelopes, their goals, runs. */
#include "coreengine/app/fn/fn_internal.h"

#include <stdlib.h>
#include <string.h>

/* --- envelopes --- */

static void write_state(const rv_envelope *env, rv_jw *w)
{
    rv_buf text = RV_BUF_INIT(RV_FN_MAX_REPLY);

    rv_envelope_write_state(env, &text);
    if (text.rc < 0)
        w->out->rc = text.rc;
    else
        rv_jw_raw(w, rv_buf_str(&text));
    rv_buf_fini(&text);
}

/* An answer to an interrupt from {text?, approved?, decision?, data?}; borrows from json. */
static int read_response(json_object *json, struct rv_response *out, rv_err **err)
{
    int rc = app_fn_check_shape(
        "{text?: string, approved?: bool, decision?: string, data?: object, choice?: string, arguments?: object}", json,
        err);

    if (rc < 0)
        return RV_WRAP(err, rc, "response");
    *out = (struct rv_response){.text = app_fn_str(json, "text"),
                                .decision = app_fn_str(json, "decision"),
                                .data = rv_json_get_obj(json, "data"),
                                .choice = app_fn_str(json, "choice"),
                                .arguments = rv_json_get_obj(json, "arguments")};
    out->has_approved = rv_json_get_bool(json, "approved", &out->approved);
    return 0;
}

static int create(json_object *in, rv_jw *out, rv_err **err)
{
    struct rv_fn_source source;
    rv_envelope *env = NULL;
    struct rv_envelope_seed seed = {.raw_input = app_fn_str(in, "raw_input"),
                                    .user_id = app_fn_str(in, "user_id"),
                                    .session_id = app_fn_str(in, "session_id"),
                                    .request_id = app_fn_str(in, "request_id"),
                                    .metadata = rv_json_get_obj(in, "metadata"),
                                    .stage_order = rv_json_get_arr(in, "stage_order")};

    int rc = app_fn_source(in, &source, err);
    if (rc == 0)
        rc = rv_envelope_new(&seed, source.rand, source.now_us, &env, err);
    if (rc == 0)
        write_state(env, out);
    rv_envelope_free(env);
    return rc;
}

static int can_continue(json_object *in, rv_jw *out, rv_err **err)
{
    rv_envelope *env = NULL;
    enum rv_reason reason = RV_REASON_NONE;
    int rc = app_fn_envelope(in, NULL, &env, err);

    if (rc < 0)
        return rc;
    const struct rv_envelope_fields *f = rv_envelope_fields(env);
    const struct rv_envelope_used used = rv_envelope_used(env);
    bool can = rv_envelope_can_continue(env, true, &reason);
    if (reason == RV_REASON_NONE)
        reason = f->terminal_reason;
    rv_jw_obj(out);
    rv_jw_kv_bool(out, "can_continue", can);
    rv_jw_kv_text(out, "terminal_reason", rv_reason_text(reason));
    rv_jw_kv_int(out, "iteration", used.iterations);
    rv_jw_kv_int(out, "llm_call_count", used.llm_calls);
    rv_jw_kv_int(out, "agent_hop_count", used.hops);
    rv_jw_obj_end(out);
    rv_envelope_free(env);
    return 0;
}

static int result(json_object *in, rv_jw *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_FN_MAX_REPLY);
    rv_envelope *env = NULL;

    int rc = app_fn_envelope(in, NULL, &env, err);
    if (rc == 0) {
        rv_envelope_write_result(env, NULL, &text);
        rc = rv_buf_check(&text, "result", err);
    }
    if (rc == 0)
        rv_jw_raw(out, rv_buf_str(&text));
    rv_envelope_free(env);
    rv_buf_fini(&text);
    return rc;
}

/* A state that cannot be loaded is a result here, not a failure. */
static int validate(json_object *in, rv_jw *out, rv_err **err)
{
    rv_envelope *env = NULL;
    rv_err *fault = NULL;
    int rc = app_fn_envelope(in, NULL, &env, &fault);

    if (rc == RV_E_NOMEM) {
        rv_err_pass(err, fault);
        return rc;
    }
    const char *id = rv_json_text_or(in, "envelope_id", NULL);
    rv_jw_obj(out);
    rv_jw_kv_bool(out, "valid", rc == 0);
    rv_jw_key(out, "errors");
    rv_jw_arr(out);
    if (fault)
        rv_err_write_json(fault, out);
    rv_jw_arr_end(out);
    rv_jw_kv_text(out, "envelope_id", id);
    rv_jw_obj_end(out);
    rv_err_free(fault);
    rv_envelope_free(env);
    return 0;
}

static int final_response(json_object *in, rv_jw *out, rv_err **err)
{
    struct rv_response_place place = {app_fn_str(in, "output_key").ptr, app_fn_str(in, "field").ptr};
    rv_envelope *env = NULL;
    rv_str text;

    int rc = app_fn_envelope(rv_json_get_obj(in, "state"), in, &env, err);
    if (rc < 0)
        return rc;
    if (rv_envelope_find_final_response(env, &place, &text))
        rv_jw_str(out, text);
    else
        rv_jw_null(out);
    rv_envelope_free(env);
    return 0;
}

static int interrupt_raise(json_object *in, rv_jw *out, rv_err **err)
{
    struct rv_interrupt_spec spec = {.id = app_fn_str(in, "id"),
                                     .question = app_fn_str(in, "question"),
                                     .message = app_fn_str(in, "message"),
                                     .data = rv_json_get_obj(in, "data"),
                                     .ttl_us = -1,
                                     .replace = app_fn_flag(in, "replace")};
    struct rv_fn_source source;
    rv_envelope *env = NULL;
    int64_t ttl_ms = 0;

    int rc = rv_interrupt_kind_of(app_fn_str(in, "kind"), &spec.kind, err);
    if (rc == 0)
        rc = app_fn_source(in, &source, err);
    if (rc == 0 && rv_json_get_int(in, "ttl_ms", &ttl_ms)) {
        if (ttl_ms < 0 || ttl_ms > INT64_MAX / 2000)
            rc = RV_FAIL(err, RV_E_INVALID, "ttl_ms must be from 0 to %lld", (long long)(INT64_MAX / 2000));
        spec.ttl_us = ttl_ms * RV_US_PER_MS;
    }
    if (rc == 0)
        rc = app_fn_envelope(rv_json_get_obj(in, "state"), in, &env, err);
    if (rc == 0)
        rc = rv_envelope_raise(env, &spec, source.now_us, err);
    if (rc == 0)
        write_state(env, out);
    rv_envelope_free(env);
    return rc;
}

static int interrupt_resolve(json_object *in, rv_jw *out, rv_err **err)
{
    struct rv_fn_source source;
    struct rv_response response;
    rv_envelope *env = NULL;

    int rc = read_response(rv_json_get_obj(in, "response"), &response, err);
    if (rc == 0)
        rc = app_fn_source(in, &source, err);
    if (rc == 0)
        rc = app_fn_envelope(rv_json_get_obj(in, "state"), in, &env, err);
    if (rc == 0)
        rc = rv_envelope_check_response(env, &response, source.now_us, err);
    if (rc == 0)
        rc = rv_envelope_resolve(env, &response, source.now_us, err);
    if (rc == 0)
        write_state(env, out);
    rv_envelope_free(env);
    return rc;
}

/* --- goals --- */

static int load(json_object *in, rv_envelope **out, rv_err **err)
{
    return app_fn_envelope(rv_json_get_obj(in, "state"), in, out, err);
}

static int initialize_goals(json_object *in, rv_jw *out, rv_err **err)
{
    rv_envelope *env = NULL;
    const char **goals = NULL;
    size_t n = 0;

    int rc = load(in, &env, err);
    if (rc == 0)
        rc = app_fn_words(in, "goals", &goals, &n, err);
    if (rc == 0)
        rc = rv_envelope_init_goals(env, goals, n, err);
    if (rc == 0)
        write_state(env, out);
    free(goals);
    rv_envelope_free(env);
    return rc;
}

/* The lists of the pipeline where the input has one, else the defaults. *out borrows from *p, which the caller frees.
 */
static int reset_rules(json_object *in, struct rv_pipeline **p, struct rv_reset_rules *out, rv_err **err)
{
    json_object *config = rv_json_get_obj(in, "pipeline");
    int rc = config ? app_fn_pipeline(config, p, err) : 0;

    *out = rc == 0 && config ? rv_pipeline_reset_rules(*p) : (struct rv_reset_rules){0};
    return rc;
}

static int advance_stage(json_object *in, rv_jw *out, rv_err **err)
{
    rv_envelope *env = NULL;
    struct rv_pipeline *p = NULL;
    struct rv_reset_rules rules;
    const char **satisfied = NULL;
    size_t n = 0;
    bool more = false;

    int rc = load(in, &env, err);
    if (rc == 0)
        rc = app_fn_words(in, "satisfied", &satisfied, &n, err);
    if (rc == 0)
        rc = reset_rules(in, &p, &rules, err);
    if (rc == 0)
        rc = rv_envelope_advance_stage(env, &(const struct rv_goals_met){satisfied, n, rv_json_get_obj(in, "summary")},
                                       &rules, &more, err);
    if (rc == 0) {
        rv_jw_obj(out);
        rv_jw_kv_bool(out, "more", more);
        rv_jw_key(out, "state");
        write_state(env, out);
        rv_jw_obj_end(out);
    }
    free(satisfied);
    rv_pipeline_free(p);
    rv_envelope_free(env);
    return rc;
}

static int increment_iteration(json_object *in, rv_jw *out, rv_err **err)
{
    rv_envelope *env = NULL;
    struct rv_pipeline *p = NULL;
    struct rv_reset_rules rules;

    int rc = load(in, &env, err);
    if (rc == 0)
        rc = reset_rules(in, &p, &rules, err);
    if (rc == 0)
        rc = rv_envelope_increment_iteration(env, app_fn_str(in, "feedback"), &rules, err);
    if (rc == 0)
        write_state(env, out);
    rv_pipeline_free(p);
    rv_envelope_free(env);
    return rc;
}

static int stage_context(json_object *in, rv_jw *out, rv_err **err)
{
    rv_envelope *env = NULL;
    json_object *context = NULL;

    int rc = app_fn_envelope(in, NULL, &env, err);
    if (rc == 0)
        rc = rv_envelope_build_stage_context(env, &context, err);
    if (rc == 0)
        rv_jw_value(out, context);
    json_object_put(context);
    rv_envelope_free(env);
    return rc;
}

static int merge_of(rv_str word, enum rv_merge_mode *out, rv_err **err)
{
    rv_buf words = RV_BUF_INIT(200);
    int how = rv_merge_mode_of(word);

    if (how >= 0) {
        *out = (enum rv_merge_mode)how;
        return 0;
    }
    for (int i = 0; i < RV_N_MERGE_MODES; i++)
        rv_buf_printf(&words, "%s%s", i ? ", " : "", rv_merge_mode_text((enum rv_merge_mode)i));
    int rc = RV_FAIL(err, RV_E_INVALID, "unknown merge \"%.*s\"", RV_STR_ARG(word));
    rv_err_set_hint(err, "legal: %s", rv_buf_cstr(&words));
    rv_buf_fini(&words);
    return rc;
}

static int merge_state(json_object *in, rv_jw *out, rv_err **err)
{
    rv_envelope *env = NULL;
    enum rv_merge_mode how = RV_MERGE_REPLACE;
    json_object *state = NULL;

    int rc = merge_of(app_fn_str(in, "merge"), &how, err);
    if (rc == 0)
        rc = load(in, &env, err);
    if (rc == 0)
        rc = rv_envelope_merge_state(env, app_fn_str(in, "key"), how, app_fn_any(in, "value"), err);
    if (rc == 0)
        rc = rv_envelope_build_state(env, &state, err);
    if (rc == 0)
        rv_jw_value(out, state);
    json_object_put(state);
    rv_envelope_free(env);
    return rc;
}

/* --- runs --- */

struct filter_run {
    struct rv_pipeline *pipeline; /* owned */
    const char **providers;       /* that the pipeline names: the script plays any; owned */
    rv_yaml *script_doc;          /* owned */
    rv_script *script;            /* owned */
    rv_engine *engine;            /* owned */
    rv_exec *exec;                /* owned */
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
    rv_pipeline_check_names(r->pipeline, &(struct rv_known_names){.list = list_known, .self = r}, findings);
    int rc = rv_schema_check_pipeline(r->pipeline, findings, err);
    return rc < 0 ? rc : app_findings_error(findings, err);
}

static int read_script(struct filter_run *r, json_object *config, rv_findings *findings, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_YAML_MAX_BYTES);

    rv_json_write(config, &text);
    int rc = rv_buf_check(&text, "script", err);
    if (rc == 0)
        rc = rv_yaml_parse(rv_buf_str(&text), "script", findings, &r->script_doc, err);
    if (rc == 0 && r->script_doc && rv_yaml_root(r->script_doc))
        rc = rv_script_read_node(rv_yaml_root(r->script_doc), findings, &r->script, err);
    if (rc == 0 && r->script)
        rv_script_check(r->script, r->pipeline, findings);
    rv_buf_fini(&text);
    return rc < 0 ? rc : app_findings_error(findings, err);
}

static int prepare(struct filter_run *r, json_object *in, rv_err **err)
{
    rv_findings *findings = rv_findings_new();
    json_object *script = rv_json_get_obj(in, "script");
    int rc = findings ? 0 : RV_FAIL(err, RV_E_NOMEM, "prepare a run");

    if (rc == 0)
        rc = app_fn_pipeline(rv_json_get_obj(in, "pipeline"), &r->pipeline, err);
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
    rv_str mode = app_fn_str(in, "mode");
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
        rc = read_response(rv_json_get_obj(in, "response"), &response, err);
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

    int rc = app_fn_source(in, &source, err);
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
        write_state(rv_exec_envelope(r.exec), out);
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
    {"create",
     "{raw_input?: string, user_id?: string, session_id?: string, request_id?: string, metadata?: object, "
     "stage_order?: words, now?: string, seed?: int}",
     "state", "a fresh envelope; now and seed make it repeatable", create},
    {"can_continue", "object",
     "{can_continue: bool, terminal_reason: string, iteration, llm_call_count, agent_hop_count}",
     "whether a run may take another step: terminated, interrupt, iterations, model calls, hops", can_continue},
    {"result", "object", "result", "the result dict of a state dict", result},
    {"validate", "object", "{valid: bool, errors: list, envelope_id: string}", "whether a state dict can be loaded",
     validate},
    {"final_response", "{state: object, output_key?: word, field?: word}", "string", "what the run answers, or null",
     final_response},
    {"interrupt_raise",
     "{state: object, kind: string, id: word, question?: string, message?: string, data?: object, ttl_ms?: int, "
     "replace?: bool, now?: string}",
     "state", "ask a person", interrupt_raise},
    {"interrupt_resolve", "{state: object, response: object, now?: string}", "state",
     "answer with {text?, approved?, decision?, data?, choice?, arguments?}, if the answer fits and is in time",
     interrupt_resolve},
    {"initialize_goals", "{state: object, goals: words}", "state", "set the goals of a long task", initialize_goals},
    {"advance_stage", "{state: object, satisfied: words, summary?: object, pipeline?: object}",
     "{more: bool, state: object}",
     "tick off goals and go to the next part of the work; outputs in `stage_reset` of the pipeline are deleted",
     advance_stage},
    {"increment_iteration", "{state: object, feedback?: string, pipeline?: object}", "state",
     "count a loop-back: keep the feedback; `retry_archive` and `retry_clear` of the pipeline apply",
     increment_iteration},
    {"stage_context", "object", "object", "what prompts see of the goals", stage_context},
    {"merge_state", "{state: object, key: string, merge: string, value: any}", "object",
     "gather a value in `state`: replace, append or merge_dict", merge_state},
    {"process",
     "{pipeline: object, state?: object, script?: object, mode?: string, response?: object, now?: string, seed?: int}",
     "{status: string, result: object, state: object}",
     "run a pipeline in simulated time; the script stands in for everything outside", process},
};

const struct rv_fn_group app_fn_group_runs = {items, RV_COUNT(items)};
