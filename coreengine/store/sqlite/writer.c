/* One connection by which all handles of a process write to a file. Threads of a process take turns in the order in
 * which they came, in place of asking SQLite again and again for its lock, and what one has written is still in the
 * memory of the connection when the next one writes: a connection forgets its pages when another one commits.
 *
 * A process with one handle for a file needs neither: it writes by its own connection. SQLite's lock counts in any
 * case, so a wrong guess here costs time only. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "coreengine/store/sqlite/sqlite_internal.h"

struct waiter {
    struct waiter *next;
    pthread_cond_t wake;
    bool may_go;
};
struct sqlite_writer {
    struct sqlite_writer *next; /* guarded by `all`, as the next four */
    pid_t pid;                  /* a child of the process that made it does not use it */
    dev_t device;
    ino_t file;
    size_t n_handles;

    pthread_mutex_t lock;    /* guards is_shared, is_taken and the waiters; leaf */
    bool is_shared;          /* there were two handles at once: they write by `link` */
    bool is_taken;           /* one has the turn */
    struct waiter *waiters;  /* in the order in which they came; on the stacks of their threads */
    struct sqlite_link link; /* of the handle that has the turn, as `sync`; opened for the first one */
    enum rv_store_sync sync;
};

static pthread_mutex_t all = PTHREAD_MUTEX_INITIALIZER; /* guards writers; before store/sqlite/writer.c */
static struct sqlite_writer *writers;

static void writer_free(struct sqlite_writer *w)
{
    sqlite_disconnect(&w->link);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static struct sqlite_writer *writer_new(const struct stat *info)
{
    struct sqlite_writer *w = calloc(1, sizeof *w);

    if (!w)
        return NULL;
    w->pid = getpid();
    w->device = info->st_dev;
    w->file = info->st_ino;
    pthread_mutex_init(&w->lock, NULL);
    return w;
}

int sqlite_join(struct sqlite *st, rv_err **err)
{
    struct stat info;
    struct sqlite_writer *w;

    if (st->is_memory || stat(st->base.path, &info) < 0)
        return 0;
    pthread_mutex_lock(&all);
    for (w = writers; w; w = w->next)
        if (w->pid == getpid() && w->device == info.st_dev && w->file == info.st_ino)
            break;
    if (!w && (w = writer_new(&info))) {
        w->next = writers;
        writers = w;
    }
    if (w && ++w->n_handles > 1) {
        pthread_mutex_lock(&w->lock);
        w->is_shared = true;
        pthread_mutex_unlock(&w->lock);
    }
    pthread_mutex_unlock(&all);
    st->writer = w;
    return w ? 0 : RV_FAIL(err, RV_E_NOMEM, "open \"%s\"", st->base.path);
}

void sqlite_leave(struct sqlite *st)
{
    struct sqlite_writer *w = st->writer, **at = &writers;

    if (!w)
        return;
    st->writer = NULL;
    pthread_mutex_lock(&all);
    bool is_last = --w->n_handles == 0;
    while (is_last && *at != w)
        at = &(*at)->next;
    if (is_last)
        *at = w->next;
    pthread_mutex_unlock(&all);
    if (is_last)
        writer_free(w);
}

/* --- turns --- */

/* Wait until the one before gives its turn to us. */
static bool wait_in(struct sqlite_writer *w, int64_t until_ns)
{
    const struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
    struct waiter me = {.may_go = false}, **at = &w->waiters;
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&me.wake, &attr);
    pthread_condattr_destroy(&attr);
    while (*at)
        at = &(*at)->next;
    *at = &me;
    while (!me.may_go && pthread_cond_timedwait(&me.wake, &w->lock, &until) == 0)
        continue;
    for (at = &w->waiters; !me.may_go && *at; at = &(*at)->next)
        if (*at == &me) {
            *at = me.next;
            break;
        }
    pthread_cond_destroy(&me.wake);
    return me.may_go;
}

/* 1: the handle has the turn, 0: it needs none. */
static int enter(struct sqlite *st, struct sqlite_writer *w, const char *what, rv_err **err)
{
    int64_t began_ns = sqlite_now_ns(), wait_ms = st->wait_ms > 0 ? st->wait_ms : st->busy_ms;
    int rc = 1;

    pthread_mutex_lock(&w->lock);
    if (!w->is_shared) {
        rc = 0;
    } else if (!w->is_taken) {
        w->is_taken = true;
    } else {
        st->has_queued = true;
        st->waits_since_ns = began_ns; /* the wait for other processes counts with it */
        if (!wait_in(w, began_ns + wait_ms * 1000000))
            rc = RV_E_TIMEOUT;
    }
    pthread_mutex_unlock(&w->lock);
    if (rc < 0)
        st->has_queued = false;
    return rc < 0 ? sqlite_fail(st, SQLITE_BUSY, what, err) : rc;
}

int sqlite_take_turn(struct sqlite *st, const char *what, rv_err **err)
{
    struct sqlite_writer *w = st->writer;
    int rc = w ? enter(st, w, what, err) : 0;

    if (rc <= 0)
        return rc;
    st->link = &w->link;
    if (!w->link.db) {
        rc = sqlite_connect(st, err);
        w->sync = st->sync;
    } else {
        sqlite3_busy_handler(w->link.db, sqlite_wait_turn, st);
        rc = 0;
    }
    enum rv_store_sync sync = st->defers_sync && st->sync == RV_STORE_SYNC_FULL ? RV_STORE_SYNC_NORMAL : st->sync;
    if (rc == 0 && w->sync != sync && (rc = sqlite_set_sync(st, sync, err)) == 0)
        w->sync = sync;
    if (rc < 0) {
        sqlite_disconnect(&w->link);
        sqlite_give_turn(st);
    }
    return rc;
}

void sqlite_give_turn(struct sqlite *st)
{
    struct sqlite_writer *w = st->writer;

    st->has_queued = false;
    if (st->link == &st->own)
        return;
    st->link = &st->own;
    pthread_mutex_lock(&w->lock);
    struct waiter *next = w->waiters;
    if (next) {
        w->waiters = next->next;
        next->may_go = true;
        pthread_cond_signal(&next->wake);
    } else {
        w->is_taken = false;
    }
    pthread_mutex_unlock(&w->lock);
}
