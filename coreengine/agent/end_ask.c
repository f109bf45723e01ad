/* Questions for a person that a visit ends with: what they say, what they show, and how the run goes on after a yes
 * (5.9). */
#include "coreengine/agent/end_internal.h"

#define POLICY           "policy"
#define SHOWN_BYTES      ((size_t)1000)      /* of the output, in the text of a question */
#define DATA_BYTES       ((size_t)256 << 10) /* of the output, in the data of a question */
#define MAX_TEXT_BYTES   RV_JSON_MAX_BYTES
#define MAX_OUTPUT_BYTES ((size_t)256 << 20)

/* An interrupt of the stage, and where a policy asks, what it takes to go on after the answer. data: borrowed, or
 * NULL. */
static int raise_interrupt(rv_visit *v, enum rv_interrupt_kind kind, const char *text, json_object *data, rv_err **err)
{
    char id[RV_ID_MAX];
    int rc = rv_visit_raise(v, kind, rv_str_of(text), data, id, err);
    if (rc < 0 || !v->confirm_message)
        return rc;
    json_object *kept = json_object_new_object(); /* so that the policy is not asked forever */
    if (!kept)
        return RV_FAIL(err, RV_E_NOMEM, "keep a policy's question");
    rc = rv_json_set_text(kept, "kind", POLICY, err);
    if (rc == 0)
        rc = rv_json_set_text(kept, "interrupt_id", id, err);
    if (rc == 0)
        rc = rv_json_set_text(kept, "policy", v->agent->hooks.policies.items[v->policy_at], err);
    if (rc == 0 && v->approved_policies)
        rc = rv_json_set_ref(kept, "approved", v->approved_policies, err);
    if (rc == 0)
        rc = rv_envelope_set_suspended(v->env, rv_str_of(v->agent->name), kept, err);
    json_object_put(kept);
    return rc;
}

/* Since rules 2 a question names its stage and shows what it is about. */
static bool says_more(const rv_visit *v)
{
    return v->shared->rules >= RV_RULES_2;
}

/* The output as a person reads it: the text where that is all there is, else JSON. */
static int write_output(json_object *output, rv_buf *out, rv_err **err)
{
    json_object *text = NULL;

    if (json_object_object_length(output) == 1 && json_object_object_get_ex(output, "response", &text) &&
        json_object_is_type(text, json_type_string))
        rv_buf_add_str(out, rv_json_str(text));
    else
        rv_json_write(output, out);
    return rv_buf_check(out, "output", err);
}

/* {stage, output, next?}: what a question is about, and, where a route raised it, the stage that a yes leads to. */
static int describe(const rv_visit *v, enum rv_outcome kind, rv_str output, json_object *data, rv_err **err)
{
    int rc = rv_json_set_text(data, "stage", v->agent->name, err);

    if (rc == 0 && output.len <= DATA_BYTES)
        rc = rv_json_set_ref(data, "output", v->output, err);
    else if (rc == 0)
        rc = rv_json_set_text(data, "output_key", v->agent->output.key, err);
    if (rc == 0 && kind == RV_OUTCOME_CONFIRM && v->routed_to == RV_TARGET_CONFIRMATION)
        rc = rv_json_set_text(data, RV_ASKED_NEXT, rv_pipeline_approved_name(v->shared->pipeline, v->agent), err);
    return rc;
}

static void write_question(const rv_visit *v, enum rv_outcome kind, rv_str output, rv_buf *text)
{
    rv_str head = rv_utf8_cut(output, SHOWN_BYTES);

    rv_buf_printf(text,
                  kind == RV_OUTCOME_CLARIFY ? "stage \"%s\" needs more information to go on; its output: %.*s%s"
                                             : "stage \"%s\" asks: may the run go on with this output? %.*s%s",
                  v->agent->name, RV_STR_ARG(head), head.len < output.len ? "..." : "");
}

static int ask_more(rv_visit *v, enum rv_outcome kind, const char *text, rv_err **err)
{
    rv_buf output = RV_BUF_INIT(MAX_OUTPUT_BYTES), question = RV_BUF_INIT(MAX_TEXT_BYTES);
    json_object *data = json_object_new_object();
    int rc = data ? write_output(v->output, &output, err) : RV_FAIL(err, RV_E_NOMEM, "ask a person");

    if (rc == 0)
        rc = describe(v, kind, rv_buf_str(&output), data, err);
    if (rc == 0 && !text) {
        write_question(v, kind, rv_buf_str(&output), &question);
        rc = rv_buf_check(&question, "question", err);
        text = rv_buf_cstr(&question);
    }
    if (rc == 0)
        rc = raise_interrupt(v, kind == RV_OUTCOME_CLARIFY ? RV_INTERRUPT_CLARIFICATION : RV_INTERRUPT_CONFIRMATION,
                             text, data, err);
    json_object_put(data);
    rv_buf_fini(&question);
    rv_buf_fini(&output);
    return rc;
}

static int ask(rv_visit *v, enum rv_outcome kind, rv_err **err)
{
    bool clarifies = kind == RV_OUTCOME_CLARIFY;
    const char *text = clarifies            ? rv_end_text(v->output, "clarification_question", "question")
                       : v->confirm_message ? v->confirm_message
                                            : rv_end_text(v->output, "confirmation_message", "message");

    if (says_more(v))
        return ask_more(v, kind, text, err);
    if (!text)
        text = clarifies ? "more information is needed to go on" : "may the run go on?";
    return raise_interrupt(v, clarifies ? RV_INTERRUPT_CLARIFICATION : RV_INTERRUPT_CONFIRMATION, text, NULL, err);
}

int rv_end_ask(rv_visit *v, enum rv_outcome kind, struct rv_effects *out, rv_err **err)
{
    int rc = ask(v, kind, err);

    return rc < 0 ? rc : rv_visit_stay(v, out, err);
}

int rv_end_ask_next(rv_visit *v, rv_err **err)
{
    return ask(v, RV_OUTCOME_CLARIFY, err);
}

int rv_end_ask_after_failure(rv_visit *v, enum rv_interrupt_kind kind, rv_err **err)
{
    rv_buf question = RV_BUF_INIT(MAX_TEXT_BYTES);
    json_object *data = NULL;

    if (!says_more(v))
        return raise_interrupt(v, kind, v->error_text, NULL, err);
    rv_buf_printf(&question, "stage \"%s\" failed: %s; %s", v->agent->name, v->error_text,
                  kind == RV_INTERRUPT_CONFIRMATION ? "visit it again?"
                                                    : "what should it know when it is visited again?");
    int rc = rv_buf_check(&question, "question", err);
    if (rc == 0 && !(data = json_object_new_object()))
        rc = RV_FAIL(err, RV_E_NOMEM, "ask a person");
    if (rc == 0)
        rc = rv_json_set_text(data, "stage", v->agent->name, err);
    if (rc == 0)
        rc = raise_interrupt(v, kind, rv_buf_cstr(&question), data, err);
    json_object_put(data);
    rv_buf_fini(&question);
    return rc;
}
