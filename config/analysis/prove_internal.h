/* Bounds of a sequential run as a longest-walk problem; shared by prove.c and the walk*.c files only.
 *
 * A walk is the list of visited stages, from the first stage or from one that an answer leads to, up to the next pause.
 * Forward edges raise the stage index and every other edge is a loop-back, so a walk with at most L loop-backs passes
 * through (loop-backs so far, stage) in rising order: no cycle is left, and the best walk is found layer by layer.
 * Limits of edges and stages are first left out (which can only raise the bound) and then put in as counters, one set
 * after the other, as long as the best walk breaks them. */
#ifndef RV_CONFIG_PROVE_INTERNAL_H
#define RV_CONFIG_PROVE_INTERNAL_H

#include "config/analysis/analysis_internal.h"

#define RV_PROVE_MAX_EDGES    ((size_t)1 << 20)  /* pairs of stages; more come only from many routing functions */
#define RV_PROVE_MAX_STATES   ((size_t)2 << 20)  /* of one search: 12 bytes each */
#define RV_PROVE_MAX_STEPS    ((size_t)20 << 20) /* edges followed in one search: below 0.1 s */
#define RV_PROVE_MAX_COUNTERS 16                 /* of a walk; each multiplies the states */

struct rv_walk_edge {
    int from, to;
    bool is_likely;    /* some output of the stage surely takes it */
    bool skips_call;   /* a stage that calls a model may leave this way before the first call */
    bool skips_surely; /* and has something before the call that can fail */
    int64_t limit;     /* uses that are followed by a visit; 0: unlimited */
};

/* The question, made once per pipeline. */
struct rv_walk_graph {
    size_t n;                   /* stages */
    struct rv_walk_edge *edges; /* owned; by from, then to; no pair twice */
    size_t n_edges;
    size_t *start;        /* owned; edges of stage s are edges[start[s] .. start[s + 1]) */
    int64_t *calls;       /* owned; model calls of one visit at most; 0: none */
    bool *asks_again;     /* owned; tools and schemas decide whether the number is reached: a walk cannot tell */
    int64_t *visit_limit; /* owned; 0: unlimited */
    bool *entry;          /* owned; a run begins there, or goes on there after an answer */
    bool *reached;        /* owned; from the entries over these edges */
    int64_t max_hops, max_calls;
    int64_t loops; /* loop-backs that a run can follow */
    bool is_whole; /* false: too many edges, they were left out */
};
RV_MUST_CHECK int lint_walk_graph_build(const struct rv_pipeline *p, struct rv_walk_graph *out, rv_err **err);
void lint_walk_graph_fini(struct rv_walk_graph *g);

enum rv_walk_goal {
    RV_WALK_VISITS,        /* most visits, model budget respected */
    RV_WALK_MOCKED_VISITS, /* most visits when no stage calls a model */
    RV_WALK_CALLS,         /* most model calls, hops respected */
};

/* What one search looks at; everything it leaves out makes its answer larger or leaves it equal. */
struct rv_walk_search {
    enum rv_walk_goal goal;
    bool only_likely; /* only edges that some output surely takes, at their sure price */
    size_t edge_counters[RV_PROVE_MAX_COUNTERS], stage_counters[RV_PROVE_MAX_COUNTERS]; /* limits that count */
    size_t n_edge_counters, n_stage_counters;
};
struct rv_walk {
    int64_t best; /* visits or calls, within the bounds */
    int *stages;  /* owned; the walk, NULL when the search was too large (best is then 0) */
    size_t n;
    bool is_answer; /* the search was small enough */
};
/** Find the best walk. A search that would be too large gives is_answer false. RV_E_NOMEM. */
RV_MUST_CHECK int lint_walk_find(const struct rv_walk_graph *g, const struct rv_walk_search *search,
                                 struct rv_walk *out, rv_err **err);
void lint_walk_fini(struct rv_walk *walk);

enum rv_walk_verdict {
    RV_WALK_REAL,    /* a run can go this way and reach the number */
    RV_WALK_LEGAL,   /* no bound or limit forbids it; whether conditions ever let it is not known */
    RV_WALK_LIMITED, /* an edge limit or max_visits forbids it */
};
struct rv_walk_fault { /* LIMITED: what is broken first */
    bool is_edge;
    size_t at; /* index of the edge, or of the stage */
};
/** Walk it again, with everything counted. RV_E_NOMEM. */
RV_MUST_CHECK int lint_walk_check(const struct rv_walk_graph *g, enum rv_walk_goal goal, const struct rv_walk *walk,
                                  enum rv_walk_verdict *verdict, struct rv_walk_fault *fault, rv_err **err);
/** Index of the edge, or SIZE_MAX. */
size_t lint_walk_edge_at(const struct rv_walk_graph *g, int from, int to);
/** An upper bound without a search: the longest way forward, once for each loop-back and once more. */
RV_MUST_CHECK int lint_walk_closed_bound(const struct rv_walk_graph *g, enum rv_walk_goal goal, int64_t *out,
                                         rv_err **err);

/** a * b and a + b for non-negative numbers, INT64_MAX when that is too large. */
int64_t lint_sat_mul(int64_t a, int64_t b);
int64_t lint_sat_add(int64_t a, int64_t b);

/** An arbiter may take no part in a visit, and gives its model call back; surely: it never takes part. */
bool lint_agent_may_sit_out(const struct rv_pipeline *p, const struct rv_agent *a, bool surely);
/** Can the verdict of an output contradict its outcome, so that the work of the visit is done once more? */
bool lint_agent_may_contradict(const struct rv_pipeline *p, const struct rv_agent *a);
/** Does a visit go on with a further call after a reply: to call tools, or to have the output repaired? */
bool lint_agent_may_ask_again(const struct rv_agent *a);
/** Model calls of one visit at most: each reply that is needed, and its retries, which are max_retries but never more
 * than execution.max_llm_retries; one more where an output may contradict itself; with those of agents that it asks. */
int64_t lint_agent_most_calls(const struct rv_pipeline *p, const struct rv_agent *a);

#endif
