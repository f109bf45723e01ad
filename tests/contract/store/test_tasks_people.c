/* The queue as people and programs see it: keys, lists, cancelling, retrying, scopes, groups, deletion. */
#include "tests/contract/store/tasks.h"

static struct rv_new_task keyed(const char *id, const char *key)
{
    struct rv_new_task task = new_task(id);

    task.key = key;
    return task;
}

/* Enqueue it; the task of that id must be there already. */
static void is_there(struct world *w, const struct rv_new_task *task, const char *id)
{
    struct rv_enqueued got;

    OK(rv_store_enqueue(w->s, task, &got, &w->err));
    ck_assert_str_eq(got.id, id);
    ck_assert(!got.is_new);
}

/* Proves p8-data.17/key: A key is unique while its task waits or is worked on */
START_TEST(a_key_is_unique_until_its_task_is_over)
{ /* p8-data 17 ENGINE: idempotency key (task_type, user, key) unique while pending or processing */
    struct world world, *w = &world;
    struct rv_new_task first = keyed("a", "k"), again = keyed("b", "k"), other;

    world_open(w, _i);
    enqueue_as(w, &first);
    is_there(w, &again, "a");
    first.id = "b";
    FAILS(RV_E_NOT_FOUND, rv_store_get_task(w->s, &operator_scope, "b", NULL, &w->err));
    for (int i = 0; i < 3; i++) { /* another user, type or tenant has keys of its own */
        static const char *const ids[] = {"user", "type", "tenant"};
        other = keyed(ids[i], "k");
        other.user = i == 0 ? "v" : "u";
        other.type = i == 1 ? "dreaming" : "news";
        other.tenant = i == 2 ? "x" : NULL;
        enqueue_as(w, &other);
    }
    CLAIM("A", 1, 0, "a");
    is_there(w, &again, "a");
    OK(fail_at(w, HELD("a", "A", 1), 0));
    TASK("a", "waiting 1 1/3");
    is_there(w, &again, "a");
    OK(rv_store_cancel_task(w->s, &operator_scope, "a", T0, NULL, &w->err));
    enqueue_as(w, &again);
    SAYS(RV_E_EXISTS, "task \"b\"", rv_store_retry_task(w->s, &operator_scope, "a", T0, &w->err));
    OK(rv_store_cancel_task(w->s, &operator_scope, "b", T0, NULL, &w->err));
    OK(rv_store_retry_task(w->s, &operator_scope, "a", T0, &w->err));
    TASK("a", "pending 1 0/3");
    world_close(w);
}
END_TEST

START_TEST(an_id_is_unique)
{
    struct world world, *w = &world;
    struct rv_new_task task = new_task("t");

    world_open(w, _i);
    enqueue(w, "t");
    task.needs = (const char *const[]){"gpu"};
    task.n_needs = 1;
    SAYS(RV_E_EXISTS, "\"t\"", rv_store_enqueue(w->s, &task, NULL, &w->err));
    ck_assert_uint_eq(all_classes(w, (int64_t[4]){0}, 4), 1); /* nothing is left behind */
    world_close(w);
}
END_TEST

START_TEST(a_task_without_a_worker_is_cancelled_at_once)
{
    struct world world, *w = &world;
    struct rv_new_task later = new_task("later");
    enum rv_task_status now_is = RV_TASK_PENDING;

    world_open(w, _i);
    enqueue(w, "t");
    later.scheduled_us = AT(60);
    enqueue_as(w, &later);
    OK(rv_store_cancel_task(w->s, &operator_scope, "t", AT(1), &now_is, &w->err));
    ck_assert_int_eq(now_is, RV_TASK_CANCELLED);
    OK(rv_store_cancel_task(w->s, &operator_scope, "later", AT(1), NULL, &w->err));
    EVENTS("t", "cancelled");
    TASK("later", "cancelled 0 0/3");
    CLAIM("A", 9, 100, "");
    ck_assert_int_eq(promote_at(w, 100), 0);
    SAYS(RV_E_STATE, "cancelled", rv_store_cancel_task(w->s, &operator_scope, "t", AT(1), NULL, &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_cancel_task(w->s, &operator_scope, "never", AT(1), NULL, &w->err));
    world_close(w);
}
END_TEST

/* Whatever its worker does with it, or when the worker dies: it becomes cancelled. */
static int end_attempt(struct world *w, const struct rv_task_lease *lease, int how)
{
    switch (how) {
    case 0:
        return rv_store_stop_task(w->s, lease, AT(2), &w->err);
    case 1:
        return fail_at(w, lease, 2);
    case 2:
        return rv_store_release_task(w->s, lease, AT(2), &w->err);
    case 3:
        return rv_store_postpone_task(w->s, lease, AT(99), "quota", AT(2), &w->err);
    default:
        ck_assert_int_eq(recover_at(w, LEASE + 9).n_cancelled, 1);
        return 0;
    }
}

START_TEST(the_worker_of_a_task_is_asked_to_stop)
{
    static const char *const ids[] = {"stop", "fail", "release", "postpone", "die"};
    struct world world, *w = &world;
    enum rv_task_status now_is = RV_TASK_PENDING;

    world_open(w, _i);
    for (int how = 0; how < (int)RV_COUNT(ids); how++) {
        struct rv_task_lease lease = {ids[how], "A", 1};
        enqueue(w, lease.id);
        CLAIM("A", 1, 1, lease.id);
        FAILS(RV_E_STATE, rv_store_stop_task(w->s, &lease, AT(2), &w->err)); /* it was not asked */
        OK(rv_store_cancel_task(w->s, &operator_scope, lease.id, AT(1), &now_is, &w->err));
        ck_assert_int_eq(now_is, RV_TASK_PROCESSING);
        OK(rv_store_cancel_task(w->s, &operator_scope, lease.id, AT(1), NULL, &w->err)); /* says nothing new */
        TASK(lease.id, "processing 1 0/3 A cancel");
        OK(end_attempt(w, &lease, how));
        TASK(lease.id, "cancelled 1 0/3");
        EVENTS(lease.id, "claimed cancel_requested cancelled");
    }
    enqueue(w, "done"); /* it was faster */
    CLAIM("A", 1, 1, "done");
    OK(rv_store_cancel_task(w->s, &operator_scope, "done", AT(1), NULL, &w->err));
    OK(rv_store_complete_task(w->s, HELD("done", "A", 1), RV_STR_LIT("{}"), AT(2), &w->err));
    TASK("done", "completed 1 0/3");
    world_close(w);
}
END_TEST

/* Proves p8-data.17/dead: Tasks that have failed are listed and can be tried again */
START_TEST(a_dead_letter_can_be_retried)
{
    struct world world, *w = &world;
    struct rv_new_task task = new_task("t");
    struct rv_task_row row;

    world_open(w, _i);
    task.max_retries = 1;
    enqueue_as(w, &task);
    CLAIM("A", 1, 0, "t");
    FAILS(RV_E_STATE, rv_store_retry_task(w->s, &operator_scope, "t", AT(5), &w->err));
    OK(fail_at(w, HELD("t", "A", 1), 0));
    FAILS(RV_E_STATE, rv_store_retry_task(w->s, &operator_scope, "t", AT(5), &w->err));
    ck_assert_int_eq(promote_at(w, 30), 1);
    CLAIM("A", 1, 30, "t");
    OK(fail_at(w, HELD("t", "A", 2), 30));
    TASK("t", "failed 2 1/1");
    OK(rv_store_retry_task(w->s, &operator_scope, "t", AT(50), &w->err));
    OK(rv_store_get_task(w->s, &operator_scope, "t", &row, &w->err));
    ck_assert_str_eq(row.error, "broke"); /* until it is known better */
    ck_assert_int_eq(row.scheduled_us, AT(50));
    rv_task_row_fini(&row);
    TASK("t", "pending 2 0/1");
    CLAIM("B", 1, 50, "t");
    SAYS(RV_E_STATE, "lost_lease", fail_at(w, HELD("t", "A", 2), 50)); /* attempts go on counting */
    OK(rv_store_complete_task(w->s, HELD("t", "B", 3), RV_STR_LIT("{}"), AT(51), &w->err));
    FAILS(RV_E_STATE, rv_store_retry_task(w->s, &operator_scope, "t", AT(52), &w->err));
    EVENTS("t", "claimed retrying(1/1 +30) claimed failed retried claimed completed");
    world_close(w);
}
END_TEST

START_TEST(two_tenants_see_nothing_of_each_other)
{
    const struct rv_store_scope x = {"x", NULL}, y = {"y", NULL}, own = {"x", "u"}, others = {"x", "v"},
                                nobodys = {"x", ""};
    struct world world, *w = &world;
    struct rv_new_task task = keyed("t", "k");
    struct rv_task_row row;
    struct seen seen;

    world_open(w, _i);
    task.tenant = "x";
    enqueue_as(w, &task);
    LIST(&x, NULL, "t");
    LIST(&own, NULL, "t");
    for (int i = 0; i < 4; i++) {
        const struct rv_store_scope *scope =
            (const struct rv_store_scope *const[]){&y, &others, &nobodys, &operator_scope}[i];
        LIST(scope, NULL, "");
        LIST(scope, (&(struct rv_task_filter){.key = "k"}), "");
        FAILS(RV_E_NOT_FOUND, rv_store_get_task(w->s, scope, "t", &row, &w->err));
        FAILS(RV_E_NOT_FOUND, rv_store_cancel_task(w->s, scope, "t", T0, NULL, &w->err));
        FAILS(RV_E_NOT_FOUND, rv_store_retry_task(w->s, scope, "t", T0, &w->err));
        seen = SEEN_INIT;
        FAILS(RV_E_NOT_FOUND, rv_store_list_task_events(w->s, scope, "t", NULL, &seen, &w->err));
        rv_buf_fini(&seen.text);
    }
    task = keyed("of-y", "k");
    task.tenant = "y";
    enqueue_as(w, &task);
    LIST(&x, NULL, "t");
    LIST(&y, NULL, "of-y");
    world_close(w);
}
END_TEST

START_TEST(lists_filter)
{
    struct world world, *w = &world;

    world_open(w, _i);
    for (size_t i = 0; i < 5; i++) {
        static const char *const ids[] = {"aa", "ab", "ba", "bb", "bc"};
        struct rv_new_task task = keyed(ids[i], i == 2 ? "k" : NULL);
        task.now_us = AT((int64_t)i / 2); /* some are of the same moment */
        task.type = i == 4 ? "dreaming" : "news";
        task.scheduled_us = i == 3 ? AT(60) : 0;
        enqueue_as(w, &task);
    }
    CLAIM("A", 1, 5, "aa");
    OK(rv_store_cancel_task(w->s, &operator_scope, "ab", AT(5), NULL, &w->err));
    LIST(&operator_scope, NULL, "bc bb ba ab aa");
    LIST(&operator_scope, (&(struct rv_task_filter){.oldest_first = true, .limit = 3}), "aa ab ba");
    LIST(&operator_scope, (&(struct rv_task_filter){.type = "dreaming"}), "bc");
    LIST(&operator_scope, (&(struct rv_task_filter){.key = "k"}), "ba");
    LIST(&operator_scope, (&(struct rv_task_filter){.worker = "A"}), "aa");
    LIST(&operator_scope, (&(struct rv_task_filter){.id_prefix = "b"}), "bc bb ba");
    LIST(&operator_scope,
         (&(struct rv_task_filter){.statuses = 1u << RV_TASK_WAITING | 1u << RV_TASK_CANCELLED, .id_prefix = "b"}),
         "bb");
    LIST(&operator_scope, (&(struct rv_task_filter){.statuses = 1u << RV_TASK_CANCELLED}), "ab");
    LIST(&operator_scope, (&(struct rv_task_filter){.statuses = 1u << RV_TASK_PENDING}), "bc ba");
    LIST(&operator_scope, (&(struct rv_task_filter){.statuses = 1u << RV_TASK_PROCESSING}), "aa");
    LIST(&operator_scope, (&(struct rv_task_filter){.statuses = 1u << RV_TASK_COMPLETED | 1u << RV_TASK_FAILED}), "");
    world_close(w);
}
END_TEST

START_TEST(a_task_and_its_run_are_one_transaction)
{
    struct world world, *w = &world;
    struct rv_store_new_run run;

    world_open(w, _i);
    run = world_run(w, "r1");
    for (int i = 0; i < 2; i++) {
        OK(rv_store_begin(w->s, &w->err));
        OK(rv_store_create_run(w->s, &run, &w->err));
        enqueue(w, "t");
        FAILS(RV_E_EXISTS, rv_store_enqueue(w->s, &(struct rv_new_task){.id = "t", .type = "x", .now_us = T0}, NULL,
                                            &w->err)); /* a refusal leaves the others as they were */
        if (i == 0)
            rv_store_rollback(w->s);
        else
            OK(rv_store_commit(w->s, &w->err));
        LIST(&operator_scope, NULL, i == 0 ? "" : "t");
    }
    RECORDS("r1", "1:one");
    CLAIM("A", 9, 0, "t");
    world_close(w);
}
END_TEST

/* With these settings PostgreSQL asks for what an IN lists once for each row, as it may at any time. */
#define PLAIN_PLANS                                                                                                    \
    "-c enable_hashjoin=off -c enable_mergejoin=off -c enable_hashagg=off"                                             \
    " -c enable_sort=off -c enable_material=off"

START_TEST(what_is_over_is_deleted_by_age)
{
    struct world world, *w = &world;
    int64_t n = -1;

    setenv("PGOPTIONS", PLAIN_PLANS, 1);
    world_open(w, _i);
    unsetenv("PGOPTIONS");
    for (const char *const *id = (const char *const[]){"a", "b", "c", "d", "e", NULL}; *id; id++)
        enqueue(w, *id);
    CLAIM("A", 4, 0, "a b c d");
    OK(rv_store_complete_task(w->s, HELD("a", "A", 1), RV_STR_LIT("{}"), AT(1), &w->err));
    OK(rv_store_fail_task(w->s, HELD("b", "A", 1),
                          &(struct rv_task_failure){.error = "x", .is_final = true, .now_us = AT(2)}, NULL, &w->err));
    OK(rv_store_complete_task(w->s, HELD("c", "A", 1), RV_STR_LIT("{}"), AT(3), &w->err));
    OK(rv_store_prune_tasks(w->s, AT(1), 9, &n, &w->err));
    ck_assert_int_eq(n, 0);
    OK(rv_store_prune_tasks(w->s, AT(3), 1, &n, &w->err));
    ck_assert_int_eq(n, 1);
    LIST(&operator_scope, NULL, "e d c b");
    OK(rv_store_prune_tasks(w->s, AT(1000), 9, &n, &w->err));
    ck_assert_int_eq(n, 2);
    LIST(&operator_scope, NULL, "e d"); /* what is under way stays, however old */
    world_close(w);
}
END_TEST

Suite *tasks_people_suite(void)
{
    Suite *suite = suite_create("tasks_people");
    TCase *tc = tcase_create("tasks_people");

    ADD(tc, a_key_is_unique_until_its_task_is_over);
    ADD(tc, an_id_is_unique);
    ADD(tc, a_task_without_a_worker_is_cancelled_at_once);
    ADD(tc, the_worker_of_a_task_is_asked_to_stop);
    ADD(tc, a_dead_letter_can_be_retried);
    ADD(tc, two_tenants_see_nothing_of_each_other);
    ADD(tc, lists_filter);
    ADD(tc, a_task_and_its_run_are_one_transaction);
    ADD(tc, what_is_over_is_deleted_by_age);
    suite_add_tcase(suite, tc);
    return suite;
}
