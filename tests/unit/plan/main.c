/* Plans are read from replies by the rules of plans, one test a rule. */
#include <stdio.h>

#include "coreengine/plan/plan.h"
#include "tests/unit/plan/plan_suites.h"

static struct rv_plan read_reply(const char *text, const char *calls, bool truncated)
{
    json_object *list = NULL;
    struct rv_plan plan;

    if (calls)
        ck_assert_int_eq(rv_json_parse(rv_str_of(calls), NULL, &list, NULL), 0);
    struct rv_plan_reply reply = {rv_str_of(text), list, truncated};
    ck_assert_int_eq(rv_plan_parse(&reply, 2, &plan, NULL), 0);
    json_object_put(list);
    return plan;
}

/* What came of a reply as one word: fault/reason, "direct", or the number of calls. */
static void expect(const char *text, const char *calls, bool truncated, const char *want)
{
    struct rv_plan plan = read_reply(text, calls, truncated);
    char got[64];

    if (plan.fault)
        snprintf(got, sizeof got, "%s%s%s", rv_plan_error_text(plan.fault), plan.reason ? "/" : "",
                 plan.reason ? plan.reason : "");
    else if (plan.direct)
        snprintf(got, sizeof got, "direct");
    else
        snprintf(got, sizeof got, "%zu calls", plan.n_calls);
    ck_assert_str_eq(got, want);
    rv_plan_fini(&plan);
}

/* Proves plan.P1: the type of a plan decides its form, and other members are ignored */
START_TEST(p1_type_decides)
{
    expect("{\"type\":\"direct_response\",\"content\":\"x\",\"calls\":3}", NULL, false, "direct");
    expect("```json\n{\"type\":\"tool_calls\",\"content\":1,\"calls\":[{\"tool_name\":\"a\"}]}\n```", NULL, false,
           "1 calls");
    expect("{\"type\":\"other\"}", NULL, false, "direct");
    expect("plain", NULL, false, "direct");
}
END_TEST

/* Proves plan.P2: the reasoning is optional */
START_TEST(p2_reasoning_may_be_absent)
{
    struct rv_plan plan =
        read_reply("{\"type\":\"tool_calls\",\"reasoning\":\"why\",\"calls\":[{\"tool_name\":\"a\"}]}", NULL, false);

    ck_assert(rv_str_is(plan.reasoning, "why"));
    rv_plan_fini(&plan);
    plan = read_reply("{\"type\":\"tool_calls\",\"reasoning\":7,\"calls\":[{\"tool_name\":\"a\"}]}", NULL, false);
    ck_assert_uint_eq(plan.reasoning.len, 0);
    ck_assert_int_eq(plan.fault, RV_PLAN_ERROR_NONE);
    rv_plan_fini(&plan);
}
END_TEST

/* Proves plan.P3 */
START_TEST(p3_arguments)
{
    struct rv_plan plan = read_reply(
        "", "[{\"name\":\"a\",\"arguments\":\"{\\\"n\\\":1.10}\"},{\"name\":\"b\",\"arguments\":[]}]", false);
    rv_buf text = RV_BUF_INIT(100);

    ck_assert_uint_eq(plan.n_calls, 2);
    rv_json_write(plan.calls[0].arguments, &text);
    ck_assert_str_eq(rv_buf_cstr(&text), "{\"n\":1.10}");
    ck_assert_ptr_null(plan.calls[1].arguments);
    ck_assert_str_eq(plan.calls[1].actual_type, "array");
    rv_buf_fini(&text);
    rv_plan_fini(&plan);
}
END_TEST

/* Proves plan.P4: a plan without calls is an error
 * Proves plan.P5: a plan has at most the calls that the caller allows, 16 by default */
START_TEST(p4_p5_number_of_calls)
{
    expect("{\"type\":\"tool_calls\",\"calls\":[]}", NULL, false, "empty_plan");
    expect("", "[{\"name\":\"a\"},{\"name\":\"a\"},{\"name\":\"a\"}]", false, "too_many_calls");
}
END_TEST

/* Proves plan.P8: of equal keys the last one counts, and the plan says that there were some */
START_TEST(p8_last_of_equal_keys_wins)
{
    struct rv_plan plan =
        read_reply("{\"type\":\"tool_calls\",\"type\":\"direct_response\",\"content\":\"x\"}", NULL, false);

    ck_assert(plan.direct && plan.duplicate_keys);
    rv_plan_fini(&plan);
}
END_TEST

/* Proves plan.P6: native calls of tools are a plan, with the text beside them as the reasoning */
START_TEST(p6_native_calls)
{
    struct rv_plan plan = read_reply("because", "[{\"name\":\"b\"},{\"name\":\"a\",\"after\":[0]}]", false);

    ck_assert_uint_eq(plan.n_calls, 2);
    ck_assert(rv_str_is(plan.calls[0].tool, "b") && rv_str_is(plan.reasoning, "because"));
    ck_assert_ptr_null(plan.calls[1].after); /* native calls have arguments only */
    rv_plan_fini(&plan);
}
END_TEST

/* Proves plan.P7: members of arguments keep their order */
START_TEST(p7_order_of_members)
{
    struct rv_plan plan = read_reply("{\"type\":\"tool_calls\",\"calls\":[{\"tool_name\":\"a\",\"arguments\":"
                                     "{\"z\":1,\"a\":{\"y\":2,\"b\":3}}}]}",
                                     NULL, false);
    rv_buf text = RV_BUF_INIT(100);

    rv_json_write(plan.calls[0].arguments, &text);
    ck_assert_str_eq(rv_buf_cstr(&text), "{\"z\":1,\"a\":{\"y\":2,\"b\":3}}");
    rv_buf_fini(&text);
    rv_plan_fini(&plan);
}
END_TEST

START_TEST(malformed_plans)
{
    expect("", "[{\"name\":\"__planning__\",\"arguments\":\"{\"}]", false, "plan_malformed/json");
    expect("", "[{\"name\":\"__planning__\",\"arguments\":{}}]", false, "plan_malformed/type");
    expect("{\"type\":\"direct_response\"}", NULL, false, "plan_malformed/missing_field");
    expect("{\"type\":\"tool_calls\",\"calls\":[{\"tool_name\":\"\"}]}", NULL, false, "plan_malformed/missing_field");
    expect("", "[{\"name\":\"__planning__\"},{\"name\":\"__planning__\"}]", false, "plan_malformed/multiple");
    expect("{\"type\":\"tool", NULL, true, "plan_malformed/truncated");
    expect(" \n", NULL, false, "plan_malformed/empty");
}
END_TEST

static TCase *parse_case(void)
{
    TCase *tc = tcase_create("parse");

    tcase_add_test(tc, p1_type_decides);
    tcase_add_test(tc, p2_reasoning_may_be_absent);
    tcase_add_test(tc, p3_arguments);
    tcase_add_test(tc, p4_p5_number_of_calls);
    tcase_add_test(tc, p8_last_of_equal_keys_wins);
    tcase_add_test(tc, p6_native_calls);
    tcase_add_test(tc, p7_order_of_members);
    tcase_add_test(tc, malformed_plans);
    return tc;
}

int main(void)
{
    static TCase *(*const cases[])(void) = {parse_case,   output_case,   argument_case, resolve_case,  format_case,
                                            catalog_case, validate_case, shape_case,    artifact_case, property_case};

    return rv_kit_run_cases("plan", cases, RV_COUNT(cases));
}
