#include "tests/unit/plugin/suites.h"

int main(void)
{
    SRunner *runner = srunner_create(path_suite());
    int failed;

    srunner_add_suite(runner, load_suite());
    srunner_add_suite(runner, call_suite());
    srunner_add_suite(runner, catalog_suite());
    srunner_add_suite(runner, hello_suite());
    srunner_add_suite(runner, isolated_suite());
    srunner_add_suite(runner, hostile_child_suite());
    srunner_add_suite(runner, probe_suite());
    srunner_add_suite(runner, provider_suite());
    srunner_add_suite(runner, provider_reply_suite());
    srunner_add_suite(runner, echo_suite());
    srunner_add_suite(runner, agents_suite());
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
