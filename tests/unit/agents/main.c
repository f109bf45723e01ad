#include "tests/kit/suites.h"
#include "tests/unit/agents/world.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {order_case, files_case, cache_case, list_case, put_case};

    return rv_kit_run_cases("agents", cases, RV_COUNT(cases));
}
