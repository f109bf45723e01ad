/* One batch of a parallel run: reserve budgets, fork, drain, merge in stage order (rule 7.7's merge table, W07, W08).
 */
#include "coreengine/run/run_internal.h"

#include <stdlib.h>
#include <string.h>

/* Which of the ready stages the bounds allow to start; the rest end the run after the batch. */
static size_t reserve(rv_run *run, const int *ready, size_t n, int *over_visits)
{
    struct rv_envelope_left left = rv_envelope_left(run->env);
    size_t taken = 0;

    run->bound = RV_REASON_NONE;
    *over_visits = -1;
    for (size_t i = 0; i < n; i++) {
        bool llm = rv_stage_calls_llm(&run->shared, ready[i]);
        if (!rv_run_visits_left(run, ready[i])) {
            if (*over_visits < 0)
                *over_visits = ready[i];
        } else if (left.hops <= 0) {
            run->bound = RV_REASON_MAX_HOPS;
        } else if (llm && left.llm_calls <= 0) {
            if (run->bound == RV_REASON_NONE)
                run->bound = RV_REASON_MAX_LLM_CALLS;
        } else {
            left.hops--;
            left.llm_calls -= llm;
            run->batch[taken++] = ready[i];
            continue;
        }
        rv_run_add_candidate(run, ready[i]); /* it stays ready */
    }
    run->shared.llm_left = left.llm_calls;
    return taken;
}

int rv_run_batch_start(rv_run *run, const int *ready, size_t n, int64_t now_us, struct rv_effects *out, rv_err **err)
{
    int over_visits, rc = 0;
    rv_jw w;

    int *copy = malloc(n * sizeof *copy); /* reserve() reuses the array that ready stands in */
    if (!copy)
        return RV_FAIL(err, RV_E_NOMEM, "start a batch");
    memcpy(copy, ready, n * sizeof *copy);
    size_t taken = reserve(run, copy, n, &over_visits);
    free(copy);
    if (taken == 0) {
        rc = rv_run_set_first_open(run, err);
        if (rc < 0)
            return rc;
        return over_visits >= 0 ? rv_run_stop_at_visits(run, over_visits, now_us, out, err)
                                : rv_run_stop_at_bound(run, run->bound, now_us, out, err);
    }
    run->n_batch = taken;
    run->n_begun = run->n_done = run->first_open = 0;
    for (size_t i = 0; i < taken && rc == 0; i++) {
        run->states[run->batch[i]] = RV_STAGE_ACTIVE;
        rc = rv_envelope_start_stage(run->env, rv_str_of(run->pipeline->agents[run->batch[i]].name), err);
    }
    if (rc == 0 && rv_emit_begin(&run->shared, out, RV_EMIT_BATCH, -1, 0, now_us, &w)) {
        rv_jw_key(&w, "stages");
        rv_jw_arr(&w);
        for (size_t i = 0; i < taken; i++)
            rv_jw_text(&w, run->pipeline->agents[run->batch[i]].name);
        rv_jw_arr_end(&w);
        rv_emit_end(out, &w);
    }
    return rc;
}

int rv_run_batch_advance(rv_run *run, int64_t now_us, struct rv_effects *out, rv_err **err)
{
    size_t limit = run->opts.max_parallel;

    while (run->n_begun < run->n_batch && (limit == 0 || run->n_begun - run->n_done < limit)) {
        int stage = run->batch[run->n_begun];
        struct branch *b = &run->branches[stage];
        int rc = rv_envelope_fork(run->env, &b->fork, err);
        if (rc == 0)
            rc = rv_envelope_set_stage(b->fork, rv_str_of(run->pipeline->agents[stage].name), err);
        if (rc == 0)
            rc = rv_visit_begin(&run->shared, stage, b->fork, false, rv_stage_calls_llm(&run->shared, stage), now_us,
                                out, &b->visit, err);
        if (rc < 0)
            return rc;
        run->n_begun++;
        if (rv_visit_is_done(b->visit))
            run->n_done++;
    }
    return 0;
}

bool rv_run_batch_is_over(const rv_run *run)
{
    return run->n_done == run->n_batch;
}

static void changed(rv_run *run, int stage)
{
    size_t n;
    const int *deps = rv_pipeline_dependents(run->pipeline, stage, &n);
    for (size_t i = 0; i < n; i++)
        rv_run_add_candidate(run, deps[i]);
}

/* Merge one branch and note the outcome of its stage. */
static int merge_branch(rv_run *run, int stage, struct rv_merge *m, rv_err **err)
{
    struct branch *b = &run->branches[stage];
    const struct rv_visit_result *r = rv_visit_result(b->visit);
    rv_str name = rv_str_of(run->pipeline->agents[stage].name);

    int rc = rv_envelope_merge(run->env, b->fork, name, m, err);
    if (rc < 0)
        return rc;
    switch (r->end) {
    case RV_VISIT_OK:
        run->states[stage] = RV_STAGE_COMPLETED;
        rc = rv_envelope_complete_stage(run->env, name, err);
        break;
    case RV_VISIT_STAYED:
        run->states[stage] = RV_STAGE_WAITING;
        rc = rv_envelope_pause_stage(run->env, name, err);
        break;
    case RV_VISIT_FAILED:
        run->states[stage] = RV_STAGE_FAILED;
        rc = rv_envelope_fail_stage(run->env, name, rv_str_of(r->error_text), err);
        break;
    }
    if (rc == 0 && r->feedback && rv_outcome_requires_loop(r->outcome))
        rc = rv_envelope_add_feedback(run->env, rv_json_str(r->feedback), err);
    changed(run, stage);
    return rc;
}

static void warn_conflicts(rv_run *run, const struct rv_merge *m, int64_t now_us, struct rv_effects *out)
{
    size_t n = m->conflicts ? json_object_array_length(m->conflicts) : 0;
    rv_jw w;

    for (size_t i = 0; i < n; i++)
        if (rv_emit_begin(&run->shared, out, RV_EMIT_WARNING, -1, 0, now_us, &w)) {
            rv_jw_kv_text(&w, "message",
                          "two stages of a batch wrote the same output: the later one in stage order is kept");
            rv_jw_kv_value(&w, "conflict", json_object_array_get_idx(m->conflicts, i));
            rv_emit_end(out, &w);
        }
}

static int end_batch(rv_run *run, int failed, int64_t now_us, struct rv_effects *out, rv_err **err)
{
    int rc = rv_run_set_first_open(run, err);
    if (rc < 0)
        return rc;
    if (run->cancelled)
        return 0; /* ended by the one who cancels */
    if (failed >= 0) {
        const struct rv_visit_result *r = rv_visit_result(run->branches[failed].visit);
        return rv_run_fail(run, rv_run_failure_status(r->reason), r->reason, r->error_text, now_us, out, err);
    }
    rc = rv_run_save(run, out, err);
    if (rc < 0 || run->bound == RV_REASON_NONE || rv_envelope_fields(run->env)->terminated ||
        rv_envelope_fields(run->env)->interrupt_pending)
        return rc;
    return rv_run_stop_at_bound(run, run->bound, now_us, out, err);
}

int rv_run_batch_merge(rv_run *run, int64_t now_us, struct rv_effects *out, rv_err **err)
{
    const struct rv_pipeline *p = run->pipeline;
    struct rv_merge m = {NULL, NULL};
    int failed = -1, rc = 0;

    for (size_t i = 0; i < run->n_begun && rc == 0; i++) {
        int stage = run->batch[i];
        rc = merge_branch(run, stage, &m, err);
        const struct rv_visit_result *r = rv_visit_result(run->branches[stage].visit);
        if (failed < 0 && r->end == RV_VISIT_FAILED && r->next == RV_TARGET_NONE)
            failed = stage;
    }
    for (size_t i = run->n_begun; i < run->n_batch && rc == 0; i++) { /* cancelled before they began */
        run->states[run->batch[i]] = RV_STAGE_WAITING;
        rc = rv_envelope_pause_stage(run->env, rv_str_of(p->agents[run->batch[i]].name), err);
    }
    for (size_t i = 0; i < run->n_begun && rc == 0; i++) { /* error routes, once all states are known */
        int to = p->agents[run->batch[i]].routing.error_target;
        if (run->states[run->batch[i]] == RV_STAGE_FAILED && to >= 0 && run->states[to] == RV_STAGE_WAITING) {
            run->forced[to] = true;
            rv_run_add_candidate(run, to);
        }
    }
    if (rc == 0) {
        warn_conflicts(run, &m, now_us, out);
        rc = end_batch(run, failed, now_us, out, err);
    }
    rv_merge_fini(&m);
    for (size_t i = 0; i < run->n_begun; i++) {
        struct branch *b = &run->branches[run->batch[i]];
        rv_visit_free(b->visit);
        rv_envelope_free(b->fork);
        *b = (struct branch){NULL, NULL};
    }
    run->n_batch = run->n_begun = run->n_done = 0;
    return rc;
}
