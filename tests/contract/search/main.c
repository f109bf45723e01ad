#include "tests/contract/search/search.h"
#include "tests/kit/suites.h"

int main(void)
{
    static Suite *(*const suites[])(void) = {search_suite, equal_suite, embed_suite, damage_suite, sessions_suite};

    worlds_begin();
    return rv_kit_run_suites(suites, RV_COUNT(suites));
}
