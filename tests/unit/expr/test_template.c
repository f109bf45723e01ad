/* Prompt templates (rules 5.5, W27, W28 and "Prompt files"). */
#include <stdlib.h>
#include <string.h>

#include "coreengine/lang/lang.h"
#include "expr_suites.h"
#include "tests/kit/kit.h"

static const char sample[] =
    "{'name': 'Ann', 'empty': '', 'lines': 'a\\nb\\n', 'n': 3, 'd': 2.50, 'yes': true, 'nul': null,"
    " 'list': ['a', {'b': 'c'}], 'obj': {'x': {'y': 'z'}, '0': 'zero', 'dash-ed': 1},"
    " 'evil': '{{name}} {{nope}} \\\\{{'}";

static const struct {
    const char *text, *want;
} rows[] = {
    {"", ""},
    {"plain", "plain"},
    {"{{name}}", "Ann"},
    {"Hello {{name}}!", "Hello Ann!"},
    {"{{ name }}{{\tname}}{{name  }}", "AnnAnnAnn"},
    {"{{name}}{{name}}", "AnnAnn"},
    {"[{{empty}}]", "[]"},
    {"{{n}} {{d}} {{yes}} {{nul}}", "3 2.50 true null"},
    {"{{list}}", "[\"a\",{\"b\":\"c\"}]"},
    {"{{list.0}} {{list.1.b}} {{list.1}}", "a c {\"b\":\"c\"}"},
    {"{{obj.x.y}} {{obj.x}} {{obj.0}} {{obj.dash-ed}}", "z {\"y\":\"z\"} zero 1"},
    /* JSON samples need no escape */
    {"{\"a\": {\"b\": {}}}", "{\"a\": {\"b\": {}}}"},
    {"{{\"a\": 1}}", "{{\"a\": 1}}"},
    {"{name} {{}} {{ }} {{1}} {{-a}} {{#if}} }}", "{name} {{}} {{ }} {{1}} {{-a}} {{#if}} }}"},
    {"{\"who\": \"{{name}}\"}", "{\"who\": \"Ann\"}"},
    {"{{{name}}}", "{Ann}"},
    {"{{{{name}}}}", "{{Ann}}"},
    {"{", "{"},
    {"a {{", "a {{"},
    /* escapes */
    {"\\{{name}}", "{{name}}"},
    {"\\{{name", "{{name"},
    {"\\{{{{name}}", "{{Ann"},
    {"\\ \\{ {{name}}\\", "\\ \\{ Ann\\"},
    {"\\\\{{name}}", "\\{{name}}"},
    /* what is inserted is never looked at again */
    {"{{evil}}", "{{name}} {{nope}} \\{{"},
    {"{{name}\xc3\xa9}}", NULL},
    /* sections */
    {"{{#list}}<{{@index}}>{{/list}}", "<0><1>"},
    {"{{#obj.x}}{{.y}}{{name}}{{/obj.x}}", "zAnn"},
    {"{{#yes}}{{.}}{{/yes}}{{#n}}{{.}}{{/n}}{{#name}}{{.}}{{/name}}", "true3Ann"},
    {"{{#empty}}x{{/empty}}{{#nul}}x{{/nul}}{{#nope}}x{{/nope}}{{#nope.deep}}x{{/nope.deep}}", ""},
    {"{{^empty}}a{{/empty}}{{^nul}}b{{/nul}}{{^nope}}c{{/nope}}{{^yes}}d{{/yes}}{{^list}}e{{/list}}", "abc"},
    {"{{#list}}{{#obj}}{{.dash-ed}}{{/obj}}{{/list}}", "11"},
    {"{{#list}}{{^nope}}{{@number}}{{/nope}}{{/list}}", "12"}, /* the item of the section around */
    {"{{#list}}{{#list}}{{@index}}{{/list}},{{/list}}", "01,01,"},
    {"a\n  {{#yes}}  \nb\n{{/yes}}\nc", "a\nb\nc"}, /* tags alone on their lines */
    {"{{#yes}}\nb\n{{/yes}}", "b\n"},
    {"{{#yes}} b\n{{/yes}} c", " b\n c"},
    {"{{#yes}}{{#yes}}\nx{{/yes}}{{/yes}}", "\nx"},
    {"\\{{#yes}}x", "{{#yes}}x"},
    {"{{#yes}}\\{{.}}{{/yes}}", "{{.}}"},
    /* without a counterpart they are text, and so is what needs an item */
    {"{{#yes}}x", "{{#yes}}x"},
    {"x{{/yes}}", "x{{/yes}}"},
    {"{{#yes}}{{#n}}x{{/yes}}", "{{#n}}x"},
    {"{{#yes}}x{{/n}}{{/yes}}", "x{{/n}}"},
    {"{{.}} {{.name}} {{@index}} {{#.a}}x{{/.a}}", "{{.}} {{.name}} {{@index}} {{#.a}}x{{/.a}}"},
    {"{{#if yes}}x{{/if}} {% if %} {{>part}} {{@other}} {{# yes}}",
     "{{#if yes}}x{{/if}} {% if %} {{>part}} {{@other}} {{# yes}}"},
    /* filters */
    {"{{nope | default \"a\\\"b\"}} {{nul|default \"\"}}.{{name | default \"x\"}}", "a\"b .Ann"},
    {"{{nope.deep|default \"x\"|truncate 1}}{{list|join \"+\"}}{{n|join \"+\"}}{{nul|join \"+\"}}",
     "xa+{\"b\":\"c\"}3null"},
    {"{{nope|truncate 3|default \"-\"}}{{nul|json|default \"x\"}}{{nul|join \",\"|default \"y\"|json}}"
     "{{nope|indent 2|default \"z\"|default \"w\"}}{{name|truncate 1|default \"-\"}}{{nul|truncate 1}}",
     "-x\"y\"zA...n..."},
    {"{{name|json}}{{list|json}}{{name|truncate 2|json}}{{name|indent 2}}", "\"Ann\"[\"a\",{\"b\":\"c\"}]\"An...\"Ann"},
    {"{{name|truncate 0}} {{name|truncate 3}} {{empty|truncate 0}}", "... Ann "},
    {"{{lines|indent 2}}", "a\n  b\n  "},
    {"{{#list}}{{. | json}}{{/list}}", "\"a\"{\"b\":\"c\"}"},
    {"{{name|upper}}", NULL},
    {"{{name|truncate}}", NULL},
    {"{{name|truncate -1}}", NULL},
    {"{{name|indent 65}}", NULL},
    {"{{name|default x}}", NULL},
    {"{{name|default \"x}}", NULL},
    {"{{name|}}", NULL},
    {"{{name|json json}}", NULL},
};

/* Proves 10/prompt-files: Prompts may be files; braces that are no names stay
 * Proves 10/once: What was put in for a placeholder is not looked at again */
START_TEST(renders)
{
    json_object *vars = rv_kit_json(sample);
    struct rv_scope scope = rv_scope_of_object(vars);
    RV_AUTO(rv_buf_fini) rv_buf out = RV_BUF_INIT(1000);
    rv_template *t = NULL;
    int rc = rv_template_compile(rv_str_of(rows[_i].text), NULL, &t, NULL);

    if (!rows[_i].want) {
        ck_assert_int_eq(rc, RV_E_PARSE);
    } else {
        ck_assert_int_eq(rc, 0);
        rv_buf_puts(&out, "> ");
        ck_assert_int_eq(rv_template_render(t, &scope, &out, NULL), 0);
        ck_assert_str_eq(rv_buf_cstr(&out) + 2, rows[_i].want);
    }
    rv_template_free(t);
    json_object_put(vars);
}
END_TEST

static const struct {
    const char *text, *want;
} errors[] = {
    {"Hi {{nmae}}", "no value for \"{{nmae}}\": there is no \"nmae\"  [not_found]  (plan.md:1:4)\n"},
    {"Hi\n\n  {{obj.x.yy}}", "no value for \"{{obj.x.yy}}\": there is no \"yy\"  [not_found]  (plan.md:3:3)\n"
                             "  hint: did you mean \"y\"?\n"},
    {"{{obj.dashed}}", "no value for \"{{obj.dashed}}\": there is no \"dashed\"  [not_found]  (plan.md:1:1)\n"
                       "  hint: did you mean \"dash-ed\"?\n"},
    {"{{nope.x}}", "no value for \"{{nope.x}}\": there is no \"nope\"  [not_found]  (plan.md:1:1)\n"},
    {"{{list.2}}", "no value for \"{{list.2}}\": there is no \"2\"  [not_found]  (plan.md:1:1)\n"
                   "  hint: that list has 2 elements, counted from 0\n"},
    {"{{name.x}}", "no value for \"{{name.x}}\": there is no \"x\"  [not_found]  (plan.md:1:1)\n"},
    {"{{nul.x}}", "no value for \"{{nul.x}}\": there is no \"x\"  [not_found]  (plan.md:1:1)\n"},
    {"{{list.99999999999999999999999}}",
     "no value for \"{{list.99999999999999999999999}}\": there is no \"99999999999999999999999\"  [not_found]"
     "  (plan.md:1:1)\n  hint: that list has 2 elements, counted from 0\n"},
    {"a {{name", "\"{{name\" is not followed by \"}}\"  [parse_error]  (plan.md:1:3)\n"
                 "  hint: a placeholder is a path, such as {{plan.goal}}; write \\{{ for two braces that are text\n"},
    {"{{name}", "\"{{name\" is not followed by \"}}\"  [parse_error]  (plan.md:1:1)\n"
                "  hint: a placeholder is a path, such as {{plan.goal}}; write \\{{ for two braces that are text\n"},
    {"\n {{ a b }}",
     "\"{{a\" is not followed by \"}}\"  [parse_error]  (plan.md:2:2)\n"
     "  hint: a placeholder is a path, such as {{plan.goal}}; write \\{{ for two braces that are text\n"},
    {"{{a.}}", "\"{{a.\": a name or an index must follow \".\"  [parse_error]  (plan.md:1:1)\n"},
    {"{{a..b}}", "\"{{a.\": a name or an index must follow \".\"  [parse_error]  (plan.md:1:1)\n"},
    {"{{a | uper}}", "\"{{a | uper\": unknown filter \"uper\"  [parse_error]  (plan.md:1:1)\n"
                     "  hint: filters are default, json, join, truncate, indent\n"},
    {"x {{a|truncate x}}", "\"{{a | truncate\" lacks a number that fits  [parse_error]  (plan.md:1:3)\n"
                           "  hint: write it as in {{a | truncate 200}}\n"},
    {"{{#list}}{{.b}}{{/list}}", "no value for \"{{.b}}\": there is no \"b\"  [not_found]  (plan.md:1:10)\n"},
    {"{{a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q}}",
     "placeholder has more than 16 segments  [resource_exhausted]  (plan.md:1:1)\n"},
};

START_TEST(unknown_or_broken_placeholder_is_an_error_with_its_place)
{
    json_object *vars = rv_kit_json(sample);
    struct rv_scope scope = rv_scope_of_object(vars);
    struct rv_src src = {"plan.md", 1, 1};
    RV_AUTO(rv_buf_fini) rv_buf out = RV_BUF_INIT(1000);
    rv_template *t = NULL;
    rv_err *err = NULL;
    char *text;
    int rc = rv_template_compile(rv_str_of(errors[_i].text), &src, &t, &err);

    rv_buf_puts(&out, "before");
    if (rc == 0)
        rc = rv_template_render(t, &scope, &out, &err);
    ck_assert_int_lt(rc, 0);
    ck_assert_str_eq(rv_buf_cstr(&out), "before");
    text = rv_kit_err_take(err);
    ck_assert_str_eq(text, errors[_i].want);
    free(text);
    rv_template_free(t);
    json_object_put(vars);
}
END_TEST

START_TEST(placeholders_are_listed_for_lint)
{
    struct rv_src src = {"plan.md", 5, 3};
    struct rv_placeholder ph;
    rv_template *t = NULL;

    ck_assert_int_eq(rv_template_compile(RV_STR_LIT("\\{{no}} {{a}}\n{{ b.c.0 }}{{d|default \"x\"}}{{#e.f}}{{/e.f}}"),
                                         &src, &t, NULL),
                     0);
    ck_assert_uint_eq(rv_template_n_placeholders(t), 4);
    ck_assert(rv_template_placeholder_at(t, 2).is_test && rv_template_placeholder_at(t, 3).is_test);
    ph = rv_template_placeholder_at(t, 0);
    ck_assert(rv_str_is(ph.path, "a") && rv_str_is(ph.root, "a") && !ph.field.ptr);
    ck_assert_int_eq(ph.src.line, 5);
    ck_assert_int_eq(ph.src.col, 11);
    ck_assert_str_eq(ph.src.file, "plan.md");
    ph = rv_template_placeholder_at(t, 1);
    ck_assert(rv_str_is(ph.path, "b.c.0") && rv_str_is(ph.root, "b") && rv_str_is(ph.field, "c"));
    ck_assert(rv_str_is(ph.member, "0") && !ph.is_test);
    ck_assert_int_eq(ph.src.line, 6);
    ck_assert_int_eq(ph.src.col, 1);
    rv_template_free(t);
}
END_TEST

START_TEST(sizes_are_bounded)
{
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(2 * RV_TEMPLATE_MAX_BYTES);
    RV_AUTO(rv_buf_fini) rv_buf small = RV_BUF_INIT(8);
    RV_AUTO(rv_buf_fini) rv_buf large = RV_BUF_INIT(64 << 20);
    json_object *vars = rv_kit_json("{'a': 'x'}");
    struct rv_scope scope = rv_scope_of_object(vars);
    rv_template *t = NULL;

    while (text.len <= RV_TEMPLATE_MAX_BYTES)
        rv_buf_puts(&text, "0123456789abcdef");
    ck_assert_int_eq(rv_template_compile(rv_buf_str(&text), NULL, &t, NULL), RV_E_LIMIT);
    json_object_object_add(vars, "a", json_object_new_string_len(text.ptr, 1 << 20));
    rv_buf_clear(&text);
    for (int i = 0; i < 4097; i++)
        rv_buf_puts(&text, "{{a}}");
    ck_assert_int_eq(rv_template_compile(rv_buf_str(&text), NULL, &t, NULL), RV_E_LIMIT);

    ck_assert_int_eq(rv_template_compile(RV_STR_LIT("{{a}}{{a}}{{a}}{{a}}{{a}}{{a}}{{a}}{{a}}"), NULL, &t, NULL), 0);
    ck_assert_int_eq(rv_template_render(t, &scope, &small, NULL), RV_E_LIMIT);
    ck_assert_int_eq(rv_template_render(t, &scope, &large, NULL), 0);
    ck_assert_uint_eq(large.len, RV_TEMPLATE_MAX_OUTPUT);
    rv_template_free(t);
    t = NULL;
    ck_assert_int_eq(rv_template_compile(RV_STR_LIT("{{a}}{{a}}{{a}}{{a}}{{a}}{{a}}{{a}}{{a}}."), NULL, &t, NULL), 0);
    rv_buf_clear(&large);
    ck_assert_int_eq(rv_template_render(t, &scope, &large, NULL), RV_E_LIMIT);
    ck_assert_uint_eq(large.len, 0);
    ck_assert_uint_eq(large.max, 64 << 20);
    rv_template_free(t);
    json_object_put(vars);
}
END_TEST

START_TEST(what_looks_like_a_tag_is_told)
{
    static const char *const looks[] = {"{{#if a}}", "{% for %}", "{{/b}} {{#c}}", "{{#c}}", "{{> part}}", "{{.Name}}"};
    struct rv_src src = {"plan.md", 1, 1};
    rv_template *t = NULL;

    ck_assert_int_eq(
        rv_template_compile(RV_STR_LIT("{{#if a}}\n{% for %}\n {{/b}} {{#c}}\n{{#a}}{{> part}}\n{{/a}}{{.Name}}\n"
                                       "{\"{{\": {{}}} \\{{#x}} {{a}}"),
                            &src, &t, NULL),
        0);
    bool found[RV_COUNT(looks)] = {false};
    for (size_t i = 0; i < rv_template_n_foreign(t); i++) {
        struct rv_foreign f = rv_template_foreign_at(t, i);
        size_t k = 0;
        while (k < RV_COUNT(looks) && !rv_str_is(f.text, looks[k]))
            k++;
        ck_assert_msg(k < RV_COUNT(looks), "%.*s", RV_STR_ARG(f.text));
        ck_assert(!found[k]);
        found[k] = true;
        ck_assert_int_eq(f.src.line, k == 0 ? 1 : k == 1 ? 2 : k < 4 ? 3 : k);
    }
    ck_assert_uint_eq(rv_template_n_foreign(t), RV_COUNT(looks));
    ck_assert_uint_eq(rv_template_n_placeholders(t), 2);
    rv_template_free(t);
}
END_TEST

START_TEST(sections_are_bounded)
{
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(1 << 20);
    RV_AUTO(rv_buf_fini) rv_buf out = RV_BUF_INIT(64 << 20);
    json_object *vars = rv_kit_json("{'a': [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]}");
    struct rv_scope scope = rv_scope_of_object(vars);
    rv_template *t = NULL;
    rv_err *err = NULL;

    for (int n = 16; n < 18; n++) {
        rv_buf_clear(&text);
        for (int i = 0; i < n; i++)
            rv_buf_puts(&text, "{{#a}}");
        for (int i = 0; i < n; i++)
            rv_buf_puts(&text, "{{/a}}");
        ck_assert_int_eq(rv_template_compile(rv_buf_str(&text), NULL, &t, NULL), n == 16 ? 0 : RV_E_LIMIT);
        if (n == 16) { /* 16 to the power of 16 rounds */
            ck_assert_int_eq(rv_template_render(t, &scope, &out, &err), RV_E_LIMIT);
            ck_assert_uint_eq(out.len, 0);
        }
        rv_err_free(err);
        err = NULL;
        rv_template_free(t);
        t = NULL;
    }
    json_object_put(vars);
}
END_TEST

TCase *template_case(void)
{
    TCase *tc = tcase_create("template");

    tcase_add_loop_test(tc, renders, 0, RV_COUNT(rows));
    tcase_add_loop_test(tc, unknown_or_broken_placeholder_is_an_error_with_its_place, 0, RV_COUNT(errors));
    tcase_add_test(tc, placeholders_are_listed_for_lint);
    tcase_add_test(tc, what_looks_like_a_tag_is_told);
    tcase_add_test(tc, sizes_are_bounded);
    tcase_add_test(tc, sections_are_bounded);
    return tc;
}
