/* Readers: how a body is framed, what is too much, what an end means. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/wire/hear.h"
#include "tests/unit/wire/suites.h"

static const struct rv_wire_target target = {.wire = RV_WIRE_OPENAI, .provider = "openai", .model = "gpt-x"};

#define CHUNK  "{\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":null}]}"
#define FINISH "{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}"
#define GOOD   "text x\nfinish stop\n= x\nfinish stop\n"

static const struct {
    const char *type, *body, *want;
} frames[] = {
    {"text/event-stream", "data: " CHUNK "\n\ndata: " FINISH "\n\n", GOOD},
    {"text/event-stream; charset=utf-8", "data: " CHUNK "\n\ndata: " FINISH "\n\n", GOOD},
    {"TEXT/Event-Stream ;charset=utf-8", "data: " CHUNK "\n\ndata: " FINISH "\n\n", GOOD},
    {"", "data: " CHUNK "\n\ndata: " FINISH "\n\n", GOOD},
    {"application/x-ndjson", CHUNK "\n" FINISH, GOOD},
    {"application/ndjson;x", CHUNK "\r\n" FINISH "\n", GOOD},
    {"application/json", "{\"choices\":[{\"message\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}", GOOD},
    {"text/html; charset=utf-8", "<html>\n<body>Sign in</body>",
     "= \n! protocol retryable billed: openai:gpt-x: the answer has the content type \"text/html\": <html> <body>Sign "
     "in</body>\n"},
    {"application/x-ndjson", CHUNK "\n",
     "text x\n= x\n! protocol retryable billed: openai:gpt-x: the stream ended before the answer was complete\n"},
    {"application/x-ndjson", CHUNK "\n{",
     "text x\n= x\n! protocol retryable billed: openai:gpt-x: the answer cannot be understood: its JSON: line 1, "
     "column "
     "2: expected a key in double quotes, found the end of the text: {\n"},
};

START_TEST(the_content_type_says_how_a_body_is_framed)
{
    struct hear h = {.target = &target, .content_type = frames[_i].type};

    for (h.step = 0; h.step < 5; h.step++)
        same_text(frames[_i].type, hear(&h, rv_str_of(frames[_i].body)), frames[_i].want);
}
END_TEST

static const struct {
    const char *what, *body;
    enum rv_llm_error kind;
    const char *want;
} cuts[] = {
    {"a reset after a token", "data: " CHUNK "\n\n", RV_LLM_ERROR_CONNECTION,
     "text x\n= x\n! connection retryable billed: openai:gpt-x: reset\n"},
    {"a deadline", "data: " CHUNK "\n\n", RV_LLM_ERROR_TIMEOUT,
     "text x\n= x\n! timeout retryable billed: openai:gpt-x: reset\n"},
    {"cancelled", "data: " CHUNK "\n\n", RV_LLM_ERROR_CANCELLED,
     "text x\n= x\n! cancelled billed: openai:gpt-x: reset\n"},
    {"cut when all had come", "data: " CHUNK "\n\ndata: " FINISH "\n\n", RV_LLM_ERROR_CONNECTION, GOOD},
    {"broken before it was cut", "data: {\n\n", RV_LLM_ERROR_CONNECTION,
     "= \n! protocol retryable billed: openai:gpt-x: the answer cannot be understood: its JSON: line 1, column 2: "
     "expected a key in double quotes, found the end of the text: {\n"},
};

/* Proves 12.2/end */
START_TEST(a_body_that_is_cut_is_a_failure_with_its_text)
{
    same_text(cuts[_i].what,
              hear(&(struct hear){.target = &target, .why = "reset", .kind = cuts[_i].kind}, rv_str_of(cuts[_i].body)),
              cuts[_i].want);
}
END_TEST

START_TEST(an_answer_at_once_that_is_cut_is_a_failure)
{
    same_text("whole",
              hear(&(struct hear){.target = &target,
                                  .content_type = "application/json",
                                  .why = "reset",
                                  .kind = RV_LLM_ERROR_CONNECTION},
                   RV_STR_LIT("{}")),
              "= \n! connection retryable billed: openai:gpt-x: reset\n");
}
END_TEST

/* Proves 12.2/calls */
START_TEST(a_reply_has_so_many_tool_calls_and_no_more)
{
    for (int extra = 0; extra < 2; extra++) {
        rv_buf body = RV_BUF_INIT((size_t)1 << 20);
        char *got;
        for (int i = 0; i < RV_LLM_MAX_TOOL_CALLS + extra; i++)
            rv_buf_printf(
                &body,
                "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":%d,\"id\":\"c%d\",\"function\":{\"name\":"
                "\"f\",\"arguments\":\"{}\"}}]}}]}\n\n",
                i, i);
        rv_buf_puts(&body, "data: " FINISH "\n\n");
        got = hear(&(struct hear){.target = &target, .only_reply = true}, rv_buf_str(&body));
        if (extra)
            same_text("calls", got,
                      "= \n! protocol retryable billed: openai:gpt-x: the reply has more than 128 tool calls\n");
        else
            ck_assert_ptr_nonnull(strstr(got, "\"c127\""));
        if (!extra)
            free(got);
        rv_buf_fini(&body);
    }
}
END_TEST

START_TEST(a_reader_is_done_when_nothing_can_change_any_more)
{
    rv_wire_reader *r = NULL;

    ck_assert_int_eq(rv_wire_reader_new(&target, RV_STR_LIT(""), NULL, NULL, &r, NULL), 0);
    ck_assert(!rv_wire_is_done(r));
    ck_assert_int_eq(rv_wire_read(r, RV_STR_LIT("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3}}\n\n"), NULL),
                     0);
    ck_assert_int_eq(rv_wire_read(r, RV_STR_LIT("data: " CHUNK "\n\ndata: " FINISH "\n\n"), NULL), 0);
    ck_assert(!rv_wire_is_done(r)); /* usage may follow */
    ck_assert_int_eq(rv_wire_read(r, RV_STR_LIT("data: [DONE]\n\n"), NULL), 0);
    ck_assert(rv_wire_is_done(r));
    rv_wire_reader_free(r);
}
END_TEST

START_TEST(names_that_are_too_long_break_the_reply)
{
    rv_buf body = RV_BUF_INIT((size_t)1 << 20);

    rv_buf_puts(&body,
                "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"");
    for (int i = 0; i < 2000; i++)
        rv_buf_putc(&body, 'n');
    rv_buf_puts(&body, "\"}}]}}]}\n\n");
    same_text(
        "name", hear(&(struct hear){.target = &target}, rv_buf_str(&body)),
        "= \n! protocol retryable billed: openai:gpt-x: the id or the name of a tool call is longer than 1024 bytes\n");
    rv_buf_fini(&body);
}
END_TEST

TCase *reader_case(void)
{
    TCase *c = tcase_create("reader");

    tcase_add_loop_test(c, the_content_type_says_how_a_body_is_framed, 0, RV_COUNT(frames));
    tcase_add_loop_test(c, a_body_that_is_cut_is_a_failure_with_its_text, 0, RV_COUNT(cuts));
    tcase_add_test(c, an_answer_at_once_that_is_cut_is_a_failure);
    tcase_add_test(c, a_reply_has_so_many_tool_calls_and_no_more);
    tcase_add_test(c, a_reader_is_done_when_nothing_can_change_any_more);
    tcase_add_test(c, names_that_are_too_long_break_the_reply);
    return c;
}
