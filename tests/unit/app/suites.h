/* The cases of unit_app. */
#ifndef RV_TESTS_APP_SUITES_H
#define RV_TESTS_APP_SUITES_H

#include <check.h>

TCase *client_case(void);
TCase *dispatcher_case(void);
TCase *dream_case(void);
TCase *find_case(void);
TCase *folder_case(void);
TCase *hook_case(void);
TCase *memory_case(void);
TCase *needs_case(void);
TCase *plan_case(void);
TCase *quotas_case(void);
TCase *rate_case(void);
TCase *top_case(void);

#endif
