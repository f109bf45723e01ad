/* From a claimed task to a run that can go on: is there anything to do, may this process do it, and with what.
 *
 * Before any code of a capability is loaded, the store knows that this process has the run: should that code end the
 * process, the worker that comes next counts it. */
#include <stdio.h>
#include <string.h>

#include "coreengine/app/past.h"
#include "coreengine/app/recover.h"
#include "coreengine/app/worker/worker_internal.h"

#define MAX_TAKEN   3 /* times that others take a run over while it is taken up: then theirs is the run */
#define BUSY_MIN_US (250 * RV_US_PER_MS) /* until an answer looks again whether its run waits, ... */
#define BUSY_MAX_US (10 * RV_US_PER_S)   /* ... and while the run is at one step for long: a person waits */

/* --- what there is to do --- */

static int is_wanted(void *self, const struct rv_pending *p, rv_err **err)
{
    struct work_job *j = self;

    (void)err;
    if (j->payload.has_answer && rv_str_is(j->payload.answer.interrupt_id, p->id))
        j->answers = true;
    return 0;
}

static int is_expired(void *self, const struct rv_pending *p, rv_err **err)
{
    bool is_due = false;
    int rc = rv_app_is_due(p, rv_app_now_us(), &is_due, err);

    *(bool *)self = *(bool *)self || is_due;
    return rc;
}

/* A run that waits: for this answer, or one of its questions has expired. Then it goes on by the expiry, and an answer
 * to another question is owed: a task of its own gives it. */
static int judge_waiting(struct work_taker *t, struct work_job *j, const struct rv_run_row *row, rv_err **err)
{
    bool due = false;

    if (row->cancel_requested) {
        j->cancels = true;
        return 0;
    }
    int rc = rv_store_list_pending(t->store, &j->app.scope, row->id, is_expired, &due, err);
    if (rc == 0 && !due)
        rc = rv_store_list_pending(t->store, &j->app.scope, row->id, is_wanted, j, err);
    j->owes_answer = due && j->payload.has_answer;
    if (rc == 0 && !due && !j->answers)
        app_work_done(j, rv_run_status_text(row->status));
    return rc;
}

/* A run that ended several processes waits longer before each try, and gets a process of its own. */
static int judge_crashes(struct work_taker *t, struct work_job *j, const struct rv_run_row *row, rv_err **err)
{
    int64_t now_us = rv_app_now_us();

    if (row->n_records <= 1 || row->cancel_requested)
        return 0;
    int rc = rv_app_count_crashes(t->store, &j->app.scope, row, now_us, &j->crashes, err);
    if (rc < 0 || j->crashes < RV_APP_CRASHES)
        return rc;
    j->is_apart = j->app.host_program != NULL;
    j->later_us = rv_app_next_try_us(j->crashes, row->updated_us);
    if (row->updated_us <= now_us && j->later_us > now_us)
        j->end = WORK_LATER;
    return 0;
}

/* Of two questions of a run that were answered, it goes on with the answer to the other one; or someone recovers the
 * run of a handler's task. The longer its step takes, the less often it is looked at. */
static void wait_for_run(struct work_job *j, const struct rv_run_row *row)
{
    int64_t now_us = rv_app_now_us(), rest_us = now_us - row->updated_us;

    j->owes_answer = j->payload.has_answer;
    j->later_us = now_us + (rest_us < BUSY_MIN_US ? BUSY_MIN_US : rest_us > BUSY_MAX_US ? BUSY_MAX_US : rest_us);
    j->end = WORK_LATER;
}

/* When its owner dies, a sweep finds the run; not that of a handler, whose task needs its result, too. */
static void leave_to_owner(struct work_job *j, const struct rv_run_row *row)
{
    if (j->payload.has_answer || j->handler) {
        wait_for_run(j, row);
    } else {
        app_work_done(j, "elsewhere");
        rv_buf_puts(&j->error, "under way elsewhere"); /* for the line that people read */
    }
}

static int judge(struct work_taker *t, struct work_job *j, const struct rv_run_row *row, rv_err **err)
{
    switch (rv_app_recovery_of(row, rv_app_now_us(), &t->patience_us)) {
    case RV_APP_RECOVERY_ENDED:
        app_work_done(j, rv_run_status_text(row->status));
        return 0;
    case RV_APP_RECOVERY_OWNED:
        leave_to_owner(j, row);
        return 0;
    case RV_APP_RECOVERY_WAITS:
        return judge_waiting(t, j, row, err);
    case RV_APP_RECOVERY_LEFT:
    case RV_APP_RECOVERY_QUEUED:
    case RV_APP_RECOVERY_LATER:
        break;
    }
    j->cancels = row->cancel_requested;
    j->owes_answer = j->payload.has_answer;
    return judge_crashes(t, j, row, err);
}

/* --- having it --- */

static int take_over(struct work_taker *t, struct work_job *j, rv_err **err)
{
    int rc = rv_store_begin(t->store, err);

    if (rc < 0)
        return rc;
    rc = rv_journal_open(t->store, &j->app.scope, j->run,
                         &(struct rv_journal_claim){t->owner, rv_app_now_us(), t->lease_us}, &j->journal, err);
    return rv_store_end(t->store, rc, err);
}

static void give_up(struct work_job *j)
{
    rv_journal_free(j->journal);
    j->journal = NULL;
}

/* Asked at once after the failure: giving the run up is a write of its own. A run that another process took over since
 * it was read (RV_E_STATE) is read once more, and judged by that. */
static bool may_try_again(struct work_taker *t, struct work_job *j, int rc, int *n_taken, rv_err **err)
{
    bool may = rv_store_wait_again(t->store, err);

    if (!may && rc == RV_E_STATE && j->end == WORK_RUNS && ++*n_taken <= MAX_TAKEN) {
        rv_err_free(rv_err_steal(err));
        may = true;
    }
    give_up(j);
    return may;
}

/* The stream that a client is sent of the run, if there is one: who has the run writes it. */
static int take_stream(struct work_taker *t, struct work_job *j, rv_err **err)
{
    struct rv_stream_row row;
    rv_err *cause = NULL;
    int rc =
        t->writes_streams ? rv_store_find_last_stream(t->store, &j->app.scope, j->run, &row, &cause) : RV_E_NOT_FOUND;

    if (rc == RV_E_NOT_FOUND) {
        rv_err_free(cause);
        return 0;
    }
    if (rc < 0) {
        rv_err_pass(err, cause);
        return rc;
    }
    if (row.ended_us == 0) {
        rc = rv_store_claim_stream(t->store, row.id, row.owner, t->owner, err);
        if (rc == 0)
            snprintf(j->stream, sizeof j->stream, "%s", row.id);
    }
    rv_stream_row_fini(&row);
    return rc;
}

static int load(struct work_taker *t, struct work_job *j, const struct rv_run_row *row, rv_err **err)
{
    int rc = app_open_bundle(&j->app, t->store, row, (!j->cancels ? RV_APP_MAKES_CALLS : 0) | RV_APP_OWN_HANDLE,
                             &j->loaded, err);

    if (rc == 0)
        rc = app_findings_error(j->loaded.findings, err);
    if (rc == 0 && j->loaded.bundle)
        j->catalog = rv_bundle_catalog(j->loaded.bundle);
    return rc;
}

static int find_run(struct work_taker *t, struct work_job *j, struct rv_run_row *row, rv_err **err)
{
    if (j->handler && j->handler->own) {
        int done = app_work_own(t, j, err);
        if (done < 0 || j->end != WORK_RUNS || j->hook)
            return done;
    }
    if (j->handler)
        return app_work_handler_run(t, j, row, err);
    int rc = app_work_read_payload(j->task.payload, &j->payload, err);
    if (rc == 0)
        rc = rv_store_get_run(t->store, &j->app.scope, j->payload.run, row, err);
    if (rc == 0)
        snprintf(j->run, sizeof j->run, "%s", row->id);
    if (rc == RV_E_INVALID || rc == RV_E_PARSE || rc == RV_E_NOT_FOUND)
        j->end = WORK_FATAL;
    return rc;
}

/* As it was claimed. */
static void start_over(struct work_job *j, struct rv_run_row *row)
{
    rv_run_row_fini(row);
    *row = (struct rv_run_row){0};
    app_work_payload_fini(&j->payload);
    json_object_put(j->asked);
    j->asked = NULL;
    j->dream = (struct rv_app_dream){.agent = NULL};
    j->summary.moment = j->summary.agent = NULL;
    rv_buf_clear(&j->result);
    j->cancels = j->answers = j->owes_answer = j->is_apart = false;
    j->crashes = j->later_us = 0;
    j->end = WORK_RUNS;
}

/* A connection to the store that breaks is not a failure of the task: what was read is read again. From the moment
 * when this process has the run it keeps it. */
static int take_up(struct work_taker *t, struct work_job *j, struct rv_run_row *row, rv_err **err)
{
    int rc, n_taken = 0;

    do {
        start_over(j, row);
        rc = find_run(t, j, row, err);
        if (rc == 0 && j->end == WORK_RUNS && !j->hook)
            rc = judge(t, j, row, err);
        if (rc == 0 && j->end == WORK_RUNS && !j->is_apart && !j->hook)
            rc = take_over(t, j, err);
    } while (rc < 0 && may_try_again(t, j, rc, &n_taken, err));
    if (rc == RV_E_STATE && j->end == WORK_RUNS) { /* owned, and still told to wait */
        rv_err_free(rv_err_steal(err));
        leave_to_owner(j, row);
        return 0;
    }
    if (rc < 0 || j->end != WORK_RUNS || j->is_apart || j->hook)
        return rc;
    do
        rc = load(t, j, row, err);
    while (rc < 0 && rv_store_wait_again(t->store, err));
    if (rc == 0)
        rc = take_stream(t, j, err);
    return rc;
}

static const struct work_handler *handler_of(const struct work_taker *t, const char *type)
{
    for (size_t i = 0; i < t->n_handlers; i++)
        if (strcmp(t->handlers[i].type, type) == 0)
            return &t->handlers[i];
    return app_work_own_handler(type);
}

void app_work_take_up(struct work_taker *t, struct work_job *j)
{
    struct rv_run_row row = {0};
    rv_err *err = NULL;

    j->end = WORK_RUNS;
    app_limits_set(&j->limits, t->quotas, j->task.tenant, j->task.user);
    j->limits.exec.hands_over = true;
    j->handler = handler_of(t, j->task.type);
    int rc = 0;
    if (!j->handler && strcmp(j->task.type, RV_TASK_OF_RUN) != 0) {
        j->end = WORK_FATAL;
        rc = RV_FAIL(&err, RV_E_NOT_FOUND, "No handler registered for task_type=%s", j->task.type);
    }
    if (rc == 0)
        rc = take_up(t, j, &row, &err);
    rv_run_row_fini(&row);
    if (rc == 0)
        return;
    give_up(j);
    if (rc == RV_E_QUOTA && j->limits.again_us > 0) {
        j->end = WORK_QUOTA;
        j->later_us = j->limits.again_us;
    }
    /* What this worker cannot load, or has no memory for, another one may. */
    if (j->end == WORK_RUNS || rc == RV_E_NOMEM)
        j->end = rc == RV_E_INVALID ? WORK_FAILED : app_work_end_of(j, rc);
    app_work_fail(j, j->end, err);
}
