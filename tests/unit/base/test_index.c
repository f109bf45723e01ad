#include "coreengine/base/base.h"
#include "tests/unit/base/suites.h"

#include <stdio.h>

START_TEST(finds_each_of_many_names)
{
    static char names[5000][8];
    rv_index ix = {0};
    int i;

    for (i = 0; i < 5000; i++) {
        (void)snprintf(names[i], sizeof names[i], "n%d", i);
        ck_assert_int_eq(rv_index_add(&ix, rv_str_of(names[i]), i), 0);
    }
    for (i = 0; i < 5000; i++)
        ck_assert_int_eq(rv_index_get(&ix, rv_str_of(names[i])), i);
    ck_assert_int_eq(rv_index_get(&ix, RV_STR_LIT("n5000")), -1);
    ck_assert_int_eq(rv_index_get(&ix, RV_STR_LIT("n")), -1);
    rv_index_fini(&ix);
    ck_assert_int_eq(rv_index_get(&ix, RV_STR_LIT("n1")), -1);
}
END_TEST

START_TEST(the_first_of_equal_names_stays)
{
    rv_index ix = {0};

    ck_assert_int_eq(rv_index_add(&ix, RV_STR_LIT("a"), 1), 0);
    ck_assert_int_eq(rv_index_add(&ix, RV_STR_LIT("a"), 2), RV_E_EXISTS);
    ck_assert_int_eq(rv_index_get(&ix, RV_STR_LIT("a")), 1);
    ck_assert_int_eq(rv_index_add(&ix, rv_str_of(NULL), 3), 0);
    ck_assert_int_eq(rv_index_get(&ix, RV_STR_LIT("")), 3);
    rv_index_fini(&ix);
}
END_TEST

static const char *const stages[] = {"planner", "executor", "critic", "end", "a_b"};
static const struct {
    const char *name, *want;
} typos[] = {
    {"plnner", "planner"},
    {"palnner", "planner"},
    {"Planner", "planner"},
    {"excutor", "executor"},
    {"citric", "critic"},
    {"edn", "end"},
    {"a-b", "a_b"},
    {"writer", NULL},
    {"", NULL},
    {"x", NULL},
    {"zzz", NULL},
};

START_TEST(suggests_what_was_meant_and_nothing_else)
{
    ck_assert_pstr_eq(rv_nearest(rv_str_of(typos[_i].name), stages, RV_COUNT(stages)), typos[_i].want);
}
END_TEST

TCase *index_case(void)
{
    TCase *tc = tcase_create("index");

    tcase_add_test(tc, finds_each_of_many_names);
    tcase_add_test(tc, the_first_of_equal_names_stays);
    tcase_add_loop_test(tc, suggests_what_was_meant_and_nothing_else, 0, RV_COUNT(typos));
    return tc;
}
