/* What the files of SQLite share. */
#ifndef RV_STORE_SQLITE_INTERNAL_H
#define RV_STORE_SQLITE_INTERNAL_H

#include <sqlite3.h>

#include "coreengine/store/sql/driver_internal.h"
#include "coreengine/store/store_internal.h"

struct sqlite_link;
struct sqlite_stmt {
    rv_sql_stmt base;
    sqlite3_stmt *native; /* NULL: it could not be prepared; owned */
    int prepare_rc;
    struct sqlite_link *link; /* of a text that is made when it is needed; else NULL; borrowed */
};
/* A connection with its statements. */
#define RV_SQLITE_SPARE 8 /* statements of lists are few, and their texts repeat: as many are kept */
struct sqlite_link {
    sqlite3 *db;                                /* owned */
    struct sqlite_stmt *spare[RV_SQLITE_SPARE]; /* owned; the last one that was used first */
    struct sqlite_stmt stmts[SQL_N_STATEMENTS];
};
struct sqlite {
    struct sql_store base;
    struct sqlite_link own;
    struct sqlite_link *link;     /* the present one: `own`, or in a write that of the writer; borrowed */
    struct sqlite_writer *writer; /* shared by the handles of this process for the file; borrowed; NULL: none */
    sqlite3 *asks;                /* for statements of others; NULL: not opened yet; owned */
    int64_t busy_ms;              /* how long a write waits for others */
    int64_t wait_ms;              /* instead of that; 0: as that */
    int64_t waits_since_ns;       /* of the wait under way, or the last one */
    bool has_queued;              /* it has waited for the writer since then */
    bool is_memory, read_only, defers_sync;
    enum rv_store_sync sync;
    int changes;                       /* sqlite3_total_changes() when the present write began */
    const struct sqlite_link *seen_by; /* the connection of the last write of this handle; NULL: it failed; borrowed */
    unsigned seen;                     /* which state of the file that connection left */
};

extern const struct sql_driver sqlite_driver; /* sqlite.c */

/* sqlite.c */
/** Connect st->link to the file, as one that writes. */
RV_MUST_CHECK int sqlite_connect(struct sqlite *st, rv_err **err);
void sqlite_disconnect(struct sqlite_link *l);
RV_MUST_CHECK int sqlite_set_sync(struct sqlite *st, enum rv_store_sync sync, rv_err **err);

/* sqlite/writer.c: one connection by which all handles of this process write to a file. */
RV_MUST_CHECK int sqlite_join(struct sqlite *st, rv_err **err); /* a handle of the file was opened */
void sqlite_leave(struct sqlite *st);                           /* and is closed; it does not write */
/** The handle may write now, by st->link. RV_E_TIMEOUT: others wrote for too long. */
RV_MUST_CHECK int sqlite_take_turn(struct sqlite *st, const char *what, rv_err **err);
void sqlite_give_turn(struct sqlite *st);

/* sqlite/stmt.c */
/** The error that SQLite's code `rc` is, saying what was being done. */
int sqlite_fail(struct sqlite *st, int rc, const char *what, rv_err **err);
int64_t sqlite_now_ns(void);
int sqlite_wait_turn(void *self, int n); /* SQLite's busy handler; self is the store */
RV_MUST_CHECK int sqlite_exec(struct sqlite *st, const char *sql, const char *what, rv_err **err);
/** The first column of the first row of a PRAGMA or SELECT, as a number. */
RV_MUST_CHECK int sqlite_number(struct sqlite *st, const char *sql, int64_t *out, const char *what, rv_err **err);
rv_sql_stmt *sqlite_use(struct sql_store *base, enum sql_id id);
rv_sql_stmt *sqlite_prepare(struct sql_store *base, const rv_buf *sql);
void sqlite_finish(rv_sql_stmt *base);
void sqlite_drop_spare(struct sqlite_link *l);
void sqlite_reset(rv_sql_stmt *base);
RV_MUST_CHECK int sqlite_step(rv_sql_stmt *base, const char *what, rv_err **err);
RV_MUST_CHECK int sqlite_run(rv_sql_stmt *base, enum sql_wants wants, int64_t *out, const char *what, rv_err **err);
void sqlite_column(const rv_sql_stmt *base, int i, enum sql_type type, struct sql_value *out, bool *lacked);
/** A column of a statement that SQLite alone knows. ptr NULL for null only. */
rv_str sqlite_str_at(sqlite3_stmt *stmt, int i);

rv_sql_stmt *sqlite_use_rows(struct sql_store *base, enum sql_id id);
RV_MUST_CHECK int sqlite_add_row(const struct sql_rows *rows, rv_err **err);
RV_MUST_CHECK int sqlite_end_rows(const struct sql_rows *rows, int rc, rv_err **err);

/* sqlite/transaction.c */
RV_MUST_CHECK int sqlite_begin_read(struct sql_store *base, bool *began, rv_err **err);
void sqlite_end_read(struct sql_store *base, bool began);
RV_MUST_CHECK int sqlite_begin_write(struct sql_store *base, const char *what, rv_err **err);
RV_MUST_CHECK int sqlite_end_write(struct sql_store *base, int rc, const char *what, rv_err **err);
RV_MUST_CHECK int sqlite_begin_part(struct sql_store *base, rv_err **err);
RV_MUST_CHECK int sqlite_end_part(struct sql_store *base, int rc, rv_err **err);
RV_MUST_CHECK int sqlite_begin(struct sql_store *base, rv_err **err);
RV_MUST_CHECK int sqlite_commit(struct sql_store *base, rv_err **err);
void sqlite_rollback(struct sql_store *base);

/* sqlite/ask.c */
RV_MUST_CHECK int sqlite_ask(struct sql_store *base, const struct rv_store_scope *scope, struct rv_asking_rows *rows,
                             rv_err **err);

/* sqlite/upkeep.c */
int64_t sqlite_size(struct sql_store *base);
RV_MUST_CHECK int sqlite_give_back(struct sql_store *base, rv_err **err);
RV_MUST_CHECK int sqlite_scrub(struct sql_store *base, rv_err **err);
RV_MUST_CHECK int sqlite_backup(struct sql_store *base, const char *path, rv_err **err);
RV_MUST_CHECK int sqlite_check(struct sql_store *base, struct rv_report *report, rv_err **err);
const char *sqlite_damage(struct sql_store *base);

/* sqlite/schema.c: step i takes a file from version i to i + 1. */
#define RV_SQLITE_SCHEMA 11
extern const char *const store_sqlite_schema[RV_SQLITE_SCHEMA];
extern const char sqlite_tables[]; /* the result of all steps */
/** Fill in is_there and has, and change nothing. RV_E_INVALID: a file of another program. */
RV_MUST_CHECK int sqlite_read_version(struct sqlite *st, struct rv_store_version *out, rv_err **err);
/** Check that the file is a store, create it when it is empty, by \a tables or else by all steps, and bring it forward
 * when it is older. */
RV_MUST_CHECK int sqlite_bring_forward(struct sqlite *st, const char *tables, const char *const *steps, int n_steps,
                                       rv_err **err);

#endif
