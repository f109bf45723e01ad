/* A worker: one loop, one engine, many runs. Tasks come from the dispatcher's thread with their runs taken over and
 * loaded; here the runs go on, and their results go back to the dispatcher.
 *
 * SIGTERM and SIGINT drain it. Nothing new is claimed. What is claimed and has not begun is handed back; a run that
 * goes on is handed over as soon as none of its calls is under way. When the grace time is over, calls that may be
 * repeated are given up; a run with a call that must not be is left as after a crash. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "coreengine/app/past.h"
#include "coreengine/app/recover.h"
#include "coreengine/app/worker/hook_internal.h"
#include "coreengine/base/loop.h"
#include "coreengine/tools/mcp/mcp.h"

#define EXIT_REFUSED 2                 /* of `reeve run-host`: the run did not go on */
#define MAX_LINE     ((size_t)4 << 10) /* bytes of one line of the log: as an error's text has */

struct shell {
    struct rv_worker worker;
    uv_loop_t loop;
    uv_async_t wake;
    uv_timer_t grace;
    uv_signal_t signals[2];
    rv_store *store;
    struct work_dispatcher *dispatcher; /* owned */
    struct work_job *jobs;              /* that go on, by `next` */
    struct work_hooks *hooks;           /* owned */
    bool is_draining, is_over;
    struct rv_worker_done done;
};

/* --- what people are told --- */

static void say(struct shell *s, const char *fmt, ...) RV_PRINTF(2, 3);
static void say(struct shell *s, const char *fmt, ...)
{
    const struct rv_worker_opts *o = s->worker.opts;
    rv_buf line = RV_BUF_INIT(MAX_LINE);
    va_list args;

    if (!o->say)
        return;
    va_start(args, fmt);
    rv_buf_vprintf(&line, fmt, args);
    va_end(args);
    o->say(o->self, rv_buf_cstr(&line));
    rv_buf_fini(&line);
}

static void say_end(struct shell *s, const struct work_job *j)
{
    const char *type = j->task.type, *id = j->handler || !j->run[0] ? j->task.id : j->run;
    const char *what = j->handler || !j->run[0] ? "task" : "run";

    switch (j->end) {
    case WORK_DONE:
        say(s, "%s %s: %s", what, id, j->error.len > 0 ? rv_buf_cstr(&j->error) : "done");
        break;
    case WORK_FAILED:
        say(s, "%s %s (%s): failed: %s; %lld of %lld retries used", what, id, type, rv_buf_cstr(&j->error),
            (long long)j->task.retry_count, (long long)j->task.max_retries);
        break;
    case WORK_FATAL:
        say(s, "%s %s (%s): failed: %s", what, id, type, rv_buf_cstr(&j->error));
        break;
    case WORK_BACK:
        say(s, "%s %s: handed back%s%s", what, id, j->error.len > 0 ? ": " : "", rv_buf_cstr(&j->error));
        break;
    case WORK_QUOTA:
        say(s, "%s %s: put off: %s", what, id, rv_buf_cstr(&j->error));
        break;
    case WORK_LATER:
        if (j->crashes == 0)
            say(s, "%s %s: put off: it is under way%s", what, id,
                j->owes_answer ? ", and may take this answer afterwards" : "");
        else
            say(s, "%s %s: put off: it crashed %lld process%s in a row", what, id, (long long)j->crashes,
                j->crashes == 1 ? "" : "es");
        break;
    case WORK_LEFT:
        say(s, "%s %s: left with a call under way", what, id);
        break;
    case WORK_RUNS:
        break;
    }
}

/* --- the end of a job --- */

static void close_all(struct shell *s);
static void drain(struct shell *s);

static void maybe_end(struct shell *s)
{
    const struct rv_worker_opts *o = s->worker.opts;

    if (s->is_over || s->jobs)
        return;
    if (s->is_draining ? app_work_dispatcher_is_empty(s->dispatcher)
                       : o->until_idle && app_work_dispatcher_end_if_idle(s->dispatcher))
        close_all(s);
}

static void give_back(struct shell *s, struct work_job *j)
{
    s->done.n_done += j->end == WORK_DONE;
    s->done.n_failed += j->end == WORK_FAILED || j->end == WORK_FATAL;
    s->done.n_back += j->end == WORK_BACK || j->end == WORK_LATER || j->end == WORK_QUOTA;
    say_end(s, j);
    app_work_log_end(j);
    if (j->loaded.mcp) /* the dispatcher frees it on another thread, which must not touch this loop */
        rv_mcp_pool_detach(rv_mcp_tools_pool(j->loaded.mcp));
    app_work_dispatcher_give(s->dispatcher, j);
}

static void unlink_job(struct shell *s, struct work_job *j)
{
    struct work_job **at = &s->jobs;

    while (*at != j)
        at = &(*at)->next;
    *at = j->next;
}

static void end_job(struct shell *s, struct work_job *j)
{
    const struct rv_worker_opts *o = s->worker.opts;

    if (o->on_event)
        o->on_event(o->self_event, j, RV_STR_LIT(""));
    if (j->log)
        rv_app_stream_close(j->log, j->ends_stream ? RV_APP_STREAM_ENDS : RV_APP_STREAM_GIVES);
    j->log = NULL;
    unlink_job(s, j);
    give_back(s, j);
    maybe_end(s);
}

static struct shell *shell_of(const struct work_job *j)
{
    return (struct shell *)j->worker; /* its first member */
}

/* The end of a chat's stream is told by who serves the chat. */
static bool ends_stream(const struct work_job *j, enum rv_run_status status)
{
    char id[RV_APP_STREAM_ID];

    rv_app_stream_of_run(j->run, id);
    return rv_run_status_is_final(status) && strcmp(id, j->stream) == 0;
}

/* Its run is over, waits, or was handed over. */
static void take_result(struct work_job *j, rv_exec *x)
{
    enum rv_run_status status = rv_exec_status(x);

    if (rv_exec_is_handed_over(x)) {
        const char *why;
        j->later_us = rv_exec_refused(x, &why);
        j->end = j->later_us > 0 ? WORK_QUOTA : WORK_BACK;
        rv_buf_puts(&j->error, why);
        return;
    }
    j->ends_stream = ends_stream(j, status);
    j->waits = status == RV_RUN_INTERRUPTED;
    j->is_cancelled = status == RV_RUN_CANCELLED && atomic_load(&j->cancel_wanted);
    if (j->handler && rv_run_status_is_final(status))
        app_work_handler_result(j, status, rv_exec_envelope(x));
    else
        app_work_done(j, rv_run_status_text(status));
    if (j->end == WORK_DONE) /* for the line that people read */
        rv_buf_puts(&j->error, rv_run_status_text(status));
}

static void on_event(void *self, const struct rv_effect *e, rv_str line)
{
    struct work_job *j = self;
    const struct rv_worker_opts *o = j->worker->opts;

    (void)e;
    if (o->on_event)
        o->on_event(o->self_event, j, line);
    if (j->log)
        rv_app_stream_on_event(j->log, line);
}

static bool on_delta(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    struct work_job *j = self;

    if (j->log)
        rv_app_stream_on_delta(j->log, j->loaded.pipeline->agents[from->stage].name, from, d);
    return true;
}

static void begin_stream(struct work_job *j, rv_app_stream *log)
{
    j->log = log;
    if (!j->answers)
        rv_app_stream_on_again(log, rv_exec_last_seq(j->exec));
}

static void on_ended(void *self, rv_exec *x, int rc, const rv_err *err)
{
    struct work_job *j = self;

    if (j->end == WORK_LEFT)
        return;
    if (rc == 0) {
        take_result(j, x);
    } else {
        rv_buf_clear(&j->error);
        rv_err_write_chain(err, &j->error);
        j->end = app_work_end_of_run(j, rc);
    }
    j->exec = NULL;
    rv_exec_free(x);
    end_job(shell_of(j), j);
}

/* A receiver was told something, or was not. */
static void on_told(struct work_job *j)
{
    end_job(shell_of(j), j);
}

/* A process of its own has ended: of a run that crashed again, the next try comes later. */
static void on_exit_apart(struct work_job *j, int status, int number)
{
    struct shell *s = shell_of(j);

    if (number == 0 && status != EXIT_REFUSED) {
        app_work_find_end(s->store, j);
    } else if (s->is_draining) {
        j->end = WORK_BACK;
    } else if (number == 0) {
        rv_buf_puts(&j->error, "it cannot go on; `reeve runs recover` says why");
        j->end = WORK_FAILED;
    } else {
        j->crashes++;
        j->later_us = rv_app_next_try_us(j->crashes, rv_app_now_us());
        j->end = WORK_LATER;
    }
    end_job(s, j);
}

/* --- its beginning --- */

static int begin_run(struct shell *s, struct work_job *j, rv_err **err)
{
    struct rv_exec_opts x = RV_EXEC_OPTS_INIT;
    const struct rv_response *answer = j->answers ? &j->payload.answer : NULL;

    const struct rv_worker_opts *o = s->worker.opts;
    const struct rv_app_stream_opts stream = {.id = j->stream, .owner = j->worker->owner};
    rv_app_stream *log = NULL; /* made first: what fails once the run goes on would leave it without its job */

    int rc = j->stream[0] ? rv_app_stream_new(o->streams, &stream, &log, err) : 0;
    if (rc < 0)
        return rc;
    if (o->on_trace && j->payload.trace)
        o->on_trace(o->self_event, j, j->payload.trace, j->payload.trusts_trace);
    rv_journal_move(j->journal, s->store);
    x.pipeline = j->loaded.pipeline;
    x.plugins = j->loaded.plugins;
    x.script = j->loaded.script;
    x.mcp = j->loaded.mcp;
    x.catalog = j->loaded.bundle ? &j->catalog : NULL;
    x.journal = j->journal;
    x.takes_journal = true;
    x.tenant = j->app.scope.tenant;
    x.quotas = app_limits_exec(&j->limits);
    x.services = rv_app_services_init_shared(&j->services, &j->app, s->worker.asked);
    x.answer_from_script = x.script != NULL;
    x.observer = (struct rv_observer){.on_ended = on_ended, .self = j};
    if (s->worker.opts->on_event || j->stream[0])
        x.observer.on_event = on_event;
    if (j->stream[0])
        x.observer.on_delta = on_delta;
    if (j->loaded.agents) {
        x.find_agent = rv_app_find_agent;
        x.find_self = &j->loaded;
    }
    j->journal = NULL;
    rc = j->cancels ? rv_engine_continue_cancel(s->worker.engine, &x, &j->app.scope, &j->exec, err)
                    : rv_engine_continue(s->worker.engine, &x, &j->app.scope, answer, &j->exec, err);
    if (rc == 0 && log)
        begin_stream(j, log);
    else if (log)
        rv_app_stream_close(log, RV_APP_STREAM_GIVES);
    return rc;
}

static void begin(struct shell *s, struct work_job *j)
{
    rv_err *err = NULL;

    if (s->is_draining && j->end == WORK_RUNS)
        j->end = WORK_BACK;
    if (j->end != WORK_RUNS) {
        give_back(s, j);
        return;
    }
    j->next = s->jobs;
    s->jobs = j;
    int rc = j->hook       ? app_work_hook_begin(j, &s->loop, &s->hooks, on_told, &err)
             : j->is_apart ? app_work_apart_begin(j, &s->loop, on_exit_apart, &err)
                           : begin_run(s, j, &err);
    if (rc == 0)
        return;
    app_work_fail(j, app_work_end_of(j, rc), err);
    end_job(s, j);
}

/* --- drained by another thread --- */

static void set_wake(struct shell *s, uv_async_t *wake)
{
    struct rv_worker_stop *stop = s->worker.opts->stop;

    if (!stop)
        return;
    pthread_mutex_lock(&stop->lock);
    stop->wake = wake;
    if (wake && stop->is_wanted)
        RV_IGNORE(uv_async_send(wake), "the handle is open");
    pthread_mutex_unlock(&stop->lock);
}

static bool is_to_stop(const struct shell *s)
{
    struct rv_worker_stop *stop = s->worker.opts->stop;

    if (!stop)
        return false;
    pthread_mutex_lock(&stop->lock);
    bool wanted = stop->is_wanted;
    pthread_mutex_unlock(&stop->lock);
    return wanted;
}

struct rv_worker_stop *rv_worker_stop_new(void)
{
    struct rv_worker_stop *stop = calloc(1, sizeof *stop);
    pthread_condattr_t attr;

    if (!stop)
        return NULL;
    pthread_mutex_init(&stop->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&stop->wanted, &attr);
    pthread_condattr_destroy(&attr);
    return stop;
}

void rv_worker_stop(struct rv_worker_stop *stop)
{
    pthread_mutex_lock(&stop->lock);
    stop->is_wanted = true;
    pthread_cond_signal(&stop->wanted);
    if (stop->wake)
        RV_IGNORE(uv_async_send(stop->wake), "the handle is open");
    pthread_mutex_unlock(&stop->lock);
}

void rv_worker_tell(struct rv_worker_stop *stop)
{
    if (!stop)
        return;
    pthread_mutex_lock(&stop->lock);
    stop->has_news = true;
    if (stop->wake)
        RV_IGNORE(uv_async_send(stop->wake), "the handle is open");
    pthread_mutex_unlock(&stop->lock);
}

static bool has_news(const struct shell *s)
{
    struct rv_worker_stop *stop = s->worker.opts->stop;

    if (!stop)
        return false;
    pthread_mutex_lock(&stop->lock);
    bool has = stop->has_news;
    stop->has_news = false;
    pthread_mutex_unlock(&stop->lock);
    return has;
}

void rv_worker_stop_free(struct rv_worker_stop *stop)
{
    if (!stop)
        return;
    pthread_cond_destroy(&stop->wanted);
    pthread_mutex_destroy(&stop->lock);
    free(stop);
}

static void on_wake(uv_async_t *async)
{
    struct shell *s = async->data;

    if (!s->is_over && has_news(s))
        app_work_dispatcher_tell(s->dispatcher);
    for (struct work_job *j = s->is_over ? NULL : app_work_dispatcher_take(s->dispatcher), *next; j; j = next) {
        next = j->next;
        begin(s, j);
    }
    for (struct work_job *j = s->jobs; j; j = j->next)
        if (atomic_load(&j->cancel_wanted) && j->exec)
            rv_exec_cancel(j->exec);
    if (!s->is_over && app_work_dispatcher_heard_cancel(s->dispatcher))
        rv_engine_check_cancels(s->worker.engine);
    if (!s->is_over && !s->is_draining && is_to_stop(s))
        drain(s);
    else
        maybe_end(s);
}

/* On the dispatcher's thread. */
static void wake(void *self)
{
    RV_IGNORE(uv_async_send(&((struct shell *)self)->wake), "the handle is open as long as the dispatcher is");
}

/* --- its end --- */

static void close_all(struct shell *s)
{
    s->is_over = true;
    app_work_hooks_free(s->hooks);
    s->hooks = NULL;
    set_wake(s, NULL);
    app_work_dispatcher_free(s->dispatcher);
    s->dispatcher = NULL;
    if (s->wake.loop)
        uv_close((uv_handle_t *)&s->wake, NULL);
    uv_close((uv_handle_t *)&s->grace, NULL);
    for (size_t i = 0; i < RV_COUNT(s->signals); i++)
        if (s->signals[i].loop)
            uv_close((uv_handle_t *)&s->signals[i], NULL);
    if (s->done.n_left > 0) /* these hold the loop */
        uv_stop(&s->loop);
}

/* The grace time is over. */
static void on_grace(uv_timer_t *timer)
{
    struct shell *s = timer->data;

    for (struct work_job *j = s->jobs, *next; j; j = next) {
        next = j->next;
        app_work_hook_cancel(j);
        app_work_apart_kill(j); /* its end is told */
        if (j->apart)
            continue;
        bool is_left = j->exec && rv_exec_is_unrepeatable(j->exec);
        j->end = is_left ? WORK_LEFT : WORK_BACK;
        s->done.n_left += is_left;
        if (!is_left)
            rv_exec_free(j->exec);
        j->exec = NULL;
        end_job(s, j);
    }
}

static void drain(struct shell *s)
{
    const struct rv_worker_opts *o = s->worker.opts;
    int64_t grace_us = rv_worker_grace_us(o->grace_us);

    s->is_draining = true;
    say(s, "draining: no new tasks; runs have %lld s to come to a point where another worker can go on",
        (long long)(grace_us / RV_US_PER_S));
    RV_LOG(s->worker.app.log, INFO, "worker.drain", RV_F_TEXT("owner", s->worker.owner),
           RV_F_I64("grace_ms", grace_us / RV_US_PER_MS));
    app_work_dispatcher_drain(s->dispatcher);
    uv_timer_start(&s->grace, on_grace, (uint64_t)(grace_us / RV_US_PER_MS), 0);
    for (struct work_job *j = s->jobs; j; j = j->next)
        if (j->exec)
            rv_exec_hand_over(j->exec);
    maybe_end(s);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct shell *s = handle->data;

    (void)number;
    if (s->is_draining)
        _exit(RV_EXIT_AT_ONCE); /* asked twice: the runs are left as after a crash */
    drain(s);
}

/* --- the worker --- */

static int open_handles(struct shell *s, rv_err **err)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    int failed = uv_async_init(&s->loop, &s->wake, on_wake);
    int rc = failed < 0 ? RV_FAIL_SYSTEM(err, failed, "open a loop") : 0;

    uv_timer_init(&s->loop, &s->grace);
    s->wake.data = s->grace.data = s;
    for (size_t i = 0; rc == 0 && i < RV_COUNT(s->signals); i++) {
        s->signals[i].data = s;
        rc = rv_signal_init(&s->loop, &s->signals[i], on_signal, s->worker.opts->stop ? 0 : numbers[i], err);
    }
    set_wake(s, rc == 0 ? &s->wake : NULL);
    return rc;
}

static int prepare(struct shell *s, const struct rv_worker_opts *opts, rv_err **err)
{
    struct rv_worker *w = &s->worker;

    w->opts = opts;
    w->app = *opts->app;
    w->app.keeps_log_level = true; /* one log for all runs */
    w->app.scope = (struct rv_store_scope){NULL, NULL};
    w->lease_us = app_lease_us(&w->app);
    w->n_max = opts->concurrency ? opts->concurrency : RV_WORKER_CONCURRENCY;
    rv_owner_make_name(w->owner);
    w->asked = rv_app_handles_new();
    int rc = w->asked ? rv_plugin_pool_new(&w->app.pool, err) : RV_FAIL(err, RV_E_NOMEM, "make a worker");
    if (rc == 0)
        rc = rv_app_quotas_open(&w->app, &w->quotas, err);
    if (rc == 0)
        rc = rv_app_store_open(&w->app, RV_APP_STORE_MAKE, &s->store, err);
    if (rc == 0)
        rc = app_work_offers(&w->app, opts->labels, opts->n_labels, &w->offers, err);
    return rc < 0 ? rc : app_work_handlers_load(&w->app, opts->handlers, opts->n_handlers, &w->handlers, err);
}

static int work(struct shell *s, rv_err **err)
{
    struct rv_worker *w = &s->worker;
    const struct rv_engine_opts opts = {.workers = w->opts->threads,
                                        .traces = w->opts->app->traces,
                                        .loop = &s->loop,
                                        .log = w->app.log,
                                        .store = s->store,
                                        .owner = w->owner,
                                        .lease_us = w->app.lease_us};

    int rc = open_handles(s, err);
    rc = rc < 0 ? rc : rv_engine_new(&opts, &w->engine, err);
    if (rc == 0)
        rc = app_work_dispatcher_new(w, s->store, wake, s, &s->dispatcher, err);
    if (rc == 0) {
        say(s, "working as %s: up to %zu run%s at once", w->owner, w->n_max, w->n_max == 1 ? "" : "s");
        RV_LOG(w->app.log, INFO, "worker.start", RV_F_TEXT("owner", w->owner), RV_F_I64("limit", w->n_max));
        if (w->opts->on_works)
            w->opts->on_works(w->opts->self_event);
    } else {
        close_all(s);
    }
    uv_run(&s->loop, UV_RUN_DEFAULT);
    if (rc == 0)
        RV_LOG(w->app.log, INFO, "worker.stop", RV_F_TEXT("owner", w->owner), RV_F_I64("done", s->done.n_done),
               RV_F_I64("failed", s->done.n_failed), RV_F_I64("handed_back", s->done.n_back),
               RV_F_I64("left", s->done.n_left));
    if (s->done.n_left > 0) /* the process is about to end: to free these runs would give them up */
        return rc;
    if (w->engine)
        rv_engine_close(w->engine, NULL, NULL);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    RV_IGNORE(uv_loop_close(&s->loop), "all handles are closed");
    return rc;
}

int rv_worker_run(const struct rv_worker_opts *opts, struct rv_worker_done *out, rv_err **err)
{
    struct shell *s = calloc(1, sizeof *s);

    if (!s)
        return RV_FAIL(err, RV_E_NOMEM, "make a worker");
    int rc = prepare(s, opts, err);
    rc = rc < 0 ? rc : rv_loop_init(&s->loop, err);
    if (rc == 0)
        rc = work(s, err);
    *out = s->done;
    if (s->done.n_left > 0)
        return rc;
    app_work_handlers_free(s->worker.handlers, opts->n_handlers);
    rv_app_handles_free(s->worker.asked);
    rv_plugin_pool_free(s->worker.app.pool);
    rv_needs_fini(&s->worker.offers);
    rv_quotas_free(s->worker.quotas);
    rv_store_close(s->store);
    free(s);
    return rc < 0 ? RV_WRAP(err, rc, "work") : 0;
}
