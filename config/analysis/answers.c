/* What outputs of a stage can say, as far as its configuration tells, and what follows: whether a visit can ask a
 * person, and how many answers a run can take. */
#include <string.h>

#include "config/analysis/group_internal.h"

static bool has_key(const struct rv_built *map, const char *key)
{
    for (size_t i = 0; i < map->n; i++)
        if (strcmp(map->keys[i], key) == 0)
            return true;
    return false;
}

/* NULL: it is not known what they are made of. */
static bool built_may_have(const struct rv_built *built, const char *member)
{
    return !built || built->kind != RV_BUILT_MAP || has_key(built, member);
}

static bool is_listed(json_object *list, const char *const *words, size_t n)
{
    for (size_t i = 0; i < json_object_array_length(list); i++)
        for (size_t k = 0; k < n; k++)
            if (rv_str_is(rv_json_str(json_object_array_get_idx(list, i)), words[k]))
                return true;
    return false;
}

/* n 0: any value. */
static bool schema_allows(json_object *schema, const char *member, const char *const *words, size_t n)
{
    json_object *known = rv_json_get_obj(schema, "properties"), *of = NULL;
    bool is_open = true;

    if (!known || !json_object_object_get_ex(known, member, &of))
        return json_object_object_get_ex(schema, "patternProperties", NULL) ||
               !rv_json_get_bool(schema, "additionalProperties", &is_open) || is_open;
    json_object *listed = n > 0 && json_object_is_type(of, json_type_object) ? rv_json_get_arr(of, "enum") : NULL;
    return !listed || is_listed(listed, words, n);
}

bool lint_output_may_say(const struct rv_agent *a, const char *member, const char *const *words, size_t n)
{
    if (rv_agent_is_unbound(a))
        return true;
    if (lint_agent_has_inner(a)) /* without `outputs`, its members are outputs of stages: objects */
        return a->inner.outputs && built_may_have(a->inner.outputs, member);
    if (a->set)
        return built_may_have(a->set, member);
    if (rv_plans(&a->planning))
        return false; /* what the model says is in `response` */
    if (a->has_llm && a->output.schema)
        return schema_allows(a->output.schema, member, words, n);
    if (a->has_llm && a->output.mode == RV_OUTPUT_TEXT)
        return strcmp(member, "response") == 0;
    return a->has_llm || a->has_tools;
}

bool lint_agent_may_contradict(const struct rv_pipeline *p, const struct rv_agent *a)
{
    static const char *const back[] = {"replan", "loop_back"}, *const on[] = {"proceed", "advance"};
    const struct rv_execution_config *e = &p->execution;

    return e->meta_validation_enabled && !(a->declared.name && a->declared.name[0]) && !a->declared.doc &&
           e->meta_validation_delay_ms < lint_sat_mul(a->limits.timeout_seconds, RV_US_PER_S / RV_US_PER_MS) &&
           lint_output_may_say(a, "outcome", back, RV_COUNT(back)) &&
           lint_output_may_say(a, "verdict", on, RV_COUNT(on));
}

/* --- Questions --- */

static bool is_question(int target)
{
    return target == RV_TARGET_CLARIFICATION || target == RV_TARGET_CONFIRMATION;
}

static bool routes_ask(const struct rv_agent_routing *r)
{
    bool asks = r->function[0] || is_question(r->error_target) || is_question(r->default_target);

    for (size_t i = 0; i < r->n_rules; i++)
        asks = asks || is_question(r->rules[i].target);
    return asks;
}

/* A word for it, or little confidence and a question. */
static bool output_asks(const struct rv_agent *a)
{
    static const char *const asking[] = {"clarify", "confirm"};

    return a->hooks.mock_handler[0] || lint_output_may_say(a, "outcome", asking, RV_COUNT(asking)) ||
           (lint_output_may_say(a, "confidence", NULL, 0) && lint_output_may_say(a, "clarification_question", NULL, 0));
}

/* Calls of tools may need a person, but for those of a plan without a confirmer. */
static bool calls_ask(const struct rv_agent *a)
{
    bool by_plan = rv_plans(&a->planning) && a->planning.confirmer == RV_CONFIRMER_NONE;

    return (a->has_tools && !by_plan) || a->has_policies || a->hooks.pre_process[0] || a->hooks.post_process[0] ||
           (a->tools.chained && a->tools.chained[0]);
}

/* Whether a visit can end with a question: by a route, by its output, by what a capability answers, about a call of a
 * tool, or in the pipeline that it runs. */
static bool can_ask(const struct rv_agent *a)
{
    const struct rv_pipeline *inner = a->inner.pipeline;
    bool inside = lint_agent_has_inner(a) && (!inner || rv_pipeline_max_answers(inner) > 0);

    return a->ask.question || inside || routes_ask(&a->routing) || calls_ask(a) || output_asks(a);
}

int64_t rv_pipeline_max_answers(const struct rv_pipeline *p)
{
    for (size_t i = 0; i < p->n_agents; i++)
        if (can_ask(&p->agents[i]))
            return p->max_agent_hops > 0 ? p->max_agent_hops : 0; /* each pause follows a visit */
    return 0;
}
