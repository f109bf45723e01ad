/* Rule 3.2: outputs and stage sets; metadata, state and suspended work; edges (W22). */
#include "tests/unit/envelope/suites.h"
#include "tests/unit/envelope/world.h"

#include <stdio.h>
#include <string.h>

/* Proves 3.2.get_output: The object, or null when absent
 * Proves 3.2.set_output: Replaces what was there */
START_TEST(rule_3_2_an_output_can_be_set_replaced_and_removed)
{
    rv_envelope *env = world_fresh();
    bool found = true;

    ck_assert_ptr_null(rv_envelope_output(env, S("plan"), &found));
    ck_assert(!found);
    world_set_output(env, "plan", "{'a':1}");
    world_set_output(env, "other", "{}");
    world_set_output(env, "plan", "{'b':2}");
    ck_assert_uint_eq(rv_envelope_n_outputs(env), 2);
    world_expect(env, "outputs", "{'plan':{'b':2},'other':{}}");
    OK(rv_envelope_remove_output(env, S("plan"), NULL));
    OK(rv_envelope_remove_output(env, S("never"), NULL));
    world_expect(env, "outputs", "{'other':{}}");
    world_set_output(env, "plan", "{'c':3}"); /* comes last now, as in a state that was loaded in between */
    world_expect(env, "outputs", "{'other':{},'plan':{'c':3}}");
    rv_envelope_free(env);
}
END_TEST

/* Proves 3.2.has_output: A key with a null object exists */
START_TEST(rule_3_2_a_null_output_exists)
{
    rv_envelope *env = world_fresh();
    bool found = false;

    OK(rv_envelope_set_output(env, S("plan"), NULL, NULL));
    ck_assert_ptr_null(rv_envelope_output(env, S("plan"), &found));
    ck_assert(found);
    world_expect(env, "outputs", "{'plan':null}");
    rv_envelope_free(env);
}
END_TEST

START_TEST(an_output_is_an_object_under_a_key_that_json_can_hold)
{
    rv_envelope *env = world_fresh();
    json_object *list = rv_kit_json("[1]");
    json_object *obj = rv_kit_json("{}");

    ck_assert_int_eq(rv_envelope_set_output(env, S("a"), list, NULL), RV_E_INVALID);
    ck_assert_int_eq(rv_envelope_set_output(env, S("a\0b"), obj, NULL), RV_E_INVALID);
    ck_assert_int_eq(rv_envelope_set_output(env, S("\xfe"), obj, NULL), RV_E_INVALID);
    ck_assert_uint_eq(rv_envelope_n_outputs(env), 0);
    json_object_put(list);
    json_object_put(obj);
    rv_envelope_free(env);
}
END_TEST

START_TEST(all_outputs_come_as_one_object_in_insertion_order)
{
    rv_envelope *env = world_fresh();
    json_object *all = NULL;

    world_set_output(env, "z", "{'n':1}");
    world_set_output(env, "a", "{'n':2}");
    OK(rv_envelope_build_outputs(env, &all, NULL));
    rv_envelope_free(env);
    ck_assert_str_eq(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PLAIN), "{\"z\":{\"n\":1},\"a\":{\"n\":2}}");
    json_object_put(all);
}
END_TEST

START_TEST(metadata_and_suspended_work_are_kept_by_key)
{
    rv_envelope *env = world_fresh();
    json_object *work = rv_kit_json("{'done':2}");
    json_object *all = NULL;

    world_set_metadata(env, "k", "[1,null]");
    world_set_metadata(env, "n", "null");
    OK(rv_envelope_set_suspended(env, S("act"), work, NULL));
    ck_assert_ptr_eq(rv_envelope_suspended(env, S("act")), work);
    ck_assert_ptr_null(rv_envelope_suspended(env, S("other")));
    json_object_put(work);
    world_expect(env, "metadata", "{'k':[1,null],'n':null}");
    world_expect(env, "suspended", "{'act':{'done':2}}");
    OK(rv_envelope_build_metadata(env, &all, NULL));
    ck_assert_int_eq(json_object_object_length(all), 2);
    json_object_put(all);
    OK(rv_envelope_set_suspended(env, S("act"), NULL, NULL));
    OK(rv_envelope_set_suspended(env, S("unknown"), NULL, NULL));
    world_expect(env, "suspended", "{}");
    rv_envelope_free(env);
}
END_TEST

static const struct {
    const char *old; /* NULL: absent */
    enum rv_merge_mode how;
    const char *value, *want;
} merges[] = {
    {NULL, RV_MERGE_REPLACE, "{'a':1}", "{'a':1}"},
    {"{'a':1}", RV_MERGE_REPLACE, "{'b':2}", "{'b':2}"},
    {NULL, RV_MERGE_APPEND, "1", "[1]"},
    {"[1]", RV_MERGE_APPEND, "[2]", "[1,[2]]"},
    {"{'a':1}", RV_MERGE_APPEND, "2", "[{'a':1},2]"},
    {"null", RV_MERGE_APPEND, "2", "[null,2]"},
    {NULL, RV_MERGE_DICT, "{'a':1}", "{'a':1}"},
    {"{'a':1,'b':1}", RV_MERGE_DICT, "{'b':{'x':1},'c':3}", "{'a':1,'b':{'x':1},'c':3}"},
    {"{'a':1}", RV_MERGE_DICT, "7", "7"},
    {"[1]", RV_MERGE_DICT, "{'a':1}", "{'a':1}"},
};

START_TEST(state_values_merge_by_their_rule)
{
    rv_envelope *env = world_fresh();
    json_object *value = rv_kit_json(merges[_i].value);
    char want[128];

    if (merges[_i].old) {
        json_object *old = rv_kit_json(merges[_i].old);

        OK(rv_envelope_merge_state(env, S("k"), RV_MERGE_REPLACE, old, NULL));
        json_object_put(old);
    }
    OK(rv_envelope_merge_state(env, S("k"), merges[_i].how, value, NULL));
    (void)snprintf(want, sizeof want, "{'k':%s}", merges[_i].want);
    world_expect(env, "state", want);
    json_object_put(value);
    rv_envelope_free(env);
}
END_TEST

START_TEST(a_value_can_be_looked_up_by_key)
{
    rv_envelope *env = world_load("{'metadata':{'n':null,'k':7},'state':{'n':null,'k':[1]}}");
    json_object *all = NULL;
    bool found = false;

    ck_assert_int_eq(json_object_get_int(rv_envelope_metadata(env, S("k"), &found)), 7);
    ck_assert(found);
    ck_assert_ptr_null(rv_envelope_metadata(env, S("n"), &found));
    ck_assert(found);
    ck_assert_ptr_null(rv_envelope_metadata(env, S("x"), &found));
    ck_assert(!found);
    ck_assert_uint_eq(json_object_array_length(rv_envelope_state_value(env, S("k"), &found)), 1);
    ck_assert_ptr_null(rv_envelope_state_value(env, S("x"), &found));
    ck_assert(!found);
    OK(rv_envelope_build_state(env, &all, NULL));
    ck_assert_int_eq(json_object_object_length(all), 2);
    json_object_put(all);
    rv_envelope_free(env);
}
END_TEST

START_TEST(the_number_of_different_keys_has_a_limit) /* keys come from models and hooks */
{
    rv_envelope *env = world_fresh();
    char key[32];
    int rc = 0;
    int n = 0;

    for (; rc == 0 && n < 1 << 20; n++) {
        (void)snprintf(key, sizeof key, "k%d", n);
        rc = rv_envelope_set_metadata(env, rv_str_of(key), NULL, NULL);
    }
    ck_assert_int_eq(rc, RV_E_LIMIT);
    ck_assert_int_gt(n, 1 << 17);
    OK(rv_envelope_set_metadata(env, S("k1"), NULL, NULL)); /* known ones go on working */
    rv_envelope_free(env);
}
END_TEST

/* Proves 3.2.start_stage: Adds to active_stages; removes from completed and failed
 * Proves 3.2.complete_stage: Adds to completed_stage_set; removes from active and failed
 * Proves 3.2.fail_stage: Keeps the text in failed_stages; removes from active and completed
 * Proves 3.2.membership: Unknown stages are in no set; a set has a stage once */
START_TEST(rule_3_2_a_stage_is_in_one_set_at_a_time)
{
    rv_envelope *env = world_fresh();

    world_expect(env, "active_stages", "{}");
    OK(rv_envelope_start_stage(env, S("a"), NULL));
    world_expect(env, "active_stages", "{'a':true}");
    OK(rv_envelope_complete_stage(env, S("a"), NULL));
    ck_assert(rv_envelope_is_completed(env, S("a")));
    world_expect(env, "active_stages", "{}");
    OK(rv_envelope_fail_stage(env, S("a"), S("why"), NULL));
    ck_assert(rv_envelope_is_failed(env, S("a")) && !rv_envelope_is_completed(env, S("a")));
    world_expect(env, "failed_stages", "{'a':'why'}");
    OK(rv_envelope_complete_stage(env, S("a"), NULL));
    ck_assert(!rv_envelope_is_failed(env, S("a")) && rv_envelope_is_completed(env, S("a")));
    OK(rv_envelope_fail_stage(env, S("a"), S("again"), NULL));
    OK(rv_envelope_start_stage(env, S("a"), NULL));
    world_expect(env, "active_stages", "{'a':true}");
    world_expect(env, "completed_stage_set", "{}");
    world_expect(env, "failed_stages", "{}");
    rv_envelope_free(env);
}
END_TEST

START_TEST(a_paused_stage_is_in_no_set)
{
    rv_envelope *env = world_fresh();

    OK(rv_envelope_start_stage(env, S("a"), NULL));
    OK(rv_envelope_pause_stage(env, S("a"), NULL));
    OK(rv_envelope_pause_stage(env, S("never"), NULL));
    ck_assert(!rv_envelope_is_completed(env, S("a")) && !rv_envelope_is_failed(env, S("a")));
    world_expect(env, "active_stages", "{}");
    rv_envelope_free(env);
}
END_TEST

/* Proves 3.2.all_complete: False without a stage order, else every stage of it is completed */
START_TEST(rule_3_2_all_are_completed_when_each_of_the_order_is)
{
    static const char *const order[] = {"a", "b"};
    rv_envelope *env = world_fresh();

    ck_assert(!rv_envelope_has_all_completed(env)); /* no stages at all */
    OK(rv_envelope_set_stage_order(env, order, 2, NULL));
    OK(rv_envelope_complete_stage(env, S("a"), NULL));
    OK(rv_envelope_complete_stage(env, S("x"), NULL));
    ck_assert(!rv_envelope_has_all_completed(env));
    OK(rv_envelope_complete_stage(env, S("b"), NULL));
    ck_assert(rv_envelope_has_all_completed(env));
    rv_envelope_free(env);
}
END_TEST

START_TEST(a_failure_text_that_is_not_utf_8_is_kept_readable)
{
    rv_envelope *env = world_fresh();

    OK(rv_envelope_fail_stage(env, S("a"), S("bad \xff\xfe byte"), NULL));
    world_expect(env, "failed_stages", "{'a':'bad \\ufffd\\ufffd byte'}");
    rv_envelope_free(env);
}
END_TEST

/* Proves W22: Edge counts live in the envelope, keyed by pair, and survive a save. Edge limits are keyed by the
 * pair of stages, never by joined text */
START_TEST(w22_edges_are_counted_by_pair)
{
    rv_envelope *env = world_fresh();
    int64_t n = 0;

    ck_assert_int_eq(rv_envelope_passages(env, S("a"), S("b")), 0);
    OK(rv_envelope_note_passage(env, S("a"), S("b"), &n, NULL));
    ck_assert_int_eq(n, 1);
    OK(rv_envelope_note_passage(env, S("b"), S("a"), NULL, NULL));
    OK(rv_envelope_note_passage(env, S("a"), S("a"), NULL, NULL));
    OK(rv_envelope_note_passage(env, S("a"), S("b"), &n, NULL));
    ck_assert_int_eq(n, 2);
    /* Joined texts would collide here. */
    OK(rv_envelope_note_passage(env, S("a->b"), S("c"), NULL, NULL));
    ck_assert_int_eq(rv_envelope_passages(env, S("a"), S("b->c")), 0);
    ck_assert_int_eq(rv_envelope_passages(env, S("b"), S("a")), 1);
    world_expect(env, "edge_traversals",
                 "[{'from':'a','to':'b','count':2},{'from':'b','to':'a','count':1},{'from':'a','to':'a','count':1},"
                 "{'from':'a->b','to':'c','count':1}]");
    rv_envelope_free(env);
}
END_TEST

START_TEST(many_keys_come_and_go_in_order)
{
    rv_envelope *env = world_fresh();
    char key[32];

    for (int i = 0; i < 2000; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        world_set_output(env, key, "{}");
        if (i % 3 != 0)
            OK(rv_envelope_remove_output(env, rv_str_of(key), NULL));
    }
    ck_assert_uint_eq(rv_envelope_n_outputs(env), 667);
    for (int i = 0; i < 2000; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        ck_assert_int_eq(world_has_output(env, key), i % 3 == 0);
    }
    for (int round = 0; round < 5000; round++) {
        OK(rv_envelope_start_stage(env, S("a"), NULL));
        OK(rv_envelope_complete_stage(env, S("a"), NULL));
    }
    world_expect(env, "completed_stage_set", "{'a':true}");
    rv_envelope_free(env);
}
END_TEST

TCase *values_case(void)
{
    TCase *tc = tcase_create("values");

    tcase_add_test(tc, rule_3_2_an_output_can_be_set_replaced_and_removed);
    tcase_add_test(tc, rule_3_2_a_null_output_exists);
    tcase_add_test(tc, an_output_is_an_object_under_a_key_that_json_can_hold);
    tcase_add_test(tc, all_outputs_come_as_one_object_in_insertion_order);
    tcase_add_test(tc, metadata_and_suspended_work_are_kept_by_key);
    tcase_add_loop_test(tc, state_values_merge_by_their_rule, 0, RV_COUNT(merges));
    tcase_add_test(tc, rule_3_2_a_stage_is_in_one_set_at_a_time);
    tcase_add_test(tc, a_paused_stage_is_in_no_set);
    tcase_add_test(tc, a_value_can_be_looked_up_by_key);
    tcase_add_test(tc, the_number_of_different_keys_has_a_limit);
    tcase_add_test(tc, rule_3_2_all_are_completed_when_each_of_the_order_is);
    tcase_add_test(tc, a_failure_text_that_is_not_utf_8_is_kept_readable);
    tcase_add_test(tc, w22_edges_are_counted_by_pair);
    tcase_add_test(tc, many_keys_come_and_go_in_order);
    return tc;
}
