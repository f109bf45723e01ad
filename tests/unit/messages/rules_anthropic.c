/* Rules of Anthropic's messages. */
#include "tests/unit/messages/rules.h"

struct turns {
    struct rule_names ids;
    json_object *asked; /* the content of the turn before, if the assistant's */
    size_t n_asked;     /* calls at its end */
};

static const char *check_call(struct turns *t, json_object *block)
{
    if (!rule_word(rule_text(block, "id"), 64) || !rule_word(rule_text(block, "name"), 64))
        return "a call has a legal id and name";
    if (!rule_add(&t->ids, rule_text(block, "id")))
        return "ids of calls differ";
    return rv_json_get_obj(block, "input") ? NULL : "the input of a call is an object";
}

static const char *check_assistant(struct turns *t, json_object *content)
{
    const char *broken = NULL;

    t->asked = content;
    t->n_asked = 0;
    for (size_t i = 0; !broken && i < json_object_array_length(content); i++) {
        json_object *block = json_object_array_get_idx(content, i);
        if (rule_is(block, "type", "tool_use")) {
            broken = check_call(t, block);
            t->n_asked++;
        } else if (!rule_is(block, "type", "text") || rule_blank(rule_text(block, "text"))) {
            broken = "an assistant's block is a call or a text that is not blank";
        } else if (t->n_asked) {
            broken = "calls end a turn";
        }
    }
    return broken;
}

/* The first blocks answer the calls of the turn before, each once. */
static const char *check_results(struct turns *t, json_object *content)
{
    size_t n = json_object_array_length(t->asked);

    if (json_object_array_length(content) < t->n_asked)
        return "every call is answered in the next turn";
    for (size_t i = 0; i < t->n_asked; i++) {
        json_object *call = json_object_array_get_idx(t->asked, n - t->n_asked + i), *text = NULL;
        json_object *result = json_object_array_get_idx(content, i);
        if (!rule_is(result, "type", "tool_result") ||
            !rv_str_eq(rule_text(result, "tool_use_id"), rule_text(call, "id")))
            return "a turn begins with the results of all calls";
        if (json_object_object_get_ex(result, "content", &text) && rule_blank(rv_json_str(text)))
            return "a result is not blank";
    }
    return NULL;
}

static const char *check_user(struct turns *t, json_object *content)
{
    const char *broken = t->n_asked ? check_results(t, content) : NULL;

    for (size_t i = t->n_asked; !broken && i < json_object_array_length(content); i++) {
        json_object *block = json_object_array_get_idx(content, i);
        if (!rule_is(block, "type", "text") || rule_blank(rule_text(block, "text")))
            broken = "a user's block is a text that is not blank";
    }
    t->n_asked = 0;
    return broken;
}

const char *broken_rule_of_anthropic(json_object *body, const char *prompt)
{
    json_object *messages = rv_json_get_arr(body, "messages"), *content = NULL;
    struct turns t = {.n_asked = 0};
    const char *broken = NULL;
    size_t n = messages ? json_object_array_length(messages) : 0;

    if (n == 0)
        return "there are messages";
    if (json_object_object_get_ex(body, "system", NULL) && rule_blank(rule_text(body, "system")))
        return "the system text is not blank";
    for (size_t i = 0; !broken && i < n; i++) {
        json_object *turn = json_object_array_get_idx(messages, i);
        content = rv_json_get_arr(turn, "content");
        if (!rule_is(turn, "role", i % 2 ? "assistant" : "user"))
            return "the user begins, and turns alternate";
        if (!content || json_object_array_length(content) == 0)
            return "a turn has content";
        broken = i % 2 ? check_assistant(&t, content) : check_user(&t, content);
    }
    if (broken || n % 2 == 0)
        return broken ? broken : "the user is last";
    content = json_object_array_get_idx(content, json_object_array_length(content) - 1);
    return rule_is(content, "text", prompt) ? NULL : "the prompt is last";
}
