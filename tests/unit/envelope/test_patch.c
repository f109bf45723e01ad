/* A hook's answer applied to an envelope: by the rule of loading (3.11), all or nothing. */
#include "tests/unit/envelope/suites.h"
#include "tests/unit/envelope/world.h"

#include <stdlib.h>
#include <string.h>

static const char base_state[] =
    "{'outputs':{'a':{'n':1},'b':{}},'metadata':{'k':1},'state':{'s':1},'iteration':1,'llm_call_count':2,"
    "'agent_hop_count':1,'stage_visits':{'a':1},'edge_traversals':[{'from':'a','to':'b','count':1}],"
    "'processing_history':[{'agent':'a','status':'success','started_at':'2025-01-01T00:00:00Z'}],"
    "'active_stages':{'x':true},'loop_feedback':['f'],'errors':[{'e':1}],'suspended':{'a':{'w':1}}}";

static const struct {
    const char *partial, *key, *want;
} changes[] = {
    {"{'outputs':{'b':{'n':2},'c':null}}", "outputs", "{'a':{'n':1},'b':{'n':2},'c':null}"},
    {"{'metadata':{'l':2}}", "metadata", "{'k':1,'l':2}"},
    {"{'state':{'s':[2]}}", "state", "{'s':[2]}"},
    {"{'current_stage':'b'}", "current_stage", "'b'"},
    {"{'raw_input':'new'}", "raw_input", "'new'"},
    {"{'active_stages':{'y':true}}", "active_stages", "{'y':true}"},
    {"{'loop_feedback':[]}", "loop_feedback", "[]"},
    {"{'suspended':{}}", "suspended", "{}"},
    {"{'max_llm_calls':5}", "max_llm_calls", "5"},
    {"{'terminated':true,'termination_reason':'t'}", "termination_reason", "'t'"},
    {"{'termination_reason':null}", "termination_reason", "null"},
    {"{'terminal_reason':'completed'}", "terminal_reason", "'completed'"},
    {"{'status':'failed'}", "status", "'failed'"},
    {"{'errors':[{'e':1},{'e':2}]}", "errors", "[{'e':1},{'e':2}]"},
    {"{'completed_at':'2025-01-01T00:00:00Z'}", "completed_at", "'2025-01-01T00:00:00.000000Z'"},
    {"{'parallel_mode':true}", "parallel_mode", "true"},
    {"{'interrupt_pending':true,'interrupt':{'kind':'checkpoint','id':'i','created_at':'2025-01-01T00:00:00Z'}}",
     "interrupt",
     "{'kind':'checkpoint','id':'i','question':null,'message':null,'data':null,"
     "'created_at':'2025-01-01T00:00:00.000000Z'}"},
    {"{'unknown':1}", "iteration", "1"},
};

START_TEST(a_patch_changes_a_root_or_a_fork)
{
    rv_envelope *env = world_load(base_state);
    rv_envelope *fork = NULL;
    char *before;
    char *after;

    OK(rv_envelope_fork(env, &fork, NULL));
    before = world_state(env);
    OK(world_patch(fork, changes[_i].partial, NULL));
    world_expect(fork, changes[_i].key, changes[_i].want);
    after = world_state(env);
    ck_assert_str_eq(before, after);
    free(before);
    free(after);
    rv_envelope_free(fork);
    OK(world_patch(env, changes[_i].partial, NULL));
    world_expect(env, changes[_i].key, changes[_i].want);
    rv_envelope_free(env);
}
END_TEST

static const struct {
    const char *partial, *key;
} refused[] = {
    {"{'envelope_id':'x'}", "envelope_id"},
    {"{'request_id':'x'}", "request_id"},
    {"{'user_id':'root'}", "user_id"},
    {"{'session_id':'x'}", "session_id"},
    {"{'iteration':0}", "iteration"},
    {"{'llm_call_count':0}", "llm_call_count"},
    {"{'agent_hop_count':2}", "agent_hop_count"},
    {"{'stage_visits':{}}", "stage_visits"},
    {"{'stage_visits':{'z':1}}", "stage_visits"},
    {"{'edge_traversals':[]}", "edge_traversals"},
    {"{'edge_traversals':[{'from':'b','to':'a','count':1}]}", "edge_traversals"},
    {"{'processing_history':[]}", "processing_history"},
    {"{'processing_history':[{'agent':'b','status':'success','started_at':'2025-01-01T00:00:00Z'}]}",
     "processing_history"},
    {"{'outputs':{'a':1}}", "outputs.a"},
    {"{'max_stages':'x'}", "max_stages"},
    {"{'interrupt_pending':true}", "interrupt_pending"}, /* a run that waits for nothing */
    {"{'interrupt_pending':true,'interrupt':null}", "interrupt_pending"},
    {"7", "object"},
};

START_TEST(a_patch_that_is_refused_changes_nothing)
{
    rv_envelope *env = world_load(base_state);
    char *before = world_state(env);
    char *after;
    json_object *partial = rv_kit_json(refused[_i].partial);
    rv_err *err = NULL;

    /* Something legal comes first, so that stopping half-way would show. */
    if (json_object_is_type(partial, json_type_object)) {
        json_object_object_add(partial, "raw_input", json_object_new_string("changed"));
        json_object_object_add(partial, "metadata", rv_kit_json("{'k':2}"));
    }
    ck_assert_int_eq(rv_envelope_patch(env, partial, &err), RV_E_INVALID);
    ck_assert_msg(strstr(rv_err_text(err), refused[_i].key), "%s", rv_err_text(err));
    after = world_state(env);
    ck_assert_str_eq(before, after);
    free(before);
    free(after);
    rv_err_free(err);
    json_object_put(partial);
    rv_envelope_free(env);
}
END_TEST

START_TEST(the_whole_state_handed_back_is_no_change)
{
    rv_envelope *env = random_envelope((uint64_t)_i);
    rv_envelope *fork = NULL;
    json_object *state = world_state_json(env);
    struct rv_merge m = {0};
    char *before = world_state(env);
    char *after;

    OK(rv_envelope_patch(env, state, NULL));
    after = world_state(env);
    ck_assert_str_eq(before, after);
    free(after);
    OK(rv_envelope_fork(env, &fork, NULL));
    OK(rv_envelope_patch(fork, state, NULL));
    after = world_state(fork);
    ck_assert_str_eq(before, after);
    free(after);
    json_object_put(state);
    if (!rv_envelope_has_interrupt(env)) {
        OK(rv_envelope_merge(env, fork, S("s"), &m, NULL));
        after = world_state(env);
        ck_assert_str_eq(before, after);
        free(after);
        ck_assert_int_eq(json_object_object_length(m.written), 0);
    }
    rv_merge_fini(&m);
    free(before);
    rv_envelope_free(fork);
    rv_envelope_free(env);
}
END_TEST

START_TEST(a_patched_fork_merges_what_it_changed)
{
    rv_envelope *env = world_load(base_state);
    rv_envelope *fork = NULL;
    struct rv_merge m = {0};

    OK(rv_envelope_fork(env, &fork, NULL));
    OK(world_patch(fork,
                   "{'outputs':{'a':{'n':9},'b':{}},'metadata':{'k':3},'state':{'s':4,'t':5},'suspended':{},"
                   "'errors':[{'e':1},{'e':2}],'loop_feedback':['f','g']}",
                   NULL));
    OK(rv_envelope_merge(env, fork, S("s"), &m, NULL));
    rv_envelope_free(fork);
    world_expect(env, "outputs", "{'a':{'n':9},'b':{}}");
    world_expect(env, "metadata", "{'k':3}");
    world_expect(env, "state", "{'s':4,'t':5}");
    world_expect(env, "suspended", "{}");
    world_expect(env, "errors", "[{'e':1},{'e':2}]");
    world_expect(env, "loop_feedback", "['f','g']");
    ck_assert_int_eq(json_object_object_length(m.written), 1);
    rv_merge_fini(&m);
    rv_envelope_free(env);
}
END_TEST

START_TEST(what_a_sibling_removed_does_not_come_back_with_a_whole_state)
{
    rv_envelope *env = world_load(base_state);
    rv_envelope *forks[2] = {NULL, NULL};
    json_object *state = world_state_json(env);
    struct rv_merge m = {0};

    for (size_t i = 0; i < 2; i++)
        OK(rv_envelope_fork(env, &forks[i], NULL));
    OK(rv_envelope_set_suspended(forks[0], S("a"), NULL, NULL));
    OK(rv_envelope_patch(forks[1], state, NULL));
    OK(rv_envelope_merge(env, forks[0], S("first"), &m, NULL));
    OK(rv_envelope_merge(env, forks[1], S("second"), &m, NULL));
    world_expect(env, "suspended", "{}");
    for (size_t i = 0; i < 2; i++)
        rv_envelope_free(forks[i]);
    json_object_put(state);
    rv_merge_fini(&m);
    rv_envelope_free(env);
}
END_TEST

START_TEST(a_fork_can_not_take_errors_back)
{
    rv_envelope *env = world_load(base_state);
    rv_envelope *fork = NULL;

    OK(rv_envelope_fork(env, &fork, NULL));
    ck_assert_int_eq(world_patch(fork, "{'errors':[]}", NULL), RV_E_INVALID);
    world_expect(fork, "errors", "[{'e':1}]");
    rv_envelope_free(fork);
    rv_envelope_free(env);
}
END_TEST

TCase *patch_case(void)
{
    TCase *tc = tcase_create("patch");

    tcase_add_loop_test(tc, a_patch_changes_a_root_or_a_fork, 0, RV_COUNT(changes));
    tcase_add_loop_test(tc, a_patch_that_is_refused_changes_nothing, 0, RV_COUNT(refused));
    tcase_add_loop_test(tc, the_whole_state_handed_back_is_no_change, 0, 60);
    tcase_add_test(tc, a_patched_fork_merges_what_it_changed);
    tcase_add_test(tc, what_a_sibling_removed_does_not_come_back_with_a_whole_state);
    tcase_add_test(tc, a_fork_can_not_take_errors_back);
    return tc;
}
