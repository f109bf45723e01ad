/* The statements of the store, and what carries them out: one connection, its prepared statements, its transaction. The
 * files that read and write rows (runs.c, sessions.c, ...) know this header and no database. Statements are written
 * once, in SQL that every database understands; what differs between databases is behind struct sql_driver. Statements
 * are prepared at first use and kept for the life of the handle. */
#ifndef RV_STORE_SQL_INTERNAL_H
#define RV_STORE_SQL_INTERNAL_H

#include "coreengine/store/encryption.h"
#include "coreengine/store/sql/statements_internal.h"
#include "coreengine/store/store.h"

/* --- Values --- */

enum sql_type {
    SQL_NULL, /* nothing was bound */
    SQL_INT,  /* a 64-bit number */
    SQL_TEXT, /* a short text without NUL: an id, a name, a status */
    SQL_STR,  /* UTF-8 of any length that may have NULs: words of models and people, JSON */
    SQL_BLOB, /* bytes */
    SQL_N_TYPES
};
/* An argument or a column. Texts and bytes are borrowed; ptr NULL: null. */
struct sql_value {
    enum sql_type type;
    int64_t number;
    rv_str bytes;
};
#define RV_SQL_MAX_ARGS 28 /* of one statement: columns of the widest table */
#define RV_SQL_MAX_TEXT                                                                                                \
    8192 /* bytes of a statement put together from parts of ours: names of columns, marks, conditions */

struct sql_store;
/* A statement that was prepared, and its arguments. A driver's own statement begins with it. */
typedef struct rv_sql_stmt {
    struct sql_store *st; /* borrowed; outlives it */
    int n_args;           /* 1 to n_args may be bound */
    bool is_running;
    struct sql_value args[RV_SQL_MAX_ARGS];
    struct sql_text *bound, *opened; /* owned, see sql_text_of() */
    int failed_rc;                   /* of an argument that could not be bound: sql_step() returns it */
    rv_err *failed;                  /* owned */
} rv_sql_stmt;

/* What a statement that changes rows is asked for. Nothing: the driver may send it later, with others, and report its
 * failure at the next statement that gives something or at the end of the transaction. */
enum sql_wants { SQL_WANTS_NOTHING, SQL_WANTS_KEY, SQL_WANTS_COUNT };

struct sql_driver;
struct rv_store_version; /* upkeep.h */

/* A connection. A driver's own one begins with it. */
struct sql_store {
    const struct sql_driver *driver; /* static */
    char *path;                      /* as messages say it; owned */
    bool in_group;
    bool is_denied;         /* the system or the server does not allow it, and not a rule of ours */
    int broken;             /* the code of what made an open group impossible; 0: none */
    char *embeds;           /* owned: the provider of vectors; NULL: not read yet (tokens.c) */
    struct rv_vault *vault; /* owned: what is encrypted, and by which keys (vault.c); NULL: nothing was asked yet */
    void (*vault_free)(struct rv_vault *v);
    int64_t n_begun;  /* transactions that write */
    int64_t rules;    /* version + 1 of what is encrypted, if the transaction was told; 0: ask (vault.c) */
    bool reveals;     /* the engine reads for an agent: also what the mode "client" hides */
    bool as_kept;     /* rows are read as they are kept: upkeep needs no key */
    rv_keyring *ring; /* owned, a reference: the master keys; NULL: none */
};

/** Open SQLite. path NULL: in memory. A fresh file gets the tables, an older one comes forward. */
RV_MUST_CHECK int sqlite_open(const char *path, const struct rv_store_opts *opts, struct sql_store **out, rv_err **err);
/** Open a schema of a PostgreSQL database. shown: the URL as messages say it. */
RV_MUST_CHECK int postgres_open(const char *url, const char *shown, const struct rv_store_opts *opts,
                                struct sql_store **out, rv_err **err);
/** As rv_store_read_version(). */
RV_MUST_CHECK int sqlite_look(const char *path, struct rv_store_version *out, rv_err **err);
RV_MUST_CHECK int postgres_look(const char *url, const char *shown, struct rv_store_version *out, rv_err **err);
/** Make an empty file. RV_E_EXISTS. */
RV_MUST_CHECK int sqlite_make(const char *path, rv_err **err);
void sqlite_remove(const char *path); /* with what is beside it */
void sql_close(struct sql_store *st);
void sql_set_wait(struct sql_store *st, int64_t ms);
const char *sql_path(const struct sql_store *st); /* as messages say it */

/* --- Statements. A failure to prepare or to bind sticks until the step, which reports it. --- */
/** The statement, ready to be bound and stepped; sql_done() it. NULL: the step says why. */
rv_sql_stmt *sql_use(struct sql_store *st, enum sql_id id);
void sql_done(rv_sql_stmt *stmt); /* NULL is fine */
/** As sql_use() for a text that is put together; sql_finish() it. */
rv_sql_stmt *sql_prepare(struct sql_store *st, const rv_buf *sql);
void sql_finish(rv_sql_stmt *stmt);
/* Bound values are borrowed until done. A null has the type of the function that binds it. */
void sql_int(rv_sql_stmt *stmt, int i, int64_t v);
void store_sql_text(rv_sql_stmt *stmt, int i, const char *text); /* NULL: null */
void sql_str(rv_sql_stmt *stmt, int i, rv_str s);                /* ptr NULL: null */
void sql_blob(rv_sql_stmt *stmt, int i, const void *bytes, size_t len);
void sql_bind(rv_sql_stmt *stmt, int i, struct sql_value v); /* SQL_NULL: null */
/** 1: a row, 0: no more, negative: failed. */
RV_MUST_CHECK int sql_step(rv_sql_stmt *stmt, const char *what, rv_err **err);
/** Step a statement that gives no rows, and be done with it. */
RV_MUST_CHECK int sql_run(rv_sql_stmt *stmt, const char *what, rv_err **err);
/** The same for one that adds a row, whose key is wanted. 0: it added none, as it may by its text. */
RV_MUST_CHECK int sql_run_new(rv_sql_stmt *stmt, int64_t *key, const char *what, rv_err **err);
/** The same, and how many rows it changed. */
RV_MUST_CHECK int sql_run_counted(rv_sql_stmt *stmt, int64_t *n_rows, const char *what, rv_err **err);
/** Run a statement whose only value is the key of a row. */
RV_MUST_CHECK int sql_run_key(struct sql_store *st, enum sql_id id, int64_t key, const char *what, rv_err **err);
/** A text that lives as long as an argument (until done), or as a column (until the next step). NULL: no memory. */
rv_buf *sql_text_of(rv_sql_stmt *stmt, bool is_argument, size_t max);
int64_t sql_int_at(const rv_sql_stmt *stmt, int i);
bool sql_is_null(const rv_sql_stmt *stmt, int i);
/** A text column; NULL for null. *lacked (sticky) when there was no memory for it. */
const char *sql_text_at(const rv_sql_stmt *stmt, int i, bool *lacked);
rv_str sql_str_at(const rv_sql_stmt *stmt, int i); /* ptr NULL for null only */
/** A column of that type, or SQL_NULL. A text may have NULs. */
struct sql_value sql_value_at(const rv_sql_stmt *stmt, int i, enum sql_type type);

/* --- One statement for many rows of arguments: SQLite carries it out for each, PostgreSQL once for all, with arrays.
 * Not for all statements: see `manys` in postgres/stmt.c. --- */
/* What it points to is borrowed until the rows are done. */
struct sql_rows {
    rv_sql_stmt *stmt; /* of sql_use_rows(); NULL is reported by the first row */
    const char *what;
    /* For each row that the statement gives (RETURNING), in any order. It may not use the store. NULL: it gives none.
     */
    int (*each)(void *self, rv_sql_stmt *stmt, rv_err **err);
    void *self;
};
rv_sql_stmt *sql_use_rows(struct sql_store *st, enum sql_id id);
/** What is bound is one row; each row binds all arguments. */
RV_MUST_CHECK int sql_add_row(const struct sql_rows *rows, rv_err **err);
/** Behind the last one, with the code so far: if it is 0, all rows are carried out when this returns 0. */
RV_MUST_CHECK int sql_end_rows(const struct sql_rows *rows, int rc, rv_err **err);

/* --- Transactions --- */
RV_MUST_CHECK int sql_begin_read(struct sql_store *st, bool *began, rv_err **err);
void sql_end_read(struct sql_store *st, bool began);
/** Every write is between these two: its own transaction, or a part of the group. end() passes rc on, or says why the
 * transaction did not come to be. */
RV_MUST_CHECK int sql_begin_write(struct sql_store *st, const char *what, rv_err **err);
RV_MUST_CHECK int sql_end_write(struct sql_store *st, int rc, const char *what, rv_err **err);
/** A write between these that is refused is undone alone, and the group it may be part of goes on. Between begin_write
 * and end_write. */
RV_MUST_CHECK int sql_begin_part(struct sql_store *st, rv_err **err);
RV_MUST_CHECK int sql_end_part(struct sql_store *st, int rc, rv_err **err);
RV_MUST_CHECK int sql_begin(struct sql_store *st, rv_err **err);
RV_MUST_CHECK int sql_commit(struct sql_store *st, rv_err **err);
void sql_rollback(struct sql_store *st);
/** After a write or a group that failed: it wrote nothing, and the same may succeed now, because another
 * process was in the way or the connection broke. Waits a little; forgets *err when it is so. */
bool sql_again(struct sql_store *st, rv_err **err);
/** Listeners of the store are notified when the present transaction is committed: of one with work for them. */
void sql_tell(struct sql_store *st);
/** The present write, unless it is part of a group, need not survive a crash of the server: its commit does not wait
 * for the disk, where the database can do that for one transaction. */
void sql_may_be_lost(struct sql_store *st);

#endif
