/* A link to an MCP server over streamable HTTP.
 *
 * One message is one POST. A legacy server may have a session, a stream of its own, and streams that continue after
 * they broke; the link keeps all of that to itself. Redirects are followed only to the same origin, and requests go
 * only where the policy for addresses allows it. The server is hostile: sizes, counts and repeats are bounded by
 * constants here and in coreengine/mcp/http.h; how long a request may take is the session's to say (cancel).
 *
 * Everything belongs to the loop's thread. */
#ifndef RV_MCP_WEB_H
#define RV_MCP_WEB_H

#include "coreengine/mcp/http.h"
#include "coreengine/model/http/http.h"
#include "coreengine/tools/mcp/http/tokens.h"

#define RV_MCP_MAX_REQUESTS 256               /* of one link under way; a session asks for a few at a time */
#define RV_MCP_MAX_URL      ((size_t)8 << 10) /* bytes */

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
RV_MUST_CHECK int rv_mcp_web_redirect(rv_http *h, const char *location, int *n, char **url, rv_err **err);

/** The policy for one server: `allowed`, and the server's own address where a person wrote it as a number or as
 *  localhost. A name that leads to a private address is not enough. */
RV_MUST_CHECK int rv_mcp_web_egress(const char *url, const char *allowed, rv_egress **out, rv_err **err);

#endif
