/* Requests that calls on worker threads make of the host: they are passed to the loop, and the answers back. A worker
 * waits until the loop has answered, the time of its call is over, or the call is given up. Work that may block is a
 * job, which the loop hands back to the waiting worker: no further thread is needed, and workers that ask cannot wait
 * for each other. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/engine/services_internal.h"

struct asks {
    pthread_mutex_t lock; /* guards the asks and is_stopped; before engine/workers.c, which the wake may take */
    pthread_cond_t news;  /* for workers */
    struct ask *list;
    bool is_stopped;
    void (*wake)(void *self);
    void *wake_self;
};

struct asks *asks_new(void (*wake)(void *self), void *self)
{
    struct asks *d = calloc(1, sizeof *d);
    pthread_condattr_t attr;

    if (!d)
        return NULL;
    d->wake = wake;
    d->wake_self = self;
    pthread_mutex_init(&d->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&d->news, &attr);
    pthread_condattr_destroy(&attr);
    return d;
}

void asks_free(struct asks *d)
{
    if (!d)
        return;
    pthread_cond_destroy(&d->news);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

void engine_ask_free(struct ask *a)
{
    if (a->job)
        a->job->free(a->job);
    rv_buf_fini(&a->answer);
    rv_err_free(a->why);
    free(a);
}

static const char *keep(char **at, const char *text)
{
    rv_str s = rv_str_of(text);
    char *copy = *at;

    if (s.len)
        memcpy(copy, s.ptr, s.len);
    copy[s.len] = '\0';
    *at = copy + s.len + 1;
    return copy;
}

/* With copies of all texts: the call may be given up, and its memory gone, while the loop looks at it. */
static struct ask *new_ask(struct asks *d, const struct rv_tool_work *work, const struct rv_service_ask *q)
{
    const char *texts[] = {q->service, q->capability, q->entry,      q->kind, q->run_id,
                           q->stage,   q->user_id,    q->session_id, q->key};
    size_t size = sizeof(struct ask) + q->args.len + 1;

    for (size_t i = 0; i < RV_COUNT(texts); i++)
        size += rv_str_of(texts[i]).len + 1;
    struct ask *a = malloc(size);
    if (!a)
        return NULL;
    char *at = (char *)(a + 1);
    *a = (struct ask){.q = *q, .list = d, .work = work, .answer = RV_BUF_INIT(RV_SERVICE_MAX_ANSWER)};
    const char **copies[] = {&a->q.service, &a->q.capability, &a->q.entry,      &a->q.kind, &a->q.run_id,
                             &a->q.stage,   &a->q.user_id,    &a->q.session_id, &a->q.key};
    for (size_t i = 0; i < RV_COUNT(copies); i++)
        *copies[i] = keep(&at, texts[i]);
    if (q->args.len)
        memcpy(at, q->args.ptr, q->args.len);
    at[q->args.len] = '\0';
    a->q.args = (rv_str){at, q->args.len};
    return a;
}

/* The lock is held. */
static void unlink_ask(struct asks *d, const struct ask *a)
{
    struct ask **at = &d->list;

    while (*at && *at != a)
        at = &(*at)->next;
    if (*at)
        *at = a->next;
}

static void wake(struct asks *d)
{
    if (d->wake)
        d->wake(d->wake_self);
}

/* --- the worker's side --- */

static struct timespec until(int64_t until_us)
{
    struct rv_clock clock = rv_clock_system();

    return rv_deadline_in(until_us == RV_NEVER ? RV_NEVER : until_us - clock.now_us(clock.self));
}

/* The lock is held before and after. */
static void run_job(struct asks *d, struct ask *a)
{
    rv_err *why = NULL;

    pthread_mutex_unlock(&d->lock);
    RV_IGNORE(a->job->run(a->job, &a->answer, &why), "the error says it");
    pthread_mutex_lock(&d->lock);
    if (a->is_dropped || a->state == ASK_DONE) { /* it was given up meanwhile: the answer is not wanted */
        rv_err_free(why);
        return;
    }
    a->why = why;
    a->state = ASK_RAN;
    wake(d);
}

/* The lock is held. 0: the loop has answered, with a result or an error; else why the worker stops waiting. */
static int wait_for(struct asks *d, struct ask *a)
{
    struct timespec end = until(a->q.until_us);
    int rc = 0;

    while (a->state != ASK_DONE && !a->is_dropped && rc == 0) {
        if (a->state == ASK_JOB)
            run_job(d, a);
        else
            rc = pthread_cond_timedwait(&d->news, &d->lock, &end);
    }
    return a->is_dropped ? RV_E_CANCELLED : a->state == ASK_DONE ? 0 : RV_E_TIMEOUT;
}

int asks_put(struct asks *d, const struct rv_tool_work *work, const struct rv_service_ask *q, rv_buf *answer,
             rv_err **err)
{
    struct ask *a = new_ask(d, work, q);

    if (!a)
        return RV_FAIL(err, RV_E_NOMEM, "ask service \"%s\"", q->service);
    pthread_mutex_lock(&d->lock);
    a->is_dropped = d->is_stopped || atomic_load(&work->cancelled);
    if (!a->is_dropped) {
        a->next = d->list;
        d->list = a;
        wake(d);
    }
    int rc = wait_for(d, a);
    bool is_mine = a->is_dropped || a->state == ASK_DONE || a->state == ASK_NEW;
    if (a->state == ASK_NEW)
        unlink_ask(d, a);
    if (!is_mine) {
        a->is_left = true;
        wake(d);
    }
    pthread_mutex_unlock(&d->lock);
    if (rc == RV_E_TIMEOUT)
        rc = RV_FAIL(err, rc, "service \"%s\" did not answer before the time of the call was over", q->service);
    else if (rc == RV_E_CANCELLED)
        rc = RV_FAIL(err, rc, "service \"%s\": the answer of this call is not wanted any more", q->service);
    if (!is_mine)
        return rc;
    if (rc == 0 && a->why) {
        rc = rv_err_code(a->why);
        if (err)
            rv_err_pass(err, rv_err_steal(&a->why));
    } else if (rc == 0) {
        rv_buf_add_str(answer, rv_buf_str(&a->answer));
    }
    engine_ask_free(a);
    return rc;
}

/* --- the loop's side --- */

struct ask *asks_take(struct asks *d, enum ask_state *was)
{
    pthread_mutex_lock(&d->lock);
    struct ask *a = d->list;
    while (a && !a->is_left && a->state != ASK_NEW && a->state != ASK_RAN)
        a = a->next;
    if (a && a->is_left)
        unlink_ask(d, a);
    if (a) {
        *was = a->state;
        a->state = ASK_LOOP;
    }
    pthread_mutex_unlock(&d->lock);
    return a;
}

void asks_run(struct asks *d, struct ask *a, struct rv_service_job *job)
{
    pthread_mutex_lock(&d->lock);
    a->job = job;
    if (!a->is_left)
        a->state = ASK_JOB;
    pthread_cond_broadcast(&d->news);
    pthread_mutex_unlock(&d->lock);
}

void asks_done(struct asks *d, struct ask *a, rv_err *why)
{
    pthread_mutex_lock(&d->lock);
    if (a->is_left) { /* it is freed when it is taken */
        pthread_mutex_unlock(&d->lock);
        rv_err_free(why);
        return;
    }
    unlink_ask(d, a);
    rv_err_free(a->why);
    a->why = why;
    a->state = ASK_DONE;
    pthread_cond_broadcast(&d->news);
    pthread_mutex_unlock(&d->lock);
}

bool asks_drop(struct asks *d, const struct rv_tool_work *work, uint64_t *id)
{
    pthread_mutex_lock(&d->lock);
    struct ask *a = d->list;
    while (a && work && a->work != work)
        a = a->next;
    bool is_left = a && a->is_left;
    if (a) {
        *id = a->id;
        unlink_ask(d, a);
        a->is_dropped = true;
        pthread_cond_broadcast(&d->news);
    }
    pthread_mutex_unlock(&d->lock);
    if (is_left)
        engine_ask_free(a);
    return a != NULL;
}

void asks_stop(struct asks *d)
{
    pthread_mutex_lock(&d->lock);
    d->is_stopped = true;
    d->wake = NULL;
    pthread_mutex_unlock(&d->lock);
}
