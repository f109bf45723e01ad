/* What the store's operations take in a store of many runs.
 *
 *   bench_scale fill STORE RUNS RECORDS   make it: RECORDS for each of the RUNS
 *   bench_scale measure STORE             median and slowest of each operation, in microseconds
 *   bench_scale gc STORE N                delete the N oldest runs that are over, while another process claims tasks
 *
 * STORE is a file or postgres://...; measuring leaves a few hundred rows more. Commits wait for the disk. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coreengine/store/store.h"
#include "tests/bench/bench_kit.h"
#include "tests/bench/scale_fill.h"

#define TIMES  200
#define NOW_US (SCALE_T0 + INT64_C(1000000000000))

static const struct rv_store_scope all = {NULL, NULL}, one_tenant = {"tenant501", NULL}, one_user = {NULL, "user4"};
static int64_t n_runs;
static int n_made; /* rows that this process has added */

static void must(int rc, const char *what, rv_err *err)
{
    if (rc < 0)
        bench_die(what, err);
}

static rv_store *open_store(const char *url)
{
    rv_store *s = NULL;
    rv_err *err = NULL;

    must(rv_store_open(url, &(struct rv_store_opts){.must_exist = true}, &s, &err), "open", err);
    return s;
}

/* --- Operations: each is repeated --- */

static int skip_run(void *self, const struct rv_run_row *row, rv_err **err)
{
    (void)err;
    (void)row;
    ++*(int64_t *)self;
    return 0;
}

static int skip_task(void *self, const struct rv_task_row *row, rv_err **err)
{
    (void)err;
    (void)row;
    ++*(int64_t *)self;
    return 0;
}

static int skip_pending(void *self, const struct rv_pending *p, rv_err **err)
{
    (void)err;
    (void)p;
    ++*(int64_t *)self;
    return 0;
}

static int skip_record(void *self, const struct rv_record *r, rv_err **err)
{
    (void)err;
    (void)r;
    ++*(int64_t *)self;
    return 0;
}

static void id_of(int i, char id[40])
{
    snprintf(id, 40, "env_%lld", (long long)(100000000 + 1 + (i * INT64_C(7919)) % n_runs));
}

static int list(rv_store *s, const struct rv_store_scope *scope, const struct rv_run_filter *f, rv_err **err)
{
    int64_t n = 0;

    return rv_store_list_runs(s, scope, f, skip_run, &n, err);
}

static int list_newest(rv_store *s, int i, rv_err **err)
{
    (void)i;
    return list(s, &all, &(struct rv_run_filter){.limit = 50}, err);
}

static int list_of_tenant(rv_store *s, int i, rv_err **err)
{
    (void)i;
    return list(s, &one_tenant, &(struct rv_run_filter){.limit = 50}, err);
}

static int list_waiting(rv_store *s, int i, rv_err **err)
{
    (void)i;
    return list(s, &all, &(struct rv_run_filter){.statuses = 1u << RV_RUN_INTERRUPTED, .limit = 50}, err);
}

static int list_running(rv_store *s, int i, rv_err **err)
{
    (void)i;
    return list(s, &all, &(struct rv_run_filter){.statuses = 1u << RV_RUN_READY | 1u << RV_RUN_RUNNING, .limit = 50},
                err);
}

static int list_failed(rv_store *s, int i, rv_err **err)
{
    (void)i;
    return list(s, &all, &(struct rv_run_filter){.statuses = 1u << RV_RUN_FAILED, .limit = 50}, err);
}

static int list_of_user(rv_store *s, int i, rv_err **err)
{
    (void)i;
    return list(s, &one_user, &(struct rv_run_filter){.limit = 50}, err);
}

static int list_of_session(rv_store *s, int i, rv_err **err)
{
    char session[40];

    snprintf(session, sizeof session, "session%lld", (long long)(i * 97 % (n_runs / 10)));
    return list(
        s, &all,
        &(struct rv_run_filter){.session = session, .statuses = 1u << RV_RUN_READY | 1u << RV_RUN_RUNNING, .limit = 50},
        err);
}

static int find_by_prefix(rv_store *s, int i, rv_err **err)
{
    char id[40];

    id_of(i, id);
    return list(s, &all, &(struct rv_run_filter){.id_prefix = id, .limit = 8}, err);
}

static int get(rv_store *s, int i, rv_err **err)
{
    struct rv_run_row row;
    char id[40];

    id_of(2 * i, id);
    id[strlen(id) - 1] = '2'; /* even: of the default tenant */
    int rc = rv_store_get_run(s, &all, id, &row, err);
    if (rc == 0)
        rv_run_row_fini(&row);
    return rc;
}

static int read_journal(rv_store *s, int i, rv_err **err)
{
    int64_t n = 0;
    char id[40];

    id_of(2 * i, id);
    id[strlen(id) - 1] = '2';
    return rv_store_read(s, &all, &(struct rv_record_range){.run = id, .from = 1}, skip_record, &n, err);
}

static int list_questions(rv_store *s, int i, rv_err **err)
{
    int64_t n = 0;

    (void)i;
    return rv_store_list_pending(s, &one_tenant, NULL, skip_pending, &n, err);
}

static int list_tasks(rv_store *s, int i, rv_err **err)
{
    int64_t n = 0;

    (void)i;
    return rv_store_list_tasks(s, &one_tenant, &(struct rv_task_filter){.limit = 50}, skip_task, &n, err);
}

static int list_left(rv_store *s, int i, rv_err **err)
{
    int64_t n = 0;

    (void)i;
    return rv_store_list_left(s, &(const struct rv_left_filter){.now_us = SCALE_T0, .limit = 100}, skip_run, &n, err);
}

static int list_expired(rv_store *s, int i, rv_err **err)
{
    int64_t n = 0;

    (void)i;
    return rv_store_list_expired(s, &(const struct rv_left_filter){.now_us = SCALE_T0 / 2, .limit = 100}, skip_run, &n,
                                 err);
}

static int create(rv_store *s, int i, rv_err **err)
{
    static char body[SCALE_BODY];
    char id[60], hash[RV_HASH_MAX];
    const struct rv_record r = {.seq = 1, .kind = 1, .body = {body, sizeof body}};
    const struct rv_store_new_run run = {.id = id,
                                         .user = "u",
                                         .session = "s",
                                         .pipeline = "p",
                                         .bundle = hash,
                                         .status = RV_RUN_RUNNING,
                                         .stage = "a",
                                         .owner = "bench",
                                         .now_us = NOW_US + i,
                                         .lease_until_us = NOW_US + 1000000000,
                                         .records = &r,
                                         .n_records = 1};

    memset(body, 'x', sizeof body);
    rv_hash_format(RV_STR_LIT("bundle 1"), hash);
    snprintf(id, sizeof id, "bench_%d_%d", (int)getpid(), n_made++);
    return rv_store_create_run(s, &run, err);
}

/* A step of the run that was made last: one event and two calls. */
static int append(rv_store *s, int i, rv_err **err)
{
    static char body[SCALE_BODY];
    struct rv_record r[3];
    char id[60];
    const struct rv_store_append a = {.run = id,
                                      .fence = 1,
                                      .records = r,
                                      .n_records = 3,
                                      .now_us = NOW_US + i,
                                      .status = RV_RUN_RUNNING,
                                      .stage = "a"};

    memset(body, 'x', sizeof body);
    for (int k = 0; k < 3; k++)
        r[k] = (struct rv_record){.seq = 2 + 3 * i + k, .kind = 1, .body = {body, sizeof body}};
    snprintf(id, sizeof id, "bench_%d_%d", (int)getpid(), n_made - 1);
    return rv_store_append(s, &a, err);
}

static int renew(rv_store *s, int i, rv_err **err)
{
    return rv_store_renew(s, "host/boot/7", NOW_US + i, err);
}

static int claim(rv_store *s, int i, rv_err **err)
{
    static const int64_t classes[] = {1};
    const struct rv_claim_tasks want = {.worker = "bench",
                                        .classes = classes,
                                        .n_classes = 1,
                                        .n = 1,
                                        .now_us = NOW_US + i,
                                        .until_us = NOW_US + INT64_C(100000000000)};
    struct rv_claimed got = {0};

    int rc = rv_store_claim_tasks(s, &want, &got, err);
    if (rc == 0 && got.n != 1)
        bench_die("there is nothing to claim", NULL);
    rv_claimed_fini(&got);
    return rc;
}

static int promote(rv_store *s, int i, rv_err **err)
{
    int64_t n = 0;

    (void)i;
    return rv_store_promote_tasks(s, SCALE_T0 - 1, 100, &n, err);
}

static int enqueue(rv_store *s, int i, rv_err **err)
{
    char id[60];
    const struct rv_new_task task = {
        .id = id, .tenant = "tenant3", .type = "run", .max_retries = 3, .now_us = NOW_US + i};

    snprintf(id, sizeof id, "bench_%d_%d", (int)getpid(), n_made++);
    return rv_store_enqueue(s, &task, NULL, err);
}

static int heartbeat(rv_store *s, int i, rv_err **err)
{
    int64_t n = 0;

    return rv_store_heartbeat(s, "bench", NOW_US + i, NOW_US + INT64_C(100000000000), &n, err);
}

static const struct {
    const char *name;
    int (*run)(rv_store *s, int i, rv_err **err);
} operations[] = {
    {"claim a task", claim},
    {"enqueue a task", enqueue},
    {"heartbeat of a worker", heartbeat},
    {"look for tasks that are due", promote},
    {"create a run", create},
    {"append a step of 3 records", append},
    {"renew the leases of an owner", renew},
    {"get a run", get},
    {"read a journal", read_journal},
    {"list runs: newest 50", list_newest},
    {"list runs: newest 50 of a tenant", list_of_tenant},
    {"list runs: newest 50 of a user", list_of_user},
    {"list runs: 50 that wait", list_waiting},
    {"list runs: 50 under way", list_running},
    {"list runs: 50 that failed (none)", list_failed},
    {"list runs: under way in a session", list_of_session},
    {"find a run by its id's beginning", find_by_prefix},
    {"list the questions of a tenant", list_questions},
    {"list tasks: newest 50 of a tenant", list_tasks},
    {"look for runs without a process", list_left},
    {"look for expired questions", list_expired},
};

static void measure(const char *url)
{
    struct rv_store_stats stats;
    rv_err *err = NULL;
    rv_store *s = open_store(url);

    must(rv_store_read_stats(s, &stats, &err), "count", err);
    n_runs = stats.runs;
    printf("%lld runs, %lld records, %lld bytes\n", (long long)stats.runs, (long long)stats.records,
           (long long)stats.bytes);
    for (size_t k = 0; k < RV_COUNT(operations); k++) {
        int64_t took[TIMES];
        int n = 0;
        for (int64_t begun = bench_now_ns(); n < TIMES && bench_now_ns() - begun < INT64_C(5000000000); n++) {
            int64_t before = bench_now_ns();
            must(operations[k].run(s, n, &err), operations[k].name, err);
            took[n] = bench_now_ns() - before;
        }
        printf("%-36s %10.0f %10.0f\n", operations[k].name, (double)bench_quantile(took, (size_t)n, 0.5) / 1000,
               (double)bench_quantile(took, (size_t)n, 0.99) / 1000);
        fflush(stdout);
    }
    rv_store_close(s);
}

/* --- Deleting while others claim --- */

struct oldest {
    char (*ids)[RV_STORE_MAX_ID + 1];
    size_t n, max;
};

static int keep_oldest(void *self, const struct rv_run_row *row, rv_err **err)
{
    struct oldest *o = self;

    (void)err;
    snprintf(o->ids[o->n++], sizeof o->ids[0], "%s", row->id);
    return 0;
}

/* Claims in a process of its own until it is told to stop; prints what they took. */
static volatile sig_atomic_t stops;

static void on_stop(int signal)
{
    (void)signal;
    stops = 1;
}

static void claim_on(const char *url)
{
    static int64_t took[1000000];
    rv_store *s = open_store(url);
    rv_err *err = NULL;
    size_t n = 0;

    signal(SIGTERM, on_stop);
    while (!stops && n < RV_COUNT(took)) {
        int64_t before = bench_now_ns();
        must(claim(s, (int)n, &err), "claim", err);
        took[n++] = bench_now_ns() - before;
        usleep(5000);
    }
    printf("meanwhile %zu claims: median %.0f us, 99 %% %.0f us, slowest %.0f us\n", n,
           (double)bench_quantile(took, n, 0.5) / 1000, (double)bench_quantile(took, n, 0.99) / 1000,
           (double)bench_quantile(took, n, 1) / 1000);
    rv_store_close(s);
}

static void delete_oldest(const char *url, size_t max)
{
    const struct rv_run_filter filter = {
        .statuses = 1u << RV_RUN_COMPLETED, .oldest_first = true, .limit = (int64_t)max};
    struct oldest o = {.ids = calloc(max, sizeof *o.ids), .max = max};
    rv_err *err = NULL;
    rv_store *s = open_store(url);

    must(rv_store_list_runs(s, &all, &filter, keep_oldest, &o, &err), "list", err);
    int64_t begun = bench_now_ns();
    for (size_t i = 0; i < o.n;) { /* as `reeve gc` does it */
        must(rv_store_begin(s, &err), "begin", err);
        int64_t until = rv_store_has_one_writer(s) ? bench_now_ns() + 10000000 : INT64_MAX;
        for (size_t k = 0; k < 200 && i < o.n && bench_now_ns() < until; k++, i++)
            must(rv_store_delete_run(s, &all, o.ids[i], NULL, NOW_US, &err), "delete", err);
        must(rv_store_commit(s, &err), "commit", err);
        if (until < INT64_MAX)
            usleep(3000);
    }
    double seconds = (double)(bench_now_ns() - begun) / 1e9;
    printf("deleted %zu runs in %.1f s: %.0f a second\n", o.n, seconds, (double)o.n / seconds);
    fflush(stdout);
    begun = bench_now_ns();
    int64_t freed = 0;
    must(rv_store_sweep(s, NOW_US, 0, &freed, &err), "sweep", err);
    printf("swept what nothing refers to in %.1f s, %lld bytes given back\n", (double)(bench_now_ns() - begun) / 1e9,
           (long long)freed);
    fflush(stdout);
    free(o.ids);
    rv_store_close(s);
}

static void collect(const char *url, size_t max)
{
    pid_t pid = fork();

    if (pid == 0) {
        claim_on(url);
        exit(0);
    }
    usleep(200000);
    delete_oldest(url, max);
    kill(pid, SIGTERM);
    waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "fill") == 0)
        scale_fill(argv[2], (int64_t)bench_number(argv[3], 1), (int64_t)bench_number(argv[4], 1), true);
    else if (argc == 3 && strcmp(argv[1], "measure") == 0)
        measure(argv[2]);
    else if (argc == 4 && strcmp(argv[1], "gc") == 0)
        collect(argv[2], bench_number(argv[3], 1));
    else
        bench_die("usage: bench_scale fill STORE RUNS RECORDS | measure STORE | gc STORE N", NULL);
    return 0;
}
