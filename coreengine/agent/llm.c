/* Asking a model: what stands before the prompt, the prompt, and the bounds that are looked at before the request is
 * made (rules 5.5, W27, W28). Its cost is in money.c. */
#include "config/config.h"
#include "coreengine/agent/tools_internal.h"
#include "envelope/envelope.h"

#include <stdlib.h>
#include <string.h>

#define MAX_INSTRUCTIONS (2 * RV_TEMPLATE_MAX_OUTPUT) /* bytes: the prompt, and as much again that is added to it */

/* Who asks, where no conversation says it. */
static struct rv_conversation stand_in(const rv_visit *v)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(v->env);

    return (struct rv_conversation){
        .context = {.user_id = rv_envelope_user(v->env), .tenant_id = "default", .session_id = f->session_id}};
}

static bool wants_history(const rv_visit *v, const struct rv_conversation *c)
{
    bool joins = v->agent->session.joins || v->shared->origin; /* one that is asked sees what the asking one sees */

    return c && c->history && joins && v->agent->declared.doc->context_token_budget >= 0 &&
           json_object_array_length(c->history) > 0;
}

static int write_layers(const rv_visit *v, rv_jw *w, rv_err **err)
{
    const struct rv_conversation *c = v->shared->conversation;
    const struct rv_conversation made = c ? (struct rv_conversation){0} : stand_in(v);
    rv_buf text = RV_BUF_INIT(MAX_INSTRUCTIONS);

    if (!v->agent->declared.doc) {
        if (v->planned)
            rv_jw_kv_str(w, "instructions", (rv_str){v->planned->brief, v->planned->brief_len});
        return 0;
    }
    /* What stands in a request also decides what it can cost at most. */
    bool can_look_up = v->shared->rules < RV_RULES_2 || rv_agentdoc_names_tool(v->agent->declared.doc, RV_LOOKUP_TOOL);
    rv_instructions_write(c ? c : &made, v->agent->declared.doc->name, can_look_up, v->started_us, &text);
    if (v->planned) {
        rv_buf_puts(&text, "\n\n");
        rv_buf_add(&text, v->planned->brief, v->planned->brief_len);
    }
    int rc = rv_buf_check(&text, "instructions", err);
    if (rc == 0) {
        if (v->agent->model.system[0])
            rv_jw_kv_text(w, "system", v->agent->model.system);
        rv_jw_kv_str(w, "instructions", rv_buf_str(&text));
        if (wants_history(v, c))
            rv_jw_kv_value(w, "history", c->history);
    }
    rv_buf_fini(&text);
    return rc;
}

#define FALLBACK_PROMPT "Process the following request and answer with a JSON object.\n\nRequest: "

/* --- the prompt --- */

/* Renders into prompt; a failure is the stage's. */
static int render(rv_visit *v, rv_buf *prompt, rv_err **err)
{
    if (!v->agent->model.prompt_key[0]) {
        const struct rv_envelope_fields *f = rv_envelope_fields(v->env);
        if (!v->agent->declared.doc && !v->planned) /* a declared agent and a planner are told what to do before */
            rv_buf_puts(prompt, FALLBACK_PROMPT);
        rv_buf_add(prompt, f->raw_input, f->raw_input_len);
        return rv_buf_check(prompt, "prompt", err);
    }
    return agent_prompt_render(v, &v->agent->places.prompt_key, v->agent->model.prompt_key, prompt, err);
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

/* Attachments are made after the texts, and before the prompt. */
static bool fails_at_attachments(const rv_visit *v)
{
    const struct rv_agent_model *m = &v->agent->model;

    return m->n_attachments > 0 && !v->model.attachments && (!m->system_key[0] || v->model.system) &&
           (m->n_examples == 0 || v->model.examples);
}

/* The error type of a request whose parts could not be made. */
static const char *parts_error(const rv_visit *v)
{
    const struct rv_agent_model *m = &v->agent->model;

    if (v->shared->rules < RV_RULES_4)
        return rv_error_processing;
    if (fails_at_attachments(v))
        return rv_error_expression;
    return agent_prompt_is_known(v, m->prompt_key) && agent_prompt_is_known(v, m->system_key) ? rv_error_template
                                                                                              : rv_error_processing;
}

/* --- the request --- */

static void write_options(const rv_visit *v, const struct rv_model_config *model, rv_jw *w)
{
    const struct rv_agent *a = v->agent;

    rv_jw_key(w, "options");
    rv_jw_obj(w);
    rv_jw_kv_int(w, "num_predict", visit_max_tokens(v));
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
    rv_jw_key(w, "output");
    rv_jw_obj(w);
    rv_jw_kv_text(w, "name", v->agent->name);
    rv_jw_kv_value(w, "schema", v->agent->output.schema);
    rv_jw_kv_text(w, "via", rv_output_vias.terms[v->agent->output.via].text);
    rv_jw_obj_end(w);
}

/* The messages behind the prompt, as the next request has them; *turns is the caller's, NULL: none. */
static int planned_turns(const rv_visit *v, json_object **turns, rv_err **err)
{
    size_t n = v->model.messages ? json_object_array_length(v->model.messages) : 0;
    json_object *list = NULL;
    int rc = 0;

    *turns = NULL;
    if (v->planned->turns_at >= n)
        return 0;
    list = json_object_new_array();
    if (!list)
        return RV_FAIL(err, RV_E_NOMEM, "ask a model");
    for (size_t i = v->planned->turns_at; i < n && rc == 0; i++)
        rc = rv_json_push_ref(list, json_object_array_get_idx(v->model.messages, i), err);
    if (rc < 0)
        json_object_put(list);
    else
        *turns = list;
    return rc;
}

/* What followed the prompt. *made is the caller's. */
static int find_turns(const rv_visit *v, json_object **turns, json_object **made, rv_err **err)
{
    int rc = v->planned ? planned_turns(v, made, err) : 0;

    *turns = v->planned ? *made : v->model.messages;
    return rc;
}

/* Is the reply to the request to be the output of the stage? A plan is not. */
static bool wants_output(const rv_visit *v)
{
    return v->agent->output.schema && !(v->planned && v->planned->part == PLANNED_PLAN);
}

static bool wants_text(const rv_visit *v)
{
    return v->planned ? !wants_output(v) : v->agent->output.mode == RV_OUTPUT_TEXT;
}

static int write_request(const rv_visit *v, json_object *offered, rv_buf *request, rv_err **err)
{
    const struct rv_model_config *model = visit_model(v);
    json_object *turns = NULL, *made = NULL;
    rv_jw w = rv_jw_on(request);
    int found = find_turns(v, &turns, &made, err);

    if (found < 0)
        return found;

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "role", visit_role(v));
    rv_jw_kv_text(&w, "provider", model ? model->provider : NULL);
    rv_jw_kv_text(&w, "model", model ? model->model : NULL);
    agent_parts_write_system(v, &w);
    int rc = write_layers(v, &w, err);
    agent_parts_write(v, &w);
    rv_jw_kv_str(&w, "prompt", (rv_str){v->model.prompt, v->model.prompt_len});
    if (turns)
        rv_jw_kv_value(&w, "turns", turns);
    if (offered)
        rv_jw_kv_value(&w, "tools", offered);
    if (offered && v->agent->model.tool_choice == RV_CHOICE_REQUIRED && v->model.rounds == 0)
        rv_jw_kv_text(&w, "tool_choice", "required");
    if (wants_output(v))
        write_output(v, &w);
    write_options(v, model, &w);
    rv_jw_kv_text(&w, "output_mode", wants_text(v) ? "text" : "json");
    rv_jw_obj_end(&w);
    json_object_put(made);
    return rc;
}

/* --- the call --- */

/* A model call for this request from those that the run has left; the first was taken when the visit began. */
static bool take_call(rv_visit *v, int *rc, rv_err **err)
{
    if (v->model.has_call)
        return true;
    v->bound_of = rv_bound_choose(v->shared, RV_NEEDS_CALL, &v->bound);
    if (!v->bound_of) {
        rv_visit_note_calls(v->shared, 1);
        v->model.has_call = true;
        return true;
    }
    *rc = rv_visit_fail(v, rv_error_limit, err,
                        "agent \"%s\" needs a further model call, and all that max_llm_calls (%lld) allows were made: "
                        "raise max_llm_calls, or lower the agent's max_rounds",
                        v->agent->name, (long long)v->bound_of->pipeline->max_llm_calls);
    return false;
}

/* The key that set the limit, for the error. */
static const char *request_limit_key(const struct rv_agent *a)
{
    int64_t limit = a->limits.llm.request_limit;
    bool by_cap =
        a->declared.doc && a->declared.doc->max_iterations == limit && a->declared.doc->limits.request_limit != limit;

    return by_cap ? "max_iterations" : "limits.request_limit";
}

bool agent_model_may_ask(rv_visit *v, int *rc, rv_err **err)
{
    int64_t limit = v->agent->limits.llm.request_limit;

    if (limit == 0 || v->model.requests < limit)
        return money_within_limits(v, rc, err) && take_call(v, rc, err);
    *rc = rv_visit_fail(v, rv_error_limit, err,
                        "agent \"%s\": the next request would exceed %s (%lld); raise it, or give the model less to do",
                        v->agent->name, request_limit_key(v->agent), (long long)limit);
    return false;
}

/* The key of a model call, the same for every attempt; empty: the pipeline wants none. */
static void write_key(const rv_visit *v, rv_buf *key)
{
    const struct rv_execution_config *x = &v->shared->pipeline->execution;
    const char *id = rv_envelope_fields(v->env)->envelope_id;
    uint64_t h = visit_identity(v);
    bool wanted = v->shared->rules >= RV_RULES_2 && x->enable_idempotency && x->enforce_idempotency_for_agents;

    if (wanted)
        rv_buf_printf(key, "%.*s/%016llx/%lld/m%lld", RV_STR_ARG(rv_utf8_cut(rv_str_of(id), 40)), (unsigned long long)h,
                      (long long)v->visit_no, (long long)(v->model.requests - v->model.repeats + 1 - v->attempt));
}

int agent_model_call(rv_visit *v, rv_buf *request, struct rv_effects *out, rv_err **err)
{
    const struct rv_model_config *model = visit_model(v);
    rv_buf key = RV_BUF_INIT(RV_KEY_MAX);
    struct visit_call call = {
        .kind = RV_EFFECT_CALL_LLM, .name = visit_role(v), .timeout_ms = v->shared->pipeline->execution.llm_timeout_ms};
    size_t before = out->n, request_bytes = request->len;

    write_key(v, &key);
    call.key = key.len > 0 ? rv_buf_cstr(&key) : NULL;
    int rc = rv_buf_check(&key, "idempotency key", err);
    if (rc == 0)
        rc = agent_visit_call(v, &call, request, out, err);
    else
        rv_buf_fini(request);
    rv_buf_fini(&key);
    if (rc < 0 || !v->waiting_for || out->n == before) {
        money_release(v);
        return rc;
    }
    v->llm_calls++;
    v->model.requests++;
    v->model.call_id = v->waiting_for;
    v->model.has_call = false;
    out->items[out->n - 1].worst_tokens = money_worst_tokens(v, request_bytes);
    out->items[out->n - 1].worst_micro_usd = v->model.reserved_micro_usd;
    bool plans = v->planned && v->planned->part == PLANNED_PLAN;
    out->items[out->n - 1].is_hidden = agent_visible_is_hidden(v) || v->agent->hooks.after_model.n > 0 || plans;
    out->items[out->n - 1].hides_calls = v->agent->hooks.after_model.n > 0 || v->agent->hooks.before_tool.n > 0;
    out->items[out->n - 1].ids_upto = v->model.ids_upto;
    out->items[out->n - 1].ids = v->model.ids ? json_object_get(v->model.ids) : NULL;
    rv_visit_emit(v, out, RV_EMIT_LLM_CALL_START, RV_M_INT("call_id", v->waiting_for), RV_M_TEXT("role", visit_role(v)),
                  RV_M_TEXT("model", model ? model->model : NULL),
                  RV_M_IF(model && v->shared->rules >= RV_RULES_8, RV_M_TEXT("provider", model->provider)),
                  RV_M_INT("attempt", v->attempt), RV_M_INT("prompt_bytes", (int64_t)v->model.prompt_len),
                  RV_M_IF(v->model.rounds > 0, RV_M_INT("round", v->model.rounds + 1)),
                  RV_M_IF(v->planned, RV_M_TEXT("part", plans ? "plan" : "respond")),
                  RV_M_IF(agent_visible_is_hidden(v), RV_M_BOOL("muted", true)),
                  RV_M_IF(v->model.hooks.n_left_out > 0, RV_M_INT("messages_left_out", v->model.hooks.n_left_out)));
    return 0;
}

int visit_ask_model(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    rv_buf request = RV_BUF_INIT(AGENT_MAX_REQUEST);
    json_object *offered = NULL;
    rv_err *cause = NULL;

    int rc = agent_parts_make(v, &cause);
    if (rc == 0)
        rc = ensure_prompt(v, &cause);
    if (rc < 0)
        return visit_fail_cause(v, parts_error(v), cause, err);
    if (!agent_model_may_ask(v, &rc, err))
        return rc;
    rc = v->planned ? planned_offer(v, &offered, err) : agent_tools_offered(v, &offered, err);
    if (rc == 0 && offered) /* for those who watch the reply: its calls are named as it comes */
        rc = agent_messages_collect_ids(v, err);
    if (rc < 0)
        return rc;
    if (write_request(v, offered, &request, &cause) < 0 || rv_buf_check(&request, "model request", &cause) < 0) {
        rv_buf_fini(&request);
        return visit_fail_cause(v, rv_error_processing, cause, err);
    }
    bool send = false;
    rc = agent_model_hooks_before(v, &request, &send, out, err);
    if (rc == 0 && send)
        return agent_model_send(v, &request, out, err);
    rv_buf_fini(&request);
    return rc;
}
