/* Rules of our own messages and of OpenAI's. */
#include "tests/unit/messages/rules.h"

#include <string.h>

#define MAX_CALLS 128
#define MAX_ID    40
#define MAX_NAME  64

bool rule_blank(rv_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!strchr(" \t\n\r\f\v", text.ptr[i]) || text.ptr[i] == '\0')
            return false;
    return true;
}

bool rule_word(rv_str text, size_t max)
{
    static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] == '\0' || !strchr(legal, text.ptr[i]))
            return false;
    return text.len > 0 && text.len <= max;
}

bool rule_object(rv_str json)
{
    json_object *value = NULL;
    bool is = rv_json_parse(json, NULL, &value, NULL) == 0 && json_object_is_type(value, json_type_object);

    json_object_put(value);
    return is;
}

rv_str rule_text(json_object *obj, const char *key)
{
    json_object *value = NULL;

    return json_object_object_get_ex(obj, key, &value) ? rv_json_str(value) : (rv_str){NULL, 0};
}

bool rule_is(json_object *obj, const char *key, const char *text)
{
    rv_str have = rule_text(obj, key);

    return have.len == strlen(text) && memcmp(have.ptr ? have.ptr : "", text, have.len) == 0;
}

bool rule_add(struct rule_names *s, rv_str name)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->names[i].len == name.len && memcmp(s->names[i].ptr, name.ptr, name.len) == 0)
            return false;
    if (s->n == RV_COUNT(s->names))
        return false;
    s->names[s->n++] = name;
    return true;
}

/* --- both: the names of members are all that differs --- */

struct order {
    bool is_openai;
    struct rule_names ids;
    json_object *calls; /* of the message that waits for its results */
    size_t n_answered;
};

static json_object *function_of(const struct order *o, json_object *call)
{
    return o->is_openai ? rv_json_get_obj(call, "function") : call;
}

static const char *check_call(struct order *o, json_object *call)
{
    json_object *f = function_of(o, call);

    if (o->is_openai && !rule_is(call, "type", "function"))
        return "a call has a type";
    if (!f || !rule_word(rule_text(f, "name"), MAX_NAME))
        return "a call names a legal tool";
    if (!rule_word(rule_text(call, "id"), MAX_ID))
        return "a call has a short legal id";
    if (!rule_add(&o->ids, rule_text(call, "id")))
        return "ids of calls differ";
    return rule_object(rule_text(f, "arguments")) ? NULL : "arguments are the text of an object";
}

static const char *check_assistant(struct order *o, json_object *message)
{
    json_object *calls = rv_json_get_arr(message, "tool_calls"), *content = NULL;
    size_t n = calls ? json_object_array_length(calls) : 0;

    json_object_object_get_ex(message, "content", &content);
    if (content && rule_blank(rv_json_str(content)))
        return "an assistant's text is not blank";
    if (!content && n == 0)
        return "an assistant says or calls something";
    if (calls && (n == 0 || n > MAX_CALLS))
        return "a list of calls has 1 to 128";
    for (size_t i = 0; i < n; i++) {
        const char *broken = check_call(o, json_object_array_get_idx(calls, i));
        if (broken)
            return broken;
    }
    o->calls = calls;
    o->n_answered = 0;
    return NULL;
}

static const char *check_result(struct order *o, json_object *message)
{
    json_object *call;

    if (!o->calls || o->n_answered == json_object_array_length(o->calls))
        return "a result follows a call";
    call = json_object_array_get_idx(o->calls, o->n_answered++);
    if (!rv_str_eq(rule_text(message, "tool_call_id"), rule_text(call, "id")))
        return "results have the order of the calls";
    if (!o->is_openai && !rv_str_eq(rule_text(message, "name"), rule_text(call, "name")))
        return "a result names the tool of its call";
    return rule_blank(rule_text(message, "content")) ? "a result is not blank" : NULL;
}

static const char *check_message(struct order *o, json_object *message)
{
    if (rule_is(message, "role", "tool"))
        return check_result(o, message);
    if (o->calls && o->n_answered < json_object_array_length(o->calls))
        return "every call is answered before anything else";
    o->calls = NULL;
    if (rule_is(message, "role", "assistant"))
        return check_assistant(o, message);
    if (!rule_is(message, "role", "user") && !rule_is(message, "role", "system"))
        return "a role is one of four";
    return rule_blank(rule_text(message, "content")) ? "a text is not blank" : NULL;
}

static const char *check_messages(struct order *o, json_object *messages)
{
    size_t n = messages ? json_object_array_length(messages) : 0;

    if (!messages)
        return "there are messages";
    for (size_t i = 0; i < n; i++) {
        const char *broken = check_message(o, json_object_array_get_idx(messages, i));
        if (broken)
            return broken;
    }
    return o->calls && o->n_answered < json_object_array_length(o->calls) ? "the last call is answered" : NULL;
}

const char *broken_rule_of_history(json_object *messages)
{
    struct order o = {.is_openai = false};

    return json_object_is_type(messages, json_type_array) ? check_messages(&o, messages) : "a history is a list";
}

const char *broken_rule_of_openai(json_object *body, const char *prompt)
{
    struct order o = {.is_openai = true};
    json_object *messages = rv_json_get_arr(body, "messages"), *last;
    const char *broken = check_messages(&o, messages);

    if (broken)
        return broken;
    last = json_object_array_get_idx(messages, json_object_array_length(messages) - 1);
    return rule_is(last, "role", "user") && rule_is(last, "content", prompt) ? NULL : "the prompt is last";
}
