/* When a failed attempt is repeated, and after exactly what wait. */
#include <stdio.h>
#include <string.h>

#include "coreengine/model/provider/provider_internal.h"
#include "tests/unit/provider/suites.h"
#include "tests/unit/provider/world.h"

#define SEED 42

/* The waits of our own, as the rule says: half a second, doubled, at most eight, up to a quarter less. */
static int64_t own_wait(struct rv_rand r, int n, int64_t max_us)
{
    int64_t base = S / 2;

    for (int i = 0; i < n && base < 8 * S; i++)
        base *= 2;
    if (base > max_us)
        base = max_us;
    return base - (int64_t)rv_rand_below(r, (uint64_t)(base / 4 + 1));
}

static const struct {
    const char *id, *options;
    struct answer first;
    int64_t wait_us; /* before the second; -1: one of our own */
} waits[] = {
    {"own", NULL, {.status = 503}, -1},
    {"refused", NULL, {.fault = RV_HTTP_UNREACHABLE}, -1},
    {"fraction of a second", NULL, {.status = 429, .headers = "retry-after: 0.2"}, 200 * MS},
    {"date", NULL, {.status = 429, .headers = "retry-after: Mon, 21 Sep 2026 14:13:25 GMT"}, 5 * S},
    {"date that has passed", NULL, {.status = 429, .headers = "retry-after: Mon, 21 Sep 2026 14:13:15 GMT"}, -1},
    {"milliseconds", NULL, {.status = 429, .headers = "retry-after-ms: 37.5\nretry-after: 9"}, 37500},
    {"at once", NULL, {.status = 503, .headers = "retry-after: 0"}, 0},
    {"an hour is ignored", NULL, {.status = 429, .headers = "retry-after: 3600"}, -1},
    {"negative is ignored", NULL, {.status = 429, .headers = "retry-after: -5"}, -1},
    {"the cap itself is not above it", NULL, {.status = 503, .headers = "retry-after: 60"}, 60 * S},
    {"just above the cap", NULL, {.status = 503, .headers = "retry-after-ms: 60000.001"}, -1},
    {"a cap of one's own", "{'max_retry_wait_ms':3600000}", {.status = 429, .headers = "retry-after: 3600"}, 3600 * S},
    {"a low cap", "{'max_retry_wait_ms':100}", {.status = 429, .headers = "retry-after: 1"}, -1},
    {"no wait at all", "{'max_retry_wait_ms':0}", {.status = 503}, -1},
    {"overloaded", NULL, {.status = 529, .headers = "retry-after: 2"}, 2 * S},
};

/* Proves 12.3/repeat: What may pass is repeated with doubling waits and chance, or after the wait that the provider
 * asks for */
START_TEST(the_wait_is_the_hint_or_one_of_our_own)
{
    struct answer answers[] = {waits[_i].first, {.status = 200}};
    struct rv_rand_state state;
    struct rv_rand r = rv_rand_seeded(&state, SEED);
    struct world w;
    rv_exchange *x;
    int64_t want, cap;

    world_init(&w);
    world_model(&w, "default", "openai", "m", waits[_i].options);
    x = world_exchange(&w, NULL);
    cap = x->endpoint.call.max_retry_wait_us;
    world_drive(&w, x, answers, 2);
    want = waits[_i].wait_us >= 0 ? waits[_i].wait_us : own_wait(r, 0, cap);
    ck_assert_uint_eq(w.n_sent, 2);
    ck_assert_msg(w.sent_at[1] - w.sent_at[0] == want, "%s: %lld, not %lld", waits[_i].id,
                  (long long)(w.sent_at[1] - w.sent_at[0]), (long long)want);
    ck_assert(!rv_exchange_reply(x)->failed);
    ck_assert_int_eq(rv_exchange_reply(x)->answer.attempts, 2);
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

/* Proves 12.3/repeat */
START_TEST(waits_double_up_to_eight_seconds)
{
    struct answer quiet = {.status = 429}; /* opens no breaker */
    struct rv_rand_state state;
    struct rv_rand r = rv_rand_seeded(&state, SEED);
    struct world w;
    rv_exchange *x;

    world_init(&w);
    world_model(&w, "default", "openai", "m", "{'max_attempts':8}");
    x = world_exchange(&w, NULL);
    world_drive(&w, x, &quiet, 1);
    ck_assert_uint_eq(w.n_sent, 8);
    for (int n = 0; n < 7; n++) {
        int64_t got = w.sent_at[n + 1] - w.sent_at[n], most = n < 4 ? (S / 2) << n : 8 * S;
        ck_assert_int_eq(got, own_wait(r, n, 60 * S));
        ck_assert_int_le(got, most);
        ck_assert_int_ge(got, most * 3 / 4);
    }
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

/* What a person sees of a call that was slow because it was repeated. */
START_TEST(a_call_takes_the_time_of_all_its_requests_and_tells_each_retry)
{
    static const struct answer answers[] = {
        {.status = 429, .headers = "retry-after: 2", .took_us = 30 * MS},
        {.fault = RV_HTTP_CUT, .took_us = 70 * MS},
        {.status = 200, .took_us = 100 * MS},
    };
    struct world w;

    world_init(&w);
    world_model(&w, "default", "openai", "m", "{'max_attempts':3,'base_url':'http://h/v1'}");
    rv_exchange *x = world_exchange(&w, NULL);
    world_drive(&w, x, answers, 3);
    int64_t wait_us = w.sent_at[2] - w.sent_at[1] - 70 * MS;
    char want[400];
    snprintf(want, sizeof want,
             "default 1/3 waits 2000000: openai m at h answered with status 429: no luck (x) (model_rate_limited)\n"
             "default 2/3 waits %lld: openai m at h: the other side is gone, after 2 attempts (model_no_connection)\n",
             (long long)wait_us);
    ck_assert_str_eq(rv_buf_cstr(&w.retries), want);
    ck_assert_int_eq(rv_exchange_reply(x)->answer.latency_us, w.now_us - START_US);
    ck_assert_int_eq(rv_exchange_reply(x)->answer.first_token_us, w.now_us - START_US - 100 * MS);
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

START_TEST(the_same_random_gives_the_same_waits_and_another_others)
{
    struct answer bad = {.status = 503};
    int64_t at[3];

    for (int i = 0; i < 3; i++) {
        struct world w;
        world_init(&w);
        world_model(&w, "default", "openai", "m", NULL);
        struct rv_exchange_opts opts = world_opts(&w, "default");
        int64_t start = w.now_us;
        rv_exchange *x;
        opts.random = i < 2 ? 7 : 8;
        x = world_exchange(&w, &opts);
        world_drive(&w, x, &bad, 1);
        at[i] = w.sent_at[1] - start;
        rv_exchange_free(x);
        world_fini(&w);
    }
    ck_assert_int_eq(at[0], at[1]);
    ck_assert_int_ne(at[0], at[2]);
}
END_TEST

static const struct {
    const char *id;
    bool charged;
    struct answer answer;
    size_t n_sent;
    bool may_be_billed;
} billed[] = {
    {"nothing was sent", true, {.fault = RV_HTTP_UNREACHABLE}, 3, false},
    {"no time to connect", true, {.fault = RV_HTTP_CONNECT_TIME}, 3, false},
    {"sent, and no status", true, {.fault = RV_HTTP_CUT, .was_sent = true}, 1, true},
    {"sent, and no byte in time", true, {.fault = RV_HTTP_FIRST_BYTE_TIME, .was_sent = true}, 1, true},
    {"a stream that broke", true, {.status = 200, .body = ": ping\n\n", .fault = RV_HTTP_CUT}, 1, true},
    {"an empty stream", true, {.status = 200, .body = ""}, 1, true},
    {"refused by status", true, {.status = 503}, 3, false},
    {"a gateway gave up", true, {.status = 504}, 1, true},
    {"sent without a budget", false, {.fault = RV_HTTP_CUT, .was_sent = true}, 3, true},
    {"broke without a budget", false, {.status = 200, .body = ""}, 3, true},
    {"wrong request", true, {.status = 400}, 1, false},
};

/* Proves 12.4/repeat: With a budget nothing is repeated that may have been charged for */
START_TEST(with_a_budget_nothing_is_repeated_that_may_have_been_charged_for)
{
    struct rv_exchange_opts opts;
    struct world w;
    rv_exchange *x;

    world_init(&w);
    world_model(&w, "default", "openai", "m", NULL);
    world_model(&w, "other", "openai", "n", NULL);
    if (billed[_i].charged && billed[_i].may_be_billed)
        world_fallback(&w, "default", "other", NULL); /* nor is another one asked */
    opts = world_opts(&w, "default");
    opts.charged = billed[_i].charged;
    x = world_exchange(&w, &opts);
    world_drive(&w, x, &billed[_i].answer, 1);
    ck_assert_msg(w.n_sent == billed[_i].n_sent, "%s: %zu", billed[_i].id, w.n_sent);
    ck_assert_msg(rv_exchange_reply(x)->answer.may_be_billed == billed[_i].may_be_billed, "%s", billed[_i].id);
    if (billed[_i].may_be_billed && billed[_i].charged)
        ck_assert_ptr_nonnull(strstr(world_error(x), "it may have been charged for"));
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

START_TEST(a_bill_of_an_earlier_attempt_is_not_forgotten)
{
    struct answer answers[] = {{.fault = RV_HTTP_CUT, .was_sent = true}, {.fault = RV_HTTP_UNREACHABLE}};
    struct world w;
    rv_exchange *x;

    world_init(&w);
    world_model(&w, "default", "openai", "m", NULL);
    x = world_exchange(&w, NULL);
    world_drive(&w, x, answers, 2);
    ck_assert(rv_exchange_reply(x)->answer.may_be_billed);
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

static const enum rv_http_fault cuts[] = {RV_HTTP_CUT, RV_HTTP_IDLE_TIME, RV_HTTP_TOTAL_TIME, RV_HTTP_OK,
                                          RV_HTTP_BAD_ANSWER};

/* Proves 12.3/once: Nothing is repeated after the first piece of an answer, nor past the deadline */
START_TEST(nothing_is_repeated_after_the_first_piece)
{
    struct answer a = {.status = 200, .body = HALF, .fault = cuts[_i]};
    struct world w;
    rv_exchange *x;

    world_init(&w);
    world_model(&w, "default", "openai", "m", NULL);
    world_model(&w, "other", "anthropic", "m", NULL);
    world_fallback(&w, "default", "other", NULL);
    x = world_exchange(&w, NULL);
    world_drive(&w, x, &a, 1);
    const struct rv_llm_reply *r = rv_exchange_reply(x);
    ck_assert(r->failed && r->answer.may_be_billed);
    ck_assert_uint_eq(w.n_sent, 1);
    ck_assert_str_eq(rv_buf_cstr(&r->text), "Hel");
    ck_assert_str_eq(rv_buf_cstr(&w.deltas), "Hel");
    ck_assert_ptr_nonnull(strstr(world_error(x), "a part of the answer had come already"));
    ck_assert_str_eq(rv_exchange_role(x), "default");
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

START_TEST(what_broke_before_the_first_piece_is_repeated)
{
    struct answer answers[] = {{.status = 200, .body = ": ping\n\n", .fault = RV_HTTP_CUT},
                               {.status = 200, .type = "text/html", .body = "<html>"},
                               {.status = 200, .took_us = 3 * S}};
    struct world w;
    rv_exchange *x;

    world_init(&w);
    world_model(&w, "default", "openai", "m", NULL);
    x = world_exchange(&w, NULL);
    world_drive(&w, x, answers, 3);
    const struct rv_llm_reply *r = rv_exchange_reply(x);
    ck_assert_msg(!r->failed, "%s", world_error(x));
    ck_assert_str_eq(rv_buf_cstr(&w.deltas), "Hello");
    ck_assert_int_eq(r->answer.attempts, 3);
    ck_assert_int_eq(r->answer.latency_us, w.now_us - START_US); /* with the requests that failed */
    ck_assert_int_gt(r->answer.first_token_us, 0);
    ck_assert_int_le(r->answer.first_token_us, r->answer.latency_us);
    ck_assert(r->answer.has_usage && !r->answer.may_be_billed);
    ck_assert_int_eq(r->answer.usage.input_tokens, 12);
    ck_assert_int_eq(r->answer.usage.output_tokens, 3);
    ck_assert_ptr_null(r->answer.role);
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

static const struct {
    const char *id;
    int64_t deadline_us; /* from the start */
    struct answer answer;
    size_t n_sent;
    int kind;
    const char *text;
} deadlines[] = {
    {"the hint would pass it",
     2 * S,
     {.status = 429, .headers = "retry-after: 5"},
     1,
     RV_LLM_ERROR_RATE_LIMITED,
     "no luck (x); not repeated: the wait before it would pass the deadline"},
    {"to the very moment",
     5 * S,
     {.status = 429, .headers = "retry-after: 5"},
     1,
     RV_LLM_ERROR_RATE_LIMITED,
     "would pass the deadline"},
    {"our own would pass it", 300 * MS, {.status = 503}, 1, RV_LLM_ERROR_OVERLOADED, "would pass the deadline"},
    {"the second would", 1100 * MS, {.status = 503}, 2, RV_LLM_ERROR_OVERLOADED, "would pass the deadline"},
    {"it passed while an answer came",
     2 * S,
     {.status = 503, .took_us = 3 * S},
     1,
     RV_LLM_ERROR_OVERLOADED,
     "would pass the deadline"},
    {"the transfer was cut by it",
     2 * S,
     {.fault = RV_HTTP_TOTAL_TIME, .was_sent = true, .took_us = 2 * S},
     1,
     RV_LLM_ERROR_TIMEOUT,
     "not complete within the 2000 ms that were left"},
};

/* Proves 12.3/once */
START_TEST(no_wait_passes_the_deadline)
{
    struct rv_exchange_opts opts;
    struct world w;
    rv_exchange *x;

    world_init(&w);
    world_model(&w, "default", "openai", "m", NULL);
    opts = world_opts(&w, "default");
    opts.deadline_us = START_US + deadlines[_i].deadline_us;
    x = world_exchange(&w, &opts);
    world_drive(&w, x, &deadlines[_i].answer, 1);
    ck_assert_msg(w.n_sent == deadlines[_i].n_sent, "%s: %zu", deadlines[_i].id, w.n_sent);
    ck_assert_int_eq(rv_exchange_reply(x)->answer.error_kind, deadlines[_i].kind);
    ck_assert_msg(strstr(world_error(x), deadlines[_i].text), "%s: %s", deadlines[_i].id, world_error(x));
    ck_assert_int_eq(w.last.total_us, START_US + deadlines[_i].deadline_us - w.sent_at[w.n_sent - 1]);
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

START_TEST(a_deadline_that_has_passed_sends_nothing)
{
    struct rv_exchange_opts opts;
    struct world w;
    rv_exchange *x;

    world_init(&w);
    world_model(&w, "default", "openai", "m", NULL);
    opts = world_opts(&w, "default");
    opts.deadline_us = START_US;
    x = world_exchange(&w, &opts);
    world_drive(&w, x, NULL, 0);
    ck_assert_int_eq(rv_exchange_reply(x)->answer.error_kind, RV_LLM_ERROR_TIMEOUT);
    ck_assert_ptr_nonnull(strstr(world_error(x), "the deadline had passed before it could be asked"));
    ck_assert_uint_eq(w.n_sent, 0);
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

START_TEST(what_comes_after_the_end_changes_nothing)
{
    struct answer a = {.status = 503};
    struct world w;
    rv_exchange *x;
    int64_t at;

    world_init(&w);
    world_model(&w, "default", "openai", "m", "{'max_attempts':1}");
    x = world_exchange(&w, NULL);
    world_answer(&w, x, &a); /* nothing was asked yet */
    ck_assert_int_eq(rv_exchange_next(x, w.now_us, &at), RV_EXCHANGE_SEND);
    ck_assert_ptr_nonnull(rv_exchange_request(x));
    ck_assert_int_eq(rv_exchange_next(x, w.now_us, &at), RV_EXCHANGE_WAIT);
    ck_assert(at == INT64_MAX);
    world_answer(&w, x, &a);
    world_answer(&w, x, &a);
    ck_assert_int_eq(rv_exchange_next(x, w.now_us, &at), RV_EXCHANGE_DONE);
    ck_assert_int_eq(rv_exchange_reply(x)->answer.attempts, 1);
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

START_TEST(asking_twice_loses_no_request)
{
    struct answer bad = {.status = 503};
    struct world w;
    rv_exchange *x;
    int64_t at;

    world_init(&w);
    world_model(&w, "default", "openai", "m", NULL);
    x = world_exchange(&w, NULL);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(rv_exchange_next(x, w.now_us, &at), RV_EXCHANGE_SEND);
    rv_exchange_request(x);
    ck_assert_int_eq(rv_exchange_next(x, w.now_us, &at), RV_EXCHANGE_WAIT);
    world_answer(&w, x, &bad);
    ck_assert_int_eq(rv_exchange_next(x, w.now_us, &at), RV_EXCHANGE_WAIT);
    w.now_us = at;
    for (int i = 0; i < 3; i++) /* the next attempt is another request */
        ck_assert_int_eq(rv_exchange_next(x, w.now_us, &at), RV_EXCHANGE_SEND);
    rv_exchange_request(x);
    world_answer(&w, x, &(struct answer){.status = 200});
    ck_assert_int_eq(rv_exchange_next(x, w.now_us, &at), RV_EXCHANGE_DONE);
    ck_assert_int_eq(rv_exchange_reply(x)->answer.attempts, 2);
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

START_TEST(the_hint_of_the_last_failure_is_in_the_reply)
{
    struct answer a = {.status = 429, .headers = "retry-after: 3600"};
    struct world w;
    rv_exchange *x;

    world_init(&w);
    world_model(&w, "default", "openai", "m", "{'max_attempts':1}");
    x = world_exchange(&w, NULL);
    world_drive(&w, x, &a, 1);
    ck_assert_int_eq(rv_exchange_reply(x)->answer.retry_after_us, 3600 * S);
    ck_assert(rv_exchange_reply(x)->retryable);
    rv_exchange_free(x);
    world_fini(&w);
}
END_TEST

TCase *retry_case(void)
{
    TCase *tc = tcase_create("retry");

    tcase_add_loop_test(tc, the_wait_is_the_hint_or_one_of_our_own, 0, (int)RV_COUNT(waits));
    tcase_add_test(tc, waits_double_up_to_eight_seconds);
    tcase_add_test(tc, a_call_takes_the_time_of_all_its_requests_and_tells_each_retry);
    tcase_add_test(tc, the_same_random_gives_the_same_waits_and_another_others);
    tcase_add_loop_test(tc, with_a_budget_nothing_is_repeated_that_may_have_been_charged_for, 0, (int)RV_COUNT(billed));
    tcase_add_test(tc, a_bill_of_an_earlier_attempt_is_not_forgotten);
    tcase_add_loop_test(tc, nothing_is_repeated_after_the_first_piece, 0, (int)RV_COUNT(cuts));
    tcase_add_test(tc, what_broke_before_the_first_piece_is_repeated);
    tcase_add_loop_test(tc, no_wait_passes_the_deadline, 0, (int)RV_COUNT(deadlines));
    tcase_add_test(tc, a_deadline_that_has_passed_sends_nothing);
    tcase_add_test(tc, what_comes_after_the_end_changes_nothing);
    tcase_add_test(tc, asking_twice_loses_no_request);
    tcase_add_test(tc, the_hint_of_the_last_failure_is_in_the_reply);
    return tc;
}
