/* MCP servers over HTTP: links to them, their tokens, and the login of a person. */
#ifndef RV_TOOLS_MCP_HTTP_HTTP_H
#define RV_TOOLS_MCP_HTTP_HTTP_H

#include "coreengine/mcp/mcp.h"
#include "coreengine/model/http/http.h"

/* Tokens for one MCP server: what a link sends with its requests, and how it gets a new one.
 *
 * Tokens are kept in a file of the state directory that only its owner may read (0600, replaced as a whole). Where no
 * person is needed, a refresh token or the client's own credentials get a new one while the request waits; where one
 * is, the request fails and names `reeve mcp login`. No token, code or secret is ever logged or part of an error. */

typedef struct rv_mcp_tokens rv_mcp_tokens;

struct rv_mcp_tokens_opts {
    rv_http *http;                 /* borrowed */
    const rv_egress *egress;       /* borrowed; authorization servers are reached under the same policy */
    const char *ca_file;           /* borrowed; NULL: the system's */
    const char *file;              /* where tokens are kept; copied; its folder is made when it is written first */
    struct rv_oauth_config config; /* texts are copied */
    struct rv_clock clock;
    struct rv_rand rand;
};
/** RV_E_INVALID: the file is not what was written there; RV_E_IO, RV_E_NOMEM. No file is fine. */
RV_MUST_CHECK int rv_mcp_tokens_new(const struct rv_mcp_tokens_opts *opts, rv_mcp_tokens **out, rv_err **err);
/** Ends what is under way; no callback comes any more. */
void rv_mcp_tokens_free(rv_mcp_tokens *t);

/* A login: a person opens an address, and the browser brings the answer to redirect_uri. */
struct rv_mcp_login {
    void (*ask)(struct rv_mcp_login *l, const char *url);  /* from the loop; url is borrowed */
    void (*done)(struct rv_mcp_login *l, rv_err *problem); /* from the loop; NULL: the token is kept. Takes problem */
};
/** Begin one; config.redirect_uri is set, or no person is needed. RV_E_STATE: one is under way. */
RV_MUST_CHECK int rv_mcp_tokens_login(rv_mcp_tokens *t, struct rv_mcp_login *l, rv_err **err);
/** The query that came to redirect_uri. RV_E_INVALID: it does not belong to the login, which goes on waiting. Other
 *  errors end it; `done` comes from the loop otherwise. */
RV_MUST_CHECK int rv_mcp_tokens_on_redirect(rv_mcp_tokens *t, rv_str query, rv_err **err);

/* The server refused a request: 401, or 403 with insufficient_scope. Borrowed until the call returns. */
struct rv_mcp_refusal {
    int status;
    rv_str challenge; /* the value of WWW-Authenticate; empty: none */
};
/* A request that waits for a token. The caller's storage until `done` or rv_mcp_tokens_forget(). */
struct rv_mcp_wait {
    /** Comes from the loop. has_token: send it again with rv_mcp_tokens_get(); else why says what a person can do. */
    void (*done)(struct rv_mcp_wait *w, bool has_token, const char *why);
    struct rv_mcp_wait *next;
};

/** Append the token to send; false: there is none. */
bool rv_mcp_tokens_get(const rv_mcp_tokens *t, rv_buf *out);
/** Get another token. 0: `done` will come, for several requests at once. 1: there is another one already, which another
 *  process got. RV_E_NOMEM and errors of a request: `done` does not come. */
RV_MUST_CHECK int rv_mcp_tokens_renew(rv_mcp_tokens *t, const struct rv_mcp_refusal *why, struct rv_mcp_wait *w,
                                      rv_err **err);
/** No `done` for it any more. */
void rv_mcp_tokens_forget(rv_mcp_tokens *t, struct rv_mcp_wait *w);

/* A link to an MCP server over streamable HTTP.
 *
 * One message is one POST. A legacy server may have a session, a stream of its own, and streams that continue after
 * they broke; the link keeps all of that to itself. Redirects are followed only to the same origin, and requests go
 * only where the policy for addresses allows it. The server is hostile: sizes, counts and repeats are bounded by
 * constants here and in coreengine/mcp/http.h; how long a request may take is the session's to say (cancel).
 *
 * Everything belongs to the loop's thread. */

#define RV_MCP_MAX_REQUESTS 256               /* of one link under way; a session asks for a few at a time */
#define RV_MCP_MAX_URL      ((size_t)8 << 10) /* bytes: common servers refuse longer ones */

/* How a token is got, where the server wants one. Texts are copied by what takes it. */
struct rv_mcp_web_auth {
    const char *file;              /* where tokens are kept */
    struct rv_oauth_config config; /* resource is filled in */
};
/* What it points to is copied, unless it says borrowed. */
struct rv_mcp_web_opts {
    struct uv_loop_s *loop;     /* borrowed; until `closed` has come */
    const char *url;            /* copied, as all texts */
    const char *const *headers; /* "Name: value" as configured, for this server only */
    size_t n_headers;
    const char *allowed; /* addresses beside public ones, as REEVE_ALLOW_NET lists them; NULL: none */
    bool awaits_stream;  /* requests wait, for a short time, until a legacy server's own stream is open: what it asks on
                            that stream before would be lost */
    const char *ca_file; /* of PEM certificates to trust; NULL: the system's */
    const struct rv_mcp_web_auth *auth; /* NULL: the headers have what the server wants */
    rv_log *log;                        /* borrowed like loop; may be NULL */
    struct rv_mcp_link_user user;
};
/** RV_E_INVALID: the address is not one of http:// or https://, or a header is malformed; RV_E_DENIED: a user or a
 *  password is in the address; RV_E_PARSE: allowed; RV_E_NOT_FOUND: libcurl; RV_E_NOMEM, RV_E_IO. Connects with the
 *  first message. */
RV_MUST_CHECK int rv_mcp_web_open(const struct rv_mcp_web_opts *opts, struct rv_mcp_link *out, rv_err **err);

/** Why a request has no answer. */
enum rv_mcp_fault rv_mcp_fault_of_http(const struct rv_http_end *end);

/** Follow a redirect: *url, which is owned, becomes the address that `location` means. *n counts them. RV_E_LIMIT: too
 *  many; RV_E_DENIED: it leads to another origin; RV_E_INVALID, RV_E_NOMEM. After a failure *url may be NULL. */
RV_MUST_CHECK int rv_mcp_web_follow_redirect(rv_http *h, const char *location, int *n, char **url, rv_err **err);

/** The policy for one server: `allowed`, and the server's own address where a person wrote it as a number or as
 *  localhost. A name that leads to a private address is not enough. */
RV_MUST_CHECK int rv_mcp_web_make_egress(const char *url, const char *allowed, rv_egress **out, rv_err **err);

/* A login at an MCP server: a person opens an address in a browser, which brings the answer back to this machine. */

/* What it points to is borrowed for the call. */
struct rv_mcp_login_opts {
    const char *url;                    /* of the server */
    const char *allowed, *ca_file;      /* as in struct rv_mcp_web_opts */
    const struct rv_mcp_web_auth *auth; /* redirect_uri is filled in */
    const char *browser; /* a program with arguments that is started with the address as its last one; NULL: none */
    int64_t max_us;      /* for the whole login */
    void (*show)(void *self, const char *url); /* tells the person the address */
    void *self;
};
/** Blocks until the token is kept. RV_E_TIMEOUT, RV_E_DENIED, RV_E_IO (no port, no browser), and what
 *  rv_oauth_on_answer() says. */
RV_MUST_CHECK int rv_mcp_login(const struct rv_mcp_login_opts *opts, rv_err **err);

#endif
