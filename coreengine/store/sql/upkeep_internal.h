/* Statements of copy.c and of the marks that a copy leaves; see sql_internal.h. */
#ifndef RV_STORE_SQL_UPKEEP_INTERNAL_H
#define RV_STORE_SQL_UPKEEP_INTERNAL_H

#define RV_SQL_COPY_STATEMENTS(X)                                                                                      \
    X(ABOUT, "SELECT value FROM about WHERE name = ?1")                                                                \
    X(SET_ABOUT, "INSERT INTO about (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE"                        \
                 " SET value = excluded.value")                                                                        \
    X(DROP_PROBE, "DELETE FROM about WHERE name = 'probe'")                                                            \
    X(DROP_COPY_MARK, "DELETE FROM about WHERE name IN ('copy_of', 'copy_from', 'copy_by')")                           \
    X(STILL_COPIES, "UPDATE about SET value = ?1 WHERE name = 'copy_by' AND value = ?1")                               \
    X(LEASED_RUNS, "SELECT id, owner, lease_until_us FROM runs WHERE owner IS NOT NULL AND lease_until_us > ?1"        \
                   " AND status IN ('ready', 'running')")                                                              \
    X(LEASED_TASKS, "SELECT id, worker, lease_until_us FROM tasks WHERE status = 'processing'"                         \
                    " AND lease_until_us > ?1")                                                                        \
    X(NEW_FENCES, "UPDATE runs SET fence = fence + 1, lease_until_us = 0 WHERE owner IS NOT NULL")

#endif
