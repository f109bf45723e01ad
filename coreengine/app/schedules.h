/* Schedules: work that is queued at a time, or again and again. Any worker fires what is due; none is the leader.
 *
 * A schedule keeps what its runs begin with, the bundle of its pipeline included: files are read when it is added, and
 * no machine that fires it needs them. */
#ifndef RV_APP_SCHEDULES_H
#define RV_APP_SCHEDULES_H

#include "coreengine/app/workspace.h"
#include "coreengine/calendar/calendar.h"
#include "coreengine/store/store.h"

#define RV_SCHEDULE_LATE_US   RV_US_PER_DAY             /* a firing that is a day late is skipped */
#define RV_SCHEDULE_RETRY_US  RV_US_PER_MIN             /* until one that could not be fired is looked at again */
#define RV_SCHEDULE_MAX_STATE (RV_TASK_MAX_JSON - 4096) /* bytes of a state or a payload: a firing adds to it */

/* --- when --- */
/* What it points to is borrowed for the call. */
struct rv_app_when {  /* as a person writes it */
    const char *cron; /* expression; NULL: once */
    const char *at;   /* a time; NULL: again and again */
    const char *zone; /* NULL: UTC */
};
/* The instants at which something fires. */
struct rv_app_times {
    rv_zones *zones;     /* owned; NULL: borrowed from elsewhere */
    const rv_zone *zone; /* of zones; borrowed */
    bool is_once;
    int64_t at_us; /* of what fires once */
    struct rv_cron cron;
};
/** Places in an error name --cron and --at. RV_E_PARSE, RV_E_INVALID, RV_E_LIMIT: what rv_cron_parse() and
 *  rv_when_parse() say; RV_E_STATE: the time is not after now_us; RV_E_NOT_FOUND: no such zone. */
RV_MUST_CHECK int rv_app_times_open(const struct rv_app_when *when, int64_t now_us, struct rv_app_times *out,
                                    rv_err **err);
/** Those of a schedule. zones: borrowed for the life of out; NULL: its own. */
RV_MUST_CHECK int rv_app_times_build(const struct rv_schedule_row *row, rv_zones *zones, struct rv_app_times *out,
                                     rv_err **err);
void rv_app_times_fini(struct rv_app_times *t);
/** The first instant after after_us; *out_us 0: there is none. */
RV_MUST_CHECK int rv_app_times_next(const struct rv_app_times *t, int64_t after_us, int64_t *out_us, rv_err **err);

/* The decision about a schedule that is due. */
struct rv_app_plan {
    int64_t planned_us, since_us; /* as struct rv_firing */
    int64_t next_us;              /* 0: it ends */
    bool is_late;                 /* by a day or more: it is skipped */
};
/** next_us: the instant that it is due for, not after now_us. Of several missed instants the last one counts, and only
 * that one is fired. Pure. */
RV_MUST_CHECK int rv_app_times_plan(const struct rv_app_times *t, int64_t next_us, int64_t now_us,
                                    struct rv_app_plan *out, rv_err **err);

/* --- adding --- */
/* What it points to is borrowed for the call. */
struct rv_app_schedule {
    const char *name;
    struct rv_app_when when;
    int64_t priority;
    const char *const *labels; /* that its workers must have */
    size_t n_labels;
    const char *user; /* NULL: none */
};
/** A schedule of runs, which begin with that state (may be partial, docs/reference/state.md); after
 *  rv_app_run_open(). It is begun as rv_app_submit() does. RV_E_EXISTS: the name is taken; what rv_app_times_open()
 *  and rv_store_add_schedule() say. */
RV_MUST_CHECK int rv_app_schedule_runs(struct rv_app_run *run, json_object *state, const struct rv_app_schedule *s,
                                       char id[RV_ID_MAX], rv_err **err);
/* What a schedule queues. Borrowed for the call. */
struct rv_app_scheduled_task {
    const char *type;
    rv_str payload;      /* a JSON object without a member "schedule"; empty: {} */
    int64_t max_retries; /* RV_UNSET: RV_TASK_RETRIES */
};
/** A schedule of tasks of any other type. */
RV_MUST_CHECK int rv_app_schedule_tasks(const struct rv_app *app, rv_store *store,
                                        const struct rv_app_scheduled_task *task, const struct rv_app_schedule *s,
                                        char id[RV_ID_MAX], rv_err **err);

/** Let it fire at other times: what `when` does not say stays, as do everything that it queues, its firings and their
 *  count. A firing that is due is given up when the times change, and only then. word: a name or an id. priority NULL:
 *  stays. RV_E_NOT_FOUND; what rv_app_times_open() says. */
RV_MUST_CHECK int rv_app_change_schedule(rv_store *store, const struct rv_store_scope *scope, const char *word,
                                         const struct rv_app_when *when, const int64_t *priority, rv_err **err);

/* --- firing --- */
struct rv_app_fired {
    int64_t n_fired, n_skipped, n_failed; /* failed: looked at again later, with the reason in its row */
    int64_t n_lost;                       /* to other processes */
};
/* A look for schedules that are due. */
struct rv_firing_round {
    rv_zones *zones; /* borrowed for the call */
    int64_t now_us;
    int64_t max; /* schedules at most, those of the tenants by turns */
};
/** Fire what is due. app->scope is ignored. Failure: the
 *  store took one of them neither as fired nor as put off; the others had their turn. */
RV_MUST_CHECK int rv_app_fire_due(const struct rv_app *app, rv_store *store, const struct rv_firing_round *look,
                                  struct rv_app_fired *out, rv_err **err);

/* --- for programs --- */
/** An object: every column but what its runs begin with. times: the next ones; n_times 0: none are listed. firings
 *  NULL: none are. What it points to is borrowed for the call. */
struct rv_app_schedule_view {
    const struct rv_schedule_row *row;
    const struct rv_app_times *times; /* NULL: not known */
    size_t n_times;
    int64_t after_us;
    json_object *firings; /* of rv_app_build_firings(); NULL: not asked for */
};
RV_MUST_CHECK int rv_app_schedule_write(const struct rv_app_schedule_view *v, rv_jw *w, rv_err **err);
/** The last firings as an array of objects; the caller puts it. */
RV_MUST_CHECK int rv_app_build_firings(rv_store *store, const struct rv_store_scope *scope,
                                       const struct rv_schedule_row *row, int64_t limit, json_object **out,
                                       rv_err **err);

#endif
