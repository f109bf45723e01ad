/* The statements about streams of clients (streams.c). */
#ifndef RV_STORE_SQL_STREAMS_INTERNAL_H
#define RV_STORE_SQL_STREAMS_INTERNAL_H

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
    X(STREAM_PARTS,                                                                                                    \
      "SELECT p.n, p.first, p.at_us, p.body, s.tenant FROM stream_parts p JOIN streams s ON s.key = p.stream"          \
      " WHERE s.id = ?1 AND p.n > ?2 ORDER BY p.n")                                                                    \
    X(PRUNE_STREAMS,                                                                                                   \
      "DELETE FROM streams WHERE key IN (SELECT s.key FROM streams s WHERE s.created_us < ?2 OR (s.ended_us > 0"       \
      " AND s.ended_us < ?1 AND NOT EXISTS (SELECT 1 FROM streams o WHERE o.run = s.run AND (o.ended_us = 0"           \
      " OR o.ended_us >= ?1))) LIMIT ?3)")

#endif
