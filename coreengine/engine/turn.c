/* One turn of the loop: take what the workers have done, cancel what is to be cancelled, let the next thing happen. */
#include <stdlib.h>

#include "coreengine/engine/engine_internal.h"

#define MAX_HEARD (8 * RV_LLM_MAX_REPLY) /* of what a cancelled run is told */
#define MAX_KEPT  8                      /* steps of a group that are performed in one turn */

/* One event for the core, and what it wants done: not before the journal has it. */
static void tell(rv_exec *x, const struct rv_event *ev)
{
    rv_err *err = NULL;

    int rc = rv_exec_step(x, ev, &err);
    if (rc < 0)
        rv_exec_break(x, rc, err);
    else if (!x->is_keeping)
        rv_exec_perform(x);
}

/* Hand out one part of a streamed reply; false: that was not the last. */
static bool stream(struct call *c)
{
    if (c->delta_at >= c->n_deltas)
        return true;
    const struct rv_script_delta *d = &c->deltas[c->delta_at];
    const struct rv_llm_delta piece = {.kind = d->is_thinking ? RV_LLM_DELTA_THINKING : RV_LLM_DELTA_TEXT,
                                       .text = d->text};
    if (d->text.len > 0)
        RV_IGNORE(!rv_delta_tell(c, &piece), "what a script says does not have to be held");
    if (++c->delta_at == c->n_deltas)
        return true;
    c->delay_us = c->deltas[c->delta_at].delay_ms * 1000;
    rv_call_schedule(c);
    return false;
}

static void answer(struct call *c)
{
    rv_exec *x = c->x;

    if (c->model && !rv_model_due(c))
        return;
    if (rv_call_is_under_way(c)) { /* due because no answer came in time */
        RV_LOG(x->engine->opts.log, WARN, "call.timeout", RV_F_TEXT("kind", c->what), RV_F_TEXT("name", c->name),
               RV_F_I64("call_id", c->call_id));
        rv_call_timed_out(c);
    }
    if (!stream(c))
        return;
    if (x->is_keeping) {
        rv_call_park(c);
        return;
    }
    if (c->asked && !rv_call_probed(c))
        return;
    if (c->event == RV_EVENT_LLM_DONE)
        rv_delta_tell_rest(c);
    rv_call_detach(c); /* the run may end in this event, and with it all that is left */
    rv_tool_note(c);
    struct rv_event ev = {.kind = c->event,
                          .now_us = rv_exec_now_us(x),
                          .call_id = c->call_id,
                          .failed = c->failed,
                          .error_type = c->error_type[0] ? c->error_type : NULL,
                          .retryable = c->retryable,
                          .unknown = c->unknown,
                          .code = c->failed ? c->code : NULL,
                          .causes = c->failed ? &c->causes : NULL,
                          .llm = c->answer};
    if (c->failed) {
        ev.error = rv_buf_str(&c->text);
        ev.reply = rv_buf_str(c->partial.len > 0 ? &c->partial : &c->heard);
    } else {
        ev.reply = rv_buf_str(&c->text);
    }
    tell(x, &ev);
    rv_call_free(c);
}

/* The interrupt is answered by the script: the run goes on. */
static void resume(struct call *c)
{
    rv_exec *x = c->x;
    struct rv_event ev = {.kind = RV_EVENT_ANSWER, .now_us = rv_exec_now_us(x), .response = c->response};
    rv_err *err = NULL;

    rv_call_free(c);
    int rc = rv_exec_step(x, &ev, &err);
    if (rc < 0 && rc != RV_E_NOMEM)
        rc = RV_WRAP(&err, rc, "the script's answer does not fit");
    if (rc < 0)
        rv_exec_break(x, rc, err);
    else if (!x->is_keeping)
        rv_exec_perform(x);
}

static void happen(struct call *c)
{
    rv_exec *x = c->x;

    switch (c->kind) {
    case CALL_BEGIN:
        rv_call_free(c);
        rv_exec_perform(x);
        break;
    case CALL_ANSWER:
        answer(c);
        break;
    case CALL_RESUME:
        resume(c);
        break;
    }
}

/* The partial answers of pending model calls, whose rest will not be read. */
static void write_heard(const rv_exec *x, rv_buf *out)
{
    rv_jw w = rv_jw_on(out);
    bool any = false;

    for (const struct call *c = x->calls; c; c = c->next) {
        if (c->event != RV_EVENT_LLM_DONE || c->kind != CALL_ANSWER || c->heard.len == 0 || c->heard.rc < 0)
            continue;
        if (!any)
            rv_jw_arr(&w);
        any = true;
        rv_jw_obj(&w);
        rv_jw_kv_int(&w, "call_id", c->call_id);
        rv_jw_kv_str(&w, "text", rv_buf_str(&c->heard));
        rv_jw_obj_end(&w);
    }
    if (any)
        rv_jw_arr_end(&w);
}

static void tell_cancel(rv_exec *x)
{
    rv_buf heard = RV_BUF_INIT(MAX_HEARD);
    struct rv_event ev = {.kind = RV_EVENT_CANCEL, .now_us = rv_exec_now_us(x)};

    write_heard(x, &heard);
    if (heard.rc == RV_E_NOMEM) {
        rv_err *err = NULL;
        rv_exec_break(x, RV_FAIL(&err, RV_E_NOMEM, "cancel a run"), err);
    } else {
        if (heard.rc == 0)
            ev.reply = rv_buf_str(&heard);
        tell(x, &ev);
    }
    rv_buf_fini(&heard);
}

static void cancel(rv_exec *x)
{
    if (x->over || x->is_keeping) /* heard when the step is kept */
        return;
    if (rv_run_is_finished(x->run)) { /* it waits for the script's answer: then it stays interrupted */
        rv_call_free_all(x);
        rv_exec_end(x);
        return;
    }
    if (x->effects.n > 0) /* of its first step */
        rv_exec_perform(x);
    if (!x->over)
        tell_cancel(x);
}

/* False: there was no request to cancel. */
static bool cancel_asked(rv_engine *e)
{
    bool all = atomic_exchange(&e->cancel_all, false);

    if (!all && !e->any_cancel)
        return false;
    e->any_cancel = false;
    for (rv_exec *x = e->execs; x; x = x->next) {
        x->cancel_asked = x->cancel_asked || all;
        if (x->cancel_asked)
            cancel(x);
    }
    return true;
}

/* True: steps were kept; there may be more of them. */
static bool collect(rv_engine *e)
{
    struct pool *pool = e->pool;
    struct piece *piece = NULL;
    struct job *j = pool ? rv_pool_take_done(pool, &piece) : NULL;

    while (piece) {
        struct piece *next = piece->next;
        rv_delta_piece(piece);
        rv_piece_free(piece);
        piece = next;
    }
    while (j) {
        struct job *next = j->next;
        rv_call_job_done(j);
        j = next;
    }
    struct write *w = e->writer ? rv_writer_take_done(e->writer, MAX_KEPT) : NULL;
    bool any = w != NULL;
    while (w) {
        struct write *next = w->next;
        w->done(w);
        w = next;
    }
    return any;
}

static void tell_questions(rv_exec *x)
{
    const struct rv_observer *o = &x->opts.observer;
    struct rv_pendings p = {0};
    rv_err *err = NULL;

    if (!o->on_question || x->rc < 0 || x->status != RV_RUN_INTERRUPTED)
        return;
    const rv_envelope *env = rv_run_envelope(x->run);
    const char *asked_by = rv_run_asked_by(x->run);
    if (rv_pendings_of(env, asked_by ? asked_by : rv_envelope_fields(env)->current_stage, &p, &err) < 0)
        RV_LOG(x->engine->opts.log, ERROR, "question.untold", RV_F_ERR("error", err));
    for (size_t i = 0; i < p.n && x->over; i++)
        o->on_question(o->self, x, &p.items[i]);
    rv_pendings_fini(&p);
    rv_err_free(err);
}

/* Called at the end of a turn, because the callback may free the run. */
static void tell_over(rv_engine *e)
{
    rv_exec *x = e->n_untold > 0 ? e->execs : NULL;

    while (x && e->n_untold > 0) {
        rv_exec *next = x->next;
        if (x->is_untold) {
            x->is_untold = false;
            e->n_untold--;
            tell_questions(x);
            if (x->over && !x->is_untold && x->opts.observer.on_over)
                x->opts.observer.on_over(x->opts.observer.self, x, x->rc, x->err);
            next = e->execs; /* the list may be another one now */
        }
        x = next;
    }
}

static bool let_happen(rv_engine *e)
{
    bool any = collect(e);

    rv_leases_tend(e);
    if (cancel_asked(e))
        return true;
    struct call *c = rv_due_top(&e->due);
    if (!c)
        return any;
    if (e->opts.virtual_time) {
        if (rv_virtual_ready(e, c))
            happen(c);
        return true;
    }
    if (c->due_us > rv_engine_now_us(e))
        return any;
    happen(c);
    return true;
}

bool rv_engine_turn(rv_engine *e)
{
    bool any = let_happen(e);

    any = any || e->n_untold > 0;
    tell_over(e);
    return any;
}

int64_t rv_engine_due_us(const rv_engine *e)
{
    const struct call *c = rv_due_top(&e->due);
    int64_t due_us = c ? c->due_us : RV_NEVER, tend_us = rv_leases_due_us(e);

    return due_us < tend_us ? due_us : tend_us;
}
