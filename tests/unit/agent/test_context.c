/* The bound on a request's tokens: what is left out, what stays, and that calls and results are never parted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/agent/call_hooks_internal.h"
#include "coreengine/conversation/conversation.h"
#include "tests/kit/drive.h"
#include "tests/unit/agent/suites.h"

#define FIRST "{'envelope_id':'env_1','raw_input':'what is it?'}"

static const struct drive_tool tools[] = {{"look", RV_RISK_READ_ONLY, NULL, NULL, 0}};

/* --- the pure rule --- */

/* History: a word of the user (4 tokens), a call (2) with its result (4), an answer (4). Then the prompt (4) and two
 * rounds: a call (2) with its result (8), and a call (2) with two results. */
#define W4 "0123456789abcdef"
static const char request[] =
    "{'system':'" W4 "','history':["
    "{'role':'user','content':'" W4 "'},"
    "{'role':'assistant','tool_calls':[{'id':'h','name':'t','arguments':'12345678'}]},"
    "{'role':'tool','tool_call_id':'h','name':'t','content':'" W4 "'},"
    "{'role':'assistant','content':'" W4 "'}],"
    "'prompt':'" W4 "','turns':["
    "{'role':'assistant','content':'" W4 "','tool_calls':[{'id':'a','name':'t','arguments':'12345678'}]},"
    "{'role':'tool','tool_call_id':'a','name':'t','content':'" W4 W4 "'},"
    "{'role':'assistant','tool_calls':[{'id':'b','name':'t','arguments':'12345678'},"
    "{'id':'c','name':'t','arguments':''}]},"
    "{'role':'tool','tool_call_id':'b','name':'t','content':'" W4 "'},"
    "{'role':'tool','tool_call_id':'c','name':'t','content':'" W4 "'}]}";

static const struct {
    int64_t max, tokens, left_out;
    int history, turns;
    bool fits;
} bounds[] = {
    {1000, 46, 0, 4, 5, true}, {46, 46, 0, 4, 5, true},  {45, 42, 1, 3, 5, true}, {42, 42, 1, 3, 5, true},
    {41, 36, 3, 1, 5, true},   {36, 36, 3, 1, 5, true},  {35, 32, 4, 0, 5, true}, {31, 18, 6, 0, 3, true},
    {18, 18, 6, 0, 3, true},   {17, 18, 6, 0, 3, false}, {1, 18, 6, 0, 3, false},
};

static int length(json_object *r, const char *key)
{
    json_object *list = rv_json_get_arr(r, key);
    return list ? (int)json_object_array_length(list) : 0;
}

/* Proves 10/context: A request is held to max_context_tokens: its oldest messages are left out, a call together with
 * its results, until it fits; system prompt, prompt and the newest round stay, and what does not fit even so fails the
 * visit before it is paid for */
START_TEST(the_oldest_messages_are_left_out_and_calls_stay_whole)
{
    json_object *r = rv_kit_json(request);
    int64_t tokens = 0, n = 0;
    bool fits = false;

    ck_assert_int_eq(agent_context_bound(r, bounds[_i].max, &tokens, &n, &fits, NULL), 0);
    ck_assert_int_eq(tokens, bounds[_i].tokens);
    ck_assert_int_eq(n, bounds[_i].left_out);
    ck_assert_int_eq(fits, bounds[_i].fits);
    if (fits) {
        ck_assert_int_eq(length(r, "history"), bounds[_i].history);
        ck_assert_int_eq(length(r, "turns"), bounds[_i].turns);
        ck_assert_int_eq(json_object_object_get_ex(r, "history", NULL), bounds[_i].history > 0);
    }
    json_object_put(r);
}
END_TEST

/* --- in a visit --- */

#define STAGE                                                                                                          \
    "name: t\nmodels: {r: 'openai:x'}\nagents:\n  - {name: a, has_llm: true, has_tools: true, tool_access: all, "      \
    "model_role: r, output_mode: text, prompt_key: p, max_context_tokens: %d%s}\nprompts: {p: '" W4 "'}\n"

static struct drive *talk(int max, const char *more)
{
    char yaml[1000];

    snprintf(yaml, sizeof yaml, STAGE, max, more);
    struct drive *d = drive_new(yaml, tools, 1);
    drive_envelope(d, FIRST);
    DRIVE_TALK(d, {"llm:a", .calls = "c1 look {'n':1}"}, {"tool:look", .reply = "{'x':'" W4 W4 "'}"},
               {"llm:a", .calls = "c2 look {'n':2} | c3 look {}"}, {"tool:look", .reply = "{'x':1}", .stays = true},
               {"llm:a", .reply = "so"});
    return d;
}

/* Proves 10/context */
START_TEST(older_rounds_are_left_out_of_a_request)
{
    struct drive *d = talk(16, "");
    int64_t n = 0;

    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    const struct drive_call *last = drive_call_at(d, RV_EFFECT_CALL_LLM, 2);
    ck_assert_str_eq(drive_request(last, "turns.0.tool_calls.0.id"), "\"c2\"");
    ck_assert_str_eq(drive_request(last, "turns.3"), "absent");
    ck_assert(!json_object_object_get_ex(drive_line(d, "llm_call_start", 1), "messages_left_out", NULL));
    ck_assert(rv_json_get_int(drive_line(d, "llm_call_start", 2), "messages_left_out", &n) && n == 2);
    ck_assert(drive_replays(d, FIRST));
    drive_free(d);
}
END_TEST

START_TEST(a_request_that_can_not_fit_fails_and_costs_nothing)
{
    struct drive *d = talk(6, "");

    ck_assert_int_eq(drive_run(d), RV_RUN_FAILED);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_LLM), 1);
    ck_assert_str_eq(drive_state(d, "errors.0.error_type"), "\"LimitError\"");
    ck_assert_str_eq(drive_state(d, "errors.0.error"),
                     "\"agent \\\"a\\\": the request has about 15 tokens even without its 0 oldest messages, and "
                     "max_context_tokens is 6: raise it, or give the model less to read\"");
    ck_assert(drive_replays(d, FIRST));
    drive_free(d);
}
END_TEST

/* Hooks see what would be sent, and what they change is held to the bound again. */
START_TEST(what_a_hook_adds_is_bounded_too)
{
    struct drive *d = talk(16, ", before_model: x.h");

    drive_run(d);
    ck_assert_str_eq(drive_request(drive_call_at(d, RV_EFFECT_CALL_HOOK, 2), "request.turns.0.tool_calls.0.id"),
                     "\"c2\"");
    drive_free(d);
    d = talk(16, ", before_model: x.h");
    DRIVE_TALK(d, {"hook:x.h", .reply =
                                   "{'action':'replace','request':{'history':[{'role':'user','content':'" W4 W4 W4
                                   "'},{'role':'assistant','content':'" W4 "'},{'role':'user','content':'" W4 "'}]}}"});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_request(drive_call_at(d, RV_EFFECT_CALL_LLM, 0), "history.0.content"), "\"" W4 "\"");
    int64_t n = 0;
    ck_assert(rv_json_get_int(drive_line(d, "llm_call_start", 0), "messages_left_out", &n) && n == 1);
    drive_free(d);
    d = talk(16, ", before_model: x.h");
    DRIVE_TALK(d, {"hook:x.h", .reply = "{'action':'replace','request':{'prompt':'" W4 W4 W4 W4 W4 W4 "'}}"});
    ck_assert_int_eq(drive_run(d), RV_RUN_FAILED);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_LLM), 0);
    drive_free(d);
}
END_TEST

/* What was left out before and after the hooks is told as one number. */
START_TEST(what_is_left_out_twice_is_counted_together)
{
    struct drive *d = talk(16, ", before_model: x.h");
    int64_t n = 0;

    DRIVE_TALK(d, {"llm:a", .reply = NULL, .calls = "c1 look {'n':1}"}, {"tool:look", .reply = "{'x':'" W4 W4 "'}"},
               {"tool:look", .reply = "{'x':'" W4 "'}"}, {"llm:a", .reply = NULL, .calls = "c2 look {'n':2}"},
               {"llm:a", .reply = "so"}, {"hook:x.h", .reply = "{}"}, {"hook:x.h", .reply = "{}"},
               {"hook:x.h",
                .reply = "{'action':'replace','request':{'history':[{'role':'user','content':'" W4 W4 W4 W4 "'}]}}"});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert(rv_json_get_int(drive_line(d, "llm_call_start", 2), "messages_left_out", &n) && n == 3);
    drive_free(d);
}
END_TEST

TCase *context_case(void)
{
    TCase *tc = tcase_create("context");

    tcase_add_loop_test(tc, the_oldest_messages_are_left_out_and_calls_stay_whole, 0, RV_COUNT(bounds));
    tcase_add_test(tc, older_rounds_are_left_out_of_a_request);
    tcase_add_test(tc, a_request_that_can_not_fit_fails_and_costs_nothing);
    tcase_add_test(tc, what_a_hook_adds_is_bounded_too);
    tcase_add_test(tc, what_is_left_out_twice_is_counted_together);
    return tc;
}
