/* The bodies of OpenAI's Chat Completions, which REMLight's is a part of, and of its Responses. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/protocols/requests_internal.h"

#define MAX_OUTPUT 10000000 /* tokens of an answer: no model writes as many; a larger number is a mistake */

/* --- what both have --- */

static int named_tool(struct req *q, json_object *item, bool nested)
{
    const char *type = NULL;
    json_object *function = NULL;

    if (!json_object_is_type(item, json_type_object))
        return req_wrong_type(q, item, "an object");
    int rc = req_text(q, item, "type", &type);
    if (rc < 0)
        return rc;
    if (type && strcmp(type, "function") != 0) {
        req_enter(q, "type");
        return req_wrong(q, "must be \"function\", and is \"%.40s\": the server has its own tools", type);
    }
    if (!nested)
        return req_tool(q, item, "name");
    rc = req_typed(q, item, "function", json_type_object, &function);
    if (rc < 0)
        return rc;
    size_t mark = req_enter(q, "function");
    rc = function ? req_tool(q, function, "name") : req_wrong(q, "is missing: {name, description?, parameters?}");
    if (rc == 0)
        req_back(q, mark);
    return rc;
}

static int read_choice(struct req *q, json_object *body)
{
    static const char *const words[] = {"auto", "required", "none"};
    json_object *value = req_member(body, "tool_choice");
    const char *word = NULL;

    if (!value)
        return 0;
    if (json_object_is_type(value, json_type_object)) {
        json_object *function = rv_json_get_obj(value, "function"); /* Responses have the name beside the type */
        size_t mark = req_enter(q, "tool_choice");
        q->out->tool_choice = "required";
        int rc = req_text(q, function ? function : value, "name", &q->out->tool_named);
        if (rc == 0 && !q->out->tool_named)
            return req_unsupported(q, "must be \"auto\", \"required\", \"none\" or one tool by its name");
        if (rc == 0)
            req_back(q, mark);
        return rc;
    }
    int rc = req_text(q, body, "tool_choice", &word);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < RV_COUNT(words); i++)
        if (strcmp(words[i], word) == 0)
            q->out->tool_choice = words[i];
    if (q->out->tool_choice)
        return 0;
    req_enter(q, "tool_choice");
    return req_wrong(q, "must be \"auto\", \"required\", \"none\" or a tool, and is \"%.40s\"", word);
}

/* tools and tool_choice of OpenAI's forms: nested has {type, function: {...}}. */
static int read_tools(struct req *q, json_object *body, bool nested)
{
    json_object *list = NULL;

    int rc = req_list(q, body, "tools", RV_REQUEST_MAX_TOOLS, &list);
    for (size_t i = 0; rc == 0 && list && i < json_object_array_length(list); i++) {
        size_t mark = req_enter(q, "tools");
        req_enter_at(q, i);
        rc = named_tool(q, json_object_array_get_idx(list, i), nested);
        if (rc == 0)
            req_back(q, mark);
    }
    return rc == 0 ? read_choice(q, body) : rc;
}

/* {type: "json_schema", ...}; where: the object that has `schema`. */
static int read_format(struct req *q, json_object *format, const char *where)
{
    const char *type = NULL;
    json_object *holder = NULL;

    int rc = req_text(q, format, "type", &type);
    if (rc < 0)
        return rc;
    bool is_schema = type && strcmp(type, "json_schema") == 0, is_json = type && strcmp(type, "json_object") == 0;
    if (!is_schema && !is_json && !(type && strcmp(type, "text") == 0)) {
        req_enter(q, "type");
        return req_wrong(q, "must be \"text\", \"json_object\" or \"json_schema\"");
    }
    if (is_json) { /* any object */
        rc = req_make(q, json_object_new_object(), &q->out->response_schema);
        return rc == 0 ? rv_json_set_text(q->out->response_schema, "type", "object", q->err) : rc;
    }
    if (!is_schema)
        return 0;
    if (where) {
        rc = req_typed(q, format, where, json_type_object, &holder);
        if (rc < 0)
            return rc;
        req_enter(q, where);
    }
    holder = where ? holder : format;
    rc = holder ? req_typed(q, holder, "schema", json_type_object, &q->out->response_schema) : 0;
    if (rc == 0 && !q->out->response_schema) {
        req_enter(q, "schema");
        return req_wrong(q, "is missing: a JSON Schema");
    }
    return rc;
}

/* Parameters that no agent has: allowed where they say what holds anyway. */
static bool holds_anyway(json_object *value, double neutral, bool has_neutral)
{
    if (json_object_is_type(value, json_type_array))
        return json_object_array_length(value) == 0;
    if (json_object_is_type(value, json_type_object))
        return json_object_object_length(value) == 0;
    if (json_object_is_type(value, json_type_boolean))
        return json_object_get_boolean(value) == (neutral != 0);
    return has_neutral && rv_json_is_number(value) && json_object_get_double(value) >= neutral &&
           json_object_get_double(value) <= neutral;
}

static int refuse_rest(struct req *q, json_object *body)
{
    static const struct {
        const char *key;
        double neutral; /* of booleans, too: 0 is false */
        bool has_neutral;
    } rows[] = {{"top_p", 1, true},        {"frequency_penalty", 0, true},    {"presence_penalty", 0, true},
                {"stop", 0, false},        {"logit_bias", 0, false},          {"logprobs", 0, true},
                {"top_logprobs", 0, true}, {"parallel_tool_calls", 1, false}, {"reasoning_effort", 0, false},
                {"verbosity", 0, false},   {"functions", 0, false},           {"function_call", 0, false},
                {"audio", 0, false},       {"prediction", 0, false},          {"web_search_options", 0, false},
                {"background", 0, false},  {"conversation", 0, false},        {"prompt", 0, false},
                {"reasoning", 0, false},   {"max_tool_calls", 0, false}};

    for (size_t i = 0; i < RV_COUNT(rows); i++) {
        json_object *value = req_member(body, rows[i].key);
        if (!value || holds_anyway(value, rows[i].neutral, rows[i].has_neutral))
            continue;
        req_enter(q, rows[i].key);
        return req_unsupported(q, "is not supported: leave it out, or say it in the agent's document");
    }
    return 0;
}

static int read_sampling(struct req *q, json_object *body, const char *const *max_keys, size_t n)
{
    struct rv_request *r = q->out;
    bool has = false;

    int rc = refuse_rest(q, body);
    if (rc == 0)
        rc = req_number(q, body, "temperature", &(const struct req_range){.min = 0, .max = 2}, &r->has_temperature,
                        &r->temperature);
    for (size_t i = 0; i < n && rc == 0 && r->max_tokens == 0; i++)
        rc = req_int(q, body, max_keys[i], &(const struct req_int_range){.min = 1, .max = MAX_OUTPUT}, &has,
                     &r->max_tokens);
    if (rc == 0)
        rc = req_int(q, body, "seed", &(const struct req_int_range){.min = INT64_MIN, .max = INT64_MAX}, &r->has_seed,
                     &r->seed);
    if (rc == 0)
        rc = req_text(q, body, "model", &r->model);
    if (rc == 0)
        rc = req_text(q, body, "user", &r->user);
    if (rc == 0)
        rc = req_typed(q, body, "metadata", json_type_object, &r->metadata);
    return rc == 0 ? req_bool(q, body, "stream", &r->stream) : rc;
}

static int role_of(struct req *q, json_object *message, enum req_role *out)
{
    static const struct {
        const char *word;
        enum req_role role;
    } roles[] = {{"user", REQ_USER},
                 {"assistant", REQ_ASSISTANT},
                 {"system", REQ_SYSTEM},
                 {"developer", REQ_SYSTEM},
                 {"tool", REQ_TOOL}};
    const char *word = NULL;

    int rc = req_text(q, message, "role", &word);
    if (rc < 0)
        return rc;
    for (size_t i = 0; word && i < RV_COUNT(roles); i++)
        if (strcmp(roles[i].word, word) == 0) {
            *out = roles[i].role;
            return 0;
        }
    req_enter(q, "role");
    return word ? req_wrong(q, "must be system, developer, user, assistant or tool, and is \"%.40s\"", word)
                : req_wrong(q, "is missing: system, developer, user, assistant or tool");
}

/* --- Chat Completions --- */

static int chat_message(struct req *q, json_object *message, struct req_message *out)
{
    if (!json_object_is_type(message, json_type_object))
        return req_wrong_type(q, message, "an object");
    int rc = role_of(q, message, &out->role);
    if (rc < 0)
        return rc;
    out->content = req_member(message, "content");
    if (!out->content && out->role != REQ_ASSISTANT) {
        req_enter(q, "content");
        return req_wrong(q, "is missing: a text or a list of parts (only an assistant's may be null)");
    }
    if (out->role == REQ_ASSISTANT)
        return req_list(q, message, "tool_calls", RV_REQUEST_MAX_RESULTS, &out->calls);
    if (out->role != REQ_TOOL)
        return 0;
    rc = req_id(q, message, "tool_call_id", &out->call_id);
    if (rc == 0 && !out->call_id) {
        req_enter(q, "tool_call_id");
        return req_wrong(q, "is missing: a message of the role tool names its call");
    }
    return rc;
}

/* Each item becomes a message; then what is new is taken. */
static int read_list(struct req *q, json_object *list, const char *key,
                     int (*each)(struct req *q, json_object *item, struct req_message *out), bool any_end)
{
    struct req_messages m = {.key = key, .n = json_object_array_length(list)};
    int rc = 0;

    if (m.n == 0)
        return 0;
    m.items = calloc(m.n, sizeof *m.items);
    if (!m.items)
        return req_no_memory(q);
    for (size_t i = 0; i < m.n && rc == 0; i++) {
        size_t mark = req_enter(q, key);
        req_enter_at(q, i);
        m.items[i].at = i;
        rc = each(q, json_object_array_get_idx(list, i), &m.items[i]);
        if (rc == 0)
            req_back(q, mark);
    }
    if (rc == 0)
        rc = req_take(q, &m, any_end ? REQ_WITH_HISTORY | REQ_ANY_END : REQ_WITH_HISTORY);
    free(m.items);
    return rc;
}

static int has_something(struct req *q, const char *key)
{
    if (q->out->has_message || q->out->n_results > 0)
        return 0;
    req_enter(q, key);
    return req_wrong(q, "must end with a message of the user, or with results of tools");
}

static int read_n(struct req *q, json_object *body)
{
    int64_t n = 1;
    bool has = false;

    int rc = req_int(q, body, "n", &(const struct req_int_range){.min = 1, .max = INT64_MAX}, &has, &n);
    if (rc < 0 || n == 1)
        return rc;
    req_enter(q, "n");
    return req_unsupported(q, "must be 1: a request has one answer");
}

int req_read_openai(struct req *q, json_object *body)
{
    static const char *const max_keys[] = {"max_completion_tokens", "max_tokens"};
    bool is_remlight = q->out->kind == RV_PROTOCOL_REMLIGHT;
    json_object *list = NULL, *options = NULL, *format = NULL;

    q->out->stream = is_remlight; /* if nothing is said */
    int rc = read_sampling(q, body, max_keys, RV_COUNT(max_keys));
    if (rc == 0)
        rc = read_n(q, body);
    if (rc == 0)
        rc = req_typed(q, body, "stream_options", json_type_object, &options);
    if (rc == 0 && options)
        rc = req_bool(q, options, "include_usage", &q->out->tells_usage);
    if (rc == 0)
        rc = read_tools(q, body, true);
    if (rc == 0)
        rc = req_typed(q, body, "response_format", json_type_object, &format);
    if (rc == 0 && format) {
        size_t mark = req_enter(q, "response_format");
        rc = read_format(q, format, "json_schema");
        if (rc == 0)
            req_back(q, mark);
    }
    if (rc == 0)
        rc = req_list(q, body, "messages", RV_REQUEST_MAX_MESSAGES, &list);
    if (rc < 0)
        return rc;
    if (!list) {
        req_enter(q, "messages");
        return req_wrong(q, "is missing: a list of {role, content}");
    }
    rc = read_list(q, list, "messages", chat_message, is_remlight);
    return rc == 0 ? has_something(q, "messages") : rc;
}

/* --- Responses --- */

static int call_item(struct req *q, json_object *item, struct req_message *out, bool is_result)
{
    int rc = req_id(q, item, "call_id", &out->call_id);

    if (rc < 0)
        return rc;
    if (!out->call_id) {
        req_enter(q, "call_id");
        return req_wrong(q, "is missing: it names the call");
    }
    if (is_result) {
        out->role = REQ_TOOL;
        out->content = req_member(item, "output");
        return 0;
    }
    out->role = REQ_ASSISTANT;
    rc = req_text(q, item, "name", &out->name);
    return rc == 0 ? req_text(q, item, "arguments", &out->arguments) : rc;
}

static int item(struct req *q, json_object *value, struct req_message *out)
{
    const char *type = NULL;

    if (!json_object_is_type(value, json_type_object))
        return req_wrong_type(q, value, "an object");
    int rc = req_text(q, value, "type", &type);
    if (rc < 0)
        return rc;
    if (type && strcmp(type, "function_call") == 0)
        return call_item(q, value, out, false);
    if (type && strcmp(type, "function_call_output") == 0)
        return call_item(q, value, out, true);
    out->role = REQ_OTHER;
    if (type && strcmp(type, "message") != 0) /* reasoning, references: of answers that are kept elsewhere */
        return 0;
    rc = role_of(q, value, &out->role);
    if (rc == 0)
        rc = req_id(q, value, "id", &out->id);
    out->content = req_member(value, "content");
    return rc;
}

static int read_input(struct req *q, json_object *body)
{
    json_object *input = req_member(body, "input"), *list = NULL;
    struct req_message one = {.role = REQ_USER, .content = input};
    const struct req_messages m = {.key = "input", .items = &one, .n = 1, .is_string = true};

    if (!input) {
        req_enter(q, "input");
        return req_wrong(q, "is missing: a text or a list of items");
    }
    if (json_object_is_type(input, json_type_string))
        return req_take(q, &m, 0);
    int rc = req_list(q, body, "input", RV_REQUEST_MAX_MESSAGES, &list);
    if (rc == 0)
        rc = read_list(q, list, "input", item, false);
    return rc == 0 ? has_something(q, "input") : rc;
}

int req_read_responses(struct req *q, json_object *body)
{
    static const char *const max_keys[] = {"max_output_tokens"};
    json_object *text = NULL, *format = NULL;
    const char *instructions = NULL;

    int rc = read_sampling(q, body, max_keys, RV_COUNT(max_keys));
    if (rc == 0)
        rc = read_tools(q, body, false);
    if (rc == 0)
        rc = req_id(q, body, "previous_response_id", &q->out->previous_response_id);
    if (rc == 0)
        rc = req_text(q, body, "instructions", &instructions);
    if (rc == 0)
        rc = req_typed(q, body, "text", json_type_object, &text);
    if (rc == 0 && text) {
        size_t mark = req_enter(q, "text");
        rc = req_typed(q, text, "format", json_type_object, &format);
        req_enter(q, "format");
        if (rc == 0 && format)
            rc = read_format(q, format, NULL);
        if (rc == 0)
            req_back(q, mark);
    }
    if (rc == 0 && instructions) {
        rv_buf_puts(&q->out->system, instructions);
        rc = rv_buf_check(&q->out->system, "instructions", q->err);
    }
    return rc == 0 ? read_input(q, body) : rc;
}
