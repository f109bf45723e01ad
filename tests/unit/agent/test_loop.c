/* The tool loop of model stages: which calls run when, what the model is told of them, and what it may get wrong. The
 * driver checks in every run that each call of a turn has its result next, in order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/drive.h"
#include "tests/unit/agent/suites.h"

#define HEAD                                                                                                           \
    "name: t\nmodels: {r: 'openai:gpt-x'}\nagents:\n  - name: a\n    has_llm: true\n    model_role: r\n    "           \
    "has_tools: true\n    output_mode: text\n    "
#define ALL "tool_access: all\n    "

static const struct drive_tool tools[] = {
    {"read", RV_RISK_READ_ONLY, "{'type':'object','properties':{'n':{'type':'integer'}},'additionalProperties':false}",
     NULL, 0},
    {"put", RV_RISK_WRITE, NULL, "{'type':'object','required':['n']}", 5000},
    {"wipe", RV_RISK_DESTRUCTIVE, NULL, NULL, 0},
    {"look", RV_RISK_READ_ONLY, NULL, NULL, 0},
};

static struct drive *loop(const char *more)
{
    rv_buf yaml = RV_BUF_INIT(1 << 16);

    rv_buf_printf(&yaml, "%s%s\n", HEAD, more);
    struct drive *d = drive_new(rv_buf_cstr(&yaml), tools, RV_COUNT(tools));
    drive_envelope(d, "{'envelope_id':'env_1','raw_input':'what is it?'}");
    rv_buf_fini(&yaml);
    return d;
}

static const struct drive_call *request(const struct drive *d, size_t n)
{
    const struct drive_call *c = drive_call_at(d, RV_EFFECT_CALL_LLM, n);
    ck_assert_msg(c != NULL, "the model was not asked %zu times", n + 1);
    return c;
}

/* --- rounds --- */

/* Proves 12/cancel */
START_TEST(a_late_timer_beside_a_call_under_way_cancels_the_call)
{
    struct drive *d = loop(ALL "max_retries: 2\n    timeout_seconds: 4");

    DRIVE_TALK(d, {"llm:a", .calls = "c1 read {} | c2 look {}"}, {"tool:read", .reply = "?:busy"},
               {"tool:look", .reply = "{}", .latency_us = 90000000});
    drive_start(d);
    drive_pump_one(d);
    drive_pump_one(d);
    const struct drive_call *timer = drive_call_at(d, RV_EFFECT_ARM_TIMER, 0);
    for (size_t i = 0; i < d->n_calls; i++)
        d->calls[i].over = d->calls[i].over || &d->calls[i] == timer;
    const struct rv_event late = {.kind = RV_EVENT_TIMER, .now_us = DRIVE_T0 + 10000000, .call_id = timer->call_id};
    drive_must_step(d, &late); /* the driver would find a call that goes on after the end */
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_FAILED);
    ck_assert_uint_eq(d->n_cancelled, 1);
    drive_free(d);
}
END_TEST

/* Proves 12/offer: A model is offered what its stage may call, by access and list, sorted by name; nothing else */
START_TEST(only_what_may_be_called_is_offered)
{
    static const struct {
        const char *agent, *want;
    } offers[] = {
        {"tool_access: all", "[\"look\",\"put\",\"read\",\"wipe\"]"}, /* the driver's catalog lists each twice */
        {"tool_access: read", "[\"look\",\"read\"]"},
        {"tool_access: write", "[\"look\",\"put\",\"read\"]"},
        {"tool_access: all\n    allowed_tools: [wipe, read, gone, wipe]", "[\"wipe\",\"read\"]"},
        {"allowed_tools: [put]", "[\"put\"]"},
        {"allowed_tools: {put: true, read: false}", "[\"put\"]"},
        {"tool_access: none", "null"},
        {"allowed_tools: []", "null"},
    };

    for (size_t i = 0; i < RV_COUNT(offers); i++) {
        struct drive *d = loop(offers[i].agent);
        json_object *names = NULL;
        drive_start(d);
        json_object *asked = rv_kit_json(request(d, 0)->request), *list = rv_json_get_arr(asked, "tools");
        for (size_t j = 0; list && j < json_object_array_length(list); j++) {
            names = names ? names : json_object_new_array();
            json_object *name = NULL;
            json_object_object_get_ex(json_object_array_get_idx(list, j), "name", &name);
            json_object_array_add(names, json_object_get(name));
        }
        char *got = rv_kit_text(names);
        ck_assert_msg(strcmp(got, offers[i].want) == 0, "%s: %s", offers[i].agent, got);
        free(got);
        json_object_put(names);
        json_object_put(asked);
        drive_free(d);
    }
    struct drive *d = loop("allowed_tools: [look, read]");
    drive_start(d);
    ck_assert_str_eq(drive_request(request(d, 0), "tools"),
                     "[{\"name\":\"look\",\"parameters\":{\"type\":\"object\"}},{\"name\":\"read\",\"parameters\":{"
                     "\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}},\"additionalProperties\":false}"
                     "}]");
    drive_free(d);
}
END_TEST

/* --- what goes wrong is a result --- */

static char *long_text(const char *head, size_t n, const char *tail)
{
    size_t h = strlen(head), t = strlen(tail);
    char *text = malloc(h + n + t + 1);

    memcpy(text, head, h);
    memset(text + h, 'x', n);
    memcpy(text + h + n, tail, t + 1);
    return text;
}

static const struct {
    const char *head, *tail, *want;
} huge[] = {
    {"{\"v\":\"", "\"}", "the result is too long to be shown"},
    {"{\"error\":\"", "\"}", "xxxx"},
    {"{\"error\":{\"message\":\"m\",\"type\":\"", "\"}}", "xxxx"},
    {"!:", "", "xxxx"},
};

/* Proves 12/told */
START_TEST(a_result_that_is_too_long_is_an_error_result)
{
    char *reply = long_text(huge[_i].head, (size_t)2 << 20, huge[_i].tail);
    const struct drive_said said[] = {
        {"llm:a", .calls = "c1 look {}"}, {"tool:look", .reply = reply}, {"llm:a", .reply = "well"}};
    struct drive *d = loop(ALL);

    drive_talk(d, said, RV_COUNT(said));
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_request(request(d, 1), "turns.1.is_error"), "true");
    const char *content = drive_request(request(d, 1), "turns.1.content");
    ck_assert(strstr(content, huge[_i].want) != NULL);
    ck_assert_uint_lt(strlen(content), 70000);
    drive_free(d);
    free(reply);
}
END_TEST

static const char *const no_lists[] = {"{}",
                                       "7",
                                       "[7]",
                                       "[{}]",
                                       "[{\"id\":\"c\",\"name\":\"read\"}]",
                                       "[{\"id\":1,\"name\":\"read\",\"arguments\":\"{}\"}]",
                                       "[",
                                       "\xff"};

START_TEST(tool_calls_that_are_none_fail_the_attempt)
{
    struct drive *d = loop(ALL "max_retries: 1");
    struct rv_event ev = {.kind = RV_EVENT_LLM_DONE, .now_us = DRIVE_T0, .llm = RV_LLM_ANSWER_NONE};

    ev.llm.tool_calls = rv_str_of(no_lists[_i]);
    drive_start(d);
    ev.call_id = request(d, 0)->call_id;
    d->calls[0].over = true;
    d->keep = false; /* some are no UTF-8 */
    drive_must_step(d, &ev);
    DRIVE_TALK(d, {"llm:a", .reply = "done"});
    drive_pump(d);
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_COMPLETED);
    ck_assert_uint_eq(d->n_llm, 2);
    drive_free(d);
}
END_TEST

TCase *loop_case(void)
{
    TCase *tc = tcase_create("loop");

    tcase_add_test(tc, a_late_timer_beside_a_call_under_way_cancels_the_call);
    tcase_add_test(tc, only_what_may_be_called_is_offered);
    tcase_add_loop_test(tc, a_result_that_is_too_long_is_an_error_result, 0, RV_COUNT(huge));
    tcase_add_loop_test(tc, tool_calls_that_are_none_fail_the_attempt, 0, RV_COUNT(no_lists));
    return tc;
}
