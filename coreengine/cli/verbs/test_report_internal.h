/* The forms in which `reeve test` reports: for people, for tools that read lines, and documents. */
#ifndef RV_CLI_VERBS_TEST_REPORT_INTERNAL_H
#define RV_CLI_VERBS_TEST_REPORT_INTERNAL_H

#include "coreengine/app/app.h"
#include "coreengine/cli/cli.h"

#define RV_TEST_MAX_OUTPUT ((size_t)64 << 20) /* bytes of a report: RV_MAX_TEST_CONFIGS tests of some KiB */

/* A table of results (test_matrix.c): of all tests by the models of --model, or of one test that has a matrix, by the
 * values of its first axis. */
struct rv_test_matrix {
    const char **columns; /* owned; borrowed of the tests by models, else owned texts */
    size_t n_columns;     /* 0: nothing to show as a table */
    size_t at;            /* tests by models: the one that is tested now */
    json_object
        *rows; /* array of {file, test, results: array of {COLUMN_KEY, passed, runs, runs_passed, usd}}; owned */
    const char *column_key; /* of cells: "model", or "column"; static */
    const char *corner;     /* what the column of rows is headed by; static */
    json_object *about;     /* of a matrix: {file, test, axes}; owned */
    size_t written;         /* of a matrix: number of its test in the file */
};
/* All of them. Zeroed but for the columns of models. */
struct rv_test_tables {
    struct rv_test_matrix models;    /* without columns: of the pipelines' own */
    struct rv_test_matrix *of_tests; /* of each test that has a matrix, without --model; owned */
    size_t n, cap;
};
/** Add a result to the table that it belongs to, if it belongs to one. */
RV_MUST_CHECK int cli_test_tables_add(struct rv_test_tables *t, const char *file, const struct rv_test_report *r,
                                      rv_err **err);
RV_MUST_CHECK int cli_test_tables_write_text(const struct rv_test_tables *t, bool color, rv_buf *out, rv_err **err);
void cli_test_tables_write_html(const struct rv_test_tables *t, rv_buf *b);

/* One report. The writer's `out` is printed by the caller. */
struct rv_test_output {
    rv_buf out;
    bool color;
    bool show_pipeline; /* text: the name of the pipeline stands above its tests */
    rv_jw json;         /* on out */
    rv_buf body;        /* documents: what stands behind a head with counts */
    struct rv_test_tables tables;
    int64_t n_judge_calls, judge_micro_usd;
    size_t n_recorded, n_played; /* cassettes */
    size_t n_run, n_failed, n_suite_run, n_suite_failed;
    size_t n_not_begun;             /* of those that failed */
    size_t n_unloaded, n_unreached; /* pipelines that did not load; their tests, which are not among n_run */
    rv_buf cause;                   /* lines: why the last test that failed could not be run as it should be */
    const char *cause_of;           /* name of the first test of this pipeline with that cause; borrowed */
    int64_t suite_ms;
};

/* What it points to is static. */
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
extern const struct rv_test_format cli_test_as_text, cli_test_as_tap;                     /* test_lines.c */
extern const struct rv_test_format cli_test_as_json, cli_test_as_junit, cli_test_as_html; /* test_documents.c */

/** Whether its run began. */
bool cli_test_began(const struct rv_test_report *r);
/** Why a test failed: a line each for what differs, what went wrong in the run, the last events and the way it took;
 *  each behind lead. */
void cli_test_write_reasons(const struct rv_test_report *r, const char *lead, rv_buf *out);
/** The name of a test, with the model that is asked when there are several. */
void cli_test_write_name(const struct rv_test_output *o, const struct rv_test_report *r, rv_buf *out);
/** "8 of 10 runs passed (80.0 %, 95 % interval 49.0 to 94.3 %)". */
void cli_test_write_rate(const struct rv_test_rate *r, rv_buf *out);
/** What all judges took: "judges: 3 model calls, 0.000120 US dollars". */
void cli_test_write_judges(const struct rv_test_output *o, rv_buf *out);
/** Slots of formats that have nothing to write there. */
void cli_test_output_none(struct rv_test_output *o);

#endif
