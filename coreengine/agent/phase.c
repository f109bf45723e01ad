/* What all phases of a visit use: what the visit does and which model it asks, asking for a call, trying again, a
 * question for a person, and failing. */
#include "coreengine/agent/tools_internal.h"
#include "envelope/envelope.h"

#include <stdlib.h>
#include <string.h>

/* Does no visit of that stage do any work, because it is the arbiter and there is to be none? */
static bool arbiter_is_off(const struct rv_visit_shared *shared, const struct rv_agent *agent)
{
    return shared->rules >= RV_RULES_2 && !shared->pipeline->execution.enable_arbiter &&
           strcmp(agent->output.key, RV_ARBITER) == 0;
}

static bool is_mocked(const struct rv_visit_shared *shared, const struct rv_agent *agent)
{
    if (shared->scripted_stages && shared->scripted_stages[agent->index])
        return true;
    return agent->hooks.mock_handler[0] && (agent->hooks.mock || shared->use_mocks);
}

bool rv_stage_is_mocked(const struct rv_visit_shared *shared, int stage)
{
    return is_mocked(shared, &shared->pipeline->agents[stage]);
}

bool rv_element_calls_llm(const struct rv_visit_shared *shared, int stage)
{
    const struct rv_agent *agent = &shared->pipeline->agents[stage];
    return agent->has_llm && !is_mocked(shared, agent) && !arbiter_is_off(shared, agent);
}

bool rv_stage_calls_llm(const struct rv_visit_shared *shared, int stage)
{
    return !shared->pipeline->agents[stage].each.list && rv_element_calls_llm(shared, stage);
}

const char *visit_role(const rv_visit *v)
{
    return v->agent->model.role[0] ? v->agent->model.role : "default";
}

const struct rv_model_config *visit_model(const rv_visit *v)
{
    return v->agent->has_llm ? v->asked : rv_pipeline_find_model(v->shared->pipeline, rv_str_of(visit_role(v)));
}

int64_t visit_max_tokens(const rv_visit *v)
{
    if (v->agent->model.has_max_tokens)
        return v->agent->model.max_tokens;
    const struct rv_model_config *model = visit_model(v);
    return model && model->has_max_tokens ? model->max_tokens : RV_LLM_DEFAULT_MAX_TOKENS;
}

/* Where only the type is known. Types that capabilities made up are failures of a tool, hook or mock. */
static enum rv_failure failure_of_stage(const char *type)
{
    static const struct {
        const char *type;
        enum rv_failure code;
    } codes[] = {
        {rv_error_llm, RV_FAILURE_MODEL_FAILED},
        {rv_error_limit, RV_FAILURE_LIMIT_REACHED},
        {rv_error_parse, RV_FAILURE_OUTPUT_UNREADABLE},
        {rv_error_validation, RV_FAILURE_OUTPUT_INVALID},
        {rv_error_hook, RV_FAILURE_HOOK_FAILED},
        {rv_error_policy, RV_FAILURE_POLICY_FAILED},
        {rv_error_timeout, RV_FAILURE_STAGE_TIMED_OUT},
        {rv_error_cancelled, RV_FAILURE_CANCELLED},
        {rv_error_tool, RV_FAILURE_TOOL_FAILED},
        {rv_error_expression, RV_FAILURE_EXPRESSION_FAILED},
        {rv_error_join, RV_FAILURE_JOIN_FAILED},
        {rv_error_template, RV_FAILURE_TEMPLATE_FAILED},
        {rv_error_question_cancelled, RV_FAILURE_QUESTION_CANCELLED},
    };

    for (size_t i = 0; i < RV_COUNT(codes); i++)
        if (strcmp(codes[i].type, type) == 0)
            return codes[i].code;
    return RV_FAILURE_STAGE_FAILED;
}

enum rv_failure agent_failure_of_tool(const char *type)
{
    static const struct {
        const char *type;
        enum rv_failure code;
    } codes[] = {
        {rv_error_timeout, RV_FAILURE_TOOL_TIMED_OUT},         {rv_error_not_found, RV_FAILURE_TOOL_NOT_FOUND},
        {rv_error_access_denied, RV_FAILURE_TOOL_NOT_ALLOWED}, {rv_error_validation, RV_FAILURE_TOOL_INVALID},
        {rv_error_invalid_step, RV_FAILURE_TOOL_INVALID},      {rv_error_agent, RV_FAILURE_AGENT_FAILED},
    };

    for (size_t i = 0; type && i < RV_COUNT(codes); i++)
        if (strcmp(codes[i].type, type) == 0)
            return codes[i].code;
    return RV_FAILURE_TOOL_FAILED;
}

enum rv_failure agent_event_failure(const struct rv_event *ev)
{
    bool is_timeout = rv_error_is(ev->error_type, rv_error_timeout);
    enum rv_failure code;

    if (ev->code && rv_failure_of(rv_str_of(ev->code), &code, NULL) == 0)
        return code;
    if (ev->kind == RV_EVENT_TOOL_DONE)
        return agent_failure_of_tool(ev->error_type);
    if (ev->kind == RV_EVENT_HOOK_DONE)
        return is_timeout ? RV_FAILURE_HOOK_TIMED_OUT : RV_FAILURE_HOOK_FAILED;
    return ev->llm.error_kind < 0 && is_timeout ? RV_FAILURE_MODEL_TIMED_OUT : rv_llm_error_code(ev->llm.error_kind);
}

const char *visit_code_text(const rv_visit *v, enum rv_failure code)
{
    return v->shared->rules >= RV_RULES_3 && code != RV_FAILURE_NONE ? rv_failure_text(code) : NULL;
}

int visit_fail_at(rv_visit *v, struct visit_fault fault, const char *c_file, int c_line, rv_err **err, const char *fmt,
                  ...)
{
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    va_list ap;

    va_start(ap, fmt);
    rv_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    free(v->error_text);
    v->error_text = rv_buf_steal(&text, NULL);
    rv_buf_fini(&text);
    if (!v->error_text)
        return RV_FAIL(err, RV_E_NOMEM, "report the failure of stage \"%s\"", v->agent->name);
    rv_err_free(v->failure);
    v->failure = NULL;
    RV_IGNORE(rv_err_add_at(&v->failure, RV_E_STATE, c_file, c_line, NULL, "%s", v->error_text), "looked at below");
    if (rv_err_is(v->failure, RV_E_NOMEM))
        return RV_FAIL(err, RV_E_NOMEM, "report the failure of stage \"%s\"", v->agent->name);
    v->code = fault.code != RV_FAILURE_NONE ? fault.code : failure_of_stage(fault.type);
    char *kept = rv_str_dup(rv_str_of(fault.type)); /* it may be the text of an event, or of an element of a list */
    if (!kept)
        return RV_FAIL(err, RV_E_NOMEM, "report the failure of stage \"%s\"", v->agent->name);
    free(v->type_text);
    v->type_text = kept;
    v->error_type = kept;
    v->failed_in = v->phase;
    v->phase = PHASE_FAILED;
    return 0;
}

void visit_fail_by(rv_visit *v, const struct rv_event *ev, const char *fmt, ...)
{
    const rv_err *last = v->failure;
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    va_list ap;

    if (!ev->causes || !*ev->causes || !last)
        return;
    while (rv_err_cause(last))
        last = rv_err_cause(last);
    va_start(ap, fmt);
    rv_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    int line = 0;
    const char *file = rv_err_made_at(last, &line);
    RV_IGNORE(rv_err_add_at(ev->causes, rv_err_code(last), file, line, NULL, "%s", rv_buf_cstr(&text)),
              "the chain carries it");
    rv_buf_fini(&text);
    rv_err_replace_last(&v->failure, *ev->causes);
    *ev->causes = NULL;
}

int visit_fail_cause(rv_visit *v, const char *type, rv_err *cause, rv_err **err)
{
    if (rv_err_is(cause, RV_E_NOMEM)) {
        rv_err_pass(err, cause);
        return RV_E_NOMEM;
    }
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    struct rv_src place = {NULL, 0, 0};
    for (const rv_err *link = cause; link; link = rv_err_cause(link)) {
        struct rv_src src = rv_err_src(link);
        if (link != cause)
            rv_buf_puts(&text, ": ");
        rv_buf_puts(&text, rv_err_text(link));
        if (src.file)
            place = src;
    }
    if (place.file)
        rv_buf_printf(&text, " (%s:%d:%d)", place.file, place.line, place.col);
    int rc = rv_buf_check(&text, "error text", err);
    if (rc == 0)
        rc = rv_visit_fail(v, type, err, "%s", rv_buf_cstr(&text));
    rv_buf_fini(&text);
    if (rc == 0) {
        rv_err_free(v->failure);
        v->failure = cause;
    } else {
        rv_err_free(cause);
    }
    return rc;
}

#define BACKOFF_FIRST_US RV_US_PER_S /* doubles with each attempt (W16) */
/* longer waits only keep the user waiting: a provider's own hint is taken in model/provider */
#define BACKOFF_MAX_US (30 * RV_US_PER_S)

/* The run of the visit, or one around it. */
static bool run_stops(const rv_visit *v)
{
    const struct rv_visit_shared *s = v->shared;

    while (s && !s->stops)
        s = s->up;
    return s || rv_visit_root(v->shared)->stops;
}

/* Model calls that all bounds leave. */
static int64_t calls_left(const struct rv_visit_shared *s)
{
    int64_t left = INT64_MAX;

    for (; s; s = s->up)
        if (!s->origin && s->llm_left < left)
            left = s->llm_left;
    return left > 0 ? left : 0;
}

/* What all budgets leave beside what is set aside; -1: there is none. */
static int64_t money_left(const struct rv_visit_shared *s)
{
    int64_t left = -1;

    for (; s; s = s->up) {
        int64_t used = 0, of_it = 0;
        if (s->origin || !s->pipeline->has_budget)
            continue;
        if (!__builtin_add_overflow(s->spent_micro_usd, s->reserved_micro_usd, &used) &&
            used < s->pipeline->budget_micro_usd)
            of_it = s->pipeline->budget_micro_usd - used;
        left = left < 0 || of_it < left ? of_it : left;
    }
    return left;
}

int agent_visit_call(rv_visit *v, const struct visit_call *call, rv_buf *request, struct rv_effects *out, rv_err **err)
{
    const char *label = call->copy_name.ptr ? "call" : call->name;

    if (run_stops(v)) {
        rv_buf_fini(request);
        return rv_visit_fail(v, rv_error_cancelled, err, "stage \"%s\" was stopped before %s: the run has hit a bound",
                             v->agent->name, label);
    }
    if (v->now_us >= v->deadline_us) {
        rv_buf_fini(request);
        return rv_visit_fail(v, rv_error_timeout, err, "stage \"%s\" ran out of time before %s (%lld s)",
                             v->agent->name, label, (long long)v->agent->limits.timeout_seconds);
    }
    rv_err *cause = NULL;
    if (rv_buf_check(request, "call arguments", &cause) < 0) {
        rv_buf_fini(request);
        return visit_fail_cause(v, rv_error_processing, cause, err);
    }
    struct rv_effect *e = rv_effects_add(out, call->kind);
    if (!e) {
        rv_buf_fini(request);
        return RV_FAIL(err, RV_E_NOMEM, "ask for a call of stage \"%s\"", v->agent->name);
    }
    e->call_id = rv_visit_root(v->shared)->next_call_id++;
    if (rv_effect_set_place(e, v->shared, v->agent->index, &v->place, err) < 0) {
        rv_buf_fini(request);
        return RV_E_NOMEM;
    }
    e->origin = v->shared->origin;
    e->pipeline = v->shared->pipeline;
    e->visit = v->visit_no;
    e->attempt = call->attempt ? call->attempt : v->attempt;
    e->entry = call->entry;
    e->name = call->name;
    e->effect_class = call->effect_class;
    e->is_beside = visit_is_beside(v);
    e->wants_result = v->planned != NULL;
    e->models_left = calls_left(v->shared);
    e->money_left = money_left(v->shared);
    e->deadline_us = v->deadline_us;
    if (call->timeout_ms > 0 && v->now_us + call->timeout_ms * RV_US_PER_MS < e->deadline_us)
        e->deadline_us = v->now_us + call->timeout_ms * RV_US_PER_MS;
    e->request = rv_buf_steal(request, &e->request_len);
    if (call->copy_name.ptr)
        e->name = e->owned_name = rv_str_dup(call->copy_name);
    if (call->key)
        e->key = rv_str_dup(rv_str_of(call->key));
    if (!e->request || !e->name || (call->key && !e->key))
        return RV_FAIL(err, RV_E_NOMEM, "ask for a call of stage \"%s\"", v->agent->name);
    v->waiting_for = v->last_call = e->call_id;
    v->waiting_kind = call->kind == RV_EFFECT_CALL_LLM    ? RV_EVENT_LLM_DONE
                      : call->kind == RV_EFFECT_CALL_TOOL ? RV_EVENT_TOOL_DONE
                                                          : RV_EVENT_HOOK_DONE;
    return 0;
}

bool visit_must_end(const rv_visit *v)
{
    return run_stops(v) || v->now_us >= v->deadline_us;
}

int64_t visit_arm(const rv_visit *v, int64_t at_us, struct rv_effects *out)
{
    struct rv_effect *e = rv_effects_add(out, RV_EFFECT_ARM_TIMER);

    if (!e)
        return 0;
    e->call_id = rv_visit_root(v->shared)->next_call_id++;
    e->stage = visit_stage(v);
    e->origin = v->shared->origin;
    e->visit = v->visit_no;
    e->at_us = at_us;
    return e->call_id;
}

int64_t visit_wait(rv_visit *v, int64_t wait, int64_t attempt, const char *why, struct rv_effects *out)
{
    if (v->now_us + wait >= v->deadline_us || run_stops(v))
        return 0;

    rv_visit_emit(v, out, RV_EMIT_RETRY, RV_M_INT("attempt", attempt), RV_M_INT("wait_ms", wait / 1000),
                  RV_M_TEXT("error", why));
    return visit_arm(v, v->now_us + wait, out); /* 0: the step fails as a whole */
}

int64_t visit_back_off(rv_visit *v, int64_t attempt, const char *why, struct rv_effects *out)
{
    int64_t wait = BACKOFF_FIRST_US;

    for (int64_t i = 1; i < attempt && wait < BACKOFF_MAX_US; i++)
        wait *= 2;
    return visit_wait(v, wait > BACKOFF_MAX_US ? BACKOFF_MAX_US : wait, attempt, why, out);
}

/* Another attempt would be made, had the run a model call left. */
static bool lacks_call(rv_visit *v, int64_t max_retries, bool needs_llm)
{
    enum rv_reason reason;
    const struct rv_visit_shared *of = needs_llm ? rv_bound_choose(v->shared, RV_NEEDS_CALL, &reason) : NULL;

    if (!of)
        return false;
    if (v->shared->rules >= RV_RULES_4 && v->attempt <= max_retries && !visit_must_end(v)) {
        v->bound_of = of; /* a bound ends the run, no matter which branch used the last call */
        v->bound = reason;
    }
    return true;
}

bool visit_retry(rv_visit *v, int64_t max_retries, bool needs_llm, const char *why, struct rv_effects *out)
{
    needs_llm = needs_llm && !v->model.has_call; /* one that a hook answered was not made */
    if (v->attempt > max_retries || lacks_call(v, max_retries, needs_llm))
        return false;
    int64_t timer = visit_back_off(v, v->attempt, why, out);
    if (!timer)
        return false;
    if (needs_llm) {
        rv_visit_note_calls(v->shared, 1);
        v->model.has_call = true;
    }
    v->attempt++;
    v->waiting_for = timer;
    v->waiting_kind = RV_EVENT_TIMER;
    v->phase = PHASE_BACKOFF;
    return true;
}

/* Over text and its NUL. */
static uint64_t hash(uint64_t h, const char *text)
{
    return rv_fnv_add(h, (rv_str){text, strlen(text) + 1});
}

uint64_t visit_identity(const rv_visit *v)
{
    const char *id = rv_envelope_fields(v->env)->envelope_id, *path = v->place.path;
    uint64_t h = hash(hash(1469598103934665603u, id), v->agent->name);

    return path && path[0] ? hash(h, path) : h;
}

/* Ids derive from where the interrupt was raised, so that a replay makes the same ones. */
static void interrupt_id(const rv_visit *v, char id[RV_ID_MAX])
{
    static const char hex[] = "0123456789abcdef";
    uint64_t h = visit_identity(v);

    h = (h ^ (uint64_t)v->visit_no) * 1099511628211u;
    h = (h ^ v->n_interrupts) * 1099511628211u;
    memcpy(id, "int_", 4);
    for (int i = 0; i < 16; i++)
        id[4 + i] = hex[(h >> (60 - 4 * i)) & 15];
    id[20] = '\0';
}

int visit_raise(rv_visit *v, enum rv_interrupt_kind kind, rv_str text, json_object *data, char id[RV_ID_MAX],
                rv_err **err)
{
    const struct visit_question q = {
        .kind = kind, .text = text, .data = data, .ttl_us = rv_interrupt_asks_outcome(kind, data) ? 0 : -1};

    return visit_raise_for(v, &q, id, err);
}

int visit_raise_for(rv_visit *v, const struct visit_question *q, char id[RV_ID_MAX], rv_err **err)
{
    interrupt_id(v, id);
    v->n_interrupts++;
    if (rv_envelope_has_interrupt(v->env))
        return 0;
    struct rv_interrupt_spec spec = {
        .kind = q->kind, .id = rv_str_of(id), .data = q->data, .ttl_us = q->ttl_us, .replace = true};
    if (q->kind == RV_INTERRUPT_CLARIFICATION)
        spec.question = q->text;
    else
        spec.message = q->text;
    return rv_envelope_raise(v->env, &spec, v->now_us, err);
}

/* --- Bounds of a run and of all runs around it --- */

void rv_visit_note_calls(struct rv_visit_shared *s, int64_t n)
{
    for (; s; s = s->up)
        if (!s->origin)
            s->llm_left -= n;
}

void rv_visit_note_hops(struct rv_visit_shared *s, int64_t n)
{
    for (; s; s = s->up)
        if (!s->origin)
            s->hops_left -= n;
}

const struct rv_visit_shared *rv_bound_choose(const struct rv_visit_shared *s, unsigned needs, enum rv_reason *reason)
{
    const struct rv_visit_shared *found = NULL;

    *reason = RV_REASON_NONE;
    for (; s; s = s->up) {
        if (s->origin)
            continue;
        bool no_call = (needs & RV_NEEDS_CALL) && s->llm_left <= 0;
        if (!no_call && (!(needs & RV_NEEDS_VISIT) || s->hops_left > 0))
            continue;
        found = s; /* one further out is looked at first */
        *reason = no_call ? RV_REASON_MAX_LLM_CALLS : RV_REASON_MAX_HOPS;
    }
    return found;
}
