#ifndef RV_TESTS_SHELL_SUITES_H
#define RV_TESTS_SHELL_SUITES_H

#include "tests/unit/engine/world.h"

Suite *runs_suite(void);
Suite *time_suite(void);
Suite *workers_suite(void);
Suite *health_suite(void);
Suite *replay_suite(void);
Suite *recover_suite(void);
Suite *lease_suite(void);
Suite *outcomes_suite(void);
Suite *models_suite(void);
Suite *pieces_suite(void);
Suite *bound_suite(void);
Suite *model_times_suite(void);
Suite *model_load_suite(void);
Suite *call_ids_suite(void);
Suite *hosted_suite(void);
Suite *kept_suite(void);
Suite *late_suite(void);
Suite *opened_suite(void);
Suite *handover_suite(void);
Suite *expiry_suite(void);
Suite *early_suite(void);
Suite *heard_suite(void);
Suite *quotas_suite(void);
Suite *services_suite(void);
Suite *writer_suite(void);
Suite *stuck_suite(void);

#endif
