/* A stage routes to a list of targets: which of its branches start. All conditions are decided before anything starts,
 * on what the stage sees that routes. */
#include "coreengine/agent/agent_internal.h"
#include "envelope/envelope.h"

#include <stdlib.h>

int rv_branches_choose(const struct rv_branches *list, const struct rv_scope *scope, bool *taken, rv_err **err)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct rv_branch_target *b = &list->items[i];
        int rc = 0;

        taken[i] = true;
        if (b->when)
            rc = rv_expr_test(b->when, scope, &taken[i], err);
        if (rc == RV_E_NOMEM)
            return rc;
        if (rc < 0)
            return RV_WRAP_AT(err, &b->src, RV_E_INVALID, "branch \"%s\": its condition \"%s\" cannot be decided",
                              b->name, rv_expr_text(b->when));
    }
    return 0;
}

const struct rv_branches *rv_agent_list(const struct rv_agent *agent, int rule)
{
    return rule >= 0 ? &agent->routing.rules[rule].branches : &agent->routing.branches;
}

static int note_names(rv_visit *v, rv_err **err)
{
    const struct rv_branches *list = v->result.branches;
    int rc = 0;

    v->chosen = json_object_new_array();
    if (!v->chosen)
        return RV_FAIL(err, RV_E_NOMEM, "route stage \"%s\"", v->agent->name);
    for (size_t i = 0; i < list->n && rc == 0; i++)
        if (v->taken[i])
            rc = rv_json_push_take(v->chosen, json_object_new_string(list->items[i].name), err);
    return rc;
}

int visit_choose_branches(rv_visit *v, rv_err **err)
{
    const struct rv_branches *list = rv_agent_list(v->agent, v->routed_by == RV_ROUTE_RULE ? v->routed_rule : -1);
    struct rv_stage_scope values;
    rv_err *cause = NULL;

    free(v->taken);
    v->taken = calloc(list->n, sizeof *v->taken);
    if (!v->taken)
        return RV_FAIL(err, RV_E_NOMEM, "route stage \"%s\"", v->agent->name);
    struct rv_scope scope = rv_stage_scope_init(&values, v->shared->pipeline, v->env, v->output, false);
    rv_stage_scope_set_place(&values, &v->place);
    int rc = rv_branches_choose(list, &scope, v->taken, &cause);
    rv_stage_scope_fini(&values);
    if (rc < 0)
        return visit_fail_cause(v, rv_error_expression, cause, err);
    v->result.branches = list;
    v->result.taken = v->taken;
    return note_names(v, err);
}
