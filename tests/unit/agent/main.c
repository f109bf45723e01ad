#include <stdlib.h>

#include "tests/unit/agent/suites.h"

int main(void)
{
    Suite *s = suite_create("agent");
    SRunner *runner;
    int n_failed;

    suite_add_tcase(s, extract_case());
    suite_add_tcase(s, route_case());
    suite_add_tcase(s, visit_case());
    suite_add_tcase(s, llm_case());
    suite_add_tcase(s, tools_case());
    suite_add_tcase(s, hooks_case());
    suite_add_tcase(s, hostile_case());
    suite_add_tcase(s, loop_case());
    suite_add_tcase(s, structured_case());
    suite_add_tcase(s, limits_case());
    suite_add_tcase(s, pauses_case());
    suite_add_tcase(s, money_case());
    suite_add_tcase(s, ids_case());
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
