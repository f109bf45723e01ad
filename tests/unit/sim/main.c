#include <stdlib.h>

#include "tests/unit/sim/suites.h"

int main(void)
{
    Suite *s = suite_create("sim");
    SRunner *runner;
    int n_failed;

    suite_add_tcase(s, values_case());
    suite_add_tcase(s, seeds_case());
    suite_add_tcase(s, broken_case());
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
