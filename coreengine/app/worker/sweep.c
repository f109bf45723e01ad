/* Runs that no process drives get a task: those whose owner died or let its lease end, those that were given up on the
 * way, and those of which a question has expired. What a task did that was claimed goes on with the task: its worker's
 * lease ends, and another one claims it. */
#include <stdio.h>
#include <string.h>

#include "coreengine/app/past.h"
#include "coreengine/app/worker/worker_internal.h"

#define MAX_SWEPT  200 /* of each kind at once: each is read; the rest follows with the next sweep */
#define MAX_OWNERS 256 /* dead workers that one sweep looks at: others wait; the next one takes the rest */
#define MAX_FOUND  400 /* behind which a sweep asks for no more runs of dead workers: these are queued first */
#define MAX_TEXT   ((size_t)1 << 20) /* bytes of the ids of one sweep: MAX_FOUND and two times MAX_SWEPT fit */

/* Rows that are read first and dealt with when the statement is done: ids and tenants, each with a NUL behind it. */
struct found {
    rv_buf texts;
    size_t n;
    struct work_mark *mark; /* of the list that is read: where its next part begins; NULL: it has one part */
};

static int note_run(void *self, const struct rv_run_row *row, rv_err **err)
{
    struct found *f = self;

    if (f->mark) {
        bool waits = row->status == RV_RUN_INTERRUPTED;
        f->mark->n++;
        f->mark->at_us = waits ? row->expires_us : row->created_us;
        snprintf(f->mark->id, sizeof f->mark->id, "%s", row->id);
    }
    rv_buf_add(&f->texts, row->id, strlen(row->id) + 1);
    rv_buf_add(&f->texts, row->tenant, strlen(row->tenant) + 1);
    f->n++;
    return rv_buf_check(&f->texts, "runs that were left", err);
}

/* Those who live do not take the place of the dead. */
static int note_dead(void *self, const char *owner, rv_err **err)
{
    struct found *f = self;

    if (f->n >= MAX_OWNERS || !rv_owner_is_dead(owner))
        return 0;
    rv_buf_add(&f->texts, owner, strlen(owner) + 1);
    f->n++;
    return rv_buf_check(&f->texts, "owners of runs", err);
}

static int has_due(void *self, const struct rv_pending *p, rv_err **err)
{
    bool is_due = false;
    int rc = rv_app_is_due(p, rv_app_now_us(), &is_due, err);

    *(bool *)self = *(bool *)self || is_due;
    return rc;
}

static int queue_one(rv_store *store, const char *run, const char *tenant, int64_t *n, rv_err **err)
{
    const struct rv_store_scope scope = {tenant, NULL};
    struct rv_run_row row;
    bool goes_on = true, is_new = false;

    int rc = rv_store_get_run(store, &scope, run, &row, err);
    if (rc < 0)
        return rc;
    if (row.status == RV_RUN_INTERRUPTED) {
        goes_on = false;
        rc = rv_store_list_pending(store, &scope, run, has_due, &goes_on, err);
    }
    if (rc == 0 && goes_on)
        rc = app_work_enqueue_row(store, &row, NULL, 0, &is_new, err);
    rv_run_row_fini(&row);
    *n += is_new;
    return rc;
}

/* One that cannot be queued (its bundle is damaged) does not keep the others from it. */
static int queue_all(rv_store *store, struct found *f, int64_t *n, rv_err **err)
{
    const char *at = rv_buf_cstr(&f->texts);
    rv_err *first = NULL;

    for (size_t i = 0; i < f->n; i++) {
        const char *run = at, *tenant = run + strlen(run) + 1;
        rv_err *why = NULL;
        at = tenant + strlen(tenant) + 1;
        if (queue_one(store, run, tenant, n, &why) == 0)
            continue;
        if (first)
            rv_err_free(why);
        else
            first = why;
    }
    if (!first)
        return 0;
    int rc = rv_err_code(first);
    rv_err_pass(err, first);
    return rc;
}

static int sweep_dead(rv_store *store, int64_t now_us, struct found *out, rv_err **err)
{
    struct found owners = {.texts = RV_BUF_INIT(MAX_TEXT)};

    int rc = rv_store_list_owners(store, note_dead, &owners, err);
    const char *at = rv_buf_cstr(&owners.texts);
    for (size_t i = 0; rc == 0 && i < owners.n && out->n < MAX_FOUND; i++, at += strlen(at) + 1)
        rc =
            rv_store_list_left(store,
                               &(const struct rv_left_filter){
                                   .owner = at, .now_us = now_us, .limit = MAX_SWEPT, .but_prefix = RV_WORK_JOB_PREFIX},
                               note_run, out, err);
    rv_buf_fini(&owners.texts);
    return rc;
}

/* The next part of a list. Runs that cannot be queued stay in it, and would keep those behind them from their turn. */
static int list_part(rv_store *store, struct work_mark *mark, bool of_expired, int64_t now_us, struct found *out,
                     rv_err **err)
{
    const struct work_mark from = *mark;
    const struct rv_left_filter filter = {.now_us = now_us,
                                          .limit = MAX_SWEPT,
                                          .but_prefix = of_expired ? NULL : RV_WORK_JOB_PREFIX,
                                          .after_us = from.at_us,
                                          .after_id = from.id[0] ? from.id : NULL};

    out->mark = mark;
    mark->n = 0;
    int rc = of_expired ? rv_store_list_expired(store, &filter, note_run, out, err)
                        : rv_store_list_left(store, &filter, note_run, out, err);
    out->mark = NULL;
    if (mark->n < MAX_SWEPT) /* the end of the list */
        *mark = (struct work_mark){0};
    return rc;
}

int app_work_sweep(rv_store *store, struct work_sweep *at, int64_t now_us, int64_t *n, rv_err **err)
{
    struct found found = {.texts = RV_BUF_INIT(MAX_TEXT)};
    int64_t n_expired = 0;

    *n = 0;
    int rc = rv_store_expire_interrupts(store, NULL, now_us, &n_expired, err);
    if (rc == 0)
        rc = list_part(store, &at->left, false, now_us, &found, err);
    if (rc == 0)
        rc = sweep_dead(store, now_us, &found, err);
    if (rc == 0)
        rc = list_part(store, &at->expired, true, now_us, &found, err);
    if (rc == 0)
        rc = queue_all(store, &found, n, err);
    rv_buf_fini(&found.texts);
    return rc < 0 ? RV_WRAP(err, rc, "look for runs that were left") : 0;
}
