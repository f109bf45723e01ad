/* Rules 3.3 (history), 3.4 (bounds), 3.5 (termination), W11, W12. */
#include "tests/unit/envelope/suites.h"
#include "tests/unit/envelope/world.h"

#include <stdio.h>

static const struct rv_record_end success = {.status = RV_HISTORY_SUCCESS};

/* Proves 3.3.record: Record keys; completed_at and error are absent until known
 * Proves 3.3.record_start: Appends a running record and counts one hop
 * Proves 5.2/1 */
START_TEST(rule_3_3_a_start_appends_a_running_record_and_costs_a_hop)
{
    rv_envelope *env = world_fresh();

    OK(rv_envelope_record_start(env, S("plan"), 2, T0, NULL));
    ck_assert_int_eq(rv_envelope_fields(env)->agent_hop_count, 1);
    ck_assert_int_eq(rv_envelope_visits(env, S("plan")), 1);
    ck_assert_int_eq(rv_envelope_visits(env, S("other")), 0);
    world_expect(env, "processing_history",
                 "[{'agent':'plan','stage_order':2,'started_at':'2025-11-24T16:00:00.123456Z','duration_ms':0,"
                 "'status':'running','llm_calls':0}]");
    rv_envelope_free(env);
}
END_TEST

/* Proves 3.3.record_complete: Fills in the last running record of that agent
 * Proves 3.3.total: Processing time is the sum of the durations */
START_TEST(rule_3_3_an_end_fills_in_the_last_running_record_of_the_agent)
{
    struct rv_record_end end = {RV_HISTORY_ERROR, S("boom"), 2, 7};
    rv_envelope *env = world_fresh();

    OK(rv_envelope_record_start(env, S("a"), 1, T0, NULL));
    OK(rv_envelope_record_start(env, S("a"), 1, T0, NULL));
    OK(rv_envelope_record_start(env, S("b"), 1, T0, NULL));
    OK(rv_envelope_record_complete(env, S("a"), &end, T0 + SEC, NULL));
    world_expect(env, "processing_history",
                 "[{'agent':'a','stage_order':1,'started_at':'2025-11-24T16:00:00.123456Z','duration_ms':0,"
                 "'status':'running','llm_calls':0},"
                 "{'agent':'a','stage_order':1,'started_at':'2025-11-24T16:00:00.123456Z',"
                 "'completed_at':'2025-11-24T16:00:01.123456Z','duration_ms':7,'status':'error','error':'boom',"
                 "'llm_calls':2},"
                 "{'agent':'b','stage_order':1,'started_at':'2025-11-24T16:00:00.123456Z','duration_ms':0,"
                 "'status':'running','llm_calls':0}]");
    OK(rv_envelope_record_complete(env, S("a"), &success, T0 + SEC, NULL)); /* now the first one */
    OK(rv_envelope_record_complete(env, S("b"), &success, T0 + SEC, NULL));
    OK(rv_envelope_record_complete(env, S("a"), &success, T0 + SEC, NULL)); /* none is left: nothing to fill in */
    ck_assert_uint_eq(rv_envelope_n_records(env), 3);
    ck_assert_int_eq(rv_envelope_processing_ms(env), 7 + 1000 + 1000);
    rv_envelope_free(env);
}
END_TEST

static const struct {
    int64_t given_ms, passed_us, want_ms;
} durations[] = {
    {5, 9 * SEC, 5}, {0, 9 * SEC, 9000}, {-1, 1500, 1}, {0, 999, 0}, {0, -SEC, 0},
};

/* Proves 3.3.duration: The given duration if above 0, else completed minus started
 * Proves 10/metrics */
START_TEST(rule_3_3_the_duration_is_given_or_measured)
{
    struct rv_record_end end = {.status = RV_HISTORY_SUCCESS, .duration_ms = durations[_i].given_ms};
    rv_envelope *env = world_fresh();

    OK(rv_envelope_record_start(env, S("a"), 1, T0, NULL));
    OK(rv_envelope_record_complete(env, S("a"), &end, T0 + durations[_i].passed_us, NULL));
    ck_assert_int_eq(rv_envelope_processing_ms(env), durations[_i].want_ms);
    rv_envelope_free(env);
}
END_TEST

/* Proves 3.3.llm_calls: llm_call_count grows even if no record matches */
START_TEST(rule_3_3_model_calls_count_even_without_a_record)
{
    struct rv_record_end end = {.status = RV_HISTORY_SUCCESS, .llm_calls = 3};
    rv_envelope *env = world_fresh();

    OK(rv_envelope_record_complete(env, S("never"), &end, T0, NULL));
    ck_assert_int_eq(rv_envelope_fields(env)->llm_call_count, 3);
    ck_assert_uint_eq(rv_envelope_n_records(env), 0);
    rv_envelope_free(env);
}
END_TEST

START_TEST(a_skipped_stage_costs_no_hop)
{
    rv_envelope *env = world_fresh();

    OK(rv_envelope_record_skipped(env, S("a"), 4, T0, NULL));
    ck_assert_int_eq(rv_envelope_fields(env)->agent_hop_count, 0);
    ck_assert_int_eq(rv_envelope_visits(env, S("a")), 0);
    world_expect(env, "processing_history",
                 "[{'agent':'a','stage_order':4,'started_at':'2025-11-24T16:00:00.123456Z',"
                 "'completed_at':'2025-11-24T16:00:00.123456Z','duration_ms':0,'status':'skipped','llm_calls':0}]");
    rv_envelope_free(env);
}
END_TEST

START_TEST(rule_5_3_an_error_is_kept_with_agent_type_and_time)
{
    rv_envelope *env = world_fresh();

    OK(rv_envelope_add_error(
        env, &(const struct rv_error_entry){S("plan"), S("no \xff json"), "ParseError", RV_FAILURE_NONE}, T0, NULL));
    ck_assert_uint_eq(rv_envelope_n_errors(env), 1);
    world_expect(env, "errors",
                 "[{'agent':'plan','error':'no \\ufffd json','error_type':'ParseError',"
                 "'timestamp':'2025-11-24T16:00:00.123456Z'}]");
    rv_envelope_free(env);
}
END_TEST

/* One row per row of the table, each with everything below it true as well. */
static const struct {
    const char *state;
    bool count_llm, may;
    enum rv_reason reason;
} bounds[] = {
    {"{'terminated':true,'interrupt_pending':true,'iteration':9}", true, false, RV_REASON_NONE},
    {"{'interrupt_pending':true,'iteration':9,'llm_call_count':10}", true, false, RV_REASON_NONE},
    {"{'iteration':4,'llm_call_count':10,'agent_hop_count':21}", true, false, RV_REASON_MAX_ITERATIONS},
    {"{'iteration':3,'llm_call_count':10,'agent_hop_count':21}", true, false, RV_REASON_MAX_LLM_CALLS},
    {"{'iteration':3,'llm_call_count':11}", true, false, RV_REASON_MAX_LLM_CALLS},
    {"{'iteration':3,'llm_call_count':9,'agent_hop_count':21}", true, false, RV_REASON_MAX_HOPS},
    {"{'iteration':3,'llm_call_count':9,'agent_hop_count':20}", true, true, RV_REASON_NONE},
    /* A stage that calls no model is not stopped by the budget of calls. */
    {"{'llm_call_count':10}", false, true, RV_REASON_NONE},
    {"{'llm_call_count':10,'agent_hop_count':21}", false, false, RV_REASON_MAX_HOPS},
    {"{'max_llm_calls':0}", true, false, RV_REASON_MAX_LLM_CALLS},
    {"{'max_agent_hops':0}", true, false, RV_REASON_MAX_HOPS},
    {"{'max_iterations':0}", true, true, RV_REASON_NONE},
};

/* Proves 3.4.1: Bounds, test 1: terminated stops, no reason
 * Proves 3.4.2: Bounds, test 2: pending interrupt stops, no reason
 * Proves 3.4.3: Bounds, test 3: iteration above its maximum stops
 * Proves 3.4.4: Bounds, test 4: llm calls at their maximum stop (unless the next stage calls no model)
 * Proves 3.4.5: Bounds, test 5: hops at their maximum stop
 * Proves 3.4.6: Bounds, test 6: otherwise go on */
START_TEST(rule_3_4_bounds_are_tested_in_order)
{
    rv_envelope *env = world_load(bounds[_i].state);
    enum rv_reason reason = RV_REASON_POLICY;

    ck_assert_int_eq(rv_envelope_can_continue(env, bounds[_i].count_llm, &reason), bounds[_i].may);
    ck_assert_int_eq(reason, bounds[_i].reason);
    ck_assert_int_eq(rv_envelope_can_continue(env, bounds[_i].count_llm, NULL), bounds[_i].may);
    rv_envelope_free(env);
}
END_TEST

/* Proves 3.4.left: Remaining budget is maximum minus count, never below 0 */
START_TEST(rule_3_4_what_is_left_is_never_below_zero)
{
    rv_envelope *env = world_load("{'iteration':9,'llm_call_count':4,'agent_hop_count':21}");
    struct rv_envelope_left left = rv_envelope_left(env);

    ck_assert_int_eq(left.iterations, 0);
    ck_assert_int_eq(left.llm_calls, 6);
    ck_assert_int_eq(left.hops, 0);
    rv_envelope_free(env);
}
END_TEST

/* Proves 3.5.terminate: Sets terminated, text, completed_at, and the reason when one is given
 * Proves W11 */
START_TEST(rule_3_5_a_termination_sets_text_reason_and_time)
{
    rv_envelope *env = world_fresh();

    OK(rv_envelope_terminate(env, S("budget"), RV_REASON_MAX_LLM_CALLS, T0 + SEC, NULL)); /* W11 */
    world_expect(env, "terminated", "true");
    world_expect(env, "termination_reason", "'budget'");
    world_expect(env, "terminal_reason", "'max_llm_calls_exceeded'");
    world_expect(env, "completed_at", "'2025-11-24T16:00:01.123456Z'");
    rv_envelope_free(env);
}
END_TEST

/* Proves 3.5.terminate */
START_TEST(rule_3_5_without_a_reason_the_stored_one_stays)
{
    rv_envelope *env = world_load("{'terminal_reason':'completed'}");

    OK(rv_envelope_terminate(env, S("stop"), RV_REASON_NONE, T0, NULL));
    ck_assert_int_eq(rv_envelope_fields(env)->terminal_reason, RV_REASON_COMPLETED);
    rv_envelope_free(env);
}
END_TEST

/* Proves 3.5.first: The first termination wins
 * Proves W12: The first termination wins */
START_TEST(w12_the_first_termination_wins)
{
    rv_envelope *env = world_fresh();

    OK(rv_envelope_terminate(env, S("first"), RV_REASON_POLICY, T0, NULL));
    OK(rv_envelope_terminate(env, S("second"), RV_REASON_MAX_HOPS, T0 + SEC, NULL));
    rv_envelope_complete(env, T0 + 2 * SEC);
    world_expect(env, "termination_reason", "'first'");
    world_expect(env, "terminal_reason", "'policy_violation'");
    world_expect(env, "completed_at", "'2025-11-24T16:00:00.123456Z'");
    rv_envelope_free(env);
}
END_TEST

/* Proves W11: A bound terminates with reason and time; a normal end is `completed` and not terminated (envelope
 * part) */
START_TEST(w11_a_normal_end_is_completed_and_not_terminated)
{
    rv_envelope *env = world_fresh();

    rv_envelope_complete(env, T0 + SEC);
    world_expect(env, "terminated", "false");
    world_expect(env, "terminal_reason", "'completed'");
    world_expect(env, "completed_at", "'2025-11-24T16:00:01.123456Z'");
    rv_envelope_free(env);
}
END_TEST

START_TEST(counters_stop_at_the_largest_exact_integer)
{
    struct rv_record_end end = {.status = RV_HISTORY_SUCCESS, .llm_calls = INT64_MAX, .duration_ms = INT64_MAX};
    rv_envelope *env = world_load("{'llm_call_count':9007199254740990}");

    OK(rv_envelope_record_start(env, S("a"), INT64_MIN, T0, NULL));
    OK(rv_envelope_record_complete(env, S("a"), &end, INT64_MAX, NULL));
    world_expect(env, "llm_call_count", "9007199254740991");
    ck_assert_int_eq(rv_envelope_processing_ms(env), INT64_C(9007199254740991));
    rv_envelope_free(env);
}
END_TEST

TCase *history_case(void)
{
    TCase *tc = tcase_create("history");

    tcase_add_test(tc, rule_3_3_a_start_appends_a_running_record_and_costs_a_hop);
    tcase_add_test(tc, rule_3_3_an_end_fills_in_the_last_running_record_of_the_agent);
    tcase_add_loop_test(tc, rule_3_3_the_duration_is_given_or_measured, 0, RV_COUNT(durations));
    tcase_add_test(tc, rule_3_3_model_calls_count_even_without_a_record);
    tcase_add_test(tc, a_skipped_stage_costs_no_hop);
    tcase_add_test(tc, rule_5_3_an_error_is_kept_with_agent_type_and_time);
    tcase_add_loop_test(tc, rule_3_4_bounds_are_tested_in_order, 0, RV_COUNT(bounds));
    tcase_add_test(tc, rule_3_4_what_is_left_is_never_below_zero);
    tcase_add_test(tc, rule_3_5_a_termination_sets_text_reason_and_time);
    tcase_add_test(tc, rule_3_5_without_a_reason_the_stored_one_stays);
    tcase_add_test(tc, w12_the_first_termination_wins);
    tcase_add_test(tc, w11_a_normal_end_is_completed_and_not_terminated);
    tcase_add_test(tc, counters_stop_at_the_largest_exact_integer);
    return tc;
}
