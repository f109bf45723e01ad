/* The statements of interrupts.c, streams.c and webhooks.c; see sql_internal.h. Those of runs.c are in
 * sql/statements_internal.h. */
#ifndef RV_STORE_SQL_RUNS_INTERNAL_H
#define RV_STORE_SQL_RUNS_INTERNAL_H

/* --- Questions of runs --- */
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

/* --- Streams of clients --- */
/* A group has the number of its last line, so its row says how many lines there are, and nothing else is written for
 * it. n_lines of a stream is what earlier versions counted there, who numbered groups from 1. */
#define RV_SQL_LAST_PART "coalesce((SELECT max(p.n) FROM stream_parts p WHERE p.stream = streams.key), 0)"
#define RV_SQL_STREAM                                                                                                  \
    "SELECT id, run, tenant, \"user\", session, ask, hash, owner, " RV_SQL_LAST_PART                                   \
    ", n_lines, created_us, ended_us FROM streams"

#define RV_SQL_STREAM_STATEMENTS(X)                                                                                    \
    X(ADD_STREAM,                                                                                                      \
      "INSERT INTO streams (id, run, tenant, \"user\", session, ask, hash, owner, n_lines, created_us, ended_us)"      \
      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, ?9, 0) ON CONFLICT DO NOTHING")                                     \
    X(FORGET_ASK, "UPDATE streams SET ask = '' WHERE ask = ?1 AND tenant = ?2 AND \"user\" = ?3")                      \
    X(GET_STREAM, RV_SQL_STREAM " WHERE id = ?1 AND tenant = ?2 AND (?3 IS NULL OR \"user\" = ?3)")                    \
    X(FIND_STREAM, RV_SQL_STREAM " WHERE ask = ?1 AND tenant = ?2 AND \"user\" = coalesce(?3, '')")                    \
    X(LAST_STREAM,                                                                                                     \
      RV_SQL_STREAM " WHERE run = ?1 AND tenant = ?2 AND (?3 IS NULL OR \"user\" = ?3) ORDER BY key DESC LIMIT 1")     \
    X(SESSION_STREAM,                                                                                                  \
      RV_SQL_STREAM " WHERE session = ?1 AND tenant = ?2 AND (?3 IS NULL OR \"user\" = ?3)"                            \
                    " AND (ended_us > 0 OR " RV_SQL_LAST_PART " > 1"                                                   \
                    " OR EXISTS (SELECT 1 FROM runs r WHERE r.id = streams.run)) ORDER BY key DESC LIMIT 1")           \
    X(FIND_STREAM_KEY,                                                                                                 \
      "SELECT key, tenant, owner, " RV_SQL_LAST_PART ", n_lines, ended_us FROM streams WHERE id = ?1")                 \
    X(TAKE_STREAM, "UPDATE streams SET owner = ?3 WHERE id = ?1 AND owner = ?2 AND ended_us = 0")                      \
    X(ADD_STREAM_PART,                                                                                                 \
      "INSERT INTO stream_parts (stream, n, first, at_us, body) SELECT key, ?2, ?3, ?4, ?5 FROM streams"               \
      " WHERE key = ?1 AND owner = ?6 AND ended_us = 0")                                                               \
    X(END_STREAM, "UPDATE streams SET ended_us = ?3 WHERE id = ?1 AND owner = ?2 AND ended_us = 0")                    \
    X(DROP_STREAM, "DELETE FROM streams WHERE id = ?1 AND owner = ?2 AND ended_us = 0"                                 \
                   " AND " RV_SQL_LAST_PART " <= 1")                                                                   \
    X(STREAM_PARTS,                                                                                                    \
      "SELECT p.n, p.first, p.at_us, p.body, s.tenant FROM stream_parts p JOIN streams s ON s.key = p.stream"          \
      " WHERE s.id = ?1 AND p.n > ?2 ORDER BY p.n")                                                                    \
    X(SWEEP_STREAMS, "DELETE FROM streams WHERE created_us <= ?1"                                                      \
                     " AND (SELECT 1 FROM runs r WHERE r.id = streams.run LIMIT 1) IS NULL")                           \
    X(PRUNE_STREAMS,                                                                                                   \
      "DELETE FROM streams WHERE key IN (SELECT s.key FROM streams s WHERE s.created_us < ?2 OR (s.ended_us > 0"       \
      " AND s.ended_us < ?1 AND NOT EXISTS (SELECT 1 FROM streams o WHERE o.run = s.run AND (o.ended_us = 0"           \
      " OR o.ended_us >= ?1))) LIMIT ?3)")

/* --- Webhooks --- */
#define RV_SQL_WEBHOOK_STATEMENTS(X)                                                                                   \
    X(ADD_WEBHOOK, "INSERT INTO webhooks (run, n, url, secret, events) VALUES (?1, ?2, ?3, ?4, ?5)")                   \
    X(GET_WEBHOOK, "SELECT url, secret, events FROM webhooks WHERE run = ?1 AND n = ?2")                               \
    X(WEBHOOKS_OF_RUN, "SELECT w.n, w.events, r.\"user\" FROM webhooks w JOIN runs r ON r.key = w.run"                 \
                       " WHERE w.run = ?1 ORDER BY w.n")

#endif
