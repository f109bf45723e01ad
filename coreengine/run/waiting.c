/* Stages that wait for a person: what is said to one without it going on. What a run inside of the stage has to do with
 * that, its kind of work knows. */
#include "coreengine/run/work_kinds_internal.h"

static const struct rv_work_kind *inner_kind(const rv_run *run)
{
    return run->shared.outside[RV_OUTSIDE_PIPELINE];
}

int run_give_up(rv_run *run, struct branch *b, int stage, const char *why, struct rv_effects *out, rv_err **err)
{
    int rc = rv_visit_give_up(&run->shared, stage, b->env, why, out, err);

    return rc < 0 || run->shared.rules < RV_RULES_9 ? rc : inner_kind(run)->give_up(run, b, stage, why, out, err);
}

int run_give_up_waiting(rv_run *run, struct branch *b, const char *why, struct rv_effects *out, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < run->pipeline->n_agents && rc == 0; i++)
        rc = run_give_up(run, b, (int)i, why, out, err);
    return rc;
}

int run_tells_denial(rv_run *run, struct branch *b, bool *tells, rv_err **err)
{
    *tells = rv_visit_tells_denial(&run->shared, b->env);
    return *tells || run->shared.rules < RV_RULES_9 ? 0 : inner_kind(run)->tells_denial(run, b, tells, err);
}

int run_check_answer(rv_run *run, struct branch *b, const struct rv_response *r, int64_t now_us, rv_err **err)
{
    bool is_inside = false;
    int rc = r->arguments ? inner_kind(run)->check_arguments(run, b, r, now_us, &is_inside, err) : 0;

    if (rc < 0 || !is_inside)
        return rc < 0 ? rc : rv_visit_check_answer(&run->shared, b->env, r, now_us, err);
    struct rv_response without = *r;
    without.arguments = NULL;
    return rv_visit_check_answer(&run->shared, b->env, &without, now_us, err);
}
