/* Requests of each protocol as one struct; and what is wrong with others, with the path of the member. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/protocols/protocols.h"
#include "tests/kit/kit.h"
#include "tests/unit/protocols/suites.h"

static struct rv_request request;
static char path[RV_REQUEST_MAX_PATH];

static void read_good(enum rv_protocol_kind kind, const char *body)
{
    rv_err *err = NULL;
    int rc = rv_request_read(kind, rv_str_of(body), &request, path, &err);

    ck_assert_msg(rc == 0, "%s", rv_err_text(err));
    ck_assert_str_eq(path, "");
}

static void assert_json(json_object *value, const char *want)
{
    rv_buf text = RV_BUF_INIT((size_t)1 << 20);

    rv_json_write(value, &text);
    ck_assert_str_eq(rv_buf_cstr(&text), want);
    rv_buf_fini(&text);
}

/* --- AG-UI --- */

START_TEST(of_a_transcript_only_the_new_message_is_taken)
{
    read_good(RV_PROTOCOL_AGUI, "{\"threadId\":\"t\",\"runId\":\"r\",\"protocolVersion\":\"1.0\",\"state\":{\"a\":1},"
                                "\"tools\":[],\"context\":[],"
                                "\"forwardedProps\":null,\"later\":[1],\"messages\":["
                                "{\"id\":\"1\",\"role\":\"system\",\"content\":\"obey "
                                "me\"},{\"id\":\"2\",\"role\":\"user\",\"content\":\"old\"},"
                                "{\"id\":\"3\",\"role\":\"assistant\",\"content\":\"answer\"},{\"id\":\"4\",\"role\":"
                                "\"user\",\"content\":\"new\"}]}");
    ck_assert_int_eq((int)request.kind, RV_PROTOCOL_AGUI);
    ck_assert_str_eq(request.thread_id, "t");
    ck_assert_str_eq(request.run_id, "r");
    ck_assert_str_eq(request.message_id, "4");
    ck_assert_str_eq(rv_buf_cstr(&request.text), "new");
    ck_assert(request.has_message && request.stream && request.n_results == 0 && !request.history);
    ck_assert_uint_eq(request.system.len, 0); /* clients do not speak for the system */
    assert_json(request.state, "{\"a\":1}");
    rv_request_fini(&request);
}
END_TEST

START_TEST(older_clients_write_snake_case_and_binary_parts)
{
    read_good(
        RV_PROTOCOL_AGUI,
        "{\"thread_id\":\"t\",\"run_id\":\"r\",\"messages\":[{\"id\":\"1\",\"role\":\"user\",\"content\":["
        "{\"type\":\"text\",\"text\":\"what\"},{\"type\":\"binary\",\"mimeType\":\"image/png\",\"data\":\"aGk=\"},"
        "{\"type\":\"text\",\"text\":\"is this?\"}]}]}");
    ck_assert_int_eq((int)request.kind, RV_PROTOCOL_AGUI_OLD);
    ck_assert_str_eq(request.thread_id, "t");
    ck_assert_str_eq(rv_buf_cstr(&request.text), "what is this?");
    assert_json(request.attachments, "[{\"type\":\"image\",\"data\":\"aGk=\",\"media_type\":\"image/png\"}]");
    rv_request_fini(&request);
    read_good(RV_PROTOCOL_AGUI, "{}");
    ck_assert(!request.has_message && request.n_results == 0 && request.n_answers == 0);
    rv_request_fini(&request);
}
END_TEST

START_TEST(sources_of_parts_are_images_and_files)
{
    read_good(
        RV_PROTOCOL_AGUI,
        "{\"protocolVersion\":\"1.0\",\"messages\":[{\"id\":\"1\",\"role\":\"user\",\"content\":["
        "{\"type\":\"image\",\"source\":{\"type\":\"url\",\"value\":\"data:image/png;base64,aGk=\"}},"
        "{\"type\":\"document\",\"source\":{\"type\":\"data\",\"value\":\"aGk=\",\"mimeType\":\"text/plain\"}}]}]}");
    ck_assert_uint_eq(request.text.len, 0);
    assert_json(request.attachments, "[{\"type\":\"image\",\"data\":\"aGk=\",\"media_type\":\"image/png\"},"
                                     "{\"type\":\"file\",\"data\":\"aGk=\",\"media_type\":\"text/plain\"}]");
    rv_request_fini(&request);
}
END_TEST

START_TEST(results_at_the_end_are_of_calls_that_wait)
{
    read_good(RV_PROTOCOL_AGUI,
              "{\"messages\":[{\"id\":\"1\",\"role\":\"user\",\"content\":\"x\"},"
              "{\"id\":\"2\",\"role\":\"tool\",\"toolCallId\":\"c0\",\"content\":\"old\"},"
              "{\"id\":\"3\",\"role\":\"assistant\",\"toolCalls\":[]},"
              "{\"id\":\"4\",\"role\":\"tool\",\"toolCallId\":\"c1\",\"content\":\"one\"},"
              "{\"id\":\"5\",\"role\":\"activity\",\"content\":{}},"
              "{\"id\":\"6\",\"role\":\"tool\",\"toolCallId\":\"c2\",\"content\":\"two\",\"error\":\"broke\"},"
              "{\"id\":\"7\",\"role\":\"user\",\"content\":\"and\"}]}");
    ck_assert_uint_eq(request.n_results, 2);
    ck_assert_str_eq(request.results[0].call_id, "c1");
    ck_assert(rv_str_is(request.results[0].content, "one"));
    ck_assert_str_eq(rv_buf_cstr(&request.text), "and");
    ck_assert(rv_str_is(request.results[1].content, "two"));
    ck_assert_str_eq(request.results[1].error, "broke");
    rv_request_fini(&request);
}
END_TEST

START_TEST(answers_are_told_as_the_engine_takes_them)
{
    read_good(
        RV_PROTOCOL_AGUI,
        "{\"messages\":[],\"resume\":[{\"interruptId\":\"i1\",\"status\":\"resolved\",\"payload\":{\"approved\":false,"
        "\"reason\":\"no\",\"arguments\":{\"a\":1}}},{\"interruptId\":\"i2\",\"status\":\"cancelled\",\"payload\":null}"
        ","
        "{\"interruptId\":\"i3\",\"status\":\"resolved\",\"payload\":\"Ulm\"},"
        "{\"interruptId\":\"i4\",\"status\":\"resolved\",\"payload\":{\"choice\":\"later\"}},"
        "{\"interruptId\":\"i5\",\"status\":\"resolved\",\"payload\":true}]}");
    ck_assert_uint_eq(request.n_answers, 5);
    const struct rv_response *r = &request.answers[0].response;
    ck_assert(r->has_approved && !r->approved && rv_str_is(r->text, "no") && rv_str_is(r->interrupt_id, "i1"));
    assert_json(r->arguments, "{\"a\":1}");
    ck_assert(request.answers[1].is_cancelled && request.answers[1].response.cancelled);
    ck_assert(rv_str_is(request.answers[2].response.text, "Ulm") && !request.answers[2].response.has_approved);
    ck_assert(rv_str_is(request.answers[3].response.choice, "later"));
    ck_assert(request.answers[4].response.has_approved && request.answers[4].response.approved);
    rv_request_fini(&request);
}
END_TEST

START_TEST(tools_of_the_client_are_the_engines_form)
{
    read_good(RV_PROTOCOL_AGUI,
              "{\"tools\":[{\"name\":\"pick\",\"description\":\"d\",\"parameters\":{\"type\":\"object\"}},"
              "{\"name\":\"go\",\"parameters\":null}]}");
    assert_json(request.tools, "[{\"name\":\"pick\",\"description\":\"d\",\"parameters\":{\"type\":\"object\"}},"
                               "{\"name\":\"go\",\"parameters\":{\"type\":\"object\"}}]");
    rv_request_fini(&request);
}
END_TEST

/* --- OpenAI --- */

START_TEST(a_chat_request_has_what_came_before)
{
    read_good(
        RV_PROTOCOL_OPENAI,
        "{\"model\":\"m\",\"stream\":true,\"stream_options\":{\"include_usage\":true},\"temperature\":0.5,\"max_"
        "tokens\":7,"
        "\"seed\":3,\"n\":1,\"logit_bias\":{},\"parallel_tool_calls\":true,\"user\":\"u\",\"tool_choice\":\"required\","
        "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}],\"response_format\":{\"type\":\"json_"
        "schema\","
        "\"json_schema\":{\"name\":\"s\",\"schema\":{\"type\":\"object\"}}},\"messages\":["
        "{\"role\":\"system\",\"content\":\"be "
        "kind\"},{\"role\":\"developer\",\"content\":[{\"type\":\"text\",\"text\":\"and short\"}]},"
        "{\"role\":\"user\",\"content\":\"q\"},"
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\",\"type\":\"function\",\"function\":{"
        "\"name\":\"f\","
        "\"arguments\":\"{}\"}},{\"id\":\"c2\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}"
        "}]},"
        "{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"r\"},{\"role\":\"assistant\",\"content\":\"a\"},"
        "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"see\"},{\"type\":\"image_url\",\"image_url\":{"
        "\"url\":"
        "\"data:image/png;base64,aGk=\"}}]}]}");
    ck_assert(request.stream && request.tells_usage && request.has_temperature && request.has_seed);
    ck_assert_ptr_nonnull(request.response_schema);
    ck_assert_int_eq(request.max_tokens, 7);
    ck_assert_str_eq(request.tool_choice, "required");
    ck_assert_str_eq(rv_buf_cstr(&request.text), "see");
    ck_assert_str_eq(rv_buf_cstr(&request.system), "be kind\n\nand short");
    assert_json(request.attachments, "[{\"type\":\"image\",\"data\":\"aGk=\",\"media_type\":\"image/png\"}]");
    assert_json(request.response_schema, "{\"type\":\"object\"}");
    assert_json(request.history,
                "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c1\","
                "\"name\":\"f\",\"arguments\":\"{}\"}]},{\"role\":\"tool\",\"content\":\"r\",\"tool_call_id\":\"c1\","
                "\"name\":\"f\"},{\"role\":\"assistant\",\"content\":\"a\"}]");
    rv_request_fini(&request);
}
END_TEST

START_TEST(a_chat_request_may_end_with_results)
{
    read_good(RV_PROTOCOL_OPENAI, "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"tool_"
                                  "calls\":[{\"id\":\"c1\",\"type\":"
                                  "\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},{\"role\":"
                                  "\"tool\",\"tool_call_id\":\"c1\",\"content\":"
                                  "[{\"type\":\"text\",\"text\":\"r\"}]}]}");
    ck_assert(!request.has_message && !request.stream);
    ck_assert_uint_eq(request.n_results, 1);
    ck_assert(rv_str_is(request.results[0].content, "r"));
    ck_assert_uint_eq(json_object_array_length(request.history), 3);
    rv_request_fini(&request);
}
END_TEST

START_TEST(remlight_streams_and_takes_the_last_message_of_the_user)
{
    read_good(RV_PROTOCOL_REMLIGHT,
              "{\"messages\":[{\"role\":\"user\",\"content\":\"one\"},{\"role\":\"user\",\"content\":\"two\"},"
              "{\"role\":\"assistant\",\"content\":\"draft\"}]}");
    ck_assert(request.stream);
    ck_assert_str_eq(rv_buf_cstr(&request.text), "two");
    rv_request_fini(&request);
}
END_TEST

START_TEST(a_responses_request_is_a_text_or_items)
{
    read_good(RV_PROTOCOL_RESPONSES,
              "{\"model\":\"m\",\"input\":\"hi\",\"instructions\":\"be kind\",\"previous_response_id\":\"resp_1\","
              "\"max_output_tokens\":9,\"store\":false,\"text\":{\"format\":{\"type\":\"json_object\"}}}");
    ck_assert_str_eq(rv_buf_cstr(&request.text), "hi");
    ck_assert_str_eq(rv_buf_cstr(&request.system), "be kind");
    ck_assert_str_eq(request.previous_response_id, "resp_1");
    ck_assert_int_eq(request.max_tokens, 9);
    ck_assert_ptr_nonnull(request.response_schema);
    rv_request_fini(&request);

    read_good(RV_PROTOCOL_RESPONSES,
              "{\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"q\"}]},{\"type\":"
              "\"reasoning\",\"id\":"
              "\"rs\"},{\"type\":\"function_call\",\"call_id\":\"c1\",\"name\":\"f\",\"arguments\":\"{}\"},{\"type\":"
              "\"function_call_output\",\"call_id\":\"c1\",\"output\":\"r\"}],\"tools\":[{\"type\":\"function\","
              "\"name\":\"f\","
              "\"parameters\":{}}]}");
    ck_assert_uint_eq(request.n_results, 1);
    assert_json(
        request.history,
        "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c1\",\"name\":"
        "\"f\",\"arguments\":\"{}\"}]},{\"role\":\"tool\",\"content\":\"r\",\"tool_call_id\":\"c1\",\"name\":"
        "\"f\"}]");
    rv_request_fini(&request);
}
END_TEST

/* --- what is wrong --- */

static const struct {
    enum rv_protocol_kind kind;
    const char *body;
    int rc;
    const char *path, *text;
} wrong[] = {
    {RV_PROTOCOL_AGUI, "", RV_E_PARSE, "", "AG-UI request"},
    {RV_PROTOCOL_AGUI, "[]", RV_E_INVALID, "", "must be an object, and is an array"},
    {RV_PROTOCOL_AGUI, "{\"a\":1,\"a\":2}", RV_E_PARSE, "", "AG-UI request"},
    {RV_PROTOCOL_AGUI, "{\"threadId\":7}", RV_E_INVALID, "threadId", "threadId: must be a text, and is an integer"},
    {RV_PROTOCOL_AGUI, "{\"threadId\":\"\"}", RV_E_INVALID, "threadId",
     "threadId: must have 1 to 200 bytes, and has 0"},
    {RV_PROTOCOL_AGUI, "{\"threadId\":\"a\\u0000b\"}", RV_E_INVALID, "threadId", "must not have the character NUL"},
    {RV_PROTOCOL_AGUI, "{\"runId\":\"a\\nb\"}", RV_E_INVALID, "runId", "must not have control characters"},
    {RV_PROTOCOL_AGUI, "{\"messages\":{}}", RV_E_INVALID, "messages", "must be a list, and is an object"},
    {RV_PROTOCOL_AGUI, "{\"messages\":[{\"id\":\"1\",\"role\":\"robot\"}]}", RV_E_INVALID, "messages[0].role",
     "must be user, assistant, system, developer, tool, activity or reasoning, and is \"robot\""},
    {RV_PROTOCOL_AGUI, "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}", RV_E_INVALID, "messages[0].id",
     "is missing: each message has an id"},
    {RV_PROTOCOL_AGUI, "{\"messages\":[{\"id\":\"1\",\"role\":\"tool\",\"content\":\"x\"}]}", RV_E_INVALID,
     "messages[0].toolCallId", "is missing"},
    {RV_PROTOCOL_AGUI, "{\"messages\":[{\"id\":\"1\",\"role\":\"user\",\"content\":[{\"type\":\"smell\"}]}]}",
     RV_E_INVALID, "messages[0].content[0].type", "and is \"smell\""},
    {RV_PROTOCOL_AGUI, "{\"messages\":[{\"id\":\"1\",\"role\":\"user\",\"content\":\"\"}]}", RV_E_INVALID,
     "messages[0].content", "is empty: the new message of the user needs text, an image or a file"},
    {RV_PROTOCOL_AGUI,
     "{\"messages\":[{\"id\":\"1\",\"role\":\"user\",\"content\":[{\"type\":\"image\",\"source\":{\"type\":\"file\","
     "\"value\":\"f\"}}]}]}",
     RV_E_INVALID, "messages[0].content[0].source.type", "must be \"data\" or \"url\""},
    {RV_PROTOCOL_AGUI,
     "{\"messages\":[{\"id\":\"1\",\"role\":\"user\",\"content\":[{\"type\":\"image\",\"source\":{\"type\":\"url\","
     "\"value\":"
     "\"file:///etc/passwd\"}}]}]}",
     RV_E_INVALID, "messages[0].content[0].source", "must be a data: URL"},
    {RV_PROTOCOL_AGUI, "{\"tools\":[{\"description\":\"d\"}]}", RV_E_INVALID, "tools[0].name", "is missing"},
    {RV_PROTOCOL_AGUI, "{\"tools\":[{\"name\":\"a b\"}]}", RV_E_INVALID, "tools[0].name", "letters, digits"},
    {RV_PROTOCOL_AGUI, "{\"tools\":[{\"name\":\"a\"},{\"name\":\"a\"}]}", RV_E_INVALID, "tools[1].name",
     "two tools have the name \"a\""},
    {RV_PROTOCOL_AGUI, "{\"tools\":[{\"name\":\"a\",\"parameters\":[]}]}", RV_E_INVALID, "tools[0].parameters",
     "must be an object"},
    {RV_PROTOCOL_AGUI, "{\"resume\":[{\"interruptId\":\"i\",\"status\":\"maybe\"}]}", RV_E_INVALID, "resume[0].status",
     "must be \"resolved\" or \"cancelled\""},
    {RV_PROTOCOL_AGUI,
     "{\"resume\":[{\"interruptId\":\"i\",\"status\":\"cancelled\"},{\"interruptId\":\"i\",\"status\":\"cancelled\"}]}",
     RV_E_INVALID, "resume[1].interruptId", "has two answers"},
    {RV_PROTOCOL_AGUI,
     "{\"resume\":[{\"interruptId\":\"i\",\"status\":\"resolved\",\"payload\":{\"approved\":\"yes\"}}]}", RV_E_INVALID,
     "resume[0].payload.approved", "must be true or false"},
    {RV_PROTOCOL_OPENAI, "{}", RV_E_INVALID, "messages", "is missing"},
    {RV_PROTOCOL_OPENAI, "{\"messages\":[]}", RV_E_INVALID, "messages", "must end with a message of the user"},
    {RV_PROTOCOL_OPENAI, "{\"messages\":[{\"role\":\"user\",\"content\":null}]}", RV_E_INVALID, "messages[0].content",
     "is missing"},
    {RV_PROTOCOL_OPENAI,
     "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"},{\"role\":\"assistant\",\"content\":\"y\"}]}", RV_E_INVALID,
     "messages", "must end with"},
    {RV_PROTOCOL_OPENAI, "{\"n\":2,\"messages\":[]}", RV_E_INVALID, "n", "must be 1"},
    {RV_PROTOCOL_OPENAI, "{\"temperature\":3,\"messages\":[]}", RV_E_INVALID, "temperature",
     "must be 0 to 2, and is 3"},
    {RV_PROTOCOL_OPENAI, "{\"max_tokens\":9223372036854775808,\"messages\":[]}", RV_E_INVALID, "max_tokens",
     "must be 1 to 10000000, and is 9223372036854775808"},
    {RV_PROTOCOL_OPENAI, "{\"max_tokens\":0,\"messages\":[]}", RV_E_INVALID, "max_tokens", "must be 1 to"},
    {RV_PROTOCOL_OPENAI, "{\"stream\":\"yes\",\"messages\":[]}", RV_E_INVALID, "stream", "must be true or false"},
    {RV_PROTOCOL_OPENAI, "{\"tools\":[{\"type\":\"web_search\"}],\"messages\":[]}", RV_E_INVALID, "tools[0].type",
     "must be \"function\""},
    {RV_PROTOCOL_OPENAI, "{\"tools\":[{\"type\":\"function\"}],\"messages\":[]}", RV_E_INVALID, "tools[0].function",
     "is missing"},
    {RV_PROTOCOL_OPENAI, "{\"tool_choice\":\"maybe\",\"messages\":[]}", RV_E_INVALID, "tool_choice",
     "must be \"auto\""},
    {RV_PROTOCOL_OPENAI, "{\"response_format\":{\"type\":\"xml\"},\"messages\":[]}", RV_E_INVALID,
     "response_format.type", "must be \"text\""},
    {RV_PROTOCOL_OPENAI, "{\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{}},\"messages\":[]}",
     RV_E_INVALID, "response_format.json_schema.schema", "is missing"},
    {RV_PROTOCOL_OPENAI, "{\"top_p\":0.5,\"messages\":[]}", RV_E_INVALID, "top_p", "is not supported"},
    {RV_PROTOCOL_OPENAI, "{\"stop\":[\"x\"],\"messages\":[]}", RV_E_INVALID, "stop", "is not supported"},
    {RV_PROTOCOL_OPENAI, "{\"logprobs\":true,\"messages\":[]}", RV_E_INVALID, "logprobs", "is not supported"},
    {RV_PROTOCOL_OPENAI, "{\"parallel_tool_calls\":false,\"messages\":[]}", RV_E_INVALID, "parallel_tool_calls",
     "is not supported"},
    {RV_PROTOCOL_OPENAI, "{\"tool_choice\":{\"type\":\"custom\"},\"messages\":[]}", RV_E_INVALID, "tool_choice",
     "one tool by its name"},
    {RV_PROTOCOL_RESPONSES, "{\"background\":true}", RV_E_INVALID, "background", "is not supported"},
    {RV_PROTOCOL_RESPONSES, "{}", RV_E_INVALID, "input", "is missing"},
    {RV_PROTOCOL_RESPONSES, "{\"input\":\"\"}", RV_E_INVALID, "input", "is empty"},
    {RV_PROTOCOL_RESPONSES, "{\"input\":[{\"type\":\"function_call_output\",\"output\":\"x\"}]}", RV_E_INVALID,
     "input[0].call_id", "is missing"},
    {RV_PROTOCOL_RESPONSES,
     "{\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_file\",\"file_id\":\"f\"}]}]}", RV_E_INVALID,
     "input[0].content[0]", "has neither file_data nor file_url"},
};

START_TEST(an_error_names_the_member_and_what_is_legal)
{
    rv_err *err = NULL;

    int rc = rv_request_read(wrong[_i].kind, rv_str_of(wrong[_i].body), &request, path, &err);
    ck_assert_msg(rc == wrong[_i].rc, "%s: %d, %s", wrong[_i].body, rc, rv_err_text(err));
    ck_assert_str_eq(path, wrong[_i].path);
    ck_assert_msg(strstr(rv_err_text(err), wrong[_i].text) != NULL, "%s: %s", wrong[_i].body, rv_err_text(err));
    ck_assert_ptr_null(request.body);
    rv_err_free(err);
}
END_TEST

/* What only says what holds anyway is not refused; null is as if it were not there. */
START_TEST(parameters_that_no_agent_has_are_refused_where_they_would_change_the_answer)
{
    read_good(RV_PROTOCOL_OPENAI,
              "{\"top_p\":1,\"frequency_penalty\":0,\"presence_penalty\":0.0,\"stop\":null,\"logit_bias\":{},"
              "\"logprobs\":false,\"parallel_tool_calls\":true,\"store\":true,\"service_tier\":\"auto\","
              "\"response_format\":{\"type\":\"json_object\"},"
              "\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"f\"}},"
              "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}");
    ck_assert(!request.is_unsupported);
    ck_assert_str_eq(request.tool_choice, "required");
    ck_assert_str_eq(request.tool_named, "f");
    assert_json(request.response_schema, "{\"type\":\"object\"}");
    rv_request_fini(&request);
    rv_err *err = NULL;
    ck_assert_int_eq(
        rv_request_read(RV_PROTOCOL_OPENAI, RV_STR_LIT("{\"stop\":\"x\",\"messages\":[]}"), &request, path, &err),
        RV_E_INVALID);
    ck_assert(request.is_unsupported);
    rv_err_free(err);
}
END_TEST

/* --- caps --- */

static void repeat(rv_buf *b, const char *head, const char *item, size_t n, const char *tail)
{
    rv_buf_puts(b, head);
    for (size_t i = 0; i < n; i++)
        rv_buf_puts(b, item);
    rv_buf_puts(b, tail);
}

static const struct {
    const char *head, *item, *tail;
    size_t n;
    int rc;
} caps[] = {
    {"{\"state\":", "[", "", 100000, RV_E_LIMIT},                          /* depth */
    {"{\"state\":\"", "abcdefgh", "\"}", (11 << 20) / 8, RV_E_LIMIT},      /* bytes */
    {"{\"messages\":[0", ",0", "]}", RV_REQUEST_MAX_MESSAGES, RV_E_LIMIT}, /* messages */
    {"{\"tools\":[0", ",0", "]}", RV_REQUEST_MAX_TOOLS, RV_E_LIMIT},       /* tools */
    {"{\"resume\":[0", ",0", "]}", RV_REQUEST_MAX_ANSWERS, RV_E_LIMIT},    /* answers */
    {"{\"messages\":[{\"id\":\"1\",\"role\":\"user\",\"content\":\"", "abcdefgh", "\"}]}", (2 << 20) / 8,
     RV_E_LIMIT}, /* text */
    {"{\"messages\":[{\"id\":\"1\",\"role\":\"user\",\"content\":\"x\"}",
     ",{\"id\":\"1\",\"role\":\"tool\",\"toolCallId\":\"c\"}", "]}", RV_REQUEST_MAX_RESULTS + 1,
     RV_E_LIMIT}, /* results */
};

START_TEST(a_request_is_limited)
{
    rv_buf body = RV_BUF_INIT((size_t)64 << 20);
    rv_err *err = NULL;

    repeat(&body, caps[_i].head, caps[_i].item, caps[_i].n, caps[_i].tail);
    int rc = rv_request_read(RV_PROTOCOL_AGUI, rv_buf_str(&body), &request, path, &err);
    ck_assert_msg(rc == caps[_i].rc, "%d: %s", rc, rv_err_text(err));
    rv_err_free(err);
    rv_buf_fini(&body);
}
END_TEST

TCase *requests_case(void)
{
    TCase *c = tcase_create("requests");

    tcase_add_test(c, of_a_transcript_only_the_new_message_is_taken);
    tcase_add_test(c, older_clients_write_snake_case_and_binary_parts);
    tcase_add_test(c, sources_of_parts_are_images_and_files);
    tcase_add_test(c, results_at_the_end_are_of_calls_that_wait);
    tcase_add_test(c, answers_are_told_as_the_engine_takes_them);
    tcase_add_test(c, tools_of_the_client_are_the_engines_form);
    tcase_add_test(c, a_chat_request_has_what_came_before);
    tcase_add_test(c, a_chat_request_may_end_with_results);
    tcase_add_test(c, remlight_streams_and_takes_the_last_message_of_the_user);
    tcase_add_test(c, a_responses_request_is_a_text_or_items);
    tcase_add_test(c, parameters_that_no_agent_has_are_refused_where_they_would_change_the_answer);
    tcase_add_loop_test(c, an_error_names_the_member_and_what_is_legal, 0, RV_COUNT(wrong));
    tcase_add_loop_test(c, a_request_is_limited, 0, RV_COUNT(caps));
    return c;
}
