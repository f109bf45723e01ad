/* Forks and rule 7.7's merge table, W07. */
#include "tests/unit/envelope/suites.h"
#include "tests/unit/envelope/world.h"

#include <stdlib.h>

static rv_envelope *fork_of(const rv_envelope *env)
{
    rv_envelope *fork = NULL;

    OK(rv_envelope_fork(env, &fork, NULL));
    return fork;
}

static void join(rv_envelope *env, rv_envelope *fork, rv_str stage, struct rv_merge *m)
{
    OK(rv_envelope_merge(env, fork, stage, m, NULL));
    rv_envelope_free(fork);
}

START_TEST(a_fork_looks_like_its_parent)
{
    rv_envelope *env = random_envelope((uint64_t)_i);
    rv_envelope *fork = fork_of(env);
    char *a = world_state(env);
    char *b = world_state(fork);

    ck_assert_str_eq(a, b);
    ck_assert_uint_eq(rv_envelope_n_outputs(fork), rv_envelope_n_outputs(env));
    ck_assert_uint_eq(rv_envelope_n_records(fork), rv_envelope_n_records(env));
    ck_assert_uint_eq(rv_envelope_n_errors(fork), rv_envelope_n_errors(env));
    free(a);
    free(b);
    rv_envelope_free(fork);
    rv_envelope_free(env);
}
END_TEST

/* All the verbs, so that doing them on a fork can be compared with doing them on a root. */
static void work(rv_envelope *env)
{
    struct rv_record_end end = {RV_HISTORY_ERROR, S("boom"), 2, 5};
    json_object *one = rv_kit_json("1");
    json_object *dict = rv_kit_json("{'x':1}");

    world_set_output(env, "plan", "{'by':'fork'}");
    world_set_output(env, "fresh", "{}");
    OK(rv_envelope_remove_output(env, S("critic"), NULL));
    world_set_metadata(env, "m", "2");
    OK(rv_envelope_merge_state(env, S("list"), RV_MERGE_APPEND, one, NULL));
    OK(rv_envelope_merge_state(env, S("list"), RV_MERGE_APPEND, one, NULL));
    OK(rv_envelope_merge_state(env, S("dict"), RV_MERGE_DICT, dict, NULL));
    OK(rv_envelope_set_suspended(env, S("act"), dict, NULL));
    OK(rv_envelope_set_suspended(env, S("old"), NULL, NULL));
    OK(rv_envelope_record_start(env, S("act"), 1, T0, NULL));
    OK(rv_envelope_record_complete(env, S("act"), &end, T0, NULL));
    OK(rv_envelope_record_start(env, S("new"), 2, T0, NULL));
    OK(rv_envelope_add_error(env, &(const struct rv_error_entry){S("act"), S("boom"), "HookError", RV_FAILURE_NONE}, T0,
                             NULL));
    OK(rv_envelope_note_passage(env, S("plan"), S("act"), NULL, NULL));
    OK(rv_envelope_note_passage(env, S("act"), S("new"), NULL, NULL));
    OK(rv_envelope_add_feedback(env, S("more"), NULL));
    OK(rv_envelope_terminate(env, S("stop"), RV_REASON_COMPLETED, T0, NULL));
    json_object_put(one);
    json_object_put(dict);
}

static const char base_state[] =
    "{'outputs':{'plan':{'by':'root'},'critic':{},'keep':{}},'metadata':{'m':1,'k':1},'state':{'list':[0],'dict':{'y':"
    "2}},"
    "'suspended':{'old':{},'other':{}},'stage_visits':{'act':3},'agent_hop_count':3,'llm_call_count':1,"
    "'edge_traversals':[{'from':'plan','to':'act','count':4}],'loop_feedback':['first'],'errors':[{'e':0}],"
    "'processing_history':[{'agent':'act','status':'success','duration_ms':9}]}";

/* Proves 7.7.metadata: Merge: changed metadata and state are set; nothing of a fork is lost
 * Proves 7.7.terminate: Merge: a termination is applied
 * Proves 11.4 */
START_TEST(rule_7_7_forking_working_and_merging_is_working)
{
    rv_envelope *env = world_load(base_state);
    rv_envelope *direct = world_load(base_state);
    rv_envelope *fork = fork_of(env);
    struct rv_merge m = {0};
    char *before = world_state(env);
    char *after;
    char *wanted;
    char *seen;

    work(fork);
    after = world_state(env); /* the parent did not change */
    ck_assert_str_eq(before, after);
    free(before);
    free(after);
    work(direct);
    wanted = world_state(direct);
    seen = world_state(fork); /* the fork sees the sum */
    ck_assert_str_eq(seen, wanted);
    ck_assert_int_eq(rv_envelope_visits(fork, S("act")), 4);
    ck_assert_int_eq(rv_envelope_passages(fork, S("plan"), S("act")), 5);
    ck_assert_uint_eq(rv_envelope_n_outputs(fork), 3);
    ck_assert_uint_eq(rv_envelope_n_records(fork), 3);
    ck_assert_uint_eq(rv_envelope_n_errors(fork), 2);
    join(env, fork, S("act"), &m);
    after = world_state(env);
    ck_assert_str_eq(after, wanted);
    ck_assert_ptr_null(m.conflicts);
    free(after);
    free(wanted);
    free(seen);
    rv_merge_fini(&m);
    rv_envelope_free(env);
    rv_envelope_free(direct);
}
END_TEST

/* Proves 7.7.outputs: Merge: changed outputs are set, later stage wins, the clash is reported; what equals the
 * snapshot is no change
 * Proves 7.7/outputs */
START_TEST(rule_7_7_a_later_stage_wins_with_a_conflict)
{
    rv_envelope *env = world_load("{'outputs':{'a':{'n':0},'same':{'n':1}}}");
    rv_envelope *forks[] = {fork_of(env), fork_of(env)};
    struct rv_merge m = {0};

    world_set_output(forks[0], "a", "{'n':1}");
    world_set_output(forks[1], "a", "{'n':2}");
    world_set_output(forks[0], "same", "{'n':1}"); /* as the snapshot has it: no change, no conflict */
    world_set_output(forks[1], "same", "{'n':3}");
    join(env, forks[0], S("first"), &m);
    ck_assert_ptr_null(m.conflicts);
    join(env, forks[1], S("second"), &m);
    world_expect(env, "outputs", "{'a':{'n':2},'same':{'n':3}}");
    ck_assert_str_eq(json_object_to_json_string_ext(m.conflicts, JSON_C_TO_STRING_PLAIN),
                     "[{\"key\":\"a\",\"earlier\":\"first\",\"later\":\"second\"}]");
    rv_merge_fini(&m);
    rv_envelope_free(env);
}
END_TEST

/* Proves 7.7.counters: Merge: model calls and hops add up; history and errors are appended in stage order
 * Proves 7.7/counters, 7.7/history */
START_TEST(rule_7_7_counters_add_up_and_history_is_in_merge_order)
{
    struct rv_record_end end = {.status = RV_HISTORY_SUCCESS, .llm_calls = 2, .duration_ms = 1};
    rv_envelope *env = world_load("{'llm_call_count':1,'agent_hop_count':1}");
    rv_envelope *forks[] = {fork_of(env), fork_of(env)};
    struct rv_merge m = {0};
    json_object *one = rv_kit_json("1");

    for (size_t i = 2; i-- > 0;) { /* the second ends first */
        rv_str name = i ? S("b") : S("a");

        OK(rv_envelope_record_start(forks[i], name, (int64_t)i, T0, NULL));
        OK(rv_envelope_record_complete(forks[i], name, &end, T0, NULL));
        OK(rv_envelope_merge_state(forks[i], S("log"), RV_MERGE_APPEND, one, NULL));
        OK(rv_envelope_add_feedback(forks[i], name, NULL));
    }
    join(env, forks[0], S("a"), &m);
    join(env, forks[1], S("b"), &m);
    world_expect(env, "llm_call_count", "5");
    world_expect(env, "agent_hop_count", "3");
    world_expect(env, "stage_visits", "{'a':1,'b':1}");
    world_expect(env, "state", "{'log':[1,1]}"); /* neither append is lost */
    world_expect(env, "loop_feedback", "['a','b']");
    ck_assert_uint_eq(rv_envelope_n_records(env), 2);
    ck_assert_int_eq(rv_envelope_processing_ms(env), 2);
    json_object_put(one);
    rv_merge_fini(&m);
    rv_envelope_free(env);
}
END_TEST

/* Proves 7.7.interrupts: Merge: the first pending interrupt is taken, further ones go to metadata.queued_interrupts */
START_TEST(rule_7_7_the_first_interrupt_is_taken_and_the_others_wait)
{
    struct rv_interrupt_spec spec = {
        .kind = RV_INTERRUPT_CLARIFICATION, .id = S("i0"), .question = S("q"), .ttl_us = 0};
    rv_envelope *env = world_fresh();
    rv_envelope *forks[] = {fork_of(env), fork_of(env), fork_of(env)};
    static const rv_str ids[] = {RV_STR_LIT("i0"), RV_STR_LIT("i1"), RV_STR_LIT("i2")};
    struct rv_merge m = {0};

    for (size_t i = 0; i < 3; i++) {
        spec.id = ids[i];
        OK(rv_envelope_raise(forks[i], &spec, T0, NULL));
    }
    for (size_t i = 0; i < 3; i++)
        join(env, forks[i], ids[i], &m);
    ck_assert(rv_envelope_has_interrupt(env));
    ck_assert_str_eq(rv_envelope_interrupt(env).id, "i0");
    world_expect(env, "metadata",
                 "{'queued_interrupts':[{'kind':'clarification','id':'i1','question':'q','message':null,'data':null,"
                 "'created_at':'2025-11-24T16:00:00.123456Z','stage':'i1'},"
                 "{'kind':'clarification','id':'i2','question':'q','message':null,'data':null,"
                 "'created_at':'2025-11-24T16:00:00.123456Z','stage':'i2'}]}");
    rv_merge_fini(&m);
    rv_envelope_free(env);
}
END_TEST

START_TEST(a_fork_reads_the_answer_of_its_parent_and_may_change_its_view)
{
    rv_envelope *env = world_load("{'interrupt':{'kind':'confirmation','id':'i','response':{'approved':true}}}");
    rv_envelope *fork = fork_of(env);
    struct rv_response again = {.text = S("x")};
    struct rv_merge m = {0};

    world_expect_in(rv_envelope_interrupt(fork).response, "approved", "true");
    OK(rv_envelope_resolve(fork, &again, T0, NULL));
    world_expect_in(rv_envelope_interrupt(fork).response, "text", "'x'");
    world_expect_in(rv_envelope_interrupt(env).response, "approved", "true");
    rv_envelope_clear_interrupt(fork);
    ck_assert(!rv_envelope_interrupt(fork).exists);
    join(env, fork, S("a"), &m);
    ck_assert(rv_envelope_interrupt(env).exists);
    rv_merge_fini(&m);
    rv_envelope_free(env);
}
END_TEST

START_TEST(a_fork_has_sets_lists_and_goals_of_its_own)
{
    static const char *const goals[] = {"g"};
    rv_envelope *env = world_load("{'active_stages':{'a':true},'failed_stages':{'f':'x'},'outputs':{'plan':{'p':1}},"
                                  "'goal_completion_status':{'old':'pending'},'stage_order':['a']}");
    rv_envelope *fork = fork_of(env);
    char *before = world_state(env);
    char *after;
    bool more = false;

    OK(rv_envelope_complete_stage(fork, S("a"), NULL));
    OK(rv_envelope_start_stage(fork, S("f"), NULL));
    world_expect(fork, "active_stages", "{'f':true}");
    world_expect(fork, "completed_stage_set", "{'a':true}");
    world_expect(fork, "failed_stages", "{}");
    ck_assert(rv_envelope_has_all_completed(fork) && !rv_envelope_has_all_completed(env));
    OK(rv_envelope_increment_iteration(fork, S("why"), NULL, NULL));
    world_expect(fork, "prior_plans", "[{'p':1}]");
    world_expect(fork, "outputs", "{}");
    OK(rv_envelope_init_goals(fork, goals, 1, NULL));
    world_expect(fork, "goal_completion_status", "{'g':'pending'}");
    OK(rv_envelope_advance_stage(fork, &(const struct rv_goals_met){goals, 1, NULL}, NULL, &more, NULL));
    ck_assert(!more);
    OK(rv_envelope_set_stage(fork, S("elsewhere"), NULL));
    after = world_state(env);
    ck_assert_str_eq(before, after);
    free(before);
    free(after);
    rv_envelope_free(fork);
    rv_envelope_free(env);
}
END_TEST

TCase *fork_case(void)
{
    TCase *tc = tcase_create("fork");

    tcase_add_loop_test(tc, a_fork_looks_like_its_parent, 0, 20);
    tcase_add_test(tc, rule_7_7_forking_working_and_merging_is_working);
    tcase_add_test(tc, rule_7_7_a_later_stage_wins_with_a_conflict);
    tcase_add_test(tc, rule_7_7_counters_add_up_and_history_is_in_merge_order);
    tcase_add_test(tc, rule_7_7_the_first_interrupt_is_taken_and_the_others_wait);
    tcase_add_test(tc, a_fork_reads_the_answer_of_its_parent_and_may_change_its_view);
    tcase_add_test(tc, a_fork_has_sets_lists_and_goals_of_its_own);
    return tc;
}
