/* JSON with blanks and in ASCII: byte for byte what json.dumps() of Python writes. */
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/context/suites.h"

static const struct {
    const char *json, *spaced;
} cases[] = {
    {"null", "null"},
    {"[]", "[]"},
    {"{}", "{}"},
    {"[1,[2,{\"a\":[]}],{}]", "[1, [2, {\"a\": []}], {}]"},
    {"{\"k\":[\"\xc3\xa9\",1]}", "{\"k\": [\"\\u00e9\", 1]}"},
    {"{\"\xe2\x82\xac\":\"\xf0\x9f\x98\x80\"}", "{\"\\u20ac\": \"\\ud83d\\ude00\"}"},
    {"\"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\"", "\"\\ud7ff\\ue000\\udbff\\udfff\""},
    {"[1.50,1e5,-0.0,12345678901234567890,true,false]", "[1.50, 1e5, -0.0, 12345678901234567890, true, false]"},
    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\\u007f\\u0080\"",
     "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\\u007f\\u0080\""},
};

START_TEST(values_are_written_with_blanks_in_ascii)
{
    json_object *json = NULL;
    rv_buf b = RV_BUF_INIT(1 << 16);

    ck_assert_int_eq(rv_json_parse(rv_str_of(cases[_i].json), NULL, &json, NULL), 0);
    rv_json_write_spaced(json, &b);
    ck_assert_str_eq(rv_buf_cstr(&b), cases[_i].spaced);
    rv_buf_fini(&b);
    json_object_put(json);
}
END_TEST

START_TEST(what_is_no_text_or_does_not_fit_is_said_by_the_buffer)
{
    json_object *bad = json_object_new_string_len("\xff", 1), *good = rv_kit_json("['abc']");
    rv_buf b = RV_BUF_INIT(4);

    rv_json_write_spaced(bad, &b);
    ck_assert_int_eq(b.rc, RV_E_INVALID);
    rv_buf_clear(&b);
    rv_json_write_spaced(good, &b);
    ck_assert_int_eq(b.rc, RV_E_LIMIT);
    rv_buf_fini(&b);
    json_object_put(bad);
    json_object_put(good);
}
END_TEST

TCase *spaced_json_case(void)
{
    TCase *tc = tcase_create("spaced_json");

    tcase_add_loop_test(tc, values_are_written_with_blanks_in_ascii, 0, RV_COUNT(cases));
    tcase_add_test(tc, what_is_no_text_or_does_not_fit_is_said_by_the_buffer);
    return tc;
}
