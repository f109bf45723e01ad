/* The file: where it is, who may read it, how it is set up, what a record costs in it. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/store/world.h"

static int64_t number(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    int64_t n;

    ck_assert_int_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(stmt), SQLITE_ROW);
    n = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return n;
}

static unsigned mode_of(const char *path)
{
    struct stat info;

    ck_assert_msg(stat(path, &info) == 0, "%s is missing", path);
    return (unsigned)info.st_mode & 07777;
}

START_TEST(only_the_owner_may_read_what_is_made)
{
    struct world world, *w = &world;
    mode_t before = umask(0);
    char *path, *folder, *wal;
    bool is_hinted = false;

    world_open(w, -1);
    path = rv_kit_path(w->dir, "a/b/store.db");
    folder = rv_kit_path(w->dir, "a");
    ck_assert_int_eq(world_store(w, path, &quick, &w->s), RV_E_UNAVAILABLE); /* a path that is misspelt makes nothing */
    for (const rv_err *e = w->err; e; e = rv_err_cause(e))
        is_hinted = is_hinted || (rv_err_hint_text(e) && strstr(rv_err_hint_text(e), "mkdir -p"));
    ck_assert(is_hinted);
    ck_assert_int_ne(access(folder, F_OK), 0);
    rv_err_free(rv_err_steal(&w->err));
    free(path);
    path = rv_kit_path(w->dir, "store.db");
    wal = rv_kit_path(w->dir, "store.db-wal");
    OK(world_store(w, path, &quick, &w->s));
    OK(rv_store_put_blob(w->s, RV_STR_LIT("x"), w->bundle, &w->err));
    ck_assert_uint_eq(mode_of(path), 0600);
    ck_assert_uint_eq(mode_of(wal), 0600);
    rv_store_close(w->s);
    w->s = NULL;
    free(path);
    free(folder);
    free(wal);
    umask(before);
    world_close(w);
}
END_TEST

START_TEST(the_file_says_what_it_is)
{
    struct world world, *w = &world;

    world_open(w, 1);
    rv_store_close(w->s);
    w->s = NULL;
    ck_assert_int_eq(number(w->path, "PRAGMA application_id"), 0x72656576);
    ck_assert_int_eq(number(w->path, "PRAGMA user_version"), 11);
    ck_assert_int_eq(number(w->path, "PRAGMA auto_vacuum"), 2);
    ck_assert_int_eq(number(w->path, "SELECT journal_mode = 'wal' FROM pragma_journal_mode"), 1);
    world_close(w);
}
END_TEST

/* What is written into a file that no path leads to would be lost without a word. */
START_TEST(a_file_that_is_removed_while_it_is_open_takes_no_more)
{
    struct world world, *w = &world;

    world_open(w, 1);
    OK(world_append(w, w->s, 2, 10));
    rv_buf bytes = world_read(w->path);
    ck_assert_int_eq(unlink(w->path), 0);
    FAILS(RV_E_IO, "was removed or replaced while it was open", "put the file back", world_append(w, w->s, 3, 10));
    world_write(w->path, rv_buf_str(&bytes)); /* another file */
    FAILS(RV_E_IO, "was removed or replaced while it was open", NULL, rv_store_begin(w->s, &w->err));
    rv_buf_fini(&bytes);
    world_close(w);
}
END_TEST

/* Nor is it made again by the next handle of the same process, which others would not see. */
START_TEST(a_file_that_was_removed_is_not_made_again)
{
    struct rv_store_health health = {0};
    struct rv_store_opts opts = quick;
    struct world world, *w = &world;
    rv_store *other = NULL;

    opts.health = &health;
    world_open(w, -1);
    char *path = rv_kit_path(w->dir, "store.db"), *second = rv_kit_path(w->dir, "second.db");
    OK(world_store(w, path, &opts, &w->s));
    OK(world_store(w, second, &opts, &other)); /* another store */
    rv_store_close(other);
    ck_assert_int_eq(unlink(path), 0);
    FAILS(RV_E_UNAVAILABLE, "was removed or replaced while this process used it", NULL,
          world_store(w, path, &opts, &other));
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(health.refused, RV_E_IO);
    OK(world_store(w, path, &quick, &other)); /* as another process would make it */
    rv_store_close(other);
    FAILS(RV_E_UNAVAILABLE, "was removed or replaced", "start this process again", world_store(w, path, &opts, &other));
    free(path);
    free(second);
    world_close(w);
}
END_TEST

START_TEST(names_that_mean_something_to_sqlite_are_files_here)
{
    static const char *const names[] = {":memory:", "./file:x?mode=memory", "a?b#c%20.db", "sqlite:sqlite:x"};
    struct world world, *w = &world;
    char before[4096];

    world_open(w, -1);
    ck_assert_ptr_nonnull(getcwd(before, sizeof before));
    ck_assert_int_eq(chdir(w->dir), 0);
    for (size_t i = 0; i < RV_COUNT(names); i++) {
        const char *file = strncmp(names[i], "sqlite:", 7) == 0 ? names[i] + 7 : names[i];
        OK(world_store(w, names[i], &quick, &w->s));
        ck_assert_msg(access(file, F_OK) == 0, "%s", file);
        rv_store_close(w->s);
        w->s = NULL;
    }
    ck_assert_int_eq(chdir(before), 0);
    world_close(w);
}
END_TEST

START_TEST(a_mistyped_kind_is_refused_and_makes_no_file)
{
    static const struct {
        const char *url, *hint;
    } rows[] = {
        {"sqllite:x.db", "did you mean sqlite:FILE?"},
        {"SQLite:x.db", "did you mean sqlite:FILE?"},
        {"postgresq:x", "did you mean postgres://USER@HOST:PORT/DATABASE?"},
        {"postgres:x", "did you mean postgres://USER@HOST:PORT/DATABASE?"},
        {"memory:x", "did you mean memory:?"},
        {"file:x", "use a file, sqlite:FILE or postgres://"},
        {"mysql://host/db", "use a file, sqlite:FILE or postgres://"},
    };
    struct world world, *w = &world;
    char before[4096];

    world_open(w, -1);
    ck_assert_ptr_nonnull(getcwd(before, sizeof before));
    ck_assert_int_eq(chdir(w->dir), 0);
    for (size_t i = 0; i < RV_COUNT(rows); i++) {
        FAILS(RV_E_INVALID, "there is no store of kind", rows[i].hint, world_store(w, rows[i].url, &quick, &w->s));
        ck_assert_int_ne(access(rows[i].url, F_OK), 0);
    }
    OK(world_store(w, "./sqllite:x.db", &quick, &w->s));
    ck_assert_int_eq(access("sqllite:x.db", F_OK), 0);
    ck_assert_int_eq(chdir(before), 0);
    world_close(w);
}
END_TEST

START_TEST(a_file_that_must_exist_is_not_made)
{
    static const struct rv_store_opts opts[] = {{.must_exist = true}, {.read_only = true}};
    struct world world, *w = &world;
    char *empty;

    world_open(w, -1);
    for (size_t i = 0; i < RV_COUNT(opts); i++) {
        FAILS(RV_E_NOT_FOUND, w->path, NULL, world_store(w, w->path, &opts[i], &w->s));
        ck_assert_int_ne(access(w->path, F_OK), 0);
    }
    empty = rv_kit_path(w->dir, "empty.db");
    rv_kit_write(empty, "");
    FAILS(RV_E_INVALID, "is empty", NULL, world_store(w, empty, &(struct rv_store_opts){.read_only = true}, &w->s));
    OK(world_store(w, empty, &quick, &w->s)); /* what a process that died at once left */
    free(empty);
    world_close(w);
}
END_TEST

START_TEST(what_is_no_file_is_refused)
{
    struct world world, *w = &world;
    char *below;

    world_open(w, 1);
    FAILS(RV_E_INVALID, "is a folder", NULL, world_store(w, w->dir, &quick, &(rv_store *){NULL}));
    below = rv_kit_path(w->path, "x.db");
    FAILS(RV_E_UNAVAILABLE, "Not a directory", NULL, world_store(w, below, &quick, &(rv_store *){NULL}));
    FAILS(RV_E_INVALID, "not a regular file", NULL, world_store(w, "/dev/null", &quick, &(rv_store *){NULL}));
    ck_assert_int_eq(world_count(w, w->s), 1);
    free(below);
    world_close(w);
}
END_TEST

START_TEST(a_record_costs_little_more_than_its_body)
{
    struct world world, *w = &world;
    char body[120];
    struct rv_record r = {.body = {body, sizeof body}};
    struct rv_store_stats before, after;

    memset(body, 'x', sizeof body);
    world_open(w, 0);
    OK(rv_store_sweep(w->s, T0, 0, NULL, &w->err));
    OK(rv_store_read_stats(w->s, &before, &w->err));
    OK(rv_store_begin(w->s, &w->err));
    for (int64_t seq = 1; seq <= 10000; seq++) {
        const struct rv_store_append a = {.run = "r1",
                                          .fence = 1,
                                          .records = &r,
                                          .n_records = 1,
                                          .now_us = T0,
                                          .status = RV_RUN_RUNNING,
                                          .stage = "a"};
        r.seq = seq;
        OK(rv_store_append(w->s, &a, &w->err));
    }
    OK(rv_store_commit(w->s, &w->err));
    OK(rv_store_sweep(w->s, T0, 0, NULL, &w->err));
    OK(rv_store_read_stats(w->s, &after, &w->err));
    ck_assert_int_lt(after.bytes - before.bytes, 10000 * (120 + 40));
    world_close(w);
}
END_TEST

START_TEST(the_log_does_not_grow_without_end)
{
    struct world world, *w = &world;
    char *wal;
    struct stat info;

    world_open(w, 0);
    wal = rv_kit_path(w->dir, "store.db-wal");
    for (int64_t seq = 1; seq <= 600; seq++)
        OK(world_append(w, w->s, seq, 40000));
    ck_assert_int_eq(stat(wal, &info), 0);
    ck_assert_int_lt(info.st_size, 9 << 20);
    free(wal);
    world_close(w);
}
END_TEST

START_TEST(a_read_only_handle_reads_what_others_write)
{
    struct world world, *w = &world;
    rv_store *reader;

    world_open(w, 3);
    OK(world_store(w, w->path, &(struct rv_store_opts){.read_only = true}, &reader));
    ck_assert_int_eq(world_count(w, reader), 3);
    OK(world_append(w, w->s, 4, 2000));
    ck_assert_int_eq(world_count(w, reader), 4);
    OK(rv_store_check(reader, &w->err));
    rv_store_close(reader);
    OK(world_append(w, w->s, 5, 2000));
    world_close(w);
}
END_TEST

Suite *file_suite(void)
{
    Suite *suite = suite_create("file");
    TCase *tc = tcase_create("file");

    tcase_add_test(tc, only_the_owner_may_read_what_is_made);
    tcase_add_test(tc, the_file_says_what_it_is);
    tcase_add_test(tc, a_file_that_is_removed_while_it_is_open_takes_no_more);
    tcase_add_test(tc, a_file_that_was_removed_is_not_made_again);
    tcase_add_test(tc, names_that_mean_something_to_sqlite_are_files_here);
    tcase_add_test(tc, a_mistyped_kind_is_refused_and_makes_no_file);
    tcase_add_test(tc, a_file_that_must_exist_is_not_made);
    tcase_add_test(tc, what_is_no_file_is_refused);
    tcase_add_test(tc, a_record_costs_little_more_than_its_body);
    tcase_add_test(tc, the_log_does_not_grow_without_end);
    tcase_add_test(tc, a_read_only_handle_reads_what_others_write);
    suite_add_tcase(suite, tc);
    return suite;
}
