/* How a visit ends: events, rows, routing, history (5.8, 5.9). */
#include "coreengine/agent/end_internal.h"

#include <string.h>

static int64_t duration_ms(const rv_visit *v)
{
    return (v->now_us - v->started_us) / 1000;
}

static int64_t counted_llm_calls(const rv_visit *v)
{
    bool is_first = v->llm_path && !v->resumed; /* what goes on was counted when it began */
    return is_first && v->llm_calls == 0 ? 1 : v->llm_calls;
}

void rv_end_emit_completed(rv_visit *v, const char *status, const char *next, struct rv_effects *out)
{
    rv_jw w;

    if (!rv_emit_begin(v->shared, out, v->shared->origin ? RV_EMIT_AGENT_COMPLETED : RV_EMIT_STAGE_COMPLETED,
                       v->agent->index, v->visit_no, v->now_us, &w))
        return;
    rv_jw_kv_text(&w, "status", status);
    rv_jw_kv_text(&w, "outcome", rv_outcome_text(v->result.outcome));
    rv_jw_kv_text(&w, "output_key", v->agent->output.key);
    rv_jw_kv_value(&w, "output", v->error_text ? NULL : v->output);
    rv_jw_kv_text(&w, "next_stage", next);
    rv_jw_kv_int(&w, "duration_ms", duration_ms(v));
    rv_jw_kv_int(&w, "llm_calls", counted_llm_calls(v));
    if (!rv_usage_is_zero(&v->model.usage)) {
        rv_jw_key(&w, "usage");
        rv_usage_write_json(&v->model.usage, &w);
    }
    if (v->error_text) {
        rv_jw_kv_text(&w, "error_type", v->error_type);
        rv_visit_write_code(v, v->code, &w);
        rv_jw_kv_text(&w, "error", v->error_text);
    }
    rv_emit_end(out, &w);
}

void rv_end_emit_decision(rv_visit *v, int to, enum rv_route_by by, struct rv_effects *out)
{
    rv_jw w;

    if (!rv_emit_begin(v->shared, out, RV_EMIT_ROUTING_DECISION, v->agent->index, v->visit_no, v->now_us, &w))
        return;
    rv_jw_kv_text(&w, "from", v->agent->name);
    rv_jw_kv_text(&w, "to", rv_pipeline_target_name(v->shared->pipeline, to));
    rv_jw_kv_text(&w, "reason", rv_route_by_text(by));
    if (by == RV_ROUTE_RULE) {
        const struct rv_rule *rule = &v->agent->routing.rules[v->routed_rule];
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

int rv_end_record(rv_visit *v, enum rv_history_status status, struct rv_effects *out, rv_err **err)
{
    if (!is_suspended(v)) {
        int rc = rv_visit_keep_rows(v, turn_status(v), out, err);
        if (rc == 0 && turn_status(v) == RV_TURN_COMPLETED)
            rc = rv_visible_output(v, out, err);
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

/* Outcome terminate takes effect after routing, so that a stage that cannot be routed fails instead. */
static int end_run(rv_visit *v, rv_err **err)
{
    const char *why = v->end_text ? v->end_text : rv_end_text(v->output, "reason", NULL);
    bool breaks = v->breaks;

    if (v->shared->rules >= RV_RULES_2 && !v->end_text && json_object_is_type(v->output, json_type_object))
        RV_IGNORE(!rv_json_get_bool(v->output, "break", &breaks), "most outputs do not say so");
    return rv_envelope_terminate(v->env, rv_str_of(why ? why : "a stage ended the run"),
                                 breaks ? RV_REASON_BREAK : RV_REASON_COMPLETED, v->now_us, err);
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
        rc = rv_end_record(v, ok_status(v), out, err);
    if (rc == 0)
        rv_end_emit_completed(v, rv_history_status_text(ok_status(v)), v->agent->name, out);
    return rc;
}

int rv_visit_finish(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    int rc = 0;

    if (v->route)
        rv_visit_keep_partial(v);
    if (v->result.outcome == RV_OUTCOME_TERMINATE) {
        rc = end_run(v, err);
        if (rc < 0)
            return rc;
    } else if (v->route && (v->routed_to == RV_TARGET_CLARIFICATION || v->routed_to == RV_TARGET_CONFIRMATION)) {
        v->result.outcome = v->routed_to == RV_TARGET_CLARIFICATION ? RV_OUTCOME_CLARIFY : RV_OUTCOME_CONFIRM;
        rc = rv_end_ask(v, v->result.outcome, out, err);
        if (rc == 0)
            rv_end_emit_decision(v, v->routed_to, v->routed_by, out);
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
        rc = rv_end_record(v, ok_status(v), out, err);
    if (rc < 0)
        return rc;
    rv_end_emit_completed(v, rv_history_status_text(ok_status(v)), next, out);
    if (v->route)
        rv_end_emit_decision(v, v->routed_to, v->routed_by, out);
    return 0;
}
