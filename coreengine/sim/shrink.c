/* A failure cut down: decisions are taken back, many at once, then fewer, as long as the same invariant breaks. What is
 * left is told step by step. */
#include "coreengine/sim/sim_internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_RUNS 3000 /* attempts: enough for some hundred decisions, over in seconds */

struct shrinking {
    const struct sim_setup *setup;
    uint64_t seed;
    enum rv_sim_invariant invariant;
    uint32_t *best; /* owned: decisions that break it */
    size_t n;
    uint32_t *tried; /* room for as many */
    int64_t n_runs;
};

/* Does it still break with these decisions? Then they are the best. */
static int attempt(struct shrinking *k, size_t n, bool *broke, rv_err **err)
{
    struct rv_sim_report tally = {0};
    struct sim_seed s;

    *broke = false;
    if (k->n_runs++ >= MAX_RUNS)
        return 0;
    int rc = sim_once(k->setup, k->seed, k->tried, n, NULL, &tally, &s, err);
    if (rc == 0 && s.is_broken && s.invariant == k->invariant) {
        *broke = true;
        k->n = s.tape.n < n ? s.tape.n : n; /* what was asked for: the rest was never used */
        memcpy(k->best, k->tried, k->n * sizeof *k->best);
        while (k->n > 0 && k->best[k->n - 1] == 0)
            k->n--;
    }
    sim_seed_fini(&s);
    return rc;
}

static bool is_zero(const uint32_t *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (v[i])
            return false;
    return true;
}

/* Take back the decisions at..at + size: as if nothing had been decided there, or as if they had not been asked for. */
static int without(struct shrinking *k, size_t at, size_t size, bool removed, bool *broke, rv_err **err)
{
    size_t end = at + size < k->n ? at + size : k->n, n = k->n;

    *broke = false;
    if (!removed && is_zero(k->best + at, end - at))
        return 0;
    memcpy(k->tried, k->best, k->n * sizeof *k->best);
    if (removed) {
        memmove(k->tried + at, k->tried + end, (k->n - end) * sizeof *k->tried);
        n = k->n - (end - at);
    } else {
        memset(k->tried + at, 0, (end - at) * sizeof *k->tried);
    }
    return attempt(k, n, broke, err);
}

static int pass(struct shrinking *k, size_t size, bool removed, bool *any, rv_err **err)
{
    bool broke;
    int rc = 0;

    for (size_t at = removed ? RV_N_SIM_FAULTS : 0; at < k->n && rc == 0;) { /* the rates keep their places */
        rc = without(k, at, size, removed, &broke, err);
        *any = *any || broke;
        if (!broke || !removed)
            at += size;
    }
    return rc;
}

static int reduce(struct shrinking *k, rv_err **err)
{
    bool any = true;
    int rc = 0;

    while (any && rc == 0 && k->n_runs < MAX_RUNS) {
        any = false;
        for (size_t size = k->n / 2 ? k->n / 2 : 1; size > 0 && rc == 0; size /= 2) {
            rc = pass(k, size, false, &any, err);
            if (rc == 0)
                rc = pass(k, size, true, &any, err);
        }
    }
    return rc;
}

static size_t n_decided(const uint32_t *v, size_t n)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += v[i] != 0;
    return count;
}

static int describe(struct shrinking *k, struct rv_sim_failure *out, rv_err **err)
{
    struct rv_sim_report tally = {0};
    rv_buf trace = RV_BUF_INIT(SIM_MAX_TRACE);
    struct sim_seed s;

    int rc = sim_once(k->setup, k->seed, k->best, k->n, &trace, &tally, &s, err);
    if (rc == 0) {
        out->n_decisions = n_decided(k->best, k->n);
        out->text = rv_str_dup(rv_buf_str(&s.broken));
        out->trace = rv_buf_steal(&trace, NULL);
        rc = out->text && out->trace ? 0 : RV_FAIL(err, RV_E_NOMEM, "describe a failure");
    }
    sim_seed_fini(&s);
    rv_buf_fini(&trace);
    return rc;
}

int sim_shrink(const struct sim_setup *setup, const struct sim_seed *failed, struct rv_sim_failure *out, rv_err **err)
{
    struct shrinking k = {.setup = setup, .seed = failed->seed, .invariant = failed->invariant, .n = failed->tape.n};
    size_t bytes = (k.n + 1) * sizeof *k.best;

    out->seed = failed->seed;
    out->invariant = failed->invariant;
    out->n_before = n_decided(failed->tape.items, failed->tape.n);
    k.best = malloc(bytes);
    k.tried = malloc(bytes);
    int rc = k.best && k.tried ? 0 : RV_FAIL(err, RV_E_NOMEM, "cut a failure down");
    if (rc == 0) {
        memcpy(k.best, failed->tape.items, k.n * sizeof *k.best);
        rc = reduce(&k, err);
    }
    if (rc == 0)
        rc = describe(&k, out, err);
    free(k.best);
    free(k.tried);
    return rc;
}
