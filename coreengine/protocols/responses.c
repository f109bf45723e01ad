/* The part of OpenAI's Responses that its clients need: a response with items, messages and calls of the client's
 * tools. Their readers throw at an event that they do not know, so nothing else is told, and reasoning is left out. */
#include <string.h>

#include "coreengine/protocols/protocols_internal.h"

#define MAX_ID PROTO_MAX_ANSWER_ID

static const char *id_of(const rv_protocol *p, const char *prefix, int64_t n, char out[MAX_ID])
{
    proto_answer_id(p, prefix, out);
    size_t len = strlen(out);
    if (n >= 0)
        snprintf(out + len, MAX_ID - len, "_%lld", (long long)n);
    return out;
}

static void event(rv_protocol *p, const char *type)
{
    proto_block(p, type);
    rv_jw_obj(&p->w);
    rv_jw_kv_text(&p->w, "type", type);
    rv_jw_kv_int(&p->w, "sequence_number", p->sequence++);
}

static void event_end(rv_protocol *p)
{
    rv_jw_obj_end(&p->w);
    proto_block_end(p);
}

static void keep_item(rv_protocol *p, int64_t at, json_object *item, int rc)
{
    if (p->rc == 0 && rc < 0)
        p->rc = rc;
    if (!p->items && p->rc == 0)
        p->items = json_object_new_array();
    if (p->rc == 0 && p->items && json_object_array_put_idx(p->items, (size_t)at, item) == 0)
        return;
    json_object_put(item);
    if (p->rc == 0)
        p->rc = RV_E_NOMEM;
}

/* --- the response itself --- */

static void write_usage(rv_protocol *p, const struct rv_usage *u)
{
    rv_jw_key(&p->w, "usage");
    rv_jw_obj(&p->w);
    rv_jw_kv_int(&p->w, "input_tokens", u->input_tokens);
    rv_jw_key(&p->w, "input_tokens_details");
    rv_jw_obj(&p->w);
    rv_jw_kv_int(&p->w, "cached_tokens", u->cached_tokens);
    rv_jw_obj_end(&p->w);
    rv_jw_kv_int(&p->w, "output_tokens", u->output_tokens);
    rv_jw_key(&p->w, "output_tokens_details");
    rv_jw_obj(&p->w);
    rv_jw_kv_int(&p->w, "reasoning_tokens", u->reasoning_tokens);
    rv_jw_obj_end(&p->w);
    rv_jw_kv_int(&p->w, "total_tokens", u->input_tokens + u->output_tokens);
    rv_jw_obj_end(&p->w);
}

static void write_error(rv_protocol *p, const struct rv_protocol_end *end)
{
    rv_jw_key(&p->w, "error");
    if (!end) {
        rv_jw_null(&p->w);
        return;
    }
    rv_jw_obj(&p->w);
    rv_jw_kv_text(&p->w, "code", proto_end_code(end));
    rv_jw_kv_text(&p->w, "message", proto_end_message(end));
    rv_jw_obj_end(&p->w);
}

/* end NULL: it has just begun. */
static void write_response(rv_protocol *p, const char *status, const struct rv_protocol_end *end)
{
    char id[MAX_ID];

    rv_jw_obj(&p->w);
    rv_jw_kv_text(&p->w, "id", id_of(p, RV_PROTOCOL_RESPONSE, -1, id));
    rv_jw_kv_text(&p->w, "object", "response");
    rv_jw_kv_int(&p->w, "created_at", p->opts.created_us / 1000000);
    rv_jw_kv_text(&p->w, "status", status);
    write_error(p, strcmp(status, "failed") == 0 ? end : NULL);
    rv_jw_key(&p->w, "incomplete_details");
    rv_jw_raw(&p->w, rv_str_of(strcmp(status, "incomplete") == 0 ? "{\"reason\":\"max_output_tokens\"}" : "null"));
    rv_jw_kv_text(&p->w, "instructions", NULL);
    rv_jw_kv_text(&p->w, "model", p->opts.model ? p->opts.model : "unknown");
    rv_jw_key(&p->w, "output");
    if (end && p->items)
        rv_jw_value(&p->w, p->items);
    else
        rv_jw_raw(&p->w, RV_STR_LIT("[]"));
    rv_jw_kv_bool(&p->w, "parallel_tool_calls", true);
    rv_jw_kv_text(&p->w, "tool_choice", "auto");
    rv_jw_key(&p->w, "tools");
    rv_jw_raw(&p->w, RV_STR_LIT("[]"));
    if (end) {
        const struct rv_usage u = proto_usage_sum(p, end);
        write_usage(p, &u);
    }
    rv_jw_obj_end(&p->w);
}

static void whole_event(rv_protocol *p, const char *type, const char *status, const struct rv_protocol_end *end)
{
    event(p, type);
    rv_jw_key(&p->w, "response");
    write_response(p, status, end);
    event_end(p);
}

static void begin(rv_protocol *p)
{
    if (p->opts.is_whole)
        return;
    whole_event(p, "response.created", "in_progress", NULL);
    whole_event(p, "response.in_progress", "in_progress", NULL);
}

/* --- text --- */

static void part_event(rv_protocol *p, const char *type)
{
    char id[MAX_ID];

    event(p, type);
    rv_jw_kv_text(&p->w, "item_id", id_of(p, "msg_", p->text_item, id));
    rv_jw_kv_int(&p->w, "output_index", p->text_item);
    rv_jw_kv_int(&p->w, "content_index", 0);
}

static void write_part(rv_protocol *p, rv_str text)
{
    rv_jw_obj(&p->w);
    rv_jw_kv_text(&p->w, "type", "output_text");
    rv_jw_kv_str(&p->w, "text", text);
    rv_jw_key(&p->w, "annotations");
    rv_jw_raw(&p->w, RV_STR_LIT("[]"));
    rv_jw_obj_end(&p->w);
}

static void write_message(rv_protocol *p, bool is_done, rv_jw *w)
{
    char id[MAX_ID];

    rv_jw_obj(w);
    rv_jw_kv_text(w, "id", id_of(p, "msg_", p->text_item, id));
    rv_jw_kv_text(w, "type", "message");
    rv_jw_kv_text(w, "status", is_done ? "completed" : "in_progress");
    rv_jw_kv_text(w, "role", "assistant");
    rv_jw_key(w, "content");
    rv_jw_arr(w);
}

static void open_text(rv_protocol *p)
{
    p->text_item = p->n_items++;
    rv_buf_clear(&p->item_text);
    if (p->opts.is_whole)
        return;
    event(p, "response.output_item.added");
    rv_jw_kv_int(&p->w, "output_index", p->text_item);
    rv_jw_key(&p->w, "item");
    write_message(p, false, &p->w);
    rv_jw_arr_end(&p->w);
    rv_jw_obj_end(&p->w);
    event_end(p);
    part_event(p, "response.content_part.added");
    rv_jw_key(&p->w, "part");
    write_part(p, (rv_str){NULL, 0});
    event_end(p);
}

static void say(rv_protocol *p, const struct rv_origin *who, rv_str text)
{
    (void)who;
    if (p->text_item < 0)
        open_text(p);
    rv_buf_add_str(&p->item_text, text);
    proto_keep(p, &p->item_text);
    if (p->opts.is_whole)
        return;
    part_event(p, "response.output_text.delta");
    rv_jw_kv_str(&p->w, "delta", text);
    rv_jw_key(&p->w, "logprobs");
    rv_jw_raw(&p->w, RV_STR_LIT("[]"));
    event_end(p);
}

static void keep_message(rv_protocol *p)
{
    json_object *item = json_object_new_object(), *content, *part;
    struct rv_json_build b = {.rc = item ? 0 : RV_E_NOMEM};
    char id[MAX_ID];

    rv_json_build_text(&b, item, "id", id_of(p, "msg_", p->text_item, id));
    rv_json_build_text(&b, item, "type", "message");
    rv_json_build_text(&b, item, "status", "completed");
    rv_json_build_text(&b, item, "role", "assistant");
    content = rv_json_build(&b, item, "content", json_object_new_array());
    part = rv_json_build(&b, content, NULL, json_object_new_object());
    rv_json_build_text(&b, part, "type", "output_text");
    rv_json_build(&b, part, "text", json_object_new_string_len(rv_buf_cstr(&p->item_text), (int)p->item_text.len));
    rv_json_build(&b, part, "annotations", json_object_new_array());
    keep_item(p, p->text_item, item, b.rc);
}

static void item_done(rv_protocol *p, int64_t at)
{
    event(p, "response.output_item.done");
    rv_jw_kv_int(&p->w, "output_index", at);
    rv_jw_key(&p->w, "item");
    rv_jw_value(&p->w, p->items ? json_object_array_get_idx(p->items, (size_t)at) : NULL);
    event_end(p);
}

static void close_text(rv_protocol *p)
{
    rv_str text = rv_buf_str(&p->item_text);

    if (p->text_item < 0)
        return;
    keep_message(p);
    if (!p->opts.is_whole && text.len <= RV_PROTOCOL_MAX_TEXT) { /* longer ones are in the whole response */
        part_event(p, "response.output_text.done");
        rv_jw_kv_str(&p->w, "text", text);
        rv_jw_key(&p->w, "logprobs");
        rv_jw_raw(&p->w, RV_STR_LIT("[]"));
        event_end(p);
        part_event(p, "response.content_part.done");
        rv_jw_key(&p->w, "part");
        write_part(p, text);
        event_end(p);
        item_done(p, p->text_item);
    }
    p->text_item = -1;
}

static void text(rv_protocol *p, struct proto_owner *by, rv_str words)
{
    proto_flat_text(p, by, words, say);
}

static void thought(rv_protocol *p, struct proto_owner *by, rv_str words)
{
    (void)p;
    (void)by;
    (void)words;
}

static void reply_over(rv_protocol *p, struct proto_owner *by, bool failed)
{
    proto_flat_replied(p, by, failed, say);
}

/* --- calls of the client's tools --- */

static const char *call_id(const struct proto_call *c, char out[MAX_ID])
{
    snprintf(out, MAX_ID, "fc_%.400s", c->shown);
    return out;
}

static void call_event(rv_protocol *p, const struct proto_call *c, const char *type)
{
    char id[MAX_ID];

    event(p, type);
    rv_jw_kv_text(&p->w, "item_id", call_id(c, id));
    rv_jw_kv_int(&p->w, "output_index", (int64_t)c->number);
}

static void begin_told(rv_protocol *p, struct proto_call *c)
{
    char id[MAX_ID];

    close_text(p);
    c->number = (size_t)p->n_items++;
    if (p->opts.is_whole)
        return;
    event(p, "response.output_item.added");
    rv_jw_kv_int(&p->w, "output_index", (int64_t)c->number);
    rv_jw_key(&p->w, "item");
    rv_jw_obj(&p->w);
    rv_jw_kv_text(&p->w, "id", call_id(c, id));
    rv_jw_kv_text(&p->w, "type", "function_call");
    rv_jw_kv_text(&p->w, "status", "in_progress");
    rv_jw_kv_text(&p->w, "call_id", c->shown);
    rv_jw_kv_text(&p->w, "name", c->name);
    rv_jw_kv_text(&p->w, "arguments", "");
    rv_jw_obj_end(&p->w);
    event_end(p);
}

static void tell_arguments(rv_protocol *p, const struct proto_call *c, rv_str words)
{
    if (p->opts.is_whole)
        return;
    call_event(p, c, "response.function_call_arguments.delta");
    rv_jw_kv_str(&p->w, "delta", words);
    event_end(p);
}

static void complete_told(rv_protocol *p, struct proto_call *c)
{
    rv_buf arguments = RV_BUF_INIT(RV_LLM_MAX_REPLY);
    char id[MAX_ID];

    json_object *item = json_object_new_object();
    struct rv_json_build b = {.rc = item ? 0 : RV_E_NOMEM};
    proto_arguments(c, &arguments);
    proto_keep(p, &arguments);
    rv_json_build_text(&b, item, "id", call_id(c, id));
    rv_json_build_text(&b, item, "type", "function_call");
    rv_json_build_text(&b, item, "status", "completed");
    rv_json_build_text(&b, item, "call_id", c->shown);
    rv_json_build_text(&b, item, "name", c->name);
    rv_json_build_text(&b, item, "arguments", rv_buf_cstr(&arguments));
    keep_item(p, (int64_t)c->number, item, b.rc);
    if (!p->opts.is_whole && arguments.len <= RV_PROTOCOL_MAX_TEXT) {
        call_event(p, c, "response.function_call_arguments.done");
        rv_jw_kv_text(&p->w, "name", c->name);
        rv_jw_kv_str(&p->w, "arguments", rv_buf_str(&arguments));
        event_end(p);
        item_done(p, (int64_t)c->number);
    }
    rv_buf_fini(&arguments);
}

static void call_begins(rv_protocol *p, struct proto_call *c)
{
    if (proto_call_is_told(p, c))
        begin_told(p, c);
}

static void call_arguments(rv_protocol *p, struct proto_call *c, rv_str words)
{
    if (proto_call_is_told(p, c))
        tell_arguments(p, c, words);
}

static void call_complete(rv_protocol *p, struct proto_call *c)
{
    if (proto_call_is_told(p, c))
        complete_told(p, c);
}

static void tell_waiting(rv_protocol *p, struct proto_call *c)
{
    begin_told(p, c);
    proto_each_part(p, c, tell_arguments);
    complete_told(p, c);
}

/* --- what these clients are not told --- */

static void call_result(rv_protocol *p, struct proto_call *c, rv_str result, json_object *e)
{
    (void)p;
    (void)c;
    (void)result;
    (void)e;
}

static void nothing_of(rv_protocol *p, struct proto_owner *by, json_object *e)
{
    (void)p;
    (void)by;
    (void)e;
}

static void agent_begins(rv_protocol *p, struct proto_owner *who)
{
    (void)p;
    (void)who;
}

static void agent_over(rv_protocol *p, struct proto_owner *who, json_object *e)
{
    const char *status = e ? proto_member(e, "status") : NULL;

    proto_flat_done(p, who, !status || strcmp(status, "error") == 0, say);
}

static void stage(rv_protocol *p, struct proto_owner *root, const char *name, bool begins)
{
    (void)p;
    (void)root;
    (void)name;
    (void)begins;
}

static void question(rv_protocol *p, const struct proto_question *q)
{
    (void)p; /* told at the end, when the run waits */
    (void)q;
}

/* --- the end --- */

static void end_run(rv_protocol *p, const struct rv_protocol_end *end)
{
    bool failed = proto_end_is_error(end) || p->is_broken;
    const char *status = failed ? "failed" : end->finish == RV_FINISH_LENGTH ? "incomplete" : "completed";
    char type[64];

    if (!p->is_broken) {
        proto_flat_end(p, end, say);
        if (end->status == RV_RUN_INTERRUPTED)
            proto_flat_questions(p, say);
        close_text(p);
    }
    proto_tell_waiting(p, end, tell_waiting);
    if (p->opts.is_whole) {
        p->w = rv_jw_on(p->out);
        write_response(p, status, end);
        return;
    }
    snprintf(type, sizeof type, "response.%s", status);
    whole_event(p, type, status, end);
}

const struct proto_ops proto_responses = {
    .begin = begin,
    .text = text,
    .thought = thought,
    .reply_over = reply_over,
    .call_begins = call_begins,
    .call_arguments = call_arguments,
    .call_complete = call_complete,
    .call_result = call_result,
    .output = nothing_of,
    .agent_begins = agent_begins,
    .agent_over = agent_over,
    .stage = stage,
    .action = nothing_of,
    .custom = nothing_of,
    .question = question,
    .end = end_run,
    .can_be_whole = true,
};
