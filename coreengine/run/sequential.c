/* One stage after the other, by routing: edges and loop-backs (rules 7.3 to 7.6). How often a run may loop back, and
 * why, is also bounded by the `execution` section (rule 4.6): each bound applies where the file gives it, so that no
 * pipeline that says nothing of them stops earlier than its own bounds. */
#include "coreengine/run/run_internal.h"

#include <string.h>

static bool rejects(const rv_run *run, int from, enum rv_outcome outcome)
{
    json_object *output = rv_envelope_output(run->env, rv_str_of(run->pipeline->agents[from].output.key), NULL);
    const char *verdict = NULL;

    if (outcome == RV_OUTCOME_LOOP_BACK)
        return true;
    return json_object_is_type(output, json_type_object) && rv_json_get_text(output, "verdict", &verdict) &&
           strcmp(verdict, rv_verdict_text(RV_VERDICT_LOOP_BACK)) == 0;
}

static void too_many(rv_buf *why, const char *what, const char *key, int64_t limit)
{
    if (why->len == 0)
        rv_buf_printf(why, "%s: execution.%s allows %lld", what, key, (long long)limit);
}

/* A loop-back from that stage is about to be taken: count it by its causes. Where one of them has none left, why gets
 * a text that can follow "edge a -> b ". */
static int count_loop(rv_run *run, int from, enum rv_outcome outcome, rv_buf *why, rv_err **err)
{
    const struct rv_execution_config *x = &run->pipeline->execution;
    rv_str name = rv_str_of(run->pipeline->agents[from].name);
    int64_t of_stage, of_all;
    int rc = 0;

    if (run->shared.rules < RV_RULES_2)
        return 0;
    if (x->has_max_replan_iterations && outcome == RV_OUTCOME_REPLAN) {
        rc = rv_envelope_count_loop(run->env, RV_LOOP_REPLAN, name, &of_stage, &of_all, err);
        if (rc == 0 && of_all > x->max_replan_iterations)
            too_many(why, "would plan again too often", "max_replan_iterations", x->max_replan_iterations);
    }
    if (rc == 0 && x->has_max_loop_back_rejections && rejects(run, from, outcome)) {
        rc = rv_envelope_count_loop(run->env, RV_LOOP_REJECTION, name, &of_stage, &of_all, err);
        if (rc == 0 && of_stage > x->max_loop_back_rejections)
            too_many(why, "was asked for too often", "max_loop_back_rejections", x->max_loop_back_rejections);
    }
    if (rc == 0 && x->has_max_loop_iterations &&
        rv_envelope_fields(run->env)->iteration >= x->max_loop_iterations) /* this one is not counted there yet */
        too_many(why, "would loop back too often", "max_loop_iterations", x->max_loop_iterations);
    return rc;
}

/* why: what follows the names of the edge. */
static int stop_at_edge(rv_run *run, int from, int to, const char *why, int64_t now_us, struct rv_effects *out,
                        rv_err **err)
{
    int rc = rv_envelope_set_stage(run->env, RV_STR_LIT(RV_STAGE_END), err);

    return rc < 0 ? rc
                  : rv_run_stop(run, RV_RUN_TERMINATED, RV_REASON_MAX_LOOP, now_us, out, err, "edge %.*s -> %.*s %s",
                                RV_STR_ARG(rv_run_shown(run->pipeline->agents[from].name)),
                                RV_STR_ARG(rv_run_shown(run->pipeline->agents[to].name)), why);
}

static int loop_back(rv_run *run, int from, int to, json_object *feedback, int64_t now_us, struct rv_effects *out,
                     rv_err **err)
{
    struct rv_reset_rules rules = rv_pipeline_reset_rules(run->pipeline);
    rv_str text = feedback ? rv_json_str(feedback) : (rv_str){NULL, 0};

    int rc = rv_envelope_increment_iteration(run->env, text, &rules, err);
    if (rc < 0)
        return rc;
    rv_run_emit(run, out, RV_EMIT_ITERATION, now_us, RV_M_INT("iteration", rv_envelope_fields(run->env)->iteration),
                RV_M_TEXT("from", run->pipeline->agents[from].name), RV_M_TEXT("to", run->pipeline->agents[to].name),
                RV_M_IF(feedback, RV_M_STR("feedback", text)));
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
        return stop_at_edge(run, from, to, "loops back, which execution.enable_loop_back forbids", now_us, out, err);
    if (rc == 0 && to <= from) {
        rc = count_loop(run, from, outcome, &why, err);
        if (rc == 0)
            rc = rv_buf_check(&why, "reason", err);
        if (rc == 0)
            rc = loop_back(run, from, to, feedback, now_us, out, err);
    }
    if (rc == 0 && limit > 0 && used > limit) { /* its own limit is named first */
        rv_buf_clear(&why);
        rv_buf_printf(&why, "was used as often as its limit (%lld) allows", (long long)limit);
        rc = rv_buf_check(&why, "reason", err);
    }
    if (rc == 0 && why.len > 0)
        rc = stop_at_edge(run, from, to, rv_buf_cstr(&why), now_us, out, err);
    rv_buf_fini(&why);
    return rc;
}

/* A visit is over: follow where it leads. */
static int after_visit(rv_run *run, int64_t now_us, struct rv_effects *out, rv_err **err)
{
    const struct rv_visit_result *r = rv_work_result(run->work);
    int from = rv_work_stage(run->work), rc = 0;

    if (r->end == RV_VISIT_FAILED && r->next == RV_TARGET_NONE) {
        rc = rv_run_fail_by(run, run->work, now_us, out, err);
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
    rv_work_free(run->work);
    run->work = NULL;
    run->asked_by = rv_envelope_has_interrupt(run->env) ? from : -1;
    return rc;
}

static int begin_visit(rv_run *run, int stage, int64_t now_us, struct rv_effects *out, rv_err **err)
{
    bool counts = !rv_visit_goes_on(&run->shared, stage, run->env); /* else it is a visit that was begun before */
    bool llm = counts && rv_stage_calls_llm(&run->shared, stage);

    run->asked_by = -1;
    run->shared.llm_left = rv_envelope_left(run->env).llm_calls - llm;
    run->shared.hops_left = rv_envelope_left(run->env).hops - counts;
    rv_calls_take(run->shared.up, llm);
    rv_hops_take(run->shared.up, counts);
    return rv_work_begin(&run->shared, stage, run->env, &run->place, true, llm, now_us, out, &run->work, err);
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
    if (stage >= 0 && !f->interrupt_pending && rv_visit_goes_on(&run->shared, stage, run->env))
        return begin_visit(run, stage, now_us, out, err);
    bool stopped = false;
    int rc = f->interrupt_pending ? 0 : rv_run_stop_outside(run, llm, &stopped, now_us, out, err);
    if (rc < 0 || stopped)
        return rc;
    if (!rv_envelope_can_continue(run->env, llm, &reason))
        return reason == RV_REASON_NONE ? rv_run_finish(run, RV_RUN_INTERRUPTED, NULL, now_us, out, err)
                                        : rv_run_stop_at_bound(run, reason, now_us, out, err);
    if (stage < 0)
        return rv_run_stop(run, RV_RUN_FAILED, RV_REASON_TOOL_FAILED, now_us, out, err, "unknown stage \"%.*s\"",
                           RV_STR_ARG(rv_run_shown(f->current_stage)));
    if (!rv_run_visits_left(run, stage))
        return rv_run_stop_at_visits(run, stage, now_us, out, err);
    return begin_visit(run, stage, now_us, out, err);
}

int rv_run_sequential(rv_run *run, int64_t now_us, struct rv_effects *out, rv_err **err)
{
    int rc = 0;

    while (rc == 0 && !run->finished) {
        if (!run->work)
            rc = next_visit(run, now_us, out, err);
        else if (rv_work_is_done(run->work))
            rc = after_visit(run, now_us, out, err);
        else
            return 0; /* it waits */
    }
    return rc;
}
