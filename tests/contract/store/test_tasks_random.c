/* p8-data 23.8: several workers do at random what workers, people and time do, and a simple model says what must come
 * of each call: a task is in at most one worker's hands per lease, uses no more than max_retries + 1 attempts, and
 * changes its status only as p8-data 17 allows. */
#include <stdlib.h>

#include "tests/contract/store/tasks.h"

#define TASKS   40
#define WORKERS 3
#define STEPS   1500
#define RUNS    rv_kit_sample(3, 300)
#define TERM    100 /* seconds that a lease lasts here */

struct model_task {
    bool is_there, is_to_cancel;
    enum rv_task_status status;
    int64_t attempt, used, max_retries, due, lease; /* used: attempts that failed or timed out */
    int worker;
};
struct model {
    struct world *w;
    struct rv_rand rand;
    struct rv_rand_state state;
    struct model_task tasks[TASKS];
    int64_t now;
};

static const char *const workers[WORKERS] = {"A", "B", "C"};

static int64_t draw(struct model *m, int64_t n)
{
    return (int64_t)rv_rand_below(m->rand, (uint64_t)n);
}

static const char *id_of(int i)
{
    static char ids[TASKS][8];

    snprintf(ids[i], sizeof ids[i], "t%d", i);
    return ids[i];
}

static void may(struct model_task *t, enum rv_task_status to)
{
    /* Only where a task can go on: nothing follows COMPLETED. */
    static const unsigned allowed[RV_N_TASK] = {
        [RV_TASK_WAITING] = 1u << RV_TASK_PENDING | 1u << RV_TASK_CANCELLED,
        [RV_TASK_PENDING] = 1u << RV_TASK_PROCESSING | 1u << RV_TASK_CANCELLED,
        [RV_TASK_PROCESSING] = 1u << RV_TASK_WAITING | 1u << RV_TASK_PENDING | 1u << RV_TASK_COMPLETED |
                               1u << RV_TASK_FAILED | 1u << RV_TASK_CANCELLED,
        [RV_TASK_FAILED] = 1u << RV_TASK_PENDING,
        [RV_TASK_CANCELLED] = 1u << RV_TASK_PENDING,
    };

    ck_assert_msg(allowed[t->status] & 1u << to, "%s to %s", rv_task_status_text(t->status), rv_task_status_text(to));
    t->status = to;
}

static void add(struct model *m, int i)
{
    struct rv_new_task task = new_task(id_of(i));
    int64_t delay = draw(m, 3) * 20;

    if (m->tasks[i].is_there)
        return;
    task.tenant = draw(m, 2) ? "x" : NULL;
    task.tier = draw(m, 2) ? "large" : NULL;
    task.priority = draw(m, 3);
    task.max_retries = draw(m, 3);
    task.now_us = AT(m->now);
    task.scheduled_us = AT(m->now + delay);
    enqueue_as(m->w, &task);
    m->tasks[i] = (struct model_task){.is_there = true,
                                      .status = delay > 0 ? RV_TASK_WAITING : RV_TASK_PENDING,
                                      .max_retries = task.max_retries,
                                      .due = m->now + delay};
}

static void claim(struct model *m, int worker)
{
    struct world *w = m->w;
    int64_t classes[ALL];
    struct rv_claim_tasks want = {.worker = workers[worker],
                                  .classes = classes,
                                  .n_classes = all_classes(w, classes, ALL),
                                  .n = (size_t)draw(m, 4) + 1,
                                  .now_us = AT(m->now),
                                  .until_us = AT(m->now + TERM)};
    struct rv_claimed got = {0};
    size_t ready = 0;

    for (int i = 0; i < TASKS; i++)
        ready += m->tasks[i].is_there && m->tasks[i].status == RV_TASK_PENDING;
    OK(rv_store_claim_tasks(w->s, &want, &got, &w->err));
    ck_assert_uint_eq(got.n, ready < want.n ? ready : want.n);
    for (size_t i = 0; i < got.n; i++) {
        struct model_task *t = &m->tasks[strtol(got.rows[i].id + 1, NULL, 10)];
        may(t, RV_TASK_PROCESSING); /* no other worker holds it */
        t->attempt++;
        t->worker = worker;
        t->lease = m->now + TERM;
        ck_assert_int_le(t->used, t->max_retries); /* attempts <= max_retries + 1 */
        ck_assert_int_eq(got.rows[i].attempt, t->attempt);
        ck_assert_int_eq(got.rows[i].retry_count, t->used);
    }
    rv_claimed_fini(&got);
}

/* What a worker does at the end of an attempt, if the task is still its own. */
static void after(struct model *m, struct model_task *t, int64_t how)
{
    bool again = t->used < t->max_retries;

    if (t->is_to_cancel && how != 0) {
        may(t, RV_TASK_CANCELLED);
    } else if (how == 0) {
        may(t, RV_TASK_COMPLETED);
    } else if (how == 1) {
        may(t, again ? RV_TASK_WAITING : RV_TASK_FAILED);
        t->due = m->now + (t->used == 0 ? 30 : 120);
        t->used += again;
    } else if (how == 2) {
        may(t, RV_TASK_WAITING);
        t->due = m->now + 50;
    } else {
        may(t, RV_TASK_PENDING);
    }
    t->is_to_cancel = false;
}

static void end(struct model *m, int i, int worker)
{
    struct model_task *t = &m->tasks[i];
    struct world *w = m->w;
    struct rv_task_lease lease = {id_of(i), workers[worker], t->attempt - (draw(m, 4) == 0)};
    bool holds = t->status == RV_TASK_PROCESSING && t->worker == worker && lease.attempt == t->attempt;
    int64_t how = draw(m, 5);
    int rc;

    if (!t->is_there || lease.attempt < 1)
        return;
    if (how == 0)
        rc = rv_store_complete_task(w->s, &lease, RV_STR_LIT("{}"), AT(m->now), &w->err);
    else if (how == 1)
        rc = fail_at(w, &lease, m->now);
    else if (how == 2)
        rc = rv_store_postpone_task(w->s, &lease, AT(m->now + 50), "quota", AT(m->now), &w->err);
    else if (how == 3)
        rc = rv_store_release_task(w->s, &lease, AT(m->now), &w->err);
    else
        rc = rv_store_stop_task(w->s, &lease, AT(m->now), &w->err);
    if (holds && (how != 4 || t->is_to_cancel)) {
        OK(rc);
        after(m, t, how);
    } else {
        FAILS(RV_E_STATE, rc);
    }
}

static void person(struct model *m, int i)
{
    struct model_task *t = &m->tasks[i];
    struct world *w = m->w;
    struct rv_store_scope scope = {NULL, NULL};
    struct rv_task_row row;

    if (!t->is_there)
        return;
    if (rv_store_get_task(w->s, &scope, id_of(i), &row, NULL) < 0)
        scope.tenant = "x";
    else
        rv_task_row_fini(&row);
    if (draw(m, 2)) {
        int rc = rv_store_cancel_task(w->s, &scope, id_of(i), AT(m->now), NULL, &w->err);
        if (rv_task_status_is_final(t->status)) {
            FAILS(RV_E_STATE, rc);
        } else if (t->status == RV_TASK_PROCESSING) {
            t->is_to_cancel = true;
            OK(rc);
        } else {
            may(t, RV_TASK_CANCELLED);
            OK(rc);
        }
    } else {
        int rc = rv_store_retry_task(w->s, &scope, id_of(i), AT(m->now), &w->err);
        if (t->status == RV_TASK_FAILED || t->status == RV_TASK_CANCELLED) {
            may(t, RV_TASK_PENDING);
            t->used = 0;
            OK(rc);
        } else {
            FAILS(RV_E_STATE, rc);
        }
    }
}

static void time_goes_on(struct model *m, int worker)
{
    int64_t n = 0, due = 0, held = 0;
    struct world *w = m->w;
    struct rv_recovered got;

    m->now += draw(m, 30);
    for (int i = 0; i < TASKS; i++) {
        struct model_task *t = &m->tasks[i];
        if (t->is_there && t->status == RV_TASK_WAITING && t->due <= m->now) {
            may(t, RV_TASK_PENDING);
            due++;
        }
    }
    ck_assert_int_eq(promote_at(w, m->now), due);
    OK(rv_store_heartbeat(w->s, workers[worker], AT(m->now), AT(m->now + TERM), &n, &w->err));
    for (int i = 0; i < TASKS; i++) {
        struct model_task *t = &m->tasks[i];
        if (t->is_there && t->status == RV_TASK_PROCESSING && t->worker == worker) {
            t->lease = m->now + TERM;
            held++;
        }
    }
    ck_assert_int_eq(n, held);
    got = recover_at(w, m->now);
    for (int i = 0; i < TASKS; i++) {
        struct model_task *t = &m->tasks[i];
        bool again = t->used < t->max_retries;
        if (!t->is_there || t->status != RV_TASK_PROCESSING || t->lease > m->now)
            continue;
        may(t, t->is_to_cancel ? RV_TASK_CANCELLED : again ? RV_TASK_PENDING : RV_TASK_FAILED);
        got.n_cancelled -= t->status == RV_TASK_CANCELLED;
        got.n_pending -= t->status == RV_TASK_PENDING;
        got.n_failed -= t->status == RV_TASK_FAILED;
        t->used += t->status == RV_TASK_PENDING;
        t->is_to_cancel = false;
    }
    ck_assert(got.n_cancelled == 0 && got.n_pending == 0 && got.n_failed == 0);
}

/* What the store says of each task is what the model says. */
static int compare(void *self, const struct rv_task_row *row, rv_err **err)
{
    struct model *m = self;
    const struct model_task *t = &m->tasks[strtol(row->id + 1, NULL, 10)];

    (void)err;
    ck_assert(t->is_there);
    ck_assert_msg(row->status == t->status, "%s is %s, not %s", row->id, rv_task_status_text(row->status),
                  rv_task_status_text(t->status));
    ck_assert_int_eq(row->attempt, t->attempt);
    ck_assert_int_eq(row->retry_count, t->used);
    ck_assert_int_eq(row->cancel_requested, t->is_to_cancel);
    if (t->status == RV_TASK_PROCESSING)
        ck_assert_str_eq(row->worker, workers[t->worker]);
    if (t->status == RV_TASK_WAITING)
        ck_assert_int_eq(row->scheduled_us, AT(t->due));
    return 0;
}

static void step(struct model *m)
{
    int i = (int)draw(m, TASKS), worker = (int)draw(m, WORKERS);

    switch (draw(m, 8)) {
    case 0:
    case 1:
        add(m, i);
        break;
    case 2:
        claim(m, worker);
        break;
    case 3:
    case 4:
    case 5:
        end(m, i, worker);
        break;
    case 6:
        person(m, i);
        break;
    default:
        time_goes_on(m, worker);
    }
}

/* Proves p8-data.23/8: A task is in one worker's hands for each lease, has one attempt more than retries at most, and
 * changes its state only as the queue says */
START_TEST(random_operations_keep_the_rules_of_the_queue)
{
    struct world world, *w = &world;
    const struct rv_store_scope x = {"x", NULL};

    for (uint64_t seed = 1; seed <= (uint64_t)(store_impls[_i].is_shared ? 1 : RUNS); seed++) {
        struct model m = {.w = w};
        world_open(w, _i);
        m.rand = rv_rand_seeded(&m.state, seed);
        for (int n = 0; n < STEPS; n++) {
            step(&m);
            if (n % (w->impl->is_shared ? 300 : 50) == 0) {
                OK(rv_store_list_tasks(w->s, &operator_scope, NULL, compare, &m, &w->err));
                OK(rv_store_list_tasks(w->s, &x, NULL, compare, &m, &w->err));
                OK(rv_store_check(w->s, &w->err)); /* lanes and events agree with the tasks */
            }
        }
        world_close(w);
    }
}
END_TEST

Suite *tasks_random_suite(void)
{
    Suite *suite = suite_create("tasks_random");
    TCase *tc = tcase_create("tasks_random");

    ADD(tc, random_operations_keep_the_rules_of_the_queue);
    suite_add_tcase(suite, tc);
    return suite;
}
