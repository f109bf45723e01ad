#include "tests/unit/mcp_web/scene.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {link_case, tokens_case};

    return rv_kit_run_cases("mcp_web", cases, RV_COUNT(cases));
}
