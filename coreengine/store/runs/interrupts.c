/* Questions of runs, open and over. Steps of runs write them (runs.c); people and workers read, mark and prune them. */
#include "coreengine/store/runs.h"

#include <string.h>

#include "coreengine/store/encryption/vault_internal.h"
#include "coreengine/store/store_internal.h"

#define MAX_SHOWN ((size_t)16 << 10) /* bytes of a question that are kept here; the pending row has the whole text */

/* --- what a step of a run changes --- */

static int add(struct sql_store *st, const struct found_run *run, const char *id, const struct rv_pending *p,
               rv_err **err)
{
    const struct rv_place at = vault_engine_place(run->tenant, "interrupts", id, p->id, 0);
    rv_sql_stmt *stmt = sql_use(st, SQL_ADD_INTERRUPT);
    rv_str text = {p->text.ptr ? p->text.ptr : "", p->text.len};

    sql_int(stmt, 1, run->key);
    store_sql_text(stmt, 2, p->id);
    store_sql_text(stmt, 3, p->kind);
    store_sql_text(stmt, 4, p->stage);
    store_secret_bind(stmt, 5, SQL_STR, &at, "text", rv_utf8_cut(text, MAX_SHOWN));
    sql_int(stmt, 6, p->created_us);
    sql_int(stmt, 7, p->expires_us);
    store_sql_text(stmt, 8, run->tenant);
    return sql_run(stmt, "write an interrupt", err);
}

/* The answer of a run that waits with one question need not name it. */
static int settle(struct sql_store *st, const struct found_run *run, const struct rv_store_append *a, rv_err **err)
{
    bool is_named = a->settled.id != NULL;
    int n = 1;

    if (!a->settled.is_set || (!is_named && run->n_open != 1))
        return 0;
    rv_sql_stmt *stmt = sql_use(st, is_named ? SQL_SETTLE_INTERRUPT : SQL_SETTLE_ONLY);
    sql_int(stmt, n++, run->key);
    if (is_named)
        store_sql_text(stmt, n++, a->settled.id);
    store_sql_text(stmt, n++, rv_interrupt_status_text(a->settled.status));
    sql_int(stmt, n++, a->now_us);
    const struct rv_place at = vault_engine_place(run->tenant, "interrupts", a->run, NULL, 0);
    store_secret_bind(stmt, n, SQL_STR, &at, "reason", a->settled.reason);
    return sql_run(stmt, "settle an interrupt", err);
}

/* Questions that the run no longer has are marked as withdrawn. */
static int close_rest(struct sql_store *st, const struct found_run *run, const struct rv_store_append *a, rv_err **err)
{
    bool stands = a->status != RV_RUN_RUNNING && a->status != RV_RUN_READY;

    if (!stands && a->n_pending == 0)
        return 0;
    rv_sql_stmt *stmt = sql_use(st, SQL_CLOSE_INTERRUPTS);
    sql_int(stmt, 1, run->key);
    sql_int(stmt, 2, a->now_us);
    return sql_run(stmt, "close interrupts", err);
}

int store_interrupts_keep(struct sql_store *st, const struct found_run *run, const struct rv_store_append *a,
                          rv_err **err)
{
    int rc = run->n_open > 0 ? settle(st, run, a, err) : 0;

    for (size_t i = 0; i < a->n_pending && rc == 0; i++)
        rc = add(st, run, a->run, &a->pending[i], err);
    return rc == 0 && run->n_open > 0 ? close_rest(st, run, a, err) : rc;
}

/* --- lists --- */

static int check_filter(const struct rv_interrupt_filter *f, rv_err **err)
{
    int rc = f->run ? store_check_id("run id", f->run, err) : 0;

    if (rc == 0 && f->session)
        rc = store_check_id("session", f->session, err);
    if (rc == 0 && f->kind)
        rc = store_check_text("kind", f->kind, RV_STORE_MAX_TEXT, err);
    if (rc == 0 && f->statuses >> RV_N_INTERRUPT_STATUS)
        rc = RV_FAIL(err, RV_E_INVALID, "interrupts have no such status");
    return rc == 0 && f->limit < 0 ? RV_FAIL(err, RV_E_INVALID, "a limit of %lld", (long long)f->limit) : rc;
}

/* "?1" is the tenant, and so on, as bind_filter() binds them. */
static void write_filter(const struct rv_store_scope *scope, const struct rv_interrupt_filter *f, rv_buf *sql)
{
    const char *comma = "";

    rv_buf_puts(sql, " WHERE i.tenant = ?1");
    if (scope->user)
        rv_buf_puts(sql, " AND i.\"user\" = ?2");
    if (f->run)
        rv_buf_puts(sql, " AND i.run = (SELECT key FROM runs WHERE id = ?3)");
    if (f->session)
        rv_buf_puts(sql, " AND i.session = ?4");
    if (f->kind)
        rv_buf_puts(sql, " AND i.kind = ?5");
    if (f->open_only)
        rv_buf_puts(sql, " AND i.ended_us = 0");
    if (!f->statuses)
        return;
    rv_buf_puts(sql, " AND i.status IN (");
    for (unsigned i = 0; i < RV_N_INTERRUPT_STATUS; i++)
        if (f->statuses & 1u << i) {
            rv_buf_printf(sql, "%s'%s'", comma, rv_interrupt_status_text((enum rv_interrupt_status)i));
            comma = ", ";
        }
    rv_buf_puts(sql, ")");
}

static void bind_filter(rv_sql_stmt *stmt, const struct rv_store_scope *scope, const struct rv_interrupt_filter *f)
{
    store_sql_text(stmt, 1, scope->tenant);
    if (scope->user)
        store_sql_text(stmt, 2, scope->user);
    if (f->run)
        store_sql_text(stmt, 3, f->run);
    if (f->session)
        store_sql_text(stmt, 4, f->session);
    if (f->kind)
        store_sql_text(stmt, 5, f->kind);
}

static int row_of(struct sql_store *st, rv_sql_stmt *stmt, struct rv_interrupt_row *out, rv_err **err)
{
    bool lacked = false;

    *out = (struct rv_interrupt_row){
        .run = sql_text_at(stmt, 0, &lacked),
        .id = sql_text_at(stmt, 1, &lacked),
        .tenant = sql_text_at(stmt, 2, &lacked),
        .user = sql_text_at(stmt, 3, &lacked),
        .session = sql_text_at(stmt, 4, &lacked),
        .kind = sql_text_at(stmt, 5, &lacked),
        .stage = sql_text_at(stmt, 6, &lacked),
        .created_us = sql_int_at(stmt, 10),
        .expires_us = sql_int_at(stmt, 11),
        .ended_us = sql_int_at(stmt, 12),
    };
    if (lacked)
        return RV_FAIL(err, RV_E_NOMEM, "list interrupts");
    if (!out->run || !out->id || !out->tenant || !out->user || !out->session || !out->kind || !out->stage ||
        rv_interrupt_status_of(sql_str_at(stmt, 9), &out->status, NULL) < 0)
        return store_damaged(st, err, "an interrupt of run \"%s\" is damaged", out->run ? out->run : "");
    struct rv_place at = vault_engine_place(out->tenant, "interrupts", out->run, out->id, 0);
    int rc = store_secret_at(stmt, 7, &at, "text", &out->text, err);
    at.ids[1] = NULL; /* an answer need not name its question */
    return rc < 0 ? rc : store_secret_at(stmt, 8, &at, "reason", &out->reason, err);
}

static int list(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_interrupt_filter *f,
                rv_each_interrupt *each, void *self, rv_err **err)
{
    rv_buf sql = RV_BUF_INIT(RV_SQL_MAX_TEXT);
    int rc;

    rv_buf_puts(&sql, RV_SQL_INTERRUPT);
    write_filter(scope, f, &sql);
    rv_buf_puts(&sql, " ORDER BY i.created_us, r.id, i.id LIMIT ?6");
    rv_sql_stmt *stmt = sql_prepare(st, &sql);
    rv_buf_fini(&sql);
    bind_filter(stmt, scope, f);
    sql_int(stmt, 6, f->limit > 0 ? f->limit : INT64_MAX);
    while ((rc = sql_step(stmt, "list interrupts", err)) == 1) {
        struct rv_interrupt_row row;
        rc = row_of(st, stmt, &row, err);
        if (rc == 0)
            rc = each(self, &row, err);
        if (rc != 0)
            break;
    }
    sql_finish(stmt);
    return rc;
}

static const struct rv_interrupt_filter all = {.limit = 0};

int rv_store_list_interrupts(rv_store *s, const struct rv_store_scope *scope, const struct rv_interrupt_filter *filter,
                             int (*each)(void *self, const struct rv_interrupt_row *row, rv_err **err), void *self,
                             rv_err **err)
{
    struct rv_store_scope sc;
    int rc = store_check_scope(scope, &sc, err);

    if (!filter)
        filter = &all;
    if (rc == 0)
        rc = check_filter(filter, err);
    rc = store_enter_read(s, rc, "list interrupts", err);
    return rc != 0 ? rc : store_leave_read(s, list(s->sql, &sc, filter, each, self, err), err);
}

static int count(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_interrupt_filter *f,
                 rv_each_interrupt_count *each, void *self, rv_err **err)
{
    rv_buf sql = RV_BUF_INIT(RV_SQL_MAX_TEXT);
    bool lacked = false;
    int rc;

    rv_buf_puts(&sql, "SELECT i.kind, i.status, count(*), count(CASE WHEN i.ended_us = 0 THEN 1 END),"
                      " min(i.created_us), CAST(sum(CASE WHEN i.ended_us > i.created_us THEN i.ended_us - i.created_us"
                      " ELSE 0 END) AS BIGINT) FROM interrupts i");
    write_filter(scope, f, &sql);
    rv_buf_puts(&sql, " GROUP BY i.kind, i.status ORDER BY i.kind, i.status");
    rv_sql_stmt *stmt = sql_prepare(st, &sql);
    rv_buf_fini(&sql);
    bind_filter(stmt, scope, f);
    while ((rc = sql_step(stmt, "count interrupts", err)) == 1) {
        struct rv_interrupt_count c = {.kind = sql_text_at(stmt, 0, &lacked),
                                       .n = sql_int_at(stmt, 2),
                                       .n_open = sql_int_at(stmt, 3),
                                       .oldest_us = sql_int_at(stmt, 4),
                                       .answer_sum_us = sql_int_at(stmt, 5)};
        if (lacked)
            rc = RV_FAIL(err, RV_E_NOMEM, "count interrupts");
        else if (!c.kind || rv_interrupt_status_of(sql_str_at(stmt, 1), &c.status, NULL) < 0)
            rc = store_damaged(st, err, "an interrupt is damaged: it has no kind or status");
        else
            rc = each(self, &c, err);
        if (rc != 0)
            break;
    }
    sql_finish(stmt);
    return rc;
}

int rv_store_count_interrupts(rv_store *s, const struct rv_store_scope *scope, const struct rv_interrupt_filter *filter,
                              int (*each)(void *self, const struct rv_interrupt_count *count, rv_err **err), void *self,
                              rv_err **err)
{
    struct rv_store_scope sc;
    int rc = store_check_scope(scope, &sc, err);

    if (!filter)
        filter = &all;
    if (rc == 0)
        rc = check_filter(filter, err);
    rc = store_enter_read(s, rc, "count interrupts", err);
    return rc != 0 ? rc : store_leave_read(s, count(s->sql, &sc, filter, each, self, err), err);
}

/* --- the sweep, and the end --- */

/* Which interrupts are changed. */
struct old_interrupts {
    const char *tenant; /* NULL: of all; borrowed */
    int64_t at_us;      /* the time, or the end of what is pruned */
    int64_t max;        /* at most so many; 0: all */
};
/* max 0: the statement takes none. */
static int change(rv_store *s, enum sql_id id, const struct old_interrupts *old, int64_t *n, rv_err **err)
{
    int64_t changed = 0;
    int rc = old->tenant ? store_check_id("tenant", old->tenant, err) : 0;

    if (rc == 0)
        rc = store_check_time("the time", old->at_us, err);
    rc = store_enter_write(s, rc, "change interrupts", err);
    if (rc != 0)
        return rc;
    do {
        rv_sql_stmt *stmt = sql_use(s->sql, id);
        sql_int(stmt, 1, old->at_us);
        store_sql_text(stmt, 2, old->tenant);
        if (old->max > 0)
            sql_int(stmt, 3, old->max);
        rc = sql_run_counted(stmt, &changed, "change interrupts", err);
    } while (store_repeats(s, &rc, err));
    rc = store_leave_write(s, rc, err);
    if (rc == 0)
        *n = changed;
    return rc;
}

int rv_store_expire_interrupts(rv_store *s, const char *tenant, int64_t now_us, int64_t *n, rv_err **err)
{
    return change(s, SQL_EXPIRE_INTERRUPTS, &(const struct old_interrupts){.tenant = tenant, .at_us = now_us, .max = 0},
                  n, err);
}

int rv_store_prune_interrupts(rv_store *s, const char *tenant, int64_t before_us, int64_t max, int64_t *n, rv_err **err)
{
    if (max <= 0)
        return RV_FAIL(err, RV_E_INVALID, "delete %lld interrupts", (long long)max);
    return change(s, SQL_PRUNE_INTERRUPTS,
                  &(const struct old_interrupts){.tenant = tenant, .at_us = before_us, .max = max}, n, err);
}
