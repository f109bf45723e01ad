/* Pass rates and their intervals: the values were computed apart from the code, with seven digits. */
#include <math.h>

#include "coreengine/app/app.h"
#include "tests/kit/kit.h"
#include "tests/unit/app/suites.h"

static const struct {
    int64_t n_passed, n;
    double low, high;
} intervals[] = {
    {0, 1, 0, 0.7934507},          {1, 1, 0.2065493, 1},
    {8, 10, 0.4901625, 0.9433178}, {0, 10, 0, 0.2775328},
    {10, 10, 0.7224672, 1},        {50, 100, 0.4038315, 0.5961685},
    {3, 4, 0.3006418, 0.9544127},  {950, 1000, 0.9346776, 0.9618757},
};

START_TEST(the_interval_is_that_of_wilson)
{
    struct rv_test_rate r = {.n = intervals[_i].n, .n_passed = intervals[_i].n_passed, .min = 1};
    double low = -1, high = -1;

    rv_test_rate_estimate_bounds(&r, &low, &high);
    ck_assert_msg(fabs(low - intervals[_i].low) < 1e-4 && fabs(high - intervals[_i].high) < 1e-4, "%f to %f", low,
                  high);
}
END_TEST

START_TEST(a_rate_holds_from_its_minimum_on)
{
    static const struct {
        int64_t n_passed, n;
        double min;
        bool holds;
    } cases[] = {
        {1, 1, 1, true},    {9, 10, 1, false},           {9, 10, 0.9, true},  {8, 10, 0.9, false}, {0, 10, 0, true},
        {7, 10, 0.7, true}, {29, 100, 29.0 / 100, true}, {1, 3, 0.34, false}, {0, 0, 0, false},
    };

    for (size_t i = 0; i < RV_COUNT(cases); i++) {
        struct rv_test_rate r = {.n = cases[i].n, .n_passed = cases[i].n_passed, .min = cases[i].min};
        ck_assert_msg(rv_test_rate_holds(&r) == cases[i].holds, "case %zu", i);
    }
}
END_TEST

START_TEST(without_runs_anything_can_be)
{
    struct rv_test_rate r = {0};
    double low = -1, high = -1;

    rv_test_rate_estimate_bounds(&r, &low, &high);
    ck_assert(low == 0 && high == 1);
}
END_TEST

TCase *rate_case(void)
{
    TCase *tc = tcase_create("rate");

    tcase_add_loop_test(tc, the_interval_is_that_of_wilson, 0, RV_COUNT(intervals));
    tcase_add_test(tc, a_rate_holds_from_its_minimum_on);
    tcase_add_test(tc, without_runs_anything_can_be);
    return tc;
}
