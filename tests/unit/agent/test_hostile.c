/* Answers made to hurt: bytes that are no text, texts without measure, answers of another kind. They fail a stage at
 * worst. */
#include <stdlib.h>
#include <string.h>

#include "tests/kit/drive.h"
#include "tests/unit/agent/suites.h"

#define WIDE "\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80"
#define LONG "x" WIDE WIDE WIDE WIDE WIDE WIDE /* no cut at 60, 100 or 200 bytes falls between characters */

static const char all[] =
    "name: t\nagents:\n  - name: a\n    stage_order: 1\n    has_llm: true\n    model_role: r\n"
    "    pre_process: x.pre\n    post_process: x.post\n    has_policies: true\n    policies: [x.p]\n"
    "    routing_function: x.route\n"
    "  - {name: b, stage_order: 2, has_tools: true, tool_access: all}\nmodels: {r: 'scripted'}\n";

static const struct {
    const char *to, *reply;
} cases[] = {
    {"llm:a", "\xff\xfe\xfd"},
    {"llm:a", "!:\xff broke"},
    {"llm:a", "!:\xc3"},
    {"llm:a", "{'outcome':'" LONG "'}"},
    {"llm:a", "{'outcome':'error','error':'" LONG LONG "'}"},
    {"hook:x.pre", "!:\xc3\x28"},
    {"hook:x.pre", "{'envelope':{'outputs':{'x':'" LONG "'}}}"},
    {"hook:x.post", "!HookError:\xed\xa0\x80"},
    {"policy:x.p", "{'decision':'" LONG "'}"},
    {"policy:x.p", "{'decision':'deny','reason':'" LONG LONG "'}"},
    {"policy:x.p", "!:\xf8"},
    {"route:x.route", "{'next':'" LONG "'}"},
    {"route:x.route", "!:\xff"},
    {"tool:t", "!:\xff\xff"},
    {"tool:t", "\xff"},
    {"tool:t", "{'error':'" LONG LONG "'}"},
};

static const struct drive_tool tool = {"t", RV_RISK_READ_ONLY, NULL, NULL, 0};

/* Proves 5.2/garbage: Whatever hooks, policies, mocks, routing functions, tools and models answer fails at most the
 * stage
 * Proves 11.6/utf8: Text is UTF-8; other bytes are refused at the borders
 * Proves 11.5/values */
START_TEST(hostile_bytes_fail_the_stage_and_not_the_step)
{
    struct drive_answer answers[] = {{cases[_i].to, cases[_i].reply, false, 0},
                                     {"route:x.route", "{'next':'b'}", true, 0}};
    struct drive *d = drive_new(all, &tool, 1);

    drive_envelope(d, "{'outputs':{'plan':{'steps':[{'tool':'t'}]}}}");
    drive_answers(d, answers, 2);
    drive_run(d); /* the driver checks lines, state and effects */
    ck_assert(d->finished);
    if (strncmp(cases[_i].to, "tool", 4) == 0)
        ck_assert_str_eq(drive_state(d, "outputs.b.all_succeeded"), "false");
    else
        ck_assert_int_eq(rv_run_status(d->run), RV_RUN_FAILED);
    drive_free(d);
}
END_TEST

START_TEST(an_error_text_without_measure_is_cut)
{
    size_t n = (size_t)9 << 20;
    char *text = malloc(n + 1);
    struct rv_event ev = {.kind = RV_EVENT_LLM_DONE, .call_id = 2, .failed = true, .error = {text, n}};
    struct drive *d = drive_new(all, &tool, 1);
    struct rv_event pre = {.kind = RV_EVENT_HOOK_DONE, .call_id = 1, .now_us = DRIVE_T0};

    memset(text, 'e', n);
    text[n] = '\0';
    drive_start(d);
    ck_assert_int_eq(drive_step(d, &pre, NULL), 0);
    ev.now_us = d->now_us;
    ck_assert_int_eq(drive_step(d, &ev, NULL), 0);
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_FAILED);
    ck_assert_uint_lt(strlen(drive_state(d, "errors.0.error")), 70000);
    drive_free(d);
    free(text);
}
END_TEST

START_TEST(an_event_of_another_kind_than_the_call_is_refused)
{
    static const enum rv_event_kind kinds[] = {RV_EVENT_LLM_DONE, RV_EVENT_TOOL_DONE, RV_EVENT_TIMER};
    struct drive *d = drive_new(all, &tool, 1);
    struct rv_event right = {.kind = RV_EVENT_HOOK_DONE, .call_id = 1, .now_us = DRIVE_T0};

    drive_start(d);
    for (size_t i = 0; i < RV_COUNT(kinds); i++) {
        struct rv_event ev = {.kind = kinds[i], .call_id = 1, .now_us = DRIVE_T0, .reply = RV_STR_LIT("{}")};
        rv_err *err = NULL;
        ck_assert_int_eq(drive_step(d, &ev, &err), RV_E_STATE);
        rv_err_free(err);
    }
    ck_assert_int_eq(drive_step(d, &right, NULL), 0); /* and the run goes on */
    ck_assert_int_eq(d->calls[1].kind, RV_EFFECT_CALL_LLM);
    drive_free(d);
}
END_TEST

/* What a schema asks for is looked for in what is there, not the other way round. */
START_TEST(many_small_parts_of_a_large_schema_are_no_long_work)
{
    rv_buf yaml = RV_BUF_INIT(1 << 20), reply = RV_BUF_INIT(1 << 20);

    rv_buf_puts(&yaml, "name: t\nmodels: {r: 'scripted'}\nagents:\n  - name: a\n    has_llm: true\n    model_role: r\n"
                       "    output_schema: {type: object, properties: {l: {type: array, items: {type: object, "
                       "properties: {");
    for (int i = 0; i < 4000; i++)
        rv_buf_printf(&yaml, "p%d: {type: string}, ", i);
    rv_buf_puts(&yaml, "q: {type: string}}}}}}\n");
    rv_buf_puts(&reply, "{\"l\":[{\"q\":null}");
    for (int i = 0; i < 200000; i++)
        rv_buf_puts(&reply, ",{}");
    rv_buf_puts(&reply, "]}");
    struct drive *d = drive_new(rv_buf_cstr(&yaml), NULL, 0);
    const struct drive_said said = {"llm:a", .reply = rv_buf_cstr(&reply)};
    drive_talk(d, &said, 1);
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "outputs.a.l.0"), "{}");
    drive_free(d);
    rv_buf_fini(&yaml);
    rv_buf_fini(&reply);
}
END_TEST

TCase *hostile_case(void)
{
    TCase *tc = tcase_create("hostile");

    tcase_add_loop_test(tc, hostile_bytes_fail_the_stage_and_not_the_step, 0, RV_COUNT(cases));
    tcase_add_test(tc, an_error_text_without_measure_is_cut);
    tcase_add_test(tc, an_event_of_another_kind_than_the_call_is_refused);
    tcase_add_test(tc, many_small_parts_of_a_large_schema_are_no_long_work);
    return tc;
}
