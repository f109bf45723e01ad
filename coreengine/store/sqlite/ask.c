/* Statements of others on SQLite: over a connection of their own that can only read, behind an authorizer that allows
 * the tables of the scope and the functions of the dialect, with a clock. In memory there is no other connection: the
 * handle's gets the same authorizer and limits for as long as the statement takes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "coreengine/store/entities.h"
#include "coreengine/store/search/ask_internal.h"
#include "coreengine/store/sqlite/sqlite_internal.h"

#define STEPS_A_LOOK 2000                      /* of SQLite's machine, between two looks at the clock */
#define MAX_VALUE    ((int)((size_t)64 << 20)) /* bytes: as RV_ASK_VALUE, also of a row */
#define MAX_COLUMNS  2000                      /* of a result, as SQLite itself has it (SQLITE_MAX_COLUMN) */

struct clock {
    int64_t until_ns;
    bool is_over;
};

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int look_at_clock(void *self)
{
    struct clock *c = self;

    c->is_over = c->is_over || now_ns() >= c->until_ns;
    return c->is_over;
}

/* --- The second wall: what a statement may do, should the gate have let more through --- */

static const char *const base_tables[] = {"entities", "messages", "schemas", "sessions"};
static const char *const functions[] = {
    "->",
    "->>",
    "abs",
    "avg",
    "coalesce",
    "count",
    "dense_rank",
    "first_value",
    "format",
    "glob",
    "group_concat",
    "instr",
    "json_array_length",
    "json_each",
    "json_extract",
    "json_type",
    "lag",
    "last_value",
    "lead",
    "length",
    "like",
    "lower",
    "ltrim",
    "max",
    "min",
    "nullif",
    "printf",
    "rank",
    "replace",
    "round",
    "row_number",
    "rtrim",
    "strftime",
    "substr",
    "sum",
    "total",
    "trim",
    "upper",
};

static bool is_in(const char *word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcasecmp(word, list[i]) == 0)
            return true;
    return false;
}

/* within: the table of WITH whose text is being read; NULL: the statement itself. Names of WITH come here without a
 * database, and without a column where none of theirs is read. */
static int may_read(const char *table, const char *column, const char *database, const char *within)
{
    bool is_base = is_in(table, base_tables, RV_COUNT(base_tables)), is_ours = within && store_ask_is_table(within);

    if (strcasecmp(table, "json_each") == 0)
        return SQLITE_OK;
    if (is_base && is_ours)
        return SQLITE_OK;
    if (!database && !*column)
        return is_base && !store_ask_is_table(table) ? SQLITE_DENY : SQLITE_OK;
    return SQLITE_DENY;
}

static int authorize(void *self, int action, const char *one, const char *two, const char *database, const char *within)
{
    (void)self;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_READ:
        return one && two ? may_read(one, two, database, within) : SQLITE_DENY;
    case SQLITE_FUNCTION:
        return two && is_in(two, functions, RV_COUNT(functions)) ? SQLITE_OK : SQLITE_DENY;
    default:
        return SQLITE_DENY;
    }
}

static const struct {
    int id, value;
} limits[] = {
    {SQLITE_LIMIT_LENGTH, MAX_VALUE},
    {SQLITE_LIMIT_SQL_LENGTH, (int)RV_ASK_MAX_TEXT},
    {SQLITE_LIMIT_ATTACHED, 0},
    {SQLITE_LIMIT_VDBE_OP, 250000},
    {SQLITE_LIMIT_EXPR_DEPTH, 500},
    {SQLITE_LIMIT_COMPOUND_SELECT, 100},
    {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50000},
};

struct guarded {
    sqlite3 *db; /* borrowed, as the clock is */
    struct clock *clock;
    int before[RV_COUNT(limits)];
};

/* json_each comes to be when a connection uses it for the first time, by a statement of its own that the authorizer
 * would refuse. */
static void guard(struct guarded *g, sqlite3 *db, struct clock *clock)
{
    g->db = db;
    g->clock = clock;
    RV_IGNORE(sqlite3_exec(db, "SELECT 1 FROM json_each('[]')", NULL, NULL, NULL), "the statement says it then");
    for (size_t i = 0; i < RV_COUNT(limits); i++)
        g->before[i] = sqlite3_limit(db, limits[i].id, limits[i].value);
    sqlite3_set_authorizer(db, authorize, NULL);
    sqlite3_progress_handler(db, STEPS_A_LOOK, look_at_clock, clock);
}

static void unguard(const struct guarded *g)
{
    sqlite3_set_authorizer(g->db, NULL, NULL);
    sqlite3_progress_handler(g->db, 0, NULL, NULL);
    for (size_t i = 0; i < RV_COUNT(limits); i++)
        sqlite3_limit(g->db, limits[i].id, g->before[i]);
}

/* --- The connection --- */

static int open_reader(struct sqlite *st, rv_err **err)
{
    int rc = sqlite3_open_v2(st->base.path, &st->asks, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_extended_result_codes(st->asks, 1);
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(st->asks, 1000);
    if (rc == SQLITE_OK)
        rc = sqlite3_db_config(st->asks, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(st->asks,
                          "PRAGMA query_only = ON; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
                          " PRAGMA temp_store = FILE",
                          NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        return 0;
    rc = sqlite_fail(st, rc, "open for statements", err);
    sqlite3_close(st->asks);
    st->asks = NULL;
    return rc;
}

static int reader_of(struct sqlite *st, sqlite3 **out, rv_err **err)
{
    bool is_own = st->is_memory || st->read_only; /* a file on a read-only medium is opened in a special way */
    int rc = is_own || st->asks ? 0 : open_reader(st, err);

    if (rc == 0)
        *out = is_own ? st->link->db : st->asks;
    return rc;
}

/* --- Failures --- */

static int refuse(struct sqlite *st, sqlite3 *db, int rc, const struct clock *clock, const struct rv_store_ask *ask,
                  rv_err **err)
{
    switch (rc & 0xff) {
    case SQLITE_INTERRUPT:
        if (clock->is_over) {
            RV_FAIL(err, RV_E_TIMEOUT, "the statement took longer than %lld ms", (long long)ask->max_ms);
            rv_err_set_hint(err, "read fewer rows: WHERE created_at > now() - interval '7 days'");
            return RV_E_TIMEOUT;
        }
        break;
    case SQLITE_TOOBIG:
        return store_ask_fail_long(err);
    case SQLITE_FULL:
        return RV_FAIL(err, RV_E_LIMIT, "the statement needs more room for its rows than there is");
    case SQLITE_ERROR:
    case SQLITE_AUTH:
    case SQLITE_MISMATCH:
    case SQLITE_RANGE:
        return RV_FAIL(err, RV_E_INVALID, "the database refuses the statement: %s", sqlite3_errmsg(db));
    default:
        break;
    }
    if ((rc & 0xff) == SQLITE_NOMEM)
        return RV_FAIL(err, RV_E_NOMEM, "carry out a statement");
    return RV_FAIL(err, (rc & 0xff) == SQLITE_BUSY ? RV_E_TIMEOUT : RV_E_IO, "\"%s\": carry out a statement: %s",
                   st->base.path, sqlite3_errmsg(db));
}

/* --- Rows --- */

static struct rv_cell cell_at(sqlite3_stmt *stmt, int i)
{
    struct rv_cell c = {.type = RV_CELL_NULL};

    switch (sqlite3_column_type(stmt, i)) {
    case SQLITE_INTEGER:
        c.type = RV_CELL_INT;
        c.number = sqlite3_column_int64(stmt, i);
        break;
    case SQLITE_FLOAT:
        c.real = sqlite3_column_double(stmt, i);
        c.type = isfinite(c.real) ? RV_CELL_REAL : RV_CELL_NULL;
        break;
    case SQLITE_TEXT:
        c.text = sqlite_str_at(stmt, i);
        c.type = c.text.ptr && rv_utf8_valid(c.text, NULL) ? RV_CELL_TEXT : RV_CELL_NULL;
        break;
    default: /* bytes are not in the dialect */
        break;
    }
    return c;
}

static int read_rows(sqlite3_stmt *stmt, struct rv_asking_rows *rows, int *native, rv_err **err)
{
    const char *names[MAX_COLUMNS];
    int n = sqlite3_column_count(stmt), rc = 0;
    struct rv_cell *cells = calloc((size_t)n + 1, sizeof *cells);

    for (int i = 0; i < n && i < MAX_COLUMNS; i++)
        if (!(names[i] = sqlite3_column_name(stmt, i)))
            rc = RV_FAIL(err, RV_E_NOMEM, "read the columns of a statement");
    if (!cells && rc == 0)
        rc = RV_FAIL(err, RV_E_NOMEM, "read the columns of a statement");
    if (rc == 0 && n > MAX_COLUMNS)
        rc = RV_FAIL(err, RV_E_LIMIT, "more than %d columns", MAX_COLUMNS);
    if (rc == 0)
        rc = store_ask_columns(rows, names, (size_t)n, err);
    while (rc == 0 && (*native = sqlite3_step(stmt)) == SQLITE_ROW) {
        for (int i = 0; i < n; i++)
            cells[i] = cell_at(stmt, i);
        rc = store_ask_row(rows, cells, (size_t)n, err);
    }
    free(cells);
    return rc;
}

static int bind_scope(sqlite3_stmt *stmt, const struct rv_store_scope *scope)
{
    int n = sqlite3_bind_parameter_count(stmt);
    int rc = n >= 1 ? sqlite3_bind_text(stmt, 1, scope->tenant, -1, SQLITE_STATIC) : SQLITE_OK;

    if (rc == SQLITE_OK && n >= 2 && scope->user)
        rc = sqlite3_bind_text(stmt, 2, scope->user, -1, SQLITE_STATIC);
    return rc;
}

static int carry_out(struct sqlite *st, const struct guarded *g, const struct rv_store_scope *scope, const rv_buf *text,
                     struct rv_asking_rows *rows, rv_err **err)
{
    sqlite3_stmt *stmt = NULL;
    const char *rest = NULL;
    int native = sqlite3_prepare_v2(g->db, rv_buf_cstr(text), -1, &stmt, &rest), rc = 0;

    if (native == SQLITE_OK && (!stmt || !sqlite3_stmt_readonly(stmt) || rest[strspn(rest, " \t\r\n;")]))
        rc = RV_FAIL(err, RV_E_INVALID, "the database refuses the statement: it is not one that only reads");
    if (native == SQLITE_OK && rc == 0)
        native = bind_scope(stmt, scope);
    if (native == SQLITE_OK && rc == 0)
        rc = read_rows(stmt, rows, &native, err);
    if (rc == 0 && native != SQLITE_OK && native != SQLITE_DONE && native != SQLITE_ROW)
        rc = refuse(st, g->db, native, g->clock, rows->ask, err);
    sqlite3_finalize(stmt);
    return rc;
}

int sqlite_ask(struct sql_store *base, const struct rv_store_scope *scope, struct rv_asking_rows *rows, rv_err **err)
{
    struct sqlite *st = (struct sqlite *)base;
    struct clock clock = {.until_ns = now_ns() + rows->ask->max_ms * INT64_C(1000000)};
    rv_buf text = RV_BUF_INIT(RV_ASK_MAX_TEXT);
    struct guarded g;
    sqlite3 *db = NULL;
    int rc = reader_of(st, &db, err);

    if (rc < 0)
        return rc;
    store_ask_write(scope, rows->ask->sql, NULL, rows->hides, &text);
    rc = rv_buf_check(&text, "statement", err);
    if (rc == 0) {
        guard(&g, db, &clock);
        rc = carry_out(st, &g, scope, &text, rows, err);
        unguard(&g);
    }
    rv_buf_fini(&text);
    return rc < 0 ? rc : 0;
}
