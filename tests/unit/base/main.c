#include "tests/unit/base/suites.h"

#include <stddef.h>

int main(void)
{
    static TCase *(*const cases[])(void) = {err_case,       bytes_case,      index_case,     file_case,  json_read_case,
                                            json_scan_case, json_write_case, json_tree_case, clock_case, log_case};
    Suite *suite = suite_create("base");
    SRunner *runner;
    int n_failed;
    size_t i;

    for (i = 0; i < sizeof cases / sizeof cases[0]; i++)
        suite_add_tcase(suite, cases[i]());
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? 1 : 0;
}
