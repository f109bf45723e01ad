/* Work that waits for a person: a tool stage stopped before a step that needs approval, and what an approval opens
 * when the stage is visited again (rule 6.1's gate, 5.10). */
#include "coreengine/agent/agent_internal.h"

#include <string.h>

#define GATE   "confirmation_gate" /* kind of suspended work */
#define POLICY "policy"

/* Stop before the step until a person approves it; what is done so far is kept with the envelope. */
int rv_visit_suspend(rv_visit *v, const struct visit_step *step, struct rv_effects *out, rv_err **err)
{
    char interrupt[RV_ID_MAX];
    rv_buf message = RV_BUF_INIT(4096);
    json_object *data = json_object_new_object(), *kept = json_object_new_object();
    int rc = data && kept ? 0 : RV_FAIL(err, RV_E_NOMEM, "suspend stage \"%s\"", v->agent->name);

    rv_buf_printf(&message, "tool \"%.*s\" is %s: may it run with these parameters?",
                  RV_STR_ARG(rv_utf8_cut(step->tool, 200)), rv_risk_text(step->risk));
    if (rc == 0)
        rc = rv_json_set_str(data, "tool", step->tool, err);
    if (rc == 0)
        rc = rv_json_set_str(data, "step_id", step->id, err);
    if (rc == 0)
        rc = rv_json_set_text(data, "stage", v->agent->name, err);
    if (rc == 0 && step->parameters)
        rc = rv_json_set_ref(data, "parameters", step->parameters, err);
    else if (rc == 0)
        rc = rv_json_set_take(data, "parameters", json_object_new_object(), err);
    if (rc == 0)
        rc = rv_buf_check(&message, "confirmation message", err);
    if (rc == 0)
        rc = rv_visit_raise(v, RV_INTERRUPT_CONFIRMATION, rv_buf_str(&message), data, interrupt, err);
    if (rc == 0)
        rc = rv_json_set_text(kept, "kind", GATE, err);
    if (rc == 0)
        rc = rv_json_set_text(kept, "interrupt_id", interrupt, err);
    if (rc == 0)
        rc = rv_json_set_ref(kept, "steps", v->tools.steps, err);
    if (rc == 0)
        rc = rv_json_set_ref(kept, "results", v->tools.results, err);
    if (rc == 0)
        rc = rv_json_set_int(kept, "at", (int64_t)v->tools.at, err);
    if (rc == 0)
        rc = rv_json_set_int(kept, "total_time_ms", v->tools.total_ms, err);
    if (rc == 0)
        rc = rv_json_set_bool(kept, "all_succeeded", v->tools.all_succeeded, err);
    if (rc == 0)
        rc = rv_envelope_set_suspended(v->env, rv_str_of(v->agent->name), kept, err);
    if (rc == 0) {
        v->result.outcome = RV_OUTCOME_SKIP; /* nothing more was done in this visit */
        rc = rv_visit_stay(v, out, err);
    }
    json_object_put(data);
    json_object_put(kept);
    rv_buf_fini(&message);
    return rc;
}

/* Was the interrupt of that id approved? */
static bool approved(const rv_visit *v, json_object *kept)
{
    const char *id = NULL;
    bool yes = false;
    struct rv_interrupt in = rv_envelope_interrupt(v->env);

    return rv_json_get_text(kept, "interrupt_id", &id) && in.exists && !rv_envelope_has_interrupt(v->env) &&
           strcmp(in.id, id) == 0 && in.response && rv_json_get_bool(in.response, "approved", &yes) && yes;
}

/* The policy that asked joins those whose questions were approved before. */
static int approve_policy(rv_visit *v, json_object *kept, rv_err **err)
{
    json_object *before = rv_json_get_arr(kept, "approved"), *name = NULL;
    int rc = 0;

    if (before)
        rc = rv_json_dup(before, &v->approved_policies, err);
    else if (!(v->approved_policies = json_object_new_array()))
        rc = RV_FAIL(err, RV_E_NOMEM, "resume stage \"%s\"", v->agent->name);
    if (rc == 0 && json_object_object_get_ex(kept, "policy", &name))
        rc = rv_json_push_ref(v->approved_policies, name, err);
    return rc;
}

int rv_visit_resume_work(rv_visit *v, rv_err **err)
{
    rv_str name = rv_str_of(v->agent->name);
    json_object *kept = rv_envelope_suspended(v->env, name);
    const char *kind = NULL;
    int64_t at = 0;

    if (!kept || !rv_json_get_text(kept, "kind", &kind))
        return 0;
    if (strcmp(kind, POLICY) == 0) {
        int rc = approved(v, kept) ? approve_policy(v, kept, err) : 0;
        if (rc < 0)
            return rc;
    } else if (strcmp(kind, GATE) == 0 && v->agent->has_tools && rv_json_get_int(kept, "at", &at) && at >= 0) {
        json_object *steps = rv_json_get_arr(kept, "steps"), *results = rv_json_get_arr(kept, "results");
        /* A plan that was made anew meanwhile starts from its first step; the approval was for the old one. */
        if (steps && results &&
            rv_json_equal(steps, rv_visit_plan(v))) { /* a copy: the kept results must not change if this visit fails */
            int rc = rv_json_dup(results, &v->tools.results, err);
            if (rc < 0)
                return rc;
            v->tools.steps = json_object_get(steps);
            v->tools.at = (size_t)at;
            v->tools.approved = approved(v, kept);
            v->tools.all_succeeded = true;
            (void)rv_json_get_bool(kept, "all_succeeded", &v->tools.all_succeeded);
            (void)rv_json_get_int(kept, "total_time_ms", &v->tools.total_ms);
            v->resumed = true;
        }
    }
    return rv_envelope_set_suspended(v->env, name, NULL, err);
}
