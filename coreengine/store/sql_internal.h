/* The statements of the store, and what carries them out: one connection, its prepared statements, its transaction. The
 * files that read and write rows (runs.c, sessions.c, ...) know this header and no database. Statements are written
 * once, in SQL that every database understands; what differs between databases is behind struct sql_driver. Statements
 * are prepared at first use and kept for the life of the handle. */
#ifndef RV_STORE_SQL_INTERNAL_H
#define RV_STORE_SQL_INTERNAL_H

#include "coreengine/store/sql_copy_internal.h"
#include "coreengine/store/sql_interrupts_internal.h"
#include "coreengine/store/sql_quotas_internal.h"
#include "coreengine/store/sql_schedules_internal.h"
#include "coreengine/store/sql_tasks_internal.h"
#include "coreengine/store/sql_workers_internal.h"
#include "coreengine/store/store.h"

/* The columns of a run's row for readers, in the order of row_of() in runs_read.c. */
#define RV_SQL_RUN                                                                                                     \
    "r.id, r.tenant, r.\"user\", r.session, r.pipeline, b.hash, r.parent, r.parent_seq, r.status, r.stage, "           \
    "r.created_us,"                                                                                                    \
    " r.updated_us, r.expires_us, r.n_records, r.owner, r.fence, r.lease_until_us, r.cancel, r.n_pending"              \
    " FROM runs r LEFT JOIN blobs b ON b.key = r.bundle"

#define RV_SQL_PENDING                                                                                                 \
    "SELECT r.id, p.id, p.kind, p.stage, r.\"user\", p.text, p.body, p.created_us, p.expires_us FROM pending p"        \
    " JOIN runs r ON r.key = p.run"

/* In the order of row_of() in sessions.c, message_of() in messages.c and row_of() in documents.c. */
#define RV_SQL_SESSION                                                                                                 \
    "SELECT key, id, tenant_id, user_id, name, description, agent_name, mode, total_tokens, n_messages, metadata,"     \
    " created_us, updated_us, deleted_us, status FROM sessions"

#define RV_SQL_MESSAGES                                                                                                \
    "SELECT id, seq, message_type, content, tool_calls, token_count, agent_name, model, trace_id, span_id, run_id,"    \
    " input_tokens, output_tokens, cost_micro_usd, latency_ms, status, parent_call_id, metadata, created_us"           \
    " FROM messages WHERE session = ?1 AND seq BETWEEN ?2 AND ?3 AND (?4 <> 0 OR parent_call_id IS NULL)"              \
    " AND (deleted_us IS NULL OR deleted_us > ?6)"

/* Messages that were deleted one by one and still have words, of sessions without a run that would be told them again.
 */
#define RV_SQL_WORDS_TO_GO                                                                                             \
    "WHERE deleted_us IS NOT NULL AND (content IS NOT NULL OR tool_calls IS NOT NULL OR metadata IS NOT NULL)"         \
    " AND NOT EXISTS (SELECT 1 FROM sessions s JOIN runs r ON r.tenant = s.tenant_id AND r.\"user\" = s.user_id"       \
    " AND r.session = s.id WHERE s.key = m.session AND r.status IN ('ready', 'running', 'interrupted'))"

/* Sessions s whose words can go: deleted, and none of their runs would have to be told them again. */
#define RV_SQL_PURGED                                                                                                  \
    "WHERE deleted_us IS NOT NULL AND (n_messages > 0 OR name <> '') AND NOT EXISTS (SELECT 1 FROM runs r"             \
    " WHERE r.tenant = s.tenant_id AND r.\"user\" = s.user_id AND r.session = s.id"                                    \
    " AND r.status IN ('ready', 'running', 'interrupted'))"

#define RV_SQL_SCHEMA                                                                                                  \
    "SELECT key, id, tenant_id, user_id, name, kind, version, description, content, json_schema, document, source,"    \
    " place, checksum, created_us, updated_us, deleted_us FROM schemas"

#define RV_SQL_STATEMENTS(X)                                                                                           \
    X(BEGIN_READ, "BEGIN")                                                                                             \
    X(BEGIN_WRITE, "BEGIN IMMEDIATE")                                                                                  \
    X(COMMIT, "COMMIT")                                                                                                \
    X(ROLLBACK, "ROLLBACK")                                                                                            \
    X(FIND, "SELECT key, fence, n_records, owner, lease_until_us, status, n_pending, n_open FROM runs WHERE id = ?1"   \
            " AND (?2 IS NULL OR tenant = ?2) AND (?3 IS NULL OR \"user\" = ?3)")                                      \
    X(GET, "SELECT " RV_SQL_RUN " WHERE r.id = ?1 AND r.tenant = ?2 AND (?3 IS NULL OR r.\"user\" = ?3)")              \
    X(ADD_RUN, "INSERT INTO runs (id, tenant, \"user\", session, pipeline, bundle, parent, parent_seq, status, stage," \
               " created_us, updated_us, expires_us, n_records, owner, fence, lease_until_us, cancel, n_pending)"      \
               " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11, 0, ?12, ?13, 1, ?14, 0, 0)")               \
    X(ADD_RECORD, "INSERT INTO records (run, seq, kind, body, value, blob) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")           \
    X(ADVANCE, "UPDATE runs SET status = ?2, stage = ?3, updated_us = ?4, n_records = n_records + ?5,"                 \
               " cancel = cancel * (1 - ?6) WHERE key = ?1")                                                           \
    X(DISOWN, "UPDATE runs SET owner = NULL, lease_until_us = 0 WHERE key = ?1")                                       \
    X(CLEAR_PENDING, "DELETE FROM pending WHERE run = ?1")                                                             \
    X(ADD_PENDING, "INSERT INTO pending (run, n, id, kind, stage, text, body, created_us, expires_us)"                 \
                   " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")                                                     \
    X(COUNT_PENDING, "UPDATE runs SET n_pending = ?2, expires_us = ?3 WHERE key = ?1")                                 \
    X(DELETE_RUN, "DELETE FROM runs WHERE key = ?1")                                                                   \
    X(CLAIM, "UPDATE runs SET owner = ?2, fence = fence + 1, lease_until_us = ?3 WHERE key = ?1")                      \
    X(RENEW, "UPDATE runs SET lease_until_us = ?2 WHERE owner = ?1 AND lease_until_us < ?2")                           \
    X(CANCEL, "UPDATE runs SET cancel = 1, updated_us = ?2 WHERE key = ?1")                                            \
    X(CANCELS, "SELECT id FROM runs WHERE owner = ?1 AND cancel <> 0 ORDER BY created_us, id")                         \
    X(READ, "SELECT r.seq, r.kind, r.body, r.value, r.blob, b.data FROM records r LEFT JOIN blobs b ON b.key = r.blob" \
            " WHERE r.run = ?1 AND r.seq BETWEEN ?2 AND ?3 ORDER BY r.seq")                                            \
    X(PENDING,                                                                                                         \
      RV_SQL_PENDING " WHERE r.tenant = ?1 AND (?2 IS NULL OR r.\"user\" = ?2) ORDER BY p.created_us, r.id, p.n")      \
    X(PENDING_OF, RV_SQL_PENDING " WHERE p.run = ?1 ORDER BY p.created_us, p.n")                                       \
    X(FIND_BLOB, "SELECT key FROM blobs WHERE hash = ?1")                                                              \
    X(ADD_BLOB, "INSERT INTO blobs (hash, created_us, data) VALUES (?1, ?2, ?3)")                                      \
    X(TOUCH_BLOB, "UPDATE blobs SET created_us = ?2 WHERE key = ?1 AND created_us < ?2")                               \
    X(GET_BLOB, "SELECT data FROM blobs WHERE hash = ?1")                                                              \
    X(PUT_SNAPSHOT, "INSERT INTO snapshots (run, seq, body) VALUES (?1, ?2, ?3) ON CONFLICT (run) DO UPDATE"           \
                    " SET seq = excluded.seq, body = excluded.body WHERE excluded.seq >= snapshots.seq")               \
    X(GET_SNAPSHOT, "SELECT seq, body FROM snapshots WHERE run = ?1")                                                  \
    X(LAST_BLOB, "SELECT coalesce(max(key), 0) FROM blobs")                                                            \
    X(SWEEP, "DELETE FROM blobs WHERE key > ?1 AND key <= ?2 AND created_us <= ?3"                                     \
             " AND NOT EXISTS (SELECT 1 FROM records WHERE blob = blobs.key)"                                          \
             " AND NOT EXISTS (SELECT 1 FROM runs WHERE bundle = blobs.key)"                                           \
             " AND NOT EXISTS (SELECT 1 FROM schedules WHERE bundle = blobs.key)")                                     \
    X(STATS,                                                                                                           \
      "SELECT (SELECT count(*) FROM runs), (SELECT CAST(coalesce(sum(n_records), 0) AS BIGINT) FROM runs),"            \
      " (SELECT count(*) FROM blobs), (SELECT count(*) FROM pending), (SELECT count(*) FROM snapshots),"               \
      " (SELECT count(*) FROM sessions WHERE deleted_us IS NULL), (SELECT CAST(coalesce(sum(n_messages), 0)"           \
      " AS BIGINT) FROM sessions WHERE deleted_us IS NULL), (SELECT count(*) FROM schemas WHERE deleted_us IS NULL),"  \
      " (SELECT count(*) FROM tasks)")                                                                                 \
    X(BEGIN_PART, "SAVEPOINT part")                                                                                    \
    X(UNDO_PART, "ROLLBACK TO part")                                                                                   \
    X(END_PART, "RELEASE part")                                                                                        \
    X(OWNER_OF_RUN, "SELECT tenant, \"user\" FROM runs WHERE key = ?1")                                                \
    X(FIND_SESSION, RV_SQL_SESSION " WHERE tenant_id = ?1 AND id = ?2 AND user_id = coalesce(?3, user_id)"             \
                                   " ORDER BY deleted_us IS NOT NULL LIMIT 1")                                         \
    X(COUNT_SESSIONS, "SELECT count(*) FROM sessions WHERE tenant_id = ?1 AND id = ?2 AND deleted_us IS NULL")         \
    X(ADD_SESSION, "INSERT INTO sessions (id, tenant_id, user_id, name, description, agent_name, mode, total_tokens,"  \
                   " n_messages, metadata, created_us, updated_us, status)"                                            \
                   " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0, ?8, ?9, ?9, ?10)")                                      \
    X(CHANGE_SESSION, "UPDATE sessions SET name = coalesce(?2, name), mode = coalesce(?3, mode),"                      \
                      " metadata = coalesce(?4, metadata), status = coalesce(?6, status), updated_us = ?5"             \
                      " WHERE key = ?1")                                                                               \
    X(KEEP_TURN, "UPDATE sessions SET name = coalesce(?2, name), metadata = coalesce(?3, metadata),"                   \
                 " total_tokens = ?4, n_messages = ?5, updated_us = ?6 WHERE key = ?1")                                \
    X(DELETE_SESSION, "UPDATE sessions SET deleted_us = ?2, updated_us = ?2 WHERE key = ?1")                           \
    X(PURGE_MESSAGES, "DELETE FROM messages WHERE session IN (SELECT key FROM sessions s " RV_SQL_PURGED ")")          \
    X(PURGE_SESSIONS, "UPDATE sessions AS s SET name = '', description = NULL, metadata = '{}', total_tokens = 0,"     \
                      " n_messages = 0 " RV_SQL_PURGED)                                                                \
    X(DELETE_MESSAGE, "UPDATE messages SET deleted_us = ?3 WHERE session = ?1 AND seq = ?2 AND deleted_us IS NULL")    \
    X(PURGE_WORDS, "UPDATE messages AS m SET content = NULL, tool_calls = NULL, metadata = NULL " RV_SQL_WORDS_TO_GO)  \
    X(ADD_MESSAGE, "INSERT INTO messages (session, seq, id, message_type, content, tool_calls, token_count,"           \
                   " agent_name, model, trace_id, span_id, run_id, input_tokens, output_tokens, cost_micro_usd,"       \
                   " latency_ms, status, parent_call_id, metadata, created_us) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7,"    \
                   " ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)"                                   \
                   " ON CONFLICT (session, id) DO NOTHING")                                                            \
    X(MESSAGES, RV_SQL_MESSAGES " ORDER BY seq LIMIT ?5")                                                              \
    X(MESSAGES_NEWEST, RV_SQL_MESSAGES " ORDER BY seq DESC LIMIT ?5")                                                  \
    X(SAME_SCHEMA, RV_SQL_SCHEMA " WHERE tenant_id = ?1 AND kind = ?2 AND name = ?3 AND user_id = ?4")                 \
    X(FIND_SCHEMA, RV_SQL_SCHEMA " WHERE tenant_id = ?1 AND kind = ?2 AND name = ?3 AND user_id IN (?4, '')"           \
                                 " AND deleted_us IS NULL ORDER BY user_id = '' LIMIT 1")                              \
    X(LIST_SCHEMAS, RV_SQL_SCHEMA " WHERE tenant_id = ?1 AND (?2 IS NULL OR kind = ?2)"                                \
                                  " AND (?3 IS NULL OR user_id IN (?3, '')) AND deleted_us IS NULL"                    \
                                  " ORDER BY name, kind, user_id = '', user_id")                                       \
    X(SCHEMA_ID, "SELECT user_id, kind, name FROM schemas WHERE tenant_id = ?1 AND id = ?2")                           \
    X(ADD_SCHEMA, "INSERT INTO schemas (id, tenant_id, user_id, name, kind, version, description, content,"            \
                  " json_schema, document, source, place, checksum, created_us, updated_us)"                           \
                  " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?14)")                        \
    X(SET_SCHEMA, "UPDATE schemas SET version = ?6, description = ?7, content = ?8, json_schema = ?9, document = ?10," \
                  " source = ?11, place = ?12, checksum = ?13, updated_us = ?14, deleted_us = NULL WHERE key = ?15")   \
    X(DELETE_SCHEMA, "UPDATE schemas SET deleted_us = ?2, updated_us = ?2 WHERE key = ?1")                             \
    X(COUNT_CHANGE, "UPDATE counters SET value = value + 1 WHERE name = ?1")                                           \
    X(LOCK_SCHEMAS, "SELECT value FROM counters WHERE name = ?1")                                                      \
    X(COUNTER, "SELECT value FROM counters WHERE name = ?1")                                                           \
    RV_SQL_TASK_STATEMENTS(X)                                                                                          \
    RV_SQL_WORKER_STATEMENTS(X)                                                                                        \
    RV_SQL_COPY_STATEMENTS(X)                                                                                          \
    RV_SQL_SCHEDULE_STATEMENTS(X)                                                                                      \
    RV_SQL_QUOTA_STATEMENTS(X)                                                                                         \
    RV_SQL_INTERRUPT_STATEMENTS(X)

enum sql_id {
#define X(name, text) SQL_##name,
    RV_SQL_STATEMENTS(X)
#undef X
        SQL_N_STATEMENTS
};

/* --- Values --- */

enum sql_type {
    SQL_NULL, /* nothing was bound */
    SQL_INT,  /* a 64-bit number */
    SQL_TEXT, /* a short text without NUL: an id, a name, a status */
    SQL_STR,  /* UTF-8 of any length that may have NULs: words of models and people, JSON */
    SQL_BLOB, /* bytes */
};
/* An argument or a column. Texts and bytes are borrowed; ptr NULL: null. */
struct sql_value {
    enum sql_type type;
    int64_t number;
    rv_str bytes;
};
#define RV_SQL_MAX_ARGS 28

struct sql_store;
/* A statement that was prepared, and its arguments. A driver's own statement begins with it. */
typedef struct rv_sql_stmt {
    struct sql_store *st;
    int n_args; /* 1 to n_args may be bound */
    bool is_running;
    struct sql_value args[RV_SQL_MAX_ARGS];
} rv_sql_stmt;

/* What a statement that changes rows is asked for. Nothing: the driver may send it later, with others, and report its
 * failure at the next statement that gives something or at the end of the transaction. */
enum sql_wants { SQL_WANTS_NOTHING, SQL_WANTS_KEY, SQL_WANTS_COUNT };

struct rv_report;        /* upkeep.c */
struct rv_store_version; /* copy.h */
struct sql_rows;

/* What a database does in its own way. Codes and errors are the store's. */
struct sql_driver {
    const char *name;
    void (*close)(struct sql_store *st);
    void (*set_wait)(struct sql_store *st, int64_t ms);
    rv_sql_stmt *(*use)(struct sql_store *st, enum sql_id id);
    rv_sql_stmt *(*prepare)(struct sql_store *st, const rv_buf *sql); /* NULL: no memory */
    void (*finish)(rv_sql_stmt *stmt);                                /* of prepare() */
    void (*reset)(rv_sql_stmt *stmt);
    int (*step)(rv_sql_stmt *stmt, const char *what, rv_err **err); /* as rv_sql_step() */
    int (*run)(rv_sql_stmt *stmt, enum sql_wants wants, int64_t *out, const char *what, rv_err **err);
    /* Column i from 0 as that type; out stays as it is for null. *lacked: no memory for it. */
    void (*column)(const rv_sql_stmt *stmt, int i, enum sql_type type, struct sql_value *out, bool *lacked);
    rv_sql_stmt *(*use_rows)(struct sql_store *st, enum sql_id id); /* as rv_sql_use_rows(); so the next two */
    int (*add_row)(const struct sql_rows *rows, rv_err **err);
    int (*end_rows)(const struct sql_rows *rows, int rc, rv_err **err);
    /* Transactions, as the functions of these names. */
    int (*begin_read)(struct sql_store *st, bool *began, rv_err **err);
    void (*end_read)(struct sql_store *st, bool began);
    int (*begin_write)(struct sql_store *st, const char *what, rv_err **err);
    int (*end_write)(struct sql_store *st, int rc, const char *what, rv_err **err);
    int (*begin_part)(struct sql_store *st, rv_err **err);
    int (*end_part)(struct sql_store *st, int rc, rv_err **err);
    int (*begin)(struct sql_store *st, rv_err **err);
    int (*commit)(struct sql_store *st, rv_err **err);
    void (*rollback)(struct sql_store *st);
    bool (*again)(struct sql_store *st); /* as rv_sql_again(); NULL: never */
    /* As rv_sql_tell(), rv_store_listen() and rv_store_heard(); NULL: the database tells nothing. */
    void (*tell)(struct sql_store *st);
    int (*listen)(struct sql_store *st, int *fd, rv_err **err);
    bool (*heard)(struct sql_store *st);
    /* Upkeep. */
    int schema;                                           /* the version of the tables */
    int64_t (*size)(struct sql_store *st);                /* bytes that it takes; 0: not known */
    int (*give_back)(struct sql_store *st, rv_err **err); /* space that deleted rows took, to the system */
    int (*backup)(struct sql_store *st, const char *path, rv_err **err); /* NULL: by a copy of the rows */
    /* Copying. */
    bool reads_pages;                                      /* rows come in pages that are kept in memory */
    bool refuses_bytes;                                    /* of a text: NUL, and what is not UTF-8 */
    int (*be_patient)(struct sql_store *st, rv_err **err); /* the open transaction may take as long as it needs */
    int (*set_next_key)(struct sql_store *st, const char *table, const char *column,
                        rv_err **err); /* the highest + 1 */
    /* Complain about what only this database can tell, within the transaction of the check. */
    int (*check)(struct sql_store *st, struct rv_report *report, rv_err **err);
    /* The last statement failed because of damage that the check reports: its text. NULL: for another reason. */
    const char *(*damage)(struct sql_store *st);
};

/* A connection. A driver's own one begins with it. */
struct sql_store {
    const struct sql_driver *driver;
    char *path; /* as messages say it */
    bool in_group;
    int broken; /* the code of what made an open group impossible; 0: none */
};

/** Open SQLite. path NULL: in memory. A fresh file gets the tables, an older one comes forward. */
RV_MUST_CHECK int rv_sqlite_open(const char *path, const struct rv_store_opts *opts, struct sql_store **out,
                                 rv_err **err);
/** Open a schema of a PostgreSQL database. shown: the URL as messages say it. */
RV_MUST_CHECK int rv_postgres_open(const char *url, const char *shown, const struct rv_store_opts *opts,
                                   struct sql_store **out, rv_err **err);
/** As rv_store_look(). */
RV_MUST_CHECK int rv_sqlite_look(const char *path, struct rv_store_version *out, rv_err **err);
RV_MUST_CHECK int rv_postgres_look(const char *url, const char *shown, struct rv_store_version *out, rv_err **err);
/** Make an empty file. RV_E_EXISTS. */
RV_MUST_CHECK int rv_sqlite_make(const char *path, rv_err **err);
void rv_sqlite_remove(const char *path); /* with what is beside it */
void rv_sql_close(struct sql_store *st);
void rv_sql_set_wait(struct sql_store *st, int64_t ms);
const char *rv_sql_path(const struct sql_store *st); /* as messages say it */

/* --- Statements. A failure to prepare or to bind sticks until the step, which reports it. --- */
/** The statement, ready to be bound and stepped; rv_sql_done() it. NULL: the step says why. */
rv_sql_stmt *rv_sql_use(struct sql_store *st, enum sql_id id);
void rv_sql_done(rv_sql_stmt *stmt); /* NULL is fine */
/** The same for a text that is put together; rv_sql_finish() it. */
rv_sql_stmt *rv_sql_prepare(struct sql_store *st, const rv_buf *sql);
void rv_sql_finish(rv_sql_stmt *stmt);
/* Bound values are borrowed until done. A null has the type of the function that binds it. */
void rv_sql_int(rv_sql_stmt *stmt, int i, int64_t v);
void rv_sql_text(rv_sql_stmt *stmt, int i, const char *text); /* NULL: null */
void rv_sql_str(rv_sql_stmt *stmt, int i, rv_str s);          /* ptr NULL: null */
void rv_sql_blob(rv_sql_stmt *stmt, int i, const void *bytes, size_t len);
void rv_sql_bind(rv_sql_stmt *stmt, int i, struct sql_value v); /* SQL_NULL: null */
/** 1: a row, 0: no more, negative: failed. */
RV_MUST_CHECK int rv_sql_step(rv_sql_stmt *stmt, const char *what, rv_err **err);
/** Step a statement that gives no rows, and be done with it. */
RV_MUST_CHECK int rv_sql_run(rv_sql_stmt *stmt, const char *what, rv_err **err);
/** The same for one that adds a row, whose key is wanted. */
RV_MUST_CHECK int rv_sql_run_new(rv_sql_stmt *stmt, int64_t *key, const char *what, rv_err **err);
/** The same, and how many rows it changed. */
RV_MUST_CHECK int rv_sql_run_counted(rv_sql_stmt *stmt, int64_t *n_rows, const char *what, rv_err **err);
/** Run a statement whose only value is the key of a row. */
RV_MUST_CHECK int rv_sql_run_key(struct sql_store *st, enum sql_id id, int64_t key, const char *what, rv_err **err);
int64_t rv_sql_int_at(const rv_sql_stmt *stmt, int i);
bool rv_sql_is_null(const rv_sql_stmt *stmt, int i);
/** A text column; NULL for null. *lacked (sticky) when there was no memory for it. */
const char *rv_sql_text_at(const rv_sql_stmt *stmt, int i, bool *lacked);
rv_str rv_sql_str_at(const rv_sql_stmt *stmt, int i); /* ptr NULL for null only */
/** A column of that type, or SQL_NULL. A text may have NULs. */
struct sql_value rv_sql_value_at(const rv_sql_stmt *stmt, int i, enum sql_type type);

/* --- One statement for many rows of arguments: SQLite carries it out for each, PostgreSQL once for all, with arrays.
 * Not for all statements: see `manys` in postgres_stmt.c. --- */
struct sql_rows {
    rv_sql_stmt *stmt; /* of rv_sql_use_rows(); NULL is reported by the first row */
    const char *what;
    /* For each row that the statement gives (RETURNING), in any order. It may not use the store. NULL: it gives none.
     */
    int (*each)(void *self, rv_sql_stmt *stmt, rv_err **err);
    void *self;
};
rv_sql_stmt *rv_sql_use_rows(struct sql_store *st, enum sql_id id);
/** What is bound is one row; each row binds all arguments. */
RV_MUST_CHECK int rv_sql_add_row(const struct sql_rows *rows, rv_err **err);
/** Behind the last one, with the code so far: if it is 0, all rows are carried out when this returns 0. */
RV_MUST_CHECK int rv_sql_end_rows(const struct sql_rows *rows, int rc, rv_err **err);

/* --- Transactions --- */
RV_MUST_CHECK int rv_sql_begin_read(struct sql_store *st, bool *began, rv_err **err);
void rv_sql_end_read(struct sql_store *st, bool began);
/** Every write is between these two: its own transaction, or a part of the group. end() passes rc on, or says why the
 * transaction did not come to be. */
RV_MUST_CHECK int rv_sql_begin_write(struct sql_store *st, const char *what, rv_err **err);
RV_MUST_CHECK int rv_sql_end_write(struct sql_store *st, int rc, const char *what, rv_err **err);
/** A write between these that is refused is undone alone, and the group it may be part of goes on. Between begin_write
 * and end_write. */
RV_MUST_CHECK int rv_sql_begin_part(struct sql_store *st, rv_err **err);
RV_MUST_CHECK int rv_sql_end_part(struct sql_store *st, int rc, rv_err **err);
RV_MUST_CHECK int rv_sql_begin(struct sql_store *st, rv_err **err);
RV_MUST_CHECK int rv_sql_commit(struct sql_store *st, rv_err **err);
void rv_sql_rollback(struct sql_store *st);
/** After a write or a group that failed: it wrote nothing, and the same may succeed now, because another
 * process was in the way or the connection broke. Waits a little; forgets *err when it is so. */
bool rv_sql_again(struct sql_store *st, rv_err **err);
/** Those that listen to the store hear of the present transaction when it is committed: of one with work for them. */
void rv_sql_tell(struct sql_store *st);

#endif
