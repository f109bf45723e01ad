#include "tests/unit/files/sandbox.h"

int main(void)
{
    Suite *s = suite_create("files");
    SRunner *runner;
    int failed;

    suite_add_tcase(s, parts_case());
    suite_add_tcase(s, confinement_case());
    suite_add_tcase(s, tools_case());
    suite_add_tcase(s, search_case());
    suite_add_tcase(s, hooks_case());
    suite_add_tcase(s, ask_docs_case());
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
