#include "tests/kit/suites.h"

#include <stdlib.h>

/* Check ends a test after four seconds. Half an hour ends what hangs, under its name, and nothing that is only slow:
 * the machine may be busy, the disk slow and the program instrumented. Cases have no limits of their own. */
__attribute__((constructor)) static void be_patient(void)
{
    setenv("CK_DEFAULT_TIMEOUT", "1800", 0);
}

static int run(SRunner *runner)
{
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int rv_kit_run(Suite *suite)
{
    return run(srunner_create(suite));
}

int rv_kit_run_suites(Suite *(*const suites[])(void), size_t n)
{
    SRunner *runner = srunner_create(suites[0]());

    for (size_t i = 1; i < n; i++)
        srunner_add_suite(runner, suites[i]());
    return run(runner);
}

int rv_kit_run_cases(const char *name, TCase *(*const cases[])(void), size_t n)
{
    Suite *suite = suite_create(name);

    for (size_t i = 0; i < n; i++)
        suite_add_tcase(suite, cases[i]());
    return rv_kit_run(suite);
}
