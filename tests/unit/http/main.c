#include <stdlib.h>

#include "world.h"

int main(void)
{
    Suite *suite = suite_create("http");
    SRunner *runner;
    int failed;

    suite_add_tcase(suite, load_case());
    suite_add_tcase(suite, request_case());
    suite_add_tcase(suite, answers_case());
    suite_add_tcase(suite, broken_case());
    suite_add_tcase(suite, limits_case());
    suite_add_tcase(suite, hold_case());
    suite_add_tcase(suite, life_case());
    suite_add_tcase(suite, names_case());
    suite_add_tcase(suite, tls_case());
    suite_add_tcase(suite, h2_case());
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
