/* Leases and requests to cancel. */
#include <string.h>

#include "coreengine/store/sqlite_internal.h"

static int claim_run(struct sql_store *st, const struct rv_store_scope *scope, const char *id,
                     const struct rv_store_claim *claim, int64_t *fence, rv_err **err)
{
    struct sql_found run;
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_find(st, scope, id, &run, err);

    if (rc < 0)
        return rc;
    if (run.is_owned && run.lease_until_us > claim->now_us && !(claim->dead && strcmp(claim->dead, run.owner) == 0))
        return rv_store_fail_leased(id, run.owner, run.lease_until_us, err);
    rc = rv_sql_use(st, SQL_CLAIM, &stmt, err);
    if (rc < 0)
        return rc;
    rv_sql_int(st, stmt, 1, run.key);
    rv_sql_text(st, stmt, 2, claim->owner);
    rv_sql_int(st, stmt, 3, claim->until_us);
    *fence = run.fence + 1;
    return rv_sql_run(st, stmt, "claim a run", err);
}

int rv_sql_claim(void *self, const struct rv_store_scope *scope, const char *id, const struct rv_store_claim *claim,
                 int64_t *fence, rv_err **err)
{
    struct sql_store *st = self;
    int rc = rv_sql_begin_write(st, "claim a run", err);

    if (rc < 0)
        return rc;
    return rv_sql_end_write(st, claim_run(st, scope, id, claim, fence, err), "claim a run", err);
}

int rv_sql_renew(void *self, const char *owner, int64_t until_us, rv_err **err)
{
    struct sql_store *st = self;
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_begin_write(st, "renew leases", err);

    if (rc < 0)
        return rc;
    rc = rv_sql_use(st, SQL_RENEW, &stmt, err);
    if (rc == 0) {
        rv_sql_text(st, stmt, 1, owner);
        rv_sql_int(st, stmt, 2, until_us);
        rc = rv_sql_run(st, stmt, "renew leases", err);
    }
    return rv_sql_end_write(st, rc, "renew leases", err);
}

static int release_run(struct sql_store *st, const char *id, int64_t fence, rv_err **err)
{
    struct sql_found run;
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_find(st, NULL, id, &run, err);

    if (rc < 0 || run.fence != fence)
        return rc;
    rc = rv_sql_use(st, SQL_DISOWN, &stmt, err);
    if (rc < 0)
        return rc;
    rv_sql_int(st, stmt, 1, run.key);
    return rv_sql_run(st, stmt, "release a run", err);
}

int rv_sql_release(void *self, const char *id, int64_t fence, rv_err **err)
{
    struct sql_store *st = self;
    int rc = rv_sql_begin_write(st, "release a run", err);

    if (rc < 0)
        return rc;
    return rv_sql_end_write(st, release_run(st, id, fence, err), "release a run", err);
}

static int request_cancel(struct sql_store *st, const struct rv_store_scope *scope, const char *id, int64_t now_us,
                          rv_err **err)
{
    struct sql_found run;
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_find(st, scope, id, &run, err);

    if (rc == 0 && rv_store_status_is_final(run.status))
        rc = rv_store_fail_over(id, run.status, err);
    if (rc == 0)
        rc = rv_sql_use(st, SQL_CANCEL, &stmt, err);
    if (rc < 0)
        return rc;
    rv_sql_int(st, stmt, 1, run.key);
    rv_sql_int(st, stmt, 2, now_us);
    return rv_sql_run(st, stmt, "cancel a run", err);
}

int rv_sql_request_cancel(void *self, const struct rv_store_scope *scope, const char *id, int64_t now_us, rv_err **err)
{
    struct sql_store *st = self;
    int rc = rv_sql_begin_write(st, "cancel a run", err);

    if (rc < 0)
        return rc;
    return rv_sql_end_write(st, request_cancel(st, scope, id, now_us, err), "cancel a run", err);
}

int rv_sql_list_cancels(void *self, const char *owner, rv_each_id *each, void *ctx, rv_err **err)
{
    struct sql_store *st = self;
    sqlite3_stmt *stmt = NULL;
    bool lacked = false;
    int rc = rv_sql_use(st, SQL_CANCELS, &stmt, err);

    if (rc < 0)
        return rc;
    rv_sql_text(st, stmt, 1, owner);
    while ((rc = rv_sql_step(st, stmt, "list runs to cancel", err)) == 1) {
        const char *id = rv_sql_column(stmt, 0, &lacked);
        rc = lacked ? RV_FAIL(err, RV_E_NOMEM, "list runs to cancel") : each(ctx, id ? id : "", err);
        if (rc != 0)
            break;
    }
    rv_sql_done(stmt);
    return rc;
}
