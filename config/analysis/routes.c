/* The routes between stages, as the configuration alone tells them: every rule, the default, the error route and
 * routing functions, each with the reason if it can never be followed. Proofs, warnings and graphs all start here. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/analysis/analysis_internal.h"
#include "coreengine/base/base.h"

/* --- Witnesses --- */

/* Outputs that show that a route can be taken. An expression may never become true, so a route that depends on one
 * counts as sure only when an output was found that leads there: made-up outputs, from the literals of the stage's own
 * rules and a few common values, are routed as a run would do it. Finding none proves nothing. */

#define MAX_FIELDS  8    /* of an output that get made-up values: they multiply; of further ones nothing is proved */
#define MAX_VALUES  48   /* that a field may get: those of several fields multiply; further literals are not tried */
#define MAX_SAMPLES 1024 /* of one stage: about a millisecond */

struct sampler {
    const struct rv_agent *agent;
    json_object *values[MAX_VALUES]; /* owned; what a field of the output may be */
    size_t n_values;
    rv_str fields[MAX_FIELDS]; /* borrowed from rules and expressions; seen so far */
    size_t n_fields;
    uint64_t sample;
    bool is_foreign; /* the last evaluation looked at more than fields of the output */
    int rc;          /* RV_E_NOMEM; sticky */
};

static void add_value_take(struct sampler *s, json_object *value) /* NULL: null */
{
    if (s->n_values < MAX_VALUES)
        s->values[s->n_values++] = value;
    else
        json_object_put(value);
}

static void add_new_take(struct sampler *s, json_object *value)
{
    if (value)
        add_value_take(s, value);
    else
        s->rc = RV_E_NOMEM;
}

static void add_number(struct sampler *s, double number)
{
    if (!isfinite(number))
        return;
    if (floor(number) == number && fabs(number) < 1e15) {
        for (int64_t i = -1; i <= 1; i++)
            add_new_take(s, json_object_new_int64((int64_t)number + i));
    } else {
        add_new_take(s, rv_json_new_double(number));
        add_new_take(s, rv_json_new_double(number - 1));
        add_new_take(s, rv_json_new_double(number + 1));
    }
}

/* What comes out is not for a model or a hook to choose, so no made-up output is a witness: it is built, or comes from
 * other stages or plans. */
static bool is_built(const struct rv_agent *a)
{
    bool is_made = a->set || a->each.list || (a->inner.file && a->inner.file[0]) || rv_plans(&a->planning);

    return is_made && !a->hooks.post_process[0] && !a->hooks.mock_handler[0];
}

/* Does the form of the output, of a model or of `set`, keep the field from ever having that value? */
static bool is_beyond_output(const struct rv_agent *a, const char *field, json_object *value)
{
    bool is_text = json_object_is_type(value, json_type_string), has_form = a->set || (a->has_llm && !is_built(a));
    const char *word = is_text ? json_object_get_string(value) : NULL;

    return field && has_form && !a->each.list && !a->hooks.post_process[0] && !a->hooks.mock_handler[0] &&
           !lint_output_may_say(a, field, &word, is_text);
}

/* Literals, roughly: what is missed or misread only makes a sample useless. */
static void add_literals(struct sampler *s, const char *text)
{
    while (*text) {
        if (*text == '"' || *text == '\'') {
            const char *end = strchr(text + 1, *text);

            if (!end)
                return;
            add_new_take(s, json_object_new_string_len(text + 1, (int)(end - text - 1)));
            text = end + 1;
        } else if (isdigit((unsigned char)*text)) {
            char *end;

            add_number(s, rv_number_read(text, &end));
            text = end;
        } else if (isalpha((unsigned char)*text) || *text == '_') {
            while (isalnum((unsigned char)*text) || *text == '_')
                text++;
        } else {
            text++;
        }
    }
}

static void add_values(struct sampler *s)
{
    add_new_take(s, json_object_new_boolean(true));
    add_new_take(s, json_object_new_boolean(false));
    add_new_take(s, json_object_new_int64(0));
    add_new_take(s, json_object_new_int64(1));
    add_new_take(s, json_object_new_string("text"));
    for (size_t i = 0; i < s->agent->routing.n_rules; i++) {
        const struct rv_rule *rule = &s->agent->routing.rules[i];
        json_object *copy = NULL; /* not a reference: counting it would change a pipeline that others read */

        if (rule->when)
            add_literals(s, rv_expr_text(rule->when));
        else if (rv_json_dup(rule->value, &copy, RV_CODE_ONLY("copying fails without memory only, which rc says")) < 0)
            s->rc = RV_E_NOMEM;
        else
            add_value_take(s, copy);
    }
}

/* The value of a field in this sample: any of the values, the same one whenever it is asked for. */
static bool field_value(struct sampler *s, rv_str name, json_object **out)
{
    char field[128];
    size_t i = 0;
    uint64_t mix;

    while (i < s->n_fields && !rv_str_eq(s->fields[i], name))
        i++;
    if (i == MAX_FIELDS || rv_str_is(name, "outcome"))
        return false; /* an outcome may stop the stage before it routes */
    if (i == s->n_fields)
        s->fields[s->n_fields++] = name;
    mix = (s->sample * MAX_FIELDS + i + 1) * RV_GOLDEN;
    mix = (mix ^ mix >> 32) * 0xbf58476d1ce4e5b9u;
    *out = s->values[(mix >> 33) % s->n_values];
    snprintf(field, sizeof field, "%.*s", RV_STR_ARG(rv_utf8_cut(name, sizeof field - 1)));
    return !is_beyond_output(s->agent, field, *out);
}

static int lookup(void *self, rv_str name, rv_str field, json_object **out, bool *found, rv_err **err)
{
    struct sampler *s = self;

    (void)err;
    *found = rv_str_is(name, "output") && field.ptr && field_value(s, field, out);
    s->is_foreign |= !*found;
    return 0;
}

/* The rule that this sample's output matches, n_rules for none; -1: the sample says nothing. */
static int route_sample(struct sampler *s)
{
    struct rv_scope scope = {.lookup = lookup, .self = s};

    s->is_foreign = false;
    for (size_t i = 0; i < s->agent->routing.n_rules; i++) {
        const struct rv_rule *rule = &s->agent->routing.rules[i];
        json_object *value = NULL;
        bool matches = false;

        if (is_beyond_output(s->agent, rule->condition, rule->value))
            continue;
        if (rule->when) {
            int rc = rv_expr_test(rule->when, &scope, &matches,
                                  RV_CODE_ONLY("a value that does not fit the expression: the sample says nothing"));

            if (rc == RV_E_NOMEM)
                s->rc = rc;
            if (rc < 0 || s->is_foreign)
                return -1;
        } else {
            if (!rule->condition || !field_value(s, rv_str_of(rule->condition), &value))
                return -1;
            matches = rv_json_equal(value, rule->value);
        }
        if (matches)
            return (int)i;
    }
    return (int)s->agent->routing.n_rules;
}

static void try_samples(struct sampler *s, struct rv_route *routes, size_t n_open)
{
    for (s->sample = 0; s->sample < MAX_SAMPLES && n_open > 0 && s->rc == 0; s->sample++) {
        int taken = route_sample(s);

        if (taken < 0 && s->sample >= 64 &&
            s->is_foreign) /* the rule looks at more than the output: more outputs will not help */
            return;
        if (taken >= 0 && !routes[taken].is_likely && routes[taken].fate == RV_WAY_LIVE) {
            routes[taken].is_likely = true;
            n_open--;
        }
    }
}

int lint_witness_routes(const struct rv_agent *a, struct rv_route *routes, rv_err **err)
{
    struct sampler s = {.agent = a};
    size_t n_open = 0;

    for (size_t i = 0; i <= a->routing.n_rules; i++)
        n_open += !routes[i].is_likely && routes[i].fate == RV_WAY_LIVE;
    if (n_open == 0 || a->routing.function[0] || is_built(a))
        return 0;
    add_values(&s);
    try_samples(&s, routes, n_open);
    for (size_t i = 0; i < s.n_values; i++)
        json_object_put(s.values[i]);
    return s.rc < 0 ? RV_FAIL(err, s.rc, "try outputs of stage \"%s\"", a->name) : 0;
}

/* How many branches of the list this sample begins; -1: it says nothing. */
static int begin_branches(struct sampler *s, const struct rv_branches *list, bool *active)
{
    struct rv_scope scope = {.lookup = lookup, .self = s};
    int n = 0;

    s->is_foreign = false;
    for (size_t i = 0; i < list->n; i++) {
        int rc = 0;

        active[i] = true;
        if (list->items[i].when)
            rc = rv_expr_test(list->items[i].when, &scope, &active[i],
                              RV_CODE_ONLY("a value that does not fit the expression: the sample says nothing"));
        if (rc == RV_E_NOMEM)
            s->rc = rc;
        if (rc < 0 || s->is_foreign)
            return -1;
        n += active[i];
    }
    return n;
}

static void try_branches(struct sampler *s, int route, const struct rv_branches *list, bool *tried, bool *active,
                         bool *found)
{
    int most = -1;

    for (s->sample = 0; s->sample < MAX_SAMPLES && most < (int)list->n && s->rc == 0; s->sample++) {
        int n = route_sample(s) == route ? begin_branches(s, list, tried) : -1;

        if (n < 0 && s->sample >= 64 && s->is_foreign)
            return;
        if (n <= most)
            continue;
        most = n;
        memcpy(active, tried, list->n * sizeof *active);
        *found = true;
    }
}

int lint_witness_branches(const struct rv_agent *a, const struct rv_route *routes, const struct rv_route *route,
                          const struct rv_branches *list, bool *active, rv_err **err)
{
    struct sampler s = {.agent = a};
    bool any_when = false, found = false, *tried;

    for (size_t i = 0; i < list->n; i++) {
        active[i] = true;
        any_when = any_when || list->items[i].when;
    }
    if (!any_when || a->routing.function[0])
        return route->is_likely && route->fate == RV_WAY_LIVE;
    if (is_built(a))
        return 0;
    tried = calloc(list->n + 1, sizeof *tried);
    if (!tried)
        return RV_FAIL(err, RV_E_NOMEM, "try outputs of stage \"%s\"", a->name);
    add_values(&s);
    for (size_t i = 0; i < list->n; i++)
        if (list->items[i].when)
            add_literals(&s, rv_expr_text(list->items[i].when));
    try_branches(&s, (int)(route - routes), list, tried, active, &found);
    for (size_t i = 0; i < s.n_values; i++)
        json_object_put(s.values[i]);
    free(tried);
    return s.rc < 0 ? RV_FAIL(err, s.rc, "try outputs of stage \"%s\"", a->name) : found;
}

/* --- Routes --- */

bool lint_agent_calls_model(const struct rv_agent *a)
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

    route->is_likely =
        !before->any_when && !rule->when && !is_built(a) && !is_beyond_output(a, rule->condition, rule->value);
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

static void add_agent(const struct rv_pipeline *p, int from, struct rv_routes *routes)
{
    const struct rv_route blank = {.from = from, .rule = -1, .because = -1, .is_likely = true};
    const struct rv_agent *a = &p->agents[from];
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
        else if (a->routing.rules[i].when ||
                 (is_built(a) && !is_beyond_output(a, a->routing.rules[i].condition, a->routing.rules[i].value)))
            before.any_when = true;
        routes->items[routes->n++] = route;
    }
    route = blank;
    route.kind = RV_WAY_DEFAULT;
    route.to = a->routing.default_target == RV_TARGET_NONE ? RV_TARGET_END : a->routing.default_target;
    route.is_likely = !before.any_when;
    if (before.always >= 0 && p->execution.replan_on_partial_success) { /* else a partial result does not lead back */
        route.fate = RV_WAY_CUT_OFF;
        route.because = before.always;
    }
    routes->items[routes->n++] = route;
    if (a->routing.error_target != RV_TARGET_NONE) {
        route = blank;
        route.kind = RV_WAY_ERROR;
        route.to = a->routing.error_target;
        route.is_likely = !a->set || a->hooks.pre_process[0] || a->hooks.post_process[0] || a->has_policies;
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

int lint_routes_build(const struct rv_pipeline *p, struct rv_routes *out, rv_err **err)
{
    struct rv_routes routes = {NULL, 0, NULL};
    size_t max = 0;

    for (size_t s = 0; s < p->n_agents; s++)
        max += p->agents[s].routing.n_rules + 4; /* default, error, function, approved */
    routes.items = calloc(max + 1, sizeof(*routes.items));
    routes.start = calloc(p->n_agents + 1, sizeof(*routes.start));
    if (!routes.items || !routes.start) {
        lint_routes_fini(&routes);
        return RV_FAIL(err, RV_E_NOMEM, "list the routes between stages");
    }
    for (size_t s = 0; s < p->n_agents; s++) {
        routes.start[s] = routes.n;
        add_agent(p, (int)s, &routes);
        add_approved(p, &p->agents[s], (int)s, &routes);
    }
    routes.start[p->n_agents] = routes.n;
    *out = routes;
    return 0;
}

const struct rv_branches *lint_route_branches(const struct rv_pipeline *p, const struct rv_route *route)
{
    static const struct rv_branches none = {0};
    const struct rv_agent *a = &p->agents[route->from];

    if (route->to != RV_TARGET_LIST)
        return &none;
    return route->kind == RV_WAY_RULE ? &a->routing.rules[route->rule].branches : &a->routing.branches;
}

size_t lint_routes_most_ways(const struct rv_pipeline *p, const struct rv_routes *routes)
{
    size_t n = 0;

    for (size_t i = 0; i < routes->n; i++)
        n += lint_route_branches(p, &routes->items[i])->n + 1;
    for (size_t i = 0; i < p->n_agents; i++)
        n += p->agents[i].ask.n_routes;
    return n;
}

void lint_routes_fini(struct rv_routes *routes)
{
    free(routes->items);
    free(routes->start);
    *routes = (struct rv_routes){NULL, 0, NULL};
}
