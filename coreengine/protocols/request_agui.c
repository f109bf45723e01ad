/* The body of AG-UI: RunAgentInput. Ids may be written as camelCase or snake_case, and every member may be missing, as
 * older servers took it so. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/protocols/requests_internal.h"

static int id_of(struct req *q, json_object *body, const char *camel, const char *snake, const char **out)
{
    int rc = req_id(q, body, camel, out);

    return rc == 0 && !*out ? req_id(q, body, snake, out) : rc;
}

/* --- messages --- */

static int role_of(struct req *q, json_object *message, enum req_role *out)
{
    static const struct {
        const char *word;
        enum req_role role;
    } roles[] = {{"user", REQ_USER}, {"assistant", REQ_ASSISTANT}, {"system", REQ_SYSTEM},  {"developer", REQ_SYSTEM},
                 {"tool", REQ_TOOL}, {"activity", REQ_OTHER},      {"reasoning", REQ_OTHER}};
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
    return req_wrong(q, "must be user, assistant, system, developer, tool, activity or reasoning%s%.40s%s",
                     word ? ", and is \"" : "", word ? word : "", word ? "\"" : "");
}

static int read_message(struct req *q, json_object *message, struct req_message *out)
{
    if (!json_object_is_type(message, json_type_object))
        return req_wrong_type(q, message, "an object");
    int rc = role_of(q, message, &out->role);
    if (rc == 0)
        rc = req_id(q, message, "id", &out->id);
    if (rc < 0)
        return rc;
    if (!out->id) {
        req_enter(q, "id");
        return req_wrong(q, "is missing: each message has an id");
    }
    out->content = req_member(message, "content");
    if (out->role != REQ_TOOL)
        return 0;
    rc = id_of(q, message, "toolCallId", "tool_call_id", &out->call_id);
    if (rc == 0)
        rc = req_text(q, message, "error", &out->error);
    if (rc == 0 && !out->call_id) {
        req_enter(q, "toolCallId");
        return req_wrong(q, "is missing: a message of the role tool names its call");
    }
    return rc;
}

static int read_messages(struct req *q, json_object *body)
{
    struct req_messages m = {.key = "messages"};
    json_object *list = NULL;

    int rc = req_list(q, body, "messages", RV_REQUEST_MAX_MESSAGES, &list);
    m.n = rc == 0 && list ? json_object_array_length(list) : 0;
    if (m.n == 0)
        return rc;
    m.items = calloc(m.n, sizeof *m.items);
    if (!m.items)
        return req_no_memory(q);
    for (size_t i = 0; i < m.n && rc == 0; i++) {
        size_t mark = req_enter(q, m.key);
        req_enter_at(q, i);
        m.items[i].at = i;
        rc = read_message(q, json_object_array_get_idx(list, i), &m.items[i]);
        if (rc == 0)
            req_back(q, mark);
    }
    if (rc == 0)
        rc = req_take(q, &m, 0);
    free(m.items);
    return rc;
}

/* --- answers --- */

/* The same answer as the engine takes it: a text, true or false, or an object of its parts. */
static int read_payload(struct req *q, json_object *payload, struct rv_response *out)
{
    const char *text = NULL, *decision = NULL, *choice = NULL;

    if (json_object_is_type(payload, json_type_string))
        out->text = rv_json_str(payload);
    if (json_object_is_type(payload, json_type_boolean)) {
        out->has_approved = true;
        out->approved = json_object_get_boolean(payload);
    }
    if (!json_object_is_type(payload, json_type_object))
        return 0;
    out->has_approved = req_member(payload, "approved") != NULL;
    int rc = req_bool(q, payload, "approved", &out->approved);
    if (rc == 0)
        rc = req_text(q, payload, "text", &text);
    if (rc == 0 && !text)
        rc = req_text(q, payload, "message", &text);
    if (rc == 0 && !text)
        rc = req_text(q, payload, "reason", &text);
    if (rc == 0)
        rc = req_text(q, payload, "decision", &decision);
    if (rc == 0)
        rc = req_text(q, payload, "choice", &choice);
    if (rc == 0)
        rc = req_typed(q, payload, "arguments", json_type_object, &out->arguments);
    out->text = rv_str_of(text);
    out->decision = rv_str_of(decision);
    out->choice = rv_str_of(choice);
    out->data = req_member(payload, "data");
    return rc;
}

static int read_status(struct req *q, json_object *item, bool *is_cancelled)
{
    const char *status = NULL;

    int rc = req_text(q, item, "status", &status);
    if (rc < 0)
        return rc;
    *is_cancelled = status && strcmp(status, "cancelled") == 0;
    if (*is_cancelled || (status && strcmp(status, "resolved") == 0))
        return 0;
    req_enter(q, "status");
    return req_wrong(q, "must be \"resolved\" or \"cancelled\"");
}

static int read_answer(struct req *q, json_object *item, struct rv_request_answer *out)
{
    if (!json_object_is_type(item, json_type_object))
        return req_wrong_type(q, item, "an object");
    int rc = id_of(q, item, "interruptId", "interrupt_id", &out->interrupt_id);
    if (rc == 0)
        rc = read_status(q, item, &out->is_cancelled);
    if (rc < 0)
        return rc;
    if (!out->interrupt_id) {
        req_enter(q, "interruptId");
        return req_wrong(q, "is missing: an answer names its question");
    }
    for (size_t i = 0; i < q->out->n_answers; i++)
        if (strcmp(q->out->answers[i].interrupt_id, out->interrupt_id) == 0) {
            req_enter(q, "interruptId");
            return req_wrong(q, "the question \"%.80s\" has two answers", out->interrupt_id);
        }
    out->payload = req_member(item, "payload");
    out->response.interrupt_id = rv_str_of(out->interrupt_id);
    out->response.cancelled = out->is_cancelled;
    if (out->is_cancelled)
        return 0;
    size_t mark = req_enter(q, "payload");
    rc = read_payload(q, out->payload, &out->response);
    if (rc == 0)
        req_back(q, mark);
    return rc;
}

static int read_answers(struct req *q, json_object *body)
{
    json_object *list = NULL;

    int rc = req_list(q, body, "resume", RV_REQUEST_MAX_ANSWERS, &list);
    size_t n = rc == 0 && list ? json_object_array_length(list) : 0;
    if (n == 0)
        return rc;
    q->out->answers = calloc(n, sizeof *q->out->answers);
    if (!q->out->answers)
        return req_no_memory(q);
    for (size_t i = 0; i < n && rc == 0; i++) {
        size_t mark = req_enter(q, "resume");
        req_enter_at(q, i);
        rc = read_answer(q, json_object_array_get_idx(list, i), &q->out->answers[i]);
        q->out->n_answers += rc == 0;
        if (rc == 0)
            req_back(q, mark);
    }
    return rc;
}

/* --- the whole --- */

static int read_tools(struct req *q, json_object *body)
{
    json_object *list = NULL;

    int rc = req_list(q, body, "tools", RV_REQUEST_MAX_TOOLS, &list);
    for (size_t i = 0; rc == 0 && list && i < json_object_array_length(list); i++) {
        json_object *item = json_object_array_get_idx(list, i);
        size_t mark = req_enter(q, "tools");
        req_enter_at(q, i);
        rc = json_object_is_type(item, json_type_object) ? req_tool(q, item, "name")
                                                         : req_wrong_type(q, item, "an object");
        if (rc == 0)
            req_back(q, mark);
    }
    return rc;
}

int req_read_agui(struct req *q, json_object *body)
{
    struct rv_request *r = q->out;

    int rc = id_of(q, body, "threadId", "thread_id", &r->thread_id);
    if (rc == 0)
        rc = id_of(q, body, "runId", "run_id", &r->run_id);
    if (rc == 0)
        rc = id_of(q, body, "parentRunId", "parent_run_id", &r->parent_run_id);
    if (rc == 0)
        rc = req_id(q, body, "protocolVersion", &r->protocol_version);
    if (rc == 0)
        rc = read_messages(q, body);
    if (rc == 0)
        rc = read_tools(q, body);
    if (rc == 0)
        rc = read_answers(q, body);
    if (rc == 0)
        rc = req_list(q, body, "context", RV_REQUEST_MAX_MESSAGES, &r->context);
    r->kind = r->protocol_version ? RV_PROTOCOL_AGUI : RV_PROTOCOL_AGUI_OLD;
    r->state = req_member(body, "state");
    r->forwarded = req_member(body, "forwardedProps");
    r->stream = true;
    return rc;
}
