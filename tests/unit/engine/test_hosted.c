/* Engines on a loop that is the caller's: runs go on while the caller runs the loop, and nothing is left on it. */
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "tests/kit/kit.h"
#include "tests/unit/engine/suites.h"

static const char *const capabilities[] = {"slow", "hello", NULL};

#define PLANS                                                                                                          \
    "name: plans\nagents:\n  - {name: p, default_next: a}\n"                                                           \
    "  - {name: a, has_tools: true, tool_access: all, plan_from: p}\n"
#define MEETS "stages: {p: [{output: {steps: [{tool: meet}]}}]}"
#define LATE  "stages: {p: [{output: {}, delay_ms: 600000}]}"

/* The caller: a loop, what it has loaded, and what it was told. */
struct host {
    uv_loop_t loop;
    struct world w;
    rv_engine *engines[2];
    rv_exec *runs[3];
    bool is_starting; /* rv_engine_start() has not returned */
    int n_told, n_over, n_completed, n_asked;
    bool answers_later;
};

static void on_event(void *self, const struct rv_effect *e, rv_str line)
{
    struct host *h = self;

    (void)e;
    (void)line;
    ck_assert(!h->is_starting);
    h->n_told++;
}

static const struct rv_response answer = {.text = {"the small one", 13}};

static void on_question(void *self, rv_exec *x, const struct rv_pending *q)
{
    struct host *h = self;

    ck_assert(!h->is_starting);
    ck_assert_msg(rv_str_is(q->text, "which database?"), "%.*s", RV_STR_ARG(q->text));
    ck_assert_str_eq(q->stage, "ask");
    h->n_asked++;
    if (!h->answers_later)
        ck_assert_int_eq(rv_exec_answer(x, &answer, NULL), 0);
}

static void on_ended(void *self, rv_exec *x, int rc, const rv_err *err)
{
    struct host *h = self;

    ck_assert_int_eq(rc, 0);
    ck_assert_ptr_null(err);
    ck_assert(rv_exec_has_ended(x));
    h->n_over++;
    h->n_completed += rv_exec_status(x) == RV_RUN_COMPLETED;
    for (size_t i = 0; i < RV_COUNT(h->runs); i++)
        if (h->runs[i] == x)
            h->runs[i] = NULL;
    rv_exec_free(x);
}

static void host_new(struct host *h, size_t n_engines, const char *pipeline, const char *script)
{
    const struct rv_engine_opts opts = {.loop = &h->loop, .workers = 3};
    rv_err *err = NULL;

    *h = (struct host){0};
    ck_assert_int_eq(uv_loop_init(&h->loop), 0);
    world_load(&h->w, pipeline, script, capabilities);
    for (size_t i = 0; i < n_engines; i++)
        ck_assert_int_eq(rv_engine_new(&opts, &h->engines[i], &err), 0);
}

static void start(struct host *h, size_t i, rv_engine *e)
{
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;

    opts.pipeline = h->w.pipeline;
    opts.plugins = h->w.plugins;
    opts.script = h->w.script;
    opts.observer.on_event = on_event;
    opts.observer.on_ended = on_ended;
    opts.observer.on_question = on_question;
    opts.observer.self = h;
    h->is_starting = true;
    ck_assert_int_eq(rv_engine_start(e, &opts, world_envelope("x", rv_engine_now_us(e)), NULL, &h->runs[i], NULL), 0);
    h->is_starting = false;
}

/* What an engine leaves on the loop goes away with one more pass. */
static void host_fini(struct host *h)
{
    for (size_t i = 0; i < RV_COUNT(h->engines); i++) {
        ck_assert(!h->engines[i] || rv_engine_settle(h->engines[i], 15000));
        rv_engine_free(h->engines[i]);
    }
    world_fini(&h->w);
    uv_run(&h->loop, UV_RUN_NOWAIT);
    ck_assert_int_eq(uv_loop_close(&h->loop), 0);
}

START_TEST(three_runs_go_on_while_the_caller_runs_its_loop)
{
    struct host h;

    host_new(&h, 1, "name: three\nagents: [{name: a, post_process: hello.greet_user, default_next: b}, {name: b}]",
             NULL);
    for (size_t i = 0; i < 3; i++)
        start(&h, i, h.engines[0]);
    ck_assert_int_eq(h.n_told, 0);
    ck_assert_int_eq(uv_run(&h.loop, UV_RUN_DEFAULT), 0); /* ends with the last run */
    ck_assert_int_eq(h.n_over, 3);
    ck_assert_int_eq(h.n_completed, 3);
    host_fini(&h);
}
END_TEST

/* Each call waits until the other one is there, too. */
START_TEST(two_engines_share_a_loop)
{
    struct host h;

    host_new(&h, 2, PLANS, MEETS);
    rv_script *second = NULL;
    rv_findings *f = rv_findings_new();
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "script.yaml");
    rv_kit_write(path, MEETS);
    ck_assert_int_eq(rv_script_read(path, f, &second, NULL), 0);
    start(&h, 0, h.engines[0]);
    rv_script *first = h.w.script;
    h.w.script = second;
    start(&h, 1, h.engines[1]);
    ck_assert_int_eq(uv_run(&h.loop, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(h.n_completed, 2);
    rv_script_free(first);
    rv_findings_free(f);
    free(path);
    rv_kit_tmpdir_remove(dir);
    host_fini(&h);
}
END_TEST

static void cancel_it(uv_timer_t *timer)
{
    struct host *h = timer->data;

    rv_exec_cancel(h->runs[0]);
    ck_assert_int_eq(h->n_over, 0); /* it only asks */
    uv_close((uv_handle_t *)timer, NULL);
}

START_TEST(a_run_that_waits_for_a_call_is_cancelled_from_a_callback_of_the_loop)
{
    struct host h;
    uv_timer_t timer;

    host_new(&h, 1, PLANS, LATE);
    start(&h, 0, h.engines[0]);
    uv_timer_init(&h.loop, &timer);
    timer.data = &h;
    uv_timer_start(&timer, cancel_it, 20, 0);
    ck_assert_int_eq(uv_run(&h.loop, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(h.n_over, 1);
    ck_assert_int_eq(h.n_completed, 0);
    host_fini(&h);
}
END_TEST

START_TEST(an_engine_that_is_freed_in_the_middle_of_a_run_leaves_nothing_on_the_loop)
{
    struct host h;

    host_new(&h, 1, PLANS, LATE);
    start(&h, 0, h.engines[0]);
    for (int i = 0; i < 5; i++)
        uv_run(&h.loop, UV_RUN_NOWAIT);
    rv_engine_free(h.engines[0]);
    h.engines[0] = NULL;
    rv_exec_free(h.runs[0]);
    ck_assert_int_eq(uv_run(&h.loop, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(h.n_over, 0); /* nobody is told of a run that its caller gave up */
    host_fini(&h);
}
END_TEST

START_TEST(the_helper_that_waits_runs_the_callers_loop)
{
    struct host h;
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
    rv_exec *run = NULL;

    host_new(&h, 1, "name: one\nagents: [{name: a, post_process: hello.greet_user}]", NULL);
    opts.pipeline = h.w.pipeline;
    opts.plugins = h.w.plugins;
    rv_envelope *env = world_envelope("x", rv_engine_now_us(h.engines[0]));
    ck_assert_int_eq(rv_engine_start(h.engines[0], &opts, env, NULL, &run, NULL), 0);
    ck_assert_int_eq(rv_engine_wait(h.engines[0], run, NULL), 0);
    ck_assert_int_eq(rv_exec_status(run), RV_RUN_COMPLETED);
    rv_exec_free(run);
    host_fini(&h);
}
END_TEST

#define ASKS     "name: asks\nagents: [{name: ask, default_next: use}, {name: use}]"
#define QUESTION "stages: {ask: [{visit: 1, raise: {kind: clarification, question: which database?}}, {output: {}}]}"

START_TEST(a_question_is_answered_where_it_is_asked)
{
    struct host h;

    host_new(&h, 1, ASKS, QUESTION);
    start(&h, 0, h.engines[0]);
    ck_assert_int_eq(uv_run(&h.loop, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(h.n_asked, 1);
    ck_assert_int_eq(h.n_over, 1); /* the pause is not told: the run goes on */
    ck_assert_int_eq(h.n_completed, 1);
    host_fini(&h);
}
END_TEST

static void note_over(void *self, rv_exec *x, int rc, const rv_err *err)
{
    struct host *h = self;

    (void)err;
    (void)x;
    ck_assert_int_eq(rc, 0);
    h->n_over++;
}

START_TEST(a_question_is_answered_later)
{
    const struct rv_response bad = {.interrupt_id = RV_STR_LIT("another")};
    struct host h;
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
    rv_exec *run = NULL;
    rv_err *err = NULL;

    host_new(&h, 1, ASKS, QUESTION);
    h.answers_later = true;
    opts.pipeline = h.w.pipeline;
    opts.script = h.w.script;
    opts.observer = (struct rv_observer){.on_question = on_question, .on_ended = note_over, .self = &h};
    rv_envelope *env = world_envelope("x", rv_engine_now_us(h.engines[0]));
    ck_assert_int_eq(rv_engine_start(h.engines[0], &opts, env, NULL, &run, NULL), 0);
    ck_assert_int_eq(rv_exec_answer(run, &answer, &err), RV_E_STATE); /* it does not wait yet */
    rv_err_free(err);
    err = NULL;
    uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(h.n_asked, 1);
    ck_assert_int_eq(h.n_over, 1);
    ck_assert_int_eq(rv_exec_status(run), RV_RUN_INTERRUPTED);
    ck_assert_int_lt(rv_exec_answer(run, &bad, &err), 0);
    rv_err_free(err);
    err = NULL;
    ck_assert_int_eq(rv_exec_answer(run, &answer, NULL), 0); /* what did not fit changed nothing */
    ck_assert_int_eq(h.n_over, 1);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(h.n_over, 2);
    ck_assert_int_eq(rv_exec_status(run), RV_RUN_COMPLETED);
    ck_assert_int_eq(rv_exec_answer(run, &answer, &err), RV_E_STATE);
    rv_err_free(err);
    rv_exec_free(run);
    host_fini(&h);
}
END_TEST

START_TEST(a_stolen_envelope_begins_another_run)
{
    struct host h;
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
    rv_exec *runs[2] = {NULL};
    rv_err *err = NULL;

    host_new(&h, 1, ASKS, QUESTION);
    opts.pipeline = h.w.pipeline;
    opts.script = h.w.script;
    rv_envelope *env = world_envelope("x", rv_engine_now_us(h.engines[0]));
    ck_assert_int_eq(rv_engine_start(h.engines[0], &opts, env, NULL, &runs[0], NULL), 0);
    ck_assert_ptr_null(rv_exec_steal_envelope(runs[0])); /* the run still needs it */
    uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(rv_exec_status(runs[0]), RV_RUN_INTERRUPTED);
    env = rv_exec_steal_envelope(runs[0]);
    ck_assert_ptr_nonnull(env);
    ck_assert_ptr_null(rv_exec_steal_envelope(runs[0]));
    ck_assert_int_eq(rv_exec_check_answer(runs[0], &answer, NULL), RV_E_STATE);
    ck_assert_int_eq(rv_exec_answer(runs[0], &answer, &err), RV_E_STATE);
    ck_assert_ptr_nonnull(strstr(rv_err_hint_text(err), "rv_engine_start()"));
    rv_err_free(err);
    ck_assert_int_eq(rv_engine_start(h.engines[0], &opts, env, &answer, &runs[1], NULL), 0);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(rv_exec_status(runs[1]), RV_RUN_COMPLETED);
    rv_exec_free(runs[0]);
    rv_exec_free(runs[1]);
    host_fini(&h);
}
END_TEST

START_TEST(simulated_time_takes_no_loop)
{
    struct host h = {0};
    const struct rv_engine_opts opts = {.loop = &h.loop, .virtual_time = true};
    rv_err *err = NULL;
    rv_engine *e = NULL;

    ck_assert_int_eq(rv_engine_new(&opts, &e, &err), RV_E_INVALID);
    rv_err_free(err);
}
END_TEST

Suite *hosted_suite(void)
{
    Suite *s = suite_create("hosted");
    TCase *tc = tcase_create("hosted");

    tcase_add_test(tc, three_runs_go_on_while_the_caller_runs_its_loop);
    tcase_add_test(tc, two_engines_share_a_loop);
    tcase_add_test(tc, a_run_that_waits_for_a_call_is_cancelled_from_a_callback_of_the_loop);
    tcase_add_test(tc, an_engine_that_is_freed_in_the_middle_of_a_run_leaves_nothing_on_the_loop);
    tcase_add_test(tc, the_helper_that_waits_runs_the_callers_loop);
    tcase_add_test(tc, a_question_is_answered_where_it_is_asked);
    tcase_add_test(tc, a_question_is_answered_later);
    tcase_add_test(tc, a_stolen_envelope_begins_another_run);
    tcase_add_test(tc, simulated_time_takes_no_loop);
    suite_add_tcase(s, tc);
    return s;
}
