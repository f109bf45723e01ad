/* A loop that other threads write letters to. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/loop.h"
#include "coreengine/server/server_internal.h"

void srv_lane_read(struct srv_lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    struct srv_letter *l = lane->first;
    lane->first = NULL;
    lane->end = &lane->first;
    pthread_mutex_unlock(&lane->lock);
    for (struct srv_letter *next; l; l = next) {
        next = l->next;
        l->open(l);
    }
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
    return 0;
}

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
    int rc = rv_thread_start(&lane->thread, go, lane, err);

    lane->has_thread = rc == 0;
    return rc;
}

void srv_lane_post(struct srv_lane *lane, struct srv_letter *letter)
{
    letter->next = NULL;
    pthread_mutex_lock(&lane->lock);
    *lane->end = letter;
    lane->end = &letter->next;
    if (!lane->is_closed) /* what comes later is opened when the lane goes */
        RV_IGNORE(uv_async_send(&lane->wake), "the handle is open");
    pthread_mutex_unlock(&lane->lock);
}

void srv_lane_close(struct srv_lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    lane->is_closed = true;
    pthread_mutex_unlock(&lane->lock);
    uv_close((uv_handle_t *)&lane->wake, NULL);
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
