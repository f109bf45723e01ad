/* What the core, `lint` and `inspect` see of loaded capabilities (rule 8.1: registered by name, named by pipelines). */
#include "tests/unit/plugin/suites.h"

#include <string.h>

/* Proves 8.1: What a pipeline names comes from plugins: tools by their bare name, hooks, mocks, policies, routing
 * functions and prompts as capability.name; lookups answer by kind and name */
START_TEST(catalog_answers_by_kind_and_name)
{
    rv_plugins *p = new_set(NULL);
    struct rv_catalog catalog;
    const struct rv_tool_info *tool;
    const struct rv_entry_info *hook;

    must_load(p, "hello");
    must_load(p, "answers");
    catalog = rv_plugins_catalog(p);
    tool = catalog.tool(catalog.self, RV_STR_LIT("greet"));
    ck_assert_ptr_nonnull(tool);
    ck_assert_int_eq(tool->risk, RV_RISK_READ_ONLY);
    ck_assert_ptr_nonnull(tool->input);
    ck_assert_ptr_null(catalog.tool(catalog.self, RV_STR_LIT("greet_user")));
    hook = catalog.entry(catalog.self, RV_NAME_HOOK, RV_STR_LIT("answers.identity"));
    ck_assert_ptr_nonnull(hook);
    ck_assert_uint_eq(hook->sees.n, 2);
    ck_assert_str_eq(hook->sees.items[1], "outputs.plan");
    ck_assert_int_eq(hook->timeout_ms, 70);
    hook = catalog.entry(catalog.self, RV_NAME_HOOK, RV_STR_LIT("hello.greet_user"));
    ck_assert(hook->sees.is_set && hook->sees.n == 0); /* an empty list is not an absent one */
    ck_assert_ptr_null(catalog.entry(catalog.self, RV_NAME_POLICY, RV_STR_LIT("hello.greet_user")));
    ck_assert_ptr_nonnull(catalog.prompt(catalog.self, RV_STR_LIT("answers.ask")));
    ck_assert_ptr_null(catalog.prompt(catalog.self, RV_STR_LIT("ask")));
    rv_plugins_free(p);
}
END_TEST

START_TEST(names_are_sorted_per_kind)
{
    rv_plugins *p = new_set(NULL);
    struct rv_known_names known = rv_plugins_names(p);
    const char *const *list;
    size_t n = 9;

    for (int kind = 0; kind < RV_N_NAME_KINDS; kind++) {
        known.list(known.self, (enum rv_name_kind)kind, &n);
        ck_assert_uint_eq(n, 0);
    }
    must_load(p, "hello");
    must_load(p, "answers");
    list = known.list(known.self, RV_NAME_TOOL, &n);
    ck_assert_uint_gt(n, 20);
    for (size_t i = 1; i < n; i++)
        ck_assert_int_lt(strcmp(list[i - 1], list[i]), 0);
    list = known.list(known.self, RV_NAME_HOOK, &n);
    ck_assert_uint_eq(n, 5);
    ck_assert_str_eq(list[1], "answers.garbage");
    ck_assert_str_eq(list[4], "hello.greet_user");
    rv_plugins_free(p);
}
END_TEST

START_TEST(inspect_shows_every_entry_with_its_schemas)
{
    rv_plugins *p = new_set(NULL);
    rv_buf text = RV_BUF_INIT((size_t)1 << 20);
    rv_jw w = rv_jw_on(&text);
    json_object *all = NULL, *hello, *tool, *value;

    must_load(p, "hello");
    must_load(p, "answers");
    rv_plugins_write_json(p, &w);
    ck_assert_int_eq(rv_buf_check(&text, "inspect", NULL), 0);
    ck_assert_int_eq(rv_json_parse(rv_buf_str(&text), NULL, &all, NULL), 0);
    ck_assert_uint_eq(json_object_array_length(all), 2);
    hello = json_object_array_get_idx(all, 0);
    ck_assert_ptr_nonnull(strstr(rv_json_str(json_object_object_get(hello, "path")).ptr, "/hello.so"));
    tool = json_object_array_get_idx(rv_json_get_arr(hello, "tools"), 0);
    ck_assert_ptr_nonnull(rv_json_get_obj(tool, "input_schema"));
    ck_assert(rv_str_is(rv_json_str(json_object_object_get(tool, "effect")), "safe"));
    ck_assert_uint_eq(json_object_array_length(rv_json_get_arr(hello, "mocks")), 1);
    ck_assert(json_object_object_get_ex(hello, "config_schema", &value) && value == NULL);
    json_object_put(all);
    rv_buf_fini(&text);
    rv_plugins_free(p);
}
END_TEST

Suite *catalog_suite(void)
{
    Suite *s = suite_create("plugin catalog");
    TCase *tc = tcase_create("catalog");

    tcase_add_test(tc, catalog_answers_by_kind_and_name);
    tcase_add_test(tc, names_are_sorted_per_kind);
    tcase_add_test(tc, inspect_shows_every_entry_with_its_schemas);
    suite_add_tcase(s, tc);
    return s;
}
