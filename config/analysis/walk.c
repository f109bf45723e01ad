/* The search for the best walk (see prove_internal.h), and walking it again with everything counted.
 *
 * A state is (loop-backs so far, stage, uses of the counted limits, spent), where `spent` is what the goal must not run
 * out of: model calls before this visit when visits are wanted, hops before it when calls are wanted. Edges lead to a
 * later (loop-backs, stage) only, so one pass in that order has the best value of every state. */
#include <stdlib.h>

#include "config/analysis/prove_internal.h"

struct counter {
    size_t stride, size; /* one digit of the state's mixed-radix number */
};

struct table {
    const struct rv_walk_graph *g;
    const struct rv_walk_search *search;
    size_t layers, n_counts, n_spent; /* sizes of the dimensions beside the stage */
    bool has_spent;                   /* false: there is always enough, or it was left out */
    struct counter counters[2 * RV_PROVE_MAX_COUNTERS];
    unsigned char *edge_counter, *stage_counter; /* owned; 1 + index into counters, 0: not counted */
    int64_t *value;                              /* owned; by state: 1 + the best, 0: not reached */
    uint32_t *parent;                            /* owned */
};

static size_t state_of(const struct table *t, size_t layer, size_t stage, size_t count, size_t spent)
{
    return ((layer * t->g->n + stage) * t->n_counts + count) * t->n_spent + spent;
}

static size_t stage_of(const struct table *t, size_t state)
{
    return state / (t->n_counts * t->n_spent) % t->g->n;
}

/* How many values `spent` can take; 0 when there is always enough. */
static int64_t spent_size(const struct rv_walk_graph *g, const struct rv_walk_search *search, int64_t layers)
{
    int64_t stages = 0, callers = 0;

    for (size_t s = 0; s < g->n; s++) {
        stages += g->reached[s];
        callers += g->reached[s] && g->calls[s] > 0;
    }
    switch (search->goal) {
    case RV_WALK_VISITS:
        if (g->max_calls >= g->max_hops || g->max_calls >= lint_sat_mul(callers, layers))
            return 0;
        return g->max_calls + 1;
    case RV_WALK_CALLS:
        return g->max_hops >= lint_sat_mul(stages, layers) ? 0 : g->max_hops;
    case RV_WALK_MOCKED_VISITS:
        break;
    }
    return 0;
}

static bool fits(const struct table *t, int64_t layers, int64_t counts, int64_t spent)
{
    int64_t each = lint_sat_mul(lint_sat_mul(layers, counts), spent);

    return lint_sat_mul(each, (int64_t)t->g->n) <= (int64_t)RV_PROVE_MAX_STATES &&
           lint_sat_mul(each, (int64_t)t->g->n_edges) <= (int64_t)RV_PROVE_MAX_STEPS;
}

/* Sizes of all dimensions. Too large with `spent`: without it the answer is larger or equal. */
static bool set_sizes(struct table *t)
{
    const struct rv_walk_search *search = t->search;
    int64_t layers = lint_sat_add(t->g->loops, 1), counts = 1, spent = spent_size(t->g, search, layers);
    size_t n = 0;

    for (size_t i = 0; i < search->n_edge_counters + search->n_stage_counters; i++) {
        bool is_edge = i < search->n_edge_counters;
        size_t at = is_edge ? search->edge_counters[i] : search->stage_counters[i - search->n_edge_counters];
        int64_t size = lint_sat_add(is_edge ? t->g->edges[at].limit : t->g->visit_limit[at], 1);

        t->counters[n++] = (struct counter){(size_t)counts, (size_t)size};
        counts = lint_sat_mul(counts, size);
        if (!fits(t, layers, counts, 1))
            return false;
        (is_edge ? t->edge_counter : t->stage_counter)[at] = (unsigned char)n;
    }
    t->has_spent = spent > 0 && fits(t, layers, counts, spent);
    if (!t->has_spent)
        spent = 1;
    t->layers = (size_t)layers;
    t->n_counts = (size_t)counts;
    t->n_spent = (size_t)spent;
    return fits(t, layers, counts, spent);
}

/* Count one use; false when the limit is reached already. */
static bool use(const struct table *t, unsigned char which, size_t *count)
{
    const struct counter *c;

    if (which == 0)
        return true;
    c = &t->counters[which - 1];
    if (*count / c->stride % c->size == c->size - 1)
        return false;
    *count += c->stride;
    return true;
}

static bool visits_call(const struct table *t, size_t stage)
{
    return t->search->goal == RV_WALK_VISITS && t->g->calls[stage] > 0;
}

/* A stage is come to: in which layer, with what counted and spent, and by which state, whose value is `before`. */
struct arrival {
    size_t layer, to, count, spent, parent;
    int64_t before;
};

static void visit(struct table *t, struct arrival by)
{
    size_t to = by.to;
    int64_t value = lint_sat_add(by.before, t->search->goal == RV_WALK_CALLS ? t->g->calls[to] : 1);
    size_t state;

    if (!use(t, t->stage_counter[to], &by.count))
        return;
    if (t->has_spent && visits_call(t, to) && (int64_t)by.spent >= t->g->max_calls)
        return;
    state = state_of(t, by.layer, to, by.count, by.spent);
    if (value <= t->value[state])
        return;
    t->value[state] = value;
    t->parent[state] = (uint32_t)by.parent;
}

static void leave(struct table *t, size_t layer, size_t stage, size_t count, size_t spent)
{
    size_t state = state_of(t, layer, stage, count, spent);

    for (size_t i = t->g->start[stage]; i < t->g->start[stage + 1]; i++) {
        const struct rv_walk_edge *e = &t->g->edges[i];
        size_t next_layer = layer + (e->to <= e->from), next_count = count, next_spent = spent;
        bool skips = t->search->only_likely ? e->skips_surely : e->skips_call;

        if (next_layer >= t->layers || (t->search->only_likely && !e->is_likely))
            continue;
        if (t->has_spent)
            next_spent += t->search->goal == RV_WALK_CALLS || (visits_call(t, stage) && !skips);
        if (next_spent >= t->n_spent || !use(t, t->edge_counter[i], &next_count))
            continue;
        visit(t, (struct arrival){next_layer, (size_t)e->to, next_count, next_spent, state, t->value[state]});
    }
}

static void fill(struct table *t)
{
    visit(t, (struct arrival){.before = 1, .parent = UINT32_MAX});
    for (size_t s = 1; s < t->g->n && !t->search->only_likely; s++)
        if (t->g->entry[s])
            visit(t, (struct arrival){.to = s, .before = 1, .parent = UINT32_MAX});
    for (size_t layer = 0; layer < t->layers; layer++) {
        for (size_t s = 0; s < t->g->n; s++) {
            if (!t->g->reached[s])
                continue;
            for (size_t i = 0; i < t->n_counts * t->n_spent; i++) {
                if (t->value[state_of(t, layer, s, 0, 0) + i] > 0)
                    leave(t, layer, s, i / t->n_spent, i % t->n_spent);
            }
        }
    }
}

/* The stages up to `state`, cut where the bound is reached. */
static int read_back(const struct table *t, size_t state, struct rv_walk *out, rv_err **err)
{
    size_t n = 0;
    int64_t calls = 0;

    for (size_t at = state; at != UINT32_MAX; at = t->parent[at])
        n++;
    out->stages = calloc(n + 1, sizeof(*out->stages));
    if (!out->stages)
        return RV_FAIL(err, RV_E_NOMEM, "keep the longest walk");
    out->n = n;
    for (size_t at = state; at != UINT32_MAX; at = t->parent[at])
        out->stages[--n] = (int)stage_of(t, at);
    for (n = 0; n < out->n && (int64_t)n < t->g->max_hops; n++) {
        calls = lint_sat_add(calls, t->g->calls[out->stages[n]]);
        if (t->search->goal == RV_WALK_CALLS && calls >= t->g->max_calls) {
            n++;
            break;
        }
    }
    out->n = n;
    return 0;
}

static int take_best(const struct table *t, struct rv_walk *out, rv_err **err)
{
    int64_t most = t->search->goal == RV_WALK_CALLS ? t->g->max_calls : t->g->max_hops;
    size_t n_states = t->layers * t->g->n * t->n_counts * t->n_spent, best = 0;
    int64_t found = 0;

    for (size_t i = 0; i < n_states; i++) {
        int64_t value = t->value[i] - 1 < most ? t->value[i] : most + 1;

        if (value > found) {
            found = value;
            best = i;
        }
    }
    out->is_answer = true;
    if (found == 0)
        return 0;
    out->best = found - 1;
    return read_back(t, best, out, err);
}

int lint_walk_find(const struct rv_walk_graph *g, const struct rv_walk_search *search, struct rv_walk *out,
                   rv_err **err)
{
    struct table t = {.g = g, .search = search};
    struct rv_walk walk = {0};
    int rc = 0;
    size_t n_states;

    if (!g->is_whole)
        goto done;
    if (g->n == 0 || g->max_hops == 0) {
        walk.is_answer = true;
        goto done;
    }
    t.edge_counter = calloc(g->n_edges + 1, sizeof(*t.edge_counter));
    t.stage_counter = calloc(g->n, sizeof(*t.stage_counter));
    if (!t.edge_counter || !t.stage_counter)
        goto no_memory;
    if (!set_sizes(&t))
        goto done;
    n_states = t.layers * g->n * t.n_counts * t.n_spent;
    t.value = calloc(n_states, sizeof(*t.value));
    t.parent = calloc(n_states, sizeof(*t.parent));
    if (!t.value || !t.parent)
        goto no_memory;
    fill(&t);
    rc = take_best(&t, &walk, err);
    goto done;

no_memory:
    rc = RV_FAIL(err, RV_E_NOMEM, "search the longest walk");
done:
    free(t.edge_counter);
    free(t.stage_counter);
    free(t.value);
    free(t.parent);
    if (rc == 0)
        *out = walk;
    return rc;
}

void lint_walk_fini(struct rv_walk *walk)
{
    free(walk->stages);
    *walk = (struct rv_walk){0};
}

/* --- A found walk walked again, with every bound and limit counted; and the bound that needs no search --- */

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
        t->calls_surely = lint_sat_add(t->calls_surely, calls);
        if (t->calls_surely > t->g->max_calls)
            t->calls_surely = t->g->max_calls;
        t->calls_at_least = t->calls_surely;
        return;
    }
}

static bool leave_to(struct tally *t, int from, int to)
{
    size_t at = lint_walk_edge_at(t->g, from, to);
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

int lint_walk_check(const struct rv_walk_graph *g, enum rv_walk_goal goal, const struct rv_walk *walk,
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
        all = lint_sat_add(all, own);
        longest[s] = lint_sat_add(longest[s], own);
        best = longest[s] > best ? longest[s] : best;
        for (size_t i = g->start[s]; g->is_whole && i < g->start[s + 1]; i++) {
            int to = g->edges[i].to;

            if ((size_t)to > s && longest[s] > longest[to])
                longest[to] = longest[s];
        }
    }
    return g->is_whole ? best : all;
}

int lint_walk_closed_bound(const struct rv_walk_graph *g, enum rv_walk_goal goal, int64_t *out, rv_err **err)
{
    int64_t *longest = calloc(g->n + 1, sizeof(*longest));
    int64_t most, dearest = 0, bound;

    if (!longest)
        return RV_FAIL(err, RV_E_NOMEM, "bound the length of a walk");
    bound = lint_sat_mul(heaviest_segment(g, goal, longest), lint_sat_add(g->loops, 1));
    free(longest);
    for (size_t s = 0; s < g->n; s++)
        dearest = g->reached[s] && g->calls[s] > dearest ? g->calls[s] : dearest;
    most = goal == RV_WALK_CALLS ? lint_sat_mul(dearest, g->max_hops) : g->max_hops;
    if (goal == RV_WALK_CALLS && g->max_calls < most)
        most = g->max_calls;
    *out = bound < most ? bound : most;
    return 0;
}
