/* Where a stage leads: rules in order, then the default, then the end (rule 5.8). */
#include "coreengine/agent/agent.h"

static const char *const by_texts[] = {
    [RV_ROUTE_RULE] = "rule",         [RV_ROUTE_FUNCTION] = "function", [RV_ROUTE_DEFAULT] = "default_route",
    [RV_ROUTE_NO_MATCH] = "no_match", [RV_ROUTE_ERROR] = "error_route",
};

const char *rv_route_by_text(enum rv_route_by by)
{
    return by_texts[by];
}

static int matches(const struct rv_rule *rule, json_object *output, const struct rv_scope *scope, bool *out,
                   rv_err **err)
{
    if (rule->when) {
        int rc = rv_expr_test(rule->when, scope, out, err);
        if (rc == RV_E_NOMEM)
            return rc;
        return rc < 0 ? RV_WRAP_AT(err, &rule->src, RV_E_INVALID, "routing rule \"%s\" can not be decided",
                                   rv_expr_text(rule->when))
                      : 0;
    }
    json_object *value = NULL;
    *out = json_object_is_type(output, json_type_object) &&
           json_object_object_get_ex(output, rule->condition, &value) && rv_json_equal(value, rule->value);
    return 0;
}

int rv_route(const struct rv_agent *agent, json_object *output, const struct rv_scope *scope, int *out_target,
             enum rv_route_by *out_by, int *out_rule, rv_err **err)
{
    if (out_rule)
        *out_rule = -1;
    for (size_t i = 0; i < agent->routing.n_rules; i++) {
        bool match = false;
        int rc = matches(&agent->routing.rules[i], output, scope, &match, err);
        if (rc < 0)
            return rc;
        if (match) {
            *out_target = agent->routing.rules[i].target;
            *out_by = RV_ROUTE_RULE;
            if (out_rule)
                *out_rule = (int)i;
            return 0;
        }
    }
    bool has_default = agent->routing.default_target != RV_TARGET_NONE;
    *out_target = has_default ? agent->routing.default_target : RV_TARGET_END;
    *out_by = has_default ? RV_ROUTE_DEFAULT : RV_ROUTE_NO_MATCH;
    return 0;
}
