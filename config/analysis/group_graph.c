/* From a pipeline with groups to the graph that its bounds are searched in: the context of each stage, the join of each
 * fork, and every way to leave a stage with what counts it. */
#include <stdlib.h>
#include <string.h>

#include "config/analysis/group_internal.h"

/* --- Contexts --- */

/* Where the pipeline lets runs go on after an answer, outside of groups. True: one of them is reached in no other way.
 */
static bool mark_entries(struct rv_group_graph *g)
{
    const struct rv_pipeline *p = g->p;
    const char *const names[] = {p->clarification_resume_stage, p->confirmation_resume_stage,
                                 p->agent_review_resume_stage, p->agent_review_reject_stage};
    bool is_new = false;

    g->entry[0] = true;
    for (size_t i = 0; i < RV_COUNT(names); i++) {
        int stage = names[i] && names[i][0] ? rv_pipeline_find_stage(p, rv_str_of(names[i])) : -1;

        if (stage < 0)
            continue;
        g->entry[stage] = true;
        is_new = is_new || !p->agents[stage].level.is_reached;
        g->is_whole = g->is_whole && (!p->has_groups || p->agents[stage].level.fork < 0);
    }
    return is_new;
}

/* The loader has found the groups that are open at each stage; it does not look where no stage has a list. */
static void set_contexts(struct rv_group_graph *g)
{
    bool all = (g->n > 0 && mark_entries(g)) || !g->p->has_groups;

    for (size_t s = 0; s < g->n; s++) {
        const struct rv_agent *a = &g->p->agents[s];

        g->join_of[s] = a->routing.join_of >= 0 && g->p->has_groups ? a->routing.join_of : -1;
        if (!g->p->has_groups) {
            g->context[s] = RV_CONTEXT_MAIN;
            continue;
        }
        g->context[s] = !all && !a->level.is_reached ? RV_CONTEXT_UNREACHED
                        : a->level.fork < 0          ? RV_CONTEXT_MAIN
                                                     : a->level.fork;
        g->depth[s] = a->level.depth;
    }
}

/* The list that a route leads to; NULL: it leads to a single target. */
static const struct rv_branches *list_of(const struct rv_pipeline *p, const struct rv_route *route)
{
    const struct rv_agent_routing *r = &p->agents[route->from].routing;

    if (route->to != RV_TARGET_LIST)
        return NULL;
    return route->kind == RV_WAY_RULE ? &r->rules[route->rule].branches : &r->branches;
}

/* --- Ways to leave a stage --- */

struct limit {
    int from, to, at; /* at: its index in the pipeline */
};
struct builder {
    struct rv_group_graph *g;
    struct rv_routes *routes;
    struct limit *limits; /* owned; ordered by their ends */
    size_t n_limits;
    size_t max_arcs;
};

static int by_ends(const void *a, const void *b)
{
    const struct limit *x = a, *y = b;

    return x->from != y->from ? (x->from < y->from ? -1 : 1) : x->to != y->to ? (x->to < y->to ? -1 : 1) : 0;
}

static int limit_of(const struct builder *b, int from, int to)
{
    const struct limit key = {from, to, -1}, *found;

    if (b->n_limits == 0)
        return -1;
    found = bsearch(&key, b->limits, b->n_limits, sizeof *b->limits, by_ends);
    return found ? found->at : -1;
}

static int sort_limits(struct builder *b, rv_err **err)
{
    const struct rv_pipeline *p = b->g->p;

    b->limits = calloc(p->n_edge_limits + 1, sizeof *b->limits);
    if (!b->limits)
        return RV_FAIL(err, RV_E_NOMEM, "sort the limits of edges");
    for (size_t i = 0; i < p->n_edge_limits; i++)
        if (p->edge_limits[i].max_count > 0)
            b->limits[b->n_limits++] = (struct limit){p->edge_limits[i].from, p->edge_limits[i].to, (int)i};
    if (b->n_limits > 1)
        qsort(b->limits, b->n_limits, sizeof *b->limits, by_ends);
    return 0;
}

static void add_arc(struct builder *b, const struct rv_group_arc *arc)
{
    struct rv_group_graph *g = b->g;

    if (g->n_arcs < b->max_arcs)
        g->arcs[g->n_arcs++] = *arc;
    else
        g->is_whole = false;
}

/* To a stage, the join, or the end. A question of a route leads nowhere: its stage is visited again, which is counted
 * beside the proof. */
static void add_single(struct builder *b, int from, int to, struct rv_group_arc arc)
{
    struct rv_group_graph *g = b->g;

    if (to == RV_TARGET_END || to == RV_TARGET_NONE) {
        arc.kind = RV_ARC_END;
        arc.limit = -1;
        add_arc(b, &arc);
        return;
    }
    if (to < 0 || (size_t)to >= g->n)
        return;
    arc.to = to;
    arc.limit = limit_of(b, from, to);
    arc.kind = g->p->agents[to].join.wait == RV_WAIT_NOT ? RV_ARC_STAGE : RV_ARC_ARRIVE;
    arc.is_loop = arc.kind == RV_ARC_STAGE && to <= from;
    if (!arc.is_loop || g->p->execution.enable_loop_back)
        add_arc(b, &arc);
}

static int add_list(struct builder *b, const struct rv_route *route, const struct rv_branches *list,
                    struct rv_group_arc arc, rv_err **err)
{
    struct rv_group_graph *g = b->g;
    bool *active = calloc(list->n + 1, sizeof *active);
    const struct rv_agent *a = &g->p->agents[route->from];
    int rc;

    if (!active)
        return RV_FAIL(err, RV_E_NOMEM, "list the branches of a group");
    rc = lint_witness_branches(a, &b->routes->items[b->routes->start[route->from]], route, list, active, err);
    bool found = rc > 0;
    rc = rc < 0 ? rc : 0;
    g->lists[g->n_lists] = (struct rv_group_list){route->from, g->join_of[route->from], g->n_branches, 0};
    for (size_t i = 0; rc == 0 && i < list->n; i++) {
        const struct rv_branch_target *t = &list->items[i];

        if (t->target < 0)
            continue;
        g->branches[g->n_branches++] =
            (struct rv_group_branch){t->target, limit_of(b, route->from, t->target), t->when != NULL, active[i]};
        g->lists[g->n_lists].n++;
    }
    free(active);
    arc.kind = RV_ARC_LIST;
    arc.to = (int)g->n_lists++;
    arc.limit = -1;
    arc.is_likely = found;
    if (rc == 0)
        add_arc(b, &arc);
    return rc;
}

/* A routing function may name each stage of the region, its join and the end. */
static void add_anything(struct builder *b, int from, struct rv_group_arc arc)
{
    struct rv_group_graph *g = b->g;
    int context = g->context[from];

    for (size_t to = 0; to < g->n; to++) {
        bool is_join = g->p->agents[to].join.wait != RV_WAIT_NOT;

        if (g->context[to] == RV_CONTEXT_UNREACHED)
            g->is_whole = false;
        else if (is_join ? context >= 0 && g->join_of[context] == (int)to : g->context[to] == context)
            add_single(b, from, (int)to, arc);
    }
    add_single(b, from, RV_TARGET_END, arc);
}

static bool answers_cover(const struct rv_agent_ask *ask)
{
    static const char *const yes_or_no[] = {RV_CHOICE_YES, RV_CHOICE_NO}, *const text[] = {RV_CHOICE_TEXT};
    const char *const *choices = ask->any_text ? text : ask->options.is_set ? ask->options.items : yes_or_no;
    size_t n = ask->any_text ? 1 : ask->options.is_set ? ask->options.n : 2;

    for (size_t i = 0; i < n; i++) {
        bool found = false;

        for (size_t k = 0; k < ask->n_routes; k++)
            found = found || strcmp(ask->routes[k].choice, choices[i]) == 0;
        if (!found)
            return false;
    }
    return true;
}

static bool fails_surely(const struct rv_agent *a)
{
    return !a->set;
}

static int add_route(struct builder *b, const struct rv_route *route, rv_err **err)
{
    const struct rv_agent *a = &b->g->p->agents[route->from];
    bool is_error = route->kind == RV_WAY_ERROR, answers = a->hooks.before_model.n > 0; /* in place of the model */
    struct rv_group_arc arc = {.limit = -1,
                               .is_error = is_error,
                               .is_likely = route->is_likely && route->fate == RV_WAY_LIVE,
                               .skips_call = is_error || answers,
                               .skips_surely = answers || (is_error && a->hooks.pre_process[0])};
    const struct rv_branches *list = list_of(b->g->p, route);
    int to = route->to;

    if (route->fate == RV_WAY_REPEATED || route->fate == RV_WAY_CUT_OFF || route->kind == RV_WAY_APPROVED)
        return 0;
    if (is_error)
        arc.is_likely = fails_surely(a);
    else if (a->ask.question && answers_cover(&a->ask))
        return 0; /* the answer leads on */
    if (route->kind == RV_WAY_FUNCTION) {
        add_anything(b, route->from, arc);
        return 0;
    }
    if (to == RV_TARGET_CONFIRMATION && !is_error) { /* a yes goes on without another visit */
        arc.is_likely = arc.is_likely && !b->g->p->confirmation_resume_stage[0];
        to = rv_agent_approved_target(a);
        list = to == RV_TARGET_LIST ? &a->routing.branches : NULL;
    }
    if (list)
        return add_list(b, route, list, arc, err);
    add_single(b, route->from, to, arc);
    return 0;
}

static void add_answers(struct builder *b, int stage)
{
    const struct rv_agent *a = &b->g->p->agents[stage];
    struct rv_group_arc arc = {.limit = -1, .is_likely = true, .skips_call = a->hooks.before_model.n > 0};

    arc.skips_surely = arc.skips_call;
    for (size_t i = 0; a->ask.question && i < a->ask.n_routes; i++)
        add_single(b, stage, a->ask.routes[i].target, arc);
}

static int add_stage(struct builder *b, int stage, rv_err **err)
{
    struct rv_group_graph *g = b->g;
    struct rv_route *routes = &b->routes->items[b->routes->start[stage]];
    int rc;

    g->start[stage] = g->n_arcs;
    if (g->context[stage] != RV_CONTEXT_UNREACHED) {
        rc = lint_witness_routes(&g->p->agents[stage], routes, err);
        for (size_t i = b->routes->start[stage]; rc == 0 && i < b->routes->start[stage + 1]; i++)
            rc = add_route(b, &b->routes->items[i], err);
        if (rc < 0)
            return rc;
        add_answers(b, stage);
    }
    g->start[stage + 1] = g->n_arcs;
    return 0;
}

/* --- The whole graph --- */

/* Room for everything, so that it is allocated once. */
static int make_room(struct builder *b, rv_err **err)
{
    struct rv_group_graph *g = b->g;
    const struct rv_pipeline *p = g->p;
    size_t n_lists = 0, n_branches = 0, functions = 0, answers = 0;

    for (size_t s = 0; s < g->n; s++) {
        const struct rv_agent *a = &p->agents[s];

        n_lists += a->routing.n_rules + 1;
        n_branches += a->routing.branches.n * (1 + a->routing.n_rules); /* a yes takes those of default_next */
        for (size_t i = 0; i < a->routing.n_rules; i++)
            n_branches += a->routing.rules[i].branches.n;
        functions += a->routing.function[0] != '\0';
        answers += a->ask.n_routes;
    }
    b->max_arcs = b->routes->n + answers + functions * (g->n + 1);
    if (b->max_arcs > RV_PROVE_MAX_EDGES || n_branches > RV_PROVE_MAX_EDGES) {
        g->is_whole = false;
        b->max_arcs = 0;
        return 0;
    }
    g->arcs = calloc(b->max_arcs + 1, sizeof *g->arcs);
    g->lists = calloc(n_lists + 1, sizeof *g->lists);
    g->branches = calloc(n_branches + 1, sizeof *g->branches);
    return g->arcs && g->lists && g->branches ? 0 : RV_FAIL(err, RV_E_NOMEM, "list the ways to leave each stage");
}

/* Inner regions first; the depths are counted, so this takes one pass more than there are stages. */
static int sort_stages(struct rv_group_graph *g, rv_err **err)
{
    size_t *at = calloc(g->n + 2, sizeof *at), n = 0;

    if (!at)
        return RV_FAIL(err, RV_E_NOMEM, "order the regions of a pipeline");
    for (size_t s = 0; s < g->n; s++)
        if (g->context[s] != RV_CONTEXT_UNREACHED)
            at[g->depth[s]]++;
    for (size_t d = g->n + 1; d-- > 0;) {
        size_t here = at[d];

        at[d] = n;
        n += here;
    }
    for (size_t s = g->n; s-- > 0;)
        if (g->context[s] != RV_CONTEXT_UNREACHED)
            g->order[at[g->depth[s]]++] = (int)s;
    g->n_order = n;
    free(at);
    return 0;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Loop-backs that a run can follow: no more than the bounds allow, and none when no edge leads back. */
static void set_loops(struct rv_group_graph *g)
{
    const struct rv_pipeline *p = g->p;
    int64_t uses = 0;

    for (size_t i = 0; i < g->n_arcs; i++)
        if (g->arcs[i].is_loop)
            uses = lint_sat_add(uses, g->arcs[i].limit < 0 ? INT64_MAX : p->edge_limits[g->arcs[i].limit].max_count);
    g->loops = least(least(p->max_iterations, g->hops - 1), uses);
    if (p->execution.has_max_loop_iterations)
        g->loops = least(g->loops, p->execution.max_loop_iterations);
    g->loops = g->loops > 0 ? g->loops : 0;
}

static int fill(struct builder *b, rv_err **err)
{
    struct rv_group_graph *g = b->g;
    int rc = sort_limits(b, err);

    set_contexts(g);
    if (rc == 0)
        rc = make_room(b, err);
    for (size_t s = 0; rc == 0 && g->is_whole && s < g->n; s++)
        rc = add_stage(b, (int)s, err);
    if (rc == 0)
        rc = sort_stages(g, err);
    if (rc == 0)
        set_loops(g);
    return rc;
}

int lint_group_graph_build(const struct rv_pipeline *p, struct rv_group_graph *out, rv_err **err)
{
    struct rv_group_graph g = {.p = p, .n = p->n_agents, .is_whole = p->is_sound};
    struct rv_routes routes = {NULL, 0, NULL};
    struct builder b = {.g = &g, .routes = &routes};
    int rc = lint_routes_build(p, &routes, err);

    g.hops = p->max_agent_hops > 0 ? p->max_agent_hops : 0;
    g.calls = p->max_llm_calls > 0 ? p->max_llm_calls : 0;
    g.start = calloc(g.n + 1, sizeof *g.start);
    g.context = calloc(g.n + 1, sizeof *g.context);
    g.depth = calloc(g.n + 1, sizeof *g.depth);
    g.join_of = calloc(g.n + 1, sizeof *g.join_of);
    g.order = calloc(g.n + 1, sizeof *g.order);
    g.entry = calloc(g.n + 1, sizeof *g.entry);
    if (rc == 0 && (!g.start || !g.context || !g.depth || !g.join_of || !g.order || !g.entry))
        rc = RV_FAIL(err, RV_E_NOMEM, "build the graph of groups");
    if (rc == 0)
        rc = fill(&b, err);
    if (rc == 0) {
        *out = g;
        g = (struct rv_group_graph){0};
    }
    lint_group_graph_fini(&g);
    lint_routes_fini(&routes);
    free(b.limits);
    return rc;
}

void lint_group_graph_fini(struct rv_group_graph *g)
{
    free(g->arcs);
    free(g->start);
    free(g->lists);
    free(g->branches);
    free(g->context);
    free(g->depth);
    free(g->join_of);
    free(g->order);
    free(g->entry);
    *g = (struct rv_group_graph){0};
}
