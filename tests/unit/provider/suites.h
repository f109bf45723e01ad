/* The test cases of the files in this folder. */
#ifndef RV_TESTS_PROVIDER_SUITES_H
#define RV_TESTS_PROVIDER_SUITES_H

#include <check.h>

TCase *breaker_case(void);
TCase *endpoint_case(void);
TCase *fallback_case(void);
TCase *hints_case(void);
TCase *places_case(void);
TCase *rates_case(void);
TCase *retry_case(void);
TCase *secrets_case(void);
TCase *statuses_case(void);
TCase *table_case(void);

#endif
