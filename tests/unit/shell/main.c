#include "tests/unit/shell/suites.h"

int main(void)
{
    SRunner *runner = srunner_create(runs_suite());
    int failed;

    srunner_add_suite(runner, time_suite());
    srunner_add_suite(runner, workers_suite());
    srunner_add_suite(runner, health_suite());
    srunner_add_suite(runner, replay_suite());
    srunner_add_suite(runner, recover_suite());
    srunner_add_suite(runner, lease_suite());
    srunner_add_suite(runner, outcomes_suite());
    srunner_add_suite(runner, models_suite());
    srunner_add_suite(runner, pieces_suite());
    srunner_add_suite(runner, model_times_suite());
    srunner_add_suite(runner, model_load_suite());
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
