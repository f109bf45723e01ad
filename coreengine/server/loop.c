/* A loop that other threads write messages to. To be woken costs a thread more than to handle a piece of an answer, so
 * messages that come together wake it once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coreengine/base/loop.h"
#include "coreengine/server/server_internal.h"

#define PAUSE_NS UINT64_C(10000000) /* from wake to wake, while many pieces come */
#define N_BUSY   4                  /* wakes in a row that are closer than that: many pieces come */
#define HURRY_NS UINT64_C(20000000) /* a turn that begins, ends or changes its stage takes several wakes */

static _Thread_local struct srv_loop *reading; /* whose messages are opened on this thread just now */

/* With the lock. What comes when it is closed is opened when the loop goes. */
static void wake(struct srv_loop *loop)
{
    if (!loop->is_closed)
        RV_IGNORE(uv_async_send(&loop->wake), "the handle is open");
    if (loop->is_pausing)
        pthread_cond_signal(&loop->alarm);
    loop->is_pausing = false;
}

void srv_loop_post(struct srv_loop *loop, struct srv_message *message)
{
    bool is_own_outlet = reading && reading->outlet == loop;

    message->next = NULL;
    pthread_mutex_lock(&loop->lock);
    *loop->end = message;
    loop->end = &message->next;
    if (is_own_outlet)
        reading->owes_wake = true;
    else if (!message->is_followed)
        wake(loop);
    pthread_mutex_unlock(&loop->lock);
}

static void wake_outlet(struct srv_loop *loop)
{
    if (!loop->owes_wake)
        return;
    loop->owes_wake = false;
    pthread_mutex_lock(&loop->outlet->lock);
    wake(loop->outlet);
    pthread_mutex_unlock(&loop->outlet->lock);
}

void srv_loop_read(struct srv_loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    struct srv_message *l = loop->first;
    loop->first = NULL;
    loop->end = &loop->first;
    pthread_mutex_unlock(&loop->lock);
    reading = loop;
    for (struct srv_message *next; l; l = next) {
        next = l->next;
        l->open(l);
    }
    reading = NULL;
    wake_outlet(loop);
}

static void on_wake(uv_async_t *async)
{
    srv_loop_read(async->data);
}

int srv_loop_init(struct srv_loop *loop, uv_loop_t *uv, rv_err **err)
{
    loop->uv = uv;
    loop->end = &loop->first;
    int failed = uv_async_init(uv, &loop->wake, on_wake);
    if (failed < 0)
        return RV_FAIL_SYSTEM(err, failed, "make the event loop");
    loop->wake.data = loop;
    pthread_mutex_init(&loop->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&loop->alarm, &attr);
    pthread_condattr_destroy(&attr);
    return 0;
}

/* --- is_pausing --- */

void srv_loop_hurry(struct srv_loop *loop)
{
    loop->hurried_ns = uv_hrtime();
}

static void pause_until(struct srv_loop *loop, uint64_t until_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000), .tv_nsec = (long)(until_ns % 1000000000)};

    pthread_mutex_lock(&loop->lock);
    loop->is_pausing = !loop->first;
    while (loop->is_pausing && pthread_cond_timedwait(&loop->alarm, &loop->lock, &until) != ETIMEDOUT)
        continue;
    loop->is_pausing = false;
    pthread_mutex_unlock(&loop->lock);
}

static void on_check(uv_check_t *check)
{
    struct srv_loop *loop = check->data;
    uint64_t now_ns = uv_hrtime(), next_ns = loop->checked_ns + PAUSE_NS;
    bool is_busy = now_ns < next_ns;

    loop->n_busy = is_busy ? loop->n_busy + 1 : 0;
    if (loop->n_busy > N_BUSY && now_ns - loop->hurried_ns > HURRY_NS) {
        pause_until(loop, next_ns);
        now_ns = uv_hrtime();
    }
    loop->checked_ns = now_ns;
}

static void begin_coalescing(struct srv_loop *loop)
{
    uv_check_init(loop->uv, &loop->check); /* these cannot fail */
    loop->check.data = loop;
    uv_check_start(&loop->check, on_check);
    uv_unref((uv_handle_t *)&loop->check);
}

/* --- its thread --- */

static void *go(void *self)
{
    struct srv_loop *loop = self;

    uv_run(loop->uv, UV_RUN_DEFAULT);
    return NULL;
}

int srv_loop_open(struct srv_loop *loop, rv_err **err)
{
    int rc = rv_loop_init(&loop->own, err);

    if (rc < 0)
        return rc;
    rc = srv_loop_init(loop, &loop->own, err);
    if (rc < 0)
        RV_IGNORE(uv_loop_close(&loop->own), "nothing is open on it");
    return rc;
}

int srv_loop_go(struct srv_loop *loop, rv_err **err)
{
    if (loop->coalesces)
        begin_coalescing(loop);
    int rc = rv_thread_start(go, loop, &loop->thread, err);
    loop->has_thread = rc == 0;
    return rc;
}

void srv_loop_close(struct srv_loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    loop->is_closed = true;
    pthread_mutex_unlock(&loop->lock);
    uv_close((uv_handle_t *)&loop->wake, NULL);
    if (loop->check.data)
        uv_close((uv_handle_t *)&loop->check, NULL);
}

void srv_loop_join(struct srv_loop *loop)
{
    if (!loop->has_thread)
        return;
    pthread_join(loop->thread, NULL);
    loop->has_thread = false;
}

void srv_loop_fini(struct srv_loop *loop)
{
    if (loop->uv != &loop->own)
        return;
    srv_loop_read(loop);
    uv_run(loop->uv, UV_RUN_DEFAULT);
    RV_IGNORE(uv_loop_close(loop->uv), "all handles are closed");
}
