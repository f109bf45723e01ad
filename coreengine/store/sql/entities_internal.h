/* Statements of entities.c, entities/read.c and keys.c; see sql_internal.h. */
#ifndef RV_STORE_SQL_ENTITIES_INTERNAL_H
#define RV_STORE_SQL_ENTITIES_INTERNAL_H

/* The rows of each place as `e`, in the order of entity_read(): twelve columns that all have, and the kind's own. */
#define RV_SQL_ROWS_ENTITIES                                                                                           \
    "SELECT e.key, e.id, e.tenant_id, e.user_id, e.metadata, e.tags, e.graph_edges, e.encryption_level,"               \
    " e.created_us, e.updated_us, e.deleted_us, e.about, e.name, e.fields FROM entities e"
#define RV_SQL_ROWS_SESSIONS                                                                                           \
    "SELECT e.key, e.id, e.tenant_id, e.user_id, e.metadata, e.tags, e.graph_edges, e.encryption_level,"               \
    " e.created_us, e.updated_us, e.deleted_us, NULL, e.name, e.description, e.agent_name, e.mode, e.total_tokens"     \
    " FROM sessions e"
#define RV_SQL_ROWS_SCHEMAS                                                                                            \
    "SELECT e.key, e.id, e.tenant_id, e.user_id, e.metadata, e.tags, e.graph_edges, e.encryption_level,"               \
    " e.created_us, e.updated_us, e.deleted_us, NULL, e.name, e.kind, e.version, e.description, e.content,"            \
    " e.json_schema FROM schemas e"
#define RV_SQL_ROWS_MESSAGES                                                                                           \
    "SELECT e.key, e.id, e.tenant_id, e.user_id, e.metadata, e.tags, e.graph_edges, e.encryption_level,"               \
    " e.created_us, e.created_us, e.deleted_us, e.about, e.about, e.message_type, e.content, e.token_count,"           \
    " e.tool_calls, e.trace_id, e.span_id, e.input_tokens, e.output_tokens, e.latency_ms, e.model, e.agent_name"       \
    " FROM (SELECT m.key, m.seq, m.id, s.tenant_id, s.user_id, m.metadata, m.tags, m.graph_edges,"                     \
    " m.encryption_level, m.created_us, coalesce(m.deleted_us, s.deleted_us) AS deleted_us, s.id AS about,"            \
    " m.message_type, m.content, m.token_count, m.tool_calls, m.trace_id, m.span_id, m.input_tokens,"                  \
    " m.output_tokens, m.latency_ms, m.model, m.agent_name FROM messages m JOIN sessions s ON s.key = m.session) e"

#define RV_SQL_BY_KEY " WHERE e.key = ?1 AND e.deleted_us IS NULL"
/* Two rows say that an operator has to say whose is meant. A tenant's own before every tenant's, a user's before
 * those without an owner. */
#define RV_SQL_BY_ID                                                                                                   \
    " WHERE e.tenant_id = ?1 AND e.id = ?3 AND (?2 IS NULL OR e.user_id IN (?2, '')) AND e.deleted_us IS NULL"         \
    " ORDER BY e.user_id = '', e.user_id LIMIT 2"

#define RV_SQL_KEYS "SELECT kind, row, tenant_id, user_id, entity_key, entity_id, summary, updated_us FROM keys"

/* Names with what a walk over edges needs of their rows: metadata and edges from the table of the kind. */
#define RV_SQL_NODES                                                                                                   \
    "SELECT k.kind, k.row, k.tenant_id, k.user_id, k.entity_key, k.entity_id, k.summary, k.updated_us, e.metadata,"    \
    " e.graph_edges, s.metadata, s.graph_edges, c.metadata, c.graph_edges FROM keys k"                                 \
    " LEFT JOIN entities e ON e.key = k.row AND e.kind = k.kind"                                                       \
    " LEFT JOIN sessions s ON s.key = k.row AND k.kind = 'sessions'"                                                   \
    " LEFT JOIN schemas c ON c.key = k.row AND k.kind = 'schemas'"                                                     \
    " WHERE k.tenant_id IN (?1, '') AND k.entity_key "

/* Each part goes to places of the index, and of a caller who is a user the last one reads nothing: entries of other
 * users are not passed over, so that the work does not tell whether there are any. With IN, SQLite may choose to pass.
 */
#define RV_SQL_KEYS_OF(column)                                                                                         \
    RV_SQL_KEYS " WHERE tenant_id IN (?1, '') AND " column " = ?3 AND user_id = ?2 UNION ALL " RV_SQL_KEYS             \
                " WHERE tenant_id IN (?1, '') AND " column " = ?3 AND user_id = '' UNION ALL " RV_SQL_KEYS             \
                " WHERE ?2 IS NULL AND tenant_id IN (?1, '') AND " column " = ?3 AND user_id <> '' LIMIT 1000"
#define RV_SQL_NODES_OF(has_keys)                                                                                      \
    RV_SQL_NODES has_keys " AND k.user_id = ?2 UNION ALL " RV_SQL_NODES has_keys                                       \
                          " AND k.user_id = '' UNION ALL " RV_SQL_NODES has_keys " AND k.user_id <> '' AND ?2 IS NULL"
#define RV_SQL_ENTITY_STATEMENTS(X)                                                                                    \
    X(SAME_ENTITY, "SELECT key, user_id, name, fields, metadata, tags, graph_edges, encryption_level, created_us,"     \
                   " deleted_us FROM entities WHERE tenant_id = ?1 AND kind = ?2 AND id = ?3"                          \
                   " AND (?4 IS NULL OR user_id IN (?4, '')) ORDER BY user_id = '', user_id")                          \
    X(ADD_ENTITY, "INSERT INTO entities (id, kind, tenant_id, user_id, name, about, fields, metadata, tags,"           \
                  " graph_edges, encryption_level, created_us, updated_us)"                                            \
                  " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?12)")                                  \
    X(SET_ENTITY, "UPDATE entities SET name = ?5, about = ?6, fields = ?7, metadata = ?8, tags = ?9,"                  \
                  " graph_edges = ?10, encryption_level = ?11, updated_us = ?12, deleted_us = NULL WHERE key = ?1")    \
    X(REDATE_ENTITY, "UPDATE entities SET created_us = ?2, updated_us = ?2 WHERE key = ?1")                            \
    X(DELETE_ENTITY, "UPDATE entities SET deleted_us = ?2, updated_us = ?2 WHERE key = ?1")                            \
    X(NAMED_ENTITIES, "SELECT key, user_id FROM entities WHERE tenant_id = ?1 AND kind = ?2 AND name = ?3"             \
                      " AND (?4 IS NULL OR user_id = ?4) AND deleted_us IS NULL ORDER BY key")                         \
    X(CHUNKS, "SELECT key FROM entities WHERE tenant_id = ?1 AND kind = 'moments' AND about = ?2 AND user_id = ?3"     \
              " AND deleted_us IS NULL AND instr(fields, '\"moment_type\":\"session_chunk\"') > 0 ORDER BY key")       \
    X(PURGE_CHUNKS, "DELETE FROM entities WHERE deleted_us IS NOT NULL AND kind = 'moments'"                           \
                    " AND instr(fields, '\"moment_type\":\"session_chunk\"') > 0 AND EXISTS (SELECT 1 FROM sessions s" \
                    " WHERE s.tenant_id = entities.tenant_id AND s.id = entities.about"                                \
                    " AND s.user_id = entities.user_id AND s.deleted_us IS NOT NULL)")                                 \
    X(PURGE_ENTITIES, "DELETE FROM entities WHERE deleted_us <= ?1")                                                   \
    X(ENTITY_BY_KEY, RV_SQL_ROWS_ENTITIES RV_SQL_BY_KEY " AND e.kind = ?2")                                            \
    X(SESSION_BY_KEY, RV_SQL_ROWS_SESSIONS RV_SQL_BY_KEY)                                                              \
    X(SCHEMA_BY_KEY, RV_SQL_ROWS_SCHEMAS RV_SQL_BY_KEY)                                                                \
    X(MESSAGE_BY_KEY, RV_SQL_ROWS_MESSAGES RV_SQL_BY_KEY)                                                              \
    X(ENTITY_BY_ID, RV_SQL_ROWS_ENTITIES " WHERE e.tenant_id IN (?1, '') AND e.kind = ?4 AND e.id = ?3"                \
                                         " AND (?2 IS NULL OR e.user_id IN (?2, '')) AND e.deleted_us IS NULL"         \
                                         " ORDER BY e.tenant_id = '', e.user_id = '', e.user_id LIMIT 2")              \
    X(SESSION_BY_ID, RV_SQL_ROWS_SESSIONS RV_SQL_BY_ID)                                                                \
    X(SCHEMA_BY_ID, RV_SQL_ROWS_SCHEMAS RV_SQL_BY_ID)                                                                  \
    X(MESSAGE_BY_ID, RV_SQL_ROWS_MESSAGES RV_SQL_BY_ID)                                                                \
    X(MESSAGE_BY_SEQ, "SELECT m.key, m.id, s.tenant_id, s.user_id, m.created_us FROM sessions s JOIN messages m"       \
                      " ON m.session = s.key AND m.seq = ?4 WHERE s.tenant_id = ?1 AND s.id = ?3"                      \
                      " AND (?2 IS NULL OR s.user_id IN (?2, '')) AND s.deleted_us IS NULL AND m.deleted_us IS NULL"   \
                      " ORDER BY s.user_id = '', s.user_id LIMIT 1")                                                   \
    X(SET_KEY, "INSERT INTO keys (kind, row, tenant_id, user_id, entity_key, entity_id, summary, updated_us)"          \
               " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (kind, row) DO UPDATE SET"                        \
               " entity_key = excluded.entity_key, summary = excluded.summary, updated_us = excluded.updated_us")      \
    X(DROP_KEY, "DELETE FROM keys WHERE kind = ?1 AND row = ?2")                                                       \
    X(LAST_VERSION, "SELECT checksum FROM schema_timemachine WHERE schema = ?1 ORDER BY key DESC LIMIT 1")             \
    X(ADD_VERSION, "INSERT INTO schema_timemachine (schema, operation, name, version, content, json_schema, checksum," \
                   " recorded_us) SELECT key, ?2, name, version, content, json_schema, ?3, ?4 FROM schemas"            \
                   " WHERE key = ?1")                                                                                  \
    X(VERSIONS, "SELECT s.id, s.kind, s.user_id, t.operation, t.name, t.version, t.content, t.json_schema,"            \
                " t.checksum, t.recorded_us FROM schemas s JOIN schema_timemachine t ON t.schema = s.key"              \
                " WHERE s.tenant_id = ?1 AND s.kind = ?2 AND s.name = ?3 AND (?4 IS NULL OR s.user_id IN (?4, ''))"    \
                " ORDER BY s.user_id = '', s.user_id, t.key")                                                          \
    X(DROP_KEYS, "DELETE FROM keys")                                                                                   \
    X(KEY_HITS, RV_SQL_KEYS_OF("entity_key"))                                                                          \
    X(KEY_HITS_OF_ID, RV_SQL_KEYS_OF("entity_id"))                                                                     \
    X(NODES, RV_SQL_NODES_OF("IN (SELECT value FROM json_each(?3))"))                                                  \
    X(SET_COUNTER, "UPDATE counters SET value = ?2 WHERE name = ?1")

#endif
