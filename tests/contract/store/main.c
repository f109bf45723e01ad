#include "tests/contract/store/world.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

int main(void)
{
    static Suite *(*const suites[])(void) = {
        runs_suite,         append_suite,       pending_suite,        interrupts_suite,      owners_suite,
        values_suite,       groups_suite,       arguments_suite,      faults_suite,          sessions_suite,
        messages_suite,     turns_suite,        schemas_suite,        isolation_suite,       tasks_suite,
        tasks_people_suite, tasks_shares_suite, tasks_random_suite,   schedules_suite,       schedules_random_suite,
        quotas_suite,       api_keys_suite,     quotas_random_suite,  listen_suite,          workers_suite,
        erasure_suite,      entities_suite,     entities_names_suite, entities_random_suite, moments_suite,
        encryption_suite,   clients_suite,      sealed_suite,         versions_suite};
    static Suite *(*const with_others[])(void) = {tasks_suite, listen_suite, workers_suite};

    worlds_begin();
#ifdef __SANITIZE_THREAD__ /* what one thread does has no races */
    if (rv_kit_stride(2) > 1)
        return rv_kit_run_suites(with_others, RV_COUNT(with_others));
#else
    (void)with_others;
#endif
    return rv_kit_run_suites(suites, RV_COUNT(suites));
}
