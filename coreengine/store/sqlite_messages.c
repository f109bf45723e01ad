/* Messages: the rows of a turn as one write, and the walks over them. The writer holds the write lock, so no other
 * writer uses the seq that follows from the session's row. */
#include <stdio.h>

#include "coreengine/store/sqlite_internal.h"

/* What a turn adds to, and where it stands meanwhile. */
struct target {
    int64_t key, n_messages, total_tokens;
    bool is_gone; /* its owner has deleted it: a run's turn adds nothing */
    bool is_merged;
    rv_buf metadata;
};

static int aim_at_found(const struct sql_session *found, const struct rv_turn *turn, struct target *t, rv_err **err)
{
    t->key = found->key;
    t->n_messages = found->row.n_messages;
    t->total_tokens = found->row.total_tokens;
    t->is_merged = turn->metadata != NULL;
    if (!turn->metadata)
        return 0;
    int rc = rv_store_merge(found->row.metadata, turn->metadata, NULL, 0, &t->metadata, err);
    return rc < 0 ? RV_WRAP(err, rc, "session \"%s\"", turn->session) : 0;
}

/* makes: a missing session is made, and a deleted session is not an error. */
static int aim(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_turn *turn, bool makes,
               int64_t now_us, struct target *t, rv_err **err)
{
    char name[RV_STORE_NAME_ROOM];
    struct sql_session found = {0};
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_find_session(st, scope, turn->session, &stmt, &found, err);
    bool is_there = rc == 1;

    t->is_gone = is_there && makes && found.is_deleted;
    if (t->is_gone)
        rc = 0;
    else if (rc >= 0 && !makes && (!is_there || found.is_deleted))
        rc = rv_store_fail_no_session(turn->session, err);
    else if (is_there)
        rc = aim_at_found(&found, turn, t, err);
    rv_sql_done(stmt);
    if (rc < 0 || is_there)
        return rc;
    found.row = rv_store_session_of(turn, scope, now_us, name);
    rc = rv_sql_add_session(st, &found.row, &found.key, err);
    return rc < 0 ? rc : aim_at_found(&found, turn, t, err);
}

static void bind_count(struct sql_store *st, sqlite3_stmt *stmt, int i, int64_t n)
{
    if (n != RV_UNSET)
        rv_sql_int(st, stmt, i, n);
}

static int add_message(struct sql_store *st, struct target *t, const struct rv_message *m, rv_err **err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_use(st, SQL_ADD_MESSAGE, &stmt, err);

    if (rc < 0)
        return rc;
    rv_sql_int(st, stmt, 1, t->key);
    rv_sql_int(st, stmt, 2, t->n_messages + 1);
    rv_sql_text(st, stmt, 3, m->id);
    rv_sql_text(st, stmt, 4, m->type);
    rv_sql_str(st, stmt, 5, m->content);
    rv_sql_str(st, stmt, 6, m->tool_calls);
    rv_sql_int(st, stmt, 7, m->token_count);
    rv_sql_text(st, stmt, 8, m->agent_name);
    rv_sql_text(st, stmt, 9, m->model);
    rv_sql_text(st, stmt, 10, m->trace_id);
    rv_sql_text(st, stmt, 11, m->span_id);
    rv_sql_text(st, stmt, 12, m->run_id);
    bind_count(st, stmt, 13, m->input_tokens);
    bind_count(st, stmt, 14, m->output_tokens);
    bind_count(st, stmt, 15, m->cost_micro_usd);
    bind_count(st, stmt, 16, m->latency_ms);
    rv_sql_text(st, stmt, 17, m->status);
    rv_sql_text(st, stmt, 18, m->parent_call_id);
    rv_sql_str(st, stmt, 19, m->metadata);
    rv_sql_int(st, stmt, 20, m->created_us);
    rc = rv_sql_run(st, stmt, "write a message", err);
    if (rc < 0 || sqlite3_changes(st->db) == 0) /* its id is there already */
        return rc;
    t->n_messages++;
    t->total_tokens += m->parent_call_id ? 0 : m->token_count;
    if (t->total_tokens > RV_SQL_MAX_NUMBER)
        return RV_FAIL(err, RV_E_LIMIT, "message \"%s\": its session would have too many tokens", m->id);
    return 0;
}

static int write_target(struct sql_store *st, const struct target *t, const struct rv_turn *turn, int64_t now_us,
                        rv_err **err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_use(st, SQL_KEEP_TURN, &stmt, err);

    if (rc < 0)
        return rc;
    rv_sql_int(st, stmt, 1, t->key);
    rv_sql_text(st, stmt, 2, turn->name);
    if (t->is_merged)
        rv_sql_str(st, stmt, 3, rv_buf_str(&t->metadata));
    rv_sql_int(st, stmt, 4, t->total_tokens);
    rv_sql_int(st, stmt, 5, t->n_messages);
    rv_sql_int(st, stmt, 6, now_us);
    return rv_sql_run(st, stmt, "write a session", err);
}

/* run: what rows that do not say so belong to; NULL: none. */
static int keep_turn(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_turn *turn,
                     const char *run, int64_t now_us, rv_err **err)
{
    struct target t = {.metadata = RV_BUF_INIT(RV_STORE_MAX_META)};
    int rc = aim(st, scope, turn, run != NULL, now_us, &t, err);

    for (size_t i = 0; i < turn->n_rows && rc == 0 && !t.is_gone; i++) {
        struct rv_message m = rv_store_message_of(&turn->rows[i], run, now_us);
        rc = add_message(st, &t, &m, err);
    }
    if (rc == 0 && !t.is_gone)
        rc = write_target(st, &t, turn, now_us, err);
    rv_buf_fini(&t.metadata);
    return rc;
}

int rv_sql_keep_turns(struct sql_store *st, int64_t run, const struct rv_store_append *a, rv_err **err)
{
    char tenant[RV_STORE_MAX_ID + 1], user[RV_STORE_MAX_ID + 1];
    const struct rv_store_scope owner = {tenant, user};
    bool lacked = false;
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_use(st, SQL_OWNER_OF_RUN, &stmt, err);

    if (rc < 0)
        return rc;
    rv_sql_int(st, stmt, 1, run);
    rc = rv_sql_step(st, stmt, "read a run", err);
    if (rc == 1) {
        const char *of = rv_sql_column(stmt, 0, &lacked), *by = rv_sql_column(stmt, 1, &lacked);
        snprintf(tenant, sizeof tenant, "%s", of ? of : "");
        snprintf(user, sizeof user, "%s", by ? by : "");
        rc = lacked ? RV_FAIL(err, RV_E_NOMEM, "read run \"%s\"", a->run) : 0;
    } else if (rc == 0) {
        rc = rv_store_fail_no_run(a->run, err);
    }
    rv_sql_done(stmt);
    for (size_t i = 0; i < a->n_turns && rc == 0; i++)
        rc = keep_turn(st, &owner, &a->turns[i], a->run, a->now_us, err);
    return rc;
}

int rv_sql_add_messages(void *self, const struct rv_store_scope *scope, const struct rv_turn *turn, int64_t now_us,
                        rv_err **err)
{
    struct sql_store *st = self;
    int rc = rv_sql_begin_write(st, "add messages", err);

    if (rc < 0)
        return rc;
    rc = rv_sql_begin_part(st, err);
    if (rc == 0)
        rc = rv_sql_end_part(st, keep_turn(st, scope, turn, NULL, now_us, err), err);
    return rv_sql_end_write(st, rc, "add messages", err);
}

static int64_t count_of(sqlite3_stmt *stmt, int i)
{
    return sqlite3_column_type(stmt, i) == SQLITE_NULL ? RV_UNSET : sqlite3_column_int64(stmt, i);
}

static int message_of(struct sql_store *st, sqlite3_stmt *stmt, struct rv_message *out, rv_err **err)
{
    bool lacked = false;

    *out = (struct rv_message){
        .id = rv_sql_column(stmt, 0, &lacked),
        .seq = sqlite3_column_int64(stmt, 1),
        .type = rv_sql_column(stmt, 2, &lacked),
        .has_content = sqlite3_column_type(stmt, 3) != SQLITE_NULL,
        .content = rv_sql_bytes(stmt, 3),
        .tool_calls = rv_sql_bytes(stmt, 4),
        .token_count = sqlite3_column_int64(stmt, 5),
        .agent_name = rv_sql_column(stmt, 6, &lacked),
        .model = rv_sql_column(stmt, 7, &lacked),
        .trace_id = rv_sql_column(stmt, 8, &lacked),
        .span_id = rv_sql_column(stmt, 9, &lacked),
        .run_id = rv_sql_column(stmt, 10, &lacked),
        .input_tokens = count_of(stmt, 11),
        .output_tokens = count_of(stmt, 12),
        .cost_micro_usd = count_of(stmt, 13),
        .latency_ms = count_of(stmt, 14),
        .status = rv_sql_column(stmt, 15, &lacked),
        .parent_call_id = rv_sql_column(stmt, 16, &lacked),
        .metadata = rv_sql_bytes(stmt, 17),
        .created_us = sqlite3_column_int64(stmt, 18),
    };
    if (lacked)
        return RV_FAIL(err, RV_E_NOMEM, "read a message");
    if (!out->id || !out->type || out->token_count < 0 || out->created_us < 0) {
        RV_FAIL(err, RV_E_IO, "\"%s\": message %lld is damaged", st->path, (long long)out->seq);
        rv_err_hint(err, "`reeve gc --check` lists what else is");
        return RV_E_IO;
    }
    return 0;
}

static int walk(struct sql_store *st, int64_t session, const struct rv_message_filter *f, rv_each_message *each,
                void *ctx, rv_err **err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_use(st, f->newest_first ? SQL_MESSAGES_NEWEST : SQL_MESSAGES, &stmt, err);

    if (rc < 0)
        return rc;
    rv_sql_int(st, stmt, 1, session);
    rv_sql_int(st, stmt, 2, f->from_seq);
    rv_sql_int(st, stmt, 3, f->upto_seq);
    rv_sql_int(st, stmt, 4, f->with_children);
    rv_sql_int(st, stmt, 5, f->limit > 0 ? f->limit : -1);
    rv_sql_int(st, stmt, 6, f->with_deleted ? f->told_us : INT64_MAX);
    while ((rc = rv_sql_step(st, stmt, "read messages", err)) == 1) {
        struct rv_message m;
        rc = message_of(st, stmt, &m, err);
        if (rc == 0)
            rc = each(ctx, &m, err);
        if (rc != 0)
            break;
    }
    rv_sql_done(stmt);
    return rc;
}

int rv_sql_read_messages(void *self, const struct rv_store_scope *scope, const char *session,
                         const struct rv_message_filter *filter, rv_each_message *each, void *ctx, rv_err **err)
{
    struct sql_store *st = self;
    struct sql_session found;
    sqlite3_stmt *stmt = NULL;
    bool began = false;
    int rc = rv_sql_begin_read(st, &began, err);

    if (rc == 0)
        rc = rv_sql_find_session(st, scope, session, &stmt, &found, err);
    if (rc == 0 || (rc == 1 && found.is_deleted && !filter->with_deleted))
        rc = rv_store_fail_no_session(session, err);
    rv_sql_done(stmt);
    if (rc == 1)
        rc = walk(st, found.key, filter, each, ctx, err);
    rv_sql_end_read(st, began);
    return rc;
}

static int delete_message(struct sql_store *st, const struct rv_store_scope *scope, const char *session, int64_t seq,
                          int64_t now_us, rv_err **err)
{
    struct sql_session found;
    sqlite3_stmt *stmt = NULL;
    int rc = rv_sql_see_session(st, scope, session, &stmt, &found, err);

    rv_sql_done(stmt);
    if (rc == 0)
        rc = rv_sql_use(st, SQL_DELETE_MESSAGE, &stmt, err);
    if (rc < 0)
        return rc;
    rv_sql_int(st, stmt, 1, found.key);
    rv_sql_int(st, stmt, 2, seq);
    rv_sql_int(st, stmt, 3, now_us);
    rc = rv_sql_run(st, stmt, "delete a message", err);
    return rc == 0 && sqlite3_changes(st->db) == 0 ? rv_store_fail_no_message(session, seq, err) : rc;
}

int rv_sql_delete_message(void *self, const struct rv_store_scope *scope, const char *session, int64_t seq,
                          int64_t now_us, rv_err **err)
{
    struct sql_store *st = self;
    int rc = rv_sql_begin_write(st, "delete a message", err);

    if (rc < 0)
        return rc;
    return rv_sql_end_write(st, delete_message(st, scope, session, seq, now_us, err), "delete a message", err);
}
