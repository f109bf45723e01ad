/* A run that is held while it waits goes on by itself when its question expires. Rule: graph 7. */
#include <stdlib.h>

#include "tests/kit/kit.h"
#include "tests/unit/engine/suites.h"

static const char *const capabilities[] = {NULL};

#define ASKS                                                                                                           \
    "name: asks\nagents:\n  - {name: a, default_next: b, ask: {question: Well?, expires_seconds: 1}, on_answer: "      \
    "{timeout: c}}\n  - {name: b}\n  - {name: c}\n"
#define TWICE "stages: {a: [{output: {}}, {output: {}, delay_ms: 5000}]}"

static rv_exec *start(struct world *w, rv_engine *e)
{
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
    rv_exec *x = NULL;

    opts.pipeline = w->pipeline;
    opts.plugins = w->plugins;
    opts.script = w->script;
    ck_assert_int_eq(rv_engine_start(e, &opts, world_envelope("x", rv_engine_now_us(e)), NULL, &x, NULL), 0);
    return x;
}

START_TEST(a_run_that_waits_goes_on_when_its_question_expires)
{
    const struct rv_engine_opts opts = {.virtual_time = true, .virtual_start_us = 1700000000000000, .workers = 1};
    const struct rv_response late = {.choice = RV_STR_LIT("yes")};
    struct world w;
    rv_engine *e = NULL;
    rv_err *err = NULL;

    world_load(&w, ASKS, TWICE, capabilities);
    ck_assert_int_eq(rv_engine_new(&opts, &e, NULL), 0);
    rv_exec *first = start(&w, e);
    ck_assert_int_eq(rv_engine_wait(e, first, NULL), 0);
    ck_assert_int_eq(rv_exec_status(first), RV_RUN_INTERRUPTED);
    rv_exec *second = start(&w, e); /* its first stage takes five seconds */
    ck_assert_int_eq(rv_engine_wait(e, second, NULL), 0);
    ck_assert_int_eq(rv_exec_status(second), RV_RUN_INTERRUPTED);
    ck_assert_int_eq(rv_exec_status(first), RV_RUN_COMPLETED);
    char *said = rv_kit_text(rv_envelope_output(rv_exec_envelope(first), RV_STR_LIT("a"), NULL));
    ck_assert_str_eq(said, "{\"answer\":{\"choice\":\"timeout\",\"text\":\"\"}}");
    free(said);
    ck_assert_int_eq(rv_exec_answer(first, &late, &err), RV_E_STATE);
    rv_err_free(err);
    rv_exec_free(first);
    rv_exec_free(second); /* its timer goes with it */
    rv_engine_free(e);
    world_fini(&w);
}
END_TEST

static int64_t read_clock(void *self)
{
    return *(int64_t *)self;
}

START_TEST(a_check_refuses_an_expired_answer_after_the_clock_went_back)
{
    int64_t now_us = 1700000000000000;
    const struct rv_engine_opts opts = {.clock = {read_clock, &now_us}, .workers = 1};
    const struct rv_response yes = {.choice = RV_STR_LIT("yes")};
    struct world w;
    rv_engine *e = NULL;

    world_load(&w, ASKS, "stages: {a: [{output: {}}]}", capabilities);
    ck_assert_int_eq(rv_engine_new(&opts, &e, NULL), 0);
    rv_exec *x = start(&w, e);
    ck_assert_int_eq(rv_engine_wait(e, x, NULL), 0);
    ck_assert_int_eq(rv_exec_status(x), RV_RUN_INTERRUPTED);
    ck_assert_int_eq(rv_exec_check_answer(x, &yes, NULL), 0);
    now_us += 2000000;
    ck_assert_int_eq(rv_exec_check_answer(x, &yes, NULL), RV_E_TIMEOUT);
    ck_assert_int_eq(rv_exec_answer(x, &yes, NULL), RV_E_TIMEOUT);
    now_us -= 2000000;
    ck_assert_int_eq(rv_exec_answer(x, &yes, NULL), RV_E_TIMEOUT);
    ck_assert_int_eq(rv_exec_check_answer(x, &yes, NULL), RV_E_TIMEOUT);
    rv_exec_free(x);
    rv_engine_free(e);
    world_fini(&w);
}
END_TEST

Suite *expiry_suite(void)
{
    Suite *suite = suite_create("expiry");
    TCase *tc = tcase_create("expiry");

    tcase_add_test(tc, a_run_that_waits_goes_on_when_its_question_expires);
    tcase_add_test(tc, a_check_refuses_an_expired_answer_after_the_clock_went_back);
    suite_add_tcase(suite, tc);
    return suite;
}
