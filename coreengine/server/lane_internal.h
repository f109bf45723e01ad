/* A loop with a thread, and letters to it: see lane.c. */
#ifndef RV_SERVER_LANE_INTERNAL_H
#define RV_SERVER_LANE_INTERNAL_H

#include <pthread.h>
#include <uv.h>

#include "coreengine/base/base.h"

struct srv_letter {
    struct srv_letter *next;            /* in its lane; guarded by its lock */
    void (*open)(struct srv_letter *l); /* on the thread of the lane; owns the letter */
    bool is_followed;                   /* by another one at once, so that it wakes the lane */
};
struct srv_lane {
    uv_loop_t *loop; /* borrowed, or own */
    uv_async_t wake;
    pthread_mutex_t lock;
    struct srv_letter *first, **end; /* guarded, as the next two */
    bool is_closed;
    bool naps;
    uv_loop_t own; /* of srv_lane_go() */
    pthread_t thread;
    bool has_thread;
    /* --- of its thread --- */
    struct srv_lane *outlet; /* woken once for all letters to it that come of the letters here; outlives this one */
    bool owes;               /* the outlet is to be woken */
    bool takes_naps; /* set before srv_lane_go(): while it is woken again and again, and nothing hurries, it waits some
                      * milliseconds and handles at once what has come meanwhile */
    uv_check_t check;
    pthread_cond_t alarm;
    uint64_t checked_ns, hurried_ns;
    unsigned n_busy; /* wakes in a row, each a short time after the last */
};
/** For a loop that the caller runs; close it with srv_lane_close() on that thread. */
RV_MUST_CHECK int srv_lane_init(struct srv_lane *lane, uv_loop_t *loop, rv_err **err);
/** With a loop of its own, for a thread that srv_lane_go() starts. */
RV_MUST_CHECK int srv_lane_open(struct srv_lane *lane, rv_err **err);
RV_MUST_CHECK int srv_lane_go(struct srv_lane *lane, rv_err **err);
/** Any thread; takes the letter. */
void srv_lane_post(struct srv_lane *lane, struct srv_letter *letter);
void srv_lane_hurry(struct srv_lane *lane); /* no naps for some time; on its thread */
void srv_lane_read(struct srv_lane *lane);  /* open what has come, on its thread, or when that has ended */
void srv_lane_close(struct srv_lane *lane); /* on its thread: its handle goes, and letters wake it no more */
void srv_lane_join(struct srv_lane *lane);  /* waits until the loop of its thread has nothing left */
void srv_lane_fini(struct srv_lane *lane);  /* its own loop goes */

#endif
