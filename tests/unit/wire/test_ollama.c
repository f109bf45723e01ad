/* Ollama's answers: lines, cut anywhere. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/wire/hear.h"
#include "tests/unit/wire/suites.h"

static const struct rv_wire_target target = {.wire = RV_WIRE_OLLAMA, .provider = "ollama", .model = "qwen3"};

#define LINE(message) "{\"model\":\"qwen3\",\"message\":{\"role\":\"assistant\"," message "},\"done\":false}\n"
#define TEXT(text)    LINE("\"content\":\"" text "\"")
#define CALL(more)    LINE("\"content\":\"\",\"tool_calls\":[" more "]")
#define DONE(reason, more)                                                                                             \
    "{\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":" reason more "}\n"
#define COUNTS ",\"total_duration\":9,\"prompt_eval_count\":26,\"eval_count\":8"

static const struct {
    const char *what, *body, *want;
} streams[] = {
    {"text", TEXT("Hel") TEXT("") "\n" TEXT("lo") DONE("\"stop\"", COUNTS),
     "text Hel\ntext lo\nusage 26 8\nfinish stop\n= Hello\nusage 26 8\nfinish stop\n"},
    {"thinking", LINE("\"content\":\"\",\"thinking\":\"hm\"") TEXT("x") DONE("\"stop\"", ""),
     "thinking hm\ntext x\nfinish stop\n= x\nfinish stop\n"},
    {"calls, whole, with and without ids",
     CALL("{\"function\":{\"index\":0,\"name\":\"f\",\"arguments\":{\"x\":1.50,\"y\":[]}}}") CALL(
         "{\"id\":\"c7\",\"function\":{\"index\":1,\"name\":\"f\",\"arguments\":{}}},{\"function\":{\"name\":\"g\"}}")
         DONE("\"stop\"", COUNTS),
     "start 0 call_1 f\narguments 0 {\"x\":1.50,\"y\":[]}\nend 0\nstart 1 c7 f\narguments 1 {}\nend 1\nstart 2 call_2 "
     "g\narguments 2 {}\nend 2\nusage 26 8\nfinish tool_calls\n= \ncalls "
     "[{\"id\":\"call_1\",\"name\":\"f\",\"arguments\":\"{\\\"x\\\":1.50,\\\"y\\\":[]}\"},{\"id\":\"c7\",\"name\":"
     "\"f\","
     "\"arguments\":\"{}\"},{\"id\":\"call_2\",\"name\":\"g\",\"arguments\":\"{}\"}]\nusage 26 8\nfinish tool_calls\n"},
    {"arguments that are a text",
     CALL("{\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\":\"}}") DONE("\"stop\"", ""),
     "start 0 call_1 f\narguments 0 {\"x\":\nend 0\nfinish tool_calls\n= \ncalls "
     "[{\"id\":\"call_1\",\"name\":\"f\",\"arguments\":\"{\\\"x\\\":\"}]\nfinish tool_calls\n"},
    {"arguments that are neither", CALL("{\"function\":{\"name\":\"f\",\"arguments\":[1]}}") DONE("\"stop\"", ""),
     "start 0 call_1 f\narguments 0 [1]\nend 0\nfinish tool_calls\n= \ncalls "
     "[{\"id\":\"call_1\",\"name\":\"f\",\"arguments\":\"[1]\"}]\nfinish tool_calls\n"},
    {"what is no call", CALL("7,{},{\"function\":7}") TEXT("x") DONE("\"stop\"", ""),
     "text x\nfinish stop\n= x\nfinish stop\n"},
    {"cut off", TEXT("x") DONE("\"length\"", ",\"eval_count\":8"),
     "text x\nusage 0 8\nfinish length\n= x\nusage 0 8\nfinish length\n"},
    {"a whole number, however it is written",
     TEXT("x") DONE("\"stop\"", ",\"prompt_eval_count\":2.0,\"eval_count\":8e0"),
     "text x\nusage 2 8\nfinish stop\n= x\nusage 2 8\nfinish stop\n"},
    {"a count that is none", TEXT("x") DONE("\"stop\"", ",\"prompt_eval_count\":\"26\",\"eval_count\":8"),
     "text x\nfinish stop\n= x\nfinish stop\n"},
    {"only loaded", DONE("\"load\"", ""), "finish other\n= \nfinish other\n"},
    {"without a reason", TEXT("x") "{\"done\":true}\n", "text x\nfinish stop\n= x\nfinish stop\n"},
    {"the last line without an end", TEXT("x") "{\"done\":true}", "text x\nfinish stop\n= x\nfinish stop\n"},
    {"what comes after the end", TEXT("x") DONE("\"stop\"", "") "garbage\n", "text x\nfinish stop\n= x\nfinish stop\n"},
    {"an error in the middle", TEXT("x") "{\"error\":\"an error was encountered\"}\n" TEXT("never"),
     "text x\n= x\n! overloaded retryable billed: ollama:qwen3: the provider broke off: an error was encountered\n"},
    {"an error that says nothing",
     "{\"message\":{\"content\":\"x\"},\"error\":\"\"}\n" DONE("\"stop\"", ",\"error\":{}"),
     "text x\nfinish stop\n= x\nfinish stop\n"},
    {"an error as an object", "{\"error\":{\"message\":\"words\",\"code\":7}}\n",
     "= \n! overloaded retryable billed: ollama:qwen3: the provider broke off: words\n"},
    {"too long a prompt", "{\"error\":\"the input length exceeds the context length\"}\n",
     "= \n! context_too_long billed: ollama:qwen3: the provider broke off: the input length exceeds the context "
     "length\n"},
    {"the stream breaks off", TEXT("x"),
     "text x\n= x\n! protocol retryable billed: ollama:qwen3: the stream ended before the answer was complete\n"},
    {"half a line", TEXT("x") "{\"message\":",
     "text x\n= x\n! protocol retryable billed: ollama:qwen3: the answer cannot be understood: its JSON: line 1, "
     "column "
     "12: expected a value, found the end of the text: {\"message\":\n"},
    {"halves of a character", TEXT("\\ud83d") TEXT("\\ude00") DONE("\"stop\"", ""),
     "text \xF0\x9F\x98\x80\nfinish stop\n= \xF0\x9F\x98\x80\nfinish stop\n"},
    {"a number where a text should be", LINE("\"content\":7"),
     "= \n! protocol retryable billed: ollama:qwen3: the text of the answer is not a string but integer\n"},
    {"other members of another type",
     LINE("\"content\":\"\",\"thinking\":{},\"tool_calls\":7") DONE("7", ",\"eval_count\":-3"),
     "finish stop\n= \nfinish stop\n"},
};

/* Proves 12.2/cuts */
START_TEST(answers_do_not_depend_on_cuts_or_line_ends)
{
    static const char *const ends[] = {"\n", "\r\n"};
    const char *want = streams[_i].want;

    for (size_t e = 0; e < RV_COUNT(ends); e++) {
        char *body = with_line_ends(streams[_i].body, ends[e]);
        rv_str bytes = rv_str_of(body);
        struct hear h = {.target = &target, .content_type = "application/x-ndjson"};

        same_text(streams[_i].what, hear(&h, bytes), want);
        h.step = 1;
        same_text(streams[_i].what, hear(&h, bytes), want);
        h.step = 0;
        for (h.first = 1; h.first < bytes.len; h.first++)
            same_text(streams[_i].what, hear(&h, bytes), want);
        free(body);
    }
}
END_TEST

START_TEST(an_answer_at_once_is_one_line)
{
    struct hear h = {.target = &target, .content_type = "application/json", .step = 5};

    same_text("at once",
              hear(&h, RV_STR_LIT("{\"message\":{\"content\":\"Hi\",\"tool_calls\":[{\"function\":{\"name\":\"f\"}}]},"
                                  "\"done\":true,\"eval_count\":2}")),
              "text Hi\nstart 0 call_1 f\narguments 0 {}\nend 0\nusage 0 2\nfinish tool_calls\n= Hi\ncalls "
              "[{\"id\":\"call_1\",\"name\":\"f\",\"arguments\":\"{}\"}]\nusage 0 2\nfinish tool_calls\n");
}
END_TEST

static const struct {
    int status;
    const char *body, *want; /* kind, retryable */
} faults[] = {
    {400, "{\"error\":\"registry.ollama.ai/x does not support tools\"}", "bad_request"},
    {400, "{\"error\":\"prompt too long; exceeded max context length by 4 tokens\"}", "context_too_long"},
    {404, "{\"error\":\"model 'x' not found\"}", "bad_request"},
    {429, "{\"error\":\"slow down\"}", "rate_limited retryable"},
    {500, "{\"error\":\"llama runner process has terminated\"}", "overloaded retryable"},
    {500, "{\"error\":\"the input exceeds the available context size\"}", "context_too_long"},
    {502, "<html>", "overloaded retryable"},
};

START_TEST(errors_are_told_apart)
{
    struct rv_llm_reply reply;
    char got[64];

    ck_assert_int_eq(rv_wire_read_fault(&target, faults[_i].status, RV_STR_LIT("application/json"),
                                        rv_str_of(faults[_i].body), &reply, NULL),
                     0);
    snprintf(got, sizeof got, "%s%s", rv_llm_error_text((enum rv_llm_error)reply.answer.error_kind),
             reply.retryable ? " retryable" : "");
    ck_assert_str_eq(got, faults[_i].want);
    rv_llm_reply_fini(&reply);
}
END_TEST

TCase *ollama_case(void)
{
    TCase *tc = tcase_create("ollama");

    tcase_add_loop_test(tc, answers_do_not_depend_on_cuts_or_line_ends, 0, RV_COUNT(streams));
    tcase_add_test(tc, an_answer_at_once_is_one_line);
    tcase_add_loop_test(tc, errors_are_told_apart, 0, RV_COUNT(faults));
    return tc;
}
