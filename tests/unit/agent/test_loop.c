/* The tool loop of model stages: which calls run when, what the model is told of them, and what it may get wrong. The
 * driver checks in every run that each call of a turn has its result next, in order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/agent/suites.h"
#include "tests/unit/run/drive.h"

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

static void replays(struct drive *d)
{
    ck_assert(drive_replays(d, "{'envelope_id':'env_1','raw_input':'what is it?'}"));
}

static const struct drive_call *request(const struct drive *d, size_t n)
{
    const struct drive_call *c = drive_call_at(d, RV_EFFECT_CALL_LLM, n);
    ck_assert_msg(c != NULL, "the model was not asked %zu times", n + 1);
    return c;
}

/* --- rounds --- */

/* Proves 10/tool-loop: A model calls tools itself, round by round, inside one stage, until it answers or a bound
 * ends it */
START_TEST(the_model_is_asked_again_until_it_answers)
{
    struct drive *d = loop(ALL);

    DRIVE_TALK(d, {"llm:a", .reply = "let me see", .calls = "c1 read {'n':1}"},
               {"tool:read", .reply = "{'data':{'x':1}}"}, {"llm:a", .calls = "c2 put {}"},
               {"tool:put", .reply = "{'n':2}"}, {"llm:a", .reply = "it is so"});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "outputs.a"), "{\"response\":\"it is so\"}");
    ck_assert_str_eq(drive_state(d, "llm_call_count"), "3");
    ck_assert_str_eq(drive_state(d, "processing_history.n"), "1");
    ck_assert_str_eq(drive_request(request(d, 0), "turns"), "absent");
    ck_assert_str_eq(
        drive_request(request(d, 1), "turns"),
        "[{\"role\":\"assistant\",\"content\":\"let me see\",\"tool_calls\":[{\"id\":\"c1\",\"name\":\"read\","
        "\"arguments\":\"{\\\"n\\\":1}\"}]},{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"name\":\"read\",\"content\":"
        "\"{\\\"x\\\":1}\"}]");
    ck_assert_str_eq(drive_request(request(d, 2), "turns.n"), "4");
    ck_assert_str_eq(drive_request(request(d, 2), "turns.2.content"), "absent");
    ck_assert_str_eq(drive_request(request(d, 2), "turns.3.content"), "\"{\\\"n\\\":2}\"");
    ck_assert_str_eq(drive_story(d),
                     "pipeline_started stage_started:a llm_call_start:a llm_result:a tool_call_start:a tool_result:a "
                     "llm_call_start:a llm_result:a tool_call_start:a tool_result:a llm_call_start:a llm_result:a "
                     "stage_completed:a=success routing_decision:a>end done:completed");
    replays(d);
    drive_free(d);
}
END_TEST

/* Proves 12/side-by-side: Calls of a reply that stand next to each other, are safe and need no approval run at
 * once, all others alone and in order; results go back in the order of the calls */
START_TEST(safe_calls_run_side_by_side_and_others_alone)
{
    struct drive *d = loop(ALL);

    DRIVE_TALK(
        d, {"llm:a", .calls = "c1 read {} | c2 look {} | c3 read {} | c4 put {} | c5 put {} | c6 look {} | c7 read"},
        {"tool:read", .reply = "{'v':1}", .latency_us = 9000}, {"tool:look", .reply = "{'v':2}", .latency_us = 7000},
        {"tool:read", .reply = "{'v':3}", .latency_us = 3000}, {"tool:put", .reply = "{'n':4}"},
        {"tool:put", .reply = "{'n':5}"}, {"tool:look", .reply = "{'v':6}", .latency_us = 5000},
        {"tool:read", .reply = "{'v':7}"}, {"llm:a", .reply = "done"});
    drive_start(d);
    drive_pump_one(d);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 3); /* in the step of the reply */
    drive_pump(d);
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_COMPLETED);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 7);
    static const char *const want[] = {"{\"v\":1}", "{\"v\":2}", "{\"v\":3}", "{\"n\":4}",
                                       "{\"n\":5}", "{\"v\":6}", "{\"v\":7}"};
    ck_assert_str_eq(drive_request(request(d, 1), "turns.n"), "8");
    for (size_t i = 0; i < RV_COUNT(want); i++) {
        char path[40], id[8];
        snprintf(path, sizeof path, "turns.%zu.tool_call_id", i + 1);
        snprintf(id, sizeof id, "\"c%zu\"", i + 1);
        ck_assert_str_eq(drive_request(request(d, 1), path), id);
        snprintf(path, sizeof path, "turns.%zu.content", i + 1);
        json_object *content = rv_kit_json(drive_request(request(d, 1), path));
        ck_assert_str_eq(json_object_get_string(content), want[i]);
        json_object_put(content);
    }
    ck_assert_msg(strstr(drive_story(d),
                         "llm_result:a tool_call_start:a tool_call_start:a tool_call_start:a tool_result:a "
                         "tool_result:a tool_result:a tool_call_start:a tool_result:a tool_call_start:a tool_result:a "
                         "tool_call_start:a tool_call_start:a tool_result:a tool_result:a llm_call_start:a") != NULL,
                  "%s", drive_story(d));
    replays(d);
    drive_free(d);
}
END_TEST

/* Proves 12/side-by-side */
START_TEST(safe_calls_side_by_side_are_each_tried_again)
{
    struct drive *d = loop(ALL "max_retries: 2");

    DRIVE_TALK(d, {"llm:a", .calls = "c1 read {} | c2 look {}"}, {"tool:read", .reply = "?:busy"},
               {"tool:look", .reply = "!TimeoutError:slow", .latency_us = 500000}, {"tool:read", .reply = "?:busy"},
               {"tool:look", .reply = "{'v':2}"}, {"tool:read", .reply = "?:busy"}, {"llm:a", .reply = "done"});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 5);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_ARM_TIMER), 3);
    ck_assert_str_eq(drive_call_at(d, RV_EFFECT_CALL_TOOL, 2)->key, drive_call_at(d, RV_EFFECT_CALL_TOOL, 0)->key);
    ck_assert_int_eq(drive_call_at(d, RV_EFFECT_CALL_TOOL, 4)->attempt, 3);
    ck_assert_str_eq(drive_request(request(d, 1), "turns.1.is_error"), "true");
    ck_assert_str_eq(drive_request(request(d, 1), "turns.2.is_error"), "absent");
    replays(d);
    drive_free(d);
}
END_TEST

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

static const struct {
    const char *agent, *calls, *reply, *type, *text;
    bool is_bad; /* counts towards max_bad_calls */
} faults[] = {
    {"tool_access: read", "c1 nope {}", NULL, "NotFoundError", "tool not found: \"nope\"; there are \"look\", \"read\"",
     true},
    {"tool_access: read", "c1 put {}", NULL, "AccessDenied", "; it may call \"look\", \"read\"", true},
    {"allowed_tools: [look]", "c1 read {}", NULL, "AccessDenied", "; it may call \"look\"", true},
    {"allowed_tools: [look]", "c1 nope {}", NULL, "NotFoundError", "there are \"look\"", true},
    {ALL, "c1 read {'n':", NULL, "ValidationError", "step 0 can not be run:", true},
    {ALL, "c1 read [1]", NULL, "ValidationError", "arguments must be an object, not array", true},
    {ALL, "c1 read null", NULL, "ValidationError", "arguments must be an object", true},
    {ALL, "c1 read {'n':1,'n':2}", NULL, "ValidationError", "step 0 can not be run: ", true},
    {ALL, "c1 read {'n':1} x", NULL, "ValidationError", "step 0 can not be run: ", true},
    {ALL, "c1 read {'n':'x'}", NULL, "ValidationError", "parameters of tool \"read\":", true},
    {ALL, "c1 read {'m':1}", NULL, "ValidationError", "parameters of tool \"read\":", true},
    {ALL, "c1 final_result {}", NULL, "NotFoundError", "tool not found: \"final_result\"", true},
    {ALL, "c1  {}", NULL, "ValidationError", "the step's tool is no text", true},
    {ALL, "c1 read {}", "!:no such file", "ExecutionError", "no such file", false},
    {ALL, "c1 read {}", "!TimeoutError:too slow", "TimeoutError", "too slow", false},
    {ALL, "c1 read {}", "garbage", "ExecutionError", "", false},
    {ALL, "c1 read {}", "{'status':'failed','error':{'type':'Odd','message':'no'}}", "Odd", "no", false},
    {ALL, "c1 put {}", "{'m':1}", "ValidationError", "result of tool \"put\"", false},
};

/* Proves 12/told: An unknown tool, arguments that are none or do not fit, a tool that fails, a result that is too
 * long: the model is told, a bounded number of times
 * Proves 6.4/not-found: An unknown tool is a NotFoundError that names it and is not recoverable */
START_TEST(what_goes_wrong_with_a_call_is_told_to_the_model)
{
    rv_buf agent = RV_BUF_INIT(4096);
    const struct drive_said said[] = {{"llm:a", .calls = faults[_i].calls, .stays = !faults[_i].reply},
                                      {"tool:read", .reply = faults[_i].reply, .stays = true},
                                      {"tool:put", .reply = faults[_i].reply, .stays = true},
                                      {"llm:a", .reply = "well"}};

    rv_buf_printf(&agent, "%s\n    max_bad_calls: 2", faults[_i].agent);
    struct drive *d = loop(rv_buf_cstr(&agent));
    drive_talk(d, said, RV_COUNT(said));
    enum rv_run_status status = drive_run(d);
    ck_assert_str_eq(drive_request(request(d, 1), "turns.1.is_error"), "true");
    json_object *content = rv_kit_json(drive_request(request(d, 1), "turns.1.content"));
    json_object *error = rv_kit_json(json_object_get_string(content)), *inner = rv_json_get_obj(error, "error");
    const char *type = "", *text = "";
    ck_assert(inner && rv_json_get_text(inner, "type", &type) && rv_json_get_text(inner, "message", &text));
    ck_assert_str_eq(type, faults[_i].type);
    ck_assert_msg(strstr(text, faults[_i].text) != NULL, "%s", text);
    json_object_put(content);
    json_object_put(error);
    ck_assert_int_eq(status, faults[_i].is_bad ? RV_RUN_FAILED : RV_RUN_COMPLETED);
    ck_assert_uint_eq(d->n_llm, faults[_i].is_bad ? 3 : 2);
    if (faults[_i].is_bad) {
        ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"llm_failed_fatally\"");
        text = drive_state(d, "errors.0.error");
        ck_assert_msg(strstr(text, "max_bad_calls is 2: raise it") != NULL, "%s", text);
    }
    replays(d);
    drive_free(d);
    rv_buf_fini(&agent);
}
END_TEST

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

static const struct {
    const char *replies[4], *calls[4], *more[4];
    const char *agent;
    enum rv_run_status status;
    size_t asked;
    const char *error; /* NULL: the output is {"v": 1} */
} finishes[] = {
    {{"{'v':1}"}, {0}, {"{'finish_reason':'stop'}"}, "", RV_RUN_COMPLETED, 1, NULL},
    {{"{'v':1"},
     {0},
     {"{'finish_reason':'length'}"},
     "max_tokens: 9",
     RV_RUN_FAILED,
     1,
     "the reply was cut off at max_tokens (9)"},
    {{"{'v':1}"}, {0}, {"{'finish_reason':'length'}"}, "", RV_RUN_COMPLETED, 1, NULL},
    {{"I will not"},
     {0},
     {"{'finish_reason':'refusal'}"},
     "max_retries: 2",
     RV_RUN_FAILED,
     1,
     "the model refuses to answer: \\\"I will not\\\""},
    {{"half"},
     {0},
     {"{'finish_reason':'content_filter'}"},
     "max_retries: 2",
     RV_RUN_FAILED,
     1,
     "the provider's content filter cut the answer off"},
    {{""},
     {0},
     {"{'finish_reason':'length'}"},
     "max_tokens: 9\n    output_mode: text",
     RV_RUN_FAILED,
     1,
     "the reply was cut off at max_tokens (9): agent \\\"a\\\": the reply has no text"},
    {{NULL}, {"c1 read {}"}, {"{'finish_reason':'content_filter'}"}, ALL, RV_RUN_FAILED, 1, "content filter"},
    {{"so far", "{'v':1}"},
     {0},
     {"{\"finish_reason\":\"pause\",\"opaque\":\"{\\\"provider\\\":\\\"p\\\"}\"}"},
     "",
     RV_RUN_COMPLETED,
     2,
     NULL},
    {{"", "{'v':1}"}, {0}, {"{'finish_reason':'pause'}"}, "", RV_RUN_COMPLETED, 2, NULL},
    /* half a call is an error result */
    {{"", "{'v':1}"}, {"c1 read {'n':"}, {"{'finish_reason':'length'}"}, ALL, RV_RUN_COMPLETED, 2, NULL},
    /* tools that nobody offered */
    {{"", "{'v':1}"},
     {"c1 read {} | c2 put {}"},
     {0},
     "",
     RV_RUN_FAILED,
     1,
     "the model asked for tools (read, put), and the stage offers none: set has_tools"},
    {{"", "{'v':1}"}, {"c1 read {}"}, {0}, "max_retries: 1", RV_RUN_COMPLETED, 2, NULL},
};

/* Proves 12/finish: Why a model stopped decides: a refusal fails the stage, what was cut off is named, calls that
 * may be cut off are not made */
START_TEST(why_the_model_stopped_decides)
{
    struct drive_said said[4] = {{0}};
    rv_buf yaml = RV_BUF_INIT(4096);
    size_t n = 0;

    for (; n < 4 && (finishes[_i].replies[n] || finishes[_i].calls[n]); n++)
        said[n] = (struct drive_said){"llm:a", .reply = finishes[_i].replies[n], .calls = finishes[_i].calls[n],
                                      .more = finishes[_i].more[n]};
    rv_buf_printf(&yaml,
                  "name: t\nmodels: {r: 'openai:gpt-x'}\nagents:\n  - name: a\n    has_llm: true\n    model_role: r\n"
                  "    has_tools: true\n    %s\n",
                  finishes[_i].agent);
    struct drive *d = drive_new(rv_buf_cstr(&yaml), tools, RV_COUNT(tools));
    drive_envelope(d, "{'envelope_id':'env_1','raw_input':'what is it?'}");
    drive_talk(d, said, n);
    ck_assert_int_eq(drive_run(d), finishes[_i].status);
    ck_assert_uint_eq(d->n_llm, finishes[_i].asked);
    if (finishes[_i].error) {
        const char *text = drive_state(d, "errors.0.error");
        ck_assert_msg(strstr(text, finishes[_i].error) != NULL, "%s", text);
        ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"llm_failed_fatally\"");
    } else {
        ck_assert_str_eq(drive_state(d, "outputs.a"), "{\"v\":1}");
    }
    replays(d);
    drive_free(d);
    rv_buf_fini(&yaml);
}
END_TEST

START_TEST(a_stage_without_tools_does_not_go_on_after_a_pause)
{
    struct drive *d =
        drive_new("name: t\nmodels: {r: 'openai:gpt-x'}\nagents: [{name: a, has_llm: true, model_role: r}]", NULL, 0);

    drive_envelope(d, NULL);
    DRIVE_TALK(d, {"llm:a", .reply = "so far", .more = "{'finish_reason':'pause'}"});
    ck_assert_int_eq(drive_run(d), RV_RUN_FAILED);
    ck_assert_uint_eq(d->n_llm, 1);
    ck_assert_ptr_nonnull(strstr(drive_state(d, "errors.0.error"), "paused its answer"));
    drive_free(d);
}
END_TEST

/* Proves 12/opaque: What a provider wants back with a turn goes back to it as it came, and to nobody else */
START_TEST(a_provider_gets_its_own_words_back)
{
    struct drive *d = loop(ALL);

    DRIVE_TALK(d,
               {"llm:a", .reply = "hm", .calls = "c1 read {}",
                .more = "{\"opaque\":\"{\\\"provider\\\":\\\"p\\\",\\\"k\\\":[1]}\"}"},
               {"llm:a", .reply = "hm", .calls = "c1 read {}", .more = "{\"opaque\":\"nonsense\"}"},
               {"llm:a", .reply = "done"});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_request(request(d, 1), "turns.0.opaque"), "{\"provider\":\"p\",\"k\":[1]}");
    ck_assert_str_eq(drive_request(request(d, 2), "turns.2.opaque"), "absent");
    replays(d);
    drive_free(d);
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

    tcase_add_test(tc, the_model_is_asked_again_until_it_answers);
    tcase_add_test(tc, safe_calls_run_side_by_side_and_others_alone);
    tcase_add_test(tc, safe_calls_side_by_side_are_each_tried_again);
    tcase_add_test(tc, a_late_timer_beside_a_call_under_way_cancels_the_call);
    tcase_add_test(tc, only_what_may_be_called_is_offered);
    tcase_add_loop_test(tc, what_goes_wrong_with_a_call_is_told_to_the_model, 0, RV_COUNT(faults));
    tcase_add_loop_test(tc, a_result_that_is_too_long_is_an_error_result, 0, RV_COUNT(huge));
    tcase_add_loop_test(tc, why_the_model_stopped_decides, 0, RV_COUNT(finishes));
    tcase_add_test(tc, a_stage_without_tools_does_not_go_on_after_a_pause);
    tcase_add_test(tc, a_provider_gets_its_own_words_back);
    tcase_add_loop_test(tc, tool_calls_that_are_none_fail_the_attempt, 0, RV_COUNT(no_lists));
    return tc;
}
