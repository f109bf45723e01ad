#include "tests/kit/suites.h"
#include "tests/unit/p8/room.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {action_case, record_case, agents_case, data_case,
                                            owners_case, tools_case,  limits_case, at_once_case};

    return rv_kit_run_cases("p8", cases, RV_COUNT(cases));
}
