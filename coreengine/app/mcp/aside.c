/* Queries of a client on a pipe, asked on a thread of their own: a query waits for the store, or for a provider that
 * makes its vectors, and the thread that reads the client's messages does not. Answers are taken in the order of
 * asking. */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "coreengine/app/mcp/mcp_internal.h"
#include "coreengine/base/system.h"

struct question {
    struct question *next;
    int64_t call;
    json_object *query;  /* owned; the thread's while it is asked */
    json_object *result; /* owned; NULL: see why */
    rv_err *why;         /* owned */
};
struct mcp_aside {
    const struct rv_app *app; /* borrowed */
    int answered;             /* eventfd: readable when there is an answer */
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t asked;
    struct question *first, **end;     /* not asked yet */
    struct question *done, **done_end; /* answered */
    size_t n_open;                     /* all that were not taken */
    bool has_thread, is_over;
    /* the thread's */
    rv_store *store; /* NULL: not open yet */
};

static void question_free(struct question *q)
{
    json_object_put(q->query);
    json_object_put(q->result);
    rv_err_free(q->why);
    free(q);
}

/* --- the thread --- */

static void answer(struct mcp_aside *a, struct question *q)
{
    struct rv_app_sources sources = {.scope = a->app->scope};
    int rc = a->store ? 0 : rv_app_store_open(a->app, RV_APP_STORE_MAKE, &a->store, &q->why);

    sources.store = a->store;
    if (rc == 0)
        rc = mcp_query(&(struct rv_app_mcp_at){.app = a->app, .sources = &sources}, rv_json_str(q->query), &q->result,
                       &q->why);
    assert((rc == 0) == (q->result != NULL));
}

static void *work(void *self)
{
    struct mcp_aside *a = self;
    const uint64_t one = 1;

    pthread_mutex_lock(&a->lock);
    while (!a->is_over) {
        struct question *q = a->first;
        if (!q) {
            pthread_cond_wait(&a->asked, &a->lock);
            continue;
        }
        a->first = q->next;
        if (!a->first)
            a->end = &a->first;
        pthread_mutex_unlock(&a->lock);
        answer(a, q);
        pthread_mutex_lock(&a->lock);
        q->next = NULL;
        *a->done_end = q;
        a->done_end = &q->next;
        RV_IGNORE(write(a->answered, &one, sizeof one) < 0, "it is readable already");
    }
    pthread_mutex_unlock(&a->lock);
    rv_store_close(a->store);
    return NULL;
}

/* --- the client's side --- */

int mcp_aside_new(const struct rv_app *app, struct mcp_aside **out, rv_err **err)
{
    struct mcp_aside *a = calloc(1, sizeof *a);

    if (!a)
        return RV_FAIL(err, RV_E_NOMEM, "serve a client");
    a->app = app;
    a->end = &a->first;
    a->done_end = &a->done;
    a->answered = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (a->answered < 0) {
        int number = errno;
        free(a);
        return RV_FAIL_SYSTEM(err, number, "serve a client");
    }
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->asked, NULL);
    *out = a;
    return 0;
}

static void free_all(struct question *q)
{
    for (struct question *next; q; q = next) {
        next = q->next;
        question_free(q);
    }
}

void mcp_aside_free(struct mcp_aside *a)
{
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    a->is_over = true;
    pthread_cond_signal(&a->asked);
    pthread_mutex_unlock(&a->lock);
    if (a->has_thread)
        pthread_join(a->thread, NULL);
    free_all(a->first);
    free_all(a->done);
    pthread_cond_destroy(&a->asked);
    pthread_mutex_destroy(&a->lock);
    close(a->answered);
    free(a);
}

int mcp_aside_fd(const struct mcp_aside *a)
{
    return a->answered;
}

bool mcp_aside_is_busy(struct mcp_aside *a)
{
    pthread_mutex_lock(&a->lock);
    bool is_busy = a->n_open > 0;
    pthread_mutex_unlock(&a->lock);
    return is_busy;
}

int mcp_aside_ask(struct mcp_aside *a, int64_t call, json_object *query, rv_err **err)
{
    struct question *q = calloc(1, sizeof *q);

    if (!q)
        return RV_FAIL(err, RV_E_NOMEM, "ask a query");
    q->call = call;
    int rc = rv_json_dup(query, &q->query, err); /* a tree belongs to one thread */
    if (rc == 0 && !a->has_thread) {
        rc = rv_thread_start(&a->thread, work, a, err);
        a->has_thread = rc == 0;
    }
    if (rc < 0) {
        question_free(q);
        return rc;
    }
    pthread_mutex_lock(&a->lock);
    *a->end = q;
    a->end = &q->next;
    a->n_open++;
    pthread_cond_signal(&a->asked);
    pthread_mutex_unlock(&a->lock);
    return 0;
}

void mcp_aside_drop(struct mcp_aside *a, int64_t call)
{
    pthread_mutex_lock(&a->lock);
    for (struct question **at = &a->first, *q; (q = *at) != NULL;) {
        if (call != 0 && q->call != call) {
            at = &q->next;
            continue;
        }
        *at = q->next;
        a->n_open--;
        question_free(q);
    }
    a->end = &a->first;
    while (*a->end)
        a->end = &(*a->end)->next;
    pthread_mutex_unlock(&a->lock);
}

bool mcp_aside_next(struct mcp_aside *a, int64_t *call, json_object **result, rv_err **why)
{
    uint64_t n;

    pthread_mutex_lock(&a->lock);
    RV_IGNORE(read(a->answered, &n, sizeof n) < 0, "there may be none");
    struct question *q = a->done;
    if (q) {
        a->done = q->next;
        if (!a->done)
            a->done_end = &a->done;
        a->n_open--;
    }
    pthread_mutex_unlock(&a->lock);
    if (!q)
        return false;
    *call = q->call;
    *result = q->result;
    *why = q->why;
    q->result = NULL;
    q->why = NULL;
    question_free(q);
    return true;
}
