#include "tests/bench/bench_kit.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_BUNDLE ((size_t)64 << 20)

static const struct rv_store_scope all = {NULL, NULL};
static char owner[RV_OWNER_MAX];

static int64_t read_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int64_t bench_now_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

int64_t bench_cpu_ns(void)
{
    return read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void bench_die(const char *what, rv_err *err)
{
    fprintf(stderr, "bench: %s%s%s\n", what, err ? ": " : "", err ? rv_err_text(err) : "");
    exit(1);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t bench_quantile(int64_t *values, size_t n, double q)
{
    qsort(values, n, sizeof *values, by_value);
    size_t at = (size_t)(q * (double)n);
    return values[at < n ? at : n - 1];
}

size_t bench_number(const char *text, size_t least)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (end == text || *end || n < least)
        bench_die("a number on the command line is none, or too small", NULL);
    return n;
}

int64_t bench_heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return (int64_t)(info.uordblks + info.hblkhd);
}

int64_t bench_resident_bytes(void)
{
    char line[128] = "", *second = NULL;
    FILE *f = fopen("/proc/self/statm", "re");

    if (f && fgets(line, sizeof line, f))
        second = strchr(line, ' '); /* pages in all, pages in memory, ... */
    if (!second)
        bench_die("/proc/self/statm can not be read", NULL);
    fclose(f);
    return strtoll(second, NULL, 10) * sysconf(_SC_PAGESIZE);
}

enum rv_store_sync bench_sync(const char *word)
{
    return strcmp(word, "full") == 0     ? RV_STORE_SYNC_FULL
           : strcmp(word, "normal") == 0 ? RV_STORE_SYNC_NORMAL
           : strcmp(word, "off") == 0    ? RV_STORE_SYNC_OFF
                                         : (bench_die("sync is full, normal or off", NULL), RV_STORE_SYNC_OFF);
}

/* --- loading --- */

static void must_be_sound(rv_findings *findings, const char *what)
{
    rv_buf text = RV_BUF_INIT(1 << 20);

    if (rv_findings_n_errors(findings) > 0) {
        rv_findings_write_text(findings, false, &text);
        fprintf(stderr, "%s", rv_buf_cstr(&text));
        bench_die(what, NULL);
    }
    rv_findings_free(findings);
}

static void load_plugins(struct bench *b, const struct bench_opts *o)
{
    const char *dirs[] = {o->plugins};
    const struct rv_plugins_opts opts = {
        .dirs = dirs, .n_dirs = o->plugins ? 1 : 0, .base_dir = ".", .host_program = o->reeve};
    char name[64] = "hello";
    const struct rv_capability_config which = {.name = name};
    rv_err *err = NULL;

    if (o->hook)
        snprintf(name, sizeof name, "%.*s", (int)strcspn(o->hook, "."), o->hook);
    if (rv_plugins_new(&opts, &b->plugins, &err) < 0 || (o->plugins && rv_plugins_load(b->plugins, &which, &err) < 0))
        bench_die("capability", err);
}

static void load(struct bench *b, const struct bench_opts *o)
{
    rv_findings *findings = rv_findings_new();
    rv_err *err = NULL;

    if (rv_pipeline_parse(o->pipeline, "bench.yaml", ".", findings, &b->pipeline, &err) < 0)
        bench_die("pipeline", err);
    must_be_sound(findings, "pipeline");
    load_plugins(b, o);
    if (!o->script.len)
        return;
    findings = rv_findings_new();
    if (rv_script_parse(o->script, "script.yaml", findings, &b->script, &err) < 0)
        bench_die("script", err);
    must_be_sound(findings, "script");
    bool *flags = calloc(b->pipeline->n_agents + 1, sizeof *flags);
    if (!flags)
        bench_die("no memory", NULL);
    rv_script_mark_stages(b->script, b->pipeline, flags);
    b->scripted = flags;
}

static void keep_bundle(struct bench *b)
{
    struct rv_catalog catalog = rv_plugins_catalog(b->plugins);
    struct rv_known_names names = rv_plugins_names(b->plugins);
    rv_buf text = RV_BUF_INIT(MAX_BUNDLE);
    rv_err *err = NULL;

    const struct rv_bundle_source from = {
        .pipeline = b->pipeline, .catalog = &catalog, .names = &names, .script = b->script};
    if (rv_bundle_write(&from, &text, NULL, &err) < 0 ||
        rv_store_put_blob(b->store, rv_buf_str(&text), b->bundle, &err) < 0)
        bench_die("bundle", err);
    rv_buf_fini(&text);
}

void bench_open(struct bench *b, const struct bench_opts *o)
{
    const struct rv_store_opts store = {.sync = o->sync};
    struct rv_engine_opts engine = {.workers = 2, .owner = owner};
    rv_err *err = NULL;

    *b = (struct bench){.answers = o->answers};
    rv_store_spare_counts(); /* as the program does */
    rv_owner_make_name(owner);
    load(b, o);
    if (o->store) {
        if (rv_store_open(o->store, &store, &b->store, &err) < 0)
            bench_die("store", err);
        keep_bundle(b);
    }
    engine.store = b->store;
    b->engine = o->engine;
    b->shares_engine = o->engine != NULL;
    if (!b->engine && rv_engine_new(&engine, &b->engine, &err) < 0)
        bench_die("engine", err);
}

void bench_close(struct bench *b)
{
    if (!b->shares_engine)
        rv_engine_free(b->engine);
    rv_plugins_free(b->plugins);
    rv_script_free(b->script);
    free((void *)(uintptr_t)b->scripted);
    rv_store_close(b->store);
    rv_pipeline_free(b->pipeline);
    *b = (struct bench){0};
}

/* --- runs --- */

rv_envelope *bench_envelope(void)
{
    const struct rv_envelope_seed seed = {.raw_input = RV_STR_LIT("how are errors made?"),
                                          .user_id = RV_STR_LIT("ada"),
                                          .session_id = RV_STR_LIT("desk")};
    struct rv_clock clock = rv_clock_system();
    rv_envelope *env = NULL;
    rv_err *err = NULL;

    if (rv_envelope_new(&seed, rv_rand_system(), clock.now_us(clock.self), &env, &err) < 0)
        bench_die("envelope", err);
    return env;
}

typedef int make_journal(rv_store *store, const struct rv_journal_start *start, rv_journal **out, rv_err **err);

static rv_journal *journal_by(make_journal *make, struct bench *b, const rv_envelope *env)
{
    const struct rv_journal_start start = {
        .bundle = b->bundle,
        .pipeline = b->pipeline,
        .begin = {.mode = RV_UNSET,
                  .has_script = b->script != NULL,
                  .answers_from_script = b->answers,
                  .is_script_blind = rv_script_is_blind(b->script),
                  .max_parallel = RV_ENGINE_MAX_PARALLEL,
                  .scripted = b->scripted},
        .env = env,
        .owner = owner,
        .now_us = rv_engine_now_us(b->engine),
    };
    rv_journal *j = NULL;
    rv_err *err = NULL;

    if (b->store && make(b->store, &start, &j, &err) < 0)
        bench_die("journal", err);
    return j;
}

rv_journal *bench_journal(struct bench *b, const rv_envelope *env)
{
    return journal_by(rv_journal_create, b, env);
}

rv_journal *bench_new_journal(struct bench *b, const rv_envelope *env)
{
    return journal_by(rv_journal_new, b, env);
}

const char *bench_owner(void)
{
    return owner;
}

struct rv_exec_opts bench_exec_opts(const struct bench *b, rv_journal *j)
{
    struct rv_exec_opts x = RV_EXEC_OPTS_INIT;

    x.pipeline = b->pipeline;
    x.plugins = b->plugins;
    x.script = b->script;
    x.answer_from_script = b->answers;
    x.journal = j;
    return x;
}

enum rv_run_status bench_finish(struct bench *b, rv_exec *exec, rv_journal *j)
{
    rv_err *err = NULL;

    if (rv_engine_wait(b->engine, exec, &err) < 0)
        bench_die("run", err);
    enum rv_run_status status = rv_exec_status(exec);
    rv_exec_free(exec);
    rv_journal_free(j);
    return status;
}

enum rv_run_status bench_run(struct bench *b, char id[RV_ID_MAX])
{
    rv_envelope *env = bench_envelope();
    rv_exec *exec = NULL;
    rv_err *err = NULL;

    if (id)
        snprintf(id, RV_ID_MAX, "%s", rv_envelope_fields(env)->envelope_id);
    if (b->script)
        rv_script_rewind(b->script);
    rv_journal *j = bench_journal(b, env);
    struct rv_exec_opts x = bench_exec_opts(b, j);
    if (rv_engine_start(b->engine, &x, env, NULL, &exec, &err) < 0)
        bench_die("start", err);
    return bench_finish(b, exec, j);
}

enum rv_run_status bench_resume(struct bench *b, const char *id, const struct rv_response *answer, int64_t *accepted_ns)
{
    rv_journal *j = NULL;
    rv_exec *exec = NULL;
    rv_err *err = NULL;

    if (b->script)
        rv_script_rewind(b->script);
    if (rv_journal_open(b->store, &all, id,
                        &(struct rv_journal_claim){.owner = owner, .now_us = rv_engine_now_us(b->engine)}, &j,
                        &err) < 0)
        bench_die("take over", err);
    struct rv_exec_opts x = bench_exec_opts(b, j);
    if (rv_engine_continue(b->engine, &x, &all, answer, &exec, &err) < 0)
        bench_die("continue", err);
    if (accepted_ns)
        *accepted_ns = bench_now_ns();
    return bench_finish(b, exec, j);
}

int64_t bench_records(struct bench *b)
{
    struct rv_store_stats stats;
    rv_err *err = NULL;

    if (rv_store_read_stats(b->store, &stats, &err) < 0)
        bench_die("stats", err);
    return stats.records;
}
