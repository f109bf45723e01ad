/* Runs that the engine cannot go on with. */
#ifndef RV_STUCK_INTERNAL_H
#define RV_STUCK_INTERNAL_H

#include "coreengine/engine/engine_internal.h"

/* --- exec.c --- */

/** The core refused an event, or what it asked for cannot be performed: adds of which run and where. Returns rc. */
RV_MUST_CHECK int exec_explain(rv_exec *x, int rc, rv_err **err);
/** Will what broke the run break it each time? Then the next turn ends it as failed. */
bool exec_note_stuck(rv_exec *x, int rc, const rv_err *err);
/** Of a run that was noted so, instead of exec_break(). Takes *err. False: it was not, or memory is short. */
bool exec_ends_later(rv_exec *x, rv_err **err);

/* --- stuck.c --- */

/** End it as failed, with a record of why in its journal. */
void engine_stuck_end(rv_exec *x);

/* --- recover.c --- */

/** The run as its journal has it takes the place of x's. Takes what x needs of r. */
void exec_take_replayed(rv_exec *x, struct rv_replayed *r);

#endif
