/* The one Agent: everything that happens in one visit of one stage, as a pure state machine.
 *
 * The caller begins a visit, passes it the answers to the calls that it asked for, and at some point the visit is done.
 * A visit performs nothing: it writes to the envelope (or fork) it was given and appends effects, which the caller
 * performs. It reads no clock; each event brings its time. What a model, tool or plugin answers can only ever fail the
 * stage. The functions here return an error only when memory is short or the caller broke the protocol; a failed stage
 * is a result, not an error.
 *
 * Also here: how an object is found in a reply. routes.h: rules of routing; effects.h: what a step is told, and wants
 * done. */
#ifndef RV_AGENT_H
#define RV_AGENT_H

#include "coreengine/agent/effects.h"
#include "coreengine/agent/routes.h"

/* --- Versions of the rules ---
 *
 * What the core decides, tells and keeps for the same events may change from one engine to the next; a run must not
 * change under way. The journal's first record names the rules that a run began with, and the core still has the older
 * ones. docs/reference/journal.md lists what changed with each. */
enum rv_rules {
    RV_RULES_NEWEST = 0, /* of a run that begins now */
    RV_RULES_1 = 1,      /* of journals that name none */
    RV_RULES_2 = 2,
    RV_RULES_3 = 3,   /* failures have codes */
    RV_RULES_4 = 4,   /* groups of branches; handlers see the error; expressions and templates have their own reasons */
    RV_RULES_5 = 5,   /* stages with MCP servers plan; a lost call counts beside its repetition; ids of asked agents */
    RV_RULES_6 = 6,   /* a value of expressions that cannot be built is told with its agent and key */
    RV_RULES_7 = 7,   /* a planned call that a hook, a breaker or an asked agent ended has a code */
    RV_RULES_8 = 8,   /* the start of a model's call names its provider; why a reply has no object is told */
    RV_RULES_9 = 9,   /* money of open branches and of halted runs, calls of asked agents; NULs in a quoted reply; runs
                         that wait inside of a stage hear of cancellations and denials; filters before `default` */
    RV_RULES_10 = 10, /* hooks before calls of the client's tools; chained calls that a person would confirm; an
                         end tells usage of open branches; an inner run that is done once more has another id;
                         arguments that no hook has seen; bare names of a server's tools in plans; words beside
                         calls that cannot be read, where hooks look at replies, are not kept; answers in
                         branches go inside */
    RV_RULES_LAST = RV_RULES_10,
};

/* --- A visit ------------------------------------------------------------------------------------------------------ */
struct rv_delegated; /* what a run keeps of the agents that were asked */
/* State that all visits of a run share. The run owns it. That of a delegated agent has a root: only its pipeline,
 * origin, conversation and deadline are its own. */
struct rv_visit_shared {
    /* What is run, by which rules, and what answers in the place of stages. */
    const struct rv_pipeline *pipeline; /* borrowed, as all that is not said to be owned; outlives the run */
    struct rv_catalog catalog;
    enum rv_rules rules;                        /* never NEWEST */
    const bool *scripted_stages;                /* per stage: a script answers for it; borrowed; NULL: for none */
    json_object *scripted_inner;                /* of the root: such stages of inner runs, as "sub/inner"; borrowed */
    bool is_script_blind;                       /* of the root: scripted stages are not shown what the run has so far */
    bool use_mocks;                             /* a stage that has a mock handler is answered by it */
    json_object *blocked;                       /* of the root, in a step: tools that may not be called; borrowed */
    const struct rv_conversation *conversation; /* borrowed; NULL: none */
    const struct rv_work_kind *const *outside;  /* static; by enum rv_outside: who does what a visit leaves */
    /* Runs inside of others: an inner run, or a delegated agent, has the run around it as root. */
    struct rv_visit_shared *root;   /* the outermost run, which outlives this one; NULL: this is it */
    struct rv_visit_shared *up;     /* of the visit that this one works for, and which outlives it */
    const struct rv_origin *origin; /* of a delegated agent: owned by `delegated` of the root; NULL: a stage's visit */
    int asking_stage;               /* with a root: the root's stage below which this one works */
    bool repeats;                   /* of an inner run: an output contradicted itself, and the work is done once more */
    const char *prefix;             /* of an inner run: the stages that lead to it, as "sub/"; borrowed from its work */
    const char *run_id;             /* of an inner run, a delegated agent: the root's; borrowed; NULL: the envelope's */
    int64_t deadline_us;            /* of this one alone; 0: it has none of its own */
    bool is_hidden, is_beside;      /* of a delegated agent: its text is not shown; others may be at work beside it */
    struct rv_delegated *delegated; /* of the root; owned, see rv_visit_shared_fini() */
    bool emits;                     /* false: no observer listens, so there are no effects EMIT */
    int64_t next_call_id, next_seq; /* from 1: of calls; of observable events, emitted or not */
    /* What may still begin. */
    int64_t llm_left;       /* model calls; retries count */
    int64_t hops_left;      /* visits */
    bool stops;             /* a bound of the run was hit: no call begins any more */
    json_object *withdrawn; /* of the root: ids of questions of branches that were withdrawn in this process; owned */
    /* Money, with a budget. */
    int64_t spent_micro_usd;    /* for model calls of this run that are over */
    int64_t reserved_micro_usd; /* the most that those under way can cost */
    int64_t n_short;            /* of the root: visits whose call waits until others gave money back */
    bool looks_for_money;       /* of the root: they may look again in this step */
    int64_t told_to_look;       /* of the root: the timer of the one that looks */
    void *spare;                /* of the root: the memory of a visit that is over, for the next one; owned; or NULL */
    rv_err *failure; /* of the root: why the last visit failed, with the lines of reeve that found it; owned; or NULL */
};
void rv_visit_shared_fini(struct rv_visit_shared *s); /* of the root; no visit is left then */

static inline struct rv_visit_shared *rv_visit_root(struct rv_visit_shared *s)
{
    return s->root ? s->root : s;
}
/* Model calls and visits count in the run that makes them and in all runs around it. Delegated agents have no bounds of
 * their own. */
void rv_visit_note_calls(struct rv_visit_shared *s, int64_t n);
void rv_visit_note_hops(struct rv_visit_shared *s, int64_t n);
enum rv_need { RV_NEEDS_CALL = 1, RV_NEEDS_VISIT = 2 };
/** The outermost run around and with s that has no model call (if one is needed) or no visit left; NULL: none, and
 *  *reason is NONE. s may be NULL. needs: of enum rv_need. */
const struct rv_visit_shared *rv_bound_choose(const struct rv_visit_shared *s, unsigned needs, enum rv_reason *reason);

/** Tells whether observable events are wanted. If not, counts one: numbers do not depend on who listens. */
static inline bool rv_emit_is_wanted(struct rv_visit_shared *s)
{
    struct rv_visit_shared *root = rv_visit_root(s);

    root->next_seq += !root->emits;
    return root->emits;
}
/** rv_emit() with these members. NULL, too, when no observer listens; then its members are not evaluated. */
#define RV_EMIT(shared, out, head, ...)                                                                                \
    (rv_emit_is_wanted(shared) ? rv_emit(shared, out, head, (const struct rv_member[]){__VA_ARGS__},                   \
                                         sizeof(const struct rv_member[]){__VA_ARGS__} / sizeof(struct rv_member))     \
                               : NULL)

enum rv_visit_end {
    RV_VISIT_OK,     /* done, `next` says where to */
    RV_VISIT_STAYED, /* an interrupt keeps the run at this stage */
    RV_VISIT_FAILED, /* failed; `next` is the error route, or RV_TARGET_NONE when nothing catches it */
};
struct rv_visit_result {
    enum rv_visit_end end;
    enum rv_outcome outcome;
    int next;                /* stage index or RV_TARGET_END; NONE: failed and not routed, or routing was off */
    enum rv_reason reason;   /* FAILED and not routed: the terminal reason */
    const char *error_text;  /* FAILED; owned by the visit */
    const char *error_type;  /* FAILED; static, or borrowed from the visit */
    const char *error_stage; /* FAILED inside of the stage: the stage there, as "inner"; NULL: the stage itself;
                                borrowed from the visit */
    enum rv_failure code;    /* FAILED */
    int64_t attempt;         /* FAILED: how often the work was tried */
    const struct rv_visit_shared *bound_of; /* FAILED by a bound that no stage can catch: of that run; borrowed */
    bool is_given;                          /* FAILED: the reason is of work outside, as of a run within the visit */
    json_object *output;                    /* OK: what it made, also where it was stored; borrowed from the visit */
    json_object *feedback;                  /* string `feedback` of the output, borrowed from the visit; or NULL */
    const struct rv_branches *branches;     /* next is RV_TARGET_LIST: its targets; borrowed from the pipeline */
    const bool *taken;                      /* the same: those that start; owned by the visit */
};

typedef struct rv_visit rv_visit;
/* A failure that is passed on. What it points to is borrowed for the call. */
struct rv_failed {
    const char *stage, *type, *text; /* the stage that failed, the error type and text */
    enum rv_failure code;
    enum rv_reason reason; /* of a run that it ends */
    int64_t attempt;
};
/* Where a visit stands among the branches of its run, and the values that only such a place has. Borrowed for the
 * visit; a zeroed value means that the place has none (index: -1). What it points to is borrowed, and outlives the
 * visit. */
struct rv_visit_place {
    const char *path;    /* of the branch: part of the ids of calls and questions; NULL or "": the main branch */
    json_object *group;  /* at a join: how its group ended */
    json_object *error;  /* at a handler: what was caught */
    json_object *item;   /* in a list: the element; it may be null, which index >= 0 tells apart */
    json_object *inputs; /* inside of a pipeline that is a stage: what its caller gave */
    int64_t index;       /* of the element, from 0; -1: not in a list */
    const struct rv_failed *failed; /* at a join that is not satisfied: the visit fails with it before its work */
};
#define RV_VISIT_PLACE_NONE ((struct rv_visit_place){.index = -1}) /* not in a branch, not of an element */

struct rv_visit_start { /* what a visit begins with; borrowed, as shared, until rv_visit_free() */
    int stage;
    rv_envelope *env;
    const struct rv_visit_place *place; /* copied; NULL: the main branch */
    bool route;                         /* false: routing rules and default_next are not used (parallel mode) */
    bool llm_reserved;                  /* a model call was taken from llm_left beforehand for this visit */
};
RV_MUST_CHECK int rv_visit_begin(struct rv_visit_shared *shared, const struct rv_visit_start *start, int64_t now_us,
                                 struct rv_effects *out, rv_visit **visit, rv_err **err);
/** Visits whose model call waits for money that calls under way have set aside: their timers, in the order of lists. */
struct rv_short {
    int64_t *timers; /* owned */
    size_t n, cap;
};
RV_MUST_CHECK int rv_visit_find_short(const rv_visit *v, struct rv_short *out, rv_err **err);
/** True if the visit waits for that call or timer. */
bool rv_visit_waits_for(const rv_visit *v, int64_t call_id);
/** The event that it waits for. */
RV_MUST_CHECK int rv_visit_step(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err);
/** Give up: records the visit as failed with a CancelledError and asks to cancel what is under way. partials: what had
 * come of model calls, as the event says it; NULL or an array. */
RV_MUST_CHECK int rv_visit_cancel(rv_visit *v, const char *why, json_object *partials, int64_t now_us,
                                  struct rv_effects *out, rv_err **err);
/** A stage that waits for a person never goes on: the messages of its turn are kept as cancelled. Nothing where it does
 * not wait in the middle of one. */
RV_MUST_CHECK int rv_visit_give_up(struct rv_visit_shared *shared, int stage, rv_envelope *env, const char *why,
                                   struct rv_effects *out, rv_err **err);
/** The question that the stage waits with is cancelled: its next visit fails with rv_error_question_cancelled before it
 * does anything. What the stage kept is lost: rv_visit_give_up() before. */
RV_MUST_CHECK int rv_visit_cancel_question(const struct rv_visit_shared *shared, int stage, rv_envelope *env,
                                           rv_str reason, rv_err **err);
/** Will the next visit of the stage fail by that? */
bool rv_visit_is_cancelled(const struct rv_visit_shared *shared, int stage, const rv_envelope *env);
/** The run goes on in another process after no process worked on it for that long: its deadline moves, and a model call
 * that was pending counts as charged for. This can end the visit because the run's budget is used up. */
RV_MUST_CHECK int rv_visit_recover(rv_visit *v, int64_t gap_us, struct rv_effects *out, rv_err **err);
/* What a stage keeps of its inner run while that waits for a person; borrowed. NULL: damaged. */
struct rv_kept_inside {
    const char *interrupt_id;
    json_object *inputs, *state;
};
/** false: the stage waits with no inner run. */
bool rv_visit_kept_inside(const struct rv_visit_shared *shared, int stage, const rv_envelope *env,
                          struct rv_kept_inside *out);
/** Did the inner run of a stage put that question? Then the stage goes on with the answer, whatever its kind. */
bool rv_visit_asks_inside(const struct rv_visit_shared *shared, const rv_envelope *env, const struct rv_interrupt *in);
/* In the data of a confirmation that a route raised: the name of the stage that a yes leads to. A yes then goes on
 * there with the output that was shown, and does not visit the stage again. */
#define RV_ASKED_NEXT "next"
/** The stage that asked in this way, where the run still stands; -1: the question was raised otherwise. */
int rv_visit_asked_by_route(const struct rv_visit_shared *shared, const rv_envelope *env, json_object *data);
/** A person approved it: tells observers where it leads. *to: a stage or RV_TARGET_END; RV_TARGET_CLARIFICATION when
 * that raised the next question, and the run stays. */
RV_MUST_CHECK int rv_visit_approve(struct rv_visit_shared *shared, int stage, rv_envelope *env, struct rv_effects *out,
                                   int *to, rv_err **err);
/* A question of the key `ask`: the visit ends as STAYED. Its answer is kept with the envelope (call it when the
 * interrupt is resolved, before anything else is raised); rv_visit_begin() then goes on where the question was put: it
 * visits nothing, so that no bound of visits or model calls concerns it. */
RV_MUST_CHECK int rv_visit_on_answer(const struct rv_visit_shared *shared, rv_envelope *env, rv_err **err);
/** Would rv_visit_begin() go on with such an answer? */
bool rv_visit_goes_on(const struct rv_visit_shared *shared, int stage, const rv_envelope *env);
/** May this answer be taken, and do arguments in it fit the tool that the question is about? What
 * rv_envelope_check_response() says; RV_E_INVALID lists what does not fit. Changes nothing. */
RV_MUST_CHECK int rv_visit_check_answer(const struct rv_visit_shared *shared, const rv_envelope *env,
                                        const struct rv_response *response, int64_t now_us, rv_err **err);
/** The interrupt is resolved by a denial: does the stage that raised it tell its model so (on_denied)? It is visited
 * again then, as for a yes. */
bool rv_visit_tells_denial(const struct rv_visit_shared *shared, const rv_envelope *env);
/* Work that a visit leaves to the run. The visit waits until it is told how that ended. */
enum rv_outside { RV_OUTSIDE_NONE, RV_OUTSIDE_LIST, RV_OUTSIDE_PIPELINE, RV_N_OUTSIDES };
enum rv_outside rv_visit_outside(const rv_visit *v);
json_object *rv_visit_outside_value(const rv_visit *v); /* LIST: the list; PIPELINE: its inputs; borrowed */
json_object *rv_visit_outside_state(const rv_visit *v); /* PIPELINE that waited for a person: its state; else NULL */
int64_t rv_visit_deadline(const rv_visit *v);
int64_t rv_visit_number(const rv_visit *v); /* of the visits of its stage, from 1 */
bool rv_visit_repeats(const rv_visit *v);   /* does its work once more; by older rules with the ids of the first time */
struct rv_outside_end {
    json_object *output;     /* taken, on every path, and owned by the visit then; NULL: it failed */
    bool terminates;         /* with output: the run is to end */
    const rv_envelope *asks; /* it waits for a person: its envelope, borrowed; then `output` is NULL */
    json_object *state;      /* with asks: what it takes to go on; taken, as output, and owned by the visit then */
    const char *stage;       /* failed: inside of the stage, as "inner"; NULL: the stage; borrowed, as all texts here */
    const char *error_type;  /* failed: borrowed for the call */
    const char *error;       /* its text */
    enum rv_failure code;    /* NONE: by its type */
    enum rv_reason reason;   /* NONE: by its type */
    const struct rv_visit_shared *bound_of; /* a bound of that run ended it; NULL: none did; borrowed */
    int64_t llm_calls;                      /* made outside, that count with the visit */
};
/** Tell how the work outside ended; end is borrowed for the call, its output taken. The visit goes on. RV_E_NOMEM. */
RV_MUST_CHECK int rv_visit_on_outside_end(rv_visit *v, const struct rv_outside_end *end, int64_t now_us,
                                          struct rv_effects *out, rv_err **err);
/** Model calls were made outside, and the visit is about to be cancelled: they count with it. */
void rv_visit_add_calls(rv_visit *v, int64_t n);
/** Will an element of the stage's list call a model? */
bool rv_element_calls_llm(const struct rv_visit_shared *shared, int stage);

bool rv_visit_is_done(const rv_visit *v);
const struct rv_visit_result *rv_visit_result(const rv_visit *v); /* only when done */
int rv_visit_stage(const rv_visit *v);
void rv_visit_free(rv_visit *v);

/** How a tool call of a reply is known in events, rows and deltas: by the id that its provider gave it, or by another
 * one where that is empty, taken or ambiguous. taken: an object whose keys are ids; that of the call is added. upto:
 * the number up to which counted ids may be those of older rows. out is empty when the call keeps its own. */
RV_MUST_CHECK int rv_call_write_name(json_object *taken, int64_t upto, const struct rv_origin *origin, const char *id,
                                     rv_buf *out, rv_err **err);

/** Tells whether a script or a mock handler answers for this stage. */
bool rv_stage_is_mocked(const struct rv_visit_shared *shared, int stage);
/** Will a visit of this stage call a model (LLM mode and not mocked)? */
bool rv_stage_calls_llm(const struct rv_visit_shared *shared, int stage);

/* --- Pure rules, usable alone ------------------------------------------------------------------------------------ */
/** Rule 5.6: the object in a model's reply. required may be NULL; rules: how a failure is told. RV_E_PARSE (none,
 * truncated, not an object), RV_E_LIMIT. */
RV_MUST_CHECK int rv_extract_object(rv_str text, const char *const *required, size_t n_required, enum rv_rules rules,
                                    json_object **out, rv_err **err);

#endif
