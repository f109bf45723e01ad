#include "tests/kit/suites.h"
#include "tests/unit/turns/room.h"

int main(void)
{
    static Suite *(*const suites[])(void) = {rows_suite,   replay_suite,  cancel_suite, limits_suite,
                                             pauses_suite, columns_suite, asked_suite,  objects_suite};

    return rv_kit_run_suites(suites, RV_COUNT(suites));
}
