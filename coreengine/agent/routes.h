/* Pure rules of routing, usable alone: where a stage routes to, and the values that expressions see. */
#ifndef RV_AGENT_ROUTES_H
#define RV_AGENT_ROUTES_H

#include "coreengine/agent/effects.h"

struct rv_visit_place;

/* Why a route was taken; ANSWER: on_answer has a target for what a person chose. */
#define RV_ROUTES_BY(X)                                                                                                \
    X(RULE, "rule")                                                                                                    \
    X(FUNCTION, "function")                                                                                            \
    X(DEFAULT, "default_route") X(NO_MATCH, "no_match") X(ERROR, "error_route") X(ANSWER, "answer")
#define RV_ROUTE_CONST(n, t) RV_ROUTE_##n,
enum rv_route_by { RV_ROUTES_BY(RV_ROUTE_CONST) };
const char *rv_route_by_text(enum rv_route_by by);
struct rv_routed {
    int target;
    enum rv_route_by by;
    int rule; /* its index; -1: none */
};
/** Rule 5.8: the first rule that matches output, else default_next, else the end.
 *  @param scope values for `when`; a `when` that cannot be evaluated is RV_E_INVALID with its place */
RV_MUST_CHECK int rv_route(const struct rv_agent *agent, json_object *output, const struct rv_scope *scope,
                           struct rv_routed *out, rv_err **err);
/** The list that a stage routes to by that rule; rule -1: by default_next. */
const struct rv_branches *rv_agent_list(const struct rv_agent *agent, int rule);
/** Which branches of the list start: their conditions on the scope of the stage that routes. taken has list->n
 * elements. RV_E_INVALID, with the place of a condition that cannot be decided. */
RV_MUST_CHECK int rv_branches_choose(const struct rv_branches *list, const struct rv_scope *scope, bool *taken,
                                     rv_err **err);
/** The values that prompts (prompt true) or `when` expressions see: output may be NULL. All but made is borrowed. */
struct rv_stage_scope {
    const struct rv_pipeline *pipeline;
    const rv_envelope *env;
    json_object *output;
    bool is_prompt;
    json_object *group, *error, *item, *inputs; /* of its place; NULL: it has none. Borrowed */
    int64_t index;                              /* of item; -1: it has none */
    json_object *made;                          /* array that owns the values built on demand; NULL until the first */
};
struct rv_scope rv_stage_scope_init(struct rv_stage_scope *s, const struct rv_pipeline *p, const rv_envelope *env,
                                    json_object *output, bool is_prompt);
/** The values that a place has. */
void rv_stage_scope_set_place(struct rv_stage_scope *s, const struct rv_visit_place *place);
void rv_stage_scope_fini(struct rv_stage_scope *s);
#define RV_BUILT_MAX_VALUES 100000             /* expressions and constants of one value: it is built within one step */
#define RV_BUILT_MAX_BYTES  ((size_t)16 << 20) /* of its text: it is in memory with the visit */
/** Build a value of expressions; *out is the caller's and shares parts with the scope, so it is for reading. where: its
 *  place in messages; NULL: none. RV_E_LIMIT: it is too large; else what the expression failed with, with its place. */
RV_MUST_CHECK int rv_built_eval(const struct rv_built *b, const struct rv_scope *scope, const char *where,
                                json_object **out, rv_err **err);

#endif
