/* The engine on a libuv loop: the caller's loop, or its own, which is created for the first wait. A prepare handle
 * processes what is due before each poll, a timer ends the poll when the next item is due, and an async handle lets
 * workers and the store thread wake the loop. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "coreengine/base/loop.h"
#include "coreengine/engine/engine_internal.h"

#define MAX_SLEEP_US RV_US_PER_HOUR    /* then look again: keeps times in range */
#define PASS_NS      UINT64_C(1000000) /* of turns in a row; then other users of the loop have their turn */

/* --- SIGINT and SIGTERM: the first asks every run to end, the second ends the process. Watched from the moment an
 * engine is made, so that there is no gap before its loop exists --- */

static const int numbers[] = {SIGINT, SIGTERM};

/* A handler is given nothing but a number, so what it needs is global; one engine of a process may watch at a time. */
static _Atomic(rv_engine *) watcher;
static atomic_uint n_seen;
static atomic_int last; /* signal; 0: none */
static struct sigaction before[RV_COUNT(numbers)];

static void cancel_all(rv_engine *e)
{
    struct shell_loop *loop = e->loop;

    atomic_store(&e->cancel_all, true);
    if (loop)
        engine_loop_wake(loop);
}

static void on_signal(int number)
{
    int saved = errno;
    rv_engine *e = atomic_load(&watcher);

    atomic_store(&last, number);
    if (atomic_fetch_add(&n_seen, 1) > 0)
        _exit(RV_EXIT_AT_ONCE); /* the second signal: the process ends at once, without any cleanup */
    if (e)
        cancel_all(e);
    errno = saved;
}

int engine_signals_watch(rv_engine *e, rv_err **err)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    rv_engine *none = NULL;

    if (!atomic_compare_exchange_strong(&watcher, &none, e))
        return RV_FAIL(err, RV_E_STATE, "another engine of this process watches the signals");
    atomic_store(&n_seen, 0);
    atomic_store(&last, 0);
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < RV_COUNT(numbers); i++)
        RV_IGNORE(sigaction(numbers[i], &action, &before[i]), "the numbers and the action are valid");
    return 0;
}

void engine_signals_unwatch(rv_engine *e)
{
    rv_engine *mine = e;

    if (atomic_load(&watcher) != e)
        return;
    for (size_t i = 0; i < RV_COUNT(numbers); i++)
        RV_IGNORE(sigaction(numbers[i], &before[i], NULL), "it was in force before");
    RV_IGNORE(!atomic_compare_exchange_strong(&watcher, &mine, NULL), "it was read just now");
    if (atomic_exchange(&e->cancel_all, false)) /* it came behind the end of the last run: it is for the process */
        RV_IGNORE(raise(atomic_load(&last)), "the number is one of those above");
}

/* --- the loop --- */

struct shell_loop {
    uv_loop_t own; /* unless one was given */
    uv_loop_t *uv;
    uv_timer_t timer;
    uv_async_t async;
    uv_prepare_t prepare;
    rv_engine *engine; /* NULL: it is gone, and the handles are about to close */
    int n_open;        /* handles */
};

/* Both only end the wait. */
static void on_timer(uv_timer_t *timer)
{
    (void)timer;
}

static void on_async(uv_async_t *async)
{
    (void)async;
}

/* An engine without a run that goes on does not keep the caller's loop alive. */
static void hold(struct shell_loop *l, bool is_live)
{
    uv_handle_t *handles[] = {(uv_handle_t *)&l->timer, (uv_handle_t *)&l->async};

    for (size_t i = 0; i < RV_COUNT(handles); i++)
        if (is_live)
            uv_ref(handles[i]);
        else
            uv_unref(handles[i]);
}

/* The wait that comes ends when something is due. Round up: a timer that fires early would spin. */
static void arm(struct shell_loop *l, bool at_once)
{
    int64_t us = at_once ? 0 : l->engine->due_in_us(l->engine);

    if (us > MAX_SLEEP_US)
        us = MAX_SLEEP_US;
    uv_update_time(l->uv);
    uv_timer_start(&l->timer, on_timer, us > 0 ? (uint64_t)(us + 999) / 1000 : 0, 0);
}

static void on_prepare(uv_prepare_t *prepare)
{
    struct shell_loop *l = prepare->data;
    uint64_t until_ns = uv_hrtime() + PASS_NS;
    int n = 0;

    while (uv_hrtime() < until_ns && l->engine->turn(l->engine))
        n++;
    rv_engine *e = l->engine;
    if (e->close && !e->execs && !e->given_up && !e->lease_write) {
        e->close(e);
        return;
    }
    arm(l, n > 0); /* a caller that waits for a run checks whether it is over before the loop sleeps */
    if (l->uv != &l->own)
        hold(l, e->n_live > 0 || e->close);
}

static void close_own(struct shell_loop *l)
{
    while (uv_run(&l->own, UV_RUN_DEFAULT) != 0)
        continue; /* deliver the close callbacks */
    RV_IGNORE(uv_loop_close(&l->own), "nothing is open");
    free(l);
}

static void on_closed(uv_handle_t *handle)
{
    struct shell_loop *l = handle->data;

    if (--l->n_open == 0 && l->uv != &l->own)
        free(l);
}

void engine_loop_free(struct shell_loop *l)
{
    if (!l)
        return;
    l->engine = NULL;
    uv_prepare_stop(&l->prepare);
    uv_close((uv_handle_t *)&l->timer, on_closed);
    uv_close((uv_handle_t *)&l->async, on_closed);
    uv_close((uv_handle_t *)&l->prepare, on_closed);
    if (l->uv == &l->own)
        close_own(l);
}

static int open_handles(struct shell_loop *l, rv_engine *e, rv_err **err)
{
    int uv_rc = uv_async_init(l->uv, &l->async, on_async);

    if (uv_rc < 0) {
        if (l->uv == &l->own)
            RV_IGNORE(uv_loop_close(&l->own), "nothing is open");
        free(l);
        return RV_FAIL_SYSTEM(err, uv_rc, "make the event loop");
    }
    uv_timer_init(l->uv, &l->timer); /* these cannot fail */
    uv_prepare_init(l->uv, &l->prepare);
    uv_prepare_start(&l->prepare, on_prepare);
    uv_unref((uv_handle_t *)&l->prepare);
    l->timer.data = l->async.data = l->prepare.data = l;
    l->n_open = 3;
    l->engine = e;
    if (l->uv != &l->own)
        hold(l, false);
    e->loop = l;
    return 0;
}

int engine_loop_ensure(rv_engine *e, rv_err **err)
{
    struct uv_loop_s *given = e->opts.loop;

    if (e->loop)
        return 0;
    struct shell_loop *l = calloc(1, sizeof *l);
    if (!l)
        return RV_FAIL(err, RV_E_NOMEM, "make the event loop");
    int rc = given ? 0 : rv_loop_init(&l->own, err);
    if (rc < 0) {
        free(l);
        return rc;
    }
    l->uv = given ? given : &l->own;
    return open_handles(l, e, err);
}

struct uv_loop_s *engine_loop_uv(struct shell_loop *l)
{
    return l->uv;
}

void engine_loop_wake(void *loop)
{
    struct shell_loop *l = loop;
    RV_IGNORE(uv_async_send(&l->async), "the handle is open as long as a thread can call this");
}

void engine_loop_hold(struct shell_loop *l)
{
    hold(l, true);
}

int engine_loop_run(rv_engine *e, bool waits, rv_err **err)
{
    int rc = engine_loop_ensure(e, err);

    if (rc < 0 || atomic_load(&e->cancel_all)) /* a request to cancel that came before there was a loop to wake */
        return rc;
    struct shell_loop *l = e->loop;
    uv_run(l->uv, waits ? UV_RUN_ONCE : UV_RUN_NOWAIT);
    return 0;
}
