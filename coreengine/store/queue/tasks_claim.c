/* Requests of workers to the queue: the classes of tasks, the tasks that are ready, the next tasks to work at, and
 * renewals of leases. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/queue/queue_internal.h"

#define MANY_TASKS    1000             /* of a lane, that are looked at for one that can be decrypted */
#define MAX_PASSED    32               /* lanes of tasks that cannot be decrypted, in one claim: each is a statement */
#define TIME_PER_TASK INT64_C(1000000) /* what one task adds to the virtual time of a lane of weight 1 */

/* --- Classes --- */

/* needs: one a line. The texts stay where they are, in `room`. */
static int give_class(struct rv_task_class c, rv_str needs, char *room, rv_each_class *each, void *ctx, rv_err **err)
{
    const char *list[RV_TASK_MAX_NEEDS];
    char *rest = room;

    c.needs = list;
    if (needs.len > 0) {
        memcpy(room, needs.ptr, needs.len);
        room[needs.len] = 0;
        while (rest && c.n_needs < RV_TASK_MAX_NEEDS)
            list[c.n_needs++] = strsep(&rest, "\n");
    }
    return each(ctx, &c, err);
}

static int list_classes(struct sql_store *st, rv_each_class *each, void *ctx, rv_err **err)
{
    char room[RV_TASK_MAX_NEEDS * (RV_STORE_MAX_ID + 1)];
    rv_sql_stmt *stmt = sql_use(st, SQL_CLASSES);
    bool lacked = false;
    int rc;

    while ((rc = sql_step(stmt, "list classes of tasks", err)) == 1) {
        int64_t id = sql_int_at(stmt, 0);
        const char *tier = sql_text_at(stmt, 1, &lacked);
        rv_str needs = sql_str_at(stmt, 2);
        if (lacked)
            rc = RV_FAIL(err, RV_E_NOMEM, "list classes of tasks");
        else if (!tier || !needs.ptr || needs.len >= sizeof room)
            rc = store_damaged(st, err, "class %lld of tasks is damaged", (long long)id);
        else
            rc = give_class((struct rv_task_class){.id = id, .tier = tier}, needs, room, each, ctx, err);
        if (rc != 0)
            break;
    }
    sql_done(stmt);
    return rc;
}

int rv_store_list_classes(rv_store *s, int (*each)(void *self, const struct rv_task_class *c, rv_err **err), void *self,
                          rv_err **err)
{
    int rc = store_enter_read(s, 0, "list classes", err);

    return rc != 0 ? rc : store_leave_read(s, list_classes(s->sql, each, self, err), err);
}

/* --- What is next --- */

static int check_classes(const int64_t *classes, size_t n, rv_err **err)
{
    if (n > RV_TASK_MAX_CLASSES)
        return RV_FAIL(err, RV_E_LIMIT, "%zu classes, more than %d", n, RV_TASK_MAX_CLASSES);
    if (n > 0 && !classes)
        return RV_FAIL(err, RV_E_INVALID, "%zu classes, and none given", n);
    return 0;
}

static int look_next(struct sql_store *st, const int64_t *classes, size_t n, struct rv_next_tasks *out, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_NEXT_TASKS);
    int rc = sql_step(stmt, "look for tasks", err);

    if (rc == 1)
        *out = (struct rv_next_tasks){.n_classes = sql_int_at(stmt, 0),
                                      .due_us = sql_int_at(stmt, 1),
                                      .stale_us = sql_int_at(stmt, 2),
                                      .fires_us = sql_int_at(stmt, 3)};
    sql_done(stmt);
    for (size_t i = 0; i < n && rc >= 0 && !out->ready; i++) {
        stmt = sql_use(st, SQL_IS_OPEN);
        sql_int(stmt, 1, classes[i]);
        rc = sql_step(stmt, "look for tasks", err);
        out->ready = rc == 1;
        sql_done(stmt);
    }
    return rc < 0 ? rc : 0;
}

int rv_store_next_tasks(rv_store *s, const int64_t *classes, size_t n_classes, struct rv_next_tasks *out, rv_err **err)
{
    struct rv_next_tasks got = {0};
    int rc = store_enter_read(s, check_classes(classes, n_classes, err), "next tasks", err);

    if (rc != 0)
        return rc;
    rc = store_leave_read(s, look_next(s->sql, classes, n_classes, &got, err), err);
    if (rc == 0)
        *out = got;
    return rc;
}

/* --- Claiming --- */

void rv_claimed_fini(struct rv_claimed *claimed)
{
    for (size_t i = 0; i < claimed->n; i++)
        rv_task_row_fini(&claimed->rows[i]);
    free(claimed->rows);
    rv_err_free(claimed->denied);
    *claimed = (struct rv_claimed){0};
}

/* Claims that are under way: the rows, and what they are in the store. */
struct claiming {
    struct sql_store *st;
    const struct rv_claim_tasks *want;
    struct rv_claimed got;
    struct task_step *steps; /* of each row; owned */
};

/* A task that this process has no key for is another worker's; one that is damaged waits for its row to be restored. */
static void pass_over(struct claiming *c, rv_err *why)
{
    c->got.n_denied++;
    if (c->got.denied)
        rv_err_free(why);
    else
        c->got.denied = why;
}

/* The first tasks of the lane, as they will be when they are claimed. */
static int pick_of(struct claiming *c, int64_t lane, size_t room, size_t n_looked_at, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(c->st, SQL_CLAIMABLE);
    size_t most = c->got.n + room;
    int rc;

    sql_int(stmt, 1, lane);
    sql_int(stmt, 2, (int64_t)n_looked_at);
    while ((rc = sql_step(stmt, "claim tasks", err)) == 1 && c->got.n < most) {
        struct read_task task;
        rv_err *cause = NULL;
        rc = store_task_read(c->st, stmt, &task, &cause);
        if (rc == RV_E_DENIED || rc == RV_E_IO) {
            pass_over(c, cause);
            continue;
        }
        if (rc < 0) {
            rc = rv_err_pass(err, cause);
            break;
        }
        task.row.status = RV_TASK_PROCESSING;
        task.row.attempt++;
        task.row.worker = c->want->worker;
        task.row.claimed_us = task.row.started_us = task.row.updated_us = c->want->now_us;
        task.row.lease_until_us = c->want->until_us;
        rc = store_task_copy(&task.row, &c->got.rows[c->got.n], err);
        if (rc < 0)
            break;
        c->steps[c->got.n++] = (struct task_step){
            .key = task.key, .n_events = task.n_events + 1, .attempt = task.row.attempt, .worker = c->want->worker};
    }
    sql_done(stmt);
    return rc < 0 ? rc : 0;
}

/* Behind tasks that cannot be decrypted there may be others, of a time when the tenant's were not encrypted. */
static int pick(struct claiming *c, int64_t lane, size_t room, rv_err **err)
{
    size_t before = c->got.n, n_denied = c->got.n_denied;
    int rc = pick_of(c, lane, room, room, err);

    if (rc < 0 || c->got.n > before || c->got.n_denied == n_denied)
        return rc;
    c->got.n_denied = n_denied;
    return pick_of(c, lane, room, MANY_TASKS, err);
}

/* Those from `first` on. */
static int claim_picked(struct claiming *c, size_t first, rv_err **err)
{
    const struct sql_rows rows = {.stmt = sql_use_rows(c->st, SQL_CLAIM_TASK), .what = "claim tasks"};
    int rc = 0;

    for (size_t i = first; i < c->got.n && rc == 0; i++) {
        sql_int(rows.stmt, 1, c->steps[i].key);
        store_sql_text(rows.stmt, 2, c->want->worker);
        sql_int(rows.stmt, 3, c->want->now_us);
        sql_int(rows.stmt, 4, c->want->until_us);
        rc = sql_add_row(&rows, err);
    }
    rc = sql_end_rows(&rows, rc, err);
    return rc < 0 ? rc
                  : store_task_add_events(c->st, c->steps + first, c->got.n - first, RV_TASK_EVENT_CLAIMED,
                                          c->want->now_us, err);
}

struct lane {
    int64_t key, room, weight;
};

/* 1: the least served lane of the class from which something may be taken; 0: there is none. */
static int next_lane(struct claiming *c, enum sql_id how, int64_t class_id, struct lane *out, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(c->st, how);
    int rc;

    sql_int(stmt, 1, class_id);
    rc = sql_step(stmt, "look for a lane", err);
    if (rc == 1)
        *out = (struct lane){sql_int_at(stmt, 0), sql_int_at(stmt, 1), sql_int_at(stmt, 2)};
    sql_done(stmt);
    if (rc == 1 && (out->room < 1 || out->weight < 1))
        return store_damaged(c->st, err, "lane %lld of tasks is damaged: its weight is %lld", (long long)out->key,
                             (long long)out->weight);
    return rc;
}

/* Take what there is room for. *took 0: others hold its tasks just now, or its count of them is wrong; it is passed
 * over for once. */
static int serve(struct claiming *c, const struct lane *lane, size_t *took, rv_err **err)
{
    size_t before = c->got.n, room = c->want->n - before;
    rv_sql_stmt *stmt;
    int rc = pick(c, lane->key, lane->room < (int64_t)room ? (size_t)lane->room : room, err);

    if (rc == 0 && c->got.n > before)
        rc = claim_picked(c, before, err);
    if (rc < 0)
        return rc;
    *took = c->got.n - before;
    stmt = sql_use(c->st, SQL_SERVE_LANE);
    sql_int(stmt, 1, lane->key);
    sql_int(stmt, 2, (int64_t)*took);
    sql_int(stmt, 3, (int64_t)(*took > 0 ? *took : 1) * TIME_PER_TASK / lane->weight);
    return sql_run(stmt, "serve a lane", err);
}

static int claim_class(struct claiming *c, enum sql_id how, int64_t class_id, rv_err **err)
{
    size_t took = 1, n_passed = 0;
    int rc = 0;

    while (c->got.n < (how == SQL_ANY_LANE ? 1 : c->want->n) && took > 0) {
        struct lane lane;
        size_t n_denied = c->got.n_denied;
        rc = next_lane(c, how, class_id, &lane, err);
        if (rc == 1)
            rc = serve(c, &lane, &took, err);
        else
            took = 0;
        if (rc < 0)
            break;
        if (rc == 0 && took == 0 && c->got.n_denied > n_denied && ++n_passed < MAX_PASSED)
            took = 1; /* the next lane may be another tenant's */
    }
    return rc;
}

/* First the lanes that no other claim works on. If they give nothing, wait for one of the others, and only for one: two
 * claims that hold a lane and wait for another could wait for each other. */
static int claim_tasks(struct claiming *c, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < c->want->n_classes && c->got.n < c->want->n && rc >= 0; i++)
        rc = claim_class(c, SQL_FREE_LANE, c->want->classes[i], err);
    for (size_t i = 0; i < c->want->n_classes && c->got.n == 0 && rc >= 0; i++)
        rc = claim_class(c, SQL_ANY_LANE, c->want->classes[i], err);
    return rc;
}

static int check_claim(const struct rv_claim_tasks *claim, rv_err **err)
{
    int rc;

    if (!claim)
        return RV_FAIL(err, RV_E_INVALID, "nothing to claim is given");
    rc = store_check_id("worker", claim->worker, err);
    if (rc == 0)
        rc = store_check_new_id("worker", claim->worker, err);
    if (rc == 0)
        rc = check_classes(claim->classes, claim->n_classes, err);
    if (rc == 0)
        rc = store_task_check_max(claim->n > INT32_MAX ? INT32_MAX : (int64_t)claim->n, err);
    if (rc == 0)
        rc = store_check_time("the time", claim->now_us, err);
    if (rc == 0 && (claim->until_us <= claim->now_us || claim->until_us > RV_STORE_MAX_NUMBER))
        rc = RV_FAIL(err, RV_E_INVALID, "worker \"%s\": the lease would end before it begins", claim->worker);
    return rc;
}

static int make_room(struct claiming *c, rv_err **err)
{
    c->got.rows = calloc(c->want->n, sizeof *c->got.rows);
    c->steps = calloc(c->want->n, sizeof *c->steps);
    return c->got.rows && c->steps ? 0 : RV_FAIL(err, RV_E_NOMEM, "claim %zu tasks", c->want->n);
}

/* Drops the result of an attempt that is repeated. */
static void forget(struct claiming *c)
{
    while (c->got.n > 0)
        rv_task_row_fini(&c->got.rows[--c->got.n]);
    rv_err_free(c->got.denied);
    c->got.denied = NULL;
    c->got.n_denied = 0;
}

int rv_store_claim_tasks(rv_store *s, const struct rv_claim_tasks *claim, struct rv_claimed *out, rv_err **err)
{
    struct claiming c = {.st = s->sql, .want = claim};
    int rc = check_claim(claim, err);

    if (rc == 0)
        rc = make_room(&c, err);
    rc = store_enter_write(s, rc, "claim tasks", err);
    if (rc == 0) {
        do {
            forget(&c);
            sql_may_be_lost(s->sql); /* then the tasks are pending, and are claimed again */
            rc = claim_tasks(&c, err);
        } while (store_repeats(s, &rc, err));
        rc = store_leave_write(s, rc, err);
    }
    free(c.steps);
    if (rc == 0)
        *out = c.got;
    else
        rv_claimed_fini(&c.got);
    return rc;
}

/* --- Keeping --- */

static int check_beat(const char *worker, int64_t now_us, int64_t until_us, rv_err **err)
{
    int rc = store_check_id("worker", worker, err);

    if (rc == 0)
        rc = store_check_time("the time", now_us, err);
    if (rc == 0 && (until_us <= now_us || until_us > RV_STORE_MAX_NUMBER))
        rc = RV_FAIL(err, RV_E_INVALID, "worker \"%s\": the lease would end before it begins", worker);
    return rc;
}

int rv_store_heartbeat(rv_store *s, const char *worker, int64_t now_us, int64_t until_us, int64_t *n, rv_err **err)
{
    int64_t held = 0;
    int rc = store_enter_write(s, check_beat(worker, now_us, until_us, err), "heartbeat", err);

    if (rc != 0)
        return rc;
    do {
        sql_may_be_lost(s->sql); /* the next one comes before the lease ends */
        rv_sql_stmt *stmt = sql_use(s->sql, SQL_HEARTBEAT);
        store_sql_text(stmt, 1, worker);
        sql_int(stmt, 2, now_us);
        sql_int(stmt, 3, until_us);
        rc = sql_run_counted(stmt, &held, "renew leases of tasks", err);
    } while (store_repeats(s, &rc, err));
    rc = store_leave_write(s, rc, err);
    if (rc == 0 && n)
        *n = held;
    return rc;
}

static int list_held(struct sql_store *st, const char *worker, rv_each_lease *each, void *ctx, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_HELD);
    bool lacked = false;
    int rc;

    store_sql_text(stmt, 1, worker);
    while ((rc = sql_step(stmt, "list tasks that are held", err)) == 1) {
        struct rv_task_lease lease = {sql_text_at(stmt, 0, &lacked), worker, sql_int_at(stmt, 1)};
        rc = lacked ? RV_FAIL(err, RV_E_NOMEM, "list tasks that are held")
                    : each(ctx, &lease, sql_int_at(stmt, 2) != 0, err);
        if (rc != 0)
            break;
    }
    sql_done(stmt);
    return rc;
}

int rv_store_list_held(rv_store *s, const char *worker,
                       int (*each)(void *self, const struct rv_task_lease *lease, bool cancel_requested, rv_err **err),
                       void *self, rv_err **err)
{
    int rc = store_enter_read(s, store_check_id("worker", worker, err), "list held", err);

    return rc != 0 ? rc : store_leave_read(s, list_held(s->sql, worker, each, self, err), err);
}
