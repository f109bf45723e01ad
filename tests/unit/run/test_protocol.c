/* What the machine does with events that do not fit, with cancelling, and with recordings (rules 7.5, 7.8, 11). */
#include <stdlib.h>
#include <string.h>

#include "tests/kit/drive.h"
#include "tests/unit/run/suites.h"

#define LLM "has_llm: true, model_role: r"
#define ONE "name: t\nmodels: {r: scripted}\nagents: [{name: a, max_retries: 2, " LLM "}]\n"
#define TWO                                                                                                            \
    "name: t\ndefault_run_mode: parallel\nmodels: {r: scripted}\nagents:\n  - {name: a, stage_order: 1, " LLM          \
    ", error_next: b, default_next: b}\n"                                                                              \
    "  - {name: b, stage_order: 2, max_retries: 2, " LLM "}\n  - {name: c, stage_order: 3, requires: [a]}\n"

static int send(struct drive *d, enum rv_event_kind kind, int64_t call_id)
{
    struct rv_event ev = {.kind = kind, .call_id = call_id, .now_us = d->now_us, .reply = RV_STR_LIT("{}")};
    rv_err *err = NULL;
    int rc = drive_step(d, &ev, &err);

    rv_err_free(err);
    return rc;
}

START_TEST(events_before_the_start_or_twice_are_refused)
{
    struct drive *d = drive_new(ONE, NULL, 0);

    ck_assert_int_eq(send(d, RV_EVENT_LLM_DONE, 1), RV_E_STATE);
    ck_assert_int_eq(send(d, RV_EVENT_TIMER, 1), RV_E_STATE);
    ck_assert_int_eq(send(d, RV_EVENT_START, 0), 0);
    ck_assert_int_eq(send(d, RV_EVENT_START, 0), RV_E_STATE);
    ck_assert_int_eq(send(d, RV_EVENT_ANSWER, 0), RV_E_STATE);
    ck_assert_int_eq(send(d, (enum rv_event_kind)(RV_EVENT_RECOVER + 1), 0), RV_E_INVALID);
    ck_assert_uint_eq(d->n_calls, 1);
    drive_pump(d);
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_COMPLETED);
    ck_assert_int_eq(send(d, RV_EVENT_START, 0), RV_E_STATE);
    ck_assert_int_eq(send(d, RV_EVENT_ANSWER, 0), RV_E_STATE);
    ck_assert_int_eq(send(d, RV_EVENT_LLM_DONE, 1), 0); /* late: ignored */
    ck_assert_int_eq(send(d, RV_EVENT_CANCEL, 0), 0);
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_COMPLETED);
    drive_free(d);
}
END_TEST

START_TEST(answers_that_nobody_waits_for_are_ignored)
{
    static const enum rv_event_kind kinds[] = {RV_EVENT_LLM_DONE, RV_EVENT_TOOL_DONE, RV_EVENT_HOOK_DONE,
                                               RV_EVENT_TIMER};
    static const int64_t ids[] = {0, 2, -1, INT64_MAX};
    static const char *const yamls[] = {ONE, TWO};

    for (size_t y = 0; y < 2; y++) {
        struct drive *d = drive_new(yamls[y], NULL, 0);
        drive_start(d);
        char *before = drive_dump(rv_run_envelope(d->run));
        for (size_t k = 0; k < RV_COUNT(kinds); k++)
            for (size_t i = 0; i < RV_COUNT(ids); i++)
                if (ids[i] != 2 || y == 0)
                    ck_assert_int_eq(send(d, kinds[k], ids[i]), 0);
        char *after = drive_dump(rv_run_envelope(d->run));
        ck_assert_str_eq(before, after);
        free(before);
        free(after);
        drive_pump(d);
        ck_assert_int_eq(rv_run_status(d->run), RV_RUN_COMPLETED);
        drive_free(d);
    }
}
END_TEST

START_TEST(a_run_can_be_cancelled_before_it_begins)
{
    struct drive *d = drive_new(ONE, NULL, 0);

    drive_cancel(d);
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_CANCELLED);
    ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"user_cancelled\"");
    ck_assert_str_eq(drive_story(d), "done:cancelled");
    drive_free(d);
}
END_TEST

/* Proves 7.2/cancel: Cancelling ends what is under way, in each mode and between attempts, and keeps what was done
 * Proves 6.1/cancel */
START_TEST(cancelling_a_sequential_run_cancels_what_is_under_way)
{
    struct drive *d = drive_new(ONE, NULL, 0);

    drive_start(d);
    drive_cancel(d);
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_CANCELLED);
    ck_assert(d->calls[0].over);
    ck_assert_str_eq(drive_story(d),
                     "pipeline_started stage_started:a llm_call_start:a stage_completed:a=error done:cancelled");
    ck_assert_str_eq(drive_state(d, "errors.0.error_type"), "\"CancelledError\"");
    ck_assert_str_eq(drive_state(d, "processing_history.0.status"), "\"error\"");
    ck_assert_str_eq(drive_state(d, "terminated"), "true");
    ck_assert_str_eq(drive_state(d, "llm_call_count"), "1");
    ck_assert_int_eq(send(d, RV_EVENT_LLM_DONE, 1), 0);
    drive_free(d);
}
END_TEST

/* Proves 7.2/cancel */
START_TEST(cancelling_in_a_wait_between_attempts_cancels_the_timer)
{
    struct drive *d = drive_new(ONE, NULL, 0);
    struct rv_event ev = {.kind = RV_EVENT_LLM_DONE,
                          .call_id = 1,
                          .now_us = DRIVE_T0,
                          .failed = true,
                          .retryable = true,
                          .error = RV_STR_LIT("busy")};

    drive_start(d);
    ck_assert_int_eq(drive_step(d, &ev, NULL), 0);
    ck_assert_int_eq(d->calls[1].kind, RV_EFFECT_ARM_TIMER);
    drive_cancel(d);
    ck_assert(d->calls[1].over);
    ck_assert_int_eq(send(d, RV_EVENT_TIMER, 2), 0);
    drive_free(d);
}
END_TEST

/* Proves 7.2/cancel */
START_TEST(cancelling_a_parallel_run_cancels_all_siblings_and_keeps_what_was_done)
{
    for (int limit = 0; limit < 2; limit++) {
        struct drive *d = drive_new(TWO, NULL, 0);
        d->opts.max_parallel = (size_t)limit;
        drive_start(d);
        ck_assert_uint_eq(d->n_calls, limit ? 1 : 2);
        if (!limit) {
            ck_assert_int_eq(send(d, RV_EVENT_LLM_DONE, 1), 0);
            d->calls[0].over = true;
        }
        drive_cancel(d);
        ck_assert_int_eq(rv_run_status(d->run), RV_RUN_CANCELLED);
        for (size_t i = 0; i < d->n_calls; i++)
            ck_assert(d->calls[i].over);
        ck_assert_str_eq(drive_state(d, "outputs.a"), limit ? "absent" : "{}");
        ck_assert_str_eq(drive_state(d, "active_stages"), "{}");
        ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"user_cancelled\"");
        ck_assert_str_eq(drive_state(d, "failed_stages"),
                         limit ? "{\"a\":\"cancelled by the caller\"}" : "{\"b\":\"cancelled by the caller\"}");
        drive_free(d);
    }
}
END_TEST

START_TEST(a_cancelled_run_is_cancelled_even_if_a_stage_had_failed_before)
{
    struct drive *d = drive_new(
        "name: t\ndefault_run_mode: parallel\nmodels: {r: scripted}\nagents:\n  - {name: a, stage_order: 1, " LLM "}\n"
        "  - {name: b, stage_order: 2, " LLM "}\n",
        NULL, 0);
    struct rv_event ev = {
        .kind = RV_EVENT_LLM_DONE, .call_id = 1, .now_us = DRIVE_T0, .failed = true, .error = RV_STR_LIT("x")};

    drive_start(d);
    ck_assert_int_eq(drive_step(d, &ev, NULL), 0);
    d->calls[0].over = true;
    drive_cancel(d);
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_CANCELLED);
    ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"user_cancelled\"");
    ck_assert_str_eq(drive_state(d, "errors.n"), "2");
    drive_free(d);
}
END_TEST

/* --- recordings --- */

static const char *const bad_events[] = {
    "{}",
    "[]",
    "null",
    "7",
    "{'event':7}",
    "{'event':'what','now_us':1}",
    "{'event':'start'}",
    "{'event':'start','now_us':'1'}",
    "{'event':'llm_done','now_us':1}",
    "{'event':'timer','now_us':1}",
    "{'event':'hook_done','now_us':1,'call_id':'1'}",
    "{'event':'answer','now_us':1}",
    "{'event':'answer','now_us':1,'response':null}",
    "{'event':'answer','now_us':1,'response':'yes'}",
    "{'event':'answer','now_us':1,'response':{'text':7}}",
    "{'event':'answer','now_us':1,'response':{'decision':null}}",
    "{'event':'answer','now_us':1,'response':{'interrupt_id':[]}}",
    "{'event':'answer','now_us':1,'response':{'choice':true}}",
    "{'event':'answer','now_us':1,'response':{'approved':'true'}}",
    "{'event':'answer','now_us':1,'response':{'arguments':[]}}",
    "{'event':'answer','now_us':1,'response':{'expired':0}}",
    "{'event':'answer','now_us':1,'response':{'cancelled':'no'}}",
};

START_TEST(a_broken_recording_is_refused)
{
    json_object *json = rv_kit_json(bad_events[_i]);
    struct rv_event ev = {.kind = RV_EVENT_START, .now_us = -5};

    ck_assert_int_eq(rv_event_read_json(json, &ev, NULL), RV_E_INVALID);
    ck_assert_int_eq(ev.now_us, -5); /* written only on success */
    json_object_put(json);
}
END_TEST

START_TEST(an_event_is_read_as_it_was_written)
{
    json_object *data = rv_kit_json("{'k':[1.50,null]}");
    const struct rv_event events[] = {
        {.kind = RV_EVENT_ANSWER,
         .now_us = 5,
         .response = {.text = RV_STR_LIT(""),
                      .has_approved = true,
                      .approved = false,
                      .decision = RV_STR_LIT("reject"),
                      .data = data}},
        {.kind = RV_EVENT_ANSWER, .now_us = 5},
        {.kind = RV_EVENT_LLM_DONE,
         .now_us = INT64_MAX,
         .call_id = 9,
         .reply = RV_STR_LIT("a\0b"),
         .llm = {.finish = RV_FINISH_LENGTH,
                 .error_kind = RV_UNSET,
                 .tool_calls = RV_STR_LIT("[]"),
                 .opaque = RV_STR_LIT("{}"),
                 .role = "backup",
                 .has_usage = true,
                 .usage = {.input_tokens = 3, .output_tokens = 4, .cached_tokens = 2, .reasoning_tokens = 1},
                 .latency_us = 7,
                 .first_token_us = 5,
                 .attempts = 2}},
        {.kind = RV_EVENT_TOOL_DONE,
         .now_us = 0,
         .call_id = 1,
         .failed = true,
         .error_type = "TimeoutError",
         .error = RV_STR_LIT("\xc3\xa9"),
         .retryable = true},
        {.kind = RV_EVENT_CANCEL, .now_us = 1},
        {.kind = RV_EVENT_TIMER, .now_us = 1, .call_id = 2},
    };

    for (size_t i = 0; i < RV_COUNT(events); i++) {
        rv_buf first = RV_BUF_INIT(4096), again = RV_BUF_INIT(4096);
        rv_jw w = rv_jw_on(&first), w2 = rv_jw_on(&again);
        json_object *json = NULL;
        struct rv_event ev;
        rv_event_write_json(&events[i], &w);
        ck_assert_int_eq(rv_json_parse(rv_buf_str(&first), NULL, &json, NULL), 0);
        ck_assert_int_eq(rv_event_read_json(json, &ev, NULL), 0);
        rv_event_write_json(&ev, &w2);
        ck_assert_str_eq(rv_buf_cstr(&first), rv_buf_cstr(&again));
        ck_assert_int_eq(ev.response.has_approved, events[i].response.has_approved);
        ck_assert(rv_str_eq(ev.reply, events[i].reply));
        ck_assert((ev.response.text.ptr != NULL) == (events[i].response.text.ptr != NULL));
        json_object_put(json);
        rv_buf_fini(&first);
        rv_buf_fini(&again);
    }
    json_object_put(data);
}
END_TEST

/* Proves 5.1/sound: A pipeline with errors makes no run */
START_TEST(a_pipeline_with_errors_is_not_run)
{
    struct drive *d = drive_new(ONE, NULL, 0);
    rv_run *run = NULL;
    rv_err *err = NULL;

    drive_envelope(d, NULL);
    d->p->is_sound = false;
    rv_envelope *env = d->env;
    d->env = NULL;
    ck_assert_int_eq(rv_run_new(d->p, NULL, &d->opts, env, &run, &err), RV_E_STATE); /* takes env */
    rv_err_free(err);
    ck_assert_ptr_null(run);
    drive_free(d);
}
END_TEST

TCase *protocol_case(void)
{
    TCase *tc = tcase_create("protocol");

    tcase_add_test(tc, events_before_the_start_or_twice_are_refused);
    tcase_add_test(tc, answers_that_nobody_waits_for_are_ignored);
    tcase_add_test(tc, a_run_can_be_cancelled_before_it_begins);
    tcase_add_test(tc, cancelling_a_sequential_run_cancels_what_is_under_way);
    tcase_add_test(tc, cancelling_in_a_wait_between_attempts_cancels_the_timer);
    tcase_add_test(tc, cancelling_a_parallel_run_cancels_all_siblings_and_keeps_what_was_done);
    tcase_add_test(tc, a_cancelled_run_is_cancelled_even_if_a_stage_had_failed_before);
    tcase_add_loop_test(tc, a_broken_recording_is_refused, 0, RV_COUNT(bad_events));
    tcase_add_test(tc, an_event_is_read_as_it_was_written);
    tcase_add_test(tc, a_pipeline_with_errors_is_not_run);
    return tc;
}
