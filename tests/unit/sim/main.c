#include "tests/kit/suites.h"
#include "tests/unit/sim/suites.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {values_case, seeds_case, broken_case};

    return rv_kit_run_cases("sim", cases, RV_COUNT(cases));
}
