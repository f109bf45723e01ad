/* Section 10, tool health and breaker: borders of every figure. */
#include "coreengine/tools/tools.h"

#include <stdlib.h>

#include "tests/unit/tools/suites.h"

#define SECOND_US 1000000

static void record(struct rv_tool_health *h, int n, bool ok, int64_t latency_ms, int64_t at_us)
{
    while (n-- > 0)
        rv_tool_health_note(h, at_us, ok, latency_ms);
}

static const struct {
    const char *id;
    int n_ok, n_failed;
    int64_t latency_ms;
    enum rv_health want;
} status_cases[] = {
    {"10 no call", 0, 0, 0, RV_HEALTH_UNKNOWN},
    {"10 four calls are too few", 4, 0, 10, RV_HEALTH_UNKNOWN},
    {"10 four failures are too few", 0, 4, 10, RV_HEALTH_UNKNOWN},
    {"10 five good calls", 5, 0, 10, RV_HEALTH_HEALTHY},
    {"10 95 % is healthy", 95, 5, 10, RV_HEALTH_HEALTHY},
    {"10 94 % is degraded", 94, 6, 10, RV_HEALTH_DEGRADED},
    {"10 80 % is degraded", 80, 20, 10, RV_HEALTH_DEGRADED},
    {"10 79 % is unhealthy", 79, 21, 10, RV_HEALTH_UNHEALTHY},
    {"10 80 % of five", 4, 1, 10, RV_HEALTH_DEGRADED},
    {"10 2000 ms is healthy", 10, 0, 2000, RV_HEALTH_HEALTHY},
    {"10 2001 ms is degraded", 10, 0, 2001, RV_HEALTH_DEGRADED},
    {"10 5000 ms is degraded", 10, 0, 5000, RV_HEALTH_DEGRADED},
    {"10 5001 ms is unhealthy", 10, 0, 5001, RV_HEALTH_UNHEALTHY},
    {"10 the worse of rate and latency: latency", 100, 0, 9000, RV_HEALTH_UNHEALTHY},
    {"10 the worse of rate and latency: rate", 5, 5, 1, RV_HEALTH_UNHEALTHY},
    {"10 negative latency counts as none", 5, 0, -7, RV_HEALTH_HEALTHY},
    {"10 huge latencies do not overflow", 100, 0, INT64_MAX, RV_HEALTH_UNHEALTHY},
};

/* Proves 10/health-rate: 95 % success is healthy, 80 % degraded, less unhealthy
 * Proves 10/health-latency: A mean latency of up to 2000 ms is healthy, up to 5000 ms degraded, more unhealthy; the
 * worse of rate and latency is the status
 * Proves 10/health-window */
START_TEST(status_is_the_worse_of_success_rate_and_latency)
{
    struct rv_tool_health h = {.n = 0};

    record(&h, status_cases[_i].n_ok, true, status_cases[_i].latency_ms, 0);
    record(&h, status_cases[_i].n_failed, false, status_cases[_i].latency_ms, 0);
    ck_assert_msg(rv_tool_health_status(&h) == status_cases[_i].want, "%s", status_cases[_i].id);
}
END_TEST

/* Proves 10/health-latency */
START_TEST(latency_is_a_mean)
{
    struct rv_tool_health h = {.n = 0};

    record(&h, 3, true, 0, 0);
    record(&h, 2, true, 5000, 0);
    ck_assert_int_eq(rv_tool_health_status(&h), RV_HEALTH_HEALTHY);
    record(&h, 1, true, 2003, 0);
    ck_assert_int_eq(rv_tool_health_status(&h), RV_HEALTH_DEGRADED);
}
END_TEST

/* Proves 10/health-window: The last hundred calls of a tool count; below five its health is unknown */
START_TEST(only_the_last_hundred_calls_count)
{
    struct rv_tool_health h = {.n = 0};

    record(&h, 50, false, 9000, 0);
    record(&h, 99, true, 10, 0);
    ck_assert_int_eq((int)h.n, RV_HEALTH_WINDOW);
    ck_assert_int_eq(rv_tool_health_status(&h), RV_HEALTH_HEALTHY);
    ck_assert(rv_tool_health_success_rate(&h) == 0.99);
    record(&h, 1, true, 10, 0);
    ck_assert(rv_tool_health_success_rate(&h) == 1.0);
}
END_TEST

/* Proves 10/health-rate */
START_TEST(success_rate_without_calls_is_one)
{
    struct rv_tool_health h = {.n = 0};

    ck_assert(rv_tool_health_success_rate(&h) == 1.0);
    record(&h, 1, true, 0, 0);
    record(&h, 3, false, 0, 0);
    ck_assert(rv_tool_health_success_rate(&h) == 0.25);
}
END_TEST

static const struct {
    const char *id;
    int n_failed, n_ok;
    int64_t at_us, now_us;
    bool open;
} breaker_cases[] = {
    {"10 no call", 0, 0, 0, 0, false},
    {"10 four errors", 4, 0, 0, 0, false},
    {"10 five errors", 5, 0, 0, 0, true},
    {"10 good calls do not close it", 5, 50, 0, 0, true},
    {"10 five errors 300 s ago", 5, 0, 0, RV_BREAKER_WINDOW_US, true},
    {"10 five errors just over 300 s ago", 5, 0, 0, RV_BREAKER_WINDOW_US + 1, false},
    {"10 the clock went back", 5, 0, 900 * (int64_t)SECOND_US, 0, true},
    {"10 pushed out of the window by calls", 5, 100, 0, 0, false},
};

/* Proves 10/health-breaker: Five errors within 300 s block a tool */
START_TEST(breaker_opens_on_five_errors_within_300_seconds)
{
    struct rv_tool_health h = {.n = 0};

    record(&h, breaker_cases[_i].n_failed, false, 1, breaker_cases[_i].at_us);
    record(&h, breaker_cases[_i].n_ok, true, 1, breaker_cases[_i].at_us);
    ck_assert_msg(rv_tool_breaker_open(&h, breaker_cases[_i].now_us) == breaker_cases[_i].open, "%s",
                  breaker_cases[_i].id);
}
END_TEST

/* Proves 10/health-breaker */
START_TEST(breaker_counts_errors_by_their_own_time)
{
    struct rv_tool_health h = {.n = 0};

    for (int i = 0; i < 5; i++)
        record(&h, 1, false, 1, i * 100 * (int64_t)SECOND_US);
    ck_assert(!rv_tool_breaker_open(&h, 400 * (int64_t)SECOND_US)); /* the first is 400 s old */
    record(&h, 1, false, 1, 400 * (int64_t)SECOND_US);
    ck_assert(rv_tool_breaker_open(&h, 400 * (int64_t)SECOND_US));
}
END_TEST

static const struct {
    const char *id, *first, *second, *want; /* two errors of one type; want: the message of the first, or both */
} kind_cases[] = {
    {"10/errors: the same", "no such key", "no such key", "no such key"},
    {"10/errors: another", "no such key", "no such file", NULL},
    {"10/errors: numbers", "line 7 of 12", "line 104 of 9", "line # of #"},
    {"10/errors: units stay", "late by 7ms", "late by 12ms", "late by #ms"},
    {"10/errors: addresses", "at 0x7f3a", "at 0x11", "at #"},
    {"10/errors: hashes", "commit 4be1c0", "commit 99aa7f", "commit #"},
    {"10/errors: words of hexadecimal digits are words", "bad face", "bad cafe", NULL},
    {"10/errors: double quotes", "no \"a b\" here", "no \"x \\\" y\" here", "no \"...\" here"},
    {"10/errors: single quotes", "no 'it's' here", "no 'that' here", "no '...' here"},
    {"10/errors: backquotes", "no `a`", "no `b`", "no `...`"},
    {"10/errors: an apostrophe is no quote", "can't say it, won't do", "can't say it, won't do",
     "can't say it, won't do"},
    {"10/errors: an open quote is text", "no \"end", "no \"end", "no \"end"},
    {"10/errors: the first line counts", "broken\n at 1", "broken\n in 2", "broken"},
    {"10/errors: nothing said", "", "", ""},
    {"10/errors: bytes that are no text", "a\xff\tb", "a\xfe\tb", "a? b"},
    {"10/errors: a head only",
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xc3\xa4 one",
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xc3\xa4 two",
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
};

/* Proves 10/health-errors: The errors of a tool are counted by their type and the head of their message, numbers
 * and quoted parts aside: the last 16 kinds, the most frequent first */
START_TEST(errors_of_one_kind_differ_in_numbers_and_quotes_only)
{
    struct rv_tool_health h = {.n = 0};

    rv_tool_health_note_error(&h, RV_STR_LIT("ToolError"), rv_str_of(kind_cases[_i].first));
    rv_tool_health_note_error(&h, RV_STR_LIT("ToolError"), rv_str_of(kind_cases[_i].second));
    if (!kind_cases[_i].want) {
        ck_assert_msg(h.n_errors == 2, "%s", kind_cases[_i].id);
        return;
    }
    ck_assert_msg(h.n_errors == 1, "%s: \"%s\", \"%s\"", kind_cases[_i].id, h.errors[0].head, h.errors[1].head);
    ck_assert_str_eq(h.errors[0].head, kind_cases[_i].want);
    ck_assert_int_eq(h.errors[0].count, 2);
}
END_TEST

static char *written_errors(const struct rv_tool_health *h)
{
    rv_buf b = RV_BUF_INIT(1 << 16);
    rv_jw w = rv_jw_on(&b);

    rv_tool_health_write_errors(h, &w);
    ck_assert_int_eq(b.rc, 0);
    return rv_buf_steal(&b, NULL);
}

/* Proves 10/health-errors */
START_TEST(errors_are_listed_by_count_and_the_latest_of_equal_ones_first)
{
    struct rv_tool_health h = {.n = 0};
    static const char *const types[] = {"A", "B", "C", "B", "D"};

    char *text = written_errors(&h);
    ck_assert_str_eq(text, "[]");
    free(text);
    for (size_t i = 0; i < RV_COUNT(types); i++)
        rv_tool_health_note_error(&h, rv_str_of(types[i]), RV_STR_LIT("no"));
    text = written_errors(&h);
    ck_assert_str_eq(text, "[{\"error_type\":\"B\",\"message\":\"no\",\"count\":2},"
                           "{\"error_type\":\"D\",\"message\":\"no\",\"count\":1},"
                           "{\"error_type\":\"C\",\"message\":\"no\",\"count\":1},"
                           "{\"error_type\":\"A\",\"message\":\"no\",\"count\":1}]");
    free(text);
}
END_TEST

/* Proves 10/health-errors */
START_TEST(the_kind_of_error_not_seen_for_longest_gives_way)
{
    struct rv_tool_health h = {.n = 0};
    char type[] = "a";

    for (int i = 0; i < RV_HEALTH_ERRORS; i++, type[0]++)
        rv_tool_health_note_error(&h, rv_str_of(type), RV_STR_LIT(""));
    rv_tool_health_note_error(&h, RV_STR_LIT("a"), RV_STR_LIT("")); /* now "b" is the oldest */
    rv_tool_health_note_error(&h, RV_STR_LIT("new"), RV_STR_LIT(""));
    ck_assert_uint_eq(h.n_errors, RV_HEALTH_ERRORS);
    ck_assert_str_eq(h.errors[0].type, "a");
    ck_assert_int_eq(h.errors[0].count, 2);
    ck_assert_str_eq(h.errors[1].type, "new");
    ck_assert_int_eq(h.errors[1].count, 1);
}
END_TEST

START_TEST(any_bytes_make_a_kind_that_can_be_written)
{
    static const char parts[] = "\"'`\\ \n\t0aF9xz\xc3\xa4\xff\xe2\x82";
    struct rv_tool_health h = {.n = 0};
    unsigned seed = 1;
    char bytes[5000];

    for (size_t len = 0; len <= sizeof bytes; len += len < 200 ? 1 : 400) {
        for (size_t i = 0; i < len; i++) {
            seed = seed * 1103515245 + 12345;
            bytes[i] = parts[(seed >> 16) % sizeof parts];
        }
        rv_tool_health_note_error(&h, (rv_str){bytes, len / 2}, (rv_str){bytes, len});
        char *text = written_errors(&h);
        ck_assert(rv_utf8_valid(rv_str_of(text), NULL));
        free(text);
    }
    ck_assert_uint_eq(h.n_errors, RV_HEALTH_ERRORS);
}
END_TEST

TCase *health_case(void)
{
    TCase *tc = tcase_create("health");

    tcase_add_loop_test(tc, status_is_the_worse_of_success_rate_and_latency, 0, (int)RV_COUNT(status_cases));
    tcase_add_test(tc, latency_is_a_mean);
    tcase_add_test(tc, only_the_last_hundred_calls_count);
    tcase_add_test(tc, success_rate_without_calls_is_one);
    tcase_add_loop_test(tc, breaker_opens_on_five_errors_within_300_seconds, 0, (int)RV_COUNT(breaker_cases));
    tcase_add_test(tc, breaker_counts_errors_by_their_own_time);
    tcase_add_loop_test(tc, errors_of_one_kind_differ_in_numbers_and_quotes_only, 0, (int)RV_COUNT(kind_cases));
    tcase_add_test(tc, errors_are_listed_by_count_and_the_latest_of_equal_ones_first);
    tcase_add_test(tc, any_bytes_make_a_kind_that_can_be_written);
    tcase_add_test(tc, the_kind_of_error_not_seen_for_longest_gives_way);
    return tc;
}
