/* What the files of PostgreSQL share.
 *
 * A handle has one connection and blocks in poll() with limits of its own. The connection is in pipeline mode: a
 * statement is queued, and a statement whose answer is needed sends all that is queued and reads all answers. */
#ifndef RV_STORE_POSTGRES_INTERNAL_H
#define RV_STORE_POSTGRES_INTERNAL_H

#include "coreengine/store/postgres/lib_internal.h"
#include "coreengine/store/sql/driver_internal.h"
#include "coreengine/store/store_internal.h"

/* --- A handle --- */

#define RV_PG_SCHEMA_NAME  "reeve"        /* where the tables are unless the URL says otherwise */
#define RV_PG_NAME_ROOM    64             /* bytes of a name in PostgreSQL, with the NUL */
#define RV_PG_WHY          300            /* bytes of the reason of a lost connection */
#define RV_PG_STATEMENT_MS INT64_C(30000) /* for a statement, beside the locks that it waits for */
#define RV_PG_OF_UTF8      "make a database with `createdb --encoding=UTF8 --template=template0 NAME`"

/* Statements that this driver alone has, behind those of enum sql_id. */
#define RV_PG_STATEMENTS(X)                                                                                            \
    X(FETCH_SOME, "FETCH FORWARD 16 FROM walk")                                                                        \
    X(FETCH_MANY, "FETCH FORWARD 256 FROM walk")                                                                       \
    X(FETCH_ONE, "FETCH FORWARD 1 FROM walk")                                                                          \
    X(CLOSE_WALK, "CLOSE walk")                                                                                        \
    X(FIND_LOCKED, NULL)                                                                                               \
    X(FIND_SESSION_LOCKED, NULL)                                                                                       \
    X(SAME_SCHEMA_LOCKED, NULL)                                                                                        \
    X(LOCK_SCHEMAS_LOCKED, NULL)                                                                                       \
    X(SAME_ENTITY_LOCKED, NULL)                                                                                        \
    X(ENTITY_BY_ID_LOCKED, NULL)                                                                                       \
    X(CLAIM_TASK_ROWS, NULL)                                                                                           \
    X(COMPLETE_TASK_ROWS, NULL)                                                                                        \
    X(PROMOTE_TASK_ROWS, NULL)                                                                                         \
    X(ADD_EVENT_ROWS, NULL)                                                                                            \
    /* The first statement of each transaction that writes: see postgres/transaction.c. */                             \
    X(COUNT_FIRST, "WITH u AS (INSERT INTO handles (id, epoch, n, seen_us) VALUES (?1, ?2, 1, " RV_PG_NOW_US ")"       \
                   " RETURNING n) SELECT n, set_config('lock_timeout', ?3, true),"                                     \
                   " set_config('statement_timeout', ?4, true), " RV_PG_RULES " FROM u")                               \
    X(COUNT_WRITE, "WITH u AS (UPDATE handles SET n = n + 1, seen_us = " RV_PG_NOW_US                                  \
                   " WHERE id = ?1 AND epoch = ?2 RETURNING n) SELECT 1 / (SELECT count(*) FROM u),"                   \
                   " set_config('lock_timeout', ?3, true), set_config('statement_timeout', ?4, true), " RV_PG_RULES)   \
    X(DO_NOT_WAIT, "SELECT set_config('synchronous_commit', 'off', true)")                                             \
    X(TELL, "SELECT pg_notify(current_schema(), '')")                                                                  \
    X(FORGET_HANDLE, "WITH u AS (DELETE FROM handles WHERE id = ?1)"                                                   \
                     " SELECT set_config('synchronous_commit', 'off', true)")                                          \
    X(OLD_HANDLES, "DELETE FROM handles WHERE seen_us < " RV_PG_NOW_US " - 86400000000")                               \
    X(SIZE, "SELECT CAST(coalesce(sum(pg_total_relation_size(c.oid)), 0) AS BIGINT) FROM pg_class c"                   \
            " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relkind = 'r'")   \
    X(NO_LIMITS, "SELECT set_config('statement_timeout', '0', true),"                                                  \
                 " set_config('idle_in_transaction_session_timeout', '0', true)")
#define RV_PG_RULES  "(SELECT value FROM counters WHERE name = 'encryption')"
#define RV_PG_NOW_US "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)"
enum pg_id {
    PG_BEFORE_FIRST = SQL_N_STATEMENTS - 1,
#define X(name, text) PG_##name,
    RV_PG_STATEMENTS(X)
#undef X
        PG_N_STATEMENTS
};

struct pg_many; /* rows of arguments; postgres/rows.c */
struct postgres_stmt {
    rv_sql_stmt base;
    int id;                   /* of enum sql_id or pg_id; negative: a text that was put together */
    char *text;               /* as PostgreSQL wants it; NULL: not translated yet; owned */
    int n_params;             /* $1 to $n_params */
    int arg[RV_SQL_MAX_ARGS]; /* $k is the argument ?arg[k - 1] */
    bool is_walk;             /* read with a cursor, a page at a time */
    bool is_read;             /* a SELECT */
    bool wants_key;
    int64_t prepared_on;  /* the number of the connection that has it prepared; 0: none */
    PGresult *rows;       /* of the page at hand; owned */
    int row, n_asked;     /* rows: the present one; those that the page may have */
    bool is_open;         /* a walk: its cursor is */
    bool owns_reading;    /* a walk: it began the transaction */
    struct pg_many *many; /* owned; NULL: it has single arguments */
};

enum pg_transaction { PG_IDLE, PG_READING, PG_WRITING };
/* Whether the same may succeed when it is done again. */
enum pg_retry {
    PG_RETRY_NOT,
    PG_RETRY_RACE, /* another transaction was in the way: nothing was written */
    PG_RETRY_LOST, /* the connection broke: nothing was written */
};

/* A statement that was sent and not answered yet. */
struct pg_sent {
    const char *what;               /* for its failure; NULL: a failure does not matter; static */
    struct postgres_stmt *prepares; /* not NULL: the preparation of that statement; borrowed */
    bool is_sync, is_asked;
    bool counts; /* a write begins: its last column is the version of what is encrypted */
};
#define RV_PG_MAX_SENT  256               /* statements; what the server answers meanwhile waits in buffers */
#define RV_PG_MAX_BYTES ((size_t)1 << 20) /* queued before they are sent: a server answers meanwhile */

struct postgres {
    struct sql_store base;
    const struct rv_pq *pq;    /* static */
    PQconninfoOption *options; /* of the URL, without the parameters that are ours; owned */
    char schema[RV_PG_NAME_ROOM];
    char query_role[RV_PG_NAME_ROOM]; /* that statements of others have; "": the one of the connection */
    bool read_only;
    enum rv_store_sync sync;
    int64_t busy_ms, wait_ms; /* as struct sqlite has them */

    PGconn *conn;        /* NULL: lost; owned */
    int64_t n_conn;      /* counts connections, from 1 */
    char why[RV_PG_WHY]; /* why the last one was lost */
    char state[6];       /* SQLSTATE of what the server refused last, and its text */
    char refused[RV_PG_WHY];
    struct pg_sent sent[RV_PG_MAX_SENT + 8];
    int n_sent, n_read; /* entries 0 to n_sent; those before n_read have been answered */
    size_t sent_bytes;
    PGresult *asked; /* the answer of the statement that was asked last; owned */

    enum pg_transaction transaction;
    bool is_first;                       /* no row that was read in the transaction has been given to the caller */
    bool is_spoilt;                      /* a statement of the transaction failed: only a rollback is possible */
    int64_t n_changes, n_changes_before; /* statements of the transaction that may write; when the write began */
    enum pg_retry retry;
    int n_tries;
    int64_t tries_until_ns; /* 0: not tried before */

    char id[RV_ID_MAX]; /* of the row in handles */
    int64_t epoch, n;   /* of that row: n counts the commits of this handle */
    bool is_registered; /* the row is there */
    bool is_unknown;    /* the answer of a commit was lost, and the row was not asked yet */
    bool was_committed; /* what the row said */
    bool is_losable;    /* the present transaction: its commit does not wait for the disk */
    bool owes_disk;     /* so was the last commit: a crash of the server may take it, and its count with it */
    bool recounts;      /* the connection broke since then: n has to be read again */
    int64_t commit_s;   /* when the last commit was sent, of the clock that runs while the machine sleeps */
    bool is_patient;    /* the present statement may take as long as it likes */

    int n_texts;             /* statements that were put together so far */
    struct postgres *ear;    /* the connection that listens, with nothing else; NULL: not asked for yet; owned */
    bool has_heard, is_deaf; /* something may have been announced; the database refuses to listen */
    int64_t listen_at_ns;    /* not before: the next attempt to connect it */
    bool tells, cannot_tell; /* the transaction at hand announces itself; the database refuses that */

    struct postgres_stmt stmts[PG_N_STATEMENTS];
};

/* postgres/connect.c */
/** Read the URL into st->options, st->schema and st->base.path. Errors never show a password. */
RV_MUST_CHECK int store_pg_read_url(struct postgres *st, const char *url, rv_err **err);
/** Connect and set the session up, in simple mode. until_ns: of the monotonic clock. opening: a server that refuses or
 * is not there is not waited for. */
RV_MUST_CHECK int store_pg_connect(struct postgres *st, int64_t until_ns, bool opening, rv_err **err);
/** Forget the connection and all that was queued. */
void store_pg_disconnect(struct postgres *st, const char *why);
int64_t store_pg_now_ns(void);
int64_t store_pg_wait_ms(const struct postgres *st); /* for a lock, or for the server to come back */
void store_pg_sleep_ms(int64_t ms);
/** Wait for the socket; 1: ready, 0: the time is over, negative: broken. */
int store_pg_poll(struct postgres *st, short events, int64_t until_ns);
/** libpq had no memory for an answer that it has taken from the connection, and would wait for it until the deadline.
 * It says so in a line of its own, and has no code for it; a server's line begins with "ERROR:". */
bool store_pg_lacks_memory(const struct postgres *st);

/* postgres/pipe.c: failures */
int store_pg_fail_state(struct postgres *st, const char *sqlstate, const char *text, const char *what, rv_err **err);

/* postgres/pipe.c */
/** Queue one statement. */
RV_MUST_CHECK int store_pg_send(struct postgres *st, struct postgres_stmt *stmt, const char *what, rv_err **err);
RV_MUST_CHECK int store_pg_send_id(struct postgres *st, int id, const char *what, rv_err **err);
/** Send what is queued, and read all answers; the answer of the statement queued last goes to st->asked if ask is set.
 * The first failure is reported. */
RV_MUST_CHECK int store_pg_settle(struct postgres *st, bool ask, rv_err **err);
/** Send what is queued, and leave the answers for later. A failure shows then. */
void store_pg_push(struct postgres *st);
/** Until when the present statement may take: its limits at the server, and some time for the answer. */
int64_t store_pg_deadline(const struct postgres *st);
/** Run one or several statements without arguments, in simple mode. INT64_MAX: for as long as they take. */
RV_MUST_CHECK int store_pg_exec(struct postgres *st, const char *sql, int64_t until_ns, const char *what, rv_err **err);
/* A statement with its arguments. Borrowed for the call. */
struct pg_question {
    const char *sql;
    int n;                   /* arguments */
    const char *const *args; /* NULL: none */
    const char *what;        /* for messages */
};
/** Run one statement with texts as arguments and columns. out (may be NULL): its result, to be cleared. */
RV_MUST_CHECK int store_pg_ask(struct postgres *st, const struct pg_question *q, PGresult **out, rv_err **err);
/** Have the server read a statement with n parameters of type text. *out: its columns, to be cleared. */
RV_MUST_CHECK int store_pg_describe(struct postgres *st, const char *sql, int n, PGresult **out, const char *what,
                                    rv_err **err);
int64_t store_pg_number(const struct postgres *st, const PGresult *res, int row, int column); /* as text, 0 for null */

/* postgres/stmt.c */
rv_sql_stmt *postgres_use(struct sql_store *base, enum sql_id id);
rv_sql_stmt *postgres_prepare(struct sql_store *base, const rv_buf *sql);
void postgres_finish(rv_sql_stmt *base);
void postgres_reset(rv_sql_stmt *base);
RV_MUST_CHECK int postgres_step(rv_sql_stmt *base, const char *what, rv_err **err);
RV_MUST_CHECK int postgres_run(rv_sql_stmt *base, enum sql_wants wants, int64_t *out, const char *what, rv_err **err);
void postgres_column(const rv_sql_stmt *base, int i, enum sql_type type, struct sql_value *out, bool *lacked);
/** Its text in PostgreSQL's words. */
RV_MUST_CHECK int store_pg_translate(struct postgres_stmt *stmt, rv_err **err);
struct postgres_stmt *store_pg_stmt(struct postgres *st, int id);
/** The statement for many rows that is the other one for each of them. */
int store_pg_rows_of(enum sql_id id);

/* postgres/rows.c */
rv_sql_stmt *postgres_use_rows(struct sql_store *base, enum sql_id id);
RV_MUST_CHECK int postgres_add_row(const struct sql_rows *rows, rv_err **err);
RV_MUST_CHECK int postgres_end_rows(const struct sql_rows *rows, int rc, rv_err **err);
/** Write the text of a statement with `many`, for which arrays are bound. */
void store_pg_put_rows_text(struct postgres_stmt *stmt, const char *at, rv_buf *out);
/** The array for $(k + 1), valid until the rows are forgotten. Returns its size. */
size_t store_pg_list_rows(struct postgres_stmt *stmt, int k, const char **at, int *len, uint32_t *type);
void store_pg_rows_fini(struct postgres_stmt *stmt);

/* postgres/transaction.c */
RV_MUST_CHECK int postgres_begin_read(struct sql_store *base, bool *began, rv_err **err);
void postgres_end_read(struct sql_store *base, bool began);
RV_MUST_CHECK int postgres_begin_write(struct sql_store *base, const char *what, rv_err **err);
RV_MUST_CHECK int postgres_end_write(struct sql_store *base, int rc, const char *what, rv_err **err);
RV_MUST_CHECK int postgres_begin_part(struct sql_store *base, rv_err **err);
RV_MUST_CHECK int postgres_end_part(struct sql_store *base, int rc, rv_err **err);
RV_MUST_CHECK int postgres_begin(struct sql_store *base, rv_err **err);
RV_MUST_CHECK int postgres_commit(struct sql_store *base, rv_err **err);
void postgres_rollback(struct sql_store *base);
bool postgres_again(struct sql_store *base);
void postgres_may_be_lost(struct sql_store *base);
/** The statement that was repeated succeeded, or is given up. */
void store_pg_done_trying(struct postgres *st);
/** A connection in pipeline mode on which no transaction is open; made again if it was lost. */
RV_MUST_CHECK int store_pg_ready(struct postgres *st, rv_err **err);
/** A transaction that reads. */
RV_MUST_CHECK int store_pg_open_reading(struct postgres *st, rv_err **err);
/** End it, or roll a transaction back. The answers are read later. */
void store_pg_abandon(struct postgres *st);

/* postgres/schema.c: step i takes the tables from version i to i + 1. */
#define RV_POSTGRES_SCHEMA 11
extern const char *const postgres_schema[RV_POSTGRES_SCHEMA];
/** Fill in is_there and has, and change nothing. RV_E_INVALID: tables of another program. */
RV_MUST_CHECK int store_pg_read_version(struct postgres *st, struct rv_store_version *out, rv_err **err);
/** Check that the schema of the database is a store, create it when it is empty, bring it forward when it is older. */
RV_MUST_CHECK int store_pg_bring_forward(struct postgres *st, const char *const *steps, int n_steps, bool must_exist,
                                         rv_err **err);

/* postgres.c: announcements */
/** Queue the announcement of the transaction, if it has one, before its commit. */
RV_MUST_CHECK int store_pg_send_tidings(struct postgres *st, rv_err **err);
/** A statement sent as `what` failed: if it was an announcement, the database has none, and the transaction is repeated
 * without. */
void store_pg_tell_failed(struct postgres *st, const char *what, const PGresult *res);

#endif
