/* Shared by the files of the run state machine. */
#ifndef RV_RUN_INTERNAL_H
#define RV_RUN_INTERNAL_H

#include "coreengine/run/calls_internal.h"
#include "coreengine/run/run.h"
#include "coreengine/run/work_internal.h"
#include "envelope/envelope.h"

/* One stage of a parallel batch. */
struct batch_stage {
    rv_work *work;     /* owned; NULL: not begun, or over */
    rv_envelope *fork; /* owned; of the envelope of its branch */
};

/* A failure that is kept: texts are owned. */
struct failure {
    char *stage, *type, *text;
    enum rv_failure code;
    enum rv_reason reason;
    enum rv_run_status status; /* of a run that it ends */
    int64_t attempt;
    const struct rv_visit_shared *bound_of; /* a bound of that run, which no stage can catch; NULL: none */
};
void run_failure_fini(struct failure *f);

/* --- Branches and groups ---
 *
 * A run is a tree of branches. The main branch works on the run's envelope, each other one on its own fork of the
 * envelope of the branch that opened its group. A branch makes one visit at a time, or waits for the group that it
 * opened or for a person, until it is over. What runs, moves and settles is decided in the order of the lists. */
enum branch_state { BRANCH_ALIVE, BRANCH_ARRIVED, BRANCH_ENDED, BRANCH_FAILED, BRANCH_CANCELLED, N_BRANCH_STATES };
struct group;
struct branch {
    struct group *group;  /* that it belongs to; NULL: the main branch; borrowed: the group owns the branch */
    struct group *opened; /* that it waits for; owned; NULL: none */
    rv_envelope *env;     /* owned; of the main branch the run's, which owns it */
    rv_work *work;        /* the visit under way; owned; NULL: none */
    const char *name;     /* of its first stage; borrowed from the pipeline */
    char *path;           /* owned; NULL: the main branch */
    int first;            /* stage */
    int asked_by;         /* the stage whose visit left an interrupt pending; -1: none has */
    enum branch_state state;
    size_t n_calls;            /* that it waits for, as the table of calls has it */
    bool is_ready;             /* it stands in the queue of those that can move */
    struct branch *next_ready; /* the queue; borrowed */
    /* Of its visit: model calls and visits that it took from what is left, and those of the envelope before it. */
    int64_t calls_taken, hops_taken, calls_before, hops_before;
    json_object *joined;            /* `group`, for the visit of a join; owned */
    struct failure missed;          /* why that join is not satisfied; zeroed: it is */
    struct rv_failed passed;        /* the same as its visit has it */
    struct failure failure;         /* FAILED */
    const struct rv_branches *held; /* list that it goes on to when its question is answered; borrowed; NULL: none */
    bool *held_taken;               /* owned */
    int held_by;                    /* the stage that routed there */
};
struct group {
    struct branch *opener;          /* borrowed: it has the group */
    int stage;                      /* that opened it */
    const struct rv_branches *list; /* borrowed from the pipeline */
    int join;                       /* RV_TARGET_NONE: none */
    struct branch *items;           /* owned; in the order of the list */
    size_t n, n_alive, n_arrived;
    char *prefix; /* of the paths of its branches; owned */
    size_t prefix_len;
    struct branch *failed_first; /* in time; NULL: none; borrowed: one of items */
    bool is_settled;             /* its opener goes on next */
};

/* What all branches of a run have used together. While it is not on, the run has one branch, and its envelope has the
 * counts. */
struct totals {
    bool is_on;
    int64_t visits, llm_calls; /* of visits that are over; what is left is in `shared` */
    int64_t iterations, replans;
    int64_t *of_stage;   /* visits; owned */
    int64_t *rejections; /* owned */
    int64_t *of_edge;    /* edges that have a limit, in the pipeline's order; owned */
};
/* A bound was hit, or the run is to end, while other visits are under way: it ends after them. */
struct halt {
    bool is_set;
    enum rv_run_status status;
    enum rv_reason reason;
    char *text; /* owned */
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

    struct branch main;
    struct branch *first_ready, *last_ready; /* branches that can move, in the order in which they do; borrowed */
    size_t n_working;                        /* visits under way */
    struct totals totals;
    struct call_table calls;
    struct halt halt;
    bool has_tree;   /* its branches were loaded */
    bool shown;      /* the envelope shows the questions of branches */
    int64_t n_asked; /* questions that branches have put */

    /* A run that is the work of a stage (inner.c) has a root in `shared`. It does not tell how it began and ended. */
    bool is_inner;
    struct rv_visit_place place;              /* of all its visits */
    const struct rv_visit_shared *stopped_by; /* the run around it whose bound ended it; NULL: none did; borrowed */
    char *failed_type; /* owned; of the failure that ended it, when nothing caught it; NULL: none did */
    enum rv_failure failed_code;
    char *failed_stage; /* owned */

    /* parallel; arrays have one element per stage */
    enum rv_stage_state *states; /* owned, as all arrays here */
    bool *forced;                /* an error route made it ready, whatever it requires */
    bool *parked;                /* its interrupt is queued: it waits until that was answered */
    bool *is_candidate;
    int *candidates; /* stages whose readiness may have changed */
    size_t n_candidates;
    struct batch_stage *batch_stages;
    int *batch; /* stages of the batch under way, in stage order */
    size_t n_batch, n_begun, n_done;
    size_t first_open;    /* of the batch: everything before it is done */
    enum rv_reason bound; /* a bound kept stages out of the batch */
};

/** A stage's name in a message. */
static inline rv_str run_shown(const char *stage)
{
    return rv_utf8_cut(rv_str_of(stage), 200);
}

/** Emit an event that belongs to no stage. */
#define rv_run_emit(run, out, kind, ...)                                                                               \
    RV_EMIT(&(run)->shared, out, (&(const struct rv_emit_head){kind, -1, 0, &(run)->place, (out)->now_us}), __VA_ARGS__)

struct rv_visit_place run_branch_place(const rv_run *run, const struct branch *b);
/** As rv_run_emit() in a branch. */
#define rv_branch_emit(run, b, out, kind, ...)                                                                         \
    RV_EMIT(&(run)->shared, out,                                                                                       \
            (&(const struct rv_emit_head){kind, -1, 0, (const struct rv_visit_place[]){run_branch_place((run), (b))},  \
                                          (out)->now_us}),                                                             \
            __VA_ARGS__)

/* run.c */
bool run_waits_for(rv_run *run, int64_t call_id);
/** The answer to a call, or a timer. */
RV_MUST_CHECK int run_on_done(rv_run *run, const struct rv_event *ev, struct rv_effects *out, rv_err **err);
/** Cancel all that is under way, and end. */
RV_MUST_CHECK int run_cancel(rv_run *run, const char *why, json_object *partials, struct rv_effects *out, rv_err **err);
RV_MUST_CHECK int run_recover(rv_run *run, int64_t gap_us, struct rv_effects *out, rv_err **err);

/* money.c: visits whose model call waits until others need less of a budget */
RV_MUST_CHECK int run_find_short(rv_run *run, struct rv_short *out, rv_err **err);
/** At the end of a step: when some of that money was given back, these visits check again, in the order of the lists.
 */
RV_MUST_CHECK int run_look_for_money(rv_run *run, struct rv_effects *out, rv_err **err);

/* sequential.c */
/* A passage from one stage to another. */
struct edge {
    int from, to; /* stages */
    enum rv_outcome outcome;
    json_object *feedback; /* of a loop-back; borrowed; NULL: none */
};
/** Count the edge. A loop-back is told to observers and clears outputs by the reset rules of the pipeline; a limit
 * stops the run. */
RV_MUST_CHECK int run_take_edge(rv_run *run, struct branch *branch, const struct edge *edge, struct rv_effects *out,
                                rv_err **err);

/* branch.c: what a branch does next */
/** Let everything move that can; then finish the run where nothing is left to do, or only questions are. */
RV_MUST_CHECK int run_go(rv_run *run, struct rv_effects *out, rv_err **err);
void run_branch_fini(struct branch *b);                     /* its group and its visit, too; not its envelope */
void run_branch_ready(rv_run *run, struct branch *b);       /* it can move */
void run_branch_ready_first(rv_run *run, struct branch *b); /* before all others */
void run_branch_forget_ready(rv_run *run);                  /* take those that are over out of the queue */
/** The branch opens that list as soon as no question is open. */
RV_MUST_CHECK int run_branch_hold(struct branch *b, int stage, const struct rv_branches *list, const bool *taken,
                                  rv_err **err);
/** The visit under way may have moved: note what it used. */
struct left {
    int64_t calls, hops;
};
struct left run_left(const rv_run *run); /* before it */
void run_branch_worked(rv_run *run, struct branch *b, struct left before);
/** Begin the first visit of a branch whose group was just opened, unless a bound forbids it. */
RV_MUST_CHECK int run_branch_begin(rv_run *run, struct branch *b, struct rv_effects *out, rv_err **err);
/** The next one in list order, those that wait for a group before its branches; NULL after the last one. */
struct branch *run_branch_next(struct branch *b);
static inline bool run_branch_asks(const struct branch *b)
{
    return b->state == BRANCH_ALIVE && !b->opened && !b->work && rv_envelope_has_interrupt(b->env);
}
/** Give up what is under way in the branch and in all that it opened. */
RV_MUST_CHECK int run_branch_cancel(rv_run *run, struct branch *b, const char *why, json_object *partials,
                                    struct rv_effects *out, rv_err **err);

/* bounds.c: what all branches have used together */
RV_MUST_CHECK int run_totals_begin(rv_run *run, rv_err **err); /* when the first group opens */
void run_totals_fini(struct totals *t);
/** Will its visit of the stage call a model, rather than fail before its work? */
bool run_branch_calls_llm(const rv_run *run, const struct branch *b, int stage);
/** Which bound keeps a visit of that stage from beginning; RV_REASON_NONE: none does. */
enum rv_reason run_bound_at(const rv_run *run, const struct branch *b, int stage);
/** Count an edge that the branch has now taken of_branch times. Where the edge has a limit: how often all branches have
 * taken it. */
int64_t run_count_edge(rv_run *run, int from, int to, int64_t of_branch);
/** What a pipeline allows: MAX_ITERATIONS, MAX_LLM_CALLS or MAX_HOPS. */
int64_t run_bound_most(const struct rv_pipeline *p, enum rv_reason reason);
/** Which bound was hit, for people; a replay compares it. The three, and MAX_VISITS, which is of a stage. */
void run_bound_write(enum rv_reason reason, int64_t most, const char *stage, rv_buf *out);
/** The same of a bound of the run itself. */
void run_write_bound(const rv_run *run, enum rv_reason reason, int stage, rv_buf *out);
/** End the run, now where nothing else is under way in it, else when that is done. Nothing new begins. */
RV_MUST_CHECK int run_halt(rv_run *run, enum rv_run_status status, enum rv_reason reason, const char *text,
                           struct rv_effects *out, rv_err **err);
/** A bound of a run around this one leaves no room for a visit: halt. */
RV_MUST_CHECK int run_halt_outside(rv_run *run, bool llm, bool *stopped, struct rv_effects *out, rv_err **err);
RV_MUST_CHECK int run_end_halted(rv_run *run, struct rv_effects *out, rv_err **err);

/* tree.c: the branches in the state of a run */
RV_MUST_CHECK int run_keep_tree(rv_run *run, rv_err **err);
/** The branches that a loaded envelope has, once; nothing where it has none. On failure there are none. */
RV_MUST_CHECK int run_load_tree(rv_run *run, rv_err **err);

/* questions.c: questions of branches */
struct branch *questions_first(rv_run *run); /* in the order of the lists; NULL: none is open */
RV_MUST_CHECK int questions_withdraw(rv_run *run, struct branch *b, rv_err **err);
RV_MUST_CHECK int questions_refuse_withdrawn(rv_run *run, const struct rv_response *r, rv_err **err);
RV_MUST_CHECK int questions_show(rv_run *run, rv_err **err);
/** Before the run goes on. */
RV_MUST_CHECK int questions_hide(rv_run *run, rv_err **err);
RV_MUST_CHECK int questions_check(rv_run *run, const struct rv_response *r, int64_t now_us, rv_err **err);
RV_MUST_CHECK int questions_answer(rv_run *run, const struct rv_response *r, struct rv_effects *out, rv_err **err);
/** Along the edge that the asking stage would have taken, with the output that the person saw. */
RV_MUST_CHECK int questions_go_on_approved(rv_run *run, struct branch *b, int from, struct rv_effects *out,
                                           rv_err **err);

/* cancelled.c */
/** The question of that branch, which is resolved, was cancelled. */
RV_MUST_CHECK int run_question_cancelled(rv_run *run, struct branch *b, rv_str reason, struct rv_effects *out,
                                         rv_err **err);

/* waiting.c: stages that wait for a person, and runs that wait inside of them */
/** That stage of the branch never goes on: the messages of turns that it, or a run inside, has not ended are kept
 * as cancelled. Nothing where it does not wait. */
RV_MUST_CHECK int run_give_up(rv_run *run, struct branch *b, int stage, const char *why, struct rv_effects *out,
                              rv_err **err);
/** The same of all stages. */
RV_MUST_CHECK int run_give_up_waiting(rv_run *run, struct branch *b, const char *why, struct rv_effects *out,
                                      rv_err **err);
/** Is the model told when the question of the branch is denied, so that the stage that asked goes on? */
RV_MUST_CHECK int run_tells_denial(rv_run *run, struct branch *b, bool *tells, rv_err **err);
/** As rv_visit_check_answer(), also of a question about a call of a run inside. */
RV_MUST_CHECK int run_check_answer(rv_run *run, struct branch *b, const struct rv_response *r, int64_t now_us,
                                   rv_err **err);

/* parallel.c */
RV_MUST_CHECK int run_parallel_begin(rv_run *run, rv_err **err);
RV_MUST_CHECK int run_parallel(rv_run *run, struct rv_effects *out, rv_err **err);
void run_parallel_fini(rv_run *run);
/** Merge the branches of the batch under way, and end the run where that follows from them. */
RV_MUST_CHECK int run_batch_merge(rv_run *run, struct rv_effects *out, rv_err **err);

/* finish.c */
/** Restore the bounds of the pipeline and the mode of the run where a hook has overwritten them. */
void run_hold_bounds(rv_run *run, struct branch *b);
bool run_visits_left(const rv_run *run, int stage);
/** A bound of a run around this one leaves no room for a visit: end. *stopped false: there is room. */
RV_MUST_CHECK int run_stop_outside(rv_run *run, bool llm, bool *stopped, struct rv_effects *out, rv_err **err);
/** "stage", and of a failure inside of the stage "stage/inner". */
RV_MUST_CHECK int run_write_failed_stage(const rv_run *run, int stage, const struct rv_visit_result *r, rv_buf *out,
                                         rv_err **err);
/** The run ends by a failure that nothing caught; the failure lives as long as the run. */
RV_MUST_CHECK int run_fail_with(rv_run *run, const struct failure *f, struct rv_effects *out, rv_err **err);
/** The same of a visit. */
RV_MUST_CHECK int run_fail_by(rv_run *run, rv_work *work, struct rv_effects *out, rv_err **err);
RV_MUST_CHECK int run_stop_at_bound(rv_run *run, enum rv_reason reason, struct rv_effects *out, rv_err **err);
RV_MUST_CHECK int run_stop_at_visits(rv_run *run, int stage, struct rv_effects *out, rv_err **err);
/** A stage or batch is over: save the state if opts.saves says so. */
RV_MUST_CHECK int run_save(rv_run *run, struct rv_effects *out, rv_err **err);
/** The last effects of a run: its end with that status. error_text may be NULL. */
RV_MUST_CHECK int run_finish(rv_run *run, enum rv_run_status status, const char *error_text, struct rv_effects *out,
                             rv_err **err);
/** The status of a run that ends by that result: a stage that was cancelled did not fail. */
enum rv_run_status run_failure_status(const struct rv_visit_result *r);
/** Terminate the envelope, then finish. */
RV_MUST_CHECK int run_fail(rv_run *run, enum rv_run_status status, enum rv_reason reason, const char *text,
                           struct rv_effects *out, rv_err **err);
/** The same with a text that is written here. */
RV_MUST_CHECK int run_stop(rv_run *run, enum rv_run_status status, enum rv_reason reason, struct rv_effects *out,
                           rv_err **err, const char *fmt, ...) RV_PRINTF(6, 7);

#endif
