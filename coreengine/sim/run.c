/* Many seeds: threads take them in blocks, each with everything of its own. The result does not depend on the threads:
 * counts are sums, hashes are combined in the order of seeds, and of failures the smallest seed counts. A failure is
 * cut down: decisions are taken back, many at once, then fewer, as long as the same invariant breaks. */
#include "coreengine/base/base.h"
#include "coreengine/sim/sim_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RUNS 3000 /* attempts: enough for some hundred decisions, over in seconds */

struct shrinking {
    const struct sim_setup *setup;
    uint64_t seed;
    enum rv_sim_invariant invariant;
    uint32_t *best; /* owned: decisions that break it */
    size_t n;
    uint32_t *tried; /* room for as many; owned */
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
    int rc = sim_once(k->setup, &(struct sim_try){.seed = k->seed, .script = k->tried, .n_script = n, .tally = &tally},
                      &s, err);
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

    int rc = sim_once(
        k->setup,
        &(struct sim_try){.seed = k->seed, .script = k->best, .n_script = k->n, .trace = &trace, .tally = &tally}, &s,
        err);
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

static int sim_shrink(const struct sim_setup *setup, const struct sim_seed *failed, struct rv_sim_failure *out,
                      rv_err **err)
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

/* --- many seeds --- */

#define BLOCK 64 /* seeds that one thread takes at once */

struct work {
    const struct rv_sim_opts *opts;
    const struct sim_tamper *tamper;
    char (*hashes)[RV_HASH_MAX]; /* one per block */
    int64_t n_blocks;
    pthread_mutex_t lock; /* guards next_block, n_done, failed_at, rc and err; leaf: progress() takes none of ours */
    int64_t next_block, n_done;
    int64_t failed_at; /* smallest index of a seed that broke something; n_seeds: none */
    int rc;
    rv_err *err; /* of the thread that failed first */
};

struct worker {
    struct work *work;
    struct sim_setup setup;
    struct rv_sim_report tally;
    pthread_t thread;
    bool has_thread;
};

static int64_t seeds_of(const struct work *w, int64_t block)
{
    int64_t left = w->opts->n_seeds - block * BLOCK;
    return left < BLOCK ? left : BLOCK;
}

/* False: nothing is left, or it would not count any more. */
static bool take_block(struct work *w, int64_t *block)
{
    pthread_mutex_lock(&w->lock);
    bool more = w->rc == 0 && w->next_block < w->n_blocks && w->next_block * BLOCK < w->failed_at;
    if (more)
        *block = w->next_block++;
    pthread_mutex_unlock(&w->lock);
    return more;
}

static void end_block(struct work *w, int64_t n, int64_t failed_at, int rc, rv_err *err)
{
    pthread_mutex_lock(&w->lock);
    w->n_done += n;
    if (failed_at < w->failed_at)
        w->failed_at = failed_at;
    if (rc < 0 && w->rc == 0) {
        w->rc = rc;
        w->err = err;
        err = NULL;
    }
    if (w->opts->progress && rc == 0)
        w->opts->progress(w->opts->self, w->n_done, w->opts->n_seeds);
    pthread_mutex_unlock(&w->lock);
    rv_err_free(err);
}

static bool is_last(const struct work *w, int64_t index)
{
    return index + 1 == w->opts->n_seeds;
}

/* One seed into the hash of its block. *broke: it broke something, and the rest does not matter. */
static int run_seed(struct worker *me, int64_t index, struct rv_hash *hash, bool *broke, rv_err **err)
{
    struct work *w = me->work;
    rv_buf trace = RV_BUF_INIT(SIM_MAX_TRACE);
    bool traced = w->opts->trace && is_last(w, index);
    char hex[RV_HASH_MAX];
    struct sim_seed s;

    int rc = sim_once(&me->setup,
                      &(struct sim_try){.seed = w->opts->first_seed + (uint64_t)index,
                                        .trace = traced ? &trace : NULL,
                                        .tally = &me->tally},
                      &s, err);
    me->tally.n_seeds++;
    if (rc == 0) {
        *broke = s.is_broken;
        rv_hash_finish_hex(&s.ledger.hash, hex);
        rv_hash_add(hash, rv_str_of(hex));
    }
    if (rc == 0 && traced)
        me->tally.trace = rv_buf_steal(&trace, NULL);
    sim_seed_fini(&s);
    rv_buf_fini(&trace);
    return rc;
}

static void run_block(struct worker *me, int64_t block)
{
    struct work *w = me->work;
    int64_t n = seeds_of(w, block), failed_at = INT64_MAX;
    struct rv_hash hash;
    rv_err *err = NULL;
    int rc = 0;

    rv_hash_init(&hash);
    for (int64_t i = 0; i < n && rc == 0 && failed_at == INT64_MAX; i++) {
        bool broke = false;
        rc = run_seed(me, block * BLOCK + i, &hash, &broke, &err);
        if (broke)
            failed_at = block * BLOCK + i;
    }
    rv_hash_finish_hex(&hash, w->hashes[block]);
    end_block(w, n, failed_at, rc, err);
}

static void *work_on(void *arg)
{
    struct worker *me = arg;
    int64_t block;

    while (take_block(me->work, &block))
        run_block(me, block);
    return NULL;
}

/* --- workers --- */

/* Of the runs: the one that is asked for, else the pipeline's own. */
static int mode_of(const struct rv_sim_opts *o, const struct rv_pipeline *p)
{
    int mode = o->mode != RV_UNSET ? o->mode : p->default_run_mode;

    return mode == RV_MODE_PARALLEL ? RV_MODE_PARALLEL : RV_MODE_SEQUENTIAL;
}

static int prepare(struct worker *me, struct work *w, size_t i, rv_err **err)
{
    const struct rv_sim_opts *o = w->opts;
    const struct rv_sim_subject *subject = &o->subjects[i];
    const struct rv_pipeline *p = subject->pipeline;

    me->work = w;
    me->setup = (struct sim_setup){.opts = o, .subject = subject, .tamper = w->tamper};
    int rc = rv_pipeline_prove(p, mode_of(o, p), &me->setup.proof, err);
    if (rc == 0)
        rc = rv_store_open("memory:", NULL, &me->setup.store, err);
    if (rc == 0)
        rc = sim_hints_new(subject, &me->setup.hints, err);
    if (rc == 0)
        rc = sim_places_new(p, mode_of(o, p), &me->tally, err);
    if (rc == 0 && subject->script) {
        me->setup.scripted = calloc(p->n_agents + 1, sizeof *me->setup.scripted);
        if (!me->setup.scripted)
            return RV_FAIL(err, RV_E_NOMEM, "prepare a simulation");
        rv_script_mark_stages(subject->script, p, me->setup.scripted);
        rc = rv_script_find_inner_stages(subject->script, p, &me->setup.scripted_inner, err);
    }
    return rc;
}

static void worker_fini(struct worker *me)
{
    rv_proof_fini(&me->setup.proof);
    rv_store_close(me->setup.store);
    sim_hints_free(me->setup.hints);
    free(me->setup.scripted);
    json_object_put(me->setup.scripted_inner);
    rv_sim_report_fini(&me->tally);
}

static void add_up(struct rv_sim_report *to, struct rv_sim_report *from)
{
    to->n_seeds += from->n_seeds;
    to->n_steps += from->n_steps;
    to->n_calls += from->n_calls;
    to->n_recoveries += from->n_recoveries;
    to->n_answers += from->n_answers;
    to->n_effects += from->n_effects;
    to->n_asked += from->n_asked;
    to->n_agents += from->n_agents;
    to->n_agents_ok += from->n_agents_ok;
    to->max_depth = from->max_depth > to->max_depth ? from->max_depth : to->max_depth;
    to->n_agent_calls += from->n_agent_calls;
    to->n_agent_faults += from->n_agent_faults;
    to->n_turns += from->n_turns;
    to->n_rows += from->n_rows;
    for (size_t i = 0; i < RV_N_RUN; i++)
        to->by_status[i] += from->by_status[i];
    for (size_t i = 0; i < RV_N_SIM_FAULTS; i++)
        to->faults[i] += from->faults[i];
    for (size_t i = 0; i < to->n_places; i++)
        to->places[i].hits += from->places[i].hits;
    if (from->trace) {
        to->trace = from->trace;
        from->trace = NULL;
    }
}

/* The seed that failed is run again, by itself, to be cut down: its decisions were not kept. */
static int explain(struct worker *me, int64_t index, struct rv_sim_report *out, rv_err **err)
{
    struct rv_sim_report tally = {0};
    struct sim_seed s;

    int rc = sim_once(
        &me->setup, &(struct sim_try){.seed = me->work->opts->first_seed + (uint64_t)index, .tally = &tally}, &s, err);
    if (rc == 0 && !s.is_broken)
        rc = RV_FAIL(err, RV_E_INTERNAL, "seed %llu broke something once and does not again: it is not deterministic",
                     (unsigned long long)s.seed);
    if (rc == 0)
        rc = sim_shrink(&me->setup, &s, &out->failure, err);
    sim_seed_fini(&s);
    out->has_failure = rc == 0;
    return rc;
}

static int check_opts(const struct rv_sim_opts *o, rv_err **err)
{
    if (o->n_subjects == 0 || o->n_seeds < 1)
        return RV_FAIL(err, RV_E_INVALID, "a simulation needs a pipeline and at least one seed");
    for (size_t i = 0; i < o->n_subjects; i++)
        if (!o->subjects[i].pipeline->is_sound)
            return RV_FAIL(err, RV_E_INVALID, "pipeline \"%s\" has errors and cannot be simulated",
                           o->subjects[i].pipeline->name);
    return 0;
}

static int64_t now_us(void)
{
    struct rv_clock clock = rv_clock_system();
    return clock.now_us(clock.self);
}

static void run_all(struct worker *workers, size_t n)
{
    for (size_t i = 1; i < n; i++)
        workers[i].has_thread =
            rv_thread_start(work_on, &workers[i], &workers[i].thread,
                            RV_CODE_ONLY("a worker that does not start leaves its share to the others")) == 0;
    work_on(&workers[0]);
    for (size_t i = 1; i < n; i++)
        if (workers[i].has_thread)
            pthread_join(workers[i].thread, NULL);
}

static int collect(struct work *w, struct worker *workers, size_t n, struct rv_sim_report *out, rv_err **err)
{
    struct rv_hash hash;

    if (w->rc < 0) {
        rv_err_pass(err, w->err);
        return w->rc;
    }
    for (size_t i = 0; i < n; i++)
        add_up(out, &workers[i].tally);
    rv_hash_init(&hash);
    for (int64_t b = 0; b < w->n_blocks; b++)
        rv_hash_add(&hash, rv_str_of(w->hashes[b]));
    rv_hash_finish_hex(&hash, out->hash);
    return w->failed_at < w->opts->n_seeds ? explain(&workers[0], w->failed_at, out, err) : 0;
}

static int run_with(const struct rv_sim_opts *opts, const struct sim_tamper *tamper, struct rv_sim_report *out,
                    rv_err **err)
{
    struct work w = {.opts = opts, .tamper = tamper, .lock = PTHREAD_MUTEX_INITIALIZER, .failed_at = opts->n_seeds};
    int64_t began_us = now_us();

    memset(out, 0, sizeof *out);
    int rc = check_opts(opts, err);
    if (rc < 0)
        return rc;
    w.n_blocks = (opts->n_seeds + BLOCK - 1) / BLOCK;
    w.hashes = calloc((size_t)w.n_blocks, sizeof *w.hashes);
    struct worker *workers = calloc(opts->n_subjects, sizeof *workers);
    const struct rv_pipeline *p = opts->subjects[0].pipeline;
    rc = w.hashes && workers ? sim_places_new(p, mode_of(opts, p), out, err)
                             : RV_FAIL(err, RV_E_NOMEM, "begin a simulation");
    for (size_t i = 0; i < opts->n_subjects && rc == 0; i++)
        rc = prepare(&workers[i], &w, i, err);
    if (rc == 0) {
        run_all(workers, opts->n_subjects);
        out->elapsed_us = now_us() - began_us;
        rc = collect(&w, workers, opts->n_subjects, out, err);
    }
    for (size_t i = 0; workers && i < opts->n_subjects; i++)
        worker_fini(&workers[i]);
    free(workers);
    free(w.hashes);
    if (rc < 0)
        rv_sim_report_fini(out);
    return rc;
}

/* Inside there always is a place for an error: what breaks an invariant is read from it. */
int sim_run_tampered(const struct rv_sim_opts *opts, const struct sim_tamper *tamper, struct rv_sim_report *out,
                     rv_err **err)
{
    rv_err *own = NULL;
    int rc = run_with(opts, tamper, out, &own);

    rv_err_pass(err, own);
    return rc;
}

int rv_sim_run(const struct rv_sim_opts *opts, struct rv_sim_report *out, rv_err **err)
{
    return sim_run_tampered(opts, NULL, out, err);
}
