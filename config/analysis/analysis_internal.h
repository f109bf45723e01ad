/* Shared by the files of analysis only: the routes between stages, for proofs, warnings and drawings. */
#ifndef RV_ANALYSIS_INTERNAL_H
#define RV_ANALYSIS_INTERNAL_H

#include "config/analysis/analysis.h"

/* --- Routes: one entry for each way a visit can lead on --- */
enum rv_route_kind {
    RV_WAY_RULE,
    RV_WAY_DEFAULT,
    RV_WAY_ERROR,
    RV_WAY_FUNCTION,
    RV_WAY_APPROVED, /* taken when a person answers yes to the confirmation that another route led to */
};
/* Why a route is never followed. */
enum rv_route_fate {
    RV_WAY_LIVE,
    RV_WAY_REPEATED, /* an earlier rule of the stage has the same test */
    RV_WAY_CUT_OFF,  /* an earlier rule always matches */
    RV_WAY_OUTCOME,  /* tests for an outcome that stops the stage before routing counts */
};
struct rv_route {
    int from, to; /* `to` is a stage, RV_TARGET_END, _CLARIFICATION or _CONFIRMATION; any stage for _FUNCTION: _NONE;
                     RV_TARGET_LIST: see lint_route_branches() */
    enum rv_route_kind kind;
    enum rv_route_fate fate;
    int rule;       /* RULE: its index in the stage; else -1 */
    int because;    /* REPEATED, CUT_OFF: index of the earlier rule; else -1 */
    bool is_likely; /* nothing but the stage's own output decides: some output surely takes it */
};
struct rv_routes {
    struct rv_route *items; /* owned; by stage, and within one: rules, default, error, function, approved */
    size_t n;
    size_t *start; /* owned; routes of stage s are items[start[s] .. start[s + 1]) */
};
RV_MUST_CHECK int lint_routes_build(const struct rv_pipeline *p, struct rv_routes *out, rv_err **err);
void lint_routes_fini(struct rv_routes *routes);
/** Look for outputs that take the rules and the default of a stage; routes[0..n_rules] are those, in this order. Marks
 *  what it finds as is_likely. RV_E_NOMEM. */
RV_MUST_CHECK int lint_witness_routes(const struct rv_agent *a, struct rv_route *routes, rv_err **err);
/** Look for an output that takes the route to the list and begins as many of its branches as any: active[0..list->n)
 *  tells which. routes are those of the stage, after lint_witness_routes().
 *  @return 1: there is one; 0: none; RV_E_NOMEM */
RV_MUST_CHECK int lint_witness_branches(const struct rv_agent *a, const struct rv_route *routes,
                                        const struct rv_route *route, const struct rv_branches *list, bool *active,
                                        rv_err **err);
/** The most ways that lead on from the stages of the pipeline, with those of lists and answers one by one. */
size_t lint_routes_most_ways(const struct rv_pipeline *p, const struct rv_routes *routes);
/** The branches that a route with the target LIST begins; n is 0 for others. */
const struct rv_branches *lint_route_branches(const struct rv_pipeline *p, const struct rv_route *route);
/** True if this stage's visit may call a model: has_llm and not mocked. */
bool lint_agent_calls_model(const struct rv_agent *a);
/** Can the member of what the stage's own work makes, which mocks and hooks may replace, be one of these words? n 0:
 *  anything. */
bool lint_output_may_say(const struct rv_agent *a, const char *member, const char *const *words, size_t n);

/* --- Warnings: lint*.c --- */
/** Stages that no run reaches, stages that never lead to the end, and bounds that end every run before it.
 *  Sequential runs only. RV_E_NOMEM. */
RV_MUST_CHECK int lint_reachable(const struct rv_pipeline *p, const struct rv_routes *routes, rv_findings *findings,
                                 rv_err **err);
/** Bounds that no complete run keeps have no place of their own in the file. */
struct rv_src lint_bounds_src(const struct rv_pipeline *p);
struct rv_src lint_stage_src(const struct rv_agent *a);

#endif
