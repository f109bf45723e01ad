/* Warnings about groups of branches that can run and are probably not what was meant. */
#include "config/analysis/analysis_internal.h"

static void warn_of_lonely(const struct rv_pipeline *p, const struct rv_agent *a, const struct rv_branches *list,
                           rv_findings *findings)
{
    int join = a->routing.join_of;

    for (size_t i = 0; i < list->n && join >= 0; i++) {
        const struct rv_branch_target *one = &list->items[i];

        if (one->target >= 0 && !p->agents[one->target].level.can_join)
            rv_findings_add_as(findings, RV_SEVERITY_WARNING, "branch_never_joins", &one->src,
                               "let a stage of the branch lead to the join; a branch that ends counts as ended there",
                               "stage \"%s\": the branch \"%s\" never leads to the join \"%s\" of the others", a->name,
                               one->name, p->agents[join].name);
    }
}

static void warn_of_race(const struct rv_agent *a, rv_findings *findings)
{
    const struct rv_agent_join *join = &a->join;

    if (join->wait == RV_WAIT_COUNT)
        rv_findings_add_as(findings, RV_SEVERITY_WARNING, "racing_join", &join->src,
                           "write join: all or any for the same result in each run, or leave it if time may decide",
                           "stage \"%s\": which branches this join merges depends on which of them arrive first",
                           a->name);
    else if (join->wait == RV_WAIT_ALL && join->failures == RV_FAILURES_FAST)
        rv_findings_add_as(findings, RV_SEVERITY_WARNING, "racing_join", &join->failures_src,
                           "write failures: drain or collect for the same result in each run, or leave it if time may "
                           "decide",
                           "stage \"%s\": which branches a failure cancels, and the error that is told, depend on time",
                           a->name);
}

void rv_lint_groups(const struct rv_pipeline *p, rv_findings *findings)
{
    for (size_t i = 0; i < p->n_agents && p->has_groups; i++) {
        const struct rv_agent *a = &p->agents[i];

        for (size_t r = 0; r < a->routing.n_rules; r++)
            warn_of_lonely(p, a, &a->routing.rules[r].branches, findings);
        warn_of_lonely(p, a, &a->routing.branches, findings);
        warn_of_race(a, findings);
    }
}
