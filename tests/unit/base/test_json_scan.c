#include "coreengine/base/base.h"
#include "tests/kit/kit.h"
#include "tests/unit/base/suites.h"

#include <stdlib.h>
#include <string.h>

/* Rule 5.6: how the value at a brace in prose ends decides what becomes of it. */
static const struct {
    const char *text;
    enum rv_json_end how;
    size_t end;
    bool saw_key;
} cases[] = {
    {"{\"a\":1} and more", RV_JSON_VALUE, 7, true},
    {"{}x", RV_JSON_VALUE, 2, false},
    {"[1]]", RV_JSON_VALUE, 3, false},
    {"12abc", RV_JSON_VALUE, 2, false},
    {"{\"a\":{\"b\":\"}\"}}}", RV_JSON_VALUE, 15, true},
    {"", RV_JSON_INCOMPLETE, 0, false},
    {"{", RV_JSON_INCOMPLETE, 1, false},
    {"{\"a", RV_JSON_INCOMPLETE, 3, false},
    {"{\"a\"", RV_JSON_INCOMPLETE, 4, false},
    {"{\"a\":", RV_JSON_INCOMPLETE, 5, true},
    {"{\"a\":tr", RV_JSON_INCOMPLETE, 7, true},
    {"{\"a\":1", RV_JSON_INCOMPLETE, 6, true},
    {"{\"a\":-", RV_JSON_INCOMPLETE, 6, true},
    {"{\"a\":1e", RV_JSON_INCOMPLETE, 7, true},
    {"{\"a\":\"\\", RV_JSON_INCOMPLETE, 7, true},
    {"{\"a\":\"\\u00", RV_JSON_INCOMPLETE, 10, true},
    {"{\"a\":\"\\ud83d", RV_JSON_INCOMPLETE, 12, true},
    {"{\"a\":\"\\ud83d\\", RV_JSON_INCOMPLETE, 13, true},
    {"{\"a\":\"\xE2\x82", RV_JSON_INCOMPLETE, 8, true},
    {"{word}", RV_JSON_SYNTAX, 1, false},
    {" {}", RV_JSON_SYNTAX, 0, false},
    {"{\"a\"}", RV_JSON_SYNTAX, 4, false},
    {"{\"a\":1 \"b\":2}", RV_JSON_SYNTAX, 7, true},
    {"{\"a\":{\"b\" 1}}", RV_JSON_SYNTAX, 10, true},
    {"{\"a\":1,'b':2}", RV_JSON_SYNTAX, 7, true},
    {"[{\"a\":1 x]", RV_JSON_SYNTAX, 8, false}, /* the key is not of the outermost value */
    {"{\"a\":1e400}", RV_JSON_SYNTAX, 5, true},
    {"{\"a\":\"\xE2(", RV_JSON_SYNTAX, 6, true},
};

START_TEST(says_how_the_value_ends)
{
    const struct rv_json_opts opts = {.allow_duplicates = true};
    struct rv_json_scan with_tree, without;
    json_object *v = NULL;

    ck_assert_int_eq(rv_json_scan(rv_str_of(cases[_i].text), &opts, &with_tree, &v, NULL), 0);
    ck_assert_int_eq(rv_json_scan(rv_str_of(cases[_i].text), &opts, &without, NULL, NULL), 0);
    ck_assert_int_eq(with_tree.how, cases[_i].how);
    ck_assert_uint_eq(with_tree.end, cases[_i].end);
    ck_assert_int_eq(with_tree.saw_key, cases[_i].saw_key);
    ck_assert_int_eq(without.how, cases[_i].how);
    ck_assert_uint_eq(without.end, cases[_i].end);
    ck_assert_int_eq(without.saw_key, cases[_i].saw_key);
    ck_assert_int_eq(v != NULL, cases[_i].how == RV_JSON_VALUE);
    json_object_put(v);
}
END_TEST

START_TEST(a_duplicate_key_is_a_syntax_error_unless_allowed)
{
    struct rv_json_scan scan;

    ck_assert_int_eq(rv_json_scan(RV_STR_LIT("{\"a\":1,\"a\":2}"), NULL, &scan, NULL, NULL), 0);
    ck_assert_int_eq(scan.how, RV_JSON_SYNTAX);
    ck_assert_uint_eq(scan.end, 7);
}
END_TEST

START_TEST(too_deep_or_too_long_counts_as_broken)
{
    const struct rv_json_opts shallow = {.max_depth = 2}, brief = {.max_bytes = 4};
    struct rv_json_scan scan;

    ck_assert_int_eq(rv_json_scan(RV_STR_LIT("[[[1]]]"), &shallow, &scan, NULL, NULL), 0);
    ck_assert_int_eq(scan.how, RV_JSON_SYNTAX);
    ck_assert_uint_eq(scan.end, 2);
    ck_assert_int_eq(rv_json_scan(RV_STR_LIT("[1,2,3]"), &brief, &scan, NULL, NULL), 0);
    ck_assert_int_eq(scan.how, RV_JSON_SYNTAX);
    ck_assert_int_eq(rv_json_scan(RV_STR_LIT("[12] and more"), &brief, &scan, NULL, NULL), 0);
    ck_assert_int_eq(scan.how, RV_JSON_VALUE);
}
END_TEST

TCase *json_scan_case(void)
{
    TCase *tc = tcase_create("json_scan");

    tcase_add_loop_test(tc, says_how_the_value_ends, 0, RV_COUNT(cases));
    tcase_add_test(tc, a_duplicate_key_is_a_syntax_error_unless_allowed);
    tcase_add_test(tc, too_deep_or_too_long_counts_as_broken);
    return tc;
}
