/* How a client gets a token for an MCP server: a state machine without I/O, clock and randomness.
 *
 * rv_oauth_step() says what is next: a request to make, an address that a person has to open, or the end. The answers
 * are passed in, and the machine goes on. It follows the authorization of MCP: the server names its authorization
 * server (RFC 9728), whose metadata (RFC 8414 or OpenID Connect) names the endpoints; PKCE with S256, always; the
 * server's address as the resource of each token (RFC 8707); the issuer of an answer compared (RFC 9207).
 *
 * What comes from servers is hostile: endpoints must use https or lead to this machine, metadata must name the server
 * and the issuer that it was asked for, tokens and codes are checked before they are used. No secret is ever in an
 * error. */
#ifndef RV_MCP_OAUTH_H
#define RV_MCP_OAUTH_H

#include "coreengine/base/json.h"

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
    RV_OAUTH_FETCH, /* make the request, then rv_oauth_answer() */
    RV_OAUTH_ASK,   /* have a person open url, then rv_oauth_redirected() with the query that comes to redirect_uri */
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

/** Begin. status and challenge: of the refusal, 0 and empty where there was none. kept: borrowed, changed in place; it
 *  holds the result. random: RV_OAUTH_RANDOM bytes that nothing else uses. */
RV_MUST_CHECK int rv_oauth_new(const struct rv_oauth_config *config, json_object *kept, int status, rv_str challenge,
                               const unsigned char *random, rv_oauth **out, rv_err **err);
void rv_oauth_free(rv_oauth *o); /* overwrites its secrets */
const struct rv_oauth_step *rv_oauth_step(const rv_oauth *o);
/** The answer to the request; status 0: there was none. RV_E_DENIED: a person has to do something, or a server must not
 *  be trusted; RV_E_PARSE, RV_E_PROVIDER: a server answered badly; RV_E_NOT_FOUND: it names no authorization server. */
RV_MUST_CHECK int rv_oauth_answer(rv_oauth *o, int status, rv_str body, int64_t now_us, rv_err **err);
/** The query that a browser brought: "code=...&state=...". RV_E_INVALID: it does not belong to this request, which goes
 *  on waiting; RV_E_DENIED: the person or the server said no. */
RV_MUST_CHECK int rv_oauth_redirected(rv_oauth *o, rv_str query, int64_t now_us, rv_err **err);

/** Append the token, if there is one that has not expired. */
bool rv_oauth_token(json_object *kept, int64_t now_us, rv_buf *out);
/** Note in kept that a person has to do something about a refusal. */
RV_MUST_CHECK int rv_oauth_note(json_object *kept, rv_str challenge, rv_err **err);

#endif
