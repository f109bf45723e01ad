/* The one Agent: everything that happens in one visit of one stage, as a pure state machine.
 *
 * The caller begins a visit, passes it the answers to the calls that it asked for, and at some point the visit is done.
 * A visit performs nothing: it writes to the envelope (or fork) it was given and appends effects, which the caller
 * performs. It reads no clock; each event brings its time. What a model, tool or plugin answers can only ever fail the
 * stage. The functions here return an error only when memory is short or the caller broke the protocol; a failed stage
 * is a result, not an error.
 *
 * Also here: the effect and event types that the whole core speaks, and the pure rules of a stage (extraction,
 * routing). */
#ifndef RV_AGENT_H
#define RV_AGENT_H

#include "coreengine/conversation/context.h"
#include "coreengine/model/llm/llm.h"
#include "coreengine/tools/tools.h"

/* --- Effects: what the core wants done ------------------------------------------------------------------------- */
enum rv_effect_kind {
    RV_EFFECT_CALL_LLM,
    RV_EFFECT_CALL_TOOL,
    RV_EFFECT_CALL_HOOK,   /* hook, policy, mock or routing function: see `entry` */
    RV_EFFECT_CANCEL_CALL, /* the answer to call_id is not wanted any more */
    RV_EFFECT_ARM_TIMER,   /* a timer event for call_id at `at_us` */
    RV_EFFECT_EMIT,        /* an observable event, as one line of JSON */
    RV_EFFECT_SAVE,        /* the state dict to be saved now */
    RV_EFFECT_KEEP,        /* rows for the session of the run: durable with the step, see rv_turn_read() */
    RV_EFFECT_FINISH,      /* the run is over (or waits for an answer); always the last effect */
};

/* The kinds of observable events (the typed stream). */
#define RV_EMITS(X)                                                                                                    \
    X(PIPELINE_STARTED, "pipeline_started", "a run or resume begins")                                                  \
    X(STAGE_STARTED, "stage_started", "a visit begins; precedes everything of that visit")                             \
    X(LLM_CALL_START, "llm_call_start", "a model is asked")                                                            \
    X(LLM_RESULT, "llm_result", "the model answered or failed")                                                        \
    X(TOOL_CALL_START, "tool_call_start", "a tool is called")                                                          \
    X(TOOL_RESULT, "tool_result", "a tool answered, failed, or was not allowed to run")                                \
    X(RETRY, "retry", "an attempt failed and another will follow")                                                     \
    X(STAGE_COMPLETED, "stage_completed", "a visit ended, well or not; carries its output")                            \
    X(ROUTING_DECISION, "routing_decision", "where the run goes next and why")                                         \
    X(STAGE_SKIPPED, "stage_skipped", "a stage that waited for a failed one does not run")                             \
    X(ITERATION, "iteration_incremented", "a loop-back was taken")                                                     \
    X(BATCH, "parallel_batch", "stages start side by side")                                                            \
    X(INTERRUPT_PENDING, "interrupt_pending", "the run needs an answer")                                               \
    X(ACTION, "action", "a tool's result is an action for whoever watches: its type and payload")                      \
    X(AGENT_STARTED, "agent_started", "an agent that was asked begins")                                                \
    X(AGENT_COMPLETED, "agent_completed", "it has answered or failed; precedes the tool_result of the call")           \
    X(WARNING, "warning", "something is probably not as meant")                                                        \
    X(ERROR, "error", "what ended the run badly")                                                                      \
    X(DONE, "done", "the run is over or waits; always last, always once")
#define RV_EMIT_CONST(n, t, m) RV_EMIT_##n,
enum rv_emit_kind { RV_EMITS(RV_EMIT_CONST) RV_N_EMITS };
const char *rv_emit_text(enum rv_emit_kind kind);

#define RV_KEY_MAX 160 /* bytes of an idempotency key */

/* Identifies the delegated agent that an effect belongs to. Lives as long as the run. */
struct rv_origin {
    const char *agent;               /* its name */
    int depth;                       /* 1: asked by a stage */
    const char *parent_tool_call_id; /* the id of the tool call by which it was asked */
    const struct rv_origin *parent;  /* NULL: a stage asked */
};

struct rv_effect {
    enum rv_effect_kind kind;
    int64_t call_id;         /* CALL_*, CANCEL_CALL, ARM_TIMER: ascending from 1 within a run; EMIT with a request: of
                                the model that gave it, or 0 */
    int stage;               /* index; -1: none */
    int64_t visit, attempt;  /* 1-based; of the stage, of the call */
    enum rv_name_kind entry; /* CALL_HOOK: HOOK, POLICY, MOCK, ROUTE */
    const char *name;        /* CALL_*: tool, entry or model role; borrowed from the pipeline or owned_name */
    char *owned_name;        /* owned or NULL */
    char *request;           /* CALL_*: JSON text; SAVE: state dict; EMIT: the output that a structured agent's event
                                tells, as people are shown it. Owned; take it by setting it to NULL */
    size_t request_len;
    int64_t deadline_us;                /* CALL_*: answer by then or report a timeout; 0: none */
    int64_t at_us;                      /* ARM_TIMER */
    int effect_class;                   /* CALL_TOOL: enum rv_effect_class */
    char *key;                          /* CALL_TOOL, CALL_LLM: idempotency key; owned; NULL: none */
    enum rv_emit_kind emit;             /* EMIT */
    size_t text_at, text_len;           /* EMIT: where its line stands in rv_effects.text (without line end) */
    enum rv_run_status status;          /* FINISH */
    bool is_muted;                      /* CALL_LLM: people are not shown the words of the reply */
    int64_t ids_upto;                   /* see rv_call_name() */
    json_object *ids;                   /* CALL_LLM: ids of tool calls that are taken, as keys; owned; NULL: none */
    const struct rv_origin *origin;     /* NULL: the stage's own */
    const struct rv_pipeline *pipeline; /* CALL_*: where its names, roles and limits are; lives as long as the run */
};
/* Zero it before first use. One owner; reused from step to step. */
struct rv_effects {
    struct rv_effect *items;
    size_t n, cap;
    rv_buf text; /* lines of the EMIT effects */
    int rc;      /* sticky RV_E_NOMEM of an append; the function that made the step checks it */
};
#define RV_EFFECTS_MAX_TEXT ((size_t)256 << 20) /* one step's event lines */
void rv_effects_clear(struct rv_effects *e);    /* frees what was not taken, keeps the memory */
void rv_effects_fini(struct rv_effects *e);
rv_str rv_effect_text(const struct rv_effects *all, const struct rv_effect *e); /* EMIT: the line */
/** Append a zeroed effect of that kind; NULL (and sticky rc) when memory is short. Valid until the next append. */
struct rv_effect *rv_effects_add(struct rv_effects *e, enum rv_effect_kind kind);

/* --- Events: what the core is told ------------------------------------------------------------------------------ */
enum rv_event_kind {
    RV_EVENT_START,
    RV_EVENT_LLM_DONE,
    RV_EVENT_TOOL_DONE,
    RV_EVENT_HOOK_DONE,
    RV_EVENT_TIMER,
    RV_EVENT_ANSWER, /* to the pending interrupt */
    RV_EVENT_CANCEL,
    RV_EVENT_RECOVER, /* the run goes on in another process; the time since its last event does not count */
};
struct rv_event {
    enum rv_event_kind kind;
    int64_t now_us;
    int64_t call_id;          /* LLM_DONE, TOOL_DONE, HOOK_DONE, TIMER */
    bool failed;              /* *_DONE */
    rv_str reply;             /* *_DONE, not failed: JSON text; LLM_DONE: the model's text; CANCEL: what had come of
                                 model calls under way, [{call_id, text}], or empty */
    const char *error_type;   /* failed: "LLMError", "TimeoutError", "ExecutionError", ...; NULL: by kind */
    rv_str error;             /* failed: text */
    const char *code;         /* failed: a word of enum rv_failure; NULL: by error type and kind */
    rv_err **causes;          /* failed: for --debug; no journal has them. The core may take them, and leaves NULL */
    bool retryable;           /* failed: a repeat may help */
    bool unknown;             /* TOOL_DONE: the caller died and it is unknown whether the tool ran; a person decides */
    struct rv_llm_answer llm; /* LLM_DONE; in other events RV_LLM_ANSWER_NONE or zeroed. Failed: `reply` has the text
                                 that had come */
    struct rv_response response; /* ANSWER */
    json_object *blocked;        /* any: names of the tools whose breaker is open; borrowed; NULL: none */
};

/* --- Versions of the rules ---
 *
 * What the core decides, tells and keeps for the same events may change from one engine to the next; a run must not
 * change under way. The journal's first record names the rules that a run began with, and the core still has the older
 * ones. docs/reference/journal.md lists what changed with each. */
enum rv_rules {
    RV_RULES_NEWEST = 0, /* of a run that begins now */
    RV_RULES_1 = 1,      /* of journals that name none */
    RV_RULES_2 = 2,
    RV_RULES_3 = 3, /* failures have codes */
    RV_RULES_LAST = RV_RULES_3,
};

/* --- A visit ------------------------------------------------------------------------------------------------------ */
struct rv_delegated; /* what a run keeps of the agents that were asked */
/* State that all visits of a run share. The run owns it. That of a delegated agent has a root: only its pipeline,
 * origin, conversation and deadline are its own. */
struct rv_visit_shared {
    struct rv_visit_shared *root; /* NULL: this is it */
    const struct rv_pipeline *pipeline;
    struct rv_catalog catalog;
    enum rv_rules rules;                        /* never NEWEST */
    const bool *scripted_stages;                /* per stage: a script answers for it; NULL: none */
    bool use_mocks;                             /* every stage with a mock handler is mocked */
    json_object *blocked;                       /* of the root, in a step: tools that may not be called; borrowed */
    bool emits;                                 /* false: no EMIT effects (there is no listener) */
    int64_t next_call_id;                       /* starts at 1 */
    int64_t next_seq;                           /* of observable events, emitted or not; starts at 1 */
    int64_t llm_left;                           /* model calls that may still be started; retries take from it */
    int64_t spent_micro_usd;                    /* settled cost of this run's model calls */
    int64_t reserved_micro_usd;                 /* the most that those under way can cost; with a budget */
    const struct rv_conversation *conversation; /* NULL: none */
    struct rv_delegated *delegated;             /* of the root; owned, see rv_visit_shared_fini() */
    const struct rv_origin *origin;             /* of a delegated agent; NULL: a stage's visit */
    int asking_stage;                           /* of a delegated agent: the stage of the run below which it works */
    int64_t deadline_us;                        /* of a delegated agent; 0: none of its own */
    bool is_muted;                              /* of a delegated agent: people are not shown its words */
    const char *run_id;                         /* of a delegated agent: the run's; NULL: the envelope's id */
    rv_err *failure; /* of the root: why the last visit failed, with the lines of reeve that found it; owned; or NULL */
};
void rv_visit_shared_fini(struct rv_visit_shared *s); /* of the root; no visit is left then */

enum rv_visit_end {
    RV_VISIT_OK,     /* done, `next` says where to */
    RV_VISIT_STAYED, /* an interrupt keeps the run at this stage */
    RV_VISIT_FAILED, /* failed; `next` is the error route, or RV_TARGET_NONE when nothing catches it */
};
struct rv_visit_result {
    enum rv_visit_end end;
    enum rv_outcome outcome;
    int next;               /* stage index or RV_TARGET_END; NONE: failed and not routed, or routing was off */
    enum rv_reason reason;  /* FAILED and not routed: the terminal reason */
    const char *error_text; /* FAILED; owned by the visit */
    json_object *feedback;  /* string `feedback` of the output, borrowed from the visit; or NULL */
};

typedef struct rv_visit rv_visit;
/** Begin. shared and env are borrowed until rv_visit_free. route false: routing rules and default_next are not used
 *  (parallel mode). llm_reserved: one model call was taken from llm_left beforehand for this visit. */
RV_MUST_CHECK int rv_visit_begin(struct rv_visit_shared *shared, int stage, rv_envelope *env, bool route,
                                 bool llm_reserved, int64_t now_us, struct rv_effects *out, rv_visit **visit,
                                 rv_err **err);
/** True if the visit waits for that call or timer. */
bool rv_visit_waits_for(const rv_visit *v, int64_t call_id);
/** The event that it waits for. */
RV_MUST_CHECK int rv_visit_on(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err);
/** Give up: records the visit as failed with a CancelledError and asks to cancel what is under way. partials: what had
 * come of model calls, as the event says it; NULL or an array. */
RV_MUST_CHECK int rv_visit_cancel(rv_visit *v, const char *why, json_object *partials, int64_t now_us,
                                  struct rv_effects *out, rv_err **err);
/** A stage that waits for a person never goes on: what was said in its turn is kept as cancelled. Nothing where it does
 * not wait in the middle of one. */
RV_MUST_CHECK int rv_visit_give_up(struct rv_visit_shared *shared, int stage, rv_envelope *env, const char *why,
                                   int64_t now_us, struct rv_effects *out, rv_err **err);
/** The run goes on in another process after no process worked on it for that long: its deadline moves, and a model call
 * that was pending counts as charged for. This can end the visit because the run's budget is used up. */
RV_MUST_CHECK int rv_visit_recover(rv_visit *v, int64_t gap_us, struct rv_effects *out, rv_err **err);
/* In the data of a confirmation that a route raised: the name of the stage that a yes leads to. A yes then goes on
 * there with the output that was shown, and does not visit the stage again. */
#define RV_ASKED_NEXT "next"
/** The stage that asked in this way, where the run still stands; -1: the question was raised otherwise. */
int rv_visit_asked_by_route(const struct rv_visit_shared *shared, const rv_envelope *env, json_object *data);
/** A person approved it: tells observers where it leads. *to: a stage or RV_TARGET_END; RV_TARGET_CLARIFICATION when
 * that raised the next question, and the run stays. */
RV_MUST_CHECK int rv_visit_approve(struct rv_visit_shared *shared, int stage, rv_envelope *env, int64_t now_us,
                                   struct rv_effects *out, int *to, rv_err **err);
bool rv_visit_is_done(const rv_visit *v);
const struct rv_visit_result *rv_visit_result(const rv_visit *v); /* only when done */
int rv_visit_stage(const rv_visit *v);
void rv_visit_free(rv_visit *v);

/** Start an event line {seq, type, time, stage?, visit?; the caller adds members} and end it. stage -1: none. Returns
 * false when there is no listener; then add no members and do not end the line. Failures stick in out. */
bool rv_emit_begin(struct rv_visit_shared *shared, struct rv_effects *out, enum rv_emit_kind kind, int stage,
                   int64_t visit, int64_t now_us, rv_jw *w);
void rv_emit_end(struct rv_effects *out, rv_jw *w);

/** How a tool call of a reply is known in events, rows and deltas: by the id that its provider gave it, or by another
 * one where that is empty, taken or ambiguous. taken: an object whose keys are ids; that of the call is added. upto:
 * the number up to which counted ids may be those of older rows. out is empty when the call keeps its own. */
RV_MUST_CHECK int rv_call_name(json_object *taken, int64_t upto, const struct rv_origin *origin, const char *id,
                               rv_buf *out, rv_err **err);

/** Tells whether a script or a mock handler answers for this stage. */
bool rv_stage_is_mocked(const struct rv_visit_shared *shared, int stage);
/** Will a visit of this stage call a model (LLM mode and not mocked)? */
bool rv_stage_calls_llm(const struct rv_visit_shared *shared, int stage);

/* --- Pure rules, usable alone --------------------------------------------------------------------------------------
 */
/** Rule 5.6: the object in a model's reply. required may be NULL. RV_E_PARSE (none, truncated, not an object),
 * RV_E_LIMIT. */
RV_MUST_CHECK int rv_extract_object(rv_str text, const char *const *required, size_t n_required, json_object **out,
                                    rv_err **err);

/* Why a route was taken. */
enum rv_route_by { RV_ROUTE_RULE, RV_ROUTE_FUNCTION, RV_ROUTE_DEFAULT, RV_ROUTE_NO_MATCH, RV_ROUTE_ERROR };
const char *rv_route_by_text(enum rv_route_by by);
/** Rule 5.8: the first rule that matches output, else default_next, else the end.
 *  @param scope values for `when`; a `when` that cannot be evaluated is RV_E_INVALID with its place
 *  @param out_rule index of the rule, -1 for none; may be NULL */
RV_MUST_CHECK int rv_route(const struct rv_agent *agent, json_object *output, const struct rv_scope *scope,
                           int *out_target, enum rv_route_by *out_by, int *out_rule, rv_err **err);
/** The values that prompts (prompt true) or `when` expressions see: output may be NULL. */
struct rv_stage_scope {
    const struct rv_pipeline *pipeline;
    const rv_envelope *env;
    json_object *output;
    bool is_prompt;
    json_object *made; /* array that owns the values built on demand; NULL until the first */
};
struct rv_scope rv_stage_scope_init(struct rv_stage_scope *s, const struct rv_pipeline *p, const rv_envelope *env,
                                    json_object *output, bool is_prompt);
void rv_stage_scope_fini(struct rv_stage_scope *s);

#endif
