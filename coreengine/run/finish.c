/* Saving and ending: what a run came to, said once and last (rules 7.2, 7.8, 7.9). */
#include "coreengine/run/run_internal.h"

#include <stdlib.h>
#include <string.h>

#define STATE_MAX_BYTES ((size_t)256 << 20) /* one saved state */

static bool is_due(rv_run *run)
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

int rv_run_save(rv_run *run, struct rv_effects *out, rv_err **err)
{
    rv_buf state = RV_BUF_INIT(STATE_MAX_BYTES);

    if (!is_due(run))
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

const char *rv_run_asked_by(const rv_run *run)
{
    bool is_known = run->shared.rules >= RV_RULES_2 && run->asked_by >= 0;

    return is_known ? run->pipeline->agents[run->asked_by].name : NULL;
}

static const char *asking_stage(const rv_run *run, const struct rv_interrupt *in)
{
    const char *stage = in->stage ? in->stage : rv_run_asked_by(run);

    return stage ? stage : rv_envelope_fields(run->env)->current_stage;
}

static void emit_interrupt(rv_run *run, int64_t now_us, struct rv_effects *out)
{
    struct rv_interrupt in = rv_envelope_interrupt(run->env);
    char time[RV_TIME_MAX];
    rv_jw w;

    if (!in.exists || !rv_emit_begin(&run->shared, out, RV_EMIT_INTERRUPT_PENDING, -1, 0, now_us, &w))
        return;
    rv_jw_kv_text(&w, "stage", asking_stage(run, &in));
    rv_jw_kv_text(&w, "kind", rv_interrupt_kind_text(in.kind));
    rv_jw_kv_text(&w, "id", in.id);
    rv_jw_kv_text(&w, "question", in.question);
    rv_jw_kv_text(&w, "message", in.message);
    rv_jw_kv_value(&w, "data", in.data);
    if (in.expires_at_us) {
        rv_time_format(in.expires_at_us, time);
        rv_jw_kv_text(&w, "expires_at", time);
    }
    rv_emit_end(out, &w);
}

static void write_code(const rv_run *run, rv_jw *w)
{
    enum rv_failure code = rv_envelope_failure(run->env);

    if (run->shared.rules >= RV_RULES_3 && code != RV_FAILURE_NONE)
        rv_jw_kv_text(w, "code", rv_failure_text(code));
}

static void emit_end(rv_run *run, const char *error_text, int64_t now_us, struct rv_effects *out)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(run->env);
    rv_jw w;

    if (error_text && rv_emit_begin(&run->shared, out, RV_EMIT_ERROR, -1, 0, now_us, &w)) {
        rv_jw_kv_text(&w, "stage", f->current_stage);
        rv_jw_kv_text(&w, "error", error_text);
        write_code(run, &w);
        rv_emit_end(out, &w);
    }
    if (!rv_emit_begin(&run->shared, out, RV_EMIT_DONE, -1, 0, now_us, &w))
        return;
    rv_jw_kv_text(&w, "stage", "__end__");
    rv_jw_kv_text(&w, "status", rv_run_status_text(run->status));
    rv_jw_kv_bool(&w, "terminated", f->terminated);
    rv_jw_kv_text(&w, "terminal_reason", rv_reason_text(f->terminal_reason));
    if (run->shared.rules >= RV_RULES_2)
        rv_jw_kv_text(&w, "reason_class", rv_reason_class_text(rv_reason_class_for(f->terminal_reason)));
    rv_jw_kv_text(&w, "termination_reason", f->termination_reason);
    rv_jw_kv_text(&w, "error", error_text);
    write_code(run, &w);
    rv_jw_kv_int(&w, "stage_visits", f->agent_hop_count);
    rv_jw_kv_int(&w, "llm_calls", f->llm_call_count);
    if (!rv_usage_is_zero(&f->usage)) {
        rv_jw_key(&w, "usage");
        rv_usage_write_json(&f->usage, &w);
    }
    rv_emit_end(out, &w);
}

int rv_run_finish(rv_run *run, enum rv_run_status status, const char *error_text, int64_t now_us,
                  struct rv_effects *out, rv_err **err)
{
    run->status = status;
    run->finished = true;
    rv_envelope_set_status(run->env, status);
    if (status == RV_RUN_COMPLETED)
        rv_envelope_complete(run->env, now_us);
    int rc = rv_run_save(run, out, err);
    if (rc < 0)
        return rc;
    if (status == RV_RUN_INTERRUPTED)
        emit_interrupt(run, now_us, out);
    emit_end(run, error_text, now_us, out);
    struct rv_effect *e = rv_effects_add(out, RV_EFFECT_FINISH);
    if (!e)
        return RV_FAIL(err, RV_E_NOMEM, "finish a run");
    e->status = status;
    return 0;
}

int rv_run_give_up_waiting(rv_run *run, const char *why, int64_t now_us, struct rv_effects *out, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < run->pipeline->n_agents && rc == 0; i++)
        rc = rv_visit_give_up(&run->shared, (int)i, run->env, why, now_us, out, err);
    return rc;
}

enum rv_run_status rv_run_failure_status(enum rv_reason reason)
{
    if (reason == RV_REASON_BUDGET || reason == RV_REASON_MAX_LLM_CALLS)
        return RV_RUN_TERMINATED;
    return reason == RV_REASON_USER_CANCELLED ? RV_RUN_CANCELLED : RV_RUN_FAILED;
}

int rv_run_fail(rv_run *run, enum rv_run_status status, enum rv_reason reason, const char *text, int64_t now_us,
                struct rv_effects *out, rv_err **err)
{
    if (rv_envelope_fields(run->env)->terminated) /* the first termination wins (W12); a failure stays in `errors` */
        return rv_run_finish(run, RV_RUN_TERMINATED, NULL, now_us, out, err);
    char *kept = rv_str_dup(rv_str_of(text)); /* text may belong to a visit or to the envelope */
    if (!kept)
        return RV_FAIL(err, RV_E_NOMEM, "end a run");
    int rc = rv_envelope_terminate(run->env, rv_str_of(kept), reason, now_us, err);
    if (rc == 0)
        rc = rv_run_finish(run, status, status == RV_RUN_FAILED ? kept : NULL, now_us, out, err);
    free(kept);
    return rc;
}
