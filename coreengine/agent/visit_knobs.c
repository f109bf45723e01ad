/* What the `execution` section changes about a visit (rule 4.6): the arbiter that may be skipped, questions about
 * uncertain outputs, contradictions, ways back from partial results. By rules 1 none of these changes has an effect. */
#include "coreengine/agent/agent_internal.h"

#include <string.h>

static const struct rv_execution_config *knobs(const rv_visit *v)
{
    return &v->shared->pipeline->execution;
}

/* A number in an output; false: it has none. */
static bool number_of(json_object *output, const char *key, double *out)
{
    json_object *value = NULL;

    if (!json_object_is_type(output, json_type_object) || !json_object_object_get_ex(output, key, &value) ||
        (!json_object_is_type(value, json_type_double) && !json_object_is_type(value, json_type_int)))
        return false;
    *out = json_object_get_double(value);
    return true;
}

/* --- the arbiter --- */

static bool only_reads(const rv_visit *v, json_object *step)
{
    const char *tool = NULL;
    const struct rv_tool_info *info =
        json_object_is_type(step, json_type_object) && rv_json_get_text(step, "tool", &tool)
            ? rv_visit_tool(v, rv_str_of(tool))
            : NULL;

    return info && (rv_tool_risk(info) == RV_RISK_READ_ONLY || rv_tool_risk(info) == RV_RISK_LOW);
}

static bool plan_only_reads(const rv_visit *v)
{
    json_object *steps = rv_visit_plan(v);
    size_t n = json_object_is_type(steps, json_type_array) ? json_object_array_length(steps) : 0;

    for (size_t i = 0; i < n; i++)
        if (!only_reads(v, json_object_array_get_idx(steps, i)))
            return false;
    return n > 0;
}

static bool plan_is_unsure(const rv_visit *v)
{
    double confidence;

    return number_of(rv_envelope_output(v->env, rv_str_of(v->agent->tools.plan_from), NULL), "confidence",
                     &confidence) &&
           confidence < knobs(v)->high_confidence_threshold;
}

int rv_visit_sit_out(rv_visit *v, rv_err **err)
{
    if (v->shared->rules < RV_RULES_2 || strcmp(v->agent->output.key, RV_ARBITER) != 0)
        return 0;
    if (knobs(v)->enable_arbiter && (!knobs(v)->skip_arbiter_for_read_only || !plan_only_reads(v) || plan_is_unsure(v)))
        return 0;
    v->output = json_object_new_object();
    int rc = v->output ? 0 : RV_FAIL(err, RV_E_NOMEM, "skip the arbiter");
    if (rc == 0)
        rc = rv_json_set_text(v->output, "outcome", rv_outcome_text(RV_OUTCOME_SKIP), err);
    if (rc == 0)
        rc = rv_json_set_text(v->output, "verdict", rv_verdict_text(RV_VERDICT_PROCEED), err);
    if (rc == 0)
        rc = rv_visit_store(v, err);
    v->phase = PHASE_SETTLE; /* no hook, no policy, no tool: it takes no part */
    if (v->model.has_call) {
        v->model.has_call = false;
        rv_visit_root(v->shared)->llm_left++;
    }
    return rc;
}

/* --- outputs --- */

bool rv_visit_is_unsure(const rv_visit *v)
{
    const char *question = NULL;
    double confidence;

    return v->shared->rules >= RV_RULES_2 && !v->shared->origin && number_of(v->output, "confidence", &confidence) &&
           confidence < knobs(v)->clarification_threshold &&
           rv_json_get_text(v->output, "clarification_question", &question) && question[0];
}

/* The verdict goes on and the outcome goes back. */
static bool contradicts_itself(const rv_visit *v, const char **verdict)
{
    return json_object_is_type(v->output, json_type_object) && rv_json_get_text(v->output, "verdict", verdict) &&
           rv_outcome_requires_loop(v->result.outcome) &&
           (strcmp(*verdict, rv_verdict_text(RV_VERDICT_PROCEED)) == 0 ||
            strcmp(*verdict, rv_verdict_text(RV_VERDICT_ADVANCE)) == 0);
}

int rv_visit_validate_verdict(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    const char *verdict = NULL, *outcome = rv_outcome_text(v->result.outcome);
    bool needs_llm = rv_stage_calls_llm(v->shared, v->agent->index);

    if (v->shared->rules < RV_RULES_2 || !knobs(v)->meta_validation_enabled || v->agent->declared.doc ||
        v->shared->origin || !contradicts_itself(v, &verdict))
        return 0;
    if (!v->asked_twice && (!needs_llm || rv_visit_root(v->shared)->llm_left > 0)) {
        int64_t timer = rv_visit_wait(v, knobs(v)->meta_validation_delay_ms * 1000, v->attempt,
                                      "the verdict of the output contradicts its outcome", out);
        if (timer) {
            if (needs_llm) {
                rv_visit_root(v->shared)->llm_left--;
                v->model.has_call = true;
            }
            v->asked_twice = true;
            json_object_put(v->output);
            v->output = NULL;
            v->result.outcome = RV_OUTCOME_SUCCESS;
            v->waiting_for = timer;
            v->waiting_kind = RV_EVENT_TIMER;
            v->phase = PHASE_BACKOFF;
            return 0;
        }
    }
    return rv_visit_fail(v, "ValidationError", err, "agent \"%s\": verdict \"%s\" contradicts outcome \"%s\"",
                         v->agent->name, verdict, outcome);
}

/* Outcome partial, or the results of a tool stage of which some failed and some did not. */
static bool is_partial(const rv_visit *v)
{
    json_object *results =
        json_object_is_type(v->output, json_type_object) ? rv_json_get_arr(v->output, "results") : NULL;
    size_t n = results ? json_object_array_length(results) : 0, n_good = 0;

    if (v->result.outcome == RV_OUTCOME_PARTIAL)
        return true;
    if (!v->agent->has_tools || v->agent->has_llm)
        return false;
    for (size_t i = 0; i < n; i++) {
        json_object *entry = json_object_array_get_idx(results, i);
        const char *status = NULL;
        n_good += json_object_is_type(entry, json_type_object) && rv_json_get_text(entry, "status", &status) &&
                  strcmp(status, rv_tool_status_text(RV_TOOL_STATUS_SUCCESS)) == 0;
    }
    return n_good > 0 && n_good < n;
}

void rv_visit_keep_partial(rv_visit *v)
{
    int to = v->agent->routing.default_target;

    if (v->shared->rules < RV_RULES_2 || knobs(v)->replan_on_partial_success || v->routed_to < 0 ||
        v->routed_to > v->agent->index || !is_partial(v))
        return;
    bool goes_on = to > v->agent->index || to == RV_TARGET_CLARIFICATION || to == RV_TARGET_CONFIRMATION;
    v->routed_to = goes_on ? to : RV_TARGET_END;
    v->routed_by = goes_on ? RV_ROUTE_DEFAULT : RV_ROUTE_NO_MATCH;
}
