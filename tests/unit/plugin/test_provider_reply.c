/* From a provider's answer, or its failure, to a reply of a model. */
#include <stdio.h>
#include <string.h>

#include "coreengine/model/llm/llm.h"
#include "tests/unit/plugin/suites.h"

static const struct {
    const char *json, *text, *tool_calls;
    int finish;
} good[] = {
    {"{\"text\": \"hi\"}", "hi", "", RV_FINISH_STOP},
    {"{\"text\": \"\"}", "", "", RV_FINISH_STOP},
    {"{\"text\": \"a\\u0000b\"}", "a", "", RV_FINISH_STOP}, /* its length is looked at below */
    {"{\"text\": \"hi\", \"tool_calls\": []}", "hi", "", RV_FINISH_STOP},
    {"{\"text\": \"hi\", \"finish_reason\": \"length\"}", "hi", "", RV_FINISH_LENGTH},
    {"{\"text\": \"no\", \"finish_reason\": \"refusal\", \"usage\": {}}", "no", "", RV_FINISH_REFUSAL},
    {"{\"tool_calls\": [{\"name\": \"f\", \"arguments\": {}}]}", "",
     "[{\"id\":\"call_1\",\"name\":\"f\",\"arguments\":\"{}\"}]", RV_FINISH_TOOL_CALLS},
    {"{\"text\": \"let me see\", \"tool_calls\": [{\"id\": \"x\", \"name\": \"f\", \"arguments\": \"{\\\"a\\\": "
     "1}\"}]}",
     "let me see", "[{\"id\":\"x\",\"name\":\"f\",\"arguments\":\"{\\\"a\\\": 1}\"}]", RV_FINISH_TOOL_CALLS},
    {"{\"tool_calls\": [{\"name\": \"f\", \"arguments\": \"no json\"}, {\"name\": \"g\", \"arguments\": {\"n\": "
     "2.50}}], "
     "\"finish_reason\": \"stop\"}",
     "",
     "[{\"id\":\"call_1\",\"name\":\"f\",\"arguments\":\"no json\"},"
     "{\"id\":\"call_2\",\"name\":\"g\",\"arguments\":\"{\\\"n\\\":2.50}\"}]",
     RV_FINISH_STOP},
    {"{\"tool_calls\": [{\"name\": \"f\", \"arguments\": {}}, {\"id\": \"call_1\", \"name\": \"g\", \"arguments\": "
     "\"\"}]}",
     "",
     "[{\"id\":\"call_2\",\"name\":\"f\",\"arguments\":\"{}\"},{\"id\":\"call_1\",\"name\":\"g\",\"arguments\":\"\"}]",
     RV_FINISH_TOOL_CALLS},
};

START_TEST(an_answer_becomes_a_reply)
{
    struct rv_llm_reply reply;
    rv_err *err = NULL;
    int rc = rv_plugin_read_llm_reply(rv_str_of(good[_i].json), &reply, &err);

    ck_assert_msg(rc == 0, "%s", error_text(err));
    ck_assert(!reply.failed);
    ck_assert_str_eq(rv_buf_cstr(&reply.text), good[_i].text);
    ck_assert_str_eq(rv_buf_cstr(&reply.tool_calls), good[_i].tool_calls);
    ck_assert_int_eq(reply.answer.finish, good[_i].finish);
    ck_assert_int_eq(reply.answer.error_kind, RV_UNSET);
    ck_assert(!reply.answer.has_usage);
    ck_assert_uint_eq(reply.text.len, strstr(good[_i].json, "\\u0000") ? 3 : strlen(good[_i].text));
    rv_llm_reply_fini(&reply);
}
END_TEST

static const struct {
    const char *usage;
    bool has_usage;
    int64_t input, output, cached, reasoning;
} usages[] = {
    {"{\"input_tokens\": 7, \"output_tokens\": 0}", true, 7, 0, 0, 0},
    {"{\"input_tokens\": 7, \"output_tokens\": 5, \"cached_tokens\": 7, \"reasoning_tokens\": 4}", true, 7, 5, 7, 4},
    {"{\"output_tokens\": 5}", false, 0, 5, 0, 0}, /* half of it does not tell what was used */
    {"{\"input_tokens\": 4503599627370496, \"output_tokens\": 1}", true, RV_USAGE_MAX, 1, 0, 0},
};

START_TEST(usage_is_taken_when_both_counts_are_there)
{
    struct rv_llm_reply reply;
    char json[256];

    snprintf(json, sizeof json, "{\"text\": \"\", \"usage\": %s}", usages[_i].usage);
    ck_assert_int_eq(rv_plugin_read_llm_reply(rv_str_of(json), &reply, NULL), 0);
    ck_assert_int_eq(reply.answer.has_usage, usages[_i].has_usage);
    ck_assert_int_eq(reply.answer.usage.input_tokens, usages[_i].input);
    ck_assert_int_eq(reply.answer.usage.output_tokens, usages[_i].output);
    ck_assert_int_eq(reply.answer.usage.cached_tokens, usages[_i].cached);
    ck_assert_int_eq(reply.answer.usage.reasoning_tokens, usages[_i].reasoning);
    ck_assert_int_eq(reply.answer.usage.calls, 0);
    rv_llm_reply_fini(&reply);
}
END_TEST

#define CALL(x) "{\"tool_calls\": [" x "]}"
#define FINE    "{\"name\": \"f\", \"arguments\": {}}"

static const struct {
    const char *json, *says;
} bad[] = {
    {"", "not JSON"},
    {"{\"text\": \"hi\"", "not JSON"},
    {"{\"text\": \"hi\", \"text\": \"ho\"}", "not JSON"},
    {"\"hi\"", "a value of type string, not an object"},
    {"null", "a value of type null, not an object"},
    {"{}", "neither \"text\" nor \"tool_calls\""},
    {"{\"tool_calls\": []}", "neither \"text\" nor \"tool_calls\""},
    {"{\"txt\": \"hi\"}", "did you mean \"text\"?"},
    {"{\"text\": \"hi\", \"model\": \"m\"}", "unknown member \"model\""},
    {"{\"text\": null}", "\"text\" that is not a string but null"},
    {"{\"text\": [\"hi\"]}", "\"text\" that is not a string but array"},
    {"{\"text\": \"hi\", \"tool_calls\": {}}", "\"tool_calls\" that are not a list but object"},
    {CALL("7"), "tool call 0 of its answer is not an object but integer"},
    {CALL(FINE ", null"), "tool call 1 of its answer is not an object but null"},
    {CALL("{\"name\": \"f\"}"), "tool call 0 of its answer has no \"arguments\""},
    {CALL("{\"arguments\": {}}"), "has no \"name\""},
    {CALL("{\"name\": \"\", \"arguments\": {}}"), "\"name\" of 0 bytes"},
    {CALL("{\"name\": 7, \"arguments\": {}}"), "\"name\" that is not a string but integer"},
    {CALL("{\"name\": \"f\", \"arguments\": []}"), "neither a text nor an object but array"},
    {CALL("{\"name\": \"f\", \"arguments\": null}"), "neither a text nor an object but null"},
    {CALL("{\"id\": null, \"name\": \"f\", \"arguments\": {}}"), "\"id\" that is not a string but null"},
    {CALL("{\"id\": \"\", \"name\": \"f\", \"arguments\": {}}"), "\"id\" of 0 bytes"},
    {CALL("{\"id\": \"a\", \"name\": \"f\", \"arguments\": {}}, {\"id\": \"a\", \"name\": \"g\", \"arguments\": {}}"),
     "tool call 1 of its answer has the \"id\" of another one"},
    {CALL("{\"name\": \"f\", \"args\": {}, \"arguments\": {}}"), "unknown member \"args\""},
    {"{\"text\": \"hi\", \"finish_reason\": \"stopp\"}", "\"stopp\""},
    {"{\"text\": \"hi\", \"finish_reason\": null}", "not a string but null"},
    {"{\"text\": \"hi\", \"finish_reason\": \"tool_calls\"}", "ended for tool calls and has none"},
    {"{\"text\": \"hi\", \"usage\": 7}", "\"usage\" that is not an object but integer"},
    {"{\"text\": \"hi\", \"usage\": {\"tokens\": 7}}", "unknown member \"tokens\""},
    {"{\"text\": \"hi\", \"usage\": {\"input_tokens\": -1}}", "\"input_tokens\" that is not a count"},
    {"{\"text\": \"hi\", \"usage\": {\"input_tokens\": 4503599627370497}}", "\"input_tokens\" that is not a count"},
    {"{\"text\": \"hi\", \"usage\": {\"output_tokens\": 1.5}}", "\"output_tokens\" that is not a count"},
    {"{\"text\": \"hi\", \"usage\": {\"output_tokens\": \"1\"}}", "\"output_tokens\" that is not a count"},
    {"{\"text\": \"hi\", \"usage\": {\"cached_tokens\": 1}}", "more \"cached_tokens\" than"},
    {"{\"text\": \"hi\", \"usage\": {\"output_tokens\": 1, \"reasoning_tokens\": 2}}",
     "more \"reasoning_tokens\" than"},
};

START_TEST(an_answer_that_breaks_a_rule_is_refused_and_says_which)
{
    struct rv_llm_reply reply = {.answer = {.attempts = 77}};
    rv_err *err = NULL;

    ck_assert_int_eq(rv_plugin_read_llm_reply(rv_str_of(bad[_i].json), &reply, &err), RV_E_PLUGIN);
    ck_assert_msg(strstr(error_text(err), bad[_i].says) != NULL, "%s", error_text(err));
    ck_assert_int_eq(reply.answer.attempts, 77); /* as it was */
    ck_assert_int_eq(rv_plugin_read_llm_reply(rv_str_of(bad[_i].json), &reply, NULL), RV_E_PLUGIN);
    rv_err_free(err);
}
END_TEST

static void write_calls(rv_buf *b, size_t n, size_t name)
{
    rv_buf_puts(b, "{\"tool_calls\": [");
    for (size_t i = 0; i < n; i++) {
        rv_buf_puts(b, i ? ", {\"arguments\": {}, \"name\": \"" : "{\"arguments\": {}, \"name\": \"");
        for (size_t c = 0; c < name; c++)
            rv_buf_putc(b, 'f');
        rv_buf_puts(b, "\"}");
    }
    rv_buf_puts(b, "]}");
}

START_TEST(calls_and_names_have_a_limit)
{
    static const struct {
        size_t n, name;
        const char *says;
    } rows[] = {{RV_LLM_MAX_TOOL_CALLS, 256, NULL},
                {RV_LLM_MAX_TOOL_CALLS + 1, 1, "129 tool calls, more than 128"},
                {1, 257, "\"name\" of 257 bytes"}};
    rv_buf json = RV_BUF_INIT((size_t)1 << 20);
    struct rv_llm_reply reply;
    rv_err *err = NULL;

    write_calls(&json, rows[_i].n, rows[_i].name);
    int rc = rv_plugin_read_llm_reply(rv_buf_str(&json), &reply, &err);
    ck_assert_int_eq(rc, rows[_i].says ? RV_E_PLUGIN : 0);
    if (rc == 0)
        rv_llm_reply_fini(&reply);
    else
        ck_assert_msg(strstr(error_text(err), rows[_i].says) != NULL, "%s", error_text(err));
    rv_err_free(err);
    rv_buf_fini(&json);
}
END_TEST

static const struct {
    int rc;
    const char *type; /* of fail(); NULL: none */
    enum rv_llm_error kind;
    bool retryable, may_be_billed;
} failures[] = {
    {RV_E_TOOL, "rate_limited", RV_LLM_ERROR_RATE_LIMITED, true, false},
    {RV_E_TOOL, "overloaded", RV_LLM_ERROR_OVERLOADED, true, false},
    {RV_E_TOOL, "timeout", RV_LLM_ERROR_TIMEOUT, true, true},
    {RV_E_TOOL, "connection", RV_LLM_ERROR_CONNECTION, true, false},
    {RV_E_TOOL, "protocol", RV_LLM_ERROR_PROTOCOL, true, true},
    {RV_E_TOOL, "bad_request", RV_LLM_ERROR_BAD_REQUEST, false, false},
    {RV_E_TOOL, "auth", RV_LLM_ERROR_AUTH, false, false},
    {RV_E_TOOL, "context_too_long", RV_LLM_ERROR_CONTEXT_TOO_LONG, false, false},
    {RV_E_TOOL, "content_filter", RV_LLM_ERROR_CONTENT_FILTER, false, false},
    {RV_E_TOOL, "cancelled", RV_LLM_ERROR_PROTOCOL, true, true}, /* not for a provider to say */
    {RV_E_TOOL, "TimeoutError", RV_LLM_ERROR_PROTOCOL, true, true},
    {RV_E_TOOL, NULL, RV_LLM_ERROR_PROTOCOL, true, true},
    {RV_E_PLUGIN, NULL, RV_LLM_ERROR_PROTOCOL, true, true},
    {RV_E_PLUGIN, "auth", RV_LLM_ERROR_PROTOCOL, true, true}, /* a hint that is not a type */
    {RV_E_TIMEOUT, NULL, RV_LLM_ERROR_TIMEOUT, true, true},
    {RV_E_CANCELLED, NULL, RV_LLM_ERROR_CANCELLED, false, true},
    {RV_E_NOT_FOUND, NULL, RV_LLM_ERROR_BAD_REQUEST, false, false},
};

START_TEST(a_failure_has_the_kind_that_its_provider_gave)
{
    struct rv_llm_reply reply;
    rv_err *err = NULL;

    RV_IGNORE(RV_FAIL(&err, failures[_i].rc, "too much of 100%%"), "it is what the test is about");
    if (failures[_i].type)
        rv_err_set_hint(&err, "%s", failures[_i].type);
    RV_IGNORE(RV_WRAP(&err, failures[_i].rc, "stage \"ask\""), "as above");
    rv_plugin_make_llm_failure(err, &reply);
    ck_assert(reply.failed);
    ck_assert_int_eq(reply.answer.error_kind, (int)failures[_i].kind);
    ck_assert_int_eq(reply.retryable, failures[_i].retryable);
    ck_assert_int_eq(reply.answer.may_be_billed, failures[_i].may_be_billed);
    ck_assert_str_eq(rv_buf_cstr(&reply.error), "stage \"ask\": too much of 100%");
    ck_assert_uint_eq(reply.text.len, 0);
    rv_llm_reply_fini(&reply);
    rv_err_free(err);
}
END_TEST

START_TEST(a_failure_without_a_word_has_a_text_all_the_same)
{
    struct rv_llm_reply reply;

    rv_plugin_make_llm_failure(NULL, &reply);
    ck_assert(reply.failed);
    ck_assert_int_eq(reply.answer.error_kind, RV_LLM_ERROR_PROTOCOL);
    ck_assert_uint_gt(reply.error.len, 0);
    rv_llm_reply_fini(&reply);
}
END_TEST

Suite *provider_reply_suite(void)
{
    Suite *s = suite_create("plugin provider reply");
    TCase *tc = tcase_create("provider reply");

    tcase_add_loop_test(tc, an_answer_becomes_a_reply, 0, RV_COUNT(good));
    tcase_add_loop_test(tc, usage_is_taken_when_both_counts_are_there, 0, RV_COUNT(usages));
    tcase_add_loop_test(tc, an_answer_that_breaks_a_rule_is_refused_and_says_which, 0, RV_COUNT(bad));
    tcase_add_loop_test(tc, calls_and_names_have_a_limit, 0, 3);
    tcase_add_loop_test(tc, a_failure_has_the_kind_that_its_provider_gave, 0, RV_COUNT(failures));
    tcase_add_test(tc, a_failure_without_a_word_has_a_text_all_the_same);
    suite_add_tcase(s, tc);
    return s;
}
