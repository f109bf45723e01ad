/* Rules 3.7 (goals over several stages of work) and 3.8 (retry context), W14. */
#include "tests/unit/envelope/suites.h"
#include "tests/unit/envelope/world.h"

static const char *const goals[] = {"read", "write", "read"};

static rv_envelope *with_goals(void)
{
    rv_envelope *env = world_fresh();

    OK(rv_envelope_init_goals(env, goals, RV_COUNT(goals), NULL));
    return env;
}

static bool advance(rv_envelope *env, const char *goal, const char *summary)
{
    json_object *s = summary ? rv_kit_json(summary) : NULL;
    bool more = false;

    OK(rv_envelope_advance_stage(env, &(const struct rv_goals_met){&goal, goal ? 1 : 0, s}, NULL, &more, NULL));
    json_object_put(s);
    return more;
}

/* Proves 3.7.initialize_goals: Both lists are copies; every status is pending */
START_TEST(rule_3_7_initial_goals_are_all_pending)
{
    static const char *const other[] = {"x"};
    rv_envelope *env = with_goals();

    world_expect(env, "all_goals", "['read','write','read']");
    world_expect(env, "remaining_goals", "['read','write','read']");
    world_expect(env, "goal_completion_status", "{'read':'pending','write':'pending'}");
    OK(rv_envelope_init_goals(env, other, 1, NULL));
    world_expect(env, "goal_completion_status", "{'x':'pending'}");
    rv_envelope_free(env);
}
END_TEST

/* Proves 3.7.1: A satisfied goal gets that status and every equal entry leaves remaining_goals
 * Proves 3.7.2: completed_stages grows before any exit; plan_id comes from outputs.plan
 * Proves 3.7.5: Else the number grows and plan, execution and critic are deleted */
START_TEST(rule_3_7_a_satisfied_goal_leaves_the_remaining_ones)
{
    rv_envelope *env = with_goals();

    world_set_output(env, "plan", "{'plan_id':'p1'}");
    world_set_output(env, "execution", "{}");
    world_set_output(env, "critic", "{}");
    world_set_output(env, "integration", "{}");
    ck_assert(advance(env, "read", "{'text':'done'}"));
    world_expect(env, "remaining_goals", "['write']"); /* all equal entries are gone */
    world_expect(env, "all_goals", "['read','write','read']");
    world_expect(env, "goal_completion_status", "{'read':'satisfied','write':'pending'}");
    world_expect(env, "completed_stages",
                 "[{'stage_number':1,'satisfied_goals':['read'],'summary':{'text':'done'},'plan_id':'p1'}]");
    world_expect(env, "current_stage_number", "2");
    world_expect(env, "outputs", "{'integration':{}}");
    rv_envelope_free(env);
}
END_TEST

/* Proves 3.7.3: No remaining goals: nothing more to do
 * Proves 3.7.2 */
START_TEST(rule_3_7_no_remaining_goal_ends_the_work_after_it_is_recorded)
{
    rv_envelope *env = with_goals();

    ck_assert(advance(env, "read", NULL));
    world_set_output(env, "plan", "{}");
    ck_assert(!advance(env, "write", NULL));
    world_expect(env, "current_stage_number", "2");
    world_expect(env, "outputs", "{'plan':{}}");
    world_expect(env, "completed_stages",
                 "[{'stage_number':1,'satisfied_goals':['read'],'summary':null,'plan_id':null},"
                 "{'stage_number':2,'satisfied_goals':['write'],'summary':null,'plan_id':null}]");
    rv_envelope_free(env);
}
END_TEST

/* Proves 3.7.4: Stage number at its maximum: nothing more; number and outputs stay */
START_TEST(rule_3_7_the_last_stage_number_ends_the_work)
{
    rv_envelope *env = world_load("{'all_goals':['a'],'remaining_goals':['a'],'current_stage_number':5,"
                                  "'outputs':{'plan':{}}}");

    ck_assert(!advance(env, NULL, NULL)); /* number >= max_stages */
    world_expect(env, "current_stage_number", "5");
    world_expect(env, "outputs", "{'plan':{}}");
    world_expect(env, "completed_stages", "[{'stage_number':5,'satisfied_goals':[],'summary':null,'plan_id':null}]");
    rv_envelope_free(env);
}
END_TEST

/* Proves 3.7.context: Stage context; satisfied goals in the order of all_goals */
START_TEST(rule_3_7_the_stage_context_lists_satisfied_goals_in_order)
{
    static const char *const names[] = {"c", "a", "b"};
    rv_envelope *env = world_fresh();
    json_object *context = NULL;

    OK(rv_envelope_init_goals(env, names, 3, NULL));
    ck_assert(advance(env, "b", NULL));
    ck_assert(advance(env, "c", NULL));
    OK(rv_envelope_build_stage_context(env, &context, NULL));
    world_expect_in(context, "current_stage", "3");
    world_expect_in(context, "remaining_goals", "['a']");
    world_expect_in(context, "goal_completion_status", "{'c':'satisfied','a':'pending','b':'satisfied'}");
    world_expect_in(context, "satisfied_goals", "['c','b']");
    world_expect_in(context, "completed_stages",
                    "[{'stage_number':1,'satisfied_goals':['b'],'summary':null,'plan_id':null},"
                    "{'stage_number':2,'satisfied_goals':['c'],'summary':null,'plan_id':null}]");
    ck_assert_int_eq(json_object_object_length(context), 5);
    json_object_put(context);
    rv_envelope_free(env);
}
END_TEST

START_TEST(a_summary_is_an_object)
{
    rv_envelope *env = with_goals();
    json_object *list = rv_kit_json("[]");
    bool more = false;

    ck_assert_int_eq(rv_envelope_advance_stage(env, &(const struct rv_goals_met){NULL, 0, list}, NULL, &more, NULL),
                     RV_E_INVALID);
    world_expect(env, "completed_stages", "[]");
    json_object_put(list);
    rv_envelope_free(env);
}
END_TEST

static const char all_outputs[] = "{'outputs':{'plan':{'n':1},'arbiter':{},'execution':{},'synthesizer':{},'critic':{},"
                                  "'perception':{}}}";

/* Proves 3.8.1: iteration grows by one
 * Proves 3.8.2: Given feedback is appended, also when empty
 * Proves 3.8.3: The plan output is archived in prior_plans
 * Proves 3.8.4: plan, arbiter, execution, synthesizer and critic are deleted; other outputs stay */
START_TEST(rule_3_8_an_iteration_archives_the_plan_and_clears_the_pass)
{
    rv_envelope *env = world_load(all_outputs);

    OK(rv_envelope_increment_iteration(env, S("too vague"), NULL, NULL));
    world_expect(env, "iteration", "1");
    world_expect(env, "loop_feedback", "['too vague']");
    world_expect(env, "prior_plans", "[{'n':1}]");
    world_expect(env, "outputs", "{'perception':{}}");
    OK(rv_envelope_increment_iteration(env, NO_TEXT, NULL, NULL)); /* neither feedback nor plan */
    world_expect(env, "iteration", "2");
    world_expect(env, "loop_feedback", "['too vague']");
    world_expect(env, "prior_plans", "[{'n':1}]");
    rv_envelope_free(env);
}
END_TEST

/* Proves 3.8.2 */
START_TEST(rule_3_8_empty_feedback_is_feedback_and_a_null_plan_is_a_plan)
{
    rv_envelope *env = world_load("{'outputs':{'plan':null}}");

    OK(rv_envelope_increment_iteration(env, S(""), NULL, NULL));
    world_expect(env, "loop_feedback", "['']");
    world_expect(env, "prior_plans", "[null]");
    world_expect(env, "outputs", "{}");
    rv_envelope_free(env);
}
END_TEST

/* Proves W14: Archive, clear and reset keys are configurable (envelope part) */
START_TEST(w14_the_keys_are_configurable)
{
    static const char *const archive[] = {"arbiter", "perception"};
    static const char *const clear[] = {"critic"};
    static const char *const reset[] = {"plan"};
    const struct rv_reset_rules rules = {archive, 2, clear, 1, reset, 1};
    rv_envelope *env = world_load(all_outputs);
    const char *goal = "a";
    bool more = false;

    OK(rv_envelope_increment_iteration(env, NO_TEXT, &rules, NULL));
    world_expect(env, "prior_plans", "[{},{}]");
    world_expect(env, "outputs", "{'plan':{'n':1},'arbiter':{},'execution':{},'synthesizer':{},'perception':{}}");
    OK(rv_envelope_init_goals(env, &goal, 1, NULL));
    OK(rv_envelope_advance_stage(env, &(const struct rv_goals_met){NULL, 0, NULL}, &rules, &more, NULL));
    ck_assert(more);
    world_expect(env, "outputs", "{'arbiter':{},'execution':{},'synthesizer':{},'perception':{}}");
    rv_envelope_free(env);
}
END_TEST

/* Proves W14 */
START_TEST(w14_an_empty_list_of_keys_keeps_everything)
{
    static const char *const none[] = {""};
    const struct rv_reset_rules rules = {none, 0, none, 0, none, 0};
    rv_envelope *env = world_load("{'outputs':{'plan':{}}}");

    OK(rv_envelope_increment_iteration(env, NO_TEXT, &rules, NULL));
    world_expect(env, "outputs", "{'plan':{}}");
    world_expect(env, "prior_plans", "[]");
    rv_envelope_free(env);
}
END_TEST

START_TEST(feedback_that_is_not_utf_8_changes_nothing)
{
    rv_envelope *env = world_load(all_outputs);

    ck_assert_int_eq(rv_envelope_increment_iteration(env, S("\xff"), NULL, NULL), RV_E_INVALID);
    world_expect(env, "iteration", "0");
    world_expect(env, "prior_plans", "[]");
    ck_assert_uint_eq(json_object_array_length(rv_envelope_feedback(env)), 0);
    ck_assert_uint_eq(json_object_array_length(rv_envelope_prior_plans(env)), 0);
    ck_assert(world_has_output(env, "plan"));
    rv_envelope_free(env);
}
END_TEST

TCase *goals_case(void)
{
    TCase *tc = tcase_create("goals");

    tcase_add_test(tc, rule_3_7_initial_goals_are_all_pending);
    tcase_add_test(tc, rule_3_7_a_satisfied_goal_leaves_the_remaining_ones);
    tcase_add_test(tc, rule_3_7_no_remaining_goal_ends_the_work_after_it_is_recorded);
    tcase_add_test(tc, rule_3_7_the_last_stage_number_ends_the_work);
    tcase_add_test(tc, rule_3_7_the_stage_context_lists_satisfied_goals_in_order);
    tcase_add_test(tc, a_summary_is_an_object);
    tcase_add_test(tc, rule_3_8_an_iteration_archives_the_plan_and_clears_the_pass);
    tcase_add_test(tc, rule_3_8_empty_feedback_is_feedback_and_a_null_plan_is_a_plan);
    tcase_add_test(tc, w14_the_keys_are_configurable);
    tcase_add_test(tc, w14_an_empty_list_of_keys_keeps_everything);
    tcase_add_test(tc, feedback_that_is_not_utf_8_changes_nothing);
    return tc;
}
