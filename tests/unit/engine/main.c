#include "tests/kit/suites.h"
#include "tests/unit/engine/suites.h"

int main(void)
{
    static Suite *(*const suites[])(void) = {
        runs_suite,   time_suite,     workers_suite, health_suite,   replay_suite,      recover_suite,
        lease_suite,  outcomes_suite, models_suite,  pieces_suite,   model_times_suite, model_load_suite,
        bound_suite,  call_ids_suite, hosted_suite,  kept_suite,     late_suite,        opened_suite,
        expiry_suite, early_suite,    heard_suite,   handover_suite, quotas_suite,      services_suite,
        writer_suite, stuck_suite};

    return rv_kit_run_suites(suites, RV_COUNT(suites));
}
