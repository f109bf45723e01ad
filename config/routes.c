/* The routes between stages, as the configuration alone tells them: every rule, the default, the error route and
 * routing functions, each with the reason if it can never be followed. Proofs, warnings and graphs all start here. */
#include <stdlib.h>
#include <string.h>

#include "config/analysis_internal.h"

bool rv_agent_calls_model(const struct rv_agent *a)
{
    return a->has_llm && !(a->hooks.mock && a->hooks.mock_handler[0]);
}

static bool always_matches(const struct rv_rule *rule)
{
    return rule->when && rv_str_is(rv_str_trim(rv_str_of(rv_expr_text(rule->when))), "true");
}

static bool same_test(const struct rv_rule *a, const struct rv_rule *b)
{
    if (a->when || b->when)
        return a->when && b->when && strcmp(rv_expr_text(a->when), rv_expr_text(b->when)) == 0;
    return a->condition && b->condition && strcmp(a->condition, b->condition) == 0 && rv_json_equal(a->value, b->value);
}

/* The key `outcome` means something to the engine (rule 5.9): with these values the stage fails, asks or stops before
 * its routing is looked at, and with a text that is not an outcome it fails as well. */
static bool tests_stopping_outcome(const struct rv_rule *rule)
{
    enum rv_outcome outcome = RV_OUTCOME_SUCCESS;
    rv_str text;

    if (!rule->condition || strcmp(rule->condition, "outcome") != 0 ||
        !json_object_is_type(rule->value, json_type_string))
        return false;
    text = (rv_str){json_object_get_string(rule->value), (size_t)json_object_get_string_len(rule->value)};
    return rv_outcome_of(text, &outcome, NULL) < 0 || rv_outcome_is_terminal(outcome);
}

/* How the rules before one bear on it. */
struct earlier {
    bool any_when; /* one looks at more than the stage's output, so it may always match */
    int always;    /* index of a rule that always matches, or -1 */
};

static void judge_rule(const struct rv_agent *a, size_t i, const struct earlier *before, struct rv_route *route)
{
    const struct rv_rule *rule = &a->routing.rules[i];

    route->is_likely = !before->any_when && !rule->when;
    if (before->always >= 0) {
        route->fate = RV_WAY_CUT_OFF;
        route->because = before->always;
        return;
    }
    for (size_t j = 0; j < i; j++) {
        if (same_test(&a->routing.rules[j], rule)) {
            route->fate = RV_WAY_REPEATED;
            route->because = (int)j;
            return;
        }
    }
    if (tests_stopping_outcome(rule))
        route->fate = RV_WAY_OUTCOME;
    if (always_matches(rule))
        route->is_likely = !before->any_when;
}

/* A yes needs no second visit, unless the pipeline says where it leads. */
static void add_approved(const struct rv_pipeline *p, const struct rv_agent *a, int from, struct rv_routes *routes)
{
    bool asks = false;

    if (p->confirmation_resume_stage[0])
        return;
    for (size_t i = routes->start[from]; i < routes->n; i++) {
        const struct rv_route *r = &routes->items[i];

        asks |= r->kind != RV_WAY_ERROR && r->to == RV_TARGET_CONFIRMATION && r->fate == RV_WAY_LIVE;
    }
    if (asks)
        routes->items[routes->n++] = (struct rv_route){
            .from = from, .to = rv_agent_approved_target(a), .kind = RV_WAY_APPROVED, .rule = -1, .because = -1};
}

bool rv_routes_ask(const struct rv_routes *routes, int stage, int target)
{
    for (size_t i = routes->start[stage]; i < routes->start[stage + 1]; i++) {
        const struct rv_route *r = &routes->items[i];

        if (r->kind != RV_WAY_ERROR && r->fate == RV_WAY_LIVE && r->to == target)
            return true;
    }
    return false;
}

static void add_agent(const struct rv_agent *a, int from, struct rv_routes *routes)
{
    const struct rv_route blank = {.from = from, .rule = -1, .because = -1, .is_likely = true};
    struct earlier before = {a->routing.function[0] != '\0', -1};
    struct rv_route route;

    for (size_t i = 0; i < a->routing.n_rules; i++) {
        route = blank;
        route.kind = RV_WAY_RULE;
        route.to = a->routing.rules[i].target;
        route.rule = (int)i;
        judge_rule(a, i, &before, &route);
        if (before.always < 0 && always_matches(&a->routing.rules[i]))
            before.always = (int)i;
        else if (a->routing.rules[i].when)
            before.any_when = true;
        routes->items[routes->n++] = route;
    }
    route = blank;
    route.kind = RV_WAY_DEFAULT;
    route.to = a->routing.default_target == RV_TARGET_NONE ? RV_TARGET_END : a->routing.default_target;
    route.is_likely = !before.any_when;
    if (before.always >= 0) {
        route.fate = RV_WAY_CUT_OFF;
        route.because = before.always;
    }
    routes->items[routes->n++] = route;
    if (a->routing.error_target != RV_TARGET_NONE) {
        route = blank;
        route.kind = RV_WAY_ERROR;
        route.to = a->routing.error_target;
        routes->items[routes->n++] = route;
    }
    if (a->routing.function[0]) {
        route = blank;
        route.kind = RV_WAY_FUNCTION;
        route.to = RV_TARGET_NONE;
        route.is_likely = false;
        routes->items[routes->n++] = route;
    }
}

int rv_routes_build(const struct rv_pipeline *p, struct rv_routes *out, rv_err **err)
{
    struct rv_routes routes = {NULL, 0, NULL};
    size_t max = 0;

    for (size_t s = 0; s < p->n_agents; s++)
        max += p->agents[s].routing.n_rules + 4; /* default, error, function, approved */
    routes.items = calloc(max + 1, sizeof(*routes.items));
    routes.start = calloc(p->n_agents + 1, sizeof(*routes.start));
    if (!routes.items || !routes.start) {
        rv_routes_fini(&routes);
        return RV_FAIL(err, RV_E_NOMEM, "list the routes between stages");
    }
    for (size_t s = 0; s < p->n_agents; s++) {
        routes.start[s] = routes.n;
        add_agent(&p->agents[s], (int)s, &routes);
        add_approved(p, &p->agents[s], (int)s, &routes);
    }
    routes.start[p->n_agents] = routes.n;
    *out = routes;
    return 0;
}

void rv_routes_fini(struct rv_routes *routes)
{
    free(routes->items);
    free(routes->start);
    *routes = (struct rv_routes){NULL, 0, NULL};
}
