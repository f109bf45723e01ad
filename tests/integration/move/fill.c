/* Rows for the tests of copies. The strange ones are made from what the file says of its tables, so a table that is
 * new has such rows, too. */
#include "tests/integration/move/world.h"

#include "coreengine/store/upkeep/tables_internal.h"

#include <sqlite3.h>

#define N_STRANGE 4

/* --- Strange rows --- */

struct column {
    char name[40], parent[40], parent_key[40]; /* parent "": refers to nothing */
    bool is_here;                              /* not null */
};

static sqlite3_stmt *ask(sqlite3 *db, const char *fmt, ...)
{
    sqlite3_stmt *stmt = NULL;
    va_list args;

    va_start(args, fmt);
    char *sql = sqlite3_vmprintf(fmt, args);
    va_end(args);
    ck_assert_msg(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_free(sql);
    return stmt;
}

static void look_up(sqlite3 *db, const struct sql_table *t, int i, struct column *c)
{
    memset(c, 0, sizeof *c);
    snprintf(c->name, sizeof c->name, "%s", t->columns[i].name);
    sqlite3_stmt *stmt =
        ask(db, "SELECT \"notnull\" OR pk > 0 FROM pragma_table_info('%q') WHERE name = '%q'", t->name, c->name);
    ck_assert_int_eq(sqlite3_step(stmt), SQLITE_ROW);
    c->is_here = sqlite3_column_int(stmt, 0) != 0;
    sqlite3_finalize(stmt);
    stmt =
        ask(db, "SELECT \"table\", \"to\" FROM pragma_foreign_key_list('%q') WHERE \"from\" = '%q'", t->name, c->name);
    if (sqlite3_step(stmt) == SQLITE_ROW) {
        snprintf(c->parent, sizeof c->parent, "%s", (const char *)sqlite3_column_text(stmt, 0));
        snprintf(c->parent_key, sizeof c->parent_key, "%s", (const char *)sqlite3_column_text(stmt, 1));
    }
    sqlite3_finalize(stmt);
}

static const int64_t numbers[N_STRANGE] = {0, INT64_MAX, INT64_MIN, 42};

static void bind_number(sqlite3 *db, sqlite3_stmt *stmt, int i, const struct column *c, int row)
{
    int64_t n = numbers[row];

    if (*c->parent) {
        sqlite3_stmt *parents =
            ask(db, "SELECT \"%w\" FROM \"%w\" ORDER BY 1 LIMIT 1 OFFSET %d", c->parent_key, c->parent, row);
        ck_assert_msg(sqlite3_step(parents) == SQLITE_ROW, "no row of %s", c->parent);
        n = sqlite3_column_int64(parents, 0);
        sqlite3_finalize(parents);
    }
    sqlite3_bind_int64(stmt, i + 1, n);
}

/* What PostgreSQL keeps as TEXT it refuses with NUL or invalid UTF-8; an index takes no more than some 2,700 bytes. */
static void bind_text(sqlite3_stmt *stmt, int i, const char *name, enum sql_type type, int row)
{
    static char large[300000];
    static const char *const texts[N_STRANGE] = {"", "plain", "\xc3\xa4\xe6\x97\xa5\xf0\x9f\x98\x80 \x01'\"\\;--%s",
                                                 NULL};
    bool is_wide = type != SQL_TEXT && strcmp(name, "hash") != 0;

    memset(large, 'x', sizeof large);
    if (row == 3)
        sqlite3_bind_text(stmt, i + 1, large, is_wide ? (int)sizeof large : 600, SQLITE_STATIC);
    else if (type == SQL_BLOB)
        sqlite3_bind_blob(stmt, i + 1, row == 1 ? "\0\1\2\xff" : texts[row], row == 1 ? 4 : (int)strlen(texts[row]),
                          SQLITE_STATIC);
    else if (is_wide && row == 1)
        sqlite3_bind_text(stmt, i + 1, "a\0b\xff\xfe\xc0\x80", 7, SQLITE_STATIC);
    else
        sqlite3_bind_text(stmt, i + 1, texts[row], -1, SQLITE_STATIC);
}

/* A fence is counted up where a run has an owner, which a test of its own looks at. */
static void add_row(sqlite3 *db, const struct sql_table *t, const struct column *columns, int row)
{
    char *marks = sqlite3_mprintf("?1");

    for (int i = 1; i < t->n_columns; i++)
        marks = sqlite3_mprintf("%z, ?%d", marks, i + 1);
    char *names = sqlite3_mprintf("\"%w\"", columns[0].name);
    for (int i = 1; i < t->n_columns; i++)
        names = sqlite3_mprintf("%z, \"%w\"", names, columns[i].name);
    sqlite3_stmt *stmt = ask(db, "INSERT INTO \"%w\" (%s) VALUES (%s)", t->name, names, marks);
    for (int i = 0; i < t->n_columns; i++) {
        bool is_owner = strcmp(t->name, "runs") == 0 && strcmp(columns[i].name, "owner") == 0;
        if ((row == 0 && !columns[i].is_here) || is_owner)
            continue;
        if (t->columns[i].type == SQL_INT)
            bind_number(db, stmt, i, &columns[i], row);
        else
            bind_text(stmt, i, columns[i].name, t->columns[i].type, row);
    }
    ck_assert_msg(sqlite3_step(stmt) == SQLITE_DONE, "%s, row %d: %s", t->name, row, sqlite3_errmsg(db));
    sqlite3_finalize(stmt);
    sqlite3_free(marks);
    sqlite3_free(names);
}

void fill_strangely(const char *path)
{
    struct column columns[SQL_TABLE_MAX_COLUMNS];
    sqlite3 *db = NULL;

    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    for (size_t k = 0; k < store_n_tables; k++) {
        for (int i = 0; i < store_tables[k].n_columns; i++)
            look_up(db, &store_tables[k], i, &columns[i]);
        for (int row = 0; row < N_STRANGE; row++)
            add_row(db, &store_tables[k], columns, row);
    }
    sqlite3_close(db);
}

/* --- Plain rows --- */

static int append(rv_store *s, const char *run, int n, rv_err **err)
{
    static char value[5000];
    struct rv_record records[500];
    char body[500][40];
    const struct rv_store_append a = {.run = run,
                                      .fence = 1,
                                      .records = records,
                                      .n_records = (size_t)n,
                                      .now_us = T0 + 1,
                                      .status = RV_RUN_COMPLETED,
                                      .stage = "end",
                                      .release = true};

    ck_assert_int_le(n, 500);
    for (int i = 0; i < n; i++) {
        memset(value, 'a' + i % 26, sizeof value);
        snprintf(body[i], sizeof body[i], "body %d", i + 2);
        records[i] = (struct rv_record){.seq = i + 2, .kind = 1, .body = rv_str_of(body[i])};
        if (i % 10 == 0)
            records[i].value = (rv_str){value, (size_t)(100 + i % 3 * 2000)};
    }
    return rv_store_append(s, &a, err);
}

void fill_plainly(const char *path, int n_runs, int n_records)
{
    static const struct rv_record first = {.seq = 1, .kind = 1, .body = {"body 1", 6}};
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    char bundle[RV_HASH_MAX], id[40];
    rv_store *s = NULL;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_store_open(path, &opts, &s, &err), 0);
    ck_assert_int_eq(rv_store_put_blob(s, RV_STR_LIT("bundle"), bundle, &err), 0);
    ck_assert_int_eq(rv_store_begin(s, &err), 0);
    for (int i = 0; i < n_runs; i++) {
        const struct rv_store_new_run run = {.id = id,
                                             .user = "u",
                                             .session = "s",
                                             .pipeline = "p",
                                             .bundle = bundle,
                                             .status = RV_RUN_RUNNING,
                                             .stage = "a",
                                             .owner = "A",
                                             .now_us = T0,
                                             .lease_until_us = T0 + 100,
                                             .records = &first,
                                             .n_records = 1};
        snprintf(id, sizeof id, "run%06d", i);
        ck_assert_int_eq(rv_store_create_run(s, &run, &err), 0);
        ck_assert_int_eq(append(s, id, n_records - 1, &err), 0);
    }
    ck_assert_int_eq(rv_store_commit(s, &err), 0);
    rv_store_close(s);
}
