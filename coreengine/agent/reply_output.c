/* The output that a reply gives: an object that fits its schema, or is asked for again, or whatever a plain stage takes
 * (W16). */
#include "coreengine/agent/reply_internal.h"

#define REPAIR_MAX ((size_t)64 << 10)

static int text_output(rv_str reply, json_object **out, rv_err **err)
{
    json_object *obj = json_object_new_object();
    if (!obj)
        return RV_FAIL(err, RV_E_NOMEM, "make the output of a text stage");
    int rc = rv_json_set_str(obj, "response", reply, err);
    if (rc < 0) {
        json_object_put(obj);
        return rc;
    }
    *out = obj;
    return 0;
}

/* Tell the model what was wrong, in the way its turn asks for: as the results of its calls, or as a user's word. */
static int ask_again(rv_visit *v, const struct rv_event *ev, json_object *calls, const char *fault, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(2 * REPAIR_MAX);
    json_object *given = rv_reply_output_call(calls);
    int rc = rv_messages_add_reply(v, ev, calls, err);

    rv_buf_printf(&text, "This does not fit the schema of the answer: %.*s. Correct it and answer again.",
                  RV_STR_ARG(rv_utf8_cut(rv_str_of(fault), REPAIR_MAX)));
    if (rc == 0)
        rc = rv_buf_check(&text, "repair message", err);
    for (size_t i = 0; rc == 0 && calls && i < json_object_array_length(calls); i++) {
        json_object *call = json_object_array_get_idx(calls, i);
        rv_str content =
            call == given ? rv_buf_str(&text) : RV_STR_LIT("Not called: a final answer was given as well.");
        rc = rv_messages_add_result(v, rv_reply_call_text(call, "id"), rv_reply_call_text(call, "name"), content, true,
                                    err);
    }
    if (rc == 0 && !calls)
        rc = rv_messages_add_user(v, rv_buf_str(&text), err);
    rv_buf_fini(&text);
    return rc;
}

/* Takes cause. */
static int repair(rv_visit *v, const struct rv_event *ev, json_object *calls, enum rv_failure code, rv_err *cause,
                  struct rv_effects *out, rv_err **err)
{
    if (rv_err_is(cause, RV_E_NOMEM))
        return rv_visit_fail_cause(v, "ValidationError", cause, err);
    if (v->model.repairs >= v->agent->limits.max_repairs) {
        int rc = RV_WRAP(&cause, rv_err_code(cause),
                         "agent \"%s\": the output does not fit output_schema, after %lld "
                         "of max_repairs (%lld) repairs: raise it, or say in the prompt what is wanted",
                         v->agent->name, (long long)v->model.repairs, (long long)v->agent->limits.max_repairs);
        RV_IGNORE(rc, "the error carries it");
        rc = rv_visit_fail_cause(v, "ParseError", cause, err);
        v->code = code;
        return rc;
    }
    v->model.repairs++;
    rv_reply_emit_repair(v, rv_err_text(cause), out);
    int rc = ask_again(v, ev, calls, rv_err_text(cause), err);
    rv_err_free(cause);
    v->phase = PHASE_MAIN;
    v->attempt = 1;
    return rc;
}

static int cut_off(const rv_visit *v, int rc, rv_err **cause)
{
    return RV_WRAP(cause, rc, "the reply was cut off at max_tokens (%lld)", (long long)rv_visit_max_tokens(v));
}

int rv_reply_structured(rv_visit *v, const struct rv_event *ev, json_object *calls, struct rv_effects *out,
                        rv_err **err)
{
    const struct rv_str_list *need = &v->agent->output.required_fields;
    json_object *given = rv_reply_output_call(calls), *value = NULL;
    enum rv_failure code = RV_FAILURE_OUTPUT_UNREADABLE;
    rv_err *cause = NULL;

    int rc = given ? rv_reply_arguments(v, rv_reply_call_text(given, "arguments"), &value, &cause)
                   : rv_extract_object(ev->reply, need->items, need->n, &value, &cause);
    if (rc == 0)
        rc = rv_output_check(v, value, &cause);
    else if (rc != RV_E_NOMEM && ev->llm.finish == RV_FINISH_LENGTH)
        rc = cut_off(v, rc, &cause);
    if (rc == 0) {
        v->output = value;
        v->phase = PHASE_CHECK;
        rv_reply_warn_of_cut(v, ev, out);
        v->model.final_calls = given ? json_object_get(calls) : NULL;
        return given ? rv_messages_tell_apart(v, calls, err) : 0;
    }
    if (value)
        code = rv_output_lacks_field(v, value) ? RV_FAILURE_OUTPUT_MISSING_FIELD : RV_FAILURE_OUTPUT_INVALID;
    json_object_put(value);
    return repair(v, ev, calls, code, cause, out, err);
}

/* The reader of the error wants to see what the model said instead, and how often it was asked. */
static int wrap_reply(const rv_visit *v, int rc, rv_str reply, rv_err **cause)
{
    rv_str head = rv_utf8_cut(rv_str_trim(reply), REPLY_HEAD_BYTES);
    const char *dots = head.len < rv_str_trim(reply).len ? "..." : "";

    if (v->attempt > 1)
        return RV_WRAP(cause, rc, "agent \"%s\", attempt %lld, can not use the reply \"%.*s%s\"", v->agent->name,
                       (long long)v->attempt, RV_STR_ARG(head), dots);
    return RV_WRAP(cause, rc, "agent \"%s\" can not use the reply \"%.*s%s\"", v->agent->name, RV_STR_ARG(head), dots);
}

int rv_reply_plain(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    const struct rv_str_list *need = &v->agent->output.required_fields;
    rv_err *cause = NULL;
    int rc;

    if (v->agent->output.mode == RV_OUTPUT_TEXT) {
        bool is_cut = ev->llm.finish == RV_FINISH_LENGTH;
        bool says_nothing = is_cut && rv_str_trim(ev->reply).len == 0;
        rc = says_nothing ? RV_FAIL(&cause, RV_E_PARSE, "agent \"%s\": the reply has no text", v->agent->name)
                          : text_output(ev->reply, &v->output, &cause);
        if (says_nothing)
            rc = cut_off(v, rc, &cause);
        else if (rc == 0)
            rv_reply_warn_of_cut(v, ev, out);
    } else {
        rc = rv_extract_object(ev->reply, need->items, need->n, &v->output, &cause);
        if (rc < 0 && ev->llm.finish == RV_FINISH_LENGTH)
            rc = cut_off(v, rc, &cause);
        if (rc < 0)
            rc = wrap_reply(v, rc, ev->reply, &cause);
        else
            rv_reply_warn_of_cut(v, ev, out);
    }
    if (rc < 0)
        return rv_reply_failed(v, "ParseError", true, cause, out, err);
    v->phase = PHASE_CHECK;
    return 0;
}
