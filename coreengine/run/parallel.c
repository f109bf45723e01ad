/* All ready stages at once, batch after batch, by dependencies alone (rule 7.7). Readiness is kept up to date from what
 * changed, so that a batch costs its own size and not the pipeline's. A batch reserves budgets, forks, drains and
 * merges in stage order (rule 7.7's merge table, W07, W08). */
#include "coreengine/run/run_internal.h"

#include <stdlib.h>
#include <string.h>

void run_parallel_fini(rv_run *run)
{
    for (size_t i = 0; i < run->n_batch; i++) {
        struct batch_stage *b = &run->batch_stages[run->batch[i]];
        run_work_free(b->work);
        rv_envelope_free(b->fork);
    }
    free(run->states);
    free(run->forced);
    free(run->parked);
    free(run->is_candidate);
    free(run->candidates);
    free(run->batch_stages);
    free(run->batch);
    run->states = NULL;
    run->forced = run->parked = run->is_candidate = NULL;
    run->candidates = run->batch = NULL;
    run->batch_stages = NULL;
    run->n_candidates = run->n_batch = run->n_begun = run->n_done = run->first_open = 0;
}

static void add_candidate(rv_run *run, int stage)
{
    if (run->is_candidate[stage])
        return;
    run->is_candidate[stage] = true;
    run->candidates[run->n_candidates++] = stage;
}

/* Stages whose own interrupt is queued wait until it was answered; the others would be asked twice. */
static void park_queued(rv_run *run)
{
    const char *name = NULL;

    for (size_t i = 0; i < rv_envelope_n_queued(run->env); i++) {
        json_object *entry = rv_envelope_queued_at(run->env, i);
        if (!entry || !rv_json_get_text(entry, "stage", &name))
            continue;
        int stage = rv_pipeline_find_stage(run->pipeline, rv_str_of(name));
        if (stage >= 0)
            run->parked[stage] = true;
    }
}

/* Stages that were skipped without a visit before a pause: once is enough. */
static void skip_as_before(rv_run *run)
{
    for (size_t i = 0; run->shared.rules >= RV_RULES_2 && i < rv_envelope_n_records(run->env); i++) {
        rv_str name = rv_envelope_skipped_at(run->env, i);
        int stage = name.ptr ? rv_pipeline_find_stage(run->pipeline, name) : -1;

        if (stage >= 0 && run->states[stage] == RV_STAGE_WAITING && rv_envelope_visits(run->env, name) == 0)
            run->states[stage] = RV_STAGE_SKIPPED;
    }
}

int run_parallel_begin(rv_run *run, rv_err **err)
{
    const struct rv_pipeline *p = run->pipeline;
    size_t n = p->n_agents ? p->n_agents : 1;

    run->states = calloc(n, sizeof *run->states);
    run->forced = calloc(n, sizeof *run->forced);
    run->parked = calloc(n, sizeof *run->parked);
    run->is_candidate = calloc(n, sizeof *run->is_candidate);
    run->candidates = calloc(n, sizeof *run->candidates);
    run->batch_stages = calloc(n, sizeof *run->batch_stages);
    run->batch = calloc(n, sizeof *run->batch);
    if (!run->states || !run->forced || !run->parked || !run->is_candidate || !run->candidates || !run->batch_stages ||
        !run->batch)
        return RV_FAIL(err, RV_E_NOMEM, "begin a parallel run of pipeline \"%s\"", p->name);

    for (size_t i = 0; i < p->n_agents; i++) {
        rv_str name = rv_str_of(p->agents[i].name);
        if (rv_envelope_is_completed(run->env, name))
            run->states[i] = RV_STAGE_COMPLETED;
        else if (rv_envelope_is_failed(run->env, name))
            run->states[i] = RV_STAGE_FAILED;
    }
    skip_as_before(run);
    for (size_t i = 0; i < p->n_agents; i++) {
        int to = p->agents[i].routing.error_target;
        if (run->states[i] == RV_STAGE_FAILED && to >= 0 && run->states[to] == RV_STAGE_WAITING)
            run->forced[to] = true;
        add_candidate(run, (int)i);
    }
    park_queued(run);
    return 0;
}

/* current_stage of a stopped parallel run */
static int set_first_open(rv_run *run, rv_err **err)
{
    for (size_t i = 0; i < run->pipeline->n_agents; i++)
        if (run->states[i] == RV_STAGE_WAITING || run->states[i] == RV_STAGE_ACTIVE)
            return rv_envelope_set_stage(run->env, rv_str_of(run->pipeline->agents[i].name), err);
    return rv_envelope_set_stage(run->env, RV_STR_LIT(RV_STAGE_END), err);
}

/* Limit it to what the runs around this one have left. */
static void clip(const rv_run *run, struct rv_envelope_left *left)
{
    for (const struct rv_visit_shared *s = run->shared.up; s; s = s->up) {
        if (s->origin)
            continue;
        left->hops = s->hops_left < left->hops ? s->hops_left : left->hops;
        left->llm_calls = s->llm_left < left->llm_calls ? s->llm_left : left->llm_calls;
    }
}

/* Which of the ready stages the bounds allow to start; the rest end the run after the batch. */
static size_t reserve(rv_run *run, const int *ready, size_t n, int *over_visits)
{
    struct rv_envelope_left left = rv_envelope_left(run->env);
    size_t taken = 0;

    run->bound = RV_REASON_NONE;
    *over_visits = -1;
    clip(run, &left);
    for (size_t i = 0; i < n; i++) {
        bool llm = rv_stage_calls_llm(&run->shared, ready[i]);
        if (rv_visit_goes_on(&run->shared, ready[i], run->env)) {
            run->batch[taken++] = ready[i];
            continue;
        }
        if (!run_visits_left(run, ready[i])) {
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
            rv_visit_note_hops(run->shared.up, 1);
            rv_visit_note_calls(run->shared.up, llm);
            run->batch[taken++] = ready[i];
            continue;
        }
        add_candidate(run, ready[i]); /* it stays ready */
    }
    run->shared.llm_left = left.llm_calls;
    run->shared.hops_left = left.hops;
    return taken;
}

static int stop_at_bound(rv_run *run, struct rv_effects *out, rv_err **err)
{
    bool stopped = false;
    int rc = run_stop_outside(run, run->bound == RV_REASON_MAX_LLM_CALLS, &stopped, out, err);

    return rc < 0 || stopped ? rc : run_stop_at_bound(run, run->bound, out, err);
}

static int start_batch(rv_run *run, const int *ready, size_t n, struct rv_effects *out, rv_err **err)
{
    int over_visits, rc = 0;

    int *copy = malloc(n * sizeof *copy); /* reserve() reuses the array that ready stands in */
    if (!copy)
        return RV_FAIL(err, RV_E_NOMEM, "start a batch");
    memcpy(copy, ready, n * sizeof *copy);
    size_t taken = reserve(run, copy, n, &over_visits);
    free(copy);
    if (taken == 0) {
        rc = set_first_open(run, err);
        if (rc < 0)
            return rc;
        return over_visits >= 0 ? run_stop_at_visits(run, over_visits, out, err) : stop_at_bound(run, out, err);
    }
    run->n_batch = taken;
    run->n_begun = run->n_done = run->first_open = 0;
    for (size_t i = 0; i < taken && rc == 0; i++) {
        run->states[run->batch[i]] = RV_STAGE_ACTIVE;
        rc = rv_envelope_start_stage(run->env, rv_str_of(run->pipeline->agents[run->batch[i]].name), err);
    }
    if (rc == 0)
        rv_run_emit(run, out, RV_EMIT_BATCH, RV_M_STAGES("stages", run->batch, (int64_t)taken));
    return rc;
}

static int advance_batch(rv_run *run, struct rv_effects *out, rv_err **err)
{
    size_t limit = run->opts.max_parallel;

    while (run->n_begun < run->n_batch && (limit == 0 || run->n_begun - run->n_done < limit)) {
        int stage = run->batch[run->n_begun];
        struct batch_stage *b = &run->batch_stages[stage];
        int rc = rv_envelope_fork(run->env, &b->fork, err);
        if (rc == 0)
            rc = rv_envelope_set_stage(b->fork, rv_str_of(run->pipeline->agents[stage].name), err);
        struct rv_visit_start start = {.stage = stage, .env = b->fork, .place = &run->place};
        if (rc == 0) {
            start.llm_reserved =
                rv_stage_calls_llm(&run->shared, stage) && !rv_visit_goes_on(&run->shared, stage, b->fork);
            rc = run_work_begin(&run->shared, &start, out, &b->work, err);
        }
        if (rc < 0)
            return rc;
        run->n_begun++;
        if (run_work_is_done(b->work))
            run->n_done++;
    }
    return 0;
}

static void changed(rv_run *run, int stage)
{
    size_t n;
    const int *deps = rv_pipeline_dependents(run->pipeline, stage, &n);
    for (size_t i = 0; i < n; i++)
        add_candidate(run, deps[i]);
}

/* Merge one branch and note the outcome of its stage. */
static int merge_branch(rv_run *run, int stage, struct rv_merge *m, rv_err **err)
{
    struct batch_stage *b = &run->batch_stages[stage];
    const struct rv_visit_result *r = run_work_result(b->work);
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
    if (rc == 0 && r->end != RV_VISIT_STAYED)
        rc = rv_envelope_set_caught(run->env, name, NULL, err);
    changed(run, stage);
    return rc;
}

static void warn_conflicts(rv_run *run, const struct rv_merge *m, struct rv_effects *out)
{
    size_t n = m->conflicts ? json_object_array_length(m->conflicts) : 0;

    for (size_t i = 0; i < n; i++)
        rv_run_emit(
            run, out, RV_EMIT_WARNING,
            RV_M_TEXT("message", "two stages of a batch wrote the same output: the later one in stage order is kept"),
            RV_M_OF(VALUE, "conflict", json_object_array_get_idx(m->conflicts, i)));
}

static int end_batch(rv_run *run, int failed, struct rv_effects *out, rv_err **err)
{
    int rc = set_first_open(run, err);
    if (rc < 0)
        return rc;
    if (run->cancelled)
        return 0; /* ended by the one who cancels */
    if (failed >= 0)
        return run_fail_by(run, run->batch_stages[failed].work, out, err);
    rc = run_save(run, out, err);
    if (rc < 0 || run->bound == RV_REASON_NONE || rv_envelope_fields(run->env)->terminated ||
        rv_envelope_fields(run->env)->interrupt_pending)
        return rc;
    return stop_at_bound(run, out, err);
}

/* The handler sees the first failure in stage order of those that lead to it. */
static int hand_over(rv_run *run, int failed, int handler, rv_err **err)
{
    rv_str name = rv_str_of(run->pipeline->agents[handler].name);

    if (rv_envelope_caught(run->env, name))
        return 0;
    return rv_envelope_set_caught(run->env, name, rv_envelope_caught(run->batch_stages[failed].fork, name), err);
}

int run_batch_merge(rv_run *run, struct rv_effects *out, rv_err **err)
{
    const struct rv_pipeline *p = run->pipeline;
    struct rv_merge m = {NULL, NULL};
    int failed = -1, rc = 0;

    for (size_t i = 0; i < run->n_begun && rc == 0; i++) {
        int stage = run->batch[i];
        rc = merge_branch(run, stage, &m, err);
        const struct rv_visit_result *r = run_work_result(run->batch_stages[stage].work);
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
            add_candidate(run, to);
            rc = hand_over(run, run->batch[i], to, err);
        }
    }
    if (rc == 0) {
        warn_conflicts(run, &m, out);
        rc = end_batch(run, failed, out, err);
    }
    rv_merge_fini(&m);
    for (size_t i = 0; i < run->n_begun; i++) {
        struct batch_stage *b = &run->batch_stages[run->batch[i]];
        run_work_free(b->work);
        rv_envelope_free(b->fork);
        *b = (struct batch_stage){NULL, NULL};
    }
    run->n_batch = run->n_begun = run->n_done = 0;
    return rc;
}

static int by_index(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Since rules 2 a stage that only an error_next names waits for that failure; before, it ran beside the others. */
static bool is_fallback(const struct rv_run *run, int stage)
{
    return run->shared.rules >= RV_RULES_2 && run->pipeline->agents[stage].routing.on_failure_only;
}

static bool is_ready(const struct rv_run *run, int stage)
{
    return run->states[stage] == RV_STAGE_WAITING && !run->parked[stage] &&
           (run->forced[stage] ||
            (!is_fallback(run, stage) && rv_stage_has_what_it_needs(run->pipeline, run->states, stage)));
}

/* Move the ready ones of the candidates to the front of the array, in stage order; the rest come back when a dependency
 * of theirs changes. */
static size_t take_ready(rv_run *run)
{
    size_t n = 0;

    for (size_t i = 0; i < run->n_candidates; i++) {
        int s = run->candidates[i];
        run->is_candidate[s] = false;
        if (is_ready(run, s))
            run->candidates[n++] = s;
    }
    run->n_candidates = 0;
    qsort(run->candidates, n, sizeof *run->candidates, by_index);
    return n;
}

/* The stage will never complete, as the pipeline intends: its failure was routed, or it waited for a stage whose
 * failure was. */
static bool is_given_up(const struct rv_run *run, int stage)
{
    return run->states[stage] == RV_STAGE_SKIPPED ||
           (run->states[stage] == RV_STAGE_FAILED &&
            run->pipeline->agents[stage].routing.error_target != RV_TARGET_NONE);
}

/* Can no longer become ready because what it requires is given up. */
static bool is_cut_off(const rv_run *run, int stage)
{
    const struct rv_agent *a = &run->pipeline->agents[stage];
    size_t bad = 0;

    for (size_t i = 0; i < a->order.required.n; i++)
        bad += is_given_up(run, a->order.required_index[i]);
    return a->order.join == RV_JOIN_ANY ? a->order.required.n > 0 && bad == a->order.required.n : bad > 0;
}

/* No stage can fail any more whose error_next it is: all of them have ended, or wait for a failure themselves. */
static bool is_unused(const struct rv_run *run, int stage)
{
    const struct rv_pipeline *p = run->pipeline;

    if (!is_fallback(run, stage))
        return false;
    for (size_t i = 0; i < p->n_agents; i++)
        if (p->agents[i].routing.error_target == stage && run->states[i] == RV_STAGE_WAITING &&
            !is_fallback(run, (int)i))
            return false;
    return true;
}

/* Why a stage that waits will not run; NULL: it may. Until rules 2 there was one reason. */
static const char *why_skipped(const struct rv_run *run, int stage)
{
    const struct rv_agent *a = &run->pipeline->agents[stage];
    bool failed = run->shared.rules < RV_RULES_2;

    if (run->states[stage] != RV_STAGE_WAITING || run->parked[stage])
        return NULL;
    if (is_unused(run, stage))
        return "no stage failed whose error_next it is";
    if (!is_cut_off(run, stage))
        return NULL;
    for (size_t i = 0; i < a->order.required.n; i++)
        failed = failed || run->states[a->order.required_index[i]] == RV_STAGE_FAILED;
    return failed ? "a stage it requires has failed" : "a stage it requires was skipped";
}

static int skip(rv_run *run, int stage, const char *why, struct rv_effects *out, rv_err **err)
{
    const struct rv_agent *a = &run->pipeline->agents[stage];
    size_t n;

    int rc = rv_envelope_record_skipped(run->env, rv_str_of(a->name), a->order.stage_order, out->now_us, err);
    if (rc < 0)
        return rc;
    run->states[stage] = RV_STAGE_SKIPPED;
    const int *deps = rv_pipeline_dependents(run->pipeline, stage, &n);
    for (size_t d = 0; d < n; d++)
        add_candidate(run, deps[d]);
    RV_EMIT(&run->shared, out, (&(const struct rv_emit_head){RV_EMIT_STAGE_SKIPPED, stage, .now_us = out->now_us}),
            RV_M_TEXT("reason", why));
    return 0;
}

static int skip_cut_off(rv_run *run, bool *skipped, struct rv_effects *out, rv_err **err)
{
    int rc = 0;

    *skipped = false;
    for (size_t i = 0; i < run->pipeline->n_agents && rc == 0; i++) {
        const char *why = why_skipped(run, (int)i);
        if (why) {
            rc = skip(run, (int)i, why, out, err);
            *skipped = true;
        }
    }
    return rc;
}

/* Stages wait for an error handler that waits for one of them to fail: the handler is skipped. */
static int skip_a_fallback(rv_run *run, bool *skipped, struct rv_effects *out, rv_err **err)
{
    *skipped = false;
    for (size_t i = 0; i < run->pipeline->n_agents; i++)
        if (run->states[i] == RV_STAGE_WAITING && is_fallback(run, (int)i)) {
            *skipped = true;
            return skip(run, (int)i, "stages wait for it, and its own run waits for one of them to fail", out, err);
        }
    return 0;
}

static int fail_blocked(rv_run *run, struct rv_effects *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(RV_JSON_MAX_BYTES);
    const char *sep = "no stage can start, these are blocked: ";

    for (size_t i = 0; i < run->pipeline->n_agents; i++)
        if (run->states[i] == RV_STAGE_WAITING) {
            rv_buf_printf(&text, "%s\"%s\"", sep, run->pipeline->agents[i].name);
            sep = ", ";
        }
    int rc = rv_buf_check(&text, "reason", err);
    if (rc == 0)
        rc = set_first_open(run, err);
    if (rc == 0)
        rc = run_fail(run, RV_RUN_FAILED, RV_REASON_TOOL_FAILED, rv_buf_cstr(&text), out, err);
    rv_buf_fini(&text);
    return rc;
}

/* Nothing is ready: skip what is cut off, ask what is queued, or end. */
static int nothing_ready(rv_run *run, struct rv_effects *out, rv_err **err)
{
    bool more;
    int rc = skip_cut_off(run, &more, out, err);
    if (rc < 0 || more)
        return rc;
    rc = rv_envelope_promote_interrupt(run->env, out->now_us, &more, err);
    if (rc == 0)
        rc = set_first_open(run, err);
    if (rc < 0)
        return rc;
    if (more)
        return run_finish(run, RV_RUN_INTERRUPTED, NULL, out, err);
    rc = skip_a_fallback(run, &more, out, err);
    if (rc < 0 || more)
        return rc;
    for (size_t i = 0; i < run->pipeline->n_agents; i++)
        if (run->states[i] == RV_STAGE_WAITING)
            return fail_blocked(run, out, err);
    return run_finish(run, RV_RUN_COMPLETED, NULL, out, err);
}

/* Between batches. */
static int next_batch(rv_run *run, struct rv_effects *out, rv_err **err)
{
    enum rv_reason reason = RV_REASON_NONE;

    run_hold_bounds(run, &run->main);
    if (rv_envelope_fields(run->env)->terminated)
        return run_finish(run, RV_RUN_TERMINATED, NULL, out, err);
    size_t n = take_ready(run);
    if (rv_envelope_fields(run->env)->interrupt_pending) {
        int rc = set_first_open(run, err);
        return rc < 0 ? rc : run_finish(run, RV_RUN_INTERRUPTED, NULL, out, err);
    }
    if (n == 0)
        return nothing_ready(run, out, err);
    if (!rv_envelope_can_continue(run->env, false, &reason)) {
        int rc = set_first_open(run, err);
        return rc < 0 ? rc : run_stop_at_bound(run, reason, out, err);
    }
    return start_batch(run, run->candidates, n, out, err);
}

int run_parallel(rv_run *run, struct rv_effects *out, rv_err **err)
{
    int rc = 0;

    while (rc == 0 && !run->finished) {
        if (run->n_batch == 0) {
            rc = next_batch(run, out, err);
            continue;
        }
        rc = advance_batch(run, out, err);
        if (rc < 0 || run->n_done < run->n_batch)
            return rc;
        rc = run_batch_merge(run, out, err);
    }
    return rc;
}
