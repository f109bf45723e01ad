/* A run by its name: what the store says is passed on, also to a caller that wants the code alone. And lists of rows
 * that are not whole: callers are told. */
#include <stdio.h>
#include <string.h>

#include "coreengine/app/entities.h"
#include "coreengine/app/past.h"
#include "coreengine/store/entities.h"
#include "tests/kit/kit.h"
#include "tests/unit/app/suites.h"

static int is_locked(void *self, const char *point, rv_err **err)
{
    (void)self;
    return strcmp(point, "get_run") == 0 ? RV_FAIL(err, RV_E_TIMEOUT, "the store is locked") : 0;
}

START_TEST(a_caller_without_interest_in_the_reason_is_told_the_code)
{
    static const struct rv_store_scope all = {NULL, NULL};
    struct rv_run_row row;
    rv_store *store;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_store_open("memory:", NULL, &store, NULL), 0);
    rv_store_set_faults(store, (struct rv_store_faults){is_locked, NULL});
    ck_assert_int_eq(rv_app_find_run(store, &all, "run_1", &row, NULL), RV_E_TIMEOUT);
    ck_assert_int_eq(rv_app_find_run(store, &all, "run_1", &row, &err), RV_E_TIMEOUT);
    ck_assert_str_eq(rv_err_text(err), "the store is locked");
    rv_err_free(err);
    rv_store_close(store);
}
END_TEST

static void put_files(rv_store *store, int n)
{
    static const struct rv_store_scope all = {NULL, NULL};
    char name[20];

    for (int i = 0; i < n; i++) {
        json_object *row = json_object_new_object();
        snprintf(name, sizeof name, "file%d", i);
        json_object_object_add(row, "name", json_object_new_string(name));
        const struct rv_entities_put put = {.kind = "files", .rows = &row, .n_rows = 1, .now_us = rv_app_now_us()};
        ck_assert_int_eq(rv_store_put_entities(store, &all, &put, NULL, NULL), 0);
        json_object_put(row);
    }
}

START_TEST(a_list_that_is_not_whole_says_so)
{
    static const struct rv_store_scope all = {NULL, NULL};
    static const rv_str few = RV_STR_LIT("SELECT name FROM files"),
                        many = RV_STR_LIT("SELECT a.name FROM files a, files b, files c, files d");
    json_object *rows = NULL;
    bool has_more = true;
    rv_store *store;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_store_open("memory:", NULL, &store, NULL), 0);
    put_files(store, 11);
    ck_assert_int_eq(rv_app_select(store, &all, few, &rows, &has_more, NULL), 0);
    ck_assert(!has_more && json_object_array_length(rows) == 11);
    json_object_put(rows);
    ck_assert_int_eq(rv_app_select(store, &all, many, &rows, &has_more, NULL), 0);
    ck_assert(has_more && json_object_array_length(rows) == RV_APP_MAX_SELECT);
    json_object_put(rows);
    rows = NULL;
    ck_assert_int_eq(rv_app_select(store, &all, many, &rows, NULL, &err), RV_E_LIMIT);
    ck_assert_str_eq(rv_err_text(err), "there are more than 10000 rows");
    ck_assert_ptr_null(rows);
    rv_err_free(err);
    rv_store_close(store);
}
END_TEST

TCase *find_case(void)
{
    TCase *tc = tcase_create("find");

    tcase_add_test(tc, a_caller_without_interest_in_the_reason_is_told_the_code);
    tcase_add_test(tc, a_list_that_is_not_whole_says_so);
    return tc;
}
