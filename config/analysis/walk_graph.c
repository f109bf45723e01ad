/* From a pipeline to the graph that walks are searched in: one edge for each pair of stages, with its limit, and what a
 * visit may cost. */
#include <stdlib.h>
#include <string.h>

#include "config/analysis/prove_internal.h"

int64_t lint_sat_mul(int64_t a, int64_t b)
{
    int64_t out = 0;

    return __builtin_mul_overflow(a, b, &out) ? INT64_MAX : out;
}

int64_t lint_sat_add(int64_t a, int64_t b)
{
    int64_t out = 0;

    return __builtin_add_overflow(a, b, &out) ? INT64_MAX : out;
}

bool lint_agent_may_sit_out(const struct rv_pipeline *p, const struct rv_agent *a, bool surely)
{
    const struct rv_execution_config *e = &p->execution;

    return strcmp(a->output.key, RV_ARBITER) == 0 && (!e->enable_arbiter || (!surely && e->skip_arbiter_for_read_only));
}

bool lint_agent_may_ask_again(const struct rv_agent *a)
{
    return lint_agent_calls_model(a) && (a->has_tools || a->output.schema);
}

/* Replies that a visit can go on from: rounds of tools, calls of tools that were not offered, repairs. */
static int64_t most_replies(const struct rv_agent *a)
{
    const struct rv_agent_planning *plans = &a->planning;

    if (rv_plans(&a->planning)) /* the plans, and the answer with its repairs */
        return lint_sat_add(lint_sat_mul(plans->max_repairs + 1, plans->max_replans + 1),
                            lint_sat_add(1, a->output.schema ? a->limits.max_repairs : 0));
    int64_t bad = a->limits.max_bad_calls < a->limits.max_rounds ? a->limits.max_bad_calls : a->limits.max_rounds;
    int64_t rounds = a->has_tools ? a->limits.max_rounds : a->output.schema ? bad : 0;

    return lint_sat_add(1, lint_sat_add(rounds, a->output.schema ? a->limits.max_repairs : 0));
}

/* The agents that it asks make calls, too, and may ask others: only the pipeline bounds them. */
static bool may_ask_agents(const struct rv_agent *a)
{
    for (size_t i = 0; a->has_llm && a->has_tools && i < a->tools.allowed.n; i++)
        if (strcmp(a->tools.allowed.items[i], RV_TOOL_ASK_AGENT) == 0)
            return true;
    return false;
}

/* How often a server asks a model while its tools are called, it decides itself: only the pipeline bounds that. */
static bool tools_may_ask_models(const struct rv_pipeline *p, const struct rv_agent *a)
{
    bool has_tools = a->has_tools || (a->tools.chained && a->tools.chained[0]);

    for (size_t i = 0; has_tools && i < p->n_mcp_servers; i++)
        if (rv_mcp_samples(&p->mcp_servers[i]))
            return true;
    return false;
}

int64_t lint_agent_most_calls(const struct rv_pipeline *p, const struct rv_agent *a)
{
    int64_t cap = p->execution.max_llm_retries, retries = a->limits.max_retries < cap ? a->limits.max_retries : cap;
    int64_t calls = lint_sat_mul(most_replies(a), lint_sat_add(1, retries > 0 ? retries : 0));

    if (lint_agent_calls_model(a))
        calls = lint_sat_add(calls, lint_agent_may_contradict(p, a)); /* neither rounds nor repairs begin again */
    if (a->limits.llm.request_limit > 0 && calls > a->limits.llm.request_limit)
        calls = a->limits.llm.request_limit;
    bool is_open = tools_may_ask_models(p, a);
    if ((is_open || may_ask_agents(a)) && calls < p->max_llm_calls)
        calls = p->max_llm_calls;
    if (is_open)
        return calls;
    return lint_agent_calls_model(a) ? calls : 0;
}

/* Edges of one stage while they are gathered: slot[to] is 1 + the index of the edge to that stage. */
struct gather {
    struct rv_walk_graph *g;
    const struct rv_pipeline *p;
    size_t *slot; /* owned */
};

static void add_edge(struct gather *ga, const struct rv_route *route, int to)
{
    struct rv_walk_graph *g = ga->g;
    const struct rv_agent *a = &ga->p->agents[route->from];
    struct rv_walk_edge *e;
    bool is_error = route->kind == RV_WAY_ERROR;

    if (!ga->p->execution.enable_loop_back && to <= route->from)
        return; /* such an edge ends the run */
    if (ga->slot[to] == 0) {
        g->edges[g->n_edges] = (struct rv_walk_edge){.from = route->from, .to = to};
        ga->slot[to] = ++g->n_edges;
    }
    e = &g->edges[ga->slot[to] - 1];
    /* A test for a stopping outcome is left out of the routes that are sure, not of the bound: it costs nothing here.
     */
    e->is_likely |= route->is_likely && route->fate == RV_WAY_LIVE;
    bool answers = a->hooks.before_model.n > 0; /* in place of the model */
    e->skips_call |= is_error || answers || lint_agent_may_sit_out(ga->p, a, false);
    e->skips_surely |= answers || lint_agent_may_sit_out(ga->p, a, true) || (is_error && a->hooks.pre_process[0]);
}

static int by_target(const void *a, const void *b)
{
    const struct rv_walk_edge *x = a, *y = b;

    return x->to < y->to ? -1 : x->to > y->to;
}

static void add_stage(struct gather *ga, const struct rv_routes *routes, size_t stage)
{
    struct rv_walk_graph *g = ga->g;
    size_t first = g->n_edges;

    g->start[stage] = first;
    for (size_t i = routes->start[stage]; i < routes->start[stage + 1]; i++) {
        const struct rv_route *route = &routes->items[i];

        if (route->fate == RV_WAY_REPEATED || route->fate == RV_WAY_CUT_OFF)
            continue;
        if (route->kind == RV_WAY_APPROVED) { /* no walk goes over a pause: another one begins there */
            if (route->to >= 0 && (size_t)route->to < g->n)
                g->entry[route->to] = true;
        } else if (route->kind == RV_WAY_FUNCTION) {
            for (size_t to = 0; to < g->n; to++)
                add_edge(ga, route, (int)to);
        } else if (route->to >= 0 && (size_t)route->to < g->n) {
            add_edge(ga, route, route->to);
        }
    }
    for (size_t i = first; i < g->n_edges; i++)
        ga->slot[g->edges[i].to] = 0;
    if (g->n_edges - first > 1)
        qsort(g->edges + first, g->n_edges - first, sizeof(*g->edges), by_target);
    g->start[stage + 1] = g->n_edges;
}

size_t lint_walk_edge_at(const struct rv_walk_graph *g, int from, int to)
{
    size_t low, high;

    if (from < 0 || to < 0 || (size_t)from >= g->n || !g->is_whole)
        return SIZE_MAX;
    low = g->start[from];
    high = g->start[from + 1];
    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (g->edges[mid].to < to)
            low = mid + 1;
        else
            high = mid;
    }
    return low < g->start[from + 1] && g->edges[low].to == to ? low : SIZE_MAX;
}

/* Where the pipeline lets runs go on after an answer. A stage that is visited again is none: whatever comes after it
 * was possible after its first visit. */
static void add_resume_entries(const struct rv_pipeline *p, struct rv_walk_graph *g)
{
    const char *const names[] = {p->clarification_resume_stage, p->confirmation_resume_stage,
                                 p->agent_review_resume_stage, p->agent_review_reject_stage};

    for (size_t i = 0; i < RV_COUNT(names); i++) {
        int stage = names[i] && names[i][0] ? rv_pipeline_find_stage(p, rv_str_of(names[i])) : -1;

        if (stage >= 0)
            g->entry[stage] = true;
    }
}

static int mark_reached(struct rv_walk_graph *g, rv_err **err)
{
    int *queue = calloc(g->n + 1, sizeof(*queue));
    size_t head = 0, tail = 0;

    if (!queue)
        return RV_FAIL(err, RV_E_NOMEM, "find the stages that a run can reach");
    if (g->n > 0) {
        g->entry[0] = true;
    }
    for (size_t s = 0; s < g->n; s++)
        if (g->entry[s]) {
            g->reached[s] = true;
            queue[tail++] = (int)s;
        }
    while (head < tail) {
        int s = queue[head++];

        for (size_t i = g->start[s]; i < g->start[s + 1]; i++) {
            int to = g->edges[i].to;

            if (!g->reached[to]) {
                g->reached[to] = true;
                queue[tail++] = to;
            }
        }
    }
    free(queue);
    return 0;
}

/* A loop-back needs an edge that is not used up and a target that may be visited again. */
static int64_t count_loops(const struct rv_walk_graph *g, int64_t *into)
{
    int64_t all = 0;

    for (size_t i = 0; i < g->n_edges; i++) {
        const struct rv_walk_edge *e = &g->edges[i];

        if (e->to <= e->from && g->reached[e->from])
            into[e->to] = lint_sat_add(into[e->to], e->limit > 0 ? e->limit : INT64_MAX);
    }
    for (size_t s = 0; s < g->n; s++) {
        int64_t most = g->visit_limit[s] > 0 && g->visit_limit[s] < into[s] ? g->visit_limit[s] : into[s];

        all = lint_sat_add(all, most);
    }
    return all;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int set_loops(const struct rv_pipeline *p, struct rv_walk_graph *g, rv_err **err)
{
    int64_t *into;

    g->loops = p->execution.enable_loop_back ? least(p->max_iterations, g->max_hops - 1) : 0;
    if (p->execution.has_max_loop_iterations)
        g->loops = least(g->loops, p->execution.max_loop_iterations);
    if (g->loops < 0)
        g->loops = 0;
    if (!g->is_whole)
        return 0;
    into = calloc(g->n + 1, sizeof(*into));
    if (!into)
        return RV_FAIL(err, RV_E_NOMEM, "count the loop-backs of a run");
    g->loops = least(g->loops, count_loops(g, into));
    free(into);
    return 0;
}

static void set_costs(const struct rv_pipeline *p, struct rv_walk_graph *g)
{
    g->max_hops = p->max_agent_hops > 0 ? p->max_agent_hops : 0;
    g->max_calls = p->max_llm_calls > 0 ? p->max_llm_calls : 0;
    for (size_t s = 0; s < g->n; s++) {
        const struct rv_agent *a = &p->agents[s];

        g->calls[s] = lint_agent_most_calls(p, a);
        g->asks_again[s] = lint_agent_may_ask_again(a);
        g->visit_limit[s] = a->limits.max_visits > 0 ? a->limits.max_visits : 0;
    }
}

/* An upper bound of the number of edges, so that they are allocated once. */
static size_t most_edges(const struct rv_pipeline *p, const struct rv_routes *routes)
{
    size_t n = routes->n;

    for (size_t s = 0; s < p->n_agents; s++)
        n += p->agents[s].routing.function[0] ? p->n_agents : 0;
    return n;
}

static int gather_edges(const struct rv_pipeline *p, struct rv_walk_graph *g, rv_err **err)
{
    struct rv_routes routes = {NULL, 0, NULL};
    struct gather ga = {g, p, NULL};
    size_t max;
    int rc = lint_routes_build(p, &routes, err);

    if (rc < 0)
        return rc;
    max = most_edges(p, &routes);
    g->is_whole = max <= RV_PROVE_MAX_EDGES;
    if (!g->is_whole) {
        for (size_t s = 0; s < g->n; s++)
            g->reached[s] = true; /* not known: the bound must hold for all */
        goto done;
    }
    ga.slot = calloc(g->n + 1, sizeof(*ga.slot));
    g->edges = calloc(max + 1, sizeof(*g->edges));
    if (!ga.slot || !g->edges) {
        rc = RV_FAIL(err, RV_E_NOMEM, "list the edges between stages");
        goto done;
    }
    for (size_t s = 0; s < g->n && rc == 0; s++) {
        rc = lint_witness_routes(&p->agents[s], &routes.items[routes.start[s]], err);
        if (rc == 0)
            add_stage(&ga, &routes, s);
    }
    if (rc < 0)
        goto done;
    for (size_t i = 0; i < p->n_edge_limits; i++) {
        size_t at = lint_walk_edge_at(g, p->edge_limits[i].from, p->edge_limits[i].to);

        if (at != SIZE_MAX && p->edge_limits[i].max_count > 0)
            g->edges[at].limit = p->edge_limits[i].max_count;
    }
    add_resume_entries(p, g);
    rc = mark_reached(g, err);
done:
    free(ga.slot);
    lint_routes_fini(&routes);
    return rc;
}

int lint_walk_graph_build(const struct rv_pipeline *p, struct rv_walk_graph *out, rv_err **err)
{
    struct rv_walk_graph g = {.n = p->n_agents};
    int rc;

    g.start = calloc(g.n + 1, sizeof(*g.start));
    g.calls = calloc(g.n + 1, sizeof(*g.calls));
    g.asks_again = calloc(g.n + 1, sizeof(*g.asks_again));
    g.visit_limit = calloc(g.n + 1, sizeof(*g.visit_limit));
    g.entry = calloc(g.n + 1, sizeof(*g.entry));
    g.reached = calloc(g.n + 1, sizeof(*g.reached));
    if (!g.start || !g.calls || !g.asks_again || !g.visit_limit || !g.entry || !g.reached) {
        rc = RV_FAIL(err, RV_E_NOMEM, "build the graph of stages");
        goto done;
    }
    set_costs(p, &g);
    rc = gather_edges(p, &g, err);
    if (rc < 0)
        goto done;
    rc = set_loops(p, &g, err);
    if (rc < 0)
        goto done;
    *out = g;
    g = (struct rv_walk_graph){0};
done:
    lint_walk_graph_fini(&g);
    return rc;
}

void lint_walk_graph_fini(struct rv_walk_graph *g)
{
    free(g->edges);
    free(g->start);
    free(g->calls);
    free(g->asks_again);
    free(g->visit_limit);
    free(g->entry);
    free(g->reached);
    *g = (struct rv_walk_graph){0};
}
