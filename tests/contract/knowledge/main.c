#include "tests/contract/knowledge/people.h"
#include "tests/kit/suites.h"

int main(void)
{
    static Suite *(*const suites[])(void) = {lookup_suite, traverse_suite, sql_suite,      hostile_suite,
                                             walls_suite,  scripts_suite,  existence_suite};

    worlds_begin();
    return rv_kit_run_suites(suites, RV_COUNT(suites));
}
