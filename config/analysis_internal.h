/* Analysis of a validated pipeline: dependents, the routes between stages, shared by proofs, warnings and graphs.
 *
 * Loading owns `struct rv_pipeline_private`. It keeps a `struct rv_links links` for us, calls rv_pipeline_link() once
 * requires_index and after_index are filled in, and rv_links_fini() when the pipeline dies. */
#ifndef RV_CONFIG_ANALYSIS_INTERNAL_H
#define RV_CONFIG_ANALYSIS_INTERNAL_H

#include "config/config.h"

/* The stages that wait for each stage: dependents of stage s are items[start[s] .. start[s + 1]), in stage order, no
 * stage twice. */
struct rv_links {
    int *items;    /* owned */
    size_t *start; /* owned; n_agents + 1 entries, NULL until linked */
};
/** Fill in p->private->links. Indices that are out of range (unknown names) are left out. RV_E_NOMEM. */
RV_MUST_CHECK int rv_pipeline_link(struct rv_pipeline *p, rv_err **err);
/** The work of rv_pipeline_link() for a pipeline that is not loaded. */
RV_MUST_CHECK int rv_links_build(const struct rv_pipeline *p, struct rv_links *out, rv_err **err);
void rv_links_fini(struct rv_links *links); /* fine on a zeroed one */

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
    int from, to; /* `to` is a stage, RV_TARGET_END, _CLARIFICATION or _CONFIRMATION; any stage for _FUNCTION: _NONE */
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
RV_MUST_CHECK int rv_routes_build(const struct rv_pipeline *p, struct rv_routes *out, rv_err **err);
void rv_routes_fini(struct rv_routes *routes);
/** Look for outputs that take the rules and the default of a stage; routes[0..n_rules] are those, in this order. Marks
 *  what it finds as is_likely. RV_E_NOMEM. */
RV_MUST_CHECK int rv_witness_routes(const struct rv_agent *a, struct rv_route *routes, rv_err **err);
/** Can a route of the stage lead to that question (RV_TARGET_CLARIFICATION or _CONFIRMATION)? Not counting error_next.
 */
bool rv_routes_ask(const struct rv_routes *routes, int stage, int target);
/** True if this stage's visit may call a model: has_llm and not mocked. */
bool rv_agent_calls_model(const struct rv_agent *a);

#endif
