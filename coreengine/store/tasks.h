/* The part of the store for the queue. Work that waits is a task; a worker claims tasks, holds each under a lease,
 * and completes it, fails it or hands it back.
 *
 * A task is `waiting` until it is due, then `pending` until a worker claims it, then `processing`; `completed`,
 * `failed` and `cancelled` are final, but a person may retry the last two. A failed attempt makes the task waiting
 * again, until its retries are used up. Every change of a task is kept as an event.
 *
 * A lease is named by the worker and the number of the attempt. Who no longer holds it changes nothing: complete, fail,
 * postpone and release are then RV_E_STATE and their text begins with "lost_lease".
 *
 * Tasks of one tenant with the same tier and needs form a lane. Within a class (a tier and a set of needs) the lanes
 * get equal shares of the workers, or shares by weight, however many tasks wait in each: a claim takes from the lane
 * that was served least. Priority orders the tasks of one lane only.
 *
 * Calls of workers (claim, complete, heartbeat, promote, ...) are for all tenants; calls with a scope see and change
 * only what is in it. Any thread may call, with its own handle. All may be part of a group (rv_store_begin()): the
 * enqueueing of a task and the creation of what it is about can be one transaction. */
#ifndef RV_STORE_TASKS_H
#define RV_STORE_TASKS_H

#include "coreengine/store/handle.h"
#include "envelope/envelope.h"

/** Tells whether a task of that status is over for good, unless a person retries it. */
bool rv_task_status_is_final(enum rv_task_status status);

#define RV_TASK_MAX_NEEDS    16                /* of one task: workers compare them one by one */
#define RV_TASK_MAX_RETRIES  100               /* of one task: each can cost */
#define RV_TASK_RETRIES      3                 /* of p8; so a task has four attempts */
#define RV_TASK_MAX_PRIORITY 1000000           /* and its negative: a person can still read it */
#define RV_TASK_MAX_JSON     ((size_t)1 << 20) /* a payload, or a result: each list of tasks reads it */
#define RV_TASK_MAX_ERROR    8192              /* bytes; more is cut off: an error's beginning says what is wrong */
#define RV_TASK_MAX_CLAIM    1000              /* of one claim, promotion, recovery, deletion: others wait meanwhile */
#define RV_TASK_MAX_CLASSES  256               /* of one claim: each is a statement */
#define RV_TASK_MAX_WEIGHT   1000              /* of a tenant: shares are at most a thousand to one */

/* Texts are borrowed, or in the memory of `own`. */
struct rv_task_row {
    const char *id, *tenant, *user; /* user "": none */
    const char *type;               /* what handles it: "run", "file_processing", ... */
    const char *tier;
    const char *key;   /* what makes it the same task as another; NULL: nothing */
    rv_str payload;    /* a JSON object */
    rv_str result;     /* a JSON object; ptr NULL: none yet */
    const char *error; /* of the last attempt that failed; NULL: none */
    enum rv_task_status status;
    bool cancel_requested; /* its worker should stop */
    int64_t class_id;      /* id of its tier and needs: rv_store_list_classes() */
    int64_t priority;      /* greater is sooner */
    int64_t attempt;       /* how often it was claimed; with the worker it names the lease */
    int64_t retry_count, max_retries;
    int64_t created_us, updated_us;
    int64_t scheduled_us;   /* when it is due, or was */
    int64_t started_us;     /* the last claim; 0: none yet */
    int64_t completed_us;   /* became final; 0: did not */
    const char *worker;     /* NULL: no lease */
    int64_t claimed_us;     /* the worker's last sign of life; 0: no lease */
    int64_t lease_until_us; /* 0: no lease */
    char *own;              /* the texts' memory; NULL when they are borrowed */
};
void rv_task_row_fini(struct rv_task_row *row);

/* --- Enqueue --- */
/* What it points to is borrowed for the call. */
struct rv_new_task {
    const char *id;            /* unique in the store; the caller makes it */
    const char *tenant, *user; /* NULL: RV_STORE_TENANT, no user */
    const char *type;
    const char *key;          /* idempotency key; NULL: none */
    const char *tier;         /* a word of RV_TASK_TIERS; NULL: "small" */
    const char *const *needs; /* what its worker must offer, beside the tier: labels, capabilities; any order, doubles
                                 are dropped. At most RV_TASK_MAX_NEEDS ids */
    size_t n_needs;
    rv_str payload;       /* a JSON object; empty: {} */
    int64_t priority;     /* 0 is usual; +-RV_TASK_MAX_PRIORITY */
    int64_t max_retries;  /* RV_UNSET: RV_TASK_RETRIES; 0: one attempt only */
    int64_t scheduled_us; /* not before; 0 or past: due at once */
    int64_t now_us;
};
struct rv_enqueued {
    char id[RV_STORE_MAX_ID + 1]; /* of the new task, or of the one that was there */
    bool is_new;
};
/** Add a task. When a task of the same tenant, user, type and key is waiting, pending or processing, nothing is added
 *  and `out` (may be NULL) names that one. RV_E_EXISTS: the id is taken. RV_E_INVALID, RV_E_LIMIT: an argument. */
RV_MUST_CHECK int rv_store_enqueue(rv_store *s, const struct rv_new_task *task, struct rv_enqueued *out, rv_err **err);

/* --- Workers: which tasks they can do --- */
/* A tier and a set of needs that tasks have had. Classes are added, never changed. What it points to is borrowed for
 * the call that gets it. */
struct rv_task_class {
    int64_t id; /* from 1 */
    const char *tier;
    const char *const *needs; /* sorted by bytes, each once */
    size_t n_needs;
};
/** Calls each for every class, oldest first, borrowed for the call; each as rv_store_list_runs(). A worker keeps the
 * ids of those it can serve, and asks again when rv_store_next_tasks() gives another number of classes. */
RV_MUST_CHECK int rv_store_list_classes(rv_store *s,
                                        int (*each)(void *self, const struct rv_task_class *c, rv_err **err),
                                        void *self, rv_err **err);
struct rv_next_tasks {
    int64_t n_classes; /* that there are */
    bool ready;        /* a claim in one of the given classes would find a task */
    int64_t due_us;    /* when the first waiting task of any class is due: rv_store_promote_tasks(); 0: none waits */
    int64_t stale_us;  /* when the first lease of any worker ends: rv_store_recover_tasks(); 0: none is held */
    int64_t fires_us;  /* when the first schedule is due: rv_store_list_due_schedules(); 0: there is none */
};
/** The tasks that are ready, and when more will be. A read, which does not wait for writers, so a worker may ask often.
 */
RV_MUST_CHECK int rv_store_next_tasks(rv_store *s, const int64_t *classes, size_t n_classes, struct rv_next_tasks *out,
                                      rv_err **err);

/* --- Workers: claiming --- */
/* What it points to is borrowed for the call. */
struct rv_claim_tasks {
    const char *worker;     /* a name that no other process uses, nor this one after a restart */
    const int64_t *classes; /* that it can serve, in the order in which they are tried: a caller that turns the list by
                               one each time is fair to them; at most RV_TASK_MAX_CLASSES */
    size_t n_classes;
    size_t n;                 /* at most so many tasks, 1 to RV_TASK_MAX_CLAIM */
    int64_t now_us, until_us; /* until: when the lease ends, unless it is renewed */
};
struct rv_claimed {
    struct rv_task_row *rows; /* in the order in which they were claimed; each has attempt and worker; owned */
    size_t n;
    size_t n_denied; /* tasks that were passed over: this process has no key for them, or they are damaged */
    rv_err *denied;  /* what the first of them was told; NULL: there was none; owned */
};
void rv_claimed_fini(struct rv_claimed *claimed);
/** Claim up to n pending tasks: lanes by what they were served, in each by priority (greatest first), when they were
 * due, and age. Fewer than n, or none, is fine. Tasks that cannot be decrypted stay pending, and
 * those behind them are claimed. `out` owns its rows. Event `claimed` of each. */
RV_MUST_CHECK int rv_store_claim_tasks(rv_store *s, const struct rv_claim_tasks *claim, struct rv_claimed *out,
                                       rv_err **err);

/* The right to change a task that is processing. Texts are borrowed for the call. */
struct rv_task_lease {
    const char *id, *worker;
    int64_t attempt;
};
/** `completed`, with the result (a JSON object; empty: none). RV_E_STATE "lost_lease ...", RV_E_NOT_FOUND: no such
 *  task any more; so the next five. */
RV_MUST_CHECK int rv_store_complete_task(rv_store *s, const struct rv_task_lease *lease, rv_str result, int64_t now_us,
                                         rv_err **err);
struct rv_task_end {
    struct rv_task_lease lease;
    rv_str result;
    bool is_lost; /* set by the call: the lease was lost, or there is no such task, and it stays as it was */
};
/** The same for 1 to RV_TASK_MAX_CLAIM tasks in one transaction. Those whose lease was lost do not keep the others from
 * being completed; rv_store_complete_task() says why. */
RV_MUST_CHECK int rv_store_complete_tasks(rv_store *s, struct rv_task_end *ends, size_t n, int64_t now_us,
                                          rv_err **err);
/* What it points to is borrowed for the call. */
struct rv_task_failure {
    const char *error;  /* why; cut to RV_TASK_MAX_ERROR */
    bool is_final;      /* another attempt would fail as well: `failed` at once */
    int64_t jitter_ppm; /* how much longer (or, negative, shorter) the back-off is, in millionths: the caller draws it
                           from -100000 to 100000, so that tasks that failed together do not come back together */
    int64_t now_us;
};
/** While retries are left: `waiting`, due in 30 s x 4^(retries used), at most a day, and one more retry is used; else
 *  `failed`. A task that was to be cancelled becomes `cancelled`. *now_is (may be NULL): which of them. */
RV_MUST_CHECK int rv_store_fail_task(rv_store *s, const struct rv_task_lease *lease,
                                     const struct rv_task_failure *failure, enum rv_task_status *now_is, rv_err **err);
/** Put it off until then without using a retry, because a quota does not allow it now; why: which, and until when.
 *  Event `quota_exceeded`. A task that was to be cancelled becomes `cancelled`. */
RV_MUST_CHECK int rv_store_postpone_task(rv_store *s, const struct rv_task_lease *lease, int64_t until_us,
                                         const char *why, int64_t now_us, rv_err **err);
/** The same because what it needs is not ready: its run is under way, or crashed again and again. Event `released`. */
RV_MUST_CHECK int rv_store_defer_task(rv_store *s, const struct rv_task_lease *lease, int64_t until_us, const char *why,
                                      int64_t now_us, rv_err **err);
/** Hand it back: pending again, without using a retry. For a worker that ends. Event `released`. A task that was to be
 *  cancelled becomes `cancelled`. */
RV_MUST_CHECK int rv_store_release_task(rv_store *s, const struct rv_task_lease *lease, int64_t now_us, rv_err **err);
/** `cancelled`, because its worker stopped as it was asked to. RV_E_STATE also when it was not asked. */
RV_MUST_CHECK int rv_store_stop_task(rv_store *s, const struct rv_task_lease *lease, int64_t now_us, rv_err **err);
/** A sign of life: all that the worker holds, in one statement, is its own until `until_us`. No lease is cut short, and
 *  one that was recovered meanwhile does not come back. *n (may be NULL): how many it holds. */
RV_MUST_CHECK int rv_store_heartbeat(rv_store *s, const char *worker, int64_t now_us, int64_t until_us, int64_t *n,
                                     rv_err **err);
/** The tasks that the worker holds, oldest first: one that is missing was lost; one that is to be cancelled says so.
 * each as rv_store_list_runs(). */
RV_MUST_CHECK int rv_store_list_held(rv_store *s, const char *worker,
                                     int (*each)(void *self, const struct rv_task_lease *lease, bool cancel_requested,
                                                 rv_err **err),
                                     void *self, rv_err **err);

/* --- Workers: time. Any worker may do these for all; each call takes the first `max` (1 to RV_TASK_MAX_CLAIM) and
 * says how many it took: when that is `max`, there may be more. --- */
/** Waiting tasks that are due become pending. */
RV_MUST_CHECK int rv_store_promote_tasks(rv_store *s, int64_t now_us, int64_t max, int64_t *n, rv_err **err);
struct rv_recovered {
    int64_t n_pending;   /* put back, with one more retry used; event `recovered` */
    int64_t n_failed;    /* had no retry left; event `failed` */
    int64_t n_cancelled; /* were to be cancelled */
};
/** Tasks whose lease has ended (their worker died, or hangs) are taken from it. */
RV_MUST_CHECK int rv_store_recover_tasks(rv_store *s, int64_t now_us, int64_t max, struct rv_recovered *out,
                                         rv_err **err);
/** Delete final tasks that became so before `before_us`, oldest first, with their events. */
RV_MUST_CHECK int rv_store_prune_tasks(rv_store *s, int64_t before_us, int64_t max, int64_t *n, rv_err **err);

/* --- People and programs that look and change --- */
/** RV_E_NOT_FOUND also for a task outside the scope. `out` owns its texts. */
RV_MUST_CHECK int rv_store_get_task(rv_store *s, const struct rv_store_scope *scope, const char *id,
                                    struct rv_task_row *out, rv_err **err);
/* What it points to is borrowed for the call. */
struct rv_task_filter {
    unsigned statuses;      /* bits 1u << enum rv_task_status; 0: all. Dead letters: 1u << RV_TASK_FAILED */
    const char *type, *key; /* NULL: any */
    const char *worker;     /* that holds it; NULL: any */
    const char *id_prefix;  /* NULL: any */
    bool oldest_first;      /* by created_us, then age; else newest first */
    int64_t limit;          /* 0: no limit */
};
/** filter NULL: all. Rows are borrowed for the call of each; each as rv_store_list_runs(). */
RV_MUST_CHECK int rv_store_list_tasks(rv_store *s, const struct rv_store_scope *scope,
                                      const struct rv_task_filter *filter,
                                      int (*each)(void *self, const struct rv_task_row *row, rv_err **err), void *self,
                                      rv_err **err);
/* Texts are borrowed for the call that gets it. */
struct rv_task_event {
    int64_t seq; /* from 1 */
    int64_t at_us;
    const char *kind;                    /* a word of RV_TASK_EVENTS */
    int64_t attempt;                     /* in which attempt */
    const char *worker;                  /* NULL: no worker did it */
    const char *text;                    /* the error, or why; NULL: nothing to say */
    int64_t retry, max_retries, next_us; /* of `retrying`, `recovered` and `quota_exceeded`: retries used, of how many,
                                            when it is due again; else 0 */
};
/** Events in order, borrowed for the call. RV_E_NOT_FOUND: no such task in the scope. */
RV_MUST_CHECK int rv_store_list_task_events(rv_store *s, const struct rv_store_scope *scope, const char *id,
                                            int (*each)(void *self, const struct rv_task_event *e, rv_err **err),
                                            void *self, rv_err **err);
/** A task that no worker holds becomes `cancelled`; the worker of one that is processing is asked to stop. RV_E_STATE:
 * it is final. *now_is (may be NULL): its status afterwards. */
RV_MUST_CHECK int rv_store_cancel_task(rv_store *s, const struct rv_store_scope *scope, const char *id, int64_t now_us,
                                       enum rv_task_status *now_is, rv_err **err);
/** Put a failed or cancelled task back: pending now, with all its retries. RV_E_STATE: it is neither. RV_E_EXISTS:
 *  another task has its key by now. */
RV_MUST_CHECK int rv_store_retry_task(rv_store *s, const struct rv_store_scope *scope, const char *id, int64_t now_us,
                                      rv_err **err);

/* --- Shares of tenants --- */
struct rv_task_share {
    int64_t weight; /* 1 to RV_TASK_MAX_WEIGHT; a tenant of weight 2 gets twice as many tasks served as one of 1 */
    int64_t cap;    /* at most so many tasks of a lane are processed at once; 0: no limit */
};
/** For all lanes of the tenant (NULL: RV_STORE_TENANT), those to come included. */
RV_MUST_CHECK int rv_store_set_share(rv_store *s, const char *tenant, const struct rv_task_share *share, rv_err **err);
/* What waits and runs of one tenant and class. Texts are borrowed for the call that gets it. */
struct rv_task_lane {
    int64_t class_id;
    const char *tier, *tenant;
    int64_t n_pending, n_processing;
    struct rv_task_share share;
};
/** Lanes of the tenant (NULL: RV_STORE_TENANT), by class; each as rv_store_list_runs(). */
RV_MUST_CHECK int rv_store_list_lanes(rv_store *s, const char *tenant,
                                      int (*each)(void *self, const struct rv_task_lane *lane, rv_err **err),
                                      void *self, rv_err **err);

/* --- Workers: what they offer, and which duty each has. All calls are for all tenants. --- */
#define RV_STORE_MAX_OFFERS ((size_t)256 << 10) /* bytes of what a worker offers, as JSON: lists show it */

/* Texts are borrowed for the call that gets it. */
struct rv_worker_row {
    const char *name; /* unique: no other process has it, nor the same one after a restart */
    const char *host; /* for people */
    int64_t pid;
    rv_str offers;               /* a JSON array of texts: labels, capabilities with versions */
    int64_t n_max, n_runs;       /* tasks that it takes at once, and has now */
    bool is_draining;            /* it takes no more */
    int64_t started_us, seen_us; /* seen: its last sign of life */
};
/** Add a worker, or update its row. RV_E_INVALID. */
RV_MUST_CHECK int rv_store_put_worker(rv_store *s, const struct rv_worker_row *row, rv_err **err);
/** Those that gave a sign of life since then, by the time when they began; the row is borrowed for the call of each;
 * each as rv_store_list_runs(). */
RV_MUST_CHECK int rv_store_list_workers(rv_store *s, int64_t since_us,
                                        int (*each)(void *self, const struct rv_worker_row *row, rv_err **err),
                                        void *self, rv_err **err);
/** A worker has ended. Workers without a sign of life since before_us are removed, too. */
RV_MUST_CHECK int rv_store_delete_worker(rv_store *s, const char *name, int64_t before_us, rv_err **err);
/* A duty that one worker at a time has for all. Texts are borrowed for the call. */
struct rv_duty_claim {
    const char *duty, *worker; /* worker: who wants it */
    int64_t now_us, until_us;  /* it is the worker's until then */
};
/** Take a duty that one worker at a time has for all. *is_mine: it is this worker's until then. A worker that has it
 * keeps it. */
RV_MUST_CHECK int rv_store_claim_duty(rv_store *s, const struct rv_duty_claim *claim, bool *is_mine, rv_err **err);

#endif
