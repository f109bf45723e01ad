/* Each allocation fails once while a plan or the result of a tool is read: no crash, no leak, and the code says no
 * memory. */
#include "coreengine/plan/format.h"
#include "coreengine/plan/output.h"
#include "coreengine/plan/plan.h"
#include "coreengine/plan/resolve.h"
#include "tests/kit/fault.h"
#include "tests/kit/fault_loop.h"
#include "tests/kit/suites.h"

static int read_text(const char *text)
{
    struct rv_plan_reply reply = {rv_str_of(text), NULL, false};
    struct rv_plan plan;
    int rc = rv_plan_parse(&reply, 0, &plan, NULL);

    rv_plan_fini(&plan);
    return rc;
}

static int sound_plan(void)
{
    return read_text("{\"type\":\"tool_calls\",\"calls\":[{\"tool_name\":\"a\",\"arguments\":\"{\\\"n\\\":1.10}\"},"
                     "{\"tool_name\":\"b\"}]}");
}

static int empty_plan(void)
{
    return read_text("{\"type\":\"tool_calls\",\"calls\":[]}");
}

static int read_result(const char *text, bool has_schema)
{
    struct rv_output_promise promise = {.has_schema = has_schema};
    struct rv_output output = {0};
    json_object *result = NULL;
    int rc = rv_json_parse(rv_str_of(text), NULL, &result, NULL);

    if (rc == 0)
        rc = rv_output_of(result, &promise, &output, NULL);
    rv_output_fini(&output);
    json_object_put(result);
    return rc;
}

static int output_of_texts(void)
{
    int rc =
        read_result("{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}", false);

    return rc < 0 ? rc : read_result("{\"content\":[{\"type\":\"text\",\"text\":\"[1]\"}]}", false);
}

static int failed_call(void)
{
    int rc = read_result("{\"isError\":true,\"structuredContent\":{\"a\":1}}", true);

    return rc < 0 ? rc : read_result("{\"content\":[]}", true);
}

static int resolve_arguments(const char *text)
{
    struct rv_step_output outputs[2] = {{true, NULL, NULL}, {false, NULL, NULL}};
    struct rv_resolution out = {0};
    json_object *arguments = NULL;
    int rc = rv_json_parse(RV_STR_LIT("{\"a b\":[1.10,{\"c\":\"x\"}]}"), NULL, &outputs[0].value, NULL);

    if (rc == 0)
        rc = rv_json_parse(rv_str_of(text), NULL, &arguments, NULL);
    if (rc == 0)
        rc = rv_plan_resolve(arguments, outputs, 2, &out, NULL);
    rv_resolution_fini(&out);
    json_object_put(arguments);
    json_object_put(outputs[0].value);
    return rc;
}

static int resolved(void)
{
    return resolve_arguments(
        "{\"n\":\"$0.output[\\\"a b\\\"][0]\",\"l\":[\"<${0.output[\\\"a b\\\"].1}> $$${0.output}\"]}");
}

static int unresolved(void)
{
    return resolve_arguments("{\"l\":[{\"id\":\"see ${0.output.b}\"}]}");
}

static int formatted(void)
{
    struct rv_tool_result item = {RV_STR_LIT("a"), NULL};
    rv_buf text = RV_BUF_INIT(10000);
    int rc = rv_json_parse(RV_STR_LIT("{\"content\":[{\"type\":\"text\",\"text\":\"long enough\"}]}"), NULL,
                           &item.result, NULL);

    if (rc == 0)
        rv_results_write(RV_RESULT_SYNTHESIS, &item, 1, 0, &text);
    rc = rc == 0 ? text.rc : rc;
    rv_buf_fini(&text);
    json_object_put(item.result);
    return rc;
}

static const struct rv_fault_scenario scenarios[] = {
    {"sound_plan", sound_plan},   {"empty_plan", empty_plan}, {"output_of_texts", output_of_texts},
    {"failed_call", failed_call}, {"resolved", resolved},     {"unresolved", unresolved},
    {"formatted", formatted}};

START_TEST(every_allocation_may_fail)
{
    rv_fault_each(&scenarios[_i], 5);
}
END_TEST

static TCase *plan_case(void)
{
    TCase *tc = tcase_create("plan");

    tcase_add_loop_test(tc, every_allocation_may_fail, 0, (int)RV_COUNT(scenarios));
    return tc;
}

int main(void)
{
    static TCase *(*const cases[])(void) = {plan_case};

    return rv_kit_run_cases("fault_plan", cases, RV_COUNT(cases));
}
