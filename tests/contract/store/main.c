#include "tests/contract/store/world.h"

int main(void)
{
    SRunner *runner = srunner_create(runs_suite());
    int failed;

    srunner_add_suite(runner, append_suite());
    srunner_add_suite(runner, pending_suite());
    srunner_add_suite(runner, owners_suite());
    srunner_add_suite(runner, values_suite());
    srunner_add_suite(runner, groups_suite());
    srunner_add_suite(runner, arguments_suite());
    srunner_add_suite(runner, faults_suite());
    srunner_add_suite(runner, sessions_suite());
    srunner_add_suite(runner, messages_suite());
    srunner_add_suite(runner, turns_suite());
    srunner_add_suite(runner, schemas_suite());
    srunner_add_suite(runner, isolation_suite());
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
