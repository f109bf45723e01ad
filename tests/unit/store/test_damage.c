/* Files that are not what they were: each is an error or the truth, never a crash and never something else. */
#include <unistd.h>

#include "tests/unit/store/world.h"

#define PAGE 4096

/* A file of a store with 60 records, all of it written back, and its bytes. */
static rv_buf make_file(struct world *w)
{
    world_open(w, 60);
    OK(rv_store_put_snapshot(w->s, "r1", 1, 60, RV_STR_LIT("snap"), &w->err));
    rv_store_close(w->s);
    w->s = NULL;
    return world_read(w->path);
}

static void forget(struct world *w)
{
    rv_err_free(w->err);
    w->err = NULL;
}

/* One line for each fault, none of them twice, and none of SQLite's own words. */
static void check_lines(const char *said)
{
    static const char *const raw[] = {"malformed", "***", "btree", "tree page", "cell ", "freelist"};

    for (size_t i = 0; i < RV_COUNT(raw); i++)
        ck_assert_msg(!strstr(said, raw[i]), "\"%s\": %s", raw[i], said);
    for (const char *line = strstr(said, "\n  "); line; line = strstr(line + 3, "\n  ")) {
        char *copy = strndup(line, strcspn(line + 3, "\n") + 3);
        ck_assert_ptr_nonnull(copy);
        const char *next = strstr(line + 3, copy);
        ck_assert_msg(!next || (next[strlen(copy)] && next[strlen(copy)] != '\n'), "it is said twice: %s", said);
        free(copy);
    }
}

/* Whatever is wrong with the file: an error that says so, or a store that can be used. */
static int open_and_use(struct world *w, bool *found)
{
    int rc = world_store(w, w->path, &quick, &w->s), check;
    int64_t n;

    *found = rc < 0;
    if (rc < 0) {
        ck_assert_msg(rc == RV_E_INVALID || rc == RV_E_UNAVAILABLE || rc == RV_E_VERSION, "open: %s",
                      rv_kit_err_take(w->err));
        forget(w);
        return rc;
    }
    n = world_count(w, w->s);
    ck_assert_msg(n == 60 || n == RV_E_INVALID || n == RV_E_NOT_FOUND || n == RV_E_IO, "%lld records: %s", (long long)n,
                  rv_err_text(w->err));
    forget(w);
    rc = world_append(w, w->s, 61, 3000);
    ck_assert_msg(rc == 0 || rc == RV_E_INVALID || rc == RV_E_NOT_FOUND || rc == RV_E_STATE || rc == RV_E_INTERNAL ||
                      rc == RV_E_IO,
                  "append: %s", rv_kit_err_take(w->err));
    forget(w);
    check = rv_store_check(w->s, &w->err);
    ck_assert_msg(check == 0 || check == RV_E_IO, "check: %s", rv_kit_err_take(w->err));
    *found = check < 0;
    check_lines(rv_err_text(w->err));
    forget(w);
    rv_store_close(w->s);
    w->s = NULL;
    return 0;
}

static void again(struct world *w, rv_buf *bytes)
{
    char *wal = rv_kit_path(w->dir, "store.db-wal"), *shm = rv_kit_path(w->dir, "store.db-shm");

    unlink(wal);
    unlink(shm);
    free(wal);
    free(shm);
    world_write(w->path, rv_buf_str(bytes));
}

START_TEST(each_page_overwritten_is_found)
{
    struct world world, *w = &world;
    rv_buf bytes = make_file(w);
    size_t n_missed = 0, n_pages = bytes.len / PAGE;
    bool found;

    ck_assert_uint_gt(n_pages, 20);
    for (size_t step = rv_kit_stride(3), page = rv_kit_first(step); page < n_pages; page += step) {
        char *at = bytes.ptr + page * PAGE, saved[PAGE];
        memcpy(saved, at, PAGE);
        memset(at, 0xa5, PAGE);
        again(w, &bytes);
        memcpy(at, saved, PAGE);
        open_and_use(w, &found);
        n_missed += !found;
    }
    ck_assert_uint_eq(n_missed, 0);
    again(w, &bytes);
    ck_assert_int_eq(open_and_use(w, &found), 0); /* the process is none the worse for it */
    ck_assert(!found);
    rv_buf_fini(&bytes);
    world_close(w);
}
END_TEST

START_TEST(a_changed_byte_of_a_value_is_found)
{
    struct world world, *w = &world;
    rv_buf bytes = make_file(w), out = RV_BUF_INIT(100000);
    char *value = memmem(bytes.ptr, bytes.len, "0000000000000000030", 19);
    char bundle[RV_HASH_MAX];

    ck_assert_ptr_nonnull(value);
    value[500] ^= 1;
    again(w, &bytes);
    OK(world_store(w, w->path, &quick, &w->s));
    FAILS(RV_E_IO, "the bytes of a blob are not those of its hash", "backup", rv_store_check(w->s, &w->err));
    ck_assert_int_eq(world_count(w, w->s), 60);
    rv_store_close(w->s);
    w->s = NULL;
    world_sql(w->path, "UPDATE blobs SET data = 'bungle' WHERE data = CAST('bundle' AS BLOB)");
    OK(world_store(w, w->path, &quick, &w->s));
    rv_hash_format(RV_STR_LIT("bundle"), bundle);
    FAILS(RV_E_IO, "is damaged", "store check", rv_store_get_blob(w->s, bundle, &out, &w->err));
    ck_assert_uint_eq(out.len, 0);
    rv_buf_fini(&out);
    rv_buf_fini(&bytes);
    world_close(w);
}
END_TEST

/* What SQLite takes for sound and is not. */
static const struct {
    const char *sql, *said;
    int read; /* what reading says then */
} wrong[] = {
    {"DELETE FROM records WHERE seq = 30", "should have 60 records and has 59, the last 60", RV_E_IO},
    {"DELETE FROM records WHERE seq = 60", "should have 60 records and has 59, the last 59", RV_E_IO},
    {"DELETE FROM records WHERE seq = 1", "should have 60 records", RV_E_IO},
    {"UPDATE records SET seq = 99 WHERE seq = 60", "should have 60 records and has 60, the last 99", RV_E_IO},
    {"UPDATE runs SET n_records = 59", "should have 59 records and has 60", 59},
    {"UPDATE runs SET n_pending = 2", "should have 2 pending interrupts and has 0", 60},
    {"DELETE FROM blobs WHERE key > 20", "refers to one of blobs that is not there", RV_E_IO},
    /* more damage than an error's text has room for */
    {"UPDATE blobs SET data = CAST(data || 'x' AS BLOB)", "the bytes of a blob are not those of its hash", 60},
    {"UPDATE records SET blob = 999 WHERE seq = 2", "refers to one of blobs that is not there", RV_E_IO},
    {"UPDATE runs SET status = 'dancing'", NULL, RV_E_IO},
    {"DELETE FROM runs", "refers to one of runs that is not there", RV_E_NOT_FOUND},
};

START_TEST(rows_that_contradict_each_other_are_found)
{
    struct world world, *w = &world;
    rv_buf bytes = make_file(w);

    for (size_t i = 0; i < RV_COUNT(wrong); i++) {
        int64_t n;
        again(w, &bytes);
        world_sql(w->path, wrong[i].sql);
        OK(world_store(w, w->path, &quick, &w->s));
        n = world_count(w, w->s);
        ck_assert_msg(n == wrong[i].read, "row %zu: read %lld", i, (long long)n);
        forget(w);
        if (wrong[i].said)
            FAILS(RV_E_IO, wrong[i].said, "backup", rv_store_check(w->s, &w->err));
        rv_store_close(w->s);
        w->s = NULL;
    }
    rv_buf_fini(&bytes);
    world_close(w);
}
END_TEST

START_TEST(a_truncated_file_is_an_error)
{
    struct world world, *w = &world;
    rv_buf bytes = make_file(w);
    const size_t lengths[] = {1, 99, 100, 512, PAGE - 1, PAGE, PAGE + 1, bytes.len / 2, bytes.len - PAGE};
    bool found;

    for (size_t i = 0; i < RV_COUNT(lengths); i++) {
        again(w, &bytes);
        ck_assert_int_eq(truncate(w->path, (off_t)lengths[i]), 0);
        open_and_use(w, &found);
        ck_assert_msg(found, "%zu bytes", lengths[i]);
    }
    rv_buf_fini(&bytes);
    world_close(w);
}
END_TEST

START_TEST(what_is_no_database_is_refused_and_not_touched)
{
    static const char *const texts[] = {"x", "this is a shopping list, long enough or not\n", "SQLite format 3"};
    struct world world, *w = &world;
    char *now, *large = malloc(20000);

    ck_assert_ptr_nonnull(large);
    memset(large, 'x', 19999);
    large[19999] = 0;
    world_open(w, -1);
    for (size_t i = 0; i <= RV_COUNT(texts); i++) {
        const char *text = i < RV_COUNT(texts) ? texts[i] : large;
        rv_kit_write(w->path, text);
        FAILS(RV_E_INVALID, "file is not a database", "restore this one", world_store(w, w->path, &quick, &w->s));
        now = rv_kit_read(w->path);
        ck_assert_str_eq(now, text);
        free(now);
    }
    free(large);
    world_close(w);
}
END_TEST

/* The file and its log as a crash would leave them: read while the store is open. 30 records are in the file, 30 in
 * the log. */
static rv_buf crash(struct world *w, rv_buf *log)
{
    char *wal;
    rv_buf bytes;

    world_open(w, 30);
    OK(rv_store_sweep(w->s, T0, 0, NULL, &w->err));
    for (int64_t seq = 31; seq <= 60; seq++)
        OK(world_append(w, w->s, seq, 2000));
    wal = rv_kit_path(w->dir, "store.db-wal");
    bytes = world_read(w->path);
    *log = world_read(wal);
    rv_store_close(w->s);
    w->s = NULL;
    free(wal);
    return bytes;
}

static int64_t recover(struct world *w, rv_buf *bytes, rv_str log)
{
    char *wal = rv_kit_path(w->dir, "store.db-wal");
    int64_t n;

    again(w, bytes);
    world_write(wal, log);
    OK(world_store(w, w->path, &quick, &w->s));
    OK(rv_store_check(w->s, &w->err));
    n = world_count(w, w->s);
    ck_assert_msg(n >= 0, "%s", rv_err_text(w->err));
    OK(world_append(w, w->s, n + 1, 2000));
    OK(rv_store_check(w->s, &w->err));
    rv_store_close(w->s);
    w->s = NULL;
    free(wal);
    return n;
}

START_TEST(a_log_that_was_cut_loses_only_what_was_cut)
{
    struct world world, *w = &world;
    rv_buf log, bytes = crash(w, &log);
    int64_t n, before = 60;
    const size_t step = rv_kit_stride(5);

    ck_assert_int_eq(recover(w, &bytes, rv_buf_str(&log)), 60);
    for (size_t len = log.len - 1; len > 0; len = len > 5000 * step ? len - 4999 * step : len / 2) {
        n = recover(w, &bytes, (rv_str){log.ptr, len});
        ck_assert_int_le(n, before);
        ck_assert_int_ge(n, 30);
        before = n;
    }
    ck_assert_int_eq(before, 30);
    ck_assert_int_eq(recover(w, &bytes, (rv_str){"", 0}), 30);
    rv_buf_fini(&log);
    rv_buf_fini(&bytes);
    world_close(w);
}
END_TEST

START_TEST(a_damaged_log_loses_only_what_follows_the_damage)
{
    struct world world, *w = &world;
    rv_buf log, bytes = crash(w, &log);
    int64_t n, before = 0;
    char *garbage = malloc(log.len);

    ck_assert_ptr_nonnull(garbage);
    for (size_t at = 0; at < log.len; at += 8000 * rv_kit_stride(3)) {
        memcpy(garbage, log.ptr, log.len);
        memset(garbage + at, 0xa5, log.len - at > 3000 ? 3000 : log.len - at);
        n = recover(w, &bytes, (rv_str){garbage, log.len});
        ck_assert_int_ge(n, 30);
        ck_assert_int_ge(n, before);
        before = n;
    }
    ck_assert_int_gt(before, 50);
    memset(garbage, 0xa5, log.len);
    ck_assert_int_eq(recover(w, &bytes, (rv_str){garbage, log.len}), 30);
    free(garbage);
    rv_buf_fini(&log);
    rv_buf_fini(&bytes);
    world_close(w);
}
END_TEST

Suite *damage_suite(void)
{
    Suite *suite = suite_create("damage");
    TCase *tc = tcase_create("damage");

    tcase_add_test(tc, each_page_overwritten_is_found);
    tcase_add_test(tc, a_changed_byte_of_a_value_is_found);
    tcase_add_test(tc, rows_that_contradict_each_other_are_found);
    tcase_add_test(tc, a_truncated_file_is_an_error);
    tcase_add_test(tc, what_is_no_database_is_refused_and_not_touched);
    tcase_add_test(tc, a_log_that_was_cut_loses_only_what_was_cut);
    tcase_add_test(tc, a_damaged_log_loses_only_what_follows_the_damage);
    suite_add_tcase(suite, tc);
    return suite;
}
