/* Sleeping in real time: one libuv loop, made when somebody first has to wait. It has a timer for what is due next and
 * a handle that other threads may poke; what they have to say lies in the pool. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "coreengine/shell/shell_internal.h"

#define LOOP_DESCRIPTORS 6                         /* epoll, async, signal pipe and some to spare */
#define MAX_SLEEP_US     ((int64_t)3600 * 1000000) /* then look again: keeps times in range */

struct shell_loop {
    uv_loop_t uv;
    uv_timer_t timer;
    uv_async_t async;
};

/* The sleep is over. libuv runs timers before it waits, too: one that is due by then, where the process had to wait for
 * a core since it was started, must end the wait as well, for nothing else may ever do so. */
static void on_timer(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

static void on_async(uv_async_t *async)
{
    (void)async;
}

static void close_loop(struct shell_loop *l)
{
    while (uv_run(&l->uv, UV_RUN_DEFAULT) != 0)
        continue; /* deliver the close callbacks */
    RV_IGNORE(uv_loop_close(&l->uv), "nothing is open");
    free(l);
}

void rv_loop_free(struct shell_loop *l)
{
    if (!l)
        return;
    uv_close((uv_handle_t *)&l->timer, NULL);
    uv_close((uv_handle_t *)&l->async, NULL);
    close_loop(l);
}

/* libuv aborts where descriptors run out in the middle of its set-up: see first that there are enough. */
static int check_descriptors(rv_err **err)
{
    int fds[LOOP_DESCRIPTORS], rc = 0;
    size_t n = 0;

    while (n < RV_COUNT(fds) && (fds[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        n++;
    if (n < RV_COUNT(fds)) {
        rc = RV_FAIL(err, RV_E_LIMIT, "make the event loop: %s", strerror(errno));
        rv_err_hint(err, "it needs %d file descriptors: raise `ulimit -n`", LOOP_DESCRIPTORS);
    }
    while (n > 0)
        close(fds[--n]);
    return rc;
}

int rv_loop_ensure(rv_engine *e, rv_err **err)
{
    if (e->loop)
        return 0;
    int rc = check_descriptors(err);
    if (rc < 0)
        return rc;
    struct shell_loop *l = calloc(1, sizeof *l);
    if (!l)
        return RV_FAIL(err, RV_E_NOMEM, "make the event loop");
    int uv_rc = uv_loop_init(&l->uv);
    if (uv_rc < 0) {
        free(l);
        return RV_FAIL(err, uv_rc == UV_ENOMEM ? RV_E_NOMEM : RV_E_INTERNAL, "make the event loop: %s",
                       uv_strerror(uv_rc));
    }
    uv_rc = uv_async_init(&l->uv, &l->async, on_async);
    if (uv_rc < 0) {
        close_loop(l);
        return RV_FAIL(err, RV_E_INTERNAL, "make the event loop: %s", uv_strerror(uv_rc));
    }
    uv_timer_init(&l->uv, &l->timer); /* can not fail */
    e->loop = l;
    return 0;
}

struct uv_loop_s *rv_loop_uv(struct shell_loop *l)
{
    return &l->uv;
}

void rv_loop_stir(struct shell_loop *l)
{
    uv_stop(&l->uv);
}

void rv_loop_wake(void *loop)
{
    struct shell_loop *l = loop;
    RV_IGNORE(uv_async_send(&l->async), "the handle is open as long as somebody can call this");
}

int rv_loop_sleep(rv_engine *e, int64_t until_us, rv_err **err)
{
    int rc = rv_loop_ensure(e, err);
    if (rc < 0 || atomic_load(&e->cancel_all)) /* asked for after the last look, before there was a loop to wake */
        return rc;
    struct shell_loop *l = e->loop;
    int64_t us = until_us - rv_engine_now_us(e);
    if (us > MAX_SLEEP_US)
        us = MAX_SLEEP_US;
    uv_update_time(&l->uv);
    if (us > 0) /* round up: a timer that fires early would spin */
        uv_timer_start(&l->timer, on_timer, (uint64_t)(us + 999) / 1000, 0);
    uv_run(&l->uv, us > 0 ? UV_RUN_ONCE : UV_RUN_NOWAIT);
    uv_timer_stop(&l->timer);
    return 0;
}
