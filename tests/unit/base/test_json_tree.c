#include "coreengine/base/base.h"
#include "tests/kit/kit.h"
#include "tests/unit/base/suites.h"

#include <stdlib.h>

/* W31: numbers compare by value across integer and float, and nothing else converts. */
static const struct {
    const char *a, *b;
    bool equal;
} pairs[] = {
    {"1", "1.0", true},
    {"1", "1.5", false},
    {"0", "-0.0", true},
    {"-3", "-3e0", true},
    {"3", "-3.0", false},
    {"9007199254740993", "9007199254740992.0", false}, /* 2^53 + 1 against 2^53 */
    {"9007199254740992", "9007199254740992.0", true},
    {"9223372036854775807", "9223372036854775808.0", false}, /* 2^63 - 1 against 2^63 */
    {"9223372036854775808", "9223372036854775808.0", true},
    {"-9223372036854775808", "-9223372036854775808.0", true},
    {"18446744073709551615", "18446744073709551616.0", false}, /* 2^64 - 1 against 2^64 */
    {"18446744073709551615", "18446744073709551615", true},
    {"9223372036854775807", "18446744073709551615", false},
    {"0.5", "5e-1", true},
    {"1", "true", false},
    {"'1'", "1", false},
    {"true", "true", true},
    {"true", "false", false},
    {"null", "null", true},
    {"null", "0", false},
    {"null", "{}", false},
    {"'a'", "'a'", true},
    {"'a'", "'A'", false},
    {"\"\\u0000\"", "\"\"", false},
    {"[]", "{}", false},
    {"[1,[2]]", "[1.0,[2]]", true},
    {"[1,2]", "[2,1]", false},
    {"[1]", "[1,null]", false},
    {"{'a':1,'b':[null]}", "{'b':[null],'a':1}", true},
    {"{'a':1}", "{'a':1,'b':null}", false},
    {"{'a':null}", "{'b':null}", false},
};

START_TEST(equality_is_by_type_and_value)
{
    json_object *a = rv_kit_json(pairs[_i].a), *b = rv_kit_json(pairs[_i].b);

    ck_assert_int_eq(rv_json_equal(a, b), pairs[_i].equal);
    ck_assert_int_eq(rv_json_equal(b, a), pairs[_i].equal);
    json_object_put(a);
    json_object_put(b);
}
END_TEST

START_TEST(a_copy_is_equal_separate_and_keeps_number_texts)
{
    json_object *v =
        rv_kit_json("{\"a\":[1.50,18446744073709551615,-5,null,true,\"x\\u0000y\",[],{}],\"b\":{\"c\":1e2}}");
    json_object *copy = NULL;
    char *before = rv_kit_text(v), *after;

    ck_assert_int_eq(rv_json_dup(v, &copy, NULL), 0);
    ck_assert(rv_json_equal(v, copy));
    ck_assert_ptr_ne(rv_json_get_arr(v, "a"), rv_json_get_arr(copy, "a"));
    ck_assert_int_eq(rv_json_set_int(v, "a", 0, NULL), 0);
    json_object_put(v);
    after = rv_kit_text(copy);
    ck_assert_str_eq(after, before);
    free(before);
    free(after);
    json_object_put(copy);
    copy = (json_object *)&copy;
    ck_assert_int_eq(rv_json_dup(NULL, &copy, NULL), 0);
    ck_assert_ptr_null(copy);
}
END_TEST

START_TEST(setters_build_and_replace_in_place)
{
    json_object *obj = json_object_new_object(), *arr = json_object_new_array(), *shared = json_object_new_int64(7);
    char *text;

    ck_assert_int_eq(rv_json_set_text(obj, "t", "x", NULL), 0);
    ck_assert_int_eq(rv_json_set_int(obj, "i", -1, NULL), 0);
    ck_assert_int_eq(rv_json_set_bool(obj, "b", true, NULL), 0);
    ck_assert_int_eq(rv_json_set_null(obj, "n", NULL), 0);
    ck_assert_int_eq(rv_json_set_text(obj, "t", NULL, NULL), 0);
    ck_assert_int_eq(rv_json_set_str(obj, "s", (rv_str){"a\0b", 3}, NULL), 0);
    ck_assert_int_eq(rv_json_set_ref(obj, "r", shared, NULL), 0);
    ck_assert_int_eq(rv_json_set_ref(obj, "z", NULL, NULL), 0);
    ck_assert_int_eq(rv_json_push_ref(arr, shared, NULL), 0);
    ck_assert_int_eq(rv_json_push_ref(arr, NULL, NULL), 0);
    ck_assert_int_eq(rv_json_push_take(arr, rv_json_new_double(0.1), NULL), 0);
    ck_assert_int_eq(rv_json_set_take(obj, "arr", arr, NULL), 0);
    json_object_put(shared);
    text = rv_kit_text(obj);
    ck_assert_str_eq(text, "{\"t\":null,\"i\":-1,\"b\":true,\"n\":null,\"s\":\"a\\u0000b\",\"r\":7,\"z\":null,"
                           "\"arr\":[7,null,0.1]}");
    free(text);
    json_object_put(obj);
}
END_TEST

START_TEST(a_failed_constructor_does_not_become_null)
{
    json_object *obj = json_object_new_object(), *arr = json_object_new_array();
    rv_err *err = NULL;

    ck_assert_int_eq(rv_json_set_take(obj, "k", NULL, &err), RV_E_NOMEM);
    ck_assert_int_eq(json_object_object_length(obj), 0);
    ck_assert_int_eq(rv_json_push_take(arr, NULL, NULL), RV_E_NOMEM);
    ck_assert_uint_eq(json_object_array_length(arr), 0);
    rv_err_free(err);
    json_object_put(obj);
    json_object_put(arr);
}
END_TEST

START_TEST(getters_do_not_coerce)
{
    json_object *v =
        rv_kit_json("{'t':'12abc','i':12,'d':1.0,'b':true,'n':null,'u':18446744073709551615,'o':{},'a':[]}");
    const char *text = NULL;
    int64_t i = 0;
    bool b = false;

    ck_assert(rv_json_get_text(v, "t", &text));
    ck_assert_str_eq(text, "12abc");
    ck_assert(!rv_json_get_text(v, "i", &text));
    ck_assert(!rv_json_get_text(v, "n", &text));
    ck_assert(!rv_json_get_text(v, "missing", &text));
    ck_assert(!rv_json_get_text(NULL, "t", &text));
    ck_assert(rv_json_get_int(v, "i", &i));
    ck_assert_int_eq(i, 12);
    ck_assert(!rv_json_get_int(v, "t", &i));
    ck_assert(!rv_json_get_int(v, "d", &i));
    ck_assert(!rv_json_get_int(v, "u", &i)); /* would saturate */
    ck_assert(rv_json_get_bool(v, "b", &b));
    ck_assert(b);
    ck_assert(!rv_json_get_bool(v, "i", &b));
    ck_assert_ptr_nonnull(rv_json_get_obj(v, "o"));
    ck_assert_ptr_null(rv_json_get_obj(v, "a"));
    ck_assert_ptr_nonnull(rv_json_get_arr(v, "a"));
    ck_assert_ptr_null(rv_json_get_arr(v, "n"));
    ck_assert(rv_str_is(rv_json_member_str(v, "t"), "12abc"));
    ck_assert_ptr_null(rv_json_member_str(v, "i").ptr);
    ck_assert_ptr_null(rv_json_member_str(v, "absent").ptr);
    ck_assert_ptr_null(rv_json_member_str(rv_json_get_arr(v, "a"), "t").ptr);
    ck_assert_ptr_null(rv_json_member_str(NULL, "t").ptr);
    json_object_put(v);
}
END_TEST

static const struct {
    const char *json, *type;
    bool is_int, is_number;
} types[] = {
    {"null", "null", false, false},
    {"true", "boolean", false, false},
    {"1", "integer", true, true},
    {"18446744073709551615", "integer", false, true},
    {"-9223372036854775808", "integer", true, true},
    {"1.0", "number", false, true},
    {"''", "string", false, false},
    {"{}", "object", false, false},
    {"[]", "array", false, false},
};

START_TEST(types_have_names)
{
    json_object *v = rv_kit_json(types[_i].json);

    ck_assert_str_eq(rv_json_type_text(v), types[_i].type);
    ck_assert_int_eq(rv_json_is_int(v), types[_i].is_int);
    ck_assert_int_eq(rv_json_is_number(v), types[_i].is_number);
    ck_assert_int_eq(rv_json_is_text(v), strcmp(types[_i].type, "string") == 0);
    if (!json_object_is_type(v, json_type_string))
        ck_assert_uint_eq(rv_json_str(v).len, 0);
    json_object_put(v);
}
END_TEST

TCase *json_tree_case(void)
{
    TCase *tc = tcase_create("json_tree");

    tcase_add_loop_test(tc, equality_is_by_type_and_value, 0, RV_COUNT(pairs));
    tcase_add_test(tc, a_copy_is_equal_separate_and_keeps_number_texts);
    tcase_add_test(tc, setters_build_and_replace_in_place);
    tcase_add_test(tc, a_failed_constructor_does_not_become_null);
    tcase_add_test(tc, getters_do_not_coerce);
    tcase_add_loop_test(tc, types_have_names, 0, RV_COUNT(types));
    return tc;
}
