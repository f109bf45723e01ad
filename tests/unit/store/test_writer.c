/* Handles of one process take turns on one connection to write. */
#include <pthread.h>
#include <stdio.h>

#include "tests/unit/store/world.h"

#define N_THREADS 4
#define N_ROWS    25

static rv_store *open_again(struct world *w, int64_t busy_ms)
{
    const struct rv_store_opts opts = {.busy_ms = busy_ms, .sync = RV_STORE_SYNC_OFF};
    rv_store *s = NULL;

    OK(rv_store_open(w->path, &opts, &s, &w->err));
    return s;
}

static int put(rv_store *s, const char *text, rv_err **err)
{
    char hash[RV_STORE_HASH_MAX];

    return rv_store_put_blob(s, rv_str_of(text), hash, err);
}

static bool has(rv_store *s, const char *text)
{
    rv_buf got = RV_BUF_INIT(100);
    char hash[RV_HASH_MAX];

    rv_hash_format(rv_str_of(text), hash);
    bool has = rv_store_get_blob(s, hash, &got, NULL) == 0 && rv_str_is(rv_buf_str(&got), text);
    rv_buf_fini(&got);
    return has;
}

START_TEST(a_handle_waits_for_the_turn_of_another_and_no_longer)
{
    struct world world, *w = &world;

    world_open(w, 0);
    rv_store *a = open_again(w, 50), *b = open_again(w, 50);
    OK(put(a, "first", &w->err)); /* by the connection that they share */
    OK(rv_store_begin(a, &w->err));
    OK(put(a, "of a", &w->err));
    ck_assert(has(a, "of a") && !has(b, "of a"));
    ck_assert_int_eq(put(b, "of b", &w->err), RV_E_TIMEOUT);
    rv_err_free(w->err);
    w->err = NULL;
    OK(rv_store_commit(a, &w->err));
    ck_assert(has(b, "of a"));
    OK(put(b, "of b", &w->err));
    ck_assert(has(a, "of b") && has(w->s, "of b"));
    rv_store_close(a);
    rv_store_close(b);
    world_close(w);
}
END_TEST

/* What was written in a group that was never committed is gone, and others have the turn. */
START_TEST(a_handle_that_is_closed_within_a_group_gives_its_turn)
{
    struct world world, *w = &world;

    world_open(w, 0);
    rv_store *a = open_again(w, 50), *b = open_again(w, 50);
    OK(rv_store_begin(a, &w->err));
    OK(put(a, "of a", &w->err));
    rv_store_close(a);
    OK(put(b, "of b", &w->err));
    ck_assert(!has(b, "of a") && has(b, "of b"));
    rv_store_close(b);
    world_close(w);
}
END_TEST

START_TEST(a_refused_write_leaves_the_turn_to_others)
{
    const struct rv_store_scope scope = {NULL, NULL};
    struct world world, *w = &world;

    world_open(w, 0);
    rv_store *a = open_again(w, 50), *b = open_again(w, 50);
    for (int i = 0; i < 3; i++)
        ck_assert_int_lt(rv_store_delete_session(a, &scope, "there is none", 1, NULL), 0);
    OK(put(b, "of b", &w->err));
    OK(rv_store_begin(a, &w->err));
    rv_store_rollback(a);
    OK(put(b, "more", &w->err));
    rv_store_defer_sync(b, true);
    OK(put(b, "later", &w->err));
    rv_store_defer_sync(b, false);
    OK(put(a, "last", &w->err));
    ck_assert(has(a, "later") && has(b, "last"));
    rv_store_close(a);
    rv_store_close(b);
    world_close(w);
}
END_TEST

struct row_writer {
    pthread_t thread;
    rv_store *s;
    int id, n_failed;
};

static void *write_rows(void *self)
{
    struct row_writer *r = self;
    char text[40];

    for (int i = 0; i < N_ROWS; i++) {
        snprintf(text, sizeof text, "row %d of %d", i, r->id);
        r->n_failed += put(r->s, text, NULL) < 0 || !has(r->s, text);
    }
    return NULL;
}

START_TEST(threads_with_handles_of_their_own_lose_nothing)
{
    struct world world, *w = &world;
    struct row_writer rows[N_THREADS];
    char text[40];

    world_open(w, 0);
    for (int i = 0; i < N_THREADS; i++) {
        rows[i] = (struct row_writer){.s = open_again(w, 600000), .id = i};
        ck_assert_int_eq(pthread_create(&rows[i].thread, NULL, write_rows, &rows[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(rows[i].thread, NULL);
        ck_assert_int_eq(rows[i].n_failed, 0);
        rv_store_close(rows[i].s);
    }
    for (int i = 0; i < N_THREADS * N_ROWS; i++) {
        snprintf(text, sizeof text, "row %d of %d", i % N_ROWS, i / N_ROWS);
        ck_assert_msg(has(w->s, text), "%s", text);
    }
    world_close(w);
}
END_TEST

Suite *writer_suite(void)
{
    Suite *s = suite_create("writer");
    TCase *tc = tcase_create("writer");

    tcase_add_test(tc, a_handle_waits_for_the_turn_of_another_and_no_longer);
    tcase_add_test(tc, a_handle_that_is_closed_within_a_group_gives_its_turn);
    tcase_add_test(tc, a_refused_write_leaves_the_turn_to_others);
    tcase_add_test(tc, threads_with_handles_of_their_own_lose_nothing);
    suite_add_tcase(s, tc);
    return s;
}
