/* Streamable HTTP without its I/O: the headers of a request, and what an answer means.
 *
 * One message is one POST. Its answer is one JSON value or a stream of server-sent events; legacy servers also have a
 * session, a stream of their own (GET), and streams that continue after a given event. The owner of the connection
 * (coreengine/tools/mcp/http/exchange.c) passes heads and bytes in, and does what the verdict says. */
#ifndef RV_MCP_HTTP_H
#define RV_MCP_HTTP_H

#include "coreengine/base/base.h"
#include "coreengine/mcp/link.h"

#define RV_MCP_MAX_HTTP_HEADERS 48                  /* of one request: a dozen of ours, the rest mirrored arguments */
#define RV_MCP_MAX_HEADER       ((size_t)8 << 10)   /* bytes of one of them: common servers refuse longer heads */
#define RV_MCP_MAX_SESSION      1024                /* bytes of a session's id: tokens of servers are shorter */
#define RV_MCP_MAX_STREAM       ((size_t)256 << 20) /* bytes of one answer with all its notifications: it must end */

/* Lines "Name: value" of a request. Zeroed: none. */
struct rv_mcp_headers {
    char *lines[RV_MCP_MAX_HTTP_HEADERS]; /* owned */
    size_t n;
};
void rv_mcp_headers_fini(struct rv_mcp_headers *h);
/** Add one, in place of one of the same name, whatever its case. RV_E_LIMIT, RV_E_NOMEM, RV_E_INVALID: the name is not
 * a token, or the value has a control character. */
RV_MUST_CHECK int rv_mcp_headers_add(struct rv_mcp_headers *h, const char *name, rv_str value, rv_err **err);
/** May the engine, or a server that calls another one, say with that header who asks? Of a server that is `own`, only
 * the engine says so. "_" counts as "-", which servers of CGI do not tell apart. */
bool rv_mcp_is_context_header(rv_str name);
/** Does the status say that the same request may succeed later? */
bool rv_mcp_is_busy(int status);
/** Add all of another one, in the same way. RV_E_LIMIT, RV_E_NOMEM. */
RV_MUST_CHECK int rv_mcp_headers_copy(const struct rv_mcp_headers *from, struct rv_mcp_headers *to, rv_err **err);
/** The headers of a POST. session: of a legacy server; "": none yet. Values of m->headers that cannot stand in a header
 *  are encoded. */
RV_MUST_CHECK int rv_mcp_headers_build(const struct rv_mcp_send *m, const char *session, struct rv_mcp_headers *out,
                                       rv_err **err);
/** The headers of GET (a stream of a legacy server; last_id "": from now on) and of DELETE (last_id NULL). */
RV_MUST_CHECK int rv_mcp_headers_build_stream(const char *version, const char *session, const char *last_id,
                                              struct rv_mcp_headers *out, rv_err **err);
/** Append a value as Mcp-Name and Mcp-Param-* have it: plain ASCII as it is, anything else as =?base64?...?=. */
void rv_mcp_header_write_value(rv_str value, rv_buf *out);
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
RV_MUST_CHECK int rv_mcp_answer_on_head(struct rv_mcp_answer *a, const struct rv_mcp_head *head, rv_err **err);
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
bool rv_mcp_challenge_read(rv_str value, const char *name, rv_buf *out);

/* --- How a client gets a token for an MCP server: a state machine without I/O, clock and randomness.
 *
 * rv_oauth_step() says what is next: a request to make, an address that a person has to open, or the end. The answers
 * are passed in, and the machine goes on. It follows the authorization of MCP: the server names its authorization
 * server (RFC 9728), whose metadata (RFC 8414 or OpenID Connect) names the endpoints; PKCE with S256, always; the
 * server's address as the resource of each token (RFC 8707); the issuer of an answer compared (RFC 9207).
 *
 * What comes from servers is hostile: endpoints must use https or lead to this machine, metadata must name the server
 * and the issuer that it was asked for, tokens and codes are checked before they are used. No secret is ever in an
 * error. --- */

#define RV_OAUTH_MAX_ANSWER ((size_t)256 << 10) /* bytes of one document: metadata has a few thousand */
#define RV_OAUTH_MAX_TOKEN  ((size_t)6 << 10)   /* bytes of a token: it has to fit into a header */
#define RV_OAUTH_RANDOM     96 /* bytes: for the verifier of PKCE, the state, an assertion and its signature */

/* Who says that the client may have a token. */
enum rv_oauth_grant {
    RV_OAUTH_PERSON,    /* a person, whose code the client gets */
    RV_OAUTH_CLIENT,    /* the client itself: client credentials */
    RV_OAUTH_ASSERTION, /* a JWT that another one signed (RFC 7523), such as a workload's identity */
    RV_OAUTH_ID_TOKEN,  /* the identity provider of a company, which makes such a JWT of a person's token (RFC 8693) */
    RV_N_OAUTH_GRANTS
};
/* What a person configured. All borrowed while the machine lives. */
struct rv_oauth_config {
    const char *server;        /* its name, for messages */
    const char *resource;      /* its address */
    const char *client_id;     /* registered beforehand; NULL: not */
    const char *client_secret; /* NULL: none */
    const char *private_key;   /* in PEM: the client signs who it is (private_key_jwt); NULL: it does not */
    const char *key_id;        /* of that key, as the authorization server knows it; NULL: it has none */
    const char *metadata_url;  /* of a client metadata document, which is the client's id; NULL: none */
    const char *scope;         /* words to ask for besides those that the server names; NULL: none */
    const char *redirect_uri;  /* where a browser brings the answer of a person; NULL: no person can be asked now */
    enum rv_oauth_grant grant;
    const char *assertion;          /* ASSERTION: the JWT */
    const char *id_token;           /* ID_TOKEN: of the person */
    const char *idp_token_endpoint; /* ID_TOKEN: of the identity provider, */
    const char *idp_client_id;      /* which knows the client by this name, */
    const char *idp_client_secret;  /* and this secret; NULL: by none */
};

/* What is kept of one server from one time to the next: a JSON object.
 *   issuer, scope, access_token, refresh_token, expires_at (seconds), client {id, secret, issuer, redirect_uri}
 *   challenge: the last refusal that a person has to do something about {resource_metadata, scope} */

typedef struct rv_oauth rv_oauth;
enum rv_oauth_kind {
    RV_OAUTH_FETCH, /* make the request, then rv_oauth_on_answer() */
    RV_OAUTH_ASK,   /* have a person open url, then rv_oauth_on_redirect() with the query that comes to redirect_uri */
    RV_OAUTH_DONE,  /* a token is in what is kept */
};
/* Borrowed until the machine is told something. */
struct rv_oauth_step {
    enum rv_oauth_kind kind;
    const char *method; /* "GET" or "POST" */
    const char *url;
    rv_str body;
    const char *content_type;  /* of body; NULL: none */
    const char *authorization; /* value of the header; NULL: none */
};

/* What the machine begins with. Borrowed for the call, but for kept. */
struct rv_oauth_start {
    json_object *kept;           /* changed in place, and holds the result; outlives the machine */
    int status;                  /* of the refusal; 0: there was none */
    rv_str challenge;            /* of the refusal; empty: there was none */
    const unsigned char *random; /* RV_OAUTH_RANDOM bytes that nothing else uses */
};
/** Begin: rv_oauth_step() says what is to be done first. */
RV_MUST_CHECK int rv_oauth_new(const struct rv_oauth_config *config, const struct rv_oauth_start *start, rv_oauth **out,
                               rv_err **err);
void rv_oauth_free(rv_oauth *o); /* overwrites its secrets */
const struct rv_oauth_step *rv_oauth_step(const rv_oauth *o);
/** The answer to the request; status 0: there was none. RV_E_DENIED: a person has to do something, or a server must not
 *  be trusted; RV_E_PARSE, RV_E_PROVIDER: a server answered badly; RV_E_NOT_FOUND: it names no authorization server. */
RV_MUST_CHECK int rv_oauth_on_answer(rv_oauth *o, int status, rv_str body, int64_t now_us, rv_err **err);
/** The query that a browser brought: "code=...&state=...". RV_E_INVALID: it does not belong to this request, which goes
 *  on waiting; RV_E_DENIED: the person or the server said no. */
RV_MUST_CHECK int rv_oauth_on_redirect(rv_oauth *o, rv_str query, int64_t now_us, rv_err **err);

/** Append the token, if there is one that has not expired. */
bool rv_oauth_read_token(json_object *kept, int64_t now_us, rv_buf *out);
/** Note in kept that a person has to do something about a refusal. */
RV_MUST_CHECK int rv_oauth_note(json_object *kept, rv_str challenge, rv_err **err);

#endif
