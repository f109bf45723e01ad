#include "tests/kit/suites.h"
#include "tests/unit/config_analysis/suites.h"

int main(void)
{
    Suite *suite = suite_create("config_analysis");

    add_ready_tests(suite);
    add_prove_tests(suite);
    add_prove_random_tests(suite);
    add_prove_groups_tests(suite);
    add_lint_tests(suite);
    add_groups_tests(suite);
    add_graph_tests(suite);
    return rv_kit_run(suite);
}
