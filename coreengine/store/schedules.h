/* The part of the store for schedules. A schedule fires at one time, or again and again; each firing puts a task
 * into the queue.
 *
 * The store knows instants and no calendar: its callers compute them (coreengine/app/schedules). A firing is one
 * transaction: the schedule moves on to its next instant, the firing is noted, the task is queued. It happens only
 * while the schedule still stands where its caller saw it, so any number of processes may look for what is due, and
 * none fires twice.
 *
 * Calls of workers (list due, fire, postpone) are for all tenants; calls with a scope see and change only what is in
 * it. */
#ifndef RV_STORE_SCHEDULES_H
#define RV_STORE_SCHEDULES_H

#include "coreengine/store/tasks.h"

#define RV_SCHEDULE_PREFIX       "sched_" /* of ids; names do not begin so */
#define RV_SCHEDULE_KEPT_FIRINGS 100      /* of one schedule; older ones are deleted */
#define RV_SCHEDULE_MAX_DUE      1000     /* of one list: the rest is in the next one */

/* Texts are borrowed, or in the memory of `own`. */
struct rv_schedule_row {
    const char *id, *tenant, *user; /* user "": none */
    const char *name;               /* unique in the tenant */
    bool is_once;                   /* else a cron expression */
    const char *expr;               /* the expression, or the time as it was written */
    const char *zone;               /* name of a time zone */
    /* the tasks that it queues */
    const char *type, *tier;
    rv_str needs;         /* a JSON array of texts */
    rv_str payload;       /* a JSON object: of its tasks; with a bundle, what its runs begin with */
    const char *bundle;   /* hash of what its runs are started with; NULL: its tasks are not runs */
    const char *pipeline; /* name, for people; NULL: as bundle */
    int64_t priority, max_retries;
    int64_t created_us, updated_us;
    int64_t next_us;            /* the instant that it fires for next; 0: it has ended */
    int64_t look_us;            /* when a worker looks at it: then, or later when firing it failed; 0: as next_us */
    int64_t last_us;            /* the instant of its last firing; 0: none yet */
    int64_t n_fired, n_skipped; /* skipped: noted firings that came too late */
    const char *error;          /* why it could not be fired; NULL: it could */
    char *own;                  /* the texts' memory; NULL when they are borrowed */
};
void rv_schedule_row_fini(struct rv_schedule_row *row);

/** Add a schedule: id to max_retries, created_us, next_us of row. tenant NULL: RV_STORE_TENANT; user, needs, payload
 *  and tier may be left out, max_retries RV_UNSET is RV_TASK_RETRIES. One of the same name and user that has ended is
 *  replaced. RV_E_EXISTS: the name is taken, or the id; RV_E_NOT_FOUND: no blob has the hash of the bundle;
 *  RV_E_INVALID, RV_E_LIMIT: an argument. */
RV_MUST_CHECK int rv_store_add_schedule(rv_store *s, const struct rv_schedule_row *row, rv_err **err);
/** word: its id or its name. RV_E_NOT_FOUND also for one outside the scope. out owns its texts. */
RV_MUST_CHECK int rv_store_get_schedule(rv_store *s, const struct rv_store_scope *scope, const char *word,
                                        struct rv_schedule_row *out, rv_err **err);
/** By the time when they fire next, those that have ended last. Rows are borrowed for the call of each; each as
 * rv_store_list_runs(). */
RV_MUST_CHECK int rv_store_list_schedules(rv_store *s, const struct rv_store_scope *scope,
                                          int (*each)(void *self, const struct rv_schedule_row *row, rv_err **err),
                                          void *self, rv_err **err);
/* What it points to is borrowed for the call. */
struct rv_schedule_change {
    const char *expr; /* NULL: its times stay, with next_us and what it owes */
    bool is_once;
    const char *zone;
    int64_t next_us;         /* with expr: the instant that it fires for next; what was due before that is given up */
    const int64_t *priority; /* NULL: stays */
    int64_t now_us;
};
/** Change when a schedule fires, or how urgent its tasks are. Its firings and their count stay. word as above.
 *  RV_E_NOT_FOUND; RV_E_INVALID, RV_E_LIMIT: an argument. */
RV_MUST_CHECK int rv_store_change_schedule(rv_store *s, const struct rv_store_scope *scope, const char *word,
                                           const struct rv_schedule_change *change, rv_err **err);
/** Delete a schedule and the list of its firings; tasks that they queued stay. word as above. RV_E_NOT_FOUND. */
RV_MUST_CHECK int rv_store_delete_schedule(rv_store *s, const struct rv_store_scope *scope, const char *word,
                                           rv_err **err);
/* Texts are borrowed for the call that gets it. */
struct rv_firing {
    int64_t planned_us;  /* the instant that it stands for */
    int64_t since_us;    /* and the first of those before it that were missed; the same: none was */
    int64_t at_us;       /* when it was noted */
    const char *made;    /* id of the run or the task; NULL: it was skipped */
    const char *skipped; /* why; NULL: it was not */
};
/* Which firings are listed, newest first. */
struct rv_firing_filter {
    const char *word; /* id or name of the schedule; borrowed for the call */
    int64_t limit;    /* at most so many; 0: all that are kept */
};
/** The last firings of a schedule. */
RV_MUST_CHECK int rv_store_list_firings(rv_store *s, const struct rv_store_scope *scope,
                                        const struct rv_firing_filter *filter,
                                        int (*each)(void *self, const struct rv_firing *f, rv_err **err), void *self,
                                        rv_err **err);

/* --- Workers --- */
/* Texts are borrowed for the call that gets it. */
struct rv_due_schedule {
    const char *id, *tenant;
    int64_t next_us; /* as the row says it */
};
/** Schedules to be looked at by then, at most max (1 to RV_SCHEDULE_MAX_DUE): of each tenant the first, then of each
 * the second, ... No more is read of them, so that a damaged one does not keep back the others. Borrowed for the call;
 * each as rv_store_list_runs(). */
RV_MUST_CHECK int rv_store_list_due_schedules(rv_store *s, int64_t now_us, int64_t max,
                                              int (*each)(void *self, const struct rv_due_schedule *due, rv_err **err),
                                              void *self, rv_err **err);
/* What it points to is borrowed for the call. */
struct rv_fire {
    const char *id;       /* of the schedule */
    int64_t expected_us;  /* its next_us, as the caller saw it */
    int64_t next_us;      /* what that is to be; 0: it ends */
    struct rv_firing now; /* noted; made: of a run, which the caller keeps in the same group. NULL: the task's id */
    const struct rv_new_task *task; /* queued; NULL: now.skipped says why not */
};
/** Fire it, or note that it was skipped. *is_mine: false when it does not stand at expected_us any more, or is gone:
 *  another process was faster, and nothing was changed. */
RV_MUST_CHECK int rv_store_fire_schedule(rv_store *s, const struct rv_fire *fire, bool *is_mine, rv_err **err);
/* A schedule that could not be fired is looked at again later. */
struct rv_postponement {
    int64_t expected_us; /* where it has to stand, or nothing happens */
    int64_t until_us;    /* when it is looked at again */
    const char *why;     /* cut to RV_TASK_MAX_ERROR; borrowed for the call */
};
/** Firing it failed: it is looked at again later. */
RV_MUST_CHECK int rv_store_postpone_schedule(rv_store *s, const char *id, const struct rv_postponement *later,
                                             int64_t now_us, rv_err **err);
/** Delete schedules of all tenants that ended before then. *n (may be NULL): how many. */
RV_MUST_CHECK int rv_store_prune_schedules(rv_store *s, int64_t before_us, int64_t *n, rv_err **err);

#endif
