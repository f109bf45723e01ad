#include "tests/unit/llm/suites.h"

#include <stdlib.h>

int main(void)
{
    Suite *suite = suite_create("llm");
    SRunner *runner;
    int n_failed;

    unsetenv("REEVE_PRICES");
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    suite_add_tcase(suite, bound_case());
    suite_add_tcase(suite, money_case());
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? 1 : 0;
}
