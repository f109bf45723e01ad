/* Asking a model: the prompt, the request and the bounds that are looked at before it is made (rules 5.5, W27, W28). */
#include "coreengine/agent/agent_internal.h"

#include <stdlib.h>
#include <string.h>

#define FALLBACK_PROMPT "Process the following request and answer with a JSON object.\n\nRequest: "
#define MAX_REQUEST     (16 * RV_TEMPLATE_MAX_OUTPUT) /* the prompt and what was said before and after it */

/* --- the prompt --- */

static const rv_template *find_prompt(const rv_visit *v)
{
    const struct rv_prompt_config *own = rv_pipeline_prompt(v->shared->pipeline, rv_str_of(v->agent->model.prompt_key));
    if (own)
        return own->template;
    return v->shared->catalog.prompt(v->shared->catalog.self, rv_str_of(v->agent->model.prompt_key));
}

/* Renders into prompt; a failure is the stage's. */
static int render(rv_visit *v, rv_buf *prompt, rv_err **err)
{
    if (!v->agent->model.prompt_key[0]) {
        const struct rv_envelope_fields *f = rv_envelope_fields(v->env);
        if (!v->agent->declared.doc) /* a declared agent is told what it is to do before */
            rv_buf_puts(prompt, FALLBACK_PROMPT);
        rv_buf_add(prompt, f->raw_input, f->raw_input_len);
        return rv_buf_check(prompt, "prompt", err);
    }
    const rv_template *t = find_prompt(v);
    if (!t)
        return RV_FAIL_AT(err, &v->agent->places.prompt_key, RV_E_NOT_FOUND, "unknown prompt \"%s\"",
                          v->agent->model.prompt_key);
    struct rv_stage_scope values;
    struct rv_scope scope = rv_stage_scope_init(&values, v->shared->pipeline, v->env, NULL, true);
    int rc = rv_template_render(t, &scope, prompt, err);
    rv_stage_scope_fini(&values);
    if (rc == 0)
        rc = rv_buf_check(prompt, "prompt", err);
    return rc < 0 ? RV_WRAP(err, rc, "render prompt \"%s\"", v->agent->model.prompt_key) : 0;
}

/* Once a visit: what follows in `turns` answers to this very text. */
static int ensure_prompt(rv_visit *v, rv_err **err)
{
    rv_buf prompt = RV_BUF_INIT(RV_TEMPLATE_MAX_OUTPUT);

    if (v->model.prompt)
        return 0;
    int rc = render(v, &prompt, err);
    if (rc == 0 && prompt.len == 0)
        v->model.prompt = rv_str_dup(RV_STR_LIT(""));
    else if (rc == 0)
        v->model.prompt = rv_buf_steal(&prompt, &v->model.prompt_len);
    rv_buf_fini(&prompt);
    if (rc == 0 && !v->model.prompt)
        rc = RV_FAIL(err, RV_E_NOMEM, "render a prompt");
    return rc;
}

/* --- the request --- */

static void write_options(const rv_visit *v, const struct rv_model_config *model, rv_jw *w)
{
    const struct rv_agent *a = v->agent;

    rv_jw_key(w, "options");
    rv_jw_obj(w);
    rv_jw_kv_int(w, "num_predict", rv_visit_max_tokens(v));
    rv_jw_kv_int(w, "num_ctx", RV_LLM_CONTEXT_TOKENS);
    if (!a->model.no_temperature && (a->model.has_temperature || (model && model->has_temperature))) {
        rv_jw_key(w, "temperature");
        rv_jw_double(w, a->model.has_temperature ? a->model.temperature : model->temperature);
    }
    if (v->shared->pipeline->execution.has_llm_seed)
        rv_jw_kv_int(w, "seed", v->shared->pipeline->execution.llm_seed);
    rv_jw_obj_end(w);
}

static void write_output(const rv_visit *v, rv_jw *w)
{
    static const char *const vias[] = {[RV_OUTPUT_VIA_AUTO] = "auto",
                                       [RV_OUTPUT_VIA_NATIVE] = "native",
                                       [RV_OUTPUT_VIA_TOOL] = "tool",
                                       [RV_OUTPUT_VIA_PROMPT] = "prompt"};

    rv_jw_key(w, "output");
    rv_jw_obj(w);
    rv_jw_kv_text(w, "name", v->agent->name);
    rv_jw_kv_value(w, "schema", v->agent->output.schema);
    rv_jw_kv_text(w, "via", vias[v->agent->output.via]);
    rv_jw_obj_end(w);
}

static int write_request(const rv_visit *v, json_object *offered, rv_buf *request, rv_err **err)
{
    const struct rv_model_config *model = rv_visit_model(v);
    rv_jw w = rv_jw_on(request);

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "role", rv_visit_role(v));
    rv_jw_kv_text(&w, "provider", model ? model->provider : NULL);
    rv_jw_kv_text(&w, "model", model ? model->model : NULL);
    int rc = rv_visit_write_layers(v, &w, err);
    rv_jw_kv_str(&w, "prompt", (rv_str){v->model.prompt, v->model.prompt_len});
    if (v->model.messages)
        rv_jw_kv_value(&w, "turns", v->model.messages);
    if (offered)
        rv_jw_kv_value(&w, "tools", offered);
    if (v->agent->output.schema)
        write_output(v, &w);
    write_options(v, model, &w);
    rv_jw_kv_text(&w, "output_mode", v->agent->output.mode == RV_OUTPUT_TEXT ? "text" : "json");
    rv_jw_obj_end(&w);
    return rc;
}

/* --- the call --- */

/* A model call for this request from those that the run has left; the first was taken when the visit began. */
static bool take_call(rv_visit *v, int *rc, rv_err **err)
{
    if (v->model.has_call)
        return true;
    if (rv_visit_root(v->shared)->llm_left > 0) {
        rv_visit_root(v->shared)->llm_left--;
        v->model.has_call = true;
        return true;
    }
    v->bound = RV_REASON_MAX_LLM_CALLS;
    *rc = rv_visit_fail(v, "LimitError", err,
                        "agent \"%s\" needs a further model call, and all that max_llm_calls (%lld) allows were made: "
                        "raise max_llm_calls, or lower the agent's max_rounds",
                        v->agent->name, (long long)rv_visit_root(v->shared)->pipeline->max_llm_calls);
    return false;
}

/* The key that said so, for whom it is to be raised. */
static const char *request_limit_key(const struct rv_agent *a)
{
    int64_t limit = a->limits.llm.request_limit;
    bool by_cap =
        a->declared.doc && a->declared.doc->max_iterations == limit && a->declared.doc->limits.request_limit != limit;

    return by_cap ? "max_iterations" : "limits.request_limit";
}

static bool request_allowed(rv_visit *v, int *rc, rv_err **err)
{
    int64_t limit = v->agent->limits.llm.request_limit;

    if (limit == 0 || v->model.requests < limit)
        return rv_money_within_limits(v, rc, err) && take_call(v, rc, err);
    *rc = rv_visit_fail(v, "LimitError", err,
                        "agent \"%s\": the next request would exceed %s (%lld); raise it, or give the model less to do",
                        v->agent->name, request_limit_key(v->agent), (long long)limit);
    return false;
}

/* The key of a model call, the same for every attempt; empty: the pipeline wants none. */
static void write_key(const rv_visit *v, rv_buf *key)
{
    const struct rv_execution_config *x = &v->shared->pipeline->execution;
    const char *id = rv_envelope_fields(v->env)->envelope_id;
    uint64_t h = rv_visit_hash(rv_visit_hash(RV_VISIT_HASH_INIT, id), v->agent->name);
    bool wanted = v->shared->rules >= RV_RULES_2 && x->enable_idempotency && x->enforce_idempotency_for_agents;

    if (wanted)
        rv_buf_printf(key, "%.*s/%016llx/%lld/m%lld", RV_STR_ARG(rv_utf8_cut(rv_str_of(id), 40)), (unsigned long long)h,
                      (long long)v->visit_no, (long long)(v->model.requests + 1 - v->attempt));
}

static int make_call(rv_visit *v, rv_buf *request, struct rv_effects *out, rv_err **err)
{
    const struct rv_model_config *model = rv_visit_model(v);
    rv_buf key = RV_BUF_INIT(RV_KEY_MAX);
    struct visit_call call = {.kind = RV_EFFECT_CALL_LLM,
                              .name = rv_visit_role(v),
                              .timeout_ms = v->shared->pipeline->execution.llm_timeout_ms};
    size_t before = out->n;
    rv_jw w;

    write_key(v, &key);
    call.key = key.len > 0 ? rv_buf_cstr(&key) : NULL;
    int rc = rv_buf_check(&key, "idempotency key", err);
    if (rc == 0)
        rc = rv_visit_call(v, &call, request, out, err);
    else
        rv_buf_fini(request);
    rv_buf_fini(&key);
    if (rc < 0 || !v->waiting_for || out->n == before) {
        rv_money_release(v);
        return rc;
    }
    v->llm_calls++;
    v->model.requests++;
    v->model.call_id = v->waiting_for;
    v->model.has_call = false;
    out->items[out->n - 1].is_muted = rv_visible_is_muted(v);
    out->items[out->n - 1].ids_upto = rv_messages_ids_upto(v);
    out->items[out->n - 1].ids = v->model.ids ? json_object_get(v->model.ids) : NULL;
    if (rv_emit_begin(v->shared, out, RV_EMIT_LLM_CALL_START, v->agent->index, v->visit_no, v->now_us, &w)) {
        rv_jw_kv_int(&w, "call_id", v->waiting_for);
        rv_jw_kv_text(&w, "role", rv_visit_role(v));
        rv_jw_kv_text(&w, "model", model ? model->model : NULL);
        rv_jw_kv_int(&w, "attempt", v->attempt);
        rv_jw_kv_int(&w, "prompt_bytes", (int64_t)v->model.prompt_len);
        if (v->model.rounds > 0)
            rv_jw_kv_int(&w, "round", v->model.rounds + 1);
        if (rv_visible_is_muted(v))
            rv_jw_kv_bool(&w, "muted", true);
        rv_emit_end(out, &w);
    }
    return 0;
}

static int ask(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    rv_buf request = RV_BUF_INIT(MAX_REQUEST);
    json_object *offered = NULL;
    rv_err *cause = NULL;

    int rc = ensure_prompt(v, &cause);
    if (rc < 0)
        return rv_visit_fail_cause(v, "ProcessingError", cause, err);
    if (!request_allowed(v, &rc, err))
        return rc;
    rc = rv_messages_offered(v, &offered, err);
    if (rc == 0 && offered) /* for those who watch the reply: its calls are named as it comes */
        rc = rv_messages_collect_ids(v, err);
    if (rc < 0)
        return rc;
    if (write_request(v, offered, &request, &cause) < 0 || rv_buf_check(&request, "model request", &cause) < 0) {
        rv_buf_fini(&request);
        return rv_visit_fail_cause(v, "ProcessingError", cause, err);
    }
    if (!rv_money_reserve(v, request.len, &rc, err)) {
        rv_buf_fini(&request);
        return rc;
    }
    return make_call(v, &request, out, err);
}

int rv_visit_llm(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    v->llm_path = true;
    return v->model.acting ? rv_visit_tools(v, out, err) : ask(v, out, err);
}
