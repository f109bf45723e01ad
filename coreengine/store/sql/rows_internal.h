/* One statement for many rows of arguments: SQLite carries it out for each, PostgreSQL once for all, with arrays. Not
 * for all statements: see `manys` in postgres/stmt.c. */
#ifndef RV_STORE_SQL_ROWS_INTERNAL_H
#define RV_STORE_SQL_ROWS_INTERNAL_H

#include "coreengine/store/sql/sql_internal.h"

/* What it points to is borrowed until the rows are done. */
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

#endif
