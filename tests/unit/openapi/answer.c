/* Answers to results of tools. */
#include "tests/unit/openapi/suites.h"

static const struct {
    int status;
    const char *type, *body, *want;
} answers[] = {
    {200, "application/json", "{\"a\":1.10}", "{'content':[],'structuredContent':{'a':1.10}}"},
    {201, "application/problem+json; charset=utf-8", "[1]", "{'content':[],'structuredContent':[1]}"},
    {200, "application/json", "null", "{'content':[]}"},
    {204, "", "", "{'content':[]}"},
    {200, "text/plain", "hello", "{'content':[{'type':'text','text':'hello'}]}"},
    {200, "", "hello", "{'content':[{'type':'text','text':'hello'}]}"},
    {200, "image/png", "\x89PNG", "{'content':[{'type':'image','data':'iVBORw==','mimeType':'image/png'}]}"},
    {200, "text/plain", "\xff",
     "{'content':[{'type':'resource','resource':{'uri':'https://a.test/x','blob':'/w==','mimeType':'text/plain'}}]}"},
    {200, "nonsense", "a",
     "{'content':[{'type':'resource','resource':{'uri':'https://a.test/x','blob':'YQ==',"
     "'mimeType':'application/octet-stream'}}]}"},
    {404, "application/json", " no such pet\n",
     "{'content':[{'type':'text','text':'HTTP status 404: no such pet'}],'isError':true}"},
    {302, "", "", "{'content':[{'type':'text','text':'HTTP status 302'}],'isError':true}"},
    {500, "", "\xff", "{'content':[{'type':'text','text':'HTTP status 500'}],'isError':true}"},
};

START_TEST(an_answer_becomes_a_result)
{
    const struct rv_openapi_answer a = {.status = answers[_i].status,
                                        .content_type = rv_str_of(answers[_i].type),
                                        .body = rv_str_of(answers[_i].body),
                                        .url = "https://a.test/x"};
    json_object *got = NULL, *want = rv_kit_json(answers[_i].want);

    ck_assert_int_eq(rv_openapi_build_result(&a, &got, NULL), 0);
    ck_assert_msg(rv_json_equal(got, want), "%s", json_object_to_json_string(got));
    json_object_put(got);
    json_object_put(want);
}
END_TEST

START_TEST(what_is_not_json_is_not_taken_for_it)
{
    const struct rv_openapi_answer a = {
        .status = 200, .content_type = RV_STR_LIT("application/json"), .body = RV_STR_LIT("{\"a\":"), .url = ""};
    json_object *got = NULL;

    ck_assert_int_eq(rv_openapi_build_result(&a, &got, NULL), RV_E_INVALID);
    ck_assert_ptr_null(got);
}
END_TEST

TCase *answer_case(void)
{
    TCase *tc = tcase_create("answer");

    tcase_add_loop_test(tc, an_answer_becomes_a_result, 0, RV_COUNT(answers));
    tcase_add_test(tc, what_is_not_json_is_not_taken_for_it);
    return tc;
}
