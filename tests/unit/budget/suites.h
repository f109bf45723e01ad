/* The test cases of the files in this folder. */
#ifndef RV_TESTS_BUDGET_SUITES_H
#define RV_TESTS_BUDGET_SUITES_H

#include <check.h>

TCase *ledger_case(void);

#endif
