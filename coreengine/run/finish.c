/* Bounds and ends: what stops a run, saving its state, and its result, told once and last (rules 7.2, 7.5, 7.8,
 * 7.9). */
#include "coreengine/run/group_internal.h"

#include <stdlib.h>
#include <string.h>

#define STATE_MAX_BYTES ((size_t)256 << 20) /* one saved state: as RV_STORE_MAX_VALUE, in which it is kept */

/* Counts a boundary: a place where the state can be saved. Is it to be saved at this one? */
static bool count_boundary(rv_run *run)
{
    switch (run->opts.saves) {
    case RV_SAVES_NONE:
        return false;
    case RV_SAVES_SOME:
        run->n_boundaries++;
        return run->finished || run->n_boundaries - run->last_saved > run->last_saved / 8;
    case RV_SAVES_EACH:
        return true;
    }
    return false;
}

int run_save(rv_run *run, struct rv_effects *out, rv_err **err)
{
    rv_buf state = RV_BUF_INIT(STATE_MAX_BYTES);

    bool in_group =
        run->main.held || run->main.opened || run->main.joined; /* values of groups and joins are not in the state */

    if ((in_group && !run->finished) || !count_boundary(run))
        return 0;
    run->last_saved = run->n_boundaries;
    rv_envelope_write_state(run->env, &state);
    int rc = rv_buf_check(&state, "state", err);
    struct rv_effect *e = rc == 0 ? rv_effects_add(out, RV_EFFECT_SAVE) : NULL;
    if (rc == 0 && !e)
        rc = RV_FAIL(err, RV_E_NOMEM, "save the state");
    if (e)
        e->request = rv_buf_steal(&state, &e->request_len);
    rv_buf_fini(&state);
    return rc;
}

const char *rv_run_question_stage(const rv_run *run)
{
    bool is_known = run->shared.rules >= RV_RULES_2 && run->main.asked_by >= 0;

    return is_known ? run->pipeline->agents[run->main.asked_by].name : NULL;
}

static const char *asking_stage(const rv_run *run, const struct rv_interrupt *in)
{
    const char *stage = in->stage ? in->stage : rv_run_question_stage(run);

    return stage ? stage : rv_envelope_fields(run->env)->current_stage;
}

static void emit_interrupt(rv_run *run, struct rv_effects *out)
{
    struct rv_interrupt in = rv_envelope_interrupt(run->env);

    if (!in.exists)
        return;
    rv_run_emit(run, out, RV_EMIT_INTERRUPT_PENDING, RV_M_TEXT("stage", asking_stage(run, &in)),
                RV_M_TEXT("kind", rv_interrupt_kind_text(in.kind)), RV_M_TEXT("id", in.id),
                RV_M_TEXT("question", in.question), RV_M_TEXT("message", in.message), RV_M_OF(VALUE, "data", in.data),
                RV_M_IF(in.expires_at_us,
                        ((struct rv_member){.key = "expires_at", .kind = RV_MEMBER_TIME, .n = in.expires_at_us})));
}

/* NULL: the run has no code of a failure. */
static const char *code_of(const rv_run *run)
{
    enum rv_failure code = rv_envelope_failure(run->env, NULL);

    return run->shared.rules >= RV_RULES_3 && code != RV_FAILURE_NONE ? rv_failure_text(code) : NULL;
}

static void emit_end(rv_run *run, const char *error_text, struct rv_effects *out)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(run->env);
    const struct rv_envelope_used used = rv_run_used(run);
    const struct rv_usage *usage = run->shared.rules >= RV_RULES_10 ? &used.usage : &f->usage;
    const char *code = code_of(run);

    if (error_text)
        rv_run_emit(run, out, RV_EMIT_ERROR, RV_M_TEXT("stage", f->current_stage), RV_M_TEXT("error", error_text),
                    RV_M_IF(code, RV_M_TEXT("code", code)));
    rv_run_emit(run, out, RV_EMIT_DONE, RV_M_TEXT("stage", "__end__"),
                RV_M_TEXT("status", rv_run_status_text(run->status)), RV_M_BOOL("terminated", f->terminated),
                RV_M_TEXT("terminal_reason", rv_reason_text(f->terminal_reason)),
                RV_M_IF(run->shared.rules >= RV_RULES_2,
                        RV_M_TEXT("reason_class", rv_reason_class_text(rv_reason_class_for(f->terminal_reason)))),
                RV_M_TEXT("termination_reason", f->termination_reason), RV_M_TEXT("error", error_text),
                RV_M_IF(code, RV_M_TEXT("code", code)), RV_M_INT("stage_visits", used.hops),
                RV_M_INT("llm_calls", used.llm_calls), RV_M_IF(!rv_usage_is_zero(usage), RV_M_USAGE("usage", usage)));
}

int run_finish(rv_run *run, enum rv_run_status status, const char *error_text, struct rv_effects *out, rv_err **err)
{
    int rc = status == RV_RUN_INTERRUPTED ? questions_show(run, err)
                                          : run_group_close_all(run, "the run has ended", NULL, out, err);

    if (rc == 0 && !run->is_inner)
        rc = rv_envelope_add_withdrawn(run->env, run->shared.withdrawn, err);
    if (rc < 0)
        return rc;
    run->status = status;
    run->finished = true;
    rv_envelope_set_status(run->env, status);
    if (status == RV_RUN_COMPLETED)
        rv_envelope_complete(run->env, out->now_us);
    if (run->is_inner) /* the visit around it tells how it ended */
        return 0;
    rc = run_save(run, out, err);
    if (rc < 0)
        return rc;
    if (status == RV_RUN_INTERRUPTED)
        emit_interrupt(run, out);
    emit_end(run, error_text, out);
    struct rv_effect *e = rv_effects_add(out, RV_EFFECT_FINISH);
    if (!e)
        return RV_FAIL(err, RV_E_NOMEM, "finish a run");
    e->status = status;
    return 0;
}

enum rv_run_status run_failure_status(const struct rv_visit_result *r)
{
    enum rv_reason reason = r->reason;

    if (r->bound_of)
        return RV_RUN_TERMINATED;
    if (r->is_given && reason != RV_REASON_USER_CANCELLED)
        return RV_RUN_FAILED;
    if (reason == RV_REASON_BUDGET || reason == RV_REASON_MAX_LLM_CALLS)
        return RV_RUN_TERMINATED;
    return reason == RV_REASON_USER_CANCELLED ? RV_RUN_CANCELLED : RV_RUN_FAILED;
}

int run_fail(rv_run *run, enum rv_run_status status, enum rv_reason reason, const char *text, struct rv_effects *out,
             rv_err **err)
{
    if (rv_envelope_fields(run->env)->terminated) /* the first termination wins (W12); a failure stays in `errors` */
        return run_finish(run, RV_RUN_TERMINATED, NULL, out, err);
    char *kept = rv_str_dup(rv_str_of(text)); /* text may belong to a visit or to the envelope */
    if (!kept)
        return RV_FAIL(err, RV_E_NOMEM, "end a run");
    rv_err *cause = NULL; /* a turn that cannot be kept does not hold up the end */
    int rc = run->shared.rules >= RV_RULES_9 ? run_give_up_waiting(run, &run->main, kept, out, &cause) : 0;
    if (rc != RV_E_NOMEM) {
        rv_err_free(cause);
        rc = 0;
    } else {
        rv_err_pass(err, cause);
    }
    if (rc == 0)
        rc = rv_envelope_terminate(run->env, rv_str_of(kept), reason, out->now_us, err);
    if (rc == 0)
        rc = run_finish(run, status, status == RV_RUN_FAILED ? kept : NULL, out, err);
    free(kept);
    return rc;
}

void run_hold_bounds(rv_run *run, struct branch *b)
{
    const struct rv_pipeline *p = run->pipeline;

    rv_envelope_set_bounds(b->env, p->max_iterations, p->max_llm_calls, p->max_agent_hops);
    if (run->started)
        rv_envelope_set_parallel(b->env, run->parallel);
}

int run_stop(rv_run *run, enum rv_run_status status, enum rv_reason reason, struct rv_effects *out, rv_err **err,
             const char *fmt, ...)
{
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    va_list args;

    va_start(args, fmt);
    rv_buf_vprintf(&text, fmt, args);
    va_end(args);
    int rc = rv_buf_check(&text, "reason", err);
    if (rc == 0)
        rc = run_fail(run, status, reason, rv_buf_cstr(&text), out, err);
    rv_buf_fini(&text);
    return rc;
}

static int stop_with(rv_run *run, enum rv_reason reason, int64_t most, const char *stage, struct rv_effects *out,
                     rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);

    run_bound_write(reason, most, stage, &text);
    int rc = rv_buf_check(&text, "reason", err);
    if (rc == 0)
        rc = run_fail(run, RV_RUN_TERMINATED, reason, rv_buf_cstr(&text), out, err);
    rv_buf_fini(&text);
    return rc;
}

int run_stop_at_bound(rv_run *run, enum rv_reason reason, struct rv_effects *out, rv_err **err)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(run->env);
    int64_t most = reason == RV_REASON_MAX_ITERATIONS  ? f->max_iterations
                   : reason == RV_REASON_MAX_LLM_CALLS ? f->max_llm_calls
                                                       : f->max_agent_hops;

    return stop_with(run, reason, most, NULL, out, err);
}

int run_stop_outside(rv_run *run, bool llm, bool *stopped, struct rv_effects *out, rv_err **err)
{
    enum rv_reason reason;

    run->stopped_by = rv_bound_choose(run->shared.up, llm ? RV_NEEDS_CALL | RV_NEEDS_VISIT : RV_NEEDS_VISIT, &reason);
    *stopped = run->stopped_by != NULL;
    if (!*stopped)
        return 0;
    return stop_with(run, reason, run_bound_most(run->stopped_by->pipeline, reason), NULL, out, err);
}

/* Copies, because the visit that failed is freed before the caller of the run reads them. */
static int keep_type(rv_run *run, const char *type, rv_err **err)
{
    char *kept = type ? rv_str_dup(rv_str_of(type)) : NULL;

    if (type && !kept)
        return RV_FAIL(err, RV_E_NOMEM, "end a run");
    free(run->failed_type);
    run->failed_type = kept;
    return 0;
}

int run_write_failed_stage(const rv_run *run, int stage, const struct rv_visit_result *r, rv_buf *out, rv_err **err)
{
    rv_buf_puts(out, run->pipeline->agents[stage].name);
    if (r->error_stage)
        rv_buf_printf(out, "/%s", r->error_stage);
    return rv_buf_check(out, "the name of a stage", err);
}

int run_fail_by(rv_run *run, rv_work *work, struct rv_effects *out, rv_err **err)
{
    const struct rv_visit_result *r = run_work_result(work);
    rv_buf stage = RV_BUF_INIT(RV_JSON_MAX_BYTES);

    run->stopped_by = r->bound_of != &run->shared ? r->bound_of : NULL;
    run->failed_code = r->code;
    int rc = run_write_failed_stage(run, run_work_stage(work), r, &stage, err);
    if (rc == 0)
        rc = keep_type(run, r->error_type, err);
    free(run->failed_stage);
    run->failed_stage = rc == 0 ? rv_buf_steal(&stage, NULL) : NULL;
    rv_buf_fini(&stage);
    return rc < 0 ? rc : run_fail(run, run_failure_status(r), r->reason, r->error_text, out, err);
}

int run_fail_with(rv_run *run, const struct failure *f, struct rv_effects *out, rv_err **err)
{
    char *stage = rv_str_dup(rv_str_of(f->stage));

    if (!stage)
        return RV_FAIL(err, RV_E_NOMEM, "end a run");
    run->stopped_by = f->bound_of != &run->shared ? f->bound_of : NULL;
    run->failed_code = f->code;
    free(run->failed_stage);
    run->failed_stage = stage;
    int rc = keep_type(run, f->type, err);
    if (rc < 0)
        return rc;
    return run_fail(run, f->status, f->reason, f->text, out, err);
}

bool run_visits_left(const rv_run *run, int stage)
{
    const struct rv_agent *a = &run->pipeline->agents[stage];
    rv_str name = rv_str_of(a->name);

    if (a->limits.max_visits == 0 || rv_envelope_visits(run->env, name) < a->limits.max_visits)
        return true;
    return rv_envelope_suspended(run->env, name) != NULL; /* it goes on with a visit that was paused */
}

int run_stop_at_visits(rv_run *run, int stage, struct rv_effects *out, rv_err **err)
{
    const struct rv_agent *a = &run->pipeline->agents[stage];

    return stop_with(run, RV_REASON_MAX_VISITS, a->limits.max_visits, a->name, out, err);
}
