/* The SQLite store's parts: one connection, its prepared statements, its transaction. Statements are prepared at first
 * use and kept for the life of the handle. */
#ifndef RV_STORE_SQLITE_INTERNAL_H
#define RV_STORE_SQLITE_INTERNAL_H

#include <sqlite3.h>

#include "coreengine/store/store_internal.h"

#define RV_SQL_APPLICATION 0x72656576 /* "reev", in the file's header: this is a store of ours */
#define RV_SQL_BUSY_MS     60000
#define RV_SQL_DIGEST      32

/* The columns of a run's row for readers, in the order of rv_sql_row_of(). */
#define RV_SQL_RUN                                                                                                     \
    "r.id, r.tenant, r.user, r.session, r.pipeline, b.hash, r.parent, r.parent_seq, r.status, r.stage, r.created_us,"  \
    " r.updated_us, r.expires_us, r.n_records, r.owner, r.fence, r.lease_until_us, r.cancel, r.n_pending"              \
    " FROM runs r LEFT JOIN blobs b ON b.key = r.bundle"

#define RV_SQL_PENDING                                                                                                 \
    "SELECT r.id, p.id, p.kind, p.stage, r.user, p.text, p.body, p.created_us, p.expires_us FROM pending p"            \
    " JOIN runs r ON r.key = p.run"

/* In the order of rv_sql_session_of(), sqlite_messages.c's message_of() and sqlite_schemas.c's row_of(). */
#define RV_SQL_SESSION                                                                                                 \
    "SELECT key, id, tenant_id, user_id, name, description, agent_name, mode, total_tokens, n_messages, metadata,"     \
    " created_us, updated_us, deleted_us, status FROM sessions"

#define RV_SQL_MESSAGES                                                                                                \
    "SELECT id, seq, message_type, content, tool_calls, token_count, agent_name, model, trace_id, span_id, run_id,"    \
    " input_tokens, output_tokens, cost_micro_usd, latency_ms, status, parent_call_id, metadata, created_us"           \
    " FROM messages WHERE session = ?1 AND seq BETWEEN ?2 AND ?3 AND (?4 OR parent_call_id IS NULL)"                   \
    " AND (deleted_us IS NULL OR deleted_us > ?6)"

/* Messages that were deleted one by one and still have words, of sessions without a run that would be told them again.
 */
#define RV_SQL_WORDS_TO_GO                                                                                             \
    "WHERE deleted_us IS NOT NULL AND (content IS NOT NULL OR tool_calls IS NOT NULL OR metadata IS NOT NULL)"         \
    " AND NOT EXISTS (SELECT 1 FROM sessions s JOIN runs r ON r.tenant = s.tenant_id AND r.user = s.user_id"           \
    " AND r.session = s.id WHERE s.key = m.session AND r.status IN ('ready', 'running', 'interrupted'))"

/* Sessions s whose words can go: deleted, and none of their runs would have to be told them again. */
#define RV_SQL_PURGED                                                                                                  \
    "WHERE deleted_us IS NOT NULL AND (n_messages > 0 OR name <> '') AND NOT EXISTS (SELECT 1 FROM runs r"             \
    " WHERE r.tenant = s.tenant_id AND r.user = s.user_id AND r.session = s.id"                                        \
    " AND r.status IN ('ready', 'running', 'interrupted'))"

#define RV_SQL_SCHEMA                                                                                                  \
    "SELECT key, id, tenant_id, user_id, name, kind, version, description, content, json_schema, document, source,"    \
    " place, checksum, created_us, updated_us, deleted_us FROM schemas"

#define RV_SQL_STATEMENTS(X)                                                                                           \
    X(BEGIN_READ, "BEGIN")                                                                                             \
    X(BEGIN_WRITE, "BEGIN IMMEDIATE")                                                                                  \
    X(COMMIT, "COMMIT")                                                                                                \
    X(ROLLBACK, "ROLLBACK")                                                                                            \
    X(FIND, "SELECT key, fence, n_records, owner, lease_until_us, status, n_pending FROM runs WHERE id = ?1"           \
            " AND (?2 IS NULL OR tenant = ?2) AND (?3 IS NULL OR user = ?3)")                                          \
    X(GET, "SELECT " RV_SQL_RUN " WHERE r.id = ?1 AND r.tenant = ?2 AND (?3 IS NULL OR r.user = ?3)")                  \
    X(ADD_RUN, "INSERT INTO runs (id, tenant, user, session, pipeline, bundle, parent, parent_seq, status, stage,"     \
               " created_us, updated_us, expires_us, n_records, owner, fence, lease_until_us, cancel, n_pending)"      \
               " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11, 0, ?12, ?13, 1, ?14, 0, 0)")               \
    X(ADD_RECORD, "INSERT INTO records (run, seq, kind, body, value, blob) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")           \
    X(ADVANCE, "UPDATE runs SET status = ?2, stage = ?3, updated_us = ?4, n_records = n_records + ?5,"                 \
               " cancel = cancel AND NOT ?6 WHERE key = ?1")                                                           \
    X(DISOWN, "UPDATE runs SET owner = NULL, lease_until_us = 0 WHERE key = ?1")                                       \
    X(CLEAR_PENDING, "DELETE FROM pending WHERE run = ?1")                                                             \
    X(ADD_PENDING, "INSERT INTO pending (run, n, id, kind, stage, text, body, created_us, expires_us)"                 \
                   " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")                                                     \
    X(COUNT_PENDING, "UPDATE runs SET n_pending = ?2, expires_us = ?3 WHERE key = ?1")                                 \
    X(DELETE_RUN, "DELETE FROM runs WHERE key = ?1")                                                                   \
    X(CLAIM, "UPDATE runs SET owner = ?2, fence = fence + 1, lease_until_us = ?3 WHERE key = ?1")                      \
    X(RENEW, "UPDATE runs SET lease_until_us = ?2 WHERE owner = ?1 AND lease_until_us < ?2")                           \
    X(CANCEL, "UPDATE runs SET cancel = 1, updated_us = ?2 WHERE key = ?1")                                            \
    X(CANCELS, "SELECT id FROM runs WHERE owner = ?1 AND cancel ORDER BY created_us, id")                              \
    X(READ, "SELECT r.seq, r.kind, r.body, r.value, r.blob, b.data FROM records r LEFT JOIN blobs b ON b.key = r.blob" \
            " WHERE r.run = ?1 AND r.seq BETWEEN ?2 AND ?3 ORDER BY r.seq")                                            \
    X(PENDING, RV_SQL_PENDING " WHERE r.tenant = ?1 AND (?2 IS NULL OR r.user = ?2) ORDER BY p.created_us, r.id, p.n") \
    X(PENDING_OF, RV_SQL_PENDING " WHERE p.run = ?1 ORDER BY p.created_us, p.n")                                       \
    X(FIND_BLOB, "SELECT key FROM blobs WHERE hash = ?1")                                                              \
    X(ADD_BLOB, "INSERT INTO blobs (hash, created_us, data) VALUES (?1, ?2, ?3)")                                      \
    X(TOUCH_BLOB, "UPDATE blobs SET created_us = ?2 WHERE key = ?1 AND created_us < ?2")                               \
    X(GET_BLOB, "SELECT data FROM blobs WHERE hash = ?1")                                                              \
    X(PUT_SNAPSHOT, "INSERT INTO snapshots (run, seq, body) VALUES (?1, ?2, ?3) ON CONFLICT (run) DO UPDATE"           \
                    " SET seq = excluded.seq, body = excluded.body WHERE excluded.seq >= seq")                         \
    X(GET_SNAPSHOT, "SELECT seq, body FROM snapshots WHERE run = ?1")                                                  \
    X(DROP_SNAPSHOTS, "DELETE FROM snapshots")                                                                         \
    X(LAST_BLOB, "SELECT coalesce(max(key), 0) FROM blobs")                                                            \
    X(SWEEP, "DELETE FROM blobs WHERE key > ?1 AND key <= ?2 AND created_us <= ?3"                                     \
             " AND NOT EXISTS (SELECT 1 FROM records WHERE blob = blobs.key)"                                          \
             " AND NOT EXISTS (SELECT 1 FROM runs WHERE bundle = blobs.key)")                                          \
    X(STATS, "SELECT (SELECT count(*) FROM runs), (SELECT coalesce(sum(n_records), 0) FROM runs),"                     \
             " (SELECT count(*) FROM blobs), (SELECT count(*) FROM pending), (SELECT count(*) FROM snapshots),"        \
             " (SELECT count(*) FROM sessions WHERE deleted_us IS NULL), (SELECT coalesce(sum(n_messages), 0)"         \
             " FROM sessions WHERE deleted_us IS NULL), (SELECT count(*) FROM schemas WHERE deleted_us IS NULL)")      \
    X(BEGIN_PART, "SAVEPOINT part")                                                                                    \
    X(UNDO_PART, "ROLLBACK TO part")                                                                                   \
    X(END_PART, "RELEASE part")                                                                                        \
    X(OWNER_OF_RUN, "SELECT tenant, user FROM runs WHERE key = ?1")                                                    \
    X(FIND_SESSION, RV_SQL_SESSION " WHERE tenant_id = ?1 AND id = ?2 AND user_id = coalesce(?3, user_id)"             \
                                   " ORDER BY deleted_us IS NOT NULL LIMIT 1")                                         \
    X(COUNT_SESSIONS, "SELECT count(*) FROM sessions WHERE tenant_id = ?1 AND id = ?2 AND deleted_us IS NULL")         \
    X(ADD_SESSION, "INSERT INTO sessions (id, tenant_id, user_id, name, description, agent_name, mode, total_tokens,"  \
                   " n_messages, metadata, created_us, updated_us, status)"                                            \
                   " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0, ?8, ?9, ?9, ?10)")                                      \
    X(CHANGE_SESSION, "UPDATE sessions SET name = coalesce(?2, name), mode = coalesce(?3, mode),"                      \
                      " metadata = coalesce(?4, metadata), status = coalesce(?6, status), updated_us = ?5"             \
                      " WHERE key = ?1")                                                                               \
    X(KEEP_TURN, "UPDATE sessions SET name = coalesce(?2, name), metadata = coalesce(?3, metadata),"                   \
                 " total_tokens = ?4, n_messages = ?5, updated_us = ?6 WHERE key = ?1")                                \
    X(DELETE_SESSION, "UPDATE sessions SET deleted_us = ?2, updated_us = ?2 WHERE key = ?1")                           \
    X(PURGE_MESSAGES, "DELETE FROM messages WHERE session IN (SELECT key FROM sessions s " RV_SQL_PURGED ")")          \
    X(PURGE_SESSIONS, "UPDATE sessions AS s SET name = '', description = NULL, metadata = '{}', total_tokens = 0,"     \
                      " n_messages = 0 " RV_SQL_PURGED)                                                                \
    X(DELETE_MESSAGE, "UPDATE messages SET deleted_us = ?3 WHERE session = ?1 AND seq = ?2 AND deleted_us IS NULL")    \
    X(PURGE_WORDS, "UPDATE messages AS m SET content = NULL, tool_calls = NULL, metadata = NULL " RV_SQL_WORDS_TO_GO)  \
    X(ADD_MESSAGE, "INSERT INTO messages (session, seq, id, message_type, content, tool_calls, token_count,"           \
                   " agent_name, model, trace_id, span_id, run_id, input_tokens, output_tokens, cost_micro_usd,"       \
                   " latency_ms, status, parent_call_id, metadata, created_us) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7,"    \
                   " ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)"                                   \
                   " ON CONFLICT (session, id) DO NOTHING")                                                            \
    X(MESSAGES, RV_SQL_MESSAGES " ORDER BY seq LIMIT ?5")                                                              \
    X(MESSAGES_NEWEST, RV_SQL_MESSAGES " ORDER BY seq DESC LIMIT ?5")                                                  \
    X(SAME_SCHEMA, RV_SQL_SCHEMA " WHERE tenant_id = ?1 AND kind = ?2 AND name = ?3 AND user_id = ?4")                 \
    X(FIND_SCHEMA, RV_SQL_SCHEMA " WHERE tenant_id = ?1 AND kind = ?2 AND name = ?3 AND user_id IN (?4, '')"           \
                                 " AND deleted_us IS NULL ORDER BY user_id = '' LIMIT 1")                              \
    X(LIST_SCHEMAS, RV_SQL_SCHEMA " WHERE tenant_id = ?1 AND (?2 IS NULL OR kind = ?2)"                                \
                                  " AND (?3 IS NULL OR user_id IN (?3, '')) AND deleted_us IS NULL"                    \
                                  " ORDER BY name, kind, user_id = '', user_id")                                       \
    X(SCHEMA_ID, "SELECT user_id, kind, name FROM schemas WHERE tenant_id = ?1 AND id = ?2")                           \
    X(ADD_SCHEMA, "INSERT INTO schemas (id, tenant_id, user_id, name, kind, version, description, content,"            \
                  " json_schema, document, source, place, checksum, created_us, updated_us)"                           \
                  " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?14)")                        \
    X(SET_SCHEMA, "UPDATE schemas SET version = ?6, description = ?7, content = ?8, json_schema = ?9, document = ?10," \
                  " source = ?11, place = ?12, checksum = ?13, updated_us = ?14, deleted_us = NULL WHERE key = ?15")   \
    X(DELETE_SCHEMA, "UPDATE schemas SET deleted_us = ?2, updated_us = ?2 WHERE key = ?1")                             \
    X(COUNT_CHANGE, "UPDATE counters SET value = value + 1 WHERE name = ?1")                                           \
    X(COUNTER, "SELECT value FROM counters WHERE name = ?1")

enum sql_id {
#define X(name, text) SQL_##name,
    RV_SQL_STATEMENTS(X)
#undef X
        SQL_N_STATEMENTS
};

struct sql_store {
    sqlite3 *db;
    char *path;
    int64_t busy_ms;        /* how long a write waits for others */
    int64_t wait_ms;        /* instead of that; 0: as that */
    int64_t waits_since_ns; /* of the wait under way, or the last one */
    bool is_memory, read_only, in_group;
    int broken;  /* the code of what made an open group impossible; 0: none */
    int bind_rc; /* of the binds since the last step; sticky */
    int changes; /* sqlite3_total_changes() when the present write began */
    sqlite3_stmt *stmts[SQL_N_STATEMENTS];
};

/* sqlite_error.c */
/** The error that SQLite's code `rc` is, saying what was being done. */
int rv_sql_fail(struct sql_store *st, int rc, const char *what, rv_err **err);

/* sqlite_busy.c: SQLite's busy handler; self is the store. */
int rv_sql_wait_turn(void *self, int n);
void rv_sql_set_wait(void *self, int64_t ms);

/* sqlite_stmt.c */
/** The statement, ready to be bound and stepped; rv_sql_done() it. */
RV_MUST_CHECK int rv_sql_use(struct sql_store *st, enum sql_id id, sqlite3_stmt **out, rv_err **err);
void rv_sql_done(sqlite3_stmt *stmt); /* NULL is fine */
/* Bound values are borrowed until done. */
void rv_sql_int(struct sql_store *st, sqlite3_stmt *stmt, int i, int64_t v);
void rv_sql_text(struct sql_store *st, sqlite3_stmt *stmt, int i, const char *text); /* NULL: null */
void rv_sql_str(struct sql_store *st, sqlite3_stmt *stmt, int i, rv_str s);          /* ptr NULL: null */
void rv_sql_blob(struct sql_store *st, sqlite3_stmt *stmt, int i, const void *bytes, size_t len);
/** 1: a row, 0: no more, negative: failed. */
RV_MUST_CHECK int rv_sql_step(struct sql_store *st, sqlite3_stmt *stmt, const char *what, rv_err **err);
/** Step a statement that gives no rows, and be done with it. */
RV_MUST_CHECK int rv_sql_run(struct sql_store *st, sqlite3_stmt *stmt, const char *what, rv_err **err);
RV_MUST_CHECK int rv_sql_exec(struct sql_store *st, const char *sql, const char *what, rv_err **err);
/** The first column of the first row of a PRAGMA or SELECT, as a number. */
RV_MUST_CHECK int rv_sql_number(struct sql_store *st, const char *sql, int64_t *out, const char *what, rv_err **err);
/** A text column; NULL for null. *lacked (sticky) when there was no memory for it. */
const char *rv_sql_column(sqlite3_stmt *stmt, int i, bool *lacked);
rv_str rv_sql_bytes(sqlite3_stmt *stmt, int i); /* ptr NULL for null only */

RV_MUST_CHECK int rv_sql_begin_read(struct sql_store *st, bool *began, rv_err **err);
void rv_sql_end_read(struct sql_store *st, bool began);
/** Every write is between these two: its own transaction, or a part of the group. end() passes rc on, or says why the
 * transaction did not come to be. */
RV_MUST_CHECK int rv_sql_begin_write(struct sql_store *st, const char *what, rv_err **err);
RV_MUST_CHECK int rv_sql_end_write(struct sql_store *st, int rc, const char *what, rv_err **err);
/** A write between these that is refused is undone alone, and the group it may be part of goes on. Between begin_write
 * and end_write. */
RV_MUST_CHECK int rv_sql_begin_part(struct sql_store *st, rv_err **err);
RV_MUST_CHECK int rv_sql_end_part(struct sql_store *st, int rc, rv_err **err);
int rv_sql_begin(void *self, rv_err **err);
int rv_sql_commit(void *self, rv_err **err);
void rv_sql_rollback(void *self);

/* sqlite_schema.c: step i takes a file from version i to i + 1. */
extern const char *const rv_sql_schema[];
extern const int rv_sql_n_schema;
/** Check that the file is a store, create it when it is empty, bring it forward when it is older. */
RV_MUST_CHECK int rv_sql_bring_forward(struct sql_store *st, const char *const *steps, int n_steps, rv_err **err);

/* sqlite_runs.c */
#define RV_SQL_MAX_NUMBER (INT64_C(1) << 61) /* of a run's row: more is damage, and sums must not overflow */
/** RV_E_INVALID: one of them is not a number that an object of that kind ("run") can have. */
RV_MUST_CHECK int rv_sql_check_numbers(struct sql_store *st, const char *kind, const char *id, const int64_t *numbers,
                                       size_t n, rv_err **err);
struct sql_found {
    int64_t key, fence, n_records, lease_until_us, n_pending;
    enum rv_run_status status;
    bool is_owned;
    char owner[RV_STORE_MAX_ID + 1];
};
/** RV_E_NOT_FOUND. scope NULL: any. */
RV_MUST_CHECK int rv_sql_find(struct sql_store *st, const struct rv_store_scope *scope, const char *id,
                              struct sql_found *out, rv_err **err);
RV_MUST_CHECK int rv_sql_find_fenced(struct sql_store *st, const char *id, int64_t fence, struct sql_found *out,
                                     rv_err **err);
int rv_sql_create_run(void *self, const struct rv_store_new_run *run, rv_err **err);
int rv_sql_append(void *self, const struct rv_store_append *a, rv_err **err);
int rv_sql_delete_run(void *self, const struct rv_store_scope *scope, const char *id, int64_t now_us, rv_err **err);

/* sqlite_sessions.c */
struct sql_session {
    int64_t key;
    bool is_deleted;
    struct rv_session_row row; /* borrowed from the statement */
};
/** Find a session in the scope. Returns 1 when found, 0 when the scope has no session of that id. A deleted session is
 * found only when there is no other. The row is valid until rv_sql_done() of *stmt, which is the caller's in any case.
 * RV_E_INVALID: several users have that id. */
RV_MUST_CHECK int rv_sql_find_session(struct sql_store *st, const struct rv_store_scope *scope, const char *id,
                                      sqlite3_stmt **stmt, struct sql_session *out, rv_err **err);
/** As that; RV_E_NOT_FOUND when there is none, or it was deleted. */
RV_MUST_CHECK int rv_sql_see_session(struct sql_store *st, const struct rv_store_scope *scope, const char *id,
                                     sqlite3_stmt **stmt, struct sql_session *out, rv_err **err);
RV_MUST_CHECK int rv_sql_add_session(struct sql_store *st, const struct rv_session_row *fresh, int64_t *key,
                                     rv_err **err);
int rv_sql_ensure_session(void *self, const struct rv_session_row *fresh, struct rv_session_row *out, rv_err **err);
int rv_sql_get_session(void *self, const struct rv_store_scope *scope, const char *id, struct rv_session_row *out,
                       rv_err **err);
int rv_sql_change_session(void *self, const struct rv_store_scope *scope, const char *id,
                          const struct rv_session_change *change, rv_err **err);
int rv_sql_list_sessions(void *self, const struct rv_store_scope *scope, const struct rv_session_filter *filter,
                         rv_each_session *each, void *ctx, rv_err **err);
int rv_sql_delete_session(void *self, const struct rv_store_scope *scope, const char *id, int64_t now_us, rv_err **err);

/* sqlite_messages.c */
/** The turns of an append to the run of that key, in its transaction. */
RV_MUST_CHECK int rv_sql_keep_turns(struct sql_store *st, int64_t run, const struct rv_store_append *a, rv_err **err);
int rv_sql_delete_message(void *self, const struct rv_store_scope *scope, const char *session, int64_t seq,
                          int64_t now_us, rv_err **err);
int rv_sql_read_messages(void *self, const struct rv_store_scope *scope, const char *session,
                         const struct rv_message_filter *filter, rv_each_message *each, void *ctx, rv_err **err);
int rv_sql_add_messages(void *self, const struct rv_store_scope *scope, const struct rv_turn *turn, int64_t now_us,
                        rv_err **err);

/* sqlite_schemas.c */
int rv_sql_put_schema(void *self, const struct rv_schema_row *row, enum rv_schema_put how, int64_t now_us,
                      bool *changed, rv_err **err);
int rv_sql_find_schema(void *self, const struct rv_store_scope *scope, const char *kind, const char *name,
                       struct rv_schema_row *out, rv_err **err);
int rv_sql_list_schemas(void *self, const struct rv_store_scope *scope, const char *kind, rv_each_schema *each,
                        void *ctx, rv_err **err);
int rv_sql_delete_schema(void *self, const struct rv_store_scope *scope, const char *kind, const char *name,
                         int64_t now_us, rv_err **err);
int rv_sql_schemas_version(void *self, int64_t *out, rv_err **err);

/* sqlite_owner.c */
int rv_sql_claim(void *self, const struct rv_store_scope *scope, const char *id, const struct rv_store_claim *claim,
                 int64_t *fence, rv_err **err);
int rv_sql_renew(void *self, const char *owner, int64_t until_us, rv_err **err);
int rv_sql_release(void *self, const char *id, int64_t fence, rv_err **err);
int rv_sql_request_cancel(void *self, const struct rv_store_scope *scope, const char *id, int64_t now_us, rv_err **err);
int rv_sql_list_cancels(void *self, const char *owner, rv_each_id *each, void *ctx, rv_err **err);

/* sqlite_values.c */
/** The blob's key; it is added if it is not there. *out 0: it is not there and data.ptr is NULL. */
RV_MUST_CHECK int rv_sql_blob_key(struct sql_store *st, rv_str data, const char *hash, int64_t now_us, int64_t *out,
                                  rv_err **err);
int rv_sql_put_blob(void *self, rv_str data, const char *hash, int64_t now_us, rv_err **err);
int rv_sql_get_blob(void *self, const char *hash, rv_buf *out, rv_err **err);
int rv_sql_put_snapshot(void *self, const char *run, int64_t fence, int64_t seq, rv_str body, rv_err **err);
int rv_sql_get_snapshot(void *self, const struct rv_store_scope *scope, const char *run, int64_t *seq, rv_buf *out,
                        rv_err **err);
int rv_sql_drop_snapshots(void *self, rv_err **err);
void rv_sql_digest_hex(const unsigned char digest[RV_SQL_DIGEST], char out[RV_HASH_MAX]);

/* sqlite_read.c */
int rv_sql_get_run(void *self, const struct rv_store_scope *scope, const char *id, struct rv_run_row *out,
                   rv_err **err);
int rv_sql_list_runs(void *self, const struct rv_store_scope *scope, const struct rv_run_filter *filter,
                     rv_each_run *each, void *ctx, rv_err **err);
int rv_sql_read(void *self, const struct rv_store_scope *scope, const char *run, int64_t from, int64_t upto,
                rv_each_record *each, void *ctx, rv_err **err);
int rv_sql_list_pending(void *self, const struct rv_store_scope *scope, const char *run, rv_each_pending *each,
                        void *ctx, rv_err **err);

/* sqlite_upkeep.c, sqlite_check.c */
int rv_sql_stats(void *self, struct rv_store_stats *out, rv_err **err);
int rv_sql_sweep(void *self, int64_t now_us, int64_t grace_us, int64_t *freed, rv_err **err);
int rv_sql_backup(void *self, const char *path, rv_err **err);
int rv_sql_check(void *self, rv_err **err);

#endif
