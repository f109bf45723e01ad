/* Tokens for one MCP server: what a link sends with its requests, and how it gets a new one.
 *
 * Tokens are kept in a file of the state directory that only its owner may read (0600, replaced as a whole). Where no
 * person is needed, a refresh token or the client's own credentials get a new one while the request waits; where one
 * is, the request fails and names `reeve mcp login`. No token, code or secret is ever logged or part of an error. */
#ifndef RV_MCP_TOKENS_H
#define RV_MCP_TOKENS_H

#include "coreengine/mcp/http.h"
#include "coreengine/model/http/http.h"

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
RV_MUST_CHECK int rv_mcp_tokens_redirected(rv_mcp_tokens *t, rv_str query, rv_err **err);

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

#endif
