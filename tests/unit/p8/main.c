#include "tests/unit/p8/room.h"

int main(void)
{
    Suite *s = suite_create("p8");
    SRunner *runner;
    int failed;

    suite_add_tcase(s, action_case());
    suite_add_tcase(s, record_case());
    suite_add_tcase(s, agents_case());
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
