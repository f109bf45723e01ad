#include "tests/kit/suites.h"
#include "tests/unit/run/suites.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {sequential_case, resume_case,  parallel_case, protocol_case,
                                            answers_case,    approve_case, continue_case, begin_case,
                                            outcomes_case,   random_case,  growth_case};

    return rv_kit_run_cases("run", cases, RV_COUNT(cases));
}
