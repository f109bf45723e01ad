/* One stage after the other, by routing: bounds, edges, loop-backs (rules 7.3 to 7.6). */
#include "coreengine/run/run_internal.h"

#include <string.h>

/* A stage's name in a message. */
static rv_str shown(const char *stage)
{
    return rv_utf8_cut(rv_str_of(stage), 200);
}

int rv_run_stop_at_bound(rv_run *run, enum rv_reason reason, int64_t now_us, struct rv_effects *out, rv_err **err)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(run->env);
    rv_buf text = RV_BUF_INIT(512);

    if (reason == RV_REASON_MAX_ITERATIONS)
        rv_buf_printf(&text, "the run looped back more often than max_iterations (%lld) allows",
                      (long long)f->max_iterations);
    else if (reason == RV_REASON_MAX_LLM_CALLS)
        rv_buf_printf(&text, "all model calls that max_llm_calls (%lld) allows were made", (long long)f->max_llm_calls);
    else
        rv_buf_printf(&text, "all stage visits that max_agent_hops (%lld) allows were made",
                      (long long)f->max_agent_hops);
    int rc = rv_buf_check(&text, "reason", err);
    if (rc == 0)
        rc = rv_run_fail(run, RV_RUN_TERMINATED, reason, rv_buf_cstr(&text), now_us, out, err);
    rv_buf_fini(&text);
    return rc;
}

bool rv_run_visits_left(const rv_run *run, int stage)
{
    const struct rv_agent *a = &run->pipeline->agents[stage];
    rv_str name = rv_str_of(a->name);

    if (a->limits.max_visits == 0 || rv_envelope_visits(run->env, name) < a->limits.max_visits)
        return true;
    return rv_envelope_suspended(run->env, name) != NULL; /* it goes on with a visit that was paused */
}

int rv_run_stop_at_visits(rv_run *run, int stage, int64_t now_us, struct rv_effects *out, rv_err **err)
{
    const struct rv_agent *a = &run->pipeline->agents[stage];
    rv_buf text = RV_BUF_INIT(1024);

    rv_buf_printf(&text, "stage \"%.*s\" was visited as often as its max_visits (%lld) allows",
                  RV_STR_ARG(shown(a->name)), (long long)a->limits.max_visits);
    int rc = rv_buf_check(&text, "reason", err);
    if (rc == 0)
        rc = rv_run_fail(run, RV_RUN_TERMINATED, RV_REASON_MAX_VISITS, rv_buf_cstr(&text), now_us, out, err);
    rv_buf_fini(&text);
    return rc;
}

static int stop_at_edge(rv_run *run, int from, int to, const char *why, int64_t limit, int64_t now_us,
                        struct rv_effects *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(1024);

    rv_buf_printf(&text, "edge %.*s -> %.*s ", RV_STR_ARG(shown(run->pipeline->agents[from].name)),
                  RV_STR_ARG(shown(run->pipeline->agents[to].name)));
    if (limit > 0)
        rv_buf_printf(&text, "was used as often as its limit (%lld) allows", (long long)limit);
    else
        rv_buf_puts(&text, why);
    int rc = rv_buf_check(&text, "reason", err);
    if (rc == 0)
        rc = rv_envelope_set_stage(run->env, RV_STR_LIT(RV_STAGE_END), err);
    if (rc == 0)
        rc = rv_run_fail(run, RV_RUN_TERMINATED, RV_REASON_MAX_LOOP, rv_buf_cstr(&text), now_us, out, err);
    rv_buf_fini(&text);
    return rc;
}

static int loop_back(rv_run *run, int from, int to, json_object *feedback, int64_t now_us, struct rv_effects *out,
                     rv_err **err)
{
    struct rv_reset_rules rules = rv_pipeline_reset_rules(run->pipeline);
    rv_str text = feedback ? rv_json_str(feedback) : (rv_str){NULL, 0};
    rv_jw w;

    int rc = rv_envelope_increment_iteration(run->env, text, &rules, err);
    if (rc < 0)
        return rc;
    if (rv_emit_begin(&run->shared, out, RV_EMIT_ITERATION, -1, 0, now_us, &w)) {
        rv_jw_kv_int(&w, "iteration", rv_envelope_fields(run->env)->iteration);
        rv_jw_kv_text(&w, "from", run->pipeline->agents[from].name);
        rv_jw_kv_text(&w, "to", run->pipeline->agents[to].name);
        if (feedback)
            rv_jw_kv_str(&w, "feedback", text);
        rv_emit_end(out, &w);
    }
    return 0;
}

/* Rule 7.4, in this order: count, loop back, limits. A self-edge is a loop-back (W04). */
int rv_run_take_edge(rv_run *run, int from, int to, enum rv_outcome outcome, json_object *feedback, int64_t now_us,
                     struct rv_effects *out, rv_err **err)
{
    rv_str a = rv_str_of(run->pipeline->agents[from].name), b = rv_str_of(run->pipeline->agents[to].name);
    int64_t used = 0, limit = rv_pipeline_edge_limit(run->pipeline, from, to);
    rv_buf why = RV_BUF_INIT(512);

    int rc = rv_envelope_count_edge(run->env, a, b, &used, err);
    if (rc == 0 && to <= from && !run->pipeline->execution.enable_loop_back)
        return stop_at_edge(run, from, to, "loops back, which execution.enable_loop_back forbids", 0, now_us, out, err);
    if (rc == 0 && to <= from) {
        rc = rv_run_count_loop(run, from, outcome, &why, err);
        if (rc == 0)
            rc = rv_buf_check(&why, "reason", err);
        if (rc == 0)
            rc = loop_back(run, from, to, feedback, now_us, out, err);
    }
    if (rc == 0 && (limit > 0 && used > limit))
        rc = stop_at_edge(run, from, to, NULL, limit, now_us, out, err);
    else if (rc == 0 && why.len > 0)
        rc = stop_at_edge(run, from, to, rv_buf_cstr(&why), 0, now_us, out, err);
    rv_buf_fini(&why);
    return rc;
}

/* A visit is over: follow where it leads. */
static int after_visit(rv_run *run, int64_t now_us, struct rv_effects *out, rv_err **err)
{
    const struct rv_visit_result *r = rv_visit_result(run->visit);
    int from = rv_visit_stage(run->visit), rc = 0;

    if (r->end == RV_VISIT_FAILED && r->next == RV_TARGET_NONE) {
        rc = rv_run_fail(run, rv_run_failure_status(r->reason), r->reason, r->error_text, now_us, out, err);
    } else {
        bool moves = r->end != RV_VISIT_STAYED && r->outcome != RV_OUTCOME_TERMINATE && r->next >= 0;
        bool looped = moves && r->next <= from;
        if (r->feedback && rv_outcome_requires_loop(r->outcome) && !looped)
            rc = rv_envelope_add_feedback(run->env, rv_json_str(r->feedback), err);
        if (rc == 0 && moves)
            rc = rv_run_take_edge(run, from, r->next, r->outcome, r->feedback, now_us, out, err);
        if (rc == 0 && !run->finished)
            rc = rv_run_save(run, out, err);
    }
    rv_visit_free(run->visit);
    run->visit = NULL;
    run->asked_by = rv_envelope_has_interrupt(run->env) ? from : -1;
    return rc;
}

static int begin_visit(rv_run *run, int stage, int64_t now_us, struct rv_effects *out, rv_err **err)
{
    bool llm = rv_stage_calls_llm(&run->shared, stage);

    run->asked_by = -1;
    run->shared.llm_left = rv_envelope_left(run->env).llm_calls - (llm ? 1 : 0);
    return rv_visit_begin(&run->shared, stage, run->env, true, llm, now_us, out, &run->visit, err);
}

static int next_visit(rv_run *run, int64_t now_us, struct rv_effects *out, rv_err **err)
{
    const struct rv_envelope_fields *f = rv_envelope_fields(run->env);
    enum rv_reason reason = RV_REASON_NONE;

    rv_run_hold_bounds(run);
    if (f->terminated)
        return rv_run_finish(run, RV_RUN_TERMINATED, NULL, now_us, out, err);
    if (strcmp(f->current_stage, RV_STAGE_END) == 0)
        return rv_run_finish(run, f->interrupt_pending ? RV_RUN_INTERRUPTED : RV_RUN_COMPLETED, NULL, now_us, out, err);
    int stage = rv_pipeline_stage(run->pipeline, rv_str_of(f->current_stage));
    bool llm = stage >= 0 && rv_stage_calls_llm(&run->shared, stage);
    if (!rv_envelope_can_continue(run->env, llm, &reason))
        return reason == RV_REASON_NONE ? rv_run_finish(run, RV_RUN_INTERRUPTED, NULL, now_us, out, err)
                                        : rv_run_stop_at_bound(run, reason, now_us, out, err);
    if (stage < 0) {
        rv_buf text = RV_BUF_INIT(1024);
        rv_buf_printf(&text, "unknown stage \"%.*s\"", RV_STR_ARG(shown(f->current_stage)));
        int rc = rv_buf_check(&text, "reason", err);
        if (rc == 0)
            rc = rv_run_fail(run, RV_RUN_FAILED, RV_REASON_TOOL_FAILED, rv_buf_cstr(&text), now_us, out, err);
        rv_buf_fini(&text);
        return rc;
    }
    if (!rv_run_visits_left(run, stage))
        return rv_run_stop_at_visits(run, stage, now_us, out, err);
    return begin_visit(run, stage, now_us, out, err);
}

int rv_run_sequential(rv_run *run, int64_t now_us, struct rv_effects *out, rv_err **err)
{
    int rc = 0;

    while (rc == 0 && !run->finished) {
        if (!run->visit)
            rc = next_visit(run, now_us, out, err);
        else if (rv_visit_is_done(run->visit))
            rc = after_visit(run, now_us, out, err);
        else
            return 0; /* it waits */
    }
    return rc;
}
