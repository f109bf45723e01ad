/* A store kept in order: copied, backed up, checked, brought forward; which data is kept and for how long; which plan a
 * user and a tenant have. */
#ifndef RV_APP_UPKEEP_H
#define RV_APP_UPKEEP_H

#include "coreengine/app/workspace.h"
#include "coreengine/store/store.h"

/* --- Whole stores: all rows are concerned, of every tenant --- */
/* What it points to is borrowed for the call. */
struct rv_app_copy_watch {
    void *self;
    /* Progress, as in struct rv_store_copy_opts. NULL: not called. */
    int (*on_progress)(void *self, const struct rv_store_copy_progress *p, rv_err **err);
};
struct rv_app_copied {
    struct rv_store_copied rows;
    char *from, *to; /* as they may be shown; owned */
};
/** Copy the store of one URL into that of another, which is made if it does not exist; see rv_store_copy(). A run that
 *  goes on meanwhile would go on in both stores, with its effects: so no run or task of `from` may have an owner that
 *  lives, and no worker may be at work in either store.
 *  @return RV_E_STATE: one of them does, with what to do; and what opening and rv_store_copy() say */
RV_MUST_CHECK int rv_app_copy_store(const struct rv_app *app, const char *from, const char *to,
                                    const struct rv_app_copy_watch *watch, struct rv_app_copied *out, rv_err **err);
void rv_app_copied_fini(struct rv_app_copied *c);

struct rv_app_migrated {
    char *url; /* as it may be shown; owned */
    struct rv_store_version was;
};
/** Bring the tables of app->store forward. is_dry: only look. RV_E_NOT_FOUND: there is no store; RV_E_VERSION: it is
 *  newer than this program. */
RV_MUST_CHECK int rv_app_migrate_store(const struct rv_app *app, bool is_dry, struct rv_app_migrated *out,
                                       rv_err **err);
void rv_app_migrated_fini(struct rv_app_migrated *m);

/* --- Retention: which data is kept and for how long; the rules of `reeve gc` --- */
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
RV_MUST_CHECK int rv_retention_find_path(rv_buf *path, rv_err **err);
/** Faults become findings; *out may be NULL then. */
RV_MUST_CHECK int rv_retention_read(const char *path, rv_findings *findings, rv_retention **out, rv_err **err);
/** One rule for every run that is over. NULL on out of memory. */
rv_retention *rv_retention_new_of_age(int64_t max_age_us);
void rv_retention_free(rv_retention *r);
void rv_retention_write_schema(rv_jw *w);
void rv_retention_write_reference(rv_buf *b); /* docs/reference/retention.md */

/* --- the rules applied to a store --- */
#define RV_APP_GC_GRACE_US RV_US_PER_HOUR /* for grace_us, when nothing else is known */
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

/* --- Quotas: which plan a user and a tenant have, and what its limits are. The store counts
 * (coreengine/store/users.h). --- */
typedef struct rv_quotas rv_quotas;

/** Read a file of plans. Faults become findings; *out may be NULL then. */
RV_MUST_CHECK int rv_quotas_read(const char *path, rv_findings *findings, rv_quotas **out, rv_err **err);
void rv_quotas_free(rv_quotas *q);
/** The file that app->quotas names, else REEVE_QUOTAS, else the one among the user's settings, which need not be there;
 *  appended; nothing: there is none. */
RV_MUST_CHECK int rv_app_find_quotas_path(const struct rv_app *app, rv_buf *out, rv_err **err);
/** Read it. *out NULL: there are no quotas. RV_E_INVALID: the first fault of the file, with its place. */
RV_MUST_CHECK int rv_app_quotas_open(const struct rv_app *app, rv_quotas **out, rv_err **err);
/** The limits of a run or a task: those of the tenant as a whole, then those of the user, each in one order. q NULL: no
 *  limits. The plans' names are borrowed from q. tenant NULL: RV_STORE_TENANT; user NULL or "": none.
 *  @return how many; at most RV_QUOTA_MAX_LIMITS */
size_t rv_quotas_collect_limits(const rv_quotas *q, const char *tenant, const char *user,
                                struct rv_quota_limit out[RV_QUOTA_MAX_LIMITS]);
/** Calls each for every user of the tenant that the file names, borrowed for the call. */
void rv_quotas_list_users(const rv_quotas *q, const char *tenant, void (*each)(void *self, const char *user),
                          void *self);

/* A limit and what is used, or what is counted without a limit. Texts are borrowed for the call of each. */
struct rv_app_usage {
    const char *user; /* "": none; with is_tenants also */
    bool is_tenants, is_rate;
    enum rv_quota_kind kind;
    enum rv_quota_span span;
    int64_t limit;    /* 0: none */
    const char *plan; /* NULL: without a limit */
    int64_t used, reserved;
    int64_t end_us; /* of the period; of a rate 0 */
};
/* Borrowed for the call. */
struct rv_app_usage_of {
    const rv_quotas *quotas;
    rv_store *store; /* NULL: nothing is used yet */
    const struct rv_store_scope *scope;
    int64_t now_us;
};
/** What the users of the tenant, or the one of the scope, may use and have used, the tenant as a whole first; borrowed
 *  for the call of each. With a user the tenant's own rows are left out. */
RV_MUST_CHECK int rv_app_list_usage(const struct rv_app_usage_of *of,
                                    void (*each)(void *self, const struct rv_app_usage *row), void *self, rv_err **err);
void rv_quotas_write_schema(rv_jw *w);

#endif
