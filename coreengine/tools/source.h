/* Sources of tools: a source defines tools and answers their calls.
 *
 * Capabilities are a source, a script is one, the agents that a model may ask are one; to add another kind of tool (a
 * protocol, an application's own functions), implement struct rv_tool_source_ops. A run gets a list of sources, and
 * struct rv_tool_set composes them into the one catalog that the run decides by. Each tool of that catalog knows its
 * source: to make a call, ask rv_tool_set_find() once and call the source that it names.
 *
 * Threads: a source belongs to one thread, the loop thread of the engine that calls it; all functions here are called
 * on it, and all callbacks come on it. A source that has to block hands the blocking part to struct rv_tool_workers.
 *
 * The life of a call: rv_tool_source_call() begins it. It ends exactly once: with `done`, or with
 * rv_tool_call_cancel(), or with rv_tool_source_close(). `done` may come before rv_tool_source_call() returns (the
 * answer is there at once) or at any later time (it comes over a network). */
#ifndef RV_TOOLS_SOURCE_H
#define RV_TOOLS_SOURCE_H

#include "coreengine/base/base.h"
#include "coreengine/tools/catalog.h"
#include "envelope/envelope.h"

#include <stdatomic.h>

/* Services: what a capability may ask of the engine while one of its entries is called. This is the list of their
 * names, which specifications are checked against; who answers is registered by name elsewhere (README.md of this
 * folder).
 *
 * An ask is a part of the call that makes it: it is not journaled, and it runs under the tenant, user and session of
 * that call. So a service is as repeatable as the call must be: see rv_service_fits(). */

#define RV_SERVICE_MAX_NAME   64                /* bytes: names of services are two words */
#define RV_SERVICE_MAX_ARGS   ((size_t)1 << 20) /* bytes of the arguments of one ask: a payload of a task fits */
#define RV_SERVICE_MAX_ANSWER ((size_t)8 << 20) /* bytes of one answer: as any JSON text */
#define RV_SERVICE_MAX_DEPTH  32                /* nesting of arguments: no service reads deeper ones */

struct rv_script;
/* What it points to is static. */
struct rv_service_info {
    const char *name;
    enum rv_effect_class effect; /* what asking it again may do */
    bool is_command;             /* its answer is {} */
    int64_t timeout_ms;          /* for one answer */
    const char *summary;         /* one line, for people */
};
/** The i-th, sorted by name. NULL: there are not so many. */
const struct rv_service_info *rv_service_at(size_t i);
const struct rv_service_info *rv_service_find(rv_str name);
/** RV_E_NOT_FOUND: there is no such service; the hint has the nearest one. */
RV_MUST_CHECK int rv_service_check(rv_str name, rv_err **err);
/** RV_E_INVALID: an object of arguments has a member that is none of known; the hint says what there is. args may be
 * any JSON value. */
RV_MUST_CHECK int rv_service_check_args(json_object *args, const char *const *known, size_t n, rv_err **err);
/** May a call that the engine repeats as `of` says ask this service? */
bool rv_service_fits(const struct rv_service_info *s, enum rv_effect_class of);

/* One ask, as it leaves the call. Everything is borrowed until it is answered. */
struct rv_service_ask {
    const char *service;
    rv_str args;                                             /* JSON text; not looked at yet */
    const char *capability, *entry;                          /* who asks: the entry's bare name */
    const char *kind;                                        /* "tool", "hook", ... */
    bool is_declared;                                        /* the entry's specification names the service */
    const char *run_id, *stage, *user_id, *session_id, *key; /* of the call; "" when unknown */
    int64_t call_id;
    int64_t until_us;               /* of the system's clock; RV_NEVER: no limit */
    const struct rv_script *script; /* of the run, set on the loop and used there only; NULL: none */
};

#ifdef __cplusplus
typedef bool rv_cancel_flag; /* C++ only passes it on; same size and layout */
#else
typedef atomic_bool rv_cancel_flag;
#endif

struct rv_context; /* coreengine/conversation/conversation.h */
struct rv_tool_source;

/* The outcome of a call. */
struct rv_tool_reply {
    bool failed;        /* text is a message for people and models, not JSON */
    bool retryable;     /* of a failure: the same call may succeed a little later */
    bool reports_error; /* not failed, but the JSON says that the tool failed: rv_tool_build_reported_error() */
    bool asks; /* not failed, but a person is asked first: text is {server, state?, requests: [{key, message, schema}]},
                  at most RV_TOOL_MAX_REQUESTS of them. The call is over; it is made again with `input` */
    const char *error_type; /* of a failure: "NotFoundError", ...; borrowed until `done` returns */
    const char *code;       /* of a failure: a word of enum rv_failure, static; NULL: by error_type */
    rv_buf text;            /* the receiver may take both texts and leave RV_BUF_INIT(0); else the source frees them */
    rv_buf partial;         /* of a failure: what came of the answer before it */
    int64_t after_us;       /* the receiver lets it count that much later: of a source that plays time; else 0 */
};

/* How far a call is. Text is any text of a peer; borrowed. */
struct rv_tool_progress {
    double progress, total; /* total 0: not known */
    rv_str text;
};

/* One call. The caller's storage, which stays where it is until the call has ended. The texts are borrowed until
 * rv_tool_source_call() returns: a source that needs them longer copies them. */
struct rv_tool_call {
    const char *tool;
    rv_str args;  /* JSON text of an object, any size up to RV_JSON_MAX_BYTES; checked against the tool's schema */
    rv_str input; /* JSON text {round, state?, answers: [{round, key, message, schema, action, content?}]}: what calls
                     before this one asked for; empty: nothing. action: accept, decline or cancel */
    const char *stage; /* of the run's pipeline */
    const char *agent; /* who calls: the delegated agent, else the stage */
    int64_t visit;     /* of the stage, from 1 */
    int64_t index;     /* of the element of its list, from 0; -1: none */
    rv_str branch;     /* first stage of the branch of a group; ptr NULL: the main branch */
    const char *run_id, *user_id, *session_id;
    int64_t call_id;                      /* of the run's core; for logs */
    const char *key;                      /* idempotency key; "" when there is none */
    const struct rv_context *context;     /* who asks, in which conversation */
    const char *traceparent, *tracestate; /* of W3C, for requests that the call makes; NULL: there is none */
    bool is_beside;                       /* other work of the run may call models meanwhile */
    bool wants_result; /* {content, structuredContent?, _meta?} of a source that has such results, and the code of a
                          failure as `details.code` of a standard error */
    int64_t models_left, money_left; /* model calls that it may cause; what they may cost in micro-dollars, -1:
                                        anything */
    int64_t timeout_ms;              /* <= 0: none. The caller cancels then; a source may end earlier by itself */
    /** The call has ended. Receives the reply; must not call the source, and must not free the call while
     *  rv_tool_source_call() has not returned. */
    void (*done)(struct rv_tool_call *c, struct rv_tool_reply *reply);
    /** How far it is, as often as the source knows; may be NULL. Must not call the source. */
    void (*progress)(struct rv_tool_call *c, const struct rv_tool_progress *p);

    void *state;                   /* the source's, while the call is under way */
    struct rv_usage used;          /* of models that it caused to be asked, so far; the source adds to it */
    struct rv_tool_source *source; /* NULL: not under way; set by the functions below only, like the links */
    struct rv_tool_call *prev, *next;
};

/* The functions that an implementer writes: static const, one table per kind of source. A slot is NULL only
 * where its comment says what that means. */
struct rv_tool_source_ops {
    const char *name; /* of the kind, for messages: "capabilities", "script" */
    /** The definition of a tool; NULL: it has none of that name. Valid and unchanged until `close`, even if the source
     *  stops offering the tool: a run decides by the catalog that it began with, and a call of a tool that has gone
     *  meanwhile fails as RV_E_NOT_FOUND. */
    const struct rv_tool_info *(*find)(void *self, rv_str name);
    /** What decides who answers calls of a tool, and with which credentials, as a hash: calls of equal ones fail for
     * the same reasons. False: not known, and the calls do not count for its health. NULL: all sources of the kind are
     * one, or are counted for their run only. */
    bool (*identity)(void *self, rv_str name, char out[RV_HASH_MAX]);
    /** The names of the tools on offer, sorted; borrowed until the catalog changes. Not those that an agent has to list
     *  by name to use them. */
    const char *const *(*names)(void *self, size_t *n);
    /** Begin a call. 0: it ends by rv_tool_call_finish(), which may be called from here; not 0: it did not begin and
     *  `done` does not come. RV_E_NOT_FOUND: the source has no such tool, or no answer for this call; RV_E_LIMIT: too
     *  many calls are under way; RV_E_NOMEM. */
    int (*call)(void *self, struct rv_tool_call *c, rv_err **err);
    /** Cancel a pending call, whose answer is not wanted any more. The source must not call rv_tool_call_finish() for
     *  it any more, and the caller may free c as soon as this returns. Does not wait. */
    void (*cancel)(void *self, struct rv_tool_call *c);
    /** The end. No call is under way: rv_tool_source_close() has cancelled them. */
    void (*close)(void *self);
};

/* A source in use. Caller's storage; a call points to it, so it stays where it is. */
struct rv_tool_source {
    const struct rv_tool_source_ops *ops; /* NULL: closed; static */
    void *self;                           /* the implementer's; must outlive the source's use */
    bool stands_in;                       /* it answers in the place of other sources, and nothing real happens */
    bool is_engines;                      /* the engine's own tools: not counted in the health of tools */
    struct rv_tool_call *pending;         /* under way; borrowed: the calls are their callers' */
};
/** Begin a call of a tool. c is filled in by the caller, zeroed from `state` on. What ops->call says; RV_E_LIMIT:
 *  args are too long; RV_E_STATE: the source is closed. */
RV_MUST_CHECK int rv_tool_source_call(struct rv_tool_source *s, struct rv_tool_call *c, rv_err **err);
/** For sources: the call has ended. Frees the texts that `done` leaves in reply. */
void rv_tool_call_finish(struct rv_tool_call *c, struct rv_tool_reply *reply);
/** End a call without an answer. Nothing happens to one that is not under way: cancelled twice, or done. */
void rv_tool_call_cancel(struct rv_tool_call *c);
/** Cancel what is under way and end the source. A second time: nothing. */
void rv_tool_source_close(struct rv_tool_source *s);

/* --- Work that blocks -------------------------------------------------------------------------------------------- */

/* A piece of work of a source, embedded in what the source needs for it. */
struct rv_tool_work {
    /** On a worker; looks at `cancelled` now and then. False: the work goes on elsewhere, until `finished` is called.
     */
    bool (*run)(struct rv_tool_work *w);
    /** The host's, while it has the work: what `run` left undone is done. Any thread, once, also before `run` returns;
     * not after `free`. */
    void (*finished)(struct rv_tool_work *w);
    /** The host's, while it has the work; NULL: it answers nothing. On a worker, while `run` runs: asks a service and
     * waits for the answer, which is appended. RV_E_CANCELLED: the work was given up; RV_E_TIMEOUT; what the service
     * says. */
    int (*ask)(struct rv_tool_work *w, const struct rv_service_ask *ask, rv_buf *answer, rv_err **err);
    /** The host's, while it has the work: how far it is; on the thread of `run`, while it runs. The source hears it by
     * `on_progress`; of several that come before it could be told, the last one. */
    void (*send_progress)(struct rv_tool_work *w, const struct rv_tool_progress *p);
    void (*on_progress)(struct rv_tool_work *w,
                        const struct rv_tool_progress *p); /* on the thread of the source, before done */
    void (*done)(struct rv_tool_work *w); /* then, on the thread of the source; not when it was given up */
    void (*free)(struct rv_tool_work *w); /* at last, on either thread, also when it never ran */
    rv_cancel_flag cancelled;
    bool never_blocks;                /* `run` may be called on the thread of the source */
    const char *kind, *name, *run_id; /* of what is called: for logs; they live as long as the work; borrowed */
    int64_t call_id;                  /* for logs, too */
    void *host;                       /* owned by the host that runs the work */
};
/* Threads that may block; the host of the source provides them. */
struct rv_tool_workers {
    /** Takes w on success; work that never blocks may be over when this returns. RV_E_LIMIT: too many
     * calls were given up; RV_E_THREADS, RV_E_FILES; RV_E_NOMEM. */
    int (*begin)(void *self, struct rv_tool_work *w, rv_err **err);
    /** Sets `cancelled`. `done` does not come any more; w belongs to the workers. */
    void (*give_up)(void *self, struct rv_tool_work *w);
    void *self; /* borrowed; outlives the calls */
};

/* --- The catalog of a run ---------------------------------------------------------------------------------------- */

/* Sources composed into one catalog. The one place that decides whose definition counts and who answers:
 *
 * - the definition of `under` counts before those of the sources, the first source's before the later ones';
 * - calls go to the first source that has the tool, unless one that stands in has it, too.
 *
 * Two capabilities with a tool of one name never get here: loading the second is refused. */
struct rv_tool_set {
    struct rv_catalog under;               /* definitions that go first, entries and prompts */
    bool is_whole;                         /* tools that `under` does not have do not exist: of a run that goes on */
    struct rv_tool_source *const *sources; /* borrowed, with what it points to */
    size_t n_sources;
};
/* What it points to is borrowed from the set. */
struct rv_tool_found {
    const struct rv_tool_info *info; /* NULL: unknown */
    struct rv_tool_source *source;   /* NULL: none answers its calls */
};
struct rv_tool_found rv_tool_set_find(const struct rv_tool_set *set, rv_str name);
/** As the core sees it; borrows set. tool_name tells the tools of sources that stand in, then of the other sources,
 *  then those of `under`. */
struct rv_catalog rv_tool_set_catalog(const struct rv_tool_set *set);

#endif
