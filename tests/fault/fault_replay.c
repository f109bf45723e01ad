/* Allocations fail while a turn is replayed from its journal: each scene of unit_turns, with the agents that it asks.
 * No crash, no leak, RV_E_NOMEM. */
#include <check.h>

#include "tests/kit/fault.h"
#include "tests/kit/suites.h"
#include "tests/unit/turns/room.h"

static int replay(const struct room *r)
{
    const struct rv_store_scope all = {0};
    const struct rv_replay_opts opts = {.pipeline = r->p, .catalog = &room_catalog};
    struct rv_replayed out;
    rv_err *err = NULL;

    int rc = rv_journal_replay(r->store, &all, r->run_id, &opts, &out, &err);
    if (rc == 0)
        rv_replayed_fini(&out);
    rv_err_free(err);
    return rc;
}

START_TEST(allocations_of_a_replay_may_fail)
{
    struct room *r = room_new(room_scene_at(_i), NULL);
    bool fired = true;
    size_t n = 0;

    room_start(r);
    room_go(r);
    ck_assert_int_eq(replay(r), 0);
    for (; fired; n++) {
        rv_fault_arm(n);
        int rc = replay(r);
        fired = rv_fault_disarm();
        ck_assert_msg(rc == (fired ? RV_E_NOMEM : 0), "%s: allocation %zu: %d", r->scene->name, n, rc);
        ck_assert_msg(!fired || rv_fault_balance() == 0, "%s: allocation %zu leaks %ld", r->scene->name, n,
                      rv_fault_balance());
    }
    ck_assert(n > 100 || !rv_fault_works());
    room_free(r);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fault_replay");
    TCase *tc = tcase_create("replay");

    tcase_add_loop_test(tc, allocations_of_a_replay_may_fail, 0, room_count_scenes());
    suite_add_tcase(s, tc);
    return rv_kit_run(s);
}
