#include <stdlib.h>

#include "tests/kit/suites.h"
#include "tests/unit/config/world.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {defaults_case,     rules_case,       sections_case, secrets_case,
                                            names_case,        broken_case,      views_case,    texts_case,
                                            capabilities_case, models_case,      prices_case,   outputs_case,
                                            requests_case,     value_names_case, asks_case,     planning_case};

    unsetenv("REEVE_PRICES"); /* those of whoever runs the tests are none of theirs */
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    return rv_kit_run_cases("config", cases, RV_COUNT(cases));
}
