/* Statements of api_keys.c; see sql_internal.h. */
#ifndef RV_STORE_SQL_API_KEYS_INTERNAL_H
#define RV_STORE_SQL_API_KEYS_INTERNAL_H

/* In the order of row_of() in api_keys.c. */
#define RV_SQL_API_KEY                                                                                                 \
    "SELECT k.id, k.hash, k.level, k.tenant, k.\"user\", k.scopes, k.note, k.created_us, k.expires_us, k.used_us,"     \
    " k.revoked_us FROM api_keys k"
#define RV_SQL_API_KEY_OPENS "revoked_us = 0 AND (expires_us = 0 OR expires_us > "

#define RV_SQL_API_KEY_STATEMENTS(X)                                                                                   \
    X(ADD_API_KEY, "INSERT INTO api_keys (id, hash, level, tenant, \"user\", scopes, note, created_us, expires_us,"    \
                   " used_us, revoked_us) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, 0) ON CONFLICT DO NOTHING")   \
    X(GET_API_KEY, RV_SQL_API_KEY " WHERE k.id = ?1")                                                                  \
    X(API_KEYS, RV_SQL_API_KEY " WHERE k.tenant = ?1 AND (?2 IS NULL OR k.\"user\" = ?2)"                              \
                               " AND (?3 <> 0 OR k." RV_SQL_API_KEY_OPENS "?4)) ORDER BY k.created_us DESC, k.id")     \
    X(HAS_API_KEYS, "SELECT 1 FROM api_keys WHERE " RV_SQL_API_KEY_OPENS "?1) LIMIT 1")                                \
    X(REVOKE_API_KEY, "UPDATE api_keys SET revoked_us = CASE WHEN revoked_us = 0 THEN ?4 ELSE revoked_us END"          \
                      " WHERE id = ?1 AND tenant = ?2 AND (?3 IS NULL OR \"user\" = ?3)")                              \
    X(DROP_KEYS_LOGINS, "DELETE FROM logins WHERE key_id = ?1")                                                        \
    X(NOTE_API_KEY, "UPDATE api_keys SET used_us = ?2 WHERE id = ?1 AND used_us <= ?3")                                \
    X(OPENING_KEY, "SELECT 1 FROM api_keys WHERE id = ?1 AND revoked_us = 0")                                          \
    X(ADD_LOGIN, "INSERT INTO logins (hash, key_id, created_us, expires_us) VALUES (?1, ?2, ?3, ?4)"                   \
                 " ON CONFLICT DO NOTHING")                                                                            \
    X(DROP_OLD_LOGINS, "DELETE FROM logins WHERE key_id = ?1 AND hash IN (SELECT hash FROM logins WHERE key_id = ?1"   \
                       " ORDER BY created_us DESC, hash LIMIT 1000 OFFSET ?2)")                                        \
    X(FIND_LOGIN, RV_SQL_API_KEY " JOIN logins l ON l.key_id = k.id WHERE l.hash = ?1 AND l.expires_us > ?2")          \
    X(DROP_LOGIN, "DELETE FROM logins WHERE hash = ?1")                                                                \
    X(PRUNE_LOGINS, "DELETE FROM logins WHERE expires_us <= ?1")                                                       \
    X(PRUNE_API_KEYS, "DELETE FROM api_keys WHERE (revoked_us > 0 AND revoked_us < ?1)"                                \
                      " OR (expires_us > 0 AND expires_us < ?1)")

#endif
