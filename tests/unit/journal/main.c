#include "tests/kit/suites.h"
#include "tests/unit/journal/suites.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {owner_case,   write_case,  faults_case, format_case,
                                            extreme_case, replay_case, random_case, damage_case};

    return rv_kit_run_cases("journal", cases, RV_COUNT(cases));
}
