/* From one stage to the next: edges and loop-backs (rules 7.3 to 7.6). How often a run may loop back, and
 * why, is also bounded by the `execution` section (rule 4.6): each bound applies where the file gives it, so that no
 * pipeline that says nothing of them stops earlier than its own bounds. */
#include "coreengine/run/run_internal.h"

#include <string.h>

static bool rejects(const rv_run *run, const struct branch *b, int from, enum rv_outcome outcome)
{
    json_object *output = rv_envelope_output(b->env, rv_str_of(run->pipeline->agents[from].output.key), NULL);
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
static int count_loop(rv_run *run, struct branch *b, int from, enum rv_outcome outcome, rv_buf *why, rv_err **err)
{
    const struct rv_execution_config *x = &run->pipeline->execution;
    rv_str name = rv_str_of(run->pipeline->agents[from].name);
    struct totals *t = &run->totals;
    int64_t of_stage, of_all, iteration = t->is_on ? t->iterations : rv_envelope_fields(b->env)->iteration;
    int rc = 0;

    if (run->shared.rules < RV_RULES_2)
        return 0;
    if (x->has_max_replan_iterations && outcome == RV_OUTCOME_REPLAN) {
        rc = rv_envelope_note_loop(b->env, RV_LOOP_REPLAN, name, &of_stage, &of_all, err);
        of_all = t->is_on ? ++t->replans : of_all;
        if (rc == 0 && of_all > x->max_replan_iterations)
            too_many(why, "would plan again too often", "max_replan_iterations", x->max_replan_iterations);
    }
    if (rc == 0 && x->has_max_loop_back_rejections && rejects(run, b, from, outcome)) {
        rc = rv_envelope_note_loop(b->env, RV_LOOP_REJECTION, name, &of_stage, &of_all, err);
        of_stage = t->is_on ? ++t->rejections[from] : of_stage;
        if (rc == 0 && of_stage > x->max_loop_back_rejections)
            too_many(why, "was asked for too often", "max_loop_back_rejections", x->max_loop_back_rejections);
    }
    if (rc == 0 && x->has_max_loop_iterations &&
        iteration >= x->max_loop_iterations) /* this one is not counted there yet */
        too_many(why, "would loop back too often", "max_loop_iterations", x->max_loop_iterations);
    return rc;
}

/* why: what follows the names of the edge. */
static int stop_at_edge(rv_run *run, struct branch *b, const struct edge *e, const char *why, struct rv_effects *out,
                        rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    int rc = rv_envelope_set_stage(b->env, RV_STR_LIT(RV_STAGE_END), err);

    rv_buf_printf(&text, "edge %.*s -> %.*s %s", RV_STR_ARG(run_shown(run->pipeline->agents[e->from].name)),
                  RV_STR_ARG(run_shown(run->pipeline->agents[e->to].name)), why);
    if (rc == 0)
        rc = rv_buf_check(&text, "reason", err);
    if (rc == 0)
        rc = run_halt(run, RV_RUN_TERMINATED, RV_REASON_MAX_LOOP, rv_buf_cstr(&text), out, err);
    rv_buf_fini(&text);
    return rc;
}

static int loop_back(rv_run *run, struct branch *b, const struct edge *e, struct rv_effects *out, rv_err **err)
{
    struct rv_reset_rules rules = rv_pipeline_reset_rules(run->pipeline);
    rv_str text = e->feedback ? rv_json_str(e->feedback) : (rv_str){NULL, 0};

    int rc = rv_envelope_increment_iteration(b->env, text, &rules, err);
    if (rc < 0)
        return rc;
    run->totals.iterations++;
    rv_branch_emit(run, b, out, RV_EMIT_ITERATION, RV_M_INT("iteration", rv_envelope_fields(b->env)->iteration),
                   RV_M_TEXT("from", run->pipeline->agents[e->from].name),
                   RV_M_TEXT("to", run->pipeline->agents[e->to].name),
                   RV_M_IF(e->feedback, RV_M_STR("feedback", text)));
    return 0;
}

/* Rule 7.4, in this order: count, loop back, limits. A self-edge is a loop-back (W04). */
int run_take_edge(rv_run *run, struct branch *branch, const struct edge *edge, struct rv_effects *out, rv_err **err)
{
    int from = edge->from, to = edge->to;
    rv_str a = rv_str_of(run->pipeline->agents[from].name), b = rv_str_of(run->pipeline->agents[to].name);
    int64_t used = 0, limit = rv_pipeline_edge_limit(run->pipeline, from, to);
    rv_buf why = RV_BUF_INIT(512);

    int rc = rv_envelope_note_passage(branch->env, a, b, &used, err);
    used = run_count_edge(run, from, to, used);
    if (rc == 0 && to <= from && !run->pipeline->execution.enable_loop_back)
        return stop_at_edge(run, branch, edge, "loops back, which execution.enable_loop_back forbids", out, err);
    if (rc == 0 && to <= from) {
        rc = count_loop(run, branch, from, edge->outcome, &why, err);
        if (rc == 0)
            rc = rv_buf_check(&why, "reason", err);
        if (rc == 0)
            rc = loop_back(run, branch, edge, out, err);
    }
    if (rc == 0 && limit > 0 && used > limit) { /* the limit of the edge is named before other bounds */
        rv_buf_clear(&why);
        rv_buf_printf(&why, "was used as often as its limit (%lld) allows", (long long)limit);
        rc = rv_buf_check(&why, "reason", err);
    }
    if (rc == 0 && why.len > 0)
        rc = stop_at_edge(run, branch, edge, rv_buf_cstr(&why), out, err);
    rv_buf_fini(&why);
    return rc;
}
