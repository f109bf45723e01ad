/* Shared by the files of the run state machine. */
#ifndef RV_RUN_INTERNAL_H
#define RV_RUN_INTERNAL_H

#include "coreengine/run/run.h"
#include "coreengine/run/work.h"

/* One stage of a parallel batch. */
struct branch {
    rv_work *work;
    rv_envelope *fork;
};

struct rv_run {
    const struct rv_pipeline *pipeline; /* borrowed; outlives the run */
    struct rv_visit_shared shared;
    struct rv_run_opts opts;
    rv_envelope *env; /* owned; NULL after it was taken out */
    bool started, finished, parallel;
    int64_t n_boundaries, last_saved; /* places where a state may be saved; which of them the last save was at */
    int64_t last_us;                  /* latest time it was told */
    bool cancelled; /* the pending batch was cancelled: that ends the run, whatever its branches return */
    enum rv_run_status status;

    /* A run that is the work of a stage (inner.c) has a root in `shared`. It tells nobody how it began and ended. */
    bool is_inner;
    struct rv_visit_place place;              /* of all its visits */
    const struct rv_visit_shared *stopped_by; /* the run around it whose bound ended it; NULL: none did */
    const char *failed_type;                  /* of the failure that ended it, when nothing caught it; NULL: none did */
    enum rv_failure failed_code;
    char *failed_stage; /* owned */

    rv_work *work; /* sequential: the one under way, or NULL */
    int asked_by;  /* sequential: the stage whose visit left an interrupt pending; -1: none has */

    /* parallel; arrays have one element per stage */
    enum rv_stage_state *states;
    bool *forced; /* an error route made it ready, whatever it requires */
    bool *parked; /* its interrupt is queued: it waits until that was answered */
    bool *is_candidate;
    int *candidates; /* stages whose readiness may have changed */
    size_t n_candidates;
    struct branch *branches;
    int *batch; /* stages of the batch under way, in stage order */
    size_t n_batch, n_begun, n_done;
    size_t first_open;    /* of the batch: everything before it is done */
    enum rv_reason bound; /* a bound kept stages out of the batch */
};

/** A stage's name in a message. */
static inline rv_str rv_run_shown(const char *stage)
{
    return rv_utf8_cut(rv_str_of(stage), 200);
}

/** Emit an event that belongs to no stage. */
#define rv_run_emit(run, out, kind, now_us, ...)                                                                       \
    (rv_emit_is_wanted(&(run)->shared)                                                                                 \
         ? rv_emit_at(&(run)->shared, out, kind, -1, &(run)->place, 0, now_us,                                         \
                      (const struct rv_member[]){__VA_ARGS__},                                                         \
                      sizeof(const struct rv_member[]){__VA_ARGS__} / sizeof(struct rv_member))                        \
         : NULL)

/* run.c */
bool rv_run_waits_for(rv_run *run, int64_t call_id);
/** Cancel all that is under way, and end. */
RV_MUST_CHECK int rv_run_cancel(rv_run *run, const char *why, json_object *partials, int64_t now_us,
                                struct rv_effects *out, rv_err **err);
RV_MUST_CHECK int rv_run_recover(rv_run *run, int64_t gap_us, int64_t now_us, struct rv_effects *out, rv_err **err);

/* sequential.c */
RV_MUST_CHECK int rv_run_sequential(rv_run *run, int64_t now_us, struct rv_effects *out, rv_err **err);
/** Count the edge; a loop-back is told and clears what it clears, a limit ends the run. */
RV_MUST_CHECK int rv_run_take_edge(rv_run *run, int from, int to, enum rv_outcome outcome, json_object *feedback,
                                   int64_t now_us, struct rv_effects *out, rv_err **err);

/* parallel.c */
RV_MUST_CHECK int rv_run_parallel_begin(rv_run *run, rv_err **err);
RV_MUST_CHECK int rv_run_parallel(rv_run *run, int64_t now_us, struct rv_effects *out, rv_err **err);
void rv_run_parallel_fini(rv_run *run);
/** Merge the branches of the batch under way, and end the run where that follows from them. */
RV_MUST_CHECK int rv_run_batch_merge(rv_run *run, int64_t now_us, struct rv_effects *out, rv_err **err);

/* finish.c */
/** The pipeline's bounds and the run's mode stand, whatever a hook wrote over them. */
void rv_run_hold_bounds(rv_run *run);
bool rv_run_visits_left(const rv_run *run, int stage);
/** A bound of a run around this one leaves no room for a visit: end. *stopped false: there is room. */
RV_MUST_CHECK int rv_run_stop_outside(rv_run *run, bool llm, bool *stopped, int64_t now_us, struct rv_effects *out,
                                      rv_err **err);
/** The run ends by the failure of a visit that nothing caught. */
RV_MUST_CHECK int rv_run_fail_by(rv_run *run, rv_work *work, int64_t now_us, struct rv_effects *out, rv_err **err);
RV_MUST_CHECK int rv_run_stop_at_bound(rv_run *run, enum rv_reason reason, int64_t now_us, struct rv_effects *out,
                                       rv_err **err);
RV_MUST_CHECK int rv_run_stop_at_visits(rv_run *run, int stage, int64_t now_us, struct rv_effects *out, rv_err **err);
/** A stage or batch is over: save the state if opts.saves says so. */
RV_MUST_CHECK int rv_run_save(rv_run *run, struct rv_effects *out, rv_err **err);
/** The last effects of a run: what it came to. error_text may be NULL. */
RV_MUST_CHECK int rv_run_finish(rv_run *run, enum rv_run_status status, const char *error_text, int64_t now_us,
                                struct rv_effects *out, rv_err **err);
/** A stage that was cancelled, by whomever, did not fail. */
enum rv_run_status rv_run_failure_status(const struct rv_visit_result *r);
/** Terminate the envelope, then finish. */
RV_MUST_CHECK int rv_run_fail(rv_run *run, enum rv_run_status status, enum rv_reason reason, const char *text,
                              int64_t now_us, struct rv_effects *out, rv_err **err);
/** The same with a text that is written here. */
RV_MUST_CHECK int rv_run_stop(rv_run *run, enum rv_run_status status, enum rv_reason reason, int64_t now_us,
                              struct rv_effects *out, rv_err **err, const char *fmt, ...) RV_PRINTF(7, 8);

#endif
