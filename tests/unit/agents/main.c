#include "tests/unit/agents/world.h"

int main(void)
{
    Suite *s = suite_create("agents");
    SRunner *runner;
    int failed;

    suite_add_tcase(s, order_case());
    suite_add_tcase(s, files_case());
    suite_add_tcase(s, cache_case());
    suite_add_tcase(s, list_case());
    suite_add_tcase(s, put_case());
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
