/* Statements of quotas.c; see sql_internal.h, and sql/tasks_internal.h for comments that begin with !. Counters are
 * locked in one order, that of the caller's limits: so that two transactions do not wait for each other. */
#ifndef RV_STORE_SQL_QUOTAS_INTERNAL_H
#define RV_STORE_SQL_QUOTAS_INTERNAL_H

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
