/* Simulated time: what is due when, and in which order. */
#include "tests/unit/engine/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/kit/kit.h"

#define WIDE                                                                                                           \
    "name: wide\ndefault_run_mode: parallel\nmodels: {default: scripted}\nagents:\n"                                   \
    "  - {name: a, has_llm: true, model_role: default}\n"                                                              \
    "  - {name: b, has_llm: true, model_role: default}\n"                                                              \
    "  - {name: c, has_llm: true, model_role: default}\n"

START_TEST(days_of_waiting_cost_nothing)
{
    struct how how = {0};
    struct world w;

    world_run(&w, &how, "name: s\nagents: [{name: a, timeout_seconds: 1000000}]",
              "stages: {a: [{output: {}, delay_ms: 86400000}]}");
    ck_assert_int_eq(world_elapsed_ms(&w), 86400000);
    world_fini(&w);
}
END_TEST

/* Completion order follows due time, then call id; never the order in the script. */
static const struct {
    int64_t a, b, c;
    const char *order;
} orders[] = {
    {30, 20, 10, "cba"}, {10, 10, 10, "abc"}, {0, 0, 0, "abc"}, {20, 10, 20, "bac"}, {5, 0, 0, "bca"},
};

/* Proves 11.1/engine: Answers are ordered by due time and call id
 * Proves 8.1/engine */
START_TEST(answers_come_by_due_time_then_by_call)
{
    struct how how = {0};
    struct world w;
    char script[256], order[8] = "";

    snprintf(script, sizeof script,
             "models: {a: [{json: {}, delay_ms: %d}], b: [{json: {}, delay_ms: %d}], c: [{json: {}, delay_ms: %d}]}",
             (int)orders[_i].a, (int)orders[_i].b, (int)orders[_i].c);
    world_run(&w, &how, WIDE, script);
    for (const char *at = strstr(rv_buf_cstr(&w.events), "llm_result"); at; at = strstr(at + 1, "llm_result"))
        strncat(order, strstr(at, "\"stage\":\"") + 9, 1);
    ck_assert_str_eq(order, orders[_i].order);
    world_fini(&w);
}
END_TEST

START_TEST(max_parallel_limits_what_overlaps)
{
    struct how how = {.max_parallel = 1};
    struct world w;

    world_run(&w, &how, WIDE,
              "models: {a: [{json: {}, delay_ms: 10}], b: [{json: {}, delay_ms: 10}], c: [{json: {}, delay_ms: 10}]}");
    ck_assert_int_eq(world_elapsed_ms(&w), 30);
    world_fini(&w);
}
END_TEST

/* Proves W16/engine */
START_TEST(an_answer_at_the_deadline_counts_one_after_it_does_not)
{
    static const char pipeline[] = "name: s\nagents: [{name: a, timeout_seconds: 1}]";
    struct how how = {0};
    struct world w;

    world_run(&w, &how, pipeline, "stages: {a: [{output: {}, delay_ms: 1000}]}");
    ck_assert_str_eq(world_status(&w), "completed");
    world_fini(&w);
    world_run(&w, &how, pipeline, "stages: {a: [{output: {}, delay_ms: 1001}]}");
    ck_assert_str_eq(world_status(&w), "failed");
    ck_assert_int_eq(world_elapsed_ms(&w), 1000);
    world_fini(&w);
}
END_TEST

/* Proves W16/engine */
START_TEST(a_stream_that_is_too_slow_times_out_between_chunks)
{
    struct how how = {0};
    struct world w;

    world_run(&w, &how,
              "name: s\nmodels: {default: scripted}\nagents:\n"
              "  - {name: a, has_llm: true, model_role: default, timeout_seconds: 1}\n",
              "models: {a: [{chunks: ['{', '}', ' '], delay_ms: 400}]}");
    ck_assert_str_eq(rv_buf_cstr(&w.deltas), "0@400 {\n0@800 }\n");
    ck_assert_int_eq(world_elapsed_ms(&w), 1000);
    ck_assert_str_eq(world_status(&w), "failed");
    ck_assert_ptr_nonnull(
        strstr(rv_buf_cstr(&w.events), ": that was left of the 1 s for stage \\\"a\\\"; raise its timeout_seconds"));
    world_fini(&w);
}
END_TEST

/* Proves W42/engine: 20,000 visits with events neither block nor recurse
 * Proves W42: A long cyclic run blocks nobody
 * Proves 7.8 */
START_TEST(w42_long_loops_neither_block_nor_recurse)
{
    struct how how = {0};
    struct world w;

    world_run(&w, &how,
              "name: l\nmax_iterations: 20000\nmax_agent_hops: 20000\nagents: [{name: a, default_next: a, max_visits: "
              "20000}]",
              "stages: {a: [{output: {}}]}");
    ck_assert_str_eq(world_status(&w), "terminated");
    ck_assert_int_ge(rv_envelope_fields(rv_exec_envelope(w.exec))->agent_hop_count, 20000);
    world_fini(&w);
}
END_TEST

Suite *time_suite(void)
{
    Suite *suite = suite_create("time");
    TCase *tc = tcase_create("time");

    tcase_add_test(tc, days_of_waiting_cost_nothing);
    tcase_add_loop_test(tc, answers_come_by_due_time_then_by_call, 0, RV_COUNT(orders));
    tcase_add_test(tc, max_parallel_limits_what_overlaps);
    tcase_add_test(tc, an_answer_at_the_deadline_counts_one_after_it_does_not);
    tcase_add_test(tc, a_stream_that_is_too_slow_times_out_between_chunks);
    tcase_add_test(tc, w42_long_loops_neither_block_nor_recurse);
    suite_add_tcase(suite, tc);
    return suite;
}
