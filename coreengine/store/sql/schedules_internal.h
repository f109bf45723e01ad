/* Statements of schedules.c; see sql_internal.h. */
#ifndef RV_STORE_SQL_SCHEDULES_INTERNAL_H
#define RV_STORE_SQL_SCHEDULES_INTERNAL_H

/* In the order of row_of() in schedules_read.c. */
#define RV_SQL_SCHEDULE                                                                                                \
    "SELECT s.id, s.tenant, s.\"user\", s.name, s.kind, s.expr, s.zone, s.type, s.tier, s.needs, s.payload, b.hash,"   \
    " s.pipeline, s.priority, s.max_retries, s.created_us, s.updated_us, s.next_us, s.look_us, s.last_us, s.n_fired,"  \
    " s.n_skipped, s.error FROM schedules s LEFT JOIN blobs b ON b.key = s.bundle"

/* FIRED_KEY passes over a schedule that another transaction looks at just now: workers that have the same list fire
 * different schedules at the same time. Such a transaction may be one that came too late, and then this one is fired at
 * the next look. */

/* One of a scope, by its id or its name. */
#define RV_SQL_NAMED_SCHEDULE " WHERE tenant = ?2 AND (id = ?1 OR name = ?1) AND (?3 IS NULL OR \"user\" = ?3)"

#define RV_SQL_SCHEDULE_STATEMENTS(X)                                                                                  \
    X(ADD_SCHEDULE, "INSERT INTO schedules (id, tenant, \"user\", name, kind, expr, zone, type, tier, needs, payload," \
                    " bundle, pipeline, priority, max_retries, created_us, updated_us, next_us, look_us, last_us,"     \
                    " n_fired, n_skipped) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,"   \
                    " ?16, ?16, ?17, ?17, 0, 0, 0) ON CONFLICT DO NOTHING")                                            \
    X(REPLACE_SCHEDULE, "DELETE FROM schedules WHERE tenant = ?1 AND name = ?2 AND \"user\" = ?3 AND next_us = 0")     \
    X(GET_SCHEDULE,                                                                                                    \
      RV_SQL_SCHEDULE " WHERE s.tenant = ?2 AND (s.id = ?1 OR s.name = ?1) AND (?3 IS NULL OR s.\"user\" = ?3)")       \
    X(SCHEDULES, RV_SQL_SCHEDULE " WHERE s.tenant = ?1 AND (?2 IS NULL OR s.\"user\" = ?2)"                            \
                                 " ORDER BY s.next_us = 0, s.next_us, s.name")                                         \
    X(DELETE_SCHEDULE, "DELETE FROM schedules" RV_SQL_NAMED_SCHEDULE)                                                  \
    X(CHANGE_SCHEDULE, "UPDATE schedules SET kind = COALESCE(?4, kind), expr = COALESCE(?5, expr),"                    \
                       " zone = COALESCE(?6, zone), next_us = COALESCE(?7, next_us), look_us = COALESCE(?7, look_us)," \
                       " error = CASE WHEN ?7 IS NULL THEN error END, priority = COALESCE(?8, priority),"              \
                       " updated_us = ?9" RV_SQL_NAMED_SCHEDULE)                                                       \
    X(SCHEDULE_KEY, "SELECT key FROM schedules" RV_SQL_NAMED_SCHEDULE)                                                 \
    X(FIRINGS, "SELECT planned_us, since_us, at_us, made, skipped FROM firings WHERE schedule = ?1"                    \
               " ORDER BY planned_us DESC LIMIT ?2")                                                                   \
    X(DUE_SCHEDULES, "SELECT id, tenant, next_us FROM (SELECT id, tenant, next_us, look_us, key, row_number() OVER"    \
                     " (PARTITION BY tenant ORDER BY look_us, key) AS place FROM schedules WHERE look_us > 0"          \
                     " AND look_us <= ?1) AS d ORDER BY place, look_us, key LIMIT ?2")                                 \
    X(FIRED_KEY, "SELECT key FROM schedules WHERE id = ?1 AND next_us = ?2 /*! FOR UPDATE SKIP LOCKED */")             \
    X(FIRE_SCHEDULE, "UPDATE schedules SET next_us = ?2, look_us = ?2, last_us = CASE WHEN ?4 > 0 THEN ?3"             \
                     " ELSE last_us END, n_fired = n_fired + ?4, n_skipped = n_skipped + ?5, updated_us = ?6,"         \
                     " error = NULL WHERE key = ?1")                                                                   \
    X(ADD_FIRING, "INSERT INTO firings (schedule, planned_us, since_us, at_us, made, skipped)"                         \
                  " VALUES (?1, ?2, ?3, ?4, ?5, ?6)")                                                                  \
    X(DROP_FIRINGS, "DELETE FROM firings WHERE schedule = ?1 AND planned_us <= (SELECT planned_us FROM firings"        \
                    " WHERE schedule = ?1 ORDER BY planned_us DESC LIMIT 1 OFFSET ?2)")                                \
    X(POSTPONE_SCHEDULE, "UPDATE schedules SET look_us = ?3, error = ?4, updated_us = ?5"                              \
                         " WHERE id = ?1 AND next_us = ?2")                                                            \
    X(PRUNE_SCHEDULES, "DELETE FROM schedules WHERE next_us = 0 AND updated_us < ?1")

#endif
