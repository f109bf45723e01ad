/* One visit of one stage: the lifecycle. The order of the phases is rule 5.2 with the engine's policies between
 * required fields and storing. What each phase does is in the file of its name, as hooks.c or llm.c. */
#include "coreengine/agent/tools_internal.h"
#include "envelope/envelope.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define ERROR_MAX_BYTES ((size_t)64 << 10) /* of what went wrong elsewhere: it stays in the journal */

static int advance(rv_visit *v, struct rv_effects *out, rv_err **err);

static int64_t stage_deadline(const rv_visit *v)
{
    const struct rv_execution_config *x = &v->shared->pipeline->execution;
    int64_t ms = v->agent->limits.timeout_seconds * 1000;

    if (x->has_agent_timeout && x->agent_timeout_ms < ms)
        ms = x->agent_timeout_ms;
    if (v->agent->has_tools && !v->agent->has_llm && x->has_executor_timeout && x->executor_timeout_ms < ms)
        ms = x->executor_timeout_ms;
    int64_t at_us = v->started_us + ms * 1000, cap_us = v->shared->deadline_us;
    return cap_us > 0 && cap_us < at_us ? cap_us : at_us;
}

static int new_visit(struct rv_visit_shared *shared, int stage, rv_envelope *env, int64_t now_us, rv_visit **out,
                     rv_err **err)
{
    const struct rv_agent *agent = &shared->pipeline->agents[stage];
    rv_visit *v = shared->spare;

    shared->spare = NULL;
    if (v)
        memset(v, 0, sizeof *v);
    else
        v = calloc(1, sizeof *v);
    if (!v)
        return RV_FAIL(err, RV_E_NOMEM, "begin stage \"%s\"", agent->name);
    v->shared = shared;
    v->agent = agent;
    v->env = env;
    if (agent->has_llm)
        v->asked = rv_pipeline_find_model(shared->pipeline, rv_str_of(visit_role(v)));
    v->place = RV_VISIT_PLACE_NONE;
    v->given_reason = RV_REASON_NONE;
    v->bound = RV_REASON_NONE;
    v->code = RV_FAILURE_NONE;
    v->attempt = 1;
    v->now_us = v->started_us = now_us;
    v->deadline_us = stage_deadline(v);
    v->routed_to = RV_TARGET_NONE;
    v->routed_rule = -1;
    v->result.next = RV_TARGET_NONE;
    v->result.reason = RV_REASON_NONE;
    v->partial = RV_BUF_INIT(RV_LLM_MAX_REPLY);
    agent_visible_init(&v->model);
    v->routing = RV_ROUTING_INIT;
    if (shared->conversation && shared->conversation->has_routing)
        v->routing = shared->conversation->routing;
    int rc = agent_resources_open(v, err);
    if (rc == 0)
        rc = agent_client_tools_open(v, err);
    if (rc == 0 && agent_stage_plans(shared, agent))
        rc = planned_new(&v->planned, err);
    if (rc == 0)
        *out = v;
    else
        rv_visit_free(v);
    return rc;
}

int rv_visit_begin(struct rv_visit_shared *shared, const struct rv_visit_start *start, int64_t now_us,
                   struct rv_effects *out, rv_visit **visit, rv_err **err)
{
    int stage = start->stage;
    rv_envelope *env = start->env;
    const struct rv_agent *agent = &shared->pipeline->agents[stage];
    rv_str name = rv_str_of(agent->name);
    rv_visit *v = NULL;
    int rc = new_visit(shared, stage, env, now_us, &v, err);

    if (rc < 0)
        return rc;
    if (start->place)
        v->place = *start->place;
    v->is_list = agent->each.list && !visit_is_element(v) && !shared->origin;
    v->route = start->route;
    if (rv_visit_goes_on(shared, stage, env)) {
        rv_visit_note_calls(shared, -(int64_t)start->llm_reserved); /* no model is asked */
        int went = visit_go_on(v, out, err);
        if (went == 0)
            went = advance(v, out, err);
        if (went < 0)
            rv_visit_free(v);
        else
            *visit = v;
        return went;
    }
    v->model.has_call = start->llm_reserved;
    rc = visit_is_element(v) ? rv_envelope_record_part(env, name, agent->order.stage_order, now_us, err)
                             : rv_envelope_record_start(env, name, agent->order.stage_order, now_us, err);
    if (rc < 0)
        goto fail;
    v->visit_no = rv_envelope_visits(env, name);
    if (!v->place.error && !shared->origin)
        v->place.error = v->caught = json_object_get(rv_envelope_caught(env, name));
    rv_visit_emit(v, out, shared->origin ? RV_EMIT_AGENT_STARTED : RV_EMIT_STAGE_STARTED, (struct rv_member){0});
    bool is_cancelled = rv_visit_is_cancelled(shared, stage, env);
    if (v->place.failed || is_cancelled) {
        rv_visit_note_calls(shared, -start->llm_reserved); /* no model is asked */
        v->model.has_call = v->is_list = false;
    }
    if (is_cancelled) {
        rc = visit_take_cancellation(v, err);
    } else if (v->place.failed) {
        rc = rv_visit_fail_as(v, v->place.failed->code, v->place.failed->type, err, "%s", v->place.failed->text);
    } else {
        rc = v->is_list ? visit_list(v, err) : visit_resume_work(v, err);
    }
    if (rc == 0 && !v->is_list && !v->resumed && !v->place.failed && !is_cancelled)
        rc = visit_sit_out(v, err);
    if (rc == 0)
        rc = advance(v, out, err);
    if (rc < 0)
        goto fail;
    *visit = v;
    return 0;
fail:
    rv_visit_free(v);
    return rc;
}

static void progress_fini(struct model_progress *t)
{
    free(t->prompt);
    free(t->system);
    json_object_put(t->examples);
    json_object_put(t->attachments);
    json_object_put(t->messages);
    json_object_put(t->ids);
    json_object_put(t->offered);
    rv_schema_free(t->schema);
    rv_buf_fini(&t->visible);
    for (struct child_rows *c = t->child_rows, *next; c; c = next) {
        next = c->next;
        rv_turn_free(c->rows);
        free(c->call_id);
        free(c);
    }
    json_object_put(t->arguments);
    json_object_put(t->final_calls);
    json_object_put(t->new_calls);
    agent_model_hooks_fini(&t->hooks);
}

void rv_visit_free(rv_visit *v)
{
    if (!v)
        return;
    money_stop_waiting(v);
    visit_tools_fini(&v->tools);
    agent_resources_fini(v);
    agent_client_tools_fini(v);
    progress_fini(&v->model);
    planned_free(v->planned);
    json_object_put(v->output);
    json_object_put(v->previous);
    json_object_put(v->caught);
    json_object_put(v->approved_policies);
    json_object_put(v->outside_value);
    json_object_put(v->outside_state);
    free(v->error_stage);
    free(v->outside_type);
    json_object_put(v->chained);
    json_object_put(v->chosen);
    free(v->taken);
    rv_turn_free(v->rows);
    agent_tool_hooks_fini(&v->chain_hooks);
    rv_buf_fini(&v->partial);
    free(v->session_name);
    free(v->confirm_message);
    json_object_put(v->confirm_show);
    free(v->error_text);
    free(v->type_text);
    rv_err_free(v->failure);
    if (v->shared->root || v->shared->spare)
        free(v);
    else
        v->shared->spare = v;
}

/* The main phase by mode (rule 5.4). */
static int main_phase(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    if (rv_stage_is_mocked(v->shared, v->agent->index))
        return visit_mock(v, out, err);
    if (v->agent->set)
        return visit_set(v, err);
    if (v->agent->inner.pipeline)
        return visit_inner(v, err);
    v->llm_path |= v->agent->has_llm;
    if (v->agent->has_llm && !v->model.acting)
        return visit_ask_model(v, out, err);
    if (v->agent->has_llm || v->agent->has_tools)
        return visit_tools(v, out, err);
    v->output = json_object_new_object(); /* service: hooks do the work */
    if (!v->output)
        return RV_FAIL(err, RV_E_NOMEM, "make the output of a service stage");
    v->phase = PHASE_CHECK;
    return 0;
}

/* What follows the work: a list's output is made of outputs that were checked, and hooks saw each of them. */
static int after_list(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    if (v->phase == PHASE_STORE)
        return visit_store(v, err);
    v->phase = PHASE_SETTLE;
    return visit_settle(v, out, err);
}

static int run_phase(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    int rc;

    if (v->is_list && (v->phase == PHASE_STORE || v->phase == PHASE_POST))
        return after_list(v, out, err);
    switch (v->phase) {
    case PHASE_PRE:
        return visit_pre(v, out, err);
    case PHASE_MAIN:
    case PHASE_BACKOFF:
        return main_phase(v, out, err);
    case PHASE_CHECK:
        return visit_check(v, out, err);
    case PHASE_POLICY:
        return visit_policy(v, out, err);
    case PHASE_STORE:
        return visit_store(v, err);
    case PHASE_POST:
        return visit_post(v, out, err);
    case PHASE_CHAIN:
        return visit_chain(v, out, err);
    case PHASE_SETTLE:
        return visit_settle(v, out, err);
    case PHASE_ASK:
        return visit_ask(v, out, err);
    case PHASE_ROUTE:
        return visit_route(v, out, err);
    case PHASE_FAILED:
        rc = v->planned ? planned_degrade(v, out, err) : 0;
        if (rc < 0 || v->phase != PHASE_FAILED)
            return rc;
        rc =
            agent_pending_cancel(v, NULL, out, err); /* what the agents that were asked have done belongs to the rows */
        return rc < 0 ? rc : visit_failed(v, out, err);
    case PHASE_DONE:
        break;
    }
    return 0;
}

static int advance(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    int rc = 0;
    while (rc == 0 && v->phase != PHASE_DONE &&
           ((!v->waiting_for && v->outside == RV_OUTSIDE_NONE) || v->phase == PHASE_FAILED))
        rc = run_phase(v, out, err);
    return rc;
}

bool rv_visit_waits_for(const rv_visit *v, int64_t call_id)
{
    return (v->waiting_for == call_id && call_id != 0) || agent_pending_wait_for(v, call_id);
}

/* The error as text that may be kept and shown: valid UTF-8 and of bounded size, even when a plugin or model wrote
 * it. */
static int clean_error(const struct rv_event *ev, rv_buf *text, struct rv_event *out, rv_err **err)
{
    rv_str rest = {ev->error.ptr, ev->error.len < ERROR_MAX_BYTES ? ev->error.len : ERROR_MAX_BYTES};
    size_t bad;

    *out = *ev;
    if (ev->error_type && !rv_utf8_valid(rv_str_of(ev->error_type), NULL))
        out->error_type = NULL;
    if (!ev->failed || (rest.len == ev->error.len && rv_utf8_valid(rest, NULL)))
        return 0;
    while (!rv_utf8_valid(rest, &bad)) {
        rv_buf_add(text, rest.ptr, bad);
        rv_buf_putc(text, '?');
        rest = (rv_str){rest.ptr + bad + 1, rest.len - bad - 1};
    }
    rv_buf_add_str(text, rest);
    out->error = rv_buf_str(text);
    return rv_buf_check(text, "error text", err);
}

static bool is_asked(enum hook_side side)
{
    return side == HOOKS_BEFORE || side == HOOKS_AFTER;
}

int rv_visit_step(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    struct rv_event clean;
    rv_buf text = RV_BUF_INIT(2 * ERROR_MAX_BYTES);

    assert(rv_visit_waits_for(v, ev->call_id));
    bool has_pending = v->waiting_for == PENDING_CALLS;
    if (!has_pending && ev->kind != v->waiting_kind)
        return RV_FAIL(err, RV_E_STATE, "call %lld of stage \"%s\" cannot end this way", (long long)ev->call_id,
                       v->agent->name);
    int rc = clean_error(ev, &text, &clean, err);
    if (rc == 0) {
        v->now_us = ev->now_us;
        v->waiting_for = has_pending ? PENDING_CALLS : 0;
        v->event_code = ev->failed ? ev->code : NULL;
        if (!has_pending)
            money_count_asked(v, ev);
        if (has_pending)
            rc = agent_pending_on(v, &clean, out, err);
        else if (ev->kind == RV_EVENT_LLM_DONE)
            rc = visit_llm_done(v, &clean, out, err);
        else if (ev->kind == RV_EVENT_TOOL_DONE && v->phase == PHASE_CHAIN)
            rc = visit_chain_done(v, &clean, out, err);
        else if (ev->kind == RV_EVENT_TOOL_DONE)
            rc = visit_tool_done(v, &clean, out, err);
        else if (ev->kind == RV_EVENT_HOOK_DONE && v->phase == PHASE_CHAIN)
            rc = visit_chain_hook_done(v, &clean, out, err);
        else if (ev->kind == RV_EVENT_HOOK_DONE && is_asked(v->model.hooks.side))
            rc = agent_model_hooks_on(v, &clean, out, err);
        else if (ev->kind == RV_EVENT_HOOK_DONE && is_asked(v->tools.hooks.side))
            rc = visit_tool_hook_done(v, &clean, out, err);
        else if (ev->kind == RV_EVENT_HOOK_DONE)
            rc = visit_hook_done(v, &clean, out, err);
        else if (v->model.is_short)
            rc = money_look(v, &clean, out, err);
        else
            v->phase = PHASE_MAIN; /* the wait between two attempts is over */
    }
    rv_buf_fini(&text);
    if (rc == 0)
        rc = advance(v, out, err);
    v->event_code = NULL;
    return rc;
}

int rv_visit_on_outside_end(rv_visit *v, const struct rv_outside_end *end, int64_t now_us, struct rv_effects *out,
                            rv_err **err)
{
    int rc = 0;

    v->now_us = now_us;
    v->outside = RV_OUTSIDE_NONE;
    v->llm_calls += end->llm_calls;
    if (end->asks)
        return visit_wait_inside(v, end, out, err);
    if (end->stage && !(v->error_stage = rv_str_dup(rv_str_of(end->stage))))
        return RV_FAIL(err, RV_E_NOMEM, "report the failure of stage \"%s\"", v->agent->name);
    if (end->output) {
        v->output = end->output;
        v->phase = v->is_list ? PHASE_STORE : PHASE_CHECK;
        if (end->terminates)
            v->result.outcome = RV_OUTCOME_TERMINATE;
    } else {
        v->given_reason = end->reason;
        v->bound = end->bound_of ? end->reason : RV_REASON_NONE;
        v->bound_of = end->bound_of;
        v->is_bound_hard = true;
        v->outside_type = rv_str_dup(rv_str_of(end->error_type));
        if (!v->outside_type)
            return RV_FAIL(err, RV_E_NOMEM, "report the failure of stage \"%s\"", v->agent->name);
        rc = rv_visit_fail_as(v, end->code, v->outside_type, err, "%s", end->error);
    }
    return rc < 0 ? rc : advance(v, out, err);
}

/* What had come of the call under way when it was cancelled. */
static int take_partial(rv_visit *v, json_object *partials, rv_err **err)
{
    bool is_guarded = v->agent->hooks.after_model.n > 0; /* hooks would have to look at it first */

    for (size_t i = 0; partials && !is_guarded && i < json_object_array_length(partials); i++) {
        json_object *p = json_object_array_get_idx(partials, i), *text = NULL;
        int64_t id = 0;
        if (!json_object_is_type(p, json_type_object) || !rv_json_get_int(p, "call_id", &id) || id != v->waiting_for ||
            !json_object_object_get_ex(p, "text", &text))
            continue;
        rv_buf_clear(&v->partial);
        rv_buf_add_str(&v->partial, rv_json_str(text));
        return rv_buf_check(&v->partial, "what had come of an answer", err);
    }
    return 0;
}

int rv_visit_cancel(rv_visit *v, const char *why, json_object *partials, int64_t now_us, struct rv_effects *out,
                    rv_err **err)
{
    v->now_us = now_us;
    int taken = take_partial(v, partials, err);
    if (taken < 0)
        return taken;
    if (v->waiting_for == PENDING_CALLS) {
        int rc = agent_pending_cancel(v, partials, out, err);
        if (rc < 0)
            return rc;
    } else if (v->waiting_for) {
        struct rv_effect *e = rv_effects_add(out, RV_EFFECT_CANCEL_CALL);
        if (!e)
            return RV_FAIL(err, RV_E_NOMEM, "cancel stage \"%s\"", v->agent->name);
        e->call_id = v->waiting_for;
        e->stage = visit_stage(v);
    }
    v->waiting_for = 0;
    v->outside = RV_OUTSIDE_NONE;
    money_stop_waiting(v);
    money_lose(v, "a model call was cancelled under way: it counts as charged for", out);
    int rc = rv_visit_fail(v, rv_error_cancelled, err, "%s", why);
    return rc < 0 ? rc : advance(v, out, err);
}

int rv_visit_give_up(struct rv_visit_shared *shared, int stage, rv_envelope *env, const char *why,
                     struct rv_effects *out, rv_err **err)
{
    const struct rv_agent *agent = &shared->pipeline->agents[stage];

    if (!agent->declared.doc || !rv_envelope_suspended(env, rv_str_of(agent->name)) ||
        visit_is_ask(shared, stage, env)) /* its turn was over when it asked */
        return 0;
    rv_visit *v = NULL;
    int rc = new_visit(shared, stage, env, out->now_us, &v, err);
    if (rc < 0)
        return rc;
    v->visit_no = rv_envelope_visits(env, rv_str_of(agent->name));
    v->error_type = rv_error_cancelled;
    v->error_text = rv_str_dup(rv_str_of(why));
    rc = v->error_text ? visit_resume_work(v, err) : RV_FAIL(err, RV_E_NOMEM, "give up stage \"%s\"", agent->name);
    if (rc == 0)
        rc = visit_keep_rows(v, RV_TURN_CANCELLED, out, err);
    rv_visit_free(v);
    return rc;
}

int rv_visit_asked_by_route(const struct rv_visit_shared *shared, const rv_envelope *env, json_object *data)
{
    const char *stage = NULL, *next = NULL;

    if (shared->rules < RV_RULES_2 || !json_object_is_type(data, json_type_object) ||
        !rv_json_get_text(data, RV_ASKED_NEXT, &next) || !rv_json_get_text(data, "stage", &stage) ||
        strcmp(stage, rv_envelope_fields(env)->current_stage) != 0)
        return -1;
    return rv_pipeline_find_stage(shared->pipeline, rv_str_of(stage));
}

int rv_visit_approve(struct rv_visit_shared *shared, int stage, rv_envelope *env, struct rv_effects *out, int *to,
                     rv_err **err)
{
    const struct rv_agent *agent = &shared->pipeline->agents[stage];
    rv_visit *v = NULL;
    int rc = new_visit(shared, stage, env, out->now_us, &v, err);

    if (rc < 0)
        return rc;
    *to = rv_agent_approved_target(agent);
    v->visit_no = rv_envelope_visits(env, rv_str_of(agent->name));
    v->n_interrupts = 1; /* the one that was approved */
    v->output = json_object_get(rv_envelope_output(env, rv_str_of(agent->output.key), NULL));
    if (!v->output && !(v->output = json_object_new_object()))
        rc = RV_FAIL(err, RV_E_NOMEM, "go on after stage \"%s\"", agent->name);
    if (rc == 0)
        rc = agent_end_approved(v, *to, out, err);
    rv_visit_free(v);
    return rc;
}

static int forget_call(const rv_visit *v, int64_t call, struct rv_effects *out, rv_err **err)
{
    struct rv_effect *e = rv_effects_add(out, RV_EFFECT_CANCEL_CALL);

    if (!e)
        return RV_FAIL(err, RV_E_NOMEM, "recover stage \"%s\"", v->agent->name);
    e->call_id = call;
    e->stage = visit_stage(v);
    return 0;
}

int rv_visit_recover(rv_visit *v, int64_t gap_us, struct rv_effects *out, rv_err **err)
{
    int64_t call = v->waiting_for;
    int rc = 0;

    v->deadline_us += gap_us < INT64_MAX - v->deadline_us ? gap_us : 0;
    v->now_us += gap_us;
    if (v->tools.call_started_us)
        v->tools.call_started_us += gap_us;
    if (v->planned && v->planned->part == PLANNED_EXECUTE)
        v->planned->until_us += gap_us;
    if (v->outside != RV_OUTSIDE_NONE)
        return 0;
    if (call == PENDING_CALLS) { /* an agent that was asked may end here, and then nothing else would wake its visit */
        rc = agent_pending_recover(v, gap_us, out, err);
        return rc == 0 && !v->waiting_for ? advance(v, out, err) : rc;
    }
    if (!call || v->waiting_kind != RV_EVENT_LLM_DONE)
        return rc;
    bool goes_on = money_recover(v, out, &rc, err);
    if (rc < 0 || (goes_on && v->waiting_for == call))
        return rc;
    if (!goes_on)
        rc = advance(v, out, err); /* a limit or the budget has failed it */
    if (!goes_on)
        v->waiting_for = 0;
    return rc < 0 ? rc : forget_call(v, call, out, err); /* it is not made again, or later */
}

bool rv_visit_is_done(const rv_visit *v)
{
    return v->phase == PHASE_DONE;
}

const struct rv_visit_result *rv_visit_result(const rv_visit *v)
{
    return &v->result;
}

int rv_visit_stage(const rv_visit *v)
{
    return v->agent->index;
}
