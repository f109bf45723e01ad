#include "tests/unit/turns/room.h"

int main(void)
{
    SRunner *runner = srunner_create(rows_suite());

    srunner_add_suite(runner, replay_suite());
    srunner_add_suite(runner, cancel_suite());
    srunner_add_suite(runner, limits_suite());
    srunner_add_suite(runner, pauses_suite());
    srunner_add_suite(runner, columns_suite());
    srunner_add_suite(runner, asked_suite());
    srunner_add_suite(runner, objects_suite());
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
