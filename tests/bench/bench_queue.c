/* Runs a second of a queue: runs that wait in a store, done by several processes of `reeve worker`.
 *
 *   bench_queue REEVE CAPABILITIES N WORKERS STORE SYNC   STORE a new file or the URL of an empty schema
 *
 * A run calls one tool of one capability, and its pipeline names another capability, too. The time is from the start of
 * the workers until all of them have ended because nothing is left. Prints one JSON object. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coreengine/app/app.h"
#include "tests/bench/bench_kit.h"

#define MAX_WORKERS 64
#define PIPELINE                                                                                                       \
    "name: queued\ncapabilities: [hello, echo]\nagents:\n"                                                             \
    "  - {name: work, has_tools: true, tool_access: all, output_key: done}\n"
#define STATE "{\"outputs\":{\"plan\":{\"steps\":[{\"tool\":\"greet\",\"parameters\":{\"name\":\"you\"}}]}}}"

static void submit_one(const struct rv_app *app, struct rv_app_loaded *loaded, json_object *state)
{
    struct rv_app_run run = {.app = app, .loaded = loaded, .mode = RV_UNSET};
    const struct rv_app_submit how = {.priority = 0};
    struct rv_app_submitted out;
    rv_envelope *env = NULL;
    rv_err *err = NULL;

    if (rv_envelope_load(state, rv_rand_system(), rv_app_now_us(), &env, &err) < 0 || rv_app_run_open(&run, &err) < 0 ||
        rv_app_submit(&run, env, &how, &out, &err) < 0)
        bench_die("submit", err);
    rv_app_run_fini(&run);
    rv_envelope_free(env);
}

static void submit(const struct rv_app *app, size_t n)
{
    const struct rv_app_load_opts opts = {.keeps = true, .text = RV_STR_LIT(PIPELINE)};
    struct rv_app_loaded loaded;
    json_object *state = NULL;
    rv_err *err = NULL;

    if (rv_app_load(app, "queued.yaml", &opts, &loaded, &err) < 0 ||
        rv_json_parse(RV_STR_LIT(STATE), NULL, &state, &err) < 0)
        bench_die("load", err);
    if (rv_findings_n_errors(loaded.findings) > 0)
        bench_die(rv_findings_at(loaded.findings, 0).text, NULL);
    for (size_t i = 0; i < n; i++)
        submit_one(app, &loaded, state);
    json_object_put(state);
    rv_app_loaded_fini(&loaded);
}

static int count_row(void *self, const struct rv_run_row *row, rv_err **err)
{
    (void)err;
    *(size_t *)self += row->status == RV_RUN_COMPLETED;
    return 0;
}

static size_t count_completed(const struct rv_app *app)
{
    const struct rv_run_filter filter = {.statuses = 1u << RV_RUN_COMPLETED};
    rv_store *s = NULL;
    rv_err *err = NULL;
    size_t n = 0;

    if (rv_app_store_open(app, RV_APP_STORE_READ, &s, &err) < 0 ||
        rv_store_list_runs(s, &app->scope, &filter, count_row, &n, &err) < 0)
        bench_die("count", err);
    rv_store_close(s);
    return n;
}

static pid_t start(const char *const *argv)
{
    pid_t pid = fork();

    if (pid == 0) {
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    if (pid < 0)
        bench_die("fork", NULL);
    return pid;
}

int main(int argc, char **argv)
{
    if (argc != 7)
        bench_die("usage: bench_queue REEVE CAPABILITIES N WORKERS STORE SYNC", NULL);
    size_t n = bench_number(argv[3], 1), n_workers = bench_number(argv[4], 1);
    const char *dir = argv[2];
    const struct rv_app app = {
        .store = argv[5], .sync = "off", .capability_dirs = &dir, .n_capability_dirs = 1, .capability = ""};
    const char *const worker[] = {argv[1],   "worker",       "--store",           argv[5], "--sync", argv[6],
                                  "--quiet", "--until-idle", "--capability-path", dir,     NULL};
    pid_t pids[MAX_WORKERS];
    int status = 0;

    if (n_workers > MAX_WORKERS)
        bench_die("too many workers", NULL);
    submit(&app, n);
    int64_t begun = bench_now_ns();
    for (size_t i = 0; i < n_workers; i++)
        pids[i] = start(worker);
    for (size_t i = 0; i < n_workers; i++)
        if (waitpid(pids[i], &status, 0) != pids[i] || status != 0)
            bench_die("a worker failed", NULL);
    double seconds = (double)(bench_now_ns() - begun) / 1e9;
    size_t n_done = count_completed(&app);
    if (n_done != n)
        bench_die("runs were not completed", NULL);
    printf("{\"runs\":%zu,\"workers\":%zu,\"seconds\":%.2f,\"runs_a_second\":%.0f}\n", n, n_workers, seconds,
           (double)n / seconds);
    return 0;
}
