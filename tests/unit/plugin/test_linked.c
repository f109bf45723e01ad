/* Capabilities that are part of the program: this one has `hello`, and again by a name that is not its own. */
#include <string.h>

#include "coreengine/base/base.h"
#include "tests/kit/suites.h"
#include "tests/unit/plugin/suites.h"

const struct rv_cap_desc *rv_capability_hello(void);

const struct rv_capability_linked rv_capabilities_linked[] = {
    {"hello", rv_capability_hello},
    {"wrong", rv_capability_hello},
    {NULL, NULL},
};

START_TEST(is_found_before_the_path)
{
    rv_plugins *p = new_set(NULL); /* which has the folder of hello.so */
    rv_buf out = RV_BUF_INIT(4096), list = RV_BUF_INIT((size_t)1 << 16);
    rv_jw w = rv_jw_on(&list);

    must_load(p, "hello");
    rv_plugins_write_json(p, &w);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&list), "\"built-in/hello\""));
    ck_assert_int_eq(call_entry(p, RV_NAME_TOOL, "greet", "{\"name\": \"Ada\"}", &out, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&out), "{\"text\":\"Hello, Ada!\"}");
    rv_buf_fini(&out);
    rv_buf_fini(&list);
    rv_plugins_free(p);
}
END_TEST

START_TEST(others_come_from_files)
{
    rv_plugins *p = new_set(NULL);
    rv_buf list = RV_BUF_INIT((size_t)1 << 20);
    rv_jw w = rv_jw_on(&list);

    must_load(p, "echo");
    rv_plugins_write_json(p, &w);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&list), "/echo.so\""));
    rv_buf_fini(&list);
    rv_plugins_free(p);
}
END_TEST

START_TEST(is_listed_once_and_without_a_path)
{
    static const char *const dirs[] = {CAPABILITY_DIR};
    char **names = NULL;
    size_t n = 0, n_hello = 0;

    ck_assert_int_eq(rv_plugins_find_available(NULL, 0, &names, &n, NULL), 0);
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(names[0], "hello");
    rv_plugins_path_free(names);
    ck_assert_int_eq(rv_plugins_find_available(dirs, 1, &names, &n, NULL), 0);
    for (size_t i = 0; i < n; i++)
        n_hello += strcmp(names[i], "hello") == 0;
    ck_assert_uint_eq(n_hello, 1);
    ck_assert_uint_gt(n, 2);
    rv_plugins_path_free(names);
}
END_TEST

START_TEST(its_name_is_checked_like_that_of_a_file)
{
    rv_plugins *p = new_set(NULL);
    rv_err *err = NULL;

    ck_assert_int_eq(load_named(p, "wrong", NULL, &err), RV_E_PLUGIN);
    ck_assert_ptr_nonnull(strstr(error_text(err), "it calls itself \"hello\""));
    rv_err_free(err);
    rv_plugins_free(p);
}
END_TEST

START_TEST(a_path_is_always_a_file)
{
    rv_plugins *p = new_set(NULL);
    rv_err *err = NULL;

    ck_assert_int_eq(load_named(p, "built-in/hello", NULL, &err), RV_E_NOT_FOUND);
    rv_err_free(err);
    rv_plugins_free(p);
}
END_TEST

static Suite *linked_suite(void)
{
    Suite *s = suite_create("linked capabilities");
    TCase *tc = tcase_create("linked");

    tcase_add_test(tc, is_found_before_the_path);
    tcase_add_test(tc, others_come_from_files);
    tcase_add_test(tc, is_listed_once_and_without_a_path);
    tcase_add_test(tc, its_name_is_checked_like_that_of_a_file);
    tcase_add_test(tc, a_path_is_always_a_file);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    static Suite *(*const suites[])(void) = {linked_suite};

    return rv_kit_run_suites(suites, RV_COUNT(suites));
}
