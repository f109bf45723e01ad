/* The ways that a stage names in its file, one after another: rules, default_next, error_next, on_answer. */
#include "config/config_internal.h"

enum { STEP_RULES, STEP_DEFAULT, STEP_ERROR, STEP_ANSWERS, STEP_DONE };

static bool next_branch(const struct rv_branches *list, struct rv_way_cursor *at, struct rv_group_way *out)
{
    if (at->branch == list->n) {
        at->branch = 0;
        return false;
    }
    out->kind = RV_WAY_BRANCH;
    out->to = list->items[at->branch].target;
    out->src = list->items[at->branch].src;
    at->branch++;
    return true;
}

static bool next_rule(const struct rv_agent *a, struct rv_way_cursor *at, struct rv_group_way *out)
{
    for (; at->rule < a->routing.n_rules; at->rule++) {
        const struct rv_rule *rule = &a->routing.rules[at->rule];

        if (rule->target == RV_TARGET_LIST) {
            if (next_branch(&rule->branches, at, out))
                return true;
            continue;
        }
        out->to = rule->target;
        out->src = rule->target_src.line > 0 ? rule->target_src : rule->src;
        at->rule++;
        return true;
    }
    return false;
}

bool config_next_way(const struct rv_agent *a, struct rv_way_cursor *at, struct rv_group_way *out)
{
    *out = (struct rv_group_way){a->index, RV_TARGET_NONE, RV_WAY_ONE, a->places.name};
    if (at->step == STEP_RULES) {
        if (next_rule(a, at, out))
            return true;
        at->step = STEP_DEFAULT;
    }
    if (at->step == STEP_DEFAULT) {
        if (a->routing.default_target == RV_TARGET_LIST && next_branch(&a->routing.branches, at, out))
            return true;
        at->step = STEP_ERROR;
        if (a->routing.default_target != RV_TARGET_LIST && a->routing.default_target != RV_TARGET_NONE) {
            out->to = a->routing.default_target;
            out->src = a->places.default_next;
            return true;
        }
    }
    if (at->step == STEP_ERROR) {
        at->step = STEP_ANSWERS;
        if (a->routing.error_target != RV_TARGET_NONE) {
            *out = (struct rv_group_way){a->index, a->routing.error_target, RV_WAY_BY_ERROR, a->places.error_next};
            return true;
        }
    }
    if (at->answer < a->ask.n_routes) {
        const struct rv_answer_route *route = &a->ask.routes[at->answer++];
        *out = (struct rv_group_way){a->index, route->target, RV_WAY_BY_ANSWER, route->src};
        return true;
    }
    at->step = STEP_DONE;
    return false;
}
