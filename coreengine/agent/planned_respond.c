/* The answer of a visit that plans: what the model is shown of the results, and the output around its answer. Results
 * are data of third parties: they stand between two marks that no result can contain, since the marks hold its hash. */
#include "coreengine/agent/tools_internal.h"
#include "envelope/envelope.h"

#include <stdlib.h>

#define NO_TOOLS                                                                                                       \
    "This is the response phase: no tools are available, and none may be called. Answer the user now, in your own "    \
    "words, and do not repeat results at length. Name artifacts by their titles: the user can see them."

/* --- asking --- */

int planned_ask_response(rv_visit *v, rv_err **err)
{
    struct planned *p = v->planned;
    rv_buf text = RV_BUF_INIT(2 * PLANNED_MAX_MESSAGE);
    int rc = 0;

    if (json_object_array_length(p->results) > 0)
        rc = planned_write_results(v, &text, err);
    if (p->refusal)
        rv_buf_printf(&text, "%s\n\nNo tool of that plan was called.\n\n", p->refusal);
    if (p->draft)
        rv_buf_printf(&text,
                      "You answered:\n%s\n\nThat does not have the form that is wanted. Answer in this form.\n\n",
                      p->draft);
    rv_buf_puts(&text, NO_TOOLS);
    if (rc == 0)
        rc = rv_buf_check(&text, "the results of a plan", err);
    if (rc == 0)
        rc = agent_planned_say(v, rv_buf_str(&text), err);
    rv_buf_fini(&text);
    p->part = PLANNED_RESPOND;
    v->attempt = 1;
    v->phase = PHASE_MAIN;
    return rc;
}

/* --- the output --- */

/* {tool_name, arguments, success, output, error, code?, artifact_id?, duration_ms} */
static int add_result(json_object *step, json_object *entry, json_object *list, rv_err **err)
{
    json_object *one = json_object_new_object(), *error = rv_json_get_obj(entry, "error");
    json_object *arguments = rv_json_get_obj(step, "parameters"), *id = planned_artifact_id(entry);
    int rc = rv_json_push_take(list, one, err);
    int64_t ms = rv_json_int_or(entry, "execution_time_ms", 0);

    return rc < 0 ? rc
                  : RV_SET(one, err, RV_M_TEXT("tool_name", planned_text(entry, "tool")),
                           RV_M_OF(VALUE, "arguments", arguments ? arguments : rv_json_get_obj(step, PLANNED_TEMPLATE)),
                           RV_M_BOOL("success", planned_is_good(entry)),
                           RV_M_OF(VALUE, "output", planned_output_of(entry)),
                           RV_M_TEXT("error", error ? planned_text(error, "message") : NULL),
                           RV_M_IF(error, RV_M_TEXT("code", planned_text(error, "code"))),
                           RV_M_IF(id, RV_M_OF(VALUE, "artifact_id", id)), RV_M_INT("duration_ms", ms));
}

static int add_skipped(size_t index, json_object *entry, json_object *list, rv_err **err)
{
    json_object *one = json_object_new_object();
    int rc = rv_json_push_take(list, one, err);

    return rc < 0 ? rc
                  : RV_SET(one, err, RV_M_INT("index", (int64_t)index),
                           RV_M_TEXT("tool_name", planned_text(entry, "tool")),
                           RV_M_TEXT("reason", planned_text(entry, PLANNED_REASON)));
}

static int add_results(const struct planned *p, json_object *results, json_object *skipped, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < json_object_array_length(p->results) && rc == 0; i++) {
        json_object *entry = json_object_array_get_idx(p->results, i);
        rc = (strcmp(planned_text(entry, "status"), PLANNED_SKIPPED) == 0)
                 ? add_skipped(i, entry, skipped, err)
                 : add_result(json_object_array_get_idx(p->steps, i), entry, results, err);
    }
    return rc;
}

/* How the turn went: the word that routing rules look at. */
static const char *outcome_of(const struct planned *p)
{
    size_t n = json_object_array_length(p->results);

    if (p->refusal)
        return "invalid_plan";
    if (n == 0)
        return "direct";
    for (size_t i = 0; i < n; i++)
        if (!planned_is_good(json_object_array_get_idx(p->results, i)))
            return "tool_failed";
    return "ok";
}

static int fill(const struct planned *p, json_object *output, rv_err **err)
{
    json_object *results = json_object_new_array(), *skipped = json_object_new_array();
    json_object *errors = p->errors ? json_object_get(p->errors) : json_object_new_array();
    int rc = RV_SET(output, err, RV_M_TEXT("plan_outcome", outcome_of(p)), RV_M_BOOL("degraded", p->degraded),
                    RV_M_OF(VALUE, "plan", p->plan));

    if (rc == 0 && !(results && skipped && errors))
        rc = RV_FAIL(err, RV_E_NOMEM, "make the output of a stage that plans");
    if (rc == 0)
        rc = add_results(p, results, skipped, err);
    if (rc == 0)
        rc = RV_SET(output, err, RV_M_OF(VALUE, "results", results), RV_M_OF(VALUE, "skipped", skipped),
                    RV_M_OF(VALUE, "errors", errors));
    json_object_put(results);
    json_object_put(skipped);
    json_object_put(errors);
    return rc;
}

/* Takes response; NULL: no memory. */
static int end(rv_visit *v, json_object *response, rv_err **err)
{
    json_object *output = json_object_new_object();
    int rc = output ? rv_json_set_take(output, PLANNED_RESPONSE, response, err)
                    : RV_FAIL(err, RV_E_NOMEM, "make the output of a stage that plans");

    if (!output)
        json_object_put(response);
    if (rc == 0)
        rc = fill(v->planned, output, err);
    if (rc < 0) {
        json_object_put(output);
        return rc;
    }
    json_object_put(v->output);
    v->output = output;
    v->planned->part = PLANNED_OVER;
    v->phase = PHASE_CHECK;
    return 0;
}

int planned_end(rv_visit *v, rv_err **err)
{
    json_object *response = v->output;

    v->output = NULL;
    return end(v, response, err);
}

int planned_answer(rv_visit *v, rv_str text, rv_err **err)
{
    return end(v, json_object_new_string_len(text.ptr ? text.ptr : "", (int)text.len), err); /* a reply has a ceiling */
}

/* --- an answer without the model --- */

/* Did the model fail to answer, and is there a result to answer with? A bound, the end of the stage's time and a
 * cancel are not failures of the model. */
static bool can_degrade(const rv_visit *v)
{
    static const char *const types[] = {rv_error_llm, rv_error_timeout, rv_error_parse};
    json_object *results = v->planned->results;
    bool is_of_model = false;
    size_t good = 0;

    if (v->planned->part != PLANNED_RESPOND || v->agent->output.schema || v->bound != RV_REASON_NONE ||
        visit_must_end(v) || (v->failed_in != PHASE_MAIN && v->failed_in != PHASE_BACKOFF))
        return false;
    for (size_t i = 0; i < RV_COUNT(types); i++)
        is_of_model |= strcmp(types[i], v->error_type) == 0;
    for (size_t i = 0; i < json_object_array_length(results); i++)
        good += planned_is_good(json_object_array_get_idx(results, i));
    return is_of_model && good > 0;
}

static void forget_failure(rv_visit *v)
{
    free(v->error_text);
    v->error_text = NULL;
    free(v->type_text);
    v->type_text = NULL;
    v->error_type = NULL;
    rv_err_free(v->failure);
    v->failure = NULL;
    v->code = RV_FAILURE_NONE;
    rv_buf_clear(&v->partial);
    agent_messages_drop_new_calls(&v->model);
}

int planned_degrade(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(PLANNED_MAX_MESSAGE), why = RV_BUF_INIT(PLANNED_MAX_MESSAGE);

    if (!can_degrade(v))
        return 0;
    rv_buf_printf(&why, "the model gave no answer, so the results are the answer: %s", v->error_text);
    int rc = rv_buf_check(&why, "why an answer is degraded", err);
    if (rc == 0)
        rc = planned_sum_up(v, &text, err);
    if (rc == 0) {
        rv_visit_emit(v, out, RV_EMIT_WARNING, RV_M_STR("message", rv_buf_str(&why)));
        forget_failure(v);
        v->planned->degraded = true;
        agent_visible_own(v, rv_buf_str(&text), false);
        rc = planned_answer(v, rv_buf_str(&text), err);
    }
    rv_buf_fini(&text);
    rv_buf_fini(&why);
    return rc;
}
