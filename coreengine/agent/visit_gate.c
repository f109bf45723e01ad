/* Work that waits for a person: a tool stage stopped before a step that needs approval, and what an approval opens
 * when the stage is visited again (rule 6.1's gate, 5.10). */
#include "coreengine/agent/agent_internal.h"

#include <string.h>

#define GATE    "confirmation_gate" /* kind of suspended work */
#define POLICY  "policy"
#define OUTCOME RV_OUTCOME_UNKNOWN

/* What is asked about a step: {tool, step_id, stage, parameters}. */
static int describe_step(const rv_visit *v, const struct visit_step *step, json_object *data, rv_err **err)
{
    int rc = rv_json_set_str(data, "tool", step->tool, err);

    if (rc == 0)
        rc = rv_json_set_str(data, "step_id", step->id, err);
    if (rc == 0)
        rc = rv_json_set_text(data, "stage", v->agent->name, err);
    if (rc < 0)
        return rc;
    return step->parameters ? rv_json_set_ref(data, "parameters", step->parameters, err)
                            : rv_json_set_take(data, "parameters", json_object_new_object(), err);
}

/* Ask, keep with the envelope what is done so far, and leave the run at this stage. data and message are borrowed. */
static int pause_at_step(rv_visit *v, enum rv_interrupt_kind asks, const char *work, rv_str message, json_object *data,
                         struct rv_effects *out, rv_err **err)
{
    char interrupt[RV_ID_MAX];
    json_object *kept = json_object_new_object();
    int rc = kept ? 0 : RV_FAIL(err, RV_E_NOMEM, "keep the work of a stage");

    if (rc == 0)
        rc = rv_visit_raise(v, asks, message, data, interrupt, err);
    if (rc == 0)
        rc = rv_json_set_text(kept, "kind", work, err);
    if (rc == 0)
        rc = rv_json_set_text(kept, "interrupt_id", interrupt, err);
    if (rc == 0)
        rc = rv_json_set_ref(kept, "steps", v->tools.steps, err);
    if (rc == 0)
        rc = rv_json_set_ref(kept, "results", v->tools.results, err);
    if (rc == 0)
        rc = rv_json_set_int(kept, "at", (int64_t)v->tools.at, err);
    if (rc == 0)
        rc = rv_json_set_int(kept, "key_visit", v->tools.key_visit ? v->tools.key_visit : v->visit_no, err);
    if (rc == 0)
        rc = rv_json_set_int(kept, "called_us", v->tools.called_us, err);
    if (rc == 0)
        rc = rv_json_set_int(kept, "total_time_ms", v->tools.total_ms, err);
    if (rc == 0)
        rc = rv_json_set_bool(kept, "all_succeeded", v->tools.all_succeeded, err);
    json_object *kept_model = NULL;
    if (rc == 0 && v->model.acting)
        rc = rv_messages_keep(v, &kept_model, err);
    if (rc == 0 && kept_model)
        rc = rv_json_set_take(kept, "talk", kept_model, err);
    if (rc == 0)
        rc = rv_envelope_set_suspended(v->env, rv_str_of(v->agent->name), kept, err);
    if (rc == 0) {
        v->result.outcome = RV_OUTCOME_SKIP; /* nothing more was done in this visit */
        rc = rv_visit_stay(v, out, err);
    }
    json_object_put(kept);
    return rc;
}

/* Stop before the step until a person approves it. */
int rv_visit_suspend(rv_visit *v, const struct visit_step *step, struct rv_effects *out, rv_err **err)
{
    rv_buf message = RV_BUF_INIT(4096);
    json_object *data = json_object_new_object();
    int rc = data ? describe_step(v, step, data, err) : RV_FAIL(err, RV_E_NOMEM, "suspend a stage");

    rv_buf_printf(&message, "tool \"%.*s\" is %s: may it run with these parameters?",
                  RV_STR_ARG(rv_utf8_cut(step->tool, 200)), rv_risk_text(step->risk));
    if (rc == 0)
        rc = rv_buf_check(&message, "confirmation message", err);
    if (rc == 0)
        rc = pause_at_step(v, RV_INTERRUPT_CONFIRMATION, GATE, rv_buf_str(&message), data, out, err);
    json_object_put(data);
    rv_buf_fini(&message);
    return rc;
}

int rv_visit_ask_outcome(rv_visit *v, const struct visit_step *step, const char *key, struct rv_effects *out,
                         rv_err **err)
{
    rv_buf message = RV_BUF_INIT(4096);
    json_object *data = json_object_new_object();
    char started[RV_TIME_MAX];
    int rc = data ? describe_step(v, step, data, err) : RV_FAIL(err, RV_E_NOMEM, "ask for the outcome of a call");

    rv_time_format(v->tools.called_us, started);
    if (rc == 0)
        rc = rv_json_set_text(data, "reason", RV_OUTCOME_UNKNOWN, err);
    if (rc == 0 && key)
        rc = rv_json_set_text(data, "idempotency_key", key, err);
    if (rc == 0)
        rc = rv_json_set_text(data, "started_at", started, err);
    rv_buf_printf(&message, "tool \"%.*s\" was called at %s and nobody knows whether it ran: did it happen?",
                  RV_STR_ARG(rv_utf8_cut(step->tool, 200)), started);
    if (rc == 0)
        rc = rv_buf_check(&message, "review message", err);
    if (rc == 0)
        rc = pause_at_step(v, RV_INTERRUPT_AGENT_REVIEW, OUTCOME, rv_buf_str(&message), data, out, err);
    json_object_put(data);
    rv_buf_fini(&message);
    return rc;
}

/* The answer to the interrupt that this work waits for; NULL: none was given. */
static json_object *answer_to(const rv_visit *v, json_object *kept)
{
    const char *id = NULL;
    struct rv_interrupt in = rv_envelope_interrupt(v->env);

    return rv_json_get_text(kept, "interrupt_id", &id) && in.exists && !rv_envelope_has_interrupt(v->env) &&
                   strcmp(in.id, id) == 0
               ? in.response
               : NULL;
}

static bool approved(const rv_visit *v, json_object *kept)
{
    json_object *answer = answer_to(v, kept);
    bool yes = false;

    return answer && rv_json_get_bool(answer, "approved", &yes) && yes;
}

/* It happened, it did not (it is called again, with the same key), or the stage gives up. No answer: ask again. */
static void take_answer(rv_visit *v, json_object *kept)
{
    json_object *answer = answer_to(v, kept);
    const char *decision = NULL;
    json_object *data = NULL;

    (void)rv_json_get_int(kept, "key_visit", &v->tools.key_visit);
    (void)rv_json_get_int(kept, "called_us", &v->tools.called_us);
    v->tools.approved = true; /* the tool was called: it has its approval */
    if (!answer || !rv_json_get_text(answer, "decision", &decision))
        v->tools.word = WORD_ASK;
    else if (strcmp(decision, "happened") == 0)
        v->tools.word = WORD_HAPPENED;
    else if (strcmp(decision, "fail") == 0)
        v->tools.word = WORD_FAIL;
    if (v->tools.word == WORD_HAPPENED && json_object_object_get_ex(answer, "data", &data))
        v->tools.stated = json_object_get(data); /* of any type: it is judged as the tool's own answer would be */
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

/* Each step before the one at hand has its result, and the conversation ends with the turn that asks for them all. */
static bool is_whole(json_object *steps, json_object *results, json_object *kept_model, size_t at)
{
    json_object *messages = kept_model ? rv_json_get_arr(kept_model, "turns") : NULL;
    size_t n = messages ? json_object_array_length(messages) : 0;
    json_object *calls = n ? rv_json_get_arr(json_object_array_get_idx(messages, n - 1), "tool_calls") : NULL;

    if (at >= json_object_array_length(steps) || json_object_array_length(results) != at)
        return false;
    return !kept_model || (calls && json_object_array_length(calls) == json_object_array_length(steps));
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
    } else if ((strcmp(kind, GATE) == 0 || strcmp(kind, OUTCOME) == 0) && v->agent->has_tools &&
               rv_json_get_int(kept, "at", &at) && at >= 0) {
        json_object *steps = rv_json_get_arr(kept, "steps"), *results = rv_json_get_arr(kept, "results");
        /* A plan that was replaced meanwhile starts from its first step; the approval was for the old plan. */
        json_object *kept_model = v->agent->has_llm ? rv_json_get_obj(kept, "talk") : NULL;
        bool same_plan = kept_model || (!v->agent->has_llm && rv_json_equal(steps, rv_visit_plan(v)));
        if (steps && results && same_plan &&
            is_whole(steps, results, kept_model,
                     (size_t)at)) { /* a copy: the kept results must not change if this visit fails */
            int rc = rv_json_dup(results, &v->tools.results, err);
            if (rc == 0 && kept_model)
                rc = rv_messages_take(v, kept_model, err);
            if (rc == 0 && kept_model && v->shared->rules >= RV_RULES_2) { /* errors name the tools that there are */
                json_object *offered = NULL;
                rc = rv_messages_offered(v, &offered, err);
            }
            if (rc < 0)
                return rc;
            v->tools.steps = json_object_get(steps);
            v->tools.at = (size_t)at;
            if (strcmp(kind, OUTCOME) == 0)
                take_answer(v, kept);
            else
                v->tools.approved = approved(v, kept);
            v->tools.all_succeeded = true;
            (void)rv_json_get_bool(kept, "all_succeeded", &v->tools.all_succeeded);
            (void)rv_json_get_int(kept, "total_time_ms", &v->tools.total_ms);
            v->resumed = true;
        }
    }
    return rv_envelope_set_suspended(v->env, name, NULL, err);
}
