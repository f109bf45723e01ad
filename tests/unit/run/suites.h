/* The test cases of the files in this folder. */
#ifndef RV_TESTS_RUN_SUITES_H
#define RV_TESTS_RUN_SUITES_H

#include <check.h>

TCase *whole_case(void);
TCase *protocol_case(void);
TCase *answers_case(void);
TCase *approve_case(void);
TCase *continue_case(void);
TCase *outcomes_case(void);
TCase *random_case(void);
TCase *questions_case(void);
TCase *growth_case(void);
TCase *lists_case(void);
TCase *model_calls_case(void);
TCase *reads_case(void);

#endif
