/* Reading schedules and their firings. What a callback gets is borrowed from the statement it comes from. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/encryption/vault_internal.h"
#include "coreengine/store/queue/queue_internal.h"

/* --- Rows --- */

static int copy_row(const struct rv_schedule_row *row, struct rv_schedule_row *out, rv_err **err)
{
    struct rv_schedule_row copy = *row;
    const struct rv_row_texts texts = {.texts = {&copy.id, &copy.tenant, &copy.user, &copy.name, &copy.expr, &copy.zone,
                                                 &copy.type, &copy.tier, &copy.bundle, &copy.pipeline, &copy.error},
                                       .n_texts = 11,
                                       .strs = {&copy.needs, &copy.payload},
                                       .n_strs = 2};

    copy.own = store_pack(&texts);
    if (!copy.own)
        return RV_FAIL(err, RV_E_NOMEM, "read schedule \"%s\"", row->id);
    *out = copy;
    return 0;
}

void rv_schedule_row_fini(struct rv_schedule_row *row)
{
    free(row->own);
    *row = (struct rv_schedule_row){0};
}

static int check_row(struct sql_store *st, const struct rv_schedule_row *row, rv_str kind, rv_str hash, rv_err **err)
{
    const int64_t numbers[] = {row->max_retries, row->created_us, row->updated_us, row->next_us,
                               row->look_us,     row->last_us,    row->n_fired,    row->n_skipped};

    if (!row->id || !row->tenant || !row->user || !row->name || !row->expr || !row->zone || !row->type || !row->tier ||
        !row->needs.ptr || !row->payload.ptr || (hash.ptr && hash.len != RV_STORE_DIGEST))
        return store_damaged(st, err, "schedule \"%s\" is damaged: a text is missing", row->id ? row->id : "");
    if (!rv_str_is(kind, RV_SCHEDULE_ONCE) && !rv_str_is(kind, RV_SCHEDULE_CRON))
        return store_damaged(st, err, "schedule \"%s\" is damaged: \"%.*s\" is not a kind", row->id,
                             RV_STR_ARG(rv_utf8_cut(kind, 40)));
    return store_check_numbers(st, "schedule", row->id, numbers, RV_COUNT(numbers), err);
}

/* The texts stay valid until the statement moves; hex is where the bundle's name goes. */
static int row_of(struct sql_store *st, rv_sql_stmt *stmt, char hex[RV_HASH_MAX], struct rv_schedule_row *out,
                  rv_err **err)
{
    bool lacked = false;
    rv_str kind = sql_str_at(stmt, 4), hash = sql_str_at(stmt, 11);
    struct rv_schedule_row row = {.id = sql_text_at(stmt, 0, &lacked),
                                  .tenant = sql_text_at(stmt, 1, &lacked),
                                  .user = sql_text_at(stmt, 2, &lacked),
                                  .name = sql_text_at(stmt, 3, &lacked),
                                  .is_once = rv_str_is(kind, RV_SCHEDULE_ONCE),
                                  .expr = sql_text_at(stmt, 5, &lacked),
                                  .zone = sql_text_at(stmt, 6, &lacked),
                                  .type = sql_text_at(stmt, 7, &lacked),
                                  .tier = sql_text_at(stmt, 8, &lacked),
                                  .needs = sql_str_at(stmt, 9),
                                  .payload = sql_str_at(stmt, 10),
                                  .bundle = hash.ptr ? hex : NULL,
                                  .pipeline = sql_text_at(stmt, 12, &lacked),
                                  .priority = sql_int_at(stmt, 13),
                                  .max_retries = sql_int_at(stmt, 14),
                                  .created_us = sql_int_at(stmt, 15),
                                  .updated_us = sql_int_at(stmt, 16),
                                  .next_us = sql_int_at(stmt, 17),
                                  .look_us = sql_int_at(stmt, 18),
                                  .last_us = sql_int_at(stmt, 19),
                                  .n_fired = sql_int_at(stmt, 20),
                                  .n_skipped = sql_int_at(stmt, 21),
                                  .error = sql_text_at(stmt, 22, &lacked)};

    if (lacked)
        return RV_FAIL(err, RV_E_NOMEM, "read a schedule");
    int rc = check_row(st, &row, kind, hash, err);
    if (rc < 0)
        return rc;
    const struct rv_place at = vault_engine_place(row.tenant, "schedules", row.id, NULL, 0);
    rc = store_secret_at(stmt, 10, &at, "payload", &row.payload, err);
    if (rc < 0)
        return rc;
    if (hash.ptr)
        store_blob_hex((const unsigned char *)hash.ptr, hex);
    *out = row;
    return 0;
}

int store_schedule_fail_none(const char *word, rv_err **err)
{
    return RV_FAIL(err, RV_E_NOT_FOUND, "there is no schedule \"%s\"", word);
}

int rv_store_get_schedule(rv_store *s, const struct rv_store_scope *scope, const char *word,
                          struct rv_schedule_row *out, rv_err **err)
{
    struct rv_schedule_row borrowed, row = {0};
    struct rv_store_scope sc;
    char hex[RV_HASH_MAX];
    int rc = store_enter_read(s, store_check_scoped(scope, "schedule", word, &sc, err), "get schedule", err);

    if (rc != 0)
        return rc;
    rv_sql_stmt *stmt = sql_use(s->sql, SQL_GET_SCHEDULE);
    store_sql_text(stmt, 1, word);
    store_sql_text(stmt, 2, sc.tenant);
    store_sql_text(stmt, 3, sc.user);
    rc = sql_step(stmt, "read a schedule", err);
    if (rc == 0)
        rc = store_schedule_fail_none(word, err);
    else if (rc == 1)
        rc = row_of(s->sql, stmt, hex, &borrowed, err);
    if (rc == 0)
        rc = copy_row(&borrowed, &row, err);
    sql_done(stmt);
    rc = store_leave_read(s, rc, err);
    if (rc == 0)
        *out = row;
    else
        rv_schedule_row_fini(&row);
    return rc;
}

/* --- Lists --- */

typedef int rv_each_schedule(void *self, const struct rv_schedule_row *row, rv_err **err);

/* Ends the statement. */
static int list_rows(struct sql_store *st, rv_sql_stmt *stmt, rv_each_schedule *each, void *self, rv_err **err)
{
    struct rv_schedule_row row;
    char hex[RV_HASH_MAX];
    int rc;

    while ((rc = sql_step(stmt, "list schedules", err)) == 1) {
        rc = row_of(st, stmt, hex, &row, err);
        if (rc == 0)
            rc = each(self, &row, err);
        if (rc != 0)
            break;
    }
    sql_done(stmt);
    return rc;
}

int rv_store_list_schedules(rv_store *s, const struct rv_store_scope *scope,
                            int (*each)(void *self, const struct rv_schedule_row *row, rv_err **err), void *self,
                            rv_err **err)
{
    struct rv_store_scope sc;
    int rc = store_enter_read(s, store_check_scope(scope, &sc, err), "list schedules", err);

    if (rc != 0)
        return rc;
    rv_sql_stmt *stmt = sql_use(s->sql, SQL_SCHEDULES);
    store_sql_text(stmt, 1, sc.tenant);
    store_sql_text(stmt, 2, sc.user);
    return store_leave_read(s, list_rows(s->sql, stmt, each, self, err), err);
}

typedef int rv_each_due(void *self, const struct rv_due_schedule *due, rv_err **err);

static int list_due(struct sql_store *st, int64_t now_us, int64_t max, rv_each_due *each, void *self, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_DUE_SCHEDULES);
    bool lacked = false;
    int rc;

    sql_int(stmt, 1, now_us);
    sql_int(stmt, 2, max);
    while ((rc = sql_step(stmt, "list schedules that are due", err)) == 1) {
        const struct rv_due_schedule due = {.id = sql_text_at(stmt, 0, &lacked),
                                            .tenant = sql_text_at(stmt, 1, &lacked),
                                            .next_us = sql_int_at(stmt, 2)};
        rc = lacked                 ? RV_FAIL(err, RV_E_NOMEM, "list schedules that are due")
             : due.id && due.tenant ? each(self, &due, err)
                                    : store_damaged(st, err, "a schedule is damaged: its id is missing");
        if (rc != 0)
            break;
    }
    sql_done(stmt);
    return rc;
}

int rv_store_list_due_schedules(rv_store *s, int64_t now_us, int64_t max,
                                int (*each)(void *self, const struct rv_due_schedule *due, rv_err **err), void *self,
                                rv_err **err)
{
    int rc = store_check_time("the time", now_us, err);

    if (rc == 0 && (max < 1 || max > RV_SCHEDULE_MAX_DUE))
        rc = RV_FAIL(err, RV_E_INVALID, "%lld schedules at once: 1 to %d", (long long)max, RV_SCHEDULE_MAX_DUE);
    rc = store_enter_read(s, rc, "list due schedules", err);
    return rc != 0 ? rc : store_leave_read(s, list_due(s->sql, now_us, max, each, self, err), err);
}

/* --- Firings --- */

typedef int rv_each_firing(void *self, const struct rv_firing *f, rv_err **err);

static int find_key(struct sql_store *st, const struct rv_store_scope *scope, const char *word, int64_t *out,
                    rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_SCHEDULE_KEY);
    int rc;

    store_sql_text(stmt, 1, word);
    store_sql_text(stmt, 2, scope->tenant);
    store_sql_text(stmt, 3, scope->user);
    rc = sql_step(stmt, "look for a schedule", err);
    if (rc == 1)
        *out = sql_int_at(stmt, 0);
    sql_done(stmt);
    return rc == 1 ? 0 : rc < 0 ? rc : store_schedule_fail_none(word, err);
}

static int list_firings(struct sql_store *st, int64_t key, int64_t limit, rv_each_firing *each, void *self,
                        rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_FIRINGS);
    bool lacked = false;
    int rc;

    sql_int(stmt, 1, key);
    sql_int(stmt, 2, limit > 0 ? limit : INT64_MAX);
    while ((rc = sql_step(stmt, "list firings", err)) == 1) {
        const struct rv_firing f = {.planned_us = sql_int_at(stmt, 0),
                                    .since_us = sql_int_at(stmt, 1),
                                    .at_us = sql_int_at(stmt, 2),
                                    .made = sql_text_at(stmt, 3, &lacked),
                                    .skipped = sql_text_at(stmt, 4, &lacked)};
        rc = lacked ? RV_FAIL(err, RV_E_NOMEM, "list firings") : each(self, &f, err);
        if (rc != 0)
            break;
    }
    sql_done(stmt);
    return rc;
}

int rv_store_list_firings(rv_store *s, const struct rv_store_scope *scope, const struct rv_firing_filter *filter,
                          int (*each)(void *self, const struct rv_firing *f, rv_err **err), void *self, rv_err **err)
{
    struct rv_store_scope sc;
    bool began = false;
    int64_t key = 0;
    int rc = store_check_scoped(scope, "schedule", filter->word, &sc, err);

    if (rc == 0 && filter->limit < 0)
        rc = RV_FAIL(err, RV_E_INVALID, "a limit of %lld firings", (long long)filter->limit);
    rc = store_enter_read(s, rc, "list firings", err);
    if (rc != 0)
        return rc;
    rc = sql_begin_read(s->sql, &began, err);
    if (rc == 0)
        rc = find_key(s->sql, &sc, filter->word, &key, err);
    if (rc == 0)
        rc = list_firings(s->sql, key, filter->limit, each, self, err);
    sql_end_read(s->sql, began);
    return store_leave_read(s, rc, err);
}
