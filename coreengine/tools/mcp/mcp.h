/* The tools of MCP servers: connections to the servers, and the lists and calls of their tools. */
#ifndef RV_TOOLS_MCP_MCP_H
#define RV_TOOLS_MCP_MCP_H

#include "config/config.h"
#include "coreengine/mcp/mcp.h"
#include "coreengine/tools/tools.h"

/* Connections to MCP servers: one for each server of a pipeline, with the calls that wait for it.
 *
 * A pool has a libuv loop of its own. rv_mcp_pool_wait() runs it until something has happened; rv_mcp_pool_attach()
 * hangs it into another loop, whose thread then owns the pool. All functions belong to one thread, and all callbacks
 * come from the loop, never from inside a function of this header. */

struct uv_loop_s;
typedef struct rv_mcp_pool rv_mcp_pool;

/* Lists of tools that servers said stay fresh, for all pipelines of a process. Any thread may use it. */
typedef struct rv_mcp_lists rv_mcp_lists;
rv_mcp_lists *rv_mcp_lists_new(void);    /* NULL: out of memory */
void rv_mcp_lists_free(rv_mcp_lists *l); /* no pool that borrows it is left */

/* Opens links over HTTP; stdio is the pool's own. */
struct rv_mcp_http_transport {
    /** user as in coreengine/mcp/link.h; loop: the pool's. What it says becomes the answer of the calls. */
    int (*open)(void *self, const struct rv_mcp_server_config *server, struct uv_loop_s *loop,
                const struct rv_mcp_link_user *user, struct rv_mcp_link *out, rv_err **err);
    void *self; /* borrowed; outlives the pool */
};
struct rv_mcp_pool_opts {
    const struct rv_mcp_server_config *servers; /* borrowed; they outlive the pool */
    size_t n_servers;
    struct rv_mcp_http_transport http; /* open NULL: a server with an url cannot be reached */
    rv_mcp_lists *kept; /* borrowed; a server that tells of a change loses its list there; NULL: none are kept */
    rv_log *log;        /* borrowed; may be NULL */
};
RV_MUST_CHECK int rv_mcp_pool_new(const struct rv_mcp_pool_opts *opts, rv_mcp_pool **out, rv_err **err);
/** Ends all connections in good order. No call is under way. Waits until the servers have ended, at most some seconds;
 * a pool that is attached does not wait: it frees itself while that loop runs, and is freed on the thread of that loop:
 * before another thread frees it, it is detached there. NULL is fine. */
void rv_mcp_pool_free(rv_mcp_pool *p);
RV_MUST_CHECK int rv_mcp_pool_attach(rv_mcp_pool *p, struct uv_loop_s *loop, rv_err **err);
void rv_mcp_pool_detach(
    rv_mcp_pool *p); /* that loop ends before the pool does; nothing to do when it is not attached */

/* One request, in the caller's storage until `done` or rv_mcp_pool_cancel(). */
struct rv_mcp_call {
    void (*done)(struct rv_mcp_call *c, const struct rv_mcp_out *out);     /* as RV_MCP_OUT_DONE */
    void (*progress)(struct rv_mcp_call *c, const struct rv_mcp_out *out); /* may be NULL */
    void (*sample)(struct rv_mcp_call *c, const struct rv_mcp_out *out);   /* as RV_MCP_OUT_SAMPLE; NULL: refused */
    /* the pool's */
    struct rv_mcp_call *next;
    struct mcp_connection *connection; /* owned by the pool; NULL: not under way */
    int64_t ask;
};
/** Ask a server. RV_E_LIMIT, RV_E_NOMEM: nothing was asked. */
RV_MUST_CHECK int rv_mcp_pool_ask(rv_mcp_pool *p, const struct rv_mcp_server_config *server,
                                  const struct rv_mcp_ask *ask, struct rv_mcp_call *c, rv_err **err);
/** Answer what its `sample` wanted, later or from within it: as rv_mcp_client_answer_sample(). */
void rv_mcp_pool_answer_sample(struct rv_mcp_call *c, int64_t sample, json_object *result, const char *why);
/** The answer is not wanted any more. Nothing to do for a call that is over. */
void rv_mcp_pool_cancel(struct rv_mcp_call *c);
/** Run the pool's loop until something happened, or for at most that long. Not while it is attached. */
void rv_mcp_pool_wait(rv_mcp_pool *p, int64_t max_us);
/** The client of a connection; NULL: there is none now. */
const rv_mcp_client *rv_mcp_pool_client(const rv_mcp_pool *p, const struct rv_mcp_server_config *server);

/* The tools of a pipeline's MCP servers: listed at the start of a run, called while it goes on.
 *
 * A run decides by the lists that it began with; its bundle has them. One rv_mcp_tools belongs to one loaded pipeline
 * and one thread; several runs of that thread may use it. */

typedef struct rv_mcp_tools rv_mcp_tools;

/** Append the path of a file that is kept of a server: folder/kind/name-hash.json. */
void rv_mcp_write_state_path(const char *folder, const char *kind, const struct rv_mcp_server_config *server,
                             rv_buf *out);

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
    rv_mcp_lists *kept; /* borrowed; lists that are fresh are not asked for; NULL: all are */
    const char *state;  /* folder for pins, docs/how-to/approve-tools.md; NULL: nothing is pinned */
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
