/* A run goes on: after a pause with the numbers it had, in memory or from its saved state, and after a crash with the
 * time it had left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/drive.h"
#include "tests/unit/run/suites.h"

#define SECOND INT64_C(1000000)

static const struct drive_tool tools[] = {{"read", RV_RISK_READ_ONLY, NULL, NULL, 0},
                                          {"wipe", RV_RISK_DESTRUCTIVE, NULL, NULL, 0},
                                          {"put", RV_RISK_WRITE, NULL, NULL, 0}};

/* Pauses in both modes, with calls before, between and after them. */
static const struct {
    const char *yaml;
    int n_pauses;
} runs[] = {
    {"name: t\nmodels: {r: scripted}\nagents:\n"
     "  - {name: a, stage_order: 1, has_llm: true, model_role: r, output_key: plan, default_next: b}\n"
     "  - {name: b, stage_order: 2, has_tools: true, tool_access: all, default_next: c, pre_process: x.pre}\n"
     "  - {name: c, stage_order: 3, has_llm: true, model_role: r, has_policies: true, policies: [x.p]}\n",
     3},
    {"name: t\ndefault_run_mode: parallel\nmodels: {r: scripted}\nagents:\n"
     "  - {name: a, stage_order: 1, has_llm: true, model_role: r, output_key: plan}\n"
     "  - {name: b, stage_order: 2, has_tools: true, tool_access: all, requires: [a]}\n"
     "  - {name: c, stage_order: 3, has_tools: true, tool_access: all, requires: [a], pre_process: x.pre}\n"
     "  - {name: d, stage_order: 4, has_policies: true, policies: [x.p], requires: [a]}\n"
     "  - {name: e, stage_order: 5, has_llm: true, model_role: r, requires: [b, c, d]}\n",
     5},
};

static const char *answer(struct drive *d, const struct drive_call *c, bool *handled)
{
    (void)d;
    *handled = true;
    if (c->kind == RV_EFFECT_CALL_TOOL)
        return strcmp(c->name, "put") == 0 && c->visit < 3 ? "#" : "{'n':1}";
    if (c->kind == RV_EFFECT_CALL_LLM)
        return "{'steps':[{'tool':'read'},{'tool':'wipe'},{'tool':'put'}]}";
    return c->entry == RV_NAME_POLICY ? "{'decision':'confirm'}" : "{}";
}

static struct drive *driven(int which)
{
    struct drive *d = drive_new(runs[which].yaml, tools, RV_COUNT(tools));

    d->answer = answer;
    drive_envelope(d, "{'envelope_id':'env_1','request_id':'req_1','session_id':'sess_1'}");
    return d;
}

/* What the pending interrupt wants to hear. */
static struct rv_response agreed(struct drive *d)
{
    const char *reason = drive_state(d, "interrupt.data.reason");
    struct rv_response r = {.has_approved = true, .approved = true};

    if (strcmp(reason, "absent") != 0)
        r.decision = rv_str_of("happened");
    return r;
}

static const char *after(const rv_buf *b, size_t from)
{
    return rv_buf_cstr(b) + from;
}

/* Proves 7.10/same: A run goes on after a pause with the numbers of its calls and events, the same in memory and
 * from its saved state */
START_TEST(a_run_made_from_the_saved_state_goes_on_byte_for_byte_like_the_one_in_memory)
{
    struct drive *stays = driven(_i), *loads = driven(_i);
    int n = 0;

    loads->keeps_numbers = true;
    ck_assert_int_eq(drive_run(stays), RV_RUN_INTERRUPTED);
    ck_assert_int_eq(drive_run(loads), RV_RUN_INTERRUPTED);
    for (; rv_run_status(stays->run) == RV_RUN_INTERRUPTED; n++) {
        const struct rv_response r = agreed(stays);
        size_t effects_len = stays->effects.len, events_len = stays->events.len;
        struct rv_run_counters before = rv_run_counters(stays->run);
        ck_assert_int_eq(drive_go_on(stays, &r, NULL), 0);
        ck_assert_int_eq(drive_resume(loads, &r, NULL),
                         0); /* the driver checks that no number is left out or repeated */
        ck_assert_str_eq(after(&stays->effects, effects_len), rv_buf_cstr(&loads->effects));
        ck_assert_str_eq(after(&stays->events, events_len), rv_buf_cstr(&loads->events));
        char *a = drive_dump(rv_run_envelope(stays->run)), *b = drive_dump(rv_run_envelope(loads->run));
        ck_assert_str_eq(a, b);
        free(a);
        free(b);
        ck_assert_int_eq(rv_run_counters(stays->run).next_call_id, rv_run_counters(loads->run).next_call_id);
        ck_assert_int_eq(rv_run_counters(stays->run).next_seq, rv_run_counters(loads->run).next_seq);
        ck_assert_int_gt(rv_run_counters(stays->run).next_seq, before.next_seq);
    }
    ck_assert_int_eq(rv_run_status(stays->run), RV_RUN_COMPLETED);
    ck_assert_int_eq(n, runs[_i].n_pauses);
    ck_assert(drive_replays(stays, "{'envelope_id':'env_1','request_id':'req_1','session_id':'sess_1'}"));
    drive_free(stays);
    drive_free(loads);
}
END_TEST

/* Proves 7.10/ended: A paused run can be cancelled; a run that is over takes neither start nor answer
 * Proves 8.6/cancel: It is cancelled with its run */
START_TEST(a_paused_run_can_be_cancelled_and_that_is_final)
{
    struct drive *d = driven(_i / 2);
    const struct rv_response r = {.has_approved = true, .approved = true, .text = RV_STR_LIT("x")};
    const struct rv_event start = {.kind = RV_EVENT_START, .now_us = d->now_us};

    drive_run(d);
    for (int n = 0; n < _i % 2; n++)
        ck_assert_int_eq(drive_go_on(d, &r, NULL), 0);
    ck_assert_int_eq(drive_step(d, &start, NULL), RV_E_STATE); /* a pause is no beginning */
    size_t n_calls = d->n_calls;
    drive_cancel(d);
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_CANCELLED);
    ck_assert_str_eq(drive_state(d, "status"), "\"cancelled\"");
    ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"user_cancelled\"");
    ck_assert_uint_eq(d->n_calls, n_calls);
    ck_assert_int_eq(drive_step(d, &start, NULL), RV_E_STATE);
    ck_assert_int_eq(drive_go_on(d, &r, NULL), RV_E_STATE);
    char *before = drive_dump(rv_run_envelope(d->run));
    drive_cancel(d); /* again: nothing */
    char *now = drive_dump(rv_run_envelope(d->run));
    ck_assert_str_eq(now, before);
    free(now);
    free(before);
    ck_assert(drive_replays(d, "{'envelope_id':'env_1','request_id':'req_1','session_id':'sess_1'}"));
    drive_free(d);
}
END_TEST

static const char *const ends[] = {"completed", "failed", "terminated", "denied"};

/* Proves 7.10/ended */
START_TEST(a_final_end_takes_no_start_and_no_answer)
{
    struct drive *d = drive_new("name: t\nmax_agent_hops: 3\nmodels: {r: scripted}\n"
                                "agents: [{name: a, has_llm: true, model_role: r}]\n",
                                NULL, 0);
    const struct rv_response r = {.has_approved = true, .approved = false, .text = RV_STR_LIT("x")};

    if (_i == 1)
        DRIVE_ANSWERS(d, {"llm:a", "!LLMError:no", true, 0});
    else if (_i == 2)
        DRIVE_ANSWERS(d, {"llm:a", "{'outcome':'terminate'}", true, 0});
    else if (_i == 3)
        DRIVE_ANSWERS(d, {"llm:a", "{'outcome':'confirm'}", true, 0});
    drive_run(d);
    if (_i == 3)
        ck_assert_int_eq(drive_go_on(d, &r, NULL), 0);
    char want[24];
    snprintf(want, sizeof want, "\"%s\"", _i == 3 ? "terminated" : ends[_i]);
    ck_assert_str_eq(drive_state(d, "status"), want);
    const struct rv_event start = {.kind = RV_EVENT_START, .now_us = d->now_us};
    ck_assert_int_eq(drive_step(d, &start, NULL), RV_E_STATE);
    ck_assert_int_eq(drive_go_on(d, &r, NULL), RV_E_STATE);
    const struct rv_event recover = {.kind = RV_EVENT_RECOVER, .now_us = d->now_us};
    ck_assert_int_eq(drive_step(d, &recover, NULL), 0); /* nothing is under way: nothing changes */
    drive_free(d);
}
END_TEST

/* Proves 7.10/same */
START_TEST(numbers_do_not_depend_on_whether_somebody_listens)
{
    struct drive *heard = driven(_i), *unheard = driven(_i);

    unheard->opts.emits = false;
    drive_run(heard);
    drive_run(unheard);
    for (int n = 0; n < runs[_i].n_pauses; n++) {
        struct rv_run_counters a = rv_run_counters(heard->run), b = rv_run_counters(unheard->run);
        ck_assert_int_eq(a.next_seq, b.next_seq);
        ck_assert_int_eq(a.next_call_id, b.next_call_id);
        const struct rv_response r = agreed(heard);
        if (n == runs[_i].n_pauses - 1) { /* the rest is listened to: the driver checks that seq goes on */
            unheard->opts.emits = unheard->keeps_numbers = true;
            unheard->next_seq = b.next_seq - 1;
            size_t len = heard->lines.len;
            ck_assert_int_eq(drive_go_on(heard, &r, NULL), 0);
            ck_assert_int_eq(drive_resume(unheard, &r, NULL), 0);
            ck_assert_uint_gt(unheard->lines.len, 0);
            ck_assert_str_eq(after(&heard->lines, len), rv_buf_cstr(&unheard->lines));
        } else {
            ck_assert_int_eq(drive_go_on(heard, &r, NULL), 0);
            ck_assert_int_eq(drive_go_on(unheard, &r, NULL), 0);
        }
    }
    ck_assert_int_eq(rv_run_status(heard->run), RV_RUN_COMPLETED);
    ck_assert_int_eq(rv_run_status(unheard->run), RV_RUN_COMPLETED);
    drive_free(heard);
    drive_free(unheard);
}
END_TEST

/* --- recovering --- */

#define SLOW                                                                                                           \
    "name: t\nmodels: {r: scripted}\nagents:\n"                                                                        \
    "  - {name: a, stage_order: 1, has_tools: true, tool_access: all, timeout_seconds: 10, default_next: end}\n"       \
    "  - {name: b, stage_order: 2, has_tools: true, tool_access: all, timeout_seconds: 10, default_next: end}\n"
#define PLAN "{'envelope_id':'env_1','outputs':{'plan':{'steps':[{'tool':'read'},{'tool':'read'}]}}}"

/* A step that takes so long, then a crash of that length: is there time for the second step? */
static const struct {
    int64_t took_us, gap_us;
    bool in_time;
} gaps[] = {
    {9 * SECOND, 0, true},
    {10 * SECOND - 1, 0, true},
    {10 * SECOND, 0, false},
    {9 * SECOND, 1000 * SECOND, true},
    {10 * SECOND - 1, 1, true},
    {10 * SECOND - 1, 365 * 86400 * SECOND, true},
    {10 * SECOND, 1000 * SECOND, false}, /* what was used up stays used up */
};

/* Proves 7.10/recover: The time between the death of a process and the recovery does not count */
START_TEST(a_gap_moves_the_deadline_by_exactly_itself)
{
    int row = _i / 2;
    struct drive *d = drive_new(SLOW, tools, RV_COUNT(tools));
    size_t n_stages = _i % 2 ? 2 : 1;

    d->opts.mode = _i % 2 ? RV_MODE_PARALLEL : RV_MODE_SEQUENTIAL;
    drive_envelope(d, PLAN);
    drive_start(d);
    ck_assert_uint_eq(d->n_calls, n_stages);
    /* the crash comes in the middle of what the step takes; another one follows at once */
    const struct rv_event late = {.kind = RV_EVENT_TOOL_DONE, .call_id = 77, .now_us = DRIVE_T0 + 3 * SECOND};
    ck_assert_int_eq(drive_step(d, &late, NULL), 0); /* tells the time, and nothing else */
    size_t n_effects = d->effects.len;
    drive_recover(d, gaps[row].gap_us);
    drive_recover(d, 0);
    ck_assert_uint_eq(d->effects.len, n_effects); /* it asks for nothing */
    for (size_t i = 0; i < n_stages; i++) {
        d->calls[i].over = true;
        const struct rv_event done = {.kind = RV_EVENT_TOOL_DONE,
                                      .call_id = d->calls[i].call_id,
                                      .now_us = DRIVE_T0 + gaps[row].gap_us + gaps[row].took_us,
                                      .reply = RV_STR_LIT("{}")};
        drive_must_step(d, &done);
    }
    ck_assert_uint_eq(d->n_calls, gaps[row].in_time ? 2 * n_stages : n_stages);
    for (size_t i = n_stages; i < d->n_calls; i++) /* the second step has what is left of the moved deadline */
        ck_assert_int_eq(d->calls[i].deadline_us, DRIVE_T0 + 10 * SECOND + gaps[row].gap_us);
    if (gaps[row].in_time)
        for (size_t i = n_stages; i < 2 * n_stages; i++)
            d->calls[i].due_us = d->now_us;
    drive_pump(d);
    ck_assert_int_eq(rv_run_status(d->run), gaps[row].in_time ? RV_RUN_COMPLETED : RV_RUN_FAILED);
    if (gaps[row].in_time) {
        char want[24];
        snprintf(want, sizeof want, "%lld", (long long)gaps[row].took_us / 1000);
        ck_assert_str_eq(drive_state(d, "outputs.a.results.0.execution_time_ms"),
                         want); /* nor does the gap show here */
    } else {
        ck_assert_str_eq(drive_state(d, "errors.0.error_type"), "\"TimeoutError\"");
    }
    ck_assert(drive_replays(d, PLAN));
    drive_free(d);
}
END_TEST

START_TEST(a_clock_that_went_backwards_moves_nothing)
{
    struct drive *d = drive_new(SLOW, tools, RV_COUNT(tools));
    const struct rv_event back = {.kind = RV_EVENT_RECOVER, .now_us = DRIVE_T0 - 1000 * SECOND};

    drive_envelope(d, PLAN);
    drive_start(d);
    ck_assert_int_eq(drive_step(d, &back, NULL), 0);
    d->calls[0].due_us = DRIVE_T0 + 9 * SECOND;
    d->now_us = DRIVE_T0 + 9 * SECOND;
    struct rv_event done = {.kind = RV_EVENT_TOOL_DONE, .call_id = 1, .now_us = d->now_us, .reply = RV_STR_LIT("{}")};
    d->calls[0].over = true;
    drive_must_step(d, &done);
    ck_assert_int_eq(d->calls[1].deadline_us, DRIVE_T0 + 10 * SECOND);
    drive_free(d);
}
END_TEST

START_TEST(recovering_before_the_start_is_refused)
{
    struct drive *d = drive_new(SLOW, tools, RV_COUNT(tools));
    const struct rv_event ev = {.kind = RV_EVENT_RECOVER, .now_us = DRIVE_T0};
    rv_err *err = NULL;

    ck_assert_int_eq(drive_step(d, &ev, &err), RV_E_STATE);
    rv_err_free(err);
    drive_free(d);
}
END_TEST

START_TEST(recovering_at_any_point_changes_nothing_but_time)
{
    struct drive *d = driven(_i);
    int n = 0;

    d->jitter = 5;
    drive_start(d);
    for (bool ended = false; !ended; n++) {
        for (int steps = 0; steps < 3 && !d->finished; steps++) {
            drive_recover(d, n * SECOND);
            drive_pump_one(d);
        }
        if (d->finished && rv_run_status(d->run) == RV_RUN_INTERRUPTED) {
            const struct rv_response r = agreed(d);
            const struct rv_event ev = {.kind = RV_EVENT_ANSWER, .now_us = d->now_us, .response = r};
            drive_must_step(d, &ev);
        } else {
            ended = d->finished;
        }
    }
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_COMPLETED);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&d->events), "\"event\":\"recover\""));
    ck_assert(drive_replays(d, "{'envelope_id':'env_1','request_id':'req_1','session_id':'sess_1'}"));
    drive_free(d);
}
END_TEST

/* --- recording --- */

static const char *const recorded[] = {
    "{\"event\":\"recover\",\"now_us\":5}",
    "{\"event\":\"tool_done\",\"now_us\":5,\"call_id\":7,\"unknown\":true}",
    "{\"event\":\"answer\",\"now_us\":5,\"response\":{\"interrupt_id\":\"int_1\"}}",
    ("{\"event\":\"answer\",\"now_us\":5,\"response\":{\"interrupt_id\":\"int_1\",\"text\":\"t\",\"approved\":true,"
     "\"decision\":\"happened\",\"data\":{\"n\":1.0}}}"),
    "{\"event\":\"answer\",\"now_us\":5,\"response\":{\"decision\":\"happened\",\"data\":[1,\"x\"]}}",
    "{\"event\":\"answer\",\"now_us\":5,\"response\":{\"decision\":\"happened\",\"data\":\"text\"}}",
    "{\"event\":\"answer\",\"now_us\":5,\"response\":{}}",
};

START_TEST(new_events_are_read_as_they_were_written)
{
    json_object *json = rv_kit_json(recorded[_i]);
    rv_buf b = RV_BUF_INIT(1000);
    rv_jw w = rv_jw_on(&b);
    struct rv_event ev;

    ck_assert_int_eq(rv_event_read_json(json, &ev, NULL), 0);
    rv_event_write_json(&ev, &w);
    ck_assert_str_eq(rv_buf_cstr(&b), recorded[_i]);
    json_object_put(json);
    rv_buf_fini(&b);
}
END_TEST

TCase *continue_case(void)
{
    TCase *tc = tcase_create("continue");

    tcase_add_loop_test(tc, a_run_made_from_the_saved_state_goes_on_byte_for_byte_like_the_one_in_memory, 0,
                        RV_COUNT(runs));
    tcase_add_loop_test(tc, a_paused_run_can_be_cancelled_and_that_is_final, 0, 2 * RV_COUNT(runs));
    tcase_add_loop_test(tc, a_final_end_takes_no_start_and_no_answer, 0, RV_COUNT(ends));
    tcase_add_loop_test(tc, numbers_do_not_depend_on_whether_somebody_listens, 0, RV_COUNT(runs));
    tcase_add_loop_test(tc, a_gap_moves_the_deadline_by_exactly_itself, 0, 2 * RV_COUNT(gaps));
    tcase_add_test(tc, a_clock_that_went_backwards_moves_nothing);
    tcase_add_test(tc, recovering_before_the_start_is_refused);
    tcase_add_loop_test(tc, recovering_at_any_point_changes_nothing_but_time, 0, RV_COUNT(runs));
    tcase_add_loop_test(tc, new_events_are_read_as_they_were_written, 0, RV_COUNT(recorded));
    return tc;
}
