/* Each allocation of a task's and a schedule's life fails once, SQLite's own included; as fault_sessions.c. */
#include "coreengine/store/store.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#include <check.h>
#include <stdio.h>
#include <unistd.h>

#define T0 INT64_C(1700000000000000)

/* Check's own assertions allocate, so what a scenario finds wrong is kept until the allocator is disarmed. */
static int broken_line;

#define must(holds)                                                                                                    \
    do {                                                                                                               \
        if (!(holds) && broken_line == 0)                                                                              \
            broken_line = __LINE__;                                                                                    \
    } while (0)

static const struct rv_store_scope scope = {NULL, NULL};
static char path[300], empty[300];

static int keep_class(void *self, const struct rv_task_class *c, rv_err **err)
{
    (void)err;
    must(c->n_needs == 2);
    *(int64_t *)self = c->id;
    return 0;
}

static int count_task(void *self, const struct rv_task_row *row, rv_err **err)
{
    (void)err;
    must(row->id && row->type && row->payload.ptr);
    ++*(int64_t *)self;
    return 0;
}

static int count_event(void *self, const struct rv_task_event *e, rv_err **err)
{
    (void)err;
    must(e->kind != NULL);
    ++*(int64_t *)self;
    return 0;
}

static int count_lease(void *self, const struct rv_task_lease *lease, bool cancel_requested, rv_err **err)
{
    (void)err;
    must(lease->id && !cancel_requested);
    ++*(int64_t *)self;
    return 0;
}

static int enqueue_all(rv_store *s, rv_err **err)
{
    static const char *const needs[] = {"gpu", "big"}, *const ids[] = {"a", "b", "c"};
    int rc = rv_store_begin(s, err);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < RV_COUNT(ids) && rc == 0; i++) {
        const struct rv_new_task task = {.id = ids[i],
                                         .type = "run",
                                         .key = ids[i],
                                         .needs = needs,
                                         .n_needs = 2,
                                         .max_retries = RV_UNSET,
                                         .scheduled_us = i == 2 ? T0 + 5 : 0,
                                         .now_us = T0};
        rc = rv_store_enqueue(s, &task, NULL, err);
        if (rc == 0)
            rc = rv_store_enqueue(s, &task, NULL, err); /* is there already */
    }
    return rv_store_end(s, rc, err);
}

static int work(rv_store *s, rv_err **err)
{
    const struct rv_task_failure failure = {.error = "broke", .now_us = T0 + 2};
    struct rv_claimed got = {0};
    int64_t class_id = 0, n = 0;
    int rc = rv_store_list_classes(s, keep_class, &class_id, err);
    const struct rv_claim_tasks claim = {
        .worker = "W", .classes = &class_id, .n_classes = 1, .n = 9, .now_us = T0, .until_us = T0 + 9};

    if (rc == 0)
        rc = rv_store_claim_tasks(s, &claim, &got, err);
    must((rc == 0) == (got.n == 2));
    rv_claimed_fini(&got);
    if (rc == 0)
        rc = rv_store_list_held(s, "W", count_lease, &n, err);
    must(rc < 0 || n == 2);
    if (rc == 0)
        rc = rv_store_fail_task(s, &(struct rv_task_lease){"a", "W", 1}, &failure, NULL, err);
    if (rc == 0)
        rc = rv_store_promote_tasks(s, T0 + 5, 9, &n, err);
    must(rc < 0 || n == 1);
    if (rc == 0)
        rc = rv_store_recover_tasks(s, T0 + 9, 9, NULL, err);
    if (rc == 0)
        rc = rv_store_cancel_task(s, &scope, "b", T0 + 10, NULL, err);
    return rc == 0 ? rv_store_retry_task(s, &scope, "b", T0 + 11, err) : rc;
}

static int look(rv_store *s, rv_err **err)
{
    struct rv_task_row row = {0};
    int64_t n = 0;
    int rc = rv_store_list_tasks(s, &scope, NULL, count_task, &n, err);

    must(rc < 0 || n == 3);
    n = 0;
    if (rc == 0)
        rc = rv_store_list_task_events(s, &scope, "b", count_event, &n, err);
    must(rc < 0 || n == 4);
    if (rc == 0)
        rc = rv_store_get_task(s, &scope, "b", &row, err);
    must((rc == 0) == (row.id != NULL));
    rv_task_row_fini(&row);
    return rc;
}

static int count_due(void *self, const struct rv_due_schedule *due, rv_err **err)
{
    (void)err;
    must(due->id && due->tenant && due->next_us == T0 + 20);
    ++*(int64_t *)self;
    return 0;
}

static int count_firing(void *self, const struct rv_firing *f, rv_err **err)
{
    (void)err;
    must(f->made != NULL);
    ++*(int64_t *)self;
    return 0;
}

static int add_schedule(rv_store *s, rv_err **err)
{
    char hash[RV_STORE_HASH_MAX];
    struct rv_schedule_row row = {.id = "sched_1",
                                  .name = "s",
                                  .expr = "* * * * *",
                                  .zone = "UTC",
                                  .type = "run",
                                  .pipeline = "p",
                                  .max_retries = RV_UNSET,
                                  .created_us = T0,
                                  .next_us = T0 + 20};
    int rc = rv_store_put_blob(s, RV_STR_LIT("bundle"), hash, err);

    row.bundle = hash;
    return rc < 0 ? rc : rv_store_add_schedule(s, &row, err);
}

static int fire_schedule(rv_store *s, rv_err **err)
{
    static const struct rv_new_task task = {.id = "d", .type = "run", .key = "d", .max_retries = 1, .now_us = T0 + 20};
    static const struct rv_fire fire = {.id = "sched_1",
                                        .expected_us = T0 + 20,
                                        .next_us = T0 + 40,
                                        .now = {.planned_us = T0 + 20, .since_us = T0 + 20, .at_us = T0 + 20},
                                        .task = &task};
    int64_t n = 0;
    bool is_mine = false;
    int rc = rv_store_list_due_schedules(s, T0 + 20, 9, count_due, &n, err);

    must(rc < 0 || n == 1);
    if (rc == 0)
        rc = rv_store_fire_schedule(s, &fire, &is_mine, err);
    must((rc == 0) == is_mine);
    if (rc == 0)
        rc = rv_store_postpone_schedule(
            s, "sched_1", &(const struct rv_postponement){.expected_us = T0 + 40, .until_us = T0 + 60, .why = "why"},
            T0 + 21, err);
    return rc;
}

static int schedule(rv_store *s, rv_err **err)
{
    struct rv_schedule_row row = {0};
    int64_t n = 0;
    int rc = add_schedule(s, err);

    if (rc == 0)
        rc = fire_schedule(s, err);
    if (rc == 0)
        rc = rv_store_get_schedule(s, &scope, "s", &row, err);
    must((rc == 0) == (row.own != NULL));
    must(rc < 0 || (row.n_fired == 1 && row.error));
    rv_schedule_row_fini(&row);
    if (rc == 0)
        rc = rv_store_list_firings(s, &scope, &(const struct rv_firing_filter){.word = "s", .limit = 0}, count_firing,
                                   &n, err);
    must(rc < 0 || n == 1);
    return rc == 0 ? rv_store_delete_schedule(s, &scope, "s", err) : rc;
}

static const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};

static int live(void)
{
    rv_store *s = NULL;
    rv_err *err = NULL;
    int rc = rv_store_open(path, &opts, &s, &err);

    if (rc == 0)
        rc = enqueue_all(s, &err);
    if (rc == 0)
        rc = work(s, &err);
    if (rc == 0)
        rc = look(s, &err);
    if (rc == 0)
        rc = schedule(s, &err);
    must((rc < 0) == (err != NULL));
    must(rc == 0 || rv_err_is(err, RV_E_NOMEM));
    if (s) /* the allocation that failed is behind us: lanes and events agree with the tasks */
        must(rc == 0 || rv_store_check(s, NULL) == 0);
    rv_store_close(s);
    rv_err_free(err);
    return rc;
}

static void remove_files(void)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    char name[320];

    for (size_t i = 0; i < RV_COUNT(ends); i++) {
        snprintf(name, sizeof name, "%s%s", path, ends[i]);
        unlink(name);
    }
}

static void make_empty(void)
{
    rv_store *s = NULL;

    ck_assert_int_eq(rv_store_open(empty, &opts, &s, NULL), 0);
    rv_store_close(s);
}

START_TEST(every_allocation_of_a_task_may_fail_once)
{
    char *dir = rv_kit_tmpdir();
    size_t n, n_survived = 0;

    snprintf(path, sizeof path, "%s/store.db", dir);
    snprintf(empty, sizeof empty, "%s/empty.db", dir);
    make_empty();
    rv_kit_copy(empty, path);
    rv_fault_arm(SIZE_MAX);
    ck_assert_int_eq(live(), 0); /* libraries set themselves up at first use */
    rv_fault_disarm();
    const size_t step = rv_kit_step(rv_fault_count() / 200 + 1);
    ck_assert_int_eq(broken_line, 0);
    for (n = rv_kit_first(step);; n += step) {
        int rc;
        remove_files();
        rv_kit_copy(empty, path);
        rv_fault_arm(n);
        rc = live();
        if (!rv_fault_disarm()) {
            ck_assert_int_eq(rc, 0);
            break;
        }
        ck_assert_msg(broken_line == 0, "allocation %zu: broken at line %d", n, broken_line);
        ck_assert_msg(rc == RV_E_NOMEM || rc == 0, "allocation %zu: %s", n, rv_code_text(rc));
        ck_assert_msg(rv_fault_balance() == 0, "allocation %zu: %ld blocks leaked", n, rv_fault_balance());
        n_survived += rc == 0; /* SQLite does without some */
    }
    ck_assert_msg(!rv_fault_works() || (n > 30 && n_survived < n / 10), "%zu allocations, %zu done without", n,
                  n_survived);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault_tasks");
    TCase *tc = tcase_create("allocations");

    tcase_add_test(tc, every_allocation_of_a_task_may_fail_once);
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}
