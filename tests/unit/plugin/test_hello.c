/* The capability hello: each of its entries, with arguments that its schema lets through. */
#include "tests/unit/plugin/suites.h"

#include <string.h>

static const struct {
    const char *args;
    int rc;
    const char *reply;
} greetings[] = {
    {"{\"name\": \"Ada\"}", 0, "{\"text\":\"Hello, Ada!\"}"},
    {"{\"name\":\"A \\\"B\\\" \\\\\"}", 0, "{\"text\":\"Hello, A \\\"B\\\" \\\\!\"}"},
    {"{\"name\": \"Zo\xc3\xab\"}", 0, "{\"text\":\"Hello, Zo\xc3\xab!\"}"},
    {"{\"name\": \"100%s %n\"}", 0, "{\"text\":\"Hello, 100%s %n!\"}"},
    {"{}", RV_E_TOOL, NULL}, /* the host's schema check stops these before the plugin sees them */
    {"{\"name\": 7}", RV_E_TOOL, NULL},
    {"{\"name\": \"broken\\", RV_E_TOOL, NULL},
};

START_TEST(greet_returns_the_name_as_json)
{
    rv_plugins *p = new_set(NULL);
    rv_buf out = RV_BUF_INIT(4096);

    must_load(p, "hello");
    ck_assert_int_eq(call_entry(p, RV_NAME_TOOL, "greet", greetings[_i].args, &out, NULL), greetings[_i].rc);
    if (greetings[_i].reply)
        ck_assert_str_eq(rv_buf_cstr(&out), greetings[_i].reply);
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

START_TEST(greet_takes_the_longest_name_its_schema_allows)
{
    rv_plugins *p = new_set(NULL);
    rv_buf args = RV_BUF_INIT(4096), out = RV_BUF_INIT(4096);

    must_load(p, "hello");
    rv_buf_puts(&args, "{\"name\": \"");
    for (int i = 0; i < 100; i++)
        rv_buf_puts(&args, "\\ud83d\\ude00");
    rv_buf_puts(&args, "\"}");
    ck_assert_int_eq(call_entry(p, RV_NAME_TOOL, "greet", rv_buf_cstr(&args), &out, NULL), 0);
    rv_buf_truncate(&args, args.len - 2);
    rv_buf_puts(&args, "xx\"}");
    ck_assert_int_eq(call_entry(p, RV_NAME_TOOL, "greet", rv_buf_cstr(&args), &out, NULL), RV_E_TOOL);
    rv_buf_fini(&args);
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

START_TEST(hook_and_mock_answer)
{
    rv_plugins *p = new_set(NULL);
    rv_buf out = RV_BUF_INIT(4096);

    must_load(p, "hello");
    ck_assert_int_eq(call_entry(p, RV_NAME_HOOK, "hello.greet_user", "{}", &out, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&out), "{\"output\": {\"final_response\": \"Hello!\"}}");
    rv_buf_clear(&out);
    ck_assert_int_eq(call_entry(p, RV_NAME_MOCK, "hello.canned", "{}", &out, NULL), 0);
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

Suite *hello_suite(void)
{
    Suite *s = suite_create("hello");
    TCase *tc = tcase_create("hello");

    tcase_add_loop_test(tc, greet_returns_the_name_as_json, 0, RV_COUNT(greetings));
    tcase_add_test(tc, greet_takes_the_longest_name_its_schema_allows);
    tcase_add_test(tc, hook_and_mock_answer);
    suite_add_tcase(s, tc);
    return s;
}
