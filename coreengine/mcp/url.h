/* Addresses of http and https, taken apart. What is not plainly one is refused; nothing is decoded. */
#ifndef RV_MCP_URL_H
#define RV_MCP_URL_H

#include "coreengine/base/buf.h"

/* Views of the text that was read. */
struct rv_mcp_url {
    bool is_https;
    rv_str origin; /* "https://host:port" as written, without a user */
    rv_str host;   /* with the brackets of IPv6 */
    int port;      /* also where none is written */
    rv_str path;   /* "/..." or empty; without query and fragment */
    rv_str query;  /* with its "?"; empty: none */
    bool has_user, has_fragment;
};
/** ASCII, without regard to case. */
bool rv_mcp_same_word(rv_str a, rv_str b);
/** False: it is not one. */
RV_MUST_CHECK bool rv_mcp_url_read(rv_str text, struct rv_mcp_url *out);
/** Is the host an address written as a number, or localhost? */
bool rv_mcp_url_is_literal(const struct rv_mcp_url *u);
/** Is the host this machine, as written: localhost, 127.0.0.0/8 or [::1]? */
bool rv_mcp_url_is_local(const struct rv_mcp_url *u);
/** Same scheme, host and port. */
bool rv_mcp_url_same_origin(const struct rv_mcp_url *a, const struct rv_mcp_url *b);
/** Append text as a value of a form or a query: all but letters, digits and "-._~" as %XX. */
void rv_mcp_url_encode(rv_str text, rv_buf *out);
/** Append the decoded value of `name` in a query or form ("a=b&c=d"); false: it is not there, or badly encoded. */
RV_MUST_CHECK bool rv_mcp_query_get(rv_str query, const char *name, rv_buf *out);

#endif
