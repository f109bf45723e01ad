/* Bounds of runs with groups, lists of values, inner pipelines and questions; shared by prove.c and the group_*.c
 * files.
 *
 * A branch walks through the stages of its region until it arrives at the join, ends, fails or is stopped, and it takes
 * from the same allowances as its siblings: loop-backs, model calls, uses of limited edges, visits of limited stages.
 * For each stage and each vector of allowances the tables hold four numbers, the weight of the heaviest walk from there
 * with each of these outcomes. Forward edges raise the stage index and all others take a loop-back, so the numbers of a
 * region are found in one pass, from few loop-backs to many and from the last stage to the first; regions of inner
 * groups come before the stages that open them. A list folds the tables of its branches together: what one branch
 * takes is not there for the next one. */
#ifndef RV_CONFIG_GROUP_INTERNAL_H
#define RV_CONFIG_GROUP_INTERNAL_H

#include "config/analysis/prove_internal.h"

#define RV_GROUP_MAX_VECTORS 4096 /* allowance vectors: pairs of them are compared; more: a dimension is left out */
#define RV_GROUP_MAX_CELLS   ((int64_t)1 << 19) /* stages and lists, times vectors: 32 bytes each */
#define RV_GROUP_MAX_STEPS   ((int64_t)1 << 22) /* pairs of vectors and edges in one search: well under a second */
#define RV_GROUP_NO_DIM      (-1)               /* the edge has no limit that is counted */

/* --- The graph: group_graph.c --- */
#define RV_GROUP_SETTLED_ROWS 5
enum rv_group_arc_kind { RV_ARC_STAGE, RV_ARC_ARRIVE, RV_ARC_END, RV_ARC_LIST };
struct rv_group_arc {
    enum rv_group_arc_kind kind;
    int to;            /* STAGE: a stage; ARRIVE: the join; LIST: index of the list */
    int limit;         /* index of the edge limit that counts it, or -1 */
    bool is_loop;      /* STAGE: it takes a loop-back */
    bool is_error;     /* by error_next */
    bool is_likely;    /* some output, or a failure, surely takes it */
    bool skips_call;   /* a stage that calls a model may leave this way before the first call */
    bool skips_surely; /* and has something before the call that can fail or answer */
};
struct rv_group_branch {
    int to, limit;
    bool has_when, is_active; /* is_active: the output that surely takes the list makes it true */
};
struct rv_group_list {
    int from, join;  /* join -1: the branches end, or fail */
    size_t first, n; /* its branches */
};
struct rv_group_graph {
    const struct rv_pipeline *p; /* borrowed */
    size_t n;
    struct rv_group_arc *arcs;       /* owned; of stage s: arcs[start[s] .. start[s + 1]) */
    size_t *start, n_arcs, cap_arcs; /* owned */
    struct rv_group_list *lists;     /* owned */
    size_t n_lists;
    struct rv_group_branch *branches; /* owned */
    size_t n_branches;
    int *context; /* owned; the stage whose group is open there; MAIN, or UNREACHED */
    int *depth;   /* owned; groups open there */
    int *join_of; /* owned; of the groups that the stage opens; -1: none */
    int *order;   /* owned; reached stages: inner regions first, in a region the last stage first */
    size_t n_order;
    bool *entry; /* owned; a run begins or goes on there */
    int64_t loops, hops, calls;
    bool is_whole; /* false: nothing but the pipeline's own bounds holds */
};
#define RV_CONTEXT_MAIN      (-1) /* outside of every branch */
#define RV_CONTEXT_UNREACHED (-2) /* no route leads to the stage */
RV_MUST_CHECK int lint_group_graph_build(const struct rv_pipeline *p, struct rv_group_graph *out, rv_err **err);
void lint_group_graph_fini(struct rv_group_graph *g);

/* --- Vectors of allowances and tables over them --- */
struct rv_group_dim {
    int64_t size, stride; /* allowance + 1 */
};
struct rv_group_space {
    struct rv_group_dim dims[16]; /* loop-backs first, with the largest stride */
    int n_dims;
    int64_t n;     /* vectors */
    int64_t pairs; /* of vectors whose sum is a vector */
};
/** Lay the dimensions out. */
void lint_group_space_set(struct rv_group_space *s);
static inline int64_t lint_group_left(const struct rv_group_space *s, int dim, int64_t at)
{
    return at / s->dims[dim].stride % s->dims[dim].size;
}
/** Take one of a dimension; false: none is left. */
static inline bool lint_group_take(const struct rv_group_space *s, int dim, int64_t *at)
{
    if (dim == RV_GROUP_NO_DIM)
        return true;
    if (lint_group_left(s, dim, *at) == 0)
        return false;
    *at -= s->dims[dim].stride;
    return true;
}
static inline void lint_group_max(int64_t *to, int64_t value)
{
    if (value > *to)
        *to = value;
}

enum rv_group_outcome { RV_GROUP_ARRIVES, RV_GROUP_ENDS, RV_GROUP_FAILS, RV_GROUP_STOPS, RV_N_GROUP_OUTCOMES };
/* The tables of a list over all vectors, borrowed from the search. */
struct rv_group_settled {
    int64_t *ok;      /* the join is visited; without one: the branch that waits ends */
    int64_t *bad;     /* the join is not satisfied; without one: the branch that waits fails */
    int64_t *stop;    /* the run, or the branch that waits, is stopped inside */
    int64_t *open;    /* all first visits, taken together */
    int64_t *opening; /* as many of them as begin before a bound ends the run */
};
/* The branches of a list, one table for each outcome and one number of the first visit. */
struct rv_group_fold; /* group_fold.c */
/* The tables are borrowed for the call. */
struct rv_group_branch_tables {
    const int64_t *of[RV_N_GROUP_OUTCOMES];
    const int64_t *first; /* its first visit alone */
    bool may_be_left_out; /* its `when` */
};
/** Room for one list after the other. NULL: no memory. */
struct rv_group_fold *lint_group_fold_new(const struct rv_group_space *s, size_t max_branches);
void lint_group_fold_free(struct rv_group_fold *f);
void lint_group_fold_begin(struct rv_group_fold *f, const struct rv_agent_join *join, size_t n_branches);
void lint_group_fold_add(struct rv_group_fold *f, const struct rv_group_branch_tables *b);
void lint_group_fold_end(struct rv_group_fold *f, struct rv_group_settled *out);
/** Convolutions that a list takes. */
int64_t lint_group_fold_cost(const struct rv_agent_join *join, size_t n_branches);

/* --- The search: group_search.c --- */
enum rv_group_goal {
    RV_GROUP_VISITS,
    RV_GROUP_MOCKED_VISITS, /* no stage calls a model */
    RV_GROUP_CALLS,         /* model calls, as many as each visit can make */
    RV_GROUP_LEAST_CALLS,   /* the same, one for each visit: is there a walk that max_llm_calls cuts? */
    RV_GROUP_QUESTIONS,
};
/* What it points to is borrowed for the search. */
struct rv_group_search {
    const struct rv_group_graph *g;
    const int64_t *weights;       /* of a visit to each stage */
    const int64_t *first_weights; /* of one that a bound ends in the step that begins it */
    bool only_sure;               /* only routes that some output surely takes, at their sure price */
    bool counts_visits;           /* the weights are visits */
    bool counts_calls;            /* a visit with a model takes a model call */
};
struct rv_group_answer {
    int64_t best;    /* INT64_MAX: the search was left out */
    bool is_limited; /* a dimension was left out: best is only an upper bound */
};
RV_MUST_CHECK int lint_group_search(const struct rv_group_search *search, struct rv_group_answer *out, rv_err **err);

/* --- The numbers: group_prove.c --- */
static inline bool lint_agent_has_inner(const struct rv_agent *a)
{
    return a->inner.file && a->inner.file[0];
}
/** Tells whether the pipeline has what only this search knows. */
bool lint_needs_group_proof(const struct rv_pipeline *p);
/** depth: inner pipelines around this one. RV_E_NOMEM. */
RV_MUST_CHECK int lint_prove_groups(const struct rv_pipeline *p, int depth, struct rv_proof *out, rv_err **err);
/** The same for a parallel run: each stage is visited once at most. */
RV_MUST_CHECK int lint_prove_once_each(const struct rv_pipeline *p, int depth, struct rv_proof *out, rv_err **err);
/** rv_pipeline_prove() at some depth. */
RV_MUST_CHECK int lint_prove_at(const struct rv_pipeline *p, enum rv_run_mode mode, int depth, struct rv_proof *out,
                                rv_err **err);

#endif
