/* Retention: which data is kept and for how long; the rules of `reeve gc`. */
#ifndef RV_APP_RETENTION_H
#define RV_APP_RETENTION_H

#include "coreengine/app/app.h"

struct rv_retention_rule {
    const char *pipeline; /* "": any; owned */
    unsigned statuses;    /* bits 1u << enum rv_run_status */
    int64_t max_age_us;   /* since the run was last touched; < 0: any */
    int64_t max_count;    /* of those that the rule fits, the newest; < 0: any number */
    int line;             /* in the file; 0: of the command line */
    int64_t n_fit;        /* runs seen so far, newest first */
};
typedef struct rv_retention rv_retention;

#define RV_STATUSES_ENDED                                                                                              \
    (1u << RV_RUN_COMPLETED | 1u << RV_RUN_TERMINATED | 1u << RV_RUN_FAILED | 1u << RV_RUN_CANCELLED)

/** Where the rules of this user are, appended. RV_E_NOT_FOUND: the environment does not say. */
RV_MUST_CHECK int rv_retention_path(rv_buf *path, rv_err **err);
/** Faults become findings; *out may be NULL then. */
RV_MUST_CHECK int rv_retention_read(const char *path, rv_findings *findings, rv_retention **out, rv_err **err);
/** One rule for every run that is over. NULL on out of memory. */
rv_retention *rv_retention_new_of_age(int64_t max_age_us);
void rv_retention_free(rv_retention *r);
void rv_retention_write_schema(rv_jw *w);
void rv_retention_write_reference(rv_buf *b); /* docs/reference/retention.md */

/* --- the rules applied to a store --- */
#define RV_APP_GC_GRACE_US INT64_C(3600000000) /* for grace_us, when nothing else is known */
struct rv_app_gc_opts {
    rv_store *store; /* borrowed */
    struct rv_store_scope scope;
    rv_retention *rules; /* borrowed; NULL: only the runs of sessions that were deleted go */
    int64_t grace_us;    /* unused values that are younger stay: a run may be about to need them */
    bool dry_run;        /* only list what would go */
};
struct rv_app_gc_run { /* a run; texts in the arena */
    const char *id, *pipeline;
    enum rv_run_status status;
    int64_t updated_us;
    bool of_deleted_session;
    const char *dead; /* its owner, a process that is gone; NULL: none */
    int line;         /* of the rule in its file; 0: the rule of an age, or none */
};
struct rv_app_gc {
    const struct rv_app_gc_opts *opts; /* borrowed */
    int64_t now_us;
    rv_arena *arena;             /* owned; dies with the list */
    struct rv_app_gc_run *items; /* owned; in the order of the store: newest first */
    size_t n, cap;
    size_t n_owned; /* that would be deleted, but a process runs them */
    size_t n_deleted;
    int64_t freed_bytes;
};
/** Delete the runs that the rules do not keep and those of deleted sessions, 200 in a transaction, then what nothing
 *  refers to, logins that are over, and API keys that were revoked or expired 90 days ago (not of one user only). A run
 * that a process runs stays. What was deleted before a failure stays deleted. */
RV_MUST_CHECK int rv_app_gc(const struct rv_app_gc_opts *opts, struct rv_app_gc *out, rv_err **err);
void rv_app_gc_fini(struct rv_app_gc *c);

#endif
