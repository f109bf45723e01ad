/* Hooks around a model call: those before it see the request, those after it the reply. A request that a hook changed
 * is checked as strictly as a foreign one: providers refuse a conversation that is not whole. */
#include "coreengine/agent/agent_internal.h"

#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#define MAX_REQUEST (16 * RV_TEMPLATE_MAX_OUTPUT) /* as a request without hooks */

void rv_model_hooks_fini(struct model_hooks *h)
{
    json_object_put(h->request);
    json_object_put(h->reply);
    free(h->opaque);
    h->request = h->reply = NULL;
    h->opaque = NULL;
    h->side = HOOKS_NOT_ASKED;
    h->at = 0;
}

/* --- what a hook may say of messages --- */

static rv_str text_of(json_object *object, const char *key)
{
    json_object *part = NULL;
    json_object_object_get_ex(object, key, &part);
    return rv_json_str(part);
}

static bool has_text(json_object *object, const char *key)
{
    json_object *part = NULL;
    return json_object_object_get_ex(object, key, &part) && json_object_is_type(part, json_type_string);
}

static bool knows_keys(json_object *object, const char *const *known, size_t n)
{
    json_object_object_foreach (object, key, value) {
        size_t i = 0;
        (void)value;
        while (i < n && strcmp(key, known[i]) != 0)
            i++;
        if (i == n)
            return false;
    }
    return true;
}

static bool is_call(json_object *call)
{
    static const char *const keys[] = {"id", "name", "arguments"};

    return json_object_is_type(call, json_type_object) && knows_keys(call, keys, RV_COUNT(keys)) &&
           has_text(call, "id") && has_text(call, "name") && has_text(call, "arguments");
}

static bool is_said_by_model(json_object *m)
{
    static const char *const keys[] = {"role", "content", "tool_calls", "opaque"};
    json_object *calls = NULL, *part = NULL;

    if (!knows_keys(m, keys, RV_COUNT(keys)))
        return false;
    if (json_object_object_get_ex(m, "content", &part) && !json_object_is_type(part, json_type_string))
        return false;
    if (json_object_object_get_ex(m, "opaque", &part) && !json_object_is_type(part, json_type_object))
        return false;
    if (!json_object_object_get_ex(m, "tool_calls", &calls))
        return part || rv_str_trim(text_of(m, "content")).len > 0;
    size_t n = json_object_is_type(calls, json_type_array) ? json_object_array_length(calls) : 0;
    for (size_t i = 0; i < n; i++)
        if (!is_call(json_object_array_get_idx(calls, i)))
            return false;
    return n > 0 && n <= RV_LLM_MAX_TOOL_CALLS;
}

static bool is_said_to_model(json_object *m)
{
    static const char *const keys[] = {"role", "content"};

    return knows_keys(m, keys, RV_COUNT(keys)) && has_text(m, "content");
}

static bool is_result_of(json_object *m, json_object *call)
{
    static const char *const keys[] = {"role", "tool_call_id", "name", "content", "is_error"};
    json_object *flag = NULL;

    if (!json_object_is_type(m, json_type_object) || !knows_keys(m, keys, RV_COUNT(keys)) || !has_text(m, "content"))
        return false;
    if (json_object_object_get_ex(m, "is_error", &flag) && !json_object_is_type(flag, json_type_boolean))
        return false;
    return rv_str_is(text_of(m, "role"), "tool") && rv_str_eq(text_of(m, "tool_call_id"), text_of(call, "id")) &&
           rv_str_eq(text_of(m, "name"), text_of(call, "name"));
}

/* The index of the first message that is none or stands at a wrong place; SIZE_MAX: all is well. Every tool call is
 * followed by its result, in order, before anything else. */
static size_t first_wrong(json_object *messages, bool is_history)
{
    size_t n = json_object_array_length(messages), i = 0;

    while (i < n) {
        json_object *m = json_object_array_get_idx(messages, i);
        if (!json_object_is_type(m, json_type_object))
            return i;
        rv_str role = text_of(m, "role");
        if (rv_str_is(role, "assistant")
                ? !is_said_by_model(m)
                : !(rv_str_is(role, "user") || (is_history && rv_str_is(role, "system"))) || !is_said_to_model(m))
            return i;
        json_object *calls = rv_json_get_arr(m, "tool_calls");
        i++;
        for (size_t c = 0; calls && c < json_object_array_length(calls); c++, i++)
            if (i >= n || !is_result_of(json_object_array_get_idx(messages, i), json_object_array_get_idx(calls, c)))
                return i;
    }
    return SIZE_MAX;
}

static int set_messages(json_object *request, const char *key, json_object *messages, rv_err **cause)
{
    if (!json_object_is_type(messages, json_type_array))
        return RV_FAIL(cause, RV_E_INVALID, "its request.%s must be a list, not %s", key, rv_json_type_text(messages));
    size_t wrong = first_wrong(messages, strcmp(key, "history") == 0);
    if (wrong != SIZE_MAX)
        return RV_FAIL(cause, RV_E_INVALID,
                       "its request.%s[%zu] is not a message that may stand there: every tool call needs its result "
                       "next, and nothing else may be in a message",
                       key, wrong);
    if (json_object_array_length(messages) > 0)
        return rv_json_set_ref(request, key, messages, cause);
    json_object_object_del(request, key);
    return 0;
}

static int set_text(json_object *request, const char *key, json_object *text, rv_err **cause)
{
    if (!json_object_is_type(text, json_type_string))
        return RV_FAIL(cause, RV_E_INVALID, "its request.%s must be a text, not %s", key, rv_json_type_text(text));
    return rv_json_set_ref(request, key, text, cause);
}

/* The money that is set aside and the role's limits are for max_tokens: a hook may only ask for less. */
static int set_option(const rv_visit *v, json_object *options, const char *key, json_object *value, rv_err **cause)
{
    double t = json_object_get_double(value);
    int64_t n = rv_json_is_int(value) ? json_object_get_int64(value) : 0;

    if (strcmp(key, "temperature") == 0) {
        if (!value) {
            json_object_object_del(options, key);
            return 0;
        }
        if (rv_json_is_number(value) && t >= 0 && t <= 2)
            return rv_json_set_ref(options, key, value, cause);
        return RV_FAIL(cause, RV_E_INVALID, "its request.options.temperature must be a number from 0 to 2, or null");
    }
    if (strcmp(key, "num_predict") == 0) {
        if (n >= 1 && n <= rv_visit_max_tokens(v))
            return rv_json_set_ref(options, key, value, cause);
        return RV_FAIL(cause, RV_E_INVALID, "its request.options.num_predict must be a whole number from 1 to %lld",
                       (long long)rv_visit_max_tokens(v));
    }
    if (strcmp(key, "seed") == 0) {
        if (rv_json_is_int(value))
            return rv_json_set_ref(options, key, value, cause);
        return RV_FAIL(cause, RV_E_INVALID, "its request.options.seed must be a whole number");
    }
    return RV_FAIL(cause, RV_E_INVALID,
                   "its request.options has \"%.*s\": temperature, num_predict and seed may be changed",
                   RV_STR_ARG(rv_utf8_cut(rv_str_of(key), 60)));
}

static int set_options(const rv_visit *v, json_object *request, json_object *given, rv_err **cause)
{
    json_object *options = rv_json_get_obj(request, "options");

    if (!json_object_is_type(given, json_type_object))
        return RV_FAIL(cause, RV_E_INVALID, "its request.options must be an object, not %s", rv_json_type_text(given));
    json_object_object_foreach (given, key, value) {
        int rc = set_option(v, options, key, value, cause);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Puts the members that a hook gives in place of those of the request. */
static int change_request(const rv_visit *v, json_object *request, json_object *given, rv_err **cause)
{
    static const char *const texts[] = {"system", "instructions", "prompt"};
    int rc = 0;

    json_object_object_foreach (given, key, value) {
        size_t i = 0;
        while (i < RV_COUNT(texts) && strcmp(key, texts[i]) != 0)
            i++;
        if (i < RV_COUNT(texts))
            rc = set_text(request, key, value, cause);
        else if (strcmp(key, "history") == 0 || strcmp(key, "turns") == 0)
            rc = set_messages(request, key, value, cause);
        else if (strcmp(key, "options") == 0)
            rc = set_options(v, request, value, cause);
        else
            rc = RV_FAIL(cause, RV_E_INVALID,
                         "its request has \"%.*s\": system, instructions, history, prompt, turns and options may be "
                         "changed",
                         RV_STR_ARG(rv_utf8_cut(rv_str_of(key), 60)));
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* --- before --- */

/* Holds the request to the bound of its context; the visit fails if it cannot be. */
static int bound_context(rv_visit *v, rv_err **err)
{
    int64_t max = v->agent->limits.max_context_tokens, tokens = 0, n = 0;
    bool fits = true;

    if (max == 0)
        return 0;
    int rc = rv_context_bound(v->model.hooks.request, max, &tokens, &n, &fits, err);
    v->model.hooks.n_left_out += n;
    if (rc < 0 || fits)
        return rc;
    return rv_visit_fail(v, "LimitError", err,
                         "agent \"%s\": the request has about %lld tokens even without its %lld oldest messages, and "
                         "max_context_tokens is %lld: raise it, or give the model less to read",
                         v->agent->name, (long long)tokens, (long long)v->model.hooks.n_left_out, (long long)max);
}

static int write_request(rv_visit *v, rv_buf *request, bool *send, rv_err **err)
{
    struct model_hooks *h = &v->model.hooks;
    rv_err *cause = NULL;

    rv_json_write(h->request, request);
    if (rv_buf_check(request, "model request", &cause) < 0)
        return rv_visit_fail_cause(v, "ProcessingError", cause, err);
    *send = true;
    return 0;
}

static int show(rv_visit *v, const char *key, json_object *value, enum hook_place place, struct rv_effects *out,
                rv_err **err)
{
    json_object *shown = json_object_new_object();
    int rc = shown ? rv_json_set_ref(shown, key, value, err) : RV_FAIL(err, RV_E_NOMEM, "show a call to a hook");

    if (rc == 0)
        rc = rv_hooks_ask(v, place, v->model.hooks.at, shown, out, err);
    json_object_put(shown);
    return rc;
}

static int ask_before(rv_visit *v, rv_buf *request, bool *send, struct rv_effects *out, rv_err **err)
{
    struct model_hooks *h = &v->model.hooks;

    if (h->at < v->agent->hooks.before_model.n) {
        h->side = HOOKS_BEFORE;
        return show(v, "request", h->request, BEFORE_MODEL, out, err);
    }
    h->side = HOOKS_PASSED;
    return write_request(v, request, send, err);
}

int rv_model_hooks_before(rv_visit *v, rv_buf *request, bool *send, struct rv_effects *out, rv_err **err)
{
    const struct rv_json_opts opts = {
        .max_bytes = MAX_REQUEST, .max_depth = RV_STATE_MAX_DEPTH, .what = "model request"};
    struct model_hooks *h = &v->model.hooks;
    bool is_seen = h->is_repeated && h->side == HOOKS_PASSED;
    rv_err *cause = NULL;

    *send = false;
    h->is_repeated = false;
    if (v->agent->hooks.before_model.n == 0 && v->agent->limits.max_context_tokens == 0) {
        *send = true;
        return 0;
    }
    if (is_seen) {
        rv_buf_clear(request);
        return write_request(v, request, send, err);
    }
    rv_model_hooks_fini(h);
    h->n_left_out = 0;
    if (rv_json_parse(rv_buf_str(request), &opts, &h->request, &cause) < 0)
        return rv_visit_fail_cause(v, "ProcessingError", cause, err);
    rv_buf_clear(request);
    int rc = bound_context(v, err);
    return rc < 0 || v->phase == PHASE_FAILED ? rc : ask_before(v, request, send, out, err);
}

/* --- after --- */

static int ask_after(rv_visit *v, struct rv_effects *out, rv_err **err);

/* The text of a reply that a hook gives: `text`, or an object as JSON. */
static int given_text(json_object *given, json_object **text, bool *is_output, rv_err **cause)
{
    static const char *const keys[] = {"text", "output"};
    json_object *part = NULL;
    rv_buf written = RV_BUF_INIT(RV_LLM_MAX_REPLY);

    *text = NULL;
    *is_output = json_object_object_get_ex(given, "output", &part);
    if (json_object_object_length(given) != 1 || !knows_keys(given, keys, RV_COUNT(keys)))
        return RV_FAIL(cause, RV_E_INVALID, "its reply must have either text or output, and nothing else");
    if (!*is_output)
        json_object_object_get_ex(given, "text", &part);
    if (!json_object_is_type(part, *is_output ? json_type_object : json_type_string))
        return RV_FAIL(cause, RV_E_INVALID, "its reply.%s must be %s, not %s", *is_output ? "output" : "text",
                       *is_output ? "an object" : "a text", rv_json_type_text(part));
    if (!*is_output) {
        *text = json_object_get(part);
        return 0;
    }
    rv_json_write(part, &written);
    int rc = rv_buf_check(&written, "the reply of a hook", cause);
    if (rc == 0 && !(*text = json_object_new_string_len(rv_buf_cstr(&written), (int)written.len)))
        rc = RV_FAIL(cause, RV_E_NOMEM, "take the reply of a hook");
    rv_buf_fini(&written);
    return rc;
}

/* Other words; the tool calls stay. An output is the whole reply. What the provider wanted back went with the old
 * words. */
static int change_reply(rv_visit *v, json_object *given, rv_err **cause)
{
    struct model_hooks *h = &v->model.hooks;
    json_object *text = NULL;
    bool is_output = false;
    int rc = given_text(given, &text, &is_output, cause);

    if (rc == 0)
        rc = rv_json_set_take(h->reply, "text", text, cause);
    if (rc < 0)
        return rc;
    free(h->opaque);
    h->opaque = NULL;
    if (is_output) {
        json_object_object_del(h->reply, "tool_calls");
        json_object_object_del(h->reply, "finish_reason");
        h->finish = RV_FINISH_STOP;
    }
    return 0;
}

static int keep_reply(rv_visit *v, const struct rv_event *ev, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = 4 * RV_LLM_MAX_REPLY, .what = "tool calls"};
    struct model_hooks *h = &v->model.hooks;
    json_object *calls = NULL;
    int rc = (h->reply = json_object_new_object()) ? 0 : RV_FAIL(err, RV_E_NOMEM, "keep a reply");

    if (rc == 0)
        rc = rv_json_set_str(h->reply, "text", ev->reply, err);
    if (rc == 0 && ev->llm.tool_calls.len > 0)
        rc = rv_json_parse(ev->llm.tool_calls, &opts, &calls, err);
    if (rc == 0 && calls)
        rc = rv_json_set_take(h->reply, "tool_calls", calls, err);
    h->finish = ev->llm.finish;
    if (rc == 0 && h->finish >= 0)
        rc = rv_json_set_text(h->reply, "finish_reason", rv_finish_reason_text((enum rv_finish_reason)h->finish), err);
    if (rc == 0 && ev->llm.opaque.len > 0 && !(h->opaque = rv_str_dup(ev->llm.opaque)))
        rc = RV_FAIL(err, RV_E_NOMEM, "keep a reply");
    return rc;
}

/* Every hook has seen it: the reply is judged. */
static int take_reply(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    struct model_hooks *h = &v->model.hooks;
    struct model_hooks was = *h;
    json_object *text = NULL, *calls = NULL;
    rv_buf written = RV_BUF_INIT(4 * RV_LLM_MAX_REPLY);

    *h = (struct model_hooks){.has_answered = was.has_answered};
    json_object_object_get_ex(was.reply, "text", &text);
    struct rv_event ev = {
        .kind = RV_EVENT_LLM_DONE, .now_us = v->now_us, .reply = rv_json_str(text), .llm = RV_LLM_ANSWER_NONE};
    if (json_object_object_get_ex(was.reply, "tool_calls", &calls))
        rv_json_write(calls, &written);
    ev.llm.tool_calls = rv_buf_str(&written);
    ev.llm.opaque = rv_str_of(was.opaque ? was.opaque : "");
    ev.llm.finish = was.finish;
    int rc = rv_buf_check(&written, "tool calls", err);
    if (rc == 0)
        rc = rv_reply_take(v, &ev, out, err);
    rv_buf_fini(&written);
    rv_model_hooks_fini(&was);
    return rc;
}

static int ask_after(rv_visit *v, struct rv_effects *out, rv_err **err)
{
    struct model_hooks *h = &v->model.hooks;

    if (h->at >= v->agent->hooks.after_model.n)
        return take_reply(v, out, err);
    h->side = HOOKS_AFTER;
    return show(v, "reply", h->reply, AFTER_MODEL, out, err);
}

int rv_model_hooks_after(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    rv_model_hooks_fini(&v->model.hooks);
    int rc = keep_reply(v, ev, err);
    return rc < 0 ? rc : ask_after(v, out, err);
}

/* --- answers --- */

static int blocked(rv_visit *v, enum hook_place place, rv_str reason, rv_err **err)
{
    return rv_visit_fail(v, "PolicyError", err, "hook \"%s\" blocked the %s of agent \"%s\": %.*s",
                         rv_hooks_of(v, place)->items[v->model.hooks.at],
                         place == BEFORE_MODEL ? "model call" : "reply", v->agent->name, RV_STR_ARG(reason));
}

/* A hook replies in place of the model: nothing is asked, and nothing is paid. */
static int answer_in_place(rv_visit *v, json_object *given, struct rv_effects *out, rv_err **cause, rv_err **err)
{
    struct model_hooks *h = &v->model.hooks;
    json_object *text = NULL, *reply = NULL;
    bool is_output = false;
    int rc = given_text(given, &text, &is_output, cause);

    if (rc < 0)
        return rc;
    if (!(reply = json_object_new_object())) {
        json_object_put(text);
        return RV_FAIL(err, RV_E_NOMEM, "take the reply of a hook");
    }
    rv_model_hooks_fini(h);
    h->reply = reply;
    h->finish = RV_FINISH_STOP;
    h->has_answered = true;
    v->model.is_scripted = true; /* no provider had a part in it */
    rc = rv_json_set_take(reply, "text", text, err);
    return rc < 0 ? rc : ask_after(v, out, err);
}

static int on_request(rv_visit *v, const struct hook_answer *a, struct rv_effects *out, rv_err **cause, rv_err **err)
{
    struct model_hooks *h = &v->model.hooks;
    rv_buf request = RV_BUF_INIT(MAX_REQUEST);
    bool send = false;
    int rc = 0;

    if (a->action == HOOK_BLOCKS)
        return blocked(v, BEFORE_MODEL, a->reason, err);
    if (a->action == HOOK_ANSWERS)
        return answer_in_place(v, a->value, out, cause, err);
    if (a->action == HOOK_REPLACES)
        rc = change_request(v, h->request, a->value, cause);
    if (rc == 0 && a->action == HOOK_REPLACES)
        rc = bound_context(v, err);
    if (rc < 0 || v->phase == PHASE_FAILED)
        return rc;
    h->at++;
    rc = ask_before(v, &request, &send, out, err);
    if (rc == 0 && send)
        return rv_model_send(v, &request, out, err);
    rv_buf_fini(&request);
    return rc;
}

static int on_reply(rv_visit *v, const struct hook_answer *a, struct rv_effects *out, rv_err **cause, rv_err **err)
{
    int rc = 0;

    if (a->action == HOOK_BLOCKS)
        return blocked(v, AFTER_MODEL, a->reason, err);
    if (a->action == HOOK_REPLACES)
        rc = change_reply(v, a->value, cause);
    if (rc < 0)
        return rc;
    v->model.hooks.at++;
    return ask_after(v, out, err);
}

int rv_model_hooks_on(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    enum hook_place place = v->model.hooks.side == HOOKS_BEFORE ? BEFORE_MODEL : AFTER_MODEL;
    size_t at = v->model.hooks.at;
    struct hook_answer answer;
    rv_err *cause = NULL;
    int rc = 0;

    if (!rv_hooks_read(v, place, at, ev, &answer, &rc, err))
        return rc;
    if (place == BEFORE_MODEL)
        rc = on_request(v, &answer, out, &cause, err);
    else
        rc = on_reply(v, &answer, out, &cause, err);
    if (cause)
        rc = rv_hooks_fail(v, place, at, cause, err);
    json_object_put(answer.json);
    return rc;
}
