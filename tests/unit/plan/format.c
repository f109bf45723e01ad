/* Results of tools as text. */
#include "coreengine/plan/plan.h"
#include "tests/unit/plan/plan_suites.h"

/* Results named a, b, ... from a list of JSON. */
static void expect(enum rv_plan_result_format format, const char *results, size_t limit, const char *want)
{
    struct rv_plan_result items[4];
    json_object *list = NULL;
    rv_buf got = RV_BUF_INIT(100000);

    ck_assert_int_eq(rv_json_parse(rv_str_of(results), NULL, &list, NULL), 0);
    size_t n = json_object_array_length(list);
    for (size_t i = 0; i < n; i++)
        items[i] = (struct rv_plan_result){{&"abcd"[i], 1}, json_object_array_get_idx(list, i)};
    rv_plan_results_write(format, items, n, limit, &got);
    ck_assert_str_eq(rv_buf_cstr(&got), want);
    rv_buf_fini(&got);
    json_object_put(list);
}

#define TEXT(text)   "{\"content\":[{\"type\":\"text\",\"text\":\"" text "\"}]}"
#define FAILED(text) "{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"" text "\"}]}"

START_TEST(for_the_model)
{
    expect(RV_RESULT_MODEL, "[" TEXT("x\\ny") "," FAILED("no") ",{}]", 0,
           "Tool 'a' [SUCCESS]: x\ny\nTool 'b' [FAILED]: no\nTool 'c' [SUCCESS]: ");
    expect(RV_RESULT_MODEL, "[]", 0, "");
}
END_TEST

START_TEST(for_a_synthesis)
{
    expect(RV_RESULT_SYNTHESIS, "[" TEXT(" \\r\\nfirst\\r\\nsecond") "," FAILED("") "]", 0,
           "### Tool: a [SUCCESS]\n\n**Summary**: first\n**Details** (truncated):\n \r\nfirst\r\nsecond\n"
           "This action is done: do not repeat it.\n---\n\n"
           "### Tool: b [FAILED]\n\n**Summary**: No summary available\n**Details** (truncated):\n");
}
END_TEST

START_TEST(for_display)
{
    expect(RV_RESULT_DISPLAY, "[" TEXT("x") "," FAILED("no") "]", 0, "1. a [SUCCESS]: x\n2. b [FAILED]: no");
}
END_TEST

START_TEST(fallback_has_successes_with_text)
{
    expect(RV_RESULT_FALLBACK, "[" TEXT("x") "," FAILED("no") ",{}," TEXT("y") "]", 0, "**a**:\nx\n\n**d**:\ny");
    expect(RV_RESULT_FALLBACK, "[" FAILED("no") "]", 0, "Tool execution completed.");
}
END_TEST

START_TEST(limits_are_bytes_at_whole_characters)
{
    expect(RV_RESULT_MODEL, "[" TEXT("12345678") "]", 8, "Tool 'a' [SUCCESS]: 12345678");
    expect(RV_RESULT_MODEL, "[" TEXT("123456789") "]", 8, "Tool 'a' [SUCCESS]: 12345...");
    expect(RV_RESULT_MODEL, "[" TEXT("1234\\u00e9789") "]", 8, "Tool 'a' [SUCCESS]: 1234...");
    expect(RV_RESULT_MODEL, "[" TEXT("12345") "]", 3, "Tool 'a' [SUCCESS]: ...");
    expect(RV_RESULT_MODEL, "[" TEXT("12345") "]", 1, "Tool 'a' [SUCCESS]: ...");
}
END_TEST

START_TEST(summaries_have_200_characters)
{
    rv_buf result = RV_BUF_INIT(10000), want = RV_BUF_INIT(10000);

    rv_buf_puts(&result, "[{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"");
    rv_buf_puts(&want, "### Tool: a [FAILED]\n\n**Summary**: ");
    for (int i = 0; i < 201; i++)
        rv_buf_puts(&result, "\xc3\xa9");
    for (int i = 0; i < 200; i++)
        rv_buf_puts(&want, "\xc3\xa9");
    rv_buf_puts(&result, "\"}]}]");
    rv_buf_puts(&want, "\n**Details** (truncated):\n...");
    expect(RV_RESULT_SYNTHESIS, rv_buf_cstr(&result), 3, rv_buf_cstr(&want));
    rv_buf_fini(&result);
    rv_buf_fini(&want);
}
END_TEST

START_TEST(hostile_results_have_no_text)
{
    expect(RV_RESULT_DISPLAY, "[null,7,{\"content\":7},{\"isError\":\"no\",\"content\":[7,{\"type\":\"text\"}]}]", 0,
           "1. a [SUCCESS]: \n2. b [SUCCESS]: \n3. c [SUCCESS]: \n4. d [SUCCESS]: ");
}
END_TEST

TCase *format_case(void)
{
    TCase *tc = tcase_create("format");

    tcase_add_test(tc, for_the_model);
    tcase_add_test(tc, for_a_synthesis);
    tcase_add_test(tc, for_display);
    tcase_add_test(tc, fallback_has_successes_with_text);
    tcase_add_test(tc, limits_are_bytes_at_whole_characters);
    tcase_add_test(tc, summaries_have_200_characters);
    tcase_add_test(tc, hostile_results_have_no_text);
    return tc;
}
