/* Runs that the engine cannot go on with. */
#ifndef RV_STUCK_INTERNAL_H
#define RV_STUCK_INTERNAL_H

#include "coreengine/engine/engine_internal.h"

/* --- recover.c --- */

/** The run as its journal has it takes the place of x's. Takes what x needs of r. */
void rv_exec_take_replayed(rv_exec *x, struct rv_replayed *r);

#endif
