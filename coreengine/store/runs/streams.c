/* Streams of clients: rows in, rows out. What their lines mean is decided by coreengine/app/streams. */
#include "coreengine/store/clients.h"

#include <stdlib.h>
#include <string.h>

#include "coreengine/store/encryption/vault_internal.h"
#include "coreengine/store/store_internal.h"

static int fail_none(const char *id, rv_err **err)
{
    return RV_FAIL(err, RV_E_NOT_FOUND, "there is no stream \"%s\"", id);
}

static int fail_other(const char *id, rv_err **err)
{
    return RV_FAIL(err, RV_E_STATE, "another process writes the stream \"%s\", or it has ended", id);
}

void rv_stream_row_fini(struct rv_stream_row *row)
{
    free(row->own);
    *row = (struct rv_stream_row){0};
}

/* --- arguments --- */

static int check_row(const struct rv_stream_row *row, struct rv_stream_row *out, rv_err **err)
{
    int rc;

    *out = *row;
    out->tenant = row->tenant ? row->tenant : RV_STORE_TENANT;
    out->user = row->user ? row->user : "";
    out->session = row->session ? row->session : "";
    out->ask = row->ask ? row->ask : "";
    out->hash = row->hash ? row->hash : "";
    if ((rc = store_check_id("stream", row->id, err)) < 0 || (rc = store_check_new_id("stream", row->id, err)) < 0 ||
        (rc = store_check_id("run id", row->run, err)) < 0 || (rc = store_check_id("owner", row->owner, err)) < 0 ||
        (rc = store_check_id("tenant", out->tenant, err)) < 0)
        return rc;
    if ((rc = store_check_text("user", out->user, RV_STORE_MAX_ID, err)) < 0 ||
        (rc = store_check_text("session", out->session, RV_STORE_MAX_ID, err)) < 0 ||
        (rc = store_check_text("name of a request", out->ask, RV_STREAM_MAX_ASK, err)) < 0 ||
        (rc = store_check_text("hash", out->hash, RV_STORE_MAX_ID, err)) < 0)
        return rc;
    return store_check_time("the time", row->created_us, err);
}

/* --- rows --- */

/* From the number of the last group, which is that of its last line, and what an earlier version counted in the row. */
static int64_t n_lines_at(const rv_sql_stmt *stmt, int column)
{
    int64_t last = sql_int_at(stmt, column), counted = sql_int_at(stmt, column + 1);

    return last > counted ? last : counted;
}

static int row_of(struct sql_store *st, rv_sql_stmt *stmt, struct rv_stream_row *out, rv_err **err)
{
    bool lacked = false;
    struct rv_stream_row row = {.id = sql_text_at(stmt, 0, &lacked),
                                .run = sql_text_at(stmt, 1, &lacked),
                                .tenant = sql_text_at(stmt, 2, &lacked),
                                .user = sql_text_at(stmt, 3, &lacked),
                                .session = sql_text_at(stmt, 4, &lacked),
                                .ask = sql_text_at(stmt, 5, &lacked),
                                .hash = sql_text_at(stmt, 6, &lacked),
                                .owner = sql_text_at(stmt, 7, &lacked),
                                .last_part = sql_int_at(stmt, 8),
                                .n_lines = n_lines_at(stmt, 8),
                                .created_us = sql_int_at(stmt, 10),
                                .ended_us = sql_int_at(stmt, 11)};
    const int64_t numbers[] = {row.last_part, row.n_lines, row.created_us, row.ended_us};
    const struct rv_row_texts texts = {
        .texts = {&row.id, &row.run, &row.tenant, &row.user, &row.session, &row.ask, &row.hash, &row.owner},
        .n_texts = 8};

    if (lacked)
        return RV_FAIL(err, RV_E_NOMEM, "read a stream");
    if (!row.id || !row.run || !row.tenant || !row.user || !row.session || !row.ask || !row.hash || !row.owner)
        return store_damaged(st, err, "stream \"%s\" is damaged: a text is missing", row.id ? row.id : "");
    int rc = store_check_numbers(st, "stream", row.id, numbers, RV_COUNT(numbers), err);
    if (rc == 0 && !(row.own = store_pack(&texts)))
        rc = RV_FAIL(err, RV_E_NOMEM, "read a stream");
    if (rc == 0)
        *out = row;
    return rc;
}

/* 1: it is not there. Takes the statement. */
static int one_row(struct sql_store *st, rv_sql_stmt *stmt, struct rv_stream_row *out, rv_err **err)
{
    int rc = sql_step(stmt, "read a stream", err);

    if (rc >= 0)
        rc = rc == 1 ? row_of(st, stmt, out, err) : 1;
    sql_done(stmt);
    return rc;
}

struct stream_key {
    enum sql_id by;
    const char *name; /* borrowed */
};

static int read_one(rv_store *s, int rc, struct stream_key key, const struct rv_store_scope *scope,
                    struct rv_stream_row *out, rv_err **err)
{
    struct rv_stream_row row = {0};

    rc = store_enter_read(s, rc,
                          key.by == SQL_FIND_STREAM      ? "find stream"
                          : key.by == SQL_SESSION_STREAM ? "session stream"
                          : key.by == SQL_GET_STREAM     ? "get stream"
                                                         : "last stream",
                          err);
    if (rc != 0)
        return rc;
    rv_sql_stmt *stmt = sql_use(s->sql, key.by);
    store_sql_text(stmt, 1, key.name);
    store_sql_text(stmt, 2, scope->tenant);
    store_sql_text(stmt, 3, scope->user);
    rc = one_row(s->sql, stmt, &row, err);
    rc = store_leave_read(s, rc == 1 ? fail_none(key.name, err) : rc, err);
    if (rc == 0)
        *out = row;
    else
        rv_stream_row_fini(&row);
    return rc;
}

int rv_store_get_stream(rv_store *s, const struct rv_store_scope *scope, const char *id, struct rv_stream_row *out,
                        rv_err **err)
{
    struct rv_store_scope sc;

    return read_one(s, store_check_scoped(scope, "stream", id, &sc, err), (struct stream_key){SQL_GET_STREAM, id}, &sc,
                    out, err);
}

int rv_store_find_stream(rv_store *s, const struct rv_store_scope *scope, const char *ask, struct rv_stream_row *out,
                         rv_err **err)
{
    struct rv_store_scope sc;
    int rc = store_check_scope(scope, &sc, err);

    if (rc == 0)
        rc = store_check_text("name of a request", ask, RV_STREAM_MAX_ASK, err);
    return read_one(s, rc, (struct stream_key){SQL_FIND_STREAM, ask}, &sc, out, err);
}

int rv_store_find_last_stream(rv_store *s, const struct rv_store_scope *scope, const char *run,
                              struct rv_stream_row *out, rv_err **err)
{
    struct rv_store_scope sc;

    return read_one(s, store_check_scoped(scope, "run id", run, &sc, err), (struct stream_key){SQL_LAST_STREAM, run},
                    &sc, out, err);
}

int rv_store_find_session_stream(rv_store *s, const struct rv_store_scope *scope, const char *session,
                                 struct rv_stream_row *out, rv_err **err)
{
    struct rv_store_scope sc;

    return read_one(s, store_check_scoped(scope, "session", session, &sc, err),
                    (struct stream_key){SQL_SESSION_STREAM, session}, &sc, out, err);
}

/* --- changes --- */

static int forget_ask(struct sql_store *st, const struct rv_stream_row *row, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_FORGET_ASK);

    store_sql_text(stmt, 1, row->ask);
    store_sql_text(stmt, 2, row->tenant);
    store_sql_text(stmt, 3, row->user);
    return sql_run(stmt, "add a stream", err);
}

static int add(struct sql_store *st, const struct rv_stream_row *row, int64_t *n, rv_err **err)
{
    int rc = row->replaces && row->ask[0] ? forget_ask(st, row, err) : 0;

    if (rc < 0)
        return rc;
    rv_sql_stmt *stmt = sql_use(st, SQL_ADD_STREAM);

    store_sql_text(stmt, 1, row->id);
    store_sql_text(stmt, 2, row->run);
    store_sql_text(stmt, 3, row->tenant);
    store_sql_text(stmt, 4, row->user);
    store_sql_text(stmt, 5, row->session);
    store_sql_text(stmt, 6, row->ask);
    store_sql_text(stmt, 7, row->hash);
    store_sql_text(stmt, 8, row->owner);
    sql_int(stmt, 9, row->created_us);
    return sql_run_counted(stmt, n, "add a stream", err);
}

int rv_store_add_stream(rv_store *s, const struct rv_stream_row *given, rv_err **err)
{
    struct rv_stream_row row;
    int64_t n = 0;
    int rc = store_enter_write(s, check_row(given, &row, err), "add stream", err);

    if (rc != 0)
        return rc;
    do {
        rc = add(s->sql, &row, &n, err);
        if (rc == 0 && n == 0)
            rc = RV_FAIL(err, RV_E_EXISTS, "there is a stream \"%s\" already, or one of that request", row.id);
    } while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

static int change_owner(struct sql_store *st, const char *id, const char *from, const char *owner, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_TAKE_STREAM);
    int64_t n = 0;

    store_sql_text(stmt, 1, id);
    store_sql_text(stmt, 2, from);
    store_sql_text(stmt, 3, owner);
    int rc = sql_run_counted(stmt, &n, "take a stream over", err);
    return rc == 0 && n == 0 ? RV_FAIL(err, RV_E_STATE, "another process writes the stream \"%s\"", id) : rc;
}

int rv_store_claim_stream(rv_store *s, const char *id, const char *from, const char *owner, rv_err **err)
{
    int rc = store_check_id("stream", id, err);

    if (rc == 0)
        rc = store_check_id("owner", owner, err);
    rc = store_enter_write(s, rc, "take stream", err);
    if (rc != 0)
        return rc;
    do
        rc = change_owner(s->sql, id, from, owner, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

static int find_owned(struct sql_store *st, const char *id, const char *owner, struct rv_stream_tail *out, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_FIND_STREAM_KEY);
    bool lacked = false;

    store_sql_text(stmt, 1, id);
    int rc = sql_step(stmt, "find a stream", err);
    if (rc == 0)
        rc = fail_none(id, err);
    if (rc == 1) {
        const char *tenant = sql_text_at(stmt, 1, &lacked), *has = sql_text_at(stmt, 2, &lacked);
        *out = (struct rv_stream_tail){.key = sql_int_at(stmt, 0), .n_lines = n_lines_at(stmt, 3)};
        rc = 0;
        if (lacked)
            rc = RV_FAIL(err, RV_E_NOMEM, "find a stream");
        else if (!tenant || !has || strlen(tenant) > RV_STORE_MAX_ID)
            rc = store_damaged(st, err, "stream \"%s\" is damaged: a text is missing", id);
        else if (sql_int_at(stmt, 5) != 0 || strcmp(has, owner) != 0)
            rc = fail_other(id, err);
        else
            memcpy(out->tenant, tenant, strlen(tenant) + 1);
    }
    sql_done(stmt);
    return rc;
}

/* *n 0: the row has another owner, has ended, or is gone. */
static int add_part(struct sql_store *st, const struct rv_new_stream_part *part, const struct rv_stream_tail *tail,
                    int64_t *n, rv_err **err)
{
    const struct rv_place at =
        vault_engine_place(tail->tenant, "stream_parts", part->id, NULL, tail->n_lines + part->n_lines);
    rv_sql_stmt *stmt = sql_use(st, SQL_ADD_STREAM_PART);

    sql_int(stmt, 1, tail->key);
    sql_int(stmt, 2, tail->n_lines + part->n_lines);
    sql_int(stmt, 3, tail->n_lines + 1);
    sql_int(stmt, 4, part->at_us);
    store_secret_bind(stmt, 5, SQL_STR, &at, "body", part->lines);
    store_sql_text(stmt, 6, part->owner);
    return sql_run_counted(stmt, n, "add to a stream", err);
}

static int write_part(struct sql_store *st, const struct rv_new_stream_part *part, struct rv_stream_tail *tail,
                      rv_err **err)
{
    int64_t n = 0;
    int rc = tail->key ? 0 : find_owned(st, part->id, part->owner, tail, err);

    if (rc == 0)
        rc = add_part(st, part, tail, &n, err);
    if (rc == 0 && n == 0) /* why */
        rc = find_owned(st, part->id, part->owner, tail, err);
    return rc == 0 && n == 0 ? fail_other(part->id, err) : rc;
}

int rv_store_add_stream_part(rv_store *s, const struct rv_new_stream_part *part, struct rv_stream_tail *tail,
                             int64_t *first, rv_err **err)
{
    struct rv_stream_tail own = {.key = 0};
    int rc = store_check_id("stream", part->id, err);

    if (rc == 0)
        rc = store_check_id("owner", part->owner, err);
    if (rc == 0)
        rc = store_check_bytes("group of lines", part->lines, RV_STREAM_MAX_PART, err);
    if (rc == 0 && part->n_lines < 1)
        rc = RV_FAIL(err, RV_E_INVALID, "a group has no line");
    rc = store_enter_write(s, rc, "add stream part", err);
    if (rc != 0)
        return rc;
    do {
        own = tail ? *tail : (struct rv_stream_tail){.key = 0};
        rc = write_part(s->sql, part, &own, err);
    } while (store_repeats(s, &rc, err));
    if (rc == 0 && first)
        *first = own.n_lines + 1;
    own.n_lines += part->n_lines;
    rc = store_leave_write(s, rc, err);
    if (rc == 0 && tail)
        *tail = own;
    return rc;
}

int rv_store_end_stream(rv_store *s, const char *id, const char *owner, int64_t now_us, rv_err **err)
{
    int rc = store_check_id("stream", id, err);

    if (rc == 0)
        rc = store_check_time("the end of a stream", now_us, err);
    rc = store_enter_write(s, rc, "end stream", err);
    if (rc != 0)
        return rc;
    do {
        rv_sql_stmt *stmt = sql_use(s->sql, SQL_END_STREAM);
        store_sql_text(stmt, 1, id);
        store_sql_text(stmt, 2, owner);
        sql_int(stmt, 3, now_us);
        rc = sql_run(stmt, "end a stream", err);
    } while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

int rv_store_delete_stream(rv_store *s, const char *id, const char *owner, rv_err **err)
{
    int rc = store_enter_write(s, store_check_id("stream", id, err), "delete stream", err);

    if (rc != 0)
        return rc;
    do {
        rv_sql_stmt *stmt = sql_use(s->sql, SQL_DROP_STREAM);
        store_sql_text(stmt, 1, id);
        store_sql_text(stmt, 2, owner);
        rc = sql_run(stmt, "delete a stream", err);
    } while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

/* --- reading --- */

typedef int rv_each_stream_part(void *self, const struct rv_stream_part *part, rv_err **err);

static int walk(struct sql_store *st, const char *id, int64_t after, rv_each_stream_part *each, void *self,
                rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_STREAM_PARTS);
    bool lacked = false;
    int rc;

    store_sql_text(stmt, 1, id);
    sql_int(stmt, 2, after);
    while ((rc = sql_step(stmt, "read a stream", err)) == 1) {
        const char *tenant = sql_text_at(stmt, 4, &lacked);
        struct rv_stream_part part = {
            .n = sql_int_at(stmt, 0), .first = sql_int_at(stmt, 1), .at_us = sql_int_at(stmt, 2)};
        const struct rv_place at = vault_engine_place(tenant ? tenant : "", "stream_parts", id, NULL, part.n);
        rc = lacked ? RV_FAIL(err, RV_E_NOMEM, "read a stream")
                    : store_secret_at(stmt, 3, &at, "body", &part.lines, err);
        if (rc == 0)
            rc = each(self, &part, err);
        if (rc != 0)
            break;
    }
    sql_done(stmt);
    return rc;
}

int rv_store_read_stream(rv_store *s, const char *id, int64_t after, rv_each_stream_part *each, void *self,
                         rv_err **err)
{
    int rc = store_enter_read(s, store_check_id("stream", id, err), "read stream", err);

    if (rc != 0)
        return rc;
    rc = walk(s->sql, id, after, each, self, err);
    return store_leave_read(s, rc, err);
}

int rv_store_prune_streams(rv_store *s, int64_t before_us, int64_t now_us, int64_t max, int64_t *n, rv_err **err)
{
    int rc = store_enter_write(s, store_check_time("the time", now_us, err), "prune streams", err);

    *n = 0;
    if (rc != 0)
        return rc;
    do {
        rv_sql_stmt *stmt = sql_use(s->sql, SQL_PRUNE_STREAMS);
        sql_int(stmt, 1, before_us);
        sql_int(stmt, 2, now_us - RV_STREAM_LIVES_US);
        sql_int(stmt, 3, max);
        rc = sql_run_counted(stmt, n, "prune streams", err);
    } while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}
