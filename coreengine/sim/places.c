/* The stages and routes of a pipeline, and how often runs went through them. */
#include "coreengine/sim/sim_internal.h"

#include <stdlib.h>

static void add(struct rv_sim_report *r, enum rv_sim_place_kind kind, const struct rv_agent *a, int rule)
{
    r->places[r->n_places++] = (struct rv_sim_place){.kind = kind, .stage = a->index, .rule = rule};
}

static void add_stage(const struct rv_pipeline *p, struct rv_sim_report *r, const struct rv_agent *a)
{
    bool routes = p->default_run_mode != RV_MODE_PARALLEL; /* only sequential runs look at routes */

    add(r, RV_SIM_STAGE, a, -1);
    if (routes && a->routing.function[0]) {
        add(r, RV_SIM_FUNCTION, a, -1);
    } else if (routes) {
        for (size_t i = 0; i < a->routing.n_rules; i++)
            add(r, RV_SIM_RULE, a, (int)i);
        if (a->routing.default_target != RV_TARGET_NONE)
            add(r, RV_SIM_DEFAULT, a, -1);
        else if (a->routing.n_rules > 0)
            add(r, RV_SIM_NO_MATCH, a, -1);
    }
    if (routes && a->routing.error_target != RV_TARGET_NONE)
        add(r, RV_SIM_ERROR_ROUTE, a, -1);
}

int sim_places_new(const struct rv_pipeline *p, struct rv_sim_report *r, rv_err **err)
{
    size_t n = 1;

    for (size_t i = 0; i < p->n_agents; i++)
        n += p->agents[i].routing.n_rules + 3;
    r->places = calloc(n, sizeof *r->places);
    if (!r->places)
        return RV_FAIL(err, RV_E_NOMEM, "count the routes of pipeline \"%s\"", p->name);
    for (size_t i = 0; i < p->n_agents; i++)
        add_stage(p, r, &p->agents[i]);
    return 0;
}

void sim_places_hit(struct rv_sim_report *r, enum rv_sim_place_kind kind, int stage, int64_t rule)
{
    for (size_t i = 0; i < r->n_places; i++) {
        struct rv_sim_place *at = &r->places[i];
        if (at->kind == kind && at->stage == stage && (kind != RV_SIM_RULE || at->rule == rule))
            at->hits++;
    }
}
