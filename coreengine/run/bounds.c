/* Bounds over all branches of a run, and how a run stops at one while other visits are under way: nothing new begins,
 * what is under way ends, then the run does. From the first group on, the totals of all branches are kept beside the
 * envelopes, whose counts show each branch only its own. */
#include "coreengine/run/run_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void run_totals_fini(struct totals *t)
{
    free(t->of_stage);
    free(t->rejections);
    free(t->of_edge);
    *t = (struct totals){0};
}

/* What a branch has used itself. Its money was not counted again before RV_RULES_9. */
static void add_branch(rv_run *run, const struct branch *b)
{
    const rv_envelope *env = b->env, *under = b->group->opener->env;
    const struct rv_envelope_used used = rv_envelope_used(env);
    const struct rv_pipeline *p = run->pipeline;
    struct totals *t = &run->totals;

    t->visits += used.hops;
    t->llm_calls += used.llm_calls;
    t->iterations += used.iterations;
    if (run->shared.rules >= RV_RULES_9 || run->opts.is_snapshot)
        run->shared.spent_micro_usd = rv_plus(run->shared.spent_micro_usd, used.usage.cost_micro_usd);
    for (size_t i = 0; i < p->n_agents; i++) {
        rv_str name = rv_str_of(p->agents[i].name);

        t->of_stage[i] += rv_envelope_visits(env, name) - rv_envelope_visits(under, name);
        t->rejections[i] +=
            rv_envelope_loops(env, RV_LOOP_REJECTION, name) - rv_envelope_loops(under, RV_LOOP_REJECTION, name);
        t->replans += rv_envelope_loops(env, RV_LOOP_REPLAN, name) - rv_envelope_loops(under, RV_LOOP_REPLAN, name);
    }
    for (size_t i = 0; i < p->n_edge_limits; i++) {
        rv_str from = rv_str_of(p->edge_limits[i].from_name), to = rv_str_of(p->edge_limits[i].to_name);

        t->of_edge[i] += rv_envelope_passages(env, from, to) - rv_envelope_passages(under, from, to);
    }
}

int run_totals_begin(rv_run *run, rv_err **err)
{
    const struct rv_pipeline *p = run->pipeline;
    const struct rv_envelope_fields *f = rv_envelope_fields(run->env);
    struct totals *t = &run->totals;

    if (t->is_on)
        return 0;
    int rc = rv_envelope_expect_questions(run->env, err);
    if (rc < 0)
        return rc;
    t->of_stage = calloc(p->n_agents + 1, sizeof *t->of_stage);
    t->rejections = calloc(p->n_agents + 1, sizeof *t->rejections);
    t->of_edge = calloc(p->n_edge_limits + 1, sizeof *t->of_edge);
    if (!t->of_stage || !t->rejections || !t->of_edge)
        return RV_FAIL(err, RV_E_NOMEM, "count what branches use");
    t->visits = f->agent_hop_count;
    t->llm_calls = f->llm_call_count;
    t->iterations = f->iteration;
    for (size_t i = 0; i < p->n_agents; i++) {
        rv_str name = rv_str_of(p->agents[i].name);

        t->of_stage[i] = rv_envelope_visits(run->env, name);
        t->rejections[i] = rv_envelope_loops(run->env, RV_LOOP_REJECTION, name);
        t->replans += rv_envelope_loops(run->env, RV_LOOP_REPLAN, name);
    }
    for (struct branch *b = &run->main; b; b = run_branch_next(b)) /* a loaded run has other branches already */
        if (b->group)
            add_branch(run, b);
    for (size_t i = 0; i < p->n_edge_limits; i++)
        t->of_edge[i] += rv_envelope_passages(run->env, rv_str_of(p->edge_limits[i].from_name),
                                              rv_str_of(p->edge_limits[i].to_name));
    run->shared.llm_left = p->max_llm_calls - t->llm_calls;
    run->shared.hops_left = p->max_agent_hops - t->visits;
    t->is_on = true;
    return 0;
}

bool run_branch_calls_llm(const rv_run *run, const struct branch *b, int stage)
{
    return rv_stage_calls_llm(&run->shared, stage) && !b->missed.text &&
           !rv_visit_is_cancelled(&run->shared, stage, b->env);
}

/* Rule: visits of the stage, loop-backs, model calls, visits. The limit of an edge is looked at when it is taken. */
enum rv_reason run_bound_at(const rv_run *run, const struct branch *b, int stage)
{
    const struct rv_pipeline *p = run->pipeline;
    const struct rv_agent *a = &p->agents[stage];
    const struct totals *t = &run->totals;

    if (a->limits.max_visits > 0 && t->of_stage[stage] >= a->limits.max_visits &&
        !rv_envelope_suspended(b->env, rv_str_of(a->name)))
        return RV_REASON_MAX_VISITS;
    if (t->iterations > p->max_iterations)
        return RV_REASON_MAX_ITERATIONS;
    if (run_branch_calls_llm(run, b, stage) && run->shared.llm_left <= 0)
        return RV_REASON_MAX_LLM_CALLS;
    return run->shared.hops_left <= 0 ? RV_REASON_MAX_HOPS : RV_REASON_NONE;
}

int64_t run_count_edge(rv_run *run, int from, int to, int64_t of_branch)
{
    int at = rv_pipeline_edge_limit_at(run->pipeline, from, to);

    return run->totals.is_on && at >= 0 ? ++run->totals.of_edge[at] : of_branch;
}

/* --- stopping --- */

int64_t run_bound_most(const struct rv_pipeline *p, enum rv_reason reason)
{
    return reason == RV_REASON_MAX_ITERATIONS  ? p->max_iterations
           : reason == RV_REASON_MAX_LLM_CALLS ? p->max_llm_calls
                                               : p->max_agent_hops;
}

void run_bound_write(enum rv_reason reason, int64_t most, const char *stage, rv_buf *out)
{
    switch (reason) {
    case RV_REASON_MAX_ITERATIONS:
        rv_buf_printf(out, "the run looped back more often than max_iterations (%" PRId64 ") allows", most);
        return;
    case RV_REASON_MAX_LLM_CALLS:
        rv_buf_printf(out, "all model calls that max_llm_calls (%" PRId64 ") allows were made", most);
        return;
    case RV_REASON_MAX_HOPS:
        rv_buf_printf(out, "all stage visits that max_agent_hops (%" PRId64 ") allows were made", most);
        return;
    case RV_REASON_MAX_VISITS:
        rv_buf_printf(out, "stage \"%.*s\" was visited as often as its max_visits (%" PRId64 ") allows",
                      RV_STR_ARG(run_shown(stage)), most);
        return;
    case RV_REASON_NONE:
    case RV_REASON_COMPLETED:
    case RV_REASON_MAX_LOOP:
    case RV_REASON_MAX_ITEMS:
    case RV_REASON_USER_CANCELLED:
    case RV_REASON_TOOL_FAILED:
    case RV_REASON_LLM_FAILED:
    case RV_REASON_EXPRESSION:
    case RV_REASON_TEMPLATE:
    case RV_REASON_JOIN:
    case RV_REASON_POLICY:
    case RV_REASON_BUDGET:
    case RV_REASON_QUOTA:
    case RV_REASON_BREAK:
    case RV_N_REASON:
        break;
    }
    assert(false); /* the caller has met one of the four bounds of visits */
}

int run_end_halted(rv_run *run, struct rv_effects *out, rv_err **err)
{
    char *text = run->halt.text;

    run->halt.text = NULL;
    int rc = run_fail(run, run->halt.status, run->halt.reason, text, out, err);
    free(text);
    return rc;
}

int run_halt(rv_run *run, enum rv_run_status status, enum rv_reason reason, const char *text, struct rv_effects *out,
             rv_err **err)
{
    if (run->halt.is_set)
        return 0;
    if (run->n_working == 0)
        return run_fail(run, status, reason, text, out, err);
    char *kept = rv_str_dup(rv_str_of(text));
    if (!kept)
        return RV_FAIL(err, RV_E_NOMEM, "stop a run");
    run->halt = (struct halt){.is_set = true, .status = status, .reason = reason, .text = kept};
    run->shared.stops = true;
    rv_visit_root(&run->shared)->looks_for_money = true; /* what waits for it ends */
    return 0;
}

int run_halt_outside(rv_run *run, bool llm, bool *stopped, struct rv_effects *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(1024);
    enum rv_reason reason;
    const struct rv_visit_shared *by =
        rv_bound_choose(run->shared.up, llm ? RV_NEEDS_CALL | RV_NEEDS_VISIT : RV_NEEDS_VISIT, &reason);

    *stopped = by != NULL;
    if (!by)
        return 0;
    run->stopped_by = by;
    run_bound_write(reason, run_bound_most(by->pipeline, reason), NULL, &text);
    int rc = rv_buf_check(&text, "reason", err);
    if (rc == 0)
        rc = run_halt(run, RV_RUN_TERMINATED, reason, rv_buf_cstr(&text), out, err);
    rv_buf_fini(&text);
    return rc;
}

void run_write_bound(const rv_run *run, enum rv_reason reason, int stage, rv_buf *out)
{
    const struct rv_agent *a = reason == RV_REASON_MAX_VISITS ? &run->pipeline->agents[stage] : NULL;

    run_bound_write(reason, a ? a->limits.max_visits : run_bound_most(run->pipeline, reason), a ? a->name : NULL, out);
}

/* --- what is used --- */

struct rv_envelope_used rv_run_used(rv_run *run)
{
    struct rv_envelope_used all = rv_envelope_used(run->env);

    if (rv_envelope_branches(run->env)) /* it pauses or has ended: the envelope knows */
        return all;
    for (struct branch *b = run_branch_next(&run->main); b; b = run_branch_next(b)) {
        if (!b->env) /* memory was short as it was made */
            continue;
        struct rv_envelope_used own = rv_envelope_used(b->env);
        all.hops += own.hops;
        all.llm_calls += own.llm_calls;
        all.iterations += own.iterations;
        rv_usage_add(&all.usage, &own.usage);
    }
    return all;
}

size_t rv_run_collect_bounds(const rv_run *run, struct rv_bound_use out[RV_RUN_BOUNDS])
{
    const struct rv_pipeline *p = run->pipeline;
    const struct rv_visit_shared *s = &run->shared;
    const struct rv_envelope_fields *f = rv_envelope_fields(run->env);
    bool all = run->totals.is_on; /* else the run is one branch, and its envelope has the counts */
    size_t n = 0;

    out[n++] = (struct rv_bound_use){"max_llm_calls", all ? p->max_llm_calls - s->llm_left : f->llm_call_count,
                                     p->max_llm_calls};
    out[n++] = (struct rv_bound_use){"max_agent_hops", all ? p->max_agent_hops - s->hops_left : f->agent_hop_count,
                                     p->max_agent_hops};
    out[n++] = (struct rv_bound_use){"max_iterations", all ? run->totals.iterations : f->iteration, p->max_iterations};
    if (p->has_budget)
        out[n++] = (struct rv_bound_use){"budget", s->spent_micro_usd, p->budget_micro_usd};
    return n;
}
