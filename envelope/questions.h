/* Questions for people and the answers that fit them, as data: wherever the interrupt is kept. */
#ifndef RV_QUESTIONS_H
#define RV_QUESTIONS_H

#include "envelope/terms.h"

struct rv_interrupt_rule {
    int64_t ttl_us; /* 0: never */
    bool expires, needs_response;
};
struct rv_interrupt_rule rv_interrupt_rule(enum rv_interrupt_kind kind); /* RV_UNSET: the rule for unknown kinds */
struct rv_response {                                                     /* an answer; every part optional */
    rv_str text;                                                         /* ptr NULL: not given */
    bool has_approved, approved;
    rv_str decision;        /* approve, reject, modify (or happened, not_happened, fail; or accept, decline,
                               cancel); ptr NULL: not given */
    rv_str interrupt_id;    /* which interrupt it answers; ptr NULL: the pending one */
    json_object *data;      /* borrowed; a reference is added */
    rv_str choice;          /* of a question with choices; ptr NULL: not given */
    json_object *arguments; /* of the tool call that is approved, in place of those that were shown; as data */
    bool expired;           /* no one answered in time: only the engine says so, and only of a question that is due */
    bool cancelled;         /* no answer is wanted any more; text: why */
    const char *asker;      /* the stage that asked: observers are told; not kept, and no answer needs it */
};
#define RV_ANSWER_MAX_TEXT      ((size_t)64 << 10) /* bytes of an answer with a choice: a person writes it */
#define RV_CANCEL_MAX_REASON    ((size_t)4 << 10)  /* bytes of why a question is cancelled: a person writes it */
#define RV_ANSWER_MAX_ARGUMENTS ((size_t)1 << 20)  /* bytes of changed arguments: as a question */
/** Tells whether this interrupt asks if a call happened whose outcome is unknown. The decisions are then happened (with
 *  its result as data), not_happened (the call is made again) and fail. */
#define RV_OUTCOME_UNKNOWN "outcome_unknown" /* data.reason of such an agent_review */
bool rv_interrupt_asks_outcome(enum rv_interrupt_kind kind, json_object *data);
/** Tells whether a tool asks a person before it can answer: data is {reason, tool, step_id, stage, server, schema,
 *  parameters}. The decisions are accept (with data that fits the schema), decline and cancel. */
#define RV_TOOL_INPUT "tool_input" /* data.reason of such an agent_review */
bool rv_interrupt_asks_input(enum rv_interrupt_kind kind, json_object *data);
/** Tells whether this interrupt waits for a client to call its own tools: data is {reason, stage, calls: [{id, tool,
 *  parameters}]}. The answer's data is {results: {ID: {content} or {error}}}; a call without a result was not made. Its
 *  text is what the person said besides. */
#define RV_CLIENT_TOOLS   "client_tools" /* data.reason of such an agent_review */
#define RV_CLIENT_CALLS   "calls"
#define RV_CLIENT_RESULTS "results"
bool rv_interrupt_asks_client(enum rv_interrupt_kind kind, json_object *data);
/** Tells whether the stage that asked goes on with the answer itself, whatever it is. */
bool rv_interrupt_goes_on(enum rv_interrupt_kind kind, json_object *data);
/* --- Questions with choices: the key `ask` of a stage. Their data is {ask: true, stage, options, output_key, shown}.
 */
#define RV_ASK            "ask"
#define RV_ASK_OPTIONS    "options" /* a list of choices, or the word text: any text is taken */
#define RV_ASK_SHOWN      "shown"   /* what the person decides about; absent when it is too long */
#define RV_ASK_LISTED     64        /* choices at most */
#define RV_CHOICE_YES     "yes"
#define RV_CHOICE_NO      "no"
#define RV_CHOICE_TIMEOUT "timeout" /* no one answered in time */
#define RV_CHOICE_TEXT    "text"    /* of `options: text` */
/** Tells whether an interrupt with this data is such a question. */
bool rv_interrupt_is_ask(json_object *data);
bool rv_ask_takes_text(json_object *data);
/** The choices, separated by commas. */
void rv_ask_write_options(json_object *data, rv_buf *out);
/** What the response chooses: its choice; without one, an approval is yes and a denial no. Borrowed; ptr NULL: nothing.
 */
rv_str rv_ask_choice(json_object *data, const struct rv_response *r);
/** Does an answer with these parts fit a question of that kind, whenever it comes? RV_E_INVALID. */
RV_MUST_CHECK int rv_answer_check(enum rv_interrupt_kind kind, json_object *data, const struct rv_response *r,
                                  rv_err **err);
/** Is it a question's cancellation, with a reason and nothing else? RV_E_INVALID. */
RV_MUST_CHECK int rv_answer_check_cancel(const struct rv_response *r, rv_err **err);
/** Tells whether the answer may change the arguments of a call: a confirmation that a tool stage raised for a tool. */
bool rv_interrupt_is_tool_call(enum rv_interrupt_kind kind, json_object *data);

#endif
