/* The statements of the files in queue/; see sql_internal.h.
 *
 * A comment that begins with ! is for databases in which several transactions write at once: their driver takes it for
 * part of the statement. In SQLite there is one writer, and it is a comment. Such transactions lock a task before its
 * lane, or skip tasks that are locked: so none of them waits for one that waits for it. A list with a limit that locks
 * is MATERIALIZED: else PostgreSQL may ask for it once for each row, and each time for those that are left. */
#ifndef RV_STORE_SQL_QUEUE_INTERNAL_H
#define RV_STORE_SQL_QUEUE_INTERNAL_H

/* --- Tasks --- */
/* In the order of row_of() in tasks_read.c. */
#define RV_SQL_TASK                                                                                                    \
    "SELECT t.id, t.tenant, t.\"user\", t.type, c.tier, t.idempotency, t.payload, t.result, t.error, t.status,"        \
    " t.worker, t.cancel, l.class, t.priority, t.attempt, t.retry_count, t.max_retries, t.created_us, t.updated_us,"   \
    " t.scheduled_us, t.started_us, t.completed_us, t.claimed_us, t.lease_until_us, t.key, t.n_events FROM tasks t"    \
    " JOIN lanes l ON l.key = t.lane JOIN classes c ON c.id = l.class"

/* In the order of store_task_found() in tasks.c. */
#define RV_SQL_FOUND_TASK                                                                                              \
    "SELECT key, lane, status, cancel, attempt, retry_count, max_retries, n_events, claimed_us, lease_until_us,"       \
    " scheduled_us, worker, id, tenant FROM tasks"

/* A lane that a worker can take something from. The indexes lanes_open and lanes_shut have the same words. */
#define RV_SQL_OPEN_LANE "n_pending > 0 AND n_processing < cap"

/* The virtual time of the least served lane of the class that is open, or of the most served one when none is. */
#define RV_SQL_CLASS_TIME                                                                                              \
    "coalesce((SELECT min(o.vt) FROM lanes o WHERE o.class = lanes.class AND o.n_pending > 0"                          \
    " AND o.n_processing < o.cap), (SELECT max(o.vt) FROM lanes o WHERE o.class = lanes.class"                         \
    " AND NOT (o.n_pending > 0 AND o.n_processing < o.cap)))"

#define RV_SQL_LANE "SELECT key, cap - n_processing, weight FROM lanes WHERE class = ?1 AND " RV_SQL_OPEN_LANE

#define RV_SQL_TASK_STATEMENTS(X)                                                                                      \
    X(FIND_CLASS, "SELECT id FROM classes WHERE tier = ?1 AND needs = ?2")                                             \
    X(ADD_CLASS, "INSERT INTO classes (tier, needs) VALUES (?1, ?2) ON CONFLICT (tier, needs) DO NOTHING")             \
    X(CLASSES, "SELECT id, tier, needs FROM classes ORDER BY id")                                                      \
    X(FIND_LANE, "SELECT key FROM lanes WHERE tenant = ?1 AND class = ?2")                                             \
    X(ADD_LANE, "INSERT INTO lanes (tenant, class, vt, weight, cap, n_pending, n_processing)"                          \
                " VALUES (?1, ?2, 0, coalesce((SELECT weight FROM shares WHERE tenant = ?1), 1),"                      \
                " coalesce((SELECT cap FROM shares WHERE tenant = ?1), ?3), 0, 0)"                                     \
                " ON CONFLICT (tenant, class) DO NOTHING")                                                             \
    X(LANES, "SELECT l.class, c.tier, l.tenant, l.n_pending, l.n_processing, l.weight, l.cap FROM lanes l"             \
             " JOIN classes c ON c.id = l.class WHERE l.tenant = ?1 ORDER BY l.class")                                 \
    X(MOVE_LANE, "UPDATE lanes SET n_pending = n_pending + ?2, n_processing = n_processing + ?3,"                      \
                 " vt = CASE WHEN NOT (" RV_SQL_OPEN_LANE ") AND n_pending + ?2 > 0 AND n_processing + ?3 < cap"       \
                 " AND " RV_SQL_CLASS_TIME " > vt THEN " RV_SQL_CLASS_TIME " ELSE vt END WHERE key = ?1")              \
    X(SERVE_LANE, "UPDATE lanes SET n_pending = n_pending - ?2, n_processing = n_processing + ?2, vt = vt + ?3"        \
                  " WHERE key = ?1")                                                                                   \
    X(FREE_LANE, RV_SQL_LANE " ORDER BY vt, key LIMIT 1 /*! FOR NO KEY UPDATE SKIP LOCKED */")                         \
    X(ANY_LANE, RV_SQL_LANE " ORDER BY vt, key LIMIT 1 /*! FOR NO KEY UPDATE */")                                      \
    X(IS_OPEN, "SELECT 1 FROM lanes WHERE class = ?1 AND " RV_SQL_OPEN_LANE " LIMIT 1")                                \
    X(SET_SHARE, "INSERT INTO shares (tenant, weight, cap) VALUES (?1, ?2, ?3) ON CONFLICT (tenant) DO UPDATE"         \
                 " SET weight = excluded.weight, cap = excluded.cap")                                                  \
    X(SHARE_LANES,                                                                                                     \
      "UPDATE lanes SET weight = ?2, cap = ?3, vt = CASE WHEN NOT (" RV_SQL_OPEN_LANE ") AND n_pending > 0"            \
      " AND n_processing < ?3 AND " RV_SQL_CLASS_TIME " > vt THEN " RV_SQL_CLASS_TIME " ELSE vt END"                   \
      " WHERE tenant = ?1")                                                                                            \
    X(FIND_KEY, "SELECT id FROM tasks WHERE tenant = ?1 AND \"user\" = ?2 AND type = ?3 AND idempotency = ?4"          \
                " AND status IN ('waiting', 'pending', 'processing')")                                                 \
    X(SAME_KEY, "SELECT o.id FROM tasks t JOIN tasks o ON o.tenant = t.tenant AND o.\"user\" = t.\"user\""             \
                " AND o.type = t.type AND o.idempotency = t.idempotency"                                               \
                " AND o.status IN ('waiting', 'pending', 'processing') WHERE t.key = ?1")                              \
    X(HAS_TASK, "SELECT 1 FROM tasks WHERE id = ?1")                                                                   \
    X(ADD_TASK, "INSERT INTO tasks (id, lane, tenant, \"user\", type, idempotency, payload, status, cancel, priority," \
                " attempt, retry_count, max_retries, n_events, created_us, updated_us, scheduled_us, started_us,"      \
                " completed_us, claimed_us, lease_until_us)"                                                           \
                " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, ?9, 0, 0, ?10, 0, ?11, ?11, ?12, 0, 0, 0, 0)"             \
                " ON CONFLICT DO NOTHING")                                                                             \
    X(FIND_TASK, RV_SQL_FOUND_TASK " WHERE id = ?1 AND (?2 IS NULL OR tenant = ?2)"                                    \
                                   " AND (?3 IS NULL OR \"user\" = ?3) /*! FOR UPDATE */")                             \
    X(GET_TASK, RV_SQL_TASK " WHERE t.id = ?1 AND t.tenant = ?2 AND (?3 IS NULL OR t.\"user\" = ?3)")                  \
    X(CLAIMABLE, RV_SQL_TASK " WHERE t.lane = ?1 AND t.status = 'pending'"                                             \
                             " ORDER BY t.priority DESC, t.scheduled_us, t.key LIMIT ?2"                               \
                             " /*! FOR UPDATE OF t SKIP LOCKED */")                                                    \
    X(CLAIM_TASK, "UPDATE tasks SET status = 'processing', worker = ?2, claimed_us = ?3, started_us = ?3,"             \
                  " updated_us = ?3, lease_until_us = ?4, attempt = attempt + 1, n_events = n_events + 1"              \
                  " WHERE key = ?1")                                                                                   \
    /* The last argument comes back with its row. */                                                                   \
    X(COMPLETE_TASK, "UPDATE tasks SET status = 'completed', updated_us = ?4, completed_us = ?4, result = ?5,"         \
                     " cancel = 0, worker = NULL, claimed_us = 0, lease_until_us = 0, n_events = n_events + 1"         \
                     " WHERE id = ?1 AND status = 'processing' AND worker = ?2 AND attempt = ?3"                       \
                     " RETURNING ?6, key, lane, n_events")                                                             \
    X(SET_TASK, "UPDATE tasks SET status = ?2, updated_us = ?3, retry_count = ?4, completed_us = ?5,"                  \
                " scheduled_us = ?6, error = coalesce(?7, error), result = ?8, cancel = 0,"                            \
                " worker = NULL, claimed_us = 0, lease_until_us = 0, n_events = n_events + 1 WHERE key = ?1")          \
    X(TASK_TENANT, "SELECT tenant FROM tasks WHERE id = ?1")                                                           \
    X(MARK_TASK, "UPDATE tasks SET cancel = cancel + ?2, updated_us = ?3, n_events = n_events + 1 WHERE key = ?1")     \
    X(ADD_EVENT, "INSERT INTO task_events (task, seq, at_us, kind, attempt, worker, text, retry, next_us)"             \
                 " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")                                                       \
    X(EVENTS, "SELECT seq, at_us, kind, attempt, worker, text, retry, next_us FROM task_events WHERE task = ?1"        \
              " ORDER BY seq")                                                                                         \
    X(HEARTBEAT, "UPDATE tasks SET claimed_us = ?2, lease_until_us = CASE WHEN lease_until_us < ?3 THEN ?3"            \
                 " ELSE lease_until_us END WHERE worker = ?1 AND status = 'processing'")                               \
    X(HELD, "SELECT id, attempt, cancel FROM tasks WHERE worker = ?1 AND status = 'processing' ORDER BY key")          \
    X(NEXT_TASKS, "SELECT (SELECT count(*) FROM classes),"                                                             \
                  " (SELECT min(scheduled_us) FROM tasks WHERE status = 'waiting'),"                                   \
                  " (SELECT min(lease_until_us) FROM tasks WHERE status = 'processing'),"                              \
                  " (SELECT min(look_us) FROM schedules WHERE look_us > 0)")                                           \
    X(DUE_TASKS, "SELECT key, lane FROM tasks WHERE status = 'waiting' AND scheduled_us <= ?1"                         \
                 " ORDER BY scheduled_us, key LIMIT ?2 /*! FOR UPDATE SKIP LOCKED */")                                 \
    X(PROMOTE_TASK, "UPDATE tasks SET status = 'pending', updated_us = ?2 WHERE key = ?1")                             \
    X(STALE_TASK, RV_SQL_FOUND_TASK " WHERE status = 'processing' AND lease_until_us <= ?1"                            \
                                    " ORDER BY lease_until_us, key LIMIT 1 /*! FOR UPDATE SKIP LOCKED */")             \
    X(TASK_KEYS, "SELECT (SELECT coalesce(min(key), 1) FROM tasks), (SELECT coalesce(max(key), 0) FROM tasks)")        \
    X(SWEEP_TASKS, "DELETE FROM tasks WHERE key >= ?1 AND key < ?2 AND type = 'run' AND idempotency IS NOT NULL"       \
                   " AND status IN ('completed', 'failed', 'cancelled')"                                               \
                   " AND (SELECT 1 FROM runs r WHERE r.id = tasks.idempotency LIMIT 1) IS NULL")                       \
    X(PRUNE_TASKS, "WITH old AS MATERIALIZED (SELECT key FROM tasks WHERE completed_us > 0 AND completed_us < ?1"      \
                   " ORDER BY completed_us, key LIMIT ?2 /*! FOR UPDATE SKIP LOCKED */)"                               \
                   " DELETE FROM tasks WHERE key IN (SELECT key FROM old)")

/* --- Schedules --- */
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

/* --- Workers, and runs that no process drives --- */
/* A run r without a task that begins it or goes on with it. */
#define RV_SQL_NO_TASK                                                                                                 \
    " AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.tenant = r.tenant AND t.\"user\" = r.\"user\" AND t.type = 'run'"  \
    " AND t.idempotency = r.id AND t.status IN ('waiting', 'pending', 'processing'))"

/* Not those whose ids begin so. */
#define RV_SQL_NOT_THEIRS " AND (?3 = '' OR substr(r.id, 1, length(?3)) <> ?3)"

#define RV_SQL_WORKER_STATEMENTS(X)                                                                                    \
    X(PUT_WORKER, "INSERT INTO workers (name, host, pid, offers, n_max, n_runs, draining, started_us, seen_us)"        \
                  " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (name) DO UPDATE SET"                      \
                  " offers = excluded.offers, n_max = excluded.n_max, n_runs = excluded.n_runs,"                       \
                  " draining = excluded.draining, seen_us = excluded.seen_us")                                         \
    X(WORKERS, "SELECT name, host, pid, offers, n_max, n_runs, draining, started_us, seen_us FROM workers"             \
               " WHERE seen_us >= ?1 ORDER BY started_us, name")                                                       \
    X(DROP_WORKERS, "DELETE FROM workers WHERE name = ?1 OR seen_us < ?2")                                             \
    X(DROP_DUTIES, "DELETE FROM duties WHERE worker = ?1")                                                             \
    X(TAKE_DUTY, "INSERT INTO duties (name, worker, until_us) VALUES (?1, ?2, ?3) ON CONFLICT (name) DO UPDATE"        \
                 " SET worker = excluded.worker, until_us = excluded.until_us"                                         \
                 " WHERE duties.worker = excluded.worker OR duties.until_us <= ?4")                                    \
    X(HAS_DUTY, "SELECT worker FROM duties WHERE name = ?1")                                                           \
    X(DROP_DUTY, "DELETE FROM duties WHERE name = ?1 AND worker = ?2")                                                 \
    X(PRUNE_DUTIES, "DELETE FROM duties WHERE until_us < ?1")                                                          \
    X(OWNERS, "SELECT DISTINCT owner FROM runs WHERE owner IS NOT NULL AND status IN ('ready', 'running')")            \
    X(LEFT, "SELECT " RV_SQL_RUN " WHERE r.status IN ('ready', 'running') AND ((r.owner IS NULL AND"                   \
            " r.status = 'running') OR (r.owner IS NOT NULL AND r.lease_until_us <= ?2))" RV_SQL_NOT_THEIRS            \
            " AND (r.created_us > ?4 OR (r.created_us = ?4 AND r.id > ?5))" RV_SQL_NO_TASK                             \
            " ORDER BY r.created_us, r.id LIMIT ?1")                                                                   \
    X(LEFT_BY, "SELECT " RV_SQL_RUN " WHERE r.status IN ('ready', 'running') AND r.owner = ?2" RV_SQL_NOT_THEIRS       \
               " AND (r.created_us > ?4 OR (r.created_us = ?4 AND r.id > ?5))" RV_SQL_NO_TASK                          \
               " ORDER BY r.created_us, r.id LIMIT ?1")                                                                \
    X(EXPIRED, "SELECT " RV_SQL_RUN                                                                                    \
               " WHERE r.status IN ('interrupted') AND r.expires_us > 0 AND r.expires_us <= ?2" RV_SQL_NOT_THEIRS      \
               " AND (r.expires_us < ?4 OR (r.expires_us = ?4 AND r.id > ?5))" RV_SQL_NO_TASK                          \
               " ORDER BY r.expires_us DESC, r.id LIMIT ?1")

#endif
