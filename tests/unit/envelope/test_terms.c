/* Rules 2 to 2.2: the words, the outcome table, the mappings; W02. */
#include "tests/unit/envelope/suites.h"
#include "tests/unit/envelope/world.h"

#include <string.h>

/* Every word list as the contract has it, blank-separated, in order. */
static const struct {
    const char *name, *words;
} words[] = {
    {"outcome", "success error clarify confirm replan loop_back terminate skip partial"},
    {"tool_status", "success error"},
    {"effect_class", "safe idempotent non_idempotent"},
    {"risk", "read_only write destructive low medium high critical"},
    {"tool_category", "read write execute network system unified composite resilient standalone internal"},
    {"severity", "critical error warning"},
    {"reason",
     "completed max_iterations_exceeded max_llm_calls_exceeded max_agent_hops_exceeded max_loop_exceeded "
     "max_stage_visits_exceeded max_items_exceeded user_cancelled tool_failed_fatally llm_failed_fatally "
     "expression_failed template_failed join_failed policy_violation budget_exceeded quota_exceeded break_requested"},
    {"reason_class", "completed bounds_exceeded failed"},
    {"interrupt_kind", "clarification confirmation agent_review checkpoint resource_exhausted timeout system_error"},
    {"interrupt_status", "pending resolved expired cancelled"},
    {"run_mode", "sequential parallel"},
    {"join", "all any"},
    {"tool_access", "none read write all"},
    {"agent_capability", "llm tools policies service"},
    {"verdict", "proceed loop_back advance escalate"},
    {"approval", "approved denied pending"},
    {"operation_status", "success error not_found timeout validation_error partial invalid_parameters"},
    {"health", "healthy degraded unhealthy unknown"},
    {"history_status", "running success error skipped"},
    {"message_category", "event query command"},
    {"run_status", "ready running completed interrupted terminated failed cancelled"},
    {"llm_error",
     "rate_limited overloaded timeout connection protocol bad_request auth context_too_long content_filter "
     "cancelled"},
    {"finish_reason", "stop length tool_calls content_filter refusal pause other"},
    {"failure", "model_no_key model_refused model_no_connection model_rate_limited model_overloaded model_timed_out "
                "model_bad_answer model_bad_request model_context_too_long model_content_filter model_declined "
                "model_failed output_unreadable output_missing_field output_invalid tool_failed tool_timed_out "
                "tool_not_found tool_not_allowed tool_invalid agent_failed hook_failed hook_timed_out plugin_failed "
                "policy_denied policy_failed limit_reached quota_exceeded stage_timed_out expression_failed "
                "template_failed join_failed script_no_entry stage_failed engine_failed "
                "question_cancelled cancelled "
                "disk_full no_descriptors no_threads"},
    {"task_status", "waiting pending processing completed failed cancelled"},
    {"task_tier", "micro small medium large"},
    {"task_event_kind", "claimed completed retrying failed recovered quota_exceeded released error cancel_requested "
                        "cancelled retried"},
};

/* Proves 10/reason-classes: Each terminal reason has a class: completed (completed, break_requested),
 * bounds_exceeded, failed */
START_TEST(every_reason_has_a_class)
{
    /* Only what is not a bound. */
    static const char *const classes[RV_N_REASON] = {
        [RV_REASON_COMPLETED] = "completed", [RV_REASON_BREAK] = "completed",   [RV_REASON_USER_CANCELLED] = "failed",
        [RV_REASON_EXPRESSION] = "failed",   [RV_REASON_TEMPLATE] = "failed",   [RV_REASON_JOIN] = "failed",
        [RV_REASON_TOOL_FAILED] = "failed",  [RV_REASON_LLM_FAILED] = "failed", [RV_REASON_POLICY] = "failed",
    };

    for (int i = 0; i < RV_N_REASON; i++) {
        const char *want = classes[i] ? classes[i] : "bounds_exceeded";
        ck_assert_str_eq(rv_reason_class_text(rv_reason_class_for((enum rv_reason)i)), want);
    }
    ck_assert_ptr_null(rv_reason_class_text(rv_reason_class_for(RV_REASON_NONE)));
}
END_TEST

/* Proves 2.agent_outcome: Words: success, error, clarify, confirm, replan, loop_back, terminate, skip, partial
 * Proves 2.tool_status: Words: success, error
 * Proves 2.idempotency_class: Words: safe, idempotent, non_idempotent (list `effect_class`)
 * Proves 2.risk_level: Words: one list: read_only, write, destructive (meaning); low, medium, high, critical
 * (severity)
 * Proves 2.tool_category: Words: by operation read, write, execute, network, system; by organisation unified,
 * composite, resilient, standalone, internal
 * Proves 2.validation_severity: Words: critical, error, warning
 * Proves 2.terminal_reason: Words: the nine reasons, plus max_stage_visits_exceeded, budget_exceeded,
 * break_requested and those of groups
 * Proves 2.interrupt_kind: Words: clarification, confirmation, agent_review, checkpoint, resource_exhausted,
 * timeout, system_error
 * Proves 2.interrupt_status: Words: pending, resolved, expired, cancelled
 * Proves 2.run_mode: Words: sequential, parallel
 * Proves 2.join_strategy: Words: all (default), any
 * Proves 2.tool_access: Words: none, read, write, all
 * Proves 2.agent_capability: Words: llm, tools, policies, service
 * Proves 2.loop_verdict: Words: proceed, loop_back, advance, escalate
 * Proves 2.risk_approval: Words: approved, denied, pending
 * Proves 2.operation_status: Words: success, error, not_found, timeout, validation_error, partial,
 * invalid_parameters
 * Proves 2.health_status: Words: healthy, degraded, unhealthy, unknown
 * Proves 2.history_status: Words: running, success, error, skipped
 * Proves 2.message_category: Words: event, query, command
 * Proves 2.model_error_kind: Words: rate_limited, overloaded, timeout, connection, protocol, bad_request, auth,
 * context_too_long, content_filter, cancelled
 * Proves 2.finish_reason: Words: stop, length, tool_calls, content_filter, refusal, pause, other
 * Proves 10/reasons: max_stage_visits_exceeded is a reason of its own */
START_TEST(rule_2_each_list_has_exactly_its_words)
{
    size_t n = 0;
    const struct rv_term_list *lists = rv_term_lists(&n);
    char joined[1024] = "";

    ck_assert_uint_eq(n, RV_COUNT(words));
    ck_assert_str_eq(lists[_i].name, words[_i].name);
    for (size_t i = 0; i < lists[_i].n; i++) {
        if (i > 0)
            strncat(joined, " ", sizeof joined - strlen(joined) - 1);
        strncat(joined, lists[_i].terms[i].text, sizeof joined - strlen(joined) - 1);
        ck_assert_uint_gt(strlen(lists[_i].terms[i].meaning), 0);
    }
    ck_assert_str_eq(joined, words[_i].words);
}
END_TEST

#define CHECK_BOTH_WAYS(tag, prefix, list, kind)                                                                       \
    for (int i = 0; i < (int)RV_N_##prefix; i++) {                                                                     \
        enum rv_##tag v = (enum rv_##tag)0;                                                                            \
                                                                                                                       \
        OK(rv_##tag##_of(rv_str_of(rv_##tag##_text((enum rv_##tag)i)), &v, NULL));                                     \
        ck_assert_int_eq((int)v, i);                                                                                   \
    }                                                                                                                  \
    ck_assert_ptr_null(rv_##tag##_text((enum rv_##tag)RV_N_##prefix));                                                 \
    ck_assert_ptr_null(rv_##tag##_text((enum rv_##tag)RV_UNSET));

/* Proves 2.parse: Words convert both ways; unknown text is an error that lists the legal words and hints the
 * nearest; matching is exact */
START_TEST(rule_2_text_and_constant_convert_both_ways){RV_TERM_TYPES(CHECK_BOTH_WAYS)} END_TEST

    /* Proves 2.parse */
    START_TEST(rule_2_unknown_text_is_an_error_that_lists_the_legal_words)
{
    enum rv_outcome v = RV_OUTCOME_SKIP;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_outcome_of(S("sucess"), &v, &err), RV_E_INVALID);
    ck_assert_int_eq(v, RV_OUTCOME_SKIP);
    ck_assert_str_eq(rv_err_text(err),
                     "unknown outcome \"sucess\": legal are success, error, clarify, confirm, replan, "
                     "loop_back, terminate, skip, partial");
    ck_assert_str_eq(rv_err_hint_text(err), "did you mean \"success\"?");
    rv_err_free(err);
}
END_TEST

/* Proves 2.parse */
START_TEST(rule_2_words_are_matched_exactly)
{
    static const char *const wrong[] = {"", "Success", " success", "success ", "succes", "successs", "ok"};
    enum rv_outcome v;

    ck_assert_int_eq(rv_outcome_of(rv_str_of(wrong[_i]), &v, NULL), RV_E_INVALID);
}
END_TEST

static const struct {
    enum rv_outcome outcome;
    bool terminal, success, loop;
} truth[] = {
    {RV_OUTCOME_SUCCESS, false, true, false},   {RV_OUTCOME_ERROR, true, false, false},
    {RV_OUTCOME_CLARIFY, true, false, false},   {RV_OUTCOME_CONFIRM, true, false, false},
    {RV_OUTCOME_REPLAN, false, false, true},    {RV_OUTCOME_LOOP_BACK, false, false, true},
    {RV_OUTCOME_TERMINATE, true, false, false}, {RV_OUTCOME_SKIP, false, true, false},
    {RV_OUTCOME_PARTIAL, false, true, false},
};

/* Proves 2.1.success: Outcome success: not terminal, success, no loop
 * Proves 2.1.error: Outcome error: terminal
 * Proves 2.1.clarify: Outcome clarify: terminal
 * Proves 2.1.confirm: Outcome confirm: terminal
 * Proves 2.1.replan: Outcome replan: requires a loop, neither terminal nor success
 * Proves 2.1.loop_back: Outcome loop_back: requires a loop, neither terminal nor success
 * Proves 2.1.terminate: Outcome terminate: terminal
 * Proves 2.1.skip: Outcome skip: success, not terminal
 * Proves 2.1.partial: Outcome partial: success, not terminal */
START_TEST(rule_2_1_outcome_truth_table)
{
    ck_assert_uint_eq(RV_COUNT(truth), RV_N_OUTCOME);
    ck_assert_int_eq(rv_outcome_is_terminal(truth[_i].outcome), truth[_i].terminal);
    ck_assert_int_eq(rv_outcome_is_success(truth[_i].outcome), truth[_i].success);
    ck_assert_int_eq(rv_outcome_requires_loop(truth[_i].outcome), truth[_i].loop);
}
END_TEST

static const struct {
    const char *text;
    int rc;
    enum rv_tool_status want;
} statuses[] = {
    {"success", 0, RV_TOOL_STATUS_SUCCESS},
    {"error", 0, RV_TOOL_STATUS_ERROR},
    {" \tSuccess\r\n", 0, RV_TOOL_STATUS_SUCCESS},
    {"ERROR", 0, RV_TOOL_STATUS_ERROR},
    {"ok", RV_E_INVALID, 0},
    {"", RV_E_INVALID, 0},
    {"succ ess", RV_E_INVALID, 0},
    {"successsuccesssuccess", RV_E_INVALID, 0},
};

/* Proves 2.2.tool_status: Text is trimmed and lower-cased, then only success and error pass; anything else is
 * quoted with both legal values */
START_TEST(rule_2_2_tool_status_is_trimmed_and_lower_cased)
{
    enum rv_tool_status v = (enum rv_tool_status)0;

    ck_assert_int_eq(rv_tool_status_parse(rv_str_of(statuses[_i].text), &v, NULL), statuses[_i].rc);
    if (statuses[_i].rc == 0)
        ck_assert_int_eq(v, statuses[_i].want);
}
END_TEST

/* Proves 2.2.tool_status */
START_TEST(rule_2_2_a_wrong_tool_status_is_quoted_with_both_legal_values)
{
    enum rv_tool_status v;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_tool_status_parse(S("ok"), &v, &err), RV_E_INVALID);
    ck_assert_str_eq(rv_err_text(err), "unknown tool status \"ok\": legal are success, error");
    rv_err_free(err);
}
END_TEST

static const struct {
    enum rv_risk risk;
    enum rv_effect_class effect;
    bool confirm;
} risks[] = {
    {RV_RISK_READ_ONLY, RV_EFFECT_SAFE, false},         {RV_RISK_WRITE, RV_EFFECT_NON_IDEMPOTENT, false},
    {RV_RISK_DESTRUCTIVE, RV_EFFECT_IDEMPOTENT, true},  {RV_RISK_LOW, RV_EFFECT_NON_IDEMPOTENT, false},
    {RV_RISK_MEDIUM, RV_EFFECT_NON_IDEMPOTENT, false},  {RV_RISK_HIGH, RV_EFFECT_NON_IDEMPOTENT, true},
    {RV_RISK_CRITICAL, RV_EFFECT_NON_IDEMPOTENT, true},
};

/* Proves 2.2.effect_class: read_only is safe, destructive is idempotent, every other risk is non_idempotent */
START_TEST(rule_2_2_risk_gives_effect_class)
{
    ck_assert_uint_eq(RV_COUNT(risks), RV_N_RISK);
    ck_assert_int_eq(rv_effect_class_of_risk(risks[_i].risk), risks[_i].effect);
    ck_assert_int_eq(rv_effect_class_of_risk((enum rv_risk)RV_UNSET), RV_EFFECT_NON_IDEMPOTENT);
}
END_TEST

/* Proves 2.2.confirmation: destructive, high and critical need confirmation, the others do not
 * Proves W02: One list of risks with one confirmation rule. There is one risk list; its one mapping says what needs
 * confirmation, and tools use it */
START_TEST(rule_2_2_risk_says_whether_to_confirm) /* W02: one list of risks, one rule */
{
    ck_assert_int_eq(rv_risk_needs_confirmation(risks[_i].risk), risks[_i].confirm);
}
END_TEST

TCase *terms_case(void)
{
    TCase *tc = tcase_create("terms");

    tcase_add_test(tc, every_reason_has_a_class);
    tcase_add_loop_test(tc, rule_2_each_list_has_exactly_its_words, 0, RV_COUNT(words));
    tcase_add_test(tc, rule_2_text_and_constant_convert_both_ways);
    tcase_add_test(tc, rule_2_unknown_text_is_an_error_that_lists_the_legal_words);
    tcase_add_loop_test(tc, rule_2_words_are_matched_exactly, 0, 7);
    tcase_add_loop_test(tc, rule_2_1_outcome_truth_table, 0, RV_COUNT(truth));
    tcase_add_loop_test(tc, rule_2_2_tool_status_is_trimmed_and_lower_cased, 0, RV_COUNT(statuses));
    tcase_add_test(tc, rule_2_2_a_wrong_tool_status_is_quoted_with_both_legal_values);
    tcase_add_loop_test(tc, rule_2_2_risk_gives_effect_class, 0, RV_COUNT(risks));
    tcase_add_loop_test(tc, rule_2_2_risk_says_whether_to_confirm, 0, RV_COUNT(risks));
    return tc;
}
