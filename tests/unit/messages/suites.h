/* The test cases of the files in this folder. */
#ifndef RV_TESTS_MESSAGES_SUITES_H
#define RV_TESTS_MESSAGES_SUITES_H

#include <check.h>

TCase *budget_case(void);
TCase *calls_case(void);
TCase *golden_case(void);
TCase *history_case(void);
TCase *keys_case(void);
TCase *moments_case(void);
TCase *options_case(void);
TCase *turn_case(void);
TCase *words_case(void);

#endif
