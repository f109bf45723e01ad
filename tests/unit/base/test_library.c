/* Libraries that are opened, and those that are linked in. */
#include "coreengine/base/base.h"
#include "tests/unit/base/suites.h"

#include <check.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct functions {
    size_t (*length)(const char *text);
    int (*number)(const char *text);
};

START_TEST(a_linked_library_is_not_opened)
{
    static const struct rv_library_function rows[] = {
        {"strlen", offsetof(struct functions, length), (void (*)(void))strlen},
        {"atoi", offsetof(struct functions, number), (void (*)(void))atoi},
    };
    static const struct rv_library lib = {
        .file = "libnowhere.so.1", .what = "a library", .functions = rows, .n_functions = RV_COUNT(rows)};
    struct functions table = {0};
    void *handle = &table;

    ck_assert_int_eq(rv_library_open(&lib, &table, &handle, NULL), 0);
    ck_assert_ptr_null(handle);
    ck_assert_uint_eq(table.length("rope"), 4);
    ck_assert_int_eq(table.number("7"), 7);
}
END_TEST

START_TEST(one_that_is_not_there_is_an_error_with_a_hint)
{
    static const struct rv_library_function rows[] = {{"strlen", offsetof(struct functions, length), NULL}};
    static const struct rv_library lib = {.file = "libnowhere.so.1",
                                          .what = "a library",
                                          .missing = RV_E_NOT_FOUND,
                                          .hint = "install it",
                                          .functions = rows,
                                          .n_functions = 1};
    struct functions table = {0};
    void *handle = NULL;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_library_open(&lib, &table, &handle, &err), RV_E_NOT_FOUND);
    ck_assert_ptr_null(handle);
    ck_assert_ptr_nonnull(strstr(rv_err_text(err), "open a library: libnowhere.so.1"));
    rv_err_free(err);
}
END_TEST

START_TEST(a_function_that_it_lacks_is_an_error)
{
    static const struct rv_library_function rows[] = {{"no_such_function", offsetof(struct functions, length), NULL}};
    static const struct rv_library lib = {
        .file = "libc.so.6", .what = "a library", .functions = rows, .n_functions = 1};
    struct functions table = {0};
    void *handle = NULL;

    ck_assert_int_eq(rv_library_open(&lib, &table, &handle, NULL), RV_E_VERSION);
    ck_assert_ptr_null(handle);
}
END_TEST

TCase *library_case(void)
{
    TCase *tc = tcase_create("library");

    tcase_add_test(tc, a_linked_library_is_not_opened);
    tcase_add_test(tc, one_that_is_not_there_is_an_error_with_a_hint);
    tcase_add_test(tc, a_function_that_it_lacks_is_an_error);
    return tc;
}
