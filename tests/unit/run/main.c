#include "tests/kit/scene.h"
#include "tests/kit/suites.h"
#include "tests/unit/run/suites.h"

static TCase *scenes_case(void)
{
    return rv_scenes_case("run");
}

int main(void)
{
    static TCase *(*const cases[])(void) = {
        scenes_case, whole_case,  protocol_case,  answers_case, approve_case,     continue_case, outcomes_case,
        random_case, growth_case, questions_case, lists_case,   model_calls_case, reads_case};

    return rv_kit_run_cases("run", cases, RV_COUNT(cases));
}
