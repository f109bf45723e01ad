/* A run by its name: what the store says is passed on, also to a caller that wants the code alone. */
#include <string.h>

#include "coreengine/app/app.h"
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

TCase *find_case(void)
{
    TCase *tc = tcase_create("find");

    tcase_add_test(tc, a_caller_without_interest_in_the_reason_is_told_the_code);
    return tc;
}
