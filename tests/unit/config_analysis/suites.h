/* The suites of this program. */
#ifndef RV_TEST_CONFIG_ANALYSIS_SUITES_H
#define RV_TEST_CONFIG_ANALYSIS_SUITES_H

#include <check.h>

void add_ready_tests(Suite *suite);
void add_prove_tests(Suite *suite);
void add_prove_random_tests(Suite *suite);
void add_prove_groups_tests(Suite *suite);
void add_lint_tests(Suite *suite);
void add_groups_tests(Suite *suite);
void add_graph_tests(Suite *suite);

#endif
