#include "tests/kit/suites.h"
#include "tests/unit/messages/suites.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {words_case, keys_case,   turn_case,   options_case, history_case,
                                            calls_case, budget_case, golden_case, moments_case};

    return rv_kit_run_cases("messages", cases, RV_COUNT(cases));
}
