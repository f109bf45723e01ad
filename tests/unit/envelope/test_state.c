/* Rule 3.11: the state dict, W10. */
#include "tests/unit/envelope/suites.h"
#include "tests/unit/envelope/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every field of 3.1 with a value that is not its default, as the writer writes it. */
static const char full[] =
    "{\"state_version\":1,\"envelope_id\":\"e\",\"request_id\":\"r\",\"user_id\":\"u\",\"session_id\":\"s\","
    "\"raw_input\":\"in\\u0000put\",\"received_at\":\"2025-01-02T03:04:05.000006Z\","
    "\"outputs\":{\"plan\":{\"n\":1,\"f\":1.0,\"e\":1e2},\"none\":null},\"current_stage\":\"act\","
    "\"stage_order\":[\"plan\",\"act\"],\"iteration\":1,\"max_iterations\":7,\"active_stages\":{\"act\":true},"
    "\"completed_stage_set\":{\"plan\":true},\"failed_stages\":{\"x\":\"why\"},\"parallel_mode\":true,"
    "\"llm_call_count\":2,\"max_llm_calls\":8,\"agent_hop_count\":3,\"max_agent_hops\":9,"
    "\"terminal_reason\":\"policy_violation\",\"terminated\":true,\"termination_reason\":\"text\","
    "\"interrupt_pending\":true,\"interrupt\":{\"kind\":\"confirmation\",\"id\":\"i\",\"question\":\"q\",\"message\":"
    "\"m\","
    "\"data\":{\"d\":[]},\"created_at\":\"2025-01-02T03:04:05.000007Z\",\"expires_at\":\"2025-01-02T03:04:05.000008Z\","
    "\"response\":{\"received_at\":\"2025-01-02T03:04:05.000009Z\",\"text\":\"t\",\"approved\":true,"
    "\"decision\":\"approve\",\"data\":[1]}},"
    "\"completed_stages\":[{\"stage_number\":1}],\"current_stage_number\":2,\"max_stages\":6,"
    "\"all_goals\":[\"g\",\"h\"],\"remaining_goals\":[\"h\"],\"goal_completion_status\":{\"g\":\"satisfied\"},"
    "\"prior_plans\":[{\"p\":1}],\"loop_feedback\":[\"f\"],"
    "\"processing_history\":[{\"agent\":\"plan\",\"stage_order\":1,\"started_at\":\"2025-01-02T03:04:05.000010Z\","
    "\"completed_at\":\"2025-01-02T03:04:05.000011Z\",\"duration_ms\":4,\"status\":\"error\",\"error\":\"boom\","
    "\"llm_calls\":1},{\"agent\":\"act\",\"stage_order\":2,\"started_at\":\"2025-01-02T03:04:05.000012Z\","
    "\"duration_ms\":0,\"status\":\"running\",\"llm_calls\":0}],"
    "\"errors\":[{\"agent\":\"plan\"}],\"created_at\":\"2025-01-02T03:04:05.000013Z\","
    "\"completed_at\":\"2025-01-02T03:04:05.000014Z\",\"metadata\":{\"k\":null},"
    "\"edge_traversals\":[{\"from\":\"plan\",\"to\":\"act\",\"count\":5}],\"status\":\"interrupted\","
    "\"state\":{\"list\":[1]},\"stage_visits\":{\"plan\":2,\"act\":1},\"suspended\":{\"act\":{\"done\":1}}}";

/* Proves 3.11.round_trip: Loading a dump gives the same envelope, field by field and byte by byte
 * Proves W10: The state is complete and versioned; load(dump(x)) is x, with microseconds
 * Proves W22 */
START_TEST(w10_every_field_survives_a_round_trip)
{
    rv_envelope *env = world_load(full);
    char *text = world_state(env);

    ck_assert_str_eq(text, full);
    ck_assert_int_eq(rv_envelope_visits(env, S("plan")), 2);
    ck_assert_int_eq(rv_envelope_passages(env, S("plan"), S("act")), 5);
    ck_assert_uint_eq(rv_envelope_fields(env)->raw_input_len, 6);
    free(text);
    rv_envelope_free(env);
}
END_TEST

/* Proves 3.11.partial: Absent keys keep defaults, unknown keys are ignored */
START_TEST(rule_3_11_a_partial_state_keeps_defaults_for_the_rest)
{
    rv_envelope *env = world_load("{'raw_input':'x','unknown_key':[1],'metadata':{'a':1}}");

    ck_assert_str_eq(rv_envelope_fields(env)->raw_input, "x");
    ck_assert_str_eq(rv_envelope_fields(env)->user_id, "anonymous");
    world_expect(env, "max_agent_hops", "21");
    world_expect(env, "metadata", "{'a':1}");
    world_expect(env, "unknown_key", NULL);
    rv_envelope_free(env);
    env = world_load("{}");
    ck_assert_int_eq(strncmp(rv_envelope_fields(env)->envelope_id, "env_", 4), 0);
    rv_envelope_free(env);
}
END_TEST

/* Proves 3.11.numbers: Counters arrive as integers or as whole floats; 3.5, negative and oversized ones are refused */
START_TEST(rule_3_11_numbers_may_arrive_as_integer_or_float)
{
    rv_envelope *env = world_load("{'iteration':3.0,'llm_call_count':1e1,'max_stages':2,'state_version':1.0,"
                                  "'edge_traversals':[{'from':'a','to':'b','count':2.0}],'stage_visits':{'a':4.0}}");

    world_expect(env, "iteration", "3");
    world_expect(env, "llm_call_count", "10");
    world_expect(env, "max_stages", "2");
    world_expect(env, "edge_traversals", "[{'from':'a','to':'b','count':2}]");
    world_expect(env, "stage_visits", "{'a':4}");
    rv_envelope_free(env);
}
END_TEST

/* Proves 3.11.times: Times are RFC 3339; offsets are turned to UTC */
START_TEST(times_with_an_offset_are_written_in_utc)
{
    rv_envelope *env = world_load("{'created_at':'2025-01-01T01:00:00+02:00','completed_at':null,"
                                  "'received_at':'9999-12-31T23:59:59+10:00'}");
    char *first = world_state(env);
    rv_envelope *again;
    char *second;

    world_expect(env, "created_at", "'2024-12-31T23:00:00.000000Z'");
    again = world_load(first);
    second = world_state(again);
    ck_assert_str_eq(first, second);
    free(first);
    free(second);
    rv_envelope_free(env);
    rv_envelope_free(again);
}
END_TEST

static const struct {
    const char *state, *path; /* the message names this */
} wrong[] = {
    {"[]", "object"},
    {"'x'", "object"},
    {"null", "object"},
    {"{'state_version':'1'}", "state_version"},
    {"{'state_version':0}", "state_version"},
    {"{'state_version':1.5}", "state_version"},
    {"{'envelope_id':1}", "envelope_id"},
    {"{'request_id':null}", "request_id"},
    {"{'user_id':{}}", "user_id"},
    {"{'session_id':[]}", "session_id"},
    {"{'raw_input':null}", "raw_input"},
    {"{'received_at':5}", "received_at"},
    {"{'received_at':'yesterday'}", "received_at"},
    {"{'received_at':null}", "received_at"},
    {"{'outputs':[]}", "outputs"},
    {"{'outputs':{'plan':'text'}}", "outputs.plan"},
    {"{'current_stage':7}", "current_stage"},
    {"{'current_stage':''}", "current_stage"},
    {"{'current_stage':'a\\u0000b'}", "current_stage"},
    {"{'stage_order':{}}", "stage_order"},
    {"{'stage_order':['a',2]}", "stage_order[1]"},
    {"{'iteration':3.5}", "iteration"},
    {"{'iteration':-1}", "iteration"},
    {"{'iteration':'3'}", "iteration"},
    {"{'iteration':9007199254740992}", "iteration"},
    {"{'iteration':1e300}", "iteration"},
    {"{'max_iterations':true}", "max_iterations"},
    {"{'active_stages':['a']}", "active_stages"},
    {"{'active_stages':{'a':1}}", "active_stages.a"},
    {"{'completed_stage_set':{'a':null}}", "completed_stage_set.a"},
    {"{'failed_stages':{'a':true}}", "failed_stages.a"},
    {"{'parallel_mode':1}", "parallel_mode"},
    {"{'llm_call_count':-1}", "llm_call_count"},
    {"{'max_llm_calls':null}", "max_llm_calls"},
    {"{'agent_hop_count':18446744073709551615}", "agent_hop_count"},
    {"{'max_agent_hops':-5}", "max_agent_hops"},
    {"{'terminal_reason':'bored'}", "terminal_reason"},
    {"{'terminal_reason':3}", "terminal_reason"},
    {"{'terminated':'yes'}", "terminated"},
    {"{'termination_reason':1}", "termination_reason"},
    {"{'interrupt_pending':null}", "interrupt_pending"},
    {"{'interrupt':[]}", "interrupt"},
    {"{'interrupt':{}}", "interrupt.kind"},
    {"{'interrupt':{'kind':'panic','id':'i'}}", "interrupt.kind"},
    {"{'interrupt':{'kind':'timeout'}}", "interrupt.id"},
    {"{'interrupt':{'kind':'timeout','id':'i','question':1}}", "interrupt.question"},
    {"{'interrupt':{'kind':'timeout','id':'i','message':1}}", "interrupt.message"},
    {"{'interrupt':{'kind':'timeout','id':'i','data':[]}}", "interrupt.data"},
    {"{'interrupt':{'kind':'timeout','id':'i','created_at':1}}", "interrupt.created_at"},
    {"{'interrupt':{'kind':'timeout','id':'i','expires_at':'x'}}", "interrupt.expires_at"},
    {"{'interrupt':{'kind':'timeout','id':'i','response':1}}", "interrupt.response"},
    {"{'interrupt':{'kind':'timeout','id':'i','response':{'approved':'yes'}}}", "interrupt.response.approved"},
    {"{'interrupt':{'kind':'timeout','id':'i','response':{'text':1}}}", "interrupt.response.text"},
    {"{'interrupt':{'kind':'timeout','id':'i','response':{'received_at':1}}}", "interrupt.response.received_at"},
    {"{'completed_stages':[1]}", "completed_stages[0]"},
    {"{'current_stage_number':0.5}", "current_stage_number"},
    {"{'max_stages':[]}", "max_stages"},
    {"{'all_goals':[null]}", "all_goals[0]"},
    {"{'remaining_goals':'a'}", "remaining_goals"},
    {"{'goal_completion_status':{'g':1}}", "goal_completion_status.g"},
    {"{'prior_plans':[[]]}", "prior_plans[0]"},
    {"{'loop_feedback':[{}]}", "loop_feedback[0]"},
    {"{'processing_history':{}}", "processing_history"},
    {"{'processing_history':[1]}", "processing_history[0]"},
    {"{'processing_history':[{}]}", "processing_history[0].agent"},
    {"{'processing_history':[{'agent':'a','stage_order':'1'}]}", "processing_history[0].stage_order"},
    {"{'processing_history':[{'agent':'a','started_at':1}]}", "processing_history[0].started_at"},
    {"{'processing_history':[{'agent':'a','completed_at':1}]}", "processing_history[0].completed_at"},
    {"{'processing_history':[{'agent':'a'},{'agent':'a','duration_ms':-1}]}", "processing_history[1].duration_ms"},
    {"{'processing_history':[{'agent':'a','llm_calls':1.5}]}", "processing_history[0].llm_calls"},
    {"{'processing_history':[{'agent':'a','status':'odd'}]}", "processing_history[0].status"},
    {"{'processing_history':[{'agent':'a','status':1}]}", "processing_history[0].status"},
    {"{'processing_history':[{'agent':'a','error':1}]}", "processing_history[0].error"},
    {"{'errors':['x']}", "errors[0]"},
    {"{'created_at':[]}", "created_at"},
    {"{'completed_at':5}", "completed_at"},
    {"{'metadata':null}", "metadata"},
    {"{'edge_traversals':{}}", "edge_traversals"},
    {"{'edge_traversals':[1]}", "edge_traversals[0]"},
    {"{'edge_traversals':[{'to':'b','count':1}]}", "edge_traversals[0].from"},
    {"{'edge_traversals':[{'from':'a','count':1}]}", "edge_traversals[0].to"},
    {"{'edge_traversals':[{'from':'a','to':'b'}]}", "edge_traversals[0].count"},
    {"{'edge_traversals':[{'from':'a','to':'b','count':-2}]}", "edge_traversals[0].count"},
    {"{'status':null}", "status"},
    {"{'status':'paused'}", "status"},
    {"{'state':[]}", "state"},
    {"{'stage_visits':{'a':-1}}", "stage_visits.a"},
    {"{'suspended':7}", "suspended"},
};

/* Proves 3.11.wrong_type: A wrong type is an error that names the key path
 * Proves 3.11.numbers */
START_TEST(rule_3_11_a_wrong_type_names_the_key)
{
    json_object *state = rv_kit_json(wrong[_i].state);
    rv_envelope *env = NULL;
    rv_err *err = NULL;
    char quoted[128];

    ck_assert_int_eq(rv_envelope_load(state, world_rand(), T0, &env, &err), RV_E_INVALID);
    ck_assert_ptr_null(env);
    (void)snprintf(quoted, sizeof quoted, "\"%s\"", wrong[_i].path);
    ck_assert_msg(strstr(rv_err_text(err), json_object_is_type(state, json_type_object) ? quoted : wrong[_i].path),
                  "%s: %s", wrong[_i].state, rv_err_text(err));
    rv_err_free(err);
    json_object_put(state);
}
END_TEST

/* Proves 3.11.version: A newer state_version is refused */
START_TEST(rule_3_11_a_newer_version_is_refused)
{
    json_object *state = rv_kit_json("{'state_version':2}");
    rv_envelope *env = NULL;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_envelope_load(state, world_rand(), T0, &env, &err), RV_E_VERSION);
    ck_assert_ptr_nonnull(strstr(rv_err_text(err), "state_version"));
    rv_err_free(err);
    json_object_put(state);
}
END_TEST

START_TEST(a_false_member_of_a_set_is_no_member)
{
    rv_envelope *env = world_load("{'active_stages':{'a':false,'b':true},'suspended':{'a':null}}");

    world_expect(env, "active_stages", "{'b':true}");
    world_expect(env, "suspended", "{}");
    rv_envelope_free(env);
}
END_TEST

START_TEST(a_loaded_envelope_shares_nothing_with_the_text_it_came_from)
{
    json_object *state = rv_kit_json("{'outputs':{'plan':{'n':1}},'loop_feedback':['a']}");
    rv_envelope *env = NULL;

    OK(rv_envelope_load(state, world_rand(), T0, &env, NULL));
    json_object_object_add(json_object_object_get(json_object_object_get(state, "outputs"), "plan"), "n",
                           json_object_new_int(2));
    json_object_array_add(json_object_object_get(state, "loop_feedback"), json_object_new_string("b"));
    json_object_put(state);
    world_expect(env, "outputs", "{'plan':{'n':1}}");
    world_expect(env, "loop_feedback", "['a']");
    rv_envelope_free(env);
}
END_TEST

START_TEST(an_open_record_goes_on_after_a_load)
{
    struct rv_record_end end = {.status = RV_HISTORY_SUCCESS, .duration_ms = 5};
    rv_envelope *env = world_load(full);

    OK(rv_envelope_record_complete(env, S("act"), &end, T0, NULL));
    ck_assert_int_eq(rv_envelope_processing_ms(env), 9);
    rv_envelope_free(env);
}
END_TEST

START_TEST(sums_of_usage_can_always_be_loaded)
{
    const struct rv_usage much = {.calls = 1, .input_tokens = RV_USAGE_MAX, .output_tokens = RV_USAGE_MAX};
    rv_envelope *env = world_load("{}"), *again;
    char *text;

    rv_envelope_add_usage(env, &much);
    rv_envelope_add_usage(env, &much);
    text = world_state(env);
    again = world_load(text);
    ck_assert_int_eq(rv_envelope_fields(again)->usage.calls, 2);
    ck_assert_int_eq(rv_envelope_fields(again)->usage.input_tokens, RV_USAGE_MAX);
    free(text);
    rv_envelope_free(again);
    rv_envelope_free(env);
}
END_TEST

TCase *state_case(void)
{
    TCase *tc = tcase_create("state");

    tcase_add_test(tc, w10_every_field_survives_a_round_trip);
    tcase_add_test(tc, rule_3_11_a_partial_state_keeps_defaults_for_the_rest);
    tcase_add_test(tc, rule_3_11_numbers_may_arrive_as_integer_or_float);
    tcase_add_test(tc, times_with_an_offset_are_written_in_utc);
    tcase_add_loop_test(tc, rule_3_11_a_wrong_type_names_the_key, 0, RV_COUNT(wrong));
    tcase_add_test(tc, rule_3_11_a_newer_version_is_refused);
    tcase_add_test(tc, a_false_member_of_a_set_is_no_member);
    tcase_add_test(tc, a_loaded_envelope_shares_nothing_with_the_text_it_came_from);
    tcase_add_test(tc, an_open_record_goes_on_after_a_load);
    tcase_add_test(tc, sums_of_usage_can_always_be_loaded);
    return tc;
}
