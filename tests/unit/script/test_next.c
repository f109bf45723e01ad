/* Which entry answers which call. */
#include "tests/unit/script/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"

/* Calls "stage visit text", their replies (or "!" and a part of the error). */
static const struct {
    const char *name, *script;
    struct {
        const char *stage;
        int64_t visit;
        const char *text, *want;
    } calls[5];
} models[] = {
    {"one per call, the last repeats",
     "models: {a: [{text: one}, {text: two}]}",
     {{"a", 1, "p", "one"}, {"a", 2, "p", "two"}, {"a", 3, "p", "two"}, {"a", 4, "p", "two"}}},
    {"repeat: false runs dry",
     "models: {a: [{text: one}]}\nrepeat: false",
     {{"a", 1, "p", "one"},
      {"a", 2, "p", "!no further model reply for stage \"a\", visit 2 (all were used, and repeat is off)"}}},
    {"each stage counts for itself",
     "models: {a: [{text: a1}, {text: a2}], b: [{text: b1}]}",
     {{"b", 1, "p", "b1"}, {"a", 1, "p", "a1"}, {"b", 2, "p", "b1"}, {"a", 2, "p", "a2"}}},
    {"an unknown stage is named, with the head of its prompt",
     "models: {a: [{text: one}]}",
     {{"b", 3, "tell me", "!the script has no model reply for stage \"b\", visit 3, prompt \"tell me\""}}},
    {"a long prompt is cut",
     "models: {a: [{text: one}]}",
     {{"b", 1, "0123456789012345678901234567890123456789012345678901234567890123456789012345678\xc3\xa9tail",
       "!0123456789012345678...\""}}},
    {"a flat list goes by its matchers",
     "models:\n  - {stage: a, text: a1}\n  - {stage: b, text: b1}\n  - {stage: a, visit: 3, text: a3}\n  - {contains: "
     "moon, text: m}\n",
     {{"b", 1, "p", "b1"},
      {"a", 1, "p", "a1"},
      {"a", 3, "p", "a3"},
      {"c", 1, "the moon", "m"},
      {"c", 1, "sun", "!stage \"c\""}}},
    {"matchers work in named lists too",
     "models: {a: [{contains: x, text: ex}, {text: other}]}",
     {{"a", 1, "y", "other"}, {"a", 2, "x", "ex"}, {"a", 3, "x", "other"}, {"a", 4, "y", "other"}}},
    {"json is written compactly",
     "models: {a: [{json: {b: [1, 2.50, null], a: \"q\\\"\"}}, {json: null}, {json: [1]}]}",
     {{"a", 1, "", "{\"b\":[1,2.50,null],\"a\":\"q\\\"\"}"}, {"a", 2, "", "null"}, {"a", 3, "", "[1]"}}},
    {"chunks make one text", "models: {a: [{chunks: [x, 'y z', '']}]}", {{"a", 1, "", "xy z"}}},
};

START_TEST(replies_of_models)
{
    rv_script *s = script_of(models[_i].script, NULL);

    for (size_t i = 0; i < RV_COUNT(models[_i].calls) && models[_i].calls[i].stage; i++) {
        const char *want = models[_i].calls[i].want;
        const struct rv_script_call call = {.kind = RV_SCRIPT_MODEL,
                                            .stage = models[_i].calls[i].stage,
                                            .visit = models[_i].calls[i].visit,
                                            .text = rv_str_of(models[_i].calls[i].text)};
        struct rv_script_reply reply;
        rv_err *err = NULL;
        int rc = rv_script_next(s, &call, &reply, &err);
        if (want[0] == '!') {
            ck_assert_int_eq(rc, RV_E_NOT_FOUND);
            ck_assert_msg(strstr(rv_err_text(err), want + 1), "%s: %s", models[_i].name, rv_err_text(err));
            rv_err_free(err);
            continue;
        }
        ck_assert_msg(rc == 0, "%s, call %zu", models[_i].name, i);
        ck_assert_msg(strcmp(rv_buf_cstr(&reply.body), want) == 0, "%s: %s", models[_i].name, rv_buf_cstr(&reply.body));
        ck_assert_int_eq(reply.answer.finish, RV_FINISH_STOP);
        rv_script_reply_fini(&reply);
    }
    rv_script_free(s);
}
END_TEST

static const struct {
    const char *entry, *type, *error;
    bool retryable;
} errors[] = {
    {"{error: {kind: rate_limited, status: 429, retry_after_ms: 20}}", "LLMError",
     "rate limited (status 429) (retry after 20 ms)", true},
    {"{error: {kind: overloaded}}", "LLMError", "the model is overloaded", true},
    {"{error: {kind: overloaded, message: oops}}", "LLMError", "oops", true},
    {"{error: oops}", "LLMError", "oops", true},
    {"{error: {kind: timeout}}", "TimeoutError", "the model did not answer in time", true},
    {"{error: {kind: connection}}", "LLMError", "the connection broke", true},
    {"{error: {kind: protocol}}", "LLMError", "the answer could not be understood", true},
    {"{error: {kind: bad_request}}", "LLMError", "the request was refused as invalid", false},
    {"{error: {kind: auth}}", "LLMError", "the key was refused", false},
    {"{error: {kind: context_too_long}}", "LLMError", "the prompt is too long for the model", false},
    {"{error: {kind: content_filter}}", "LLMError", "the provider's content filter refused it", false},
    {"{error: {kind: cancelled}}", "CancelledError", "the call was cancelled", false},
    {"{error: {kind: auth, retryable: true}}", "LLMError", "the key was refused", true},
    {"{error: {kind: timeout, retryable: false}}", "TimeoutError", "the model did not answer in time", false},
    {"{error: {kind: rate_limited, message: slow down, retry_after_ms: 20}}", "LLMError", "slow down", true},
    {"{text: so far, error: {kind: connection}}", "LLMError", "the connection broke", true},
};

/* Proves W16/engine */
START_TEST(errors_of_models)
{
    char text[256];
    struct rv_script_reply reply;
    const struct rv_script_call call = {.kind = RV_SCRIPT_MODEL, .stage = "a", .visit = 1};

    snprintf(text, sizeof text, "models: {a: [%s]}", errors[_i].entry);
    rv_script *s = script_of(text, NULL);
    ck_assert_int_eq(rv_script_next(s, &call, &reply, NULL), 0);
    ck_assert(reply.failed);
    ck_assert_str_eq(reply.error_type, errors[_i].type);
    ck_assert_str_eq(reply.error, errors[_i].error);
    ck_assert_int_eq(reply.retryable, errors[_i].retryable);
    rv_script_reply_fini(&reply);
    rv_script_free(s);
}
END_TEST

static const struct {
    enum rv_script_kind kind;
    const char *entry, *body, *type, *error;
    bool retryable;
} others[] = {
    {RV_SCRIPT_STAGE, "{output: {a: 1}}", "{\"output\":{\"a\":1}}", NULL, NULL, false},
    {RV_SCRIPT_STAGE, "{output: {a: 1}, outcome: skip}", "{\"output\":{\"a\":1,\"outcome\":\"skip\"}}", NULL, NULL,
     false},
    {RV_SCRIPT_STAGE, "{outcome: loop_back}", "{\"output\":{\"outcome\":\"loop_back\"}}", NULL, NULL, false},
    {RV_SCRIPT_STAGE, "{raise: {kind: checkpoint, message: m, data: {x: 1}}}",
     "{\"raise\":{\"kind\":\"checkpoint\",\"message\":\"m\",\"data\":{\"x\":1}}}", NULL, NULL, false},
    {RV_SCRIPT_STAGE, "{error: no}", NULL, "ProcessingError", "no", false},
    {RV_SCRIPT_STAGE, "{error: {type: PolicyError, message: no}}", NULL, "PolicyError", "no", false},
    {RV_SCRIPT_TOOL, "{result: {hits: []}}", "{\"hits\":[]}", NULL, NULL, false},
    {RV_SCRIPT_TOOL, "{error: gone}", NULL, "ExecutionError", "gone", false},
    {RV_SCRIPT_TOOL, "{error: {type: NotFoundError, message: gone, recoverable: true}}", NULL, "NotFoundError", "gone",
     true},
};

START_TEST(entries_of_stages_and_tools)
{
    char text[256];
    struct rv_script_reply reply;
    const struct rv_script_call call = {.kind = others[_i].kind, .stage = "a", .tool = "a", .visit = 1};

    snprintf(text, sizeof text, "%s: {a: [%s]}", others[_i].kind == RV_SCRIPT_STAGE ? "stages" : "tools",
             others[_i].entry);
    rv_script *s = script_of(text, NULL);
    ck_assert_int_eq(rv_script_next(s, &call, &reply, NULL), 0);
    ck_assert_int_eq(reply.failed, others[_i].error != NULL);
    if (reply.failed) {
        ck_assert_str_eq(reply.error_type, others[_i].type);
        ck_assert_str_eq(reply.error, others[_i].error);
        ck_assert_int_eq(reply.retryable, others[_i].retryable);
    } else {
        ck_assert_str_eq(rv_buf_cstr(&reply.body), others[_i].body);
    }
    rv_script_reply_fini(&reply);
    rv_script_free(s);
}
END_TEST

START_TEST(what_else_a_reply_says)
{
    struct rv_script_reply reply;
    const struct rv_script_call call = {.kind = RV_SCRIPT_MODEL, .stage = "a", .visit = 1};
    rv_script *s =
        script_of("models: {a: [{chunks: [x, y], delay_ms: 20, finish_reason: length, tool_calls: [{name: t}],"
                  " usage: {input_tokens: 90, output_tokens: 4}}]}",
                  NULL);

    ck_assert_int_eq(rv_script_next(s, &call, &reply, NULL), 0);
    ck_assert_uint_eq(reply.n_deltas, 2);
    ck_assert(rv_str_is(reply.deltas[1].text, "y"));
    ck_assert_int_eq(reply.deltas[1].delay_ms, 20);
    ck_assert_int_eq(reply.delay_ms, 20);
    ck_assert(reply.answer.has_usage);
    ck_assert_int_eq(reply.answer.usage.input_tokens, 90);
    ck_assert_int_eq(reply.answer.usage.output_tokens, 4);
    ck_assert_int_eq(reply.answer.finish, RV_FINISH_LENGTH);
    ck_assert(!reply.failed);
    ck_assert(rv_str_is(reply.answer.tool_calls, "[{\"id\":\"call_1\",\"name\":\"t\",\"arguments\":\"{}\"}]"));
    rv_script_reply_fini(&reply);
    rv_script_free(s);
}
END_TEST

/* What a reply comes to besides its text, as journals keep it. */
static const struct {
    const char *entry, *body, *answer;
} results[] = {
    {"{text: x}", "x", "{'finish_reason':'stop'}"},
    {"{text: x, finish_reason: null}", "x", "{}"},
    {"{text: x, finish_reason: refusal}", "x", "{'finish_reason':'refusal'}"},
    {"{text: x, usage: {}}", "x", "{'finish_reason':'stop','usage':{'input_tokens':0,'output_tokens':0}}"},
    {"{text: x, usage: {input_tokens: 9, output_tokens: 8, cached_tokens: 7, cache_write_tokens: 6, "
     "reasoning_tokens: 5}}",
     "x",
     "{'finish_reason':'stop','usage':{'input_tokens':9,'output_tokens':8,'cached_tokens':7,"
     "'cache_write_tokens':6,'reasoning_tokens':5}}"},
    {"{text: x, opaque: {provider: p, n: 1.50}, answered_by: other, attempts: 3}", "x",
     "{'finish_reason':'stop','opaque':'{\\'provider\\':\\'p\\',\\'n\\':1.50}','answered_by':'other','attempts':3}"},
    {"{text: x, opaque: '{ \"a\": 1}'}", "x", "{'finish_reason':'stop','opaque':'{ \\'a\\': 1}'}"},
    {"{tool_calls: [{name: a, arguments: {q: [1, 2.50]}}, {name: b, id: mine, arguments: '{broken'}]}", "",
     "{'finish_reason':'tool_calls','tool_calls':'[{\\'id\\':\\'call_1\\',\\'name\\':\\'a\\',\\'arguments\\':"
     "\\'{\\\\\\'q\\\\\\':[1,2.50]}\\'},{\\'id\\':\\'mine\\',\\'name\\':\\'b\\',\\'arguments\\':\\'{broken\\'}]'}"},
    {"{text: look, tool_calls: [{name: a, id: call_2}, {name: ''}]}", "look",
     "{'finish_reason':'tool_calls','tool_calls':'[{\\'id\\':\\'call_2\\',\\'name\\':\\'a\\',\\'arguments\\':"
     "\\'{}\\'},{\\'id\\':\\'call_3\\',\\'name\\':\\'\\',\\'arguments\\':\\'{}\\'}]'}"},
    {"{chunks: [so, ' far'], error: {kind: overloaded, retry_after_ms: 7, billed: true}}", "so far",
     "{'error_kind':'overloaded','billed':true,'retry_after_us':7000}"},
    {"{error: oops, finish_reason: length, usage: {input_tokens: 1}}", "",
     "{'finish_reason':'length','usage':{'input_tokens':1,'output_tokens':0},'error_kind':'overloaded'}"},
};

START_TEST(what_replies_come_to)
{
    char text[512], want[1024];
    const struct rv_script_call call = {.kind = RV_SCRIPT_MODEL, .stage = "a", .visit = 1};
    struct rv_script_reply reply;
    rv_buf answer = RV_BUF_INIT(1 << 16);
    rv_jw w = rv_jw_on(&answer);

    snprintf(text, sizeof text, "models: {a: [%s]}", results[_i].entry);
    rv_script *s = script_of(text, NULL);
    ck_assert_int_eq(rv_script_next(s, &call, &reply, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&reply.body), results[_i].body);
    rv_jw_obj(&w);
    rv_llm_answer_write(&reply.answer, &w);
    rv_jw_obj_end(&w);
    snprintf(want, sizeof want, "%s", results[_i].answer);
    for (char *c = want; *c; c++)
        if (*c == '\'')
            *c = '"';
    ck_assert_str_eq(rv_buf_cstr(&answer), want);
    rv_script_reply_fini(&reply);
    rv_script_free(s);
    rv_buf_fini(&answer);
}
END_TEST

START_TEST(chunks_have_kinds_and_waits_of_their_own)
{
    static const struct {
        bool is_thinking;
        int64_t delay_ms;
        const char *text;
    } want[] = {{false, 20, "x"}, {true, 5, "hm"}, {false, 0, "y"}, {false, 20, "z"}, {false, 9, ""}};
    const struct rv_script_call call = {.kind = RV_SCRIPT_MODEL, .stage = "a", .visit = 1};
    struct rv_script_reply reply;
    rv_script *s = script_of("models: {a: [{chunks: [x, {thinking: hm, delay_ms: 5}, {text: y, delay_ms: 0}, {text: z},"
                             " {delay_ms: 9}], delay_ms: 20}]}",
                             NULL);

    ck_assert_int_eq(rv_script_next(s, &call, &reply, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&reply.body), "xyz");
    ck_assert_uint_eq(reply.n_deltas, RV_COUNT(want));
    for (size_t i = 0; i < RV_COUNT(want); i++) {
        ck_assert_int_eq(reply.deltas[i].is_thinking, want[i].is_thinking);
        ck_assert_int_eq(reply.deltas[i].delay_ms, want[i].delay_ms);
        ck_assert(rv_str_is(reply.deltas[i].text, want[i].text));
    }
    rv_script_reply_fini(&reply);
    rv_script_free(s);
}
END_TEST

START_TEST(a_reply_without_chunks_is_whole)
{
    static const char *const entries[] = {"{text: x}", "{json: 1}", "{chunks: []}", "{error: no}",
                                          "{tool_calls: [{name: t}]}"};
    const struct rv_script_call call = {.kind = RV_SCRIPT_MODEL, .stage = "a", .visit = 1};

    for (size_t i = 0; i < RV_COUNT(entries); i++) {
        char text[128];
        struct rv_script_reply reply;
        snprintf(text, sizeof text, "models: {a: [%s]}", entries[i]);
        rv_script *s = script_of(text, NULL);
        ck_assert_int_eq(rv_script_next(s, &call, &reply, NULL), 0);
        ck_assert_msg(!reply.deltas && reply.n_deltas == 0, "%s", entries[i]);
        rv_script_reply_fini(&reply);
        rv_script_free(s);
    }
}
END_TEST

START_TEST(answers_come_in_order_and_end)
{
    struct rv_response r;
    int64_t delay = -1;
    rv_script *s =
        script_of("answers: [{text: x, delay_ms: 7}, {approved: false}, {decision: modify, data: {a: 1}}]", NULL);

    for (int round = 0; round < 2; round++) {
        ck_assert(rv_script_answer(s, &r, &delay));
        ck_assert(rv_str_is(r.text, "x") && !r.has_approved && !r.decision.ptr);
        ck_assert_int_eq(delay, 7);
        ck_assert(rv_script_answer(s, &r, &delay));
        ck_assert(r.has_approved && !r.approved && !r.text.ptr);
        ck_assert_int_eq(delay, 0);
        ck_assert(rv_script_answer(s, &r, NULL));
        ck_assert(rv_str_is(r.decision, "modify") && r.data);
        ck_assert(!rv_script_answer(s, &r, NULL));
        rv_script_rewind(s);
    }
    rv_script_free(s);
}
END_TEST

/* A reply that was recorded answers its own request only, and what had no answer is counted. */
START_TEST(a_recorded_reply_answers_its_own_request)
{
    struct rv_script_call call = {.kind = RV_SCRIPT_MODEL, .stage = "a", .visit = 1, .text = RV_STR_LIT("p")};
    struct rv_script_reply reply;
    char text[256];
    char hash[2][RV_HASH_MAX];
    struct rv_pipeline p = {0};

    rv_script_request_make_key(&p, "none", RV_STR_LIT("{}"), hash[0]);
    rv_script_request_make_key(&p, "none", RV_STR_LIT("[]"), hash[1]);
    ck_assert_str_ne(hash[0], hash[1]);
    snprintf(text, sizeof text, "models: {a: [{request: %s, text: one}]}", hash[0]);
    rv_script *s = script_of(text, NULL);
    ck_assert(rv_script_knows_requests(s));
    ck_assert_int_eq(rv_script_next(s, &call, &reply, NULL), RV_E_NOT_FOUND);
    call.request = hash[1];
    ck_assert_int_eq(rv_script_next(s, &call, &reply, NULL), RV_E_NOT_FOUND);
    ck_assert_uint_eq(rv_script_n_holes(s), 2);
    call.request = hash[0];
    ck_assert_int_eq(rv_script_next(s, &call, &reply, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&reply.body), "one");
    rv_script_reply_fini(&reply);
    rv_script_rewind(s);
    ck_assert_uint_eq(rv_script_n_holes(s), 0);
    ck_assert(rv_script_has_models(s));
    rv_script_leave_models(s, true);
    ck_assert(!rv_script_has_models(s));
    rv_script_free(s);
}
END_TEST

START_TEST(rewinding_starts_over)
{
    const struct rv_script_call call = {.kind = RV_SCRIPT_MODEL, .stage = "a", .visit = 1};
    struct rv_script_reply reply;
    rv_script *s = script_of("models: {a: [{text: one}, {text: two}]}\nrepeat: false", NULL);

    for (int round = 0; round < 2; round++) {
        ck_assert_int_eq(rv_script_next(s, &call, &reply, NULL), 0);
        ck_assert_str_eq(rv_buf_cstr(&reply.body), "one");
        rv_script_reply_fini(&reply);
        ck_assert_int_eq(rv_script_next(s, &call, &reply, NULL), 0);
        rv_script_reply_fini(&reply);
        ck_assert_int_eq(rv_script_next(s, &call, &reply, NULL), RV_E_NOT_FOUND);
        rv_script_rewind(s);
    }
    rv_script_free(s);
}
END_TEST

/* --- positions --- */

static void hand_out(rv_script *s, enum rv_script_kind kind, const char *name, int64_t visit, const char *want)
{
    const struct rv_script_call call = {.kind = kind, .stage = name, .tool = name, .visit = visit};
    struct rv_script_reply reply;

    int rc = rv_script_next(s, &call, &reply, NULL);
    ck_assert_int_eq(rc, want ? 0 : RV_E_NOT_FOUND);
    if (want)
        ck_assert_str_eq(rv_buf_cstr(&reply.body), want);
    if (want)
        rv_script_reply_fini(&reply);
}

static char *position_of(const rv_script *s)
{
    json_object *at = NULL;
    rv_buf text = RV_BUF_INIT(4096);

    ck_assert_int_eq(rv_script_build_position(s, &at, NULL), 0);
    if (at)
        rv_json_write(at, &text);
    json_object_put(at);
    rv_buf_puts(&text, at ? "" : "none");
    return rv_buf_steal(&text, NULL);
}

static const char by_name[] = "models: {a: [{text: one}, {text: two}], b: [{text: b}]}\n"
                              "tools: {look: [{result: {n: 1}}, {result: {n: 2}}]}\nanswers: [{text: x}, {text: y}]\n"
                              "repeat: false\n";
static const char flat[] = "models: [{stage: a, visit: 1, text: one}, {stage: a, visit: 2, text: two},\n"
                           "  {stage: a, visit: 3, text: three}, {stage: a, visit: 4, text: four}]\nrepeat: false\n";

START_TEST(another_goes_on_where_one_stood)
{
    struct rv_response r;
    rv_script *s = script_of(by_name, NULL);
    char *at = position_of(s);

    ck_assert_str_eq(at, "none");
    free(at);
    hand_out(s, RV_SCRIPT_MODEL, "a", 1, "one");
    hand_out(s, RV_SCRIPT_TOOL, "look", 1, "{\"n\":1}");
    ck_assert(rv_script_answer(s, &r, NULL));
    at = position_of(s);
    ck_assert_str_eq(at, "{\"models\":{\"a\":1},\"tools\":{\"look\":1},\"answers\":1}");
    rv_script_free(s);

    s = script_of(by_name, NULL);
    hand_out(s, RV_SCRIPT_MODEL, "b", 1, "b"); /* is not used there */
    json_object *json = rv_kit_json(at);
    ck_assert_int_eq(rv_script_set_position(s, json, NULL), 0);
    char *again = position_of(s);
    ck_assert_str_eq(again, at);
    hand_out(s, RV_SCRIPT_MODEL, "a", 2, "two");
    hand_out(s, RV_SCRIPT_MODEL, "a", 3, NULL);
    hand_out(s, RV_SCRIPT_MODEL, "b", 1, "b");
    hand_out(s, RV_SCRIPT_TOOL, "look", 1, "{\"n\":2}");
    ck_assert(rv_script_answer(s, &r, NULL) && rv_str_is(r.text, "y"));
    ck_assert_int_eq(rv_script_set_position(s, NULL, NULL), 0);
    hand_out(s, RV_SCRIPT_MODEL, "a", 1, "one");
    json_object_put(json);
    free(again);
    free(at);
    rv_script_free(s);
}
END_TEST

START_TEST(entries_that_were_used_out_of_order_stay_used)
{
    rv_script *s = script_of(flat, NULL);

    hand_out(s, RV_SCRIPT_MODEL, "a", 1, "one");
    hand_out(s, RV_SCRIPT_MODEL, "a", 3, "three");
    char *at = position_of(s);
    ck_assert_str_eq(at, "{\"models\":[1,2]}");
    rv_script_free(s);
    s = script_of(flat, NULL);
    json_object *json = rv_kit_json(at);
    ck_assert_int_eq(rv_script_set_position(s, json, NULL), 0);
    hand_out(s, RV_SCRIPT_MODEL, "a", 3, NULL);
    hand_out(s, RV_SCRIPT_MODEL, "a", 2, "two");
    free(at);
    at = position_of(s);
    ck_assert_str_eq(at, "{\"models\":3}");
    free(at);
    json_object_put(json);
    rv_script_free(s);
}
END_TEST

static const char *const misfits[] = {
    "{'models':{'a':3}}",
    "{'models':{'a':-1}}",
    "{'models':{'c':1}}",
    "{'models':2}",
    "{'models':{'a':[]}}",
    "{'models':{'a':[0,2]}}",
    "{'models':{'a':'1'}}",
    "{'stages':{'a':1}}",
    "{'stages':1}",
    "{'answers':3}",
    "{'answers':[1]}",
    "{'models':{'a':[1,-1]}}",
    "{'models':{'a':1},'tools':{'look':null}}",
};

START_TEST(a_position_of_another_script_is_refused)
{
    rv_script *s = script_of(by_name, NULL);
    json_object *json = rv_kit_json(misfits[_i]);
    rv_err *err = NULL;

    hand_out(s, RV_SCRIPT_MODEL, "b", 1, "b");
    ck_assert_int_eq(rv_script_set_position(s, json, &err), RV_E_INVALID);
    rv_err_free(err);
    char *at = position_of(s);
    ck_assert_str_eq(at, "none");
    free(at);
    json_object_put(json);
    rv_script_free(s);
}
END_TEST

Suite *next_suite(void)
{
    Suite *suite = suite_create("next");
    TCase *tc = tcase_create("next");

    tcase_add_loop_test(tc, replies_of_models, 0, RV_COUNT(models));
    tcase_add_loop_test(tc, errors_of_models, 0, RV_COUNT(errors));
    tcase_add_loop_test(tc, entries_of_stages_and_tools, 0, RV_COUNT(others));
    tcase_add_test(tc, what_else_a_reply_says);
    tcase_add_loop_test(tc, what_replies_come_to, 0, RV_COUNT(results));
    tcase_add_test(tc, chunks_have_kinds_and_waits_of_their_own);
    tcase_add_test(tc, a_reply_without_chunks_is_whole);
    tcase_add_test(tc, answers_come_in_order_and_end);
    tcase_add_test(tc, a_recorded_reply_answers_its_own_request);
    tcase_add_test(tc, rewinding_starts_over);
    tcase_add_test(tc, another_goes_on_where_one_stood);
    tcase_add_test(tc, entries_that_were_used_out_of_order_stay_used);
    tcase_add_loop_test(tc, a_position_of_another_script_is_refused, 0, RV_COUNT(misfits));
    suite_add_tcase(suite, tc);
    return suite;
}
