/* OpenAI Chat Completions: the answer, in chunks or at once, and its errors. The protocol is spoken by many servers,
 * few of which keep to it: what can be understood is understood. */
#include <string.h>
#include <strings.h>

#include "coreengine/model/wire/wire_internal.h"

/* --- usage --- */

/* Totals of the whole answer; what is not said stays as an earlier chunk said it. */
static void read_usage(rv_wire_reader *r, json_object *usage)
{
    json_object *in = rv_json_get_obj(usage, "prompt_tokens_details");
    json_object *out = rv_json_get_obj(usage, "completion_tokens_details");
    struct rv_usage totals = r->usage;

    r->knows_input |= wire_reader_count(usage, "prompt_tokens", &totals.input_tokens);
    r->knows_output |= wire_reader_count(usage, "completion_tokens", &totals.output_tokens);
    wire_reader_count(in, "cached_tokens", &totals.cached_tokens);
    wire_reader_count(in, "cache_write_tokens", &totals.cache_write_tokens);
    wire_reader_count(out, "reasoning_tokens", &totals.reasoning_tokens);
    if (totals.input_tokens || totals.output_tokens) /* an object of zeros is a server that does not count */
        wire_reader_usage(r, &totals);
}

/* --- tool calls --- */

/* One piece of a call. */
struct piece {
    rv_str id, name;
    json_object *function;
};

static struct wire_call *call_with_id(rv_wire_reader *r, rv_str id)
{
    for (size_t i = r->n_calls; i-- > 0;)
        if (rv_str_eq(rv_buf_str(&r->calls[i].sent_id), id))
            return &r->calls[i];
    return NULL;
}

static bool has_arguments(const struct piece *p)
{
    json_object *arguments = rv_json_member(p->function, "arguments");

    return json_object_is_type(arguments, json_type_object) || rv_str_trim(rv_json_str(arguments)).len > 0;
}

/* Does a piece that has the number or the id of that call, or neither, begin another? One with another name does; one
 * with the same may only repeat it. It does not when that call has all of its arguments and the piece has some, or when
 * both are in one list. RV_E_NOMEM */
static int begins_another(struct wire_call *c, const struct piece *p, bool *does, rv_err **err)
{
    *does = c->started && p->name.len && !rv_str_eq(rv_buf_str(&c->name), p->name);
    if (*does || !c->started || !p->name.len || !(c->is_in_list || has_arguments(p)))
        return 0;
    if (rv_str_trim(rv_buf_str(&c->arguments)).len > 0)
        return wire_reader_call_is_complete(c, does, err);
    *does = c->is_in_list;
    return 0;
}

/* The call that a piece with a number belongs to. Some servers give every call the number 0: another id with a name is
 * another call then. */
static struct wire_call *numbered_call(rv_wire_reader *r, int64_t index, const struct piece *p, int *rc, rv_err **err)
{
    struct wire_call *c = wire_reader_call(r, index, rc, err);
    bool is_another = false;

    if (!c)
        return NULL;
    if (c->started && p->id.len && p->name.len && !rv_str_eq(rv_buf_str(&c->sent_id), p->id))
        is_another = true;
    else
        *rc = begins_another(c, p, &is_another, err);
    if (*rc < 0)
        return NULL;
    if (is_another) {
        c->key = -1;
        c = wire_reader_call(r, index, rc, err);
    }
    return c;
}

/* For a piece without an index: a new id or, where there are no ids, a name begins a call; any other piece continues
 * the call with its id or, without an id, the last call. A name that comes again while its arguments are not complete
 * is only a repetition. */
static struct wire_call *unnumbered_call(rv_wire_reader *r, const struct piece *p, int *rc, rv_err **err)
{
    struct wire_call *c = p->id.len ? call_with_id(r, p->id) : r->n_calls ? &r->calls[r->n_calls - 1] : NULL;
    bool is_another = false;

    *rc = c ? begins_another(c, p, &is_another, err) : 0;
    if (*rc == 0 && c && !is_another && !p->id.len && p->name.len && c->started)
        *rc = wire_reader_call_is_complete(c, &is_another, err);
    if (*rc < 0)
        return NULL;
    return c && !is_another ? c : wire_reader_call(r, -1, rc, err);
}

static int read_arguments(rv_wire_reader *r, struct wire_call *c, json_object *arguments, rv_err **err)
{
    int rc;

    if (!json_object_is_type(arguments, json_type_object)) /* only the text is by the book */
        return wire_reader_arguments(r, c, rv_json_str(arguments), err);
    rv_buf_clear(&r->scratch);
    rv_json_write(arguments, &r->scratch);
    rc = rv_buf_check(&r->scratch, "the arguments of a tool call", err);
    return rc < 0 ? rc : wire_reader_arguments(r, c, rv_buf_str(&r->scratch), err);
}

static int read_function(rv_wire_reader *r, struct wire_call *c, const struct piece *p, rv_err **err)
{
    int rc;

    c->is_in_list = true;
    if (!c->started) {
        if (c->id.len == 0) {
            rv_buf_add_str(&c->id, p->id);
            rv_buf_add_str(&c->sent_id, p->id);
        }
        if (c->name.len == 0)
            rv_buf_add_str(&c->name, p->name);
    }
    if (c->sent_id.rc == RV_E_NOMEM)
        return rv_buf_check(&c->sent_id, "a tool call", err);
    rc = wire_reader_call_starts(r, c, err);
    if (rc < 0 || r->is_broken)
        return rc;
    return read_arguments(r, c, rv_json_member(p->function, "arguments"), err);
}

/* In an answer that came at once each item is a whole call. */
static int read_call(rv_wire_reader *r, json_object *item, rv_err **err)
{
    json_object *function = rv_json_get_obj(item, "function");
    struct wire_call *c;
    int64_t index = -1;
    int rc = 0;

    if (!function)
        return 0;
    const struct piece p = {wire_text(item, "id"), wire_text(function, "name"), function};
    if (r->is_whole)
        c = wire_reader_call(r, -1, &rc, err);
    else if (rv_json_get_int(item, "index", &index) && index >= 0)
        c = numbered_call(r, index, &p, &rc, err);
    else
        c = unnumbered_call(r, &p, &rc, err);
    return c ? read_function(r, c, &p, err) : rc;
}

static int read_calls(rv_wire_reader *r, json_object *delta, rv_err **err)
{
    json_object *calls = rv_json_get_arr(delta, "tool_calls"), *function = rv_json_get_obj(delta, "function_call");
    int rc = 0;

    for (size_t i = 0; i < r->n_calls; i++)
        r->calls[i].is_in_list = false;
    for (size_t i = 0; calls && rc == 0 && !r->is_broken && i < json_object_array_length(calls); i++) {
        json_object *item = json_object_array_get_idx(calls, i);
        if (json_object_is_type(item, json_type_object))
            rc = read_call(r, item, err);
    }
    if (rc == 0 && function && !r->is_broken) { /* the older form: one call without an id */
        struct wire_call *c = wire_reader_call(r, 0, &rc, err);
        const struct piece p = {.name = wire_text(function, "name"), .function = function};
        if (c)
            rc = read_function(r, c, &p, err);
    }
    return rc;
}

/* --- text --- */

/* Text, or a list of parts of which some are text. */
static int read_content(rv_wire_reader *r, json_object *content, rv_err **err)
{
    int rc = 0;

    if (!json_object_is_type(content, json_type_array))
        return wire_reader_said(r, content, err);
    for (size_t i = 0; rc == 0 && i < json_object_array_length(content); i++) {
        json_object *part = json_object_array_get_idx(content, i);
        if (json_object_is_type(part, json_type_object))
            rc = wire_reader_text(r, wire_text(part, "text"), err);
    }
    return rc;
}

static int read_delta(rv_wire_reader *r, json_object *delta, rv_err **err)
{
    rv_str thinking = wire_text(delta, "reasoning_content"), refusal = wire_text(delta, "refusal");
    int rc;

    if (thinking.len == 0)
        thinking = wire_text(delta, "reasoning");
    rc = wire_reader_thinking(r, thinking, err);
    if (rc == 0)
        rc = read_content(r, rv_json_member(delta, "content"), err);
    if (rc == 0 && refusal.len) {
        wire_reader_finish(r, RV_FINISH_REFUSAL);
        rc = wire_reader_text(r, refusal, err);
    }
    return rc == 0 && !r->is_broken ? read_calls(r, delta, err) : rc;
}

/* --- the end --- */

static void read_finish(rv_wire_reader *r, rv_str reason)
{
    static const struct {
        const char *text;
        enum rv_finish_reason finish;
    } reasons[] = {
        {"stop", RV_FINISH_STOP},
        {"length", RV_FINISH_LENGTH},
        {"tool_calls", RV_FINISH_TOOL_CALLS},
        {"content_filter", RV_FINISH_CONTENT_FILTER},
        {"function_call", RV_FINISH_TOOL_CALLS},
        {"max_tokens", RV_FINISH_LENGTH},
        {"eos_token", RV_FINISH_STOP},
        {"stop_sequence", RV_FINISH_STOP},
        {"end_turn", RV_FINISH_STOP},
        {"tool_use", RV_FINISH_TOOL_CALLS},
        {"refusal", RV_FINISH_REFUSAL},
    };
    int finish = RV_FINISH_OTHER;

    if (reason.len == 0)
        return;
    if (rv_str_is(reason, "error") || rv_str_is(reason, "insufficient_system_resource")) {
        wire_reader_break(r, RV_LLM_ERROR_OVERLOADED, "the provider broke off: finish reason \"%.*s\"",
                          RV_STR_ARG(reason));
        return;
    }
    for (size_t i = 0; i < RV_COUNT(reasons); i++)
        if (rv_str_is(reason, reasons[i].text))
            finish = (int)reasons[i].finish;
    if (r->finish != RV_FINISH_REFUSAL)
        wire_reader_finish(r, finish);
    r->may_end = true;
}

/* delta: what the pieces of a choice stand under. */
static int read_answer(rv_wire_reader *r, json_object *answer, const char *delta, rv_err **err)
{
    json_object *choices = rv_json_get_arr(answer, "choices"), *usage = rv_json_get_obj(answer, "usage");
    int rc = 0;

    if (usage)
        read_usage(r, usage);
    for (size_t i = 0; choices && rc == 0 && !r->is_broken && i < json_object_array_length(choices); i++) {
        json_object *choice = json_object_array_get_idx(choices, i), *piece;
        int64_t index = 0;

        if (!json_object_is_type(choice, json_type_object) || (rv_json_get_int(choice, "index", &index) && index != 0))
            continue; /* one answer is asked for */
        piece = rv_json_get_obj(choice, delta);
        if (piece)
            rc = read_delta(r, piece, err);
        if (rc == 0)
            read_finish(r, wire_text(choice, "finish_reason"));
    }
    return rc;
}

static int read_event(rv_wire_reader *r, rv_str name, rv_str data, rv_err **err)
{
    json_object *chunk = NULL;
    rv_str text = {NULL, 0};
    bool is_thinking = false;
    int rc;

    if (rv_str_is(rv_str_trim(data), "[DONE]")) {
        r->saw_end = r->may_end;
        if (!r->may_end)
            wire_reader_break(r, RV_LLM_ERROR_PROTOCOL, "the stream ended without a finish reason");
        return 0;
    }
    if (!name.len && !r->no_short_way && wire_openai_short_chunk(data, &r->scratch, &text, &is_thinking))
        return is_thinking ? wire_reader_thinking(r, text, err) : wire_reader_text(r, text, err);
    if (r->scratch.rc)
        return rv_buf_check(&r->scratch, "the reply", err);
    rc = wire_reader_json(r, data, &chunk, err);
    if (rc == 0 && chunk && (wire_says_error(chunk) || rv_str_is(name, "error")))
        rc = wire_reader_fault(r, chunk, err);
    else if (rc == 0 && chunk)
        rc = read_answer(r, chunk, "delta", err);
    json_object_put(chunk);
    return rc;
}

static int read_whole(rv_wire_reader *r, json_object *reply, rv_err **err)
{
    json_object *choices = rv_json_get_arr(reply, "choices");

    if (wire_says_error(reply))
        return wire_reader_fault(r, reply, err);
    if (!choices || json_object_array_length(choices) == 0) {
        wire_reader_break(r, RV_LLM_ERROR_PROTOCOL, "the answer has no choices");
        return 0;
    }
    return read_answer(r, reply, "message", err);
}

/* --- errors: the body of a bad status, or an event of the stream --- */

/* Words of `code` or `type`. Where there is a status it says more than the plain types do. */
static const struct {
    const char *word;
    enum rv_llm_error kind;
    bool retryable, needs_no_status;
} words[] = {
    {"context_length_exceeded", RV_LLM_ERROR_CONTEXT_TOO_LONG, false, false},
    {"exceed_context_size_error", RV_LLM_ERROR_CONTEXT_TOO_LONG, false, false},
    {"insufficient_quota", RV_LLM_ERROR_RATE_LIMITED, false, false},
    {"billing_hard_limit_reached", RV_LLM_ERROR_RATE_LIMITED, false, false},
    {"billing_not_active", RV_LLM_ERROR_RATE_LIMITED, false, false},
    {"content_filter", RV_LLM_ERROR_CONTENT_FILTER, false, false},
    {"content_policy_violation", RV_LLM_ERROR_CONTENT_FILTER, false, false},
    {"ResponsibleAIPolicyViolation", RV_LLM_ERROR_CONTENT_FILTER, false, false},
    {"invalid_api_key", RV_LLM_ERROR_AUTH, false, false},
    {"rate_limit_exceeded", RV_LLM_ERROR_RATE_LIMITED, true, true},
    {"rate_limit_error", RV_LLM_ERROR_RATE_LIMITED, true, true},
    {"authentication_error", RV_LLM_ERROR_AUTH, false, true},
    {"permission_error", RV_LLM_ERROR_AUTH, false, true},
    {"timeout", RV_LLM_ERROR_TIMEOUT, true, true},
    {"server_error", RV_LLM_ERROR_OVERLOADED, true, true},
    {"invalid_request_error", RV_LLM_ERROR_BAD_REQUEST, false, true},
};

/* Servers that have no code for it say it in one of these ways. */
static const char *const too_long[] = {"maximum context length", "context size", "context window", "context length"};

static bool apply_word(rv_str word, int status, int *kind, bool *retryable)
{
    for (size_t i = 0; word.len && i < RV_COUNT(words); i++) {
        if (rv_str_is(word, words[i].word) && (status == 0 || !words[i].needs_no_status)) {
            *kind = (int)words[i].kind;
            *retryable = words[i].retryable;
            return true;
        }
    }
    return false;
}

static bool contains(rv_str text, const char *word)
{
    size_t n = strlen(word);

    for (size_t i = 0; i + n <= text.len; i++)
        if (strncasecmp(text.ptr + i, word, n) == 0)
            return true;
    return false;
}

static void apply_message(rv_str message, int *kind, bool *retryable)
{
    for (size_t i = 0; *kind == RV_LLM_ERROR_BAD_REQUEST && i < RV_COUNT(too_long); i++) {
        if (contains(message, too_long[i])) {
            *kind = RV_LLM_ERROR_CONTEXT_TOO_LONG;
            *retryable = false;
        }
    }
}

static void read_fault(json_object *body, int status, int *kind, bool *retryable, rv_buf *text)
{
    json_object *error = rv_json_get_obj(body, "error");
    rv_str message, code, type;
    int64_t number = 0;

    if (!error) { /* an error that is a text, or no "error" at all */
        message = wire_text(body, "error");
        if (!message.len)
            message = wire_text(body, "message");
        if (!message.len)
            message = wire_text(body, "detail");
        error = body;
    } else {
        message = wire_text(error, "message");
    }
    code = wire_text(error, "code");
    type = wire_text(error, "type");
    if (status == 0 && rv_json_get_int(error, "code", &number) && number >= 400 && number < 600) {
        status = (int)number;
        *kind = (int)wire_fault_kind(status, retryable);
    }
    if (!apply_word(code, status, kind, retryable) && !apply_word(type, status, kind, retryable))
        apply_message(message, kind, retryable);
    rv_buf_add_str(text, message);
    if (code.len || type.len)
        rv_buf_printf(text, message.len ? " (%.*s)" : "%.*s", RV_STR_ARG(code.len ? code : type));
}

const struct wire_codec wire_of_openai = {.request = wire_openai_request,
                                          .event = read_event,
                                          .whole = read_whole,
                                          .fault = read_fault,
                                          .takes = RV_WIRE_IMAGE_DATA | RV_WIRE_IMAGE_URL | RV_WIRE_FILE_DATA};
