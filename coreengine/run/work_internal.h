/* The work of one visit of a stage, whatever its kind: a plain visit of the agent, a visit for each element of a list,
 * or a pipeline that runs inside.
 *
 * The functions are those of rv_visit, which see coreengine/agent/agent.h for what they promise. The scheduler
 * holds works and does not look inside. */
#ifndef RV_RUN_WORK_INTERNAL_H
#define RV_RUN_WORK_INTERNAL_H

#include "coreengine/agent/agent.h"

typedef struct rv_work rv_work;

/** Begin. shared, and what `start` points to, are borrowed until run_work_free(). */
RV_MUST_CHECK int run_work_begin(struct rv_visit_shared *shared, const struct rv_visit_start *start,
                                 struct rv_effects *out, rv_work **work, rv_err **err);
/** True if it waits for that call or timer. */
bool run_work_waits_for(const rv_work *w, int64_t call_id);
/** Visits in it that wait for money: see rv_visit_find_short(). */
RV_MUST_CHECK int run_work_find_short(const rv_work *w, struct rv_short *out, rv_err **err);
/** The event that it waits for. */
RV_MUST_CHECK int run_work_on(rv_work *w, const struct rv_event *ev, struct rv_effects *out, rv_err **err);
/** Give up all that is under way in it. */
RV_MUST_CHECK int run_work_cancel(rv_work *w, const char *why, json_object *partials, struct rv_effects *out,
                                  rv_err **err);
/** Another process goes on with it. */
RV_MUST_CHECK int run_work_recover(rv_work *w, int64_t gap_us, struct rv_effects *out, rv_err **err);
bool run_work_is_done(const rv_work *w);
const struct rv_visit_result *run_work_result(const rv_work *w); /* only when done */
int run_work_stage(const rv_work *w);
void run_work_free(rv_work *w);

#endif
