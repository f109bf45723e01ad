/* What is refused, where, and how it is said; places of what is accepted; limits. */
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/yaml/suites.h"

static const struct {
    const char *text;
    const char *want; /* the whole print */
} refused[] = {
    {"a: 1\na: 2\n", "t.yaml:2:1: error: the key \"a\" is here twice; the first one is on line 1\n"
                     "  hint: remove one of them\n"},
    {"a: {x: 1, 'x': 2}\n", "t.yaml:1:11: error: the key \"x\" is here twice; the first one is on line 1\n"
                            "  hint: remove one of them\n"},
    {"a: !!str 1\n", "t.yaml:1:4: error: the tag \"tag:yaml.org,2002:str\" is not supported\n"
                     "  hint: leave it out: types follow from how a value is written\n"},
    {"a: !own [1]\n", "t.yaml:1:4: error: the tag \"!own\" is not supported\n"
                      "  hint: leave it out: types follow from how a value is written\n"},
    {"a: &x {b: 1}\nc:\n  <<: *x\n", "t.yaml:3:3: error: merge keys (\"<<\") are not supported\n"
                                     "  hint: write the keys out, or use an alias for a whole value\n"},
    {"a: &x [*x]\n", "t.yaml:1:8: error: the alias \"*x\" stands inside the value it refers to\n"
                     "  hint: write the value out, or refer to an anchor whose value ends above\n"},
    {"a: *gone\n", "t.yaml:1:4: error: no anchor \"&gone\" for this alias\n"
                   "  hint: an anchor is written \"&name\" before the value, above its first use\n"},
    {"&k a: 1\n*k : 2\n", "t.yaml:1:1: error: an alias cannot be a key\n"},
    {"a: 1\n---\nb: 2\n", "t.yaml:2:1: error: the file has a second document\n"
                          "  hint: remove the \"---\" and what follows\n"},
    {"[a]: 1\n", "t.yaml:1:1: error: a list cannot be a key\n"},
    {"{a: 1}: 1\n", "t.yaml:1:1: error: a map cannot be a key\n"
                    "  hint: put a value that begins with a template in quotes: \"{{name}}\"\n"},
    {"? \n: 1\n", "t.yaml:1:2: error: a key is missing before \":\"\n"},
    {"a: \"x\\0y\"\n", "t.yaml:1:4: error: the string has a NUL character\n"},
    /* several at once */
    {"a: 1\na: !x 2\nb: *c\n", "t.yaml:2:1: error: the key \"a\" is here twice; the first one is on line 1\n"
                               "  hint: remove one of them\n"
                               "t.yaml:2:4: error: the tag \"!x\" is not supported\n"
                               "  hint: leave it out: types follow from how a value is written\n"
                               "t.yaml:3:4: error: no anchor \"&c\" for this alias\n"
                               "  hint: an anchor is written \"&name\" before the value, above its first use\n"},
    /* syntax */
    {"a:\n\tb: 1\n", "t.yaml:2:1: error: a tab stands where indentation is expected\n"
                     "  hint: indent with blanks; YAML allows no tabs there\n"},
    {"a: @b\n", "t.yaml:1:4: error: a value cannot begin with \"@\"\n  hint: put the value in quotes\n"},
    {"a: b: c\n", "t.yaml:1:5: error: a \":\" is not allowed here\n"
                  "  hint: put a value that contains \": \" in quotes, or check the indentation of this line\n"},
    {"a: 1\nb\nc: 2\n", "t.yaml:3:1: error: a \":\" is missing after a key (in what began on line 2)\n"
                        "  hint: write \"key: value\"; a text of several lines needs \"|\" after the \":\" and deeper "
                        "indentation\n"},
    {"a: [1, 2\nb: 3\n", "t.yaml:2:2: error: a \",\" or the closing \"]\" is missing (in the list that begins at 1:4)\n"
                         "  hint: close it, and put a comma between two values\n"},
    {"a: {x: 1\n", "t.yaml:2:1: error: a \",\" or the closing \"}\" is missing (in the map that begins at 1:4)\n"
                   "  hint: close it, and put a comma between two values\n"},
    {"a: [\n", "t.yaml:2:1: error: the file ends inside a list or map (in the list that begins at 1:4)\n"
               "  hint: close it with ] or }\n"},
    {"a: [[b]\n - c\n", "t.yaml:2:2: error: a \",\" or the closing \"]\" is missing (in the list that begins at 1:4)\n"
                        "  hint: close it, and put a comma between two values\n"},
    {"a: {b: [ - {c\n", "t.yaml:1:10: error: \"- \" cannot begin a value between brackets (in the list that begins at "
                        "1:8)\n  hint: close the bracket first, or separate the values by commas\n"},
    {"a: {b: [c]\nd: {\n - e\n",
     "t.yaml:2:1: error: a \",\" or the closing \"}\" is missing (in the map that begins at "
     "1:4)\n  hint: close it, and put a comma between two values\n"},
    {"a: 'open\n", "t.yaml:2:1: error: the file ends inside a quoted string (in what began on line 1)\n"
                   "  hint: close the quote\n"},
    {"a: \"\\q\"\n", "t.yaml:1:5: error: this escape does not exist\n"
                     "  hint: write \"\\\\\" for a backslash, or use single quotes, which know no escapes\n"},
    {"a:\n  - 1\n b: 2\n",
     "t.yaml:3:2: error: this line fits no map or list that is open here (in what began on line 1)\n"
     "  hint: it must be indented exactly as the lines it belongs to; a quoted value must end "
     "where its quote does\n"},
    {"a: | x\n  y\n", "t.yaml:1:6: error: something follows that cannot stand behind \"|\" or \">\"\n"
                      "  hint: begin the text on the next line\n"},
    {"a: 1\nb: \x01\n", "t.yaml:2:4: error: control characters are not allowed\n"},
    /* libyaml's own mark is 1:1 here */
    {"a: 1\nb: \xc3\xa4\xff\n", "t.yaml:2:5: error: the byte 0xff is not valid UTF-8 here\n  hint: save the file as "
                                "UTF-8\n"},
    {"\xff\xfe"
     "a\0",
     "t.yaml:1:1: error: the byte 0xff is not valid UTF-8 here\n  hint: save the file as UTF-8\n"},
};

START_TEST(refuses_with_place_and_reason)
{
    char *found = findings_of(rv_str_of(refused[_i].text), NULL);

    ck_assert_str_eq(found, refused[_i].want);
    free(found);
}
END_TEST

START_TEST(keeps_the_place_of_every_node)
{
    rv_yaml *doc = NULL;
    char *found = findings_of(RV_STR_LIT("\xef\xbb\xbf# comment\nkey: value\nlist:\n  - \"q\"\n  - {\xc3\xa4: [1]}\n"
                                         "text: |\n\n    one\n      two\n"),
                              &doc);
    const struct rv_node *root = rv_yaml_root(doc);
    const struct rv_node *list = rv_node_get(root, "list");
    const struct rv_node *text = rv_node_get(root, "text");
    struct rv_src src;

    ck_assert_str_eq(found, "");
    ck_assert_int_eq(root->keys[0]->src.line, 2);
    ck_assert_int_eq(root->keys[0]->src.col, 1);
    ck_assert_int_eq(root->items[0]->src.col, 6);
    ck_assert_str_eq(root->src.file, "t.yaml");
    ck_assert_int_eq(list->items[0]->src.line, 4);
    ck_assert_int_eq(list->items[0]->src.col, 5);
    ck_assert(list->items[0]->is_quoted);
    ck_assert_int_eq(rv_node_text_src(list->items[0]).col, 6);
    ck_assert_int_eq(list->items[1]->keys[0]->src.col, 6);
    ck_assert_int_eq(list->items[1]->items[0]->src.col, 9); /* characters, not bytes */
    ck_assert_int_eq(text->src.line, 6);
    src = rv_node_text_src(text);
    ck_assert_int_eq(src.line, 7);
    ck_assert_int_eq(src.col, 5);
    ck_assert(text->is_block);
    ck_assert_int_eq(text->indent, 4);
    ck_assert_str_eq(text->text.ptr, "\none\n  two\n");
    ck_assert_ptr_null(rv_node_get(root, "none"));
    ck_assert_ptr_null(rv_node_get(list, "key"));
    free(found);
    rv_yaml_free(doc);
}
END_TEST

START_TEST(shares_what_an_alias_refers_to)
{
    rv_yaml *doc = NULL;
    char *found = findings_of(RV_STR_LIT("a: &x [1]\nb: *x\nc: &x 2\nd: *x\n"), &doc);
    const struct rv_node *root = rv_yaml_root(doc);

    ck_assert_str_eq(found, "");
    ck_assert_ptr_eq(rv_node_get(root, "a"), rv_node_get(root, "b"));
    ck_assert_int_eq(rv_node_get(root, "d")->i64, 2); /* the latest anchor of a name */
    free(found);
    rv_yaml_free(doc);
}
END_TEST

START_TEST(a_byte_order_mark_is_no_part_of_the_first_line)
{
    char *found = findings_of(rv_str_of("\xef\xbb\xbf"
                                        "a: 1\nb: !x 2\n"),
                              NULL);

    ck_assert_str_eq(found, "t.yaml:2:4: error: the tag \"!x\" is not supported\n"
                            "  hint: leave it out: types follow from how a value is written\n");
    free(found);
}
END_TEST

START_TEST(accepts_an_empty_file_as_nothing)
{
    rv_yaml *doc = NULL;
    char *found = findings_of(RV_STR_LIT("# only a comment\n"), &doc);

    ck_assert_str_eq(found, "");
    ck_assert_ptr_nonnull(doc);
    ck_assert_ptr_null(rv_yaml_root(doc));
    free(found);
    rv_yaml_free(doc);
}
END_TEST

static void repeat(rv_buf *b, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        rv_buf_puts(b, text);
}

/* Nested flow collections cost libyaml quadratic time: the depth limit must end the work early. */
static void depth_bomb(rv_buf *b)
{
    repeat(b, "[", 500000);
}

static void billion_laughs(rv_buf *b)
{
    rv_buf_puts(b, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 20; i++) {
        rv_buf_printf(b, "a%d: &a%d [", i, i);
        for (int k = 0; k < 10; k++)
            rv_buf_printf(b, "%s*a%d", k ? ", " : "", i - 1);
        rv_buf_puts(b, "]\n");
    }
}

static void deep_aliases(rv_buf *b)
{
    rv_buf_puts(b, "a0: &a0 [[[[[[[[1]]]]]]]]\n");
    for (int i = 1; i < 12; i++)
        rv_buf_printf(b, "a%d: &a%d [[[[[[[[*a%d]]]]]]]]\n", i, i, i - 1);
}

static void many_nodes(rv_buf *b)
{
    repeat(b, "- 1\n", 200001);
}

static void many_aliases(rv_buf *b)
{
    rv_buf_puts(b, "- &a 1\n");
    repeat(b, "- *a\n", 1001);
}

static void many_anchors(rv_buf *b)
{
    for (int i = 0; i < 1001; i++)
        rv_buf_printf(b, "- &a%d 1\n", i);
}

static void many_bytes(rv_buf *b)
{
    repeat(b, "# comment comment\n", RV_YAML_MAX_BYTES / 18 + 1);
}

static const struct {
    void (*make)(rv_buf *b);
    const char *want;
} bombs[] = {
    {depth_bomb, "t.yaml:1:65: error: the file is nested too deeply (the limit is 64)\n"},
    {billion_laughs, "t.yaml:6:10: error: aliases make the file too large (the limit is 200000)\n"},
    {deep_aliases, "t.yaml:8:17: error: aliases make the file nested too deeply (the limit is 64)\n"},
    {many_nodes, "t.yaml:200000:3: error: the file has too many values (the limit is 200000)\n"},
    {many_aliases, "t.yaml:1002:3: error: the file has too many aliases (the limit is 1000)\n"},
    {many_anchors, "t.yaml:1001:3: error: the file has too many anchors (the limit is 1000)\n"},
    {many_bytes, "t.yaml:1:1: error: the file has 1048590 bytes (the limit is 1048576)\n"},
};

/* The place says how far it was read; without the limits it would take minutes. */
START_TEST(stops_at_the_limits_early)
{
    rv_buf b = RV_BUF_INIT(RV_YAML_MAX_BYTES * 2);
    char *found;

    bombs[_i].make(&b);
    ck_assert_int_eq(b.rc, 0);
    found = findings_of(rv_buf_str(&b), NULL);
    ck_assert_str_eq(found, bombs[_i].want);
    free(found);
    rv_buf_fini(&b);
}
END_TEST

START_TEST(reads_files_and_says_which_can_not_be_read)
{
    char *dir = rv_kit_tmpdir();
    char *path = rv_kit_path(dir, "x.yaml");
    rv_findings *findings = rv_findings_new();
    rv_yaml *doc = NULL;

    ck_assert_int_eq(rv_yaml_read(path, findings, &doc, NULL), RV_E_NOT_FOUND);
    rv_kit_write(path, "a: 1\n");
    ck_assert_int_eq(rv_yaml_read(path, findings, &doc, NULL), 0);
    ck_assert_str_eq(rv_yaml_root(doc)->src.file, path);
    ck_assert_uint_eq(rv_findings_n(findings), 0);
    rv_yaml_free(doc);
    rv_findings_free(findings);
    free(path);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

TCase *reader_case(void)
{
    TCase *tc = tcase_create("reader");

    tcase_add_loop_test(tc, refuses_with_place_and_reason, 0, RV_COUNT(refused));
    tcase_add_test(tc, keeps_the_place_of_every_node);
    tcase_add_test(tc, shares_what_an_alias_refers_to);
    tcase_add_test(tc, a_byte_order_mark_is_no_part_of_the_first_line);
    tcase_add_test(tc, accepts_an_empty_file_as_nothing);
    tcase_add_loop_test(tc, stops_at_the_limits_early, 0, RV_COUNT(bombs));
    tcase_add_test(tc, reads_files_and_says_which_can_not_be_read);
    return tc;
}
