/* Content: parts of an answer that are meant for the model, apart from its data. */
#include "coreengine/tools/tools.h"

#include "tests/unit/tools/suites.h"

static json_object *json(const char *text)
{
    json_object *value = NULL;

    ck_assert_int_eq(rv_json_parse(rv_str_of(text), NULL, &value, NULL), 0);
    return value;
}

static const struct {
    const char *list;
    const char *text; /* for the model; NULL: it is not content */
} lists[] = {
    {"[{\"type\":\"text\",\"text\":\"a\\nb\"},{\"type\":\"text\",\"text\":\"\"}]", "a\nb\n"},
    {"[{\"type\":\"reference\",\"uri\":\"file:///a\"}]", "[resource file:///a]"},
    {"[{\"type\":\"reference\",\"uri\":\"a:b\\u0007\",\"name\":\"n\\n]\",\"media_type\":\"text/plain\",\"description\":"
     "\"d\"}]",
     "[resource a:b , n ], text/plain: d]"},
    {"[{\"type\":\"image\",\"data\":\"AAAA\",\"media_type\":\"image/png\"}]", "[image image/png, 3 bytes]"},
    {"[{\"type\":\"file\",\"data\":\"AA==\",\"media_type\":\"audio/wav\",\"name\":\"x\"}]",
     "[file x, audio/wav, 1 bytes]"},
    {"[]", NULL},
    {"{}", NULL},
    {"null", NULL},
    {"[7]", NULL},
    {"[{\"type\":\"text\"}]", NULL},
    {"[{\"type\":\"text\",\"text\":7}]", NULL},
    {"[{\"type\":\"text\",\"text\":\"a\",\"more\":\"b\"}]", NULL},
    {"[{\"type\":\"reference\"}]", NULL},
    {"[{\"type\":\"reference\",\"uri\":\"\"}]", NULL},
    {"[{\"type\":\"image\",\"data\":\"AAA\",\"media_type\":\"image/png\"}]", NULL},
    {"[{\"type\":\"image\",\"data\":\"\",\"media_type\":\"image/png\"}]", NULL},
    {"[{\"type\":\"image\",\"data\":\"A A=\",\"media_type\":\"image/png\"}]", NULL},
    {"[{\"type\":\"image\",\"data\":\"A===\",\"media_type\":\"image/png\"}]", NULL},
    {"[{\"type\":\"image\",\"data\":\"AAAA\",\"media_type\":\"/png\"}]", NULL},
    {"[{\"type\":\"image\",\"data\":\"AAAA\"}]", NULL},
    {"[{\"type\":\"video\",\"data\":\"AAAA\",\"media_type\":\"video/mp4\"}]", NULL},
};
START_TEST(a_model_gets_texts_as_they_are_and_a_line_for_anything_else)
{
    json_object *list = json(lists[_i].list);
    rv_buf text = RV_BUF_INIT(1000);

    ck_assert_int_eq(rv_tool_is_content(list), lists[_i].text != NULL);
    if (lists[_i].text) {
        rv_tool_write_content(list, &text);
        ck_assert_str_eq(rv_buf_cstr(&text), lists[_i].text);
    }
    json_object_put(list);
    rv_buf_fini(&text);
}
END_TEST

static const struct {
    const char *raw;
    bool is_kept; /* it is a standard result with content */
} results[] = {
    {"{\"status\":\"success\",\"data\":{},\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}", true},
    {"{\"status\":\"success\",\"data\":{},\"message\":\"m\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}", true},
    {"{\"status\":\"success\",\"data\":[],\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}", false},
    {"{\"status\":\"ok\",\"data\":{},\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}", false},
    {"{\"status\":\"success\",\"data\":{},\"content\":\"a\"}", false},
    {"{\"status\":\"success\",\"data\":{},\"content\":[],\"x\":1}", false},
    {"{\"data\":{},\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}", false},
};
/* Proves 10/content: Parts of a tool's answer meant for the model, apart from its data */
START_TEST(only_a_standard_result_has_content)
{
    json_object *raw = json(results[_i].raw), *standard = NULL, *again = NULL;

    ck_assert_int_eq(rv_tool_result_normalize(raw, &standard, NULL), 0);
    ck_assert_int_eq(rv_json_get_arr(standard, "content") != NULL, results[_i].is_kept);
    ck_assert_int_eq(rv_tool_result_normalize(standard, &again, NULL), 0);
    ck_assert(rv_json_equal(standard, again));
    struct rv_step_result r = {
        .step_id = RV_STR_LIT("s"), .tool = RV_STR_LIT("t"), .standard = standard, .has_content = true};
    json_object *entry = NULL;
    ck_assert_int_eq(rv_tool_build_step_result(&r, &entry, NULL), 0);
    ck_assert_int_eq(rv_json_get_arr(entry, "content") != NULL, results[_i].is_kept);
    json_object_put(entry);
    r.has_content = false; /* of older rules */
    ck_assert_int_eq(rv_tool_build_step_result(&r, &entry, NULL), 0);
    ck_assert_ptr_null(rv_json_get_arr(entry, "content"));
    json_object_put(entry);
    json_object_put(again);
    json_object_put(standard);
    json_object_put(raw);
}
END_TEST

TCase *content_case(void)
{
    TCase *tc = tcase_create("content");

    tcase_add_loop_test(tc, a_model_gets_texts_as_they_are_and_a_line_for_anything_else, 0, RV_COUNT(lists));
    tcase_add_loop_test(tc, only_a_standard_result_has_content, 0, RV_COUNT(results));
    return tc;
}
