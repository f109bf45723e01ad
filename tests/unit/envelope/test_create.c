/* Rules 3.1 (fields, defaults, creation) and 3.12 (clone), W15. */
#include "tests/unit/envelope/suites.h"
#include "tests/unit/envelope/world.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *key, *want;
} defaults[] = {
    {"state_version", "1"},
    {"user_id", "'anonymous'"},
    {"raw_input", "''"},
    {"received_at", "'2025-11-24T16:00:00.123456Z'"},
    {"outputs", "{}"},
    {"current_stage", "'start'"},
    {"stage_order", "[]"},
    {"iteration", "0"},
    {"max_iterations", "3"},
    {"active_stages", "{}"},
    {"completed_stage_set", "{}"},
    {"failed_stages", "{}"},
    {"parallel_mode", "false"},
    {"llm_call_count", "0"},
    {"max_llm_calls", "10"},
    {"agent_hop_count", "0"},
    {"max_agent_hops", "21"},
    {"terminal_reason", "null"},
    {"terminated", "false"},
    {"termination_reason", "null"},
    {"interrupt_pending", "false"},
    {"interrupt", "null"},
    {"completed_stages", "[]"},
    {"current_stage_number", "1"},
    {"max_stages", "5"},
    {"all_goals", "[]"},
    {"remaining_goals", "[]"},
    {"goal_completion_status", "{}"},
    {"prior_plans", "[]"},
    {"loop_feedback", "[]"},
    {"processing_history", "[]"},
    {"errors", "[]"},
    {"created_at", "'2025-11-24T16:00:00.123456Z'"},
    {"completed_at", "null"},
    {"metadata", "{}"},
    {"edge_traversals", "[]"},
    {"status", "'ready'"},
    {"state", "{}"},
    {"stage_visits", "{}"},
    {"suspended", "{}"},
};

/* Proves 3.1.user_id: Field `user_id` is in the state dict; default `anonymous`
 * Proves 3.1.raw_input: Field `raw_input` is in the state dict; default empty
 * Proves 3.1.received_at: Field `received_at` is in the state dict; default now
 * Proves 3.1.outputs: Field `outputs` is in the state dict; default empty
 * Proves 3.1.current_stage: Field `current_stage` is in the state dict; default `start`
 * Proves 3.1.stage_order: Field `stage_order` is in the state dict; default empty
 * Proves 3.1.iteration: Field `iteration` is in the state dict; default 0
 * Proves 3.1.max_iterations: Field `max_iterations` is in the state dict; default 3
 * Proves 3.1.active_stages: Field `active_stages` is in the state dict; default empty
 * Proves 3.1.completed_stage_set: Field `completed_stage_set` is in the state dict; default empty
 * Proves 3.1.failed_stages: Field `failed_stages` is in the state dict; default empty
 * Proves 3.1.parallel_mode: Field `parallel_mode` is in the state dict; default false
 * Proves 3.1.llm_call_count: Field `llm_call_count` is in the state dict; default 0
 * Proves 3.1.max_llm_calls: Field `max_llm_calls` is in the state dict; default 10
 * Proves 3.1.agent_hop_count: Field `agent_hop_count` is in the state dict; default 0
 * Proves 3.1.max_agent_hops: Field `max_agent_hops` is in the state dict; default 21
 * Proves 3.1.terminal_reason: Field `terminal_reason` is in the state dict; default null
 * Proves 3.1.terminated: Field `terminated` is in the state dict; default false
 * Proves 3.1.termination_reason: Field `termination_reason` is in the state dict; default null
 * Proves 3.1.interrupt_pending: Field `interrupt_pending` is in the state dict; default false
 * Proves 3.1.interrupt: Field `interrupt` is in the state dict; default null
 * Proves 3.1.completed_stages: Field `completed_stages` is in the state dict; default empty
 * Proves 3.1.current_stage_number: Field `current_stage_number` is in the state dict; default 1
 * Proves 3.1.max_stages: Field `max_stages` is in the state dict; default 5
 * Proves 3.1.all_goals: Field `all_goals` is in the state dict; default empty
 * Proves 3.1.remaining_goals: Field `remaining_goals` is in the state dict; default empty
 * Proves 3.1.goal_completion_status: Field `goal_completion_status` is in the state dict; default empty
 * Proves 3.1.prior_plans: Field `prior_plans` is in the state dict; default empty
 * Proves 3.1.loop_feedback: Field `loop_feedback` is in the state dict; default empty
 * Proves 3.1.processing_history: Field `processing_history` is in the state dict; default empty
 * Proves 3.1.errors: Field `errors` is in the state dict; default empty
 * Proves 3.1.created_at: Field `created_at` is in the state dict; default now
 * Proves 3.1.completed_at: Field `completed_at` is in the state dict; default null
 * Proves 3.1.metadata: Field `metadata` is in the state dict; default empty
 * Proves 3.1.edge_traversals: Field `edge_traversals` is in the state dict; default empty list of {from, to, count}
 * Proves 3.1.state_version: Field `state_version` is in the state dict; default 1
 * Proves 3.1.status: Field `status` is in the state dict; default `ready`
 * Proves 3.1.state: Field `state` is in the state dict; default empty
 * Proves 3.1.stage_visits: Field `stage_visits` is in the state dict; default empty
 * Proves 3.1.suspended: Field `suspended` is in the state dict; default empty */
START_TEST(rule_3_1_defaults)
{
    rv_envelope *env = world_fresh();

    world_expect(env, defaults[_i].key, defaults[_i].want);
    rv_envelope_free(env);
}
END_TEST

/* Proves 3.1.keys: The state dict has these keys and no others */
START_TEST(rule_3_1_the_state_has_no_other_keys)
{
    rv_envelope *env = world_fresh();
    json_object *state = world_state_json(env);

    /* + envelope_id, request_id, session_id, which are random */
    ck_assert_int_eq(json_object_object_length(state), (int)RV_COUNT(defaults) + 3);
    json_object_put(state);
    rv_envelope_free(env);
}
END_TEST

static void check_id(const char *id, const char *prefix)
{
    size_t n = strlen(prefix);

    ck_assert_int_eq(strncmp(id, prefix, n), 0);
    ck_assert_uint_eq(strlen(id), n + 16);
    ck_assert_uint_eq(strspn(id + n, "0123456789abcdef"), 16);
}

/* Proves 3.1.envelope_id: Field `envelope_id` is in the state dict; default `env_` and 16 hex characters
 * Proves 3.1.request_id: Field `request_id` is in the state dict; default `req_` and 16 hex characters
 * Proves 3.1.session_id: Field `session_id` is in the state dict; default `sess_` and 16 hex characters */
START_TEST(rule_3_1_ids_have_a_prefix_and_16_hex_characters)
{
    rv_envelope *env = world_fresh();
    const struct rv_envelope_fields *f = rv_envelope_fields(env);

    check_id(f->envelope_id, "env_");
    check_id(f->request_id, "req_");
    check_id(f->session_id, "sess_");
    ck_assert_str_ne(f->envelope_id + 4, f->request_id + 4);
    rv_envelope_free(env);
}
END_TEST

/* Proves 3.1.create: Given values replace the defaults; empty user, session and request ids keep them */
START_TEST(rule_3_1_given_values_replace_the_defaults)
{
    json_object *metadata = rv_kit_json("{'a':[1,2.50]}");
    json_object *order = rv_kit_json("['plan','act']");
    struct rv_envelope_seed seed = {S("hi\0there"), S("u1"), S("s1"), S("r1"), metadata, order, S("e1")};
    rv_envelope *env = NULL;
    const struct rv_envelope_fields *f;

    OK(rv_envelope_new(&seed, world_rand(), T0, &env, NULL));
    json_object_object_add(metadata, "later", json_object_new_int(1));
    json_object_put(metadata);
    json_object_put(order);
    f = rv_envelope_fields(env);
    ck_assert_uint_eq(f->raw_input_len, 8);
    ck_assert_int_eq(memcmp(f->raw_input, "hi\0there", 9), 0);
    ck_assert_str_eq(f->user_id, "u1");
    ck_assert_str_eq(f->session_id, "s1");
    ck_assert_str_eq(f->request_id, "r1");
    ck_assert_str_eq(f->envelope_id, "e1");
    world_expect(env, "raw_input", "'hi\\u0000there'");
    world_expect(env, "metadata", "{'a':[1,2.50]}");
    world_expect(env, "stage_order", "['plan','act']");
    rv_envelope_free(env);
}
END_TEST

/* Proves 3.1.create */
START_TEST(rule_3_1_empty_user_and_session_keep_their_defaults)
{
    struct rv_envelope_seed seed = {.raw_input = S("x"), .user_id = S(""), .session_id = S("")};
    rv_envelope *env = NULL;

    OK(rv_envelope_new(&seed, world_rand(), T0, &env, NULL));
    ck_assert_str_eq(rv_envelope_fields(env)->user_id, "anonymous");
    check_id(rv_envelope_fields(env)->session_id, "sess_");
    check_id(rv_envelope_fields(env)->request_id, "req_");
    rv_envelope_free(env);
}
END_TEST

static const struct {
    rv_str raw_input, user_id;
    const char *metadata, *stage_order;
} refused[] = {
    {RV_STR_LIT("a\xff"), {NULL, 0}, NULL, NULL}, {{NULL, 0}, RV_STR_LIT("\xc0\x80"), NULL, NULL},
    {{NULL, 0}, {NULL, 0}, "[]", NULL},           {{NULL, 0}, {NULL, 0}, NULL, "{}"},
    {{NULL, 0}, {NULL, 0}, NULL, "['a',1]"},
};

/* Proves 11.6: Input that is not UTF-8 is refused at the border. UTF-8 in and out: replies, descriptors and file
 * names that are not UTF-8 are refused or passed over */
START_TEST(rule_11_6_bad_input_is_refused_at_the_border)
{
    struct rv_envelope_seed seed = {.raw_input = refused[_i].raw_input, .user_id = refused[_i].user_id};
    rv_envelope *env = NULL;

    if (refused[_i].metadata)
        seed.metadata = rv_kit_json(refused[_i].metadata);
    if (refused[_i].stage_order)
        seed.stage_order = rv_kit_json(refused[_i].stage_order);
    ck_assert_int_eq(rv_envelope_new(&seed, world_rand(), T0, &env, NULL), RV_E_INVALID);
    ck_assert_ptr_null(env);
    json_object_put(seed.metadata);
    json_object_put(seed.stage_order);
}
END_TEST

START_TEST(a_time_that_rfc_3339_can_not_write_is_clamped)
{
    static const int64_t times[] = {INT64_MIN, INT64_MAX};
    static const char *const want[] = {"'0001-01-01T00:00:00.000000Z'", "'9999-12-31T23:59:59.999999Z'"};
    struct rv_interrupt_spec spec = {.kind = RV_INTERRUPT_TIMEOUT, .id = S("i"), .ttl_us = INT64_MAX};
    rv_envelope *env = NULL;

    OK(rv_envelope_new(NULL, world_rand(), times[_i], &env, NULL));
    world_expect(env, "created_at", want[_i]);
    OK(rv_envelope_raise(env, &spec, times[_i], NULL));
    ck_assert_int_eq(rv_envelope_interrupt(env).expires_at_us, INT64_C(253402300799999999));
    rv_envelope_free(env);
}
END_TEST

START_TEST(setters_change_what_they_name)
{
    static const char *const order[] = {"a", "b"};
    static const char *const not_utf_8[] = {"\xff"};
    rv_envelope *env = world_fresh();

    OK(rv_envelope_set_stage(env, S("plan"), NULL));
    OK(rv_envelope_set_stage_order(env, order, 2, NULL));
    rv_envelope_set_bounds(env, 1, 2, -5);
    rv_envelope_set_parallel(env, true);
    rv_envelope_set_status(env, RV_RUN_FAILED);
    world_expect(env, "current_stage", "'plan'");
    world_expect(env, "stage_order", "['a','b']");
    world_expect(env, "max_iterations", "1");
    world_expect(env, "max_llm_calls", "2");
    world_expect(env, "max_agent_hops", "0");
    world_expect(env, "parallel_mode", "true");
    world_expect(env, "status", "'failed'");
    ck_assert_uint_eq(json_object_array_length(rv_envelope_stage_order(env)), 2);
    ck_assert_int_eq(rv_envelope_set_stage_order(env, not_utf_8, 1, NULL), RV_E_INVALID);
    ck_assert_uint_eq(json_object_array_length(rv_envelope_stage_order(env)), 2);
    ck_assert_int_eq(rv_envelope_set_stage(env, S(""), NULL), RV_E_INVALID);
    ck_assert_int_eq(rv_envelope_set_stage(env, S("a\0b"), NULL), RV_E_INVALID);
    ck_assert_int_eq(rv_envelope_set_stage(env, S("\xff"), NULL), RV_E_INVALID);
    ck_assert_str_eq(rv_envelope_fields(env)->current_stage, "plan");
    rv_envelope_free(env);
}
END_TEST

/* Proves 3.12: A clone is equal, has the same ids and shares nothing */
START_TEST(rule_3_12_a_copy_is_equal_with_the_same_ids)
{
    rv_envelope *env = random_envelope((uint64_t)_i);
    rv_envelope *copy = NULL;
    char *a = world_state(env);
    char *b;

    OK(rv_envelope_dup(env, &copy, NULL));
    b = world_state(copy);
    ck_assert_str_eq(a, b);
    free(a);
    free(b);
    rv_envelope_free(env);
    rv_envelope_free(copy);
}
END_TEST

/* Proves W15: A clone shares no list of objects
 * Proves 3.12 */
START_TEST(rule_3_12_a_copy_shares_nothing) /* W15: not even lists of objects inside outputs */
{
    rv_envelope *env = world_fresh();
    rv_envelope *copy = NULL;
    char *before;
    char *after;

    world_set_output(env, "plan", "{'steps':[{'tool':'a'}]}");
    OK(rv_envelope_dup(env, &copy, NULL));
    ck_assert_ptr_ne(rv_envelope_output(env, S("plan"), NULL), rv_envelope_output(copy, S("plan"), NULL));
    before = world_state(copy);
    world_set_output(env, "plan", "{}");
    OK(rv_envelope_record_start(env, S("a"), 1, T0, NULL));
    OK(rv_envelope_add_feedback(env, S("f"), NULL));
    OK(rv_envelope_set_stage(env, S("other"), NULL));
    rv_envelope_free(env);
    after = world_state(copy);
    ck_assert_str_eq(before, after);
    free(before);
    free(after);
    rv_envelope_free(copy);
}
END_TEST

TCase *create_case(void)
{
    TCase *tc = tcase_create("create");

    tcase_add_loop_test(tc, rule_3_1_defaults, 0, RV_COUNT(defaults));
    tcase_add_test(tc, rule_3_1_the_state_has_no_other_keys);
    tcase_add_test(tc, rule_3_1_ids_have_a_prefix_and_16_hex_characters);
    tcase_add_test(tc, rule_3_1_given_values_replace_the_defaults);
    tcase_add_test(tc, rule_3_1_empty_user_and_session_keep_their_defaults);
    tcase_add_loop_test(tc, rule_11_6_bad_input_is_refused_at_the_border, 0, RV_COUNT(refused));
    tcase_add_loop_test(tc, a_time_that_rfc_3339_can_not_write_is_clamped, 0, 2);
    tcase_add_test(tc, setters_change_what_they_name);
    tcase_add_loop_test(tc, rule_3_12_a_copy_is_equal_with_the_same_ids, 0, 20);
    tcase_add_test(tc, rule_3_12_a_copy_shares_nothing);
    return tc;
}
