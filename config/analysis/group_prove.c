/* The bounds of a pipeline with groups, lists of values, inner pipelines or questions: what a visit to each stage
 * weighs, and the heaviest run by each measure. */
#include <stdlib.h>
#include <string.h>

#include "config/analysis/group_internal.h"

#define MAX_INNER 32 /* different inner pipelines: each is a proof of its own; of others only bounds are taken */
#define MAX_DEPTH 3  /* inner pipelines around one that is looked into: each level proves those below again */

struct inner {
    const struct rv_pipeline *pipeline;
    struct rv_proof proof;
};
struct numbers {
    const struct rv_pipeline *p;
    struct rv_group_graph graph;
    struct inner inner[MAX_INNER]; /* proofs owned */
    size_t n_inner;
    int depth;
    int64_t *weights, *first_weights; /* owned */
};

bool lint_needs_group_proof(const struct rv_pipeline *p)
{
    bool needs = p->has_groups;

    for (size_t i = 0; i < p->n_agents && !needs; i++) {
        const struct rv_agent *a = &p->agents[i];

        needs = a->each.list || lint_agent_has_inner(a) || a->ask.question;
    }
    return needs;
}

/* The bounds that a pipeline gives itself. */
static struct rv_proof own_bounds(const struct rv_pipeline *p)
{
    int64_t hops = p->max_agent_hops > 0 ? p->max_agent_hops : 0, calls = p->max_llm_calls > 0 ? p->max_llm_calls : 0;

    return (struct rv_proof){
        .max_visits = hops, .max_llm_calls = calls, .max_mocked_visits = hops, .max_questions = hops};
}

/* Below some depth only its own bounds are taken. */
static int prove_inner(const struct rv_pipeline *p, int depth, struct rv_proof *out, rv_err **err)
{
    if (depth <= MAX_DEPTH)
        return lint_prove_at(p, (enum rv_run_mode)RV_UNSET, depth, out, err);
    *out = own_bounds(p);
    return 0;
}

/* --- What a visit weighs --- */

static int prove_inners(struct numbers *n, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < n->p->n_agents && rc == 0; i++) {
        const struct rv_pipeline *p = n->p->agents[i].inner.pipeline;
        size_t k = 0;

        while (k < n->n_inner && n->inner[k].pipeline != p)
            k++;
        if (!p || k < n->n_inner || n->n_inner == MAX_INNER)
            continue;
        rc = prove_inner(p, n->depth + 1, &n->inner[n->n_inner].proof, err);
        if (rc == 0)
            n->inner[n->n_inner++].pipeline = p;
    }
    return rc;
}

static struct rv_proof proof_of(const struct numbers *n, const struct rv_pipeline *p)
{
    for (size_t i = 0; i < n->n_inner; i++)
        if (n->inner[i].pipeline == p)
            return n->inner[i].proof;
    return own_bounds(p);
}

/* Model calls of a visit that surely can be made: tools and schemas may make it ask again. */
static int64_t sure_calls(const struct rv_pipeline *p, const struct rv_agent *a)
{
    int64_t most = lint_agent_most_calls(p, a), cap = p->execution.max_llm_retries;
    int64_t retries = a->limits.max_retries < cap ? a->limits.max_retries : cap;

    if (!lint_agent_may_ask_again(a))
        return most;
    retries = retries > 0 ? retries + 1 : 1;
    return retries < most ? retries : most;
}

/* Of the work of one visit, or of one element. */
static int64_t unit(const struct numbers *n, int stage, enum rv_group_goal goal, bool sure)
{
    const struct rv_agent *a = &n->p->agents[stage];
    struct rv_proof in = {0};
    bool has_inner = lint_agent_has_inner(a) && a->inner.pipeline;

    if (has_inner)
        in = proof_of(n, a->inner.pipeline);
    int64_t times = !sure && has_inner && lint_agent_may_contradict(n->p, a) ? 2 : 1; /* it runs once more then */
    bool unsure = sure && (n->graph.context[stage] != RV_CONTEXT_MAIN || a->each.list);
    switch (goal) {
    case RV_GROUP_VISITS:
        return unsure || (sure && !in.visits_exact) ? 0 : lint_sat_mul(in.max_visits, times);
    case RV_GROUP_MOCKED_VISITS:
        return lint_sat_mul(in.max_mocked_visits, times);
    case RV_GROUP_CALLS:
        if (has_inner)
            return unsure || (sure && !in.llm_exact) ? 0 : lint_sat_mul(in.max_llm_calls, times);
        return sure ? sure_calls(n->p, a) : lint_agent_most_calls(n->p, a);
    case RV_GROUP_LEAST_CALLS:
        return has_inner ? in.max_llm_calls : lint_agent_calls_model(a) && !lint_agent_may_sit_out(n->p, a, false);
    case RV_GROUP_QUESTIONS:
        return has_inner ? lint_sat_mul(in.max_questions, times) : a->ask.question != NULL;
    }
    return 0;
}

static bool is_visits(enum rv_group_goal goal)
{
    return goal == RV_GROUP_VISITS || goal == RV_GROUP_MOCKED_VISITS;
}

static void weigh(struct numbers *n, enum rv_group_goal goal, bool sure)
{
    for (size_t s = 0; s < n->p->n_agents; s++) {
        const struct rv_agent *a = &n->p->agents[s];
        int64_t one = unit(n, (int)s, goal, sure), items = a->each.max_items > 0 ? a->each.max_items : 1;

        if (a->each.list)
            one = lint_sat_mul(items, is_visits(goal) ? lint_sat_add(one, 1) : one);
        n->weights[s] = is_visits(goal) ? lint_sat_add(one, 1) : one;
        n->first_weights[s] = goal == RV_GROUP_QUESTIONS ? 0 : n->weights[s];
        if (goal == RV_GROUP_CALLS && one > 0 && !a->each.list && !lint_agent_has_inner(a))
            n->first_weights[s] = 1;
    }
}

/* --- The answers --- */

struct question {
    enum rv_group_goal goal;
    bool only_sure;    /* count what surely happens */
    bool counts_calls; /* the bound of model calls ends paths, too */
};

static int search(struct numbers *n, const struct question *q, struct rv_group_answer *out, rv_err **err)
{
    const struct rv_group_search s = {.g = &n->graph,
                                      .weights = n->weights,
                                      .first_weights = n->first_weights,
                                      .only_sure = q->only_sure,
                                      .counts_visits = is_visits(q->goal),
                                      .counts_calls = q->counts_calls};
    bool any = false;

    weigh(n, q->goal, q->only_sure);
    for (size_t i = 0; i < n->p->n_agents && !any; i++)
        any = n->weights[i] > 0;
    *out = (struct rv_group_answer){0, false};
    return any ? lint_group_search(&s, out, err) : 0;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A search and, where it left nothing out, the sure one that may reach the same number. */
static int search_both(struct numbers *n, struct question q, int64_t most, int64_t *best, bool *exact, rv_err **err)
{
    struct rv_group_answer all, sure;
    int rc = search(n, &q, &all, err);

    if (rc < 0)
        return rc;
    *best = least(all.best, most);
    *exact = false;
    if (all.is_limited)
        return 0;
    q.only_sure = true;
    rc = search(n, &q, &sure, err);
    *exact = rc == 0 && least(sure.best, most) == *best;
    return rc;
}

static int prove(struct numbers *n, struct rv_proof *out, rv_err **err)
{
    int64_t hops = n->graph.hops, calls = n->graph.calls;
    struct rv_group_answer callers, mocked, questions;
    int64_t visits = 0;

    int rc = search(n, &(struct question){.goal = RV_GROUP_LEAST_CALLS}, &callers, err);
    bool counts_calls = rc == 0 && callers.best > calls;
    if (rc == 0)
        rc = search_both(n, (struct question){.goal = RV_GROUP_VISITS, .counts_calls = counts_calls}, INT64_MAX,
                         &visits, &out->visits_exact, err);
    if (rc == 0)
        rc =
            search_both(n, (struct question){.goal = RV_GROUP_CALLS}, calls, &out->max_llm_calls, &out->llm_exact, err);
    if (rc == 0)
        rc = search(n, &(struct question){.goal = RV_GROUP_MOCKED_VISITS}, &mocked, err);
    if (rc == 0)
        rc = search(n, &(struct question){.goal = RV_GROUP_QUESTIONS, .counts_calls = counts_calls}, &questions, err);
    if (rc < 0)
        return rc;
    out->max_visits = least(visits, hops);
    out->visits_exact = out->visits_exact && n->graph.is_whole;
    out->llm_exact = out->llm_exact && visits <= hops; /* else max_agent_hops may come first */
    out->max_mocked_visits = least(mocked.best, hops);
    out->max_questions = least(questions.best, hops);
    out->spans_answers = true;
    return 0;
}

static int numbers_init(struct numbers *n, const struct rv_pipeline *p, int depth, rv_err **err)
{
    int rc;

    *n = (struct numbers){.p = p, .depth = depth};
    n->weights = calloc(p->n_agents + 1, sizeof *n->weights);
    n->first_weights = calloc(p->n_agents + 1, sizeof *n->first_weights);
    rc = n->weights && n->first_weights ? prove_inners(n, err)
                                        : RV_FAIL(err, RV_E_NOMEM, "weigh the stages of a pipeline");
    return rc < 0 ? rc : lint_group_graph_build(p, &n->graph, err);
}

static void numbers_fini(struct numbers *n)
{
    lint_group_graph_fini(&n->graph);
    for (size_t i = 0; i < n->n_inner; i++)
        rv_proof_fini(&n->inner[i].proof);
    free(n->weights);
    free(n->first_weights);
}

int lint_prove_groups(const struct rv_pipeline *p, int depth, struct rv_proof *out, rv_err **err)
{
    struct numbers n;
    struct rv_proof proof = {0};
    int rc = numbers_init(&n, p, depth, err);

    if (rc == 0)
        rc = prove(&n, &proof, err);
    if (rc == 0)
        *out = proof;
    numbers_fini(&n);
    return rc;
}

static int64_t sum(struct numbers *n, enum rv_group_goal goal, int64_t most)
{
    int64_t all = 0;

    weigh(n, goal, false);
    for (size_t s = 0; s < n->p->n_agents; s++)
        all = lint_sat_add(all, n->weights[s]);
    return least(all, most);
}

int lint_prove_once_each(const struct rv_pipeline *p, int depth, struct rv_proof *out, rv_err **err)
{
    struct numbers n;
    int rc = numbers_init(&n, p, depth, err);

    if (rc == 0)
        *out = (struct rv_proof){.max_visits = sum(&n, RV_GROUP_VISITS, n.graph.hops),
                                 .max_mocked_visits = sum(&n, RV_GROUP_MOCKED_VISITS, n.graph.hops),
                                 .max_llm_calls = sum(&n, RV_GROUP_CALLS, n.graph.calls),
                                 .max_questions = sum(&n, RV_GROUP_QUESTIONS, n.graph.hops),
                                 .spans_answers = true};
    numbers_fini(&n);
    return rc;
}
