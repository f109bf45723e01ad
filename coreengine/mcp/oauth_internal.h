/* Shared by the files of the machine for tokens. */
#ifndef RV_MCP_OAUTH_INTERNAL_H
#define RV_MCP_OAUTH_INTERNAL_H

#include "coreengine/base/base.h"
#include "coreengine/mcp/http.h"
#include "coreengine/mcp/mcp.h"

#define OAUTH_MAX_URL    ((size_t)4 << 10)  /* bytes: half of what common servers take, for parameters follow */
#define OAUTH_MAX_TEXT   ((size_t)16 << 10) /* of a form or an address: OAUTH_MAX_URL for each of four parameters */
#define OAUTH_ID_BYTES   16                 /* of the id of an assertion */
#define OAUTH_CANDIDATES 4                  /* addresses that the specification lets a server have its metadata at */

enum oauth_state {
    OAUTH_RESOURCE, /* the server's metadata is asked for */
    OAUTH_ISSUER,   /* the authorization server's */
    OAUTH_REGISTER, /* it makes a client id */
    OAUTH_PERSON,   /* a person is asked */
    OAUTH_EXCHANGE, /* the identity provider makes an assertion of a person's token */
    OAUTH_TOKEN,    /* a code, an assertion, or the client itself, for a token */
    OAUTH_REFRESH,  /* the refresh token for a token */
    OAUTH_OVER,
};

struct rv_oauth {
    struct rv_oauth_config config;
    json_object *kept; /* borrowed */
    enum oauth_state state;
    int status; /* of the refusal */
    rv_buf challenge_scope, challenge_metadata;
    char *candidates[OAUTH_CANDIDATES]; /* owned; addresses to try in turn */
    size_t n_candidates, at;
    bool is_malformed;                /* an address of its metadata answered with something else */
    bool is_old;                      /* the server has no metadata: its origin is the authorization server */
    char *issuer;                     /* owned */
    bool has_metadata;                /* false: what is assumed of an old server */
    json_object *resource, *metadata; /* owned; as the servers answered */
    rv_buf scope;                     /* to ask for */
    char verifier[44], state_word[33];
    unsigned char assertion_id[OAUTH_ID_BYTES], seed[RV_SIGN_SEED]; /* of the one assertion that it signs */
    int64_t now_us;                                                 /* when it was told something last */
    rv_buf code /* or an assertion */, url, body, authorization;
    struct rv_oauth_step step;
};

/* oauth_assert.c */
/** Append the form of a client that signs who it is. */
RV_MUST_CHECK int oauth_put_assertion(rv_oauth *o, const char *client_id, rv_err **err);
/** rv_oauth_step: the identity provider is asked for an assertion. */
RV_MUST_CHECK int oauth_write_exchange(rv_oauth *o, rv_err **err);
/** Its answer. */
RV_MUST_CHECK int oauth_read_exchange(rv_oauth *o, json_object *doc, rv_err **err);
/** The assertion for a token. RV_E_DENIED: it is for another authorization server, which could use it as its own. */
RV_MUST_CHECK int oauth_assertion(rv_oauth *o, rv_str *out, rv_err **err);

/* oauth_text.c */
void oauth_base64url(const unsigned char *bytes, size_t n, rv_buf *out);
void oauth_put(rv_buf *out, const char *name, rv_str value); /* one member of a form or of a query */
/** The header of a client with a secret. */
void oauth_put_basic(rv_oauth *o, const char *id, const char *secret);
/** rv_oauth_step: what is in o->body, to that address. */
RV_MUST_CHECK int oauth_post(rv_oauth *o, const char *url, const char *content_type, rv_err **err);
rv_str oauth_resource(const rv_oauth *o);
/** rv_oauth_step for the state: an address with parameters, a form. */
RV_MUST_CHECK int oauth_write_person(rv_oauth *o, rv_err **err);
RV_MUST_CHECK int oauth_write_registration(rv_oauth *o, rv_err **err);
RV_MUST_CHECK int oauth_write_token(rv_oauth *o, rv_err **err);
/** The endpoint of that name; NULL: there is none. *err only for one that must not be used. */
RV_MUST_CHECK int oauth_endpoint(rv_oauth *o, const char *name, const char **out, rv_err **err);
/** The client: its id and its secret (NULL: none), as configured or kept for this issuer. */
const char *oauth_client(const rv_oauth *o, const char **secret);
/** Does an array of texts in the metadata have that text? false where it is absent. */
bool oauth_supports(json_object *metadata, const char *key, const char *text);

/* oauth_discovery.c */
RV_MUST_CHECK int oauth_find_resource(rv_oauth *o, rv_err **err); /* fills in candidates */
RV_MUST_CHECK int oauth_read_resource(rv_oauth *o, json_object *doc, rv_err **err);
RV_MUST_CHECK int oauth_find_issuer(rv_oauth *o, rv_err **err);
RV_MUST_CHECK int oauth_read_issuer(rv_oauth *o, json_object *doc, rv_err **err);
void oauth_drop_candidates(rv_oauth *o);
RV_MUST_CHECK int oauth_check_url(const char *text, const char *what, rv_err **err);

#endif
