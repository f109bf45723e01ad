/* Steps that the store's own thread keeps. */
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/engine/kept_host.h"

static const struct rv_store_scope all = {NULL, NULL};

static bool on_delta(void *self, const struct rv_delta_from *from, const struct rv_llm_delta *d)
{
    struct host *h = self;

    (void)from;
    if (d->kind == RV_LLM_DELTA_TEXT && ++h->n_deltas == 3)
        host_open_gate(h);
    return true;
}

static int64_t n_records(struct host *h, size_t i)
{
    struct rv_run_row row;

    ck_assert_int_eq(rv_store_get_run(h->store, &all, rv_journal_run(h->runs[i].journal), &row, NULL), 0);
    int64_t n = row.n_records;
    rv_run_row_fini(&row);
    return n;
}

START_TEST(the_loop_thread_writes_nothing)
{
    struct host h;

    host_new(&h);
    h.is_new = true;
    host_start_all(&h, 0, 3);
    ck_assert_int_eq(uv_run(&h.loop, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(h.n_over, 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(h.runs[i].rc, 0);
        ck_assert_int_eq(rv_exec_status(h.runs[i].exec), RV_RUN_COMPLETED);
        ck_assert_int_ge(n_records(&h, i), 2);
    }
    ck_assert_int_ge(h.n_writes, 3);
    ck_assert_int_eq(h.n_on_loop, 0);
    host_fini(&h);
}
END_TEST

START_TEST(nothing_of_a_step_is_done_before_it_is_kept)
{
    struct host h;

    host_new(&h);
    h.gate = "commit";
    host_start_all(&h, 0, 1);
    host_wait_for_gate(&h);
    for (int i = 0; i < 20; i++)
        uv_run(&h.loop, UV_RUN_NOWAIT);
    ck_assert_int_eq(h.n_events, 0);
    rv_exec_cancel(h.runs[0].exec); /* heard when the step is kept */
    uv_run(&h.loop, UV_RUN_NOWAIT);
    ck_assert_int_eq(h.n_over, 0);
    host_open_gate(&h);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(h.n_over, 1);
    ck_assert_int_eq(h.runs[0].rc, 0);
    host_fini(&h);
}
END_TEST

START_TEST(a_store_that_takes_its_time_delays_no_piece_of_another_run)
{
    struct host h;
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
    rv_exec *talk = NULL;

    host_new(&h);
    world_load(&h.talks, TALKS, WORDS, NULL);
    h.gate = "commit"; /* until three pieces were told */
    host_start_all(&h, 0, 1);
    host_wait_for_gate(&h);
    opts.pipeline = h.talks.pipeline;
    opts.script = h.talks.script;
    opts.observer.on_delta = on_delta;
    opts.observer.on_ended = host_on_over;
    opts.observer.self = &h;
    rv_envelope *env = host_envelope(50, rv_engine_now_us(h.engine));
    ck_assert_int_eq(rv_engine_start(h.engine, &opts, env, NULL, &talk, NULL), 0);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(h.n_deltas, 3);
    ck_assert_int_eq(h.n_over, 2);
    rv_exec_free(talk);
    host_fini(&h);
}
END_TEST

START_TEST(what_waits_is_written_together)
{
    struct host h;

    host_new(&h);
    h.gate = "begin";
    host_start_all(&h, 0, 1);
    host_wait_for_gate(&h);
    h.is_new = true;
    host_start_all(&h, 1, N_RUNS); /* eleven first steps wait for the thread */
    h.n_begins = h.n_appends = 0;
    host_open_gate(&h);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(h.n_over, N_RUNS);
    for (size_t i = 0; i < N_RUNS; i++)
        ck_assert_int_eq(h.runs[i].rc, 0);
    ck_assert_int_ge(h.n_appends, N_RUNS);
    ck_assert_int_le(h.n_begins, h.n_appends - 10); /* those eleven were one transaction */
    host_fini(&h);
}
END_TEST

/* The first write is on its way; three others wait, and another process takes the second run over. */
START_TEST(a_run_that_was_taken_over_fails_alone)
{
    struct rv_store_claim claim = {.owner = "other/1", .dead = "test/1"};
    struct host h;
    int64_t fence = 0;

    host_new(&h);
    h.gate = "begin";
    host_start_all(&h, 0, 1);
    host_wait_for_gate(&h);
    host_start_all(&h, 1, 4);
    claim.now_us = rv_engine_now_us(h.engine);
    claim.until_us = claim.now_us + 60000000;
    rv_store_set_faults(h.store, (struct rv_store_faults){0});
    ck_assert_int_eq(rv_store_claim(h.store, &all, rv_journal_run(h.runs[2].journal), &claim, &fence, NULL), 0);
    host_open_gate(&h);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(h.n_over, 4);
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(h.runs[i].rc, i == 2 ? RV_E_STATE : 0);
    ck_assert_int_eq(n_records(&h, 2), 1); /* its beginning alone */
    host_fini(&h);
}
END_TEST

static const char *const group_points[] = {"begin", "commit"};

START_TEST(a_group_that_fails_is_written_one_by_one)
{
    struct host h;

    host_new(&h);
    h.gate = "begin";
    host_start_all(&h, 0, 1);
    host_wait_for_gate(&h);
    host_start_all(&h, 1, 3);
    h.is_new = true;
    host_start_all(&h, 3, 5);
    pthread_mutex_lock(&h.lock);
    h.fails = group_points[_i];
    h.gate = NULL;
    pthread_cond_broadcast(&h.moved);
    pthread_mutex_unlock(&h.lock);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(h.n_over, 5);
    ck_assert_ptr_null(h.fails);
    for (size_t i = 0; i < 5; i++)
        ck_assert_int_eq(h.runs[i].rc, 0);
    host_fini(&h);
}
END_TEST

static void on_question(void *self, rv_exec *x, const struct rv_pending *q)
{
    const struct rv_response response = {.text = RV_STR_LIT("that one")};
    struct host *h = self;
    struct rv_run_row row;

    ck_assert_ptr_nonnull(q->id);
    ck_assert_int_eq(rv_store_get_run(h->store, &all, rv_journal_run(h->runs[0].journal), &row, NULL), 0);
    ck_assert_int_eq(row.status, RV_RUN_INTERRUPTED); /* the question is kept before anybody hears it */
    ck_assert_int_eq(row.n_pending, 1);
    ck_assert((row.owner != NULL) == h->holds);
    rv_run_row_fini(&row);
    ck_assert_int_eq(rv_exec_answer(x, &response, NULL), h->holds ? 0 : RV_E_STATE);
}

START_TEST(a_run_that_holds_its_lease_is_answered_without_opening_its_journal_again)
{
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
    struct host h;

    host_new(&h);
    world_fini(&h.w);
    world_load(&h.w, ASKS, QUESTION, NULL);
    h.holds = opts.holds = _i;
    rv_envelope *env = host_envelope(0, rv_engine_now_us(h.engine));
    h.is_new = true;
    h.runs[0].journal = host_journal(&h, env, rv_engine_now_us(h.engine));
    opts.pipeline = h.w.pipeline;
    opts.script = h.w.script;
    opts.journal = h.runs[0].journal;
    opts.observer = (struct rv_observer){.on_question = on_question, .on_ended = host_on_over, .self = &h};
    ck_assert_int_eq(rv_engine_start(h.engine, &opts, env, NULL, &h.runs[0].exec, NULL), 0);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(h.n_over, 1);
    ck_assert_int_eq(rv_exec_status(h.runs[0].exec), h.holds ? RV_RUN_COMPLETED : RV_RUN_INTERRUPTED);
    ck_assert_int_eq(h.n_on_loop, 0);
    host_fini(&h);
}
END_TEST

START_TEST(an_engine_that_is_freed_writes_what_it_was_given)
{
    struct host h;

    host_new(&h);
    host_start_all(&h, 0, 4);
    rv_engine_free(h.engine);
    h.engine = NULL;
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_ge(n_records(&h, i), 2); /* its beginning, and the step */
    ck_assert_int_eq(h.n_events, 0);
    host_fini(&h);
}
END_TEST

Suite *kept_suite(void)
{
    Suite *s = suite_create("kept");
    TCase *tc = tcase_create("kept");

    tcase_add_test(tc, the_loop_thread_writes_nothing);
    tcase_add_test(tc, nothing_of_a_step_is_done_before_it_is_kept);
    tcase_add_test(tc, a_store_that_takes_its_time_delays_no_piece_of_another_run);
    tcase_add_test(tc, what_waits_is_written_together);
    tcase_add_test(tc, a_run_that_was_taken_over_fails_alone);
    tcase_add_loop_test(tc, a_group_that_fails_is_written_one_by_one, 0, RV_COUNT(group_points));
    tcase_add_loop_test(tc, a_run_that_holds_its_lease_is_answered_without_opening_its_journal_again, 0, 2);
    tcase_add_test(tc, an_engine_that_is_freed_writes_what_it_was_given);
    suite_add_tcase(s, tc);
    return s;
}
