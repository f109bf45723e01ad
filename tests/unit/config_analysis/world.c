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
    p->execution.max_llm_retries = 3;
    p->is_sound = true;
    for (int i = 0; i < n; i++) {
        struct rv_agent_config *a = &w->agents[i];

        snprintf(w->name_text[i], sizeof(w->name_text[i]), "s%d", i);
        w->names[i] = a->name = a->output_key = w->name_text[i];
        a->index = i;
        a->stage_order = i;
        a->tool_access = RV_UNSET;
        a->model_role = a->prompt_key = a->default_next = a->error_next = "";
        a->plan_from = "plan";
        a->pre_process = a->post_process = a->mock_handler = a->routing_function = "";
        a->rules = w->rules[i];
        a->error_target = RV_TARGET_NONE;
        a->requires.items = w->lists[i].requires;
        a->requires_index = w->lists[i].requires_index;
        a->after.items = w->lists[i].after;
        a->after_index = w->lists[i].after_index;
        world_default(w, i, i + 1 < n ? i + 1 : RV_TARGET_END);
    }
    for (int i = 0; i + 1 < n; i++)
        w->agents[i].default_next = w->names[i + 1];
    return w;
}

void world_free(struct world *w)
{
    for (size_t i = 0; i < w->p.n_agents; i++) {
        for (size_t j = 0; j < w->agents[i].n_rules; j++) {
            json_object_put(w->agents[i].rules[j].value);
            rv_expr_free(w->agents[i].rules[j].when);
        }
    }
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
    w->agents[stage].model_role = "default";
    w->agents[stage].max_retries = max_retries;
}

void world_default(struct world *w, int stage, int target)
{
    w->agents[stage].default_target = target;
    w->agents[stage].default_next = target_name(w, target);
}

void world_error(struct world *w, int stage, int target)
{
    w->agents[stage].error_target = target;
    w->agents[stage].error_next = target_name(w, target);
}

void world_function(struct world *w, int stage)
{
    w->agents[stage].routing_function = "any.where";
}

static struct rv_rule *add_rule(struct world *w, int stage, int target)
{
    struct rv_agent_config *a = &w->agents[stage];

    ck_assert_uint_lt(a->n_rules, WORLD_RULES);
    a->rules[a->n_rules].target = target;
    a->rules[a->n_rules].target_name = target_name(w, target);
    return &a->rules[a->n_rules++];
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
    struct rv_agent_config *a = &w->agents[stage];

    ck_assert_uint_lt(a->requires.n, WORLD_LISTS);
    w->lists[stage].requires[a->requires.n] = w->names[on];
    a->requires_index[a->requires.n++] = on;
}

void world_after(struct world *w, int stage, int on)
{
    struct rv_agent_config *a = &w->agents[stage];

    ck_assert_uint_lt(a->after.n, WORLD_LISTS);
    w->lists[stage].after[a->after.n] = w->names[on];
    a->after_index[a->after.n++] = on;
}
