/* Runs that were left: behind by another process, or in a file until they are answered; and requests to cancel a run
 * that another process runs. */
#ifndef RV_APP_RECOVER_H
#define RV_APP_RECOVER_H

#include "coreengine/app/workspace.h"

/* --- Runs that another process left behind --- */
#define RV_APP_CRASHES 3 /* in a row, from which on a run is recovered last, and in a process of its own */
enum rv_app_recovery {
    RV_APP_RECOVERY_LEFT, /* its owner is gone, or let its lease end; or one of its questions has expired, and it goes
                           * on by that
                           */
    RV_APP_RECOVERY_ENDED,
    RV_APP_RECOVERY_WAITS,  /* for an answer */
    RV_APP_RECOVERY_OWNED,  /* by a process that lives */
    RV_APP_RECOVERY_QUEUED, /* for a worker */
    RV_APP_RECOVERY_LATER,  /* it crashed several processes, and is tried again at next_us */
};
struct rv_app_unfinished {
    char *id;    /* owned */
    char *owner; /* owned; NULL: none */
    int64_t lease_until_us;
    enum rv_app_recovery verdict;
    enum rv_run_status status;
    bool cancel; /* a cancellation was requested */
    bool late;   /* its owner may live, but let its lease end */
    bool apart;  /* it is recovered last, in a process of its own */
    int64_t crashes, next_us;
};
struct rv_app_unfinished_list {
    struct rv_app_unfinished *items; /* owned */
    size_t n, cap;
    int64_t now_us;
    int64_t patience_us; /* for owners that are ending */
};
/** Every unfinished run, oldest first, or those that are named by words, as rv_app_find_run() takes them. A named run
 *  never is QUEUED, LATER or apart. */
RV_MUST_CHECK int rv_app_unfinished_find(rv_store *store, const struct rv_store_scope *scope, const char *const *words,
                                         size_t n_words, struct rv_app_unfinished_list *out, rv_err **err);
void rv_app_unfinished_fini(struct rv_app_unfinished_list *f);
/** How many of the newest 100 unfinished runs were left behind. */
size_t rv_app_count_left(rv_store *store, const struct rv_store_scope *scope);
/** patience_us: how long to wait for an owner that is ending; the function subtracts the time it waited. */
enum rv_app_recovery rv_app_recovery_of(const struct rv_run_row *row, int64_t now_us, int64_t *patience_us);
/** The number of processes that took the run over and ended without making a step. 0 while the owner lives. */
RV_MUST_CHECK int rv_app_count_crashes(rv_store *store, const struct rv_store_scope *scope,
                                       const struct rv_run_row *row, int64_t now_us, int64_t *out, rv_err **err);
/** When a run that crashed so often, the last time at last_us, is tried again. */
int64_t rv_app_next_try_us(int64_t crashes, int64_t last_us);
/** Have a run cancelled. *ends_elsewhere: the process that runs it does it; else rv_app_continue() with RV_APP_CANCEL
 *  has to. row: as it is after the request. */
RV_MUST_CHECK int rv_app_request_cancel(rv_store *store, const struct rv_store_scope *scope, const char *word,
                                        struct rv_run_row *row, bool *ends_elsewhere, rv_err **err);
/** Does the run wait, and is to be cancelled? Who asks leaves that to the process that drives the run, and its engine
 *  looks a few times a second, and not when the run has begun to wait: to be called when it was given back. False: it
 * was deleted, too. */
RV_MUST_CHECK int rv_app_is_to_be_cancelled(rv_store *store, const struct rv_store_scope *scope, const char *run,
                                            bool *out, rv_err **err);
/** That a run waits on, for the reason in err, which is taken: whether it is to be cancelled could not be read, or it
 * could not be taken again. */
void rv_app_log_uncancelled(rv_log *log, const char *run, rv_err *err);

/** Run this program again with those words, ending with NULL: for a run whose recovery ends its process. SIGINT and
 *  SIGTERM reach the child, too. *status: how it exited, -1: it did not; *number: the signal that ended it, or 0. */
RV_MUST_CHECK int rv_app_spawn_self(const char *const *words, int *status, int *number, rv_err **err);

/* --- Run files: where an interrupted run is kept until it is answered --- */
struct rv_runfile {
    const char *pipeline, *script; /* paths; script NULL: none; borrowed from json when read */
    enum rv_rules rules;           /* that the run began with; NEWEST: it begins now */
    json_object *state;            /* borrowed from json */
    json_object *json;             /* owned; NULL when made by hand */
};
/** Path of a run: the word itself if it is a file, else the file of that id in the folder of runs. */
RV_MUST_CHECK int rv_runfile_find_path(const char *run, rv_buf *out, rv_err **err);
/** Default file of the run with this id; the folder is created. */
RV_MUST_CHECK int rv_runfile_make_path(const char *id, rv_buf *out, rv_err **err);
/** Write a whole run file; `state` is the state dict's text. An older file survives any failure. */
RV_MUST_CHECK int rv_runfile_write(const char *path, const struct rv_runfile *run, rv_str state, rv_err **err);
/** Claim the run for this process until *fd is closed: two answers at once would do things twice. -1: nothing to claim.
 */
RV_MUST_CHECK int rv_runfile_claim(const char *path, int *fd, rv_err **err);
/** out owns what it points to: rv_runfile_fini(). RV_E_NOT_FOUND, RV_E_DENIED, RV_E_LIMIT, RV_E_PARSE: the file;
 *  RV_E_INVALID: not a run file; RV_E_VERSION: of another version, or of newer rules. */
RV_MUST_CHECK int rv_runfile_read(const char *path, struct rv_runfile *out, rv_err **err);
void rv_runfile_fini(struct rv_runfile *run);

#endif
