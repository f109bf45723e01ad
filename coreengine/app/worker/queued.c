/* What a queued run waits for: its task, its place in the lane, and needs that no living worker meets. */
#include <stdio.h>
#include <string.h>

#include "coreengine/app/past.h"
#include "coreengine/app/worker/worker_internal.h"

#define MAX_PLACE 10000 /* tasks that are looked at to say what comes before: a fraction of a second */

/* --- its task --- */

static int take_task(void *self, const struct rv_task_row *row, rv_err **err)
{
    struct rv_app_queued *q = self;

    (void)err;
    if (q->is_queued && row->created_us <= q->since_us)
        return 0;
    q->is_queued = !rv_task_status_is_final(row->status);
    q->status = row->status;
    q->since_us = row->created_us;
    q->due_us = row->scheduled_us;
    q->priority = row->priority;
    q->class_id = row->class_id;
    snprintf(q->task, sizeof q->task, "%s", row->id);
    snprintf(q->worker, sizeof q->worker, "%s", row->worker ? row->worker : "");
    rv_buf_clear(&q->error);
    if (row->error)
        rv_buf_puts(&q->error, row->error);
    return 0;
}

static int count_before(void *self, const struct rv_task_row *row, rv_err **err)
{
    struct rv_app_queued *q = self;
    bool same_lane = row->class_id == q->class_id && strcmp(row->id, q->task) != 0;
    bool is_sooner = row->priority > q->priority || (row->priority == q->priority && row->scheduled_us < q->due_us);

    (void)err;
    q->n_before += same_lane && is_sooner;
    return 0;
}

static int take_needs(void *self, const struct rv_task_class *c, rv_err **err)
{
    struct rv_app_queued *q = self;
    int rc = 0;

    for (size_t i = 0; c->id == q->class_id && rc == 0 && i < c->n_needs; i++)
        rc = app_needs_add(&q->needs, c->needs[i], err);
    return rc;
}

/* --- who could do it --- */

struct fitting {
    struct rv_app_queued *q;
    bool met[RV_TASK_MAX_NEEDS];
};

static int look_at_worker(void *self, const struct rv_worker_row *row, rv_err **err)
{
    struct fitting *f = self;
    struct rv_app_queued *q = f->q;
    struct rv_needs offers;
    size_t n_met = 0;

    if (row->is_draining || rv_owner_is_dead(row->name))
        return 0;
    int rc = rv_needs_read(row->offers, &offers, err);
    if (rc < 0)
        return rc;
    q->n_workers++;
    for (size_t i = 0; i < q->needs.n && i < RV_COUNT(f->met); i++) {
        bool met = rv_needs_are_met(&offers, q->needs.items[i]);
        f->met[i] = f->met[i] || met;
        n_met += met;
    }
    q->n_able += n_met == q->needs.n;
    rv_needs_fini(&offers);
    return 0;
}

static int find_workers(rv_store *store, struct rv_app_queued *q, rv_err **err)
{
    struct fitting f = {.q = q};

    int rc = rv_store_list_workers(store, rv_app_now_us() - RV_WORKER_SEEN_US, look_at_worker, &f, err);
    for (size_t i = 0; rc == 0 && i < q->needs.n && i < RV_COUNT(f.met); i++)
        if (!f.met[i])
            rc = app_needs_add(&q->unmet, q->needs.items[i], err);
    return rc;
}

int rv_app_queued_read(rv_store *store, const struct rv_run_row *run, struct rv_app_queued *out, rv_err **err)
{
    const struct rv_store_scope scope = {run->tenant, NULL};
    const struct rv_task_filter own = {.type = RV_TASK_OF_RUN, .key = run->id, .limit = 1};
    const struct rv_task_filter pending = {.statuses = 1u << RV_TASK_PENDING, .oldest_first = true, .limit = MAX_PLACE};

    *out = (struct rv_app_queued){.error = RV_BUF_INIT(RV_TASK_MAX_ERROR + 1)};
    int rc = rv_store_list_tasks(store, &scope, &own, take_task, out, err);
    if (rc == 0 && out->is_queued)
        rc = rv_store_list_classes(store, take_needs, out, err);
    if (rc == 0 && out->status == RV_TASK_PENDING && out->is_queued)
        rc = rv_store_list_tasks(store, &scope, &pending, count_before, out, err);
    if (rc == 0 && out->is_queued && out->status != RV_TASK_PROCESSING)
        rc = find_workers(store, out, err);
    if (rc < 0)
        rv_app_queued_fini(out);
    return rc;
}

void rv_app_queued_fini(struct rv_app_queued *q)
{
    rv_needs_fini(&q->needs);
    rv_needs_fini(&q->unmet);
    rv_buf_fini(&q->error);
}
