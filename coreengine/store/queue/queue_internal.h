/* Shared by the files of the queue: a task that was found, what is written of each change, lanes. */
#ifndef RV_STORE_QUEUE_INTERNAL_H
#define RV_STORE_QUEUE_INTERNAL_H

#include "coreengine/store/encryption/vault_internal.h"
#include "coreengine/store/sql/sql_internal.h"
#include "coreengine/store/store_internal.h"

static inline struct rv_place store_task_place(const char *tenant, const char *id)
{
    return vault_engine_place(tenant, "tasks", id, NULL, 0);
}

typedef int rv_each_task(void *self, const struct rv_task_row *row, rv_err **err);
typedef int rv_each_task_event(void *self, const struct rv_task_event *e, rv_err **err);
typedef int rv_each_class(void *self, const struct rv_task_class *c, rv_err **err);
typedef int rv_each_lane(void *self, const struct rv_task_lane *lane, rv_err **err);
typedef int rv_each_lease(void *self, const struct rv_task_lease *lease, bool cancel_requested, rv_err **err);

/* What a change of a task has to know. */
struct found_task {
    int64_t key, lane;
    enum rv_task_status status;
    bool cancel_requested;
    int64_t attempt, retry_count, max_retries, n_events, claimed_us, lease_until_us, scheduled_us;
    char worker[RV_STORE_MAX_ID + 1]; /* "": none */
    char id[RV_STORE_MAX_ID + 1], tenant[RV_STORE_MAX_ID + 1];
};

/* tasks.c */
/** From a row of a statement that begins as RV_SQL_FOUND_TASK. */
RV_MUST_CHECK int store_task_found(struct sql_store *st, rv_sql_stmt *stmt, struct found_task *out, rv_err **err);
int store_task_fail_none(const char *id, rv_err **err);
/* A change that ends the lease, if there is one. Texts are borrowed for the call. */
struct task_change {
    enum rv_task_status status;
    int64_t now_us;
    int64_t scheduled_us; /* 0: as it was */
    int64_t retry_count;
    const char *error; /* NULL: as it was */
    rv_str result;
    enum rv_task_event_kind event;
    const char *text; /* of the event */
    bool is_plain;    /* error and text are the store's own words: no key of the tenant is needed for them */
};
/** Write the change, its event, and what it is to the lane. */
RV_MUST_CHECK int store_task_change(struct sql_store *st, const struct found_task *found,
                                    const struct task_change *change, rv_err **err);
RV_MUST_CHECK int store_task_check_lease(const struct rv_task_lease *lease, int64_t now_us, rv_err **err);
/** The task of a lease. RV_E_NOT_FOUND, RV_E_STATE "lost_lease ...". */
RV_MUST_CHECK int store_task_find_held(struct sql_store *st, const struct rv_task_lease *lease, struct found_task *out,
                                       rv_err **err);
/* A change of a task whose row counts its event already. Texts are borrowed for the call. */
struct task_step {
    int64_t key; /* 0: there was none */
    int64_t n_events, attempt;
    const char *worker;
};
/** The same event of many tasks. */
RV_MUST_CHECK int store_task_add_events(struct sql_store *st, const struct task_step *steps, size_t n,
                                        enum rv_task_event_kind kind, int64_t now_us, rv_err **err);

/* tasks_enqueue.c */
/** RV_E_INVALID, RV_E_LIMIT: an argument of rv_store_enqueue(). */
RV_MUST_CHECK int store_task_check(const struct rv_new_task *task, rv_err **err);
static inline int store_task_check_priority(int64_t priority, rv_err **err)
{
    if (priority < -RV_TASK_MAX_PRIORITY || priority > RV_TASK_MAX_PRIORITY)
        return RV_FAIL(err, RV_E_INVALID, "the priority %lld is not between -%d and %d", (long long)priority,
                       RV_TASK_MAX_PRIORITY, RV_TASK_MAX_PRIORITY);
    return 0;
}
/** rv_store_enqueue() in the caller's transaction, of a task that was checked. */
RV_MUST_CHECK int store_task_enqueue(struct sql_store *st, const struct rv_new_task *task, struct rv_enqueued *out,
                                     rv_err **err);
/** So many more (or fewer) tasks of the lane are pending, and processing. */
RV_MUST_CHECK int store_lane_move(struct sql_store *st, int64_t lane, int64_t pending, int64_t processing,
                                  rv_err **err);

/* tasks_read.c */
/* The texts are valid until the statement moves. */
struct read_task {
    struct rv_task_row row;
    int64_t key, n_events;
};
/** From a row of a statement that begins as RV_SQL_TASK. */
RV_MUST_CHECK int store_task_read(struct sql_store *st, rv_sql_stmt *stmt, struct read_task *out, rv_err **err);
/** out owns its texts. */
RV_MUST_CHECK int store_task_copy(const struct rv_task_row *row, struct rv_task_row *out, rv_err **err);

/* tasks_time.c */
/** RV_E_INVALID: not 1 to RV_TASK_MAX_CLAIM. */
RV_MUST_CHECK int store_task_check_max(int64_t max, rv_err **err);

/* Kinds of schedules, as the store keeps them. */
#define RV_SCHEDULE_ONCE "once"
#define RV_SCHEDULE_CRON "cron"

/* schedules_read.c */
int store_schedule_fail_none(const char *word, rv_err **err);

#endif
