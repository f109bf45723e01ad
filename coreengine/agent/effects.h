/* What a step of the core appends, effects with the observable events among them, and what the core is told: events. */
#ifndef RV_AGENT_EFFECTS_H
#define RV_AGENT_EFFECTS_H

#include "coreengine/conversation/conversation.h"
#include "coreengine/model/llm/llm.h"
#include "coreengine/tools/tools.h"
#include "envelope/envelope.h"

/* --- Effects: what the core wants done ------------------------------------------------------------------------- */
#define RV_EFFECT_KINDS(X)                                                                                             \
    X(CALL_LLM, "call_llm", "a model is to be asked")                                                                  \
    X(CALL_TOOL, "call_tool", "a tool is to be called")                                                                \
    X(CALL_HOOK, "call_hook", "hook, policy, mock or routing function: see `entry`")                                   \
    X(CANCEL_CALL, "cancel_call", "the answer to call_id is not wanted any more")                                      \
    X(ARM_TIMER, "arm_timer", "a timer event for call_id at `at_us`")                                                  \
    X(EMIT, "emit", "an observable event, as one line of JSON")                                                        \
    X(SAVE, "save", "the state dict to be saved now")                                                                  \
    X(KEEP, "keep", "rows for the session of the run: durable with the step")                                          \
    X(ARTIFACT, "artifact", "what a call made for people: durable with the step")                                      \
    X(FINISH, "finish", "the run is over (or waits for an answer); always the last effect")
#define RV_EFFECT_KIND_CONST(n, t, m) RV_EFFECT_##n,
enum rv_effect_kind { RV_EFFECT_KINDS(RV_EFFECT_KIND_CONST) };

/* The kinds of observable events (the typed stream). */
#define RV_EMITS(X)                                                                                                    \
    X(PIPELINE_STARTED, "pipeline_started", "a run or resume begins")                                                  \
    X(STAGE_STARTED, "stage_started", "a visit begins; precedes everything of that visit")                             \
    X(LLM_CALL_START, "llm_call_start", "a model is asked")                                                            \
    X(LLM_RESULT, "llm_result", "the model answered or failed")                                                        \
    X(TOOL_CALL_START, "tool_call_start", "a tool is called")                                                          \
    X(TOOL_RESULT, "tool_result", "a tool answered, failed, or was not allowed to run")                                \
    X(ARTIFACT, "artifact", "a call of a plan made something for people; follows its tool_result")                     \
    X(RETRY, "retry", "an attempt failed and another will follow")                                                     \
    X(STAGE_COMPLETED, "stage_completed", "a visit ended, well or not; carries its output")                            \
    X(ROUTING_DECISION, "routing_decision", "where the run goes next and why")                                         \
    X(STAGE_SKIPPED, "stage_skipped", "a stage that waited for a failed one does not run")                             \
    X(ITERATION, "iteration_incremented", "a loop-back was taken")                                                     \
    X(BATCH, "parallel_batch", "stages start side by side")                                                            \
    X(BRANCH_STARTED, "branch_started", "a branch of a group begins")                                                  \
    X(BRANCH_ENDED, "branch_ended", "a branch arrived at its join, ended, failed or was cancelled")                    \
    X(GROUP_SETTLED, "group_settled", "a group is over, and its changes are merged")                                   \
    X(INTERRUPT_PENDING, "interrupt_pending", "the run needs an answer")                                               \
    X(ACTION, "action", "a tool's result is an action for observers: its type and payload")                            \
    X(AGENT_STARTED, "agent_started", "an agent that was asked begins")                                                \
    X(AGENT_COMPLETED, "agent_completed", "it has answered or failed; precedes the tool_result of the call")           \
    X(CUSTOM, "custom", "a capability publishes an event of its own; no journal has it")                               \
    X(TOOL_PROGRESS, "tool_progress", "a tool says how far its call is; no journal has it")                            \
    X(WARNING, "warning", "something is probably not as meant")                                                        \
    X(ERROR, "error", "what ended the run badly")                                                                      \
    X(DONE, "done", "the run is over or waits; always last, always once")
#define RV_EMIT_CONST(n, t, m) RV_EMIT_##n,
enum rv_emit_kind { RV_EMITS(RV_EMIT_CONST) RV_N_EMITS };
const char *rv_emit_text(enum rv_emit_kind kind); /* static; "unknown" for a value outside the list */
int rv_emit_of(rv_str word);                      /* enum rv_emit_kind; RV_UNSET: it is not the type of an event */

#define RV_KEY_MAX 160 /* bytes of an idempotency key: parts of names and a hash, which tells what was cut off */

/* Identifies the delegated agent that an effect belongs to. Owned by the run with its texts, until that is freed. */
struct rv_origin {
    const char *agent;               /* its name */
    int depth;                       /* 1: asked by a stage */
    const char *parent_tool_call_id; /* the id of the tool call by which it was asked */
    const struct rv_origin *parent;  /* NULL: a stage asked */
    int rules;                       /* of its run */
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
    char *about; /* ARTIFACT: what is known about it, JSON text; its content is `request`. CALL_TOOL: what the tool
                    asked for, with the answers: {round, state?, answers}; NULL: nothing. Owned */
    size_t about_len;
    struct rv_turn *turn;                  /* KEEP: owned; take it by setting it to NULL */
    int64_t deadline_us;                   /* CALL_*: answer by then or report a timeout; 0: none */
    int64_t at_us;                         /* ARM_TIMER */
    int effect_class;                      /* CALL_TOOL: enum rv_effect_class */
    char *key;                             /* CALL_TOOL, CALL_LLM: idempotency key; owned; NULL: none */
    enum rv_emit_kind emit;                /* EMIT */
    size_t text_at, text_len;              /* EMIT: where its line stands in rv_effects.text (without line end) */
    enum rv_run_status status;             /* FINISH */
    int64_t worst_tokens, worst_micro_usd; /* CALL_LLM: the most that it can take */
    bool is_beside;                        /* CALL_TOOL: other work of the run may call models meanwhile */
    bool wants_result;                     /* CALL_TOOL: of a plan, which reads a result of `tools/call` as it came */
    int64_t models_left, money_left;       /* CALL_*: model calls that it may cause; what they may cost in
                                              micro-dollars, -1: anything, for no run around it has a budget */
    bool is_hidden;                        /* CALL_LLM: the text of the reply is not shown */
    bool hides_calls;                      /* CALL_LLM: nor are the calls in it, until hooks have looked at them */
    int64_t ids_upto;                      /* see rv_call_write_name() */
    json_object *ids;                      /* CALL_LLM: ids of tool calls that are taken, as keys; owned; NULL: none */
    const struct rv_origin *origin;        /* borrowed from the run; NULL: the stage's own */
    const struct rv_pipeline *pipeline;    /* CALL_*: has its names, roles and limits; borrowed; outlives the run */
    int agent;                             /* CALL_*: index of the agent in `pipeline` */
    char *path;    /* of the branch, the element or the inner run; owned; NULL: the main branch */
    char *label;   /* of a stage of an inner run: names of the stages that lead there, as "sub/inner"; owned; NULL: the
                      stage's own name */
    int64_t index; /* of the element of a list, from 0; -1: not in a list */
};
/* Zero it before first use. One owner; reused from step to step. */
struct rv_effects {
    struct rv_effect *items; /* owned */
    size_t n, cap;
    rv_buf text;    /* lines of the EMIT effects */
    int64_t now_us; /* time of the step: of its event, set by rv_run_step() */
    int rc;         /* sticky RV_E_NOMEM of an append; the function that made the step checks it */
};
#define RV_EFFECTS_MAX_TEXT ((size_t)256 << 20) /* one step's event lines: they are in memory until they are told */
void rv_effects_clear(struct rv_effects *e);    /* frees what was not taken, keeps the memory */
void rv_effects_fini(struct rv_effects *e);
void rv_effect_fini(struct rv_effect *e); /* of one that was copied out of its list, which has none of its texts */
rv_str rv_effect_text(const struct rv_effects *all, const struct rv_effect *e); /* EMIT: the line */
/** Append a zeroed effect of that kind; NULL (and sticky rc) when memory is short. Valid until the next append. */
struct rv_effect *rv_effects_add(struct rv_effects *e, enum rv_effect_kind kind);

/* --- Events: what the core is told ------------------------------------------------------------------------------ */
#define RV_EVENT_KINDS(X)                                                                                              \
    X(START, "start", "the run begins")                                                                                \
    X(LLM_DONE, "llm_done", "a model answered or failed")                                                              \
    X(TOOL_DONE, "tool_done", "a tool answered or failed")                                                             \
    X(HOOK_DONE, "hook_done", "the same of what CALL_HOOK called")                                                     \
    X(TIMER, "timer", "the time of ARM_TIMER has come")                                                                \
    X(ANSWER, "answer", "to the pending interrupt")                                                                    \
    X(CANCEL, "cancel", "a person or a program ends the run")                                                          \
    X(RECOVER, "recover", "the run goes on in another process; the time since its last event does not count")
#define RV_EVENT_KIND_CONST(n, t, m) RV_EVENT_##n,
enum rv_event_kind { RV_EVENT_KINDS(RV_EVENT_KIND_CONST) };
/* What it points to is borrowed for the step. */
struct rv_event {
    enum rv_event_kind kind;
    int64_t now_us;
    int64_t call_id;          /* LLM_DONE, TOOL_DONE, HOOK_DONE, TIMER */
    bool failed;              /* *_DONE; CANCEL: the engine ends the run as failed, by `error` */
    rv_str reply;             /* *_DONE, not failed: JSON text; LLM_DONE: the model's text; CANCEL: what had come of
                                 model calls under way, [{call_id, text}], or empty */
    const char *error_type;   /* failed: "LLMError", "TimeoutError", "ExecutionError", ...; NULL: by kind */
    rv_str error;             /* failed: text */
    const char *code;         /* failed: a word of enum rv_failure; NULL: by error type and kind */
    rv_err **causes;          /* failed: for --debug; no journal has them. The core may take them, and leaves NULL */
    bool retryable;           /* failed: a repeat may help */
    bool asks;                /* TOOL_DONE, not failed: the tool asks a person, and `reply` says what; the call is over,
                                 and is made again with the answers: see input.c */
    bool unknown;             /* TOOL_DONE: the caller died and it is unknown whether the tool ran; a person decides */
    struct rv_llm_answer llm; /* LLM_DONE; TOOL_DONE: its usage, that of models that the call asked for. In other events
                                 RV_LLM_ANSWER_NONE or zeroed. LLM_DONE, failed: `reply` has the text that had come */
    struct rv_response response; /* ANSWER */
    json_object *blocked;        /* any: names of the tools whose breaker is open; borrowed; NULL: none */
};

/* --- Observable events ----------------------------------------------------------------------------------------------
 */
struct rv_visit_shared;
/* A member of an observable event, or of an object; key NULL: left out. Texts and values are borrowed for the call. */
struct rv_member {
    const char *key;
    enum rv_member_kind {
        RV_MEMBER_INT,
        RV_MEMBER_BOOL,
        RV_MEMBER_TIME,    /* n: microseconds */
        RV_MEMBER_STR,     /* a text that is there */
        RV_MEMBER_TEXT,    /* or null */
        RV_MEMBER_PREVIEW, /* its beginning */
        RV_MEMBER_VALUE,   /* or null */
        RV_MEMBER_OBJECT,  /* or {} */
        RV_MEMBER_RESULT,  /* of call n, or where it is found when it is long */
        RV_MEMBER_NAMES,   /* the name of each item */
        RV_MEMBER_STAGES,  /* the names of n stages */
        RV_MEMBER_USAGE,
    } kind;
    int64_t n;
    rv_str str;
    json_object *value;
    const int *stages;
    const struct rv_usage *usage;
};
#define RV_M_INT(k, i)       ((struct rv_member){.key = (k), .kind = RV_MEMBER_INT, .n = (i)})
#define RV_M_BOOL(k, b)      ((struct rv_member){.key = (k), .kind = RV_MEMBER_BOOL, .n = (b)})
#define RV_M_STR(k, s)       ((struct rv_member){.key = (k), .kind = RV_MEMBER_STR, .str = (s)})
#define RV_M_TEXT(k, t)      ((struct rv_member){.key = (k), .kind = RV_MEMBER_TEXT, .str = rv_str_of(t)})
#define RV_M_PREVIEW(k, s)   ((struct rv_member){.key = (k), .kind = RV_MEMBER_PREVIEW, .str = (s)})
#define RV_M_OF(knd, k, v)   ((struct rv_member){.key = (k), .kind = RV_MEMBER_##knd, .value = (v)})
#define RV_M_STAGES(k, s, i) ((struct rv_member){.key = (k), .kind = RV_MEMBER_STAGES, .n = (i), .stages = (s)})
#define RV_M_USAGE(k, u)     ((struct rv_member){.key = (k), .kind = RV_MEMBER_USAGE, .usage = (u)})
#define RV_M_IF(is, member)  ((is) ? (member) : (struct rv_member){0})
struct rv_visit_place;
/* What every observable event says: what happened, where and when. */
struct rv_emit_head {
    enum rv_emit_kind kind;
    int stage;                          /* -1: none */
    int64_t visit;                      /* with a stage */
    const struct rv_visit_place *place; /* borrowed for the call; NULL: the main branch */
    int64_t now_us;
};
/** Emit an event {seq, type, time, stage?, visit?, path?, index?, members}. The effect, valid until the next one; NULL:
 * nothing is written, since no observer listens, or memory is short (sticky in out). */
struct rv_effect *rv_emit(struct rv_visit_shared *shared, struct rv_effects *out, const struct rv_emit_head *head,
                          const struct rv_member *members, size_t n);
/** Say where an effect of that stage of shared's pipeline belongs: stage, agent, path, label, index. RV_E_NOMEM. */
RV_MUST_CHECK int rv_effect_set_place(struct rv_effect *e, const struct rv_visit_shared *shared, int stage,
                                      const struct rv_visit_place *place, rv_err **err);

/** Set members of an object: INT, BOOL, STR, TEXT and VALUE. obj NULL: no memory. */
RV_MUST_CHECK int rv_members_set(json_object *obj, const struct rv_member *members, size_t n, rv_err **err);
#define RV_SET(obj, err, ...)                                                                                          \
    rv_members_set(obj, (const struct rv_member[]){__VA_ARGS__},                                                       \
                   sizeof(const struct rv_member[]){__VA_ARGS__} / sizeof(struct rv_member), err)

/* Forms of tools that ask a person. An answer that is kept for later is checked first, because a run that waits has no
 * process that could refuse it. */

/** Does the answer to a question of rv_interrupt_asks_input() fit its form? data: of the question. RV_E_INVALID. */
RV_MUST_CHECK int rv_input_check(json_object *data, const struct rv_response *response, rv_err **err);

#endif
