/* Streamable HTTP without its I/O: the headers of a request, and what an answer means.
 *
 * One message is one POST. Its answer is one JSON value or a stream of server-sent events; legacy servers also have a
 * session, a stream of their own (GET), and streams that continue after a given event. The owner of the connection
 * (coreengine/tools/mcp/http/exchange.c) passes heads and bytes in, and does what the verdict says. */
#ifndef RV_MCP_HTTP_H
#define RV_MCP_HTTP_H

#include "coreengine/base/net.h"
#include "coreengine/mcp/link.h"

#define RV_MCP_MAX_HTTP_HEADERS 48                  /* of one request: a dozen of ours, the rest mirrored arguments */
#define RV_MCP_MAX_HEADER       ((size_t)8 << 10)   /* bytes of one of them: common servers refuse longer heads */
#define RV_MCP_MAX_SESSION      1024                /* bytes of a session's id: tokens of servers are shorter */
#define RV_MCP_MAX_STREAM       ((size_t)256 << 20) /* bytes of one answer with all its notifications */

/* Lines "Name: value" of a request. Zeroed: none. */
struct rv_mcp_headers {
    char *lines[RV_MCP_MAX_HTTP_HEADERS]; /* owned */
    size_t n;
};
void rv_mcp_headers_fini(struct rv_mcp_headers *h);
/** Add one. RV_E_LIMIT, RV_E_NOMEM, RV_E_INVALID: the name is not a token, or the value has a control character. */
RV_MUST_CHECK int rv_mcp_headers_add(struct rv_mcp_headers *h, const char *name, rv_str value, rv_err **err);
/** Does the status say that the same request may succeed later? */
bool rv_mcp_is_busy(int status);
/** Add all of another one. RV_E_LIMIT, RV_E_NOMEM. */
RV_MUST_CHECK int rv_mcp_headers_copy(const struct rv_mcp_headers *from, struct rv_mcp_headers *to, rv_err **err);
/** The headers of a POST. session: of a legacy server; "": none yet. Values of m->headers that cannot stand in a header
 *  are encoded. */
RV_MUST_CHECK int rv_mcp_headers_of(const struct rv_mcp_send *m, const char *session, struct rv_mcp_headers *out,
                                    rv_err **err);
/** The headers of GET (a stream of a legacy server; last_id "": from now on) and of DELETE (last_id NULL). */
RV_MUST_CHECK int rv_mcp_headers_of_stream(const char *version, const char *session, const char *last_id,
                                           struct rv_mcp_headers *out, rv_err **err);
/** Append a value as Mcp-Name and Mcp-Param-* have it: plain ASCII as it is, anything else as =?base64?...?=. */
void rv_mcp_header_value(rv_str value, rv_buf *out);
/** Keep a session's id; false: it is empty, too long, or not visible ASCII. */
bool rv_mcp_session_read(rv_str value, char out[RV_MCP_MAX_SESSION + 1]);

/* --- answers --- */

enum rv_mcp_body { RV_MCP_BODY_JSON, RV_MCP_BODY_EVENTS, RV_MCP_BODY_NONE, RV_MCP_BODY_FAILURE };
/* The head of an answer. */
struct rv_mcp_head {
    int status;
    rv_str content_type;
    rv_str challenge; /* www-authenticate; empty: none */
    bool has_session; /* the request named a session */
    bool is_modern;
};

/* One answer while it is read. */
struct rv_mcp_answer {
    int64_t id;              /* of the request; 0: a notification, a response, or a stream of the server's own */
    bool is_stream;          /* the answer to a GET: events, or nothing */
    bool is_answered;        /* the response with that id has come */
    bool is_enough;          /* nothing that follows changes what the answer means: end it now */
    struct rv_mcp_head head; /* without its views */
    enum rv_mcp_body body;
    bool is_insufficient; /* 403: the token lacks a scope */
    rv_buf text;          /* of JSON, or of a failure */
    rv_sse *events;       /* owned */
    size_t n_bytes;
    void (*on_message)(void *self, rv_str json);
    void *self; /* borrowed */
};
void rv_mcp_answer_init(struct rv_mcp_answer *a, int64_t id, bool is_stream, void (*on_message)(void *, rv_str json),
                        void *self);
void rv_mcp_answer_fini(struct rv_mcp_answer *a);
/** The head has come. A second head begins a new answer, the rest of a stream that was continued. RV_E_NOMEM. */
RV_MUST_CHECK int rv_mcp_answer_head(struct rv_mcp_answer *a, const struct rv_mcp_head *head, rv_err **err);
/** Some bytes of the body: calls on_message for each message in them. RV_E_LIMIT, RV_E_NOMEM, RV_E_PARSE: an event is
 *  not JSON. */
RV_MUST_CHECK int rv_mcp_answer_read(struct rv_mcp_answer *a, rv_str bytes, rv_err **err);

/* What to do when an answer is over. */
enum rv_mcp_verdict {
    RV_MCP_OVER,     /* all is well */
    RV_MCP_CONTINUE, /* the stream ended before the response, and continues after rv_sse_last_id(a->events) */
    RV_MCP_FAILED,   /* *out says why */
};
/** The connection is over, in good order (cut false) or not. May call on_message. On RV_MCP_FAILED *out is filled in;
 *  its views are valid until a or text changes. text: for what it says, RV_BUF_INIT(1024) or more. */
enum rv_mcp_verdict rv_mcp_answer_end(struct rv_mcp_answer *a, bool cut, rv_buf *text, struct rv_mcp_failure *out);

/* --- challenges --- */

/** A parameter of the scheme Bearer in the values of WWW-Authenticate, appended without quotes; false: it has none, or
 *  out->rc says that memory was short. */
bool rv_mcp_challenge(rv_str value, const char *name, rv_buf *out);

#endif
