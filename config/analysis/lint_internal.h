/* Shared by lint_reach.c, lint_least.c and lint_order.c only: the ways between the stages of a sequential run. */
#ifndef RV_LINT_INTERNAL_H
#define RV_LINT_INTERNAL_H

#include "config/analysis/analysis_internal.h"

struct lint_arc {
    int from, to;                   /* `to` is n_agents for the end */
    bool is_error;                  /* by error_next */
    bool is_branch;                 /* to a branch: one of several that begin at once */
    bool is_whole;                  /* a group without a join, as one way to the end */
    const struct rv_branches *list; /* borrowed; of a group that leads on to its join or the end; NULL: none */
};
struct lint_arcs {
    const struct rv_pipeline *p; /* borrowed */
    struct lint_arc *items;      /* owned */
    size_t n;
    bool goes_anywhere; /* a routing function may lead to every stage and to the end */
};
/** The least of both that a run from the first stage to the end costs; -1: none ends. RV_E_NOMEM. */
RV_MUST_CHECK int lint_least(const struct lint_arcs *arcs, int64_t *visits, int64_t *calls, rv_err **err);
/** Stages that need outputs which are never made before them. hops: of each stage, from the entries, which have 0;
 *  below 0: it is never reached. RV_E_NOMEM. */
RV_MUST_CHECK int lint_order(const struct lint_arcs *arcs, const int64_t *hops, rv_findings *findings, rv_err **err);

#endif
