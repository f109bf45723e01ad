/* How soon an idle worker claims a task, and what it costs while there is nothing to do.
 *
 *   bench_wake REEVE STORE N SECONDS   REEVE the program, STORE a new file or a URL
 *
 * Starts `reeve worker`, watches its processor time for SECONDS while the queue is empty, then adds N tasks, each when
 * the worker is idle again, and asks the store until each is claimed: the time is from the end of the commit to the
 * first read that shows the claim, so it includes up to one read. Prints one JSON object. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "coreengine/store/store.h"
#include "tests/bench/bench_kit.h"

#define IDLE_MS 30 /* after a task, before the next: the worker has said how it ended */

static pid_t start(const char *reeve, const char *store)
{
    pid_t pid = fork();

    if (pid == 0) {
        execl(reeve, "reeve", "worker", "--store", store, "--sync", "full", "--quiet", (char *)NULL);
        _exit(127);
    }
    if (pid < 0)
        bench_die("fork", NULL);
    return pid;
}

/* Nanoseconds of processor time, of all its threads. */
static int64_t used(pid_t pid)
{
    struct timespec t;
    clockid_t its;

    if (clock_getcpuclockid(pid, &its) != 0 || clock_gettime(its, &t) != 0)
        bench_die("read the processor time of the worker", NULL);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int count_worker(void *self, const struct rv_worker_row *row, rv_err **err)
{
    (void)row;
    (void)err;
    ++*(int *)self;
    return 0;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void wait_for_worker(rv_store *s)
{
    rv_err *err = NULL;

    for (int n = 0; n == 0; pause_ms(10))
        if (rv_store_list_workers(s, 1, count_worker, &n, &err) < 0)
            bench_die("list workers", err);
}

static int64_t time_one(rv_store *s, size_t i)
{
    char id[40];
    const struct rv_new_task task = {.id = id, .type = "bench", .max_retries = 0, .now_us = 1};
    struct rv_task_row row = {.attempt = 0};
    rv_err *err = NULL;

    snprintf(id, sizeof id, "wake%zu", i);
    if (rv_store_enqueue(s, &task, NULL, &err) < 0)
        bench_die("enqueue", err);
    int64_t begun = bench_now_ns();
    for (bool is_claimed = false; !is_claimed;) {
        if (rv_store_get_task(s, &(struct rv_store_scope){NULL, NULL}, id, &row, &err) < 0)
            bench_die("get task", err);
        is_claimed = row.attempt > 0;
        rv_task_row_fini(&row);
        if (!is_claimed && bench_now_ns() - begun > 20000000)
            pause_ms(1); /* a store that is polled: leave it the processor */
    }
    return bench_now_ns() - begun;
}

int main(int argc, char **argv)
{
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_FULL};
    rv_store *s = NULL;
    rv_err *err = NULL;
    int status;

    if (argc != 5)
        bench_die("usage: bench_wake REEVE STORE N SECONDS", NULL);
    size_t n = bench_number(argv[3], 1), seconds = bench_number(argv[4], 1);
    int64_t *took = calloc(n, sizeof *took);
    if (!took || rv_store_open(argv[2], &opts, &s, &err) < 0)
        bench_die("open", err);
    pid_t worker = start(argv[1], argv[2]);
    wait_for_worker(s);
    pause_ms(3000); /* it looks less and less often */
    int64_t before = used(worker);
    pause_ms((long)seconds * 1000);
    double idle = 100.0 * (double)(used(worker) - before) / 1e9 / (double)seconds;
    for (size_t i = 0; i < n; i++) {
        took[i] = time_one(s, i);
        pause_ms(IDLE_MS);
    }
    kill(worker, SIGTERM);
    waitpid(worker, &status, 0);
    rv_store_close(s);
    printf("{\"tasks\":%zu,\"idle_percent_of_a_core\":%.3f,\"claim_median_us\":%.1f,\"claim_p99_us\":%.1f}\n", n, idle,
           (double)bench_quantile(took, n, 0.5) / 1e3, (double)bench_quantile(took, n, 0.99) / 1e3);
    free(took);
    return 0;
}
