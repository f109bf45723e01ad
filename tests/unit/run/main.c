#include <stdlib.h>

#include "tests/unit/run/suites.h"

int main(void)
{
    Suite *s = suite_create("run");
    SRunner *runner;
    int n_failed;

    suite_add_tcase(s, sequential_case());
    suite_add_tcase(s, resume_case());
    suite_add_tcase(s, parallel_case());
    suite_add_tcase(s, protocol_case());
    suite_add_tcase(s, answers_case());
    suite_add_tcase(s, continue_case());
    suite_add_tcase(s, outcomes_case());
    suite_add_tcase(s, random_case());
    suite_add_tcase(s, growth_case());
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
