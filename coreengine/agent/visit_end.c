/* How a visit ends: required fields, outcome, storing, routing, history and the failure rules (5.3, 5.7 to 5.9, 7.5).
 */
#include "coreengine/agent/agent_internal.h"

#include <stdlib.h>
#include <string.h>

#define POLICY "policy"

static const char *text_of(json_object *output, const char *first, const char *second)
{
    const char *text = NULL;
    if (rv_json_get_text(output, first, &text) || (second && rv_json_get_text(output, second, &text)))
        return text;
    return NULL;
}

/* The outcome that the output states. *bad is true when it states one that does not exist. */
static enum rv_outcome stated_outcome(json_object *output, const char **text, bool *bad)
{
    enum rv_outcome o = RV_OUTCOME_SUCCESS;

    *bad = false;
    if (rv_json_get_text(output, "outcome", text))
        *bad = rv_outcome_of(rv_str_of(*text), &o, NULL) < 0;
    return o;
}

/* True when the output's outcome ended the visit; *rc is the result then. */
static bool refused_by_outcome(rv_visit *v, struct rv_effects *out, int *rc, rv_err **err)
{
    const char *text = NULL, *why;
    bool bad;
    enum rv_outcome o = stated_outcome(v->output, &text, &bad);

    if (bad) {
        *rc = rv_visit_fail(v, out, "ValidationError", err,
                            "agent \"%s\": output states outcome \"%.*s\", which does not exist", v->agent->name,
                            RV_STR_ARG(rv_utf8_cut(rv_str_of(text), 60)));
        return true;
    }
    if (o == RV_OUTCOME_ERROR) {
        why = text_of(v->output, "error", "reason");
        *rc = why ? rv_visit_fail(v, out, "ProcessingError", err, "%s", why)
                  : rv_visit_fail(v, out, "ProcessingError", err, "agent \"%s\" reported an error without saying which",
                                  v->agent->name);
        return true;
    }
    if (v->result.outcome != RV_OUTCOME_TERMINATE)
        v->result.outcome = o;
    return false;
}

int rv_visit_check(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    const struct rv_str_list *need = &v->agent->required_output_fields;
    int rc = 0;

    for (size_t i = 0; i < need->n; i++)
        if (!json_object_object_get_ex(v->output, need->items[i], NULL)) {
            v->lacks_field = true;
            return rv_visit_fail(v, out, "ValidationError", err,
                                 "agent \"%s\": required output field \"%s\" is missing", v->agent->name,
                                 need->items[i]);
        }
    if (refused_by_outcome(v, out, &rc, err))
        return rc;
    v->phase = PHASE_POLICY;
    return 0;
}

int rv_visit_store(rv_visit *v, rv_err **err)
{
    rv_str key = rv_str_of(v->agent->output_key);

    v->previous = json_object_get(rv_envelope_output(v->env, key, &v->had_previous));
    int rc = rv_envelope_set_output(v->env, key, v->output, err);
    v->stored = rc == 0;
    v->phase = PHASE_POST;
    return rc;
}

/* Take back what was stored, so that a rejected output is not seen (W25). */
static int restore(rv_visit *v, rv_err **err)
{
    rv_str key = rv_str_of(v->agent->output_key);

    if (!v->stored)
        return 0;
    v->stored = false;
    return v->had_previous ? rv_envelope_set_output(v->env, key, v->previous, err)
                           : rv_envelope_remove_output(v->env, key, err);
}

static int raise_for_outcome(rv_visit *v, enum rv_interrupt_kind kind, const char *text, json_object *data,
                             rv_err **err)
{
    char id[RV_ID_MAX];
    int rc = rv_visit_raise(v, kind, rv_str_of(text), data, id, err);
    if (rc < 0 || !v->confirm_message)
        return rc;
    json_object *kept = json_object_new_object(); /* so that the policy is not asked for ever */
    if (!kept)
        return RV_FAIL(err, RV_E_NOMEM, "keep a policy's question");
    rc = rv_json_set_text(kept, "kind", POLICY, err);
    if (rc == 0)
        rc = rv_json_set_text(kept, "interrupt_id", id, err);
    if (rc == 0)
        rc = rv_json_set_text(kept, "policy", v->agent->policies.items[v->policy_at], err);
    if (rc == 0 && v->approved_policies)
        rc = rv_json_set_ref(kept, "approved", v->approved_policies, err);
    if (rc == 0)
        rc = rv_envelope_set_suspended(v->env, rv_str_of(v->agent->name), kept, err);
    json_object_put(kept);
    return rc;
}

static int ask_person(rv_visit *v, enum rv_outcome kind, struct rv_effects *out, rv_err **err)
{
    const char *text;
    int rc;

    if (kind == RV_OUTCOME_CLARIFY) {
        text = text_of(v->output, "clarification_question", "question");
        rc = raise_for_outcome(v, RV_INTERRUPT_CLARIFICATION, text ? text : "more information is needed to go on", NULL,
                               err);
    } else {
        text = v->confirm_message ? v->confirm_message : text_of(v->output, "confirmation_message", "message");
        rc = raise_for_outcome(v, RV_INTERRUPT_CONFIRMATION, text ? text : "may the run go on?", NULL, err);
    }
    return rc < 0 ? rc : rv_visit_stay(v, out, err);
}

int rv_visit_settle(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    rv_str key = rv_str_of(v->agent->output_key);
    int rc = 0;

    if (refused_by_outcome(v, out, &rc, err))
        return rc;
    if (v->agent->state_merge != RV_UNSET) {
        rc = rv_envelope_merge_state(v->env, key, (enum rv_merge_how)v->agent->state_merge, v->output, err);
        if (rc < 0)
            return rc;
    }
    if (v->confirm_message)
        v->result.outcome = RV_OUTCOME_CONFIRM;
    if (v->result.outcome == RV_OUTCOME_CLARIFY || v->result.outcome == RV_OUTCOME_CONFIRM)
        return ask_person(v, v->result.outcome, out, err);
    v->phase = PHASE_ROUTE;
    return 0;
}

static int64_t duration_ms(const rv_visit *v)
{
    return (v->now_us - v->started_us) / 1000;
}

static int64_t counted_llm_calls(const rv_visit *v)
{
    bool is_first = v->llm_path && !v->resumed; /* what goes on was counted when it began */
    return is_first && v->llm_calls == 0 ? 1 : v->llm_calls;
}

static void emit_completed(rv_visit *v, const char *status, const char *next, struct rv_effects *out)
{
    rv_jw w;

    if (!rv_emit_begin(v->shared, out, v->shared->origin ? RV_EMIT_AGENT_COMPLETED : RV_EMIT_STAGE_COMPLETED,
                       v->agent->index, v->visit_no, v->now_us, &w))
        return;
    rv_jw_kv_text(&w, "status", status);
    rv_jw_kv_text(&w, "outcome", rv_outcome_text(v->result.outcome));
    rv_jw_kv_text(&w, "output_key", v->agent->output_key);
    rv_jw_kv_value(&w, "output", v->error_text ? NULL : v->output);
    rv_jw_kv_text(&w, "next_stage", next);
    rv_jw_kv_int(&w, "duration_ms", duration_ms(v));
    rv_jw_kv_int(&w, "llm_calls", counted_llm_calls(v));
    if (!rv_usage_is_zero(&v->talk.usage)) {
        rv_jw_key(&w, "usage");
        rv_usage_write_json(&v->talk.usage, &w);
    }
    if (v->error_text) {
        rv_jw_kv_text(&w, "error_type", v->error_type);
        rv_jw_kv_text(&w, "error", v->error_text);
    }
    rv_emit_end(out, &w);
}

static void emit_decision(rv_visit *v, int to, enum rv_route_by by, struct rv_effects *out)
{
    rv_jw w;

    if (!rv_emit_begin(v->shared, out, RV_EMIT_ROUTING_DECISION, v->agent->index, v->visit_no, v->now_us, &w))
        return;
    rv_jw_kv_text(&w, "from", v->agent->name);
    rv_jw_kv_text(&w, "to", rv_pipeline_target_name(v->shared->pipeline, to));
    rv_jw_kv_text(&w, "reason", rv_route_by_text(by));
    if (by == RV_ROUTE_RULE) {
        const struct rv_rule *rule = &v->agent->rules[v->routed_rule];
        rv_jw_kv_int(&w, "rule", v->routed_rule);
        rv_jw_kv_text(&w, "condition", rule->when ? rv_expr_text(rule->when) : rule->condition);
    }
    rv_emit_end(out, &w);
}

/* Is it to go on when a person has answered? Then its turn is not over. An agent that was asked never goes on. */
static bool is_suspended(const rv_visit *v)
{
    return v->result.end == RV_VISIT_STAYED && !v->shared->origin &&
           rv_envelope_suspended(v->env, rv_str_of(v->agent->name));
}

static enum rv_turn_status turn_status(const rv_visit *v)
{
    if (v->shared->origin && v->result.end == RV_VISIT_STAYED)
        return RV_TURN_FAILED;
    if (!v->error_text)
        return RV_TURN_COMPLETED;
    return strcmp(v->error_type, "CancelledError") == 0 ? RV_TURN_CANCELLED : RV_TURN_FAILED;
}

static int record_end(rv_visit *v, enum rv_history_status status, struct rv_effects *out, rv_err **err)
{
    if (!is_suspended(v)) {
        int rc = rv_visit_keep_rows(v, turn_status(v), out, err);
        if (rc == 0 && turn_status(v) == RV_TURN_COMPLETED)
            rc = rv_said_output(v, out, err);
        if (rc < 0)
            return rc;
    }
    struct rv_record_end end = {
        .status = status,
        .error = v->error_text ? rv_str_of(v->error_text) : (rv_str){NULL, 0},
        .llm_calls = counted_llm_calls(v),
        .duration_ms = duration_ms(v),
    };
    v->phase = PHASE_DONE;
    return rv_envelope_record_complete(v->env, rv_str_of(v->agent->name), &end, v->now_us, err);
}

static void find_feedback(rv_visit *v)
{
    json_object *text = NULL;
    if (json_object_is_type(v->output, json_type_object) && json_object_object_get_ex(v->output, "feedback", &text) &&
        json_object_is_type(text, json_type_string))
        v->result.feedback = text;
}

/* Outcome terminate takes effect after routing, so that a stage that can not be routed fails instead. */
static int end_run(rv_visit *v, rv_err **err)
{
    const char *why = v->end_text ? v->end_text : text_of(v->output, "reason", NULL);
    return rv_envelope_terminate(v->env, rv_str_of(why ? why : "a stage ended the run"), RV_REASON_COMPLETED, v->now_us,
                                 err);
}

static enum rv_history_status ok_status(const rv_visit *v)
{
    return v->result.outcome == RV_OUTCOME_SKIP ? RV_HISTORY_SKIPPED : RV_HISTORY_SUCCESS;
}

int rv_visit_stay(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    v->result.end = RV_VISIT_STAYED;
    v->result.next = v->agent->index;
    find_feedback(v);
    int rc = rv_envelope_set_stage(v->env, rv_str_of(v->agent->name), err);
    if (rc == 0)
        rc = record_end(v, ok_status(v), out, err);
    if (rc == 0)
        emit_completed(v, rv_history_status_text(ok_status(v)), v->agent->name, out);
    return rc;
}

int rv_visit_finish(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    int rc = 0;

    if (v->result.outcome == RV_OUTCOME_TERMINATE) {
        rc = end_run(v, err);
        if (rc < 0)
            return rc;
    } else if (v->route && (v->routed_to == RV_TARGET_CLARIFICATION || v->routed_to == RV_TARGET_CONFIRMATION)) {
        v->result.outcome = v->routed_to == RV_TARGET_CLARIFICATION ? RV_OUTCOME_CLARIFY : RV_OUTCOME_CONFIRM;
        rc = ask_person(v, v->result.outcome, out, err);
        if (rc == 0)
            emit_decision(v, v->routed_to, v->routed_by, out);
        return rc;
    }
    v->result.end = RV_VISIT_OK;
    v->result.next = v->route ? v->routed_to : RV_TARGET_NONE;
    find_feedback(v);
    bool is_stage = v->routed_to >= 0 || v->routed_to == RV_TARGET_END; /* else: terminated where it stands */
    const char *next = v->route && is_stage ? rv_pipeline_target_name(v->shared->pipeline, v->routed_to) : NULL;
    if (next)
        rc = rv_envelope_set_stage(v->env, rv_str_of(next), err);
    if (rc == 0)
        rc = record_end(v, ok_status(v), out, err);
    if (rc < 0)
        return rc;
    emit_completed(v, rv_history_status_text(ok_status(v)), next, out);
    if (v->route)
        emit_decision(v, v->routed_to, v->routed_by, out);
    return 0;
}

/* Rule 7.5: what an unrouted failure ends the run with. The model's share is its call, its reply, and fields it left
 * out; a prompt that can not be made, or an error that the output itself states, is the stage's. */
static enum rv_reason reason_of(const rv_visit *v, const char *type, enum visit_phase phase)
{
    if (v->bound != RV_REASON_NONE)
        return v->bound;
    if (strcmp(type, "PolicyError") == 0)
        return RV_REASON_POLICY;
    if (strcmp(type, "CancelledError") == 0)
        return RV_REASON_USER_CANCELLED;
    bool in_call = (phase == PHASE_MAIN || phase == PHASE_BACKOFF) && strcmp(type, "ProcessingError") != 0;
    return v->llm_path && (in_call || v->lacks_field) ? RV_REASON_LLM_FAILED : RV_REASON_TOOL_FAILED;
}

static int fail_with_text(rv_visit *v, struct rv_effects *out, const char *type, rv_err **err)
{
    enum visit_phase failed_in = v->phase;
    rv_str name = rv_str_of(v->agent->name), text = rv_str_of(v->error_text);
    int to = v->agent->error_target;
    bool cancelled = strcmp(type, "CancelledError") == 0;

    if (v->tools.n_flights > 0) { /* what the agents that were asked have done belongs to the rows */
        int ended = rv_flights_cancel(v, NULL, out, err);
        if (ended < 0)
            return ended;
    }
    if (v->talk.new_calls) { /* they become rows, with why nobody made them */
        int named = rv_talk_tell_apart(v, v->talk.new_calls, err);
        if (named < 0)
            return named;
    }
    v->error_type = type;
    v->result.end = RV_VISIT_FAILED;
    v->result.outcome = RV_OUTCOME_ERROR;
    v->result.error_text = v->error_text;
    v->result.reason = reason_of(v, type, failed_in);
    rv_said_partial(v);
    v->result.next = cancelled ? RV_TARGET_NONE : to;
    int rc = failed_in == PHASE_CHAIN ? 0 : restore(v, err); /* the output of a chain stands */
    if (rc == 0)
        rc = rv_envelope_add_error(v->env, name, text, type, v->now_us, err);
    if (rc == 0)
        rc = record_end(v, RV_HISTORY_ERROR, out, err);
    const char *next = v->result.next == RV_TARGET_NONE ? NULL : rv_pipeline_target_name(v->shared->pipeline, to);
    if (rc == 0)
        emit_completed(v, "error", next, out);
    if (rc < 0 || v->result.next == RV_TARGET_NONE)
        return rc;
    if (v->route)
        emit_decision(v, to, RV_ROUTE_ERROR, out);
    if (to == RV_TARGET_CLARIFICATION || to == RV_TARGET_CONFIRMATION) {
        enum rv_interrupt_kind kind =
            to == RV_TARGET_CLARIFICATION ? RV_INTERRUPT_CLARIFICATION : RV_INTERRUPT_CONFIRMATION;
        v->result.end = RV_VISIT_STAYED;
        v->result.next = v->agent->index;
        return raise_for_outcome(v, kind, v->error_text, NULL, err);
    }
    return v->route ? rv_envelope_set_stage(v->env, rv_str_of(next), err) : 0;
}

int rv_visit_fail(rv_visit *v, struct rv_effects *out, const char *type, rv_err **err, const char *fmt, ...)
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
    return fail_with_text(v, out, type, err);
}

int rv_visit_fail_cause(rv_visit *v, struct rv_effects *out, const char *type, rv_err *cause, rv_err **err)
{
    if (rv_err_is(cause, RV_E_NOMEM)) {
        if (err)
            *err = cause;
        else
            rv_err_free(cause);
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
        rc = rv_visit_fail(v, out, type, err, "%s", rv_buf_cstr(&text));
    rv_buf_fini(&text);
    rv_err_free(cause);
    return rc;
}
