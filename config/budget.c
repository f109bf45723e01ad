/* The budget of a run: its key, and that everything it can be spent on has a price. */
#include <stddef.h>

#include "config/config_internal.h"

struct raw_budget {
    const char *unused; /* offset 0 */
    double usd;
};
static const struct rv_key budget_keys[] = {
    {.name = "usd",
     .type = RV_KEY_FLOAT,
     .offset = offsetof(struct raw_budget, usd),
     .required = true,
     .min = 0,
     .max = RV_MAX_USD,
     .doc = "US dollars, a micro-dollar at least; what is less is left out."},
};
static const struct rv_key_table budget_table = {
    .name = "budget",
    .title = "What one run may cost, with everything it starts",
    .keys = budget_keys,
    .n_keys = RV_COUNT(budget_keys),
};

void rv_read_budget(struct rv_key_reader *r, const struct rv_node *node, void *target)
{
    struct rv_pipeline *p = rv_loader_of(r)->p;
    const struct rv_node *usd = rv_node_get(node, "usd");
    size_t n_errors = rv_findings_n_errors(r->findings);
    struct raw_budget raw = {0};
    const char *outer = r->path;

    (void)target;
    if (node->kind != RV_NODE_MAP) {
        rv_keys_wrong_type(r, node, "budget", "a map");
        return;
    }
    r->path = "budget.";
    rv_keys_read(r, node, budget_keys, RV_COUNT(budget_keys), &raw);
    r->path = outer;
    if (rv_findings_n_errors(r->findings) > n_errors)
        return;
    p->budget_micro_usd = rv_micro_usd_down(raw.usd);
    p->has_budget = true;
    if (p->budget_micro_usd < 1)
        rv_keys_finding(r, RV_SEVERITY_ERROR, &usd->src, "a run that may cost nothing can ask no model",
                        "budget.usd must be at least 0.000001, not %s", usd->text.ptr);
}

const struct rv_key_table *rv_budget_table(void)
{
    return &budget_table;
}

void rv_pipeline_mark_used_models(const struct rv_pipeline *p, bool *used)
{
    for (size_t i = 0; i < p->n_agents; i++) {
        const struct rv_agent *a = &p->agents[i];
        const struct rv_model_config *m =
            a->has_llm && !rv_agent_is_unbound(a)
                ? rv_pipeline_model(p, rv_str_of(a->model.role[0] ? a->model.role : "default"))
                : NULL;

        if (!m)
            continue;
        used[m - p->models] = true;
        for (size_t k = 0; k < m->fallback.n; k++) /* those of fallbacks are not asked */
            used[m->fallback_models[k] - p->models] = true;
    }
}

void rv_check_budget(struct rv_loader *l)
{
    rv_check_more_budget(l, NULL);
}

void rv_check_more_budget(struct rv_loader *l, const bool *known)
{
    bool *used = rv_loader_array(l, l->p->n_models, sizeof *used);

    if (!used || !l->p->has_budget)
        return;
    rv_pipeline_mark_used_models(l->p, used);
    for (size_t i = 0; i < l->p->n_models; i++) {
        const struct rv_model_config *m = &l->p->models[i];

        if (used[i] && !(known && known[i]) && !m->has_price)
            rv_findings_add(l->findings, RV_SEVERITY_ERROR, &m->src,
                            "say it, in US dollars for a million tokens: price: {input: 0.4, output: 1.6}",
                            "model \"%s\": there is a budget, and what this model costs is not known", m->role);
    }
}
