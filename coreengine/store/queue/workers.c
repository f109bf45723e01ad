/* Workers of the queue, their duties, and runs that no process drives. */
#include "coreengine/store/store_internal.h"
#include "coreengine/store/tasks.h"

#define MAX_DUTY 64 /* bytes of the name of a duty: ours */

/* --- workers --- */

static int check_worker(const struct rv_worker_row *row, rv_err **err)
{
    int rc = store_check_id("worker", row->name, err);

    if (rc == 0)
        rc = store_check_text("host", row->host, RV_STORE_MAX_TEXT, err);
    if (rc == 0)
        rc = store_check_bytes("offers of a worker", row->offers, RV_STORE_MAX_OFFERS, err);
    return rc;
}

static int write_worker(struct sql_store *st, const struct rv_worker_row *row, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_PUT_WORKER);

    store_sql_text(stmt, 1, row->name);
    store_sql_text(stmt, 2, row->host);
    sql_int(stmt, 3, row->pid);
    sql_str(stmt, 4, row->offers);
    sql_int(stmt, 5, row->n_max);
    sql_int(stmt, 6, row->n_runs);
    sql_int(stmt, 7, row->is_draining);
    sql_int(stmt, 8, row->started_us);
    sql_int(stmt, 9, row->seen_us);
    return sql_run(stmt, "write a worker", err);
}

int rv_store_put_worker(rv_store *s, const struct rv_worker_row *row, rv_err **err)
{
    int rc = store_enter_write(s, check_worker(row, err), "put worker", err);

    if (rc != 0)
        return rc;
    do
        rc = write_worker(s->sql, row, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

static int list_workers(struct sql_store *st, int64_t since_us,
                        int (*each)(void *self, const struct rv_worker_row *row, rv_err **err), void *self,
                        rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_WORKERS);
    bool lacked = false;
    int rc;

    sql_int(stmt, 1, since_us);
    while ((rc = sql_step(stmt, "list workers", err)) == 1) {
        const struct rv_worker_row row = {.name = sql_text_at(stmt, 0, &lacked),
                                          .host = sql_text_at(stmt, 1, &lacked),
                                          .pid = sql_int_at(stmt, 2),
                                          .offers = sql_str_at(stmt, 3),
                                          .n_max = sql_int_at(stmt, 4),
                                          .n_runs = sql_int_at(stmt, 5),
                                          .is_draining = sql_int_at(stmt, 6) != 0,
                                          .started_us = sql_int_at(stmt, 7),
                                          .seen_us = sql_int_at(stmt, 8)};
        rc = lacked                 ? RV_FAIL(err, RV_E_NOMEM, "list workers")
             : row.name && row.host ? each(self, &row, err)
                                    : store_damaged(st, err, "the row of a worker is damaged");
        if (rc != 0)
            break;
    }
    sql_done(stmt);
    return rc;
}

int rv_store_list_workers(rv_store *s, int64_t since_us,
                          int (*each)(void *self, const struct rv_worker_row *row, rv_err **err), void *self,
                          rv_err **err)
{
    int rc = store_enter_read(s, 0, "list workers", err);

    return rc != 0 ? rc : store_leave_read(s, list_workers(s->sql, since_us, each, self, err), err);
}

static int drop_worker(struct sql_store *st, const char *name, int64_t before_us, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_DROP_WORKERS);

    store_sql_text(stmt, 1, name);
    sql_int(stmt, 2, before_us);
    int rc = sql_run(stmt, "forget a worker", err);
    if (rc < 0)
        return rc;
    stmt = sql_use(st, SQL_DROP_DUTIES);
    store_sql_text(stmt, 1, name);
    return sql_run(stmt, "give up the duties of a worker", err);
}

int rv_store_delete_worker(rv_store *s, const char *name, int64_t before_us, rv_err **err)
{
    int rc = store_enter_write(s, store_check_id("worker", name, err), "drop worker", err);

    if (rc != 0)
        return rc;
    do
        rc = drop_worker(s->sql, name, before_us, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

int rv_store_claim_duty(rv_store *s, const struct rv_duty_claim *claim, bool *is_mine, rv_err **err)
{
    int64_t n = 0;
    int rc = store_check_text("duty", claim->duty, MAX_DUTY, err);

    if (rc == 0)
        rc = store_check_id("worker", claim->worker, err);
    rc = store_enter_write(s, rc, "take duty", err);
    if (rc != 0)
        return rc;
    do {
        rv_sql_stmt *stmt = sql_use(s->sql, SQL_TAKE_DUTY);
        store_sql_text(stmt, 1, claim->duty);
        store_sql_text(stmt, 2, claim->worker);
        sql_int(stmt, 3, claim->until_us);
        sql_int(stmt, 4, claim->now_us);
        rc = sql_run_counted(stmt, &n, "take a duty", err);
    } while (store_repeats(s, &rc, err));
    rc = store_leave_write(s, rc, err);
    if (rc == 0)
        *is_mine = n > 0;
    return rc;
}

/* --- runs that no process drives --- */

static int list_owners(struct sql_store *st, rv_each_id *each, void *self, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_OWNERS);
    bool lacked = false;
    int rc;

    while ((rc = sql_step(stmt, "list owners", err)) == 1) {
        const char *owner = sql_text_at(stmt, 0, &lacked);
        rc = lacked ? RV_FAIL(err, RV_E_NOMEM, "list owners") : each(self, owner ? owner : "", err);
        if (rc != 0)
            break;
    }
    sql_done(stmt);
    return rc;
}

int rv_store_list_owners(rv_store *s, int (*each)(void *self, const char *owner, rv_err **err), void *self,
                         rv_err **err)
{
    int rc = store_enter_read(s, 0, "list owners", err);

    return rc != 0 ? rc : store_leave_read(s, list_owners(s->sql, each, self, err), err);
}

/* Takes the statement. */
static int list_rows(struct sql_store *st, rv_sql_stmt *stmt, rv_each_run *each, void *self, rv_err **err)
{
    char hash[RV_HASH_MAX];
    int rc;

    while ((rc = sql_step(stmt, "list runs", err)) == 1) {
        struct rv_run_row row;
        rc = store_run_row_of(st, stmt, hash, &row, err);
        if (rc == 0)
            rc = each(self, &row, err);
        if (rc != 0)
            break;
    }
    sql_done(stmt);
    return rc;
}

static int list_filtered(rv_store *s, enum sql_id id, const struct rv_left_filter *f, rv_each_run *each, void *self,
                         rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(s->sql, id);
    const int64_t before_all_us = id == SQL_EXPIRED ? INT64_MAX : INT64_MIN;

    sql_int(stmt, 1, f->limit > 0 ? f->limit : INT64_MAX);
    if (id == SQL_LEFT_BY)
        store_sql_text(stmt, 2, f->owner);
    else
        sql_int(stmt, 2, f->now_us);
    store_sql_text(stmt, 3, f->but_prefix ? f->but_prefix : "");
    sql_int(stmt, 4, f->after_id ? f->after_us : before_all_us);
    store_sql_text(stmt, 5, f->after_id ? f->after_id : "");
    return list_rows(s->sql, stmt, each, self, err);
}

int rv_store_list_left(rv_store *s, const struct rv_left_filter *filter,
                       int (*each)(void *self, const struct rv_run_row *row, rv_err **err), void *self, rv_err **err)
{
    int rc = filter->owner ? store_check_id("owner", filter->owner, err) : 0;

    rc = store_enter_read(s, rc, "list left", err);
    if (rc != 0)
        return rc;
    rc = list_filtered(s, filter->owner ? SQL_LEFT_BY : SQL_LEFT, filter, each, self, err);
    return store_leave_read(s, rc, err);
}

int rv_store_list_expired(rv_store *s, const struct rv_left_filter *filter,
                          int (*each)(void *self, const struct rv_run_row *row, rv_err **err), void *self, rv_err **err)
{
    int rc = store_enter_read(s, 0, "list expired", err);

    return rc != 0 ? rc : store_leave_read(s, list_filtered(s, SQL_EXPIRED, filter, each, self, err), err);
}
