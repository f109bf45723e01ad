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
    PHASE_SETTLE, /* outcome and state after the output is final */
    PHASE_ROUTE,
    PHASE_DONE,
};

struct tool_progress {
    json_object *steps;   /* array; owned */
    json_object *results; /* array; owned */
    size_t at;            /* index of the step under way */
    int64_t total_ms;
    bool all_succeeded;
    bool approved;           /* the step at `at` was approved by a person */
    int64_t call_started_us; /* of the first attempt; time that does not count is taken out */
    int64_t called_us;       /* when that was */
    int64_t key_visit;       /* whose idempotency key the step at `at` has; 0: this visit's */
    enum {
        WORD_NONE,
        WORD_HAPPENED, /* a person said that the call at `at` happened, with the result `said` */
        WORD_FAIL,     /* or that the stage is to fail */
        WORD_ASK,      /* nobody has answered: ask again */
    } word;
    json_object *said; /* owned; NULL: an empty result */
    char step_id[48];  /* "step_<index>" when the step has none */
};

struct rv_visit {
    struct rv_visit_shared *shared;      /* borrowed; outlives the visit */
    const struct rv_agent_config *agent; /* borrowed from the pipeline */
    rv_envelope *env;                    /* borrowed: the run's envelope or this stage's fork */
    bool route, llm_reserved;
    enum visit_phase phase;
    int64_t visit_no, attempt, now_us, started_us, deadline_us;
    int64_t waiting_for;             /* call id, 0: nothing */
    enum rv_event_kind waiting_kind; /* what may come of it */
    int64_t last_call;               /* id of the last call, for result events */
    int64_t llm_calls;               /* attempts made */
    bool lacks_field;                /* a required output field is missing */
    bool llm_path;                   /* the LLM path ran, even if it failed before its first call */
    bool resumed;                    /* goes on with suspended work: the pre hook has run already */
    size_t policy_at;
    json_object *approved_policies; /* array of the policies whose question a person approved; owned; NULL: none */
    const char *end_text;           /* a routing function's reason to end the run; borrowed while its answer is read */
    char *confirm_message;          /* a policy wants confirmation; owned */
    unsigned n_interrupts;          /* raised so far; part of their ids */
    json_object *output;            /* of the main phase, later the stored one; owned */
    json_object *previous;          /* output under the same key before this visit; owned */
    bool had_previous, stored;
    struct tool_progress tools;
    enum rv_route_by routed_by;
    int routed_rule;
    int routed_to;
    struct rv_visit_result result;
    char *error_text; /* owned */
    const char *error_type;
};

/* visit_calls.c */
struct visit_call {
    enum rv_effect_kind kind;
    enum rv_name_kind entry;
    const char *name; /* borrowed from the pipeline */
    rv_str copy_name; /* or a name to copy; ptr NULL: use name */
    int64_t timeout_ms;
    int effect_class;
    const char *key; /* copied; NULL: none */
};
/** Ask for a call; the visit then waits. Takes the bytes of request. A passed stage deadline ends the visit instead. */
int rv_visit_call(rv_visit *v, const struct visit_call *call, rv_buf *request, struct rv_effects *out, rv_err **err);
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

/* visit_llm.c */
int rv_visit_llm(rv_visit *v, struct rv_effects *out, rv_err **err);
int rv_visit_llm_done(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err);

/* visit_tools.c */
int rv_visit_tools(rv_visit *v, struct rv_effects *out, rv_err **err);
int rv_visit_tool_done(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err);
json_object *rv_visit_plan(const rv_visit *v); /* the plan's steps as they stand; borrowed; NULL: none */
void rv_visit_tools_fini(struct tool_progress *t);

/* visit_gate.c */
struct visit_step {
    rv_str id, tool;
    json_object *parameters; /* borrowed; NULL: none */
    enum rv_risk risk;
};
int rv_visit_suspend(rv_visit *v, const struct visit_step *step, struct rv_effects *out, rv_err **err);
/** Stop at a call of which nobody knows whether it happened, until a person says so. */
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

/* visit_end.c */
int rv_visit_check(rv_visit *v, struct rv_effects *out, rv_err **err);
int rv_visit_store(rv_visit *v, rv_err **err);
int rv_visit_settle(rv_visit *v, struct rv_effects *out, rv_err **err);
int rv_visit_finish(rv_visit *v, struct rv_effects *out, rv_err **err); /* routed_* are set */
int rv_visit_stay(rv_visit *v, struct rv_effects *out, rv_err **err);   /* an interrupt keeps the run here */
int rv_visit_fail(rv_visit *v, struct rv_effects *out, const char *type, rv_err **err, const char *fmt, ...)
    RV_PRINTF(5, 6);
/** The same with the chain of `cause` (freed) as text; RV_E_NOMEM in it is passed up instead. */
int rv_visit_fail_cause(rv_visit *v, struct rv_effects *out, const char *type, rv_err *cause, rv_err **err);

bool rv_visit_is_mocked(const rv_visit *v);
bool rv_visit_is_scripted(const rv_visit *v);

#endif
