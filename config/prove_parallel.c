/* Bounds of a parallel run (rule 7.7). Dependencies, not routes, decide what starts, and no stage starts twice: an
 * error route makes its target ready at once, but only if it has not run yet. */
#include <stdlib.h>

#include "config/prove_internal.h"

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
        for (size_t r = 0; r < p->agents[i].order.requires.n; r++)
            if (p->agents[i].order.requires_index[r] == stage)
                return false;
    return true;
}

/* Start one batch in which nothing fails but what makes room for more. False: a stage did not get its budget, or
 * nothing was ready. */
static bool run_batch(struct batch_run *run)
{
    size_t n = rv_pipeline_ready(run->p, run->states, run->ready);
    int64_t extra = 0;
    bool all = n > 0;

    for (size_t i = 0; i < n; i++) {
        const struct rv_agent *a = &run->p->agents[run->ready[i]];
        int64_t calls = rv_agent_most_calls(run->p, a);

        if (run->visits >= run->max_hops || (calls > 0 && run->calls >= run->max_calls)) {
            all = false;
            continue;
        }
        run->path[run->visits++] = run->ready[i];
        run->states[run->ready[i]] = fails(run, run->ready[i]) ? RV_STAGE_FAILED : RV_STAGE_COMPLETED;
        if (calls > 0) {
            run->calls++;
            extra = rv_sat_add(extra, run->want_calls ? calls - 1 : 0);
        }
    }
    extra = rv_sat_add(run->calls, extra);
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
 * asked, and its error route lets the run go on. */
static bool may_skip_call(const struct rv_agent *a)
{
    return a->hooks.before_model.n > 0 || (a->hooks.pre_process[0] && a->routing.error_target != RV_TARGET_NONE);
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
        calls[i] = rv_agent_most_calls(p, &p->agents[i]);
        out->asks_again |= rv_agent_may_ask_again(&p->agents[i]);
        callers += calls[i] > 0 && !may_skip_call(&p->agents[i]);
    }
    if (n > 1)
        qsort(calls, p->n_agents, sizeof(*calls), by_size_down);
    for (int64_t i = 0; i < n && i < max_hops; i++)
        out->calls = rv_sat_add(out->calls, calls[i]);
    out->calls = out->calls < max_calls ? out->calls : max_calls;
    out->mocked_visits = n < max_hops ? n : max_hops;
    out->visits = n - callers + (callers < max_calls ? callers : max_calls);
    out->visits = out->visits < max_hops ? out->visits : max_hops;
    free(calls);
    return 0;
}

int rv_prove_parallel(const struct rv_pipeline *p, struct rv_proof *out, rv_err **err)
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
        rc = rv_proof_set_path(visits.path, (size_t)visits.visits, &proof.visits_path, &proof.n_visits_path, err);
    if (rc == 0)
        rc = rv_proof_set_path(calls.path, (size_t)calls.visits, &proof.llm_path, &proof.n_llm_path, err);
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
