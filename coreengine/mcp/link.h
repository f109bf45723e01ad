/* Links: one connection to an MCP server, whatever carries it.
 *
 * A child process (stdio) is a link, an HTTP endpoint is one, a REST server is one; to add a transport, implement
 * struct rv_mcp_link_ops, and add it to the suite in tests/contract/links. A link moves messages. It does not know what
 * they mean: versions, ids, retries and time limits belong to the session above it (client.h), which says in struct
 * rv_mcp_send all that a transport needs to know about a message.
 *
 * Threads: a link belongs to the loop thread. No callback comes from inside one of the functions below. A callback may
 * call send, cancel and close of its link.
 *
 * The life of a link: the function of a transport that opens it, then any calls of rv_mcp_link_send() and
 * rv_mcp_link_cancel(), then rv_mcp_link_close() once. A link may have failed as a whole before (`failed` with id 0):
 * then nothing comes any more, a send is RV_E_STATE, and it still has to be closed. */
#ifndef RV_MCP_LINK_H
#define RV_MCP_LINK_H

#include <string.h>

#include "coreengine/mcp/message.h"

#define RV_MCP_MAX_FAILURE ((size_t)64 << 10) /* bytes of a body with an error status: its beginning says why */

/* Why a request has no answer, or a link has ended. One list: constant, code for programs, meaning. */
#define RV_MCP_FAULTS(X)                                                                                               \
    X(SERVER_EXITED, "server_exited", "the process of the server ended")                                               \
    X(NO_CONNECTION, "no_connection", "the server cannot be started or reached")                                       \
    X(CONNECTION_LOST, "connection_lost", "the connection ended before the answer was complete")                       \
    X(TIMED_OUT, "timed_out", "the transport gave up waiting")                                                         \
    X(HTTP_STATUS, "http_status", "the answer has an error status")                                                    \
    X(UNAUTHORIZED, "unauthorized", "the server wants an approval by a person or another token")                       \
    X(SESSION_EXPIRED, "session_expired", "the server does not know the session any more; nothing was done")           \
    X(BAD_MESSAGE, "bad_message", "what came is not a message")                                                        \
    X(TOO_LARGE, "too_large", "a message is larger than the limit")                                                    \
    X(NOT_ALLOWED, "not_allowed", "a policy of this side forbids the connection")                                      \
    X(LOCAL, "local_failure", "memory, descriptors or threads are short here")

enum rv_mcp_fault {
#define X(name, code, meaning) RV_MCP_FAULT_##name,
    RV_MCP_FAULTS(X)
#undef X
        RV_N_MCP_FAULTS
};
/** "server_exited", ...; static. */
const char *rv_mcp_fault_code(enum rv_mcp_fault fault);

/* A message on its way out. Everything is borrowed until rv_mcp_link_send() returns. */
struct rv_mcp_send {
    int64_t id;           /* of a request, from 1, never used twice on a link; 0: a notification or a response */
    const char *method;   /* NULL: a response */
    const char *name;     /* params.name or params.uri, for the header Mcp-Name; NULL: the method has none */
    rv_str body;          /* the message: JSON text on one line, without a line feed at its end */
    json_object *headers; /* further HTTP headers, {"Mcp-Param-Region": "eu"}: values not encoded yet; NULL: none */
    const char *version;  /* the negotiated revision, or of a request that negotiates the one it offers */
    bool is_modern;       /* a message of 2026-07-28 or later: no session, no stream of the server's own */
};

/* All borrowed until the callback returns. */
struct rv_mcp_failure {
    enum rv_mcp_fault fault;
    int status;       /* of an HTTP answer; 0: none */
    const char *text; /* for people; never empty */
    rv_str body;      /* of an answer with an error status, cut at RV_MCP_MAX_FAILURE: it may be a JSON-RPC error */
    bool is_unsent;   /* the server has certainly not acted on the request: it may be sent again, whatever it does */
    bool retryable;   /* the same may succeed a little later */
};

/* Who uses a link. self is borrowed, and outlives the link. */
struct rv_mcp_link_user {
    /** A message has come: JSON text, not looked at yet, borrowed. Any message, in any order: a peer is hostile. */
    void (*message)(void *self, rv_str json);
    /** The request with that id will not be answered by `message`; id 0: the link is dead, and with it all of its
     * requests, for which no call of their own comes. At most once for an id, and not after cancel. */
    void (*failed)(void *self, int64_t id, const struct rv_mcp_failure *failure);
    /** The server wrote a line that is not a message: of stdio what is neither JSON nor blank on its output, and the
     * lines of its error output (is_error_output). Cut and counted by the link, any bytes; for logs. */
    void (*noise)(void *self, bool is_error_output, rv_str line);
    void *self;
};

struct rv_mcp_link_ops { /* static */
    const char *name;    /* "stdio", "http" or "rest" */
    /** Send a message, or queue it. 0: it is on its way, and a request ends by `message`, by `failed` or by cancel.
     * RV_E_STATE: the link is dead; RV_E_LIMIT: too much is queued; RV_E_NOMEM: nothing was sent. */
    int (*send)(void *self, const struct rv_mcp_send *m, rv_err **err);
    /** The answer to that request is not wanted any more. An id that is not under way is fine. Of a modern message over
     * HTTP this tells the server, too; otherwise the session has sent notifications/cancelled. */
    void (*cancel)(void *self, int64_t id);
    /** End the connection in good order, without waiting: no callback of the user comes any more. What was sent to
     * cancel something is still delivered, if the server takes it within two seconds. The link frees itself when its
     * handles are closed and its process is reaped; `closed`, which may be NULL, then comes from the loop. */
    void (*close)(void *self, void (*closed)(void *arg), void *arg);
};
struct rv_mcp_link {
    const struct rv_mcp_link_ops *ops; /* static; NULL: none is open */
    void *self;                        /* owned by the link: its `close` frees it */
};

RV_MUST_CHECK static inline int rv_mcp_link_send(const struct rv_mcp_link *l, const struct rv_mcp_send *m, rv_err **err)
{
    return l->ops->send(l->self, m, err);
}

static inline void rv_mcp_link_cancel(const struct rv_mcp_link *l, int64_t id)
{
    l->ops->cancel(l->self, id);
}

/** Nothing to do where none is open, but `closed` does not come then. */
static inline void rv_mcp_link_close(struct rv_mcp_link *l, void (*closed)(void *arg), void *arg)
{
    if (l->ops)
        l->ops->close(l->self, closed, arg);
    memset(l, 0, sizeof *l);
}

#endif
