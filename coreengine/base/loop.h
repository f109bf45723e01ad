/* Event loops of libuv, opened so that a process without descriptors has an error and is not aborted. Only modules that
 * link libuv include this header. */
#ifndef RV_LOOP_H
#define RV_LOOP_H

#include "coreengine/base/system.h"

#include <uv.h>

#define RV_LOOP_DESCRIPTORS 6 /* of one loop: epoll, async, signal pipe and some to spare */

/** uv_loop_init(), which aborts the process where descriptors run out: that is tried first. On failure there is nothing
 * to close.
 * @return RV_E_FILES, RV_E_NOMEM, RV_E_IO */
RV_MUST_CHECK static inline int rv_loop_init(uv_loop_t *loop, rv_err **err)
{
    int rc = rv_descriptors_check(RV_LOOP_DESCRIPTORS, err);
    int failed = rc == 0 ? uv_loop_init(loop) : 0;

    if (failed < 0)
        rc = RV_FAIL_SYSTEM(err, failed, "open what a loop needs");
    return rc < 0 ? RV_WRAP(err, rc, "make the event loop") : 0;
}

/** A handle that hears of a signal; number 0: of none. On failure it is to be closed unless its `loop` is NULL. */
RV_MUST_CHECK static inline int rv_signal_init(uv_loop_t *loop, uv_signal_t *s, uv_signal_cb heard, int number,
                                               rv_err **err)
{
    int failed = uv_signal_init(loop, s);

    if (failed == 0 && number > 0)
        failed = uv_signal_start(s, heard, number);
    return failed < 0 ? RV_FAIL_SYSTEM(err, failed, "listen for signals") : 0;
}

#endif
