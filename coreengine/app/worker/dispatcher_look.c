/* What the dispatcher asks the store for: which classes of tasks it can serve, what is due, which tasks are free; and
 * when to ask again. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/app/past.h"
#include "coreengine/app/schedules.h"
#include "coreengine/app/worker/dispatcher_internal.h"

#define POLL_MAX_US    (2 * RV_US_PER_S) /* two seconds: how late a task is begun where the store cannot notify */
#define MAX_CLASSES    4096              /* that a worker looks at: each look compares them all */
#define MAX_TIMELY     200 /* tasks that become due, or come from dead workers, at once: others wait for the write */
#define MAX_FIRED      32  /* schedules that fire at once: signs of life and claims have their turn between */
#define FIRE_SPREAD_US (100 * RV_US_PER_MS) /* workers that wait for the same instant look at it so far apart */

static bool can_serve(const struct rv_worker *w, const struct rv_task_class *c)
{
    for (size_t i = 0; i < c->n_needs; i++)
        if (!rv_needs_are_met(&w->offers, c->needs[i]))
            return false;
    return true;
}

static int note_class(void *self, const struct rv_task_class *c, rv_err **err)
{
    struct work_dispatcher *d = self;

    d->n_known_classes++;
    if (!can_serve(d->worker, c) || d->n_classes >= MAX_CLASSES)
        return 0;
    if (!rv_has_room(&d->classes, &d->cap_classes, d->n_classes + 1, sizeof *d->classes))
        return RV_FAIL(err, RV_E_NOMEM, "list classes of tasks");
    d->classes[d->n_classes++] = c->id;
    return 0;
}

/* As many as a claim takes, beginning with another one each time. */
static size_t some_classes(struct work_dispatcher *d, int64_t out[RV_TASK_MAX_CLASSES])
{
    size_t n = d->n_classes < RV_TASK_MAX_CLASSES ? d->n_classes : RV_TASK_MAX_CLASSES;

    for (size_t i = 0; i < n; i++)
        out[i] = d->classes[(d->first_class + i) % d->n_classes];
    if (d->n_classes > 0)
        d->first_class = (d->first_class + 1) % d->n_classes;
    return n;
}

static struct work_job *new_job(struct work_dispatcher *d, struct rv_task_row *task)
{
    struct work_job *j = calloc(1, sizeof *j);

    if (!j)
        return NULL;
    j->worker = d->worker;
    j->task = *task;
    *task = (struct rv_task_row){0};
    j->app = d->worker->app;
    j->app.scope = (struct rv_store_scope){.tenant = j->task.tenant, .user = NULL};
    j->result = RV_BUF_INIT(RV_TASK_MAX_JSON);
    j->error = RV_BUF_INIT(RV_TASK_MAX_ERROR);
    atomic_init(&j->cancel_wanted, false);
    j->next_held = d->held;
    d->held = j;
    return j;
}

static void begin_job(struct work_dispatcher *d, struct work_job *j)
{
    app_work_take_up(&d->taker, j);
    pthread_mutex_lock(&d->lock);
    app_work_list_add(&d->begins, j);
    pthread_mutex_unlock(&d->lock);
    d->wake(d->wake_self);
}

/* Room for as many tasks as may be claimed is held while the store is asked: a worker that is drained meanwhile does
 * not end before it has given back what it got. 0: none. */
static size_t reserve(struct work_dispatcher *d)
{
    pthread_mutex_lock(&d->lock);
    bool is_over = d->is_draining || d->is_ending;
    size_t n = is_over || d->n_held >= d->worker->n_max ? 0 : d->worker->n_max - d->n_held;
    d->n_held += n;
    pthread_mutex_unlock(&d->lock);
    return n;
}

static void release(struct work_dispatcher *d, size_t n)
{
    pthread_mutex_lock(&d->lock);
    d->n_held -= n;
    bool is_draining = d->is_draining;
    pthread_mutex_unlock(&d->lock);
    if (is_draining)
        d->wake(d->wake_self);
}

/* Once: such tasks may stay there for long, and other workers take them. */
static void tell_denied(struct work_dispatcher *d, const struct rv_claimed *got)
{
    if (!got->denied || d->has_told_denied)
        return;
    d->has_told_denied = true;
    RV_LOG(d->worker->app.log, WARN, "tasks.denied", RV_F_I64("tasks", (int64_t)got->n_denied),
           RV_F_ERR("error", got->denied));
}

void app_dispatcher_hand_back(struct work_dispatcher *d, const char *task, int64_t attempt)
{
    const struct rv_task_lease lease = {.id = task, .worker = d->worker->owner, .attempt = attempt};

    RV_IGNORE(rv_store_release_task(d->store, &lease, rv_app_now_us(), NULL), "the next sign of life finds it");
}

static int claim(struct work_dispatcher *d, const int64_t *classes, size_t n_classes, rv_err **err)
{
    struct rv_claimed got = {0};
    int64_t now_us = rv_app_now_us();
    size_t n_free = reserve(d);
    const struct rv_claim_tasks what = {.worker = d->worker->owner,
                                        .classes = classes,
                                        .n_classes = n_classes,
                                        .n = n_free,
                                        .now_us = now_us,
                                        .until_us = now_us + d->worker->lease_us};

    int rc = n_free > 0 ? rv_store_claim_tasks(d->store, &what, &got, err) : 0;
    size_t n = 0;
    d->taker.patience_us = RV_OWNER_ENDS_US;
    for (size_t i = 0; rc == 0 && i < got.n; i++) {
        struct work_job *j = new_job(d, &got.rows[i]);
        if (!j) { /* no memory: another worker takes it */
            app_dispatcher_hand_back(d, got.rows[i].id, got.rows[i].attempt);
            continue;
        }
        n++;
        begin_job(d, j);
    }
    d->found_something = d->found_something || got.n > 0;
    d->is_denied = rc == 0 && got.n == 0 && got.n_denied > 0;
    tell_denied(d, &got);
    rv_claimed_fini(&got);
    release(d, n_free - n);
    return rc;
}

/* What time has brought: tasks that are due, and those of workers that are gone. */
static int be_timely(struct work_dispatcher *d, const struct rv_next_tasks *next, rv_err **err)
{
    struct rv_recovered recovered = {0};
    int64_t now_us = rv_app_now_us(), n = 0;
    int rc = 0;

    if (next->due_us > 0 && next->due_us <= now_us)
        rc = rv_store_promote_tasks(d->store, now_us, MAX_TIMELY, &n, err);
    if (rc == 0 && next->stale_us > 0 && next->stale_us <= now_us)
        rc = rv_store_recover_tasks(d->store, now_us, MAX_TIMELY, &recovered, err);
    if (recovered.n_pending + recovered.n_failed > 0)
        RV_LOG(d->worker->app.log, INFO, "tasks.recovered", RV_F_I64("pending", recovered.n_pending),
               RV_F_I64("failed", recovered.n_failed));
    d->found_something = d->found_something || n + recovered.n_pending > 0;
    return rc;
}

/* Schedules that are due. One that fails is put off; the rest goes on. */
static int fire(struct work_dispatcher *d, const struct rv_next_tasks *next, rv_err **err)
{
    struct rv_app_fired fired;
    int64_t now_us = rv_app_now_us();

    if (next->fires_us == 0 || next->fires_us > now_us)
        return 0;
    int rc = rv_app_fire_due(&d->worker->app, d->store,
                             &(const struct rv_firing_round){.zones = d->zones, .now_us = now_us, .max = MAX_FIRED},
                             &fired, err);
    d->found_something = d->found_something || fired.n_fired + fired.n_skipped + fired.n_failed + fired.n_lost > 0;
    return rc;
}

int64_t app_dispatcher_earlier(int64_t a_us, int64_t b_us)
{
    return b_us > 0 && b_us < a_us ? b_us : a_us;
}

/* When to look again: soon after something was there, else later and later, but when a task is due. */
static void plan_look(struct work_dispatcher *d, const struct rv_next_tasks *next)
{
    int64_t now_us = rv_app_now_us();

    if (d->found_something)
        d->poll_us = RV_DISPATCHER_POLL_US;
    else if (d->poll_us < POLL_MAX_US)
        d->poll_us = d->poll_us * 2 < POLL_MAX_US ? d->poll_us * 2 : POLL_MAX_US;
    int64_t spread_us = (int64_t)rv_rand_below(rv_rand_system(), (uint64_t)d->poll_us / 4 + 1);
    d->poll_at_us = now_us + d->poll_us - spread_us;
    d->poll_at_us = app_dispatcher_earlier(d->poll_at_us, next->due_us);
    d->poll_at_us = app_dispatcher_earlier(d->poll_at_us, next->stale_us);
    if (next->fires_us > now_us)
        d->poll_at_us = app_dispatcher_earlier(
            d->poll_at_us, next->fires_us + (int64_t)rv_rand_below(rv_rand_system(), FIRE_SPREAD_US));
    if (d->poll_at_us < now_us + RV_DISPATCHER_POLL_US / 5)
        d->poll_at_us = now_us + RV_DISPATCHER_POLL_US / 5;
}

int app_dispatcher_look(struct work_dispatcher *d, rv_err **err)
{
    int64_t classes[RV_TASK_MAX_CLASSES];
    struct rv_next_tasks next = {0};

    d->found_something = d->is_denied = false;
    size_t n = some_classes(d, classes);
    int rc = rv_store_next_tasks(d->store, classes, n, &next, err);
    if (rc == 0 && next.n_classes != d->n_known_classes) {
        d->n_classes = 0;
        d->n_known_classes = 0;
        rc = rv_store_list_classes(d->store, note_class, d, err);
        d->found_something = true; /* look again soon, with these */
    }
    if (rc == 0)
        rc = be_timely(d, &next, err);
    if (rc == 0)
        rc = fire(d, &next, err);
    if (rc == 0 && next.ready)
        rc = claim(d, classes, n, err);
    pthread_mutex_lock(&d->lock);
    d->is_idle = rc == 0 && !d->found_something && (!next.ready || d->is_denied) && next.due_us == 0 &&
                 next.stale_us == 0 && d->n_held == 0;
    bool is_idle = d->is_idle;
    pthread_mutex_unlock(&d->lock);
    plan_look(d, &next);
    if (is_idle)
        d->wake(d->wake_self);
    return rc;
}
