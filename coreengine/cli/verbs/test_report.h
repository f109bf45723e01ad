/* The forms in which `reeve test` reports: for people, for tools that read lines, and documents. */
#ifndef RV_CLI_TEST_REPORT_H
#define RV_CLI_TEST_REPORT_H

#include "coreengine/app/testing.h"
#include "coreengine/cli/cli.h"

#define RV_TEST_MAX_OUTPUT ((size_t)64 << 20)

/* One report. The writer's `out` is printed by the caller. */
struct rv_test_output {
    rv_buf out;
    bool color;
    bool show_pipeline; /* text: the name of the pipeline stands above its tests */
    rv_jw json;         /* on out */
    rv_buf body;        /* documents: what stands behind a head with counts */
    size_t n_run, n_failed, n_suite_run, n_suite_failed;
    int64_t suite_ms;
};

struct rv_test_format {
    const char *option;   /* NULL: the default */
    bool is_one_document; /* printed as a whole, at the end */
    void (*begin)(struct rv_test_output *o);
    void (*pipeline)(struct rv_test_output *o, const char *path, const struct rv_app_loaded *l, bool is_sound);
    void (*tests)(struct rv_test_output *o); /* of a sound pipeline */
    void (*test)(struct rv_test_output *o, const struct rv_pipeline *p, const struct rv_test_report *r);
    void (*coverage)(struct rv_test_output *o, const rv_coverage *c); /* NULL: it has no place for that */
    void (*tests_end)(struct rv_test_output *o, const struct rv_pipeline *p);
    void (*pipeline_end)(struct rv_test_output *o);
    void (*end)(struct rv_test_output *o);
};
extern const struct rv_test_format rv_test_as_text, rv_test_as_tap;                    /* test_lines.c */
extern const struct rv_test_format rv_test_as_json, rv_test_as_junit, rv_test_as_html; /* test_documents.c */

/** Why a test failed: a line each for what differs, what went wrong in the run, the last events and the way it took;
 *  each behind lead. */
void rv_test_write_reasons(const struct rv_test_report *r, const char *lead, rv_buf *out);
/** Slots of formats that have nothing to write there. */
void rv_test_output_none(struct rv_test_output *o);

#endif
