/* Upkeep in every database: rows counted, and what nothing needs any more deleted, a little at a time. upkeep/check.c
 * looks for damage. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coreengine/store/sql/driver_internal.h"
#include "coreengine/store/store_internal.h"
#include "coreengine/store/upkeep.h"

#define KEEP_DELETED_US (30 * RV_US_PER_DAY) /* entities stay so long after their deletion */
#define MAX_PROBLEMS    100  /* that a check lists: a person reads the first ones first; further ones are counted */
#define SWEEP_BLOBS     250  /* looked at in one transaction, so that others get their turn */
#define SWEEP_TASKS     1000 /* the same; most of them stay, and are only looked at */
#define PAUSE_NS        3000000 /* of a file, between two of them: as long as the sleep of one that waits (sqlite/stmt.c) */

void store_upkeep_pause(const struct sql_store *st)
{
    if (st->driver->has_one_writer)
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

void store_report_add_more(struct rv_report *r, rv_str more)
{
    size_t len = r->text.len - r->line;

    if (r->is_shown && len < RV_REPORT_LINE)
        rv_buf_add_str(&r->text, rv_utf8_cut(more, RV_REPORT_LINE - len));
}

void store_report_add(struct rv_report *r, rv_str problem)
{
    r->is_shown = r->text.len + RV_REPORT_LINE <= RV_REPORT_BYTES;
    r->line = r->text.len;
    r->n++;
    r->n_shown += r->is_shown;
    store_report_add_more(r, RV_STR_LIT("\n  "));
    store_report_add_more(r, problem);
}

void store_report_add_damage(struct rv_report *r, const char *damage)
{
    if (!strstr(rv_buf_cstr(&r->text), damage))
        store_report_add(r, rv_str_of(damage));
}

void store_report_add_index(struct rv_report *r, rv_str problem)
{
    r->n_index++;
    store_report_add(r, problem);
}

bool store_report_is_full(const struct rv_report *r)
{
    return r->n >= MAX_PROBLEMS;
}

int store_upkeep_stats(struct sql_store *st, struct rv_store_stats *out, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_STATS);
    int rc = sql_step(stmt, "count", err);

    if (rc == 1) {
        out->runs = sql_int_at(stmt, 0);
        out->records = sql_int_at(stmt, 1);
        out->blobs = sql_int_at(stmt, 2);
        out->pending = sql_int_at(stmt, 3);
        out->snapshots = sql_int_at(stmt, 4);
        out->sessions = sql_int_at(stmt, 5);
        out->messages = sql_int_at(stmt, 6);
        out->schemas = sql_int_at(stmt, 7);
        out->tasks = sql_int_at(stmt, 8);
        out->bytes = st->driver->size(st);
        out->schema = st->driver->schema;
    }
    sql_done(stmt);
    return rc < 0 ? rc : 0;
}

/* Rows of a table that nothing refers to any more, some keys at a time. */
struct swept {
    enum sql_id keys, sweep; /* the statements: the first key and the last; delete from ?1 on, before ?2 */
    int64_t at_once;
    int64_t born_before_us; /* of blobs */
};

static int try_sweep_some(struct sql_store *st, const struct swept *of, int64_t from, rv_err **err)
{
    int rc = sql_begin_write(st, "sweep", err);

    if (rc < 0)
        return rc;
    rv_sql_stmt *stmt = sql_use(st, of->sweep);
    sql_int(stmt, 1, from);
    sql_int(stmt, 2, from + of->at_once);
    if (of->sweep == SQL_SWEEP)
        sql_int(stmt, 3, of->born_before_us);
    return sql_end_write(st, sql_run(stmt, "sweep", err), "sweep", err);
}

/* *first above *last: there are none. */
static int key_range(struct sql_store *st, enum sql_id id, int64_t *first, int64_t *last, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, id);
    int rc = sql_step(stmt, "sweep", err);

    *first = rc == 1 ? sql_int_at(stmt, 0) : 1;
    *last = rc == 1 ? sql_int_at(stmt, 1) : 0;
    sql_done(stmt);
    return rc < 0 ? rc : 0;
}

static int sweep_keys(struct sql_store *st, const struct swept *of, rv_err **err)
{
    int64_t first = 1, last = 0;
    int rc = key_range(st, of->keys, &first, &last, err);

    for (int64_t key = first; key <= last && rc == 0; key += of->at_once) {
        if (key > first)
            store_upkeep_pause(st);
        do
            rc = try_sweep_some(st, of, key, err);
        while (rc < 0 && sql_again(st, err));
    }
    return rc;
}

/* The words of messages that were deleted, the messages of sessions that were, the summaries that were made of them,
 * what their rows say, and what clients were sent of runs that are gone. */
static int try_purge_sessions(struct sql_store *st, int64_t born_before_us, rv_err **err)
{
    static const enum sql_id steps[] = {SQL_PURGE_WORDS, SQL_PURGE_MESSAGES, SQL_PURGE_CHUNKS, SQL_PURGE_SESSIONS};
    int rc = sql_begin_write(st, "sweep", err);

    if (rc < 0)
        return rc;
    rv_sql_stmt *stmt = sql_use(st, SQL_SWEEP_STREAMS);
    sql_int(stmt, 1, born_before_us);
    rc = sql_run(stmt, "sweep", err);
    for (size_t i = 0; i < RV_COUNT(steps) && rc == 0; i++)
        rc = sql_run(sql_use(st, steps[i]), "sweep", err);
    return sql_end_write(st, rc, "sweep", err);
}

static int purge_sessions(struct sql_store *st, int64_t born_before_us, rv_err **err)
{
    int rc;

    do
        rc = try_purge_sessions(st, born_before_us, err);
    while (rc < 0 && sql_again(st, err));
    return rc;
}

/* And duties of processes that died. With what they are found by: a deletion has dropped vectors and places in the
 * queue already, and what came in its way goes here. */
static int try_purge_entities(struct sql_store *st, int64_t upto_us, rv_err **err)
{
    static const enum sql_id of_age[] = {SQL_PURGE_ENTITIES, SQL_PRUNE_DUTIES};
    static const enum sql_id steps[] = {SQL_PURGE_VECTORS, SQL_PURGE_EMBEDDINGS, SQL_PURGE_TOKENS};
    int rc = sql_begin_write(st, "sweep", err);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < RV_COUNT(of_age) && rc == 0; i++) {
        rv_sql_stmt *stmt = sql_use(st, of_age[i]);
        sql_int(stmt, 1, upto_us);
        rc = sql_run(stmt, "sweep", err);
    }
    for (size_t i = 0; i < RV_COUNT(steps) && rc == 0; i++)
        rc = sql_run(sql_use(st, steps[i]), "sweep", err);
    return sql_end_write(st, rc, "sweep", err);
}

static int purge_entities(struct sql_store *st, int64_t upto_us, rv_err **err)
{
    int rc;

    do
        rc = try_purge_entities(st, upto_us, err);
    while (rc < 0 && sql_again(st, err));
    return rc;
}

int store_upkeep_sweep(struct sql_store *st, int64_t now_us, int64_t grace_us, int64_t *freed, rv_err **err)
{
    const int64_t born_before_us = now_us - grace_us;
    const struct swept blobs = {SQL_BLOB_KEYS, SQL_SWEEP, SWEEP_BLOBS, born_before_us};
    const struct swept tasks = {SQL_TASK_KEYS, SQL_SWEEP_TASKS, SWEEP_TASKS, 0};
    int64_t before = st->driver->size(st), after;
    int rc = sweep_keys(st, &blobs, err);

    if (rc == 0)
        rc = sweep_keys(st, &tasks, err);
    if (rc == 0)
        rc = purge_sessions(st, born_before_us, err);
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

int store_upkeep_back_up(struct sql_store *from, const char *path, rv_err **err)
{
    const struct rv_store_copy_opts opts = {.is_backup = true};
    const struct rv_store_opts opening = {.must_exist = true};
    struct rv_store_copied *out = calloc(1, sizeof *out);
    struct sql_store *to = NULL;
    int rc = out ? sqlite_make(path, err) : RV_FAIL(err, RV_E_NOMEM, "back up to \"%s\"", path);

    if (rc == 0) {
        rc = sqlite_open(path, &opening, &to, err);
        if (rc == 0) {
            rc = store_copy_rows(from, to, &opts, out, err);
            sql_close(to);
        }
        if (rc < 0)
            sqlite_remove(path);
    }
    free(out);
    return rc;
}
