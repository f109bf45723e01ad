/* What the queue costs: tasks enqueued, then claimed and completed by several processes.
 *
 *   bench_tasks N BATCH PROCESSES STORE SYNC [IDLE]   STORE a new file; SYNC full, normal or off; IDLE: finished tasks
 *                                                     and idle tenants that are there already, 0 by default
 *
 * N tasks of 10 tenants; each process claims up to BATCH tasks at once and completes them in one transaction. Prints
 * one JSON object: tasks a second, and quantiles of one claim. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/bench_kit.h"

#define TENANTS    10
#define MAX_CLAIMS 1000000
#define PER_GROUP  1000
#define LEASE_US   INT64_C(900000000)

static rv_store *open_store(const char *path, const char *sync)
{
    const struct rv_store_opts opts = {.sync = bench_sync(sync)};
    rv_store *s = NULL;
    rv_err *err = NULL;

    if (rv_store_open(path, &opts, &s, &err) < 0)
        bench_die("open", err);
    return s;
}

static void enqueue(rv_store *s, const char *prefix, size_t n, size_t n_tenants)
{
    rv_err *err = NULL;

    for (size_t i = 0; i < n; i++) {
        char id[60], tenant[60];
        const struct rv_new_task task = {.id = id,
                                         .tenant = tenant,
                                         .type = "run",
                                         .payload = RV_STR_LIT("{\"run\":\"run_0123456789abcdef\"}"),
                                         .max_retries = 3,
                                         .now_us = 1};
        snprintf(id, sizeof id, "%s%zu", prefix, i);
        snprintf(tenant, sizeof tenant, "%s%zu", prefix, i % n_tenants);
        if (i % PER_GROUP == 0 && rv_store_begin(s, &err) < 0)
            bench_die("begin", err);
        if (rv_store_enqueue(s, &task, NULL, &err) < 0)
            bench_die("enqueue", err);
        if ((i % PER_GROUP == PER_GROUP - 1 || i + 1 == n) && rv_store_commit(s, &err) < 0)
            bench_die("commit", err);
    }
}

/* One claim, and the end of what it gave. Gives how many. */
static size_t claim(rv_store *s, const char *worker, size_t batch, int64_t *took_ns)
{
    static const int64_t classes[] = {1};
    const struct rv_claim_tasks want = {
        .worker = worker, .classes = classes, .n_classes = 1, .n = batch, .now_us = 1000, .until_us = 1000 + LEASE_US};
    struct rv_claimed got = {0};
    rv_err *err = NULL;
    int64_t begun = bench_now_ns();

    if (rv_store_claim_tasks(s, &want, &got, &err) < 0)
        bench_die("claim", err);
    *took_ns = bench_now_ns() - begun;
    struct rv_task_end *ends = calloc(got.n + 1, sizeof *ends);
    if (!ends)
        bench_die("memory", NULL);
    for (size_t i = 0; i < got.n; i++)
        ends[i] = (struct rv_task_end){
            {got.rows[i].id, worker, got.rows[i].attempt}, RV_STR_LIT("{\"status\":\"ok\"}"), false};
    size_t n = got.n;
    if (n > 0 && rv_store_complete_tasks(s, ends, n, 2000, &err) < 0)
        bench_die("complete", err);
    for (size_t i = 0; i < n; i++)
        if (ends[i].is_lost)
            bench_die("a task was claimed twice", NULL);
    free(ends);
    rv_claimed_fini(&got);
    return n;
}

/* A worker's process: until nothing is left. Writes its median and 99th percentile. */
static _Noreturn void work(const char *path, const char *sync, size_t batch, int out)
{
    int64_t *took = calloc(MAX_CLAIMS, sizeof *took), said[3];
    rv_store *s = open_store(path, sync);
    char worker[40];
    size_t n = 0;

    if (!took)
        bench_die("memory", NULL);
    snprintf(worker, sizeof worker, "bench/%d", (int)getpid());
    while (n < MAX_CLAIMS && claim(s, worker, batch, &took[n]) > 0)
        n++;
    said[0] = (int64_t)n;
    said[1] = n > 0 ? bench_quantile(took, n, 0.5) : 0;
    said[2] = n > 0 ? bench_quantile(took, n, 0.99) : 0;
    rv_store_close(s);
    _exit(write(out, said, sizeof said) == sizeof said ? 0 : 1);
}

/* Finished tasks of this many tenants, which should cost the others nothing. */
static void leave_idle(rv_store *s, size_t n)
{
    int64_t took = 0;

    if (n == 0)
        return;
    enqueue(s, "idle", n, n < 1000 ? n : 1000);
    while (claim(s, "before", 1000, &took) > 0) {
    }
}

int main(int argc, char **argv)
{
    if (argc < 6)
        bench_die("usage: bench_tasks N BATCH PROCESSES STORE SYNC [IDLE]", NULL);
    size_t n = bench_number(argv[1], 1), batch = bench_number(argv[2], 1), n_processes = bench_number(argv[3], 1);
    const char *path = argv[4], *sync = argv[5];
    int64_t median = 0, slowest = 0, n_claims = 0, begun;
    int ends[2];
    rv_store *s = open_store(path, "off");

    leave_idle(s, argc > 6 ? bench_number(argv[6], 0) : 0);
    begun = bench_now_ns();
    enqueue(s, "task", n, TENANTS);
    int64_t enqueued_ns = bench_now_ns() - begun;
    rv_store_close(s);
    if (pipe(ends) < 0)
        bench_die("pipe", NULL);
    begun = bench_now_ns();
    for (size_t i = 0; i < n_processes; i++) {
        pid_t child = fork();
        if (child < 0)
            bench_die("fork", NULL);
        if (child == 0)
            work(path, sync, batch, ends[1]);
    }
    for (size_t i = 0; i < n_processes; i++) {
        int64_t said[3];
        if (read(ends[0], said, sizeof said) != sizeof said)
            bench_die("a process died", NULL);
        n_claims += said[0];
        median += said[1] / (int64_t)n_processes;
        slowest = said[2] > slowest ? said[2] : slowest;
    }
    double seconds = (double)(bench_now_ns() - begun) / 1e9;
    while (wait(NULL) > 0) {
    }
    printf("{\"tasks\":%zu,\"batch\":%zu,\"processes\":%zu,\"sync\":\"%s\",\"enqueued_per_s\":%.0f,"
           "\"tasks_per_s\":%.0f,\"claims\":%lld,\"claim_median_us\":%.1f,\"claim_p99_us\":%.1f}\n",
           n, batch, n_processes, sync, (double)n / ((double)enqueued_ns / 1e9), (double)n / seconds,
           (long long)n_claims, (double)median / 1e3, (double)slowest / 1e3);
    return 0;
}
