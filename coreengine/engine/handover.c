/* A run that is to be handed over to another process: it comes to a point where the other one does not have to ask what
 * happened.
 *
 * Calls under way may end, and their answers are journaled. What the run asks for after the request is begun only where
 * it must not be repeated (perform.c). When nothing is under way any more, the run is over in this engine. */
#include "coreengine/engine/engine_internal.h"

void rv_exec_hand_over(rv_exec *x)
{
    rv_engine *e = x->engine;

    if (!e || x->over || (!x->opts.journal && !x->is_opening))
        return;
    x->hands_over = e->any_hands_over = true;
    if (e->opts.loop)
        engine_loop_wake(e->loop);
}

bool rv_exec_is_handed_over(const rv_exec *x)
{
    return x->hands_over && x->over && x->rc == 0 && x->status == RV_RUN_RUNNING;
}

/* Only timers and expiries of questions are left, and the journal has those. */
static bool is_quiet(const rv_exec *x)
{
    if (x->over || x->is_keeping || x->is_opening || x->cancel_asked || x->effects.n > 0)
        return false;
    for (const struct call *c = x->calls; c; c = c->next)
        if (c->kind != CALL_EXPIRE && (c->kind != CALL_ANSWER || c->event != RV_EVENT_TIMER))
            return false;
    return true;
}

void engine_handovers_tick(rv_engine *e)
{
    if (!e->any_hands_over)
        return;
    e->any_hands_over = false;
    for (rv_exec *x = e->execs; x; x = x->next) {
        if (!x->hands_over || x->over)
            continue;
        if (is_quiet(x)) {
            engine_call_free_all(x);
            exec_end(x);
        } else {
            e->any_hands_over = true;
        }
    }
}

bool rv_exec_is_unrepeatable(const rv_exec *x)
{
    for (const struct call *c = x->calls; c; c = c->next)
        if (c->is_once)
            return true;
    return false;
}
