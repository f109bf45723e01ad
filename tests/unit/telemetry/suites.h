#ifndef RV_TESTS_TELEMETRY_SUITES_H
#define RV_TESTS_TELEMETRY_SUITES_H

#include <check.h>

TCase *context_case(void);
TCase *spans_case(void);
TCase *metrics_case(void);
TCase *settings_case(void);

#endif
