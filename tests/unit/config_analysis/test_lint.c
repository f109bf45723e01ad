#include "tests/unit/config_analysis/suites.h"
void add_lint_tests(Suite *suite) { (void)suite; }
