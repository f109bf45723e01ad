/* The engine as callers see it, and its turns. One turn: take what workers and the store thread have done, cancel what
 * is to be cancelled, let the next thing happen.
 *
 * Simulated time: the clock jumps to what is due next. A call on a worker has its place in the queue from the moment it
 * starts, so what comes after it waits for it, and how fast the workers are decides nothing. Its deadline is still
 * watched, in real time: a capability that hangs must not hang the simulation. */
#include <stdlib.h>
#include <unistd.h>

#include "coreengine/engine/quota_internal.h"
#include "coreengine/engine/services_internal.h"
#include "coreengine/engine/stuck_internal.h"

#define MAX_HEARD    (8 * RV_LLM_MAX_REPLY) /* bytes of what a cancelled run has heard: eight replies */
#define MAX_KEPT     8 /* steps of a group that are performed in one turn: other work of the loop waits meanwhile */
#define HELD_LOOK_US (20 * RV_US_PER_MS) /* how often a run that waits for its subscribers is looked at */
#define LOOK_EVERY   64                  /* turns without a sleep between two looks at signals and descriptors */

/* --- simulated time --- */

static int64_t real_now(void)
{
    struct rv_clock clock = rv_clock_system();
    return clock.now_us(clock.self);
}

/* Tells whether the first call of the queue is due now; waits a little for it when it is not. */
static bool virtual_ready(rv_engine *e, struct call *c)
{
    if (!engine_call_is_under_way(c)) {
        if (c->due_us > e->virtual_us)
            e->virtual_us = c->due_us;
        return true;
    }
    int64_t left = c->patience_us - real_now();
    if (left > 0) {
        engine_pool_wait(e->pool, left);
        return false;
    }
    engine_call_timed_out(c);
    c->due_us = c->deadline_us;
    engine_due_moved(&e->due, c);
    return false;
}

/* --- one turn --- */

/* One event for the core, and what it wants done: not before the journal has it. */
static void tell(rv_exec *x, const struct rv_event *ev)
{
    rv_err *err = NULL;

    int rc = exec_step(x, ev, &err);
    if (rc < 0)
        exec_break(x, rc, err);
    else if (!x->is_keeping)
        exec_perform(x);
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
        RV_IGNORE(!engine_delta_tell(c, &piece), "what a script says does not have to be held");
    if (++c->delta_at == c->n_deltas)
        return true;
    c->delay_us = c->deltas[c->delta_at].delay_ms * RV_US_PER_MS;
    engine_call_schedule(c);
    return false;
}

/* By a quota: the call is not made yet, or was freed. */
static bool is_held_back(struct call *c)
{
    rv_exec *x = c->x;
    rv_err *err = NULL;
    int rc = 0;
    bool is = engine_quota_waits(c, &rc, &err);

    if (rc < 0)
        exec_break(x, rc, err);
    return is;
}

static void answer(struct call *c)
{
    rv_exec *x = c->x;

    if (c->hold && is_held_back(c))
        return;
    if (c->model && !engine_model_due(c))
        return;
    if (engine_call_is_under_way(c)) { /* due because no answer came in time */
        RV_LOG(x->log, WARN, "call.timeout", RV_F_TEXT("stage", engine_call_stage(c)), RV_F_I64("visit", c->visit),
               RV_F_I64("call_id", c->call_id), RV_F_TEXT("kind", c->what), RV_F_TEXT("name", c->name));
        engine_call_timed_out(c);
    }
    if (!stream(c))
        return;
    if (x->is_keeping) {
        engine_call_park(c);
        return;
    }
    if (c->asked && !engine_call_probed(c))
        return;
    if (c->event == RV_EVENT_LLM_DONE)
        engine_delta_tell_rest(c);
    if (c->hold)
        engine_quota_settle(c);
    engine_call_detach(c); /* the run may end in this event, and with it all that is left */
    engine_health_note(c);
    struct rv_event ev = {.kind = c->event,
                          .now_us = exec_now_us(x),
                          .call_id = c->call_id,
                          .failed = c->failed,
                          .error_type = c->error_type[0] ? c->error_type : NULL,
                          .retryable = c->retryable,
                          .unknown = c->unknown,
                          .asks = c->asks && !c->failed && !c->unknown,
                          .code = c->failed ? c->code : NULL,
                          .causes = c->failed ? &c->causes : NULL,
                          .llm = c->answer};
    if (c->event == RV_EVENT_TOOL_DONE && c->tool.used.calls > 0) {
        ev.llm.usage = c->tool.used;
        ev.llm.has_usage = true;
    }
    if (c->failed) {
        ev.error = rv_buf_str(&c->text);
        ev.reply = rv_buf_str(c->partial.len > 0 ? &c->partial : &c->heard);
    } else {
        ev.reply = rv_buf_str(&c->text);
    }
    tell(x, &ev);
    engine_call_free(c);
}

/* The interrupt is answered by the script: the run goes on. */
static void resume(struct call *c)
{
    rv_exec *x = c->x;
    struct rv_event ev = {.kind = RV_EVENT_ANSWER, .now_us = exec_now_us(x), .response = c->response};
    rv_err *err = NULL;

    engine_call_detach(c); /* the run may end in this event, and with it all that is left */
    int rc = exec_step(x, &ev, &err);
    engine_call_free(c);
    if (rc < 0 && rc != RV_E_NOMEM)
        rc = RV_WRAP(&err, rc, "the script's answer does not fit");
    if (rc < 0)
        exec_break(x, rc, err);
    else if (!x->is_keeping)
        exec_perform(x);
}

/* What a person said while other branches ran. It was checked when it came; what happened since may have withdrawn the
 * question. */
static void told(struct call *c)
{
    rv_exec *x = c->x;
    rv_err *err = NULL;

    if (x->is_keeping) {
        engine_call_park(c);
        return;
    }
    engine_call_detach(c); /* the run may end in this event, and with it all that is left */
    if (x->effects.n > 0)  /* of its recovery */
        exec_perform(x);
    struct rv_event ev = {.kind = RV_EVENT_ANSWER, .now_us = exec_now_us(x), .response = c->response};
    int rc = x->over ? rv_exec_answer(x, &c->response, &err) : exec_step(x, &ev, &err);
    engine_call_free(c);
    if (rc == 0) {
        if (!x->is_keeping)
            exec_perform(x);
        return;
    }
    if (rc != RV_E_NOMEM && !x->is_unkept && x->rc == 0) {
        RV_LOG(x->log, WARN, "answer.refused", RV_F_ERR("error", err));
        rv_err_free(err);
        err = NULL;
        rc = rv_run_is_finished(x->run) && !x->over && !exec_is_told(x) ? exec_pause(x, &err) : 0;
    }
    if (rc < 0)
        exec_break(x, rc, err);
}

/* A question of a run that is held has expired: the run goes on by that. */
static void expire(struct call *c)
{
    rv_exec *x = c->x;
    char id[RV_ID_MAX];
    struct rv_response response;
    rv_err *err = NULL;

    if (x->is_keeping) {
        engine_call_park(c);
        return;
    }
    engine_call_free(c);
    x->expiry_us = 0;
    if (!rv_run_find_due_question(x->run, exec_now_us(x), id, &response))
        return;
    int rc = rv_exec_answer(x, &response, &err);
    if (rc < 0)
        RV_LOG(x->log, ERROR, "question.unexpired", RV_F_ERR("error", err));
    rv_err_free(err);
}

static void happen(struct call *c)
{
    rv_exec *x = c->x;

    switch (c->kind) {
    case CALL_BEGIN:
        engine_call_free(c);
        exec_perform(x);
        break;
    case CALL_ANSWER:
        answer(c);
        break;
    case CALL_RESUME:
        resume(c);
        break;
    case CALL_TOLD:
        told(c);
        break;
    case CALL_EXPIRE:
        expire(c);
        break;
    case CALL_STUCK:
        engine_call_free(c);
        engine_stuck_end(x);
        break;
    }
}

static void tell_cancel(rv_exec *x)
{
    rv_buf heard = RV_BUF_INIT(MAX_HEARD);
    struct rv_event ev = {.kind = RV_EVENT_CANCEL, .now_us = exec_now_us(x)};

    engine_heard_write(x->calls, &heard);
    if (heard.rc < 0) {
        rv_err *err = NULL;
        exec_break(x, RV_FAIL(&err, RV_E_NOMEM, "cancel a run"), err);
    } else {
        ev.reply = rv_buf_str(&heard);
        tell(x, &ev);
    }
    rv_buf_fini(&heard);
}

static void cancel(rv_exec *x)
{
    if (x->over || x->is_keeping || x->is_opening || x->is_stuck) /* heard when the step is kept, or the journal open */
        return;
    if (rv_run_is_finished(x->run)) { /* it waits for the script's answer: then it stays interrupted */
        engine_call_free_all(x);
        exec_end(x);
        return;
    }
    if (x->effects.n > 0) /* of its first step */
        exec_perform(x);
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

/* True: steps became durable, and more may be waiting. */
static bool collect(rv_engine *e)
{
    engine_pool_collect(e->pool);
    struct write *w = e->writer ? engine_writer_take_done(e->writer, MAX_KEPT) : NULL;
    bool any = w != NULL;
    while (w) {
        struct write *next = w->next;
        w->done(w);
        w = next;
    }
    return any;
}

/* False: it was told this question before. Short of memory, a question may be told twice. */
static bool note_told(rv_exec *x, const char *id)
{
    if (!x->told)
        x->told = json_object_new_object();
    if (!x->told || json_object_object_get_ex(x->told, id, NULL))
        return !x->told;
    RV_IGNORE(rv_json_set_take(x->told, id, json_object_new_boolean(true), NULL), "it is told again then");
    return true;
}

/* Questions of an envelope that were not told yet; those that name no stage are of that one. */
static void tell_questions_of(rv_exec *x, const rv_envelope *env, const char *stage)
{
    const struct rv_observer *o = &x->opts.observer;
    struct rv_pendings p = {0};
    rv_err *err = NULL;
    bool is_over = x->over; /* an answer to a run that paused begins it again */

    if (rv_pendings_build(env, stage, &p, &err) < 0)
        RV_LOG(x->log, ERROR, "question.untold", RV_F_ERR("error", err));
    for (size_t i = 0; i < p.n && x->over == is_over; i++)
        if (note_told(x, p.items[i].id))
            o->on_question(o->self, x, &p.items[i]);
    rv_pendings_fini(&p);
    rv_err_free(err);
}

static void tell_questions(rv_exec *x)
{
    const struct rv_observer *o = &x->opts.observer;

    if (!o->on_question || x->rc < 0 || x->status != RV_RUN_INTERRUPTED)
        return;
    const rv_envelope *env = rv_run_envelope(x->run);
    const char *asked_by = rv_run_question_stage(x->run);
    tell_questions_of(x, env, asked_by ? asked_by : rv_envelope_fields(env)->current_stage);
}

/* Questions of branches, while others run. */
static void tell_asking(rv_engine *e)
{
    for (rv_exec *x = e->n_asking > 0 ? e->execs : NULL; x; x = x->next) {
        const char *stage = NULL;
        const rv_envelope *env;

        if (!x->is_asking)
            continue;
        x->is_asking = false;
        e->n_asking--;
        for (size_t i = 0;
             !x->over && x->opts.observer.on_question && (env = rv_run_question_envelope_at(x->run, i, &stage)); i++)
            tell_questions_of(x, env, stage);
    }
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
            if (x->over && !x->is_untold && x->opts.observer.on_ended)
                x->opts.observer.on_ended(x->opts.observer.self, x, x->rc, x->err);
            next = e->execs; /* the list may be another one now */
        }
        x = next;
    }
}

/* Runs that are over and whose subscribers received the last event, or used up their time. */
static void let_go(rv_engine *e)
{
    for (rv_exec *x = e->n_held > 0 ? e->execs : NULL; x; x = x->next)
        if (x->is_held && engine_subscribers_let_go(x))
            exec_tell_over(x);
}

static bool let_happen(rv_engine *e)
{
    bool any = collect(e);

    engine_services_tick(e);
    engine_leases_tick(e);
    if (cancel_asked(e))
        return true;
    struct call *c = engine_due_top(&e->due);
    if (!c)
        return any;
    if (e->opts.virtual_time) {
        if (virtual_ready(e, c))
            happen(c);
        return true;
    }
    if (c->due_us > rv_engine_now_us(e))
        return any;
    happen(c);
    return true;
}

static bool engine_turn(rv_engine *e)
{
    bool any = let_happen(e);

    engine_handovers_tick(e);
    let_go(e);
    any = any || e->n_untold > 0 || e->n_asking > 0;
    tell_asking(e);
    tell_over(e);
    return any;
}

/* How long until something is due; RV_NEVER: only a message from outside can wake the engine. */
static int64_t due_in_us(const rv_engine *e)
{
    const struct call *c = engine_due_top(&e->due);
    int64_t due_us = c ? c->due_us : RV_NEVER, renew_us = engine_leases_due_us(e), ask_us = engine_services_due_us(e);

    renew_us = renew_us < ask_us ? renew_us : ask_us;
    due_us = due_us < renew_us ? due_us : renew_us;
    if (e->n_held > 0 && (due_us == RV_NEVER || due_us - rv_engine_now_us(e) > HELD_LOOK_US))
        return HELD_LOOK_US;
    return due_us == RV_NEVER ? RV_NEVER : due_us - rv_engine_now_us(e);
}

/* --- the engine --- */

int rv_engine_new(const struct rv_engine_opts *opts, rv_engine **out, rv_err **err)
{
    rv_engine *e;

    if (opts->loop && opts->virtual_time)
        return RV_FAIL(err, RV_E_INVALID, "make an engine: simulated time needs no loop and cannot use one");
    e = calloc(1, sizeof *e);
    if (!e)
        return RV_FAIL(err, RV_E_NOMEM, "make an engine");
    e->opts = *opts;
    e->clock = opts->clock.now_us ? opts->clock : rv_clock_system();
    e->virtual_us = opts->virtual_start_us;
    e->turn = engine_turn;
    e->due_in_us = due_in_us;
    e->gate = engine_quota_call;
    atomic_init(&e->cancel_all, false);
    int rc = e->opts.handle_signals ? engine_signals_watch(e, err) : 0;
    if (rc < 0) {
        free(e);
        return rc;
    }
    rc = e->opts.loop ? engine_loop_ensure(e, err) : 0;
    if (rc == 0)
        rc = engine_writer_start(e, err);
    if (rc < 0) {
        rv_engine_free(e);
        return rc;
    }
    *out = e;
    return 0;
}

void rv_engine_free(rv_engine *e)
{
    if (!e)
        return;
    for (rv_exec *x = e->execs, *next; x; x = next) {
        next = x->next;
        engine_keep_wait(x);
        if (x->is_freed) {
            rv_exec_free(x);
            continue;
        }
        if (x->own)
            engine_own_end(x->own);
        x->own = NULL;
        engine_call_free_all(x);
        engine_subscribers_stop(x);
        x->over = true;
        x->engine = NULL;
        x->prev = x->next = NULL;
    }
    engine_signals_unwatch(e);
    engine_leases_fini(e);
    engine_writer_stop(e);
    engine_quotas_free_left(e);
    engine_services_fini(e);
    engine_models_fini(e);
    engine_pool_free(e->pool);
    engine_loop_free(e->loop);
    free(e->due.items);
    engine_tool_records_fini(&e->tools);
    free(e);
}

static void close_now(rv_engine *e)
{
    void (*on_closed)(void *self) = e->on_closed;
    void *self = e->closed_self;

    rv_engine_free(e);
    if (on_closed)
        on_closed(self);
}

void rv_engine_close(rv_engine *e, void (*on_closed)(void *self), void *self)
{
    e->close = close_now;
    e->on_closed = on_closed;
    e->closed_self = self;
    engine_loop_hold(e->loop);
    engine_loop_wake(e->loop);
}

void rv_engine_cancel_all(rv_engine *e)
{
    atomic_store(&e->cancel_all, true); /* first, so that a loop that is just being made sees it */
    struct shell_loop *loop = e->loop;
    struct pool *pool = e->pool;
    if (loop)
        engine_loop_wake(loop);
    else if (pool)
        engine_pool_poke(pool);
}

void rv_engine_forget_cancel(rv_engine *e)
{
    atomic_store(&e->cancel_all, false);
}

bool rv_engine_is_cancelled(const rv_engine *e)
{
    return atomic_load(&e->cancel_all);
}

int rv_engine_wait(rv_engine *e, rv_exec *x, rv_err **err)
{
    bool is_virtual = e->opts.virtual_time;

    while (!x->over || x->is_held) {
        int rc = x->is_held || x->calls || x->cancel_asked || x->is_keeping || x->is_opening
                     ? 0
                     : RV_FAIL(err, RV_E_INTERNAL, "the run waits for nothing");
        if (rc == 0 && !engine_turn(e) && (!is_virtual || x->is_held))
            rc = engine_loop_run(e, true, err);
        else if (rc == 0 && ++e->n_turns % LOOK_EVERY == 0 && e->loop)
            rc = engine_loop_run(e, false, err);
        if (rc < 0)
            return rc;
    }
    if (x->rc == 0)
        return 0;
    if (err)
        rv_err_pass(err, rv_err_steal(&x->err));
    return x->rc;
}
