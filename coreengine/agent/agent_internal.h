/* Shared by the files of one visit. The phases run in the order of the enum; each phase function either asks for a call
 * (the visit then waits), moves v->phase on, or ends the visit. */
#ifndef RV_AGENT_INTERNAL_H
#define RV_AGENT_INTERNAL_H

#include "coreengine/agent/agent.h"

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
    PHASE_ROUTE,
    PHASE_FAILED, /* rv_visit_fail() was called */
    PHASE_DONE,
};

/* A pending call: a safe tool call among several that a reply asked for and that run side by side. */
struct pending_call {
    int64_t call_id, attempt,
        started_us;      /* call_id: of the call, or of the timer before its next attempt; 0: answered */
    bool waits;          /* for that timer */
    struct child *child; /* the agent that was asked, while it works; owned; NULL: none */
    json_object *entry;  /* its entry of `results`, once it is answered; owned */
};
#define PENDING_CALLS INT64_MAX /* rv_visit.waiting_for: the calls of `pending` */
struct child;                   /* visit_child.c */

struct tool_progress {
    json_object *steps;   /* array; owned */
    json_object *results; /* array; owned */
    size_t at;            /* index of the step under way */
    int64_t total_ms;
    bool all_succeeded;
    bool approved;           /* the step at `at` was approved by a person */
    int64_t call_started_us; /* of the first attempt at `at`; time that does not count is taken out; 0: not begun */
    int64_t called_us;       /* when that was */
    int64_t key_visit;       /* whose idempotency key the step at `at` has; 0: this visit's */
    enum {
        WORD_NONE,
        WORD_HAPPENED, /* a person said that the call at `at` happened, with the result `stated` */
        WORD_FAIL,     /* or that the stage is to fail */
        WORD_ASK,      /* the question is not answered yet: ask again */
    } word;
    json_object *stated;          /* owned; NULL: an empty result */
    char step_id[48];             /* "step_<index>" when the step has none */
    struct pending_call *pending; /* the steps from `at` on that run side by side; owned; NULL: none */
    size_t n_pending, n_answered;
};

/* The progress of a visit with a model: the messages after the prompt, and what was counted. */
struct model_progress {
    char *prompt; /* owned; NULL: not rendered yet */
    size_t prompt_len;
    json_object *messages; /* after the prompt; owned; NULL: none */
    json_object *ids;      /* of the tool calls in `messages`, as keys; owned; NULL: not collected yet */
    json_object *offered;  /* tools as a request has them; owned; NULL: not looked up yet */
    rv_schema *schema;     /* the agent's output_schema; owned; NULL: not compiled yet */
    bool acting;           /* the tools that the last reply asked for are being called */
    bool has_call;         /* a model call was taken from llm_left and not made yet */
    int64_t rounds, repairs, bad_calls, tool_calls;
    int64_t bad_before;  /* of bad_calls, those of earlier replies */
    int64_t requests;    /* made so far */
    int64_t call_id;     /* of the last one; 0: none */
    int finish;          /* why the model ended its last reply: enum rv_finish_reason; RV_UNSET: it did not say */
    size_t steps_before; /* tool calls of earlier rounds */
    bool is_scripted;    /* a script gave the last reply, and told no usage */
    struct rv_usage usage;
    int64_t reserved_micro_usd; /* of the call under way */
    /* Texts that become rows of the session. */
    rv_buf visible;           /* the text that users were shown: its own and that of agents that it asked; of a
                                 structured agent, whose text is not shown, its own */
    size_t answer_at;         /* where in `visible` the text of asked agents begins that is the answer as long as
                                 the agent itself adds nothing; SIZE_MAX: there is none */
    bool is_muted;            /* an agent that was asked has spoken, in place of this one */
    json_object *child_rows;  /* by tool call id: the rows of the agent that it asked; owned; NULL: none */
    json_object *final_calls; /* of the reply that had the output; owned; NULL: none */
    json_object *new_calls;   /* of the reply that is being judged, until they are in `messages`; owned; NULL: none */
    struct rv_usage child_usage; /* of the agents that were asked */
};

struct rv_visit {
    struct rv_visit_shared *shared; /* borrowed; outlives the visit */
    const struct rv_agent *agent;   /* borrowed from the pipeline */
    rv_envelope *env;               /* borrowed: the run's envelope or this stage's fork */
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
    const char *event_code;          /* of the failed call that is being taken in, until it is told; NULL: none */
    bool llm_path;                   /* the LLM path ran, even if it failed before its first call */
    bool resumed;                    /* goes on with suspended work: the pre hook has run already */
    size_t policy_at;
    json_object *approved_policies; /* array of the policies whose question a person approved; owned; NULL: none */
    bool asked_twice;               /* its output contradicted itself once */
    bool breaks;                    /* the routing function breaks the run off */
    const char *end_text;           /* a routing function's reason to end the run; borrowed while its answer is read */
    char *confirm_message;          /* a policy wants confirmation; owned */
    unsigned n_interrupts;          /* raised so far; part of their ids */
    json_object *output;            /* of the main phase, later the stored one; owned */
    json_object *previous;          /* output under the same key before this visit; owned */
    bool had_previous, stored;
    struct tool_progress tools;
    struct model_progress model;
    enum rv_reason bound; /* the bound that failed it; RV_REASON_NONE: none did */
    enum rv_route_by routed_by;
    int routed_rule;
    int routed_to;
    struct rv_visit_result result;
    char *error_text; /* owned */
    const char *error_type;
    rv_buf partial;            /* of the model call that failed or was cancelled: what had come */
    json_object *chained;      /* what the chained tool answered; owned; NULL: nothing */
    int64_t chain_call;        /* id of its call; 0: not made */
    rv_buf rows;               /* of a delegated agent: its rows as JSON objects, with commas between */
    char *session_name;        /* an observation named the session so; owned; NULL: none */
    struct rv_routing routing; /* of a stage's visit with routing: as it is after this turn */
    bool kept_rows;            /* the rows of the turn were written */
    bool told_output;          /* observers know the object of a structured agent */
};

/** As the first rules have it, a whole number that does not fit 64 bits is broken JSON in what a capability says and in
 * the arguments of a model's calls. */
static inline bool rv_visit_refuses_big_ints(const rv_visit *v)
{
    return v->shared->rules < RV_RULES_2;
}

static inline struct rv_visit_shared *rv_visit_root(struct rv_visit_shared *s)
{
    return s->root ? s->root : s;
}
/** The stage that effects name: of a delegated agent, the one below which it works. */
static inline int rv_visit_stage_of(const struct rv_visit *v)
{
    return v->shared->origin ? v->shared->asking_stage : v->agent->index;
}

/* visit_calls.c */
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
int rv_visit_call(rv_visit *v, const struct visit_call *call, rv_buf *request, struct rv_effects *out, rv_err **err);
/** A timer that is told to observers as a retry: its id, or 0 when the deadline does not leave the time (or memory is
 * short, which sticks in out). */
int64_t rv_visit_wait(rv_visit *v, int64_t wait_us, int64_t attempt, const char *why, struct rv_effects *out);
/** A timer before another attempt of something that was tried `attempt` times: its id, or 0 when the deadline does not
 * leave the time (or memory is short, which sticks in out). */
int64_t rv_visit_back_off(rv_visit *v, int64_t attempt, const char *why, struct rv_effects *out);
/** Wait before the next attempt; false if there is none (attempts, deadline or model calls are used up). */
bool rv_visit_retry(rv_visit *v, int64_t max_retries, bool needs_llm, const char *why, struct rv_effects *out);
/** Raise an interrupt on the envelope unless one is pending. data is borrowed or NULL. A question about a call's
 * outcome never expires. */
int rv_visit_raise(rv_visit *v, enum rv_interrupt_kind kind, rv_str text, json_object *data, char id[RV_ID_MAX],
                   rv_err **err);
/** Append at most 200 bytes of text, cut at a UTF-8 border and marked with three dots. */
void rv_visit_preview(rv_jw *w, const char *key, rv_str text);

/** FNV-1a over text and its NUL. Start with the init value. */
#define RV_VISIT_HASH_INIT 1469598103934665603u
uint64_t rv_visit_hash(uint64_t h, const char *text);

/* visit_mode.c: what a visit does, and which model it asks */
#define RV_ARBITER "arbiter" /* the output key by which the rules know the arbiter */
const char *rv_visit_role(const rv_visit *v);
const struct rv_model_config *rv_visit_model(const rv_visit *v); /* NULL: the role has none */
int64_t rv_visit_max_tokens(const rv_visit *v);
bool rv_visit_is_mocked(const rv_visit *v);
bool rv_visit_is_scripted(const rv_visit *v);

/* visit_knobs.c: the `execution` section */
/** Where the stage is the arbiter and has nothing to judge: its output is made and stored, and only routing is left. */
RV_MUST_CHECK int rv_visit_sit_out(rv_visit *v, rv_err **err);
/** The output is not confident and has a question for the user. */
bool rv_visit_is_unsure(const rv_visit *v);
/** An output whose verdict contradicts its outcome is asked for once more, and then the stage fails. */
RV_MUST_CHECK int rv_visit_validate_verdict(rv_visit *v, struct rv_effects *out, rv_err **err);
/** Once routed: a partial result does not lead back where the pipeline does not want that. */
void rv_visit_keep_partial(rv_visit *v);

/* visit_llm.c: asking */
int rv_visit_llm(rv_visit *v, struct rv_effects *out, rv_err **err);

/* visit_reply.c: what a model's reply comes to */
int rv_visit_llm_done(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err);

/* visit_messages.c: messages */
void rv_messages_fini(struct model_progress *t);
/** The calls of the last reply are in `messages`, or its judgement is over. */
void rv_messages_drop_new_calls(struct model_progress *t);
/** The tools that the stage's model may call, as a request has them; NULL in *offered when there are none. Borrowed. */
RV_MUST_CHECK int rv_messages_offered(rv_visit *v, json_object **offered, rv_err **err);
/** Append the model's turn (text, calls, opaque). calls: borrowed array or NULL; those whose id was there before get
 * another one. */
RV_MUST_CHECK int rv_messages_add_reply(rv_visit *v, const struct rv_event *ev, json_object *calls, rv_err **err);
/** The text of an entry of `results` for the model: the data, or the error. At most RV_MESSAGES_RESULT_MAX bytes. */
#define RV_MESSAGES_RESULT_MAX ((size_t)1 << 20)
void rv_messages_write_result(json_object *entry, rv_buf *out, bool *is_error);
void rv_messages_write_error(const char *type, const char *text, rv_buf *out); /* the same of an error */
RV_MUST_CHECK int rv_messages_add_user(rv_visit *v, rv_str text, rv_err **err);
RV_MUST_CHECK int rv_messages_add_result(rv_visit *v, rv_str id, rv_str name, rv_str content, bool is_error,
                                         rv_err **err);
/** Save the part that is kept while the stage waits for a person (*out is the caller's), and restore it. */
RV_MUST_CHECK int rv_messages_keep(const rv_visit *v, json_object **out, rv_err **err);
RV_MUST_CHECK int rv_messages_take(rv_visit *v, json_object *kept, rv_err **err);

/* visit_ids.c */
/** The number up to which counted ids may be those of older rows of the session; 0: none, or the rules do not look. */
int64_t rv_messages_ids_upto(const rv_visit *v);
/** The ids of what was said before, and of the messages so far: model.ids. */
RV_MUST_CHECK int rv_messages_collect_ids(rv_visit *v, rv_err **err);
RV_MUST_CHECK int rv_messages_tell_apart(rv_visit *v, json_object *calls, rv_err **err);

/* visit_money.c: what calls cost, and the limits of a visit */
/** Set aside the most that a call can cost; false when the visit failed for want of money or a limit (*rc). */
bool rv_money_reserve(rv_visit *v, size_t request_bytes, int *rc, rv_err **err);
/** The call was not made after all. */
void rv_money_release(rv_visit *v);
/** The call is over: what it took, counted with the visit, the run and the envelope. */
void rv_money_settle(rv_visit *v, const struct rv_event *ev);
/** The outcome of the pending call will stay unknown: the call counts as charged for, and an event tells observers
 * why. */
void rv_money_lose(rv_visit *v, const char *why, struct rv_effects *out);
/** The same of one that is made again: the money is set aside once more.
 * False when that fails the visit. */
bool rv_money_recover(rv_visit *v, struct rv_effects *out, int *rc, rv_err **err);
/** The limits on tokens; false when one failed the visit. */
bool rv_money_within_limits(rv_visit *v, int *rc, rv_err **err);

/* output.c: structured output */
/** Tells whether the output fits the agent's output_schema and required_output_fields. A null for an optional member
 * that may not be null counts as absent: it is taken out of the value, unless a declared agent gave it, whose output is
 * kept as it gave it. RV_E_INVALID lists the faults. */
RV_MUST_CHECK int rv_output_check(rv_visit *v, json_object *value, rv_err **err);
/** Tells whether an object lacks a field that output_schema or required_output_fields want at its top level. */
bool rv_output_lacks_field(const rv_visit *v, json_object *value);
/** Take out of value what is null, optional and may not be null by schema, a JSON Schema. */
void rv_output_drop_nulls(json_object *schema, json_object *value);

/* visit_tools.c */
int rv_visit_tools(rv_visit *v, struct rv_effects *out, rv_err **err);
int rv_visit_tool_done(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err);
void rv_visit_tools_fini(struct tool_progress *t);

/* The decisions about a step before its tool may run. */
enum step_verdict { STEP_RUNS, STEP_ASKS, STEP_IS_BAD, STEP_IS_BLOCKED };
struct step_judgement {
    enum step_verdict verdict;
    const struct rv_tool_info *info; /* RUNS, ASKS */
    const char *error_type;          /* IS_BAD, IS_BLOCKED */
    bool recoverable;
    rv_buf text; /* IS_BAD, IS_BLOCKED: why; owned */
};
RV_MUST_CHECK int rv_step_judge(const rv_visit *v, size_t index, struct step_judgement *out, rv_err **err);
/** Tells whether the breaker of that tool is open; if so, `why` receives the reason. */
bool rv_tool_is_refused(const rv_visit *v, rv_str tool, rv_buf *why);
json_object *rv_visit_plan(const rv_visit *v); /* the steps of the plan as they stand; borrowed; NULL: none */
rv_str rv_step_tool(const rv_visit *v, size_t index);
rv_str rv_step_id(const rv_visit *v, size_t index, char *scratch, size_t size);
json_object *rv_step_parameters(const rv_visit *v, size_t index);
/** Do tool calls have idempotency keys? */
bool rv_tools_have_keys(const rv_visit *v);
/** The key of the call of a step. since_us: when its first attempt in this visit was made. */
void rv_step_write_key(const rv_visit *v, size_t index, int64_t since_us, rv_buf *key);
/** The entry of `results` for a step whose call was answered; *out is the caller's. */
RV_MUST_CHECK int rv_step_entry(rv_visit *v, size_t index, const struct rv_event *ev, int64_t ms, json_object **out,
                                rv_err **err);
/** Tells whether the failed call may be repeated: its error may pass, and its tool is not non_idempotent. */
bool rv_step_may_repeat(const rv_visit *v, size_t index, const struct rv_event *ev, int64_t *max_retries);
/** The entry of one that could not be called, or failed. */
RV_MUST_CHECK int rv_step_error(rv_visit *v, size_t index, const char *type, rv_str message, bool recoverable,
                                int64_t ms, json_object **out, rv_err **err);
/* step_events.c */
/** Its call begins. sent: the arguments as the tool gets them. */
void rv_step_tell_start(rv_visit *v, size_t index, int64_t attempt, int64_t call_id, rv_str sent,
                        struct rv_effects *out);
/** Members of an event: `arguments` (NULL: none were given) and, unless NULL, `result`, or where it is to be found. Not
 *  of runs of the older rules. */
void rv_step_write_values(const rv_visit *v, json_object *arguments, json_object *result, int64_t call_id, rv_jw *w,
                          struct rv_effects *out);
/** A step has its entry: counted, and told to observers. */
void rv_step_tell(rv_visit *v, size_t index, json_object *entry, int64_t call_id, struct rv_effects *out);
/** Ask for the call of a step; the caller waits for it. attempt is 1-based. *call_id 0: the visit ended instead. */
RV_MUST_CHECK int rv_step_call(rv_visit *v, size_t index, int64_t attempt, const struct rv_tool_info *info,
                               int64_t *call_id, struct rv_effects *out, rv_err **err);

/* visit_pending.c: safe calls side by side */
/** Begin the calls from `at` on that may run so; *n 0: there are not at least two. */
RV_MUST_CHECK int rv_pending_begin(rv_visit *v, size_t *n, struct rv_effects *out, rv_err **err);
bool rv_pending_wait_for(const rv_visit *v, int64_t call_id);
RV_MUST_CHECK int rv_pending_on(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err);
/** Give them up; partials as rv_visit_cancel(). */
RV_MUST_CHECK int rv_pending_cancel(rv_visit *v, json_object *partials, struct rv_effects *out, rv_err **err);
RV_MUST_CHECK int rv_pending_recover(rv_visit *v, int64_t gap_us, struct rv_effects *out, rv_err **err);

/* visit_ask.c: agents as tools */
#define RV_ASK_AGENT RV_TOOL_ASK_AGENT
/** The tool of that name: the engine's own, or the catalog's; NULL: unknown. */
const struct rv_tool_info *rv_visit_tool(const rv_visit *v, rv_str name);
bool rv_step_asks_agent(const rv_visit *v, size_t index);
/* The request of a call of ask_agent; borrowed from its parameters. */
struct ask {
    const char *agent;
    rv_str text;
    json_object *data; /* NULL: none */
    int64_t timeout_us;
    int structured; /* RV_UNSET, 0 or 1 */
};
/** Tells whether the agent may be asked (depth, number of calls, user). False: `why` has the reason. */
bool rv_ask_allowed(const rv_visit *v, json_object *parameters, struct ask *out, rv_buf *why);

/* visit_child.c: agents that were asked */
/** The document arrived: begin the delegated agent. answer: the reply to the call. *child NULL: *entry says why the
 * agent could not begin; if *entry is NULL, too, the answer is not a document (a script's stand-in). */
RV_MUST_CHECK int rv_child_begin(rv_visit *v, size_t index, rv_str answer, struct child **child, json_object **entry,
                                 struct rv_effects *out, rv_err **err);
/** It may not be asked: what the call comes to. */
RV_MUST_CHECK int rv_child_refuse(rv_visit *v, size_t index, const char *why, json_object **entry, rv_err **err);
bool rv_child_waits_for(const struct child *c, int64_t call_id);
RV_MUST_CHECK int rv_child_on(struct child *c, const struct rv_event *ev, struct rv_effects *out, rv_err **err);
bool rv_child_is_done(const struct child *c);
/** It is done: what its call came to, as an entry of `results`; rows, usage and words become the asking visit's. */
RV_MUST_CHECK int rv_child_end(rv_visit *v, size_t index, struct child *c, int64_t ms, json_object **entry,
                               rv_err **err);
RV_MUST_CHECK int rv_child_cancel(struct child *c, const char *why, json_object *partials, int64_t now_us,
                                  struct rv_effects *out, rv_err **err);
/** The rows of one that is given up with the asking visit. */
RV_MUST_CHECK int rv_child_give_up(rv_visit *v, size_t index, struct child *c, rv_err **err);
RV_MUST_CHECK int rv_child_recover(struct child *c, int64_t gap_us, struct rv_effects *out, rv_err **err);
void rv_child_free(struct child *c);

/* visit_layers.c: what stands before the prompt */
RV_MUST_CHECK int rv_visit_write_layers(const rv_visit *v, rv_jw *w, rv_err **err);

/* visit_visible.c: the text that users are shown, which is the text that is kept */
void rv_visible_init(struct model_progress *t);
/** A reply's words. has_calls: it asked for tools beside them. */
void rv_visible_own(rv_visit *v, rv_str text, bool has_calls);
/** The words of a model call that broke off were shown, too; not those of a structured agent. */
void rv_visible_partial(rv_visit *v);
/** Tells whether the agent's text is hidden now because child_text prefers the text of another agent. Always false for
 * runs of the older rules. */
bool rv_visible_is_muted(const rv_visit *v);
/** The same of an agent that it asks now. */
bool rv_visible_mutes_child(const rv_visit *v);
/** Those of an agent that was asked. failed: the asking one has to be heard again. */
void rv_visible_child(rv_visit *v, rv_str text, bool failed);
/** The object of a structured agent whose turn is completed: told once, as an event; nothing for others. */
RV_MUST_CHECK int rv_visible_output(rv_visit *v, struct rv_effects *out, rv_err **err);

/* visit_rows.c: the turn as rows */
/** Have the rows of the turn kept; nothing where no session is kept, or they are kept already. */
RV_MUST_CHECK int rv_visit_keep_rows(rv_visit *v, enum rv_turn_status status, struct rv_effects *out, rv_err **err);
/** The rows of the chained call. */
RV_MUST_CHECK int rv_visit_keep_chain(rv_visit *v, const char *call_id, struct rv_effects *out, rv_err **err);
/** A UUID that follows from the run, the visit and n. */
void rv_visit_uuid(const rv_visit *v, const char *what, int64_t n, char out[RV_UUID_MAX]);

/* visit_chain.c */
int rv_visit_chain(rv_visit *v, struct rv_effects *out, rv_err **err);
int rv_visit_chain_done(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err);

/* visit_action.c */
/** A tool's result may be an action: then it is told to observers, and may name the session or end a routing. */
RV_MUST_CHECK int rv_visit_action(rv_visit *v, size_t index, json_object *entry, struct rv_effects *out, rv_err **err);

/* visit_gate.c */
struct visit_step {
    rv_str id, tool;
    json_object *parameters; /* borrowed; NULL: none */
    enum rv_risk risk;
};
int rv_visit_suspend(rv_visit *v, const struct visit_step *step, struct rv_effects *out, rv_err **err);
/** Stop at a call whose outcome is unknown until a person says whether it happened. */
int rv_visit_ask_outcome(rv_visit *v, const struct visit_step *step, const char *key, struct rv_effects *out,
                         rv_err **err);
int rv_visit_resume_work(rv_visit *v, rv_err **err); /* picks up what was suspended */

/* visit_hooks.c */
int rv_visit_pre(rv_visit *v, struct rv_effects *out, rv_err **err);
int rv_visit_mock(rv_visit *v, struct rv_effects *out, rv_err **err);
int rv_visit_policy(rv_visit *v, struct rv_effects *out, rv_err **err);
int rv_visit_post(rv_visit *v, struct rv_effects *out, rv_err **err);
int rv_visit_route(rv_visit *v, struct rv_effects *out, rv_err **err);
int rv_visit_hook_done(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err);

/* visit_view.c */
void rv_visit_write_view(const rv_visit *v, const struct rv_str_list *sees, rv_jw *w);

/* end_outcome.c */
int rv_visit_check(rv_visit *v, struct rv_effects *out, rv_err **err);
int rv_visit_store(rv_visit *v, rv_err **err);
int rv_visit_settle(rv_visit *v, struct rv_effects *out, rv_err **err);

/* visit_end.c */
int rv_visit_finish(rv_visit *v, struct rv_effects *out, rv_err **err); /* routed_* are set */
int rv_visit_stay(rv_visit *v, struct rv_effects *out, rv_err **err);   /* an interrupt keeps the run here */

/* visit_fail.c */
/** The visit fails with that error, once the current phase returns to the driver. Its code follows from the type. */
#define rv_visit_fail(v, type, err, ...)                                                                               \
    rv_visit_fail_at((v), RV_FAILURE_NONE, (type), __FILE__, __LINE__, (err), __VA_ARGS__)
/** The same with a code that is finer than the type. */
#define rv_visit_fail_as(v, code, type, err, ...)                                                                      \
    rv_visit_fail_at((v), (code), (type), __FILE__, __LINE__, (err), __VA_ARGS__)
int rv_visit_fail_at(rv_visit *v, enum rv_failure code, const char *type, const char *c_file, int c_line, rv_err **err,
                     const char *fmt, ...) RV_PRINTF(7, 8);
/** The same with the chain of `cause` (taken) as text; RV_E_NOMEM in it is passed up instead. */
int rv_visit_fail_cause(rv_visit *v, const char *type, rv_err *cause, rv_err **err);
/** After a failure by a call: its causes are those of the visit's failure. */
void rv_visit_fail_by(rv_visit *v, const struct rv_event *ev);
/** The code of a failed call. */
enum rv_failure rv_event_failure(const struct rv_event *ev);
/** The code of an entry of `results`, by its error type. */
enum rv_failure rv_failure_of_tool(const char *type);
/** Member `code` of an event, in runs whose rules have it. NONE: nothing. */
void rv_visit_write_code(const rv_visit *v, enum rv_failure code, rv_jw *w);

/* end_failure.c */
int rv_visit_failed(rv_visit *v, struct rv_effects *out, rv_err **err);

#endif
