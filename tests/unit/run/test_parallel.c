/* Parallel runs (rule 7.7): each row of the merge table (W07 to W09), budgets, failures, pauses, blocked stages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/run/drive.h"
#include "tests/unit/run/suites.h"

#define P   "name: t\ndefault_run_mode: parallel\nmodels: {r: scripted}\nagents:\n"
#define LLM "has_llm: true, model_role: r"

/* Proves 7.7/ready: Only readiness counts: rules, default_next and edge limits are not used; a batch begins when
 * the one before is done */
START_TEST(batches_follow_the_dependencies_and_rules_are_not_used)
{
    struct drive *d =
        drive_new(P "  - {name: a, stage_order: 1, default_next: a}\n  - {name: b, stage_order: 2, requires: [a]}\n"
                    "  - {name: c, stage_order: 3, after: [a]}\n  - {name: d, stage_order: 4, requires: [b, c]}\n",
                  NULL, 0);

    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(
        drive_story(d),
        "pipeline_started parallel_batch stage_started:a stage_completed:a=success parallel_batch stage_started:b "
        "stage_completed:b=success stage_started:c stage_completed:c=success parallel_batch stage_started:d "
        "stage_completed:d=success done:completed");
    ck_assert_str_eq(drive_state(d, "current_stage"), "\"end\"");
    ck_assert_str_eq(drive_state(d, "parallel_mode"), "true");
    ck_assert_str_eq(drive_state(d, "edge_traversals"), "[]");
    ck_assert_str_eq(drive_state(d, "completed_stage_set"), "{\"a\":true,\"b\":true,\"c\":true,\"d\":true}");
    ck_assert_str_eq(drive_state(d, "active_stages"), "{}");
    ck_assert_uint_eq(d->n_saves, 4); /* once per batch, and at the end */
    drive_free(d);
}
END_TEST

/* Proves 7.7/outputs: Outputs that differ are set by their key; of two that wrote one key the later in stage order
 * is kept, with a warning
 * Proves 7.7/counters: Model calls and hops add up
 * Proves 7.7/history: New records and errors are appended in stage order
 * Proves 7.7/metadata: Metadata keys that changed are set
 * Proves W07: The merge takes outputs by their key, and counters, history, errors, metadata and interrupts */
START_TEST(everything_of_a_branch_is_merged)
{
    struct drive *d = drive_new(P "  - {name: a, stage_order: 1, output_key: out, " LLM "}\n"
                                  "  - {name: b, stage_order: 2, pre_process: x.b, " LLM ", error_next: end}\n"
                                  "  - {name: c, stage_order: 3, pre_process: x.c}\n",
                                NULL, 0);

    DRIVE_ANSWERS(
        d, {"llm:a", "{'v':1,'feedback':'f','outcome':'loop_back'}", false, 9000}, {"llm:b", "!:no", false, 0},
        {"hook:x.b", "{'envelope':{'metadata':{'k':'b','kb':1}}}", false, 0},
        {"hook:x.c", "{'envelope':{'metadata':{'k':'c'},'outputs':{'out':{'v':2},'more':{'w':3}}}}", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "outputs.out"), "{\"v\":2}"); /* by output key; the later in stage order (W07) */
    ck_assert_str_eq(drive_state(d, "outputs.more"), "{\"w\":3}");
    ck_assert_str_eq(drive_state(d, "outputs.c"), "{}");
    ck_assert_str_eq(drive_state(d, "outputs.b"), "absent");
    ck_assert_str_eq(drive_state(d, "llm_call_count"), "2");
    ck_assert_str_eq(drive_state(d, "agent_hop_count"), "3");
    ck_assert_str_eq(drive_state(d, "processing_history.n"), "3");
    ck_assert_str_eq(drive_state(d, "processing_history.0.agent"), "\"a\""); /* stage order, not order of arrival */
    ck_assert_str_eq(drive_state(d, "errors.0.agent"), "\"b\"");
    ck_assert_str_eq(drive_state(d, "metadata"), "{\"k\":\"c\",\"kb\":1}");
    ck_assert_str_eq(drive_state(d, "loop_feedback"), "[\"f\"]");
    ck_assert_str_eq(drive_state(d, "failed_stages.b"), "\"agent \\\"b\\\": generation failed: no\"");
    ck_assert_str_eq(drive_state(d, "completed_stage_set"), "{\"a\":true,\"c\":true}");
    json_object *line = drive_line(d, "warning", 0);
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_nonnull(strstr(json_object_to_json_string(line), "out"));
    drive_free(d);
}
END_TEST

/* Proves 7.7/interrupts: The first pending interrupt in stage order is the envelope's, further ones wait
 * Proves 7.10/parallel: A parallel run that goes on does not repeat completed stages
 * Proves W09 */
START_TEST(the_first_interrupt_in_stage_order_wins_and_others_queue)
{
    struct drive *d =
        drive_new(P "  - {name: a, stage_order: 1, " LLM "}\n  - {name: b, stage_order: 2, " LLM "}\n"
                    "  - {name: c, stage_order: 3, " LLM "}\n  - {name: d, stage_order: 4, requires: [a, b, c]}\n",
                  NULL, 0);
    struct rv_response r = {.text = RV_STR_LIT("x")};

    DRIVE_ANSWERS(d, {"llm:a", "{'outcome':'clarify','question':'qa'}", false, 9000},
                  {"llm:b", "{'outcome':'clarify','question':'qb'}", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED); /* W09 */
    ck_assert_str_eq(drive_state(d, "interrupt.question"), "\"qa\"");
    ck_assert_str_eq(drive_state(d, "metadata.queued_interrupts.0.question"), "\"qb\"");
    ck_assert_str_eq(drive_state(d, "metadata.queued_interrupts.0.stage"), "\"b\"");
    ck_assert_str_eq(drive_state(d, "current_stage"), "\"a\""); /* first neither completed nor failed */
    ck_assert_str_eq(drive_state(d, "completed_stage_set"), "{\"c\":true}");
    ck_assert_str_eq(drive_state(d, "active_stages"), "{}");
    ck_assert_int_eq(drive_resume(d, &r, NULL), 0); /* the second question follows; c does not run again */
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_INTERRUPTED);
    ck_assert_str_eq(drive_state(d, "interrupt.question"), "\"qb\"");
    ck_assert_str_eq(drive_state(d, "current_stage"), "\"b\"");
    ck_assert_uint_eq(d->n_visits, 1);
    ck_assert_int_eq(drive_resume(d, &r, NULL), 0);
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_COMPLETED);
    ck_assert_uint_eq(d->n_visits, 2); /* b and d */
    ck_assert_str_eq(drive_state(d, "metadata.queued_interrupts"), "[]");
    drive_free(d);
}
END_TEST

static const struct drive_tool wipe = {"wipe", RV_RISK_DESTRUCTIVE, NULL, NULL, 0};

/* Proves 7.7/interrupts */
START_TEST(two_gates_at_once_are_approved_one_by_one)
{
    struct drive *d = drive_new(P "  - {name: a, stage_order: 1, has_tools: true, tool_access: all}\n"
                                  "  - {name: b, stage_order: 2, has_tools: true, tool_access: all}\n",
                                &wipe, 1);

    drive_envelope(d, "{'outputs':{'plan':{'steps':[{'tool':'wipe'}]}}}");
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_int_eq(drive_approve(d, true), RV_RUN_INTERRUPTED);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 1);
    ck_assert_int_eq(drive_call_at(d, RV_EFFECT_CALL_TOOL, 0)->stage, 0);
    ck_assert_int_eq(drive_approve(d, true), RV_RUN_COMPLETED);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 1);
    ck_assert_int_eq(drive_call_at(d, RV_EFFECT_CALL_TOOL, 0)->stage, 1);
    ck_assert_str_eq(drive_state(d, "suspended"), "{}");
    drive_free(d);
}
END_TEST

/* Proves 7.7/terminate: An outcome terminate ends the run after the merge */
START_TEST(an_outcome_terminate_ends_the_run_after_the_merge)
{
    struct drive *d = drive_new(P "  - {name: a, stage_order: 1, " LLM "}\n  - {name: b, stage_order: 2, " LLM "}\n"
                                  "  - {name: c, stage_order: 3, requires: [a]}\n",
                                NULL, 0);

    DRIVE_ANSWERS(d, {"llm:a", "{'outcome':'terminate','reason':'enough'}", false, 0},
                  {"llm:b", "{'v':1}", false, 9000});
    ck_assert_int_eq(drive_run(d), RV_RUN_TERMINATED);
    ck_assert_str_eq(drive_state(d, "termination_reason"), "\"enough\"");
    ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"completed\"");
    ck_assert_str_eq(drive_state(d, "outputs.b"), "{\"v\":1}"); /* the sibling is drained */
    ck_assert_str_eq(drive_state(d, "current_stage"), "\"c\"");
    drive_free(d);
}
END_TEST

START_TEST(the_first_termination_of_a_batch_wins)
{
    struct drive *d =
        drive_new(P "  - {name: a, stage_order: 1, " LLM "}\n  - {name: b, stage_order: 2, " LLM "}\n", NULL, 0);

    DRIVE_ANSWERS(d, {"llm:a", "{'outcome':'terminate','reason':'enough'}", false, 0}, {"llm:b", "!:no", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_TERMINATED); /* W12: status and reason agree */
    ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"completed\"");
    ck_assert_str_eq(drive_state(d, "errors.0.agent"), "\"b\"");
    ck_assert_str_ne(drive_state(d, "failed_stages.b"), "absent");
    drive_free(d);
}
END_TEST

START_TEST(no_stages_are_completed_at_once)
{
    struct drive *d = drive_new("name: t\ndefault_run_mode: parallel\nagents: []\n", NULL, 0);

    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "current_stage"), "\"end\"");
    drive_free(d);
}
END_TEST

START_TEST(a_special_error_target_pauses_the_stage)
{
    struct drive *d = drive_new(P "  - {name: a, stage_order: 1, " LLM
                                  ", error_next: clarification}\n  - {name: b, stage_order: 2, requires: [a]}\n",
                                NULL, 0);
    struct rv_response r = {.text = RV_STR_LIT("x")};

    DRIVE_ANSWERS(d, {"llm:a", "!:no", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_str_eq(drive_state(d, "current_stage"), "\"a\"");
    ck_assert_int_eq(drive_resume(d, &r, NULL), 0);
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "completed_stage_set"), "{\"a\":true,\"b\":true}");
    drive_free(d);
}
END_TEST

/* --- failures --- */

/* Proves 7.7/failure: After an unrouted failure siblings finish and are merged, then the run fails
 * Proves W08: A batch is drained and merged in stage order before a failure ends the run */
START_TEST(an_unrouted_failure_ends_the_run_after_its_siblings)
{
    struct drive *d = drive_new(P "  - {name: a, stage_order: 1, " LLM "}\n  - {name: b, stage_order: 2, " LLM "}\n"
                                  "  - {name: c, stage_order: 3, requires: [b]}\n",
                                NULL, 0);

    DRIVE_ANSWERS(d, {"llm:a", "!:no", false, 0}, {"llm:b", "{'v':1}", false, 9000});
    ck_assert_int_eq(drive_run(d), RV_RUN_FAILED); /* W08 */
    ck_assert_str_eq(drive_state(d, "outputs.b"), "{\"v\":1}");
    ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"llm_failed_fatally\"");
    ck_assert_str_eq(drive_state(d, "current_stage"), "\"c\"");
    ck_assert_str_eq(drive_state(d, "agent_hop_count"), "2");
    drive_free(d);
}
END_TEST

/* Proves 7.7/error_next: The error route is ready at once; who waits for the failed stage is skipped, without a
 * hop, and the run completes
 * Proves W09: A routed failure does not count as completed, interrupts are kept, and the position says what is open */
START_TEST(the_error_route_is_ready_at_once_and_who_waits_for_the_failed_stage_is_skipped)
{
    struct drive *d =
        drive_new(P "  - {name: a, stage_order: 1, " LLM ", error_next: fix}\n"
                    "  - {name: b, stage_order: 2, requires: [a]}\n  - {name: c, stage_order: 3, requires: [b]}\n"
                    "  - {name: fix, stage_order: 4, requires: [c]}\n  - {name: e, stage_order: 5, after: [b]}\n"
                    "  - {name: f, stage_order: 6, requires: [a, e], join_strategy: any}\n",
                  NULL, 0);

    DRIVE_ANSWERS(d, {"llm:a", "!:no", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "failed_stages.a"), "\"agent \\\"a\\\": generation failed: no\"");
    ck_assert_str_eq(drive_state(d, "completed_stage_set"), "{\"fix\":true,\"e\":true,\"f\":true}");
    ck_assert_str_eq(drive_state(d, "agent_hop_count"), "4"); /* skipped ones cost no hop */
    ck_assert_msg(strstr(drive_story(d), "stage_skipped:b stage_skipped:c") != NULL, "%s", drive_story(d));
    ck_assert_str_eq(drive_state(d, "processing_history.2.status"), "\"skipped\"");
    ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"completed\"");
    drive_free(d);
}
END_TEST

#define FALLBACK                                                                                                       \
    P "  - {name: a, stage_order: 1, " LLM ", error_next: fix}\n  - {name: fix, stage_order: 2, error_next: worse}\n"  \
      "  - {name: worse, stage_order: 3}\n  - {name: b, stage_order: 4, requires: [fix]}\n"                            \
      "  - {name: e, stage_order: 5, after: [fix]}\n"                                                                  \
      "  - {name: f, stage_order: 6, requires: [a, b], join_strategy: any}\n"

START_TEST(a_stage_that_only_an_error_next_names_is_skipped_when_nothing_fails)
{
    struct drive *d = drive_new(FALLBACK, NULL, 0);

    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "completed_stage_set"), "{\"a\":true,\"f\":true,\"e\":true}");
    ck_assert_msg(strstr(drive_story(d), "stage_skipped:fix stage_skipped:worse stage_skipped:b") != NULL, "%s",
                  drive_story(d));
    ck_assert_str_eq(json_object_get_string(json_object_object_get(drive_line(d, "stage_skipped", 0), "reason")),
                     "no stage failed whose error_next it is");
    ck_assert_str_eq(json_object_get_string(json_object_object_get(drive_line(d, "stage_skipped", 2), "reason")),
                     "a stage it requires was skipped");
    ck_assert_str_eq(drive_state(d, "agent_hop_count"), "3");
    drive_free(d);
}
END_TEST

START_TEST(a_stage_that_only_an_error_next_names_runs_on_that_failure)
{
    struct drive *d = drive_new(FALLBACK, NULL, 0);

    DRIVE_ANSWERS(d, {"llm:a", "!:no", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "completed_stage_set"), "{\"fix\":true,\"b\":true,\"e\":true,\"f\":true}");
    ck_assert_msg(strstr(drive_story(d), "stage_completed:a=error parallel_batch stage_started:fix") != NULL, "%s",
                  drive_story(d));
    ck_assert_msg(strstr(drive_story(d), "stage_skipped:worse") != NULL, "%s", drive_story(d));
    drive_free(d);
}
END_TEST

START_TEST(under_the_first_rules_it_runs_beside_the_others)
{
    struct drive *d = drive_new(FALLBACK, NULL, 0);

    d->opts.rules = RV_RULES_1;
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "agent_hop_count"), "6");
    ck_assert_msg(!strstr(drive_story(d), "stage_skipped"), "%s", drive_story(d));
    drive_free(d);
}
END_TEST

/* The last waits for the stage that is for its own failure; a pause comes between, and nothing is skipped twice. */
START_TEST(nobody_waits_for_a_fallback_for_ever)
{
    struct drive *d = drive_new(P "  - {name: a, stage_order: 1, " LLM ", error_next: fix}\n"
                                  "  - {name: fix, stage_order: 2}\n"
                                  "  - {name: b, stage_order: 3, after: [fix], error_next: mend, " LLM "}\n"
                                  "  - {name: mend, stage_order: 4}\n"
                                  "  - {name: c, stage_order: 5, requires: [mend], error_next: mend}\n",
                                NULL, 0);

    DRIVE_ANSWERS(d, {"llm:b", "{'outcome': 'confirm'}", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_str_eq(drive_state(d, "processing_history.1.status"), "\"skipped\"");
    ck_assert_int_eq(drive_approve(d, true), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "completed_stage_set"), "{\"a\":true,\"b\":true}");
    ck_assert_str_eq(drive_state(d, "processing_history.5.agent"), "\"c\"");
    ck_assert_str_eq(drive_state(d, "processing_history.6"), "absent");
    drive_free(d);
}
END_TEST

/* Proves 7.7/ready */
START_TEST(any_needs_one_of_its_requirements)
{
    struct drive *d =
        drive_new(P "  - {name: a, stage_order: 1, " LLM ", error_next: end}\n  - {name: b, stage_order: 2}\n"
                    "  - {name: c, stage_order: 3, requires: [a, b], join_strategy: any}\n"
                    "  - {name: e, stage_order: 4, requires: [a, b]}\n",
                  NULL, 0);

    DRIVE_ANSWERS(d, {"llm:a", "!:no", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "completed_stage_set"), "{\"b\":true,\"c\":true}");
    ck_assert_msg(strstr(drive_story(d), "stage_skipped:e") != NULL, "%s", drive_story(d));
    drive_free(d);
}
END_TEST

/* Proves 7.7/blocked: Stages that nothing can make ready fail the run, which lists them
 * Proves W09 */
START_TEST(what_is_blocked_otherwise_fails_the_run_with_names)
{
    struct drive *d =
        drive_new(P "  - {name: a, stage_order: 1}\n  - {name: b, stage_order: 2, requires: [a]}\n", NULL, 0);

    d->opts.continues = true;
    drive_envelope(d,
                   "{'current_stage':'b','parallel_mode':true,'stage_order':['a','b'],'failed_stages':{'a':'before'}}");
    ck_assert_int_eq(drive_run(d), RV_RUN_FAILED); /* the failure of a was not routed: b is blocked, not skipped */
    ck_assert_msg(strstr(drive_state(d, "termination_reason"), "\\\"b\\\"") != NULL, "%s",
                  drive_state(d, "termination_reason"));
    ck_assert_str_eq(drive_state(d, "current_stage"), "\"b\"");
    ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"tool_failed_fatally\"");
    drive_free(d);
}
END_TEST

/* --- budgets --- */

static const struct {
    const char *bound;
    size_t visits;
    const char *reason, *stage;
} budgets[] = {
    {"max_agent_hops: 2", 2, "\"max_agent_hops_exceeded\"", "\"c\""},
    {"max_agent_hops: 4", 4, "\"max_agent_hops_exceeded\"", "\"e\""},
    {"max_agent_hops: 5", 5, "\"completed\"", "\"end\""},
    {"max_llm_calls: 2", 3, "\"max_llm_calls_exceeded\"", "\"c\""}, /* d calls no model and runs (W06) */
    {"max_llm_calls: 3", 5, "\"completed\"", "\"end\""},
    {"max_llm_calls: 1\nmax_agent_hops: 1", 1, "\"max_agent_hops_exceeded\"", "\"b\""},
};

/* Proves 7.7/reserve: A hop, and a model call where one may be made, is reserved before a stage starts; what gets
 * none does not start, and the run ends with that bound after the batch */
START_TEST(budgets_are_reserved_before_a_stage_starts)
{
    rv_buf yaml = RV_BUF_INIT(4096);

    rv_buf_printf(&yaml,
                  P "  - {name: a, stage_order: 1, " LLM "}\n  - {name: b, stage_order: 2, " LLM
                    "}\n  - {name: c, stage_order: 3, " LLM "}\n"
                    "  - {name: d, stage_order: 4}\n  - {name: e, stage_order: 5, requires: [a]}\n%s\n",
                  budgets[_i].bound);
    struct drive *d = drive_new(rv_buf_cstr(&yaml), NULL, 0);
    drive_run(d);
    ck_assert_msg(d->n_visits == budgets[_i].visits, "%s: %s", budgets[_i].bound, drive_story(d));
    ck_assert_str_eq(drive_state(d, "terminal_reason"), budgets[_i].reason);
    ck_assert_str_eq(drive_state(d, "current_stage"), budgets[_i].stage);
    drive_free(d);
    rv_buf_fini(&yaml);
}
END_TEST

/* Proves 7.7/reserve */
START_TEST(attempts_of_siblings_share_what_is_left)
{
    struct drive *d =
        drive_new(P "  - {name: a, stage_order: 1, " LLM ", max_retries: 3}\n  - {name: b, stage_order: 2, " LLM
                    ", max_retries: 3}\nmax_llm_calls: 3\n",
                  NULL, 0);

    DRIVE_ANSWERS(d, {"llm:a", "?:busy", true, 0}, {"llm:b", "?:busy", true, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_FAILED);
    ck_assert_uint_eq(d->n_llm, 3);
    ck_assert_str_eq(drive_state(d, "llm_call_count"), "3");
    drive_free(d);
}
END_TEST

/* Proves 7.7/limit: The number of stages that run at once can be limited and changes no result */
START_TEST(max_parallel_limits_what_is_under_way)
{
    struct drive *d = drive_new(P "  - {name: a, stage_order: 1, " LLM "}\n  - {name: b, stage_order: 2, " LLM
                                  "}\n  - {name: c, stage_order: 3, " LLM "}\n",
                                NULL, 0);

    d->opts.max_parallel = 2;
    drive_start(d);
    ck_assert_uint_eq(d->n_calls, 2);
    ck_assert_int_eq(d->calls[0].stage, 0);
    ck_assert_int_eq(d->calls[1].stage, 1);
    struct rv_event ev = {.kind = RV_EVENT_LLM_DONE, .call_id = 2, .now_us = DRIVE_T0 + 5, .reply = RV_STR_LIT("{}")};
    ck_assert_int_eq(drive_step(d, &ev, NULL), 0);
    d->calls[1].over = true;
    ck_assert_uint_eq(d->n_calls, 3);
    ck_assert_int_eq(d->calls[2].stage, 2);
    drive_pump(d);
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_COMPLETED);
    drive_free(d);
}
END_TEST

/* The state does not depend on who answers first, or on how many run at once (rule 11.2). */
/* Proves 11.1/order: The state does not depend on the order in which answers come
 * Proves 7.7/limit */
START_TEST(the_state_depends_neither_on_the_order_of_answers_nor_on_the_limit)
{
    char *states[4] = {NULL};
    const char *yaml =
        P "  - {name: a, stage_order: 1, " LLM "}\n  - {name: b, stage_order: 2, " LLM "}\n"
          "  - {name: c, stage_order: 3, " LLM ", error_next: f}\n  - {name: f, stage_order: 4, requires: [a]}\n";

    for (int i = 0; i < 4; i++) {
        struct drive *d = drive_new(yaml, NULL, 0);
        d->opts.max_parallel = 0;
        drive_start(d);
        static const int order[4][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};
        static const char *const replies[] = {"{\"v\":1,\"outcome\":\"clarify\",\"question\":\"qa\"}",
                                              "{\"v\":2,\"outcome\":\"confirm\",\"message\":\"qb\"}", "nothing"};
        for (int j = 0; j < 3; j++) {
            struct rv_event ev = {.kind = RV_EVENT_LLM_DONE,
                                  .call_id = order[i][j] + 1,
                                  .now_us = DRIVE_T0 + 7,
                                  .reply = rv_str_of(replies[order[i][j]])};
            ck_assert_int_eq(drive_step(d, &ev, NULL), 0);
        }
        ck_assert(d->finished);
        states[i] = drive_dump(rv_run_envelope(d->run));
        drive_free(d);
        ck_assert_str_eq(states[i], states[0]);
    }
    for (int i = 0; i < 4; i++)
        free(states[i]);
}
END_TEST

TCase *parallel_case(void)
{
    TCase *tc = tcase_create("parallel");

    tcase_add_test(tc, batches_follow_the_dependencies_and_rules_are_not_used);
    tcase_add_test(tc, everything_of_a_branch_is_merged);
    tcase_add_test(tc, the_first_interrupt_in_stage_order_wins_and_others_queue);
    tcase_add_test(tc, two_gates_at_once_are_approved_one_by_one);
    tcase_add_test(tc, an_outcome_terminate_ends_the_run_after_the_merge);
    tcase_add_test(tc, the_first_termination_of_a_batch_wins);
    tcase_add_test(tc, no_stages_are_completed_at_once);
    tcase_add_test(tc, a_special_error_target_pauses_the_stage);
    tcase_add_test(tc, an_unrouted_failure_ends_the_run_after_its_siblings);
    tcase_add_test(tc, the_error_route_is_ready_at_once_and_who_waits_for_the_failed_stage_is_skipped);
    tcase_add_test(tc, a_stage_that_only_an_error_next_names_is_skipped_when_nothing_fails);
    tcase_add_test(tc, a_stage_that_only_an_error_next_names_runs_on_that_failure);
    tcase_add_test(tc, under_the_first_rules_it_runs_beside_the_others);
    tcase_add_test(tc, nobody_waits_for_a_fallback_for_ever);
    tcase_add_test(tc, any_needs_one_of_its_requirements);
    tcase_add_test(tc, what_is_blocked_otherwise_fails_the_run_with_names);
    tcase_add_loop_test(tc, budgets_are_reserved_before_a_stage_starts, 0, RV_COUNT(budgets));
    tcase_add_test(tc, attempts_of_siblings_share_what_is_left);
    tcase_add_test(tc, max_parallel_limits_what_is_under_way);
    tcase_add_test(tc, the_state_depends_neither_on_the_order_of_answers_nor_on_the_limit);
    return tc;
}
