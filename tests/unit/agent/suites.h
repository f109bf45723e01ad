/* The test cases of the files in this folder. */
#ifndef RV_TESTS_AGENT_SUITES_H
#define RV_TESTS_AGENT_SUITES_H

#include <check.h>

TCase *extract_case(void);
TCase *route_case(void);
TCase *visit_case(void);
TCase *hostile_case(void);
TCase *loop_case(void);
TCase *call_hooks_case(void);
TCase *call_hooks_hostile_case(void);
TCase *context_case(void);
TCase *declared_hooks_case(void);

#endif
