#include "tests/kit/suites.h"
#include "tests/unit/graphs/graphs.h"

int main(void)
{
    Suite *suite = suite_create("graphs");

    add_graphs_tests(suite);
    return rv_kit_run(suite);
}
