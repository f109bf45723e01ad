/* What runs with groups can do, by trying everything: branches that go on one at a time in any order, read from the
 * pipeline alone. For small pipelines only; shares nothing with the proof. */
#ifndef RV_TEST_CONFIG_ANALYSIS_GROUP_ORACLE_H
#define RV_TEST_CONFIG_ANALYSIS_GROUP_ORACLE_H

#include "config/config.h"

#define GROUP_ORACLE_STAGES 6

struct group_oracle_answer {
    int64_t visits, calls, questions; /* the most of each, over all runs */
    bool is_whole;                    /* false: too many states, nothing is known */
};
/** Sets what the loader would: the level of each stage and the joins. */
void group_oracle_levels(struct rv_pipeline *p);
struct group_oracle_answer group_oracle(const struct rv_pipeline *p, bool mocked);

#endif
