#include "tests/kit/suites.h"
#include "tests/unit/mcptools/cases.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {lists_case, pool_case};

    return rv_kit_run_cases("mcptools", cases, RV_COUNT(cases));
}
