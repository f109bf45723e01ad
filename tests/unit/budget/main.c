#include "tests/kit/suites.h"
#include "tests/unit/budget/suites.h"

#include <stdlib.h>

int main(void)
{
    static TCase *(*const cases[])(void) = {ledger_case};

    unsetenv("REEVE_PRICES");
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    return rv_kit_run_cases("budget", cases, RV_COUNT(cases));
}
