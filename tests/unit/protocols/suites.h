#ifndef TESTS_UNIT_PROTOCOLS_SUITES_H
#define TESTS_UNIT_PROTOCOLS_SUITES_H

#include <check.h>

TCase *random_case(void);
TCase *golden_case(void);
TCase *requests_case(void);

#endif
