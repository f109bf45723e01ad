#include "tests/kit/suites.h"
#include "tests/unit/envelope/suites.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {
        terms_case,  create_case, values_case, history_case,  interrupt_case, queue_case,        goals_case,
        result_case, state_case,  fork_case,   branches_case, patch_case,     state_random_case, state_extreme_case};

    return rv_kit_run_cases("envelope", cases, RV_COUNT(cases));
}
