/* Shared by the files of the dispatcher, the thread of a worker that talks to the store. */
#ifndef RV_WORK_DISPATCHER_INTERNAL_H
#define RV_WORK_DISPATCHER_INTERNAL_H

#include <pthread.h>

#include "coreengine/app/schedules.h"
#include "coreengine/app/worker/worker_internal.h"

#define RV_DISPATCHER_POLL_US (50 * RV_US_PER_MS) /* until the next look, when something was found */

struct work_dispatcher {
    pthread_mutex_t lock; /* guards the lists, n_held, the flags and the wake; leaf: not held while the store is used */
    int bell[2];          /* a pipe; a byte in it: something was given, or is to be done */
    struct work_list ended;  /* from the loop */
    struct work_list begins; /* for the loop */
    size_t n_held;           /* tasks that it claimed and has not told the end of */
    bool is_draining, is_ending, is_idle;
    int64_t drained_us; /* draining: until then ends that the store refuses are told again */
    bool is_told;       /* by this process that there may be work */
    bool heard_cancel;  /* something was announced while runs go on: for the loop */
    void (*wake)(void *self);
    void *wake_self; /* borrowed */
    pthread_t thread;
    /* the thread's own */
    struct rv_worker *worker; /* what does not change; borrowed; outlives the thread */
    rv_store *store;          /* owned */
    struct work_taker taker;
    rv_zones *zones;          /* of the schedules that it fires; owned */
    struct work_job *held;    /* by next_held; owned */
    struct work_list unloads; /* ended, and told; what they loaded may still be in use */
    int64_t *classes;         /* that it can serve; owned */
    size_t n_classes, cap_classes, first_class;
    int64_t n_known_classes; /* -1: not asked yet */
    struct work_sweep sweep;
    int64_t poll_us, poll_at_us, sweep_at_us, sign_at_us, started_us, prune_at_us;
    bool found_something;                /* in the last look */
    bool is_denied;                      /* what is ready is encrypted, and this process has no key for it */
    bool has_told_denied;                /* to the log, of the first such task */
    bool has_told_draining;              /* the store that it takes no more */
    int64_t untold_at_us;                /* when to tell the ends again that the store did not take; 0: none */
    int64_t cancels_at_us, cancelled_us; /* when to look for cancellations, and the last look; 0: none */
};

/* dispatcher_look.c */
/** Ask the store what there is to do: fire, promote and recover what is due, claim what there is room for, and plan the
 * next look. */
RV_MUST_CHECK int app_dispatcher_look(struct work_dispatcher *d, rv_err **err);
/** A task that is claimed and that nothing here can go on with is free again. If that fails, the next sign of life
 * finds it. */
void app_dispatcher_hand_back(struct work_dispatcher *d, const char *task, int64_t attempt);
/** The first of two times; b 0: there is none. */
int64_t app_dispatcher_earlier(int64_t a_us, int64_t b_us);

#endif
