#include "tests/kit/suites.h"
#include "tests/unit/protocols/suites.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {random_case, golden_case, requests_case};

    return rv_kit_run_cases("protocols", cases, RV_COUNT(cases));
}
