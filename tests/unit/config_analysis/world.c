#include "tests/unit/config_analysis/world.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

struct world *world_new(int n)
{
    struct world *w = calloc(1, sizeof(*w));
    struct rv_pipeline *p;

    ck_assert_ptr_nonnull(w);
    p = &w->p;
    p->internal = &w->internal;
    p->name = "by hand";
    p->description = "";
    p->agents = w->agents;
    p->n_agents = (size_t)n;
    p->stage_names = w->names;
    p->edge_limits = w->limits;
    p->default_run_mode = RV_UNSET;
    p->max_iterations = 3;
    p->max_llm_calls = 10;
    p->max_agent_hops = 21;
    p->clarification_resume_stage = p->confirmation_resume_stage = "";
    p->agent_review_resume_stage = p->agent_review_reject_stage = "";
    p->execution.enable_loop_back = true;
    p->execution.enable_arbiter = true;
    p->execution.replan_on_partial_success = true;
    p->execution.max_llm_retries = 3;
    p->is_sound = true;
    for (int i = 0; i < n; i++) {
        struct rv_agent *a = &w->agents[i];

        snprintf(w->name_text[i], sizeof(w->name_text[i]), "s%d", i);
        w->names[i] = a->name = a->output.key = w->name_text[i];
        a->index = i;
        a->order.stage_order = i;
        a->tools.access = RV_UNSET;
        a->model.role = a->model.prompt_key = a->model.system_key = a->routing.default_next = a->routing.error_next =
            "";
        a->tools.plan_from = "plan";
        a->hooks.pre_process = a->hooks.post_process = a->hooks.mock_handler = a->routing.function = "";
        a->routing.rules = w->rules[i];
        a->routing.error_target = RV_TARGET_NONE;
        a->order.required.items = w->lists[i].requires;
        a->order.required_index = w->lists[i].required_index;
        a->order.after.items = w->lists[i].after;
        a->order.after_index = w->lists[i].after_index;
        world_default(w, i, i + 1 < n ? i + 1 : RV_TARGET_END);
    }
    for (int i = 0; i + 1 < n; i++)
        w->agents[i].routing.default_next = w->names[i + 1];
    return w;
}

void world_free(struct world *w)
{
    for (size_t i = 0; i < w->p.n_agents; i++) {
        for (size_t j = 0; j < w->agents[i].routing.n_rules; j++) {
            json_object_put(w->agents[i].routing.rules[j].value);
            rv_expr_free(w->agents[i].routing.rules[j].when);
        }
    }
    config_links_fini(&w->internal.links);
    free(w);
}

static const char *target_name(const struct world *w, int target)
{
    switch (target) {
    case RV_TARGET_END:
        return "end";
    case RV_TARGET_CLARIFICATION:
        return "clarification";
    case RV_TARGET_CONFIRMATION:
        return "confirmation";
    case RV_TARGET_NONE:
        return "";
    default:
        return w->names[target];
    }
}

void world_llm(struct world *w, int stage, int64_t max_retries)
{
    w->agents[stage].has_llm = true;
    w->agents[stage].model.role = "default";
    w->agents[stage].limits.max_retries = max_retries;
}

void world_default(struct world *w, int stage, int target)
{
    w->agents[stage].routing.default_target = target;
    w->agents[stage].routing.default_next = target_name(w, target);
}

void world_error(struct world *w, int stage, int target)
{
    w->agents[stage].routing.error_target = target;
    w->agents[stage].routing.error_next = target_name(w, target);
}

void world_function(struct world *w, int stage)
{
    w->agents[stage].routing.function = "any.where";
}

static struct rv_rule *add_rule(struct world *w, int stage, int target)
{
    struct rv_agent *a = &w->agents[stage];

    ck_assert_uint_lt(a->routing.n_rules, WORLD_RULES);
    a->routing.rules[a->routing.n_rules].target = target;
    a->routing.rules[a->routing.n_rules].target_name = target_name(w, target);
    return &a->routing.rules[a->routing.n_rules++];
}

void world_rule(struct world *w, int stage, const char *key, const char *json, int target)
{
    struct rv_rule *rule = add_rule(w, stage, target);

    rule->condition = key;
    ck_assert_int_eq(rv_json_parse(rv_str_of(json), NULL, &rule->value, NULL), 0);
}

void world_when(struct world *w, int stage, const char *text, int target)
{
    struct rv_rule *rule = add_rule(w, stage, target);

    ck_assert_int_eq(rv_expr_compile(rv_str_of(text), NULL, NULL, 0, &rule->when, NULL), 0);
}

void world_limit(struct world *w, int from, int to, int64_t max_count)
{
    ck_assert_uint_lt(w->p.n_edge_limits, WORLD_LIMITS);
    w->limits[w->p.n_edge_limits++] = (struct rv_edge_limit){
        .from_name = w->names[from], .to_name = w->names[to], .from = from, .to = to, .max_count = max_count};
}

void world_require(struct world *w, int stage, int on)
{
    struct rv_agent *a = &w->agents[stage];

    ck_assert_uint_lt(a->order.required.n, WORLD_LISTS);
    w->lists[stage].requires[a->order.required.n] = w->names[on];
    a->order.required_index[a->order.required.n++] = on;
}

void world_after(struct world *w, int stage, int on)
{
    struct rv_agent *a = &w->agents[stage];

    ck_assert_uint_lt(a->order.after.n, WORLD_LISTS);
    w->lists[stage].after[a->order.after.n] = w->names[on];
    a->order.after_index[a->order.after.n++] = on;
}
