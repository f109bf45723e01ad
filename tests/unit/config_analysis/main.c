#include <stdlib.h>

#include "tests/unit/config_analysis/suites.h"

int main(void)
{
    Suite *suite = suite_create("config_analysis");
    SRunner *runner;
    int failed;

    add_ready_tests(suite);
    add_prove_tests(suite);
    add_prove_random_tests(suite);
    add_lint_tests(suite);
    add_graph_tests(suite);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
