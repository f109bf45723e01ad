/* Work that waits: runs that are submitted to the queue of a store, and the worker that does what is queued.
 *
 * All work that waits is a task (coreengine/store/tasks.h). A task of type `run` says that a run of the store begins or
 * goes on; its payload is {"run": ID} and, when it brings an answer, {"run": ID, "answer": {...}}. Tasks of other types
 * have handlers: pipelines, or tools of capabilities. */
#ifndef RV_APP_WORK_H
#define RV_APP_WORK_H

#include "coreengine/app/streams.h"
#include "coreengine/app/workspace.h"
#include "coreengine/store/store.h"

#define RV_TASK_OF_RUN "run" /* type of a task that begins a run, or goes on with one */
#define RV_TASKS_ALIVE                                                                                                 \
    (1u << RV_TASK_WAITING | 1u << RV_TASK_PENDING | 1u << RV_TASK_PROCESSING) /* those that are not at their end */

/* --- what tasks need, and workers offer: "label:NAME", "capability:NAME@VERSION", sorted, each once --- */
struct rv_needs {
    char **items; /* owned, with the texts */
    size_t n;
};
void rv_needs_fini(struct rv_needs *needs);
/** RV_E_INVALID: the label is empty or malformed. */
RV_MUST_CHECK int rv_needs_add_label(struct rv_needs *needs, const char *label, rv_err **err);
/** version NULL: any. RV_E_LIMIT: more than RV_TASK_MAX_NEEDS, for what a task needs. */
RV_MUST_CHECK int rv_needs_add_capability(struct rv_needs *needs, const char *name, const char *version, rv_err **err);
/** Is one need met by what is offered? A capability has to have the same major version, and may be newer. */
bool rv_needs_are_met(const struct rv_needs *offers, const char *need);
/** An array of texts as JSON, and back: what a worker tells the store. */
void rv_needs_write(const struct rv_needs *needs, rv_jw *w);
/** out owns its texts: rv_needs_fini(). RV_E_PARSE, RV_E_INVALID: not such an array; RV_E_LIMIT, RV_E_NOMEM. */
RV_MUST_CHECK int rv_needs_read(rv_str json, struct rv_needs *out, rv_err **err);
/** What the run of a loaded pipeline needs: the capabilities that are loaded, with their versions. */
RV_MUST_CHECK int rv_needs_build(const struct rv_app_loaded *l, struct rv_needs *out, rv_err **err);

/* --- submitting --- */
/* What it points to is borrowed for the call. */
struct rv_app_submit {
    const char *key; /* when a run of the same user that was submitted with this key has not ended, that run is meant
                        and no new one is made; NULL: none */
    const char *request; /* hash of the request that has the key, which then means one run for good: also one that has
                            ended; RV_E_STATE: the key was used for another request. NULL: as above */
    const char *ask;     /* name of a request that has no key: its newest run has the name for an hour. NULL: none */
    bool repeats;        /* of ask: the run that has the name is meant, if there is one, and no new one is made */
    int64_t due_us;      /* not before; 0: at once */
    int64_t priority;
    const char *const *labels; /* that its worker must have */
    size_t n_labels;
    const struct rv_webhook *webhooks; /* who is told of its end and its questions; borrowed */
    size_t n_webhooks;                 /* at most RV_WEBHOOK_MAX */
    const char *trace;                 /* traceparent of who asked, for the spans of the run; NULL: none */
    bool trusts_trace;                 /* they are part of that trace; else there is a link to it */
    bool keeps_deltas; /* the pieces of its models' answers are kept for a while: rv_app_stream_of_run() */
};
struct rv_app_submitted {
    char run[RV_STORE_MAX_ID + 1]; /* the new run, or the one that was submitted before */
    bool is_new;
    int64_t again_us; /* after RV_E_QUOTA: when the quota may allow it; 0: never */
};
/** Keep a new run and enqueue it, in one transaction, after rv_app_run_open(): no process owns it until a worker takes
 * it. Errors as of rv_app_run_keep() and rv_store_enqueue(). */
RV_MUST_CHECK int rv_app_submit(struct rv_app_run *run, const rv_envelope *env, const struct rv_app_submit *opts,
                                struct rv_app_submitted *out, rv_err **err);
/** Have a worker go on with a run of the store. answer NULL: it was left behind, forked, or one of its questions has
 *  expired; else the answer to the question that it names: rv_app_find_question() says which. *is_new (may be NULL):
 *  false when that was queued already. RV_E_LIMIT: the answer is too long for a task. */
RV_MUST_CHECK int rv_app_enqueue(rv_store *store, const struct rv_store_scope *scope, const char *run,
                                 const struct rv_response *answer, bool *is_new, rv_err **err);
/** Ask that a run be cancelled. The process that drives it does so; one that waits, or that no process drives, a worker
 *  ends. RV_E_STATE: it is over. */
RV_MUST_CHECK int rv_app_enqueue_cancel(rv_store *store, const struct rv_store_scope *scope, const char *run,
                                        rv_err **err);
RV_MUST_CHECK int rv_app_fail_cancelled(rv_err **err); /* RV_E_STATE, to who answers a run that is to be cancelled */

/* What a run of the store waits for in the queue. */
struct rv_app_queued {
    bool is_queued;             /* a task waits, or is done, that begins it or goes on with it; else what follows is of
                                   the last one, if there was one */
    enum rv_task_status status; /* of the task */
    char task[RV_STORE_MAX_ID + 1];   /* its id; "": there never was one */
    char worker[RV_STORE_MAX_ID + 1]; /* that has it; "": none */
    int64_t since_us, due_us, priority, class_id;
    int64_t n_before;             /* pending tasks of the same lane that are sooner */
    size_t n_workers, n_able;     /* that live and take tasks; those of them that meet all its needs */
    struct rv_needs needs, unmet; /* unmet: what no living worker offers */
    rv_buf error;                 /* why its last attempt failed; empty: it did not */
};
/** The task of that run, with its place in the queue; out->is_queued is false when it has none. Finish out on success.
 *  RV_E_NOMEM, what the store says. */
RV_MUST_CHECK int rv_app_queued_read(rv_store *store, const struct rv_run_row *run, struct rv_app_queued *out,
                                     rv_err **err);
void rv_app_queued_fini(struct rv_app_queued *q);

/* --- workers --- */
/* A worker that gave no sign of life for so long does not count as living. */
#define RV_WORKER_SEEN_US (30 * RV_US_PER_S)
/* Texts are borrowed, and outlive the worker. */
struct rv_worker_handler {
    const char *type;   /* of the tasks that it handles */
    const char *target; /* file of a pipeline, or "capability:tool"; of a script: its file */
};
/* A handle by which another thread drains a worker, or tells it that there is work. */
struct rv_worker_stop;
struct rv_worker_stop *rv_worker_stop_new(void);  /* NULL: out of memory */
void rv_worker_stop(struct rv_worker_stop *stop); /* any thread, also before the worker begins */
/** Tell a worker that a task was queued or is to be cancelled: it looks at once, and not at its next time. Any thread;
 * NULL is fine. */
void rv_worker_tell(struct rv_worker_stop *stop);
void rv_worker_stop_free(struct rv_worker_stop *stop); /* after the worker; NULL is fine */

/* What it points to is borrowed, and outlives the worker. */
struct rv_worker_opts {
    struct rv_worker_stop *stop; /* in place of SIGTERM and SIGINT, which it leaves alone then; borrowed; may be NULL */
    const struct rv_app *app;    /* scope is ignored: a worker works for all tenants; keeps_log_level is taken as set */
    const char *const *labels;   /* that it has */
    size_t n_labels;
    size_t concurrency; /* runs at once; 0: RV_WORKER_CONCURRENCY */
    size_t threads;     /* for capability code at most; 0: 64 */
    int64_t grace_us;   /* of draining, for calls under way; 0: RV_WORKER_GRACE_US; RV_WORKER_NO_GRACE: none */
    /* Files that answer for the models of tasks of that type, of those that it handles by itself. */
    const struct rv_worker_handler *scripts;
    size_t n_scripts;
    bool until_idle; /* end when nothing waits that it could do, and nothing is done by others */
    const struct rv_worker_handler *handlers;
    size_t n_handlers;
    /** One line about what it does, without line end; on the thread of rv_worker_run(). May be NULL. */
    void (*say)(void *self, const char *line);
    void *self;
    /** All is open, and it claims tasks from now on; on the same thread. May be NULL. */
    void (*on_works)(void *self_event);
    /** Of rv_worker_keep(): it could not start, and tries again; on the same thread. why: for the call. */
    void (*on_waits)(void *self_event, const rv_err *why);
    /** A line of docs/reference/events.md of a run that it drives; on the same thread. run stands for the run until it
     *  goes no further here: then line is empty. Not for runs that have a process of their own. May be NULL. */
    void (*on_event)(void *self_event, const void *run, rv_str line);
    /** Before the first event of a run that was submitted with a trace, as struct rv_app_submit says it. May be NULL.
     */
    void (*on_trace)(void *self_event, const void *run, const char *trace, bool is_trusted);
    rv_app_streams *streams; /* of clients: those of runs that it drives go on; borrowed; NULL: it leaves them alone */
    void *self_event;
};
#define RV_WORKER_CONCURRENCY 16                 /* runs at once of one worker, unless it is told otherwise */
#define RV_WORKER_GRACE_US    (30 * RV_US_PER_S) /* for runs to come to a point where another process goes on */
#define RV_WORKER_NO_GRACE    INT64_C(-1)        /* what goes on is given up at once */
#define RV_WORKER_MAX         1024               /* runs at once: each holds a state in memory */
/** How long a grace is that options give so. */
static inline int64_t rv_worker_grace_us(int64_t given)
{
    return given == RV_WORKER_NO_GRACE ? 0 : given > 0 ? given : RV_WORKER_GRACE_US;
}
struct rv_worker_done {
    int64_t n_done, n_failed, n_back; /* tasks: completed; that failed an attempt; handed back */
    int64_t n_left; /* runs with a call under way that must not be repeated: not 0: end the process without more ado,
                       so that its leases end, and nothing that these runs use is freed */
};
/** Work until SIGTERM or SIGINT, which drain: nothing new is claimed, and each run comes to a point where another
 *  worker can go on with it, or is left as after a crash when the grace time is over. A second signal ends the process
 *  at once. A run that fails is a task that is done; no run ends the worker.
 *  @return RV_E_INVALID: the file of a handler is not a pipeline, or has errors; RV_E_STATE: the store keeps everything
 * in memory; what rv_app_store_open() says */
RV_MUST_CHECK int rv_worker_run(const struct rv_worker_opts *opts, struct rv_worker_done *out, rv_err **err);
/** The same for a server, which goes on while its worker cannot start: as long as what the worker opens is lacking, it
 *  is told with on_waits, which is needed, and the worker starts again. opts->stop is needed.
 *  @return as rv_worker_run(), of failures that stay */
RV_MUST_CHECK int rv_worker_keep(const struct rv_worker_opts *opts, struct rv_worker_done *out, rv_err **err);

/* --- A batch: one run of a pipeline for each line of a file, many at once, each line answered once.
 *
 * The run of a line has an id that is made of what decides its answer: the bundle (pipeline, script, tools), the
 * position of the line and its text. The store is asked for that run before anything is done, so a batch that was
 * stopped or killed goes on where it was: runs that are over are only read, those that a dead process left go on from
 * their journals, and the rest is begun. --- */
#define RV_BATCH_CONCURRENCY     32   /* runs at once, when nothing is said: enough for a group commit to pay */
#define RV_BATCH_MAX_CONCURRENCY 1024 /* runs at once: each is in memory, and maybe has a connection */

/* The lines so far. Each is in one of the first four. */
struct rv_app_batch_sum {
    int64_t completed, failed;
    int64_t waiting;    /* its run has a question for a person */
    int64_t elsewhere;  /* another process has its run */
    int64_t earlier;    /* of these: its run was over before */
    int64_t running;    /* at present */
    int64_t read_bytes; /* of the file */
    int64_t size;       /* of the file; 0: it is a pipe */
    bool is_cut;        /* it was stopped: there may be more lines */
};

/* A batch; what it points to is borrowed until it has ended. */
struct rv_app_batch {
    const struct rv_app *app;
    struct rv_app_loaded *loaded; /* what it runs: checked; with its store, if its agents needed one */
    const char *file;             /* "-": standard input */
    const char *name;             /* another name makes other runs of the same lines; NULL: "" */
    json_object *state;           /* what each run begins with besides its line; borrowed; NULL: nothing */
    int mode;                     /* enum rv_run_mode, or RV_UNSET for the pipeline's */
    bool use_mocks;
    size_t concurrency;  /* 0: RV_BATCH_CONCURRENCY */
    size_t workers;      /* threads for capability code at most; 0: 64 */
    bool in_any_order;   /* results come as runs end, not in the order of the lines */
    bool whole_results;  /* a result has the result dict of its run */
    bool handle_signals; /* SIGINT and SIGTERM stop it; a second one ends the process */
    /* Callbacks, on the thread that runs the batch. */
    /** The result of a line (docs/reference/batch.md), with its line end. False: the batch stops. */
    bool (*on_result)(void *self, rv_str line, bool is_failure);
    void (*on_tick)(void *self, const struct rv_app_batch_sum *sum); /* ten times a second; may be NULL */
    void *self;
};
/** Run it to its end, or until it is stopped: by a signal, by on_result, by a quota, by a store that fails. A line
 *  that cannot be read and a run that fails are results. What was begun when it stops is brought to a point where
 *  another process can go on with it. *out is also written on failure.
 *  @return RV_E_QUOTA, RV_E_IO, RV_E_UNAVAILABLE, ...: why it was stopped before its end; RV_E_NOT_FOUND: no such file
 *  Thread: blocks the caller. */
RV_MUST_CHECK int rv_app_batch_run(const struct rv_app_batch *batch, struct rv_app_batch_sum *out, rv_err **err);

#endif
