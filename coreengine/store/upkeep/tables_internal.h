/* The tables whose rows a copy has, and how the rows of one are read in order, whatever they mean. */
#ifndef RV_STORE_TABLES_INTERNAL_H
#define RV_STORE_TABLES_INTERNAL_H

#include "coreengine/store/store_internal.h"

#define SQL_TABLE_MAX_KEY     4               /* columns of a primary key: none of the schema has more */
#define SQL_TABLE_MAX_COLUMNS RV_SQL_MAX_ARGS /* of one table: a statement writes a row */

/* What it points to is static. */
struct rv_column {
    const char *name;
    enum sql_type type; /* as PostgreSQL keeps it: SQL_TEXT is TEXT there, SQL_STR and SQL_BLOB are BYTEA */
    bool is_own;        /* a number that means something in this database alone: 0 in copies */
};
/* What it points to is static. */
struct sql_table {
    const char *name;
    const struct rv_column *columns; /* all of them; the first n_key are its primary key */
    int n_columns, n_key;
    bool is_numbered; /* the database gives new rows their key */
    bool is_seeded;   /* a fresh store has such rows, which a copy replaces */
};
/* In an order in which rows refer to earlier tables only. */
extern const struct sql_table store_tables[];
extern const size_t store_n_tables;

/* Reading the rows of a table in the order of their keys, a few at a time where a database gives them in pages. What it
 * points to is borrowed for the walk. */
struct rv_rows {
    struct sql_store *st;
    const struct sql_table *table;
    rv_sql_stmt *stmt;                        /* NULL: none is open */
    bool is_paged;                            /* each statement gives some rows, and the next one those behind */
    int64_t n_page;                           /* rows of the page so far */
    bool has_key;                             /* of the row that was read last: keys */
    struct sql_value keys[SQL_TABLE_MAX_KEY]; /* texts are in key_text */
    rv_buf key_text[SQL_TABLE_MAX_KEY];
    struct sql_value values[SQL_TABLE_MAX_COLUMNS]; /* of the present row; borrowed until the next one is read */
};
/** table is borrowed. Call it within a transaction that reads; store_rows_end() in any case. */
void store_rows_begin(struct rv_rows *r, struct sql_store *st, const struct sql_table *table);
/** 1: r->values has the next row, 0: no more. */
RV_MUST_CHECK int store_rows_next(struct rv_rows *r, rv_err **err);
void store_rows_end(struct rv_rows *r);
/** The key of the present row for a message: "7", "7, 2" or a text, cut. */
void store_rows_write_key(const struct rv_rows *r, rv_buf *out);

/* A sum over rows. */
struct rv_rows_sum {
    struct rv_hash hash;
    int64_t n, bytes;
};

#endif
