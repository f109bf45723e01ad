/* The store thread: commits queued writes while the loop runs, all that are queued in one transaction. The slower the
 * disk, the larger the groups.
 *
 * Each write succeeds or fails by itself. A refused write (another process has taken the run over) leaves the others in
 * place. When the whole group fails, each write is retried in a transaction of its own. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "coreengine/base/base.h"
#include "coreengine/engine/engine_internal.h"

#define MAX_GROUP 512 /* writes in a transaction: other processes wait for its end */

struct list {
    struct write *first, **end;
};

struct writer {
    pthread_mutex_t lock;  /* guards `queue`, `written` and is_ending; leaf: not held while the store is used */
    pthread_cond_t wanted; /* something is queued, or the end has come */
    pthread_cond_t done;
    struct list queue, written;
    bool is_ending;
    rv_store *store; /* the thread's own handle */
    struct rv_clock clock;
    void (*wake)(void *self);
    void *wake_self;
    pthread_t thread;
};

static void append(struct list *l, struct write *w)
{
    w->next = NULL;
    *l->end = w;
    l->end = &w->next;
}

/* Those that can be written together. */
static size_t group_of(const struct list *l)
{
    const struct write *w = l->first;
    size_t n = w ? 1 : 0;

    for (; n && n < MAX_GROUP && !w->is_alone && w->next && !w->next->is_alone; w = w->next)
        n++;
    return n;
}

static struct write *take(struct list *l, size_t n)
{
    struct write *first = l->first, **end = &l->first;

    while (*end && n > 0) {
        end = &(*end)->next;
        n--;
    }
    l->first = *end;
    *end = NULL;
    if (!l->first)
        l->end = &l->first;
    return first;
}

/* --- on the thread --- */

static void set_result(struct write *w, int rc, rv_err *err)
{
    rv_err_free(w->err);
    w->rc = rc;
    w->err = err;
}

static int write_each(struct writer *o, struct write *first)
{
    for (struct write *w = first; w; w = w->next) {
        rv_err *err = NULL;
        int rc = w->write(w, o->store, &err);
        set_result(w, rc, err);
    }
    return 0;
}

static int commit(struct writer *o, struct write *first, rv_err **err)
{
    int rc;

    do {
        rc = rv_store_begin(o->store, err);
        if (rc == 0)
            rc = rv_store_end(o->store, write_each(o, first), err);
    } while (rc < 0 && rv_store_wait_again(o->store, err));
    return rc;
}

/* The owner of a lease waits for other processes no longer than the lease lasts. */
static void limit_wait(struct writer *o, const struct write *first)
{
    int64_t now_us = o->clock.now_us(o->clock.self), until_us = RV_NEVER;

    for (const struct write *w = first; w; w = w->next)
        if (w->until_us > now_us && w->until_us < until_us) /* one that is over limits no other */
            until_us = w->until_us;
    int64_t left_ms = until_us == RV_NEVER ? 0 : (until_us - now_us) / RV_US_PER_MS;
    rv_store_set_wait(o->store, until_us == RV_NEVER ? 0 : left_ms > 0 ? left_ms : 1);
}

static void write_alone(struct writer *o, struct write *w)
{
    struct write *next = w->next;
    rv_err *err = NULL;

    w->next = NULL;
    limit_wait(o, w);
    int rc = w->is_alone ? write_each(o, w) : commit(o, w, &err);
    if (rc < 0 && w->rc == 0)
        set_result(w, rc, err);
    else
        rv_err_free(err);
    w->next = next;
}

/* Each run of a group reports the same failure by an error of its own. */
static void copy_chain(const rv_err *of, rv_err **out)
{
    const struct rv_src src = rv_err_src(of);
    const char *hint = rv_err_hint_text(of);
    int line;
    const char *file = rv_err_made_at(of, &line);

    if (rv_err_cause(of))
        copy_chain(rv_err_cause(of), out);
    rv_err_add_at(out, rv_err_code(of), file, line, &src, "%s", rv_err_text(of));
    if (hint)
        rv_err_set_hint(out, "%s", hint);
}

/* Other processes had the store for as long as these writes may wait: trying each one alone would take that long each
 * time. */
static void none_written(struct write *first, int rc, const rv_err *why)
{
    for (struct write *w = first; w; w = w->next) {
        rv_err *err = NULL;
        copy_chain(why, &err);
        set_result(w, rc, err);
    }
}

static void write_group(struct writer *o, struct write *first)
{
    rv_err *err = NULL;

    limit_wait(o, first);
    int rc = commit(o, first, &err);
    if (rc == RV_E_TIMEOUT)
        none_written(first, rc, err);
    for (struct write *w = first; w && rc < 0 && rc != RV_E_TIMEOUT; w = w->next)
        write_alone(o, w);
    rv_err_free(err); /* each that fails alone has an error of its own */
}

static void *run(void *self)
{
    struct writer *o = self;

    pthread_mutex_lock(&o->lock);
    for (;;) {
        while (!o->queue.first && !o->is_ending)
            pthread_cond_wait(&o->wanted, &o->lock);
        struct write *first = take(&o->queue, group_of(&o->queue));
        if (!first)
            break;
        pthread_mutex_unlock(&o->lock);
        if (first->next)
            write_group(o, first);
        else
            write_alone(o, first);
        for (struct write *w = first; w; w = w->next)
            if (w->rc == 0 && w->rest)
                w->rest(w, o->store);
        pthread_mutex_lock(&o->lock);
        while (first) {
            struct write *next = first->next;
            first->is_written = true;
            append(&o->written, first);
            first = next;
        }
        pthread_cond_broadcast(&o->done);
        o->wake(o->wake_self);
    }
    pthread_mutex_unlock(&o->lock);
    return NULL;
}

/* --- on the loop --- */

static void destroy(struct writer *o)
{
    pthread_cond_destroy(&o->wanted);
    pthread_cond_destroy(&o->done);
    pthread_mutex_destroy(&o->lock);
    rv_store_close(o->store);
    free(o);
}

int engine_writer_new(const rv_store *store, struct rv_clock clock, void (*wake)(void *self), void *self,
                      struct writer **out, rv_err **err)
{
    struct writer *o = calloc(1, sizeof *o);

    if (!o)
        return RV_FAIL(err, RV_E_NOMEM, "make the thread of the store");
    int rc = rv_store_reopen(store, &o->store, err);
    if (rc < 0) {
        free(o);
        return rc;
    }
    o->queue.end = &o->queue.first;
    o->written.end = &o->written.first;
    o->clock = clock;
    o->wake = wake;
    o->wake_self = self;
    pthread_mutex_init(&o->lock, NULL);
    pthread_cond_init(&o->wanted, NULL);
    pthread_cond_init(&o->done, NULL);
    rc = rv_thread_start(run, o, &o->thread, err);
    if (rc < 0) {
        destroy(o);
        return RV_WRAP(err, rc, "make the thread of the store");
    }
    *out = o;
    return 0;
}

void engine_writer_free(struct writer *o)
{
    if (!o)
        return;
    pthread_mutex_lock(&o->lock);
    o->is_ending = true;
    pthread_cond_signal(&o->wanted);
    pthread_mutex_unlock(&o->lock);
    pthread_join(o->thread, NULL);
    destroy(o);
}

void engine_writer_submit(struct writer *o, struct write *w)
{
    w->is_written = false;
    w->rc = 0;
    w->err = NULL;
    pthread_mutex_lock(&o->lock);
    bool was_empty = !o->queue.first;
    append(&o->queue, w);
    if (was_empty)
        pthread_cond_signal(&o->wanted);
    pthread_mutex_unlock(&o->lock);
}

struct write *engine_writer_take_done(struct writer *o, size_t n)
{
    pthread_mutex_lock(&o->lock);
    struct write *first = take(&o->written, n);
    pthread_mutex_unlock(&o->lock);
    return first;
}

void engine_writer_wait_for(struct writer *o, struct write *w)
{
    struct write **at = &o->written.first;

    pthread_mutex_lock(&o->lock);
    while (!w->is_written)
        pthread_cond_wait(&o->done, &o->lock);
    while (*at && *at != w)
        at = &(*at)->next;
    if (*at)
        *at = w->next;
    o->written.end = &o->written.first;
    while (*o->written.end)
        o->written.end = &(*o->written.end)->next;
    pthread_mutex_unlock(&o->lock);
}
