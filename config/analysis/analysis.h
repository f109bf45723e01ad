/* Analysis of a validated pipeline, before it runs: bounds that are proved, warnings, drawings. Needs no more than the
 * pipeline; nothing that loads or runs one needs it. */
#ifndef RV_ANALYSIS_H
#define RV_ANALYSIS_H

#include "config/config.h"

/* --- Proofs (lint) --- */
/* Bounds of one run without a pause. A resumed run goes on with the same counters but visits the paused stage again:
 * over all its parts only max_agent_hops and max_llm_calls hold. With groups, lists of values, inner pipelines or
 * questions of stages (spans_answers) a pause does not end what is bounded: each answer adds at most one visit. */
struct rv_proof {
    int64_t max_visits;               /* no run visits more stages than this */
    int64_t max_llm_calls;            /* no run makes more model calls than this, with retries, rounds and repairs */
    int64_t max_mocked_visits;        /* max_visits if mocks or scripts may stand in for stages that call models */
    int64_t max_questions;            /* no run puts more questions of stages with `ask` */
    bool visits_exact, llm_exact;     /* a run can reach the number; else it is only an upper bound */
    bool spans_answers;               /* a run goes on in it after an answer; only repeated visits come on top */
    int *visits_path, *llm_path;      /* owned; stage indices; NULL: several branches have no single path */
    size_t n_visits_path, n_llm_path; /* paths are cut after RV_PROOF_MAX_PATH stages */
};
#define RV_PROOF_MAX_PATH 64 /* stages of an example that a proof shows: readers do not follow longer paths */
/** Bounds of a run in that mode, from the configuration alone. RV_E_NOMEM. */
RV_MUST_CHECK int rv_pipeline_prove(const struct rv_pipeline *p, enum rv_run_mode mode, struct rv_proof *out,
                                    rv_err **err);
/** The most answers of people that a run can take; 0: it cannot pause. */
int64_t rv_pipeline_max_answers(const struct rv_pipeline *p);
/* A run with all its parts: one up to the first pause, and one after each answer. */
struct rv_whole_run {
    int64_t max_visits, max_llm_calls;
};
struct rv_whole_run rv_proof_with_answers(const struct rv_pipeline *p, const struct rv_proof *part, int64_t answers);
void rv_proof_fini(struct rv_proof *proof);
/** Warnings beyond validation: stages that no route reaches, stages that cannot reach the end, rules that an earlier
 *  identical one hides, unused prompts and models, ... */
void rv_pipeline_lint(const struct rv_pipeline *p, rv_findings *findings);
/** Warnings about what only a script makes run: stages whose role has no model, since the file has no models. */
void rv_pipeline_lint_unscripted(const struct rv_pipeline *p, rv_findings *findings);

/* --- Drawings --- */
enum rv_graph_format {
    RV_GRAPH_ASCII,
    RV_GRAPH_MERMAID,
    RV_GRAPH_DOT,
    RV_GRAPH_SVG,
    RV_GRAPH_JSON,
    RV_N_GRAPH_FORMATS
};
void rv_pipeline_write_graph(const struct rv_pipeline *p, enum rv_graph_format format, rv_buf *b);

#endif
