#include <stdlib.h>

#include "tests/kit/suites.h"
#include "tests/unit/config_agents/world.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {bind_case, faults_case, models_case, delegate_case};

    unsetenv("REEVE_PRICES"); /* those of whoever runs the tests are none of theirs */
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    return rv_kit_run_cases("config_agents", cases, RV_COUNT(cases));
}
