#include <stdlib.h>

#include "tests/unit/tools/suites.h"

int main(void)
{
    Suite *s = suite_create("tools");
    SRunner *runner;
    int n_failed;

    suite_add_tcase(s, access_case());
    suite_add_tcase(s, catalog_case());
    suite_add_tcase(s, health_case());
    suite_add_tcase(s, normalize_case());
    suite_add_tcase(s, registry_case());
    suite_add_tcase(s, result_case());
    suite_add_tcase(s, result_data_case());
    suite_add_tcase(s, schema_case());
    suite_add_tcase(s, schema_compile_case());
    suite_add_tcase(s, step_result_case());
    suite_add_tcase(s, pipeline_schemas_case());
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
