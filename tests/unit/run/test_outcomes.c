/* Tool calls of which nobody knows whether they happened: a person is asked, and the stage goes on with what was done.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/drive.h"
#include "tests/unit/run/suites.h"

#define DAY INT64_C(86400000000)

static const struct drive_tool tools[] = {
    {"read", RV_RISK_READ_ONLY, NULL, NULL, 0},
    {"put", RV_RISK_WRITE, NULL, "{'type':'object','properties':{'n':{'type':'integer'}}}", 0},
    {"wipe", RV_RISK_DESTRUCTIVE, NULL, NULL, 0},
};

#define STAGES                                                                                                         \
    "name: t\nmodels: {r: scripted}\nagent_review_resume_stage: p\nagents:\n"                                          \
    "  - {name: p, stage_order: 1, default_next: a}\n"                                                                 \
    "  - name: a\n    stage_order: 2\n    has_tools: true\n    tool_access: all\n    requires: [p]\n"                  \
    "    plan_from: plan\n    max_retries: 2\n    max_visits: 2\n    default_next: z\n    error_next: e\n"             \
    "  - {name: b, stage_order: 3, has_tools: true, tool_access: all, requires: [p], plan_from: other,"                \
    " default_next: end}\n"                                                                                            \
    "  - {name: z, stage_order: 4, requires: [a], default_next: end}\n"                                                \
    "  - {name: e, stage_order: 5, requires: [z], default_next: end}\n"
#define THREE                                                                                                          \
    "{'steps':[{'tool':'put','parameters':{'i':0}},{'tool':'put','parameters':{'i':1}},"                               \
    "{'tool':'put','parameters':{'i':2}}]}"
#define STATE(plan)                                                                                                    \
    "{'envelope_id':'env_1','outputs':{'plan':" plan ",'other':{'steps':[{'tool':'read'},{'tool':'read'}]}}}"

/* Which calls of stage a have no known outcome, by the order of asking; bit i: the i-th. */
struct fates {
    unsigned unknown, busy;
    int n_asked;
};

static const char *tool_answer(struct drive *d, const struct drive_call *c, bool *handled)
{
    struct fates *f = d->answer_self;

    *handled = c->kind == RV_EFFECT_CALL_TOOL;
    if (!*handled || strcmp(d->p->agents[c->stage].name, "a") != 0)
        return "{'n':1}";
    unsigned bit = 1u << f->n_asked++;
    return f->unknown & bit ? "#" : f->busy & bit ? "?Busy:later" : "{'n':1}";
}

static struct drive *staged(const char *state, bool parallel, struct fates *f)
{
    struct drive *d = drive_new(STAGES, tools, RV_COUNT(tools));

    d->opts.mode = parallel ? RV_MODE_PARALLEL : RV_MODE_SEQUENTIAL;
    d->answer = tool_answer;
    d->answer_self = f;
    drive_envelope(d, state);
    return d;
}

/* The n-th tool call of stage a. */
static const struct drive_call *call_of_a(const struct drive *d, size_t n)
{
    for (size_t i = 0; i < d->n_calls; i++)
        if (d->calls[i].kind == RV_EFFECT_CALL_TOOL && strcmp(d->p->agents[d->calls[i].stage].name, "a") == 0 &&
            n-- == 0)
            return &d->calls[i];
    return NULL;
}

static int decide(struct drive *d, const char *decision, const char *data)
{
    json_object *json = data ? rv_kit_json(data) : NULL;
    const struct rv_response r = {.decision = rv_str_of(decision), .data = json};

    int rc = drive_go_on(d, &r, NULL);
    json_object_put(json);
    return rc;
}

static const struct {
    const char *decision, *data;
    const char *status, *part, *want; /* of the step's result; status NULL: the stage fails */
    int more_calls;                   /* beside one for each step that runs */
} decisions[] = {
    {"happened", "{'n':7}", "\"success\"", "data", "{\"n\":7}", 0},
    {"happened", "{'data':{'n':8},'more':1}", "\"success\"", "data", "{\"n\":8}", 0},
    {"happened", "{'data':[1,2]}", "\"success\"", "data", "{\"value\":[1,2]}", 0},
    {"happened", NULL, "\"success\"", "data", "{}", 0},
    {"happened", "{'n':'seven'}", "\"error\"", "error.type", "\"ValidationError\"", 0},
    {"happened", "{'status':'error','error':'disk full'}", "\"error\"", "error.message", "\"disk full\"", 0},
    {"happened", "[1]", "\"error\"", "error.type", "\"ExecutionError\"", 0}, /* not taken for nothing */
    {"not_happened", NULL, "\"success\"", "data", "{\"n\":1}", 1},
    {"not_happened", "{'n':9}", "\"success\"", "data", "{\"n\":1}", 1}, /* what it gives counts */
    {"fail", NULL, NULL, NULL, NULL, 0},
};

static void check_question(struct drive *d, int at)
{
    char want[300], started[RV_TIME_MAX];
    const struct drive_call *c = call_of_a(d, (size_t)at);

    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_INTERRUPTED);
    ck_assert_str_eq(drive_state(d, "interrupt.kind"), "\"agent_review\"");
    ck_assert_str_eq(drive_state(d, "interrupt.expires_at"), "absent");
    rv_time_format(DRIVE_T0 + at * DRIVE_LATENCY_US, started);
    snprintf(want, sizeof want,
             "{\"tool\":\"put\",\"step_id\":\"step_%d\",\"stage\":\"a\",\"parameters\":{\"i\":%d},"
             "\"reason\":\"outcome_unknown\",\"idempotency_key\":\"%s\",\"started_at\":\"%s\"}",
             at, at, c->key, started);
    ck_assert_str_eq(drive_state(d, "interrupt.data"), want);
    ck_assert_str_eq(drive_state(d, "outputs.a"), "absent");
    ck_assert_str_eq(drive_state(d, "suspended.a.kind"), "\"outcome_unknown\"");
}

static void check_results(struct drive *d, int row, int at)
{
    char path[64];

    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "outputs.a.results.%d.status", i);
        ck_assert_str_eq(drive_state(d, path), i == at ? decisions[row].status : "\"success\"");
    }
    snprintf(path, sizeof path, "outputs.a.results.%d.%s", at, decisions[row].part);
    ck_assert_str_eq(drive_state(d, path), decisions[row].want);
    ck_assert_str_eq(drive_state(d, "outputs.a.results.n"), "3");
    ck_assert_str_eq(drive_state(d, "outputs.z"), "{}");
}

/* Each step is called once, and the one that was said not to have happened again with the key it had. */
static void check_calls(struct drive *d, int row, int at)
{
    bool fails = !decisions[row].status;
    int n = fails ? at + 1 : 3 + decisions[row].more_calls;

    for (int i = 0; i < n; i++) {
        const struct drive_call *c = call_of_a(d, (size_t)i);
        bool again = decisions[row].more_calls && i == at + 1;
        char want[32];
        ck_assert_msg(c != NULL, "call %d of %d", i, n);
        snprintf(want, sizeof want, "{\"i\":%d}", decisions[row].more_calls && i > at ? i - 1 : i);
        ck_assert_str_eq(c->request, want);
        for (int j = 0; j < i; j++)
            ck_assert((strcmp(c->key, call_of_a(d, (size_t)j)->key) == 0) == (again && j == at));
    }
    ck_assert_ptr_null(call_of_a(d, (size_t)n));
}

/* Proves 3.6/outcome: An agent_review about a call of which nobody knows whether it happened never expires, and is
 * decided by happened, not_happened or fail */
START_TEST(the_answer_about_an_unknown_outcome_decides)
{
    int row = _i / 12, at = _i / 4 % 3;
    bool parallel = _i & 1, waits_long = _i & 2;
    struct fates f = {.unknown = 1u << at};
    struct drive *d = staged(STATE(THREE), parallel, &f);
    bool fails = !decisions[row].status;

    drive_run(d);
    check_question(d, at);
    if (waits_long)
        d->now_us += 400 * DAY;
    ck_assert_int_eq(decide(d, decisions[row].decision, decisions[row].data), 0);
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_COMPLETED);
    check_calls(d, row, at);
    if (!fails)
        check_results(d, row, at);
    ck_assert_str_eq(drive_state(d, "suspended"), "{}");
    ck_assert_str_eq(drive_state(d, "stage_visits.a"), "2"); /* max_visits is 2: the pause uses none up */
    ck_assert_str_eq(drive_state(d, "stage_visits.p"), "1"); /* the resume stage of reviews is not for these */
    ck_assert_str_eq(drive_state(d, "stage_visits.e"), fails ? "1" : parallel ? "1" : "absent");
    if (parallel) { /* the sibling is done and stays so */
        ck_assert_str_eq(drive_state(d, "stage_visits.b"), "1");
        ck_assert_str_eq(drive_state(d, "outputs.b.results.n"), "2");
    }
    if (fails) {
        ck_assert_str_eq(drive_state(d, "errors.0.error_type"), "\"ToolError\"");
        ck_assert_str_eq(drive_state(d, "outputs.z"), "absent");
    }
    ck_assert(drive_replays(d, STATE(THREE)));
    drive_free(d);
}
END_TEST

START_TEST(hops_are_counted_for_the_visit_that_asked_and_for_the_one_that_goes_on)
{
    struct fates f = {.unknown = 1};
    struct drive *d = staged(STATE(THREE), false, &f);

    d->p->max_agent_hops = 2; /* p and a: none is left for the answer */
    drive_run(d);
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_INTERRUPTED);
    ck_assert_str_eq(drive_state(d, "agent_hop_count"), "2");
    ck_assert_int_eq(decide(d, "happened", NULL), 0);
    ck_assert_int_eq(rv_run_status(d->run), RV_RUN_TERMINATED);
    ck_assert_str_eq(drive_state(d, "terminal_reason"), "\"max_agent_hops_exceeded\"");
    ck_assert_str_eq(drive_state(d, "agent_hop_count"), "2");
    drive_free(d);
}
END_TEST

/* Work kept by a state that somebody made: nothing was answered, or its tool is gone. */
static const struct {
    const char *tool, *interrupt;
} kept[] = {
    {"put", "null"},
    {"gone", "null"},
    {"gone", "{'kind':'agent_review','id':'int_1','data':{'reason':'outcome_unknown'},'created_at':'2023-11-14T22:13:"
             "20Z','response':{'decision':'happened','received_at':'2023-11-14T22:13:20Z'}}"},
    {"gone", "{'kind':'agent_review','id':'int_1','data':{'reason':'outcome_unknown'},'created_at':'2023-11-14T22:13:"
             "20Z','response':{'decision':'not_happened','received_at':'2023-11-14T22:13:20Z'}}"},
    {"put", "{'kind':'agent_review','id':'int_1','data':{'reason':'outcome_unknown'},'created_at':'2023-11-14T22:13:"
            "20Z','response':{'decision':7,'received_at':'2023-11-14T22:13:20Z'}}"},
};

START_TEST(kept_work_without_an_answer_asks_and_makes_no_call)
{
    struct fates f = {0};
    rv_buf state = RV_BUF_INIT(4096);
    struct drive *d =
        drive_new("name: t\nagents:\n  - {name: a, has_tools: true, tool_access: all}\n", tools, RV_COUNT(tools));

    d->answer = tool_answer;
    d->answer_self = &f;
    rv_buf_printf(&state,
                  "{'current_stage':'a','stage_order':['a'],'outputs':{'plan':{'steps':[{'tool':'%s'}]}},"
                  "'interrupt':%s,'suspended':{'a':{'kind':'outcome_unknown','interrupt_id':'int_1','at':0,"
                  "'steps':[{'tool':'%s'}],'results':[],'key_visit':1}}}",
                  kept[_i].tool, kept[_i].interrupt, kept[_i].tool);
    if (_i == 4) { /* what is no word can not be loaded */
        json_object *json = rv_kit_json(rv_buf_cstr(&state));
        rv_envelope *env = NULL;
        struct rv_rand_state seed;
        ck_assert_int_eq(rv_envelope_load(json, rv_rand_seeded(&seed, 1), DRIVE_T0, &env, NULL), RV_E_INVALID);
        json_object_put(json);
    } else {
        d->opts.continues = true;
        drive_envelope(d, rv_buf_cstr(&state));
        bool asks = strcmp(kept[_i].interrupt, "null") == 0;
        ck_assert_int_eq(drive_run(d), asks ? RV_RUN_INTERRUPTED : RV_RUN_COMPLETED);
        ck_assert_uint_eq(d->n_calls, 0);
        if (asks)
            ck_assert_str_eq(drive_state(d, "interrupt.data.reason"), "\"outcome_unknown\"");
    }
    drive_free(d);
    rv_buf_fini(&state);
}
END_TEST

TCase *outcomes_case(void)
{
    TCase *tc = tcase_create("outcomes");

    tcase_add_loop_test(tc, the_answer_about_an_unknown_outcome_decides, 0, 12 * (int)RV_COUNT(decisions));
    tcase_add_test(tc, hops_are_counted_for_the_visit_that_asked_and_for_the_one_that_goes_on);
    tcase_add_loop_test(tc, kept_work_without_an_answer_asks_and_makes_no_call, 0, RV_COUNT(kept));
    return tc;
}
