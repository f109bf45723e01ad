#include <stdlib.h>

#include "tests/unit/config_agents/world.h"

int main(void)
{
    static TCase *(*const cases[])(void) = {bind_case, faults_case, models_case, delegate_case};
    Suite *suite = suite_create("config_agents");
    SRunner *runner;
    int n_failed;

    unsetenv("REEVE_PRICES"); /* those of whoever runs the tests are none of theirs */
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    for (size_t i = 0; i < RV_COUNT(cases); i++)
        suite_add_tcase(suite, cases[i]());
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? 1 : 0;
}
