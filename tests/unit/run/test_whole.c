/* Whole runs of which a scene cannot tell: when the state is saved, answers in every order, bytes that are no text. */
#include <stdlib.h>
#include <string.h>

#include "tests/kit/drive.h"
#include "tests/unit/run/suites.h"

#define P   "name: t\ndefault_run_mode: parallel\nmodels: {r: scripted}\nagents:\n"
#define LLM "has_llm: true, model_role: r"

START_TEST(saving_can_begin_and_end_on_the_way)
{
    struct drive *d = drive_new("name: t\nagents: [{name: a, has_llm: true, model_role: m, default_next: b},\n"
                                "  {name: b, has_llm: true, model_role: m}]\n",
                                NULL, 0);

    d->opts.saves = RV_SAVES_NONE;
    drive_start(d);
    for (int i = 1; i <= 2; i++) { /* the end of each stage */
        size_t before = d->n_saves;
        rv_run_set_saves(d->run, i == _i ? RV_SAVES_EACH : RV_SAVES_NONE);
        drive_pump_one(d);
        ck_assert_uint_eq(d->n_saves - before, i == _i ? i : 0); /* the last one ends the run, too */
    }
    ck_assert(rv_run_is_finished(d->run));
    drive_free(d);
}
END_TEST

START_TEST(a_very_long_stage_name_can_be_reported)
{
    rv_buf state = RV_BUF_INIT(8192);

    rv_buf_puts(&state, "{'current_stage':'");
    for (int i = 0; i < 199; i++)
        rv_buf_putc(&state, 'n');
    rv_buf_puts(&state, "\xc3\xa9\xc3\xa9'}"); /* a cut at 200 bytes would fall into a character */
    struct drive *d = drive_new("name: t\nagents: [{name: a}]\n", NULL, 0);
    d->opts.continues = true;
    drive_envelope(d, rv_buf_cstr(&state));
    ck_assert_int_eq(drive_run(d), RV_RUN_FAILED);
    drive_free(d);
    rv_buf_fini(&state);
}
END_TEST

/* Proves 7.9/save: The state is handed out for saving after each stage or batch and at every end, whatever the
 * reason
 * Proves W43: The state is handed out on every exit */
START_TEST(the_state_is_saved_after_each_stage_and_at_every_end)
{
    struct drive *d = drive_new(
        "name: t\nagents: [{name: a, stage_order: 1, default_next: b}, {name: b, stage_order: 2}]\n", NULL, 0);
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_uint_eq(d->n_saves, 3);
    drive_free(d);
    /* that the last save is the state at the end is checked by the driver, in each scene */
    d = drive_new("name: t\nagents: [{name: a}]\n", NULL, 0);
    d->opts.saves = RV_SAVES_NONE;
    d->opts.emits = false;
    drive_run(d);
    ck_assert_uint_eq(d->n_saves, 0);
    ck_assert_uint_eq(d->lines.len, 0);
    drive_free(d);
}
END_TEST

/* Proves 7.7/limit: The number of stages that run at once can be limited and changes no result */
START_TEST(max_parallel_limits_what_is_under_way)
{
    struct drive *d = drive_new(P "  - {name: a, stage_order: 1, " LLM "}\n  - {name: b, stage_order: 2, " LLM
                                  "}\n  - {name: c, stage_order: 3, " LLM "}\n",
                                NULL, 0);

    d->opts.max_parallel = 2;
    drive_start(d);
    ck_assert_uint_eq(d->n_calls, 2);
    ck_assert_int_eq(d->calls[0].stage, 0);
    ck_assert_int_eq(d->calls[1].stage, 1);
    struct rv_event ev = {.kind = RV_EVENT_LLM_DONE, .call_id = 2, .now_us = DRIVE_T0 + 5, .reply = RV_STR_LIT("{}")};
    ck_assert_int_eq(drive_step(d, &ev, NULL), 0);
    d->calls[1].over = true;
    ck_assert_uint_eq(d->n_calls, 3);
    ck_assert_int_eq(d->calls[2].stage, 2);
    drive_pump(d);
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_COMPLETED);
    drive_free(d);
}
END_TEST

/* The state does not depend on who answers first, or on how many run at once (rule 11.2). */
/* Proves 11.1/order: The state does not depend on the order in which answers come
 * Proves 7.7/limit */
START_TEST(the_state_depends_neither_on_the_order_of_answers_nor_on_the_limit)
{
    char *states[4] = {NULL};
    const char *yaml =
        P "  - {name: a, stage_order: 1, " LLM "}\n  - {name: b, stage_order: 2, " LLM "}\n"
          "  - {name: c, stage_order: 3, " LLM ", error_next: f}\n  - {name: f, stage_order: 4, requires: [a]}\n";

    for (int i = 0; i < 4; i++) {
        struct drive *d = drive_new(yaml, NULL, 0);
        d->opts.max_parallel = 0;
        drive_start(d);
        static const int order[4][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};
        static const char *const replies[] = {"{\"v\":1,\"outcome\":\"clarify\",\"question\":\"qa\"}",
                                              "{\"v\":2,\"outcome\":\"confirm\",\"message\":\"qb\"}", "nothing"};
        for (int j = 0; j < 3; j++) {
            struct rv_event ev = {.kind = RV_EVENT_LLM_DONE,
                                  .call_id = order[i][j] + 1,
                                  .now_us = DRIVE_T0 + 7,
                                  .reply = rv_str_of(replies[order[i][j]])};
            ck_assert_int_eq(drive_step(d, &ev, NULL), 0);
        }
        ck_assert(d->finished);
        states[i] = drive_dump(rv_run_envelope(d->run));
        drive_free(d);
        ck_assert_str_eq(states[i], states[0]);
    }
    for (int i = 0; i < 4; i++)
        free(states[i]);
}
END_TEST

/* Proves 7.10/text: An answer that is no UTF-8 is refused
 * Proves 11.6/answers: Bytes that are no UTF-8 are refused in answers of people, too */
START_TEST(an_answer_that_is_no_text_is_refused)
{
    struct drive *d = drive_new("name: t\nagents: [{name: b}]\n", NULL, 0);
    struct rv_response r = {.text = RV_STR_LIT("\xff")};
    rv_err *err = NULL;

    drive_envelope(d, "{'current_stage':'b','stage_order':['b'],'interrupt_pending':true,'interrupt':{"
                      "'kind':'clarification','id':'int_1','question':'q','data':{},'created_at':"
                      "'2023-11-14T22:13:20Z'}}");
    ck_assert_int_eq(drive_resume(d, &r, &err), RV_E_INVALID);
    rv_err_free(err);
    ck_assert_str_eq(drive_state(d, "interrupt_pending"), "true");
    drive_free(d);
}
END_TEST

TCase *whole_case(void)
{
    TCase *tc = tcase_create("whole");

    tcase_add_loop_test(tc, saving_can_begin_and_end_on_the_way, 0, 3);
    tcase_add_test(tc, a_very_long_stage_name_can_be_reported);
    tcase_add_test(tc, the_state_is_saved_after_each_stage_and_at_every_end);
    tcase_add_test(tc, max_parallel_limits_what_is_under_way);
    tcase_add_test(tc, the_state_depends_neither_on_the_order_of_answers_nor_on_the_limit);
    tcase_add_test(tc, an_answer_that_is_no_text_is_refused);
    return tc;
}
