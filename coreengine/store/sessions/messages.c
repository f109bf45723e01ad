/* Messages: the rows of a turn as one write, and the walks over them. The writer holds the lock of the store or of
 * the session's row, so no other writer uses the seq that follows from that row. */
#include <assert.h>
#include <stdio.h>

#include "coreengine/store/encryption/vault_internal.h"
#include "coreengine/store/entities/entities_internal.h"

static_assert(RV_ROW_MAX_TEXT <= RV_STORE_MAX_TEXT, "names of rows are keys of indexes");
static_assert(RV_ROW_MAX_DEPTH <= RV_JSON_MAX_DEPTH, "objects of rows are checked by the common limit");

static int check_counts(const struct rv_message *m, rv_err **err)
{
    const struct {
        const char *kind;
        int64_t n;
    } counts[] = {{"token_count", m->token_count},
                  {"input_tokens", m->input_tokens},
                  {"output_tokens", m->output_tokens},
                  {"cost_micro_usd", m->cost_micro_usd},
                  {"latency_ms", m->latency_ms}};

    for (size_t i = 0; i < RV_COUNT(counts); i++)
        if (counts[i].n < RV_UNSET || counts[i].n > RV_ROW_MAX_COUNT)
            return RV_FAIL(err, RV_E_INVALID, "%s is %lld", counts[i].kind, (long long)counts[i].n);
    return store_check_time("the time", m->created_us, err);
}

static int check_message(const struct rv_message *m, rv_err **err)
{
    const struct {
        const char *kind, *text;
    } texts[] = {{"agent's name", m->agent_name},
                 {"model", m->model},
                 {"trace id", m->trace_id},
                 {"span id", m->span_id},
                 {"run id", m->run_id},
                 {"status", m->status},
                 {"parent's call", m->parent_call_id}};
    int rc;

    if ((rc = store_check_id("id", m->id, err)) < 0 || (rc = store_check_id("type", m->type, err)) < 0 ||
        (rc = m->has_content ? store_check_bytes("content", m->content, RV_STORE_MAX_VALUE, err) : 0) < 0 ||
        (rc = store_check_object("tool_calls", m->tool_calls, RV_STORE_MAX_BODY, err)) < 0 ||
        (rc = store_check_object("metadata", m->metadata, RV_STORE_MAX_PARTS, err)) < 0)
        return rc;
    for (size_t i = 0; i < RV_COUNT(texts) && rc == 0; i++)
        rc = texts[i].text ? store_check_text(texts[i].kind, texts[i].text, RV_ROW_MAX_TEXT, err) : 0;
    return rc < 0 ? rc : check_counts(m, err);
}

int store_check_turn(const struct rv_turn *turn, rv_err **err)
{
    int rc;

    if (!turn)
        return RV_FAIL(err, RV_E_INVALID, "no turn given");
    if ((rc = store_check_id("session id", turn->session, err)) < 0 ||
        (rc = store_check_optional("name", turn->name, RV_STORE_MAX_TEXT, err)) < 0 ||
        (rc = store_check_optional("agent's name", turn->agent_name, RV_STORE_MAX_TEXT, err)) < 0 ||
        (rc = store_check_members("metadata", turn->metadata, err)) < 0)
        return rc;
    if (turn->n_rows > RV_TURN_MAX_ROWS)
        return RV_FAIL(err, RV_E_LIMIT, "session \"%s\": %zu messages at once, more than %zu", turn->session,
                       turn->n_rows, RV_TURN_MAX_ROWS);
    if (turn->n_rows > 0 && !turn->rows)
        return RV_FAIL(err, RV_E_INVALID, "session \"%s\": %zu messages and none given", turn->session, turn->n_rows);
    for (size_t i = 0; i < turn->n_rows; i++) {
        rc = check_message(&turn->rows[i], err);
        if (rc < 0)
            return RV_WRAP(err, rc, "session \"%s\": message %zu", turn->session, i);
    }
    return 0;
}

/* --- Writing a turn --- */

/* The session that a turn adds to, and its counts meanwhile. */
struct target {
    struct rv_session_at at;
    int64_t n_messages, total_tokens;
    bool makes;   /* a session that is not there is made: the turn is of a run; given */
    bool is_gone; /* its owner has deleted it: a run's turn adds nothing */
    bool is_merged, is_renamed;
    rv_buf metadata;
};

static int aim_at_found(const struct found_session *found, const struct rv_turn *turn, struct target *t, rv_err **err)
{
    store_session_at(found, &t->at);
    t->n_messages = found->row.n_messages;
    t->total_tokens = found->row.total_tokens;
    t->is_merged = turn->metadata != NULL;
    t->is_renamed = turn->name && strcmp(turn->name, found->row.name) != 0;
    if (!turn->metadata)
        return 0;
    int rc = store_merge(found->row.metadata, turn->metadata, NULL, 0, &t->metadata, err);
    return rc < 0 ? RV_WRAP(err, rc, "session \"%s\"", turn->session) : 0;
}

static struct rv_session_row session_of(const struct rv_turn *turn, const struct rv_store_scope *owner, int64_t now_us,
                                        char name[RV_STORE_NAME_ROOM])
{
    store_session_name(turn->session, name);
    return (struct rv_session_row){
        .id = turn->session,
        .tenant = owner->tenant,
        .user = owner->user,
        .name = turn->name ? turn->name : name,
        .agent_name = turn->agent_name,
        .mode = "chat",
        .status = store_session_status_text(RV_SESSION_ACTIVE),
        .metadata = RV_STR_LIT("{}"),
        .created_us = now_us,
        .updated_us = now_us,
    };
}

/* makes: a missing session is made, and a deleted session is not an error. */
static int aim(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_turn *turn, int64_t now_us,
               struct target *t, rv_err **err)
{
    char name[RV_STORE_NAME_ROOM];
    struct found_session found = {0};
    rv_sql_stmt *stmt = NULL;
    int rc = store_session_find(st, scope, turn->session, &stmt, &found, err);
    bool is_there = rc == 1;

    t->is_gone = is_there && t->makes && found.is_deleted;
    if (t->is_gone)
        rc = 0;
    else if (rc >= 0 && !t->makes && (!is_there || found.is_deleted))
        rc = store_fail_no_session(turn->session, err);
    else if (is_there)
        rc = aim_at_found(&found, turn, t, err);
    sql_done(stmt);
    if (rc < 0 || is_there)
        return rc;
    found.row = session_of(turn, scope, now_us, name);
    rc = store_session_add(st, &found.row, &found.key, err);
    return rc < 0 ? rc : aim_at_found(&found, turn, t, err);
}

static struct rv_message message_to_keep(const struct rv_message *m, const char *run, int64_t now_us)
{
    struct rv_message kept = *m;

    if (kept.has_content && !kept.content.ptr)
        kept.content = RV_STR_LIT("");
    if (!kept.has_content)
        kept.content = (rv_str){NULL, 0};
    if (kept.tool_calls.len == 0)
        kept.tool_calls = (rv_str){NULL, 0};
    if (kept.metadata.len == 0)
        kept.metadata = (rv_str){NULL, 0};
    if (kept.token_count == RV_UNSET)
        kept.token_count = rv_tokens_estimate(kept.content);
    if (!kept.run_id)
        kept.run_id = run;
    if (kept.created_us == 0)
        kept.created_us = now_us;
    return kept;
}

static struct rv_place place_of(const struct rv_session_at *session, const char *id, bool for_agents)
{
    return (struct rv_place){session->tenant, "messages", {session->user, session->id, id}, 0, for_agents};
}

static void bind_count(rv_sql_stmt *stmt, int i, int64_t n)
{
    if (n != RV_UNSET)
        sql_int(stmt, i, n);
}

static int add_message(struct sql_store *st, struct target *t, const struct rv_message *m, rv_err **err)
{
    const struct rv_place at = place_of(&t->at, m->id, false);
    const char *level = NULL;
    int64_t n_added = 0;
    int rc = vault_level(st, t->at.tenant, "messages", &level, err);

    if (rc < 0)
        return rc;
    rv_sql_stmt *stmt = sql_use(st, SQL_ADD_MESSAGE);
    sql_int(stmt, 1, t->at.key);
    sql_int(stmt, 2, t->n_messages + 1);
    store_sql_text(stmt, 3, m->id);
    store_sql_text(stmt, 4, m->type);
    store_secret_bind(stmt, 5, SQL_STR, &at, "content", m->content);
    store_secret_bind(stmt, 6, SQL_STR, &at, "tool_calls", m->tool_calls);
    sql_int(stmt, 7, m->token_count);
    store_sql_text(stmt, 8, m->agent_name);
    store_sql_text(stmt, 9, m->model);
    store_sql_text(stmt, 10, m->trace_id);
    store_sql_text(stmt, 11, m->span_id);
    store_sql_text(stmt, 12, m->run_id);
    bind_count(stmt, 13, m->input_tokens);
    bind_count(stmt, 14, m->output_tokens);
    bind_count(stmt, 15, m->cost_micro_usd);
    bind_count(stmt, 16, m->latency_ms);
    store_sql_text(stmt, 17, m->status);
    store_sql_text(stmt, 18, m->parent_call_id);
    store_secret_bind(stmt, 19, SQL_STR, &at, "metadata", m->metadata);
    sql_int(stmt, 20, m->created_us);
    store_sql_text(stmt, 21, level);
    rc = sql_run_counted(stmt, &n_added, "write a message", err);
    if (rc < 0 || n_added == 0) /* its id is there already */
        return rc;
    t->n_messages++;
    t->total_tokens += m->parent_call_id ? 0 : m->token_count;
    if (t->total_tokens > RV_STORE_MAX_NUMBER)
        return RV_FAIL(err, RV_E_LIMIT, "message \"%s\": its session would have too many tokens", m->id);
    return 0;
}

static int write_target(struct sql_store *st, const struct target *t, const struct rv_turn *turn, int64_t now_us,
                        rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, SQL_KEEP_TURN);

    const struct rv_place at = vault_session_place(t->at.tenant, t->at.user, t->at.id);

    sql_int(stmt, 1, t->at.key);
    store_sql_text(stmt, 2, turn->name);
    if (t->is_merged)
        store_secret_bind(stmt, 3, SQL_STR, &at, "metadata", rv_buf_str(&t->metadata));
    sql_int(stmt, 4, t->total_tokens);
    sql_int(stmt, 5, t->n_messages);
    sql_int(stmt, 6, now_us);
    int rc = sql_run(stmt, "write a session", err);
    return rc < 0 || !t->is_renamed ? rc : store_keys_follow_session(st, t->at.key, err);
}

/* run: what rows that do not say so belong to; NULL: none. */
static int keep_turn(struct sql_store *st, const struct rv_store_scope *scope, const struct rv_turn *turn,
                     const char *run, int64_t now_us, rv_err **err)
{
    struct target t = {.makes = run != NULL, .metadata = RV_BUF_INIT(RV_STORE_MAX_META)};
    int rc = aim(st, scope, turn, now_us, &t, err);

    for (size_t i = 0; i < turn->n_rows && rc == 0 && !t.is_gone; i++) {
        struct rv_message m = message_to_keep(&turn->rows[i], run, now_us);
        rc = add_message(st, &t, &m, err);
    }
    if (rc == 0 && !t.is_gone)
        rc = write_target(st, &t, turn, now_us, err);
    if (rc == 0 && !t.is_gone && turn->moment_token_threshold > 0 && t.total_tokens >= turn->moment_token_threshold)
        rc = store_moments_after_turn(st, scope, turn, now_us, err);
    rv_buf_fini(&t.metadata);
    return rc;
}

int store_turns_keep(struct sql_store *st, int64_t run, const struct rv_store_append *a, rv_err **err)
{
    char tenant[RV_STORE_MAX_ID + 1], user[RV_STORE_MAX_ID + 1];
    const struct rv_store_scope owner = {tenant, user};
    bool lacked = false;
    rv_sql_stmt *stmt = sql_use(st, SQL_OWNER_OF_RUN);
    int rc;

    sql_int(stmt, 1, run);
    rc = sql_step(stmt, "read a run", err);
    if (rc == 1) {
        const char *of = sql_text_at(stmt, 0, &lacked), *by = sql_text_at(stmt, 1, &lacked);
        snprintf(tenant, sizeof tenant, "%s", of ? of : "");
        snprintf(user, sizeof user, "%s", by ? by : "");
        rc = lacked ? RV_FAIL(err, RV_E_NOMEM, "read run \"%s\"", a->run) : 0;
    } else if (rc == 0) {
        rc = store_fail_no_run(a->run, err);
    }
    sql_done(stmt);
    for (size_t i = 0; i < a->n_turns && rc == 0; i++)
        rc = keep_turn(st, &owner, &a->turns[i], a->run, a->now_us, err);
    return rc;
}

int rv_store_add_messages(rv_store *s, const struct rv_store_scope *scope, const struct rv_turn *turn, int64_t now_us,
                          rv_err **err)
{
    struct rv_store_scope sc;
    int rc = store_check_scope(scope, &sc, err);

    if (rc == 0)
        rc = store_check_turn(turn, err);
    if (rc == 0)
        rc = store_check_time("the time", now_us, err);
    if ((rc = store_enter_write(s, rc, "add messages", err)) != 0)
        return rc;
    do {
        rc = sql_begin_part(s->sql, err);
        if (rc == 0)
            rc = sql_end_part(s->sql, keep_turn(s->sql, &sc, turn, NULL, now_us, err), err);
    } while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

/* --- Reading --- */

static int64_t count_of(rv_sql_stmt *stmt, int i)
{
    return sql_is_null(stmt, i) ? RV_UNSET : sql_int_at(stmt, i);
}

/* The texts that may be encrypted. */
static int read_texts(rv_sql_stmt *stmt, const struct rv_session_at *session, bool for_agents, struct rv_message *out,
                      rv_err **err)
{
    const struct rv_place at = place_of(session, out->id, for_agents);
    rv_str kept = sql_str_at(stmt, 3);
    int rc = for_agents ? 0 : store_secret_is_hidden(stmt->st, kept, &out->is_hidden, err);

    if (rc == 0)
        rc = store_secret_at(stmt, 3, &at, "content", &out->content, err);
    if (rc == 0)
        rc = store_secret_json_at(stmt, 4, &at, "tool_calls", &out->tool_calls, err);
    return rc < 0 ? rc : store_secret_json_at(stmt, 17, &at, "metadata", &out->metadata, err);
}

static int message_of(struct sql_store *st, rv_sql_stmt *stmt, const struct rv_session_at *session, bool for_agents,
                      struct rv_message *out, rv_err **err)
{
    bool lacked = false;

    *out = (struct rv_message){
        .id = sql_text_at(stmt, 0, &lacked),
        .seq = sql_int_at(stmt, 1),
        .type = sql_text_at(stmt, 2, &lacked),
        .has_content = !sql_is_null(stmt, 3),
        .token_count = sql_int_at(stmt, 5),
        .agent_name = sql_text_at(stmt, 6, &lacked),
        .model = sql_text_at(stmt, 7, &lacked),
        .trace_id = sql_text_at(stmt, 8, &lacked),
        .span_id = sql_text_at(stmt, 9, &lacked),
        .run_id = sql_text_at(stmt, 10, &lacked),
        .input_tokens = count_of(stmt, 11),
        .output_tokens = count_of(stmt, 12),
        .cost_micro_usd = count_of(stmt, 13),
        .latency_ms = count_of(stmt, 14),
        .status = sql_text_at(stmt, 15, &lacked),
        .parent_call_id = sql_text_at(stmt, 16, &lacked),
        .created_us = sql_int_at(stmt, 18),
        .encryption_level = sql_text_at(stmt, 19, &lacked),
    };
    if (lacked)
        return RV_FAIL(err, RV_E_NOMEM, "read a message");
    if (!out->id || !out->type || out->token_count < 0 || out->created_us < 0)
        return store_damaged(st, err, "message %lld is damaged", (long long)out->seq);
    return read_texts(stmt, session, for_agents, out, err);
}

int store_messages_walk(struct sql_store *st, const struct rv_session_at *session, const struct rv_message_filter *f,
                        rv_each_message *each, void *ctx, rv_err **err)
{
    rv_sql_stmt *stmt = sql_use(st, f->newest_first ? SQL_MESSAGES_NEWEST : SQL_MESSAGES);
    int rc;

    sql_int(stmt, 1, session->key);
    sql_int(stmt, 2, f->from_seq);
    sql_int(stmt, 3, f->upto_seq);
    sql_int(stmt, 4, f->with_children);
    sql_int(stmt, 5, f->limit > 0 ? f->limit : INT64_MAX);
    sql_int(stmt, 6, f->with_deleted ? f->told_us : INT64_MAX);
    while ((rc = sql_step(stmt, "read messages", err)) == 1) {
        struct rv_message m;
        rc = message_of(st, stmt, session, f->for_agents, &m, err);
        if (rc == 0)
            rc = each(ctx, &m, err);
        if (rc != 0)
            break;
    }
    sql_done(stmt);
    return rc;
}

static int find_session(struct sql_store *st, const struct rv_store_scope *scope, const char *session,
                        bool with_deleted, struct rv_session_at *at, rv_err **err)
{
    struct found_session found;
    rv_sql_stmt *stmt = NULL;
    int rc = store_session_find(st, scope, session, &stmt, &found, err);

    if (rc == 0 || (rc == 1 && found.is_deleted && !with_deleted))
        rc = store_fail_no_session(session, err);
    else if (rc == 1)
        store_session_at(&found, at);
    sql_done(stmt);
    return rc < 0 ? rc : 0;
}

int rv_store_read_messages(rv_store *s, const struct rv_store_scope *scope, const struct rv_messages_of *of,
                           int (*each)(void *self, const struct rv_message *m, rv_err **err), void *self, rv_err **err)
{
    struct rv_message_filter f = of->filter ? *of->filter : (struct rv_message_filter){0};
    struct rv_store_scope sc;
    struct rv_session_at at;
    bool began = false;
    int rc = store_check_scoped(scope, "session id", of->session, &sc, err);

    if (rc == 0 && (f.from_seq < 0 || f.upto_seq < 0 || f.limit < 0))
        rc = RV_FAIL(err, RV_E_INVALID, "%lld messages from %lld up to %lld", (long long)f.limit, (long long)f.from_seq,
                     (long long)f.upto_seq);
    if (f.upto_seq == 0)
        f.upto_seq = INT64_MAX;
    if ((rc = store_enter_read(s, rc, "read messages", err)) != 0)
        return rc;
    rc = sql_begin_read(s->sql, &began, err);
    if (rc == 0)
        rc = find_session(s->sql, &sc, of->session, f.with_deleted, &at, err);
    if (rc == 0)
        rc = store_messages_walk(s->sql, &at, &f, each, self, err);
    sql_end_read(s->sql, began);
    return store_leave_read(s, rc == RV_STORE_ENOUGH ? 0 : rc, err);
}

/* --- Deleting --- */

static int delete_message(struct sql_store *st, const struct rv_store_scope *scope, const char *session, int64_t seq,
                          int64_t now_us, rv_err **err)
{
    struct found_session found = {0};
    int64_t n_deleted = 0;
    int rc = store_session_see_own(st, scope, session, &found, err);

    if (rc == 0) {
        rv_sql_stmt *stmt = sql_use(st, SQL_DELETE_MESSAGE);
        sql_int(stmt, 1, found.key);
        sql_int(stmt, 2, seq);
        sql_int(stmt, 3, now_us);
        rc = sql_run_counted(stmt, &n_deleted, "delete a message", err);
    }
    if (rc == 0 && n_deleted == 0)
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "session \"%s\" has no message %lld", session, (long long)seq);
    if (rc == 0)
        rc = store_moments_forget(st, &found, seq, now_us, err);
    rv_session_row_fini(&found.row);
    return rc;
}

int rv_store_delete_message(rv_store *s, const struct rv_store_scope *scope, const char *session, int64_t seq,
                            int64_t now_us, rv_err **err)
{
    struct rv_store_scope sc;
    int rc = store_check_scoped(scope, "session id", session, &sc, err);

    if (rc == 0)
        rc = store_check_time("the time", now_us, err);
    rc = store_enter_write(s, rc, "delete message", err);
    if (rc != 0)
        return rc;
    do
        rc = delete_message(s->sql, &sc, session, seq, now_us, err);
    while (store_repeats(s, &rc, err));
    return store_leave_write(s, rc, err);
}

/* --- Days --- */

typedef int rv_each_day(void *self, const struct rv_message_day *day, rv_err **err);

static int list_days(struct sql_store *st, const struct rv_store_scope *scope, int64_t until_us, rv_each_day *each,
                     void *self, rv_err **err)
{
    rv_buf sql = RV_BUF_INIT(1000);
    int rc;

    rv_buf_printf(&sql,
                  "SELECT m.created_us / 86400000000, count(*), count(DISTINCT m.session),"
                  " CAST(sum(m.token_count) AS BIGINT) FROM sessions s JOIN messages m ON m.session = s.key"
                  " WHERE s.tenant_id = ?1%s AND s.deleted_us IS NULL AND m.deleted_us IS NULL AND m.created_us <= ?3"
                  " GROUP BY m.created_us / 86400000000 ORDER BY m.created_us / 86400000000 DESC",
                  scope->user ? " AND s.user_id = ?2" : "");
    rv_sql_stmt *stmt = sql_prepare(st, &sql);
    rv_buf_fini(&sql);
    store_sql_text(stmt, 1, scope->tenant);
    if (scope->user)
        store_sql_text(stmt, 2, scope->user);
    sql_int(stmt, 3, until_us);
    while ((rc = sql_step(stmt, "count messages", err)) == 1) {
        const struct rv_message_day day = {.day = sql_int_at(stmt, 0),
                                           .n_messages = sql_int_at(stmt, 1),
                                           .n_sessions = sql_int_at(stmt, 2),
                                           .n_tokens = sql_int_at(stmt, 3)};
        rc = each(self, &day, err);
        if (rc != 0)
            break;
    }
    sql_finish(stmt);
    return rc < 0 ? rc : 0;
}

int rv_store_list_message_days(rv_store *s, const struct rv_store_scope *scope, int64_t until_us,
                               int (*each)(void *self, const struct rv_message_day *day, rv_err **err), void *self,
                               rv_err **err)
{
    struct rv_store_scope sc;
    int rc = store_check_scope(scope, &sc, err);

    if (rc == 0)
        rc = store_check_time("the time", until_us, err);
    rc = store_enter_read(s, rc, "list message days", err);
    if (rc != 0)
        return rc;
    return store_leave_read(s, list_days(s->sql, &sc, until_us, each, self, err), err);
}
