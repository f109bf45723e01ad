/* Where capabilities are looked for. */
#include "tests/unit/plugin/suites.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

START_TEST(path_has_its_places_in_order)
{
    static const char *const extra[] = {"/first", "/second"};
    const char *const want[] = {"/first", "/second", "/from/variable", "/other", "base", "base/capabilities"};
    char **dirs = NULL;
    size_t n = 0;

    setenv("REEVE_CAPABILITY_PATH", "/from/variable::/other:/first", 1);
    ck_assert_int_eq(rv_plugins_path_new(extra, 2, "base", &dirs, &n, NULL), 0);
    ck_assert_uint_eq(n, RV_COUNT(want) + 2); /* beside the program, and the install prefix */
    for (size_t i = 0; i < RV_COUNT(want); i++)
        ck_assert_str_eq(dirs[i], want[i]);
    ck_assert_ptr_null(dirs[n]);
    for (size_t i = RV_COUNT(want); i < n; i++) {
        ck_assert_ptr_nonnull(strstr(dirs[i], "/lib/reeve/capabilities"));
        ck_assert_int_eq(dirs[i][0], '/');
    }
    rv_plugins_path_free(dirs);
}
END_TEST

START_TEST(path_without_extras_is_never_null)
{
    char **dirs = NULL;
    size_t n = 0;

    unsetenv("REEVE_CAPABILITY_PATH");
    ck_assert_int_eq(rv_plugins_path_new(NULL, 0, NULL, &dirs, &n, NULL), 0);
    ck_assert_uint_ge(n, 1);
    rv_plugins_path_free(dirs);
}
END_TEST

START_TEST(available_lists_sorted_names_once)
{
    static const char *const dirs[] = {"/nowhere/at/all", HOSTILE_DIR, HOSTILE_DIR};
    char **names = NULL;
    size_t n = 0;

    ck_assert_int_eq(rv_plugins_find_available(dirs, RV_COUNT(dirs), &names, &n, NULL), 0);
    ck_assert_uint_gt(n, 20);
    for (size_t i = 1; i < n; i++)
        ck_assert_int_lt(strcmp(names[i - 1], names[i]), 0);
    rv_plugins_path_free(names);
}
END_TEST

START_TEST(available_of_nothing_is_an_empty_list)
{
    char **names = NULL;
    size_t n = 7;

    ck_assert_int_eq(rv_plugins_find_available(NULL, 0, &names, &n, NULL), 0);
    ck_assert_uint_eq(n, 0);
    ck_assert_ptr_nonnull(names);
    rv_plugins_path_free(names);
}
END_TEST

/* Else the list would be short, and nothing would tell. */
START_TEST(available_without_descriptors_is_an_error)
{
    static const char *const dirs[] = {HOSTILE_DIR};
    struct rlimit few;
    char **names = NULL;
    size_t n = 0;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &few), 0);
    const struct rlimit all = few;
    few.rlim_cur = 0;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    int rc = rv_plugins_find_available(dirs, 1, &names, &n, NULL);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &all), 0);
    ck_assert_int_eq(rc, RV_E_FILES);
    ck_assert_ptr_null(names);
}
END_TEST

Suite *path_suite(void)
{
    Suite *s = suite_create("plugin path");
    TCase *tc = tcase_create("path");

    tcase_add_test(tc, path_has_its_places_in_order);
    tcase_add_test(tc, path_without_extras_is_never_null);
    tcase_add_test(tc, available_lists_sorted_names_once);
    tcase_add_test(tc, available_of_nothing_is_an_empty_list);
    tcase_add_test(tc, available_without_descriptors_is_an_error);
    suite_add_tcase(s, tc);
    return s;
}
