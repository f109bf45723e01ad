/* What is found before any value is known: grammar, names, types; each with place, token and advice. */
#include <stdlib.h>

#include "coreengine/lang/lang.h"
#include "expr_suites.h"
#include "tests/kit/kit.h"

static const char *const vars[] = {"output", "outputs", "envelope", "metadata", "state", "interrupt"};

static const struct {
    const char *expr, *want;
} errors[] = {
    {"", "empty expression  [parse_error]  (p.yaml:10:4)\n"
         "  hint: write a condition, for example output.verdict == \"ok\", or true\n"},
    {"  // nothing", "empty expression  [parse_error]  (p.yaml:10:4)\n"
                     "  hint: write a condition, for example output.verdict == \"ok\", or true\n"},
    {"1 +", "unexpected end of the expression, expected a value  [parse_error]  (p.yaml:10:7)\n"
            "  hint: each bracket has to be closed, and each operator needs a value behind it\n"},
    {"(1", "unexpected end of the expression, expected \")\"  [parse_error]  (p.yaml:10:6)\n"
           "  hint: each bracket has to be closed, and each operator needs a value behind it\n"},
    {"1 2", "unexpected \"2\", expected an operator or the end  [parse_error]  (p.yaml:10:6)\n"},
    {"[1 2]", "unexpected \"2\", expected \",\" or \"]\" after a list element  [parse_error]  (p.yaml:10:7)\n"},
    {"[,]", "unexpected \",\", expected a value  [parse_error]  (p.yaml:10:5)\n"},
    {"{1}", "unexpected \"}\", expected \":\" after a map key  [parse_error]  (p.yaml:10:6)\n"},
    {"size(1,)", "unexpected \")\", expected an argument  [parse_error]  (p.yaml:10:11)\n"},
    {"true ? 1", "unexpected end of the expression, expected \":\" of the conditional  [parse_error]  (p.yaml:10:12)\n"
                 "  hint: write CONDITION ? VALUE : OTHER\n"},
    {"output.",
     "unexpected end of the expression, expected a field name after \".\"; other names are written a[\"name\"]"
     "  [parse_error]  (p.yaml:10:11)\n"},
    {"output.in", "unexpected \"in\", expected a field name after \".\"; other names are written a[\"name\"]"
                  "  [parse_error]  (p.yaml:10:11)\n"},
    {"output.verdict = 'x'", "unexpected \"=\"; equality is \"==\"  [parse_error]  (p.yaml:10:19)\n"
                             "  hint: compare with \"==\", for example output.verdict == \"ok\"\n"},
    {"true & false", "unexpected \"&\"; the operator is \"&&\"  [parse_error]  (p.yaml:10:9)\n"},
    {"true | false", "unexpected \"|\"; the operator is \"||\"  [parse_error]  (p.yaml:10:9)\n"},
    {"1 @ 2", "unexpected \"@\"  [parse_error]  (p.yaml:10:6)\n"},
    {"\xc3\xa9", "unexpected character (byte 0xc3)  [parse_error]  (p.yaml:10:4)\n"},
    {"'\xc3\xa9' @", "unexpected \"@\"  [parse_error]  (p.yaml:10:8)\n"},
    {"1 \xff", "expression is not valid UTF-8  [parse_error]  (p.yaml:10:6)\n"},
    {"true &&\n\n   @", "unexpected \"@\"  [parse_error]  (p.yaml:12:4)\n"},
    {"while", "\"while\" is a reserved word  [parse_error]  (p.yaml:10:4)\n"},
    {"'abc", "string has no closing '  [parse_error]  (p.yaml:10:4)\n"
             "  hint: a quote inside of a string is written \\'\n"},
    {"\"\"\"abc\"", "string has no closing \"\"\"  [parse_error]  (p.yaml:10:4)\n"
                    "  hint: a quote inside of a string is written \\\"\n"},
    {"'a\nb'", "line break in a string; write \\n, or use three quotes  [parse_error]  (p.yaml:10:4)\n"},
    {"'\\q'", "unknown escape \"\\q\" in a string  [parse_error]  (p.yaml:10:5)\n"},
    {"'\\u12'", "escape \"\\u\" needs 4 hexadecimal digits  [parse_error]  (p.yaml:10:5)\n"},
    {"'\\ud800'", "escape \"\\ud800\" is not a Unicode character  [parse_error]  (p.yaml:10:5)\n"},
    {"'\\UFFFFFFFF'", "escape \"\\UFFFFFFFF\" is not a Unicode character  [parse_error]  (p.yaml:10:5)\n"},
    {"'\\18'", "escape \"\\1\" needs 3 octal digits  [parse_error]  (p.yaml:10:5)\n"},
    {"'\\", "unfinished escape in a string  [parse_error]  (p.yaml:10:5)\n"},
    {"b'x'", "bytes literals are not part of this subset of CEL  [parse_error]  (p.yaml:10:4)\n"},
    {"9223372036854775808", "integer \"9223372036854775808\" does not fit int64  [parse_error]  (p.yaml:10:4)\n"},
    {"99999999999999999999",
     "integer \"99999999999999999999\" is too large  [parse_error]  (p.yaml:10:4)\n"
     "  hint: the largest is 9223372036854775807; a number with a point or an exponent may be larger\n"},
    {"1e999", "number \"1e999\" is too large  [parse_error]  (p.yaml:10:4)\n"},
    {"0x", "no digits after \"0x\"  [parse_error]  (p.yaml:10:4)\n"},
    {"12ab", "unexpected \"a\" after number \"12\"  [parse_error]  (p.yaml:10:4)\n"},
    /* names */
    {"outptu.x", "unknown variable \"outptu\"  [not_found]  (p.yaml:10:4)\n  hint: did you mean \"output\"?\n"},
    {"1 == banana", "unknown variable \"banana\"  [not_found]  (p.yaml:10:9)\n"
                    "  hint: variables here: output, outputs, envelope, metadata, state, interrupt\n"},
    {"size", "unknown variable \"size\"  [not_found]  (p.yaml:10:4)\n  hint: size is a function: write size(...)\n"},
    {"sise('a')", "unknown function \"sise\"  [not_found]  (p.yaml:10:4)\n  hint: did you mean \"size\"?\n"},
    {"output.x.startWith('a')", "unknown method \"startWith\"  [not_found]  (p.yaml:10:13)\n"
                                "  hint: did you mean \"startsWith\"?\n"},
    {"contains('a', 'b')",
     "unknown function \"contains\"  [not_found]  (p.yaml:10:4)\n  hint: write x.contains(...)\n"},
    {"output.x.int()", "unknown method \"int\"  [not_found]  (p.yaml:10:13)\n  hint: write int(x)\n"},
    {"output.x.matches('a++')", "pattern \"a++\", byte 3: nothing to repeat  [invalid_argument]  (p.yaml:10:21)\n"},
    {"output.x == 1 and true", "unexpected \"and\", expected an operator or the end  [parse_error]  (p.yaml:10:18)\n"
                               "  hint: \"and\" is written &&\n"},
    {"timestamp('2026-01-01')", "timestamp() is not part of this subset of CEL  [not_found]  (p.yaml:10:4)\n"},
    {"[1].map(x, x) == x", "unknown variable \"x\"  [not_found]  (p.yaml:10:21)\n"
                           "  hint: variables here: output, outputs, envelope, metadata, state, interrupt\n"},
    /* types */
    {"\"a\" < 1", "\"<\" does not take string and int  [invalid_argument]  (p.yaml:10:8)\n"
                  "  hint: both sides need types that fit; int(x), double(x) and string(x) convert\n"},
    {"1 + 'a'", "\"+\" does not take int and string  [invalid_argument]  (p.yaml:10:6)\n"
                "  hint: both sides need types that fit; int(x), double(x) and string(x) convert\n"},
    {"1 + 1.0", "\"+\" does not take int and double  [invalid_argument]  (p.yaml:10:6)\n"
                "  hint: numbers are not converted by themselves: write int(x), uint(x) or double(x)\n"},
    {"1 && true", "\"&&\" does not take int  [invalid_argument]  (p.yaml:10:6)\n"},
    {"true || 'a'", "\"||\" does not take string  [invalid_argument]  (p.yaml:10:9)\n"},
    {"!'a'", "\"!\" does not take string  [invalid_argument]  (p.yaml:10:4)\n"},
    {"-'a'", "\"-\" does not take string  [invalid_argument]  (p.yaml:10:4)\n"},
    {"1 ? 2 : 3", "\"?\" does not take int  [invalid_argument]  (p.yaml:10:6)\n"},
    {"(true ? 1 : 'a') && true", "\"&&\" does not take int or string  [invalid_argument]  (p.yaml:10:21)\n"},
    {"1 in 2", "\"in\" does not take int and int  [invalid_argument]  (p.yaml:10:6)\n"},
    {"'a'.b", "\"b\" does not take string  [invalid_argument]  (p.yaml:10:8)\n"},
    {"[1]['a']", "\"[\" does not take list and string  [invalid_argument]  (p.yaml:10:7)\n"},
    {"1[0]", "\"[\" does not take int  [invalid_argument]  (p.yaml:10:5)\n"},
    {"1.5 % 2.0", "\"%\" does not take double and double  [invalid_argument]  (p.yaml:10:8)\n"},
    {"{1.5: 2}", "a map key must be a bool, int, uint or string  [invalid_argument]  (p.yaml:10:5)\n"},
    {"size(1)", "size() takes string or list or map here, not int  [invalid_argument]  (p.yaml:10:9)\n"},
    {"size()", "size() takes 1 argument, not 0  [invalid_argument]  (p.yaml:10:4)\n"
               "  hint: write it as size(a)\n"},
    {"'a'.contains('b', 'c')", "contains() takes 1 argument, not 2  [invalid_argument]  (p.yaml:10:8)\n"
                               "  hint: write it as x.contains(a)\n"},
    {"'a'.all(x, true)", "\"all\" does not take string  [invalid_argument]  (p.yaml:10:8)\n"},
    {"[1].all(x)", "all() takes 2 arguments: a variable name and what to do with it  [invalid_argument]"
                   "  (p.yaml:10:8)\n"},
    {"[1].all(x.y, true)", "the first argument of all() must be a plain name  [invalid_argument]  (p.yaml:10:14)\n"
                           "  hint: for example output.items.all(x, x > 1)\n"},
    {"[1].filter(x, 1)", "the condition of filter() must be a bool  [invalid_argument]  (p.yaml:10:18)\n"},
    {"all([1], x, true)", "all() is called on a list or map: x.all(...)  [invalid_argument]  (p.yaml:10:4)\n"},
    {"has(output)", "has() takes one argument of the form a.b (for other keys: \"key\" in a)  [invalid_argument]"
                    "  (p.yaml:10:4)\n"},
    {"has(output['a'])", "has() takes one argument of the form a.b (for other keys: \"key\" in a)  [invalid_argument]"
                         "  (p.yaml:10:4)\n"},
};

START_TEST(compile_error_has_place_token_and_advice)
{
    struct rv_src src = {"p.yaml", 10, 4};
    rv_expr *e = NULL;
    rv_err *err = NULL;
    char *text;

    ck_assert_msg(rv_expr_compile(rv_str_of(errors[_i].expr), &src, vars, RV_COUNT(vars), &e, &err) < 0, "%s compiles",
                  errors[_i].expr);
    ck_assert_ptr_null(e);
    text = rv_kit_err_take(err);
    ck_assert_str_eq(text, errors[_i].want);
    free(text);
}
END_TEST

static const struct {
    const char *expr;
    bool may;
} bools[] = {
    {"output.x", true},      {"1 == 1", true},
    {"true", true},          {"output.x ? 1 : true", true},
    {"has(output.x)", true}, {"1", false},
    {"'true'", false},       {"output.x + 'a'", false},
    {"size(output)", false}, {"[true]", false},
    {"null", false},         {"output.l.map(x, x)", false},
    {"-output.x", false},    {"bool('x')", true},
    {"type(1)", false},      {"output.l.exists(x, x)", true},
    {"output.l[0]", true},   {"true ? 1 : 2", false},
};

START_TEST(certain_non_bool_is_known_after_compile)
{
    rv_expr *e = NULL;

    ck_assert_int_eq(rv_expr_compile(rv_str_of(bools[_i].expr), NULL, vars, RV_COUNT(vars), &e, NULL), 0);
    ck_assert_msg(rv_expr_may_be_bool(e) == bools[_i].may, "%s", bools[_i].expr);
    rv_expr_free(e);
}
END_TEST

START_TEST(declared_variable_wins_over_type_name)
{
    static const char *const names[] = {"list"};
    json_object *obj = rv_kit_json("{'list': 5}");
    struct rv_scope scope = rv_scope_of_object(obj);
    rv_expr *e = NULL;
    bool yes = false;

    ck_assert_int_eq(rv_expr_compile(RV_STR_LIT("list == 5"), NULL, names, 1, &e, NULL), 0);
    ck_assert_int_eq(rv_expr_test(e, &scope, &yes, NULL), 0);
    ck_assert(yes);
    rv_expr_free(e);
    json_object_put(obj);
}
END_TEST

static const struct {
    const char *expr, *names; /* "root.field.member@column ", with a "?" for a test */
} named[] = {
    {"output.x == 1", "output.x.@8 "},
    {"outputs.a.b.c + outputs['a']['b'] + outputs.a[0]", "outputs.a.b@9 outputs.a.b@25 outputs.a.@45 "},
    {"has(output.x)", "output.x.@12? "},
    {"has(outputs.a.b) && outputs.a.b > 1 && outputs.a.c", "outputs.a.b@13? outputs.a.b@29? outputs.a.c@48 "},
    {"has(outputs.a.b.c)", "outputs.a.b@13 "},
    {"'a' in outputs || 'b' in outputs.a || x in output", "outputs.a.@1? outputs.a.b@34? "},
    {"outputs.map(outputs, outputs.x)", ""},
    {"output['a' + 'b'] == 'outputs.q'", ""},
    {"size(outputs) + 1", ""},
};

START_TEST(names_of_members_are_listed_in_the_order_of_the_text)
{
    rv_expr *e = NULL;
    rv_buf got = RV_BUF_INIT(4096);

    ck_assert_int_eq(rv_expr_compile(rv_str_of(named[_i].expr), NULL, NULL, 0, &e, NULL), 0);
    for (size_t i = 0; i < rv_expr_n_names(e); i++) {
        struct rv_placeholder n = rv_expr_name_at(e, i);
        rv_buf_printf(&got, "%.*s.%.*s.%.*s@%d%s ", RV_STR_ARG(n.root), RV_STR_ARG(n.field), (int)n.member.len,
                      n.member.ptr ? n.member.ptr : "", n.src.col, n.is_test ? "?" : "");
    }
    ck_assert_str_eq(rv_buf_cstr(&got), named[_i].names);
    rv_buf_fini(&got);
    rv_expr_free(e);
}
END_TEST

TCase *compile_case(void)
{
    TCase *tc = tcase_create("compile");

    tcase_add_loop_test(tc, compile_error_has_place_token_and_advice, 0, RV_COUNT(errors));
    tcase_add_loop_test(tc, certain_non_bool_is_known_after_compile, 0, RV_COUNT(bools));
    tcase_add_loop_test(tc, names_of_members_are_listed_in_the_order_of_the_text, 0, RV_COUNT(named));
    tcase_add_test(tc, declared_variable_wins_over_type_name);
    return tc;
}
