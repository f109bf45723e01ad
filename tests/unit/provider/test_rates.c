/* Requests and tokens per minute, and limits that the provider says are used up: exact times. */
#include <string.h>

#include "coreengine/model/provider/provider_internal.h"
#include "tests/unit/provider/suites.h"
#include "tests/unit/provider/world.h"

static const struct answer good = {.status = 200};

static int64_t call(struct world *w, const struct answer *a)
{
    struct rv_exchange_opts opts = world_opts(w, "default");
    rv_exchange *x = world_exchange(w, &opts);
    int64_t at;

    world_drive(w, x, a, 1);
    ck_assert_uint_ge(w->n_sent, 1);
    at = w->sent_at[0] - START_US;
    rv_exchange_free(x);
    return at;
}

/* Proves 12.3/rates: Requests and tokens per minute, and limits that the provider says are used up */
START_TEST(requests_per_minute_are_spread_after_a_small_burst)
{
    struct world w;

    world_init(&w);
    world_model(&w, "default", "openai", "m", "{'requests_per_minute':60}");
    for (int i = 0; i < 6; i++) /* a tenth of a minute's worth at once */
        ck_assert_int_eq(call(&w, &good), 0);
    for (int i = 1; i < 20; i++)
        ck_assert_int_eq(call(&w, &good), i * S);
    w.now_us = START_US + 100 * S; /* rested: the bucket is full again, and no fuller */
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(call(&w, &good), 100 * S);
    ck_assert_int_eq(call(&w, &good), 101 * S);
    world_fini(&w);
}
END_TEST

START_TEST(less_than_one_request_fits_a_bucket)
{
    struct world w;

    world_init(&w);
    world_model(&w, "default", "openai", "m", "{'requests_per_minute':2}");
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(call(&w, &good), i * 30 * S);
    world_fini(&w);
}
END_TEST

/* Proves 12.3/rates */
START_TEST(tokens_are_estimated_then_settled)
{
    struct world w;
    int64_t first, second, third;

    world_init(&w);
    world_model(&w, "default", "openai", "m", "{'tokens_per_minute':60}"); /* HELLO takes 15: 15 s of it */
    first = call(&w, &good);
    second = call(&w, &good);
    third = call(&w, &good);
    ck_assert_int_eq(first, 0);
    ck_assert_int_eq(second, 15 * S);
    ck_assert_int_eq(third, 30 * S);
    world_fini(&w);
}
END_TEST

START_TEST(tokens_that_nobody_can_have_used_hold_for_minutes_not_for_ever)
{
    static const struct answer much = {
        .status = 200,
        .body = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}],"
                "\"usage\":{\"prompt_tokens\":4503599627370496,\"completion_tokens\":4503599627370496}}\n\n"};
    struct world w;

    world_init(&w);
    world_model(&w, "default", "openai", "m", "{'tokens_per_minute':60}");
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(call(&w, &much), i * 600 * S);
    world_fini(&w);
}
END_TEST

/* Proves 12.3/rates */
START_TEST(a_limit_that_is_used_up_holds_everyone)
{
    static const struct answer last = {
        .status = 200, .headers = "x-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 6m0s"};
    static const struct answer soon = {.status = 200,
                                       .headers = "x-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-tokens: 1.5s"};
    static const struct answer date = {
        .status = 200,
        .headers = "anthropic-ratelimit-requests-remaining: 0\nanthropic-ratelimit-requests-reset: "
                   "2026-09-21T14:13:50Z"};
    struct world w;

    world_init(&w);
    world_model(&w, "default", "openai", "m", NULL);
    ck_assert_int_eq(call(&w, &last), 0);
    ck_assert_int_eq(call(&w, &soon), 0); /* longer than anyone waits: not heeded */
    ck_assert_int_eq(call(&w, &date), 1500 * MS);
    ck_assert_int_eq(call(&w, &good), 30 * S);
    ck_assert_int_eq(call(&w, &good), 30 * S);
    world_fini(&w);
}
END_TEST

START_TEST(who_is_told_to_wait_holds_the_others_too)
{
    static const struct answer limited = {.status = 429, .headers = "retry-after: 4"};
    struct world w;
    rv_exchange *first, *second;
    int64_t at;

    world_init(&w);
    world_model(&w, "default", "openai", "m", NULL);
    first = world_exchange(&w, NULL);
    second = world_exchange(&w, NULL);
    ck_assert_int_eq(rv_exchange_next(first, w.now_us, &at), RV_EXCHANGE_SEND);
    world_answer(&w, first, &limited);
    ck_assert_int_eq(rv_exchange_next(second, w.now_us, &at), RV_EXCHANGE_WAIT);
    ck_assert_int_eq(at, START_US + 4 * S);
    rv_exchange_free(first);
    rv_exchange_free(second);
    world_fini(&w);
}
END_TEST

START_TEST(an_answer_that_says_nothing_ends_no_limit)
{
    static const struct answer last = {.status = 200,
                                       .headers = "x-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 9s"};
    struct world w;
    rv_exchange *first, *second;
    int64_t at;

    world_init(&w);
    world_model(&w, "default", "openai", "m", NULL);
    first = world_exchange(&w, NULL);
    second = world_exchange(&w, NULL);
    ck_assert_int_eq(rv_exchange_next(first, w.now_us, &at), RV_EXCHANGE_SEND);
    ck_assert_int_eq(rv_exchange_next(second, w.now_us, &at), RV_EXCHANGE_SEND);
    world_answer(&w, first, &last);
    world_answer(&w, second, &good);
    rv_exchange_free(first);
    rv_exchange_free(second);
    ck_assert_int_eq(call(&w, &good), 9 * S);
    world_fini(&w);
}
END_TEST

START_TEST(a_rate_that_passes_the_deadline_fails_at_once)
{
    struct rv_exchange_opts opts;
    struct world w;
    rv_exchange *x;

    world_init(&w);
    world_model(&w, "default", "openai", "m", "{'requests_per_minute':2}");
    ck_assert_int_eq(call(&w, &good), 0);
    opts = world_opts(&w, "default");
    opts.deadline_us = START_US + 29 * S;
    x = world_exchange(&w, &opts);
    world_drive(&w, x, NULL, 0);
    ck_assert_int_eq(rv_exchange_reply(x)->answer.error_kind, RV_LLM_ERROR_RATE_LIMITED);
    ck_assert_ptr_nonnull(
        strstr(world_error(x), "a rate limit holds it for another 30000 ms, which passes the deadline"));
    ck_assert_int_eq(w.now_us, START_US);
    rv_exchange_free(x);
    ck_assert_int_eq(call(&w, &good), 30 * S); /* it took nothing */
    world_fini(&w);
}
END_TEST

START_TEST(who_waits_behind_another_learns_its_own_time)
{
    struct world w;
    rv_exchange *a, *b;
    int64_t at;

    world_init(&w);
    world_model(&w, "default", "openai", "m", "{'requests_per_minute':2}");
    call(&w, &good);
    a = world_exchange(&w, NULL);
    b = world_exchange(&w, NULL);
    ck_assert_int_eq(rv_exchange_next(a, w.now_us, &at), RV_EXCHANGE_WAIT);
    ck_assert_int_eq(at, START_US + 30 * S);
    ck_assert_int_eq(rv_exchange_next(b, w.now_us, &at), RV_EXCHANGE_WAIT);
    ck_assert(at == INT64_MAX);
    w.now_us = START_US + 30 * S;
    ck_assert_uint_eq(w.n_ready, 0);
    ck_assert_int_eq(rv_exchange_next(a, w.now_us, &at), RV_EXCHANGE_SEND);
    ck_assert_uint_eq(w.n_ready, 1); /* b is first now, and told to ask */
    ck_assert_int_eq(rv_exchange_next(b, w.now_us, &at), RV_EXCHANGE_WAIT);
    ck_assert_int_eq(at, START_US + 60 * S);
    rv_exchange_free(a);
    rv_exchange_free(b);
    world_fini(&w);
}
END_TEST

TCase *rates_case(void)
{
    TCase *tc = tcase_create("rates");

    tcase_add_test(tc, requests_per_minute_are_spread_after_a_small_burst);
    tcase_add_test(tc, less_than_one_request_fits_a_bucket);
    tcase_add_test(tc, tokens_are_estimated_then_settled);
    tcase_add_test(tc, tokens_that_nobody_can_have_used_hold_for_minutes_not_for_ever);
    tcase_add_test(tc, a_limit_that_is_used_up_holds_everyone);
    tcase_add_test(tc, an_answer_that_says_nothing_ends_no_limit);
    tcase_add_test(tc, who_is_told_to_wait_holds_the_others_too);
    tcase_add_test(tc, a_rate_that_passes_the_deadline_fails_at_once);
    tcase_add_test(tc, who_waits_behind_another_learns_its_own_time);
    return tc;
}
