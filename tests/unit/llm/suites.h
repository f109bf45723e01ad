/* The test cases of the files in this folder. */
#ifndef RV_TESTS_LLM_SUITES_H
#define RV_TESTS_LLM_SUITES_H

#include <check.h>

TCase *attachments_case(void);
TCase *bound_case(void);
TCase *money_case(void);

#endif
