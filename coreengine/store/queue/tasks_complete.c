/* Tasks that are done: one, or several in one transaction. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/queue/queue_internal.h"

/* Tasks that are completed together. */
struct completing {
    const struct rv_task_end *ends;
    struct task_step *steps; /* of each; key 0: its lease was lost; owned */
    int64_t *lanes;          /* of those that were completed; owned */
    size_t n, n_done;
};

static int completed(void *self, rv_sql_stmt *stmt, rv_err **err)
{
    struct completing *c = self;
    int64_t i = sql_int_at(stmt, 0);

    if (i < 0 || i >= (int64_t)c->n || c->n_done >= c->n)
        return RV_FAIL(err, RV_E_INTERNAL, "complete tasks: row %lld of %zu", (long long)i, c->n);
    c->steps[i] = (struct task_step){.key = sql_int_at(stmt, 1),
                                     .n_events = sql_int_at(stmt, 3),
                                     .attempt = c->ends[i].lease.attempt,
                                     .worker = c->ends[i].lease.worker};
    c->lanes[c->n_done++] = sql_int_at(stmt, 2);
    return 0;
}

static int by_number(const void *a, const void *b)
{
    const int64_t *one = a, *other = b;

    return (*one > *other) - (*one < *other);
}

/* Lanes in the order of their keys, as everywhere. */
static int leave_lanes(struct sql_store *st, int64_t *lanes, size_t n, rv_err **err)
{
    int rc = 0;

    qsort(lanes, n, sizeof *lanes, by_number);
    for (size_t i = 0, next; i < n && rc == 0; i = next) {
        for (next = i + 1; next < n && lanes[next] == lanes[i];)
            next++;
        rc = store_lane_move(st, lanes[i], 0, -(int64_t)(next - i), err);
    }
    return rc;
}

/* A result is bound to its task, and encrypted as the task's tenant says; of a task that is gone nothing is kept. */
static int bind_result(struct sql_store *st, rv_sql_stmt *rows, const struct rv_task_end *end, rv_err **err)
{
    rv_str result = {end->result.len > 0 ? end->result.ptr : NULL, end->result.len};
    char tenant[RV_STORE_MAX_ID + 1] = "";
    bool is_used = false;
    int rc = vault_is_used(st, &is_used, err);

    if (rc == 0 && is_used && result.ptr) {
        rv_sql_stmt *stmt = sql_use(st, SQL_TASK_TENANT);
        store_sql_text(stmt, 1, end->lease.id);
        rc = sql_step(stmt, "look for a task", err);
        rv_str text = rc == 1 ? sql_str_at(stmt, 0) : (rv_str){"", 0};
        snprintf(tenant, sizeof tenant, "%.*s", RV_STR_ARG(text));
        sql_done(stmt);
    }
    const struct rv_place at = store_task_place(tenant, end->lease.id);
    if (rc >= 0)
        store_secret_bind(rows, 5, SQL_STR, &at, "result", result);
    return rc < 0 ? rc : 0;
}

static int complete_all(struct sql_store *st, struct completing *c, int64_t now_us, rv_err **err)
{
    const struct sql_rows rows = {
        .stmt = sql_use_rows(st, SQL_COMPLETE_TASK), .what = "complete tasks", .each = completed, .self = c};
    int rc = 0;

    c->n_done = 0;
    memset(c->steps, 0, c->n * sizeof *c->steps);
    for (size_t i = 0; i < c->n && rc == 0; i++) {
        const struct rv_task_end *end = &c->ends[i];
        store_sql_text(rows.stmt, 1, end->lease.id);
        store_sql_text(rows.stmt, 2, end->lease.worker);
        sql_int(rows.stmt, 3, end->lease.attempt);
        sql_int(rows.stmt, 4, now_us);
        sql_int(rows.stmt, 6, (int64_t)i);
        rc = bind_result(st, rows.stmt, end, err);
        if (rc == 0)
            rc = sql_add_row(&rows, err);
    }
    rc = sql_end_rows(&rows, rc, err);
    if (rc == 0)
        rc = store_task_add_events(st, c->steps, c->n, RV_TASK_EVENT_COMPLETED, now_us, err);
    return rc < 0 ? rc : leave_lanes(st, c->lanes, c->n_done, err);
}

static int check_end(const struct rv_task_end *end, int64_t now_us, rv_err **err)
{
    int rc = store_task_check_lease(&end->lease, now_us, err);

    return rc < 0 ? rc : store_check_object("result", end->result, RV_TASK_MAX_JSON, err);
}

int rv_store_complete_tasks(rv_store *s, struct rv_task_end *ends, size_t n, int64_t now_us, rv_err **err)
{
    struct completing c = {.ends = ends, .n = n};
    int rc = store_task_check_max(n > INT32_MAX ? INT32_MAX : (int64_t)n, err);

    for (size_t i = 0; i < n && rc == 0; i++)
        rc = check_end(&ends[i], now_us, err);
    if (rc == 0) {
        c.steps = calloc(n, sizeof *c.steps);
        c.lanes = calloc(n, sizeof *c.lanes);
        rc = c.steps && c.lanes ? 0 : RV_FAIL(err, RV_E_NOMEM, "complete tasks");
    }
    rc = store_enter_write(s, rc, "complete tasks", err);
    if (rc == 0) {
        do
            rc = complete_all(s->sql, &c, now_us, err);
        while (store_repeats(s, &rc, err));
        rc = store_leave_write(s, rc, err);
    }
    for (size_t i = 0; i < n && rc == 0; i++)
        ends[i].is_lost = c.steps[i].key == 0;
    free(c.steps);
    free(c.lanes);
    return rc;
}

static int complete(struct sql_store *st, const struct rv_task_end *end, int64_t now_us, rv_err **err)
{
    struct found_task found;
    struct task_step step;
    int64_t lane = 0;
    struct completing c = {.ends = end, .steps = &step, .lanes = &lane, .n = 1};
    int rc = complete_all(st, &c, now_us, err);

    if (rc < 0 || c.n_done == 1)
        return rc;
    rc = store_task_find_held(st, &end->lease, &found, err); /* says why */
    return rc < 0 ? rc : RV_FAIL(err, RV_E_INTERNAL, "task \"%s\" is held and cannot be completed", end->lease.id);
}

int rv_store_complete_task(rv_store *s, const struct rv_task_lease *lease, rv_str result, int64_t now_us, rv_err **err)
{
    int rc = store_task_check_lease(lease, now_us, err);

    if (rc == 0)
        rc = store_check_object("result", result, RV_TASK_MAX_JSON, err);
    rc = store_enter_write(s, rc, "complete task", err);
    if (rc != 0)
        return rc;
    const struct rv_task_end end = {.lease = *lease, .result = result};
    do
        rc = complete(s->sql, &end, now_us, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}
