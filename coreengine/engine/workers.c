/* The pool: threads that run capability code. One lock guards everything in it and is never held while a capability
 * runs. Workers are detached and count their references to the pool; the last one frees it: no thread has to wait for a
 * call that does not return. Such a call is given up: its worker no longer counts, another one takes its place. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <uv.h>

#include "coreengine/base/base.h"
#include "coreengine/engine/services_internal.h"

#define MAX_WORKERS      256                /* threads; more than any machine of ours has cores */
#define WORKERS          64                 /* by default: most calls wait for something and do not need a core */
#define IDLE_US          (10 * RV_US_PER_S) /* by default: then a worker without work leaves */
#define MAX_STUCK        64       /* given-up calls that still run: each keeps a thread; further calls fail at once */
#define LOOP_PATIENCE_NS 10000000 /* that work which declares it never blocks may take on the loop */

/* One piece of work on its way. The pool's lock guards it, except for `work` and `pool`, which do not change. */
struct job {
    struct job *next;
    enum { JOB_QUEUED, JOB_RUNNING, JOB_LATE, JOB_DONE } state; /* LATE: `run` has returned, the result comes later */
    bool given_up;                                              /* while it runs: then its worker frees it */
    bool is_over;
    struct rv_tool_work *work; /* owned */
    struct pool *pool;
};

struct pool {
    pthread_mutex_t lock; /* guards the queues, the numbers and the flags; leaf: the wake takes none */
    pthread_cond_t work;  /* something is queued, or the pool ends */
    pthread_cond_t done;  /* a job is done, a worker has ended, or engine_pool_poke() was called */
    struct job *queue, **queue_end;
    struct job *finished, **finished_end;
    size_t n_queued, n_running;
    size_t n_threads, n_idle, n_stuck; /* stuck: running what was given up; part of n_threads */
    size_t limit;                      /* of threads that are not stuck */
    int64_t idle_us;                   /* a worker without work for so long leaves */
    bool stopping, poked;
    size_t n_refs;
    struct asks *asks;        /* owned; a lock of its own, which is taken first */
    struct pieces *pieces;    /* the same; owned */
    void (*wake)(void *self); /* called under the lock, so that what it wakes is not gone; it takes none itself */
    void *wake_self;
};

static void job_free(struct job *j)
{
    j->work->free(j->work);
    free(j);
}

static void free_jobs(struct job *j)
{
    while (j) {
        struct job *next = j->next;
        job_free(j);
        j = next;
    }
}

/* --- what a worker does --- */

static void unref_and_unlock(struct pool *p)
{
    bool last = --p->n_refs == 0;

    pthread_mutex_unlock(&p->lock);
    if (!last)
        return;
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->done);
    pthread_mutex_destroy(&p->lock);
    asks_free(p->asks);
    engine_pieces_free(p->pieces);
    free(p);
}

/* The lock is held. */
static void set_done(struct job *j)
{
    struct pool *p = j->pool;

    j->state = JOB_DONE;
    *p->finished_end = j;
    p->finished_end = &j->next;
    if (p->wake)
        p->wake(p->wake_self);
    pthread_cond_broadcast(&p->done);
}

/* Its `run` has returned; the lock is held. */
static void ran(struct job *j, bool is_over)
{
    if (is_over || j->is_over)
        set_done(j);
    else
        j->state = JOB_LATE;
}

static void work_finished(struct rv_tool_work *w)
{
    struct job *j = w->host;
    struct pool *p = j->pool;

    pthread_mutex_lock(&p->lock);
    j->is_over = true;
    if (j->state == JOB_LATE && !j->given_up)
        set_done(j);
    pthread_mutex_unlock(&p->lock);
}

static int ask(struct rv_tool_work *w, const struct rv_service_ask *q, rv_buf *answer, rv_err **err)
{
    const struct job *j = w->host;

    return asks_put(j->pool->asks, w, q, answer, err);
}

/* The first of the queue; the lock is held before and after. */
static void run_next(struct pool *p)
{
    struct job *j = p->queue;

    p->queue = j->next;
    if (!p->queue)
        p->queue_end = &p->queue;
    j->next = NULL;
    j->state = JOB_RUNNING;
    p->n_queued--;
    p->n_running++;
    pthread_mutex_unlock(&p->lock);
    bool is_over = j->work->run(j->work);
    pthread_mutex_lock(&p->lock);
    bool is_stuck = j->given_up;
    if (!is_stuck) {
        ran(j, is_over);
    } else {
        pthread_mutex_unlock(&p->lock);
        job_free(j);
        pthread_mutex_lock(&p->lock);
    }
    p->n_running--;
    p->n_stuck -= is_stuck;
    pthread_cond_broadcast(&p->done);
}

int engine_pool_take_piece(void *work, rv_str json)
{
    struct rv_tool_work *w = work;
    const struct job *j = w->host;

    return engine_pieces_put(j->pool->pieces, w, json);
}

static void send_progress(struct rv_tool_work *w, const struct rv_tool_progress *p)
{
    const struct job *j = w->host;

    engine_pieces_put_progress(j->pool->pieces, w, p);
}

/* The lock is held. False: nothing came for a while. */
static bool wait_for_work(struct pool *p)
{
    struct timespec until = rv_deadline_in(p->idle_us);
    int rc = 0;

    while (!p->queue && !p->stopping && p->n_threads - p->n_stuck <= p->limit && rc == 0) {
        p->n_idle++;
        rc = pthread_cond_timedwait(&p->work, &p->lock, &until);
        p->n_idle--;
    }
    return p->queue != NULL;
}

static void *worker(void *self)
{
    struct pool *p = self;

    pthread_mutex_lock(&p->lock);
    /* it leaves when it is idle, at the end, or because a stuck call came back and its place is taken */
    while (wait_for_work(p) && !p->stopping && p->n_threads - p->n_stuck <= p->limit)
        run_next(p);
    p->n_threads--;
    pthread_cond_broadcast(&p->done);
    unref_and_unlock(p);
    return NULL;
}

/* One more worker; the lock is held. */
static int spawn(struct pool *p, rv_err **err)
{
    pthread_t thread;
    int rc = rv_thread_start(worker, p, &thread, err);

    if (rc < 0)
        return rc;
    RV_IGNORE(pthread_detach(thread), "it was started to be joined");
    p->n_threads++;
    p->n_refs++;
    return 0;
}

/* Enough workers for what is queued, within the limit; the lock is held. Fewer workers are slower, none are a fault. */
static int staff(struct pool *p, rv_err **err)
{
    bool has_some = p->n_threads > p->n_stuck;

    if (p->n_queued <= p->n_idle || p->n_threads - p->n_stuck >= p->limit)
        return 0;
    int rc = spawn(p, has_some ? NULL : err);
    return has_some ? 0 : rc;
}

/* --- what the loop does --- */

static void poke(void *pool)
{
    engine_pool_poke(pool);
}

struct asks *engine_pool_asks(struct pool *p)
{
    return p->asks;
}

static int ensure_pool(rv_engine *e, rv_err **err)
{
    const struct rv_engine_opts *o = &e->opts;
    size_t limit = o->workers ? o->workers : WORKERS;
    pthread_condattr_t attr;

    if (e->pool)
        return 0;
    int rc = o->virtual_time ? 0 : engine_loop_ensure(e, err);
    if (rc < 0)
        return rc;
    struct pool *p = calloc(1, sizeof *p);
    if (p)
        p->asks = o->virtual_time ? asks_new(poke, p) : asks_new(engine_loop_wake, e->loop);
    if (p)
        p->pieces = engine_pieces_new(o->virtual_time ? NULL : engine_loop_wake, e->loop);
    if (!p || !p->asks || !p->pieces) {
        if (p) {
            asks_free(p->asks);
            engine_pieces_free(p->pieces);
        }
        free(p);
        return RV_FAIL(err, RV_E_NOMEM, "make the workers");
    }
    p->limit = limit > MAX_WORKERS ? MAX_WORKERS : limit;
    p->idle_us = o->worker_idle_ms > 0 ? o->worker_idle_ms * RV_US_PER_MS : IDLE_US;
    p->queue_end = &p->queue;
    p->finished_end = &p->finished;
    p->n_refs = 1;
    p->wake = o->virtual_time ? NULL : engine_loop_wake;
    p->wake_self = e->loop;
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->work, &attr);
    pthread_cond_init(&p->done, &attr);
    pthread_condattr_destroy(&attr);
    e->pool = p;
    return 0;
}

void engine_pool_free(struct pool *p)
{
    if (!p)
        return;
    engine_pieces_drop(p->pieces, NULL);
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    p->wake = NULL;
    struct job *queue = p->queue, *finished = p->finished;
    p->queue = p->finished = NULL;
    pthread_cond_broadcast(&p->work);
    while (p->n_threads > p->n_stuck) /* idle ones only: they leave at once */
        pthread_cond_wait(&p->done, &p->lock);
    unref_and_unlock(p);
    free_jobs(queue);
    free_jobs(finished);
}

static int submit(struct pool *p, struct job *j, rv_err **err)
{
    int rc = RV_E_LIMIT;

    pthread_mutex_lock(&p->lock);
    size_t stuck = p->n_stuck;
    if (stuck < MAX_STUCK) {
        p->n_queued++;
        rc = staff(p, err);
        if (rc < 0)
            p->n_queued--;
    }
    if (rc == 0) {
        *p->queue_end = j;
        p->queue_end = &j->next;
        pthread_cond_signal(&p->work);
    }
    pthread_mutex_unlock(&p->lock);
    if (rc == RV_E_LIMIT)
        return RV_FAIL(err, rc, "%zu calls that were given up are still running; no further one is started", stuck);
    return rc < 0 ? RV_WRAP(err, rc, "no worker can be started") : 0;
}

/* Run the work at once, on the loop. The log names work that declares it never blocks and takes long. */
static void run_here(rv_engine *e, struct job *j)
{
    struct rv_tool_work *w = j->work;
    uint64_t begun_ns = uv_hrtime();

    j->state = JOB_RUNNING;
    bool is_over = w->run(w);
    uint64_t ns = uv_hrtime() - begun_ns;
    if (ns > LOOP_PATIENCE_NS)
        RV_LOG(e->opts.log, WARN, "call.blocked_loop", RV_F_TEXT("kind", w->kind), RV_F_TEXT("name", w->name),
               RV_F_TEXT("run_id", w->run_id), RV_F_I64("call_id", w->call_id), RV_F_I64("took_ms", ns / 1000000));
    if (is_over) {
        w->done(w);
        job_free(j);
        return;
    }
    pthread_mutex_lock(&j->pool->lock);
    ran(j, false);
    pthread_mutex_unlock(&j->pool->lock);
}

static int begin(void *self, struct rv_tool_work *w, rv_err **err)
{
    rv_engine *e = self;

    int rc = ensure_pool(e, err);
    if (rc < 0)
        return rc;
    struct job *j = calloc(1, sizeof *j);
    if (!j)
        return RV_FAIL(err, RV_E_NOMEM, "make a call");
    *j = (struct job){.work = w, .pool = e->pool};
    w->host = j;
    w->finished = work_finished;
    w->ask = w->never_blocks ? NULL : ask;
    w->send_progress = send_progress;
    if (w->never_blocks)
        run_here(e, j);
    else
        rc = submit(e->pool, j, err);
    if (rc < 0)
        free(j);
    return rc;
}

static void unlink_job(struct job **at, struct job ***end, struct job *j)
{
    while (*at != j)
        at = &(*at)->next;
    *at = j->next;
    if (*end == &j->next)
        *end = at;
}

/* Its open requests are dropped. */
static void drop_asks(rv_engine *e, const struct rv_tool_work *w)
{
    uint64_t id = 0;

    while (asks_drop(e->pool->asks, w, &id))
        if (id)
            e->withdraw(e, id);
}

static void give_up(void *self, struct rv_tool_work *w)
{
    struct pool *p = ((rv_engine *)self)->pool;
    struct job *j = w->host;
    bool is_mine = true;

    atomic_store(&w->cancelled, true);
    drop_asks(self, w);
    engine_pieces_drop(p->pieces, w);
    pthread_mutex_lock(&p->lock);
    switch (j->state) {
    case JOB_QUEUED:
        unlink_job(&p->queue, &p->queue_end, j);
        p->n_queued--;
        break;
    case JOB_RUNNING:
        is_mine = false;
        j->given_up = true;
        p->n_stuck++;
        RV_IGNORE(staff(p, NULL), "whatever is queued then waits until the call comes back or times out");
        break;
    case JOB_LATE:
        j->given_up = true; /* `finished` may come until it is freed */
        break;
    case JOB_DONE:
        unlink_job(&p->finished, &p->finished_end, j);
        break;
    }
    pthread_mutex_unlock(&p->lock);
    if (is_mine)
        job_free(j);
}

struct rv_tool_workers engine_pool(rv_engine *e)
{
    return (struct rv_tool_workers){begin, give_up, e};
}

void engine_pool_collect(struct pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    struct job *jobs = p->finished;
    p->finished = NULL;
    p->finished_end = &p->finished;
    pthread_mutex_unlock(&p->lock);
    engine_pieces_tell(p->pieces);
    for (struct job *j = jobs; j; j = j->next)
        j->work->done(j->work);
    free_jobs(jobs);
}

void engine_pool_wait(struct pool *p, int64_t us)
{
    struct timespec until = rv_deadline_in(us);

    pthread_mutex_lock(&p->lock);
    while (!p->finished && !p->poked && pthread_cond_timedwait(&p->done, &p->lock, &until) == 0)
        continue;
    p->poked = false;
    pthread_mutex_unlock(&p->lock);
}

void engine_pool_poke(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->poked = true;
    pthread_cond_broadcast(&p->done);
    pthread_mutex_unlock(&p->lock);
}

bool rv_engine_settle(rv_engine *e, int64_t wait_ms)
{
    struct timespec until = rv_deadline_in(wait_ms * RV_US_PER_MS);
    struct pool *p = e->pool;

    if (!p)
        return true;
    pthread_mutex_lock(&p->lock);
    while (p->n_running > 0 && pthread_cond_timedwait(&p->done, &p->lock, &until) == 0)
        continue;
    bool settled = p->n_running == 0;
    pthread_mutex_unlock(&p->lock);
    return settled;
}

bool rv_engine_is_settled(const rv_engine *e)
{
    struct pool *p = e->pool;

    if (!p)
        return true;
    pthread_mutex_lock(&p->lock);
    bool settled = p->n_stuck == 0;
    pthread_mutex_unlock(&p->lock);
    return settled;
}
