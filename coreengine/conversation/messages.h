/* Messages of a session: the rows that are kept, and what of them a model is shown again. Pure: no store, no clock.
 *
 * Rows are kept whole. When a turn begins, the newest ones that fit a token budget become model messages
 * (coreengine/model/llm/llm.h): long assistant texts are shortened with a key that finds the whole again, calls of
 * tools and their results are never shortened and never parted, and whatever is in the rows, the messages keep the
 * rules of all providers. */
#ifndef RV_MESSAGES_H
#define RV_MESSAGES_H

#include "config/agentdoc/agentdoc.h"
#include "coreengine/base/base.h"
#include "envelope/envelope.h"

#define RV_MESSAGE_TYPES(X)                                                                                            \
    X(USER, "user", "what a person said")                                                                              \
    X(ASSISTANT, "assistant", "what the agent answered, with what it took")                                            \
    X(TOOL_CALL, "tool_call", "a call that the model asked for; no content")                                           \
    X(TOOL_RESPONSE, "tool_response", "the result of a call")                                                          \
    X(SYSTEM, "system", "context that was put in")                                                                     \
    X(OBSERVATION, "observation", "something observed; shown as a user's message")                                     \
    X(MEMORY, "memory", "a summary of earlier turns")                                                                  \
    X(THINK, "think", "reasoning; never shown again")                                                                  \
    X(TOOL, "tool", "a call and its result in one row")                                                                \
    X(TOOL_RESULT, "tool_result", "older name; never shown again")
#define RV_MESSAGE_CONST(n, t, m) RV_MESSAGE_##n,
enum rv_message_type { RV_MESSAGE_TYPES(RV_MESSAGE_CONST) RV_N_MESSAGE_TYPES };
const char *rv_message_type_text(enum rv_message_type type);
int rv_message_type_of(rv_str text); /* RV_UNSET: another word */

#define RV_TURN_STATUSES(X)                                                                                            \
    X(COMPLETED, "completed", "the turn ended as it should")                                                           \
    X(FAILED, "failed", "it failed; the rows are what there was until then")                                           \
    X(CANCELLED, "cancelled", "it was ended by the user or the program; the text is what had been said")
#define RV_TURN_CONST(n, t, m) RV_TURN_##n,
enum rv_turn_status { RV_TURN_STATUSES(RV_TURN_CONST) RV_N_TURN_STATUSES };
const char *rv_turn_status_text(enum rv_turn_status status);
int rv_turn_status_of(rv_str text); /* RV_UNSET: another word */

/* What a store takes of a row. Who makes rows keeps to it, whatever a model or a tool said. */
#define RV_ROW_MAX_TEXT  1024 /* bytes of the id of a call and the names in a row: they are keys of indexes */
#define RV_ROW_MAX_COUNT (INT64_C(1) << 40) /* tokens, micro-dollars or ms of one row: sums do not overflow */
#define RV_ROW_MAX_DEPTH RV_JSON_MAX_DEPTH  /* levels of tool_calls and metadata: every reader takes them */
#define RV_TURN_MAX_ROWS ((size_t)100000)   /* of one turn: one transaction writes them */

/* One row. Texts are borrowed; NULL: none. */
struct rv_message {
    const char *id;   /* UUID */
    int64_t seq;      /* within the session, from 1, without gaps; given by the store */
    const char *type; /* a word of the list above, or whatever the store has */
    bool has_content; /* false: null */
    rv_str content;
    rv_str tool_calls;   /* JSON object {name, id, arguments?}; empty: none */
    int64_t token_count; /* RV_UNSET: not known, estimated from the content */
    const char *agent_name, *model, *trace_id, *span_id, *run_id;
    bool has_usage; /* an answer: the following were counted, even if they are 0 */
    int64_t input_tokens, output_tokens, cost_micro_usd, latency_ms;
    const char *status;         /* a word of the list above; NULL: completed */
    const char *parent_call_id; /* of a delegated agent's row: the tool call of the parent; NULL: of the turn itself */
    rv_str metadata;            /* JSON object; empty: {} */
    int64_t created_us;
    /* of a row that was read */
    const char *encryption_level; /* the mode of encryption that it was written in; NULL: none was set */
    bool is_hidden;               /* content is ciphertext, which is all that a client is shown */
};

/** One estimate for all paths: a quarter of the code points, rounded down; of no text 0. */
int64_t rv_tokens_estimate(rv_str text);

/* --- What one step adds to a session: made by the core, kept with the step in one transaction --- */
/* One of rv_turn_new() owns its rows and, in `room`, its texts; else all is borrowed for the call. */
struct rv_turn {
    const char *session;            /* id */
    const char *name;               /* the session's new name; NULL: as it is */
    json_object *metadata;          /* shallow-merged into the session's; NULL: as it is */
    const char *agent_name;         /* of a session that is new */
    int64_t moment_token_threshold; /* the rows may complete a chunk (conversation.h) of this many tokens; 0: none */
    const char *moment_summariser;  /* agent that writes the summary of such a chunk; NULL: none does */
    struct rv_message *rows;
    size_t n_rows;
    /* of one that was made with rv_turn_new() */
    size_t cap_rows, bytes, max_bytes;
    rv_arena *room; /* owned; holds the texts */
    int rc;         /* sticky, see rv_turn_check() */
};
/** max_bytes: of all rows. NULL: no memory. */
struct rv_turn *rv_turn_new(size_t max_bytes);
void rv_turn_free(struct rv_turn *t); /* puts metadata */
/** Append a row with copies of its texts (type and status are not copied). */
void rv_turn_add(struct rv_turn *t, const struct rv_message *row);
void rv_turn_add_all(struct rv_turn *t, const struct rv_turn *from);
/** A copy that lives as long as the turn; NULL for none, and when that failed. */
const char *rv_turn_keep_text(struct rv_turn *t, rv_str text);
/** What went wrong while it was made: RV_E_NOMEM, RV_E_LIMIT, RV_E_INVALID (not UTF-8). */
RV_MUST_CHECK int rv_turn_check(const struct rv_turn *t, rv_err **err);
/** Rows keep the order in which they are to be read, even if a reader sorts them by time. */
void rv_turn_keep_order(struct rv_turn *t);
/** {session, agent, name?, metadata?, rows}. */
void rv_turn_write_json(const struct rv_turn *t, rv_jw *w);
/** Rows as JSON objects with commas between: {id, type, content?, tool_calls?, agent?, model?, input_tokens?, ...,
 *  status?, parent_call_id?, metadata?, at_us}. */
void rv_turn_write_rows(const struct rv_turn *t, rv_buf *out);
/** Add the rows of an array of such objects. RV_E_INVALID: one has no id, type or time. */
RV_MUST_CHECK int rv_turn_read_rows(json_object *rows, struct rv_turn *t, rv_err **err);

/* --- Recovery keys --- */
#define RV_MESSAGE_MAX_KEY 256 /* with its NUL: 255 bytes, cut with a hash where it would be longer */
/** "session-<session>-msg-<seq>". */
void rv_message_make_key(const char *session, int64_t seq, char out[RV_MESSAGE_MAX_KEY]);
/** Tells whether that text is such a key. session gets the part of its id (borrowed from key); a key that was cut has
 * none (is_cut): to find its session, make the keys of the existing sessions. */
bool rv_message_key_read(rv_str key, rv_str *session, int64_t *seq, bool *is_cut);

#define RV_LOOKUP_TOOL "search" /* the tool with which an agent follows "REM LOOKUP <key>" (p8 7.2, remlight 6) */

/* --- Shortening --- */
#define RV_COMPRESS_KEEP 200 /* code points at each end; texts up to twice that are left alone */
/** The first and last `keep` code points with a marker between that names the key (NULL: that says how much is
 *  missing). False, and out untouched: the text is not longer than 2 * keep, or would not become shorter. */
bool rv_message_compress(rv_str text, const char *key, size_t keep, rv_buf *out);

/* --- History --- */
const char *rv_replay_policy_text(enum rv_replay_policy policy);
int rv_replay_policy_of(rv_str text); /* RV_UNSET: another word */
int rv_compaction_of(rv_str text);    /* RV_UNSET: another word */

/* What the rows come to has changed since the first version; a run keeps the version that it began with. */
enum rv_history_version {
    RV_HISTORY_1 = 1, /* of runs that name none */
    RV_HISTORY_2 = 2, /* messages that only failed and calls of the output tool are left out; tool rows as remlight 14
                         reads them */
    RV_HISTORY_LAST = RV_HISTORY_2,
};
struct rv_history_opts {
    int version;          /* enum rv_history_version */
    int policy;           /* enum rv_replay_policy */
    int64_t max_tokens;   /* of what is shown; 0: nothing is; RV_UNSET: no limit */
    int64_t max_messages; /* rows; RV_UNSET: no limit */
    int64_t since_us;     /* older rows are not looked at; 0: all */
    int64_t always_last;  /* rows at the end that are never shortened */
    bool compress;
    int64_t compress_keep; /* see rv_message_compress() */
    bool names_keys;       /* shortened texts say by which key the whole is found: for agents that can look it up */
    bool count_tool_rows;  /* rows that are not shown use up the budget, too (as p8 had it) */
    bool compacts;         /* instead of shortening: older answers become hints at moments (conversation.h) */
};
#define RV_HISTORY_OPTS_INIT                                                                                           \
    ((struct rv_history_opts){.version = RV_HISTORY_LAST,                                                              \
                              .policy = RV_REPLAY_SYNTHESISE,                                                          \
                              .max_tokens = 8000,                                                                      \
                              .max_messages = RV_UNSET,                                                                \
                              .always_last = 5,                                                                        \
                              .compress = true,                                                                        \
                              .compress_keep = RV_COMPRESS_KEEP,                                                       \
                              .names_keys = true})
void rv_history_compact(struct rv_history_opts *o, enum rv_compaction compaction);
/** Tells whether the written form of the options could be read back. */
RV_MUST_CHECK int rv_history_opts_check(const struct rv_history_opts *o, rv_err **err);
void rv_history_opts_write(const struct rv_history_opts *o, rv_jw *w); /* an object */
RV_MUST_CHECK int rv_history_opts_read(json_object *json, struct rv_history_opts *out, rv_err **err);

/* Takes rows from the newest to the oldest, so that the reader can stop early. */
typedef struct rv_history rv_history;
/** Both are copied. RV_E_INVALID: the policy, or an id that is not UTF-8; RV_E_NOMEM. */
RV_MUST_CHECK int rv_history_new(const char *session, const struct rv_history_opts *opts, rv_history **out,
                                 rv_err **err);
void rv_history_free(rv_history *h);
/** Add the next older row; copies the parts it needs. *full: older rows cannot be shown any more. */
RV_MUST_CHECK int rv_history_add(rv_history *h, const struct rv_message *row, bool *full, rv_err **err);
/** Notes of moments (conversation.h): they are told before the messages, and hints refer to them. Borrowed until the
 * end of rv_history_finish(). NULL: none. */
void rv_history_set_moments(rv_history *h, json_object *notes);
/** The messages, oldest first: an array as `history` of llm.h has it, the caller's. Always keeps the rules of
 *  providers: each call has its result right behind it, ids are there and differ, names are legal, arguments are
 *  objects, nothing is empty. h can only be freed then. */
RV_MUST_CHECK int rv_history_finish(rv_history *h, json_object **out, rv_err **err);
/** A tool's name with each byte that providers do not take as '_'; "unknown_tool" for none; at most 64 bytes. */
void rv_message_make_tool_name(rv_str name, char out[65]);

#endif
