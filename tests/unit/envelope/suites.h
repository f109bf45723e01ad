/* The test cases of this program. */
#ifndef RV_TESTS_UNIT_ENVELOPE_SUITES_H
#define RV_TESTS_UNIT_ENVELOPE_SUITES_H

#include <check.h>

TCase *terms_case(void);
TCase *create_case(void);
TCase *values_case(void);
TCase *history_case(void);
TCase *interrupt_case(void);
TCase *queue_case(void);
TCase *goals_case(void);
TCase *result_case(void);
TCase *state_case(void);
TCase *state_random_case(void);
TCase *state_extreme_case(void);
TCase *fork_case(void);
TCase *branches_case(void);
TCase *patch_case(void);

#endif
