/* Texts compared line by line, in the unified format and side by side. */
#include <stdlib.h>

#include "coreengine/cli/show/lines_internal.h"
#include "tests/kit/kit.h"
#include "tests/unit/cli/suites.h"

static char *compared(const char *a, const char *b, int columns, bool color)
{
    struct rv_cli_lines lines;
    rv_buf out = RV_BUF_INIT(1 << 20);

    ck_assert_int_eq(cli_lines_compare(rv_str_of(a), rv_str_of(b), &lines, NULL), 0);
    if (columns)
        cli_lines_write_sides(&lines, columns, color, &out);
    else
        cli_lines_write_unified(&lines, color, &out);
    cli_lines_fini(&lines);
    char *text = rv_str_dup(rv_buf_str(&out));
    rv_buf_fini(&out);
    return text;
}

static const struct {
    const char *a, *b, *want;
} unified[] = {
    {"", "", ""},
    {"x\ny\n", "x\ny\n", ""},
    {"x\n", "", "@@ -1 +0,0 @@\n-x\n"},
    {"", "x", "@@ -0,0 +1 @@\n+x\n"},
    {"a\nb\nc\n", "a\nB\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"},
    {"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n", "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n"},
    {"a\n1\n2\n3\n4\n5\n6\n7\n8\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\n8\nB\n",
     "@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -7,4 +7,4 @@\n 6\n 7\n 8\n-b\n+B\n"},
    {"a\nb\nc\nd\n", "b\nc\nd\ne\n", "@@ -1,4 +1,4 @@\n-a\n b\n c\n d\n+e\n"},
    {"\033[2J\n", "x\n", "@@ -1 +1 @@\n- [2J\n+x\n"},
};

START_TEST(what_differs_in_the_unified_format)
{
    char *text = compared(unified[_i].a, unified[_i].b, 0, false);

    ck_assert_str_eq(text, unified[_i].want);
    free(text);
}
END_TEST

static const struct {
    const char *a, *b;
    int columns;
    const char *want;
} sides[] = {
    {"a\nb\n", "a\nB\n", 43, "a                      a\nb                    | B\n"},
    {"a\nb\n", "a\n", 43, "a                      a\nb                    <\n"},
    {"a\n", "a\nb\n", 10, "a                      a\n                     > b\n"},
    {"0123456789012345678901\n", "x\n", 43, "01234567890123456789 | x\n01                   |\n"},
    {"1\n2\n3\n4\n5\n6\nx\n", "1\n2\n3\n4\n5\n6\ny\n", 43,
     "... 3 equal lines\n4                      4\n5                      5\n6                      6\nx               "
     "     | y\n"},
    /* of East Asia two columns a character; marks above none */
    {"\xe6\x97\xa5\xe6\x9c\xac\xe6\x97\xa5\xe6\x9c\xac\xe6\x97\xa5\xe6\x9c\xac\xe6\x97\xa5\xe6\x9c\xac\xe6\x97\xa5\xe6"
     "\x9c\xac\xe6\x97\xa5\n",
     "e\xcc\x81\n", 43,
     "\xe6\x97\xa5\xe6\x9c\xac\xe6\x97\xa5\xe6\x9c\xac\xe6\x97\xa5\xe6\x9c\xac\xe6\x97\xa5\xe6\x9c\xac\xe6\x97\xa5\xe6"
     "\x9c\xac | e\xcc\x81\n"
     "\xe6\x97\xa5                   |\n"},
};

START_TEST(what_differs_side_by_side)
{
    char *text = compared(sides[_i].a, sides[_i].b, sides[_i].columns, false);

    ck_assert_str_eq(text, sides[_i].want);
    free(text);
}
END_TEST

START_TEST(colours_mark_what_differs)
{
    char *text = compared("a\nb\n", "a\nB\n", 43, true);

    ck_assert_str_eq(text, "a                      a\n"
                           "\033[31mb\033[0m                    | \033[32mB\033[0m\n");
    free(text);
    text = compared("b\n", "B\n", 0, true);
    ck_assert_str_eq(text, "\033[36m@@ -1 +1 @@\033[0m\n\033[31m-b\033[0m\n\033[32m+B\033[0m\n");
    free(text);
}
END_TEST

/* The lines without "+" are the first text, those without "-" the second, and no shorter list of edits is longer than
 * what was done to make the one of the other. */
START_TEST(a_comparison_has_both_texts_and_no_more_edits_than_were_made)
{
    struct rv_rand_state state;
    struct rv_rand rand = rv_rand_seeded(&state, 5);

    for (int round = 0; round < 300; round++) {
        rv_buf a = RV_BUF_INIT(1 << 16), b = RV_BUF_INIT(1 << 16),
               back[2] = {RV_BUF_INIT(1 << 16), RV_BUF_INIT(1 << 16)};
        struct rv_cli_lines lines;
        size_t edits = 0, found = 0;
        for (uint64_t n = rv_rand_below(rand, 40); n > 0; n--) {
            char line[] = {(char)('a' + rv_rand_below(rand, 4)), '\n', 0};
            bool in_a = rv_rand_below(rand, 5) > 0, in_b = rv_rand_below(rand, 5) > 0;
            rv_buf_puts(&a, in_a ? line : "");
            rv_buf_puts(&b, in_b ? line : "");
            edits += in_a != in_b;
        }
        ck_assert_int_eq(cli_lines_compare(rv_buf_str(&a), rv_buf_str(&b), &lines, NULL), 0);
        for (size_t i = 0; i < lines.n; i++)
            for (int k = 0; k < 2; k++)
                if (lines.items[i].mark != (k == 0 ? '+' : '-')) {
                    rv_buf_add_str(&back[k], lines.items[i].text);
                    rv_buf_putc(&back[k], '\n');
                }
        for (size_t i = 0; i < lines.n; i++)
            found += lines.items[i].mark != ' ';
        ck_assert_str_eq(rv_buf_cstr(&back[0]), rv_buf_cstr(&a));
        ck_assert_str_eq(rv_buf_cstr(&back[1]), rv_buf_cstr(&b));
        ck_assert_uint_le(found, edits);
        cli_lines_fini(&lines);
        rv_buf_fini(&a);
        rv_buf_fini(&b);
        rv_buf_fini(&back[0]);
        rv_buf_fini(&back[1]);
    }
}
END_TEST

START_TEST(beyond_the_limit_all_counts_as_replaced)
{
    rv_buf a = RV_BUF_INIT(1 << 20), b = RV_BUF_INIT(1 << 20);
    struct rv_cli_lines lines;

    for (int i = 0; i < RV_CLI_LINES_MAX_EDITS; i++) {
        rv_buf_printf(&a, "a%d\nsame\n", i);
        rv_buf_printf(&b, "b%d\nsame\n", i);
    }
    ck_assert_int_eq(cli_lines_compare(rv_buf_str(&a), rv_buf_str(&b), &lines, NULL), 0);
    ck_assert_uint_eq(lines.n, 4 * RV_CLI_LINES_MAX_EDITS - 1);
    ck_assert_int_eq(lines.items[0].mark, '-');
    ck_assert_int_eq(lines.items[lines.n - 2].mark, '+');
    ck_assert_int_eq(lines.items[lines.n - 1].mark, ' ');
    cli_lines_fini(&lines);
    rv_buf_fini(&a);
    rv_buf_fini(&b);
}
END_TEST

Suite *lines_suite(void)
{
    Suite *suite = suite_create("lines");
    TCase *tc = tcase_create("lines");

    tcase_add_loop_test(tc, what_differs_in_the_unified_format, 0, RV_COUNT(unified));
    tcase_add_loop_test(tc, what_differs_side_by_side, 0, RV_COUNT(sides));
    tcase_add_test(tc, colours_mark_what_differs);
    tcase_add_test(tc, a_comparison_has_both_texts_and_no_more_edits_than_were_made);
    tcase_add_test(tc, beyond_the_limit_all_counts_as_replaced);
    suite_add_tcase(suite, tc);
    return suite;
}
