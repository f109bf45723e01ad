/* What may stand in the reply of a model, as tables.c has it for the rest. */
#include <stddef.h>
#include <string.h>

#include "coreengine/tools/script/script_internal.h"

#define AT(member)                SCRIPT_AT(member)
#define WORD(name, text, meaning) "\"" text "\","

static void out_of_memory(struct rv_key_reader *r)
{
    r->rc = RV_E_NOMEM;
}

/* --- error: a text, or a map --- */

static const struct rv_key error_keys[] = {
    {.name = "kind",
     .type = RV_KEY_TERM,
     .offset = AT(error.kind),
     .required = true,
     .term_list = "llm_error",
     .doc = "What went wrong; decides whether another attempt is made."},
    {.name = "status",
     .type = RV_KEY_INT,
     .offset = AT(error.status),
     .min = 100,
     .max = 599,
     .doc = "HTTP status, for the text."},
    {.name = "retry_after_ms",
     .type = RV_KEY_INT,
     .offset = AT(error.retry_after_ms),
     .min = 0,
     .max = RV_SCRIPT_MAX_DELAY_MS,
     .doc = "What the provider asks to wait."},
    {.name = "retryable",
     .type = RV_KEY_BOOL,
     .offset = AT(error.retryable),
     .is_set_offset = AT(error.has_retryable),
     .doc = "Another attempt may help; follows from the kind when left out."},
    {.name = "billed",
     .type = RV_KEY_BOOL,
     .offset = AT(error.billed),
     .default_text = "false",
     .doc = "The provider may charge for it all the same."},
    {.name = "message", .type = RV_KEY_STR, .offset = AT(error.message), .doc = "The text."},
};

static void read_error(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct script_raw_entry *raw = target;

    raw->error.kind = RV_LLM_ERROR_OVERLOADED; /* of a bare text: a fault of the provider */
    if (node->kind == RV_NODE_STR)
        raw->error.message = node->text.ptr;
    else if (node->kind == RV_NODE_MAP)
        script_read_within(r, node, "error.", error_keys, RV_COUNT(error_keys), raw);
    else
        rv_keys_add_wrong_type(r, node, "error", "a text or a map");
}

/* --- texts, and maps that are kept as JSON --- */

static void read_text(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    if (node->kind == RV_NODE_STR)
        *(rv_str *)target = node->text;
    else
        rv_keys_add_wrong_type(r, node, "text", "a string");
}

/* A map becomes compact JSON; a text is kept as it is, whatever it says. */
static void read_json_text(struct rv_key_reader *r, const struct rv_node *node, const char *key, rv_str *out)
{
    rv_buf text = RV_BUF_INIT(RV_YAML_MAX_BYTES);
    json_object *json = NULL;

    if (node->kind == RV_NODE_STR) {
        *out = node->text;
        return;
    }
    if (node->kind != RV_NODE_MAP) {
        rv_keys_add_wrong_type(r, node, key, "a map or a text");
        return;
    }
    rv_keys_read_json(r, node, &json);
    if (json) {
        rv_json_write(json, &text);
        script_keep(r->user, &text, out);
    }
    json_object_put(json);
    rv_buf_fini(&text);
}

static void read_opaque(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    json_object *json = NULL;

    if (node->kind == RV_NODE_STR) {
        int rc = rv_json_parse(node->text, NULL, &json,
                               RV_CODE_ONLY("a finding says that it is not an object; want of memory is told below"));
        bool is_object = rc == 0 && json_object_is_type(json, json_type_object);
        json_object_put(json);
        if (rc == RV_E_NOMEM)
            out_of_memory(r);
        else if (!is_object)
            rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, NULL,
                                "opaque must be a map, or a JSON object as text");
    }
    read_json_text(r, node, "opaque", target);
}

/* --- chunks --- */

static void read_chunk_text(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct script_raw_chunk *chunk = target;
    read_text(r, node, &chunk->text);
}

static void read_chunk_thinking(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct script_raw_chunk *chunk = target;

    if (node->kind == RV_NODE_STR)
        chunk->text = node->text;
    else
        rv_keys_add_wrong_type(r, node, "thinking", "a string");
}

#define CHUNK(member) offsetof(struct script_raw_chunk, member)
static const struct rv_key chunk_keys[] = {
    {.name = "text",
     .type = RV_KEY_CUSTOM,
     .read = read_chunk_text,
     .is_set_offset = CHUNK(has_text),
     .schema = "{\"type\":\"string\"}",
     .doc = "A piece of the reply."},
    {.name = "thinking",
     .type = RV_KEY_CUSTOM,
     .read = read_chunk_thinking,
     .is_set_offset = CHUNK(has_thinking),
     .schema = "{\"type\":\"string\"}",
     .doc = "A piece of what the model thinks aloud; no part of the reply."},
    {.name = "delay_ms",
     .type = RV_KEY_INT,
     .offset = CHUNK(delay_ms),
     .is_set_offset = CHUNK(has_delay),
     .min = 0,
     .max = RV_SCRIPT_MAX_DELAY_MS,
     .doc = "Time before this piece; the entry's when left out."},
};

static void read_chunk(struct rv_key_reader *r, const struct rv_node *node, struct script_raw_chunk *out)
{
    *out = (struct script_raw_chunk){.text = {"", 0}};
    if (node->kind == RV_NODE_STR) {
        out->text = node->text;
        return;
    }
    if (node->kind != RV_NODE_MAP) {
        rv_keys_add_wrong_type(r, node, "a chunk", "a text or a map");
        return;
    }
    script_read_within(r, node, "chunks.", chunk_keys, RV_COUNT(chunk_keys), out);
    if (out->has_text && out->has_thinking)
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, "make it two chunks",
                            "chunks: a chunk has either text or thinking");
}

static void read_chunks(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct script_raw_entry *raw = target;

    if (node->kind != RV_NODE_LIST) {
        rv_keys_add_wrong_type(r, node, "chunks", "a list of texts and maps");
        return;
    }
    raw->chunks = script_array(r->user, node->n, sizeof *raw->chunks);
    for (size_t i = 0; raw->chunks && i < node->n && r->rc == 0; i++)
        read_chunk(r, node->items[i], &raw->chunks[raw->n_chunks++]);
}

/* --- calls of tools --- */

struct raw_call {
    const char *id;
    rv_str name, arguments;
    bool has_name;
    struct rv_src src;
};

static void read_arguments(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct raw_call *call = target;
    read_json_text(r, node, "arguments", &call->arguments);
}

static void read_name(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    if (node->kind == RV_NODE_STR)
        *(rv_str *)target = node->text;
    else
        rv_keys_add_wrong_type(r, node, "name", "a string");
}

static const struct rv_key call_keys[] = {
    {.name = "id",
     .type = RV_KEY_STR,
     .offset = offsetof(struct raw_call, id),
     .doc = "What its result refers to; call_1, call_2, ... when left out."},
    {.name = "name", /* models have been seen to call a tool "" */
     .type = RV_KEY_CUSTOM,
     .offset = offsetof(struct raw_call, name),
     .read = read_name,
     .is_set_offset = offsetof(struct raw_call, has_name),
     .schema = "{\"type\":\"string\"}",
     .doc = "The tool, whether there is one of that name or not."},
    {.name = "arguments",
     .type = RV_KEY_CUSTOM,
     .read = read_arguments,
     .schema = "{\"type\":[\"object\",\"string\"]}",
     .doc = "A map; or the text that the model wrote, JSON or not. An empty map when left out."},
};

static bool is_id_taken(const struct raw_call *calls, size_t n, const char *id)
{
    for (size_t i = 0; i < n; i++)
        if (calls[i].id && strcmp(calls[i].id, id) == 0)
            return true;
    return false;
}

/* Every call has an id of its own: results are told apart by it. */
static void number_calls(struct rv_key_reader *r, struct raw_call *calls, size_t n)
{
    struct script_reader *reader = r->user;

    for (size_t i = 0; i < n; i++)
        if (calls[i].id && is_id_taken(calls, i, calls[i].id))
            rv_keys_add_finding(r, RV_SEVERITY_ERROR, &calls[i].src, "leave the id out",
                                "tool_calls: id \"%s\" is used twice", calls[i].id);
    for (size_t i = 0, number = 1; i < n; i++, number++) {
        rv_str id = {"", 0};
        while (!calls[i].id && r->rc == 0) {
            rv_buf text = RV_BUF_INIT(64);
            rv_buf_printf(&text, "call_%zu", number);
            if (!script_keep(reader, &text, &id))
                return;
            if (is_id_taken(calls, n, id.ptr))
                number++;
            else
                calls[i].id = id.ptr;
        }
    }
}

static void write_calls(struct rv_key_reader *r, const struct raw_call *calls, size_t n, rv_str *out)
{
    rv_buf text = RV_BUF_INIT(4 * RV_LLM_MAX_REPLY);
    rv_jw w = rv_jw_on(&text);

    rv_jw_arr(&w);
    for (size_t i = 0; i < n; i++) {
        rv_jw_obj(&w);
        rv_jw_kv_text(&w, "id", calls[i].id);
        rv_jw_kv_str(&w, "name", calls[i].name);
        rv_jw_kv_str(&w, "arguments", calls[i].arguments);
        rv_jw_obj_end(&w);
    }
    rv_jw_arr_end(&w);
    script_keep(r->user, &text, out);
}

static void read_tool_calls(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct script_raw_entry *raw = target;

    if (node->kind != RV_NODE_LIST || node->n == 0 || node->n > RV_LLM_MAX_TOOL_CALLS) {
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, NULL,
                            "tool_calls must be a list of {name, arguments}, at least one and at most %d",
                            RV_LLM_MAX_TOOL_CALLS);
        return;
    }
    struct raw_call *calls = script_array(r->user, node->n, sizeof *calls);
    size_t before = rv_findings_n_errors(r->findings);
    for (size_t i = 0; calls && i < node->n && r->rc == 0; i++) {
        calls[i] = (struct raw_call){.arguments = RV_STR_LIT("{}"), .src = node->items[i]->src};
        script_read_within(r, node->items[i], "tool_calls.", call_keys, RV_COUNT(call_keys), &calls[i]);
        if (calls[i].id && !calls[i].id[0])
            calls[i].id = NULL;
        if (node->items[i]->kind == RV_NODE_MAP && !calls[i].has_name)
            rv_keys_add_finding(r, RV_SEVERITY_ERROR, &calls[i].src, "add `name:`, the tool that the model calls",
                                "tool_calls.name is required");
    }
    if (r->rc == 0 && rv_findings_n_errors(r->findings) == before)
        number_calls(r, calls, node->n);
    if (r->rc == 0 && rv_findings_n_errors(r->findings) == before)
        write_calls(r, calls, node->n, &raw->tool_calls);
}

/* --- why it stopped: a word, or null when the provider did not say --- */

static void read_finish(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct script_raw_entry *raw = target;
    enum rv_finish_reason finish;
    rv_err *err = NULL;

    if (node->kind == RV_NODE_NULL) {
        raw->finish = RV_UNSET;
    } else if (node->kind != RV_NODE_STR) {
        rv_keys_add_wrong_type(r, node, "finish_reason", "a string or null");
    } else if (rv_finish_reason_of(node->text, &finish, &err) == 0) {
        raw->finish = (int)finish;
    } else {
        const char *hint = rv_err_hint_text(err);
        rv_keys_add_finding(r, RV_SEVERITY_ERROR, &node->src, hint, "finish_reason: %s", rv_err_text(err));
    }
    rv_err_free(err);
}

/* --- the entry --- */

#define COUNT(key, text)                                                                                               \
    {                                                                                                                  \
        .name = #key, .type = RV_KEY_INT, .offset = AT(usage.key), .min = 0, .max = 1e12, .doc = text                  \
    }
static const struct rv_key usage_keys[] = {
    COUNT(input_tokens, "Tokens read."),
    COUNT(output_tokens, "Tokens written."),
    COUNT(cached_tokens, "Tokens read that a cache had; part of the input."),
    COUNT(cache_write_tokens, "Tokens read that were put into a cache; part of the input."),
    COUNT(reasoning_tokens, "Tokens thought; part of the output."),
};

static const struct rv_key model_keys[] = {
    SCRIPT_MATCHERS,
    {.name = "request",
     .type = RV_KEY_STR,
     .offset = AT(request),
     .doc = "Matcher: only that request, by the SHA-256 of model and request; in cassettes."},
    {.name = "json",
     .type = RV_KEY_JSON,
     .offset = AT(json),
     .is_set_offset = AT(has_json),
     .schema = "true",
     .doc = "The reply is this value as JSON text."},
    {.name = "text",
     .type = RV_KEY_CUSTOM,
     .offset = AT(text),
     .read = read_text,
     .is_set_offset = AT(has_text),
     .schema = "{\"type\":\"string\"}",
     .doc = "The reply."},
    {.name = "chunks",
     .type = RV_KEY_CUSTOM,
     .read = read_chunks,
     .is_set_offset = AT(has_chunks),
     .schema = "{\"type\":\"array\",\"items\":{\"anyOf\":[{\"type\":\"string\"},{\"$ref\":\"#/$defs/chunk\"}]}}",
     .doc = "The reply in parts, as a model streams it: texts, or {text, thinking, delay_ms}."},
    {.name = "tool_calls",
     .type = RV_KEY_CUSTOM,
     .read = read_tool_calls,
     .schema = "{\"type\":\"array\",\"minItems\":1,\"items\":{\"$ref\":\"#/$defs/tool_call\"}}",
     .doc = "Tools that the model asks for, each {name, arguments, id}; may stand beside a text."},
    {.name = "usage",
     .type = RV_KEY_MAP,
     .keys = usage_keys,
     .n_keys = RV_COUNT(usage_keys),
     .is_set_offset = AT(has_usage),
     .doc = "Tokens to report."},
    {.name = "finish_reason",
     .type = RV_KEY_CUSTOM,
     .read = read_finish,
     .is_set_offset = AT(has_finish),
     .schema = "{\"enum\":[" RV_FINISH_REASONS(WORD) "null]}",
     .doc = "Why the model stopped, null when the provider did not say; left out, `tool_calls` when it asks for tools, "
            "`stop` when not, null beside an error."},
    {.name = "opaque",
     .type = RV_KEY_CUSTOM,
     .offset = AT(opaque),
     .read = read_opaque,
     .schema = "{\"type\":[\"object\",\"string\"]}",
     .doc = "What the provider wants back with the turn: {provider, ...}."},
    {.name = "answered_by",
     .type = RV_KEY_STR,
     .offset = AT(answered_by),
     .doc = "The role whose model answered, when it was a fallback."},
    {.name = "attempts",
     .type = RV_KEY_INT,
     .offset = AT(attempts),
     .min = 1,
     .max = 1e6,
     .doc = "Requests that were sent for it; 1 when left out."},
    {.name = "error",
     .type = RV_KEY_CUSTOM,
     .offset = 0,
     .read = read_error,
     .is_set_offset = AT(has_error),
     .schema = SCRIPT_ERROR_SCHEMA("\"kind\":{\"type\":\"string\",\"enum\":[" RV_LLM_ERRORS(
         WORD) "null]},\"status\":{\"type\":\"integer\"},"
               "\"retry_after_ms\":{\"type\":\"integer\"},\"retryable\":{\"type\":\"boolean\"},"
               "\"billed\":{\"type\":\"boolean\"},\"message\":{\"type\":\"string\"}"),
     .doc = "The call fails: a text, or {kind, status, retry_after_ms, retryable, billed, message}. A text or chunks "
            "beside it came before it broke."},
};

const struct script_table script_model_table = {"model reply", model_keys, RV_COUNT(model_keys)};
const struct script_table script_chunk_table = {"chunk", chunk_keys, RV_COUNT(chunk_keys)};
const struct script_table script_call_table = {"tool call", call_keys, RV_COUNT(call_keys)};
