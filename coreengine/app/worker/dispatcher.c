/* The thread of a worker that talks to the store: it fires schedules, claims tasks, takes their runs over, loads what
 * they need, says that the worker lives, and tells the store how each task ended. The loop never waits for a disk.
 *
 * While nothing is there it asks less and less often, up to every two seconds. A store that tells of new work (see
 * rv_store_listen()) is asked at once. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coreengine/app/past.h"
#include "coreengine/app/schedules.h"
#include "coreengine/app/worker/dispatcher_internal.h"
#include "coreengine/base/base.h"

#define SWEEP_US   (5 * RV_US_PER_S)    /* five seconds: how late a task of a dead worker is found */
#define SIGN_US    (5 * RV_US_PER_S)    /* between two signs of life; with short leases more often */
#define RETRY_US   (500 * RV_US_PER_MS) /* half a second: the store was busy or away */
#define CANCELS_US (100 * RV_US_PER_MS) /* between two looks for cancellations that were heard of */
#define MAX_STRAYS 16 /* that are handed back at once: each is a write; the rest follows with the next look */
#define SWEEP_DUTY "sweep"
#define PRUNE_US   RV_US_PER_HOUR /* between two looks for counters of quotas that are over */
#define MAX_PRUNED 1000           /* rows in one transaction: it stays short for other writers */

/* --- how tasks ended --- */

static void let_go(struct work_dispatcher *d, struct work_job *j)
{
    struct work_job **at = &d->held;

    while (*at != j)
        at = &(*at)->next_held;
    *at = j->next_held;
    app_work_list_add(&d->unloads, j);
    d->poll_at_us = 0; /* there is room for another */
    pthread_mutex_lock(&d->lock);
    d->n_held--;
    pthread_mutex_unlock(&d->lock);
    d->wake(d->wake_self);
}

/* A worker that drains ends at last, whatever its store does. */
static bool is_out_of_grace(struct work_dispatcher *d)
{
    pthread_mutex_lock(&d->lock);
    bool is = d->is_draining && rv_app_now_us() >= d->drained_us;
    pthread_mutex_unlock(&d->lock);
    return is;
}

/* Each reason of a store that refuses is logged once. */
static void log_refusal(rv_log *log, const struct work_job *j, int rc, const rv_err *err)
{
    if (rc == 0 || rc == j->refusal)
        return;
    if (j->is_told)
        RV_LOG(log, WARN, "run.uncancelled", RV_F_TEXT("run_id", j->run), RV_F_ERR("error", err));
    else
        RV_LOG(log, WARN, "task.untold", RV_F_TEXT("task_id", j->task.id), RV_F_ERR("error", err));
}

/* True: it is settled. Else the store refused, and is asked again: a task that it does not know to have ended would be
 * handed back and worked on once more, and a request to cancel its run would be forgotten. */
static bool end_job(struct work_dispatcher *d, struct work_job *j)
{
    rv_log *log = d->worker->app.log;
    bool is_lost = false;
    rv_err *err = NULL;
    int rc = 0;

    if (!j->is_told) {
        rc = app_work_tell_end(d->store, j, &err);
        is_lost = rc == RV_E_STATE || rc == RV_E_NOT_FOUND;
        j->is_told = rc == 0;
        j->refusal = rc == 0 ? 0 : j->refusal;
    }
    if (rc == 0)
        rc = app_work_cancel_waiting(d->store, j, &err);
    if (is_lost)
        RV_LOG(log, WARN, "task.lost", RV_F_TEXT("task_id", j->task.id), RV_F_ERR("error", err));
    else
        log_refusal(log, j, rc, err);
    j->refusal = rc;
    rv_err_free(err);
    if (rc < 0 && !is_lost && !is_out_of_grace(d))
        return false;
    let_go(d, j);
    return true;
}

/* Calls that were given up may still run code of what they were loaded with. */
static void unload(struct work_dispatcher *d, bool at_the_end)
{
    struct rv_worker *w = d->worker;

    if (!d->unloads.first)
        return;
    bool settled = rv_engine_is_settled(w->engine);
    if (!settled && !at_the_end)
        return;
    for (struct work_job *j = app_work_list_take(&d->unloads), *next; j; j = next) {
        next = j->next;
        j->loaded.plugins_busy |= !settled;
        if (j->end != WORK_LEFT) /* else its run uses what was loaded until the process ends */
            app_work_job_free(j);
    }
}

/* --- signs of life --- */

/* Tasks that the store thinks are held here and are not: it could not be told how they ended, or the answer to a claim
 * got lost for good. Signs of life would keep them from other workers as long as this one has others. */
struct strays {
    struct work_dispatcher *dispatcher;
    struct {
        char id[RV_STORE_MAX_ID + 1];
        int64_t attempt;
    } tasks[MAX_STRAYS];
    size_t n;
};

static int note_lease(void *self, const struct rv_task_lease *lease, bool cancel_requested, rv_err **err)
{
    struct strays *s = self;
    bool is_held = false;

    (void)err;
    for (struct work_job *j = s->dispatcher->held; j; j = j->next_held) {
        if (strcmp(j->task.id, lease->id) != 0)
            continue;
        is_held = is_held || j->task.attempt == lease->attempt;
        if (cancel_requested)
            atomic_store(&j->cancel_wanted, true);
    }
    if (!is_held && s->n < MAX_STRAYS) {
        snprintf(s->tasks[s->n].id, sizeof s->tasks[s->n].id, "%s", lease->id);
        s->tasks[s->n++].attempt = lease->attempt;
    }
    return 0;
}

/* Tasks that a worker still holds when it ends go to other workers when their leases end. */
static int look_at_held(struct work_dispatcher *d, rv_err **err)
{
    struct strays s = {.dispatcher = d};
    int rc = rv_store_list_held(d->store, d->worker->owner, note_lease, &s, err);

    pthread_mutex_lock(&d->lock);
    bool is_draining = d->is_draining;
    pthread_mutex_unlock(&d->lock);
    for (size_t i = 0; rc == 0 && !is_draining && i < s.n; i++) {
        RV_LOG(d->worker->app.log, WARN, "task.stray", RV_F_TEXT("task_id", s.tasks[i].id));
        app_dispatcher_hand_back(d, s.tasks[i].id, s.tasks[i].attempt);
    }
    return rc;
}

static int sign(struct work_dispatcher *d, rv_err **err)
{
    const struct rv_worker *w = d->worker;
    int64_t now_us = rv_app_now_us();
    rv_buf offers = RV_BUF_INIT(RV_STORE_MAX_OFFERS);
    rv_jw jw = rv_jw_on(&offers);
    char host[256] = "";

    gethostname(host, sizeof host - 1);
    rv_needs_write(&w->offers, &jw);
    pthread_mutex_lock(&d->lock);
    struct rv_worker_row row = {.name = w->owner,
                                .host = host,
                                .pid = getpid(),
                                .n_max = (int64_t)w->n_max,
                                .n_runs = (int64_t)d->n_held,
                                .is_draining = d->is_draining,
                                .started_us = d->started_us,
                                .seen_us = now_us};
    pthread_mutex_unlock(&d->lock);
    row.offers = rv_buf_str(&offers);
    int rc = rv_buf_check(&offers, "offers", err);
    if (rc == 0)
        rc = rv_store_put_worker(d->store, &row, err);
    if (rc == 0 && row.n_runs > 0)
        rc = rv_store_heartbeat(d->store, w->owner, now_us, now_us + w->lease_us, NULL, err);
    if (rc == 0 && row.n_runs > 0)
        rc = look_at_held(d, err);
    rv_buf_fini(&offers);
    if (row.n_runs > 0)
        d->wake(d->wake_self); /* to look at what is to be cancelled */
    return rc;
}

/* Tasks here, runs on the loop. */
static int look_for_cancels(struct work_dispatcher *d, rv_err **err)
{
    d->cancels_at_us = 0;
    d->cancelled_us = rv_app_now_us();
    int rc = look_at_held(d, err);
    pthread_mutex_lock(&d->lock);
    d->heard_cancel = true;
    pthread_mutex_unlock(&d->lock);
    d->wake(d->wake_self);
    return rc;
}

/* One of the workers looks for all. */
static int sweep(struct work_dispatcher *d, rv_err **err)
{
    int64_t now_us = rv_app_now_us(), n = 0;
    bool is_mine = false;

    int rc = rv_store_claim_duty(
        d->store,
        &(const struct rv_duty_claim){
            .duty = SWEEP_DUTY, .worker = d->worker->owner, .now_us = now_us, .until_us = now_us + 2 * SWEEP_US},
        &is_mine, err);
    if (rc < 0 || !is_mine)
        return rc;
    rc = app_work_sweep(d->store, &d->sweep, now_us, &n, err);
    if (rc == 0 && d->worker->quotas && now_us >= d->prune_at_us) {
        d->prune_at_us = now_us + PRUNE_US;
        rc = rv_store_prune_usage(d->store, now_us - RV_USAGE_KEPT_US, now_us, MAX_PRUNED, NULL, err);
    }
    if (n > 0) {
        d->poll_us = RV_DISPATCHER_POLL_US;
        d->poll_at_us = 0;
        RV_LOG(d->worker->app.log, INFO, "runs.queued", RV_F_I64("left", n));
    }
    return rc;
}

/* --- the thread --- */

static void report(const struct work_dispatcher *d, const char *what, rv_err *err)
{
    RV_LOG(d->worker->app.log, WARN, "worker.store", RV_F_TEXT("what", what), RV_F_ERR("error", err));
    rv_err_free(err);
}

static int64_t sign_every_us(const struct rv_worker *w)
{
    return w->lease_us / 3 < SIGN_US ? w->lease_us / 3 : SIGN_US;
}

/* What is due. A store that refuses is asked again: the worker goes on. */
static void be_due(struct work_dispatcher *d)
{
    int64_t now_us = rv_app_now_us();
    rv_err *err = NULL;

    pthread_mutex_lock(&d->lock);
    bool is_draining = d->is_draining;
    pthread_mutex_unlock(&d->lock);

    if (is_draining && !d->has_told_draining)
        d->sign_at_us = 0;
    d->has_told_draining = is_draining;
    if (now_us >= d->sign_at_us) {
        d->sign_at_us = now_us + sign_every_us(d->worker);
        if (sign(d, &err) < 0) {
            d->sign_at_us = now_us + RETRY_US;
            report(d, "say that it lives", err);
        }
        err = NULL;
    }
    if (now_us >= d->sweep_at_us && !is_draining) {
        d->sweep_at_us = now_us + SWEEP_US + (int64_t)rv_rand_below(rv_rand_system(), (uint64_t)SWEEP_US / 2);
        if (sweep(d, &err) < 0)
            report(d, "look for runs that were left", err);
        err = NULL;
    }
    if (d->cancels_at_us > 0 && now_us >= d->cancels_at_us && look_for_cancels(d, &err) < 0) {
        report(d, "look for cancellations", err);
        err = NULL;
    }
    if (rv_app_now_us() >= d->poll_at_us && !is_draining && app_dispatcher_look(d, &err) < 0) {
        d->poll_at_us = rv_app_now_us() + RETRY_US;
        report(d, "look for tasks", err);
    }
}

/* Those that the loop gave, with those that the store did not take: these now and then. */
static void end_jobs(struct work_dispatcher *d, struct work_list *untold)
{
    int64_t now_us = rv_app_now_us();
    struct work_job *j;

    pthread_mutex_lock(&d->lock);
    bool is_due = d->ended.first || d->is_ending || now_us >= d->untold_at_us;
    for (j = app_work_list_take(&d->ended); j;) {
        struct work_job *next = j->next;
        app_work_list_add(untold, j);
        j = next;
    }
    pthread_mutex_unlock(&d->lock);
    if (!is_due)
        return;
    j = app_work_list_take(untold);
    for (struct work_job *each = j; each; each = each->next) {
        rv_journal_free(each->journal); /* of one that never came to the loop's engine */
        each->journal = NULL;
    }
    app_work_tell_done(d->store, j);
    while (j) {
        struct work_job *next = j->next;
        if (!end_job(d, j))
            app_work_list_add(untold, j);
        j = next;
    }
    d->untold_at_us = untold->first ? now_us + RETRY_US : 0;
}

static void ring(struct work_dispatcher *d)
{
    RV_IGNORE((int)write(d->bell[1], "", 1), "a pipe that is full wakes it as well");
}

/* 0: not at all. */
static int64_t wait_us(struct work_dispatcher *d, bool is_pressed)
{
    int64_t now_us = rv_app_now_us(), until_us = d->sign_at_us;

    pthread_mutex_lock(&d->lock);
    bool is_draining = d->is_draining, is_wanted = d->ended.first || d->is_ending;
    pthread_mutex_unlock(&d->lock);
    if (is_wanted)
        return 0;
    if (!is_draining && d->poll_at_us < until_us)
        until_us = d->poll_at_us;
    if (!is_draining && d->sweep_at_us < until_us)
        until_us = d->sweep_at_us;
    if (is_pressed || d->unloads.first)
        until_us = app_dispatcher_earlier(until_us, now_us + RETRY_US);
    until_us = app_dispatcher_earlier(until_us, d->cancels_at_us);
    return until_us > now_us ? until_us - now_us : 0;
}

/* Another process announced a task, or that a task held here is to be cancelled. */
static bool hear(struct work_dispatcher *d)
{
    bool heard = false;
    rv_err *err = NULL;

    if (rv_store_was_notified(d->store, &heard, &err) < 0) {
        report(d, "listen", err);
        return false;
    }
    pthread_mutex_lock(&d->lock);
    bool is_full = d->n_held >= d->worker->n_max;
    heard = heard || d->is_told;
    d->is_told = false;
    pthread_mutex_unlock(&d->lock);
    if (!heard)
        return false;
    d->poll_us = RV_DISPATCHER_POLL_US;
    if (!is_full)
        d->poll_at_us = 0;
    if (d->held && d->cancels_at_us == 0)
        d->cancels_at_us = d->cancelled_us + CANCELS_US;
    return true;
}

static void wait_for_work(struct work_dispatcher *d, bool is_pressed)
{
    struct pollfd fds[] = {{.fd = d->bell[0], .events = POLLIN}, {.fd = -1, .events = POLLIN}};
    rv_err *err = NULL;
    char bytes[64];

    if (rv_store_listen(d->store, &fds[1].fd, &err) < 0)
        report(d, "listen", err);
    if (hear(d))
        return;
    int64_t us = wait_us(d, is_pressed);
    if (poll(fds, RV_COUNT(fds), (int)((us + 999) / 1000)) > 0 && fds[0].revents)
        while (read(d->bell[0], bytes, sizeof bytes) == sizeof bytes) {
        }
    hear(d);
}

static void *work(void *self)
{
    struct work_dispatcher *d = self;
    struct work_list untold;
    bool is_ending = false;

    app_work_list_init(&untold);
    while (!is_ending) {
        end_jobs(d, &untold);
        be_due(d);
        unload(d, false);
        wait_for_work(d, untold.first != NULL);
        pthread_mutex_lock(&d->lock);
        is_ending = d->is_ending;
        pthread_mutex_unlock(&d->lock);
    }
    end_jobs(d, &untold);
    while (untold.first) { /* their leases end */
        struct work_job *j = untold.first;
        untold.first = j->next;
        let_go(d, j);
    }
    RV_IGNORE(rv_store_delete_worker(d->store, d->worker->owner, rv_app_now_us() - RV_US_PER_DAY, NULL),
              "its row says when it was seen last");
    return NULL;
}

/* --- for the loop --- */

void app_work_dispatcher_tell(struct work_dispatcher *d)
{
    pthread_mutex_lock(&d->lock);
    d->is_told = true;
    pthread_mutex_unlock(&d->lock);
    ring(d);
}

void app_work_dispatcher_drain(struct work_dispatcher *d)
{
    int64_t grace_us = rv_worker_grace_us(d->worker->opts->grace_us);

    pthread_mutex_lock(&d->lock);
    d->is_draining = true;
    d->drained_us = rv_app_now_us() + grace_us;
    pthread_mutex_unlock(&d->lock);
    ring(d);
}

void app_work_dispatcher_give(struct work_dispatcher *d, struct work_job *j)
{
    pthread_mutex_lock(&d->lock);
    app_work_list_add(&d->ended, j);
    pthread_mutex_unlock(&d->lock);
    ring(d);
}

struct work_job *app_work_dispatcher_take(struct work_dispatcher *d)
{
    pthread_mutex_lock(&d->lock);
    struct work_job *first = app_work_list_take(&d->begins);
    pthread_mutex_unlock(&d->lock);
    return first;
}

bool app_work_dispatcher_is_empty(struct work_dispatcher *d)
{
    pthread_mutex_lock(&d->lock);
    bool is = d->n_held == 0;
    pthread_mutex_unlock(&d->lock);
    return is;
}

bool app_work_dispatcher_end_if_idle(struct work_dispatcher *d)
{
    pthread_mutex_lock(&d->lock);
    bool is = d->is_idle && d->n_held == 0;
    d->is_ending = d->is_ending || is;
    pthread_mutex_unlock(&d->lock);
    return is;
}

bool app_work_dispatcher_heard_cancel(struct work_dispatcher *d)
{
    pthread_mutex_lock(&d->lock);
    bool heard = d->heard_cancel;
    d->heard_cancel = false;
    pthread_mutex_unlock(&d->lock);
    return heard;
}

static void destroy(struct work_dispatcher *d)
{
    for (size_t i = 0; i < RV_COUNT(d->bell); i++)
        if (d->bell[i] >= 0)
            close(d->bell[i]);
    pthread_mutex_destroy(&d->lock);
    rv_store_close(d->store);
    rv_zones_free(d->zones);
    free(d->classes);
    free(d);
}

int app_work_dispatcher_new(struct rv_worker *w, const rv_store *store, void (*wake)(void *self), void *self,
                            struct work_dispatcher **out, rv_err **err)
{
    struct work_dispatcher *d = calloc(1, sizeof *d);

    if (!d)
        return RV_FAIL(err, RV_E_NOMEM, "make a worker");
    pthread_mutex_init(&d->lock, NULL);
    d->bell[0] = d->bell[1] = -1;
    app_work_list_init(&d->ended);
    app_work_list_init(&d->begins);
    app_work_list_init(&d->unloads);
    d->worker = w;
    d->wake = wake;
    d->wake_self = self;
    d->n_known_classes = -1;
    d->poll_us = RV_DISPATCHER_POLL_US;
    d->started_us = rv_app_now_us();
    d->zones = rv_zones_new(NULL);
    int rc = d->zones ? 0 : RV_FAIL(err, RV_E_NOMEM, "make a worker");
    if (rc == 0 && pipe2(d->bell, O_CLOEXEC | O_NONBLOCK) < 0)
        rc = RV_FAIL_SYSTEM(err, errno, "make a pipe");
    if (rc == 0)
        rc = rv_store_reopen(store, &d->store, err);
    d->taker = (struct work_taker){.store = d->store,
                                   .owner = w->owner,
                                   .lease_us = w->lease_us,
                                   .handlers = w->handlers,
                                   .n_handlers = w->opts->n_handlers,
                                   .quotas = w->quotas,
                                   .opts = w->opts,
                                   .writes_streams = w->opts->streams != NULL};
    if (rc == 0)
        rc = rv_thread_start(work, d, &d->thread, err);
    if (rc < 0)
        destroy(d);
    else
        *out = d;
    return rc;
}

void app_work_dispatcher_free(struct work_dispatcher *d)
{
    if (!d)
        return;
    pthread_mutex_lock(&d->lock);
    d->is_ending = true;
    pthread_mutex_unlock(&d->lock);
    ring(d);
    pthread_join(d->thread, NULL);
    unload(d, true);
    destroy(d);
}
