/* Replays and deaths. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/turns/room.h"

/* Proves turns/replay: A turn with all of it is replayed to the same, and goes on after a death at any step */
START_TEST(a_replay_is_what_was)
{
    struct room *r = room_new(room_scene_at(_i), NULL);

    room_start(r);
    room_go(r);
    room_check_replay(r);
    room_free(r);
}
END_TEST

/* Up to a step, then a death, then to the end. */
static struct room *live(const struct scene *s, size_t dies_after)
{
    struct room *r = room_new(s, NULL);

    room_start(r);
    for (size_t i = 1; i < dies_after; i++)
        ck_assert(room_answer(r));
    if (dies_after > 0)
        room_die(r);
    room_go(r);
    return r;
}

static bool calls_once(const struct room *r)
{
    for (size_t i = 0; i < r->n_calls; i++)
        if (r->calls[i].kind == RV_EFFECT_CALL_TOOL && r->calls[i].effect_class == RV_EFFECT_NON_IDEMPOTENT)
            return true;
    return false;
}

/* Proves turns/replay */
START_TEST(a_death_after_any_step_changes_nothing)
{
    const struct scene *s = room_scene_at(_i);
    struct room *calm = live(s, 0), *watched = room_new(s, NULL);
    char *rows = room_columns(calm), *state = room_state(calm);

    room_start(watched);
    for (size_t i = 1, step = rv_kit_stride(20); i < calm->n_steps; i++) {
        if (i % step != (size_t)_i % step) { /* in a slow build each scene has places of its own */
            ck_assert(room_answer(watched));
            continue;
        }
        bool unknown = calls_once(watched); /* then it is told that nobody knows, and may come to something else */
        struct room *r = live(s, i);
        char *again = room_columns(r), *state_again = room_state(r);
        if (!unknown) {
            ck_assert_msg(strcmp(again, rows) == 0, "%s, dead after step %zu:\n%s\nwanted:\n%s", s->name, i, again,
                          rows);
            ck_assert_msg(strcmp(state_again, state) == 0, "%s, dead after step %zu:\n%s\nwanted:\n%s", s->name, i,
                          state_again, state);
            ck_assert_uint_eq(r->n_performed, calm->n_performed);
        }
        if (!unknown || rv_run_status(r->run) != RV_RUN_INTERRUPTED) /* a turn that waits is not kept yet */
            ck_assert_uint_eq(room_count(again, " user "), room_count(rows, " user "));
        ck_assert_uint_le(r->n_performed, calm->n_performed);
        room_check_replay(r);
        free(again);
        free(state_again);
        room_free(r);
        ck_assert(room_answer(watched));
    }
    free(rows);
    free(state);
    room_free(calm);
    room_free(watched);
}
END_TEST

Suite *replay_suite(void)
{
    Suite *s = suite_create("replay");
    TCase *tc = tcase_create("replay");

    tcase_add_loop_test(tc, a_replay_is_what_was, 0, room_count_scenes());
    tcase_add_loop_test(tc, a_death_after_any_step_changes_nothing, 0, room_count_scenes());
    suite_add_tcase(s, tc);
    return s;
}
