/* AG-UI 1.0: messages, reasoning, tool calls, steps and subagents, each opened and closed once; and what the older form
 * (agui_old.c) shares with it. Optional members are left out, never null: clients refuse a null. */
#include <string.h>

#include "coreengine/protocols/protocols_internal.h"

#define VERSION "1.0"

/* --- shared with the older form --- */

void proto_agui_event(rv_protocol *p, const char *type)
{
    proto_block(p, NULL);
    rv_jw_obj(&p->w);
    rv_jw_kv_text(&p->w, "type", type);
    if (p->now_us > 0)
        rv_jw_kv_int(&p->w, "timestamp", p->now_us / RV_US_PER_MS);
}

void proto_agui_event_end(rv_protocol *p)
{
    rv_jw_obj_end(&p->w);
    proto_block_end(p);
}

const char *proto_agui_message(const rv_protocol *p, const struct proto_owner *by, const char *kind, int n,
                               char out[PROTO_MAX_MESSAGE_ID])
{
    int len = snprintf(out, PROTO_MAX_MESSAGE_ID, "%.300s-%lld", p->opts.run_id, (long long)by->reply);

    if (len > 0 && (n > 1 || kind[0]))
        snprintf(out + len, PROTO_MAX_MESSAGE_ID - (size_t)len, "-%s%d", kind, n);
    return out;
}

void proto_agui_begin(rv_protocol *p)
{
    bool is_new = p->opts.kind == RV_PROTOCOL_AGUI;

    proto_agui_event(p, "RUN_STARTED");
    rv_jw_kv_text(&p->w, "threadId", p->opts.session_id);
    rv_jw_kv_text(&p->w, "runId", p->opts.client_run_id ? p->opts.client_run_id : p->opts.run_id);
    if (is_new) {
        rv_jw_kv_text(&p->w, "protocolVersion", VERSION);
        proto_kv_opt(p, "parentRunId", p->opts.parent_run_id);
    }
    proto_agui_event_end(p);
}

void proto_agui_over(rv_protocol *p, const char *type)
{
    proto_agui_event(p, type);
    rv_jw_kv_text(&p->w, "threadId", p->opts.session_id);
    rv_jw_kv_text(&p->w, "runId", p->opts.client_run_id ? p->opts.client_run_id : p->opts.run_id);
}

void proto_agui_answer(rv_protocol *p, const struct rv_protocol_end *end)
{
    rv_str text = end->text;
    char id[PROTO_MAX_MESSAGE_ID];

    for (size_t i = 0; i < p->n_owners; i++)
        if (!p->owners[i]->asked_by && p->owners[i]->has_said)
            return;
    if (proto_was_said(p, text))
        return;
    snprintf(id, sizeof id, "%.300s-answer", p->opts.run_id);
    proto_agui_event(p, "TEXT_MESSAGE_START");
    rv_jw_kv_text(&p->w, "messageId", id);
    rv_jw_kv_text(&p->w, "role", "assistant");
    proto_agui_event_end(p);
    while (text.len > 0) {
        rv_str part = rv_utf8_cut(text, RV_PROTOCOL_MAX_TEXT);
        part = part.len > 0 ? part : text;
        proto_agui_event(p, "TEXT_MESSAGE_CONTENT");
        rv_jw_kv_text(&p->w, "messageId", id);
        rv_jw_kv_str(&p->w, "delta", part);
        proto_agui_event_end(p);
        text = (rv_str){text.ptr + part.len, text.len - part.len};
    }
    proto_agui_event(p, "TEXT_MESSAGE_END");
    rv_jw_kv_text(&p->w, "messageId", id);
    proto_agui_event_end(p);
}

void proto_agui_result_head(rv_protocol *p, struct proto_call *c, rv_str result)
{
    rv_buf text = RV_BUF_INIT(RV_PROTOCOL_MAX_OUT);
    char id[PROTO_MAX_MESSAGE_ID];

    proto_value_text(result, &text);
    proto_keep(p, &text);
    snprintf(id, sizeof id, "%.200s-%.250s-result", p->opts.run_id, c->shown);
    proto_agui_event(p, "TOOL_CALL_RESULT");
    rv_jw_kv_text(&p->w, "messageId", id);
    rv_jw_kv_text(&p->w, "toolCallId", c->shown);
    rv_jw_kv_str(&p->w, "content", rv_buf_str(&text));
    rv_jw_kv_text(&p->w, "role", "tool");
    rv_buf_fini(&text);
}

static void copy_text(rv_protocol *p, json_object *event, const char *key)
{
    proto_kv_opt(p, key, proto_member(event, key));
}

static void tag(rv_protocol *p, const struct proto_owner *by)
{
    if (by->asked_by && p->opts.kind == RV_PROTOCOL_AGUI)
        rv_jw_kv_text(&p->w, "subagentRunId", by->run);
}

void proto_agui_action(rv_protocol *p, struct proto_owner *by, json_object *event)
{
    json_object *payload = rv_json_get_obj(event, "payload");

    proto_agui_event(p, "CUSTOM");
    rv_jw_kv_text(&p->w, "name", "action");
    rv_jw_key(&p->w, "value");
    rv_jw_obj(&p->w);
    copy_text(p, event, "action_type");
    rv_jw_key(&p->w, "payload");
    if (payload)
        rv_jw_value(&p->w, payload);
    else
        rv_jw_raw(&p->w, RV_STR_LIT("{}"));
    copy_text(p, event, "tool");
    copy_text(p, event, "tool_call_id");
    copy_text(p, event, "parent_tool_call_id");
    rv_jw_obj_end(&p->w);
    tag(p, by);
    proto_agui_event_end(p);
}

void proto_agui_custom(rv_protocol *p, struct proto_owner *by, json_object *event)
{
    const char *name = proto_member(event, "name");
    json_object *data = NULL;

    json_object_object_get_ex(event, "data", &data);
    proto_agui_event(p, "CUSTOM");
    rv_jw_kv_text(&p->w, "name", name ? name : "custom");
    rv_jw_key(&p->w, "value");
    rv_jw_obj(&p->w);
    copy_text(p, event, "capability");
    rv_jw_kv_value(&p->w, "data", data);
    rv_jw_obj_end(&p->w);
    tag(p, by);
    proto_agui_event_end(p);
}

/* --- questions --- */

/* What an answer has to be, as a JSON Schema. */
static void write_schema(rv_protocol *p, const char *kind, json_object *data)
{
    json_object *options = rv_json_get_arr(data, RV_ASK_OPTIONS);
    bool outcome =
        data && proto_member(data, "reason") && strcmp(proto_member(data, "reason"), RV_OUTCOME_UNKNOWN) == 0;
    json_object *form = data && proto_member(data, "reason") && strcmp(proto_member(data, "reason"), RV_TOOL_INPUT) == 0
                            ? rv_json_get_obj(data, "schema")
                            : NULL;

    rv_jw_key(&p->w, "responseSchema");
    if (options) {
        rv_jw_raw(&p->w, RV_STR_LIT("{\"type\":\"object\",\"properties\":{\"choice\":{\"enum\":"));
        rv_jw_value(&p->w, options);
        rv_buf_puts(p->out, "},\"text\":{\"type\":\"string\"}},\"required\":[\"choice\"]}");
        p->w.comma = true;
        return;
    }
    if (form) {
        rv_jw_raw(&p->w,
                  RV_STR_LIT("{\"type\":\"object\",\"properties\":{\"decision\":{\"enum\":[\"accept\",\"decline\","
                             "\"cancel\"]},\"data\":"));
        rv_jw_value(&p->w, form);
        rv_buf_puts(p->out, "},\"required\":[\"decision\"]}");
        p->w.comma = true;
        return;
    }
    rv_jw_raw(&p->w,
              rv_str_of(strcmp(kind, "confirmation") == 0
                            ? "{\"type\":\"object\",\"properties\":{\"approved\":{\"type\":\"boolean\"},\"text\":{"
                              "\"type\":\"string\"},\"arguments\":{\"type\":\"object\"}},\"required\":["
                              "\"approved\"]}"
                        : outcome ? "{\"type\":\"object\",\"properties\":{\"decision\":{\"enum\":[\"happened\","
                                    "\"not_happened\",\"fail\"]},\"data\":{}},\"required\":[\"decision\"]}"
                        : strcmp(kind, "agent_review") == 0
                            ? "{\"type\":\"object\",\"properties\":{\"decision\":{\"enum\":[\"approve\","
                              "\"reject\",\"modify\"]},\"text\":{\"type\":\"string\"},\"data\":{}},\"required\":"
                              "[\"decision\"]}"
                        : strcmp(kind, "clarification") == 0
                            ? "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}},"
                              "\"required\":[\"text\"]}"
                            : "{\"type\":\"object\"}"));
}

static const char *shown_call(const rv_protocol *p, json_object *data)
{
    const char *id = data ? proto_member(data, "step_id") : NULL;

    for (size_t i = p->n_calls; id && i-- > 0;)
        if (strcmp(p->calls[i]->id, id) == 0)
            return p->calls[i]->shown;
    return NULL;
}

void proto_agui_interrupt(rv_protocol *p, const struct proto_question *q)
{
    const char *kind = proto_member(q->body, "kind"), *text = proto_member(q->body, "question");
    json_object *data = rv_json_get_obj(q->body, "data");

    kind = kind ? kind : "question";
    rv_jw_obj(&p->w);
    rv_jw_kv_text(&p->w, "id", q->id);
    rv_jw_kv_text(&p->w, "reason", kind);
    proto_kv_opt(p, "message", text ? text : proto_member(q->body, "message"));
    proto_kv_opt(p, "toolCallId", shown_call(p, data));
    write_schema(p, kind, data);
    proto_kv_opt(p, "expiresAt", proto_member(q->body, "expires_at"));
    if (data) {
        rv_jw_key(&p->w, "metadata");
        rv_jw_obj(&p->w);
        copy_text(p, q->body, "stage");
        rv_jw_kv_value(&p->w, "data", data);
        rv_jw_obj_end(&p->w);
    }
    rv_jw_obj_end(&p->w);
}

/* --- 1.0 --- */

static void begin(rv_protocol *p)
{
    proto_agui_begin(p);
}

/* An agent that was asked is told of before anything of its own, those that asked it before it. */
static void agent_begins(rv_protocol *p, struct proto_owner *who)
{
    if (!who->asked_by || who->is_told)
        return;
    if (who->parent)
        agent_begins(p, who->parent);
    who->is_told = true;
    proto_agui_event(p, "SUBAGENT_STARTED");
    rv_jw_kv_text(&p->w, "subagentRunId", who->run);
    rv_jw_kv_text(&p->w, "name", who->origin.agent);
    if (who->parent && who->parent->asked_by)
        rv_jw_kv_text(&p->w, "parentSubagentRunId", who->parent->run);
    rv_jw_kv_text(&p->w, "parentToolCallId", who->call);
    proto_agui_event_end(p);
}

static void message(rv_protocol *p, struct proto_owner *by, const char *type, const char *kind, int n)
{
    char id[PROTO_MAX_MESSAGE_ID];

    proto_agui_event(p, type);
    rv_jw_kv_text(&p->w, "messageId", proto_agui_message(p, by, kind, n, id));
}

static void close_text(rv_protocol *p, struct proto_owner *by)
{
    if (!by->text_open)
        return;
    by->text_open = false;
    message(p, by, "TEXT_MESSAGE_END", "", by->n_texts);
    tag(p, by);
    proto_agui_event_end(p);
}

static void close_thought(rv_protocol *p, struct proto_owner *by)
{
    static const char *const types[] = {"REASONING_MESSAGE_END", "REASONING_END"};

    if (!by->thought_open)
        return;
    by->thought_open = false;
    for (size_t i = 0; i < RV_COUNT(types); i++) {
        message(p, by, types[i], "r", by->n_thoughts);
        tag(p, by);
        proto_agui_event_end(p);
    }
}

static void text(rv_protocol *p, struct proto_owner *by, rv_str words)
{
    bool begins = !by->text_open;

    agent_begins(p, by);
    close_thought(p, by);
    if (begins) {
        by->text_open = true;
        by->n_texts++;
        message(p, by, "TEXT_MESSAGE_START", "", by->n_texts);
        rv_jw_kv_text(&p->w, "role", "assistant");
        if (by->asked_by)
            rv_jw_kv_text(&p->w, "name", by->origin.agent);
        tag(p, by);
        proto_agui_event_end(p);
    }
    message(p, by, "TEXT_MESSAGE_CONTENT", "", by->n_texts);
    rv_jw_kv_str(&p->w, "delta", words);
    tag(p, by);
    proto_agui_event_end(p);
    proto_said(p, words, begins);
}

static void thought(rv_protocol *p, struct proto_owner *by, rv_str words)
{
    static const char *const types[] = {"REASONING_START", "REASONING_MESSAGE_START"};

    agent_begins(p, by);
    close_text(p, by);
    if (!by->thought_open) {
        by->thought_open = true;
        by->n_thoughts++;
        for (size_t i = 0; i < RV_COUNT(types); i++) {
            message(p, by, types[i], "r", by->n_thoughts);
            if (i == 1)
                rv_jw_kv_text(&p->w, "role", "reasoning");
            tag(p, by);
            proto_agui_event_end(p);
        }
    }
    message(p, by, "REASONING_MESSAGE_CONTENT", "r", by->n_thoughts);
    rv_jw_kv_str(&p->w, "delta", words);
    tag(p, by);
    proto_agui_event_end(p);
}

static void reply_over(rv_protocol *p, struct proto_owner *by, bool failed)
{
    (void)failed;
    close_thought(p, by);
    close_text(p, by);
}

static void call(rv_protocol *p, const struct proto_call *c, const char *type)
{
    proto_agui_event(p, type);
    rv_jw_kv_text(&p->w, "toolCallId", c->shown);
}

static void call_begins(rv_protocol *p, struct proto_call *c)
{
    char id[PROTO_MAX_MESSAGE_ID];

    agent_begins(p, c->by);
    reply_over(p, c->by, false);
    call(p, c, "TOOL_CALL_START");
    rv_jw_kv_text(&p->w, "toolCallName", c->name);
    if (c->by->reply > 0)
        rv_jw_kv_text(&p->w, "parentMessageId",
                      proto_agui_message(p, c->by, "", c->by->n_texts > 0 ? c->by->n_texts : 1, id));
    tag(p, c->by);
    proto_agui_event_end(p);
}

static void call_arguments(rv_protocol *p, struct proto_call *c, rv_str words)
{
    call(p, c, "TOOL_CALL_ARGS");
    rv_jw_kv_str(&p->w, "delta", words);
    tag(p, c->by);
    proto_agui_event_end(p);
}

static void call_complete(rv_protocol *p, struct proto_call *c)
{
    call(p, c, "TOOL_CALL_END");
    tag(p, c->by);
    proto_agui_event_end(p);
}

static void call_result(rv_protocol *p, struct proto_call *c, rv_str result, json_object *event)
{
    (void)event;
    agent_begins(p, c->by);
    proto_agui_result_head(p, c, result);
    tag(p, c->by);
    proto_agui_event_end(p);
}

/* Its text came as a piece: that is complete now. */
static void output(rv_protocol *p, struct proto_owner *by, json_object *event)
{
    (void)event;
    reply_over(p, by, false);
}

static void agent_over(rv_protocol *p, struct proto_owner *who, json_object *event)
{
    const char *status = event ? proto_member(event, "status") : NULL;
    json_object *value = NULL;

    agent_begins(p, who);
    reply_over(p, who, false);
    if (!event || (status && strcmp(status, "error") == 0)) {
        const char *error = event ? proto_member(event, "error") : NULL;
        proto_agui_event(p, "SUBAGENT_ERROR");
        rv_jw_kv_text(&p->w, "subagentRunId", who->run);
        rv_jw_kv_text(&p->w, "message", error ? error : "the agent was given up");
        proto_kv_opt(p, "code", event ? proto_member(event, "code") : NULL);
    } else {
        proto_agui_event(p, "SUBAGENT_FINISHED");
        rv_jw_kv_text(&p->w, "subagentRunId", who->run);
        if (!who->has_said && json_object_object_get_ex(event, "output", &value) && value)
            rv_jw_kv_value(&p->w, "result", value);
        rv_jw_key(&p->w, "outcome");
        rv_jw_raw(&p->w, RV_STR_LIT("{\"type\":\"success\"}"));
    }
    proto_agui_event_end(p);
}

static void step(rv_protocol *p, const char *type, const char *name)
{
    proto_agui_event(p, type);
    rv_jw_kv_text(&p->w, "stepName", name);
    proto_agui_event_end(p);
}

/* Of visits to one stage that are under way side by side only the first has the stage's own name. */
static const char *step_name(rv_protocol *p, const char *stage)
{
    for (size_t i = 0; i < p->n_owners; i++)
        if (p->owners[i]->step && strcmp(p->owners[i]->step, stage) == 0)
            return proto_name(p, stage);
    const char *name = rv_arena_dup(p->room, rv_str_of(stage));
    if (!name && p->rc == 0)
        p->rc = RV_E_NOMEM;
    return name;
}

static void stage(rv_protocol *p, struct proto_owner *root, const char *name, bool begins)
{
    if (!p->opts.tells_steps)
        return;
    if (begins && !root->step) {
        root->step = step_name(p, name);
        if (root->step)
            step(p, "STEP_STARTED", root->step);
    } else if (!begins) {
        reply_over(p, root, false);
        if (root->step)
            step(p, "STEP_FINISHED", root->step);
        root->step = NULL;
    }
}

static void question(rv_protocol *p, const struct proto_question *q)
{
    (void)p; /* told at the end, when the run waits */
    (void)q;
}

/* --- the end --- */

static void suspend(rv_protocol *p, const struct proto_owner *who)
{
    proto_agui_event(p, "SUBAGENT_FINISHED");
    rv_jw_kv_text(&p->w, "subagentRunId", who->run);
    rv_jw_key(&p->w, "outcome");
    rv_jw_raw(&p->w, RV_STR_LIT("{\"type\":\"suspended\"}"));
    proto_agui_event_end(p);
}

static void close_all(rv_protocol *p, bool waits)
{
    for (size_t i = p->n_owners; i-- > 0;) {
        struct proto_owner *o = p->owners[i];
        reply_over(p, o, false);
        if (o->asked_by && o->is_told && !o->is_over) {
            if (waits)
                suspend(p, o);
            else
                agent_over(p, o, NULL);
        }
        if (o->step)
            step(p, "STEP_FINISHED", o->step);
        o->step = NULL;
    }
}

static void write_usage(rv_protocol *p)
{
    if (p->n_usage == 0)
        return;
    rv_jw_key(&p->w, "usage");
    rv_jw_arr(&p->w);
    for (size_t i = 0; i < p->n_usage; i++) {
        const struct rv_usage *u = &p->usage[i].usage;
        rv_jw_obj(&p->w);
        proto_kv_opt(p, "model", p->usage[i].model);
        rv_jw_kv_int(&p->w, "inputTokens", u->input_tokens);
        rv_jw_kv_int(&p->w, "outputTokens", u->output_tokens);
        rv_jw_kv_int(&p->w, "totalTokens", u->input_tokens + u->output_tokens);
        if (u->reasoning_tokens > 0)
            rv_jw_kv_int(&p->w, "reasoningTokens", u->reasoning_tokens);
        if (u->cached_tokens > 0)
            rv_jw_kv_int(&p->w, "cachedInputTokens", u->cached_tokens);
        rv_jw_obj_end(&p->w);
    }
    rv_jw_arr_end(&p->w);
}

/* The calls that the client makes: the next request has their results. */
static void write_pending(rv_protocol *p)
{
    bool any = false;

    for (size_t i = 0; i < p->n_calls; i++) {
        if (!p->calls[i]->is_client)
            continue;
        if (!any) {
            rv_jw_key(&p->w, "pendingToolCallIds");
            rv_jw_arr(&p->w);
        }
        any = true;
        rv_jw_text(&p->w, p->calls[i]->shown);
    }
    if (any)
        rv_jw_arr_end(&p->w);
}

static void write_outcome(rv_protocol *p, const struct rv_protocol_end *end)
{
    bool waits = end->status == RV_RUN_INTERRUPTED && p->n_questions > 0;

    rv_jw_key(&p->w, "outcome");
    rv_jw_obj(&p->w);
    rv_jw_kv_text(&p->w, "type", end->status == RV_RUN_CANCELLED ? "cancelled" : waits ? "interrupt" : "success");
    if (waits) {
        rv_jw_key(&p->w, "interrupts");
        rv_jw_arr(&p->w);
        for (size_t i = 0; i < p->n_questions; i++)
            proto_agui_interrupt(p, &p->questions[i]);
        rv_jw_arr_end(&p->w);
    } else if (end->status != RV_RUN_CANCELLED) {
        write_pending(p);
    }
    rv_jw_obj_end(&p->w);
}

static void run_error(rv_protocol *p, const struct rv_protocol_end *end)
{
    proto_agui_event(p, "RUN_ERROR");
    rv_jw_kv_text(&p->w, "message", proto_end_message(end));
    rv_jw_kv_text(&p->w, "code", proto_end_code(end));
    write_usage(p);
    proto_agui_event_end(p);
}

static void end_run(rv_protocol *p, const struct rv_protocol_end *end)
{
    if (p->is_broken || !p->has_begun) {
        run_error(p, end);
        return;
    }
    close_all(p, end->status == RV_RUN_INTERRUPTED);
    proto_agui_answer(p, end);
    if (proto_end_is_error(end) && end->status != RV_RUN_CANCELLED) {
        run_error(p, end);
        return;
    }
    proto_agui_over(p, "RUN_FINISHED");
    if (end->output)
        rv_jw_kv_value(&p->w, "result", end->output);
    write_outcome(p, end);
    write_usage(p);
    proto_agui_event_end(p);
}

const struct proto_ops proto_agui = {
    .begin = begin,
    .text = text,
    .thought = thought,
    .reply_over = reply_over,
    .call_begins = call_begins,
    .call_arguments = call_arguments,
    .call_complete = call_complete,
    .call_result = call_result,
    .output = output,
    .agent_begins = agent_begins,
    .agent_over = agent_over,
    .stage = stage,
    .action = proto_agui_action,
    .custom = proto_agui_custom,
    .question = question,
    .end = end_run,
};
