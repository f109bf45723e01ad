/* Columns for people, and the rows of a query. */
#include <string.h>

#include "coreengine/cli/show/table_internal.h"
#include "tests/kit/kit.h"
#include "tests/unit/cli/suites.h"

static const struct rv_cli_column columns[] = {{"NAME", 8, false}, {"N", 0, true}, {"LAST", 0, false}};

static void want_table(const rv_cli_table *t, const char *want)
{
    rv_buf text = RV_BUF_INIT(1 << 16);
    rv_err *err = NULL;

    ck_assert_int_eq(cli_table_write(t, false, &text, &err), 0);
    ck_assert_str_eq(rv_buf_cstr(&text), want);
    rv_buf_fini(&text);
}

START_TEST(a_table_without_rows_is_nothing)
{
    rv_cli_table *t = cli_table_new(columns, RV_COUNT(columns));

    want_table(t, "");
    cli_table_free(t);
}
END_TEST

START_TEST(columns_are_as_wide_as_their_widest_cell_and_no_wider_than_they_may)
{
    rv_cli_table *t = cli_table_new(columns, RV_COUNT(columns));

    cli_table_add_text(t, "a");
    cli_table_add_int(t, 12345);
    cli_table_add_text(t, NULL);
    cli_table_add_text(t, "longer than it may");
    cli_table_add_int(t, 7);
    cli_table_add_text(t, "z");
    want_table(t, "NAME           N  LAST\n"
                  "a         12,345  -\n"
                  "longe...       7  z\n");
    cli_table_free(t);
}
END_TEST

START_TEST(widths_are_those_of_characters_and_control_characters_are_blanks)
{
    rv_cli_table *t = cli_table_new(columns, RV_COUNT(columns));

    cli_table_add_text(t, "\xc3\xa4\xc3\xb6\xc3\xbc");
    cli_table_add_int(t, 1);
    cli_table_add_text(t, "a\n\033[2Jb");
    cli_table_add_text(t, "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc");
    cli_table_add_int(t, 2);
    cli_table_add_text(t, "");
    want_table(t, "NAME      N  LAST\n"
                  "\xc3\xa4\xc3\xb6\xc3\xbc       1  a  [2Jb\n"
                  "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6...  2\n");
    cli_table_free(t);
}
END_TEST

/* 漢 takes two columns, e with an accent behind it one; a cell is never cut within a character. */
START_TEST(widths_are_those_of_a_terminal)
{
    rv_cli_table *t = cli_table_new(columns, RV_COUNT(columns));

    cli_table_add_text(t, "漢字");
    cli_table_add_int(t, 1);
    cli_table_add_text(t, "x");
    cli_table_add_text(t, "e\xcc\x81t\xc3\xa9");
    cli_table_add_int(t, 2);
    cli_table_add_text(t, "y");
    cli_table_add_text(t, "漢字漢字漢");
    cli_table_add_int(t, 3);
    cli_table_add_text(t, "z");
    want_table(t, "NAME     N  LAST\n"
                  "漢字     1  x\n"
                  "e\xcc\x81t\xc3\xa9      2  y\n"
                  "漢字...  3  z\n");
    cli_table_free(t);
}
END_TEST

START_TEST(a_cell_does_not_turn_the_line_around)
{
    rv_cli_table *t = cli_table_new(columns, RV_COUNT(columns));

    cli_table_add_text(t, "a\xe2\x80\xae"
                          "b");
    cli_table_add_int(t, 1);
    cli_table_add_text(t, "\xc2\x9b"
                          "2J");
    want_table(t, "NAME  N  LAST\n"
                  "a b   1   2J\n");
    cli_table_free(t);
}
END_TEST

static const struct {
    const char *rows, *want;
} queries[] = {
    {"[]", "(no results)\n"},
    {"[{\"entity_type\":\"t\",\"data\":{\"a\":null}}]", "entity_type                              | a\n"
                                                        "t                                        | \n"},
    {"[{\"entity_type\":\"t\",\"data\":{\"a\":1,\"b\":\"x\\ny\"}},{\"entity_type\":\"u\",\"data\":{\"c\":{\"k\":[1]}}}"
     "]",
     "entity_type                              | a                                        | b                          "
     "       "
     "       | c\n"
     "t                                        | 1                                        | x y                        "
     "       "
     "       | \n"
     "u                                        |                                          |                            "
     "       "
     "       | {\"k\":[1]}\n"},
    {"[{\"entity_type\":\"t\",\"data\":{\"a\":\"0123456789012345678901234567890123456789\",\"b\":"
     "\"01234567890123456789012345678901234567890\"}}]",
     "entity_type                              | a                                        | b\n"
     "t                                        | 0123456789012345678901234567890123456789 | "
     "0123456789012345678901234567890123456...\n"},
};

/* Proves p8.20/query */
START_TEST(rows_of_a_query_have_columns_of_forty_characters)
{
    rv_buf text = RV_BUF_INIT(1 << 16);
    json_object *rows = NULL;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_json_parse(rv_str_of(queries[_i].rows), NULL, &rows, NULL), 0);
    ck_assert_int_eq(cli_query_write_table(rows, &text, &err), 0);
    ck_assert_str_eq(rv_buf_cstr(&text), queries[_i].want);
    rv_buf_fini(&text);
    json_object_put(rows);
}
END_TEST

Suite *tables_suite(void)
{
    Suite *s = suite_create("tables");
    TCase *tc = tcase_create("tables");

    tcase_add_test(tc, a_table_without_rows_is_nothing);
    tcase_add_test(tc, columns_are_as_wide_as_their_widest_cell_and_no_wider_than_they_may);
    tcase_add_test(tc, widths_are_those_of_characters_and_control_characters_are_blanks);
    tcase_add_test(tc, widths_are_those_of_a_terminal);
    tcase_add_test(tc, a_cell_does_not_turn_the_line_around);
    tcase_add_loop_test(tc, rows_of_a_query_have_columns_of_forty_characters, 0, RV_COUNT(queries));
    suite_add_tcase(s, tc);
    return s;
}
