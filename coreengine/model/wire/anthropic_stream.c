/* The answers of Anthropic Messages: events of blocks with numbers, or a whole message. What is asked is in
 * anthropic.c.
 *
 * Thinking blocks are kept as they came, signature and all: the next request has to hand them back unchanged. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/model/wire/wire_internal.h"

#define MAX_KEPT_BYTES  (((size_t)4 << 20) - 1024) /* of thinking blocks as JSON: what a reply's `opaque` holds */
#define MAX_KEPT_BLOCKS 1024 /* of thinking in one answer: a server fills it; more is an error of the answer */

/* The thinking block that is open; other blocks need no state of ours. */
enum block_kind { BLOCK_NONE, BLOCK_THINKING };

/* --- thinking, kept --- */

static int keep_block_take(rv_wire_reader *r, json_object *block, rv_err **err)
{
    rv_buf json = RV_BUF_INIT(MAX_KEPT_BYTES);
    int rc = 0;

    rv_json_write(block, &json);
    if (json.rc == RV_E_LIMIT || json.len > MAX_KEPT_BYTES - r->block_bytes ||
        (r->blocks && json_object_array_length(r->blocks) == MAX_KEPT_BLOCKS)) {
        wire_reader_break(r, RV_LLM_ERROR_PROTOCOL, "the thinking that is to be handed back is longer than %zu bytes",
                          MAX_KEPT_BYTES);
        goto done;
    }
    rc = rv_buf_check(&json, "a thinking block", err);
    if (rc < 0)
        goto done;
    if (!r->blocks)
        r->blocks = json_object_new_array();
    if (!r->blocks) {
        rc = RV_FAIL(err, RV_E_NOMEM, "no memory for a thinking block");
        goto done;
    }
    r->block_bytes += json.len + 1; /* and a comma */
    rc = rv_json_push_take(r->blocks, block, err);
    block = NULL;
done:
    json_object_put(block);
    rv_buf_fini(&json);
    return rc;
}

static int open_thinking(rv_wire_reader *r, int64_t index)
{
    if (r->block_kind == BLOCK_THINKING) {
        wire_reader_break(r, RV_LLM_ERROR_PROTOCOL, "a thinking block begins within another");
        return 0;
    }
    r->block_kind = BLOCK_THINKING;
    r->block_index = index;
    rv_buf_clear(&r->block_text);
    rv_buf_clear(&r->block_signature);
    return 0;
}

static int add_thinking(rv_wire_reader *r, rv_str text, rv_err **err)
{
    rv_str joined = wire_half_join(&r->block_half, r->has_halves, text, &r->joined);

    rv_buf_add_str(&r->block_text, joined);
    if (r->joined.rc)
        return rv_buf_check(&r->joined, "thinking", err);
    if (r->block_text.rc == RV_E_NOMEM)
        return rv_buf_check(&r->block_text, "thinking", err);
    return wire_reader_thinking(r, text, err); /* counts, too: what is too long for the block is too long for it */
}

static int add_signature(rv_wire_reader *r, rv_str text, rv_err **err)
{
    rv_buf_add_str(&r->block_signature, text);
    if (r->block_signature.rc == RV_E_LIMIT) {
        wire_reader_break(r, RV_LLM_ERROR_PROTOCOL, "the signature of a thinking block is too long");
        return 0;
    }
    return rv_buf_check(&r->block_signature, "a signature", err);
}

/* The provider does not accept thinking back without a signature. */
static int close_thinking(rv_wire_reader *r, rv_err **err)
{
    json_object *block;
    rv_str lost;
    int rc;

    r->block_kind = BLOCK_NONE;
    if (wire_half_is_lost(&r->block_half, &lost))
        rv_buf_add_str(&r->block_text, lost);
    if (r->block_text.rc == RV_E_NOMEM)
        return rv_buf_check(&r->block_text, "thinking", err);
    if (r->is_broken || r->block_signature.len == 0)
        return 0;
    block = json_object_new_object();
    if (!block)
        return RV_FAIL(err, RV_E_NOMEM, "no memory for a thinking block");
    rc = rv_json_set_text(block, "type", "thinking", err);
    if (rc == 0)
        rc = rv_json_set_str(block, "thinking", rv_buf_str(&r->block_text), err);
    if (rc == 0)
        rc = rv_json_set_str(block, "signature", rv_buf_str(&r->block_signature), err);
    if (rc < 0) {
        json_object_put(block);
        return rc;
    }
    return keep_block_take(r, block, err);
}

/* --- tool calls --- */

static struct wire_call *find_call(rv_wire_reader *r, int64_t index)
{
    for (size_t i = 0; i < r->n_calls; i++)
        if (r->calls[i].key == index)
            return &r->calls[i];
    return NULL;
}

/* Servers that have the input of a call at once write it where others write {} for what is to come in pieces. */
static int keep_input(rv_wire_reader *r, int64_t index, json_object *block, rv_err **err)
{
    json_object *input = rv_json_get_obj(block, "input");

    if (r->is_whole || !input || json_object_object_length(input) == 0)
        return 0;
    r->input_index = index;
    r->input_has_halves = r->has_halves;
    rv_json_write(input, &r->block_input);
    if (r->block_input.rc != RV_E_LIMIT)
        return rv_buf_check(&r->block_input, "the arguments of a tool call", err);
    wire_reader_break(r, RV_LLM_ERROR_PROTOCOL, "the reply is longer than %zu bytes", RV_LLM_MAX_REPLY);
    return 0;
}

/* What the last call began with are its arguments when no pieces came. */
static int take_input(rv_wire_reader *r, rv_err **err)
{
    struct wire_call *c = r->block_input.len ? find_call(r, r->input_index) : NULL;
    bool has_halves = r->has_halves;
    int rc = 0;

    if (c && !c->ended && rv_str_trim(rv_buf_str(&c->arguments)).len == 0) {
        r->has_halves = r->input_has_halves;
        rc = wire_reader_arguments(r, c, rv_buf_str(&r->block_input), err);
        r->has_halves = has_halves;
    }
    rv_buf_clear(&r->block_input);
    return rc;
}

static int start_call(rv_wire_reader *r, int64_t index, json_object *block, rv_err **err)
{
    struct wire_call *c;
    int rc = take_input(r, err); /* of a call whose end did not come */

    if (rc < 0 || r->is_broken)
        return rc;
    if (find_call(r, index)) {
        wire_reader_break(r, RV_LLM_ERROR_PROTOCOL, "two tool calls have the same place in the reply");
        return 0;
    }
    c = wire_reader_call(r, index, &rc, err);
    if (!c)
        return rc;
    rv_buf_add_str(&c->id, wire_text(block, "id"));
    rv_buf_add_str(&c->name, wire_text(block, "name"));
    rc = wire_reader_call_starts(r, c, err);
    return rc == 0 && !r->is_broken ? keep_input(r, index, block, err) : rc;
}

/* --- blocks --- */

static int start_block(rv_wire_reader *r, int64_t index, json_object *block, rv_err **err)
{
    rv_str type = wire_text(block, "type");
    json_object *copy = NULL;
    int rc;

    if (rv_str_is(type, "text"))
        return wire_reader_text(r, wire_text(block, "text"), err);
    if (rv_str_is(type, "tool_use"))
        return start_call(r, index, block, err);
    if (rv_str_is(type, "thinking")) {
        rc = open_thinking(r, index);
        if (rc == 0 && !r->is_broken)
            rc = add_thinking(r, wire_text(block, "thinking"), err);
        return rc == 0 && !r->is_broken ? add_signature(r, wire_text(block, "signature"), err) : rc;
    }
    if (!rv_str_is(type, "redacted_thinking"))
        return 0; /* of a kind that we never ask for, or that is new */
    rc = rv_json_dup(block, &copy, err);
    return rc < 0 ? rc : keep_block_take(r, copy, err);
}

static int stop_block(rv_wire_reader *r, int64_t index, rv_err **err)
{
    struct wire_call *c = find_call(r, index);
    int rc = r->input_index == index ? take_input(r, err) : 0;

    if (rc < 0 || r->is_broken)
        return rc;
    if (c)
        wire_reader_call_ends(r, c);
    return r->block_kind == BLOCK_THINKING && r->block_index == index ? close_thinking(r, err) : 0;
}

static int read_delta(rv_wire_reader *r, int64_t index, json_object *delta, rv_err **err)
{
    rv_str type = wire_text(delta, "type");
    struct wire_call *c;

    if (rv_str_is(type, "text_delta"))
        return wire_reader_text(r, wire_text(delta, "text"), err);
    if (rv_str_is(type, "input_json_delta")) {
        c = find_call(r, index); /* other blocks have input, too: those of tools that the server runs */
        return c ? wire_reader_arguments(r, c, wire_text(delta, "partial_json"), err) : 0;
    }
    if (r->block_kind != BLOCK_THINKING || r->block_index != index)
        return 0;
    if (rv_str_is(type, "thinking_delta"))
        return add_thinking(r, wire_text(delta, "thinking"), err);
    return rv_str_is(type, "signature_delta") ? add_signature(r, wire_text(delta, "signature"), err) : 0;
}

/* --- how much, and why it ended --- */

/* Counters are totals of the whole reply; what is not said stays. Their input is without what a cache read or wrote. */
static void read_usage(rv_wire_reader *r, json_object *usage)
{
    struct rv_usage u = r->usage;
    int64_t plain = u.input_tokens - u.cached_tokens - u.cache_write_tokens;

    if (!usage)
        return;
    r->knows_input |= wire_reader_count(usage, "input_tokens", &plain);
    wire_reader_count(usage, "cache_read_input_tokens", &u.cached_tokens);
    wire_reader_count(usage, "cache_creation_input_tokens", &u.cache_write_tokens);
    r->knows_output |= wire_reader_count(usage, "output_tokens", &u.output_tokens);
    u.input_tokens = plain + u.cached_tokens + u.cache_write_tokens;
    if (u.input_tokens || u.output_tokens) /* zeros are of a server that does not count */
        wire_reader_usage(r, &u);
}

static void read_stop_reason(rv_wire_reader *r, json_object *from)
{
    static const struct {
        const char *text;
        enum rv_finish_reason finish;
    } reasons[] = {
        {"end_turn", RV_FINISH_STOP},       {"stop_sequence", RV_FINISH_STOP},
        {"max_tokens", RV_FINISH_LENGTH},   {"model_context_window_exceeded", RV_FINISH_LENGTH},
        {"tool_use", RV_FINISH_TOOL_CALLS}, {"refusal", RV_FINISH_REFUSAL},
        {"pause_turn", RV_FINISH_PAUSE},
    };
    rv_str text = wire_text(from, "stop_reason");

    if (!text.len)
        return;
    for (size_t i = 0; i < RV_COUNT(reasons); i++) {
        if (rv_str_is(text, reasons[i].text)) {
            wire_reader_finish(r, (int)reasons[i].finish);
            return;
        }
    }
    wire_reader_finish(r, RV_FINISH_OTHER);
}

static int end_message(rv_wire_reader *r, rv_err **err)
{
    int rc = take_input(r, err);

    if (rc == 0 && r->block_kind == BLOCK_THINKING)
        rc = close_thinking(r, err);
    r->saw_end = rc == 0;
    return rc;
}

/* --- events, or all at once --- */

static int take_event(rv_wire_reader *r, json_object *ev, rv_err **err)
{
    rv_str type = wire_text(ev, "type");
    json_object *part;
    int64_t index = 0;

    if (!rv_json_get_int(ev, "index", &index) || index < 0)
        index = 0;
    if (rv_str_is(type, "content_block_delta")) {
        part = rv_json_get_obj(ev, "delta");
        return part ? read_delta(r, index, part, err) : 0;
    }
    if (rv_str_is(type, "content_block_start")) {
        part = rv_json_get_obj(ev, "content_block");
        return part ? start_block(r, index, part, err) : 0;
    }
    if (rv_str_is(type, "content_block_stop"))
        return stop_block(r, index, err);
    if (rv_str_is(type, "message_start")) {
        part = rv_json_get_obj(ev, "message");
        read_usage(r, part ? rv_json_get_obj(part, "usage") : NULL);
        return 0;
    }
    if (rv_str_is(type, "message_delta")) {
        part = rv_json_get_obj(ev, "delta");
        if (part)
            read_stop_reason(r, part);
        read_usage(r, rv_json_get_obj(ev, "usage"));
        return 0;
    }
    if (rv_str_is(type, "message_stop"))
        return end_message(r, err);
    if (rv_str_is(type, "error") || (!type.len && rv_json_get_obj(ev, "error")))
        return wire_reader_fault(r, ev, err);
    return 0; /* a ping, or new */
}

static int read_event(rv_wire_reader *r, rv_str name, rv_str data, rv_err **err)
{
    json_object *ev = NULL;
    int rc = wire_reader_json(r, data, &ev, err);

    (void)name; /* the data says it again */
    if (rc == 0 && ev)
        rc = take_event(r, ev, err);
    json_object_put(ev);
    return rc;
}

/* In a whole message the input is there, as an object. */
static int read_input(rv_wire_reader *r, int64_t index, json_object *block, rv_err **err)
{
    struct wire_call *c = find_call(r, index);
    json_object *input = rv_json_get_obj(block, "input");

    return c && input ? wire_reader_arguments_object(r, c, input, err) : 0;
}

static int read_whole(rv_wire_reader *r, json_object *reply, rv_err **err)
{
    json_object *content = rv_json_get_arr(reply, "content");
    size_t n = content ? json_object_array_length(content) : 0;
    int rc = 0;

    if (rv_str_is(wire_text(reply, "type"), "error") || rv_json_get_obj(reply, "error"))
        return wire_reader_fault(r, reply, err);
    if (!content) {
        wire_reader_break(r, RV_LLM_ERROR_PROTOCOL, "the answer has no content");
        return 0;
    }
    read_usage(r, rv_json_get_obj(reply, "usage"));
    for (size_t i = 0; rc == 0 && i < n && !r->is_broken; i++) {
        json_object *block = json_object_array_get_idx(content, i);
        if (!json_object_is_type(block, json_type_object))
            continue;
        rc = start_block(r, (int64_t)i, block, err);
        if (rc == 0 && !r->is_broken)
            rc = read_input(r, (int64_t)i, block, err);
        if (rc == 0 && !r->is_broken)
            rc = stop_block(r, (int64_t)i, err);
    }
    if (rc < 0 || r->is_broken)
        return rc;
    read_stop_reason(r, reply);
    return end_message(r, err);
}

/* --- errors: the body of a bad status, or an event of the stream --- */

/* Data, not code: what the types of errors mean here. */
static const struct {
    const char *type;
    enum rv_llm_error kind;
    bool is_final; /* repeating cannot help although the kind would allow it */
} error_types[] = {
    {"invalid_request_error", RV_LLM_ERROR_BAD_REQUEST, true},
    {"authentication_error", RV_LLM_ERROR_AUTH, true},
    {"permission_error", RV_LLM_ERROR_AUTH, true},
    {"billing_error", RV_LLM_ERROR_RATE_LIMITED, true},
    {"not_found_error", RV_LLM_ERROR_BAD_REQUEST, true},
    {"request_too_large", RV_LLM_ERROR_CONTEXT_TOO_LONG, true},
    {"rate_limit_error", RV_LLM_ERROR_RATE_LIMITED, false},
    {"api_error", RV_LLM_ERROR_OVERLOADED, false},
    {"timeout_error", RV_LLM_ERROR_TIMEOUT, false},
    {"overloaded_error", RV_LLM_ERROR_OVERLOADED, false},
};

/* Bad requests whose words tell more than their type. */
static const struct {
    const char *words;
    enum rv_llm_error kind;
} bad_requests[] = {
    {"prompt is too long", RV_LLM_ERROR_CONTEXT_TOO_LONG}, {"exceed context limit", RV_LLM_ERROR_CONTEXT_TOO_LONG},
    {"context window", RV_LLM_ERROR_CONTEXT_TOO_LONG},     {"maximum context length", RV_LLM_ERROR_CONTEXT_TOO_LONG},
    {"content filtering", RV_LLM_ERROR_CONTENT_FILTER},    {"credit balance", RV_LLM_ERROR_RATE_LIMITED},
};

static void read_fault(json_object *body, int status, int *kind, bool *retryable, rv_buf *text)
{
    json_object *error = body ? rv_json_get_obj(body, "error") : NULL;
    json_object *details = error ? rv_json_get_obj(error, "details") : NULL;
    rv_str type = error ? wire_text(error, "type") : (rv_str){NULL, 0}, message;

    (void)status; /* says what its type says again */
    if (!error)
        return;
    for (size_t i = 0; i < RV_COUNT(error_types); i++) {
        if (!rv_str_is(type, error_types[i].type))
            continue;
        *kind = (int)error_types[i].kind;
        *retryable = !error_types[i].is_final;
    }
    if (details && wire_text(details, "error_code").len && *kind == RV_LLM_ERROR_RATE_LIMITED)
        *retryable = false; /* the limit of what may be spent, not of how fast */
    message = wire_text(error, "message");
    rv_buf_add_str(text, message.len ? message : type);
    for (size_t i = 0; *kind == RV_LLM_ERROR_BAD_REQUEST && i < RV_COUNT(bad_requests); i++)
        if (strcasestr(rv_buf_cstr(text), bad_requests[i].words))
            *kind = (int)bad_requests[i].kind;
}

const struct wire_codec wire_of_anthropic = {.request = wire_anthropic_request,
                                             .event = read_event,
                                             .whole = read_whole,
                                             .fault = read_fault,
                                             .takes = RV_WIRE_IMAGE_DATA | RV_WIRE_IMAGE_URL | RV_WIRE_FILE_DATA |
                                                      RV_WIRE_FILE_URL};
