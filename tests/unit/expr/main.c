#include <stdlib.h>

#include "expr_suites.h"

int main(void)
{
    Suite *suite = suite_create("expr");
    SRunner *runner;
    int failed;

    suite_add_tcase(suite, eval_case());
    suite_add_tcase(suite, compile_case());
    suite_add_tcase(suite, limits_case());
    suite_add_tcase(suite, template_case());
    suite_add_tcase(suite, scope_case());
    suite_add_tcase(suite, docs_case());
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
