/* Reading runs, records and pending interrupts. What a callback gets is borrowed from the statement it comes from. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/encryption/vault_internal.h"
#include "coreengine/store/store_internal.h"

static int copy_row(const struct rv_run_row *row, struct rv_run_row *out)
{
    struct rv_run_row copy = *row;
    const struct rv_row_texts texts = {.texts = {&copy.id, &copy.tenant, &copy.user, &copy.session, &copy.pipeline,
                                                 &copy.bundle, &copy.parent, &copy.stage, &copy.owner},
                                       .n_texts = 9};

    copy.own = store_pack(&texts);
    if (!copy.own)
        return RV_E_NOMEM;
    *out = copy;
    return 0;
}

void rv_run_row_fini(struct rv_run_row *row)
{
    free(row->own);
    *row = (struct rv_run_row){0};
}

int store_run_row_of(struct sql_store *st, rv_sql_stmt *stmt, char hash[RV_HASH_MAX], struct rv_run_row *out,
                     rv_err **err)
{
    bool lacked = false;
    rv_str digest = sql_str_at(stmt, 5);
    const char *status = sql_text_at(stmt, 8, &lacked);
    struct rv_run_row row = {
        .id = sql_text_at(stmt, 0, &lacked),
        .tenant = sql_text_at(stmt, 1, &lacked),
        .user = sql_text_at(stmt, 2, &lacked),
        .session = sql_text_at(stmt, 3, &lacked),
        .pipeline = sql_text_at(stmt, 4, &lacked),
        .bundle = hash,
        .parent = sql_text_at(stmt, 6, &lacked),
        .parent_seq = sql_int_at(stmt, 7),
        .stage = sql_text_at(stmt, 9, &lacked),
        .created_us = sql_int_at(stmt, 10),
        .updated_us = sql_int_at(stmt, 11),
        .expires_us = sql_int_at(stmt, 12),
        .n_records = sql_int_at(stmt, 13),
        .owner = sql_text_at(stmt, 14, &lacked),
        .fence = sql_int_at(stmt, 15),
        .lease_until_us = sql_int_at(stmt, 16),
        .cancel_requested = (int)sql_int_at(stmt, 17) != 0,
        .n_pending = sql_int_at(stmt, 18),
    };
    int rc = 0;

    if (lacked)
        return RV_FAIL(err, RV_E_NOMEM, "read a run");
    if (!row.id || !row.tenant || !row.user || !row.session || !row.pipeline || !row.stage ||
        digest.len != RV_STORE_DIGEST)
        rc = RV_FAIL(err, RV_E_INVALID, "a text or the bundle is missing");
    if (rc == 0)
        rc = rv_run_status_of(rv_str_of(status), &row.status, err);
    if (rc < 0) {
        rc = RV_WRAP(err, rc == RV_E_NOMEM ? rc : RV_E_IO, "\"%s\": run \"%s\" is damaged", sql_path(st),
                     row.id ? row.id : "");
        rv_err_set_hint(err, "`reeve store check` lists what else is");
        return rc;
    }
    const int64_t numbers[] = {row.parent_seq, row.created_us, row.updated_us,     row.expires_us,
                               row.n_records,  row.fence,      row.lease_until_us, row.n_pending};
    rc = store_check_numbers(st, "run", row.id, numbers, RV_COUNT(numbers), err);
    if (rc < 0)
        return rc;
    store_blob_hex((const unsigned char *)digest.ptr, hash);
    *out = row;
    return 0;
}

static int get_run(struct sql_store *st, const struct rv_store_scope *scope, const char *id, struct rv_run_row *out,
                   rv_err **err)
{
    char hash[RV_HASH_MAX];
    struct rv_run_row row;
    rv_sql_stmt *stmt = sql_use(st, SQL_GET);
    int rc;

    store_sql_text(stmt, 1, id);
    store_sql_text(stmt, 2, scope->tenant);
    store_sql_text(stmt, 3, scope->user);
    rc = sql_step(stmt, "read a run", err);
    if (rc == 0)
        rc = store_fail_no_run(id, err);
    else if (rc == 1)
        rc = store_run_row_of(st, stmt, hash, &row, err);
    if (rc == 0 && copy_row(&row, out) < 0)
        rc = RV_FAIL(err, RV_E_NOMEM, "read run \"%s\"", id);
    sql_done(stmt);
    return rc;
}

int rv_store_get_run(rv_store *s, const struct rv_store_scope *scope, const char *id, struct rv_run_row *out,
                     rv_err **err)
{
    struct rv_store_scope sc;
    struct rv_run_row row = {0};
    int rc = store_enter_read(s, store_check_scoped(scope, "run id", id, &sc, err), "get run", err);

    if (rc != 0)
        return rc;
    rc = store_leave_read(s, get_run(s->sql, &sc, id, &row, err), err);
    if (rc == 0)
        *out = row;
    else
        rv_run_row_fini(&row);
    return rc;
}

static int check_filter(const struct rv_run_filter *filter, rv_err **err)
{
    int rc = 0;

    if (filter->limit < 0)
        return RV_FAIL(err, RV_E_INVALID, "a limit of %lld runs", (long long)filter->limit);
    if (filter->pipeline)
        rc = store_check_text("pipeline", filter->pipeline, RV_STORE_MAX_TEXT, err);
    if (rc == 0 && filter->session)
        rc = store_check_text("session", filter->session, RV_STORE_MAX_TEXT, err);
    if (rc == 0 && filter->id_prefix)
        rc = store_check_text("start of the id", filter->id_prefix, RV_STORE_MAX_ID, err);
    return rc;
}

/* Of runs of a session there are indexes of those under way and of those that wait, and of no others. */
static bool has_index_of_session(const struct rv_run_filter *f)
{
    const unsigned open = 1u << RV_RUN_READY | 1u << RV_RUN_RUNNING;

    return f->session && f->statuses && (!(f->statuses & ~open) || f->statuses == 1u << RV_RUN_INTERRUPTED);
}

/* Only the conditions that are asked for, so that an index can serve them. Values are bound, never written in. */
static void write_query(const struct rv_store_scope *scope, const struct rv_run_filter *f, const char *prefix_end,
                        rv_buf *sql)
{
    /* The beginning of an id finds few runs; an index by tenant or time would read all of a tenant. */
    rv_buf_puts(sql, f->id_prefix ? "SELECT " RV_SQL_RUN " WHERE r.tenant || '' = ?1"
                                  : "SELECT " RV_SQL_RUN " WHERE r.tenant = ?1");
    /* The same of a user: a session has few runs under way, a user may have had any number of them. */
    bool by_session = has_index_of_session(f), by_user = scope->user && f->session && !by_session;
    if (scope->user)
        rv_buf_puts(sql, by_session ? " AND r.\"user\" || '' = ?2" : " AND r.\"user\" = ?2");
    if (f->pipeline)
        rv_buf_puts(sql, " AND r.pipeline = ?3");
    if (f->session)
        rv_buf_puts(sql, " AND r.session = ?4");
    if (f->id_prefix)
        rv_buf_puts(sql, *prefix_end ? " AND r.id >= ?5 AND r.id < ?6" : " AND r.id >= ?5");
    if (f->lease_before_us > 0)
        rv_buf_puts(sql, " AND (r.owner IS NULL OR r.lease_until_us < ?7)");
    if (f->updated_before_us > 0)
        rv_buf_puts(sql, " AND r.updated_us < ?8");
    if (f->of_deleted_sessions)
        rv_buf_puts(sql, " AND EXISTS (SELECT 1 FROM sessions s WHERE s.id = r.session AND s.tenant_id = r.tenant"
                         " AND s.user_id = r.\"user\" AND s.deleted_us IS NOT NULL)");
    if (f->record_kind > 0) /* the journals are read in the order of runs, as far as the limit wants */
        rv_buf_puts(sql, " AND EXISTS (SELECT 1 FROM records e WHERE e.run = r.key AND e.kind = ?10)");
    if (f->statuses) {
        const char *comma = "";
        /* As runs_under_way has it, so that it can serve; a tenant has more runs of a status than a user has runs. */
        rv_buf_puts(sql, by_user ? " AND r.status || '' IN (" : " AND r.status IN (");
        for (unsigned i = 0; i < RV_N_RUN; i++)
            if (f->statuses & 1u << i) {
                rv_buf_printf(sql, "%s'%s'", comma, rv_run_status_text((enum rv_run_status)i));
                comma = ", ";
            }
        rv_buf_puts(sql, ")");
    }
    rv_buf_puts(sql, f->id_prefix ? " ORDER BY r.created_us + 0" : " ORDER BY r.created_us");
    rv_buf_puts(sql, f->oldest_first ? ", r.id" : " DESC, r.id DESC");
    rv_buf_puts(sql, " LIMIT ?9");
}

static void bind_query(rv_sql_stmt *stmt, const struct rv_store_scope *scope, const struct rv_run_filter *f,
                       const char *prefix_end)
{
    store_sql_text(stmt, 1, scope->tenant);
    if (scope->user)
        store_sql_text(stmt, 2, scope->user);
    if (f->pipeline)
        store_sql_text(stmt, 3, f->pipeline);
    if (f->session)
        store_sql_text(stmt, 4, f->session);
    if (f->id_prefix)
        store_sql_text(stmt, 5, f->id_prefix);
    if (*prefix_end)
        store_sql_text(stmt, 6, prefix_end);
    if (f->lease_before_us > 0)
        sql_int(stmt, 7, f->lease_before_us);
    if (f->updated_before_us > 0)
        sql_int(stmt, 8, f->updated_before_us);
    sql_int(stmt, 9, f->limit > 0 ? f->limit : INT64_MAX);
    if (f->record_kind > 0)
        sql_int(stmt, 10, f->record_kind);
}

static int list_runs(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_run_filter *filter,
                     rv_each_run *each, void *ctx, rv_err **err)
{
    char hash[RV_HASH_MAX], prefix_end[RV_STORE_MAX_ID + 2];
    rv_buf sql = RV_BUF_INIT(RV_SQL_MAX_TEXT);
    int rc;

    store_prefix_end(filter->id_prefix ? filter->id_prefix : "", prefix_end);
    write_query(scope, filter, prefix_end, &sql);
    rv_sql_stmt *stmt = sql_prepare(st, &sql);
    rv_buf_fini(&sql);
    bind_query(stmt, scope, filter, prefix_end);
    while ((rc = sql_step(stmt, "list runs", err)) == 1) {
        struct rv_run_row row;
        rc = store_run_row_of(st, stmt, hash, &row, err);
        if (rc == 0)
            rc = each(ctx, &row, err);
        if (rc != 0)
            break;
    }
    sql_finish(stmt);
    return rc;
}

int rv_store_list_runs(rv_store *s, const struct rv_store_scope *scope, const struct rv_run_filter *filter,
                       int (*each)(void *self, const struct rv_run_row *row, rv_err **err), void *self, rv_err **err)
{
    static const struct rv_run_filter all = {0};
    struct rv_store_scope sc;
    int rc = store_check_scope(scope, &sc, err);

    if (!filter)
        filter = &all;
    if (rc == 0)
        rc = check_filter(filter, err);
    rc = store_enter_read(s, rc, "list runs", err);
    return rc != 0 ? rc : store_leave_read(s, list_runs(s->sql, &sc, filter, each, self, err), err);
}

static int fail_gap(struct sql_store *st, const char *run, int64_t seq, rv_err **err)
{
    return store_damaged(st, err, "run \"%s\" is damaged: record %lld or its value is missing", run, (long long)seq);
}

static int read_texts(rv_sql_stmt *stmt, const char *tenant, const char *run, int value, struct rv_record *r,
                      rv_err **err)
{
    const struct rv_place at = vault_engine_place(tenant, "records", run, NULL, r->seq);
    int rc = store_secret_at(stmt, 2, &at, "body", &r->body, err);

    return rc < 0 ? rc : store_secret_at(stmt, value, &at, "value", &r->value, err);
}

static int read_records(struct sql_store *st, const struct found_run *found, const struct rv_record_range *range,
                        rv_each_record *each, void *ctx, rv_err **err)
{
    const char *run = range->run;
    bool is_cut = range->upto > 0 && range->upto < found->n_records;
    int64_t next = range->from < 1 ? 1 : range->from, last = is_cut ? range->upto : found->n_records;
    rv_sql_stmt *stmt = sql_use(st, SQL_READ);
    int rc;

    sql_int(stmt, 1, found->key);
    sql_int(stmt, 2, next);
    sql_int(stmt, 3, last);
    while ((rc = sql_step(stmt, "read records", err)) == 1) {
        bool is_large = !sql_is_null(stmt, 4);
        struct rv_record r = {
            .seq = sql_int_at(stmt, 0),
            .kind = (int)sql_int_at(stmt, 1),
        };
        if (r.seq != next || (is_large && sql_is_null(stmt, 5)))
            rc = fail_gap(st, run, next, err);
        else
            rc = read_texts(stmt, found->tenant, run, is_large ? 5 : 3, &r, err);
        if (rc == 0)
            rc = each(ctx, &r, err);
        if (rc != 0)
            break;
        next++;
    }
    sql_done(stmt);
    return rc == 0 && next <= last ? fail_gap(st, run, next, err) : rc;
}

int rv_store_read(rv_store *s, const struct rv_store_scope *scope, const struct rv_record_range *range,
                  int (*each)(void *self, const struct rv_record *r, rv_err **err), void *self, rv_err **err)
{
    struct rv_store_scope sc;
    struct found_run found;
    bool began = false;
    int rc = store_check_scoped(scope, "run id", range->run, &sc, err);

    if (rc == 0 && range->upto < 0)
        rc = RV_FAIL(err, RV_E_INVALID, "records of run \"%s\" up to %lld", range->run, (long long)range->upto);
    if ((rc = store_enter_read(s, rc, "read", err)) != 0)
        return rc;
    rc = sql_begin_read(s->sql, &began, err);
    if (rc == 0)
        rc = store_run_find(s->sql, &sc, range->run, &found, err);
    if (rc == 0)
        rc = read_records(s->sql, &found, range, each, self, err);
    sql_end_read(s->sql, began);
    return store_leave_read(s, rc, err);
}

static int pending_of(rv_sql_stmt *stmt, const char *tenant, struct rv_pending *out, rv_err **err)
{
    bool lacked = false;

    *out = (struct rv_pending){
        .run = sql_text_at(stmt, 0, &lacked),
        .id = sql_text_at(stmt, 1, &lacked),
        .kind = sql_text_at(stmt, 2, &lacked),
        .stage = sql_text_at(stmt, 3, &lacked),
        .user = sql_text_at(stmt, 4, &lacked),
        .created_us = sql_int_at(stmt, 7),
        .expires_us = sql_int_at(stmt, 8),
    };
    if (lacked)
        return RV_FAIL(err, RV_E_NOMEM, "list pending interrupts");
    if (!out->run || !out->id || !out->kind || !out->stage || !out->user)
        return RV_FAIL(err, RV_E_IO, "a pending interrupt is damaged");
    const struct rv_place at = vault_engine_place(tenant, "pending", out->run, out->id, 0);
    int rc = store_secret_at(stmt, 5, &at, "text", &out->text, err);
    return rc < 0 ? rc : store_secret_at(stmt, 6, &at, "body", &out->body, err);
}

/* run NULL: of all that the scope sees. */
static int list_pending(struct sql_store *st, const struct rv_store_scope *scope, const char *run,
                        rv_each_pending *each, void *ctx, rv_err **err)
{
    struct found_run found;
    int rc = run ? store_run_find(st, scope, run, &found, err) : 0;

    if (rc < 0)
        return rc;
    rv_sql_stmt *stmt = sql_use(st, run ? SQL_PENDING_OF : SQL_PENDING);
    if (run) {
        sql_int(stmt, 1, found.key);
    } else {
        store_sql_text(stmt, 1, scope->tenant);
        store_sql_text(stmt, 2, scope->user);
    }
    while ((rc = sql_step(stmt, "list pending interrupts", err)) == 1) {
        struct rv_pending p;
        rc = pending_of(stmt, scope->tenant, &p, err);
        if (rc == 0)
            rc = each(ctx, &p, err);
        if (rc != 0)
            break;
    }
    sql_done(stmt);
    return rc;
}

int rv_store_list_pending(rv_store *s, const struct rv_store_scope *scope, const char *run,
                          int (*each)(void *self, const struct rv_pending *p, rv_err **err), void *self, rv_err **err)
{
    struct rv_store_scope sc;
    bool began = false;
    int rc = store_check_scope(scope, &sc, err);

    if (rc == 0 && run)
        rc = store_check_id("run id", run, err);
    if ((rc = store_enter_read(s, rc, "list pending", err)) != 0)
        return rc;
    rc = sql_begin_read(s->sql, &began, err);
    if (rc == 0)
        rc = list_pending(s->sql, &sc, run, each, self, err);
    sql_end_read(s->sql, began);
    return store_leave_read(s, rc, err);
}
