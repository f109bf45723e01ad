/* A script read from text gives that text back; one inside another file gives a text that reads as the same script. */
#include "tests/unit/script/suites.h"

#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"

static rv_script *parse(rv_str text, const char *name)
{
    rv_findings *f = rv_findings_new();
    rv_buf said = RV_BUF_INIT(1 << 16);
    rv_script *s = NULL;

    ck_assert_int_eq(rv_script_parse(text, name, f, &s, NULL), 0);
    rv_findings_write_text(f, false, &said);
    ck_assert_msg(s && rv_findings_n(f) == 0, "%s", rv_buf_cstr(&said));
    rv_buf_fini(&said);
    rv_findings_free(f);
    return s;
}

/* What the model of stage a says next; free() it. */
static char *reply(rv_script *s)
{
    const struct rv_script_call call = {.kind = RV_SCRIPT_MODEL, .stage = "a", .visit = 1};
    struct rv_script_reply r;

    ck_assert_int_eq(rv_script_next(s, &call, &r, NULL), 0);
    char *text = rv_str_dup(rv_buf_str(&r.body));
    rv_script_reply_fini(&r);
    return text;
}

START_TEST(a_text_comes_back_byte_for_byte)
{
    static const char text[] = "\xef\xbb\xbf# a mark and a remark\r\nmodels: {a: [{text: 'x'}]}   \n\n";
    rv_script *s = parse(rv_str_of(text), "dir/s.yaml");
    rv_buf out = RV_BUF_INIT(1 << 16);
    const char *name = NULL;

    ck_assert_int_eq(rv_script_write_source(s, &name, &out, NULL), 0);
    ck_assert_str_eq(name, "dir/s.yaml");
    ck_assert_str_eq(rv_buf_cstr(&out), text);
    rv_buf_fini(&out);
    rv_script_free(s);
}
END_TEST

START_TEST(a_file_is_kept_as_it_was_read)
{
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "s.yaml");
    rv_findings *f = rv_findings_new();
    rv_buf out = RV_BUF_INIT(1 << 16);
    rv_script *s = NULL;
    const char *name = NULL;

    rv_kit_write(path, "models: {a: [{text: one}]}\n");
    ck_assert_int_eq(rv_script_read(path, f, &s, NULL), 0);
    rv_kit_write(path, "models: {a: [{text: two}]}\n");
    ck_assert_int_eq(rv_script_write_source(s, &name, &out, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&out), "models: {a: [{text: one}]}\n");
    ck_assert_str_eq(name, path);
    rv_buf_fini(&out);
    rv_script_free(s);
    rv_findings_free(f);
    free(path);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

/* Texts that JSON and YAML treat differently if nobody takes care. */
static const char *const texts[] = {
    "plain",
    "two\\nlines\\tand \\\"quotes\\\" \\\\ / # : {}",
    "caf\xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\x98\x80",
    "\\x7f \\x85 \\x9f \\xa0 \\u2028 \\u2029 \\ufeff end",
    "\\x01 \\e \\x1f",
    " blanks ",
    "",
    "yes",
    "1.50",
};

START_TEST(a_node_comes_back_as_the_same_script)
{
    rv_buf text = RV_BUF_INIT(1 << 16), out = RV_BUF_INIT(1 << 16);
    const char *name = NULL;

    rv_buf_printf(&text, "models: {a: [{text: \"%s\", usage: {input_tokens: 3}}]}\nrepeat: false\n", texts[_i]);
    rv_script *s = script_of(rv_buf_cstr(&text), NULL);
    ck_assert_int_eq(rv_script_write_source(s, &name, &out, NULL), 0);
    ck_assert_str_eq(name, "s.yaml");
    rv_script *again = parse(rv_buf_str(&out), name);
    char *want = reply(s), *got = reply(again);
    ck_assert_str_eq(want, got);
    free(want);
    free(got);
    rv_script_free(s);
    rv_script_free(again);
    rv_buf_fini(&text);
    rv_buf_fini(&out);
}
END_TEST

START_TEST(a_tool_is_found_by_name)
{
    rv_script *s = script_of("tools: {look: {risk: write, calls: [{result: {}}]}, peek: [{result: {}}]}", NULL);

    ck_assert_str_eq(rv_script_find_tool(s, RV_STR_LIT("look"))->name, "look");
    ck_assert_int_eq(rv_script_find_tool(s, RV_STR_LIT("look"))->risk, RV_RISK_WRITE);
    ck_assert_int_eq(rv_script_find_tool(s, RV_STR_LIT("peek"))->risk, RV_RISK_READ_ONLY);
    ck_assert_ptr_null(rv_script_find_tool(s, RV_STR_LIT("other")));
    rv_script_free(s);
}
END_TEST

START_TEST(a_catalog_may_be_put_over_itself)
{
    rv_script *s = script_of("tools: {look: [{result: {}}]}", NULL);
    struct rv_catalog once = rv_script_catalog(s, &rv_catalog_empty), twice = rv_script_catalog(s, &once);

    ck_assert_ptr_nonnull(twice.tool(twice.self, RV_STR_LIT("look")));
    ck_assert_ptr_null(twice.tool(twice.self, RV_STR_LIT("other")));
    rv_script_free(s);
}
END_TEST

static const char *const faulty[] = {"", "models: [", "models: {a: []}", "[]", "nope: 1"};

START_TEST(a_faulty_text_is_findings_and_no_script)
{
    rv_findings *f = rv_findings_new();
    rv_script *s = NULL;

    ck_assert_int_eq(rv_script_parse(rv_str_of(faulty[_i]), "s.yaml", f, &s, NULL), 0);
    ck_assert_ptr_null(s);
    ck_assert_uint_gt(rv_findings_n_errors(f), 0);
    ck_assert_str_eq(rv_findings_at(f, 0).src.file, "s.yaml");
    rv_findings_free(f);
}
END_TEST

Suite *source_suite(void)
{
    Suite *suite = suite_create("source");
    TCase *tc = tcase_create("source");

    tcase_add_test(tc, a_text_comes_back_byte_for_byte);
    tcase_add_test(tc, a_file_is_kept_as_it_was_read);
    tcase_add_loop_test(tc, a_node_comes_back_as_the_same_script, 0, RV_COUNT(texts));
    tcase_add_test(tc, a_tool_is_found_by_name);
    tcase_add_test(tc, a_catalog_may_be_put_over_itself);
    tcase_add_loop_test(tc, a_faulty_text_is_findings_and_no_script, 0, RV_COUNT(faulty));
    suite_add_tcase(suite, tc);
    return suite;
}
