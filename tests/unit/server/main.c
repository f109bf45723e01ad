#include "tests/kit/suites.h"
#include "tests/unit/server/suites.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {pieces_case, reason_case, routes_case, stream_case, view_case};

    return rv_kit_run_cases("server", cases, RV_COUNT(cases));
}
