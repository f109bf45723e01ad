#include "tests/unit/context/suites.h"

int main(void)
{
    Suite *suite = suite_create("context");
    SRunner *runner;
    int n_failed;

    suite_add_tcase(suite, context_case());
    suite_add_tcase(suite, headers_case());
    suite_add_tcase(suite, ids_case());
    suite_add_tcase(suite, routing_case());
    suite_add_tcase(suite, conversation_case());
    suite_add_tcase(suite, instructions_case());
    suite_add_tcase(suite, spaced_json_case());
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? 1 : 0;
}
