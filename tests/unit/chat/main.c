#include "tests/kit/suites.h"
#include "tests/unit/chat/world.h"

int main(void)
{
    static Suite *(*const suites[])(void) = {turns_suite,        delegation_suite, chain_suite, flood_suite,
                                             store_faults_suite, who_suite,        shown_suite, loop_suite,
                                             damage_suite,       history_suite,    alone_suite};

    return rv_kit_run_suites(suites, RV_COUNT(suites));
}
