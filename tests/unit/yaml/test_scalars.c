/* Types of scalars, and what they become as JSON. */
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/yaml/suites.h"

static const struct {
    const char *text;
    enum rv_node_kind kind;
    const char *json; /* NULL: it has none */
} scalars[] = {
    {"null", RV_NODE_NULL, "null"},
    {"~", RV_NODE_NULL, "null"},
    {"", RV_NODE_NULL, "null"},
    {"nUll", RV_NODE_STR, "\"nUll\""},
    {"true", RV_NODE_BOOL, "true"},
    {"False", RV_NODE_BOOL, "false"},
    {"no", RV_NODE_STR, "\"no\""}, /* YAML 1.1 would say false */
    {"yes", RV_NODE_STR, "\"yes\""},
    {"off", RV_NODE_STR, "\"off\""},
    {"0", RV_NODE_INT, "0"},
    {"-12", RV_NODE_INT, "-12"},
    {"+12", RV_NODE_INT, "12"},
    {"012", RV_NODE_STR, "\"012\""}, /* octal to some, decimal to others */
    {"-012.5", RV_NODE_STR, "\"-012.5\""},
    {"0o17", RV_NODE_INT, "15"},
    {"0o18", RV_NODE_STR, "\"0o18\""},
    {"0x1F", RV_NODE_INT, "31"},
    {"0x", RV_NODE_STR, "\"0x\""},
    {"1:30", RV_NODE_STR, "\"1:30\""},
    {"1_000", RV_NODE_STR, "\"1_000\""},
    {"9223372036854775807", RV_NODE_INT, "9223372036854775807"},
    {"-9223372036854775808", RV_NODE_INT, "-9223372036854775808"},
    {"18446744073709551615", RV_NODE_FLOAT, "18446744073709551615"},
    {"99999999999999999999", RV_NODE_FLOAT, "99999999999999999999"},
    {"-9223372036854775809", RV_NODE_FLOAT, "-9223372036854775809"},
    {"+99999999999999999999", RV_NODE_FLOAT, "1e+20"},
    {"+1e3", RV_NODE_FLOAT, "1000.0"},
    {"0xFFFFFFFFFFFFFFFFFF", RV_NODE_FLOAT, NULL},
    {"1.50", RV_NODE_FLOAT, "1.50"}, /* numbers keep their text */
    {"1.", RV_NODE_FLOAT, "1.0"},
    {".5", RV_NODE_FLOAT, "0.5"},
    {"+.5e1", RV_NODE_FLOAT, "5.0"},
    {"1e3", RV_NODE_FLOAT, "1e3"},
    {"1e", RV_NODE_STR, "\"1e\""},
    {".", RV_NODE_STR, "\".\""},
    {"-", RV_NODE_LIST, "[null]"},
    {"1e400", RV_NODE_FLOAT, NULL},
    {".inf", RV_NODE_FLOAT, NULL},
    {"-.Inf", RV_NODE_FLOAT, NULL},
    {".NaN", RV_NODE_FLOAT, NULL},
    {"'1'", RV_NODE_STR, "\"1\""},
    {"\"true\"", RV_NODE_STR, "\"true\""},
    {"\"a\\tb\"", RV_NODE_STR, "\"a\\tb\""},
};

START_TEST(decides_types_by_core_rules)
{
    rv_buf b = RV_BUF_INIT(4096);
    json_object *json = NULL;
    rv_err *err = NULL;
    rv_yaml *doc = NULL;
    const struct rv_node *node;
    char *found;
    int rc;

    rv_buf_printf(&b, "- %s\n", scalars[_i].text);
    found = findings_of(rv_buf_str(&b), &doc);
    ck_assert_str_eq(found, "");
    node = rv_yaml_root(doc)->items[0];
    ck_assert_msg(node->kind == scalars[_i].kind, "%s: %s", scalars[_i].text, rv_node_kind_text(node->kind));
    rc = rv_node_build_json(node, &json, &err);
    if (scalars[_i].json) {
        char *text = rv_kit_text(json);
        ck_assert_int_eq(rc, 0);
        ck_assert_str_eq(text, scalars[_i].json);
        free(text);
    } else {
        ck_assert_int_eq(rc, RV_E_INVALID);
        ck_assert_int_eq(rv_err_src(err).line, 1);
        ck_assert_int_eq(rv_err_src(err).col, 3);
    }
    json_object_put(json);
    rv_err_free(err);
    free(found);
    rv_yaml_free(doc);
    rv_buf_fini(&b);
}
END_TEST

START_TEST(converts_trees_in_order)
{
    rv_yaml *doc = NULL;
    json_object *json = NULL;
    char *found = findings_of(RV_STR_LIT("b: [1, {c: x}]\na: &v {d: ~}\ne: *v\n2: |\n  two\n  lines\n"), &doc);
    char *text;

    ck_assert_str_eq(found, "");
    ck_assert_int_eq(rv_node_build_json(rv_yaml_root(doc), &json, NULL), 0);
    text = rv_kit_text(json);
    ck_assert_str_eq(text, "{\"b\":[1,{\"c\":\"x\"}],\"a\":{\"d\":null},\"e\":{\"d\":null},\"2\":\"two\\nlines\\n\"}");
    free(text);
    free(found);
    json_object_put(json);
    rv_yaml_free(doc);
}
END_TEST

TCase *scalars_case(void)
{
    TCase *tc = tcase_create("scalars");

    tcase_add_loop_test(tc, decides_types_by_core_rules, 0, RV_COUNT(scalars));
    tcase_add_test(tc, converts_trees_in_order);
    return tc;
}
