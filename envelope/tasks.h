/* The words of the queue: constant, wire text, meaning, and their enums. terms.h makes the conversions. */
#ifndef RV_ENVELOPE_TASKS_H
#define RV_ENVELOPE_TASKS_H

#define RV_TASK_STATUSES(X)                                                                                            \
    X(WAITING, "waiting", "not due yet")                                                                               \
    X(PENDING, "pending", "due; a free worker may claim it")                                                           \
    X(PROCESSING, "processing", "a worker holds it")                                                                   \
    X(COMPLETED, "completed", "done")                                                                                  \
    X(FAILED, "failed", "all its attempts failed: a dead letter")                                                      \
    X(CANCELLED, "cancelled", "cancelled before it was done")

#define RV_TASK_TIERS(X)                                                                                               \
    X(MICRO, "micro", "needs next to nothing")                                                                         \
    X(SMALL, "small", "the usual size")                                                                                \
    X(MEDIUM, "medium", "needs more memory or time")                                                                   \
    X(LARGE, "large", "needs a machine of its own")

#define RV_TASK_EVENTS(X)                                                                                              \
    X(CLAIMED, "claimed", "a worker began an attempt")                                                                 \
    X(COMPLETED, "completed", "the task is done")                                                                      \
    X(RETRYING, "retrying", "an attempt failed; there will be another")                                                \
    X(FAILED, "failed", "the last attempt failed")                                                                     \
    X(RECOVERED, "recovered", "the lease of its worker ended; the task is pending again")                              \
    X(QUOTA_EXCEEDED, "quota_exceeded", "a quota does not allow it yet; postponed, no retry is used")                  \
    X(RELEASED, "released", "its worker handed it back; no retry is used")                                             \
    X(ERROR, "error", "an error that did not end the attempt")                                                         \
    X(CANCEL_REQUESTED, "cancel_requested", "its worker is asked to stop")                                             \
    X(CANCELLED, "cancelled", "the task is cancelled")                                                                 \
    X(RETRIED, "retried", "a person put it back into the queue")

#define RV_TERM_CONST_TASK(n, t, m) RV_TASK_##n,
enum rv_task_status { RV_TASK_STATUSES(RV_TERM_CONST_TASK) RV_N_TASK };
#define RV_TERM_CONST_TASK_TIER(n, t, m) RV_TASK_TIER_##n,
enum rv_task_tier { RV_TASK_TIERS(RV_TERM_CONST_TASK_TIER) RV_N_TASK_TIER };
#define RV_TERM_CONST_TASK_EVENT(n, t, m) RV_TASK_EVENT_##n,
enum rv_task_event_kind { RV_TASK_EVENTS(RV_TERM_CONST_TASK_EVENT) RV_N_TASK_EVENT };

#endif
