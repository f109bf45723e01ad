#include "tests/kit/suites.h"
#include "tests/unit/agent/suites.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {
        extract_case, route_case,         visit_case, llm_case,        tools_case,
        hooks_case,   hostile_case,       loop_case,  structured_case, limits_case,
        pauses_case,  money_case,         ids_case,   call_hooks_case, call_hooks_hostile_case,
        context_case, declared_hooks_case};

    return rv_kit_run_cases("agent", cases, RV_COUNT(cases));
}
