#include "tests/kit/suites.h"
#include "tests/unit/rem/suites.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {parse_case, sql_case};

    return rv_kit_run_cases("rem", cases, RV_COUNT(cases));
}
