#include "tests/unit/envelope/suites.h"

#include <stddef.h>

int main(void)
{
    static TCase *(*const cases[])(void) = {terms_case,     create_case, values_case, history_case,
                                            interrupt_case, queue_case,  goals_case,  result_case,
                                            state_case,     fork_case,   patch_case,  state_random_case};
    Suite *suite = suite_create("envelope");
    SRunner *runner;
    int n_failed;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        suite_add_tcase(suite, cases[i]());
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? 1 : 0;
}
