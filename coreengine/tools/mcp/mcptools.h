/* The tools of a pipeline's MCP servers: listed at the start of a run, called while it goes on.
 *
 * A run decides by the lists that it began with; its bundle has them. One rv_mcp_tools belongs to one loaded pipeline
 * and one thread; several runs of that thread may use it. */
#ifndef RV_MCPTOOLS_H
#define RV_MCPTOOLS_H

#include "coreengine/mcp/tools.h"
#include "coreengine/tools/mcp/pool.h"
#include "coreengine/tools/source.h"

typedef struct rv_mcp_tools rv_mcp_tools;

/** Append the path of a file that is kept of a server: folder/kind/name-hash.json. */
void rv_mcp_state_path(const char *folder, const char *kind, const struct rv_mcp_server_config *server, rv_buf *out);

/* How long servers are waited for besides their time limits: until is_over says so, as seldom as every 50 ms, on the
 * thread that waits; zeroed: they are. */
struct rv_mcp_until {
    bool (*is_over)(const void *self);
    const void *self; /* borrowed; outlives the wait */
};
/* What it points to is borrowed for the call, unless it says that it outlives the set. */
struct rv_mcp_tools_opts {
    const struct rv_pipeline *pipeline; /* borrowed; outlives the tools */
    bool connects; /* servers are started and asked for their lists; else the kept files say what they have */
    struct rv_mcp_until until; /* servers are waited for */
    bool is_called;            /* calls will be made: of lists that are kept, too */
    json_object *lists;        /* as rv_mcp_catalog_write() gave them when the run began; borrowed; NULL: none */
    struct rv_mcp_http_transport http;
    struct rv_mcp_lists *kept; /* borrowed; lists that are fresh are not asked for; NULL: all are */
    const char *state;         /* folder for pins, docs/how-to/approve-tools.md; NULL: nothing is pinned */
    struct {
        rv_buf *text;       /* gets what differs from the pins; NULL: nothing is approved */
        const char *server; /* NULL: all */
        bool is_yes;        /* and pins it */
    } approve;
    rv_log *log;           /* borrowed; may be NULL */
    rv_findings *findings; /* servers that fail, tools that are left out, files that cannot be read */
};
/** Blocks while servers are asked, each of them at most its timeout_ms; all are asked at once. A server that fails is a
 * warning, or an error if it is required. RV_E_NOMEM, RV_E_LIMIT, RV_E_INVALID (lists), RV_E_CANCELLED (until). */
RV_MUST_CHECK int rv_mcp_tools_new(const struct rv_mcp_tools_opts *opts, rv_mcp_tools **out, rv_err **err);
void rv_mcp_tools_free(rv_mcp_tools *t); /* as rv_mcp_pool_free() */
const rv_mcp_catalog *rv_mcp_tools_catalog(const rv_mcp_tools *t);
/** Was the server asked for its list, without success? A kept file may have stood in for it. */
bool rv_mcp_tools_has_failed(const rv_mcp_tools *t, const struct rv_mcp_server_config *server);
rv_mcp_pool *rv_mcp_tools_pool(const rv_mcp_tools *t); /* NULL: no call can be made */

/** The source for one run. Its calls need the pool to be attached to the loop of the caller. t NULL: has no tools.
 *  workers ask models for servers that want completions; all runs that use t have the same ones, which are copied. */
struct rv_tool_source rv_mcp_tools_source(rv_mcp_tools *t, const struct rv_tool_workers *workers);

#endif
