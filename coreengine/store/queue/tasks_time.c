/* Changes of tasks by time alone: they become due, their leases end, and old ones are removed. Any worker does these
 * for all of them, a little at a time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/queue/queue_internal.h"

#define MAX_TEXT 80 /* bytes of what is said about a lease that ended: the sentence below and 19 digits */

int store_task_check_max(int64_t max, rv_err **err)
{
    if (max < 1 || max > RV_TASK_MAX_CLAIM)
        return RV_FAIL(err, RV_E_INVALID, "%lld tasks at once: 1 to %d", (long long)max, RV_TASK_MAX_CLAIM);
    return 0;
}

static int check_sweep(int64_t time_us, int64_t max, rv_err **err)
{
    int rc = store_check_time("the time", time_us, err);

    return rc < 0 ? rc : store_task_check_max(max, err);
}

/* --- Due --- */

struct due {
    int64_t key, lane;
};

static int by_lane(const void *a, const void *b)
{
    const struct due *one = a, *other = b;

    return (one->lane > other->lane) - (one->lane < other->lane);
}

static int find_due(struct sql_store *st, int64_t now_us, int64_t max, struct due *due, size_t *n, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_DUE_TASKS);
    int rc;

    sql_int(stmt, 1, now_us);
    sql_int(stmt, 2, max);
    while ((rc = sql_step(stmt, "look for tasks that are due", err)) == 1)
        due[(*n)++] = (struct due){sql_int_at(stmt, 0), sql_int_at(stmt, 1)};
    sql_done(stmt);
    return rc;
}

/* Lanes in the order of their keys: two transactions that do this at once cannot wait for each other. */
static int promote(struct sql_store *st, int64_t now_us, struct due *due, size_t n, rv_err **err)
{
    const struct sql_rows rows = {.stmt = sql_use_rows(st, SQL_PROMOTE_TASK), .what = "promote tasks"};
    size_t counted = 0;
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        sql_int(rows.stmt, 1, due[i].key);
        sql_int(rows.stmt, 2, now_us);
        rc = sql_add_row(&rows, err);
    }
    rc = sql_end_rows(&rows, rc, err);
    qsort(due, n, sizeof *due, by_lane);
    for (size_t i = 0; i < n && rc == 0; i++)
        if (i + 1 == n || due[i + 1].lane != due[i].lane) {
            rc = store_lane_move(st, due[i].lane, (int64_t)(i + 1 - counted), 0, err);
            counted = i + 1;
        }
    return rc;
}

int rv_store_promote_tasks(rv_store *s, int64_t now_us, int64_t max, int64_t *n, rv_err **err)
{
    struct due *due = NULL;
    size_t found = 0;
    int rc = check_sweep(now_us, max, err);

    if (rc == 0 && !(due = calloc((size_t)max, sizeof *due)))
        rc = RV_FAIL(err, RV_E_NOMEM, "promote tasks");
    rc = store_enter_write(s, rc, "promote tasks", err);
    if (rc == 0) {
        do {
            found = 0;
            rc = find_due(s->sql, now_us, max, due, &found, err);
            if (rc >= 0)
                rc = promote(s->sql, now_us, due, found, err);
        } while (store_repeats(s, &rc, err));
        rc = store_leave_write(s, rc, err);
    }
    free(due);
    if (rc == 0 && n)
        *n = (int64_t)found;
    return rc;
}

/* --- Stale --- */

/* How long the worker had been silent. */
static void say_timeout(const struct found_task *found, char out[MAX_TEXT])
{
    int64_t us = found->lease_until_us - found->claimed_us;
    bool is_whole = us >= RV_US_PER_MIN && us % RV_US_PER_MIN == 0;
    int64_t n = is_whole ? us / RV_US_PER_MIN : (us + RV_US_PER_S - 1) / RV_US_PER_S;

    snprintf(out, MAX_TEXT, "recovered: processing timeout after %lld %s%s", (long long)n,
             is_whole ? "minute" : "second", n == 1 ? "" : "s");
}

static int recover(struct sql_store *st, const struct found_task *found, int64_t now_us, struct rv_recovered *out,
                   rv_err **err)
{
    char text[MAX_TEXT];
    struct task_change change = {.status = RV_TASK_PENDING,
                                 .now_us = now_us,
                                 .scheduled_us = now_us,
                                 .retry_count = found->retry_count + 1,
                                 .error = text,
                                 .event = RV_TASK_EVENT_RECOVERED,
                                 .text = text,
                                 .is_plain = true};

    say_timeout(found, text);
    if (found->cancel_requested || found->retry_count >= found->max_retries) {
        change.scheduled_us = 0;
        change.retry_count = found->retry_count;
        change.status = found->cancel_requested ? RV_TASK_CANCELLED : RV_TASK_FAILED;
        change.event = found->cancel_requested ? RV_TASK_EVENT_CANCELLED : RV_TASK_EVENT_FAILED;
        if (!found->cancel_requested)
            change.error = change.text = "recovered: exceeded max retries after processing timeout";
    }
    out->n_pending += change.status == RV_TASK_PENDING;
    out->n_failed += change.status == RV_TASK_FAILED;
    out->n_cancelled += change.status == RV_TASK_CANCELLED;
    return store_task_change(st, found, &change, err);
}

static int recover_tasks(struct sql_store *st, int64_t now_us, int64_t max, struct rv_recovered *out, rv_err **err)
{
    int rc = 0;

    for (int64_t i = 0; i < max; i++) {
        struct found_task found;
        rv_sql_stmt *stmt = sql_use(st, SQL_STALE_TASK);
        sql_int(stmt, 1, now_us);
        rc = sql_step(stmt, "look for leases that ended", err);
        bool is_none = rc == 0;
        if (rc == 1)
            rc = store_task_found(st, stmt, &found, err);
        sql_done(stmt);
        if (rc == 0 && !is_none)
            rc = recover(st, &found, now_us, out, err);
        if (rc < 0 || is_none)
            break;
    }
    return rc;
}

int rv_store_recover_tasks(rv_store *s, int64_t now_us, int64_t max, struct rv_recovered *out, rv_err **err)
{
    struct rv_recovered got = {0};
    int rc = store_enter_write(s, check_sweep(now_us, max, err), "recover tasks", err);

    if (rc != 0)
        return rc;
    do {
        got = (struct rv_recovered){0};
        rc = recover_tasks(s->sql, now_us, max, &got, err);
    } while (store_repeats(s, &rc, err));
    rc = store_leave_write(s, rc, err);
    if (rc == 0 && out)
        *out = got;
    return rc;
}

/* --- Old --- */

int rv_store_prune_tasks(rv_store *s, int64_t before_us, int64_t max, int64_t *n, rv_err **err)
{
    int64_t deleted = 0;
    int rc = store_enter_write(s, check_sweep(before_us, max, err), "prune tasks", err);

    if (rc != 0)
        return rc;
    do {
        rv_sql_stmt *stmt = sql_use(s->sql, SQL_PRUNE_TASKS);
        sql_int(stmt, 1, before_us);
        sql_int(stmt, 2, max);
        rc = sql_run_counted(stmt, &deleted, "delete old tasks", err);
    } while (store_repeats(s, &rc, err));
    rc = store_leave_write(s, rc, err);
    if (rc == 0 && n)
        *n = deleted;
    return rc;
}
