/* The pool: threads that run capability code. One lock guards everything in it and is never held while a capability
 * runs. Workers are detached and count their references to the pool; the last one frees it: no thread has to wait for a
 * call that does not return. Such a call is given up: its worker no longer counts, another one takes its place. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coreengine/engine/engine_internal.h"

struct pool {
    pthread_mutex_t lock; /* guards all below; rank: the only lock of the shell */
    pthread_cond_t work;  /* something is queued, or the pool ends */
    pthread_cond_t done;  /* a job is done, a worker has ended, or rv_pool_poke() was called */
    struct job *queue, **queue_end;
    struct job *finished, **finished_end;
    struct piece *pieces, **pieces_end;
    size_t n_queued, n_running;
    size_t n_threads, n_idle, n_stuck; /* stuck: running what was given up; part of n_threads */
    size_t limit;                      /* of threads that are not stuck */
    int64_t idle_us;                   /* a worker without work for so long leaves */
    bool stopping, poked;
    size_t n_refs;
    void (*wake)(void *self);
    void *wake_self;
};

/* --- what a worker does --- */

static void pool_destroy(struct pool *p)
{
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->done);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static void unref_and_unlock(struct pool *p)
{
    bool last = --p->n_refs == 0;

    pthread_mutex_unlock(&p->lock);
    if (last)
        pool_destroy(p);
}

static struct job *take_queued(struct pool *p)
{
    struct job *j = p->queue;

    p->queue = j->next;
    if (!p->queue)
        p->queue_end = &p->queue;
    j->next = NULL;
    p->n_queued--;
    return j;
}

/* Back from a job; the lock is held. */
static void hand_over(struct pool *p, struct job *j)
{
    p->n_running--;
    if (j->given_up) {
        p->n_stuck--;
        rv_job_free(j);
    } else {
        j->state = JOB_DONE;
        *p->finished_end = j;
        p->finished_end = &j->next;
        if (p->wake)
            p->wake(p->wake_self); /* under the lock, so that what it wakes is not gone; it takes none itself */
    }
    pthread_cond_broadcast(&p->done);
}

int rv_pool_take_piece(struct pool *p, struct piece *piece)
{
    pthread_mutex_lock(&p->lock);
    bool wanted = !piece->job->given_up && !p->stopping;
    if (wanted) {
        *p->pieces_end = piece;
        p->pieces_end = &piece->next;
        if (p->wake)
            p->wake(p->wake_self);
    }
    pthread_mutex_unlock(&p->lock);
    if (!wanted)
        rv_piece_free(piece);
    return wanted ? 0 : -1;
}

static struct timespec in_us(int64_t us)
{
    struct timespec t;
    const int64_t day = (int64_t)86400 * 1000000;

    if (us > day)
        us = day;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += (time_t)(us / 1000000);
    t.tv_nsec += (long)(us % 1000000) * 1000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

/* The lock is held. False: nothing came for a while. */
static bool wait_for_work(struct pool *p)
{
    struct timespec until = in_us(p->idle_us);
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
    for (;;) {
        bool any = wait_for_work(p);
        if (!any || p->stopping || p->n_threads - p->n_stuck > p->limit)
            break; /* idle, the end, or a stuck call came back and its place is taken */
        struct job *j = take_queued(p);
        j->state = JOB_RUNNING;
        p->n_running++;
        pthread_mutex_unlock(&p->lock);
        rv_job_run(j);
        pthread_mutex_lock(&p->lock);
        hand_over(p, j);
    }
    p->n_threads--;
    pthread_cond_broadcast(&p->done);
    unref_and_unlock(p);
    return NULL;
}

/* One more worker; the lock is held. Signals are the loop thread's. */
static int spawn(struct pool *p)
{
    sigset_t all, before;
    pthread_t thread;
    pthread_attr_t attr;

    if (pthread_attr_init(&attr) != 0)
        return RV_E_INTERNAL;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int failed = pthread_create(&thread, &attr, worker, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (failed)
        return RV_E_INTERNAL;
    p->n_threads++;
    p->n_refs++;
    return 0;
}

/* Enough workers for what is queued, within the limit; the lock is held. */
static int staff(struct pool *p)
{
    if (p->n_queued <= p->n_idle || p->n_threads - p->n_stuck >= p->limit)
        return 0;
    int rc = spawn(p);
    return rc < 0 && p->n_threads == p->n_stuck ? rc : 0; /* fewer workers are slower, none are a fault */
}

/* --- what the loop does --- */

int rv_pool_new(size_t n_workers, int64_t idle_us, void (*wake)(void *self), void *self, struct pool **out,
                rv_err **err)
{
    pthread_condattr_t attr;
    struct pool *p = calloc(1, sizeof *p);

    if (!p)
        return RV_FAIL(err, RV_E_NOMEM, "make the workers");
    p->limit = n_workers;
    p->idle_us = idle_us;
    p->queue_end = &p->queue;
    p->finished_end = &p->finished;
    p->pieces_end = &p->pieces;
    p->n_refs = 1;
    p->wake = wake;
    p->wake_self = self;
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->work, &attr);
    pthread_cond_init(&p->done, &attr);
    pthread_condattr_destroy(&attr);
    *out = p;
    return 0;
}

static void free_list(struct job *j)
{
    while (j) {
        struct job *next = j->next;
        rv_job_free(j);
        j = next;
    }
}

/* Those of a job, or of all (NULL); the lock is held. */
static void drop_pieces(struct pool *p, const struct job *j)
{
    struct piece **at = &p->pieces;

    while (*at) {
        struct piece *piece = *at;
        if (j && piece->job != j) {
            at = &piece->next;
            continue;
        }
        *at = piece->next;
        rv_piece_free(piece);
    }
    p->pieces_end = at;
}

void rv_pool_free(struct pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    p->wake = NULL;
    free_list(p->queue);
    free_list(p->finished);
    p->queue = p->finished = NULL;
    drop_pieces(p, NULL);
    pthread_cond_broadcast(&p->work);
    while (p->n_threads > p->n_stuck) /* idle ones only: they leave at once */
        pthread_cond_wait(&p->done, &p->lock);
    unref_and_unlock(p);
}

int rv_pool_submit(struct pool *p, struct job *j, rv_err **err)
{
    pthread_mutex_lock(&p->lock);
    size_t stuck = p->n_stuck;
    int rc = stuck >= RV_ENGINE_MAX_STUCK ? RV_E_LIMIT : 0;
    if (rc == 0) {
        p->n_queued++;
        rc = staff(p);
        if (rc < 0)
            p->n_queued--;
    }
    if (rc == 0) {
        j->next = NULL;
        j->state = JOB_QUEUED;
        j->pool = p;
        *p->queue_end = j;
        p->queue_end = &j->next;
        pthread_cond_signal(&p->work);
    }
    pthread_mutex_unlock(&p->lock);
    if (rc == RV_E_LIMIT)
        return RV_FAIL(err, rc, "%zu calls that were given up are still running; no further one is started", stuck);
    return rc < 0 ? RV_FAIL(err, rc, "no worker thread can be started") : 0;
}

static void unlink_job(struct job **list, struct job ***end, const struct job *j)
{
    struct job **at = list;

    while (*at && *at != j)
        at = &(*at)->next;
    if (*at)
        *at = j->next;
    *end = list;
    while (**end)
        *end = &(**end)->next;
}

void rv_pool_give_up(struct pool *p, struct job *j)
{
    bool mine = true;

    pthread_mutex_lock(&p->lock);
    atomic_store(&j->cancelled, true);
    drop_pieces(p, j);
    switch (j->state) {
    case JOB_QUEUED:
        unlink_job(&p->queue, &p->queue_end, j);
        p->n_queued--;
        break;
    case JOB_RUNNING:
        mine = false;
        j->given_up = true;
        j->call = NULL;
        p->n_stuck++;
        RV_IGNORE(staff(p), "whatever is queued then waits until the call comes back or times out");
        break;
    case JOB_DONE:
        unlink_job(&p->finished, &p->finished_end, j);
        break;
    }
    pthread_mutex_unlock(&p->lock);
    if (mine)
        rv_job_free(j);
}

struct job *rv_pool_take_done(struct pool *p, struct piece **pieces)
{
    pthread_mutex_lock(&p->lock);
    struct job *list = p->finished;
    p->finished = NULL;
    p->finished_end = &p->finished;
    *pieces = p->pieces;
    p->pieces = NULL;
    p->pieces_end = &p->pieces;
    pthread_mutex_unlock(&p->lock);
    return list;
}

void rv_pool_wait(struct pool *p, int64_t us)
{
    struct timespec until = in_us(us > 0 ? us : 0);
    int rc = 0;

    pthread_mutex_lock(&p->lock);
    while (!p->finished && !p->poked && rc == 0)
        rc = pthread_cond_timedwait(&p->done, &p->lock, &until);
    p->poked = false;
    pthread_mutex_unlock(&p->lock);
}

void rv_pool_poke(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->poked = true;
    pthread_cond_broadcast(&p->done);
    pthread_mutex_unlock(&p->lock);
}

bool rv_pool_settle(struct pool *p, int64_t us)
{
    struct timespec until = in_us(us > 0 ? us : 0);
    int rc = 0;

    pthread_mutex_lock(&p->lock);
    while (p->n_running > 0 && rc == 0)
        rc = pthread_cond_timedwait(&p->done, &p->lock, &until);
    bool settled = p->n_running == 0;
    pthread_mutex_unlock(&p->lock);
    return settled;
}
