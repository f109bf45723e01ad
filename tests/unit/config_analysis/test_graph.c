#include "tests/unit/config_analysis/suites.h"
void add_graph_tests(Suite *suite) { (void)suite; }
