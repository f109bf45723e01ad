/* How many stages a run can visit and how many model calls it can make, at most.
 *
 * The bounds hold for one run without a pause, whatever models, tools, hooks and people answer. A run that was paused
 * by an interrupt goes on with the same counters but may visit the paused stage again; over all its parts
 * max_agent_hops and max_llm_calls still hold. */
#include <stdlib.h>
#include <string.h>

#include "config/prove_internal.h"

int rv_proof_set_path(const int *stages, size_t n, int **path, size_t *n_path, rv_err **err)
{
    size_t kept = n < RV_PROOF_MAX_PATH ? n : RV_PROOF_MAX_PATH;

    *path = calloc(kept + 1, sizeof(**path));
    if (!*path)
        return RV_FAIL(err, RV_E_NOMEM, "keep the path of a proof");
    for (size_t i = 0; i < kept; i++)
        (*path)[i] = stages[i];
    *n_path = kept;
    return 0;
}

/* The best walk of one kind, and what is known about it. */
struct finding {
    struct rv_walk walk; /* owned */
    enum rv_walk_verdict verdict;
    int64_t bound; /* no walk is better; INT64_MAX: no search came to an end */
};

static bool counts_already(const struct rv_walk_search *search, const struct rv_walk_fault *fault)
{
    const size_t *list = fault->is_edge ? search->edge_counters : search->stage_counters;
    size_t n = fault->is_edge ? search->n_edge_counters : search->n_stage_counters;

    for (size_t i = 0; i < n; i++) {
        if (list[i] == fault->at)
            return true;
    }
    return false;
}

/* Make the next search respect the limit that the last walk broke. */
static bool add_counter(struct rv_walk_search *search, const struct rv_walk_fault *fault)
{
    size_t *n = fault->is_edge ? &search->n_edge_counters : &search->n_stage_counters;

    if (fault->at == SIZE_MAX || *n == RV_PROVE_MAX_COUNTERS || counts_already(search, fault))
        return false;
    (fault->is_edge ? search->edge_counters : search->stage_counters)[(*n)++] = fault->at;
    return true;
}

static int search_best(const struct rv_walk_graph *g, enum rv_walk_goal goal, bool only_likely, struct finding *out,
                       rv_err **err)
{
    struct rv_walk_search search = {.goal = goal, .only_likely = only_likely};
    struct rv_walk_fault fault = {false, SIZE_MAX};

    for (;;) {
        struct rv_walk walk = {0};
        int rc = rv_walk_find(g, &search, &walk, err);

        if (rc < 0)
            return rc;
        if (!walk.is_answer)
            return 0;
        rv_walk_fini(&out->walk);
        out->walk = walk;
        out->bound = walk.best < out->bound ? walk.best : out->bound;
        rc = rv_walk_check(g, goal, &out->walk, &out->verdict, &fault, err);
        if (rc < 0)
            return rc;
        if (out->verdict != RV_WALK_LIMITED || !add_counter(&search, &fault))
            return 0;
    }
}

struct answer {
    int64_t bound;
    bool is_exact;
    int *path; /* owned */
    size_t n_path;
};

static bool reaches(const struct finding *f, int64_t bound)
{
    return f->walk.is_answer && f->verdict == RV_WALK_REAL && f->walk.best == bound;
}

/* First over every edge, for the bound; then, if the walk it found is in doubt, over the sure edges alone, for a walk
 * that is not. */
static int answer(const struct rv_walk_graph *g, enum rv_walk_goal goal, struct answer *out, rv_err **err)
{
    struct finding all = {.verdict = RV_WALK_LIMITED, .bound = INT64_MAX};
    struct finding sure = {.verdict = RV_WALK_LIMITED, .bound = INT64_MAX};
    const struct finding *shown = &all;
    int rc = rv_walk_closed_bound(g, goal, &out->bound, err);

    if (rc < 0)
        return rc;
    rc = search_best(g, goal, false, &all, err);
    if (rc < 0)
        goto done;
    out->bound = all.bound < out->bound ? all.bound : out->bound;
    if (!reaches(&all, out->bound)) {
        rc = search_best(g, goal, true, &sure, err);
        if (rc < 0)
            goto done;
        if (reaches(&sure, out->bound) || all.verdict == RV_WALK_LIMITED)
            shown = &sure;
    }
    out->is_exact = reaches(shown, out->bound);
    if (shown->walk.is_answer && shown->verdict != RV_WALK_LIMITED)
        rc = rv_proof_set_path(shown->walk.stages, shown->walk.n, &out->path, &out->n_path, err);
done:
    rv_walk_fini(&all.walk);
    rv_walk_fini(&sure.walk);
    return rc;
}

static int prove_sequential(const struct rv_pipeline *p, struct rv_proof *out, rv_err **err)
{
    struct rv_walk_graph g = {0};
    struct answer visits = {0}, calls = {0}, mocked = {0};
    int rc = rv_walk_graph_build(p, &g, err);

    if (rc < 0)
        return rc;
    rc = answer(&g, RV_WALK_VISITS, &visits, err);
    if (rc == 0)
        rc = answer(&g, RV_WALK_CALLS, &calls, err);
    if (rc == 0)
        rc = answer(&g, RV_WALK_MOCKED_VISITS, &mocked, err);
    if (rc < 0)
        goto done;
    *out = (struct rv_proof){
        .max_visits = visits.bound,
        .max_llm_calls = calls.bound,
        .max_mocked_visits = mocked.bound,
        .visits_exact = visits.is_exact,
        .llm_exact = calls.is_exact,
        .visits_path = visits.path,
        .llm_path = calls.path,
        .n_visits_path = visits.n_path,
        .n_llm_path = calls.n_path,
    };
    visits.path = NULL;
    calls.path = NULL;
done:
    free(visits.path);
    free(calls.path);
    free(mocked.path);
    rv_walk_graph_fini(&g);
    return rc;
}

int rv_pipeline_prove(const struct rv_pipeline *p, enum rv_run_mode mode, struct rv_proof *out, rv_err **err)
{
    bool is_parallel = (int)mode == RV_UNSET ? p->default_run_mode == RV_MODE_PARALLEL : mode == RV_MODE_PARALLEL;
    int rc = is_parallel ? rv_prove_parallel(p, out, err) : prove_sequential(p, out, err);

    return rc < 0 ? RV_WRAP(err, rc, "prove the bounds of pipeline \"%s\"", p->name) : 0;
}

/* Whether a visit can end with a question: by a route, by its output's `outcome`, by what a capability answers, or
 * about a call of a tool. Only the text of a model cannot. */
static bool can_ask(const struct rv_agent *a)
{
    bool is_text = rv_agent_calls_model(a) && !a->has_tools && a->output.mode == RV_OUTPUT_TEXT && !a->output.schema;
    bool asks =
        !is_text || a->has_policies || a->hooks.pre_process[0] || a->hooks.post_process[0] || a->routing.function[0] ||
        (a->tools.chained && a->tools.chained[0]) || a->routing.error_target == RV_TARGET_CLARIFICATION ||
        a->routing.error_target == RV_TARGET_CONFIRMATION || a->routing.default_target == RV_TARGET_CLARIFICATION ||
        a->routing.default_target == RV_TARGET_CONFIRMATION;

    for (size_t i = 0; i < a->routing.n_rules; i++)
        asks = asks || a->routing.rules[i].target == RV_TARGET_CLARIFICATION ||
               a->routing.rules[i].target == RV_TARGET_CONFIRMATION;
    return asks;
}

int64_t rv_pipeline_max_answers(const struct rv_pipeline *p)
{
    for (size_t i = 0; i < p->n_agents; i++)
        if (can_ask(&p->agents[i]))
            return p->max_agent_hops > 0 ? p->max_agent_hops : 0; /* each pause follows a visit */
    return 0;
}

struct rv_whole_run rv_proof_with_answers(const struct rv_pipeline *p, const struct rv_proof *part, int64_t answers)
{
    int64_t parts = rv_sat_add(answers > 0 ? answers : 0, 1);
    int64_t visits = rv_sat_mul(part->max_visits, parts), calls = rv_sat_mul(part->max_llm_calls, parts);

    return (struct rv_whole_run){.max_visits = visits < p->max_agent_hops ? visits : p->max_agent_hops,
                                 .max_llm_calls = calls < p->max_llm_calls ? calls : p->max_llm_calls};
}

void rv_proof_fini(struct rv_proof *proof)
{
    free(proof->visits_path);
    free(proof->llm_path);
    memset(proof, 0, sizeof(*proof));
}
