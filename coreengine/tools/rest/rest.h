/* A REST server that a document of OpenAPI describes, as a link to an MCP server.
 *
 * A session of MCP uses the link like any other. `tools/list` reads the document, from a file or by HTTP, and gives its
 * operations as tools; `tools/call` makes the request that the call carries in its `_meta`. Requests go only where the
 * policy for addresses allows it, redirects are followed to the same origin only, and answers are bounded.
 *
 * Everything belongs to the loop's thread. */
#ifndef RV_REST_H
#define RV_REST_H

#include "coreengine/mcp/mcp.h"

struct uv_loop_s;

/* What it points to is copied. */
struct rv_rest_opts {
    struct uv_loop_s *loop; /* borrowed; until `closed` has come */
    const char *document;   /* a path, or an address of http:// or https://; copied, as all texts */
    const char *url;        /* where the operations begin; "": as the document says */
    json_object *headers;   /* of each request: an object of texts; NULL: none */
    bool is_own;            /* it is told who asks: no argument of a model may say that */
    const char *allowed;    /* addresses beside public ones, as REEVE_ALLOW_NET lists them; NULL: none */
    const char *ca_file;    /* of PEM certificates to trust; NULL: the system's */
    struct rv_mcp_link_user user;
};
/** RV_E_INVALID: an address is not one of http:// or https://, or a header is malformed; RV_E_DENIED: a user or a
 *  password is in an address; RV_E_PARSE: allowed; RV_E_NOT_FOUND: libcurl; RV_E_NOMEM, RV_E_IO. Neither reads nor
 *  connects before the first message. */
RV_MUST_CHECK int rv_rest_open(const struct rv_rest_opts *opts, struct rv_mcp_link *out, rv_err **err);

#endif
