/* The least that a run which reaches the end costs, in stage visits and in model calls: a lower bound, for warnings.
 *
 * Without groups it is the cheapest way. A list of targets begins each of its branches that has no `when`, so what
 * these cost adds up: the way from the stage that opens the group to its join weighs the sum of their cheapest ways.
 * Where the run may go on after a branch failed, a branch weighs its first visit only; at a join that waits for a
 * number, which can be settled before any branch begins, it weighs nothing. */
#include <stdlib.h>

#include "config/analysis/lint_internal.h"
#include "config/analysis/prove_internal.h"

#define MAX_PASSES 64 /* over all groups: each one settles the groups around those that the last one settled */

enum cost { VISITS, CALLS };

static int64_t own_cost(const struct rv_pipeline *p, const struct lint_arc *arc, enum cost what)
{
    const struct rv_agent *a = &p->agents[arc->from];
    bool is_plain = !arc->is_error && !a->each.list; /* an empty list needs nothing */
    bool begins_inner =
        a->inner.pipeline && a->inner.pipeline->n_agents > 0 && !a->hooks.mock_handler[0] && !a->hooks.pre_process[0];

    if (what == CALLS)
        return is_plain && lint_agent_calls_model(a) && a->hooks.before_model.n == 0 &&
               !lint_agent_may_sit_out(p, a, false);
    return 1 + (is_plain && begins_inner); /* an inner run can end with a stated outcome in its first stage */
}

/* dist[i]: the least from stage i to the targets, which are 0; -1: no way. */
static void spread(const struct lint_arcs *arcs, const int64_t *weights, int64_t *dist)
{
    bool changed = true;

    while (changed) {
        changed = false;
        for (size_t i = arcs->n; i-- > 0;) {
            const struct lint_arc *arc = &arcs->items[i];
            int64_t most = dist[arc->to] < 0 || arc->is_branch ? -1 : lint_sat_add(dist[arc->to], weights[i]);
            if (most < 0 || (dist[arc->from] >= 0 && dist[arc->from] <= most))
                continue;
            dist[arc->from] = most;
            changed = true;
        }
    }
}

static void aim(const struct lint_arcs *arcs, int target, int64_t *dist)
{
    for (size_t i = 0; i <= arcs->p->n_agents; i++)
        dist[i] = -1;
    dist[target] = dist[arcs->p->n_agents] = 0; /* a branch may end, too */
}

/* NULL: the branches end, or fail what opened the group. */
static const struct rv_agent *join_of(const struct lint_arcs *arcs, const struct lint_arc *arc)
{
    return (size_t)arc->to < arcs->p->n_agents ? &arcs->p->agents[arc->to] : NULL;
}

/* A run that goes on behind the group has no failed branch: else the join fails, and the branch or run around it. */
static bool needs_success(const struct rv_agent *join)
{
    return !join || (join->join.wait == RV_WAIT_ALL && join->join.failures != RV_FAILURES_COLLECT &&
                     join->routing.error_target == RV_TARGET_NONE);
}

/* From the stage that opens the group to where its branches meet. */
static int64_t group_cost(const struct lint_arcs *arcs, const struct lint_arc *arc, enum cost what,
                          const int64_t *weights, int64_t *dist)
{
    int64_t sum = own_cost(arcs->p, arc, what);
    const struct rv_agent *join = join_of(arcs, arc);
    bool whole = needs_success(join);

    if (join && join->join.wait == RV_WAIT_COUNT)
        return sum;
    if (whole) {
        aim(arcs, arc->to, dist);
        spread(arcs, weights, dist);
    }
    for (size_t i = 0; i < arc->list->n; i++) {
        const struct rv_branch_target *b = &arc->list->items[i];
        if (b->when || b->target < 0 || b->target == arc->to)
            continue;
        sum = lint_sat_add(sum, whole && dist[b->target] >= 0 ? dist[b->target] : what == VISITS);
    }
    return sum;
}

static int64_t least(const struct lint_arcs *arcs, enum cost what, int64_t *weights, int64_t *dist)
{
    bool changed = arcs->p->has_groups;

    for (size_t i = 0; i < arcs->n; i++)
        weights[i] = own_cost(arcs->p, &arcs->items[i], what);
    for (int pass = 0; changed && pass < MAX_PASSES; pass++) {
        changed = false;
        for (size_t i = arcs->n; i-- > 0;) { /* inner groups are behind those around them, as a rule */
            int64_t cost = arcs->items[i].list ? group_cost(arcs, &arcs->items[i], what, weights, dist) : weights[i];
            changed = changed || cost != weights[i];
            weights[i] = cost;
        }
    }
    aim(arcs, (int)arcs->p->n_agents, dist);
    spread(arcs, weights, dist);
    return dist[0];
}

int lint_least(const struct lint_arcs *arcs, int64_t *visits, int64_t *calls, rv_err **err)
{
    int64_t *weights = calloc(arcs->n + 1, sizeof *weights), *dist = calloc(arcs->p->n_agents + 1, sizeof *dist);
    int rc = weights && dist ? 0 : RV_FAIL(err, RV_E_NOMEM, "follow the routes between stages");

    if (rc == 0) {
        *visits = least(arcs, VISITS, weights, dist);
        *calls = least(arcs, CALLS, weights, dist);
    }
    free(weights);
    free(dist);
    return rc;
}
