/* The forms in which `reeve test` reports: for people, for tools that read lines, and documents. */
#ifndef RV_CLI_TEST_REPORT_H
#define RV_CLI_TEST_REPORT_H

#include "coreengine/app/testing.h"
#include "coreengine/cli/cli.h"

#define RV_TEST_MAX_OUTPUT ((size_t)64 << 20)

/* The tests by models (test_matrix.c). */
struct rv_test_matrix {
    const char **models; /* owned, the names are borrowed */
    size_t n_models;     /* 0: only the pipelines' own */
    size_t at;           /* the one that is tested now */
    json_object *rows;   /* array of {file, test, results: array of {model, passed, runs, runs_passed, usd}}; owned */
};
RV_MUST_CHECK int rv_test_matrix_add(struct rv_test_matrix *m, const char *file, const struct rv_test_report *r,
                                     rv_err **err);
RV_MUST_CHECK int rv_test_matrix_write_text(const struct rv_test_matrix *m, bool color, rv_buf *out, rv_err **err);
void rv_test_matrix_write_html(const struct rv_test_matrix *m, rv_buf *b);

/* One report. The writer's `out` is printed by the caller. */
struct rv_test_output {
    rv_buf out;
    bool color;
    bool show_pipeline; /* text: the name of the pipeline stands above its tests */
    rv_jw json;         /* on out */
    rv_buf body;        /* documents: what stands behind a head with counts */
    struct rv_test_matrix matrix;
    int64_t n_judge_calls, judge_micro_usd;
    size_t n_recorded, n_played; /* cassettes */
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
/** The name of a test, with the model that is asked when there are several. */
void rv_test_write_name(const struct rv_test_output *o, const struct rv_test_report *r, rv_buf *out);
/** "8 of 10 runs passed (80.0 %, 95 % interval 49.0 to 94.3 %)". */
void rv_test_write_rate(const struct rv_test_rate *r, rv_buf *out);
/** What all judges took: "judges: 3 model calls, 0.000120 US dollars". */
void rv_test_write_judges(const struct rv_test_output *o, rv_buf *out);
/** Slots of formats that have nothing to write there. */
void rv_test_output_none(struct rv_test_output *o);

#endif
