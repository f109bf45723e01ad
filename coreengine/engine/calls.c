/* The queue of what will happen, and its items: an answer, a timer, a part of a stream. The queue is a binary heap that
 * knows where each item is. Also here: the partial answers of calls that are given up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/engine/engine_internal.h"
#include "envelope/envelope.h"

/* --- the queue --- */

static bool before(const struct call *a, const struct call *b)
{
    if (a->due_us != b->due_us)
        return a->due_us < b->due_us;
    if (a->call_id != b->call_id)
        return a->call_id < b->call_id;
    return a->x->number < b->x->number;
}

static void put(struct due_queue *q, size_t at, struct call *c)
{
    q->items[at] = c;
    c->heap_at = at;
}

static void up(struct due_queue *q, size_t at)
{
    struct call *c = q->items[at];

    while (at > 0 && before(c, q->items[(at - 1) / 2])) {
        put(q, at, q->items[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(q, at, c);
}

static void down(struct due_queue *q, size_t at)
{
    struct call *c = q->items[at];

    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < q->n && before(q->items[child + 1], q->items[child]))
            child++;
        if (child >= q->n || !before(q->items[child], c))
            break;
        put(q, at, q->items[child]);
        at = child;
    }
    put(q, at, c);
}

/* RV_E_NOMEM */
static int push(struct due_queue *q, struct call *c)
{
    if (!rv_has_room(&q->items, &q->cap, q->n + 1, sizeof *q->items))
        return RV_E_NOMEM;
    put(q, q->n++, c);
    up(q, q->n - 1);
    return 0;
}

void engine_due_moved(struct due_queue *q, struct call *c)
{
    up(q, c->heap_at);
    down(q, c->heap_at);
}

static void remove_due(struct due_queue *q, struct call *c)
{
    size_t at = c->heap_at;
    struct call *last = q->items[--q->n];

    if (last == c)
        return;
    put(q, at, last);
    engine_due_moved(q, last);
}

/* --- items --- */

int64_t rv_engine_now_us(const rv_engine *e)
{
    return e->opts.virtual_time ? e->virtual_us : e->clock.now_us(e->clock.self);
}

rv_log *rv_engine_log(const rv_engine *e)
{
    return e->opts.log;
}

struct call *engine_call_new(rv_exec *x, enum call_kind kind, int64_t due_us, int64_t call_id)
{
    struct call *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->x = x;
    c->kind = kind;
    c->due_us = due_us;
    c->call_id = call_id;
    c->started_us = rv_engine_now_us(x->engine);
    c->stage = -1;
    c->text = RV_BUF_INIT(RV_ENGINE_MAX_ERROR);
    c->heard = RV_BUF_INIT(RV_LLM_MAX_REPLY);
    c->pipeline = x->opts.pipeline;
    c->answer = RV_LLM_ANSWER_NONE;
    if (push(&x->engine->due, c) < 0) {
        free(c);
        return NULL;
    }
    c->next = x->calls;
    if (c->next)
        c->next->prev = c;
    x->calls = c;
    return c;
}

const char *engine_call_stage(const struct call *c)
{
    return c->stage >= 0 ? c->x->opts.pipeline->agents[c->stage].name : NULL;
}

void engine_call_detach(struct call *c)
{
    rv_exec *x = c->x;

    if (c->heap_at == RV_NOWHERE)
        return;
    remove_due(&x->engine->due, c);
    c->heap_at = RV_NOWHERE;
    if (c->prev)
        c->prev->next = c->next;
    else
        x->calls = c->next;
    if (c->next)
        c->next->prev = c->prev;
}

bool engine_call_is_under_way(const struct call *c)
{
    return c->work || c->tool.source;
}

void engine_call_await(struct call *c)
{
    rv_engine *e = c->x->engine;

    if (e->opts.virtual_time) {
        c->patience_us = rv_clock_system().now_us(rv_clock_system().self) + (c->deadline_us - c->started_us);
        return;
    }
    c->due_us = c->deadline_us ? c->deadline_us : RV_NEVER;
    engine_due_moved(&e->due, c);
}

static void give_up(struct call *c)
{
    const struct rv_tool_workers workers = engine_pool(c->x->engine);

    if (c->work)
        workers.give_up(workers.self, &c->work->work);
    c->work = NULL;
    rv_tool_call_cancel(&c->tool);
}

void engine_call_free(struct call *c)
{
    give_up(c);
    if (c->hold)
        c->hold->release(c);
    engine_call_detach(c);
    engine_model_free(c->model);
    if (c->llm)
        rv_llm_reply_fini(c->llm);
    free(c->llm);
    rv_buf_fini(&c->text);
    rv_err_free(c->causes);
    rv_buf_fini(&c->partial);
    rv_buf_fini(&c->heard);
    engine_call_forget_asked(c);
    if (c->kind == CALL_TOLD)
        engine_response_fini(&c->response);
    json_object_put(c->ids);
    json_object_put(c->taken);
    free(c->name);
    free(c);
}

void engine_call_free_all(rv_exec *x)
{
    while (x->calls)
        engine_call_free(x->calls);
}

struct call *engine_call_find(rv_exec *x, int64_t call_id)
{
    struct call *c = x->calls;

    while (c && c->call_id != call_id)
        c = c->next;
    return c;
}

void engine_call_park(struct call *c)
{
    c->is_parked = true;
    c->due_us = RV_NEVER;
    engine_due_moved(&c->x->engine->due, c);
}

void engine_calls_unpark(rv_exec *x)
{
    int64_t now_us = rv_engine_now_us(x->engine);

    for (struct call *c = x->calls; c; c = c->next) {
        if (!c->is_parked)
            continue;
        c->is_parked = false;
        if (c->due_us > now_us)
            c->due_us = now_us;
        engine_due_moved(&x->engine->due, c);
    }
}

static void begin_failure(struct call *c, const char *type, bool retryable)
{
    c->failed = true;
    c->retryable = retryable;
    c->n_deltas = 0;
    c->code = NULL;
    rv_err_free(c->causes);
    c->causes = NULL;
    snprintf(c->error_type, sizeof c->error_type, "%s", type);
    rv_buf_fini(&c->text);
    c->text = RV_BUF_INIT(RV_ENGINE_MAX_ERROR);
}

/* The text as it is told, with the line of reeve that found it. */
static void keep_cause(struct call *c, int code, const char *c_file, int c_line)
{
    rv_err_free(c->causes);
    c->causes = NULL;
    RV_IGNORE(rv_err_add_at(&c->causes, code, c_file, c_line, NULL, "%s", rv_buf_cstr(&c->text)), "the text is kept");
}

void engine_call_fail(struct call *c, const char *type, bool retryable, const char *fmt, ...)
{
    va_list args;

    begin_failure(c, type, retryable);
    va_start(args, fmt);
    rv_buf_vprintf(&c->text, fmt, args);
    va_end(args);
}

int engine_call_fail_with(struct call *c, const char *type, int rc, rv_err **err)
{
    if (rc == RV_E_NOMEM)
        return rc;
    begin_failure(c, type, false);
    rv_err_write_chain(*err, &c->text);
    c->code = rv_failure_text(rv_failure_of_err(*err));
    c->causes = rv_err_steal(err);
    return 0;
}

/* Names the key that limited the time of a model call. */
void engine_call_say_limit(struct call *c)
{
    const struct rv_execution_config *e = &c->x->opts.pipeline->execution;
    const struct rv_agent *a = &c->pipeline->agents[c->agent];
    bool is_agents = e->has_agent_timeout && e->agent_timeout_ms < a->limits.timeout_seconds * 1000;

    if (!c->allowed_us)
        rv_buf_puts(&c->text, ": execution.llm_timeout and its stage's timeout_seconds leave it no longer");
    else if (c->allowed_us >= e->llm_timeout_ms * RV_US_PER_MS)
        rv_buf_puts(&c->text, ": raise execution.llm_timeout");
    else if (is_agents)
        rv_buf_printf(&c->text, ": that was left of %lld ms for stage \"%s\"; raise execution.agent_timeout",
                      (long long)e->agent_timeout_ms, a->name);
    else
        rv_buf_printf(&c->text, ": that was left of the %lld s for stage \"%s\"; raise its timeout_seconds",
                      (long long)a->limits.timeout_seconds, a->name);
}

void engine_call_timed_out(struct call *c)
{
    int64_t us =
        c->allowed_us ? c->allowed_us : c->deadline_us - c->started_us; /* the request began some time after the step */

    give_up(c);
    engine_call_fail(c, rv_error_timeout, true, "%s \"%s\" did not answer within %lld ms", c->what, c->name,
                     (long long)(us + 999) / 1000);
    if (c->has_own_limit) {
        rv_buf_puts(&c->text, ": its own limit, timeout_ms of its specification");
        c->code =
            rv_failure_text(RV_FAILURE_HOOK_TIMED_OUT); /* also of a mock, for which the stage's limit is not it */
    }
    if (c->event == RV_EVENT_LLM_DONE) {
        engine_call_say_limit(c);
        c->answer = RV_LLM_ANSWER_NONE;
        c->answer.error_kind = RV_LLM_ERROR_TIMEOUT;
        c->answer.may_be_billed = true;
    }
}

void engine_call_take_llm(struct call *c, const struct rv_llm_reply *reply)
{
    c->failed = reply->failed;
    c->answer = rv_llm_reply_answer(reply);
    rv_buf_fini(&c->text);
    c->text = RV_BUF_INIT(RV_LLM_MAX_REPLY);
    if (!reply->failed) {
        rv_buf_add_str(&c->text, rv_buf_str(&reply->text));
        return;
    }
    c->retryable = reply->retryable;
    c->code = reply->code == rv_llm_error_code(reply->answer.error_kind) ? NULL : rv_failure_text(reply->code);
    snprintf(c->error_type, sizeof c->error_type, "%s", rv_llm_error_type(reply->answer.error_kind));
    rv_buf_add_str(&c->text, rv_buf_str(&reply->error));
    if (reply->c_file && !c->causes)
        keep_cause(c, RV_E_PROVIDER, reply->c_file, reply->c_line);
    if (reply->text.len > 0) {
        rv_buf_fini(&c->partial);
        c->partial = RV_BUF_INIT(RV_LLM_MAX_REPLY);
        rv_buf_add_str(&c->partial, rv_buf_str(&reply->text));
    }
}

void engine_call_answered(struct call *c)
{
    rv_engine *e = c->x->engine;

    if (e->opts.virtual_time)
        return; /* it has its place in the queue since it started */
    c->due_us = rv_engine_now_us(e);
    engine_due_moved(&e->due, c);
}

/* --- partial answers --- */

#define CUT_MARK          "\u2026"
#define MOST_ESCAPED      6  /* bytes of JSON for one byte of text: a control character */
#define BYTES_OF_A_MEMBER 64 /* of JSON around a text */

static bool has_heard(const struct call *c)
{
    return c->event == RV_EVENT_LLM_DONE && c->kind == CALL_ANSWER && c->heard.len > 0 && c->heard.rc != RV_E_NOMEM;
}

static void write_heard(const struct call *calls, size_t most, rv_buf *out)
{
    rv_jw w = rv_jw_on(out);
    rv_buf text = RV_BUF_INIT(RV_LLM_MAX_REPLY + sizeof CUT_MARK);
    bool any = false;

    for (const struct call *c = calls; c; c = c->next) {
        if (!has_heard(c))
            continue;
        if (!any)
            rv_jw_arr(&w);
        any = true;
        rv_jw_obj(&w);
        rv_jw_kv_int(&w, "call_id", c->call_id);
        rv_buf_clear(&text);
        rv_buf_add_str(&text, rv_utf8_cut(rv_buf_str(&c->heard), most));
        if (text.len < c->heard.len || c->heard.rc < 0)
            rv_buf_puts(&text, CUT_MARK);
        rv_jw_kv_str(&w, "text", rv_buf_str(&text));
        rv_jw_obj_end(&w);
    }
    if (any)
        rv_jw_arr_end(&w);
    if (text.rc < 0)
        out->rc = text.rc;
    rv_buf_fini(&text);
}

void engine_heard_write(const struct call *calls, rv_buf *out)
{
    size_t n = 0;

    write_heard(calls, SIZE_MAX, out);
    if (out->rc != RV_E_LIMIT)
        return;
    rv_buf_clear(out);
    for (const struct call *c = calls; c; c = c->next)
        n += has_heard(c);
    size_t share = out->max / (n ? n : 1);
    write_heard(calls, share > BYTES_OF_A_MEMBER ? (share - BYTES_OF_A_MEMBER) / MOST_ESCAPED : 0, out);
}
