/* The crash matrix: crash [--sample [--thin N]] [--server] [--until-failure] [--jobs N] [--only PHASE:HOW:POINT] REEVE
 * SHIM CAPABILITIES PIPELINE SCRIPT ASIDE
 *
 * A run is killed at every operation on its store and on the outside world, in every way of shim.c, and so are the
 * processes that recover it and take answers. Each time it has to come to the end that it would have come to, with
 * nothing lost and nothing done twice. With --server the stores are in a private server of PostgreSQL, which lives on:
 * the points are what is sent to it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/crash/life.h"
#include "tests/kit/postgres.h"

#define MAX_JOBS      16
#define MAX_COMPLAINT ((size_t)64 << 10)
#define SERVER_HOWS   3  /* a power cut is that of the server's machine */
#define SERVER_SPARSE 17 /* its samples are so much smaller: a process takes longer */

static const char *const hows[] = {"before", "after", "torn", "lose", "scatter"};

/* Which process of a life dies, and how densely. */
static const struct phase {
    const char *name;
    size_t first;       /* processes that are let alone before */
    bool twice;         /* the process that comes after it dies, too */
    bool collects;      /* it is a gc, between the run and the answer */
    long step, sparser; /* every step-th point; with --sample every sparser-th */
} phases[] = {
    {"run", 0, false, false, 1, 7},      {"answer", 1, false, false, 1, 5}, {"gc", 1, false, true, 1, 7},
    {"recovery", 0, true, false, 4, 31}, {"second", 1, true, false, 4, 29},
};

struct matrix {
    struct setting setting;
    bool sample, until_failure;
    long thin; /* the sample has one of so many of its points */
    long n_jobs, job;
    struct verdict model;
    long counts[LIFE_MAX_DEATHS]; /* operations of the processes of a life that is let alone */
    long gc_count;
    long n_lives, n_kills, n_unreached, n_failures, n_unknown, n_half_made;
};

/* --- one life --- */

static void tell(const struct phase *phase, const struct life *life, const rv_buf *why)
{
    const struct death *d = &life->deaths[phase->first],
                       *second = phase->twice ? &life->deaths[phase->first + 1] : NULL;

    printf("FAIL %s:%s:%ld", phase->name, d->how, d->at);
    if (second)
        printf(":%ld", second->at);
    printf(": %s\n", rv_buf_cstr(why));
    fflush(stdout);
}

/* False: the point is beyond the end of the process. */
static bool live(struct matrix *m, const struct phase *phase, struct death death, long second)
{
    struct life life = {
        .setting = &m->setting, .n_deaths = phase->first + 1 + phase->twice, .collects = phase->collects};
    rv_buf why = RV_BUF_INIT(MAX_COMPLAINT);
    size_t n_wanted = 1 + phase->twice;

    life.deaths[phase->first] = death;
    if (phase->twice)
        life.deaths[phase->first + 1] = (struct death){second, death.how, death.seed + 1};
    bool good = life_live(&life, &why) && verdict_agrees(&life.verdict, &m->model, &why);
    m->n_lives++;
    m->n_kills += (long)life.n_killed;
    m->n_unreached += life.n_killed < n_wanted;
    m->n_unknown += (long)life.n_unknown;
    m->n_half_made += (long)life.n_half_made;
    if (!good) {
        m->n_failures++;
        tell(phase, &life, &why);
    }
    verdict_fini(&life.verdict);
    rv_buf_fini(&why);
    return life.n_killed == n_wanted;
}

/* --- all of them --- */

static void live_through(struct matrix *m, const struct phase *phase)
{
    size_t n_hows = m->setting.server ? SERVER_HOWS : RV_COUNT(hows);
    long step = m->sample ? phase->sparser * (m->setting.server ? SERVER_SPARSE : m->thin) : phase->step, index = 0;
    long n_points = phase->collects ? m->gc_count : m->counts[phase->first];

    for (size_t how = 0; how < n_hows; how++)
        for (long at = 1 + (long)how % step; at <= n_points; at += step) {
            struct death death = {at, hows[how], (uint64_t)at};
            if (m->until_failure && m->n_failures > 0)
                return;
            if (index++ % m->n_jobs != m->job)
                continue;
            if (!phase->twice)
                live(m, phase, death, 0);
            else /* recoveries differ in length: on until one is not reached */
                for (long second = 1 + at % step; live(m, phase, death, second);)
                    second += step;
        }
}

static void count(struct matrix *m)
{
    struct life life = {.setting = &m->setting, .n_deaths = LIFE_MAX_DEATHS};
    rv_buf why = RV_BUF_INIT(MAX_COMPLAINT);

    if (!life_live(&life, &why))
        rv_kit_die("without any crash: %s", rv_buf_cstr(&why));
    m->model = life.verdict;
    memcpy(m->counts, life.counts, sizeof m->counts);
    if (life.n_processes != 2 || m->counts[0] < 20 || m->counts[1] < 10 || !verdict_agrees(&m->model, &m->model, &why))
        rv_kit_die("the life that is let alone has %zu processes, with %ld and %ld operations; %s", life.n_processes,
                   m->counts[0], m->counts[1], rv_buf_cstr(&why));
    life.collects = true;
    if (!life_live(&life, &why) || !verdict_agrees(&life.verdict, &m->model, &why) || life.counts[1] < 10)
        rv_kit_die("with a gc and without any crash: %s", rv_buf_cstr(&why));
    m->gc_count = life.counts[1];
    verdict_fini(&life.verdict);
    printf("a run has %ld points, the answer that ends it %ld, a gc %ld\n", m->counts[0], m->counts[1], m->gc_count);
    fflush(stdout);
}

/* "PHASE:HOW:POINT[:POINT]", as it is told of a failure. */
static int live_one(struct matrix *m, const char *which)
{
    for (size_t i = 0; i < RV_COUNT(phases); i++)
        for (size_t how = 0; how < RV_COUNT(hows); how++) {
            char head[64], *end = NULL;
            int n = snprintf(head, sizeof head, "%s:%s:", phases[i].name, hows[how]);
            if (strncmp(which, head, (size_t)n) != 0)
                continue;
            long at = strtol(which + n, &end, 10), second = *end == ':' ? strtol(end + 1, NULL, 10) : 0;
            live(m, &phases[i], (struct death){at, hows[how], (uint64_t)at}, second);
        }
    printf("%ld lives, %ld kills, %ld failures\n", m->n_lives, m->n_kills, m->n_failures);
    return m->n_failures > 0 || m->n_lives == 0;
}

/* One of the processes that share the work. Gives its figures to the first one. */
static int work(struct matrix *m, int report)
{
    for (size_t i = 0; i < RV_COUNT(phases); i++)
        live_through(m, &phases[i]);
    const long figures[] = {m->n_lives, m->n_kills, m->n_unreached, m->n_failures, m->n_unknown, m->n_half_made};
    return write(report, figures, sizeof figures) != sizeof figures;
}

static int share(struct matrix *m)
{
    long sum[6] = {0}, figures[6];
    int ends[2], n_reports = 0;
    pid_t jobs[MAX_JOBS];

    if (pipe(ends) < 0)
        rv_kit_die("pipe: %s", strerror(errno));
    for (m->job = 0; m->job < m->n_jobs; m->job++) {
        pid_t pid = fork();
        if (pid < 0)
            rv_kit_die("fork: %s", strerror(errno));
        if (pid == 0) {
            close(ends[0]);
            _exit(work(m, ends[1]));
        }
        jobs[m->job] = pid;
    }
    close(ends[1]);
    for (; read(ends[0], figures, sizeof figures) == sizeof figures; n_reports++)
        for (size_t i = 0; i < RV_COUNT(sum); i++)
            sum[i] += figures[i];
    for (long i = 0; i < m->n_jobs; i++) /* the server is a child, too */
        waitpid(jobs[i], NULL, 0);
    printf("%ld lives, %ld kills (%ld lives ended before), %ld questions about unknown outcomes, %ld stores half made, "
           "%ld failures\n",
           sum[0], sum[1], sum[2], sum[4], sum[5], sum[3]);
    return n_reports != m->n_jobs || sum[3] > 0 || sum[1] < sum[0] / 2 ||
           (sum[4] == 0 && !(m->sample && m->setting.server));
}

int main(int argc, char **argv)
{
    static struct rv_kit_postgres server;
    struct matrix m = {.n_jobs = sysconf(_SC_NPROCESSORS_ONLN), .thin = 1};
    const char *only = NULL;
    int i = 1;

    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--sample") == 0)
            m.sample = true;
        else if (strcmp(argv[i], "--server") == 0)
            m.setting.server = &server;
        else if (strcmp(argv[i], "--until-failure") == 0)
            m.until_failure = true;
        else if (strcmp(argv[i], "--jobs") == 0 && i + 1 < argc)
            m.n_jobs = strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--thin") == 0 && i + 1 < argc)
            m.thin = strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            only = argv[++i];
    }
    if (argc - i != 6 || m.thin < 1) {
        fprintf(stderr, "usage: crash [--sample [--thin N]] [--server] [--until-failure] [--jobs N] [--only "
                        "PHASE:HOW:POINT] REEVE SHIM "
                        "CAPABILITIES PIPELINE "
                        "SCRIPT ASIDE\n");
        return 2;
    }
    m.n_jobs = m.n_jobs < 1 ? 1 : m.n_jobs > MAX_JOBS ? MAX_JOBS : m.n_jobs;
    m.setting =
        (struct setting){argv[i], argv[i + 1], argv[i + 2], argv[i + 3], argv[i + 4], argv[i + 5], m.setting.server};
    if (!getenv("TMPDIR") && access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1); /* power cuts are played here, so that no disk is waited for */
    if (m.setting.server)
        rv_kit_postgres_start(&server);
    count(&m);
    int status = only ? live_one(&m, only) : share(&m);
    verdict_fini(&m.model);
    if (m.setting.server)
        rv_kit_postgres_end(&server);
    return status;
}
