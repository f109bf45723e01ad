#include "tests/unit/chat/world.h"

int main(void)
{
    SRunner *runner = srunner_create(turns_suite());

    srunner_add_suite(runner, delegation_suite());
    srunner_add_suite(runner, chain_suite());
    srunner_add_suite(runner, flood_suite());
    srunner_add_suite(runner, store_faults_suite());
    srunner_add_suite(runner, who_suite());
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
