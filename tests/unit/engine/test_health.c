/* The chain around a tool call: watched, blocked after too many failures, let through again later. */
#include "tests/unit/engine/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/engine/health_internal.h"
#include "tests/kit/kit.h"

#define STAGE                                                                                                          \
    "name: t\nagents:\n  - {name: p, default_next: t}\n"                                                               \
    "  - {name: t, has_tools: true, tool_access: all, plan_from: p}\n"

/* n calls of `look` in one stage. */
static void calls(struct world *w, int n, const char *tool_entries)
{
    struct how how = {0};
    rv_buf script = RV_BUF_INIT(65536);

    rv_buf_puts(&script, "stages:\n  p:\n    - output:\n        steps:\n");
    for (int i = 0; i < n; i++)
        rv_buf_puts(&script, "          - {tool: look}\n");
    rv_buf_printf(&script, "tools: {look: %s}\n", tool_entries);
    world_run(w, &how, STAGE, rv_buf_cstr(&script));
    rv_buf_fini(&script);
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
        n++;
    return n;
}

static const struct {
    int n;
    const char *entries;
    size_t n_blocked;
    const char *health;
    enum rv_health of_all;
} cases[] = {
    {4, "[{result: {}}]", 0,
     "[{\"tool\":\"look\",\"status\":\"unknown\",\"success_rate\":1.0,\"calls\":4,\"breaker_open\":false,\"errors\":[]}"
     "]",
     RV_HEALTH_UNKNOWN},
    {6, "[{result: {}}]", 0,
     "[{\"tool\":\"look\",\"status\":\"healthy\",\"success_rate\":1.0,\"calls\":6,\"breaker_open\":false,\"errors\":[]}"
     "]",
     RV_HEALTH_HEALTHY},
    {7, "[{error: broken}]", 2,
     "[{\"tool\":\"look\",\"status\":\"unhealthy\",\"success_rate\":0.0,\"calls\":5,\"breaker_open\":true,"
     "\"errors\":[{\"error_type\":\"ExecutionError\",\"message\":\"broken\",\"count\":5}]}]",
     RV_HEALTH_UNHEALTHY},
    {7, "[{result: {status: error, error: said so}}]", 2,
     "[{\"tool\":\"look\",\"status\":\"unhealthy\",\"success_rate\":0.0,\"calls\":5,\"breaker_open\":true,"
     "\"errors\":[{\"error_type\":\"ToolError\",\"message\":\"said so\",\"count\":5}]}]",
     RV_HEALTH_UNHEALTHY},
    {3, "[{error: {type: TimeoutError, message: late by 20 ms}}, {error: {type: TimeoutError, message: late by 7 ms}}]",
     0,
     "[{\"tool\":\"look\",\"status\":\"unknown\",\"success_rate\":0.0,\"calls\":3,\"breaker_open\":false,"
     "\"errors\":[{\"error_type\":\"TimeoutError\",\"message\":\"late by # ms\",\"count\":3}]}]",
     RV_HEALTH_UNKNOWN},
    {7, "[{error: {type: NotFoundError, message: no such file}}]", 0,
     "[{\"tool\":\"look\",\"status\":\"healthy\",\"success_rate\":1.0,\"calls\":7,\"breaker_open\":false,\"errors\":[]}"
     "]",
     RV_HEALTH_HEALTHY},
    {5, "[{result: {}, delay_ms: 3000}]", 0,
     "[{\"tool\":\"look\",\"status\":\"degraded\",\"success_rate\":1.0,\"calls\":5,\"breaker_open\":false,\"errors\":[]"
     "}]",
     RV_HEALTH_DEGRADED},
    {8,
     "[{error: a}, {error: a}, {error: a}, {error: a}, {result: {}, delay_ms: 29000}, {result: {}, delay_ms: 29000},"
     " {error: b}, {result: {}}]",
     1,
     "[{\"tool\":\"look\",\"status\":\"unhealthy\",\"success_rate\":0.2857142857142857,\"calls\":7,\"breaker_open\":"
     "true,\"errors\":[{\"error_type\":\"ExecutionError\",\"message\":\"a\",\"count\":4},"
     "{\"error_type\":\"ExecutionError\",\"message\":\"b\",\"count\":1}]}]",
     RV_HEALTH_UNHEALTHY},
};

/* Proves 10/tool-health: Last calls, status, breaker after 5 failures in 300 s, let through later
 * Proves 10/execution-chain: Breaker before execution, record after */
START_TEST(five_failures_block_a_tool)
{
    struct world w;
    rv_buf b = RV_BUF_INIT(4096), wanted = RV_BUF_INIT(4096);
    rv_jw jw = rv_jw_on(&b);
    char *output;

    calls(&w, cases[_i].n, cases[_i].entries);
    output = world_output(&w, "t");
    ck_assert_msg(count(output, "tool \\\"look\\\" is blocked: it failed 5 times within 300 s") == cases[_i].n_blocked,
                  "%s", output);
    ck_assert_uint_eq(count(output, "\"type\":\"ToolError\",\"message\":\"tool \\\"look\\\" is blocked"),
                      cases[_i].n_blocked);
    ck_assert_uint_eq(count(rv_buf_cstr(&w.events), "\"type\":\"tool_call_start\""),
                      (size_t)cases[_i].n - cases[_i].n_blocked);
    ck_assert_uint_eq(count(rv_buf_cstr(&w.events), "\"type\":\"tool_result\""), (size_t)cases[_i].n);
    rv_exec_write_health(w.exec, &jw);
    rv_buf_printf(&wanted, "{\"status\":\"%s\",\"tools\":%s}", rv_health_text(cases[_i].of_all), cases[_i].health);
    ck_assert_str_eq(rv_buf_cstr(&b), rv_buf_cstr(&wanted));
    rv_buf_fini(&wanted);
    rv_buf_fini(&b);
    free(output);
    world_fini(&w);
}
END_TEST

/* Proves 10/health-system: The status of all tools together is that of the worst that has one */
START_TEST(the_worst_tool_speaks_for_all)
{
    struct how how = {0};
    rv_buf script = RV_BUF_INIT(1 << 16), told = RV_BUF_INIT(4096);
    rv_jw jw = rv_jw_on(&told);
    struct world w;

    rv_buf_puts(&script, "stages:\n  p:\n    - output:\n        steps:\n          - {tool: seldom}\n");
    for (int i = 0; i < 5; i++)
        rv_buf_puts(&script, "          - {tool: broken}\n          - {tool: look}\n");
    rv_buf_puts(&script, "tools: {seldom: [{result: {}}], broken: [{error: no}], look: [{result: {}}]}\n");
    world_run(&w, &how, STAGE, rv_buf_cstr(&script));
    rv_exec_write_health(w.exec, &jw);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&told), "{\"status\":\"unhealthy\",\"tools\":[{\"tool\":\"broken\""));
    rv_buf_fini(&told);
    rv_buf_fini(&script);
    world_fini(&w);
}
END_TEST

/* Another run of the engine of `first`, with tools of its own; exec and world are the caller's. */
static void run_beside(struct world *w, const struct world *first, const char *tenant, const char *script,
                       const char *const *capabilities)
{
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
    rv_err *err = NULL;

    world_load(w, STAGE, script, capabilities);
    opts.pipeline = w->pipeline;
    opts.plugins = w->plugins;
    opts.script = w->script;
    opts.tenant = tenant;
    opts.answer_from_script = true;
    rv_envelope *env = world_envelope("again", rv_engine_now_us(first->engine));
    int rc = rv_engine_start(first->engine, &opts, env, NULL, &w->exec, &err);
    if (rc == 0)
        rc = rv_engine_wait(first->engine, w->exec, &err);
    ck_assert_msg(rc == 0, "%s", rv_err_text(err));
}

/* Proves 10/tool-health */
START_TEST(a_script_blocks_no_tool_of_other_runs)
{
    static const char *const capabilities[] = {"files", NULL};
    static const char plays[] = "stages: {p: [{output: {steps: [{tool: list_files}]}}]}\n";
    rv_buf b = RV_BUF_INIT(4096);
    rv_jw jw = rv_jw_on(&b);
    struct world w, real;

    world_run(&w, &(struct how){.capabilities = capabilities}, STAGE,
              "stages: {p: [{output: {steps: [{tool: list_files}, {tool: list_files}, {tool: list_files},"
              " {tool: list_files}, {tool: list_files}, {tool: list_files}]}}]}\n"
              "tools: {list_files: [{error: broken}]}\n");
    char *output = world_output(&w, "t");
    ck_assert_uint_eq(count(output, "is blocked"), 1);
    free(output);
    run_beside(&real, &w, NULL, plays, capabilities);
    output = world_output(&real, "t");
    ck_assert_msg(strstr(output, "is blocked") == NULL, "%s", output);
    free(output);
    rv_exec_write_health(real.exec, &jw); /* and it is told nothing of the other run */
    ck_assert_ptr_null(strstr(rv_buf_cstr(&b), "broken"));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&b), "\"tool\":\"list_files\",\"status\":\"unknown\""));
    rv_buf_fini(&b);
    world_fini(&real);
    run_beside(&real, &w, NULL,
               "stages: {p: [{output: {steps: [{tool: list_files}]}}]}\ntools: {list_files: [{result: {}}]}\n",
               capabilities);
    output = world_output(&real, "t");
    ck_assert_msg(strstr(output, "is blocked") == NULL, "%s", output); /* nor one of another script */
    free(output);
    world_fini(&real);
    world_fini(&w);
}
END_TEST

/* Proves 10/tool-health */
START_TEST(a_tenant_blocks_no_tool_of_another_one)
{
    static const char *const capabilities[] = {"answers", NULL};
    static const char six[] = "stages: {p: [{output: {steps: [{tool: mute_failure}, {tool: mute_failure},"
                              " {tool: mute_failure}, {tool: mute_failure}, {tool: mute_failure},"
                              " {tool: mute_failure}]}}]}\n";
    static const struct {
        const char *tenant;
        size_t n_blocked;
    } runs[] = {{"a", 1}, {"b", 1}, {"a", 6}, {NULL, 1}, {"b", 6}, {NULL, 6}};
    struct world w, more;

    world_load(&w, STAGE, NULL, NULL);
    ck_assert_int_eq(rv_engine_new(&(struct rv_engine_opts){.virtual_time = true, .workers = 1}, &w.engine, NULL), 0);
    for (size_t i = 0; i < RV_COUNT(runs); i++) {
        run_beside(&more, &w, runs[i].tenant, six, capabilities);
        char *output = world_output(&more, "t");
        ck_assert_msg(count(output, "is blocked") == runs[i].n_blocked, "%zu: %s", i, output);
        free(output);
        world_fini(&more);
    }
    world_fini(&w);
}
END_TEST

/* However many tools there were, the next one is watched. */
START_TEST(a_new_tool_takes_the_place_of_the_oldest)
{
    struct tool_records all = {.n = 0};
    char key[RV_HASH_MAX];

    for (int i = 0; i <= RV_ENGINE_MAX_TOOLS; i++) {
        snprintf(key, sizeof key, "%d", i);
        ck_assert_ptr_nonnull(engine_tool_records_take(&all, key, "look"));
        if (i % 100 == 0)
            ck_assert_ptr_nonnull(engine_tool_records_take(&all, "0", "look")); /* used all the time */
    }
    ck_assert_str_eq(engine_tool_records_find(&all, key)->key, key);
    ck_assert_str_eq(engine_tool_records_find(&all, "0")->key, "0");
    ck_assert_str_eq(engine_tool_records_find(&all, "9999")->key, "9999");
    ck_assert_ptr_null(engine_tool_records_find(&all, "1"));
    ck_assert_uint_eq(all.n, RV_ENGINE_MAX_TOOLS / 2 + 1);
    engine_tool_records_fini(&all);
}
END_TEST

/* Proves 10/tool-health */
START_TEST(a_blocked_tool_comes_back_after_five_minutes)
{
    static const char pipeline[] =
        "name: t\ndefault_timeout_seconds: 3600\nagents:\n  - {name: p, default_next: t}\n"
        "  - {name: t, has_tools: true, tool_access: all, plan_from: p, default_next: nap, output_key: first}\n"
        "  - {name: nap, default_next: again}\n"
        "  - {name: again, has_tools: true, tool_access: all, plan_from: p}\n";
    struct how how = {0};
    struct world w;
    char *first, *again;

    world_run(&w, &how, pipeline,
              "stages:\n  p: [{output: {steps: [{tool: look}, {tool: look}, {tool: look}, {tool: look}, {tool: look},"
              " {tool: look}]}}]\n  nap: [{output: {}, delay_ms: 300001}]\n"
              "tools: {look: [{error: a}, {error: a}, {error: a}, {error: a}, {error: a}, {result: {ok: 1}}]}\n");
    first = world_output(&w, "first");
    again = world_output(&w, "again");
    ck_assert_uint_eq(count(first, "is blocked"), 1);
    ck_assert_uint_eq(count(again, "is blocked"), 0);
    ck_assert_uint_eq(count(again, "\"ok\":1"), 6);
    free(first);
    free(again);
    world_fini(&w);
}
END_TEST

/* A model hears of it as of any failure; it is not told off for calls that it may make again later. */
START_TEST(a_call_that_the_breaker_refuses_never_starts)
{
    struct how how = {0};
    struct world w;

    world_run(
        &w, &how,
        "name: t\nagents:\n  - {name: ask, has_llm: true, model_role: m, prompt_key: p, has_tools: true, "
        "tool_access: all, max_bad_calls: 0, output_mode: text}\n"
        "models: {m: {model: \"openai:x\"}}\nprompts: {p: go}\n",
        "models:\n  ask:\n    - {tool_calls: [{name: look}, {name: look}, {name: look}, {name: look}, {name: look}]}\n"
        "    - {tool_calls: [{id: x, name: look}, {id: y, name: look}]}\n    - {text: done}\n"
        "tools: {look: [{error: broken}]}\n");
    ck_assert_str_eq(world_status(&w), "completed");
    ck_assert_uint_eq(count(rv_buf_cstr(&w.events), "\"type\":\"tool_call_start\""), 5);
    ck_assert_uint_eq(count(rv_buf_cstr(&w.events), "\"type\":\"tool_result\""), 7);
    char *refused = world_event(&w, "\"type\":\"tool_result\"", "\"step_id\":\"y\"");
    ck_assert_ptr_nonnull(strstr(
        refused, "\"error_type\":\"ToolError\",\"code\":\"tool_failed\",\"error\":\"tool \\\"look\\\" is blocked"));
    ck_assert_ptr_null(strstr(refused, "\"call_id\""));
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&w.inputs), "\"blocked\":[\"look\"]"));
    free(refused);
    world_fini(&w);
}
END_TEST

/* The breaker opens while calls wait for another attempt: that attempt is not made. */
START_TEST(an_attempt_that_the_breaker_refuses_never_starts)
{
    struct how how = {0};
    struct world w;

    world_run(
        &w, &how,
        "name: t\nagents:\n  - {name: ask, has_llm: true, model_role: m, prompt_key: p, has_tools: true, "
        "tool_access: all, max_retries: 2, output_mode: text}\n"
        "models: {m: {model: \"openai:x\"}}\nprompts: {p: go}\n",
        "models:\n  ask:\n    - {tool_calls: [{name: look}, {name: look}, {name: look}, {name: look}, {name: look}]}\n"
        "    - {text: done}\n"
        "tools: {look: {risk: read_only, description: d, calls: [{error: {type: TimeoutError, message: m}}]}}\n");
    ck_assert_str_eq(world_status(&w), "completed");
    ck_assert_uint_eq(count(rv_buf_cstr(&w.events), "\"type\":\"tool_call_start\""), 5);
    ck_assert_uint_eq(count(rv_buf_cstr(&w.events), "\"type\":\"retry\""), 5);
    ck_assert_uint_eq(count(rv_buf_cstr(&w.events), "\"type\":\"tool_result\""), 5);
    ck_assert_uint_eq(count(rv_buf_cstr(&w.events), "is blocked"), 5);
    world_fini(&w);
}
END_TEST

Suite *health_suite(void)
{
    Suite *suite = suite_create("health");
    TCase *tc = tcase_create("health");

    tcase_add_loop_test(tc, five_failures_block_a_tool, 0, RV_COUNT(cases));
    tcase_add_test(tc, the_worst_tool_speaks_for_all);
    tcase_add_test(tc, a_new_tool_takes_the_place_of_the_oldest);
    tcase_add_test(tc, a_tenant_blocks_no_tool_of_another_one);
    tcase_add_test(tc, a_script_blocks_no_tool_of_other_runs);
    tcase_add_test(tc, a_blocked_tool_comes_back_after_five_minutes);
    tcase_add_test(tc, a_call_that_the_breaker_refuses_never_starts);
    tcase_add_test(tc, an_attempt_that_the_breaker_refuses_never_starts);
    suite_add_tcase(suite, tc);
    return suite;
}
