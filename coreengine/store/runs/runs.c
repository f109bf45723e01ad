/* Writing runs and their records. The writer holds the lock of the store or of the run's row, so the
 * values that it read first are still current. */
#include <stdio.h>
#include <string.h>

#include "coreengine/store/encryption/vault_internal.h"
#include "coreengine/store/store_internal.h"

#define MAX_WRITE   ((size_t)100000) /* records of one call: a step writes a handful, a fork's tail a few */
#define MAX_PENDING ((size_t)10000)  /* interrupts of one run that wait at the same time: each branch may ask one */
#define MAX_TURNS   ((size_t)1000)   /* of one append: one turn is usual, and a copy of a session brings more */

/* --- What a run, its records and its interrupts have to be like --- */

static int check_records(const char *run, const struct rv_record *records, size_t n, int64_t first_seq, rv_err **err)
{
    if (n > MAX_WRITE)
        return RV_FAIL(err, RV_E_LIMIT, "run \"%s\": %zu records at once, more than %zu", run, n, MAX_WRITE);
    if (n > 0 && !records)
        return RV_FAIL(err, RV_E_INVALID, "run \"%s\": %zu records and none given", run, n);
    for (size_t i = 0; i < n; i++) {
        const struct rv_record *r = &records[i];
        int rc;
        if (r->seq < 1 || r->seq - (int64_t)i != first_seq)
            return RV_FAIL(err, RV_E_INVALID, "run \"%s\": record %zu has seq %lld, not %lld", run, i,
                           (long long)r->seq, (long long)first_seq + (long long)i);
        rc = store_check_bytes("body", r->body, RV_STORE_MAX_BODY, err);
        if (rc == 0)
            rc = store_check_bytes("value", r->value, RV_STORE_MAX_VALUE, err);
        if (rc < 0)
            return RV_WRAP(err, rc, "run \"%s\": record %lld", run, (long long)r->seq);
    }
    return 0;
}

static int check_status(enum rv_run_status status, rv_err **err)
{
    if ((int)status < 0 || status >= RV_N_RUN)
        return RV_FAIL(err, RV_E_INVALID, "%d is not a run status", (int)status);
    return 0;
}

static int check_new_run(const struct rv_store_new_run *run, rv_err **err)
{
    int rc;

    if (!run)
        return RV_FAIL(err, RV_E_INVALID, "no run given");
    if ((rc = store_check_id("run id", run->id, err)) < 0 ||
        (rc = run->tenant ? store_check_id("tenant", run->tenant, err) : 0) < 0 ||
        (rc = store_check_text("user", run->user, RV_STORE_MAX_ID, err)) < 0 ||
        (rc = store_check_text("session", run->session, RV_STORE_MAX_TEXT, err)) < 0 ||
        (rc = store_check_text("pipeline", run->pipeline, RV_STORE_MAX_TEXT, err)) < 0 ||
        (rc = store_check_hash(run->bundle, err)) < 0 ||
        (rc = run->parent ? store_check_id("parent run", run->parent, err) : 0) < 0 ||
        (rc = store_check_text("stage", run->stage, RV_STORE_MAX_TEXT, err)) < 0 ||
        (rc = run->owner ? store_check_id("owner", run->owner, err) : 0) < 0 ||
        (rc = check_status(run->status, err)) < 0 || (rc = store_check_time("the time", run->now_us, err)) < 0 ||
        (rc = store_check_time("the lease's end", run->lease_until_us, err)) < 0)
        return rc;
    if ((rc = store_check_new_id("run id", run->id, err)) < 0 ||
        (rc = store_check_new_id("tenant", run->tenant, err)) < 0 ||
        (rc = store_check_new_id("user", run->user, err)) < 0 ||
        (rc = store_check_new_id("session", run->session, err)) < 0)
        return rc;
    if (run->parent_seq < 0)
        return RV_FAIL(err, RV_E_INVALID, "run \"%s\": its parent has no record %lld", run->id,
                       (long long)run->parent_seq);
    return check_records(run->id, run->records, run->n_records, 1, err);
}

static int check_pending(const struct rv_store_append *a, size_t i, rv_err **err)
{
    const struct rv_pending *p = &a->pending[i];
    int rc;

    if ((rc = store_check_id("interrupt id", p->id, err)) < 0 ||
        (rc = store_check_text("kind", p->kind, RV_STORE_MAX_TEXT, err)) < 0 ||
        (rc = store_check_text("stage", p->stage, RV_STORE_MAX_TEXT, err)) < 0 ||
        (rc = store_check_bytes("text", p->text, RV_STORE_MAX_QUESTION, err)) < 0 ||
        (rc = store_check_bytes("body", p->body, RV_STORE_MAX_QUESTION, err)) < 0 ||
        (rc = store_check_time("the time", p->created_us, err)) < 0 ||
        (rc = store_check_time("the end", p->expires_us, err)) < 0)
        return RV_WRAP(err, rc, "run \"%s\": pending interrupt %zu", a->run, i);
    for (size_t k = 0; k < i; k++)
        if (strcmp(a->pending[k].id, p->id) == 0)
            return RV_FAIL(err, RV_E_INVALID, "run \"%s\": two pending interrupts \"%s\"", a->run, p->id);
    return 0;
}

static int check_all_pending(const struct rv_store_append *a, rv_err **err)
{
    int rc = 0;

    if (a->n_pending > MAX_PENDING)
        return RV_FAIL(err, RV_E_LIMIT, "run \"%s\": %zu pending interrupts, more than %zu", a->run, a->n_pending,
                       MAX_PENDING);
    if (a->n_pending > 0 && !a->pending)
        return RV_FAIL(err, RV_E_INVALID, "run \"%s\": %zu pending interrupts and none given", a->run, a->n_pending);
    for (size_t i = 0; i < a->n_pending && rc == 0; i++)
        rc = check_pending(a, i, err);
    return rc;
}

static int check_append(const struct rv_store_append *a, rv_err **err)
{
    int64_t first;
    int rc;

    if (!a)
        return RV_FAIL(err, RV_E_INVALID, "nothing to append");
    first = a->n_records > 0 && a->records ? a->records[0].seq : 1;
    if ((rc = store_check_id("run id", a->run, err)) < 0 || (rc = check_status(a->status, err)) < 0 ||
        (rc = store_check_text("stage", a->stage, RV_STORE_MAX_TEXT, err)) < 0 ||
        (rc = store_check_time("the time", a->now_us, err)) < 0 ||
        (rc = check_records(a->run, a->records, a->n_records, first, err)) < 0)
        return rc;
    if (a->n_turns > MAX_TURNS)
        return RV_FAIL(err, RV_E_LIMIT, "run \"%s\": %zu turns at once, more than %zu", a->run, a->n_turns, MAX_TURNS);
    if (a->n_turns > 0 && !a->turns)
        return RV_FAIL(err, RV_E_INVALID, "run \"%s\": %zu turns and none given", a->run, a->n_turns);
    for (size_t i = 0; i < a->n_turns; i++) {
        rc = store_check_turn(&a->turns[i], err);
        if (rc < 0)
            return RV_WRAP(err, rc, "run \"%s\": turn %zu", a->run, i);
    }
    if (a->settled.is_set && ((a->settled.id && (rc = store_check_id("interrupt id", a->settled.id, err)) < 0) ||
                              (rc = store_check_bytes("reason", a->settled.reason, RV_STORE_MAX_QUESTION, err)) < 0))
        return rc;
    return a->set_pending ? check_all_pending(a, err) : 0;
}

/* --- Finding one --- */

bool rv_run_status_is_final(enum rv_run_status status)
{
    return status != RV_RUN_READY && status != RV_RUN_RUNNING && status != RV_RUN_INTERRUPTED;
}

int store_fail_no_run(const char *run, rv_err **err)
{
    return RV_FAIL(err, RV_E_NOT_FOUND, "no run \"%s\"", run);
}

int store_fail_leased(const char *run, const char *owner, int64_t until_us, rv_err **err)
{
    char until[RV_TIME_MAX];

    rv_time_format(until_us, until);
    return RV_FAIL(err, RV_E_STATE, "run \"%s\" is owned by \"%s\" until %s", run, owner, until);
}

static int fail_fenced(const char *run, int64_t fence, int64_t present, const char *owner, rv_err **err)
{
    if (owner)
        RV_FAIL(err, RV_E_STATE, "run \"%s\" was taken over by \"%s\" (fence %lld, this writer has %lld)", run, owner,
                (long long)present, (long long)fence);
    else
        RV_FAIL(err, RV_E_STATE, "run \"%s\" was taken over and let go (fence %lld, this writer has %lld)", run,
                (long long)present, (long long)fence);
    return RV_E_STATE;
}

static void put_id(rv_str id, char out[RV_STORE_MAX_ID + 1])
{
    size_t len = id.len < RV_STORE_MAX_ID ? id.len : RV_STORE_MAX_ID;

    if (len > 0)
        memcpy(out, id.ptr, len);
    out[len] = '\0';
}

/* Each step looks: no text is copied twice. */
static int read_found(struct sql_store *st, rv_sql_stmt *stmt, const char *id, struct found_run *out, rv_err **err)
{
    rv_str owner = sql_str_at(stmt, 3);

    out->key = sql_int_at(stmt, 0);
    out->fence = sql_int_at(stmt, 1);
    out->n_records = sql_int_at(stmt, 2);
    out->lease_until_us = sql_int_at(stmt, 4);
    out->n_pending = sql_int_at(stmt, 6);
    out->n_open = sql_int_at(stmt, 7);
    out->is_owned = owner.ptr != NULL;
    put_id(owner, out->owner);
    int rc = rv_run_status_of(sql_str_at(stmt, 5), &out->status, err);
    put_id(sql_str_at(stmt, 8), out->tenant);
    if (rc < 0)
        return RV_WRAP(err, rc == RV_E_NOMEM ? rc : RV_E_IO, "\"%s\": run \"%s\" is damaged", sql_path(st), id);
    const int64_t numbers[] = {out->fence, out->n_records, out->lease_until_us, out->n_pending, out->n_open};
    return store_check_numbers(st, "run", id, numbers, RV_COUNT(numbers), err);
}

/* 1: found, 0: there is none. */
static int look(struct sql_store *st, const struct rv_store_scope *scope, const char *id, struct found_run *out,
                rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_FIND);
    int rc;

    store_sql_text(stmt, 1, id);
    store_sql_text(stmt, 2, scope ? scope->tenant : NULL);
    store_sql_text(stmt, 3, scope ? scope->user : NULL);
    rc = sql_step(stmt, "look for a run", err);
    if (rc == 1) {
        int failed = read_found(st, stmt, id, out, err);
        rc = failed < 0 ? failed : 1;
    }
    sql_done(stmt);
    return rc;
}

int store_run_find(struct sql_store *st, const struct rv_store_scope *scope, const char *id, struct found_run *out,
                   rv_err **err)
{
    int rc = look(st, scope, id, out, err);

    if (rc == 0)
        return store_fail_no_run(id, err);
    return rc < 0 ? rc : 0;
}

int store_run_find_fenced(struct sql_store *st, const char *id, int64_t fence, struct found_run *out, rv_err **err)
{
    int rc = store_run_find(st, NULL, id, out, err);

    if (rc == 0 && out->fence != fence)
        rc = fail_fenced(id, fence, out->fence, out->is_owned ? out->owner : NULL, err);
    return rc;
}

/* --- Making one --- */

/* Whose records are written. */
struct run_at {
    int64_t key;
    const char *tenant, *id;
};

/* A large value is kept by the hash of what is kept: of an encrypted one that tells nothing of its text. */
static int add_blob(struct sql_store *st, const struct rv_place *at, rv_str value, int64_t now_us, int64_t *blob,
                    rv_err **err)
{
    rv_buf kept = RV_BUF_INIT(2 * RV_STORE_MAX_VALUE);
    enum rv_encryption_mode mode = RV_ENCRYPTION_NONE;
    char hash[RV_HASH_MAX];
    int rc = vault_mode(st, at->tenant, &mode, err);

    if (rc == 0 && mode >= RV_ENCRYPTION_PLATFORM)
        rc = store_secret_write(st, at, "value", value, &kept, err);
    if (rc == 0) {
        rv_str data = mode >= RV_ENCRYPTION_PLATFORM ? rv_buf_str(&kept) : value;
        rv_hash_format(data, hash);
        rc = store_blob_key(st, data, hash, now_us, blob, err);
    }
    rv_buf_fini(&kept);
    return rc;
}

static int add_record(struct sql_store *st, const struct run_at *run, const struct rv_record *r, int64_t now_us,
                      rv_err **err)
{
    const struct rv_place at = vault_engine_place(run->tenant, "records", run->id, NULL, r->seq);
    rv_str body = {r->body.ptr ? r->body.ptr : "", r->body.len};
    bool is_large = r->value.ptr && r->body.len + r->value.len > RV_STORE_INLINE_MAX;
    int64_t blob = 0;
    int rc = is_large ? add_blob(st, &at, r->value, now_us, &blob, err) : 0;

    if (rc < 0)
        return rc;
    rv_sql_stmt *stmt = sql_use(st, SQL_ADD_RECORD);
    sql_int(stmt, 1, run->key);
    sql_int(stmt, 2, r->seq);
    sql_int(stmt, 3, r->kind);
    store_secret_bind(stmt, 4, SQL_STR, &at, "body", body);
    if (is_large)
        sql_int(stmt, 6, blob);
    else
        store_secret_bind(stmt, 5, SQL_STR, &at, "value", r->value);
    return sql_run(stmt, "write a record", err);
}

static int add_records(struct sql_store *st, const struct run_at *run, const struct rv_record *records, size_t n,
                       int64_t now_us, rv_err **err)
{
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++)
        rc = add_record(st, run, &records[i], now_us, err);
    return rc;
}

static void note_last(struct rv_store_last *out, int64_t key, enum rv_run_status status, bool asks, const char *tenant)
{
    if (!out)
        return;
    out->key = key;
    out->status = status;
    out->asks = asks;
    put_id(rv_str_of(tenant), out->tenant);
}

/* *key 0: there is such a run. */
static int add_run(struct sql_store *st, const struct rv_store_new_run *run, int64_t bundle, int64_t *key, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_ADD_RUN);

    store_sql_text(stmt, 1, run->id);
    store_sql_text(stmt, 2, run->tenant);
    store_sql_text(stmt, 3, run->user);
    store_sql_text(stmt, 4, run->session);
    store_sql_text(stmt, 5, run->pipeline);
    sql_int(stmt, 6, bundle);
    store_sql_text(stmt, 7, run->parent);
    sql_int(stmt, 8, run->parent_seq);
    store_sql_text(stmt, 9, rv_run_status_text(run->status));
    store_sql_text(stmt, 10, run->stage);
    sql_int(stmt, 11, run->now_us);
    sql_int(stmt, 12, (int64_t)run->n_records);
    store_sql_text(stmt, 13, run->owner);
    sql_int(stmt, 14, run->owner ? run->lease_until_us : 0);
    return sql_run_new(stmt, key, "write a run", err);
}

static int create_run(struct sql_store *st, const struct rv_store_new_run *run, rv_err **err)
{
    int64_t bundle = 0, key = 0;
    int rc = store_blob_key(st, (rv_str){NULL, 0}, run->bundle, 0, &bundle, err);

    if (rc == 0 && bundle == 0)
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "run \"%s\": the store has no bundle %s", run->id, run->bundle);
    if (rc == 0)
        rc = add_run(st, run, bundle, &key, err);
    if (rc == 0 && key == 0)
        rc = RV_FAIL(err, RV_E_EXISTS, "there is a run \"%s\" already", run->id);
    if (rc == 0)
        rc = add_records(st, &(struct run_at){key, run->tenant, run->id}, run->records, run->n_records, run->now_us,
                         err);
    if (rc == 0)
        note_last(run->next, key, run->status, false, run->tenant);
    return rc;
}

int rv_store_create_run(rv_store *s, const struct rv_store_new_run *run, rv_err **err)
{
    struct rv_store_new_run given;
    int rc = store_enter_write(s, check_new_run(run, err), "create run", err);

    if (rc != 0)
        return rc;
    given = *run;
    if (!given.tenant)
        given.tenant = RV_STORE_TENANT;
    do
        rc = create_run(s->sql, &given, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

/* --- A step --- */

static int add_pending(struct sql_store *st, const struct run_at *run, size_t n, const struct rv_pending *p,
                       rv_err **err)
{
    const struct rv_place at = vault_engine_place(run->tenant, "pending", run->id, p->id, 0);
    rv_sql_stmt *stmt = sql_use(st, SQL_ADD_PENDING);

    sql_int(stmt, 1, run->key);
    sql_int(stmt, 2, (int64_t)n);
    store_sql_text(stmt, 3, p->id);
    store_sql_text(stmt, 4, p->kind);
    store_sql_text(stmt, 5, p->stage);
    store_secret_bind(stmt, 6, SQL_STR, &at, "text", (rv_str){p->text.ptr ? p->text.ptr : "", p->text.len});
    store_secret_bind(stmt, 7, SQL_STR, &at, "body", (rv_str){p->body.ptr ? p->body.ptr : "", p->body.len});
    sql_int(stmt, 8, p->created_us);
    sql_int(stmt, 9, p->expires_us);
    return sql_run(stmt, "write a pending interrupt", err);
}

static int set_pending(struct sql_store *st, const struct found_run *run, const struct rv_store_append *a, rv_err **err)
{
    int rc = run->n_pending == 0 ? 0 : sql_run_key(st, SQL_CLEAR_PENDING, run->key, "drop pending interrupts", err);

    for (size_t i = 0; i < a->n_pending && rc == 0; i++)
        rc = add_pending(st, &(struct run_at){run->key, run->tenant, a->run}, i, &a->pending[i], err);
    return rc;
}

/* When the first of its questions expires; 0: never. */
static int64_t first_expiry_us(const struct rv_store_append *a)
{
    int64_t first = 0;

    for (size_t i = 0; i < a->n_pending; i++) {
        int64_t end = a->pending[i].expires_us;
        if (end > 0 && (first == 0 || end < first))
            first = end;
    }
    return first;
}

static bool asks(const struct found_run *run, const struct rv_store_append *a)
{
    return a->set_pending && (run->n_pending > 0 || run->n_open > 0 || a->n_pending > 0);
}

/* Its row. A statement that names an indexed column writes its index even when nothing changes, so there is one for
 * each set of columns. NULL: *n is not wanted. */
static int advance(struct sql_store *st, const struct found_run *run, const struct rv_store_append *a, int64_t *n,
                   rv_err **err)
{
    bool has_asked = asks(run, a);
    bool changes = has_asked || a->release || a->status != run->status || rv_run_status_is_final(a->status);
    enum sql_id id = !changes ? SQL_ADVANCE : a->release ? SQL_ADVANCE_OVER : SQL_ADVANCE_STATUS;

    if (has_asked)
        id = a->release ? SQL_ADVANCE_PARKED : SQL_ADVANCE_ASKING;
    rv_sql_stmt *stmt = sql_use(st, id);
    sql_int(stmt, 1, run->key);
    store_sql_text(stmt, 2, a->stage);
    sql_int(stmt, 3, a->now_us);
    sql_int(stmt, 4, (int64_t)a->n_records);
    if (changes) {
        store_sql_text(stmt, 5, rv_run_status_text(a->status));
        sql_int(stmt, 6, rv_run_status_is_final(a->status));
    }
    sql_int(stmt, 7, has_asked ? (int64_t)a->n_pending : run->fence);
    sql_int(stmt, 8, has_asked ? first_expiry_us(a) : run->n_records);
    return n ? sql_run_counted(stmt, n, "write a run", err) : sql_run(stmt, "write a run", err);
}

/* 1: the row was as the writer's last step had left it, and is advanced; 0: it has to be looked for. */
static int advance_from_last(struct sql_store *st, const struct rv_store_append *a, struct found_run *run, rv_err **err)
{
    const struct rv_store_last *last = a->last;
    int64_t n = 0;

    if (!last || last->key == 0 || last->asks || a->n_records == 0 || (a->set_pending && a->n_pending > 0))
        return 0;
    *run = (struct found_run){
        .key = last->key, .fence = a->fence, .n_records = a->records[0].seq - 1, .status = last->status};
    put_id(rv_str_of(last->tenant), run->tenant);
    int rc = advance(st, run, a, &n, err);
    return rc < 0 ? rc : n == 1;
}

/* Its questions are counted in its row, which is written behind them. */
static int look_and_advance(struct sql_store *st, const struct rv_store_append *a, struct found_run *run, rv_err **err)
{
    int rc = store_run_find_fenced(st, a->run, a->fence, run, err);

    if (rc < 0)
        return rc;
    if (a->n_records > 0 && a->records[0].seq != run->n_records + 1)
        return RV_FAIL(err, RV_E_STATE, "run \"%s\" has %lld records, so the next is not %lld", a->run,
                       (long long)run->n_records, (long long)a->records[0].seq);
    if (a->set_pending)
        rc = set_pending(st, run, a, err);
    if (rc == 0 && a->set_pending)
        rc = store_interrupts_keep(st, run, a, err);
    return rc < 0 ? rc : advance(st, run, a, NULL, err);
}

static int append(struct sql_store *st, const struct rv_store_append *a, rv_err **err)
{
    struct found_run run;
    int rc = advance_from_last(st, a, &run, err);

    if (rc == 0)
        rc = look_and_advance(st, a, &run, err);
    if (rc < 0)
        return rc;
    rc = add_records(st, &(struct run_at){run.key, run.tenant, a->run}, a->records, a->n_records, a->now_us, err);
    if (rc == 0 && a->n_turns > 0)
        rc = store_turns_keep(st, run.key, a, err);
    if (rc == 0)
        rc = store_webhooks_keep(st, &run, a, err);
    if (rc == 0)
        note_last(a->next, run.key, a->status, run.n_pending > 0 || run.n_open > 0 || a->n_pending > 0, run.tenant);
    return rc;
}

/* A turn may be refused when the records are written already. */
static int append_with_turns(struct sql_store *st, const struct rv_store_append *a, rv_err **err)
{
    int rc = sql_begin_part(st, err);

    return rc < 0 ? rc : sql_end_part(st, append(st, a, err), err);
}

int rv_store_append(rv_store *s, const struct rv_store_append *a, rv_err **err)
{
    int rc = store_enter_write(s, check_append(a, err), "append", err);

    if (rc != 0)
        return rc;
    do
        rc = a->n_turns == 0 ? append(s->sql, a, err) : append_with_turns(s->sql, a, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

static int find_unleased(struct sql_store *st, const struct rv_store_scope *scope, const char *id, int64_t now_us,
                         int64_t *key, rv_err **err)
{
    struct found_run run;
    int rc = store_run_find(st, scope, id, &run, err);

    if (rc == 0 && run.is_owned && run.lease_until_us > now_us)
        rc = store_fail_leased(id, run.owner, run.lease_until_us, err);
    if (rc == 0)
        *key = run.key;
    return rc;
}

/* The condition is part of the statement: where a database has several writers, it is met by the row that is locked. */
static int delete_seen(struct sql_store *st, int64_t key, const char *id, const struct rv_run_seen *seen, rv_err **err)
{
    int64_t n = 0;
    rv_sql_stmt *stmt = sql_use(st, SQL_DELETE_RUN_SEEN);

    sql_int(stmt, 1, key);
    store_sql_text(stmt, 2, rv_run_status_text(seen->status));
    sql_int(stmt, 3, seen->updated_us);
    int rc = sql_run_counted(stmt, &n, "delete a run", err);
    return rc < 0 || n > 0 ? rc : RV_FAIL(err, RV_E_NOT_FOUND, "run \"%s\" has changed since it was listed", id);
}

static int delete_run(struct sql_store *st, const struct rv_store_scope *scope, const char *id,
                      const struct rv_run_seen *seen, int64_t now_us, rv_err **err)
{
    int64_t key = 0;
    int rc = find_unleased(st, scope, id, now_us, &key, err);

    if (rc < 0)
        return rc;
    return seen ? delete_seen(st, key, id, seen, err) : sql_run_key(st, SQL_DELETE_RUN, key, "delete a run", err);
}

int rv_store_delete_run(rv_store *s, const struct rv_store_scope *scope, const char *run,
                        const struct rv_run_seen *seen, int64_t now_us, rv_err **err)
{
    struct rv_store_scope sc;
    int rc = store_enter_write(s, store_check_scoped(scope, "run id", run, &sc, err), "delete run", err);

    if (rc != 0)
        return rc;
    do
        rc = delete_run(s->sql, &sc, run, seen, now_us, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}
