#include "tests/kit/suites.h"
#include "tests/unit/journal/suites.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {growth_case, snapshot_case};

    return rv_kit_run_cases("journal growth", cases, RV_COUNT(cases));
}
