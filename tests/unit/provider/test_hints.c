/* What is read from the headers of answers: waits, dates, limits that are used up. */
#include <string.h>

#include "coreengine/model/provider/provider_internal.h"
#include "tests/unit/provider/suites.h"
#include "tests/unit/provider/world.h"

static const struct {
    const char *text;
    int64_t us; /* 0: nothing to wait for, or not a duration */
} durations[] = {
    {"12ms", 12 * MS},
    {"1s", S},
    {"6m0s", 360 * S},
    {"1h2m3s", 3723 * S},
    {"1.5s", 1500 * MS},
    {"0s", 0},
    {"0.5ms", 500},
    {"250us", 250},
    {"1d", 86400 * S},
    {"7.66s", 7660 * MS},
    {"2m59.56s", 179560 * MS},
    {".5s", 500 * MS},
    {"", 0},
    {"s", 0},
    {"12", 0},
    {"-1s", 0},
    {"1x", 0},
    {"1 s", 0},
    {"1s ", S}, /* spaces around a value are left out */
    {".s", 0},
    {"999999999999999999999s", 0},
    {"9999999999999d", 0},
    {"1e3s", 0},
};

START_TEST(durations_are_read_as_they_are_written)
{
    const struct rv_http_head head = {
        .status = 429,
        .n_headers = 2,
        .headers = {{RV_STR_LIT("x-ratelimit-remaining-requests"), RV_STR_LIT("0")},
                    {RV_STR_LIT("x-ratelimit-reset-requests"), rv_str_of(durations[_i].text)}}};
    struct rv_hints hints;

    provider_hints_read(&head, START_US, 2 * 86400 * S, &hints);
    int64_t got = hints.closed_until_us ? hints.closed_until_us - START_US : 0;
    ck_assert_msg(got == durations[_i].us, "%s: %lld", durations[_i].text, (long long)got);
}
END_TEST

static const struct {
    const char *text;
    int64_t s; /* -1: no date */
} dates[] = {
    {"Sun, 06 Nov 1994 08:49:37 GMT", 784111777},
    {"Sunday, 06-Nov-94 08:49:37 GMT", 784111777},
    {"Sun Nov  6 08:49:37 1994", 784111777},
    {"Mon, 21 Sep 2026 14:13:20 GMT", 1790000000},
    {"Mon, 21-Sep-26 14:13:20 UTC", 1790000000},
    {"Sun, 06 Nov 1994 08:49:37 PST", -1},
    {"Sun, 31 Feb 1994 08:49:37 GMT", -1},
    {"Sun, 06 Nvo 1994 08:49:37 GMT", -1},
    {"Sun, 06 Nov 1994 8:49:37 GMT", -1},
    {"Sun, 06 Nov 1994 25:49:37 GMT", -1},
    {"Sun, 123 Nov 1994 08:49:37 GMT", -1},
    {"Sun, 06 Nov 99999 08:49:37 GMT", -1},
    {"1994-11-06T08:49:37Z", -1},
    {"", -1},
    {"GMT", -1},
};

START_TEST(all_three_forms_of_dates_are_read)
{
    const struct rv_http_head head = {
        .status = 429, .n_headers = 1, .headers = {{RV_STR_LIT("retry-after"), rv_str_of(dates[_i].text)}}};
    struct rv_hints hints;
    bool is_date = dates[_i].s >= 0;

    provider_hints_read(&head, is_date ? (dates[_i].s - 5) * S : 0, S, &hints);
    ck_assert_msg(hints.retry_after_us == (is_date ? 5 * S : -1), "%s: %lld", dates[_i].text,
                  (long long)hints.retry_after_us);
}
END_TEST

static const struct {
    const char *id, *headers;
    int64_t retry_after_us, closed_after_us; /* closed: 0 none */
} heads[] = {
    {"none", "", -1, 0},
    {"fraction", "retry-after: 0.2", 200 * MS, 0},
    {"seconds", "retry-after: 7", 7 * S, 0},
    {"none to wait", "retry-after: 0", 0, 0},
    {"milliseconds win", "retry-after: 7\nretry-after-ms: 1500.5", 1500500, 0},
    {"bad milliseconds do not", "retry-after: 7\nretry-after-ms: soon", 7 * S, 0},
    {"long", "retry-after: 3600", 3600 * S, 0},
    {"centuries", "retry-after: 9999999999", 366 * 86400 * S, 0},
    {"centuries in milliseconds", "retry-after-ms: 99999999999999", 366 * 86400 * S, 0},
    {"the last year", "retry-after: Fri, 31 Dec 9999 23:59:59 GMT", 366 * 86400 * S, 0},
    {"negative", "retry-after: -1", -1, 0},
    {"words", "retry-after: soon", -1, 0},
    {"with a unit", "retry-after: 7s", -1, 0},
    {"date", "retry-after: Mon, 21 Sep 2026 14:13:25 GMT", 5 * S, 0},
    {"date in the past", "retry-after: Mon, 21 Sep 2026 14:13:19 GMT", -1, 0},
    {"nothing used up", "x-ratelimit-remaining-requests: 1\nx-ratelimit-reset-requests: 1s", -1, 0},
    {"requests used up", "x-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 12ms", -1, 12 * MS},
    {"the longer of two",
     "x-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 12ms\nx-ratelimit-remaining-tokens: "
     "0\nx-ratelimit-reset-tokens: 20s",
     -1, 20 * S},
    {"of a day is ignored", "x-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 1h2m3s", -1, 0},
    {"no time", "x-ratelimit-remaining-requests: 0", -1, 0},
    {"a bad time", "x-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: later", -1, 0},
    {"a time, not a span",
     "anthropic-ratelimit-requests-remaining: 0\nanthropic-ratelimit-requests-reset: 2026-09-21T14:13:30Z", -1, 10 * S},
    {"a time that has passed",
     "anthropic-ratelimit-tokens-remaining: 0\nanthropic-ratelimit-tokens-reset: 2026-09-21T14:13:10Z", -1, 0},
    {"input tokens",
     "anthropic-ratelimit-input-tokens-remaining: 0\nanthropic-ratelimit-input-tokens-reset: 2026-09-21T14:13:21Z", -1,
     S},
};

/* Proves 12.3/repeat */
START_TEST(heads_hint_at_waits_and_limits)
{
    struct answer a = {.status = 429, .headers = heads[_i].headers};
    struct rv_http_head head;
    struct rv_hints hints;
    char storage[2000];

    world_fill_head(&head, &a, storage, sizeof storage);
    provider_hints_read(&head, START_US, 60 * S, &hints);
    ck_assert_msg(hints.retry_after_us == heads[_i].retry_after_us, "%s: %lld", heads[_i].id,
                  (long long)hints.retry_after_us);
    ck_assert_msg(hints.closed_until_us == (heads[_i].closed_after_us ? START_US + heads[_i].closed_after_us : 0), "%s",
                  heads[_i].id);
    ck_assert_int_eq(hints.should_retry, -1);
}
END_TEST

START_TEST(request_ids_are_kept_when_they_can_be_shown)
{
    struct rv_http_head head = {.status = 500, .n_headers = 1};
    struct rv_hints hints;
    char longer[500];

    memset(longer, 'a', sizeof longer);
    head.headers[0].name = RV_STR_LIT("x-request-id");
    head.headers[0].value = RV_STR_LIT("req_1");
    provider_hints_read(&head, START_US, S, &hints);
    ck_assert_str_eq(hints.request_id, "req_1");
    head.headers[0].value = RV_STR_LIT("a\x1b[31m");
    provider_hints_read(&head, START_US, S, &hints);
    ck_assert_str_eq(hints.request_id, "");
    head.headers[0].value = (rv_str){longer, sizeof longer};
    provider_hints_read(&head, START_US, S, &hints);
    ck_assert_uint_eq(strlen(hints.request_id), sizeof hints.request_id - 1);
}
END_TEST

START_TEST(any_bytes_are_no_worse_than_nothing)
{
    static const char bytes[] = "0123456789.:-, hmsuadTZGMSunNovRx\xff";
    static const char *const names[] = {
        "retry-after",  "retry-after-ms", "x-ratelimit-reset-requests", "anthropic-ratelimit-tokens-reset",
        "x-request-id", "location"};
    struct rv_rand_state state;
    struct rv_rand rand = rv_rand_seeded(&state, 11);

    for (int round = 0; round < 20000; round++) {
        struct rv_http_head head = {.status = 302, .n_headers = RV_COUNT(names) + 2};
        struct rv_hints hints;
        char text[RV_COUNT(names)][40];
        for (size_t i = 0; i < RV_COUNT(names); i++) {
            size_t n = rv_rand_below(rand, sizeof text[i]);
            for (size_t k = 0; k < n; k++)
                text[i][k] = bytes[rv_rand_below(rand, sizeof bytes)];
            head.headers[i].name = rv_str_of(names[i]);
            head.headers[i].value = (rv_str){text[i], n};
        }
        head.headers[RV_COUNT(names)].name = RV_STR_LIT("x-ratelimit-remaining-requests");
        head.headers[RV_COUNT(names)].value = RV_STR_LIT("0");
        head.headers[RV_COUNT(names) + 1].name = RV_STR_LIT("anthropic-ratelimit-tokens-remaining");
        head.headers[RV_COUNT(names) + 1].value = RV_STR_LIT("0");
        provider_hints_read(&head, START_US, 60 * S, &hints);
        ck_assert(hints.retry_after_us >= -1);
        ck_assert(hints.closed_until_us == 0 ||
                  (hints.closed_until_us > START_US && hints.closed_until_us <= START_US + 60 * S));
    }
}
END_TEST

TCase *hints_case(void)
{
    TCase *tc = tcase_create("hints");

    tcase_add_loop_test(tc, durations_are_read_as_they_are_written, 0, (int)RV_COUNT(durations));
    tcase_add_loop_test(tc, all_three_forms_of_dates_are_read, 0, (int)RV_COUNT(dates));
    tcase_add_loop_test(tc, heads_hint_at_waits_and_limits, 0, (int)RV_COUNT(heads));
    tcase_add_test(tc, any_bytes_are_no_worse_than_nothing);
    tcase_add_test(tc, request_ids_are_kept_when_they_can_be_shown);
    return tc;
}
