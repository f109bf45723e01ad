/* How a run begins: at its first stage, where a fork stands, or with the answer to an interrupt (rules 7.2 and 7.10).
 */
#include "coreengine/run/run_internal.h"

#include <string.h>

static int initialise(rv_run *run, rv_err **err)
{
    const struct rv_pipeline *p = run->pipeline;
    int mode = run->opts.mode != RV_UNSET ? run->opts.mode : p->default_run_mode;
    const char *first = p->n_agents ? p->agents[0].name : RV_STAGE_END;

    int rc = rv_envelope_set_stage_order(run->env, p->stage_names, p->n_agents, err);
    if (rc == 0)
        rc = rv_envelope_set_stage(run->env, rv_str_of(first), err);
    rv_envelope_set_parallel(run->env, mode == RV_MODE_PARALLEL);
    return rc;
}

void rv_run_hold_bounds(rv_run *run)
{
    const struct rv_pipeline *p = run->pipeline;

    rv_envelope_set_bounds(run->env, p->max_iterations, p->max_llm_calls, p->max_agent_hops);
    if (run->started)
        rv_envelope_set_parallel(run->env, run->parallel);
}

/* What every begin does; nothing of a resumed run's position is touched (W03). */
static int begin(rv_run *run, bool resumed, int64_t now_us, struct rv_effects *out, rv_err **err)
{
    const struct rv_pipeline *p = run->pipeline;
    const struct rv_envelope_fields *f = rv_envelope_fields(run->env);
    rv_jw w;
    int rc = 0;

    rv_run_hold_bounds(run);
    if (strcmp(f->current_stage, RV_STAGE_START) == 0)
        rc = initialise(run, err);
    run->parallel = f->parallel_mode;
    if (rc == 0 && run->parallel)
        rc = rv_run_parallel_begin(run, err);
    if (rc < 0)
        return rc;
    run->started = true;
    run->status = RV_RUN_RUNNING;
    rv_envelope_set_status(run->env, RV_RUN_RUNNING);
    if (rv_emit_begin(&run->shared, out, RV_EMIT_PIPELINE_STARTED, -1, 0, now_us, &w)) {
        rv_jw_kv_text(&w, "pipeline", p->name);
        rv_jw_kv_text(&w, "mode", rv_run_mode_text(run->parallel ? RV_MODE_PARALLEL : RV_MODE_SEQUENTIAL));
        rv_jw_kv_bool(&w, "resumed", resumed);
        rv_jw_kv_text(&w, "envelope_id", f->envelope_id);
        rv_jw_kv_text(&w, "request_id", f->request_id);
        rv_jw_kv_text(&w, "session_id", f->session_id);
        rv_emit_end(out, &w);
    }
    return 0;
}

int rv_run_start(rv_run *run, int64_t now_us, struct rv_effects *out, rv_err **err)
{
    bool starts_over = run->shared.rules >= RV_RULES_2 && !run->opts.continues;
    int rc = starts_over ? rv_envelope_restart(run->env, err) : 0;

    return rc < 0 ? rc : begin(run, false, now_us, out, err);
}

static int go_to(rv_run *run, const char *stage, rv_err **err)
{
    return stage[0] ? rv_envelope_set_stage(run->env, rv_str_of(stage), err) : 0;
}

static int deny(rv_run *run, const char *text, int64_t now_us, struct rv_effects *out, rv_err **err)
{
    int rc = rv_run_give_up_waiting(run, text, now_us, out, err);
    return rc < 0 ? rc : rv_run_fail(run, RV_RUN_TERMINATED, RV_REASON_USER_CANCELLED, text, now_us, out, err);
}

/* Along the edge that the asking stage would have taken, with the output that the person saw. */
static int go_on_approved(rv_run *run, int from, int64_t now_us, struct rv_effects *out, rv_err **err)
{
    const struct rv_agent *asker = &run->pipeline->agents[from];
    json_object *output = rv_envelope_output(run->env, rv_str_of(asker->output.key), NULL), *feedback = NULL;
    int to = RV_TARGET_END;

    int rc = rv_visit_approve(&run->shared, from, run->env, now_us, out, &to, err);
    if (rc < 0 || to == RV_TARGET_CLARIFICATION)
        return rc;
    rc = rv_envelope_set_stage(run->env, rv_str_of(rv_pipeline_target_name(run->pipeline, to)), err);
    if (rc < 0)
        return rc;
    if (to >= 0) {
        if (json_object_is_type(output, json_type_object) && json_object_object_get_ex(output, "feedback", &feedback) &&
            !json_object_is_type(feedback, json_type_string))
            feedback = NULL;
        json_object_get(feedback); /* a loop-back may clear the output */
        rc = rv_run_take_edge(run, from, to, RV_OUTCOME_SUCCESS, feedback, now_us, out, err);
        json_object_put(feedback);
    }
    return rc < 0 || run->finished ? rc : rv_run_save(run, out, err);
}

static int choose_stage(rv_run *run, enum rv_interrupt_kind kind, const struct rv_response *r, int64_t now_us,
                        struct rv_effects *out, rv_err **err)
{
    const struct rv_pipeline *p = run->pipeline;
    int asker;

    switch (kind) {
    case RV_INTERRUPT_CLARIFICATION:
        return go_to(run, p->clarification_resume_stage, err);
    case RV_INTERRUPT_CONFIRMATION:
        if (!r->approved)
            return deny(run, "the user denied the confirmation", now_us, out, err);
        asker = run->parallel || p->confirmation_resume_stage[0]
                    ? -1
                    : rv_visit_asked_by_route(&run->shared, run->env, rv_envelope_interrupt(run->env).data);
        return asker >= 0 ? go_on_approved(run, asker, now_us, out, err)
                          : go_to(run, p->confirmation_resume_stage, err);
    case RV_INTERRUPT_AGENT_REVIEW:
        if (rv_str_is(r->decision, "reject")) {
            if (!p->agent_review_reject_stage[0])
                return deny(run, "the review rejected it", now_us, out, err);
            return go_to(run, p->agent_review_reject_stage, err);
        }
        if (rv_str_is(r->decision, "modify") && r->text.ptr) {
            int rc = rv_envelope_add_feedback(run->env, r->text, err);
            if (rc < 0)
                return rc;
        }
        return go_to(run, p->agent_review_resume_stage, err);
    case RV_INTERRUPT_CHECKPOINT:
    case RV_INTERRUPT_RESOURCE_EXHAUSTED:
    case RV_INTERRUPT_TIMEOUT:
    case RV_INTERRUPT_SYSTEM_ERROR:
    case RV_N_INTERRUPT:
        break;
    }
    return 0;
}

int rv_run_answer(rv_run *run, const struct rv_response *response, int64_t now_us, struct rv_effects *out, rv_err **err)
{
    int rc = rv_envelope_check_response(run->env, response, now_us, err);
    if (rc < 0)
        return rc;
    rc = rv_envelope_select_interrupt(run->env, response->interrupt_id, err);
    if (rc < 0)
        return rc;
    struct rv_interrupt in = rv_envelope_interrupt(run->env);
    bool asks_outcome = rv_interrupt_asks_outcome(in.kind, in.data);
    rc = rv_envelope_resolve(run->env, response, now_us, err);
    if (rc == 0)
        rc = begin(run, true, now_us, out, err);
    if (rc < 0 || asks_outcome) /* the stage that asked goes on with it */
        return rc;
    return choose_stage(run, in.kind, response, now_us, out, err);
}
