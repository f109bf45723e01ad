/* One visit from start to end: order (rule 5.2), failures (5.3), modes (5.4), required fields (5.7), outcomes (5.9). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/agent/suites.h"
#include "tests/unit/run/drive.h"

#define LLM  "has_llm: true\n    model_role: r\n    "
#define TAIL "  - {name: b, stage_order: 2}\nmodels: {r: 'scripted'}\n"
#define HEAD "name: t\nagents:\n  - name: a\n    stage_order: 1\n    "

/* --- order (5.2) --- */

static const char full[] =
    HEAD LLM "pre_process: x.pre\n    post_process: x.post\n    has_policies: true\n"
             "    policies: [x.p1, x.p2]\n    routing_function: x.route\n    required_output_fields: [v]\n" TAIL;

/* Proves 5.1/parts: An agent is one struct for every kind of stage: its config, the catalog of what answers, hooks,
 * mock; nothing of it is global
 * Proves 5.2/1: A visit begins with a history record and costs one hop
 * Proves 5.2/2: Then the event that the stage started
 * Proves 5.2/3: Then the pre_process hook, whose answer may change the envelope
 * Proves 5.2/4: Then the main work by mode
 * Proves 5.2/6: Then the output is stored under its key, after the policies
 * Proves 5.2/9: Then the record and the event of the end, on every exit; after a failure both say error, also when
 * it was routed
 * Proves 7.1/build: Everything a run works with is handed over in one call, and each name is looked up in the
 * catalog of that call
 * Proves 7.11: What happened is observable under fixed names, from the start of the run to its end
 * Proves 8.5/lifecycle: What starts and ends, tools, transitions and questions are told by the event stream
 * Proves 10/decision: Each decision is told with from, to and its reason, and the rule that made it
 * Proves 10/hooks: Hooks stand before and after the work of any stage
 * Proves W46: Tools, transitions and the run itself have events
 * Proves W41 */
START_TEST(a_visit_does_its_steps_in_order)
{
    static const enum rv_effect_kind kinds[] = {RV_EFFECT_CALL_HOOK, RV_EFFECT_CALL_LLM,  RV_EFFECT_CALL_HOOK,
                                                RV_EFFECT_CALL_HOOK, RV_EFFECT_CALL_HOOK, RV_EFFECT_CALL_HOOK};
    static const char *const names[] = {"x.pre", "r", "x.p1", "x.p2", "x.post", "x.route"};
    struct drive *d = drive_new(full, NULL, 0);

    DRIVE_ANSWERS(d, {"llm:a", "{'v':1}", false, 0}, {"route:x.route", "{'next':'b'}", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_uint_eq(d->n_calls, RV_COUNT(names));
    for (size_t i = 0; i < d->n_calls; i++) {
        ck_assert_int_eq(d->calls[i].kind, kinds[i]);
        ck_assert_str_eq(d->calls[i].name, names[i]);
        ck_assert_int_eq(d->calls[i].attempt, 1);
    }
    ck_assert_str_eq(drive_request(&d->calls[0], "envelope.outputs"), "{}");
    ck_assert_str_eq(drive_request(&d->calls[0], "output"), "absent");
    ck_assert_str_eq(drive_request(&d->calls[0], "envelope.agent_hop_count"), "1"); /* the hop comes first */
    ck_assert_str_eq(drive_request(&d->calls[2], "output"), "{\"v\":1}");
    ck_assert_str_eq(drive_request(&d->calls[2], "envelope.outputs"), "{}"); /* policies: before it is stored */
    ck_assert_str_eq(drive_request(&d->calls[4], "envelope.outputs"), "{\"a\":{\"v\":1}}");
    ck_assert_str_eq(drive_request(&d->calls[4], "hook"), "\"post_process\"");
    ck_assert_str_eq(
        drive_story(d),
        "pipeline_started stage_started:a llm_call_start:a llm_result:a stage_completed:a=success "
        "routing_decision:a>b stage_started:b stage_completed:b=success routing_decision:b>end done:completed");
    ck_assert_str_eq(drive_state(d, "processing_history.0.status"), "\"success\"");
    ck_assert_str_eq(drive_state(d, "processing_history.0.llm_calls"), "1");
    ck_assert_str_eq(drive_state(d, "processing_history.0.duration_ms"), "6");
    ck_assert_str_eq(drive_state(d, "current_stage"), "\"end\"");
    drive_free(d);
}
END_TEST

/* Proves 5.2/8: Then routing, which overrides the stage that a hook put there */
START_TEST(routing_overrides_the_stage_that_a_hook_put_there)
{
    struct drive *d = drive_new(full, NULL, 0);

    DRIVE_ANSWERS(d, {"llm:a", "{'v':1}", false, 0}, {"hook:x.post", "{'envelope':{'current_stage':'a'}}", false, 0},
                  {"route:x.route", "{'next':'end'}", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "current_stage"), "\"end\"");
    ck_assert_str_eq(drive_state(d, "agent_hop_count"), "1");
    drive_free(d);
}
END_TEST

/* --- failures (5.3): where it fails, with what type, and what the run ends with when nothing catches it (7.5) --- */

static const struct {
    const char *to, *reply, *type, *reason, *text;
} failures[] = {
    {"hook:x.pre", "!:boom", "HookError", "tool_failed_fatally", "boom"},
    {"hook:x.pre", "!TimeoutError:boom", "TimeoutError", "tool_failed_fatally", "boom"},
    {"hook:x.pre", "nonsense", "HookError", "tool_failed_fatally", "x.pre"},
    {"llm:a", "!:no route", "LLMError", "llm_failed_fatally", "generation failed"},
    {"llm:a", "!TimeoutError:late", "TimeoutError", "llm_failed_fatally", "generation failed"},
    {"llm:a", "no object", "ParseError", "llm_failed_fatally", "no JSON object"},
    {"llm:a", "\xff{'v':1}", "ParseError", "llm_failed_fatally", "UTF-8"},
    {"llm:a", "{'w':1}", "ValidationError", "llm_failed_fatally", "\\\"v\\\" is missing"},
    {"llm:a", "{'v':1,'outcome':'great'}", "ValidationError", "tool_failed_fatally", "great"},
    {"llm:a", "{'v':1,'outcome':'error','error':'can not'}", "ProcessingError", "tool_failed_fatally", "can not"},
    {"llm:a", "{'v':1,'outcome':'error','reason':'why not'}", "ProcessingError", "tool_failed_fatally", "why not"},
    {"llm:a", "{'v':1,'outcome':'error'}", "ProcessingError", "tool_failed_fatally",
     "agent \\\"a\\\" reported an error"},
    {"policy:x.p1", "{'decision':'deny','reason':'secret'}", "PolicyError", "policy_violation", "secret"},
    {"policy:x.p2", "{'decision':'deny'}", "PolicyError", "policy_violation", "x.p2"},
    {"policy:x.p1", "{'decision':'maybe'}", "PolicyError", "policy_violation", "maybe"},
    {"policy:x.p1", "{}", "PolicyError", "policy_violation", "no decision"},
    {"policy:x.p1", "", "PolicyError", "policy_violation", "no decision"},
    {"policy:x.p1", "null", "PolicyError", "policy_violation", "no decision"},
    {"policy:x.p1", "[]", "PolicyError", "policy_violation", "x.p1"},
    {"policy:x.p1", "!:down", "PolicyError", "policy_violation", "down"},
    {"hook:x.post", "!:rejected", "HookError", "tool_failed_fatally", "rejected"},
    {"hook:x.post", "{'output':[1]}", "HookError", "tool_failed_fatally", "no object"},
    {"hook:x.post", "{'output':{'outcome':'error','error':'late'}}", "ProcessingError", "tool_failed_fatally", "late"},
    {"hook:x.post", "{'output':{'outcome':'odd'}}", "ValidationError", "tool_failed_fatally", "odd"},
    {"route:x.route", "!:lost", "HookError", "tool_failed_fatally", "lost"},
};

static void fail_at(size_t i, struct drive *d)
{
    struct drive_answer answers[] = {{failures[i].to, failures[i].reply, false, 0}, {"llm:a", "{'v':1}", true, 0}};
    char want[64];

    drive_answers(d, answers, RV_COUNT(answers));
    drive_run(d);
    snprintf(want, sizeof want, "\"%s\"", failures[i].type);
    ck_assert_msg(strcmp(drive_state(d, "errors.0.error_type"), want) == 0, "%s %s: %s", failures[i].to,
                  failures[i].reply, drive_state(d, "errors.0"));
    ck_assert_msg(strstr(drive_state(d, "errors.0.error"), failures[i].text) != NULL, "%s: %s", failures[i].text,
                  drive_state(d, "errors.0.error"));
    ck_assert_str_eq(drive_state(d, "errors.n"), "1");
    ck_assert_str_eq(drive_state(d, "errors.0.agent"), "\"a\"");
    ck_assert_str_ne(drive_state(d, "errors.0.timestamp"), "absent");
    ck_assert_str_eq(drive_state(d, "processing_history.0.status"), "\"error\"");
    ck_assert_str_ne(drive_state(d, "processing_history.0.error"), "absent");
    ck_assert_str_eq(drive_state(d, "outputs.a"), "absent"); /* not stored, or taken back (W25) */
    drive_answers(d, NULL, 0);
}

/* Proves 5.3/record: A failure appends agent, error, error_type and timestamp to errors; the type says what failed
 * Proves 5.3/unrouted: Without it the position stays and the failure ends the run
 * Proves 5.5/failure: A provider's error fails the stage; the text says that generation failed and why
 * Proves 7.5/llm: A failure of a model, of extraction or of a model stage's fields: llm_failed_fatally
 * Proves 7.5/policy: A policy's no: policy_violation
 * Proves 7.5/other: Anything else: tool_failed_fatally
 * Proves 10/unrouted: A failure without an error route never falls through to default_next
 * Proves W05: A failure has its own status and reason
 * Proves 5.9/target, 5.10 */
START_TEST(an_unrouted_failure_ends_the_run_with_its_reason)
{
    struct drive *d = drive_new(full, NULL, 0);
    char want[64];

    fail_at((size_t)_i, d);
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_FAILED);
    snprintf(want, sizeof want, "\"%s\"", failures[_i].reason);
    ck_assert_msg(strcmp(drive_state(d, "terminal_reason"), want) == 0, "%s %s: %s", failures[_i].to,
                  failures[_i].reply, drive_state(d, "terminal_reason"));
    ck_assert_str_eq(drive_state(d, "terminated"), "true");
    ck_assert_str_eq(drive_state(d, "current_stage"), "\"a\""); /* unchanged */
    json_object *line = drive_line(d, "stage_completed", 0);
    const char *text = NULL;
    ck_assert(rv_json_get_text(line, "error_type", &text));
    ck_assert_str_eq(text, failures[_i].type);
    ck_assert_msg(strstr(drive_story(d), "stage_completed:a=error error:a done:failed") != NULL, "%s", drive_story(d));
    drive_free(d);
}
END_TEST

/* Proves 5.3/routed: With error_next the run goes on there and rules are not looked at
 * Proves 10/one-order: Error route, then function or rules, then default_next, then the end; the decision and its
 * reason are told
 * Proves 5.2/9 */
START_TEST(a_failure_with_error_next_goes_there_and_rules_are_not_looked_at)
{
    rv_buf yaml = RV_BUF_INIT(4096);
    const char *cut = strstr(full, "    required_output_fields");

    rv_buf_add(&yaml, full, (size_t)(cut - full));
    rv_buf_puts(&yaml, "    error_next: b\n    routing_rules: [{condition: v, value: 1, target: end}]\n");
    rv_buf_puts(&yaml, cut);
    struct drive *d = drive_new(rv_buf_cstr(&yaml), NULL, 0);
    fail_at((size_t)_i, d);
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "agent_hop_count"), "2");
    ck_assert_msg(strstr(drive_story(d), "stage_completed:a=error routing_decision:a>b stage_started:b") != NULL, "%s",
                  drive_story(d));
    ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"completed\"");
    json_object *line = drive_line(d, "routing_decision", 0);
    const char *text = NULL;
    ck_assert(rv_json_get_text(line, "reason", &text));
    ck_assert_str_eq(text, "error_route");
    drive_free(d);
    rv_buf_fini(&yaml);
}
END_TEST

/* Proves 5.2/7: Then the post_process hook; when it fails the stored output is taken back
 * Proves W25: After a failing post_process the previous output, or its absence, is restored */
START_TEST(a_rejected_output_gives_way_to_the_previous_one)
{
    struct drive *d = drive_new(HEAD "output_key: out\n    post_process: x.post\n" TAIL, NULL, 0);

    drive_envelope(d, "{'outputs':{'out':{'old':1}}}");
    DRIVE_ANSWERS(d, {"hook:x.post", "!:no", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_FAILED);
    ck_assert_str_eq(drive_state(d, "outputs"), "{\"out\":{\"old\":1}}");
    drive_free(d);
}
END_TEST

/* --- modes (5.4) --- */

/* Proves 5.4: The mode is the first that applies: mock (asked for, and there is one), model, tools, service; a
 * service stage puts out an empty object
 * Proves W24: Catalog, mocks and hooks are given when the run is made, and looked up by name
 * Proves 5.1/parts, 5.1/checks, 5.2/4 */
START_TEST(the_mode_is_the_first_that_applies)
{
    bool use_mock = _i & 1, handler = _i & 2, llm = _i & 4, tools = _i & 8, by_option = _i & 16;
    rv_buf yaml = RV_BUF_INIT(4096);

    rv_buf_puts(&yaml, HEAD);
    if (use_mock && !by_option)
        rv_buf_puts(&yaml, "mock: true\n    ");
    if (handler)
        rv_buf_puts(&yaml, "mock_handler: x.mock\n    ");
    if (llm)
        rv_buf_puts(&yaml, LLM);
    if (tools)
        rv_buf_puts(&yaml, "has_tools: true\n    tool_access: all\n    ");
    rv_buf_puts(&yaml, "max_visits: 5\n" TAIL);
    struct drive *d = drive_new(rv_buf_cstr(&yaml), NULL, 0);
    d->opts.use_mocks = use_mock && by_option;
    DRIVE_ANSWERS(d, {"mock:x.mock", "{'by':'mock'}", false, 0}, {"llm:a", "{'by':'llm'}", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    const char *want = use_mock && handler ? "{\"by\":\"mock\"}"
                       : llm               ? "{\"by\":\"llm\"}"
                       : tools             ? "{\"results\":[],\"total_time_ms\":0,\"all_succeeded\":true}"
                                           : "{}";
    ck_assert_str_eq(drive_state(d, "outputs.a"), want);
    ck_assert_str_eq(drive_state(d, "llm_call_count"), llm && !(use_mock && handler) ? "1" : "0");
    drive_free(d);
    rv_buf_fini(&yaml);
}
END_TEST

/* Proves 5.1/checks, W24 */
START_TEST(a_scripted_stage_is_answered_by_its_script)
{
    static const bool scripted[] = {true, false};
    struct drive *d = drive_new(HEAD LLM "default_next: b\n    required_output_fields: [v]\n" TAIL, NULL, 0);

    d->opts.scripted_stages = scripted;
    DRIVE_ANSWERS(d,
                  {"mock:script", "{'output':{'v':1},'raise':{'kind':'clarification','question':'which?'}}", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_str_eq(drive_state(d, "outputs.a"), "{\"v\":1}");
    ck_assert_str_eq(drive_state(d, "current_stage"), "\"b\""); /* 7.3: a raised interrupt does not stop the routing */
    ck_assert_str_eq(drive_state(d, "interrupt.question"), "\"which?\"");
    ck_assert_str_eq(drive_state(d, "llm_call_count"), "0");
    drive_free(d);
}
END_TEST

static const struct {
    const char *reply, *type, *want;
} mocks[] = {
    {"{'v':2}", NULL, "{\"v\":2}"},
    {"{'w':2}", "\"ValidationError\"", "absent"}, /* 5.7 applies to mocks */
    {"", "\"ValidationError\"", "absent"},
    {"null", "\"ValidationError\"", "absent"},
    {"[1]", "\"ProcessingError\"", "absent"},
    {"garbage", "\"ProcessingError\"", "absent"},
    {"!:x", "\"ProcessingError\"", "absent"},
    {"!LLMError:x", "\"LLMError\"", "absent"},
    {"{'v':1,'outcome':'error'}", "\"ProcessingError\"", "absent"},
};

/* Proves 5.2/garbage, 5.7 */
START_TEST(whatever_a_mock_answers_is_checked)
{
    struct drive_answer answer = {"mock:x.mock", mocks[_i].reply, false, 0};
    struct drive *d =
        drive_new(HEAD "mock: true\n    mock_handler: x.mock\n    required_output_fields: [v]\n" TAIL, NULL, 0);

    drive_answers(d, &answer, 1);
    drive_run(d);
    ck_assert_str_eq(drive_state(d, "outputs.a"), mocks[_i].want);
    ck_assert_str_eq(drive_state(d, "errors.0.error_type"), mocks[_i].type ? mocks[_i].type : "absent");
    drive_free(d);
}
END_TEST

/* --- required fields (5.7) --- */

static const struct {
    const char *reply, *missing;
} required[] = {
    {"{'x':1,'y':2}", NULL},  {"{'x':null,'y':null}", NULL}, {"{'y':2}", "\\\"x\\\""},
    {"{'x':1}", "\\\"y\\\""}, {"{}", "\\\"x\\\""},           {"{'in':{'x':1,'y':1}}", "\\\"x\\\""},
};

/* Proves 5.2/5: Then the required output fields; an output that lacks one is not stored
 * Proves 5.7: Required fields are looked for in order at the top level, null counts; the first missing one fails
 * the stage, whatever its mode, and the text names both */
START_TEST(the_first_missing_field_fails_the_stage)
{
    struct drive_answer answer = {"llm:a", required[_i].reply, false, 0};
    struct drive *d = drive_new(HEAD LLM "required_output_fields: [x, y]\n" TAIL, NULL, 0);

    drive_answers(d, &answer, 1);
    drive_run(d);
    const char *error = drive_state(d, "errors.0.error");
    if (!required[_i].missing)
        ck_assert_str_eq(error, "absent");
    else
        ck_assert_msg(strstr(error, required[_i].missing) && strstr(error, "\\\"a\\\""), "%s", error);
    drive_free(d);
}
END_TEST

/* --- outcomes (5.9) --- */

static const struct {
    const char *reply;
    enum rv_run_status status;
    const char *path, *want, *path2, *want2;
} outcomes[] = {
    {"{'outcome':'success'}", RV_RUN_COMPLETED, "processing_history.0.status", "\"success\"", "agent_hop_count", "2"},
    {"{'outcome':'partial'}", RV_RUN_COMPLETED, "processing_history.0.status", "\"success\"", "agent_hop_count", "2"},
    {"{'outcome':'skip'}", RV_RUN_COMPLETED, "processing_history.0.status", "\"skipped\"", "agent_hop_count", "2"},
    {"{'outcome':5}", RV_RUN_COMPLETED, "outputs.a.outcome", "5", "agent_hop_count", "2"},
    {"{'outcome':null}", RV_RUN_COMPLETED, "outputs.a.outcome", "null", "agent_hop_count", "2"},
    {"{'outcome':'clarify','clarification_question':'q1','question':'q2'}", RV_RUN_INTERRUPTED, "interrupt.question",
     "\"q1\"", "current_stage", "\"a\""},
    {"{'outcome':'clarify','question':'q2'}", RV_RUN_INTERRUPTED, "interrupt.question", "\"q2\"", "interrupt.kind",
     "\"clarification\""},
    {"{'outcome':'clarify'}", RV_RUN_INTERRUPTED, "interrupt.kind", "\"clarification\"", "outputs.a.outcome",
     "\"clarify\""},
    {"{'outcome':'confirm','confirmation_message':'m1','message':'m2'}", RV_RUN_INTERRUPTED, "interrupt.message",
     "\"m1\"", "current_stage", "\"a\""},
    {"{'outcome':'confirm','message':'m2'}", RV_RUN_INTERRUPTED, "interrupt.message", "\"m2\"", "interrupt.kind",
     "\"confirmation\""},
    {"{'outcome':'replan','feedback':'more'}", RV_RUN_COMPLETED, "loop_feedback", "[\"more\"]", "iteration", "0"},
    {"{'outcome':'loop_back','feedback':'more'}", RV_RUN_COMPLETED, "loop_feedback", "[\"more\"]", "agent_hop_count",
     "2"},
    {"{'outcome':'loop_back'}", RV_RUN_COMPLETED, "loop_feedback", "[]", "iteration", "0"},
    {"{'outcome':'success','feedback':'more'}", RV_RUN_COMPLETED, "loop_feedback", "[]", "iteration", "0"},
    {"{'outcome':'terminate','reason':'enough'}", RV_RUN_TERMINATED, "termination_reason", "\"enough\"",
     "terminal_reason", "\"completed\""},
    {"{'outcome':'terminate'}", RV_RUN_TERMINATED, "terminated", "true", "agent_hop_count", "1"},
    {"{'outcome':'terminate','break':true,'reason':'enough'}", RV_RUN_TERMINATED, "termination_reason", "\"enough\"",
     "terminal_reason", "\"break_requested\""},
    {"{'outcome':'terminate','break':'yes'}", RV_RUN_TERMINATED, "terminal_reason", "\"completed\"", "terminated",
     "true"},
    {"{'break':true}", RV_RUN_COMPLETED, "terminal_reason", "\"completed\"", "terminated", "false"},
    {"{'outcome':'error','error':'e'}", RV_RUN_FAILED, "termination_reason", "\"e\"", "outputs", "{}"},
};

/* Proves 5.9/none: success, partial and skip change nothing; skip stands in the history as skipped
 * Proves 5.9/clarify: clarify raises a question, unless one is pending; the stage stays current
 * Proves 5.9/confirm: confirm does the same with a confirmation
 * Proves 5.9/loop: replan and loop_back route as always; their feedback is kept
 * Proves 5.9/error: error fails the stage with its text, and nothing is stored
 * Proves 10/break: Outcome terminate with `break`, or a routing function's `break`, ends the run with
 * break_requested
 * Proves W01: Outcomes have effects */
START_TEST(an_outcome_has_its_effect)
{
    struct drive_answer answer = {"llm:a", outcomes[_i].reply, false, 0};
    struct drive *d = drive_new(HEAD LLM "default_next: b\n" TAIL, NULL, 0);

    drive_answers(d, &answer, 1);
    ck_assert_msg(drive_run(d) == outcomes[_i].status, "%s: %s", outcomes[_i].reply, drive_story(d));
    ck_assert_msg(strcmp(drive_state(d, outcomes[_i].path), outcomes[_i].want) == 0, "%s: %s", outcomes[_i].reply,
                  drive_state(d, outcomes[_i].path));
    ck_assert_msg(strcmp(drive_state(d, outcomes[_i].path2), outcomes[_i].want2) == 0, "%s: %s", outcomes[_i].reply,
                  drive_state(d, outcomes[_i].path2));
    drive_free(d);
}
END_TEST

/* Proves 5.9/terminate: terminate ends the run with its reason, after routing */
START_TEST(terminate_takes_effect_after_routing)
{
    struct drive *d = drive_new(HEAD LLM "default_next: b\n" TAIL, NULL, 0);

    DRIVE_ANSWERS(d, {"llm:a", "{'outcome':'terminate'}", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_TERMINATED);
    ck_assert_str_eq(drive_state(d, "current_stage"), "\"b\"");
    ck_assert_str_eq(drive_story(d), "pipeline_started stage_started:a llm_call_start:a llm_result:a "
                                     "stage_completed:a=success routing_decision:a>b done:terminated");
    drive_free(d);
}
END_TEST

START_TEST(a_stage_that_states_terminate_but_can_not_be_routed_fails)
{
    struct drive *d = drive_new(HEAD LLM "routing_rules: [{when: 'output.x == 1', target: b}]\n" TAIL, NULL, 0);

    DRIVE_ANSWERS(d, {"llm:a", "{'outcome':'terminate'}", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_FAILED);
    ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"tool_failed_fatally\"");
    drive_free(d);
}
END_TEST

static const struct {
    const char *rule, *reply, *kind, *text;
} specials[] = {
    {"clarification", "{'v':1,'question':'q'}", "\"clarification\"", "\"q\""},
    {"confirmation", "{'v':1,'message':'m'}", "\"confirmation\"", "\"m\""},
};

/* Proves 5.9/target: The targets clarification and confirmation act as those outcomes; a word that is no outcome
 * fails the stage */
START_TEST(a_special_target_acts_as_its_outcome)
{
    struct drive_answer answer = {"llm:a", specials[_i].reply, false, 0};
    rv_buf yaml = RV_BUF_INIT(4096);

    rv_buf_printf(&yaml, HEAD LLM "routing_rules: [{condition: v, value: 1, target: %s}]\n" TAIL, specials[_i].rule);
    struct drive *d = drive_new(rv_buf_cstr(&yaml), NULL, 0);
    drive_answers(d, &answer, 1);
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED); /* W21 */
    ck_assert_str_eq(drive_state(d, "interrupt.kind"), specials[_i].kind);
    ck_assert_str_eq(drive_state(d, _i ? "interrupt.message" : "interrupt.question"), specials[_i].text);
    ck_assert_str_eq(drive_state(d, "current_stage"), "\"a\"");
    ck_assert_str_eq(drive_state(d, "errors"), "[]");
    /* a decision follows the completion of its stage */
    ck_assert_msg(strstr(drive_story(d), "stage_completed:a=success routing_decision:a>") != NULL, "%s",
                  drive_story(d));
    ck_assert_msg(strstr(drive_story(d), "interrupt_pending:a done:interrupted") != NULL, "%s", drive_story(d));
    drive_free(d);
    rv_buf_fini(&yaml);
}
END_TEST

START_TEST(a_special_error_target_asks_with_the_error)
{
    struct drive *d = drive_new(HEAD LLM "error_next: clarification\n" TAIL, NULL, 0);

    DRIVE_ANSWERS(d, {"llm:a", "!:no model", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_msg(strstr(drive_state(d, "interrupt.question"), "no model") != NULL, "%s", drive_state(d, "interrupt"));
    ck_assert_str_eq(drive_state(d, "errors.n"), "1");
    ck_assert_str_eq(drive_state(d, "current_stage"), "\"a\"");
    drive_free(d);
}
END_TEST

/* Proves 5.9/pending: A pending interrupt is not replaced by an outcome
 * Proves 5.9/clarify */
START_TEST(a_pending_interrupt_is_not_replaced_by_an_outcome)
{
    struct drive *d = drive_new(HEAD LLM "pre_process: x.pre\n" TAIL, NULL, 0);

    DRIVE_ANSWERS(
        d,
        {"hook:x.pre",
         "{'envelope':{'interrupt_pending':true,'interrupt':{'kind':'agent_review','id':'int_1','message':'see',"
         "'data':{},'created_at':'2023-11-14T22:13:20Z'}}}",
         false, 0},
        {"llm:a", "{'outcome':'clarify','question':'q'}", false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_str_eq(drive_state(d, "interrupt.kind"), "\"agent_review\"");
    ck_assert_str_eq(drive_state(d, "current_stage"), "\"a\"");
    drive_free(d);
}
END_TEST

START_TEST(a_question_of_a_hook_names_the_stage_that_asked)
{
    struct drive *d =
        drive_new("name: t\nagents:\n  - {name: a, post_process: x.post, default_next: b}\n  - {name: b}\n", NULL, 0);

    DRIVE_ANSWERS(d, {"hook:x.post",
                      "{'envelope':{'interrupt_pending':true,'interrupt':{'kind':'agent_review','id':'int_1',"
                      "'message':'see','data':{},'created_at':'2023-11-14T22:13:20Z'}}}",
                      false, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_str_eq(drive_state(d, "current_stage"), "\"b\"");
    ck_assert_msg(strstr(drive_story(d), "interrupt_pending:a done:interrupted") != NULL, "%s", drive_story(d));
    ck_assert_str_eq(rv_run_asked_by(d->run), "a"); /* which the row of the question has */
    drive_free(d);
}
END_TEST

TCase *visit_case(void)
{
    TCase *tc = tcase_create("visit");

    tcase_add_test(tc, a_visit_does_its_steps_in_order);
    tcase_add_test(tc, routing_overrides_the_stage_that_a_hook_put_there);
    tcase_add_loop_test(tc, an_unrouted_failure_ends_the_run_with_its_reason, 0, RV_COUNT(failures));
    tcase_add_loop_test(tc, a_failure_with_error_next_goes_there_and_rules_are_not_looked_at, 0, RV_COUNT(failures));
    tcase_add_test(tc, a_rejected_output_gives_way_to_the_previous_one);
    tcase_add_loop_test(tc, the_mode_is_the_first_that_applies, 0, 32);
    tcase_add_test(tc, a_scripted_stage_is_answered_by_its_script);
    tcase_add_loop_test(tc, whatever_a_mock_answers_is_checked, 0, RV_COUNT(mocks));
    tcase_add_loop_test(tc, the_first_missing_field_fails_the_stage, 0, RV_COUNT(required));
    tcase_add_loop_test(tc, an_outcome_has_its_effect, 0, RV_COUNT(outcomes));
    tcase_add_test(tc, terminate_takes_effect_after_routing);
    tcase_add_test(tc, a_stage_that_states_terminate_but_can_not_be_routed_fails);
    tcase_add_loop_test(tc, a_special_target_acts_as_its_outcome, 0, RV_COUNT(specials));
    tcase_add_test(tc, a_special_error_target_asks_with_the_error);
    tcase_add_test(tc, a_pending_interrupt_is_not_replaced_by_an_outcome);
    tcase_add_test(tc, a_question_of_a_hook_names_the_stage_that_asked);
    return tc;
}
