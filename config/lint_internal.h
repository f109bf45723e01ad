/* Shared by the lint*.c files only. */
#ifndef RV_CONFIG_LINT_INTERNAL_H
#define RV_CONFIG_LINT_INTERNAL_H

#include "config/analysis_internal.h"

/** Stages that no run reaches, stages that never lead to the end, and bounds that end every run before it.
 *  Sequential runs only. RV_E_NOMEM. */
RV_MUST_CHECK int rv_lint_reach(const struct rv_pipeline *p, const struct rv_routes *routes, rv_findings *findings,
                                rv_err **err);
/** Answers that lead back to a model stage, which can ask again. Sequential runs only. */
void rv_lint_answers(const struct rv_pipeline *p, const struct rv_routes *routes, rv_findings *findings);
/** Bounds that no complete run keeps have no place of their own in the file. */
struct rv_src rv_lint_bounds_src(const struct rv_pipeline *p);
struct rv_src rv_lint_stage_src(const struct rv_agent *a);

#endif
