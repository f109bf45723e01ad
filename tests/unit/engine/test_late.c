/* Calls that a capability answers after its function has returned, by a ticket. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/kit.h"
#include "tests/unit/engine/suites.h"

static const char *const capabilities[] = {"late", NULL};

#define ONE_STEP                                                                                                       \
    "name: one\nagents:\n  - {name: p, default_next: t}\n"                                                             \
    "  - {name: t, has_tools: true, tool_access: all, plan_from: p%s}\n"                                               \
    "execution: {tool_timeout: %s}\n"
#define PLAN "stages: {p: [{output: {steps: [{tool: %s}, {tool: refused}]}}]}"

static char *output_of(struct world *w, const struct how *how, const char *extra, const char *timeout, const char *tool)
{
    char pipeline[512], script[512];

    snprintf(pipeline, sizeof pipeline, ONE_STEP, extra, timeout);
    snprintf(script, sizeof script, PLAN, tool);
    world_run(w, how, pipeline, script);
    ck_assert_str_eq(world_status(w), "completed");
    return world_output(w, "t");
}

static const struct {
    const char *tool, *output; /* a part of the stage's output */
} tools[] = {
    {"works", "\"from\":\"later\""},
    {"works_here", "\"from\":\"later\""},
    {"early", "\"from\":\"later\""},
    {"early_here", "\"from\":\"later\""},
    {"twice", "\"from\":\"later\""},
    {"changes_its_mind", "\"from\":\"now\""},
    {"fails_later", "\"type\":\"NotFoundError\",\"message\":\"looked for it, later\""},
    {"late_garbage", "tool \\\"late_garbage\\\" of capability \\\"late\\\": it answered what is not JSON"},
    {"late_null", "it answered with a null pointer"},
    {"no_ticket", "it left its answer for later and has no ticket of later()"},
    {"both", "it answered and left its answer for later"},
};

START_TEST(an_answer_counts_when_it_comes)
{
    for (int real_time = 0; real_time < 2; real_time++) {
        struct how how = {.capabilities = capabilities, .real_time = real_time};
        struct world w;
        char *output = output_of(&w, &how, ", pre_process: late.hook", "30", tools[_i].tool);
        ck_assert_msg(strstr(output, tools[_i].output), "%s", output);
        free(output);
        world_fini(&w);
    }
}
END_TEST

START_TEST(its_worker_is_free_meanwhile)
{
    struct how how = {.capabilities = capabilities, .workers = 1, .real_time = true};
    struct world w;

    world_run(&w, &how,
              "name: two\ndefault_run_mode: parallel\nagents:\n  - {name: p}\n"
              "  - {name: t, has_tools: true, tool_access: all, plan_from: p, requires: [p]}\n"
              "  - {name: u, has_tools: true, tool_access: all, plan_from: p, requires: [p]}\n",
              "stages: {p: [{output: {steps: [{tool: meets}]}}]}");
    ck_assert_str_eq(world_status(&w), "completed");
    world_fini(&w);
}
END_TEST

/* Threads of the plugin end when their answer is not wanted any more: close() waits for them. */
START_TEST(a_deadline_ends_a_call_that_is_not_answered)
{
    static const char *const names[] = {"waits", "never"};

    for (size_t i = 0; i < 2 * RV_COUNT(names); i++) {
        struct how how = {.capabilities = capabilities, .real_time = i % 2};
        struct world w;
        char *output = output_of(&w, &how, "", "0.05", names[i / 2]);
        ck_assert_msg(strstr(output, "did not answer within 50 ms"), "%s", output);
        free(output);
        world_fini(&w);
    }
}
END_TEST

START_TEST(a_cancellation_ends_it_too)
{
    struct how how = {.capabilities = capabilities};
    struct world w;

    world_load(&w,
               "name: one\nagents:\n  - {name: p, default_next: t}\n"
               "  - {name: t, has_tools: true, tool_access: all, plan_from: p}\n",
               "stages: {p: [{output: {steps: [{tool: waits}]}}]}", capabilities);
    world_start(&w, &how, "x");
    rv_engine_cancel_all(w.engine);
    ck_assert_int_eq(rv_engine_wait(w.engine, w.exec, NULL), 0);
    ck_assert_str_eq(world_status(&w), "cancelled");
    world_fini(&w);
}
END_TEST

static rv_plugins *load(const struct rv_capability_config *which, rv_log *log)
{
    const char *const dirs[] = {HOSTILE_DIR};
    const struct rv_plugins_opts opts = {.dirs = dirs, .n_dirs = 1, .host_program = REEVE_PROGRAM, .log = log};
    rv_plugins *p = NULL;
    rv_err *err = NULL;

    ck_assert_int_eq(rv_plugins_new(&opts, &p, NULL), 0);
    ck_assert_msg(rv_plugins_load(p, which, &err) == 0, "%s", err ? rv_err_text(err) : "");
    return p;
}

static void not_wanted(struct rv_plugin_work *w)
{
    (void)w;
    ck_abort_msg("the work was given up");
}

static struct rv_plugin_work *work(rv_plugins *p, const char *tool)
{
    const struct rv_plugin_call call = {.kind = RV_NAME_TOOL,
                                        .name = tool,
                                        .args = RV_STR_LIT("{}"),
                                        .run_id = "r",
                                        .stage = "s",
                                        .user_id = "",
                                        .session_id = "",
                                        .idempotency_key = "",
                                        .context = "{}"};
    struct rv_plugin_work *w = rv_plugin_work_new(p, &call, not_wanted, NULL);

    ck_assert_ptr_nonnull(w);
    return w;
}

START_TEST(tickets_without_an_answer_are_bounded_and_keep_the_code_loaded)
{
    struct rv_kit_log log;
    rv_kit_log_init(&log, RV_LOG_WARN, RV_LOG_JSON);
    rv_plugins *p = load(&(struct rv_capability_config){.name = "late", .src = {"p.yaml", 1, 1}}, log.log);

    for (int i = 0; i <= 1024; i++) {
        struct rv_plugin_work *w = work(p, "hoards");
        ck_assert_int_eq(w->work.run(&w->work), i == 1024);
        if (i == 1024)
            ck_assert_str_eq(rv_plugin_error_type(w->failure), "LimitError");
        w->work.free(&w->work); /* given up */
    }
    rv_plugins_free(p);
    ck_assert_ptr_nonnull(rv_kit_log_find(&log, "capability.late"));
    void *still_there = dlopen(HOSTILE_DIR "/late.so", RTLD_NOW | RTLD_NOLOAD);
    ck_assert_ptr_nonnull(still_there);
    dlclose(still_there);
    rv_kit_log_fini(&log);
}
END_TEST

START_TEST(in_a_process_of_its_own_it_is_refused)
{
    rv_plugins *p =
        load(&(struct rv_capability_config){.name = "late", .isolation = RV_ISOLATION_PROCESS, .src = {"p.yaml", 1, 1}},
             NULL);

    struct rv_plugin_work *w = work(p, "works");
    ck_assert(w->work.run(&w->work));
    ck_assert_str_eq(rv_err_text(w->failure), "no ticket");
    w->work.free(&w->work);
    w = work(p, "no_ticket");
    ck_assert(w->work.run(&w->work));
    ck_assert_ptr_nonnull(rv_err_cause(w->failure));
    ck_assert_str_eq(rv_err_text(rv_err_cause(w->failure)),
                     "it left its answer for later, which a capability with `isolation: process` cannot do");
    w->work.free(&w->work);
    rv_plugins_free(p);
}
END_TEST

Suite *late_suite(void)
{
    Suite *suite = suite_create("late");
    TCase *tc = tcase_create("late");

    tcase_add_loop_test(tc, an_answer_counts_when_it_comes, 0, RV_COUNT(tools));
    tcase_add_test(tc, its_worker_is_free_meanwhile);
    tcase_add_test(tc, a_deadline_ends_a_call_that_is_not_answered);
    tcase_add_test(tc, a_cancellation_ends_it_too);
    tcase_add_test(tc, tickets_without_an_answer_are_bounded_and_keep_the_code_loaded);
    tcase_add_test(tc, in_a_process_of_its_own_it_is_refused);
    suite_add_tcase(suite, tc);
    return suite;
}
