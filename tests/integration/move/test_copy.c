/* What a copy has, and that it can be worked with. */
#include "tests/integration/move/world.h"

#include "coreengine/store/upkeep/tables_internal.h"

#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct rv_store_scope operator_scope = {NULL, NULL};

/* --- The list of tables --- */

/* What belongs to processes or to the store itself. */
static const char *const left_out[] = {"about", "workers", "duties", "handles", "store"};

static bool is_left_out(const char *name)
{
    for (size_t i = 0; i < RV_COUNT(left_out); i++)
        if (strcmp(left_out[i], name) == 0)
            return true;
    return false;
}

/* "name(key, more...)key columns", sorted by name but for the key. */
static void write_columns(const char *path, const char *table, rv_buf *out)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;

    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db,
                                        "SELECT name || CASE WHEN pk > 0 THEN ' key ' || pk ELSE '' END ||"
                                        " CASE type WHEN 'INTEGER' THEN ' number' ELSE '' END"
                                        " FROM pragma_table_info(?1) ORDER BY name",
                                        -1, &stmt, NULL),
                     SQLITE_OK);
    sqlite3_bind_text(stmt, 1, table, -1, SQLITE_STATIC);
    while (sqlite3_step(stmt) == SQLITE_ROW)
        rv_buf_printf(out, "%s\n", (const char *)sqlite3_column_text(stmt, 0));
    sqlite3_finalize(stmt);
    sqlite3_close(db);
}

static int by_name(const void *a, const void *b)
{
    const struct rv_column *x = a, *y = b;

    return strcmp(x->name, y->name);
}

static void write_listed(const struct sql_table *t, rv_buf *out)
{
    struct rv_column sorted[SQL_TABLE_MAX_COLUMNS];

    memcpy(sorted, t->columns, (size_t)t->n_columns * sizeof *sorted);
    qsort(sorted, (size_t)t->n_columns, sizeof *sorted, by_name);
    for (int i = 0; i < t->n_columns; i++) {
        rv_buf_puts(out, sorted[i].name);
        for (int k = 0; k < t->n_key; k++)
            if (strcmp(sorted[i].name, t->columns[k].name) == 0)
                rv_buf_printf(out, " key %d", k + 1);
        rv_buf_puts(out, sorted[i].type == SQL_INT ? " number\n" : "\n");
    }
}

START_TEST(the_list_has_every_table_and_column)
{
    struct world world, *w = &world;

    world_open(w);
    char *path = world_url(w, FILE_STORE);
    rv_store_close(world_store(w, path, false));
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    size_t n = 0;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db, "SELECT name FROM sqlite_schema WHERE type = 'table'", -1, &stmt, NULL), 0);
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(stmt, 0);
        rv_buf here = RV_BUF_INIT(10000), there = RV_BUF_INIT(10000);
        if (is_left_out(name))
            continue;
        for (size_t i = 0; i < store_n_tables; i++)
            if (strcmp(store_tables[i].name, name) == 0)
                write_listed(&store_tables[i], &here);
        ck_assert_msg(here.len > 0, "the table \"%s\" is not in tables.c: a copy would lose its rows", name);
        write_columns(path, name, &there);
        ck_assert_str_eq(rv_buf_cstr(&here), rv_buf_cstr(&there));
        rv_buf_fini(&here);
        rv_buf_fini(&there);
        n++;
    }
    ck_assert_uint_eq(n, store_n_tables);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    free(path);
    world_close(w);
}
END_TEST

/* --- Rows --- */

static void equal(const struct rv_store_copied *a, const struct rv_store_copied *b)
{
    ck_assert_uint_eq(a->n_tables, store_n_tables);
    for (size_t i = 0; i < a->n_tables; i++) {
        ck_assert_msg(a->tables[i].n_rows == b->tables[i].n_rows, "%s", a->tables[i].name);
        ck_assert_msg(strcmp(a->tables[i].hash, b->tables[i].hash) == 0, "%s differs", a->tables[i].name);
    }
    ck_assert_str_eq(a->hash, b->hash);
}

/* File to database to database to file to file: each copy reads what the one before wrote. */
START_TEST(strange_rows_are_the_same_after_every_way)
{
    static const enum kind ways[] = {FILE_STORE, DATABASE, DATABASE, FILE_STORE, FILE_STORE};
    struct world world, *w = &world;
    struct rv_store_copied first, next;
    char *urls[RV_COUNT(ways)];

    world_open(w);
    for (size_t i = 0; i < RV_COUNT(ways); i++)
        urls[i] = world_url(w, ways[i]);
    rv_store_close(world_store(w, urls[0], false));
    fill_strangely(urls[0]);
    OK(world_copy(w, urls[0], urls[1], NULL, &first));
    for (size_t i = 0; i < first.n_tables; i++)
        ck_assert_int_ge(first.tables[i].n_rows, 4);
    for (size_t i = 2; i < RV_COUNT(ways); i++) {
        OK(world_copy(w, urls[i - 1], urls[i], NULL, &next));
        equal(&first, &next);
    }
    for (size_t i = 0; i < RV_COUNT(ways); i++)
        free(urls[i]);
    world_close(w);
}
END_TEST

static int seen(void *self, const struct rv_record *r, rv_err **err)
{
    (void)err;
    ck_assert_int_eq(r->seq, ++*(int64_t *)self);
    return 0;
}

static int write_as(struct world *w, rv_store *s, const char *run, int64_t fence, int64_t seq)
{
    const struct rv_record r = {.seq = seq, .kind = 1, .body = RV_STR_LIT("more")};
    const struct rv_store_append a = {.run = run,
                                      .fence = fence,
                                      .records = &r,
                                      .n_records = 1,
                                      .now_us = T0 + 2,
                                      .status = RV_RUN_RUNNING,
                                      .stage = "a"};

    return rv_store_append(s, &a, &w->err);
}

/* New rows get keys behind the old ones; the old owner is fenced off, and another one takes over at once. */
static void works_on(struct world *w, rv_store *s)
{
    const struct rv_store_claim claim = {.owner = "B", .now_us = T0 + 1, .until_us = T0 + 1000};
    const struct rv_record first = {.seq = 1, .kind = 1, .body = RV_STR_LIT("body 1")};
    char hash[RV_HASH_MAX];
    int64_t n = 0, fence = 0;

    OK(rv_store_put_blob(s, RV_STR_LIT("another bundle"), hash, &w->err));
    const struct rv_store_new_run run = {.id = "fresh",
                                         .user = "u",
                                         .session = "s",
                                         .pipeline = "p",
                                         .bundle = hash,
                                         .status = RV_RUN_RUNNING,
                                         .stage = "a",
                                         .owner = "A",
                                         .now_us = T0,
                                         .lease_until_us = T0 + 100,
                                         .records = &first,
                                         .n_records = 1};
    OK(rv_store_create_run(s, &run, &w->err));
    OK(write_as(w, s, "fresh", 1, 2));
    OK(rv_store_read(s, &operator_scope, &(struct rv_record_range){.run = "run000003", .from = 1}, seen, &n, &w->err));
    ck_assert_int_eq(n, 20);
    FAILS(RV_E_STATE, "taken over", write_as(w, s, "run000002", 1, 21));
    OK(rv_store_claim(s, &operator_scope, "run000002", &claim, &fence, &w->err));
    ck_assert_int_eq(fence, 3);
    OK(write_as(w, s, "run000002", fence, 21));
    OK(rv_store_check(s, &w->err));
}

START_TEST(a_copy_is_a_store_to_work_with)
{
    struct world world, *w = &world;
    struct rv_store_copied out;

    world_open(w);
    char *from = world_url(w, FILE_STORE), *to = world_url(w, (enum kind)_i);
    fill_plainly(from, 10, 20);
    world_sql(from, "UPDATE runs SET owner = 'A', lease_until_us = 1700000000000050, status = 'running'"
                    " WHERE id = 'run000002'");
    OK(world_copy(w, from, to, NULL, &out));
    ck_assert(!out.is_resumed && !out.has_restarted);
    rv_store *s = world_store(w, to, false);
    OK(rv_store_check(s, &w->err));
    works_on(w, s);
    rv_store_close(s);
    free(from);
    free(to);
    world_close(w);
}
END_TEST

/* --- Large values --- */

static long peak_kb_of_a_copy(struct world *w, const char *from, const char *to)
{
    struct rusage usage;
    struct rv_store_copied out;
    int status = 0;

    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        _exit(world_copy(w, from, to, NULL, &out) == 0 ? 0 : 1);
    ck_assert_int_eq(wait4(pid, &status, 0, &usage), pid);
    ck_assert_int_eq(status, 0);
    return usage.ru_maxrss;
}

START_TEST(memory_is_that_of_the_largest_row)
{
    static const char many[] =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
        " INSERT INTO blobs (hash, created_us, data) SELECT randomblob(32), i, randomblob(16000000)"
        " FROM n";
    const int n_rows = rv_kit_sample(8, 64); /* together more than the most that is allowed */
    struct world world, *w = &world;
    char sql[300];

    snprintf(sql, sizeof sql, many, n_rows);
    world_open(w);
    char *from = world_url(w, FILE_STORE), *to = world_url(w, DATABASE), *back = world_url(w, FILE_STORE);
    rv_store_close(world_store(w, from, false));
    world_sql(from, sql);
    long there = peak_kb_of_a_copy(w, from, to), here = peak_kb_of_a_copy(w, to, back);
    fprintf(stderr, "%d rows of 16 MB: peak %ld MB to PostgreSQL, %ld MB from it\n", n_rows, there / 1000, here / 1000);
    if (rv_kit_stride(2) == 1) { /* not under a sanitizer, which keeps what is freed */
        ck_assert_int_lt(there, 100000);
        ck_assert_int_lt(here, 100000);
    }
    free(from);
    free(to);
    free(back);
    world_close(w);
}
END_TEST

Suite *copy_suite(void)
{
    Suite *suite = suite_create("copy");
    TCase *tc = tcase_create("copy");

    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, the_list_has_every_table_and_column);
    tcase_add_test(tc, strange_rows_are_the_same_after_every_way);
    tcase_add_loop_test(tc, a_copy_is_a_store_to_work_with, 0, N_KINDS);
    tcase_add_test(tc, memory_is_that_of_the_largest_row);
    suite_add_tcase(suite, tc);
    return suite;
}
