/* A process that copies is killed with SIGKILL: after each of its transactions, and at any of its writes to a file or a
 * server. The next one continues, and the copy is the one that would have been made at once. */
#include "tests/integration/move/world.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUNS        150
#define RECORDS     100
#define MOST_WRITES 60 /* a small part of a whole copy: it gets on */

struct way {
    enum kind from, to;
};
static const struct way ways[] = {{FILE_STORE, DATABASE}, {DATABASE, FILE_STORE}, {FILE_STORE, FILE_STORE}};

struct copies {
    struct world world;
    char *file, *from, *to, hash[RV_HASH_MAX];
};

static void begin(struct copies *c, struct way way)
{
    struct world *w = &c->world;
    struct rv_store_copied out;

    world_open(w);
    c->file = world_url(w, FILE_STORE);
    fill_plainly(c->file, RUNS, RECORDS);
    c->from = way.from == FILE_STORE ? rv_str_dup(rv_str_of(c->file)) : world_url(w, DATABASE);
    if (way.from == DATABASE)
        OK(world_copy(w, c->file, c->from, NULL, &out));
    c->to = world_url(w, FILE_STORE);
    OK(world_copy(w, c->from, c->to, NULL, &out));
    memcpy(c->hash, out.hash, sizeof out.hash);
    ck_assert_int_eq(out.tables[2].n_rows, RUNS * RECORDS);
    free(c->to);
    c->to = NULL;
}

static void end(struct copies *c)
{
    free(c->file);
    free(c->from);
    free(c->to);
    world_close(&c->world);
}

static int64_t writes_left = INT64_MAX; /* of this process, until it is killed */

static void count_write(void)
{
    if (writes_left-- == 0)
        kill(getpid(), SIGKILL);
}

/* What SQLite and libpq call, in place of the C library's: half a transaction is what they leave. */
__attribute__((visibility("default"))) ssize_t pwrite64(int fd, const void *from, size_t n, off64_t at)
{
    count_write();
    return syscall(SYS_pwrite64, fd, from, n, at);
}

__attribute__((visibility("default"))) ssize_t send(int fd, const void *from, size_t n, int flags)
{
    count_write();
    return syscall(SYS_sendto, fd, from, n, flags, NULL, 0);
}

static int die_at(void *self, const struct rv_store_copy_progress *p, rv_err **err)
{
    int *left = self;

    (void)p;
    (void)err;
    if (--*left < 0)
        kill(getpid(), SIGKILL);
    return 0;
}

static bool says_finished(const rv_err *err)
{
    return rv_err_is(err, RV_E_STATE) && strstr(rv_err_text(err), "already has a finished copy");
}

/* True: it was killed, after so many transactions or writes. */
static bool copy_in_child(struct copies *c, int points, int64_t writes)
{
    const struct rv_store_copy_opts opts = {.now_us = T0, .on_progress = die_at, .self = &points};
    struct world *w = &c->world;
    struct rv_store_copied out;
    int status = 0;

    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) { /* the one before may have been killed when all was done */
        writes_left = writes;
        _exit(world_copy(w, c->from, c->to, &opts, &out) == 0 || says_finished(w->err) ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFSIGNALED(status) || WEXITSTATUS(status) == 0, "the copy failed");
    return WIFSIGNALED(status);
}

/* No other command may use what is there, unless the copy was finished just before the kill; the next call finishes it.
 */
static void finish(struct copies *c)
{
    struct world *w = &c->world;
    struct rv_store_copied out;
    rv_store *s = NULL;
    bool is_half;

    int rc = rv_store_open(c->to, &(struct rv_store_opts){.must_exist = true}, &s, &w->err);
    is_half = rc < 0;
    if (rc == 0)
        rv_store_close(s);
    ck_assert_msg(rc == 0 || rc == RV_E_STATE || rc == RV_E_NOT_FOUND || rc == RV_E_INVALID, "%d", rc);
    rv_err_free(w->err);
    w->err = NULL;
    rc = world_copy(w, c->from, c->to, NULL, &out);
    if (rc < 0 && !is_half && says_finished(w->err)) {
        rv_err_free(w->err);
        w->err = NULL;
    } else {
        OK(rc);
        ck_assert(!out.has_restarted);
        ck_assert_str_eq(out.hash, c->hash);
    }
    s = world_store(w, c->to, false);
    OK(rv_store_check(s, &w->err));
    rv_store_close(s);
}

START_TEST(a_copy_that_was_killed_after_any_transaction_continues)
{
    struct copies copies, *c = &copies;
    bool was_killed = true;
    int n = 0;

    begin(c, ways[_i]);
    while (was_killed) {
        c->to = world_url(&c->world, ways[_i].to);
        was_killed = copy_in_child(c, n, INT64_MAX);
        if (was_killed)
            finish(c);
        free(c->to);
        c->to = NULL;
        n += was_killed ? (int)rv_kit_stride(5) : 0;
    }
    ck_assert_int_ge(n, 10);
    end(c);
}
END_TEST

/* Again and again, so that it gets on a little each time. */
START_TEST(a_copy_that_is_killed_many_times_gets_to_its_end)
{
    struct copies copies, *c = &copies;
    struct rv_rand_state state;
    struct rv_rand rand = rv_rand_seeded(&state, (uint64_t)_i + 1);
    int n = 0;

    begin(c, ways[_i]);
    c->to = world_url(&c->world, ways[_i].to);
    while (n < rv_kit_sample(20, 400) && copy_in_child(c, 1 << 20, (int64_t)rv_rand_below(rand, MOST_WRITES)))
        n++;
    ck_assert_int_ge(n, 3);
    finish(c);
    end(c);
}
END_TEST

Suite *killed_suite(void)
{
    Suite *suite = suite_create("killed");
    TCase *tc = tcase_create("killed");

    tcase_set_timeout(tc, 600);
    tcase_add_loop_test(tc, a_copy_that_was_killed_after_any_transaction_continues, 0, (int)RV_COUNT(ways));
    tcase_add_loop_test(tc, a_copy_that_is_killed_many_times_gets_to_its_end, 0, (int)RV_COUNT(ways));
    suite_add_tcase(suite, tc);
    return suite;
}
