/* The test cases of the files in this folder, and what they simulate. */
#ifndef RV_TESTS_SIM_SUITES_H
#define RV_TESTS_SIM_SUITES_H

#include <check.h>

#include "coreengine/sim/sim_internal.h"

TCase *values_case(void);
TCase *seeds_case(void);
TCase *broken_case(void);

#define MAX_SUBJECTS 4
#define MAX_AGENTS   3
/* A pipeline with the tools of its first test's script, once per thread. Ends the test when it has errors. */
struct subjects {
    size_t n;
    rv_findings *findings;
    struct rv_pipeline *pipelines[MAX_SUBJECTS];
    rv_script *scripts[MAX_SUBJECTS];
    struct rv_catalog catalogs[MAX_SUBJECTS];
    rv_buf documents[MAX_AGENTS]; /* of the agents that may be asked, in any pipeline */
    struct rv_sim_agent agents[MAX_AGENTS];
    struct rv_sim_subject of[MAX_SUBJECTS];
};
void subjects_init(struct subjects *s, const char *path, size_t n);
void subjects_fini(struct subjects *s);
struct rv_sim_opts subjects_opts(const struct subjects *s, int64_t n_seeds);

#endif
