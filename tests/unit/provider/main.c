#include <stdlib.h>

#include "tests/unit/provider/suites.h"

int main(void)
{
    Suite *s = suite_create("provider");
    SRunner *runner;
    int n_failed;

    suite_add_tcase(s, table_case());
    suite_add_tcase(s, endpoint_case());
    suite_add_tcase(s, hints_case());
    suite_add_tcase(s, statuses_case());
    suite_add_tcase(s, retry_case());
    suite_add_tcase(s, fallback_case());
    suite_add_tcase(s, breaker_case());
    suite_add_tcase(s, places_case());
    suite_add_tcase(s, rates_case());
    suite_add_tcase(s, secrets_case());
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
