/* What the tests of the queue share, beside world.h. Time is in seconds after T0. */
#ifndef RV_TESTS_STORE_TASKS_H
#define RV_TESTS_STORE_TASKS_H

#include "tests/contract/store/world.h"

#define S             INT64_C(1000000)
#define AT(s)         (T0 + (s)*S)
#define LEASE         (15 * 60) /* seconds; p8's timeout */
#define ALL           99
#define HELD(i, w, n) (&(const struct rv_task_lease){(i), (w), (n)})

/** A task of type "news" in the default tenant, enqueued at T0. */
struct rv_new_task new_task(const char *id);
void enqueue(struct world *w, const char *id);
/** Enqueue it, and it must be new. */
void enqueue_as(struct world *w, const struct rv_new_task *task);
/** Claim with all classes there are, at that second, for LEASE; the ids in order, which must be `ids`. */
void claim_is(struct world *w, const char *worker, size_t n, int64_t second, const char *ids, int line);
#define CLAIM(worker, n, second, ids) claim_is(w, (worker), (n), (second), (ids), __LINE__)
/** Fills in at most `max` ids of classes. */
size_t all_classes(struct world *w, int64_t *ids, size_t max);
/** "status attempt retries/max [worker]" of a task of the default tenant. */
void task_is(struct world *w, const char *id, const char *text, int line);
#define TASK(id, text) task_is(w, (id), (text), __LINE__)
/** "claimed retrying(1/3 +30)": the events, with retries used and when it is due again in seconds after T0. */
void events_are(struct world *w, const char *id, const char *text, int line);
#define EVENTS(id, text) events_are(w, (id), (text), __LINE__)
/** The ids that a list of the scope gives. */
void list_is(struct world *w, const struct rv_store_scope *scope, const struct rv_task_filter *filter, const char *ids,
             int line);
#define LIST(scope, filter, ids) list_is(w, (scope), (filter), (ids), __LINE__)
/** Fail without jitter at that second. */
int fail_at(struct world *w, const struct rv_task_lease *lease, int64_t second);
/** Promote everything due at that second. */
int64_t promote_at(struct world *w, int64_t second);
struct rv_recovered recover_at(struct world *w, int64_t second);
int see_task(void *self, const struct rv_task_row *row, rv_err **err);
/** One task of each kind. */
void furnish_tasks(struct world *w);
/** Write what changes of a task, and of a lane, into a buffer. */
int picture_task(void *self, const struct rv_task_row *row, rv_err **err);
int picture_lane(void *self, const struct rv_task_lane *lane, rv_err **err);
int see_lease(void *self, const struct rv_task_lease *lease, bool cancel_requested, rv_err **err); /* "id:1" "id:1!" */

/* Calls that test_faults.c fails. */
int do_complete_tasks(struct world *w);
int do_defer_task(struct world *w);
int do_put_worker(struct world *w);
int do_list_workers(struct world *w);
int do_drop_worker(struct world *w);
int do_take_duty(struct world *w);
int do_list_owners(struct world *w);
int do_listen(struct world *w);
int do_heard(struct world *w);

#endif
