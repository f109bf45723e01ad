/* Hearing of work: what another handle commits is heard of if it is work, and nothing else is. A store
 * that cannot tell says so, and never hears. */
#include <poll.h>

#include "tests/contract/store/tasks.h"

#define SILENT_MS 20     /* nothing comes; what came late would only make the test miss a fault */
#define HANG_MS   600000 /* only what is broken takes so long */

struct ear {
    struct world *w;
    rv_store *s; /* another handle, which listens */
};

/* -1: the store cannot tell. */
static int fd_of(struct ear *e)
{
    struct world *w = e->w;
    int fd = -2;

    OK(rv_store_listen(e->s, &fd, &w->err));
    ck_assert_int_ge(fd, -1);
    return fd;
}

static bool heard(struct ear *e)
{
    struct world *w = e->w;
    bool is = false;

    OK(rv_store_was_notified(e->s, &is, &w->err));
    return is;
}

static bool hears_within(struct ear *e, int ms)
{
    struct pollfd p = {.fd = fd_of(e), .events = POLLIN};

    ck_assert_int_ge(p.fd, 0);
    return poll(&p, 1, ms) == 1 && heard(e);
}

/* It begins with what it may have missed before. */
static bool begin(struct ear *e, struct world *w)
{
    *e = (struct ear){w, world_other(w)};
    bool can = fd_of(e) >= 0;
    ck_assert_int_eq(heard(e), can);
    ck_assert(!heard(e));
    return can;
}

static int add(struct world *w, const char *id, const char *key, int64_t due)
{
    struct rv_new_task task = new_task(id);

    task.key = key;
    task.scheduled_us = due;
    return rv_store_enqueue(w->s, &task, NULL, &w->err);
}

/* --- What is told --- */

static int add_one(struct world *w)
{
    return add(w, "one", NULL, 0);
}
static int add_later(struct world *w)
{
    return add(w, "later", NULL, AT(5));
}
static int add_in_group(struct world *w)
{
    OK(rv_store_begin(w->s, &w->err));
    for (int i = 0; i < 5; i++) {
        char id[20];
        snprintf(id, sizeof id, "group%d", i);
        OK(add(w, id, NULL, 0));
    }
    return rv_store_commit(w->s, &w->err);
}
static int cancel_held(struct world *w)
{
    return rv_store_cancel_task(w->s, &operator_scope, "held", AT(1), NULL, &w->err);
}
static int cancel_run(struct world *w)
{
    return rv_store_request_cancel(w->s, &operator_scope, "r1", T0 + 1, &w->err);
}
static int retry(struct world *w)
{
    return rv_store_retry_task(w->s, &operator_scope, "failed", AT(1), &w->err);
}
static int give_back(struct world *w)
{
    return rv_store_release_task(w->s, HELD("held", "W", 1), AT(1), &w->err);
}
static int promote(struct world *w)
{
    return rv_store_promote_tasks(w->s, AT(100), 10, NULL, &w->err);
}
static int recover(struct world *w)
{
    return rv_store_recover_tasks(w->s, AT(2 * LEASE), 10, NULL, &w->err);
}

/* --- What is not --- */

static int step(struct world *w)
{
    return append(w, "r1", 1, 2, "step", NULL);
}
static int renew(struct world *w)
{
    return rv_store_renew(w->s, "A", T0 + 300, &w->err);
}
static int beat(struct world *w)
{
    return rv_store_heartbeat(w->s, "W", AT(1), AT(1 + LEASE), NULL, &w->err);
}
static int complete(struct world *w)
{
    return rv_store_complete_task(w->s, HELD("held", "W", 1), RV_STR_LIT("{}"), AT(1), &w->err);
}
static int take_next(struct world *w)
{
    CLAIM("W", 1, 1, "keyed");
    return 0;
}
static int cancel_waiting(struct world *w)
{
    return rv_store_cancel_task(w->s, &operator_scope, "due", AT(1), NULL, &w->err);
}
static int add_same(struct world *w)
{
    return add(w, "again", "the key", 0);
}
static int give_up(struct world *w)
{
    OK(rv_store_begin(w->s, &w->err));
    OK(add(w, "never", NULL, 0));
    rv_store_rollback(w->s);
    return 0;
}

static const struct {
    const char *name;
    int (*write)(struct world *w);
    bool is_told;
} writes[] = {
    {"a task is added", add_one, true},
    {"a task is added that is due later", add_later, true},
    {"a group of tasks is added", add_in_group, true},
    {"a task that is processing is to be cancelled", cancel_held, true},
    {"a run is to be cancelled", cancel_run, true},
    {"a task is retried", retry, true},
    {"a task is handed back", give_back, true},
    {"a task is due", promote, true},
    {"a lease ended", recover, true},
    {"a step of a run", step, false},
    {"a lease of a run is renewed", renew, false},
    {"a heartbeat", beat, false},
    {"a task is completed", complete, false},
    {"a task is claimed", take_next, false},
    {"a task that no worker holds is cancelled", cancel_waiting, false},
    {"a task that is there already", add_same, false},
    {"a group that is rolled back", give_up, false},
};

/* Task `held` of worker W, `failed`, `due` in 50 s, `keyed` with a key, and the run r1. */
static void furnish(struct world *w)
{
    make_run(w, "r1");
    enqueue(w, "failed");
    CLAIM("W", 1, 0, "failed");
    OK(rv_store_fail_task(w->s, HELD("failed", "W", 1),
                          &(struct rv_task_failure){.error = "broke", .is_final = true, .now_us = T0}, NULL, &w->err));
    enqueue(w, "held");
    CLAIM("W", 1, 0, "held");
    OK(add(w, "due", NULL, AT(50)));
    OK(add(w, "keyed", "the key", 0));
}

START_TEST(work_is_told_and_nothing_else)
{
    for (size_t i = 0; i < RV_COUNT(writes); i++) {
        struct world world, *w = &world;
        struct ear e;
        world_open(w, _i);
        if (!w->impl->is_shared) {
            world_close(w);
            return;
        }
        furnish(w);
        bool can = begin(&e, w);
        OK(writes[i].write(w));
        if (can)
            ck_assert_msg(hears_within(&e, writes[i].is_told ? HANG_MS : SILENT_MS) == writes[i].is_told, "%s: %s",
                          writes[i].name, writes[i].is_told ? "not heard" : "heard");
        else
            ck_assert(!heard(&e));
        if (can && writes[i].is_told)
            ck_assert(!hears_within(&e, SILENT_MS)); /* once a transaction */
        rv_store_close(e.s);
        world_close(w);
    }
}
END_TEST

/* The handle's own transactions do not hold back what it hears. */
START_TEST(a_handle_hears_while_its_own_group_is_open)
{
    struct world world, *w = &world;
    struct ear e;

    world_open(w, _i);
    if (!w->impl->is_shared || w->impl->scheme) { /* one writer at a time */
        world_close(w);
        return;
    }
    ck_assert(begin(&e, w));
    OK(rv_store_begin(e.s, &w->err));
    enqueue(w, "one");
    ck_assert(hears_within(&e, HANG_MS));
    OK(rv_store_commit(e.s, &w->err));
    rv_store_close(e.s);
    world_close(w);
}
END_TEST

/* Stores of one database are told apart. */
START_TEST(another_store_is_not_heard)
{
    struct world world, *w = &world, there;
    struct ear e;

    world_open(w, _i);
    world_open(&there, _i);
    if (w->impl->is_shared && begin(&e, w)) {
        enqueue(&there, "one");
        ck_assert(!hears_within(&e, SILENT_MS));
        enqueue(w, "one");
        ck_assert(hears_within(&e, HANG_MS));
    }
    if (w->impl->is_shared)
        rv_store_close(e.s);
    world_close(&there);
    world_close(w);
}
END_TEST

Suite *listen_suite(void)
{
    Suite *suite = suite_create("listen");
    TCase *tc = tcase_create("listen");

    ADD(tc, work_is_told_and_nothing_else);
    ADD(tc, a_handle_hears_while_its_own_group_is_open);
    ADD(tc, another_store_is_not_heard);
    suite_add_tcase(suite, tc);
    return suite;
}
