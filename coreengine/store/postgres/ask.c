/* Statements of others on PostgreSQL: in a transaction that can only read, prepared (so that there is one of them),
 * through a cursor that gives some rows at a time, with a limit of the server's time. Texts are cut by the server. The
 * transaction is rolled back, and with it all that was set for it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/base/base.h"
#include "coreengine/store/postgres/postgres_internal.h"
#include "coreengine/store/search/ask_internal.h"

#define MAX_COLUMNS 1600               /* of a SELECT: as a table of PostgreSQL has them (MaxHeapAttributeNumber) */
#define PAGE        ((size_t)16 << 20) /* bytes of rows that are fetched together, at most four times that */
#define PAGE_ROWS   64                 /* that are fetched at once: the first row is there early */

enum {
    OID_BOOL = 16,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_TEXT = 25,
    OID_OID = 26,
    OID_FLOAT4 = 700,
    OID_FLOAT8 = 701,
    OID_VARCHAR = 1043,
    OID_NUMERIC = 1700
};

struct pg_asking {
    struct postgres *st;
    const struct rv_store_scope *scope;
    struct rv_asking_rows *rows;
    int64_t until_ns;
    int n;           /* columns */
    char **names;    /* owned */
    unsigned *types; /* of the columns; owned */
    int n_args;
    const char *args[2];
};

static int64_t left_ms(const struct pg_asking *a)
{
    int64_t ms = (a->until_ns - store_pg_now_ns()) / RV_NS_PER_MS;

    return ms < 1 ? 1 : ms;
}

/* --- Failures --- */

static bool is_state(const struct postgres *st, const char *begin)
{
    return strncmp(st->state, begin, strlen(begin)) == 0;
}

static bool needs_memory(const struct postgres *st)
{
    return is_state(st, "53") || is_state(st, "54");
}

/* The domain refuses it; a text that grows in one step beyond what the server can hold is an "internal error" there,
 * or one of its limits. */
static bool is_long(const struct postgres *st)
{
    return is_state(st, "23514") ||
           (is_state(st, "XX000") && strstr(st->refused, "invalid memory alloc request size")) ||
           (is_state(st, "54000") && strstr(st->refused, "out of memory"));
}

/* The message of the server about the statement; any other error stays as it is. */
static int refuse(const struct pg_asking *a, int rc, rv_err **err)
{
    static const char *const ours[] = {"08", "25", "28", "3D", "40", "55", "57P", "58", "XX", "42501"};
    const struct postgres *st = a->st;

    if (!st->conn || !st->state[0])
        return rc;
    for (size_t i = 0; i < RV_COUNT(ours) && !needs_memory(st) && !is_long(st); i++)
        if (is_state(st, ours[i]))
            return rc;
    rv_err_free(rv_err_steal(err));
    if (is_state(st, "57014")) {
        RV_FAIL(err, RV_E_TIMEOUT, "the statement took longer than %lld ms", (long long)a->rows->ask->max_ms);
        rv_err_set_hint(err, "read fewer rows: WHERE created_at > now() - interval '7 days'");
        return RV_E_TIMEOUT;
    }
    if (is_long(st))
        return store_ask_fail_long(err);
    if (needs_memory(st)) {
        RV_FAIL(err, RV_E_LIMIT, "the statement needs more memory than there is: %s", st->refused);
        rv_err_set_hint(err, "shorten texts: left(content, 1000)");
        return RV_E_LIMIT;
    }
    return RV_FAIL(err, RV_E_INVALID, "the database refuses the statement: %s", st->refused);
}

/* --- Steps --- */

static int send(struct pg_asking *a, const char *sql, int n, const char *const *args, PGresult **out, rv_err **err)
{
    int rc =
        store_pg_ask(a->st, &(const struct pg_question){.sql = sql, .n = n, .args = args, .what = "ask"}, out, err);

    return rc < 0 ? refuse(a, rc, err) : 0;
}

static int set_time(struct pg_asking *a, rv_err **err)
{
    char ms[24];
    const char *args[] = {ms};

    snprintf(ms, sizeof ms, "%lld", (long long)left_ms(a));
    return send(a, "SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $1, true)", 1, args,
                NULL, err);
}

/* The first statement of the transaction: after it nothing can make it write, and no name without a schema means a
 * table of the store. */
static int begin(struct pg_asking *a, rv_err **err)
{
    int rc = store_pg_ready(a->st, err);

    if (rc == 0)
        rc = store_pg_open_reading(a->st, err);
    if (rc == 0)
        rc = send(a,
                  "SELECT set_config('transaction_read_only', 'on', true), set_config('jit', 'off', true),"
                  " set_config('max_parallel_workers_per_gather', '0', true),"
                  " set_config('search_path', 'pg_catalog, pg_temp', true)",
                  0, NULL, NULL, err);
    if (rc == 0 && a->st->query_role[0]) {
        char sql[RV_PG_NAME_ROOM + 32];
        snprintf(sql, sizeof sql, "SET LOCAL ROLE \"%s\"", a->st->query_role);
        rc = store_pg_ask(a->st, &(const struct pg_question){.sql = sql, .n = 0, .what = "take the role of queries"},
                          NULL, err);
    }
    return rc < 0 ? rc : set_time(a, err);
}

static int take_columns(struct pg_asking *a, const PGresult *res, rv_err **err)
{
    const struct rv_pq *pq = a->st->pq;
    int rc = 0;

    a->n = pq->nfields(res);
    if (a->n > MAX_COLUMNS)
        return RV_FAIL(err, RV_E_LIMIT, "more than %d columns", MAX_COLUMNS);
    a->names = calloc((size_t)a->n + 1, sizeof *a->names);
    a->types = calloc((size_t)a->n + 1, sizeof *a->types);
    for (int i = 0; a->names && a->types && i < a->n; i++) {
        a->types[i] = pq->ftype(res, i);
        a->names[i] = rv_str_dup(rv_str_of(pq->fname(res, i)));
        if (!a->names[i])
            rc = RV_E_NOMEM;
    }
    return rc < 0 || !a->names || !a->types ? RV_FAIL(err, RV_E_NOMEM, "read the columns of a statement") : 0;
}

static int describe(struct pg_asking *a, const rv_buf *text, rv_err **err)
{
    PGresult *res = NULL;
    int rc = store_pg_describe(a->st, rv_buf_cstr(text), a->n_args, &res, "ask", err);

    rc = rc < 0 ? refuse(a, rc, err) : take_columns(a, res, err);
    a->st->pq->clear(res);
    return rc < 0 ? rc : store_ask_columns(a->rows, (const char *const *)a->names, (size_t)a->n, err);
}

static bool is_text_type(unsigned type)
{
    return type == OID_TEXT || type == OID_VARCHAR;
}

/* A cursor over the statement whose texts are not much longer than a cell may be. */
static int declare(struct pg_asking *a, const rv_buf *text, rv_err **err)
{
    rv_buf sql = RV_BUF_INIT(2 * RV_ASK_MAX_TEXT);

    rv_buf_puts(&sql, "DECLARE ask NO SCROLL CURSOR FOR SELECT ");
    for (int i = 0; i < a->n; i++) {
        const char *comma = i > 0 ? ", " : "";
        if (is_text_type(a->types[i]))
            rv_buf_printf(&sql, "%sleft(c%d, %zu)", comma, i, a->rows->ask->max_cell + 1);
        else
            rv_buf_printf(&sql, "%sc%d", comma, i);
    }
    rv_buf_printf(&sql, " FROM (%s) AS q (", rv_buf_cstr(text));
    for (int i = 0; i < a->n; i++)
        rv_buf_printf(&sql, "%sc%d", i > 0 ? ", " : "", i);
    rv_buf_puts(&sql, ")");
    int rc = rv_buf_check(&sql, "statement", err);
    if (rc == 0)
        rc = send(a, rv_buf_cstr(&sql), a->n_args, a->args, NULL, err);
    rv_buf_fini(&sql);
    return rc;
}

/* --- Rows --- */

static struct rv_cell real_of(double x)
{
    return isfinite(x) ? (struct rv_cell){.type = RV_CELL_REAL, .real = x} : (struct rv_cell){.type = RV_CELL_NULL};
}

/* A sum of whole numbers is a numeric, too. */
static struct rv_cell numeric_of(const char *text)
{
    bool is_whole = strspn(text, "-0123456789") == strlen(text) && strlen(text) < 19;

    if (is_whole)
        return (struct rv_cell){.type = RV_CELL_INT, .number = strtoll(text, NULL, 10)};
    return real_of(rv_number_read(text, NULL));
}

static struct rv_cell cell_at(const struct pg_asking *a, const PGresult *res, int row, int i)
{
    const struct rv_pq *pq = a->st->pq;
    const char *text = pq->getvalue(res, row, i);

    if (pq->getisnull(res, row, i))
        return (struct rv_cell){.type = RV_CELL_NULL};
    switch (a->types[i]) {
    case OID_BOOL: /* as SQLite has it */
        return (struct rv_cell){.type = RV_CELL_INT, .number = text[0] == 't'};
    case OID_INT2:
    case OID_INT4:
    case OID_INT8:
    case OID_OID:
        return (struct rv_cell){.type = RV_CELL_INT, .number = strtoll(text, NULL, 10)};
    case OID_FLOAT4:
    case OID_FLOAT8:
        return real_of(rv_number_read(text, NULL));
    case OID_NUMERIC:
        return numeric_of(text);
    default:
        return (struct rv_cell){.type = RV_CELL_TEXT, .text = {text, (size_t)pq->getlength(res, row, i)}};
    }
}

/* 0, RV_STORE_ENOUGH, a code. */
static int tell(struct pg_asking *a, const PGresult *res, rv_err **err)
{
    struct rv_cell *cells = calloc((size_t)a->n + 1, sizeof *cells);
    int rc = cells ? 0 : RV_FAIL(err, RV_E_NOMEM, "read the rows of a statement");

    for (int row = 0; rc == 0 && row < a->st->pq->ntuples(res); row++) {
        for (int i = 0; i < a->n; i++)
            cells[i] = cell_at(a, res, row, i);
        rc = store_ask_row(a->rows, cells, (size_t)a->n, err);
    }
    free(cells);
    return rc;
}

static int fetch_all(struct pg_asking *a, rv_err **err)
{
    size_t each = ((size_t)a->n + 1) * a->rows->ask->max_cell, fit = PAGE / each;
    int n_rows = fit < 1 ? 1 : fit > PAGE_ROWS ? PAGE_ROWS : (int)fit, n_got = n_rows, rc = 0;
    char sql[64];

    snprintf(sql, sizeof sql, "FETCH FORWARD %d FROM ask", n_rows);
    while (rc == 0 && n_got == n_rows) {
        PGresult *res = NULL;
        rc = set_time(a, err);
        if (rc == 0)
            rc = send(a, sql, 0, NULL, &res, err);
        if (rc == 0) {
            n_got = a->st->pq->ntuples(res);
            rc = tell(a, res, err);
        }
        a->st->pq->clear(res);
    }
    return rc;
}

static int explain(struct pg_asking *a, const rv_buf *text, rv_err **err)
{
    PGresult *res = NULL;
    int rc = send(a, rv_buf_cstr(text), a->n_args, a->args, &res, err);

    if (rc == 0)
        rc = tell(a, res, err);
    a->st->pq->clear(res);
    return rc;
}

static int carry_out(struct pg_asking *a, const rv_buf *text, rv_err **err)
{
    int rc = begin(a, err);

    if (rc == 0)
        rc = describe(a, text, err);
    if (rc == 0 && a->rows->ask->sql->is_explain)
        return explain(a, text, err);
    if (rc == 0)
        rc = declare(a, text, err);
    return rc < 0 ? rc : fetch_all(a, err);
}

int postgres_ask(struct sql_store *base, const struct rv_store_scope *scope, struct rv_asking_rows *rows, rv_err **err)
{
    struct postgres *st = (struct postgres *)base;
    struct pg_asking a = {.st = st, .scope = scope, .rows = rows};
    rv_buf text = RV_BUF_INIT(RV_ASK_MAX_TEXT), guarded = RV_BUF_INIT(RV_ASK_MAX_TEXT);
    struct rv_rem_sql sql = *rows->ask->sql;
    int rc = store_ask_guard(sql.text, st->schema, &guarded, err);

    sql.text = rv_buf_str(&guarded);
    st->state[0] = 0;
    a.until_ns = store_pg_now_ns() + rows->ask->max_ms * RV_NS_PER_MS;
    a.args[0] = scope->tenant;
    a.args[1] = scope->user;
    store_ask_write(scope, &sql, st->schema, rows->hides, &text);
    a.n_args = !strstr(rv_buf_cstr(&text), "$1") ? 0 : scope->user ? 2 : 1;
    if (rc == 0)
        rc = rv_buf_check(&text, "statement", err);
    if (rc == 0)
        rc = carry_out(&a, &text, err);
    store_pg_abandon(st);
    store_pg_done_trying(st);
    for (int i = 0; a.names && i < a.n; i++)
        free(a.names[i]);
    free(a.names);
    free(a.types);
    rv_buf_fini(&text);
    rv_buf_fini(&guarded);
    return rc < 0 ? rc : 0;
}
