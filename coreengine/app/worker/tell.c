/* How a task ended, told to the store and to the log: it is completed, it failed, or another worker goes on with it. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/past.h"
#include "coreengine/app/recover.h"
#include "coreengine/app/worker/worker_internal.h"

#define JITTER_PPM INT64_C(100000) /* a tenth: workers that started together do not stay together */

static struct rv_task_lease lease_of(const struct work_job *j)
{
    return (struct rv_task_lease){.id = j->task.id, .worker = j->worker->owner, .attempt = j->task.attempt};
}

static int64_t jitter(void)
{
    return (int64_t)rv_rand_below(rv_rand_system(), 2 * JITTER_PPM + 1) - JITTER_PPM;
}

static int tell_failure(rv_store *store, const struct work_job *j, const struct rv_task_lease *lease, rv_err **err)
{
    const struct rv_task_failure failure = {.error = rv_buf_cstr(&j->error),
                                            .is_final = j->end == WORK_FATAL,
                                            .jitter_ppm = jitter(),
                                            .now_us = rv_app_now_us()};

    return rv_store_fail_task(store, lease, &failure, NULL, err);
}

/* The run is given up with its task: the next worker finds both free. */
static int hand_back(rv_store *store, const struct work_job *j, const struct rv_task_lease *lease, rv_err **err)
{
    int64_t now_us = rv_app_now_us();
    struct rv_run_row row;
    rv_err *why = NULL;

    int rc = rv_store_begin(store, err);
    if (rc < 0)
        return rc;
    int found = j->run[0] ? rv_store_get_run(store, &j->app.scope, j->run, &row, &why) : RV_E_NOT_FOUND;
    if (found == 0) {
        if (row.owner && strcmp(row.owner, j->worker->owner) == 0)
            rc = rv_store_release(store, j->run, row.fence, err);
        rv_run_row_fini(&row);
    } else if (found == RV_E_NOT_FOUND) {
        rv_err_free(why);
    } else {
        rc = rv_err_pass(err, why);
    }
    if (rc == 0)
        rc = j->end == WORK_QUOTA
                 ? rv_store_postpone_task(store, lease, j->later_us, rv_buf_cstr(&j->error), now_us, err)
                 : rv_store_release_task(store, lease, now_us, err);
    return rv_store_end(store, rc, err);
}

/* The task of a handler waits itself: its result is that of its run. */
static int defer(rv_store *store, const struct work_job *j, const struct rv_task_lease *lease, rv_err **err)
{
    RV_AUTO(rv_buf_fini) rv_buf why = RV_BUF_INIT(RV_TASK_MAX_ERROR);

    if (j->crashes > 0)
        rv_buf_printf(&why, "its run crashed %lld process%s in a row", (long long)j->crashes,
                      j->crashes == 1 ? "" : "es");
    else
        rv_buf_puts(&why, "its run is under way elsewhere");
    int rc = rv_buf_check(&why, "reason", err);
    return rc < 0 ? rc : rv_store_defer_task(store, lease, j->later_us, rv_buf_cstr(&why), rv_app_now_us(), err);
}

/* Another task takes its place, since it is not due for a while, and has the answer that the run was not given yet: a
 * run that crashed is recovered first by either. */
static int put_off(rv_store *store, const struct work_job *j, const struct rv_task_lease *lease, rv_err **err)
{
    const struct rv_response *answer = j->owes_answer ? &j->payload.answer : NULL;
    struct rv_run_row row = {0};

    int rc = rv_store_begin(store, err);
    if (rc < 0)
        return rc;
    rc = rv_store_complete_task(store, lease, RV_STR_LIT("{\"status\": \"ok\", \"run_status\": \"put off\"}"),
                                rv_app_now_us(), err);
    if (rc == 0)
        rc = rv_store_get_run(store, &j->app.scope, j->run, &row, err);
    if (rc == 0)
        rc = app_work_enqueue_row(store, &row, answer, j->later_us, NULL, err);
    rv_run_row_fini(&row);
    return rv_store_end(store, rc, err);
}

/* What the task is for is written in the transaction that completes it: both or neither. */
static int complete_kept(rv_store *store, const struct work_job *j, const struct rv_task_lease *lease, rv_err **err)
{
    int rc;

    do {
        rc = rv_store_begin(store, err);
        if (rc < 0)
            continue;
        rc = rv_store_complete_task(store, lease, rv_buf_str(&j->result), rv_app_now_us(), err);
        if (rc == 0)
            rc = j->handler->keep(store, j, err);
        rc = rv_store_end(store, rc, err);
    } while (rc < 0 && rv_store_wait_again(store, err));
    return rc;
}

/* What the store may take later stays done, and is told again; what it never takes fails the task. */
static int complete(rv_store *store, struct work_job *j, const struct rv_task_lease *lease, rv_err **err)
{
    bool keeps = j->handler && j->handler->keep;
    rv_err *cause = NULL;

    int rc = keeps ? complete_kept(store, j, lease, &cause)
                   : rv_store_complete_task(store, lease, rv_buf_str(&j->result), rv_app_now_us(), &cause);
    bool is_final =
        keeps ? rc < 0 && rc != RV_E_NOMEM && !app_work_may_pass(rc) : rc == RV_E_INVALID || rc == RV_E_LIMIT;
    if (!is_final) {
        rv_err_pass(err, cause);
        return rc;
    }
    app_work_fail(j, keeps ? WORK_FAILED : WORK_FATAL, cause); /* of a lost lease the store says so once more */
    return tell_failure(store, j, lease, err);
}

static bool is_done(const struct work_job *j)
{
    return j->end == WORK_DONE && !j->is_cancelled && !j->owes_answer && !(j->handler && j->handler->keep);
}

/* What this cannot do, app_work_tell_end() does for each, or says why not. */
void app_work_tell_done(rv_store *store, struct work_job *first)
{
    struct rv_task_end *ends;
    size_t n = 0, i = 0;

    for (const struct work_job *j = first; j; j = j->next)
        n += is_done(j);
    if (n < 2 || n > RV_TASK_MAX_CLAIM || !(ends = calloc(n, sizeof *ends)))
        return;
    for (const struct work_job *j = first; j; j = j->next)
        if (is_done(j))
            ends[i++] = (struct rv_task_end){lease_of(j), rv_buf_str(&j->result), false};
    if (rv_store_complete_tasks(store, ends, n, rv_app_now_us(),
                                RV_CODE_ONLY("app_work_tell_end() tells them then, or reports why not")) == 0) {
        i = 0;
        for (struct work_job *j = first; j; j = j->next)
            if (is_done(j))
                j->is_told = !ends[i++].is_lost;
    }
    free(ends);
}

int app_work_tell_end(rv_store *store, struct work_job *j, rv_err **err)
{
    const struct rv_task_lease lease = lease_of(j);

    switch (j->end) {
    case WORK_DONE:
        if (j->owes_answer && !j->is_cancelled)
            return put_off(store, j, &lease, err);
        return j->is_cancelled ? rv_store_stop_task(store, &lease, rv_app_now_us(), err)
                               : complete(store, j, &lease, err);
    case WORK_FAILED:
    case WORK_FATAL:
        return tell_failure(store, j, &lease, err);
    case WORK_BACK:
    case WORK_QUOTA: /* by what its run waits for */
        return hand_back(store, j, &lease, err);
    case WORK_LATER:
        return j->handler ? defer(store, j, &lease, err) : put_off(store, j, &lease, err);
    case WORK_RUNS:
    case WORK_LEFT:
        break;
    }
    return 0;
}

/* Who asks queues no second task beside this one. */
int app_work_cancel_waiting(rv_store *store, const struct work_job *j, rv_err **err)
{
    bool is_wanted = false;

    if (j->end != WORK_DONE || !j->waits)
        return 0;
    int rc = rv_app_is_to_be_cancelled(store, &j->app.scope, j->run, &is_wanted, err);
    return rc == 0 && is_wanted ? rv_app_enqueue(store, &j->app.scope, j->run, NULL, NULL, err) : rc;
}

/* --- told to the log --- */

void app_work_log_end(const struct work_job *j)
{
    static const char *const words[] = {
        [WORK_RUNS] = "runs",        [WORK_FAILED] = "failed", [WORK_FATAL] = "failed",  [WORK_DONE] = "done",
        [WORK_BACK] = "handed_back", [WORK_QUOTA] = "put_off", [WORK_LATER] = "put_off", [WORK_LEFT] = "left"};
    RV_EACH_HAS_ROW(words, WORK_LEFT + 1);
    rv_log *log = j->worker->app.log;
    const char *run = j->run[0] ? j->run : NULL, *error = j->error.len > 0 ? rv_buf_cstr(&j->error) : NULL;

    if (j->end == WORK_FAILED || j->end == WORK_FATAL)
        RV_LOG(log, WARN, "task.fail", RV_F_TEXT("task_id", j->task.id), RV_F_TEXT("type", j->task.type),
               RV_F_TEXT("tenant", j->task.tenant), RV_F_TEXT("run_id", run), RV_F_I64("attempt", j->task.attempt),
               RV_F_TEXT("error", error));
    else
        RV_LOG(log, INFO, "task.finish", RV_F_TEXT("task_id", j->task.id), RV_F_TEXT("type", j->task.type),
               RV_F_TEXT("tenant", j->task.tenant), RV_F_TEXT("run_id", run), RV_F_TEXT("status", words[j->end]),
               RV_F_TEXT("reason", j->end == WORK_DONE ? NULL : error));
}
