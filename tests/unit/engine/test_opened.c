/* What a host opens, renews and frees: the store's own thread writes it. */
#include <stdio.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/engine/kept_host.h"

static const struct rv_store_scope all = {NULL, NULL};

static void on_free(void *self)
{
    ((struct host *)self)->n_freed++;
}

static void on_closed(void *self)
{
    struct host *h = self;

    h->engine = NULL;
    h->n_closed++;
}

/* A run that another process left: it began, or waits for an answer. */
static void leave_a_run(struct host *h, bool asks)
{
    rv_envelope *env = host_envelope(0, host_now(h));

    rv_store_set_faults(h->store, (struct rv_store_faults){0});
    h->is_new = false;
    snprintf(h->left, sizeof h->left, "%s", rv_envelope_fields(env)->envelope_id);
    if (asks) {
        struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
        world_fini(&h->w);
        world_load(&h->w, ASKS, QUESTION, NULL);
        h->runs[0].journal = host_journal(h, env, host_now(h));
        opts.pipeline = h->w.pipeline;
        opts.script = h->w.script;
        opts.journal = h->runs[0].journal;
        ck_assert_int_eq(rv_engine_start(h->engine, &opts, env, NULL, &h->runs[0].exec, NULL), 0);
        uv_run(&h->loop, UV_RUN_DEFAULT);
        ck_assert_int_eq(rv_exec_status(h->runs[0].exec), RV_RUN_INTERRUPTED);
        rv_exec_free(h->runs[0].exec);
        h->runs[0].exec = NULL;
    } else {
        h->runs[0].journal = host_journal(h, env, host_now(h) - INT64_C(3600000000));
        rv_envelope_free(env);
    }
    rv_store_set_faults(h->store, (struct rv_store_faults){host_at, h});
}

static void open_it(struct host *h, const struct rv_response *response)
{
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;

    opts.pipeline = h->w.pipeline;
    opts.script = h->w.script;
    opts.observer = (struct rv_observer){.on_event = host_on_event, .on_ended = host_on_over, .self = h};
    opts.on_free = on_free;
    opts.self = h;
    h->runs[1].rc = -1000;
    ck_assert_int_eq(rv_engine_open(h->engine, &opts, &all,
                                    &(struct rv_engine_resume){.run = h->left, .response = response}, &h->runs[1].exec,
                                    NULL),
                     0);
}

static bool has_owner(struct host *h)
{
    struct rv_run_row row;

    ck_assert_int_eq(rv_store_get_run(h->store, &all, h->left, &row, NULL), 0);
    bool owned = row.owner != NULL;
    rv_run_row_fini(&row);
    return owned;
}

static const struct rv_response that_one = {.text = {"that one", 8}};

enum { OPENED, ANSWERED, ANSWERED_LATER, UNANSWERED, CANCELLED, N_OPENINGS };

START_TEST(a_run_is_opened_by_the_store_thread)
{
    static const enum rv_run_status ends[] = {RV_RUN_COMPLETED, RV_RUN_COMPLETED, RV_RUN_COMPLETED, RV_RUN_RUNNING,
                                              RV_RUN_CANCELLED};
    bool asks = _i == ANSWERED || _i == ANSWERED_LATER || _i == UNANSWERED;
    struct host h;

    host_new(&h);
    leave_a_run(&h, asks);
    h.n_over = 0;
    h.gate = "claim";
    open_it(&h, _i == ANSWERED ? &that_one : NULL);
    host_wait_for_gate(&h);
    for (int i = 0; i < 20; i++)
        uv_run(&h.loop, UV_RUN_NOWAIT);
    ck_assert(!rv_exec_has_ended(h.runs[1].exec));
    if (_i == ANSWERED_LATER)
        ck_assert_int_eq(rv_exec_answer(h.runs[1].exec, &that_one, NULL), 0);
    if (_i == ANSWERED_LATER || _i == ANSWERED)
        ck_assert_int_eq(rv_exec_answer(h.runs[1].exec, &that_one, NULL), RV_E_STATE);
    if (_i == CANCELLED)
        rv_exec_cancel(h.runs[1].exec);
    host_open_gate(&h);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(h.n_over, 1);
    ck_assert_int_eq(h.runs[1].rc, _i == UNANSWERED ? RV_E_STATE : 0);
    ck_assert_int_eq(rv_exec_status(h.runs[1].exec), ends[_i]);
    rv_exec_free(h.runs[1].exec);
    h.runs[1].exec = NULL;
    rv_engine_close(h.engine, on_closed, &h);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(h.n_freed, 1);
    ck_assert_int_eq(h.n_closed, 1);
    ck_assert_int_eq(h.n_on_loop, 0);
    ck_assert(!has_owner(&h));
    host_fini(&h);
}
END_TEST

/* Freed while the thread opens it, while its step is written, and with its engine. */
START_TEST(what_is_freed_is_given_up_by_the_store_thread)
{
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
    struct host h;
    rv_exec *x = NULL;

    host_new(&h);
    leave_a_run(&h, false);
    if (_i % 2) {
        h.gate = "claim";
        open_it(&h, NULL);
        x = h.runs[1].exec;
        h.runs[1].exec = NULL;
    } else {
        rv_envelope *env = host_envelope(1, host_now(&h));
        rv_store_set_faults(h.store, (struct rv_store_faults){0});
        rv_journal_free(h.runs[0].journal);
        opts.journal = host_journal(&h, env, host_now(&h));
        h.runs[0].journal = NULL;
        snprintf(h.left, sizeof h.left, "%s", rv_envelope_fields(env)->envelope_id);
        rv_store_set_faults(h.store, (struct rv_store_faults){host_at, &h});
        opts.pipeline = h.w.pipeline;
        opts.takes_journal = true;
        opts.on_free = on_free;
        opts.self = &h;
        h.gate = "commit";
        ck_assert_int_eq(rv_engine_start(h.engine, &opts, env, NULL, &x, NULL), 0);
    }
    host_wait_for_gate(&h);
    rv_exec_free(x);
    ck_assert_int_eq(h.n_freed, _i % 2); /* nothing of one that is not open yet is written */
    if (_i < 2) {
        rv_engine_close(h.engine, on_closed, &h);
        for (int i = 0; i < 20; i++)
            uv_run(&h.loop, UV_RUN_NOWAIT);
        ck_assert_int_eq(h.n_closed, 0);
        host_open_gate(&h);
        uv_run(&h.loop, UV_RUN_DEFAULT);
        ck_assert_int_eq(h.n_closed, 1);
    } else {
        host_open_gate(&h);
        rv_engine_free(h.engine);
        h.engine = NULL;
    }
    ck_assert_int_eq(h.n_freed, 1);
    ck_assert_int_eq(h.n_on_loop, 0);
    ck_assert(!has_owner(&h));
    host_fini(&h);
}
END_TEST

#define LATE "stages: {a: [{output: {}, delay_ms: 600000}]}"

START_TEST(leases_are_renewed_by_the_store_thread)
{
    struct host h;

    host_new(&h);
    world_fini(&h.w);
    world_load(&h.w, STAGES, LATE, NULL);
    host_start_all(&h, 0, 1);
    uv_run(&h.loop, UV_RUN_NOWAIT);
    h.ahead_us += RV_LEASE_DEFAULT_US / 2;
    do /* until the thread has come to it */
        uv_run(&h.loop, UV_RUN_ONCE);
    while (h.n_renewals == 0);
    rv_exec_cancel(h.runs[0].exec);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(h.n_over, 1);
    ck_assert_int_eq(h.n_on_loop, 0);
    host_fini(&h);
}
END_TEST

Suite *opened_suite(void)
{
    Suite *s = suite_create("opened");
    TCase *tc = tcase_create("opened");

    tcase_add_loop_test(tc, a_run_is_opened_by_the_store_thread, 0, N_OPENINGS);
    tcase_add_loop_test(tc, what_is_freed_is_given_up_by_the_store_thread, 0, 4);
    tcase_add_test(tc, leases_are_renewed_by_the_store_thread);
    suite_add_tcase(s, tc);
    return s;
}
