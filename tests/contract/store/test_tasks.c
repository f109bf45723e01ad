/* The queue: what p8-data 17 says of each transition, and its ENGINE rules. */
#include "tests/contract/store/tasks.h"

START_TEST(a_new_task_is_pending_with_three_retries)
{ /* p8-data 17, columns and "enqueue" */
    struct world world, *w = &world;
    struct rv_task_row row;

    world_open(w, _i);
    enqueue(w, "t");
    OK(rv_store_get_task(w->s, &operator_scope, "t", &row, &w->err));
    ck_assert_str_eq(row.tenant, "default");
    ck_assert_str_eq(row.user, "u");
    ck_assert_str_eq(row.type, "news");
    ck_assert_str_eq(row.tier, "small");
    ck_assert_ptr_null(row.key);
    ck_assert_ptr_null(row.error);
    ck_assert_ptr_null(row.worker);
    ck_assert_ptr_null(row.result.ptr);
    ck_assert(rv_str_is(row.payload, "{\"n\":1}")); /* as it was given: not encoded twice */
    ck_assert_int_eq(row.status, RV_TASK_PENDING);
    ck_assert_int_eq(row.priority, 0);
    ck_assert_int_eq(row.max_retries, 3);
    ck_assert_int_eq(row.created_us, T0);
    ck_assert_int_eq(row.scheduled_us, T0);
    ck_assert_int_eq(row.started_us + row.completed_us + row.claimed_us + row.lease_until_us, 0);
    rv_task_row_fini(&row);
    EVENTS("t", "");
    world_close(w);
}
END_TEST

/* Proves p8-data.17/claim: A claim takes due tasks by priority, then by when they were due */
START_TEST(a_claim_takes_by_priority_then_by_when_it_was_due_then_by_age)
{ /* p8-data 17 "claim"; ENGINE: rows in claim order */
    static const struct {
        const char *id;
        int64_t priority, second;
    } tasks[] = {{"late", 0, 3}, {"first", 0, 1}, {"low", -1, 0}, {"also", 0, 3}, {"high", 10, 4}};
    struct world world, *w = &world;

    world_open(w, _i);
    for (size_t i = 0; i < RV_COUNT(tasks); i++) {
        struct rv_new_task task = new_task(tasks[i].id);
        task.priority = tasks[i].priority;
        task.scheduled_us = AT(tasks[i].second);
        task.now_us = AT(5);
        enqueue_as(w, &task);
    }
    CLAIM("A", 1, 5, "high");
    CLAIM("A", 3, 5, "first late also");
    CLAIM("A", 3, 5, "low");
    CLAIM("A", 3, 5, "");
    TASK("low", "processing 1 0/3 A");
    EVENTS("low", "claimed");
    world_close(w);
}
END_TEST

START_TEST(a_task_that_is_not_due_waits)
{ /* p8-data 17 "claim": scheduled_at <= now */
    struct world world, *w = &world;
    struct rv_new_task task = new_task("t");
    struct rv_next_tasks next;
    int64_t class_id = 0;

    world_open(w, _i);
    task.scheduled_us = AT(60);
    enqueue_as(w, &task);
    TASK("t", "waiting 0 0/3");
    ck_assert_int_eq(promote_at(w, 59), 0);
    CLAIM("A", 1, 59, "");
    ck_assert_uint_eq(all_classes(w, &class_id, 1), 1);
    OK(rv_store_next_tasks(w->s, &class_id, 1, &next, &w->err));
    ck_assert_int_eq(next.due_us, AT(60));
    ck_assert(!next.ready);
    ck_assert_int_eq(promote_at(w, 60), 1);
    ck_assert_int_eq(promote_at(w, 60), 0);
    TASK("t", "pending 0 0/3");
    OK(rv_store_next_tasks(w->s, &class_id, 1, &next, &w->err));
    ck_assert_int_eq(next.due_us, 0);
    ck_assert_int_eq(next.n_classes, 1);
    ck_assert(next.ready);
    OK(rv_store_next_tasks(w->s, NULL, 0, &next, &w->err));
    ck_assert(!next.ready);
    CLAIM("A", 1, 60, "t");
    OK(rv_store_next_tasks(w->s, &class_id, 1, &next, &w->err));
    ck_assert_int_eq(next.stale_us, AT(60 + LEASE));
    ck_assert(!next.ready);
    world_close(w);
}
END_TEST

START_TEST(a_promotion_takes_what_was_due_first)
{
    struct world world, *w = &world;
    int64_t n = 0;

    world_open(w, _i);
    for (size_t i = 0; i < 3; i++) {
        static const int64_t due[] = {30, 10, 20};
        struct rv_new_task task = new_task((const char *[]){"c", "a", "b"}[i]);
        task.tenant = (const char *[]){"x", "default", "x"}[i];
        task.scheduled_us = AT(due[i]);
        enqueue_as(w, &task);
    }
    OK(rv_store_promote_tasks(w->s, AT(40), 2, &n, &w->err));
    ck_assert_int_eq(n, 2);
    CLAIM("A", 9, 40, "b a"); /* lanes that were served alike: the older one first */
    OK(rv_store_promote_tasks(w->s, AT(40), 2, NULL, &w->err));
    CLAIM("A", 9, 40, "c");
    world_close(w);
}
END_TEST

START_TEST(a_completed_task_keeps_its_result)
{ /* p8-data 17 "complete" */
    struct world world, *w = &world;
    struct rv_task_row row;

    world_open(w, _i);
    enqueue(w, "t");
    enqueue(w, "quiet");
    CLAIM("A", 2, 1, "t quiet");
    OK(rv_store_complete_task(w->s, HELD("t", "A", 1), RV_STR_LIT("{\"ok\":true}"), AT(2), &w->err));
    OK(rv_store_complete_task(w->s, HELD("quiet", "A", 1), (rv_str){NULL, 0}, AT(2), &w->err));
    TASK("t", "completed 1 0/3");
    EVENTS("t", "claimed completed");
    OK(rv_store_get_task(w->s, &operator_scope, "t", &row, &w->err));
    ck_assert(rv_str_is(row.result, "{\"ok\":true}"));
    ck_assert_int_eq(row.completed_us, AT(2));
    ck_assert_int_eq(row.started_us, AT(1));
    rv_task_row_fini(&row);
    OK(rv_store_get_task(w->s, &operator_scope, "quiet", &row, &w->err));
    ck_assert_ptr_null(row.result.ptr);
    rv_task_row_fini(&row);
    CLAIM("A", 9, 3, "");
    world_close(w);
}
END_TEST

/* Proves p8-data.17/fail: A failed attempt is repeated after 30 seconds, 2 and 8 minutes, then the task has failed */
START_TEST(a_failed_attempt_is_repeated_after_30_s_2_min_and_8_min)
{ /* p8-data 17 "fail": four attempts in all, then a dead letter */
    static const int64_t delays[] = {30, 120, 480};
    struct world world, *w = &world;
    int64_t now = 0;

    world_open(w, _i);
    enqueue(w, "t");
    for (int64_t i = 0; i < 3; i++) {
        CLAIM("A", 1, now, "t");
        OK(fail_at(w, HELD("t", "A", i + 1), now));
        ck_assert_int_eq(promote_at(w, now + delays[i] - 1), 0);
        now += delays[i];
        ck_assert_int_eq(promote_at(w, now), 1);
    }
    TASK("t", "pending 3 3/3");
    CLAIM("A", 1, now, "t");
    OK(fail_at(w, HELD("t", "A", 4), now));
    TASK("t", "failed 4 3/3");
    EVENTS("t", "claimed retrying(1/3 +30) claimed retrying(2/3 +150) claimed retrying(3/3 +630) claimed failed");
    LIST(&operator_scope, (&(struct rv_task_filter){.statuses = 1u << RV_TASK_FAILED}), "t");
    ck_assert_int_eq(promote_at(w, now + 100000), 0);
    world_close(w);
}
END_TEST

START_TEST(the_back_off_ends_at_a_day_and_jitter_is_a_tenth)
{ /* p8-data 17 ENGINE: jitter +-10 % on back-off */
    struct world world, *w = &world;
    struct rv_new_task task = new_task("t");
    struct rv_task_failure failure = {.error = "x", .now_us = T0};
    struct rv_task_row row;
    enum rv_task_status now_is = RV_TASK_FAILED;

    world_open(w, _i);
    task.max_retries = 9;
    enqueue_as(w, &task);
    for (int64_t i = 1; i <= 9; i++) {
        static const int64_t want[] = {33, 120, 432, 1920, 7680, 30720, 86400, 86400, 95040};
        failure.jitter_ppm = (const int64_t[]){100000, 0, -100000, 0, 0, 0, 0, 0, 100000}[i - 1];
        CLAIM("A", 1, 0, "t");
        OK(rv_store_fail_task(w->s, HELD("t", "A", i), &failure, &now_is, &w->err));
        ck_assert_int_eq(now_is, RV_TASK_WAITING);
        OK(rv_store_get_task(w->s, &operator_scope, "t", &row, &w->err));
        ck_assert_int_eq(row.scheduled_us, AT(want[i - 1]));
        ck_assert_str_eq(row.error, "x");
        rv_task_row_fini(&row);
        ck_assert_int_eq(promote_at(w, 100000), 1);
    }
    failure.jitter_ppm = 100001;
    SAYS(RV_E_INVALID, "jitter", rv_store_fail_task(w->s, HELD("t", "A", 9), &failure, NULL, &w->err));
    world_close(w);
}
END_TEST

START_TEST(a_failure_may_be_final)
{
    struct world world, *w = &world;
    struct rv_task_failure failure = {.error = "no handler for \"news\"", .is_final = true, .now_us = T0};
    struct rv_new_task once = new_task("once");
    enum rv_task_status now_is = RV_TASK_WAITING;

    world_open(w, _i);
    enqueue(w, "t");
    once.max_retries = 0;
    enqueue_as(w, &once);
    CLAIM("A", 2, 0, "t once");
    OK(rv_store_fail_task(w->s, HELD("t", "A", 1), &failure, &now_is, &w->err));
    ck_assert_int_eq(now_is, RV_TASK_FAILED);
    TASK("t", "failed 1 0/3");
    OK(fail_at(w, HELD("once", "A", 1), 0));
    TASK("once", "failed 1 0/0");
    world_close(w);
}
END_TEST

START_TEST(a_long_error_is_cut_at_a_character)
{
    struct world world, *w = &world;
    char *text = malloc(RV_TASK_MAX_ERROR + 10);
    struct rv_task_failure failure = {.error = text, .now_us = T0};
    struct rv_task_row row;

    ck_assert_ptr_nonnull(text);
    world_open(w, _i);
    for (size_t i = 0; i < RV_TASK_MAX_ERROR + 8; i++) /* one byte, then characters of two */
        text[i] = i == 0 ? 'x' : i % 2 ? '\xc3' : '\xa4';
    text[RV_TASK_MAX_ERROR + 7] = 0;
    enqueue(w, "t");
    CLAIM("A", 1, 0, "t");
    OK(rv_store_fail_task(w->s, HELD("t", "A", 1), &failure, NULL, &w->err));
    OK(rv_store_get_task(w->s, &operator_scope, "t", &row, &w->err));
    ck_assert_uint_eq(strlen(row.error), RV_TASK_MAX_ERROR - 1);
    ck_assert(rv_utf8_valid(rv_str_of(row.error), NULL));
    rv_task_row_fini(&row);
    free(text);
    world_close(w);
}
END_TEST

/* Everything that the holder of a lease may do. */
static int try_lease(struct world *w, const struct rv_task_lease *lease, int what)
{
    switch (what) {
    case 0:
        return rv_store_complete_task(w->s, lease, RV_STR_LIT("{}"), AT(9), &w->err);
    case 1:
        return fail_at(w, lease, 9);
    case 2:
        return rv_store_postpone_task(w->s, lease, AT(60), "quota", AT(9), &w->err);
    case 3:
        return rv_store_release_task(w->s, lease, AT(9), &w->err);
    case 4:
        return rv_store_defer_task(w->s, lease, AT(60), "later", AT(9), &w->err);
    default:
        return rv_store_stop_task(w->s, lease, AT(9), &w->err);
    }
}

/* Proves p8-data.17/lease: Who lost the lease of a task changes nothing */
START_TEST(a_lost_lease_changes_nothing)
{ /* p8-data 17 ENGINE: the token is claimed_by + attempt; mismatch = lost_lease */
    struct world world, *w = &world;

    world_open(w, _i);
    for (const char *const *id = (const char *const[]){"gone", "pending", "done", "again", NULL}; *id; id++)
        enqueue(w, *id);
    CLAIM("A", 4, 0, "gone pending done again");
    OK(rv_store_complete_task(w->s, HELD("done", "A", 1), RV_STR_LIT("{}"), T0, &w->err));
    OK(rv_store_release_task(w->s, HELD("again", "A", 1), T0, &w->err));
    CLAIM("A", 1, 0, "again");
    OK(rv_store_release_task(w->s, HELD("gone", "A", 1), T0, &w->err));
    CLAIM("B", 1, 0, "gone");
    OK(rv_store_release_task(w->s, HELD("pending", "A", 1), T0, &w->err));
    for (int what = 0; what < 6; what++) {
        SAYS(RV_E_STATE, "lost_lease: worker \"A\"", try_lease(w, HELD("gone", "A", 1), what));
        SAYS(RV_E_STATE, "lost_lease", try_lease(w, HELD("gone", "B", 1), what)); /* it is attempt 2 */
        SAYS(RV_E_STATE, "lost_lease", try_lease(w, HELD("gone", "A", 2), what));
        SAYS(RV_E_STATE, "lost_lease", try_lease(w, HELD("pending", "A", 1), what));
        SAYS(RV_E_STATE, "completed", try_lease(w, HELD("done", "A", 1), what));
        SAYS(RV_E_STATE, "attempt 2 of A", try_lease(w, HELD("again", "A", 1), what));
        FAILS(RV_E_NOT_FOUND, try_lease(w, HELD("never", "A", 1), what));
    }
    TASK("gone", "processing 2 0/3 B");
    TASK("pending", "pending 1 0/3");
    TASK("done", "completed 1 0/3");
    TASK("again", "processing 2 0/3 A");
    EVENTS("gone", "claimed released claimed");
    EVENTS("done", "claimed completed");
    OK(rv_store_complete_task(w->s, HELD("gone", "B", 2), RV_STR_LIT("{}"), T0, &w->err));
    world_close(w);
}
END_TEST

/* Proves p8-data.17/quota: A quota puts a task off without using a retry */
START_TEST(a_quota_puts_a_task_off_without_using_a_retry)
{ /* p8-data 17 ENGINE: quota denial = reschedule at period end without using a retry */
    struct world world, *w = &world;

    world_open(w, _i);
    enqueue(w, "t");
    for (int64_t i = 1; i <= 6; i++) {
        CLAIM("A", 1, i * 100, "t");
        OK(rv_store_postpone_task(w->s, HELD("t", "A", i), AT(i * 100 + 50), "dreaming_minutes used up", AT(i * 100),
                                  &w->err));
        ck_assert_int_eq(promote_at(w, i * 100 + 49), 0);
        ck_assert_int_eq(promote_at(w, i * 100 + 50), 1);
    }
    TASK("t", "pending 6 0/3");
    CLAIM("A", 1, 700, "t");
    OK(rv_store_postpone_task(w->s, HELD("t", "A", 7), AT(700), "for no time at all", AT(700), &w->err));
    TASK("t", "pending 7 0/3");
    world_close(w);
}
END_TEST

START_TEST(a_worker_that_ends_hands_its_tasks_back)
{
    struct world world, *w = &world;

    world_open(w, _i);
    enqueue(w, "t");
    for (int64_t i = 1; i <= 6; i++) {
        CLAIM("A", 1, i, "t");
        OK(rv_store_release_task(w->s, HELD("t", "A", i), AT(i), &w->err));
    }
    TASK("t", "pending 6 0/3");
    EVENTS("t",
           "claimed released claimed released claimed released claimed released claimed released claimed released");
    world_close(w);
}
END_TEST

START_TEST(a_heartbeat_renews_all_that_a_worker_holds)
{ /* p8-data 17 "heartbeat" */
    struct world world, *w = &world;
    struct rv_task_row row;
    struct seen seen = SEEN_INIT;
    int64_t n = -1;

    world_open(w, _i);
    for (const char *const *id = (const char *const[]){"a", "b", "c", "d", NULL}; *id; id++)
        enqueue(w, *id);
    CLAIM("A", 3, 0, "a b c");
    CLAIM("B", 1, 0, "d");
    OK(rv_store_complete_task(w->s, HELD("b", "A", 1), RV_STR_LIT("{}"), T0, &w->err));
    OK(rv_store_heartbeat(w->s, "A", AT(10), AT(10 + LEASE), &n, &w->err));
    ck_assert_int_eq(n, 2);
    OK(rv_store_heartbeat(w->s, "A", AT(11), AT(12), NULL, &w->err)); /* no lease is cut short */
    OK(rv_store_get_task(w->s, &operator_scope, "a", &row, &w->err));
    ck_assert_int_eq(row.lease_until_us, AT(10 + LEASE));
    ck_assert_int_eq(row.claimed_us, AT(11));
    ck_assert_int_eq(row.started_us, T0);
    rv_task_row_fini(&row);
    ck_assert_int_eq(recover_at(w, LEASE).n_pending, 1);
    TASK("d", "pending 1 1/3");
    OK(rv_store_heartbeat(w->s, "B", AT(LEASE), AT(2 * LEASE), &n, &w->err)); /* what is lost stays lost */
    ck_assert_int_eq(n, 0);
    OK(rv_store_cancel_task(w->s, &operator_scope, "c", AT(3), NULL, &w->err));
    OK(rv_store_list_held(w->s, "A", see_lease, &seen, &w->err));
    SEEN(&seen, "a:1 c:1!");
    seen = SEEN_INIT;
    OK(rv_store_list_held(w->s, "B", see_lease, &seen, &w->err));
    SEEN(&seen, "");
    world_close(w);
}
END_TEST

/* Proves p8-data.17/recover: A task whose worker is silent goes back into the queue while it has retries */
START_TEST(a_stale_task_is_recovered_until_its_retries_are_used_up)
{ /* p8-data 17 "recover_stale", with its texts */
    struct world world, *w = &world;
    struct rv_recovered got;
    struct rv_task_row row;
    int64_t now = 0;

    world_open(w, _i);
    enqueue(w, "t");
    for (int64_t i = 1; i <= 3; i++) {
        CLAIM("A", 1, now, "t");
        ck_assert_int_eq(recover_at(w, now + LEASE - 1).n_pending, 0);
        now += LEASE;
        got = recover_at(w, now);
        ck_assert_int_eq(got.n_pending, 1);
        ck_assert_int_eq(got.n_failed + got.n_cancelled, 0);
        OK(rv_store_get_task(w->s, &operator_scope, "t", &row, &w->err));
        ck_assert_str_eq(row.error, "recovered: processing timeout after 15 minutes");
        ck_assert_int_eq(row.status, RV_TASK_PENDING); /* now: no back-off */
        ck_assert_int_eq(row.retry_count, i);
        rv_task_row_fini(&row);
    }
    CLAIM("A", 1, now, "t");
    got = recover_at(w, now + LEASE);
    ck_assert_int_eq(got.n_pending, 0);
    ck_assert_int_eq(got.n_failed, 1);
    OK(rv_store_get_task(w->s, &operator_scope, "t", &row, &w->err));
    ck_assert_str_eq(row.error, "recovered: exceeded max retries after processing timeout");
    rv_task_row_fini(&row);
    TASK("t", "failed 4 3/3");
    EVENTS("t", "claimed recovered(1/3 +900) claimed recovered(2/3 +1800) claimed recovered(3/3 +2700) claimed failed");
    world_close(w);
}
END_TEST

START_TEST(each_recovery_takes_at_most_so_many_oldest_first)
{
    struct world world, *w = &world;
    struct rv_recovered got;

    world_open(w, _i);
    enqueue(w, "a");
    enqueue(w, "b");
    CLAIM("A", 1, 10, "a");
    CLAIM("A", 1, 0, "b");
    OK(rv_store_recover_tasks(w->s, AT(9999), 1, &got, &w->err));
    ck_assert_int_eq(got.n_pending, 1);
    TASK("b", "pending 1 1/3");
    TASK("a", "processing 1 0/3 A");
    world_close(w);
}
END_TEST

Suite *tasks_suite(void)
{
    Suite *suite = suite_create("tasks");
    TCase *tc = tcase_create("tasks");

    ADD(tc, a_new_task_is_pending_with_three_retries);
    ADD(tc, a_claim_takes_by_priority_then_by_when_it_was_due_then_by_age);
    ADD(tc, a_task_that_is_not_due_waits);
    ADD(tc, a_promotion_takes_what_was_due_first);
    ADD(tc, a_completed_task_keeps_its_result);
    ADD(tc, a_failed_attempt_is_repeated_after_30_s_2_min_and_8_min);
    ADD(tc, the_back_off_ends_at_a_day_and_jitter_is_a_tenth);
    ADD(tc, a_failure_may_be_final);
    ADD(tc, a_long_error_is_cut_at_a_character);
    ADD(tc, a_lost_lease_changes_nothing);
    ADD(tc, a_quota_puts_a_task_off_without_using_a_retry);
    ADD(tc, a_worker_that_ends_hands_its_tasks_back);
    ADD(tc, a_heartbeat_renews_all_that_a_worker_holds);
    ADD(tc, a_stale_task_is_recovered_until_its_retries_are_used_up);
    ADD(tc, each_recovery_takes_at_most_so_many_oldest_first);
    suite_add_tcase(suite, tc);
    return suite;
}
