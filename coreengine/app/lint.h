/* Proofs about a pipeline that need no run. */
#ifndef RV_APP_LINT_H
#define RV_APP_LINT_H

#include "config/analysis/analysis.h"
#include "coreengine/model/llm/llm.h"

/* The proofs of a pipeline: for one part of a run, and for the run with its answers. */
struct rv_app_proved {
    struct rv_proof part;
    struct rv_whole_run whole;
    int64_t answers;
    struct rv_llm_bound cost;
};
/** answers: at most so many are counted; INT64_MAX: as many as the bounds allow. Finish with rv_proof_fini(&out->part).
 */
RV_MUST_CHECK int rv_app_prove(const struct rv_pipeline *p, int64_t answers, struct rv_app_proved *out, rv_err **err);
void rv_app_proved_write(const struct rv_pipeline *p, const struct rv_app_proved *proved, rv_jw *w); /* "bounds" */
/** A line of text; nothing when no stage asks a model that could cost something. */
void rv_app_cost_text(const struct rv_llm_bound *bound, rv_buf *b);
/** A finding when a run can cost more than that, or when it is not known what it can cost. limit: what the
 *  finding calls it. True: there is one. */
bool rv_app_cost_check(const struct rv_pipeline *p, const struct rv_llm_bound *bound, double max_usd, const char *limit,
                       rv_findings *findings);

#endif
