/* What the files of SQLite share. */
#ifndef RV_STORE_SQLITE_INTERNAL_H
#define RV_STORE_SQLITE_INTERNAL_H

#include <sqlite3.h>

#include "coreengine/store/store_internal.h"

struct sql_store {
    sqlite3 *db;
    char *path;
    int64_t busy_ms;        /* how long a write waits for others */
    int64_t wait_ms;        /* instead of that; 0: as that */
    int64_t waits_since_ns; /* of the wait under way, or the last one */
    bool is_memory, read_only, in_group;
    int broken;  /* the code of what made an open group impossible; 0: none */
    int bind_rc; /* of preparing and binding since the last use; sticky */
    int changes; /* sqlite3_total_changes() when the present write began */
    sqlite3_stmt *stmts[SQL_N_STATEMENTS];
};

/* sqlite_stmt.c */
/** The error that SQLite's code `rc` is, saying what was being done. */
int rv_sql_fail(struct sql_store *st, int rc, const char *what, rv_err **err);
int rv_sql_wait_turn(void *self, int n); /* SQLite's busy handler; self is the store */
RV_MUST_CHECK int rv_sql_exec(struct sql_store *st, const char *sql, const char *what, rv_err **err);
/** The first column of the first row of a PRAGMA or SELECT, as a number. */
RV_MUST_CHECK int rv_sql_number(struct sql_store *st, const char *sql, int64_t *out, const char *what, rv_err **err);

/* sqlite_schema.c: step i takes a file from version i to i + 1. */
extern const char *const rv_sql_schema[];
extern const int rv_sql_n_schema;
/** Check that the file is a store, create it when it is empty, bring it forward when it is older. */
RV_MUST_CHECK int rv_sql_bring_forward(struct sql_store *st, const char *const *steps, int n_steps, rv_err **err);

#endif
