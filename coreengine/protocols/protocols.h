/* What happens in a turn or a run, in the protocols of clients: events and pieces in, bytes out. Pure: no I/O, no
 * clock, no ids of its own; the same calls with the same arguments give the same bytes.
 *
 * A server makes one encoder for each stream of a client, hands it everything that happens, in order, and sends what
 * was appended. A client that comes back is served by a new encoder that is handed the same things from the beginning;
 * what the client had already is thrown away.
 *
 * A stream is server-sent events: a block is `event:` (where the protocol names events), then `data:`, then `id:`, then
 * an empty line. Only the last block of a call has the id of that call, as a client that comes back with it has seen
 * all of them. Requests of clients, the other way round, are at the end. */
#ifndef RV_PROTOCOLS_PROTOCOLS_H
#define RV_PROTOCOLS_PROTOCOLS_H

#include "coreengine/app/app.h"

/* constant, name, meaning */
#define RV_PROTOCOLS(X)                                                                                                \
    X(AGUI, "ag-ui", "AG-UI 1.0: clients that send protocolVersion")                                                   \
    X(AGUI_OLD, "ag-ui-0", "AG-UI before 1.0: children as CUSTOM events, THINKING_*")                                  \
    X(OPENAI, "openai", "OpenAI Chat Completions: chunks, or one answer")                                              \
    X(RESPONSES, "openai-responses", "OpenAI Responses: events, or one answer")                                        \
    X(REMLIGHT, "remlight", "REMLight: chunks with named events between them, or one answer")
#define RV_PROTOCOL_CONST(n, t, m) RV_PROTOCOL_##n,
enum rv_protocol_kind { RV_PROTOCOLS(RV_PROTOCOL_CONST) RV_N_PROTOCOLS };
const char *rv_protocol_text(enum rv_protocol_kind kind); /* "ag-ui"; NULL: none of the list */

#define RV_PROTOCOL_MAX_TEXT                                                                                           \
    ((size_t)128 << 10) /* bytes of text in one event; more is split: an event stays below 1 MB */
#define RV_PROTOCOL_MAX_OUT   ((size_t)64 << 20) /* a ceiling for the buffer that a call appends to: it is in memory */
#define RV_PROTOCOL_MAX_CALLS 4096               /* calls, agents and open parts of one stream: they are in memory */
#define RV_PROTOCOL_RESPONSE  "resp_"            /* before the id of an answer: the id of a response of RESPONSES */
#define RV_PROTOCOL_ORDINAL   '~' /* between the run's id and a number: the id of a later answer of the run */

/* How a stream is written. Texts are borrowed until the encoder is freed. */
struct rv_protocol_opts {
    enum rv_protocol_kind kind;
    bool is_whole;             /* one JSON object at the end instead of a stream; not AG-UI */
    const char *run_id;        /* reeve's; ids of messages begin with it. Never NULL */
    int64_t ordinal;           /* which answer of the run this is, from 1; 0: the first */
    const char *session_id;    /* AG-UI: threadId. Never NULL */
    const char *client_run_id; /* AG-UI: runId of the request; NULL: run_id */
    const char *parent_run_id; /* AG-UI; NULL: none */
    const char *model;         /* as the request names it; NULL: "unknown" */
    int64_t created_us;        /* when the answer began */
    int child_text;            /* enum rv_child_text of the agent, or RV_UNSET */
    const char *text_stage;    /* only the words of this stage, and of the agents it asks, are text; NULL: of all */
    bool no_thinking;          /* what the model thinks aloud is left out */
    bool tells_steps;          /* AG-UI 1.0: stages are steps: for a run of a pipeline, not for a chat */
    bool tells_usage;          /* OPENAI: a last chunk with the usage (stream_options.include_usage) */
    bool tells_events;         /* OPENAI: chunks without choices that have `reeve_event` */
    bool tells_metadata;       /* REMLIGHT: the event `metadata` */
    bool tells_calls;          /* OPENAI, RESPONSES: also the calls that the engine makes, not the client */
    const char *const *client_tools; /* tools that the client runs: their calls are handed to it, and wait */
    size_t n_client_tools;
    const char *const *known_calls; /* AG-UI: ids of tool calls that an earlier stream began: only results follow */
    size_t n_known_calls;
    /** The whole result of a tool call of which an event has only the beginning: JSON text, appended. call_id is that
     * of the event; RV_E_NOT_FOUND: it cannot be had, and the beginning is sent. NULL: it never can. */
    int (*whole_result)(void *self, int64_t call_id, rv_buf *out, rv_err **err);
    void *self;
};

typedef struct rv_protocol rv_protocol;
/** RV_E_INVALID (is_whole of a protocol that has no whole answers), RV_E_NOMEM. */
RV_MUST_CHECK int rv_protocol_new(const struct rv_protocol_opts *opts, rv_protocol **out, rv_err **err);
void rv_protocol_free(rv_protocol *p);

/* When, and under which id of the stream: of each call below. */
struct rv_protocol_at {
    int64_t now_us; /* of a piece; an event has its own time. 0: not told */
    const char *id; /* printable ASCII without spaces, else it is left out; NULL: none; borrowed for the call */
};

/* Each appends to out what the client is to be told now, which may be nothing. On failure nothing is appended, and the
 * stream can only be ended. RV_E_NOMEM, RV_E_LIMIT (out is full), RV_E_INVALID (an event that cannot be read). After
 * the end nothing is appended any more. */
/** The stream begins. Of a run that goes on in a new stream, what happened before is handed over first: that is not
 * appended, and its tool calls are known to the client, so that only their results follow. */
RV_MUST_CHECK int rv_protocol_begin(rv_protocol *p, const struct rv_protocol_at *at, rv_buf *out, rv_err **err);
/** line: an event of docs/reference/events.md, or a line of deltas of that page. */
RV_MUST_CHECK int rv_protocol_on_event(rv_protocol *p, const struct rv_protocol_at *at, rv_str line, rv_buf *out,
                                       rv_err **err);
/** The same of a line that was read. The event is an object, and is not changed. */
RV_MUST_CHECK int rv_protocol_event_read(rv_protocol *p, const struct rv_protocol_at *at, json_object *event,
                                         rv_buf *out, rv_err **err);
/** The reply of a model call as the journal has it, before its event `llm_result`: when the process died before its
 * last pieces were lines. What is missing behind what was told is told. Borrowed for the call. */
struct rv_protocol_reply {
    rv_str text, tool_calls; /* tool_calls: JSON, [{id, name, arguments}]; empty: none */
};
RV_MUST_CHECK int rv_protocol_tell_missed(rv_protocol *p, const struct rv_protocol_at *at, json_object *event,
                                          const struct rv_protocol_reply *reply, rv_buf *out, rv_err **err);
/** The model calls under way broke off, and are made again under the same numbers: what is open of them is closed, and
 * what comes again is told in messages of its own. */
RV_MUST_CHECK int rv_protocol_on_break(rv_protocol *p, const struct rv_protocol_at *at, rv_buf *out, rv_err **err);

/* How a turn or a run ended. Borrowed for the call. */
struct rv_protocol_end {
    enum rv_run_status status;
    rv_str text;         /* what people are shown: told now if no piece was told before; of whole answers the answer */
    json_object *output; /* of a structured agent, or the output of a run; NULL: none */
    const char *agent;   /* that answered; NULL: not known */
    const char *message_id; /* of the row of the answer; NULL: none */
    const char *session_name;
    int finish;        /* enum rv_finish_reason: LENGTH for an answer that is cut off; RV_UNSET: STOP */
    const char *error; /* why it did not complete, for people: no internals; NULL: by status and code */
    const char *code;  /* a word of enum rv_failure or of rv_code; NULL: none */
    struct rv_usage usage;
    int64_t latency_ms;
};
struct rv_protocol_end rv_protocol_end_of(const struct rv_chat_turn *turn);
/** The last of the stream: closes what is open, and says how it ended. INTERRUPTED: with the questions that were told.
 */
RV_MUST_CHECK int rv_protocol_end(rv_protocol *p, const struct rv_protocol_at *at, const struct rv_protocol_end *end,
                                  rv_buf *out, rv_err **err);
bool rv_protocol_has_ended(const rv_protocol *p);
/** An end as an object, and back. The texts of *out borrow from json. RV_E_INVALID. */
void rv_protocol_end_write(const struct rv_protocol_end *end, rv_jw *w);
RV_MUST_CHECK int rv_protocol_end_read(json_object *json, struct rv_protocol_end *out, rv_err **err);
/** Of a run that waited and goes on in a new stream: what rv_protocol_begin() does, by an encoder whose stream has
 * ended. opts: of the new stream, borrowed from now on. RV_E_STATE: it has not ended, or it broke. */
RV_MUST_CHECK int rv_protocol_begin_again(rv_protocol *p, const struct rv_protocol_opts *opts,
                                          const struct rv_protocol_at *at, rv_buf *out, rv_err **err);

/* --- Errors over HTTP, where there is no stream yet --- */
enum rv_protocol_family {
    RV_FAMILY_PROBLEM, /* application/problem+json */
    RV_FAMILY_P8,      /* application/json, with `detail` as p8 has it */
    RV_FAMILY_OPENAI,  /* application/json; clients read `error` */
};
/* What it points to is borrowed for the call. */
struct rv_protocol_fault {
    int status;           /* 400..599 */
    const char *code;     /* a word of rv_code or of enum rv_failure; NULL: by status */
    const char *param;    /* path of the member that is wrong; NULL: none */
    const char *detail;   /* for people */
    json_object *details; /* P8: `detail` in place of the text, an object; NULL: the text */
    const char *request_id;
};
/** The media type of the body. Static. */
const char *rv_protocol_fault_type(enum rv_protocol_family family);
/** {"type","title","status","detail","code","request_id","error":{"message","type","param","code"}}, appended (sticky).
 */
void rv_protocol_fault_write(enum rv_protocol_family family, const struct rv_protocol_fault *fault, rv_buf *out);
/** The status that answers a failure of that code: RV_E_INVALID 400, RV_E_NOT_FOUND 404, RV_E_STATE 409, ... */
int rv_protocol_status(int code);

/* Requests of clients, read into one struct of a turn. Bodies are hostile: size, depth and counts are capped, and an
 * error names the member and what is legal. Members that are not known are ignored, as clients send more than they
 * need. Pure: no I/O, no clock. */

#define RV_REQUEST_MAX_BYTES    ((size_t)10 << 20) /* of a body: images are inside */
#define RV_REQUEST_MAX_DEPTH    64                 /* nesting: the reader calls itself */
#define RV_REQUEST_MAX_MESSAGES 10000              /* of a transcript: clients send it again with each turn */
#define RV_REQUEST_MAX_TEXT     ((size_t)1 << 20)  /* bytes of the new message: it goes into each request of the turn */
#define RV_REQUEST_MAX_TOOLS    128                /* of the client: they are sent with every request */
#define RV_REQUEST_MAX_RESULTS  RV_LLM_MAX_TOOL_CALLS
#define RV_REQUEST_MAX_ANSWERS  64  /* of one request; a run has fewer open questions */
#define RV_REQUEST_MAX_ID       200 /* bytes of an id of a thread, run, message, call: as in the store */
#define RV_REQUEST_MAX_PATH     128 /* bytes of the path of a member, as "messages[3].content[0].type" */

/* The result of a tool that the client ran. Texts are borrowed from the request. */
struct rv_request_result {
    const char *call_id; /* borrowed from the request */
    rv_str content;      /* text, or JSON text of what was not a text */
    const char *error;   /* NULL: it succeeded */
    rv_buf room;         /* owned: what content borrows from */
};
/* An answer to a question that waits. What it points to is borrowed from the request. */
struct rv_request_answer {
    const char *interrupt_id;    /* borrowed from the request */
    bool is_cancelled;           /* the person wants to give none */
    json_object *payload;        /* as it came; NULL: none */
    struct rv_response response; /* the same for the engine */
};

/* Texts and values are borrowed from the request itself. NULL: not given. */
struct rv_request {
    enum rv_protocol_kind kind; /* AGUI_OLD: a body of AG-UI without protocolVersion */
    const char *thread_id, *run_id, *parent_run_id;
    const char *protocol_version;
    const char *model; /* as the client wrote it */
    const char *user;  /* that the body names; not who asks */
    const char *previous_response_id;
    bool is_unsupported; /* after a failure */
    bool stream, tells_usage;
    /* What is new: a message of the user, results of the client's tools, answers. May all be missing. */
    bool has_message;
    const char *message_id;
    rv_buf text;
    json_object *attachments; /* as in llm.h; NULL: none */
    struct rv_request_result *results;
    size_t n_results;
    struct rv_request_answer *answers;
    size_t n_answers;
    json_object *tools; /* of the client: [{name, description?, parameters}], as in llm.h; NULL: none */
    /* What came before, for callers that keep no session for this client: messages as in llm.h without system messages,
     * and these as one text. A caller that keeps one ignores both. */
    json_object *history;
    rv_buf system;
    /* Of the model call */
    bool has_temperature;
    double temperature;
    int64_t max_tokens; /* 0: not given */
    bool has_seed;
    int64_t seed;
    const char *tool_choice;      /* "auto", "required", "none" */
    const char *tool_named;       /* with "required": that one */
    json_object *response_schema; /* that the answer has to fit */
    /* AG-UI */
    json_object *state, *context, *forwarded;
    json_object *metadata; /* OpenAI */
    json_object *body;     /* owned: the rest borrows from it */
    json_object *made;     /* owned: values that were made from the body */
};
/* Parameters of OpenAI's that decide about the answer and that no agent has are refused, unless they say what holds
 * anyway. Attachments are data: URLs, or base64: the server fetches nothing for clients. */
/** Read a body for the endpoint of that family: AGUI (which tells AGUI_OLD by itself), OPENAI, RESPONSES, REMLIGHT.
 *  @param path gets the path of the member that is wrong, "" where it is the whole body
 *  @return RV_E_INVALID (out->is_unsupported: what it asks for can never be had), RV_E_PARSE (no JSON; the text has
 * line and column), RV_E_LIMIT (too large, too many), RV_E_NOMEM
 */
RV_MUST_CHECK int rv_request_read(enum rv_protocol_kind kind, rv_str body, struct rv_request *out,
                                  char path[RV_REQUEST_MAX_PATH], rv_err **err);
void rv_request_fini(struct rv_request *r);

#endif
