/* AG-UI as clients before 1.0 know it: reasoning is THINKING_*, what an asked agent says and calls is CUSTOM events
 * within the call by which it was asked, each with the id of that call, its depth and its run. A call is told once, by
 * one START and one END. */
#include <string.h>

#include "coreengine/protocols/protocols_internal.h"

static void plain(rv_protocol *p, const char *type)
{
    proto_agui_event(p, type);
    proto_agui_event_end(p);
}

static void message(rv_protocol *p, struct proto_owner *by, const char *type)
{
    char id[PROTO_MAX_MESSAGE_ID];

    proto_agui_event(p, type);
    rv_jw_kv_text(&p->w, "messageId", proto_agui_message(p, by, "", by->n_texts, id));
}

static void close_parts(rv_protocol *p, struct proto_owner *by)
{
    if (by->asked_by) { /* its pieces need no end */
        by->text_open = false;
        return;
    }
    if (by->thought_open) {
        plain(p, "THINKING_TEXT_MESSAGE_END");
        plain(p, "THINKING_END");
    }
    if (by->text_open) {
        message(p, by, "TEXT_MESSAGE_END");
        proto_agui_event_end(p);
    }
    by->thought_open = by->text_open = false;
}

/* An item of an asked agent; left open for its own members. Without a time, as these events never had one. */
static void item(rv_protocol *p, const struct proto_owner *by, const char *type)
{
    proto_block(p, NULL);
    rv_jw_obj(&p->w);
    rv_jw_kv_text(&p->w, "type", "CUSTOM");
    rv_jw_kv_text(&p->w, "name", type);
    rv_jw_key(&p->w, "value");
    rv_jw_obj(&p->w);
    rv_jw_kv_text(&p->w, "type", type);
    rv_jw_kv_text(&p->w, "agent_name", by->origin.agent);
}

static void item_end(rv_protocol *p, const struct proto_owner *by)
{
    rv_jw_kv_text(&p->w, "parent_tool_call_id", by->call);
    rv_jw_kv_int(&p->w, "depth", by->origin.depth);
    rv_jw_kv_text(&p->w, "run_id", by->run);
    rv_jw_obj_end(&p->w);
    rv_jw_obj_end(&p->w);
    proto_block_end(p);
}

static void text(rv_protocol *p, struct proto_owner *by, rv_str words)
{
    bool begins = !by->text_open;

    if (by->is_late) { /* an object is handed over by a call: see output() */
        by->has_said = false;
        return;
    }
    proto_said(p, words, begins);
    if (by->asked_by) {
        by->text_open = true;
        item(p, by, "child_content");
        rv_jw_kv_str(&p->w, "content", words);
        item_end(p, by);
        return;
    }
    if (by->thought_open)
        close_parts(p, by);
    if (begins) {
        by->text_open = true;
        by->n_texts++;
        message(p, by, "TEXT_MESSAGE_START");
        rv_jw_kv_text(&p->w, "role", "assistant");
        proto_agui_event_end(p);
    }
    message(p, by, "TEXT_MESSAGE_CONTENT");
    rv_jw_kv_str(&p->w, "delta", words);
    proto_agui_event_end(p);
}

static bool thinks_elsewhere(const rv_protocol *p, const struct proto_owner *by)
{
    for (size_t i = 0; i < p->n_owners; i++)
        if (p->owners[i]->thought_open && p->owners[i] != by)
            return true;
    return false;
}

/* These events name no message: only one agent at a time can think aloud. */
static void thought(rv_protocol *p, struct proto_owner *by, rv_str words)
{
    if (by->asked_by || thinks_elsewhere(p, by))
        return;
    if (!by->thought_open) {
        close_parts(p, by);
        by->thought_open = true;
        plain(p, "THINKING_START");
        plain(p, "THINKING_TEXT_MESSAGE_START");
    }
    proto_agui_event(p, "THINKING_TEXT_MESSAGE_CONTENT");
    rv_jw_kv_str(&p->w, "delta", words);
    proto_agui_event_end(p);
}

static void reply_over(rv_protocol *p, struct proto_owner *by, bool failed)
{
    (void)failed;
    close_parts(p, by);
}

static void call(rv_protocol *p, const struct proto_call *c, const char *type)
{
    proto_agui_event(p, type);
    rv_jw_kv_text(&p->w, "toolCallId", c->shown);
}

static void call_begins(rv_protocol *p, struct proto_call *c)
{
    char id[PROTO_MAX_MESSAGE_ID];

    if (c->by->asked_by)
        return;
    close_parts(p, c->by);
    call(p, c, "TOOL_CALL_START");
    rv_jw_kv_text(&p->w, "toolCallName", c->name);
    if (c->by->reply > 0)
        rv_jw_kv_text(&p->w, "parentMessageId",
                      proto_agui_message(p, c->by, "", c->by->n_texts > 0 ? c->by->n_texts : 1, id));
    proto_agui_event_end(p);
}

static void call_arguments(rv_protocol *p, struct proto_call *c, rv_str words)
{
    if (c->by->asked_by)
        return;
    call(p, c, "TOOL_CALL_ARGS");
    rv_jw_kv_str(&p->w, "delta", words);
    proto_agui_event_end(p);
}

static void call_complete(rv_protocol *p, struct proto_call *c)
{
    if (!c->by->asked_by) {
        call(p, c, "TOOL_CALL_END");
        proto_agui_event_end(p);
        return;
    }
    item(p, c->by, "child_tool_start");
    rv_jw_kv_text(&p->w, "tool_name", c->name);
    rv_jw_kv_text(&p->w, "tool_call_id", c->shown);
    rv_jw_kv_str(&p->w, "arguments", rv_buf_str(&c->arguments));
    item_end(p, c->by);
}

static void call_result(rv_protocol *p, struct proto_call *c, rv_str result, json_object *event)
{
    rv_buf words = RV_BUF_INIT(RV_PROTOCOL_MAX_OUT);

    (void)event;
    if (!c->by->asked_by) {
        proto_agui_result_head(p, c, result);
        proto_agui_event_end(p);
        return;
    }
    proto_value_text(result, &words);
    proto_keep(p, &words);
    item(p, c->by, "child_tool_result");
    rv_jw_kv_text(&p->w, "tool_name", c->name);
    rv_jw_kv_text(&p->w, "tool_call_id", c->shown);
    rv_jw_kv_str(&p->w, "result", rv_buf_str(&words));
    item_end(p, c->by);
    rv_buf_fini(&words);
}

/* The object of the stage's agent is handed over by a call of final_result; that of an asked agent is in the result of
 * the call by which it was asked. */
static void output(rv_protocol *p, struct proto_owner *by, json_object *event)
{
    const char *id = proto_member(event, "step_id"), *shown = id ? proto_name(p, id) : NULL;
    rv_buf words = RV_BUF_INIT(RV_LLM_MAX_REPLY);
    struct proto_call c = {.id = (char *)id, .shown = shown, .name = (char *)RV_OUTPUT_TOOL, .by = by};
    json_object *object = NULL;

    if (by->asked_by || !shown)
        return;
    close_parts(p, by);
    if (!json_object_object_get_ex(event, "result", &object))
        rv_buf_puts(&words, "{}");
    rv_json_write(object, &words);
    proto_keep(p, &words);
    call_begins(p, &c);
    for (rv_str rest = rv_buf_str(&words); rest.len > 0;) {
        rv_str part = rv_utf8_cut(rest, RV_PROTOCOL_MAX_TEXT);
        call_arguments(p, &c, part);
        rest = (rv_str){rest.ptr + part.len, rest.len - part.len};
    }
    call_complete(p, &c);
    call_result(p, &c, RV_STR_LIT("\"Final result processed.\""), event);
    by->has_said = true; /* the object is not told once more, as a text */
    rv_buf_fini(&words);
}

static void agent_begins(rv_protocol *p, struct proto_owner *who)
{
    (void)p; /* the call is told, and each item has its id */
    (void)who;
}

static void agent_over(rv_protocol *p, struct proto_owner *who, json_object *event)
{
    (void)p;
    (void)who;
    (void)event;
}

static void stage(rv_protocol *p, struct proto_owner *root, const char *name, bool begins)
{
    (void)name;
    if (!begins)
        close_parts(p, root);
}

static void question(rv_protocol *p, const struct proto_question *q)
{
    (void)p; /* told at the end, when the run waits */
    (void)q;
}

static void run_error(rv_protocol *p, const struct rv_protocol_end *end)
{
    proto_agui_event(p, "RUN_ERROR");
    rv_jw_kv_text(&p->w, "message", proto_end_message(end));
    rv_jw_kv_text(&p->w, "code", proto_end_code(end));
    proto_agui_event_end(p);
}

static void end_run(rv_protocol *p, const struct rv_protocol_end *end)
{
    if (p->is_broken || !p->has_begun) {
        run_error(p, end);
        return;
    }
    for (size_t i = p->n_owners; i-- > 0;)
        close_parts(p, p->owners[i]);
    proto_agui_answer(p, end);
    for (size_t i = 0; i < p->n_questions && end->status == RV_RUN_INTERRUPTED; i++) {
        proto_agui_event(p, "CUSTOM");
        rv_jw_kv_text(&p->w, "name", "interrupt");
        rv_jw_key(&p->w, "value");
        proto_agui_interrupt(p, &p->questions[i]);
        proto_agui_event_end(p);
    }
    if (proto_end_is_error(end)) {
        run_error(p, end);
        return;
    }
    proto_agui_over(p, "RUN_FINISHED");
    proto_agui_event_end(p);
}

const struct proto_ops proto_agui_old = {
    .begin = proto_agui_begin,
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
