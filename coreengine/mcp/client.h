/* The client's side of one connection to an MCP server: a state machine without I/O and without a clock.
 *
 * Messages, failures and times come in; what follows from them waits in a queue that the caller empties with
 * rv_mcp_client_next(): messages to send, asks that have ended, news. A client finds out the era of its server by
 * itself: revision 2026-07-28 (`server/discover`, each request says what it needs) or an earlier one (`initialize`).
 * Asks that come before that wait.
 *
 * The server is hostile. Answers without a question, second answers, late ones and progress that goes back are ignored;
 * requests for what the client has not declared are refused; lists that do not end fail. What it can make the client
 * keep is bounded by the limits below and by the size of a message. */
#ifndef RV_MCP_CLIENT_H
#define RV_MCP_CLIENT_H

#include "coreengine/base/base.h"
#include "coreengine/mcp/link.h"

#define RV_MCP_MAX_ASKS     1024               /* open at once on one connection: the calls of many runs */
#define RV_MCP_MAX_PAGES    64                 /* of one list: thousands of tools in small pages */
#define RV_MCP_MAX_ITEMS    20000              /* of one list: more tools than any model can be offered */
#define RV_MCP_MAX_ROUNDS   8                  /* times that a server may ask for a request again: it may never stop */
#define RV_MCP_MAX_WORDS    4096               /* bytes of a server's text in a message: a person reads its beginning */
#define RV_MCP_PROBE_US     (2 * RV_US_PER_S)  /* a server of an old era may not answer `server/discover` */
#define RV_MCP_HANDSHAKE_US (30 * RV_US_PER_S) /* npx may have to fetch the server first */

enum rv_mcp_era { RV_MCP_ERA_UNKNOWN, RV_MCP_ERA_LEGACY, RV_MCP_ERA_MODERN };

struct rv_mcp_client_opts {
    const char *server;  /* its name, for messages; copied */
    enum rv_mcp_era era; /* as an earlier connection found it out; UNKNOWN: the first request asks */
    bool elicits;        /* a person may be asked: forms are declared */
    int64_t max_samples; /* completions that one ask may want of a model; 0: the server may not ask for any */
    json_object *roots; /* what `roots/list` is answered with, [{uri, name}]; borrowed, and kept by reference; NULL: the
                           server may not ask */
    bool is_http;       /* closing a stream cancels its request; status codes may decide the era */
    int64_t handshake_us; /* 0: RV_MCP_HANDSHAKE_US */
};

/* A request. Everything is borrowed and copied, the trees by reference: they must not change afterwards. */
struct rv_mcp_ask {
    const char *method;   /* a literal */
    json_object *params;  /* NULL: none */
    const char *list;     /* a literal; the member with the items of a list in pages, all of which are fetched: the
                             result is an array. NULL: the result is that of the one answer */
    json_object *headers; /* as in struct rv_mcp_send */
    json_object *input;   /* what a person answered to earlier asks of this kind, {round, state?, answers} of
                             coreengine/tools/source.h; NULL: nothing */
    bool is_repeatable;   /* the request may be made again: the server may ask a person meanwhile */
    bool needs_task;      /* tools/call of a tool that a server of 2025-11-25 runs as a task only */
    int64_t timeout_us;   /* a hard limit, whatever progress comes; 0: none */
    bool wants_progress;
};

/* Why an ask, or the whole connection, failed. */
struct rv_mcp_trouble {
    const char *code; /* static: a code of RV_MCP_FAULTS, "timed_out", "rejected" (a JSON-RPC error), "invalid_answer",
                         "input_required", "too_many_pages", "unsupported_version" */
    const char *text; /* borrowed until the next call */
    int rpc_code;     /* of a JSON-RPC error; 0: none */
    int status;       /* of HTTP; 0: none */
    bool is_unsent;   /* the server has certainly not acted on it */
    bool retryable;   /* the same may succeed a little later */
    bool is_timeout;  /* nothing came in time */
};

enum rv_mcp_out_kind {
    RV_MCP_OUT_SEND,     /* give `send` to the link */
    RV_MCP_OUT_FORGET,   /* rv_mcp_link_cancel(id) */
    RV_MCP_OUT_READY,    /* the handshake is over */
    RV_MCP_OUT_DONE,     /* the ask is over: result, or trouble.code is set */
    RV_MCP_OUT_PROGRESS, /* of the ask */
    RV_MCP_OUT_SAMPLE,   /* of the ask: the server wants a completion; rv_mcp_client_answer_sample() answers */
    RV_MCP_OUT_CHANGED,  /* the server's tools may have changed: list them again before they are used next */
    RV_MCP_OUT_NOTE,     /* text for the log: something the server should not have sent, or wants to be logged */
    RV_MCP_OUT_DEAD,     /* nothing more can come of this connection; all asks were told before */
};
/* Borrowed from the client until the next rv_mcp_client_next(). */
struct rv_mcp_out {
    enum rv_mcp_out_kind kind;
    struct rv_mcp_send send;
    int64_t id;                    /* FORGET: of the request; SAMPLE: its number */
    int64_t ask;                   /* DONE, PROGRESS, SAMPLE */
    json_object *result;           /* DONE; SAMPLE: the params of sampling/createMessage, an object */
    int64_t ttl_ms;                /* DONE of a list: for so long it need not be asked for again */
    bool asks;                     /* DONE: the result is what a person is asked, {state?, requests: [{key, message,
                                      schema}]}; the request is to be made again with the answers and that state, which
                                      is any JSON */
    struct rv_mcp_trouble trouble; /* DONE, DEAD */
    double progress, total;        /* PROGRESS; total 0: not known */
    const char *text;              /* PROGRESS, NOTE; "" when there is none */
};

typedef struct rv_mcp_client rv_mcp_client;
/** Begins the handshake: its first message is in the queue. */
RV_MUST_CHECK int rv_mcp_client_new(const struct rv_mcp_client_opts *opts, int64_t now_us, rv_mcp_client **out,
                                    rv_err **err);
void rv_mcp_client_free(rv_mcp_client *c);

/* What happens. All of them return 0 or RV_E_NOMEM: then the connection is of no use any more. */
/** json: one message, not looked at yet. */
RV_MUST_CHECK int rv_mcp_client_on_message(rv_mcp_client *c, rv_str json, rv_err **err);
/** id as in struct rv_mcp_link_user; 0: the link is dead. */
RV_MUST_CHECK int rv_mcp_client_on_failure(rv_mcp_client *c, int64_t id, const struct rv_mcp_failure *failure,
                                           int64_t now_us, rv_err **err);
/** Time has passed; to be called at rv_mcp_client_due_us(). */
RV_MUST_CHECK int rv_mcp_client_tick(rv_mcp_client *c, int64_t now_us, rv_err **err);
int64_t rv_mcp_client_due_us(const rv_mcp_client *c); /* RV_NEVER: nothing is waited for */

/** Ask; *out names it. RV_E_LIMIT: too many asks are open; RV_E_STATE: the connection is dead; RV_E_NOMEM. */
RV_MUST_CHECK int rv_mcp_client_ask(rv_mcp_client *c, const struct rv_mcp_ask *ask, int64_t now_us, int64_t *out,
                                    rv_err **err);
/** The answer is not wanted any more: the server is told, and no DONE comes. Nothing to do for one that is over. */
RV_MUST_CHECK int rv_mcp_client_give_up(rv_mcp_client *c, int64_t ask, rv_err **err);

/** Answer what a SAMPLE wanted: with the result of sampling/createMessage, borrowed, or, result NULL, with why there is
 *  none. Nothing to do when the ask is over, or the server does not wait for it any more. */
RV_MUST_CHECK int rv_mcp_client_answer_sample(rv_mcp_client *c, int64_t ask, int64_t sample, json_object *result,
                                              const char *why, rv_err **err);

/** The next thing to do or to know, in order; NULL: there is none. */
const struct rv_mcp_out *rv_mcp_client_next(rv_mcp_client *c);

/* Looking. */
bool rv_mcp_client_is_ready(const rv_mcp_client *c);
bool rv_mcp_client_is_dead(const rv_mcp_client *c);
enum rv_mcp_version rv_mcp_client_version(const rv_mcp_client *c); /* UNKNOWN before READY */
enum rv_mcp_era rv_mcp_client_era(const rv_mcp_client *c);
/** Has the server declared that capability ("tools", "resources", "prompts")? */
bool rv_mcp_client_offers(const rv_mcp_client *c, const char *capability);

/* --- What an MCP server asks a model, as one prompt, and the answer as the protocol has it. --- */

#define RV_MCP_MAX_PROMPT ((size_t)256 << 10) /* bytes of all messages: more than a tool has to say */

/** The messages of sampling/createMessage, as one text: that of the only message, else each with its role.
 *  RV_E_INVALID: params ask for what is not offered, such as tools or images; RV_E_LIMIT. */
RV_MUST_CHECK int rv_mcp_sampling_write_prompt(json_object *params, rv_buf *out, rv_err **err);
/** {role, content, model, stopReason}, the caller's. */
RV_MUST_CHECK int rv_mcp_sampling_build_result(const char *text, const char *model, json_object **out, rv_err **err);

#endif
