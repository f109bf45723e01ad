/* The shim itself: a small program that keeps its word (nothing it acknowledged is lost) survives it at every point,
 * and one that does not is found out. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/crash/process.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#define N_ROWS     12
#define MAX_POINTS 1000

/* --- the program: commits rows and acknowledges each to the outside world --- */

static sqlite3 *open_db(const char *path, const char *sync)
{
    sqlite3 *db = NULL;
    char text[256];

    snprintf(text, sizeof text, "PRAGMA journal_mode=WAL; PRAGMA synchronous=%s; PRAGMA wal_autocheckpoint=4;", sync);
    if (sqlite3_open(path, &db) != SQLITE_OK || sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
        rv_kit_die("open %s: %s", path, sqlite3_errmsg(db));
    return db;
}

static int subject(const char *path, const char *sync)
{
    sqlite3 *db = open_db(path, sync);
    int fd = open(getenv("REEVE_CRASH_EFFECTS"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    char text[1024];

    if (fd < 0 || sqlite3_exec(db, "CREATE TABLE t(id INTEGER PRIMARY KEY, x TEXT)", NULL, NULL, NULL) != SQLITE_OK)
        return 1;
    for (int i = 1; i <= N_ROWS; i++) {
        snprintf(text, sizeof text, "INSERT INTO t VALUES(%d, '%0*d')", i, 100 + i * 50, i);
        if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
            return 2;
        if (write(fd, "+", 1) != 1)
            return 3;
    }
    close(fd);
    return sqlite3_close(db) == SQLITE_OK ? 0 : 4;
}

/* --- what is left of it --- */

static bool get(sqlite3 *db, const char *sql, char out[256])
{
    sqlite3_stmt *s = NULL;
    bool good = sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW;

    snprintf(out, 256, "%s", good ? (const char *)sqlite3_column_text(s, 0) : "");
    sqlite3_finalize(s);
    return good;
}

/* Is the file whole, and has it all that was acknowledged, and at most one row more? */
static bool kept_its_word(const struct world *w)
{
    char whole[256], n[256], last[256];
    char *acked = access(w->effects, R_OK) == 0 ? rv_kit_read(w->effects) : NULL;
    long n_acked = acked ? (long)strlen(acked) : 0;
    sqlite3 *db = NULL;
    bool good = sqlite3_open(w->store, &db) == SQLITE_OK && get(db, "PRAGMA integrity_check", whole) &&
                strcmp(whole, "ok") == 0;

    free(acked);
    if (good && get(db, "SELECT count(*) FROM t", n) && get(db, "SELECT coalesce(max(id), 0) FROM t", last)) {
        long rows = strtol(n, NULL, 10);
        good = strcmp(n, last) == 0 && (rows == n_acked || rows == n_acked + 1);
    } else {
        good = good && n_acked == 0;
    }
    sqlite3_close(db);
    return good;
}

static const struct {
    const char *how, *sync;
    bool keeps; /* its word, at every point */
} rows[] = {
    {"before", "FULL", true},  {"after", "FULL", true},   {"torn", "FULL", true},
    {"lose", "FULL", true},    {"scatter", "FULL", true}, {"before", "OFF", true}, /* no power was cut */
    {"lose", "NORMAL", false}, {"scatter", "OFF", false},
};

/* One life; false: it ended by itself. */
static bool live_and_die(const struct death *death, const char *sync, bool *kept, long *count)
{
    char *dir = rv_kit_tmpdir();
    struct world w;
    struct ending e;

    world_init(&w, dir, SHIM, NULL);
    process_run(&w, (const char *const[]){SELF, "subject", w.store, sync, NULL}, death, &e);
    bool died = e.status == -SIGKILL;
    ck_assert_msg(died || e.status == 0, "status %d: %s", e.status, e.err);
    ck_assert_msg(!died || strstr(e.err, death->how), "%s", e.err);
    *kept = kept_its_word(&w);
    *count = e.count;
    ending_fini(&e);
    world_fini(&w);
    rv_kit_tmpdir_remove(dir);
    return died;
}

START_TEST(a_program_survives_every_point_if_it_waits_for_the_disk)
{
    struct death death = {0, rows[_i].how, 7};
    bool kept, died;
    long n_points, n_broken = 0, ignored;

    died = live_and_die(&death, rows[_i].sync, &kept, &n_points);
    ck_assert(!died && kept);
    ck_assert_int_gt(n_points, N_ROWS * 2);
    ck_assert_int_lt(n_points, MAX_POINTS);
    for (death.at = 1; death.at <= n_points; death.at++) {
        died = live_and_die(&death, rows[_i].sync, &kept, &ignored);
        ck_assert_msg(died, "point %ld of %ld was not reached", death.at, n_points);
        ck_assert_msg(kept || !rows[_i].keeps, "%s at point %ld", death.how, death.at);
        n_broken += !kept;
    }
    if (!rows[_i].keeps)
        ck_assert_int_gt(n_broken, 0); /* else the shim takes nothing back */
}
END_TEST

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "subject") == 0)
        return subject(argv[2], argv[3]);

    Suite *s = suite_create("crash shim");
    TCase *tc = tcase_create("shim");
    tcase_add_loop_test(tc, a_program_survives_every_point_if_it_waits_for_the_disk, 0, RV_COUNT(rows));
    suite_add_tcase(s, tc);
    return rv_kit_run(s);
}
