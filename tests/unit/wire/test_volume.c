/* Much of it: long streams, long pieces, many pieces, and more than is allowed. */
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/wire/hear.h"
#include "tests/unit/wire/suites.h"

#define STRIDE   104729 /* prime: the cuts of a long stream fall on every kind of byte */
#define MEGABYTE ((size_t)1 << 20)
#define N_DELTAS 100000

static const struct rv_wire_target target = {.wire = RV_WIRE_OPENAI, .provider = "openai", .model = "gpt-x"};

static void put_delta(rv_buf *body, const char *text)
{
    rv_buf_printf(
        body,
        "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"choices\":[{"
        "\"index\":0,\"delta\":{\"content\":\"%s\"},\"finish_reason\":null}]}\n\n",
        text);
}

static void put_end(rv_buf *body)
{
    rv_buf_puts(body, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
}

/* Proves 12.2/cuts */
START_TEST(a_stream_of_a_megabyte_may_be_cut_anywhere)
{
    static const char *const texts[] = {"Hello, ", "w\xC3\xB6rld", "\\n\\u20ac",
                                        "\\ud83d", "\\ude00",      "\xF0\x9F\x98\x80"};
    rv_buf body = RV_BUF_INIT(2 * MEGABYTE);
    struct hear h = {.target = &target, .only_reply = true};
    size_t n_cuts = (size_t)rv_kit_sample(24, 256);
    char *want;

    for (size_t i = 0; body.len < MEGABYTE; i++)
        put_delta(&body, texts[i % RV_COUNT(texts)]);
    put_end(&body);
    want = hear(&h, rv_buf_str(&body));
    ck_assert_ptr_nonnull(strstr(want, "finish stop"));
    h.step = 1;
    same_text("byte by byte", hear(&h, rv_buf_str(&body)), want);
    h.step = 0;
    for (size_t i = 0; i < n_cuts; i++) {
        h.first = 1 + i * STRIDE % (body.len - 1);
        same_text("in two parts", hear(&h, rv_buf_str(&body)), want);
    }
    free(want);
    rv_buf_fini(&body);
}
END_TEST

/* Proves 12.2/text */
START_TEST(one_delta_may_be_a_megabyte)
{
    rv_buf body = RV_BUF_INIT(4 * MEGABYTE);
    char *text = malloc(MEGABYTE + 1), *got;

    ck_assert_ptr_nonnull(text);
    memset(text, 'x', MEGABYTE);
    text[MEGABYTE] = '\0';
    put_delta(&body, text);
    put_end(&body);
    for (size_t step = 0; step < 2; step++) {
        got = hear(&(struct hear){.target = &target, .only_reply = true, .step = step * 16384}, rv_buf_str(&body));
        ck_assert_uint_eq(strlen(got), 2 + MEGABYTE + strlen("\nfinish stop\n"));
        free(got);
    }
    free(text);
    rv_buf_fini(&body);
}
END_TEST

/* Proves 12.2/text */
START_TEST(there_may_be_a_hundred_thousand_deltas)
{
    rv_buf body = RV_BUF_INIT(64 * MEGABYTE);
    char *got;

    for (size_t i = 0; i < N_DELTAS; i++)
        put_delta(&body, "abc");
    put_end(&body);
    got = hear(&(struct hear){.target = &target, .only_reply = true, .step = 1400}, rv_buf_str(&body));
    ck_assert_uint_eq(strlen(got), 2 + 3 * N_DELTAS + strlen("\nfinish stop\n"));
    free(got);
    rv_buf_fini(&body);
}
END_TEST

/* Each piece might complete the arguments, which are long already: that must not be found out by reading them all. */
START_TEST(pieces_that_repeat_a_name_are_each_read_once)
{
    rv_buf body = RV_BUF_INIT(64 * MEGABYTE);
    char *text = malloc(5 * MEGABYTE + 1), *got;

    ck_assert_ptr_nonnull(text);
    memset(text, 'x', 5 * MEGABYTE);
    text[5 * MEGABYTE] = '\0';
    for (size_t i = 0; i < 2; i++)
        rv_buf_printf(&body,
                      "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"f\","
                      "\"arguments\":\"%s%.*s\"}}]}}]}\n\n",
                      i ? "" : "{\\\"a\\\":\\\"", (int)(5 * MEGABYTE / 2), text);
    for (size_t i = 0; i < 15000; i++)
        rv_buf_puts(&body, "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"f\","
                           "\"arguments\":\"}\"}}]}}]}\n\n");
    put_end(&body);
    ck_assert_int_eq(body.rc, 0);
    got = hear(&(struct hear){.target = &target, .only_reply = true}, rv_buf_str(&body));
    ck_assert_ptr_null(strstr(got, "call_2"));
    free(got);
    free(text);
    rv_buf_fini(&body);
}
END_TEST

/* The same piece until the reply is too long. */
static char *hear_too_much(const char *event, size_t n)
{
    rv_buf body = RV_BUF_INIT(64 * MEGABYTE);
    char *got;

    for (size_t i = 0; i < n; i++)
        rv_buf_printf(&body, "data: %s\n\n", event);
    ck_assert_int_eq(body.rc, 0);
    got = hear(&(struct hear){.target = &target}, rv_buf_str(&body));
    rv_buf_fini(&body);
    return got;
}

/* Proves 12.2/bounds: Size, depth and number of whatever comes have an end */
START_TEST(a_reply_that_is_too_long_is_broken)
{
    static const char *const members[] = {
        "\"content\":\"%s\"", "\"reasoning\":\"%s\"",
        "\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"%s\"}}]"};
    rv_buf event = RV_BUF_INIT(2 * MEGABYTE);
    char *text = malloc(MEGABYTE + 1), *got;
    const char *at = strstr(members[_i], "%s");

    ck_assert_ptr_nonnull(text);
    ck_assert_ptr_nonnull(at);
    memset(text, 'x', MEGABYTE);
    text[MEGABYTE] = '\0';
    rv_buf_puts(&event, "{\"choices\":[{\"delta\":{");
    rv_buf_add(&event, members[_i], (size_t)(at - members[_i]));
    rv_buf_puts(&event, text);
    rv_buf_puts(&event, at + 2);
    rv_buf_puts(&event, "}}]}");
    got = hear_too_much(rv_buf_cstr(&event), 9);
    ck_assert_ptr_nonnull(
        strstr(got, "\n! protocol retryable billed: openai:gpt-x: the reply is longer than 8388608 bytes\n"));
    size_t n_deltas = 0;
    for (const char *line = got; (line = strstr(line, " xxxxxxxx")); line = strchr(line, '\n'))
        n_deltas += line[-1] != '=';
    ck_assert_uint_eq(n_deltas, 8); /* the piece that does not fit is not handed out */
    free(got);
    free(text);
    rv_buf_fini(&event);
}
END_TEST

/* Proves 12.2/bounds */
START_TEST(an_event_that_is_too_long_breaks_the_reply)
{
    rv_buf body = RV_BUF_INIT(8 * MEGABYTE);

    rv_buf_puts(&body, "data: ");
    while (body.len <= RV_WIRE_MAX_EVENT)
        rv_buf_puts(&body, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    same_text("event", hear(&(struct hear){.target = &target, .step = 65536}, rv_buf_str(&body)),
              "= \n! protocol retryable billed: openai:gpt-x: a server-sent event is longer than 4194304 bytes\n");
    rv_buf_fini(&body);
}
END_TEST

START_TEST(an_answer_at_once_that_is_too_long_breaks_the_reply)
{
    rv_buf body = RV_BUF_INIT(20 * MEGABYTE);
    struct hear h = {.target = &target, .content_type = "application/json", .step = 65536};

    while (body.len <= WIRE_MAX_WHOLE)
        rv_buf_puts(&body, "                                                                ");
    same_text("whole", hear(&h, rv_buf_str(&body)),
              "= \n! protocol retryable billed: openai:gpt-x: the answer is longer than 16 MiB\n");
    rv_buf_fini(&body);
}
END_TEST

/* Proves 12.2/bounds */
START_TEST(deep_nesting_is_refused)
{
    rv_buf body = RV_BUF_INIT(MEGABYTE);
    char *got;

    rv_buf_puts(&body, "data: ");
    for (int i = 0; i < 100000; i++)
        rv_buf_puts(&body, "{\"a\":");
    rv_buf_puts(&body, "\n\n");
    got = hear(&(struct hear){.target = &target}, rv_buf_str(&body));
    ck_assert_ptr_nonnull(strstr(got, "! protocol retryable"));
    free(got);
    rv_buf_fini(&body);
}
END_TEST

TCase *volume_case(void)
{
    TCase *c = tcase_create("volume");

    tcase_add_test(c, a_stream_of_a_megabyte_may_be_cut_anywhere);
    tcase_add_test(c, one_delta_may_be_a_megabyte);
    tcase_add_test(c, there_may_be_a_hundred_thousand_deltas);
    tcase_add_test(c, pieces_that_repeat_a_name_are_each_read_once);
    tcase_add_loop_test(c, a_reply_that_is_too_long_is_broken, 0, 3);
    tcase_add_test(c, an_event_that_is_too_long_breaks_the_reply);
    tcase_add_test(c, an_answer_at_once_that_is_too_long_breaks_the_reply);
    tcase_add_test(c, deep_nesting_is_refused);
    return c;
}
