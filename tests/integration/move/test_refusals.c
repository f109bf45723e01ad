/* Copies that are refused, and what the message says; copies that fail half-way. */
#include "tests/integration/move/world.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(a_target_that_is_not_empty_is_refused)
{
    struct world world, *w = &world;
    struct rv_store_copied out;

    world_open(w);
    char *from = world_url(w, FILE_STORE), *other = world_url(w, FILE_STORE), *to = world_url(w, (enum kind)_i);
    fill_plainly(from, 3, 5);
    fill_plainly(other, 2, 5);
    OK(world_copy(w, from, to, NULL, &out));
    FAILS(RV_E_STATE, "already has a finished copy", world_copy(w, from, to, NULL, &out));
    FAILS(RV_E_STATE, "is not empty: its table \"blobs\" has rows", world_copy(w, other, to, NULL, &out));
    FAILS(RV_E_STATE, "are the same store", world_copy(w, from, from, NULL, &out));
    rv_store *s = world_store(w, to, false);
    OK(rv_store_check(s, &w->err));
    rv_store_close(s);
    free(from);
    free(other);
    free(to);
    world_close(w);
}
END_TEST

static int stop(void *self, const struct rv_store_copy_progress *p, rv_err **err)
{
    int *left = self;

    (void)p;
    return --*left < 0 ? RV_FAIL(err, RV_E_CANCELLED, "stopped") : 0;
}

START_TEST(half_a_copy_is_refused_by_name_until_it_is_finished)
{
    struct world world, *w = &world;
    struct rv_store_copied out;
    rv_store *s = NULL;
    int left = 1;
    const struct rv_store_copy_opts opts = {.now_us = T0, .on_progress = stop, .self = &left};

    world_open(w);
    char *from = world_url(w, FILE_STORE), *other = world_url(w, FILE_STORE), *to = world_url(w, (enum kind)_i);
    fill_plainly(from, 30, 100);
    fill_plainly(other, 2, 5);
    FAILS(RV_E_CANCELLED, "stopped", world_copy(w, from, to, &opts, &out));
    FAILS(RV_E_STATE, "has an unfinished copy of", rv_store_open(to, NULL, &s, &w->err));
    FAILS(RV_E_STATE, from, rv_store_open(to, &(struct rv_store_opts){.read_only = true}, &s, &w->err));
    FAILS(RV_E_STATE, "has an unfinished copy of", world_copy(w, other, to, NULL, &out));
    OK(world_copy(w, from, to, NULL, &out));
    ck_assert(out.is_resumed);
    OK(rv_store_open(to, NULL, &s, &w->err));
    OK(rv_store_check(s, &w->err));
    rv_store_close(s);
    free(from);
    free(other);
    free(to);
    world_close(w);
}
END_TEST

START_TEST(a_source_that_changed_meanwhile_is_copied_again)
{
    struct world world, *w = &world;
    struct rv_store_copied out;
    int left = 2;
    const struct rv_store_copy_opts opts = {.now_us = T0, .on_progress = stop, .self = &left};

    world_open(w);
    char *from = world_url(w, FILE_STORE), *to = world_url(w, (enum kind)_i), *back = world_url(w, FILE_STORE);
    fill_plainly(from, 30, 100);
    FAILS(RV_E_CANCELLED, "stopped", world_copy(w, from, to, &opts, &out));
    world_sql(from, "UPDATE runs SET stage = 'changed' WHERE id = 'run000001'");
    OK(world_copy(w, from, to, NULL, &out));
    ck_assert(out.has_restarted && !out.is_resumed);
    struct rv_store_copied again;
    OK(world_copy(w, to, back, NULL, &again));
    ck_assert_str_eq(out.hash, again.hash);
    free(from);
    free(to);
    free(back);
    world_close(w);
}
END_TEST

START_TEST(rows_that_others_add_to_the_source_are_not_half_there)
{
    struct world world, *w = &world;
    struct rv_store_copied out;
    int left = 1;
    const struct rv_store_copy_opts opts = {.now_us = T0, .on_progress = stop, .self = &left};

    world_open(w);
    char *from = world_url(w, FILE_STORE), *to = world_url(w, (enum kind)_i);
    fill_plainly(from, 30, 100);
    FAILS(RV_E_CANCELLED, "stopped", world_copy(w, from, to, &opts, &out));
    world_sql(from, "DELETE FROM records WHERE run = (SELECT max(key) FROM runs);"
                    "DELETE FROM runs WHERE key = (SELECT max(key) FROM runs)");
    OK(world_copy(w, from, to, NULL, &out)); /* behind what was copied, or there: both are right */
    rv_store *s = world_store(w, to, false);
    OK(rv_store_check(s, &w->err));
    rv_store_close(s);
    free(from);
    free(to);
    world_close(w);
}
END_TEST

/* Another process begins to continue the copy while this one is at it. */
struct rival {
    struct world *w;
    const char *from, *to;
    bool is_done;
};

static int overtake(void *self, const struct rv_store_copy_progress *p, rv_err **err)
{
    struct rival *r = self;
    struct world *w = r->w;
    struct rv_store_copied out;

    (void)err;
    if (r->is_done || strcmp(p->table, "records") != 0)
        return 0;
    r->is_done = true;
    OK(world_copy(w, r->from, r->to, NULL, &out));
    ck_assert(out.is_resumed);
    return 0;
}

START_TEST(of_two_that_copy_the_later_one_goes_on)
{
    struct world world, *w = &world;
    struct rv_store_copied out;
    struct rival rival = {.w = w};
    const struct rv_store_copy_opts opts = {.now_us = T0, .on_progress = overtake, .self = &rival};

    world_open(w);
    char *from = world_url(w, FILE_STORE), *to = world_url(w, (enum kind)_i);
    fill_plainly(from, 60, 100);
    rival.from = from;
    rival.to = to;
    FAILS(RV_E_STATE, "another process continues this copy", world_copy(w, from, to, &opts, &out));
    ck_assert(rival.is_done);
    rv_store *s = world_store(w, to, false);
    OK(rv_store_check(s, &w->err));
    rv_store_close(s);
    free(from);
    free(to);
    world_close(w);
}
END_TEST

/* A rival that begins a copy: it lets others read the marks, until one wants to write there, too; then it has begun. */
static pid_t begin_rival(const char *schema)
{
    char sql[800], asks[200];

    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        snprintf(sql, sizeof sql,
                 "BEGIN; LOCK TABLE %s.about IN SHARE MODE; DO $$ BEGIN WHILE NOT EXISTS (SELECT 1 FROM pg_locks WHERE"
                 " NOT granted AND relation = '%s.about'::regclass) LOOP NULL; END LOOP; INSERT INTO %s.about VALUES"
                 " ('copy_of', 'x'), ('copy_from', 'rival.db'), ('copy_by', 'rival'); END $$; COMMIT",
                 schema, schema, schema);
        free(rv_kit_postgres_sql(rv_kit_postgres(), sql));
        _exit(0);
    }
    snprintf(asks, sizeof asks,
             "SELECT count(*) FROM pg_locks WHERE granted AND mode = 'ShareLock' AND relation = '%s.about'::regclass",
             schema);
    for (bool holds = false; !holds;) {
        char *said = rv_kit_postgres_sql(rv_kit_postgres(), asks);
        holds = said[0] == '1';
        free(said);
    }
    return pid;
}

START_TEST(of_two_that_begin_the_second_one_finds_the_marks_of_the_first)
{
    struct world world, *w = &world;
    struct rv_store_copied out;
    int status = 0;

    world_open(w);
    char *from = world_url(w, FILE_STORE), *to = world_url(w, DATABASE);
    fill_plainly(from, 3, 5);
    rv_store_close(world_store(w, to, true));
    pid_t rival = begin_rival(strstr(to, "schema=") + strlen("schema="));
    FAILS(RV_E_STATE, "has an unfinished copy of \"rival.db\"", world_copy(w, from, to, NULL, &out));
    ck_assert_int_eq(waitpid(rival, &status, 0), rival);
    ck_assert_int_eq(status, 0);
    free(from);
    free(to);
    world_close(w);
}
END_TEST

START_TEST(a_text_that_postgresql_refuses_is_named)
{
    struct world world, *w = &world;
    struct rv_store_copied out;

    world_open(w);
    char *from = world_url(w, FILE_STORE), *to = world_url(w, DATABASE), *file = world_url(w, FILE_STORE);
    fill_plainly(from, 12, 3);
    world_sql(from, "UPDATE runs SET session = CAST(x'61ff62' AS TEXT) WHERE key = 7");
    FAILS(RV_E_INVALID,
          "table \"runs\", row 7: the column \"session\" is not valid UTF-8, which PostgreSQL cannot keep",
          world_copy(w, from, to, NULL, &out));
    OK(world_copy(w, from, file, NULL, &out));
    world_sql(from, "UPDATE runs SET session = CAST(x'610062' AS TEXT) WHERE key = 7");
    FAILS(RV_E_INVALID, "row 7: the column \"session\" contains a NUL", world_copy(w, from, to, NULL, &out));
    world_sql(from, "UPDATE runs SET session = 's' WHERE key = 7");
    OK(world_copy(w, from, to, NULL, &out));
    free(from);
    free(to);
    free(file);
    world_close(w);
}
END_TEST

START_TEST(rows_that_do_not_belong_together_are_refused)
{
    struct world world, *w = &world;
    struct rv_store_copied out;

    world_open(w);
    char *from = world_url(w, FILE_STORE), *to = world_url(w, (enum kind)_i);
    fill_plainly(from, 3, 5);
    world_sql(from, "UPDATE runs SET bundle = 77 WHERE id = 'run000001'");
    FAILS(RV_E_INVALID, "do not belong together", world_copy(w, from, to, NULL, &out));
    free(from);
    free(to);
    world_close(w);
}
END_TEST

static int refuse(void *self, const struct rv_store_leased *l, rv_err **err)
{
    ++*(int *)self;
    return RV_FAIL(err, RV_E_STATE, "%s %s of %s", l->what, l->id, l->owner);
}

START_TEST(a_lease_that_lasts_is_asked_about)
{
    struct world world, *w = &world;
    struct rv_store_copied out;
    int n = 0;
    const struct rv_store_copy_opts opts = {.now_us = T0, .on_leased = refuse, .self = &n};

    world_open(w);
    char *from = world_url(w, FILE_STORE), *to = world_url(w, FILE_STORE);
    fill_plainly(from, 3, 5);
    world_sql(from, "UPDATE runs SET owner = 'A', lease_until_us = 1700000000000001, status = 'running'"
                    " WHERE id = 'run000001'");
    FAILS(RV_E_STATE, "run run000001 of A", world_copy(w, from, to, &opts, &out));
    ck_assert_int_eq(n, 1);
    world_sql(from, "UPDATE runs SET lease_until_us = 1700000000000000 WHERE id = 'run000001'");
    OK(world_copy(w, from, to, &opts, &out));
    ck_assert_int_eq(n, 1);
    free(from);
    free(to);
    world_close(w);
}
END_TEST

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_ptr_ne(signal(SIGXFSZ, SIG_IGN), SIG_ERR);
}

START_TEST(a_disk_that_is_full_can_be_emptied_and_the_copy_continued)
{
    struct world world, *w = &world;
    struct rv_store_copied out;

    world_open(w);
    char *from = world_url(w, FILE_STORE), *to = world_url(w, FILE_STORE);
    fill_plainly(from, 400, 100);
    limit_files(600000);
    FAILS(RV_E_DISK, "File too large", world_copy(w, from, to, NULL, &out));
    limit_files(RLIM_INFINITY);
    rv_store *s = NULL;
    FAILS(RV_E_STATE, "has an unfinished copy of", rv_store_open(to, NULL, &s, &w->err));
    OK(world_copy(w, from, to, NULL, &out));
    ck_assert(out.is_resumed);
    free(from);
    free(to);
    world_close(w);
}
END_TEST

Suite *refusals_suite(void)
{
    Suite *suite = suite_create("refusals");
    TCase *tc = tcase_create("refusals");

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, a_target_that_is_not_empty_is_refused, 0, N_KINDS);
    tcase_add_loop_test(tc, half_a_copy_is_refused_by_name_until_it_is_finished, 0, N_KINDS);
    tcase_add_loop_test(tc, a_source_that_changed_meanwhile_is_copied_again, 0, N_KINDS);
    tcase_add_loop_test(tc, rows_that_others_add_to_the_source_are_not_half_there, 0, N_KINDS);
    tcase_add_loop_test(tc, of_two_that_copy_the_later_one_goes_on, 0, N_KINDS);
    tcase_add_test(tc, of_two_that_begin_the_second_one_finds_the_marks_of_the_first);
    tcase_add_test(tc, a_text_that_postgresql_refuses_is_named);
    tcase_add_loop_test(tc, rows_that_do_not_belong_together_are_refused, 0, N_KINDS);
    tcase_add_test(tc, a_lease_that_lasts_is_asked_about);
    tcase_add_test(tc, a_disk_that_is_full_can_be_emptied_and_the_copy_continued);
    suite_add_tcase(suite, tc);
    return suite;
}
