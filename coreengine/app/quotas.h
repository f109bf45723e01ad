/* Quotas: which plan a user and a tenant have, and what its limits are. The store counts (coreengine/store/users.h).
 */
#ifndef RV_APP_QUOTAS_H
#define RV_APP_QUOTAS_H

#include "coreengine/app/app.h"
#include "coreengine/store/users.h"

typedef struct rv_quotas rv_quotas;

/** Read a file of plans. Faults become findings; *out may be NULL then. */
RV_MUST_CHECK int rv_quotas_read(const char *path, rv_findings *findings, rv_quotas **out, rv_err **err);
void rv_quotas_free(rv_quotas *q);
/** The file that app->quotas names, else REEVE_QUOTAS, else the one among the user's settings, which need not be there;
 *  appended; nothing: there is none. */
RV_MUST_CHECK int rv_app_quotas_path(const struct rv_app *app, rv_buf *out, rv_err **err);
/** Read it. *out NULL: there are no quotas. RV_E_INVALID: the first fault of the file, with its place. */
RV_MUST_CHECK int rv_app_quotas_open(const struct rv_app *app, rv_quotas **out, rv_err **err);
/** The limits of a run or a task: those of the tenant as a whole, then those of the user, each in one order. q NULL: no
 *  limits. The plans' names are borrowed from q. tenant NULL: RV_STORE_TENANT; user NULL or "": none.
 *  @return how many; at most RV_QUOTA_MAX_LIMITS */
size_t rv_quotas_limits(const rv_quotas *q, const char *tenant, const char *user,
                        struct rv_quota_limit out[RV_QUOTA_MAX_LIMITS]);
/** Calls each for every user of the tenant that the file names, borrowed for the call. */
void rv_quotas_each_user(const rv_quotas *q, const char *tenant, void (*each)(void *self, const char *user),
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
/** What the users of the tenant, or the one of the scope, may use and have used, the tenant as a whole first; borrowed
 *  for the call of each. store NULL: nothing is used yet. With a user the tenant's own rows are left out. */
RV_MUST_CHECK int rv_app_usage_list(const rv_quotas *q, rv_store *store, const struct rv_store_scope *scope,
                                    int64_t now_us, void (*each)(void *self, const struct rv_app_usage *row),
                                    void *self, rv_err **err);
void rv_quotas_write_schema(rv_jw *w);

#endif
