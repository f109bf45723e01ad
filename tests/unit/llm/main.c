#include "tests/kit/suites.h"
#include "tests/unit/llm/suites.h"

#include <stdlib.h>

int main(void)
{
    static TCase *(*const cases[])(void) = {attachments_case, bound_case, money_case};

    unsetenv("REEVE_PRICES");
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    return rv_kit_run_cases("llm", cases, RV_COUNT(cases));
}
