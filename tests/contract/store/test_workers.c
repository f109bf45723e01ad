/* Workers, their duties, and the runs that wait for one of them because no process drives them. */
#include "coreengine/store/store.h"
#include "tests/contract/store/tasks.h"

static int put(struct world *w, const char *name, int64_t began, int64_t seen)
{
    const struct rv_worker_row row = {.name = name,
                                      .host = "host",
                                      .pid = 7,
                                      .offers = RV_STR_LIT("[\"label:gpu\"]"),
                                      .n_max = 4,
                                      .n_runs = 2,
                                      .started_us = began,
                                      .seen_us = seen};
    return rv_store_put_worker(w->s, &row, &w->err);
}

static int see_worker(void *self, const struct rv_worker_row *row, rv_err **err)
{
    struct seen *seen = self;

    (void)err;
    rv_buf_printf(&seen->text, "%s%s@%s %lld/%lld%s %.*s", seen->n++ ? ", " : "", row->name, row->host,
                  (long long)row->n_runs, (long long)row->n_max, row->is_draining ? " draining" : "",
                  RV_STR_ARG(row->offers));
    return seen->stop_at == seen->n ? seen->code : 0;
}

static void workers_are(struct world *w, int64_t since, const char *text, int line)
{
    struct seen seen = SEEN_INIT;

    OK(rv_store_list_workers(w->s, since, see_worker, &seen, &w->err));
    must_see(&seen, text, line);
}
#define WORKERS(since, text) workers_are(w, (since), (text), __LINE__)

START_TEST(a_worker_is_listed_while_it_gives_signs_of_life)
{
    struct world world, *w = &world;

    world_open(w, _i);
    WORKERS(0, "");
    OK(put(w, "second", T0 + 2, T0 + 10));
    OK(put(w, "first", T0 + 1, T0 + 5));
    WORKERS(0, "first@host 2/4 [\"label:gpu\"], second@host 2/4 [\"label:gpu\"]"); /* by when they began */
    WORKERS(T0 + 6, "second@host 2/4 [\"label:gpu\"]");
    WORKERS(T0 + 11, "");
    const struct rv_worker_row row = {.name = "first",
                                      .host = "host",
                                      .offers = RV_STR_LIT("[]"),
                                      .n_max = 8,
                                      .is_draining = true,
                                      .started_us = T0 + 99, /* stays */
                                      .seen_us = T0 + 20};
    OK(rv_store_put_worker(w->s, &row, &w->err));
    WORKERS(0, "first@host 0/8 draining [], second@host 2/4 [\"label:gpu\"]");
    struct seen seen = SEEN_INIT;
    seen.stop_at = 1;
    seen.code = 5;
    ck_assert_int_eq(rv_store_list_workers(w->s, 0, see_worker, &seen, &w->err), 5);
    rv_buf_fini(&seen.text);
    OK(rv_store_delete_worker(w->s, "second", 0, &w->err));
    OK(rv_store_delete_worker(w->s, "no one", 0, &w->err));
    WORKERS(0, "first@host 0/8 draining []");
    OK(put(w, "third", T0, T0 + 30));
    OK(rv_store_delete_worker(w->s, "no one", T0 + 25, &w->err)); /* those that are silent */
    WORKERS(0, "third@host 2/4 [\"label:gpu\"]");
    world_close(w);
}
END_TEST

START_TEST(what_is_no_worker_is_refused)
{
    struct world world, *w = &world;
    struct rv_worker_row row = {.name = "w", .host = "h", .offers = RV_STR_LIT("[]")};
    char *offers = malloc(RV_STORE_MAX_OFFERS + 1);

    world_open(w, _i);
    ck_assert_ptr_nonnull(offers);
    memset(offers, ' ', RV_STORE_MAX_OFFERS + 1);
    row.offers = (rv_str){offers, RV_STORE_MAX_OFFERS};
    OK(rv_store_put_worker(w->s, &row, &w->err));
    row.offers.len++;
    FAILS(RV_E_LIMIT, rv_store_put_worker(w->s, &row, &w->err));
    row.offers.len = 2;
    row.name = "";
    FAILS(RV_E_INVALID, rv_store_put_worker(w->s, &row, &w->err));
    FAILS(RV_E_INVALID, rv_store_delete_worker(w->s, "", 0, &w->err));
    bool mine = false;
    FAILS(RV_E_INVALID,
          rv_store_claim_duty(
              w->s, &(const struct rv_duty_claim){.duty = "sweep", .worker = "", .now_us = T0, .until_us = T0 + 1},
              &mine, &w->err));
    ck_assert(!mine);
    free(offers);
    world_close(w);
}
END_TEST

static bool takes(struct world *w, const char *duty, const char *worker, int64_t now, int64_t until)
{
    bool mine = false;

    OK(rv_store_claim_duty(
        w->s, &(const struct rv_duty_claim){.duty = duty, .worker = worker, .now_us = now, .until_us = until}, &mine,
        &w->err));
    return mine;
}

START_TEST(a_duty_is_one_workers_until_it_ends)
{
    struct world world, *w = &world;

    world_open(w, _i);
    ck_assert(takes(w, "sweep", "A", T0, T0 + 10));
    ck_assert(!takes(w, "sweep", "B", T0 + 9, T0 + 99));
    ck_assert(takes(w, "fire", "B", T0, T0 + 10)); /* another duty */
    ck_assert(takes(w, "sweep", "A", T0 + 9, T0 + 20));
    ck_assert(!takes(w, "sweep", "B", T0 + 19, T0 + 99));
    ck_assert(takes(w, "sweep", "B", T0 + 20, T0 + 30));
    ck_assert(!takes(w, "sweep", "A", T0 + 21, T0 + 99));
    OK(rv_store_delete_worker(w->s, "B", 0, &w->err)); /* gives up all of its duties */
    ck_assert(takes(w, "sweep", "A", T0 + 21, T0 + 99));
    ck_assert(takes(w, "fire", "A", T0 + 1, T0 + 99));
    world_close(w);
}
END_TEST

/* --- Runs --- */

static void left_are(struct world *w, const char *owner, int64_t now, const char *ids, int line)
{
    struct seen seen = SEEN_INIT;

    OK(rv_store_list_left(w->s, &(const struct rv_left_filter){.owner = owner, .now_us = now, .limit = 0}, see_run,
                          &seen, &w->err));
    must_see(&seen, ids, line);
}
#define LEFT(owner, now, ids) left_are(w, (owner), (now), (ids), __LINE__)

static void queue_run(struct world *w, const char *run, const char *task)
{
    struct rv_new_task t = new_task(task);

    t.type = "run";
    t.key = run;
    enqueue_as(w, &t);
}

START_TEST(a_run_is_left_when_nobody_drives_it_and_no_task_will)
{
    struct world world, *w = &world;
    struct seen seen = SEEN_INIT;

    world_open(w, _i);
    make_run(w, "r1"); /* each is owned by A until T0 + 100 */
    make_run(w, "r2");
    make_run(w, "r3");
    OK(rv_store_list_owners(w->s, see_id, &seen, &w->err));
    SEEN(&seen, "A");
    LEFT(NULL, T0 + 99, "");
    LEFT(NULL, T0 + 100, "r1 r2 r3");
    LEFT("A", T0, "r1 r2 r3");
    LEFT("B", T0 + 100, "");
    OK(rv_store_release(w->s, "r2", 1, &w->err));
    LEFT(NULL, T0, "r2");
    LEFT("A", T0, "r1 r3");
    queue_run(w, "r2", "t2");
    LEFT(NULL, T0, "");
    CLAIM("W", 1, 0, "t2");
    LEFT(NULL, T0, "");
    OK(rv_store_complete_task(w->s, HELD("t2", "W", 1), RV_STR_LIT("{}"), AT(1), &w->err));
    LEFT(NULL, T0, "r2"); /* its task is over */
    queue_run(w, "r3", "t3");
    LEFT("A", T0, "r1");
    seen = SEEN_INIT;
    OK(rv_store_list_left(w->s, &(const struct rv_left_filter){.now_us = T0 + 100, .limit = 1}, see_run, &seen,
                          &w->err));
    SEEN(&seen, "r1"); /* at most so many, oldest first */
    world_close(w);
}
END_TEST

static void part_is(struct world *w, const struct rv_left_filter *filter, const char *ids, int line)
{
    struct seen seen = SEEN_INIT;

    OK(rv_store_list_left(w->s, filter, see_run, &seen, &w->err));
    must_see(&seen, ids, line);
}
#define PART(ids, ...) part_is(w, &(const struct rv_left_filter){__VA_ARGS__}, ids, __LINE__)

START_TEST(runs_that_were_left_are_listed_in_parts_and_without_those_of_others)
{
    struct world world, *w = &world;

    world_open(w, _i);
    const char *const ids[] = {"r3", "job_a", "r1", "job_b", "r2"};
    for (size_t i = 0; i < RV_COUNT(ids); i++)
        make_run(w, ids[i]); /* all at one instant, so that ids order them */
    PART("job_a job_b", .now_us = T0 + 100, .limit = 2);
    PART("r1 r2", .now_us = T0 + 100, .limit = 2, .but_prefix = "job_");
    PART("r1 r2 r3", .owner = "A", .but_prefix = "job_");
    PART("r2", .now_us = T0 + 100, .limit = 1, .but_prefix = "job_", .after_us = T0, .after_id = "r1");
    PART("r3", .now_us = T0 + 100, .after_us = T0, .after_id = "r2");
    PART("job_a job_b r1 r2 r3", .now_us = T0 + 100, .after_us = T0 - 1, .after_id = "z");
    PART("", .now_us = T0 + 100, .after_us = T0 + 1, .after_id = "a");
    PART("job_a job_b", .now_us = T0 + 100, .but_prefix = "r");
    world_close(w);
}
END_TEST

/* --- Several tasks completed at once --- */

START_TEST(tasks_are_completed_together_but_those_that_were_lost)
{
    struct world world, *w = &world;

    world_open(w, _i);
    for (int i = 0; i < 5; i++)
        enqueue(w, (const char *[]){"a", "b", "c", "d", "e"}[i]);
    CLAIM("W", 4, 0, "a b c d");
    OK(rv_store_release_task(w->s, HELD("b", "W", 1), AT(1), &w->err));
    CLAIM("V", 1, 2, "b"); /* the second attempt is another worker's */
    struct rv_task_end ends[] = {{.lease = {"d", "W", 1}, .result = RV_STR_LIT("{\"of\":\"d\"}")},
                                 {.lease = {"b", "W", 1}},
                                 {.lease = {"a", "W", 1}, .is_lost = true},
                                 {.lease = {"none", "W", 1}},
                                 {.lease = {"c", "W", 2}},
                                 {.lease = {"b", "V", 2}},
                                 {.lease = {"e", "W", 1}},
                                 {.lease = {"a", "W", 1}}};
    OK(rv_store_complete_tasks(w->s, ends, RV_COUNT(ends), AT(3), &w->err));
    const bool lost[] = {false, true, false, true, true, false, true, false};
    for (size_t i = 0; i < RV_COUNT(ends); i++)
        if (strcmp(ends[i].lease.id, "a") != 0)
            ck_assert_msg(ends[i].is_lost == lost[i], "%zu: %s", i, ends[i].lease.id);
    ck_assert_int_ne(ends[2].is_lost, ends[7].is_lost); /* named twice, and done once */
    TASK("a", "completed 1 0/3");
    TASK("b", "completed 2 0/3");
    TASK("c", "processing 1 0/3 W");
    TASK("d", "completed 1 0/3");
    TASK("e", "pending 0 0/3");
    EVENTS("a", "claimed completed");
    EVENTS("b", "claimed released claimed completed");
    EVENTS("c", "claimed");
    struct rv_task_row row;
    OK(rv_store_get_task(w->s, &operator_scope, "d", &row, &w->err));
    ck_assert(rv_str_is(row.result, "{\"of\":\"d\"}"));
    rv_task_row_fini(&row);
    OK(rv_store_get_task(w->s, &operator_scope, "b", &row, &w->err));
    ck_assert(!row.result.ptr);
    rv_task_row_fini(&row);
    FAILS(RV_E_INVALID, rv_store_complete_tasks(w->s, ends, 0, AT(3), &w->err));
    ends[4].result = RV_STR_LIT("[]");
    FAILS(RV_E_INVALID, rv_store_complete_tasks(w->s, ends, RV_COUNT(ends), AT(3), &w->err));
    world_close(w); /* which checks what the lanes count */
}
END_TEST

/* More than a statement of PostgreSQL has at once, and values of many sizes. */
START_TEST(many_tasks_are_claimed_and_completed_at_once)
{
    enum { N = RV_TASK_MAX_CLAIM };
    static struct rv_task_end ends[N];
    struct world world, *w = &world;
    char *result = malloc(200000);
    struct rv_claimed got = {0};
    int64_t classes[ALL];

    world_open(w, _i);
    ck_assert_ptr_nonnull(result);
    memset(result, ' ', 200000);
    memcpy(result, "{}", 2);
    OK(rv_store_begin(w->s, &w->err));
    for (int i = 0; i < N; i++) {
        char id[20];
        struct rv_new_task task = new_task(id);
        snprintf(id, sizeof id, "t%04d", i);
        task.tenant = i % 3 ? "north" : "south";
        enqueue_as(w, &task);
    }
    OK(rv_store_commit(w->s, &w->err));
    struct rv_claim_tasks claim = {.worker = "W",
                                   .classes = classes,
                                   .n_classes = all_classes(w, classes, ALL),
                                   .n = N,
                                   .now_us = T0,
                                   .until_us = AT(LEASE)};
    OK(rv_store_claim_tasks(w->s, &claim, &got, &w->err));
    ck_assert_uint_eq(got.n, N);
    for (size_t i = 0; i < N; i++)
        ends[i] = (struct rv_task_end){{got.rows[i].id, "W", 1}, {result, i % 50 ? 2 + i : 200000}, false};
    OK(rv_store_complete_tasks(w->s, ends, N, AT(1), &w->err));
    for (size_t i = 0; i < N; i++) {
        const struct rv_store_scope scope = {got.rows[i].tenant, NULL};
        struct rv_task_row row;
        ck_assert(!ends[i].is_lost);
        OK(rv_store_get_task(w->s, &scope, got.rows[i].id, &row, &w->err));
        ck_assert_uint_eq(row.result.len, ends[i].result.len);
        rv_task_row_fini(&row);
    }
    rv_claimed_fini(&got);
    free(result);
    world_close(w);
}
END_TEST

Suite *workers_suite(void)
{
    Suite *suite = suite_create("workers");
    TCase *tc = tcase_create("workers");

    ADD(tc, a_worker_is_listed_while_it_gives_signs_of_life);
    ADD(tc, what_is_no_worker_is_refused);
    ADD(tc, a_duty_is_one_workers_until_it_ends);
    ADD(tc, a_run_is_left_when_nobody_drives_it_and_no_task_will);
    ADD(tc, runs_that_were_left_are_listed_in_parts_and_without_those_of_others);
    ADD(tc, tasks_are_completed_together_but_those_that_were_lost);
    ADD(tc, many_tasks_are_claimed_and_completed_at_once);
    suite_add_tcase(suite, tc);
    return suite;
}
