/* What lint says about money. */
#ifndef RV_CLI_LINT_COST_H
#define RV_CLI_LINT_COST_H

#include "coreengine/llm/llm.h"

/** A line of text; nothing when no stage asks a model that could cost something. */
void rv_lint_cost_text(const struct rv_llm_bound *bound, rv_buf *b);
/** Members of "bounds". */
void rv_lint_cost_json(const struct rv_llm_bound *bound, rv_jw *w);
/** --max-cost as US dollars; false: no number from 0. */
bool rv_lint_max_cost(const char *text, double *out);
/** A finding when a run can cost more than that, or when it is not known what it can cost. True: there is one. */
bool rv_lint_cost_check(const struct rv_pipeline *p, const struct rv_llm_bound *bound, double max_usd,
                        rv_findings *findings);

#endif
