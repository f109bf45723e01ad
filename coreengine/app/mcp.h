/* What reeve offers to clients of the Model Context Protocol, and how their calls are performed.
 *
 * A client is a session of the protocol (coreengine/mcp/server.h) with the calls that it has under way. Tools that run
 * something (a pipeline, an agent, a tool of a capability) become runs of the store's queue: a worker performs them,
 * they are journaled and survive this process, and questions, confirmations and cancellation are those of runs. A
 * client is told of them by rv_app_mcp_look(), which reads the store and never waits.
 *
 * A call that waits before it becomes a run (for the servers of its pipeline, or as a query for a provider) is a job,
 * which the front does on any thread while the client says other things.
 *
 * Fronts move bytes: rv_app_mcp_serve() is the one for standard input and output. One thread at a time per client. */
#ifndef RV_APP_MCP_H
#define RV_APP_MCP_H

#include "coreengine/app/work.h"
#include "coreengine/app/workspace.h"
#include "coreengine/mcp/mcp.h"

#define RV_APP_MCP_LOOK_MS 50 /* between two looks at runs that clients wait for */

/* What there is to offer. All texts are borrowed and outlive the clients. */
struct rv_app_mcp_opts {
    const char *pipelines; /* folder; each file in it is a tool; NULL: none */
    const char *scripts;   /* folder of scripts that answer in pipelines: of each the one with its name; NULL: none */
    bool agents;           /* each agent is a tool */
    const char *const *tools; /* tools of capabilities, "capability:tool" */
    size_t n_tools;
    bool is_http;
};

typedef struct rv_app_mcp_job rv_app_mcp_job;

/* For whom, and with what: the calling thread's. */
enum rv_app_mcp_right {
    RV_APP_MCP_RUNS,     /* to start, answer and cancel runs */
    RV_APP_MCP_CHAT,     /* to talk to agents */
    RV_APP_MCP_DATA,     /* to read entities, and query them */
    RV_APP_MCP_SESSIONS, /* to read sessions */
    RV_N_APP_MCP_RIGHTS
};
/* What it points to is borrowed, and outlives the client. */
struct rv_app_mcp_at {
    const struct rv_app *app; /* with the scope of the client; of rv_app_mcp_look() its texts outlive the client */
    struct rv_app_sources *sources;
    /** May this client do that? NULL: everything. */
    bool (*may)(void *self, enum rv_app_mcp_right right);
    /** The value of a header of the request, decoded; false: there is none that can be read. name is in lower case. Of
     * a message whose headers need not repeat its arguments: NULL. */
    bool (*header)(void *self, const char *name, rv_buf *out);
    void *self;
    struct rv_worker_stop *worker; /* of this process: it is told of what is queued; NULL: there is none */
    const char *trace;             /* traceparent of the request; NULL: none */
    bool trusts_trace;
    rv_app_mcp_job **job; /* gets a call that waits, at most one of a message; NULL: such a call is waited for */
};

/** Do the capabilities have the tools that the operator named? RV_E_NOT_FOUND, what loading them says. */
RV_MUST_CHECK int rv_app_mcp_check(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at, rv_err **err);

/** Append the tools that this client is offered, as tools/list has them. */
RV_MUST_CHECK int rv_app_mcp_add_tools(const struct rv_app_mcp_opts *opts, const struct rv_app_mcp_at *at,
                                       json_object *list, rv_err **err);

typedef struct rv_app_mcp rv_app_mcp;
/** is_modern: all its requests are of 2026-07-28. */
RV_MUST_CHECK int rv_app_mcp_new(const struct rv_app_mcp_opts *opts, bool is_modern, rv_app_mcp **out, rv_err **err);
void rv_app_mcp_free(rv_app_mcp *m); /* on the thread of rv_app_mcp_look(), if that was ever called */
/** A message has come. Orders to send are appended; what else it asks for is done, or under way.
 *  Fails with RV_E_NOMEM or RV_E_LIMIT only: other failures are answers. */
RV_MUST_CHECK int rv_app_mcp_read(rv_app_mcp *m, const struct rv_app_mcp_at *at, rv_str bytes,
                                  struct rv_mcp_orders *out, rv_err **err);
RV_MUST_CHECK int rv_app_mcp_receive(rv_app_mcp *m, const struct rv_app_mcp_at *at,
                                     const struct rv_mcp_message *message, struct rv_mcp_orders *out, rv_err **err);
/** Do what a call waits for, on any thread; at: of that thread, without a job. The client may be used meanwhile. */
void rv_app_mcp_job_do(rv_app_mcp_job *job, const struct rv_app_mcp_at *at);
/** The order was not carried out: tell the client why, which is taken. */
void rv_app_mcp_job_fail(rv_app_mcp_job *job, rv_err *why);
bool rv_app_mcp_job_is_query(const rv_app_mcp_job *job);
/** Answer the call of a job, as rv_app_mcp_receive() does; takes the job. A call that ended meanwhile leaves no run. */
RV_MUST_CHECK int rv_app_mcp_finish(rv_app_mcp *m, const struct rv_app_mcp_at *at, rv_app_mcp_job *job,
                                    struct rv_mcp_orders *out, rv_err **err);
/** See how the calls under way are doing. Always with the same handle of the store. */
RV_MUST_CHECK int rv_app_mcp_look(rv_app_mcp *m, const struct rv_app_mcp_at *at, struct rv_mcp_orders *out,
                                  rv_err **err);
/** The client is gone: the runs of its calls are cancelled, and its jobs end soon. call 0: all of them. */
void rv_app_mcp_cancel(rv_app_mcp *m, const struct rv_app_mcp_at *at, int64_t call);
bool rv_app_mcp_is_busy(const rv_app_mcp *m);      /* there are runs to look at */
int64_t rv_app_mcp_last_call(const rv_app_mcp *m); /* as of the session */
bool rv_app_mcp_has_call(const rv_app_mcp *m, int64_t call);
/** The run of the call was not that process's when it was last looked at. */
bool rv_app_mcp_is_left(const rv_app_mcp *m, int64_t call, const char *owner);

/* --- jobs on threads of their own --- */
typedef struct rv_app_mcp_aside rv_app_mcp_aside;
/** Any thread may use it. worker is borrowed, as struct rv_app_mcp_at has it. Threads begin with the first job. */
RV_MUST_CHECK int rv_app_mcp_aside_new(struct rv_worker_stop *worker, rv_app_mcp_aside **out, rv_err **err);
/** Jobs under way are told to end, and waited for; no other one begins, and those that were not taken are still there.
 * No run is left of any of them. */
void rv_app_mcp_aside_stop(rv_app_mcp_aside *a);
void rv_app_mcp_aside_free(rv_app_mcp_aside *a);    /* after all were taken */
int rv_app_mcp_aside_fd(const rv_app_mcp_aside *a); /* readable: a job is done */
bool rv_app_mcp_aside_is_busy(rv_app_mcp_aside *a); /* jobs are to come, or to be taken */
/** Do a job. app: for whom; it outlives the job. owner: for rv_app_mcp_aside_steal(). */
void rv_app_mcp_aside_add(rv_app_mcp_aside *a, rv_app_mcp_job *job, const struct rv_app *app, void *owner);
/** A job that is done, for rv_app_mcp_finish(); after rv_app_mcp_aside_stop() any. NULL: there is none. */
rv_app_mcp_job *rv_app_mcp_aside_steal(rv_app_mcp_aside *a, void **owner);

/* --- standard input and output --- */
/* What it points to is borrowed for the call. */
struct rv_app_mcp_serve {
    const struct rv_app *app;
    struct rv_app_mcp_opts offer;
    int in, out;        /* descriptors */
    size_t concurrency; /* runs at once; 0: RV_WORKER_CONCURRENCY */
    int64_t grace_us;   /* that calls under way have to end after the input ended; as of struct rv_worker_opts */
    bool no_worker;     /* runs are done by other processes */
};
/** Serve one client until its input ends and its calls are answered, or SIGTERM or SIGINT comes: then calls under way
 *  are cancelled. A second signal ends the process at once. *n_left: as struct rv_worker_done has it. */
RV_MUST_CHECK int rv_app_mcp_serve(const struct rv_app_mcp_serve *opts, int64_t *n_left, rv_err **err);

/* --- The other side: the MCP servers of a pipeline, for those who look at them without running the pipeline --- */
/** Does a stage, also of a pipeline that a stage runs, call a tool that no capability has and no script plays? */
bool rv_app_mcp_is_needed(const struct rv_app_loaded *l);
/** Fills in l->mcp: lists from the servers, if connects, else from kept files. What goes wrong with a server is a
 * finding of l. */
RV_MUST_CHECK int rv_app_mcp_open(const struct rv_app *app, struct rv_app_loaded *l, bool connects, rv_err **err);
/** The same, connecting; the tools that differ from what was approved are appended to text, and approved with is_yes.
 * server NULL: of all. */
RV_MUST_CHECK int rv_app_mcp_approve(const struct rv_app *app, struct rv_app_loaded *l, const char *server, bool is_yes,
                                     rv_buf *text, rv_err **err);
/** Get a token for a server over HTTP, and keep it: show() tells the person which address to open, browser (NULL: none)
 * is a program that is started with it. RV_E_NOT_FOUND: the pipeline has no such server; RV_E_INVALID: it is not one
 * over HTTP. */
RV_MUST_CHECK int rv_app_mcp_login(const struct rv_app_loaded *l, const char *server, const char *browser,
                                   void (*show)(void *self, const char *url), void *self, rv_err **err);
/** Remove what a login kept; *had: there was something. */
RV_MUST_CHECK int rv_app_mcp_logout(const struct rv_app_loaded *l, const char *server, bool *had, rv_err **err);
/** Write the lists of l->mcp to the files that `catalog` names. *n counts the files; servers without one are findings.
 * RV_E_IO. */
RV_MUST_CHECK int rv_app_mcp_keep(struct rv_app_loaded *l, size_t *n, rv_err **err);
/** {name, server, title?, description, read_only, ..., input_schema, output_schema?}, as the pipeline sees the tool. */
void rv_app_mcp_write_tool(const struct rv_mcp_tool *t, bool with_schemas, rv_jw *w);
/** RV_E_NOT_FOUND: the servers do not have that tool; the hint has the nearest one. */
RV_MUST_CHECK int rv_app_mcp_fail_unknown(const struct rv_app_loaded *l, const char *tool, rv_err **err);
/** Call a tool and wait. args: JSON text of an object. The answer is appended to text: the output, or with *failed a
 * message. RV_E_NOT_FOUND, RV_E_INVALID. */
RV_MUST_CHECK int rv_app_mcp_call(struct rv_app_loaded *l, const char *tool, rv_str args, rv_buf *text, bool *failed,
                                  rv_err **err);

#endif
