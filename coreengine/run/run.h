/* The run: a pure state machine that takes an envelope through a pipeline. Events in, effects out.
 *
 * Same pipeline, same catalog, same events: byte-identical effects, events and state, on any build and with any number
 * of threads around it. The run owns its envelope and is used by one thread at a time. */
#ifndef RV_RUN_H
#define RV_RUN_H

#include "coreengine/agent/agent.h"

typedef struct rv_run rv_run;

/* Where the numbering of calls and events goes on. */
struct rv_run_counters {
    int64_t next_call_id, next_seq; /* from 1; 0 counts as 1 */
};
/* When a run produces SAVE effects. A state has all of the run's history in it. */
enum rv_saves {
    RV_SAVES_NONE,
    RV_SAVES_SOME, /* after each of the first stages or batches, then each time an eighth more of them have ended, and
                      at the end: all saves together cost a fixed multiple of the last one, however long the run is */
    RV_SAVES_EACH, /* after each stage or batch, and at the end */
};
struct rv_run_opts {
    struct rv_run_counters first; /* of a run that goes on from a saved state; zeroed: from 1 */
    enum rv_rules rules;          /* that the run began with; NEWEST: it begins now */
    bool is_snapshot;             /* this run came to the envelope: money of branches counts by any rules */
    bool continues;               /* START goes on where the envelope stands: of a fork. Else at the first stage */
    int mode;                     /* enum rv_run_mode; RV_UNSET: the pipeline's, else sequential; ignored on resume */
    bool use_mocks;               /* mock every stage that has a mock handler */
    const bool *scripted_stages;  /* per stage: a script answers for it; borrowed for the run; NULL: none */
    json_object *scripted_inner;  /* names of stages inside of stages, "sub/inner", that a script answers for; borrowed;
                                     NULL: none */
    bool is_script_blind;         /* the script answers for stages without a look at what the run has so far */
    bool emits;                   /* produce EMIT effects */
    enum rv_saves saves;
    size_t max_parallel;                        /* stages of a batch that run at once; 0: no limit */
    const struct rv_conversation *conversation; /* that it belongs to; borrowed for the run; NULL: none */
};
#define RV_RUN_OPTS_INIT ((struct rv_run_opts){.mode = RV_UNSET, .emits = true})

/** pipeline must be sound and, like catalog, outlive the run. env is taken on every path. */
RV_MUST_CHECK int rv_run_new(const struct rv_pipeline *pipeline, const struct rv_catalog *catalog,
                             const struct rv_run_opts *opts, rv_envelope *env, rv_run **out, rv_err **err);
void rv_run_free(rv_run *run);

/** One event. Effects are appended to out (clear it between steps). The first event is START, or ANSWER for an envelope
 *  that waits for one; after an end as interrupted, ANSWER goes on with the same run. Answers to calls that are no
 * longer wanted are ignored.
 *  @return 0; RV_E_STATE, RV_E_TIMEOUT or RV_E_INVALID for an ANSWER that cannot be accepted (nothing changed);
 * RV_E_STATE for an event that does not fit; RV_E_NOMEM, after which the run can only be freed */
RV_MUST_CHECK int rv_run_step(rv_run *run, const struct rv_event *ev, struct rv_effects *out, rv_err **err);
/** Would a run that waits take that answer now? Nothing changes. As rv_run_step(). */
RV_MUST_CHECK int rv_run_check_answer(rv_run *run, const struct rv_response *r, int64_t now_us, rv_err **err);
bool rv_run_is_finished(const rv_run *run); /* FINISH was produced, and no ANSWER after it */
/** False until the first event: a run that was made from a state at which it waits is told its ANSWER then. */
bool rv_run_has_begun(const rv_run *run);
struct rv_run_counters rv_run_counters(const rv_run *run);
/** What the run has used so far, in all of its branches: also in those that wait or go on. */
struct rv_envelope_used rv_run_used(rv_run *run);
/* What a run has used of one of its bounds, in all of its branches. */
struct rv_bound_use {
    const char *bound; /* its key, static */
    int64_t used, limit;
};
#define RV_RUN_BOUNDS 4 /* stages, model calls, agent hops, iterations */
/** Fills in those that the run has. @return how many */
size_t rv_run_collect_bounds(const rv_run *run, struct rv_bound_use out[RV_RUN_BOUNDS]);
enum rv_run_status rv_run_status(const rv_run *run);
const rv_envelope *rv_run_envelope(const rv_run *run); /* borrowed */
/** Why a stage failed last, with the lines of reeve that found it; NULL: none failed in this process. Borrowed. */
const rv_err *rv_run_failure(const rv_run *run);
rv_envelope *rv_run_steal_envelope(rv_run *run); /* yours; the run can only be freed then */
/** The stage whose visit left a question. A hook's question does not keep the run at its stage, so it may stand before
 * the next one. NULL: unknown, where the run stands counts. */
const char *rv_run_question_stage(const rv_run *run);
/** The stage whose question waits with that id (ptr NULL: the pending one), also while other branches go on. Borrowed;
 * NULL: unknown. */
const char *rv_run_get_question_stage(rv_run *run, rv_str id);
/** The question of a run that waits (or of the state that it was made from), or of a branch while others run, which no
 * one answered in time: out is what to tell the run, as an answer. The time of that event must be at least now_us.
 * False: none is due. id is memory for out. */
bool rv_run_find_due_question(rv_run *run, int64_t now_us, char id[RV_ID_MAX], struct rv_response *out);
int64_t rv_run_next_expiry(rv_run *run); /* when the next one is due; 0: none will be */
/** May this answer be told now, also while other branches still run? id is the question's, for an answer that names
 * none the first one. Changes nothing. What rv_run_step() says of an ANSWER; RV_E_STATE: no question is open. */
RV_MUST_CHECK int rv_run_check_branch_answer(rv_run *run, const struct rv_response *response, int64_t now_us,
                                             char id[RV_ID_MAX], rv_err **err);
/** How many questions its branches have put so far in this process. */
int64_t rv_run_n_asked(const rv_run *run);
/** The envelope of the i-th branch whose question is open, in list order; *stage: that asks. NULL: there are no more.
 * Both borrowed. */
const rv_envelope *rv_run_question_envelope_at(rv_run *run, size_t i, const char **stage);
/** Set opts.saves from the next step on: for a caller that wants the state at one place of a run only. */
void rv_run_set_saves(rv_run *run, enum rv_saves saves);
/** Tells whether the core itself refuses calls of blocked tools. By older rules the engine refuses them when it
 * performs the call. */
bool rv_run_checks_breakers(const rv_run *run);
/** Set opts.emits from the next step on. */
void rv_run_set_emits(rv_run *run, bool emits);

/* --- Events and effects as JSON, for recording, replay and comparison --- */
/** The members of an event, as journals have them, but for its text, which is returned: the reply, or the error. */
rv_str rv_event_write_members(const struct rv_event *ev, rv_jw *w);
void rv_response_write_json(const struct rv_response *r, rv_jw *w);
/** Reads what was written; texts borrow from json. RV_E_INVALID: a member has another type. */
RV_MUST_CHECK int rv_response_read_json(json_object *json, struct rv_response *out, rv_err **err);
/** The members and the text, "reply" or "error", or the response of a person. */
void rv_event_write_json(const struct rv_event *ev, rv_jw *w);
/** Reads what was written. Texts borrow from json. RV_E_INVALID. */
RV_MUST_CHECK int rv_event_read_json(json_object *json, struct rv_event *out, rv_err **err);
void rv_effect_write_json(const struct rv_effects *all, const struct rv_effect *e, rv_jw *w);

#endif
