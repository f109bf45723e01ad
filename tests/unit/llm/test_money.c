/* What calls cost, to the micro-USD, up to where integers end. */
#include "coreengine/model/llm/llm.h"

#include <stdint.h>

#include "tests/kit/kit.h"
#include "tests/unit/llm/suites.h"

#define HIDDEN 1024 /* as in money.c */
#define NONE   RV_UNSET

static const struct {
    struct rv_price price; /* micro-USD for a million tokens */
    struct rv_usage usage;
    int64_t cost;
} costs[] = {
    {{1000000, 2000000, NONE, NONE}, {.input_tokens = 10, .output_tokens = 3}, 16},
    {{0, 0, NONE, NONE}, {.input_tokens = 10, .output_tokens = 3}, 0},
    {{1, 1, NONE, NONE}, {.input_tokens = 0, .output_tokens = 0}, 0},
    {{1, 0, NONE, NONE}, {.input_tokens = 1}, 1}, /* rounded up, once for the whole call */
    {{1, 1, NONE, NONE}, {.input_tokens = 1, .output_tokens = 1}, 1},
    {{1, 1, NONE, NONE}, {.input_tokens = 999999, .output_tokens = 1}, 1},
    {{1, 1, NONE, NONE}, {.input_tokens = 999999, .output_tokens = 2}, 2},
    {{150000, 600000, 75000, NONE}, {.input_tokens = 1000, .cached_tokens = 400, .output_tokens = 50}, 150},
    {{1000000, 0, NONE, NONE}, {.input_tokens = 10, .cached_tokens = 4}, 10}, /* no price of its own: as other input */
    {{1000000, 0, 0, NONE}, {.input_tokens = 10, .cached_tokens = 4}, 6},
    {{1000000, 0, 500000, NONE}, {.input_tokens = 10, .cached_tokens = 40}, 5}, /* never more than there was */
    {{4000000, 0, 1000000, 5000000}, {.input_tokens = 10, .cached_tokens = 2, .cache_write_tokens = 3}, 37},
    {{4000000, 0, 1000000, 5000000}, {.input_tokens = 10, .cached_tokens = 9, .cache_write_tokens = 9}, 14},
    {{4000000, 0, NONE, 5000000}, {.input_tokens = 10, .cached_tokens = 9, .cache_write_tokens = 3}, 43},
    {{1000000, 1000000, NONE, NONE}, {.input_tokens = 5, .output_tokens = 7, .reasoning_tokens = 6}, 12},
    {{1000000, 1000000, 1000000, NONE}, {.input_tokens = -5, .output_tokens = -7, .cached_tokens = -1}, 0},
    {{INT64_MAX, INT64_MAX, NONE, NONE},
     {.input_tokens = INT64_MAX, .output_tokens = INT64_MAX},
     INT64_MAX / 1000000 + 1},
    {{INT64_MAX, 0, 0, 0}, {.input_tokens = 1}, INT64_MAX / 1000000 + 1},
};

START_TEST(a_call_costs_what_its_tokens_do)
{
    ck_assert_int_eq(rv_llm_cost(&costs[_i].price, &costs[_i].usage), costs[_i].cost);
    ck_assert_int_eq(rv_llm_cost(NULL, &costs[_i].usage), 0);
}
END_TEST

static const struct {
    struct rv_price price;
    int64_t bytes, tokens, cost;
} worsts[] = {
    {{1000000, 2000000, NONE, NONE}, 100, 50, 100 + HIDDEN + 100},
    {{1000000, 2000000, 500000, NONE}, 100, 50, 100 + HIDDEN + 100},
    {{1000000, 2000000, 500000, 3000000}, 100, 50, 3 * (100 + HIDDEN) + 100}, /* all of it may be given to a cache */
    {{0, 0, NONE, NONE}, 100, 50, 0},
    {{1, 0, NONE, NONE}, 0, 0, 1},
    {{1000000, 1000000, NONE, NONE}, -1, -1, HIDDEN},
    {{1000000, 1, NONE, NONE}, INT64_MAX, 1, INT64_MAX / 1000000 + 1},
    {{INT64_MAX, INT64_MAX, NONE, NONE}, 1, 1, INT64_MAX / 1000000 + 1},
};

START_TEST(what_a_call_can_cost_at_most)
{
    ck_assert_int_eq(rv_llm_worst_cost(&worsts[_i].price, worsts[_i].bytes, worsts[_i].tokens), worsts[_i].cost);
    ck_assert_int_eq(rv_llm_worst_cost(NULL, worsts[_i].bytes, worsts[_i].tokens), 0);
}
END_TEST

/* However the tokens of a request and its reply are split up, they cost no more than the worst case. */
START_TEST(no_split_of_the_tokens_costs_more_than_the_worst_case)
{
    struct rv_rand_state state;
    struct rv_rand rand = rv_rand_seeded(&state, 5);

    for (int i = 0; i < 20000; i++) {
        const struct rv_price price = {(int64_t)rv_rand_below(rand, 20000000), (int64_t)rv_rand_below(rand, 90000000),
                                       (int64_t)rv_rand_below(rand, 20000000) - 1,
                                       (int64_t)rv_rand_below(rand, 30000000) - 1};
        int64_t bytes = (int64_t)rv_rand_below(rand, 100000), tokens = (int64_t)rv_rand_below(rand, 8000);
        const struct rv_usage used = {.input_tokens = (int64_t)rv_rand_below(rand, (uint64_t)(bytes + HIDDEN + 1)),
                                      .output_tokens = (int64_t)rv_rand_below(rand, (uint64_t)(tokens + 1)),
                                      .cached_tokens = (int64_t)rv_rand_below(rand, 120000),
                                      .cache_write_tokens = (int64_t)rv_rand_below(rand, 120000)};
        ck_assert_int_le(rv_llm_cost(&price, &used), rv_llm_worst_cost(&price, bytes, tokens));
    }
}
END_TEST

/* --- what records keep --- */

#define WITH_CALLS                                                                                                     \
    "{\"finish_reason\":\"tool_calls\",\"tool_calls\":\"[{}]\",\"opaque\":\"{}\",\"answered_by\":\"f\",\"usage\":{"    \
    "\"input_tokens\":3,\"output_tokens\":2,\"cached_tokens\":1},\"latency_us\":9,\"first_token_us\":4,\"attempts\":"  \
    "2}"
static const char *const answers[] = {
    "{}",
    "{\"finish_reason\":\"stop\"}",
    WITH_CALLS,
    "{\"error_kind\":\"overloaded\",\"billed\":true,\"retry_after_us\":5}",
};

START_TEST(an_answer_is_read_as_it_was_written)
{
    json_object *json = rv_kit_json(answers[_i]);
    rv_buf text = RV_BUF_INIT(4096);
    struct rv_llm_answer a;
    rv_jw w = rv_jw_on(&text);

    ck_assert(rv_llm_answer_read(json, &a));
    rv_jw_obj(&w);
    rv_llm_answer_write(&a, &w);
    rv_jw_obj_end(&w);
    ck_assert_str_eq(rv_buf_cstr(&text), answers[_i]);
    rv_buf_fini(&text);
    json_object_put(json);
}
END_TEST

static const struct {
    enum rv_llm_error kind;
    bool may_pass;
    const char *type;
} kinds[] = {
    {RV_LLM_ERROR_AUTH, false, "LLMError"},           {RV_LLM_ERROR_RATE_LIMITED, true, "LLMError"},
    {RV_LLM_ERROR_OVERLOADED, true, "LLMError"},      {RV_LLM_ERROR_CONTEXT_TOO_LONG, false, "LLMError"},
    {RV_LLM_ERROR_CONTENT_FILTER, false, "LLMError"}, {RV_LLM_ERROR_BAD_REQUEST, false, "LLMError"},
    {RV_LLM_ERROR_TIMEOUT, true, "TimeoutError"},     {RV_LLM_ERROR_CONNECTION, true, "LLMError"},
    {RV_LLM_ERROR_PROTOCOL, true, "LLMError"},        {RV_LLM_ERROR_CANCELLED, false, "CancelledError"},
};
_Static_assert(RV_COUNT(kinds) == RV_N_LLM_ERROR, "every kind of error");

START_TEST(a_failure_keeps_what_had_come_and_says_whether_to_try_again)
{
    struct rv_llm_reply r;

    rv_llm_reply_init(&r);
    rv_buf_puts(&r.text, "half");
    rv_llm_reply_fail(&r, kinds[_i].kind, "no %s", "luck");
    ck_assert(r.failed && r.retryable == kinds[_i].may_pass);
    ck_assert_str_eq(rv_buf_cstr(&r.text), "half");
    ck_assert_str_eq(rv_buf_cstr(&r.error), "no luck");
    ck_assert_int_eq(rv_llm_reply_answer(&r).error_kind, kinds[_i].kind);
    ck_assert_str_eq(rv_llm_error_type((int)kinds[_i].kind), kinds[_i].type);
    rv_llm_reply_fini(&r);
}
END_TEST

TCase *money_case(void)
{
    TCase *tc = tcase_create("money");

    tcase_add_loop_test(tc, a_call_costs_what_its_tokens_do, 0, RV_COUNT(costs));
    tcase_add_loop_test(tc, what_a_call_can_cost_at_most, 0, RV_COUNT(worsts));
    tcase_add_test(tc, no_split_of_the_tokens_costs_more_than_the_worst_case);
    tcase_add_loop_test(tc, an_answer_is_read_as_it_was_written, 0, RV_COUNT(answers));
    tcase_add_loop_test(tc, a_failure_keeps_what_had_come_and_says_whether_to_try_again, 0, RV_COUNT(kinds));
    return tc;
}
