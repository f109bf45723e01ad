/* A model that never stops ends by its bounds: each with its reason, and a text that says which and how to raise it. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/agent/suites.h"
#include "tests/unit/run/drive.h"

#define HEAD                                                                                                           \
    "name: t\nmodels: {r: 'openai:gpt-x'}\nagents:\n  - name: a\n    has_llm: true\n    model_role: r\n    "           \
    "has_tools: true\n    tool_access: all\n    "
#define STATE "{'envelope_id':'env_1','raw_input':'what is it?'}"
#define USED  "{'usage':{'input_tokens':10,'output_tokens':3}}"

static const struct drive_tool tools[] = {{"read", RV_RISK_READ_ONLY, NULL, NULL, 0}};

static const struct {
    const char *agent, *rest, *calls, *reply;
    size_t asked, called;
    enum rv_run_status status;
    const char *reason, *type, *text;
} bounds[] = {
    {"max_rounds: 2", "", "c1 read {}", NULL, 3, 2, RV_RUN_FAILED, "llm_failed_fatally", "LimitError",
     "max_rounds is 2: raise it"},
    {"max_rounds: 1", "", "c1 read {}", NULL, 2, 1, RV_RUN_FAILED, "llm_failed_fatally", "LimitError",
     "max_rounds is 1: raise it"},
    {"max_bad_calls: 3", "", "c1 nope {} | c2 nope {}", NULL, 2, 0, RV_RUN_FAILED, "llm_failed_fatally", "LimitError",
     "max_bad_calls is 3: raise it"},
    {"max_bad_calls: 0", "", "c1 nope {}", NULL, 1, 0, RV_RUN_FAILED, "llm_failed_fatally", "LimitError",
     "max_bad_calls is 0: raise it"},
    {"limits: {tool_calls_limit: 5}", "", "c1 read {} | c2 read {}", NULL, 3, 4, RV_RUN_FAILED, "llm_failed_fatally",
     "LimitError", "has called 4 tools and asks for 2 more, limits.tool_calls_limit is 5: raise it"},
    {"limits: {request_limit: 2}", "", "c1 read {}", NULL, 2, 2, RV_RUN_FAILED, "llm_failed_fatally", "LimitError",
     "the next request would exceed limits.request_limit (2); raise it"},
    {"limits: {request_limit: 2}\n    max_retries: 3", "", NULL, "?:busy", 2, 0, RV_RUN_FAILED, "llm_failed_fatally",
     "LimitError", "limits.request_limit (2)"},
    {"limits: {input_tokens_limit: 25}", "", "c1 read {}", NULL, 3, 2, RV_RUN_FAILED, "llm_failed_fatally",
     "LimitError", "used 30 tokens, limits.input_tokens_limit allows 25: raise it"},
    {"limits: {output_tokens_limit: 5}", "", "c1 read {}", NULL, 2, 1, RV_RUN_FAILED, "llm_failed_fatally",
     "LimitError", "used 6 tokens, limits.output_tokens_limit allows 5: raise it"},
    {"limits: {total_tokens_limit: 13}", "", "c1 read {}", NULL, 2, 1, RV_RUN_FAILED, "llm_failed_fatally",
     "LimitError", "used 26 tokens, limits.total_tokens_limit allows 13: raise it"},
    {"limits: {total_tokens_limit: 12}", "", NULL, "{'v':1}", 1, 0, RV_RUN_FAILED, "llm_failed_fatally", "LimitError",
     "used 13 tokens, limits.total_tokens_limit allows 12: raise it"}, /* of a last answer too */
    {"", "max_llm_calls: 3", "c1 read {}", NULL, 3, 3, RV_RUN_TERMINATED, "max_llm_calls_exceeded", "LimitError",
     "max_llm_calls (3) allows were made: raise max_llm_calls"},
    {"timeout_seconds: 1", "", "c1 read {}", NULL, 1, 1, RV_RUN_FAILED, "llm_failed_fatally", "TimeoutError",
     "stage \\\"a\\\" ran out of time before r (1 s)"},
};

static struct drive *bound_stage(size_t i, const char *more)
{
    static struct drive_said said[2];
    rv_buf yaml = RV_BUF_INIT(1 << 16);
    bool slow = strncmp(bounds[i].agent, "timeout", 7) == 0;

    said[0] =
        (struct drive_said){"llm:a", .reply = bounds[i].reply, .calls = bounds[i].calls, .more = USED, .stays = true};
    said[1] = (struct drive_said){"tool:read", .reply = "{}", .stays = true, .latency_us = slow ? 1000000 : 0};
    rv_buf_printf(&yaml, "%s%s%s\n%s\n", HEAD, bounds[i].agent, more, bounds[i].rest);
    struct drive *d = drive_new(rv_buf_cstr(&yaml), tools, RV_COUNT(tools));
    drive_envelope(d, STATE);
    drive_talk(d, said, RV_COUNT(said));
    rv_buf_fini(&yaml);
    return d;
}

/* Proves 12/bounds: Rounds, bad calls, requests, tool calls, tokens, model calls, money and time each end the stage
 * with a text that names the key; `error_next` catches each
 * Proves p8.8: Requests are counted before each, calls of tools before a batch, tokens after each answer and before
 * the next request
 * Proves 10/tool-loop, 12/told */
START_TEST(a_model_that_never_stops_ends_by_its_bound)
{
    struct drive *d = bound_stage((size_t)_i, "");
    rv_buf reason = RV_BUF_INIT(100);

    ck_assert_int_eq(drive_run(d), bounds[_i].status);
    ck_assert_uint_eq(d->n_llm, bounds[_i].asked);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), bounds[_i].called);
    rv_buf_printf(&reason, "\"%s\"", bounds[_i].reason);
    ck_assert_str_eq(drive_state(d, "terminal_reason"), rv_buf_cstr(&reason));
    const char *text = drive_state(d, "termination_reason");
    ck_assert_msg(strstr(text, bounds[_i].text) != NULL, "%s", text);
    rv_buf_clear(&reason);
    rv_buf_printf(&reason, "\"%s\"", bounds[_i].type);
    ck_assert_str_eq(drive_state(d, "errors.0.error_type"), rv_buf_cstr(&reason));
    ck_assert(drive_replays(d, STATE));
    drive_free(d);
    rv_buf_fini(&reason);
}
END_TEST

/* Proves 12/bounds */
START_TEST(error_next_catches_each_bound)
{
    struct drive *d = bound_stage((size_t)_i, "\n    error_next: b\n  - {name: b}");

    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_uint_eq(d->n_llm, bounds[_i].asked);
    ck_assert_str_eq(drive_state(d, "errors.n"), "1");
    ck_assert_msg(strstr(drive_story(d), "routing_decision:a>b stage_started:b") != NULL, "%s", drive_story(d));
    ck_assert(drive_replays(d, STATE));
    drive_free(d);
}
END_TEST

/* Proves 12/bounds */
START_TEST(what_stays_within_its_limits_is_not_stopped)
{
    struct drive *d =
        drive_new(HEAD "max_rounds: 2\n    max_bad_calls: 1\n    limits: {request_limit: 3, tool_calls_limit: 3, "
                       "input_tokens_limit: 30, output_tokens_limit: 9, total_tokens_limit: 39}\nmax_llm_calls: 3\n",
                  tools, RV_COUNT(tools));

    DRIVE_TALK(d, {"llm:a", .calls = "c1 read {} | c2 nope {}", .more = USED},
               {"llm:a", .calls = "c3 read", .more = USED}, {"llm:a", .reply = "{'v':1}", .more = USED});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "usage.calls"), "3");
    ck_assert_str_eq(drive_state(d, "usage.input_tokens"), "30");
    drive_free(d);
}
END_TEST

TCase *limits_case(void)
{
    TCase *tc = tcase_create("limits");

    tcase_add_loop_test(tc, a_model_that_never_stops_ends_by_its_bound, 0, RV_COUNT(bounds));
    tcase_add_loop_test(tc, error_next_catches_each_bound, 0, RV_COUNT(bounds));
    tcase_add_test(tc, what_stays_within_its_limits_is_not_stopped);
    return tc;
}
