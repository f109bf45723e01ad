/* Leases and fences: at most one owner, and whoever was followed by another can not write any more. */
#include "tests/contract/store/world.h"

static int claim(struct world *w, rv_store *s, const char *owner, const char *dead, int64_t now, int64_t *fence)
{
    const struct rv_store_claim c = {owner, dead, now, now + 100};

    return rv_store_claim(s, &operator_scope, "r1", &c, fence, &w->err);
}

static void owner_is(struct world *w, const char *owner, int64_t fence, int64_t until)
{
    struct rv_run_row row;

    OK(rv_store_get_run(w->s, &operator_scope, "r1", &row, &w->err));
    ck_assert_pstr_eq(row.owner, owner);
    ck_assert_int_eq(row.fence, fence);
    ck_assert_int_eq(row.lease_until_us, until);
    rv_run_row_fini(&row);
}

START_TEST(a_lease_that_lasts_keeps_others_out)
{
    struct world world, *w = &world;
    int64_t fence = -1;

    world_open(w, _i);
    make_run(w, "r1");
    SAYS(RV_E_STATE, "\"A\" until 2023-11-14T22:13:20.000100Z", claim(w, w->s, "B", NULL, T0 + 99, &fence));
    FAILS(RV_E_STATE, claim(w, w->s, "B", "C", T0 + 99, &fence));  /* not the one that is known to be dead */
    FAILS(RV_E_STATE, claim(w, w->s, "A", NULL, T0 + 99, &fence)); /* not even its owner: who runs it then? */
    ck_assert_int_eq(fence, -1);
    owner_is(w, "A", 1, T0 + 100);
    OK(append(w, "r1", 1, 2, "x", NULL));
    OK(claim(w, w->s, "B", NULL, T0 + 100, &fence));
    ck_assert_int_eq(fence, 2);
    owner_is(w, "B", 2, T0 + 200);
    world_close(w);
}
END_TEST

START_TEST(a_dead_owner_is_not_waited_for)
{
    struct world world, *w = &world;
    int64_t fence = 0;

    world_open(w, _i);
    make_run(w, "r1");
    OK(claim(w, w->s, "B", "A", T0 + 1, &fence));
    ck_assert_int_eq(fence, 2);
    owner_is(w, "B", 2, T0 + 101);
    FAILS(RV_E_STATE, append(w, "r1", 1, 2, "x", NULL));
    world_close(w);
}
END_TEST

START_TEST(a_writer_who_was_followed_is_fenced_off)
{
    struct world world, *w = &world;
    rv_store *other;
    struct rv_record r;
    struct rv_store_append a = world_append("r1", 2, &r, 2, "by B");
    int64_t fence = 0;

    world_open(w, _i);
    make_run(w, "r1");
    other = w->impl->is_shared ? world_other(w) : w->s;
    OK(claim(w, other, "B", NULL, T0 + 100, &fence));
    SAYS(RV_E_STATE, "\"B\"", append(w, "r1", 1, 2, "by A", NULL));
    FAILS(RV_E_STATE, rv_store_put_snapshot(w->s, "r1", 1, 1, RV_STR_LIT("snap"), &w->err));
    OK(rv_store_renew(w->s, "A", T0 + 9000, &w->err)); /* does not bring it back */
    owner_is(w, "B", 2, T0 + 200);
    FAILS(RV_E_STATE, append(w, "r1", 1, 2, "by A", NULL));
    OK(rv_store_release(w->s, "r1", 1, &w->err)); /* nor does that take it from B */
    owner_is(w, "B", 2, T0 + 200);
    OK(rv_store_append(other, &a, &w->err));
    RECORDS("r1", "1:one 2:by B");
    a.fence = 3; /* nobody has that one yet */
    r.seq = 3;
    FAILS(RV_E_STATE, rv_store_append(other, &a, &w->err));
    OK(rv_store_release(other, "r1", 2, &w->err));
    SAYS(RV_E_STATE, "let go", append(w, "r1", 1, 3, "by A", NULL));
    if (other != w->s)
        rv_store_close(other);
    world_close(w);
}
END_TEST

START_TEST(an_owner_whose_lease_ended_may_go_on_until_somebody_comes)
{
    struct world world, *w = &world;
    int64_t fence = 0;

    world_open(w, _i);
    make_run(w, "r1");
    OK(append(w, "r1", 1, 2, "late", NULL));
    OK(rv_store_renew(w->s, "A", T0 + 500, &w->err));
    owner_is(w, "A", 1, T0 + 500);
    FAILS(RV_E_STATE, claim(w, w->s, "B", NULL, T0 + 499, &fence));
    OK(rv_store_renew(w->s, "A", T0 + 300, &w->err)); /* a lease is never cut short */
    owner_is(w, "A", 1, T0 + 500);
    world_close(w);
}
END_TEST

START_TEST(renewing_extends_the_owners_leases_alone)
{
    struct world world, *w = &world;
    struct rv_store_new_run run;
    struct rv_run_row row;

    world_open(w, _i);
    make_run(w, "r1");
    run = world_run(w, "r2");
    run.owner = "B";
    OK(rv_store_create_run(w->s, &run, &w->err));
    make_run(w, "r3");
    OK(rv_store_renew(w->s, "A", T0 + 500, &w->err));
    owner_is(w, "A", 1, T0 + 500);
    OK(rv_store_get_run(w->s, &operator_scope, "r2", &row, &w->err));
    ck_assert_int_eq(row.lease_until_us, T0 + 100);
    rv_run_row_fini(&row);
    OK(rv_store_get_run(w->s, &operator_scope, "r3", &row, &w->err));
    ck_assert_int_eq(row.lease_until_us, T0 + 500);
    rv_run_row_fini(&row);
    OK(rv_store_renew(w->s, "nobody", T0 + 500, &w->err));
    world_close(w);
}
END_TEST

START_TEST(a_run_that_was_let_go_is_claimed_at_once)
{
    struct world world, *w = &world;
    struct rv_record r;
    struct rv_store_append a = world_append("r1", 2, &r, 2, "x");
    int64_t fence = 0;

    world_open(w, _i);
    make_run(w, "r1");
    OK(rv_store_release(w->s, "r1", 1, &w->err));
    owner_is(w, NULL, 1, 0);
    OK(rv_store_release(w->s, "r1", 1, &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_release(w->s, "r2", 1, &w->err));
    OK(rv_store_renew(w->s, "A", T0 + 900, &w->err));
    owner_is(w, NULL, 1, 0);
    OK(claim(w, w->s, "B", NULL, T0, &fence));
    ck_assert_int_eq(fence, 2);
    a.release = true;
    OK(rv_store_append(w->s, &a, &w->err));
    owner_is(w, NULL, 2, 0);
    OK(claim(w, w->s, "A", NULL, T0, &fence));
    ck_assert_int_eq(fence, 3);
    world_close(w);
}
END_TEST

START_TEST(a_cancel_reaches_the_owner_and_goes_with_the_run)
{
    struct world world, *w = &world;
    struct rv_record r;
    struct rv_store_append a = world_append("r1", 1, &r, 2, "x");
    struct rv_run_row row;
    struct seen seen = SEEN_INIT;

    world_open(w, _i);
    make_run(w, "r1");
    make_run(w, "r2");
    OK(rv_store_request_cancel(w->s, &operator_scope, "r1", T0 + 7, &w->err));
    OK(rv_store_request_cancel(w->s, &operator_scope, "r1", T0 + 7, &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_request_cancel(w->s, &operator_scope, "r3", T0 + 7, &w->err));
    OK(rv_store_list_cancels(w->s, "A", see_id, &seen, &w->err));
    SEEN(&seen, "r1");
    OK(rv_store_list_cancels(w->s, "B", see_id, &seen, &w->err));
    SEEN(&seen, "");
    OK(rv_store_get_run(w->s, &operator_scope, "r1", &row, &w->err));
    ck_assert(row.cancel_requested);
    ck_assert_int_eq(row.updated_us, T0 + 7);
    rv_run_row_fini(&row);
    OK(rv_store_append(w->s, &a, &w->err)); /* it goes on for a while */
    OK(rv_store_list_cancels(w->s, "A", see_id, &seen, &w->err));
    SEEN(&seen, "r1");
    a = world_append("r1", 1, &r, 3, "end");
    a.status = RV_RUN_CANCELLED;
    OK(rv_store_append(w->s, &a, &w->err));
    OK(rv_store_list_cancels(w->s, "A", see_id, &seen, &w->err));
    SEEN(&seen, "");
    SAYS(RV_E_STATE, "cancelled", rv_store_request_cancel(w->s, &operator_scope, "r1", T0 + 8, &w->err));
    world_close(w);
}
END_TEST

START_TEST(only_runs_that_are_not_over_can_be_cancelled)
{
    static const struct {
        enum rv_run_status status;
        int rc;
    } cases[] = {{RV_RUN_READY, 0},
                 {RV_RUN_RUNNING, 0},
                 {RV_RUN_INTERRUPTED, 0},
                 {RV_RUN_COMPLETED, RV_E_STATE},
                 {RV_RUN_TERMINATED, RV_E_STATE},
                 {RV_RUN_FAILED, RV_E_STATE},
                 {RV_RUN_CANCELLED, RV_E_STATE}};
    struct world world, *w = &world;
    struct seen seen = SEEN_INIT;

    _Static_assert(RV_COUNT(cases) == RV_N_RUN, "each status");
    world_open(w, _i);
    for (size_t i = 0; i < RV_COUNT(cases); i++) {
        char id[2] = {(char)('a' + i), 0};
        struct rv_store_new_run run = world_run(w, id);
        run.status = cases[i].status;
        OK(rv_store_create_run(w->s, &run, &w->err));
        if (cases[i].rc == 0)
            OK(rv_store_request_cancel(w->s, &operator_scope, id, T0, &w->err));
        else
            FAILS(cases[i].rc, rv_store_request_cancel(w->s, &operator_scope, id, T0, &w->err));
    }
    seen.stop_at = 2;
    seen.code = 9;
    ck_assert_int_eq(rv_store_list_cancels(w->s, "A", see_id, &seen, &w->err), 9);
    ck_assert_int_eq(seen.n, 2);
    rv_buf_fini(&seen.text);
    world_close(w);
}
END_TEST

Suite *owners_suite(void)
{
    Suite *suite = suite_create("owners");
    TCase *tc = tcase_create("owners");

    ADD(tc, a_lease_that_lasts_keeps_others_out);
    ADD(tc, a_dead_owner_is_not_waited_for);
    ADD(tc, a_writer_who_was_followed_is_fenced_off);
    ADD(tc, an_owner_whose_lease_ended_may_go_on_until_somebody_comes);
    ADD(tc, renewing_extends_the_owners_leases_alone);
    ADD(tc, a_run_that_was_let_go_is_claimed_at_once);
    ADD(tc, a_cancel_reaches_the_owner_and_goes_with_the_run);
    ADD(tc, only_runs_that_are_not_over_can_be_cancelled);
    suite_add_tcase(suite, tc);
    return suite;
}
