/* Layouts of YAML files: what is changed, what is kept, and what is refused. */
#include <stdlib.h>

#include "coreengine/lang/lang.h"
#include "tests/kit/kit.h"
#include "tests/unit/yaml/suites.h"

static char *formatted(const char *text)
{
    rv_findings *findings = rv_findings_new();
    rv_buf out = RV_BUF_INIT(RV_YAML_MAX_BYTES);
    rv_err *err = NULL;

    int rc = rv_yaml_format(rv_str_of(text), "x.yaml", findings, &out, &err);
    if (rc < 0)
        ck_abort_msg("%s", rv_kit_err_take(err));
    rv_buf said = RV_BUF_INIT(1 << 16);
    rv_findings_write_text(findings, false, &said);
    ck_assert_msg(rv_findings_n(findings) == 0, "%s", rv_buf_cstr(&said));
    rv_buf_fini(&said);
    rv_findings_free(findings);
    char *copy = rv_str_dup(rv_buf_str(&out));
    rv_buf_fini(&out);
    return copy;
}

/* clang-format off */
static const struct {
    const char *name, *from, *to;
} layouts[] = {
    {"levels have two columns",
     "a:\n    b:\n       c: 1\n    d: 2\n",
     "a:\n  b:\n    c: 1\n  d: 2\n"},
    {"a list stands below its key",
     "a:\n- x\n-   y: 1\n    z: 2\n- - p\n  - q\nb: 1\n",
     "a:\n  - x\n  - y: 1\n    z: 2\n  - - p\n    - q\nb: 1\n"},
    {"one blank between tokens",
     "a  :   1\nb: { x : 1,y: [ 1,2 , 3 ], z: }\nc: [ ]\n\"d\":\t'e'\n",
     "a: 1\nb: {x: 1, y: [1, 2, 3], z: }\nc: []\n\"d\": 'e'\n"},
    {"lines end alike, and the last one ends",
     "a: 1  \r\nb: 2\t\r\nc: 3", "a: 1\nb: 2\nc: 3\n"},
    {"of blank lines in a row one stays",
     "\n\n# head\n\n\n\na: 1\n\n\nb: 2\n\n\n", "# head\n\na: 1\n\nb: 2\n"},
    {"a comment takes the column of its level",
     "a:\n    # of b\n    b: 1\n      # of c\n    c: 2\n    # of a\n# of d\nd: 3\n # of the end\n",
     "a:\n  # of b\n  b: 1\n  # of c\n  c: 2\n  # of a\n# of d\nd: 3\n# of the end\n"},
    {"entries that are commented out stay inside",
     "a:\n    # - x\nb:\n    -   c: 1\n        # d: 2\n    # - c: 3\n# last\n",
     "a:\n  # - x\nb:\n  - c: 1\n    # d: 2\n  # - c: 3\n# last\n"},
    {"comments behind values keep their column",
     "a: 1      # one\nbcd: 2    # two\ne:    3#x\nf: 4 # four\n",
     "a: 1      # one\nbcd: 2    # two\ne: 3#x\nf: 4 # four\n"},
    {"a longer line pushes its comment", "a: [1,2,3] # c\n", "a: [1, 2, 3] # c\n"},
    {"quotes are the author's", "a: 'x'\nb: \"x\"\nc: x\n\"d\": \"\\u00e4\"\n", "a: 'x'\nb: \"x\"\nc: x\n\"d\": \"\\u00e4\"\n"},
    {"the text of a block scalar moves with its level",
     "a:\n    b: |   # why\n        one\n          two  \n\n        three\t\n\n\n    c: >-\n     x\n     y\n",
     "a:\n  b: |   # why\n    one\n      two  \n\n    three\t\n\n  c: >-\n    x\n    y\n"},
    {"an indentation that is written down stays", "a:\n    b: |2\n        x\n       y\n", "a:\n  b: |2\n      x\n     y\n"},
    {"lines that a block scalar keeps are kept", "a: |+\n   x\n\n\nb: |+\n\n\nc: 1\n", "a: |+\n  x\n\n\nb: |+\n\n\nc: 1\n"},
    {"a block scalar in a list below its key", "a:\n- |2\n    x\n- y: |\n   z\n", "a:\n  - |2\n      x\n  - y: |\n      z\n"},
    {"the value of a block scalar at the end has no end of line", "a: |\n    x", "a: |\n  x"},
    {"without its last line end", "a: |-\n    x", "a: |-\n  x\n"},
    {"the text of a block scalar is nowhere taken for a comment", "a: |\n  # x\n\n  # y\n# z\n", "a: |\n  # x\n\n  # y\n# z\n"},
    {"further lines of a scalar", "a: one\n  two\n       three\nb: \"x\n\n    y\\\n  \\  z\"\n", "a: one\n  two\n  three\nb: \"x\n\n  y\\\n  \\  z\"\n"},
    {"further lines of lists and maps in flow style",
     "a: {b: [1,\n           2], c: {\n   d: 1,   # one\n      # two\n\n   e: 2 }}\nf: [\n1\n]\n",
     "a: {b: [1,\n  2], c: {\n    d: 1,   # one\n    # two\n\n    e: 2}}\nf: [\n  1\n]\n"},
    {"a list of maps in flow style", "a:\n- {b: 1,\n   c: [\n 2\n ]}\n", "a:\n  - {b: 1,\n      c: [\n        2\n      ]}\n"},
    {"values on a line of their own", "a:\n      \"x\"\nb:\n - \n   c: 1\n -\n     [1]\n", "a:\n  \"x\"\nb:\n  -\n    c: 1\n  -\n    [1]\n"},
    {"anchors", "a:   &x   {b: 1}\nc: &y\n    d:  *x\ne:\n- &z  1\n- *y\n", "a: &x {b: 1}\nc: &y\n  d: *x\ne:\n  - &z 1\n  - *y\n"},
    {"keys that are marked", "?   a\n:   1\n? b\n:\n    - c\n", "? a\n: 1\n? b\n:\n  - c\n"},
    {"document markers", "%YAML 1.1\n---   # start\na:  1\n...\n# end\n", "%YAML 1.1\n---   # start\na: 1\n...\n# end\n"},
    {"a byte-order mark goes", "\xef\xbb\xbf" "a:  1\n", "a: 1\n"},
    {"characters of several bytes", "\"\xc3\xa4\":   \xe2\x82\xac # \xf0\x9f\x98\x80\nb:   c\n", "\"\xc3\xa4\": \xe2\x82\xac   # \xf0\x9f\x98\x80\nb: c\n"},
    {"nothing", "", ""},
    {"blanks alone", "  \n\n", ""},
    {"a comment alone", "  # x", "# x\n"},
    {"a scalar alone", "  x\n    y", "x\n  y\n"},
};
/* clang-format on */

START_TEST(lays_out)
{
    char *first = formatted(layouts[_i].from), *again = formatted(first);

    ck_assert_msg(strcmp(first, layouts[_i].to) == 0, "%s:\n%s", layouts[_i].name, first);
    ck_assert_str_eq(again, first);
    free(first);
    free(again);
}
END_TEST

static const char *const faults[] = {"a: [1\n", "a: 1\na: 2\n", "--- \na: 1\n---\nb: 1\n", "a: !x 1\n", "\ta: 1\n"};

START_TEST(what_is_not_a_file_of_ours_is_a_finding)
{
    rv_findings *findings = rv_findings_new();
    rv_buf out = RV_BUF_INIT(RV_YAML_MAX_BYTES);

    ck_assert_int_eq(rv_yaml_format(rv_str_of(faults[_i]), "x.yaml", findings, &out, NULL), 0);
    ck_assert_uint_gt(rv_findings_n_errors(findings), 0);
    ck_assert_int_gt(rv_findings_at(findings, 0).src.line, 0);
    ck_assert_uint_eq(out.len, 0);
    rv_findings_free(findings);
    rv_buf_fini(&out);
}
END_TEST

START_TEST(a_layout_that_would_say_something_else_is_refused)
{
    rv_findings *findings = rv_findings_new();
    rv_buf out = RV_BUF_INIT(RV_YAML_MAX_BYTES);
    rv_err *err = NULL;

    ck_assert_int_eq(rv_yaml_format(RV_STR_LIT(" a: 1\n --- b: 2\n"), "x.yaml", findings, &out, &err), RV_E_INVALID);
    ck_assert_uint_eq(out.len, 0);
    char *said = rv_kit_err_take(err);
    ck_assert_ptr_nonnull(strstr(said, "the layout would change what the file says"));
    free(said);
    rv_findings_free(findings);
    rv_buf_fini(&out);
}
END_TEST

START_TEST(a_result_that_is_too_long_is_an_error)
{
    rv_findings *findings = rv_findings_new();
    rv_buf text = RV_BUF_INIT(RV_YAML_MAX_BYTES), out = RV_BUF_INIT(RV_YAML_MAX_BYTES);
    rv_err *err = NULL;

    rv_buf_puts(&text, "a:\n b:\n  c:\n   d: |\n");
    while (text.len + 7 < RV_YAML_MAX_BYTES)
        rv_buf_puts(&text, "    x\n");
    ck_assert_int_eq(rv_yaml_format(rv_buf_str(&text), "x.yaml", findings, &out, &err), RV_E_LIMIT);
    ck_assert_uint_eq(out.len, 0);
    rv_err_free(err);
    rv_findings_free(findings);
    rv_buf_fini(&text);
    rv_buf_fini(&out);
}
END_TEST

TCase *format_case(void)
{
    TCase *tc = tcase_create("format");

    tcase_add_loop_test(tc, lays_out, 0, RV_COUNT(layouts));
    tcase_add_loop_test(tc, what_is_not_a_file_of_ours_is_a_finding, 0, RV_COUNT(faults));
    tcase_add_test(tc, a_layout_that_would_say_something_else_is_refused);
    tcase_add_test(tc, a_result_that_is_too_long_is_an_error);
    return tc;
}
