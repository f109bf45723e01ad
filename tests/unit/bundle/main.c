#include "tests/unit/bundle/world.h"

int main(void)
{
    SRunner *runner = srunner_create(write_suite());
    int failed;

    srunner_add_suite(runner, open_suite());
    srunner_add_suite(runner, catalog_suite());
    srunner_add_suite(runner, broken_suite());
    srunner_add_suite(runner, same_suite());
    srunner_add_suite(runner, fits_suite());
    srunner_add_suite(runner, agents_suite());
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
