#include "tests/unit/store/world.h"

int main(void)
{
    SRunner *runner = srunner_create(file_suite());
    int failed;

    srunner_add_suite(runner, schema_suite());
    srunner_add_suite(runner, sessions_suite());
    srunner_add_suite(runner, damage_suite());
    srunner_add_suite(runner, disk_suite());
    srunner_add_suite(runner, locks_suite());
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
