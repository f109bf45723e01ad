/* The main phase of a model stage: prompt, request, reply (rules 5.5 to 5.7, W16, W27, W28). */
#include "coreengine/agent/agent_internal.h"

#include <stdlib.h>
#include <string.h>

#define REPLY_HEAD_BYTES 80 /* of a reply that an error shows */
#define FALLBACK_PROMPT  "Process the following request and answer with a JSON object.\n\nRequest: "

static const rv_template *find_prompt(const rv_visit *v)
{
    const struct rv_prompt_config *own = rv_pipeline_prompt(v->shared->pipeline, rv_str_of(v->agent->prompt_key));
    if (own)
        return own->template;
    return v->shared->catalog.prompt(v->shared->catalog.self, rv_str_of(v->agent->prompt_key));
}

/* Renders into prompt; a failure is the stage's. */
static int render(rv_visit *v, rv_buf *prompt, rv_err **err)
{
    if (!v->agent->prompt_key[0]) {
        const struct rv_envelope_fields *f = rv_envelope_fields(v->env);
        rv_buf_puts(prompt, FALLBACK_PROMPT);
        rv_buf_add(prompt, f->raw_input, f->raw_input_len);
        return rv_buf_check(prompt, "prompt", err);
    }
    const rv_template *t = find_prompt(v);
    if (!t)
        return RV_FAIL_AT(err, &v->agent->prompt_key_src, RV_E_NOT_FOUND, "unknown prompt \"%s\"",
                          v->agent->prompt_key);
    struct rv_stage_scope values;
    struct rv_scope scope = rv_stage_scope_init(&values, v->shared->pipeline, v->env, NULL, true);
    int rc = rv_template_render(t, &scope, prompt, err);
    rv_stage_scope_fini(&values);
    if (rc == 0)
        rc = rv_buf_check(prompt, "prompt", err);
    return rc < 0 ? RV_WRAP(err, rc, "render prompt \"%s\"", v->agent->prompt_key) : 0;
}

static void write_request(const rv_visit *v, const struct rv_model_config *model, rv_str prompt, rv_buf *request)
{
    const struct rv_agent_config *a = v->agent;
    rv_jw w = rv_jw_on(request);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "role", a->model_role[0] ? a->model_role : "default");
    rv_jw_kv_text(&w, "provider", model ? model->provider : NULL);
    rv_jw_kv_text(&w, "model", model ? model->model : NULL);
    rv_jw_kv_str(&w, "prompt", prompt);
    rv_jw_key(&w, "options");
    rv_jw_obj(&w);
    int64_t max_tokens = a->has_max_tokens                ? a->max_tokens
                         : model && model->has_max_tokens ? model->max_tokens
                                                          : RV_LLM_DEFAULT_MAX_TOKENS;
    rv_jw_kv_int(&w, "num_predict", max_tokens);
    rv_jw_kv_int(&w, "num_ctx", RV_LLM_CONTEXT_TOKENS);
    if (a->has_temperature || (model && model->has_temperature)) {
        rv_jw_key(&w, "temperature");
        rv_jw_double(&w, a->has_temperature ? a->temperature : model->temperature);
    }
    if (v->shared->pipeline->execution.has_llm_seed)
        rv_jw_kv_int(&w, "seed", v->shared->pipeline->execution.llm_seed);
    rv_jw_obj_end(&w);
    rv_jw_kv_text(&w, "output_mode", a->output_mode == RV_OUTPUT_TEXT ? "text" : "json");
    rv_jw_obj_end(&w);
}

int rv_visit_llm(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    const char *role = v->agent->model_role[0] ? v->agent->model_role : "default";
    const struct rv_model_config *model = rv_pipeline_model(v->shared->pipeline, rv_str_of(role));
    rv_buf prompt = RV_BUF_INIT(RV_TEMPLATE_MAX_OUTPUT);
    rv_buf request = RV_BUF_INIT(4 * RV_TEMPLATE_MAX_OUTPUT);
    rv_err *cause = NULL;
    rv_jw w;

    v->llm_path = true;
    int rc = render(v, &prompt, &cause);
    if (rc < 0) {
        rv_buf_fini(&prompt);
        return rv_visit_fail_cause(v, out, "ProcessingError", cause, err);
    }
    write_request(v, model, rv_buf_str(&prompt), &request);
    size_t prompt_bytes = prompt.len;
    rv_buf_fini(&prompt);

    struct visit_call call = {
        .kind = RV_EFFECT_CALL_LLM, .name = role, .timeout_ms = v->shared->pipeline->execution.llm_timeout_ms};
    size_t before = out->n;
    rc = rv_visit_call(v, &call, &request, out, err);
    if (rc < 0 || !v->waiting_for || out->n == before)
        return rc;
    v->llm_calls++;
    if (rv_emit_begin(v->shared, out, RV_EMIT_LLM_CALL_START, v->agent->index, v->visit_no, v->now_us, &w)) {
        rv_jw_kv_int(&w, "call_id", v->waiting_for);
        rv_jw_kv_text(&w, "role", role);
        rv_jw_kv_text(&w, "model", model ? model->model : NULL);
        rv_jw_kv_int(&w, "attempt", v->attempt);
        rv_jw_kv_int(&w, "prompt_bytes", (int64_t)prompt_bytes);
        rv_emit_end(out, &w);
    }
    return 0;
}

static void emit_result(rv_visit *v, const struct rv_event *ev, struct rv_effects *out)
{
    rv_jw w;
    if (!rv_emit_begin(v->shared, out, RV_EMIT_LLM_RESULT, v->agent->index, v->visit_no, v->now_us, &w))
        return;
    rv_jw_kv_int(&w, "call_id", ev->call_id);
    rv_jw_kv_text(&w, "status", ev->failed ? "error" : "success");
    if (ev->failed) {
        rv_jw_kv_text(&w, "error_type", ev->error_type ? ev->error_type : "LLMError");
        rv_jw_kv_str(&w, "error", ev->error);
    } else {
        rv_jw_kv_int(&w, "bytes", (int64_t)ev->reply.len);
        if (rv_utf8_valid(ev->reply, NULL))
            rv_visit_preview(&w, "preview", ev->reply);
        if (ev->input_tokens || ev->output_tokens) {
            rv_jw_kv_int(&w, "input_tokens", ev->input_tokens);
            rv_jw_kv_int(&w, "output_tokens", ev->output_tokens);
        }
    }
    rv_emit_end(out, &w);
}

static int text_output(rv_str reply, json_object **out, rv_err **err)
{
    json_object *obj = json_object_new_object();
    if (!obj)
        return RV_FAIL(err, RV_E_NOMEM, "make the output of a text stage");
    int rc = rv_json_set_str(obj, "response", reply, err);
    if (rc < 0) {
        json_object_put(obj);
        return rc;
    }
    *out = obj;
    return 0;
}

static int64_t max_retries(const rv_visit *v)
{
    int64_t cap = v->shared->pipeline->execution.max_llm_retries;
    return v->agent->max_retries < cap ? v->agent->max_retries : cap;
}

/* Whoever reads the error wants to see what the model said instead, and how often it was asked. */
static int wrap_reply(const rv_visit *v, int rc, rv_str reply, rv_err **cause)
{
    rv_str head = rv_utf8_cut(rv_str_trim(reply), REPLY_HEAD_BYTES);
    const char *dots = head.len < rv_str_trim(reply).len ? "..." : "";

    if (v->attempt > 1)
        return RV_WRAP(cause, rc, "agent \"%s\", attempt %lld, can not use the reply \"%.*s%s\"", v->agent->name,
                       (long long)v->attempt, RV_STR_ARG(head), dots);
    return RV_WRAP(cause, rc, "agent \"%s\" can not use the reply \"%.*s%s\"", v->agent->name, RV_STR_ARG(head), dots);
}

/* The attempt failed: try again if that may help, else the stage fails. Takes cause. */
static int attempt_failed(rv_visit *v, const char *type, bool retryable, rv_err *cause, struct rv_effects *out,
                          rv_err **err)
{
    if (retryable && !rv_err_is(cause, RV_E_NOMEM) &&
        rv_visit_retry(v, max_retries(v), true, rv_err_text(cause), out)) {
        rv_err_free(cause);
        return 0;
    }
    return rv_visit_fail_cause(v, out, type, cause, err);
}

int rv_visit_llm_done(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    rv_err *cause = NULL;
    int rc;

    emit_result(v, ev, out);
    if (ev->failed) {
        const char *type = ev->error_type ? ev->error_type : "LLMError";
        bool timeout = strcmp(type, "TimeoutError") == 0;
        rc = RV_FAIL(&cause, timeout ? RV_E_TIMEOUT : RV_E_PROVIDER, "agent \"%s\": generation failed: %.*s",
                     v->agent->name, RV_STR_ARG(ev->error));
        RV_IGNORE(rc, "the error carries it");
        return attempt_failed(v, type, ev->retryable || timeout, cause, out, err);
    }
    if (!rv_utf8_valid(ev->reply, NULL)) {
        rc = RV_FAIL(&cause, RV_E_PARSE, "agent \"%s\": the model reply is not valid UTF-8", v->agent->name);
    } else if (v->agent->output_mode == RV_OUTPUT_TEXT) {
        rc = text_output(ev->reply, &v->output, &cause);
    } else {
        const struct rv_str_list *need = &v->agent->required_output_fields;
        rc = rv_extract_object(ev->reply, need->items, need->n, &v->output, &cause);
        if (rc < 0)
            rc = wrap_reply(v, rc, ev->reply, &cause);
    }
    if (rc < 0)
        return attempt_failed(v, "ParseError", true, cause, out, err);
    v->phase = PHASE_CHECK;
    return 0;
}
