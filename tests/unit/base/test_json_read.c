#include "coreengine/base/base.h"
#include "tests/kit/kit.h"
#include "tests/unit/base/suites.h"

#include <stdlib.h>
#include <string.h>

#define ROW(text, want)                                                                                                \
    {                                                                                                                  \
        (text), sizeof(text) - 1, (want)                                                                               \
    }

/* What is written again from what was read; numbers keep their text. */
static const struct {
    const char *text;
    size_t len;
    const char *want;
} good[] = {
    ROW("null", "null"),
    ROW(" \t\r\n true \n", "true"),
    ROW("false", "false"),
    ROW("0", "0"),
    ROW("-0", "0"),
    ROW("-0.0", "-0.0"),
    ROW("1E5", "1E5"),
    ROW("1.50", "1.50"),
    ROW("1e-400", "1e-400"), /* a very small number is not out of range: it is next to 0 */
    ROW("0.1000000000000000055511151231257827021181583404541015625",
        "0.1000000000000000055511151231257827021181583404541015625"),
    ROW("0.00000000000000000000000000000000000000000000000000000000000000000000000000000001",
        "0.00000000000000000000000000000000000000000000000000000000000000000000000000000001"),
    ROW("9223372036854775807", "9223372036854775807"),
    ROW("9223372036854775808", "9223372036854775808"),
    ROW("18446744073709551615", "18446744073709551615"),
    ROW("-9223372036854775808", "-9223372036854775808"),
    ROW("\"\"", "\"\""),
    ROW("\"a\\/b\"", "\"a/b\""),
    ROW("\"\\\"\\\\\\b\\f\\n\\r\\t\"", "\"\\\"\\\\\\b\\f\\n\\r\\t\""),
    ROW("\"\\u0041\\u00e9\\u20AC\\ud83d\\uDE00\"", "\"A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\""),
    ROW("\"k\\u0000z\"", "\"k\\u0000z\""), /* a NUL in a value is kept */
    ROW("\"\\u001f\x7f\"", "\"\\u001f\x7f\""),
    ROW("\"\xF4\x8F\xBF\xBF\"", "\"\xF4\x8F\xBF\xBF\""),
    ROW("[]", "[]"),
    ROW("{}", "{}"),
    ROW("[ 1 , [ ] , { } ]", "[1,[],{}]"),
    ROW("{\"\":1}", "{\"\":1}"),
    ROW("{ \"a\" : null , \"b\" : [ true ] }", "{\"a\":null,\"b\":[true]}"),
    ROW("{\"k\\u00e9\":1}", "{\"k\xC3\xA9\":1}"),
    ROW("{\"a\":{\"a\":1}}", "{\"a\":{\"a\":1}}"), /* equal keys in different objects are no duplicates */
};

START_TEST(reads_and_writes_again)
{
    json_object *v = NULL;
    rv_err *err = NULL;
    char *text;
    int rc = rv_json_parse((rv_str){good[_i].text, good[_i].len}, NULL, &v, &err);

    ck_assert_msg(rc == 0, "%s", rv_err_text(err));
    text = rv_kit_text(v);
    ck_assert_str_eq(text, good[_i].want);
    free(text);
    json_object_put(v);
}
END_TEST

/* Each hole of json-c's own tokener, and the rest of the grammar; `want` is the end of the message. */
static const struct {
    const char *text;
    size_t len;
    const char *want;
} bad[] = {
    ROW("{'a':1}", "line 1, column 2: expected a key in double quotes, found a single quote"),
    ROW("['a']", "line 1, column 2: expected a value, found a single quote"),
    ROW("\xEF\xBB\xBF{}", "line 1, column 1: expected a value, found a byte order mark (U+FEFF)"),
    ROW("NaN", "line 1, column 1: expected a value, found 'N'"),
    ROW("nan", "line 1, column 2: expected \"null\", found 'a'"),
    ROW("Infinity", "expected a value, found 'I'"),
    ROW("-Infinity", "line 1, column 2: expected a digit, found 'I'"),
    ROW("[1.]", "line 1, column 4: expected a digit, found ']'"),
    ROW("1.", "expected a digit, found the end of the text"),
    ROW(".5", "expected a value, found '.'"),
    ROW("+1", "expected a value, found '+'"),
    ROW("1e", "expected a digit, found the end of the text"),
    ROW("1e+", "expected a digit, found the end of the text"),
    ROW("-", "expected a digit, found the end of the text"),
    ROW("01", "a number starts with a needless 0"),
    ROW("-01", "a number starts with a needless 0"),
    ROW("0x10", "expected the end of the text, found 'x'"),
    ROW("\"a\nb\"", "line 1, column 3: expected an escape for the control character in the string, found byte 0x0a"),
    ROW("\"\x01\"", "expected an escape for the control character in the string, found byte 0x01"),
    ROW("\"a\0b\"", "expected an escape for the control character in the string, found byte 0x00"),
    ROW("{\"a\":1,\"a\":2}", "line 1, column 8: duplicate key \"a\""),
    ROW("{\"a\":1,\"\\u0061\":2}", "duplicate key \"\\u0061\""),
    ROW("{\"k\\u0000z\":1}", "line 1, column 2: a key holds \\u0000"),
    ROW("\"\\ud800\"", "line 1, column 2: a high surrogate stands alone"),
    ROW("\"\\ud800x\"", "a high surrogate stands alone"),
    ROW("\"\\ud800\\n\"", "a high surrogate stands alone"),
    ROW("\"\\ud800\\ud800\"", "a high surrogate stands alone"),
    ROW("\"\\ude00\"", "a low surrogate stands alone"),
    ROW("\"\\u12g4\"", "expected four hexadecimal digits, found 'g'"),
    ROW("\"\\x41\"", "after a backslash, found 'x'"),
    ROW("\"\\", "expected an escape, found the end of the text"),
    ROW("\"\xC0\x80\"", "a string holds bytes that are not UTF-8"),
    ROW("\"\xED\xA0\x80\"", "a string holds bytes that are not UTF-8"),
    ROW("\"\xF4\x90\x80\x80\"", "a string holds bytes that are not UTF-8"),
    ROW("\"\xFF\"", "a string holds bytes that are not UTF-8"),
    ROW("\"\xE2\x82", "a string holds bytes that are not UTF-8"),
    ROW("1e400", "the number is out of range"),
    ROW("[-1e400]", "line 1, column 2: the number is out of range"),
    ROW("{} x", "line 1, column 4: expected the end of the text, found 'x'"),
    ROW("{}\0", "expected the end of the text, found byte 0x00"),
    ROW("{}\0junk", "expected the end of the text, found byte 0x00"),
    ROW("1 2", "expected the end of the text, found '2'"),
    ROW("", "expected a value, found the end of the text"),
    ROW("  ", "line 1, column 3: expected a value, found the end of the text"),
    ROW("[1,]", "line 1, column 4: expected a value, found ']'"),
    ROW("[,1]", "expected a value, found ','"),
    ROW("[1 2]", "expected ',' or ']', found '2'"),
    ROW("[1", "expected ',' or ']', found the end of the text"),
    ROW("{\"a\":1,}", "expected a key in double quotes, found '}'"),
    ROW("{\"a\" 1}", "expected ':' after the key, found '1'"),
    ROW("{\"a\":}", "expected a value, found '}'"),
    ROW("{\"a\":1", "expected ',' or '}', found the end of the text"),
    ROW("{a:1}", "expected a key in double quotes, found 'a'"),
    ROW("[1}", "expected ',' or ']', found '}'"),
    ROW("/* c */ 1", "expected a value, found '/'"),
    ROW("[1]\n// c", "line 2, column 1: expected the end of the text, found '/'"),
    ROW("tru", "expected \"true\", found the end of the text"),
    ROW("True", "expected a value, found 'T'"),
    ROW("nulll", "expected the end of the text, found 'l'"),
    ROW("[\f1]", "expected a value, found byte 0x0c"),
    ROW("[\xC2\xA0"
        "1]",
        "expected a value, found '\xC2\xA0'"),
    ROW("{\n  \"\xC3\xA9\xC3\xA9\": x\n}",
        "line 2, column 9: expected a value, found 'x'"), /* columns are characters */
};

START_TEST(refuses_what_is_not_json)
{
    json_object *v = NULL;
    rv_err *err = NULL;
    const char *text;
    size_t len = strlen(bad[_i].want);

    ck_assert_int_eq(rv_json_parse((rv_str){bad[_i].text, bad[_i].len}, NULL, &v, &err), RV_E_PARSE);
    ck_assert_ptr_null(v);
    text = rv_err_text(err);
    ck_assert_msg(strncmp(text, "JSON: line ", 11) == 0, "%s", text);
    ck_assert_msg(strlen(text) >= len && strcmp(text + strlen(text) - len, bad[_i].want) == 0, "got: %s", text);
    rv_err_free(err);
}
END_TEST

START_TEST(a_duplicate_key_may_win_over_the_first)
{
    const struct rv_json_opts opts = {.allow_duplicates = true};
    json_object *v = NULL;
    char *text;

    ck_assert_int_eq(rv_json_parse(RV_STR_LIT("{\"a\":[1],\"b\":0,\"a\":{\"c\":2},\"a\":3}"), &opts, &v, NULL), 0);
    text = rv_kit_text(v);
    ck_assert_str_eq(text, "{\"a\":3,\"b\":0}");
    free(text);
    json_object_put(v);
}
END_TEST

START_TEST(a_caller_may_refuse_integers_above_64_bits)
{
    static const char *const texts[] = {"18446744073709551616", "-9223372036854775809", "[1,99999999999999999999999]"};
    const struct rv_json_opts opts = {.refuse_big_ints = true};
    rv_err *err = NULL;
    json_object *v = NULL;

    ck_assert_int_eq(rv_json_parse(rv_str_of(texts[_i]), &opts, &v, &err), RV_E_PARSE);
    ck_assert_ptr_nonnull(strstr(rv_err_text(err), "the integer does not fit 64 bits"));
    rv_err_free(err);
}
END_TEST

static char *nested(size_t depth, bool objects)
{
    rv_buf b = RV_BUF_INIT(1 << 24);
    size_t i;

    for (i = 0; i < depth; i++)
        rv_buf_puts(&b, objects ? "{\"a\":" : "[");
    rv_buf_puts(&b, "1");
    for (i = 0; i < depth; i++)
        rv_buf_putc(&b, objects ? '}' : ']');
    return rv_buf_steal(&b, NULL);
}

static const struct {
    int max_depth;
    size_t depth;
    bool objects;
    int rc;
} depths[] = {
    {32, 32, false, 0},
    {32, 33, false, RV_E_LIMIT},
    {32, 32, true, 0},
    {32, 33, true, RV_E_LIMIT},
    {0, 256, false, 0},
    {0, 257, false, RV_E_LIMIT},
    {1, 1, true, 0},
    {1, 2, false, RV_E_LIMIT},
    {1, 0, false, 0},
    {0, 1000000, false, RV_E_LIMIT},
    {0, 1000000, true, RV_E_LIMIT},
};

START_TEST(the_depth_limit_counts_exactly)
{
    const struct rv_json_opts opts = {.max_depth = depths[_i].max_depth};
    char *text = nested(depths[_i].depth, depths[_i].objects);
    json_object *v = NULL;

    rv_err *err = NULL;
    ck_assert_int_eq(rv_json_parse(rv_str_of(text), &opts, &v, &err), depths[_i].rc);
    if (depths[_i].rc < 0) {
        char limit[64];
        snprintf(limit, sizeof limit, "the limit is %d levels",
                 opts.max_depth > 0 ? opts.max_depth : RV_JSON_MAX_DEPTH);
        ck_assert_msg(rv_err_hint_text(err) && strstr(rv_err_hint_text(err), limit), "%s", rv_err_hint_text(err));
    }
    rv_err_free(err);
    json_object_put(v);
    free(text);
}
END_TEST

START_TEST(size_limits_name_the_text)
{
    const struct rv_json_opts opts = {.max_bytes = 4, .what = "tool result"};
    json_object *v = NULL;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_json_parse(RV_STR_LIT("[12]"), &opts, &v, NULL), 0);
    json_object_put(v);
    ck_assert_int_eq(rv_json_parse(RV_STR_LIT("[123]"), &opts, &v, &err), RV_E_LIMIT);
    ck_assert_str_eq(rv_err_text(err), "tool result is 5 bytes long, allowed are 4");
    rv_err_free(err);
    err = NULL;
    ck_assert_int_eq(rv_json_parse(RV_STR_LIT("[1"), &opts, &v, &err), RV_E_PARSE);
    ck_assert_str_eq(rv_err_text(err), "tool result: line 1, column 3: expected ',' or ']', found the end of the text");
    rv_err_free(err);
}
END_TEST

START_TEST(small_text_cannot_make_a_giant_tree)
{
    rv_buf b = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    json_object *v = NULL;
    rv_err *err = NULL;

    rv_buf_putc(&b, '[');
    while (b.len < RV_JSON_MAX_BYTES - 8)
        rv_buf_puts(&b, "{},");
    rv_buf_puts(&b, "0]");
    ck_assert_int_eq(rv_json_parse(rv_buf_str(&b), NULL, &v, &err), RV_E_LIMIT);
    ck_assert_ptr_nonnull(strstr(rv_err_text(err), "too many values"));
    rv_err_free(err);
    rv_buf_fini(&b);
}
END_TEST

START_TEST(long_strings_with_escapes_anywhere_are_exact)
{
    rv_buf in = RV_BUF_INIT(1 << 16), want = RV_BUF_INIT(1 << 16);
    json_object *v = NULL;
    int i;

    rv_buf_putc(&in, '"');
    for (i = 0; i < 2000; i++) { /* each phase of the vector steps meets each kind of byte */
        rv_buf_printf(&in, "%.*s", i % 11, "abcdefghijk");
        rv_buf_printf(&want, "%.*s", i % 11, "abcdefghijk");
        rv_buf_puts(&in, i % 3 == 0 ? "\\n" : i % 3 == 1 ? "\xC3\xA9" : "\\u00e9");
        rv_buf_puts(&want, i % 3 == 0 ? "\n" : "\xC3\xA9");
    }
    rv_buf_putc(&in, '"');
    ck_assert_int_eq(rv_json_parse(rv_buf_str(&in), NULL, &v, NULL), 0);
    ck_assert(rv_str_eq(rv_json_str(v), rv_buf_str(&want)));
    json_object_put(v);
    rv_buf_fini(&in);
    rv_buf_fini(&want);
}
END_TEST

/* Text that may be something else: only what can be read gives a tree, and the rest is not an error. */
START_TEST(text_that_is_not_json_is_nothing)
{
    static const struct {
        const char *text;
        bool is_there;
    } rows[] = {{"{\"a\":1}", true}, {" 7 ", true}, {"null", false}, {"{", false}, {"", false}, {"[1,2,3,4,5]", false}};
    const struct rv_json_opts opts = {.max_bytes = 8};
    rv_err *err = NULL;

    for (size_t i = 0; i < RV_COUNT(rows); i++) {
        json_object *value = (json_object *)1;
        ck_assert_int_eq(rv_json_try_parse(rv_str_of(rows[i].text), &opts, &value, &err), 0);
        ck_assert_msg((value != NULL) == rows[i].is_there, "%s", rows[i].text);
        ck_assert_ptr_null(err);
        json_object_put(value);
    }
}
END_TEST

TCase *json_read_case(void)
{
    TCase *tc = tcase_create("json_read");

    tcase_add_loop_test(tc, reads_and_writes_again, 0, RV_COUNT(good));
    tcase_add_loop_test(tc, refuses_what_is_not_json, 0, RV_COUNT(bad));
    tcase_add_test(tc, a_duplicate_key_may_win_over_the_first);
    tcase_add_loop_test(tc, a_caller_may_refuse_integers_above_64_bits, 0, 3);
    tcase_add_loop_test(tc, the_depth_limit_counts_exactly, 0, RV_COUNT(depths));
    tcase_add_test(tc, size_limits_name_the_text);
    tcase_add_test(tc, small_text_cannot_make_a_giant_tree);
    tcase_add_test(tc, long_strings_with_escapes_anywhere_are_exact);
    tcase_add_test(tc, text_that_is_not_json_is_nothing);
    return tc;
}
