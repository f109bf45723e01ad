/* Upkeep in every database: rows counted, and what nothing needs any more deleted, a little at a time. upkeep/check.c
 * looks for damage. */
#include <string.h>
#include <time.h>

#include "coreengine/store/sql/driver_internal.h"
#include "coreengine/store/store_internal.h"

#define KEEP_DELETED_US (30 * RV_US_PER_DAY) /* entities stay so long after their deletion */
#define MAX_PROBLEMS    100                  /* that a check lists; further ones are counted */
#define SWEEP_BLOBS     250                  /* looked at in one transaction, so that others get their turn */
#define PAUSE_NS        3000000 /* of a file, between two of them: as long as the sleep of one that waits (sqlite/stmt.c) */

void rv_upkeep_pause(const struct sql_store *st)
{
    if (st->driver->has_one_writer)
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

void rv_report_add_more(struct rv_report *r, rv_str more)
{
    if (r->text.len < RV_REPORT_BYTES)
        rv_buf_add_str(&r->text, rv_utf8_cut(more, RV_REPORT_BYTES - r->text.len));
}

void rv_report_add(struct rv_report *r, rv_str problem)
{
    if (r->n++ > 0)
        rv_report_add_more(r, RV_STR_LIT("; "));
    rv_report_add_more(r, problem);
}

void rv_report_add_damage(struct rv_report *r, const char *damage)
{
    if (!strstr(rv_buf_cstr(&r->text), damage))
        rv_report_add(r, rv_str_of(damage));
}

void rv_report_add_index(struct rv_report *r, rv_str problem)
{
    r->n_index++;
    rv_report_add(r, problem);
}

bool rv_report_is_full(const struct rv_report *r)
{
    return r->n >= MAX_PROBLEMS;
}

int rv_upkeep_stats(struct sql_store *st, struct rv_store_stats *out, rv_err **err)
{
    rv_sql_stmt *stmt = rv_sql_use(st, SQL_STATS);
    int rc = rv_sql_step(stmt, "count", err);

    if (rc == 1) {
        out->runs = rv_sql_int_at(stmt, 0);
        out->records = rv_sql_int_at(stmt, 1);
        out->blobs = rv_sql_int_at(stmt, 2);
        out->pending = rv_sql_int_at(stmt, 3);
        out->snapshots = rv_sql_int_at(stmt, 4);
        out->sessions = rv_sql_int_at(stmt, 5);
        out->messages = rv_sql_int_at(stmt, 6);
        out->schemas = rv_sql_int_at(stmt, 7);
        out->tasks = rv_sql_int_at(stmt, 8);
        out->bytes = st->driver->size(st);
        out->schema = st->driver->schema;
    }
    rv_sql_done(stmt);
    return rc < 0 ? rc : 0;
}

static int try_sweep_blobs(struct sql_store *st, int64_t after, int64_t born_before_us, rv_err **err)
{
    int rc = rv_sql_begin_write(st, "sweep", err);

    if (rc < 0)
        return rc;
    rv_sql_stmt *stmt = rv_sql_use(st, SQL_SWEEP);
    rv_sql_int(stmt, 1, after);
    rv_sql_int(stmt, 2, after + SWEEP_BLOBS);
    rv_sql_int(stmt, 3, born_before_us);
    return rv_sql_end_write(st, rv_sql_run(stmt, "sweep", err), "sweep", err);
}

static int sweep_blobs(struct sql_store *st, int64_t after, int64_t born_before_us, rv_err **err)
{
    int rc;

    do
        rc = try_sweep_blobs(st, after, born_before_us, err);
    while (rc < 0 && rv_sql_again(st, err));
    return rc;
}

static int last_blob(struct sql_store *st, int64_t *out, rv_err **err)
{
    rv_sql_stmt *stmt = rv_sql_use(st, SQL_LAST_BLOB);
    int rc = rv_sql_step(stmt, "sweep", err);

    *out = rc == 1 ? rv_sql_int_at(stmt, 0) : 0;
    rv_sql_done(stmt);
    return rc < 0 ? rc : 0;
}

/* The words of messages that were deleted, the messages of sessions that were, and what their rows say. */
static int try_purge_sessions(struct sql_store *st, rv_err **err)
{
    static const enum sql_id steps[] = {SQL_PURGE_WORDS, SQL_PURGE_MESSAGES, SQL_PURGE_SESSIONS};
    int rc = rv_sql_begin_write(st, "sweep", err);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < RV_COUNT(steps) && rc == 0; i++)
        rc = rv_sql_run(rv_sql_use(st, steps[i]), "sweep", err);
    return rv_sql_end_write(st, rc, "sweep", err);
}

static int purge_sessions(struct sql_store *st, rv_err **err)
{
    int rc;

    do
        rc = try_purge_sessions(st, err);
    while (rc < 0 && rv_sql_again(st, err));
    return rc;
}

/* With what they are found by: a deletion has dropped vectors and places in the queue already, and what came in its way
 * goes here. */
static int try_purge_entities(struct sql_store *st, int64_t upto_us, rv_err **err)
{
    static const enum sql_id steps[] = {SQL_PURGE_VECTORS, SQL_PURGE_EMBEDDINGS, SQL_PURGE_TOKENS};
    int rc = rv_sql_begin_write(st, "sweep", err);

    if (rc < 0)
        return rc;
    rv_sql_stmt *stmt = rv_sql_use(st, SQL_PURGE_ENTITIES);
    rv_sql_int(stmt, 1, upto_us);
    rc = rv_sql_run(stmt, "sweep", err);
    for (size_t i = 0; i < RV_COUNT(steps) && rc == 0; i++)
        rc = rv_sql_run(rv_sql_use(st, steps[i]), "sweep", err);
    return rv_sql_end_write(st, rc, "sweep", err);
}

static int purge_entities(struct sql_store *st, int64_t upto_us, rv_err **err)
{
    int rc;

    do
        rc = try_purge_entities(st, upto_us, err);
    while (rc < 0 && rv_sql_again(st, err));
    return rc;
}

int rv_upkeep_sweep(struct sql_store *st, int64_t now_us, int64_t grace_us, int64_t *freed, rv_err **err)
{
    int64_t before = st->driver->size(st), last = 0, after;
    int rc = last_blob(st, &last, err);

    for (int64_t key = 0; key < last && rc == 0; key += SWEEP_BLOBS) {
        if (key > 0)
            rv_upkeep_pause(st);
        rc = sweep_blobs(st, key, now_us - grace_us, err);
    }
    if (rc == 0)
        rc = purge_sessions(st, err);
    if (rc == 0)
        rc = purge_entities(st, now_us - KEEP_DELETED_US, err);
    if (rc == 0)
        rc = st->driver->give_back(st, err);
    if (rc < 0)
        return rc;
    after = st->driver->size(st);
    *freed = before > after ? before - after : 0;
    return 0;
}
