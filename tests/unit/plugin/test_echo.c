/* The capability echo: what its model answers, here and in a process of its own, and that it is a reply by the rules.
 */
#include <string.h>

#include "coreengine/model/llm/llm.h"
#include "tests/unit/plugin/suites.h"

#define N_HOMES 2
#define TOOLS   ", \"tools\": [{\"name\": \"greet\"}]"
#define SHAPE                                                                                                          \
    "{\"type\": \"object\", \"required\": [\"s\", \"n\", \"k\", \"l\", \"o\", \"b\", \"u\", \"c\", \"z\"], "           \
    "\"properties\": {\"s\": {\"type\": \"string\"}, \"n\": {\"type\": [\"integer\", \"null\"], \"minimum\": 3}, "     \
    "\"k\": {\"enum\": [\"red\", \"blue\"]}, \"l\": {\"type\": \"array\", \"minItems\": 2, \"items\": "                \
    "{\"type\": \"number\"}}, \"o\": {\"required\": [\"x\"], \"properties\": {\"x\": {\"const\": 7}}}, "               \
    "\"b\": {\"type\": \"boolean\"}, \"u\": {\"anyOf\": [{\"type\": \"array\"}, {\"type\": \"null\"}]}, "              \
    "\"z\": {\"type\": \"null\"}, \"left_out\": {\"type\": \"string\"}}}"
#define SHAPED                                                                                                         \
    "{\"s\":\"fill it\",\"n\":3,\"k\":\"red\",\"l\":[0,0],\"o\":{\"x\":7},\"b\":false,\"u\":[],\"c\":\"fill it\","     \
    "\"z\":null}"

static const struct {
    const char *request;
    const char *text, *tool_calls, *heard; /* of the reply; what was handed out, with bars */
    int finish;
    int64_t input, output;
} answers[] = {
    {"{\"prompt\": \"Hello big world\"}", "Hello big world", "",
     "{\"text\":\"Hello \"}|{\"text\":\"big \"}|{\"text\":\"world\"}|", RV_FINISH_STOP, 3, 3},
    {"{\"prompt\": \"You repeat.\\n\\nYes \\n\"}", "Yes", "", "{\"text\":\"Yes\"}|", RV_FINISH_STOP, 3, 1},
    {"{\"prompt\": \"\"}", "", "", "", RV_FINISH_STOP, 0, 0},
    {"{\"system\": \"Be brief.\", \"history\": [{\"role\": \"user\", \"content\": \"one two\"}], "
     "\"prompt\": \"a\\\"b \\u00e4\"}",
     "a\"b \xc3\xa4", "", "{\"text\":\"a\\\"b \"}|{\"text\":\"\xc3\xa4\"}|", RV_FINISH_STOP, 6, 2},
    {"{\"prompt\": \"a b c d\", \"options\": {\"num_predict\": 2}}", "a b ", "", "{\"text\":\"a \"}|{\"text\":\"b \"}|",
     RV_FINISH_LENGTH, 4, 2},
    {"{\"prompt\": \"call: greet {\\\"name\\\": \\\"Ada\\\"}\"" TOOLS "}", "",
     "[{\"id\":\"call_1\",\"name\":\"greet\",\"arguments\":\"{\\\"name\\\": \\\"Ada\\\"}\"}]", "", RV_FINISH_TOOL_CALLS,
     4, 3},
    {"{\"prompt\": \"call: greet\"" TOOLS "}", "", "[{\"id\":\"call_1\",\"name\":\"greet\",\"arguments\":\"{}\"}]", "",
     RV_FINISH_TOOL_CALLS, 2, 1},
    {"{\"prompt\": \"call: greet\", \"tool_choice\": \"none\"" TOOLS "}", "call: greet", "",
     "{\"text\":\"call: \"}|{\"text\":\"greet\"}|", RV_FINISH_STOP, 2, 2},
    {"{\"prompt\": \"call: greet\"}", "call: greet", "", "{\"text\":\"call: \"}|{\"text\":\"greet\"}|", RV_FINISH_STOP,
     2, 2},
    {"{\"prompt\": \"call: greet\", \"turns\": [{\"role\": \"assistant\", \"tool_calls\": [{\"id\": \"call_1\", "
     "\"name\": \"greet\", \"arguments\": \"{}\"}]}, {\"role\": \"tool\", \"tool_call_id\": \"call_1\", \"name\": "
     "\"greet\", \"content\": \"done\"}]" TOOLS "}",
     "done", "", "{\"text\":\"done\"}|", RV_FINISH_STOP, 3, 1},
    {"{\"prompt\": \"fill it\", \"output\": {\"name\": \"a\", \"schema\": " SHAPE ", \"via\": \"native\"}}", SHAPED, "",
     NULL, RV_FINISH_STOP, 2, 3},
    {"{\"prompt\": \"x\", \"output\": {\"name\": \"a\", \"via\": \"tool\", \"schema\": {\"required\": [\"a\"], "
     "\"properties\": {\"a\": {}}}}}",
     "", "[{\"id\":\"call_1\",\"name\":\"final_result\",\"arguments\":\"{\\\"a\\\":\\\"x\\\"}\"}]", "",
     RV_FINISH_TOOL_CALLS, 1, 2},
};

static rv_plugins *echo_at(int home)
{
    rv_plugins *p = new_set(NULL);

    if (home)
        must_isolate(p, "echo");
    else
        must_load(p, "echo");
    return p;
}

static int keep_piece(void *self, rv_str json)
{
    rv_buf *heard = self;

    rv_buf_add_str(heard, json);
    rv_buf_putc(heard, '|');
    return 0;
}

START_TEST(it_repeats_calls_and_fills_what_it_is_asked_for)
{
    int row = _i / N_HOMES;
    rv_buf out = RV_BUF_INIT((size_t)1 << 20), heard = RV_BUF_INIT((size_t)1 << 20);
    const struct rv_plugin_call call = {.kind = RV_NAME_PROVIDER,
                                        .name = "echo.model",
                                        .args = rv_str_of(answers[row].request),
                                        .on_emit = keep_piece,
                                        .emit_self = &heard};
    rv_plugins *p = echo_at(_i % N_HOMES);
    struct rv_llm_reply reply;
    rv_err *err = NULL;

    int rc = rv_plugins_call(p, &call, &out, &err);
    ck_assert_msg(rc == 0, "%s", error_text(err));
    rc = rv_plugin_read_llm_reply(rv_buf_str(&out), &reply, &err);
    ck_assert_msg(rc == 0, "%s", error_text(err));
    ck_assert_str_eq(rv_buf_cstr(&reply.text), answers[row].text);
    ck_assert_str_eq(rv_buf_cstr(&reply.tool_calls), answers[row].tool_calls);
    ck_assert_int_eq(reply.answer.finish, answers[row].finish);
    ck_assert(reply.answer.has_usage);
    ck_assert_int_eq(reply.answer.usage.input_tokens, answers[row].input);
    ck_assert_int_eq(reply.answer.usage.output_tokens, answers[row].output);
    if (answers[row].heard)
        ck_assert_str_eq(rv_buf_cstr(&heard), answers[row].heard);
    rv_llm_reply_fini(&reply);
    rv_buf_fini(&heard);
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

static const struct {
    const char *prompt;
    int kind;
    const char *text;
} faults[] = {
    {"fail: rate_limited slow down", RV_LLM_ERROR_RATE_LIMITED, "slow down"},
    {"fail: auth", RV_LLM_ERROR_AUTH, "it failed and does not say why"},
    {"fail: whatever else", RV_LLM_ERROR_PROTOCOL, "else"},
    {"fail: overloaded  100%s %n", RV_LLM_ERROR_OVERLOADED, "100%s %n"},
};

START_TEST(it_fails_as_it_is_told)
{
    rv_buf args = RV_BUF_INIT(4096), out = RV_BUF_INIT(4096);
    rv_plugins *p = echo_at(0);
    struct rv_llm_reply reply;
    rv_err *err = NULL;

    rv_buf_printf(&args, "{\"prompt\": \"%s\"}", faults[_i].prompt);
    ck_assert_int_eq(call_entry(p, RV_NAME_PROVIDER, "echo.model", rv_buf_cstr(&args), &out, &err), RV_E_TOOL);
    rv_plugin_make_llm_failure(err, &reply);
    ck_assert_int_eq(reply.answer.error_kind, faults[_i].kind);
    ck_assert_str_eq(rv_buf_cstr(&reply.error), faults[_i].text);
    rv_llm_reply_fini(&reply);
    rv_err_free(err);
    rv_buf_fini(&args);
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

START_TEST(a_long_line_is_cut_between_characters)
{
    rv_buf args = RV_BUF_INIT((size_t)1 << 20), out = RV_BUF_INIT((size_t)1 << 20);
    rv_plugins *p = echo_at(0);
    struct rv_llm_reply reply;

    rv_buf_puts(&args, "{\"prompt\": \"x");
    for (int i = 0; i < 40000; i++)
        rv_buf_puts(&args, "\xc3\xa4");
    rv_buf_puts(&args, "\"}");
    ck_assert_int_eq(call_entry(p, RV_NAME_PROVIDER, "echo.model", rv_buf_cstr(&args), &out, NULL), 0);
    ck_assert_int_eq(rv_plugin_read_llm_reply(rv_buf_str(&out), &reply, NULL), 0);
    ck_assert_uint_eq(reply.text.len, 65535);
    ck_assert_int_eq(reply.answer.finish, RV_FINISH_LENGTH);
    rv_llm_reply_fini(&reply);
    rv_buf_fini(&args);
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

START_TEST(a_schema_within_itself_has_an_end)
{
    rv_buf args = RV_BUF_INIT(65536), out = RV_BUF_INIT((size_t)4 << 20);
    rv_plugins *p = echo_at(0);

    rv_buf_puts(&args, "{\"prompt\": \"x\", \"options\": {\"num_predict\": 9}, \"output\": {\"schema\": ");
    for (int i = 0; i < 40; i++)
        rv_buf_puts(&args, "{\"type\": \"array\", \"minItems\": 9, \"items\": ");
    rv_buf_puts(&args, "{}");
    for (int i = 0; i < 40; i++)
        rv_buf_putc(&args, '}');
    rv_buf_puts(&args, "}}");
    ck_assert_int_eq(call_entry(p, RV_NAME_PROVIDER, "echo.model", rv_buf_cstr(&args), &out, NULL), 0);
    rv_buf_fini(&args);
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

Suite *echo_suite(void)
{
    Suite *s = suite_create("echo");
    TCase *tc = tcase_create("echo");

    tcase_add_loop_test(tc, it_repeats_calls_and_fills_what_it_is_asked_for, 0, N_HOMES * (int)RV_COUNT(answers));
    tcase_add_loop_test(tc, it_fails_as_it_is_told, 0, RV_COUNT(faults));
    tcase_add_test(tc, a_long_line_is_cut_between_characters);
    tcase_add_test(tc, a_schema_within_itself_has_an_end);
    suite_add_tcase(s, tc);
    return s;
}
