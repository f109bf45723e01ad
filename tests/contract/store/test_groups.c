/* Several writes as one transaction. */
#include "tests/contract/store/world.h"

START_TEST(a_group_is_kept_by_its_commit)
{
    struct world world, *w = &world;
    rv_store *other;
    struct rv_run_row row;

    world_open(w, _i);
    make_run(w, "r1");
    make_run(w, "r2");
    OK(rv_store_begin(w->s, &w->err));
    OK(append(w, "r1", 1, 2, "x", NULL));
    OK(append(w, "r2", 1, 2, "y", NULL));
    OK(append(w, "r1", 1, 3, "z", NULL));
    RECORDS("r1", "1:one 2:x 3:z"); /* whoever writes it sees it */
    if (w->impl->is_shared) {
        other = world_other(w);
        OK(rv_store_get_run(other, &operator_scope, "r1", &row, &w->err)); /* others do not, nor do they wait */
        ck_assert_int_eq(row.n_records, 1);
        rv_run_row_fini(&row);
        rv_store_close(other);
    }
    OK(rv_store_commit(w->s, &w->err));
    RECORDS("r1", "1:one 2:x 3:z");
    RECORDS("r2", "1:one 2:y");
    world_close(w);
}
END_TEST

START_TEST(a_refused_append_leaves_the_others)
{
    struct world world, *w = &world;

    world_open(w, _i);
    make_run(w, "r1");
    make_run(w, "r2");
    OK(rv_store_begin(w->s, &w->err));
    OK(append(w, "r1", 1, 2, "x", NULL));
    FAILS(RV_E_STATE, append(w, "r2", 7, 2, "fenced", NULL));
    FAILS(RV_E_STATE, append(w, "r1", 1, 2, "again", NULL));
    FAILS(RV_E_NOT_FOUND, append(w, "r3", 1, 2, "nowhere", NULL));
    FAILS(RV_E_INVALID, append(w, "r2", 1, 2, "\xff", NULL));
    OK(append(w, "r2", 1, 2, "y", NULL));
    OK(rv_store_commit(w->s, &w->err));
    RECORDS("r1", "1:one 2:x");
    RECORDS("r2", "1:one 2:y");
    world_close(w);
}
END_TEST

/* Each kind of write, then all of it undone. */
START_TEST(a_rollback_undoes_every_kind_of_write)
{
    struct world world, *w = &world;
    struct rv_pending p = {.id = "i", .kind = "k", .stage = "a", .expires_us = T0 + 9};
    struct rv_record r;
    struct rv_store_append a = world_append("r1", 1, &r, 2, "two");
    const struct rv_store_claim claim = {"B", "A", T0, T0 + 900};
    struct rv_store_stats before, after;
    struct rv_run_row row;
    char hash[RV_HASH_MAX], value[3000];
    rv_buf out = RV_BUF_INIT(100);
    int64_t fence = 0;

    memset(value, 'v', sizeof value);
    world_open(w, _i);
    make_run(w, "r1");
    make_run(w, "r2");
    OK(rv_store_put_snapshot(w->s, "r2", 1, 1, RV_STR_LIT("s"), &w->err));
    OK(rv_store_read_stats(w->s, &before, &w->err));
    OK(rv_store_begin(w->s, &w->err));
    a.set_pending = true;
    a.pending = &p;
    a.n_pending = 1;
    r.value = (rv_str){value, sizeof value};
    OK(rv_store_append(w->s, &a, &w->err));
    OK(rv_store_put_snapshot(w->s, "r1", 1, 2, RV_STR_LIT("s"), &w->err));
    OK(rv_store_request_cancel(w->s, &operator_scope, "r1", T0 + 5, &w->err));
    OK(rv_store_renew(w->s, "A", T0 + 700, &w->err));
    OK(rv_store_claim(w->s, &operator_scope, "r1", &claim, &fence, &w->err));
    OK(rv_store_release(w->s, "r1", 2, &w->err));
    OK(rv_store_put_blob(w->s, RV_STR_LIT("blob"), hash, &w->err));
    make_run(w, "r3");
    OK(append(w, "r3", 1, 2, "x", NULL));
    OK(rv_store_release(w->s, "r3", 1, &w->err));
    OK(rv_store_delete_run(w->s, &operator_scope, "r3", NULL, T0, &w->err));
    make_run(w, "r3");
    OK(rv_store_release(w->s, "r2", 1, &w->err));
    OK(rv_store_delete_run(w->s, &operator_scope, "r2", NULL, T0, &w->err));
    make_run(w, "r2");
    OK(append(w, "r2", 1, 2, "x", NULL));
    rv_store_rollback(w->s);
    OK(rv_store_read_stats(w->s, &after, &w->err));
    ck_assert_int_eq(after.runs, before.runs);
    ck_assert_int_eq(after.records, before.records);
    ck_assert_int_eq(after.blobs, before.blobs);
    ck_assert_int_eq(after.pending, before.pending);
    ck_assert_int_eq(after.snapshots, before.snapshots);
    RECORDS("r1", "1:one");
    RECORDS("r2", "1:one");
    OK(rv_store_get_run(w->s, &operator_scope, "r1", &row, &w->err));
    ck_assert_str_eq(row.owner, "A");
    ck_assert_int_eq(row.fence, 1);
    ck_assert_int_eq(row.lease_until_us, T0 + 100);
    ck_assert_int_eq(row.updated_us, T0);
    ck_assert_int_eq(row.expires_us, 0);
    ck_assert(!row.cancel_requested);
    rv_run_row_fini(&row);
    FAILS(RV_E_NOT_FOUND, rv_store_get_run(w->s, &operator_scope, "r3", &row, &w->err));
    FAILS(RV_E_NOT_FOUND, rv_store_get_blob(w->s, hash, &out, &w->err));
    OK(append(w, "r1", 1, 2, "two", NULL));
    rv_buf_fini(&out);
    world_close(w);
}
END_TEST

START_TEST(a_group_may_hold_what_belongs_together)
{
    struct world world, *w = &world;
    char hash[RV_HASH_MAX];
    struct rv_store_new_run run;

    world_open(w, _i);
    OK(rv_store_begin(w->s, &w->err));
    OK(rv_store_put_blob(w->s, RV_STR_LIT("another bundle"), hash, &w->err));
    run = world_run(w, "r1");
    run.bundle = hash;
    OK(rv_store_create_run(w->s, &run, &w->err));
    FAILS(RV_E_EXISTS, rv_store_create_run(w->s, &run, &w->err));
    OK(append(w, "r1", 1, 2, "x", NULL));
    OK(rv_store_put_snapshot(w->s, "r1", 1, 2, RV_STR_LIT("s"), &w->err));
    make_run(w, "r2");
    OK(rv_store_release(w->s, "r2", 1, &w->err));
    OK(rv_store_delete_run(w->s, &operator_scope, "r2", NULL, T0, &w->err));
    OK(rv_store_commit(w->s, &w->err));
    RECORDS("r1", "1:one 2:x");
    make_run(w, "r2");
    world_close(w);
}
END_TEST

START_TEST(groups_do_not_nest_and_end_once)
{
    struct world world, *w = &world;

    world_open(w, _i);
    make_run(w, "r1");
    FAILS(RV_E_STATE, rv_store_commit(w->s, &w->err));
    rv_store_rollback(w->s); /* fine without a group */
    OK(rv_store_begin(w->s, &w->err));
    FAILS(RV_E_STATE, rv_store_begin(w->s, &w->err));
    OK(append(w, "r1", 1, 2, "x", NULL));
    FAILS(RV_E_STATE, rv_store_sweep(w->s, T0, 0, NULL, &w->err));
    FAILS(RV_E_STATE, rv_store_check(w->s, &w->err));
    FAILS(RV_E_STATE, rv_store_backup(w->s, "nowhere.db", &w->err));
    OK(rv_store_commit(w->s, &w->err));
    FAILS(RV_E_STATE, rv_store_commit(w->s, &w->err));
    OK(rv_store_begin(w->s, &w->err));
    OK(rv_store_commit(w->s, &w->err)); /* with nothing in it */
    RECORDS("r1", "1:one 2:x");
    world_close(w);
}
END_TEST

START_TEST(closing_gives_an_open_group_up)
{
    struct world world, *w = &world;

    world_open(w, _i);
    if (w->impl->is_shared) {
        make_run(w, "r1");
        OK(rv_store_begin(w->s, &w->err));
        OK(append(w, "r1", 1, 2, "x", NULL));
        rv_store_close(w->s);
        w->s = world_other(w);
        RECORDS("r1", "1:one");
    } else {
        make_run(w, "r1");
        OK(rv_store_begin(w->s, &w->err));
        OK(append(w, "r1", 1, 2, "x", NULL));
        rv_store_rollback(w->s);
    }
    world_close(w);
}
END_TEST

Suite *groups_suite(void)
{
    Suite *suite = suite_create("groups");
    TCase *tc = tcase_create("groups");

    ADD(tc, a_group_is_kept_by_its_commit);
    ADD(tc, a_refused_append_leaves_the_others);
    ADD(tc, a_rollback_undoes_every_kind_of_write);
    ADD(tc, a_group_may_hold_what_belongs_together);
    ADD(tc, groups_do_not_nest_and_end_once);
    ADD(tc, closing_gives_an_open_group_up);
    suite_add_tcase(suite, tc);
    return suite;
}
