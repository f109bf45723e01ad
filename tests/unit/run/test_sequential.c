/* Sequential runs: bounds (rules 3.4, 7.6, W06, W11), edges (7.4, W04, W22), statuses (7.2), events (7.8), saving
 * (7.9), max_visits and the state schema (10). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/run/drive.h"
#include "tests/unit/run/suites.h"

static enum rv_run_status run_of(struct drive **d, const char *yaml, const struct drive_answer *answers, size_t n)
{
    *d = drive_new(yaml, NULL, 0);
    drive_answers(*d, answers, n);
    return drive_run(*d);
}

/* --- how runs end --- */

static const struct {
    const char *what, *yaml;
    struct drive_answer answer;
    enum rv_run_status status;
    const char *reason, *stage, *hops, *iteration, *llm;
    bool terminated;
} ends[] = {
    {"no stages: completed at once",
     "name: t\nagents: []\n",
     {"llm:a", "{}", true, 0},
     RV_RUN_COMPLETED,
     "\"completed\"",
     "\"end\"",
     "0",
     "0",
     "0",
     false},
    {"the end is reached",
     "name: t\nagents: [{name: a}]\n",
     {"llm:a", "{}", true, 0},
     RV_RUN_COMPLETED,
     "\"completed\"",
     "\"end\"",
     "1",
     "0",
     "0",
     false},
    {"the lowest stage_order is the entry, ties keep their order",
     "name: t\nagents: [{name: z, stage_order: 5}, {name: b, stage_order: 1}, {name: c, stage_order: 1, default_next: "
     "z}]\n",
     {"llm:a", "{}", true, 0},
     RV_RUN_COMPLETED,
     "\"completed\"",
     "\"end\"",
     "1",
     "0",
     "0",
     false},
    {"max_iterations N allows N loop-backs, N + 1 passes (self-edge, W04)",
     "name: t\nmax_iterations: 2\nagents: [{name: a, default_next: a}]\n",
     {"llm:a", "{}", true, 0},
     RV_RUN_TERMINATED,
     "\"max_iterations_exceeded\"",
     "\"a\"",
     "3",
     "3",
     "0",
     true},
    {"and the same over two stages",
     "name: t\nmax_iterations: 2\nagents: [{name: a, stage_order: 1, default_next: b}, {name: b, stage_order: 2, "
     "default_next: a}]\n",
     {"llm:a", "{}", true, 0},
     RV_RUN_TERMINATED,
     "\"max_iterations_exceeded\"",
     "\"a\"",
     "6",
     "3",
     "0",
     true},
    {"max_agent_hops is never passed",
     "name: t\nmax_iterations: 99\nmax_agent_hops: 4\nagents: [{name: a, default_next: a}]\n",
     {"llm:a", "{}", true, 0},
     RV_RUN_TERMINATED,
     "\"max_agent_hops_exceeded\"",
     "\"a\"",
     "4",
     "4",
     "0",
     true},
    {"max_llm_calls is never passed",
     "name: t\nmax_iterations: 99\nmax_llm_calls: 2\nagents: [{name: a, default_next: a, has_llm: true, model_role: "
     "r}]\nmodels: {r: scripted}\n",
     {"llm:a", "{}", true, 0},
     RV_RUN_TERMINATED,
     "\"max_llm_calls_exceeded\"",
     "\"a\"",
     "2",
     "2",
     "2",
     true},
    {"a stage without a model runs after the last call (W06)",
     "name: t\nmax_llm_calls: 1\nagents: [{name: a, stage_order: 1, has_llm: true, model_role: r, default_next: b}, "
     "{name: b, stage_order: 2}]\nmodels: {r: scripted}\n",
     {"llm:a", "{}", true, 0},
     RV_RUN_COMPLETED,
     "\"completed\"",
     "\"end\"",
     "2",
     "0",
     "1",
     false},
    {"a mocked one too",
     "name: t\nmax_llm_calls: 1\nagents: [{name: a, stage_order: 1, has_llm: true, model_role: r, default_next: b}, "
     "{name: b, stage_order: 2, has_llm: true, model_role: r, mock: true, mock_handler: x.m}]\nmodels: {r: scripted}\n",
     {"llm:a", "{}", true, 0},
     RV_RUN_COMPLETED,
     "\"completed\"",
     "\"end\"",
     "2",
     "0",
     "1",
     false},
    /* Proves 10/exactly: A run that uses its budget exactly is completed */
    {"a budget used exactly is not exceeded",
     "name: t\nmax_agent_hops: 1\nagents: [{name: a}]\n",
     {"llm:a", "{}", true, 0},
     RV_RUN_COMPLETED,
     "\"completed\"",
     "\"end\"",
     "1",
     "0",
     "0",
     false},
    {"an edge limit of N lets the edge be used N times",
     "name: t\nmax_iterations: 9\nedge_limits: [{from: a, to: a, max_count: 2}]\nagents: [{name: a, default_next: "
     "a}]\n",
     {"llm:a", "{}", true, 0},
     RV_RUN_TERMINATED,
     "\"max_loop_exceeded\"",
     "\"end\"",
     "3",
     "3",
     "0",
     true},
    {"forward edges are limited too",
     "name: t\nmax_iterations: 9\nedge_limits: [{from: a, to: b, max_count: 1}]\nagents: [{name: a, stage_order: 1, "
     "default_next: b}, {name: b, stage_order: 2, default_next: a}]\n",
     {"llm:a", "{}", true, 0},
     RV_RUN_TERMINATED,
     "\"max_loop_exceeded\"",
     "\"end\"",
     "3",
     "1",
     "0",
     true},
    {"enable_loop_back false: a loop-back ends the run",
     "name: t\nexecution: {enable_loop_back: false}\nagents: [{name: a, default_next: a}]\n",
     {"llm:a", "{}", true, 0},
     RV_RUN_TERMINATED,
     "\"max_loop_exceeded\"",
     "\"end\"",
     "1",
     "0",
     "0",
     true},
    {"max_visits",
     "name: t\nmax_iterations: 9\nagents: [{name: a, default_next: a, max_visits: 2}]\n",
     {"llm:a", "{}", true, 0},
     RV_RUN_TERMINATED,
     "\"max_stage_visits_exceeded\"",
     "\"a\"",
     "2",
     "2",
     "0",
     true},
    {"bounds come in the order iterations, calls, hops",
     "name: t\nmax_iterations: 1\nmax_agent_hops: 2\nmax_llm_calls: 2\nagents: [{name: a, default_next: a, has_llm: "
     "true, model_role: r}]\nmodels: {r: scripted}\n",
     {"llm:a", "{}", true, 0},
     RV_RUN_TERMINATED,
     "\"max_iterations_exceeded\"",
     "\"a\"",
     "2",
     "2",
     "2",
     true},
    {"calls before hops",
     "name: t\nmax_iterations: 5\nmax_agent_hops: 2\nmax_llm_calls: 2\nagents: [{name: a, default_next: a, has_llm: "
     "true, model_role: r}]\nmodels: {r: scripted}\n",
     {"llm:a", "{}", true, 0},
     RV_RUN_TERMINATED,
     "\"max_llm_calls_exceeded\"",
     "\"a\"",
     "2",
     "2",
     "2",
     true},
    {"an unrouted failure",
     "name: t\nagents: [{name: a, has_llm: true, model_role: r}]\nmodels: {r: scripted}\n",
     {"llm:a", "!:x", true, 0},
     RV_RUN_FAILED,
     "\"llm_failed_fatally\"",
     "\"a\"",
     "1",
     "0",
     "1",
     true},
    {"a failing stage that routes to itself loops until a bound ends it",
     "name: t\nmax_iterations: 2\nagents: [{name: a, has_llm: true, model_role: r, error_next: a}]\nmodels: {r: "
     "scripted}\n",
     {"llm:a", "!:x", true, 0},
     RV_RUN_TERMINATED,
     "\"max_iterations_exceeded\"",
     "\"a\"",
     "3",
     "3",
     "3",
     true},
    {"error_next: end",
     "name: t\nagents: [{name: a, has_llm: true, model_role: r, error_next: end}]\nmodels: {r: scripted}\n",
     {"llm:a", "!:x", true, 0},
     RV_RUN_COMPLETED,
     "\"completed\"",
     "\"end\"",
     "1",
     "0",
     "1",
     false},
    {"a call that was cancelled outside cancels the run",
     "name: t\nagents: [{name: a, has_llm: true, model_role: r, error_next: end}]\nmodels: {r: scripted}\n",
     {"llm:a", "!CancelledError:x", true, 0},
     RV_RUN_CANCELLED,
     "\"user_cancelled\"",
     "\"a\"",
     "1",
     "0",
     "1",
     true},
};

/* Proves 7.2/completed: completed: the end was reached and nothing is pending; reason completed, terminated false
 * Proves 7.2/terminated: terminated: a bound, an edge limit, a denial or an outcome
 * Proves 7.2/failed: failed: an unrouted failure, an unknown stage, a blocked graph
 * Proves 7.3: Stage after stage: cancel, bounds, lookup, visit, failure, edge, stream, save; an unknown stage fails
 * the run
 * Proves 7.4/count: The edge is counted, then the loop-back taken, then the limit looked at; a limit of N lets it
 * be used N times
 * Proves 7.6/bound: A bound terminates with text and reason, the position stays; the bound on model calls holds
 * only for stages that may make one
 * Proves 10/max_visits: A stage with max_visits is entered that often and then ends the run with
 * max_stage_visits_exceeded
 * Proves W04/run: A self-edge is a loop-back, counted and limited
 * Proves W06/run: The model budget blocks no stage that calls no model
 * Proves W18/run: Stages of one order run in the order of the file
 * Proves 10/reasons, W23/run */
START_TEST(a_run_ends_as_its_rules_say)
{
    struct drive *d;
    enum rv_run_status status = run_of(&d, ends[_i].yaml, &ends[_i].answer, 1);

    ck_assert_msg(status == ends[_i].status, "%s: %s", ends[_i].what, drive_story(d));
#define CK(path, want)                                                                                                 \
    ck_assert_msg(strcmp(drive_state(d, path), want) == 0, "%s: %s is %s", ends[_i].what, path, drive_state(d, path))
    CK("terminal_reason", ends[_i].reason);
    CK("current_stage", ends[_i].stage);
    CK("agent_hop_count", ends[_i].hops);
    CK("iteration", ends[_i].iteration);
    CK("llm_call_count", ends[_i].llm);
    CK("terminated", ends[_i].terminated ? "true" : "false");
#undef CK
    ck_assert_str_ne(drive_state(d, "completed_at"), "null"); /* W11 */
    ck_assert_str_eq(drive_state(d, "parallel_mode"), "false");
    if (ends[_i].terminated)
        ck_assert_str_ne(drive_state(d, "termination_reason"), "null");
    char status_text[32];
    snprintf(status_text, sizeof status_text, "\"%s\"", rv_run_status_text(status));
    ck_assert_str_eq(drive_state(d, "status"), status_text);
    drive_free(d);
}
END_TEST

/* --- loop-backs (7.4) --- */

#define LOOP                                                                                                           \
    "name: t\nmax_iterations: 9\nagents:\n  - {name: p, stage_order: 1, output_key: plan, has_llm: true, model_role: " \
    "r, default_next: c}\n"                                                                                            \
    "  - name: c\n    stage_order: 2\n    output_key: critic\n    has_llm: true\n    model_role: r\n"                  \
    "    routing_rules: [{condition: v, value: 1, target: p}]\n  - {name: e, stage_order: 3}\nmodels: {r: scripted}\n"

/* Proves 7.4/feedback: The looping stage's feedback is read before outputs are cleared */
START_TEST(a_loop_back_counts_archives_clears_and_keeps_the_feedback)
{
    struct drive *d = drive_new(LOOP, NULL, 0);

    DRIVE_ANSWERS(d, {"llm:p", "{'n':1}", false, 0}, {"llm:c", "{'v':1,'feedback':'shorter'}", false, 0},
                  {"llm:p", "{'n':2}", false, 0}, {"llm:c", "{'v':1,'feedback':7}", false, 0},
                  {"llm:p", "{'n':3}", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "iteration"), "2");
    ck_assert_str_eq(drive_state(d, "loop_feedback"), "[\"shorter\"]"); /* only a string is feedback */
    ck_assert_str_eq(drive_state(d, "prior_plans"), "[{\"n\":1},{\"n\":2}]");
    ck_assert_str_eq(drive_state(d, "outputs"), "{\"plan\":{\"n\":3},\"critic\":{}}");
    ck_assert_str_eq(drive_state(d, "edge_traversals"),
                     "[{\"from\":\"p\",\"to\":\"c\",\"count\":3},{\"from\":\"c\",\"to\":\"p\",\"count\":2}]");
    /* the output is streamed before it is cleared (W41) */
    ck_assert_str_ne(json_object_to_json_string(json_object_object_get(drive_line(d, "stage_completed", 1), "output")),
                     "null");
    ck_assert_msg(strstr(drive_story(d), "routing_decision:c>p iteration_incremented stage_started:p") != NULL, "%s",
                  drive_story(d));
    drive_free(d);
}
END_TEST

/* Proves 7.4/count */
START_TEST(the_stop_at_an_edge_comes_after_counting_and_clearing)
{
    struct drive *d = drive_new(LOOP "edge_limits: [{from: c, to: p, max_count: 1}]\n", NULL, 0);

    DRIVE_ANSWERS(d, {"llm:c", "{'v':1,'feedback':'f'}", true, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_TERMINATED);
    ck_assert_str_eq(drive_state(d, "iteration"), "2");
    ck_assert_str_eq(drive_state(d, "outputs"), "{}");
    ck_assert_str_eq(drive_state(d, "edge_traversals.1.count"), "2");
    ck_assert_msg(strstr(drive_state(d, "termination_reason"), "c -> p") != NULL, "%s",
                  drive_state(d, "termination_reason"));
    drive_free(d);
}
END_TEST

/* Proves W14/run: What a loop-back archives and clears is configurable */
START_TEST(what_is_archived_and_cleared_is_configurable)
{
    struct drive *d = drive_new(LOOP "retry_archive: [critic]\nretry_clear: []\n", NULL, 0); /* W14 */

    DRIVE_ANSWERS(d, {"llm:c", "{'v':1}", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "prior_plans"), "[{\"v\":1}]");
    drive_free(d);
}
END_TEST

/* Proves 10/state: Outputs are gathered over loops by the state schema: replace, append, merge_dict */
START_TEST(state_gathers_outputs_across_loops)
{
    static const struct {
        const char *how, *want;
    } cases[] = {{"replace", "{\"n\":2,\"b\":1}"},
                 {"append", "[{\"n\":1,\"a\":1},{\"n\":2,\"b\":1}]"},
                 {"merge_dict", "{\"n\":2,\"a\":1,\"b\":1}"}};

    for (size_t i = 0; i < RV_COUNT(cases); i++) {
        rv_buf yaml = RV_BUF_INIT(4096);
        rv_buf_printf(&yaml, LOOP "state: [{key: plan, merge: %s}]\n", cases[i].how);
        struct drive *d = drive_new(rv_buf_cstr(&yaml), NULL, 0);
        DRIVE_ANSWERS(d, {"llm:p", "{'n':1,'a':1}", false, 0}, {"llm:c", "{'v':1}", false, 0},
                      {"llm:p", "{'n':2,'b':1}", false, 0});
        ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
        ck_assert_str_eq(drive_state(d, "state.plan"), cases[i].want);
        drive_free(d);
        rv_buf_fini(&yaml);
    }
}
END_TEST

/* --- the envelope at the start (7.2) --- */

/* Proves 7.2/fresh: A fresh run takes order, first stage, bounds and mode from the pipeline; counters are kept */
START_TEST(a_fresh_run_takes_bounds_and_order_from_the_pipeline_and_keeps_counters)
{
    struct drive *d =
        drive_new("name: t\nmax_iterations: 5\nmax_llm_calls: 6\nmax_agent_hops: 7\nagents: [{name: a}]\n", NULL, 0);

    drive_envelope(d,
                   "{'max_iterations':50,'max_llm_calls':60,'max_agent_hops':70,'agent_hop_count':2,'llm_call_count':3,"
                   "'iteration':4,'parallel_mode':true,'stage_order':['x']}");
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "max_iterations"), "5");
    ck_assert_str_eq(drive_state(d, "max_llm_calls"), "6");
    ck_assert_str_eq(drive_state(d, "max_agent_hops"), "7");
    ck_assert_str_eq(drive_state(d, "agent_hop_count"), "3");
    ck_assert_str_eq(drive_state(d, "llm_call_count"), "3");
    ck_assert_str_eq(drive_state(d, "iteration"), "4");
    ck_assert_str_eq(drive_state(d, "parallel_mode"), "false");
    ck_assert_str_eq(drive_state(d, "stage_order"), "[\"a\"]");
    drive_free(d);
}
END_TEST

static const struct {
    const char *state;
    enum rv_run_status status;
    const char *reason, *text;
} loaded[] = {
    {"{'current_stage':'gone'}", RV_RUN_FAILED, "\"tool_failed_fatally\"", "gone"},
    {"{'current_stage':'end'}", RV_RUN_COMPLETED, "\"completed\"", NULL},
    {"{'current_stage':'a','terminated':true,'terminal_reason':'user_cancelled','termination_reason':'before'}",
     RV_RUN_TERMINATED, "\"user_cancelled\"", "before"},
    {"{'current_stage':'a','agent_hop_count':21}", RV_RUN_TERMINATED, "\"max_agent_hops_exceeded\"", "21"},
    {"{'current_stage':'a','iteration':4}", RV_RUN_TERMINATED, "\"max_iterations_exceeded\"", "3"},
    {"{'current_stage':'gone','iteration':4}", RV_RUN_TERMINATED, "\"max_iterations_exceeded\"", "3"},
    {"{'current_stage':'end','interrupt_pending':true,'interrupt':{'kind':'checkpoint','id':'i','message':'m','data':{}"
     ","
     "'created_at':'2023-11-14T22:13:20Z'}}",
     RV_RUN_INTERRUPTED, "null", NULL},
    {"{'current_stage':'a','agent_hop_count':21,'interrupt_pending':true,'interrupt':{'kind':'checkpoint','id':'i',"
     "'data':{},'created_at':'2023-11-14T22:13:20Z'}}",
     RV_RUN_INTERRUPTED, "null", NULL},
};

/* Proves 7.2/interrupted: interrupted: an interrupt is pending, also at the end
 * Proves W12/run: The first termination wins in runs, too
 * Proves 7.2/failed, 7.3 */
START_TEST(a_loaded_envelope_is_judged_where_it_stands)
{
    struct drive *d = drive_new("name: t\nagents: [{name: a}]\n", NULL, 0);

    d->opts.continues = true;
    drive_envelope(d, loaded[_i].state);
    ck_assert_msg(drive_run(d) == loaded[_i].status, "%s: %s", loaded[_i].state, drive_story(d));
    ck_assert_str_eq(drive_state(d, "terminal_reason"), loaded[_i].reason);
    if (loaded[_i].text)
        ck_assert_msg(strstr(drive_state(d, "termination_reason"), loaded[_i].text) != NULL, "%s",
                      drive_state(d, "termination_reason"));
    ck_assert_uint_eq(d->n_visits, 0);
    drive_free(d);
}
END_TEST

START_TEST(saving_can_begin_and_end_on_the_way)
{
    struct drive *d = drive_new("name: t\nagents: [{name: a, has_llm: true, model_role: m, default_next: b},\n"
                                "  {name: b, has_llm: true, model_role: m}]\n",
                                NULL, 0);

    d->opts.saves = RV_SAVES_NONE;
    drive_start(d);
    for (int i = 1; i <= 2; i++) { /* the end of each stage */
        size_t before = d->n_saves;
        rv_run_set_saves(d->run, i == _i ? RV_SAVES_EACH : RV_SAVES_NONE);
        drive_pump_one(d);
        ck_assert_uint_eq(d->n_saves - before, i == _i ? i : 0); /* the last one ends the run, too */
    }
    ck_assert(rv_run_is_finished(d->run));
    drive_free(d);
}
END_TEST

START_TEST(a_very_long_stage_name_can_be_reported)
{
    rv_buf state = RV_BUF_INIT(8192);

    rv_buf_puts(&state, "{'current_stage':'");
    for (int i = 0; i < 199; i++)
        rv_buf_putc(&state, 'n');
    rv_buf_puts(&state, "\xc3\xa9\xc3\xa9'}"); /* a cut at 200 bytes would fall into a character */
    struct drive *d = drive_new("name: t\nagents: [{name: a}]\n", NULL, 0);
    d->opts.continues = true;
    drive_envelope(d, rv_buf_cstr(&state));
    ck_assert_int_eq(drive_run(d), RV_RUN_FAILED);
    drive_free(d);
    rv_buf_fini(&state);
}
END_TEST

/* --- saving (7.9, W43) --- */

/* Proves 7.9/save: The state is handed out for saving after each stage or batch and at every end, whatever the
 * reason
 * Proves W43: The state is handed out on every exit */
START_TEST(the_state_is_saved_after_each_stage_and_at_every_end)
{
    struct drive *d = drive_new(
        "name: t\nagents: [{name: a, stage_order: 1, default_next: b}, {name: b, stage_order: 2}]\n", NULL, 0);
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_uint_eq(d->n_saves, 3);
    drive_free(d);
    for (size_t i = 0; i < RV_COUNT(ends); i++) {
        run_of(&d, ends[i].yaml, &ends[i].answer,
               1); /* that the last save is the final state is checked by the driver */
        ck_assert_msg(d->n_saves >= 1, "%s", ends[i].what);
        drive_free(d);
    }
    d = drive_new("name: t\nagents: [{name: a}]\n", NULL, 0);
    d->opts.saves = RV_SAVES_NONE;
    d->opts.emits = false;
    drive_run(d);
    ck_assert_uint_eq(d->n_saves, 0);
    ck_assert_uint_eq(d->lines.len, 0);
    drive_free(d);
}
END_TEST

TCase *sequential_case(void)
{
    TCase *tc = tcase_create("sequential");

    tcase_add_loop_test(tc, a_run_ends_as_its_rules_say, 0, RV_COUNT(ends));
    tcase_add_test(tc, a_loop_back_counts_archives_clears_and_keeps_the_feedback);
    tcase_add_test(tc, the_stop_at_an_edge_comes_after_counting_and_clearing);
    tcase_add_test(tc, what_is_archived_and_cleared_is_configurable);
    tcase_add_test(tc, state_gathers_outputs_across_loops);
    tcase_add_test(tc, a_fresh_run_takes_bounds_and_order_from_the_pipeline_and_keeps_counters);
    tcase_add_loop_test(tc, a_loaded_envelope_is_judged_where_it_stands, 0, RV_COUNT(loaded));
    tcase_add_test(tc, a_very_long_stage_name_can_be_reported);
    tcase_add_test(tc, the_state_is_saved_after_each_stage_and_at_every_end);
    tcase_add_loop_test(tc, saving_can_begin_and_end_on_the_way, 0, 3);
    return tc;
}
