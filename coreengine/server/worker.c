/* The worker in the process of the server. What it opens at its start may be lacking for a while: the server goes on
 * without it meanwhile, and says so at /readyz. */
#include "coreengine/server/worker_internal.h"

#include <stdlib.h>

#include "coreengine/base/base.h"
#include "coreengine/server/handlers_internal.h"

struct srv_worker {
    struct srv_server *s; /* borrowed */
    void (*fallen)(struct srv_server *s);
    pthread_t thread;
    struct rv_app app;
    struct rv_worker_opts opts;
    struct rv_worker_stop *stop; /* owned */
    struct rv_worker_done done;
    rv_err *err;     /* why it ended by itself; owned */
    bool has_told;   /* that it waits; of its thread */
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
    json_object *event = line.len > 0 ? rv_telemetry_parse_event(line) : NULL;

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

static void on_waits(void *self, const rv_err *why)
{
    struct srv_worker *w = self;
    bool has_told = w->has_told && atomic_load(&w->s->worker) == SRV_WORKER_WAITS;

    atomic_store(&w->s->worker, SRV_WORKER_WAITS);
    if (!has_told)
        RV_LOG(w->s->app.log, ERROR, "worker.waits", RV_F_ERR("error", why));
    w->has_told = true;
}

static void *work(void *self)
{
    struct srv_worker *w = self;
    int rc = rv_worker_keep(&w->opts, &w->done, &w->err);

    atomic_store(&w->s->worker, SRV_WORKER_ENDED);
    if (rc < 0)
        w->fallen(w->s);
    return NULL;
}

int srv_worker_new(struct srv_server *s, void (*fallen)(struct srv_server *s), struct srv_worker **out, rv_err **err)
{
    *out = NULL;
    if (s->opts->no_worker)
        return 0;
    struct srv_worker *w = calloc(1, sizeof *w);
    struct rv_worker_stop *stop = rv_worker_stop_new();
    if (!w || !stop) {
        free(w);
        rv_worker_stop_free(stop);
        return RV_FAIL(err, RV_E_NOMEM, "make a worker");
    }
    w->s = s;
    w->fallen = fallen;
    s->worker_stop = w->stop = stop;
    *out = w;
    return 0;
}

int srv_worker_start(struct srv_worker *w, rv_err **err)
{
    if (!w)
        return 0;
    const struct rv_server_opts *o = w->s->opts;
    w->app = w->s->app;
    w->opts = (struct rv_worker_opts){.stop = w->stop,
                                      .app = &w->app,
                                      .concurrency = o->concurrency,
                                      .grace_us = o->grace_us,
                                      .say = o->say,
                                      .self = o->self,
                                      .on_works = on_works,
                                      .on_waits = on_waits,
                                      .on_event = on_run_event,
                                      .on_trace = on_trace,
                                      .self_event = w,
                                      .streams = w->s->streams};
    atomic_store(&w->s->worker, SRV_WORKER_WORKS);
    int rc = rv_thread_start(work, w, &w->thread, err);
    w->is_started = rc == 0;
    return rc;
}

void srv_worker_stop(struct srv_worker *w)
{
    if (!w)
        return;
    rv_worker_stop(w->stop);
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
    rv_err_pass(err, w->err);
    rv_worker_stop_free(w->stop);
    free(w);
    return rc;
}
