/* The list of statements. They are written once, in SQL that every database understands, and prepared at first use.
 * Each folder of the store that has many of them has its part of the list in a header of its own. */
#ifndef RV_STORE_SQL_STATEMENTS_INTERNAL_H
#define RV_STORE_SQL_STATEMENTS_INTERNAL_H

#include "coreengine/store/sql/encryption_internal.h"
#include "coreengine/store/sql/entities_internal.h"
#include "coreengine/store/sql/queue_internal.h"
#include "coreengine/store/sql/runs_internal.h"
#include "coreengine/store/sql/search_internal.h"
#include "coreengine/store/sql/upkeep_internal.h"
#include "coreengine/store/sql/users_internal.h"

/* The columns of a run's row for readers, in the order of row_of() in runs_read.c. */
#define RV_SQL_RUN                                                                                                     \
    "r.id, r.tenant, r.\"user\", r.session, r.pipeline, b.hash, r.parent, r.parent_seq, r.status, r.stage, "           \
    "r.created_us,"                                                                                                    \
    " r.updated_us, r.expires_us, r.n_records, r.owner, r.fence, r.lease_until_us, r.cancel, r.n_pending"              \
    " FROM runs r LEFT JOIN blobs b ON b.key = r.bundle"

#define RV_SQL_PENDING                                                                                                 \
    "SELECT r.id, p.id, p.kind, p.stage, r.\"user\", p.text, p.body, p.created_us, p.expires_us FROM pending p"        \
    " JOIN runs r ON r.key = p.run"

/* In the order of row_of() in sessions.c, message_of() in messages.c and row_of() in documents.c. */
#define RV_SQL_SESSION                                                                                                 \
    "SELECT key, id, tenant_id, user_id, name, description, agent_name, mode, total_tokens, n_messages, metadata,"     \
    " created_us, updated_us, deleted_us, status FROM sessions"

#define RV_SQL_MESSAGES                                                                                                \
    "SELECT id, seq, message_type, content, tool_calls, token_count, agent_name, model, trace_id, span_id, run_id,"    \
    " input_tokens, output_tokens, cost_micro_usd, latency_ms, status, parent_call_id, metadata, created_us,"          \
    " encryption_level FROM messages WHERE session = ?1 AND seq BETWEEN ?2 AND ?3 AND (?4 <> 0 OR parent_call_id IS "  \
    "NULL)"                                                                                                            \
    " AND (deleted_us IS NULL OR deleted_us > ?6)"

/* Messages that were deleted one by one and still have words, of sessions without a run that would be told them again.
 */
#define RV_SQL_WORDS_TO_GO                                                                                             \
    "WHERE deleted_us IS NOT NULL AND (content IS NOT NULL OR tool_calls IS NOT NULL OR metadata IS NOT NULL"          \
    " OR tags IS NOT NULL OR graph_edges IS NOT NULL)"                                                                 \
    " AND NOT EXISTS (SELECT 1 FROM sessions s JOIN runs r ON r.tenant = s.tenant_id AND r.\"user\" = s.user_id"       \
    " AND r.session = s.id WHERE s.key = m.session AND r.status IN ('ready', 'running', 'interrupted'))"

/* Sessions s whose words can go: deleted, and none of their runs would have to be told them again. */
#define RV_SQL_PURGED                                                                                                  \
    "WHERE deleted_us IS NOT NULL AND (n_messages > 0 OR name <> '' OR mode <> '' OR description IS NOT NULL"          \
    " OR agent_name IS NOT NULL OR tags IS NOT NULL OR graph_edges IS NOT NULL OR length(metadata) > 2)"               \
    " AND NOT EXISTS (SELECT 1 FROM runs r"                                                                            \
    " WHERE r.tenant = s.tenant_id AND r.\"user\" = s.user_id AND r.session = s.id"                                    \
    " AND r.status IN ('ready', 'running', 'interrupted'))"

#define RV_SQL_SCHEMA                                                                                                  \
    "SELECT key, id, tenant_id, user_id, name, kind, version, description, content, json_schema, document, source,"    \
    " place, checksum, created_us, updated_us, deleted_us FROM schemas"

/* What a step changes in the row of its run. */
#define RV_SQL_ADVANCE "UPDATE runs SET stage = ?2, updated_us = ?3, n_records = n_records + ?4"
#define RV_SQL_STATUS  ", status = ?5, cancel = cancel * (1 - ?6)"
#define RV_SQL_DISOWN  ", owner = NULL, lease_until_us = 0"
/* Still as the writer left it. */
#define RV_SQL_WHERE_LAST " WHERE key = ?1 AND fence = ?7 AND n_records = ?8"
#define RV_SQL_COUNTS                                                                                                  \
    ", n_pending = ?7, expires_us = ?8, n_open = (SELECT count(*) FROM interrupts i WHERE i.run = ?1 AND i.ended_us "  \
    "= 0)"

/* SWEEP looks for each blob by itself: a join would read all records that have one, for each thousand blobs. */
#define RV_SQL_STATEMENTS(X)                                                                                           \
    X(BEGIN_READ, "BEGIN")                                                                                             \
    X(BEGIN_WRITE, "BEGIN IMMEDIATE")                                                                                  \
    X(COMMIT, "COMMIT")                                                                                                \
    X(ROLLBACK, "ROLLBACK")                                                                                            \
    X(HOLD_NAME, "SELECT ?1") /* one group at a time writes */                                                         \
    X(FIND,                                                                                                            \
      "SELECT key, fence, n_records, owner, lease_until_us, status, n_pending, n_open, tenant FROM runs WHERE id = ?1" \
      " AND (?2 IS NULL OR tenant = ?2) AND (?3 IS NULL OR \"user\" = ?3)")                                            \
    X(GET, "SELECT " RV_SQL_RUN " WHERE r.id = ?1 AND r.tenant = ?2 AND (?3 IS NULL OR r.\"user\" = ?3)")              \
    X(ADD_RUN, "INSERT INTO runs (id, tenant, \"user\", session, pipeline, bundle, parent, parent_seq, status, stage," \
               " created_us, updated_us, expires_us, n_records, owner, fence, lease_until_us, cancel, n_pending)"      \
               " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11, 0, ?12, ?13, 1, ?14, 0, 0)"                \
               " ON CONFLICT (id) DO NOTHING")                                                                         \
    X(ADD_RECORD, "INSERT INTO records (run, seq, kind, body, value, blob) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")           \
    X(ADVANCE, RV_SQL_ADVANCE RV_SQL_WHERE_LAST)                                                                       \
    X(ADVANCE_STATUS, RV_SQL_ADVANCE RV_SQL_STATUS RV_SQL_WHERE_LAST)                                                  \
    X(ADVANCE_OVER, RV_SQL_ADVANCE RV_SQL_STATUS RV_SQL_DISOWN RV_SQL_WHERE_LAST)                                      \
    X(ADVANCE_ASKING, RV_SQL_ADVANCE RV_SQL_STATUS RV_SQL_COUNTS " WHERE key = ?1")                                    \
    X(ADVANCE_PARKED, RV_SQL_ADVANCE RV_SQL_STATUS RV_SQL_DISOWN RV_SQL_COUNTS " WHERE key = ?1")                      \
    X(DISOWN, "UPDATE runs SET owner = NULL, lease_until_us = 0 WHERE key = ?1")                                       \
    X(CLEAR_PENDING, "DELETE FROM pending WHERE run = ?1")                                                             \
    X(ADD_PENDING, "INSERT INTO pending (run, n, id, kind, stage, text, body, created_us, expires_us)"                 \
                   " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")                                                     \
    X(DELETE_RUN, "DELETE FROM runs WHERE key = ?1")                                                                   \
    X(DELETE_RUN_SEEN, "DELETE FROM runs WHERE key = ?1 AND status = ?2 AND updated_us = ?3")                          \
    X(CLAIM, "UPDATE runs SET owner = ?2, fence = fence + 1, lease_until_us = ?3 WHERE key = ?1")                      \
    X(RENEW, "UPDATE runs SET lease_until_us = ?2 WHERE owner = ?1 AND lease_until_us < ?2")                           \
    X(CANCEL, "UPDATE runs SET cancel = 1, updated_us = ?2 WHERE key = ?1")                                            \
    X(CANCELS, "SELECT id FROM runs WHERE owner = ?1 AND cancel <> 0 ORDER BY created_us, id")                         \
    X(READ, "SELECT r.seq, r.kind, r.body, r.value, r.blob, b.data FROM records r LEFT JOIN blobs b ON b.key = r.blob" \
            " WHERE r.run = ?1 AND r.seq BETWEEN ?2 AND ?3 ORDER BY r.seq")                                            \
    X(PENDING, RV_SQL_PENDING " WHERE r.tenant = ?1 AND (?2 IS NULL OR r.\"user\" = ?2)"                               \
                              " AND r.status IN ('ready', 'running', 'interrupted') ORDER BY p.created_us, r.id, p.n") \
    X(PENDING_OF, RV_SQL_PENDING " WHERE p.run = ?1 ORDER BY p.created_us, p.n")                                       \
    X(FIND_BLOB, "SELECT key FROM blobs WHERE hash = ?1")                                                              \
    X(ADD_BLOB, "INSERT INTO blobs (hash, created_us, data) VALUES (?1, ?2, ?3)")                                      \
    X(TOUCH_BLOB, "UPDATE blobs SET created_us = ?2 WHERE key = ?1 AND created_us < ?2")                               \
    X(GET_BLOB, "SELECT data FROM blobs WHERE hash = ?1")                                                              \
    X(PUT_SNAPSHOT, "INSERT INTO snapshots (run, seq, body) VALUES (?1, ?2, ?3) ON CONFLICT (run) DO UPDATE"           \
                    " SET seq = excluded.seq, body = excluded.body WHERE excluded.seq >= snapshots.seq")               \
    X(GET_SNAPSHOT, "SELECT seq, body FROM snapshots WHERE run = ?1")                                                  \
    X(BLOB_KEYS, "SELECT (SELECT coalesce(min(key), 1) FROM blobs), (SELECT coalesce(max(key), 0) FROM blobs)")        \
    X(SWEEP, "DELETE FROM blobs WHERE key >= ?1 AND key < ?2 AND created_us <= ?3"                                     \
             " AND (SELECT 1 FROM records WHERE blob = blobs.key LIMIT 1) IS NULL"                                     \
             " AND (SELECT 1 FROM runs WHERE bundle = blobs.key LIMIT 1) IS NULL"                                      \
             " AND (SELECT 1 FROM schedules WHERE bundle = blobs.key LIMIT 1) IS NULL")                                \
    X(STATS,                                                                                                           \
      "SELECT (SELECT count(*) FROM runs), (SELECT CAST(coalesce(sum(n_records), 0) AS BIGINT) FROM runs),"            \
      " (SELECT count(*) FROM blobs), (SELECT count(*) FROM pending), (SELECT count(*) FROM snapshots),"               \
      " (SELECT count(*) FROM sessions WHERE deleted_us IS NULL), (SELECT CAST(coalesce(sum(n_messages), 0)"           \
      " AS BIGINT) FROM sessions WHERE deleted_us IS NULL), (SELECT count(*) FROM schemas WHERE deleted_us IS NULL),"  \
      " (SELECT count(*) FROM tasks)")                                                                                 \
    X(BEGIN_PART, "SAVEPOINT part")                                                                                    \
    X(UNDO_PART, "ROLLBACK TO part")                                                                                   \
    X(END_PART, "RELEASE part")                                                                                        \
    X(OWNER_OF_RUN, "SELECT tenant, \"user\" FROM runs WHERE key = ?1")                                                \
    X(FIND_SESSION, RV_SQL_SESSION " WHERE tenant_id = ?1 AND id = ?2 AND user_id = coalesce(?3, user_id)"             \
                                   " ORDER BY deleted_us IS NOT NULL LIMIT 1")                                         \
    X(COUNT_SESSIONS, "SELECT count(*) FROM sessions WHERE tenant_id = ?1 AND id = ?2 AND deleted_us IS NULL")         \
    X(ADD_SESSION, "INSERT INTO sessions (id, tenant_id, user_id, name, description, agent_name, mode, total_tokens,"  \
                   " n_messages, metadata, created_us, updated_us, status, encryption_level)"                          \
                   " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0, ?8, ?9, ?9, ?10, ?11)")                                 \
    X(CHANGE_SESSION, "UPDATE sessions SET name = coalesce(?2, name), mode = coalesce(?3, mode),"                      \
                      " metadata = coalesce(?4, metadata), status = coalesce(?6, status), updated_us = ?5,"            \
                      " description = coalesce(description, ?7), encryption_level = CASE WHEN description IS NULL"     \
                      " AND ?7 IS NOT NULL THEN ?8 ELSE encryption_level END"                                          \
                      " WHERE key = ?1")                                                                               \
    X(KEEP_TURN, "UPDATE sessions SET name = coalesce(?2, name), metadata = coalesce(?3, metadata),"                   \
                 " total_tokens = ?4, n_messages = ?5, updated_us = ?6 WHERE key = ?1")                                \
    X(DELETE_SESSION, "UPDATE sessions SET deleted_us = ?2, updated_us = ?2 WHERE key = ?1")                           \
    X(PURGE_MESSAGES, "DELETE FROM messages WHERE session IN (SELECT key FROM sessions s " RV_SQL_PURGED ")")          \
    X(PURGE_SESSIONS,                                                                                                  \
      "UPDATE sessions AS s SET name = '', description = NULL, agent_name = NULL, mode = '',"                          \
      " metadata = '{}', tags = NULL, graph_edges = NULL, total_tokens = 0, n_messages = 0 " RV_SQL_PURGED)            \
    X(DELETE_MESSAGE, "UPDATE messages SET deleted_us = ?3 WHERE session = ?1 AND seq = ?2 AND deleted_us IS NULL")    \
    X(PURGE_WORDS, "UPDATE messages AS m SET content = NULL, tool_calls = NULL, metadata = NULL, tags = NULL,"         \
                   " graph_edges = NULL " RV_SQL_WORDS_TO_GO)                                                          \
    X(ADD_MESSAGE, "INSERT INTO messages (session, seq, id, message_type, content, tool_calls, token_count,"           \
                   " agent_name, model, trace_id, span_id, run_id, input_tokens, output_tokens, cost_micro_usd,"       \
                   " latency_ms, status, parent_call_id, metadata, created_us, encryption_level) VALUES (?1, ?2, ?3,"  \
                   " ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)"              \
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
    X(LOCK_SCHEMAS, "SELECT value FROM counters WHERE name = ?1")                                                      \
    X(COUNTER, "SELECT value FROM counters WHERE name = ?1")                                                           \
    RV_SQL_TASK_STATEMENTS(X)                                                                                          \
    RV_SQL_WORKER_STATEMENTS(X)                                                                                        \
    RV_SQL_COPY_STATEMENTS(X)                                                                                          \
    RV_SQL_SCHEDULE_STATEMENTS(X)                                                                                      \
    RV_SQL_QUOTA_STATEMENTS(X)                                                                                         \
    RV_SQL_INTERRUPT_STATEMENTS(X)                                                                                     \
    RV_SQL_WEBHOOK_STATEMENTS(X)                                                                                       \
    RV_SQL_STREAM_STATEMENTS(X)                                                                                        \
    RV_SQL_ENTITY_STATEMENTS(X)                                                                                        \
    RV_SQL_SEARCH_STATEMENTS(X)                                                                                        \
    RV_SQL_API_KEY_STATEMENTS(X)                                                                                       \
    RV_SQL_ENCRYPTION_STATEMENTS(X)

enum sql_id {
#define X(name, text) SQL_##name,
    RV_SQL_STATEMENTS(X)
#undef X
        SQL_N_STATEMENTS
};

#endif
