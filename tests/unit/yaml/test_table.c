/* Tables: rows of CSV, of lines of JSON, of YAML, and what is wrong with them. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/lang/lang.h"
#include "tests/kit/kit.h"
#include "tests/unit/yaml/suites.h"

static const struct {
    const char *name, *text;
    const char *rows;  /* NULL: it is refused */
    const char *lines; /* of the rows, or the error */
} tables[] = {
    {"t.csv", "a,b\n1,x\n", "[{\"a\":1,\"b\":\"x\"}]", "2"},
    {"t.csv", "a,b\r\n\"1\",\"x, \"\"y\"\"\nz\"\r\n\r\n2.50,true\r\n",
     "[{\"a\":\"1\",\"b\":\"x, \\\"y\\\"\\nz\"},{\"a\":2.50,\"b\":true}]", "2 5"},
    {"t.csv",
     "\xEF\xBB\xBF"
     "a\n,\n",
     NULL, "t.csv:2:1: the row has 2 cells, the first line names 1 column"},
    {"t.csv", "a\n x \nnull\n{}\n-1e3\n0x1\n",
     "[{\"a\":\" x \"},{\"a\":\"null\"},{\"a\":\"{}\"},{\"a\":-1e3},{\"a\":\"0x1\"}]", "2 3 4 5 6"},
    {"t.csv", "a,b\n,\n", "[{\"a\":\"\",\"b\":\"\"}]", "2"},
    {"t.csv", "a\n", "[]", ""},
    {"t.csv", "", NULL, "t.csv:1:1: the table is empty"},
    {"t.csv", "\xEF\xBB\xBF\r\n", NULL, "t.csv:1:1: the table is empty"},
    {"t.csv", "a,,b\n", NULL, "t.csv:1:1: column 2 has no name"},
    {"t.csv", "a,b,a\n", NULL, "t.csv:1:1: two columns are called \"a\""},
    {"t.csv", "a\n1,2\n", NULL, "t.csv:2:1: the row has 2 cells, the first line names 1 column"},
    {"t.csv", "a\n\"x\n", NULL, "t.csv:2:1: a quoted cell does not end"},
    {"t.csv", "a\n\"x\"y\n", NULL, "t.csv:2:4: a comma is missing behind a quoted cell"},
    {"t.csv", "a,b\n\xC3\xA4,\"x\n", NULL, "t.csv:2:3: a quoted cell does not end"},
    {"t.csv", "a\n\xC3\xA4\xff\n", NULL, "t.csv:2:2: the byte 0xff is not valid UTF-8 here"},
    {"t.jsonl", "{\"a\": 1}\n\n {\"b\": [2]} \n", "[{\"a\":1},{\"b\":[2]}]", "1 3"},
    {"t.ndjson", "{\"a\": 1}\n[]\n", NULL, "t.ndjson:2:1: a row must be an object"},
    {"t.jsonl", "{\"a\": 1\n", NULL, "t.jsonl:1:1: read a row: "},
    {"t.yaml", "- {a: 1, b: no}\n- a: {c: [2]}\n", "[{\"a\":1,\"b\":\"no\"},{\"a\":{\"c\":[2]}}]", "1 2"},
    {"t.json", "[{\"a\": 1},\n {\"a\": null}]", "[{\"a\":1},{\"a\":null}]", "1 2"},
    {"t.json", "[{\"a\": \"x\xE2\x80\xA8y \xC2\x85z\"}]", "[{\"a\":\"x\xE2\x80\xA8y \xC2\x85z\"}]", "1"},
    {"t.json", "\xEF\xBB\xBF\n[\n{\n},\n\n {\"a\": [\n1, {\"[\": 2}]}\n, {}]\n", "[{},{\"a\":[1,{\"[\":2}]},{}]",
     "3 6 8"},
    {"t.json", "[{},\n 1]", NULL, "t.json:2:1: a row must be an object, not integer"},
    {"t.json", "{}", NULL, "t.json:1:1: a table must be a list of objects"},
    {"t.json", "[{}\n {}]", NULL, "t.json:1:1: read a table: "},
    {"t.yml", "a: 1\n", NULL, "t.yml:1:1: a table must be a list of maps"},
    {"t.yml", "", NULL, "t.yml:1:1: a table must be a list of maps"},
    {"t.yaml", "- a\n", NULL, "t.yaml:1:3: a row must be a map, not a string"},
    {"t.yaml", "- {a: 1, a: 2}\n", NULL, "t.yaml:1:10: "},
    {"t.txt", "a\n1\n", NULL, "\"t.txt\" is not a table"},
};

static void write_place(const rv_err *err, rv_buf *b)
{
    struct rv_src src = rv_err_src(err);

    if (src.file)
        rv_buf_printf(b, "%s:%d", src.file, src.line);
    if (src.col > 0)
        rv_buf_printf(b, ":%d", src.col);
    rv_buf_printf(b, "%s%s", src.file ? ": " : "", rv_err_text(err));
    for (const rv_err *cause = rv_err_cause(err); cause; cause = rv_err_cause(cause))
        rv_buf_printf(b, ": %s", rv_err_text(cause));
}

START_TEST(reads_a_table_by_the_end_of_its_name)
{
    RV_AUTO(rv_buf_fini) rv_buf b = RV_BUF_INIT(1 << 16);
    struct rv_table t = {0};
    rv_err *err = NULL;
    int rc = rv_table_parse(rv_str_of(tables[_i].text), tables[_i].name, &t, &err);

    if (!tables[_i].rows) {
        ck_assert_int_lt(rc, 0);
        ck_assert_int_eq(rv_table_parse(rv_str_of(tables[_i].text), tables[_i].name, &t, NULL), rc);
        write_place(err, &b);
        ck_assert_msg(strncmp(rv_buf_cstr(&b), tables[_i].lines, strlen(tables[_i].lines)) == 0, "%s", rv_buf_cstr(&b));
        rv_err_free(err);
        return;
    }
    ck_assert_int_eq(rc, 0);
    rv_json_write(t.rows, &b);
    ck_assert_str_eq(rv_buf_cstr(&b), tables[_i].rows);
    rv_buf_clear(&b);
    for (size_t i = 0; i < json_object_array_length(t.rows); i++)
        rv_buf_printf(&b, "%s%d", i ? " " : "", t.lines[i]);
    ck_assert_str_eq(rv_buf_cstr(&b), tables[_i].lines);
    rv_table_fini(&t);
}
END_TEST

START_TEST(refuses_what_exceeds_its_limits)
{
    RV_AUTO(rv_buf_fini) rv_buf b = RV_BUF_INIT(RV_TABLE_MAX_BYTES + 2);
    struct rv_table t = {0};
    rv_err *err = NULL;

    rv_buf_puts(&b, "a\n");
    for (int i = 0; i < RV_TABLE_MAX_ROWS; i++)
        rv_buf_puts(&b, "1\n");
    ck_assert_int_eq(rv_table_parse(rv_buf_str(&b), "t.csv", &t, &err), 0);
    rv_table_fini(&t);
    rv_buf_puts(&b, "1\n");
    ck_assert_int_eq(rv_table_parse(rv_buf_str(&b), "t.csv", &t, &err), RV_E_LIMIT);
    rv_err_free(err);
    err = NULL;
    rv_buf_clear(&b);
    for (int i = 0; i <= RV_TABLE_MAX_COLUMNS; i++)
        rv_buf_printf(&b, "%sc%d", i ? "," : "", i);
    ck_assert_int_eq(rv_table_parse(rv_buf_str(&b), "t.csv", &t, &err), RV_E_LIMIT);
    rv_err_free(err);
    err = NULL;
    rv_buf_clear(&b);
    while (b.len <= RV_TABLE_MAX_BYTES)
        rv_buf_puts(&b, "[]");
    ck_assert_int_eq(rv_table_parse(rv_buf_str(&b), "t.json", &t, &err), RV_E_LIMIT);
    rv_err_free(err);
}
END_TEST

START_TEST(a_nul_byte_is_called_one)
{
    RV_AUTO(rv_buf_fini) rv_buf b = RV_BUF_INIT(1000);
    struct rv_table t = {0};
    rv_err *err = NULL;

    ck_assert_int_eq(rv_table_parse(RV_STR_LIT("a\nx\0\n"), "t.csv", &t, &err), RV_E_INVALID);
    write_place(err, &b);
    ck_assert_str_eq(rv_buf_cstr(&b), "t.csv:2:2: a NUL byte is here, which a text does not have");
    rv_err_free(err);
}
END_TEST

TCase *table_case(void)
{
    TCase *tc = tcase_create("table");

    tcase_add_test(tc, a_nul_byte_is_called_one);
    tcase_add_loop_test(tc, reads_a_table_by_the_end_of_its_name, 0, RV_COUNT(tables));
    tcase_add_test(tc, refuses_what_exceeds_its_limits);
    return tc;
}
