/* Hooks around a model call: those before it see the request, those after it the reply. */
#include "coreengine/agent/agent_internal.h"
#include "envelope/envelope.h"

#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

void agent_model_hooks_fini(struct model_hooks *h)
{
    json_object_put(h->request);
    json_object_put(h->reply);
    free(h->opaque);
    h->request = h->reply = NULL;
    h->opaque = NULL;
    h->side = HOOKS_NOT_ASKED;
    h->at = 0;
}

/* --- before --- */

/* Holds the request to the bound of its context; the visit fails if it cannot be. */
static int bound_context(rv_visit *v, rv_err **err)
{
    int64_t max = v->agent->limits.max_context_tokens, n = 0;
    bool fits = true;

    if (max == 0)
        return 0;
    json_object *list = v->shared->rules >= RV_RULES_4 ? rv_json_get_arr(v->model.hooks.request, "attachments") : NULL;
    int64_t beside = rv_attachments_estimate(list), tokens = beside;
    int rc = agent_context_bound(v->model.hooks.request, max, &tokens, &n, &fits, err);
    v->model.hooks.n_left_out += n;
    if (rc < 0 || fits)
        return rc;
    int64_t left_out = v->model.hooks.n_left_out;
    if (beside > 0)
        return rv_visit_fail(v, rv_error_limit, err,
                             "agent \"%s\": the request has about %lld tokens (%lld of them for its attachments) even "
                             "without its %lld oldest messages, and max_context_tokens is %lld: raise it, or give the "
                             "model less to read",
                             v->agent->name, (long long)tokens, (long long)beside, (long long)left_out, (long long)max);
    return rv_visit_fail(v, rv_error_limit, err,
                         "agent \"%s\": the request has about %lld tokens even without its %lld oldest messages, and "
                         "max_context_tokens is %lld: raise it, or give the model less to read",
                         v->agent->name, (long long)tokens, (long long)left_out, (long long)max);
}

static int write_request(rv_visit *v, rv_buf *request, bool *send, rv_err **err)
{
    struct model_hooks *h = &v->model.hooks;
    rv_err *cause = NULL;

    rv_json_write(h->request, request);
    if (rv_buf_check(request, "model request", &cause) < 0)
        return visit_fail_cause(v, rv_error_processing, cause, err);
    *send = true;
    return 0;
}

static int show(rv_visit *v, const char *key, json_object *value, enum hook_place place, struct rv_effects *out,
                rv_err **err)
{
    json_object *shown = json_object_new_object();
    int rc = shown ? rv_json_set_ref(shown, key, value, err) : RV_FAIL(err, RV_E_NOMEM, "show a call to a hook");

    if (rc == 0)
        rc = agent_hooks_ask(v, place, v->model.hooks.at, shown, out, err);
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

int agent_model_hooks_before(rv_visit *v, rv_buf *request, bool *send, struct rv_effects *out, rv_err **err)
{
    const struct rv_json_opts opts = {
        .max_bytes = AGENT_MAX_REQUEST, .max_depth = RV_STATE_MAX_DEPTH, .what = "model request"};
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
    agent_model_hooks_fini(h);
    h->n_left_out = 0;
    if (rv_json_parse(rv_buf_str(request), &opts, &h->request, &cause) < 0)
        return visit_fail_cause(v, rv_error_processing, cause, err);
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
    if (json_object_object_length(given) != 1 || !agent_hooks_know_keys(given, keys, RV_COUNT(keys)))
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
        rc = agent_reply_take(v, &ev, out, err);
    rv_buf_fini(&written);
    agent_model_hooks_fini(&was);
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

int agent_model_hooks_after(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    agent_model_hooks_fini(&v->model.hooks);
    int rc = keep_reply(v, ev, err);
    return rc < 0 ? rc : ask_after(v, out, err);
}

/* --- answers --- */

static int blocked(rv_visit *v, enum hook_place place, rv_str reason, rv_err **err)
{
    return rv_visit_fail(v, rv_error_policy, err, "hook \"%s\" blocked the %s of agent \"%s\": %.*s",
                         agent_hooks_of(v, place)->items[v->model.hooks.at],
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
    agent_model_hooks_fini(h);
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
    rv_buf request = RV_BUF_INIT(AGENT_MAX_REQUEST);
    bool send = false;
    int rc = 0;

    if (a->action == HOOK_BLOCKS)
        return blocked(v, BEFORE_MODEL, a->reason, err);
    if (a->action == HOOK_ANSWERS)
        return answer_in_place(v, a->value, out, cause, err);
    if (a->action == HOOK_REPLACES)
        rc = agent_request_change(v, h->request, a->value, cause);
    if (rc == 0 && a->action == HOOK_REPLACES)
        rc = bound_context(v, err);
    if (rc < 0 || v->phase == PHASE_FAILED)
        return rc;
    h->at++;
    rc = ask_before(v, &request, &send, out, err);
    if (rc == 0 && send)
        return agent_model_send(v, &request, out, err);
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

int agent_model_hooks_on(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    enum hook_place place = v->model.hooks.side == HOOKS_BEFORE ? BEFORE_MODEL : AFTER_MODEL;
    size_t at = v->model.hooks.at;
    struct hook_answer answer;
    rv_err *cause = NULL;
    int rc = agent_hooks_read(v, place, at, ev, &answer, err);

    if (rc <= 0)
        return rc;
    if (place == BEFORE_MODEL)
        rc = on_request(v, &answer, out, &cause, err);
    else
        rc = on_reply(v, &answer, out, &cause, err);
    if (cause)
        rc = agent_hooks_fail(v, place, at, cause, err);
    json_object_put(answer.json);
    return rc;
}
