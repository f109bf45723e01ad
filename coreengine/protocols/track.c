/* Reads events and pieces: which tool calls are open, what was used, and which questions wait. Whatever comes, in
 * whatever order, protocols see each tool call begin, be complete and have a result once, in this order. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/protocols/protocols_internal.h"

/* --- calls --- */

static bool is_among(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static void drop_call(rv_protocol *p, struct proto_call *c)
{
    size_t i = 0;
    while (p->calls[i] != c)
        i++;
    memmove(p->calls + i, p->calls + i + 1, (--p->n_calls - i) * sizeof *p->calls);
    free(c->id);
    free(c->name);
    rv_buf_fini(&c->arguments);
    free(c);
}

static struct proto_call *new_call(rv_protocol *p, struct proto_owner *by, rv_str id, rv_str name)
{
    struct proto_call *c = calloc(1, sizeof *c);

    if (!c || !(c->id = rv_str_dup(id)) || !(c->name = rv_str_dup(name)) ||
        !rv_has_room(&p->calls, &p->cap_calls, p->n_calls + 1, sizeof *p->calls)) {
        if (c) {
            free(c->id);
            free(c->name);
        }
        free(c);
        proto_fail(p, RV_E_NOMEM);
        return NULL;
    }
    c->by = by;
    c->arguments = RV_BUF_INIT(RV_LLM_MAX_REPLY);
    p->calls[p->n_calls++] = c;
    return c;
}

/* NULL: no memory, or too many at once. */
static struct proto_call *begin_call(rv_protocol *p, struct proto_owner *by, rv_str id, rv_str name)
{
    if (p->n_calls >= RV_PROTOCOL_MAX_CALLS) {
        proto_fail(p, RV_E_LIMIT);
        return NULL;
    }
    struct proto_call *c = new_call(p, by, id, name);
    if (!c)
        return NULL;
    c->is_known = is_among(p->opts.known_calls, p->opts.n_known_calls, c->id);
    c->is_client = !by->asked_by && is_among(p->opts.client_tools, p->opts.n_client_tools, c->name);
    c->shown = proto_name(p, c->id[0] ? c->id : "call");
    if (!c->shown)
        return NULL;
    if (!c->is_known)
        p->ops->call_begins(p, c);
    return c;
}

static void add_arguments(rv_protocol *p, struct proto_call *c, rv_str text)
{
    if (c->state != PROTO_CALL_OPEN)
        return;
    rv_buf_add_str(&c->arguments, text);
    proto_keep(p, &c->arguments);
    while (text.len > 0 && !c->is_known && p->rc == 0) {
        rv_str part = rv_utf8_cut(text, RV_PROTOCOL_MAX_TEXT);
        if (part.len == 0)
            part = text; /* no characters: the writer says so */
        p->ops->call_arguments(p, c, part);
        text = (rv_str){text.ptr + part.len, text.len - part.len};
    }
}

static void complete_call(rv_protocol *p, struct proto_call *c)
{
    if (c->state != PROTO_CALL_OPEN || p->rc < 0)
        return;
    c->state = PROTO_CALL_COMPLETE;
    if (!c->is_known)
        p->ops->call_complete(p, c);
}

static void settle_call(rv_protocol *p, struct proto_call *c, rv_str result, json_object *event)
{
    complete_call(p, c);
    if (p->rc == 0)
        p->ops->call_result(p, c, result, event);
    drop_call(p, c);
}

static const char NO_RESULT[] = "{\"status\":\"error\",\"error\":\"the call has no result: it was not made, or it was "
                                "given up\"}";

/* Calls of an agent, or of all, that will have no result any more. But those that the client makes wait for it. */
static void settle_rest(rv_protocol *p, const struct proto_owner *of)
{
    for (size_t i = 0; i < p->n_calls && p->rc == 0;)
        if ((!of || p->calls[i]->by == of) && !p->calls[i]->is_client)
            settle_call(p, p->calls[i], RV_STR_LIT(NO_RESULT), NULL);
        else
            i++;
}

/* A reply is over: its calls are complete; when it failed none of them is made. */
static void end_reply(rv_protocol *p, struct proto_owner *o, bool failed)
{
    for (size_t i = 0; i < p->n_calls && p->rc == 0;) {
        struct proto_call *c = p->calls[i];
        bool is_of_it = c->by == o && c->reply == o->reply;
        if (is_of_it)
            complete_call(p, c);
        if (is_of_it && failed)
            settle_call(p, c, RV_STR_LIT(NO_RESULT), NULL);
        else
            i++;
    }
    if (!o->reply_over && p->rc == 0)
        p->ops->reply_over(p, o, failed);
    o->reply_over = true;
}

static void begin_reply(rv_protocol *p, struct proto_owner *o, int64_t call_id)
{
    if (!o->reply_over && o->reply > 0)
        end_reply(p, o, true);
    if (o->reply != call_id)
        o->n_texts = o->n_thoughts = 0;
    o->reply = call_id;
    o->told_len = 0;
    o->told_hash = PROTO_NO_TEXT;
    o->reply_over = o->reply_broke = false;
}

/* --- pieces --- */

static void tell_text(rv_protocol *p, struct proto_owner *o, rv_str text, bool is_thought)
{
    if (!is_thought)
        proto_note_text(o, text);
    while (text.len > 0 && p->rc == 0) {
        rv_str part = rv_utf8_cut(text, RV_PROTOCOL_MAX_TEXT);
        part = part.len > 0 ? part : text;
        if (is_thought)
            p->ops->thought(p, o, part);
        else
            p->ops->text(p, o, part);
        text = (rv_str){text.ptr + part.len, text.len - part.len};
    }
}

static struct proto_call *call_at(const rv_protocol *p, const struct proto_owner *o, int64_t reply, size_t index)
{
    for (size_t i = p->n_calls; i-- > 0;)
        if (p->calls[i]->by == o && p->calls[i]->reply == reply && p->calls[i]->index == index)
            return p->calls[i];
    return NULL;
}

static void start_call(rv_protocol *p, struct proto_owner *o, const struct rv_protocol_from *from,
                       const struct rv_llm_delta *d)
{
    if (from->is_muted || call_at(p, o, from->call_id, d->index)) /* muted: its event tells what hooks left */
        return;
    struct proto_call *c = begin_call(p, o, d->id, d->name);
    if (!c)
        return;
    c->reply = from->call_id;
    c->index = d->index;
}

/* Words that people are not to be shown, and of other stages than the one that answers. */
static bool is_shown(const rv_protocol *p, const struct rv_protocol_from *from, const struct proto_owner *o)
{
    const char *only = p->opts.text_stage;

    if (from->is_muted)
        return false;
    return !only || (strncmp(o->visit, only, strlen(only)) == 0 && o->visit[strlen(only)] == '\n');
}

void proto_track_delta(rv_protocol *p, const struct rv_protocol_from *from, const struct rv_llm_delta *d)
{
    struct proto_owner *o = proto_owner_of_reply(p, from);

    if (!o || p->rc < 0)
        return;
    if (o->reply != from->call_id || o->reply_broke)
        begin_reply(p, o, from->call_id);
    struct proto_call *c = call_at(p, o, from->call_id, d->index);
    o->is_late = o->reply_over; /* the object of a structured agent: the next event closes it */
    o->reply_over = false;
    switch (d->kind) {
    case RV_LLM_DELTA_TEXT:
        if (is_shown(p, from, o))
            tell_text(p, o, d->text, false);
        break;
    case RV_LLM_DELTA_THINKING:
        if (is_shown(p, from, o) && !p->opts.no_thinking)
            tell_text(p, o, d->text, true);
        break;
    case RV_LLM_DELTA_TOOL_START:
        start_call(p, o, from, d);
        break;
    case RV_LLM_DELTA_TOOL_ARGUMENTS:
        if (c)
            add_arguments(p, c, d->text);
        break;
    case RV_LLM_DELTA_TOOL_END:
        if (c)
            complete_call(p, c);
        break;
    case RV_LLM_DELTA_USAGE:
    case RV_LLM_DELTA_FINISH:
    case RV_N_LLM_DELTAS:
        break;
    }
}

/* --- events --- */

static void stage_started(rv_protocol *p, json_object *event)
{
    struct proto_owner *o = proto_owner_of(p, event);
    const char *stage = proto_member(event, "stage");

    if (o && stage && p->rc == 0)
        p->ops->stage(p, o, stage, true);
}

static void close_owner(rv_protocol *p, struct proto_owner *o)
{
    if (!o || p->rc < 0)
        return;
    if (o->reply > 0)
        end_reply(p, o, false);
    settle_rest(p, o);
}

static bool is_below(const struct proto_owner *o, const struct proto_owner *above)
{
    for (o = o->parent; o; o = o->parent)
        if (o == above)
            return true;
    return false;
}

/* Agents below one that is over, of which the end was not told: the newest first, so that none is below another. */
static void close_below(rv_protocol *p, const struct proto_owner *above)
{
    for (size_t i = p->n_owners; i-- > 0 && p->rc == 0;) {
        struct proto_owner *o = p->owners[i];
        if (o->is_over || !is_below(o, above))
            continue;
        close_owner(p, o);
        if (p->rc == 0)
            p->ops->agent_over(p, o, NULL);
        o->is_over = true;
    }
}

static void end_agent(rv_protocol *p, struct proto_owner *o, json_object *event)
{
    close_below(p, o);
    close_owner(p, o);
    if (p->rc == 0)
        p->ops->agent_over(p, o, event);
    o->is_over = true;
}

/* A visit that waits for an answer ends as skipped: its agents and calls go on with the next visit to the stage. */
static void suspend(rv_protocol *p, struct proto_owner *root)
{
    for (size_t i = 0; i < p->n_owners && p->rc == 0; i++) {
        struct proto_owner *o = p->owners[i];
        if (!o->is_over && o->reply > 0 && (o == root || is_below(o, root)))
            end_reply(p, o, false);
    }
    root->is_suspended = true;
}

static void stage_completed(rv_protocol *p, json_object *event)
{
    const char *stage = proto_member(event, "stage"), *status = proto_member(event, "status");
    struct proto_owner *o = proto_owner_of(p, event);

    if (!o || p->rc < 0)
        return;
    if (status && strcmp(status, "skipped") == 0) {
        suspend(p, o);
    } else {
        close_below(p, o);
        close_owner(p, o);
        o->is_over = true;
    }
    if (stage && p->rc == 0)
        p->ops->stage(p, o, stage, false);
}

static void agent_started(rv_protocol *p, json_object *event)
{
    struct proto_owner *o = proto_owner_of(p, event);

    if (o && o->asked_by && p->rc == 0)
        p->ops->agent_begins(p, o);
}

static void agent_completed(rv_protocol *p, json_object *event)
{
    struct proto_owner *o = proto_owner_of(p, event);

    if (o && o->asked_by && p->rc == 0)
        end_agent(p, o, event);
}

static struct proto_usage *usage_of(rv_protocol *p, const char *model)
{
    for (size_t i = 0; i < p->n_usage; i++)
        if (model && p->usage[i].model ? strcmp(p->usage[i].model, model) == 0 : model == p->usage[i].model)
            return &p->usage[i];
    if (!rv_has_room(&p->usage, &p->cap_usage, p->n_usage + 1, sizeof *p->usage)) {
        proto_fail(p, RV_E_NOMEM);
        return NULL;
    }
    struct proto_usage *u = &p->usage[p->n_usage];
    *u = (struct proto_usage){.model = model ? rv_str_dup(rv_str_of(model)) : NULL};
    if (model && !u->model) {
        proto_fail(p, RV_E_NOMEM);
        return NULL;
    }
    p->n_usage++;
    return u;
}

static void llm_call_start(rv_protocol *p, json_object *event)
{
    struct proto_owner *o = proto_owner_of(p, event);
    int64_t call_id = 0;

    if (!o || p->rc < 0 || !rv_json_get_int(event, "call_id", &call_id))
        return;
    begin_reply(p, o, call_id);
    settle_rest(p, o);
    const char *model = proto_member(event, "model");
    free(o->model);
    o->model = model ? rv_str_dup(rv_str_of(model)) : NULL;
    if (model && !o->model)
        proto_fail(p, RV_E_NOMEM);
}

static void llm_result(rv_protocol *p, json_object *event)
{
    static const char *const keys[] = {"input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"};
    struct proto_owner *o = proto_owner_of(p, event);
    const char *status = proto_member(event, "status");
    int64_t n[RV_COUNT(keys)] = {0};
    bool any = false;

    if (!o || p->rc < 0)
        return;
    for (size_t i = 0; i < RV_COUNT(keys); i++) {
        if (!rv_json_get_int(event, keys[i], &n[i]) || n[i] < 0)
            n[i] = 0;
        any = any || n[i] > 0;
    }
    const char *fallback = proto_member(event, "answered_by"); /* a role, whose model is not told */
    struct proto_usage *u = any ? usage_of(p, fallback ? NULL : o->model) : NULL;
    const struct rv_usage part = {
        .input_tokens = n[0], .output_tokens = n[1], .cached_tokens = n[2], .reasoning_tokens = n[3]};
    if (u)
        rv_usage_add(&u->usage, &part);
    end_reply(p, o, status && strcmp(status, "error") == 0);
}

/* The call of an event, begun and complete now if no piece told that before. NULL: there is none. */
static struct proto_call *call_of(rv_protocol *p, struct proto_owner *o, json_object *event)
{
    const char *id = proto_member(event, "step_id"), *tool = proto_member(event, "tool");
    rv_buf text = RV_BUF_INIT(RV_LLM_MAX_REPLY);
    json_object *arguments = NULL;

    if (!id || !tool)
        return NULL;
    struct proto_call *c = proto_call_find(p, o->visit, id);
    if (c || p->rc < 0)
        return c;
    c = begin_call(p, o, rv_str_of(id), rv_str_of(tool));
    if (c && json_object_object_get_ex(event, "arguments", &arguments)) {
        rv_json_write(arguments, &text);
        proto_keep(p, &text);
        add_arguments(p, c, rv_buf_str(&text));
    }
    rv_buf_fini(&text);
    return c;
}

static void tool_call_start(rv_protocol *p, json_object *event)
{
    struct proto_owner *o = proto_owner_of(p, event);
    struct proto_call *c = o && p->rc == 0 ? call_of(p, o, event) : NULL;

    if (c)
        complete_call(p, c);
}

/* Only its beginning is there: the whole, if the caller has it and a client can take it. */
static void write_long(rv_protocol *p, json_object *event, rv_buf *out)
{
    json_object *ref = rv_json_get_obj(event, "result_ref");
    rv_buf whole = RV_BUF_INIT(RV_PROTOCOL_MAX_TEXT);
    int64_t call_id = 0, bytes = 0;
    rv_err *err = NULL;

    bool is_named = ref && rv_json_get_int(ref, "call_id", &call_id);
    int rc = is_named && p->opts.whole_result ? p->opts.whole_result(p->opts.self, call_id, &whole, &err) : -1;
    if (rv_err_is(err, RV_E_NOMEM) || whole.rc == RV_E_NOMEM)
        proto_fail(p, RV_E_NOMEM);
    rv_err_free(err);
    if (rc == 0 && whole.rc == 0 && whole.len > 0) {
        rv_buf_add_str(out, rv_buf_str(&whole));
    } else {
        rv_jw w = rv_jw_on(out);
        rv_jw_obj(&w);
        rv_jw_kv_bool(&w, "truncated", true);
        rv_jw_kv_text(&w, "preview", proto_member(event, "result_preview"));
        if (ref && rv_json_get_int(ref, "bytes", &bytes))
            rv_jw_kv_int(&w, "bytes", bytes);
        rv_jw_obj_end(&w);
    }
    rv_buf_fini(&whole);
}

/* An agent that was asked has told its text already: what repeats it is left out. */
static void write_result(rv_protocol *p, const struct proto_owner *asked, json_object *result, rv_buf *out)
{
    json_object *copy = NULL;

    if (asked && asked->has_said && json_object_is_type(result, json_type_object)) {
        if (rv_json_dup(result, &copy, RV_CODE_ONLY("copying fails without memory only, which fails the stream")) < 0)
            proto_fail(p, RV_E_NOMEM);
        if (copy)
            json_object_object_del(copy, "text_response");
    }
    rv_json_write(copy ? copy : result, out);
    json_object_put(copy);
}

static struct proto_owner *asked_by_call(const rv_protocol *p, const struct proto_call *c)
{
    for (size_t i = p->n_owners; i-- > 0;)
        if (p->owners[i]->asked_by && p->owners[i]->parent == c->by && p->owners[i]->call == c->shown)
            return p->owners[i];
    return NULL;
}

/* The client made that call and knows its result. */
static bool has_own_result(rv_protocol *p, json_object *event)
{
    struct proto_owner *o = proto_owner_of(p, event);
    const char *id = proto_member(event, "step_id"), *tool = proto_member(event, "tool");

    if (!o || !id || !tool || !is_among(p->opts.client_tools, p->opts.n_client_tools, tool))
        return false;
    struct proto_call *c = proto_call_find(p, o->visit, id);
    if (c)
        drop_call(p, c);
    return true;
}

static void tool_result(rv_protocol *p, json_object *event)
{
    struct proto_owner *o = proto_owner_of(p, event);
    rv_buf text = RV_BUF_INIT(RV_PROTOCOL_MAX_OUT);
    json_object *result = NULL;
    bool structured = false;

    if (!o || p->rc < 0)
        return;
    if (rv_json_get_bool(event, "structured", &structured) && structured) {
        p->ops->output(p, o, event);
        return;
    }
    bool by_client = false;
    if (rv_json_get_bool(event, "client", &by_client) && by_client && has_own_result(p, event))
        return;
    struct proto_call *c = call_of(p, o, event);
    if (!c || p->rc < 0)
        return;
    struct proto_owner *asked = asked_by_call(p, c);
    if (asked && !asked->is_over)
        end_agent(p, asked, NULL);
    if (json_object_object_get_ex(event, "result", &result))
        write_result(p, asked, result, &text);
    else if (json_object_object_get_ex(event, "result_preview", NULL))
        write_long(p, event, &text);
    else
        proto_write_failure(event, &text);
    proto_keep(p, &text);
    c->is_client = false; /* it was answered here */
    settle_call(p, c, rv_buf_str(&text), event);
    rv_buf_fini(&text);
}

static void track_question(rv_protocol *p, json_object *body)
{
    const char *id = proto_member(body, "id"), *reason = NULL;
    json_object *data = rv_json_get_obj(body, "data");

    if (!id)
        return;
    if (data && rv_json_get_text(data, "reason", &reason) && strcmp(reason, RV_CLIENT_TOOLS) == 0 &&
        p->opts.n_client_tools > 0)
        return; /* its calls are told, and wait */
    for (size_t i = 0; i < p->n_questions; i++)
        if (strcmp(p->questions[i].id, id) == 0)
            return;
    if (p->n_questions >= RV_PROTOCOL_MAX_CALLS) {
        proto_fail(p, RV_E_LIMIT);
        return;
    }
    if (!rv_has_room(&p->questions, &p->cap_questions, p->n_questions + 1, sizeof *p->questions)) {
        proto_fail(p, RV_E_NOMEM);
        return;
    }
    struct proto_question *q = &p->questions[p->n_questions++];
    *q = (struct proto_question){.body = json_object_get(body), .id = id};
    p->ops->question(p, q);
}

static void action(rv_protocol *p, json_object *event)
{
    struct proto_owner *o = proto_owner_of(p, event);

    if (o && p->rc == 0)
        p->ops->action(p, o, event);
}

static void custom(rv_protocol *p, json_object *event)
{
    struct proto_owner *o = proto_owner_of(p, event);

    if (o && p->rc == 0)
        p->ops->custom(p, o, event);
}

/* NULL: clients are not told. */
static void (*const readers[RV_N_EMITS])(rv_protocol *p, json_object *event) = {
    [RV_EMIT_STAGE_STARTED] = stage_started,
    [RV_EMIT_STAGE_COMPLETED] = stage_completed,
    [RV_EMIT_LLM_CALL_START] = llm_call_start,
    [RV_EMIT_LLM_RESULT] = llm_result,
    [RV_EMIT_TOOL_CALL_START] = tool_call_start,
    [RV_EMIT_TOOL_RESULT] = tool_result,
    [RV_EMIT_AGENT_STARTED] = agent_started,
    [RV_EMIT_AGENT_COMPLETED] = agent_completed,
    [RV_EMIT_ACTION] = action,
    [RV_EMIT_CUSTOM] = custom,
    [RV_EMIT_INTERRUPT_PENDING] = track_question,
};

void proto_track_event(rv_protocol *p, json_object *event)
{
    const char *type = proto_member(event, "type");
    int kind = type ? rv_emit_of(rv_str_of(type)) : RV_UNSET;

    if (kind >= 0 && readers[kind])
        readers[kind](p, event);
}

void proto_track_broken(rv_protocol *p)
{
    for (size_t i = p->n_owners; i-- > 0 && p->rc == 0;) {
        struct proto_owner *o = p->owners[i];
        if (o->is_over || o->reply == 0 || o->reply_over)
            continue;
        end_reply(p, o, true);
        o->reply_broke = true;
    }
}

/* --- the end --- */

void proto_track_end(rv_protocol *p, const struct rv_protocol_end *end)
{
    for (size_t i = p->n_owners; i-- > 0 && p->rc == 0;)
        if (!p->owners[i]->is_over && p->owners[i]->reply > 0)
            end_reply(p, p->owners[i], proto_end_is_error(end));
    if (end->status != RV_RUN_INTERRUPTED) /* else the calls go on when it is answered */
        settle_rest(p, NULL);
}
