/* Reading tasks, their events, their lanes and how many there are. What a callback gets is borrowed from the statement
 * it comes from. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/queue/queue_internal.h"

/* --- Rows --- */

int store_task_copy(const struct rv_task_row *row, struct rv_task_row *out, rv_err **err)
{
    struct rv_task_row copy = *row;
    const struct rv_row_texts texts = {
        .texts = {&copy.id, &copy.tenant, &copy.user, &copy.type, &copy.tier, &copy.key, &copy.error, &copy.worker},
        .n_texts = 8,
        .strs = {&copy.payload, &copy.result},
        .n_strs = 2};

    copy.own = store_pack(&texts);
    if (!copy.own)
        return RV_FAIL(err, RV_E_NOMEM, "read task \"%s\"", row->id);
    *out = copy;
    return 0;
}

void rv_task_row_fini(struct rv_task_row *row)
{
    free(row->own);
    *row = (struct rv_task_row){0};
}

static int check_row(struct sql_store *st, const struct rv_task_row *row, const struct read_task *task, rv_err **err)
{
    const int64_t numbers[] = {row->attempt,    row->retry_count,    row->max_retries, row->created_us,
                               row->updated_us, row->scheduled_us,   row->started_us,  row->completed_us,
                               row->claimed_us, row->lease_until_us, row->class_id,    task->n_events};

    if (!row->id || !row->tenant || !row->user || !row->type || !row->tier || !row->payload.ptr)
        return store_damaged(st, err, "task \"%s\" is damaged: a text is missing", row->id ? row->id : "");
    return store_check_numbers(st, "task", row->id, numbers, RV_COUNT(numbers), err);
}

/* The texts that may be encrypted. */
static int read_texts(rv_sql_stmt *stmt, struct rv_task_row *row, rv_err **err)
{
    const struct rv_place at = store_task_place(row->tenant, row->id);
    int rc = store_secret_at(stmt, 6, &at, "payload", &row->payload, err);

    if (rc == 0)
        rc = store_secret_at(stmt, 7, &at, "result", &row->result, err);
    return rc < 0 ? rc : store_secret_text_at(stmt, 8, &at, "error", &row->error, err);
}

int store_task_read(struct sql_store *st, rv_sql_stmt *stmt, struct read_task *out, rv_err **err)
{
    bool lacked = false;
    rv_str status = sql_str_at(stmt, 9);
    struct read_task task = {
        .row = {.id = sql_text_at(stmt, 0, &lacked),
                .tenant = sql_text_at(stmt, 1, &lacked),
                .user = sql_text_at(stmt, 2, &lacked),
                .type = sql_text_at(stmt, 3, &lacked),
                .tier = sql_text_at(stmt, 4, &lacked),
                .key = sql_text_at(stmt, 5, &lacked),
                .payload = sql_str_at(stmt, 6),
                .error = sql_text_at(stmt, 8, &lacked),
                .worker = sql_text_at(stmt, 10, &lacked),
                .cancel_requested = sql_int_at(stmt, 11) != 0,
                .class_id = sql_int_at(stmt, 12),
                .priority = sql_int_at(stmt, 13),
                .attempt = sql_int_at(stmt, 14),
                .retry_count = sql_int_at(stmt, 15),
                .max_retries = sql_int_at(stmt, 16),
                .created_us = sql_int_at(stmt, 17),
                .updated_us = sql_int_at(stmt, 18),
                .scheduled_us = sql_int_at(stmt, 19),
                .started_us = sql_int_at(stmt, 20),
                .completed_us = sql_int_at(stmt, 21),
                .claimed_us = sql_int_at(stmt, 22),
                .lease_until_us = sql_int_at(stmt, 23)},
        .key = sql_int_at(stmt, 24),
        .n_events = sql_int_at(stmt, 25),
    };

    if (lacked)
        return RV_FAIL(err, RV_E_NOMEM, "read a task");
    int rc = check_row(st, &task.row, &task, err);
    if (rc < 0)
        return rc;
    if (rv_task_status_of(status, &task.row.status, NULL) < 0)
        return store_damaged(st, err, "task \"%s\" is damaged: \"%.*s\" is not a status", task.row.id,
                             RV_STR_ARG(rv_utf8_cut(status, 40)));
    rc = read_texts(stmt, &task.row, err);
    if (rc == 0)
        *out = task;
    return rc;
}

/* 1: found; lasts until sql_done() of *stmt, which is the caller's in any case. */
static int see(struct sql_store *st, const struct rv_store_scope *scope, const char *id, rv_sql_stmt **stmt,
               struct read_task *out, rv_err **err)
{
    int rc;

    *stmt = sql_use(st, SQL_GET_TASK);
    store_sql_text(*stmt, 1, id);
    store_sql_text(*stmt, 2, scope->tenant);
    store_sql_text(*stmt, 3, scope->user);
    rc = sql_step(*stmt, "read a task", err);
    if (rc == 0)
        return store_task_fail_none(id, err);
    return rc < 0 ? rc : store_task_read(st, *stmt, out, err);
}

int rv_store_get_task(rv_store *s, const struct rv_store_scope *scope, const char *id, struct rv_task_row *out,
                      rv_err **err)
{
    struct rv_store_scope sc;
    struct rv_task_row row = {0};
    struct read_task task;
    rv_sql_stmt *stmt = NULL;
    int rc = store_enter_read(s, store_check_scoped(scope, "task's id", id, &sc, err), "get task", err);

    if (rc != 0)
        return rc;
    rc = see(s->sql, &sc, id, &stmt, &task, err);
    if (rc == 0)
        rc = store_task_copy(&task.row, &row, err);
    sql_done(stmt);
    rc = store_leave_read(s, rc, err);
    if (rc == 0)
        *out = row;
    else
        rv_task_row_fini(&row);
    return rc;
}

/* --- Lists --- */

static int check_filter(const struct rv_task_filter *filter, rv_err **err)
{
    int rc = 0;

    if (filter->limit < 0)
        return RV_FAIL(err, RV_E_INVALID, "a limit of %lld tasks", (long long)filter->limit);
    if (filter->type)
        rc = store_check_id("task's type", filter->type, err);
    if (rc == 0 && filter->key)
        rc = store_check_id("idempotency key", filter->key, err);
    if (rc == 0 && filter->worker)
        rc = store_check_id("worker", filter->worker, err);
    if (rc == 0 && filter->id_prefix)
        rc = store_check_text("start of the id", filter->id_prefix, RV_STORE_MAX_ID, err);
    return rc;
}

/* Only the conditions that are asked for, so that an index can serve them. Values are bound, never written in. */
static void write_query(const struct rv_store_scope *scope, const struct rv_task_filter *f, const char *prefix_end,
                        rv_buf *sql)
{
    rv_buf_puts(sql, RV_SQL_TASK " WHERE t.tenant = ?1");
    if (scope->user)
        rv_buf_puts(sql, " AND t.\"user\" = ?2");
    if (f->type)
        rv_buf_puts(sql, " AND t.type = ?3");
    if (f->key)
        rv_buf_puts(sql, " AND t.idempotency = ?4");
    if (f->worker)
        rv_buf_puts(sql, " AND t.worker = ?5 AND t.status = 'processing'"); /* as tasks_by_worker has it */
    if (f->id_prefix)
        rv_buf_puts(sql, *prefix_end ? " AND t.id >= ?6 AND t.id < ?7" : " AND t.id >= ?6");
    if (f->statuses) {
        const char *comma = "";
        rv_buf_puts(sql, " AND t.status IN ("); /* as tasks_failed has it */
        for (unsigned i = 0; i < RV_N_TASK; i++)
            if (f->statuses & 1u << i) {
                rv_buf_printf(sql, "%s'%s'", comma, rv_task_status_text((enum rv_task_status)i));
                comma = ", ";
            }
        rv_buf_puts(sql, ")");
    }
    rv_buf_puts(sql, f->oldest_first ? " ORDER BY t.created_us, t.key" : " ORDER BY t.created_us DESC, t.key DESC");
    rv_buf_puts(sql, " LIMIT ?8");
}

static void bind_query(rv_sql_stmt *stmt, const struct rv_store_scope *scope, const struct rv_task_filter *f,
                       const char *prefix_end)
{
    store_sql_text(stmt, 1, scope->tenant);
    if (scope->user)
        store_sql_text(stmt, 2, scope->user);
    if (f->type)
        store_sql_text(stmt, 3, f->type);
    if (f->key)
        store_sql_text(stmt, 4, f->key);
    if (f->worker)
        store_sql_text(stmt, 5, f->worker);
    if (f->id_prefix)
        store_sql_text(stmt, 6, f->id_prefix);
    if (*prefix_end)
        store_sql_text(stmt, 7, prefix_end);
    sql_int(stmt, 8, f->limit > 0 ? f->limit : INT64_MAX);
}

static int list_tasks(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_task_filter *filter,
                      rv_each_task *each, void *ctx, rv_err **err)
{
    char prefix_end[RV_STORE_MAX_ID + 2];
    rv_buf sql = RV_BUF_INIT(RV_SQL_MAX_TEXT);
    rv_sql_stmt *stmt;
    int rc;

    store_prefix_end(filter->id_prefix ? filter->id_prefix : "", prefix_end);
    write_query(scope, filter, prefix_end, &sql);
    stmt = sql_prepare(st, &sql);
    rv_buf_fini(&sql);
    bind_query(stmt, scope, filter, prefix_end);
    while ((rc = sql_step(stmt, "list tasks", err)) == 1) {
        struct read_task task;
        rc = store_task_read(st, stmt, &task, err);
        if (rc == 0)
            rc = each(ctx, &task.row, err);
        if (rc != 0)
            break;
    }
    sql_finish(stmt);
    return rc;
}

int rv_store_list_tasks(rv_store *s, const struct rv_store_scope *scope, const struct rv_task_filter *filter,
                        int (*each)(void *self, const struct rv_task_row *row, rv_err **err), void *self, rv_err **err)
{
    static const struct rv_task_filter all = {0};
    struct rv_store_scope sc;
    int rc = store_check_scope(scope, &sc, err);

    if (!filter)
        filter = &all;
    if (rc == 0)
        rc = check_filter(filter, err);
    rc = store_enter_read(s, rc, "list tasks", err);
    return rc != 0 ? rc : store_leave_read(s, list_tasks(s->sql, &sc, filter, each, self, err), err);
}

/* --- Events --- */

static int event_of(struct sql_store *st, rv_sql_stmt *stmt, const char *tenant, const char *id,
                    struct rv_task_event *out, rv_err **err)
{
    bool lacked = false;
    struct rv_task_event e = {
        .seq = sql_int_at(stmt, 0),
        .at_us = sql_int_at(stmt, 1),
        .kind = sql_text_at(stmt, 2, &lacked),
        .attempt = sql_int_at(stmt, 3),
        .worker = sql_text_at(stmt, 4, &lacked),
        .text = sql_text_at(stmt, 5, &lacked),
        .retry = sql_int_at(stmt, 6),
        .next_us = sql_int_at(stmt, 7),
    };

    if (lacked)
        return RV_FAIL(err, RV_E_NOMEM, "list events of task \"%s\"", id);
    if (!e.kind)
        return store_damaged(st, err, "event %lld of task \"%s\" is damaged", (long long)e.seq, id);
    const struct rv_place at = vault_engine_place(tenant, "task_events", id, NULL, e.seq);
    int rc = store_secret_text_at(stmt, 5, &at, "text", &e.text, err);
    if (rc == 0)
        *out = e;
    return rc;
}

static int list_events(struct sql_store *st, const struct rv_store_scope *scope, const char *id,
                       rv_each_task_event *each, void *ctx, rv_err **err)
{
    rv_sql_stmt *stmt = NULL;
    struct read_task task;
    int64_t max_retries;
    int rc = see(st, scope, id, &stmt, &task, err);

    max_retries = rc == 0 ? task.row.max_retries : 0;
    sql_done(stmt);
    if (rc < 0)
        return rc;
    stmt = sql_use(st, SQL_EVENTS);
    sql_int(stmt, 1, task.key);
    while ((rc = sql_step(stmt, "list events of a task", err)) == 1) {
        struct rv_task_event e;
        rc = event_of(st, stmt, scope->tenant, id, &e, err);
        e.max_retries = rc == 0 && e.retry > 0 ? max_retries : 0;
        if (rc == 0)
            rc = each(ctx, &e, err);
        if (rc != 0)
            break;
    }
    sql_done(stmt);
    return rc;
}

int rv_store_list_task_events(rv_store *s, const struct rv_store_scope *scope, const char *id,
                              int (*each)(void *self, const struct rv_task_event *e, rv_err **err), void *self,
                              rv_err **err)
{
    struct rv_store_scope sc;
    bool began = false;
    int rc = store_check_scoped(scope, "task's id", id, &sc, err);

    if ((rc = store_enter_read(s, rc, "list task events", err)) != 0)
        return rc;
    rc = sql_begin_read(s->sql, &began, err);
    if (rc == 0)
        rc = list_events(s->sql, &sc, id, each, self, err);
    sql_end_read(s->sql, began);
    return store_leave_read(s, rc, err);
}

/* --- Lanes --- */

static int list_lanes(struct sql_store *st, const char *tenant, rv_each_lane *each, void *ctx, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_LANES);
    bool lacked = false;
    int rc;

    store_sql_text(stmt, 1, tenant);
    while ((rc = sql_step(stmt, "list lanes", err)) == 1) {
        int64_t cap = sql_int_at(stmt, 6);
        struct rv_task_lane lane = {
            .class_id = sql_int_at(stmt, 0),
            .tier = sql_text_at(stmt, 1, &lacked),
            .tenant = sql_text_at(stmt, 2, &lacked),
            .n_pending = sql_int_at(stmt, 3),
            .n_processing = sql_int_at(stmt, 4),
            .share = {.weight = sql_int_at(stmt, 5), .cap = cap == RV_STORE_MAX_NUMBER ? 0 : cap},
        };
        rc = lacked ? RV_FAIL(err, RV_E_NOMEM, "list lanes") : each(ctx, &lane, err);
        if (rc != 0)
            break;
    }
    sql_done(stmt);
    return rc;
}

int rv_store_list_lanes(rv_store *s, const char *tenant,
                        int (*each)(void *self, const struct rv_task_lane *lane, rv_err **err), void *self,
                        rv_err **err)
{
    int rc = tenant ? store_check_id("tenant", tenant, err) : 0;

    rc = store_enter_read(s, rc, "list lanes", err);
    if (rc != 0)
        return rc;
    return store_leave_read(s, list_lanes(s->sql, tenant ? tenant : RV_STORE_TENANT, each, self, err), err);
}
