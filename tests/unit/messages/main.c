#include "tests/unit/messages/suites.h"

int main(void)
{
    Suite *suite = suite_create("messages");
    SRunner *runner;
    int n_failed;

    suite_add_tcase(suite, words_case());
    suite_add_tcase(suite, keys_case());
    suite_add_tcase(suite, turn_case());
    suite_add_tcase(suite, options_case());
    suite_add_tcase(suite, history_case());
    suite_add_tcase(suite, calls_case());
    suite_add_tcase(suite, budget_case());
    suite_add_tcase(suite, golden_case());
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? 1 : 0;
}
