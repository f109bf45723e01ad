#include <stdlib.h>

#include "tests/unit/cli/suites.h"

int main(void)
{
    SRunner *runner = srunner_create(record_suite());
    int failed;

    srunner_add_suite(runner, record_property_suite());
    srunner_add_suite(runner, tally_suite());
    srunner_add_suite(runner, chat_sink_suite());
    srunner_add_suite(runner, chat_calls_suite());
    srunner_add_suite(runner, tables_suite());
    srunner_add_suite(runner, yaml_text_suite());
    srunner_add_suite(runner, query_text_suite());
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
