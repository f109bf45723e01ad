#include "coreengine/base/base.h"
#include "tests/kit/kit.h"
#include "tests/unit/base/suites.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

START_TEST(the_cursor_places_commas)
{
    rv_buf b = RV_BUF_INIT(4096);
    rv_jw w = rv_jw_on(&b);
    json_object *v = rv_kit_json("{'x':[1,2]}");

    rv_jw_obj(&w);
    rv_jw_kv_text(&w, "a", "x");
    rv_jw_kv_text(&w, "none", NULL);
    rv_jw_kv_int(&w, "i", INT64_MIN);
    rv_jw_kv_bool(&w, "b", true);
    rv_jw_key_str(&w, RV_STR_LIT("k\""));
    rv_jw_arr(&w);
    rv_jw_int(&w, 0);
    rv_jw_obj(&w);
    rv_jw_obj_end(&w);
    rv_jw_arr(&w);
    rv_jw_arr_end(&w);
    rv_jw_double(&w, 0.5);
    rv_jw_null(&w);
    rv_jw_bool(&w, false);
    rv_jw_str(&w, (rv_str){"\0z", 2});
    rv_jw_arr_end(&w);
    rv_jw_kv_value(&w, "v", v);
    rv_jw_key(&w, "raw");
    rv_jw_raw(&w, RV_STR_LIT("{\"r\":1}"));
    rv_jw_kv_str(&w, "s", RV_STR_LIT("t"));
    rv_jw_obj_end(&w);
    ck_assert_int_eq(rv_buf_check(&b, "x", NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&b),
                     "{\"a\":\"x\",\"none\":null,\"i\":-9223372036854775808,\"b\":true,\"k\\\"\":"
                     "[0,{},[],0.5,null,false,\"\\u0000z\"],\"v\":{\"x\":[1,2]},\"raw\":{\"r\":1},\"s\":\"t\"}");
    json_object_put(v);
    rv_buf_fini(&b);
}
END_TEST

static const struct {
    int64_t i;
    const char *want;
} ints[] = {
    {0, "0"},
    {9, "9"},
    {10, "10"},
    {99, "99"},
    {100, "100"},
    {-1, "-1"},
    {-100, "-100"},
    {1234567, "1234567"},
    {INT64_MAX, "9223372036854775807"},
    {INT64_MIN, "-9223372036854775808"},
};

START_TEST(integers_are_exact)
{
    rv_buf b = RV_BUF_INIT(64);
    rv_jw w = rv_jw_on(&b);

    rv_jw_int(&w, ints[_i].i);
    ck_assert_str_eq(rv_buf_cstr(&b), ints[_i].want);
    rv_buf_fini(&b);
}
END_TEST

static const struct {
    double d;
    const char *want; /* NULL: refused */
} doubles[] = {
    {0.1, "0.1"},
    {1.0, "1.0"},
    {-0.0, "-0.0"},
    {1e21, "1e+21"},
    {100000.0, "100000.0"},
    {1.0 / 3.0, "0.3333333333333333"},
    {0.1 + 0.2, "0.30000000000000004"},
    {5e-324, "4.94065645841247e-324"},
    {1.7976931348623157e308, "1.7976931348623157e+308"},
    {123456789012345680.0, "1.2345678901234568e+17"},
    {NAN, NULL},
    {INFINITY, NULL},
    {-INFINITY, NULL},
};

START_TEST(doubles_are_short_and_read_back)
{
    rv_buf b = RV_BUF_INIT(64);
    rv_jw w = rv_jw_on(&b);
    json_object *node;

    rv_jw_double(&w, doubles[_i].d);
    node = json_object_new_double(doubles[_i].d); /* a node without a text of its own */
    if (!doubles[_i].want) {
        ck_assert_int_eq(rv_buf_check(&b, "x", NULL), RV_E_INVALID);
        ck_assert_ptr_null(rv_json_new_double(doubles[_i].d));
        rv_buf_clear(&b);
        rv_json_write(node, &b);
        ck_assert_int_eq(rv_buf_check(&b, "x", NULL), RV_E_INVALID);
    } else {
        ck_assert_str_eq(rv_buf_cstr(&b), doubles[_i].want);
        ck_assert(strtod(rv_buf_cstr(&b), NULL) == doubles[_i].d);
        rv_buf_clear(&b);
        rv_json_write(node, &b);
        ck_assert_str_eq(rv_buf_cstr(&b), doubles[_i].want);
    }
    json_object_put(node);
    rv_buf_fini(&b);
}
END_TEST

START_TEST(broken_utf8_is_refused_and_sticks)
{
    static const char *const broken[] = {"\xFF", "abcdefghij\xC0\x80", "\xED\xA0\x80", "x\xE2\x82", "\"\x80"};
    rv_buf b = RV_BUF_INIT(4096);
    rv_jw w = rv_jw_on(&b);
    rv_err *err = NULL;

    rv_jw_text(&w, broken[_i]);
    rv_jw_text(&w, "fine");
    ck_assert_int_eq(rv_buf_check(&b, "reply", &err), RV_E_INVALID);
    ck_assert_ptr_nonnull(strstr(rv_err_text(err), "reply holds text that is not UTF-8"));
    rv_err_free(err);
    rv_buf_fini(&b);
}
END_TEST

START_TEST(every_ascii_byte_is_escaped_as_json_wants)
{
    char text[128];
    rv_buf b = RV_BUF_INIT(4096);
    rv_jw w = rv_jw_on(&b);
    json_object *v = NULL;
    int i;

    for (i = 0; i < 128; i++)
        text[i] = (char)i;
    rv_jw_str(&w, (rv_str){text, sizeof text});
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&b), "\\u0007\\b\\t\\n\\u000b\\f\\r\\u000e"));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&b), "-./0"));
    ck_assert_int_eq(rv_json_parse(rv_buf_str(&b), NULL, &v, NULL), 0);
    ck_assert(rv_str_eq(rv_json_str(v), (rv_str){text, sizeof text}));
    json_object_put(v);
    rv_buf_fini(&b);
}
END_TEST

/* A text that could not be written is not written as a shorter one. */
START_TEST(the_failure_of_a_part_becomes_that_of_the_whole)
{
    rv_buf part = RV_BUF_INIT(4), out = RV_BUF_INIT(100);
    rv_jw w = rv_jw_on(&out);
    struct rv_json_build b = {NULL, 0};
    json_object *tree = json_object_new_object();

    rv_buf_puts(&part, "abcd");
    rv_jw_obj(&w);
    rv_jw_kv_buf(&w, "k", &part);
    rv_json_build_buf(&b, tree, "k", &part);
    ck_assert_int_eq(b.rc, 0);
    ck_assert_str_eq(rv_json_text_or(tree, "k", ""), "abcd");
    rv_buf_puts(&part, "e");
    rv_jw_kv_buf(&w, "more", &part);
    rv_jw_obj_end(&w);
    ck_assert_int_eq(rv_buf_check(&out, "it", NULL), RV_E_LIMIT);
    ck_assert_str_eq(rv_buf_cstr(&out), "{\"k\":\"abcd\",\"more\":");
    rv_json_build_buf(&b, tree, "k", &part);
    ck_assert_int_eq(b.rc, RV_E_LIMIT);
    rv_buf_clear(&out);
    rv_buf_add_buf(&out, &part);
    ck_assert_int_eq(out.rc, RV_E_LIMIT);
    ck_assert_uint_eq(out.len, 0);
    json_object_put(tree);
    rv_buf_fini(&part);
    rv_buf_fini(&out);
}
END_TEST

START_TEST(pretty_text_is_indented_by_two)
{
    json_object *v = rv_kit_json("{'a':[1,{'b':[]}],'c':{},'d':'x'}");
    rv_buf b = RV_BUF_INIT(4096);

    rv_json_write_pretty(v, &b);
    ck_assert_str_eq(rv_buf_cstr(&b), "{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    }\n  ],\n  \"c\": {},\n"
                                      "  \"d\": \"x\"\n}");
    rv_buf_fini(&b);
    json_object_put(v);
}
END_TEST

START_TEST(numbers_ignore_the_locale)
{
    json_object *v;
    char *text;

    /* Any of these has a decimal comma; where none is installed there is nothing to ignore. */
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8") && !setlocale(LC_ALL, "de_DE"))
        return;
    v = rv_kit_json("[1.25]");
    ck_assert(json_object_get_double(json_object_array_get_idx(v, 0)) == 1.25);
    json_object_put(v);
    v = json_object_new_double(2.5);
    text = rv_kit_text(v);
    ck_assert_str_eq(text, "2.5");
    free(text);
    json_object_put(v);
}
END_TEST

TCase *json_write_case(void)
{
    TCase *tc = tcase_create("json_write");

    tcase_add_test(tc, the_cursor_places_commas);
    tcase_add_loop_test(tc, integers_are_exact, 0, RV_COUNT(ints));
    tcase_add_loop_test(tc, doubles_are_short_and_read_back, 0, RV_COUNT(doubles));
    tcase_add_loop_test(tc, broken_utf8_is_refused_and_sticks, 0, 5);
    tcase_add_test(tc, every_ascii_byte_is_escaped_as_json_wants);
    tcase_add_test(tc, the_failure_of_a_part_becomes_that_of_the_whole);
    tcase_add_test(tc, pretty_text_is_indented_by_two);
    tcase_add_test(tc, numbers_ignore_the_locale);
    return tc;
}
