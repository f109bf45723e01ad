/* Many runs at once in one file: each step a commit of its own on the loop thread, and the same on a host's loop, where
 * a thread keeps what waits in one transaction.
 *
 *   bench_crowd runs N STORE SYNC     runs a second, both ways; STORE is a new file
 *   bench_crowd block N STORE MS      N hosted runs with a store whose commits take MS: the longest the loop stood
 * still
 *
 * Prints one JSON object. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

#include "tests/bench/bench_kit.h"

#define MAX_RUNS 10000
#define TICK_MS  1

static const rv_str pipeline = RV_STR_LIT("name: crowd\n"
                                          "agents:\n"
                                          "  - {name: ask, default_next: write}\n"
                                          "  - {name: write, default_next: check}\n"
                                          "  - {name: check}\n");
static const rv_str script = RV_STR_LIT("stages:\n"
                                        "  ask: [{output: {text: an answer of ordinary length}}]\n"
                                        "  write: [{output: {text: an answer of ordinary length}}]\n"
                                        "  check: [{output: {final_response: Hello!}}]\n");

struct crowd {
    struct bench b;
    rv_script **scripts; /* each run has its own: it stands where its run does */
    rv_exec **runs;
    rv_journal **journals;
    size_t n, n_over;
    int64_t last_ns, longest_ns;         /* of the ticks */
    int64_t last_cpu_ns, longest_cpu_ns; /* the same without what other programs took of the processor */
    uv_timer_t tick;
    long commit_ms;
};

static void crowd_new(struct crowd *c, size_t n, const char *store, enum rv_store_sync sync, rv_engine *engine)
{
    const struct bench_opts opts = {
        .pipeline = pipeline, .script = script, .store = store, .sync = sync, .engine = engine};

    *c = (struct crowd){.n = n};
    bench_open(&c->b, &opts);
    c->scripts = calloc(n, sizeof(rv_script *));
    c->runs = calloc(n, sizeof(rv_exec *));
    c->journals = calloc(n, sizeof(rv_journal *));
    if (n > MAX_RUNS || !c->scripts || !c->runs || !c->journals)
        bench_die("too many runs", NULL);
    for (size_t i = 0; i < n; i++) {
        rv_findings *f = rv_findings_new();
        if (rv_script_parse(script, "script.yaml", f, &c->scripts[i], NULL) < 0)
            bench_die("script", NULL);
        rv_findings_free(f);
    }
}

static void crowd_free(struct crowd *c)
{
    for (size_t i = 0; i < c->n; i++) {
        rv_exec_free(c->runs[i]);
        rv_journal_free(c->journals[i]);
        rv_script_free(c->scripts[i]);
    }
    free(c->scripts);
    free(c->runs);
    free(c->journals);
    bench_close(&c->b);
}

static void start(struct crowd *c, size_t i, bool is_new, void (*on_ended)(void *, rv_exec *, int, const rv_err *))
{
    rv_envelope *env = bench_envelope();
    rv_err *err = NULL;

    c->journals[i] = is_new ? bench_new_journal(&c->b, env) : bench_journal(&c->b, env);
    struct rv_exec_opts x = bench_exec_opts(&c->b, c->journals[i]);
    x.script = c->scripts[i];
    x.observer.on_ended = on_ended;
    x.observer.self = c;
    if (rv_engine_start(c->b.engine, &x, env, NULL, &c->runs[i], &err) < 0)
        bench_die("start", err);
}

static int64_t one_commit_each(size_t n, const char *store, enum rv_store_sync sync)
{
    struct crowd c;

    crowd_new(&c, n, store, sync, NULL);
    int64_t begun = bench_now_ns();
    for (size_t i = 0; i < n; i++)
        start(&c, i, false, NULL);
    for (size_t i = 0; i < n; i++)
        if (rv_engine_wait(c.b.engine, c.runs[i], NULL) < 0 || rv_exec_status(c.runs[i]) != RV_RUN_COMPLETED)
            bench_die("a run did not complete", NULL);
    int64_t took = bench_now_ns() - begun;
    crowd_free(&c);
    return took;
}

static void on_ended(void *self, rv_exec *x, int rc, const rv_err *err)
{
    struct crowd *c = self;

    (void)err;
    if (rc < 0 || rv_exec_status(x) != RV_RUN_COMPLETED)
        bench_die("a run did not complete", NULL);
    if (++c->n_over == c->n && c->commit_ms > 0)
        uv_timer_stop(&c->tick);
}

static int slow_commit(void *self, const char *point, rv_err **err)
{
    const struct crowd *c = self;
    const struct timespec t = {.tv_sec = c->commit_ms / 1000, .tv_nsec = c->commit_ms % 1000 * 1000000};

    (void)err;
    if (strcmp(point, "commit") == 0)
        nanosleep(&t, NULL);
    return 0;
}

static int64_t thread_cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* What is later than its time by more than others had to do was held up. */
static void on_tick(uv_timer_t *timer)
{
    struct crowd *c = timer->data;
    int64_t now = bench_now_ns(), late = now - c->last_ns - TICK_MS * 1000000;

    if (late > c->longest_ns)
        c->longest_ns = late;
    c->last_ns = now;
    int64_t cpu = thread_cpu_ns();
    if (cpu - c->last_cpu_ns > c->longest_cpu_ns)
        c->longest_cpu_ns = cpu - c->last_cpu_ns;
    c->last_cpu_ns = cpu;
}

static int64_t hosted(struct crowd *c, size_t n, const char *store, enum rv_store_sync sync, long commit_ms)
{
    uv_loop_t loop;
    rv_err *err = NULL;

    if (uv_loop_init(&loop) != 0)
        bench_die("loop", NULL);
    crowd_new(c, n, store, sync, NULL);
    rv_engine_free(c->b.engine);
    struct rv_engine_opts opts = {.loop = &loop, .store = c->b.store, .owner = bench_owner()};
    c->commit_ms = commit_ms;
    if (commit_ms > 0) {
        rv_store_set_faults(c->b.store, (struct rv_store_faults){slow_commit, c});
        uv_timer_init(&loop, &c->tick);
        c->tick.data = c;
        uv_timer_start(&c->tick, on_tick, TICK_MS, TICK_MS);
    }
    if (rv_engine_new(&opts, &c->b.engine, &err) < 0)
        bench_die("engine", err);
    int64_t begun = c->last_ns = bench_now_ns();
    for (size_t i = 0; i < n; i++)
        start(c, i, true, on_ended);
    c->last_cpu_ns = thread_cpu_ns();
    c->last_ns = bench_now_ns(); /* it is the caller who starts them all at once */
    uv_run(&loop, UV_RUN_DEFAULT);
    int64_t took = bench_now_ns() - begun;
    if (c->n_over != n)
        bench_die("a run is not over", NULL);
    rv_store_set_faults(c->b.store, (struct rv_store_faults){0});
    if (commit_ms > 0)
        uv_close((uv_handle_t *)&c->tick, NULL);
    crowd_free(c);
    uv_run(&loop, UV_RUN_NOWAIT);
    uv_loop_close(&loop);
    return took;
}

static long a_second(size_t n, int64_t took_ns)
{
    return (long)((int64_t)n * 1000000000 / took_ns);
}

int main(int argc, char **argv)
{
    struct crowd c;

    if (argc == 5 && strcmp(argv[1], "runs") == 0) {
        size_t n = bench_number(argv[2], 1);
        char other[4096];
        snprintf(other, sizeof other, "%s.group", argv[3]);
        long alone = a_second(n, one_commit_each(n, argv[3], bench_sync(argv[4])));
        long group = a_second(n, hosted(&c, n, other, bench_sync(argv[4]), 0));
        printf("{\"runs\":%zu,\"sync\":\"%s\",\"alone_a_second\":%ld,\"group_a_second\":%ld}\n", n, argv[4], alone,
               group);
    } else if (argc == 5 && strcmp(argv[1], "block") == 0) {
        size_t n = bench_number(argv[2], 1);
        size_t ms = bench_number(argv[4], 1);
        int64_t took = hosted(&c, n, argv[3], RV_STORE_SYNC_OFF, (long)ms);
        printf("{\"runs\":%zu,\"commit_ms\":%zu,\"took_ms\":%lld,\"longest_block_us\":%lld,"
               "\"longest_processor_us\":%lld}\n",
               n, ms, (long long)(took / 1000000), (long long)(c.longest_ns / 1000),
               (long long)(c.longest_cpu_ns / 1000));
    } else {
        fprintf(stderr, "usage: bench_crowd runs N STORE SYNC\n"
                        "       bench_crowd block N STORE MS\n");
        return 2;
    }
    return 0;
}
