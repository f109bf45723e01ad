/* One statement for many rows of values: arrays of the values take the place of its arguments, and the server carries
 * it out once. "?3" becomes column a3 of unnest(), beside the table that an UPDATE changes, or in place of VALUES. */
#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/store/postgres/postgres_internal.h"

#define MAX_ROWS  1000 /* of one INSERT: PostgreSQL takes 65,535 parameters; further ones go into the next */
#define MAX_BYTES ((size_t)1 << 20)                /* of a column; then the rows are sent */
#define MAX_VALUE (RV_STORE_MAX_META + (1u << 16)) /* bytes of one value */
#define MAX_KEPT  ((size_t)64 << 10) /* of memory that is kept for the next rows: common ones are smaller */
#define HEADER    20                 /* bytes of an array before its first element */

struct pg_many {
    int32_t n;
    enum sql_type types[RV_SQL_MAX_ARGS];
    rv_buf columns[RV_SQL_MAX_ARGS]; /* arrays as PostgreSQL's binary format has them */
};

/* --- The text --- */

static void put_column(const char **at, int *n_params, rv_buf *out)
{
    char *end;
    long arg = strtol(*at + 1, &end, 10);

    *n_params = arg > *n_params ? (int)arg : *n_params;
    rv_buf_printf(out, "v.a%ld", arg);
    *at = end;
}

static void put_source(int n_params, rv_buf *out)
{
    rv_buf_puts(out, " FROM unnest(");
    for (int i = 1; i <= n_params; i++)
        rv_buf_printf(out, "%s$%d", i > 1 ? ", " : "", i);
    rv_buf_puts(out, ") AS v(");
    for (int i = 1; i <= n_params; i++)
        rv_buf_printf(out, "%sa%d", i > 1 ? ", " : "", i);
    rv_buf_puts(out, ")");
}

static int count_params(const char *at)
{
    rv_buf none = RV_BUF_INIT(0);
    int n = 0;

    while (*at)
        if (*at == '?')
            put_column(&at, &n, &none);
        else
            at++;
    rv_buf_fini(&none);
    return n;
}

void store_pg_put_rows_text(struct postgres_stmt *stmt, const char *at, rv_buf *out)
{
    bool is_insert = strncmp(at, "INSERT", 6) == 0;
    const char *where = strstr(at, is_insert ? " VALUES (" : " WHERE ");

    stmt->n_params = count_params(at);
    for (int i = 0; i < stmt->n_params; i++)
        stmt->arg[i] = i + 1;
    while (*at) {
        if (at == where && is_insert) {
            rv_buf_puts(out, " SELECT ");
            at += strlen(" VALUES (");
        } else if (is_insert && at[0] == ')' && !at[1]) {
            at++;
        } else if (*at == '?') {
            put_column(&at, &(int){0}, out);
        } else {
            if (at == where)
                put_source(stmt->n_params, out);
            rv_buf_putc(out, *at++);
        }
    }
    if (is_insert)
        put_source(stmt->n_params, out);
}

/* --- The values --- */

static const struct {
    uint32_t element, array;
} type_ids[] = {[SQL_NULL] = {25, 1009},
                [SQL_INT] = {20, 1016},
                [SQL_TEXT] = {25, 1009},
                [SQL_STR] = {17, 1001},
                [SQL_BLOB] = {17, 1001}};
RV_EACH_HAS_ROW(type_ids, SQL_N_TYPES);

static void put_number(rv_buf *out, uint32_t n)
{
    uint32_t bytes = htobe32(n);

    rv_buf_add(out, &bytes, sizeof bytes);
}

/* One dimension, maybe with nulls, so many elements, counted from 1. */
static void write_header(char *at, enum sql_type type, int32_t n)
{
    const uint32_t header[] = {htobe32(1), htobe32(1), htobe32(type_ids[type].element), htobe32((uint32_t)n),
                               htobe32(1)};

    static_assert(sizeof header == HEADER, "of PostgreSQL's array_recv()");
    memcpy(at, header, HEADER);
}

static void put_value(rv_buf *out, const struct sql_value *v)
{
    uint64_t number = htobe64((uint64_t)v->number);

    if (v->type == SQL_INT) {
        put_number(out, sizeof number);
        rv_buf_add(out, &number, sizeof number);
    } else if (!v->bytes.ptr) {
        put_number(out, UINT32_MAX);
    } else {
        put_number(out, (uint32_t)v->bytes.len);
        rv_buf_add_str(out, v->bytes);
    }
}

static void forget(struct pg_many *many)
{
    many->n = 0;
    for (size_t i = 0; i < RV_SQL_MAX_ARGS; i++) {
        rv_buf *column = &many->columns[i];
        if (column->cap > MAX_KEPT)
            rv_buf_fini(column);
        rv_buf_clear(column);
        column->max = HEADER + MAX_BYTES + MAX_VALUE;
    }
}

void store_pg_rows_fini(struct postgres_stmt *stmt)
{
    for (size_t i = 0; stmt->many && i < RV_SQL_MAX_ARGS; i++)
        rv_buf_fini(&stmt->many->columns[i]);
    free(stmt->many);
    stmt->many = NULL;
}

size_t store_pg_list_rows(struct postgres_stmt *stmt, int k, const char **at, int *len, uint32_t *type)
{
    struct pg_many *many = stmt->many;
    rv_buf *column = &many->columns[k];

    write_header(column->ptr, many->types[k], many->n);
    *at = column->ptr;
    *len = (int)column->len;
    *type = type_ids[many->types[k]].array;
    return column->len;
}

/* --- Sending --- */

/* RETURNING gives these. */
static int give_rows(struct postgres *st, struct postgres_stmt *stmt, const struct sql_rows *r, rv_err **err)
{
    int rc = store_pg_settle(st, true, err);

    if (rc < 0)
        return rc;
    stmt->rows = st->asked;
    st->asked = NULL;
    for (stmt->row = 0; stmt->row < st->pq->ntuples(stmt->rows) && rc == 0; stmt->row++)
        rc = r->each(r->self, &stmt->base, err);
    st->pq->clear(stmt->rows);
    stmt->rows = NULL;
    return rc;
}

static int send_rows(const struct sql_rows *r, rv_err **err)
{
    struct postgres_stmt *stmt = (struct postgres_stmt *)r->stmt;
    struct postgres *st = (struct postgres *)stmt->base.st;
    int rc = 0;

    for (size_t i = 0; i < RV_SQL_MAX_ARGS && rc == 0; i++)
        rc = rv_buf_check(&stmt->many->columns[i], r->what, err);
    if (rc == 0)
        rc = store_pg_send(st, stmt, r->what, err);
    st->n_changes++;
    if (rc == 0 && r->each)
        rc = give_rows(st, stmt, r, err);
    forget(stmt->many);
    return rc;
}

rv_sql_stmt *postgres_use_rows(struct sql_store *base, enum sql_id id)
{
    struct postgres *st = (struct postgres *)base;
    struct postgres_stmt *stmt = store_pg_stmt(st, store_pg_rows_of(id));

    if (!stmt->many && !(stmt->many = calloc(1, sizeof *stmt->many)))
        return NULL;
    forget(stmt->many);
    return &stmt->base;
}

int postgres_add_row(const struct sql_rows *r, rv_err **err)
{
    struct pg_many *many = ((struct postgres_stmt *)r->stmt)->many;
    bool is_full = many->n + 1 >= MAX_ROWS;

    for (int i = 0; i < r->stmt->n_args; i++) {
        rv_buf *column = &many->columns[i];
        many->types[i] = r->stmt->args[i].type;
        if (many->n == 0)
            rv_buf_add(column, (const char[HEADER]){0}, HEADER);
        put_value(column, &r->stmt->args[i]);
        is_full = is_full || column->len > MAX_BYTES;
    }
    many->n++;
    return is_full ? send_rows(r, err) : 0;
}

int postgres_end_rows(const struct sql_rows *r, int rc, rv_err **err)
{
    struct pg_many *many = ((struct postgres_stmt *)r->stmt)->many;

    if (rc == 0 && many->n > 0)
        rc = send_rows(r, err);
    forget(many);
    return rc;
}
