/* The front of the store: the one place that checks arguments, passes the fault points and guards against calls that
 * do not fit (writes to a read-only store, calls from within a walk). What is behind it is an implementation. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/front_internal.h"

static int at(rv_store *s, const char *point, rv_err **err)
{
    return s->faults.at ? s->faults.at(s->faults.self, point, err) : 0;
}

int rv_store_enter(rv_store *s, const char *op, rv_err **err)
{
    if (s->is_walking)
        return RV_FAIL(err, RV_E_STATE, "store \"%s\": a callback of it may not use it", s->url);
    return at(s, op, err);
}

int rv_store_enter_write(rv_store *s, const char *op, rv_err **err)
{
    if (s->read_only)
        return RV_FAIL(err, RV_E_DENIED, "store \"%s\" is open for reading only", s->url);
    return rv_store_enter(s, op, err);
}

/* Upkeep looks at the file as a whole, which is not what it will be while a group is open. */
static int enter_alone(rv_store *s, const char *op, rv_err **err)
{
    if (s->in_group)
        return RV_FAIL(err, RV_E_STATE, "store \"%s\": not before the group is committed", s->url);
    return rv_store_enter(s, op, err);
}

int rv_store_leave(rv_store *s, int rc, const char *done, rv_err **err)
{
    return rc == 0 ? at(s, done, err) : rc;
}

/* "xyz:" and "xyz://" name kinds of stores; a path may contain a colon after anything else. */
static int kind_of(const char *url, const char **path, rv_err **err)
{
    size_t n = strspn(url, "abcdefghijklmnopqrstuvwxyz");

    *path = url;
    if (strcmp(url, "memory:") == 0)
        return 0;
    if (strncmp(url, "sqlite:", 7) == 0)
        *path = url + 7;
    else if (n > 0 && url[n] == ':' && strncmp(url + n, "://", 3) == 0)
        return RV_FAIL(err, RV_E_INVALID, "store \"%s\": there is no store of kind \"%.*s\"", url, (int)n, url);
    if (!**path)
        return RV_FAIL(err, RV_E_INVALID, "store \"%s\" names no file", url);
    return 1;
}

int rv_store_open(const char *url, const struct rv_store_opts *opts, rv_store **out, rv_err **err)
{
    static const struct rv_store_opts defaults = {0};
    const char *path = NULL;
    rv_store *s;
    int kind, rc;

    if (!opts)
        opts = &defaults;
    if (!url || !*url)
        return RV_FAIL(err, RV_E_INVALID, "no store given");
    if (strnlen(url, RV_STORE_MAX_URL + 1) > RV_STORE_MAX_URL)
        return RV_FAIL(err, RV_E_LIMIT, "store \"%.40s...\": a name of more than %d bytes", url, RV_STORE_MAX_URL);
    if (opts->busy_ms < 0)
        return RV_FAIL(err, RV_E_INVALID, "store \"%s\": busy_ms is %lld", url, (long long)opts->busy_ms);
    kind = kind_of(url, &path, err);
    if (kind < 0)
        return kind;
    s = calloc(1, sizeof *s);
    if (!s || !(s->url = rv_str_dup(rv_str_of(url)))) {
        free(s);
        return RV_FAIL(err, RV_E_NOMEM, "open store \"%s\"", url);
    }
    s->opts = *opts;
    s->read_only = opts->read_only;
    s->ops = &rv_store_sqlite_ops;
    rc = rv_store_sqlite_open(kind == 0 ? NULL : path, opts, &s->self, err);
    if (rc < 0) {
        free(s->url);
        free(s);
        return RV_WRAP(err, rc, "open store \"%s\"", url);
    }
    *out = s;
    return 0;
}

int rv_store_reopen(const rv_store *s, rv_store **out, rv_err **err)
{
    if (strcmp(s->url, "memory:") == 0)
        return RV_FAIL(err, RV_E_STATE, "store \"%s\" has one handle only", s->url);
    int rc = rv_store_open(s->url, &s->opts, out, err);
    if (rc == 0)
        (*out)->faults = s->faults;
    return rc;
}

bool rv_store_in_group(const rv_store *s)
{
    return s->in_group;
}

void rv_store_close(rv_store *s)
{
    if (!s)
        return;
    if (s->in_group)
        s->ops->rollback(s->self);
    s->ops->close(s->self);
    free(s->url);
    free(s);
}

void rv_store_set_wait(rv_store *s, int64_t ms)
{
    if (s->ops->set_wait)
        s->ops->set_wait(s->self, ms > 0 ? ms : 0);
}

const char *rv_store_url(const rv_store *s)
{
    return s->url;
}

void rv_store_set_faults(rv_store *s, struct rv_store_faults faults)
{
    s->faults = faults;
}

/* --- Runs --- */

int rv_store_create_run(rv_store *s, const struct rv_store_new_run *run, rv_err **err)
{
    struct rv_store_new_run given;
    int rc = rv_store_check_new_run(run, err);

    if (rc < 0)
        return RV_WRAP(err, rc, "create run");
    given = *run;
    if (!given.tenant)
        given.tenant = RV_STORE_TENANT;
    RV_STORE_ENTER(rv_store_enter_write, s, "create_run", err);
    return rv_store_leave(s, s->ops->create_run(s->self, &given, err), "create_run.done", err);
}

int rv_store_append(rv_store *s, const struct rv_store_append *a, rv_err **err)
{
    int rc = rv_store_check_append(a, err);

    if (rc < 0)
        return RV_WRAP(err, rc, "append");
    RV_STORE_ENTER(rv_store_enter_write, s, "append", err);
    return rv_store_leave(s, s->ops->append(s->self, a, err), "append.done", err);
}

int rv_store_begin(rv_store *s, rv_err **err)
{
    int rc;

    if (s->in_group)
        return RV_FAIL(err, RV_E_STATE, "store \"%s\": a group is open already", s->url);
    RV_STORE_ENTER(rv_store_enter_write, s, "begin", err);
    rc = s->ops->begin(s->self, err);
    s->in_group = rc == 0;
    rc = rv_store_leave(s, rc, "begin.done", err);
    if (rc != 0)
        rv_store_rollback(s); /* a caller that gets the error will not end it */
    return rc;
}

int rv_store_commit(rv_store *s, rv_err **err)
{
    int rc;

    if (!s->in_group)
        return RV_FAIL(err, RV_E_STATE, "store \"%s\": no group is open", s->url);
    rc = rv_store_enter_write(s, "commit", err);
    if (rc != 0) {
        rv_store_rollback(s); /* a commit that fails leaves nothing of the group */
        return rc;
    }
    s->in_group = false;
    return rv_store_leave(s, s->ops->commit(s->self, err), "commit.done", err);
}

void rv_store_rollback(rv_store *s)
{
    if (s->in_group && !s->is_walking)
        s->ops->rollback(s->self);
    s->in_group = s->in_group && s->is_walking;
}

int rv_store_end(rv_store *s, int rc, rv_err **err)
{
    if (rc == 0)
        return rv_store_commit(s, err);
    rv_store_rollback(s);
    return rc;
}

int rv_store_get_run(rv_store *s, const struct rv_store_scope *scope, const char *id, struct rv_run_row *out,
                     rv_err **err)
{
    struct rv_store_scope sc;
    struct rv_run_row row = {0};
    int rc;

    if ((rc = rv_store_check_scope(scope, &sc, err)) < 0 || (rc = rv_store_check_id("run id", id, err)) < 0)
        return RV_WRAP(err, rc, "get run");
    RV_STORE_ENTER(rv_store_enter, s, "get_run", err);
    rc = rv_store_leave(s, s->ops->get_run(s->self, &sc, id, &row, err), "get_run.done", err);
    if (rc == 0)
        *out = row;
    else
        rv_run_row_fini(&row);
    return rc;
}

int rv_store_list_runs(rv_store *s, const struct rv_store_scope *scope, const struct rv_run_filter *filter,
                       int (*each)(void *self, const struct rv_run_row *row, rv_err **err), void *self, rv_err **err)
{
    static const struct rv_run_filter all = {0};
    struct rv_store_scope sc;
    int rc;

    if (!filter)
        filter = &all;
    if ((rc = rv_store_check_scope(scope, &sc, err)) < 0 || (rc = rv_store_check_filter(filter, err)) < 0)
        return RV_WRAP(err, rc, "list runs");
    RV_STORE_ENTER(rv_store_enter, s, "list_runs", err);
    s->is_walking = true;
    rc = s->ops->list_runs(s->self, &sc, filter, each, self, err);
    s->is_walking = false;
    return rv_store_leave(s, rc, "list_runs.done", err);
}

int rv_store_read(rv_store *s, const struct rv_store_scope *scope, const char *run, int64_t from, int64_t upto,
                  int (*each)(void *self, const struct rv_record *r, rv_err **err), void *self, rv_err **err)
{
    struct rv_store_scope sc;
    int rc;

    if ((rc = rv_store_check_scope(scope, &sc, err)) < 0 || (rc = rv_store_check_id("run id", run, err)) < 0)
        return RV_WRAP(err, rc, "read records");
    if (upto < 0)
        return RV_FAIL(err, RV_E_INVALID, "read records of run \"%s\" up to %lld", run, (long long)upto);
    RV_STORE_ENTER(rv_store_enter, s, "read", err);
    s->is_walking = true;
    rc = s->ops->read(s->self, &sc, run, from, upto ? upto : INT64_MAX, each, self, err);
    s->is_walking = false;
    return rv_store_leave(s, rc, "read.done", err);
}

int rv_store_list_pending(rv_store *s, const struct rv_store_scope *scope, const char *run,
                          int (*each)(void *self, const struct rv_pending *p, rv_err **err), void *self, rv_err **err)
{
    struct rv_store_scope sc;
    int rc = rv_store_check_scope(scope, &sc, err);

    if (rc == 0 && run)
        rc = rv_store_check_id("run id", run, err);
    if (rc < 0)
        return RV_WRAP(err, rc, "list pending interrupts");
    RV_STORE_ENTER(rv_store_enter, s, "list_pending", err);
    s->is_walking = true;
    rc = s->ops->list_pending(s->self, &sc, run, each, self, err);
    s->is_walking = false;
    return rv_store_leave(s, rc, "list_pending.done", err);
}

int rv_store_delete_run(rv_store *s, const struct rv_store_scope *scope, const char *run, int64_t now_us, rv_err **err)
{
    struct rv_store_scope sc;
    int rc;

    if ((rc = rv_store_check_scope(scope, &sc, err)) < 0 || (rc = rv_store_check_id("run id", run, err)) < 0)
        return RV_WRAP(err, rc, "delete run");
    RV_STORE_ENTER(rv_store_enter_write, s, "delete_run", err);
    return rv_store_leave(s, s->ops->delete_run(s->self, &sc, run, now_us, err), "delete_run.done", err);
}

/* --- Ownership --- */

int rv_store_claim(rv_store *s, const struct rv_store_scope *scope, const char *run, const struct rv_store_claim *claim,
                   int64_t *fence, rv_err **err)
{
    struct rv_store_scope sc;
    int64_t got = 0;
    int rc;

    if ((rc = rv_store_check_scope(scope, &sc, err)) < 0 || (rc = rv_store_check_id("run id", run, err)) < 0 ||
        (rc = rv_store_check_id("owner", claim ? claim->owner : NULL, err)) < 0 ||
        (rc = claim->dead ? rv_store_check_id("dead owner", claim->dead, err) : 0) < 0)
        return RV_WRAP(err, rc, "claim run");
    if (claim->until_us <= claim->now_us)
        return RV_FAIL(err, RV_E_INVALID, "claim run \"%s\": the lease would end before it begins", run);
    RV_STORE_ENTER(rv_store_enter_write, s, "claim", err);
    rc = rv_store_leave(s, s->ops->claim(s->self, &sc, run, claim, &got, err), "claim.done", err);
    if (rc == 0)
        *fence = got;
    return rc;
}

int rv_store_renew(rv_store *s, const char *owner, int64_t until_us, rv_err **err)
{
    int rc = rv_store_check_id("owner", owner, err);

    if (rc < 0)
        return RV_WRAP(err, rc, "renew leases");
    RV_STORE_ENTER(rv_store_enter_write, s, "renew", err);
    return rv_store_leave(s, s->ops->renew(s->self, owner, until_us, err), "renew.done", err);
}

int rv_store_release(rv_store *s, const char *run, int64_t fence, rv_err **err)
{
    int rc = rv_store_check_id("run id", run, err);

    if (rc < 0)
        return RV_WRAP(err, rc, "release run");
    RV_STORE_ENTER(rv_store_enter_write, s, "release", err);
    return rv_store_leave(s, s->ops->release(s->self, run, fence, err), "release.done", err);
}

int rv_store_request_cancel(rv_store *s, const struct rv_store_scope *scope, const char *run, int64_t now_us,
                            rv_err **err)
{
    struct rv_store_scope sc;
    int rc;

    if ((rc = rv_store_check_scope(scope, &sc, err)) < 0 || (rc = rv_store_check_id("run id", run, err)) < 0)
        return RV_WRAP(err, rc, "cancel run");
    RV_STORE_ENTER(rv_store_enter_write, s, "request_cancel", err);
    return rv_store_leave(s, s->ops->request_cancel(s->self, &sc, run, now_us, err), "request_cancel.done", err);
}

int rv_store_list_cancels(rv_store *s, const char *owner, int (*each)(void *self, const char *run, rv_err **err),
                          void *self, rv_err **err)
{
    int rc = rv_store_check_id("owner", owner, err);

    if (rc < 0)
        return RV_WRAP(err, rc, "list runs to cancel");
    RV_STORE_ENTER(rv_store_enter, s, "list_cancels", err);
    s->is_walking = true;
    rc = s->ops->list_cancels(s->self, owner, each, self, err);
    s->is_walking = false;
    return rv_store_leave(s, rc, "list_cancels.done", err);
}

/* --- Blobs and snapshots --- */

int rv_store_put_blob(rv_store *s, rv_str data, char hash[RV_STORE_HASH_MAX], rv_err **err)
{
    struct rv_clock clock = rv_clock_system();
    char name[RV_HASH_MAX];
    int rc;

    if (!data.ptr && data.len > 0)
        return RV_FAIL(err, RV_E_INVALID, "put blob: a length and no bytes");
    if (data.len > RV_STORE_MAX_VALUE)
        return RV_FAIL(err, RV_E_LIMIT, "put blob: %zu bytes, more than %zu", data.len, RV_STORE_MAX_VALUE);
    RV_STORE_ENTER(rv_store_enter_write, s, "put_blob", err);
    rv_hash_of(data, name);
    rc = rv_store_leave(s, s->ops->put_blob(s->self, data, name, clock.now_us(clock.self), err), "put_blob.done", err);
    if (rc == 0)
        memcpy(hash, name, sizeof name);
    return rc;
}

int rv_store_get_blob(rv_store *s, const char *hash, rv_buf *out, rv_err **err)
{
    char found[RV_HASH_MAX];
    size_t before = out->len;
    int rc = rv_store_check_hash(hash, err);

    if (rc < 0)
        return RV_WRAP(err, rc, "get blob");
    RV_STORE_ENTER(rv_store_enter, s, "get_blob", err);
    rc = s->ops->get_blob(s->self, hash, out, err);
    if (rc == 0)
        rc = rv_buf_check(out, "blob", err);
    if (rc == 0) {
        rv_hash_of((rv_str){out->ptr ? out->ptr + before : "", out->len - before}, found);
        if (strcmp(found, hash) != 0) {
            rc = RV_FAIL(err, RV_E_IO, "blob %s is damaged: its bytes have the hash %s", hash, found);
            rv_err_hint(err, "`reeve gc --check` lists what else is");
        }
    }
    rc = rv_store_leave(s, rc, "get_blob.done", err);
    if (rc != 0 && out->rc == 0)
        rv_buf_truncate(out, before);
    return rc;
}

int rv_store_put_snapshot(rv_store *s, const char *run, int64_t fence, int64_t seq, rv_str body, rv_err **err)
{
    int rc = rv_store_check_id("run id", run, err);

    if (rc < 0)
        return RV_WRAP(err, rc, "put snapshot");
    if (seq < 1 || (!body.ptr && body.len > 0))
        return RV_FAIL(err, RV_E_INVALID, "put snapshot of run \"%s\": record %lld, %zu bytes", run, (long long)seq,
                       body.len);
    if (body.len > RV_STORE_MAX_VALUE)
        return RV_FAIL(err, RV_E_LIMIT, "put snapshot of run \"%s\": %zu bytes, more than %zu", run, body.len,
                       RV_STORE_MAX_VALUE);
    RV_STORE_ENTER(rv_store_enter_write, s, "put_snapshot", err);
    return rv_store_leave(s, s->ops->put_snapshot(s->self, run, fence, seq, body, err), "put_snapshot.done", err);
}

int rv_store_get_snapshot(rv_store *s, const struct rv_store_scope *scope, const char *run, int64_t *seq, rv_buf *out,
                          rv_err **err)
{
    struct rv_store_scope sc;
    size_t before = out->len;
    int64_t got = 0;
    int rc;

    if ((rc = rv_store_check_scope(scope, &sc, err)) < 0 || (rc = rv_store_check_id("run id", run, err)) < 0)
        return RV_WRAP(err, rc, "get snapshot");
    RV_STORE_ENTER(rv_store_enter, s, "get_snapshot", err);
    rc = s->ops->get_snapshot(s->self, &sc, run, &got, out, err);
    if (rc == 0)
        rc = rv_buf_check(out, "snapshot", err);
    rc = rv_store_leave(s, rc, "get_snapshot.done", err);
    if (rc == 0)
        *seq = got;
    else if (out->rc == 0)
        rv_buf_truncate(out, before);
    return rc;
}

int rv_store_drop_snapshots(rv_store *s, rv_err **err)
{
    RV_STORE_ENTER(rv_store_enter_write, s, "drop_snapshots", err);
    return rv_store_leave(s, s->ops->drop_snapshots(s->self, err), "drop_snapshots.done", err);
}

/* --- Upkeep --- */

int rv_store_stats(rv_store *s, struct rv_store_stats *out, rv_err **err)
{
    struct rv_store_stats got = {0};
    int rc;

    RV_STORE_ENTER(rv_store_enter, s, "stats", err);
    rc = rv_store_leave(s, s->ops->stats(s->self, &got, err), "stats.done", err);
    if (rc == 0)
        *out = got;
    return rc;
}

int rv_store_sweep(rv_store *s, int64_t now_us, int64_t grace_us, int64_t *freed, rv_err **err)
{
    int64_t got = 0;
    int rc;

    if (now_us < 0 || grace_us < 0)
        return RV_FAIL(err, RV_E_INVALID, "sweep: neither time nor grace can be negative");
    if (s->read_only)
        return RV_FAIL(err, RV_E_DENIED, "store \"%s\" is open for reading only", s->url);
    RV_STORE_ENTER(enter_alone, s, "sweep", err);
    rc = rv_store_leave(s, s->ops->sweep(s->self, now_us, grace_us, &got, err), "sweep.done", err);
    if (rc == 0 && freed)
        *freed = got;
    return rc;
}

int rv_store_check(rv_store *s, rv_err **err)
{
    RV_STORE_ENTER(enter_alone, s, "check", err);
    return rv_store_leave(s, s->ops->check(s->self, err), "check.done", err);
}

int rv_store_backup(rv_store *s, const char *path, rv_err **err)
{
    if (!path || !*path)
        return RV_FAIL(err, RV_E_INVALID, "backup of store \"%s\": no file given", s->url);
    if (strnlen(path, RV_STORE_MAX_URL + 1) > RV_STORE_MAX_URL)
        return RV_FAIL(err, RV_E_LIMIT, "backup to \"%.40s...\": a name of more than %d bytes", path, RV_STORE_MAX_URL);
    RV_STORE_ENTER(enter_alone, s, "backup", err);
    return rv_store_leave(s, s->ops->backup(s->self, path, err), "backup.done", err);
}
