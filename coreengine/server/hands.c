/* The threads that work at requests: as many as do something, at most HANDS. One that waits for a server of tools or of
 * vectors does nothing, so another takes its place: clients of servers that do not answer hold up no other client.
 * Threads start as they are needed; those beside HANDS end when they have nothing to wait for any more. */
#include "coreengine/server/hands_internal.h"

#include <assert.h>
#include <stdlib.h>

#include "coreengine/base/base.h"
#include "coreengine/server/loop_internal.h"

#define HANDS     8  /* that judge, read and write the store */
#define MAX_WAITS 64 /* that wait for others besides: each is a thread */

struct srv_hands {
    struct srv_server *s; /* borrowed */
    pthread_mutex_t lock; /* guards the waiting calls, the numbers and is_over; before server/loop_internal.h */
    pthread_cond_t asked, left;
    struct srv_call *first, **end; /* that wait for a thread */
    size_t n_queued, n_threads, n_idle, n_waits;
    bool is_over;
};

static struct srv_call *take(struct srv_hands *h)
{
    struct srv_call *c = h->first;

    h->first = c->queued_next;
    if (!h->first)
        h->end = &h->first;
    h->n_queued--;
    return c;
}

static bool is_too_many(const struct srv_hands *h)
{
    return h->n_threads - h->n_waits > HANDS;
}

static void *work(void *self)
{
    struct srv_hands *h = self;

    pthread_mutex_lock(&h->lock);
    while (!is_too_many(h)) {
        if (!h->first && h->is_over)
            break;
        if (!h->first) {
            h->n_idle++;
            pthread_cond_wait(&h->asked, &h->lock);
            h->n_idle--;
            continue;
        }
        struct srv_call *c = take(h);
        pthread_mutex_unlock(&h->lock);
        srv_call_work(c);
        pthread_mutex_lock(&h->lock);
        h->n_waits -= c->waits;
        srv_loop_post(&h->s->server_loop, &c->worked); /* and c is the loop's */
    }
    h->n_threads--;
    pthread_cond_signal(&h->left);
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

/* With the lock. */
static int add_thread(struct srv_hands *h, rv_err **err)
{
    pthread_t thread;
    int rc = rv_thread_start(work, h, &thread, err);

    if (rc == 0) {
        pthread_detach(thread);
        h->n_threads++;
    }
    return rc;
}

static bool wants_thread(const struct srv_hands *h)
{
    return h->n_queued > h->n_idle && h->n_threads - h->n_waits < HANDS;
}

void srv_hands_do(struct srv_hands *h, struct srv_call *c)
{
    c->queued_next = NULL;
    pthread_mutex_lock(&h->lock);
    *h->end = c;
    h->end = &c->queued_next;
    h->n_queued++;
    if (wants_thread(h))
        RV_IGNORE(add_thread(h, NULL), "the others do it later: one is there as long as the server");
    pthread_cond_signal(&h->asked);
    pthread_mutex_unlock(&h->lock);
}

bool srv_hands_wait(struct srv_hands *h, struct srv_call *c)
{
    if (c->waits)
        return true;
    pthread_mutex_lock(&h->lock);
    c->waits = h->n_waits < MAX_WAITS;
    h->n_waits += c->waits;
    /* the last that does something stays: without another thread nothing would be done */
    if (c->waits && (wants_thread(h) || h->n_threads == h->n_waits) &&
        add_thread(h, RV_CODE_ONLY("without a thread the request does not wait: the client is told so")) < 0 &&
        h->n_threads == h->n_waits) {
        c->waits = false;
        h->n_waits--;
    }
    bool may = c->waits;
    pthread_mutex_unlock(&h->lock);
    return may;
}

static void destroy(struct srv_hands *h)
{
    pthread_cond_destroy(&h->asked);
    pthread_cond_destroy(&h->left);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

int srv_hands_new(struct srv_server *s, struct srv_hands **out, rv_err **err)
{
    struct srv_hands *h = calloc(1, sizeof *h);

    if (!h)
        return RV_FAIL(err, RV_E_NOMEM, "make the threads of a server");
    h->s = s;
    h->end = &h->first;
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->asked, NULL);
    pthread_cond_init(&h->left, NULL);
    pthread_mutex_lock(&h->lock);
    int rc = add_thread(h, err); /* of those that start later none needs to */
    pthread_mutex_unlock(&h->lock);
    if (rc < 0)
        destroy(h);
    else
        *out = h;
    return rc;
}

void srv_hands_free(struct srv_hands *h)
{
    if (!h)
        return;
    pthread_mutex_lock(&h->lock);
    h->is_over = true;
    pthread_cond_broadcast(&h->asked);
    while (h->n_threads > 0)
        pthread_cond_wait(&h->left, &h->lock);
    assert(!h->first);
    pthread_mutex_unlock(&h->lock);
    destroy(h);
}
