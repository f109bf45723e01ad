/* Simulated time: the clock jumps to what is due next. A call on a worker has its place in the queue from the moment it
 * starts, so what comes after it waits for it, and how fast the workers are decides nothing.
 *
 * Its deadline is still watched, in real time: a capability that hangs must not hang the simulation. */
#include "coreengine/engine/engine_internal.h"

static int64_t real_now(void)
{
    struct rv_clock clock = rv_clock_system();
    return clock.now_us(clock.self);
}

bool rv_virtual_ready(rv_engine *e, struct call *c)
{
    if (!rv_call_is_under_way(c)) {
        if (c->due_us > e->virtual_us)
            e->virtual_us = c->due_us;
        return true;
    }
    int64_t left = c->patience_us - real_now();
    if (left > 0) {
        rv_pool_wait(e->pool, left);
        return false;
    }
    rv_call_timed_out(c);
    c->due_us = c->deadline_us;
    rv_due_moved(&e->due, c);
    return false;
}
