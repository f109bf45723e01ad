/* Anthropic's answers: whatever the cuts and line ends, the same deltas and the same reply. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/wire/hear.h"
#include "tests/unit/wire/suites.h"

static const struct rv_wire_target target = {
    .wire = RV_WIRE_ANTHROPIC, .provider = "anthropic", .model = "claude-sonnet-4-5"};

#define EVENT(type, more) "event: " type "\ndata: {\"type\":\"" type "\"" more "}\n\n"
#define START(usage)      EVENT("message_start", ",\"message\":{\"content\":[],\"usage\":{" usage "}}")
#define BLOCK(i, block)   EVENT("content_block_start", ",\"index\":" #i ",\"content_block\":{" block "}")
#define DELTA(i, delta)   EVENT("content_block_delta", ",\"index\":" #i ",\"delta\":{" delta "}")
#define BLOCK_END(i)      EVENT("content_block_stop", ",\"index\":" #i)
#define END(reason, usage)                                                                                             \
    EVENT("message_delta", ",\"delta\":{\"stop_reason\":" reason "},\"usage\":{" usage "}") EVENT("message_stop", "")
#define TEXT_BLOCK(i, text)                                                                                            \
    BLOCK(i, "\"type\":\"text\",\"text\":\"\"") DELTA(i, "\"type\":\"text_delta\",\"text\":\"" text "\"") BLOCK_END(i)
#define CALL(i, id, name)   BLOCK(i, "\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"" name "\",\"input\":{}")
#define GIVEN(i, id, input) BLOCK(i, "\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"f\",\"input\":" input)
#define INPUT(i, json)      DELTA(i, "\"type\":\"input_json_delta\",\"partial_json\":\"" json "\"")
#define THINKING(i)         BLOCK(i, "\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"")
#define THOUGHT(i, text)    DELTA(i, "\"type\":\"thinking_delta\",\"thinking\":\"" text "\"")
#define SIGNATURE(i, text)  DELTA(i, "\"type\":\"signature_delta\",\"signature\":\"" text "\"")

static const struct {
    const char *what, *body, *want;
} streams[] = {
    {"text, with what is to be ignored",
     START("\"input_tokens\":10,\"output_tokens\":1") EVENT("ping", "")
         BLOCK(0, "\"type\":\"text\",\"text\":\"\",\"citations\":null") ": keep-alive\n\n" DELTA(
             0, "\"type\":\"text_delta\",\"text\":\"Hel\"") EVENT("from_the_future", ",\"index\":0,\"delta\":[1]")
             DELTA(0, "\"type\":\"from_the_future\",\"text\":\"no\"") DELTA(
                 0, "\"type\":\"text_delta\",\"text\":\"lo\"") BLOCK_END(0) END("\"end_turn\"", "\"output_tokens\":7"),
     "usage 10 1\ntext Hel\ntext lo\nusage 10 7\nfinish stop\n= Hello\nusage 10 7\nfinish stop\n"},
    {"counts that can not be true are not told",
     START("\"input_tokens\":0,\"cache_read_input_tokens\":9223372036854775807,"
           "\"cache_creation_input_tokens\":9223372036854775807,\"output_tokens\":1") TEXT_BLOCK(0, "a")
         EVENT("message_delta", ",\"usage\":{\"output_tokens\":2}") END("\"end_turn\"", "\"output_tokens\":7"),
     "text a\nfinish stop\n= a\nfinish stop\n"},
    {"two texts are one; what is not said is not 0",
     START("\"input_tokens\":1") TEXT_BLOCK(0, "a") TEXT_BLOCK(1, "b") END("\"stop_sequence\"", ""),
     "text a\ntext b\nfinish stop\n= ab\nfinish stop\n"},
    {"two calls, one after the other",
     START("\"input_tokens\":5") TEXT_BLOCK(0, "So:") CALL(1, "toolu_9", "find_order") INPUT(1, "")
         INPUT(1, "{\\\"order_no\\\":") INPUT(1, "\\\"A12\\\"}") BLOCK_END(1) CALL(2, "toolu_8", "now") BLOCK_END(2)
             END("\"tool_use\"", "\"output_tokens\":31"),
     "text So:\nstart 0 toolu_9 find_order\narguments 0 {\"order_no\":\narguments 0 \"A12\"}\nend 0\n"
     "start 1 toolu_8 now\nend 1\nusage 5 31\nfinish tool_calls\n= So:\ncalls "
     "[{\"id\":\"toolu_9\",\"name\":\"find_order\",\"arguments\":\"{\\\"order_no\\\":\\\"A12\\\"}\"},{\"id\":\"toolu_"
     "8\","
     "\"name\":\"now\",\"arguments\":\"{}\"}]\nusage 5 31\nfinish tool_calls\n"},
    {"calls with their input at the start, which counts where no pieces come",
     START("") GIVEN(0, "a", "{\"x\":1}") BLOCK_END(0) GIVEN(1, "b", "{\"x\":2}") INPUT(1, "{}") BLOCK_END(1)
         GIVEN(2, "c", "{\"x\":\"\\ud83d\"}") INPUT(2, "") GIVEN(3, "d", "{\"x\":4}") END("\"tool_use\"", ""),
     "start 0 a f\narguments 0 {\"x\":1}\nend 0\nstart 1 b f\narguments 1 {}\nend 1\nstart 2 c f\n"
     "arguments 2 {\"x\":\"\xEF\xBF\xBD\"}\nend 2\nstart 3 d f\narguments 3 {\"x\":4}\nend 3\nfinish tool_calls\n= \n"
     "calls [{\"id\":\"a\",\"name\":\"f\",\"arguments\":\"{\\\"x\\\":1}\"},"
     "{\"id\":\"b\",\"name\":\"f\",\"arguments\":\"{}\"},"
     "{\"id\":\"c\",\"name\":\"f\",\"arguments\":\"{\\\"x\\\":\\\"\xEF\xBF\xBD\\\"}\"},"
     "{\"id\":\"d\",\"name\":\"f\",\"arguments\":\"{\\\"x\\\":4}\"}]\nfinish tool_calls\n"},
    {"calls and text interleaved",
     START("") BLOCK(0, "\"type\":\"text\",\"text\":\"\"") CALL(1, "a", "f") CALL(2, "b", "g") INPUT(2, "{\\\"x\\\":")
         INPUT(1, "{\\\"y\\\":") DELTA(0, "\"type\":\"text_delta\",\"text\":\"t\"") INPUT(2, "1}") INPUT(1, "2}")
             BLOCK_END(2) BLOCK_END(1) BLOCK_END(0) END("\"tool_use\"", ""),
     "start 0 a f\nstart 1 b g\narguments 1 {\"x\":\narguments 0 {\"y\":\ntext t\narguments 1 1}\narguments 0 2}\nend "
     "1\n"
     "end 0\nfinish tool_calls\n= t\ncalls "
     "[{\"id\":\"a\",\"name\":\"f\",\"arguments\":\"{\\\"y\\\":2}\"},{\"id\":\"b\","
     "\"name\":\"g\",\"arguments\":\"{\\\"x\\\":1}\"}]\nfinish tool_calls\n"},
    {"the tools of a server run there",
     START("") BLOCK(0, "\"type\":\"server_tool_use\",\"id\":\"s\",\"name\":\"search\",\"input\":{}")
         INPUT(0, "{\\\"q\\\":1}") BLOCK_END(0) BLOCK(1, "\"type\":\"web_search_tool_result\",\"content\":[]")
             BLOCK_END(1) TEXT_BLOCK(2, "found") END("\"pause_turn\"", ""),
     "text found\nfinish pause\n= found\nfinish pause\n"},
    {"cut off in the arguments",
     START("") CALL(0, "a", "f") INPUT(0, "{\\\"x\\\":1}") BLOCK_END(0) CALL(1, "b", "f") INPUT(1, "{\\\"x\\\":")
         BLOCK_END(1) END("\"max_tokens\"", "\"output_tokens\":9"),
     "start 0 a f\narguments 0 {\"x\":1}\nend 0\nstart 1 b f\narguments 1 {\"x\":\nend 1\nfinish length\n= \n"
     "calls [{\"id\":\"a\",\"name\":\"f\",\"arguments\":\"{\\\"x\\\":1}\"}]\nfinish length\n"},
    {"cut off before the arguments", START("") CALL(0, "a", "f") BLOCK_END(0) END("\"max_tokens\"", ""),
     "start 0 a f\nend 0\nfinish length\n= \nfinish length\n"},
    {"thinking, to be handed back",
     START("") THINKING(0) THOUGHT(0, "Let me ") THOUGHT(0, "see \\\"it\\\"") SIGNATURE(0, "EqQ") SIGNATURE(0, "B/+=")
         BLOCK_END(0) BLOCK(1, "\"type\":\"redacted_thinking\",\"data\":\"zz=\",\"new\":1") BLOCK_END(1)
             CALL(2, "a", "f") BLOCK_END(2) END("\"tool_use\"", ""),
     "thinking Let me \nthinking see \"it\"\nstart 0 a f\nend 0\nfinish tool_calls\n= \n"
     "calls [{\"id\":\"a\",\"name\":\"f\",\"arguments\":\"{}\"}]\nopaque "
     "{\"provider\":\"anthropic\",\"blocks\":[{\"type\":\"thinking\",\"thinking\":\"Let me see "
     "\\\"it\\\"\",\"signature\":"
     "\"EqQB/+=\"},{\"type\":\"redacted_thinking\",\"data\":\"zz=\",\"new\":1}]}\nfinish tool_calls\n"},
    {"thinking that is left out keeps its signature",
     START("") THINKING(0) SIGNATURE(0, "s") BLOCK_END(0) TEXT_BLOCK(1, "x") END("\"end_turn\"", ""),
     "text x\nfinish stop\n= x\nopaque "
     "{\"provider\":\"anthropic\",\"blocks\":[{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"s\"}]}\nfinish "
     "stop\n"},
    {"thinking without a signature is not handed back",
     START("") THINKING(0) THOUGHT(0, "hm") BLOCK_END(0) TEXT_BLOCK(1, "x") END("\"end_turn\"", ""),
     "thinking hm\ntext x\nfinish stop\n= x\nfinish stop\n"},
    {"totals are overwritten, and input has what the cache had",
     START("\"input_tokens\":10,\"cache_creation_input_tokens\":3,\"cache_read_input_tokens\":20,\"output_tokens\":1")
         TEXT_BLOCK(0, "x")
             EVENT("message_delta", ",\"delta\":{},\"usage\":{\"output_tokens\":5,\"input_tokens\":null}")
                 EVENT("message_delta", ",\"delta\":{},\"usage\":null")
                     END("\"end_turn\"", "\"output_tokens\":8,\"input_tokens\":11,\"cache_read_input_tokens\":21"),
     "usage 33 1 cached=20 written=3\ntext x\nusage 33 5 cached=20 written=3\nusage 35 8 cached=21 written=3\nfinish "
     "stop\n= x\nusage 35 8 cached=21 written=3\nfinish stop\n"},
    {"a whole number, however it is written",
     START("\"input_tokens\":1000.0,\"output_tokens\":1") TEXT_BLOCK(0, "x")
         END("\"end_turn\"", "\"output_tokens\":8e0"),
     "usage 1000 1\ntext x\nusage 1000 8\nfinish stop\n= x\nusage 1000 8\nfinish stop\n"},
    {"a count that is none",
     START("\"input_tokens\":\"1000\",\"output_tokens\":1") TEXT_BLOCK(0, "x")
         END("\"end_turn\"", "\"output_tokens\":8"),
     "text x\nfinish stop\n= x\nfinish stop\n"},
    {"counters without sense",
     START("\"input_tokens\":-4,\"cache_read_input_tokens\":9223372036854775807,\"output_tokens\":\"7\"")
         TEXT_BLOCK(0, "x") END("\"end_turn\"", "\"input_tokens\":9223372036854775807,\"output_tokens\":1e3"),
     "text x\nfinish stop\n= x\nfinish stop\n"},
    {"a refusal", START("") TEXT_BLOCK(0, "I") END("\"refusal\",\"stop_details\":{\"category\":\"x\"}", ""),
     "text I\nfinish refusal\n= I\nfinish refusal\n"},
    {"the window is full", START("") TEXT_BLOCK(0, "I") END("\"model_context_window_exceeded\"", ""),
     "text I\nfinish length\n= I\nfinish length\n"},
    {"a reason from the future", START("") TEXT_BLOCK(0, "I") END("\"bored\"", ""),
     "text I\nfinish other\n= I\nfinish other\n"},
    {"an error in the middle",
     START("") TEXT_BLOCK(0, "I")
         EVENT("error", ",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}") TEXT_BLOCK(1, "never"),
     "text I\n= I\n! overloaded retryable billed: anthropic:claude-sonnet-4-5: the provider broke off: Overloaded\n"},
    {"an error that stays",
     START("")
         EVENT("error", ",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 9 > 8\"}"),
     "= \n! context_too_long billed: anthropic:claude-sonnet-4-5: the provider broke off: prompt is too long: 9 > 8\n"},
    {"no message_stop",
     START("\"input_tokens\":1") TEXT_BLOCK(0, "I")
         EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}"),
     "text I\nusage 1 2\n= I\nusage 1 2\n! protocol retryable billed: anthropic:claude-sonnet-4-5: the "
     "stream "
     "ended before the answer was complete\n"},
    {"a character in two halves",
     START("") BLOCK(0, "\"type\":\"text\",\"text\":\"\"") DELTA(0, "\"type\":\"text_delta\",\"text\":\"a\\ud83d\"")
         DELTA(0, "\"type\":\"text_delta\",\"text\":\"\\ude00b\\u0000\"") BLOCK_END(0) THINKING(1) THOUGHT(1, "\\ud83d")
             THOUGHT(1, "\\ude00") SIGNATURE(1, "s") BLOCK_END(1) END("\"end_turn\"", ""),
     NULL}, /* has a NUL: see below */
    {"thinking within thinking", START("") THINKING(0) THINKING(1) THOUGHT(1, "x"),
     "= \n! protocol retryable billed: anthropic:claude-sonnet-4-5: a thinking block begins within another\n"},
    {"two calls in one place", START("") CALL(0, "a", "f") CALL(0, "b", "f"),
     "start 0 a f\n= \n! protocol retryable billed: anthropic:claude-sonnet-4-5: two tool calls have the same place in "
     "the "
     "reply\n"},
    {"deltas of blocks that never began",
     START("") INPUT(7, "{}") THOUGHT(7, "x") SIGNATURE(7, "x") BLOCK_END(7) BLOCK(-3, "\"type\":7") TEXT_BLOCK(0, "x")
         END("\"end_turn\"", ""),
     "text x\nfinish stop\n= x\nfinish stop\n"},
    {"events without what they should have",
     EVENT("message_start", "") EVENT("content_block_start", "") EVENT("content_block_delta", ",\"delta\":7")
         EVENT("content_block_stop", "") EVENT("message_delta", "") "data: {}\n\n" EVENT("message_stop", ""),
     "= \nfinish -\n"},
    {"no JSON", "data: [1]\n\n", NULL},
};

/* Proves 12.2/cuts, 12.2/usage */
START_TEST(answers_do_not_depend_on_cuts_or_line_ends)
{
    static const char *const ends[] = {"\n", "\r\n"};
    const char *want = streams[_i].want;

    for (size_t e = 0; want && e < RV_COUNT(ends); e++) {
        char *body = with_line_ends(streams[_i].body, ends[e]);
        rv_str bytes = rv_str_of(body);
        struct hear h = {.target = &target};

        same_text(streams[_i].what, hear(&h, bytes), want);
        h.step = 1;
        same_text(streams[_i].what, hear(&h, bytes), want);
        h.step = 0;
        for (h.first = 1 + rv_kit_first(rv_kit_stride(7)); h.first < bytes.len; h.first += rv_kit_stride(7))
            same_text(streams[_i].what, hear(&h, bytes), want);
        free(body);
    }
}
END_TEST

/* Proves 12.2/text */
START_TEST(half_characters_and_nuls_come_whole)
{
    for (size_t i = 0; i < RV_COUNT(streams); i++) {
        struct hear h = {.target = &target};
        char *got;

        if (strcmp(streams[i].what, "a character in two halves") != 0)
            continue;
        got = hear(&h, rv_str_of(streams[i].body));
        ck_assert_ptr_nonnull(strstr(got, "text a\ntext \xF0\x9F\x98\x80"
                                          "b"));
        got[strlen(got)] = '?'; /* the NUL of the text, once as a delta and once in the reply */
        got[strlen(got)] = '?';
        ck_assert_ptr_nonnull(strstr(got, "= a\xF0\x9F\x98\x80"
                                          "b?\n"));
        ck_assert_ptr_nonnull(strstr(got, "\"thinking\":\"\xF0\x9F\x98\x80\",\"signature\":\"s\""));
        free(got);
    }
}
END_TEST

/* Proves 12.2/end: An error in mid-stream, a reset, an end without its mark: a failure with the text that had come,
 * never an answer */
START_TEST(every_end_before_the_end_mark_is_a_failure_with_the_text_that_came)
{
    const char *body = streams[0].body;
    rv_str bytes = {body, strlen(body) - 1}; /* the event that ends it all is complete with its empty line only */

    for (; bytes.len > 0; bytes.len--) {
        struct hear h = {.target = &target, .only_reply = true, .step = 7};
        char *got = hear(&h, bytes);
        ck_assert_msg(strstr(got, "\n! protocol retryable"), "%zu bytes: %s", bytes.len, got);
        free(got);
        h.why = "connection reset";
        h.kind = RV_LLM_ERROR_CONNECTION;
        got = hear(&h, bytes);
        ck_assert_msg(strstr(got, "! connection retryable billed: anthropic:claude-sonnet-4-5: connection reset"), "%s",
                      got);
        free(got);
    }
}
END_TEST

static const struct {
    const char *what, *body, *want;
} wholes[] = {
    {"all at once",
     "{\"type\":\"message\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"s\"},{\"type\":"
     "\"text\","
     "\"text\":\"Hi\"},{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{\"x\":[1.50,null]}}],\"stop_"
     "reason\":"
     "\"tool_use\",\"usage\":{\"input_tokens\":3,\"output_tokens\":4}}",
     "usage 3 4\nthinking hm\ntext Hi\nstart 0 a f\narguments 0 {\"x\":[1.50,null]}\nend 0\nfinish tool_calls\n= Hi\n"
     "calls [{\"id\":\"a\",\"name\":\"f\",\"arguments\":\"{\\\"x\\\":[1.50,null]}\"}]\nopaque "
     "{\"provider\":\"anthropic\",\"blocks\":[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"s\"}]}\n"
     "usage 3 4\nfinish tool_calls\n"},
    {"an error with a good status", "{\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"oops\"}}",
     "= \n! overloaded retryable billed: anthropic:claude-sonnet-4-5: the provider broke off: oops\n"},
    {"something else", "{\"id\":7}",
     "= \n! protocol retryable billed: anthropic:claude-sonnet-4-5: the answer has no content\n"},
};

START_TEST(a_message_that_comes_at_once_is_read_too)
{
    struct hear h = {.target = &target, .content_type = "application/json; charset=utf-8", .step = 3};

    same_text(wholes[_i].what, hear(&h, rv_str_of(wholes[_i].body)), wholes[_i].want);
}
END_TEST

static const struct {
    int status;
    const char *body, *want; /* want: "kind retryable" */
} faults[] = {
    {400, "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"max_tokens: required\"}}",
     "bad_request"},
    {400, "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"Prompt is too long\"}}",
     "context_too_long"},
    {400,
     "{\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and `max_tokens` exceed context "
     "limit\"}}",
     "context_too_long"},
    {400, "{\"error\":{\"type\":\"invalid_request_error\",\"message\":\"Output blocked by content filtering policy\"}}",
     "content_filter"},
    {401, "{\"error\":{\"type\":\"authentication_error\",\"message\":\"invalid x-api-key\"}}", "auth"},
    {402, "{\"error\":{\"type\":\"billing_error\",\"message\":\"pay\"}}", "rate_limited"},
    {403, "{\"error\":{\"type\":\"permission_error\",\"message\":\"no\"}}", "auth"},
    {404, "{\"error\":{\"type\":\"not_found_error\",\"message\":\"model: x\"}}", "bad_request"},
    {413, "{\"error\":{\"type\":\"request_too_large\",\"message\":\"32 MB\"}}", "context_too_long"},
    {413, "<html>", "context_too_long"},
    {429, "{\"error\":{\"type\":\"rate_limit_error\",\"message\":\"slow down\"}}", "rate_limited retryable"},
    {429,
     "{\"error\":{\"type\":\"rate_limit_error\",\"message\":\"spent\",\"details\":{\"error_code\":"
     "\"enforced_spend_limit_reached\"}}}",
     "rate_limited"},
    {500, "{\"error\":{\"type\":\"api_error\",\"message\":\"oops\"}}", "overloaded retryable"},
    {504, "{\"error\":{\"type\":\"timeout_error\",\"message\":\"late\"}}", "timeout retryable"},
    {529, "{\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}", "overloaded retryable"},
    {529, "", "overloaded retryable"},
    {418, "{\"error\":{\"type\":\"teapot_error\"}}", "bad_request"},
    {400, "{\"error\":\"words\"}", "bad_request"},
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

START_TEST(what_is_handed_back_is_bounded)
{
    rv_buf body = RV_BUF_INIT(SIZE_MAX / 2);
    struct hear h = {.target = &target, .only_reply = true};
    char *got;

    rv_buf_puts(&body, START(""));
    for (int i = 0; i < 1025; i++)
        rv_buf_puts(&body, BLOCK(0, "\"type\":\"redacted_thinking\",\"data\":\"z\"") BLOCK_END(0));
    got = hear(&h, rv_buf_str(&body));
    ck_assert_msg(strstr(got, "handed back is longer than") != NULL, "%s", got);
    free(got);

    rv_buf_clear(&body);
    rv_buf_puts(&body, START(""));
    for (int i = 0; i < 2; i++) {
        rv_buf_puts(&body, "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":"
                           "\"redacted_thinking\",\"data\":\"");
        for (int k = 0; k < 1 << 19; k++)
            rv_buf_puts(&body, "data");
        rv_buf_puts(&body, "\"}}\n\n");
    }
    got = hear(&h, rv_buf_str(&body));
    ck_assert_msg(strstr(got, "handed back is longer than") != NULL, "%.200s", got);
    free(got);
    rv_buf_fini(&body);
}
END_TEST

START_TEST(many_and_long_deltas_pass)
{
    rv_buf body = RV_BUF_INIT(SIZE_MAX / 2);
    struct hear h = {.target = &target, .only_reply = true, .step = 65536};
    char *got;

    rv_buf_puts(&body, START("") THINKING(0));
    for (int i = 0; i < 50000; i++)
        rv_buf_puts(&body, THOUGHT(0, "hm"));
    rv_buf_puts(&body, SIGNATURE(0, "s") BLOCK_END(0) BLOCK(1, "\"type\":\"text\",\"text\":\"\""));
    for (int i = 0; i < 100000; i++)
        rv_buf_puts(&body, DELTA(1, "\"type\":\"text_delta\",\"text\":\"x\""));
    rv_buf_puts(&body,
                "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"");
    for (int i = 0; i < 1 << 20; i++)
        rv_buf_putc(&body, 'y');
    rv_buf_puts(&body, "\"}}\n\n" BLOCK_END(1) END("\"end_turn\"", ""));
    got = hear(&h, rv_buf_str(&body));
    ck_assert_uint_gt(strlen(got), 2 + 100000 + (1 << 20) + 100000);
    ck_assert_ptr_nonnull(strstr(got, "\nfinish stop\n"));
    free(got);
    rv_buf_fini(&body);
}
END_TEST

TCase *anthropic_case(void)
{
    TCase *tc = tcase_create("anthropic");

    tcase_add_loop_test(tc, answers_do_not_depend_on_cuts_or_line_ends, 0, RV_COUNT(streams));
    tcase_add_test(tc, half_characters_and_nuls_come_whole);
    tcase_add_test(tc, every_end_before_the_end_mark_is_a_failure_with_the_text_that_came);
    tcase_add_loop_test(tc, a_message_that_comes_at_once_is_read_too, 0, RV_COUNT(wholes));
    tcase_add_loop_test(tc, errors_are_told_apart, 0, RV_COUNT(faults));
    tcase_add_test(tc, what_is_handed_back_is_bounded);
    tcase_add_test(tc, many_and_long_deltas_pass);
    return tc;
}
