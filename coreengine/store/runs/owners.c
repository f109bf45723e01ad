/* Ownership of runs: leases, fences, requests to cancel; and the snapshots that an owner keeps beside its run. */
#include <string.h>

#include "coreengine/store/encryption/vault_internal.h"
#include "coreengine/store/store_internal.h"

static int claim_run(struct sql_store *st, const struct rv_store_scope *scope, const char *id,
                     const struct rv_store_claim *claim, struct rv_store_claimed *out, rv_err **err)
{
    struct found_run run;
    int rc = store_run_find(st, scope, id, &run, err);

    if (rc < 0)
        return rc;
    if (run.is_owned && run.lease_until_us > claim->now_us && !(claim->dead && strcmp(claim->dead, run.owner) == 0))
        return store_fail_leased(id, run.owner, run.lease_until_us, err);
    rv_sql_stmt *stmt = sql_use(st, SQL_CLAIM);
    sql_int(stmt, 1, run.key);
    store_sql_text(stmt, 2, claim->owner);
    sql_int(stmt, 3, claim->until_us);
    *out = (struct rv_store_claimed){run.fence + 1, run.n_records, run.status};
    return sql_run(stmt, "claim a run", err);
}

static int check_claim(const struct rv_store_scope *scope, const char *run, const struct rv_store_claim *claim,
                       struct rv_store_scope *out, rv_err **err)
{
    int rc = store_check_scoped(scope, "run id", run, out, err);

    if (rc == 0)
        rc = store_check_id("owner", claim ? claim->owner : NULL, err);
    if (rc == 0 && claim->dead)
        rc = store_check_id("dead owner", claim->dead, err);
    if (rc == 0 && claim->until_us <= claim->now_us)
        rc = RV_FAIL(err, RV_E_INVALID, "run \"%s\": the lease would end before it begins", run);
    return rc;
}

int rv_store_claim_run(rv_store *s, const struct rv_store_scope *scope, const char *run,
                       const struct rv_store_claim *claim, struct rv_store_claimed *out, rv_err **err)
{
    struct rv_store_claimed got = {0};
    struct rv_store_scope sc;
    int rc = store_enter_write(s, check_claim(scope, run, claim, &sc, err), "claim", err);

    if (rc != 0)
        return rc;
    do
        rc = claim_run(s->sql, &sc, run, claim, &got, err);
    while (store_repeats(s, &rc, err));
    rc = store_leave_write(s, rc, err);
    if (rc == 0)
        *out = got;
    return rc;
}

int rv_store_claim(rv_store *s, const struct rv_store_scope *scope, const char *run, const struct rv_store_claim *claim,
                   int64_t *fence, rv_err **err)
{
    struct rv_store_claimed got;
    int rc = rv_store_claim_run(s, scope, run, claim, &got, err);

    if (rc == 0)
        *fence = got.fence;
    return rc;
}

static int renew(struct sql_store *st, const char *owner, int64_t until_us, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_RENEW);

    store_sql_text(stmt, 1, owner);
    sql_int(stmt, 2, until_us);
    return sql_run(stmt, "renew leases", err);
}

int rv_store_renew(rv_store *s, const char *owner, int64_t until_us, rv_err **err)
{
    int rc = store_enter_write(s, store_check_id("owner", owner, err), "renew", err);

    if (rc != 0)
        return rc;
    do
        rc = renew(s->sql, owner, until_us, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

static int release_run(struct sql_store *st, const char *id, int64_t fence, rv_err **err)
{
    struct found_run run;
    int rc = store_run_find(st, NULL, id, &run, err);

    if (rc < 0 || run.fence != fence)
        return rc;
    return sql_run_key(st, SQL_DISOWN, run.key, "release a run", err);
}

int rv_store_release(rv_store *s, const char *run, int64_t fence, rv_err **err)
{
    int rc = store_enter_write(s, store_check_id("run id", run, err), "release", err);

    if (rc != 0)
        return rc;
    do
        rc = release_run(s->sql, run, fence, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

/* --- Requests to cancel --- */

static int request_cancel(struct sql_store *st, const struct rv_store_scope *scope, const char *id, int64_t now_us,
                          rv_err **err)
{
    struct found_run run;
    int rc = store_run_find(st, scope, id, &run, err);

    if (rc == 0 && rv_run_status_is_final(run.status))
        rc = RV_FAIL(err, RV_E_STATE, "run \"%s\" is over: %s", id, rv_run_status_text(run.status));
    if (rc < 0)
        return rc;
    rv_sql_stmt *stmt = sql_use(st, SQL_CANCEL);
    sql_int(stmt, 1, run.key);
    sql_int(stmt, 2, now_us);
    sql_tell(st);
    return sql_run(stmt, "cancel a run", err);
}

int rv_store_request_cancel(rv_store *s, const struct rv_store_scope *scope, const char *run, int64_t now_us,
                            rv_err **err)
{
    struct rv_store_scope sc;
    int rc = store_enter_write(s, store_check_scoped(scope, "run id", run, &sc, err), "request cancel", err);

    if (rc != 0)
        return rc;
    do
        rc = request_cancel(s->sql, &sc, run, now_us, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

static int list_cancels(struct sql_store *st, const char *owner, rv_each_id *each, void *ctx, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_CANCELS);
    bool lacked = false;
    int rc;

    store_sql_text(stmt, 1, owner);
    while ((rc = sql_step(stmt, "list runs to cancel", err)) == 1) {
        const char *id = sql_text_at(stmt, 0, &lacked);
        rc = lacked ? RV_FAIL(err, RV_E_NOMEM, "list runs to cancel") : each(ctx, id ? id : "", err);
        if (rc != 0)
            break;
    }
    sql_done(stmt);
    return rc;
}

int rv_store_list_cancels(rv_store *s, const char *owner, int (*each)(void *self, const char *run, rv_err **err),
                          void *self, rv_err **err)
{
    int rc = store_enter_read(s, store_check_id("owner", owner, err), "list cancels", err);

    return rc != 0 ? rc : store_leave_read(s, list_cancels(s->sql, owner, each, self, err), err);
}

/* --- Snapshots --- */

static int put_snapshot(struct sql_store *st, const char *run, int64_t fence, int64_t seq, rv_str body, rv_err **err)
{
    struct found_run found;
    int rc = store_run_find_fenced(st, run, fence, &found, err);

    if (rc == 0 && seq > found.n_records)
        rc = RV_FAIL(err, RV_E_STATE, "run \"%s\" has %lld records, a snapshot cannot be of record %lld", run,
                     (long long)found.n_records, (long long)seq);
    if (rc < 0)
        return rc;
    const struct rv_place at = vault_engine_place(found.tenant, "snapshots", run, NULL, seq);
    rv_sql_stmt *stmt = sql_use(st, SQL_PUT_SNAPSHOT);
    sql_int(stmt, 1, found.key);
    sql_int(stmt, 2, seq);
    store_secret_bind(stmt, 3, SQL_BLOB, &at, "body", (rv_str){body.len > 0 ? body.ptr : "", body.len});
    return sql_run(stmt, "write a snapshot", err);
}

int rv_store_put_snapshot(rv_store *s, const char *run, int64_t fence, int64_t seq, rv_str body, rv_err **err)
{
    int rc = store_check_id("run id", run, err);

    if (rc == 0 && (seq < 1 || (!body.ptr && body.len > 0)))
        rc = RV_FAIL(err, RV_E_INVALID, "run \"%s\": record %lld, %zu bytes", run, (long long)seq, body.len);
    if (rc == 0 && body.len > RV_STORE_MAX_VALUE)
        rc = RV_FAIL(err, RV_E_LIMIT, "run \"%s\": %zu bytes, more than %zu", run, body.len, RV_STORE_MAX_VALUE);
    rc = store_enter_write(s, rc, "put snapshot", err);
    if (rc != 0)
        return rc;
    do
        rc = put_snapshot(s->sql, run, fence, seq, body, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

static int get_snapshot(struct sql_store *st, const struct rv_store_scope *scope, const char *run, int64_t *seq,
                        rv_buf *out, rv_err **err)
{
    struct found_run found;
    int rc = store_run_find(st, scope, run, &found, err);

    if (rc < 0)
        return rc;
    rv_sql_stmt *stmt = sql_use(st, SQL_GET_SNAPSHOT);
    sql_int(stmt, 1, found.key);
    rc = sql_step(stmt, "read a snapshot", err);
    *seq = rc == 1 ? sql_int_at(stmt, 0) : 0;
    if (rc == 1) {
        const struct rv_place at = vault_engine_place(found.tenant, "snapshots", run, NULL, *seq);
        rc = store_secret_read(st, &at, "body", sql_str_at(stmt, 1), out, err);
    }
    sql_done(stmt);
    return rc < 0 ? rc : rv_buf_check(out, "snapshot", err);
}

int rv_store_get_snapshot(rv_store *s, const struct rv_store_scope *scope, const char *run, int64_t *seq, rv_buf *out,
                          rv_err **err)
{
    struct rv_store_scope sc;
    size_t before = out->len;
    int64_t got = 0;
    bool began = false;
    int rc = store_enter_read(s, store_check_scoped(scope, "run id", run, &sc, err), "get snapshot", err);

    if (rc != 0)
        return rc;
    rc = sql_begin_read(s->sql, &began, err);
    if (rc == 0)
        rc = get_snapshot(s->sql, &sc, run, &got, out, err);
    sql_end_read(s->sql, began);
    rc = store_leave_read(s, rc, err);
    if (rc == 0)
        *seq = got;
    else if (out->rc == 0)
        rv_buf_truncate(out, before);
    return rc;
}
