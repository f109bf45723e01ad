/* Which stages may start (rule 4.5), and who waits for whom (rule 4.4). */
#include <stdlib.h>

#include "config/config_internal.h"

static bool has_state(const struct rv_pipeline *p, const enum rv_stage_state *states, int stage,
                      enum rv_stage_state state)
{
    return stage >= 0 && (size_t)stage < p->n_agents && states[stage] == state;
}

static bool requires_met(const struct rv_pipeline *p, const enum rv_stage_state *states, const struct rv_agent *a)
{
    bool any = a->order.join == RV_JOIN_ANY;

    if (a->order.requires.n == 0)
        return true;
    for (size_t i = 0; i < a->order.requires.n; i++) {
        if (has_state(p, states, a->order.requires_index[i], RV_STAGE_COMPLETED) == any)
            return any;
    }
    return !any;
}

/* `after` orders and does not depend: whatever has come to an end, well or not, is satisfied. */
static bool after_met(const struct rv_pipeline *p, const enum rv_stage_state *states, const struct rv_agent *a)
{
    for (size_t i = 0; i < a->order.after.n; i++) {
        int stage = a->order.after_index[i];

        if (!has_state(p, states, stage, RV_STAGE_COMPLETED) && !has_state(p, states, stage, RV_STAGE_FAILED) &&
            !has_state(p, states, stage, RV_STAGE_SKIPPED))
            return false;
    }
    return true;
}

void rv_pipeline_mark_fallbacks(struct rv_pipeline *p)
{
    for (size_t i = 0; i < p->n_agents; i++)
        p->agents[i].routing.on_failure_only = false;
    for (size_t i = 0; i < p->n_agents; i++) {
        int to = p->agents[i].routing.error_target;

        if (to > 0 && (size_t)to != i)
        p->agents[to].routing.on_failure_only = p->agents[to].order.requires.n == 0 && p->agents[to].order.after.n == 0;
    }
    for (size_t i = 0; i < p->n_agents; i++) { /* what a rule names, too, is a stage like others */
        const struct rv_agent *a = &p->agents[i];

        if (a->routing.default_target >= 0 && a->routing.default_target != (int)i)
            p->agents[a->routing.default_target].routing.on_failure_only = false;
        for (size_t r = 0; r < a->routing.n_rules; r++)
            if (a->routing.rules[r].target >= 0 && a->routing.rules[r].target != (int)i)
                p->agents[a->routing.rules[r].target].routing.on_failure_only = false;
    }
}

/* Has one of the stages whose error_next it is failed? */
static bool is_called_for(const struct rv_pipeline *p, const enum rv_stage_state *states, int stage)
{
    for (size_t i = 0; i < p->n_agents; i++)
        if (p->agents[i].routing.error_target == stage && states[i] == RV_STAGE_FAILED)
            return true;
    return false;
}

bool rv_stage_has_what_it_needs(const struct rv_pipeline *p, const enum rv_stage_state *states, int stage)
{
    return has_state(p, states, stage, RV_STAGE_WAITING) && requires_met(p, states, &p->agents[stage]) &&
           after_met(p, states, &p->agents[stage]);
}

static bool is_ready(const struct rv_pipeline *p, const enum rv_stage_state *states, int stage)
{
    return rv_stage_has_what_it_needs(p, states, stage) &&
           (!p->agents[stage].routing.on_failure_only || is_called_for(p, states, stage));
}

size_t rv_pipeline_ready(const struct rv_pipeline *p, const enum rv_stage_state *states, int *out)
{
    size_t n = 0;

    for (size_t i = 0; i < p->n_agents; i++) {
        if (is_ready(p, states, (int)i))
            out[n++] = (int)i;
    }
    return n;
}

/* One pass over every dependency. Without `items` it counts, else it writes; a stage that names another one twice
 * counts once, which `seen` tells: the last stage that was recorded for each. */
static void each_dependency(const struct rv_pipeline *p, size_t *count, int *seen, int *items)
{
    for (size_t s = 0; s < p->n_agents; s++)
        seen[s] = -1;
    for (size_t s = 0; s < p->n_agents; s++) {
        const struct rv_agent *a = &p->agents[s];

        for (size_t i = 0; i < a->order.requires.n + a->order.after.n; i++) {
            int on =
                i < a->order.requires.n ? a->order.requires_index[i] : a->order.after_index[i - a->order.requires.n];

            if (on < 0 || (size_t)on >= p->n_agents || seen[on] == (int)s)
                continue;
            seen[on] = (int)s;
            if (items)
                items[count[on]] = (int)s;
            count[on]++;
        }
    }
}

static int build_links(const struct rv_pipeline *p, struct rv_links *out, rv_err **err)
{
    struct rv_links links = {NULL, NULL};
    size_t n = p->n_agents, total = 0;
    size_t *next = calloc(n + 1, sizeof(*next));
    int *seen = calloc(n + 1, sizeof(*seen));
    int rc = 0;

    links.start = calloc(n + 1, sizeof(*links.start));
    if (!next || !seen || !links.start)
        goto no_memory;
    each_dependency(p, next, seen, NULL);
    for (size_t s = 0; s < n; s++) {
        links.start[s] = total;
        total += next[s];
        next[s] = links.start[s];
    }
    links.start[n] = total;
    links.items = calloc(total + 1, sizeof(*links.items));
    if (!links.items)
        goto no_memory;
    each_dependency(p, next, seen, links.items);
    *out = links;
    links = (struct rv_links){NULL, NULL};
    goto done;

no_memory:
    rc = RV_FAIL(err, RV_E_NOMEM, "list the dependents of each stage");
done:
    rv_links_fini(&links);
    free(next);
    free(seen);
    return rc;
}

void rv_links_fini(struct rv_links *links)
{
    free(links->items);
    free(links->start);
    *links = (struct rv_links){NULL, NULL};
}

int rv_pipeline_link(struct rv_pipeline *p, rv_err **err)
{
    rv_links_fini(&p->private->links);
    return build_links(p, &p->private->links, err);
}

const int *rv_pipeline_dependents(const struct rv_pipeline *p, int stage, size_t *n)
{
    const struct rv_links *links = &p->private->links;

    *n = 0;
    if (stage < 0 || (size_t)stage >= p->n_agents || !links->start)
        return NULL;
    *n = links->start[stage + 1] - links->start[stage];
    return links->items + links->start[stage];
}
