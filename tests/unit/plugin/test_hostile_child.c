/* A capability that does its worst in a process of its own costs the call it was given, and nothing else. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/plugin/suites.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SHADOW 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SHADOW 1
#endif
#endif

static const struct {
    const char *capability, *tool;
    int64_t timeout_ms;
    int rc;
    const char *says, *next;
    int n_rounds;
} worst[] = {
    {"crash", "die", 0, RV_E_PLUGIN, "tool \"die\" of capability \"crash\"", NULL, 1},
    {"greedy", "abort_now", 0, RV_E_PLUGIN, "died of signal 6 (SIGABRT) in this call", "healthy", 3},
    {"greedy", "leave", 0, RV_E_PLUGIN, "ended with status 0 in this call", "healthy", 3},
    {"greedy", "close_all", 0, RV_E_PLUGIN, "died of signal 9 (SIGKILL) in this call", "healthy",
     1}, /* its host looks once a second */
    {"greedy", "forge", 0, RV_E_PLUGIN, "too large", "healthy", 3},
    {"greedy", "hang", 50, RV_E_TIMEOUT, "no answer in time", "healthy", 3},
    {"greedy", "wait_for_cancel", 50, RV_E_TIMEOUT, "no answer in time", "healthy", 3},
    {"slow", "doze", 50, RV_E_TIMEOUT, "no answer in time", NULL, 1},
    {"greedy", "leak_descriptors", 0, RV_E_TOOL, "too many open files", "healthy", 3},
#ifndef HAS_SHADOW
    {"greedy", "eat_memory", 0, RV_E_TOOL, "out of memory", "healthy", 3},
    {"greedy", "eat_memory_and_die", 0, RV_E_PLUGIN, "died of signal 6 (SIGABRT) in this call", "healthy", 3},
#endif
};

/* Proves W26/plugins */
START_TEST(the_worst_costs_one_failed_call_and_nothing_else)
{
    const struct rv_plugin_call call = {.kind = RV_NAME_TOOL,
                                        .name = worst[_i].tool,
                                        .args = RV_STR_LIT("{\"ms\": 600000}"),
                                        .timeout_ms = worst[_i].timeout_ms};
    rv_plugins *p = new_set(NULL);
    rv_buf out = RV_BUF_INIT(4096);

    must_isolate(p, worst[_i].capability);
    for (int round = 0; round < worst[_i].n_rounds; round++) {
        rv_err *err = NULL;
        ck_assert_int_eq(rv_plugins_call(p, &call, &out, &err), worst[_i].rc);
        ck_assert_msg(strstr(error_text(err), worst[_i].says) != NULL, "%s", error_text(err));
        ck_assert_str_eq(rv_plugin_error_type(err), worst[_i].rc == RV_E_TIMEOUT ? "TimeoutError" : "ExecutionError");
        ck_assert_uint_eq(out.len, 0);
        rv_err_free(err);
        err = NULL;
        if (worst[_i].next) {
            int rc = call_entry(p, RV_NAME_TOOL, worst[_i].next, "{}", &out, &err);
            ck_assert_msg(rc == 0, "%s", error_text(err));
            ck_assert_str_eq(rv_buf_cstr(&out), "{\"ok\": true}");
            rv_buf_clear(&out);
        }
    }
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

START_TEST(a_plugin_that_dies_before_its_first_call_is_refused)
{
    static const char *const names[] = {"dies_in_open", "dies_in_constructor"};
    rv_plugins *p = new_set(NULL);

    for (size_t i = 0; i < RV_COUNT(names); i++) {
        rv_err *err = NULL;
        ck_assert_int_eq(load_isolated(p, names[i], NULL, &err), RV_E_PLUGIN);
        ck_assert_msg(strstr(error_text(err), "SIGABRT) while it was loaded") != NULL, "%s", error_text(err));
        rv_err_free(err);
    }
    must_isolate(p, "good");
    rv_plugins_free(p);
}
END_TEST

START_TEST(one_that_dies_again_and_again_is_started_again_later_and_later)
{
    rv_plugins *p = new_set(NULL);
    rv_buf out = RV_BUF_INIT(4096);
    bool refused = false;

    must_isolate(p, "greedy");
    ck_assert_int_eq(call_entry(p, RV_NAME_TOOL, "leave", "{}", &out, NULL), RV_E_PLUGIN);
    for (int i = 0; !refused; i++) { /* a slow machine may sit out the first pauses; they grow */
        rv_err *err = NULL;
        ck_assert_int_eq(call_entry(p, RV_NAME_TOOL, "leave", "{}", &out, &err), RV_E_PLUGIN);
        if (i == 0)
            ck_assert_msg(strstr(error_text(err), "status 0 in this call") != NULL, "%s", error_text(err));
        refused = strstr(error_text(err), "times in a row and is not started again for");
        rv_err_free(err);
    }
    while (call_entry(p, RV_NAME_TOOL, "healthy", "{}", &out, NULL) < 0)
        sched_yield(); /* until the pause is over */
    ck_assert_str_eq(rv_buf_cstr(&out), "{\"ok\": true}");
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

START_TEST(a_cancelled_call_is_told_and_a_deaf_one_is_killed)
{
    const atomic_bool cancelled = true;
    struct rv_plugin_call call = {
        .kind = RV_NAME_TOOL, .name = "wait_for_cancel", .args = RV_STR_LIT("{}"), .cancelled = &cancelled};
    rv_plugins *p = new_set(NULL);
    rv_buf out = RV_BUF_INIT(4096);

    must_isolate(p, "greedy");
    ck_assert_int_eq(rv_plugins_call(p, &call, &out, NULL), 0);
    ck_assert_str_eq(rv_buf_cstr(&out), "{\"cancelled\": true}");
    rv_buf_clear(&out);
    call.name = "hang";
    ck_assert_int_eq(rv_plugins_call(p, &call, &out, NULL), RV_E_CANCELLED);
    ck_assert_int_eq(call_entry(p, RV_NAME_TOOL, "healthy", "{}", &out, NULL), 0);
    rv_buf_fini(&out);
    rv_plugins_free(p);
}
END_TEST

static long pid_of_child(rv_plugins *p)
{
    rv_buf out = RV_BUF_INIT(4096);
    long pid = 0;

    ck_assert_int_eq(call_entry(p, RV_NAME_TOOL, "where", "{}", &out, NULL), 0);
    pid = strtol(strstr(rv_buf_cstr(&out), ": ") + 2, NULL, 10);
    rv_buf_fini(&out);
    return pid;
}

START_TEST(a_child_killed_between_calls_costs_no_call)
{
    rv_plugins *p = new_set(NULL);
    rv_buf out = RV_BUF_INIT(4096);

    must_isolate(p, "greedy");
    long pid = pid_of_child(p);
    ck_assert_int_ne(pid, getpid());
    ck_assert_int_eq(kill((pid_t)pid, SIGKILL), 0);
    siginfo_t info; /* it is a zombie then, and still the engine's to wait for */
    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    ck_assert_int_eq(call_entry(p, RV_NAME_TOOL, "healthy", "{}", &out, NULL), 0);
    ck_assert_int_ne(pid_of_child(p), pid);
    rv_buf_fini(&out);
    rv_plugins_free(p);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left */
    ck_assert_int_eq(errno, ECHILD);
}
END_TEST

/* In a process that will be killed: say who the child is, and stay in a call that hangs (or stay idle). */
static void be_killed(int report, bool in_call)
{
    rv_plugins *p = new_set(NULL);
    rv_buf out = RV_BUF_INIT(4096);
    long pid;

    must_isolate(p, "greedy");
    pid = pid_of_child(p);
    if (write(report, &pid, sizeof pid) != sizeof pid)
        _exit(1);
    if (in_call)
        RV_IGNORE(call_entry(p, RV_NAME_TOOL, "hang", "{}", &out, NULL), "it does not return");
    for (;;)
        pause();
}

START_TEST(a_child_does_not_outlive_a_killed_engine)
{
    int ends[2];
    long child = 0;

    ck_assert_int_eq(pipe(ends), 0);
    pid_t engine = fork();
    ck_assert_int_ge(engine, 0);
    if (engine == 0)
        be_killed(ends[1], _i == 1);
    ck_assert_int_eq(read(ends[0], &child, sizeof child), sizeof child);
    ck_assert_int_eq(kill((pid_t)child, 0), 0);
    kill(engine, SIGKILL);
    ck_assert_int_eq(waitpid(engine, NULL, 0), engine);
    char path[64], state[256] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", child);
    for (bool gone = false; !gone; sched_yield()) { /* Check ends the test when it stays */
        FILE *f = fopen(path, "r");                 /* where nobody reaps orphans it stays a zombie */
        gone = !f || !fgets(state, sizeof state, f) || strstr(state, ") Z ") || strstr(state, ") X ");
        if (f)
            fclose(f);
    }
    close(ends[0]);
    close(ends[1]);
}
END_TEST

Suite *hostile_child_suite(void)
{
    Suite *s = suite_create("plugin hostile child");
    TCase *tc = tcase_create("hostile child");

    tcase_add_loop_test(tc, the_worst_costs_one_failed_call_and_nothing_else, 0, RV_COUNT(worst));
    tcase_add_test(tc, a_plugin_that_dies_before_its_first_call_is_refused);
    tcase_add_test(tc, one_that_dies_again_and_again_is_started_again_later_and_later);
    tcase_add_test(tc, a_cancelled_call_is_told_and_a_deaf_one_is_killed);
    tcase_add_test(tc, a_child_killed_between_calls_costs_no_call);
    tcase_add_loop_test(tc, a_child_does_not_outlive_a_killed_engine, 0, 2);
    suite_add_tcase(s, tc);
    return s;
}
