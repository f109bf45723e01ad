/* How a task comes into the queue: its class, its lane, its key; and the shares of tenants. */
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/queue/queue_internal.h"

/* bytes of all labels with what stands between */
#define MAX_NEEDS_TEXT ((size_t)RV_TASK_MAX_NEEDS * (RV_STORE_MAX_ID + 1))

/* --- Arguments --- */

static int check_word(const char *kind, const char *id, rv_err **err)
{
    int rc = store_check_id(kind, id, err);

    return rc < 0 ? rc : store_check_new_id(kind, id, err);
}

static int check_needs(const struct rv_new_task *task, rv_err **err)
{
    int rc = 0;

    if (task->n_needs > RV_TASK_MAX_NEEDS)
        return RV_FAIL(err, RV_E_LIMIT, "%zu needs, more than %d", task->n_needs, RV_TASK_MAX_NEEDS);
    for (size_t i = 0; i < task->n_needs && rc == 0; i++)
        rc = check_word("need", task->needs[i], err);
    return rc;
}

static int check_numbers(const struct rv_new_task *task, rv_err **err)
{
    int rc = store_check_time("the time", task->now_us, err);

    if (rc == 0)
        rc = store_check_time("when it is due", task->scheduled_us, err);
    if (rc < 0)
        return rc;
    if (task->scheduled_us > RV_STORE_MAX_NUMBER || task->now_us > RV_STORE_MAX_NUMBER)
        return RV_FAIL(err, RV_E_INVALID, "the time is %lld us, which is not a date", (long long)task->scheduled_us);
    rc = store_task_check_priority(task->priority, err);
    if (rc < 0)
        return rc;
    if (task->max_retries < RV_UNSET || task->max_retries > RV_TASK_MAX_RETRIES)
        return RV_FAIL(err, RV_E_INVALID, "%lld retries: 0 to %d", (long long)task->max_retries, RV_TASK_MAX_RETRIES);
    return 0;
}

int store_task_check(const struct rv_new_task *task, rv_err **err)
{
    enum rv_task_tier tier;
    int rc;

    if (!task)
        return RV_FAIL(err, RV_E_INVALID, "no task given");
    if ((rc = check_word("task's id", task->id, err)) < 0 ||
        (rc = task->tenant ? check_word("tenant", task->tenant, err) : 0) < 0 ||
        (rc = task->user ? store_check_text("user", task->user, RV_STORE_MAX_ID, err) : 0) < 0 ||
        (rc = check_word("task's type", task->type, err)) < 0 ||
        (rc = task->key ? check_word("idempotency key", task->key, err) : 0) < 0 ||
        (rc = task->tier ? rv_task_tier_of(rv_str_of(task->tier), &tier, err) : 0) < 0 ||
        (rc = check_needs(task, err)) < 0 ||
        (rc = store_check_object("payload", task->payload, RV_TASK_MAX_JSON, err)) < 0)
        return rc;
    return check_numbers(task, err);
}

/* --- Classes and lanes --- */

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The needs, sorted, each once, one a line. */
static void write_needs(const struct rv_new_task *task, rv_buf *out)
{
    const char *needs[RV_TASK_MAX_NEEDS];

    if (task->n_needs == 0)
        return;
    memcpy(needs, task->needs, task->n_needs * sizeof *needs);
    qsort(needs, task->n_needs, sizeof *needs, by_bytes);
    for (size_t i = 0; i < task->n_needs; i++)
        if (i == 0 || strcmp(needs[i], needs[i - 1]) != 0)
            rv_buf_printf(out, "%s%s", i == 0 ? "" : "\n", needs[i]);
}

/* The number in the first column, or 0 when there is no row. */
static int look_up(rv_sql_stmt *stmt, int64_t *out, const char *what, rv_err **err)
{
    int rc = sql_step(stmt, what, err);

    *out = rc == 1 ? sql_int_at(stmt, 0) : 0;
    sql_done(stmt);
    return rc < 0 ? rc : 0;
}

static int find_class(struct sql_store *st, const char *tier, const char *needs, int64_t *out, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_FIND_CLASS);

    store_sql_text(stmt, 1, tier);
    store_sql_text(stmt, 2, needs);
    return look_up(stmt, out, "look for a class of tasks", err);
}

/* Added when it is not there. Looked for again afterwards: another process may have added it just now. */
static int class_of(struct sql_store *st, const struct rv_new_task *task, int64_t *out, rv_err **err)
{
    const char *tier = task->tier ? task->tier : rv_task_tier_text(RV_TASK_TIER_SMALL);
    rv_buf needs = RV_BUF_INIT(MAX_NEEDS_TEXT);
    int rc;

    write_needs(task, &needs);
    rc = rv_buf_check(&needs, "needs", err);
    if (rc == 0)
        rc = find_class(st, tier, rv_buf_cstr(&needs), out, err);
    if (rc == 0 && *out == 0) {
        rv_sql_stmt *stmt = sql_use(st, SQL_ADD_CLASS);
        store_sql_text(stmt, 1, tier);
        store_sql_text(stmt, 2, rv_buf_cstr(&needs));
        rc = sql_run(stmt, "add a class of tasks", err);
        if (rc == 0)
            rc = find_class(st, tier, rv_buf_cstr(&needs), out, err);
    }
    rv_buf_fini(&needs);
    return rc;
}

static int find_lane(struct sql_store *st, const char *tenant, int64_t class_id, int64_t *out, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_FIND_LANE);

    store_sql_text(stmt, 1, tenant);
    sql_int(stmt, 2, class_id);
    return look_up(stmt, out, "look for a lane", err);
}

static int lane_of(struct sql_store *st, const struct rv_new_task *task, int64_t *out, rv_err **err)
{
    int64_t class_id = 0;
    int rc = class_of(st, task, &class_id, err);

    if (rc == 0)
        rc = find_lane(st, task->tenant, class_id, out, err);
    if (rc < 0 || *out != 0)
        return rc;
    rv_sql_stmt *stmt = sql_use(st, SQL_ADD_LANE);
    store_sql_text(stmt, 1, task->tenant);
    sql_int(stmt, 2, class_id);
    sql_int(stmt, 3, RV_STORE_MAX_NUMBER);
    rc = sql_run(stmt, "add a lane", err);
    return rc < 0 ? rc : find_lane(st, task->tenant, class_id, out, err);
}

int store_lane_move(struct sql_store *st, int64_t lane, int64_t pending, int64_t processing, rv_err **err)
{
    rv_sql_stmt *stmt;

    if (pending == 0 && processing == 0)
        return 0;
    stmt = sql_use(st, SQL_MOVE_LANE);
    sql_int(stmt, 1, lane);
    sql_int(stmt, 2, pending);
    sql_int(stmt, 3, processing);
    if (pending > 0)
        sql_tell(st);
    return sql_run(stmt, "count the tasks of a lane", err);
}

/* --- Enqueue --- */

/* 1: there is a task with that key, which out names. */
static int find_key(struct sql_store *st, const struct rv_new_task *task, struct rv_enqueued *out, rv_err **err)
{
    rv_sql_stmt *stmt;
    rv_str id;
    int rc;

    if (!task->key)
        return 0;
    stmt = sql_use(st, SQL_FIND_KEY);
    store_sql_text(stmt, 1, task->tenant);
    store_sql_text(stmt, 2, task->user);
    store_sql_text(stmt, 3, task->type);
    store_sql_text(stmt, 4, task->key);
    rc = sql_step(stmt, "look for an idempotency key", err);
    if (rc == 1) {
        id = sql_str_at(stmt, 0);
        if (!id.ptr || id.len > RV_STORE_MAX_ID)
            rc = store_damaged(st, err, "a task of type \"%s\" is damaged: its id is missing", task->type);
        else
            memcpy(out->id, id.ptr, id.len);
    }
    sql_done(stmt);
    return rc;
}

static int insert(struct sql_store *st, const struct rv_new_task *task, int64_t lane, int64_t *n, rv_err **err)
{
    bool is_due = task->scheduled_us <= task->now_us;
    const struct rv_place at = store_task_place(task->tenant, task->id);
    rv_sql_stmt *stmt = sql_use(st, SQL_ADD_TASK);

    store_sql_text(stmt, 1, task->id);
    sql_int(stmt, 2, lane);
    store_sql_text(stmt, 3, task->tenant);
    store_sql_text(stmt, 4, task->user);
    store_sql_text(stmt, 5, task->type);
    store_sql_text(stmt, 6, task->key);
    store_secret_bind(stmt, 7, SQL_STR, &at, "payload", task->payload);
    store_sql_text(stmt, 8, rv_task_status_text(is_due ? RV_TASK_PENDING : RV_TASK_WAITING));
    sql_int(stmt, 9, task->priority);
    sql_int(stmt, 10, task->max_retries);
    sql_int(stmt, 11, task->now_us);
    sql_int(stmt, 12, task->scheduled_us > 0 ? task->scheduled_us : task->now_us);
    return sql_run_counted(stmt, n, "add a task", err);
}

static int fail_taken(const char *id, rv_err **err)
{
    return RV_FAIL(err, RV_E_EXISTS, "there is a task \"%s\" already", id);
}

static int add(struct sql_store *st, const struct rv_new_task *task, struct rv_enqueued *out, rv_err **err)
{
    int64_t taken = 0, lane = 0, n = 0;
    rv_sql_stmt *stmt = sql_use(st, SQL_HAS_TASK);
    int rc;

    store_sql_text(stmt, 1, task->id);
    rc = look_up(stmt, &taken, "look for a task", err);
    if (rc == 0 && taken)
        rc = fail_taken(task->id, err);
    if (rc == 0)
        rc = lane_of(st, task, &lane, err);
    if (rc == 0)
        rc = insert(st, task, lane, &n, err);
    if (rc < 0)
        return rc;
    if (n == 0) { /* where several transactions write at once: another one was faster with the key, or the id */
        rc = find_key(st, task, out, err);
        return rc < 0 ? rc : rc == 1 ? 0 : fail_taken(task->id, err);
    }
    out->is_new = true;
    memcpy(out->id, task->id, strlen(task->id) + 1);
    sql_tell(st); /* also of one that is due later, which workers have to know */
    return store_lane_move(st, lane, task->scheduled_us <= task->now_us, 0, err);
}

int store_task_enqueue(struct sql_store *st, const struct rv_new_task *task, struct rv_enqueued *out, rv_err **err)
{
    struct rv_new_task given = *task;
    int rc;

    given.tenant = given.tenant ? given.tenant : RV_STORE_TENANT;
    given.user = given.user ? given.user : "";
    given.payload = given.payload.len > 0 ? given.payload : RV_STR_LIT("{}");
    given.max_retries = given.max_retries == RV_UNSET ? RV_TASK_RETRIES : given.max_retries;
    *out = (struct rv_enqueued){.is_new = false};
    rc = find_key(st, &given, out, err);
    if (rc == 0)
        rc = add(st, &given, out, err);
    return rc == 1 ? 0 : rc;
}

static int enqueue(struct sql_store *st, const struct rv_new_task *task, struct rv_enqueued *out, rv_err **err)
{
    int rc = sql_begin_part(st, err);

    return rc < 0 ? rc : sql_end_part(st, store_task_enqueue(st, task, out, err), err);
}

int rv_store_enqueue(rv_store *s, const struct rv_new_task *task, struct rv_enqueued *out, rv_err **err)
{
    struct rv_enqueued got = {.is_new = false};
    int rc = store_enter_write(s, store_task_check(task, err), "enqueue", err);

    if (rc != 0)
        return rc;
    do
        rc = enqueue(s->sql, task, &got, err);
    while (store_repeats(s, &rc, err));
    rc = store_leave_write(s, rc, err);
    if (rc == 0 && out)
        *out = got;
    return rc;
}

/* --- Shares --- */

static int check_share(const char *tenant, const struct rv_task_share *share, rv_err **err)
{
    int rc = tenant ? check_word("tenant", tenant, err) : 0;

    if (rc == 0 && !share)
        rc = RV_FAIL(err, RV_E_INVALID, "no share given");
    if (rc < 0)
        return rc;
    if (share->weight < 1 || share->weight > RV_TASK_MAX_WEIGHT)
        return RV_FAIL(err, RV_E_INVALID, "the weight %lld is not between 1 and %d", (long long)share->weight,
                       RV_TASK_MAX_WEIGHT);
    if (share->cap < 0 || share->cap > RV_STORE_MAX_NUMBER)
        return RV_FAIL(err, RV_E_INVALID, "a cap of %lld tasks: 1 or more, or 0 for no limit", (long long)share->cap);
    return 0;
}

static int set_share(struct sql_store *st, const char *tenant, const struct rv_task_share *share, rv_err **err)
{
    static const enum sql_id steps[] = {SQL_SET_SHARE, SQL_SHARE_LANES};
    int rc = 0;

    for (size_t i = 0; i < RV_COUNT(steps) && rc == 0; i++) {
        rv_sql_stmt *stmt = sql_use(st, steps[i]);
        store_sql_text(stmt, 1, tenant);
        sql_int(stmt, 2, share->weight);
        sql_int(stmt, 3, share->cap > 0 ? share->cap : RV_STORE_MAX_NUMBER);
        rc = sql_run(stmt, "set the share of a tenant", err);
    }
    return rc;
}

int rv_store_set_share(rv_store *s, const char *tenant, const struct rv_task_share *share, rv_err **err)
{
    int rc = store_enter_write(s, check_share(tenant, share, err), "set share", err);

    if (rc != 0)
        return rc;
    do
        rc = set_share(s->sql, tenant ? tenant : RV_STORE_TENANT, share, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}
