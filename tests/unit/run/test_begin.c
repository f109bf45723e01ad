/* Where a run begins: at its first stage, whatever the state it is given says; only a fork begins where its state
 * stands. Runs of older rules begin there, too. */
#include "tests/unit/run/drive.h"
#include "tests/unit/run/suites.h"

#include <string.h>

#define PIPELINE                                                                                                       \
    "name: t\nmax_agent_hops: 9\nagents:\n"                                                                            \
    "  - {name: a, output_key: x, default_next: b}\n"                                                                  \
    "  - {name: b, output_key: y, requires: [a]}\n"

/* What an earlier run may have left behind. */
static const char *const left[] = {
    "'current_stage':'end','status':'completed','terminal_reason':'completed','completed_at':'2023-11-14T22:13:20Z',"
    "'completed_stage_set':{'a':true,'b':true}",
    "'current_stage':'b','stage_order':['b','a'],'parallel_mode':true,'active_stages':{'a':true}",
    "'current_stage':'a','status':'failed','terminated':true,'terminal_reason':'tool_failed_fatally',"
    "'termination_reason':'before','failed_stages':{'a':'before'}",
    "'current_stage':'b','status':'interrupted','interrupt_pending':true,'interrupt':{'kind':'clarification','id':'i',"
    "'question':'q','data':{},'created_at':'2023-11-14T22:13:20Z'},'suspended':{'b':{'kind':'x'}},"
    "'metadata':{'queued_interrupts':[{'kind':'clarification','id':'j','question':'q'}],'mine':1}",
    "'current_stage':'gone'",
    "'interrupt_pending':true",
};

START_TEST(a_run_begins_at_its_first_stage)
{
    struct drive *d = drive_new(PIPELINE, NULL, 0);
    bool parallel = _i % 2;
    rv_buf state = RV_BUF_INIT(4096);

    rv_buf_printf(&state, "{%s,'agent_hop_count':2,'stage_visits':{'a':1,'b':1},'outputs':{'old':{'v':1}}}",
                  left[_i / 2]);
    d->opts.mode = parallel ? RV_MODE_PARALLEL : RV_MODE_SEQUENTIAL;
    drive_envelope(d, rv_buf_cstr(&state));
    ck_assert_msg(drive_run(d) == RV_RUN_COMPLETED, "%s: %s", rv_buf_cstr(&state), drive_story(d));
    ck_assert_uint_eq(d->n_visits, 2);
    ck_assert_str_eq(drive_state(d, "parallel_mode"), parallel ? "true" : "false");
    ck_assert_str_eq(drive_state(d, "stage_order"), "[\"a\",\"b\"]");
    ck_assert_str_eq(drive_state(d, "terminated"), "false");
    ck_assert_str_eq(drive_state(d, "termination_reason"), "null");
    ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"completed\"");
    ck_assert_str_eq(drive_state(d, "interrupt"), "null");
    ck_assert_str_eq(drive_state(d, "suspended"), "{}");
    ck_assert_str_eq(drive_state(d, "failed_stages"), "{}");
    ck_assert_str_eq(drive_state(d, "metadata.queued_interrupts"), "absent");
    /* what was done and used up counts on */
    ck_assert_str_eq(drive_state(d, "agent_hop_count"), "4");
    ck_assert_str_eq(drive_state(d, "stage_visits"), "{\"a\":2,\"b\":2}");
    ck_assert_str_eq(drive_state(d, "outputs.old.v"), "1");
    drive_free(d);
    rv_buf_fini(&state);
}
END_TEST

START_TEST(bounds_count_what_earlier_runs_used)
{
    struct drive *d = drive_new(PIPELINE, NULL, 0);

    drive_envelope(d, "{'current_stage':'end','terminal_reason':'completed','agent_hop_count':9}");
    ck_assert_int_eq(drive_run(d), RV_RUN_TERMINATED);
    ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"max_agent_hops_exceeded\"");
    drive_free(d);
}
END_TEST

/* A fork, and a run that began before the first stage was the rule. */
START_TEST(a_fork_and_an_older_run_begin_where_their_state_stands)
{
    struct drive *d = drive_new(PIPELINE, NULL, 0);

    d->opts.continues = _i == 0;
    d->opts.rules = _i == 0 ? RV_RULES_NEWEST : RV_RULES_1;
    drive_envelope(d, "{'current_stage':'b','stage_order':['a','b']}");
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_uint_eq(d->n_visits, 1);
    drive_free(d);
}
END_TEST

START_TEST(the_answer_to_an_earlier_question_can_still_be_read)
{
    struct drive *d = drive_new("name: t\nagents: [{name: a, has_llm: true, model_role: r, prompt_key: p}]\n"
                                "prompts: {p: 'said {{interrupt_response}}'}\nmodels: {r: scripted}\n",
                                NULL, 0);

    drive_envelope(d, "{'current_stage':'end','interrupt':{'kind':'clarification','id':'i','question':'q','data':{},"
                      "'created_at':'2023-11-14T22:13:20Z','response':{'text':'blue'}}}");
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_ptr_nonnull(strstr(drive_request(&d->calls[0], "prompt"), "blue"));
    drive_free(d);
}
END_TEST

TCase *begin_case(void)
{
    TCase *tc = tcase_create("begin");

    tcase_add_loop_test(tc, a_run_begins_at_its_first_stage, 0, 2 * (int)RV_COUNT(left));
    tcase_add_test(tc, bounds_count_what_earlier_runs_used);
    tcase_add_loop_test(tc, a_fork_and_an_older_run_begin_where_their_state_stands, 0, 2);
    tcase_add_test(tc, the_answer_to_an_earlier_question_can_still_be_read);
    return tc;
}
