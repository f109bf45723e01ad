/* How an attempt ends: its worker, who holds the lease, completes it, fails it or hands it back; people cancel tasks or
 * put them back. Every change is made by store_task_change(), which keeps the row, its events and its lane in step. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/queue/queue_internal.h"

#define BACKOFF     (30 * RV_US_PER_S)        /* before the first retry; four times as long before each further one */
#define MAX_BACKOFF (24 * 3600 * RV_US_PER_S) /* a day: then a person should look */
#define MAX_JITTER  INT64_C(100000)  /* a tenth, in millionths: tasks must not come much earlier than was said */
#define MILLION     INT64_C(1000000) /* parts: jitter is in millionths */

bool rv_task_status_is_final(enum rv_task_status status)
{
    return status == RV_TASK_COMPLETED || status == RV_TASK_FAILED || status == RV_TASK_CANCELLED;
}

/* --- Finding --- */

int store_task_fail_none(const char *id, rv_err **err)
{
    return RV_FAIL(err, RV_E_NOT_FOUND, "there is no task \"%s\"", id);
}

static bool keep(rv_str s, char out[RV_STORE_MAX_ID + 1])
{
    if (s.len > RV_STORE_MAX_ID)
        return false;
    if (s.len > 0)
        memcpy(out, s.ptr, s.len);
    out[s.len] = 0;
    return true;
}

int store_task_found(struct sql_store *st, rv_sql_stmt *stmt, struct found_task *out, rv_err **err)
{
    struct found_task got = {
        .key = sql_int_at(stmt, 0),
        .lane = sql_int_at(stmt, 1),
        .cancel_requested = sql_int_at(stmt, 3) != 0,
        .attempt = sql_int_at(stmt, 4),
        .retry_count = sql_int_at(stmt, 5),
        .max_retries = sql_int_at(stmt, 6),
        .n_events = sql_int_at(stmt, 7),
        .claimed_us = sql_int_at(stmt, 8),
        .lease_until_us = sql_int_at(stmt, 9),
        .scheduled_us = sql_int_at(stmt, 10),
    };
    const int64_t numbers[] = {got.attempt,    got.retry_count,    got.max_retries, got.n_events,
                               got.claimed_us, got.lease_until_us, got.scheduled_us};
    rv_str status = sql_str_at(stmt, 2);

    if (!keep(sql_str_at(stmt, 11), got.worker) || !keep(sql_str_at(stmt, 12), got.id) || !got.id[0] ||
        !keep(sql_str_at(stmt, 13), got.tenant))
        return store_damaged(st, err, "a task is damaged: its id or its worker is missing");
    if (rv_task_status_of(status, &got.status, NULL) < 0)
        return store_damaged(st, err, "task \"%s\" is damaged: \"%.*s\" is not a status", got.id,
                             RV_STR_ARG(rv_utf8_cut(status, 40)));
    int rc = store_check_numbers(st, "task", got.id, numbers, RV_COUNT(numbers), err);
    if (rc == 0)
        *out = got;
    return rc;
}

/* RV_E_NOT_FOUND. scope NULL: any. */
static int find_task(struct sql_store *st, const struct rv_store_scope *scope, const char *id, struct found_task *out,
                     rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_FIND_TASK);
    int rc;

    store_sql_text(stmt, 1, id);
    store_sql_text(stmt, 2, scope ? scope->tenant : NULL);
    store_sql_text(stmt, 3, scope ? scope->user : NULL);
    rc = sql_step(stmt, "look for a task", err);
    if (rc == 0)
        rc = store_task_fail_none(id, err);
    else if (rc == 1)
        rc = store_task_found(st, stmt, out, err);
    sql_done(stmt);
    return rc;
}

/* --- Changing --- */

static void bind_event(rv_sql_stmt *stmt, int64_t key, const struct rv_task_event *e)
{
    sql_int(stmt, 1, key);
    sql_int(stmt, 2, e->seq);
    sql_int(stmt, 3, e->at_us);
    store_sql_text(stmt, 4, e->kind);
    sql_int(stmt, 5, e->attempt);
    store_sql_text(stmt, 6, e->worker);
    store_sql_text(stmt, 7, e->text);
    sql_int(stmt, 8, e->retry);
    sql_int(stmt, 9, e->next_us);
}

int store_task_add_events(struct sql_store *st, const struct task_step *steps, size_t n, enum rv_task_event_kind kind,
                          int64_t now_us, rv_err **err)
{
    const struct sql_rows rows = {.stmt = sql_use_rows(st, SQL_ADD_EVENT), .what = "add events of tasks"};
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct rv_task_event e = {.seq = steps[i].n_events,
                                        .at_us = now_us,
                                        .kind = rv_task_event_kind_text(kind),
                                        .attempt = steps[i].attempt,
                                        .worker = steps[i].worker};
        if (steps[i].key == 0)
            continue;
        bind_event(rows.stmt, steps[i].key, &e);
        rc = sql_add_row(&rows, err);
    }
    return sql_end_rows(&rows, rc, err);
}

/* What is told of a task. The text is borrowed. */
struct task_news {
    enum rv_task_event_kind kind;
    const char *text;
};
static int add_event(struct sql_store *st, const struct found_task *found, const struct task_news *news,
                     const struct task_change *change, int64_t now_us, rv_err **err)
{
    bool is_again = news->kind == RV_TASK_EVENT_RETRYING || news->kind == RV_TASK_EVENT_RECOVERED;
    struct rv_task_event e = {
        .seq = found->n_events + 1,
        .at_us = now_us,
        .kind = rv_task_event_kind_text(news->kind),
        .attempt = found->attempt,
        .worker = found->worker[0] ? found->worker : NULL,
        .text = news->text,
    };

    if (is_again)
        e.retry = change->retry_count;
    if (is_again || news->kind == RV_TASK_EVENT_QUOTA_EXCEEDED)
        e.next_us = change->scheduled_us;
    const struct rv_place at = vault_engine_place(found->tenant, "task_events", found->id, NULL, e.seq);
    rv_sql_stmt *stmt = sql_use(st, SQL_ADD_EVENT);
    bind_event(stmt, found->key, &e);
    if (change && change->is_plain)
        store_sql_text(stmt, 7, news->text);
    else
        store_secret_bind(stmt, 7, SQL_TEXT, &at, "text", rv_str_of(news->text));
    return sql_run(stmt, "add an event of a task", err);
}

int store_task_change(struct sql_store *st, const struct found_task *found, const struct task_change *change,
                      rv_err **err)
{
    const struct rv_place at = store_task_place(found->tenant, found->id);
    rv_sql_stmt *stmt = sql_use(st, SQL_SET_TASK);
    int rc;

    sql_int(stmt, 1, found->key);
    store_sql_text(stmt, 2, rv_task_status_text(change->status));
    sql_int(stmt, 3, change->now_us);
    sql_int(stmt, 4, change->retry_count);
    sql_int(stmt, 5, rv_task_status_is_final(change->status) ? change->now_us : 0);
    sql_int(stmt, 6, change->scheduled_us > 0 ? change->scheduled_us : found->scheduled_us);
    if (change->is_plain)
        store_sql_text(stmt, 7, change->error);
    else
        store_secret_bind(stmt, 7, SQL_TEXT, &at, "error", rv_str_of(change->error));
    store_secret_bind(stmt, 8, SQL_STR, &at, "result", change->result);
    rc = sql_run(stmt, "change a task", err);
    if (rc == 0)
        rc = add_event(st, found, &(const struct task_news){.kind = change->event, .text = change->text}, change,
                       change->now_us, err);
    if (rc < 0)
        return rc;
    return store_lane_move(st, found->lane, (change->status == RV_TASK_PENDING) - (found->status == RV_TASK_PENDING),
                           -(found->status == RV_TASK_PROCESSING), err);
}

/* The task was to be cancelled, so it ends as cancelled and not as its holder says. */
static void cancel_instead(struct task_change *change)
{
    change->status = RV_TASK_CANCELLED;
    change->scheduled_us = 0;
    change->event = RV_TASK_EVENT_CANCELLED;
}

/* --- The end of an attempt --- */

int store_task_check_lease(const struct rv_task_lease *lease, int64_t now_us, rv_err **err)
{
    int rc;

    if (!lease)
        return RV_FAIL(err, RV_E_INVALID, "no lease given");
    rc = store_check_id("task's id", lease->id, err);
    if (rc == 0)
        rc = store_check_id("worker", lease->worker, err);
    if (rc == 0 && lease->attempt < 1)
        rc = RV_FAIL(err, RV_E_INVALID, "task \"%s\": attempt %lld", lease->id, (long long)lease->attempt);
    return rc < 0 ? rc : store_check_time("the time", now_us, err);
}

int store_task_find_held(struct sql_store *st, const struct rv_task_lease *lease, struct found_task *out, rv_err **err)
{
    int rc = find_task(st, NULL, lease->id, out, err);

    if (rc < 0 || (out->status == RV_TASK_PROCESSING && out->attempt == lease->attempt &&
                   strcmp(out->worker, lease->worker) == 0))
        return rc;
    return RV_FAIL(err, RV_E_STATE,
                   "lost_lease: worker \"%s\" no longer holds attempt %lld of task \"%s\": it is %s, attempt %lld%s%s",
                   lease->worker, (long long)lease->attempt, lease->id, rv_task_status_text(out->status),
                   (long long)out->attempt, out->worker[0] ? " of " : "", out->worker);
}

/* 30 s x 4^n, and what the jitter adds. */
static int64_t backoff(int64_t n, int64_t jitter_ppm)
{
    int64_t us = BACKOFF;

    for (int64_t i = 0; i < n && us < MAX_BACKOFF; i++)
        us *= 4;
    us = us < MAX_BACKOFF ? us : MAX_BACKOFF;
    return us + us / MILLION * jitter_ppm;
}

static int fail(struct sql_store *st, const struct rv_task_lease *lease, const struct rv_task_failure *failure,
                const char *error, enum rv_task_status *now_is, rv_err **err)
{
    struct found_task found;
    int rc = store_task_find_held(st, lease, &found, err);

    if (rc < 0)
        return rc;
    struct task_change change = {.status = RV_TASK_FAILED,
                                 .now_us = failure->now_us,
                                 .retry_count = found.retry_count,
                                 .error = error,
                                 .event = RV_TASK_EVENT_FAILED,
                                 .text = error};
    if (found.cancel_requested) {
        cancel_instead(&change);
    } else if (!failure->is_final && found.retry_count < found.max_retries) {
        change.status = RV_TASK_WAITING;
        change.scheduled_us = failure->now_us + backoff(found.retry_count, failure->jitter_ppm);
        change.retry_count++;
        change.event = RV_TASK_EVENT_RETRYING;
    }
    *now_is = change.status;
    return store_task_change(st, &found, &change, err);
}

static int check_words(const char *kind, const char *text, rv_err **err)
{
    return store_check_text(kind, text, RV_STORE_MAX_QUESTION, err);
}

/* The text as the store keeps it: no more than RV_TASK_MAX_ERROR bytes. */
static char *cut(const char *text)
{
    return rv_str_dup(rv_utf8_cut(rv_str_of(text), RV_TASK_MAX_ERROR));
}

static int check_failure(const struct rv_task_lease *lease, const struct rv_task_failure *failure, rv_err **err)
{
    int rc =
        failure ? store_task_check_lease(lease, failure->now_us, err) : RV_FAIL(err, RV_E_INVALID, "no failure given");

    if (rc == 0)
        rc = check_words("error", failure->error, err);
    if (rc == 0 && (failure->jitter_ppm < -MAX_JITTER || failure->jitter_ppm > MAX_JITTER))
        rc = RV_FAIL(err, RV_E_INVALID, "a jitter of %lld millionths is not between -%lld and %lld",
                     (long long)failure->jitter_ppm, (long long)MAX_JITTER, (long long)MAX_JITTER);
    return rc;
}

int rv_store_fail_task(rv_store *s, const struct rv_task_lease *lease, const struct rv_task_failure *failure,
                       enum rv_task_status *now_is, rv_err **err)
{
    enum rv_task_status status = RV_TASK_FAILED;
    char *error = NULL;
    int rc = check_failure(lease, failure, err);

    if (rc == 0 && !(error = cut(failure->error)))
        rc = RV_FAIL(err, RV_E_NOMEM, "fail task");
    rc = store_enter_write(s, rc, "fail task", err);
    if (rc == 0) {
        do
            rc = fail(s->sql, lease, failure, error, &status, err);
        while (store_repeats(s, &rc, err));
        rc = store_leave_write(s, rc, err);
    }
    free(error);
    if (rc == 0 && now_is)
        *now_is = status;
    return rc;
}

/* Until when, why, and as which event it is told. */
struct postponement {
    int64_t until_us;
    const char *why;
    enum rv_task_event_kind event;
    const char *call; /* "postpone task" */
};

static int postpone(struct sql_store *st, const struct rv_task_lease *lease, const struct postponement *p,
                    int64_t now_us, rv_err **err)
{
    struct found_task found;
    int rc = store_task_find_held(st, lease, &found, err);

    if (rc < 0)
        return rc;
    struct task_change change = {.status = p->until_us > now_us ? RV_TASK_WAITING : RV_TASK_PENDING,
                                 .now_us = now_us,
                                 .scheduled_us = p->until_us,
                                 .retry_count = found.retry_count,
                                 .error = p->why,
                                 .event = p->event,
                                 .text = p->why};
    if (found.cancel_requested)
        cancel_instead(&change);
    return store_task_change(st, &found, &change, err);
}

static int put_off(rv_store *s, const struct rv_task_lease *lease, struct postponement p, int64_t now_us, rv_err **err)
{
    char *text = NULL;
    int rc = store_task_check_lease(lease, now_us, err);

    if (rc == 0 && (p.until_us <= 0 || p.until_us > RV_STORE_MAX_NUMBER))
        rc = RV_FAIL(err, RV_E_INVALID, "put off until %lld us, which is not a date", (long long)p.until_us);
    if (rc == 0)
        rc = check_words("reason", p.why, err);
    if (rc == 0 && !(text = cut(p.why)))
        rc = RV_FAIL(err, RV_E_NOMEM, "%s", p.call);
    p.why = text;
    rc = store_enter_write(s, rc, p.call, err);
    if (rc == 0) {
        do
            rc = postpone(s->sql, lease, &p, now_us, err);
        while (store_repeats(s, &rc, err));
        rc = store_leave_write(s, rc, err);
    }
    free(text);
    return rc;
}

int rv_store_postpone_task(rv_store *s, const struct rv_task_lease *lease, int64_t until_us, const char *why,
                           int64_t now_us, rv_err **err)
{
    return put_off(s, lease, (struct postponement){until_us, why, RV_TASK_EVENT_QUOTA_EXCEEDED, "postpone task"},
                   now_us, err);
}

int rv_store_defer_task(rv_store *s, const struct rv_task_lease *lease, int64_t until_us, const char *why,
                        int64_t now_us, rv_err **err)
{
    return put_off(s, lease, (struct postponement){until_us, why, RV_TASK_EVENT_RELEASED, "defer task"}, now_us, err);
}

static int release(struct sql_store *st, const struct rv_task_lease *lease, int64_t now_us, rv_err **err)
{
    struct found_task found;
    int rc = store_task_find_held(st, lease, &found, err);

    if (rc < 0)
        return rc;
    struct task_change change = {
        .status = RV_TASK_PENDING, .now_us = now_us, .retry_count = found.retry_count, .event = RV_TASK_EVENT_RELEASED};
    if (found.cancel_requested)
        cancel_instead(&change);
    return store_task_change(st, &found, &change, err);
}

int rv_store_release_task(rv_store *s, const struct rv_task_lease *lease, int64_t now_us, rv_err **err)
{
    int rc = store_enter_write(s, store_task_check_lease(lease, now_us, err), "release task", err);

    if (rc != 0)
        return rc;
    do
        rc = release(s->sql, lease, now_us, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

static int stop(struct sql_store *st, const struct rv_task_lease *lease, int64_t now_us, rv_err **err)
{
    struct found_task found;
    int rc = store_task_find_held(st, lease, &found, err);

    if (rc == 0 && !found.cancel_requested)
        rc = RV_FAIL(err, RV_E_STATE, "task \"%s\" is not to be cancelled", lease->id);
    if (rc < 0)
        return rc;
    struct task_change change = {.now_us = now_us, .retry_count = found.retry_count};
    cancel_instead(&change);
    return store_task_change(st, &found, &change, err);
}

int rv_store_stop_task(rv_store *s, const struct rv_task_lease *lease, int64_t now_us, rv_err **err)
{
    int rc = store_enter_write(s, store_task_check_lease(lease, now_us, err), "stop task", err);

    if (rc != 0)
        return rc;
    do
        rc = stop(s->sql, lease, now_us, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

/* An event that leaves the task as it is, but for a request to cancel it. */
static int mark(struct sql_store *st, const struct found_task *found, enum rv_task_event_kind kind, const char *text,
                int64_t now_us, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_MARK_TASK);
    int rc;

    sql_int(stmt, 1, found->key);
    sql_int(stmt, 2, kind == RV_TASK_EVENT_CANCEL_REQUESTED);
    sql_int(stmt, 3, now_us);
    rc = sql_run(stmt, "mark a task", err);
    if (kind == RV_TASK_EVENT_CANCEL_REQUESTED)
        sql_tell(st);
    return rc < 0 ? rc : add_event(st, found, &(const struct task_news){.kind = kind, .text = text}, NULL, now_us, err);
}

/* --- People --- */

static int check_person(const struct rv_store_scope *scope, const char *id, int64_t now_us, struct rv_store_scope *out,
                        rv_err **err)
{
    int rc = store_check_scoped(scope, "task's id", id, out, err);

    return rc < 0 ? rc : store_check_time("the time", now_us, err);
}

static int cancel(struct sql_store *st, const struct rv_store_scope *scope, const char *id, int64_t now_us,
                  enum rv_task_status *now_is, rv_err **err)
{
    struct found_task found;
    int rc = find_task(st, scope, id, &found, err);

    if (rc == 0 && rv_task_status_is_final(found.status))
        rc = RV_FAIL(err, RV_E_STATE, "task \"%s\" is over: %s", id, rv_task_status_text(found.status));
    if (rc < 0)
        return rc;
    *now_is = found.status == RV_TASK_PROCESSING ? RV_TASK_PROCESSING : RV_TASK_CANCELLED;
    if (found.status == RV_TASK_PROCESSING)
        return found.cancel_requested ? 0 : mark(st, &found, RV_TASK_EVENT_CANCEL_REQUESTED, NULL, now_us, err);
    struct task_change change = {.now_us = now_us, .retry_count = found.retry_count};
    cancel_instead(&change);
    return store_task_change(st, &found, &change, err);
}

int rv_store_cancel_task(rv_store *s, const struct rv_store_scope *scope, const char *id, int64_t now_us,
                         enum rv_task_status *now_is, rv_err **err)
{
    enum rv_task_status status = RV_TASK_CANCELLED;
    struct rv_store_scope sc;
    int rc = store_enter_write(s, check_person(scope, id, now_us, &sc, err), "cancel task", err);

    if (rc != 0)
        return rc;
    do
        rc = cancel(s->sql, &sc, id, now_us, &status, err);
    while (store_repeats(s, &rc, err));
    rc = store_leave_write(s, rc, err);
    if (rc == 0 && now_is)
        *now_is = status;
    return rc;
}

/* A key is unique among the tasks that are not over. */
static int check_key(struct sql_store *st, const struct found_task *found, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_SAME_KEY);
    int rc;

    sql_int(stmt, 1, found->key);
    rc = sql_step(stmt, "look for an idempotency key", err);
    if (rc == 1)
        rc = RV_FAIL(err, RV_E_EXISTS, "task \"%s\" has the key of task \"%.*s\", which is not over", found->id,
                     RV_STR_ARG(rv_utf8_cut(sql_str_at(stmt, 0), RV_STORE_MAX_ID)));
    sql_done(stmt);
    return rc;
}

static int retry(struct sql_store *st, const struct rv_store_scope *scope, const char *id, int64_t now_us, rv_err **err)
{
    struct found_task found;
    int rc = find_task(st, scope, id, &found, err);

    if (rc == 0 && found.status != RV_TASK_FAILED && found.status != RV_TASK_CANCELLED)
        rc = RV_FAIL(err, RV_E_STATE, "task \"%s\" is %s: only a failed or cancelled one can be retried", id,
                     rv_task_status_text(found.status));
    if (rc == 0)
        rc = check_key(st, &found, err);
    if (rc < 0)
        return rc;
    const struct task_change change = {
        .status = RV_TASK_PENDING, .now_us = now_us, .scheduled_us = now_us, .event = RV_TASK_EVENT_RETRIED};
    return store_task_change(st, &found, &change, err);
}

int rv_store_retry_task(rv_store *s, const struct rv_store_scope *scope, const char *id, int64_t now_us, rv_err **err)
{
    struct rv_store_scope sc;
    int rc = store_enter_write(s, check_person(scope, id, now_us, &sc, err), "retry task", err);

    if (rc != 0)
        return rc;
    do
        rc = retry(s->sql, &sc, id, now_us, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}
