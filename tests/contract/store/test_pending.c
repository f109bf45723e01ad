/* Interrupts that wait for an answer: a view beside the journal, replaced as a whole. */
#include "tests/contract/store/world.h"

static struct rv_pending waiting(const char *id, const char *text, int64_t created, int64_t expires)
{
    return (struct rv_pending){.id = id,
                               .kind = "confirmation",
                               .stage = "gate",
                               .text = rv_str_of(text),
                               .body = RV_STR_LIT("{}"),
                               .created_us = created,
                               .expires_us = expires};
}

static int put(struct world *w, const char *run, int64_t seq, const struct rv_pending *pending, size_t n)
{
    struct rv_record r;
    struct rv_store_append a = world_append(run, 1, &r, seq, "x");

    a.set_pending = true;
    a.pending = pending;
    a.n_pending = n;
    return rv_store_append(w->s, &a, &w->err);
}

static void summary_is(struct world *w, const char *run, int64_t n, int64_t expires)
{
    struct rv_run_row row;

    OK(rv_store_get_run(w->s, &operator_scope, run, &row, &w->err));
    ck_assert_int_eq(row.n_pending, n);
    ck_assert_int_eq(row.expires_us, expires);
    rv_run_row_fini(&row);
}

/* Proves 8.6/expire */
START_TEST(they_are_replaced_as_a_whole)
{
    struct world world, *w = &world;
    struct rv_pending two[] = {waiting("i1", "really?", T0, T0 + 50), waiting("i2", "which?", T0, T0 + 20)};
    struct seen seen = SEEN_INIT;

    world_open(w, _i);
    make_run(w, "r1");
    OK(put(w, "r1", 2, two, 2));
    summary_is(w, "r1", 2, T0 + 20);
    OK(rv_store_list_pending(w->s, &operator_scope, "r1", see_pending, &seen, &w->err));
    SEEN(&seen, "r1/i1:really? r1/i2:which?");
    OK(append(w, "r1", 1, 3, "y", NULL)); /* does not speak of them */
    summary_is(w, "r1", 2, T0 + 20);
    OK(put(w, "r1", 4, two, 1));
    summary_is(w, "r1", 1, T0 + 50);
    OK(rv_store_list_pending(w->s, &operator_scope, "r1", see_pending, &seen, &w->err));
    SEEN(&seen, "r1/i1:really?");
    two[0].expires_us = 0;
    OK(put(w, "r1", 5, two, 1));
    summary_is(w, "r1", 1, 0);
    OK(put(w, "r1", 6, NULL, 0));
    summary_is(w, "r1", 0, 0);
    OK(rv_store_list_pending(w->s, &operator_scope, "r1", see_pending, &seen, &w->err));
    SEEN(&seen, "");
    world_close(w);
}
END_TEST

static int is_whole(void *self, const struct rv_pending *p, rv_err **err)
{
    (void)err;
    ++*(int *)self;
    ck_assert_str_eq(p->run, "r1");
    ck_assert_str_eq(p->id, "i1");
    ck_assert_str_eq(p->kind, "confirmation");
    ck_assert_str_eq(p->stage, "gate");
    ck_assert_str_eq(p->user, "u"); /* the run's, whatever was given */
    ck_assert(rv_str_is(p->text, "really?"));
    ck_assert(rv_str_is(p->body, "{}"));
    ck_assert_int_eq(p->created_us, T0 + 3);
    ck_assert_int_eq(p->expires_us, T0 + 50);
    return 0;
}

START_TEST(one_is_read_back_as_it_was_given)
{
    struct world world, *w = &world;
    struct rv_pending p = waiting("i1", "really?", T0 + 3, T0 + 50);
    int n = 0;

    p.run = "somewhere";
    p.user = "somebody";
    world_open(w, _i);
    make_run(w, "r1");
    OK(put(w, "r1", 2, &p, 1));
    OK(rv_store_list_pending(w->s, &operator_scope, "r1", is_whole, &n, &w->err));
    OK(rv_store_list_pending(w->s, &operator_scope, NULL, is_whole, &n, &w->err));
    ck_assert_int_eq(n, 2);
    world_close(w);
}
END_TEST

/* Proves 8.6/pending: What waits for an answer is listed, of a run or of all runs a user may see, oldest first */
START_TEST(those_of_all_runs_come_oldest_first)
{
    struct world world, *w = &world;
    struct rv_pending a[] = {waiting("i1", "c", T0 + 3, 0), waiting("i2", "a", T0 + 1, 0)};
    struct rv_pending b[] = {waiting("i1", "b", T0 + 2, 0), waiting("i2", "d", T0 + 3, 0)};
    struct rv_store_new_run run;
    struct seen seen = SEEN_INIT;

    world_open(w, _i);
    make_run(w, "ra");
    run = world_run(w, "rb");
    run.user = "v";
    OK(rv_store_create_run(w->s, &run, &w->err));
    make_run(w, "rc");
    OK(put(w, "rb", 2, b, 2));
    OK(put(w, "ra", 2, a, 2));
    OK(rv_store_list_pending(w->s, &operator_scope, NULL, see_pending, &seen, &w->err));
    SEEN(&seen, "ra/i2:a rb/i1:b ra/i1:c rb/i2:d");
    OK(rv_store_list_pending(w->s, &(struct rv_store_scope){NULL, "v"}, NULL, see_pending, &seen, &w->err));
    SEEN(&seen, "rb/i1:b rb/i2:d");
    seen.stop_at = 2;
    seen.code = 5;
    ck_assert_int_eq(rv_store_list_pending(w->s, &operator_scope, NULL, see_pending, &seen, &w->err), 5);
    SEEN(&seen, "ra/i2:a rb/i1:b");
    FAILS(RV_E_NOT_FOUND, rv_store_list_pending(w->s, &operator_scope, "rd", see_pending, &seen, &w->err));
    OK(rv_store_list_pending(w->s, &operator_scope, "rc", see_pending, &seen, &w->err));
    SEEN(&seen, "");
    world_close(w);
}
END_TEST

START_TEST(an_append_that_is_refused_leaves_them)
{
    struct world world, *w = &world;
    struct rv_pending p = waiting("i1", "really?", T0, 0), twice[] = {p, p};

    world_open(w, _i);
    make_run(w, "r1");
    OK(put(w, "r1", 2, &p, 1));
    FAILS(RV_E_STATE, put(w, "r1", 2, NULL, 0));
    FAILS(RV_E_INVALID, put(w, "r1", 3, twice, 2));
    summary_is(w, "r1", 1, 0);
    world_close(w);
}
END_TEST

Suite *pending_suite(void)
{
    Suite *suite = suite_create("pending");
    TCase *tc = tcase_create("pending");

    ADD(tc, they_are_replaced_as_a_whole);
    ADD(tc, one_is_read_back_as_it_was_given);
    ADD(tc, those_of_all_runs_come_oldest_first);
    ADD(tc, an_append_that_is_refused_leaves_them);
    suite_add_tcase(suite, tc);
    return suite;
}
