/* Every key of the `execution` section changes what a run does: the same pipeline and answers, with and without another
 * value, must not give the same effects, events and state. A key that is missing here fails the test. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_internal.h"
#include "tests/unit/run/drive.h"
#include "tests/unit/run/suites.h"

static const struct drive_tool tools[] = {
    {"read", RV_RISK_READ_ONLY, NULL, NULL, 0},
    {"wipe", RV_RISK_DESTRUCTIVE, NULL, NULL, 0},
};

#define MODEL  "models: {r: scripted}\n"
#define LLM    "has_llm: true, model_role: r"
#define PLAN   "{'steps':[{'tool':'read'},{'tool':'read'}]}"
#define BOUNDS "max_iterations: 9\nmax_llm_calls: 50\nmax_agent_hops: 50\n"
#define JUDGE                                                                                                          \
    "agents:\n  - {name: p, stage_order: 1, default_next: c}\n  - {name: c, stage_order: 2, " LLM ", routing_rules: "  \
    "[{condition: v, value: 1, target: p}]}\n" MODEL BOUNDS
#define ARBITER                                                                                                        \
    "agents:\n  - {name: plan, stage_order: 1, " LLM ", default_next: arbiter}\n"                                      \
    "  - {name: arbiter, stage_order: 2, " LLM "}\n" MODEL
#define TOOLS                                                                                                          \
    "agents:\n  - {name: plan, stage_order: 1, " LLM ", default_next: x}\n"                                            \
    "  - {name: x, stage_order: 2, has_tools: true, tool_access: all, max_retries: 1, "                                \
    "routing_rules: [{condition: all_succeeded, value: false, target: plan}]}\n" MODEL BOUNDS
#define ONE "agents:\n  - {name: a, stage_order: 1, max_retries: 3, " LLM "}\n" MODEL
#define ROUTER                                                                                                         \
    "agents:\n  - {name: a, stage_order: 1, routing_function: x.where, default_next: b}\n"                             \
    "  - {name: b, stage_order: 2}\n"

static const struct {
    const char *key, *before, *after; /* before NULL: the key is left out */
    const char *yaml;
    struct drive_answer answers[3];
} knobs[] = {
    {"max_plan_steps", NULL, "1", TOOLS, {{"llm:plan", PLAN, true, 0}}},
    {"max_tool_retries", NULL, "0", TOOLS, {{"llm:plan", PLAN, true, 0}, {"tool:read", "?Busy:later", false, 0}}},
    {"max_llm_retries", NULL, "0", ONE, {{"llm:a", "?Busy:later", false, 0}}},
    {"max_loop_iterations", NULL, "1", JUDGE, {{"llm:c", "{'v':1}", true, 0}}},
    {"max_replan_iterations", NULL, "1", JUDGE, {{"llm:c", "{'v':1,'outcome':'replan'}", true, 0}}},
    {"max_loop_back_rejections", NULL, "1", JUDGE, {{"llm:c", "{'v':1,'verdict':'loop_back'}", true, 0}}},
    {"llm_timeout", NULL, "7", ONE, {{"llm:a", "{}", true, 0}}},
    {"executor_timeout", NULL, "7", TOOLS, {{"llm:plan", PLAN, true, 0}}},
    {"tool_timeout", NULL, "7", TOOLS, {{"llm:plan", PLAN, true, 0}}},
    {"agent_timeout", NULL, "7", ONE, {{"llm:a", "{}", true, 0}}},
    {"clarification_threshold",
     NULL,
     "0.2",
     ONE,
     {{"llm:a", "{'confidence':0.5,'clarification_question':'which'}", true, 0}}},
    {"high_confidence_threshold",
     NULL,
     "0.2",
     ARBITER,
     {{"llm:plan", "{'confidence':0.5,'steps':[{'tool':'read'}]}", true, 0}}},
    {"llm_seed", NULL, "7", ONE, {{"llm:a", "{}", true, 0}}},
    {"require_confirmation_for_destructive",
     NULL,
     "false",
     TOOLS,
     {{"llm:plan", "{'steps':[{'tool':'wipe'}]}", true, 0}}},
    {"replan_on_partial_success", NULL, "false", TOOLS, {{"llm:plan", PLAN, true, 0}, {"tool:read", "!:no", false, 0}}},
    {"strict_transition_validation", NULL, "false", ROUTER, {{"route:x.where", "{'next':'nowhere'}", true, 0}}},
    {"enable_idempotency", NULL, "false", TOOLS, {{"llm:plan", PLAN, true, 0}}},
    {"idempotency_ttl_ms", NULL, "500", TOOLS, {{"llm:plan", PLAN, true, 0}, {"tool:read", "?Busy:later", false, 0}}},
    {"enforce_idempotency_for_tools", NULL, "false", TOOLS, {{"llm:plan", PLAN, true, 0}}},
    {"enforce_idempotency_for_agents", NULL, "true", ONE, {{"llm:a", "{}", true, 0}}},
    {"meta_validation_enabled", NULL, "false", ONE, {{"llm:a", "{'outcome':'replan','verdict':'proceed'}", true, 0}}},
    {"meta_validation_delay", NULL, "3", ONE, {{"llm:a", "{'outcome':'replan','verdict':'proceed'}", true, 0}}},
    {"enable_loop_back", NULL, "false", JUDGE, {{"llm:c", "{'v':1}", true, 0}}},
    {"enable_arbiter", NULL, "false", ARBITER, {{"llm:plan", "{'steps':[{'tool':'wipe'}]}", true, 0}}},
    {"skip_arbiter_for_read_only", NULL, "false", ARBITER, {{"llm:plan", PLAN, true, 0}}},
};

/* Keys that the core never sees as a stage of its own pipeline does: where they are tested. */
static const char *const elsewhere[] = {
    "delegation_timeout",  /* unit_turns, asking an agent */
    "agent_request_limit", /* unit_config_agents, binding a document */
    "agent_token_limit",   /* the same */
    "log_level",           /* cli_run: the log of the command line */
};

static char *told(size_t i, const char *value, enum rv_rules rules)
{
    rv_buf yaml = RV_BUF_INIT(8192), all = RV_BUF_INIT(DRIVE_MAX_TEXT);
    size_t n = 0;

    rv_buf_printf(&yaml, "name: t\n%s", knobs[i].yaml);
    if (value)
        rv_buf_printf(&yaml, "execution: {%s: %s}\n", knobs[i].key, value);
    struct drive *d = drive_new(rv_buf_cstr(&yaml), tools, RV_COUNT(tools));
    while (n < RV_COUNT(knobs[i].answers) && knobs[i].answers[n].to)
        n++;
    d->opts.rules = rules;
    drive_envelope(d, "{'envelope_id':'e','request_id':'q','session_id':'s'}");
    drive_answers(d, knobs[i].answers, n);
    drive_run(d);
    rv_buf_printf(&all, "%s\n", drive_story(d));
    rv_buf_printf(&all, "%s\n", drive_state(d, "outputs"));
    for (size_t c = 0; c < d->n_calls; c++)
        rv_buf_printf(&all, "%s %s key %s by %lld\n", d->calls[c].name, d->calls[c].request,
                      d->calls[c].key ? d->calls[c].key : "none", (long long)d->calls[c].deadline_us);
    rv_buf_add_str(&all, rv_buf_str(&d->effects));
    rv_buf_fini(&yaml);
    drive_free(d);
    return rv_buf_steal(&all, NULL);
}

/* Proves 4.6/max_loop_iterations, 4.6/clarification_threshold, 4.6/high_confidence_threshold,
 * 4.6/meta_validation_enabled, 4.6/meta_validation_delay, 4.6/max_replan_iterations, 4.6/max_loop_back_rejections,
 * 4.6/replan_on_partial_success, 4.6/strict_transition_validation, 4.6/enable_idempotency, 4.6/idempotency_ttl_ms,
 * 4.6/enforce_idempotency_for_tools, 4.6/enforce_idempotency_for_agents, 4.6/enable_arbiter,
 * 4.6/skip_arbiter_for_read_only */
START_TEST(a_changed_execution_key_changes_the_run)
{
    size_t i = (size_t)_i;
    char *before = told(i, knobs[i].before, RV_RULES_NEWEST), *after = told(i, knobs[i].after, RV_RULES_NEWEST);

    ck_assert_msg(strcmp(before, after) != 0, "%s: %s changes nothing: %s", knobs[i].key, knobs[i].after, before);
    free(before);
    free(after);
}
END_TEST

/* What came with rules 2 does not reach into runs that began before. */
START_TEST(a_key_that_is_new_in_rules_2_changes_no_older_run)
{
    static const char *const old[] = {"max_plan_steps",  "max_tool_retries", "max_llm_retries",
                                      "llm_timeout",     "executor_timeout", "tool_timeout",
                                      "agent_timeout",   "llm_seed",         "require_confirmation_for_destructive",
                                      "enable_loop_back"};
    size_t i = (size_t)_i;

    for (size_t k = 0; k < RV_COUNT(old); k++)
        if (strcmp(old[k], knobs[i].key) == 0)
            return;
    char *before = told(i, knobs[i].before, RV_RULES_1), *after = told(i, knobs[i].after, RV_RULES_1);
    ck_assert_msg(strcmp(before, after) == 0, "%s: %s changes a run of rules 1", knobs[i].key, knobs[i].after);
    free(before);
    free(after);
}
END_TEST

/* Proves 4.6/effect: Each key of the section changes what a run does; a key that no test tries fails the test */
START_TEST(every_execution_key_is_tried)
{
    const struct rv_key_table *table = rv_execution_table();

    for (size_t k = 0; k < table->n_keys; k++) {
        bool found = false;
        for (size_t i = 0; i < RV_COUNT(knobs); i++)
            found = found || strcmp(knobs[i].key, table->keys[k].name) == 0;
        for (size_t i = 0; i < RV_COUNT(elsewhere); i++)
            found = found || strcmp(elsewhere[i], table->keys[k].name) == 0;
        ck_assert_msg(found, "execution.%s: no test tries what it changes", table->keys[k].name);
    }
}
END_TEST

TCase *knobs_case(void)
{
    TCase *tc = tcase_create("knobs");

    tcase_add_loop_test(tc, a_changed_execution_key_changes_the_run, 0, RV_COUNT(knobs));
    tcase_add_loop_test(tc, a_key_that_is_new_in_rules_2_changes_no_older_run, 0, RV_COUNT(knobs));
    tcase_add_test(tc, every_execution_key_is_tried);
    return tc;
}
