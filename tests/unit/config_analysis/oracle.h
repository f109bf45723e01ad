/* What runs can do, by trying everything: an independent reading of the run rules, for small pipelines only. */
#ifndef RV_TEST_CONFIG_ANALYSIS_ORACLE_H
#define RV_TEST_CONFIG_ANALYSIS_ORACLE_H

#include "tests/unit/config_analysis/world.h"

#define ORACLE_STAGES 6

/* How much the world outside the stages' own outputs helps. */
enum oracle_view {
    ORACLE_ANYTHING, /* expressions and functions answer as they like; a stage may fail before its first call */
    ORACLE_MOCKED,   /* as ANYTHING, and no stage calls a model */
    /* Functions end the run, only first hooks fail early, expressions that look beyond the output ... */
    ORACLE_SURE_TRUE,  /* ... are true */
    ORACLE_SURE_FALSE, /* ... are false */
};
struct oracle_answer {
    int64_t visits, calls; /* the most of each, over all runs */
};
struct oracle_answer oracle_sequential(const struct world *w, enum oracle_view view);
struct oracle_answer oracle_parallel(const struct world *w, bool mocked);

#endif
