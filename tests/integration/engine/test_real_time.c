/* The engine in real time: what overlaps, what is given up, what is never made. No test judges how long something took:
 * what must not be waited for would take so long that the test is ended. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/kit/kit.h"
#include "tests/kit/suites.h"
#include "tests/unit/engine/world.h"

static const char *const capabilities[] = {"slow", "hello", NULL};

/* Ids of this process' threads; n_max bounds the list, the number is returned. */
static int list_threads(long *ids, int n_max)
{
    struct dirent *entry;
    int n = 0;
    DIR *tasks = opendir("/proc/self/task");

    while (tasks && (entry = readdir(tasks)) && n < n_max)
        if (entry->d_name[0] != '.')
            ids[n++] = strtol(entry->d_name, NULL, 10);
    if (tasks)
        closedir(tasks);
    return n;
}

/* How many threads there are now that were not there then. What earlier tests gave up may end at any moment. */
static int count_new_threads(const long *then, int n_then)
{
    long now[512];
    int n_now = list_threads(now, 512), n_new = 0;

    for (int i = 0; i < n_now; i++) {
        int at = 0;
        while (at < n_then && then[at] != now[i])
            at++;
        n_new += at == n_then;
    }
    return n_new;
}

static int n_open_files(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* Each call waits until the other one is there, too. */
/* Proves 7.7/engine */
START_TEST(parallel_tools_overlap)
{
    struct how how = {.real_time = true, .workers = 2, .capabilities = capabilities};
    struct world w;

    world_run(&w, &how,
              "name: two\ndefault_run_mode: parallel\nagents:\n  - {name: p}\n"
              "  - {name: a, requires: [p], has_tools: true, tool_access: all, plan_from: p}\n"
              "  - {name: b, requires: [p], has_tools: true, tool_access: all, plan_from: p}\n",
              "stages: {p: [{output: {steps: [{tool: meet}]}}]}");
    ck_assert_str_eq(world_status(&w), "completed");
    for (int i = 0; i < 2; i++) {
        char *output = world_output(&w, i ? "a" : "b");
        ck_assert_msg(strstr(output, "\"met\":true") != NULL, "%s", output);
        free(output);
    }
    world_fini(&w);
}
END_TEST

#define TOO_LONG "600000" /* nobody waits for it */

static void run_stuck(struct world *w, const char *script)
{
    struct how how = {.real_time = true, .workers = 1, .capabilities = capabilities};

    world_run(w, &how,
              "name: stuck\nexecution: {tool_timeout: 2}\nagents:\n  - {name: p, default_next: a}\n"
              "  - {name: a, has_tools: true, tool_access: all, plan_from: p, default_next: end}\n",
              script);
    char *a = world_output(w, "a");
    ck_assert_msg(strstr(a, "did not answer within 2000 ms") && strstr(a, "Hello, x!"), "%s", a);
    free(a);
}

#define DOZES_AND_GREETS(ms)                                                                                           \
    "stages: {p: [{output: {steps: [{tool: doze, parameters: {ms: " ms "}},"                                           \
    " {tool: greet, parameters: {name: x}}]}}]}"

START_TEST(a_tool_that_ignores_its_deadline_holds_up_neither_the_run_nor_others)
{
    struct world w;

    run_stuck(&w, DOZES_AND_GREETS("10000"));
    ck_assert(!rv_engine_settle(w.engine, 0)); /* the only worker is still asleep */
    world_fini(&w);                            /* settles */
}
END_TEST

START_TEST(the_exit_does_not_wait_for_a_stuck_call)
{
    struct world w;
    int status = 0;
    pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        run_stuck(&w, DOZES_AND_GREETS(TOO_LONG));
        rv_exec_free(w.exec);
        rv_engine_free(w.engine);
        _exit(7);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}
END_TEST

START_TEST(too_many_stuck_calls_make_further_ones_fail_at_once)
{
    struct how how = {.real_time = true, .workers = 66, .max_parallel = 66, .capabilities = capabilities};
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
    struct world w;
    rv_buf text = RV_BUF_INIT(1 << 16), script = RV_BUF_INIT(1 << 12), state = RV_BUF_INIT(1 << 24);
    char *dir = rv_kit_tmpdir(), *until = rv_kit_path(dir, "until");
    rv_exec *second = NULL;

    ck_assert_int_eq(mkfifo(until, 0600), 0);
    rv_buf_printf(&script, "stages: {p: [{output: {until: \"%s\"}}]}", until);
    /* 15 s: each call has begun by then, on a busy machine and under the thread sanitizer, too */
    rv_buf_puts(&text, "name: stuck\nmax_agent_hops: 200\ndefault_run_mode: parallel\nagents:\n  - {name: p}\n");
    for (int i = 0; i < 66; i++)
        rv_buf_printf(&text, "  - {name: s%d, pre_process: slow.doze, timeout_seconds: 15, requires: [p]}\n", i);
    world_run(&w, &how, rv_buf_cstr(&text), rv_buf_cstr(&script));
    ck_assert_str_eq(world_status(&w), "failed");

    opts.pipeline = w.pipeline;
    opts.plugins = w.plugins;
    opts.script = w.script;
    ck_assert_int_eq(
        rv_engine_start(w.engine, &opts, world_envelope("y", rv_engine_now_us(w.engine)), NULL, &second, NULL), 0);
    ck_assert_int_eq(rv_engine_wait(w.engine, second, NULL), 0);
    rv_envelope_write_state(rv_exec_envelope(second), &state);
    ck_assert_ptr_nonnull(strstr(rv_buf_cstr(&state), "66 calls that were given up are still running"));
    rv_exec_free(second);
    int fd = open(until, O_WRONLY | O_CLOEXEC); /* all of them go on */
    ck_assert_int_ge(fd, 0);
    world_fini(&w);
    close(fd);
    rv_buf_fini(&text);
    rv_buf_fini(&script);
    rv_buf_fini(&state);
    free(until);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

START_TEST(a_service_run_makes_no_thread_and_no_loop)
{
    struct how how = {.real_time = true};
    struct world w;
    long threads[512];
    int n_threads, files;

    world_load(&w, "name: s\nagents: [{name: a, default_next: b}, {name: b, default_next: c}, {name: c}]", NULL, NULL);
    n_threads = list_threads(threads, 512);
    ck_assert_int_gt(n_threads, 0);
    files = n_open_files();
    world_start(&w, &how, "x");
    ck_assert_int_eq(rv_engine_wait(w.engine, w.exec, NULL), 0);
    ck_assert_int_eq(count_new_threads(threads, n_threads), 0);
    ck_assert_int_le(n_open_files(), files);
    world_fini(&w);
}
END_TEST

/* Tells once that a stage has begun: a byte for the pipe whose end self points to; -1: told, or not wanted. */
static void tell_ready(void *self, const struct rv_effect *e, rv_str line)
{
    int *ready = self;

    (void)line;
    if (*ready >= 0 && e->emit == RV_EMIT_STAGE_STARTED) {
        ck_assert_int_eq(write(*ready, "r", 1), 1);
        *ready = -1;
    }
}

struct canceller {
    rv_engine *engine; /* borrowed */
    int ready;         /* gets a byte when the stage has begun */
};

static void *cancel_when_ready(void *self)
{
    struct canceller *c = self;
    char byte;

    if (read(c->ready, &byte, 1) == 1)
        rv_engine_cancel_all(c->engine);
    return NULL;
}

START_TEST(another_thread_may_cancel)
{
    const struct rv_engine_opts opts = {.workers = 1};
    struct rv_exec_opts x = RV_EXEC_OPTS_INIT;
    struct canceller canceller;
    struct world w;
    pthread_t thread;
    int ready[2], told;

    ck_assert_int_eq(pipe(ready), 0);
    told = ready[1];
    world_load(&w, "name: s\nagents: [{name: a}]", "stages: {a: [{output: {}, delay_ms: " TOO_LONG "}]}", NULL);
    ck_assert_int_eq(rv_engine_new(&opts, &w.engine, NULL), 0);
    canceller = (struct canceller){w.engine, ready[0]};
    ck_assert_int_eq(pthread_create(&thread, NULL, cancel_when_ready, &canceller), 0);
    x.pipeline = w.pipeline;
    x.script = w.script;
    x.observer = (struct rv_observer){.on_event = tell_ready, .self = &told};
    int rc = rv_engine_start(w.engine, &x, world_envelope("x", rv_engine_now_us(w.engine)), NULL, &w.exec, NULL);
    ck_assert_int_eq(rc, 0);
    ck_assert_int_eq(rv_engine_wait(w.engine, w.exec, NULL), 0);
    pthread_join(thread, NULL);
    ck_assert_str_eq(world_status(&w), "cancelled");
    close(ready[0]);
    close(ready[1]);
    world_fini(&w);
}
END_TEST

/* In a child: a run that waits, with signals watched. ready: gets a byte when its stage begins; -1: nothing. Exit
 * status: that of the run. */
static int wait_for_signals(const char *pipeline, const char *script, int ready)
{
    const struct rv_engine_opts opts = {.handle_signals = true, .workers = 1};
    struct rv_exec_opts x = RV_EXEC_OPTS_INIT;
    struct world w;

    world_load(&w, pipeline, script, capabilities);
    ck_assert_int_eq(rv_engine_new(&opts, &w.engine, NULL), 0);
    x.pipeline = w.pipeline;
    x.script = w.script;
    x.plugins = w.plugins;
    x.observer = (struct rv_observer){.on_event = tell_ready, .self = &ready};
    int rc = rv_engine_start(w.engine, &x, world_envelope("x", rv_engine_now_us(w.engine)), NULL, &w.exec, NULL);
    ck_assert_int_eq(rc, 0);
    rc = rv_engine_wait(w.engine, w.exec, NULL);
    return rc == 0 ? 40 + (int)rv_exec_status(w.exec) : 1;
}

static int signalled_child(int n_signals, int number)
{
    int ready[2], status = 0;
    char c;

    ck_assert_int_eq(pipe(ready), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        _exit(
            wait_for_signals("name: s\nagents: [{name: a}]", "stages: {a: [{output: {}, delay_ms: 30000}]}", ready[1]));
    ck_assert_int_eq(read(ready[0], &c, 1), 1);
    for (int i = 0; i < n_signals; i++)
        ck_assert_int_eq(kill(pid, number), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    close(ready[0]);
    close(ready[1]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

START_TEST(a_signal_cancels)
{
    ck_assert_int_eq(signalled_child(1, _i ? SIGTERM : SIGINT), 40 + RV_RUN_CANCELLED);
}
END_TEST

/* Capability code that sleeps and does not listen holds up nothing. It opens a pipe when it begins. */
START_TEST(a_run_with_a_deaf_call_still_ends_at_the_first_signal)
{
    char *dir = rv_kit_tmpdir(), *begun = rv_kit_path(dir, "begun");
    rv_buf script = RV_BUF_INIT(4096);
    int status = 0;

    ck_assert_int_eq(mkfifo(begun, 0600), 0);
    rv_buf_printf(&script, "stages: {p: [{output: {ms: " TOO_LONG ", begun: \"%s\"}}]}", begun);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        _exit(wait_for_signals("name: s\nagents: [{name: p, default_next: a}, {name: a, pre_process: slow.doze}]",
                               rv_buf_cstr(&script), -1));
    int fd = open(begun, O_RDONLY | O_CLOEXEC); /* waits until the other end is opened */
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(kill(pid, SIGINT), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 40 + RV_RUN_CANCELLED);
    close(fd);
    rv_buf_fini(&script);
    free(begun);
    rv_kit_tmpdir_remove(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("real_time");
    TCase *tc = tcase_create("real_time");

    tcase_add_test(tc, parallel_tools_overlap);
    tcase_add_test(tc, a_tool_that_ignores_its_deadline_holds_up_neither_the_run_nor_others);
    tcase_add_test(tc, the_exit_does_not_wait_for_a_stuck_call);
    tcase_add_test(tc, too_many_stuck_calls_make_further_ones_fail_at_once);
    tcase_add_test(tc, a_service_run_makes_no_thread_and_no_loop);
    tcase_add_test(tc, another_thread_may_cancel);
    tcase_add_loop_test(tc, a_signal_cancels, 0, 2);
    tcase_add_test(tc, a_run_with_a_deaf_call_still_ends_at_the_first_signal);
    suite_add_tcase(suite, tc);
    return rv_kit_run(suite);
}
