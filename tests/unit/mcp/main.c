#include "tests/unit/mcp/suites.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {message_case, lines_case, server_case};

    return rv_kit_run_cases("mcp", cases, RV_COUNT(cases));
}
