#include "tests/kit/suites.h"
#include "tests/unit/bundle/world.h"

int main(void)
{
    static Suite *(*const suites[])(void) = {write_suite, open_suite, catalog_suite, broken_suite,
                                             same_suite,  fits_suite, agents_suite};

    return rv_kit_run_suites(suites, RV_COUNT(suites));
}
