#include "tests/kit/suites.h"
#include "tests/unit/store/world.h"

int main(void)
{
    static Suite *(*const suites[])(void) = {file_suite,  schema_suite, sessions_suite, damage_suite, disk_suite,
                                             locks_suite, tasks_suite,  memory_suite,   writer_suite, power_suite};

    return rv_kit_run_suites(suites, RV_COUNT(suites));
}
