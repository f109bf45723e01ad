/* One session with a client of the Model Context Protocol, as the server's side sees it: a state machine.
 *
 * Messages of the client come in, orders come out: bytes to send, something to do, something to stop. The shell
 * performs them and hands back the results by the numbers of the calls. No I/O, no clock, no ids of its own.
 *
 * Two eras. Legacy revisions begin with `initialize`; a session keeps what was agreed on. In 2026-07-28 each request
 * says by itself which revision it is and what its client can do; such a session keeps nothing but the calls under way.
 * One session may be of one era only, which its first request decides, or its transport.
 *
 * Rules that hold in both: a notification is never answered, a request is answered once or was cancelled, and before
 * `initialize` a legacy client gets nothing but answers to its own requests. */
#ifndef RV_MCP_SERVER_H
#define RV_MCP_SERVER_H

#include "coreengine/mcp/message.h"

#define RV_MCP_MAX_CALLS 64  /* requests of one session at once; a client with more waits: each can hold a thread */
#define RV_MCP_PAGE      100 /* entries of one page of a list */

typedef struct rv_mcp_server rv_mcp_server; /* one thread at a time */

struct rv_mcp_server_opts {
    const char *name, *title, *version; /* of the program; borrowed, static */
    const char *instructions;           /* for models of the client; borrowed; NULL: none */
    bool is_http;                       /* without 2024-11-05, whose HTTP transport was another one */
    bool is_modern; /* all requests are of 2026-07-28; false: those that say so, until one is `initialize` */
};

/* What a client wants that this machine cannot answer by itself. */
enum rv_mcp_want {
    RV_MCP_WANT_LIST_TOOLS,
    RV_MCP_WANT_CALL_TOOL,
    RV_MCP_WANT_LIST_RESOURCES,
    RV_MCP_WANT_LIST_TEMPLATES,
    RV_MCP_WANT_READ_RESOURCE,
    RV_MCP_WANT_LIST_PROMPTS,
    RV_MCP_WANT_GET_PROMPT,
    RV_MCP_WANT_COMPLETE,
    RV_MCP_WANT_GET_TASK,
    RV_MCP_WANT_UPDATE_TASK,
    RV_MCP_WANT_CANCEL_TASK,
    RV_MCP_WANT_TASK_RESULT, /* it waits for the end of the task, as a call of its tool does */
    RV_MCP_WANT_LIST_TASKS,
    RV_N_MCP_WANTS
};
/* May the result of a tool be a task, which the client asks for later by itself? */
enum rv_mcp_tasking {
    RV_MCP_TASK_NEVER, /* the client does not know them */
    RV_MCP_TASK_MAY,   /* the server decides: 2026-07-28 */
    RV_MCP_TASK_MUST,  /* the client wants one: 2025-11-25 */
};

enum rv_mcp_order_kind {
    RV_MCP_SEND,     /* these bytes, one message */
    RV_MCP_DO,       /* a call begins: find out, then rv_mcp_server_give() and its neighbours */
    RV_MCP_STOP,     /* that call was cancelled; what is still given for it is ignored */
    RV_MCP_ANSWERED, /* the question of that call has its answer */
};
enum rv_mcp_action { RV_MCP_ACCEPT, RV_MCP_DECLINE, RV_MCP_CANCEL };
struct rv_mcp_order {
    enum rv_mcp_order_kind kind;
    int64_t call;              /* of SEND: that it belongs to; 0: none */
    rv_buf bytes;              /* SEND; without a line end */
    bool is_answer;            /* SEND: the answer of a request, with which its call is over */
    int code;                  /* SEND: of an error, else 0 */
    enum rv_mcp_want want;     /* DO */
    json_object *params;       /* DO: of the request, checked; owned; NULL: none */
    int64_t first;             /* DO of a list: entries to leave out */
    enum rv_mcp_tasking tasks; /* DO of CALL_TOOL and of tasks: how the client has them */
    enum rv_mcp_action action; /* ANSWERED, with what was filled in: */
    json_object *content;      /* owned; NULL: nothing */
};
struct rv_mcp_orders {
    struct rv_mcp_order *items; /* owned */
    size_t n, cap;
};
void rv_mcp_orders_fini(struct rv_mcp_orders *orders);

RV_MUST_CHECK int rv_mcp_server_new(const struct rv_mcp_server_opts *opts, rv_mcp_server **out, rv_err **err);
void rv_mcp_server_free(rv_mcp_server *s);

/* All of the following append to orders. They fail with RV_E_NOMEM only, or RV_E_LIMIT where an answer is too large. */
/** A message has come. */
RV_MUST_CHECK int rv_mcp_server_receive(rv_mcp_server *s, const struct rv_mcp_message *m, struct rv_mcp_orders *orders,
                                        rv_err **err);
/** Bytes have come: as _take, and what is not a message is answered with an error. */
RV_MUST_CHECK int rv_mcp_server_read(rv_mcp_server *s, rv_str bytes, struct rv_mcp_orders *orders, rv_err **err);
/* Why a request is refused. Borrowed for the call. */
struct rv_mcp_server_error {
    int code;          /* of JSON-RPC */
    const char *text;  /* for people */
    json_object *data; /* NULL: none */
};
/** A refusal without a call: id NULL: it could not be read. */
RV_MUST_CHECK int rv_mcp_server_refuse(json_object *id, const struct rv_mcp_server_error *why,
                                       struct rv_mcp_orders *orders, rv_err **err);

/* What came of a call. A number that is not under way, because it was cancelled, is ignored. */
/** The result of a call, as the newest revision has it; older clients get what they can read. One with `resultType`
 *  "task" has the members of a task; so have those of GET_TASK and, for older clients, of CANCEL_TASK. */
RV_MUST_CHECK int rv_mcp_server_give(rv_mcp_server *s, int64_t call, json_object *result, struct rv_mcp_orders *orders,
                                     rv_err **err);
/** The entries of a list from `first` on, at most RV_MCP_PAGE. next: `first` of the next page; 0: there is none. */
RV_MUST_CHECK int rv_mcp_server_give_list(rv_mcp_server *s, int64_t call, json_object *entries, int64_t next,
                                          struct rv_mcp_orders *orders, rv_err **err);
RV_MUST_CHECK int rv_mcp_server_fail(rv_mcp_server *s, int64_t call, const struct rv_mcp_server_error *why,
                                     struct rv_mcp_orders *orders, rv_err **err);
/** A resource that does not exist: each era has its own code. */
RV_MUST_CHECK int rv_mcp_server_refuse_resource(rv_mcp_server *s, int64_t call, const char *uri,
                                                struct rv_mcp_orders *orders, rv_err **err);
/* How far a call is. The text is borrowed for the call. */
struct rv_mcp_progress {
    int64_t n, total; /* total 0: unknown */
    const char *text; /* for people; NULL: none */
};
/** Some way is done. Sent only to a client that asked, and only if n is more than before. */
RV_MUST_CHECK int rv_mcp_server_tell_progress(rv_mcp_server *s, int64_t call, const struct rv_mcp_progress *done,
                                              struct rv_mcp_orders *orders, rv_err **err);
/** Something for the client's log, at level info. Sent only after logging/setLevel. */
RV_MUST_CHECK int rv_mcp_server_log(rv_mcp_server *s, int64_t call, json_object *data, struct rv_mcp_orders *orders,
                                    rv_err **err);

/* A question to the person behind the client. Borrowed for the call. */
struct rv_mcp_question {
    const char *key;     /* by which a modern client gives the answer */
    const char *message; /* what is asked */
    json_object *schema; /* of the form: an object with properties that are not nested; borrowed */
    const char *state;   /* by which a modern client continues the call */
};
/** Tells whether the client of a call takes tasks, or is of a revision that has none, and waits. */
bool rv_mcp_server_takes_tasks(const rv_mcp_server *s, int64_t call);
/** A tool that needs tasks, called by a client that does not take them: each era has its own code. */
RV_MUST_CHECK int rv_mcp_server_needs_task(rv_mcp_server *s, int64_t call, struct rv_mcp_orders *orders, rv_err **err);
/** Tells whether the client of a call can ask a person. */
bool rv_mcp_server_can_ask(const rv_mcp_server *s, int64_t call);
/** Ask. A legacy client answers while the call goes on (RV_MCP_ANSWERED); for a modern one the call is over, and it
 *  makes another one with `inputResponses` and `requestState`. Only where rv_mcp_server_can_ask(). */
RV_MUST_CHECK int rv_mcp_server_ask(rv_mcp_server *s, int64_t call, const struct rv_mcp_question *q,
                                    struct rv_mcp_orders *orders, rv_err **err);
/** Tells whether the client of a call wants its progress or its log: if not, neither need be found out. */
bool rv_mcp_server_listens(const rv_mcp_server *s, int64_t call);
int64_t rv_mcp_server_last_call(const rv_mcp_server *s);           /* the number of the call that began last; 0: none */
bool rv_mcp_server_has_call(const rv_mcp_server *s, int64_t call); /* it is not answered yet */

#endif
