#include "tests/contract/tools/world.h"
#include "tests/kit/suites.h"

int main(void)
{
    static Suite *(*const suites[])(void) = {catalog_suite, calls_suite, ends_suite};

    return rv_kit_run_suites(suites, RV_COUNT(suites));
}
