/* Questions and the answers that fit them: their kinds, those with choices, which a stage puts with its key `ask`, and
 * those about tool calls. What may be chosen stands in the data of the interrupt, so that an answer can be judged
 * wherever the interrupt is. */
#include "envelope/questions.h"

#include <json-c/linkhash.h>
#include <string.h>

#define MAX_SHOWN  64   /* bytes of a choice that does not exist, in a message: it stays on one line of a terminal */
#define MAX_LISTED 1024 /* bytes of the choices in a message: a quarter of what an error's text holds */

struct rv_interrupt_rule rv_interrupt_rule(enum rv_interrupt_kind kind)
{
    static const struct rv_interrupt_rule rules[] = {
        [RV_INTERRUPT_CLARIFICATION] = {24 * RV_US_PER_HOUR, true, true},
        [RV_INTERRUPT_CONFIRMATION] = {RV_US_PER_HOUR, true, true},
        [RV_INTERRUPT_AGENT_REVIEW] = {30 * RV_US_PER_MIN, true, true},
        [RV_INTERRUPT_CHECKPOINT] = {0, false, false},
        [RV_INTERRUPT_RESOURCE_EXHAUSTED] = {5 * RV_US_PER_MIN, true, false},
        [RV_INTERRUPT_TIMEOUT] = {5 * RV_US_PER_MIN, true, false},
        [RV_INTERRUPT_SYSTEM_ERROR] = {RV_US_PER_HOUR, true, false},
    };
    RV_EACH_HAS_ROW(rules, RV_N_INTERRUPT);

    return (size_t)kind < RV_N_INTERRUPT ? rules[kind] : (struct rv_interrupt_rule){RV_US_PER_HOUR, true, true};
}

static bool is_review_about(enum rv_interrupt_kind kind, json_object *data, const char *what)
{
    const char *reason = NULL;

    return kind == RV_INTERRUPT_AGENT_REVIEW && json_object_is_type(data, json_type_object) &&
           rv_json_get_text(data, "reason", &reason) && strcmp(reason, what) == 0;
}

bool rv_interrupt_asks_outcome(enum rv_interrupt_kind kind, json_object *data)
{
    return is_review_about(kind, data, RV_OUTCOME_UNKNOWN);
}

bool rv_interrupt_asks_input(enum rv_interrupt_kind kind, json_object *data)
{
    return is_review_about(kind, data, RV_TOOL_INPUT);
}

bool rv_interrupt_asks_client(enum rv_interrupt_kind kind, json_object *data)
{
    return is_review_about(kind, data, RV_CLIENT_TOOLS);
}

bool rv_interrupt_goes_on(enum rv_interrupt_kind kind, json_object *data)
{
    return rv_interrupt_asks_outcome(kind, data) || rv_interrupt_asks_client(kind, data) ||
           rv_interrupt_asks_input(kind, data);
}

bool rv_interrupt_is_ask(json_object *data)
{
    bool is = false;

    return json_object_is_type(data, json_type_object) && rv_json_get_bool(data, RV_ASK, &is) && is;
}

static json_object *options_of(json_object *data)
{
    return rv_json_get_arr(data, RV_ASK_OPTIONS);
}

bool rv_ask_takes_text(json_object *data)
{
    const char *word = NULL;

    return rv_json_get_text(data, RV_ASK_OPTIONS, &word) && strcmp(word, RV_CHOICE_TEXT) == 0;
}

static bool has_option(json_object *data, rv_str choice)
{
    json_object *options = options_of(data);
    size_t n = options ? json_object_array_length(options) : 0;

    for (size_t i = 0; i < n; i++)
        if (rv_str_eq(rv_json_str(json_object_array_get_idx(options, i)), choice))
            return true;
    return false;
}

void rv_ask_write_options(json_object *data, rv_buf *out)
{
    json_object *options = options_of(data);
    size_t n = options ? json_object_array_length(options) : 0;

    for (size_t i = 0; i < n; i++)
        rv_buf_printf(out, "%s%.*s", i ? ", " : "", RV_STR_ARG(rv_json_str(json_object_array_get_idx(options, i))));
}

rv_str rv_ask_choice(json_object *data, const struct rv_response *r)
{
    if (r->expired || r->cancelled)
        return RV_STR_LIT(RV_CHOICE_TIMEOUT);
    if (rv_ask_takes_text(data))
        return RV_STR_LIT(RV_CHOICE_TEXT);
    if (r->choice.ptr || !r->has_approved)
        return r->choice;
    return r->approved ? RV_STR_LIT(RV_CHOICE_YES) : RV_STR_LIT(RV_CHOICE_NO);
}

/* A choice that does not exist: names those that do. */
static int unknown_choice(json_object *data, rv_str choice, rv_err **err)
{
    const char *names[RV_ASK_LISTED];
    json_object *options = options_of(data);
    size_t n = options ? json_object_array_length(options) : 0, n_names = 0;
    rv_buf list = RV_BUF_INIT(RV_JSON_MAX_BYTES);

    rv_ask_write_options(data, &list);
    if (list.rc == RV_E_NOMEM) {
        rv_buf_fini(&list);
        return RV_FAIL(err, RV_E_NOMEM, "list the choices of a question");
    }
    int rc =
        RV_FAIL(err, RV_E_INVALID, "the question has no choice \"%.*s\": choose one of %.*s",
                RV_STR_ARG(rv_utf8_cut(choice, MAX_SHOWN)), RV_STR_ARG(rv_utf8_cut(rv_buf_str(&list), MAX_LISTED)));
    for (size_t i = 0; i < n && n_names < RV_COUNT(names); i++) {
        json_object *one = json_object_array_get_idx(options, i);
        if (json_object_is_type(one, json_type_string))
            names[n_names++] = json_object_get_string(one);
    }
    const char *near = rv_nearest(choice, names, n_names);
    if (near)
        rv_err_set_hint(err, "did you mean \"%s\"?", near);
    rv_buf_fini(&list);
    return rc;
}

static int no_choice(json_object *data, const struct rv_response *r, rv_err **err)
{
    rv_buf list = RV_BUF_INIT(RV_JSON_MAX_BYTES);

    rv_ask_write_options(data, &list);
    if (list.rc == RV_E_NOMEM) {
        rv_buf_fini(&list);
        return RV_FAIL(err, RV_E_NOMEM, "list the choices of a question");
    }
    int rc = RV_FAIL(err, RV_E_INVALID, "the answer has no choice%s: choose one of %.*s",
                     r->text.ptr ? "; a text only goes with one" : "",
                     RV_STR_ARG(rv_utf8_cut(rv_buf_str(&list), MAX_LISTED)));
    rv_buf_fini(&list);
    return rc;
}

static int check_text_answer(const struct rv_response *r, rv_err **err)
{
    if (r->has_approved)
        return RV_FAIL(err, RV_E_INVALID, "the question takes any text: it cannot be approved or denied");
    if (r->choice.ptr && !rv_str_is(r->choice, RV_CHOICE_TEXT))
        return RV_FAIL(err, RV_E_INVALID, "the question takes any text: it has no choice \"%.*s\"",
                       RV_STR_ARG(rv_utf8_cut(r->choice, MAX_SHOWN)));
    if (rv_str_trim(r->text).len == 0)
        return RV_FAIL(err, RV_E_INVALID, "the question takes any text, and the answer has none");
    return 0;
}

static int check_ask(json_object *data, const struct rv_response *r, rv_err **err)
{
    if (r->text.len > RV_ANSWER_MAX_TEXT)
        return RV_FAIL(err, RV_E_INVALID, "the text of the answer is longer than %zu bytes", RV_ANSWER_MAX_TEXT);
    if (r->decision.ptr)
        return RV_FAIL(err, RV_E_INVALID, "the question takes a choice, not a decision");
    if (r->data)
        return RV_FAIL(err, RV_E_INVALID, "the question takes a choice and a text, no data");
    if (r->arguments)
        return RV_FAIL(err, RV_E_INVALID, "the question is not about a tool call: there are no arguments to change");
    if (rv_ask_takes_text(data))
        return check_text_answer(r, err);
    rv_str choice = rv_ask_choice(data, r);
    if (!choice.ptr)
        return no_choice(data, r, err);
    if (!has_option(data, choice))
        return unknown_choice(data, choice, err);
    if (r->has_approved && !rv_str_is(choice, r->approved ? RV_CHOICE_YES : RV_CHOICE_NO))
        return RV_FAIL(err, RV_E_INVALID, "the answer is \"%.*s\" and %s at once", RV_STR_ARG(choice),
                       r->approved ? "an approval" : "a denial");
    return 0;
}

bool rv_interrupt_is_tool_call(enum rv_interrupt_kind kind, json_object *data)
{
    const char *tool = NULL;

    return kind == RV_INTERRUPT_CONFIRMATION && json_object_is_type(data, json_type_object) &&
           !rv_interrupt_is_ask(data) && rv_json_get_text(data, "tool", &tool);
}

static int check_extras(enum rv_interrupt_kind kind, json_object *data, const struct rv_response *r, rv_err **err)
{
    if (r->choice.ptr)
        return RV_FAIL(err, RV_E_INVALID, "this %s has no choices", rv_interrupt_kind_text(kind));
    if (!r->arguments)
        return 0;
    if (!rv_interrupt_is_tool_call(kind, data))
        return RV_FAIL(err, RV_E_INVALID, "this %s is not about a tool call: there are no arguments to change",
                       rv_interrupt_kind_text(kind));
    if (!r->has_approved || !r->approved)
        return RV_FAIL(err, RV_E_INVALID, "changed arguments need an approval: a call that is denied is not made");
    if (!json_object_is_type(r->arguments, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "changed arguments must be an object, not %s",
                       rv_json_type_text(r->arguments));
    rv_buf text = RV_BUF_INIT(RV_ANSWER_MAX_ARGUMENTS);
    rv_json_write(r->arguments, &text);
    int rc = text.rc == RV_E_NOMEM ? RV_FAIL(err, RV_E_NOMEM, "read changed arguments")
             : text.rc < 0
                 ? RV_FAIL(err, RV_E_INVALID, "changed arguments are longer than %zu bytes", RV_ANSWER_MAX_ARGUMENTS)
                 : 0;
    rv_buf_fini(&text);
    return rc;
}

static int check_decision(rv_str decision, enum rv_interrupt_kind kind, json_object *data, rv_err **err)
{
    static const char *const reviews[] = {"approve", "reject", "modify"};
    static const char *const outcomes[] = {"happened", "not_happened", "fail"};
    static const char *const inputs[] = {"accept", "decline", "cancel"};
    const char *const *words = rv_interrupt_asks_outcome(kind, data) ? outcomes
                               : rv_interrupt_asks_input(kind, data) ? inputs
                                                                     : reviews;
    _Static_assert(RV_COUNT(reviews) == RV_COUNT(outcomes) && RV_COUNT(reviews) == RV_COUNT(inputs), "one count");

    for (size_t i = 0; i < RV_COUNT(reviews); i++)
        if (rv_str_is(decision, words[i]))
            return 0;
    int rc = RV_FAIL(err, RV_E_INVALID, "unknown decision \"%.*s\": legal are %s, %s, %s",
                     RV_STR_ARG(rv_utf8_cut(decision, 64)), words[0], words[1], words[2]);
    const char *near = rv_nearest(decision, words, RV_COUNT(reviews));
    if (near)
        rv_err_set_hint(err, "did you mean \"%s\"?", near);
    return rc;
}

static int check_kind(enum rv_interrupt_kind kind, json_object *data, const struct rv_response *response, rv_err **err)
{
    const char *missing = NULL;

    if (kind == RV_INTERRUPT_CLARIFICATION && !response->text.ptr)
        missing = "text";
    else if (kind == RV_INTERRUPT_CONFIRMATION && !response->has_approved)
        missing = "approved";
    else if (kind == RV_INTERRUPT_AGENT_REVIEW && !response->decision.ptr)
        missing = "decision";
    if (missing && response->choice.ptr)
        return check_extras(kind, data, response, err);
    if (missing)
        return RV_FAIL(err, RV_E_INVALID, "a %s needs the field \"%s\" in its response%s", rv_interrupt_kind_text(kind),
                       missing,
                       response->text.ptr       ? "; it has \"text\", which does not fit"
                       : response->has_approved ? "; it has \"approved\", which does not fit"
                       : response->decision.ptr ? "; it has \"decision\", which does not fit"
                                                : "");
    int rc = response->decision.ptr ? check_decision(response->decision, kind, data, err) : 0;
    return rc < 0 ? rc : check_extras(kind, data, response, err);
}

int rv_answer_check_cancel(const struct rv_response *r, rv_err **err)
{
    if (r->has_approved || r->decision.ptr || r->choice.ptr || r->data || r->arguments || r->expired)
        return RV_FAIL(err, RV_E_INVALID, "a question is either answered or cancelled, not both");
    if (!rv_utf8_valid(r->text, NULL))
        return RV_FAIL(err, RV_E_INVALID, "the reason of the cancellation is not UTF-8");
    if (r->text.len > RV_CANCEL_MAX_REASON)
        return RV_FAIL(err, RV_E_INVALID, "the reason of the cancellation is longer than %zu bytes",
                       RV_CANCEL_MAX_REASON);
    return 0;
}

static bool is_waiting_call(json_object *data, const char *id)
{
    json_object *calls = rv_json_get_arr(data, RV_CLIENT_CALLS);
    const char *other = NULL;

    for (size_t i = 0; calls && i < json_object_array_length(calls); i++)
        if (rv_json_get_text(json_object_array_get_idx(calls, i), "id", &other) && strcmp(other, id) == 0)
            return true;
    return false;
}

static int check_client_result(json_object *data, const char *id, json_object *result, rv_err **err)
{
    json_object *error = NULL;
    bool has_content = json_object_object_get_ex(result, "content", NULL);
    bool has_error = json_object_object_get_ex(result, "error", &error);

    if (!is_waiting_call(data, id))
        return RV_FAIL(err, RV_E_INVALID, "no call \"%.*s\" waits for the client",
                       RV_STR_ARG(rv_utf8_cut(rv_str_of(id), MAX_SHOWN)));
    if (!json_object_is_type(result, json_type_object) || has_content == has_error ||
        (has_error && !json_object_is_type(error, json_type_string)))
        return RV_FAIL(err, RV_E_INVALID, "the result of call \"%.*s\" must be {content} or {error}, a text",
                       RV_STR_ARG(rv_utf8_cut(rv_str_of(id), MAX_SHOWN)));
    return 0;
}

/* Calls of the client: what came of each. */
static int check_client(json_object *data, const struct rv_response *r, rv_err **err)
{
    json_object *results = NULL;
    int rc = 0;

    if (r->has_approved || r->decision.ptr || r->choice.ptr || r->arguments)
        return RV_FAIL(err, RV_E_INVALID, "calls of the client are answered with data.results, nothing else");
    if (!json_object_is_type(r->data, json_type_object) ||
        !json_object_object_get_ex(r->data, RV_CLIENT_RESULTS, &results) ||
        !json_object_is_type(results, json_type_object))
        return RV_FAIL(err, RV_E_INVALID, "calls of the client are answered with data: {results: {ID: {content}}}");
    json_object_object_foreach (results, id, result)
        rc = rc == 0 ? check_client_result(data, id, result, err) : rc;
    return rc;
}

int rv_answer_check(enum rv_interrupt_kind kind, json_object *data, const struct rv_response *response, rv_err **err)
{
    if (!rv_utf8_valid(response->text, NULL) || !rv_utf8_valid(response->choice, NULL))
        return RV_FAIL(err, RV_E_INVALID, "the response is not UTF-8");
    if (rv_interrupt_asks_client(kind, data))
        return check_client(data, response, err);
    return rv_interrupt_is_ask(data) ? check_ask(data, response, err) : check_kind(kind, data, response, err);
}
