/* What an output says and becomes: required fields, the outcome that it states, storing it and taking it back
 * (5.3, 5.7, 5.8). */
#include "coreengine/agent/end_internal.h"

const char *rv_end_text(json_object *output, const char *first, const char *second)
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
        *rc = rv_visit_fail(v, "ValidationError", err,
                            "agent \"%s\": output states outcome \"%.*s\", which does not exist", v->agent->name,
                            RV_STR_ARG(rv_utf8_cut(rv_str_of(text), 60)));
        return true;
    }
    if (o == RV_OUTCOME_ERROR) {
        why = rv_end_text(v->output, "error", "reason");
        *rc = why ? rv_visit_fail(v, "ProcessingError", err, "%s", why)
                  : rv_visit_fail(v, "ProcessingError", err, "agent \"%s\" reported an error without saying which",
                                  v->agent->name);
        return true;
    }
    if (!text && rv_visit_is_unsure(v))
        o = RV_OUTCOME_CLARIFY;
    if (v->result.outcome != RV_OUTCOME_TERMINATE)
        v->result.outcome = o;
    return false;
}

int rv_visit_check(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    const struct rv_str_list *need = &v->agent->output.required_fields;
    int rc = 0;

    for (size_t i = 0; i < need->n; i++)
        if (!json_object_object_get_ex(v->output, need->items[i], NULL)) {
            v->lacks_field = true;
            return rv_visit_fail_as(v, RV_FAILURE_OUTPUT_MISSING_FIELD, "ValidationError", err,
                                    "agent \"%s\": required output field \"%s\" is missing", v->agent->name,
                                    need->items[i]);
        }
    if (refused_by_outcome(v, &rc, err))
        return rc;
    v->phase = PHASE_POLICY;
    return rv_visit_validate_verdict(v, out, err);
}

int rv_visit_store(rv_visit *v, rv_err **err)
{
    rv_str key = rv_str_of(v->agent->output.key);

    v->previous = json_object_get(rv_envelope_output(v->env, key, &v->had_previous));
    int rc = rv_envelope_set_output(v->env, key, v->output, err);
    v->stored = rc == 0;
    v->phase = PHASE_POST;
    return rc;
}

int rv_end_restore(rv_visit *v, rv_err **err)
{
    rv_str key = rv_str_of(v->agent->output.key);

    if (!v->stored)
        return 0;
    v->stored = false;
    return v->had_previous ? rv_envelope_set_output(v->env, key, v->previous, err)
                           : rv_envelope_remove_output(v->env, key, err);
}

int rv_visit_settle(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    rv_str key = rv_str_of(v->agent->output.key);
    int rc = 0;

    if (refused_by_outcome(v, &rc, err))
        return rc;
    if (v->agent->output.state_merge != RV_UNSET) {
        rc = rv_envelope_merge_state(v->env, key, (enum rv_merge_how)v->agent->output.state_merge, v->output, err);
        if (rc < 0)
            return rc;
    }
    if (v->confirm_message)
        v->result.outcome = RV_OUTCOME_CONFIRM;
    if (v->result.outcome == RV_OUTCOME_CLARIFY || v->result.outcome == RV_OUTCOME_CONFIRM)
        return rv_end_ask(v, v->result.outcome, out, err);
    v->phase = PHASE_ROUTE;
    return 0;
}
