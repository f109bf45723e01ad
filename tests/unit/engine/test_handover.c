/* Runs that another process is to go on with: what is under way is journaled, nothing new is begun, and the run goes on
 * from there. */
#include <stdio.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/engine/kept_host.h"

#define SLOW "stages: {a: [{output: {n: 1}, delay_ms: 30}], b: [{output: {n: 2}, delay_ms: 30}]}"

static const struct rv_store_scope all = {NULL, NULL};

static void start_slow(struct host *h)
{
    host_new(h);
    world_fini(&h->w);
    world_load(&h->w, STAGES, SLOW, NULL);
    host_start_all(h, 0, 1);
    snprintf(h->left, sizeof h->left, "%s", rv_journal_run(h->runs[0].journal));
}

static struct rv_run_row row_of(struct host *h)
{
    struct rv_run_row row;

    ck_assert_int_eq(rv_store_get_run(h->store, &all, h->left, &row, NULL), 0);
    return row;
}

static void give_up(struct host *h)
{
    rv_exec_free(h->runs[0].exec);
    h->runs[0].exec = NULL;
    rv_journal_free(h->runs[0].journal);
    h->runs[0].journal = NULL;
}

START_TEST(a_run_is_handed_over_when_its_call_has_ended)
{
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
    struct host h;

    start_slow(&h);
    while (h.n_events == 0) /* until the first stage is begun */
        uv_run(&h.loop, UV_RUN_ONCE);
    rv_exec_hand_over(h.runs[0].exec);
    ck_assert(!rv_exec_is_handed_over(h.runs[0].exec));
    uv_run(&h.loop, UV_RUN_DEFAULT); /* the run would be completed if the second stage began */
    ck_assert_int_eq(h.n_over, 1);
    ck_assert_int_eq(h.runs[0].rc, 0);
    ck_assert(rv_exec_is_handed_over(h.runs[0].exec));
    ck_assert(!rv_exec_is_unrepeatable(h.runs[0].exec));
    struct rv_run_row row = row_of(&h);
    ck_assert_int_eq(row.status, RV_RUN_RUNNING);
    ck_assert_str_eq(row.stage, "b"); /* the answer of the first stage is kept */
    rv_run_row_fini(&row);
    give_up(&h);
    row = row_of(&h);
    ck_assert_ptr_null(row.owner);
    rv_run_row_fini(&row);

    opts.pipeline = h.w.pipeline;
    opts.script = h.w.script;
    opts.observer = (struct rv_observer){.on_event = host_on_event, .on_ended = host_on_over, .self = &h};
    h.n_over = h.n_events = 0;
    ck_assert_int_eq(
        rv_engine_open(h.engine, &opts, &all, &(struct rv_engine_resume){.run = h.left}, &h.runs[1].exec, NULL), 0);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(h.n_over, 1);
    ck_assert_int_eq(h.runs[1].rc, 0);
    ck_assert_int_eq(rv_exec_status(h.runs[1].exec), RV_RUN_COMPLETED);
    ck_assert_int_eq(h.n_events, 0); /* both stages were begun before */
    host_fini(&h);
}
END_TEST

START_TEST(a_cancelled_run_is_not_handed_over)
{
    struct host h;

    start_slow(&h);
    while (h.n_events == 0) /* until the first stage is begun */
        uv_run(&h.loop, UV_RUN_ONCE);
    rv_exec_hand_over(h.runs[0].exec);
    rv_exec_cancel(h.runs[0].exec);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(h.n_over, 1);
    ck_assert_int_eq(rv_exec_status(h.runs[0].exec), RV_RUN_CANCELLED);
    ck_assert(!rv_exec_is_handed_over(h.runs[0].exec));
    host_fini(&h);
}
END_TEST

Suite *handover_suite(void)
{
    Suite *s = suite_create("handover");
    TCase *tc = tcase_create("handover");

    tcase_add_test(tc, a_run_is_handed_over_when_its_call_has_ended);
    tcase_add_test(tc, a_cancelled_run_is_not_handed_over);
    suite_add_tcase(s, tc);
    return s;
}
