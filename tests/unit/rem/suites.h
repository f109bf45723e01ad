/* The cases of this suite. */
#ifndef RV_TESTS_REM_SUITES_H
#define RV_TESTS_REM_SUITES_H

#include <check.h>

TCase *parse_case(void);
TCase *sql_case(void);

#endif
