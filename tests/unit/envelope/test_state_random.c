/* W10 as a property: load(dump(x)) is x, for random envelopes. */
#include "tests/unit/envelope/suites.h"
#include "tests/unit/envelope/world.h"

#include <stdlib.h>

#define SEEDS_PER_ROUND 50

static void check_one(uint64_t seed)
{
    const struct rv_json_opts opts = {.max_bytes = RV_STATE_MAX_BYTES, .max_depth = RV_STATE_MAX_DEPTH};
    rv_envelope *env = random_envelope(seed);
    char *first = world_state(env);
    json_object *state = NULL;
    rv_envelope *loaded = NULL;
    rv_err *err = NULL;
    char *second;
    int rc;

    OK(rv_json_parse(rv_str_of(first), &opts, &state, NULL));
    rc = rv_envelope_load(state, world_rand(), T0, &loaded, &err);
    ck_assert_msg(rc == 0, "seed %d: %s", (int)seed, rv_err_text(err));
    second = world_state(loaded);
    ck_assert_str_eq(first, second);
    free(first);
    free(second);
    json_object_put(state);
    rv_envelope_free(env);
    rv_envelope_free(loaded);
}

/* Proves 3.11.round_trip, W10 */
START_TEST(w10_what_is_loaded_dumps_to_the_same_bytes)
{
    for (uint64_t i = 0; i < SEEDS_PER_ROUND; i++)
        check_one((uint64_t)_i * SEEDS_PER_ROUND + i);
}
END_TEST

/* Rule 11.2 needs that a run which was saved and loaded goes on as one that was not: in the same order, too. */
/* Proves 11.2: A loaded envelope goes on, order included, as the one it was saved from */
START_TEST(rule_11_2_a_loaded_envelope_goes_on_as_the_one_it_was_saved_from)
{
    rv_envelope *env = random_envelope((uint64_t)_i);
    json_object *state = world_state_json(env);
    rv_envelope *both[2] = {env, NULL};
    char *texts[2];

    OK(rv_envelope_load(state, world_rand(), T0, &both[1], NULL));
    for (size_t i = 0; i < 2; i++) {
        world_set_output(both[i], "plan", "{'again':1}");
        world_set_output(both[i], "new", "{}");
        OK(rv_envelope_start_stage(both[i], S("plan"), NULL));
        OK(rv_envelope_complete_stage(both[i], S("act"), NULL));
        OK(rv_envelope_note_passage(both[i], S("act"), S("plan"), NULL, NULL));
        OK(rv_envelope_record_start(both[i], S("act"), 1, T0, NULL));
        OK(rv_envelope_increment_iteration(both[i], S("f"), NULL, NULL));
        texts[i] = world_state(both[i]);
    }
    ck_assert_str_eq(texts[0], texts[1]);
    for (size_t i = 0; i < 2; i++) {
        free(texts[i]);
        rv_envelope_free(both[i]);
    }
    json_object_put(state);
}
END_TEST

TCase *state_random_case(void)
{
    TCase *tc = tcase_create("state_random");

    tcase_add_loop_test(tc, w10_what_is_loaded_dumps_to_the_same_bytes, 0, 20);
    tcase_add_loop_test(tc, rule_11_2_a_loaded_envelope_goes_on_as_the_one_it_was_saved_from, 0, 100);
    return tc;
}
