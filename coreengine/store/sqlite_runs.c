/* Writing runs and their records. The writer holds the write lock, so the values that it read first are still
 * current. */
#include <stdio.h>

#include "coreengine/store/sqlite_internal.h"

int rv_sql_check_numbers(struct sql_store *st, const char *kind, const char *id, const int64_t *numbers, size_t n,
                         rv_err **err)
{
    for (size_t i = 0; i < n; i++)
        if (numbers[i] < 0 || numbers[i] > RV_SQL_MAX_NUMBER) {
            RV_FAIL(err, RV_E_IO, "\"%s\": %s \"%s\" is damaged: %lld is no number that it can have", st->path, kind,
                    id, (long long)numbers[i]);
            rv_err_hint(err, "`reeve gc --check` lists what else is");
            return RV_E_IO;
        }
    return 0;
}

static int read_found(struct sql_store *st, sqlite3_stmt *stmt, const char *id, struct sql_found *out, rv_err **err)
{
    bool lacked = false;
    const char *owner = rv_sql_column(stmt, 3, &lacked), *status = rv_sql_column(stmt, 5, &lacked);
    int rc;

    if (lacked)
        return RV_FAIL(err, RV_E_NOMEM, "read run \"%s\"", id);
    *out = (struct sql_found){
        .key = sqlite3_column_int64(stmt, 0),
        .fence = sqlite3_column_int64(stmt, 1),
        .n_records = sqlite3_column_int64(stmt, 2),
        .lease_until_us = sqlite3_column_int64(stmt, 4),
        .n_pending = sqlite3_column_int64(stmt, 6),
        .is_owned = owner != NULL,
    };
    snprintf(out->owner, sizeof out->owner, "%s", owner ? owner : "");
    rc = rv_run_status_of(rv_str_of(status), &out->status, err);
    if (rc < 0)
        return RV_WRAP(err, rc == RV_E_NOMEM ? rc : RV_E_IO, "\"%s\": run \"%s\" is damaged", st->path, id);
    const int64_t numbers[] = {out->fence, out->n_records, out->lease_until_us, out->n_pending};
    return rv_sql_check_numbers(st, "run", id, numbers, RV_COUNT(numbers), err);
}

/* 1: found, 0: there is none. */
static int look(struct sql_store *st, const struct rv_store_scope *scope, const char *id, struct sql_found *out,
                rv_err **err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_use(st, SQL_FIND, &stmt, err);

    if (rc < 0)
        return rc;
    rv_sql_text(st, stmt, 1, id);
    rv_sql_text(st, stmt, 2, scope ? scope->tenant : NULL);
    rv_sql_text(st, stmt, 3, scope ? scope->user : NULL);
    rc = rv_sql_step(st, stmt, "look for a run", err);
    if (rc == 1) {
        int failed = read_found(st, stmt, id, out, err);
        rc = failed < 0 ? failed : 1;
    }
    rv_sql_done(stmt);
    return rc;
}

int rv_sql_find(struct sql_store *st, const struct rv_store_scope *scope, const char *id, struct sql_found *out,
                rv_err **err)
{
    int rc = look(st, scope, id, out, err);

    if (rc == 0)
        return rv_store_fail_no_run(id, err);
    return rc < 0 ? rc : 0;
}

int rv_sql_find_fenced(struct sql_store *st, const char *id, int64_t fence, struct sql_found *out, rv_err **err)
{
    int rc = rv_sql_find(st, NULL, id, out, err);

    if (rc == 0 && out->fence != fence)
        rc = rv_store_fail_fenced(id, fence, out->fence, out->is_owned ? out->owner : NULL, err);
    return rc;
}

static int add_record(struct sql_store *st, int64_t run, const struct rv_record *r, int64_t now_us, rv_err **err)
{
    rv_str body = {r->body.ptr ? r->body.ptr : "", r->body.len};
    bool is_large = r->value.ptr && r->body.len + r->value.len > RV_STORE_INLINE_MAX;
    sqlite3_stmt *stmt = NULL;
    char hash[RV_HASH_MAX];
    int64_t blob = 0;
    int rc = 0;

    if (is_large) {
        rv_hash_of(r->value, hash);
        rc = rv_sql_blob_key(st, r->value, hash, now_us, &blob, err);
    }
    if (rc == 0)
        rc = rv_sql_use(st, SQL_ADD_RECORD, &stmt, err);
    if (rc < 0)
        return rc;
    rv_sql_int(st, stmt, 1, run);
    rv_sql_int(st, stmt, 2, r->seq);
    rv_sql_int(st, stmt, 3, r->kind);
    rv_sql_str(st, stmt, 4, body);
    if (is_large)
        rv_sql_int(st, stmt, 6, blob);
    else
        rv_sql_str(st, stmt, 5, r->value);
    return rv_sql_run(st, stmt, "write a record", err);
}

static int add_records(struct sql_store *st, int64_t run, const struct rv_record *records, size_t n, int64_t now_us,
                       rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++)
        rc = add_record(st, run, &records[i], now_us, err);
    return rc;
}

static int add_run(struct sql_store *st, const struct rv_store_new_run *run, int64_t bundle, rv_err **err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_use(st, SQL_ADD_RUN, &stmt, err);

    if (rc < 0)
        return rc;
    rv_sql_text(st, stmt, 1, run->id);
    rv_sql_text(st, stmt, 2, run->tenant);
    rv_sql_text(st, stmt, 3, run->user);
    rv_sql_text(st, stmt, 4, run->session);
    rv_sql_text(st, stmt, 5, run->pipeline);
    rv_sql_int(st, stmt, 6, bundle);
    rv_sql_text(st, stmt, 7, run->parent);
    rv_sql_int(st, stmt, 8, run->parent_seq);
    rv_sql_text(st, stmt, 9, rv_run_status_text(run->status));
    rv_sql_text(st, stmt, 10, run->stage);
    rv_sql_int(st, stmt, 11, run->now_us);
    rv_sql_int(st, stmt, 12, (int64_t)run->n_records);
    rv_sql_text(st, stmt, 13, run->owner);
    rv_sql_int(st, stmt, 14, run->owner ? run->lease_until_us : 0);
    return rv_sql_run(st, stmt, "write a run", err);
}

static int create_run(struct sql_store *st, const struct rv_store_new_run *run, rv_err **err)
{
    struct sql_found found;
    int64_t bundle = 0;
    int rc = look(st, NULL, run->id, &found, err);

    if (rc != 0)
        return rc == 1 ? rv_store_fail_taken(run->id, err) : rc;
    rc = rv_sql_blob_key(st, (rv_str){NULL, 0}, run->bundle, 0, &bundle, err);
    if (rc == 0 && bundle == 0)
        rc = rv_store_fail_no_bundle(run->id, run->bundle, err);
    if (rc == 0)
        rc = add_run(st, run, bundle, err);
    if (rc == 0)
        rc = add_records(st, sqlite3_last_insert_rowid(st->db), run->records, run->n_records, run->now_us, err);
    return rc;
}

int rv_sql_create_run(void *self, const struct rv_store_new_run *run, rv_err **err)
{
    struct sql_store *st = self;
    int rc = rv_sql_begin_write(st, "create a run", err);

    if (rc < 0)
        return rc;
    return rv_sql_end_write(st, create_run(st, run, err), "create a run", err);
}

static int add_pending(struct sql_store *st, int64_t run, size_t n, const struct rv_pending *p, rv_err **err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_use(st, SQL_ADD_PENDING, &stmt, err);

    if (rc < 0)
        return rc;
    rv_sql_int(st, stmt, 1, run);
    rv_sql_int(st, stmt, 2, (int64_t)n);
    rv_sql_text(st, stmt, 3, p->id);
    rv_sql_text(st, stmt, 4, p->kind);
    rv_sql_text(st, stmt, 5, p->stage);
    rv_sql_str(st, stmt, 6, (rv_str){p->text.ptr ? p->text.ptr : "", p->text.len});
    rv_sql_str(st, stmt, 7, (rv_str){p->body.ptr ? p->body.ptr : "", p->body.len});
    rv_sql_int(st, stmt, 8, p->created_us);
    rv_sql_int(st, stmt, 9, p->expires_us);
    return rv_sql_run(st, stmt, "write a pending interrupt", err);
}

static int set_pending(struct sql_store *st, const struct sql_found *run, const struct rv_store_append *a, rv_err **err)
{
    sqlite3_stmt *stmt = NULL;
    int64_t expires = 0;
    int rc;

    if (run->n_pending == 0 && a->n_pending == 0)
        return 0;
    rc = rv_sql_use(st, SQL_CLEAR_PENDING, &stmt, err);
    if (rc < 0)
        return rc;
    rv_sql_int(st, stmt, 1, run->key);
    rc = rv_sql_run(st, stmt, "drop pending interrupts", err);
    for (size_t i = 0; i < a->n_pending && rc == 0; i++) {
        int64_t end = a->pending[i].expires_us;
        if (end > 0 && (expires == 0 || end < expires))
            expires = end;
        rc = add_pending(st, run->key, i, &a->pending[i], err);
    }
    if (rc == 0)
        rc = rv_sql_use(st, SQL_COUNT_PENDING, &stmt, err);
    if (rc < 0)
        return rc;
    rv_sql_int(st, stmt, 1, run->key);
    rv_sql_int(st, stmt, 2, (int64_t)a->n_pending);
    rv_sql_int(st, stmt, 3, expires);
    return rv_sql_run(st, stmt, "write a run", err);
}

static int advance(struct sql_store *st, int64_t key, const struct rv_store_append *a, rv_err **err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_use(st, SQL_ADVANCE, &stmt, err);

    if (rc < 0)
        return rc;
    rv_sql_int(st, stmt, 1, key);
    rv_sql_text(st, stmt, 2, rv_run_status_text(a->status));
    rv_sql_text(st, stmt, 3, a->stage);
    rv_sql_int(st, stmt, 4, a->now_us);
    rv_sql_int(st, stmt, 5, (int64_t)a->n_records);
    rv_sql_int(st, stmt, 6, rv_store_status_is_final(a->status));
    rc = rv_sql_run(st, stmt, "write a run", err);
    if (rc < 0 || !a->release)
        return rc;
    /* Apart, because a statement that names the owner writes its index even when nothing changes. */
    rc = rv_sql_use(st, SQL_DISOWN, &stmt, err);
    if (rc < 0)
        return rc;
    rv_sql_int(st, stmt, 1, key);
    return rv_sql_run(st, stmt, "write a run", err);
}

static int append(struct sql_store *st, const struct rv_store_append *a, rv_err **err)
{
    struct sql_found run;
    int rc = rv_sql_find_fenced(st, a->run, a->fence, &run, err);

    if (rc < 0)
        return rc;
    if (a->n_records > 0 && a->records[0].seq != run.n_records + 1)
        return rv_store_fail_seq(a->run, run.n_records, a->records[0].seq, err);
    rc = advance(st, run.key, a, err);
    if (rc == 0)
        rc = add_records(st, run.key, a->records, a->n_records, a->now_us, err);
    if (rc == 0 && a->set_pending)
        rc = set_pending(st, &run, a, err);
    if (rc == 0 && a->n_turns > 0)
        rc = rv_sql_keep_turns(st, run.key, a, err);
    return rc;
}

int rv_sql_append(void *self, const struct rv_store_append *a, rv_err **err)
{
    struct sql_store *st = self;
    int rc = rv_sql_begin_write(st, "append", err);

    if (rc < 0)
        return rc;
    if (a->n_turns == 0)
        return rv_sql_end_write(st, append(st, a, err), "append", err);
    rc = rv_sql_begin_part(st, err); /* a turn may be refused when the records are written already */
    if (rc == 0)
        rc = rv_sql_end_part(st, append(st, a, err), err);
    return rv_sql_end_write(st, rc, "append", err);
}

static int delete_run(struct sql_store *st, const struct rv_store_scope *scope, const char *id, int64_t now_us,
                      rv_err **err)
{
    struct sql_found run;
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_find(st, scope, id, &run, err);

    if (rc == 0 && run.is_owned && run.lease_until_us > now_us)
        rc = rv_store_fail_leased(id, run.owner, run.lease_until_us, err);
    if (rc == 0)
        rc = rv_sql_use(st, SQL_DELETE_RUN, &stmt, err);
    if (rc < 0)
        return rc;
    rv_sql_int(st, stmt, 1, run.key);
    return rv_sql_run(st, stmt, "delete a run", err);
}

int rv_sql_delete_run(void *self, const struct rv_store_scope *scope, const char *id, int64_t now_us, rv_err **err)
{
    struct sql_store *st = self;
    int rc = rv_sql_begin_write(st, "delete a run", err);

    if (rc < 0)
        return rc;
    return rv_sql_end_write(st, delete_run(st, scope, id, now_us, err), "delete a run", err);
}
