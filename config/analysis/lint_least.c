/* The least that a run which reaches the end costs, in stage visits and in model calls: a lower bound, for warnings.
 */
#include <stdlib.h>

#include "config/analysis/lint_internal.h"
#include "config/analysis/prove_internal.h"

enum cost { VISITS, CALLS };

static int64_t own_cost(const struct rv_pipeline *p, const struct lint_arc *arc, enum cost what)
{
    const struct rv_agent *a = &p->agents[arc->from];
    bool is_plain = !arc->is_error && !a->each.list; /* an empty list needs nothing */

    if (what == CALLS)
        return is_plain && rv_agent_calls_model(a) && a->hooks.before_model.n == 0;
    return 1;
}

/* dist[i]: the least from stage i to the targets, which are 0; -1: no way. */
static void spread(const struct lint_arcs *arcs, const int64_t *weights, int64_t *dist)
{
    bool changed = true;

    while (changed) {
        changed = false;
        for (size_t i = arcs->n; i-- > 0;) {
            const struct lint_arc *arc = &arcs->items[i];
            int64_t most = dist[arc->to] < 0 ? -1 : rv_sat_add(dist[arc->to], weights[i]);
            if (most < 0 || (dist[arc->from] >= 0 && dist[arc->from] <= most))
                continue;
            dist[arc->from] = most;
            changed = true;
        }
    }
}

static int64_t least(const struct lint_arcs *arcs, enum cost what, int64_t *weights, int64_t *dist)
{
    for (size_t i = 0; i < arcs->n; i++)
        weights[i] = own_cost(arcs->p, &arcs->items[i], what);
    for (size_t i = 0; i < arcs->p->n_agents; i++)
        dist[i] = -1;
    dist[arcs->p->n_agents] = 0;
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
