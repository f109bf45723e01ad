#include "tests/contract/store/world.h"
#include "tests/kit/postgres.h"
#include "tests/kit/suites.h"

/* What rv_kit_postgres_reuse() takes the first rows from. */
static void make_fresh_schema(void)
{
    const struct rv_kit_postgres *pg = rv_kit_postgres();
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    char url[400];
    rv_store *s = NULL;

    snprintf(url, sizeof url, "%s&schema=fresh", pg->url);
    if (rv_store_open(url, &opts, &s, NULL) < 0)
        rv_kit_die("cannot open %s", url);
    rv_store_close(s);
}

int main(void)
{
    static Suite *(*const suites[])(void) = {
        runs_suite,         append_suite,         pending_suite,         interrupts_suite, owners_suite,
        values_suite,       groups_suite,         arguments_suite,       faults_suite,     sessions_suite,
        messages_suite,     turns_suite,          schemas_suite,         isolation_suite,  tasks_suite,
        tasks_people_suite, tasks_shares_suite,   tasks_random_suite,    schedules_suite,  schedules_random_suite,
        quotas_suite,       api_keys_suite,       quotas_random_suite,   listen_suite,     workers_suite,
        entities_suite,     entities_names_suite, entities_random_suite, moments_suite};

    if (!store_impls[n_store_impls - 1].scheme)
        make_fresh_schema();
    return rv_kit_run_suites(suites, RV_COUNT(suites));
}
