/* A batch: one run of a pipeline for each line of a file, many at once, each line answered once.
 *
 * The run of a line has an id that is made of what decides its answer: the bundle (pipeline, script, tools), the
 * position of the line and its text. The store is asked for that run before anything is done, so a batch that was
 * stopped or killed goes on where it was: runs that are over are only read, those that a dead process left go on from
 * their journals, and the rest is begun. */
#ifndef RV_APP_BATCH_H
#define RV_APP_BATCH_H

#include "coreengine/app/app.h"

#define RV_BATCH_CONCURRENCY     32   /* runs at once, when nothing is said: enough for a group commit to pay */
#define RV_BATCH_MAX_CONCURRENCY 1024 /* each holds a run in memory, and maybe a connection to a provider */

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
