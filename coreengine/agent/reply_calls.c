/* The tool calls of a reply: their content, and how the visit handles them. */
#include "coreengine/agent/reply_internal.h"

#define NAMES_MAX 400

static bool is_text(json_object *obj, const char *key)
{
    json_object *part = NULL;
    return json_object_object_get_ex(obj, key, &part) && json_object_is_type(part, json_type_string);
}

int rv_reply_calls(const struct rv_event *ev, json_object **out, rv_err **cause)
{
    const struct rv_json_opts opts = {.max_bytes = 4 * RV_LLM_MAX_REPLY, .what = "tool calls"};

    *out = NULL;
    if (ev->failed || ev->llm.tool_calls.len == 0)
        return 0;
    int rc = rv_json_parse(ev->llm.tool_calls, &opts, out, cause);
    size_t n = rc == 0 && json_object_is_type(*out, json_type_array) ? json_object_array_length(*out) : SIZE_MAX;
    bool good = n <= RV_LLM_MAX_TOOL_CALLS;
    for (size_t i = 0; good && i < n; i++) {
        json_object *call = json_object_array_get_idx(*out, i);
        good = json_object_is_type(call, json_type_object) && is_text(call, "id") && is_text(call, "name") &&
               is_text(call, "arguments");
    }
    if (rc == 0 && !good)
        rc = RV_FAIL(cause, RV_E_PARSE, "the reply's tool calls are no list of at most %d {id, name, arguments}",
                     RV_LLM_MAX_TOOL_CALLS);
    if (rc < 0 || n == 0) {
        json_object_put(*out);
        *out = NULL;
    }
    return rc;
}

rv_str rv_reply_call_text(json_object *call, const char *key)
{
    json_object *part = NULL;
    json_object_object_get_ex(call, key, &part);
    return rv_json_str(part);
}

int rv_reply_arguments(const rv_visit *v, rv_str text, json_object **out, rv_err **cause)
{
    const struct rv_json_opts opts = {.refuse_big_ints = rv_visit_refuses_big_ints(v), .what = "arguments"};

    if (rv_str_trim(text).len == 0) {
        *out = json_object_new_object();
        return *out ? 0 : RV_FAIL(cause, RV_E_NOMEM, "read arguments");
    }
    int rc = rv_json_parse(text, &opts, out, cause);
    if (rc < 0 || json_object_is_type(*out, json_type_object))
        return rc;
    rc = RV_FAIL(cause, RV_E_INVALID, "arguments must be an object, not %s", rv_json_type_text(*out));
    json_object_put(*out);
    *out = NULL;
    return rc;
}

static int add_step(rv_visit *v, json_object *call, rv_err **err)
{
    json_object *step = json_object_new_object(), *arguments = NULL;
    rv_err *cause = NULL;

    int rc = rv_json_push_take(v->tools.steps, step, err);
    if (rc == 0)
        rc = rv_json_set_str(step, "step_id", rv_reply_call_text(call, "id"), err);
    if (rc == 0)
        rc = rv_json_set_str(step, "tool", rv_reply_call_text(call, "name"), err);
    if (rc < 0)
        return rc;
    rc = rv_reply_arguments(v, rv_reply_call_text(call, "arguments"), &arguments, &cause);
    if (rc == 0)
        rc = rv_json_set_take(step, "parameters", arguments, err);
    else if (rv_err_is(cause, RV_E_NOMEM)) /* perhaps only for saying what is wrong */
        rc = RV_FAIL(err, RV_E_NOMEM, "read the arguments of a tool call");
    else
        rc = rv_json_set_text(step, "fault", rv_err_text(cause), err);
    rv_err_free(cause);
    return rc;
}

int rv_reply_act(rv_visit *v, const struct rv_event *ev, json_object *calls, rv_err **err)
{
    const struct rv_agent *a = v->agent;
    int64_t n = (int64_t)json_object_array_length(calls), limit = a->limits.llm.tool_calls_limit;

    if (v->model.rounds >= a->limits.max_rounds)
        return rv_visit_fail(v, "LimitError", err,
                             "agent \"%s\": the model called tools in %lld rounds and wants more, max_rounds is %lld: "
                             "raise it, or tell the model when to stop",
                             a->name, (long long)v->model.rounds, (long long)a->limits.max_rounds);
    if (limit > 0 && v->model.tool_calls + n > limit)
        return rv_visit_fail(v, "LimitError", err,
                             "agent \"%s\": the model has called %lld tools and asks for %lld more, "
                             "limits.tool_calls_limit is %lld: raise it, or offer fewer tools",
                             a->name, (long long)v->model.tool_calls, (long long)n, (long long)limit);
    v->model.rounds++;
    v->model.bad_before = v->model.bad_calls;
    v->model.tool_calls += n;
    int rc = rv_messages_add_reply(v, ev, calls, err);
    v->tools.all_succeeded = true;
    if (rc == 0 && (!(v->tools.steps = json_object_new_array()) || !(v->tools.results = json_object_new_array())))
        rc = RV_FAIL(err, RV_E_NOMEM, "call the tools of agent \"%s\"", a->name);
    for (size_t i = 0; i < (size_t)n && rc == 0; i++)
        rc = add_step(v, json_object_array_get_idx(calls, i), err);
    v->model.acting = true;
    v->attempt = 1;
    v->phase = PHASE_MAIN;
    return rc;
}

int rv_reply_unasked(rv_visit *v, json_object *calls, struct rv_effects *out, rv_err **err)
{
    rv_buf names = RV_BUF_INIT(2 * NAMES_MAX);
    rv_err *cause = NULL;

    for (size_t i = 0; i < json_object_array_length(calls) && names.len < NAMES_MAX; i++) {
        rv_str name = rv_utf8_cut(rv_reply_call_text(json_object_array_get_idx(calls, i), "name"), 80);
        rv_buf_printf(&names, "%s%.*s", i ? ", " : "", RV_STR_ARG(name));
    }
    int rc = rv_buf_check(&names, "names of tools", &cause);
    if (rc == 0)
        rc = RV_FAIL(&cause, RV_E_PARSE,
                     "agent \"%s\": the model asked for tools (%s), and the stage offers none: set has_tools and "
                     "allowed_tools",
                     v->agent->name, rv_buf_cstr(&names));
    RV_IGNORE(rc, "the error carries it");
    rv_buf_fini(&names);
    return rv_reply_failed(v, "LLMError", true, cause, out, err);
}

json_object *rv_reply_output_call(json_object *calls)
{
    for (size_t i = 0; calls && i < json_object_array_length(calls); i++)
        if (rv_str_is(rv_reply_call_text(json_object_array_get_idx(calls, i), "name"), RV_OUTPUT_TOOL))
            return json_object_array_get_idx(calls, i);
    return NULL;
}
