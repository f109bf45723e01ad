#include "tests/kit/scene.h"
#include "tests/kit/suites.h"
#include "tests/unit/agent/suites.h"

static TCase *scenes_case(void)
{
    return rv_scenes_case("agent");
}

int main(void)
{
    static TCase *(*const cases[])(void) = {scenes_case,  extract_case,       route_case,      visit_case,
                                            hostile_case, loop_case,          call_hooks_case, call_hooks_hostile_case,
                                            context_case, declared_hooks_case};

    return rv_kit_run_cases("agent", cases, RV_COUNT(cases));
}
