#include "tests/kit/suites.h"
#include "tests/unit/bus/suites.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {bus_case, asks_case};

    return rv_kit_run_cases("bus", cases, RV_COUNT(cases));
}
