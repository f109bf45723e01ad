/* The part of the store for SQL that others wrote: one statement that reads, over the rows that a scope sees.
 *
 * A statement comes from rv_rem_sql() (coreengine/rem), which lets nothing through but a subset that reads the tables
 * of rv_rem_tables(). Here those tables come to be: each is a part of a WITH clause, computed first and in full
 * (MATERIALIZED), with the rows of the scope alone; no condition, function or cast of the statement is ever applied to
 * another row. Tenant and user are parameters of the statement, which has none of its own. In PostgreSQL the URL's
 * "query_role" names a role for these statements alone. */
#ifndef RV_STORE_ASK_H
#define RV_STORE_ASK_H

#include "coreengine/rem/rem.h"
#include "coreengine/store/handle.h"

enum rv_cell_type { RV_CELL_NULL, RV_CELL_INT, RV_CELL_REAL, RV_CELL_TEXT };
struct rv_cell {
    enum rv_cell_type type;
    int64_t number;
    double real; /* finite */
    rv_str text; /* UTF-8 */
};
struct rv_store_ask {
    const struct rv_rem_sql *sql; /* for the database of this store; borrowed */
    int64_t max_rows, max_ms;
    size_t max_cell;  /* bytes of a text; what is longer is cut */
    size_t max_bytes; /* of all cells together */
    /** The names of the columns, once, before the first row; there may be two of one name. */
    int (*on_columns)(void *self, const char *const *names, size_t n, rv_err **err);
    /** A row; borrowed. Not 0: it ends there; RV_STORE_ENOUGH ends it well, a code is passed on. */
    int (*on_row)(void *self, const struct rv_cell *cells, size_t n, rv_err **err);
    void *self; /* borrowed for the call */
};
struct rv_store_asked {
    bool has_more;  /* rows that the limits left out */
    bool cut_cells; /* a text was longer than max_cell */
};
/** Carry the statement out.
 *  @return RV_E_INVALID (the database refuses it: its text says why), RV_E_TIMEOUT (max_ms), RV_E_LIMIT (a value or its
 *  memory became too large), RV_E_STATE (within a group), RV_E_IO, RV_E_NOMEM */
RV_MUST_CHECK int rv_store_ask(rv_store *s, const struct rv_store_scope *scope, const struct rv_store_ask *ask,
                               struct rv_store_asked *out, rv_err **err);

#endif
