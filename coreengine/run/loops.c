/* How often a run may loop back, and why: the bounds of the `execution` section beside max_iterations (rule 4.6). Each
 * applies where the file gives it, so that no pipeline that says nothing of them stops earlier than its own bounds. */
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

int rv_run_count_loop(rv_run *run, int from, enum rv_outcome outcome, rv_buf *why, rv_err **err)
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
