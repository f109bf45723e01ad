/* Capabilities on worker threads, in simulated time: what the workers do must not show. */
#include "tests/unit/engine/suites.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"

static const char *const capabilities[] = {"hello", "slow", "answers", "files", NULL};

/* Five tool stages whose calls really take different times, beside two scripted models, twice in a row. */
#define MIXED                                                                                                          \
    "name: mixed\ndefault_run_mode: parallel\nmodels: {default: scripted}\nmax_agent_hops: 50\nagents:\n"              \
    "  - {name: p}\n"                                                                                                  \
    "  - {name: t1, has_tools: true, tool_access: all, plan_from: p, requires: [p]}\n"                                 \
    "  - {name: t2, has_tools: true, tool_access: all, plan_from: p, requires: [p]}\n"                                 \
    "  - {name: m1, has_llm: true, model_role: default, requires: [p]}\n"                                              \
    "  - {name: t3, has_tools: true, tool_access: all, plan_from: p, requires: [p]}\n"                                 \
    "  - {name: m2, has_llm: true, model_role: default, requires: [p]}\n"                                              \
    "  - {name: h, pre_process: slow.doze, requires: [p]}\n"                                                           \
    "  - {name: t4, has_tools: true, tool_access: all, plan_from: p, requires: [t1, t2, m1]}\n"                        \
    "  - {name: t5, has_tools: true, tool_access: all, plan_from: p, requires: [t3, m2]}\n"
#define MIXED_SCRIPT                                                                                                   \
    "stages:\n  p: [{output: {ms: 5, steps: [{tool: doze, parameters: {ms: 9}},"                                       \
    " {tool: greet, parameters: {name: x}}, {tool: doze, parameters: {ms: 2}},"                                        \
    " {tool: greet, parameters: {nme: x}}, {tool: look},"                                                              \
    " {tool: search_files, parameters: {query: failed allocation}}]}}]\n"                                              \
    "models: {m1: [{json: {a: 1}, delay_ms: 3}], m2: [{json: {b: 1}}]}\n"                                              \
    "tools: {look: [{result: {n: 1}}, {result: {n: 2}, delay_ms: 4}, {result: {n: 3}}]}\n"

/* Proves 11.2/engine: Same config, script and clock: identical state, events, effects for any number of workers
 * Proves 7.7/engine */
START_TEST(rule_11_2_one_and_eight_workers_give_the_same_bytes)
{
    char *state[2];
    struct world w[2];

    for (size_t i = 0; i < 2; i++) {
        struct how how = {.workers = i ? 8 : 1, .capabilities = capabilities, .saves = true};
        world_run(&w[i], &how, MIXED, MIXED_SCRIPT);
        state[i] = world_state(&w[i]);
        ck_assert_str_eq(world_status(&w[i]), "completed");
    }
    ck_assert_ptr_nonnull(strstr(state[0], "\"slept\":true"));
    ck_assert_ptr_nonnull(strstr(state[0], "\"n\":3"));
    ck_assert_ptr_nonnull(strstr(state[0], "\"path\":"));
    ck_assert_str_eq(state[0], state[1]);
    ck_assert_str_eq(rv_buf_cstr(&w[0].events), rv_buf_cstr(&w[1].events));
    ck_assert_str_eq(rv_buf_cstr(&w[0].effects), rv_buf_cstr(&w[1].effects));
    ck_assert_str_eq(rv_buf_cstr(&w[0].inputs), rv_buf_cstr(&w[1].inputs));
    for (size_t i = 0; i < 2; i++) {
        free(state[i]);
        world_fini(&w[i]);
    }
}
END_TEST

#define ONE_STEP                                                                                                       \
    "name: one\nagents:\n  - {name: p, default_next: t}\n"                                                             \
    "  - {name: t, has_tools: true, tool_access: all, plan_from: p%s}\n"                                               \
    "execution: {tool_timeout: %s}\n"
#define PLAN "stages: {p: [{output: {steps: [{tool: %s, parameters: {%s}}]}}]}"

static void one_step(struct world *w, const struct how *how, const char *extra, const char *timeout, const char *tool,
                     const char *parameters)
{
    char pipeline[512], script[512];

    snprintf(pipeline, sizeof pipeline, ONE_STEP, extra, timeout);
    snprintf(script, sizeof script, PLAN, tool, parameters);
    world_run(w, how, pipeline, script);
}

static const struct {
    const char *tool, *parameters, *output; /* a part of the stage's output */
} tools[] = {
    {"greet", "name: Ada", "\"status\":\"success\""}, {"doze", "ms: 1", "\"data\":{\"slept\":true}"},
    {"silent", "", "it returned without an answer"},  {"context", "", "\"stage\":\"t\",\"user\":\"ada\""},
    {"context", "", "\"timeout_ms\":30000"},          {"two_replies", "", "it answered 2 times in one call"},
    {"garbage", "", "it answered what is not JSON"},
};

/* Proves 11.5/engine: Bad tools, scripts and recordings are errors, never crashes */
START_TEST(a_tool_answers_or_says_what_it_did_wrong)
{
    struct how how = {.capabilities = capabilities};
    struct world w;
    char *output;

    one_step(&w, &how, "", "30", tools[_i].tool, tools[_i].parameters);
    output = world_output(&w, "t");
    ck_assert_msg(strstr(output, tools[_i].output), "%s", output);
    free(output);
    world_fini(&w);
}
END_TEST

/* The stack of new threads. With one that no machine has, the system refuses each thread. */
static void set_stack(size_t bytes)
{
    pthread_attr_t attr;

    pthread_attr_init(&attr);
    ck_assert_int_eq(pthread_attr_setstacksize(&attr, bytes), 0);
    ck_assert_int_eq(pthread_setattr_default_np(&attr), 0);
    pthread_attr_destroy(&attr);
}

START_TEST(a_call_without_a_thread_fails_with_a_code_of_its_own_and_the_next_run_has_one)
{
    struct how how = {.capabilities = capabilities, .workers = 1};
    struct world w;
    char *output;

    set_stack((size_t)1 << 46);
    one_step(&w, &how, "", "30", "greet", "name: Ada");
    set_stack((size_t)8 << 20);
    output = world_output(&w, "t");
    ck_assert_msg(strstr(output, "no worker can be started: start a thread: "), "%s", output);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&w.events), "\"code\":\"no_threads\""));
    free(output);
    world_fini(&w);

    one_step(&w, &how, "", "30", "greet", "name: Ada");
    output = world_output(&w, "t");
    ck_assert_msg(strstr(output, "\"status\":\"success\""), "%s", output);
    free(output);
    world_fini(&w);
}
END_TEST

/* It has 50 ms, and does not answer before the gate is opened. */
static void doze_for_long(struct world *w, const struct how *how, struct gate *gate)
{
    char parameters[512];

    gate_init(gate);
    snprintf(parameters, sizeof parameters, "until: '%s'", gate->path);
    one_step(w, how, "", "0.05", "doze", parameters);
}

START_TEST(a_tool_that_ignores_its_deadline_is_given_up_also_in_simulated_time)
{
    struct how how = {.capabilities = capabilities, .workers = 1};
    struct gate gate;
    struct world w;
    char *output;

    doze_for_long(&w, &how, &gate);
    output = world_output(&w, "t");
    ck_assert_msg(
        strstr(output, "\"type\":\"TimeoutError\",\"message\":\"tool \\\"doze\\\" did not answer within 50 ms\""), "%s",
        output);
    ck_assert_int_eq(world_elapsed_ms(&w), 50);
    free(output);
    gate_open(&gate);
    world_fini(&w);
    gate_fini(&gate);
}
END_TEST

/* A machine on which everything takes a while. */
static int64_t slow_now(void *self)
{
    struct rv_clock system = rv_clock_system();
    int64_t *lost_us = (int64_t *)self;

    *lost_us += 1500;
    return system.now_us(system.self) + *lost_us;
}

START_TEST(how_long_was_waited_is_what_was_allowed_however_late_the_call_began)
{
    int64_t lost_us = 0;
    struct how how = {
        .capabilities = capabilities, .workers = 1, .real_time = true, .clock = {.now_us = slow_now, .self = &lost_us}};
    struct gate gate;
    struct world w;
    char *output;

    doze_for_long(&w, &how, &gate);
    output = world_output(&w, "t");
    ck_assert_msg(strstr(output, "did not answer within 50 ms"), "%s", output);
    free(output);
    gate_open(&gate);
    world_fini(&w);
    gate_fini(&gate);
}
END_TEST

/* Hooks and mocks of a capability. */
static const struct {
    const char *stage;
    bool use_mocks;
    const char *output;
} entries[] = {
    {"{name: a, post_process: hello.greet_user}", false, "{\"final_response\":\"Hello!\"}"},
    {"{name: a, mock_handler: hello.canned}", true, "{\"final_response\":\"Hello from a mock.\"}"},
    {"{name: a, mock_handler: hello.canned, mock: true}", false, "{\"final_response\":\"Hello from a mock.\"}"},
    {"{name: a, mock_handler: hello.canned}", false, "{}"},
};

/* Proves W24/engine */
START_TEST(hooks_and_mocks_run_on_workers)
{
    struct how how = {.capabilities = capabilities, .use_mocks = entries[_i].use_mocks};
    struct world w;
    char pipeline[256], *output;

    snprintf(pipeline, sizeof pipeline, "name: h\nagents: [%s]", entries[_i].stage);
    world_run(&w, &how, pipeline, NULL);
    output = world_output(&w, "a");
    ck_assert_str_eq(output, entries[_i].output);
    free(output);
    world_fini(&w);
}
END_TEST

/* Proves 11.4/engine */
START_TEST(a_cancelled_run_leaves_its_calls_behind)
{
    struct how how = {.capabilities = capabilities, .workers = 1};
    struct world w;
    rv_err *err = NULL;

    world_load(&w, "name: h\nagents: [{name: a, pre_process: slow.doze}]", NULL, capabilities);
    world_start(&w, &how, "x");
    rv_engine_cancel_all(w.engine);
    ck_assert_int_eq(rv_engine_wait(w.engine, w.exec, &err), 0);
    ck_assert_str_eq(world_status(&w), "cancelled");
    world_fini(&w);
}
END_TEST

/* A stage whose hook does not answer before the gate is opened; its events until it was given up. */
static void hook_hangs(struct world *w, const char *stage, const char *const says[2], const char *never)
{
    struct how how = {.capabilities = capabilities, .workers = 1};
    char pipeline[256], script[512];
    struct gate gate;

    gate_init(&gate);
    snprintf(pipeline, sizeof pipeline, "name: m\nagents:\n  - {name: p, default_next: a}\n  - {name: a, %s}\n", stage);
    snprintf(script, sizeof script, "stages: {p: [{output: {until: '%s'}}]}", gate.path);
    world_run(w, &how, pipeline, script);
    gate_open(&gate);
    const char *events = rv_buf_cstr(&w->events);
    for (size_t i = 0; i < 2; i++)
        ck_assert_msg(strstr(events, says[i]), "%s", events);
    ck_assert_msg(!never || !strstr(events, never), "%s", events);
    world_fini(w);
    gate_fini(&gate);
}

/* The stage has 300 s, which nothing but the entry's own limit shortens. */
START_TEST(an_entry_that_has_a_limit_of_its_own_is_told_by_it)
{
    static const char own[] = "its own limit", code[] = "\"code\":\"hook_timed_out\"";
    struct world w;

    hook_hangs(
        &w, "mock_handler: slow.hasty, mock: true",
        (const char *const[]){"did not answer within 50 ms: its own limit, timeout_ms of its specification", code},
        NULL);
    hook_hangs(&w, "pre_process: slow.doze, timeout_seconds: 1",
               (const char *const[]){"did not answer within 1000 ms", ""}, own);
}
END_TEST

static const char *const quick[] = {"quick", NULL};

static bool is_this_thread(const char *output)
{
    char mine[64];

    snprintf(mine, sizeof mine, "\"thread\":\"%llu\"", (unsigned long long)pthread_self());
    return strstr(output, mine) != NULL;
}

START_TEST(an_entry_that_never_blocks_is_called_on_the_thread_of_the_loop)
{
    for (int real_time = 0; real_time < 2; real_time++) {
        const char *const names[] = {"elsewhere", "where"};
        for (int never_blocks = 0; never_blocks < 2; never_blocks++) {
            struct how how = {.capabilities = quick, .real_time = real_time};
            struct world w;
            one_step(&w, &how, ", post_process: quick.keep_still", "30", names[never_blocks], "");
            char *output = world_output(&w, "t");
            ck_assert_str_eq(world_status(&w), "completed");
            ck_assert_msg(is_this_thread(output) == never_blocks, "%s", output);
            free(output);
            world_fini(&w);
        }
    }
}
END_TEST

START_TEST(an_entry_that_breaks_its_word_is_named_in_the_log)
{
    struct rv_kit_log log;
    rv_kit_log_init(&log, RV_LOG_WARN, RV_LOG_JSON);
    struct how how = {.capabilities = quick, .log = log.log};
    struct world w;

    one_step(&w, &how, "", "30", "sit", "ms: 30");
    ck_assert_str_eq(world_status(&w), "completed");
    const char *line = rv_kit_log_find(&log, "call.blocked_loop");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_nonnull(strstr(line, "sit"));
    ck_assert_ptr_nonnull(strstr(line, "\"call_id\":"));
    ck_assert_ptr_nonnull(strstr(line, "\"run_id\":\"env_"));
    world_fini(&w);
    rv_kit_log_fini(&log);
}
END_TEST

static long n_threads(void)
{
    char line[256];
    long n = -1;
    FILE *f = fopen("/proc/self/status", "r");

    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "Threads:", 8) == 0)
            n = strtol(line + 8, NULL, 10);
    if (f)
        fclose(f);
    return n;
}

static void *do_nothing(void *self)
{
    return self;
}

/* The time limit of the test fails it where they stay. */
START_TEST(workers_without_work_leave_and_come_back)
{
    struct how how = {.capabilities = capabilities, .real_time = true, .worker_idle_ms = 1};
    pthread_t first; /* with it a sanitizer may begin threads of its own */
    struct world w;

    ck_assert_int_eq(pthread_create(&first, NULL, do_nothing, NULL), 0);
    ck_assert_int_eq(pthread_join(first, NULL), 0);
    long before = n_threads();
    one_step(&w, &how, "", "30", "greet", "name: Ada");
    while (n_threads() > before)
        sched_yield();
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
    rv_exec *second = NULL;
    opts.pipeline = w.pipeline;
    opts.plugins = w.plugins;
    opts.script = w.script;
    rv_script_rewind(w.script);
    rv_envelope *env = world_envelope("y", rv_engine_now_us(w.engine));
    ck_assert_int_eq(rv_engine_start(w.engine, &opts, env, NULL, &second, NULL), 0);
    ck_assert_int_eq(rv_engine_wait(w.engine, second, NULL), 0);
    ck_assert_int_eq(rv_exec_status(second), RV_RUN_COMPLETED);
    rv_exec_free(second);
    world_fini(&w);
}
END_TEST

Suite *workers_suite(void)
{
    Suite *suite = suite_create("workers");
    TCase *tc = tcase_create("workers");

    tcase_add_test(tc, rule_11_2_one_and_eight_workers_give_the_same_bytes);
    tcase_add_loop_test(tc, a_tool_answers_or_says_what_it_did_wrong, 0, RV_COUNT(tools));
    tcase_add_loop_test(tc, hooks_and_mocks_run_on_workers, 0, RV_COUNT(entries));
    tcase_add_test(tc, a_call_without_a_thread_fails_with_a_code_of_its_own_and_the_next_run_has_one);
    tcase_add_test(tc, a_tool_that_ignores_its_deadline_is_given_up_also_in_simulated_time);
    tcase_add_test(tc, how_long_was_waited_is_what_was_allowed_however_late_the_call_began);
    tcase_add_test(tc, a_cancelled_run_leaves_its_calls_behind);
    tcase_add_test(tc, an_entry_that_has_a_limit_of_its_own_is_told_by_it);
    tcase_add_test(tc, an_entry_that_never_blocks_is_called_on_the_thread_of_the_loop);
    tcase_add_test(tc, an_entry_that_breaks_its_word_is_named_in_the_log);
    tcase_add_test(tc, workers_without_work_leave_and_come_back);
    suite_add_tcase(suite, tc);
    return suite;
}
