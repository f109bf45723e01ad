/* Texts in YAML: whatever they are, reading gives them again, byte for byte. */
#include <string.h>

#include "coreengine/app/app.h"
#include "coreengine/lang/lang.h"
#include "tests/kit/kit.h"
#include "tests/unit/cli/suites.h"

/* Writes "a: - b: TEXT", reads it, and gives what is there. */
static void want_again(rv_str text, int depth)
{
    rv_buf doc = RV_BUF_INIT(1 << 20);
    rv_findings *findings = rv_findings_new();
    json_object *json = NULL, *got = NULL;
    rv_yaml *yaml = NULL;
    rv_err *err = NULL;

    rv_buf_puts(&doc, depth == 0 ? "b: " : depth == 1 ? "a:\n  b: " : "a:\n  - b: ");
    rv_app_write_yaml(text, depth, &doc);
    rv_buf_puts(&doc, depth == 2 ? "    c: 1\n" : depth == 1 ? "  c: 1\n" : "c: 1\n");
    ck_assert_int_eq(rv_yaml_parse(rv_buf_str(&doc), "doc", findings, &yaml, &err), 0);
    ck_assert_msg(yaml && rv_findings_n(findings) == 0, "not read: %s", rv_buf_cstr(&doc));
    ck_assert_int_eq(rv_node_build_json(rv_yaml_root(yaml), &json, &err), 0);
    json_object *at = depth == 0 ? json : NULL;
    if (depth == 1)
        at = rv_json_get_obj(json, "a");
    else if (depth == 2)
        at = json_object_array_get_idx(rv_json_get_arr(json, "a"), 0);
    ck_assert(json_object_object_get_ex(at, "b", &got));
    ck_assert_msg(rv_str_eq(rv_json_str(got), text), "other text: %s", rv_buf_cstr(&doc));
    ck_assert(json_object_object_get_ex(at, "c", NULL));
    json_object_put(json);
    rv_yaml_free(yaml);
    rv_findings_free(findings);
    rv_buf_fini(&doc);
}

static const char *const texts[] = {
    "",
    "plain",
    "no",
    "1.5",
    "null",
    "# no comment",
    "a: b",
    "- item",
    "one\ntwo",
    "one\ntwo\n",
    "one\ntwo\n\n\n",
    "one\n\n\ntwo",
    "\n",
    "\nleads",
    "  indented\nmore",
    "\ttab\nmore",
    "one\n  deeper\nback",
    "one\n   \ntwo",
    "one\ntwo   ",
    "trailing  \nblanks  \n",
    "one\n\ttab",
    "---\nnot a document\n...\n",
    "# not\n# a comment\n",
    "quotes \"'\nand \\ backslash",
    "%directive\n@at `tick` {a} [b] &c *d !e |f >g",
    "dash \xe2\x80\x94 and \xe2\x80\x9cquotes\xe2\x80\x9d\nsecond",
    "sep \xe2\x80\xa8 line\nsecond",
    "next \xc2\x85 line\nsecond",
    ("\xef\xbb\xbf"
     "mark\nsecond"),
    "bell \a\nsecond",
    "delete \x7f\nsecond",
    "return\r\nsecond",
    "emoji \xf0\x9f\x9a\xa2\nsecond",
};

START_TEST(a_text_is_read_again_as_it_was)
{
    for (int depth = 0; depth < 3; depth++)
        want_again(rv_str_of(texts[_i]), depth);
}
END_TEST

START_TEST(several_lines_are_a_block_that_people_can_read)
{
    rv_buf b = RV_BUF_INIT(1 << 16);

    rv_app_write_yaml(RV_STR_LIT("one \xe2\x80\x94\n\ntwo"), 1, &b);
    ck_assert_str_eq(rv_buf_cstr(&b), "|-\n    one \xe2\x80\x94\n\n    two\n");
    rv_buf_fini(&b);
}
END_TEST

START_TEST(random_texts_are_read_again)
{
    static const char *const pieces[] = {"a",  " ",  "\n",       "\t",           "#", ":", "-",
                                         "\"", "\\", "\xc3\xa9", "\xe2\x80\xa9", "|"};
    struct rv_rand_state state;
    struct rv_rand r = rv_rand_seeded(&state, 20);

    for (int n = 0; n < 500; n++) {
        rv_buf text = RV_BUF_INIT(1 << 12);
        for (uint64_t i = rv_rand_below(r, 12); i > 0; i--)
            rv_buf_puts(&text, pieces[rv_rand_below(r, RV_COUNT(pieces))]);
        want_again(rv_buf_str(&text), (int)rv_rand_below(r, 3));
        rv_buf_fini(&text);
    }
}
END_TEST

Suite *yaml_text_suite(void)
{
    Suite *s = suite_create("yaml text");
    TCase *tc = tcase_create("texts");

    tcase_add_loop_test(tc, a_text_is_read_again_as_it_was, 0, RV_COUNT(texts));
    tcase_add_test(tc, several_lines_are_a_block_that_people_can_read);
    tcase_add_test(tc, random_texts_are_read_again);
    suite_add_tcase(s, tc);
    return s;
}
