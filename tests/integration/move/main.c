#include "tests/integration/move/world.h"
#include "tests/kit/suites.h"

int main(void)
{
    static Suite *(*const suites[])(void) = {copy_suite, refusals_suite, killed_suite};

    rv_kit_postgres();
    return rv_kit_run_suites(suites, RV_COUNT(suites));
}
