/* Reading the rows of a table in the order of their keys, and summing them up. */
#include <string.h>

#include "coreengine/store/sql/driver_internal.h"
#include "coreengine/store/upkeep/tables_internal.h"

#define PAGE_ROWS  1000      /* that one statement reads: between pages other writers get their turn */
#define PAGE_BYTES (1 << 20) /* of the rows of a page before the last one */
#define MAX_SHOWN  80        /* bytes of a key in a message: it stays on one line of a terminal */

/* --- Statements --- */

/* The texts before, between and behind the names of the first n columns. */
static void put_names(rv_buf *sql, const struct sql_table *t, int n)
{
    for (int i = 0; i < n; i++)
        rv_buf_printf(sql, "%s\"%s\"", i ? ", " : "", t->columns[i].name);
}

static void put_order(rv_buf *sql, const struct sql_table *t)
{
    rv_buf_puts(sql, " ORDER BY ");
    put_names(sql, t, t->n_key);
}

/* Rows behind a key, as many as a page has room for by their sizes, at least one: a page is read as a whole. */
static void put_page(rv_buf *sql, const struct sql_table *t, bool has_key)
{
    rv_buf_puts(sql, "SELECT ");
    put_names(sql, t, t->n_columns);
    rv_buf_puts(sql, " FROM (SELECT *, sum(size_) OVER (");
    put_order(sql, t);
    rv_buf_puts(sql, ") - size_ AS before_ FROM (SELECT *, 0");
    for (int i = 0; i < t->n_columns; i++)
        if (t->columns[i].type == SQL_STR || t->columns[i].type == SQL_BLOB)
            rv_buf_printf(sql, " + coalesce(octet_length(\"%s\"), 0)", t->columns[i].name);
    rv_buf_printf(sql, " AS size_ FROM %s", t->name);
    if (has_key) {
        rv_buf_puts(sql, " WHERE (");
        put_names(sql, t, t->n_key);
        for (int i = 0; i < t->n_key; i++)
            rv_buf_printf(sql, "%s?%d", i ? ", " : ") > (", i + 1);
        rv_buf_puts(sql, ")");
    }
    put_order(sql, t);
    rv_buf_printf(sql, " LIMIT %d) a_) b_ WHERE before_ < %d", PAGE_ROWS, PAGE_BYTES);
    put_order(sql, t);
}

static void put_all(rv_buf *sql, const struct sql_table *t)
{
    rv_buf_puts(sql, "SELECT ");
    put_names(sql, t, t->n_columns);
    rv_buf_printf(sql, " FROM %s", t->name);
    put_order(sql, t);
}

static int open_statement(struct rv_rows *r, rv_err **err)
{
    rv_buf sql = RV_BUF_INIT(RV_SQL_MAX_TEXT);

    if (r->is_paged)
        put_page(&sql, r->table, r->has_key);
    else
        put_all(&sql, r->table);
    int rc = rv_buf_check(&sql, "statement", err);
    if (rc == 0 && !(r->stmt = sql_prepare(r->st, &sql)))
        rc = RV_FAIL(err, RV_E_NOMEM, "read the table \"%s\"", r->table->name);
    rv_buf_fini(&sql);
    for (int i = 0; rc == 0 && r->is_paged && r->has_key && i < r->table->n_key; i++)
        sql_bind(r->stmt, i + 1, r->keys[i]);
    r->n_page = 0;
    return rc;
}

/* --- Rows --- */

void store_rows_begin(struct rv_rows *r, struct sql_store *st, const struct sql_table *table)
{
    memset(r, 0, sizeof *r);
    r->st = st;
    r->table = table;
    r->is_paged = st->driver->reads_pages;
    for (int i = 0; i < SQL_TABLE_MAX_KEY; i++)
        rv_buf_init(&r->key_text[i], RV_STORE_MAX_VALUE);
}

static int keep_key(struct rv_rows *r, rv_err **err)
{
    int rc = 0;

    for (int i = 0; i < r->table->n_key && rc == 0; i++) {
        r->keys[i] = r->values[i];
        if (r->keys[i].type == SQL_INT)
            continue;
        rv_buf_clear(&r->key_text[i]);
        rv_buf_add_str(&r->key_text[i], r->values[i].bytes);
        rc = rv_buf_check(&r->key_text[i], "key", err);
        r->keys[i].bytes = rv_buf_str(&r->key_text[i]);
    }
    r->has_key = true;
    return rc;
}

static int take_row(struct rv_rows *r, rv_err **err)
{
    r->n_page++;
    for (int i = 0; i < r->table->n_columns; i++)
        r->values[i] = r->table->columns[i].is_own ? (struct sql_value){.type = SQL_INT}
                                                   : sql_value_at(r->stmt, i, r->table->columns[i].type);
    return keep_key(r, err);
}

int store_rows_next(struct rv_rows *r, rv_err **err)
{
    for (;;) {
        int rc = r->stmt ? 0 : open_statement(r, err);
        if (rc == 0)
            rc = sql_step(r->stmt, "read", err);
        if (rc < 0)
            return RV_WRAP(err, rc, "table \"%s\"", r->table->name);
        if (rc == 1) {
            rc = take_row(r, err);
            return rc < 0 ? rc : 1;
        }
        if (!r->is_paged || r->n_page == 0)
            return 0;
        sql_finish(r->stmt);
        r->stmt = NULL;
    }
}

void store_rows_end(struct rv_rows *r)
{
    sql_finish(r->stmt);
    r->stmt = NULL;
    for (int i = 0; i < SQL_TABLE_MAX_KEY; i++)
        rv_buf_fini(&r->key_text[i]);
}

void store_rows_write_key(const struct rv_rows *r, rv_buf *out)
{
    for (int i = 0; i < r->table->n_key; i++) {
        rv_buf_puts(out, i ? ", " : "");
        if (r->keys[i].type == SQL_INT)
            rv_buf_printf(out, "%lld", (long long)r->keys[i].number);
        else
            rv_buf_add_str(out, rv_utf8_cut(r->keys[i].bytes, MAX_SHOWN));
    }
}
