/* Shared by the files of one visit. The phases run in the order of the enum; each phase function either asks for a call
 * (the visit then waits), moves v->phase on, or ends the visit. */
#ifndef RV_AGENT_INTERNAL_H
#define RV_AGENT_INTERNAL_H

#include "coreengine/agent/model_internal.h"

enum visit_phase {
    PHASE_PRE,     /* pre_process hook */
    PHASE_MAIN,    /* mock, LLM, tools or service */
    PHASE_BACKOFF, /* waiting for the next attempt of the main phase */
    PHASE_CHECK,   /* required fields, outcome text */
    PHASE_POLICY,
    PHASE_STORE,
    PHASE_POST,   /* post_process hook */
    PHASE_CHAIN,  /* the tool that gets the output */
    PHASE_SETTLE, /* outcome and state after the output is final */
    PHASE_ASK,    /* the question of the stage, once its output is final */
    PHASE_ROUTE,
    PHASE_FAILED, /* rv_visit_fail() was called */
    PHASE_DONE,
};

/* A pending call: a safe tool call among several that a reply asked for and that run side by side. */
struct pending_call {
    int64_t call_id; /* of the call, or of the timer before its next attempt; 0: answered */
    int64_t attempt, started_us;
    bool waits, begun;   /* waits: for that timer; begun: the calls of the plan that it needs have ended */
    struct child *child; /* the agent that was asked, while it works; owned; NULL: none */
    json_object *entry;  /* its entry of `results`, once it is answered; owned */
    struct tool_hooks hooks;
};
#define PENDING_CALLS INT64_MAX /* rv_visit.waiting_for: the calls of `pending` */

struct tool_progress {
    json_object *steps;   /* array; owned */
    json_object *results; /* array; owned */
    size_t at;            /* index of the step under way */
    int64_t total_ms;
    bool all_succeeded;
    bool approved;           /* the step at `at` was approved by a person */
    int64_t call_started_us; /* of the first attempt at `at`, without pauses that do not count; 0: not begun */
    int64_t called_us;       /* when the first attempt at `at` was made */
    int64_t key_visit;       /* whose idempotency key the step at `at` has; 0: this visit's */
    enum {
        REVIEW_NONE,
        REVIEW_HAPPENED, /* the review says that the call at `at` happened, with the result `stated` */
        REVIEW_FAIL,     /* or that the stage is to fail */
        REVIEW_ASK,      /* the question is not answered yet: ask again */
    } review;
    json_object *stated;               /* owned; NULL: an empty result */
    json_object *client, *client_text; /* results of the client's calls, by ids; what was said with them; owned */
    json_object *input;  /* what the tool of the step at `at` asks a person: see input.c; owned; NULL: nothing */
    json_object *denial; /* the answer by which a person refused the step at `at`; owned; NULL: none */
    char step_id[48];    /* "step_<index>" when the step has none */
    struct pending_call *pending; /* the steps from `at` on that run side by side; owned; NULL: none */
    size_t n_pending, n_answered;
    struct tool_hooks hooks; /* of the step at `at` */
};

struct rv_visit {
    struct rv_visit_shared *shared; /* borrowed; outlives the visit */
    const struct rv_agent *agent;   /* borrowed from the pipeline */
    rv_envelope *env;               /* borrowed: the run's envelope or this stage's fork */
    struct rv_visit_place place;
    enum rv_outside outside;                /* what it waits for beside calls */
    json_object *outside_value;             /* the list, or the inputs; owned */
    json_object *outside_state;             /* of the inner run that waited for a person; owned; NULL: it begins */
    char *error_stage;                      /* of a failure inside; owned; NULL: none */
    char *outside_type;                     /* the error type of a failure outside; owned; NULL: none */
    bool is_list;                           /* for_each: its elements are visits of their own */
    enum rv_reason given_reason;            /* of a failure outside; NONE: it follows from the type */
    const struct rv_visit_shared *bound_of; /* with `bound`: the run that has it; borrowed */
    bool is_bound_hard;                     /* it was hit outside: no error_next leads on from there */
    bool route;
    enum visit_phase phase, failed_in; /* failed_in: the phase that called rv_visit_fail() */
    int64_t visit_no, attempt, now_us, started_us, deadline_us;
    int64_t waiting_for;             /* call id, 0: nothing */
    enum rv_event_kind waiting_kind; /* the kind of event that answers the pending call */
    int64_t last_call;               /* id of the last call, for result events */
    int64_t llm_calls;               /* attempts made */
    bool lacks_field;                /* a required output field is missing */
    enum rv_failure code;            /* of the failure */
    rv_err *failure;                 /* the same for --debug; owned; NULL: not failed */
    const char *event_code;          /* of the failed call whose event is handled; borrowed from that; NULL: none */
    bool llm_path;                   /* the LLM path ran, even if it failed before its first call */
    bool resumed;                    /* goes on with suspended work: the pre hook has run already */
    size_t policy_at;
    json_object *approved_policies; /* array of the policies whose question a person approved; owned; NULL: none */
    bool asked_twice;               /* its output contradicted itself once */
    bool breaks;                    /* the routing function breaks the run off */
    const char *end_text;           /* a routing function's reason to end the run; borrowed while its answer is read */
    char *confirm_message;          /* a policy wants confirmation; owned */
    json_object *confirm_show;      /* what it wants shown; owned */
    bool has_confirm_show;          /* it may be null */
    unsigned n_interrupts;          /* raised so far; part of their ids */
    bool asks;                      /* it ends with the question of the stage */
    bool goes_on;                   /* it is not a visit of its own: an answer came to the question of an earlier one */
    const char *choice;             /* that decided where the run goes; borrowed from the pipeline; NULL: none did */
    const struct rv_model_config *asked; /* of the agent's role; borrowed from the pipeline; NULL: no model */
    json_object *output;                 /* of the main phase, later the stored one; owned */
    json_object *previous;               /* output under the same key before this visit; owned */
    bool had_previous, stored;
    bool knows_outcome;                /* nothing can change the output after it was checked */
    json_object *caught;               /* the failure that it handles, from the envelope; owned; NULL: none */
    struct resource *resources;        /* tools of the document that have a URI; owned */
    struct rv_tool_info *client_tools; /* that the client calls; owned */
    size_t n_resources, n_client_tools;
    struct tool_progress tools;
    struct model_progress model;
    struct planned *planned; /* owned; NULL: the stage does not plan its calls */
    enum rv_reason bound;    /* the bound that failed it; RV_REASON_NONE: none did */
    enum rv_route_by routed_by;
    int routed_rule, routed_to;
    struct rv_visit_result result;
    bool *taken;            /* of the list that it routes to; owned; NULL: it does not */
    json_object *chosen;    /* the names of these; owned */
    char *error_text;       /* owned */
    char *type_text;        /* owned; what error_type points to, where that is not static */
    const char *error_type; /* static, or type_text */
    rv_buf partial;         /* of the model call that failed or was cancelled: what had come */
    json_object *chained;   /* what the chained tool answered; owned; NULL: nothing */
    int64_t chain_call;     /* id of its call; 0: not made */
    struct tool_hooks chain_hooks;
    struct rv_turn *rows;      /* of a delegated agent: its rows; owned; NULL: none */
    char *session_name;        /* an observation named the session so; owned; NULL: none */
    struct rv_routing routing; /* of a stage's visit with routing: as it is after this turn */
    bool kept_rows;            /* the rows of the turn were written */
    bool told_output;          /* observers know the object of a structured agent */
};

/** As the first rules have it, a whole number that does not fit 64 bits is broken JSON in what a capability says and in
 * the arguments of a model's calls. */
static inline bool visit_refuses_big_ints(const rv_visit *v)
{
    return v->shared->rules < RV_RULES_2;
}

/** A word of texts that become part of a state: runs of older rules have it as they had it. */
static inline const char *visit_cannot(const rv_visit *v)
{
    return v->shared->rules < RV_RULES_4 ? "can not" : "cannot";
}

/** The stage that effects name: of a delegated agent, the one below which it works. */
static inline int visit_stage(const struct rv_visit *v)
{
    return v->shared->root ? v->shared->asking_stage : v->agent->index;
}

/** Emit an event of the visit. */
#define rv_visit_emit(v, out, kind, ...)                                                                               \
    RV_EMIT((v)->shared, out,                                                                                          \
            (&(const struct rv_emit_head){kind, (v)->agent->index, (v)->visit_no, &(v)->place, (v)->now_us}),          \
            __VA_ARGS__)

/* --- phase.c: what all phases use --- */
const char *visit_role(const rv_visit *v);
const struct rv_model_config *visit_model(const rv_visit *v); /* NULL: the role has none */
int64_t visit_max_tokens(const rv_visit *v);
struct visit_call {
    enum rv_effect_kind kind;
    enum rv_name_kind entry;
    const char *name; /* borrowed from the pipeline */
    rv_str copy_name; /* or a name to copy; ptr NULL: use name */
    int64_t timeout_ms;
    int effect_class;
    const char *key; /* copied; NULL: none */
    int64_t attempt; /* 0: the visit's */
};
/** Ask for a call; the visit then waits. Takes the bytes of request. A passed stage deadline ends the visit instead. */
RV_MUST_CHECK int agent_visit_call(rv_visit *v, const struct visit_call *call, rv_buf *request, struct rv_effects *out,
                                   rv_err **err);
/** A timer that is told to observers as a retry: its id, or 0 when the deadline does not leave the time (or memory is
 * short, which sticks in out). */
int64_t visit_wait(rv_visit *v, int64_t wait_us, int64_t attempt, const char *why, struct rv_effects *out);
/** A timer that no event tells of: its id, or 0 when memory is short, which sticks in out. */
int64_t visit_arm(const rv_visit *v, int64_t at_us, struct rv_effects *out);
/** Tells whether no call may begin in the visit any more: its run has hit a bound, or its time is up. */
bool visit_must_end(const rv_visit *v);
/** As visit_wait() before another attempt of something that was tried `attempt` times. */
int64_t visit_back_off(rv_visit *v, int64_t attempt, const char *why, struct rv_effects *out);
/** Wait before the next attempt; false if there is none (attempts, deadline or model calls are used up). */
bool visit_retry(rv_visit *v, int64_t max_retries, bool needs_llm, const char *why, struct rv_effects *out);
/** Raise an interrupt on the envelope unless one is pending. data is borrowed or NULL. A question about a call's
 * outcome never expires. */
RV_MUST_CHECK int visit_raise(rv_visit *v, enum rv_interrupt_kind kind, rv_str text, json_object *data,
                              char id[RV_ID_MAX], rv_err **err);
struct visit_question { /* borrowed for the call */
    enum rv_interrupt_kind kind;
    rv_str text;
    json_object *data;
    int64_t ttl_us; /* 0: it never expires; < 0: after the time of its kind */
};
RV_MUST_CHECK int visit_raise_for(rv_visit *v, const struct visit_question *q, char id[RV_ID_MAX], rv_err **err);
/** Of the run, the stage and, outside of the main branch, the branch: what ids of calls and questions follow from. */
uint64_t visit_identity(const rv_visit *v);
/** The visit fails with that error, once the current phase returns to the driver. Its code follows from the type. */
#define rv_visit_fail(v, type, err, ...)                                                                               \
    visit_fail_at((v), (struct visit_fault){RV_FAILURE_NONE, (type)}, __FILE__, __LINE__, (err), __VA_ARGS__)
/** The same with a code that is finer than the type. */
#define rv_visit_fail_as(v, code, type, err, ...)                                                                      \
    visit_fail_at((v), (struct visit_fault){(code), (type)}, __FILE__, __LINE__, (err), __VA_ARGS__)
struct visit_fault {
    enum rv_failure code; /* NONE: that of the stage for the type */
    const char *type;     /* copied */
};
int visit_fail_at(rv_visit *v, struct visit_fault fault, const char *c_file, int c_line, rv_err **err, const char *fmt,
                  ...) RV_PRINTF(6, 7);
/** The same with the chain of `cause` (taken) as text; RV_E_NOMEM in it is passed up instead. */
int visit_fail_cause(rv_visit *v, const char *type, rv_err *cause, rv_err **err);
/** After a failure by a call: its last link becomes one that says so much, and the causes of the call below. */
void visit_fail_by(rv_visit *v, const struct rv_event *ev, const char *fmt, ...) RV_PRINTF(3, 4);
enum rv_failure agent_event_failure(const struct rv_event *ev); /* of a failed call */
enum rv_failure agent_failure_of_tool(const char *type);        /* of an entry of `results`, by its error type */
/** Member `code` of an event; NULL: none, by the rules of the run or since there is no failure. Static. */
const char *visit_code_text(const rv_visit *v, enum rv_failure code);

/* --- cancelled.c --- */
/** The visit fails because the question was cancelled, for that reason; ptr NULL: none. */
RV_MUST_CHECK int visit_fail_cancelled(rv_visit *v, rv_str reason, rv_err **err);
/** The same with the reason that rv_visit_cancel_question() kept. */
RV_MUST_CHECK int visit_take_cancellation(rv_visit *v, rv_err **err);

/* --- outside.c: work that is not the visit's own --- */
static inline bool visit_is_element(const rv_visit *v)
{
    return v->place.index >= 0;
}
RV_MUST_CHECK int visit_list(rv_visit *v, rv_err **err);  /* a stage with for_each begins: finds the list */
RV_MUST_CHECK int visit_inner(rv_visit *v, rv_err **err); /* the stage runs another pipeline: builds its inputs */
/** The inner run waits for a person: so does the stage. */
RV_MUST_CHECK int visit_wait_inside(rv_visit *v, const struct rv_outside_end *end, struct rv_effects *out,
                                    rv_err **err);
#define RV_KEPT_PIPELINE "pipeline" /* kind of suspended work */
/** A person has answered: the inner run goes on. */
void visit_resume_inner(rv_visit *v, json_object *kept);
/** The stage has `set`: builds the output. */
RV_MUST_CHECK int visit_set(rv_visit *v, rv_err **err);

/* --- hooks.c --- */
RV_MUST_CHECK int visit_pre(rv_visit *v, struct rv_effects *out, rv_err **err);
RV_MUST_CHECK int visit_mock(rv_visit *v, struct rv_effects *out, rv_err **err);
RV_MUST_CHECK int visit_policy(rv_visit *v, struct rv_effects *out, rv_err **err);
RV_MUST_CHECK int visit_post(rv_visit *v, struct rv_effects *out, rv_err **err);
RV_MUST_CHECK int visit_route(rv_visit *v, struct rv_effects *out, rv_err **err);
RV_MUST_CHECK int visit_hook_done(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err);

/* --- outcome.c --- */
/** Where the stage is the arbiter and has nothing to judge: its output is made and stored, and only routing is left. */
RV_MUST_CHECK int visit_sit_out(rv_visit *v, rv_err **err);
RV_MUST_CHECK int visit_check(rv_visit *v, struct rv_effects *out, rv_err **err);
RV_MUST_CHECK int visit_store(rv_visit *v, rv_err **err);
RV_MUST_CHECK int visit_settle(rv_visit *v, struct rv_effects *out, rv_err **err);
/** The text of the first of two members of an output that is there; second may be NULL. Borrowed; NULL: neither. */
const char *agent_output_text(json_object *output, const char *first, const char *second);

/* --- ask.c --- */
/** Put it, and stay. A question that cannot be written fails the visit; its output stands. */
RV_MUST_CHECK int visit_ask(rv_visit *v, struct rv_effects *out, rv_err **err);
/** Go on with the answer: see rv_visit_goes_on(). */
RV_MUST_CHECK int visit_go_on(rv_visit *v, struct rv_effects *out, rv_err **err);
/** Tells whether the stage waits, or waited, with its question. */
bool visit_is_ask(const struct rv_visit_shared *shared, int stage, const rv_envelope *env);
#define RV_QUESTION_MAX_SHOWN ((size_t)256 << 10) /* bytes of what a question shows: a person reads it */
#define RV_QUESTION_MAX_BYTES ((size_t)64 << 10)  /* of its text: as RV_ANSWER_MAX_TEXT of an answer */
/** The question of a tool that requires confirmation, from its arguments, and what it shows. message stays empty where
 * the tool has no question, or these arguments lack what is in it. */
RV_MUST_CHECK int agent_question_of_tool(const rv_visit *v, const struct rv_tool_info *info, json_object *arguments,
                                         rv_buf *message, json_object *data, rv_err **err);
/** Set `shown` of the data of a question, unless it is too long for a person. shown: borrowed; NULL is null. */
RV_MUST_CHECK int agent_question_show(json_object *data, json_object *shown, rv_err **err);

/* --- branches.c --- */
/** It routes to a list: decide which branches start. A condition that cannot be decided fails the visit. */
RV_MUST_CHECK int visit_choose_branches(rv_visit *v, rv_err **err);

/* --- end.c --- */
RV_MUST_CHECK int visit_finish(rv_visit *v, struct rv_effects *out, rv_err **err); /* routed_* are set */
RV_MUST_CHECK int visit_stay(rv_visit *v, struct rv_effects *out, rv_err **err);   /* an interrupt keeps the run here */
RV_MUST_CHECK int visit_failed(rv_visit *v, struct rv_effects *out, rv_err **err);
/** Ask what the output wants to know, and stay. kind: CLARIFY or CONFIRM. */
RV_MUST_CHECK int agent_end_ask(rv_visit *v, enum rv_outcome kind, struct rv_effects *out, rv_err **err);
/** A person said yes where a route asked: tells observers where it leads, and asks where that is `clarification`. */
RV_MUST_CHECK int agent_end_approved(rv_visit *v, int to, struct rv_effects *out, rv_err **err);

/* --- rows.c: the turn as rows --- */
/** Have the rows of the turn kept; nothing where no session is kept, or they are kept already. */
RV_MUST_CHECK int visit_keep_rows(rv_visit *v, enum rv_turn_status status, struct rv_effects *out, rv_err **err);
/** The rows of the chained call. */
RV_MUST_CHECK int visit_keep_chain(rv_visit *v, const char *call_id, struct rv_effects *out, rv_err **err);
/** Keep the rows of the agent that the call asked until the turn has its rows. Takes rows; NULL: no memory. */
RV_MUST_CHECK int agent_rows_keep_child(struct model_progress *t, rv_str call_id, struct rv_turn *rows, rv_err **err);
#define RV_MESSAGE_METADATA "message"          /* of the metadata of a run: what the message has beside its text */
#define RV_ROWS_MAX         ((size_t)63 << 20) /* of one turn's rows: below RV_STATE_MAX_BYTES */
/** A UUID that follows from the run, the visit and n. */
void visit_uuid(const rv_visit *v, const char *what, int64_t n, char out[RV_UUID_MAX]);
#endif
