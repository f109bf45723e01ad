/* Shared by the files that carry out statements of others: ask.c, ask_rows.c, ask_tables.c, sqlite/ask.c,
 * postgres/ask.c. */
#ifndef RV_STORE_ASK_INTERNAL_H
#define RV_STORE_ASK_INTERNAL_H

#include "coreengine/store/search.h"
#include "coreengine/store/sql/driver_internal.h"
#include "coreengine/store/store_internal.h"

#define RV_ASK_MAX_TEXT ((size_t)512 << 10) /* of a statement with its tables: half of what SQLite takes */
#define RV_ASK_VALUE    "67108864"          /* bytes of a value while it is computed, in both databases */

/* ask_tables.c */
/** The statement with the tables that it names, as the scope sees them. ?1 ($1) is the tenant, ?2 ($2) the user if the
 * scope has one. schema: of PostgreSQL, where its tables are; NULL: for SQLite. hides: columns
 * may be encrypted, and are null then. */
void store_ask_write(const struct rv_store_scope *scope, const struct rv_rem_sql *sql, const char *schema, bool hides,
                     rv_buf *out);
bool store_ask_is_table(const char *name);

/* ask_guard.c */
/** Append a statement for PostgreSQL that names only what the gate writes: no table of the schema but by its bare name,
 * none of the database itself, no function but those of a list. The domain RV_REM_VALUE gets its schema. RV_E_INVALID.
 */
RV_MUST_CHECK int store_ask_guard(rv_str text, const char *schema, rv_buf *out, rv_err **err);

/* ask_rows.c */
/* What it points to is borrowed for the ask. */
struct rv_asking_rows {
    bool hides; /* as for store_ask_write() */
    const struct rv_store_ask *ask;
    struct rv_store_asked *out;
    int64_t n;
    size_t bytes;
};
RV_MUST_CHECK int store_ask_columns(struct rv_asking_rows *r, const char *const *names, size_t n, rv_err **err);
/** The next row, whose texts are cut here. RV_STORE_ENOUGH: no more are wanted. */
RV_MUST_CHECK int store_ask_row(struct rv_asking_rows *r, struct rv_cell *cells, size_t n, rv_err **err);

/** RV_E_LIMIT: a value is longer than that. */
int store_ask_fail_long(rv_err **err);

/* postgres/ask.c */
RV_MUST_CHECK int postgres_ask(struct sql_store *base, const struct rv_store_scope *scope, struct rv_asking_rows *rows,
                               rv_err **err);

#endif
