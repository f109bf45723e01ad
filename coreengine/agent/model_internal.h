/* Shared by the files of one visit: what a visit with a model has come to, its calls, replies and messages. */
#ifndef RV_AGENT_MODEL_INTERNAL_H
#define RV_AGENT_MODEL_INTERNAL_H

#include "coreengine/agent/call_hooks_internal.h"

struct child;   /* child.c */
struct planned; /* planned_internal.h */

/* The rows of an agent that was asked, with the tool call that asked it. */
struct child_rows {
    struct child_rows *next; /* owned by the list */
    char *call_id;           /* owned */
    struct rv_turn *rows;    /* owned */
};

/* The progress of a visit with a model: the messages after the prompt, and what was counted. */
struct model_progress {
    char *prompt; /* owned; NULL: not rendered yet */
    size_t prompt_len;
    char *system; /* of system_key; owned; NULL: not rendered yet, or none */
    size_t system_len;
    json_object *examples;    /* messages; owned; NULL: not rendered yet, or none */
    json_object *attachments; /* as a request has them; owned; NULL: not evaluated yet, or none */
    json_object *messages;    /* after the prompt; owned; NULL: none */
    json_object *ids;         /* of the tool calls in `messages`, as keys; owned; NULL: not collected yet */
    int64_t ids_upto;         /* with them: see rv_call_write_name() */
    json_object *offered;     /* tools as a request has them; owned; NULL: not looked up yet */
    rv_schema *schema;        /* the agent's output_schema; owned; NULL: not compiled yet */
    bool acting;              /* the tools that the last reply asked for are being called */
    bool has_call;            /* a model call was taken from llm_left and not made yet */
    int64_t rounds, repairs, bad_calls, tool_calls;
    int64_t bad_before;  /* of bad_calls, those of earlier replies */
    int64_t requests;    /* made so far */
    int64_t repeats;     /* of them, made again under another id, since a process died with the first */
    int64_t call_id;     /* of the last one; 0: none */
    int finish;          /* why the model ended its last reply: enum rv_finish_reason; RV_UNSET: it did not say */
    size_t steps_before; /* tool calls of earlier rounds */
    bool is_scripted;    /* a script gave the last reply, and told no usage */
    struct rv_usage usage;
    int64_t reserved_micro_usd; /* of the call under way */
    bool is_short;              /* its call waits until others need less of the budget */
    int64_t cost_micro_usd;     /* with is_short: of that call at most */
    char *priced;               /* its request, and that of a call under way which a budget pays for; owned; or NULL */
    size_t priced_len;
    /* Texts that become rows of the session. */
    rv_buf visible;                /* the text that users were shown: its own and that of agents that it asked; of a
                                      structured agent, whose text is not shown, its own */
    size_t answer_at;              /* where in `visible` the text of asked agents begins that is the answer as long as
                                      the agent itself adds nothing; SIZE_MAX: there is none */
    bool is_hidden;                /* the text of an agent that was asked is shown in place of its own */
    struct child_rows *child_rows; /* of the agents that were asked, in the order of their ends; owned */
    json_object *arguments;        /* of calls, parsed, by their ids; owned; NULL: none */
    json_object *final_calls;      /* of the reply that had the output; owned; NULL: none */
    json_object *new_calls; /* of the reply that is being judged, until they are in `messages`; owned; NULL: none */
    struct rv_usage child_usage; /* of the agents that were asked */
    struct model_hooks hooks;
};

/* --- llm.c: asking a model --- */
RV_MUST_CHECK int visit_ask_model(rv_visit *v, struct rv_effects *out, rv_err **err);
/** False when a limit of the visit or the run allows no further call, which failed the visit; else one is taken. */
bool agent_model_may_ask(rv_visit *v, int *rc, rv_err **err);
/** Ask for the call of a request whose money is set aside. Takes the bytes of request. */
RV_MUST_CHECK int agent_model_call(rv_visit *v, rv_buf *request, struct rv_effects *out, rv_err **err);

/* --- money.c: what that costs --- */
/** Send a request that hooks have looked at: sets its money aside and asks for the call, or waits for the money, or
 * fails where there is too little. Takes the bytes of request. */
RV_MUST_CHECK int agent_model_send(rv_visit *v, rv_buf *request, struct rv_effects *out, rv_err **err);
/** The visit waits for money: its timer fired, or it was told to look again. */
RV_MUST_CHECK int money_look(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err);
/** The most tokens that a call with a request of so many bytes can take. */
int64_t money_worst_tokens(const rv_visit *v, size_t request_bytes);
void money_stop_waiting(rv_visit *v); /* nothing where it does not wait */
/** The call was not made after all. */
void money_release(rv_visit *v);
/** The call is over: what it took, counted with the visit, the run and the envelope. */
void money_settle(rv_visit *v, const struct rv_event *ev);
/** The models that a call of a tool has asked count like the stage's own. Nothing for other events. */
void money_count_asked(rv_visit *v, const struct rv_event *ev);
/** The outcome of the pending call will stay unknown: the call counts as charged for, and an event tells observers
 * why. */
void money_lose(rv_visit *v, const char *why, struct rv_effects *out);
/** The same of one that is made again: the money is set aside once more, or the visit waits for it (then it waits for
 * another id). False when that fails the visit. */
bool money_recover(rv_visit *v, struct rv_effects *out, int *rc, rv_err **err);
/** The limits on tokens; false when one failed the visit. */
bool money_within_limits(rv_visit *v, int *rc, rv_err **err);
/** A reply with n calls of tools: they are counted. Too many of them fail the visit. */
RV_MUST_CHECK int money_count_tools(rv_visit *v, int64_t n, rv_err **err);

/* --- request_parts.c: the system prompt, the examples and the attachments of a stage --- */
/** Append the rendered prompt of that name. place: where the stage names it, for errors. */
RV_MUST_CHECK int agent_prompt_render(const rv_visit *v, const struct rv_src *place, const char *name, rv_buf *out,
                                      rv_err **err);
/** Is there a prompt of that name, or no name? */
bool agent_prompt_is_known(const rv_visit *v, const char *name);
/** Make those that are not made yet. A failure is the stage's. */
RV_MUST_CHECK int agent_parts_make(rv_visit *v, rv_err **err);
void agent_parts_write_system(const rv_visit *v, rv_jw *w); /* the member of a request, if there is one; the others: */
void agent_parts_write(const rv_visit *v, rv_jw *w);
/** The tokens that a model may count for the attachments of the request at most. */
int64_t agent_parts_worst_tokens(const rv_visit *v);
/** To and from what is kept while the stage waits for a person. */
RV_MUST_CHECK int agent_parts_keep(const struct model_progress *t, json_object *kept, rv_err **err);
RV_MUST_CHECK int agent_parts_take(struct model_progress *t, json_object *kept, rv_err **err);

/* --- reply.c: evaluates a model's reply --- */
RV_MUST_CHECK int visit_llm_done(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err);
/** A reply that is paid for and told to observers, as hooks left it, or that a hook gave. */
RV_MUST_CHECK int agent_reply_take(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err);

/* --- output.c: structured output --- */
/** Tells whether the output fits the agent's output_schema and required_output_fields. A null for an optional member
 * that may not be null counts as absent: it is taken out of the value, unless a declared agent gave it, whose output is
 * kept as it gave it. RV_E_INVALID lists the faults. */
RV_MUST_CHECK int agent_output_check(rv_visit *v, json_object *value, rv_err **err);
/** Take out of value what is null, optional and may not be null by schema, a JSON Schema. */
void agent_output_drop_nulls(json_object *schema, json_object *value);

/* --- messages.c --- */
/** The calls of the last reply are in `messages`, or its judgement is over. */
void agent_messages_drop_new_calls(struct model_progress *t);
/** Append the model's turn (text, calls, opaque). calls: borrowed array or NULL; those whose id was there before get
 * another one. */
RV_MUST_CHECK int agent_messages_add_reply(rv_visit *v, const struct rv_event *ev, json_object *calls, rv_err **err);
RV_MUST_CHECK int agent_messages_add_user(rv_visit *v, rv_str text, rv_err **err);
RV_MUST_CHECK int agent_messages_add_result(rv_visit *v, rv_str id, rv_str name, rv_str content, bool is_error,
                                            rv_err **err);
/** The text of an entry of `results` for the model: its content, else the data, or the error. At most
 * RV_MESSAGES_RESULT_MAX bytes. */
#define RV_MESSAGES_RESULT_MAX ((size_t)1 << 20)
void agent_messages_write_result(json_object *entry, rv_buf *out, bool *is_error);
void agent_messages_write_error(const char *type, const char *text, rv_buf *out); /* the same of an error */
/** The ids of the calls in the history and in the messages so far: model.ids, and ids_upto. */
RV_MUST_CHECK int agent_messages_collect_ids(rv_visit *v, rv_err **err);
/** The calls of a reply as an array, the caller's; NULL: none. RV_E_PARSE: the member is not a list of calls, which is
 * a fault of the provider. */
RV_MUST_CHECK int agent_messages_read_calls(const struct rv_event *ev, json_object **out, rv_err **cause);
RV_MUST_CHECK int agent_messages_tell_apart(rv_visit *v, json_object *calls, rv_err **err);

/* --- visible.c: which text users are shown, and the text that is kept --- */
void agent_visible_init(struct model_progress *t);
/** The text of a reply. has_calls: it asked for tools beside it. */
void agent_visible_own(rv_visit *v, rv_str text, bool has_calls);
/** The text of a model call that broke off was shown, too; not that of a structured agent. */
void agent_visible_partial(rv_visit *v);
/** Tells whether the agent's text is hidden now because child_text prefers the text of another agent. Always false for
 * runs of the older rules. */
bool agent_visible_is_hidden(const rv_visit *v);
/** The same of an agent that it asks now. */
bool agent_visible_hides_child(const rv_visit *v);
/** The text of an agent that was asked and is done. failed: that of the asking one is shown again. */
void agent_visible_child(rv_visit *v, const rv_visit *child, bool failed);
/** The object of a structured agent whose turn is completed: told once, as an event; nothing for others. */
RV_MUST_CHECK int agent_visible_output(rv_visit *v, struct rv_effects *out, rv_err **err);

#endif
