/* What expressions give: one row, one expression over the sample below. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/lang/lang.h"
#include "expr_suites.h"
#include "tests/kit/kit.h"

static const char sample[] = "{'output': {'confidence': 0.3, 'verdict': 'loop_back', 'n': 3, 'none': null, 'empty': {},"
                             "            'steps': [{'tool': 'a', 'ok': true}, {'tool': 'b', 'ok': false}]},"
                             " 'i': 7, 'neg': -7, 'd': 7.0, 'half': 0.5, 's': 'h\\u00e9llo', 't': true, 'nul': null,"
                             " 'l': [1, 2, 3], 'mixed': [1, 'a', null, 2.5], 'big': 18446744073709551615,"
                             " 'max': 9223372036854775807, 'min': -9223372036854775808,"
                             " 'm': {'a': 1, 'b': 2, 'with-dash': 3}, 'e': []}";

#define NONE NULL, 0
/* clang-format off */
static const struct {
    const char *expr;
    const char *want; /* compact JSON; NULL: fails */
    int rc;           /* then with this */
} rows[] = {
    /* literals */
    {"1", "1", 0}, {"-1", "-1", 0}, {"0x1F", "31", 0}, {"-0x10", "-16", 0}, {"7u", "7", 0}, {"0xffu", "255", 0},
    {"18446744073709551615u", "18446744073709551615", 0}, {"-9223372036854775808", "-9223372036854775808", 0},
    {"1.5", "1.5", 0}, {".5", "0.5", 0}, {"1e3", "1000.0", 0}, {"-2.5e-1", "-0.25", 0}, {"true", "true", 0},
    {"false", "false", 0}, {"null", "null", 0}, {"[]", "[]", 0}, {"{}", "{}", 0},
    {"[1, 'a', [true],]", "[1,\"a\",[true]]", 0}, {"{'a': 1, 'b': {'c': null},}", "{\"a\":1,\"b\":{\"c\":null}}", 0},
    {"{1: 'x', 2u: 'y', true: 'z'}", "{\"1\":\"x\",\"2\":\"y\",\"true\":\"z\"}", 0}, {"'a' // a comment", "\"a\"", 0},
    {"// first\n 1", "1", 0},
    /* strings */
    {"'it''s'", NULL, RV_E_PARSE}, {"\"a\\tb\"", "\"a\\tb\"", 0}, {"'\\''", "\"'\"", 0},
    {"'\\x41\\u00e9\\U0001F600'", "\"A\xc3\xa9\xf0\x9f\x98\x80\"", 0}, {"'\\101'", "\"A\"", 0},
    {"r'a\\n'", "\"a\\\\n\"", 0}, {"R\"\\\"", "\"\\\\\"", 0}, {"'''a'b\n'''", "\"a'b\\n\"", 0},
    {"\"\"\"a\"\"b\"\"\"", "\"a\\\"\\\"b\"", 0}, {"r'''\\'''", "\"\\\\\"", 0},
    {"'\\a\\b\\f\\n\\r\\t\\v\\\\\\?\\`'", "\"\\u0007\\b\\f\\n\\r\\t\\u000b\\\\?`\"", 0},
    /* arithmetic */
    {"1 + 2 * 3", "7", 0}, {"(1 + 2) * 3", "9", 0}, {"7 / 2", "3", 0}, {"-7 / 2", "-3", 0}, {"7 % 3", "1", 0},
    {"-7 % 3", "-1", 0}, {"10 - 4 - 3", "3", 0}, {"100 / 10 / 5", "2", 0}, {"2.0 * 3.5", "7.0", 0},
    {"5u - 3u", "2", 0}, {"7u / 2u", "3", 0}, {"7u % 4u", "3", 0}, {"'a' + 'b'", "\"ab\"", 0},
    {"[1] + [2, 3]", "[1,2,3]", 0}, {"l + e", "[1,2,3]", 0}, {"--5", "5", 0}, {"-i", "-7", 0}, {"-d", "-7.0", 0},
    {"1 - -1", "2", 0}, {"i+1", "8", 0}, {"i-1", "6", 0}, {"max + 1", NONE}, {"min - 1", NONE}, {"max * 2", NONE},
    {"-min", NONE}, {"min / -1", NONE}, {"min % -1", NONE}, {"0u - 1u", NONE}, {"18446744073709551615u + 1u", NONE},
    {"18446744073709551615u * 2u", NONE}, {"1 / 0", NONE}, {"1 % 0", NONE}, {"1u / 0u", NONE}, {"1u % 0u", NONE},
    {"1.0 / 0.0 > 1.0", "true", 0}, {"i + d", NONE}, {"i + 1u", NONE}, {"s + i", NONE}, {"t + t", NONE},
    {"m + m", NONE}, {"d % d", NONE}, {"-s", NONE}, {"-(1u)", NULL, RV_E_INVALID}, {"0.0 / 0.0", NONE},
    {"1.0 / 0.0", NONE},
    /* equality: by value across numbers, false across other types */
    {"1 == 1.0", "true", 0}, {"1u == 1", "true", 0}, {"i == d", "true", 0}, {"i != d", "false", 0},
    {"1 == '1'", "false", 0}, {"null == null", "true", 0}, {"nul == null", "true", 0}, {"0 == null", "false", 0},
    {"false == 0", "false", 0}, {"'' == null", "false", 0}, {"[1, 2.0] == [1.0, 2]", "true", 0},
    {"[1] == [1, 2]", "false", 0}, {"{'a': 1} == {'a': 1.0}", "true", 0}, {"{'a': 1} == {'b': 1}", "false", 0},
    {"{1: 2} == {1.0 == 1 ? 1u : 1u: 2}", "true", 0}, {"l == [1, 2, 3]", "true", 0},
    {"m == {'b': 2, 'a': 1, 'with-dash': 3}", "true", 0}, {"0.0 / 0.0 == 0.0 / 0.0", "false", 0},
    {"0.0 / 0.0 != 0.0 / 0.0", "true", 0}, {"big == 18446744073709551615u", "true", 0},
    {"9007199254740993 == 9007199254740992.0", "false", 0}, {"output == output", "true", 0}, {"t == true", "true", 0},
    /* order */
    {"1 < 2", "true", 0}, {"1 < 1.5", "true", 0}, {"2u > 1.5", "true", 0}, {"-1 < 1u", "true", 0},
    {"1u > -1", "true", 0}, {"2 <= 2u", "true", 0}, {"9007199254740993 > 9007199254740992.0", "true", 0},
    {"max < big", "true", 0}, {"big > max", "true", 0}, {"max < 1e19", "true", 0}, {"min > -1e19", "true", 0},
    {"-1 < -0.5", "true", 0}, {"-0.5 < -1", "false", 0}, {"'a' < 'b'", "true", 0}, {"'a' < 'ab'", "true", 0},
    {"'b' > 'ab'", "true", 0}, {"'Z' < 'a'", "true", 0}, {"false < true", "true", 0}, {"0.0 / 0.0 < 1.0", "false", 0},
    {"0.0 / 0.0 >= 1.0", "false", 0}, {"s < i", NONE}, {"nul < 1", NONE}, {"l < l", NONE}, {"t < 1", NONE},
    {"output.confidence < 0.5", "true", 0}, {"output.confidence >= half", "false", 0},
    /* logic: one side that decides is enough */
    {"true && false", "false", 0}, {"true || false", "true", 0}, {"!t", "false", 0}, {"!!t", "true", 0}, {"!i", NONE},
    {"1 / 0 == 1 || true", "true", 0}, {"true || 1 / 0 == 1", "true", 0}, {"1 / 0 == 1 && false", "false", 0},
    {"false && missing.x", "false", 0}, {"1 / 0 == 1 || false", NONE}, {"1 / 0 == 1 && true", NONE},
    {"i || true", "true", 0}, {"true || i", "true", 0}, {"i && true", NONE}, {"i || false", NONE},
    {"output.nope == 1 || output.verdict == 'loop_back'", "true", 0}, {"t && t && t && !t", "false", 0},
    {"false || false || t", "true", 0}, {"true ? 1 : 'a'", "1", 0}, {"false ? 1 / 0 : 2", "2", 0},
    {"t ? 1 : t ? 2 : 3", "1", 0}, {"false ? 1 : false ? 2 : 3", "3", 0}, {"i ? 1 : 2", NONE},
    /* members, elements, has, in */
    {"output.steps[0].tool", "\"a\"", 0}, {"output[\"verdict\"]", "\"loop_back\"", 0}, {"m['with-dash']", "3", 0},
    {"l[2]", "3", 0}, {"l[2u]", "3", 0}, {"l[2.0]", "3", 0}, {"l[1.5]", NULL, RV_E_NOT_FOUND},
    {"l[3]", NULL, RV_E_NOT_FOUND}, {"l[-1]", NULL, RV_E_NOT_FOUND}, {"l['a']", NONE}, {"m[0]", NULL, RV_E_NOT_FOUND},
    {"m[nul]", NONE}, {"m.c", NULL, RV_E_NOT_FOUND}, {"nope", NULL, RV_E_NOT_FOUND}, {"nope.x", NULL, RV_E_NOT_FOUND},
    {"i.x", NONE}, {"nul.x", NONE}, {"output.n.x", NONE}, {"output.none", "null", 0}, {"{1: 'a'}[1.0]", "\"a\"", 0},
    {"{true: 'a'}[true]", "\"a\"", 0}, {"{'a': {'b': 5}}.a.b", "5", 0}, {"[[1, 2], [3]][0][1]", "2", 0},
    {"s[0]", NONE}, {"has(output.verdict)", "true", 0}, {"has(output.nope)", "false", 0},
    {"has(output.none)", "true", 0}, {"has(output.empty.x)", "false", 0}, {"has(output.n.x)", NONE},
    {"has({'a': 1}.a)", "true", 0}, {"has(m.a) && m.a == 1", "true", 0}, {"has(nope.a)", "false", 0},
    {"2 in l", "true", 0}, {"2.0 in l", "true", 0}, {"4 in l", "false", 0}, {"'a' in l", "false", 0},
    {"'a' in m", "true", 0}, {"1 in m", "false", 0}, {"null in mixed", "true", 0}, {"1 in {1u: 2}", "true", 0},
    {"'a' in s", NONE}, {"1 in []", "false", 0}, {"[1] in [[1]]", "true", 0}, {"'a\\x00' in m", "false", 0},
    /* functions */
    {"size(s)", "5", 0}, {"s.size()", "5", 0}, {"size(l) + size(m)", "6", 0}, {"size({})", "0", 0},
    {"''.size()", "0", 0}, {"size(i)", NONE}, {"s.contains('ll')", "true", 0}, {"s.contains('')", "true", 0},
    {"s.contains('lx')", "false", 0}, {"s.startsWith('h\\u00e9')", "true", 0}, {"s.endsWith('lo')", "true", 0},
    {"'a'.startsWith('ab')", "false", 0}, {"'a'.endsWith('ba')", "false", 0}, {"s.contains(i)", NONE},
    {"i.contains('a')", NONE}, {"int('42')", "42", 0}, {"int('-42')", "-42", 0}, {"int(3.99)", "3", 0},
    {"int(-3.99)", "-3", 0}, {"int(3u)", "3", 0}, {"int(i)", "7", 0}, {"int('4.2')", NONE}, {"int('')", NONE},
    {"int(' 1')", NONE}, {"int('0x1')", NONE}, {"int('9223372036854775808')", NONE}, {"int(1e19)", NONE},
    {"int(big)", NONE}, {"int(t)", NONE}, {"int(0.0 / 0.0)", NONE}, {"uint(7)", "7", 0}, {"uint('7')", "7", 0},
    {"uint(7.9)", "7", 0}, {"uint(-1)", NONE}, {"uint(-0.5)", "0", 0}, {"uint('-1')", NONE},
    {"uint('18446744073709551616')", NONE}, {"uint(1e20)", NONE}, {"double(3)", "3.0", 0},
    {"double('2.5')", "2.5", 0}, {"double('1e2')", "100.0", 0}, {"double(3u)", "3.0", 0},
    {"double('inf') > 1.0", "true", 0}, {"double('nan') == 1.0", "false", 0}, {"double('x')", NONE},
    {"double('')", NONE}, {"double('0x1p3')", NONE}, {"double(' 1')", NONE}, {"double('1.2.3')", NONE},
    {"double('1\\x00')", NONE}, {"double(i) + half", "7.5", 0}, {"string(1)", "\"1\"", 0}, {"string(7u)", "\"7\"", 0},
    {"string(true)", "\"true\"", 0}, {"string(0.1)", "\"0.1\"", 0}, {"string(-4.5e-3)", "\"-0.0045\"", 0},
    {"string('x')", "\"x\"", 0}, {"string(l)", NONE}, {"string(0.1 + 0.2)", "\"0.30000000000000004\"", 0},
    {"bool('true')", "true", 0}, {"bool('f')", "false", 0}, {"bool('F')", NONE}, {"bool(t)", "true", 0},
    {"bool('yes')", NONE}, {"bool(i)", NONE}, {"type(1)", "\"int\"", 0}, {"type(1u) == uint", "true", 0},
    {"type(d) == double", "true", 0}, {"type(nul) == null_type", "true", 0},
    {"type(l) == list && type(m) == map", "true", 0}, {"type(s) == string && type(t) == bool", "true", 0},
    {"type(type(1)) == type", "true", 0}, {"type(1) == type('a')", "false", 0}, {"dyn(1) + 1", "2", 0},
    {"dyn(1) + 'a'", NONE},
    /* macros */
    {"l.all(x, x > 0)", "true", 0}, {"l.all(x, x > 1)", "false", 0}, {"e.all(x, false)", "true", 0},
    {"l.exists(x, x == 2)", "true", 0}, {"e.exists(x, true)", "false", 0}, {"l.exists_one(x, x > 2)", "true", 0},
    {"l.exists_one(x, x > 1)", "false", 0}, {"e.exists_one(x, true)", "false", 0},
    {"l.filter(x, x % 2 == 1)", "[1,3]", 0}, {"l.map(x, x * x)", "[1,4,9]", 0},
    {"l.map(x, x > 1, x * 10)", "[20,30]", 0}, {"e.map(x, x)", "[]", 0}, {"m.all(k, k != 'c')", "true", 0},
    {"m.map(k, k)", "[\"a\",\"b\",\"with-dash\"]", 0}, {"m.filter(k, m[k] > 1)", "[\"b\",\"with-dash\"]", 0},
    {"{3: 4}.map(k, k)", "[3]", 0}, {"l.exists(x, 1 / (x - 2) == 1)", "true", 0},
    {"l.all(x, 1 / (x - 2) == 7)", "false", 0}, {"l.exists(x, 1 / (x - 2) == 9)", NONE},
    {"l.exists_one(x, 1 / (x - 2) == 1)", NONE}, {"l.filter(x, 1 / (x - 2) == 1)", NONE}, {"l.all(x, x)", NONE},
    {"l.filter(x, x)", NONE}, {"i.all(x, true)", NONE}, {"s.map(x, x)", NONE},
    {"output.steps.exists(s, s.tool == 'b' && !s.ok)", "true", 0},
    {"l.map(x, l.map(y, x * y))", "[[1,2,3],[2,4,6],[3,6,9]]", 0}, {"l.map(l, l)", "[1,2,3]", 0},
    {"l.map(x, l.filter(x, x > 2))", "[[3],[3],[3]]", 0},
    {"output.steps.filter(s, s.ok).map(s, s.tool)", "[\"a\"]", 0}, {"l.map(x, [x])[1][0]", "2", 0},
    {"size(l.filter(x, x > 1)) == 2", "true", 0},
    /* results that JSON can not hold */
    {"{1: 'a', '1': 'b'}", NONE}, {"{'a\\x00b': 1}", NONE}, {"{'a': 1, 'a': 2}", NONE}, {"{1: 1, 1u: 2}", NONE},
};
/* clang-format on */

START_TEST(evaluates_to_the_documented_value)
{
    json_object *vars = rv_kit_json(sample), *result = NULL;
    struct rv_scope scope = rv_scope_of_object(vars);
    rv_expr *e = NULL;
    rv_err *err = NULL;
    char *text;
    int rc = rv_expr_compile(rv_str_of(rows[_i].expr), NULL, NULL, 0, &e, &err);

    if (rc == 0)
        rc = rv_expr_eval(e, &scope, &result, &err);
    if (rows[_i].want) {
        ck_assert_msg(rc == 0, "%s: %s", rows[_i].expr, rv_err_text(err));
        text = rv_kit_text(result);
        ck_assert_msg(strcmp(text, rows[_i].want) == 0, "%s gave %s, not %s", rows[_i].expr, text, rows[_i].want);
        free(text);
    } else {
        ck_assert_msg(rc == (rows[_i].rc ? rows[_i].rc : RV_E_INVALID), "%s gave %d %s", rows[_i].expr, rc,
                      rv_err_text(err));
        ck_assert_msg(rv_err_src(err).line > 0, "%s: no place", rows[_i].expr);
        ck_assert_ptr_null(result);
    }
    rv_err_free(err);
    json_object_put(result);
    rv_expr_free(e);
    json_object_put(vars);
}
END_TEST

/* Messages of failures that only show with values. */
static const struct {
    const char *expr, *want;
} failures[] = {
    {"output.confdence < 0.5", "no such key \"confdence\" in \"output\"  [not_found]  (p.yaml:3:12)\n"
                               "  hint: did you mean \"confidence\"?\n"},
    {"output.steps[0].tol == 'a'", "no such key \"tol\"  [not_found]  (p.yaml:3:21)\n  hint: did you mean \"tool\"?\n"},
    {"true &&\n  nope", "variable \"nope\" has no value here  [not_found]  (p.yaml:4:3)\n"},
    {"i.x == 1", "\"i\" is of type int and has no member \"x\"  [invalid_argument]  (p.yaml:3:7)\n"},
    {"i + half", "no such overload: \"+\" does not take int and double  [invalid_argument]  (p.yaml:3:7)\n"
                 "  hint: numbers are not converted by themselves: write int(x), uint(x) or double(x)\n"},
    {"s > 1", "no such overload: \">\" does not take string and int  [invalid_argument]  (p.yaml:3:7)\n"},
    {"l[7]", "no element 7 in a list of 3  [not_found]  (p.yaml:3:6)\n"},
    {"int(s)", "\"h\xc3\xa9llo\" can not become an int  [invalid_argument]  (p.yaml:3:5)\n"},
    {"max + 1", "integer overflow in \"+\"  [invalid_argument]  (p.yaml:3:9)\n"},
    {"'\xc3\xa9' == s && 1 / 0 == 1 || 1 % 0 == 1", "division by zero  [invalid_argument]  (p.yaml:3:33)\n"},
    {"{'a': 1, 'a': 2}", "map key \"a\" comes twice  [invalid_argument]  (p.yaml:3:14)\n"},
    {"!output.n", "no such overload: \"!\" does not take int  [invalid_argument]  (p.yaml:3:5)\n"},
};

START_TEST(failure_names_place_and_reason)
{
    json_object *vars = rv_kit_json(sample), *result = NULL;
    struct rv_scope scope = rv_scope_of_object(vars);
    struct rv_src src = {"p.yaml", 3, 5};
    rv_expr *e = NULL;
    rv_err *err = NULL;
    char *text;

    ck_assert_int_eq(rv_expr_compile(rv_str_of(failures[_i].expr), &src, NULL, 0, &e, &err), 0);
    ck_assert_int_lt(rv_expr_eval(e, &scope, &result, &err), 0);
    text = rv_kit_err_take(err);
    ck_assert_str_eq(text, failures[_i].want);
    free(text);
    rv_expr_free(e);
    json_object_put(vars);
}
END_TEST

START_TEST(test_wants_a_bool)
{
    json_object *vars = rv_kit_json(sample);
    struct rv_scope scope = rv_scope_of_object(vars);
    rv_expr *e = NULL;
    rv_err *err = NULL;
    bool yes = false;

    ck_assert_int_eq(rv_expr_compile(RV_STR_LIT("output.n == 3"), NULL, NULL, 0, &e, NULL), 0);
    ck_assert_int_eq(rv_expr_test(e, &scope, &yes, NULL), 0);
    ck_assert(yes);
    rv_expr_free(e);
    ck_assert_int_eq(rv_expr_compile(RV_STR_LIT("output.n"), NULL, NULL, 0, &e, NULL), 0);
    ck_assert_str_eq(rv_expr_text(e), "output.n");
    ck_assert_int_eq(rv_expr_test(e, &scope, &yes, &err), RV_E_INVALID);
    ck_assert_str_eq(rv_err_text(err), "expression gives int, not bool");
    rv_err_free(err);
    rv_expr_free(e);
    json_object_put(vars);
}
END_TEST

START_TEST(result_outlives_expression_and_scope)
{
    json_object *vars = rv_kit_json(sample), *result = NULL;
    struct rv_scope scope = rv_scope_of_object(vars);
    rv_expr *e = NULL;
    char *text;

    ck_assert_int_eq(rv_expr_compile(RV_STR_LIT("[output.steps, 'x' + 'y']"), NULL, NULL, 0, &e, NULL), 0);
    ck_assert_int_eq(rv_expr_eval(e, &scope, &result, NULL), 0);
    rv_expr_free(e);
    json_object_put(vars);
    text = rv_kit_text(result);
    ck_assert_str_eq(text, "[[{\"tool\":\"a\",\"ok\":true},{\"tool\":\"b\",\"ok\":false}],\"xy\"]");
    free(text);
    json_object_put(result);
}
END_TEST

TCase *eval_case(void)
{
    TCase *tc = tcase_create("eval");

    tcase_add_loop_test(tc, evaluates_to_the_documented_value, 0, RV_COUNT(rows));
    tcase_add_loop_test(tc, failure_names_place_and_reason, 0, RV_COUNT(failures));
    tcase_add_test(tc, test_wants_a_bool);
    tcase_add_test(tc, result_outlives_expression_and_scope);
    return tc;
}
