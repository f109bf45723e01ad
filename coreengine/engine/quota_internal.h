/* Quotas of runs: quota.c. A model call is made when the store has reserved what it may take, and settled when it is
 * over. perform.c knows the gate alone. */
#ifndef RV_ENGINE_QUOTA_H
#define RV_ENGINE_QUOTA_H

#include "coreengine/engine/engine_internal.h"

/** Make the call as soon as the run's quotas allow it. It may be gone afterwards: its run is handed over. Takes the
 * texts of e. */
RV_MUST_CHECK int engine_quota_call(struct call *c, struct rv_effect *e,
                                    int (*make)(rv_exec *x, struct call *c, struct rv_effect *e, rv_err **err),
                                    rv_err **err);
/** A call with a reservation is due. True: it has no answer yet, and is due again, or was freed. *rc < 0: the run
 * cannot go on. */
bool engine_quota_waits(struct call *c, int *rc, rv_err **err);
void engine_quota_settle(struct call *c); /* one with a hold is over, and its usage known */
/** What earlier owners of the run reserved counts as used. */
void engine_quotas_recover(const rv_exec *x);
void engine_quotas_free_left(rv_engine *e); /* the store thread has ended */

#endif
