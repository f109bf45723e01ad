/* What a model's reply comes to: tool calls to be made, an output, a reply that is asked for again, or a failure (rules
 * 5.5 to 5.7, W16). */
#include "coreengine/agent/tools_internal.h"
#include "envelope/envelope.h"

#include <string.h>

#define MAX_HIDDEN       ((size_t)64 << 10)         /* bytes of hidden text in its event: each client is sent it */
#define REPLY_HEAD_BYTES 80                         /* of a reply that an error shows */
#define MAX_QUOTE        (6 * REPLY_HEAD_BYTES + 1) /* bytes of that head: a NUL takes six */

/* --- events --- */

/* Hooks look at its text before people are shown it. */
static bool is_guarded(const rv_visit *v)
{
    return v->agent->hooks.after_model.n > 0;
}

/* Words that people are not shown can be read in the event. */
static void emit_reply(rv_visit *v, const struct rv_event *ev, json_object *calls, int64_t spent_before,
                       struct rv_effects *out)
{
    const struct rv_llm_answer *a = &ev->llm;
    bool failed = ev->failed, good = !failed, is_open = !is_guarded(v);
    bool is_hidden = good && agent_visible_is_hidden(v), has_usage = a->has_usage;
    int64_t cost = v->model.usage.cost_micro_usd - spent_before;
    const char *code = failed ? visit_code_text(v, agent_event_failure(ev)) : NULL;

    rv_visit_emit(
        v, out, RV_EMIT_LLM_RESULT, RV_M_INT("call_id", ev->call_id), RV_M_TEXT("status", failed ? "error" : "success"),
        RV_M_IF(failed, RV_M_TEXT("error_type", ev->error_type ? ev->error_type : rv_error_llm)),
        RV_M_IF(failed && a->error_kind >= 0,
                RV_M_TEXT("error_kind", rv_llm_error_text((enum rv_llm_error)a->error_kind))),
        RV_M_IF(code, RV_M_TEXT("code", code)), RV_M_IF(failed, RV_M_STR("error", ev->error)),
        RV_M_IF(failed && is_open && ev->reply.len && rv_utf8_valid(ev->reply, NULL),
                RV_M_PREVIEW("partial", ev->reply)),
        RV_M_IF(good, RV_M_INT("bytes", (int64_t)ev->reply.len)),
        RV_M_IF(good && is_open && rv_utf8_valid(ev->reply, NULL), RV_M_PREVIEW("preview", ev->reply)),
        RV_M_IF(is_open && is_hidden, RV_M_BOOL("muted", true)),
        RV_M_IF(is_open && is_hidden && rv_utf8_valid(ev->reply, NULL) && rv_str_trim(ev->reply).len > 0,
                RV_M_STR("muted_text", rv_utf8_cut(ev->reply, MAX_HIDDEN))),
        RV_M_IF(good && calls && json_object_array_length(calls) > 0, RV_M_OF(NAMES, "tool_calls", calls)),
        RV_M_IF(good && a->finish >= 0,
                RV_M_TEXT("finish_reason", rv_finish_reason_text((enum rv_finish_reason)a->finish))),
        RV_M_IF(a->role, RV_M_TEXT("answered_by", a->role)),
        RV_M_IF(has_usage, RV_M_INT("input_tokens", a->usage.input_tokens)),
        RV_M_IF(has_usage, RV_M_INT("output_tokens", a->usage.output_tokens)),
        RV_M_IF(has_usage && a->usage.cached_tokens, RV_M_INT("cached_tokens", a->usage.cached_tokens)),
        RV_M_IF(has_usage && a->usage.reasoning_tokens, RV_M_INT("reasoning_tokens", a->usage.reasoning_tokens)),
        RV_M_IF(a->latency_us > 0, RV_M_INT("latency_ms", a->latency_us / RV_US_PER_MS)),
        RV_M_IF(a->first_token_us > 0, RV_M_INT("first_token_ms", a->first_token_us / RV_US_PER_MS)),
        RV_M_IF(a->attempts > 1, RV_M_INT("attempts", a->attempts)),
        RV_M_IF(cost > 0, RV_M_INT("cost_micro_usd", cost)));
}

static void warn_of_cut(rv_visit *v, const struct rv_event *ev, struct rv_effects *out)
{
    if (ev->llm.finish == RV_FINISH_LENGTH)
        rv_visit_emit(v, out, RV_EMIT_WARNING,
                      RV_M_TEXT("message", "the reply was cut off at its longest: raise max_tokens"));
}

/* --- failures --- */

static int64_t max_retries(const rv_visit *v)
{
    int64_t cap = v->shared->pipeline->execution.max_llm_retries;
    return v->agent->limits.max_retries < cap ? v->agent->limits.max_retries : cap;
}

/* Another attempt would be made, and the run has no model call left for it. Takes cause. */
static int no_call_left(rv_visit *v, rv_err *cause, rv_err **err)
{
    int rc = RV_WRAP(&cause, RV_E_LIMIT,
                     "agent \"%s\" needs a further model call, and all that max_llm_calls (%lld) allows were made; the "
                     "last one failed",
                     v->agent->name, (long long)v->bound_of->pipeline->max_llm_calls);

    RV_IGNORE(rc, "the chain carries it");
    return visit_fail_cause(v, rv_error_limit, cause, err);
}

/* The attempt failed: try again if that may help, else the stage fails. Takes cause. */
static int attempt_failed(rv_visit *v, const char *type, bool retryable, rv_err *cause, struct rv_effects *out,
                          rv_err **err)
{
    if (retryable && !rv_err_is(cause, RV_E_NOMEM) && visit_retry(v, max_retries(v), true, rv_err_text(cause), out)) {
        rv_err_free(cause);
        v->model.hooks.is_repeated = true;
        return 0;
    }
    if (v->bound != RV_REASON_NONE && !rv_err_is(cause, RV_E_NOMEM))
        return no_call_left(v, cause, err);
    return visit_fail_cause(v, type, cause, err);
}

#define NAMES_MAX 400 /* bytes of the names that one message lists: a model reads it; further ones are left out */

/* Arguments as an object, the caller's; RV_E_PARSE and RV_E_INVALID say why they are none. */
static int read_arguments(const rv_visit *v, rv_str text, json_object **out, rv_err **cause)
{
    const struct rv_json_opts opts = {.refuse_big_ints = visit_refuses_big_ints(v), .what = "arguments"};

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

/* The rows of the turn need them again, as a value. */
static int keep_arguments(rv_visit *v, json_object *call, json_object *arguments, rv_err **err)
{
    if (!v->agent->declared.doc)
        return 0;
    if (!v->model.arguments && !(v->model.arguments = json_object_new_object()))
        return RV_FAIL(err, RV_E_NOMEM, "keep the arguments of a tool call");
    return rv_json_set_ref(v->model.arguments, json_object_get_string(json_object_object_get(call, "id")), arguments,
                           err);
}

static int add_step(rv_visit *v, json_object *call, rv_err **err)
{
    json_object *step = json_object_new_object(), *arguments = NULL;
    rv_err *cause = NULL;

    int rc = rv_json_push_take(v->tools.steps, step, err);
    if (rc == 0)
        rc = rv_json_set_str(step, "step_id", agent_call_text(call, "id"), err);
    if (rc == 0)
        rc = rv_json_set_str(step, "tool", agent_call_text(call, "name"), err);
    if (rc < 0)
        return rc;
    rc = read_arguments(v, agent_call_text(call, "arguments"), &arguments, &cause);
    if (rc == 0)
        rc = rv_json_set_take(step, "parameters", arguments, err);
    else if (rv_err_is(cause, RV_E_NOMEM)) /* perhaps only for saying what is wrong */
        rc = RV_FAIL(err, RV_E_NOMEM, "read the arguments of a tool call");
    else
        rc = rv_json_set_text(step, "fault", rv_err_text(cause), err);
    rv_err_free(cause);
    return rc == 0 && arguments ? keep_arguments(v, call, arguments, err) : rc;
}

/* The calls become the steps of the tool machine. */
static int begin_calls(rv_visit *v, const struct rv_event *ev, json_object *calls, rv_err **err)
{
    const struct rv_agent *a = v->agent;
    int64_t n = (int64_t)json_object_array_length(calls);

    if (v->model.rounds >= a->limits.max_rounds)
        return rv_visit_fail(v, rv_error_limit, err,
                             "agent \"%s\": the model called tools in %lld rounds and wants more, max_rounds is %lld: "
                             "raise it, or tell the model when to stop",
                             a->name, (long long)v->model.rounds, (long long)a->limits.max_rounds);
    int rc = money_count_tools(v, n, err);
    if (rc < 0 || v->phase == PHASE_FAILED)
        return rc;
    v->model.rounds++;
    v->model.bad_before = v->model.bad_calls;
    rc = agent_messages_add_reply(v, ev, calls, err);
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

/* The model called tools that it was not offered: the attempt failed. */
static int unoffered_calls(rv_visit *v, json_object *calls, struct rv_effects *out, rv_err **err)
{
    bool answers = v->planned && v->shared->rules >= RV_RULES_10;
    const char *why = answers ? " where it has to answer: say in the prompt that an answer calls no tool"
                              : ", and the stage offers none: set has_tools and allowed_tools";
    rv_buf names = RV_BUF_INIT(2 * NAMES_MAX);
    rv_err *cause = NULL;

    for (size_t i = 0; i < json_object_array_length(calls) && names.len < NAMES_MAX; i++) {
        rv_str name = rv_utf8_cut(agent_call_text(json_object_array_get_idx(calls, i), "name"), 80);
        rv_buf_printf(&names, "%s%.*s", i ? ", " : "", RV_STR_ARG(name));
    }
    int rc = rv_buf_check(&names, "names of tools", &cause);
    if (rc == 0)
        rc = RV_FAIL(&cause, RV_E_PARSE, "agent \"%s\": the model asked for tools (%s)%s", v->agent->name,
                     rv_buf_cstr(&names), why);
    RV_IGNORE(rc, "the error carries it");
    rv_buf_fini(&names);
    return attempt_failed(v, rv_error_llm, true, cause, out, err);
}

/* The call by which the model hands over its output, or NULL; borrowed. calls may be NULL. */
static json_object *output_call(json_object *calls)
{
    for (size_t i = 0; calls && i < json_object_array_length(calls); i++)
        if (rv_str_is(agent_call_text(json_object_array_get_idx(calls, i), "name"), RV_OUTPUT_TOOL))
            return json_object_array_get_idx(calls, i);
    return NULL;
}

#define REPAIR_MAX ((size_t)64 << 10) /* bytes of what is wrong, as the model is told; the rest is cut */

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
    json_object *given = output_call(calls);
    int rc = agent_messages_add_reply(v, ev, calls, err);

    rv_buf_printf(&text, "This does not fit the schema of the answer: %.*s. Correct it and answer again.",
                  RV_STR_ARG(rv_utf8_cut(rv_str_of(fault), REPAIR_MAX)));
    if (rc == 0)
        rc = rv_buf_check(&text, "repair message", err);
    for (size_t i = 0; rc == 0 && calls && i < json_object_array_length(calls); i++) {
        json_object *call = json_object_array_get_idx(calls, i);
        rv_str content =
            call == given ? rv_buf_str(&text) : RV_STR_LIT("Not called: a final answer was given as well.");
        rc = agent_messages_add_result(v, agent_call_text(call, "id"), agent_call_text(call, "name"), content, true,
                                       err);
    }
    if (rc == 0 && !calls)
        rc = agent_messages_add_user(v, rv_buf_str(&text), err);
    rv_buf_fini(&text);
    return rc;
}

/* The reply of a model as it came, and the calls in it. */
struct heard_reply {
    const struct rv_event *ev; /* borrowed */
    json_object *calls;        /* judge() takes it; repair() borrows it */
};
/* Takes cause. */
static int repair(rv_visit *v, const struct heard_reply *heard, enum rv_failure code, rv_err *cause,
                  struct rv_effects *out, rv_err **err)
{
    if (rv_err_is(cause, RV_E_NOMEM))
        return visit_fail_cause(v, rv_error_validation, cause, err);
    if (v->model.repairs >= v->agent->limits.max_repairs) {
        int rc = RV_WRAP(&cause, rv_err_code(cause),
                         "agent \"%s\": the output does not fit output_schema, after %lld "
                         "of max_repairs (%lld) repairs: raise it, or say in the prompt what is wanted",
                         v->agent->name, (long long)v->model.repairs, (long long)v->agent->limits.max_repairs);
        RV_IGNORE(rc, "the error carries it");
        rc = visit_fail_cause(v, rv_error_parse, cause, err);
        v->code = code;
        return rc;
    }
    v->model.repairs++;
    rv_visit_emit(v, out, RV_EMIT_RETRY, RV_M_INT("repair", v->model.repairs), RV_M_INT("wait_ms", 0),
                  RV_M_TEXT("error", rv_err_text(cause)));
    int rc = ask_again(v, heard->ev, heard->calls, rv_err_text(cause), err);
    rv_err_free(cause);
    v->phase = PHASE_MAIN;
    v->attempt = 1;
    return rc;
}

static int cut_off(const rv_visit *v, int rc, rv_err **cause)
{
    return RV_WRAP(cause, rc, "the reply was cut off at max_tokens (%lld)", (long long)visit_max_tokens(v));
}

/* Tells whether an object lacks a field that output_schema or required_output_fields want at its top level. */
static bool lacks_field(const rv_visit *v, json_object *value)
{
    const struct rv_str_list *need = &v->agent->output.required_fields;
    json_object *required = rv_json_get_arr(v->agent->output.schema, "required");

    for (size_t i = 0; i < need->n; i++)
        if (!json_object_object_get_ex(value, need->items[i], NULL))
            return true;
    for (size_t i = 0; required && i < json_object_array_length(required); i++) {
        json_object *name = json_object_array_get_idx(required, i);
        if (json_object_is_type(name, json_type_string) &&
            !json_object_object_get_ex(value, json_object_get_string(name), NULL))
            return true;
    }
    return false;
}

/* calls: NULL, or with one that hands it over. */
static int structured_output(rv_visit *v, const struct rv_event *ev, json_object *calls, struct rv_effects *out,
                             rv_err **err)
{
    const struct rv_str_list *need = &v->agent->output.required_fields;
    json_object *given = output_call(calls), *value = NULL;
    enum rv_failure code = RV_FAILURE_OUTPUT_UNREADABLE;
    rv_err *cause = NULL;

    int rc = given ? read_arguments(v, agent_call_text(given, "arguments"), &value, &cause)
                   : rv_extract_object(ev->reply, need->items, need->n, v->shared->rules, &value, &cause);
    if (rc == 0)
        rc = agent_output_check(v, value, &cause);
    else if (rc != RV_E_NOMEM && ev->llm.finish == RV_FINISH_LENGTH)
        rc = cut_off(v, rc, &cause);
    if (rc == 0) {
        v->output = value;
        v->phase = PHASE_CHECK;
        warn_of_cut(v, ev, out);
        json_object_put(v->model.final_calls); /* of an output that was asked for again */
        v->model.final_calls = given ? json_object_get(calls) : NULL;
        return given ? agent_messages_tell_apart(v, calls, err) : 0;
    }
    if (value)
        code = lacks_field(v, value) ? RV_FAILURE_OUTPUT_MISSING_FIELD : RV_FAILURE_OUTPUT_INVALID;
    json_object_put(value);
    return repair(v, &(const struct heard_reply){.ev = ev, .calls = calls}, code, cause, out, err);
}

/* The beginning of a reply inside an error. The text of an error ends at a NUL, so a NUL is shown as JSON writes it. */
static const char *quote(const rv_visit *v, rv_str head, char out[MAX_QUOTE])
{
    size_t n = 0;

    for (size_t i = 0; i < head.len && (head.ptr[i] || v->shared->rules >= RV_RULES_9); i++) {
        rv_str shown = head.ptr[i] ? (rv_str){head.ptr + i, 1} : RV_STR_LIT("\\u0000");
        memcpy(out + n, shown.ptr, shown.len);
        n += shown.len;
    }
    out[n] = '\0';
    return out;
}

/* The reader of the error wants to see what the model wrote instead, and how often it was asked. */
static int wrap_reply(const rv_visit *v, int rc, rv_str reply, rv_err **cause)
{
    rv_str head = rv_utf8_cut(rv_str_trim(reply), REPLY_HEAD_BYTES);
    const char *dots = head.len < rv_str_trim(reply).len ? "..." : "";
    char shown[MAX_QUOTE];

    if (v->attempt > 1)
        return RV_WRAP(cause, rc, "agent \"%s\", attempt %lld, %s use the reply \"%s%s\"", v->agent->name,
                       (long long)v->attempt, visit_cannot(v), quote(v, head, shown), dots);
    return RV_WRAP(cause, rc, "agent \"%s\" %s use the reply \"%s%s\"", v->agent->name, visit_cannot(v),
                   quote(v, head, shown), dots);
}

static int plain_output(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
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
            warn_of_cut(v, ev, out);
    } else {
        rc = rv_extract_object(ev->reply, need->items, need->n, v->shared->rules, &v->output, &cause);
        if (rc < 0 && ev->llm.finish == RV_FINISH_LENGTH)
            rc = cut_off(v, rc, &cause);
        if (rc < 0)
            rc = wrap_reply(v, rc, ev->reply, &cause);
        else
            warn_of_cut(v, ev, out);
    }
    if (rc < 0)
        return attempt_failed(v, rv_error_parse, true, cause, out, err);
    v->phase = PHASE_CHECK;
    return 0;
}

/* A quota of the user or the tenant: it ends the whole run, as its own bounds do, and no stage can catch it. */
static int quota_refused(rv_visit *v, rv_err *cause, rv_err **err)
{
    const struct rv_visit_shared *s = v->shared;

    while (s->up)
        s = s->up;
    v->bound = RV_REASON_QUOTA;
    v->bound_of = s;
    return visit_fail_cause(v, rv_error_limit, cause, err);
}

static int call_failed(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    const char *type = ev->error_type ? ev->error_type : rv_error_llm;
    bool timeout = rv_error_is(type, rv_error_timeout);
    rv_err *cause = NULL;

    int rc = RV_FAIL(&cause, timeout ? RV_E_TIMEOUT : RV_E_PROVIDER, "agent \"%s\": generation failed: %.*s",
                     v->agent->name, RV_STR_ARG(ev->error));
    RV_IGNORE(rc, "the error carries it");
    rc = agent_event_failure(ev) == RV_FAILURE_QUOTA_EXCEEDED
             ? quota_refused(v, cause, err)
             : attempt_failed(v, type, ev->retryable || timeout, cause, out, err);
    if (rc == 0 && v->phase == PHASE_FAILED) {
        v->code = agent_event_failure(ev);
        visit_fail_by(v, ev, "agent \"%s\": generation failed", v->agent->name);
    }
    return rc;
}

/* --- the reply --- */

/* The provider's own loop paused: it wants its text back and goes on. */
static int go_on(rv_visit *v, const struct rv_event *ev, rv_err **err)
{
    if (!v->agent->has_tools) /* nor is it counted by the proof of model calls */
        return rv_visit_fail(v, rv_error_llm, err,
                             "agent \"%s\": the provider paused its answer, which only stages with tools go on with: "
                             "set has_tools",
                             v->agent->name);
    if (v->model.rounds >= v->agent->limits.max_rounds)
        return rv_visit_fail(v, rv_error_limit, err,
                             "agent \"%s\": the provider paused its answer %lld times, max_rounds is %lld: raise it",
                             v->agent->name, (long long)v->model.rounds, (long long)v->agent->limits.max_rounds);
    v->model.rounds++;
    v->phase = PHASE_MAIN;
    return agent_messages_add_reply(v, ev, NULL, err);
}

static int refused(rv_visit *v, const struct rv_event *ev, rv_err **err)
{
    rv_str head = rv_utf8_cut(rv_str_trim(ev->reply), REPLY_HEAD_BYTES);
    bool declined = ev->llm.finish == RV_FINISH_REFUSAL;
    char shown[MAX_QUOTE];

    return rv_visit_fail_as(v, declined ? RV_FAILURE_MODEL_DECLINED : RV_FAILURE_MODEL_CONTENT_FILTER, rv_error_llm,
                            err, "agent \"%s\": %s: \"%s\"", v->agent->name,
                            declined ? "the model refuses to answer"
                                     : "the provider's content filter cut the answer off",
                            quote(v, head, shown));
}

/* Of a stage that plans: the plan, or the answer with which it ends. */
static int planned_reply(rv_visit *v, const struct rv_event *ev, json_object *calls, struct rv_effects *out,
                         rv_err **err)
{
    bool has_schema = v->agent->output.schema, has_text = rv_str_trim(ev->reply).len > 0;
    rv_err *cause = NULL;

    v->model.rounds++;
    if (v->planned->part == PLANNED_PLAN)
        return planned_take(v, ev, calls, out, err);
    if (calls && (has_schema ? !output_call(calls) : !has_text))
        return unoffered_calls(v, calls, out, err);
    if (has_schema) {
        int rc = structured_output(v, ev, calls, out, err);
        return rc == 0 && v->phase == PHASE_CHECK ? planned_end(v, err) : rc;
    }
    if (!has_text) {
        int rc = RV_FAIL(&cause, RV_E_PARSE, "agent \"%s\": the reply has no text", v->agent->name);
        RV_IGNORE(rc, "the error carries it");
        return attempt_failed(v, rv_error_llm, true, cause, out, err);
    }
    warn_of_cut(v, ev, out);
    return planned_answer(v, ev->reply, err);
}

/* calls: NULL when there are none. */
static int take_reply(rv_visit *v, const struct rv_event *ev, json_object *calls, struct rv_effects *out, rv_err **err)
{
    json_object *offered = NULL;

    if (ev->llm.finish == RV_FINISH_REFUSAL || ev->llm.finish == RV_FINISH_CONTENT_FILTER)
        return refused(v, ev, err);
    if (v->planned)
        return planned_reply(v, ev, calls, out, err);
    if (v->agent->output.schema && (!calls || output_call(calls)))
        return ev->llm.finish == RV_FINISH_PAUSE ? go_on(v, ev, err) : structured_output(v, ev, calls, out, err);
    int rc = calls ? agent_tools_offered(v, &offered, err) : 0;
    if (rc < 0)
        return rc;
    if (calls)
        return offered || v->agent->output.schema ? begin_calls(v, ev, calls, err)
                                                  : unoffered_calls(v, calls, out, err);
    return ev->llm.finish == RV_FINISH_PAUSE ? go_on(v, ev, err) : plain_output(v, ev, out, err);
}

/* Takes calls and cause; rc: of reading the calls. */
static int judge(rv_visit *v, const struct heard_reply *heard, int rc, rv_err *cause, struct rv_effects *out,
                 rv_err **err)
{
    if (rc == 0 && v->model.visible.rc < 0)
        rc = RV_FAIL(&cause, RV_E_LIMIT, "agent \"%s\" said more in one turn than the %zu MiB that are kept",
                     v->agent->name, v->model.visible.max >> 20);
    if (rc == 0 && !rv_utf8_valid(heard->ev->reply, NULL))
        rc = RV_FAIL(&cause, RV_E_PARSE, "agent \"%s\": the model reply is not valid UTF-8", v->agent->name);
    if (rc < 0)
        rc = attempt_failed(v, rv_error_parse, true, cause, out, err);
    else if (money_within_limits(v, &rc, err))
        rc = take_reply(v, heard->ev, heard->calls, out, err);
    if (v->phase != PHASE_FAILED) /* else they become rows */
        agent_messages_drop_new_calls(&v->model);
    json_object_put(heard->calls);
    return rc;
}

/* What was said is the visit's. unseen: no hook will look at it, so people do not see it. Takes cause when memory is
 * short. */
static int hear(rv_visit *v, const struct rv_event *ev, json_object *calls, bool unseen, rv_err *cause, rv_err **err)
{
    if (ev->failed && !is_guarded(v))
        rv_buf_add_str(&v->partial, ev->reply);
    if (!ev->failed && !unseen && !(v->planned && v->planned->part == PLANNED_PLAN))
        agent_visible_own(v, ev->reply, calls != NULL);
    v->model.finish = ev->failed ? RV_UNSET : ev->llm.finish;
    if (v->partial.rc == RV_E_NOMEM || v->model.visible.rc == RV_E_NOMEM) {
        rv_err_free(cause);
        json_object_put(calls);
        return RV_FAIL(err, RV_E_NOMEM, "keep what agent \"%s\" said", v->agent->name);
    }
    agent_messages_drop_new_calls(&v->model);
    v->model.new_calls = json_object_get(calls);
    return 0;
}

int agent_reply_take(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    json_object *calls = NULL;
    rv_err *cause = NULL;
    int rc = agent_messages_read_calls(ev, &calls, &cause), heard = hear(v, ev, calls, false, cause, err);

    return heard < 0 ? heard : judge(v, &(const struct heard_reply){.ev = ev, .calls = calls}, rc, cause, out, err);
}

int visit_llm_done(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    int64_t spent = v->model.usage.cost_micro_usd;
    json_object *calls = NULL;
    rv_err *cause = NULL;

    money_settle(v, ev);
    rv_buf_clear(&v->partial);
    int rc = agent_messages_read_calls(ev, &calls, &cause);
    if (rc == 0 && !ev->failed && is_guarded(v) && rv_utf8_valid(ev->reply, NULL)) {
        emit_reply(v, ev, calls, spent, out);
        json_object_put(calls);
        return money_within_limits(v, &rc, err) ? agent_model_hooks_after(v, ev, out, err) : rc;
    }
    bool unseen = is_guarded(v) && v->shared->rules >= RV_RULES_10; /* its calls or its text cannot be read */
    int heard = hear(v, ev, calls, unseen, cause, err);
    if (heard < 0)
        return heard;
    emit_reply(v, ev, calls, spent, out);
    if (!ev->failed)
        return judge(v, &(const struct heard_reply){.ev = ev, .calls = calls}, rc, cause, out, err);
    json_object_put(calls);
    return call_failed(v, ev, out, err);
}
