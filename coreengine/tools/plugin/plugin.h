/* Capabilities: finds, checks, opens and calls the shared objects that bring tools, hooks, policies, mocks, routing
 * functions, prompts, providers of models and agents. Everything a plugin hands over is checked before it is used: ABI,
 * sizes, names, JSON, schemas.
 */
#ifndef RV_PLUGIN_H
#define RV_PLUGIN_H

#include "coreengine/tools/tools.h"

typedef struct rv_plugins rv_plugins; /* a set of opened capabilities; loading: one thread; calling: any thread */
typedef struct rv_plugin_pool rv_plugin_pool; /* opened capabilities that sets share; any thread */

/* A capability that is part of the program. Such a name is found before the path. A program that has any defines the
 * list, which ends with {NULL, NULL}; by itself it is empty. */
struct rv_cap_desc;
/* What it points to is static. */
struct rv_capability_linked {
    const char *name;
    const struct rv_cap_desc *(*entry_point)(void);
};
extern const struct rv_capability_linked rv_capabilities_linked[];

struct rv_plugins_opts {
    const char *const *dirs; /* where names are looked up, in order; borrowed for the call */
    size_t n_dirs;
    const char *base_dir; /* folder of the pipeline file, which plugins are told; copied */
    rv_log *log;          /* borrowed; may be NULL */
    /** The program that `isolation: process` starts as `PROGRAM capability-host`: `reeve`, or one whose main() calls
     *  rv_plugin_serve(). NULL: this program if it is called reeve, else the installed one. */
    const char *host_program; /* copied */
    /** Borrowed, outlives the set; NULL: the set opens all of its own. A capability that shares this process is taken
     *  from here when it was opened from the same file, as it is now, with the same configuration, base_dir and log. */
    rv_plugin_pool *pool;
};
/** A capability that no set uses any more stays open, up to a limit, until the pool is freed or its file changes. */
RV_MUST_CHECK int rv_plugin_pool_new(rv_plugin_pool **out, rv_err **err);
/** Closes what no set uses; what a set still uses stays open for good. NULL is fine. */
void rv_plugin_pool_free(rv_plugin_pool *pool);
/** An empty set: nothing is loaded. Texts of opts are copied; log and pool are borrowed and outlive it. RV_E_NOMEM. */
RV_MUST_CHECK int rv_plugins_new(const struct rv_plugins_opts *opts, rv_plugins **out, rv_err **err);
void rv_plugins_free(rv_plugins *p); /* closes all but what is of a pool; no call of this set may be running */

/** For a program, not for a library in one: from now on a capability that crashes, aborts or exits is named on standard
 * error before the process ends, after exit() with status 1. Sets a handler of exit() and, where they have none, of
 * SIGABRT, SIGSEGV, SIGBUS, SIGFPE and SIGILL for good. Main thread. */
void rv_plugins_report_crashes(void);

/** The capability path: extra dirs first (may be NULL), then REEVE_CAPABILITY_PATH (colon-separated), base_dir and
 *  base_dir/capabilities (NULL: neither), the folder lib/reeve/capabilities beside the running binary's prefix, then
 * the install prefix. *out is a NULL-terminated array, one free() of rv_plugins_path_free(). */
RV_MUST_CHECK int rv_plugins_path_new(const char *const *extra, size_t n_extra, const char *base_dir, char ***out,
                                      size_t *n, rv_err **err);
void rv_plugins_path_free(char **dirs);

/** Load and open one. On failure nothing stays loaded. RV_E_NOT_FOUND (lists the paths that were tried), RV_E_VERSION
 * (ABI, sizes), RV_E_PLUGIN (wrong symbol, bad entries, open failed), RV_E_INVALID (configuration against its schema),
 * RV_E_EXISTS (a tool name that another capability already has). */
RV_MUST_CHECK int rv_plugins_load(rv_plugins *p, const struct rv_capability_config *which, rv_err **err);
/** All that a pipeline names; each failure becomes a finding at its place. */
RV_MUST_CHECK int rv_plugins_load_all(rv_plugins *p, const struct rv_pipeline *pipeline, rv_findings *findings,
                                      rv_err **err);

/** Name and version of the i-th that is loaded, borrowed from the set. False: there are not so many. */
bool rv_plugins_loaded_at(const rv_plugins *p, size_t i, const char **name, const char **version);
/** The version of a capability on the path of the set, appended: a process of its own reads it, and nothing is opened.
 * What rv_plugins_load() says. */
RV_MUST_CHECK int rv_plugins_read_version(rv_plugins *p, const char *name, rv_buf *version, rv_err **err);

struct rv_catalog rv_plugins_catalog(rv_plugins *p);
struct rv_known_names rv_plugins_names(rv_plugins *p);
/** The i-th agent of all that are loaded, in the order of loading. False: there are not so many. Everything is borrowed
 *  from the set; the document has been read and is one. Each name is there once. */
bool rv_plugins_agent_at(rv_plugins *p, size_t i, const char **name, rv_str *document, const char **capability);

/* One call into a capability. What it points to is borrowed for the call. */
struct rv_plugin_call {
    enum rv_name_kind kind; /* TOOL, HOOK, POLICY, MOCK, ROUTE, PROBE or PROVIDER */
    const char *name;       /* tools and probes: the tool's; the rest "capability.name" */
    rv_str args;            /* JSON text */
    const char *run_id, *stage, *user_id, *session_id, *idempotency_key; /* "" when unknown */
    int64_t call_id;                                                     /* of the run, for logs; 0: unknown */
    const char *context;             /* who asks, as JSON text of an object; NULL: "{}" */
    int64_t timeout_ms;              /* <= 0: none */
    const rv_cancel_flag *cancelled; /* borrowed; may be NULL */
    /** Receives a piece of a provider's answer, {"text": "..."} or {"thinking": "..."}, checked and not empty; all
     *  pieces together are at most RV_CAP_MAX_REPLY. Called on the thread of the call. Returns nonzero when no more
     *  pieces are wanted. May be NULL. */
    int (*on_emit)(void *self, rv_str json);
    void *emit_self;
    /** Ask a service of the engine; blocks, on the thread of the call. The answer, JSON text of an object, is appended.
     * May be NULL: no engine answers. */
    int (*on_ask)(void *self, const struct rv_service_ask *ask, rv_buf *answer, rv_err **err);
    void *ask_self;
    /** Hears how far the call of a tool is; the text is clean. On the thread of the call. May be NULL. */
    void (*on_progress)(void *self, const struct rv_tool_progress *p);
    void *progress_self;
    struct rv_plugin_work *work; /* that makes this call, and may get its answer late; NULL: the answer comes at once */
};
/** Any thread; blocks until the plugin returns. The reply (valid JSON object text, at most RV_CAP_MAX_REPLY) is
 * appended to out. RV_E_NOT_FOUND (unknown), RV_E_TOOL (the plugin failed: the text is its message, the hint its error
 * type, see rv_plugin_error_type), RV_E_PLUGIN (no answer, two answers, garbage; isolated: its process died),
 * RV_E_TIMEOUT and RV_E_CANCELLED (isolated only: in the engine's process nothing can end a call). The reply of a probe
 * has `happened` (a boolean) and with true `result` (an object), or nothing. RV_E_PLUGIN, too, when a provider hands
 * out something that is not a piece; the valid pieces before it have been passed on. */
RV_MUST_CHECK int rv_plugins_call(rv_plugins *p, const struct rv_plugin_call *call, rv_buf *out, rv_err **err);
#define RV_PLUGIN_LATE 1 /* rv_plugins_call() of work: the capability answers at a later time */

/* A call that a worker makes, with a copy of all that it needs: one that was given up may outlast its run. */
struct rv_plugin_work {
    struct rv_tool_work work;               /* first: a pointer to it is one to this */
    void (*done)(struct rv_plugin_work *w); /* on the thread of the source; may take what is below */
    /** On the thread of the source, before `done`: how far the call is. NULL: it is not told. */
    void (*on_progress)(struct rv_plugin_work *w, const struct rv_tool_progress *p);
    void *self;                 /* for `done` and `on_progress`; borrowed */
    rv_plugins *plugins;        /* borrowed; outlives the call */
    struct rv_plugin_call call; /* its texts follow this structure */
    rv_buf reply;
    rv_err *failure;          /* NULL: it went well; owned */
    bool reports_error;       /* of a tool, as in struct rv_tool_reply */
    struct rv_llm_reply *llm; /* of a provider; NULL: memory ran out, which failure says; owned */
    /* of an answer that comes late, see work.c: */
    uint64_t ticket; /* 0: none */
    bool is_late;    /* the call ends by what follows */
    rv_buf late_reply;
    rv_err *late_failure; /* owned */
};
/** emit_self, ask_self and progress_self become the work, on_ask and on_progress its host's. NULL: memory is short. */
struct rv_plugin_work *rv_plugin_work_new(rv_plugins *p, const struct rv_plugin_call *call,
                                          void (*done)(struct rv_plugin_work *w), void *self);
/* The tools of a set as a source. Calls go to workers; their `cancelled` reaches the capability. RV_E_NOT_FOUND: no
 * capability has the tool. */
struct rv_plugin_tools {
    struct rv_tool_source source;
    rv_plugins *plugins; /* borrowed; outlives the calls, also those that were given up */
    struct rv_tool_workers workers;
};
/** Gives &t->source; t stays where it is. */
struct rv_tool_source *rv_plugin_tools_init(struct rv_plugin_tools *t, rv_plugins *p,
                                            const struct rv_tool_workers *workers);
/** The other side of `isolation: process`: loads what the engine at the other end of the socket names and answers its
 * calls, until that end is closed. For a process of its own: sets limits, ignores SIGINT, SIGTERM and SIGHUP. Gives the
 * exit status. */
int rv_plugin_serve(int fd);

/** The error type that a plugin gave to fail(), e.g. "NotFoundError"; "ExecutionError" when it gave none. Static or
 * borrowed. */
const char *rv_plugin_error_type(const rv_err *err);
/** Its code, static: "plugin_failed" where the capability broke its contract; NULL: by error type. */
const char *rv_plugin_failure_code(const rv_err *err);

/* --- Providers: from what a call gave to a reply of a model. Both initialise *out. --- */
struct rv_llm_reply;
/** The reply that a provider gave. RV_E_PLUGIN: it breaks the rules of capability.h (*out is as it was then). */
RV_MUST_CHECK int rv_plugin_read_llm_reply(rv_str json, struct rv_llm_reply *out, rv_err **err);
/** Why a call of a provider failed, by kind: the type that it gave to fail() where that is a kind, else what kept it
 * from answering. The text is empty: pieces that came before are the caller's to add. */
void rv_plugin_make_llm_failure(const rv_err *e, struct rv_llm_reply *out);

/** For `inspect`: array of {name, version, description, path, tools: [...], hooks: [...], ...}. */
void rv_plugins_write_json(rv_plugins *p, rv_jw *w);
/** Names of every capability of the program and (without .so) of every capability file on the path, sorted; free with
 * rv_plugins_path_free(). */
RV_MUST_CHECK int rv_plugins_find_available(const char *const *dirs, size_t n_dirs, char ***out, size_t *n,
                                            rv_err **err);

#endif
