/* Schedules come, fire and go. What decides that a firing happens once is one condition: the schedule still stands at
 * the instant that was seen when the decision to fire was made. */
#include <string.h>

#include "coreengine/store/encryption/vault_internal.h"
#include "coreengine/store/queue/queue_internal.h"

#define MAX_EXPR  1024 /* bytes of a cron expression: as RV_CRON_MAX_TEXT of the calendar, which reads it */
#define MAX_ZONE  64   /* bytes of a zone's name: as RV_ZONE_MAX_NAME of the calendar; a longer one is an error */
#define MAX_NEEDS ((size_t)64 << 10) /* bytes of a schedule's labels: RV_TASK_MAX_NEEDS of some hundred */

/* --- Adding --- */

static int check_name(const char *name, rv_err **err)
{
    int rc = store_check_id("schedule's name", name, err);

    if (rc == 0)
        rc = store_check_new_id("schedule's name", name, err);
    if (rc == 0 && strncmp(name, RV_SCHEDULE_PREFIX, strlen(RV_SCHEDULE_PREFIX)) == 0)
        rc = RV_FAIL(err, RV_E_INVALID,
                     "the name \"%s\" begins as ids of schedules do, with \"" RV_SCHEDULE_PREFIX "\"", name);
    return rc;
}

/* The tasks that it will queue, checked now, so that no firing fails by them. */
static int check_tasks(const struct rv_schedule_row *row, rv_err **err)
{
    const struct rv_new_task task = {.id = row->id,
                                     .tenant = row->tenant,
                                     .user = row->user,
                                     .type = row->type,
                                     .tier = row->tier,
                                     .payload = row->payload,
                                     .priority = row->priority,
                                     .max_retries = row->max_retries,
                                     .now_us = row->created_us};
    int rc = store_task_check(&task, err);

    if (rc == 0)
        rc = store_check_bytes("needs of a schedule", row->needs, MAX_NEEDS, err);
    if (rc == 0 && row->bundle)
        rc = store_check_hash(row->bundle, err);
    if (rc == 0 && row->pipeline)
        rc = store_check_text("pipeline", row->pipeline, RV_STORE_MAX_TEXT, err);
    return rc;
}

/* The name is for a message. */
static int check_times(const char *name, const char *expr, const char *zone, int64_t next_us, rv_err **err)
{
    int rc;

    if ((rc = store_check_text("expression", expr, MAX_EXPR, err)) < 0 ||
        (rc = store_check_text("time zone", zone, MAX_ZONE, err)) < 0)
        return rc;
    if (next_us <= 0 || next_us > RV_STORE_MAX_NUMBER)
        return RV_FAIL(err, RV_E_INVALID, "schedule \"%s\": %lld us is not a time at which it can fire", name,
                       (long long)next_us);
    return 0;
}

static int check_schedule(const struct rv_schedule_row *row, rv_err **err)
{
    int rc;

    if (!row)
        return RV_FAIL(err, RV_E_INVALID, "no schedule given");
    if ((rc = store_check_id("schedule's id", row->id, err)) < 0 ||
        (rc = store_check_new_id("schedule's id", row->id, err)) < 0 || (rc = check_name(row->name, err)) < 0 ||
        (rc = check_tasks(row, err)) < 0)
        return rc;
    return check_times(row->name, row->expr, row->zone, row->next_us, err);
}

static int insert(struct sql_store *st, const struct rv_schedule_row *row, int64_t bundle, int64_t *n, rv_err **err)
{
    const struct rv_place at = vault_engine_place(row->tenant, "schedules", row->id, NULL, 0);
    rv_sql_stmt *stmt = sql_use(st, SQL_ADD_SCHEDULE);

    store_sql_text(stmt, 1, row->id);
    store_sql_text(stmt, 2, row->tenant);
    store_sql_text(stmt, 3, row->user);
    store_sql_text(stmt, 4, row->name);
    store_sql_text(stmt, 5, row->is_once ? RV_SCHEDULE_ONCE : RV_SCHEDULE_CRON);
    store_sql_text(stmt, 6, row->expr);
    store_sql_text(stmt, 7, row->zone);
    store_sql_text(stmt, 8, row->type);
    store_sql_text(stmt, 9, row->tier);
    sql_str(stmt, 10, row->needs);
    store_secret_bind(stmt, 11, SQL_STR, &at, "payload", row->payload);
    if (bundle)
        sql_int(stmt, 12, bundle);
    store_sql_text(stmt, 13, row->pipeline);
    sql_int(stmt, 14, row->priority);
    sql_int(stmt, 15, row->max_retries);
    sql_int(stmt, 16, row->created_us);
    sql_int(stmt, 17, row->next_us);
    return sql_run_counted(stmt, n, "add a schedule", err);
}

static int add(struct sql_store *st, const struct rv_schedule_row *row, rv_err **err)
{
    int64_t bundle = 0, n = 0;
    rv_sql_stmt *stmt = sql_use(st, SQL_REPLACE_SCHEDULE);
    int rc;

    store_sql_text(stmt, 1, row->tenant);
    store_sql_text(stmt, 2, row->name);
    store_sql_text(stmt, 3, row->user);
    rc = sql_run(stmt, "replace a schedule", err);
    if (rc == 0 && row->bundle) {
        rc = store_blob_key(st, (rv_str){NULL, 0}, row->bundle, row->created_us, &bundle, err);
        if (rc == 0 && bundle == 0)
            rc = RV_FAIL(err, RV_E_NOT_FOUND, "schedule \"%s\": there is no blob \"%s\"", row->name, row->bundle);
    }
    if (rc == 0)
        rc = insert(st, row, bundle, &n, err);
    if (rc == 0 && n == 0)
        rc = RV_FAIL(err, RV_E_EXISTS, "there is a schedule \"%s\" already", row->name);
    return rc;
}

static int add_part(struct sql_store *st, const struct rv_schedule_row *row, rv_err **err)
{
    int rc = sql_begin_part(st, err);

    return rc < 0 ? rc : sql_end_part(st, add(st, row, err), err);
}

int rv_store_add_schedule(rv_store *s, const struct rv_schedule_row *row, rv_err **err)
{
    struct rv_schedule_row given;
    int rc = store_enter_write(s, check_schedule(row, err), "add schedule", err);

    if (rc != 0)
        return rc;
    given = *row;
    given.tenant = given.tenant ? given.tenant : RV_STORE_TENANT;
    given.user = given.user ? given.user : "";
    given.tier = given.tier ? given.tier : rv_task_tier_text(RV_TASK_TIER_SMALL);
    given.needs = given.needs.len > 0 ? given.needs : RV_STR_LIT("[]");
    given.payload = given.payload.len > 0 ? given.payload : RV_STR_LIT("{}");
    given.max_retries = given.max_retries == RV_UNSET ? RV_TASK_RETRIES : given.max_retries;
    do
        rc = add_part(s->sql, &given, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

/* --- Changing --- */

static int check_change(const char *word, const struct rv_schedule_change *change, rv_err **err)
{
    int rc;

    if (!change)
        return RV_FAIL(err, RV_E_INVALID, "no change given");
    if (change->expr && (rc = check_times(word, change->expr, change->zone, change->next_us, err)) < 0)
        return rc;
    rc = change->priority ? store_task_check_priority(*change->priority, err) : 0;
    return rc == 0 ? store_check_time("the time", change->now_us, err) : rc;
}

int rv_store_change_schedule(rv_store *s, const struct rv_store_scope *scope, const char *word,
                             const struct rv_schedule_change *change, rv_err **err)
{
    struct rv_store_scope sc;
    int64_t n = 0;
    int rc = store_check_scoped(scope, "schedule", word, &sc, err);

    rc = store_enter_write(s, rc < 0 ? rc : check_change(word, change, err), "change schedule", err);
    if (rc != 0)
        return rc;
    do {
        rv_sql_stmt *stmt = sql_use(s->sql, SQL_CHANGE_SCHEDULE);
        store_sql_text(stmt, 1, word);
        store_sql_text(stmt, 2, sc.tenant);
        store_sql_text(stmt, 3, sc.user);
        if (change->expr) {
            store_sql_text(stmt, 4, change->is_once ? RV_SCHEDULE_ONCE : RV_SCHEDULE_CRON);
            store_sql_text(stmt, 5, change->expr);
            store_sql_text(stmt, 6, change->zone);
            sql_int(stmt, 7, change->next_us);
        }
        if (change->priority)
            sql_int(stmt, 8, *change->priority);
        sql_int(stmt, 9, change->now_us);
        rc = sql_run_counted(stmt, &n, "change a schedule", err);
        if (rc == 0 && n == 0)
            rc = store_schedule_fail_none(word, err);
    } while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

/* --- Deleting --- */

int rv_store_delete_schedule(rv_store *s, const struct rv_store_scope *scope, const char *word, rv_err **err)
{
    struct rv_store_scope sc;
    int64_t n = 0;
    int rc = store_enter_write(s, store_check_scoped(scope, "schedule", word, &sc, err), "delete schedule", err);

    if (rc != 0)
        return rc;
    do {
        rv_sql_stmt *stmt = sql_use(s->sql, SQL_DELETE_SCHEDULE);
        store_sql_text(stmt, 1, word);
        store_sql_text(stmt, 2, sc.tenant);
        store_sql_text(stmt, 3, sc.user);
        rc = sql_run_counted(stmt, &n, "delete a schedule", err);
        if (rc == 0 && n == 0)
            rc = store_schedule_fail_none(word, err);
    } while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

int rv_store_prune_schedules(rv_store *s, int64_t before_us, int64_t *n, rv_err **err)
{
    int64_t deleted = 0;
    int rc = store_enter_write(s, store_check_time("the time", before_us, err), "prune schedules", err);

    if (rc != 0)
        return rc;
    do {
        rv_sql_stmt *stmt = sql_use(s->sql, SQL_PRUNE_SCHEDULES);
        sql_int(stmt, 1, before_us);
        rc = sql_run_counted(stmt, &deleted, "delete schedules that have ended", err);
    } while (store_repeats(s, &rc, err));
    rc = store_leave_write(s, rc, err);
    if (rc == 0 && n)
        *n = deleted;
    return rc;
}

/* --- Firing --- */

static int check_fire(const struct rv_fire *fire, rv_err **err)
{
    int rc;

    if (!fire)
        return RV_FAIL(err, RV_E_INVALID, "no schedule given");
    if ((rc = store_check_id("schedule's id", fire->id, err)) < 0 ||
        (rc = store_check_time("the time", fire->now.at_us, err)) < 0 ||
        (rc = store_check_optional("reason", fire->now.skipped, RV_TASK_MAX_ERROR, err)) < 0 ||
        (rc = fire->now.made ? store_check_id("run's id", fire->now.made, err) : 0) < 0)
        return rc;
    if (!fire->task == !fire->now.skipped)
        return RV_FAIL(err, RV_E_INVALID, "schedule \"%s\" either queues a task or skips it", fire->id);
    if (fire->now.planned_us <= 0 || fire->now.since_us <= 0 || fire->now.since_us > fire->now.planned_us)
        return RV_FAIL(err, RV_E_INVALID, "schedule \"%s\": %lld us is not an instant of its own", fire->id,
                       (long long)fire->now.planned_us);
    if (fire->next_us != 0 && (fire->next_us <= fire->now.planned_us || fire->next_us > RV_STORE_MAX_NUMBER))
        return RV_FAIL(err, RV_E_INVALID, "schedule \"%s\" would go back in time", fire->id);
    return fire->task ? store_task_check(fire->task, err) : 0;
}

/* 0: it does not stand there any more, or another process fires it just now. */
static int find_fired(struct sql_store *st, const struct rv_fire *fire, int64_t *key, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_FIRED_KEY);
    int rc;

    store_sql_text(stmt, 1, fire->id);
    sql_int(stmt, 2, fire->expected_us);
    rc = sql_step(stmt, "look for a schedule", err);
    *key = rc == 1 ? sql_int_at(stmt, 0) : 0;
    sql_done(stmt);
    return rc < 0 ? rc : 0;
}

static int advance(struct sql_store *st, int64_t key, const struct rv_fire *fire, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_FIRE_SCHEDULE);

    sql_int(stmt, 1, key);
    sql_int(stmt, 2, fire->next_us);
    sql_int(stmt, 3, fire->now.planned_us);
    sql_int(stmt, 4, fire->task != NULL);
    sql_int(stmt, 5, fire->task == NULL);
    sql_int(stmt, 6, fire->now.at_us);
    return sql_run(stmt, "fire a schedule", err);
}

static int note(struct sql_store *st, int64_t key, const struct rv_firing *f, const char *made, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_ADD_FIRING);
    int rc;

    sql_int(stmt, 1, key);
    sql_int(stmt, 2, f->planned_us);
    sql_int(stmt, 3, f->since_us);
    sql_int(stmt, 4, f->at_us);
    store_sql_text(stmt, 5, made);
    store_sql_text(stmt, 6, f->skipped);
    rc = sql_run(stmt, "note a firing", err);
    if (rc < 0)
        return rc;
    stmt = sql_use(st, SQL_DROP_FIRINGS);
    sql_int(stmt, 1, key);
    sql_int(stmt, 2, RV_SCHEDULE_KEPT_FIRINGS);
    return sql_run(stmt, "delete old firings", err);
}

static int fire_it(struct sql_store *st, const struct rv_fire *fire, bool *is_mine, rv_err **err)
{
    struct rv_enqueued task = {.is_new = false};
    const char *made = fire->now.made;
    int64_t key = 0;
    int rc = find_fired(st, fire, &key, err);

    *is_mine = rc == 0 && key != 0;
    if (!*is_mine)
        return rc;
    rc = advance(st, key, fire, err);
    if (rc == 0 && fire->task) {
        rc = store_task_enqueue(st, fire->task, &task, err);
        made = made ? made : task.id;
    }
    return rc < 0 ? rc : note(st, key, &fire->now, made, err);
}

static int fire_part(struct sql_store *st, const struct rv_fire *fire, bool *is_mine, rv_err **err)
{
    int rc = sql_begin_part(st, err);

    return rc < 0 ? rc : sql_end_part(st, fire_it(st, fire, is_mine, err), err);
}

int rv_store_fire_schedule(rv_store *s, const struct rv_fire *fire, bool *is_mine, rv_err **err)
{
    bool mine = false;
    int rc = store_enter_write(s, check_fire(fire, err), "fire schedule", err);

    if (rc != 0)
        return rc;
    do
        rc = fire_part(s->sql, fire, &mine, err);
    while (store_repeats(s, &rc, err));
    rc = store_leave_write(s, rc, err);
    if (rc == 0)
        *is_mine = mine;
    return rc;
}

int rv_store_postpone_schedule(rv_store *s, const char *id, const struct rv_postponement *later, int64_t now_us,
                               rv_err **err)
{
    char text[RV_TASK_MAX_ERROR + 1];
    rv_str cut = rv_utf8_cut(rv_str_of(later->why), RV_TASK_MAX_ERROR);
    int rc = store_check_id("schedule's id", id, err);

    memcpy(text, cut.ptr, cut.len);
    text[cut.len] = 0;
    if (rc == 0)
        rc = store_check_text("reason", text, RV_TASK_MAX_ERROR, err);
    if (rc == 0)
        rc = store_check_time("the time", now_us, err);
    if (rc == 0 && (later->until_us < now_us || later->until_us > RV_STORE_MAX_NUMBER || later->until_us == 0))
        rc = RV_FAIL(err, RV_E_INVALID, "schedule \"%s\" would be looked at in the past", id);
    rc = store_enter_write(s, rc, "postpone schedule", err);
    if (rc != 0)
        return rc;
    do {
        rv_sql_stmt *stmt = sql_use(s->sql, SQL_POSTPONE_SCHEDULE);
        store_sql_text(stmt, 1, id);
        sql_int(stmt, 2, later->expected_us);
        sql_int(stmt, 3, later->until_us);
        store_sql_text(stmt, 4, text);
        sql_int(stmt, 5, now_us);
        rc = sql_run(stmt, "postpone a schedule", err);
    } while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}
