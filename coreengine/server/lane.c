/* A loop that other threads write letters to. To be woken costs a thread more than to handle a piece of an answer, so
 * letters that come together wake it once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coreengine/base/loop.h"
#include "coreengine/server/server_internal.h"

#define NAP_NS   UINT64_C(5000000)  /* from wake to wake, while many pieces come */
#define N_BUSY   4                  /* wakes in a row that are closer than that: many pieces come */
#define HURRY_NS UINT64_C(20000000) /* a turn that begins, ends or changes its stage takes several wakes */

static _Thread_local struct srv_lane *reading; /* whose letters are opened on this thread just now */

/* With the lock. What comes when it is closed is opened when the lane goes. */
static void wake(struct srv_lane *lane)
{
    if (!lane->is_closed)
        RV_IGNORE(uv_async_send(&lane->wake), "the handle is open");
    if (lane->naps)
        pthread_cond_signal(&lane->alarm);
    lane->naps = false;
}

void srv_lane_post(struct srv_lane *lane, struct srv_letter *letter)
{
    bool is_owed = reading && reading->outlet == lane;

    letter->next = NULL;
    pthread_mutex_lock(&lane->lock);
    *lane->end = letter;
    lane->end = &letter->next;
    if (is_owed)
        reading->owes = true;
    else if (!letter->is_followed)
        wake(lane);
    pthread_mutex_unlock(&lane->lock);
}

static void pay(struct srv_lane *lane)
{
    if (!lane->owes)
        return;
    lane->owes = false;
    pthread_mutex_lock(&lane->outlet->lock);
    wake(lane->outlet);
    pthread_mutex_unlock(&lane->outlet->lock);
}

void srv_lane_read(struct srv_lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    struct srv_letter *l = lane->first;
    lane->first = NULL;
    lane->end = &lane->first;
    pthread_mutex_unlock(&lane->lock);
    reading = lane;
    for (struct srv_letter *next; l; l = next) {
        next = l->next;
        l->open(l);
    }
    reading = NULL;
    pay(lane);
}

static void on_wake(uv_async_t *async)
{
    srv_lane_read(async->data);
}

int srv_lane_init(struct srv_lane *lane, uv_loop_t *loop, rv_err **err)
{
    lane->loop = loop;
    lane->end = &lane->first;
    int failed = uv_async_init(loop, &lane->wake, on_wake);
    if (failed < 0)
        return RV_FAIL_SYSTEM(err, failed, "make the event loop");
    lane->wake.data = lane;
    pthread_mutex_init(&lane->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&lane->alarm, &attr);
    pthread_condattr_destroy(&attr);
    return 0;
}

/* --- naps --- */

void srv_lane_hurry(struct srv_lane *lane)
{
    lane->hurried_ns = uv_hrtime();
}

static void nap(struct srv_lane *lane, uint64_t until_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000), .tv_nsec = (long)(until_ns % 1000000000)};

    pthread_mutex_lock(&lane->lock);
    lane->naps = !lane->first;
    while (lane->naps && pthread_cond_timedwait(&lane->alarm, &lane->lock, &until) != ETIMEDOUT)
        continue;
    lane->naps = false;
    pthread_mutex_unlock(&lane->lock);
}

static void on_check(uv_check_t *check)
{
    struct srv_lane *lane = check->data;
    uint64_t now_ns = uv_hrtime(), next_ns = lane->checked_ns + NAP_NS;
    bool is_busy = now_ns < next_ns;

    lane->n_busy = is_busy ? lane->n_busy + 1 : 0;
    if (lane->n_busy > N_BUSY && now_ns - lane->hurried_ns > HURRY_NS) {
        nap(lane, next_ns);
        now_ns = uv_hrtime();
    }
    lane->checked_ns = now_ns;
}

static void take_naps(struct srv_lane *lane)
{
    uv_check_init(lane->loop, &lane->check); /* these cannot fail */
    lane->check.data = lane;
    uv_check_start(&lane->check, on_check);
    uv_unref((uv_handle_t *)&lane->check);
}

/* --- its thread --- */

static void *go(void *self)
{
    struct srv_lane *lane = self;

    uv_run(lane->loop, UV_RUN_DEFAULT);
    return NULL;
}

int srv_lane_open(struct srv_lane *lane, rv_err **err)
{
    int rc = rv_loop_init(&lane->own, err);

    if (rc < 0)
        return rc;
    rc = srv_lane_init(lane, &lane->own, err);
    if (rc < 0)
        RV_IGNORE(uv_loop_close(&lane->own), "nothing is open on it");
    return rc;
}

int srv_lane_go(struct srv_lane *lane, rv_err **err)
{
    if (lane->takes_naps)
        take_naps(lane);
    int rc = rv_thread_start(&lane->thread, go, lane, err);
    lane->has_thread = rc == 0;
    return rc;
}

void srv_lane_close(struct srv_lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    lane->is_closed = true;
    pthread_mutex_unlock(&lane->lock);
    uv_close((uv_handle_t *)&lane->wake, NULL);
    if (lane->check.data)
        uv_close((uv_handle_t *)&lane->check, NULL);
}

void srv_lane_join(struct srv_lane *lane)
{
    if (!lane->has_thread)
        return;
    pthread_join(lane->thread, NULL);
    lane->has_thread = false;
}

void srv_lane_fini(struct srv_lane *lane)
{
    if (lane->loop != &lane->own)
        return;
    srv_lane_read(lane);
    uv_run(lane->loop, UV_RUN_DEFAULT);
    RV_IGNORE(uv_loop_close(lane->loop), "all handles are closed");
}
