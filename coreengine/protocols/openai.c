/* OpenAI Chat Completions and REMLight, which puts named events between the same chunks: the text of all speakers is
 * one text, and of the tool calls only those are told that the client makes. The rest of what happens is told by named
 * events (named.c), where the client asked for them. */
#include <string.h>

#include "coreengine/protocols/protocols_internal.h"

static bool is_remlight(const rv_protocol *p)
{
    return p->opts.kind == RV_PROTOCOL_REMLIGHT;
}

/* --- chunks --- */

static uint32_t hash(const char *text)
{
    uint32_t h = 2166136261u;

    for (const char *c = text; *c; c++)
        h = (h ^ (unsigned char)*c) * 16777619u;
    return h;
}

static void head(rv_protocol *p, const char *object)
{
    char id[PROTO_MAX_ANSWER_ID];

    proto_answer_id(p, is_remlight(p) ? "" : "chatcmpl-", id);
    if (is_remlight(p)) /* eight digits, as it has them */
        snprintf(id, sizeof id, "chatcmpl-%08x", (unsigned)hash(id));
    rv_jw_obj(&p->w);
    rv_jw_kv_text(&p->w, "id", id);
    rv_jw_kv_text(&p->w, "object", object);
    rv_jw_kv_int(&p->w, "created", p->opts.created_us / 1000000);
    rv_jw_kv_text(&p->w, "model", p->opts.model ? p->opts.model : "unknown");
}

void proto_chunk_head(rv_protocol *p)
{
    head(p, "chat.completion.chunk");
}

/* Up to the delta, which is left open; the first one has the role. */
static void chunk(rv_protocol *p)
{
    proto_block(p, NULL);
    proto_chunk_head(p);
    rv_jw_key(&p->w, "choices");
    rv_jw_arr(&p->w);
    rv_jw_obj(&p->w);
    rv_jw_kv_int(&p->w, "index", 0);
    rv_jw_key(&p->w, "delta");
    rv_jw_obj(&p->w);
    if (!p->said_role)
        rv_jw_kv_text(&p->w, "role", "assistant");
    p->said_role = true;
}

static void chunk_end(rv_protocol *p, const char *finish)
{
    rv_jw_obj_end(&p->w);
    rv_jw_kv_text(&p->w, "finish_reason", finish);
    rv_jw_obj_end(&p->w);
    rv_jw_arr_end(&p->w);
    rv_jw_obj_end(&p->w);
    proto_block_end(p);
}

static void say(rv_protocol *p, const struct rv_origin *who, rv_str text)
{
    if (who && who->parent)
        p->responding = who->agent;
    if (p->opts.is_whole)
        return;
    chunk(p);
    rv_jw_kv_str(&p->w, "content", text);
    chunk_end(p, NULL);
}

static void text(rv_protocol *p, struct proto_owner *by, rv_str words)
{
    proto_flat_text(p, by, words, say);
}

static void thought(rv_protocol *p, struct proto_owner *by, rv_str words)
{
    if (by->asked_by)
        return;
    rv_buf_add_str(&p->thoughts, words);
    if (p->thoughts.rc == RV_E_NOMEM)
        proto_keep(p, &p->thoughts);
    if (p->opts.is_whole)
        return;
    chunk(p);
    rv_jw_kv_str(&p->w, "reasoning_content", words);
    chunk_end(p, NULL);
}

static void reply_over(rv_protocol *p, struct proto_owner *by, bool failed)
{
    proto_flat_replied(p, by, failed, say);
}

/* --- calls --- */

bool proto_call_is_told(const rv_protocol *p, const struct proto_call *c)
{
    return !c->is_client && p->opts.tells_calls && !c->by->asked_by;
}

void proto_tell_waiting(rv_protocol *p, const struct rv_protocol_end *end,
                        void (*tell)(rv_protocol *p, struct proto_call *c))
{
    for (size_t i = 0; i < p->n_calls && !p->is_broken && !proto_end_is_error(end) && p->rc == 0; i++)
        if (p->calls[i]->is_client && !p->calls[i]->is_known)
            tell(p, p->calls[i]);
}

void proto_each_part(rv_protocol *p, const struct proto_call *c,
                     void (*tell)(rv_protocol *p, const struct proto_call *c, rv_str words))
{
    rv_str text = c->arguments.len > 0 ? rv_buf_str(&c->arguments) : RV_STR_LIT("{}");

    while (text.len > 0 && p->rc == 0) {
        rv_str part = rv_utf8_cut(text, RV_PROTOCOL_MAX_TEXT);
        part = part.len > 0 ? part : text; /* no characters: the writer says so */
        tell(p, c, part);
        text = (rv_str){text.ptr + part.len, text.len - part.len};
    }
}

/* Up to the call, which is left open. */
static void call_chunk(rv_protocol *p, const struct proto_call *c)
{
    chunk(p);
    rv_jw_key(&p->w, "tool_calls");
    rv_jw_arr(&p->w);
    rv_jw_obj(&p->w);
    rv_jw_kv_int(&p->w, "index", (int64_t)c->number);
}

static void call_chunk_end(rv_protocol *p)
{
    rv_jw_obj_end(&p->w);
    rv_jw_arr_end(&p->w);
    chunk_end(p, NULL);
}

static void begin_told(rv_protocol *p, struct proto_call *c)
{
    c->number = p->n_told_calls++;
    if (p->opts.is_whole)
        return;
    call_chunk(p, c);
    rv_jw_kv_text(&p->w, "id", c->shown);
    rv_jw_kv_text(&p->w, "type", "function");
    rv_jw_key(&p->w, "function");
    rv_jw_obj(&p->w);
    rv_jw_kv_text(&p->w, "name", c->name);
    rv_jw_kv_text(&p->w, "arguments", "");
    rv_jw_obj_end(&p->w);
    call_chunk_end(p);
}

static void call_begins(rv_protocol *p, struct proto_call *c)
{
    if (!c->by->asked_by) {
        proto_named_call(p, c, "started", (rv_str){NULL, 0}, NULL);
        proto_named_progress(p, 2, "Calling ", c->name);
    }
    if (proto_call_is_told(p, c))
        begin_told(p, c);
}

static void tell_arguments(rv_protocol *p, const struct proto_call *c, rv_str words)
{
    if (p->opts.is_whole)
        return;
    call_chunk(p, c);
    rv_jw_key(&p->w, "function");
    rv_jw_obj(&p->w);
    rv_jw_kv_str(&p->w, "arguments", words);
    rv_jw_obj_end(&p->w);
    call_chunk_end(p);
}

static void call_arguments(rv_protocol *p, struct proto_call *c, rv_str words)
{
    if (proto_call_is_told(p, c))
        tell_arguments(p, c, words);
}

void proto_arguments(const struct proto_call *c, rv_buf *out)
{
    rv_str text = rv_buf_str(&c->arguments);

    rv_buf_add_str(out, text.len > 0 ? text : RV_STR_LIT("{}"));
}

/* Of a whole answer the calls are kept until the end. */
static void keep_call(rv_protocol *p, const struct proto_call *c)
{
    rv_buf arguments = RV_BUF_INIT(RV_LLM_MAX_REPLY);
    struct rv_json_build b = {0};

    proto_arguments(c, &arguments);
    proto_keep(p, &arguments);
    if (!p->items && !(p->items = json_object_new_array()))
        p->rc = RV_E_NOMEM;
    if (p->rc == 0) {
        json_object *call = rv_json_build(&b, p->items, NULL, json_object_new_object());
        rv_json_build_text(&b, call, "id", c->shown);
        rv_json_build_text(&b, call, "type", "function");
        json_object *function = rv_json_build(&b, call, "function", json_object_new_object());
        rv_json_build_text(&b, function, "name", c->name);
        rv_json_build_text(&b, function, "arguments", rv_buf_cstr(&arguments));
    }
    if (b.rc < 0 && p->rc == 0)
        p->rc = b.rc;
    rv_buf_fini(&arguments);
}

static void call_complete(rv_protocol *p, struct proto_call *c)
{
    const char *status = c->by->asked_by ? "started" : "executing";

    proto_named_call(p, c, status, (rv_str){NULL, 0}, NULL);
    if (proto_call_is_told(p, c) && p->opts.is_whole)
        keep_call(p, c);
}

static void call_result(rv_protocol *p, struct proto_call *c, rv_str result, json_object *event)
{
    proto_named_call(p, c, "completed", result, event);
    if (!c->by->asked_by)
        proto_named_progress(p, 3, "Generating response", NULL);
}

static void tell_waiting(rv_protocol *p, struct proto_call *c)
{
    begin_told(p, c);
    proto_each_part(p, c, tell_arguments);
    if (p->opts.is_whole)
        keep_call(p, c);
}

/* --- the rest --- */

static void begin_openai(rv_protocol *p)
{
    (void)p;
}

static void begin_remlight(rv_protocol *p)
{
    proto_named_progress(p, 1, "Processing request", NULL);
}

static void agent_begins(rv_protocol *p, struct proto_owner *who)
{
    (void)p; /* its call tells */
    (void)who;
}

static void agent_over(rv_protocol *p, struct proto_owner *who, json_object *event)
{
    const char *status = event ? proto_member(event, "status") : NULL;

    proto_flat_done(p, who, !status || strcmp(status, "error") == 0, say);
}

static void stage(rv_protocol *p, struct proto_owner *root, const char *name, bool begins)
{
    (void)p;
    (void)root;
    (void)name;
    (void)begins;
}

static void custom(rv_protocol *p, struct proto_owner *by, json_object *event)
{
    (void)p; /* these protocols have no place for it */
    (void)by;
    (void)event;
}

static void question(rv_protocol *p, const struct proto_question *q)
{
    (void)p; /* told at the end, when the run waits */
    (void)q;
}

/* --- the end --- */

/* Has the client calls to make? */
static bool calls_wait(const rv_protocol *p)
{
    for (size_t i = 0; i < p->n_calls; i++)
        if (p->calls[i]->is_client)
            return true;
    return false;
}

static const char *finish_text(const rv_protocol *p, const struct rv_protocol_end *end)
{
    if (calls_wait(p))
        return "tool_calls";
    if (end->finish == RV_FINISH_LENGTH)
        return "length";
    return end->finish == RV_FINISH_CONTENT_FILTER || end->finish == RV_FINISH_REFUSAL ? "content_filter" : "stop";
}

static void write_usage(rv_protocol *p, const struct rv_protocol_end *end)
{
    const struct rv_usage u = proto_usage_sum(p, end);

    rv_jw_key(&p->w, "usage");
    rv_jw_obj(&p->w);
    rv_jw_kv_int(&p->w, "prompt_tokens", u.input_tokens);
    rv_jw_kv_int(&p->w, "completion_tokens", u.output_tokens);
    rv_jw_kv_int(&p->w, "total_tokens", u.input_tokens + u.output_tokens);
    rv_jw_key(&p->w, "prompt_tokens_details");
    rv_jw_obj(&p->w);
    rv_jw_kv_int(&p->w, "cached_tokens", u.cached_tokens);
    rv_jw_obj_end(&p->w);
    rv_jw_key(&p->w, "completion_tokens_details");
    rv_jw_obj(&p->w);
    rv_jw_kv_int(&p->w, "reasoning_tokens", u.reasoning_tokens);
    rv_jw_obj_end(&p->w);
    rv_jw_obj_end(&p->w);
}

static const char *error_type(const char *code)
{
    return strcmp(code, "quota_exceeded") == 0 ? "insufficient_quota" : "server_error";
}

static void write_error(rv_protocol *p, const struct rv_protocol_end *end)
{
    const char *code = proto_end_code(end);

    rv_jw_obj(&p->w);
    rv_jw_key(&p->w, "error");
    rv_jw_obj(&p->w);
    rv_jw_kv_text(&p->w, "message", proto_end_message(end));
    rv_jw_kv_text(&p->w, "type", error_type(code));
    rv_jw_kv_text(&p->w, "param", NULL);
    rv_jw_kv_text(&p->w, "code", code);
    rv_jw_obj_end(&p->w);
    rv_jw_obj_end(&p->w);
}

/* The answer as it is kept. With the questions that came behind it as it was told; and a later one of the run, as what
 * is kept has the words of those before it, too. */
static void whole(rv_protocol *p, const struct rv_protocol_end *end)
{
    bool asks = end->status == RV_RUN_INTERRUPTED && p->n_questions > 0, is_first = p->opts.ordinal <= 1;
    rv_str words = end->text.len > 0 && is_first && !asks ? end->text : rv_buf_str(&p->said);

    p->w = rv_jw_on(p->out);
    head(p, "chat.completion");
    rv_jw_key(&p->w, "choices");
    rv_jw_arr(&p->w);
    rv_jw_obj(&p->w);
    rv_jw_kv_int(&p->w, "index", 0);
    rv_jw_key(&p->w, "message");
    rv_jw_obj(&p->w);
    rv_jw_kv_text(&p->w, "role", "assistant");
    if (words.len == 0 && p->items)
        rv_jw_kv_text(&p->w, "content", NULL);
    else
        rv_jw_kv_str(&p->w, "content", words);
    rv_jw_kv_text(&p->w, "refusal", NULL);
    if (p->items)
        rv_jw_kv_value(&p->w, "tool_calls", p->items);
    if (p->thoughts.len > 0 && p->thoughts.rc == 0)
        rv_jw_kv_str(&p->w, "reasoning_content", rv_buf_str(&p->thoughts));
    rv_jw_obj_end(&p->w);
    rv_jw_kv_text(&p->w, "logprobs", NULL);
    rv_jw_kv_text(&p->w, "finish_reason", finish_text(p, end));
    rv_jw_obj_end(&p->w);
    rv_jw_arr_end(&p->w);
    write_usage(p, end);
    rv_jw_obj_end(&p->w);
}

static void end_whole(rv_protocol *p, const struct rv_protocol_end *end)
{
    p->w = rv_jw_on(p->out);
    if (proto_end_is_error(end) || p->is_broken)
        write_error(p, end);
    else
        whole(p, end);
}

static void finish(rv_protocol *p, const struct rv_protocol_end *end)
{
    chunk(p);
    chunk_end(p, finish_text(p, end));
}

/* Text that waited for another speaker is told, also of a run that failed. */
static void tell_rest(rv_protocol *p, const struct rv_protocol_end *end)
{
    if (!p->is_broken)
        proto_flat_end(p, end, say);
    if (end->status != RV_RUN_INTERRUPTED || p->is_broken)
        return;
    if (is_remlight(p) && !p->opts.is_whole)
        for (size_t i = 0; i < p->n_questions; i++)
            proto_named_question(p, &p->questions[i]);
    else
        proto_flat_questions(p, say);
}

static void end_openai(rv_protocol *p, const struct rv_protocol_end *end)
{
    tell_rest(p, end);
    proto_tell_waiting(p, end, tell_waiting);
    if (p->opts.is_whole) {
        end_whole(p, end);
        return;
    }
    if (proto_end_is_error(end) || p->is_broken) {
        proto_block(p, NULL);
        write_error(p, end);
        proto_block_end(p);
        proto_line(p, "[DONE]");
        return;
    }
    for (size_t i = 0; i < p->n_questions && end->status == RV_RUN_INTERRUPTED; i++)
        proto_named_question(p, &p->questions[i]);
    finish(p, end);
    if (p->opts.tells_usage) {
        proto_block(p, NULL);
        proto_chunk_head(p);
        rv_jw_key(&p->w, "choices");
        rv_jw_raw(&p->w, RV_STR_LIT("[]"));
        write_usage(p, end);
        rv_jw_obj_end(&p->w);
        proto_block_end(p);
    }
    proto_line(p, "[DONE]");
}

static void end_remlight(rv_protocol *p, const struct rv_protocol_end *end)
{
    bool failed = proto_end_is_error(end) || p->is_broken;

    tell_rest(p, end);
    proto_tell_waiting(p, end, tell_waiting);
    if (p->opts.is_whole) {
        end_whole(p, end);
        return;
    }
    if (failed) {
        proto_named_error(p, end);
    } else {
        finish(p, end);
        proto_named_metadata(p, end);
    }
    proto_named_done(p, failed ? "error" : "stop");
    proto_line(p, "[DONE]");
}

#define SHARED                                                                                                         \
    .text = text, .thought = thought, .reply_over = reply_over, .call_begins = call_begins,                            \
    .call_arguments = call_arguments, .call_complete = call_complete, .call_result = call_result,                      \
    .output = proto_named_output, .agent_begins = agent_begins, .agent_over = agent_over, .stage = stage,              \
    .action = proto_named_action, .custom = custom, .question = question, .can_be_whole = true

const struct proto_ops proto_openai = {SHARED, .begin = begin_openai, .end = end_openai};
const struct proto_ops proto_remlight = {SHARED, .begin = begin_remlight, .end = end_remlight};
