/* Which stages a sequential run can reach, and which of them lead to the end. */
#include <stdlib.h>

#include "config/analysis/lint_internal.h"

#define MAX_PATH_STAGES 12   /* of a cycle that a finding prints: more cannot be taken in at a glance */
#define MAX_PATH        2048 /* bytes of them: a finding keeps no more */

/* What a resumed run goes on with after an interrupt: the configured stage, or the same one again. */
static int resume_stage(const struct rv_pipeline *p, int target, int from)
{
    const char *name = target == RV_TARGET_CLARIFICATION ? p->clarification_resume_stage : p->confirmation_resume_stage;
    int stage;

    if (!name[0])
        return from;
    stage = rv_index_get(&p->stage_index, rv_str_of(name));
    return stage >= 0 ? stage : from;
}

static struct lint_arc *put_arc(struct lint_arcs *arcs, const struct rv_route *route, int to)
{
    struct lint_arc *arc = &arcs->items[arcs->n];

    if (to == RV_TARGET_END)
        to = (int)arcs->p->n_agents;
    *arc = (struct lint_arc){.from = route->from, .to = to, .is_error = route->kind == RV_WAY_ERROR};
    arcs->n += to >= 0;
    return arc;
}

/* Each branch is a way on; behind all of them the join is next, or the end. */
static void add_list(struct lint_arcs *arcs, const struct rv_route *route)
{
    const struct rv_branches *list = lint_route_branches(arcs->p, route);

    for (size_t i = 0; i < list->n; i++)
        put_arc(arcs, route, list->items[i].target)->is_branch = true;
    int join = arcs->p->agents[route->from].routing.join_of;
    struct lint_arc *over = put_arc(arcs, route, join >= 0 ? join : RV_TARGET_END);
    over->list = list;
    over->is_whole = join < 0;
}

static void add_answers(struct lint_arcs *arcs, int stage)
{
    const struct rv_agent_ask *ask = &arcs->p->agents[stage].ask;
    const struct rv_route route = {.from = stage, .kind = RV_WAY_DEFAULT};

    for (size_t i = 0; i < ask->n_routes; i++) {
        int to = ask->routes[i].target;
        put_arc(arcs, &route, to == RV_TARGET_CLARIFICATION || to == RV_TARGET_CONFIRMATION ? stage : to);
    }
}

static void add_arc(struct lint_arcs *arcs, const struct rv_route *route)
{
    int to = route->to;

    if (route->kind == RV_WAY_FUNCTION) {
        arcs->goes_anywhere = true;
        return;
    }
    if (route->fate != RV_WAY_LIVE)
        return;
    if (to == RV_TARGET_CONFIRMATION && route->kind != RV_WAY_ERROR && !arcs->p->confirmation_resume_stage[0])
        return; /* there is a route for the yes */
    if (to == RV_TARGET_CLARIFICATION || to == RV_TARGET_CONFIRMATION)
        to = resume_stage(arcs->p, to, route->from);
    if (to == RV_TARGET_LIST)
        add_list(arcs, route);
    else
        put_arc(arcs, route, to);
}

/* Arcs by one end: those of node i are order[start[i] .. start[i + 1]). */
struct adjacency {
    size_t *start, *order; /* owned */
};

static void adjacency_fini(struct adjacency *adj)
{
    free(adj->start);
    free(adj->order);
}

static int adjacency_build(const struct lint_arcs *arcs, bool by_target, struct adjacency *out, rv_err **err)
{
    size_t n = arcs->p->n_agents + 1;
    struct adjacency adj = {calloc(n + 2, sizeof(size_t)), calloc(arcs->n + 1, sizeof(size_t))};

    if (!adj.start || !adj.order) {
        adjacency_fini(&adj);
        return RV_FAIL(err, RV_E_NOMEM, "sort the routes between stages");
    }
    for (size_t i = 0; i < arcs->n; i++)
        adj.start[(by_target ? arcs->items[i].to : arcs->items[i].from) + 2]++;
    for (size_t i = 2; i < n + 2; i++)
        adj.start[i] += adj.start[i - 1];
    for (size_t i = 0; i < arcs->n; i++)
        adj.order[adj.start[(by_target ? arcs->items[i].to : arcs->items[i].from) + 1]++] = i;
    *out = adj;
    return 0;
}

enum measure { HOPS_FROM, HOPS_TO };

/* The fewest visits from any of the nodes that are 0 in dist to every other (HOPS_TO: the other way); -1: no way. */
static void spread(const struct lint_arcs *arcs, const struct adjacency *adj, enum measure what, int64_t *dist,
                   int *queue)
{
    size_t n = arcs->p->n_agents + 1, head = 0, tail = 0;

    for (size_t i = 0; i < n; i++) {
        if (dist[i] == 0)
            queue[tail++] = (int)i;
    }
    while (head < tail) {
        int node = queue[head++];

        for (size_t i = adj->start[node]; i < adj->start[node + 1]; i++) {
            const struct lint_arc *arc = &arcs->items[adj->order[i]];
            int next = what == HOPS_TO ? arc->from : arc->to;

            if (arc->is_whole || (dist[next] >= 0 && dist[next] <= dist[node] + 1))
                continue;
            dist[next] = dist[node] + 1;
            queue[tail++] = next;
        }
    }
}

/* Everything that is worked out, in one place to free. */
struct reach {
    struct lint_arcs arcs;
    struct adjacency out, in;
    int64_t *hops, *to_end; /* owned; n_agents + 1 entries: from the entry, and to the end */
    int *queue;             /* owned */
};

static void reach_fini(struct reach *r)
{
    free(r->arcs.items);
    adjacency_fini(&r->out);
    adjacency_fini(&r->in);
    free(r->hops);
    free(r->to_end);
    free(r->queue);
}

static int64_t *distances(size_t n, size_t from)
{
    int64_t *dist = calloc(n, sizeof(*dist));

    for (size_t i = 0; dist && i < n; i++)
        dist[i] = i == from ? 0 : -1;
    return dist;
}

static int reach_build(const struct rv_pipeline *p, const struct rv_routes *routes, struct reach *r, rv_err **err)
{
    size_t n = p->n_agents + 1;
    int rc;

    r->arcs.p = p;
    r->arcs.items = calloc(lint_routes_most_ways(p, routes) + 1, sizeof(*r->arcs.items));
    r->hops = distances(n, 0);
    r->to_end = distances(n, n - 1);
    r->queue = calloc(2 * n, sizeof(*r->queue));
    if (!r->arcs.items || !r->hops || !r->to_end || !r->queue)
        return RV_FAIL(err, RV_E_NOMEM, "follow the routes between stages");
    for (size_t i = 0; i < routes->n; i++)
        add_arc(&r->arcs, &routes->items[i]);
    for (size_t i = 0; i < p->n_agents; i++)
        add_answers(&r->arcs, (int)i);
    rc = adjacency_build(&r->arcs, false, &r->out, err);
    if (rc < 0)
        return rc;
    rc = adjacency_build(&r->arcs, true, &r->in, err);
    if (rc < 0)
        return rc;
    spread(&r->arcs, &r->out, HOPS_FROM, r->hops, r->queue);
    return 0;
}

static int lint_bounds(const struct rv_pipeline *p, const struct reach *r, rv_findings *findings, rv_err **err)
{
    struct rv_src src = lint_bounds_src(p);
    int64_t hops = 0, calls = 0;
    int rc = lint_least(&r->arcs, &hops, &calls, err);

    if (hops > p->max_agent_hops)
        rv_findings_add(findings, RV_SEVERITY_WARNING, &src, "raise max_agent_hops",
                        "no run reaches \"end\": the shortest way visits %lld stages, and max_agent_hops is %lld",
                        (long long)hops, (long long)p->max_agent_hops);
    if (calls > p->max_llm_calls)
        rv_findings_add(findings, RV_SEVERITY_WARNING, &src, "raise max_llm_calls",
                        "no run reaches \"end\": the cheapest way makes %lld model call%s, and max_llm_calls is %lld",
                        (long long)calls, calls == 1 ? "" : "s", (long long)p->max_llm_calls);
    return rc;
}

/* Any stage may raise an interrupt, so the stages that runs are resumed at are entries as well. */
static void add_resume_entries(const struct rv_pipeline *p, struct reach *r)
{
    const char *const names[] = {p->clarification_resume_stage, p->confirmation_resume_stage,
                                 p->agent_review_resume_stage, p->agent_review_reject_stage};

    for (size_t i = 0; i < RV_COUNT(names); i++) {
        int stage = names[i][0] ? rv_index_get(&p->stage_index, rv_str_of(names[i])) : -1;

        if (stage >= 0)
            r->hops[stage] = 0;
    }
    spread(&r->arcs, &r->out, HOPS_FROM, r->hops, r->queue);
}

/* Where stages that never lead to the end go on: each way of theirs leads to such a stage, so one way of each, followed
 * far enough, comes round again. */
struct circles {
    const struct reach *r;
    int *next; /* owned; -1: no way at all */
    int *seen; /* owned; 0: not followed; else 1 + the stage whose walk came here first */
};

static bool is_stuck(const struct reach *r, size_t stage)
{
    return r->hops[stage] >= 0 && r->to_end[stage] < 0;
}

static int circles_init(const struct rv_pipeline *p, const struct reach *r, struct circles *out, rv_err **err)
{
    out->r = r;
    out->next = calloc(p->n_agents, sizeof *out->next);
    out->seen = calloc(p->n_agents, sizeof *out->seen);
    if (!out->next || !out->seen)
        return RV_FAIL(err, RV_E_NOMEM, "follow stages that never lead to the end");
    for (size_t i = 0; i < p->n_agents; i++) {
        out->next[i] = -1;
        for (size_t k = r->out.start[i]; is_stuck(r, i) && out->next[i] < 0 && k < r->out.start[i + 1]; k++) {
            const struct lint_arc *arc = &r->arcs.items[r->out.order[k]];
            if (!arc->is_whole)
                out->next[i] = arc->to;
        }
    }
    return 0;
}

static void circles_fini(struct circles *c)
{
    free(c->next);
    free(c->seen);
}

/* One finding, at the first of its stages in the file. A stage without a way on is told alone. */
static int tell_circle(const struct rv_pipeline *p, const struct circles *c, int first, rv_findings *findings,
                       rv_err **err)
{
    static const char hint[] = "only a bound, a failure or the outcome terminate can end the run there; let a rule or "
                               "default_next lead on";
    RV_AUTO(rv_buf_fini) rv_buf path = RV_BUF_INIT(MAX_PATH);
    int n = 0;

    for (int from = first, i = c->next[from]; i >= 0 && i != from; i = c->next[i])
        first = i < first ? i : first;
    struct rv_src src = lint_stage_src(&p->agents[first]);
    if (c->next[first] < 0) {
        rv_findings_add(findings, RV_SEVERITY_WARNING, &src, hint, "stage \"%s\" never leads to \"end\"",
                        p->agents[first].name);
        return 0;
    }
    rv_buf_puts(&path, p->agents[first].name);
    for (int i = c->next[first]; i != first; i = c->next[i], n++)
        if (n < MAX_PATH_STAGES)
            rv_buf_printf(&path, " -> %s", p->agents[i].name);
    if (n > MAX_PATH_STAGES)
        rv_buf_printf(&path, " -> (%d more)", n - MAX_PATH_STAGES);
    if (path.rc == RV_E_NOMEM)
        return RV_FAIL(err, path.rc, "name the stages of a cycle");
    rv_findings_add(findings, RV_SEVERITY_WARNING, &src, hint, "the cycle %s -> %s never leads to \"end\"",
                    rv_buf_cstr(&path), p->agents[first].name);
    return 0;
}

static int lint_circles(const struct rv_pipeline *p, const struct reach *r, rv_findings *findings, rv_err **err)
{
    struct circles c;
    int rc = circles_init(p, r, &c, err);

    for (int i = 0; rc == 0 && i < (int)p->n_agents; i++) {
        int at = i, last = i;

        if (!is_stuck(r, (size_t)i) || c.seen[i])
            continue;
        for (; at >= 0 && !c.seen[at]; at = c.next[at]) {
            c.seen[at] = 1 + i;
            last = at;
        }
        if (at < 0 || c.seen[at] == 1 + i) /* else it leads to one that was told */
            rc = tell_circle(p, &c, at < 0 ? last : at, findings, err);
    }
    circles_fini(&c);
    return rc;
}

static void lint_stages(const struct rv_pipeline *p, const struct reach *r, rv_findings *findings)
{
    for (size_t i = 0; i < p->n_agents; i++) {
        const struct rv_agent *a = &p->agents[i];
        struct rv_src src = lint_stage_src(a);

        if (r->hops[i] < 0)
            rv_findings_add_as(findings, RV_SEVERITY_WARNING, "unreachable", &src,
                               "a stage leads only where its rules, default_next and error_next say; without any it "
                               "leads to \"end\"",
                               "stage \"%s\" is never reached: no route leads to it from \"%s\"", a->name,
                               p->agents[0].name);
    }
}

int lint_reachable(const struct rv_pipeline *p, const struct rv_routes *routes, rv_findings *findings, rv_err **err)
{
    struct reach r = {0};
    int rc = 0;

    if (p->n_agents == 0)
        return 0;
    rc = reach_build(p, routes, &r, err);
    if (rc < 0 || r.arcs.goes_anywhere)
        goto done;
    rc = lint_bounds(p, &r, findings, err);
    if (rc < 0)
        goto done;
    spread(&r.arcs, &r.in, HOPS_TO, r.to_end, r.queue);
    add_resume_entries(p, &r);
    lint_stages(p, &r, findings);
    rc = lint_circles(p, &r, findings, err);
    if (rc == 0)
        rc = lint_order(&r.arcs, r.hops, findings, err);
done:
    reach_fini(&r);
    return rc;
}
