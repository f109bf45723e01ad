/* Shared by the files about tools and asked agents: offer.c, step.c, tools.c, pending.c, child.c, suspend.c, chain.c.
 */
#ifndef RV_TOOLS_INTERNAL_H
#define RV_TOOLS_INTERNAL_H

#include <string.h>

#include "coreengine/agent/effects.h"
#include "coreengine/agent/planned_internal.h"

/** The text under a key of a call or a message; empty: it is not there, or is not a text. Borrowed. */
static inline rv_str agent_call_text(json_object *call, const char *key)
{
    json_object *text = NULL;

    json_object_object_get_ex(call, key, &text);
    return rv_json_str(text);
}
/** Add a copy of the value under that key; nothing for NULL. suspend.c */
RV_MUST_CHECK int visit_keep_copy(json_object *kept, const char *key, json_object *value, rv_err **err);

/* --- offer.c: which tools there are --- */
/** The tools that the stage's model may call, as a request has them; NULL in *offered when there are none. Borrowed. */
RV_MUST_CHECK int agent_tools_offered(rv_visit *v, json_object **offered, rv_err **err);
/** The tool of that name: the engine's own, or the catalog's; NULL: unknown. */
const struct rv_tool_info *visit_tool(const rv_visit *v, rv_str name);
/* The request of a call of ask_agent; borrowed from its parameters. */
struct ask {
    const char *agent;
    rv_str document; /* the agent's, when it has come */
    rv_str text;
    json_object *data; /* NULL: none */
    int64_t timeout_us;
    int structured; /* RV_UNSET, 0 or 1 */
};
/** Tells whether the agent may be asked (depth, number of calls, user). False: `why` has the reason. */
bool agent_ask_allowed(const rv_visit *v, json_object *parameters, struct ask *out, rv_buf *why);

/* --- resources.c: tools with a URI --- */
/** Those of the agent's document; none, if nothing reads resources. A visit ends them in any case. */
RV_MUST_CHECK int agent_resources_open(rv_visit *v, rv_err **err);
void agent_resources_fini(rv_visit *v);
const struct rv_tool_info *agent_resource_tool(const rv_visit *v, rv_str name); /* NULL: it is not one of them */
/** Does its URI have a word that the conversation would have to say, and does not? */
bool agent_resource_lacks(const rv_visit *v, rv_str name, rv_str *word);
/** The arguments of the call of read_resource; false: the tool is not one of them. */
bool agent_resource_request(const rv_visit *v, rv_str name, json_object *arguments, rv_buf *out);

/* --- client_tools.c: tools that the client calls --- */
/** Those of the stage; an agent that was asked has none. A visit ends them in any case. */
RV_MUST_CHECK int agent_client_tools_open(rv_visit *v, rv_err **err);
void agent_client_tools_fini(rv_visit *v);
const struct rv_tool_info *agent_client_tool(const rv_visit *v, rv_str name); /* NULL: it is not one of them */
/** The client has answered. */
RV_MUST_CHECK int agent_client_calls_answered(rv_visit *v, json_object *answer, rv_err **err);

/* --- client_calls.c --- */
/** The step at hand is one: it goes behind the others, or, when there are none, the stage waits for the client. */
RV_MUST_CHECK int agent_client_calls_wait(rv_visit *v, struct rv_effects *out, rv_err **err);
/** Its result of the step at hand; told borrows from reply. */
RV_MUST_CHECK int agent_client_call_take(rv_visit *v, rv_buf *reply, struct rv_event *told, rv_err **err);
/** The results are messages: what the person said with them becomes the next one. */
RV_MUST_CHECK int agent_client_calls_over(rv_visit *v, rv_err **err);
#define RV_MESSAGE_IS_NEW "is_new" /* of such a message: it becomes a row */

/* --- step.c: one step --- */
json_object *visit_plan(const rv_visit *v); /* the steps of the plan as they stand; borrowed; NULL: none */
rv_str agent_step_tool(const rv_visit *v, size_t index);
rv_str agent_step_id(const rv_visit *v, size_t index, char *scratch, size_t size);
json_object *agent_step_parameters(const rv_visit *v, size_t index);
/** The step that the call with that index in the reply under way is: those of the client went behind the others. */
size_t agent_step_of_call(const rv_visit *v, json_object *call, size_t index);
bool agent_step_asks_agent(const rv_visit *v, size_t index);
/* The decisions about a step before its tool may run. */
enum step_verdict { STEP_RUNS, STEP_ASKS, STEP_IS_CLIENTS, STEP_IS_BAD, STEP_IS_BLOCKED };
struct step_judgement {
    enum step_verdict verdict;
    const struct rv_tool_info *info; /* RUNS, ASKS, IS_CLIENTS; borrowed from the catalog */
    const char *error_type;          /* IS_BAD, IS_BLOCKED; static */
    bool recoverable;
    rv_buf text; /* IS_BAD, IS_BLOCKED: why; owned */
};
RV_MUST_CHECK int agent_step_judge(const rv_visit *v, size_t index, struct step_judgement *out, rv_err **err);
/** Tells whether the breaker of that tool is open; if so, `why` receives the reason. */
bool agent_tool_is_refused(const rv_visit *v, rv_str tool, rv_buf *why);
/** Do tool calls have idempotency keys? */
bool agent_tools_have_keys(const rv_visit *v);
/** The key of the call of a step. since_us: when its first attempt in this visit was made. */
void agent_step_write_key(const rv_visit *v, size_t index, int64_t since_us, rv_buf *key);
/* A call of a step. */
struct step_call {
    size_t index;                    /* of the step */
    int64_t attempt;                 /* 1-based */
    const struct rv_tool_info *info; /* borrowed */
};
/** Ask for it; the caller waits for it. *call_id 0: the visit ended instead. */
RV_MUST_CHECK int agent_step_call(rv_visit *v, const struct step_call *which, int64_t *call_id, struct rv_effects *out,
                                  rv_err **err);
/** Tells whether the failed call may be repeated: its error may pass, and its tool is not non_idempotent. */
bool agent_step_may_repeat(const rv_visit *v, size_t index, const struct rv_event *ev, int64_t *max_retries);
/** The entry of `results` for a step whose call was answered; *out is the caller's. */
RV_MUST_CHECK int agent_step_entry(rv_visit *v, size_t index, const struct rv_event *ev, int64_t ms, json_object **out,
                                   rv_err **err);
/* Why a step could not be called, or failed. Borrowed for the call. */
struct step_failure {
    const char *type; /* error type */
    rv_str message;
    bool recoverable; /* a repeat may help */
    int64_t ms;       /* how long its call took */
};
/** The entry of such a step. */
RV_MUST_CHECK int agent_step_error(rv_visit *v, size_t index, const struct step_failure *why, json_object **out,
                                   rv_err **err);
/* What a call was given and, with call_id, its result, as members of an event; not of runs of the older rules. */
#define RV_M_ARGUMENTS(v, a) RV_M_IF((v)->shared->rules >= RV_RULES_2, RV_M_OF(OBJECT, "arguments", a))
#define RV_M_RESULT(v, r, call_id)                                                                                     \
    RV_M_IF((v)->shared->rules >= RV_RULES_2 && (r),                                                                   \
            ((struct rv_member){.key = "result", .kind = RV_MEMBER_RESULT, .n = (call_id), .value = (r)}))

/* --- tools.c: the order of steps --- */
RV_MUST_CHECK int visit_tools(rv_visit *v, struct rv_effects *out, rv_err **err);
RV_MUST_CHECK int visit_tool_done(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err);
RV_MUST_CHECK int visit_tool_hook_done(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err);
/** A call that the model asked for is not made. A model that repeats such calls is stopped: the visit fails. */
RV_MUST_CHECK int agent_tools_count_bad(rv_visit *v, const char *why, rv_err **err);
void visit_tools_fini(struct tool_progress *t);
/** A step has its entry: it is counted and told to observers. If the result is an action, that is told, too, and may
 * name the session or end a routing. */
RV_MUST_CHECK int agent_step_ended(rv_visit *v, size_t index, json_object *entry, int64_t call_id,
                                   struct rv_effects *out, rv_err **err);

/* --- pending.c: safe calls side by side --- */
/** Begin the calls from `at` on that may run so; *n 0: there are not at least two. */
RV_MUST_CHECK int agent_pending_begin(rv_visit *v, size_t *n, struct rv_effects *out, rv_err **err);
/** Begin the next n steps of a plan, each when those that it needs have ended. */
RV_MUST_CHECK int agent_pending_begin_planned(rv_visit *v, size_t n, struct rv_effects *out, rv_err **err);
bool agent_pending_wait_for(const rv_visit *v, int64_t call_id);
RV_MUST_CHECK int agent_pending_on(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err);
/** Give them up; partials as rv_visit_cancel(). */
RV_MUST_CHECK int agent_pending_cancel(rv_visit *v, json_object *partials, struct rv_effects *out, rv_err **err);
RV_MUST_CHECK int agent_pending_recover(rv_visit *v, int64_t gap_us, struct rv_effects *out, rv_err **err);

/* --- child.c: agents that were asked --- */
struct child {
    struct rv_visit_shared shared;
    struct rv_conversation conversation;
    rv_envelope *env; /* owned */
    rv_visit *visit;  /* owned */
    int64_t timeout_us;
};
struct child_begun {
    struct child *child; /* owned; NULL: `entry` says why the agent could not begin */
    json_object *entry;  /* owned; NULL without a child: the answer is not a document (a script's stand-in) */
};
/** The document arrived: begin the delegated agent. answer: the reply to the call. */
RV_MUST_CHECK int agent_child_begin(rv_visit *v, size_t index, rv_str answer, struct child_begun *begun,
                                    struct rv_effects *out, rv_err **err);
/** The agent may not be asked: *entry is the entry of `results` for the call, with that reason. */
RV_MUST_CHECK int agent_child_refuse(rv_visit *v, size_t index, const char *why, json_object **entry, rv_err **err);
/** The agent has ended: *entry is the entry of `results` for its call; rows, usage and text become the asking visit's.
 */
RV_MUST_CHECK int agent_child_end(rv_visit *v, size_t index, struct child *c, int64_t ms, json_object **entry,
                                  rv_err **err);
/** It is given up with the asking visit, which keeps its rows. partials: as rv_visit_cancel(). */
RV_MUST_CHECK int agent_child_give_up(rv_visit *v, size_t index, struct child *c, json_object *partials,
                                      struct rv_effects *out, rv_err **err);
RV_MUST_CHECK int agent_child_recover(struct child *c, int64_t gap_us, struct rv_effects *out, rv_err **err);
void agent_child_free(struct child *c);

/* --- suspend.c: work that waits for a person --- */
/** Ask, keep with the envelope what is done so far as that kind of work, and leave the run at this stage. */
RV_MUST_CHECK int visit_pause(rv_visit *v, const struct visit_question *q, const char *work, struct rv_effects *out,
                              rv_err **err);
/** Stop before the step under way until a person approves it. */
RV_MUST_CHECK int visit_suspend(rv_visit *v, const struct rv_tool_info *info, struct rv_effects *out, rv_err **err);
/** Stop at the step under way, whose outcome is unknown, until a person says whether it happened. */
RV_MUST_CHECK int visit_ask_outcome(rv_visit *v, struct rv_effects *out, rv_err **err);
/** What the stage was suspended with, if it is of this kind; NULL: it is not. Borrowed from env. */
json_object *visit_kept(const struct rv_visit_shared *shared, int stage, const rv_envelope *env, const char *kind);
RV_MUST_CHECK int visit_resume_work(rv_visit *v, rv_err **err); /* picks up what was suspended */

/* --- input.c: tools that ask a person before they can answer --- */
/** The call under way asks a person: the questions are kept with the step, and the stage waits; or *entry, the
 * caller's, says why it cannot. */
RV_MUST_CHECK int agent_input_asked(rv_visit *v, const struct rv_event *ev, int64_t ms, json_object **entry,
                                    struct rv_effects *out, rv_err **err);
RV_MUST_CHECK int agent_input_ask(rv_visit *v, struct rv_effects *out, rv_err **err); /* the first one that is open */
/* --- input_answer.c --- */
json_object *
agent_input_open(const rv_visit *v); /* the first question of the step under way; borrowed; NULL: none is open */
/** Take the answer to the question that agent_input_open() gives; answer NULL: there is none yet. */
RV_MUST_CHECK int agent_input_answered(rv_visit *v, json_object *answer, rv_err **err);
/** The state and answers that the next call is given; NULL in *out: the tool asked nothing. */
RV_MUST_CHECK int agent_input_write(const rv_visit *v, char **out, size_t *len, rv_err **err);

/* --- chain.c --- */
RV_MUST_CHECK int visit_chain(rv_visit *v, struct rv_effects *out, rv_err **err);
RV_MUST_CHECK int visit_chain_done(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err);
RV_MUST_CHECK int visit_chain_hook_done(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err);

/* May other stages, elements, agents or steps of the run be at work while a call of the visit is? */
static inline bool visit_is_beside(const rv_visit *v)
{
    const struct rv_visit_shared *s = v->shared;
    const char *path = v->place.path ? v->place.path : "";

    return s->is_beside || v->tools.n_pending > 1 || v->place.index >= 0 || strpbrk(path, ":[") ||
           (!v->route && !s->origin); /* of a delegated agent, too */
}

#endif
