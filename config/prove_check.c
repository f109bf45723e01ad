/* A found walk walked again, with every bound and limit counted; and the bound that needs no search. */
#include <stdlib.h>

#include "config/prove_internal.h"

struct tally {
    const struct rv_walk_graph *g;
    enum rv_walk_goal goal;
    int64_t *edge_uses, *visits; /* owned */
    int64_t hops, loops;
    int64_t calls_at_least, calls_surely; /* before the next visit; they differ where a call may be skipped */
    bool is_sure;
    struct rv_walk_fault fault;
};

static bool break_at(struct tally *t, bool is_edge, size_t at)
{
    t->fault = (struct rv_walk_fault){is_edge, at};
    return false;
}

static bool arrive(struct tally *t, int stage)
{
    const struct rv_walk_graph *g = t->g;
    bool calls = g->calls[stage] > 0 && t->goal != RV_WALK_MOCKED_VISITS;

    if (t->hops++ >= g->max_hops || (calls && t->calls_at_least >= g->max_calls))
        return break_at(t, false, SIZE_MAX);
    if (g->visit_limit[stage] > 0 && ++t->visits[stage] > g->visit_limit[stage])
        return break_at(t, false, (size_t)stage);
    if (calls && t->calls_surely >= g->max_calls)
        t->is_sure = false;
    return true;
}

static void pay(struct tally *t, int stage, const struct rv_walk_edge *e)
{
    int64_t calls = t->g->calls[stage];

    switch (t->goal) {
    case RV_WALK_MOCKED_VISITS:
        return;
    case RV_WALK_VISITS:
        t->calls_at_least += calls > 0 && !(e && e->skips_call);
        t->calls_surely += calls > 0 && !(e && e->skips_surely);
        return;
    case RV_WALK_CALLS:
        t->is_sure &= !t->g->asks_again[stage];
        t->calls_surely = rv_sat_add(t->calls_surely, calls);
        if (t->calls_surely > t->g->max_calls)
            t->calls_surely = t->g->max_calls;
        t->calls_at_least = t->calls_surely;
        return;
    }
}

static bool leave_to(struct tally *t, int from, int to)
{
    size_t at = rv_walk_edge_at(t->g, from, to);
    const struct rv_walk_edge *e;

    if (at == SIZE_MAX)
        return break_at(t, false, SIZE_MAX);
    e = &t->g->edges[at];
    pay(t, from, e);
    if (e->limit > 0 && ++t->edge_uses[at] > e->limit)
        return break_at(t, true, at);
    t->loops += to <= from;
    if (t->loops > t->g->loops)
        return break_at(t, false, SIZE_MAX);
    t->is_sure &= e->is_likely;
    return true;
}

static bool walk_all(struct tally *t, const struct rv_walk *walk)
{
    for (size_t i = 0; i < walk->n; i++) {
        if (i > 0 && !leave_to(t, walk->stages[i - 1], walk->stages[i]))
            return false;
        if (!arrive(t, walk->stages[i]))
            return false;
    }
    if (walk->n > 0)
        pay(t, walk->stages[walk->n - 1], NULL);
    return true;
}

int rv_walk_check(const struct rv_walk_graph *g, enum rv_walk_goal goal, const struct rv_walk *walk,
                  enum rv_walk_verdict *verdict, struct rv_walk_fault *fault, rv_err **err)
{
    struct tally t = {.g = g, .goal = goal, .is_sure = walk->n == 0 || walk->stages[0] == 0};
    int rc = 0;

    t.edge_uses = calloc(g->n_edges + 1, sizeof(*t.edge_uses));
    t.visits = calloc(g->n + 1, sizeof(*t.visits));
    if (!t.edge_uses || !t.visits) {
        rc = RV_FAIL(err, RV_E_NOMEM, "check the longest walk");
        goto done;
    }
    if (!walk_all(&t, walk))
        *verdict = RV_WALK_LIMITED;
    else if (!t.is_sure || (goal == RV_WALK_CALLS ? t.calls_surely : t.hops) != walk->best)
        *verdict = RV_WALK_LEGAL;
    else
        *verdict = RV_WALK_REAL;
    *fault = t.fault;
done:
    free(t.edge_uses);
    free(t.visits);
    return rc;
}

/* Heaviest way along forward edges, from anywhere: longest[s] is the best that ends with s. */
static int64_t heaviest_segment(const struct rv_walk_graph *g, enum rv_walk_goal goal, int64_t *longest)
{
    int64_t best = 0, all = 0;

    for (size_t s = 0; s < g->n; s++) {
        int64_t own = goal == RV_WALK_CALLS ? g->calls[s] : 1;

        if (!g->reached[s])
            continue;
        all = rv_sat_add(all, own);
        longest[s] = rv_sat_add(longest[s], own);
        best = longest[s] > best ? longest[s] : best;
        for (size_t i = g->start[s]; g->is_whole && i < g->start[s + 1]; i++) {
            int to = g->edges[i].to;

            if ((size_t)to > s && longest[s] > longest[to])
                longest[to] = longest[s];
        }
    }
    return g->is_whole ? best : all;
}

int rv_walk_closed_bound(const struct rv_walk_graph *g, enum rv_walk_goal goal, int64_t *out, rv_err **err)
{
    int64_t *longest = calloc(g->n + 1, sizeof(*longest));
    int64_t most, dearest = 0, bound;

    if (!longest)
        return RV_FAIL(err, RV_E_NOMEM, "bound the length of a walk");
    bound = rv_sat_mul(heaviest_segment(g, goal, longest), rv_sat_add(g->loops, 1));
    free(longest);
    for (size_t s = 0; s < g->n; s++)
        dearest = g->reached[s] && g->calls[s] > dearest ? g->calls[s] : dearest;
    most = goal == RV_WALK_CALLS ? rv_sat_mul(dearest, g->max_hops) : g->max_hops;
    if (goal == RV_WALK_CALLS && g->max_calls < most)
        most = g->max_calls;
    *out = bound < most ? bound : most;
    return 0;
}
