/* Runs that wait for a person: what each costs the process that parked it, and what it takes to go on with one.
 *
 *   bench_parked RUNS RESUMES FOLDER [REEVE|check]
 *
 * Parks RUNS runs in a new file in FOLDER through one engine and compares the process's memory after the first hundred
 * with that at the end. Then answers RESUMES of them at random, with each kind of commit, once in this process and,
 * with REEVE, once each as `reeve resume`. Prints one JSON object per line. With "check" a run may cost at most 1 KB of
 * memory; `marks` counts the instructions of a resume. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/bench_kit.h"

#define FIRST       100  /* runs after which everything that is made once was made */
#define MOST        1024 /* bytes a run */
#define MAX_RESUMES 2000
#define MAX_SPAWNS  50
#define COMMIT      4096 /* bytes of a small write, to see what the disk takes for it */

static const rv_str pipeline = RV_STR_LIT("name: parked\n"
                                          "agents:\n"
                                          "  - {name: ask, default_next: write}\n"
                                          "  - {name: write}\n");
static const rv_str script = RV_STR_LIT("stages:\n"
                                        "  ask:\n"
                                        "    - {visit: 1, raise: {kind: clarification, question: which database?}}\n"
                                        "    - {output: {understood: true}}\n"
                                        "  write: [{output: {text: an answer of ordinary length}}]\n");

static void open_world(struct bench *b, const char *store, enum rv_store_sync sync)
{
    const struct bench_opts opts = {.pipeline = pipeline, .script = script, .store = store, .sync = sync};
    bench_open(b, &opts);
}

/* What was written without a sync must not be paid for by the first resume. */
static void write_back(const char *store)
{
    int fd = open(store, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0)
        bench_die("the store can not be synced", NULL);
    close(fd);
}

/* Bytes of memory that each run after the first hundred costs. */
static int64_t park(const char *store, char (*ids)[RV_ID_MAX], size_t n)
{
    int64_t heap = 0, resident = 0, begun = bench_now_ns();
    struct bench b;

    open_world(&b, store, RV_STORE_SYNC_OFF);
    for (size_t i = 0; i < n; i++) {
        if (i == FIRST) {
            heap = bench_heap_bytes();
            resident = bench_resident_bytes();
        }
        if (bench_run(&b, ids[i]) != RV_RUN_INTERRUPTED)
            bench_die("a run did not wait", NULL);
    }
    int64_t took = bench_now_ns() - begun, m = (int64_t)(n - FIRST);
    heap = bench_heap_bytes() - heap;
    resident = bench_resident_bytes() - resident;
    printf("{\"parked\":%zu,\"resident_bytes_each\":%lld,\"heap_bytes_each\":%lld,\"resident_kb\":%lld,\"park_us\":%"
           "lld}\n",
           n, (long long)(resident / m), (long long)(heap / m), (long long)(bench_resident_bytes() / 1024),
           (long long)(took / (int64_t)n / 1000));
    bench_close(&b);
    write_back(store);
    return (resident > heap ? resident : heap) / m;
}

static void print_times(const char *what, const char *sync, int64_t *ns, size_t n)
{
    int64_t half = bench_quantile(ns, n, 0.5);

    printf("{\"resume\":\"%s\",\"sync\":\"%s\",\"n\":%zu,\"p50_us\":%lld,\"p99_us\":%lld,\"max_us\":%lld}\n", what,
           sync, n, (long long)(half / 1000), (long long)(bench_quantile(ns, n, 0.99) / 1000),
           (long long)(ns[n - 1] / 1000));
}

/* Which run is next: each waits for its answer once. */
static const char *pick(char (*ids)[RV_ID_MAX], size_t *left, struct rv_rand rand)
{
    static char id[RV_ID_MAX];
    size_t i = (size_t)rv_rand_below(rand, *left);

    memcpy(id, ids[i], sizeof id);
    memcpy(ids[i], ids[--*left], RV_ID_MAX);
    return id;
}

/* How long until the answer was accepted, durably; until the run was over; and what that took of the processor. */
static void resume(const char *store, const char *sync, char (*ids)[RV_ID_MAX], size_t *left, size_t n,
                   struct rv_rand rand)
{
    static int64_t accepted[MAX_RESUMES], took[MAX_RESUMES], used[MAX_RESUMES];
    const struct rv_response answer = {.text = RV_STR_LIT("PostgreSQL")};
    struct bench b;

    open_world(&b, store, bench_sync(sync));
    for (size_t i = 0; i < n; i++) {
        const char *id = pick(ids, left, rand);
        int64_t begun = bench_now_ns(), cpu = bench_cpu_ns();
        if (bench_resume(&b, id, &answer, &accepted[i]) != RV_RUN_COMPLETED)
            bench_die("a run that was answered did not complete", NULL);
        used[i] = bench_cpu_ns() - cpu;
        took[i] = bench_now_ns() - begun;
        accepted[i] -= begun;
    }
    bench_close(&b);
    print_times("answered", sync, accepted, n);
    print_times("over", sync, took, n);
    print_times("over, processor", sync, used, n);
}

/* What the disk alone takes to make a small write durable. */
static void probe_disk(const char *store)
{
    static int64_t took[MAX_SPAWNS];
    static const char bytes[COMMIT];
    rv_buf path = RV_BUF_INIT(4096);

    rv_buf_printf(&path, "%s.probe", store);
    int fd = open(rv_buf_cstr(&path), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    for (size_t i = 0; i < MAX_SPAWNS; i++) {
        int64_t begun = bench_now_ns();
        if (pwrite(fd, bytes, sizeof bytes, (off_t)(i * sizeof bytes)) != COMMIT || fdatasync(fd) != 0)
            bench_die("the disk can not be probed", NULL);
        took[i] = bench_now_ns() - begun;
    }
    close(fd);
    unlink(rv_buf_cstr(&path));
    rv_buf_fini(&path);
    int64_t half = bench_quantile(took, MAX_SPAWNS, 0.5);
    printf("{\"fdatasync_of_4k\":{\"min_us\":%lld,\"p50_us\":%lld,\"max_us\":%lld}}\n", (long long)(took[0] / 1000),
           (long long)(half / 1000), (long long)(took[MAX_SPAWNS - 1] / 1000));
}

static int64_t spawn(const char *reeve, const char *store, const char *sync, const char *id)
{
    char program[4096], command[] = "resume", by_store[] = "--store", by_sync[] = "--sync", text[] = "--text",
                        answer[] = "PostgreSQL", run[RV_ID_MAX], where[4096], how[16];
    char *const args[] = {program, command, run, by_store, where, by_sync, how, text, answer, NULL};
    int status;

    snprintf(program, sizeof program, "%s", reeve);
    snprintf(where, sizeof where, "%s", store);
    snprintf(run, sizeof run, "%s", id);
    snprintf(how, sizeof how, "%s", sync);
    int64_t begun = bench_now_ns();
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 0);
        dup2(null, 1);
        execv(program, args);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        bench_die("reeve resume did not succeed", NULL);
    return bench_now_ns() - begun;
}

static void resume_as_process(const char *reeve, const char *store, const char *sync, char (*ids)[RV_ID_MAX],
                              size_t *left, struct rv_rand rand)
{
    static int64_t took[MAX_SPAWNS];

    for (size_t i = 0; i < MAX_SPAWNS; i++)
        took[i] = spawn(reeve, store, sync, pick(ids, left, rand));
    print_times("process", sync, took, MAX_SPAWNS);
}

static char *store_in(const char *folder)
{
    rv_buf path = RV_BUF_INIT(4096);

    rv_buf_printf(&path, "%s/parked.db", folder);
    char *text = rv_buf_steal(&path, NULL);
    if (!text)
        bench_die("no memory", NULL);
    return text;
}

static void remove_store(const char *store)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    char path[4096];

    for (size_t i = 0; i < RV_COUNT(ends); i++) {
        snprintf(path, sizeof path, "%s%s", store, ends[i]);
        unlink(path);
    }
}

int main(int argc, char **argv)
{
    static const char *const syncs[] = {"normal", "full"};
    struct rv_rand_state seed;
    struct rv_rand rand = rv_rand_seeded(&seed, 1);
    bool is_check = argc > 4 && strcmp(argv[4], "check") == 0;

    if (argc < 4) {
        fprintf(stderr, "usage: bench_parked RUNS RESUMES FOLDER [REEVE|check]\n");
        return 2;
    }
    size_t left = bench_number(argv[1], FIRST + 1), n = bench_number(argv[2], 1);
    if (n > MAX_RESUMES || left < RV_COUNT(syncs) * (n + MAX_SPAWNS))
        bench_die("too many resumes, or too few runs for them", NULL);
    char(*ids)[RV_ID_MAX] = calloc(left, sizeof *ids), *store = store_in(argv[3]);
    if (!ids)
        bench_die("no memory", NULL);
    remove_store(store);
    int64_t each = park(store, ids, left);
    for (size_t i = 0; i < RV_COUNT(syncs); i++) {
        resume(store, syncs[i], ids, &left, n, rand);
        if (argc > 4 && !is_check)
            resume_as_process(argv[4], store, syncs[i], ids, &left, rand);
    }
    probe_disk(store);
    remove_store(store);
    free(store);
    free(ids);
    if (is_check && each > MOST)
        bench_die("a parked run costs more than 1 KB", NULL);
    return 0;
}
