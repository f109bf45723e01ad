/* A part of the store: the workers of the queue, what they offer, who of them has which duty, and the runs that
 * wait for one of them because no process drives them. All calls are for all tenants. */
#ifndef RV_STORE_WORKERS_H
#define RV_STORE_WORKERS_H

#include "coreengine/store/runs.h"

#define RV_STORE_MAX_OFFERS ((size_t)256 << 10) /* bytes of what a worker offers, as JSON */

/* Texts are borrowed for the call that gets it. */
struct rv_worker_row {
    const char *name; /* unique: no other process has it, nor the same one after a restart */
    const char *host; /* for people */
    int64_t pid;
    rv_str offers;               /* a JSON array of texts: labels, capabilities with versions */
    int64_t n_max, n_runs;       /* tasks that it takes at once, and has now */
    bool is_draining;            /* it takes no more */
    int64_t started_us, seen_us; /* seen: its last sign of life */
};
/** Add a worker, or update its row. RV_E_INVALID. */
RV_MUST_CHECK int rv_store_put_worker(rv_store *s, const struct rv_worker_row *row, rv_err **err);
/** Those that gave a sign of life since then, by the time when they began; the row is borrowed for the call of each;
 * each as rv_store_list_runs(). */
RV_MUST_CHECK int rv_store_list_workers(rv_store *s, int64_t since_us,
                                        int (*each)(void *self, const struct rv_worker_row *row, rv_err **err),
                                        void *self, rv_err **err);
/** A worker has ended. Workers without a sign of life since before_us are removed, too. */
RV_MUST_CHECK int rv_store_drop_worker(rv_store *s, const char *name, int64_t before_us, rv_err **err);
/** Take a duty that one worker at a time has for all. *is_mine: it is this worker's until then. A worker that has it
 * keeps it. */
RV_MUST_CHECK int rv_store_take_duty(rv_store *s, const char *duty, const char *worker, int64_t now_us,
                                     int64_t until_us, bool *is_mine, rv_err **err);

/* --- Runs that no process drives. Rows are borrowed for the call; each as rv_store_list_runs(). --- */
/** Owners of runs that are under way. */
RV_MUST_CHECK int rv_store_list_owners(rv_store *s, int (*each)(void *self, const char *owner, rv_err **err),
                                       void *self, rv_err **err);
/** Runs under way, oldest first, at most `limit`: those of that owner; with owner NULL those that began and have none,
 *  and those whose owner let the lease end. A run of which a task of type "run" waits or is done is not among them. */
RV_MUST_CHECK int rv_store_list_left(rv_store *s, const char *owner, int64_t now_us, int64_t limit,
                                     int (*each)(void *self, const struct rv_run_row *row, rv_err **err), void *self,
                                     rv_err **err);
/** Runs that wait with a question that has expired, the last to expire first, without such a task. */
RV_MUST_CHECK int rv_store_list_expired(rv_store *s, int64_t now_us, int64_t limit,
                                        int (*each)(void *self, const struct rv_run_row *row, rv_err **err), void *self,
                                        rv_err **err);

#endif
