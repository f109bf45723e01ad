/* A program that hosts an engine on its own loop, killed at every operation on its store and on the outside world:
 * hosted [--sample] SHIM CAPABILITIES
 *
 * `hosted host STORE` is that program. It begins its runs, or goes on with those that an earlier process left, all at
 * once: the store thread commits their steps in groups. However often it dies, in the end each run is completed, with
 * no effect lost and none repeated that must not be. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "coreengine/engine/engine.h"
#include "tests/crash/process.h"
#include "tests/kit/kit.h"

#define N_RUNS  4
#define N_STEPS 4
#define SAMPLE  29 /* with --sample every so manieth point */

#define PIPELINE                                                                                                       \
    "name: hosted\nagents:\n  - {name: p, default_next: t}\n"                                                          \
    "  - {name: t, has_tools: true, tool_access: all, plan_from: p}\n"

static const struct {
    const char *tool;
    bool is_once; /* it must not be repeated */
} steps[N_STEPS] = {{"append_probed", true}, {"set_flag", false}, {"append_probed", true}, {"read_counter", false}};

static void die(const rv_err *err, const char *what)
{
    rv_kit_die("%s: %s", what, err ? rv_err_text(err) : "failed");
}

/* err is read when the call is over. */
#define must(call, err, what)                                                                                          \
    do {                                                                                                               \
        if ((call) < 0)                                                                                                \
            die(err, what);                                                                                            \
    } while (0)

/* --- the program --- */

struct host {
    uv_loop_t loop;
    rv_store *store;
    rv_plugins *plugins;
    rv_engine *engine;
    struct rv_pipeline *pipeline;
    rv_script *scripts[N_RUNS];
    char owner[RV_OWNER_MAX], bundle[RV_STORE_HASH_MAX];
    int n_begun;
};

static void on_ended(void *self, rv_exec *x, int rc, const rv_err *err)
{
    (void)self;
    must(rc, err, "a run");
    if (rv_exec_status(x) != RV_RUN_COMPLETED)
        rv_kit_die("a run was %s", rv_run_status_text(rv_exec_status(x)));
    rv_exec_free(x);
}

static rv_script *script_of(int run, rv_findings *f)
{
    char *dir = rv_kit_tmpdir(), *path = rv_kit_path(dir, "script.yaml");
    RV_AUTO(rv_buf_fini) rv_buf text = RV_BUF_INIT(4096);
    rv_script *script = NULL;
    rv_err *err = NULL;

    rv_buf_puts(&text, "stages: {p: [{output: {steps: [");
    for (int i = 0; i < N_STEPS; i++)
        rv_buf_printf(&text, "%s{tool: %s, parameters: {text: r%d-%d}}", i ? ", " : "", steps[i].tool, run, i);
    rv_buf_puts(&text, "]}}]}");
    rv_kit_write(path, rv_buf_cstr(&text));
    must(rv_script_read(path, f, &script, &err), err, "script");
    free(path);
    rv_kit_tmpdir_remove(dir);
    return script;
}

static void load(struct host *h, const char *store)
{
    const struct rv_store_opts store_opts = {.sync = RV_STORE_SYNC_FULL};
    rv_findings *f = rv_findings_new();
    char url[4096], **dirs = NULL;
    rv_err *err = NULL;
    size_t n = 0;

    snprintf(url, sizeof url, "sqlite:%s", store);
    rv_owner_make_name(h->owner);
    must(rv_store_open(url, &store_opts, &h->store, &err), err, "store");
    must(rv_store_put_blob(h->store, RV_STR_LIT("{}"), h->bundle, &err), err, "bundle");
    must(rv_plugins_path_new(NULL, 0, ".", &dirs, &n, &err), err, "path");
    const struct rv_plugins_opts opts = {.dirs = (const char *const *)dirs, .n_dirs = n};
    must(rv_plugins_new(&opts, &h->plugins, &err), err, "plugins");
    rv_plugins_path_free(dirs);
    const struct rv_capability_config effects = {.name = "effects", .src = {"p.yaml", 1, 1}};
    must(rv_plugins_load(h->plugins, &effects, &err), err, "effects");
    must(rv_pipeline_parse(rv_str_of(PIPELINE), "p.yaml", ".", f, &h->pipeline, &err), err, "pipeline");
    for (int i = 0; i < N_RUNS; i++)
        h->scripts[i] = script_of(i, f);
    if (rv_findings_n_errors(f) > 0)
        rv_kit_die("the pipeline or the script has faults");
    rv_findings_free(f);
}

static void start_new(struct host *h, struct rv_exec_opts *opts, rv_envelope *env, int64_t now_us)
{
    bool scripted[2] = {false};
    const struct rv_journal_start start = {
        .pipeline = h->pipeline,
        .env = env,
        .bundle = h->bundle,
        .owner = h->owner,
        .now_us = now_us,
        .begin = {.mode = RV_UNSET, .max_parallel = RV_ENGINE_MAX_PARALLEL, .has_script = true, .scripted = scripted}};
    rv_exec *x = NULL;
    rv_err *err = NULL;

    rv_script_mark_stages(opts->script, h->pipeline, scripted);
    must(rv_journal_new(h->store, &start, &opts->journal, &err), err, "journal");
    opts->takes_journal = true;
    must(rv_engine_start(h->engine, opts, env, NULL, &x, &err), err, "start");
}

static void begin(struct host *h, int i)
{
    const struct rv_envelope_seed seed = {.raw_input = RV_STR_LIT("x")};
    const struct rv_store_scope all = {NULL, NULL};
    struct rv_exec_opts opts = RV_EXEC_OPTS_INIT;
    struct rv_rand_state state;
    struct rv_run_row row = {0};
    rv_envelope *env = NULL;
    rv_exec *x = NULL;
    rv_err *err = NULL;
    int64_t now_us = rv_engine_now_us(h->engine);

    opts.pipeline = h->pipeline;
    opts.plugins = h->plugins;
    opts.script = h->scripts[i];
    opts.observer.on_ended = on_ended;
    must(rv_envelope_new(&seed, rv_rand_seeded(&state, 100 + (uint64_t)i), now_us, &env, &err), err, "envelope");
    const char *id = rv_envelope_fields(env)->envelope_id;
    int rc = rv_store_get_run(h->store, &all, id, &row, &err);
    bool is_new = rc == RV_E_NOT_FOUND, is_over = rc == 0 && rv_run_status_is_final(row.status);
    if (!is_new)
        must(rc, err, "run");
    rv_err_free(err);
    err = NULL;
    rv_run_row_fini(&row);
    h->n_begun += !is_over;
    if (is_new) {
        start_new(h, &opts, env, now_us);
        return;
    }
    if (!is_over)
        must(rv_engine_open(h->engine, &opts, &all, &(struct rv_engine_resume){.run = id}, &x, &err), err, "open");
    rv_envelope_free(env);
}

static int host(const char *store)
{
    struct host h = {.n_begun = 0};
    rv_err *err = NULL;

    load(&h, store);
    uv_loop_init(&h.loop);
    const struct rv_engine_opts opts = {.loop = &h.loop, .store = h.store, .owner = h.owner};
    must(rv_engine_new(&opts, &h.engine, &err), err, "engine");
    for (int i = 0; i < N_RUNS; i++)
        begin(&h, i);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    rv_engine_close(h.engine, NULL, NULL);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&h.loop) != 0)
        rv_kit_die("something is left on the loop");
    for (int i = 0; i < N_RUNS; i++)
        rv_script_free(h.scripts[i]);
    rv_plugins_free(h.plugins);
    rv_pipeline_free(h.pipeline);
    rv_store_close(h.store);
    printf("%d\n", h.n_begun);
    return 0;
}

/* --- its lives --- */

struct matrix {
    const char *self, *shim, *capabilities;
    long n_lives, n_kills, n_failures;
};

static struct ending run_once(const struct matrix *m, const struct world *w, const struct death *death)
{
    const char *const argv[] = {m->self, "host", w->store, NULL};
    struct ending end;

    process_run(w, argv, death, &end);
    return end;
}

static int count_of(const char *effects, const char *tool, int run, int step)
{
    char what[64];
    int n = 0;

    snprintf(what, sizeof what, "\tr%d-%d\n", run, step);
    for (const char *at = effects; (at = strstr(at, what)); at++) {
        const char *line = at;
        while (line > effects && line[-1] != '\n')
            line--;
        n += strncmp(line, tool, strlen(tool)) == 0;
    }
    return n;
}

static bool check(const struct world *w, rv_buf *why)
{
    char *effects = access(w->effects, R_OK) == 0 ? rv_kit_read(w->effects) : rv_str_dup(rv_str_of(""));

    for (int run = 0; run < N_RUNS; run++)
        for (int i = 0; i < N_STEPS; i++) {
            int n = count_of(effects, steps[i].tool, run, i);
            if (n == 0)
                rv_buf_printf(why, "%s of run %d was lost; ", steps[i].tool, run);
            else if (n > 1 && steps[i].is_once)
                rv_buf_printf(why, "%s of run %d happened %d times; ", steps[i].tool, run, n);
        }
    free(effects);
    return why->len == 0;
}

/* Its first two processes die where deaths say. Gives the number of operations of the first one, if it did not. */
static long live(struct matrix *m, const struct death deaths[2])
{
    RV_AUTO(rv_buf_fini) rv_buf why = RV_BUF_INIT(64 << 10);
    char *dir = rv_kit_tmpdir();
    struct world w;
    long count = -1;
    bool is_done = false;

    world_init(&w, dir, m->shim, m->capabilities);
    for (int n = 0; n < 5 && !is_done && why.len == 0; n++) {
        struct ending end = run_once(m, &w, n < 2 ? &deaths[n] : NULL);
        count = n == 0 ? end.count : count;
        m->n_kills += end.status == -SIGKILL;
        if (end.status != 0 && end.status != -SIGKILL)
            rv_buf_printf(&why, "process %d ended with %d: %s; ", n, end.status, end.err);
        is_done = end.status == 0 && strcmp(end.out, "0\n") == 0; /* it found nothing left to do */
        ending_fini(&end);
    }
    if (!is_done && why.len == 0)
        rv_buf_puts(&why, "it does not come to an end; ");
    check(&w, &why);
    m->n_lives++;
    if (why.len > 0) {
        m->n_failures++;
        printf("FAIL %s:%ld:%ld: %s\n", deaths[0].how, deaths[0].at, deaths[1].at, rv_buf_cstr(&why));
        fflush(stdout);
    }
    world_fini(&w);
    rv_kit_tmpdir_remove(dir);
    return count;
}

int main(int argc, char **argv)
{
    static const char *const hows[] = {"before", "after", "torn", "lose", "scatter"};
    bool is_sample = argc > 1 && strcmp(argv[1], "--sample") == 0;
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    if (argc == 3 && strcmp(argv[1], "host") == 0)
        return host(argv[2]);
    if (argc != 3 + is_sample || n < 0) {
        fprintf(stderr, "usage: hosted [--sample] SHIM CAPABILITIES\n");
        return 2;
    }
    self[n] = '\0';
    struct matrix m = {.self = self, .shim = argv[1 + is_sample], .capabilities = argv[2 + is_sample]};
    long n_points = live(&m, (const struct death[2]){{0, "before", 0}, {0, "before", 0}});
    printf("a process has %ld points\n", n_points);
    if (n_points < 20)
        return 1;
    for (size_t how = 0; how < RV_COUNT(hows); how++)
        for (long at = 1 + (long)how % SAMPLE; at <= n_points; at += is_sample ? SAMPLE : 1) {
            long second = at % 2 ? 0 : 1 + at * 7 % n_points; /* every other life has a recovery that dies, too */
            live(&m, (const struct death[2]){{at, hows[how], (uint64_t)at}, {second, hows[how], (uint64_t)at + 1}});
        }
    printf("%ld lives, %ld kills, %ld failures\n", m.n_lives, m.n_kills, m.n_failures);
    return m.n_failures > 0 || m.n_kills < m.n_lives / 2;
}
