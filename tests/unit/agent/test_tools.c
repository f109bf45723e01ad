/* Tool stages: each row of rule 6.1 in the engine's shape (W32 to W38), access, and the confirmation gate. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/agent/suites.h"
#include "tests/unit/run/drive.h"

#define HEAD "name: t\nagents:\n  - name: a\n    stage_order: 1\n    has_tools: true\n    tool_access: all\n    "

static const struct drive_tool tools[] = {
    {"read", RV_RISK_READ_ONLY, NULL, NULL, 0},
    {"put", RV_RISK_WRITE, "{'type':'object','required':['path']}", "{'type':'object','required':['n']}", 5000},
    {"wipe", RV_RISK_DESTRUCTIVE, NULL, NULL, 0},
    {"odd", RV_UNSET, NULL, NULL, 0},
};

static struct drive *tool_stage(const char *more, const char *plan)
{
    rv_buf yaml = RV_BUF_INIT(4096), state = RV_BUF_INIT(65536);

    rv_buf_printf(&yaml, "%s%s\n", HEAD, more);
    struct drive *d = drive_new(rv_buf_cstr(&yaml), tools, RV_COUNT(tools));
    if (plan) {
        rv_buf_printf(&state, "{'envelope_id':'env_1','outputs':{'plan':%s}}", plan);
        drive_envelope(d, rv_buf_cstr(&state));
    }
    rv_buf_fini(&yaml);
    rv_buf_fini(&state);
    return d;
}

/* --- one step each --- */

static const struct {
    const char *step, *reply, *want;
} steps[] = {
    {"{'step_id':'s','tool':'read','parameters':{'p':1}}", "{'x':1}",
     "{'step_id':'s','tool':'read','parameters':{'p':1},'status':'success','execution_time_ms':1,'data':{'x':1}}"},
    {"{'tool':'read'}", "{'data':{'y':2},'x':1}",
     "{'step_id':'step_0','tool':'read','parameters':{},'status':'success','execution_time_ms':1,'data':{'y':2}}"},
    {"{'step_id':7,'tool':'read'}", "{'data':[1]}", /* W35 */
     "{'step_id':'step_0','tool':'read','parameters':{},'status':'success','execution_time_ms':1,'data':{'value':[1]}"
     "}"},
    {"{'tool':'read'}", "{'data':null}",
     "{'step_id':'step_0','tool':'read','parameters':{},'status':'success','execution_time_ms':1,'data':{'value':null}"
     "}"},
    {"'nonsense'", "", /* W36 */
     "{'step_id':'step_0','tool':'','parameters':{},'status':'error','execution_time_ms':0,'error':{'type':'"
     "InvalidStep',"
     "'message':'step 0 can not be run: the step is no object','recoverable':false,'details':{}}}"},
    {"{'parameters':{}}", "",
     "{'step_id':'step_0','tool':'','parameters':{},'status':'error','execution_time_ms':0,'error':{'type':'"
     "InvalidStep',"
     "'message':'step 0 can not be run: the step names no tool','recoverable':false,'details':{}}}"},
    {"{'tool':'read','parameters':[1]}", "{'x':1}",
     "{'step_id':'step_0','tool':'read','parameters':{},'status':'success','execution_time_ms':1,'data':{'x':1}}"},
    {"{'tool':'read','parameters':'p'}", "{'x':1}",
     "{'step_id':'step_0','tool':'read','parameters':{},'status':'success','execution_time_ms':1,'data':{'x':1}}"},
    {"{'tool':'nope'}", "",
     "{'step_id':'step_0','tool':'nope','parameters':{},'status':'error','execution_time_ms':0,'error':{'type':"
     "'NotFoundError','message':*"},
    {"{'tool':'put','parameters':{}}", "",
     "{'step_id':'step_0','tool':'put','parameters':{},'status':'error','execution_time_ms':0,'error':{'type':"
     "'ValidationError','message':*"},
    {"{'tool':'put','parameters':{'path':'x'}}", "{'n':1}",
     "{'step_id':'step_0','tool':'put','parameters':{'path':'x'},'status':'success','execution_time_ms':1,'data':{'n':"
     "1}}"},
    {"{'tool':'put','parameters':{'path':'x'}}", "{'m':1}", /* the output schema */
     "{'step_id':'step_0','tool':'put','parameters':{'path':'x'},'status':'error','execution_time_ms':*"},
    {"{'tool':'read'}", "!:disk full",
     "{'step_id':'step_0','tool':'read','parameters':{},'status':'error','execution_time_ms':1,'error':{'type':"
     "'ExecutionError','message':'disk full','recoverable':false,'details':{}}}"},
    {"{'tool':'read'}", "!TimeoutError:late",
     "{'step_id':'step_0','tool':'read','parameters':{},'status':'error','execution_time_ms':1,'error':{'type':"
     "'TimeoutError','message':'late','recoverable':false,'details':{}}}"},
    {"{'tool':'read'}", "null",
     "{'step_id':'step_0','tool':'read','parameters':{},'status':'error','execution_time_ms':1,'error':{'type':"
     "'ExecutionError'*"},
    {"{'tool':'read'}", "garbage",
     "{'step_id':'step_0','tool':'read','parameters':{},'status':'error','execution_time_ms':1,'error':{'type':"
     "'ExecutionError'*"},
    {"{'tool':'read'}", "{'status':'failed','error':'no such file'}", /* W33 */
     "{'step_id':'step_0','tool':'read','parameters':{},'status':'error','execution_time_ms':1,'error':{'type':'"
     "ToolError',"
     "'message':'no such file','recoverable':false,'details':{}}}"},
    {"{'tool':'read'}", "{'error':{'type':'Busy','message':'later','recoverable':true}}", /* W38 */
     "{'step_id':'step_0','tool':'read','parameters':{},'status':'error','execution_time_ms':1,'error':{'type':'Busy',"
     "'message':'later','recoverable':true*"},
    {"{'tool':'read'}", "{'error':null,'x':1}", /* W38 */
     "{'step_id':'step_0','tool':'read','parameters':{},'status':'success','execution_time_ms':1,'data':{'error':null,'"
     "x':1}}"},
    {"{'tool':'read'}", "{'status':'timeout'}", /* W38 */
     "{'step_id':'step_0','tool':'read','parameters':{},'status':'error'*"},
};

/* Proves 6.1/invalid: A step that is no object, or names no tool, gets an InvalidStep result in its place
 * Proves 6.1/ids: A step without an id is step_ and its position from 0; missing parameters are an empty object
 * Proves 6.1/parameters: Parameters that are not an object are an empty object */
START_TEST(a_step_has_one_result_of_one_shape)
{
    struct drive_answer answers[] = {{"tool:read", steps[_i].reply, false, 0}, {"tool:put", steps[_i].reply, false, 0}};
    rv_buf plan = RV_BUF_INIT(4096);
    char *want = rv_str_dup(rv_str_of(steps[_i].want));

    rv_buf_printf(&plan, "{'steps':[%s]}", steps[_i].step);
    struct drive *d = tool_stage("", rv_buf_cstr(&plan));
    drive_answers(d, answers, RV_COUNT(answers));
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED); /* a failing step does not fail the stage */
    for (char *c = want; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    const char *got = drive_state(d, "outputs.a.results.0");
    size_t n = strcspn(want, "*");
    ck_assert_msg(want[n] ? strncmp(got, want, n) == 0 : strcmp(got, want) == 0, "%s\nwanted %s", got, want);
    bool good = strstr(want, "\"status\":\"success\"") != NULL;
    ck_assert_str_eq(drive_state(d, "outputs.a.all_succeeded"), good ? "true" : "false");
    ck_assert_str_eq(drive_state(d, "outputs.a.results.n"), "1");
    drive_free(d);
    free(want);
    rv_buf_fini(&plan);
}
END_TEST

static const struct {
    const char *plan, *output, *error;
} plans[] = {
    {NULL, "{\"results\":[],\"total_time_ms\":0,\"all_succeeded\":true}", NULL},
    {"{}", "{\"results\":[],\"total_time_ms\":0,\"all_succeeded\":true}", NULL},
    {"{'steps':[]}", "{\"results\":[],\"total_time_ms\":0,\"all_succeeded\":true}", NULL},
    {"null", "{\"results\":[],\"total_time_ms\":0,\"all_succeeded\":true}", NULL},
    {"{'steps':{'0':1}}", "absent", "must be a list"}, /* W36 */
    {"{'steps':'all'}", "absent", "must be a list"},
    {"{'steps':null}", "{\"results\":[],\"total_time_ms\":0,\"all_succeeded\":true}", NULL},
    {"{'steps':[1,2,3,4]}", "absent", "max_plan_steps"},
};

/* Proves 6.1/empty: No plan, or a plan without steps: no results, and all succeeded
 * Proves W23/run: Limits of plans, loop-backs off, confirmation off, timeouts and caps on attempts have effect
 * Proves W32: plan_from says where the plan is */
START_TEST(a_plan_without_steps_is_empty_and_a_wrong_one_fails)
{
    struct drive *d = tool_stage("\nexecution: {max_plan_steps: 3}", plans[_i].plan);

    drive_run(d);
    ck_assert_str_eq(drive_state(d, "outputs.a"), plans[_i].output);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 0);
    if (plans[_i].error)
        ck_assert_msg(strstr(drive_state(d, "errors.0.error"), plans[_i].error) != NULL, "%s",
                      drive_state(d, "errors"));
    else
        ck_assert_int_eq(rv_run_status(d->run), RV_RUN_COMPLETED);
    drive_free(d);
}
END_TEST

/* Proves 6.1/order: Steps run in order, a failing one stops neither the others nor the stage; times add up */
START_TEST(steps_run_in_order_and_all_of_them)
{
    struct drive *d = tool_stage("plan_from: my.plan", NULL); /* W32 */

    drive_envelope(
        d, "{'envelope_id':'env_1','outputs':{'my.plan':{'steps':[{'tool':'read'},{'tool':'nope'},7,"
           "{'tool':'odd','parameters':null},{'tool':'read','step_id':'last'}]},'plan':{'steps':[{'tool':'wipe'}]}}}");
    DRIVE_ANSWERS(d, {"tool:read", "!:no", false, 20000}, {"tool:odd", "{'k':1}", false, 5000});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_str_eq(drive_state(d, "outputs.a.results.n"), "5");
    ck_assert_str_eq(drive_state(d, "outputs.a.results.2.step_id"), "\"step_2\"");
    ck_assert_str_eq(drive_state(d, "outputs.a.results.3.status"), "\"success\"");
    ck_assert_str_eq(drive_state(d, "outputs.a.results.4.step_id"), "\"last\"");
    ck_assert_str_eq(drive_state(d, "outputs.a.total_time_ms"), "26");
    ck_assert_str_eq(drive_state(d, "outputs.a.all_succeeded"), "false");
    ck_assert_str_eq(drive_story(d),
                     "pipeline_started stage_started:a tool_call_start:a tool_result:a tool_result:a tool_result:a "
                     "tool_call_start:a tool_result:a tool_call_start:a tool_result:a stage_completed:a=success "
                     "routing_decision:a>end done:completed");
    drive_free(d);
}
END_TEST

/* --- access (6.2) as the stage applies it; the table itself is proved with rv_tool_allowed() --- */

static const struct {
    const char *access, *tool;
    bool runs;
} access_cases[] = {
    {"tool_access: none", "read", false},    {"tool_access: read", "read", true},
    {"tool_access: read", "put", false},     {"tool_access: write", "put", true},
    {"tool_access: write", "wipe", false},   {"tool_access: all\n    allowed_tools: [put]", "read", false},
    {"allowed_tools: [read]", "read", true}, {"allowed_tools: []", "read", false},
    {"max_retries: 0", "read", false},       {"allowed_tools: {read: false}", "read", false},
};

/* Proves 6.1/denied: A tool that is not granted does not run; its result has the same shape
 * Proves 10/access: What a stage may call is denied unless granted, and checked again when it is called */
START_TEST(a_tool_that_is_not_granted_does_not_run)
{
    rv_buf yaml = RV_BUF_INIT(4096), state = RV_BUF_INIT(4096);

    rv_buf_printf(&yaml, "name: t\nagents:\n  - name: a\n    has_tools: true\n    %s\n", access_cases[_i].access);
    rv_buf_printf(&state, "{'outputs':{'plan':{'steps':[{'tool':'%s','parameters':{'path':'x'}}]}}}",
                  access_cases[_i].tool);
    struct drive *d = drive_new(rv_buf_cstr(&yaml), tools, RV_COUNT(tools));
    drive_envelope(d, rv_buf_cstr(&state));
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), access_cases[_i].runs ? 1 : 0);
    if (!access_cases[_i].runs) {
        ck_assert_str_eq(drive_state(d, "outputs.a.results.0.error.type"), "\"AccessDenied\"");
        ck_assert_str_eq(drive_state(d, "outputs.a.results.0.parameters"), "{\"path\":\"x\"}"); /* W37: one shape */
        ck_assert_msg(strstr(drive_state(d, "outputs.a.results.0.error.message"), access_cases[_i].tool) != NULL, "%s",
                      drive_state(d, "outputs.a.results.0"));
    }
    drive_free(d);
    rv_buf_fini(&yaml);
    rv_buf_fini(&state);
}
END_TEST

/* --- attempts and time --- */

START_TEST(only_a_tool_that_may_be_repeated_is_tried_again)
{
    struct drive *d =
        tool_stage("max_retries: 2", "{'steps':[{'tool':'read'},{'tool':'put','parameters':{'path':'x'}}]}");
    const struct drive_call *c;

    DRIVE_ANSWERS(d, {"tool:read", "?:busy", false, 0}, {"tool:read", "!TimeoutError:slow", false, 0},
                  {"tool:read", "{}", false, 0}, {"tool:put", "?:busy", true, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 4);
    for (size_t i = 0; i < 3; i++) {
        c = drive_call_at(d, RV_EFFECT_CALL_TOOL, i);
        ck_assert_int_eq(c->attempt, (int64_t)i + 1);
        ck_assert_str_eq(c->key, drive_call_at(d, RV_EFFECT_CALL_TOOL, 0)->key); /* the same for every attempt */
    }
    c = drive_call_at(d, RV_EFFECT_CALL_TOOL, 3);
    ck_assert_str_ne(c->key, drive_call_at(d, RV_EFFECT_CALL_TOOL, 0)->key);
    ck_assert_int_eq(c->attempt, 1);
    ck_assert_str_eq(drive_state(d, "outputs.a.results.0.execution_time_ms"), "3003");
    ck_assert_str_eq(drive_state(d, "outputs.a.results.1.error.recoverable"), "true");
    drive_free(d);
}
END_TEST

START_TEST(keys_of_stages_with_long_names_differ)
{
    rv_buf yaml = RV_BUF_INIT(8192);
    char name[90];

    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    rv_buf_printf(&yaml,
                  "name: t\nagents:\n  - {name: %s\xc3\xa9_1, stage_order: 1, has_tools: true, tool_access: all, "
                  "default_next: %s\xc3\xa9_2}\n"
                  "  - {name: %s\xc3\xa9_2, stage_order: 2, has_tools: true, tool_access: all}\n",
                  name, name, name);
    struct drive *d = drive_new(rv_buf_cstr(&yaml), tools, RV_COUNT(tools));
    drive_envelope(d, "{'outputs':{'plan':{'steps':[{'tool':'read'}]}}}");
    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 2);
    ck_assert_str_ne(drive_call_at(d, RV_EFFECT_CALL_TOOL, 0)->key, drive_call_at(d, RV_EFFECT_CALL_TOOL, 1)->key);
    ck_assert_uint_lt(strlen(drive_call_at(d, RV_EFFECT_CALL_TOOL, 1)->key), RV_KEY_MAX);
    ck_assert(rv_utf8_valid(rv_str_of(drive_call_at(d, RV_EFFECT_CALL_TOOL, 0)->key), NULL));
    drive_free(d);
    rv_buf_fini(&yaml);
}
END_TEST

/* Proves 6.1/cancel: Cancellation and the deadline are looked at before each step */
START_TEST(the_deadline_is_looked_at_before_each_step)
{
    struct drive *d = tool_stage("timeout_seconds: 3", "{'steps':[{'tool':'read'},{'tool':'read'},7]}");

    DRIVE_ANSWERS(d, {"tool:read", "{}", false, 3000000});
    ck_assert_int_eq(drive_run(d), RV_RUN_FAILED);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 1);
    ck_assert_str_eq(drive_state(d, "errors.0.error_type"), "\"TimeoutError\"");
    ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"tool_failed_fatally\"");
    drive_free(d);
}
END_TEST

/* Proves 5.5/deadline */
START_TEST(a_tool_call_has_the_nearest_deadline)
{
    struct drive *d = tool_stage("", "{'steps':[{'tool':'put','parameters':{'path':'x'}},{'tool':'read'}]}");

    DRIVE_ANSWERS(d, {"tool:put", "{'n':1}", false, 0});
    drive_run(d);
    ck_assert_int_eq(drive_call_at(d, RV_EFFECT_CALL_TOOL, 0)->deadline_us, DRIVE_T0 + 5000000);
    ck_assert_int_eq(drive_call_at(d, RV_EFFECT_CALL_TOOL, 1)->deadline_us, DRIVE_T0 + DRIVE_LATENCY_US + 30000000);
    drive_free(d);
}
END_TEST

/* --- the gate --- */

#define GATED "{'steps':[{'tool':'read'},{'tool':'wipe','step_id':'w','parameters':{'all':true}},{'tool':'odd'}]}"

/* Proves 6.1/gate: A tool whose risk needs confirmation waits for a yes, runs exactly once after it, and never
 * after a no; the switch turns the gate off
 * Proves 10/gate: A tool that needs confirmation suspends its stage, which goes on with the answer; a no does not
 * run it */
START_TEST(a_destructive_step_waits_and_runs_exactly_once_when_approved)
{
    struct drive *d = tool_stage(
        "pre_process: x.pre\n    post_process: x.post\n    max_visits: 1\nconfirmation_resume_stage: a", GATED);

    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 1);
    ck_assert_str_eq(drive_state(d, "interrupt.kind"), "\"confirmation\"");
    ck_assert_str_eq(drive_state(d, "interrupt.data"),
                     "{\"tool\":\"wipe\",\"step_id\":\"w\",\"stage\":\"a\",\"parameters\":{\"all\":true}}");
    ck_assert_str_eq(drive_state(d, "current_stage"), "\"a\"");
    ck_assert_str_eq(drive_state(d, "outputs.a"), "absent");
    ck_assert_str_eq(drive_state(d, "processing_history.0.status"), "\"skipped\"");
    /* a wrong kind of answer is refused and the interrupt stays */
    struct rv_response nothing = {.text = RV_STR_LIT("yes")};
    rv_err *err = NULL;
    ck_assert_int_eq(drive_resume(d, &nothing, &err), RV_E_INVALID); /* W44 */
    rv_err_free(err);
    ck_assert_int_eq(drive_approve(d, true), RV_RUN_COMPLETED);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 2); /* wipe and odd; read did not run again */
    ck_assert_str_eq(drive_call_at(d, RV_EFFECT_CALL_TOOL, 0)->name, "wipe");
    ck_assert_str_eq(drive_call_at(d, RV_EFFECT_CALL_TOOL, 0)->request, "{\"all\":true}");
    ck_assert_str_eq(drive_call_at(d, RV_EFFECT_CALL_TOOL, 1)->name, "odd");
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_HOOK), 1); /* only the post hook */
    ck_assert_str_eq(drive_state(d, "outputs.a.results.n"), "3");
    ck_assert_str_eq(drive_state(d, "outputs.a.total_time_ms"), "3");
    ck_assert_str_eq(drive_state(d, "suspended"), "{}");
    drive_free(d);
}
END_TEST

/* Proves 10/denied: A denied confirmation does not run the tool
 * Proves 6.1/gate, 10/gate */
START_TEST(a_denied_step_never_runs)
{
    struct drive *d = tool_stage("", GATED);

    drive_run(d);
    ck_assert_int_eq(drive_approve(d, false), RV_RUN_TERMINATED);
    ck_assert_uint_eq(d->n_calls, 0);
    ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"user_cancelled\"");
    drive_free(d);
}
END_TEST

/* Proves 6.1/each: Each destructive step is asked for on its own; foreign answers, torn work and a plan made anew
 * open nothing */
START_TEST(each_destructive_step_is_asked_for_on_its_own)
{
    struct drive *d = tool_stage("", "{'steps':[{'tool':'wipe','step_id':'1'},{'tool':'wipe','step_id':'2'}]}");
    char *first;

    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    first = rv_str_dup(rv_str_of(drive_state(d, "interrupt.id")));
    ck_assert_int_eq(drive_approve(d, true), RV_RUN_INTERRUPTED);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 1);
    ck_assert_str_eq(drive_state(d, "interrupt.data.step_id"), "\"2\"");
    ck_assert_str_ne(drive_state(d, "interrupt.id"), first);
    ck_assert_int_eq(drive_approve(d, true), RV_RUN_COMPLETED);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 1);
    ck_assert_str_eq(drive_state(d, "outputs.a.all_succeeded"), "true");
    free(first);
    drive_free(d);
}
END_TEST

/* Proves 6.1/gate, W23/run */
START_TEST(the_gate_can_be_turned_off)
{
    struct drive *d = tool_stage("\nexecution: {require_confirmation_for_destructive: false}", GATED);

    ck_assert_int_eq(drive_run(d), RV_RUN_COMPLETED); /* W23 */
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 3);
    drive_free(d);
}
END_TEST

/* Proves 6.1/each, 10/denied */
START_TEST(the_approval_of_another_interrupt_opens_no_gate)
{
    struct drive *d = tool_stage("", NULL);

    drive_envelope(
        d, "{'current_stage':'a','stage_order':['a'],'outputs':{'plan':{'steps':[{'tool':'wipe'}]}},"
           "'interrupt':{'kind':'confirmation','id':'int_other','message':'m','data':{},"
           "'created_at':'2023-11-14T22:13:20Z','response':{'approved':true,'received_at':'2023-11-14T22:13:20Z'}},"
           "'suspended':{'a':{'kind':'confirmation_gate','interrupt_id':'int_mine','steps':[{'tool':'wipe'}],"
           "'results':[],'at':0}}}");
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 0);
    drive_free(d);
}
END_TEST

static const char *const torn[] = {
    "{'kind':'confirmation_gate','interrupt_id':'int_1','results':[],'at':1}",
    "{'kind':'confirmation_gate','interrupt_id':'int_1','steps':[{'tool':'read'}],'at':0}",
    "{'kind':'confirmation_gate','interrupt_id':'int_1','steps':[{'tool':'read'}],'results':[],'at':-1}",
    "{'kind':'confirmation_gate','interrupt_id':'int_1','steps':{},'results':[],'at':0}",
    "{'kind':'policy','interrupt_id':'int_1','approved':7}",
    "{'kind':'what'}",
    "{}",
};

/* Proves 6.1/each */
START_TEST(torn_suspended_work_is_dropped_and_approves_nothing)
{
    rv_buf state = RV_BUF_INIT(4096);
    struct drive *d = tool_stage("", NULL);

    rv_buf_printf(
        &state,
        "{'current_stage':'a','stage_order':['a'],'outputs':{'plan':{'steps':[{'tool':'wipe'}]}},"
        "'interrupt':{'kind':'confirmation','id':'int_1','message':'m','data':{},"
        "'created_at':'2023-11-14T22:13:20Z','response':{'approved':true,'received_at':'2023-11-14T22:13:20Z'}},"
        "'suspended':{'a':%s}}",
        torn[_i]);
    drive_envelope(d, rv_buf_cstr(&state));
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 0);
    drive_free(d);
    rv_buf_fini(&state);
}
END_TEST

/* Proves 6.1/each */
START_TEST(a_plan_made_anew_is_not_covered_by_the_old_approval)
{
    struct drive *d =
        drive_new("name: t\nmodels: {r: scripted}\nconfirmation_resume_stage: p\nagents:\n"
                  "  - {name: p, stage_order: 1, output_key: plan, has_llm: true, model_role: r, default_next: a}\n"
                  "  - {name: a, stage_order: 2, has_tools: true, tool_access: all}\n",
                  tools, RV_COUNT(tools));

    DRIVE_ANSWERS(d, {"llm:p", "{'steps':[{'tool':'wipe','parameters':{'n':1}}]}", false, 0},
                  {"llm:p", "{'steps':[{'tool':'wipe','parameters':{'n':2}}]}", true, 0});
    ck_assert_int_eq(drive_run(d), RV_RUN_INTERRUPTED);
    ck_assert_int_eq(drive_approve(d, true), RV_RUN_INTERRUPTED); /* another step: another question */
    ck_assert_uint_eq(drive_n_calls(d, RV_EFFECT_CALL_TOOL), 0);
    ck_assert_int_eq(drive_approve(d, true), RV_RUN_COMPLETED); /* the same plan again */
    ck_assert_str_eq(drive_call_at(d, RV_EFFECT_CALL_TOOL, 0)->request, "{\"n\":2}");
    drive_free(d);
}
END_TEST

TCase *tools_case(void)
{
    TCase *tc = tcase_create("tools");

    tcase_add_loop_test(tc, a_step_has_one_result_of_one_shape, 0, RV_COUNT(steps));
    tcase_add_loop_test(tc, a_plan_without_steps_is_empty_and_a_wrong_one_fails, 0, RV_COUNT(plans));
    tcase_add_test(tc, steps_run_in_order_and_all_of_them);
    tcase_add_loop_test(tc, a_tool_that_is_not_granted_does_not_run, 0, RV_COUNT(access_cases));
    tcase_add_test(tc, only_a_tool_that_may_be_repeated_is_tried_again);
    tcase_add_test(tc, keys_of_stages_with_long_names_differ);
    tcase_add_test(tc, the_deadline_is_looked_at_before_each_step);
    tcase_add_test(tc, a_tool_call_has_the_nearest_deadline);
    tcase_add_test(tc, a_destructive_step_waits_and_runs_exactly_once_when_approved);
    tcase_add_test(tc, a_denied_step_never_runs);
    tcase_add_test(tc, each_destructive_step_is_asked_for_on_its_own);
    tcase_add_test(tc, the_gate_can_be_turned_off);
    tcase_add_test(tc, the_approval_of_another_interrupt_opens_no_gate);
    tcase_add_test(tc, a_plan_made_anew_is_not_covered_by_the_old_approval);
    tcase_add_loop_test(tc, torn_suspended_work_is_dropped_and_approves_nothing, 0, RV_COUNT(torn));
    return tc;
}
