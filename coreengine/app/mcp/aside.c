/* Jobs on threads of their own: what a call waits for is waited for there, and the thread that reads the client's
 * messages does not. Queries have one thread, and are answered in the order of asking; calls whose servers are asked
 * for their tools have some more, so that one server does not hold up the calls of another one. */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "coreengine/app/mcp/mcp_internal.h"
#include "coreengine/base/base.h"

#define MAX_THREADS 16 /* for calls: as many runs as a worker does at once */

struct queue {
    struct rv_app_mcp_job *first, **end;
    size_t n;
};
/* Threads that do the jobs of one queue. */
struct crew {
    struct rv_app_mcp_aside *all;
    struct queue jobs; /* not begun yet */
    pthread_cond_t asked;
    pthread_t threads[MAX_THREADS];
    size_t n_threads, max_threads;
    size_t n_idle; /* that wait for a job, or were woken for one */
};
struct rv_app_mcp_aside {
    struct rv_worker_stop *worker; /* borrowed */
    int answered;                  /* eventfd: readable when a job is done */
    pthread_mutex_t lock;          /* guards the queues, n_open, is_over and threads of the crews; leaf */
    struct crew queries, calls;
    struct queue doing, done;
    size_t n_open; /* all that were not taken */
    bool is_over;
};

static void put(struct queue *q, struct rv_app_mcp_job *job)
{
    app_mcp_job_place(job)->next = NULL;
    *q->end = job;
    q->end = &app_mcp_job_place(job)->next;
    q->n++;
}

static struct rv_app_mcp_job *get(struct queue *q)
{
    struct rv_app_mcp_job *job = q->first;

    if (!job)
        return NULL;
    q->first = app_mcp_job_place(job)->next;
    if (!q->first)
        q->end = &q->first;
    q->n--;
    return job;
}

static void drop(struct queue *q, const struct rv_app_mcp_job *job)
{
    struct rv_app_mcp_job **at = &q->first;

    while (*at != job)
        at = &app_mcp_job_place(*at)->next;
    *at = app_mcp_job_place(*at)->next;
    q->n--;
    for (q->end = &q->first; *q->end;)
        q->end = &app_mcp_job_place(*q->end)->next;
}

static void stop_all(const struct queue *q)
{
    for (struct rv_app_mcp_job *job = q->first; job; job = app_mcp_job_place(job)->next)
        app_mcp_job_stop(job);
}

/* --- the threads --- */

/* store: the thread's, which its first job opens. */
static void do_job(rv_store **store, struct rv_worker_stop *worker, struct rv_app_mcp_job *job)
{
    const struct rv_app app = *app_mcp_job_place(job)->app;
    struct rv_app_sources sources = {.scope = app.scope};
    rv_err *why = NULL;

    if (!*store && rv_app_store_open(&app, RV_APP_STORE_MAKE, store, &why) < 0) {
        rv_app_mcp_job_fail(job, why);
        return;
    }
    sources.store = *store;
    rv_app_mcp_job_do(job, &(struct rv_app_mcp_at){.app = &app, .sources = &sources, .worker = worker});
}

static void *work(void *self)
{
    struct crew *crew = self;
    struct rv_app_mcp_aside *a = crew->all;
    const uint64_t one = 1;
    rv_store *store = NULL;

    pthread_mutex_lock(&a->lock);
    while (!a->is_over) {
        struct rv_app_mcp_job *job = get(&crew->jobs);
        if (!job) {
            crew->n_idle++;
            pthread_cond_wait(&crew->asked, &a->lock);
            crew->n_idle--;
            continue;
        }
        put(&a->doing, job);
        pthread_mutex_unlock(&a->lock);
        do_job(&store, a->worker, job);
        pthread_mutex_lock(&a->lock);
        drop(&a->doing, job);
        put(&a->done, job);
        RV_IGNORE(write(a->answered, &one, sizeof one) < 0, "it is readable already");
    }
    pthread_mutex_unlock(&a->lock);
    rv_store_close(store);
    return NULL;
}

/* --- the client's side --- */

static void init_crew(struct rv_app_mcp_aside *a, struct crew *c, size_t max_threads)
{
    c->all = a;
    c->jobs.end = &c->jobs.first;
    c->max_threads = max_threads;
    pthread_cond_init(&c->asked, NULL);
}

int rv_app_mcp_aside_new(struct rv_worker_stop *worker, rv_app_mcp_aside **out, rv_err **err)
{
    struct rv_app_mcp_aside *a = calloc(1, sizeof *a);

    if (!a)
        return RV_FAIL(err, RV_E_NOMEM, "serve a client");
    a->worker = worker;
    a->doing.end = &a->doing.first;
    a->done.end = &a->done.first;
    a->answered = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (a->answered < 0) {
        int number = errno;
        free(a);
        return RV_FAIL_SYSTEM(err, number, "serve a client");
    }
    pthread_mutex_init(&a->lock, NULL);
    init_crew(a, &a->queries, 1);
    init_crew(a, &a->calls, MAX_THREADS);
    *out = a;
    return 0;
}

static void move_all(struct queue *from, struct queue *to)
{
    for (struct rv_app_mcp_job *job; (job = get(from)) != NULL;)
        put(to, job);
}

static void stop_crew(struct crew *c)
{
    for (size_t i = 0; i < c->n_threads; i++)
        pthread_join(c->threads[i], NULL);
    c->n_threads = 0;
    move_all(&c->jobs, &c->all->done);
}

void rv_app_mcp_aside_stop(struct rv_app_mcp_aside *a)
{
    pthread_mutex_lock(&a->lock);
    a->is_over = true;
    stop_all(&a->queries.jobs);
    stop_all(&a->calls.jobs);
    stop_all(&a->doing);
    stop_all(&a->done);
    pthread_cond_broadcast(&a->queries.asked);
    pthread_cond_broadcast(&a->calls.asked);
    pthread_mutex_unlock(&a->lock);
    stop_crew(&a->queries);
    stop_crew(&a->calls);
}

void rv_app_mcp_aside_free(struct rv_app_mcp_aside *a)
{
    if (!a)
        return;
    assert(a->n_open == 0);
    rv_app_mcp_aside_stop(a);
    pthread_cond_destroy(&a->queries.asked);
    pthread_cond_destroy(&a->calls.asked);
    pthread_mutex_destroy(&a->lock);
    close(a->answered);
    free(a);
}

int rv_app_mcp_aside_fd(const struct rv_app_mcp_aside *a)
{
    return a->answered;
}

bool rv_app_mcp_aside_is_busy(struct rv_app_mcp_aside *a)
{
    pthread_mutex_lock(&a->lock);
    bool is_busy = a->n_open > 0;
    pthread_mutex_unlock(&a->lock);
    return is_busy;
}

void rv_app_mcp_aside_add(rv_app_mcp_aside *a, rv_app_mcp_job *job, const struct rv_app *app, void *owner)
{
    struct crew *c = rv_app_mcp_job_is_query(job) ? &a->queries : &a->calls;
    const uint64_t one = 1;
    rv_err *why = NULL;

    app_mcp_job_place(job)->app = app;
    app_mcp_job_place(job)->owner = owner;
    pthread_mutex_lock(&a->lock);
    a->n_open++;
    put(&c->jobs, job);
    if (c->jobs.n > c->n_idle && c->n_threads < c->max_threads) { /* idle ones may not have woken yet */
        if (rv_thread_start(work, c, &c->threads[c->n_threads], &why) == 0)
            c->n_threads++;
        if (c->n_threads == 0) { /* it is the only one */
            put(&a->done, get(&c->jobs));
            rv_app_mcp_job_fail(job, why);
            why = NULL;
            RV_IGNORE(write(a->answered, &one, sizeof one) < 0, "it is readable already");
        }
    }
    pthread_cond_signal(&c->asked);
    pthread_mutex_unlock(&a->lock);
    rv_err_free(why);
}

rv_app_mcp_job *rv_app_mcp_aside_steal(rv_app_mcp_aside *a, void **owner)
{
    uint64_t n;

    pthread_mutex_lock(&a->lock);
    RV_IGNORE(read(a->answered, &n, sizeof n) < 0, "there may be none");
    struct rv_app_mcp_job *job = get(&a->done);
    a->n_open -= job != NULL;
    pthread_mutex_unlock(&a->lock);
    if (job)
        *owner = app_mcp_job_place(job)->owner;
    return job;
}
