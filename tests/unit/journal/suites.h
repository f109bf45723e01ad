#ifndef RV_TESTS_JOURNAL_SUITES_H
#define RV_TESTS_JOURNAL_SUITES_H

#include <check.h>

TCase *replay_case(void);
TCase *write_case(void);
TCase *damage_case(void);
TCase *faults_case(void);
TCase *growth_case(void);
TCase *format_case(void);
TCase *extreme_case(void);
TCase *owner_case(void);
TCase *random_case(void);
TCase *snapshot_case(void);

#endif
