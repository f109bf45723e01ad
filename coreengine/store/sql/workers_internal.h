/* Statements of workers.c; see sql_internal.h. */
#ifndef RV_STORE_SQL_WORKERS_INTERNAL_H
#define RV_STORE_SQL_WORKERS_INTERNAL_H

/* A run r without a task that begins it or goes on with it. */
#define RV_SQL_NO_TASK                                                                                                 \
    " AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.tenant = r.tenant AND t.\"user\" = r.\"user\" AND t.type = 'run'"  \
    " AND t.idempotency = r.id AND t.status IN ('waiting', 'pending', 'processing'))"

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
    X(OWNERS, "SELECT DISTINCT owner FROM runs WHERE owner IS NOT NULL AND status IN ('ready', 'running')")            \
    X(LEFT, "SELECT " RV_SQL_RUN " WHERE r.status IN ('ready', 'running') AND ((r.owner IS NULL AND"                   \
            " r.status = 'running') OR (r.owner IS NOT NULL AND r.lease_until_us <= ?2))" RV_SQL_NO_TASK               \
            " ORDER BY r.created_us, r.id LIMIT ?1")                                                                   \
    X(LEFT_BY, "SELECT " RV_SQL_RUN " WHERE r.status IN ('ready', 'running') AND r.owner = ?2" RV_SQL_NO_TASK          \
               " ORDER BY r.created_us, r.id LIMIT ?1")                                                                \
    X(EXPIRED, "SELECT " RV_SQL_RUN                                                                                    \
               " WHERE r.status IN ('interrupted') AND r.expires_us > 0 AND r.expires_us <= ?2" RV_SQL_NO_TASK         \
               " ORDER BY r.expires_us DESC, r.id LIMIT ?1")

#endif
