/* A login at an MCP server: a person opens an address in a browser, which brings the answer back to this machine. */
#ifndef RV_MCP_LOGIN_H
#define RV_MCP_LOGIN_H

#include "coreengine/tools/mcp/http/web.h"

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
 *  rv_oauth_answer() says. */
RV_MUST_CHECK int rv_mcp_login(const struct rv_mcp_login_opts *opts, rv_err **err);

#endif
