/* The run as others see it: made, stepped, asked, freed. The two cores are in sequential.c and parallel.c. */
#include "coreengine/run/run_internal.h"

#include <stdlib.h>
#include <string.h>

int rv_run_new(const struct rv_pipeline *pipeline, const struct rv_catalog *catalog, const struct rv_run_opts *opts,
               rv_envelope *env, rv_run **out, rv_err **err)
{
    if (!pipeline->is_sound) {
        rv_envelope_free(env);
        return RV_FAIL(err, RV_E_STATE, "pipeline \"%s\" has errors and can not be run", pipeline->name);
    }
    rv_run *run = calloc(1, sizeof *run);
    if (!run) {
        rv_envelope_free(env);
        return RV_FAIL(err, RV_E_NOMEM, "make a run of pipeline \"%s\"", pipeline->name);
    }
    run->asked_by = -1;
    run->pipeline = pipeline;
    run->opts = *opts;
    run->env = env;
    run->status = RV_RUN_READY;
    run->bound = RV_REASON_NONE;
    run->shared = (struct rv_visit_shared){
        .pipeline = pipeline,
        .catalog = catalog ? *catalog : rv_catalog_empty,
        .rules = opts->rules == RV_RULES_NEWEST ? RV_RULES_LAST : opts->rules,
        .scripted_stages = opts->scripted_stages,
        .use_mocks = opts->use_mocks || pipeline->mock,
        .emits = opts->emits,
        .next_call_id = opts->first.next_call_id > 0 ? opts->first.next_call_id : 1,
        .next_seq = opts->first.next_seq > 0 ? opts->first.next_seq : 1,
        .spent_micro_usd = rv_envelope_fields(env)->usage.cost_micro_usd,
        .conversation = opts->conversation,
    };
    *out = run;
    return 0;
}

void rv_run_free(rv_run *run)
{
    if (!run)
        return;
    rv_visit_free(run->visit);
    rv_run_parallel_fini(run);
    rv_visit_shared_fini(&run->shared);
    rv_envelope_free(run->env);
    free(run);
}

/* An end as interrupted was a pause: go on as if new, with the same envelope and numbers. */
static void rearm(rv_run *run)
{
    rv_visit_free(run->visit);
    run->visit = NULL;
    rv_run_parallel_fini(run);
    run->started = run->finished = run->parallel = run->cancelled = false;
    run->bound = RV_REASON_NONE;
}

static bool is_paused(const rv_run *run)
{
    return run->finished && run->status == RV_RUN_INTERRUPTED;
}

static int advance(rv_run *run, int64_t now_us, struct rv_effects *out, rv_err **err)
{
    if (run->finished)
        return 0;
    return run->parallel ? rv_run_parallel(run, now_us, out, err) : rv_run_sequential(run, now_us, out, err);
}

/* The visit that waits for a call, or NULL: its answer is not wanted any more. */
static rv_visit *waiting_visit(rv_run *run, int64_t call_id)
{
    if (!run->parallel)
        return run->visit && rv_visit_waits_for(run->visit, call_id) ? run->visit : NULL;
    while (run->first_open < run->n_begun && rv_visit_is_done(run->branches[run->batch[run->first_open]].visit))
        run->first_open++; /* mostly answered in order: do not look at the finished ones again */
    for (size_t i = run->first_open; i < run->n_begun; i++) {
        rv_visit *v = run->branches[run->batch[i]].visit;
        if (!rv_visit_is_done(v) && rv_visit_waits_for(v, call_id))
            return v;
    }
    return NULL;
}

static int on_done(rv_run *run, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    rv_visit *v = waiting_visit(run, ev->call_id);
    if (!v)
        return 0;
    int rc = rv_visit_on(v, ev, out, err);
    if (rc < 0)
        return rc;
    if (run->parallel && rv_visit_is_done(v))
        run->n_done++;
    return advance(run, ev->now_us, out, err);
}

static int cancel_all(rv_run *run, json_object *partials, int64_t now_us, struct rv_effects *out, rv_err **err)
{
    const char *why = "cancelled by the caller";
    int rc = 0;

    if (run->visit)
        rc = rv_visit_cancel(run->visit, why, partials, now_us, out, err);
    if (run->parallel && run->n_batch > 0) {
        for (size_t i = 0; i < run->n_begun && rc == 0; i++) {
            rv_visit *v = run->branches[run->batch[i]].visit;
            if (!rv_visit_is_done(v))
                rc = rv_visit_cancel(v, why, partials, now_us, out, err);
        }
        run->n_done = run->n_begun;
        run->cancelled = true;
        if (rc == 0)
            rc = rv_run_batch_merge(run, now_us, out, err);
    }
    if (rc == 0 && !run->finished)
        rc = rv_run_give_up_waiting(run, why, now_us, out, err);
    rv_visit_free(run->visit);
    run->visit = NULL;
    return rc < 0 || run->finished
               ? rc
               : rv_run_fail(run, RV_RUN_CANCELLED, RV_REASON_USER_CANCELLED, why, now_us, out, err);
}

static int on_cancel(rv_run *run, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    const struct rv_json_opts opts = {.max_bytes = 8 * RV_LLM_MAX_REPLY, .what = "what had come of model calls"};
    json_object *partials = NULL;
    int rc = ev->reply.len > 0 ? rv_json_parse(ev->reply, &opts, &partials, err) : 0;

    if (rc == 0 && partials && !json_object_is_type(partials, json_type_array))
        rc = RV_FAIL(err, RV_E_INVALID, "what had come of model calls must be a list");
    if (rc == 0)
        rc = cancel_all(run, partials, ev->now_us, out, err);
    json_object_put(partials);
    return rc;
}

/* The process that replays the run makes the pending calls again; this function corrects time and cost. */
static int on_recover(rv_run *run, int64_t now_us, struct rv_effects *out, rv_err **err)
{
    int64_t gap_us = now_us > run->last_us ? now_us - run->last_us : 0;
    bool ended = false;
    int rc = 0;

    if (run->visit) {
        rc = rv_visit_recover(run->visit, gap_us, out, err);
        ended = rv_visit_is_done(run->visit);
    }
    for (size_t i = 0; i < run->n_begun && rc == 0; i++) {
        rv_visit *v = run->branches[run->batch[i]].visit;
        if (!v || rv_visit_is_done(v))
            continue;
        rc = rv_visit_recover(v, gap_us, out, err);
        run->n_done += rv_visit_is_done(v);
        ended = ended || rv_visit_is_done(v);
    }
    return rc == 0 && ended ? advance(run, now_us, out, err) : rc;
}

static int step(rv_run *run, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    int rc;

    if (is_paused(run) && ev->kind == RV_EVENT_ANSWER) {
        rc = rv_envelope_check_response(run->env, &ev->response, ev->now_us, err);
        if (rc < 0)
            return rc;
        rearm(run);
    } else if (is_paused(run) && ev->kind == RV_EVENT_CANCEL) {
        rearm(run);
    }
    if (run->finished && (ev->kind == RV_EVENT_START || ev->kind == RV_EVENT_ANSWER))
        return RV_FAIL(err, RV_E_STATE, "the run is over");
    if (run->finished)
        return 0;
    if (!run->started && ev->kind != RV_EVENT_START && ev->kind != RV_EVENT_ANSWER && ev->kind != RV_EVENT_CANCEL)
        return RV_FAIL(err, RV_E_STATE, "a run begins with a start or an answer");
    switch (ev->kind) {
    case RV_EVENT_START:
    case RV_EVENT_ANSWER:
        if (run->started)
            return RV_FAIL(err, RV_E_STATE, "the run has begun already");
        rc = ev->kind == RV_EVENT_START ? rv_run_start(run, ev->now_us, out, err)
                                        : rv_run_answer(run, &ev->response, ev->now_us, out, err);
        return rc < 0 ? rc : advance(run, ev->now_us, out, err);
    case RV_EVENT_LLM_DONE:
    case RV_EVENT_TOOL_DONE:
    case RV_EVENT_HOOK_DONE:
    case RV_EVENT_TIMER:
        return on_done(run, ev, out, err);
    case RV_EVENT_CANCEL:
        return on_cancel(run, ev, out, err);
    case RV_EVENT_RECOVER:
        return on_recover(run, ev->now_us, out, err);
    }
    return RV_FAIL(err, RV_E_INVALID, "unknown event kind %d", (int)ev->kind);
}

int rv_run_step(rv_run *run, const struct rv_event *ev, struct rv_effects *out, rv_err **err)
{
    run->shared.blocked = run->shared.rules >= RV_RULES_2 ? ev->blocked : NULL;
    int rc = step(run, ev, out, err);
    run->shared.blocked = NULL;
    if (rc == 0 && ev->now_us > run->last_us)
        run->last_us = ev->now_us;
    if (rc == 0 && out->rc < 0)
        rc = RV_FAIL(err, out->rc, "collect the effects of a step of pipeline \"%s\"", run->pipeline->name);
    return rc;
}

bool rv_run_is_finished(const rv_run *run)
{
    return run->finished;
}

struct rv_run_counters rv_run_counters(const rv_run *run)
{
    return (struct rv_run_counters){run->shared.next_call_id, run->shared.next_seq};
}

enum rv_run_status rv_run_status(const rv_run *run)
{
    return run->status;
}

const rv_err *rv_run_failure(const rv_run *run)
{
    return run->shared.failure;
}

const rv_envelope *rv_run_envelope(const rv_run *run)
{
    return run->env;
}

void rv_run_set_saves(rv_run *run, enum rv_saves saves)
{
    run->opts.saves = saves;
}

void rv_run_set_emits(rv_run *run, bool emits)
{
    run->shared.emits = emits;
}

bool rv_run_minds_breakers(const rv_run *run)
{
    return run->shared.rules >= RV_RULES_2;
}

rv_envelope *rv_run_steal_envelope(rv_run *run)
{
    rv_envelope *env = run->env;
    run->env = NULL;
    return env;
}
