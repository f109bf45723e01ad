/* Shared by the files of the server's side. */
#ifndef RV_MCP_SERVER_INTERNAL_H
#define RV_MCP_SERVER_INTERNAL_H

#include "coreengine/mcp/server.h"

#define MCP_META_VERSION      "io.modelcontextprotocol/protocolVersion"
#define MCP_META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define MCP_META_SERVER       "io.modelcontextprotocol/serverInfo"
#define MCP_TASKS             "io.modelcontextprotocol/tasks" /* the extension */
#define MCP_META_TASK         "io.modelcontextprotocol/related-task"
#define MCP_LOG_NONE          -1 /* the client asked for no log */

/* A request that is not answered yet. */
struct mcp_call {
    int64_t n;          /* from 1 */
    json_object *id;    /* owned, as all of them */
    json_object *token; /* of progress; NULL: none is wanted */
    json_object *task;  /* id of the task whose result is wanted; NULL: of none */
    enum rv_mcp_want want;
    enum rv_mcp_version version;
    bool can_ask;
    bool takes_tasks; /* or its revision has none: it waits */
    int64_t first;    /* of a list */
    int64_t progress; /* that was told last; -1: none */
    int64_t asked;    /* id of the question that waits for an answer; 0: none */
};
struct rv_mcp_server {
    struct rv_mcp_server_opts opts;
    enum rv_mcp_version version;
    bool can_ask; /* of a legacy client */
    int level;    /* of its log, as an index; MCP_LOG_NONE: it wants none */
    struct mcp_call calls[RV_MCP_MAX_CALLS];
    size_t n_calls;
    int64_t last_call, last_asked;
};

/* server.c */
/** data of an error for a client that does not declare tasks. */
json_object *mcp_tasks_wanted(struct rv_json_build *b);

/* server_calls.c */
/** Append an order; NULL: no memory. */
struct rv_mcp_order *mcp_order_new(struct rv_mcp_orders *orders, enum rv_mcp_order_kind kind, int64_t call,
                                   rv_err **err);
struct mcp_call *mcp_find_call(const rv_mcp_server *s, int64_t call); /* NULL: it is not under way */
void mcp_end_call(rv_mcp_server *s, struct mcp_call *c);
/** An answer to a request that did not become a call; result is borrowed. */
RV_MUST_CHECK int mcp_answer(json_object *id, json_object *result, struct rv_mcp_orders *orders, rv_err **err);

/* server_result.c */
/** Make a result what the client of that revision can read. *out is the caller's. */
RV_MUST_CHECK int mcp_shape(const rv_mcp_server *s, const struct mcp_call *c, json_object *result, json_object **out,
                            rv_err **err);
/** The task that a message to a legacy client belongs to, in _meta. Nothing to do for a call without one. */
static inline void mcp_mark_task(const struct mcp_call *c, struct rv_json_build *b, json_object *to)
{
    if (!c->task || b->rc < 0)
        return;
    json_object *meta = rv_json_build(b, to, "_meta", json_object_new_object());
    json_object *task = rv_json_build(b, meta, MCP_META_TASK, b->rc < 0 ? NULL : json_object_new_object());
    rv_json_build(b, task, "taskId", b->rc < 0 ? NULL : json_object_get(c->task));
}
/** Members that each result of a modern request has. */
void mcp_mark_modern(const rv_mcp_server *s, struct rv_json_build *b, json_object *result, const char *type);
/** {name, version, title?} of the program. */
json_object *mcp_server_info(const rv_mcp_server *s, struct rv_json_build *b, json_object *to, const char *key);

#endif
