/* The phase of a visit that failed: where the error leads, and what of the visit stands (5.7, 7.5). */
#include "coreengine/agent/end_internal.h"

#include <string.h>

/* Rule 7.5: the termination reason of an unrouted failure. Failures of the model are its call, its reply, and fields it
 * left out; a prompt that cannot be made, or an error that the output itself states, is the stage's. */
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

int rv_visit_failed(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    const char *type = v->error_type;
    enum visit_phase failed_in = v->failed_in;
    rv_str name = rv_str_of(v->agent->name), text = rv_str_of(v->error_text);
    int to = v->agent->routing.error_target;
    bool cancelled = strcmp(type, "CancelledError") == 0;

    if (v->tools.n_pending > 0) { /* what the agents that were asked have done belongs to the rows */
        int ended = rv_pending_cancel(v, NULL, out, err);
        if (ended < 0)
            return ended;
    }
    if (v->model.new_calls) { /* they become rows, with the reason why they were not made */
        int named = rv_messages_tell_apart(v, v->model.new_calls, err);
        if (named < 0)
            return named;
    }
    rv_err_free(rv_visit_root(v->shared)->failure);
    rv_visit_root(v->shared)->failure = v->failure;
    v->failure = NULL;
    v->result.end = RV_VISIT_FAILED;
    v->result.outcome = RV_OUTCOME_ERROR;
    v->result.error_text = v->error_text;
    v->result.reason = reason_of(v, type, failed_in);
    rv_visible_partial(v);
    v->result.next = cancelled ? RV_TARGET_NONE : to;
    int rc = failed_in == PHASE_CHAIN ? 0 : rv_end_restore(v, err); /* the output of a chain stands */
    if (rc == 0)
        rc = rv_envelope_add_error(v->env, name, text, type, v->shared->rules >= RV_RULES_3 ? v->code : RV_FAILURE_NONE,
                                   v->now_us, err);
    if (rc == 0)
        rc = rv_end_record(v, RV_HISTORY_ERROR, out, err);
    const char *next = v->result.next == RV_TARGET_NONE ? NULL : rv_pipeline_target_name(v->shared->pipeline, to);
    if (rc == 0)
        rv_end_emit_completed(v, "error", next, out);
    if (rc < 0 || v->result.next == RV_TARGET_NONE)
        return rc;
    if (v->route)
        rv_end_emit_decision(v, to, RV_ROUTE_ERROR, out);
    if (to == RV_TARGET_CLARIFICATION || to == RV_TARGET_CONFIRMATION) {
        enum rv_interrupt_kind kind =
            to == RV_TARGET_CLARIFICATION ? RV_INTERRUPT_CLARIFICATION : RV_INTERRUPT_CONFIRMATION;
        v->result.end = RV_VISIT_STAYED;
        v->result.next = v->agent->index;
        return rv_end_ask_after_failure(v, kind, err);
    }
    return v->route ? rv_envelope_set_stage(v->env, rv_str_of(next), err) : 0;
}
