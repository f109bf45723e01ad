/* Several handles on one file: in other processes, which may hold it too long, and in other threads. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coreengine/store/sqlite/sqlite_internal.h"
#include "tests/unit/store/world.h"

/* Another process that holds a lock until it is told to let go. */
struct holder {
    pid_t pid;
    int to, from;
};

static void hold(const char *path, const char *sql, int from, int to)
{
    sqlite3 *db = NULL;
    char c = sqlite3_open(path, &db) == SQLITE_OK && sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 'y' : 'n';

    if (write(to, &c, 1) == 1 && read(from, &c, 1) >= 0)
        sqlite3_close(db);
    _exit(0);
}

static struct holder hold_lock(const char *path, const char *sql)
{
    struct holder h;
    int down[2], up[2];
    char c = 0;

    ck_assert_int_eq(pipe(down), 0);
    ck_assert_int_eq(pipe(up), 0);
    h.pid = fork();
    ck_assert_int_ge(h.pid, 0);
    if (h.pid == 0) {
        close(down[1]);
        close(up[0]);
        hold(path, sql, down[0], up[1]);
    }
    close(down[0]);
    close(up[1]);
    h.to = down[1];
    h.from = up[0];
    ck_assert_int_eq(read(h.from, &c, 1), 1);
    ck_assert_int_eq(c, 'y');
    return h;
}

static void let_go(struct holder *h, bool by_force)
{
    int status;

    if (by_force)
        ck_assert_int_eq(kill(h->pid, SIGKILL), 0);
    close(h->to);
    ck_assert_int_eq(waitpid(h->pid, &status, 0), h->pid);
    close(h->from);
}

START_TEST(a_file_locked_for_too_long_is_a_timeout)
{
    struct world world, *w = &world;
    struct holder h;

    world_open(w, 3);
    h = hold_lock(w->path, "BEGIN IMMEDIATE; UPDATE runs SET stage = 'never'");
    FAILS(RV_E_TIMEOUT, "database is locked", "more than 50 ms", world_append(w, w->s, 4, 100));
    FAILS(RV_E_TIMEOUT, "database is locked", "more than 50 ms", rv_store_begin(w->s, &w->err));
    FAILS(RV_E_TIMEOUT, "database is locked", "more than 50 ms", rv_store_renew(w->s, "A", T0 + 900, &w->err));
    ck_assert_int_eq(world_count(w, w->s), 3); /* readers do not wait for it */
    let_go(&h, false);
    OK(world_append(w, w->s, 4, 100));
    ck_assert_int_eq(world_count(w, w->s), 4);
    world_close(w);
}
END_TEST

/* A write of another thread. */
struct patient {
    struct world w; /* its own errors */
    int begun;      /* a byte is written to it when the write begins */
    int rc;
};

static int tell_begun(void *self, const char *point, rv_err **err)
{
    const struct patient *p = self;

    (void)err;
    if (strcmp(point, "append") == 0)
        ck_assert_int_eq(write(p->begun, "b", 1), 1);
    return 0;
}

static void *append_patiently(void *self)
{
    struct patient *p = self;

    p->rc = world_append(&p->w, p->w.s, 4, 100);
    return NULL;
}

/* While it waits, a handle that waits for 50 ms gives up. */
START_TEST(a_write_waits_as_long_as_it_is_told)
{
    struct world world, *w = &world;
    struct patient patient;
    rv_store *other = NULL;
    struct holder h;
    pthread_t thread;
    int begun[2];
    char c;

    world_open(w, 3);
    OK(world_store(w, w->path, &(struct rv_store_opts){.sync = RV_STORE_SYNC_OFF, .busy_ms = 50}, &other));
    ck_assert_int_eq(pipe(begun), 0);
    h = hold_lock(w->path, "BEGIN IMMEDIATE; UPDATE runs SET stage = 'never'");
    rv_store_set_wait(w->s, 1);
    FAILS(RV_E_TIMEOUT, "database is locked", "more than 1 ms", world_append(w, w->s, 4, 100));
    rv_store_set_wait(w->s, 0);
    FAILS(RV_E_TIMEOUT, "database is locked", "more than 50 ms", world_append(w, w->s, 4, 100));
    rv_store_set_wait(w->s, 600000);
    patient = (struct patient){.w = *w, .begun = begun[1]};
    rv_store_set_faults(w->s, (struct rv_store_faults){tell_begun, &patient});
    ck_assert_int_eq(pthread_create(&thread, NULL, append_patiently, &patient), 0);
    ck_assert_int_eq(read(begun[0], &c, 1), 1);
    FAILS(RV_E_TIMEOUT, "locked", "more than 50 ms", rv_store_renew(other, "A", T0 + 900, &w->err));
    let_go(&h, false);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    OK(patient.rc);
    rv_store_set_faults(w->s, (struct rv_store_faults){0});
    ck_assert_int_eq(world_count(w, w->s), 4);
    rv_store_close(other);
    close(begun[0]);
    close(begun[1]);
    world_close(w);
}
END_TEST

START_TEST(a_writer_that_is_killed_leaves_no_lock_and_no_change)
{
    struct world world, *w = &world;
    struct holder h;
    struct rv_run_row row;

    world_open(w, 3);
    h = hold_lock(w->path, "BEGIN IMMEDIATE; UPDATE runs SET stage = 'never'; DELETE FROM records");
    let_go(&h, true);
    OK(world_append(w, w->s, 4, 100));
    OK(rv_store_get_run(w->s, &operator_scope, "r1", &row, &w->err));
    ck_assert_str_eq(row.stage, "a");
    rv_run_row_fini(&row);
    ck_assert_int_eq(world_count(w, w->s), 4);
    OK(rv_store_check(w->s, &w->err));
    world_close(w);
}
END_TEST

START_TEST(a_file_held_exclusively_can_not_be_opened)
{
    struct world world, *w = &world;
    struct holder h;

    world_open(w, 3);
    rv_store_close(w->s);
    w->s = NULL;
    h = hold_lock(w->path, "PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; UPDATE runs SET stage = 'never'");
    FAILS(RV_E_UNAVAILABLE, "database is locked", "more than 50 ms", world_store(w, w->path, &quick, &w->s));
    let_go(&h, false);
    OK(world_store(w, w->path, &quick, &w->s));
    ck_assert_int_eq(world_count(w, w->s), 3);
    world_close(w);
}
END_TEST

START_TEST(a_sweep_goes_on_beside_a_reader)
{
    struct world world, *w = &world;
    struct holder h;

    world_open(w, 30);
    h = hold_lock(w->path, "BEGIN; SELECT count(*) FROM records");
    OK(rv_store_delete_run(w->s, &operator_scope, "r1", NULL, T0 + 1000, &w->err));
    OK(rv_store_sweep(w->s, T0 + 1000, 0, NULL, &w->err));      /* the log is cut when the reader is gone */
    ck_assert_int_eq(((struct sqlite *)w->s->sql)->wait_ms, 0); /* later calls wait as long as before */
    let_go(&h, false);
    OK(rv_store_sweep(w->s, T0 + 1000, 0, NULL, &w->err));
    OK(rv_store_check(w->s, &w->err));
    world_close(w);
}
END_TEST

/* --- Threads: a handle each --- */

#define N_THREADS 4
#define N_STEPS   40

struct worker {
    pthread_t thread;
    const char *path, *bundle;
    int id;
    const char *failed; /* what, if anything: Check's assertions belong to the main thread */
    int64_t n_refused;
};

static int count_up(void *self, const struct rv_record *r, rv_err **err)
{
    int64_t *n = self;

    (void)err;
    return r->seq == ++*n ? 0 : RV_E_INTERNAL;
}

/* A run of its own, and one that all of them want. */
static const char *work(struct worker *me, rv_store *s, const char *name)
{
    struct rv_record r = {.body = RV_STR_LIT("by a thread")};
    struct rv_store_append a = {
        .run = name, .records = &r, .n_records = 1, .now_us = T0, .status = RV_RUN_RUNNING, .stage = "a"};
    const struct rv_store_new_run run = {.id = name,
                                         .user = "u",
                                         .session = "s",
                                         .pipeline = "p",
                                         .bundle = me->bundle,
                                         .status = RV_RUN_RUNNING,
                                         .stage = "a",
                                         .now_us = T0};
    const struct rv_store_claim claim = {name, NULL, T0, T0 + 1};
    int64_t n = 0;

    if (rv_store_create_run(s, &run, NULL) < 0)
        return "create";
    for (int i = 1; i <= N_STEPS; i++) {
        struct rv_run_row row;
        int64_t fence = 0;
        int rc;
        a.run = name;
        a.fence = 1;
        a.release = false;
        r.seq = i;
        if (rv_store_append(s, &a, NULL) < 0)
            return "append";
        rc = rv_store_claim(s, &operator_scope, "r1", &claim, &fence, NULL);
        me->n_refused += rc == RV_E_STATE;
        if (rc == RV_E_STATE)
            continue;
        if (rc < 0 || rv_store_get_run(s, &operator_scope, "r1", &row, NULL) < 0)
            return "claim";
        r.seq = row.n_records + 1;
        rv_run_row_fini(&row);
        a.run = "r1";
        a.fence = fence;
        a.release = true;
        if (rv_store_append(s, &a, NULL) < 0)
            return "append to what was claimed"; /* nobody else could: the lease lasts */
    }
    if (rv_store_read(s, &operator_scope, &(struct rv_record_range){.run = name, .from = 1}, count_up, &n, NULL) < 0 ||
        n != N_STEPS)
        return "read";
    return NULL;
}

static void *run_worker(void *self)
{
    struct worker *me = self;
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF, .busy_ms = 600000};
    rv_store *s = NULL;
    char name[20];

    snprintf(name, sizeof name, "thread-%d", me->id);
    me->failed = rv_store_open(me->path, &opts, &s, NULL) < 0 ? "open" : work(me, s, name);
    rv_store_close(s);
    return NULL;
}

START_TEST(threads_share_a_file_with_a_handle_each)
{
    struct world world, *w = &world;
    struct worker workers[N_THREADS];
    int64_t n_refused = 0;

    world_open(w, 0);
    OK(rv_store_release(w->s, "r1", 1, &w->err));
    for (int i = 0; i < N_THREADS; i++) {
        workers[i] = (struct worker){.path = w->path, .bundle = w->bundle, .id = i};
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        ck_assert_int_eq(pthread_join(workers[i].thread, NULL), 0);
        ck_assert_msg(!workers[i].failed, "thread %d: %s", i, workers[i].failed);
        n_refused += workers[i].n_refused;
    }
    /* Each claim that was not refused wrote one record, and nobody wrote over another's. */
    ck_assert_int_eq(world_count(w, w->s), N_THREADS * N_STEPS - n_refused);
    OK(rv_store_check(w->s, &w->err));
    world_close(w);
}
END_TEST

START_TEST(a_fresh_file_may_be_opened_by_several_at_once)
{
    for (int round = 0; round < 10; round++) {
        struct world world, *w = &world;
        struct worker workers[N_THREADS];
        char bundle[RV_HASH_MAX];

        world_open(w, -1);
        rv_hash_format(RV_STR_LIT("none"), bundle);
        for (int i = 0; i < N_THREADS; i++) {
            workers[i] = (struct worker){.path = w->path, .bundle = bundle, .id = i};
            ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]), 0);
        }
        for (int i = 0; i < N_THREADS; i++) {
            ck_assert_int_eq(pthread_join(workers[i].thread, NULL), 0);
            ck_assert_msg(strcmp(workers[i].failed, "create") == 0, "%s", workers[i].failed); /* there is no bundle */
        }
        OK(world_store(w, w->path, &quick, &w->s));
        OK(rv_store_check(w->s, &w->err));
        world_close(w);
    }
}
END_TEST

Suite *locks_suite(void)
{
    Suite *suite = suite_create("locks");
    TCase *tc = tcase_create("locks");

    tcase_add_test(tc, a_file_locked_for_too_long_is_a_timeout);
    tcase_add_test(tc, a_write_waits_as_long_as_it_is_told);
    tcase_add_test(tc, a_writer_that_is_killed_leaves_no_lock_and_no_change);
    tcase_add_test(tc, a_file_held_exclusively_can_not_be_opened);
    tcase_add_test(tc, a_sweep_goes_on_beside_a_reader);
    tcase_add_test(tc, threads_share_a_file_with_a_handle_each);
    tcase_add_test(tc, a_fresh_file_may_be_opened_by_several_at_once);
    suite_add_tcase(suite, tc);
    return suite;
}
