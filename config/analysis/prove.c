/* How many stages a run can visit and how many model calls it can make, at most.
 *
 * The bounds hold for one run without a pause, whatever models, tools, hooks and people answer. A run that was paused
 * by an interrupt goes on with the same counters but may visit the paused stage again; over all its parts
 * max_agent_hops and max_llm_calls still hold. */
#include <stdlib.h>
#include <string.h>

#include "config/analysis/group_internal.h"

/* Copy the first RV_PROOF_MAX_PATH stages of a walk. */
static int proof_set_path(const int *stages, size_t n, int **path, size_t *n_path, rv_err **err)
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

/* --- Parallel runs --- */

/* Bounds of a parallel run (rule 7.7). Dependencies, not routes, decide what starts, and no stage starts twice: an
 * error route makes its target ready at once, but only if it has not run yet. */

struct batch_run {
    const struct rv_pipeline *p;
    bool want_calls;             /* each visit makes as many calls as it may, else one */
    enum rv_stage_state *states; /* owned */
    int *ready;                  /* owned */
    int *path;                   /* owned; stages in the order they were started */
    int64_t visits, calls, max_hops, max_calls;
};

/* A stage that can fail does so when no stage requires it and another one waits for its failure: so both run. */
static bool fails(const struct batch_run *run, int stage)
{
    const struct rv_pipeline *p = run->p;
    const struct rv_agent *a = &p->agents[stage];
    int to = a->routing.error_target;

    if (to < 0 || !(a->has_llm || a->hooks.pre_process[0] || a->hooks.post_process[0]) ||
        !p->agents[to].routing.on_failure_only || run->states[to] != RV_STAGE_WAITING)
        return false;
    for (size_t i = 0; i < p->n_agents; i++)
        for (size_t r = 0; r < p->agents[i].order.required.n; r++)
            if (p->agents[i].order.required_index[r] == stage)
                return false;
    return true;
}

/* Start one batch in which nothing fails but what makes room for more. False: a stage did not get its budget, or
 * nothing was ready. */
static bool run_batch(struct batch_run *run)
{
    size_t n = rv_pipeline_collect_ready(run->p, run->states, run->ready);
    int64_t extra = 0;
    bool all = n > 0;

    for (size_t i = 0; i < n; i++) {
        const struct rv_agent *a = &run->p->agents[run->ready[i]];
        int64_t calls = lint_agent_most_calls(run->p, a);

        if (run->visits >= run->max_hops || (calls > 0 && run->calls >= run->max_calls)) {
            all = false;
            continue;
        }
        run->path[run->visits++] = run->ready[i];
        run->states[run->ready[i]] = fails(run, run->ready[i]) ? RV_STAGE_FAILED : RV_STAGE_COMPLETED;
        if (calls > 0) {
            run->calls++;
            extra = lint_sat_add(extra, run->want_calls ? calls - 1 : 0);
        }
    }
    extra = lint_sat_add(run->calls, extra);
    run->calls = extra < run->max_calls ? extra : run->max_calls;
    return all;
}

static int run_batches(const struct rv_pipeline *p, bool want_calls, struct batch_run *run, rv_err **err)
{
    *run = (struct batch_run){.p = p,
                              .want_calls = want_calls,
                              .states = calloc(p->n_agents + 1, sizeof(*run->states)),
                              .ready = calloc(p->n_agents + 1, sizeof(*run->ready)),
                              .path = calloc(p->n_agents + 1, sizeof(*run->path)),
                              .max_hops = p->max_agent_hops > 0 ? p->max_agent_hops : 0,
                              .max_calls = p->max_llm_calls > 0 ? p->max_llm_calls : 0};
    if (!run->states || !run->ready || !run->path)
        return RV_FAIL(err, RV_E_NOMEM, "try the batches of a parallel run");
    while (run_batch(run))
        ;
    return 0;
}

static void batch_run_fini(struct batch_run *run)
{
    free(run->states);
    free(run->ready);
    free(run->path);
}

static int by_size_down(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x > y ? -1 : x < y;
}

/* What no order of events can exceed. */
struct ceiling {
    int64_t visits, mocked_visits, calls;
    bool asks_again; /* some stage does */
};

/* A stage whose hook answers in place of the model spends nothing; nor does one whose hook fails before the model is
 * asked, and its error route lets the run go on; nor an arbiter that takes no part. */
static bool may_skip_call(const struct rv_pipeline *p, const struct rv_agent *a)
{
    return lint_agent_may_sit_out(p, a, false) || a->hooks.before_model.n > 0 ||
           (a->hooks.pre_process[0] && a->routing.error_target != RV_TARGET_NONE);
}

static int find_ceiling(const struct rv_pipeline *p, struct ceiling *out, rv_err **err)
{
    int64_t max_hops = p->max_agent_hops > 0 ? p->max_agent_hops : 0;
    int64_t max_calls = p->max_llm_calls > 0 ? p->max_llm_calls : 0, callers = 0, n = (int64_t)p->n_agents;
    int64_t *calls = calloc(p->n_agents + 1, sizeof(*calls)); /* of each stage, the most expensive first */

    if (!calls)
        return RV_FAIL(err, RV_E_NOMEM, "count the calls of a parallel run");
    *out = (struct ceiling){0};
    for (size_t i = 0; i < p->n_agents; i++) {
        calls[i] = lint_agent_most_calls(p, &p->agents[i]);
        out->asks_again |= lint_agent_may_ask_again(&p->agents[i]);
        callers += calls[i] > 0 && !may_skip_call(p, &p->agents[i]);
    }
    if (n > 1)
        qsort(calls, p->n_agents, sizeof(*calls), by_size_down);
    for (int64_t i = 0; i < n && i < max_hops; i++)
        out->calls = lint_sat_add(out->calls, calls[i]);
    out->calls = out->calls < max_calls ? out->calls : max_calls;
    out->mocked_visits = n < max_hops ? n : max_hops;
    out->visits = n - callers + (callers < max_calls ? callers : max_calls);
    out->visits = out->visits < max_hops ? out->visits : max_hops;
    free(calls);
    return 0;
}

static int prove_parallel(const struct rv_pipeline *p, struct rv_proof *out, rv_err **err)
{
    struct batch_run visits = {0}, calls = {0};
    struct rv_proof proof = {0};
    struct ceiling most = {0};
    int rc = find_ceiling(p, &most, err);

    if (rc < 0)
        return rc;
    rc = run_batches(p, false, &visits, err);
    if (rc == 0)
        rc = run_batches(p, true, &calls, err);
    if (rc == 0)
        rc = proof_set_path(visits.path, (size_t)visits.visits, &proof.visits_path, &proof.n_visits_path, err);
    if (rc == 0)
        rc = proof_set_path(calls.path, (size_t)calls.visits, &proof.llm_path, &proof.n_llm_path, err);
    if (rc < 0)
        goto done;
    proof.max_visits = most.visits;
    proof.max_mocked_visits = most.mocked_visits;
    proof.max_llm_calls = most.calls;
    proof.visits_exact = visits.visits == most.visits;
    proof.llm_exact = calls.calls == most.calls && !most.asks_again;
    *out = proof;
    proof = (struct rv_proof){0};
done:
    rv_proof_fini(&proof);
    batch_run_fini(&visits);
    batch_run_fini(&calls);
    return rc;
}

/* --- Sequential runs --- */

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
        int rc = lint_walk_find(g, &search, &walk, err);

        if (rc < 0)
            return rc;
        if (!walk.is_answer)
            return 0;
        lint_walk_fini(&out->walk);
        out->walk = walk;
        out->bound = walk.best < out->bound ? walk.best : out->bound;
        rc = lint_walk_check(g, goal, &out->walk, &out->verdict, &fault, err);
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
    int rc = lint_walk_closed_bound(g, goal, &out->bound, err);

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
        rc = proof_set_path(shown->walk.stages, shown->walk.n, &out->path, &out->n_path, err);
done:
    lint_walk_fini(&all.walk);
    lint_walk_fini(&sure.walk);
    return rc;
}

static int prove_sequential(const struct rv_pipeline *p, struct rv_proof *out, rv_err **err)
{
    struct rv_walk_graph g = {0};
    struct answer visits = {0}, calls = {0}, mocked = {0};
    int rc = lint_walk_graph_build(p, &g, err);

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
    lint_walk_graph_fini(&g);
    return rc;
}

int lint_prove_at(const struct rv_pipeline *p, enum rv_run_mode mode, int depth, struct rv_proof *out, rv_err **err)
{
    bool is_parallel = (int)mode == RV_UNSET ? p->default_run_mode == RV_MODE_PARALLEL : mode == RV_MODE_PARALLEL;

    if (is_parallel)
        return lint_needs_group_proof(p) ? lint_prove_once_each(p, depth, out, err) : prove_parallel(p, out, err);
    return lint_needs_group_proof(p) ? lint_prove_groups(p, depth, out, err) : prove_sequential(p, out, err);
}

int rv_pipeline_prove(const struct rv_pipeline *p, enum rv_run_mode mode, struct rv_proof *out, rv_err **err)
{
    int rc = lint_prove_at(p, mode, 0, out, err);

    return rc < 0 ? RV_WRAP(err, rc, "prove the bounds of pipeline \"%s\"", p->name) : 0;
}

/* An answer leads back to the stage that asked, and a visit to a stage weighs one. */
static bool repeats_one_visit(const struct rv_pipeline *p)
{
    if (p->clarification_resume_stage[0] || p->confirmation_resume_stage[0] || p->agent_review_resume_stage[0] ||
        p->agent_review_reject_stage[0])
        return false;
    for (size_t i = 0; i < p->n_agents; i++)
        if (p->agents[i].each.list || lint_agent_has_inner(&p->agents[i]))
            return false;
    return true;
}

static int64_t dearest_visit(const struct rv_pipeline *p)
{
    int64_t most = 0;

    for (size_t i = 0; i < p->n_agents; i++) {
        int64_t calls = lint_agent_most_calls(p, &p->agents[i]);

        most = calls > most ? calls : most;
    }
    return most;
}

struct rv_whole_run rv_proof_with_answers(const struct rv_pipeline *p, const struct rv_proof *part, int64_t answers)
{
    int64_t parts = lint_sat_add(answers > 0 ? answers : 0, 1);
    int64_t visits = lint_sat_mul(part->max_visits, parts), calls = lint_sat_mul(part->max_llm_calls, parts);

    if (part->spans_answers && repeats_one_visit(p)) {
        visits = lint_sat_add(part->max_visits, parts - 1);
        calls = lint_sat_add(part->max_llm_calls, lint_sat_mul(parts - 1, dearest_visit(p)));
    }

    return (struct rv_whole_run){.max_visits = visits < p->max_agent_hops ? visits : p->max_agent_hops,
                                 .max_llm_calls = calls < p->max_llm_calls ? calls : p->max_llm_calls};
}

void rv_proof_fini(struct rv_proof *proof)
{
    free(proof->visits_path);
    free(proof->llm_path);
    memset(proof, 0, sizeof(*proof));
}
