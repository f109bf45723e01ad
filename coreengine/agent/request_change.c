/* A request that a hook changed, checked as strictly as a foreign one: what may be changed at all, and whether its
 * conversations are whole, since providers refuse one that is not. */
#include "coreengine/agent/tools_internal.h"

#include <json-c/linkhash.h>
#include <string.h>

static bool has_text(json_object *object, const char *key)
{
    json_object *part = NULL;
    return json_object_object_get_ex(object, key, &part) && json_object_is_type(part, json_type_string);
}

bool agent_hooks_know_keys(json_object *object, const char *const *known, size_t n)
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

    return json_object_is_type(call, json_type_object) && agent_hooks_know_keys(call, keys, RV_COUNT(keys)) &&
           has_text(call, "id") && has_text(call, "name") && has_text(call, "arguments");
}

static bool is_said_by_model(json_object *m)
{
    static const char *const keys[] = {"role", "content", "tool_calls", "opaque"};
    json_object *calls = NULL, *part = NULL;

    if (!agent_hooks_know_keys(m, keys, RV_COUNT(keys)))
        return false;
    if (json_object_object_get_ex(m, "content", &part) && !json_object_is_type(part, json_type_string))
        return false;
    if (json_object_object_get_ex(m, "opaque", &part) && !json_object_is_type(part, json_type_object))
        return false;
    if (!json_object_object_get_ex(m, "tool_calls", &calls))
        return part || rv_str_trim(agent_call_text(m, "content")).len > 0;
    size_t n = json_object_is_type(calls, json_type_array) ? json_object_array_length(calls) : 0;
    for (size_t i = 0; i < n; i++)
        if (!is_call(json_object_array_get_idx(calls, i)))
            return false;
    return n > 0 && n <= RV_LLM_MAX_TOOL_CALLS;
}

static bool is_said_to_model(json_object *m)
{
    static const char *const keys[] = {"role", "content"};

    return agent_hooks_know_keys(m, keys, RV_COUNT(keys)) && has_text(m, "content");
}

static bool is_result_of(json_object *m, json_object *call)
{
    static const char *const keys[] = {"role", "tool_call_id", "name", "content", "is_error"};
    json_object *flag = NULL;

    if (!json_object_is_type(m, json_type_object) || !agent_hooks_know_keys(m, keys, RV_COUNT(keys)) ||
        !has_text(m, "content"))
        return false;
    if (json_object_object_get_ex(m, "is_error", &flag) && !json_object_is_type(flag, json_type_boolean))
        return false;
    return rv_str_is(agent_call_text(m, "role"), "tool") &&
           rv_str_eq(agent_call_text(m, "tool_call_id"), agent_call_text(call, "id")) &&
           rv_str_eq(agent_call_text(m, "name"), agent_call_text(call, "name"));
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
        rv_str role = agent_call_text(m, "role");
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
        if (n >= 1 && n <= visit_max_tokens(v))
            return rv_json_set_ref(options, key, value, cause);
        return RV_FAIL(cause, RV_E_INVALID, "its request.options.num_predict must be a whole number from 1 to %lld",
                       (long long)visit_max_tokens(v));
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

/* One of a hook's list: a number keeps that attachment of the request, anything else describes one. */
static int add_attachment(json_object *list, json_object *item, json_object *old, rv_err **cause)
{
    size_t n = old ? json_object_array_length(old) : 0;
    int64_t at = rv_json_is_int(item) ? json_object_get_int64(item) : -1;

    if (!rv_json_is_int(item))
        return rv_attachments_add(list, item, cause);
    if (at < 0 || (uint64_t)at >= n)
        return RV_FAIL(cause, RV_E_INVALID, "the request has no attachment %lld: it has %zu, counted from 0",
                       (long long)at, n);
    return rv_attachments_keep(list, json_object_array_get_idx(old, (size_t)at), cause);
}

/* Replace the whole list. */
static int set_attachments(json_object *request, json_object *given, rv_err **cause)
{
    json_object *old = rv_json_get_arr(request, "attachments"), *list = json_object_new_array();
    int rc = list ? 0 : RV_FAIL(cause, RV_E_NOMEM, "change attachments");

    if (rc == 0 && !json_object_is_type(given, json_type_array))
        rc = RV_FAIL(cause, RV_E_INVALID, "its request.attachments must be a list, not %s", rv_json_type_text(given));
    for (size_t i = 0; rc == 0 && i < json_object_array_length(given); i++) {
        rc = add_attachment(list, json_object_array_get_idx(given, i), old, cause);
        if (rc < 0 && rc != RV_E_NOMEM)
            rc = RV_WRAP(cause, rc, "its request.attachments[%zu]", i);
    }
    if (rc == 0 && json_object_array_length(list) > 0)
        return rv_json_set_take(request, "attachments", list, cause);
    if (rc == 0)
        json_object_object_del(request, "attachments");
    json_object_put(list);
    return rc;
}

int agent_request_change(const rv_visit *v, json_object *request, json_object *given, rv_err **cause)
{
    static const char *const texts[] = {"system", "instructions", "prompt"};
    int rc = 0;

    json_object_object_foreach (given, key, value) {
        size_t i = 0;
        while (i < RV_COUNT(texts) && strcmp(key, texts[i]) != 0)
            i++;
        if (i < RV_COUNT(texts))
            rc = set_text(request, key, value, cause);
        else if (strcmp(key, "history") == 0 || strcmp(key, "examples") == 0 || strcmp(key, "turns") == 0)
            rc = set_messages(request, key, value, cause);
        else if (strcmp(key, "options") == 0)
            rc = set_options(v, request, value, cause);
        else if (strcmp(key, "attachments") == 0 && v->shared->rules >= RV_RULES_4)
            rc = set_attachments(request, value, cause);
        else
            rc = RV_FAIL(
                cause, RV_E_INVALID,
                "its request has \"%.*s\": system, instructions, examples, history, prompt%s, turns and options "
                "may be changed",
                RV_STR_ARG(rv_utf8_cut(rv_str_of(key), 60)), v->shared->rules >= RV_RULES_4 ? ", attachments" : "");
        if (rc < 0)
            return rc;
    }
    return 0;
}
