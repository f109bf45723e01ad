/* Outputs from results of tools, one test a rule. */
#include "coreengine/plan/plan.h"
#include "tests/unit/plan/plan_suites.h"

static int wants_integer(const void *schema, json_object *value, rv_err **err)
{
    (void)schema;
    return rv_json_is_int(value) ? 0 : RV_FAIL(err, RV_E_INVALID, "wants an integer");
}

static struct rv_output_promise nothing, integer = {.has_schema = true, .fits = wants_integer};

/* The output as JSON, or "code: text" of a failure. */
static void expect(const char *text, const struct rv_output_promise *promise, const char *want)
{
    rv_buf got = RV_BUF_INIT(1000);
    json_object *result = NULL;
    struct rv_output output;

    ck_assert_int_eq(rv_json_parse(rv_str_of(text), NULL, &result, NULL), 0);
    ck_assert_int_eq(rv_output_build(result, promise, &output, NULL), 0);
    if (output.code)
        rv_buf_printf(&got, "%s: %s", output.code, output.text);
    else
        rv_json_write(output.value, &got);
    ck_assert_str_eq(rv_buf_cstr(&got), want);
    if (output.code)
        ck_assert_ptr_null(output.value);
    rv_output_fini(&output);
    json_object_put(result);
    rv_buf_fini(&got);
}

/* Proves plan.N1: a failure says what its text blocks say, else its structured content, else "Unknown error" */
START_TEST(n1_texts_of_a_failure)
{
    expect("{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image\"},"
           "{\"type\":\"text\",\"text\":\"b\"}]}",
           &nothing, "tool_error: a\nb");
    expect("{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"a\"}],\"structuredContent\":7}", &nothing,
           "tool_error: a");
    expect("{\"isError\":true,\"structuredContent\":{\"n\": 1.10}}", &nothing, "tool_error: {\"n\":1.10}");
    expect("{\"isError\":true,\"content\":[]}", &nothing, "tool_error: Unknown error");
}
END_TEST

/* Proves plan.N2: structured content that is not null is the output */
START_TEST(n2_structured_content_is_the_output)
{
    expect("{\"content\":[{\"type\":\"text\",\"text\":\"x\"}],\"structuredContent\":[1]}", &nothing, "[1]");
    expect("{\"structuredContent\":false}", &nothing, "false");
}
END_TEST

/* Proves plan.N3: a tool with an output schema fails without structured content */
START_TEST(n3_promised_but_absent)
{
    expect("{\"content\":[{\"type\":\"text\",\"text\":\"1\"}],\"structuredContent\":null}", &integer,
           "missing_structured_content: the tool declares an output schema, but its result has no structuredContent");
}
END_TEST

/* Proves plan.N4: without a schema the output is the text, or the object or list that it is */
START_TEST(n4_output_of_texts)
{
    expect("{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"n\\\":1.10}\"}]}", &nothing, "{\"n\":1.10}");
    expect("{\"content\":[{\"type\":\"text\",\"text\":\"42\"}]}", &nothing, "\"42\"");
    expect("{\"content\":[{\"type\":\"text\",\"text\":\"[1]\"},{\"type\":\"text\",\"text\":\"x\"}]}", &nothing,
           "\"[1]\\nx\"");
    expect("{\"content\":[{\"type\":\"text\",\"text\":\"[1,\"},{\"type\":\"text\",\"text\":\"2]\"}]}", &nothing,
           "\"[1,\\n2]\"");
    expect("{\"content\":[{\"type\":\"text\",\"text\":\"\"}]}", &nothing, "\"\"");
    expect("{\"content\":[{\"type\":\"image\"}]}", &nothing, "null");
    expect("{}", &nothing, "null");
}
END_TEST

/* Proves plan.N5: structured content that breaks the output schema is a failure, or a warning */
START_TEST(n5_violation_of_the_schema)
{
    struct rv_output_promise warn = integer, off = integer;

    expect("{\"structuredContent\":7}", &integer, "7");
    expect("{\"structuredContent\":\"7\"}", &integer, "output_schema_violation: wants an integer");
    warn.check = RV_OUTPUT_WARN;
    off.check = RV_OUTPUT_OFF;
    expect("{\"structuredContent\":\"7\"}", &warn, "\"7\"");
    expect("{\"structuredContent\":\"7\"}", &off, "\"7\"");
}
END_TEST

/* Proves plan.N6: a result without isError is a success
 * Proves plan.N7: the structured content of a failure is not checked */
START_TEST(n6_n7_is_error)
{
    expect("{\"isError\":null,\"structuredContent\":7}", &integer, "7");
    expect("{\"isError\":true,\"structuredContent\":\"7\"}", &integer, "tool_error: \"7\"");
}
END_TEST

START_TEST(hostile_results)
{
    expect("[]", &nothing, "invalid_result: the result is not an object");
    expect("{\"isError\":\"no\"}", &nothing, "invalid_result: isError is not a boolean");
    expect("{\"content\":\"x\"}", &nothing, "invalid_result: content is not a list");
    expect("{\"content\":[null]}", &nothing, "invalid_result: a block of the content is not an object with a type");
    expect("{\"content\":[{\"type\":\"text\",\"text\":1}]}", &nothing,
           "invalid_result: a text block of the content has no text");
}
END_TEST

TCase *output_case(void)
{
    TCase *tc = tcase_create("output");

    tcase_add_test(tc, n1_texts_of_a_failure);
    tcase_add_test(tc, n2_structured_content_is_the_output);
    tcase_add_test(tc, n3_promised_but_absent);
    tcase_add_test(tc, n4_output_of_texts);
    tcase_add_test(tc, n5_violation_of_the_schema);
    tcase_add_test(tc, n6_n7_is_error);
    tcase_add_test(tc, hostile_results);
    return tc;
}
