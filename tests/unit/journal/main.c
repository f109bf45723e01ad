#include <stdlib.h>

#include "tests/unit/journal/suites.h"

int main(void)
{
    Suite *s = suite_create("journal");
    SRunner *runner;
    int n_failed;

    suite_add_tcase(s, owner_case());
    suite_add_tcase(s, write_case());
    suite_add_tcase(s, faults_case());
    suite_add_tcase(s, format_case());
    suite_add_tcase(s, replay_case());
    suite_add_tcase(s, random_case());
    suite_add_tcase(s, damage_case());
    suite_add_tcase(s, growth_case());
    suite_add_tcase(s, snapshot_case());
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
