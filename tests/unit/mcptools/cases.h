#ifndef RV_TESTS_MCPTOOLS_CASES_H
#define RV_TESTS_MCPTOOLS_CASES_H

#include <check.h>

TCase *lists_case(void);
TCase *pool_case(void);

#endif
