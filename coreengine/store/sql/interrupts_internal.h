/* The statements about questions of runs (interrupts.c). */
#ifndef RV_STORE_SQL_INTERRUPTS_INTERNAL_H
#define RV_STORE_SQL_INTERRUPTS_INTERNAL_H

#define RV_SQL_INTERRUPT                                                                                               \
    "SELECT r.id, i.id, i.tenant, i.\"user\", i.session, i.kind, i.stage, i.text, i.reason, i.status, i.created_us,"   \
    " i.expires_us, i.ended_us FROM interrupts i JOIN runs r ON r.key = i.run"

#define RV_SQL_INTERRUPT_STATEMENTS(X)                                                                                 \
    X(ADD_INTERRUPT,                                                                                                   \
      "INSERT INTO interrupts (run, id, tenant, \"user\", session, kind, stage, text, status, created_us,"             \
      " expires_us, ended_us) VALUES (?1, ?2, ?8, (SELECT \"user\" FROM runs WHERE key = ?1),"                         \
      " (SELECT session FROM runs WHERE key = ?1), ?3, ?4, ?5, 'pending', ?6, ?7, 0)"                                  \
      " ON CONFLICT (run, id) DO UPDATE SET kind = excluded.kind, stage = excluded.stage, text = excluded.text,"       \
      " status = CASE WHEN interrupts.ended_us = 0 AND interrupts.expires_us = excluded.expires_us"                    \
      " THEN interrupts.status ELSE 'pending' END, reason = NULL, created_us = excluded.created_us,"                   \
      " expires_us = excluded.expires_us, ended_us = 0")                                                               \
    X(SETTLE_INTERRUPT,                                                                                                \
      "UPDATE interrupts SET status = ?3, ended_us = ?4, reason = ?5, text = '' WHERE run = ?1 AND id = ?2"            \
      " AND ended_us = 0")                                                                                             \
    X(SETTLE_ONLY, "UPDATE interrupts SET status = ?2, ended_us = ?3, reason = ?4, text = '' WHERE run = ?1"           \
                   " AND id = (SELECT id FROM interrupts i WHERE i.run = ?1 AND i.ended_us = 0 LIMIT 1)")              \
    X(CLOSE_INTERRUPTS,                                                                                                \
      "UPDATE interrupts SET status = CASE status WHEN 'expired' THEN status ELSE 'cancelled' END, ended_us = ?2,"     \
      " text = ''"                                                                                                     \
      " WHERE run = ?1 AND ended_us = 0 AND NOT EXISTS (SELECT 1 FROM pending p WHERE p.run = interrupts.run"          \
      " AND p.id = interrupts.id)")                                                                                    \
    X(EXPIRE_INTERRUPTS, "UPDATE interrupts SET status = 'expired' WHERE status = 'pending' AND expires_us > 0"        \
                         " AND expires_us <= ?1 AND (?2 IS NULL OR tenant = ?2)")                                      \
    X(PRUNE_INTERRUPTS, "DELETE FROM interrupts WHERE (run, id) IN (SELECT run, id FROM interrupts WHERE ended_us > 0" \
                        " AND ended_us < ?1 AND (?2 IS NULL OR tenant = ?2) ORDER BY ended_us LIMIT ?3)")

#endif
