/* The worker in the process of the server. What it opens at its start may be lacking for a while: descriptors, threads,
 * room, a database. The server goes on without it meanwhile, says so at /readyz, and starts it again; runs wait in the
 * queue. */
#include "coreengine/server/worker_internal.h"

#include <stdlib.h>
#include <time.h>

#include "coreengine/base/system.h"
#include "coreengine/server/handlers_internal.h"

#define AGAIN_US INT64_C(500000) /* between two attempts to start */

struct srv_worker {
    struct srv_server *s; /* borrowed */
    void (*fallen)(struct srv_server *s);
    pthread_t thread;
    struct rv_app app;
    struct rv_worker_opts opts;
    struct rv_worker_stop stop;
    struct rv_worker_done done;
    rv_err *err;          /* why it ended by itself; owned */
    pthread_mutex_t lock; /* guards is_stopping */
    pthread_cond_t stopped;
    bool is_stopping;
    bool is_started; /* and its thread is to be joined */
};

static void on_works(void *self)
{
    struct srv_worker *w = self;

    atomic_store(&w->s->worker, SRV_WORKER_WORKS);
}

static void on_run_event(void *self, const void *run, rv_str line)
{
    const struct srv_worker *w = self;
    json_object *event = line.len > 0 ? rv_telemetry_event(line) : NULL;

    if (line.len > 0)
        srv_watch_event(w->s->watch, run, NULL, event);
    else
        srv_watch_over(w->s->watch, run);
    json_object_put(event);
}

static void on_trace(void *self, const void *run, const char *trace, bool is_trusted)
{
    const struct srv_worker *w = self;

    srv_watch_begin(w->s->watch, run, trace, is_trusted);
}

/* It opened the same things before, for the server itself. */
static bool may_come_back(int rc)
{
    return rv_code_is_scarce(rc) || rc == RV_E_TIMEOUT || rc == RV_E_IO || rc == RV_E_UNAVAILABLE;
}

/* False: the server ends. */
static bool wait_for_next(struct srv_worker *w)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t nsec = until.tv_nsec + AGAIN_US * 1000;
    until.tv_sec += nsec / 1000000000;
    until.tv_nsec = nsec % 1000000000;
    pthread_mutex_lock(&w->lock);
    while (!w->is_stopping && pthread_cond_timedwait(&w->stopped, &w->lock, &until) == 0) {
    }
    bool goes_on = !w->is_stopping;
    pthread_mutex_unlock(&w->lock);
    return goes_on;
}

static void *work(void *self)
{
    struct srv_worker *w = self;
    struct srv_server *s = w->s;
    bool has_told = false;
    int rc;

    for (;;) {
        rc = rv_worker_run(&w->opts, &w->done, &w->err);
        if (rc == 0 || !may_come_back(rc))
            break;
        has_told = has_told && atomic_load(&s->worker) == SRV_WORKER_WAITS;
        atomic_store(&s->worker, SRV_WORKER_WAITS);
        if (!has_told)
            RV_LOG(s->app.log, ERROR, "worker.waits", RV_F_ERR("error", w->err));
        has_told = true;
        rv_err_free(w->err);
        w->err = NULL;
        rc = 0;
        if (!wait_for_next(w))
            break;
    }
    atomic_store(&s->worker, SRV_WORKER_ENDED);
    if (rc < 0)
        w->fallen(s);
    return NULL;
}

static void init_lock(struct srv_worker *w)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->stopped, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&w->lock, NULL);
}

int srv_worker_new(struct srv_server *s, void (*fallen)(struct srv_server *s), struct srv_worker **out, rv_err **err)
{
    struct srv_worker *w = s->opts->no_worker ? NULL : calloc(1, sizeof *w);

    *out = w;
    if (!w)
        return s->opts->no_worker ? 0 : RV_FAIL(err, RV_E_NOMEM, "make a worker");
    w->s = s;
    w->fallen = fallen;
    rv_worker_stop_init(&w->stop);
    init_lock(w);
    s->worker_stop = &w->stop;
    return 0;
}

int srv_worker_start(struct srv_worker *w, rv_err **err)
{
    if (!w)
        return 0;
    const struct rv_server_opts *o = w->s->opts;
    w->app = w->s->app;
    w->opts = (struct rv_worker_opts){.stop = &w->stop,
                                      .app = &w->app,
                                      .concurrency = o->concurrency,
                                      .grace_us = o->grace_us,
                                      .say = o->say,
                                      .self = o->self,
                                      .on_works = on_works,
                                      .on_event = on_run_event,
                                      .on_trace = on_trace,
                                      .self_event = w,
                                      .streams = w->s->streams};
    atomic_store(&w->s->worker, SRV_WORKER_WORKS);
    int rc = rv_thread_start(&w->thread, work, w, err);
    w->is_started = rc == 0;
    return rc;
}

void srv_worker_stop(struct srv_worker *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->is_stopping = true;
    pthread_cond_signal(&w->stopped);
    pthread_mutex_unlock(&w->lock);
    rv_worker_stop(&w->stop);
}

int srv_worker_join(struct srv_worker *w, int64_t *n_left, rv_err **err)
{
    *n_left = 0;
    if (!w)
        return 0;
    if (w->is_started)
        pthread_join(w->thread, NULL);
    *n_left = w->done.n_left;
    int rc = w->err ? rv_err_code(w->err) : 0;
    *err = w->err;
    rv_worker_stop_fini(&w->stop);
    pthread_cond_destroy(&w->stopped);
    pthread_mutex_destroy(&w->lock);
    free(w);
    return rc;
}
