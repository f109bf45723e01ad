/* The interface between the engine and models of any provider: the request, the pieces of the answer, and the complete
 * reply. Pure: no I/O, no clock. Everything that speaks to a model (wires, scripts, capabilities) translates from and
 * to this.
 *
 * The request of a model call is one JSON object:
 *
 *     {role, provider, model,            who is asked; provider and model may be null
 *      system?, instructions?,           what the model is and is told of this request: texts, in this order
 *      examples?: [message],             questions and the answers that are wanted; never said
 *      history?: [message],              what was said before
 *      prompt,                           a text: the last word of the user
 *      attachments?: [attachment],       images and files that belong to the prompt
 *      turns?: [message],                what followed the prompt within this stage
 *      tools?: [{name, description?, parameters?}], tool_choice?: "auto" | "required" | "none",
 *      output?: {name, schema, via},     via: "auto" | "native" | "tool" | "prompt"
 *      options: {num_predict, num_ctx, temperature?, seed?},
 *      output_mode: "json" | "text"}
 *
 *     message: {role: "system" | "user", content}
 *            | {role: "assistant", content?, tool_calls?: [{id, name, arguments}], opaque?}
 *            | {role: "tool", tool_call_id, name, content, is_error?}
 *
 *     attachment: {type: "image" | "file", url | data, media_type?, name?}
 *
 * `data` is base64 on one line and has a media_type; `url` begins with https:. `arguments` is the text that the model
 * wrote, valid JSON or not. `opaque` is {provider, ...}: data that this provider wants back with the turn; other
 * providers leave it out. Every tool call of an assistant message is followed by its tool message, in order, before
 * anything else. */
#ifndef RV_LLM_H
#define RV_LLM_H

#include "config/config.h"

#define RV_OUTPUT_TOOL             "final_result" /* the tool by which a model hands over structured output */
#define RV_OUTPUT_TOOL_DESCRIPTION "The final response which ends this conversation"
#define RV_LLM_MAX_REPLY           RV_JSON_MAX_BYTES /* text and tool arguments of one reply: as any JSON text */
#define RV_LLM_MAX_TOOL_CALLS      128               /* of one reply: a model fills it */

/* --- Images and files --- */
#define RV_LLM_MAX_ATTACHMENTS      32                 /* of a request: a list of them may come from a model */
#define RV_LLM_MAX_ATTACHMENT_BYTES ((size_t)16 << 20) /* of base64, all together: they are sent with every round */
#define RV_LLM_MAX_URL              8192               /* bytes; longer ones are not understood by servers */
/* Tokens that a provider counts for one at most, where the window of the model is not known to be less. Their bytes do
 * not tell: a small file may hold a large picture or many pages. */
#define RV_LLM_IMAGE_TOKENS 65536
/* of a budget, for a file: bytes do not tell; never more than the model's context */
#define RV_LLM_FILE_TOKENS 1048576
/** Append the attachment that a value describes: a text (an https: or data: URL), an object ({url} or {data,
 *  media_type}, with type and name if it likes), a list of these; null is none. RV_E_INVALID: what is wrong with it. */
RV_MUST_CHECK int rv_attachments_add(json_object *list, json_object *value, rv_err **cause);
/** Append one that another list has, under the same limits; a reference is added. RV_E_INVALID: there are too many, or
 * too many bytes. */
RV_MUST_CHECK int rv_attachments_keep(json_object *list, json_object *attachment, rv_err **cause);

/* Tokens of a list, for the bound of a request (max_context_tokens). An estimate that depends on the list alone: */
#define RV_LLM_IMAGE_ESTIMATE  1600  /* of an image, and the least of a file */
#define RV_LLM_LINK_ESTIMATE   16000 /* of a file by its URL */
#define RV_LLM_BYTES_PER_TOKEN 16    /* of another file's bytes; of a text (text/..., JSON, XML, YAML): 4 */
int64_t rv_attachments_estimate(json_object *list); /* NULL: 0 */

/* The result of a model call besides its text: views, borrowed for the call they are handed to. */
struct rv_llm_answer {
    int finish;             /* enum rv_finish_reason; RV_UNSET: not said */
    rv_str tool_calls;      /* JSON array [{id, name, arguments}] as in a message; empty: none */
    rv_str opaque;          /* JSON object, see above; empty: none */
    const char *role;       /* of the fallback that answered; NULL: the role that was asked */
    struct rv_usage usage;  /* calls and cost are 0: the core counts and prices */
    bool has_usage;         /* false: the provider told none */
    bool is_scripted;       /* a script answered without usage: nothing is charged, and no provider is named */
    int error_kind;         /* failed: enum rv_llm_error; RV_UNSET: not known */
    bool may_be_billed;     /* failed: the provider may charge for it all the same */
    int64_t retry_after_us; /* failed: what the provider asks to wait; 0: nothing */
    int64_t latency_us, first_token_us; /* from the first of the requests on; 0: not measured */
    int64_t attempts;                   /* requests that were sent for it; 0 counts as 1 */
};
#define RV_LLM_ANSWER_NONE ((struct rv_llm_answer){.finish = RV_UNSET, .error_kind = RV_UNSET})

/** Adds the members that say something ({finish_reason?, tool_calls?, opaque?, answered_by?, usage?, error_kind?,
 * billed?, scripted?, retry_after_us?, latency_us?, first_token_us?, attempts?}) to an object, as texts and numbers.
 * tool_calls and opaque are written as texts: they are compared byte for byte. */
void rv_llm_answer_write(const struct rv_llm_answer *a, rv_jw *w);
/** Read the written form; borrows from json. Members that are missing or unknown are not set. False: a count is
 * invalid. */
bool rv_llm_answer_read(json_object *json, struct rv_llm_answer *out);

/* The same, owned, while it is put together. */
struct rv_llm_reply {
    bool failed, retryable;
    rv_buf text;                 /* failed: what had come before it broke */
    rv_buf error;                /* failed: text for people, with the provider's own words; never empty */
    rv_buf tool_calls;           /* JSON, or empty */
    rv_buf opaque;               /* JSON, or empty */
    struct rv_llm_answer answer; /* its views are not set; see rv_llm_reply_answer() */
    enum rv_failure code;        /* failed */
    const char *c_file;          /* failed: the line of reeve that found it, for --debug */
    int c_line;
};
void rv_llm_reply_init(struct rv_llm_reply *r); /* text and tool calls: at most RV_LLM_MAX_REPLY */
void rv_llm_reply_fini(struct rv_llm_reply *r);
struct rv_llm_answer rv_llm_reply_answer(const struct rv_llm_reply *r); /* views into r */
/** Make it a failure; retryable and code follow the kind (below) and may be changed afterwards. Keeps the text. */
#define rv_llm_reply_fail(r, kind, ...) rv_llm_reply_fail_at((r), (kind), __FILE__, __LINE__, __VA_ARGS__)
void rv_llm_reply_fail_at(struct rv_llm_reply *r, enum rv_llm_error kind, const char *c_file, int c_line,
                          const char *fmt, ...) RV_PRINTF(5, 6);

/** Tells whether the same request may succeed later: rate_limited, overloaded, timeout, connection, protocol. */
bool rv_llm_error_is_retryable(enum rv_llm_error kind);
/** The error type of a stage's failure: "TimeoutError", "CancelledError", else "LLMError". Static. */
const char *rv_llm_error_type(int kind);
/** The code of a failed call of that kind; RV_UNSET: RV_FAILURE_MODEL_FAILED. */
enum rv_failure rv_llm_error_code(int kind);

/* --- What comes while a model answers, in this order for each piece: a tool call starts, its arguments, its end. ---
 */
#define RV_LLM_DELTAS(X)                                                                                               \
    X(TEXT, "text", "a piece of the text")                                                                             \
    X(THINKING, "thinking", "a piece of what the model thinks aloud")                                                  \
    X(TOOL_START, "tool_call_start", "the model begins to call a tool")                                                \
    X(TOOL_ARGUMENTS, "tool_call_arguments", "a piece of the arguments' text")                                         \
    X(TOOL_END, "tool_call_end", "the arguments are complete")                                                         \
    X(USAGE, "usage", "the tokens so far")                                                                             \
    X(FINISH, "finish", "why the model stopped")
#define RV_LLM_DELTA_CONST(n, t, m) RV_LLM_DELTA_##n,
enum rv_llm_delta_kind { RV_LLM_DELTAS(RV_LLM_DELTA_CONST) RV_N_LLM_DELTAS };
struct rv_llm_delta {
    enum rv_llm_delta_kind kind;
    rv_str text;           /* TEXT, THINKING, TOOL_ARGUMENTS: whole UTF-8 sequences; never empty */
    size_t index;          /* TOOL_*: of the call within the reply, from 0 */
    rv_str id, name;       /* TOOL_START */
    struct rv_usage usage; /* USAGE: totals so far, not differences */
    int finish;            /* FINISH: enum rv_finish_reason */
};
typedef void (*rv_llm_delta_fn)(void *self, const struct rv_llm_delta *d);
/** {type: "delta", kind, ...}: the members of the kind are added; the object is left open for the caller's own. */
void rv_llm_delta_write(const struct rv_llm_delta *d, rv_jw *w);

/* --- Money: integers, micro-USD --- */
/** The cost of that usage, rounded up. 0 without a price. Cached input counts as input where it has no price of its
 * own. */
int64_t rv_llm_cost(const struct rv_price *price, const struct rv_usage *usage);
/** The most that a call with a request of so many bytes and a reply of so many tokens can cost: a token is a byte at
 * least, and what providers add unseen is allowed for. Saturates. */
int64_t rv_llm_worst_cost(const struct rv_price *price, int64_t request_bytes, int64_t max_output_tokens);

enum rv_llm_bound_state {
    RV_LLM_BOUND_PROVED,
    RV_LLM_BOUND_NO_PRICE,  /* what `role` costs is not known */
    RV_LLM_BOUND_NO_LENGTH, /* how long a request to it can be is not known */
};
/* The most that a run can cost, and the parts of that sum. */
struct rv_llm_bound {
    enum rv_llm_bound_state state;
    int64_t cost_micro_usd; /* PROVED: of a run */
    bool is_budget;         /* the budget is less than the calls can come to */
    int64_t max_calls, call_micro_usd;
    const char *role; /* of the dearest model of the dearest call; NULL: no call costs anything. Borrowed */
    int64_t model_micro_usd, request_size, reply_tokens, attempts; /* its part of the call */
    bool is_window;     /* request_size is in tokens, since that is all the model can take in; else in bytes */
    bool has_fallbacks; /* call_micro_usd has those too */
};
/** Computed from the configuration alone. max_llm_calls: of struct rv_proof. Without a budget everything that is sent
 * for a call counts, the repeated and what is asked of fallbacks. */
void rv_llm_prove_cost(const struct rv_pipeline *p, int64_t max_llm_calls, struct rv_llm_bound *out);

#endif
