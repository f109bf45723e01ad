/* The statements of the files in users/; see sql_internal.h. */
#ifndef RV_STORE_SQL_USERS_INTERNAL_H
#define RV_STORE_SQL_USERS_INTERNAL_H

/* --- API keys --- */
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

/* --- Quotas. sql/queue_internal.h says what comments are that begin with !. Counters are locked in one order, that of
 * the caller's limits: so that two transactions do not wait for each other. --- */
#define RV_SQL_COUNTER " WHERE tenant = ?1 AND is_tenants = ?2 AND \"user\" = ?3 AND kind = ?4 AND span = ?5"

#define RV_SQL_QUOTA_STATEMENTS(X)                                                                                     \
    X(RESERVE, "INSERT INTO usage (tenant, is_tenants, \"user\", kind, span, start_us, end_us, used, reserved)"        \
               " SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 WHERE ?8 + ?9 <= ?10"                                       \
               " ON CONFLICT (tenant, is_tenants, \"user\", kind, span, start_us) DO UPDATE SET"                       \
               " used = usage.used + excluded.used, reserved = usage.reserved + excluded.reserved"                     \
               " WHERE usage.used + usage.reserved + excluded.used + excluded.reserved <= ?10")                        \
    X(FIND_USAGE, "SELECT key, used, reserved FROM usage" RV_SQL_COUNTER " AND start_us = ?6")                         \
    X(ADD_HOLD, "INSERT INTO holds (run, fence, call, usage, amount) VALUES (?1, ?2, ?3, ?4, ?5)")                     \
    X(HAS_HOLD, "SELECT count(*) FROM holds WHERE run = ?1 AND fence = ?2 AND call = ?3")                              \
    X(HOLDS, "SELECT h.usage, h.amount, u.kind FROM holds h JOIN usage u ON u.key = h.usage"                           \
             " WHERE h.run = ?1 AND h.fence = ?2 AND h.call = ?3 ORDER BY u.is_tenants DESC, u.kind, u.span"           \
             " /*! FOR UPDATE OF h */")                                                                                \
    X(HOLD_LEFT, "SELECT fence, call FROM holds WHERE run = ?1 AND fence < ?2 ORDER BY fence, call LIMIT 1")           \
    X(SETTLE, "UPDATE usage SET used = used + ?2, reserved = reserved - ?3 WHERE key = ?1")                            \
    X(DROP_HOLDS, "DELETE FROM holds WHERE run = ?1 AND fence = ?2 AND call = ?3")                                     \
    X(LOCK_RATE, "INSERT INTO rates (tenant, is_tenants, \"user\", kind, span, end_us, head, n0, n1, n2, n3, n4, n5,"  \
                 " n6, n7, n8, n9) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)"                   \
                 " ON CONFLICT (tenant, is_tenants, \"user\", kind, span) DO UPDATE SET end_us = excluded.end_us")     \
    X(FIND_RATE, "SELECT key, head, n0, n1, n2, n3, n4, n5, n6, n7, n8, n9 FROM rates" RV_SQL_COUNTER)                 \
    X(SET_RATE, "UPDATE rates SET head = ?2, n0 = ?3, n1 = ?4, n2 = ?5, n3 = ?6, n4 = ?7, n5 = ?8, n6 = ?9, n7 = ?10," \
                " n8 = ?11, n9 = ?12 WHERE key = ?1")                                                                  \
    X(PRUNE_USAGE,                                                                                                     \
      "DELETE FROM usage WHERE key IN (SELECT key FROM usage WHERE end_us <= ?1 ORDER BY end_us, key LIMIT ?2)")       \
    X(PRUNE_RATES,                                                                                                     \
      "DELETE FROM rates WHERE key IN (SELECT key FROM rates WHERE end_us <= ?1 ORDER BY end_us, key LIMIT ?2)")       \
    X(USAGE, "SELECT \"user\", is_tenants, kind, span, start_us, end_us, used, reserved FROM usage"                    \
             " WHERE tenant = ?1 AND (?2 IS NULL OR (is_tenants = 0 AND \"user\" = ?2))"                               \
             " AND start_us <= ?3 AND end_us > ?3 ORDER BY is_tenants DESC, \"user\", kind, span")                     \
    X(RATES, "SELECT \"user\", is_tenants, kind, span, head, n0, n1, n2, n3, n4, n5, n6, n7, n8, n9 FROM rates"        \
             " WHERE tenant = ?1 AND (?2 IS NULL OR (is_tenants = 0 AND \"user\" = ?2)) AND end_us > ?3"               \
             " ORDER BY is_tenants DESC, \"user\", kind, span")

#endif
