/* What an output says and becomes: required fields, the outcome that it states, storing it and taking it back (5.3,
 * 5.7, 5.8); and what the `execution` section changes about it (rule 4.6): the arbiter that may be skipped, questions
 * about uncertain outputs, contradictions, ways back from partial results. By rules 1 none of these changes has an
 * effect. */
#include "coreengine/agent/tools_internal.h"
#include "envelope/envelope.h"

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
            ? visit_tool(v, rv_str_of(tool))
            : NULL;

    return info && (rv_tool_risk(info) == RV_RISK_READ_ONLY || rv_tool_risk(info) == RV_RISK_LOW);
}

static bool plan_only_reads(const rv_visit *v)
{
    json_object *steps = visit_plan(v);
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

int visit_sit_out(rv_visit *v, rv_err **err)
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
        rc = visit_store(v, err);
    v->phase = PHASE_SETTLE; /* no hook, no policy, no tool: it takes no part */
    if (v->model.has_call) {
        v->model.has_call = false;
        rv_visit_note_calls(v->shared, -1);
    }
    return rc;
}

/* --- outputs --- */

/* The output is not confident and has a question for the user. */
static bool is_unsure(const rv_visit *v)
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
    return rv_outcome_requires_loop(v->result.outcome) && json_object_is_type(v->output, json_type_object) &&
           rv_json_get_text(v->output, "verdict", verdict) &&
           (strcmp(*verdict, rv_verdict_text(RV_VERDICT_PROCEED)) == 0 ||
            strcmp(*verdict, rv_verdict_text(RV_VERDICT_ADVANCE)) == 0);
}

/* Will the visit ask a model, if no hook does? */
static bool calls_llm(const rv_visit *v)
{
    return !v->is_list && rv_element_calls_llm(v->shared, v->agent->index);
}

/* An output whose verdict contradicts its outcome is asked for once more, and then the stage fails. */
static int validate_verdict(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    const char *verdict = NULL, *outcome = rv_outcome_text(v->result.outcome);
    bool needs_llm = calls_llm(v) && !v->model.has_call;
    enum rv_reason reason;

    if (v->shared->rules < RV_RULES_2 || !knobs(v)->meta_validation_enabled || v->agent->declared.doc ||
        v->shared->origin || !contradicts_itself(v, &verdict))
        return 0;
    if (!v->asked_twice && (!needs_llm || !rv_bound_choose(v->shared, RV_NEEDS_CALL, &reason))) {
        int64_t timer = visit_wait(v, knobs(v)->meta_validation_delay_ms * RV_US_PER_MS, v->attempt,
                                   "the verdict of the output contradicts its outcome", out);
        if (timer) {
            if (needs_llm) {
                rv_visit_note_calls(v->shared, 1);
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
    return rv_visit_fail(v, rv_error_validation, err, "agent \"%s\": verdict \"%s\" contradicts outcome \"%s\"",
                         v->agent->name, verdict, outcome);
}

const char *agent_output_text(json_object *output, const char *first, const char *second)
{
    const char *text = NULL;
    if (rv_json_get_text(output, first, &text) || (second && rv_json_get_text(output, second, &text)))
        return text;
    return NULL;
}

/* The outcome that the output states. *bad is true when it states one that does not exist. */
static enum rv_outcome stated_outcome(json_object *output, const char **text, bool *bad)
{
    enum rv_outcome o = RV_OUTCOME_SUCCESS;

    *bad = false;
    if (rv_json_get_text(output, "outcome", text))
        *bad = rv_outcome_of(rv_str_of(*text), &o, NULL) < 0;
    return o;
}

/* True when the output's outcome ended the visit; *rc is the result then. */
static bool refused_by_outcome(rv_visit *v, int *rc, rv_err **err)
{
    const char *text = NULL, *why;
    bool bad;
    enum rv_outcome o = stated_outcome(v->output, &text, &bad);

    if (bad) {
        *rc = rv_visit_fail(v, rv_error_validation, err,
                            "agent \"%s\": output states outcome \"%.*s\", which does not exist", v->agent->name,
                            RV_STR_ARG(rv_utf8_cut(rv_str_of(text), 60)));
        return true;
    }
    if (o == RV_OUTCOME_ERROR) {
        why = agent_output_text(v->output, "error", "reason");
        *rc = why ? rv_visit_fail(v, rv_error_processing, err, "%s", why)
                  : rv_visit_fail(v, rv_error_processing, err, "agent \"%s\" reported an error without saying which",
                                  v->agent->name);
        return true;
    }
    if (!text && is_unsure(v))
        o = RV_OUTCOME_CLARIFY;
    if (v->result.outcome != RV_OUTCOME_TERMINATE)
        v->result.outcome = o;
    return false;
}

int visit_check(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    const struct rv_str_list *need = &v->agent->output.required_fields;
    int rc = 0;

    for (size_t i = 0; i < need->n; i++)
        if (!json_object_object_get_ex(visit_answer(v), need->items[i], NULL)) {
            v->lacks_field = true;
            return rv_visit_fail_as(v, RV_FAILURE_OUTPUT_MISSING_FIELD, rv_error_validation, err,
                                    "agent \"%s\": required output field \"%s\" is missing", v->agent->name,
                                    need->items[i]);
        }
    if (refused_by_outcome(v, &rc, err))
        return rc;
    v->knows_outcome = !v->agent->hooks.post_process[0] && !v->agent->tools.chained[0];
    v->phase = PHASE_POLICY;
    return validate_verdict(v, out, err);
}

int visit_store(rv_visit *v, rv_err **err)
{
    rv_str key = rv_str_of(v->agent->output.key);

    v->previous = json_object_get(rv_envelope_output(v->env, key, &v->had_previous));
    int rc = rv_envelope_set_output(v->env, key, v->output, err);
    v->stored = rc == 0;
    v->phase = PHASE_POST;
    return rc;
}

/* Does the visit put the question of its stage, now that its output is final? */
static bool asks(const rv_visit *v)
{
    return v->agent->ask.question && !v->shared->origin && v->result.outcome != RV_OUTCOME_TERMINATE &&
           !rv_envelope_has_interrupt(v->env); /* a hook's question is answered first, by another visit */
}

int visit_settle(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    rv_str key = rv_str_of(v->agent->output.key);
    int rc = 0;

    if (!v->knows_outcome && refused_by_outcome(v, &rc, err))
        return rc;
    if (v->agent->output.state_merge != RV_UNSET && !visit_is_element(v)) {
        rc = rv_envelope_merge_state(v->env, key, (enum rv_merge_mode)v->agent->output.state_merge, v->output, err);
        if (rc < 0)
            return rc;
    }
    if (v->confirm_message)
        v->result.outcome = RV_OUTCOME_CONFIRM;
    if (v->result.outcome == RV_OUTCOME_CLARIFY || v->result.outcome == RV_OUTCOME_CONFIRM)
        return agent_end_ask(v, v->result.outcome, out, err);
    v->phase = asks(v) ? PHASE_ASK : PHASE_ROUTE;
    return 0;
}
