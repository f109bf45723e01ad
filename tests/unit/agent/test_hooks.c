/* Hooks and policies: what they are shown, what their answers change, and that garbage changes nothing
 * (rules 5.2, 5.10, W25, W26). */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/agent/suites.h"
#include "tests/unit/run/drive.h"

#define HEAD "name: t\nagents:\n  - name: a\n    stage_order: 1\n    "

/* --- pre_process: what a patch does, and that a bad one does nothing --- */

static const struct {
    const char *reply, *path, *want;
    bool fails;
} patches[] = {
    {"", "outputs.x", "{\"old\":1}", false}, /* W26 */
    {"null", "outputs.x", "{\"old\":1}", false},
    {"{}", "outputs.x", "{\"old\":1}", false},
    {"{'envelope':null}", "outputs.x", "{\"old\":1}", false},
    {"{'envelope':{}}", "outputs.x", "{\"old\":1}", false},
    {"{'envelope':{'outputs':{'x':{'new':2}}}}", "outputs.x", "{\"new\":2}", false},
    {"{'envelope':{'outputs':{'y':{'new':2}}}}", "outputs.x", "{\"old\":1}", false},
    {"{'envelope':{'metadata':{'k':[1]}}}", "metadata.k", "[1]", false},
    {"{'envelope':{'state':{'k':[1]}}}", "state.k", "[1]", false},
    {"{'envelope':{'loop_feedback':['f']}}", "loop_feedback", "[\"f\"]", false},
    {"{'other':1}", "outputs.x", "{\"old\":1}", true}, /* what is not known would vanish */
    {"{'ouput':{}}", "outputs.x", "{\"old\":1}", true},
    /* all or nothing */
    {"{'envelope':{'outputs':{'x':{'new':2}},'metadata':7}}", "outputs.x", "{\"old\":1}", true},
    {"{'envelope':{'outputs':{'x':{'new':2}},'user_id':'eve'}}", "outputs.x", "{\"old\":1}", true},
    {"{'envelope':{'outputs':{'x':{'new':2}},'llm_call_count':0,'agent_hop_count':99}}", "outputs.x", "{\"old\":1}",
     true},
    {"{'envelope':{'outputs':{'x':{'new':2}}},'output':{'v':1}}", "outputs.x", "{\"old\":1}", true},
    {"{'envelope':[]}", "outputs.x", "{\"old\":1}", true},
    {"{'envelope':'x'}", "outputs.x", "{\"old\":1}", true},
    {"[]", "outputs.x", "{\"old\":1}", true},
    {"7", "outputs.x", "{\"old\":1}", true},
    {"{", "outputs.x", "{\"old\":1}", true},
    {"{} {}", "outputs.x", "{\"old\":1}", true},
    {"\xff", "outputs.x", "{\"old\":1}", true},
};

/* Proves 5.2/patch: What a hook answers is applied as a whole or not at all, and never changes bounds, identity or
 * counters
 * Proves W26: A hook that answers nothing changes nothing; whatever it answers is a value or an error
 * Proves 5.2/3 */
START_TEST(a_hook_patches_all_or_nothing)
{
    struct drive_answer answer = {"hook:x.pre", patches[_i].reply, false, 0};
    struct drive *d = drive_new(HEAD "pre_process: x.pre\n", NULL, 0);

    drive_envelope(d, "{'user_id':'ada','outputs':{'x':{'old':1}}}");
    drive_answers(d, &answer, 1);
    ck_assert_msg(drive_run(d) == (patches[_i].fails ? RV_RUN_FAILED : RV_RUN_COMPLETED), "%s", patches[_i].reply);
    ck_assert_msg(strcmp(drive_state(d, patches[_i].path), patches[_i].want) == 0, "%s: %s", patches[_i].reply,
                  drive_state(d, patches[_i].path));
    ck_assert_str_eq(drive_state(d, "errors.0.error_type"), patches[_i].fails ? "\"HookError\"" : "absent");
    ck_assert_str_eq(drive_state(d, "user_id"), "\"ada\"");
    drive_free(d);
}
END_TEST

/* Proves 5.2/patch */
START_TEST(a_hook_can_not_raise_the_bounds_of_a_run)
{
    struct drive *d =
        drive_new(HEAD "pre_process: x.pre\n    default_next: a\nmax_agent_hops: 3\nmax_iterations: 9\n", NULL, 0);

    DRIVE_ANSWERS(
        d, {"hook:x.pre", "{'envelope':{'max_agent_hops':1000,'max_iterations':1000,'parallel_mode':true}}", true, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_TERMINATED);
    ck_assert_str_eq(drive_state(d, "agent_hop_count"), "3");
    ck_assert_str_eq(drive_state(d, "max_agent_hops"), "3");
    ck_assert_str_eq(drive_state(d, "parallel_mode"), "false");
    drive_free(d);
}
END_TEST

/* --- post_process --- */

static const struct {
    const char *reply, *output;
} posts[] = {
    {"", "{\"v\":1}"},
    {"{'output':{'w':2}}", "{\"w\":2}"},
    {"{'output':null}", "{\"v\":1}"},
    {"{'envelope':{'outputs':{'a':{'z':3}}}}", "{\"z\":3}"},
    {"{'envelope':{'outputs':{'a':{'z':3}}},'output':{'w':2}}", "{\"w\":2}"},
    {"{'envelope':{'outputs':{'a':null}}}", "null"},
    {"{'output':7}", "absent"}, /* fails: taken back (W25) */
    {"{'envelope':{'outputs':{'a':{'z':3}}},'output':[]}", "absent"},
    {"{'envelope':{'outputs':{'a':{'z':3},'b':{'q':1}},'metadata':0}}", "absent"},
    {"!:no", "absent"},
};

/* Proves 10/hooks */
START_TEST(a_post_hook_may_replace_the_output)
{
    struct drive_answer answers[] = {{"hook:x.post", posts[_i].reply, false, 0}, {"llm:a", "{'v':1}", false, 0}};
    struct drive *d = drive_new(
        HEAD "has_llm: true\n    model_role: r\n    post_process: x.post\nmodels: {r: 'scripted'}\n", NULL, 0);

    drive_answers(d, answers, 2);
    bool fails = strcmp(posts[_i].output, "absent") == 0;
    ck_assert_msg(drive_run(d) == (fails ? RV_RUN_FAILED : RV_RUN_COMPLETED), "%s: %s", posts[_i].reply,
                  drive_story(d));
    ck_assert_str_eq(drive_state(d, "outputs.a"), posts[_i].output);
    if (fails)
        ck_assert_str_eq(drive_state(d, "outputs"), "{}");
    drive_free(d);
}
END_TEST

/* --- what is shown --- */

START_TEST(an_entry_sees_only_the_parts_it_asked_for)
{
    const char *const all[] = {"raw_input", "outputs.x", "metadata.k", "counters"};
    struct drive *d = drive_new(HEAD "pre_process: x.pre\n", NULL, 0);

    d->has_entry = true;
    d->entry = (struct rv_entry_info){
        .name = "x.pre", .sees = {.items = (const char **)(void *)all, .n = 4, .is_set = true}, .timeout_ms = 50};
    drive_envelope(d, "{'raw_input':'hi','outputs':{'x':{'a':1},'y':{}},'metadata':{'k':2,'secret':3}}");
    drive_start(d);
    ck_assert_str_eq(drive_request(&d->calls[0], "envelope"),
                     "{\"raw_input\":\"hi\",\"llm_call_count\":0,\"agent_hop_count\":1,\"outputs\":{\"x\":{\"a\":1}},"
                     "\"metadata\":{\"k\":2}}");
    ck_assert_int_eq(d->calls[0].deadline_us, DRIVE_T0 + 50000);
    drive_free(d);
}
END_TEST

/* --- policies (5.10) --- */

#define POLICIES                                                                                                       \
    HEAD "has_policies: true\n    policies: [x.p1, x.p2]\n    default_next: b\n  - {name: b, stage_order: 2}\n"

/* Proves 5.10: Policies answer allow, deny or confirm in listed order, the first other than allow wins; deny is a
 * PolicyError and unrouted a policy_violation; confirm stores the output and asks
 * Proves W29: has_policies is used */
START_TEST(policies_are_asked_in_order_and_the_first_no_wins)
{
    struct drive *d = drive_new(POLICIES, NULL, 0);

    DRIVE_ANSWERS(d, {"policy:x.p1", "{'decision':'deny','reason':'r1'}", false, 0},
                  {"policy:x.p2", "{'decision':'deny','reason':'r2'}", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_FAILED);
    ck_assert_uint_eq(d->n_calls, 1);
    ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"policy_violation\"");
    ck_assert_msg(strstr(drive_state(d, "errors.0.error"), "r1") != NULL, "%s", drive_state(d, "errors"));
    drive_free(d);
}
END_TEST

/* Proves 5.10 */
START_TEST(a_policy_that_wants_a_confirmation_is_satisfied_by_an_approval)
{
    struct drive *d = drive_new(POLICIES, NULL, 0);

    DRIVE_ANSWERS(d, {"policy:x.p2", "{'decision':'confirm','message':'sure?'}", true, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_str_eq(drive_state(d, "interrupt.message"), "\"sure?\"");
    ck_assert_str_eq(drive_state(d, "outputs.a"), "{}"); /* as outcome confirm: the output is stored */
    ck_assert_str_eq(drive_state(d, "current_stage"), "\"a\"");
    ck_assert_int_eq(drive_approve(d, true), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "suspended"), "{}");
    ck_assert_uint_eq(d->n_calls, 2);
    drive_free(d);
}
END_TEST

/* Proves 5.10/approval */
START_TEST(a_denied_confirmation_of_a_policy_ends_the_run)
{
    struct drive *d = drive_new(POLICIES, NULL, 0);

    DRIVE_ANSWERS(d, {"policy:x.p1", "{'decision':'confirm'}", true, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_int_eq(drive_approve(d, false), RV_RUN_TERMINATED);
    ck_assert_str_eq(drive_state(d, "agent_hop_count"), "1");
    drive_free(d);
}
END_TEST

/* Proves 5.10/approval: An approval satisfies the policy that asked and no other, and a later no still counts */
START_TEST(the_approval_for_one_policy_is_none_for_another)
{
    struct drive *d = drive_new(POLICIES, NULL, 0);

    DRIVE_ANSWERS(d, {"policy:x.p1", "{'decision':'confirm','message':'one?'}", true, 0},
                  {"policy:x.p2", "{'decision':'confirm','message':'two?'}", true, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_str_eq(drive_state(d, "interrupt.message"), "\"one?\"");
    ck_assert_int_eq(drive_approve(d, true), RV_RUN_INTERRUPTED);
    ck_assert_str_eq(drive_state(d, "interrupt.message"), "\"two?\"");
    ck_assert_int_eq(drive_approve(d, true), RV_RUN_COMPLETED);
    drive_free(d);
}
END_TEST

/* Proves 5.10/approval */
START_TEST(a_policy_may_still_deny_what_was_approved)
{
    struct drive *d = drive_new(POLICIES, NULL, 0);

    DRIVE_ANSWERS(d, {"policy:x.p1", "{'decision':'confirm'}", false, 0},
                  {"policy:x.p1", "{'decision':'deny'}", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_int_eq(drive_approve(d, true), RV_RUN_FAILED);
    ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"policy_violation\"");
    drive_free(d);
}
END_TEST

TCase *hooks_case(void)
{
    TCase *tc = tcase_create("hooks");

    tcase_add_loop_test(tc, a_hook_patches_all_or_nothing, 0, RV_COUNT(patches));
    tcase_add_test(tc, a_hook_can_not_raise_the_bounds_of_a_run);
    tcase_add_loop_test(tc, a_post_hook_may_replace_the_output, 0, RV_COUNT(posts));
    tcase_add_test(tc, an_entry_sees_only_the_parts_it_asked_for);
    tcase_add_test(tc, policies_are_asked_in_order_and_the_first_no_wins);
    tcase_add_test(tc, a_policy_that_wants_a_confirmation_is_satisfied_by_an_approval);
    tcase_add_test(tc, a_denied_confirmation_of_a_policy_ends_the_run);
    tcase_add_test(tc, the_approval_for_one_policy_is_none_for_another);
    tcase_add_test(tc, a_policy_may_still_deny_what_was_approved);
    return tc;
}
