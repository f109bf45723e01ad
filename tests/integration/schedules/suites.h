/* The suites of integration_schedules. */
#ifndef RV_TESTS_SCHEDULES_SUITES_H
#define RV_TESTS_SCHEDULES_SUITES_H

#include <check.h>
#include <stdio.h>

Suite *points_suite(void);

#endif
