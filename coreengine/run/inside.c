/* Stages that wait for a person: what is said to one without it going on. */
#include "coreengine/run/run_internal.h"

int run_give_up(rv_run *run, struct branch *b, int stage, const char *why, struct rv_effects *out, rv_err **err)
{
    return rv_visit_give_up(&run->shared, stage, b->env, why, out, err);
}

int run_give_up_waiting(rv_run *run, struct branch *b, const char *why, struct rv_effects *out, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < run->pipeline->n_agents && rc == 0; i++)
        rc = run_give_up(run, b, (int)i, why, out, err);
    return rc;
}
