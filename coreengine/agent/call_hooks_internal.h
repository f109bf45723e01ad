/* Hooks around the calls of a visit: what is kept of a call while hooks look at it. Included by agent_internal.h.
 *
 * A stage names hooks for four places: before and after a model is asked, before and after a tool is called. The hooks
 * of a place are asked one after the other, each one as a call of its own, and each sees what those before it left. */
#ifndef RV_CALL_HOOKS_INTERNAL_H
#define RV_CALL_HOOKS_INTERNAL_H

#include "coreengine/agent/agent.h"

enum hook_place { BEFORE_MODEL, AFTER_MODEL, BEFORE_TOOL, AFTER_TOOL, N_HOOK_PLACES };

enum hook_side {
    HOOKS_NOT_ASKED, /* the call is still to be looked at */
    HOOKS_BEFORE,    /* a hook before the call is asked */
    HOOKS_PASSED,    /* the call may be made, or is under way */
    HOOKS_AFTER,     /* a hook after the call is asked */
    HOOKS_DONE,      /* what the call came to is final */
};

/* Of one tool call: of a step, of a pending call, of the chained call. */
struct tool_hooks {
    enum hook_side side;
    size_t at;              /* in the list of that side: the hook that is asked */
    int64_t call_id;        /* of the tool call; 0: it was not made */
    bool is_refused;        /* a hook blocked the call before it was made */
    json_object *arguments; /* as hooks left them; owned; NULL: as they were asked for */
    json_object *entry;     /* AFTER, DONE: what the call came to; owned */
};
void agent_tool_hooks_fini(struct tool_hooks *h); /* and zeroed */

/* Of one request to a model. */
struct model_hooks {
    enum hook_side side;
    size_t at;
    bool is_repeated;     /* the next request is another attempt: hooks have looked at it already */
    bool has_answered;    /* a hook answered in place of a model in this visit */
    int64_t n_left_out;   /* messages that the bound of the context left out of the request */
    json_object *request; /* BEFORE, PASSED: as hooks left it; owned */
    json_object *reply;   /* AFTER: {text, tool_calls?, finish_reason?} as hooks left it; owned */
    char *opaque;         /* AFTER: of the reply; owned; NULL: none */
    int finish;           /* AFTER: enum rv_finish_reason or RV_UNSET */
};
void agent_model_hooks_fini(struct model_hooks *h);

/* What one hook answered. */
enum hook_action { HOOK_CONTINUES, HOOK_REPLACES, HOOK_ANSWERS, HOOK_BLOCKS };
struct hook_answer {
    enum hook_action action;
    json_object *value; /* REPLACES, ANSWERS: borrowed from json */
    rv_str reason;      /* BLOCKS: cut to a bounded length; borrowed from json */
    json_object *json;  /* owned; NULL: it answered nothing */
};

/* hooks.c */
/** The parts of the envelope that an entry sees. */
void agent_hooks_write_view(const rv_visit *v, const struct rv_str_list *sees, rv_jw *w);

/* call_hooks.c */
const struct rv_str_list *agent_hooks_of(const rv_visit *v, enum hook_place place);
/** Ask the hook at `at` of that place; the visit then waits. shown: an object, whose members it is shown; borrowed. A
 *  passed stage deadline ends the visit instead: waiting_for is 0 then. */
RV_MUST_CHECK int agent_hooks_ask(rv_visit *v, enum hook_place place, size_t at, json_object *shown,
                                  struct rv_effects *out, rv_err **err);
/** Read its answer. The caller frees out->json.
 *  @return 1; 0: the visit failed by it; RV_E_NOMEM */
RV_MUST_CHECK int agent_hooks_read(rv_visit *v, enum hook_place place, size_t at, const struct rv_event *ev,
                                   struct hook_answer *out, rv_err **err);
/** What the hook answered cannot be used: the visit fails and names it. Takes cause. */
RV_MUST_CHECK int agent_hooks_fail(rv_visit *v, enum hook_place place, size_t at, rv_err *cause, rv_err **err);

/* tool_hooks.c */
/** Ask the hooks before the call of a step. Without any the side is PASSED at once. */
RV_MUST_CHECK int agent_step_hooks_before(rv_visit *v, size_t index, struct tool_hooks *h, struct rv_effects *out,
                                          rv_err **err);
/* What the call of a step came to. */
struct step_end {
    json_object *entry; /* owned */
    int64_t call_id;    /* 0: it was not made */
};
/** Ask the hooks after it. Takes the entry. Without any the side is DONE at once. */
RV_MUST_CHECK int agent_step_hooks_after(rv_visit *v, size_t index, struct tool_hooks *h, struct step_end end,
                                         struct rv_effects *out, rv_err **err);
/** One of them answered. The side then says what is due: BEFORE, AFTER: another hook is asked; PASSED: the call; DONE:
 *  the entry is final. The phase is FAILED if the answer cannot be used. */
RV_MUST_CHECK int agent_step_hooks_on(rv_visit *v, size_t index, struct tool_hooks *h, const struct rv_event *ev,
                                      struct rv_effects *out, rv_err **err);

/* bytes of the prompt, the history and the messages after it, with hooks or without: half of what a store keeps as one
 * value (RV_STORE_MAX_VALUE) */
#define AGENT_MAX_REQUEST (16 * RV_TEMPLATE_MAX_OUTPUT)

/* model_hooks.c */
/** Hand over a request that is ready to be sent: hooks look at it, and the bound of the context holds. Takes the bytes
 *  of request. *send: it may be sent, and `request` has its bytes; else the visit waits, has its answer, or failed. */
RV_MUST_CHECK int agent_model_hooks_before(rv_visit *v, rv_buf *request, bool *send, struct rv_effects *out,
                                           rv_err **err);
/** Has the model's reply looked at; ev has neither failed nor is it invalid. */
RV_MUST_CHECK int agent_model_hooks_after(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err);
RV_MUST_CHECK int agent_model_hooks_on(rv_visit *v, const struct rv_event *ev, struct rv_effects *out, rv_err **err);

/* request_change.c */
/** Put the members that a hook gives in place of those of the request. RV_E_INVALID says what may not be changed so. */
RV_MUST_CHECK int agent_request_change(const rv_visit *v, json_object *request, json_object *given, rv_err **cause);
/** Has the object no other members? */
bool agent_hooks_know_keys(json_object *object, const char *const *known, size_t n);

/* context_bound.c */
/** Leave the oldest messages out of a request until its estimate is within max tokens. *tokens: what counts beside its
 *  texts, then all that is left; *n_left_out: messages; *fits false: even so it is too long. */
RV_MUST_CHECK int agent_context_bound(json_object *request, int64_t max, int64_t *tokens, int64_t *n_left_out,
                                      bool *fits, rv_err **err);

#endif
