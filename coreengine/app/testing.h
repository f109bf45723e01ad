/* Tests of a pipeline: one run in simulated time each, compared with what it expects, and what the runs touched; and a
 * script from a real run, which plays it again. */
#ifndef RV_APP_TESTING_H
#define RV_APP_TESTING_H

#include "coreengine/app/workspace.h"

#define RV_TEST_START_US                                                                                               \
    1767225600000000 /* 2026-01-01: every test begins then, so its output is the same every time                       \
                      */
#define RV_TEST_SEED 1

/* How tests are run. Zeroed: offline, by their scripts and in simulated time. */
enum rv_cassette_use {
    RV_CASSETTES_NEW,  /* those that are there are played, the others are recorded */
    RV_CASSETTES_ALL,  /* all are recorded, also those that are there */
    RV_CASSETTES_NONE, /* none is recorded: a test without one fails */
    RV_N_CASSETTE_USES
};
typedef struct rv_coverage rv_coverage;
struct rv_test_opts {
    bool is_live; /* models are asked, and their answers kept as cassettes; the rest of the scripts is played */
    const char *cassettes; /* folder; NULL: `cassettes` beside the pipeline; borrowed */
    enum rv_cassette_use use;
    const char *variant;  /* model for all roles, with cassettes of its own; borrowed; NULL: the pipeline's */
    int64_t repeat;       /* runs of each test; 0: 1 */
    double min_pass_rate; /* of tests that do not say it themselves, once has_min_pass_rate */
    bool has_min_pass_rate;
    rv_coverage *coverage; /* gets the routes that are taken; borrowed; NULL: none */
};
/* The runs of a test. */
struct rv_test_rate {
    int64_t n, n_passed;
    double min; /* the part that must pass */
};
bool rv_test_rate_holds(const struct rv_test_rate *r);
/** Between which bounds the rate lies with a probability of 95 %, from 0 to 1. */
void rv_test_rate_estimate_bounds(const struct rv_test_rate *r, double *low, double *high);

/* The result of one test. Its trees are owned. */
struct rv_test_report {
    const struct rv_test_config *test; /* borrowed */
    json_object *failures;             /* array of {path, expected?, found?} or {path, message} */
    json_object *visited;              /* array of stage names, in order */
    json_object *calls;                /* array of {tool, stage, arguments, status, result?, error?}: tool calls, in the
                                          order in which they begin */
    json_object *events;               /* array of short texts: the last events, of a test that failed */
    json_object *questions;            /* array: of every interrupt, in the order raised */
    json_object *errors;               /* array of {stage, type, text, file, line}: what failed, in order */
    const char *code;                  /* the terminal reason of a run that did not complete; static; NULL: none */
    const char *ended_by;              /* what ended it, where no stage's failure says so; borrowed from state */
    json_object *state;                /* state dict at the end; NULL if there was no end */
    char *cassette;                    /* path of the one that was played or recorded; owned; NULL: none */
    bool was_recorded;                 /* the cassette is new, and models were asked; else it was played */
    struct rv_test_rate rate;          /* of all runs; the rest is of the first run that failed, else of the last */
    int64_t cost_micro_usd;            /* of all runs */
    json_object *judge;                /* {votes, model, passed, llm_calls, tokens, usd}; NULL: it has none */
    int64_t n_judge_calls;             /* of all runs, as the next one; neither is part of the run's own */
    int64_t judge_micro_usd;
    size_t n_recorded, n_played; /* cassettes of its runs */
    enum rv_run_status status;
    int64_t duration_ms; /* simulated; real while a cassette is recorded */
};
bool rv_test_has_passed(const struct rv_test_report *r);
void rv_test_report_fini(struct rv_test_report *r);

/* coverage.c: stages and routes, and which of them any test took */
rv_coverage *rv_coverage_new(const struct rv_pipeline *p); /* NULL: out of memory */
void rv_coverage_free(rv_coverage *c);
void rv_coverage_note_event(rv_coverage *c, const struct rv_effect *e, rv_str line);
/** Fails if an event could not be read for want of memory. */
RV_MUST_CHECK int rv_coverage_check(const rv_coverage *c, rv_err **err);
struct rv_coverage_counts {
    size_t n_stages, n_stages_hit, n_routes, n_routes_hit;
    double percent; /* of stages and routes together; 100 when there are none */
};
struct rv_coverage_counts rv_coverage_counts(const rv_coverage *c);
void rv_coverage_write_text(const rv_coverage *c, rv_buf *b);
void rv_coverage_write_json(const rv_coverage *c, rv_jw *w);

/* changes.c: which tests passed with what they read as it is now */
struct rv_test_changes;
/** variant: the model that is asked for all roles; NULL: the pipeline's. Free *out. */
RV_MUST_CHECK int rv_test_changes_open(const struct rv_app *app, const struct rv_app_loaded *l, const char *variant,
                                       struct rv_test_changes **out, rv_err **err);
/* What was chosen, and why. */
struct rv_test_choice {
    size_t n, n_new, n_changed; /* tests that were asked about; of these had not passed, read something that changed */
    unsigned parts;             /* what changed, a bit each */
};
/** Tells whether test i has to run, and adds it to sum. */
bool rv_test_changes_choose(const struct rv_test_changes *c, size_t i, struct rv_test_choice *sum);
void rv_test_changes_note(struct rv_test_changes *c, size_t i, bool passed);
/** Append the choice in a line without its end. */
void rv_test_choice_write_text(const struct rv_test_choice *sum, rv_buf *b);
/** Keep which tests passed, for the next time. */
RV_MUST_CHECK int rv_test_changes_keep(const struct rv_test_changes *c, rv_err **err);
void rv_test_changes_free(struct rv_test_changes *c); /* NULL is fine */

/* run.c */
/** Run test i of the pipeline, as often as `how` says. What fails about the test is in the report; an error is a want
 * of memory. coverage may be NULL. */
RV_MUST_CHECK int rv_test_run(const struct rv_app *app, struct rv_app_loaded *l, size_t i,
                              const struct rv_test_opts *opts, struct rv_test_report *out, rv_err **err);

/* --- A script from a real run: it plays the run again, without models, tools and people --- */
typedef struct rv_recorder rv_recorder;
rv_recorder *rv_recorder_new(void);
/** Values that the pipeline has under names of secrets are not recorded, even if an answer repeats them. */
void rv_recorder_hide(rv_recorder *r, const struct rv_pipeline *p);
/** The tools that the run knows are declared in the script: it plays without their capabilities. */
void rv_recorder_note_tools(rv_recorder *r, const struct rv_pipeline *p, const struct rv_catalog *c);
/** A piece of a reply; text and thinking are recorded with their time. now_us: rv_engine_now_us(). */
void rv_recorder_note_delta(rv_recorder *r, int stage, int64_t call_id, const struct rv_llm_delta *d, int64_t now_us);
void rv_recorder_note_event(rv_recorder *r, const struct rv_effect *e, rv_str line);
void rv_recorder_note_input(rv_recorder *r, const struct rv_event *ev);
/** Before e is performed: replies of models get the matcher `request`, and answer nothing else. */
void rv_recorder_note_request(rv_recorder *r, const struct rv_pipeline *p, const struct rv_effect *e);
/** Another run follows, whose calls have the same ids. */
void rv_recorder_end_run(rv_recorder *r);
/** note: the first line of the script, a comment. */
RV_MUST_CHECK int rv_recorder_write(rv_recorder *r, const char *note, const char *path, rv_err **err);
void rv_recorder_free(rv_recorder *r);

/** Can a file be written there? Asked before a run that writes it at its end. makes_folders: those that are missing
 * will be made. RV_E_NOT_FOUND (no folder), RV_E_INVALID (it is a folder, or below a file), RV_E_DENIED, RV_E_IO. */
RV_MUST_CHECK int rv_app_check_target(const char *path, bool makes_folders, rv_err **err);

#endif
