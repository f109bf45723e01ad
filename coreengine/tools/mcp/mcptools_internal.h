/* Shared by the files of this folder only. */
#ifndef RV_MCPTOOLS_INTERNAL_H
#define RV_MCPTOOLS_INTERNAL_H

#include <pthread.h>
#include <uv.h>

#include "coreengine/base/base.h"
#include "coreengine/tools/mcp/mcp.h"

struct rv_mcp_tools {
    rv_log *log;                                /* borrowed */
    rv_mcp_catalog *catalog;                    /* owned */
    rv_mcp_pool *pool;                          /* NULL: no call can be made; owned */
    const struct rv_mcp_server_config *servers; /* borrowed */
    bool *failed;                               /* of the servers: its list could not be read; owned */
    struct rv_tool_workers workers;             /* begin NULL: no model is asked; borrowed */
};

/* --- sample.c: completions that a call's server wants --- */
/* Those of one call. Zeroed: none. */
struct mcp_samples {
    struct mcp_sample *first;              /* under way, owned by the workers; then those that wait for it, owned */
    bool *gone;                            /* told when the call ends; NULL: it is not asked for. Borrowed */
    const struct rv_tool_workers *workers; /* NULL: no model is asked; borrowed */
    const char *model;                     /* "provider:model"; borrowed */
    struct rv_tool_call *of;               /* borrowed */
    struct rv_mcp_call *call;              /* borrowed */
    const char *tool;                      /* borrowed */
    char *texts[5];                        /* who calls: owned, see sample.c */
};
/** Before the call begins, whose texts are borrowed until then. */
RV_MUST_CHECK int mcptools_samples_init(struct mcp_samples *s, const struct rv_mcp_tool *tool, rv_err **err);
/** The server wants a completion. */
void mcptools_samples_add(struct mcp_samples *s, int64_t sample, json_object *params);
void mcptools_samples_end(struct mcp_samples *s); /* the call is over: what is under way is given up, and counted */

/* --- stdio.c --- */
struct rv_mcp_stdio {
    uv_loop_t *loop;                           /* borrowed */
    const struct rv_mcp_server_config *server; /* borrowed for the call */
    struct rv_mcp_link_user user;
};
/** Start the server. RV_E_NOT_FOUND, RV_E_IO: it cannot be started; RV_E_LIMIT, RV_E_NOMEM. */
RV_MUST_CHECK int mcptools_mcp_stdio_open(const struct rv_mcp_stdio *how, struct rv_mcp_link *out, rv_err **err);

/* --- roots.c --- */
/** The folders that a server is told of: [{uri, name}], the caller's. RV_E_NOT_FOUND: one is not there; RV_E_NOMEM. */
RV_MUST_CHECK int mcptools_mcp_roots(const struct rv_mcp_server_config *server, json_object **out, rv_err **err);

/* --- pins.c --- */
/** Those of a server's tools that are approved, a new array; first sight pins, unless the server is strict. */
RV_MUST_CHECK int mcptools_mcp_pins_filter(const struct rv_mcp_tools_opts *o, const struct rv_mcp_server_config *s,
                                           json_object *tools, json_object **approved, rv_err **err);

/* --- lists.c --- */
/** A hash of all that decides which server answers, and to whom: where it is, how it is started, the credentials. */
RV_MUST_CHECK int mcptools_identity(const struct rv_mcp_server_config *s, char out[RV_HASH_MAX], rv_err **err);
struct rv_mcp_lists {
    pthread_mutex_t lock;   /* guards the kept lists, and n_changes; leaf */
    struct mcp_kept *items; /* owned */
    size_t n, cap;
    int64_t n_changes; /* times that servers told of a change */
};
struct mcp_listed {
    json_object *tools; /* owned by the caller; NULL: none is kept */
    bool has_resources, has_prompts;
    int64_t n_changes; /* as it was then */
};
/** The list of a server, if one is kept that is fresh. */
RV_MUST_CHECK int mcptools_lists_find(rv_mcp_lists *l, const struct rv_mcp_server_config *s, int64_t now_us,
                                      struct mcp_listed *out, rv_err **err);
/** Keep a list for as long as its server said; not if a server told of a change since listed->n_changes was read. */
RV_MUST_CHECK int mcptools_lists_put(rv_mcp_lists *l, const struct rv_mcp_server_config *s, int64_t ttl_ms,
                                     int64_t now_us, const struct mcp_listed *listed, rv_err **err);
void mcptools_lists_drop(rv_mcp_lists *l, const struct rv_mcp_server_config *s);

/* --- outer.c --- */
struct rv_mcp_outer; /* the pool's loop, hung into another one */
/** turn comes after each run of the inner loop: does anything wait for it? Else it does not keep the outer one alive.
 */
RV_MUST_CHECK int mcptools_mcp_outer_new(uv_loop_t *inner, uv_loop_t *loop, bool (*turn)(void *self), void *self,
                                         struct rv_mcp_outer **out, rv_err **err);
uv_loop_t *mcptools_mcp_outer_loop(const struct rv_mcp_outer *o);
/** The inner loop has to run as soon as the outer one does. */
void mcptools_mcp_outer_wake(struct rv_mcp_outer *o);
void mcptools_mcp_outer_free(
    struct rv_mcp_outer *o); /* NULL is fine; its handles are closed when the outer loop runs */

#endif
